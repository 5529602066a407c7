//! The rules of the Chat Completions API, and its form of requests and answers.
//!
//! A valid request is converted to the form of the Messages API, in which answers are scripted, and an answer back.

use axum::http::HeaderMap;
use serde_json::{Value, json};

use super::{
    answer::{Envelope, output_tokens, split},
    check::{Refusal, is_json, is_name, object},
    script::{Fault, Scripted},
    strict,
};

/// The members of an assistant message that the API defines.
const ASSISTANT: &[&str] = &["role", "content", "tool_calls", "refusal", "name"];

/// Checks the API key, then the request. `sent` are the members of messages that are not part of the API and that the
/// stand-in has sent, so that requests may contain them.
pub(super) fn check(headers: &HeaderMap, key: &str, body: &Value, sent: &[Value]) -> Result<(), Refusal> {
    authorize(headers, key)?;
    request(body, sent).map_err(|message| Refusal { status: 400, message })
}

/// Checks the headers of any request.
pub(super) fn authorize(headers: &HeaderMap, key: &str) -> Result<(), Refusal> {
    let authorization = headers.get("authorization").and_then(|value| value.to_str().ok());
    if authorization.and_then(|value| value.strip_prefix("Bearer ")) != Some(key) {
        return Err(Refusal { status: 401, message: "Incorrect API key provided.".to_owned() });
    }
    match is_json(headers) {
        true => Ok(()),
        false => Err(Refusal { status: 400, message: "you must provide a JSON body".to_owned() }),
    }
}

fn request(body: &Value, sent: &[Value]) -> Result<(), String> {
    let known = [
        "model",
        "messages",
        "stream",
        "stream_options",
        "max_tokens",
        "max_completion_tokens",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "response_format",
        "temperature",
        "top_p",
        "stop",
        "seed",
        "user",
        "reasoning_effort",
    ];
    object(body, "request", &known)?;
    if body["model"].as_str().is_none_or(str::is_empty) {
        return Err("you must provide a model parameter".to_owned());
    }
    if body.get("stream_options").is_some() && body["stream"] != true {
        return Err("The 'stream_options' parameter is only allowed when 'stream' is enabled.".to_owned());
    }
    for limit in ["max_tokens", "max_completion_tokens"] {
        if body.get(limit).is_some_and(|most| most.as_u64().is_none_or(|most| most == 0)) {
            return Err(format!("Invalid type for '{limit}': expected a positive integer."));
        }
    }
    let names = tools(&body["tools"])?;
    match &body["tool_choice"] {
        Value::Null => {}
        _ if names.is_empty() => return Err("'tool_choice' is only allowed when 'tools' are specified.".to_owned()),
        Value::String(choice) if ["auto", "none", "required"].contains(&choice.as_str()) => {}
        choice if choice["type"] == "function" && names.iter().any(|name| choice["function"]["name"] == **name) => {}
        choice => return Err(format!("Invalid value for 'tool_choice': {choice}.")),
    }
    format(&body["response_format"])?;
    messages(&body["messages"], sent)
}

fn tools(tools: &Value) -> Result<Vec<&str>, String> {
    let mut names = Vec::new();
    if tools.is_null() {
        return Ok(names);
    }
    for (at, tool) in tools.as_array().ok_or("'tools' must be a list")?.iter().enumerate() {
        let place = format!("tools[{at}]");
        object(tool, &place, &["type", "function"])?;
        let function = &tool["function"];
        object(function, &format!("{place}.function"), &["name", "description", "parameters", "strict"])?;
        let name = function["name"].as_str().unwrap_or_default();
        if tool["type"] != "function" || !is_name(name) {
            return Err(format!(
                "Invalid '{place}.function.name': string does not match pattern '^[a-zA-Z0-9_-]{{1,64}}$'."
            ));
        }
        if names.contains(&name) {
            return Err("Tool names must be unique.".to_owned());
        }
        if function["parameters"]["type"] != "object" {
            return Err(format!("Invalid schema for function '{name}': schema must be of type 'object'."));
        }
        if function["strict"] == true {
            strict::check_required(&function["parameters"], name)?;
        }
        names.push(name);
    }
    match names.is_empty() {
        true => Err("[] is too short - 'tools'".to_owned()),
        false => Ok(names),
    }
}

fn format(format: &Value) -> Result<(), String> {
    if format.is_null() {
        return Ok(());
    }
    object(format, "response_format", &["type", "json_schema"])?;
    match format["type"].as_str() {
        Some("text" | "json_object") => Ok(()),
        Some("json_schema") => {
            let schema = &format["json_schema"];
            object(schema, "response_format.json_schema", &["name", "description", "schema", "strict"])?;
            let name = schema["name"].as_str().filter(|name| is_name(name));
            let name = name.ok_or("Missing required parameter: 'response_format.json_schema.name'.")?;
            if schema["strict"] == true { strict::check_required(&schema["schema"], name) } else { Ok(()) }
        }
        _ => Err("Invalid value for 'response_format.type'.".to_owned()),
    }
}

