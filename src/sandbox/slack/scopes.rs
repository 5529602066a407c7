//! The scopes that calls and deliveries need, according to Slack's documentation.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    ledger::{Attempt, Call, Recorded},
    world::{Channel, World},
};

/// Returns the scope that a method needs in a channel; `None` for methods that need no scope or do
/// not exist.
pub fn of_method(method: &str, channel: Option<&Channel>) -> Option<&'static str> {
    Some(match method {
        "assistant.threads.setStatus"
        | "chat.postMessage"
        | "chat.update"
        | "chat.delete"
        | "chat.postEphemeral"
        | "chat.startStream"
        | "chat.appendStream"
        | "chat.stopStream" => "chat:write",
        "conversations.replies" | "conversations.history" => by_kind(channel, HISTORY),
        "conversations.info" | "conversations.members" => by_kind(channel, READ),
        "conversations.open" => "im:write",
        "files.info" => "files:read",
        "files.getUploadURLExternal" | "files.completeUploadExternal" => "files:write",
        "reactions.add" => "reactions:write",
        "usergroups.users.list" | "usergroups.list" => "usergroups:read",
        "bots.info" | "users.info" | "users.list" => "users:read",
        "agents.sessions.setStatus" | "assistant.threads.setSuggestedPrompts" | "assistant.threads.setTitle" => {
            "assistant:write"
        }
        _ => return None,
    })
}

/// Returns the scope that a delivery needs; `None` for deliveries that every app receives.
pub fn of_delivery(attempt: &Attempt) -> Option<&'static str> {
    let event = &attempt.payload["event"];
    Some(match (attempt.kind.as_str(), event["type"].as_str().unwrap_or(attempt.about.as_str())) {
        ("command", _) | ("interaction", "shortcut" | "message_action") => "commands",
        ("event", "app_mention") => "app_mentions:read",
        ("event", "message") => match event["channel_type"].as_str() {
            Some("im") => HISTORY.im,
            Some("group") => HISTORY.group,
            Some("mpim") => HISTORY.mpim,
            _ => HISTORY.channel,
        },
        ("event", "agent_session_stopped" | "app_context_changed" | "assistant_thread_started") => "assistant:write",
        _ => return None,
    })
}

/// Returns the name of the event in a manifest, such as `message.channels`.
pub fn name_of_event(attempt: &Attempt) -> Option<String> {
    let event = &attempt.payload["event"];
    let kind = event["type"].as_str()?;
    Some(match (kind, event["channel_type"].as_str()) {
        ("message", Some("im")) => "message.im".to_owned(),
        ("message", Some("group")) => "message.groups".to_owned(),
        ("message", Some("mpim")) => "message.mpim".to_owned(),
        ("message", _) => "message.channels".to_owned(),
        (kind, _) => kind.to_owned(),
    })
}

/// Returns all scopes that were needed for the recorded calls and deliveries.
pub fn needed(recorded: &Recorded, world: &World) -> BTreeSet<String> {
    let calls = recorded.calls.iter().filter_map(|call| of_method(&call.method, place(call, world)));
    let deliveries = recorded.deliveries.iter().filter_map(of_delivery);
    calls.chain(deliveries).map(str::to_owned).collect()
}

/// Returns the channel that a call is about.
fn place<'a>(call: &Call, world: &'a World) -> Option<&'a Channel> {
    named(&call.body).and_then(|name| world.channel(name))
}

/// Returns the channel in the arguments of a call.
pub(super) fn named(body: &Value) -> Option<&str> {
    body["channel"].as_str().or(body["channel_id"].as_str())
}

/// The scopes of one permission, for each kind of conversation.
struct Kinds {
    channel: &'static str,
    group: &'static str,
    im: &'static str,
    mpim: &'static str,
}

const HISTORY: Kinds =
    Kinds { channel: "channels:history", group: "groups:history", im: "im:history", mpim: "mpim:history" };
const READ: Kinds = Kinds { channel: "channels:read", group: "groups:read", im: "im:read", mpim: "mpim:read" };

fn by_kind(channel: Option<&Channel>, kinds: Kinds) -> &'static str {
    match channel {
        Some(channel) if channel.is_im() => kinds.im,
        Some(channel) if channel.is_mpim() => kinds.mpim,
        Some(channel) if channel.private => kinds.group,
        _ => kinds.channel,
    }
}
