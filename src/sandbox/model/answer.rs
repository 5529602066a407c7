//! The serialization of a scripted answer: whole, or as the events of a stream.
//!
//! The stream is sent in chunks that may end anywhere, even within a character, as on a real
//! connection.

use axum::body::Bytes;
use serde_json::{Value, json};

use super::script::{Fault, Scripted};

/// The length of a delta, in characters.
const DELTA_LENGTH: usize = 9;
/// The size of a chunk of the stream, in bytes.
const CHUNK_SIZE: usize = 101;

/// The id and the usage of an answer.
#[derive(Debug)]
pub(super) struct Envelope {
    /// The id, `msg_…`.
    pub(super) id: String,
    /// The model, as the request named it.
    pub(super) model: String,
    /// The usage of the request.
    pub(super) usage: Value,
}

/// Returns the answer with its calls as text: the answer in JSON that was requested.
pub(super) fn in_json(answer: &Scripted) -> Scripted {
    let is_call = |block: &Value| block["type"] == "tool_use";
    let as_text = |block: &Value| match is_call(block) {
        true => json!({ "type": "text", "text": block["input"].to_string() }),
        false => block.clone(),
    };
    let stop_reason = if answer.content.iter().any(is_call) { "end_turn" } else { &answer.stop_reason };
    Scripted { content: answer.content.iter().map(as_text).collect(), stop_reason: stop_reason.to_owned() }
}

/// Returns the whole answer.
pub(super) fn whole(envelope: &Envelope, answer: &Scripted) -> Value {
    let mut message = start(envelope);
    message["content"] = json!(answer.content);
    message["stop_reason"] = json!(answer.stop_reason);
    message["usage"]["output_tokens"] = json!(output_tokens(answer));
    message
}

/// Returns the answer as the events of a stream.
pub(super) fn events(envelope: &Envelope, answer: &Scripted, fault: Option<&Fault>) -> Vec<Value> {
    let mut events = vec![json!({ "type": "message_start", "message": start(envelope) })];
    for (index, block) in answer.content.iter().enumerate() {
        events.extend(block_events(index, block, fault == Some(&Fault::BadJson)));
        if index == 0 {
            events.insert(2, json!({ "type": "ping" }));
        }
    }
    events.push(json!({
        "type": "message_delta",
        "delta": { "stop_reason": answer.stop_reason, "stop_sequence": null },
        "usage": { "output_tokens": output_tokens(answer) },
    }));
    events.push(json!({ "type": "message_stop" }));
    events
}

/// Returns the events as chunks of a stream. Most faults end it prematurely; `error` is the last event if the answer
/// breaks off.
pub(super) fn chunks(mut events: Vec<String>, fault: Option<&Fault>, error: &Value) -> Vec<Bytes> {
    let half = events.len() / 2;
    match fault {
        Some(Fault::BreakOff { .. }) => {
            events.truncate(half);
            events.push(frame(error));
        }
        Some(Fault::Stall | Fault::Cut) => events.truncate(half),
        _ => {}
    }
    events.concat().as_bytes().chunks(CHUNK_SIZE).map(Bytes::copy_from_slice).collect()
}

/// Returns an event in the form in which it is sent. Only the Messages API names the types of its events.
pub(super) fn frame(event: &Value) -> String {
    match event["type"].as_str() {
        Some(kind) => format!("event: {kind}\ndata: {event}\n\n"),
        None => frame_of(&event.to_string()),
    }
}

/// Returns the data of an event in the form in which it is sent.
pub(super) fn frame_of(data: &str) -> String {
    format!("data: {data}\n\n")
}

fn start(envelope: &Envelope) -> Value {
    json!({
        "id": envelope.id,
        "type": "message",
        "role": "assistant",
        "model": envelope.model,
        "content": [],
        "stop_reason": null,
        "stop_sequence": null,
        "usage": envelope.usage,
    })
}

fn block_events(index: usize, block: &Value, bad_json: bool) -> Vec<Value> {
    let mut begin = block.clone();
    let deltas: Vec<Value> = match block["type"].as_str() {
        Some("text") => {
            let text = begin["text"].take();
            begin["text"] = json!("");
            let delta = |piece: String| json!({ "type": "text_delta", "text": piece });
            split(text.as_str().unwrap_or_default()).into_iter().map(delta).collect()
        }
        Some("tool_use") => {
            let mut arguments = begin["input"].take().to_string();
            begin["input"] = json!({});
            if bad_json {
                arguments.pop();
            }
            let delta = |piece: String| json!({ "type": "input_json_delta", "partial_json": piece });
            std::iter::once(String::new()).chain(split(&arguments)).map(delta).collect()
        }
        _ => Vec::new(),
    };
    let mut events = vec![json!({ "type": "content_block_start", "index": index, "content_block": begin })];
    events.extend(
        deltas.into_iter().map(|delta| json!({ "type": "content_block_delta", "index": index, "delta": delta })),
    );
    events.push(json!({ "type": "content_block_stop", "index": index }));
    events
}

/// Divides a text into deltas.
pub(super) fn split(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    characters.chunks(DELTA_LENGTH).map(|piece| piece.iter().collect()).collect()
}

/// Returns the number of tokens of an answer.
pub(super) fn output_tokens(answer: &Scripted) -> usize {
    json!(answer.content).to_string().len().div_ceil(4)
}
