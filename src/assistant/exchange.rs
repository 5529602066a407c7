//! A model's tool calls and their results: the arguments are validated, and each call is paired with its result.
//!
//! A model may call nothing, several tools at once, a tool that does not exist, or one with arguments of any shape.
//! Each call gets exactly one result, and all results are in one message, as providers require.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock, Mutex},
};

use countersign_model::{Block, KnownBlock, Message, Response, Role};
use jsonschema::Validator;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// The maximum number of compiled schemas that are cached; more than there are tools.
const MAX_COMPILED_SCHEMAS: usize = 256;

/// Returns the arguments of a call without members that are null, which a model sets when it has no value.
///
/// # Errors
///
/// Fails, with a message for the model, if the arguments are not an object or do not match `schema`.
pub(super) fn validate(input: &Value, schema: &Value) -> Result<Value, String> {
    let arguments = match input {
        Value::Null => Map::new(),
        Value::Object(members) => {
            members.iter().filter(|(_, v)| !v.is_null()).map(|(k, v)| (k.clone(), v.clone())).collect()
        }
        _ => return Err("the arguments must be a JSON object".to_owned()),
    };
    let arguments = Value::Object(arguments);
    let validator = validator(schema)?;
    let mistakes: Vec<String> = validator
        .iter_errors(&arguments)
        .take(3)
        .map(|mistake| match mistake.instance_path().as_str() {
            "" => mistake.to_string(),
            place => format!("{place}: {mistake}"),
        })
        .collect();
    if mistakes.is_empty() { Ok(arguments) } else { Err(mistakes.join("; ")) }
}

/// Returns the compiled schema, from a cache: compiling one costs far more than checking a call, and there are few.
fn validator(schema: &Value) -> Result<Arc<Validator>, String> {
    static COMPILED: LazyLock<Mutex<HashMap<Value, Arc<Validator>>>> = LazyLock::new(Mutex::default);
    let mut compiled = COMPILED.lock().expect("nothing panics while it is held");
    if let Some(known) = compiled.get(schema) {
        return Ok(known.clone());
    }
    let new = jsonschema::validator_for(schema).map_err(|error| format!("the tool is broken: {error}"))?;
    if compiled.len() >= MAX_COMPILED_SCHEMAS {
        compiled.clear();
    }
    let new = Arc::new(new);
    compiled.insert(schema.clone(), new.clone());
    Ok(new)
}

/// Parses the arguments of a call as a type, after [`validate`].
///
/// # Errors
///
/// Fails, with a message for the model, if the arguments are invalid or cannot be parsed.
pub(super) fn parse<T: DeserializeOwned>(input: &Value, schema: &Value) -> Result<T, String> {
    serde_json::from_value(validate(input, schema)?).map_err(|error| error.to_string())
}

/// A tool call in a response.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Call {
    /// The id that pairs the call with its result.
    pub(super) id: String,
    /// The name of the tool.
    pub(super) name: String,
    /// The arguments.
    pub(super) input: Value,
}

/// Returns the tool calls of a response, in order.
pub(super) fn calls(response: &Response) -> Vec<Call> {
    let call =
        |(id, name, input): (&str, &str, &Value)| Call { id: id.into(), name: name.into(), input: input.clone() };
    response.tool_calls().map(call).collect()
}

/// Returns the block with the result of a call or with its error.
pub(super) fn result(call: &Call, outcome: Result<String, String>) -> Block {
    let (content, is_error) = match outcome {
        Ok(content) => (content, false),
        Err(mistake) => (mistake, true),
    };
    KnownBlock::ToolResult { tool_use_id: call.id.clone(), content, is_error }.into()
}

/// Appends a model's response and the results of its calls.
pub(super) fn append(exchange: &mut Vec<Message>, response: Response, results: Vec<Block>) {
    exchange.push(Message { role: Role::Assistant, content: response.content });
    exchange.push(Message { role: Role::User, content: results });
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_are_checked_against_the_schema() {
        let schema = json!({
            "type": "object",
            "properties": { "experiment": { "type": "string" }, "limit": { "type": "integer" } },
            "required": ["experiment"],
        });
        let check = |input: Value| validate(&input, &schema);
        assert_eq!(check(json!({ "experiment": "A", "limit": null })), Ok(json!({ "experiment": "A" })));
        assert!(check(json!({ "experiment": 7 })).unwrap_err().contains("/experiment"));
        assert!(check(json!(null)).unwrap_err().contains("experiment"));
        assert!(check(json!("{\"experiment\":")).unwrap_err().contains("object"));
        assert!(check(json!([])).is_err());
    }
}
