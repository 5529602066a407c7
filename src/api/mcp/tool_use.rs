//! Permission prompts: whether an agent may use one of its own tools with exactly this input.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    Call, Door, LONG_WAIT, Waiting, in_words, is_undecided,
    tools::{claim, wrong_arguments},
};
use crate::{
    asked::payload_digest,
    server::WHILE_OPEN,
    shape::{Kind, Member, member},
};

/// The input of the tool, as Claude Code sends it.
pub(super) const INPUT: &[Member] = &[
    member("tool_name", true, Kind::Line(1, 200), "The tool."),
    member("input", true, Kind::Payload, "Its input."),
    member("tool_use_id", false, Kind::Line(1, 200), "The id of the use."),
    member("wait_seconds", false, Kind::Integer, "How long to wait for a decision: 240 seconds if it is left out."),
];

/// The most values that a card shows.
const MAX_FIELDS: usize = 20;

/// The longest label of a value, in characters.
const MAX_LABEL: usize = 60;

/// The answer to a permission prompt.
pub(crate) enum Answered {
    /// People approved it, and the approval was claimed.
    Allowed,
    /// It must not be used now.
    Denied(String),
}

/// Answers the tool call: `{"behavior": "allow", "updatedInput": …}` or `{"behavior": "deny", "message": …}`. Arguments
/// that a later agent adds do not matter.
pub(super) async fn prompted(waiting: &Waiting<'_>, mut given: Value) -> Value {
    if let Some(arguments) = given.as_object_mut() {
        arguments.retain(|name, _| INPUT.iter().any(|member| member.name == name));
    }
    if let Some(wrong) = wrong_arguments(&given, INPUT) {
        return json!({ "behavior": "deny", "message": in_words(&wrong) });
    }
    let tool = given["tool_name"].as_str().unwrap_or_default();
    let wait = given["wait_seconds"].as_u64().map_or(LONG_WAIT, Duration::from_secs).min(LONG_WAIT);
    match answer(waiting, tool, &given["input"], wait).await {
        Ok(Answered::Allowed) => json!({ "behavior": "allow", "updatedInput": given["input"] }),
        Ok(Answered::Denied(message)) => json!({ "behavior": "deny", "message": message }),
        Err(problem) => json!({ "behavior": "deny", "message": in_words(&problem) }),
    }
}

/// Asks people about the use of a tool, over the network, and waits for at most this time.
pub(crate) async fn approve(door: &Door, tool: &str, input: &Value, wait: Duration) -> Answered {
    let answered = answer(&Waiting::new(door, None), tool, input, wait).await;
    answered.unwrap_or_else(|problem| Answered::Denied(in_words(&problem)))
}

async fn answer(waiting: &Waiting<'_>, tool: &str, input: &Value, wait: Duration) -> Result<Answered, Value> {
    let policies = waiting.door.call(Call::get("/v1/policies")).await?;
    let mut policies = policies["data"].as_array().into_iter().flatten();
    let Some(policy) = policies.find(|policy| policy["tool_use"] == true) else {
        let detail = "The key has no policy for the use of tools. Its settings need tool_policy, such as \
                      tool_policy = \"agents\".";
        return Err(json!({ "detail": detail }));
    };
    let payload = json!({ "tool": tool, "input": input });
    let title: String = format!("Use {tool}").chars().take(150).collect();
    let body = json!({
        "policy": policy["name"], "title": title, "reason": "An agent is about to use this tool.",
        "change": { "kind": "tool_use", "target": tool, "payload": payload, "fields": fields(input) },
    });
    let asked = waiting.door.call(Call::post("/v1/approvals", &body).under(WHILE_OPEN)).await?;
    let seen = waiting.decided(asked, wait).await?;
    let id = seen["id"].as_str().unwrap_or_default();
    match seen["state"].as_str().unwrap_or_default() {
        "approved" => {
            let digest = payload_digest(&payload).unwrap_or_default(); // it was accepted, so it has one
            claim(waiting, id, &digest).await?;
            // Agents do not come back, so nothing more is waited for. A key without the right leaves that to people.
            let report = json!({ "result": "unknown", "summary": "The agent uses the tool itself and reports nothing." });
            waiting.door.call(Call::post(format!("/v1/approvals/{id}/outcome"), &report)).await.ok();
            Ok(Answered::Allowed)
        }
        _ if is_undecided(&seen) => Ok(Answered::Denied(
            "Nobody has decided yet; try again with the same input, which finds the same card. Do not look for another way."
                .to_owned(),
        )),
        state => {
            let last = seen["decisions"].as_array().and_then(|decisions| decisions.last());
            let reason = last.and_then(|last| last["reason"].as_str()).map(|reason| format!(": {reason}"));
            Ok(Answered::Denied(format!("It was {state}{}", reason.unwrap_or_else(|| ".".to_owned()))))
        }
    }
}

/// Returns the fields of the card: the tool, and the plain values of the input.
fn fields(input: &Value) -> Vec<Value> {
    let plain = |value: &Value| !value.is_object() && !value.is_array();
    let named = input.as_object().into_iter().flatten();
    let named = named.filter(|(name, value)| {
        plain(value) && !name.trim().is_empty() && name.chars().count() <= MAX_LABEL && !name.contains(char::is_control)
    });
    let field = |name: &String| json!({ "label": name, "pointer": format!("/input/{}", name.replace('~', "~0").replace('/', "~1")) });
    let tool = json!({ "label": "Tool", "pointer": "/tool" });
    std::iter::once(tool).chain(named.map(|(name, _)| field(name))).take(MAX_FIELDS).collect()
}
