//! Deletes the data of finished threads.

use countersign_core::{clock::Timestamp, ids::ThreadId};
use countersign_graph::store::{Forget, UNFINISHED};
use rusqlite::params;

use super::{
    connection::Connection,
    dead_letters,
    failure::Failure,
    keys::{int, json},
    recent, record,
    thread_row::ThreadRow,
};
use crate::packed::packed;

/// The condition for a finished thread. ?1 is the time since which nothing may have happened, ?2
/// the clock, ?3 the statuses of unfinished actions. An entry that was set aside is kept for a program that can read it.
pub(super) const FINISHED: &str = "known = 1 AND updated_at < ?1 AND lease_until <= ?2 AND ready_at IS NULL AND send_at IS NULL \
    AND EXISTS (SELECT 1 FROM steps WHERE id BETWEEN t.id << 32 AND (t.id << 32) + 4294967295) \
    AND NOT EXISTS (SELECT 1 FROM mailbox WHERE id BETWEEN t.id << 32 AND (t.id << 32) + 4294967295) \
    AND NOT EXISTS (SELECT 1 FROM outbox WHERE id BETWEEN t.id << 32 AND (t.id << 32) + 4294967295) \
    AND NOT EXISTS (SELECT 1 FROM actions WHERE thread = t.id AND status IN (SELECT value FROM json_each(?3))) \
    AND NOT EXISTS (SELECT 1 FROM set_aside WHERE place LIKE 'letter ' || team || '/' || channel || '/' || root || ' %' \
                                             OR place LIKE 'message ' || team || '/' || channel || '/' || root || ' %')";

/// Implements [`countersign_graph::store::Store::forget`].
pub(super) fn forget(connection: &Connection<'_>, forget: &Forget, clock: Timestamp) -> Result<bool, Failure> {
    let Some(row) = ThreadRow::find(connection, &forget.thread)? else { return Ok(false) };
    let sql = format!("SELECT EXISTS (SELECT 1 FROM threads AS t WHERE id = ?4 AND {FINISHED})");
    let mut select = connection.prepare_cached(&sql)?;
    let still = params![forget.before.0, clock.0, json(&UNFINISHED), row.id];
    if row.version != forget.version || !select.query_row(still, |row| row.get::<_, bool>(0))? {
        return Ok(false);
    }
    connection.statement("DELETE FROM steps WHERE id BETWEEN ?1 AND ?2")?.execute(row.keys())?;
    dead_letters::forget(connection, &forget.thread)?;
    if forget.drops_files() {
        drop_files(connection, &forget.thread)?;
    }
    match &forget.checkpoint {
        Some(checkpoint) => {
            connection
                .statement("INSERT OR REPLACE INTO snapshots (thread, version, snapshot) VALUES (?1, ?2, ?3)")?
                .execute(params![row.id, int(row.version), packed(checkpoint)])?;
            for entry in &forget.record {
                record::replace(connection, &row, entry)?;
            }
        }
        None => {
            connection.statement("DELETE FROM audit WHERE id BETWEEN ?1 AND ?2")?.execute(row.keys())?;
            recent::forget(connection, &row, clock)?;
            for sql in [
                "DELETE FROM snapshots WHERE thread = ?1",
                "DELETE FROM action_labels WHERE action IN (SELECT id FROM actions WHERE thread = ?1)",
                "DELETE FROM actions WHERE thread = ?1",
                "DELETE FROM slots WHERE thread = ?1",
                "DELETE FROM timers WHERE thread = ?1",
                "DELETE FROM threads WHERE id = ?1",
            ] {
                connection.statement(sql)?.execute([row.id])?;
            }
        }
    }
    Ok(true)
}

/// Deletes the thread's files, except those that another thread shows.
fn drop_files(connection: &Connection<'_>, thread: &ThreadId) -> Result<(), Failure> {
    const FILES: &str = "DELETE FROM files WHERE hash IN (SELECT hash FROM shown_files WHERE thread = ?1) \
            AND NOT EXISTS (SELECT 1 FROM shown_files WHERE hash = files.hash AND thread <> ?1)";
    for sql in [FILES, "DELETE FROM shown_files WHERE thread = ?1"] {
        connection.statement(sql)?.execute([thread.to_string()])?;
    }
    Ok(())
}
