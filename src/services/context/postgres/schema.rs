//! The tables of the database, and the settings of a connection.

use std::time::Duration;

use tokio_postgres::{Client, error::SqlState};

use super::{WHAT, failed};
use crate::error::ContextError;

/// Prevents two processes from creating the tables at the same time. The number is arbitrary.
const LOCK: &str = "SELECT pg_advisory_xact_lock(4843915760133)";

/// Creates the extension. Needs more rights than the tables.
const EXTENSION: &str = "CREATE EXTENSION IF NOT EXISTS vector";

const TABLES: &str = "
CREATE TABLE IF NOT EXISTS context_items (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account text NOT NULL,
    kind text NOT NULL,
    source_id text NOT NULL,
    text text NOT NULL,
    words tsvector NOT NULL,
    metadata jsonb NOT NULL,
    at bigint NOT NULL,
    model text,
    embedding vector(768),
    UNIQUE (account, kind, source_id)
);
CREATE INDEX IF NOT EXISTS context_items_words ON context_items USING gin (words);
CREATE INDEX IF NOT EXISTS context_items_at ON context_items (at);
CREATE INDEX IF NOT EXISTS context_items_embedding ON context_items USING hnsw (embedding vector_cosine_ops);
CREATE TABLE IF NOT EXISTS context_contacts (
    account text NOT NULL,
    email text NOT NULL,
    record jsonb NOT NULL,
    last_contacted_at bigint,
    search text NOT NULL,
    PRIMARY KEY (account, email)
);
";

/// Creates the extension and the tables if there are none.
///
/// # Errors
///
/// [`ContextError::Refused`] with a hint if the extension is not installed or may not be created.
pub(super) async fn create(client: &Client) -> Result<(), ContextError> {
    let exist = "SELECT to_regclass('context_contacts') IS NOT NULL AND to_regtype('vector') IS NOT NULL";
    let exist: bool = client.query_one(exist, &[]).await.and_then(|row| row.try_get(0)).map_err(failed)?;
    if exist {
        return Ok(());
    }
    client.batch_execute(&format!("BEGIN; {LOCK}; {EXTENSION}; COMMIT")).await.map_err(no_extension)?;
    client.batch_execute(&format!("BEGIN; {LOCK}; {TABLES} COMMIT")).await.map_err(failed)
}

fn no_extension(error: tokio_postgres::Error) -> ContextError {
    let hint = match error.code() {
        Some(code) if *code == SqlState::INSUFFICIENT_PRIVILEGE => {
            "this user may not create the extension `vector`; let an administrator run CREATE EXTENSION vector"
        }
        Some(code) if *code == SqlState::UNDEFINED_FILE || *code == SqlState::FEATURE_NOT_SUPPORTED => {
            "the extension `vector` is not installed; install pgvector on the database server"
        }
        _ => return failed(error),
    };
    ContextError::Refused { what: WHAT, status: None, reason: hint.to_owned() }
}

/// Sets the time limit of statements, and lets the index of vectors return as many results as are wanted.
///
/// # Errors
///
/// The error of the database.
pub(super) async fn set_up(client: &Client, timeout: Duration) -> Result<(), tokio_postgres::Error> {
    let sql = "SELECT extversion FROM pg_extension WHERE extname = 'vector'";
    let version: String = client.query_one(sql, &[]).await?.try_get(0)?;
    let mut settings = format!("SET statement_timeout = {}; SET hnsw.ef_search = 100;", timeout.as_millis());
    if is_at_least_0_8(&version) {
        settings.push_str(" SET hnsw.iterative_scan = strict_order;");
    }
    client.batch_execute(&settings).await
}

fn is_at_least_0_8(version: &str) -> bool {
    let mut numbers = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (0, 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert!(is_at_least_0_8("0.8.5") && is_at_least_0_8("0.10.0") && is_at_least_0_8("1.0"));
        assert!(!is_at_least_0_8("0.7.4") && !is_at_least_0_8("unknown"));
    }
}
