//! The Web API: `/api/<method>` with Slack's tokens, bodies and errors. There is a file for each
//! family of methods.
//!
//! Start at [`entry`], which reads a call, applies the faults of [`super::faults`], and records the
//! call in the ledger. `dispatch` is the table of methods.

mod apps;
mod args;
mod assistant;
mod chat;
mod conversations;
mod dispatch;
pub(super) mod entry;
pub(super) mod files;
mod stream;
mod usergroups;
mod users;
mod views;

use serde_json::{Map, Value, json};

use super::check::Problem;

/// The response to a call: its fields, or a refusal.
pub(super) type Answer = Result<Value, Refusal>;

/// The reason why a call was refused.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Refusal {
    /// Slack's name for the error.
    pub(super) error: String,
    /// Further fields of the response.
    pub(super) more: Map<String, Value>,
}

impl Refusal {
    pub(super) fn of(error: &str) -> Self {
        Self { error: error.to_owned(), more: Map::new() }
    }

    pub(super) fn because(error: &str, reason: &str) -> Self {
        let mut refusal = Self::of(error);
        refusal.more.insert("response_metadata".to_owned(), json!({ "messages": [format!("[ERROR] {reason}")] }));
        refusal.more.insert("errors".to_owned(), json!([reason]));
        refusal
    }

    /// Returns a description of the error in the payload, if the call was refused because of one.
    pub(super) fn fault_of_payload(&self) -> Option<String> {
        const PAYLOAD_ERRORS: [&str; 8] = [
            "invalid_blocks_format",
            "invalid_metadata_format",
            "json_not_object",
            "markdown_text_conflict",
            "missing_scope",
            "msg_too_long",
            "no_text",
            "too_many_attachments",
        ];
        match &self.more.get("errors") {
            Some(reasons) => Some(reasons.to_string()),
            None => PAYLOAD_ERRORS.contains(&self.error.as_str()).then(|| self.body().to_string()),
        }
    }

    pub(super) fn body(&self) -> Value {
        let mut body = self.more.clone();
        body.insert("ok".to_owned(), json!(false));
        body.insert("error".to_owned(), json!(self.error));
        Value::Object(body)
    }
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Self::because(problem.error, &problem.reason)
    }
}
