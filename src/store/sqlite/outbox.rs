//! The outbox. The messages of a thread are sent in order, one after another, progress messages last. Several can be claimed
//! together. A message with many failed attempts holds up only its own slot.
//!
//! An entry counts as *tried* as soon as it is claimed: from then on its message may exist in
//! Slack, so it keeps its text and its nonce. Before that, its text can be replaced, or the entry
//! can be dropped.

use std::sync::Arc;

use countersign_core::{
    clock::Timestamp,
    ids::{ChannelId, MessageTs, Nonce, Slot, ThreadId},
};
use countersign_graph::store::{Claimed, Error, Outbound, Outgoing, Posted, Sent, Seq, TRIED_OFTEN, Waiting};
use rusqlite::{OptionalExtension as _, params};

use super::{
    connection::Connection,
    dead_letters,
    failure::Failure,
    keys::{self, bytes, json, key, parse, seq},
    thread_row::ThreadRow,
    waiters::{Waiter, Waiters},
};

/// A message with its body as JSON. The body is not packed, since it is usually sent, and deleted, milliseconds later.
#[derive(Debug, PartialEq)]
pub(super) struct StoredOutgoing {
    pub(super) slot: Option<Slot>,
    nonce: Nonce,
    pub(super) progress: bool,
    removes: bool,
    pub(super) not_before: Timestamp,
    pub(super) body: Vec<u8>,
}

impl From<&Outgoing> for StoredOutgoing {
    fn from(Outgoing { slot, nonce, progress, not_before, body }: &Outgoing) -> Self {
        Self {
            slot: slot.clone(),
            nonce: nonce.clone(),
            progress: *progress,
            removes: matches!(body, Outbound::Remove),
            not_before: *not_before,
            body: json(body).into_bytes(),
        }
    }
}

/// A claim, as its holder knows it: the message, and the number of earlier claims.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    thread: ThreadId,
    seq: Seq,
    attempts: u32,
}

impl From<&Claimed> for Claim {
    fn from(Claimed { thread, seq, attempts, .. }: &Claimed) -> Self {
        Self { thread: thread.clone(), seq: *seq, attempts: *attempts }
    }
}

/// A claimed message, with its body still serialized.
#[derive(Debug)]
pub(super) struct StoredClaimed {
    pub(super) thread: ThreadId,
    pub(super) seq: Seq,
    attempts: u32,
    posted: Option<Posted>,
    pub(super) outgoing: Arc<StoredOutgoing>,
}

impl StoredClaimed {
    /// Parses the body.
    pub(super) fn read(self) -> Result<Claimed, Error> {
        let body = parse(&self.outgoing.body, "an outgoing message")?;
        Ok(self.with_body(body))
    }

    /// Returns the message with a body that need not be parsed.
    pub(super) fn with_body(self, body: Outbound) -> Claimed {
        let Self { thread, seq, attempts, posted, outgoing } = self;
        let StoredOutgoing { slot, nonce, progress, removes: _, not_before, body: _ } = &*outgoing;
        let (slot, nonce) = (slot.clone(), nonce.clone());
        let outgoing = Outgoing { slot, nonce, progress: *progress, not_before: *not_before, body };
        Claimed { thread, seq, attempts, posted, outgoing }
    }
}

/// Adds messages to a thread's outbox, and drops those that they make obsolete.
pub(super) fn put(
    connection: &Connection<'_>,
    row: &mut ThreadRow,
    messages: &[Arc<StoredOutgoing>],
) -> Result<(), Failure> {
    if messages.is_empty() {
        return Ok(());
    }
    // What waits, as long as it is known without reading the outbox.
    let mut waiting = row.send_at.is_none().then(Waiters::default);
    for message in messages {
        if let Some(slot) = &message.slot {
            let concerns_others = waiting.as_ref().is_none_or(|waiting| waiting.may_become_obsolete(slot));
            if concerns_others {
                waiting = None;
            }
            if replace_obsolete(connection, row, message, slot, concerns_others)? {
                continue;
            }
        }
        const SQL: &str = "INSERT INTO outbox (id, slot, nonce, progress, removes, not_before, since, body) \
                           VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, ?7)";
        let id = key(row.id, row.next_seq());
        connection.statement(SQL)?.execute(params![
            id,
            message.slot.as_ref().map(Slot::as_str),
            message.nonce.as_str(),
            message.progress,
            message.removes,
            message.not_before.0,
            message.body,
        ])?;
        if let Some(waiting) = &mut waiting {
            waiting.add(id, message);
        }
    }
    match waiting {
        Some(waiting) => {
            row.send_at = waiting.first_time();
            row.waiting = Some(waiting);
            Ok(())
        }
        None => schedule(connection, row),
    }
}

