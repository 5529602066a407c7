//! What is dropped of a thread when its time is over.

use countersign_core::{clock::Timestamp, ids::ThreadId};
use serde_json::Value;

use super::{AuditEntry, Version};
use crate::action::Status;

/// An action with one of these statuses keeps its thread from being finished: somebody may still have to do with it.
pub const UNFINISHED: [Status; 5] =
    [Status::Proposed, Status::Pending, Status::Approved, Status::Intent, Status::Unknown];

/// What is dropped of a finished thread, if it still is finished.
#[derive(Clone, Debug, PartialEq)]
pub struct Forget {
    /// The thread.
    pub thread: ThreadId,
    /// The version it must have.
    pub version: Version,
    /// Nothing may have happened in it since.
    pub before: Timestamp,
    /// What stays in place of its checkpoint, when its steps are dropped. `None`: the whole thread goes, with its actions
    /// and its record.
    pub checkpoint: Option<Value>,
    /// Whether its files go as well, those that no other thread shows. With the whole thread they always do.
    pub files: bool,
    /// Entries of its record that take the place of those with the same position and hash.
    pub record: Vec<AuditEntry>,
}

impl Forget {
    /// Whether the thread shows its files no more.
    pub fn drops_files(&self) -> bool {
        self.files || self.checkpoint.is_none()
    }
}
