//! The tables of the file.

use rusqlite::Connection;

/// The version of the tables, in `user_version`.
pub(super) const VERSION: u32 = 1;

/// Marks the file as ours, in `application_id`: the letters `CSCX`.
pub(super) const APPLICATION: u32 = 0x4353_4358;

/// Embeddings have their own table, so that a search by words does not read them.
const TABLES: &str = r#"
CREATE TABLE items (
    id INTEGER PRIMARY KEY,
    account TEXT NOT NULL,
    kind TEXT NOT NULL,
    source_id TEXT NOT NULL,
    text TEXT NOT NULL,
    metadata TEXT NOT NULL,
    at INTEGER NOT NULL,
    UNIQUE (account, kind, source_id)
) STRICT;
CREATE INDEX items_by_time ON items (at);
CREATE TABLE embeddings (
    item INTEGER PRIMARY KEY REFERENCES items (id) ON DELETE CASCADE,
    model TEXT NOT NULL,
    vector BLOB NOT NULL
) STRICT;
CREATE VIRTUAL TABLE words USING fts5 (
    text, content='items', content_rowid='id', tokenize='unicode61 remove_diacritics 2'
);
INSERT INTO words (words, rank) VALUES ('secure-delete', 1);
CREATE TRIGGER words_of_a_new_item AFTER INSERT ON items BEGIN
    INSERT INTO words (rowid, text) VALUES (new.id, new.text);
END;
CREATE TRIGGER words_of_a_forgotten_item AFTER DELETE ON items BEGIN
    INSERT INTO words (words, rowid, text) VALUES ('delete', old.id, old.text);
END;
CREATE TRIGGER words_of_a_replaced_item AFTER UPDATE ON items BEGIN
    INSERT INTO words (words, rowid, text) VALUES ('delete', old.id, old.text);
    INSERT INTO words (rowid, text) VALUES (new.id, new.text);
END;
CREATE TABLE contacts (
    account TEXT NOT NULL,
    email TEXT NOT NULL,
    record TEXT NOT NULL,
    last_contacted_at INTEGER,
    search TEXT NOT NULL,
    PRIMARY KEY (account, email)
) STRICT, WITHOUT ROWID;
"#;

/// Returns the version of the tables in the file; 0 if it is empty.
///
/// # Errors
///
/// Fails if the file is not a database.
pub(super) fn version(connection: &Connection) -> rusqlite::Result<u32> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Creates the tables in an empty file.
///
/// # Errors
///
/// Fails if the file cannot be written.
pub(super) fn create(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    if version(&transaction)? == 0 {
        transaction.execute_batch(TABLES)?;
        transaction.pragma_update(None, "user_version", VERSION)?;
        transaction.pragma_update(None, "application_id", APPLICATION)?;
    }
    transaction.commit()
}
