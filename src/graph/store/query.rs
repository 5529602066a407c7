//! What can be asked of a store besides.

use countersign_core::{
    clock::Timestamp,
    ids::{GraphName, ThreadId},
};

use super::Version;
use crate::action::Status;

/// Which actions to list, newest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ActionFilter {
    /// Only of this thread.
    pub thread: Option<ThreadId>,
    /// Only with one of these statuses; empty: any.
    pub statuses: Vec<Status>,
    /// At most so many.
    pub limit: usize,
}

/// A thread in a list.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadSummary {
    /// The thread.
    pub thread: ThreadId,
    /// The graph that it belongs to.
    pub graph: GraphName,
    /// How many steps it has saved.
    pub version: Version,
    /// When something last happened in it.
    pub updated_at: Timestamp,
    /// Whether a worker holds it or it is ready for one.
    pub busy: bool,
}

/// Whether what was answered survives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Durability {
    /// What the store is: `SQLite 3.50 (countersign.sqlite)`, `Redis 7.2 (127.0.0.1:6379)`.
    pub name: String,
    /// What is wrong with its settings, one line each, with what would be right. Empty: nothing is lost.
    pub problems: Vec<String>,
}

/// How much waits to be done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Threads that are ready, leased, or waiting before a retry.
    pub threads: u64,
    /// Entries in the inbox.
    pub inbox: u64,
    /// Threads with something to say.
    pub outbox: u64,
}
