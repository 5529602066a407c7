//! Deliveries to a thread's mailbox or to the inbox.

use std::time::Duration;

use countersign_core::{
    clock::Timestamp,
    ids::{ActionId, ApprovalId, DedupKey, GraphName, MessageTs, Partition, ThreadId, UserId, WorkerId},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Changes, Holder, Seq};
use crate::action::{ActionRequest, Decision};

/// Something that arrived, to be stored before it is acknowledged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Delivery {
    /// The destination.
    pub to: Destination,
    /// The deduplication keys. If any of them is already known, the delivery is a repeat and is
    /// dropped. All of them are kept for at least a day.
    pub dedup: Vec<DedupKey>,
    /// The time at which it arrived.
    pub at: Timestamp,
}

/// The destination of a delivery.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Destination {
    /// The mailbox of a thread.
    Mailbox {
        /// The thread.
        thread: ThreadId,
        /// True if the bot is addressed. If not, and the thread is not one of the bot's, the
        /// message is *parked*: it is read only if a person addresses the bot in the thread before
        /// [`super::Store::sweep`] deletes it.
        addressed: bool,
        /// The message.
        message: ThreadMessage,
        /// The graph of the thread, if the thread is created by this message.
        #[serde(default, skip_serializing_if = "GraphName::is_default")]
        graph: GraphName,
    },
    /// The inbox of a partition.
    Inbox {
        /// The partition.
        partition: Partition,
        /// The entry, in the format of `conversation`, which is opaque to the store.
        entry: Value,
        /// The worker that claims the entry at once, and the duration of the claim, so that no
        /// further call is needed to handle it.
        claim: Option<(WorkerId, Duration)>,
    },
}

impl Destination {
    /// Creates the destination of a message in a thread's mailbox. A new thread belongs to the
    /// graph that [`graph_of_new`] returns.
    pub fn mailbox(thread: ThreadId, addressed: bool, message: ThreadMessage) -> Self {
        let graph = graph_of_new(&message);
        Self::Mailbox { thread, addressed, message, graph }
    }
}

/// Returns the graph of a thread that begins with this message: currently always the chat graph.
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
        /// Slack's time stamp, which orders messages that arrive out of order.
        ts: MessageTs,
        /// True if the message addresses the bot by a mention, in a direct message or with a
        /// button.
        addressed: bool,
        /// The request, if it comes from a button or a form and the text need not be interpreted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request: Option<ActionRequest>,
    },
    /// A person said something to another person. The text is not stored, since it is not meant for
    /// the bot.
    Overheard {
        /// The author.
        by: UserId,
        /// Slack's time stamp.
        ts: MessageTs,
    },
    /// An action of this thread was decided.
    Decided {
        /// The action.
        action: ActionId,
        /// The approval key of the question.
        approval: ApprovalId,
        /// The decision that decided the action.
        decision: Decision,
    },
    /// A follow-up to an action after its decision.
    FollowUp {
        /// The action.
        action: ActionId,
        /// The person who caused the follow-up.
        by: UserId,
        /// The follow-up.
        follow_up: ActionFollowUp,
    },
    /// A person wants the run to end.
    Stop {
        /// The person.
        by: UserId,
        /// True if the person expects an answer even if there is nothing to stop, because they
        /// typed it and nothing else answers them.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        asks: bool,
    },
    /// An external event, from a system other than Slack.
    External(External),
    /// The deadline of an action that waits for an event has passed.
    Overdue {
        /// The action.
        action: ActionId,
        /// The deadline, which may be the one of an earlier wait.
        until: Timestamp,
    },
}

/// An event of another system, such as the end of a job or the arrival of an e-mail.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct External {
    source: String,
    key: String,
    body: Value,
}

/// The error for an event whose body is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it has {bytes} bytes, but the limit is {}", External::MAX_BODY_BYTES)]
pub struct TooLong {
    /// The length in bytes.
    pub bytes: usize,
}

impl External {
    /// The maximum length of a body, in bytes of JSON. Larger data is stored as a blob, with its
    /// hash in the body.
    pub const MAX_BODY_BYTES: usize = 64 << 10;