fn messages(messages: &Value, sent: &[Value]) -> Result<(), String> {
    let messages = messages.as_array().filter(|list| !list.is_empty());
    let mut open: Vec<&str> = Vec::new();
    for (at, message) in messages.ok_or("[] is too short - 'messages'")?.iter().enumerate() {
        let place = format!("messages[{at}]");
        let role = message["role"].as_str().unwrap_or_default();
        if role != "tool" && !open.is_empty() {
            return Err(format!(
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each \
                 'tool_call_id'. The following tool_call_ids did not have response messages: {}",
                open.join(", ")
            ));
        }
        match role {
            "system" | "user" | "developer" => {
                object(message, &place, &["role", "content", "name"])?;
                if message["content"].as_str().is_none_or(|text| text.trim().is_empty()) {
                    return Err(format!("Invalid value for '{place}.content': expected a non-empty string."));
                }
            }
            "assistant" => {
                let unknown = message.as_object().into_iter().flatten();
                let mut unknown = unknown.filter(|(member, _)| !ASSISTANT.contains(&member.as_str()));
                if let Some((member, _)) = unknown.find(|(member, value)| !sent.contains(&json!({ *member: value }))) {
                    return Err(format!("{place}.{member}: Extra inputs are not permitted"));
                }
                open = calls(&message["tool_calls"], &place)?;
                if open.is_empty() && message["content"].as_str().is_none_or(str::is_empty) {
                    return Err(format!("Invalid value for '{place}.content': expected a string, got null."));
                }
            }
            "tool" => {
                object(message, &place, &["role", "content", "tool_call_id"])?;
                let id = message["tool_call_id"].as_str().unwrap_or_default();
                let call = open.iter().position(|open| *open == id).ok_or_else(|| {
                    format!("{place}: messages with role 'tool' must be a response to a preceding message with 'tool_calls'.")
                })?;
                open.remove(call);
                if !message["content"].is_string() {
                    return Err(format!("Invalid type for '{place}.content': expected a string."));
                }
            }
            _ => return Err(format!("Invalid value for '{place}.role': '{role}'.")),
        }
    }
    match open.first() {
        Some(id) => Err(format!("An assistant message with 'tool_calls' must be followed by tool messages: {id}")),
        None => Ok(()),
    }
}

/// Returns the ids of the calls in a message.
fn calls<'a>(calls: &'a Value, place: &str) -> Result<Vec<&'a str>, String> {
    let mut ids = Vec::new();
    for (n, call) in calls.as_array().into_iter().flatten().enumerate() {
        let place = format!("{place}.tool_calls[{n}]");
        object(call, &place, &["id", "type", "function"])?;
        object(&call["function"], &format!("{place}.function"), &["name", "arguments"])?;
        let id = call["id"].as_str().filter(|id| !id.is_empty() && !ids.contains(id));
        if call["type"] != "function" || !call["function"]["name"].is_string() {
            return Err(format!("Missing required parameter: '{place}.function.name'."));
        }
        if !call["function"]["arguments"].is_string() {
            return Err(format!("Invalid type for '{place}.function.arguments': expected a string."));
        }
        ids.push(id.ok_or_else(|| format!("Invalid value for '{place}.id'."))?);
    }
    Ok(ids)
}

/// Converts a valid request to the form of the Messages API. A schema for the answer becomes the only tool.
pub(super) fn question(body: &Value) -> Value {
    let mut system = Vec::new();
    let mut messages: Vec<Value> = Vec::new();
    let mut add = |role: &str, block: Value| match messages.last_mut() {
        Some(last) if last["role"] == role => last["content"].as_array_mut().expect("made below").push(block),
        _ => messages.push(json!({ "role": role, "content": [block] })),
    };
    for message in body["messages"].as_array().into_iter().flatten() {
        let text = || json!({ "type": "text", "text": message["content"] });
        match message["role"].as_str() {
            Some("system" | "developer") => system.push(text()),
            Some("tool") => {
                let id = &message["tool_call_id"];
                add("user", json!({ "type": "tool_result", "tool_use_id": id, "content": message["content"] }));
            }
            Some("assistant") => {
                if message["content"].is_string() {
                    add("assistant", text());
                }
                for call in message["tool_calls"].as_array().into_iter().flatten() {
                    let function = &call["function"];
                    let arguments = function["arguments"].as_str().unwrap_or_default();
                    let input: Value = serde_json::from_str(arguments).unwrap_or_default();
                    let id = &call["id"];
                    add("assistant", json!({ "type": "tool_use", "id": id, "name": function["name"], "input": input }));
                }
            }
            _ => add("user", text()),
        }
    }
    let tool = |tool: &Value| {
        let function = &tool["function"];
        json!({ "name": function["name"], "description": function["description"], "input_schema": function["parameters"] })
    };
    let mut tools: Vec<Value> = body["tools"].as_array().into_iter().flatten().map(tool).collect();
    let answer = &body["response_format"]["json_schema"];
    if answer.is_object() {
        tools.push(json!({ "name": answer["name"], "input_schema": answer["schema"] }));
    }
    json!({ "model": body["model"], "system": system, "tools": tools, "messages": messages })
}

