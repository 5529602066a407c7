//! The audit trail of a thread: append-only, each entry chained to the previous one.

use countersign_core::{clock::Timestamp, ids::ThreadId};
use countersign_graph::{
    keyring::Keyring,
    store::{AuditDraft, AuditEntry, AuditHead, Error, Unchained},
};
use rusqlite::{OptionalExtension as _, params};

use super::{
    connection::Connection,
    failure::Failure,
    keys::{bytes, key, name, parse, seq},
    thread_row::ThreadRow,
};
use crate::packed::packed;

/// An event to append: its commitments are computed and it is packed by the caller, to relieve the writing thread.
#[derive(Debug)]
pub(super) struct StoredEvent {
    event: Vec<u8>,
    unchained: Unchained,
}

impl From<&AuditDraft> for StoredEvent {
    fn from(event: &AuditDraft) -> Self {
        Self { event: packed(event), unchained: Unchained::of(event) }
    }
}

/// Appends events to the audit trail, and seals its head, which is in the thread's row.
pub(super) fn append(
    connection: &Connection<'_>,
    row: &mut ThreadRow,
    events: &[StoredEvent],
    keys: Option<&Keyring>,
) -> Result<(), Failure> {
    if events.is_empty() {
        return Ok(());
    }
    const LAST: &str = "SELECT id, hash FROM audit WHERE id BETWEEN ?1 AND ?2 ORDER BY id DESC LIMIT 1";
    let last = connection
        .statement(LAST)?
        .query_row(row.keys(), |row| Ok((seq(row.get(0)?), row.get::<_, String>(1)?)))
        .optional()?;
    let (mut seq, mut previous) = last.unwrap_or_default();
    let before = AuditHead { seq, hash: previous.clone(), seal: row.audit_seal.take() };
    let mut insert = connection.statement("INSERT INTO audit (id, hash, event) VALUES (?1, ?2, ?3)")?;
    for StoredEvent { event, unchained } in events {
        seq += 1;
        previous = unchained.hash(&row.thread, seq, &previous);
        insert.execute(params![key(row.id, seq), previous, event])?;
    }
    row.audit_seal = before.moved(&row.thread, seq, previous, keys).seal;
    Ok(())
}

/// An audit entry, still packed.
#[derive(Debug)]
pub(super) struct StoredEntry {
    seq: u64,
    hash: String,
    content: Content,
}

#[derive(Debug)]
enum Content {
    /// The event alone. It is chained to the entry before it.
    Event(Vec<u8>),
    /// The complete entry.
    Entry(Vec<u8>),
}

impl StoredEntry {
    fn read(&self, previous: &str) -> Result<AuditEntry, Error> {
        const WHAT: &str = "an entry of the record";
        let event = match &self.content {
            Content::Entry(entry) => return parse(entry, WHAT),
            Content::Event(event) => parse(event, WHAT)?,
        };
        Ok(AuditEntry {
            seq: self.seq,
            previous: previous.to_owned(),
            event,
            sealed: None,
            withheld: false,
            hash: self.hash.clone(),
        })
    }
}

/// Returns the audit trail of a thread, still packed, and the seal of its head.
pub(super) fn entries(
    connection: &Connection<'_>,
    thread: &ThreadId,
) -> Result<(Vec<StoredEntry>, Option<String>), Failure> {
    let Some(row) = ThreadRow::find(connection, thread)? else { return Ok((Vec::new(), None)) };
    const SQL: &str = "SELECT id, hash, event IS NOT NULL, coalesce(event, entry, x'') FROM audit \
                       WHERE id BETWEEN ?1 AND ?2 ORDER BY id";
    let mut select = connection.statement(SQL)?;
    let rows = select.query_map(row.keys(), |row| {
        let content = if row.get(2)? { Content::Event(bytes(row, 3)?) } else { Content::Entry(bytes(row, 3)?) };
        Ok(StoredEntry { seq: seq(row.get(0)?), hash: name(row, 1)?, content })
    })?;
    Ok((rows.collect::<Result<_, _>>()?, row.audit_seal))
}

/// Parses entries. Those that cannot be read are reported, and placeholders are returned in their
/// places.
pub(super) fn read(entries: Vec<StoredEntry>, mut unreadable: impl FnMut(u64, Error)) -> Vec<AuditEntry> {
    let mut record: Vec<AuditEntry> = Vec::with_capacity(entries.len());
    for stored in entries {
        let (previous, at) = record.last().map_or(("", Timestamp(0)), |last| (&last.hash, last.event.at));
        let entry = stored.read(previous).unwrap_or_else(|error| {
            unreadable(stored.seq, error);
            AuditEntry::unreadable(stored.seq, previous, stored.hash, at)
        });
        record.push(entry);
    }
    record
}

/// Replaces an entry, in which something was hidden.
pub(super) fn replace(connection: &Connection<'_>, row: &ThreadRow, entry: &AuditEntry) -> Result<(), Failure> {
    const SQL: &str = "UPDATE audit SET event = NULL, entry = ?3 WHERE id = ?1 AND hash = ?2";
    connection.statement(SQL)?.execute(params![key(row.id, entry.seq), entry.hash, packed(entry)])?;
    Ok(())
}
