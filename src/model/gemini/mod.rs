//! Google's Gemini API.
//!
//! `request` creates the body of a request, and `answer` assembles the events of an answer. A model's thoughts, and
//! members of a part that are not known here such as `thoughtSignature`, are kept and sent back unchanged.

pub mod answer;
mod request;

use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName};
use serde_json::{Value, json};

use self::answer::ContentAnswer;
pub use crate::remote::Settings;
use crate::{
    Error, Request,
    embeddings::{DIMENSIONS, EmbeddingApi, RemoteEmbeddings},
    remote::{Api, Fault, Remedy, Remote},
};

/// The name of the provider in stored blocks.
const PROVIDER: &str = "gemini";

/// The beginning of the ids of calls to which the API gave none.
const OWN_ID: &str = "local-";

/// A model that is called through the Gemini API. The base URL is without the version.
pub type GeminiModel = Remote<GenerateContentApi>;

/// Embeddings by the same API.
pub type GeminiEmbeddings = RemoteEmbeddings<GenerateContentApi>;

/// The Gemini API.
#[derive(Debug)]
pub struct GenerateContentApi;

impl Api for GenerateContentApi {
    type Answer = ContentAnswer;

    fn endpoint(settings: &Settings) -> String {
        settings.at(&format!("{}:streamGenerateContent?alt=sse", path(settings)))
    }

    fn list_endpoint(settings: &Settings) -> String {
        settings.at("/v1beta/models?pageSize=1000")
    }

    fn headers(settings: &Settings) -> Result<HeaderMap, Error> {
        let mut headers = HeaderMap::new();
        headers.extend(settings.key("")?.map(|key| (HeaderName::from_static("x-goog-api-key"), key)));
        Ok(headers)
    }

    fn body(settings: &Settings, request: &Request) -> Result<Value, Error> {
        request::body(&settings.model, request)
    }

    fn fault(body: &[u8]) -> Fault {
        serde_json::from_slice(body).map_or_else(|_| Fault::default(), |body: Value| fault(&body))
    }
}

impl EmbeddingApi for GenerateContentApi {
    fn embedding_endpoint(settings: &Settings) -> String {
        settings.at(&format!("{}:embedContent", path(settings)))
    }

    fn embedding_body(_settings: &Settings, text: &str) -> Value {
        json!({
            "content": { "parts": [{ "text": text }] },
            "taskType": "SEMANTIC_SIMILARITY",
            "outputDimensionality": DIMENSIONS,
        })
    }

    fn embedding(answer: &Value) -> &Value {
        &answer["embedding"]["values"]
    }

    fn tokens(answer: &Value) -> &Value {
        &answer["usageMetadata"]["promptTokenCount"]
    }
}

/// Returns the path of a model. A name with a slash, such as `tunedModels/ours`, is a whole path.
fn path(settings: &Settings) -> String {
    let folder = if settings.model.contains('/') { "" } else { "models/" };
    format!("/v1beta/{folder}{}", settings.model)
}

/// Parses an error, which can be in a list.
fn fault(body: &Value) -> Fault {
    let error = body.get(0).unwrap_or(body).get("error").unwrap_or(&Value::Null);
    let text = |member: &str| error[member].as_str().unwrap_or_default();
    let details = || error["details"].as_array().into_iter().flatten();
    let is_about_key = details().any(|detail| detail["reason"] == "API_KEY_INVALID");
    let violations = details().filter_map(|detail| detail["violations"].as_array()).flatten();
    let mut quotas = violations.filter_map(|violation| violation["quotaId"].as_str());
    let remedy = match text("status") {
        "UNAUTHENTICATED" | "PERMISSION_DENIED" => Remedy::Key,
        _ if is_about_key => Remedy::Key,
        "INVALID_ARGUMENT" | "NOT_FOUND" | "FAILED_PRECONDITION" | "OUT_OF_RANGE" => Remedy::Request,
        "RESOURCE_EXHAUSTED" if quotas.any(|quota| quota.contains("PerDay")) => Remedy::Time,
        _ => Remedy::ByStatus,
    };
    let seconds = details().find_map(|detail| detail["retryDelay"].as_str()?.strip_suffix('s')?.parse::<f64>().ok());
    let retry_after = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    Fault { kind: text("status").to_owned(), message: text("message").to_owned(), remedy, retry_after }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: Value) -> Fault {
        GenerateContentApi::fault(body.to_string().as_bytes())
    }

    #[test]
    fn an_invalid_key_is_told_from_an_invalid_request() {
        let message = "API key not valid. Please pass a valid API key.";
        let key = json!({ "error": { "code": 400, "message": message, "status": "INVALID_ARGUMENT", "details": [
            { "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID", "domain": "googleapis.com" },
        ] } });
        assert_eq!(read(key).remedy, Remedy::Key);
        let request = json!([{ "error": { "code": 400, "message": "Unknown name", "status": "INVALID_ARGUMENT" } }]);
        let fault = Fault {
            kind: "INVALID_ARGUMENT".into(),
            message: "Unknown name".into(),
            remedy: Remedy::Request,
            retry_after: None,
        };
        assert_eq!(read(request), fault);
        assert_eq!(GenerateContentApi::fault(b"<html>"), Fault::default());
    }

    #[test]
    fn a_quota_says_when_to_come_back() {
        let exhausted = |quota: &str| {
            let details = json!([
                { "@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{ "quotaId": quota }] },
                { "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "36.5s" },
            ]);
            let error = json!({ "code": 429, "message": "m", "status": "RESOURCE_EXHAUSTED", "details": details });
            let fault = read(json!({ "error": error }));
            (fault.remedy, fault.retry_after)
        };
        let wait = Some(Duration::from_millis(36_500));
        assert_eq!(exhausted("GenerateRequestsPerMinutePerProjectPerModel"), (Remedy::ByStatus, wait));
        assert_eq!(exhausted("GenerateRequestsPerDayPerProjectPerModel"), (Remedy::Time, wait));
    }
}
