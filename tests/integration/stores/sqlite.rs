//! SQLite under test: a file of its own, and a clock that can be pushed.

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use countersign::{
    clock::{Clock as _, ManualClock, Timestamp},
    graph::store::{Changes, Ingested, Store, Then},
    ids::ThreadId,
    store::{packed, sqlite::SqliteStore},
};
use tempfile::TempDir;

use super::fixture::*;

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
                let sql = "UPDATE actions SET record = ?1, parts = ?1 WHERE thread = ?2 AND action = ?3";
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
    f.commit(&acquired.lease, acquired.saved.version, &read, Then::Keep).await;
    assert_eq!(f.claim_one().await.unwrap().attempts, 0);

    let after = Sqlite::open(copy, f.clock.clone());
    f.clock.advance(f.ttl() * 2);
    let again = after.acquire_only("w2", &thread(1)).await.expect("its lease is forgotten");
    assert_eq!(words(&again.messages), ["start it"], "a message that was acknowledged is there");
    let again = after.acquire_only("w2", &thread(2)).await.expect("its lease is over");
    assert_eq!(again.saved.version, acquired.saved.version, "the step is run again");
    assert_eq!(after.claim_one().await.unwrap().attempts, 1, "the message is looked for before it is sent");
}