/// Replaces or drops the entries that a message for this slot makes obsolete, unless it is known that there are none
/// (`concerns_others` is false). Returns true if the message itself need not be inserted.
fn replace_obsolete(
    connection: &Connection<'_>,
    row: &ThreadRow,
    message: &StoredOutgoing,
    slot: &Slot,
    concerns_others: bool,
) -> Result<bool, Failure> {
    dead_letters::drop_for_slot(connection, &row.thread, slot)?;
    if !concerns_others {
        return Ok(message.removes && posted(connection, row.id, slot)?.is_none());
    }
    let [first, last] = row.keys();
    const PROGRESS: &str = "DELETE FROM outbox WHERE id BETWEEN ?1 AND ?2 AND progress AND attempts = 0";
    connection.statement(PROGRESS)?.execute([first, last])?;
    if message.removes && posted(connection, row.id, slot)?.is_none() {
        const TRIED: &str = "SELECT 1 FROM outbox WHERE id BETWEEN ?1 AND ?2 AND slot = ?3 AND attempts > 0";
        if !connection.statement(TRIED)?.exists(params![first, last, slot.as_str()])? {
            const CANCEL: &str = "DELETE FROM outbox WHERE id BETWEEN ?1 AND ?2 AND slot = ?3";
            connection.statement(CANCEL)?.execute(params![first, last, slot.as_str()])?;
            return Ok(true);
        }
    }
    const REPLACE: &str = "UPDATE outbox SET body = ?4, removes = ?5, \
                           not_before = iif(not_before = since, min(since, ?6), not_before), \
                           since = iif(not_before = since, min(since, ?6), since) \
                           WHERE id BETWEEN ?1 AND ?2 AND slot = ?3 AND attempts = 0";
    let replaced = connection.statement(REPLACE)?.execute(params![
        first,
        last,
        slot.as_str(),
        message.body,
        message.removes,
        message.not_before.0,
    ])?;
    if replaced > 1 {
        // One was put back while the other was written. Both now have the same text, so the first is enough.
        const OTHERS: &str = "DELETE FROM outbox WHERE id BETWEEN ?1 AND ?2 AND slot = ?3 AND attempts = 0 \
                              AND id > (SELECT min(id) FROM outbox WHERE id BETWEEN ?1 AND ?2 AND slot = ?3 AND attempts = 0)";
        connection.statement(OTHERS)?.execute(params![first, last, slot.as_str()])?;
    }
    Ok(replaced > 0)
}

/// Claims the next message of each thread that has one to send now.
pub(super) fn claim(
    connection: &Connection<'_>,
    until: Timestamp,
    now: Timestamp,
    clock: Timestamp,
    limit: usize,
    only: Option<&ThreadId>,
) -> Result<Vec<StoredClaimed>, Failure> {
    let mut rows = Vec::new();
    match only {
        Some(thread) if limit > 0 => rows.extend(ThreadRow::find(connection, thread)?),
        Some(_) => {}
        None => {
            const SQL: &str = "SELECT id FROM threads WHERE send_at <= ?1 AND sending_until <= ?2 \
                               ORDER BY send_at LIMIT ?3";
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let mut select = connection.statement(SQL)?;
            let ids = select.query_map([now.0, clock.0, limit], |row| row.get(0))?;
            for id in ids.collect::<Result<Vec<i64>, _>>()? {
                rows.push(ThreadRow::get(connection, id)?);
            }
        }
    }
    let mut claimed = Vec::with_capacity(rows.len());
    for mut row in rows.into_iter().filter(|row| may_send(row, now, clock)) {
        claimed.extend(claim_next(connection, &mut row, until, now, 1)?);
        row.save(connection, clock)?;
    }
    Ok(claimed)
}

/// Claims the next messages of a thread, at most `most`, if it has any to send now. The row then has to be saved.
pub(super) fn claim_of_row(
    connection: &Connection<'_>,
    row: &mut ThreadRow,
    until: Timestamp,
    now: Timestamp,
    clock: Timestamp,
    most: usize,
) -> Result<Vec<StoredClaimed>, Failure> {
    if may_send(row, now, clock) { claim_next(connection, row, until, now, most) } else { Ok(Vec::new()) }
}

/// Returns true if the thread has a message that is due, and no claim is in force.
fn may_send(row: &ThreadRow, now: Timestamp, clock: Timestamp) -> bool {
    row.send_at.is_some_and(|at| at <= now) && row.sending_until <= clock
}

