//! The actions of people in a test, and the state of the workspace that a test reads. The actions
//! are implemented in `acts`, which the page uses too.

use std::time::Duration;

use countersign_core::ids::{ChannelId, MessageTs, UserId};
use serde_json::{Value, json};
use tokio::{
    sync::broadcast,
    time::{Instant, timeout_at},
};

use super::{
    Error, SandboxSlack,
    acts::Pressed,
    broadcast::Change,
    events,
    faults::Fault,
    world::{
        Channel, Guest, SLACKBOT, World,
        message::{Message, StreamState},
    },
};

/// The interval at which a wait checks again without a change of the world, since the ledger may
/// have changed.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// An account other than that of a full member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Account {
    /// A guest in several channels.
    Guest,
    /// A guest in one channel.
    SingleChannelGuest,
    /// A member of another workspace, who is here through a shared channel.
    Elsewhere,
    /// An app's account.
    Bot,
    /// A deactivated account.
    Deactivated,
}

/// The way in which Slack stores a shared file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// As an uploaded file.
    Uploaded,
    /// As a snippet, like a message that is too long.
    Snippet,
    /// As an uploaded file of which messages show only the id, as in channels that are shared with other workspaces.
    LookedUp,
}

/// The element to press.
#[derive(Clone, Debug, PartialEq)]
pub enum Press {
    /// The newest element with this label, or with this action id.
    Called(String),
    /// The element with this action id and, if it is a button, this value.
    Action {
        /// The action id.
        action_id: String,
        /// The button's value, or the chosen option.
        value: Option<String>,
    },
}

impl From<&str> for Press {
    fn from(label: &str) -> Self {
        Self::Called(label.to_owned())
    }
}

impl SandboxSlack {
    /// Returns the id of a person, by name.
    ///
    /// # Panics
    ///
    /// If there is no person with that name.
    pub fn user(&self, name: &str) -> UserId {
        let world = self.server.world();
        world.user(name).map(|user| user.id.clone()).unwrap_or_else(|| panic!("there is no user `{name}`"))
    }

    /// Posts a message as a user typed it: `@countersign` and other names become mentions, the rest is escaped.
    ///
    /// # Errors
    ///
    /// [`Error::Nothing`] if there is no such user, channel or thread.
    pub fn says(&self, user: &str, channel: &str, text: &str, thread: Option<&MessageTs>) -> Result<MessageTs, Error> {
        let (user, channel) = self.server.who_and_where(user, channel)?;
        self.server.say(&user, &channel, text, thread)
    }

    /// Posts a message with files, each with its name, its content and the way in which Slack stores it.
    ///
    /// # Errors
    ///
    /// As [`SandboxSlack::says`].
    pub fn shares(
        &self,
        user: &str,
        channel: &str,
        text: &str,
        files: &[(&str, &[u8], Stored)],
        thread: Option<&MessageTs>,
    ) -> Result<MessageTs, Error> {
        let (user, channel) = self.server.who_and_where(user, channel)?;
        let files = files.iter().map(|(name, bytes, stored)| self.server.stores(name, bytes, *stored)).collect();
        self.server.share(&user, &channel, text, files, thread)
    }

    /// Edits a person's own message.
    ///
    /// # Errors
    ///
    /// [`Error::Nothing`] if it is not there.
    pub fn edits(&self, user: &str, channel: &str, ts: &MessageTs, text: &str) -> Result<(), Error> {
        let (user, channel) = self.server.who_and_where(user, channel)?;
        self.server.edit_own(&user, &channel, ts, text)
    }

    /// Deletes a person's own message.
    ///
    /// # Errors
    ///
    /// [`Error::Nothing`] if it is not there.
    pub fn deletes(&self, user: &str, channel: &str, ts: &MessageTs) -> Result<(), Error> {
        let (user, channel) = self.server.who_and_where(user, channel)?;
        self.server.delete_own(&user, &channel, ts)
    }

    /// Removes the app from the workspace: its token is refused, and the app is told by events.
    pub fn uninstalls_app(&self) {
        let error = Some("token_revoked".to_owned());
        self.server.faults().add(Fault::RefuseToken { error });
        let deliveries = events::uninstalled(&mut self.server.world(), self.server.now());
        deliveries.into_iter().for_each(|delivery| self.server.send(delivery));
    }

    /// Presses a button or chooses from a menu in a message, by label or by action id and value.
    /// Waits for the acknowledgement.
    ///
    /// # Errors
    ///
    /// [`Error::Nothing`] if there is no such element in the message or its earlier versions;
    /// [`Error::Unanswered`] if the app did not acknowledge in time.
    pub async fn clicks(
        &self,
        user: &str,
        channel: &str,
        ts: &MessageTs,
        press: impl Into<Press>,
    ) -> Result<(), Error> {
        let (user, channel) = self.server.who_and_where(user, channel)?;
        let press = press.into();
        let chosen = match &press {
            Press::Action { value: Some(value), .. } => json!(value),
            _ => Value::Null,
        };
        self.server
            .press_on_message(&user, &channel, ts, Pressed { block_id: None, press, chosen, values: Value::Null })
            .await
    }

