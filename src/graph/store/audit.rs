//! The record: an append-only chain of what happened, each entry sealed with the hash of the one before.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    clock::Timestamp,
    graph::digest::Digest,
    ids::{ActionId, ThreadId, UserId},
};

/// One event for the record, before it is chained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AuditDraft {
    /// When.
    pub at: Timestamp,
    /// What kind of thing happened.
    pub kind: AuditKind,
    /// Who did it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<UserId>,
    /// Which action it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<ActionId>,
    /// What exactly: digests, names, reasons.
    pub detail: Value,
}

/// What the record tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuditKind {
    /// Somebody asked for something.
    Asked,
    /// A card was made.
    Shown,
    /// Somebody pressed a button and it did not count.
    ClickRefused,
    /// Somebody decided, or time did.
    Decided,
    /// Who may decide was changed in the settings while the card was open.
    PolicyChanged,
    /// The thread was reminded of the card, or more people were brought in.
    Reminded,
    /// The person who rejected said why.
    Explained,
    /// A person said how it ended.
    Settled,
    /// The request was about to leave.
    Executed,
    /// Somebody stopped it on the way.
    Stopped,
    /// How it ended.
    Outcome,
}

/// One event of the record, chained to the one before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// Counts from 1 within the thread.
    pub seq: u64,
    /// The hash of the entry before; empty for the first.
    pub previous: String,
    /// What happened.
    pub event: AuditDraft,
    /// SHA-256 over all of the above.
    pub hash: String,
}

impl AuditEntry {
    /// Chains an event to the entry before it.
    pub fn chain(thread: &ThreadId, seq: u64, previous: &str, event: AuditDraft) -> Self {
        let hash = Self::hash_of(thread, seq, previous, &event);
        Self { seq, previous: previous.to_owned(), event, hash }
    }

    /// Whether the hash is that of the content and the entry follows `previous`.
    pub fn holds(&self, thread: &ThreadId, previous: &str) -> bool {
        self.previous == previous && self.hash == Self::hash_of(thread, self.seq, previous, &self.event)
    }

    fn hash_of(thread: &ThreadId, seq: u64, previous: &str, event: &AuditDraft) -> String {
        let event = serde_json::to_value(event).expect("an audit event is plain data");
        Digest::of(&[&json!(thread.to_string()), &json!(seq), &json!(previous), &event]).as_str().to_owned()
    }
}
