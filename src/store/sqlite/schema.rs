//! The tables, and how a file of an earlier version gets those of this one.
//!
//! `PRAGMA user_version` counts the migrations that were applied to a file. A released migration is never edited; each change
//! of the schema is a new entry, such as `ALTER TABLE threads ADD COLUMN note TEXT;`. A column that is added is NULL, or has a
//! default, in the rows that exist.

use rusqlite::Connection;

/// All migrations, oldest first.
const MIGRATIONS: &[&str] = &[FIRST];

/// The tables of version 0.1.0. Times are in milliseconds. Values that are searched or counted have columns; all others are
/// JSON, packed ([`crate::packed`]) where the column is a BLOB. In `mailbox`, `steps`, `outbox` and `audit`, `id` is the thread
/// and a position in it, see [`super::keys`].
///
/// Numbers of threads and actions are not given again after a row was deleted, by hand as well: what remains of it
/// elsewhere, such as its audit trail or its labels, would be taken for that of another one.
const FIRST: &str = "
-- A thread: who holds it, and since when there is something to do (`ready_at`) or to say (`send_at`).
CREATE TABLE threads (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    team          TEXT NOT NULL,
    channel       TEXT NOT NULL,
    root          TEXT NOT NULL,
    graph         TEXT NOT NULL DEFAULT 'chat',
    known         INTEGER NOT NULL,             -- 0: not one of ours, its message is parked
    version       INTEGER NOT NULL DEFAULT 0,
    last_seq      INTEGER NOT NULL DEFAULT 0,   -- the last position given in mailbox or outbox
    fence         INTEGER NOT NULL DEFAULT 0,
    lease_worker  TEXT,
    lease_until   INTEGER NOT NULL DEFAULT 0,
    ready_at      INTEGER,                      -- NULL: nothing to do; stays while the thread is leased
    send_at       INTEGER,                      -- when the next message may go; NULL: nothing to say
    in_flight     TEXT NOT NULL DEFAULT '',     -- the positions that are claimed, separated by spaces
    sending_until INTEGER NOT NULL DEFAULT 0,
    updated_at    INTEGER NOT NULL,
    audit_seal    TEXT,                         -- of the head of the audit trail, as JSON
    UNIQUE (root, channel, team)
) STRICT;
CREATE INDEX threads_ready ON threads (ready_at, lease_until) WHERE ready_at IS NOT NULL;
CREATE INDEX threads_to_send ON threads (send_at, sending_until) WHERE send_at IS NOT NULL;
CREATE INDEX threads_by_change ON threads (known, updated_at); -- those changed last, and those of others

CREATE TABLE mailbox (id INTEGER PRIMARY KEY, at INTEGER NOT NULL, mail TEXT NOT NULL) STRICT;

-- The steps of one write: their differences and the rest of their records, each on a line (`super::steps`).
CREATE TABLE steps (id INTEGER PRIMARY KEY, step BLOB NOT NULL, commit_id TEXT) STRICT;

CREATE TABLE snapshots (thread INTEGER PRIMARY KEY, version INTEGER NOT NULL, snapshot BLOB NOT NULL) STRICT;

