//! Token counts with prompt caching, as in the API: the prefix up to a cache breakpoint is read from
//! the cache if it was sent before.
//!
//! Four bytes count as one token. Unlike in the API, prefixes have no minimum length and never
//! expire.

use std::collections::HashSet;

use serde_json::{Value, json};

/// The prefixes that were sent before.
#[derive(Debug, Default)]
pub(super) struct Cache(HashSet<String>);

impl Cache {
    /// Returns the API's `usage` for a request, and adds its prefixes to the cache.
    pub(super) fn count(&mut self, body: &Value) -> Value {
        let mut sent = String::new();
        let mut prefixes = Vec::new();
        for part in parts(body) {
            let mut plain = part.clone();
            let breakpoint = plain.as_object_mut().and_then(|block| block.remove("cache_control"));
            sent.push_str(&plain.to_string());
            if breakpoint.is_some() {
                prefixes.push(sent.clone());
            }
        }
        let longest = |prefixes: &mut dyn Iterator<Item = &String>| prefixes.map(String::len).max().unwrap_or(0);
        let read = longest(&mut prefixes.iter().filter(|prefix| self.0.contains(*prefix)));
        let cached = longest(&mut prefixes.iter());
        self.0.extend(prefixes);
        json!({
            "input_tokens": (sent.len() - cached) / 4,
            "cache_creation_input_tokens": (cached - read) / 4,
            "cache_read_input_tokens": read / 4,
            "output_tokens": 1,
        })
    }
}

/// Returns all parts of a request, in the order in which a model reads them. The role of a message
/// precedes its content.
fn parts(body: &Value) -> Vec<Value> {
    let list = |value: &Value| match value {
        Value::Array(parts) => parts.clone(),
        Value::Null => Vec::new(),
        other => vec![other.clone()],
    };
    let mut parts = list(&body["tools"]);
    parts.extend(list(&body["system"]));
    for message in list(&body["messages"]) {
        parts.push(message["role"].clone());
        parts.extend(list(&message["content"]));
    }
    parts
}
