//! The interactions in the inbox, which are handled without leasing a thread. They are stored, so
//! every variant must remain deserializable.

use countersign_core::{
    clock::Timestamp,
    ids::{ActionId, ApprovalId, ChannelId, MessageTs, Nonce, Partition, Slot, ThreadId, UserId},
};
use countersign_slack::file::File;
use serde::{Deserialize, Serialize};

use super::choice::Choice;
use crate::{
    approvals::{
        changed::ChangedMessage,
        clicks::{Click, PageTurn, TypedAnswer},
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

/// A message with files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageWithFiles {
    /// The thread.
    pub thread: ThreadId,
    /// The author.
    pub by: UserId,
    /// The words beside the files; may be empty.
    pub text: String,
    /// Slack's timestamp of the message.
    pub ts: MessageTs,
    /// True if it addresses the bot.
    pub addressed: bool,
    /// The files.
    pub files: Vec<File>,
}

/// A request to end the work in a thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stop {
    /// The thread.
    pub thread: ThreadId,
    /// The person who asked to stop.
    pub by: UserId,
    /// True if the request was addressed to the bot.
    pub addressed: bool,
    /// The message; `None` for a button.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<StopWords>,
}

/// A message that asks to stop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StopWords {
    /// The exact text.
    pub text: String,
    /// Slack's timestamp of the message.
    pub ts: MessageTs,
}

/// A message that may have been posted twice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PossibleDuplicate {
    /// The thread of the message.
    pub thread: ThreadId,
    /// The conversation that contains the message.
    pub channel: ChannelId,
    /// The thread in that conversation; `None` in direct messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<MessageTs>,
    /// The slot of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot: Option<Slot>,
    /// The nonce that all copies carry.
    pub nonce: Nonce,
    /// A time before the first attempt.
    pub since: Timestamp,
    /// The number of searches so far.
    pub looks: usize,
}

impl Interaction {
    /// Returns the interaction as it is stored.
    pub fn to_value(&self) -> serde_json::Value {
        serde_json::to_value(self).expect("an interaction is plain data")
    }

    /// Returns the person whose request it is; `None` for a timer, and for a conversation that was opened.
    pub fn by(&self) -> Option<&UserId> {
        match self {
            Self::Click(Click { by, .. })
            | Self::TypedAnswer(TypedAnswer { by, .. })
            | Self::ThreadCommand(ThreadCommandRequest { by, .. })
            | Self::Choice(Choice { by, .. })
            | Self::Ask(Shortcut { by, .. })
            | Self::Question(Question { by, .. })
            | Self::Export(Shortcut { by, .. })
            | Self::New { by, .. }
            | Self::Creation(CreationRequest { by, .. })
            | Self::Command(Command { by, .. })
            | Self::Home { user: by, .. }
            | Self::Stop(Stop { by, .. })
            | Self::Notebook { by, .. }
            | Self::PageTurn(PageTurn { by, .. })
            | Self::MessageWithFiles(MessageWithFiles { by, .. })
            | Self::ChangedMessage(ChangedMessage { by, .. })
            | Self::Rating(Rating { by, .. })
            | Self::SendAgain(SendAgain { by, .. }) => Some(by),
            Self::Expire { .. } | Self::Remind { .. } | Self::Escalate { .. } | Self::Overdue { .. } => None,
            Self::NotifyApprovers { .. } | Self::PossibleDuplicate(_) | Self::Prompts { .. } => None,
        }
    }

    /// Returns the thread that it is about. One about a card names the card instead.
    pub fn thread(&self) -> Option<&ThreadId> {
        match self {
            Self::TypedAnswer(TypedAnswer { thread, .. })
            | Self::ThreadCommand(ThreadCommandRequest { thread, .. })
            | Self::Choice(Choice { thread, .. })
            | Self::Ask(Shortcut { thread, .. })
            | Self::Question(Question { thread, .. })
            | Self::Export(Shortcut { thread, .. })
            | Self::Stop(Stop { thread, .. })
            | Self::Notebook { thread, .. }
            | Self::MessageWithFiles(MessageWithFiles { thread, .. })
            | Self::ChangedMessage(ChangedMessage { thread, .. })
            | Self::Rating(Rating { thread, .. }) => Some(thread),
            _ => None,
        }
    }

    /// Returns the conversation that it was made in, and its thread if it was made in one.
    pub fn conversation(&self) -> Option<(&ChannelId, Option<&MessageTs>)> {
        match self {
            Self::Click(Click { channel, thread, message, .. }) => {
                Some((channel.as_ref()?, thread.as_ref().or(message.as_ref())))
            }
            Self::SendAgain(SendAgain { channel, thread, .. }) => Some((channel.as_ref()?, thread.as_ref())),
            _ => self.thread().map(|thread| (&thread.channel, Some(&thread.root))),
        }
    }

    /// Returns the address for answers to the person.
    pub fn response_url(&self) -> Option<&str> {
        match self {
            Self::Command(Command { response_url, .. }) => Some(response_url),
            Self::Click(Click { response_url, .. })
            | Self::Ask(Shortcut { response_url, .. })
            | Self::Question(Question { response_url, .. })
            | Self::Export(Shortcut { response_url, .. })
            | Self::Rating(Rating { response_url, .. })
            | Self::SendAgain(SendAgain { response_url, .. }) => response_url.as_deref(),
            _ => None,
        }
    }

    /// Returns the partition of the inbox in which it waits: that of its thread, its card, or else of who or what it is from.
    pub fn partition(&self) -> Partition {
        match self {
            Self::Click(Click { key, .. }) => {
                ApprovalId::try_from(key.clone()).map_or_else(|_| Partition::of(key), |approval| approval.partition())
            }
            Self::PageTurn(PageTurn { approval, .. }) => approval.partition(),
            Self::SendAgain(SendAgain { key, .. }) => Partition::of(key),
            Self::Command(Command { channel, .. }) | Self::Prompts { channel, .. } => Partition::of(channel.as_str()),
            Self::New { draft_in: Some(thread), .. } => thread.partition(),
            _ => match self.thread() {
                Some(thread) => thread.partition(),
                None => Partition::of(self.by().map_or("", UserId::as_str)),
            },
        }
    }
}
