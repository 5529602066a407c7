//! The messages of a thread that wait in the outbox, and which of them may be sent next.

use std::sync::Arc;

use countersign_core::{clock::Timestamp, ids::Slot};
use countersign_graph::store::TRIED_OFTEN;

use super::{connection::Connection, failure::Failure, outbox::StoredOutgoing, thread_row::ThreadRow};

/// The messages of a thread that wait, in order.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Waiters(Vec<Waiter>);

/// A message that waits.
#[derive(Debug, PartialEq)]
pub(super) struct Waiter {
    pub(super) id: i64,
    not_before: Timestamp,
    progress: bool,
    pub(super) attempts: u32,
    slot: Option<Slot>,
    /// The message itself, if it was put in by this operation.
    pub(super) message: Option<Arc<StoredOutgoing>>,
}

impl Waiter {
    fn of(id: i64, message: &Arc<StoredOutgoing>) -> Self {
        let StoredOutgoing { slot, progress, not_before, .. } = &**message;
        let (slot, message) = (slot.clone(), Some(Arc::clone(message)));
        Self { id, not_before: *not_before, progress: *progress, attempts: 0, slot, message }
    }
}

impl Waiters {
    /// Reads the messages of a thread from the outbox.
    pub(super) fn of(connection: &Connection<'_>, row: &ThreadRow) -> Result<Self, Failure> {
        // The choice is made here because SQLite would recompile the query for every thread.
        const SQL: &str =
            "SELECT id, not_before, progress, attempts, slot FROM outbox WHERE id BETWEEN ?1 AND ?2 ORDER BY id";
        let mut select = connection.statement(SQL)?;
        let waiters = select.query_map(row.keys(), |row| {
            Ok(Waiter {
                id: row.get(0)?,
                not_before: Timestamp(row.get(1)?),
                progress: row.get(2)?,
                attempts: row.get(3)?,
                slot: row.get::<_, Option<String>>(4)?.map(Slot::new),
                message: None,
            })
        })?;
        Ok(Self(waiters.collect::<Result<_, _>>()?))
    }

    /// Adds a message that was just put in.
    pub(super) fn add(&mut self, id: i64, message: &Arc<StoredOutgoing>) {
        self.0.push(Waiter::of(id, message));
    }

    /// Returns true if these are the same messages, whether or not their contents are known.
    pub(super) fn are_same(&self, others: &Self) -> bool {
        let facts = |Waiter { id, not_before, progress, attempts, slot, message: _ }: &Waiter| {
            (*id, *not_before, *progress, *attempts, slot.clone())
        };
        self.0.iter().map(facts).eq(others.0.iter().map(facts))
    }

    /// Returns true if a message for this slot may make one of them obsolete.
    pub(super) fn may_become_obsolete(&self, slot: &Slot) -> bool {
        self.0.iter().any(|waiter| waiter.progress || waiter.slot.as_ref() == Some(slot))
    }

    /// Returns the time at which one of them may be sent.
    pub(super) fn first_time(&self) -> Option<Timestamp> {
        self.candidates().into_iter().map(|next| next.not_before).min()
    }

    /// Returns those that may be sent next, in order of preference: the next regular message,
    /// then those with many failed attempts, the one that has waited longest first. No message is sent
    /// before one with many failed attempts for the same slot.
    ///
    /// The next regular message is the oldest one that is not a progress message, or else the oldest
    /// progress message. However, a progress message that was already tried is sent before other
    /// messages of the same slot: if its post arrived unnoticed, it would otherwise remain visible
    /// forever.
    fn candidates(&self) -> Vec<&Waiter> {
        let mut progress: Vec<&Waiter> = Vec::new();
        let (mut first, mut tried_often, mut held_up) = (None, Vec::new(), Vec::new());
        for next in &self.0 {
            let slot = next.slot.as_ref();
            if slot.is_some() && held_up.contains(&slot) {
                continue;
            }
            if next.attempts >= TRIED_OFTEN {
                tried_often.push(next);
                held_up.push(slot);
            } else if next.progress {
                progress.push(next);
            } else if first.is_none() {
                let of_slot = |before: &&&Waiter| before.attempts > 0 && slot.is_some() && before.slot.as_ref() == slot;
                first = Some(progress.iter().find(of_slot).map_or(next, |before| *before));
            }
        }
        tried_often.sort_by_key(|next| (next.not_before, next.id));
        first.or(progress.first().copied()).into_iter().chain(tried_often).collect()
    }

    /// Returns those that may be sent now, one after another, at most `most`: the next one and, if none was tried before,
    /// those that follow it. None of these reports progress, or is for the slot of an earlier one, which it may edit.
    pub(super) fn next(&self, now: Timestamp, most: usize) -> Vec<&Waiter> {
        let Some(first) = self.candidates().into_iter().find(|next| next.not_before <= now) else { return Vec::new() };
        let mut next = vec![first];
        if first.progress || self.0.iter().any(|waiter| waiter.id <= first.id && waiter.attempts > 0) {
            return next;
        }
        for waiter in self.0.iter().filter(|waiter| waiter.id > first.id) {
            let follows = |earlier: &&Waiter| waiter.slot.is_some() && earlier.slot == waiter.slot;
            let is_other = waiter.progress || waiter.attempts > 0 || waiter.not_before > now;
            if next.len() >= most || is_other || next.iter().any(follows) {
                break;
            }
            next.push(waiter);
        }
        next
    }
}
