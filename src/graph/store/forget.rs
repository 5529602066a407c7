//! The parts of a thread that are deleted when its retention period ends.

use crate::json::Json;
use countersign_core::{clock::Timestamp, ids::ThreadId};

use super::{AuditEntry, Version};
use crate::action::Status;

/// The statuses of an action that keep its thread from being finished, since a person may still
/// have to deal with the action.
pub const UNFINISHED: [Status; 5] =
    [Status::Proposed, Status::Pending, Status::Approved, Status::Intent, Status::Unknown];

/// The parts of a finished thread to delete, provided that it is still finished.
#[derive(Clone, Debug, PartialEq)]
pub struct Forget {
    /// The thread.
    pub thread: ThreadId,
    /// The version that the thread must have.
    pub version: Version,
    /// The time since which nothing may have happened in the thread.
    pub before: Timestamp,
    /// The checkpoint that remains when the steps are deleted. `None` if the whole thread is
    /// deleted, with its actions and its audit trail.
    pub checkpoint: Option<Json>,
    /// True if its files are deleted as well, except those that another thread shows. If the whole
    /// thread is deleted, its files always are.
    pub files: bool,
    /// The audit entries that replace those with the same position and hash.
    pub record: Vec<AuditEntry>,
}

impl Forget {
    /// Returns true if the thread no longer shows its files.
    pub fn drops_files(&self) -> bool {
        self.files || self.checkpoint.is_none()
    }
}
