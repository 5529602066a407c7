//! Assembles an answer from streamed events.
//!
//! Members of a message or of a call that are not known here are kept: texts are joined, lists extended.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{PROVIDER, fault};
use crate::{
    Block, KnownBlock, Response, Usage,
    conversation::provider_data,
    remote::{Assembly, Broken, parsed_arguments},
};

/// An answer that is being received.
#[derive(Debug, Default)]
pub struct CompletionAnswer {
    id: String,
    model: String,
    text: String,
    refusal: String,
    members: Map<String, Value>,
    calls: Vec<PartialCall>,
    finish_reason: Option<String>,
    usage: Tokens,
}

/// A tool call that is being received.
#[derive(Debug, Default)]
struct PartialCall {
    index: u64,
    id: String,
    name: String,
    arguments: String,
    members: Map<String, Value>,
}

/// One event of the stream.
#[derive(Deserialize)]
struct Chunk {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    choices: Option<Vec<Choice>>,
    #[serde(default)]
    usage: Option<Tokens>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    delta: Option<Map<String, Value>>,
    /// The whole message, in an answer that is not streamed.
    #[serde(default)]
    message: Option<Map<String, Value>>,
    #[serde(default)]
    finish_reason: Option<String>,
}

/// The numbers of tokens.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
struct Tokens {
    #[serde(default)]
    prompt_tokens: u64,
    #[serde(default)]
    completion_tokens: u64,
    #[serde(default)]
    prompt_tokens_details: Option<PromptTokens>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
struct PromptTokens {
    #[serde(default)]
    cached_tokens: Option<u64>,
}

impl Assembly for CompletionAnswer {
    fn take_event(&mut self, event: &str) -> Result<bool, Broken> {
        if event.trim() == "[DONE]" {
            return Ok(true);
        }
        let event: Value = serde_json::from_str(event).map_err(|error| Broken::of_json(&error))?;
        if event.get("error").is_some_and(|error| !error.is_null()) {
            return Err(Broken::Reported(fault(&event)));
        }
        let Chunk { id, model, choices, usage } =
            serde_json::from_value(event).map_err(|error| Broken::of_json(&error))?;
        self.id = id.unwrap_or_else(|| std::mem::take(&mut self.id));
        self.model = model.unwrap_or_else(|| std::mem::take(&mut self.model));
        self.usage = usage.unwrap_or(self.usage);
        for Choice { delta, message, finish_reason } in choices.into_iter().flatten().take(1) {
            delta.or(message).into_iter().flatten().for_each(|(member, value)| self.add(member, value));
            self.finish_reason = finish_reason.filter(|reason| !reason.is_empty()).or(self.finish_reason.take());
        }
        Ok(false)
    }

    fn text(&self) -> Cow<'_, str> {
        (&*self.text).into()
    }

    fn is_complete(&self) -> bool {
        self.finish_reason.is_some()
    }

    fn finish(self) -> Result<Response, Broken> {
        let Self { id: answer, model, text, refusal, members, calls, finish_reason, usage } = self;
        let is_empty = text.is_empty() && refusal.is_empty() && calls.is_empty();
        // Some servers give no reason at all.
        let reason = finish_reason.or_else(|| (!is_empty).then(|| "stop".to_owned()));
        let reason = reason.ok_or_else(Broken::without_reason)?;
        let stop_reason = match reason.as_str() {
            _ if !refusal.is_empty() => "refusal",
            "stop" | "tool_calls" | "function_call" if !calls.is_empty() => "tool_use",
            "stop" => "end_turn",
            "length" => "max_tokens",
            "content_filter" => "refusal",
            other => other,
        };
        let mut content = Vec::new();
        if !members.is_empty() {
            content.push(provider_data(PROVIDER, "message", members.into()));
        }
        let texts = [text, refusal].into_iter().filter(|text| !text.is_empty());
        content.extend(texts.map(|text| Block::from(KnownBlock::Text { text })));
        for (n, PartialCall { id, name, arguments, members, .. }) in calls.into_iter().enumerate() {
            let id = if id.is_empty() { format!("call-{answer}-{n}") } else { id };
            let input = parsed_arguments(&arguments).unwrap_or_else(|| json!({}));
            content.push(KnownBlock::ToolUse { id, name, input }.into());
            if !members.is_empty() {
                content.push(provider_data(PROVIDER, "call", members.into()));
            }
        }
        let cached_tokens = usage.prompt_tokens_details.and_then(|details| details.cached_tokens).unwrap_or_default();
        let usage = Usage {
            model,
            input_tokens: usage.prompt_tokens.saturating_sub(cached_tokens),
            cached_tokens,
            output_tokens: usage.completion_tokens,
            nano_usd: None,
        };
        Ok(Response { content, stop_reason: stop_reason.to_owned(), usage })
    }
}

