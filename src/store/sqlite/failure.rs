//! The error type of database operations.

use countersign_graph::store::Error;
use rusqlite::types::Type;

/// An error of the store. The `?` operator converts errors of SQLite to it.
#[derive(Debug)]
pub(super) struct Failure(Error);

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self(match error {
            rusqlite::Error::FromSqlConversionFailure(column, Type::Text, source) => {
                Error::Corrupt { what: format!("column {column}: {source}") }
            }
            error => Error::Unavailable(Box::new(error)),
        })
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        failure.0
    }
}
