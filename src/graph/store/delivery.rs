//! Arrivals: for a thread's mailbox, or for the inbox.

use std::time::Duration;

use countersign_core::{
    clock::Timestamp,
    ids::{ActionId, ApprovalId, DedupKey, GraphName, MessageTs, Partition, ThreadId, UserId, WorkerId},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Seq;
use crate::action::{ActionRequest, Decision};

/// An arrival, to be stored before it is acknowledged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Delivery {
    /// The destination.
    pub to: Destination,
    /// The keys of the delivery. If any of them is known already, it is a repeat and is dropped. All of them are
    /// remembered for at least a day.
    pub dedup: Vec<DedupKey>,
    /// The time at which it arrived.
    pub at: Timestamp,
}

/// The destination of a delivery.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Destination {
    /// Into the mailbox of a thread.
    Mailbox {
        /// The thread.
        thread: ThreadId,
        /// True if the bot is addressed. If not, and the thread is not one of ours, the entry is *parked*: it is seen
        /// only if a person addresses the bot there before [`super::Store::sweep`] drops it.
        addressed: bool,
        /// The message. Serialized under its first name.
        #[serde(rename = "mail")]
        message: ThreadMessage,
        /// The graph of the thread, if it becomes one of ours with this message.
        #[serde(default, skip_serializing_if = "GraphName::is_default")]
        graph: GraphName,
    },
    /// In the inbox of a partition.
    #[serde(rename = "desk")]
    Inbox {
        /// The partition.
        partition: Partition,
        /// The entry, in the format of `conversation`, which alone reads it.
        entry: Value,
        /// The worker that has claimed it from the start, and for how long, so that it can be handled without another
        /// call.
        claim: Option<(WorkerId, Duration)>,
    },
}

impl Destination {
    /// Creates a destination in a thread's mailbox; a new thread belongs to the graph that [`graph_of_new`] returns.
    pub fn mailbox(thread: ThreadId, addressed: bool, message: ThreadMessage) -> Self {
        let graph = graph_of_new(&message);
        Self::Mailbox { thread, addressed, message, graph }
    }
}

/// Returns the graph of a thread that begins with this message: at present always the chat graph.
pub fn graph_of_new(_first: &ThreadMessage) -> GraphName {
    GraphName::default()
}

/// A message in a thread's mailbox.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum ThreadMessage {
    /// A person said something, or pressed a button that says something.
    Said {
        /// The author.
        by: UserId,
        /// The text, without the mention of the bot.
        text: String,
        /// The time by Slack; orders messages that arrive in another order.
        ts: MessageTs,
        /// True if it addresses the bot: by a mention, in a direct message, with a button.
        #[serde(default = "addressed", skip_serializing_if = "bool::clone")]
        addressed: bool,
        /// The request, if no words have to be understood.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[serde(rename = "wish")]
        request: Option<ActionRequest>,
    },
    /// A person said something to another person. The text is not kept: it is not for us.
    Overheard {
        /// The author.
        by: UserId,
        /// The time by Slack.
        ts: MessageTs,
    },
    /// An action of this thread was decided.
    Decided {
        /// The action.
        action: ActionId,
        /// The question it answers.
        approval: ApprovalId,
        /// The deciding decision.
        decision: Decision,
    },
    /// A follow-up to an action after its decision.
    #[serde(rename = "news")]
    FollowUp {
        /// The action.
        action: ActionId,
        /// The person who did it.
        by: UserId,
        /// The follow-up.
        #[serde(rename = "news")]
        follow_up: ActionFollowUp,
    },
    /// A person wants the run to end.
    Stop {
        /// The person.
        by: UserId,
        /// True if they want an answer even if there is nothing to end: they typed it, and nothing else answers them.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        asks: bool,
    },
    /// An event from outside of Slack.
    External(External),
    /// The time until which an action waits for an event is over.
    Overdue {
        /// The action.
        action: ActionId,
        /// The time, which may be of an earlier wait.
        until: Timestamp,
    },
}

