//! A whole dialogue, interrupted everywhere: the process dies at each write to the store and at each call to the
//! outside, before it, after it, and with the call still on its way. Another one takes over, and nobody may notice.
//!
//! The points are not listed here: a run without a crash tells them, so new code is covered by itself.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::StreamExt as _;

use super::{
    crashing_bot,
    crashing_store::{Point as WritePoint, Side as WriteSide},
    gate::{Calls, Gate, Point as CallPoint, Side as CallSide},
    process::{Process, serve},
    script::{Ended, World},
};
use crate::support::redis::RedisServer;

/// How many dialogues are held at a time. They mostly wait.
const AT_A_TIME: usize = 6;

/// Where a process dies.
#[derive(Clone, Debug)]
enum Point {
    Write(WritePoint),
    /// With the name of the call, for whoever reads a failure.
    #[allow(dead_code, reason = "shown")]
    Call(CallPoint, String),
}

/// Where the threads of each dialogue are kept.
enum Stores {
    Sqlite,
    /// Each dialogue in a database of its own.
    Redis(RedisServer),
}

impl Stores {
    fn of(&self, n: usize) -> Option<String> {
        match self {
            Self::Sqlite => None,
            Self::Redis(server) => Some(format!("{}/{n}", server.url())),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_anywhere_is_not_noticed_with_sqlite() {
    matrix(Stores::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_anywhere_is_not_noticed_with_redis() {
    matrix(Stores::Redis(RedisServer::start_with(&["--databases", "1000"]).await)).await;
}

#[expect(clippy::print_stdout, reason = "how many points there are is a result, too")]
async fn matrix(stores: Stores) {
    let began = Instant::now();
    let writes = names_of_writes(stores.of(0)).await;
    let calls = names_of_calls(stores.of(1)).await;
    let points = points(&writes, &calls);
    let total = points.len();
    println!("writes: {writes:?}\ncalls: {calls:?}");

    let stores = &stores;
    let results: Vec<_> = futures_util::stream::iter(points.into_iter().enumerate())
        .map(|(n, point)| async move {
            let began = Instant::now();
            let result = interrupted(stores.of(n + 2), &point).await;
            (point, result, began.elapsed())
        })
        .buffer_unordered(AT_A_TIME)
        .collect()
        .await;

    let (mut failed, mut missed) = (Vec::new(), Vec::new());
    let mut words: BTreeMap<Vec<String>, usize> = BTreeMap::new();
    let mut slowest = Duration::ZERO;
    for (point, result, took) in results {
        slowest = slowest.max(took);
        match result {
            Err(what) => failed.push(format!("{point:?}: {what}")),
            Ok(ended) => {
                if !ended.crashed {
                    missed.push(format!("{point:?}"));
                }
                *words.entry(ended.words).or_default() += 1;
            }
        }
    }
    println!("{total} crash points in {:?}, the slowest took {slowest:?}; not reached: {missed:?}", began.elapsed());
    println!("what people read: {words:#?}");
    assert!(failed.is_empty(), "{} of {total} crashes were noticed:\n{}", failed.len(), failed.join("\n\n"));
    assert!(words.len() <= 1, "people read different things, depending on where it crashed");
    assert!(missed.len() * 10 <= total, "too many points were not reached: {missed:?}");
}

/// The writes of a dialogue without a crash.
async fn names_of_writes(redis: Option<String>) -> Vec<String> {
    let world = World::start(redis).await;
    let names = world.folder().join("writes");
    let bot = Process::start(crashing_bot::command(&world.settings(), None, &names), &world.log());
    let ended = world.hold(bot).await.unwrap();
    assert!(!ended.crashed);
    std::fs::read_to_string(names).unwrap().lines().map(str::to_owned).collect()
}

/// The outside calls of a dialogue without a crash.
async fn names_of_calls(redis: Option<String>) -> Vec<String> {
    let world = World::start(redis).await;
    let calls = Calls::with(None);
    let ended = hold_through_gates(&world, &calls).await.unwrap();
    assert!(!ended.crashed);
    calls.seen()
}

fn points(writes: &[String], calls: &[String]) -> Vec<Point> {
    let mut points = Vec::new();
    for (n, name) in writes.iter().enumerate() {
        for side in [WriteSide::Before, WriteSide::After] {
            points.push(Point::Write(WritePoint { at: n + 1, name: name.clone(), side }));
        }
    }
    for (n, call) in calls.iter().enumerate() {
        let changes = call.contains("/api/chat.") || call.ends_with("/experiments/state");
        let sides: &[_] = if changes {
            &[CallSide::Before, CallSide::After, CallSide::Late]
        } else {
            &[CallSide::Before, CallSide::After]
        };
        for side in sides {
            points.push(Point::Call(CallPoint { at: n + 1, side: *side }, call.clone()));
        }
    }
    points
}

async fn interrupted(redis: Option<String>, point: &Point) -> Result<Ended, String> {
    let world = World::start(redis).await;
    match point {
        Point::Write(point) => {
            let names = world.folder().join("writes");
            let command = crashing_bot::command(&world.settings(), Some(point), &names);
            world.hold(Process::start(command, &world.log())).await
        }
        Point::Call(point, _) => hold_through_gates(&world, &Calls::with(Some(point.clone()))).await,
    }
}

/// The first bot goes through gates; the one after it does not.
async fn hold_through_gates(world: &World, calls: &Arc<Calls>) -> Result<Ended, String> {
    let slack = Gate::before(world.slack.url(), calls.clone()).await;
    let target = world.upgrade.url();
    let (origin, prefix) = target.split_at(target.rfind("/api").unwrap());
    let upgrade = Gate::before(origin, calls.clone()).await;
    let mut settings = world.settings();
    settings.insert("SLACK_API_URL".to_owned(), format!("{}/api", slack.url()));
    settings.insert("UPGRADE_API_URL".to_owned(), format!("{}{prefix}", upgrade.url()));
    world.hold(Process::start_for(&calls.kill, serve(&settings), &world.log())).await
}
