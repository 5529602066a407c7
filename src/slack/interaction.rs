//! Interactions with buttons, modals and shortcuts.

use std::collections::BTreeMap;

use countersign_core::ids::{ChannelId, DedupKey, MessageTs, TeamId, UserId};
use serde_json::Value;

use super::{
    Identity, Inbound, UnreadableDelivery,
    field::{first, required, text},
    origin::ANOTHER_APP,
    payload::Payload,
    plain,
};

/// An interaction of a person with a message or view of the bot, or a shortcut.
#[derive(Clone, Debug, PartialEq)]
pub struct Interaction {
    /// The kind and content.
    pub kind: Kind,
    /// The person.
    pub user: UserId,
    /// The workspace. If Slack names none, it is the person's workspace, or else the organisation.
    pub team: TeamId,
    /// True if it happened in another workspace, according to Slack. It is then answered, but has no effect.
    pub elsewhere: bool,
    /// The conversation of the message, if there is a message.
    pub channel: Option<ChannelId>,
    /// The message.
    pub message_ts: Option<MessageTs>,
    /// The blocks of the message as JSON, if there is a message with blocks.
    blocks: Option<Box<str>>,
    /// The root of the message's thread. May be missing for an ephemeral message.
    pub thread_ts: Option<MessageTs>,
    /// True if only this person sees the message.
    pub is_ephemeral: bool,
    /// The address for answers to this person, valid for 30 minutes and five uses.
    pub response_url: Option<String>,
    /// The id for opening a modal, valid for 3 s and one use.
    pub trigger_id: Option<String>,
    /// The key by which a repeat of this interaction is recognised.
    pub dedup: DedupKey,
}

/// The kinds of interaction.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// Buttons and menus were used in a message, a modal or the Home tab.
    BlockActions {
        /// The elements that were used; usually one.
        actions: Vec<Action>,
        /// The modal or Home tab that the elements are in; `None` for a message.
        view: Option<View>,
    },
    /// A modal was submitted. An answer with `response_action` keeps it open.
    ViewSubmission {
        /// The modal with the entered values.
        view: View,
    },
    /// A modal was closed.
    ViewClosed {
        /// The modal.
        view: View,
    },
    /// A global shortcut was used.
    Shortcut {
        /// The id of the shortcut.
        callback_id: String,
    },
    /// A shortcut on a message was used.
    MessageAction {
        /// The id of the shortcut.
        callback_id: String,
        /// The plain text of the message.
        text: String,
    },
}

/// An element that was used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// The element's id in its block.
    pub action_id: String,
    /// The id of the block.
    pub block_id: String,
    /// The words on a button.
    pub label: Option<String>,
    /// The element's own value, or the values of the selected options.
    pub values: Vec<String>,
}

impl Action {
    /// Returns the first value, which is usually the only one.
    pub fn value(&self) -> Option<&str> {
        self.values.first().map(String::as_str)
    }
}

/// A modal or Home tab.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// Slack's id.
    pub id: String,
    /// The id assigned by the bot.
    pub callback_id: String,
    /// The data that the bot stored in it.
    pub private_metadata: String,
    /// The version of the content, for an update that must not overwrite a newer one.
    pub hash: Option<String>,
    /// The entered values, by block. Each block has one input; an empty input is an empty list.
    pub values: BTreeMap<String, Vec<String>>,
}

impl View {
    /// Returns the key of a submission of this modal. A submission closes the modal, so any further one is a repeat.
    pub fn dedup(&self) -> DedupKey {
        DedupKey::new(format!("view:{}", self.id))
    }
}

impl Interaction {
    /// Returns the blocks of the message. Empty if there is no message, or it has none.
    pub fn blocks(&self) -> Vec<Value> {
        self.blocks.as_deref().and_then(|blocks| serde_json::from_str(blocks).ok()).unwrap_or_default()
    }
}

