//! The contents of one atomic write.

use countersign_core::{
    clock::Timestamp,
    ids::{CommitId, RunId, ThreadId},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{AuditDraft, Outgoing, Seq, ThreadMessage};
use crate::action::ActionRecord;

/// One step of a run, as saved: the difference it made, and its line in a trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepRecord {
    /// The version of this shape.
    pub format: u32,
    /// The run it belongs to; the trace id.
    pub run: RunId,
    /// The node that ran.
    pub node: String,
    /// The input, if it did not follow from the step before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// The change of the checkpoint, as a JSON Patch.
    pub delta: Value,
    /// The continuation, in a word: a node, `await`, `end`.
    pub next: String,
    /// The time at which it began.
    pub at: Timestamp,
    /// The duration in milliseconds.
    pub duration_ms: u64,
    /// The usage of model tokens, if it asked a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The cause, if it failed and is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl StepRecord {
    /// The version of the stored shape.
    pub const FORMAT: u32 = 1;
}

/// The usage of model calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// The model.
    pub model: String,
    /// The number of calls.
    pub calls: u32,
    /// Tokens sent and not read from the cache.
    pub input_tokens: u64,
    /// Tokens sent and read from the cache.
    pub cached_tokens: u64,
    /// Tokens received.
    pub output_tokens: u64,
}

/// The contents of one atomic write, all in one thread.
#[derive(Clone, Debug, PartialEq)]
pub struct Changes {
    /// The name of the write: a repeat of it answers as the first did and changes nothing.
    pub commit: CommitId,
    /// The thread.
    pub thread: ThreadId,
    /// The step, if one was taken. Only under a lease.
    pub step: Option<StepRecord>,
    /// The whole checkpoint after the step, from time to time.
    pub snapshot: Option<Value>,
    /// The mailbox entries that are dealt with.
    pub acks: Vec<Seq>,
    /// The interactions of the same partition that are dealt with.
    pub inbox_acks: Vec<Seq>,
    /// New mailbox entries; they wake the thread.
    pub messages: Vec<ThreadMessage>,
    /// The messages to send.
    pub outbox: Vec<Outgoing>,
    /// The timers to set or clear.
    pub timers: Vec<TimerChange>,
    /// The actions that are new or that move.
    pub actions: Vec<ActionChange>,
    /// The entries for the record.
    pub audit: Vec<AuditDraft>,
}

impl Changes {
    /// Creates a write without changes.
    pub fn new(commit: CommitId, thread: ThreadId) -> Self {
        Self {
            commit,
            thread,
            step: None,
            snapshot: None,
            acks: Vec::new(),
            inbox_acks: Vec::new(),
            messages: Vec::new(),
            outbox: Vec::new(),
            timers: Vec::new(),
            actions: Vec::new(),
            audit: Vec::new(),
        }
    }
}

/// A new action, or a move of one.
#[derive(Clone, Debug, PartialEq)]
pub struct ActionChange {
    /// The revision the record must have now; `None`: there must be no such record.
    pub expected: Option<u64>,
    /// The new record. Its status must be a legal move from the one that is stored.
    pub record: ActionRecord,
}

/// A timer to set or to clear, by its key within the thread.
#[derive(Clone, Debug, PartialEq)]
pub enum TimerChange {
    /// Sets it, or moves it.
    Set {
        /// The key within the thread.
        key: String,
        /// The time at which it is due.
        due: Timestamp,
        /// The entry that is put in the inbox then.
        entry: Value,
    },
    /// Clears it.
    Clear {
        /// The key.
        key: String,
    },
}
