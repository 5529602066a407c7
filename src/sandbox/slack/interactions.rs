//! The payloads that the app receives when a person presses a button, submits or closes a view, or
//! types a command, in Slack's format.

use countersign_core::ids::{ChannelId, MessageTs, UserId};
use serde_json::{Value, json};

use super::{
    server::Server,
    world::{ResponseUrl, Trigger, World, message::Message, view::View},
};

/// The number of new triggers or addresses after which expired ones are removed. Checking all of
/// them at each click would make clicks slower the more there are.
const SWEEP_EVERY: usize = 1_024;

impl Server {
    /// Creates a short-lived permission to show a modal to `user`.
    pub(super) fn trigger(&self, world: &mut World, user: &UserId) -> String {
        let now = self.now();
        if world.triggers.len() % SWEEP_EVERY == SWEEP_EVERY - 1 {
            world.triggers.retain(|_, trigger| now.since(trigger.at).as_secs() < 60);
        }
        let id = format!("{}.{}.{}", now.millis(), world.next_id(""), uuid::Uuid::new_v4().simple());
        world.triggers.insert(id.clone(), Trigger { user: user.clone(), at: now, used: false });
        id
    }

    /// Creates an address for answers to an action of `user`.
    pub(super) fn response_url(
        &self,
        world: &mut World,
        user: &UserId,
        channel: &ChannelId,
        message: Option<&Message>,
    ) -> String {
        let now = self.now();
        if world.response_urls.len() % SWEEP_EVERY == SWEEP_EVERY - 1 {
            world.response_urls.retain(|_, url| now.since(url.at).as_secs() < 3_600);
        }
        let id = uuid::Uuid::new_v4().simple().to_string();
        let thread = message.filter(|message| !message.is_root()).map(|message| message.root().clone());
        world.response_urls.insert(
            id.clone(),
            ResponseUrl {
                user: user.clone(),
                channel: channel.clone(),
                message: message.map(|message| message.ts.clone()),
                thread,
                at: now,
                uses: 0,
            },
        );
        format!("{}/response/{id}", self.url)
    }

    /// Returns the payload of `block_actions` on a message.
    pub(super) fn pressed_on_message(
        &self,
        world: &mut World,
        user: &UserId,
        message: &Message,
        action: Value,
        values: &Value,
    ) -> Value {
        let mut payload = self.interaction("block_actions", world, user);
        let ephemeral = message.ephemeral_to.is_some();
        payload["container"] = json!({
            "type": "message", "message_ts": message.ts, "channel_id": message.channel, "is_ephemeral": ephemeral,
        });
        if let Some(thread) = &message.thread_ts {
            payload["container"]["thread_ts"] = json!(thread);
        }
        payload["channel"] = json!({ "id": message.channel, "name": channel_name(world, &message.channel) });
        if !ephemeral {
            payload["message"] = whole(message, world);
        }
        let values = super::values::filled_in(&message.blocks, values, &Value::Null);
        payload["state"] = json!({ "values": with_action(values, &action) });
        payload["response_url"] = json!(self.response_url(world, user, &message.channel, Some(message)));
        payload["actions"] = json!([action]);
        payload
    }

    /// Returns the payload of `block_actions` on a modal or Home tab.
    pub(super) fn pressed_on_view(&self, world: &mut World, user: &UserId, view: &View, action: Value) -> Value {
        let mut payload = self.interaction("block_actions", world, user);
        payload["container"] = json!({ "type": "view", "view_id": view.id });
        payload["view"] = view.wire(world);
        payload["actions"] = json!([action]);
        payload
    }

    /// Returns the payload of `view_submission`.
    pub(super) fn submitted(&self, world: &mut World, user: &UserId, view: &View) -> Value {
        let mut payload = self.interaction("view_submission", world, user);
        payload["view"] = view.wire(world);
        payload["response_urls"] = json!([]);
        payload
    }

    /// Returns the payload of `view_closed`, which has no trigger.
    pub(super) fn closed(&self, world: &mut World, user: &UserId, view: &View, cleared: bool) -> Value {
        let mut payload = self.interaction("view_closed", world, user);
        payload.as_object_mut().expect("it is an object").remove("trigger_id");
        payload["view"] = view.wire(world);
        payload["is_cleared"] = json!(cleared);
        payload
    }

