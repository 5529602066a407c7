//! Tool calls within a text, such as `<tool_call>{"name": "look", "arguments": {"at": "the sky"}}</tool_call>`.
//!
//! Many models write their calls like this, and the server is supposed to convert them. Some servers pass them on as text
//! instead, if they are not told how the model writes calls, or if the model makes a mistake.

use serde_json::{Value, json};

use crate::{Block, KnownBlock, Request, Response, remote::parsed_arguments};

const OPENING: &str = "<tool_call>";
const CLOSING: &str = "</tool_call>";

/// Converts the calls of offered tools in the texts of an answer. Others are removed, since people read what remains.
pub(super) fn converted(request: &Request, mut response: Response) -> Response {
    if request.answer_schema.is_some() {
        return response; // the text is JSON
    }
    let mut calls = Vec::new();
    response.content.retain_mut(|block| {
        let Block::Known(KnownBlock::Text { text }) = block else { return true };
        let (rest, written) = without_calls(text);
        if written.is_empty() {
            return true;
        }
        calls.extend(written.into_iter().filter_map(|call| parsed(request, call)));
        *text = rest;
        !text.is_empty()
    });
    if !calls.is_empty() {
        "tool_use".clone_into(&mut response.stop_reason);
        response.content.extend(calls);
    }
    response
}

/// Returns a text without its calls, and the calls. The last tag may be missing. A tag in front of anything else than
/// JSON or another tag is part of the text.
fn without_calls(text: &str) -> (String, Vec<&str>) {
    let (mut kept, mut calls, mut rest) = (String::new(), Vec::new(), text);
    while let Some((before, after)) = rest.split_once(OPENING) {
        kept.push_str(before);
        let end = [CLOSING, OPENING].into_iter().filter_map(|tag| after.find(tag)).min().unwrap_or(after.len());
        let (call, after) = after.split_at(end);
        rest = after;
        if call.trim_start().starts_with(['{', '<']) {
            calls.push(call);
            rest = after.strip_prefix(CLOSING).unwrap_or(after);
        } else {
            kept.push_str(OPENING);
            kept.push_str(call);
        }
    }
    kept.push_str(rest);
    (kept.trim().to_owned(), calls)
}

/// Parses a call of an offered tool.
fn parsed(request: &Request, call: &str) -> Option<Block> {
    let call: Value = serde_json::Deserializer::from_str(call).into_iter().next()?.ok()?;
    let name = call["name"].as_str().filter(|name| request.tools.iter().any(|tool| tool.name == **name))?.to_owned();
    let input = match &call["arguments"] {
        Value::String(arguments) => parsed_arguments(arguments),
        Value::Null => None,
        arguments => Some(arguments.clone()),
    };
    let id = format!("call-{:016x}", rand::random::<u64>());
    Some(KnownBlock::ToolUse { id, name, input: input.unwrap_or_else(|| json!({})) }.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AnswerSchema, Purpose, ToolChoice, ToolSpec, Usage};

    fn request() -> Request {
        let tool = |name: &str| ToolSpec {
            name: name.to_owned(),
            description: "Looks.".to_owned(),
            input_schema: json!({ "type": "object" }),
            strict: false,
        };
        Request {
            purpose: Purpose::Gather,
            instructions: "".into(),
            tools: [tool("look"), tool("listen")].into(),
            history: Vec::new(),
            situation: Value::Null,
            exchange: Vec::new(),
            tool_choice: ToolChoice::Auto,
            answer_schema: None,
            max_tokens: 1,
            payer: Default::default(),
            words: None,
        }
    }

    fn said(text: &str) -> Response {
        let content = vec![KnownBlock::Text { text: text.to_owned() }.into()];
        Response { content, stop_reason: "end_turn".to_owned(), usage: Usage::default() }
    }

    /// Returns the text, the calls and the reason of an answer with this text.
    fn read(text: &str) -> (String, Vec<(String, Value)>, String) {
        let response = converted(&request(), said(text));
        let calls = response.tool_calls().map(|(_, name, input)| (name.to_owned(), input.clone())).collect();
        (response.text(), calls, response.stop_reason)
    }

    #[test]
    fn calls_of_offered_tools_become_calls() {
        let look = ("look".to_owned(), json!({ "at": "the sky" }));
        let listen = ("listen".to_owned(), json!({}));
        let one = r#"<tool_call>{"name": "look", "arguments": {"at": "the sky"}}</tool_call>"#;
        let quoted = r#"<tool_call>{"name":"look","arguments":"{\"at\":\"the sky\"}"}</tool_call>"#;
        let tool_use = || "tool_use".to_owned();
        assert_eq!(read(one), (String::new(), vec![look.clone()], tool_use()));
        assert_eq!(read(quoted), (String::new(), vec![look.clone()], tool_use()));
        let two = format!("I look.\n{one}\n<tool_call>\n{{\"name\": \"listen\"}}\n");
        assert_eq!(read(&two), ("I look.".to_owned(), vec![look.clone(), listen.clone()], tool_use()));
        let unclosed = format!("{}\n{one}", r#"<tool_call>{"name": "listen"}"#);
        assert_eq!(read(&unclosed), (String::new(), vec![listen, look], tool_use()));
    }

    #[test]
    fn other_calls_are_neither_made_nor_shown() {
        let end = || "end_turn".to_owned();
        for call in [
            r#"{"name": "delete", "arguments": {}}"#,
            r#"{"name": "look", "argum"#,
            r#"{"arguments": {}}"#,
            "<function=look><parameter=at>the sky</parameter></function>",
        ] {
            assert_eq!(read(&format!("Well.\n<tool_call>{call}</tool_call>")), ("Well.".to_owned(), vec![], end()));
            assert_eq!(read(&format!("<tool_call>\n{call}")), (String::new(), vec![], end()));
        }
    }

    #[test]
    fn other_texts_stay_as_they_are() {
        for text in ["Blue. ", "A <tool_call> tag is how some models call tools.", "<tool_call>no</tool_call>"] {
            assert_eq!(converted(&request(), said(text)), said(text));
        }
        let schema = Some(AnswerSchema { name: "sky".to_owned(), schema: json!({}) });
        let json = said(r#"{"a": "<tool_call>{}</tool_call>"}"#);
        assert_eq!(converted(&Request { answer_schema: schema, ..request() }, json.clone()), json);
    }
}
