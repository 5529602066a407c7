//! Assembles an answer from streamed events.
//!
//! Unknown kinds of events, deltas and blocks are kept where possible and otherwise skipped.

use std::{borrow::Cow, collections::BTreeMap};

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{
    Block, Response, Usage,
    remote::{Assembly, Broken, Fault, Remedy, parsed_arguments},
};

/// An answer that is being received.
#[derive(Debug, Default)]
pub struct ApiAnswer {
    model: String,
    pieces: BTreeMap<u64, PartialBlock>,
    stop_reason: Option<String>,
    tokens: Tokens,
}

/// A block that is being received.
#[derive(Debug, Default)]
struct PartialBlock {
    block: Map<String, Value>,
    /// The arguments of a tool call, as JSON.
    arguments: String,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event {
    MessageStart {
        message: Start,
    },
    ContentBlockStart {
        index: u64,
        content_block: Map<String, Value>,
    },
    ContentBlockDelta {
        index: u64,
        delta: Value,
    },
    MessageDelta {
        delta: End,
        #[serde(default)]
        usage: Tokens,
    },
    MessageStop,
    Error {
        error: ApiFault,
    },
    /// `ping`, `content_block_stop`, and kinds not yet known.
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Start {
    #[serde(default)]
    model: String,
    #[serde(default)]
    usage: Tokens,
}

#[derive(Deserialize)]
struct End {
    #[serde(default)]
    stop_reason: Option<String>,
}

/// An error in the format of the API.
#[derive(Debug, Deserialize)]
pub(super) struct ApiFault {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    message: String,
}

impl From<ApiFault> for Fault {
    fn from(ApiFault { kind, message }: ApiFault) -> Self {
        let remedy = match kind.as_str() {
            "authentication_error" | "permission_error" => Remedy::Key,
            "invalid_request_error" | "not_found_error" | "request_too_large" | "billing_error" => Remedy::Request,
            _ => Remedy::ByStatus,
        };
        Self { kind, message, remedy, retry_after: None }
    }
}

/// The numbers of tokens so far. Later numbers replace earlier ones.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
struct Tokens {
    input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    output_tokens: Option<u64>,
}

impl Tokens {
    fn merge(self, later: Self) -> Self {
        Self {
            input_tokens: later.input_tokens.or(self.input_tokens),
            cache_creation_input_tokens: later.cache_creation_input_tokens.or(self.cache_creation_input_tokens),
            cache_read_input_tokens: later.cache_read_input_tokens.or(self.cache_read_input_tokens),
            output_tokens: later.output_tokens.or(self.output_tokens),
        }
    }
}

impl Assembly for ApiAnswer {
    fn take_event(&mut self, event: &str) -> Result<bool, Broken> {
        match serde_json::from_str(event).map_err(|error| Broken::of_json(&error))? {
            Event::MessageStart { message } => {
                self.model = message.model;
                self.tokens = self.tokens.merge(message.usage);
            }
            Event::ContentBlockStart { index, content_block } => {
                self.pieces.insert(index, PartialBlock { block: content_block, arguments: String::new() });
            }
            Event::ContentBlockDelta { index, delta } => {
                let unknown = || Broken::Unreadable(format!("block {index} goes on before it begins"));
                self.pieces.get_mut(&index).ok_or_else(unknown)?.add(delta);
            }
            Event::MessageDelta { delta, usage } => {
                self.stop_reason = delta.stop_reason.or(self.stop_reason.take());
                self.tokens = self.tokens.merge(usage);
            }
            Event::MessageStop => return Ok(true),
            Event::Error { error } => return Err(Broken::Reported(error.into())),
            Event::Other => {}
        }
        Ok(false)
    }

    fn text(&self) -> Cow<'_, str> {
        let texts = self.pieces.values().filter(|piece| piece.block.get("type").is_some_and(|kind| kind == "text"));
        let texts: Vec<_> = texts.filter_map(|piece| piece.block.get("text")?.as_str()).collect();
        texts.join("\n").into()
    }

    fn finish(self) -> Result<Response, Broken> {
        let Self { model, pieces, stop_reason, tokens } = self;
        let stop_reason = stop_reason.ok_or_else(Broken::without_reason)?;
        let content = pieces.into_values().map(PartialBlock::finish).collect();
        let count = |tokens: Option<u64>| tokens.unwrap_or_default();
        let usage = Usage {
            model,
            input_tokens: count(tokens.input_tokens) + count(tokens.cache_creation_input_tokens),
            cached_tokens: count(tokens.cache_read_input_tokens),
            output_tokens: count(tokens.output_tokens),
            nano_usd: None,
        };
        Ok(Response { content, stop_reason, usage })
    }
}

impl PartialBlock {
    fn add(&mut self, delta: Value) {
        let text = |member: &str| delta[member].as_str().unwrap_or_default();
        match delta["type"].as_str().unwrap_or_default() {
            "text_delta" => self.append("text", text("text")),
            "input_json_delta" => self.arguments.push_str(text("partial_json")),
            "thinking_delta" => self.append("thinking", text("thinking")),
            "signature_delta" => self.append("signature", text("signature")),
            "citations_delta" => match self.block.entry("citations").or_insert(Value::Null) {
                Value::Array(citations) => citations.push(delta["citation"].clone()),
                none => *none = json!([delta["citation"]]),
            },
            _ => {}
        }
    }

    fn append(&mut self, member: &str, more: &str) {
        match self.block.entry(member).or_insert(Value::Null) {
            Value::String(text) => text.push_str(more),
            none => *none = Value::from(more),
        }
    }

