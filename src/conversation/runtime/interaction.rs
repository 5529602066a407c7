//! The interactions in the inbox, which are handled without leasing a thread. They are stored, so
//! every variant must remain deserializable.

use countersign_core::{
    clock::Timestamp,
    ids::{ActionId, ApprovalId, ChannelId, MessageTs, ThreadId, UserId},
};
use serde::{Deserialize, Serialize};

use super::{choice::Choice, inbox::files::MessageWithFiles, outbox::duplicates::PossibleDuplicate, stopping::Stop};
use crate::{
    approvals::{
        changed::ChangedMessage,
        clicks::{Click, PageTurn, Reason, TypedAnswer},
    },
    commands::{Command, in_thread::ThreadCommandRequest},
    record::rating::Rating,
    surfaces::{
        creation::CreationRequest,
        home::content::Pages,
        shortcuts::{Question, Shortcut},
    },
};

/// An interaction in the inbox.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Interaction {
    /// A click on a button of a card.
    Click(Click),
    /// A “yes”, “no” or “never mind” typed in a thread.
    TypedAnswer(TypedAnswer),
    /// A card has expired.
    Expire {
        /// The approval id of the card.
        approval: ApprovalId,
    },
    /// A card will expire soon.
    Remind {
        /// The approval id of the card.
        approval: ApprovalId,
    },
    /// A decision is taking too long, so more people are allowed to make it.
    Escalate {
        /// The approval id of the card.
        approval: ApprovalId,
    },
    /// An action has waited too long for an event.
    Overdue {
        /// The thread of the action.
        thread: ThreadId,
        /// The waiting action.
        action: ActionId,
        /// The deadline of the wait.
        until: Timestamp,
    },
    /// The reason for a rejection.
    Reason(Reason),
    /// A “status” or “cancel” addressed to the bot in a thread.
    ThreadCommand(ThreadCommandRequest),
    /// A click on a choice below a reply.
    Choice(Choice),
    /// The shortcut to ask about a message, which opens a modal.
    Ask(Shortcut),
    /// The question submitted in that modal.
    Question(Question),
    /// The shortcut to export a message's thread.
    Export(Shortcut),
    /// A shortcut to create something, which opens a modal.
    New {
        /// The person who used it.
        by: UserId,
        /// The callback id of the shortcut; empty if a draft is filled in.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        shortcut: String,
        /// The id with which a modal can be opened for three seconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        trigger_id: Option<String>,
        /// The thread whose draft is filled in; `None` for something new in a thread of its own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        draft_in: Option<ThreadId>,
    },
    /// The request submitted in that modal.
    Creation(CreationRequest),
    /// A slash command.
    Command(Command),
    /// A visit to the App Home.
    Home {
        /// The visitor.
        user: UserId,
        /// The pages shown.
        #[serde(default, skip_serializing_if = "Pages::is_first")]
        pages: Pages,
    },
    /// It is time to tell the approvers named by a card's policy that it is waiting.
    NotifyApprovers {
        /// The approval id of the card.
        approval: ApprovalId,
    },
    /// A request to end the work in a thread.
    Stop(Stop),
    /// A request to post a thread's notebook in that thread.
    Notebook {
        /// The thread.
        thread: ThreadId,
        /// The person who made the request.
        by: UserId,
        /// True if the request was addressed to the bot.
        addressed: bool,
    },
    /// A press that turns a page of the window with the full content of a card.
    PageTurn(PageTurn),
    /// A message whose files are read before its thread gets it.
    MessageWithFiles(MessageWithFiles),
    /// A message that a person edited or deleted.
    ChangedMessage(ChangedMessage),
    /// A rating of an answer.
    Rating(Rating),
    /// A request to send an undelivered message again.
    SendAgain(SendAgain),
    /// A search for duplicates of a message that may have been posted twice.
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
    /// The person who made the request.
    pub by: UserId,
    /// The conversation that the button is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<ChannelId>,
    /// The thread that the button is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<MessageTs>,
    /// The response URL from Slack, which is valid for 30 minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_url: Option<String>,
}

impl SendAgain {
    /// Returns the conversation that the button is in, and its thread if there is one.
    pub fn place(&self) -> Option<(&ChannelId, Option<&MessageTs>)> {
        self.channel.as_ref().map(|channel| (channel, self.thread.as_ref()))
    }
}

impl Interaction {
    /// Returns the interaction as it is stored.
    pub fn to_value(&self) -> serde_json::Value {
        serde_json::to_value(self).expect("an interaction is plain data")
    }
}
