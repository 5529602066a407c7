//! What one approval costs in calls and writes, from the mention to the outcome and the answer. Durations depend on the
//! machine; these counts do not, so they are held here.
//!
//! The bot is a process of its own, whose counters nobody else touches. It looks for unannounced work only when it
//! starts, so what it does between two quiet moments is what the approval needs.

use std::time::Duration;

use countersign::{
    graph::store::{Backlog, Store},
    ids::MessageTs,
};
use countersign_sandbox::slack::world::message::Message;
use tokio::time::Instant;

use super::{
    process::{Process, serve},
    processes::Page,
    script::World,
};
use crate::support::{
    bot::{BOUND, eventually},
    ports::free_port,
    redis::RedisServer,
};

/// The most that one approval may take, on either store.
const SLACK_CALLS: u64 = 3;
const PLATFORM_CALLS: u64 = 6;
/// The most transactions that SQLite syncs for it.
const SYNCED_WRITES: u64 = 5;
/// The most requests for it that the bot sends to Redis.
const ROUND_TRIPS: u64 = 8;

/// The approvals that are counted. The least of each count is compared: on a machine that stands still for a moment, a
/// step that is held back is written on its own, and the card says that the change is running.
const APPROVALS: usize = 5;
/// How long no count may change until it is quiet.
const QUIET: Duration = Duration::from_millis(100);

const BUTTON: &str = "Start experiment";

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_takes_few_calls_and_synced_writes_with_sqlite() {
    let counted = one_approval(None).await;
    assert!((1..=SYNCED_WRITES).contains(&counted.synced_writes), "at most {SYNCED_WRITES}: {counted:?}");
    counted.calls_are_few();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_takes_few_calls_and_round_trips_with_redis() {
    let server = RedisServer::start().await;
    let counted = one_approval(Some(server.url())).await;
    assert!((1..=ROUND_TRIPS).contains(&counted.round_trips), "at most {ROUND_TRIPS}: {counted:?}");
    counted.calls_are_few();
}

/// What was done since the bot started, or for one approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counts {
    slack_calls: u64,
    platform_calls: u64,
    synced_writes: u64,
    round_trips: u64,
}

impl Counts {
    /// Combines two counts field by field.
    fn with(self, other: Self, combine: fn(u64, u64) -> u64) -> Self {
        Self {
            slack_calls: combine(self.slack_calls, other.slack_calls),
            platform_calls: combine(self.platform_calls, other.platform_calls),
            synced_writes: combine(self.synced_writes, other.synced_writes),
            round_trips: combine(self.round_trips, other.round_trips),
        }
    }

    fn calls_are_few(&self) {
        assert!((1..=SLACK_CALLS).contains(&self.slack_calls), "at most {SLACK_CALLS} calls to Slack: {self:?}");
        assert!(
            (1..=PLATFORM_CALLS).contains(&self.platform_calls),
            "at most {PLATFORM_CALLS} calls to the platform: {self:?}"
        );
    }
}

/// Counts what one approval takes, once the bot knows who is who.
async fn one_approval(redis: Option<String>) -> Counts {
    let world = World::start(redis).await;
    let port = free_port();
    let mut settings = world.settings();
    settings.extend(
        [
            ("PORT", port.to_string().as_str()),
            ("COUNTERSIGN__WORKERS__LEASE", "1h"),
            ("COUNTERSIGN__WORKERS__SWEEP_EVERY", "1h"),
            ("COUNTERSIGN__WATCHES__EVERY", "1h"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned())),
    );
    let name = |number: usize| format!("Trial {number}");
    for number in 0..=APPROVALS {
        world.upgrade.has(&name(number), "inactive");
    }
    let bot = Process::start(serve(&settings), &world.log());
    eventually("a bot that is connected", || bot.is_up() && world.slack.sockets() > 0).await;
    let seen = Seen { world: &world, page: Page::new(&settings), metrics: format!("http://127.0.0.1:{port}/metrics") };
    let store = world.kept.open_beside().await;

    let mut took = Vec::new();
    let mut calls = Vec::new();
    for number in 0..=APPROVALS {
        let name = name(number);
        let before = seen.quiet(&*store).await;
        approve(&world, &name, &*store).await;
        let after = seen.quiet(&*store).await;
        assert_eq!(world.upgrade.experiment(&name).unwrap()["state"], "running", "{}", bot.log());
        took.push(after.with(before, |after, before| after - before));
        calls = seen.calls_since(&before);
    }
    took.remove(0); // the first one asks who is who
    drop(store);
    assert!(bot.stop().await.success(), "{}", bot.log());
    println!("{took:#?}\nthe calls of the last one: {calls:#?}"); // shown if a count is too high
    let least = |of: fn(&Counts) -> u64| took.iter().map(of).min().expect("some were counted");
    Counts {
        slack_calls: least(|counts| counts.slack_calls),
        platform_calls: least(|counts| counts.platform_calls),
        synced_writes: least(|counts| counts.synced_writes),
        round_trips: least(|counts| counts.round_trips),
    }
}

