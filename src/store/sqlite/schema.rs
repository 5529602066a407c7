//! The tables, and the migrations of older files.
//!
//! `PRAGMA user_version` counts the migrations that were applied to a file. A released migration is
//! never edited; each change of the schema is a new entry.

use rusqlite::Connection;

/// All migrations, oldest first.
const MIGRATIONS: &[&str] = &[
    FIRST,
    BLOB_EXPIRY,
    REGISTERS,
    ACTION_LABELS,
    THREAD_FILES,
    SHOWN_CARDS,
    DEAD_LETTERS,
    SET_ASIDE,
    DUE_SINCE,
    GRAPHS,
    PACKED,
    RECENT,
    WRITTEN_ONCE,
    HASHED_PARTS,
    IN_PROGRESS,
    THIRD_DICTIONARY,
    AUDIT_SEAL,
];

/// Times are in milliseconds. Values that are searched or counted have columns; everything else is
/// JSON, and packed since [`PACKED`] unless it is deleted soon. In `mailbox`, `steps`, `outbox` and `audit`, `id` is the thread and a position in it, see
/// [`super::keys`].
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

/// Blobs that expire; `until` is NULL for permanent ones.
const BLOB_EXPIRY: &str = "
ALTER TABLE blobs ADD COLUMN until INTEGER;
CREATE INDEX blobs_until ON blobs (until) WHERE until IS NOT NULL;
";

