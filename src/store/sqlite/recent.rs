//! The keys of recent deliveries, and of recent writes without steps, by which a repeat is recognized.
//!
//! They are kept by the day on which they were stored. A key is looked up on the present day, the one before and all that
//! are to come, in case the clock was set back. So it is recognized for at least 24 hours, and whole days are deleted. Each
//! of these is a look-up of its own: for a list of days, SQLite makes a temporary table each time.

use countersign_core::{
    clock::Timestamp,
    ids::{CommitId, DedupKey},
};
use countersign_graph::store::Version;
use rusqlite::{OptionalExtension as _, params};

use super::{
    connection::Connection,
    failure::Failure,
    keys::{int, uint},
    thread_row::ThreadRow,
};

const DAY_MS: i64 = 24 * 3600 * 1000;

/// Returns the number of the day of a time.
pub(super) fn day(at: Timestamp) -> i64 {
    at.0.div_euclid(DAY_MS)
}

/// Stores the keys of a delivery. Returns false, and stores none, if one of them is already known.
pub(super) fn add_keys(connection: &Connection<'_>, keys: &[DedupKey], at: Timestamp) -> Result<bool, Failure> {
    // Looked up first: Slack delivers each mention twice, and a repeat then writes nothing.
    const KNOWN: &str = "SELECT 1 FROM recent_keys WHERE day = ?1 AND key = ?2 \
                         UNION ALL SELECT 1 FROM recent_keys WHERE day = ?1 - 1 AND key = ?2 \
                         UNION ALL SELECT 1 FROM recent_keys WHERE day > ?1 AND key = ?2";
    let mut known = connection.statement(KNOWN)?;
    for key in keys {
        if known.exists(params![day(at), key.as_str()])? {
            return Ok(false);
        }
    }
    let mut insert = connection.statement("INSERT OR IGNORE INTO recent_keys (day, key) VALUES (?1, ?2)")?;
    for key in keys {
        insert.execute(params![day(at), key.as_str()])?;
    }
    Ok(true)
}

/// Stores the id of a write, and the version that the thread has after it.
pub(super) fn add_commit(
    connection: &Connection<'_>,
    row: &ThreadRow,
    commit: &CommitId,
    at: Timestamp,
) -> Result<(), Failure> {
    const SQL: &str = "INSERT INTO recent_commits (day, thread, commit_id, version) VALUES (?1, ?2, ?3, ?4)";
    connection.statement(SQL)?.execute(params![day(at), row.id, commit.as_str(), int(row.version)])?;
    Ok(())
}

/// Returns the answer to an earlier write with the same id, if there was one.
pub(super) fn find_commit(
    connection: &Connection<'_>,
    row: &ThreadRow,
    commit: &CommitId,
    at: Timestamp,
) -> Result<Option<Version>, Failure> {
    const SQL: &str = "SELECT version FROM recent_commits WHERE day = ?1 AND thread = ?2 AND commit_id = ?3 \
         UNION ALL SELECT version FROM recent_commits WHERE day = ?1 - 1 AND thread = ?2 AND commit_id = ?3 \
         UNION ALL SELECT version FROM recent_commits WHERE day > ?1 AND thread = ?2 AND commit_id = ?3";
    let mut select = connection.statement(SQL)?;
    Ok(select.query_row(params![day(at), row.id, commit.as_str()], |row| Ok(uint(row.get(0)?))).optional()?)
}

/// Deletes the ids of a thread's writes.
pub(super) fn forget(connection: &Connection<'_>, row: &ThreadRow, now: Timestamp) -> Result<(), Failure> {
    const SQL: &str = "DELETE FROM recent_commits WHERE day IN (?1 - 1, ?1, ?1 + 1) AND thread = ?2";
    connection.statement(SQL)?.execute([day(now), row.id])?;
    Ok(())
}

/// Deletes some of the keys and ids that are out of date. Returns true if there may be more.
pub(super) fn drop_some(connection: &Connection<'_>, now: Timestamp, max_rows: i64) -> Result<bool, Failure> {
    const KEYS: &str = "DELETE FROM recent_keys WHERE (day, key) IN \
                        (SELECT day, key FROM recent_keys WHERE day < ?1 - 1 LIMIT ?2)";
    const COMMITS: &str = "DELETE FROM recent_commits WHERE (day, thread, commit_id) IN \
                           (SELECT day, thread, commit_id FROM recent_commits WHERE day < ?1 - 1 LIMIT ?2)";
    let keys = connection.statement(KEYS)?.execute([day(now), max_rows])?;
    let commits = connection.statement(COMMITS)?.execute([day(now), max_rows])?;
    Ok(keys > 0 || commits > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeat_is_recognized_across_midnight_and_after_the_clock_was_set_back() {
        let mut raw = rusqlite::Connection::open_in_memory().unwrap();
        crate::sqlite::schema::migrate(&mut raw).unwrap().unwrap();
        let connection = Connection::new(&raw);
        let noon = |day: i64| Timestamp(day * DAY_MS + DAY_MS / 2);
        let is_new = |key: &str, day| add_keys(&connection, &[DedupKey::new(key)], noon(day)).unwrap();
        assert!(is_new("a", 100));
        for day in [100, 101, 99, 50] {
            assert!(!is_new("a", day), "on day {day}");
        }
        assert!(is_new("b", 50));
        assert!(drop_some(&connection, noon(102), 500).unwrap());
        assert!(is_new("a", 102), "it was forgotten");
    }
}