/// Ana asks for a start, Bo approves it once the bot has stored where the card is, and both the card and an answer say so.
async fn approve(world: &World, name: &str, store: &dyn Store) {
    let root = asked(world, name);
    eventually("a card", || card_of(world, &root).is_some()).await;
    let deadline = Instant::now() + BOUND;
    while store.backlog().await.unwrap() != Backlog::default() {
        assert!(Instant::now() < deadline, "the card is not stored as sent");
    }
    presses(world, &root).await;
    eventually("the outcome and the answer", || is_over(world, &root)).await;
}

/// Ana asks for the start of an experiment, in a thread of its own.
pub(super) fn asked(world: &World, name: &str) -> MessageTs {
    world.slack.says("ana", "experiments", &format!("@countersign start {name}"), None).unwrap()
}

/// Bo approves it.
pub(super) async fn presses(world: &World, root: &MessageTs) {
    let card = card_of(world, root).expect("there is a card");
    world.slack.clicks("bo", "experiments", &card.ts, BUTTON).await.unwrap();
}

/// The card that waits for it.
pub(super) fn card_of(world: &World, root: &MessageTs) -> Option<Message> {
    said(world, root).into_iter().find(|message| message.button(BUTTON).is_some())
}

/// Whether the card and an answer say how it came out.
pub(super) fn is_over(world: &World, root: &MessageTs) -> bool {
    card_of(world, root).is_none() && said(world, root).len() == 2
}

/// What the bot has in a thread.
pub(super) fn said(world: &World, root: &MessageTs) -> Vec<Message> {
    let all = world.slack.thread("experiments", root);
    all.into_iter().filter(|message| message.by_app && !message.deleted).collect()
}

/// All from which the counts are read.
struct Seen<'a> {
    world: &'a World,
    page: Page,
    metrics: String,
}

impl Seen<'_> {
    /// Waits until nothing is left to do and nothing is being done, and returns what was done so far.
    async fn quiet(&self, store: &dyn Store) -> Counts {
        let deadline = Instant::now() + BOUND;
        let mut counted = self.now().await;
        loop {
            let backlog = store.backlog().await.unwrap();
            tokio::time::sleep(QUIET).await;
            let now = self.now().await;
            if backlog == Backlog::default() && now == counted {
                return now;
            }
            assert!(Instant::now() < deadline, "it does not become quiet: {backlog:?}, {counted:?}, {now:?}");
            counted = now;
        }
    }

    /// The calls to Slack and to the platform since then.
    fn calls_since(&self, then: &Counts) -> Vec<String> {
        let slack = self.world.slack.recorded().calls.into_iter().map(|call| call.method);
        let platform = self.world.upgrade.ledger().into_iter().map(|call| format!("{} {}", call.method, call.path));
        slack.skip(then.slack_calls as usize).chain(platform.skip(then.platform_calls as usize)).collect()
    }

    async fn now(&self) -> Counts {
        let (_, metrics) = self.page.get(&self.metrics).await.expect("the bot answers");
        let counter = |name: &str| {
            let lines = metrics.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            lines.map(|value| value.parse::<u64>().expect("a counter is a whole number")).sum()
        };
        Counts {
            slack_calls: self.world.slack.recorded().calls.len() as u64,
            platform_calls: self.world.upgrade.ledger().len() as u64,
            synced_writes: counter("countersign_store_synced_writes_total"),
            round_trips: counter("countersign_store_round_trips_total"),
        }
    }
}
