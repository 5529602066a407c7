//! The arguments of a call, from JSON, a form or the query. In the latter two, structured arguments
//! are JSON in a string.

use std::collections::BTreeMap;

use axum::http::{HeaderMap, header};
use countersign_core::ids::{MessageTs, UserId};
use serde_json::{Map, Value};

use super::Refusal;

/// The arguments by name.
#[derive(Clone, Debug, Default)]
pub(super) struct Args(Map<String, Value>);

impl Args {
    pub(super) fn read(headers: &HeaderMap, query: BTreeMap<String, String>, body: &[u8]) -> Result<Self, Refusal> {
        let mut args: Map<String, Value> = query.into_iter().map(|(key, value)| (key, Value::String(value))).collect();
        let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if body.is_empty() {
            return Ok(Self(args));
        }
        if kind.starts_with("application/json") {
            match serde_json::from_slice(body) {
                Ok(Value::Object(object)) => args.extend(object),
                Ok(Value::Null) => {}
                Ok(_) => return Err(Refusal::of("json_not_object")),
                Err(_) => return Err(Refusal::of("invalid_json")),
            }
        } else {
            let pairs = url::form_urlencoded::parse(body);
            args.extend(pairs.map(|(key, value)| (key.into_owned(), Value::String(value.into_owned()))));
        }
        args.retain(|_, value| !value.is_null());
        Ok(Self(args))
    }

    /// Removes and returns the token, so that it is never recorded.
    pub(super) fn take_token(&mut self) -> Option<String> {
        self.0.remove("token").and_then(|token| token.as_str().map(str::to_owned))
    }

    /// Returns the arguments in the format of the ledger.
    pub(super) fn recorded(&self) -> Value {
        Value::Object(self.0.iter().map(|(key, value)| (key.clone(), structured(value))).collect())
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub(super) fn text(&self, name: &str) -> Option<String> {
        match self.0.get(name)? {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            Value::Bool(flag) => Some(flag.to_string()),
            _ => None,
        }
    }

    pub(super) fn flag(&self, name: &str) -> bool {
        matches!(self.text(name).as_deref(), Some("true" | "1"))
    }

    pub(super) fn number(&self, name: &str) -> Option<usize> {
        self.text(name)?.parse().ok()
    }

    pub(super) fn json(&self, name: &str) -> Option<Value> {
        self.0.get(name).map(structured)
    }

    pub(super) fn required(&self, name: &str) -> Result<String, Refusal> {
        let text = self.text(name).filter(|text| !text.is_empty());
        text.ok_or_else(|| Refusal::because("invalid_arguments", &format!("missing required field: {name}")))
    }

    pub(super) fn ts(&self, name: &str) -> Result<MessageTs, Refusal> {
        self.required(name).map(MessageTs::new)
    }

    pub(super) fn user(&self, name: &str) -> Result<UserId, Refusal> {
        self.required(name).map(UserId::new)
    }
}

/// Returns an argument, parsed if it is JSON in a string.
fn structured(value: &Value) -> Value {
    match value.as_str() {
        Some(text) if text.starts_with(['{', '[']) => serde_json::from_str(text).unwrap_or_else(|_| value.clone()),
        _ => value.clone(),
    }
}
