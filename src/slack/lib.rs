//! The wire to Slack: deliveries become [`Inbound`], calls go out through [`client::SlackClient`].
//!
//! Both ingresses, [`ingress_http`] and [`ingress_socket`], read the raw JSON ([`event`], [`interaction`], [`command`])
//! and hand it to a [`sink::Sink`], if it is for this app ([`origin`]). They acknowledge when the sink says that it is
//! stored, and not before. Text that comes in is made plain ([`plain`]), text that goes out is escaped ([`mrkdwn`],
//! [`markdown`]) and put into [`blocks`].
//!
//! This module knows no graph, no approvals and no store. Start reading at [`sink`].
//!
//! The design we did not take: the typed events of the Slack library. Its models lose what they do not know (a click
//! whose `team` is null, a message with an unknown block), and its Socket Mode loop acknowledges what it lost.

pub mod account;
pub mod agent;
pub mod blocks;
pub mod client;
pub mod client_error;
pub mod command;
mod connector;
pub mod event;
mod field;
mod hosts;
pub mod ingress_http;
pub mod ingress_socket;
pub mod interaction;
pub mod markdown;
pub mod missing_scopes;
pub mod mrkdwn;
pub mod origin;
pub mod plain;
mod post;
pub mod refusal;
pub mod sink;
pub mod socket_health;
pub mod socket_intake;

use countersign_core::ids::DedupKey;

pub use self::origin::Identity;

/// A delivery from Slack, read and made plain.
#[derive(Clone, Debug, PartialEq)]
pub enum Inbound {
    /// A person wrote a message, to the bot or where it can read along.
    Message(event::Message),
    /// A person pressed a button, submitted or closed a modal, or used a shortcut.
    Interaction(interaction::Interaction),
    /// A person used a slash command.
    Command(command::Command),
    /// A person opened the bot's Home tab.
    HomeOpened(event::HomeOpened),
    /// A person pressed Slack's own Stop button.
    SessionStopped(event::SessionStopped),
    /// A person opened a conversation with the bot.
    TalkOpened(event::TalkOpened),
    /// A delivery that is not for the bot, with the reason: acknowledged and dropped.
    Ignored(&'static str),
}

impl Inbound {
    /// Returns the keys by which a repeat is recognised. Any one that is known already marks it.
    pub fn dedup(&self) -> &[DedupKey] {
        match self {
            Self::Message(message) => &message.dedup,
            Self::Interaction(interaction) => std::slice::from_ref(&interaction.dedup),
            Self::Command(command) => std::slice::from_ref(&command.dedup),
            Self::HomeOpened(home) => std::slice::from_ref(&home.dedup),
            Self::SessionStopped(stopped) => std::slice::from_ref(&stopped.dedup),
            Self::TalkOpened(talk) => std::slice::from_ref(&talk.dedup),
            Self::Ignored(_) => &[],
        }
    }

    /// Returns the kind in a word, for counters and logs.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Message(_) => "message",
            Self::Interaction(_) => "interaction",
            Self::Command(_) => "command",
            Self::HomeOpened(_) => "home_opened",
            Self::SessionStopped(_) => "session_stopped",
            Self::TalkOpened(_) => "talk_opened",
            Self::Ignored(_) => "ignored",
        }
    }
}

/// An authentic delivery that cannot be read: it is acknowledged and counted, since a repeat would be no better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a delivery from Slack has no readable `{0}`")]
pub struct Unreadable(pub &'static str);
