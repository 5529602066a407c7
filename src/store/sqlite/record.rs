//! The audit trail of a thread: append-only, each entry chained to the previous one.

use countersign_core::{clock::Timestamp, ids::ThreadId};
use countersign_graph::store::{AuditDraft, AuditEntry, Error};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::{
    failure::Failure,
    keys::{bytes, json, key, name, parse, seq},
    thread_row::ThreadRow,
};

/// Appends events to the audit trail.
pub(super) fn append(connection: &Connection, row: &ThreadRow, events: &[AuditDraft]) -> Result<(), Failure> {
    if events.is_empty() {
        return Ok(());
    }
    const LAST: &str = "SELECT id, hash FROM audit WHERE id BETWEEN ?1 AND ?2 ORDER BY id DESC LIMIT 1";
    let last = connection
        .prepare_cached(LAST)?
        .query_row(row.keys(), |row| Ok((seq(row.get(0)?), row.get::<_, String>(1)?)))
        .optional()?;
    let (mut seq, mut previous) = last.unwrap_or_default();
    let mut insert = connection.prepare_cached("INSERT INTO audit (id, hash, entry) VALUES (?1, ?2, ?3)")?;
    for event in events {
        seq += 1;
        let entry = AuditEntry::chain(&row.thread, seq, &previous, event.clone());
        insert.execute(params![key(row.id, seq), entry.hash, json(&entry)])?;
        previous = entry.hash;
    }
    Ok(())
}

/// An audit entry: its position, its hash and its serialized content.
pub(super) type StoredAuditEntry = (u64, String, Vec<u8>);

/// Returns the audit trail of a thread, still serialized.
pub(super) fn entries(connection: &Connection, thread: &ThreadId) -> Result<Vec<StoredAuditEntry>, Failure> {
    let Some(row) = ThreadRow::find(connection, thread)? else { return Ok(Vec::new()) };
    const SQL: &str = "SELECT id, hash, entry FROM audit WHERE id BETWEEN ?1 AND ?2 ORDER BY id";
    let mut select = connection.prepare_cached(SQL)?;
    let rows = select.query_map(row.keys(), |row| Ok((seq(row.get(0)?), name(row, 1)?, bytes(row, 2)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Parses entries. Those that cannot be read are reported, and placeholders are returned in their
/// places.
pub(super) fn read(entries: Vec<StoredAuditEntry>, mut unreadable: impl FnMut(u64, Error)) -> Vec<AuditEntry> {
    let mut record: Vec<AuditEntry> = Vec::with_capacity(entries.len());
    for (seq, hash, entry) in entries {
        let entry = parse(&entry, "an entry of the record").unwrap_or_else(|error| {
            unreadable(seq, error);
            let (previous, at) = record.last().map_or(("", Timestamp(0)), |last| (&last.hash, last.event.at));
            AuditEntry::unreadable(seq, previous, hash, at)
        });
        record.push(entry);
    }
    record
}