-- The keys of recent deliveries and writes, by day (`super::recent`), so that those of one day are adjacent.
CREATE TABLE recent_keys (day INTEGER NOT NULL, key TEXT NOT NULL, PRIMARY KEY (day, key)) STRICT, WITHOUT ROWID;
CREATE TABLE recent_commits (
    day       INTEGER NOT NULL,
    thread    INTEGER NOT NULL,
    commit_id TEXT NOT NULL,
    version   INTEGER NOT NULL,
    PRIMARY KEY (day, thread, commit_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE outbox (
    id         INTEGER PRIMARY KEY,
    slot       TEXT,
    nonce      TEXT NOT NULL,
    progress   INTEGER NOT NULL,
    removes    INTEGER NOT NULL,
    not_before INTEGER NOT NULL,
    since      INTEGER NOT NULL,                -- when it was due at first
    attempts   INTEGER NOT NULL DEFAULT 0,      -- counts when it is claimed
    body       BLOB NOT NULL
) STRICT;

-- Where the messages are; `card` is the open card that one shows, as JSON.
CREATE TABLE slots (
    thread  INTEGER NOT NULL,
    slot    TEXT NOT NULL,
    channel TEXT NOT NULL,
    ts      TEXT NOT NULL,
    card    TEXT,
    PRIMARY KEY (thread, slot)
) STRICT, WITHOUT ROWID;

-- Actions that have ended are in no index that depends on the status. `parts`: see `super::written`.
CREATE TABLE actions (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    thread       INTEGER NOT NULL,
    action       TEXT NOT NULL,
    approval     TEXT NOT NULL UNIQUE,
    status       TEXT NOT NULL,
    revision     INTEGER NOT NULL,
    requested_at INTEGER NOT NULL,
    record       BLOB NOT NULL,
    parts        BLOB NOT NULL,
    ended        INTEGER NOT NULL DEFAULT 0,
    UNIQUE (thread, action)
) STRICT;
CREATE INDEX actions_by_age ON actions (requested_at);
CREATE INDEX actions_in_progress ON actions (status, requested_at) WHERE ended = 0;
CREATE INDEX actions_of_thread ON actions (thread) WHERE ended = 0;

CREATE TABLE action_labels (
    label        TEXT NOT NULL,
    requested_at INTEGER NOT NULL,
    action       INTEGER NOT NULL,
    PRIMARY KEY (label, requested_at, action)
) STRICT, WITHOUT ROWID;

-- An `event` is chained to the entry before it; an `entry` is complete, because something in it is hidden.
CREATE TABLE audit (id INTEGER PRIMARY KEY, hash TEXT NOT NULL, event BLOB, entry BLOB) STRICT;

CREATE TABLE timers (
    thread INTEGER NOT NULL,
    key    TEXT NOT NULL,
    due    INTEGER NOT NULL,
    entry  TEXT NOT NULL,
    PRIMARY KEY (thread, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX timers_due ON timers (due);

CREATE TABLE desk (
    seq           INTEGER PRIMARY KEY AUTOINCREMENT,
    partition     INTEGER NOT NULL,
    claimed_until INTEGER NOT NULL,
    attempts      INTEGER NOT NULL DEFAULT 0,   -- counts when it is claimed
    entry         TEXT NOT NULL
) STRICT;

-- Messages that could not be delivered (`thread` as text) and interactions that could not be handled (`thread` is NULL).
CREATE TABLE dead_letters (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    partition INTEGER NOT NULL,
    thread    TEXT,
    slot      TEXT,
    at        INTEGER NOT NULL,
    attempts  INTEGER NOT NULL,
    reason    TEXT NOT NULL,
    entry     TEXT NOT NULL
) STRICT;
CREATE INDEX dead_letters_of_thread ON dead_letters (thread) WHERE thread IS NOT NULL;

CREATE TABLE blobs (
    id    INTEGER PRIMARY KEY,
    hash  TEXT NOT NULL UNIQUE,
    bytes BLOB NOT NULL,
    until INTEGER                               -- NULL: permanent
) STRICT;
CREATE INDEX blobs_until ON blobs (until) WHERE until IS NOT NULL;

-- Files, and the threads that show them.
CREATE TABLE files (id INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE, bytes BLOB NOT NULL) STRICT;
CREATE TABLE shown_files (
    thread TEXT NOT NULL,
    hash   TEXT NOT NULL,
    PRIMARY KEY (thread, hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX shown_files_by_hash ON shown_files (hash);

-- Small values that belong to no thread; `revision` is the number of times that they were set.
CREATE TABLE registers (key TEXT PRIMARY KEY, revision INTEGER NOT NULL, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

-- Unreadable entries. `content` is the entry that was set aside, with the other columns of its row in `columns`; it is NULL
-- if the entry stays in its place.
CREATE TABLE set_aside (
    place   TEXT PRIMARY KEY,
    at      INTEGER NOT NULL,
    why     TEXT NOT NULL,
    columns TEXT,
    content BLOB
) STRICT;

-- For test writes.
CREATE TABLE probe (id INTEGER PRIMARY KEY, at INTEGER NOT NULL) STRICT;
";

/// Returns the newest schema version that this program knows.
pub(super) fn known() -> u32 {
    count(MIGRATIONS)
}

fn count(migrations: &[&str]) -> u32 {
    u32::try_from(migrations.len()).expect("the number of migrations is small")
}

/// Returns the schema version of a file.
pub(super) fn applied(connection: &Connection) -> rusqlite::Result<u32> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Applies the missing migrations. The inner error is the schema version of a file that is newer
/// than this program.
pub(super) fn migrate(connection: &mut Connection) -> rusqlite::Result<Result<(), u32>> {
    apply(connection, MIGRATIONS)
}

fn apply(connection: &mut Connection, migrations: &[&str]) -> rusqlite::Result<Result<(), u32>> {
    let known = count(migrations);
    let transaction = connection.transaction()?;
    let applied = applied(&transaction)?;
    if applied > known {
        return Ok(Err(applied));
    }
    if applied == known {
        return Ok(Ok(()));
    }
    for migration in migrations.iter().skip(applied as usize) {
        transaction.execute_batch(migration)?;
    }
    transaction.pragma_update(None, "user_version", known)?;
    transaction.commit()?;
    Ok(Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREAD: &str = "INSERT INTO threads (team, channel, root, known, updated_at) VALUES ('T1', 'C1', ?1, 1, 0)";

    #[test]
    fn the_number_of_a_deleted_row_is_not_given_again() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection).unwrap().unwrap();
        connection.execute(THREAD, ["1.0"]).unwrap();
        let first = connection.last_insert_rowid();
        connection.execute("DELETE FROM threads", []).unwrap();
        connection.execute(THREAD, ["2.0"]).unwrap();
        assert!(connection.last_insert_rowid() > first);
    }

    #[test]
    fn a_file_of_an_earlier_version_keeps_its_rows_and_is_refused_by_the_earlier_program() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection).unwrap().unwrap();
        connection.execute(THREAD, ["1.0"]).unwrap();
        let later = [MIGRATIONS, &["ALTER TABLE threads ADD COLUMN note TEXT;"]].concat();
        for _ in 0..2 {
            apply(&mut connection, &later).unwrap().unwrap();
            let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
            let (root, note): (String, Option<String>) =
                connection.query_row("SELECT root, note FROM threads", [], row).unwrap();
            assert_eq!((root.as_str(), note), ("1.0", None));
        }
        assert_eq!(migrate(&mut connection).unwrap(), Err(count(&later)));
    }
}
