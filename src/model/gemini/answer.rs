//! Assembles an answer from streamed events.
//!
//! Each event has parts of the answer. Texts are joined, except those with a signature, which belongs to one part. The
//! stream ends without a last event.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{OWN_ID, PROVIDER, fault};
use crate::{
    Block, KnownBlock, Response, Usage,
    conversation::provider_data,
    remote::{Assembly, Broken},
};

/// An answer that is being received.
#[derive(Debug, Default)]
pub struct ContentAnswer {
    id: String,
    model: String,
    parts: Vec<Map<String, Value>>,
    finish_reason: Option<String>,
    is_blocked: bool,
    tokens: Tokens,
}

/// One event of the stream.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Chunk {
    #[serde(default)]
    candidates: Vec<Candidate>,
    #[serde(default)]
    prompt_feedback: Option<PromptFeedback>,
    #[serde(default)]
    usage_metadata: Option<Tokens>,
    #[serde(default)]
    model_version: Option<String>,
    #[serde(default)]
    response_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate {
    #[serde(default)]
    content: Content,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Default, Deserialize)]
struct Content {
    #[serde(default)]
    parts: Vec<Map<String, Value>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PromptFeedback {
    #[serde(default)]
    block_reason: Option<String>,
}

/// The numbers of tokens so far.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tokens {
    #[serde(default)]
    prompt_token_count: u64,
    #[serde(default)]
    tool_use_prompt_token_count: u64,
    #[serde(default)]
    cached_content_token_count: u64,
    #[serde(default)]
    candidates_token_count: u64,
    #[serde(default)]
    thoughts_token_count: u64,
}

impl Assembly for ContentAnswer {
    fn take_event(&mut self, event: &str) -> Result<bool, Broken> {
        let event: Value = serde_json::from_str(event).map_err(|error| Broken::of_json(&error))?;
        if event.get("error").is_some() {
            return Err(Broken::Reported(fault(&event)));
        }
        let chunk: Chunk = serde_json::from_value(event).map_err(|error| Broken::of_json(&error))?;
        self.id = chunk.response_id.unwrap_or_else(|| std::mem::take(&mut self.id));
        self.model = chunk.model_version.unwrap_or_else(|| std::mem::take(&mut self.model));
        self.tokens = chunk.usage_metadata.unwrap_or(self.tokens);
        self.is_blocked |= chunk.prompt_feedback.is_some_and(|feedback| feedback.block_reason.is_some());
        for Candidate { content, finish_reason } in chunk.candidates.into_iter().take(1) {
            content.parts.into_iter().for_each(|part| self.add(part));
            self.finish_reason = finish_reason.or(self.finish_reason.take());
        }
        Ok(false)
    }

    fn text(&self) -> Cow<'_, str> {
        let is_thought = |part: &Map<String, Value>| part.get("thought") == Some(&Value::Bool(true));
        let texts = self.parts.iter().filter(|part| !is_thought(part));
        let texts: Vec<_> = texts.filter_map(|part| part.get("text")?.as_str()).collect();
        texts.join("\n").into()
    }

    fn is_complete(&self) -> bool {
        self.finish_reason.is_some() || self.is_blocked
    }

    fn finish(self) -> Result<Response, Broken> {
        let Self { id, model, parts, finish_reason, is_blocked, tokens } = self;
        let content: Vec<Block> = parts.into_iter().enumerate().flat_map(|(n, part)| blocks(&id, n, part)).collect();
        let calls = content.iter().any(|block| matches!(block, Block::Known(KnownBlock::ToolUse { .. })));
        let other = finish_reason.as_deref().unwrap_or_default().to_lowercase();
        let stop_reason = match finish_reason.as_deref() {
            None if is_blocked => "refusal",
            None => return Err(Broken::without_reason()),
            Some("STOP") if calls => "tool_use",
            Some("STOP") => "end_turn",
            Some("MAX_TOKENS") => "max_tokens",
            Some("SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" | "LANGUAGE") => "refusal",
            Some(_) => other.as_str(),
        };
        let cached_tokens = tokens.cached_content_token_count;
        let usage = Usage {
            model,
            input_tokens: (tokens.prompt_token_count + tokens.tool_use_prompt_token_count)
                .saturating_sub(cached_tokens),
            cached_tokens,
            output_tokens: tokens.candidates_token_count + tokens.thoughts_token_count,
            nano_usd: None,
        };
        Ok(Response { stop_reason: stop_reason.to_owned(), content, usage })
    }
}

impl ContentAnswer {
    /// Adds a part. Plain text continues the plain text before it, and a thought the thought before it.
    fn add(&mut self, part: Map<String, Value>) {
        let is_plain =
            |part: &Map<String, Value>| part.keys().all(|member| matches!(member.as_str(), "text" | "thought"));
        if let Some(last) = self.parts.last_mut()
            && is_plain(last)
            && is_plain(&part)
            && last.get("thought") == part.get("thought")
            && let (Some(Value::String(text)), Some(more)) =
                (last.get_mut("text"), part.get("text").and_then(Value::as_str))
        {
            text.push_str(more);
            return;
        }
        self.parts.push(part);
    }
}

