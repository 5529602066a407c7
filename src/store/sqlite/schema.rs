//! The tables, and the migrations of older files.
//!
//! `PRAGMA user_version` counts the migrations that a file has seen. A migration that was released is never edited; a
//! change of the schema is one more entry.

use rusqlite::Connection;

/// Every migration, oldest first.
const MIGRATIONS: &[&str] = &[
    FIRST,
    BYTES_FOR_A_TIME,
    REGISTERS,
    LABELS_OF_ACTIONS,
    FILES_OF_THREADS,
    WHAT_IS_SHOWN,
    DEAD_LETTERS,
    SET_ASIDE,
    SINCE_WHEN,
    GRAPHS,
];

/// Times are milliseconds. Columns that are searched or counted are columns, everything else is JSON. `id` in
/// `mailbox`, `steps`, `outbox` and `audit` is the thread and a position in it, see [`super::keys`].
const FIRST: &str = "
-- A thread: who holds it, and since when there is something to do (`ready_at`) or to say (`send_at`).
CREATE TABLE threads (
    id            INTEGER PRIMARY KEY,
    team          TEXT NOT NULL,
    channel       TEXT NOT NULL,
    root          TEXT NOT NULL,
    known         INTEGER NOT NULL,             -- 0: not one of ours, its message is parked
    version       INTEGER NOT NULL DEFAULT 0,
    last_seq      INTEGER NOT NULL DEFAULT 0,   -- the last position given in mailbox or outbox
    fence         INTEGER NOT NULL DEFAULT 0,
    lease_worker  TEXT,
    lease_until   INTEGER NOT NULL DEFAULT 0,
    ready_at      INTEGER,                      -- NULL: nothing to do; stays while the thread is leased
    send_at       INTEGER,                      -- when the next message may go; NULL: nothing to say
    sending       INTEGER NOT NULL DEFAULT 0,   -- the position that is claimed
    sending_until INTEGER NOT NULL DEFAULT 0,
    updated_at    INTEGER NOT NULL,
    UNIQUE (root, channel, team)
) STRICT;
CREATE INDEX threads_ready ON threads (ready_at, lease_until) WHERE ready_at IS NOT NULL;
CREATE INDEX threads_to_send ON threads (send_at, sending_until) WHERE send_at IS NOT NULL;
CREATE INDEX threads_overheard ON threads (updated_at) WHERE known = 0;

CREATE TABLE mailbox (id INTEGER PRIMARY KEY, at INTEGER NOT NULL, mail TEXT NOT NULL) STRICT;

CREATE TABLE steps (id INTEGER PRIMARY KEY, delta TEXT NOT NULL, record TEXT NOT NULL) STRICT;

CREATE TABLE snapshots (thread INTEGER PRIMARY KEY, version INTEGER NOT NULL, snapshot TEXT NOT NULL) STRICT;

CREATE TABLE commits (
    id       INTEGER PRIMARY KEY,
    thread   INTEGER NOT NULL,
    commit_id TEXT NOT NULL,
    version  INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    UNIQUE (thread, commit_id)
) STRICT;

CREATE TABLE outbox (
    id         INTEGER PRIMARY KEY,
    slot       TEXT,
    nonce      TEXT NOT NULL,
    progress   INTEGER NOT NULL,
    removes    INTEGER NOT NULL,
    not_before INTEGER NOT NULL,
    attempts   INTEGER NOT NULL DEFAULT 0,      -- counts when it is claimed
    body       TEXT NOT NULL
) STRICT;

CREATE TABLE slots (
    thread  INTEGER NOT NULL,
    slot    TEXT NOT NULL,
    channel TEXT NOT NULL,
    ts      TEXT NOT NULL,
    PRIMARY KEY (thread, slot)
) STRICT, WITHOUT ROWID;

CREATE TABLE actions (
    id           INTEGER PRIMARY KEY,
    thread       INTEGER NOT NULL,
    action       TEXT NOT NULL,
    approval     TEXT NOT NULL UNIQUE,
    status       TEXT NOT NULL,
    revision     INTEGER NOT NULL,
    requested_at INTEGER NOT NULL,
    record       TEXT NOT NULL,
    UNIQUE (thread, action)
) STRICT;
CREATE INDEX actions_by_status ON actions (status, requested_at);
CREATE INDEX actions_by_age ON actions (requested_at);

CREATE TABLE audit (id INTEGER PRIMARY KEY, hash TEXT NOT NULL, entry TEXT NOT NULL) STRICT;

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
    entry         TEXT NOT NULL
) STRICT;

CREATE TABLE dedup (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, at INTEGER NOT NULL) STRICT;

CREATE TABLE blobs (id INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE, bytes BLOB NOT NULL) STRICT;
";

/// Bytes that may be kept for a time only; `until` is NULL for those that are kept for good.
const BYTES_FOR_A_TIME: &str = "
ALTER TABLE blobs ADD COLUMN until INTEGER;
CREATE INDEX blobs_until ON blobs (until) WHERE until IS NOT NULL;
";

