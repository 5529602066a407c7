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

use reqwest::header::{self, HeaderMap, HeaderName};
use serde_json::{Value, json};
use url::Url;

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
        settings.at("/chat/completions")
    }

    fn list_endpoint(settings: &Settings) -> String {
        settings.at("/models")
    }

    fn headers(settings: &Settings) -> Result<HeaderMap, Error> {
        let mut headers = HeaderMap::new();
        let key = match is_azure(&settings.base_url) {
            true => settings.key("")?.map(|key| (HeaderName::from_static("api-key"), key)),
            false => settings.key("Bearer ")?.map(|key| (header::AUTHORIZATION, key)),
        };
        headers.extend(key);
        Ok(headers)
    }

    fn body(settings: &Settings, request: &Request) -> Result<Value, Error> {
        request::body(&settings.model, is_official(&settings.base_url), request)
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
        settings.at("/embeddings")
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

/// The domains of Azure, where the key has a header of its own.
const AZURE: &[&str] = &["openai.azure.com", "services.ai.azure.com", "cognitiveservices.azure.com"];

/// Returns true if an address is one of Azure's. Its list of models does not contain the names of deployments.
pub fn is_azure(url: &Url) -> bool {
    is_of(url, AZURE)
}

/// Returns true if a server is OpenAI's own or Azure's, which need a key and know the newer members of requests.
pub fn is_official(url: &Url) -> bool {
    is_of(url, &["openai.com"]) || is_azure(url)
}

fn is_of(url: &Url, domains: &[&str]) -> bool {
    let host = url.host_str().unwrap_or_default();
    domains.iter().any(|domain| host.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')))
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
    fn azure_has_its_own_header_and_may_have_the_version_at_the_end() {
        let settings = |url: &str| Settings {
            base_url: url.parse().unwrap(),
            api_key: "k".into(),
            model: "ours".to_owned(),
            timeout: std::time::Duration::from_secs(1),
            attempts: 1,
            extra: serde_json::Map::new(),
            price: None,
        };
        let azure = settings("https://r.openai.azure.com/openai/deployments/ours?api-version=2024-10-21");
        let endpoint = "https://r.openai.azure.com/openai/deployments/ours/chat/completions?api-version=2024-10-21";
        assert_eq!(ChatCompletionsApi::endpoint(&azure), endpoint);
        let names = |settings: &Settings| -> Vec<String> {
            ChatCompletionsApi::headers(settings).unwrap().keys().map(|name| name.as_str().to_owned()).collect()
        };
        assert_eq!(names(&azure), ["api-key"]);
        assert_eq!(names(&settings("https://api.openai.com/v1")), ["authorization"]);
        assert_eq!(names(&settings("https://openai.azure.com.example.org/v1")), ["authorization"]);
        let v1 = settings("https://r.openai.azure.com/openai/v1/");
        assert_eq!(ChatCompletionsApi::endpoint(&v1), "https://r.openai.azure.com/openai/v1/chat/completions");
    }

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
