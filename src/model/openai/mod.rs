//! OpenAI's Chat Completions API, which many other servers offer as well.
//!
//! `request` creates the body of a request, and `answer` assembles the events of an answer; `text_calls` finds tool calls
//! that a server left in the text. Members of a message that are not known here, such as the reasoning of some servers, are
//! kept and sent back unchanged.
//!
//! OpenAI's newer Responses API was rejected as a design: it is not what other servers offer, and it keeps the
//! conversation at the provider.

pub mod answer;
mod request;
mod text_calls;

use reqwest::header::{self, HeaderMap};
use serde_json::{Value, json};

use self::answer::CompletionAnswer;
pub use crate::remote::Settings;
use crate::{
    Error, Request, Response,
    embeddings::{DIMENSIONS, EmbeddingApi, RemoteEmbeddings},
    remote::{Api, Fault, Remedy, Remote},
};

/// The name of the provider in stored blocks.
const PROVIDER: &str = "openai";

/// A model that is called through the Chat Completions API. The base URL contains the version, such as `/v1`.
pub type OpenAiModel = Remote<ChatCompletionsApi>;

/// Embeddings by the same API.
pub type OpenAiEmbeddings = RemoteEmbeddings<ChatCompletionsApi>;

/// The Chat Completions API.
#[derive(Debug)]
pub struct ChatCompletionsApi;

impl Api for ChatCompletionsApi {
    type Answer = CompletionAnswer;

    fn endpoint(settings: &Settings) -> String {
        format!("{}/chat/completions", settings.base())
    }

    fn headers(settings: &Settings) -> Result<HeaderMap, Error> {
        let mut headers = HeaderMap::new();
        headers.extend(settings.key("Bearer ")?.map(|key| (header::AUTHORIZATION, key)));
        Ok(headers)
    }

    fn body(settings: &Settings, request: &Request) -> Result<Value, Error> {
        let is_openai = settings.base_url.host_str().is_some_and(|host| host.ends_with("openai.com"));
        request::body(&settings.model, is_openai, request)
    }

    fn fault(body: &[u8]) -> Fault {
        serde_json::from_slice(body).map_or_else(|_| Fault::default(), |body: Value| fault(&body))
    }

    fn converted(request: &Request, response: Response) -> Response {
        text_calls::converted(request, response)
    }
}

impl EmbeddingApi for ChatCompletionsApi {
    fn embedding_endpoint(settings: &Settings) -> String {
        format!("{}/embeddings", settings.base())
    }

    fn embedding_body(settings: &Settings, text: &str) -> Value {
        json!({ "model": settings.model, "input": text, "dimensions": DIMENSIONS, "encoding_format": "float" })
    }

    fn embedding(answer: &Value) -> &Value {
        &answer["data"][0]["embedding"]
    }

    fn tokens(answer: &Value) -> &Value {
        &answer["usage"]["prompt_tokens"]
    }
}

/// Parses an error. Some servers put it in `error`, some of these as a text, others directly in the body.
fn fault(body: &Value) -> Fault {
    let error = body.get("error").unwrap_or(body);
    let text = |member: &str| error[member].as_str();
    let kind = text("code").or_else(|| text("type")).unwrap_or_default();
    let remedy = match kind {
        "invalid_api_key" | "authentication_error" => Remedy::Key,
        "insufficient_quota" => Remedy::Time,
        _ if text("type") == Some("invalid_request_error") => Remedy::Request,
        _ => Remedy::ByStatus,
    };
    let message = error.as_str().or_else(|| text("message")).unwrap_or_default();
    Fault { kind: kind.to_owned(), message: message.to_owned(), remedy, retry_after: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_several_servers_are_read() {
        let read = |body: Value| ChatCompletionsApi::fault(body.to_string().as_bytes());
        let message = "Incorrect API key provided: x.";
        let refused = json!({ "error": { "message": message, "type": "invalid_request_error", "code": "invalid_api_key", "param": null } });
        let key =
            Fault { kind: "invalid_api_key".into(), message: message.into(), remedy: Remedy::Key, ..Fault::default() };
        assert_eq!(read(refused), key);
        let quota = json!({ "error": { "message": "m", "type": "insufficient_quota", "code": "insufficient_quota" } });
        assert_eq!(read(quota).remedy, Remedy::Time);
        assert_eq!(read(json!({ "error": "model not found" })).message, "model not found");
        assert_eq!(read(json!({ "object": "error", "message": "too long", "code": 400 })).message, "too long");
        assert_eq!(ChatCompletionsApi::fault(b"<html>"), Fault::default());
    }
}
