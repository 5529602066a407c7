//! Events, such as messages, mentions and openings of the Home tab.

use countersign_core::ids::{ChannelId, DedupKey, MessageTs, TeamId, ThreadId, UserId};
use serde_json::Value;

use super::{
    Identity, Inbound, UnreadableDelivery,
    field::{present, required, text},
    file::File,
    plain,
};

/// A message that a person wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The workspace that delivered the event.
    pub team: TeamId,
    /// The channel or direct conversation.
    pub channel: ChannelId,
    /// The kind of conversation.
    pub channel_kind: ChannelKind,
    /// The person who wrote it.
    pub user: UserId,
    /// The plain text, without mentions of the bot. May be empty.
    pub text: String,
    /// The time of the message, which is also its id in the channel.
    pub ts: MessageTs,
    /// The root of the thread; `None` if the message is not in a thread yet.
    pub thread_ts: Option<MessageTs>,
    /// True if the message mentions the bot.
    pub mentions_us: bool,
    /// True if the message addresses someone other than the bot: it does not mention the bot, and it mentions a person,
    /// a group or everyone, or begins with a name.
    pub to_another: bool,
    /// The attached files.
    pub files: Vec<File>,
    /// The keys of the event and of the message, since a mention in a channel arrives as two events.
    pub dedup: Vec<DedupKey>,
}

impl Message {
    /// Returns the thread to which the message belongs, or that it would start.
    pub fn thread(&self) -> ThreadId {
        let root = self.thread_ts.clone().unwrap_or_else(|| self.ts.clone());
        ThreadId { team: self.team.clone(), channel: self.channel.clone(), root }
    }
}

/// A person edited or deleted a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageChanged {
    /// The thread to which the message belongs, or that it began.
    pub thread: ThreadId,
    /// The time of the message, which is also its id in the channel.
    pub ts: MessageTs,
    /// The person who wrote it.
    pub user: UserId,
    /// True if it was deleted.
    pub is_deleted: bool,
    /// The key of the event.
    pub dedup: DedupKey,
}

/// The kinds of conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelKind {
    /// A conversation with several people: channel, private channel or group message.
    Channel,
    /// A conversation of one person with the bot.
    Direct,
}

/// The event that a person opened the bot's Home tab.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HomeOpened {
    /// The workspace.
    pub team: TeamId,
    /// The person.
    pub user: UserId,
    /// The key of the event.
    pub dedup: DedupKey,
}

/// The event that a person pressed Slack's own Stop button in an agent session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionStopped {
    /// The thread of the session.
    pub thread: ThreadId,
    /// The person.
    pub user: UserId,
    /// The key of the event.
    pub dedup: DedupKey,
}

/// The event that a person opened a conversation with the bot, without having written anything yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversationOpened {
    /// The direct conversation with the bot.
    pub channel: ChannelId,
    /// The thread that Slack created for it, if there is one.
    pub thread: Option<MessageTs>,
    /// The key of the event.
    pub dedup: DedupKey,
}

/// The event that the bot token is no longer valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRevoked {
    /// The name of the event: `tokens_revoked` or `app_uninstalled`.
    pub event: &'static str,
    /// The key of the event.
    pub dedup: DedupKey,
}

