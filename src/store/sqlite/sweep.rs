//! Deletes expired data, in small portions, so that no operation has to wait long.

use std::time::Duration;

use countersign_core::clock::Timestamp;
use countersign_graph::store::DeadLetter;
use rusqlite::Connection;

use super::{dead_letters, failure::Failure};

/// The time for which deduplication keys and commit ids are kept.
const KEYS_KEPT_FOR: Duration = Duration::from_secs(24 * 3600);

/// The time for which parked messages are kept.
const OVERHEARD_KEPT_FOR: Duration = Duration::from_secs(120);

/// The maximum number of rows of each kind that one operation deletes.
const MAX_ROWS: i64 = 500;

/// Deletes some rows. Returns true if there may be more.
pub(super) fn drop_some(connection: &Connection, now: Timestamp) -> Result<bool, Failure> {
    let before = |age: Duration| now.0 - i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
    let day_ago = before(KEYS_KEPT_FOR);
    // Both tables are append-only, so the oldest rows come first.
    let keys = connection
        .prepare_cached("DELETE FROM dedup WHERE at < ?1 AND id IN (SELECT id FROM dedup ORDER BY id LIMIT ?2)")?
        .execute([day_ago, MAX_ROWS])?;
    let commits = connection
        .prepare_cached("DELETE FROM commits WHERE at < ?1 AND id IN (SELECT id FROM commits ORDER BY id LIMIT ?2)")?
        .execute([day_ago, MAX_ROWS])?;
    let bytes = connection
        .prepare_cached("DELETE FROM blobs WHERE id IN (SELECT id FROM blobs WHERE until < ?1 LIMIT ?2)")?
        .execute([now.0, MAX_ROWS])?;
    let messages = dead_letters::drop_before(connection, Timestamp(before(DeadLetter::KEPT_FOR)))?;
    let overheard = overheard(connection, before(OVERHEARD_KEPT_FOR))?;
    Ok(keys > 0 || commits > 0 || bytes > 0 || messages > 0 || overheard > 0)
}

/// Deletes old parked messages of threads that are not the bot's, and such threads if no data of
/// them is left.
fn overheard(connection: &Connection, before: i64) -> Result<usize, Failure> {
    const MESSAGES: &str = "DELETE FROM mailbox WHERE id IN (\
            SELECT mailbox.id FROM threads CROSS JOIN mailbox \
            ON mailbox.id BETWEEN threads.id << 32 AND (threads.id << 32) + 4294967295 \
            WHERE known = 0 AND at < ?1 LIMIT ?2)";
    let messages = connection.prepare_cached(MESSAGES)?.execute([before, MAX_ROWS])?;
    const THREADS: &str = "DELETE FROM threads WHERE id IN (\
            SELECT id FROM threads AS t WHERE known = 0 AND updated_at < ?1 \
            AND NOT EXISTS (SELECT 1 FROM mailbox WHERE id BETWEEN t.id << 32 AND (t.id << 32) + 4294967295) \
            AND NOT EXISTS (SELECT 1 FROM outbox WHERE id BETWEEN t.id << 32 AND (t.id << 32) + 4294967295) \
            AND NOT EXISTS (SELECT 1 FROM audit WHERE id BETWEEN t.id << 32 AND (t.id << 32) + 4294967295) \
            AND NOT EXISTS (SELECT 1 FROM slots WHERE thread = t.id) \
            AND NOT EXISTS (SELECT 1 FROM timers WHERE thread = t.id) \
            AND NOT EXISTS (SELECT 1 FROM actions WHERE thread = t.id) \
            AND NOT EXISTS (SELECT 1 FROM commits WHERE thread = t.id) \
            ORDER BY updated_at LIMIT ?2)";
    let threads = connection.prepare_cached(THREADS)?.execute([before, MAX_ROWS])?;
    Ok(messages + threads)
}
