//! What there is in the workspace: plain data, saved as one JSON document.
//!
//! Nothing here talks to anybody; `timeline` and `views` change it and tell who must know. Time comes in as an
//! argument. Start at [`World`].

pub mod message;
mod seed;
pub mod view;

use std::collections::{BTreeMap, BTreeSet};

use countersign_core::{
    clock::Timestamp,
    ids::{ChannelId, MessageTs, TeamId, UserId},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use message::Message;
use view::View;

/// The user who speaks for Slack itself.
pub const SLACKBOT: &str = "USLACKBOT";

/// Everything in the workspace.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct World {
    /// Its id.
    pub team: TeamId,
    /// Its name.
    pub team_name: String,
    /// The app that is installed in it.
    pub app: App,
    /// People and bots.
    pub users: Vec<User>,
    /// Channels and direct messages.
    pub channels: Vec<Channel>,
    /// User groups, with their members.
    pub groups: Vec<UserGroup>,
    /// Messages by channel, oldest first; replies, deleted and ephemeral ones too.
    pub messages: BTreeMap<ChannelId, BTreeMap<MessageTs, Message>>,
    /// Modals that are open or were.
    pub views: BTreeMap<String, View>,
    /// The modals before each person, the topmost last.
    pub stacks: BTreeMap<UserId, Vec<String>>,
    /// The Home tab of the app, for those to whom one was published.
    pub homes: BTreeMap<UserId, View>,
    /// Uploaded files.
    pub files: BTreeMap<String, File>,
    /// “is thinking…” by thread, written `channel/ts`.
    pub statuses: BTreeMap<String, String>,
    /// How agent sessions stand, by thread, written `channel/ts`.
    #[serde(default)]
    pub sessions: BTreeMap<String, String>,
    /// The messages that are still being said bit by bit, written `channel/ts`.
    #[serde(default)]
    pub streams: BTreeSet<String>,
    /// What is offered in a direct conversation before anything was said.
    #[serde(default)]
    pub prompts: BTreeMap<ChannelId, Value>,
    /// Up to where each person has read each channel.
    pub read: BTreeMap<UserId, BTreeMap<ChannelId, MessageTs>>,
    /// Short-lived permissions to open a modal.
    pub triggers: BTreeMap<String, Trigger>,
    /// Short-lived addresses to answer to.
    pub response_urls: BTreeMap<String, ResponseUrl>,
    pub(super) last_ts_micros: i64,
    pub(super) last_id: u64,
    /// The replies of each thread; made again when the world is loaded.
    #[serde(skip)]
    pub(super) threads: BTreeMap<(ChannelId, MessageTs), Vec<MessageTs>>,
}

/// The installed app.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct App {
    /// `A…`
    pub id: String,
    /// `B…`
    pub bot_id: String,
    /// Its user.
    pub user: UserId,
}

/// A person or a bot.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct User {
    /// `U…`
    pub id: UserId,
    /// What follows `@`.
    pub name: String,
    /// What is shown.
    pub real_name: String,
    /// Of the avatar: `#rrggbb`.
    pub color: String,
    /// Whether it is no person.
    pub is_bot: bool,
    /// Whether the account was closed.
    pub deleted: bool,
    /// IANA name of the time zone.
    pub tz: String,
    /// The workspace of a person who comes from another one, by a shared channel.
    #[serde(default)]
    pub home_team: Option<TeamId>,
    /// Whether it is a guest, and of which kind.
    #[serde(default)]
    pub guest: Guest,
}

/// Whether an account is that of a guest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Guest {
    /// It is not.
    #[default]
    No,
    /// In several channels: `is_restricted`.
    MultiChannel,
    /// In one channel: `is_restricted` and `is_ultra_restricted`.
    SingleChannel,
}

/// A channel or a direct message.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Channel {
    /// `C…` or `D…`
    pub id: ChannelId,
    /// Without `#`; for a direct message the name of the person.
    pub name: String,
    /// What the channel is for.
    pub topic: String,
    /// The person with whom the bot talks here, if it is a direct message.
    pub with: Option<UserId>,
    /// Who reads and writes here.
    pub members: Vec<UserId>,
    /// Whether it takes no more messages.
    pub archived: bool,
    /// Whether only its members know of it. A direct message is not meant.
    #[serde(default)]
    pub private: bool,
}

impl World {
    /// The workspace that a person belongs to.
    pub fn team_of(&self, user: &UserId) -> &TeamId {
        let home = self.users.iter().find(|known| known.id == *user).and_then(|known| known.home_team.as_ref());
        home.unwrap_or(&self.team)
    }
}

impl Channel {
    /// Whether it is a direct message.
    pub fn is_im(&self) -> bool {
        self.with.is_some()
    }

    /// Whether `user` reads and writes here.
    pub fn has(&self, user: &UserId) -> bool {
        self.members.contains(user)
    }
}

