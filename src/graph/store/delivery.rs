//! What arrives: for a thread's mailbox, or for the inbox.

use std::time::Duration;

use countersign_core::{
    clock::Timestamp,
    ids::{ActionId, ApprovalId, DedupKey, GraphName, MessageTs, Partition, ThreadId, UserId, WorkerId},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Seq;
use crate::action::{ActionRequest, Decision};

/// Something that arrived, to be stored before it is acknowledged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Delivery {
    /// Where it goes.
    pub to: Destination,
    /// Any of these known already: it is a repeat and is dropped. All of them are remembered for at least a day.
    pub dedup: Vec<DedupKey>,
    /// When it arrived.
    pub at: Timestamp,
}

/// Where a delivery goes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Destination {
    /// Into the mailbox of a thread.
    Mailbox {
        /// The thread.
        thread: ThreadId,
        /// Whether the bot is addressed. If not, and the thread is not one of ours, the entry is *parked*: it is seen
        /// only if somebody addresses the bot there before [`super::Store::sweep`] drops it.
        addressed: bool,
        /// What arrived.
        mail: ThreadMessage,
        /// The graph that the thread belongs to from now on, if it becomes one of ours with this.
        #[serde(default, skip_serializing_if = "GraphName::is_default")]
        graph: GraphName,
    },
    /// In the inbox of a partition.
    #[serde(rename = "desk")]
    Inbox {
        /// The partition.
        partition: Partition,
        /// What arrived, in the words of `conversation`, which alone reads it.
        entry: Value,
        /// Claimed by this worker from the start, for the time given, so that it can be handled without another call.
        claim: Option<(WorkerId, Duration)>,
    },
}

impl Destination {
    /// The mailbox of a thread; a new thread belongs to the graph that [`graph_of_new`] says.
    pub fn mailbox(thread: ThreadId, addressed: bool, mail: ThreadMessage) -> Self {
        let graph = graph_of_new(&mail);
        Self::Mailbox { thread, addressed, mail, graph }
    }
}

/// The graph that a thread belongs to which begins with this: whatever people say, they say it in the chat.
pub fn graph_of_new(_first: &ThreadMessage) -> GraphName {
    GraphName::default()
}

/// What waits in a thread's mailbox.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum ThreadMessage {
    /// A person said something, or pressed a button that says something.
    Said {
        /// Who.
        by: UserId,
        /// What, without the mention of the bot.
        text: String,
        /// When, by Slack; orders messages that arrive in another order.
        ts: MessageTs,
        /// Whether it was said to the bot: by a mention, in a direct message, with a button.
        #[serde(default = "addressed", skip_serializing_if = "bool::clone")]
        addressed: bool,
        /// What is wanted, where no words have to be understood.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[serde(rename = "wish")]
        request: Option<ActionRequest>,
    },
    /// A person said something to another person. What they said is not kept: it is not for us.
    Overheard {
        /// Who.
        by: UserId,
        /// When, by Slack.
        ts: MessageTs,
    },
    /// An action of this thread was decided.
    Decided {
        /// Which.
        action: ActionId,
        /// The question it answers.
        approval: ApprovalId,
        /// The deciding decision.
        decision: Decision,
    },
    /// Something happened to an action after its decision.
    #[serde(rename = "news")]
    FollowUp {
        /// Which action.
        action: ActionId,
        /// Who did it.
        by: UserId,
        /// What.
        #[serde(rename = "news")]
        follow_up: ActionFollowUp,
    },
    /// A person wants the run to end.
    Stop {
        /// Who.
        by: UserId,
        /// Whether they are to be told if there is nothing to end: they typed it, and nothing else answers them.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        asks: bool,
    },
    /// Something happened elsewhere than in Slack.
    External(External),
    /// The time is over until which an action waits for an event.
    Overdue {
        /// Which action.
        action: ActionId,
        /// The time: it may wait for something else by now.
        until: Timestamp,
    },
}

/// What another system tells: a job ended, a letter came.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct External {
    source: String,
    key: String,
    body: Value,
}

