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

/// A connection, and the statements that were prepared on it.
pub(super) struct Connection<'c> {
    raw: &'c rusqlite::Connection,
    /// The position of each statement, by the address and the length of its text.
    positions: RefCell<BTreeMap<(usize, usize), usize>>,
    /// The statements; one that is in use is not there.
    statements: RefCell<Vec<Cell<Option<Statement<'c>>>>>,
}

impl<'c> Connection<'c> {
    /// Wraps a connection on which nothing is prepared yet.
    pub(super) fn new(raw: &'c rusqlite::Connection) -> Self {
        Self { raw, positions: RefCell::default(), statements: RefCell::default() }
    }

    /// Returns a statement, and prepares it if it has not been prepared. What was bound to it the last time stays bound.
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
        self.of.statements.borrow()[self.position].set(self.statement.take());
    }
}
