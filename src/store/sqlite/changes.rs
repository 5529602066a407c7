//! One atomic write: all changes of a step, a click or a timer in a thread.

use std::sync::Arc;

use countersign_core::{
    clock::Timestamp,
    ids::{CommitId, ThreadId},
};
use countersign_graph::{
    action::Status,
    keyring::Keyring,
    store::{Changes, Error, Lease, Outbound, Seq, Then, TimerChange, Version},
};
use rusqlite::params;

use super::{
    actions::{self, StoredAction},
    connection::Connection,
    failure::Failure,
    inbox,
    keys::{int, json},
    leases, mailbox,
    outbox::{self, StoredClaimed, StoredOutgoing},
    recent,
    record::{self, StoredEvent},
    steps,
    thread_row::ThreadRow,
    writer::Durable,
    written::WrittenActions,
};
use crate::packed::pack;

/// Returns the time at which a write has to be on disk. That is at once if it has a message to send, a timer or a change
/// of an action. The rest is steps that only read, which may be repeated.
///
/// An approval may be repeated as well: its interaction is on disk, and stays in the inbox until the write that
/// acknowledges it is. This holds only for edits of cards, since a post would be made twice, and not for other decisions:
/// another interaction could come first when they are repeated, and the change would be made after all.
pub(super) fn sync(changes: &Changes) -> Durable {
    let Changes { outbox, timers, actions, inbox_acks, .. } = changes;
    let only_reads = outbox.is_empty() && timers.is_empty() && actions.is_empty();
    let only_approves =
        outbox.iter().all(|message| matches!(message.body, Outbound::Card { .. } | Outbound::Redraw { .. }))
            && actions.iter().all(|change| change.record.status == Status::Approved && change.expected.is_some());
    if only_reads || !inbox_acks.is_empty() && only_approves { Durable::Later } else { Durable::Now }
}

/// [`Changes`] in serialized form. The caller serializes them to relieve the writing thread.
#[derive(Debug)]
pub(super) struct StoredChanges {
    commit: CommitId,
    thread: ThreadId,
    /// The number of steps.
    steps: u64,
    packed_steps: Vec<u8>,
    snapshot: Option<Vec<u8>>,
    acks: Vec<Seq>,
    inbox_acks: Vec<Seq>,
    messages: Vec<String>,
    outbox: Vec<Arc<StoredOutgoing>>,
    timers: Vec<TimerChange>,
    actions: Vec<StoredAction>,
    events: Vec<StoredEvent>,
    /// The keys that seal the head of the audit trail.
    keys: Option<Arc<Keyring>>,
}

impl StoredChanges {
    /// Serializes a write.
    pub(super) fn new(changes: &Changes, written: &WrittenActions) -> Self {
        let Changes {
            commit,
            thread,
            steps,
            snapshot,
            acks,
            inbox_acks,
            messages,
            outbox,
            timers,
            actions,
            audit,
            keys,
        } = changes;
        Self {
            commit: commit.clone(),
            thread: thread.clone(),
            steps: steps.len() as u64,
            packed_steps: steps::pack(steps),
            snapshot: snapshot.as_ref().map(|snapshot| pack(snapshot.text().as_bytes().to_vec())),
            acks: acks.clone(),
            inbox_acks: inbox_acks.clone(),
            messages: messages.iter().map(json).collect(),
            outbox: outbox.iter().map(|message| Arc::new(StoredOutgoing::from(message))).collect(),
            timers: timers.clone(),
            actions: actions.iter().map(|change| StoredAction::new(change, &written.before(change))).collect(),
            events: audit.iter().map(StoredEvent::from).collect(),
            keys: keys.clone(),
        }
    }

    /// Returns the position of the message whose body is that of a claimed one.
    pub(super) fn position_of(&self, claimed: &StoredClaimed) -> Option<usize> {
        self.outbox.iter().position(|message| message.body == claimed.outgoing.body)
    }
}

/// Writes with a lease; implements [`countersign_graph::store::Store::commit`]. Returns the version after the write, and
/// the thread's row, which has to be saved.
pub(super) fn commit(
    connection: &Connection<'_>,
    lease: &Lease,
    expected: Version,
    changes: &StoredChanges,
    then: Then,
    clock: Timestamp,
) -> Result<(Version, ThreadRow), Failure> {
    let fenced = || Error::Fenced(lease.thread.clone());
    let mut row = ThreadRow::find(connection, &lease.thread)?.ok_or_else(fenced)?;
    if let Some(version) = find_repeat(connection, &row, expected, changes, clock)? {
        return Ok((version, row));
    }
    row.check(lease)?;
    if row.version != expected {
        return Err(Error::VersionConflict { thread: row.thread, expected, found: row.version }.into());
    }
    if changes.steps > 0 {
        row.version += changes.steps;
        steps::insert(connection, &row, &changes.packed_steps, &changes.commit)?;
    }
    if let Some(snapshot) = &changes.snapshot {
        connection
            .statement("INSERT OR REPLACE INTO snapshots (thread, version, snapshot) VALUES (?1, ?2, ?3)")?
            .execute(params![row.id, int(row.version), snapshot])?;
    }
    write(connection, &mut row, changes, clock)?;
    leases::settle(connection, &mut row, then, clock)?;
    Ok((row.version, row))
}

/// Returns the version after a write if it was already made.
fn find_repeat(
    connection: &Connection<'_>,
    row: &ThreadRow,
    expected: Version,
    changes: &StoredChanges,
    clock: Timestamp,
) -> Result<Option<Version>, Failure> {
    match changes.steps {
        0 => recent::find_commit(connection, row, &changes.commit, clock),
        // A write with steps moves the thread to another version.
        _ if row.version == expected => Ok(None),
        steps => {
            let after = expected + steps;
            Ok(steps::are_of(connection, row, after, &changes.commit)?.then_some(after))
        }
    }
}

/// Writes without a lease; implements [`countersign_graph::store::Store::apply`]. Returns the thread's row, which has to be
/// saved.
pub(super) fn apply(
    connection: &Connection<'_>,
    changes: &StoredChanges,
    clock: Timestamp,
) -> Result<ThreadRow, Failure> {
    debug_assert!(changes.steps == 0 && changes.snapshot.is_none(), "a step needs a lease");
    let mut row = ThreadRow::find_or_insert(connection, &changes.thread, None, clock)?;
    if recent::find_commit(connection, &row, &changes.commit, clock)?.is_some() {
        return Ok(row);
    }
    write(connection, &mut row, changes, clock)?;
    Ok(row)
}

/// Writes the changes that [`commit`] and [`apply`] have in common. Actions come first, since they
/// may be refused.
fn write(
    connection: &Connection<'_>,
    row: &mut ThreadRow,
    changes: &StoredChanges,
    clock: Timestamp,
) -> Result<(), Failure> {
    for change in &changes.actions {
        actions::change(connection, row, change)?;
    }
    mailbox::acknowledge(connection, row, &changes.acks)?;
    for message in &changes.messages {
        mailbox::put(connection, row, message, clock)?;
        row.known = true;
        row.wake(clock);
    }
    for seq in &changes.inbox_acks {
        inbox::finish(connection, row.thread.partition(), *seq)?;
    }
    outbox::put(connection, row, &changes.outbox)?;
    inbox::set_timers(connection, row, &changes.timers)?;
    record::append(connection, row, &changes.events, changes.keys.as_deref())?;
    match changes.steps {
        0 => recent::add_commit(connection, row, &changes.commit, clock),
        _ => Ok(()), // the steps have the id
    }
}
