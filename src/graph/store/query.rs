//! The queries of a store, and their results.

use std::fmt;

use countersign_core::{
    clock::Timestamp,
    ids::{GraphName, Partition, ThreadId},
};

use super::{Posted, Version};
use crate::action::{ActionRecord, Status};

/// A selection of actions, newest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ActionFilter {
    /// The thread; `None` for all.
    pub thread: Option<ThreadId>,
    /// The statuses; empty for all.
    pub statuses: Vec<Status>,
    /// The maximum number of actions to return.
    pub limit: usize,
}

/// An open card, and the place of its message.
#[derive(Clone, Debug, PartialEq)]
pub struct KnownCard {
    /// The record.
    pub record: ActionRecord,
    /// The place.
    pub posted: Posted,
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
