//! Anthropic's Messages API.
//!
//! `request` creates the body of a request, and `answer` assembles the events of an answer.
//!
//! Using a library for the API was rejected as a design: most of the work is to store the conversation and to send it
//! back unchanged, including blocks of unknown kinds.

pub mod answer;
mod request;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::{Value, json};

use self::answer::{ApiAnswer, ApiFault};
pub use crate::remote::Settings;
use crate::{
    Error, KnownBlock, Request, Response,
    remote::{Api, Fault, Remote},
};

/// The version of the API.
const VERSION: &str = "2023-06-01";

/// A model that is called through the Messages API. The base URL is without `/v1`.
pub type AnthropicModel = Remote<MessagesApi>;

/// The Messages API.
#[derive(Debug)]
pub struct MessagesApi;

impl Api for MessagesApi {
    type Answer = ApiAnswer;

    fn endpoint(settings: &Settings) -> String {
        settings.at("/v1/messages")
    }

    fn list_endpoint(settings: &Settings) -> String {
        settings.at("/v1/models?limit=1000")
    }

    fn headers(settings: &Settings) -> Result<HeaderMap, Error> {
        let mut headers = HeaderMap::new();
        headers.insert("anthropic-version", HeaderValue::from_static(VERSION));
        headers.extend(settings.key("")?.map(|key| (HeaderName::from_static("x-api-key"), key)));
        Ok(headers)
    }

    fn body(settings: &Settings, request: &Request) -> Result<Value, Error> {
        Ok(json!(request::body(&settings.model, request)?))
    }

    fn fault(body: &[u8]) -> Fault {
        #[derive(Deserialize)]
        struct Refusal {
            error: ApiFault,
        }
        serde_json::from_slice(body).map_or_else(|_| Fault::default(), |Refusal { error }| error.into())
    }

    /// A model without structured output is asked for an answer in JSON as the arguments of a tool, which become the text.
    fn converted(request: &Request, mut response: Response) -> Response {
        let Some(schema) = &request.answer_schema else { return response };
        let answer = response.tool_calls().find(|(_, name, _)| *name == schema.name);
        if let Some(text) = answer.map(|(_, _, input)| input.to_string()) {
            // A model that cannot be forced to call the tool may say something before.
            response.content = vec![KnownBlock::Text { text }.into()];
            "end_turn".clone_into(&mut response.stop_reason);
        }
        response
    }
}