/// Parses the body of an `event_callback`.
///
/// # Errors
///
/// [`UnreadableDelivery`] if a required field is missing.
pub fn read(body: &Value, us: &Identity) -> Result<Inbound, UnreadableDelivery> {
    if text(body, "/type") == Some("app_rate_limited") {
        return Ok(Inbound::Ignored("app_rate_limited"));
    }
    if let Some(why) = us.refuses_event(body) {
        return Ok(Inbound::Ignored(why));
    }
    match required(body, "/event/type")? {
        "message" | "app_mention" => read_message(body, us),
        "app_home_opened" if text(body, "/event/tab") == Some("messages") => match text(body, "/event/channel") {
            Some(channel) => Ok(Inbound::ConversationOpened(ConversationOpened {
                channel: channel.into(),
                thread: None,
                dedup: event_key(body)?,
            })),
            None => Ok(Inbound::Ignored("messages_tab")),
        },
        "assistant_thread_started" => Ok(Inbound::ConversationOpened(ConversationOpened {
            channel: required(body, "/event/assistant_thread/channel_id")?.into(),
            thread: text(body, "/event/assistant_thread/thread_ts").map(MessageTs::from),
            dedup: event_key(body)?,
        })),
        "agent_session_stopped" => match text(body, "/event/thread_ts") {
            Some(root) => Ok(Inbound::SessionStopped(SessionStopped {
                thread: ThreadId {
                    team: us.team_or(team(body)?),
                    channel: required(body, "/event/channel")?.into(),
                    root: root.into(),
                },
                user: required(body, "/event/user")?.into(),
                dedup: event_key(body)?,
            })),
            None => Ok(Inbound::Ignored("session_without_thread")),
        },
        "app_home_opened" => Ok(Inbound::HomeOpened(HomeOpened {
            team: us.team_or(team(body)?),
            user: required(body, "/event/user")?.into(),
            dedup: event_key(body)?,
        })),
        "tokens_revoked" => {
            let mut revoked = body["event"]["tokens"]["bot"].as_array().into_iter().flatten();
            match revoked.any(|user| user.as_str() == Some(us.user.as_str())) {
                true => Ok(Inbound::TokenRevoked(TokenRevoked { event: "tokens_revoked", dedup: event_key(body)? })),
                false => Ok(Inbound::Ignored("tokens_of_others")),
            }
        }
        "app_uninstalled" => {
            Ok(Inbound::TokenRevoked(TokenRevoked { event: "app_uninstalled", dedup: event_key(body)? }))
        }
        _ => Ok(Inbound::Ignored("event_type")),
    }
}

/// Parses a message. Messages that no person wrote, such as those of bots, are ignored. Of an edited message, only a mention
/// is a message again: it may not have mentioned the bot before.
fn read_message(body: &Value, us: &Identity) -> Result<Inbound, UnreadableDelivery> {
    let event = &body["event"];
    match text(event, "/subtype") {
        None | Some("file_share" | "thread_broadcast") => {}
        Some("bot_message") => return Ok(Inbound::Ignored("bot_message")),
        Some("message_changed" | "message_deleted") => return read_change(body, us),
        Some(_) => return Ok(Inbound::Ignored("message_subtype")),
    }
    if present(event, "/bot_id") || present(event, "/bot_profile") {
        return Ok(Inbound::Ignored("bot_message"));
    }
    if present(event, "/edited") && text(event, "/type") != Some("app_mention") {
        return Ok(Inbound::Ignored("edited"));
    }
    let user = required(event, "/user")?;
    if user == us.user.as_str() {
        return Ok(Inbound::Ignored("our_own"));
    }
    let channel = required(event, "/channel")?;
    let ts = required(event, "/ts")?;
    let direct = match text(event, "/channel_type") {
        Some(kind) => kind == "im",
        None => channel.starts_with('D'),
    };
    let wire = text(event, "/text").unwrap_or_default();
    let mentions_us = text(event, "/type") == Some("app_mention") || plain::mentions(wire, &us.user);
    Ok(Inbound::Message(Message {
        team: us.team_or(team(body)?),
        channel: channel.into(),
        channel_kind: if direct { ChannelKind::Direct } else { ChannelKind::Channel },
        user: user.into(),
        text: plain::plain(&plain::without_mentions(wire, &us.user)),
        ts: ts.into(),
        thread_ts: text(event, "/thread_ts").map(MessageTs::from),
        mentions_us,
        to_another: !mentions_us && (plain::mentions_anyone(wire) || plain::addresses_by_name(wire)),
        files: File::all(&event["files"]),
        // A message that mentions the bot has another key than one that does not, since an edit may turn one into the other.
        dedup: vec![event_key(body)?, DedupKey::new(format!("{}:{channel}:{ts}", key_of(mentions_us)))],
    }))
}