/// Small values that belong to no thread; `revision` is the number of times that they were set.
const REGISTERS: &str = "
CREATE TABLE registers (key TEXT PRIMARY KEY, revision INTEGER NOT NULL, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
";

/// The labels of actions ([`countersign_graph::action::Label`]), including those of existing
/// actions.
const ACTION_LABELS: &str = "
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

/// Files, and the threads that show them. Earlier versions stored files as permanent blobs.
const THREAD_FILES: &str = "
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

/// The open card that a message shows, as JSON. NULL if it shows none, or was posted before this
/// column existed.
const SHOWN_CARDS: &str = "
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

/// Unreadable entries. `content` is the entry that was set aside, with the other columns of its row
/// in `columns`; it is NULL if the entry stays in its place. `probe` is for test writes. The index
/// finds the actions of a thread by their status.
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

/// The time at which a message was due. Unlike `not_before`, it does not change with each attempt.
const DUE_SINCE: &str = "
ALTER TABLE outbox ADD COLUMN since INTEGER NOT NULL DEFAULT 0;
UPDATE outbox SET since = not_before;
";

/// The graph that a thread belongs to. Existing threads belong to the chat graph.
const GRAPHS: &str = "
ALTER TABLE threads ADD COLUMN graph TEXT NOT NULL DEFAULT 'chat';
";

/// Long values in packed form ([`crate::packed`]); text is one as well, so existing values stay as they are. A step is its
/// difference and the rest of its record, each on a line. An `event` of the audit trail is chained to the entry before it;
/// an `entry` is complete, because it is from an earlier version or something in it is hidden.
const PACKED: &str = "
CREATE TABLE packed_steps (id INTEGER PRIMARY KEY, step BLOB NOT NULL) STRICT;
INSERT INTO packed_steps SELECT id, CAST(delta || char(10) || record AS BLOB) FROM steps;
DROP TABLE steps;
ALTER TABLE packed_steps RENAME TO steps;

CREATE TABLE packed_snapshots (thread INTEGER PRIMARY KEY, version INTEGER NOT NULL, snapshot BLOB NOT NULL) STRICT;
INSERT INTO packed_snapshots SELECT thread, version, CAST(snapshot AS BLOB) FROM snapshots;
DROP TABLE snapshots;
ALTER TABLE packed_snapshots RENAME TO snapshots;

CREATE TABLE packed_audit (id INTEGER PRIMARY KEY, hash TEXT NOT NULL, event BLOB, entry BLOB) STRICT;
INSERT INTO packed_audit SELECT id, hash, NULL, CAST(entry AS BLOB) FROM audit;
DROP TABLE audit;
ALTER TABLE packed_audit RENAME TO audit;

CREATE TABLE packed_outbox (
    id         INTEGER PRIMARY KEY,
    slot       TEXT,
    nonce      TEXT NOT NULL,
    progress   INTEGER NOT NULL,
    removes    INTEGER NOT NULL,
    not_before INTEGER NOT NULL,
    since      INTEGER NOT NULL,
    attempts   INTEGER NOT NULL DEFAULT 0,
    body       BLOB NOT NULL
) STRICT;
INSERT INTO packed_outbox
    SELECT id, slot, nonce, progress, removes, not_before, since, attempts, CAST(body AS BLOB) FROM outbox;
DROP TABLE outbox;
ALTER TABLE packed_outbox RENAME TO outbox;

CREATE TABLE packed_actions (
    id           INTEGER PRIMARY KEY,
    thread       INTEGER NOT NULL,
    action       TEXT NOT NULL,
    approval     TEXT NOT NULL UNIQUE,
    status       TEXT NOT NULL,
    revision     INTEGER NOT NULL,
    requested_at INTEGER NOT NULL,
    record       BLOB NOT NULL,
    UNIQUE (thread, action)
) STRICT;
INSERT INTO packed_actions
    SELECT id, thread, action, approval, status, revision, requested_at, CAST(record AS BLOB) FROM actions;
DROP TABLE actions;
ALTER TABLE packed_actions RENAME TO actions;
CREATE INDEX actions_by_status ON actions (status, requested_at);
CREATE INDEX actions_by_age ON actions (requested_at);
CREATE INDEX actions_of_thread ON actions (thread, status, requested_at);
";

/// The keys of recent deliveries and writes, by day ([`super::recent`]), so that those of one day are adjacent and no index
/// by time is needed.
const RECENT: &str = "
CREATE TABLE recent_keys (day INTEGER NOT NULL, key TEXT NOT NULL, PRIMARY KEY (day, key)) STRICT, WITHOUT ROWID;
INSERT OR IGNORE INTO recent_keys SELECT at / 86400000, key FROM dedup;
DROP TABLE dedup;
CREATE TABLE recent_commits (
    day       INTEGER NOT NULL,
    thread    INTEGER NOT NULL,
    commit_id TEXT NOT NULL,
    version   INTEGER NOT NULL,
    PRIMARY KEY (day, thread, commit_id)
) STRICT, WITHOUT ROWID;
INSERT OR IGNORE INTO recent_commits SELECT at / 86400000, thread, commit_id, version FROM commits;
DROP TABLE commits;
";

/// The steps of one write are one row ([`super::steps`]), the parts of an action have a column of their own
/// ([`super::written`]), and values are packed with another dictionary. Existing values stay as they are, but earlier
/// programs could not read new ones.
const WRITTEN_ONCE: &str = "ALTER TABLE actions ADD COLUMN parts BLOB;";

/// Seals and the hashes of the record's entries are of version 4, which earlier programs do not know. Existing ones stay as
/// they are, and no table changes.
const HASHED_PARTS: &str = "";

/// Actions that have ended are in no index that depends on the status. `actions_of_thread` does not depend on it at all, since
/// few actions of a thread are in progress.
/// A write with steps is recognized by the id in their row ([`super::steps`]). Several messages of a thread can be claimed
/// together: `in_flight` has their positions, separated by spaces, in place of the only one.
const IN_PROGRESS: &str = "
ALTER TABLE actions ADD COLUMN ended INTEGER NOT NULL DEFAULT 0;
UPDATE actions SET ended = 1 WHERE status NOT IN ('pending', 'approved', 'intent');
DROP INDEX actions_by_status;
DROP INDEX actions_of_thread;
CREATE INDEX actions_in_progress ON actions (status, requested_at) WHERE ended = 0;
CREATE INDEX actions_of_thread ON actions (thread) WHERE ended = 0;
ALTER TABLE steps ADD COLUMN commit_id TEXT;
ALTER TABLE threads ADD COLUMN in_flight TEXT NOT NULL DEFAULT '';
UPDATE threads SET in_flight = sending WHERE sending > 0;
ALTER TABLE threads DROP COLUMN sending;
";

/// Values are packed with a third dictionary ([`crate::packed`]), which earlier programs do not have. Existing values stay as
/// they are, and no table changes.
const THIRD_DICTIONARY: &str = "";

/// The seal of the head of a thread's audit trail, as JSON. Threads of earlier programs have none.
const AUDIT_SEAL: &str = "ALTER TABLE threads ADD COLUMN audit_seal TEXT;";

/// Returns the newest schema version that this program knows.
pub(super) fn known() -> u32 {
    u32::try_from(MIGRATIONS.len()).expect("the number of migrations is small")
}

/// Returns the schema version of a file.
pub(super) fn applied(connection: &Connection) -> rusqlite::Result<u32> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Applies the missing migrations. The inner error is the schema version of a file that is newer
/// than this program.
pub(super) fn migrate(connection: &mut Connection) -> rusqlite::Result<Result<(), u32>> {
    let transaction = connection.transaction()?;
    let applied = applied(&transaction)?;
    if applied > known() {
        return Ok(Err(applied));
    }
    if applied == known() {
        return Ok(Ok(()));
    }
    for migration in MIGRATIONS.iter().skip(applied as usize) {
        transaction.execute_batch(migration)?;
    }
    transaction.pragma_update(None, "user_version", known())?;
    transaction.commit()?;
    Ok(Ok(()))
}
