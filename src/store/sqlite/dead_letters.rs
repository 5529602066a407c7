//! Dead letters: messages and interactions that could not be delivered or handled.

use countersign_core::{
    clock::Timestamp,
    ids::{Nonce, Partition, Slot, ThreadId},
};
use countersign_graph::store::{DeadLetter, Error, Outgoing, Seq, Undelivered};
use rusqlite::{OptionalExtension as _, params};

use super::{
    cache::Cache,
    connection::Connection,
    failure::Failure,
    inbox,
    keys::{int, json, parse, uint},
    outbox::{self, StoredOutgoing},
    thread_row::ThreadRow,
};

/// A dead letter, with its contents still serialized.
#[derive(Debug)]
pub(super) struct StoredDeadLetter {
    id: i64,
    partition: u8,
    thread: Option<String>,
    at: Timestamp,
    attempts: u32,
    reason: String,
    entry: String,
}

impl StoredDeadLetter {
    fn read_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            partition: row.get(1)?,
            thread: row.get(2)?,
            at: Timestamp(row.get(3)?),
            attempts: row.get(4)?,
            reason: row.get(5)?,
            entry: row.get(6)?,
        })
    }

    fn thread(&self) -> Result<Option<ThreadId>, Error> {
        let parsed = self.thread.as_deref().map(str::parse).transpose();
        parsed.map_err(|_| Error::Corrupt { what: format!("the thread of dead letter {}", self.id) })
    }

    /// Parses the contents.
    pub(super) fn read(self) -> Result<DeadLetter, Error> {
        let thread = self.thread()?;
        let what = match thread {
            Some(_) => Undelivered::Message(Box::new(parse(&self.entry, "an undelivered message")?)),
            None => Undelivered::Inbox(parse(&self.entry, "an unhandled interaction")?),
        };
        let Self { id, at, attempts, reason, .. } = self;
        Ok(DeadLetter { id: id.to_string(), thread, at, attempts, reason, what })
    }
}

const COLUMNS: &str = "id, partition, thread, at, attempts, reason, entry";

/// Copies the outgoing message with this id to the dead letters.
pub(super) fn keep_message(
    connection: &Connection<'_>,
    thread: &ThreadId,
    id: i64,
    reason: &str,
    at: Timestamp,
) -> Result<(), Failure> {
    const SQL: &str = "SELECT slot, nonce, progress, not_before, body, attempts FROM outbox WHERE id = ?1";
    let (outgoing, body, attempts): (_, Vec<u8>, u32) = connection.statement(SQL)?.query_row([id], |row| {
        let slot = row.get::<_, Option<String>>(0)?.map(Slot::new);
        let nonce = Nonce::new(row.get::<_, String>(1)?);
        Ok(((slot, nonce, row.get::<_, bool>(2)?, Timestamp(row.get(3)?)), row.get(4)?, row.get(5)?))
    })?;
    let (slot, nonce, progress, not_before) = outgoing;
    let body = parse(&body, "an outgoing message")?;
    let entry = json(&Outgoing { slot: slot.clone(), nonce, progress, not_before, body });
    const KEEP: &str = "INSERT INTO dead_letters (partition, thread, slot, at, attempts, reason, entry) \
                        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let slot = slot.as_ref().map(Slot::as_str);
    let values = params![thread.partition().number(), thread.to_string(), slot, at.0, attempts, reason, entry];
    note_one(connection);
    connection.statement(KEEP)?.execute(values)?;
    Ok(())
}

/// Copies an entry of the inbox to the dead letters.
pub(super) fn keep_interaction(
    connection: &Connection<'_>,
    partition: Partition,
    seq: Seq,
    reason: &str,
    at: Timestamp,
) -> Result<(), Failure> {
    const KEEP: &str = "INSERT INTO dead_letters (partition, at, attempts, reason, entry) \
                        SELECT partition, ?3, attempts, ?4, entry FROM desk WHERE seq = ?1 AND partition = ?2";
    note_one(connection);
    connection.statement(KEEP)?.execute(params![int(seq), partition.number(), at.0, reason])?;
    Ok(())
}

