//! Deletes expired data, in small portions, so that no operation has to wait long.

use std::time::Duration;

use countersign_core::clock::Timestamp;
use countersign_graph::store::DeadLetter;

use super::{connection::Connection, dead_letters, failure::Failure, recent};

/// The time for which parked messages are kept.
const OVERHEARD_KEPT_FOR: Duration = Duration::from_secs(120);

/// The maximum number of rows of each kind that one operation deletes.
const MAX_ROWS: i64 = 500;

/// Deletes some rows. Returns true if there may be more.
pub(super) fn drop_some(connection: &Connection<'_>, now: Timestamp) -> Result<bool, Failure> {
    let before = |age: Duration| now.0 - i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
    let recent = recent::drop_some(connection, now, MAX_ROWS)?;
    let bytes = connection
        .statement("DELETE FROM blobs WHERE id IN (SELECT id FROM blobs WHERE until < ?1 LIMIT ?2)")?
        .execute([now.0, MAX_ROWS])?;
    let messages = dead_letters::drop_before(connection, Timestamp(before(DeadLetter::KEPT_FOR)))?;
    let overheard = overheard(connection, before(OVERHEARD_KEPT_FOR), now)?;
    Ok(recent || bytes > 0 || messages > 0 || overheard > 0)
}

/// Deletes old parked messages of threads that are not the bot's, and such threads if no data of
/// them is left.
fn overheard(connection: &Connection<'_>, before: i64, now: Timestamp) -> Result<usize, Failure> {
    const MESSAGES: &str = "DELETE FROM mailbox WHERE id IN (\
            SELECT mailbox.id FROM threads CROSS JOIN mailbox \
            ON mailbox.id BETWEEN threads.id << 32 AND (threads.id << 32) + 4294967295 \
            WHERE known = 0 AND at < ?1 LIMIT ?2)";
    let messages = connection.statement(MESSAGES)?.execute([before, MAX_ROWS])?;
    const THREADS: &str = "DELETE FROM threads WHERE id IN (\
            SELECT id FROM threads AS t WHERE known = 0 AND updated_at < ?1 \
            AND NOT EXISTS (SELECT 1 FROM mailbox WHERE id BETWEEN t.id << 32 AND (t.id << 32) + 4294967295) \
            AND NOT EXISTS (SELECT 1 FROM outbox WHERE id BETWEEN t.id << 32 AND (t.id << 32) + 4294967295) \
            AND NOT EXISTS (SELECT 1 FROM audit WHERE id BETWEEN t.id << 32 AND (t.id << 32) + 4294967295) \
            AND NOT EXISTS (SELECT 1 FROM slots WHERE thread = t.id) \
            AND NOT EXISTS (SELECT 1 FROM timers WHERE thread = t.id) \
            AND NOT EXISTS (SELECT 1 FROM actions WHERE thread = t.id) \
            AND NOT EXISTS (SELECT 1 FROM recent_commits WHERE day IN (?3 - 1, ?3, ?3 + 1) AND thread = t.id) \
            ORDER BY updated_at LIMIT ?2)";
    let threads = connection.statement(THREADS)?.execute([before, MAX_ROWS, recent::day(now)])?;
    if threads > 0 {
        connection.clear_cache();
    }
    Ok(messages + threads)
}
