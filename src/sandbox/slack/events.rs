//! The events about messages and the Home tab that the app receives, in Slack's format.
//!
//! The app receives all messages in its conversations. These include its own, which it must
//! recognise itself.

use countersign_core::{clock::Timestamp, emoji, ids::UserId};
use serde_json::{Value, json};

use super::{
    delivery::{Delivery, Kind},
    world::{Channel, SLACKBOT, World, message::Message},
};

/// Returns the deliveries for a new message. A mention is delivered twice: as a mention and as a
/// channel message.
pub(super) fn posted(message: &Message, world: &mut World, now: Timestamp) -> Vec<Delivery> {
    let Some(channel) = receiving_channel(message, world) else { return Vec::new() };
    let mut event = message.wire(world);
    event["channel"] = json!(message.channel);
    event["event_ts"] = json!(message.ts);
    event["channel_type"] = json!(channel_type(&channel));
    if !message.by_app {
        event["text"] = json!(emoji::to_names(&message.text));
        event["client_msg_id"] = json!(client_msg_id(message));
        event["blocks"] = json!([rich_text(&message.text)]);
    }
    if let Some(metadata) = &message.metadata {
        event["metadata"] = metadata.clone();
    }
    if !message.files.is_empty() {
        event["subtype"] = json!("file_share");
    }
    let mut deliveries = Vec::new();
    if is_mention(message, &channel, world) {
        let mut mention = event.clone();
        mention["type"] = json!("app_mention");
        mention.as_object_mut().expect("it is an object").remove("channel_type");
        deliveries.push(envelope(mention, world, now));
    }
    deliveries.push(envelope(event, world, now));
    deliveries
}

/// Returns the deliveries for an edited message.
pub(super) fn changed(before: &Message, after: &Message, world: &mut World, now: Timestamp) -> Vec<Delivery> {
    let Some(channel) = receiving_channel(after, world) else { return Vec::new() };
    let ts = world.next_ts(now);
    let event = json!({
        "type": "message", "subtype": "message_changed", "hidden": true, "channel": after.channel,
        "channel_type": channel_type(&channel), "ts": ts, "event_ts": ts,
        "message": after.wire(world), "previous_message": before.wire(world),
    });
    let mut deliveries = vec![envelope(event, world, now)];
    if is_mention(after, &channel, world) {
        let mut mention = after.wire(world);
        mention["type"] = json!("app_mention");
        mention["channel"] = json!(after.channel);
        mention["event_ts"] = json!(ts);
        mention["blocks"] = json!([rich_text(&after.text)]);
        deliveries.push(envelope(mention, world, now));
    }
    deliveries
}

/// Returns true if a person's message in a channel mentions the app. Slack delivers such a mention, also after an edit.
fn is_mention(message: &Message, channel: &Channel, world: &World) -> bool {
    let mentioned = message.text.contains(&format!("<@{}>", world.app.user));
    mentioned && !channel.is_im() && !message.by_app
}

/// Returns the deliveries for a deleted message. The root of a thread with replies becomes a tombstone.
pub(super) fn deleted(message: &Message, world: &mut World, now: Timestamp) -> Vec<Delivery> {
    let Some(channel) = receiving_channel(message, world) else { return Vec::new() };
    let ts = world.next_ts(now);
    if message.is_root() && world.replies(&message.channel, &message.ts).next().is_some() {
        let mut tombstone = json!({
            "type": "message", "subtype": "tombstone", "user": SLACKBOT, "text": "This message was deleted.",
            "hidden": true, "ts": message.ts, "thread_ts": message.ts,
        });
        tombstone["reply_count"] = json!(world.replies(&message.channel, &message.ts).count());
        let event = json!({
            "type": "message", "subtype": "message_changed", "hidden": true, "channel": message.channel,
            "channel_type": channel_type(&channel), "ts": ts, "event_ts": ts, "message": tombstone,
            "previous_message": message.wire(world),
        });
        return vec![envelope(event, world, now)];
    }
    let event = json!({
        "type": "message", "subtype": "message_deleted", "hidden": true, "channel": message.channel,
        "channel_type": channel_type(&channel), "ts": ts, "event_ts": ts, "deleted_ts": message.ts,
        "previous_message": message.wire(world),
    });
    vec![envelope(event, world, now)]
}

