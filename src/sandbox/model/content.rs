//! The rules of the Gemini API, and its form of requests and answers.
//!
//! A valid request is converted to the form of the Messages API, in which answers are scripted, and an answer back.
//! Like the newest models, the stand-in signs the first call of each answer, and refuses a call without a signature.

use axum::http::HeaderMap;
use serde_json::{Value, json};

use super::{
    answer::{Envelope, output_tokens, split},
    check::{Refusal, is_json, object},
    script::Scripted,
};

/// The signature of calls that were not made by the API.
const FOREIGN_SIGNATURE: &str = "skip_thought_signature_validator";

/// Checks the API key, then the request. `sent` are the parts with a signature or of unknown kinds that the stand-in
/// has sent, so that requests may contain them.
pub(super) fn check(headers: &HeaderMap, key: &str, body: &Value, sent: &[Value]) -> Result<(), Refusal> {
    authorize(headers, key)?;
    request(body, sent).map_err(|message| Refusal { status: 400, message })
}

/// Checks the headers of any request.
pub(super) fn authorize(headers: &HeaderMap, key: &str) -> Result<(), Refusal> {
    if headers.get("x-goog-api-key").and_then(|value| value.to_str().ok()) != Some(key) {
        let message = "API key not valid. Please pass a valid API key.".to_owned();
        return Err(Refusal { status: 401, message });
    }
    match is_json(headers) {
        true => Ok(()),
        false => Err(Refusal { status: 400, message: "Invalid JSON payload received.".to_owned() }),
    }
}

