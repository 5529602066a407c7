//! The cache of the writing thread: rows of threads, and whether there are dead letters.
//!
//! *Invariant:* it is as in the file. Only one connection of this process writes, and each of its writes updates the cache or
//! removes what it changes. The cache is cleared if a write is undone, or if another program wrote to the file, such as
//! SQLite's shell.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
};

use countersign_core::ids::ThreadId;

use super::thread_row::ThreadRow;

/// The maximum number of rows that are kept, some 500 bytes each.
const MAX_ROWS: usize = 256;

/// The cache of the writing thread.
#[derive(Debug, Default)]
pub(super) struct Cache {
    /// The rows of the threads that were written last.
    rows: RefCell<HashMap<ThreadId, ThreadRow>>,
    /// True if there are certainly no dead letters.
    has_no_dead_letters: Cell<bool>,
    /// The number by which SQLite tells whether others have written to the file.
    data_version: Cell<i64>,
}

impl Cache {
    /// Removes everything.
    pub(super) fn clear(&self) {
        self.rows.borrow_mut().clear();
        self.has_no_dead_letters.set(false);
    }

    /// Removes everything if others have written to the file, which changes SQLite's `data_version`.
    pub(super) fn check(&self, data_version: i64) {
        if self.data_version.replace(data_version) != data_version {
            self.clear();
        }
    }

    /// Takes the row of a thread out of the cache, until it is saved.
    pub(super) fn take_row(&self, thread: &ThreadId) -> Option<ThreadRow> {
        self.rows.borrow_mut().remove(thread)
    }

    /// Keeps a row that was saved.
    pub(super) fn keep_row(&self, row: ThreadRow) {
        let mut rows = self.rows.borrow_mut();
        if rows.len() >= MAX_ROWS && !rows.contains_key(&row.thread) {
            rows.clear();
        }
        rows.insert(row.thread.clone(), row);
    }

    /// Returns true if there are certainly no dead letters.
    pub(super) fn has_no_dead_letters(&self) -> bool {
        self.has_no_dead_letters.get()
    }

    /// Notes that there are no dead letters.
    pub(super) fn note_no_dead_letters(&self) {
        self.has_no_dead_letters.set(true);
    }

    /// Notes that there may be dead letters.
    pub(super) fn note_dead_letter(&self) {
        self.has_no_dead_letters.set(false);
    }
}

#[cfg(test)]
mod tests {
    use countersign_core::clock::Timestamp;
    use countersign_graph::store::{Error, Outbound};

    use super::*;
    use crate::sqlite::{
        connection::Connection,
        dead_letters,
        failure::Failure,
        keys::{json, key},
        schema, sweep,
        writer::Writer,
    };

    fn thread(root: &str) -> ThreadId {
        ThreadId { team: "T1".into(), channel: "C1".into(), root: root.into() }
    }

    /// Counts the version of a thread up, and returns it.
    fn count(connection: &Connection<'_>, root: &str) -> Result<u64, Failure> {
        let mut row = ThreadRow::find_or_insert(connection, &thread(root), None, Timestamp(0))?;
        row.version += 1;
        let version = row.version;
        row.save(connection, Timestamp(0))?;
        Ok(version)
    }

    fn migrated() -> rusqlite::Connection {
        let mut raw = rusqlite::Connection::open_in_memory().unwrap();
        schema::migrate(&mut raw).unwrap().unwrap();
        raw
    }

    #[tokio::test]
    async fn a_row_of_a_write_that_was_undone_is_read_again() {
        let writer = Writer::start(migrated(), None).unwrap();
        let up = |fails: bool| {
            writer.run(move |connection| {
                let version = count(connection, "1.1")?;
                let failure = Error::Corrupt { what: "on purpose".to_owned() };
                if fails { Err(failure.into()) } else { Ok(version) }
            })
        };
        assert_eq!(up(false).await.unwrap(), 1);
        assert!(up(true).await.is_err());
        assert_eq!(up(false).await.unwrap(), 2);
        // Together, they are one transaction.
        let (third, failed, fourth) = tokio::join!(up(false), up(true), up(false));
        assert_eq!((third.unwrap(), failed.is_err(), fourth.unwrap()), (3, true, 4));
    }