/// Reads the payload of an interaction.
///
/// # Errors
///
/// [`UnreadableDelivery`] if a required field is missing.
pub fn read(Payload { rest, blocks }: Payload, us: &Identity) -> Result<Inbound, UnreadableDelivery> {
    let payload = &rest;
    let refused = us.refuses_interaction(payload);
    let is_press = text(payload, "/type") == Some("block_actions");
    if let Some(why) = refused.filter(|why| *why == ANOTHER_APP || !is_press) {
        return Ok(Inbound::Ignored(why));
    }
    let user = required(payload, "/user/id")?;
    let (kind, dedup) = match required(payload, "/type")? {
        "block_actions" => {
            let actions: Vec<_> = payload["actions"].as_array().into_iter().flatten().map(read_action).collect();
            let newest =
                payload["actions"].as_array().into_iter().flatten().filter_map(|a| text(a, "/action_ts")).max();
            let at = newest.or_else(|| text(payload, "/trigger_id")).ok_or(UnreadableDelivery("/actions"))?;
            let names: Vec<_> = actions.iter().map(|a| format!("{}/{}", a.block_id, a.action_id)).collect();
            let dedup = format!("click:{user}:{at}:{}", names.join(","));
            (Kind::BlockActions { actions, view: read_view(&payload["view"]).ok() }, dedup)
        }
        "view_submission" => {
            let view = read_view(&payload["view"])?;
            let dedup = format!("submit:{user}:{}", text(payload, "/trigger_id").unwrap_or(&view.id));
            (Kind::ViewSubmission { view }, dedup)
        }
        "view_closed" => {
            let view = read_view(&payload["view"])?;
            let dedup = format!("closed:{user}:{}", view.id);
            (Kind::ViewClosed { view }, dedup)
        }
        "shortcut" => {
            let callback_id = required(payload, "/callback_id")?.to_owned();
            (Kind::Shortcut { callback_id }, format!("shortcut:{}", required(payload, "/trigger_id")?))
        }
        "message_action" => {
            let callback_id = required(payload, "/callback_id")?.to_owned();
            let said = text(payload, "/message/text").unwrap_or_default();
            let text = plain::plain(&plain::without_mentions(said, &us.user));
            (Kind::MessageAction { callback_id, text }, format!("shortcut:{}", required(payload, "/trigger_id")?))
        }
        _ => return Ok(Inbound::Ignored("interaction_type")),
    };
    Ok(Inbound::Interaction(Interaction {
        kind,
        user: user.into(),
        team: first(payload, &["/team/id", "/user/team_id", "/enterprise/id"])
            .map(|named| us.team_or(named.into()))
            .ok_or(UnreadableDelivery("/team/id"))?,
        elsewhere: refused.is_some(),
        channel: first(payload, &["/channel/id", "/container/channel_id"]).map(ChannelId::from),
        message_ts: first(payload, &["/container/message_ts", "/message/ts", "/message_ts"]).map(MessageTs::from),
        blocks,
        thread_ts: first(payload, &["/message/thread_ts", "/container/thread_ts"]).map(MessageTs::from),
        is_ephemeral: payload.pointer("/container/is_ephemeral").and_then(Value::as_bool).unwrap_or_default(),
        response_url: first(payload, &["/response_url", "/response_urls/0/response_url"]).map(str::to_owned),
        trigger_id: text(payload, "/trigger_id").map(str::to_owned),
        dedup: DedupKey::new(dedup),
    }))
}

/// Parses an element that was used. A missing id becomes an empty one, which nothing handles.
fn read_action(action: &Value) -> Action {
    Action {
        action_id: text(action, "/action_id").unwrap_or_default().to_owned(),
        block_id: text(action, "/block_id").unwrap_or_default().to_owned(),
        label: text(action, "/text/text").map(str::to_owned),
        values: read_values(action),
    }
}