fn request(body: &Value, sent: &[Value]) -> Result<(), String> {
    let known = ["contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "safetySettings"];
    object(body, "request", &known)?;
    let names = tools(&body["tools"])?;
    choice(&body["toolConfig"], &names)?;
    generation(&body["generationConfig"], !names.is_empty())?;
    if let Some(system) = body.get("systemInstruction") {
        object(system, "system_instruction", &["role", "parts"])?;
        texts(&system["parts"], "system_instruction")?;
    }
    contents(&body["contents"], sent)
}

fn tools(tools: &Value) -> Result<Vec<&str>, String> {
    let mut names = Vec::new();
    for (at, tool) in tools.as_array().into_iter().flatten().enumerate() {
        object(tool, &format!("tools[{at}]"), &["functionDeclarations"])?;
        for (n, function) in tool["functionDeclarations"].as_array().into_iter().flatten().enumerate() {
            let place = format!("tools[{at}].function_declarations[{n}]");
            object(function, &place, &["name", "description", "parameters", "parametersJsonSchema"])?;
            let name = function["name"].as_str().unwrap_or_default();
            let plain = |c: char| c.is_ascii_alphanumeric() || "_.:-".contains(c);
            if !(1..=64).contains(&name.len())
                || !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                || !name.chars().all(plain)
            {
                return Err(format!("{place}.name: Invalid function name."));
            }
            if names.contains(&name) {
                return Err(format!("Duplicate function declaration found: {name}"));
            }
            if function["description"].as_str().is_none_or(str::is_empty) {
                return Err(format!("{place}.description: must be specified."));
            }
            if function["parametersJsonSchema"]["type"] != "object" {
                return Err(format!("{place}.parameters_json_schema: schema should be of type OBJECT."));
            }
            names.push(name);
        }
    }
    Ok(names)
}

fn choice(config: &Value, names: &[&str]) -> Result<(), String> {
    if config.is_null() {
        return Ok(());
    }
    object(config, "tool_config", &["functionCallingConfig"])?;
    let choice = &config["functionCallingConfig"];
    object(choice, "function_calling_config", &["mode", "allowedFunctionNames"])?;
    if names.is_empty() {
        return Err("Function calling config is set without function_declarations.".to_owned());
    }
    match choice["mode"].as_str() {
        Some("AUTO" | "NONE") if choice.get("allowedFunctionNames").is_none() => Ok(()),
        Some("ANY") => {
            let mut allowed = choice["allowedFunctionNames"].as_array().into_iter().flatten();
            match allowed.find(|name| names.iter().all(|known| **name != **known)) {
                Some(name) => Err(format!("allowed_function_names: {name} is not declared.")),
                None => Ok(()),
            }
        }
        _ => Err("Invalid value at 'tool_config.function_calling_config.mode'".to_owned()),
    }
}

fn generation(config: &Value, has_tools: bool) -> Result<(), String> {
    if config.is_null() {
        return Ok(());
    }
    let known = [
        "maxOutputTokens",
        "temperature",
        "topP",
        "topK",
        "stopSequences",
        "candidateCount",
        "responseMimeType",
        "responseSchema",
        "responseJsonSchema",
        "thinkingConfig",
    ];
    object(config, "generation_config", &known)?;
    if config.get("maxOutputTokens").is_some_and(|most| most.as_u64().is_none_or(|most| most == 0)) {
        return Err("max_output_tokens must be positive.".to_owned());
    }
    let is_json = config["responseMimeType"] == "application/json";
    if config.get("responseJsonSchema").is_some_and(|schema| !is_json || !schema.is_object()) {
        return Err("response_json_schema requires response_mime_type to be application/json.".to_owned());
    }
    if is_json && has_tools {
        return Err("Function calling with a response mime type: 'application/json' is unsupported".to_owned());
    }
    Ok(())
}

fn texts(parts: &Value, place: &str) -> Result<(), String> {
    let parts = parts.as_array().filter(|parts| !parts.is_empty());
    let parts = parts.ok_or_else(|| format!("{place}: must include at least one parts field"))?;
    match parts.iter().all(|part| part["text"].as_str().is_some_and(|text| !text.is_empty())) {
        true => Ok(()),
        false => Err(format!("{place}.parts: must be texts")),
    }
}

fn contents(contents: &Value, sent: &[Value]) -> Result<(), String> {
    let contents = contents.as_array().filter(|list| !list.is_empty()).ok_or("contents is not specified")?;
    let mut open: Vec<(&Value, &Value)> = Vec::new();
    for (at, content) in contents.iter().enumerate() {
        let place = format!("contents[{at}]");
        object(content, &place, &["role", "parts"])?;
        let role = content["role"].as_str().unwrap_or_default();
        let parts = content["parts"].as_array().filter(|parts| !parts.is_empty());
        let parts = parts.ok_or_else(|| format!("{place}.parts: contents.parts must not be empty."))?;
        let mut calls = Vec::new();
        let mut results = Vec::new();
        for (n, part) in parts.iter().enumerate() {
            let inside = format!("{place}.parts[{n}]");
            if role == "model" && sent.contains(part) {
                calls.extend(part.get("functionCall").map(|call| (&call["name"], &call["id"])));
            } else if part.get("text").is_some() {
                object(part, &inside, &["text"])?;
            } else if let Some(call) = part.get("functionCall").filter(|_| role == "model") {
                object(part, &inside, &["functionCall", "thoughtSignature"])?;
                object(call, &inside, &["name", "args", "id"])?;
                let is_signed = part["thoughtSignature"] == FOREIGN_SIGNATURE;
                if !call["args"].is_object() || (calls.is_empty() && !is_signed) {
                    return Err("Function call is missing a thought_signature in functionCall parts.".to_owned());
                }
                calls.push((&call["name"], &call["id"]));
            } else if let Some(result) = part.get("functionResponse").filter(|_| role == "user") {
                object(part, &inside, &["functionResponse"])?;
                object(result, &inside, &["name", "response", "id"])?;
                if !result["response"].is_object() {
                    return Err(format!("{inside}.function_response.response: must be an object"));
                }
                results.push((&result["name"], &result["id"]));
            } else {
                return Err(format!("{inside}: a part of this kind is not allowed here"));
            }
        }
        if role != "user" && role != "model" {
            return Err("Please use a valid role: user, model.".to_owned());
        }
        if sorted(&open) != sorted(&results) {
            return Err(
                "Please ensure that the number of function response parts is equal to the number of function call \
                 parts of the function call turn."
                    .to_owned(),
            );
        }
        open = calls;
    }
    match (contents.last().is_some_and(|last| last["role"] == "user"), open.is_empty()) {
        (true, true) => Ok(()),
        _ => Err("Please ensure that the conversation ends with a user turn.".to_owned()),
    }
}

fn sorted(calls: &[(&Value, &Value)]) -> Vec<String> {
    let mut sorted: Vec<String> = calls.iter().map(|(name, id)| format!("{name} {id}")).collect();
    sorted.sort();
    sorted
}

/// Converts a valid request to the form of the Messages API. A schema for the answer becomes the only tool.
pub(super) fn question(model: &str, body: &Value) -> Value {
    let mut calls = 0;
    let mut results = 0;
    let mut messages: Vec<Value> = Vec::new();
    for content in body["contents"].as_array().into_iter().flatten() {
        let mut blocks: Vec<Value> = Vec::new();
        for part in content["parts"].as_array().into_iter().flatten() {
            if let Some(call) = part.get("functionCall") {
                calls += 1;
                let id = format!("call-{calls}");
                blocks.push(json!({ "type": "tool_use", "id": id, "name": call["name"], "input": call["args"] }));
            } else if let Some(result) = part.get("functionResponse") {
                results += 1;
                let id = format!("call-{results}"); // the results have the order of the calls
                let content = result["response"].to_string();
                blocks.push(json!({ "type": "tool_result", "tool_use_id": id, "content": content }));
            } else if let Some(text) = part.get("text") {
                blocks.push(json!({ "type": "text", "text": text }));
            }
        }
        let role = if content["role"] == "model" { "assistant" } else { "user" };
        messages.push(json!({ "role": role, "content": blocks }));
    }
    let functions = body["tools"].as_array().into_iter().flatten();
    let functions = functions.flat_map(|tool| tool["functionDeclarations"].as_array().into_iter().flatten());
    let tool = |function: &Value| {
        let schema = &function["parametersJsonSchema"];
        json!({ "name": function["name"], "description": function["description"], "input_schema": schema })
    };
    let mut tools: Vec<Value> = functions.map(tool).collect();
    let answer = &body["generationConfig"]["responseJsonSchema"];
    if answer.is_object() {
        tools.push(json!({ "name": answer["title"], "input_schema": answer }));
    }
    let system = body["systemInstruction"]["parts"].as_array().into_iter().flatten();
    let system: Vec<Value> = system.map(|part| json!({ "type": "text", "text": part["text"] })).collect();
    json!({ "model": model, "system": system, "tools": tools, "messages": messages })
}

/// Returns the parts of an answer. The first call has a signature. Blocks of unknown types become parts of that kind.
/// If an answer in JSON was requested, the arguments of a call are its text.
pub(super) fn parts(envelope: &Envelope, answer: &Scripted, is_json: bool) -> Vec<Value> {
    let mut signature = Some(format!("signature of {}", envelope.id));
    let part = |block: &Value| match block["type"].as_str() {
        Some("text") => json!({ "text": block["text"] }),
        Some("tool_use") if is_json => json!({ "text": block["input"].to_string() }),
        Some("tool_use") => {
            let mut part = json!({ "functionCall": { "name": block["name"], "args": block["input"] } });
            if let Some(signature) = signature.take() {
                part["thoughtSignature"] = signature.into();
            }
            part
        }
        kind => json!({ kind.unwrap_or("unknown"): block }),
    };
    answer.content.iter().map(part).collect()
}

/// Returns the parts that must come back unchanged.
pub(super) fn kept(parts: &[Value]) -> Vec<Value> {
    let is_kept = |part: &&Value| part.as_object().is_some_and(|part| part.keys().any(|member| member != "text"));
    parts.iter().filter(is_kept).cloned().collect()
}

/// Returns the whole answer.
pub(super) fn whole(envelope: &Envelope, answer: &Scripted, is_json: bool) -> Value {
    event(envelope, answer, &parts(envelope, answer, is_json), true)
}

/// Returns the answer as the events of a stream.
pub(super) fn events(envelope: &Envelope, answer: &Scripted, is_json: bool) -> Vec<String> {
    let mut pieces: Vec<Value> = Vec::new();
    for part in parts(envelope, answer, is_json) {
        match part["text"].as_str() {
            Some(text) => pieces.extend(split(text).into_iter().map(|piece| json!({ "text": piece }))),
            None => pieces.push(part),
        }
    }
    if pieces.is_empty() {
        pieces.push(json!({ "text": "" }));
    }
    let count = pieces.len();
    let piece = |(n, piece): (usize, Value)| event(envelope, answer, &[piece], n + 1 == count).to_string();
    pieces.into_iter().enumerate().map(piece).collect()
}

fn event(envelope: &Envelope, answer: &Scripted, parts: &[Value], is_last: bool) -> Value {
    let count = |key: &str| envelope.usage[key].as_u64().unwrap_or_default();
    let cached = count("cache_read_input_tokens");
    let prompt = count("input_tokens") + count("cache_creation_input_tokens") + cached;
    let mut candidate = json!({ "content": { "role": "model", "parts": parts }, "index": 0 });
    if is_last {
        candidate["finishReason"] = match answer.stop_reason.as_str() {
            "tool_use" | "end_turn" => "STOP",
            "max_tokens" => "MAX_TOKENS",
            "refusal" => "SAFETY",
            other => other,
        }
        .into();
    }
    let answered = if is_last { output_tokens(answer) as u64 } else { 1 };
    let usage = json!({
        "promptTokenCount": prompt,
        "cachedContentTokenCount": cached,
        "candidatesTokenCount": answered,
        "totalTokenCount": prompt + answered,
    });
    json!({
        "candidates": [candidate],
        "usageMetadata": usage,
        "modelVersion": envelope.model,
        "responseId": envelope.id,
    })
}

/// Returns the status and the body of an error. An invalid key is reported as an invalid request.
pub(super) fn error(status: u16, message: &str) -> (u16, Value) {
    let (code, name) = match status {
        400 | 401 => (400, "INVALID_ARGUMENT"),
        403 => (403, "PERMISSION_DENIED"),
        404 => (404, "NOT_FOUND"),
        429 => (429, "RESOURCE_EXHAUSTED"),
        503 => (503, "UNAVAILABLE"),
        other => (other, "INTERNAL"),
    };
    let mut error = json!({ "code": code, "message": message, "status": name });
    if status == 401 {
        let kind = "type.googleapis.com/google.rpc.ErrorInfo";
        error["details"] = json!([{ "@type": kind, "reason": "API_KEY_INVALID", "domain": "googleapis.com" }]);
    }
    (code, json!({ "error": error }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signed() -> Value {
        json!({ "functionCall": { "name": "look", "args": {} }, "thoughtSignature": "s" })
    }

    fn valid_request() -> Value {
        json!({
            "systemInstruction": { "parts": [{ "text": "Be brief." }] },
            "contents": [
                { "role": "user", "parts": [{ "text": "hi" }] },
                { "role": "model", "parts": [signed(), { "functionCall": { "name": "look", "args": {}, "id": "b" } }] },
                { "role": "user", "parts": [
                    { "functionResponse": { "name": "look", "response": { "output": "seen" } } },
                    { "functionResponse": { "name": "look", "response": { "output": "seen" }, "id": "b" } },
                    { "text": "go on" },
                ] },
            ],
            "tools": [{ "functionDeclarations": [
                { "name": "look", "description": "Looks.", "parametersJsonSchema": { "type": "object" } },
            ] }],
            "toolConfig": { "functionCallingConfig": { "mode": "ANY", "allowedFunctionNames": ["look"] } },
            "generationConfig": { "maxOutputTokens": 10 },
        })
    }

    #[test]
    fn a_valid_request_passes_and_is_converted() {
        let body = valid_request();
        assert_eq!(request(&body, &[signed()]), Ok(()));
        let question = question("m", &body);
        assert_eq!((&question["model"], &question["tools"][0]["name"]), (&json!("m"), &json!("look")));
        assert_eq!(question["messages"][1]["content"][1]["id"], "call-2");
        assert_eq!(question["messages"][2]["content"][1]["tool_use_id"], "call-2");
    }

    #[test]
    fn each_violated_rule_is_reported() {
        let broken = |place: &str, value: Value| {
            let mut body = valid_request();
            *body.pointer_mut(place).unwrap() = value;
            request(&body, &[signed()]).expect_err(place)
        };
        let mut extra = valid_request();
        extra["model"] = json!("m");
        assert!(request(&extra, &[]).unwrap_err().contains("Extra inputs"));
        assert!(broken("/generationConfig", json!({ "maxTokens": 1 })).contains("Extra inputs"));
        let json_mode = json!({ "responseMimeType": "application/json", "responseJsonSchema": {} });
        assert!(broken("/generationConfig", json_mode).contains("unsupported"));
        assert!(broken("/generationConfig", json!({ "responseJsonSchema": {} })).contains("response_mime_type"));
        assert!(broken("/tools/0/functionDeclarations/0/name", json!("two words")).contains("Invalid function name"));
        assert!(broken("/tools", json!([])).contains("without function_declarations"));
        assert!(broken("/toolConfig/functionCallingConfig/mode", json!("auto")).contains("mode"));
        assert!(broken("/contents/0/parts", json!([])).contains("must not be empty"));
        assert!(broken("/contents/0/role", json!("assistant")).contains("valid role"));
        assert!(broken("/contents/1/parts/0/thoughtSignature", json!("t")).contains("thought_signature"));
        assert!(broken("/contents/2/parts/0", json!({ "text": "x" })).contains("number of function response"));
        assert!(broken("/contents", json!([{ "role": "model", "parts": [{ "text": "x" }] }])).contains("user turn"));
    }
}
