//! The rules of the Messages API for requests.
//!
//! They follow what the API refuses, not what the bot sends: unknown fields, roles that do not
//! alternate, tool calls without a result in the next message, tools without a schema, more than
//! four cache breakpoints. The newest models refuse a conversation that ends with an assistant
//! message, so it is refused here as well.

use axum::http::HeaderMap;
use serde_json::{Map, Value};

use super::strict;

/// The maximum number of cache breakpoints in a request.
const MAX_BREAKPOINTS: usize = 4;

/// The reason for refusing a request.
#[derive(Debug, PartialEq)]
pub(super) struct Refusal {
    /// The HTTP status.
    pub(super) status: u16,
    /// The message, similar to the API's own wording.
    pub(super) message: String,
}

/// Checks the API key, then the request. `unknown_blocks` are the blocks of unknown types that the
/// stand-in has sent, so that requests may contain them.
pub(super) fn check(headers: &HeaderMap, key: &str, body: &Value, unknown_blocks: &[Value]) -> Result<(), Refusal> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if header("x-api-key") != Some(key) {
        return Err(Refusal { status: 401, message: "invalid x-api-key".to_owned() });
    }
    let invalid = |message: String| Refusal { status: 400, message };
    if header("anthropic-version") != Some("2023-06-01") {
        return Err(invalid("anthropic-version: header is required".to_owned()));
    }
    if !is_json(headers) {
        return Err(invalid("content-type: must be application/json".to_owned()));
    }
    request(body, unknown_blocks).map_err(invalid)
}

/// Returns true if the headers announce JSON.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get("content-type").and_then(|value| value.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("application/json"))
}

/// Returns true if `name` is a valid name of a tool or schema.
pub(super) fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    (1..=64).contains(&name.len()) && name.chars().all(plain)
}

fn request(body: &Value, unknown_blocks: &[Value]) -> Result<(), String> {
    let known = [
        "model",
        "max_tokens",
        "messages",
        "system",
        "tools",
        "tool_choice",
        "stream",
        "temperature",
        "top_p",
        "top_k",
        "stop_sequences",
        "metadata",
        "thinking",
        "output_config",
    ];
    let request = object(body, "request", &known)?;
    if body["model"].as_str().is_none_or(str::is_empty) {
        return Err("model: Field required".to_owned());
    }
    if body["max_tokens"].as_u64().is_none_or(|most| most == 0) {
        return Err("max_tokens: must be at least 1".to_owned());
    }
    if request.get("stream").is_some_and(|stream| !stream.is_boolean()) {
        return Err("stream: must be a boolean".to_owned());
    }
    let mut breakpoints = 0;
    let names = tools(request.get("tools"), &mut breakpoints)?;
    choice(request.get("tool_choice"), &names)?;
    output(request.get("output_config"))?;
    system(request.get("system"), &mut breakpoints)?;
    messages(&body["messages"], unknown_blocks, &mut breakpoints)?;
    if breakpoints > MAX_BREAKPOINTS {
        return Err(format!(
            "A maximum of {MAX_BREAKPOINTS} blocks with cache_control may be provided. Found {breakpoints}."
        ));
    }
    Ok(())
}

/// Returns the fields of an object if all of them are known.
pub(super) fn object<'a>(value: &'a Value, place: &str, known: &[&str]) -> Result<&'a Map<String, Value>, String> {
    let members = value.as_object().ok_or_else(|| format!("{place}: must be an object"))?;
    match members.keys().find(|member| !known.contains(&member.as_str())) {
        Some(extra) => Err(format!("{place}.{extra}: Extra inputs are not permitted")),
        None => Ok(members),
    }
}

fn count_breakpoint(block: &Value, place: &str, breakpoints: &mut usize) -> Result<(), String> {
    let Some(cache_control) = block.get("cache_control") else { return Ok(()) };
    object(cache_control, &format!("{place}.cache_control"), &["type", "ttl"])?;
    if cache_control["type"] != "ephemeral" {
        return Err(format!("{place}.cache_control.type: must be ephemeral"));
    }
    *breakpoints += 1;
    Ok(())
}

