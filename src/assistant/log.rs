//! The changes that were asked for in this thread, newest last.
//!
//! The audit trail is in the store; this is the part that the assistant can report and that “undo” refers to.

use countersign_core::{
    clock::Timestamp,
    ids::{ActionId, UserId},
    reply::Text,
};
use countersign_graph::action::{ActionRecord, Status, Undo, Verdict};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The maximum number of entries kept.
pub const MAX_ENTRIES: usize = 40;
/// The number of newest entries that can be undone or tried again.
const MAX_WITH_FOLLOW_UP: usize = 5;

/// The newest entries, and the number of those before them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Log {
    /// The number of older entries that were dropped.
    pub earlier: u64,
    /// The newest entries, newest last.
    pub entries: Vec<LogEntry>,
}

/// One change that was asked for, and its outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogEntry {
    /// The id of its record.
    pub id: ActionId,
    /// The name of the action.
    pub action: String,
    /// The time at which it ended.
    pub at: Timestamp,
    /// The status with which it ended.
    pub status: Status,
    /// The outcome, in one sentence.
    pub what: Text,
    /// The person who asked.
    pub requested_by: UserId,
    /// True if the assistant suggested it while answering that person.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_suggested: bool,
    /// The people who approved or rejected it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decided_by: Vec<UserId>,
    /// True if it was stopped before everything was done.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut_short: bool,
    /// The action that reverses it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<Undo>,
    /// Its parameters, if it failed or expired and can be asked for again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<Value>,
}

impl LogEntry {
    /// Returns the words before the name of the person who asked.
    pub(super) fn asked_by(&self) -> &'static str {
        if self.is_suggested { " · suggested by the assistant while answering " } else { " · asked by " }
    }
}

/// Returns the people who approved a request, or who rejected it.
pub(super) fn decided_by(record: &ActionRecord) -> Vec<UserId> {
    let is_rejection = |verdict: &Verdict| matches!(verdict, Verdict::Rejected { .. });
    match record.status {
        Status::Rejected => {
            record.decisions.iter().filter(|d| is_rejection(&d.verdict)).filter_map(|d| d.by.clone()).collect()
        }
        _ => record.approved_by(),
    }
}

impl Log {
    /// Adds the current state of a record, which replaces an earlier entry for the same record.
    pub fn add(&mut self, record: &ActionRecord, what: Text, now: Timestamp) {
        self.entries.retain(|entry| entry.id != record.id);
        self.entries.push(LogEntry {
            id: record.id.clone(),
            action: record.name.clone(),
            at: now,
            status: record.status,
            what,
            requested_by: record.requested_by.clone(),
            is_suggested: record.is_suggested(),
            decided_by: decided_by(record),
            cut_short: record.cut_short,
            again: matches!(record.status, Status::Failed | Status::Expired).then(|| Value::clone(&record.parameters)),
            undo: record.possible_undo().cloned(),
        });
        let over = self.entries.len().saturating_sub(MAX_ENTRIES);
        self.entries.drain(..over);
        self.earlier += over as u64;
        // Follow-ups were worked out from the state at that time, so only the newest are kept.
        let old = self.entries.len().saturating_sub(MAX_WITH_FOLLOW_UP);
        self.entries[..old].iter_mut().for_each(|entry| (entry.undo, entry.again) = (None, None));
    }

    /// Returns the changes that were carried out or tried, without those that were only asked for.
    pub fn carried_out(&self) -> impl Iterator<Item = &LogEntry> {
        self.entries.iter().filter(|entry| entry.status.has_outcome())
    }
}