fn read_view(view: &Value) -> Result<View, UnreadableDelivery> {
    let inputs = view.pointer("/state/values").and_then(Value::as_object);
    let values = inputs.into_iter().flatten().map(|(block, elements)| {
        let elements = elements.as_object().into_iter().flat_map(|elements| elements.values());
        (block.clone(), elements.flat_map(read_values).collect())
    });
    Ok(View {
        id: required(view, "/id")?.to_owned(),
        callback_id: text(view, "/callback_id").unwrap_or_default().to_owned(),
        private_metadata: text(view, "/private_metadata").unwrap_or_default().to_owned(),
        hash: text(view, "/hash").map(str::to_owned),
        values: values.collect(),
    })
}

/// Returns the own value or the selected options of an element of any kind.
fn read_values(element: &Value) -> Vec<String> {
    const ONE: [&str; 9] = [
        "/value",
        "/selected_option/value",
        "/selected_user",
        "/selected_conversation",
        "/selected_channel",
        "/selected_date",
        "/selected_time",
        "/selected_date_time",
        "/rich_text_value",
    ];
    const MANY: [&str; 4] = ["/selected_options", "/selected_users", "/selected_conversations", "/selected_channels"];
    if let Some(one) = ONE.iter().find_map(|pointer| scalar(element.pointer(pointer)?)) {
        return vec![one];
    }
    let many = MANY.iter().find_map(|pointer| element.pointer(pointer)?.as_array());
    many.into_iter().flatten().filter_map(|chosen| scalar(chosen.get("value").unwrap_or(chosen))).collect()
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()).filter(|text| !text.is_empty()),
        other => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn interaction(payload: Value) -> Interaction {
        match read(payload.into(), &Identity::of("U0BOT")) {
            Ok(Inbound::Interaction(interaction)) => interaction,
            other => panic!("no interaction: {other:?}"),
        }
    }

    fn click() -> Value {
        json!({
            "type": "block_actions", "api_app_id": "A1", "token": "gone", "trigger_id": "12.34.ab",
            "user": { "id": "U0BO", "username": "bo", "name": "bo", "team_id": "T1" },
            "team": { "id": "T1", "domain": "lab" }, "enterprise": null, "is_enterprise_install": false,
            "container": { "type": "message", "message_ts": "1767225700.000200", "channel_id": "C1",
                "is_ephemeral": false, "thread_ts": "1767225600.000100" },
            "channel": { "id": "C1", "name": "general" },
            "message": { "type": "message", "user": "U0BOT", "bot_id": "B0BOT", "ts": "1767225700.000200",
                "thread_ts": "1767225600.000100", "blocks": [{ "type": "divider" }], "metadata": { "event_type": "countersign", "event_payload": { "n": 1 } } },
            "state": { "values": {} }, "response_url": "https://hooks.example.org/actions/1",
            "actions": [{ "action_id": "approve", "block_id": "b1", "type": "button", "value": "0a11",
                "text": { "type": "plain_text", "text": "Start experiment", "emoji": true },
                "action_ts": "1767225711.123456" }]
        })
    }

    #[test]
    fn a_click_is_parsed_with_its_message_and_thread() {
        let click = interaction(click());
        let Kind::BlockActions { actions, view: None } = &click.kind else { panic!("{:?}", click.kind) };
        assert_eq!((actions[0].action_id.as_str(), actions[0].value()), ("approve", Some("0a11")));
        assert_eq!(click.message_ts, Some("1767225700.000200".into()));
        assert_eq!(click.thread_ts, Some("1767225600.000100".into()));
        assert_eq!(click.blocks(), [json!({ "type": "divider" })]);
        assert_eq!(click.dedup.as_str(), "click:U0BO:1767225711.123456:b1/approve");
    }

    #[test]
    fn a_second_click_of_the_same_button_is_not_a_repeat() {
        let mut again = click();
        again["actions"][0]["action_ts"] = json!("1767225712.000000");
        assert_ne!(interaction(again).dedup, interaction(click()).dedup);
    }

    #[test]
    fn a_click_without_a_team_is_not_lost() {
        for (user_team, enterprise, expected) in [
            (json!("T2"), json!({ "id": "E1", "name": "org" }), "T2"),
            (json!(null), json!({ "id": "E1", "name": "org" }), "E1"),
        ] {
            let mut payload = click();
            payload["team"] = json!(null);
            payload["is_enterprise_install"] = json!(true);
            payload["user"]["team_id"] = user_team;
            payload["enterprise"] = enterprise;
            assert_eq!(interaction(payload).team.as_str(), expected);
        }
    }

    #[test]
    fn the_container_of_an_ephemeral_message_contains_its_channel_and_thread() {
        let mut payload = click();
        payload.as_object_mut().unwrap().remove("message");
        payload.as_object_mut().unwrap().remove("channel");
        let click = interaction(payload);
        assert_eq!((click.channel, click.thread_ts), (Some("C1".into()), Some("1767225600.000100".into())));
    }

    #[test]
    fn a_submitted_modal_contains_the_entered_values_by_block() {
        let sent = interaction(json!({
            "type": "view_submission", "team": { "id": "T1" }, "user": { "id": "U0ANA" }, "trigger_id": "5.6.cd",
            "view": { "id": "V1", "type": "modal", "callback_id": "reject", "private_metadata": "0a11", "hash": "h1",
                "state": { "values": {
                    "reason": { "text": { "type": "plain_text_input", "value": "too early" } },
                    "empty": { "text": { "type": "plain_text_input", "value": null } },
                    "status": { "pick": { "type": "static_select", "selected_option": { "value": "enrolling" } } },
                    "people": { "pick": { "type": "multi_users_select", "selected_users": ["U1", "U2"] } },
                    "tags": { "pick": { "type": "checkboxes", "selected_options": [{ "value": "a" }, { "value": "b" }] } }
                } } },
            "response_urls": []
        }));
        assert_eq!(sent.dedup.as_str(), "submit:U0ANA:5.6.cd");
        let Kind::ViewSubmission { view } = sent.kind else { panic!() };
        assert_eq!((view.callback_id.as_str(), view.private_metadata.as_str()), ("reject", "0a11"));
        let values: Vec<_> =
            view.values.iter().map(|(block, values)| format!("{block}={}", values.join("+"))).collect();
        assert_eq!(values, ["empty=", "people=U1+U2", "reason=too early", "status=enrolling", "tags=a+b"]);
    }

    #[test]
    fn shortcuts_and_closed_modals_are_parsed_and_unknown_kinds_are_ignored() {
        let by = json!({ "id": "U0ANA", "team_id": "T1" });
        let closed =
            interaction(json!({ "type": "view_closed", "user": by, "view": { "id": "V1" }, "is_cleared": false }));
        assert!(matches!(closed.kind, Kind::ViewClosed { .. }));
        let shortcut = json!({ "type": "message_action", "user": by, "callback_id": "status", "trigger_id": "1",
            "channel": { "id": "C1" }, "message_ts": "1.0", "message": { "ts": "1.0", "text": "<@U0BOT> a &amp; b", "thread_ts": "0.9" } });
        let shortcut = interaction(shortcut);
        assert_eq!(shortcut.kind, Kind::MessageAction { callback_id: "status".into(), text: "a & b".into() });
        assert_eq!(shortcut.thread_ts, Some("0.9".into()));
        let unknown = json!({ "type": "from_the_future", "user": by });
        assert_eq!(read(unknown.into(), &Identity::of("U0BOT")), Ok(Inbound::Ignored("interaction_type")));
        assert_eq!(
            read(json!({ "type": "block_actions" }).into(), &Identity::of("U0BOT")),
            Err(UnreadableDelivery("/user/id"))
        );
    }
}