/// A user group.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UserGroup {
    /// `S…`
    pub id: String,
    /// What follows `@`.
    pub handle: String,
    /// Who belongs to it.
    pub members: Vec<UserId>,
}

/// An uploaded file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct File {
    /// `F…`
    pub id: String,
    /// With its ending.
    pub name: String,
    /// What is shown.
    pub title: String,
    /// How many bytes were announced.
    pub length: usize,
    /// Whether it was shared.
    pub complete: bool,
    /// What is in it; lies in a file of its own.
    #[serde(skip)]
    pub bytes: Vec<u8>,
}

impl File {
    /// By the ending of its name.
    pub fn mimetype(&self) -> &'static str {
        match self.name.rsplit('.').next().unwrap_or_default() {
            "png" => "image/png",
            "jpg" | "jpeg" => "image/jpeg",
            "svg" => "image/svg+xml",
            "json" => "application/json",
            "csv" => "text/csv; charset=utf-8",
            "txt" | "md" | "jsonl" => "text/plain; charset=utf-8",
            _ => "application/octet-stream",
        }
    }

    /// As it stands in a message.
    pub fn shown(&self) -> Value {
        json!({
            "id": self.id, "name": self.name, "title": self.title, "mimetype": self.mimetype(), "size": self.length,
            "url_private": format!("/workspace/file/{}", self.id),
        })
    }
}

/// A permission to open one modal before one person.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Trigger {
    /// Before whom.
    pub user: UserId,
    /// Since when; 3 s long.
    pub at: Timestamp,
    /// Whether it was made use of.
    pub used: bool,
}

/// An address to which the app may answer for a while.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ResponseUrl {
    /// Who did something.
    pub user: UserId,
    /// Where.
    pub channel: ChannelId,
    /// On which message, if it was one.
    pub message: Option<MessageTs>,
    /// In which thread, if it was one.
    pub thread: Option<MessageTs>,
    /// Since when; 30 min long.
    pub at: Timestamp,
    /// How often it was used; 5 times at most.
    pub uses: u32,
}

impl World {
    /// A timestamp for something that happens now: unique, and greater than every one before.
    pub fn next_ts(&mut self, now: Timestamp) -> MessageTs {
        self.last_ts_micros = (now.millis() * 1000).max(self.last_ts_micros + 1);
        MessageTs::new(format!("{}.{:06}", self.last_ts_micros / 1_000_000, self.last_ts_micros % 1_000_000))
    }

    /// A fresh id such as `Ev00000007`.
    pub fn next_id(&mut self, prefix: &str) -> String {
        self.last_id += 1;
        format!("{prefix}{:08X}", self.last_id)
    }

    /// The user with this id or name.
    pub fn user(&self, id_or_name: &str) -> Option<&User> {
        self.users.iter().find(|user| user.id.as_str() == id_or_name || user.name == id_or_name)
    }

    /// The channel with this id or name (`#` or not), or the direct message with this user.
    pub fn channel(&self, id_or_name: &str) -> Option<&Channel> {
        let name = id_or_name.trim_start_matches('#');
        self.channels
            .iter()
            .find(|channel| channel.id.as_str() == name || (!channel.is_im() && channel.name == name))
            .or_else(|| self.channels.iter().find(|c| c.with.as_ref().is_some_and(|with| with.as_str() == name)))
    }

    /// One message; ephemeral and deleted ones too.
    pub fn message(&self, channel: &ChannelId, ts: &MessageTs) -> Option<&Message> {
        self.messages.get(channel)?.get(ts)
    }

    pub(super) fn message_mut(&mut self, channel: &ChannelId, ts: &MessageTs) -> Option<&mut Message> {
        self.messages.get_mut(channel)?.get_mut(ts)
    }

    /// What was said in a channel outside threads, oldest first, that everybody sees.
    pub fn roots<'a>(&'a self, channel: &ChannelId) -> impl DoubleEndedIterator<Item = &'a Message> {
        self.messages
            .get(channel)
            .into_iter()
            .flat_map(|messages| messages.values())
            .filter(|m| m.is_root() && !m.deleted && m.ephemeral_to.is_none())
    }

    /// The replies in a thread, oldest first, that everybody sees.
    pub fn replies<'a>(
        &'a self,
        channel: &ChannelId,
        root: &MessageTs,
    ) -> impl DoubleEndedIterator<Item = &'a Message> {
        self.thread_entries(channel, root).filter(|m| !m.deleted && m.ephemeral_to.is_none())
    }

    /// What was said below a message, also for one person alone or taken back since.
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

    /// Drops a thread, its root included, and direct messages with links into it.
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

    /// Makes the index of threads, after the world was loaded.
    pub(super) fn index(&mut self) {
        let messages: Vec<Message> =
            std::mem::take(&mut self.messages).into_values().flat_map(BTreeMap::into_values).collect();
        self.threads.clear();
        for message in messages {
            self.insert(message);
        }
    }

    /// How many messages `user` has not read in `channel`, and how many of those concern them.
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
