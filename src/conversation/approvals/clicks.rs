//! What people press on a card, and what they type about one, as it waits in the inbox. Stored, so each shape must stay
//! readable.

use countersign_core::ids::{ApprovalId, ChannelId, MessageTs, ThreadId, UserId};
use serde::{Deserialize, Serialize};

use super::people::Right;

/// A press on a button of a card.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Click {
    /// The key in the button; what is no key of ours stays text.
    pub key: String,
    /// Which button.
    pub pressed: Pressed,
    /// Who.
    pub by: UserId,
    /// Whether Slack says that it was pressed in another workspace.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub elsewhere: bool,
    /// Where.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<ChannelId>,
    /// On which message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<MessageTs>,
    /// In which thread, if the message is in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<MessageTs>,
    /// Where to answer, for 30 minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_url: Option<String>,
    /// Opens a form, once and within 3 s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger_id: Option<String>,
}

impl Click {
    /// Whether it was pressed in the Home tab: everything else has a message.
    pub fn is_in_home(&self) -> bool {
        self.channel.is_none() && self.message.is_none() && self.response_url.is_none()
    }
}

/// The buttons of a card, and what can only be typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pressed {
    /// Do it.
    Approve,
    /// Do not.
    Reject,
    /// No further: only while it is being done.
    Stop,
    /// Let go of what one asked for oneself.
    Withdraw,
    /// Change what is asked for, in a form.
    Edit,
    /// Show everything that the digest covers.
    ShowAll,
    /// Put back what was changed.
    Undo,
    /// Ask for the same once more.
    Again,
    /// Ask for something like it, in a form.
    Change,
    /// Look once more whether it happened.
    Check,
    /// It happened; a person has looked.
    MarkDone,
    /// It did not happen, and is not to; a person has looked.
    Abandon,
}

impl Pressed {
    /// The right that the press needs where the card's policy does not say who may.
    pub fn right(self) -> Option<Right> {
        match self {
            Self::Approve | Self::Reject | Self::Withdraw | Self::Edit | Self::MarkDone | Self::Abandon => None,
            Self::Stop | Self::ShowAll | Self::Check => Some(Right::Take),
            Self::Undo | Self::Again | Self::Change => Some(Right::Ask),
        }
    }
}

/// Why somebody rejected.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reason {
    /// The key of the card.
    pub approval: ApprovalId,
    /// Who.
    pub by: UserId,
    /// Why, in their words.
    pub reason: String,
}

/// A typed yes, no or never mind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Typed {
    /// Where.
    pub thread: ThreadId,
    /// Who.
    pub by: UserId,
    /// What exactly.
    pub text: String,
    /// When, by Slack.
    pub ts: MessageTs,
    /// Which of them.
    pub means: Pressed,
    /// Whether it was said to the bot.
    pub addressed: bool,
}