    /// Presses as [`SandboxSlack::clicks`], for a person who is no longer in the channel and whose client still shows it.
    ///
    /// # Errors
    ///
    /// As [`SandboxSlack::clicks`].
    pub async fn presses_elsewhere(
        &self,
        user: &str,
        channel: &str,
        ts: &MessageTs,
        press: Press,
    ) -> Result<(), Error> {
        let pressed = Pressed { block_id: None, press, chosen: Value::Null, values: Value::Null };
        self.server.press_on_message(&self.user(user), &ChannelId::new(channel), ts, pressed).await
    }

    /// Presses a button in a modal or in the user's Home tab.
    ///
    /// # Errors
    ///
    /// As [`SandboxSlack::clicks`].
    pub async fn clicks_in_view(&self, user: &str, view_id: &str, press: impl Into<Press>) -> Result<(), Error> {
        let user = self.user(user);
        let press = press.into();
        let chosen = match &press {
            Press::Action { value: Some(value), .. } => json!(value),
            _ => Value::Null,
        };
        self.server.press_on_view(&user, view_id, Pressed { block_id: None, press, chosen, values: Value::Null }).await
    }

    /// Fills in and submits a modal. Fields may be given by label; see `values`. Returns true if
    /// the modal closed.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] with a text for each field that the app or Slack rejects; otherwise as
    /// [`SandboxSlack::clicks`].
    pub async fn submits(&self, user: &str, view_id: &str, values: Value) -> Result<bool, Error> {
        self.server.submit(&self.user(user), view_id, &values).await
    }

    /// Closes a modal without submitting it.
    ///
    /// # Errors
    ///
    /// [`Error::Nothing`] if it is not open.
    pub fn closes(&self, user: &str, view_id: &str) -> Result<(), Error> {
        self.server.close(&self.user(user), view_id)
    }

    /// Types a slash command. Returns the content of the app's acknowledgement.
    ///
    /// # Errors
    ///
    /// [`Error::Nothing`] for a command that the app does not have; otherwise as
    /// [`SandboxSlack::clicks`].
    pub async fn command(&self, user: &str, channel: &str, line: &str) -> Result<Option<Value>, Error> {
        let (user, channel) = self.server.who_and_where(user, channel)?;
        self.server.command(&user, &channel, line).await
    }

    /// Uses a shortcut, on a message or a global one.
    ///
    /// # Errors
    ///
    /// As [`SandboxSlack::clicks`].
    pub async fn uses_shortcut(
        &self,
        user: &str,
        callback_id: &str,
        message: Option<(&str, &MessageTs)>,
    ) -> Result<(), Error> {
        let user = self.user(user);
        let message = match message {
            Some((channel, ts)) => Some((self.server.who_and_where(user.as_str(), channel)?.1, ts.clone())),
            None => None,
        };
        self.server.shortcut(&user, callback_id, message).await
    }

    /// Opens the app's Home tab.
    pub fn opens_home(&self, user: &str) {
        self.server.open_home(&self.user(user));
    }

    /// Adds an account that is not a full member's. It joins all channels and gets a direct message
    /// with the app.
    pub fn admits(&self, name: &str, account: Account) -> UserId {
        let mut world = self.server.world();
        let id = UserId::new(world.next_id("U9"));
        let mut user = world.users[0].clone();
        (user.id, user.name, user.real_name) = (id.clone(), name.to_owned(), name.to_owned());
        match account {
            Account::Guest => user.guest = Guest::MultiChannel,
            Account::SingleChannelGuest => user.guest = Guest::SingleChannel,
            Account::Elsewhere => user.home_team = Some("T9".into()),
            Account::Bot => user.is_bot = true,
            Account::Deactivated => user.deleted = true,
        }
        world.users.push(user);
        world.channels.iter_mut().filter(|c| c.with.is_none()).for_each(|c| c.members.push(id.clone()));
        let channel = Channel {
            id: ChannelId::new(world.next_id("D9")),
            name: name.to_owned(),
            topic: String::new(),
            with: Some(id.clone()),
            members: vec![id.clone(), world.app.user.clone()],
            archived: false,
            private: false,
        };
        world.channels.push(channel);
        id
    }

    /// Creates a private channel whose members are the user, the app and some others. Only they can
    /// see it.
    pub fn founds_private_channel(&self, user: &str, name: &str, others: &[&str]) -> ChannelId {
        let members = std::iter::once(user).chain(others.iter().copied()).map(|name| self.user(name));
        let members: Vec<UserId> = members.collect();
        let mut world = self.server.world();
        let id = ChannelId::new(world.next_id("G"));
        let members = members.into_iter().chain([world.app.user.clone()]).collect();
        let (name, topic) = (name.to_owned(), String::new());
        world.channels.push(Channel {
            id: id.clone(),
            name,
            topic,
            with: None,
            members,
            archived: false,
            private: true,
        });
        id
    }