/// Claims the next messages of the row's thread, or notes when there will be one.
fn claim_next(
    connection: &Connection<'_>,
    row: &mut ThreadRow,
    until: Timestamp,
    now: Timestamp,
    most: usize,
) -> Result<Vec<StoredClaimed>, Failure> {
    let waiting = match row.waiting.take() {
        Some(waiting) => {
            debug_assert!(
                waiting.are_same(&Waiters::of(connection, row)?),
                "what waits is as in the file: {waiting:?}"
            );
            waiting
        }
        None => Waiters::of(connection, row)?,
    };
    let next = waiting.next(now, most);
    if next.is_empty() {
        row.send_at = waiting.first_time();
        return Ok(Vec::new());
    }
    // Claimed, even if what follows cannot be read.
    (row.in_flight, row.sending_until) = (next.iter().map(|waiter| seq(waiter.id)).collect(), until);
    let mut claimed = Vec::with_capacity(next.len());
    for waiter in next {
        match claim_one(connection, row, waiter) {
            Ok(message) => claimed.push(message),
            Err(error) if claimed.is_empty() || connection.is_autocommit() => return Err(error),
            Err(_) => {
                // those before it can be sent
                row.in_flight.truncate(claimed.len());
                break;
            }
        }
    }
    Ok(claimed)
}

fn claim_one(connection: &Connection<'_>, row: &ThreadRow, waiter: &Waiter) -> Result<StoredClaimed, Failure> {
    let Waiter { id, attempts, .. } = *waiter;
    // Not with RETURNING, for which SQLite makes a temporary table each time.
    connection.statement("UPDATE outbox SET attempts = attempts + 1 WHERE id = ?1")?.execute([id])?;
    let outgoing = match &waiter.message {
        Some(message) => Arc::clone(message),
        None => Arc::new(read_one(connection, id)?),
    };
    let posted = match &outgoing.slot {
        Some(slot) => posted(connection, row.id, slot)?,
        None => None,
    };
    Ok(StoredClaimed { thread: row.thread.clone(), seq: seq(id), attempts, posted, outgoing })
}

fn read_one(connection: &Connection<'_>, id: i64) -> Result<StoredOutgoing, Failure> {
    const SQL: &str = "SELECT slot, nonce, progress, removes, not_before, body FROM outbox WHERE id = ?1";
    let message = connection.statement(SQL)?.query_row([id], |row| {
        Ok(StoredOutgoing {
            slot: row.get::<_, Option<String>>(0)?.map(Slot::new),
            nonce: Nonce::new(row.get::<_, String>(1)?),
            progress: row.get(2)?,
            removes: row.get(3)?,
            not_before: Timestamp(row.get(4)?),
            body: bytes(row, 5)?,
        })
    })?;
    Ok(message)
}

/// Returns true if the claim has not expired and the message has not been claimed again.
pub(super) fn holds(connection: &Connection<'_>, claimed: &Claim, clock: Timestamp) -> Result<bool, Failure> {
    let Some(row) = ThreadRow::find(connection, &claimed.thread)? else { return Ok(false) };
    const SQL: &str = "SELECT 1 FROM outbox WHERE id = ?1 AND attempts = ?2";
    let is_ours = connection.statement(SQL)?.exists(params![key(row.id, claimed.seq), claimed.attempts + 1])?;
    Ok(is_ours && row.in_flight.contains(&claimed.seq) && row.sending_until > clock)
}

/// Removes a message, even if it is claimed.
pub(super) fn remove(
    connection: &Connection<'_>,
    thread: &ThreadId,
    seq: Seq,
    clock: Timestamp,
) -> Result<(), Failure> {
    let Some(mut row) = ThreadRow::find(connection, thread)? else { return Ok(()) };
    let attempts: Option<u32> = connection
        .statement("SELECT attempts FROM outbox WHERE id = ?1")?
        .query_row([key(row.id, seq)], |row| row.get(0))
        .optional()?;
    let Some(attempts) = attempts else { return Ok(()) };
    let claim = Claim { thread: thread.clone(), seq, attempts: attempts.saturating_sub(1) };
    finish(connection, &mut row, &claim, &Sent::Dropped)?;
    schedule(connection, &mut row)?;
    row.save(connection, clock)
}

