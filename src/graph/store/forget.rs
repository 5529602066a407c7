//! The parts of a thread that are dropped when its time is over.

use countersign_core::{clock::Timestamp, ids::ThreadId};
use serde_json::Value;

use super::{AuditEntry, Version};
use crate::action::Status;

/// The statuses of an action that keep its thread from being finished: a person may still have to deal with it.
pub const UNFINISHED: [Status; 5] =
    [Status::Proposed, Status::Pending, Status::Approved, Status::Intent, Status::Unknown];

/// The parts of a finished thread to drop, if it still is finished.
#[derive(Clone, Debug, PartialEq)]
pub struct Forget {
    /// The thread.
    pub thread: ThreadId,
    /// The version it must have.
    pub version: Version,
    /// The time since which nothing may have happened in it.
    pub before: Timestamp,
    /// The checkpoint that remains when its steps are dropped. `None`: the whole thread goes, with its actions and its
    /// record.
    pub checkpoint: Option<Value>,
    /// True if its files go as well, those that no other thread shows. With the whole thread they always do.
    pub files: bool,
    /// The entries of its record that replace those with the same position and hash.
    pub record: Vec<AuditEntry>,
}

impl Forget {
    /// Returns true if the thread no longer shows its files.
    pub fn drops_files(&self) -> bool {
        self.files || self.checkpoint.is_none()
    }
}