/// What another system tells is too long to be kept in a mailbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it has {bytes} bytes, and at most {} are taken", External::LONGEST_BODY)]
pub struct TooLong {
    /// How long it is.
    pub bytes: usize,
}

impl External {
    /// The longest body, in bytes of JSON. What is larger belongs among the blobs, and its hash into the body.
    pub const LONGEST_BODY: usize = 64 << 10;

    /// An event of the system `source`, by its key there: the same key twice is the same event.
    ///
    /// # Errors
    ///
    /// [`TooLong`] if the body is.
    pub fn new(source: impl Into<String>, key: impl Into<String>, body: Value) -> Result<Self, TooLong> {
        let bytes = body.to_string().len();
        if bytes > Self::LONGEST_BODY {
            return Err(TooLong { bytes });
        }
        Ok(Self { source: source.into(), key: key.into(), body })
    }

    /// The name of the system.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The event's key there.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// What it says.
    pub fn body(&self) -> &Value {
        &self.body
    }

    /// What it says, and nothing else.
    pub fn into_body(self) -> Value {
        self.body
    }

    /// The same event with another body, such as a sealed one.
    pub fn with_body(&self, body: Value) -> Self {
        Self { body, ..self.clone() }
    }

    /// What stands for an event of which it is not known where it is from: nobody waits for it, and it says nothing.
    pub fn of_nobody(&self) -> Self {
        Self { source: String::new(), key: self.key.clone(), body: Value::Null }
    }

    /// Whether it is not known where it is from.
    pub fn is_of_nobody(&self) -> bool {
        self.source.is_empty()
    }

    /// The key by which a repeat is recognised in a thread: an event may be of concern to several.
    pub fn dedup(&self, thread: &ThreadId) -> DedupKey {
        DedupKey::new(format!("external:{thread}:{}:{}", json!(self.source), self.key))
    }

    /// As it is delivered to a thread, which it wakes.
    pub fn deliver_to(self, thread: ThreadId, at: Timestamp) -> Delivery {
        let dedup = vec![self.dedup(&thread)];
        Delivery { to: Destination::mailbox(thread, true, ThreadMessage::External(self)), dedup, at }
    }
}

/// What can happen to an action after its decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionFollowUp {
    /// The person who rejected it said why; the record has the reason.
    Explained,
    /// Somebody wants it to be looked up once more whether it happened.
    CheckAgain,
    /// Somebody says that it happened: it is looked up once more, and what they say is kept.
    SaidDone,
    /// Somebody gave it up; the record has it.
    Settled,
    /// Somebody said that it happened, and somebody else had settled it before.
    CameLate,
}

impl ThreadMessage {
    /// When a person said it, by Slack, if somebody did.
    pub fn said_at(&self) -> Option<&MessageTs> {
        match self {
            Self::Said { ts, .. } | Self::Overheard { ts, .. } => Some(ts),
            Self::Decided { .. }
            | Self::FollowUp { .. }
            | Self::Stop { .. }
            | Self::External(_)
            | Self::Overdue { .. } => None,
        }
    }
}

/// A mailbox entry with its position.
#[derive(Clone, Debug, PartialEq)]
pub struct QueuedMessage {
    /// Its position; goes into [`super::Changes::acks`].
    pub seq: Seq,
    /// What it says.
    pub mail: ThreadMessage,
}

/// What became of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ingested {
    /// Stored, at this position.
    New(Seq),
    /// One of its keys was known: nothing was stored.
    Duplicate,
    /// Stored, but the thread is not one of ours and was not woken.
    Parked(Seq),
}

/// An interaction that this worker is to handle.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimedInteraction {
    /// The partition it is in.
    pub partition: Partition,
    /// Its position; goes into [`super::Changes::inbox_acks`] or [`super::Store::finish_interaction`].
    pub seq: Seq,
    /// How often it was claimed before and not finished.
    pub attempts: u32,
    /// What it says, in the words of `conversation`.
    pub entry: Value,
}

/// What was stored before it was noted.
fn addressed() -> bool {
    true
}
