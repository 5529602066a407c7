//! Counts tokens as the API does: parts before a mark that were seen before are read from the cache.
//!
//! A token is four bytes here, and nothing is too short to be cached or too old to be found.

use std::collections::HashSet;

use serde_json::{Value, json};

/// Prefixes that were sent before.
#[derive(Debug, Default)]
pub(super) struct Cache(HashSet<String>);

impl Cache {
    /// Returns the usage of the question, as the API's `usage`; remembers its marked prefixes.
    pub(super) fn count(&mut self, body: &Value) -> Value {
        let mut sent = String::new();
        let mut marked = Vec::new();
        for part in parts(body) {
            let mut plain = part.clone();
            let mark = plain.as_object_mut().and_then(|block| block.remove("cache_control"));
            sent.push_str(&plain.to_string());
            if mark.is_some() {
                marked.push(sent.clone());
            }
        }
        let longest = |prefixes: &mut dyn Iterator<Item = &String>| prefixes.map(String::len).max().unwrap_or(0);
        let read = longest(&mut marked.iter().filter(|prefix| self.0.contains(*prefix)));
        let kept = longest(&mut marked.iter());
        self.0.extend(marked);
        json!({
            "input_tokens": (sent.len() - kept) / 4,
            "cache_creation_input_tokens": (kept - read) / 4,
            "cache_read_input_tokens": read / 4,
            "output_tokens": 1,
        })
    }
}

/// Returns all parts of a question in the order in which a model reads them; the speaker stands before the words.
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