/// Small data that belongs to no thread; `revision` is the number of times it was set.
const REGISTERS: &str = "
CREATE TABLE registers (key TEXT PRIMARY KEY, revision INTEGER NOT NULL, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
";

/// The labels of actions ([`countersign_graph::action::Label`]): filled for existing actions.
const LABELS_OF_ACTIONS: &str = "
CREATE TABLE action_labels (
    label        TEXT NOT NULL,
    requested_at INTEGER NOT NULL,
    action       INTEGER NOT NULL,
    PRIMARY KEY (label, requested_at, action)
) STRICT, WITHOUT ROWID;
INSERT OR IGNORE INTO action_labels
    SELECT 'asked:' || (record ->> '$.requested_by'), requested_at, id FROM actions;
INSERT OR IGNORE INTO action_labels
    SELECT 'within:' || threads.team || '/' || threads.channel, requested_at, actions.id
    FROM actions JOIN threads ON threads.id = actions.thread;
INSERT OR IGNORE INTO action_labels
    SELECT 'names:' || (approver.value ->> '$.user'), requested_at, actions.id
    FROM actions, json_each(record, '$.policy.approvers') AS approver
    WHERE approver.type = 'object' AND approver.value ->> '$.user' IS NOT NULL;
INSERT OR IGNORE INTO action_labels
    SELECT 'group:' || (approver.value ->> '$.group'), requested_at, actions.id
    FROM actions, json_each(record, '$.policy.approvers') AS approver
    WHERE approver.type = 'object' AND approver.value ->> '$.group' IS NOT NULL;
INSERT OR IGNORE INTO action_labels
    SELECT 'decided:' || (decision.value ->> '$.by'), requested_at, actions.id
    FROM actions, json_each(record, '$.decisions') AS decision
    WHERE decision.value ->> '$.by' IS NOT NULL;
";

/// Files, and the threads that show them: earlier ones lay among the bytes that are kept for good.
const FILES_OF_THREADS: &str = "
CREATE TABLE files (id INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE, bytes BLOB NOT NULL) STRICT;
CREATE TABLE shown_files (
    thread TEXT NOT NULL,
    hash   TEXT NOT NULL,
    PRIMARY KEY (thread, hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX shown_files_by_hash ON shown_files (hash);
INSERT OR IGNORE INTO shown_files
    SELECT threads.team || '/' || threads.channel || '/' || threads.root, entry ->> '$.event.detail.hash'
    FROM audit JOIN threads ON threads.id = audit.id >> 32
    WHERE entry ->> '$.event.kind' = 'attached' AND entry ->> '$.event.detail.hash' IS NOT NULL;
INSERT INTO files (hash, bytes)
    SELECT hash, bytes FROM blobs WHERE until IS NULL AND hash IN (SELECT hash FROM shown_files);
DELETE FROM blobs WHERE until IS NULL AND hash IN (SELECT hash FROM files);
";

/// The open card that a message shows, as JSON; NULL if it shows none, or was posted before this was noted.
const WHAT_IS_SHOWN: &str = "
ALTER TABLE slots ADD COLUMN card TEXT;
";

/// Messages that could not be delivered (`thread` as text) and interactions that could not be handled (`thread` is
/// NULL), and the number of claims of an interaction.
const DEAD_LETTERS: &str = "
ALTER TABLE desk ADD COLUMN attempts INTEGER NOT NULL DEFAULT 0;
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
";

/// Unreadable entries: `content` is an entry that was set aside, with the other columns of its row, NULL if it stays in
/// its place. A probe is written to test that writing works. Actions of a thread are found by their status.
const SET_ASIDE: &str = "
CREATE TABLE set_aside (
    place   TEXT PRIMARY KEY,
    at      INTEGER NOT NULL,
    why     TEXT NOT NULL,
    columns TEXT,
    content BLOB
) STRICT;
CREATE TABLE probe (id INTEGER PRIMARY KEY, at INTEGER NOT NULL) STRICT;
CREATE INDEX actions_of_thread ON actions (thread, status, requested_at);
";

/// The time from which on a message was to be sent: `not_before` moves on with each try.
const SINCE_WHEN: &str = "
ALTER TABLE outbox ADD COLUMN since INTEGER NOT NULL DEFAULT 0;
UPDATE outbox SET since = not_before;
";

/// The graph that a thread belongs to: existing threads belong to the chat.
const GRAPHS: &str = "
ALTER TABLE threads ADD COLUMN graph TEXT NOT NULL DEFAULT 'chat';
";

/// Returns the newest schema that this program knows.
pub(super) fn known() -> u32 {
    u32::try_from(MIGRATIONS.len()).expect("there are a few")
}

/// Returns the schema of a file.
pub(super) fn seen(connection: &Connection) -> rusqlite::Result<u32> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Brings the file up to date. The inner error is the schema of a file that is newer than this program.
pub(super) fn migrate(connection: &mut Connection) -> rusqlite::Result<Result<(), u32>> {
    let transaction = connection.transaction()?;
    let seen = seen(&transaction)?;
    if seen > known() {
        return Ok(Err(seen));
    }
    for migration in MIGRATIONS.iter().skip(seen as usize) {
        transaction.execute_batch(migration)?;
    }
    transaction.pragma_update(None, "user_version", known())?;
    transaction.commit()?;
    Ok(Ok(()))
}
