//! The Slack protocol: deliveries are parsed into [`Inbound`], and calls are made through [`client::SlackClient`].
//!
//! The two entry points, [`ingress_http`] and [`ingress_socket`], parse the raw JSON ([`event`], [`interaction`],
//! [`command`]) and pass each delivery that is for this app ([`origin`]) to a [`sink::Sink`]. They acknowledge a
//! delivery only after the sink has stored it. Incoming text is converted to plain text ([`plain`]); outgoing text is
//! escaped ([`mrkdwn`], [`markdown`]) and laid out in [`blocks`].
//!
//! This crate knows nothing of graphs, approvals or stores. Start reading at [`sink`].
//!
//! Using the typed events of the Slack library was rejected as a design. Its models drop anything they do not recognise
//! (a click whose `team` is null, a message with an unknown block), and its Socket Mode loop acknowledges what it
//! dropped.

pub mod account;
pub mod agent;
pub mod blocks;
pub mod client;
pub mod client_error;
pub mod command;
mod connector;
pub mod event;
mod field;
pub mod file;
mod hosts;
pub mod ingress_http;
pub mod ingress_socket;
pub mod interaction;
pub mod markdown;
pub mod missing_scopes;
pub mod mrkdwn;
pub mod origin;
pub mod payload;
pub mod plain;
mod post;
pub mod refusal;
mod signature;
pub mod sink;
pub mod socket_health;
pub mod socket_intake;
pub mod stream;
pub mod token_health;

use countersign_core::ids::DedupKey;

pub use self::origin::Identity;

/// A parsed delivery from Slack, with its text converted to plain text.
#[derive(Clone, Debug, PartialEq)]
pub enum Inbound {
    /// A person wrote a message to the bot, or in a conversation that the bot can read.
    Message(event::Message),
    /// A person edited or deleted a message.
    MessageChanged(event::MessageChanged),
    /// A person pressed a button, submitted or closed a modal, or used a shortcut.
    Interaction(interaction::Interaction),
    /// A person used a slash command.
    Command(command::Command),
    /// A person opened the bot's Home tab.
    HomeOpened(event::HomeOpened),
    /// A person pressed Slack's own Stop button.
    SessionStopped(event::SessionStopped),
    /// The bot token was revoked, or the app was removed from the workspace.
    TokenRevoked(event::TokenRevoked),
    /// A person opened a conversation with the bot.
    ConversationOpened(event::ConversationOpened),
    /// A delivery that is not for the bot, with the reason. It is acknowledged and dropped.
    Ignored(&'static str),
}

impl Inbound {
    /// Returns the deduplication keys. A delivery is a repeat if any one of its keys is already known.
    pub fn dedup(&self) -> &[DedupKey] {
        match self {
            Self::Message(message) => &message.dedup,
            Self::MessageChanged(changed) => std::slice::from_ref(&changed.dedup),
            Self::Interaction(interaction) => std::slice::from_ref(&interaction.dedup),
            Self::Command(command) => std::slice::from_ref(&command.dedup),
            Self::HomeOpened(home) => std::slice::from_ref(&home.dedup),
            Self::SessionStopped(stopped) => std::slice::from_ref(&stopped.dedup),
            Self::ConversationOpened(opened) => std::slice::from_ref(&opened.dedup),
            Self::TokenRevoked(revoked) => std::slice::from_ref(&revoked.dedup),
            Self::Ignored(_) => &[],
        }
    }

    /// Returns the name of the kind, for metrics and logs.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Message(_) => "message",
            Self::MessageChanged(_) => "message_changed",
            Self::Interaction(_) => "interaction",
            Self::Command(_) => "command",
            Self::HomeOpened(_) => "home_opened",
            Self::SessionStopped(_) => "session_stopped",
            Self::ConversationOpened(_) => "talk_opened",
            Self::TokenRevoked(_) => "token_revoked",
            Self::Ignored(_) => "ignored",
        }
    }
}

/// The error for an authentic delivery that cannot be parsed. The delivery is acknowledged and counted, since sending
/// it again would not help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a delivery from Slack has no readable `{0}`")]
pub struct UnreadableDelivery(pub &'static str);
