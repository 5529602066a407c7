//! The content of the workspace: plain data, saved as one JSON document.
//!
//! Nothing here does I/O, and the time is an argument. `timeline` and `views` change the content,
//! and notify the page and the app. Start at [`World`].

pub mod message;
mod seed;
pub mod view;

use std::collections::BTreeMap;

use countersign_core::{
    clock::Timestamp,
    ids::{ChannelId, MessageTs, TeamId, UserId},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use message::Message;
use view::View;

/// The user that posts on behalf of Slack itself.
pub const SLACKBOT: &str = "USLACKBOT";

/// The content of the workspace.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct World {
    /// The id of the workspace.
    pub team: TeamId,
    /// The name of the workspace.
    pub team_name: String,
    /// The installed app.
    pub app: App,
    /// The people and bots.
    pub users: Vec<User>,
    /// The channels and direct messages.
    pub channels: Vec<Channel>,
    /// The user groups.
    pub groups: Vec<UserGroup>,
    /// The messages by channel, oldest first, including replies, deleted and ephemeral ones.
    pub messages: BTreeMap<ChannelId, BTreeMap<MessageTs, Message>>,
    /// The modals, open or closed.
    pub views: BTreeMap<String, View>,
    /// The open modals of each person, topmost last.
    pub stacks: BTreeMap<UserId, Vec<String>>,
    /// The Home tabs of the app, by person.
    pub homes: BTreeMap<UserId, View>,
    /// The uploaded files.
    pub files: BTreeMap<String, File>,
    /// The thread status by thread, written `channel/ts`.
    pub statuses: BTreeMap<String, String>,
    /// The status of agent sessions by thread, written `channel/ts`.
    #[serde(default)]
    pub sessions: BTreeMap<String, String>,
    /// The prompts that a direct message offers before its first message.
    #[serde(default)]
    pub prompts: BTreeMap<ChannelId, Value>,
    /// The newest message that each person has read in each channel.
    pub read: BTreeMap<UserId, BTreeMap<ChannelId, MessageTs>>,
    /// The triggers: short-lived permissions to open a modal.
    pub triggers: BTreeMap<String, Trigger>,
    /// The response URLs: short-lived addresses for answers.
    pub response_urls: BTreeMap<String, ResponseUrl>,
    /// The address of the server, with which the addresses of files begin.
    #[serde(skip)]
    pub(super) url: String,
    pub(super) last_ts_micros: i64,
    pub(super) last_id: u64,
    /// The replies of each thread. Rebuilt when the world is loaded.
    #[serde(skip)]
    pub(super) threads: BTreeMap<(ChannelId, MessageTs), Vec<MessageTs>>,
}

/// An installed app.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct App {
    /// The id, `A…`.
    pub id: String,
    /// The id of its bot, `B…`.
    pub bot_id: String,
    /// The id of its user.
    pub user: UserId,
}

/// A person or a bot.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct User {
    /// The id, `U…`.
    pub id: UserId,
    /// The name after `@`.
    pub name: String,
    /// The displayed name.
    pub real_name: String,
    /// The colour of the avatar: `#rrggbb`.
    pub color: String,
    /// True if it is a bot.
    pub is_bot: bool,
    /// True if the account is deactivated.
    pub deleted: bool,
    /// The IANA name of the time zone.
    pub tz: String,
    /// The workspace of a person from another workspace, who is here through a shared channel.
    #[serde(default)]
    pub home_team: Option<TeamId>,
    /// The kind of guest.
    #[serde(default)]
    pub guest: Guest,
}

/// A kind of guest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Guest {
    /// Not a guest.
    #[default]
    No,
    /// A guest in several channels: `is_restricted`.
    MultiChannel,
    /// A guest in one channel: `is_restricted` and `is_ultra_restricted`.
    SingleChannel,
}

/// A channel or a direct message.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Channel {
    /// The id, `C…` or `D…`.
    pub id: ChannelId,
    /// The name without `#`; for a direct message the name of the person.
    pub name: String,
    /// The purpose of the channel.
    pub topic: String,
    /// The person who shares the channel with the bot, if it is a direct message.
    pub with: Option<UserId>,
    /// The members.
    pub members: Vec<UserId>,
    /// True if it accepts no more messages.
    pub archived: bool,
    /// True if only its members can see it. False for direct messages.
    #[serde(default)]
    pub private: bool,
}

impl World {
    /// Returns the workspace that a person belongs to.
    pub fn team_of(&self, user: &UserId) -> &TeamId {
        let home = self.users.iter().find(|known| known.id == *user).and_then(|known| known.home_team.as_ref());
        home.unwrap_or(&self.team)
    }
}

impl Channel {
    /// Returns true if it is a direct message.
    pub fn is_im(&self) -> bool {
        self.with.is_some()
    }