    fn finish(mut self) -> Block {
        if let Some(input) = parsed_arguments(&self.arguments) {
            self.block.insert("input".to_owned(), input);
        }
        let block = Value::Object(self.block);
        serde_json::from_value(block.clone()).unwrap_or(Block::Other(block))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KnownBlock;

    fn assemble(events: &[Value]) -> Result<Response, Broken> {
        let mut answer = ApiAnswer::default();
        for event in events {
            if answer.take_event(&event.to_string())? {
                return answer.finish();
            }
        }
        panic!("no event was the last");
    }

    fn block(index: u64, start: Value, deltas: &[Value]) -> Vec<Value> {
        let mut events = vec![json!({ "type": "content_block_start", "index": index, "content_block": start })];
        events.extend(
            deltas.iter().map(|delta| json!({ "type": "content_block_delta", "index": index, "delta": delta })),
        );
        events.push(json!({ "type": "content_block_stop", "index": index }));
        events
    }

    fn whole(blocks: Vec<Vec<Value>>) -> Vec<Value> {
        let usage = json!({
            "input_tokens": 7, "cache_creation_input_tokens": 30, "cache_read_input_tokens": 500, "output_tokens": 1,
        });
        let mut events = vec![
            json!({ "type": "message_start", "message": { "model": "m-1", "content": [], "usage": usage } }),
            json!({ "type": "ping" }),
            json!({ "type": "weather", "sky": "blue" }),
        ];
        events.extend(blocks.into_iter().flatten());
        events.push(json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use", "stop_sequence": null }, "usage": { "output_tokens": 42 } }));
        events.push(json!({ "type": "message_stop" }));
        events
    }

    fn arguments(pieces: &[&str]) -> Value {
        let deltas: Vec<_> =
            pieces.iter().map(|piece| json!({ "type": "input_json_delta", "partial_json": piece })).collect();
        let start = json!({ "type": "tool_use", "id": "a", "name": "look", "input": {} });
        let response = assemble(&whole(vec![block(0, start, &deltas)])).unwrap();
        response.tool_calls().next().unwrap().2.clone()
    }

    #[test]
    fn deltas_become_an_answer() {
        let text = [json!({ "type": "text_delta", "text": "I " }), json!({ "type": "text_delta", "text": "look." })];
        let response = assemble(&whole(vec![
            block(0, json!({ "type": "text", "text": "" }), &text),
            block(1, json!({ "type": "tool_use", "id": "a", "name": "look", "input": {} }), &[]),
        ]))
        .unwrap();
        assert_eq!(response.text(), "I look.");
        assert_eq!(response.tool_calls().collect::<Vec<_>>(), [("a", "look", &json!({}))]);
        assert_eq!(response.stop_reason, "tool_use");
        let usage =
            Usage { model: "m-1".into(), input_tokens: 37, cached_tokens: 500, output_tokens: 42, nano_usd: None };
        assert_eq!(response.usage, usage);
    }

    #[test]
    fn arguments_come_in_pieces_or_not_at_all() {
        assert_eq!(arguments(&["", "{\"at\": \"the", " sky\"}"]), json!({ "at": "the sky" }));
        assert_eq!(arguments(&[]), json!({}));
        assert_eq!(arguments(&[""]), json!({}));
    }

    #[test]
    fn arguments_that_are_no_json_become_a_string() {
        assert_eq!(arguments(&["{\"at\": "]), json!("{\"at\": "));
        assert_eq!(arguments(&["x".repeat(5_000).as_str()]).as_str().unwrap().len(), 300);
    }

    #[test]
    fn blocks_of_other_kinds_are_kept_unchanged() {
        let odd = json!({ "type": "musing", "depth": [1, { "of": null }] });
        let strange = json!({ "type": "riddle_delta", "riddle": "?" });
        let thought = [
            json!({ "type": "thinking_delta", "thinking": "hm" }),
            json!({ "type": "signature_delta", "signature": "s1" }),
        ];
        let response = assemble(&whole(vec![
            block(0, odd.clone(), &[strange]),
            block(1, json!({ "type": "thinking", "thinking": "", "signature": "" }), &thought),
            block(2, json!({ "type": "text", "text": "so" }), &[]),
        ]))
        .unwrap();
        let expected = [
            Block::Other(odd),
            Block::Other(json!({ "type": "thinking", "thinking": "hm", "signature": "s1" })),
            KnownBlock::Text { text: "so".into() }.into(),
        ];
        assert_eq!(response.content, expected);
    }

    #[test]
    fn a_reported_error_ends_the_answer() {
        let error = json!({ "type": "error", "error": { "type": "overloaded_error", "message": "Overloaded" } });
        let fault = Fault { kind: "overloaded_error".into(), message: "Overloaded".into(), ..Fault::default() };
        assert_eq!(assemble(&[error]), Err(Broken::Reported(fault)));
    }

    #[test]
    fn invalid_events_are_reported_and_not_quoted() {
        let mut answer = ApiAnswer::default();
        assert_eq!(answer.take_event("<html>"), Err(Broken::Unreadable("an event isn't JSON".into())));
        let early =
            json!({ "type": "content_block_delta", "index": 3, "delta": { "type": "text_delta", "text": "!" } });
        assert!(matches!(answer.take_event(&early.to_string()), Err(Broken::Unreadable(_))));
        assert!(matches!(assemble(&[json!({ "type": "message_stop" })]), Err(Broken::Unreadable(_))));
    }
}
