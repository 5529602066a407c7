//! The record of a thread: only appended to, each entry chained to the one before.

use rusqlite::{Connection, OptionalExtension as _, params};

use super::{
    keys::{json, key, parse, seq},
    thread_row::ThreadRow,
};
use crate::{
    graph::store::{AuditDraft, AuditEntry, Error},
    ids::ThreadId,
};

/// Appends events.
pub(super) fn append(connection: &Connection, row: &ThreadRow, events: &[AuditDraft]) -> Result<(), Error> {
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

/// The record of a thread, still written out.
pub(super) fn entries(connection: &Connection, thread: &ThreadId) -> Result<Vec<String>, Error> {
    let Some(row) = ThreadRow::find(connection, thread)? else { return Ok(Vec::new()) };
    let mut select = connection.prepare_cached("SELECT entry FROM audit WHERE id BETWEEN ?1 AND ?2 ORDER BY id")?;
    let rows = select.query_map(row.keys(), |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Reads entries that were written out.
pub(super) fn read(entries: Vec<String>) -> Result<Vec<AuditEntry>, Error> {
    entries.iter().map(|entry| parse(entry, "an entry of the record")).collect()
}