    /// Returns true if it is a direct message of several people, which Slack names by them.
    pub fn is_mpim(&self) -> bool {
        self.name.starts_with("mpdm-")
    }

    /// Returns true if `user` is a member.
    pub fn has(&self, user: &UserId) -> bool {
        self.members.contains(user)
    }
}

/// A user group.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UserGroup {
    /// The id, `S…`.
    pub id: String,
    /// The name after `@`.
    pub handle: String,
    /// The members.
    pub members: Vec<UserId>,
}

/// An uploaded file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct File {
    /// The id, `F…`.
    pub id: String,
    /// The name with its extension.
    pub name: String,
    /// The title.
    pub title: String,
    /// The description of a picture, for people who cannot see it.
    #[serde(default)]
    pub alt: String,
    /// The announced length, in bytes.
    pub length: usize,
    /// True if it was shared.
    pub complete: bool,
    /// The way in which it is stored.
    #[serde(default)]
    pub mode: Mode,
    /// True if messages show only its id, so that it has to be looked up.
    #[serde(default)]
    pub is_looked_up: bool,
    /// The content, which is stored in a separate file.
    #[serde(skip)]
    pub bytes: Vec<u8>,
}

/// The way in which Slack stores a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// A file that was uploaded.
    #[default]
    Hosted,
    /// A text that was entered as a snippet, or a message that was too long.
    Snippet,
}

impl File {
    /// Returns the media type, by the extension of its name.
    pub fn mimetype(&self) -> &'static str {
        match self.name.rsplit('.').next().unwrap_or_default() {
            "png" => "image/png",
            "jpg" | "jpeg" => "image/jpeg",
            "svg" => "image/svg+xml",
            "json" => "application/json",
            "csv" => "text/csv; charset=utf-8",
            "txt" | "md" | "jsonl" => "text/plain; charset=utf-8",
            _ if self.mode == Mode::Snippet => "text/plain; charset=utf-8",
            _ => "application/octet-stream",
        }
    }

    /// Returns the file in the format of the Web API and events. Its content is at a private address, which needs a token.
    pub fn wire(&self, world: &World) -> Value {
        let Self { id, name, title, length, mode, .. } = self;
        let in_url: String =
            name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '_' }).collect();
        let private = |rest: &str| format!("{}/files-pri/{}-{id}/{rest}{in_url}", world.url, world.team);
        let media = self.mimetype();
        json!({
            "id": id, "created": 1_700_000_000, "timestamp": 1_700_000_000, "name": name, "title": title,
            "mimetype": media.split(';').next(), "filetype": name.rsplit('.').next(), "size": length, "mode": mode,
            "is_external": false, "is_public": false, "public_url_shared": false, "file_access": "visible",
            "url_private": private(""), "url_private_download": private("download/"), "alt_txt": self.alt,
        })
    }

    /// Returns the file in the format of messages.
    pub fn wire_in_message(&self, world: &World) -> Value {
        match self.is_looked_up {
            true => {
                json!({ "id": self.id, "created": 0, "timestamp": 0, "mode": "file_access", "file_access": "check_file_info" })
            }
            false => self.wire(world),
        }
    }

    /// Returns the file in the format of the page.
    pub fn shown(&self) -> Value {
        json!({
            "id": self.id, "name": self.name, "title": self.title, "mimetype": self.mimetype(), "size": self.length,
            "url_private": format!("/workspace/file/{}", self.id), "alt_txt": self.alt,
        })
    }
}

/// A permission to show a modal to a person once.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Trigger {
    /// The person who sees the modal.
    pub user: UserId,
    /// The time of its creation. It is valid for 3 s.
    pub at: Timestamp,
    /// True if it was used.
    pub used: bool,
}

/// A short-lived address to which the app may post answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ResponseUrl {
    /// The person whose action the app may answer.
    pub user: UserId,
    /// The channel.
    pub channel: ChannelId,
    /// The message on which the person acted, if any.
    pub message: Option<MessageTs>,
    /// The thread of that message, if any.
    pub thread: Option<MessageTs>,
    /// The time of its creation. It is valid for 30 min.
    pub at: Timestamp,
    /// The number of uses, at most 5.
    pub uses: u32,
}

impl World {
    /// Returns a timestamp for an event at `now`. It is unique and greater than all earlier ones.
    pub fn next_ts(&mut self, now: Timestamp) -> MessageTs {
        self.last_ts_micros = (now.millis() * 1000).max(self.last_ts_micros + 1);
        MessageTs::new(format!("{}.{:06}", self.last_ts_micros / 1_000_000, self.last_ts_micros % 1_000_000))
    }

    /// Returns a new id, such as `Ev00000007`.
    pub fn next_id(&mut self, prefix: &str) -> String {
        self.last_id += 1;
        format!("{prefix}{:08X}", self.last_id)
    }