/// Returns the beginning of a message's key.
fn key_of(mentions_us: bool) -> &'static str {
    if mentions_us { "message" } else { "said" }
}

/// Parses a change of a message: an edit of its text, or its deletion. Other changes, such as the preview of a link, and
/// those of messages that no person wrote, are ignored.
fn read_change(body: &Value, us: &Identity) -> Result<Inbound, UnreadableDelivery> {
    let event = &body["event"];
    let (before, after) = (&event["previous_message"], &event["message"]);
    // The root of a thread with replies is not deleted, but replaced.
    let is_deleted = text(event, "/subtype") == Some("message_deleted") || text(after, "/subtype") == Some("tombstone");
    if !is_deleted && text(before, "/text") == text(after, "/text") {
        return Ok(Inbound::Ignored("same_text"));
    }
    let Some(user) = text(before, "/user").or_else(|| text(after, "/user").filter(|_| !is_deleted)) else {
        return Ok(Inbound::Ignored("unknown_author"));
    };
    if user == us.user.as_str() || present(before, "/bot_id") || present(after, "/bot_id") {
        return Ok(Inbound::Ignored("bot_message"));
    }
    let ts = text(event, "/deleted_ts").or_else(|| text(after, "/ts")).or_else(|| text(before, "/ts"));
    let ts: MessageTs = ts.ok_or(UnreadableDelivery("/event/message/ts"))?.into();
    let root = text(before, "/thread_ts").or_else(|| text(after, "/thread_ts")).map(MessageTs::from);
    Ok(Inbound::MessageChanged(MessageChanged {
        thread: ThreadId {
            team: us.team_or(team(body)?),
            channel: required(event, "/channel")?.into(),
            root: root.unwrap_or_else(|| ts.clone()),
        },
        ts,
        user: user.into(),
        is_deleted,
        dedup: event_key(body)?,
    }))
}

/// Returns the workspace, or the organisation if Slack names no workspace.
fn team(body: &Value) -> Result<TeamId, UnreadableDelivery> {
    text(body, "/team_id")
        .or_else(|| text(body, "/enterprise_id"))
        .map(TeamId::from)
        .ok_or(UnreadableDelivery("/team_id"))
}

