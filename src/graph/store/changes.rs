//! The contents of one atomic write.

use std::sync::Arc;

use countersign_core::{
    clock::Timestamp,
    ids::{CommitId, RunId, ThreadId},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{AuditDraft, Outgoing, Seq, ThreadMessage};
use crate::{action::ActionRecord, json::Json, keyring::Keyring};

/// One step of a run, as saved: the change that it made to the checkpoint, and the facts for the
/// trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepRecord {
    /// The version of this shape.
    pub format: u32,
    /// The run that it belongs to.
    pub run: RunId,
    /// The node that ran.
    pub node: String,
    /// The input, if it did not follow from the step before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// The change of the checkpoint, as a JSON Patch.
    pub delta: Json,
    /// The continuation: the name of a node, `await` or `end`.
    pub next: String,
    /// The time at which the step began.
    pub at: Timestamp,
    /// The duration in milliseconds.
    pub duration_ms: u64,
    /// The usage of model tokens, if the step called a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The cause of the failure, if the step failed and is retried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The id of the trace in which it ran, if that was exported. A run that waited goes on in another trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
}

impl StepRecord {
    /// The version of the stored shape.
    pub const FORMAT: u32 = 1;

    /// Writes the record as JSON, with `null` in place of the change of the checkpoint, which is JSON already. It comes
    /// last.
    pub fn without_delta(&self) -> String {
        #[derive(Serialize)]
        struct Record<'a> {
            format: u32,
            run: &'a RunId,
            node: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            input: Option<&'a Value>,
            next: &'a str,
            at: Timestamp,
            duration_ms: u64,
            #[serde(skip_serializing_if = "Option::is_none")]
            usage: Option<&'a Usage>,
            #[serde(skip_serializing_if = "Option::is_none")]
            error: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            trace: Option<&'a str>,
            delta: (),
        }
        let Self { format, run, node, input, delta: _, next, at, duration_ms, usage, error, trace } = self;
        let (format, at, duration_ms, delta) = (*format, *at, *duration_ms, ());
        let (input, usage, error, trace) = (input.as_ref(), usage.as_ref(), error.as_deref(), trace.as_deref());
        let record = Record { format, run, node, input, next, at, duration_ms, usage, error, trace, delta };
        serde_json::to_string(&record).expect("a step is plain data with text keys")
    }

    /// Writes the record as JSON.
    pub fn json(&self) -> String {
        const END: &str = "null}";
        let mut text = self.without_delta();
        debug_assert!(text.ends_with(END), "the change of the checkpoint comes last");
        text.truncate(text.len() - END.len());
        text.extend([self.delta.text(), "}"]);
        text
    }
}

/// The usage of model calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// The model.
    pub model: String,
    /// The number of calls.
    pub calls: u32,
    /// The number of tokens sent that were not read from the cache.
    pub input_tokens: u64,
    /// The number of tokens sent that were read from the cache.
    pub cached_tokens: u64,
    /// The number of tokens received.
    pub output_tokens: u64,
    /// The cost, in billionths of a US dollar; `None` if a price is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nano_usd: Option<u64>,
}

/// The contents of one atomic write, which concerns a single thread.
#[derive(Clone, Debug, PartialEq)]
pub struct Changes {
    /// The id of the write. A repeated write with the same id returns the same answer as the first
    /// and changes nothing.
    pub commit: CommitId,
    /// The thread.
    pub thread: ThreadId,
    /// The steps that were run, in order; allowed only with a lease.
    pub steps: Vec<StepRecord>,
    /// The full checkpoint after the last step, which is included from time to time.
    pub snapshot: Option<Json>,
    /// The positions of mailbox entries to acknowledge.
    pub acks: Vec<Seq>,
    /// The positions of interactions of the same partition to acknowledge.
    pub inbox_acks: Vec<Seq>,
    /// The new mailbox entries, which wake the thread.
    pub messages: Vec<ThreadMessage>,
    /// The messages to send.
    pub outbox: Vec<Outgoing>,
    /// The timers to set or clear.
    pub timers: Vec<TimerChange>,
    /// The new actions, and those that change.
    pub actions: Vec<ActionChange>,
    /// The events for the audit trail.
    pub audit: Vec<AuditDraft>,
    /// The keys with which the head of the audit trail is sealed. A store that seals sets them.
    pub keys: Option<Arc<Keyring>>,
}

impl Changes {
    /// Creates a write without changes.
    pub fn new(commit: CommitId, thread: ThreadId) -> Self {
        Self {
            commit,
            thread,
            steps: Vec::new(),
            snapshot: None,
            acks: Vec::new(),
            inbox_acks: Vec::new(),
            messages: Vec::new(),
            outbox: Vec::new(),
            timers: Vec::new(),
            actions: Vec::new(),
            audit: Vec::new(),
            keys: None,
        }
    }

    /// Returns this write preceded by the contents of another one, with the id of this one. There must be no snapshot
    /// in the earlier one, since it would be older than the steps of this one.
    #[must_use]
    pub fn after(self, earlier: Self) -> Self {
        debug_assert!(self.thread == earlier.thread && earlier.snapshot.is_none());
        let Self { commit, thread, steps, snapshot, acks, inbox_acks, messages, outbox, timers, actions, audit, keys } =
            self;
        Self {
            commit,
            thread,
            steps: joined(earlier.steps, steps),
            snapshot,
            acks: joined(earlier.acks, acks),
            inbox_acks: joined(earlier.inbox_acks, inbox_acks),
            messages: joined(earlier.messages, messages),
            outbox: joined(earlier.outbox, outbox),
            timers: joined(earlier.timers, timers),
            actions: joined(earlier.actions, actions),
            audit: joined(earlier.audit, audit),
            keys,
        }
    }
}

/// Returns the elements of both lists, in order, without copying them.
fn joined<T>(mut earlier: Vec<T>, later: Vec<T>) -> Vec<T> {
    earlier.extend(later);
    earlier
}

/// A new action, or a change of an existing one.
#[derive(Clone, Debug, PartialEq)]
pub struct ActionChange {
    /// The revision that the stored record must have; `None` if there must be no such record.
    pub expected: Option<u64>,
    /// The new record. The transition from the stored status to its status must be legal.
    pub record: ActionRecord,
}

/// A timer to set or to clear, by its key within the thread.
#[derive(Clone, Debug, PartialEq)]
pub enum TimerChange {
    /// Sets the timer, or changes an existing one.
    Set {
        /// The key within the thread.
        key: String,
        /// The time at which it is due.
        due: Timestamp,
        /// The entry that is then put into the inbox.
        entry: Value,
    },
    /// Clears the timer.
    Clear {
        /// The key.
        key: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_written_with_its_difference_and_without() {
        let stored = include_str!("../../../tests/fixtures/shapes/step_record.json");
        let stored: Vec<StepRecord> = serde_json::from_str(stored).unwrap();
        assert!(!stored.is_empty());
        for step in stored {
            assert_eq!(serde_json::from_str::<StepRecord>(&step.json()).unwrap(), step);
            let without: StepRecord = serde_json::from_str(&step.without_delta()).unwrap();
            assert_eq!(StepRecord { delta: step.delta.clone(), ..without.clone() }, step);
            assert_eq!(without.delta, Json::null());
        }
    }
}
