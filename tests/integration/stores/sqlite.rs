//! SQLite under test: a file of its own, and a clock that can be pushed.

use std::{
    collections::BTreeSet,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use countersign::{
    clock::{Clock as _, ManualClock, Timestamp},
    graph::{
        action::Status,
        store::{Acquired, ActionFilter, AuditDraft, AuditKind, Changes, Forget, Ingested, Sent, Store, Then},
    },
    ids::ThreadId,
    store::{packed, sqlite::SqliteStore},
};
use tempfile::TempDir;

use super::fixture::*;

/// Makes of the newest schema the one from before what is shown, and what could not be delivered, was kept.
const BEFORE_DEAD_LETTERS: &str =
    "DROP TABLE dead_letters; ALTER TABLE desk DROP COLUMN attempts; ALTER TABLE slots DROP COLUMN card;";

/// A fresh file.
pub(crate) struct Sqlite {
    store: Arc<dyn Store>,
    clock: ManualClock,
    path: PathBuf,
    dir: TempDir,
}

impl Sqlite {
    fn open(dir: TempDir, clock: ManualClock) -> Self {
        let path = dir.path().join("countersign.sqlite");
        let deadline = Instant::now() + Duration::from_secs(5);
        let store = loop {
            match SqliteStore::open(&path, Arc::new(clock.clone())) {
                Ok(store) => break store,
                // A process that another test is starting at this moment has the lock of a store that was closed.
                Err(error) if Instant::now() >= deadline => panic!("{error}"),
                Err(_) => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        Self { store: Arc::new(store), clock, path, dir }
    }
}

impl Fixture for Sqlite {
    async fn fresh() -> Self {
        Self::open(tempfile::tempdir().unwrap(), ManualClock::default())
    }

    fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn ttl(&self) -> Duration {
        Duration::from_secs(30)
    }

    async fn run_out(&self) {
        self.clock.advance(Duration::from_secs(31));
    }

    async fn a_moment(&self) {
        self.clock.advance(Duration::from_millis(5));
    }

    async fn reopen(self) -> Self {
        let Self { store, clock, dir, .. } = self;
        drop(store);
        Self::open(dir, clock)
    }

    async fn spoil(&self, place: &Place, with: &[u8]) {
        let file = rusqlite::Connection::open(&self.path).unwrap();
        let key = |thread: &ThreadId, seq: u64| -> i64 {
            let sql = "SELECT id FROM threads WHERE team = ?1 AND channel = ?2 AND root = ?3";
            let name = [thread.team.as_str(), thread.channel.as_str(), thread.root.as_str()];
            let id: i64 = file.query_row(sql, name, |row| row.get(0)).unwrap();
            (id << 32) | i64::try_from(seq).unwrap()
        };
        let of_key = |sql: &str, key: i64| file.execute(sql, rusqlite::params![with, key]).unwrap();
        let rows = match place {
            Place::Mailbox(thread, seq) => {
                of_key("UPDATE mailbox SET mail = CAST(?1 AS TEXT) WHERE id = ?2", key(thread, *seq))
            }
            Place::Inbox(_, seq) => {
                of_key("UPDATE desk SET entry = CAST(?1 AS TEXT) WHERE seq = ?2", i64::try_from(*seq).unwrap())
            }
            Place::Outgoing(thread, seq) => of_key("UPDATE outbox SET body = ?1 WHERE id = ?2", key(thread, *seq)),
            Place::Action(thread, id) => {
                let sql = "UPDATE actions SET record = ?1, parts = NULL WHERE thread = ?2 AND action = ?3";
                file.execute(sql, rusqlite::params![with, key(thread, 0) >> 32, id.as_str()]).unwrap()
            }
            Place::Audit(thread, seq) => of_key("UPDATE audit SET event = ?1 WHERE id = ?2", key(thread, *seq)),
            Place::Step(thread, version) => {
                let key = key(thread, *version);
                let step = file.query_row("SELECT step FROM steps WHERE id = ?1", [key], |row| row.get(0)).unwrap();
                let delta = text(step).lines().next().unwrap().to_owned() + "\n";
                let step = [delta.as_bytes(), with].concat();
                file.execute("UPDATE steps SET step = ?1 WHERE id = ?2", (step, key)).unwrap()
            }
            Place::Snapshot(thread) => {
                of_key("UPDATE snapshots SET snapshot = ?1 WHERE thread = ?2", key(thread, 0) >> 32)
            }
            Place::Aside(_, name) => {
                let sql = "UPDATE set_aside SET content = ?1 WHERE place = ?2";
                file.execute(sql, rusqlite::params![with, name]).unwrap()
            }
        };
        assert_eq!(rows, 1, "{place:?}");
    }
}

#[tokio::test]
async fn what_is_older_than_two_days_is_forgotten() {
    let f = Sqlite::fresh().await;
    for n in 0..700 {
        f.overhears(&thread(n), "lunch?").await;
    }
    f.store().sweep(f.now() + Duration::from_secs(49 * 3600)).await.unwrap();
    let file = rusqlite::Connection::open(&f.path).unwrap();
    for table in ["recent_keys", "mailbox", "threads"] {
        let rows: i64 = file.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap();
        assert_eq!(rows, 0, "{table}");
    }
    assert!(matches!(f.overhears(&thread(1), "lunch?").await, Ingested::Parked(_)));
}

#[tokio::test]
async fn its_settings_lose_nothing() {
    let f = Sqlite::fresh().await;
    let durability = f.store().durability().await.unwrap();
    assert_eq!(durability.problems, [""; 0]);
    assert!(durability.name.starts_with("SQLite 3.") && durability.name.ends_with(" (countersign.sqlite)"));
}

/// The text of a packed value.
fn text(value: Vec<u8>) -> String {
    String::from_utf8(packed::unpack(&value).unwrap().into_owned()).unwrap()
}

/// Replaces packed values by text, and complete entries take the place of events.
fn unpack_all(file: &rusqlite::Connection) {
    for (table, key, column) in [
        ("steps", "id", "step"),
        ("snapshots", "thread", "snapshot"),
        ("actions", "id", "record"),
        ("actions", "id", "parts"),
        ("outbox", "id", "body"),
        ("audit", "id", "event"),
    ] {
        let mut select = file.prepare(&format!("SELECT {key}, {column} FROM {table}")).unwrap();
        let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        for row in rows {
            let (id, value): (i64, Vec<u8>) = row.unwrap();
            let sql = format!("UPDATE {table} SET {column} = CAST(?2 AS BLOB) WHERE {key} = ?1");
            file.execute(&sql, (id, text(value))).unwrap();
        }
    }
    one_step_a_row(file);
    put_parts_back(file);
    let entry = "json_object('seq', id & 4294967295, 'previous', coalesce(lag(hash) OVER (PARTITION BY id >> 32 ORDER BY id), ''), \
                 'event', json(CAST(event AS TEXT)), 'hash', hash)";
    file.execute_batch(&format!(
        "CREATE TABLE entries AS SELECT id, {entry} AS entry FROM audit; \
         UPDATE audit SET event = NULL, entry = (SELECT CAST(entry AS BLOB) FROM entries WHERE entries.id = audit.id); \
         DROP TABLE entries;"
    ))
    .unwrap();
}

/// Takes apart the steps of each write, which are two lines each.
fn one_step_a_row(file: &rusqlite::Connection) {
    let mut select = file.prepare("SELECT id, CAST(step AS TEXT) FROM steps").unwrap();
    let rows: Vec<(i64, String)> =
        select.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect();
    for (last, text) in rows {
        let lines: Vec<&str> = text.split('\n').collect();
        for (nth, step) in lines.chunks(2).rev().enumerate() {
            let key = last - i64::try_from(nth).unwrap();
            file.execute(
                "INSERT OR REPLACE INTO steps (id, step) VALUES (?1, CAST(?2 AS BLOB))",
                (key, step.join("\n")),
            )
            .unwrap();
        }
    }
}

/// Makes the records of actions complete.
fn put_parts_back(file: &rusqlite::Connection) {
    let mut select = file.prepare("SELECT id, record, parts FROM actions").unwrap();
    let read = |text: Vec<u8>| serde_json::from_slice::<serde_json::Value>(&text).unwrap();
    let rows = select.query_map([], |row| Ok((row.get(0)?, read(row.get(1)?), read(row.get(2)?))));
    let rows: Vec<(i64, serde_json::Value, serde_json::Value)> = rows.unwrap().map(Result::unwrap).collect();
    for (id, mut record, parts) in rows {
        record.as_object_mut().unwrap().extend(parts.as_object().unwrap().clone());
        let sql = "UPDATE actions SET record = CAST(?2 AS BLOB) WHERE id = ?1";
        file.execute(sql, (id, record.to_string())).unwrap();
    }
    file.execute_batch("ALTER TABLE actions DROP COLUMN parts").unwrap();
}

/// Takes back the packing of values, and the keys by day.
fn take_back_packing(file: &rusqlite::Connection) {
    const BEFORE: &str = "
        CREATE TABLE text_steps (id INTEGER PRIMARY KEY, delta TEXT NOT NULL, record TEXT NOT NULL) STRICT;
        INSERT INTO text_steps SELECT id, substr(step, 1, instr(step, x'0a') - 1), substr(step, instr(step, x'0a') + 1)
            FROM (SELECT id, CAST(step AS TEXT) AS step FROM steps);
        CREATE TABLE text_snapshots (thread INTEGER PRIMARY KEY, version INTEGER NOT NULL, snapshot TEXT NOT NULL) STRICT;
        INSERT INTO text_snapshots SELECT thread, version, CAST(snapshot AS TEXT) FROM snapshots;
        CREATE TABLE text_audit (id INTEGER PRIMARY KEY, hash TEXT NOT NULL, entry TEXT NOT NULL) STRICT;
        INSERT INTO text_audit SELECT id, hash, CAST(entry AS TEXT) FROM audit;
        CREATE TABLE text_actions (id INTEGER PRIMARY KEY, thread INTEGER NOT NULL, action TEXT NOT NULL,
            approval TEXT NOT NULL UNIQUE, status TEXT NOT NULL, revision INTEGER NOT NULL, requested_at INTEGER NOT NULL,
            record TEXT NOT NULL, UNIQUE (thread, action)) STRICT;
        INSERT INTO text_actions
            SELECT id, thread, action, approval, status, revision, requested_at, CAST(record AS TEXT) FROM actions;
        CREATE TABLE text_outbox (id INTEGER PRIMARY KEY, slot TEXT, nonce TEXT NOT NULL, progress INTEGER NOT NULL,
            removes INTEGER NOT NULL, not_before INTEGER NOT NULL, attempts INTEGER NOT NULL DEFAULT 0, body TEXT NOT NULL,
            since INTEGER NOT NULL DEFAULT 0) STRICT;
        INSERT INTO text_outbox
            SELECT id, slot, nonce, progress, removes, not_before, attempts, CAST(body AS TEXT), since FROM outbox;
        DROP TABLE steps; DROP TABLE snapshots; DROP TABLE audit; DROP TABLE actions; DROP TABLE outbox;
        ALTER TABLE text_steps RENAME TO steps; ALTER TABLE text_snapshots RENAME TO snapshots;
        ALTER TABLE text_audit RENAME TO audit; ALTER TABLE text_actions RENAME TO actions;
        ALTER TABLE text_outbox RENAME TO outbox;
        CREATE INDEX actions_by_status ON actions (status, requested_at);
        CREATE INDEX actions_by_age ON actions (requested_at);
        CREATE INDEX actions_of_thread ON actions (thread, status, requested_at);
        CREATE TABLE dedup (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, at INTEGER NOT NULL) STRICT;
        INSERT INTO dedup (key, at) SELECT key, day * 86400000 FROM recent_keys;
        CREATE TABLE commits (id INTEGER PRIMARY KEY, thread INTEGER NOT NULL, commit_id TEXT NOT NULL,
            version INTEGER NOT NULL, at INTEGER NOT NULL, UNIQUE (thread, commit_id)) STRICT;
        INSERT INTO commits (thread, commit_id, version, at) SELECT thread, commit_id, version, day * 86400000 FROM recent_commits;
        DROP TABLE recent_keys; DROP TABLE recent_commits;
        ALTER TABLE threads DROP COLUMN in_flight; ALTER TABLE threads ADD COLUMN sending INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE threads DROP COLUMN audit_seal;
    ";
    unpack_all(file);
    file.execute_batch(BEFORE).unwrap();
}

/// Takes back the steps of the schema before the packing.
const WITHOUT_SET_ASIDE: &str = "ALTER TABLE threads DROP COLUMN graph; ALTER TABLE outbox DROP COLUMN since; \
    DROP TABLE set_aside; DROP TABLE probe; DROP INDEX actions_of_thread";

#[tokio::test]
async fn a_file_from_before_there_were_labels_gets_them() {
    let f = Sqlite::fresh().await;
    let records = super::actions::labelled(&f).await;
    let Sqlite { store, clock, path, dir } = f;
    drop(store);
    let file = rusqlite::Connection::open(&path).unwrap();
    take_back_packing(&file);
    file.execute_batch(WITHOUT_SET_ASIDE).unwrap();
    file.execute_batch(BEFORE_DEAD_LETTERS).unwrap();
    file.execute_batch("DROP TABLE action_labels; DROP TABLE files; DROP TABLE shown_files; PRAGMA user_version = 3")
        .unwrap();
    drop(file);
    let f = Sqlite::open(dir, clock);
    for record in &records {
        for label in record.labels() {
            let found = f.store().actions_under(std::slice::from_ref(&label), &[], 10).await.unwrap();
            assert!(found.contains(record), "{label}: {}", record.id);
        }
    }
    let open = records.iter().find(|record| record.status.is_open()).expect("one is open");
    let change = moved(open, Status::Approved);
    f.store().apply(&Changes { actions: vec![change.clone()], ..changes(&open.thread) }).await.unwrap();
    assert_eq!(f.store().action(&open.thread, &open.id).await.unwrap(), Some(change.record), "it goes on");
}

/// Makes of the newest schema the one from before several messages could be claimed together.
const BEFORE_IN_FLIGHT: &str = "
    DROP INDEX actions_in_progress; DROP INDEX actions_of_thread; ALTER TABLE actions DROP COLUMN ended;
    CREATE INDEX actions_by_status ON actions (status, requested_at);
    CREATE INDEX actions_of_thread ON actions (thread, status, requested_at);
    ALTER TABLE steps DROP COLUMN commit_id;
    ALTER TABLE threads ADD COLUMN sending INTEGER NOT NULL DEFAULT 0; UPDATE threads SET sending = CAST(in_flight AS INTEGER);
    ALTER TABLE threads DROP COLUMN in_flight; ALTER TABLE threads DROP COLUMN audit_seal;
    PRAGMA user_version = 14;
";

#[tokio::test]
async fn a_file_from_before_several_messages_were_claimed_keeps_its_claim_and_its_open_actions() {
    let f = Sqlite::fresh().await;
    let mut records = super::actions::labelled(&f).await;
    let rejected = moved(&records[0], Status::Rejected);
    f.store().apply(&Changes { actions: vec![rejected.clone()], ..changes(&records[0].thread) }).await.unwrap();
    records[0] = rejected.record;
    f.says(&thread(1), [reply("", "one"), reply("", "two")]).await;
    let claimed = f.claim_one().await.unwrap();
    let Sqlite { store, clock, path, dir } = f;
    drop(store);
    rusqlite::Connection::open(&path).unwrap().execute_batch(BEFORE_IN_FLIGHT).unwrap();
    let f = Sqlite::open(dir, clock);
    assert!(f.store().holds_outbox(&claimed).await.unwrap());
    assert!(f.store().finish_outbox(&claimed, &Sent::Delivered(None)).await.unwrap());
    assert_eq!(spoken(&f.claim_one().await.unwrap()), "two");

    let with = async |statuses: Vec<Status>| {
        let found = f.store().actions(&ActionFilter { thread: None, statuses, limit: 100 }).await.unwrap();
        found.into_iter().map(|record| record.id).collect::<BTreeSet<_>>()
    };
    let of = |is: fn(Status) -> bool| {
        records.iter().filter(|record| is(record.status)).map(|record| record.id.clone()).collect::<BTreeSet<_>>()
    };
    let (in_progress, ended): (Vec<_>, Vec<_>) = Status::ALL.into_iter().partition(|status| status.is_in_progress());
    assert_eq!(with(in_progress).await, of(Status::is_in_progress));
    assert_eq!(with(ended).await, of(|status| !status.is_in_progress()));
}

#[tokio::test]
async fn a_chart_from_before_files_had_threads_goes_with_its_thread() {
    let f = Sqlite::fresh().await;
    f.hears(&thread(1), "a chart, please").await;
    let chart = f.store().put_blob(b"chart", None).await.unwrap();
    let large = f.store().put_blob(b"large", None).await.unwrap();
    let detail = serde_json::json!({ "name": "chart.png", "hash": chart });
    let attached = AuditDraft::new(AuditKind::Attached, f.now(), None, detail);
    let Acquired { lease, messages, .. } = f.acquire_only("w1", &thread(1)).await.unwrap();
    let acks = messages.iter().map(|message| message.seq).collect();
    let said = Changes { steps: vec![step("one")], acks, audit: vec![attached], ..changes(&thread(1)) };
    f.store().commit(&lease, 0, &said, Then::Release).await.unwrap();
    let Sqlite { store, clock, path, dir } = f;
    drop(store);
    let file = rusqlite::Connection::open(&path).unwrap();
    take_back_packing(&file);
    file.execute_batch(WITHOUT_SET_ASIDE).unwrap();
    file.execute_batch(BEFORE_DEAD_LETTERS).unwrap();
    file.execute_batch("DROP TABLE files; DROP TABLE shown_files; PRAGMA user_version = 4").unwrap();
    drop(file);

    let f = Sqlite::open(dir, clock);
    assert_eq!(f.store().get_blob(&chart).await.unwrap(), Some(b"chart".to_vec()));
    let (before, checkpoint) = (f.now() + Duration::from_secs(1), None);
    let forget = Forget { thread: thread(1), version: 1, before, checkpoint, files: true, record: Vec::new() };
    assert!(f.store().forget(&forget).await.unwrap());
    assert_eq!(f.store().get_blob(&chart).await.unwrap(), None);
    assert!(f.store().get_blob(&large).await.unwrap().is_some(), "nobody showed it");
}

/// Copies the files as the disk has them after a power failure: with what was synced, and nothing since.
fn synced_copy(f: &Sqlite) -> TempDir {
    let copy = tempfile::tempdir().unwrap();
    for ending in ["", "-wal"] {
        let name = format!("countersign.sqlite{ending}");
        std::fs::copy(f.dir.path().join(&name), copy.path().join(&name)).unwrap();
    }
    let opened = rusqlite::Connection::open(copy.path().join("countersign.sqlite")).unwrap();
    opened.execute("UPDATE registers SET value = '\"before\"' WHERE key = 'sqlite:machine-start'", []).unwrap();
    copy
}

#[tokio::test]
async fn what_was_not_synced_is_done_again_after_a_power_failure() {
    let f = Sqlite::fresh().await;
    f.hears(&thread(1), "start it").await;
    let acquired = f.awake(&thread(2)).await;
    f.says(&thread(3), [reply("turn:1", "Done.")]).await; // synced, and with it everything before
    let copy = synced_copy(&f);

    // None of this is synced: a lease, a step that only reads, and the claim of a message that is then sent.
    f.acquire_only("w1", &thread(1)).await.expect("it is ready");
    let read = Changes { steps: vec![step("read")], ..changes(&thread(2)) };
    f.store().commit(&acquired.lease, acquired.saved.version, &read, Then::Keep).await.unwrap();
    assert_eq!(f.claim_one().await.unwrap().attempts, 0);

    let after = Sqlite::open(copy, f.clock.clone());
    f.clock.advance(f.ttl() * 2);
    let again = after.acquire_only("w2", &thread(1)).await.expect("its lease is forgotten");
    assert_eq!(words(&again.messages), ["start it"], "a message that was acknowledged is there");
    let again = after.acquire_only("w2", &thread(2)).await.expect("its lease is over");
    assert_eq!(again.saved.version, acquired.saved.version, "the step is run again");
    assert_eq!(after.claim_one().await.unwrap().attempts, 1, "the message is looked for before it is sent");
}
