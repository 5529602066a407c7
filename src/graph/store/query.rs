//! The queries of a store, and their results.

use std::{fmt, time::Duration};

use countersign_core::{
    clock::Timestamp,
    ids::{ActionId, ApprovalId, GraphName, Partition, ThreadId},
};

use super::Version;
use crate::action::{ActionRecord, Label, Status};

/// The key of an action.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ActionKey<'a> {
    /// The approval key, which its buttons carry.
    ByApproval(&'a ApprovalId),
    /// Its thread and its id.
    Of(&'a ThreadId, &'a ActionId),
}

impl ActionKey<'_> {
    /// Returns true if this is a key of the action.
    pub fn is_of(&self, record: &ActionRecord) -> bool {
        match *self {
            Self::ByApproval(approval) => record.approval == *approval,
            Self::Of(thread, id) => record.id == *id && record.thread == *thread,
        }
    }
}

/// A selection of actions, newest first, each once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ActionFilter {
    /// Where to look for them.
    pub of: ActionsOf,
    /// The statuses; empty for all.
    pub statuses: Vec<Status>,
    /// The maximum number of actions to return.
    pub limit: usize,
}

/// The actions that a filter selects from.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ActionsOf {
    /// All actions.
    #[default]
    All,
    /// Those of a thread.
    Thread(ThreadId),
    /// Those that have any of these labels.
    Labels(Vec<Label>),
}

impl ActionFilter {
    /// Selects from the actions of all threads.
    pub fn all(statuses: &[Status], limit: usize) -> Self {
        Self { of: ActionsOf::All, statuses: statuses.to_vec(), limit }
    }

    /// Selects from the actions of a thread.
    pub fn of(thread: &ThreadId, statuses: &[Status], limit: usize) -> Self {
        Self { of: ActionsOf::Thread(thread.clone()), statuses: statuses.to_vec(), limit }
    }

    /// Selects from the actions that have any of these labels; none, if there are no labels.
    pub fn under(labels: &[Label], statuses: &[Status], limit: usize) -> Self {
        Self { of: ActionsOf::Labels(labels.to_vec()), statuses: statuses.to_vec(), limit }
    }

    /// Returns true if the filter selects this action.
    pub fn matches(&self, record: &ActionRecord) -> bool {
        let is_among = match &self.of {
            ActionsOf::All => true,
            ActionsOf::Thread(thread) => record.thread == *thread,
            ActionsOf::Labels(labels) => record.is_under(labels),
        };
        is_among && (self.statuses.is_empty() || self.statuses.contains(&record.status))
    }
}

/// A selection of threads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ThreadFilter {
    /// All threads, the most recently changed first.
    All,
    /// Those in which nothing has happened since this time and nothing remains to be done, sent or decided
    /// ([`super::UNFINISHED`]), the oldest first. Threads whose steps have been deleted since their last change are left
    /// out.
    FinishedBefore(Timestamp),
}

/// How long stored bytes are kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Keep<'a> {
    /// For at least this time.
    For(Duration),
    /// Permanently.
    Permanently,
    /// As long as they are shown by this or another thread whose files have not been deleted
    /// ([`super::Forget::files`]).
    WithThread(&'a ThreadId),
}

/// A thread in a list.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadSummary {
    /// The thread.
    pub thread: ThreadId,
    /// The graph that it belongs to.
    pub graph: GraphName,
    /// The number of steps that the thread has saved.
    pub version: Version,
    /// The time of the last change.
    pub updated_at: Timestamp,
    /// True if a worker holds its lease or it is ready for one.
    pub busy: bool,
}

/// The guarantee that the store gives for acknowledged writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Durability {
    /// The name of the store, such as `SQLite 3.50 (countersign.sqlite)` or `Redis 7.2
    /// (127.0.0.1:6379)`.
    pub name: String,
    /// The problems of its settings, each in one line with the right setting. If empty, no
    /// acknowledged write is lost.
    pub problems: Vec<String>,
    /// What would keep more of it working when something fails, each in one line.
    pub advice: Vec<String>,
    /// Who says that no acknowledged write is lost, if the store cannot be asked.
    pub vouched: Option<String>,
}

/// Partitions in which nothing can be stored at the moment, although others work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unwritable {
    /// The partitions.
    pub partitions: Vec<Partition>,
    /// The reason, and what ends it.
    pub why: String,
}

impl fmt::Display for Unwritable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<String> = self.partitions.iter().map(|partition| partition.number().to_string()).collect();
        let of = if numbers.len() == 1 { "partition" } else { "partitions" };
        write!(f, "{of} {} can't be written: {}", numbers.join(", "), self.why)
    }
}

/// The amount of pending work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// The number of threads that are ready, leased, or waiting for a retry.
    pub threads: u64,
    /// The number of entries in the inbox.
    pub inbox: u64,
    /// The number of threads with messages to send.
    pub outbox: u64,
}