impl CompletionAnswer {
    /// Adds a member of a delta.
    fn add(&mut self, member: String, value: Value) {
        match (member.as_str(), value) {
            ("role" | "function_call", _) | (_, Value::Null) => {}
            ("content", Value::String(more)) => self.text.push_str(&more),
            ("refusal", Value::String(more)) => self.refusal.push_str(&more),
            ("tool_calls", Value::Array(calls)) => (0..).zip(calls).for_each(|(n, call)| self.add_to_call(n, call)),
            (_, value) => merge(&mut self.members, member, value),
        }
    }

    /// Adds part `n` of the calls in a message. Some servers send no index, and some send whole calls with the same index.
    fn add_to_call(&mut self, n: u64, part: Value) {
        let Value::Object(part) = part else { return };
        let index = part.get("index").and_then(Value::as_u64).unwrap_or(n);
        let id = part.get("id").and_then(Value::as_str).filter(|id| !id.is_empty());
        let is_same = |call: &PartialCall| match id {
            Some(id) if !call.id.is_empty() => call.id == id,
            _ => call.index == index,
        };
        let at = self.calls.iter().rposition(is_same).unwrap_or_else(|| {
            self.calls.push(PartialCall { index, ..PartialCall::default() });
            self.calls.len() - 1
        });
        let call = &mut self.calls[at];
        for (member, value) in part {
            match (member.as_str(), value) {
                ("index" | "type", _) | (_, Value::Null) => {}
                ("id", Value::String(id)) => call.id = id,
                ("function", function) => {
                    let text = |member: &str| function[member].as_str().unwrap_or_default();
                    call.name.push_str(text("name"));
                    match &function["arguments"] {
                        Value::String(more) => call.arguments.push_str(more),
                        Value::Null => {}
                        whole => call.arguments = whole.to_string(),
                    }
                }
                (_, value) => merge(&mut call.members, member, value),
            }
        }
    }
}

