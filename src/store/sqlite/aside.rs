//! Unreadable entries, which are set aside so that they hold up nothing else.

use countersign_core::clock::Timestamp;
use countersign_graph::store::Unreadable;
use rusqlite::params;

use super::{
    connection::Connection,
    failure::Failure,
    inbox,
    keys::{int, key, name},
    outbox,
    thread_row::ThreadRow,
};
use crate::aside::{StoredPlace, UnreadableEntries};

/// The maximum number of entries that one operation tries to put back.
const MAX_ROWS: i64 = 500;

/// Sets an unreadable entry aside. An entry that stays where it is, is only recorded.
pub(super) fn set(
    connection: &Connection<'_>,
    place: &StoredPlace,
    why: &str,
    clock: Timestamp,
) -> Result<(), Failure> {
    const MAILBOX: &str = "INSERT OR REPLACE INTO set_aside (place, at, why, columns, content) \
        SELECT ?2, ?3, ?4, json_object('at', at), CAST(mail AS BLOB) FROM mailbox WHERE id = ?1";
    const MESSAGE: &str = "INSERT OR REPLACE INTO set_aside (place, at, why, columns, content) \
        SELECT ?2, ?3, ?4, json_object('slot', slot, 'nonce', nonce, 'progress', progress, 'removes', removes, \
        'not_before', not_before, 'attempts', attempts, 'since', since), body FROM outbox WHERE id = ?1";
    const INBOX: &str = "INSERT OR REPLACE INTO set_aside (place, at, why, columns, content) \
        SELECT ?2, ?3, ?4, json_object('partition', partition), CAST(entry AS BLOB) FROM desk WHERE seq = ?1";
    const OTHER: &str = "INSERT OR IGNORE INTO set_aside (place, at, why) VALUES (?1, ?2, ?3)";
    let keep = |sql: &'static str, id: i64| -> Result<(), Failure> {
        connection.statement(sql)?.execute(params![id, place.to_string(), clock.0, why])?;
        Ok(())
    };
    match place {
        StoredPlace::Mailbox(thread, seq) => {
            let Some(row) = ThreadRow::find(connection, thread)? else { return Ok(()) };
            keep(MAILBOX, key(row.id, *seq))?;
            connection.statement("DELETE FROM mailbox WHERE id = ?1")?.execute([key(row.id, *seq)])?;
        }
        StoredPlace::Message(thread, seq) => {
            let Some(row) = ThreadRow::find(connection, thread)? else { return Ok(()) };
            keep(MESSAGE, key(row.id, *seq))?;
            outbox::remove(connection, thread, *seq, clock)?;
        }
        StoredPlace::Inbox(partition, seq) => {
            keep(INBOX, int(*seq))?;
            inbox::finish(connection, *partition, *seq)?;
        }
        StoredPlace::Other(..) => {
            connection.statement(OTHER)?.execute(params![place.to_string(), clock.0, why])?;
        }
    }
    Ok(())
}

/// Returns the entries that were set aside or recorded, oldest first.
pub(super) fn list(connection: &Connection<'_>, limit: usize) -> Result<Vec<Unreadable>, Failure> {
    let mut select = connection.statement("SELECT place, why, at FROM set_aside ORDER BY at, place LIMIT ?1")?;
    let rows = select.query_map([i64::try_from(limit).unwrap_or(i64::MAX)], |row| {
        Ok(Unreadable { place: name(row, 0)?, why: name(row, 1)?, since: Timestamp(row.get(2)?) })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Puts back the entries that this process can read and did not set aside itself.
pub(super) fn put_back(
    connection: &Connection<'_>,
    found: &UnreadableEntries,
    clock: Timestamp,
) -> Result<(), Failure> {
    const SQL: &str = "SELECT place, content FROM set_aside WHERE content IS NOT NULL ORDER BY at LIMIT ?1";
    let mut select = connection.statement(SQL)?;
    let rows = select.query_map([MAX_ROWS], |row| Ok((name(row, 0)?, row.get::<_, Vec<u8>>(1)?)))?;
    for row in rows.collect::<Result<Vec<_>, _>>()? {
        let Ok(place) = row.0.parse::<StoredPlace>() else { continue };
        if !found.has(&place) && place.can_hold(&row.1) {
            restore(connection, &place, clock)?;
        }
    }
    Ok(())
}

fn restore(connection: &Connection<'_>, place: &StoredPlace, clock: Timestamp) -> Result<(), Failure> {
    const MAILBOX: &str = "INSERT OR IGNORE INTO mailbox (id, at, mail) \
        SELECT ?1, columns ->> '$.at', CAST(content AS TEXT) FROM set_aside WHERE place = ?2";
    const MESSAGE: &str = "INSERT OR IGNORE INTO outbox (id, slot, nonce, progress, removes, not_before, attempts, since, body) \
        SELECT ?1, columns ->> '$.slot', columns ->> '$.nonce', columns ->> '$.progress', columns ->> '$.removes', \
        columns ->> '$.not_before', columns ->> '$.attempts', coalesce(columns ->> '$.since', columns ->> '$.not_before'), \
        content FROM set_aside WHERE place = ?2";
    const INBOX: &str = "INSERT OR IGNORE INTO desk (seq, partition, claimed_until, entry) \
        SELECT ?1, columns ->> '$.partition', 0, CAST(content AS TEXT) FROM set_aside WHERE place = ?2";
    let text = place.to_string();
    let reinsert = |sql: &'static str, id: i64| -> Result<(), Failure> {
        connection.statement(sql)?.execute(params![id, text])?;
        Ok(())
    };
    match place {
        StoredPlace::Mailbox(thread, seq) => {
            let mut row = ThreadRow::find_or_insert(connection, thread, None, clock)?;
            reinsert(MAILBOX, key(row.id, *seq))?;
            row.wake(clock);
            row.save(connection, clock)?;
        }
        StoredPlace::Message(thread, seq) => {
            let mut row = ThreadRow::find_or_insert(connection, thread, None, clock)?;
            reinsert(MESSAGE, key(row.id, *seq))?;
            outbox::schedule(connection, &mut row)?;
            row.save(connection, clock)?;
        }
        StoredPlace::Inbox(_, seq) => reinsert(INBOX, int(*seq))?,
        StoredPlace::Other(..) => return Ok(()),
    }
    connection.statement("DELETE FROM set_aside WHERE place = ?1")?.execute([text])?;
    tracing::info!(place = %place, "An entry that was unreadable before can be read now and is put back");
    Ok(())
}
