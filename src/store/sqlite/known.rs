//! What the writing thread knows of the file, so that it need not be read again.
//!
//! *Invariant:* it is as in the file. There is only one connection that writes, and whoever changes what is known here
//! notes it or has it forgotten. Everything is forgotten if a write is undone.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
};

use countersign_core::ids::ThreadId;

use super::thread_row::ThreadRow;

/// The maximum number of rows that are kept, some 500 bytes each.
const MAX_ROWS: usize = 256;

/// What is known of the file.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// The rows of the threads that were written last.
    rows: RefCell<HashMap<ThreadId, ThreadRow>>,
    has_no_dead_letters: Cell<bool>,
}

impl Known {
    /// Forgets everything.
    pub(super) fn forget(&self) {
        self.rows.borrow_mut().clear();
        self.has_no_dead_letters.set(false);
    }

    /// Returns the row of a thread. It is not known any longer, until it is saved.
    pub(super) fn take_row(&self, thread: &ThreadId) -> Option<ThreadRow> {
        self.rows.borrow_mut().remove(thread)
    }

    /// Keeps a row that was saved.
    pub(super) fn keep_row(&self, row: ThreadRow) {
        let mut rows = self.rows.borrow_mut();
        if rows.len() >= MAX_ROWS {
            rows.clear();
        }
        rows.insert(row.thread.clone(), row);
    }

    /// Returns true if there are certainly no dead letters.
    pub(super) fn has_no_dead_letters(&self) -> bool {
        self.has_no_dead_letters.get()
    }

    /// Notes whether there may be dead letters.
    pub(super) fn note_dead_letters(&self, there_may_be_some: bool) {
        self.has_no_dead_letters.set(!there_may_be_some);
    }
}

#[cfg(test)]
mod tests {
    use countersign_core::clock::Timestamp;
    use countersign_graph::store::Error;

    use super::*;
    use crate::sqlite::{connection::Connection, failure::Failure, schema, sweep, writer::Writer};

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
    fn a_row_is_known_until_it_is_taken() {
        let raw = migrated();
        let connection = Connection::that_writes(&raw);
        let known = || connection.known().unwrap().rows.borrow().len();
        count(&connection, "1.1").unwrap();
        assert_eq!(known(), 1);
        drop(ThreadRow::find(&connection, &thread("1.1")).unwrap());
        assert_eq!(known(), 0);
        for n in 0..=MAX_ROWS {
            count(&connection, &n.to_string()).unwrap();
        }
        assert!(known() <= MAX_ROWS);
    }

    #[test]
    fn a_thread_that_was_deleted_is_not_known() {
        let raw = migrated();
        let connection = Connection::that_writes(&raw);
        count(&connection, "1.1").unwrap();
        sweep::drop_some(&connection, Timestamp(i64::MAX / 2)).unwrap();
        assert_eq!(count(&connection, "1.1").unwrap(), 1, "it was not addressed to the bot, and old");
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
