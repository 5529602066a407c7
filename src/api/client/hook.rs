//! `countersign hook`: answers a hook of a coding agent that asks whether a tool may be used (`PermissionRequest` or
//! `PreToolUse`). The hook is JSON on standard input, and so is the answer on standard output.

use std::{io::Read as _, sync::Arc};

use serde_json::{Value, json};

use super::{End, Failure, HookArgs, Http, Variables, write_out};
use crate::mcp::{Answered, Door, approve};

/// The longest hook that is read, in bytes.
const MAX_HOOK: u64 = 4 << 20;

pub(super) async fn run(arguments: &HookArgs, variables: &Variables) -> Result<End, Failure> {
    let mut text = Vec::new();
    let read = std::io::stdin().take(MAX_HOOK).read_to_end(&mut text);
    read.map_err(|error| Failure::usage(format!("cannot read the hook: {error}")))?;
    let wrong = |what: &str| Failure::usage(format!("the hook on standard input {what}"));
    let hook: Value = serde_json::from_slice(&text).map_err(|_| wrong("is not JSON"))?;
    let event = hook["hook_event_name"].as_str().unwrap_or_default();
    if !matches!(event, "PermissionRequest" | "PreToolUse") {
        return Err(wrong(&format!("is for `{event}`; expected PermissionRequest or PreToolUse")));
    }
    let (tool, input) = (hook["tool_name"].as_str().ok_or_else(|| wrong("has no tool_name"))?, &hook["tool_input"]);
    let door = Door::Outside(Arc::new(Http::new(&arguments.connection, variables)?));
    let answered = approve(&door, tool, input, arguments.wait).await;
    write_out(&answer(event, input, answered))?;
    Ok(End::Good)
}

/// Returns the answer in the form that the event has.
fn answer(event: &str, input: &Value, answered: Answered) -> Value {
    let said = match (event, answered) {
        ("PreToolUse", Answered::Allowed) => {
            json!({ "permissionDecision": "allow", "permissionDecisionReason": "Approved in Slack." })
        }
        ("PreToolUse", Answered::Denied(why)) => {
            json!({ "permissionDecision": "deny", "permissionDecisionReason": why })
        }
        (_, Answered::Allowed) => json!({ "decision": { "behavior": "allow", "updatedInput": input } }),
        (_, Answered::Denied(why)) => json!({ "decision": { "behavior": "deny", "message": why } }),
    };
    let mut said = said;
    said["hookEventName"] = event.into();
    json!({ "hookSpecificOutput": said })
}