/// Records the result of sending a message. A second report about the same message changes nothing. Returns false if the
/// claim is no longer valid. In any case, the next message has to be scheduled afterwards ([`schedule`]), and the thread's row to
/// be saved.
pub(super) fn finish(
    connection: &Connection<'_>,
    row: &mut ThreadRow,
    claimed: &Claim,
    sent: &Sent,
) -> Result<bool, Failure> {
    let id = key(row.id, claimed.seq);
    let entry: Option<(Option<String>, bool, u32)> = connection
        .statement("SELECT slot, removes, attempts FROM outbox WHERE id = ?1")?
        .query_row([id], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    let Some((slot, removes, attempts)) = entry else { return Ok(false) };
    let is_ours = attempts == claimed.attempts + 1;
    if !is_ours && !matches!(sent, Sent::Delivered(_)) {
        return Ok(false);
    }
    match sent {
        Sent::Retry(at) => {
            connection.statement("UPDATE outbox SET not_before = ?2 WHERE id = ?1")?.execute([id, at.0])?
        }
        Sent::Deferred(at) => {
            const SQL: &str = "UPDATE outbox SET not_before = ?2, attempts = max(attempts - 1, 0) WHERE id = ?1";
            connection.statement(SQL)?.execute([id, at.0])?;
            const OUTDATED: &str = "DELETE FROM outbox WHERE id = ?1 AND progress AND attempts = 0 \
                                    AND EXISTS (SELECT 1 FROM outbox WHERE id > ?1 AND id <= ?2 AND slot IS NOT NULL)";
            connection.statement(OUTDATED)?.execute([id, row.keys()[1]])?
        }
        Sent::Postponed(at) => {
            const SQL: &str = "UPDATE outbox SET not_before = ?2, attempts = max(attempts, ?3) WHERE id = ?1";
            connection.statement(SQL)?.execute(params![id, at.0, TRIED_OFTEN])?
        }
        Sent::Failed { reason, at } => {
            const NEWER: &str = "SELECT 1 FROM outbox WHERE id > ?1 AND id <= ?2 AND slot = ?3";
            let is_outdated =
                slot.is_some() && connection.statement(NEWER)?.exists(params![id, row.keys()[1], slot.as_deref()])?;
            if !is_outdated {
                dead_letters::keep_message(connection, &row.thread, id, reason, *at)?;
            }
            connection.statement("DELETE FROM outbox WHERE id = ?1")?.execute([id])?
        }
        Sent::Delivered(_) | Sent::Dropped => {
            connection.statement("DELETE FROM outbox WHERE id = ?1")?.execute([id])?
        }
    };
    match (slot, sent) {
        (Some(slot), Sent::Delivered(_)) if removes => {
            const SQL: &str = "DELETE FROM slots WHERE thread = ?1 AND slot = ?2";
            connection.statement(SQL)?.execute(params![row.id, slot])?;
        }
        (Some(slot), Sent::Delivered(Some(at))) => {
            const SQL: &str =
                "INSERT OR REPLACE INTO slots (thread, slot, channel, ts, card) VALUES (?1, ?2, ?3, ?4, ?5)";
            let card = at.card.as_ref().map(json);
            let values = params![row.id, slot, at.channel.as_str(), at.ts.as_str(), card];
            connection.statement(SQL)?.execute(values)?;
        }
        _ => {}
    }
    row.land(claimed.seq);
    Ok(is_ours)
}

/// Returns the place of the message that was posted for a slot.
pub(super) fn posted(connection: &Connection<'_>, thread: i64, slot: &Slot) -> Result<Option<Posted>, Failure> {
    let mut select = connection.statement("SELECT channel, ts, card FROM slots WHERE thread = ?1 AND slot = ?2")?;
    let read = |row: &rusqlite::Row<'_>| {
        let at = Posted::at(ChannelId::new(row.get::<_, String>(0)?), MessageTs::new(row.get::<_, String>(1)?));
        Ok((at, row.get::<_, Option<String>>(2)?))
    };
    let Some((at, card)) = select.query_row(params![thread, slot.as_str()], read).optional()? else { return Ok(None) };
    let card = card.map(|card| parse(&card, "the card that a message shows")).transpose()?;
    Ok(Some(Posted { card, ..at }))
}

/// Sets the time at which the thread's next message may be sent.
pub(super) fn schedule(connection: &Connection<'_>, row: &mut ThreadRow) -> Result<(), Failure> {
    let waiting = Waiters::of(connection, row)?;
    row.send_at = waiting.first_time();
    row.waiting = Some(waiting);
    Ok(())
}

/// Returns the messages, except progress messages, that were due before a given time and are still
/// waiting.
pub(super) fn waiting(connection: &Connection<'_>, before: Timestamp, limit: usize) -> Result<Vec<Waiting>, Failure> {
    const SQL: &str = "SELECT team, channel, root, slot, since, attempts \
                       FROM outbox JOIN threads ON threads.id = outbox.id >> 32 \
                       WHERE since < ?1 AND NOT progress ORDER BY since, outbox.id LIMIT ?2";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut select = connection.statement(SQL)?;
    let found = select.query_map([before.0, limit], |row| {
        let thread = keys::thread(row)?;
        let slot = row.get::<_, Option<String>>(3)?.map(Slot::new);
        Ok(Waiting { thread, slot, since: Timestamp(row.get(4)?), attempts: row.get(5)? })
    })?;
    Ok(found.collect::<Result<_, _>>()?)
}