/// Returns the delivery for a person opening the app's Home tab.
pub(super) fn home_opened(user: &UserId, world: &mut World, now: Timestamp) -> Delivery {
    let channel = world.channel(user.as_str()).map(|channel| channel.id.clone());
    let ts = world.next_ts(now);
    let mut event = json!({
        "type": "app_home_opened", "user": user, "channel": channel, "tab": "home", "event_ts": ts,
    });
    if let Some(view) = world.homes.get(user) {
        event["view"] = view.wire(world);
    }
    envelope(event, world, now)
}

/// Returns the delivery for a person opening the app's Messages tab.
pub(super) fn talk_opened(user: &UserId, world: &mut World, now: Timestamp) -> Delivery {
    let channel = world.channel(user.as_str()).map(|channel| channel.id.clone());
    let ts = world.next_ts(now);
    let event = json!({
        "type": "app_home_opened", "user": user, "channel": channel, "tab": "messages", "event_ts": ts,
    });
    envelope(event, world, now)
}

/// Returns the deliveries after which the app's token is no longer valid.
pub(super) fn uninstalled(world: &mut World, now: Timestamp) -> [Delivery; 2] {
    let tokens = json!({ "oauth": [], "bot": [world.app.user] });
    [json!({ "type": "tokens_revoked", "tokens": tokens }), json!({ "type": "app_uninstalled" })]
        .map(|event| envelope(event, world, now))
}

pub(super) fn envelope(event: Value, world: &mut World, now: Timestamp) -> Delivery {
    let id = world.next_id("Ev");
    let about = match event["subtype"].as_str() {
        Some(subtype) => format!("message/{subtype}"),
        None => event["type"].as_str().unwrap_or_default().to_owned(),
    };
    let shared = event["user_team"].is_string();
    let payload = json!({
        "token": "legacy-verification-token", "team_id": world.team, "context_team_id": world.team,
        "context_enterprise_id": null, "api_app_id": world.app.id, "event": event,
        "type": "event_callback", "event_id": id, "event_time": now.seconds(),
        "authorizations": [{
            "enterprise_id": null, "team_id": world.team, "user_id": world.app.user, "is_bot": true,
            "is_enterprise_install": false,
        }],
        "is_ext_shared_channel": shared, "event_context": format!("4-{id}"),
    });
    Delivery { kind: Kind::Event, id, about, payload, answer: None }
}

/// Returns the channel of a message if the app receives its events.
fn receiving_channel(message: &Message, world: &World) -> Option<Channel> {
    let channel = world.channel(message.channel.as_str())?;
    (message.ephemeral_to.is_none() && channel.has(&world.app.user)).then(|| channel.clone())
}

fn channel_type(channel: &Channel) -> &'static str {
    match channel {
        channel if channel.is_im() => "im",
        channel if channel.is_mpim() => "mpim",
        channel if channel.private => "group",
        _ => "channel",
    }
}

fn client_msg_id(message: &Message) -> String {
    let digits: String = message.ts.as_str().chars().filter(char::is_ascii_digit).collect();
    format!("00000000-0000-4000-8000-{:0>12}", &digits[digits.len().saturating_sub(12)..])
}

/// Converts typed text to a rich-text block, as Slack's clients do.
fn rich_text(text: &str) -> Value {
    let mut elements = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find("<@") {
        let Some(length) = rest[start..].find('>') else { break };
        push_text(&mut elements, &rest[..start]);
        elements.push(json!({ "type": "user", "user_id": &rest[start + 2..start + length] }));
        rest = &rest[start + length + 1..];
    }
    push_text(&mut elements, rest);
    json!({
        "type": "rich_text", "block_id": "typed",
        "elements": [{ "type": "rich_text_section", "elements": elements }],
    })
}

fn push_text(elements: &mut Vec<Value>, text: &str) {
    if !text.is_empty() {
        let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
        elements.push(json!({ "type": "text", "text": text }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typed_text_becomes_rich_text() {
        let block = rich_text("<@U_BOT> is 1 &lt; 2?");
        let elements = &block["elements"][0]["elements"];
        assert_eq!(elements[0], json!({ "type": "user", "user_id": "U_BOT" }));
        assert_eq!(elements[1], json!({ "type": "text", "text": " is 1 < 2?" }));
    }
}