    /// Returns the payload of `block_suggestion` for a menu in a message, which has no trigger.
    pub(super) fn suggestion_wanted(&self, world: &mut World, user: &UserId, message: &Message) -> Value {
        let mut payload = self.interaction("block_suggestion", world, user);
        payload.as_object_mut().expect("it is an object").remove("trigger_id");
        payload["container"] = json!({ "type": "message", "message_ts": message.ts, "channel_id": message.channel, "is_ephemeral": false });
        payload["channel"] = json!({ "id": message.channel, "name": channel_name(world, &message.channel) });
        payload["message"] = whole(message, world);
        payload
    }

    /// Returns the payload of `message_action`, or of `shortcut` if there is no message.
    pub(super) fn shortcut_used(
        &self,
        world: &mut World,
        user: &UserId,
        callback_id: &str,
        message: Option<&Message>,
    ) -> Value {
        let kind = if message.is_some() { "message_action" } else { "shortcut" };
        let mut payload = self.interaction(kind, world, user);
        payload["callback_id"] = json!(callback_id);
        payload["action_ts"] = json!(world.next_ts(self.now()));
        if let Some(message) = message {
            payload["channel"] = json!({ "id": message.channel, "name": channel_name(world, &message.channel) });
            payload["message"] = whole(message, world);
            payload["message_ts"] = json!(message.ts);
            payload["response_url"] = json!(self.response_url(world, user, &message.channel, Some(message)));
        }
        payload
    }

    /// Returns the fields of a slash command.
    pub(super) fn command_typed(
        &self,
        world: &mut World,
        user: &UserId,
        channel: &ChannelId,
        command: &str,
        text: &str,
    ) -> Value {
        json!({
            "token": "legacy-verification-token", "team_id": world.team, "team_domain": "learning-lab",
            "channel_id": channel, "channel_name": channel_name(world, channel), "user_id": user,
            "user_name": user_name(world, user), "command": command, "text": text, "api_app_id": world.app.id,
            "is_enterprise_install": "false", "response_url": self.response_url(world, user, channel, None),
            "trigger_id": self.trigger(world, user),
        })
    }

    fn interaction(&self, kind: &str, world: &mut World, user: &UserId) -> Value {
        let trigger = self.trigger(world, user);
        let name = user_name(world, user);
        json!({
            "type": kind, "api_app_id": world.app.id, "token": "legacy-verification-token", "trigger_id": trigger,
            "team": { "id": world.team, "domain": "learning-lab" }, "enterprise": null, "is_enterprise_install": false,
            "user": { "id": user, "username": name, "name": name, "team_id": world.team_of(user) },
        })
    }
}

/// Returns the message in the format of interactions: with its metadata, which events do not always
/// contain.
fn whole(message: &Message, world: &World) -> Value {
    let mut whole = message.wire(world);
    if let Some(metadata) = &message.metadata {
        whole["metadata"] = metadata.clone();
    }
    whole
}

fn with_action(mut values: Value, action: &Value) -> Value {
    let (Some(block), Some(id)) = (action["block_id"].as_str(), action["action_id"].as_str()) else { return values };
    if values[block][id].is_object() {
        let mut value = action.clone();
        let kept = value.as_object_mut().expect("an action is an object");
        kept.retain(|key, _| key == "type" || key == "value" || key.starts_with("selected_"));
        values[block][id] = value;
    }
    values
}

fn channel_name(world: &World, channel: &ChannelId) -> String {
    match world.channel(channel.as_str()) {
        Some(channel) if channel.is_im() => "directmessage".to_owned(),
        Some(channel) => channel.name.clone(),
        None => String::new(),
    }
}

fn user_name(world: &World, user: &UserId) -> String {
    world.user(user.as_str()).map(|user| user.name.clone()).unwrap_or_default()
}

/// Returns the root of the thread that a reply to `ts` belongs to.
pub(super) fn root_of(world: &World, channel: &ChannelId, ts: &MessageTs) -> Option<MessageTs> {
    world.message(channel, ts).filter(|message| message.ephemeral_to.is_none()).map(|message| message.root().clone())
}
