//! The mailbox of a thread.

use countersign_core::{
    clock::Timestamp,
    ids::{DedupKey, GraphName, ThreadId},
};
use countersign_graph::store::{Error, Ingested, QueuedMessage, Seq};
use rusqlite::params;

use super::{
    connection::Connection,
    failure::Failure,
    keys::{bytes, key, parse, seq},
    recent,
    thread_row::ThreadRow,
};

/// A delivery to a mailbox, with its message already serialized.
#[derive(Debug)]
pub(super) struct MailboxDelivery {
    pub(super) thread: ThreadId,
    pub(super) addressed: bool,
    pub(super) message: String,
    pub(super) graph: GraphName,
    pub(super) dedup: Vec<DedupKey>,
    pub(super) at: Timestamp,
}

/// A message with its position, still serialized.
pub(super) type StoredMessage = (Seq, Vec<u8>);

/// Stores a delivery, unless it is a repeat, and wakes its thread. Returns the thread's row as well, which has to be saved,
/// unless the delivery is a repeat.
pub(super) fn ingest(
    connection: &Connection<'_>,
    delivery: &MailboxDelivery,
    now: Timestamp,
) -> Result<(Ingested, Option<ThreadRow>), Failure> {
    if !recent::add_keys(connection, &delivery.dedup, delivery.at)? {
        return Ok((Ingested::Duplicate, None));
    }
    let graph = delivery.addressed.then_some(&delivery.graph);
    let mut row = ThreadRow::find_or_insert(connection, &delivery.thread, graph, now)?;
    let seq = put(connection, &mut row, &delivery.message, delivery.at)?;
    if delivery.addressed && !row.known {
        row.known = true;
        row.graph = delivery.graph.clone();
    }
    if row.known {
        row.wake(now);
    }
    Ok((if row.known { Ingested::New(seq) } else { Ingested::Parked(seq) }, Some(row)))
}

/// Puts a message into the mailbox of a thread.
pub(super) fn put(
    connection: &Connection<'_>,
    row: &mut ThreadRow,
    message: &str,
    at: Timestamp,
) -> Result<Seq, Failure> {
    let seq = row.next_seq();
    connection.statement("INSERT INTO mailbox (id, at, mail) VALUES (?1, ?2, ?3)")?.execute(params![
        key(row.id, seq),
        at.0,
        message
    ])?;
    Ok(seq)
}

/// Removes messages.
pub(super) fn acknowledge(connection: &Connection<'_>, row: &ThreadRow, messages: &[Seq]) -> Result<(), Failure> {
    let mut delete = connection.statement("DELETE FROM mailbox WHERE id = ?1")?;
    for seq in messages {
        delete.execute([key(row.id, *seq)])?;
    }
    Ok(())
}

/// Returns true if the mailbox is empty.
pub(super) fn is_empty(connection: &Connection<'_>, row: &ThreadRow) -> Result<bool, Failure> {
    let mut select = connection.statement("SELECT 1 FROM mailbox WHERE id BETWEEN ?1 AND ?2")?;
    Ok(!select.exists(row.keys())?)
}

/// Returns the messages after a position, still serialized.
pub(super) fn messages(
    connection: &Connection<'_>,
    row: &ThreadRow,
    after: Seq,
) -> Result<Vec<StoredMessage>, Failure> {
    const SQL: &str = "SELECT id, mail FROM mailbox WHERE id > ?1 AND id <= ?2 ORDER BY id";
    let mut select = connection.statement(SQL)?;
    let rows = select.query_map([key(row.id, after), row.keys()[1]], |row| Ok((seq(row.get(0)?), bytes(row, 1)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Parses messages, and reports those that cannot be read.
pub(super) fn read(messages: Vec<StoredMessage>, mut unreadable: impl FnMut(Seq, Error)) -> Vec<QueuedMessage> {
    let read = |(seq, message): StoredMessage| match parse(&message, "a message") {
        Ok(message) => Some(QueuedMessage { seq, message }),
        Err(error) => {
            unreadable(seq, error);
            None
        }
    };
    messages.into_iter().filter_map(read).collect()
}
