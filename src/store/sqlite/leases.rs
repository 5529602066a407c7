//! Leases: the right to advance a thread.

use countersign_core::{clock::Timestamp, ids::ThreadId};
use countersign_graph::store::{Error, Holder, Lease, Then};
use rusqlite::OptionalExtension as _;

use super::{connection::Connection, failure::Failure, lists, lists::StoredSaved, mailbox, thread_row::ThreadRow};

/// A leased thread, with its contents still serialized.
#[derive(Debug)]
pub(super) struct StoredAcquired {
    pub(super) lease: Lease,
    pub(super) saved: StoredSaved,
    pub(super) messages: Vec<mailbox::StoredMessage>,
}

/// Leases the thread that has been ready longest, or the thread `only`. `clock` is the store's time; a wait is over when
/// this or the holder's has reached its end.
pub(super) fn acquire(
    connection: &Connection<'_>,
    holder: &Holder,
    clock: Timestamp,
    only: Option<&ThreadId>,
) -> Result<Option<StoredAcquired>, Failure> {
    let row = match only {
        Some(thread) => ThreadRow::find(connection, thread)?,
        None => longest_ready(connection, holder.now.max(clock), clock)?,
    };
    let Some(mut row) = row else { return Ok(None) };
    let acquired = acquire_row(connection, &mut row, holder, clock)?;
    if acquired.is_some() {
        row.save(connection, clock)?;
    }
    Ok(acquired)
}

/// Leases a thread if it is ready. The row then has to be saved.
pub(super) fn acquire_row(
    connection: &Connection<'_>,
    row: &mut ThreadRow,
    Holder { worker, ttl, now }: &Holder,
    clock: Timestamp,
) -> Result<Option<StoredAcquired>, Failure> {
    if row.ready_at.is_none_or(|since| since > clock.max(*now)) || row.leased(clock) {
        return Ok(None);
    }
    let (saved, messages) = (lists::saved(connection, row)?, mailbox::messages(connection, row, 0)?);
    row.fence += 1;
    row.lease_until = clock + *ttl;
    row.worker = Some(worker.as_str().to_owned());
    let lease =
        Lease { thread: row.thread.clone(), worker: worker.clone(), graph: row.graph.clone(), fence: row.fence };
    Ok(Some(StoredAcquired { lease, saved, messages }))
}

fn longest_ready(connection: &Connection<'_>, now: Timestamp, clock: Timestamp) -> Result<Option<ThreadRow>, Failure> {
    const SQL: &str = "SELECT id FROM threads WHERE ready_at <= ?1 AND lease_until <= ?2 ORDER BY ready_at LIMIT 1";
    let id = connection.statement(SQL)?.query_row([now.0, clock.0], |row| row.get(0)).optional()?;
    id.map(|id| ThreadRow::get(connection, id)).transpose()
}

/// Extends a lease.
pub(super) fn renew(connection: &Connection<'_>, lease: &Lease, until: Timestamp) -> Result<(), Failure> {
    let row = leased_row(connection, lease)?;
    connection.statement("UPDATE threads SET lease_until = ?2 WHERE id = ?1")?.execute([row.id, until.0])?;
    Ok(())
}

/// Returns the row of a leased thread.
pub(super) fn leased_row(connection: &Connection<'_>, lease: &Lease) -> Result<ThreadRow, Failure> {
    let row = ThreadRow::find(connection, &lease.thread)?.ok_or_else(|| Error::Fenced(lease.thread.clone()))?;
    row.check(lease)?;
    Ok(row)
}

/// Keeps or releases the lease.
pub(super) fn settle(
    connection: &Connection<'_>,
    row: &mut ThreadRow,
    then: Then,
    clock: Timestamp,
) -> Result<(), Failure> {
    row.ready_at = match then {
        Then::Keep => return Ok(()),
        Then::Release if mailbox::is_empty(connection, row)? => None,
        Then::Release => Some(clock),
        Then::ReleaseUntil(until) => Some(until),
    };
    row.worker = None;
    row.lease_until = Timestamp(0);
    Ok(())
}