    #[test]
    fn a_row_is_kept_until_it_is_taken() {
        let raw = migrated();
        let connection = Connection::that_writes(&raw);
        let rows = || connection.cache().unwrap().rows.borrow().len();
        count(&connection, "1.1").unwrap();
        assert_eq!(rows(), 1);
        drop(ThreadRow::find(&connection, &thread("1.1")).unwrap());
        assert_eq!(rows(), 0);
        for n in 0..=MAX_ROWS {
            count(&connection, &n.to_string()).unwrap();
        }
        assert!(rows() <= MAX_ROWS);
    }

    #[test]
    fn a_thread_that_was_deleted_is_not_kept() {
        let raw = migrated();
        let connection = Connection::that_writes(&raw);
        count(&connection, "1.1").unwrap();
        sweep::drop_some(&connection, Timestamp(i64::MAX / 2)).unwrap();
        assert_eq!(count(&connection, "1.1").unwrap(), 1, "it was not addressed to the bot, and old");
    }

    #[tokio::test]
    async fn what_another_program_wrote_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("store");
        let mut raw = rusqlite::Connection::open(&path).unwrap();
        schema::migrate(&mut raw).unwrap().unwrap();
        let writer = Writer::start(raw, None).unwrap();
        let is_kept =
            |connection: &Connection<'_>| Ok(connection.cache().unwrap().rows.borrow().contains_key(&thread("1.1")));
        writer.run(|connection| count(connection, "1.1")).await.unwrap();
        assert!(writer.run(is_kept).await.unwrap(), "only this one wrote");
        let shell = rusqlite::Connection::open(&path).unwrap();
        shell.execute("UPDATE threads SET version = 7", []).unwrap();
        assert!(!writer.run(is_kept).await.unwrap());
        assert_eq!(writer.run(|connection| count(connection, "1.1")).await.unwrap(), 8);
    }

    #[test]
    fn a_row_that_was_deleted_is_not_written() {
        let raw = migrated();
        let connection = Connection::new(&raw);
        count(&connection, "1.1").unwrap();
        let row = ThreadRow::find(&connection, &thread("1.1")).unwrap().unwrap();
        raw.execute("DELETE FROM threads", []).unwrap();
        assert!(row.save(&connection, Timestamp(0)).is_err());
    }

    /// Deletes what was not delivered to a slot, as a newer message for it does.
    fn drop_letters(connection: &Connection<'_>) -> i64 {
        dead_letters::drop_for_slot(connection, &thread("1.1"), &"turn:1".into()).unwrap();
        connection.query_row("SELECT count(*) FROM dead_letters", [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn a_dead_letter_is_found_after_there_were_none() {
        let raw = migrated();
        let connection = Connection::that_writes(&raw);
        let message = || {
            let row = ThreadRow::find_or_insert(&connection, &thread("1.1"), None, Timestamp(0)).unwrap();
            let insert = "INSERT INTO outbox (id, slot, nonce, progress, removes, not_before, since, body) \
                          VALUES (?1, 'turn:1', 'n', 0, 1, 0, 0, ?2)";
            raw.execute(insert, rusqlite::params![key(row.id, 1), json(&Outbound::Remove).into_bytes()]).unwrap();
            dead_letters::keep_message(&connection, &row.thread, key(row.id, 1), "refused", Timestamp(0)).unwrap();
            raw.execute("DELETE FROM outbox", []).unwrap();
        };
        assert_eq!(drop_letters(&connection), 0);
        assert!(connection.cache().unwrap().has_no_dead_letters());
        message();
        assert!(!connection.cache().unwrap().has_no_dead_letters());
        assert_eq!(drop_letters(&connection), 0, "it was dropped");
        assert!(connection.cache().unwrap().has_no_dead_letters());
        connection.clear_cache(); // as after a write that was undone
        assert!(!connection.cache().unwrap().has_no_dead_letters());
    }

    #[test]
    fn a_connection_that_only_reads_knows_nothing() {
        let raw = migrated();
        let connection = Connection::new(&raw);
        count(&connection, "1.1").unwrap();
        raw.execute("UPDATE threads SET version = 7", []).unwrap();
        assert_eq!(count(&connection, "1.1").unwrap(), 8);
    }
}
