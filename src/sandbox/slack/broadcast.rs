//! What the page and waiting tests are told, in the words of the page's interface.

use countersign_core::ids::{ChannelId, MessageTs, UserId};
use serde::Serialize;
use serde_json::Value;

use super::world::{World, message::Message, view::View};

/// Something changed in the workspace.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Change {
    /// Somebody said something.
    Message {
        /// Where.
        channel: ChannelId,
        /// What, as the page shows it.
        message: Value,
    },
    /// A message, or what hangs on it, looks different.
    MessageChanged {
        /// Where.
        channel: ChannelId,
        /// How it looks now.
        message: Value,
    },
    /// A message was taken back.
    MessageDeleted {
        /// Where.
        channel: ChannelId,
        /// What is left of it.
        message: Value,
        /// The only one who saw it, if it was ephemeral.
        #[serde(skip)]
        only: Option<UserId>,
    },
    /// One person was told something.
    Ephemeral {
        /// Where.
        channel: ChannelId,
        /// Whom.
        #[serde(skip)]
        user: UserId,
        /// What.
        message: Value,
    },
    /// Somebody reacted.
    Reaction {
        /// Where.
        channel: ChannelId,
        /// The message with its reactions.
        message: Value,
    },
    /// A modal opened.
    ViewOpen {
        /// Before whom.
        #[serde(skip)]
        user: UserId,
        /// The modal.
        view: Value,
    },
    /// A modal looks different.
    ViewUpdate {
        /// Before whom.
        #[serde(skip)]
        user: UserId,
        /// The modal.
        view: Value,
    },
    /// A modal opened above another.
    ViewPush {
        /// Before whom.
        #[serde(skip)]
        user: UserId,
        /// The modal.
        view: Value,
    },
    /// A modal closed.
    ViewClose {
        /// Before whom.
        #[serde(skip)]
        user: UserId,
        /// Which.
        view_id: String,
    },
    /// The Home tab looks different.
    Home {
        /// To whom.
        #[serde(skip)]
        user: UserId,
        /// The tab.
        view: Value,
    },
    /// The app says what it is doing; an empty text ends it.
    Status {
        /// Where.
        channel: ChannelId,
        /// In which thread.
        thread_ts: MessageTs,
        /// What.
        text: String,
    },
    /// An agent session stands differently.
    Session {
        /// Where.
        channel: ChannelId,
        /// In which thread.
        thread_ts: MessageTs,
        /// `active`, `processing`, `suspended` or `closed`.
        status: String,
    },
    /// Somebody read a channel.
    Read {
        /// Who.
        #[serde(skip)]
        user: UserId,
        /// Which.
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

    /// Whether `user` gets to see it.
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
            | Self::Reaction { channel, .. }
            | Self::Session { channel, .. }
            | Self::Status { channel, .. } => world.channel(channel.as_str()).is_some_and(|c| c.has(viewer)),
        }
    }

    /// The channel whose unread messages it may have changed.
    pub(super) fn unread_in(&self) -> Option<&ChannelId> {
        match self {
            Self::Message { channel, .. } | Self::MessageDeleted { channel, .. } | Self::Read { channel, .. } => {
                Some(channel)
            }
            _ => None,
        }
    }
}