/// Deletes the dead letters of a slot for which there is a newer message.
pub(super) fn drop_for_slot(connection: &Connection<'_>, thread: &ThreadId, slot: &Slot) -> Result<(), Failure> {
    if connection.cache().is_some_and(Cache::has_no_dead_letters) {
        debug_assert!(!are_there_any(connection)?, "there are no dead letters, as the cache says");
        return Ok(());
    }
    const SQL: &str = "DELETE FROM dead_letters WHERE thread = ?1 AND slot = ?2";
    connection.statement(SQL)?.execute(params![thread.to_string(), slot.as_str()])?;
    match connection.cache() {
        Some(cache) if !are_there_any(connection)? => cache.note_no_dead_letters(),
        _ => {}
    }
    Ok(())
}

fn are_there_any(connection: &Connection<'_>) -> Result<bool, Failure> {
    Ok(connection.statement("SELECT 1 FROM dead_letters LIMIT 1")?.exists([])?)
}

/// Notes that a dead letter is to be written.
fn note_one(connection: &Connection<'_>) {
    if let Some(cache) = connection.cache() {
        cache.note_dead_letter();
    }
}

/// Deletes the dead letters of a thread whose steps are deleted.
pub(super) fn forget(connection: &Connection<'_>, thread: &ThreadId) -> Result<(), Failure> {
    connection.statement("DELETE FROM dead_letters WHERE thread = ?1")?.execute([thread.to_string()])?;
    Ok(())
}

/// Deletes the dead letters that were given up before this time. Returns their number.
pub(super) fn drop_before(connection: &Connection<'_>, before: Timestamp) -> Result<usize, Failure> {
    Ok(connection.statement("DELETE FROM dead_letters WHERE at < ?1")?.execute([before.0])?)
}

/// Returns the oldest dead letters.
pub(super) fn list(connection: &Connection<'_>, limit: usize) -> Result<Vec<StoredDeadLetter>, Failure> {
    let sql = format!("SELECT {COLUMNS} FROM dead_letters ORDER BY id LIMIT ?1");
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut select = connection.prepare_cached(&sql)?;
    let letters = select.query_map([limit], StoredDeadLetter::read_row)?;
    Ok(letters.collect::<Result<_, _>>()?)
}

/// Puts a dead letter back, to be sent or handled again.
pub(super) fn send_again(
    connection: &Connection<'_>,
    id: i64,
    now: Timestamp,
    clock: Timestamp,
) -> Result<bool, Failure> {
    let sql = format!("DELETE FROM dead_letters WHERE id = ?1 RETURNING {COLUMNS}");
    let letter = connection.prepare_cached(&sql)?.query_row([id], StoredDeadLetter::read_row).optional()?;
    let Some(letter) = letter else { return Ok(false) };
    let Some(thread) = letter.thread()? else {
        let partition = Partition::all().find(|partition| partition.number() == letter.partition);
        let partition =
            partition.ok_or_else(|| Error::Corrupt { what: format!("the partition of dead letter {id}") })?;
        inbox::put(connection, partition, &letter.entry, Timestamp(0))?;
        return Ok(true);
    };
    let outgoing: Outgoing = parse(&letter.entry, "an undelivered message")?;
    let outgoing = Outgoing { not_before: now, ..outgoing };
    let mut row = ThreadRow::find_or_insert(connection, &thread, None, clock)?;
    outbox::put(connection, &mut row, &[StoredOutgoing::from(&outgoing).into()])?;
    const TRIED: &str = "UPDATE outbox SET attempts = 1 WHERE id BETWEEN ?1 AND ?2 AND nonce = ?3";
    let [first, last] = row.keys();
    connection.statement(TRIED)?.execute(params![first, last, outgoing.nonce.as_str()])?;
    row.waiting = None; // it was tried
    row.save(connection, clock)?;
    Ok(true)
}

/// Parses the row id in the id of a dead letter.
pub(super) fn read_id(id: &str) -> Option<i64> {
    id.parse::<u64>().ok().map(int).filter(|id| uint(*id) > 0)
}