/// An event of another system: a job ended, an e-mail came.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct External {
    source: String,
    key: String,
    body: Value,
}

/// The error of an event too long to be kept in a mailbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it has {bytes} bytes, and at most {} are taken", External::MAX_BODY_BYTES)]
pub struct TooLong {
    /// The length in bytes.
    pub bytes: usize,
}

impl External {
    /// The longest body, in bytes of JSON. Larger data belongs among the blobs, and its hash into the body.
    pub const MAX_BODY_BYTES: usize = 64 << 10;

    /// Creates an event of the system `source`, by its key there: the same key twice is the same event.
    ///
    /// # Errors
    ///
    /// [`TooLong`] if the body is longer than [`Self::MAX_BODY_BYTES`].
    pub fn new(source: impl Into<String>, key: impl Into<String>, body: Value) -> Result<Self, TooLong> {
        let bytes = body.to_string().len();
        if bytes > Self::MAX_BODY_BYTES {
            return Err(TooLong { bytes });
        }
        Ok(Self { source: source.into(), key: key.into(), body })
    }

    /// Returns the name of the system.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns the event's key there.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns the body.
    pub fn body(&self) -> &Value {
        &self.body
    }

    /// Returns the body alone.
    pub fn into_body(self) -> Value {
        self.body
    }

    /// Returns the same event with another body, such as a sealed one.
    pub fn with_body(&self, body: Value) -> Self {
        Self { body, ..self.clone() }
    }

    /// Returns a placeholder for an event of unknown origin: nothing waits for it, and it has no body.
    pub fn of_nobody(&self) -> Self {
        Self { source: String::new(), key: self.key.clone(), body: Value::Null }
    }

    /// Returns true if it is the placeholder of an event of unknown origin.
    pub fn is_of_nobody(&self) -> bool {
        self.source.is_empty()
    }

    /// Returns the key by which a repeat is recognised in a thread: an event may concern several threads.
    pub fn dedup(&self, thread: &ThreadId) -> DedupKey {
        DedupKey::new(format!("external:{thread}:{}:{}", json!(self.source), self.key))
    }

    /// Creates the delivery to a thread, which it wakes.
    pub fn deliver_to(self, thread: ThreadId, at: Timestamp) -> Delivery {
        let dedup = vec![self.dedup(&thread)];
        Delivery { to: Destination::mailbox(thread, true, ThreadMessage::External(self)), dedup, at }
    }
}

/// The kinds of follow-up to an action after its decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionFollowUp {
    /// The person who rejected it gave a reason; the record has it.
    Explained,
    /// A person wants the outcome to be looked up again.
    CheckAgain,
    /// A person says that it happened: it is looked up again, and the statement is kept.
    SaidDone,
    /// A person gave it up; the record has it.
    Settled,
    /// A person said that it happened, but another had settled it before.
    CameLate,
}

impl ThreadMessage {
    /// Returns the time by Slack at which a person said it; `None` for other messages.
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
    /// The position; goes into [`super::Changes::acks`].
    pub seq: Seq,
    /// The message.
    pub message: ThreadMessage,
}

/// The result of storing a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ingested {
    /// Stored, at this position.
    New(Seq),
    /// One of the keys was known: nothing was stored.
    Duplicate,
    /// Stored, but the thread is not one of ours and was not woken.
    Parked(Seq),
}

/// An interaction that this worker is to handle.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimedInteraction {
    /// The partition it is in.
    pub partition: Partition,
    /// The position; goes into [`super::Changes::inbox_acks`] or [`super::Store::finish_interaction`].
    pub seq: Seq,
    /// The number of times that it was claimed before and not finished.
    pub attempts: u32,
    /// The entry, in the format of `conversation`.
    pub entry: Value,
}

/// Returns the value for messages stored before the field existed.
fn addressed() -> bool {
    true
}
