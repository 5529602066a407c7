//! Embeddings: texts as vectors, of which those of similar texts are close to each other.

use std::{fmt, marker::PhantomData};

use async_trait::async_trait;
use serde_json::Value;
use tracing::{Instrument as _, info_span};

use crate::{
    Error,
    call::{Call, Caller, read_json},
    remote::{Api, Settings, merge},
};

/// The number of dimensions of all embeddings.
pub const DIMENSIONS: usize = 768;

/// The maximum length of a text, in characters. The rest is not part of the embedding.
const MAX_CHARS: usize = 8_000;
/// The maximum size of an answer, in bytes.
const MAX_ANSWER_BYTES: usize = 1024 * 1024;

/// The embedding of a text.
#[derive(Clone, Debug, PartialEq)]
pub struct Embedded {
    /// The vector: [`DIMENSIONS`] numbers, of length 1.
    pub vector: Vec<f32>,
    /// The number of tokens in the text; 0 if the API does not count them.
    pub tokens: u64,
}

/// A source of embeddings.
#[async_trait]
pub trait Embeddings: Send + Sync + fmt::Debug {
    /// Returns the name of the model. Vectors of different models cannot be compared.
    fn name(&self) -> &str;

    /// Returns the embedding of a text.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] for a blank text, [`Error::Decode`] if the model returns another number of dimensions, and
    /// otherwise as [`crate::Model::respond`].
    async fn embed(&self, text: &str) -> Result<Embedded, Error>;
}

/// The part of an API that returns embeddings.
pub trait EmbeddingApi: Api {
    /// Returns the address for requests.
    fn embedding_endpoint(settings: &Settings) -> String;

    /// Returns the body of a request.
    fn embedding_body(settings: &Settings, text: &str) -> Value;

    /// Returns the list of numbers in an answer, or null.
    fn embedding(answer: &Value) -> &Value;

    /// Returns the number of tokens in the text, or null.
    fn tokens(answer: &Value) -> &Value;
}

/// Embeddings by a provider's API.
pub struct RemoteEmbeddings<A> {
    caller: Caller,
    settings: Settings,
    endpoint: String,
    api: PhantomData<A>,
}

impl<A: EmbeddingApi> RemoteEmbeddings<A> {
    /// Creates a client, without sending a request.
    ///
    /// # Errors
    ///
    /// [`Error::Auth`] if the key is not a valid header value, [`Error::Unavailable`] if TLS cannot be set up.
    pub fn new(settings: Settings) -> Result<Self, Error> {
        let headers = A::headers(&settings)?;
        let caller = Caller::new(&settings.base_url, headers, settings.timeout, settings.attempts)?;
        Ok(Self { caller, endpoint: A::embedding_endpoint(&settings), settings, api: PhantomData })
    }
}

#[async_trait]
impl<A: EmbeddingApi> Embeddings for RemoteEmbeddings<A> {
    fn name(&self) -> &str {
        &self.settings.model
    }

    async fn embed(&self, text: &str) -> Result<Embedded, Error> {
        let text: String = text.trim().chars().take(MAX_CHARS).collect();
        if text.is_empty() {
            return Err(Error::Refused { reason: "not sent, as a blank text has no embedding".to_owned() });
        }
        let mut body = A::embedding_body(&self.settings, &text);
        merge(&mut body, &self.settings.extra);
        let body = body.to_string();
        let body = Some(body.as_bytes());
        let call = Call { url: &self.endpoint, accept: "application/json", body, fault: A::fault };
        let span = info_span!("embedding_call", model.name = self.settings.model);
        let answer = self.caller.call(call, |answer| read_json(answer, MAX_ANSWER_BYTES)).instrument(span).await?;
        let vector = normalized(A::embedding(&answer)).map_err(|reason| Error::Decode { reason })?;
        Ok(Embedded { vector, tokens: A::tokens(&answer).as_u64().unwrap_or(0) })
    }
}

impl<A> fmt::Debug for RemoteEmbeddings<A> {
    /// Formats only the name, since the address may contain a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteEmbeddings").field("model", &self.settings.model).finish_non_exhaustive()
    }
}

/// Returns the vector of length 1 in this direction. Some models return other lengths for fewer dimensions.
fn normalized(values: &Value) -> Result<Vec<f32>, String> {
    let values: Option<Vec<f64>> = values.as_array().and_then(|values| values.iter().map(Value::as_f64).collect());
    let values = values.ok_or("it has no embedding")?;
    if values.len() != DIMENSIONS {
        return Err(format!("its embedding has {} dimensions, not {DIMENSIONS}", values.len()));
    }
    let length = values.iter().map(|value| value * value).sum::<f64>().sqrt();
    if length == 0.0 || !length.is_finite() {
        return Err("its embedding has no direction".to_owned());
    }
    Ok(values.iter().map(|value| (value / length) as f32).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_vector_is_normalized() {
        let mut values = vec![0.0; DIMENSIONS];
        (values[0], values[1]) = (3.0, -4.0);
        let vector = normalized(&json!(values)).unwrap();
        assert_eq!(vector[..3], [0.6, -0.8, 0.0]);
    }

    #[test]
    fn an_unusable_vector_is_refused() {
        let wrong = |values: Value| normalized(&values).unwrap_err();
        assert_eq!(wrong(json!([1.0, 2.0])), "its embedding has 2 dimensions, not 768");
        assert_eq!(wrong(Value::Null), "it has no embedding");
        assert_eq!(wrong(json!(["a"])), "it has no embedding");
        assert_eq!(wrong(json!(vec![0.0; DIMENSIONS])), "its embedding has no direction");
    }
}
