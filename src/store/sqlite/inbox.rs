//! The inbox, and the timers that add entries to it.

use countersign_core::{
    clock::Timestamp,
    ids::{DedupKey, Partition},
};
use countersign_graph::store::{ClaimedInteraction, Error, Ingested, Seq, TimerChange};
use rusqlite::params;

use super::{
    connection::Connection,
    dead_letters,
    failure::Failure,
    keys::{bytes, int, json, name, parse, uint},
    recent,
    thread_row::ThreadRow,
};

/// An interaction, still serialized: its partition, position, number of earlier claims, and entry.
pub(super) type StoredInteraction = (u8, Seq, u32, Vec<u8>);

/// Adds an entry to the inbox, unless it is a duplicate.
pub(super) fn ingest(
    connection: &Connection<'_>,
    partition: Partition,
    entry: &str,
    claimed_until: Timestamp,
    dedup: &[DedupKey],
    at: Timestamp,
) -> Result<Ingested, Failure> {
    if !recent::add_keys(connection, dedup, at)? {
        return Ok(Ingested::Duplicate);
    }
    put(connection, partition, entry, claimed_until)?;
    Ok(Ingested::New(uint(connection.last_insert_rowid())))
}

/// Adds an entry to the inbox. It is claimed until `claimed_until`, or unclaimed if that is zero.
pub(super) fn put(
    connection: &Connection<'_>,
    partition: Partition,
    entry: &str,
    claimed_until: Timestamp,
) -> Result<(), Failure> {
    connection
        .statement("INSERT INTO desk (partition, claimed_until, attempts, entry) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![partition.number(), claimed_until.0, claimed_until > Timestamp(0), entry])?;
    Ok(())
}

/// Claims the oldest unclaimed entries.
pub(super) fn claim(
    connection: &Connection<'_>,
    until: Timestamp,
    clock: Timestamp,
    limit: usize,
) -> Result<Vec<StoredInteraction>, Failure> {
    const SQL: &str =
        "SELECT partition, seq, attempts, entry FROM desk WHERE claimed_until <= ?1 ORDER BY seq LIMIT ?2";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut select = connection.statement(SQL)?;
    let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, uint(row.get(1)?), row.get(2)?, bytes(row, 3)?));
    let rows = select.query_map([clock.0, limit], read)?;
    let claimed: Vec<StoredInteraction> = rows.collect::<Result<_, _>>()?;
    const CLAIM: &str = "UPDATE desk SET claimed_until = ?2, attempts = attempts + 1 WHERE seq = ?1";
    let mut update = connection.statement(CLAIM)?;
    for (_, seq, _, _) in &claimed {
        update.execute([int(*seq), until.0])?;
    }
    Ok(claimed)
}

/// Parses entries, and reports those that cannot be parsed.
pub(super) fn read(
    entries: Vec<StoredInteraction>,
    mut unreadable: impl FnMut(Partition, Seq, Error),
) -> Vec<ClaimedInteraction> {
    let mut read = Vec::with_capacity(entries.len());
    for (number, seq, attempts, entry) in entries {
        let Some(partition) = Partition::all().find(|partition| partition.number() == number) else { continue };
        match parse(&entry, "an interaction") {
            Ok(entry) => read.push(ClaimedInteraction { partition, seq, attempts, entry }),
            Err(error) => unreadable(partition, seq, error),
        }
    }
    read
}

/// Removes an entry.
pub(super) fn finish(connection: &Connection<'_>, partition: Partition, seq: Seq) -> Result<(), Failure> {
    connection
        .statement("DELETE FROM desk WHERE seq = ?1 AND partition = ?2")?
        .execute(params![int(seq), partition.number()])?;
    Ok(())
}

/// Postpones a claimed entry until a given time.
pub(super) fn retry(connection: &Connection<'_>, seq: Seq, attempts: u32, until: Timestamp) -> Result<(), Failure> {
    const SQL: &str = "UPDATE desk SET claimed_until = ?3 WHERE seq = ?1 AND attempts = ?2";
    connection.statement(SQL)?.execute(params![int(seq), attempts + 1, until.0])?;
    Ok(())
}

/// Moves a claimed entry to the dead letters.
pub(super) fn fail(
    connection: &Connection<'_>,
    (partition, seq, attempts): (Partition, Seq, u32),
    reason: &str,
    at: Timestamp,
) -> Result<(), Failure> {
    const STILL_CLAIMED: &str = "SELECT 1 FROM desk WHERE seq = ?1 AND partition = ?2 AND attempts = ?3";
    if connection.statement(STILL_CLAIMED)?.exists(params![int(seq), partition.number(), attempts + 1])? {
        dead_letters::keep_interaction(connection, partition, seq, reason, at)?;
        finish(connection, partition, seq)?;
    }
    Ok(())
}

/// Sets and clears timers.
pub(super) fn set_timers(connection: &Connection<'_>, row: &ThreadRow, timers: &[TimerChange]) -> Result<(), Failure> {
    for timer in timers {
        match timer {
            TimerChange::Set { key, due, entry } => connection
                .statement("INSERT OR REPLACE INTO timers (thread, key, due, entry) VALUES (?1, ?2, ?3, ?4)")?
                .execute(params![row.id, key, due.0, json(entry)])?,
            TimerChange::Clear { key } => connection
                .statement("DELETE FROM timers WHERE thread = ?1 AND key = ?2")?
                .execute(params![row.id, key])?,
        };
    }
    Ok(())
}

/// Adds the entries of due timers to the inbox, earliest first.
pub(super) fn fire_timers(connection: &Connection<'_>, now: Timestamp) -> Result<usize, Failure> {
    const SQL: &str = "SELECT thread, key FROM timers WHERE due <= ?1 ORDER BY due, thread, key";
    const PUT: &str = "INSERT INTO desk (partition, claimed_until, entry) \
                       SELECT ?1, 0, entry FROM timers WHERE thread = ?2 AND key = ?3";
    let mut select = connection.statement(SQL)?;
    let due: Vec<(i64, String)> =
        select.query_map([now.0], |row| Ok((row.get(0)?, name(row, 1)?)))?.collect::<Result<_, _>>()?;
    for (thread, key) in &due {
        let Some(row) = ThreadRow::try_get(connection, *thread)? else { continue }; // a timer of a deleted thread
        connection.statement(PUT)?.execute(params![row.thread.partition().number(), thread, key])?;
    }
    if !due.is_empty() {
        connection.statement("DELETE FROM timers WHERE due <= ?1")?.execute([now.0])?;
    }
    Ok(due.len())
}