    /// Returns the user with this id or name.
    pub fn user(&self, id_or_name: &str) -> Option<&User> {
        self.users.iter().find(|user| user.id.as_str() == id_or_name || user.name == id_or_name)
    }

    /// Returns the channel with this id or name (with or without `#`), or the direct message with
    /// this user.
    pub fn channel(&self, id_or_name: &str) -> Option<&Channel> {
        let name = id_or_name.trim_start_matches('#');
        self.channels
            .iter()
            .find(|channel| channel.id.as_str() == name || (!channel.is_im() && channel.name == name))
            .or_else(|| self.channels.iter().find(|c| c.with.as_ref().is_some_and(|with| with.as_str() == name)))
    }

    /// Returns a message. It may be ephemeral or deleted.
    pub fn message(&self, channel: &ChannelId, ts: &MessageTs) -> Option<&Message> {
        self.messages.get(channel)?.get(ts)
    }

    pub(super) fn message_mut(&mut self, channel: &ChannelId, ts: &MessageTs) -> Option<&mut Message> {
        self.messages.get_mut(channel)?.get_mut(ts)
    }

    /// Returns the messages of a channel that are not replies and that all members see, oldest
    /// first.
    pub fn roots<'a>(&'a self, channel: &ChannelId) -> impl DoubleEndedIterator<Item = &'a Message> {
        self.messages
            .get(channel)
            .into_iter()
            .flat_map(|messages| messages.values())
            .filter(|m| m.is_root() && !m.deleted && m.ephemeral_to.is_none())
    }

    /// Returns the replies in a thread that all members see, oldest first.
    pub fn replies<'a>(
        &'a self,
        channel: &ChannelId,
        root: &MessageTs,
    ) -> impl DoubleEndedIterator<Item = &'a Message> {
        self.thread_entries(channel, root).filter(|m| !m.deleted && m.ephemeral_to.is_none())
    }

    /// Returns all replies to a message, including ephemeral and deleted ones.
    pub(super) fn thread_entries<'a>(
        &'a self,
        channel: &ChannelId,
        root: &MessageTs,
    ) -> impl DoubleEndedIterator<Item = &'a Message> {
        let messages = self.messages.get(channel);
        self.threads
            .get(&(channel.clone(), root.clone()))
            .into_iter()
            .flatten()
            .filter_map(move |ts| messages.and_then(|messages| messages.get(ts)))
    }

    pub(super) fn insert(&mut self, message: Message) {
        if let Some(root) = message.thread_ts.as_ref().filter(|root| **root != message.ts) {
            self.threads.entry((message.channel.clone(), root.clone())).or_default().push(message.ts.clone());
        }
        self.messages.entry(message.channel.clone()).or_default().insert(message.ts.clone(), message);
    }

    /// Removes a thread with its root, and the direct messages that link to it.
    pub(super) fn forget_thread(&mut self, channel: &ChannelId, root: &MessageTs) {
        for direct in self.channels.iter().filter(|channel| channel.is_im()) {
            if let Some(messages) = self.messages.get_mut(&direct.id) {
                let names = |message: &Message| json!(message.blocks).to_string().contains(root.as_str());
                messages.retain(|_, message| !names(message));
            }
        }
        let replies = self.threads.remove(&(channel.clone(), root.clone())).unwrap_or_default();
        let Some(messages) = self.messages.get_mut(channel) else { return };
        for ts in replies.iter().chain([root]) {
            messages.remove(ts);
        }
    }

    /// Builds the index of threads, after the world is loaded.
    pub(super) fn index(&mut self) {
        let messages: Vec<Message> =
            std::mem::take(&mut self.messages).into_values().flat_map(BTreeMap::into_values).collect();
        self.threads.clear();
        for message in messages {
            self.insert(message);
        }
    }

    /// Returns the number of messages that `user` has not read in `channel`, and the number of
    /// those that are direct messages or mention the user.
    pub fn unread(&self, user: &UserId, channel: &Channel) -> (usize, usize) {
        use std::ops::Bound::{Excluded, Unbounded};
        let Some(messages) = self.messages.get(&channel.id) else { return (0, 0) };
        let since = self.read.get(user).and_then(|channels| channels.get(&channel.id));
        let newer = match since {
            Some(ts) => messages.range::<MessageTs, _>((Excluded(ts), Unbounded)),
            None => messages.range::<MessageTs, _>(..),
        };
        let mention = format!("<@{user}>");
        newer.map(|(_, message)| message).filter(|m| m.user != *user && !m.deleted && m.ephemeral_to.is_none()).fold(
            (0, 0),
            |(unread, mentions), m| {
                let concerns = channel.is_im() || m.text.contains(&mention);
                (unread + usize::from(m.is_root() || concerns), mentions + usize::from(concerns))
            },
        )
    }
}
