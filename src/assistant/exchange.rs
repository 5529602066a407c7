//! A model's tool calls and their results: the arguments are validated, and each call is paired with its result.
//!
//! A model may call nothing, several tools at once, a tool that does not exist, or one with arguments of any shape.
//! Each call gets exactly one result, and all results are in one message, as providers require.

use countersign_capabilities::ParameterSchema;
use countersign_model::{Block, KnownBlock, Message, Response, Role};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Returns the arguments of a call without members that are null, which a model sets when it has no value.
///
/// # Errors
///
/// Fails, with a message for the model, if the arguments are not an object or do not match `schema`.
pub(super) fn validate(input: &Value, schema: &ParameterSchema) -> Result<Value, String> {
    let arguments = match input {
        Value::Null => Map::new(),
        Value::Object(members) => {
            members.iter().filter(|(_, v)| !v.is_null()).map(|(k, v)| (k.clone(), v.clone())).collect()
        }
        _ => return Err("the arguments must be a JSON object".to_owned()),
    };
    let arguments = Value::Object(arguments);
    schema.check(&arguments).map(|()| arguments)
}

/// Parses the arguments of a call as a type, after [`validate`].
///
/// # Errors
///
/// Fails, with a message for the model, if the arguments are invalid or cannot be parsed.
pub(super) fn parse<T: DeserializeOwned>(input: &Value, schema: &ParameterSchema) -> Result<T, String> {
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
        let schema = ParameterSchema::new(json!({
            "type": "object",
            "properties": { "experiment": { "type": "string" }, "limit": { "type": "integer" } },
            "required": ["experiment"],
        }));
        let check = |input: Value| validate(&input, &schema);
        assert_eq!(check(json!({ "experiment": "A", "limit": null })), Ok(json!({ "experiment": "A" })));
        assert!(check(json!({ "experiment": 7 })).unwrap_err().contains("/experiment"));
        assert!(check(json!(null)).unwrap_err().contains("experiment"));
        assert!(check(json!("{\"experiment\":")).unwrap_err().contains("object"));
        assert!(check(json!([])).is_err());
    }
}
