//! A connection with its prepared statements.
//!
//! The library has a cache of statements as well. It finds them by their whole text and moves them about, which takes several
//! times as long as most of these statements need to be bound.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    ops::{Deref, DerefMut},
};

use rusqlite::{PrepFlags, Statement};

use super::cache::Cache;

/// A connection, and the statements that were prepared on it.
pub(super) struct Connection<'c> {
    raw: &'c rusqlite::Connection,
    /// The position of each statement, by the address and the length of its text.
    positions: RefCell<BTreeMap<(usize, usize), usize>>,
    /// The statements; one that is in use is not there.
    statements: RefCell<Vec<Cell<Option<Statement<'c>>>>>,
    /// The cache; `None` if this process writes to the file with another connection.
    cache: Option<Cache>,
}

impl<'c> Connection<'c> {
    /// Wraps a connection on which nothing is prepared yet.
    pub(super) fn new(raw: &'c rusqlite::Connection) -> Self {
        Self { raw, positions: RefCell::default(), statements: RefCell::default(), cache: None }
    }

    /// Wraps the only connection of this process that may write.
    pub(super) fn that_writes(raw: &'c rusqlite::Connection) -> Self {
        Self { cache: Some(Cache::default()), ..Self::new(raw) }
    }

    /// Returns the cache, if this is the connection that may write.
    pub(super) fn cache(&self) -> Option<&Cache> {
        self.cache.as_ref()
    }

    /// Clears the cache, after a write was undone or rows were deleted.
    pub(super) fn clear_cache(&self) {
        if let Some(cache) = &self.cache {
            cache.clear();
        }
    }

    /// Returns a statement, and prepares it if it has not been prepared. If the same text is there twice in the program, it
    /// may be prepared twice.
    pub(super) fn statement(&self, sql: &'static str) -> rusqlite::Result<Prepared<'_, 'c>> {
        let mut statements = self.statements.borrow_mut();
        let position = *self.positions.borrow_mut().entry((sql.as_ptr().addr(), sql.len())).or_insert_with(|| {
            statements.push(Cell::new(None));
            statements.len() - 1
        });
        let statement = match statements[position].take() {
            Some(statement) => statement,
            None => self.raw.prepare_with_flags(sql, PrepFlags::SQLITE_PREPARE_PERSISTENT)?,
        };
        Ok(Prepared { statement: Some(statement), of: self, position })
    }
}

impl Deref for Connection<'_> {
    type Target = rusqlite::Connection;

    fn deref(&self) -> &Self::Target {
        self.raw
    }
}

/// A prepared statement in use, which goes back to its connection when it is dropped.
pub(super) struct Prepared<'p, 'c> {
    statement: Option<Statement<'c>>,
    of: &'p Connection<'c>,
    position: usize,
}

impl<'c> Deref for Prepared<'_, 'c> {
    type Target = Statement<'c>;

    fn deref(&self) -> &Self::Target {
        self.statement.as_ref().expect("taken only when it is dropped")
    }
}

impl DerefMut for Prepared<'_, '_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.statement.as_mut().expect("taken only when it is dropped")
    }
}

impl Drop for Prepared<'_, '_> {
    fn drop(&mut self) {
        let mut statement = self.statement.take();
        if let Some(statement) = &mut statement {
            statement.clear_bindings(); // they may be large, and deleted from the store meanwhile
        }
        self.of.statements.borrow()[self.position].set(statement);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_can_be_used_again_also_while_it_is_in_use() {
        static SUM: &str = "SELECT ?1 + 1"; // a constant could have several addresses
        let raw = rusqlite::Connection::open_in_memory().unwrap();
        let connection = Connection::new(&raw);
        let sum = |n: i64| connection.statement(SUM)?.query_row([n], |row| row.get::<_, i64>(0));
        assert_eq!(sum(1), Ok(2));
        let mut outer = connection.statement(SUM).unwrap();
        let mut rows = outer.query([10]).unwrap();
        assert_eq!((sum(20), sum(30)), (Ok(21), Ok(31)));
        assert_eq!(rows.next().unwrap().unwrap().get(0), Ok(11));
        drop(rows);
        drop(outer);
        assert_eq!(sum(3), Ok(4));
        assert_eq!(connection.statements.borrow().len(), 1, "they share a place");
    }

    #[test]
    fn a_statement_that_cannot_be_prepared_is_an_error_each_time() {
        let raw = rusqlite::Connection::open_in_memory().unwrap();
        let connection = Connection::new(&raw);
        let select = || connection.statement("SELECT n FROM t").map(drop);
        assert!(select().is_err() && select().is_err());
        raw.execute_batch("CREATE TABLE t (n)").unwrap();
        assert_eq!(select(), Ok(()));
    }
}
