//! Button presses on cards, and typed words about them, as they wait in the inbox. Stored, so each shape must stay
//! readable.

use countersign_core::ids::{ApprovalId, ChannelId, MessageTs, ThreadId, UserId};
use serde::{Deserialize, Serialize};

use super::people::Right;

/// A press on a button of a card.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Click {
    /// The key in the button; anything that is not one of our keys stays text.
    pub key: String,
    /// The button.
    #[serde(rename = "pressed")]
    pub button: CardButton,
    /// The person who pressed it.
    pub by: UserId,
    /// True if Slack says that it was pressed in another workspace.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub elsewhere: bool,
    /// The channel of the message; `None` if there is no message in a channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<ChannelId>,
    /// The message with the button.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<MessageTs>,
    /// The root of the message's thread, if the message is in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<MessageTs>,
    /// The address for answers, good for 30 minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_url: Option<String>,
    /// The id that opens a form, once and within 3 s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger_id: Option<String>,
}

impl Click {
    /// Returns true if it was pressed in the Home tab: every other press has a message.
    pub fn is_in_home(&self) -> bool {
        self.channel.is_none() && self.message.is_none() && self.response_url.is_none()
    }
}

/// The buttons of a card, and the answers that can only be typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CardButton {
    /// Approve the action.
    Approve,
    /// Reject the action.
    Reject,
    /// Stop the action while it is being performed.
    Stop,
    /// Withdraw one's own request.
    Withdraw,
    /// Change the request, in a form.
    Edit,
    /// Show everything that the digest covers.
    ShowAll,
    /// Undo the change.
    Undo,
    /// Ask for the same again.
    Again,
    /// Ask for something similar, in a form.
    Change,
    /// Check again if it happened.
    Check,
    /// Record that it happened; a person has looked.
    MarkDone,
    /// Record that it did not happen, and should not; a person has looked.
    Abandon,
    /// Answer the question in the middle of a change.
    Answer,
    /// Let the change go on without an answer.
    Decline,
    /// Cancel the change in place of an answer.
    CancelCall,
}

impl CardButton {
    /// Returns the right that the press needs; `None` where the card's policy decides.
    pub fn required_right(self) -> Option<Right> {
        match self {
            Self::Approve | Self::Reject | Self::Withdraw | Self::Edit | Self::MarkDone | Self::Abandon => None,
            Self::Answer | Self::Decline | Self::CancelCall => None,
            Self::Stop | Self::ShowAll | Self::Check => Some(Right::Participate),
            Self::Undo | Self::Again | Self::Change => Some(Right::Ask),
        }
    }
}

/// The reason for a rejection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reason {
    /// The key of the card.
    pub approval: ApprovalId,
    /// The person who rejected.
    pub by: UserId,
    /// The reason, in the person's words.
    pub reason: String,
}

/// A typed yes, no or never mind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TypedAnswer {
    /// The thread it was typed in.
    pub thread: ThreadId,
    /// The person who typed it.
    pub by: UserId,
    /// The exact text.
    pub text: String,
    /// Slack's timestamp of the message.
    pub ts: MessageTs,
    /// The meaning: approve, reject or withdraw.
    #[serde(rename = "means")]
    pub meaning: CardButton,
    /// True if it was addressed to the bot.
    pub addressed: bool,
}
