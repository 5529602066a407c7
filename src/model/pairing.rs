//! Checks the rule that the results of all tool calls in a message come first in the next message.
//!
//! Providers refuse a conversation that violates this rule, and would refuse it each time. Checking the rule here turns
//! such a fault of the program into a clear error, without a round trip.

use crate::{Block, KnownBlock, Message, Role};

/// Checks a conversation in which the roles alternate.
///
/// # Errors
///
/// A description of the fault, without the contents of messages.
pub(crate) fn check(messages: &[Message]) -> Result<(), String> {
    match (messages.first(), messages.last()) {
        (Some(first), Some(last)) if first.role == Role::User && last.role == Role::User => {}
        _ => return Err("the conversation must begin and end with a person or a tool".to_owned()),
    }
    let mut asked: Vec<&str> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let answered = leading_results(message);
        if message.content.iter().filter_map(result_of).count() != answered.len() {
            return Err(format!("message {at}: results of tools must come before anything else"));
        }
        for id in &asked {
            match answered.iter().filter(|answer| *answer == id).count() {
                1 => {}
                0 => return Err(format!("message {at}: the call {id} has no result")),
                _ => return Err(format!("message {at}: the call {id} has two results")),
            }
        }
        if let Some(stray) = answered.iter().find(|id| !asked.contains(id)) {
            return Err(format!("message {at}: {stray} answers no call of the message before"));
        }
        asked = message.content.iter().filter_map(call_id).collect();
        if !asked.is_empty() && message.role == Role::User {
            return Err(format!("message {at}: only the model calls tools"));
        }
        if let Some(twice) = asked.iter().enumerate().find(|(n, id)| asked[..*n].contains(id)) {
            return Err(format!("message {at}: two calls are named {}", twice.1));
        }
    }
    Ok(()) // the last message is not from the model, so no call is without a result
}

fn call_id(block: &Block) -> Option<&str> {
    match block {
        Block::Known(KnownBlock::ToolUse { id, .. }) => Some(id),
        _ => None,
    }
}

/// Returns the id of the call whose result a block is.
fn result_of(block: &Block) -> Option<&str> {
    match block {
        Block::Known(KnownBlock::ToolResult { tool_use_id, .. }) => Some(tool_use_id),
        _ => None,
    }
}

/// Returns the ids of the calls whose results are at the beginning of a message.
fn leading_results(message: &Message) -> Vec<&str> {
    message.content.iter().map_while(result_of).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn user(content: Value) -> Message {
        Message { role: Role::User, content: serde_json::from_value(content).unwrap() }
    }

    fn model(content: Value) -> Message {
        Message { role: Role::Assistant, content: serde_json::from_value(content).unwrap() }
    }

    fn text() -> Value {
        json!({ "type": "text", "text": "…" })
    }

    fn call(id: &str) -> Value {
        json!({ "type": "tool_use", "id": id, "name": "look", "input": {} })
    }

    fn result(id: &str) -> Value {
        json!({ "type": "tool_result", "tool_use_id": id, "content": "seen" })
    }

    #[test]
    fn answered_calls_are_valid() {
        let valid = [
            user(json!([text()])),
            model(json!([text(), call("a"), call("b")])),
            user(json!([result("b"), result("a"), text()])),
            model(json!([text()])),
            user(json!([text()])),
        ];
        assert_eq!(check(&valid), Ok(()));
    }

    #[test]
    fn faults_are_described() {
        let broken = |messages: &[Message]| check(messages).unwrap_err();
        let hello = || user(json!([text()]));
        assert!(broken(&[]).contains("begin and end"));
        assert!(broken(&[hello(), model(json!([text()]))]).contains("begin and end"));
        assert!(broken(&[model(json!([text()])), hello()]).contains("begin and end"));
        assert!(broken(&[hello(), model(json!([call("a")])), hello()]).contains("a has no result"));
        let twice = user(json!([result("a"), result("a")]));
        assert!(broken(&[hello(), model(json!([call("a")])), twice]).contains("two results"));
        let late = user(json!([text(), result("a")]));
        assert!(broken(&[hello(), model(json!([call("a")])), late]).contains("before anything else"));
        assert!(broken(&[user(json!([result("a")]))]).contains("answers no call"));
        assert!(broken(&[user(json!([call("a")]))]).contains("only the model"));
        let same = model(json!([call("a"), call("a")]));
        assert!(broken(&[hello(), same, user(json!([result("a")]))]).contains("two calls"));
    }
}