/// Returns the members of a message that are not part of the API, for the blocks of unknown types in an answer.
pub(super) fn unknown_members(answer: &Scripted) -> Vec<Value> {
    let kinds = ["text", "tool_use"];
    let unknown = answer.content.iter().filter(|block| kinds.iter().all(|kind| block["type"] != *kind));
    unknown.map(|block| json!({ block["type"].as_str().unwrap_or("unknown"): block })).collect()
}

/// Returns the whole answer. If an answer in JSON was requested, the arguments of a call are its text.
pub(super) fn whole(envelope: &Envelope, answer: &Scripted, is_json: bool) -> Value {
    let mut message = json!({ "role": "assistant", "content": null, "refusal": null });
    for member in unknown_members(answer) {
        member.as_object().into_iter().flatten().for_each(|(name, value)| message[name] = value.clone());
    }
    let text = text(answer, is_json);
    if !text.is_empty() {
        message["content"] = text.into();
    }
    let calls = calls_of(answer, is_json, false);
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    let choice = json!({ "index": 0, "message": message, "logprobs": null, "finish_reason": finish(answer, is_json) });
    json!({
        "id": envelope.id,
        "object": "chat.completion",
        "created": 1,
        "model": envelope.model,
        "choices": [choice],
        "usage": usage(envelope, answer),
    })
}