/// Converts part `n` of an answer to a block, and to another one with the members that are not known here.
fn blocks(answer: &str, n: usize, mut part: Map<String, Value>) -> Vec<Block> {
    let is_thought = part.get("thought") == Some(&Value::Bool(true));
    let text = part.get("text").and_then(Value::as_str).filter(|text| !is_thought && !text.trim().is_empty());
    let known = if let Some(text) = text {
        let text = text.to_owned();
        part.remove("text");
        KnownBlock::Text { text }
    } else if let Some(name) = part.get("functionCall").and_then(|call| call["name"].as_str()) {
        let name = name.to_owned();
        let Some(Value::Object(mut call)) = part.remove("functionCall") else { return Vec::new() };
        call.remove("name");
        let id = call.remove("id").and_then(|id| Some(id.as_str()?.to_owned()).filter(|id| !id.is_empty()));
        let input = call.remove("args").unwrap_or_else(|| json!({}));
        if !call.is_empty() {
            part.insert("functionCall".to_owned(), call.into());
        }
        KnownBlock::ToolUse { id: id.unwrap_or_else(|| format!("{OWN_ID}{answer}-{n}")), name, input }
    } else if part.keys().all(|member| member == "text") {
        return Vec::new(); // blank
    } else {
        return vec![provider_data(PROVIDER, "part", part.into())];
    };
    let mut blocks = vec![known.into()];
    if !part.is_empty() {
        blocks.push(provider_data(PROVIDER, "members", part.into()));
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::Fault;

    fn assemble(events: &[Value]) -> Result<Response, Broken> {
        let mut answer = ContentAnswer::default();
        for event in events {
            assert!(!answer.take_event(&event.to_string())?, "no event is the last");
        }
        answer.finish()
    }

    fn chunk(parts: Value, finish_reason: Option<&str>) -> Value {
        let mut candidate = json!({ "content": { "role": "model", "parts": parts }, "index": 0, "safetyRatings": [] });
        if let Some(reason) = finish_reason {
            candidate["finishReason"] = json!(reason);
        }
        let usage = json!({
            "promptTokenCount": 537, "cachedContentTokenCount": 500, "candidatesTokenCount": 30,
            "thoughtsTokenCount": 12, "totalTokenCount": 579, "promptTokensDetails": [{ "modality": "TEXT" }],
        });
        json!({ "candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-2.5-flash", "responseId": "r1" })
    }

    #[test]
    fn parts_become_an_answer() {
        let call = json!({ "functionCall": { "name": "look", "args": { "at": "the sky" } } });
        let named = json!({ "functionCall": { "name": "listen", "args": {}, "id": "b" } });
        let response = assemble(&[
            chunk(json!([{ "text": "I " }]), None),
            chunk(json!([{ "text": "look." }, call]), None),
            chunk(json!([named]), Some("STOP")),
        ])
        .unwrap();
        assert_eq!(response.text(), "I look.");
        let calls: Vec<_> = response.tool_calls().collect();
        assert_eq!(calls, [("local-r1-1", "look", &json!({ "at": "the sky" })), ("b", "listen", &json!({}))]);
        assert_eq!(response.stop_reason, "tool_use");
        let model = "gemini-2.5-flash".to_owned();
        assert_eq!(
            response.usage,
            Usage { model, input_tokens: 37, cached_tokens: 500, output_tokens: 42, nano_usd: None }
        );
    }

    #[test]
    fn thoughts_and_signatures_are_kept() {
        let call =
            json!({ "functionCall": { "name": "look", "id": "a", "args": {}, "more": 1 }, "thoughtSignature": "s" });
        let signature = json!({ "text": "", "thoughtSignature": "t" });
        let response = assemble(&[
            chunk(json!([{ "text": "h", "thought": true }]), None),
            chunk(json!([{ "text": "m", "thought": true }, { "text": "So" }]), None),
            chunk(json!([call, signature, { "inlineData": {} }]), Some("STOP")),
        ])
        .unwrap();
        let expected = [
            provider_data("gemini", "part", json!({ "text": "hm", "thought": true })),
            KnownBlock::Text { text: "So".into() }.into(),
            KnownBlock::ToolUse { id: "a".into(), name: "look".into(), input: json!({}) }.into(),
            provider_data("gemini", "members", json!({ "functionCall": { "more": 1 }, "thoughtSignature": "s" })),
            provider_data("gemini", "part", signature),
            provider_data("gemini", "part", json!({ "inlineData": {} })),
        ];
        assert_eq!(response.content, expected);
    }

    #[test]
    fn reasons_to_stop_are_translated_and_open() {
        let reason = |reason: &str| assemble(&[chunk(json!([]), Some(reason))]).unwrap().stop_reason;
        let reasons = ["STOP", "MAX_TOKENS", "SAFETY", "MALFORMED_FUNCTION_CALL"].map(reason);
        assert_eq!(reasons, ["end_turn", "max_tokens", "refusal", "malformed_function_call"]);
        let blocked = json!({ "promptFeedback": { "blockReason": "PROHIBITED_CONTENT" }, "usageMetadata": {} });
        assert_eq!(assemble(&[blocked]).unwrap().stop_reason, "refusal");
    }

    #[test]
    fn a_reported_error_or_an_invalid_event_ends_the_answer() {
        let error = json!({ "error": { "code": 503, "message": "Overloaded", "status": "UNAVAILABLE" } });
        let fault = Fault { kind: "UNAVAILABLE".into(), message: "Overloaded".into(), ..Fault::default() };
        assert_eq!(assemble(&[error]), Err(Broken::Reported(fault)));
        assert!(matches!(assemble(&[chunk(json!([{ "text": "…" }]), None)]), Err(Broken::Unreadable(_))));
        let invalid = ContentAnswer::default().take_event("[1]");
        assert_eq!(invalid, Err(Broken::Unreadable("an event lacks what it must have".into())));
    }
}