    /// Returns the public channel with this name. It is created if there is none, and everyone joins it.
    pub fn public_channel(&self, name: &str, topic: &str) -> ChannelId {
        let mut world = self.server.world();
        if let Some(known) = world.channels.iter().find(|channel| channel.with.is_none() && channel.name == name) {
            return known.id.clone();
        }
        let id = ChannelId::new(world.next_id("C"));
        let members = world.users.iter().map(|user| user.id.clone()).filter(|id| id.as_str() != SLACKBOT).collect();
        world.channels.push(Channel {
            id: id.clone(),
            name: name.to_owned(),
            topic: topic.to_owned(),
            with: None,
            members,
            archived: false,
            private: false,
        });
        id
    }

    /// Stops every stream, as Slack does some minutes after its start.
    pub fn stops_streams(&self) {
        let mut world = self.server.world();
        let messages = world.messages.values_mut().flat_map(|messages| messages.values_mut());
        messages.filter(|message| message.stream.is_some()).for_each(|message| {
            message.stream = Some(StreamState::Completed);
        });
    }

    /// Archives or unarchives a channel.
    pub fn archives(&self, channel: &str, archived: bool) {
        let mut world = self.server.world();
        let found = world.channels.iter_mut().find(|c| c.name == channel || c.id.as_str() == channel);
        if let Some(found) = found {
            found.archived = archived;
        }
    }

    /// Returns the messages of a channel that are not replies and that all members see, oldest
    /// first.
    pub fn messages(&self, channel: &str) -> Vec<Message> {
        let world = self.server.world();
        let Some(channel) = world.channel(channel) else { return Vec::new() };
        world.roots(&channel.id).cloned().collect()
    }

    /// Returns a thread: its root and the replies that all members see, oldest first.
    pub fn thread(&self, channel: &str, root: &MessageTs) -> Vec<Message> {
        let world = self.server.world();
        let Some(channel) = world.channel(channel) else { return Vec::new() };
        let first = world.message(&channel.id, root).filter(|message| !message.deleted);
        first.into_iter().chain(world.replies(&channel.id, root)).cloned().collect()
    }

    /// Returns the ephemeral messages to one person, oldest first.
    pub fn ephemerals(&self, user: &str) -> Vec<Message> {
        let user = self.user(user);
        let world = self.server.world();
        let all = world.messages.values().flat_map(|messages| messages.values());
        all.filter(|m| m.ephemeral_to.as_ref() == Some(&user) && !m.deleted).cloned().collect()
    }

    /// Returns the messages of the app in a thread, including ephemeral but not deleted ones.
    pub fn said_in(&self, channel: &str, root: &MessageTs) -> Vec<Message> {
        let world = self.server.world();
        let Some(channel) = world.channel(channel) else { return Vec::new() };
        world.thread_entries(&channel.id, root).filter(|message| message.by_app && !message.deleted).cloned().collect()
    }

    /// Removes a thread with all its messages, direct messages that link to it, and all closed
    /// views. For runs so long that the world would fill the memory. The app receives no event.
    pub fn forgets(&self, channel: &str, root: &MessageTs) {
        let mut world = self.server.world();
        if let Some(channel) = world.channel(channel).map(|channel| channel.id.clone()) {
            world.forget_thread(&channel, root);
        }
        world.views.retain(|_, view| view.open);
    }

    /// Returns a receiver of the changes from now on, in the format of the page.
    pub fn subscribe(&self) -> broadcast::Receiver<Change> {
        self.server.changes.subscribe()
    }

    /// Calls `find` on the world after each change until it finds something.
    ///
    /// # Errors
    ///
    /// [`Error::TimedOut`] after `bound`, with the newest messages.
    pub async fn wait_for<T>(
        &self,
        what: &str,
        bound: Duration,
        mut find: impl FnMut(&World) -> Option<T>,
    ) -> Result<T, Error> {
        let deadline = Instant::now() + bound;
        let mut changes = self.subscribe();
        loop {
            if let Some(found) = find(&self.server.world()) {
                return Ok(found);
            }
            if Instant::now() >= deadline {
                let last_seen = newest(&self.server.world());
                return Err(Error::TimedOut { waited_for: what.to_owned(), last_seen });
            }
            let again = deadline.min(Instant::now() + CHECK_INTERVAL);
            timeout_at(again, changes.recv()).await.ok();
        }
    }
}

fn newest(world: &World) -> String {
    let mut all: Vec<&Message> = world.messages.values().flat_map(|messages| messages.values()).collect();
    all.sort_by(|a, b| a.ts.cmp(&b.ts));
    let from = all.len().saturating_sub(10);
    all[from..]
        .iter()
        .map(|m| format!("{} {} {}: {}", m.ts, m.channel, m.user, m.words()))
        .collect::<Vec<_>>()
        .join("\n")
}
