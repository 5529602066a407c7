//! A model that obeys every instruction it finds in what it is sent: in names, descriptions, mails and answers of tools.
//!
//! An instruction is written `[[call propose_x thing=A+name state=on]]` or `[[say Done!]]`, as it could be smuggled into any
//! text. Each is obeyed once, in the order in which they are found; calls are made whether or not their tools are offered, and
//! again once the model has asked for the tools of a refused call. Before it has read anything, the model reads what it can about the request, so that it finds the instructions.

use serde_json::{Map, Value, json};

/// Returns the answer of such a model to a request in the form of the Messages API.
pub(super) fn answer(request: &Value) -> Vec<Value> {
    let messages = request["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let begins =
        messages.iter().rposition(|message| message["content"].to_string().contains("\\\"said\\\"")).unwrap_or(0);
    let calls: Vec<&Value> = messages[begins..]
        .iter()
        .filter(|message| message["role"] == "assistant")
        .flat_map(|message| message["content"].as_array().into_iter().flatten())
        .filter(|block| block["type"] == "tool_use")
        .collect();
    let read = text_of(messages);
    let mut says = None;
    for instruction in instructions(&read) {
        match instruction {
            Instruction::Call { name, input } => {
                let made = calls.iter().filter(|call| call["name"] == name && call["input"] == input).count();
                let refusal = read.split_once(&format!("`{name}` was not offered")).map(|(_, rest)| rest);
                let family = refusal.and_then(|rest| rest.split_once("the capability `")?.1.split('`').next());
                let asked = |family: &str| calls.iter().any(|call| call["input"]["capability"] == family);
                match (made, family) {
                    (0, _) => return vec![json!({ "type": "tool_use", "name": name, "input": input })],
                    (1, Some(family)) if !asked(family) => return vec![asks_for(family)],
                    (1, Some(_)) => return vec![json!({ "type": "tool_use", "name": name, "input": input })],
                    _ => {}
                }
            }
            Instruction::Say(words) => says = says.or(Some(words)),
        }
    }
    if calls.is_empty() {
        let looks: Vec<Value> = looks(request).collect();
        if !looks.is_empty() {
            return looks;
        }
    }
    vec![json!({ "type": "text", "text": says.unwrap_or_else(|| "Here is what I found.".to_owned()) })]
}

/// Returns the call that asks for the tools of a family.
fn asks_for(family: &str) -> Value {
    let input = json!({
        "intent_type": "needs_info", "confidence": 1, "user_request_summary": "…", "capability": family,
    });
    json!({ "type": "tool_use", "name": "analyze_user_request", "input": input })
}

/// What a text tells the model to do.
enum Instruction {
    Call { name: String, input: Value },
    Say(String),
}

/// Returns all texts of the messages. An answer of a tool is JSON within JSON.
fn text_of(messages: &[Value]) -> String {
    fn add(value: &Value, text: &mut String) {
        match value {
            Value::String(words) => {
                match serde_json::from_str::<Value>(words) {
                    Ok(inner @ (Value::Object(_) | Value::Array(_))) => add(&inner, text),
                    _ => text.push_str(words),
                }
                text.push('\n');
            }
            Value::Array(values) => values.iter().for_each(|value| add(value, text)),
            Value::Object(members) => members.iter().for_each(|(key, value)| {
                text.push_str(key);
                text.push('\n');
                add(value, text);
            }),
            _ => {}
        }
    }
    let mut text = String::new();
    let said = messages.iter().filter(|message| message["role"] == "user");
    said.for_each(|message| add(&message["content"], &mut text));
    text
}

fn instructions(text: &str) -> Vec<Instruction> {
    let mut found = Vec::new();
    for part in text.split("[[").skip(1) {
        let Some((inside, _)) = part.split_once("]]") else { continue };
        if let Some(words) = inside.strip_prefix("say ") {
            found.push(Instruction::Say(words.to_owned()));
        } else if let Some(call) = inside.strip_prefix("call ") {
            let mut words = call.split_whitespace();
            let Some(name) = words.next() else { continue };
            let given = words.filter_map(|word| word.split_once('='));
            let input: Map<String, Value> = given.map(|(key, value)| (key.to_owned(), value_of(value))).collect();
            found.push(Instruction::Call { name: name.to_owned(), input: input.into() });
        }
    }
    found
}

/// Returns a value as it is meant: a list has `|` between its entries, a text `+` for blanks.
fn value_of(written: &str) -> Value {
    if let Ok(number) = written.parse::<u32>() {
        return number.into();
    }
    let text = |written: &str| Value::from(written.replace('+', " "));
    match written.contains('|') {
        true => written.split('|').filter(|part| !part.is_empty()).map(text).collect(),
        false => text(written),
    }
}

/// Returns calls of the offered tools that read without arguments, or with a name from the person's message.
fn looks(request: &Value) -> impl Iterator<Item = Value> + '_ {
    let said = text_of(request["messages"].as_array().map(Vec::as_slice).unwrap_or_default());
    let tools = request["tools"].as_array().into_iter().flatten();
    let reads = tools.filter_map(move |tool| {
        let name = tool["name"].as_str()?;
        let is_reading = name.starts_with("get_") || name.starts_with("list_") || name.starts_with("show_");
        let required = tool["input_schema"]["required"].as_array().map(Vec::as_slice).unwrap_or_default();
        let named = said.split('“').nth(1).and_then(|rest| rest.split('”').next()).unwrap_or_default();
        let input: Map<String, Value> =
            required.iter().filter_map(Value::as_str).map(|key| (key.to_owned(), named.into())).collect();
        (is_reading && (required.is_empty() || !named.is_empty()))
            .then(|| json!({ "type": "tool_use", "name": name, "input": input }))
    });
    reads.take(6)
}
