//! The APIs that the stand-in offers.
//!
//! Answers are scripted in the form of the Messages API; the other dialects convert requests and answers.

use axum::http::HeaderMap;
use serde_json::{Value, json};

use super::{
    answer::{self, Envelope},
    check::{self, Refusal},
    completions, content,
    script::{Fault, Scripted},
};

/// The API of a request.
#[derive(Clone, Debug)]
pub(super) enum Dialect {
    /// Anthropic's Messages API.
    Messages,
    /// OpenAI's Chat Completions API.
    Completions,
    /// Google's Gemini API, which has the model and the method in its addresses.
    Content {
        /// The model.
        model: String,
        /// True if the method streams the answer.
        streams: bool,
    },
}

impl Dialect {
    /// Checks a request. `sent` are the parts of answers that must come back unchanged.
    pub(super) fn check(&self, headers: &HeaderMap, key: &str, body: &Value, sent: &[Value]) -> Result<(), Refusal> {
        match self {
            Self::Messages => check::check(headers, key, body, sent),
            Self::Completions => completions::check(headers, key, body, sent),
            Self::Content { .. } => content::check(headers, key, body, sent),
        }
    }

    /// Returns a valid request in the form of the Messages API, in which a schema for the answer becomes the only tool. The
    /// other APIs cache any prefix, without marks, so here every message ends one.
    pub(super) fn question(&self, body: &Value) -> Value {
        let mut question = match self {
            Self::Messages => {
                let mut question = body.clone();
                let schema = &body["output_config"]["format"]["schema"];
                if schema.is_object() {
                    question["tools"] = json!([{ "name": schema["title"], "input_schema": schema }]);
                }
                return question;
            }
            Self::Completions => completions::question(body),
            Self::Content { model, .. } => content::question(model, body),
        };
        let mark = |blocks: &mut Value| {
            if let Some(last) = blocks.as_array_mut().and_then(|blocks| blocks.last_mut()) {
                last["cache_control"] = json!({ "type": "ephemeral" });
            }
        };
        mark(&mut question["tools"]);
        mark(&mut question["system"]);
        for message in question["messages"].as_array_mut().into_iter().flatten() {
            mark(&mut message["content"]);
        }
        question
    }

    /// Returns true if the answer to a request is streamed.
    pub(super) fn streams(&self, body: &Value) -> bool {
        match self {
            Self::Messages | Self::Completions => body["stream"] == true,
            Self::Content { streams, .. } => *streams,
        }
    }

    /// Returns true if a request is for an answer in JSON.
    fn is_json(&self, body: &Value) -> bool {
        match self {
            Self::Messages => body["output_config"]["format"]["type"] == "json_schema",
            Self::Completions => body["response_format"]["type"] == "json_schema",
            Self::Content { .. } => body["generationConfig"]["responseMimeType"] == "application/json",
        }
    }

    /// Returns the parts of an answer that must come back unchanged.
    pub(super) fn kept(&self, envelope: &Envelope, answer: &Scripted, body: &Value) -> Vec<Value> {
        match self {
            Self::Messages => {
                let is_unknown = |block: &&Value| ["text", "tool_use"].iter().all(|kind| block["type"] != *kind);
                answer.content.iter().filter(is_unknown).cloned().collect()
            }
            Self::Completions => completions::unknown_members(answer),
            Self::Content { .. } => content::kept(&content::parts(envelope, answer, self.is_json(body))),
        }
    }

    /// Returns the whole answer.
    pub(super) fn whole(&self, envelope: &Envelope, answer: &Scripted, body: &Value) -> Value {
        match self {
            Self::Messages if self.is_json(body) => answer::whole(envelope, &answer::in_json(answer)),
            Self::Messages => answer::whole(envelope, answer),
            Self::Completions => completions::whole(envelope, answer, self.is_json(body)),
            Self::Content { .. } => content::whole(envelope, answer, self.is_json(body)),
        }
    }

    /// Returns the events of the answer in the form in which they are sent.
    pub(super) fn events(
        &self,
        envelope: &Envelope,
        answer: &Scripted,
        body: &Value,
        fault: Option<&Fault>,
    ) -> Vec<String> {
        let is_json = self.is_json(body);
        let events = match self {
            Self::Messages => {
                let in_json = is_json.then(|| answer::in_json(answer));
                let events = answer::events(envelope, in_json.as_ref().unwrap_or(answer), fault);
                return events.iter().map(answer::frame).collect();
            }
            Self::Completions => completions::events(envelope, answer, is_json, fault),
            Self::Content { .. } => content::events(envelope, answer, is_json),
        };
        events.iter().map(|event| answer::frame_of(event)).collect()
    }

    /// Returns the event of an error in the middle of an answer.
    pub(super) fn break_off(&self, kind: &str) -> Value {
        let message = "The sandbox breaks off.";
        match self {
            Self::Messages => json!({ "type": "error", "error": { "type": kind, "message": message } }),
            Self::Completions => json!({ "error": { "message": message, "type": kind, "code": null } }),
            Self::Content { .. } => json!({ "error": { "code": 500, "message": message, "status": kind } }),
        }
    }

    /// Returns the status and the body of an error. Only Anthropic has a status of its own for being overloaded.
    pub(super) fn error(&self, status: u16, message: &str, request_id: &str) -> (u16, Value) {
        let common = if status == 529 { 503 } else { status };
        match self {
            Self::Messages => {
                let kind = match status {
                    400 => "invalid_request_error",
                    401 => "authentication_error",
                    403 => "permission_error",
                    404 => "not_found_error",
                    413 => "request_too_large",
                    429 => "rate_limit_error",
                    529 => "overloaded_error",
                    _ => "api_error",
                };
                let error = json!({ "type": kind, "message": message });
                (status, json!({ "type": "error", "error": error, "request_id": request_id }))
            }
            Self::Completions => (common, completions::error(common, message)),
            Self::Content { .. } => content::error(common, message),
        }
    }
}
