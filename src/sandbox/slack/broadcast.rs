//! The changes of which the page and waiting tests are notified, in the format of the page's API.

use countersign_core::ids::{ChannelId, MessageTs, UserId};
use serde::Serialize;
use serde_json::Value;

use super::world::{World, message::Message, view::View};

/// A change in the workspace.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Change {
    /// A message was posted.
    Message {
        /// The channel.
        channel: ChannelId,
        /// The message in the format of the page.
        message: Value,
    },
    /// A message or its attachments changed.
    MessageChanged {
        /// The channel.
        channel: ChannelId,
        /// The changed message.
        message: Value,
    },
    /// A message was deleted.
    MessageDeleted {
        /// The channel.
        channel: ChannelId,
        /// The remains of the message.
        message: Value,
        /// The only person who saw it, if it was ephemeral.
        #[serde(skip)]
        only: Option<UserId>,
    },
    /// An ephemeral message was posted.
    Ephemeral {
        /// The channel.
        channel: ChannelId,
        /// The person who sees it.
        #[serde(skip)]
        user: UserId,
        /// The message.
        message: Value,
    },
    /// A modal opened.
    ViewOpen {
        /// The person who sees it.
        #[serde(skip)]
        user: UserId,
        /// The modal.
        view: Value,
    },
    /// A modal changed.
    ViewUpdate {
        /// The person who sees it.
        #[serde(skip)]
        user: UserId,
        /// The modal.
        view: Value,
    },
    /// A modal opened above another.
    ViewPush {
        /// The person who sees it.
        #[serde(skip)]
        user: UserId,
        /// The modal.
        view: Value,
    },
    /// A modal closed.
    ViewClose {
        /// The person who saw it.
        #[serde(skip)]
        user: UserId,
        /// The id of the modal.
        view_id: String,
    },
    /// A Home tab changed.
    Home {
        /// The person who sees it.
        #[serde(skip)]
        user: UserId,
        /// The tab.
        view: Value,
    },
    /// The thread status changed. An empty text removes it.
    Status {
        /// The channel.
        channel: ChannelId,
        /// The thread.
        thread_ts: MessageTs,
        /// The text.
        text: String,
    },
    /// The status of an agent session changed.
    Session {
        /// The channel.
        channel: ChannelId,
        /// The thread.
        thread_ts: MessageTs,
        /// `active`, `processing`, `suspended` or `closed`.
        status: String,
    },
    /// A person read a channel.
    Read {
        /// The person.
        #[serde(skip)]
        user: UserId,
        /// The channel.
        channel: ChannelId,
    },
}

impl Change {
    pub(super) fn posted(message: &Message, world: &World) -> Self {
        let (channel, shown) = (message.channel.clone(), message.shown(world));
        match &message.ephemeral_to {
            Some(user) => Self::Ephemeral { channel, user: user.clone(), message: shown },
            None => Self::Message { channel, message: shown },
        }
    }

    pub(super) fn edited(message: &Message, world: &World) -> Self {
        match &message.ephemeral_to {
            Some(_) => Self::posted(message, world),
            None => Self::MessageChanged { channel: message.channel.clone(), message: message.shown(world) },
        }
    }

    pub(super) fn home(view: &View, world: &World) -> Self {
        Self::Home { user: view.user.clone(), view: view.wire(world) }
    }

    /// Returns true if `viewer` can see the change.
    pub(super) fn concerns(&self, viewer: &UserId, world: &World) -> bool {
        match self {
            Self::Ephemeral { user, .. }
            | Self::ViewOpen { user, .. }
            | Self::ViewUpdate { user, .. }
            | Self::ViewPush { user, .. }
            | Self::ViewClose { user, .. }
            | Self::Home { user, .. }
            | Self::Read { user, .. } => user == viewer,
            Self::MessageDeleted { only: Some(user), .. } => user == viewer,
            Self::Message { channel, .. }
            | Self::MessageChanged { channel, .. }
            | Self::MessageDeleted { channel, .. }
            | Self::Session { channel, .. }
            | Self::Status { channel, .. } => world.channel(channel.as_str()).is_some_and(|c| c.has(viewer)),
        }
    }

    /// Returns the channel whose unread messages the change may affect.
    pub(super) fn unread_in(&self) -> Option<&ChannelId> {
        match self {
            Self::Message { channel, .. } | Self::MessageDeleted { channel, .. } | Self::Read { channel, .. } => {
                Some(channel)
            }
            _ => None,
        }
    }
}
