//! Stores that an earlier program left behind when it was killed, with work open in every stage. Today's program opens
//! them and finishes all of it, and what it adds to the record continues the chain.
//!
//! The stores are in `tests/fixtures/stores`, with the workspace and the platform as they were; [`written`] makes them.
//! Their cards expire after a day, so the clocks of this test stand at the time at which they were left behind.

mod written;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use countersign::{
    clock::{Clock, SystemClock, Timestamp},
    graph::store::Backlog,
    ids::MessageTs,
    sandbox::slack::world::message::Message,
};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use super::{
    hot_path::{card_of, presses, said},
    process::{Process, serve},
    script::World,
};
use crate::{
    nemesis::harness::clocks,
    support::{bot::eventually, redis::RedisServer},
};

/// The last program that synced every write, and saved every step by itself.
const EVERY_WRITE_SYNCED: &str = "every-write-synced";

/// The experiments, each of which somebody asked to start, by how far that had come.
///
/// A card that expires a minute after the program was killed.
const EXPIRING: &str = "Apple";
/// An open card.
const OPEN: &str = "Banana";
/// A question: which experiment?
const ASKED: &str = "Cherry";
/// A card in the outbox, of which Slack knows nothing.
const UNSENT: &str = "Damson";
/// A card that Slack has, which is in the outbox as if it had not.
const SENT: &str = "Elder";
/// A change that is approved, and not begun.
const APPROVED: &str = "Figs";
/// A change with an intent, whose request never left.
const INTENDED: &str = "Grape";
/// A change with an intent that was made, and nobody knows.
const MADE: &str = "Hazel";
/// A click on Approve that is acknowledged, and not handled.
const CLICKED: &str = "Iris";
/// A mention that is acknowledged, and not handled.
const MENTIONED: &str = "Juniper";

const ALL: [&str; 10] = [EXPIRING, OPEN, ASKED, UNSENT, SENT, APPROVED, INTENDED, MADE, CLICKED, MENTIONED];
/// Those that go on without a further click.
const DECIDED: [&str; 4] = [APPROVED, INTENDED, MADE, CLICKED];
/// Those whose card is to be approved.
const CARDS: [&str; 5] = [OPEN, ASKED, UNSENT, SENT, MENTIONED];

/// How many seconds after the program was killed the next one is started: the first card has expired then, and what the
/// program had claimed is free.
const LATER: i64 = 300;

/// What is known of a fixture besides its files.
#[derive(Debug, Serialize, Deserialize)]
struct LeftBehind {
    /// When the program was killed, in seconds since 1970.
    at: i64,
    /// The thread of each experiment.
    threads: BTreeMap<String, MessageTs>,
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_from_when_every_write_was_synced_is_finished() {
    is_finished(EVERY_WRITE_SYNCED, Kind::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_from_when_every_write_was_synced_is_finished() {
    is_finished(EVERY_WRITE_SYNCED, Kind::Redis).await;
}

/// Which store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Sqlite,
    Redis,
}

impl Kind {
    /// The folder with its files.
    fn fixture(self, of: &str) -> PathBuf {
        let stores = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/stores").join(of);
        stores.join(match self {
            Self::Sqlite => "sqlite",
            Self::Redis => "redis",
        })
    }
}

/// A clock that stands elsewhere by so many seconds, as that of the program does.
#[derive(Debug)]
struct Moved(i64);

impl Clock for Moved {
    fn now(&self) -> Timestamp {
        Timestamp(SystemClock.now().0 + self.0 * 1000)
    }
}

async fn is_finished(of: &str, kind: Kind) {
    let fixture = kind.fixture(of);
    let left: LeftBehind = serde_json::from_str(&std::fs::read_to_string(fixture.join("left.json")).unwrap()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    copy(&fixture, folder.path());
    let moved = left.at + LATER - SystemClock.now().seconds();
    let library = clocks::library().unwrap().display().to_string();
    let clock = [
        ("LD_PRELOAD", library),
        ("FAKETIME", format!("{moved:+}s")),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
        ("NO_FAKE_STAT", "1".to_owned()),
    ];
    let server = match kind {
        Kind::Sqlite => None,
        // Its own clock is for leases and claims only.
        Kind::Redis => Some(RedisServer::start_with_files(&folder.path().join("server")).await),
    };
    let world = world(folder, server.as_ref(), Moved(moved)).await;
    let mut settings = world.settings();
    settings.extend(clock.map(|(name, value)| (name.to_owned(), value)));
    let bot = Process::start(serve(&settings), &world.log());
    let root = |name: &str| &left.threads[name];
    let says = |name: &str, words: &str| said(&world, root(name)).iter().any(|message| message.words().contains(words));

    eventually("the end of a card", || card_of(&world, root(EXPIRING)).is_none() && says(EXPIRING, "xpired")).await;
    for name in DECIDED {
        eventually(&format!("the outcome of {name}"), || is_told(&world, root(name), name)).await;
    }
    world.slack.says("ana", "experiments", ASKED, Some(root(ASKED))).unwrap();
    for name in CARDS {
        eventually(&format!("the card of {name}"), || card_of(&world, root(name)).is_some()).await;
        presses(&world, root(name)).await;
        eventually(&format!("the outcome of {name}"), || is_told(&world, root(name), name)).await;
    }
    let status = bot.stop().await;
    assert!(status.success(), "{status}\n{}", bot.log());

    let store = world.kept.open().await;
    assert_eq!(store.backlog().await.unwrap(), Backlog::default(), "{}", bot.log());
    for name in ALL {
        let recorded = world.verify(&*store, root(name)).await.unwrap();
        let decided = usize::from(name != EXPIRING);
        for (what, times) in [("Asked", 1), ("Shown", 1), ("Outcome", decided)] {
            assert_eq!(recorded[what], times, "{name}: {what}\n{}", bot.log());
        }
        let messages: Vec<_> = said(&world, root(name)).iter().map(Message::words).collect();
        assert_eq!(messages.len(), 2 + usize::from(name == ASKED), "{name}: {messages:#?}\n{}", bot.log());
        let state = if decided > 0 { "running" } else { "inactive" };
        assert_eq!(world.upgrade.experiment(name).unwrap()["state"], state, "{name}\n{}", bot.log());
    }
    // Each change is made once; one was made before.
    assert_eq!(world.upgrade.effects().len(), DECIDED.len() + CARDS.len() - 1, "{}", bot.log());
}

/// Whether the card and an answer say that it was started.
fn is_told(world: &World, root: &MessageTs, name: &str) -> bool {
    let said = said(world, root);
    card_of(world, root).is_none() && said.len() == 2 + usize::from(name == ASKED)
}

/// A workspace and a platform whose files are in a folder, which may be there already.
async fn world(folder: TempDir, server: Option<&RedisServer>, clock: impl Clock + 'static) -> World {
    World::of_folder(folder, server.map(RedisServer::url), Arc::new(clock)).await
}

/// Copies a folder with everything in it.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let place = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &place);
        } else {
            std::fs::copy(entry.path(), place).unwrap();
        }
    }
}