/// Adds a part of a member that is not known here.
fn merge(members: &mut Map<String, Value>, member: String, more: Value) {
    match (members.get_mut(&member), more) {
        (Some(Value::String(text)), Value::String(more)) => text.push_str(&more),
        (Some(Value::Array(list)), Value::Array(more)) => list.extend(more),
        (_, more) => {
            members.insert(member, more);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::Fault;

    fn assemble(events: &[Value]) -> Result<Response, Broken> {
        let mut answer = CompletionAnswer::default();
        for event in events {
            answer.take_event(&event.to_string())?;
        }
        assert_eq!(answer.take_event("[DONE]"), Ok(true));
        answer.finish()
    }

    fn chunk(delta: Value, finish_reason: Option<&str>) -> Value {
        json!({
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "m-1",
            "system_fingerprint": null,
            "choices": [{ "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish_reason }],
            "usage": null,
        })
    }

    /// The last event, with the usage.
    fn usage() -> Value {
        json!({ "id": "chatcmpl-1", "model": "m-1", "choices": [], "usage": {
            "prompt_tokens": 537, "completion_tokens": 42, "total_tokens": 579,
            "prompt_tokens_details": { "cached_tokens": 500, "audio_tokens": 0 },
        } })
    }

    fn part(index: u64, id: Option<&str>, name: Option<&str>, arguments: &str) -> Value {
        json!({ "tool_calls": [{ "index": index, "id": id, "type": "function", "function": { "name": name, "arguments": arguments } }] })
    }

    #[test]
    fn deltas_become_an_answer() {
        let response = assemble(&[
            chunk(json!({ "role": "assistant", "content": "", "refusal": null }), None),
            chunk(json!({ "content": "I " }), None),
            chunk(json!({ "content": "look." }), None),
            chunk(part(0, Some("a"), Some("look"), ""), None),
            chunk(part(0, None, None, "{\"at\": \"the"), None),
            chunk(part(0, None, None, " sky\"}"), None),
            chunk(part(1, Some("b"), Some("listen"), "{}"), None),
            chunk(json!({}), Some("tool_calls")),
            usage(),
        ])
        .unwrap();
        assert_eq!(response.text(), "I look.");
        let calls: Vec<_> = response.tool_calls().collect();
        assert_eq!(calls, [("a", "look", &json!({ "at": "the sky" })), ("b", "listen", &json!({}))]);
        assert_eq!(response.stop_reason, "tool_use");
        let usage =
            Usage { model: "m-1".into(), input_tokens: 37, cached_tokens: 500, output_tokens: 42, nano_usd: None };
        assert_eq!(response.usage, usage);
    }

    #[test]
    fn calls_of_less_exact_servers_are_told_apart() {
        let whole = |id: &str| json!({ "tool_calls": [{ "index": 0, "id": id, "function": { "name": "look", "arguments": { "at": id } } }] });
        let response = assemble(&[chunk(whole("a"), None), chunk(whole("b"), Some("stop"))]).unwrap();
        assert_eq!(response.tool_calls().map(|(id, ..)| id).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(response.stop_reason, "tool_use");
        let nameless = json!({ "tool_calls": [{ "function": { "name": "look", "arguments": "{\"at\":" } }] });
        let response = assemble(&[chunk(nameless, Some("tool_calls"))]).unwrap();
        assert_eq!(response.tool_calls().collect::<Vec<_>>(), [("call-chatcmpl-1-0", "look", &json!("{\"at\":"))]);
    }

    #[test]
    fn a_stream_may_give_no_reason_for_its_end() {
        let said = assemble(&[chunk(json!({ "content": "Blue." }), None), chunk(json!({}), Some(""))]).unwrap();
        assert_eq!((said.text().as_str(), said.stop_reason.as_str()), ("Blue.", "end_turn"));
        let called = assemble(&[chunk(part(0, Some("a"), Some("look"), "{}"), None)]).unwrap();
        assert_eq!(called.stop_reason, "tool_use");
    }

    #[test]
    fn a_whole_message_is_read() {
        let call = |name: &str| json!({ "function": { "name": name, "arguments": "{}" } });
        let message = json!({ "role": "assistant", "content": null, "tool_calls": [call("look"), call("listen")] });
        let mut answer = CompletionAnswer::default();
        let body =
            json!({ "id": "1", "model": "m-1", "choices": [{ "message": message, "finish_reason": "tool_calls" }] });
        assert_eq!(answer.take_event(&body.to_string()), Ok(false));
        let response = answer.finish().unwrap();
        let calls: Vec<_> = response.tool_calls().map(|(id, name, _)| (id, name)).collect();
        assert_eq!(calls, [("call-1-0", "look"), ("call-1-1", "listen")]);
    }

    #[test]
    fn what_is_not_known_is_kept() {
        let mut call = part(0, Some("a"), Some("look"), "{}");
        call["tool_calls"][0]["extra_content"] = json!({ "signature": "s" });
        let response = assemble(&[
            chunk(json!({ "reasoning_content": "h", "details": [1] }), None),
            chunk(json!({ "reasoning_content": "m", "details": [2] }), None),
            chunk(call, Some("tool_calls")),
        ])
        .unwrap();
        let expected = [
            provider_data("openai", "message", json!({ "reasoning_content": "hm", "details": [1, 2] })),
            KnownBlock::ToolUse { id: "a".into(), name: "look".into(), input: json!({}) }.into(),
            provider_data("openai", "call", json!({ "extra_content": { "signature": "s" } })),
        ];
        assert_eq!(response.content, expected);
    }

    #[test]
    fn reasons_to_stop_are_translated_and_open() {
        let reason = |reason: &str| assemble(&[chunk(json!({}), Some(reason))]).unwrap().stop_reason;
        let reasons = ["stop", "length", "content_filter", "weather"].map(reason);
        assert_eq!(reasons, ["end_turn", "max_tokens", "refusal", "weather"]);
        let refused = assemble(&[chunk(json!({ "refusal": "I won't." }), Some("stop"))]).unwrap();
        assert_eq!((refused.stop_reason.as_str(), refused.text()), ("refusal", "I won't.".to_owned()));
    }

    #[test]
    fn a_reported_error_or_an_invalid_event_ends_the_answer() {
        let error = json!({ "error": { "message": "Overloaded", "type": "server_error", "code": null } });
        let fault = Fault { kind: "server_error".into(), message: "Overloaded".into(), ..Fault::default() };
        assert_eq!(CompletionAnswer::default().take_event(&error.to_string()), Err(Broken::Reported(fault)));
        assert!(matches!(assemble(&[chunk(json!({}), None)]), Err(Broken::Unreadable(_))));
        let cut = chunk(json!({ "content": "I " }), None).to_string();
        let mut answer = CompletionAnswer::default();
        assert_eq!(
            (answer.take_event(&cut), answer.is_complete()),
            (Ok(false), false),
            "the connection may have broken"
        );
        let invalid = CompletionAnswer::default().take_event("<html>");
        assert_eq!(invalid, Err(Broken::Unreadable("an event isn't JSON".into())));
    }
}