    /// Creates an event of the system `source`. `key` identifies the event in that system; two
    /// events with the same key are the same event.
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

    /// Returns the event's key in that system.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns the body.
    pub fn body(&self) -> &Value {
        &self.body
    }

    /// Converts the event into its body.
    pub fn into_body(self) -> Value {
        self.body
    }

    /// Returns the same event with another body, such as a sealed one.
    pub fn with_body(&self, body: Value) -> Self {
        Self { body, ..self.clone() }
    }

    /// Returns a placeholder without a body for an event of unverified origin. No action waits for
    /// it.
    pub fn of_unknown_origin(&self) -> Self {
        Self { source: String::new(), key: self.key.clone(), body: Value::Null }
    }

    /// Returns true if this is a placeholder for an event of unverified origin.
    pub fn is_of_unknown_origin(&self) -> bool {
        self.source.is_empty()
    }

    /// Returns the deduplication key for a thread. An event may be delivered to several threads.
    pub fn dedup(&self, thread: &ThreadId) -> DedupKey {
        DedupKey::new(format!("external:{thread}:{}:{}", json!(self.source), self.key))
    }

    /// Creates a delivery to a thread, which wakes the thread.
    pub fn deliver_to(self, thread: ThreadId, at: Timestamp) -> Delivery {
        let dedup = vec![self.dedup(&thread)];
        Delivery { to: Destination::mailbox(thread, true, ThreadMessage::External(self)), dedup, at }
    }
}

/// The kinds of follow-up to an action after its decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionFollowUp {
    /// The person who rejected the action gave a reason, which is in the record.
    Explained,
    /// A person asked to look up the outcome again.
    CheckAgain,
    /// A person says that the change happened. The outcome is looked up again, and the statement is
    /// stored.
    SaidDone,
    /// A person gave the action up, which is in the record.
    Settled,
    /// A person said that the change happened, but another person had already settled it.
    CameLate,
}

impl ThreadMessage {
    /// Returns Slack's time stamp of a message by a person; `None` for other messages.
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
    /// The position, to be acknowledged in [`super::Changes::acks`].
    pub seq: Seq,
    /// The message.
    pub message: ThreadMessage,
}

/// What is done together with storing a delivery.
#[derive(Clone, Copy, Debug)]
pub enum Handling<'a> {
    /// Nothing: it waits.
    Later,
    /// The thread of its mailbox is leased like by [`super::Store::acquire`].
    Lease(&'a Holder),
    /// These changes of the same partition, which handle the interaction completely, are written instead of it, and their
    /// thread is leased if there is a holder. Nothing is written if the delivery is a repeat.
    Apply(&'a Changes, Option<&'a Holder>),
}

/// The result of storing a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ingested {
    /// The delivery was stored at this position.
    New(Seq),
    /// One of the keys was already known; nothing was stored.
    Duplicate,
    /// The delivery was stored at this position, but the thread is not one of the bot's and was not
    /// woken.
    Parked(Seq),
    /// The changes that handle it were written ([`Handling::Apply`]).
    Handled,
}

/// What becomes of a claimed interaction. Except for [`Self::Done`] and [`Self::SetAside`], nothing does if it has been
/// claimed again in the meantime.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Settlement<'a> {
    /// It is removed.
    Done,
    /// It may be claimed again after this time.
    Retry(Duration),
    /// It is moved to the dead letters ([`super::DeadLetter`]).
    Fail {
        /// The reason.
        reason: &'a str,
        /// The time at which it was given up.
        at: Timestamp,
    },
    /// This process cannot read it, so it is moved out of the inbox and kept. The reason must not contain any of its
    /// contents.
    SetAside(&'a str),
}

/// An interaction that this worker has claimed to handle.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimedInteraction {
    /// The partition that it is in.
    pub partition: Partition,
    /// The position, to be acknowledged in [`super::Changes::inbox_acks`] or with
    /// [`super::Store::settle_interaction`].
    pub seq: Seq,
    /// The number of earlier claims that were not finished.
    pub attempts: u32,
    /// The entry, in the format of `conversation`.
    pub entry: Value,
}
