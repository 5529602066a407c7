//! The store in one file: SQLite, embedded, for one process.
//!
//! One thread writes ([`writer`]). It runs all waiting operations in one transaction, in which each fails alone, and
//! answers all after one commit, so that many threads share one `fsync`. Reads have connections of their own
//! ([`readers`]) and wait for no writer.
//!
//! The file is in WAL mode and may be read by any tool while the bot runs. Writing it is for one process only: the
//! store holds a lock on `<path>.lock` and on the file itself for as long as it lives, and a second one is refused,
//! whatever name it uses. A trace opens it to read only. Its files are for their owner alone, and are watched while it
//! is open ([`files`]): a write that the next start would not find is not acknowledged.
//!
//! Nothing in here depends on Slack or a graph: values are stored as the JSON they serialise to, beside the few columns
//! that are searched. `(thread, position)` is one integer key, see [`keys`]. Start reading in `operations.rs`, which
//! lists the operations, then `changes.rs`, the one that matters; `schema.rs` has the tables.
//!
//! The design we did not take: a connection pool that lets every task write. SQLite has one writer at a time anyway,
//! and each would pay for its own `fsync`.

use std::sync::Arc;

use countersign_core::clock::Clock;

use crate::aside::UnreadableEntries;

mod actions;
mod aside;
mod changes;
mod dead_letters;
mod failure;
mod files;
mod forget;
mod inbox;
mod keys;
mod leases;
mod lists;
mod mailbox;
mod open;
mod operations;
mod outbox;
mod readers;
mod record;
mod registers;
mod schema;
mod sweep;
mod thread_row;
mod writer;

pub use open::{OpenError, file_beside, lock, lock_of};

/// A [`countersign_graph::store::Store`] in a SQLite file. Made by [`SqliteStore::open`], or by
/// [`SqliteStore::open_to_read`] beside the process that has it.
///
/// Dropping it waits for the operations that were sent, closes the file and gives up the lock.
///
/// # Cancel safety
///
/// Dropping the future of an operation does not stop it: it may or may not have happened.
#[derive(Debug)]
pub struct SqliteStore {
    writer: writer::Writer,
    readers: readers::Readers,
    clock: Arc<dyn Clock>,
    name: String,
    /// The entries that this process could not read.
    found: Arc<UnreadableEntries>,
    /// The locks, held and never read; `None` if the store is only read. Last, so that they are released after the
    /// connections are closed.
    _locks: Option<[std::fs::File; 2]>,
}