/// Returns the key of the event. Event ids are unique for an app in a workspace.
fn event_key(body: &Value) -> Result<DedupKey, UnreadableDelivery> {
    let app = text(body, "/api_app_id").unwrap_or_default();
    Ok(DedupKey::new(format!("event:{app}:{}:{}", team(body)?, required(body, "/event_id")?)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn us() -> Identity {
        Identity::of("U0BOT")
    }

    fn callback(event: Value) -> Value {
        json!({
            "token": "gone", "team_id": "T1", "api_app_id": "A1", "type": "event_callback", "event_id": "Ev1",
            "event_time": 1_767_225_600, "is_ext_shared_channel": false, "event_context": "4-ey",
            "authorizations": [{ "enterprise_id": null, "team_id": "T1", "user_id": "U0BOT", "is_bot": true }],
            "event": event
        })
    }

    fn message(event: Value) -> Message {
        match read(&callback(event), &us()) {
            Ok(Inbound::Message(message)) => message,
            other => panic!("no message: {other:?}"),
        }
    }

    #[test]
    fn a_mention_and_the_message_event_are_parsed_alike() {
        let said = json!({
            "user": "U0ANA", "ts": "1767225600.000100", "client_msg_id": "0d5b", "team": "T1", "channel": "C1",
            "text": "<@U0BOT> start &lt;Math Hints&gt;", "event_ts": "1767225600.000100",
            "blocks": [{ "type": "rich_text", "block_id": "x", "elements": [{ "type": "from_the_future" }] }]
        });
        let mut mention = said.clone();
        mention["type"] = json!("app_mention");
        let mut plain = said;
        plain["type"] = json!("message");
        plain["channel_type"] = json!("channel");

        let (mention, plain) = (message(mention), message(plain));
        assert_eq!(mention, plain);
        assert_eq!(mention.text, "start <Math Hints>");
        assert!(mention.mentions_us);
        assert_eq!(mention.channel_kind, ChannelKind::Channel);
        assert_eq!(mention.thread().to_string(), "T1/C1/1767225600.000100");
        let keys: Vec<_> = mention.dedup.iter().map(DedupKey::as_str).collect();
        assert_eq!(keys, ["event:A1:T1:Ev1", "message:C1:1767225600.000100"]);
    }

    #[test]
    fn a_reply_belongs_to_the_root_of_its_thread() {
        let reply = message(json!({
            "type": "message", "channel": "D1", "channel_type": "im", "user": "U0ANA", "text": "yes",
            "ts": "1767225700.000200", "thread_ts": "1767225600.000100", "parent_user_id": "U0BOT"
        }));
        assert_eq!(reply.thread().root.as_str(), "1767225600.000100");
        assert_eq!(reply.channel_kind, ChannelKind::Direct);
        assert!(!reply.mentions_us);
    }

    #[test]
    fn a_file_with_words_is_a_message() {
        let shared = message(json!({
            "type": "message", "subtype": "file_share", "channel": "C1", "channel_type": "group", "user": "U0ANA",
            "text": "the data", "ts": "1.0", "files": [{ "id": "F1" }], "upload": false
        }));
        assert_eq!((shared.text.as_str(), shared.files.len()), ("the data", 1));
    }

    #[test]
    fn edits_and_messages_that_no_person_wrote_are_ignored() {
        let base = json!({ "type": "message", "channel": "C1", "user": "U0ANA", "text": "hm", "ts": "1.0" });
        for (field, value, why) in [
            ("bot_id", json!("B0BOT"), "bot_message"),
            ("user", json!("U0BOT"), "our_own"),
            ("subtype", json!("bot_message"), "bot_message"),
            ("subtype", json!("message_changed"), "same_text"),
            ("subtype", json!("message_deleted"), "unknown_author"),
            ("subtype", json!("channel_join"), "message_subtype"),
            ("edited", json!({ "user": "U0ANA", "ts": "2.0" }), "edited"),
            ("type", json!("reaction_added"), "event_type"),
        ] {
            let mut event = base.clone();
            event[field] = value.clone();
            assert_eq!(read(&callback(event), &us()), Ok(Inbound::Ignored(why)), "{field} = {value}");
        }
        let limited = json!({ "type": "app_rate_limited", "team_id": "T1", "api_app_id": "A1" });
        assert_eq!(read(&limited, &us()), Ok(Inbound::Ignored("app_rate_limited")));
    }

    #[test]
    fn a_mention_that_an_edit_adds_is_another_message() {
        let keys = |event: Value| message(event).dedup.last().unwrap().to_string();
        let before = json!({ "type": "message", "channel": "C1", "channel_type": "channel", "user": "U0ANA", "text": "hm", "ts": "1.0" });
        let mut after = before.clone();
        after["type"] = json!("app_mention");
        after["text"] = json!("<@U0BOT> hm");
        let first = after.clone();
        after["edited"] = json!({ "user": "U0ANA", "ts": "2.0" });
        assert_ne!(keys(before), keys(after.clone()));
        assert_eq!(keys(first), keys(after), "a message that mentioned the bot before is a repeat");
    }

    #[test]
    fn edits_and_deletions_by_people_are_parsed() {
        let before = json!({ "type": "message", "user": "U0ANA", "text": "start it", "ts": "2.0", "thread_ts": "1.0" });
        let mut after = before.clone();
        after["text"] = json!("stop it");
        let change = |more: Value| {
            let mut event = json!({ "type": "message", "subtype": "message_changed", "channel": "C1", "ts": "3.0",
                "previous_message": before, "message": after });
            event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            read(&callback(event), &us())
        };
        let thread = ThreadId { team: "T1".into(), channel: "C1".into(), root: "1.0".into() };
        let dedup = DedupKey::from("event:A1:T1:Ev1");
        let changed = |is_deleted| {
            let (thread, dedup) = (thread.clone(), dedup.clone());
            let changed = MessageChanged { thread, ts: "2.0".into(), user: "U0ANA".into(), is_deleted, dedup };
            Ok(Inbound::MessageChanged(changed))
        };
        assert_eq!(change(json!({})), changed(false));
        assert_eq!(
            change(json!({ "subtype": "message_deleted", "deleted_ts": "2.0", "message": null })),
            changed(true)
        );
        let tombstone =
            json!({ "subtype": "tombstone", "user": "USLACKBOT", "text": "This message was deleted.", "ts": "2.0" });
        assert_eq!(change(json!({ "message": tombstone })), changed(true));
        assert_eq!(change(json!({ "message": before })), Ok(Inbound::Ignored("same_text")), "such as a preview");
        let ours = json!({ "user": "U0BOT", "bot_id": "B0BOT", "text": "a card", "ts": "2.0" });
        assert_eq!(change(json!({ "previous_message": ours })), Ok(Inbound::Ignored("bot_message")));
    }

    #[test]
    fn a_revoked_token_is_told_from_that_of_a_person() {
        let revoked = |bots: &[&str]| {
            read(&callback(json!({ "type": "tokens_revoked", "tokens": { "oauth": ["U0ANA"], "bot": bots } })), &us())
        };
        let dedup = DedupKey::from("event:A1:T1:Ev1");
        assert_eq!(
            revoked(&["U0BOT"]),
            Ok(Inbound::TokenRevoked(TokenRevoked { event: "tokens_revoked", dedup: dedup.clone() }))
        );
        assert_eq!(revoked(&[]), Ok(Inbound::Ignored("tokens_of_others")));
        let gone = read(&callback(json!({ "type": "app_uninstalled" })), &us());
        assert_eq!(gone, Ok(Inbound::TokenRevoked(TokenRevoked { event: "app_uninstalled", dedup })));
    }

    #[test]
    fn the_home_tab_is_not_the_messages_tab() {
        let opened = |tab: &str| json!({ "type": "app_home_opened", "user": "U0ANA", "channel": "D1", "tab": tab });
        let home = HomeOpened { team: "T1".into(), user: "U0ANA".into(), dedup: "event:A1:T1:Ev1".into() };
        assert_eq!(read(&callback(opened("home")), &us()), Ok(Inbound::HomeOpened(home)));
        let talk = ConversationOpened { channel: "D1".into(), thread: None, dedup: "event:A1:T1:Ev1".into() };
        assert_eq!(read(&callback(opened("messages")), &us()), Ok(Inbound::ConversationOpened(talk)));
    }

    #[test]
    fn a_stopped_session_and_a_new_conversation_are_parsed() {
        let stopped = json!({
            "type": "agent_session_stopped", "channel": "C1", "thread_ts": "1.0", "user": "U0ANA",
            "streaming_message_ts": [], "event_ts": "2.0",
        });
        let thread = ThreadId { team: "T1".into(), channel: "C1".into(), root: "1.0".into() };
        let dedup = || DedupKey::from("event:A1:T1:Ev1");
        let read_stopped = SessionStopped { thread, user: "U0ANA".into(), dedup: dedup() };
        assert_eq!(read(&callback(stopped), &us()), Ok(Inbound::SessionStopped(read_stopped)));

        let started = json!({
            "type": "assistant_thread_started", "event_ts": "2.0", "assistant_thread":
            { "user_id": "U0ANA", "context": {}, "channel_id": "D1", "thread_ts": "1.0" },
        });
        let talk = ConversationOpened { channel: "D1".into(), thread: Some("1.0".into()), dedup: dedup() };
        assert_eq!(read(&callback(started), &us()), Ok(Inbound::ConversationOpened(talk)));
    }

    #[test]
    fn an_event_without_required_fields_is_unreadable() {
        assert_eq!(read(&json!({ "type": "event_callback" }), &us()), Err(UnreadableDelivery("/event/type")));
        let nobody = json!({ "type": "message", "channel": "C1", "text": "hm", "ts": "1.0" });
        assert_eq!(read(&callback(nobody), &us()), Err(UnreadableDelivery("/user")));
    }
}