fn tools<'a>(tools: Option<&'a Value>, breakpoints: &mut usize) -> Result<Vec<&'a str>, String> {
    let mut names = Vec::new();
    let Some(tools) = tools else { return Ok(names) };
    for (at, tool) in tools.as_array().ok_or("tools: must be a list")?.iter().enumerate() {
        let place = format!("tools.{at}");
        object(tool, &place, &["name", "description", "input_schema", "cache_control", "type", "strict"])?;
        let name = tool["name"].as_str().unwrap_or_default();
        if !is_name(name) {
            return Err(format!("{place}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,64}}$'"));
        }
        if names.contains(&name) {
            return Err("tools: Tool names must be unique.".to_owned());
        }
        if tool["input_schema"]["type"] != "object" {
            return Err(format!("{place}.input_schema.type: Input should be 'object'"));
        }
        count_breakpoint(tool, &place, breakpoints)?;
        names.push(name);
    }
    strict::check(tools.as_array().map_or(&[], Vec::as_slice))?;
    Ok(names)
}

fn choice(choice: Option<&Value>, names: &[&str]) -> Result<(), String> {
    let Some(choice) = choice else { return Ok(()) };
    object(choice, "tool_choice", &["type", "name", "disable_parallel_tool_use"])?;
    if names.is_empty() {
        return Err("tool_choice: may only be specified while providing tools".to_owned());
    }
    match choice["type"].as_str() {
        Some("auto" | "any" | "none") => Ok(()),
        Some("tool") if names.iter().any(|name| choice["name"] == **name) => Ok(()),
        Some("tool") => Err(format!("Tool '{}' not found in provided tools", choice["name"])),
        _ => Err("tool_choice.type: must be auto, any, tool or none".to_owned()),
    }
}

fn output(config: Option<&Value>) -> Result<(), String> {
    let Some(config) = config else { return Ok(()) };
    object(config, "output_config", &["format", "effort"])?;
    let Some(format) = config.get("format") else { return Ok(()) };
    object(format, "output_config.format", &["type", "schema"])?;
    if format["type"] != "json_schema" {
        return Err("output_config.format.type: Input should be 'json_schema'".to_owned());
    }
    strict::check_format(&format["schema"], "output_config.format.schema")
}

fn system(system: Option<&Value>, breakpoints: &mut usize) -> Result<(), String> {
    match system {
        None | Some(Value::String(_)) => Ok(()),
        Some(Value::Array(blocks)) => {
            for (at, block) in blocks.iter().enumerate() {
                text(block, &format!("system.{at}"), breakpoints)?;
            }
            Ok(())
        }
        Some(_) => Err("system: must be a string or a list".to_owned()),
    }
}

fn text(block: &Value, place: &str, breakpoints: &mut usize) -> Result<(), String> {
    object(block, place, &["type", "text", "cache_control", "citations"])?;
    if block["type"] != "text" {
        return Err(format!("{place}.type: must be text"));
    }
    if block["text"].as_str().is_none_or(|text| text.trim().is_empty()) {
        return Err(format!("{place}: text content blocks must contain non-whitespace text"));
    }
    count_breakpoint(block, place, breakpoints)
}

