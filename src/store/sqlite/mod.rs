//! A store in one SQLite file, for one process.
//!
//! A single thread writes ([`writer`]). It runs all waiting operations in one transaction, in which
//! each can fail separately, and answers all of them after one commit, so that many operations
//! share one `fsync`. Operations that may be repeated after a power failure ([`power`]) need none.
//! Reads use their own connections ([`readers`]) and do not wait for the writer.
//!
//! The file is in WAL mode, and any tool may read it while the bot runs. Only one process may write
//! it: the store holds a lock on `<path>.lock` and on the file itself as long as it exists, and a
//! second store is refused, whatever name it uses for the file. A trace opens the file read-only.
//! The files are accessible only to their owner, and are watched while the store is open
//! ([`files`]): a write that would be missing after a restart is not acknowledged.
//!
//! Nothing here depends on Slack or a graph: values are stored as JSON, long ones packed
//! ([`crate::packed`]), next to the few columns that are searched. The pair of thread and position is one integer key, see [`keys`].
//! Start reading in `operations.rs`, which lists the operations, then in `changes.rs`, the central
//! one; `schema.rs` has the tables.
//!
//! A connection pool with which every task writes was rejected as a design: SQLite allows only one
//! writer at a time anyway, and each write would need its own `fsync`.

use std::sync::Arc;

use countersign_core::clock::Clock;

use crate::aside::UnreadableEntries;

mod actions;
mod aside;
pub mod backup;
mod cache;
mod changes;
mod connection;
mod create;
mod dead_letters;
mod failure;
mod files;
mod forget;
mod inbox;
mod joined;
mod keys;
mod leases;
mod lists;
mod mailbox;
mod open;
mod operations;
mod outbox;
mod parsing;
mod power;
mod readers;
mod recent;
mod record;
mod registers;
mod schema;
mod steps;
mod sweep;
mod thread_row;
mod waiters;
mod writer;
mod written;

pub use open::{OpenError, file_beside, lock, lock_of};

/// A [`countersign_graph::store::Store`] in a SQLite file. Created by [`SqliteStore::open`], or by
/// [`SqliteStore::open_to_read`] while another process has it open.
///
/// Dropping it waits for the operations in progress, closes the file and releases the locks.
///
/// # Cancel safety
///
/// Dropping the future of an operation does not cancel the operation, which may or may not take
/// effect.
#[derive(Debug)]
pub struct SqliteStore {
    writer: writer::Writer,
    readers: readers::Readers,
    clock: Arc<dyn Clock>,
    name: String,
    /// The entries that this process could not read.
    found: Arc<UnreadableEntries>,
    written: written::WrittenActions,
    /// The locks, which are only held; `None` if the store is read-only. This is the last field, so
    /// that the locks are released after the connections are closed.
    _locks: Option<[std::fs::File; 2]>,
}
