//! The interactions in the inbox, which are handled without leasing a thread. They are stored, so
//! all variants must remain readable.

use countersign_core::{
    clock::Timestamp,
    ids::{ActionId, ApprovalId, ChannelId, MessageTs, ThreadId, UserId},
};
use serde::{Deserialize, Serialize};

use super::{outbox::duplicates::PossibleDuplicate, stopping::Stop};
use crate::{
    approvals::clicks::{Click, Reason, TypedAnswer},
    commands::{Command, in_thread::ThreadCommandRequest},
    record::rating::Rating,
    surfaces::{
        creation::CreationRequest,
        home::content::Pages,
        shortcuts::{Question, Shortcut},
    },
};

/// Returns true for a stored timer that makes no decision: it only closes a card or sends messages
/// about it.
pub fn is_card_timer(entry: &serde_json::Value) -> bool {
    matches!(entry["kind"].as_str(), Some("expire" | "remind" | "tell"))
}

/// An interaction in the inbox.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Interaction {
    /// A press on a button of a card.
    Click(Click),
    /// A typed yes, no or never mind in a thread.
    #[serde(rename = "typed")]
    TypedAnswer(TypedAnswer),
    /// A card has expired.
    Expire {
        /// The key of the card.
        approval: ApprovalId,
    },
    /// A card will expire soon.
    Remind {
        /// The key of the card.
        approval: ApprovalId,
    },
    /// There was no decision for a long time, so more people may decide.
    Escalate {
        /// The key of the card.
        approval: ApprovalId,
    },
    /// The time for which an action waits for an event is over.
    Overdue {
        /// The thread of the action.
        thread: ThreadId,
        /// The action that waits.
        action: ActionId,
        /// The end of the wait.
        until: Timestamp,
    },
    /// The reason for a rejection.
    Reason(Reason),
    /// A “status” or “cancel” to the bot in a thread.
    #[serde(rename = "here")]
    ThreadCommand(ThreadCommandRequest),
    /// The shortcut to ask about a message, which opens a window.
    Ask(Shortcut),
    /// The question asked in that window.
    #[serde(rename = "asked")]
    Question(Question),
    /// The shortcut to export a message's thread.
    Export(Shortcut),
    /// A shortcut to create something, which opens a window.
    New {
        /// The person.
        by: UserId,
        /// The callback id of the shortcut; empty in interactions that earlier versions stored.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        shortcut: String,
        /// The id that opens a window, for three seconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        trigger_id: Option<String>,
    },
    /// The request made in that window.
    #[serde(rename = "wanted")]
    Creation(CreationRequest),
    /// A slash command.
    Command(Command),
    /// A visit to the App Home.
    Home {
        /// The person.
        user: UserId,
        /// The pages shown.
        #[serde(default, skip_serializing_if = "Pages::is_first")]
        pages: Pages,
    },
    /// The time to notify the people named by a card's policy that it waits.
    #[serde(rename = "tell")]
    NotifyApprovers {
        /// The key of the card.
        approval: ApprovalId,
    },
    /// A request to end the work in a thread.
    Stop(Stop),
    /// A request to post the notebook of a thread in it.
    Notebook {
        /// The thread.
        thread: ThreadId,
        /// The person.
        by: UserId,
        /// True if it was addressed to the bot.
        #[serde(default = "addressed_by_default", skip_serializing_if = "is_addressed")]
        addressed: bool,
    },
    /// A rating of an answer.
    #[serde(rename = "rated")]
    Rating(Rating),
    /// A request to send an undelivered message again.
    SendAgain(SendAgain),
    /// A search for a message that may have been posted twice.
    #[serde(rename = "twins")]
    PossibleDuplicate(PossibleDuplicate),
    /// A person opened a conversation with the bot, in which prompts are suggested.
    Prompts {
        /// The direct conversation.
        channel: ChannelId,
        /// The thread, if Slack created one for the conversation.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        thread: Option<MessageTs>,
    },
}

/// A request to send a message again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SendAgain {
    /// The nonce of the message.
    pub key: String,
    /// The person.
    pub by: UserId,
    /// The conversation of the button.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<ChannelId>,
    /// The thread of the button.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<MessageTs>,
    /// The address for answers, which is valid for 30 minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_url: Option<String>,
}

impl SendAgain {
    /// Returns the conversation of the button, and the thread in it.
    pub fn place(&self) -> Option<(&ChannelId, Option<&MessageTs>)> {
        self.channel.as_ref().map(|channel| (channel, self.thread.as_ref()))
    }
}

/// Returns the default of `addressed`: interactions that were stored without it were addressed to
/// the bot.
fn addressed_by_default() -> bool {
    true
}

fn is_addressed(addressed: &bool) -> bool {
    *addressed
}

impl Interaction {
    /// Returns the interaction as it is stored.
    pub fn to_value(&self) -> serde_json::Value {
        serde_json::to_value(self).expect("an interaction is plain data")
    }
}