fn messages(messages: &Value, unknown_blocks: &[Value], breakpoints: &mut usize) -> Result<(), String> {
    let messages = messages.as_array().filter(|list| !list.is_empty());
    let messages = messages.ok_or("messages: at least one message is required")?;
    let mut open_calls: Vec<&str> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let place = format!("messages.{at}");
        object(message, &place, &["role", "content"])?;
        let expected = if at % 2 == 0 { "user" } else { "assistant" };
        if message["role"] != expected {
            return Err(match at {
                0 => "messages: first message must use the \"user\" role".to_owned(),
                _ => format!("{place}: roles must alternate between \"user\" and \"assistant\""),
            });
        }
        let content = match &message["content"] {
            Value::String(text) if !text.trim().is_empty() => &[][..],
            Value::Array(blocks) if !blocks.is_empty() => blocks,
            _ => return Err(format!("{place}: all messages must have non-empty content")),
        };
        let mut calls = Vec::new();
        let mut results = Vec::new();
        for (n, block) in content.iter().enumerate() {
            let inside = format!("{place}.content.{n}");
            match (block["type"].as_str(), expected) {
                (Some("text"), _) => text(block, &inside, breakpoints)?,
                (Some("tool_use"), "assistant") => {
                    object(block, &inside, &["type", "id", "name", "input", "cache_control"])?;
                    if !block["input"].is_object() {
                        return Err(format!("{inside}.input: Input should be a valid dictionary"));
                    }
                    let name = |member: &str| block[member].as_str().filter(|name| !name.is_empty());
                    let (Some(id), Some(_)) = (name("id"), name("name")) else {
                        return Err(format!("{inside}: id and name are required"));
                    };
                    if calls.contains(&id) {
                        return Err("messages: `tool_use` ids must be unique".to_owned());
                    }
                    calls.push(id);
                    count_breakpoint(block, &inside, breakpoints)?;
                }
                (Some("tool_result"), "user") => {
                    object(block, &inside, &["type", "tool_use_id", "content", "is_error", "cache_control"])?;
                    let id = block["tool_use_id"].as_str().unwrap_or_default();
                    if !open_calls.contains(&id) {
                        return Err(format!("{inside}: unexpected `tool_use_id` found in `tool_result` blocks: {id}"));
                    }
                    if results.len() != n {
                        return Err(format!("{place}: `tool_result` blocks must come first"));
                    }
                    if results.contains(&id) {
                        return Err(format!(
                            "{place}: each tool_use must have a single result. Found multiple for {id}"
                        ));
                    }
                    results.push(id);
                    count_breakpoint(block, &inside, breakpoints)?;
                }
                _ if expected == "assistant" && unknown_blocks.contains(block) => {}
                _ => return Err(format!("{inside}: a block of this type is not allowed here")),
            }
        }
        if let Some(id) = open_calls.iter().find(|id| !results.contains(id)) {
            return Err(format!(
                "{place}: `tool_use` ids were found without `tool_result` blocks directly after: {id}"
            ));
        }
        open_calls = calls;
    }
    if messages.len() % 2 == 0 {
        return Err("messages: the conversation must end with a user message".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn valid_request() -> Value {
        json!({
            "model": "m",
            "max_tokens": 10,
            "stream": true,
            "tools": [{ "name": "look", "input_schema": { "type": "object" }, "cache_control": { "type": "ephemeral" } }],
            "tool_choice": { "type": "tool", "name": "look" },
            "system": [{ "type": "text", "text": "Be brief." }],
            "messages": [
                { "role": "user", "content": "hi" },
                { "role": "assistant", "content": [
                    { "type": "tool_use", "id": "a", "name": "look", "input": {} },
                    { "type": "tool_use", "id": "b", "name": "look", "input": {} },
                ] },
                { "role": "user", "content": [
                    { "type": "tool_result", "tool_use_id": "b", "content": "" },
                    { "type": "tool_result", "tool_use_id": "a", "content": "", "is_error": true },
                    { "type": "text", "text": "go on" },
                ] },
            ],
        })
    }

    #[test]
    fn a_valid_request_passes() {
        assert_eq!(request(&valid_request(), &[]), Ok(()));
    }

    #[test]
    fn each_violated_rule_is_reported() {
        let broken = |place: &str, value: Value| {
            let mut body = valid_request();
            let (parent, member) = place.rsplit_once('/').unwrap();
            match body.pointer_mut(parent).unwrap() {
                Value::Array(list) => list[member.parse::<usize>().unwrap()] = value,
                parent => parent[member] = value,
            }
            request(&body, &[]).expect_err(place)
        };
        assert!(broken("/musing", json!({})).contains("Extra inputs"));
        assert!(broken("/max_tokens", json!(0)).contains("max_tokens"));
        assert!(broken("/tools/0/input_schema", Value::Null).contains("input_schema"));
        assert!(broken("/tools/0/name", json!("two words")).contains("pattern"));
        assert!(broken("/tool_choice/name", json!("sing")).contains("not found"));
        assert!(broken("/system/0/text", json!(" ")).contains("non-whitespace"));
        assert!(broken("/messages", json!([])).contains("at least one"));
        assert!(broken("/messages/0/role", json!("assistant")).contains("first message"));
        assert!(broken("/messages/1/role", json!("user")).contains("alternate"));
        assert!(broken("/messages/1/content/0", json!({ "type": "musing" })).contains("not allowed"));
        assert!(broken("/messages/1/content/0/input", json!("x")).contains("dictionary"));
        assert!(broken("/messages/1/content/1/id", json!("a")).contains("unique"));
        assert!(broken("/messages/2/content/0", json!({ "type": "text", "text": "so" })).contains("come first"));
        assert!(broken("/messages/2/content/0/tool_use_id", json!("c")).contains("unexpected"));
        assert!(broken("/messages/2/content/0/tool_use_id", json!("a")).contains("multiple"));
        assert!(broken("/messages/2/content", json!("never mind")).contains("without `tool_result`"));
        let marked = json!({ "type": "text", "text": "x", "cache_control": { "type": "ephemeral" } });
        assert!(broken("/system", json!(vec![marked; 4])).contains("maximum of 4"));
    }

    #[test]
    fn a_strict_tool_must_use_the_subset_of_json_schema() {
        let with = |schema: Value| {
            let mut body = valid_request();
            body["tools"][0]["strict"] = json!(true);
            body["tools"][0]["input_schema"] = schema;
            request(&body, &[])
        };
        let closed =
            |properties: Value| json!({ "type": "object", "properties": properties, "additionalProperties": false });
        assert_eq!(with(closed(json!({ "at": { "type": "string" } }))), Ok(()));
        let refused = |schema: Value| with(schema).unwrap_err();
        assert!(refused(json!({ "type": "object", "properties": {} })).contains("additionalProperties"));
        assert!(refused(closed(json!({ "n": { "type": "integer", "minimum": 1 } }))).contains("minimum"));
        assert!(refused(closed(json!({ "l": { "type": "array", "maxItems": 3 } }))).contains("maxItems"));
        let many: Map<String, Value> = (0..25).map(|n| (format!("p{n}"), json!({ "type": "string" }))).collect();
        assert!(refused(closed(many.into())).contains("optional"));
    }

    #[test]
    fn the_form_of_an_answer_is_a_strict_schema() {
        let mut body = valid_request();
        let schema = json!({ "type": "object", "properties": {}, "additionalProperties": false });
        body["output_config"] = json!({ "format": { "type": "json_schema", "schema": schema }, "effort": "low" });
        assert_eq!(request(&body, &[]), Ok(()));
        body["output_config"]["format"]["schema"]["additionalProperties"] = true.into();
        assert!(request(&body, &[]).unwrap_err().contains("additionalProperties"));
        body["output_config"] = json!({ "form": {} });
        assert_eq!(request(&body, &[]).unwrap_err(), "output_config.form: Extra inputs are not permitted");
    }

    #[test]
    fn blocks_of_unknown_types_must_come_back_unchanged() {
        let unknown = json!({ "type": "musing", "depth": 3 });
        let mut body = valid_request();
        body["messages"][1]["content"].as_array_mut().unwrap().push(unknown.clone());
        assert_eq!(request(&body, std::slice::from_ref(&unknown)), Ok(()));
        assert!(request(&body, &[json!({ "type": "musing", "depth": 4 })]).is_err());
    }
}
