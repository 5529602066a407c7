//! What one atomic write changes.

use countersign_core::{
    clock::Timestamp,
    ids::{CommitId, RunId, ThreadId},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{AuditDraft, Outgoing, Seq, ThreadMessage};
use crate::action::ActionRecord;

/// One step of a run, as saved: the difference it made, and what people see in a trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepRecord {
    /// The version of this shape.
    pub format: u32,
    /// The run it belongs to; the trace id.
    pub run: RunId,
    /// The node that ran.
    pub node: String,
    /// What set it off, if it was not the step before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// What changed in the checkpoint, as a JSON Patch.
    pub delta: Value,
    /// Where it goes on, in a word: a node, `await`, `end`.
    pub next: String,
    /// When it began.
    pub at: Timestamp,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// What it cost in model tokens, if it asked a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// What went wrong, if it failed and is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl StepRecord {
    /// The version of the stored shape.
    pub const FORMAT: u32 = 1;
}

/// What model calls cost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Which model.
    pub model: String,
    /// How many calls.
    pub calls: u32,
    /// Tokens sent and not read from the cache.
    pub input_tokens: u64,
    /// Tokens sent and read from the cache.
    pub cached_tokens: u64,
    /// Tokens received.
    pub output_tokens: u64,
}

/// What one atomic write changes, all in one thread.
#[derive(Clone, Debug, PartialEq)]
pub struct Changes {
    /// Names the write: a repeat of it answers as the first did and changes nothing.
    pub commit: CommitId,
    /// The thread.
    pub thread: ThreadId,
    /// The step that was taken. Only under a lease.
    pub step: Option<StepRecord>,
    /// The whole checkpoint after the step, from time to time.
    pub snapshot: Option<Value>,
    /// Mailbox entries that are dealt with.
    pub acks: Vec<Seq>,
    /// Interactions of the same partition that are dealt with.
    pub inbox_acks: Vec<Seq>,
    /// New mailbox entries; they wake the thread.
    pub mail: Vec<ThreadMessage>,
    /// What is to be said.
    pub outbox: Vec<Outgoing>,
    /// Timers to set or to take away.
    pub timers: Vec<TimerChange>,
    /// Actions that are new or that move.
    pub actions: Vec<ActionChange>,
    /// What goes into the record.
    pub audit: Vec<AuditDraft>,
}

impl Changes {
    /// No change yet.
    pub fn new(commit: CommitId, thread: ThreadId) -> Self {
        Self {
            commit,
            thread,
            step: None,
            snapshot: None,
            acks: Vec::new(),
            inbox_acks: Vec::new(),
            mail: Vec::new(),
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
    /// The record as it is to be. Its status must be a legal move from the one that is stored.
    pub record: ActionRecord,
}

/// A timer to set or to take away, by its key within the thread.
#[derive(Clone, Debug, PartialEq)]
pub enum TimerChange {
    /// Sets it, or moves it.
    Set {
        /// Its key within the thread.
        key: String,
        /// When it is due.
        due: Timestamp,
        /// What is put in the inbox then.
        entry: Value,
    },
    /// Takes it away.
    Clear {
        /// Its key.
        key: String,
    },
}
