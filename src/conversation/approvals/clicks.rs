//! Button presses on cards, and typed answers to them, as stored in the inbox. All variants must
//! remain readable.

use countersign_core::ids::{ApprovalId, ChannelId, MessageTs, ThreadId, UserId};
use serde::{
    Deserialize, Serialize,
    de::{IntoDeserializer as _, value::StrDeserializer},
};

use super::people::Right;

/// A press on a button of a card.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Click {
    /// The key in the button, as text, since it may not be a valid key.
    pub key: String,
    /// The button.
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
    /// The address for answers, which is valid for 30 minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_url: Option<String>,
    /// The id with which a form can be opened, once and within 3 s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger_id: Option<String>,
}

impl Click {
    /// Returns true if the button was pressed in the Home tab. All other buttons are in a message.
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
    /// Withdraw the person's own request.
    Withdraw,
    /// Change the request, in a form.
    Edit,
    /// Show everything that the digest covers.
    ShowAll,
    /// Undo the change.
    Undo,
    /// Request the same action again.
    Again,
    /// Request a changed action, in a form.
    Change,
    /// Check again whether the change was made.
    Check,
    /// Record that the change was made, as a person has checked.
    MarkDone,
    /// Record that the change was not made and is not wanted any more, as a person has checked.
    Abandon,
    /// Answer the question in the middle of a change.
    Answer,
    /// Let the change continue without an answer.
    Decline,
    /// Cancel the change instead of answering.
    CancelCall,
}

impl CardButton {
    /// Returns the button with this action id, which is also its stored name; `None` if it is not a button of a card.
    pub fn named(action_id: &str) -> Option<Self> {
        let name: StrDeserializer<'_, serde::de::value::Error> = action_id.into_deserializer();
        Self::deserialize(name).ok()
    }

    /// Returns the right that the press requires; `None` if the card's policy decides.
    pub fn required_right(self) -> Option<Right> {
        match self {
            Self::Approve | Self::Reject | Self::Withdraw | Self::Edit | Self::MarkDone | Self::Abandon => None,
            Self::Answer | Self::Decline | Self::CancelCall => None,
            Self::Stop | Self::ShowAll | Self::Check => Some(Right::Participate),
            Self::Undo | Self::Again | Self::Change => Some(Right::Ask),
        }
    }
}

/// A press on a button that turns a page of the window with the full content of a card.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PageTurn {
    /// The key of the card.
    pub approval: ApprovalId,
    /// The person who pressed it.
    pub by: UserId,
    /// Slack's id of the window.
    pub view: String,
    /// The page to show, from 0.
    pub page: usize,
}

/// A typed yes, no or never mind, or words that decline in another way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TypedAnswer {
    /// The thread in which it was typed.
    pub thread: ThreadId,
    /// The person who typed it.
    pub by: UserId,
    /// The exact text.
    pub text: String,
    /// Slack's timestamp of the message.
    pub ts: MessageTs,
    /// The meaning: approve, reject or withdraw; `None` for a message that is no answer, but that a person would take
    /// for “no”.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meaning: Option<CardButton>,
    /// True if it was addressed to the bot.
    pub addressed: bool,
}