/// Returns the answer as the events of a stream.
pub(super) fn events(envelope: &Envelope, answer: &Scripted, is_json: bool, fault: Option<&Fault>) -> Vec<String> {
    let chunk = |delta: Value, finish: Value| {
        let choice = json!({ "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish });
        json!({
            "id": envelope.id,
            "object": "chat.completion.chunk",
            "created": 1,
            "model": envelope.model,
            "choices": [choice],
            "usage": null,
        })
    };
    let delta = |delta: Value| chunk(delta, Value::Null);
    let mut events = vec![delta(json!({ "role": "assistant", "content": "", "refusal": null }))];
    events.extend(unknown_members(answer).into_iter().map(delta));
    events.extend(split(&text(answer, is_json)).into_iter().map(|piece| delta(json!({ "content": piece }))));
    for (index, call) in calls_of(answer, is_json, fault == Some(&Fault::BadJson)).into_iter().enumerate() {
        let mut first = call.clone();
        first["index"] = index.into();
        first["function"]["arguments"] = "".into();
        events.push(delta(json!({ "tool_calls": [first] })));
        for piece in split(call["function"]["arguments"].as_str().unwrap_or_default()) {
            let more = json!({ "index": index, "function": { "arguments": piece } });
            events.push(delta(json!({ "tool_calls": [more] })));
        }
    }
    if fault != Some(&Fault::NoReason) {
        events.push(chunk(json!({}), finish(answer, is_json).into()));
    }
    let mut last = chunk(json!({}), Value::Null);
    last["choices"] = json!([]);
    last["usage"] = usage(envelope, answer);
    events.push(last);
    let mut events: Vec<String> = events.iter().map(Value::to_string).collect();
    events.push("[DONE]".to_owned());
    events
}

fn text(answer: &Scripted, is_json: bool) -> String {
    let texts = answer.content.iter().filter_map(|block| match block["type"].as_str()? {
        "text" => block["text"].as_str().map(str::to_owned),
        "tool_use" if is_json => Some(block["input"].to_string()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

fn calls_of(answer: &Scripted, is_json: bool, truncated: bool) -> Vec<Value> {
    let calls = answer.content.iter().filter(|block| block["type"] == "tool_use" && !is_json);
    let call = |block: &Value| {
        let mut arguments = block["input"].to_string();
        if truncated {
            arguments.pop();
        }
        let function = json!({ "name": block["name"], "arguments": arguments });
        json!({ "id": block["id"], "type": "function", "function": function })
    };
    calls.map(call).collect()
}

fn finish(answer: &Scripted, is_json: bool) -> &str {
    match answer.stop_reason.as_str() {
        "tool_use" if is_json => "stop",
        "tool_use" => "tool_calls",
        "end_turn" => "stop",
        "max_tokens" => "length",
        "refusal" => "content_filter",
        other => other,
    }
}

fn usage(envelope: &Envelope, answer: &Scripted) -> Value {
    let count = |key: &str| envelope.usage[key].as_u64().unwrap_or_default();
    let cached = count("cache_read_input_tokens");
    let prompt = count("input_tokens") + count("cache_creation_input_tokens") + cached;
    let answered = output_tokens(answer) as u64;
    json!({
        "prompt_tokens": prompt,
        "completion_tokens": answered,
        "total_tokens": prompt + answered,
        "prompt_tokens_details": { "cached_tokens": cached },
    })
}

/// Returns the body of an error.
pub(super) fn error(status: u16, message: &str) -> Value {
    let (kind, code) = match status {
        401 => ("invalid_request_error", json!("invalid_api_key")),
        429 => ("requests", json!("rate_limit_exceeded")),
        400..=499 => ("invalid_request_error", Value::Null),
        _ => ("server_error", Value::Null),
    };
    json!({ "error": { "message": message, "type": kind, "param": null, "code": code } })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn valid_request() -> Value {
        let closed = json!({ "type": "object", "properties": { "at": { "type": "string" } }, "required": ["at"], "additionalProperties": false });
        json!({
            "model": "m",
            "stream": true,
            "stream_options": { "include_usage": true },
            "max_tokens": 10,
            "tools": [{ "type": "function", "function": { "name": "look", "parameters": closed, "strict": true } }],
            "tool_choice": { "type": "function", "function": { "name": "look" } },
            "messages": [
                { "role": "system", "content": "Be brief." },
                { "role": "user", "content": "hi" },
                { "role": "assistant", "content": null, "tool_calls": [
                    { "id": "a", "type": "function", "function": { "name": "look", "arguments": "{\"at\":\"x\"}" } },
                    { "id": "b", "type": "function", "function": { "name": "look", "arguments": "{" } },
                ] },
                { "role": "tool", "tool_call_id": "b", "content": "" },
                { "role": "tool", "tool_call_id": "a", "content": "seen" },
                { "role": "user", "content": "go on" },
            ],
        })
    }

    #[test]
    fn a_valid_request_passes_and_is_converted() {
        let body = valid_request();
        assert_eq!(request(&body, &[]), Ok(()));
        let question = question(&body);
        assert_eq!(question["tools"][0]["name"], "look");
        let roles: Vec<_> = question["messages"].as_array().unwrap().iter().map(|message| &message["role"]).collect();
        assert_eq!(roles, ["user", "assistant", "user"]);
        assert_eq!(question["messages"][1]["content"][0]["input"], json!({ "at": "x" }));
        assert_eq!(question["messages"][2]["content"][1]["tool_use_id"], "a");
    }

    #[test]
    fn each_violated_rule_is_reported() {
        let broken = |place: &str, value: Value| {
            let mut body = valid_request();
            *body.pointer_mut(place).unwrap() = value;
            request(&body, &[]).expect_err(place)
        };
        let mut extra = valid_request();
        extra["thinking"] = json!({});
        assert!(request(&extra, &[]).unwrap_err().contains("Extra inputs"));
        assert!(broken("/stream", json!(false)).contains("stream_options"));
        assert!(broken("/max_tokens", json!(0)).contains("max_tokens"));
        assert!(broken("/tools/0/function/name", json!("two words")).contains("pattern"));
        assert!(broken("/tools/0/function/parameters/required", json!([])).contains("required"));
        assert!(broken("/tools", json!([])).contains("too short"));
        assert!(broken("/tool_choice/function/name", json!("sing")).contains("tool_choice"));
        assert!(broken("/messages/1/content", json!(" ")).contains("non-empty"));
        assert!(broken("/messages/2/tool_calls", Value::Null).contains("content"));
        assert!(broken("/messages/2/tool_calls/0/function/arguments", json!({})).contains("arguments"));
        assert!(broken("/messages/3/tool_call_id", json!("c")).contains("preceding"));
        assert!(broken("/messages/4", json!({ "role": "user", "content": "x" })).contains("did not have response"));
        assert!(broken("/messages/2", json!({ "role": "assistant", "content": "x", "hm": 1 })).contains("Extra"));
    }

    #[test]
    fn members_that_were_sent_may_come_back_unchanged() {
        let mut body = valid_request();
        body["messages"][2]["musing"] = json!({ "depth": 3 });
        assert_eq!(request(&body, &[json!({ "musing": { "depth": 3 } })]), Ok(()));
        assert!(request(&body, &[json!({ "musing": { "depth": 4 } })]).is_err());
    }
}
