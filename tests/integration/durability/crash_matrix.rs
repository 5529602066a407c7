//! Whole dialogues, interrupted everywhere: the process dies at each write to the store, where a step is held back in place
//! of one, and at each call to the outside, before it, after it, and with the call still on its way. Another one takes
//! over, and nobody may notice.
//!
//! The points are not listed here: a run without a crash tells them, so new code is covered by itself. What such a run
//! comes to is what every interrupted one must come to: the same words, the same changes, the same record.
//!
//! The first dialogue is interrupted at every point, and at pairs of points. Of the others, and of the pairs, a sample is
//! drawn with the seed in `CRASHES_SEED`: `tests/run.sh` sets it, so it plays the same points every time; without it, a new
//! seed is drawn and printed. `CRASHES=all` plays everything, and `CRASHES=<name>` every point of one dialogue, or of several with `;` between:
//!
//! ```text
//! CRASHES=all cargo test --test integration -- crash_matrix --nocapture
//! ```

use std::{
    collections::{BTreeMap, HashMap},
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

use countersign::config::environment;
use futures_util::StreamExt as _;
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng, seq::IndexedRandom as _};

use super::{
    beside::Beside,
    crashing_bot,
    crashing_store::{Point as WritePoint, Side as WriteSide},
    dialogues::{DIALOGUES, Dialogue},
    dialogues_beside::BESIDE,
    dialogues_mail::MAIL,
    gate::{Calls, Gate, Point as CallPoint, Side as CallSide},
    process::{Process, serve},
    script::{Ended, Outcome, World},
};
use crate::support::redis::RedisServer;

/// How many dialogues are held at a time. They mostly wait.
pub(super) const AT_A_TIME: usize = 6;

/// How many points of each further dialogue are drawn, and how many pairs of the first.
const DRAWN_IN_SQLITE: usize = 4;
const DRAWN_IN_REDIS: usize = 2;

/// How many more are drawn, for those that are not reached: how many writes and calls there are is up to chance where
/// things happen at the same time.
const SPARES: usize = 6;

/// Which dialogues are played at every point besides the first: all of them, or those of these names.
pub(super) const WHICH: &str = "CRASHES";
/// What samples are drawn with.
pub(super) const SEED: &str = "CRASHES_SEED";

/// How the calls end that change something, besides those that post in Slack.
const CHANGING: &[&str] = &[
    "/experiments/state",
    " load_simulation",
    " set_parameter_value",
    " run_simulation",
    " cancel_job",
    " sign-board",
    " answer",
    "POST /gmail/v1/users/me/drafts",
    "POST /gmail/v1/users/me/drafts/send",
    "POST /gmail/v1/users/me/labels",
    "/modify",
];

/// Where a process dies.
#[derive(Clone, Debug)]
pub(super) enum Point {
    Write(WritePoint),
    /// With the name of the call, for whoever reads a failure.
    #[allow(dead_code, reason = "shown")]
    Call(CallPoint, String),
    /// Where the one after it dies as well.
    Writes(WritePoint, WritePoint),
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

    fn drawn(&self) -> usize {
        match self {
            Self::Sqlite => DRAWN_IN_SQLITE,
            Self::Redis(_) => DRAWN_IN_REDIS,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_anywhere_is_not_noticed_with_sqlite() {
    matrix(Stores::Sqlite, &DIALOGUES[0]).await.unwrap_or_else(|what| panic!("{what}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_anywhere_is_not_noticed_with_redis() {
    matrix(redis().await, &DIALOGUES[0]).await.unwrap_or_else(|what| panic!("{what}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_in_any_other_dialogue_is_not_noticed_with_sqlite() {
    each(&DIALOGUES[1..], async || Stores::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_in_any_other_dialogue_is_not_noticed_with_redis() {
    each(&DIALOGUES[1..], redis).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_while_something_goes_on_elsewhere_is_not_noticed_with_sqlite() {
    each(BESIDE, async || Stores::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_while_something_goes_on_elsewhere_is_not_noticed_with_redis() {
    each(BESIDE, redis).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_while_a_mail_is_answered_is_not_noticed_with_sqlite() {
    each(MAIL, async || Stores::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_while_a_mail_is_answered_is_not_noticed_with_redis() {
    each(MAIL, redis).await;
}

/// Several dialogues; what was noticed is told of all of them.
#[expect(clippy::print_stdout, reason = "playing everything takes long")]
async fn each(dialogues: &[Dialogue], stores: impl AsyncFn() -> Stores) {
    let mut noticed = Vec::new();
    for dialogue in dialogues {
        let result = matrix(stores().await, dialogue).await;
        if let Err(what) = &result {
            println!("{what}");
        }
        noticed.extend(result.err());
    }
    assert!(noticed.is_empty(), "{}", noticed.join("\n\n"));
}

async fn redis() -> Stores {
    Stores::Redis(RedisServer::start_with(&["--databases", "5000"]).await)
}

/// What of a dialogue is played: every point, or as many as are drawn. And what is played in place of a drawn point that
/// was not reached.
fn chosen(points: Vec<Point>, pairs: Vec<Point>, dialogue: &Dialogue, drawn: usize) -> (Vec<Point>, Vec<Point>) {
    let environment = environment();
    let which = environment.get(WHICH).map_or("", String::as_str);
    if which == "all" {
        return ([points, pairs].concat(), Vec::new());
    }
    let seed = environment.get(SEED).and_then(|seed| seed.parse().ok()).unwrap_or_else(|| rand::rng().random());
    println!("{}: {SEED}={seed}", dialogue.name);
    let mut chance: StdRng = StdRng::seed_from_u64(seed);
    let mut draw = |from: Vec<Point>, n: usize| from.sample(&mut chance, n).cloned().collect::<Vec<_>>();
    let is_first = dialogue.name == DIALOGUES[0].name;
    match is_first || which.split(';').any(|name| name == dialogue.name) {
        true => ([points, draw(pairs, drawn)].concat(), Vec::new()),
        false => {
            let mut drawn_points = draw(points, drawn + SPARES);
            let spares = drawn_points.split_off(drawn.min(drawn_points.len()));
            (drawn_points, spares)
        }
    }
}

#[expect(clippy::print_stdout, reason = "how many points there are is a result, too")]
async fn matrix(stores: Stores, dialogue: &Dialogue) -> Result<(), String> {
    let first = dialogue.name == DIALOGUES[0].name;
    let began = Instant::now();
    let (writes, undisturbed) = names_of_writes(stores.of(0), dialogue).await?;
    let calls = names_of_calls(stores.of(1), dialogue, &undisturbed).await?;
    let pairs = if first { pairs(&writes) } else { Vec::new() };
    let by_name = matches!(dialogue.beside, Beside::Mail(_));
    let (mut waiting, spares) = chosen(points(&writes, &calls, by_name), pairs, dialogue, stores.drawn());
    let (wanted, mut spares) = (waiting.len(), spares.into_iter());
    println!("writes: {writes:?}\ncalls: {calls:?}");

    let (mut failed, mut missed) = (Vec::new(), Vec::new());
    let mut outcomes: BTreeMap<Outcome, usize> = [(undisturbed.clone(), 0)].into();
    let (mut slowest, mut total) = (Duration::ZERO, 0);
    while !waiting.is_empty() {
        let stores = &stores;
        let results: Vec<_> = futures_util::stream::iter((total..).zip(std::mem::take(&mut waiting)))
            .map(|(n, point)| async move {
                let began = Instant::now();
                let result = interrupted(stores.of(n + 2), dialogue, &point).await;
                (point, result, began.elapsed())
            })
            .buffer_unordered(AT_A_TIME)
            .collect()
            .await;
        total += results.len();
        for (point, result, took) in results {
            slowest = slowest.max(took);
            match result {
                Err(what) => failed.push(format!("{point:?}: {what}")),
                Ok(ended) => {
                    if ended.crashes < point.deaths() {
                        missed.push(format!("{point:?}"));
                        waiting.extend(spares.next());
                    }
                    if !(dialogue.agrees)(&undisturbed, &ended.outcome) {
                        failed.push(format!("{point:?}: it came out otherwise: {:#?}", ended.outcome));
                    }
                    *outcomes.entry(ended.outcome).or_default() += 1;
                }
            }
        }
    }
    println!(
        "{}: {total} crash points in {:?}, the slowest took {slowest:?}; not reached: {missed:?}",
        dialogue.name,
        began.elapsed()
    );
    println!("how it came out: {outcomes:#?}");
    if !failed.is_empty() {
        let (name, noticed) = (dialogue.name, failed.len());
        let all = failed.join("\n\n");
        return Err(format!("{name}: {noticed} of {total} crashes were noticed (without: {undisturbed:#?}):\n{all}"));
    }
    let enough = if first { wanted - wanted / 10 } else { wanted - wanted / 3 };
    match total - missed.len() >= enough {
        true => Ok(()),
        false => Err(format!("{}: too many points were not reached: {missed:?}", dialogue.name)),
    }
}

impl Point {
    /// How many processes die.
    pub(super) fn deaths(&self) -> usize {
        match self {
            Self::Write(_) | Self::Call(..) => 1,
            // The second may have less to do than the first would have had.
            Self::Writes(..) => 1,
        }
    }
}

/// The writes of a dialogue without a crash, and how it comes out.
pub(super) async fn names_of_writes(
    redis: Option<String>,
    dialogue: &Dialogue,
) -> Result<(Vec<String>, Outcome), String> {
    let world = World::start_with(redis, dialogue.beside).await;
    let names = world.folder().join("writes");
    let bot = Process::start(crashing_bot::command(&world.settings(), None, &names), &world.log());
    let ended = world.hold(dialogue, bot, Vec::new()).await;
    let ended = ended.map_err(|what| format!("{}: without a crash, {what}", dialogue.name))?;
    assert_eq!(ended.crashes, 0);
    Ok((std::fs::read_to_string(names).unwrap().lines().map(str::to_owned).collect(), ended.outcome))
}

/// The outside calls of a dialogue without a crash.
pub(super) async fn names_of_calls(
    redis: Option<String>,
    dialogue: &Dialogue,
    undisturbed: &Outcome,
) -> Result<Vec<String>, String> {
    let world = World::start_with(redis, dialogue.beside).await;
    let calls = Calls::with(None);
    let ended = hold_through_gates(&world, dialogue, &calls, world.origins()).await;
    let ended = ended.map_err(|what| format!("{}: without a crash, {what}", dialogue.name))?;
    if (ended.crashes, &ended.outcome) != (0, undisturbed) {
        return Err(format!("{}: it comes out once so, {undisturbed:#?}, and once so: {ended:#?}", dialogue.name));
    }
    Ok(calls.seen())
}

/// Every write and every call. `by_name`: each is counted among those of its name, since some come at times of their own,
/// as the rounds of mail do.
pub(super) fn points(writes: &[String], calls: &[String], by_name: bool) -> Vec<Point> {
    let counted = |all: &[String], n: usize| match by_name {
        true => all[..=n].iter().filter(|name| **name == all[n]).count(),
        false => n + 1,
    };
    let mut points = Vec::new();
    for (n, name) in writes.iter().enumerate() {
        for side in [WriteSide::Before, WriteSide::After] {
            points.push(Point::Write(WritePoint { at: counted(writes, n), name: name.clone(), side, by_name }));
        }
    }
    for (n, call) in calls.iter().enumerate() {
        let among = by_name.then(|| call.clone());
        let changes = CHANGING.iter().any(|end| call.ends_with(end)) || call.contains("/api/chat.");
        let sides: &[_] = if changes {
            &[CallSide::Before, CallSide::After, CallSide::Late]
        } else {
            &[CallSide::Before, CallSide::After]
        };
        for side in sides {
            let point = CallPoint { at: counted(calls, n), side: *side, among: among.clone() };
            points.push(Point::Call(point, call.clone()));
        }
    }
    points
}

/// Every write, and then each of the first that the one after it makes: there are no more than in a whole dialogue.
fn pairs(writes: &[String]) -> Vec<Point> {
    let side = |n: usize| if n.is_multiple_of(2) { WriteSide::Before } else { WriteSide::After };
    let point = |n: usize, side| WritePoint { at: n + 1, name: writes[n].clone(), side, by_name: false };
    let all = (0..writes.len()).flat_map(|one| (0..writes.len() - one).map(move |other| (one, other)));
    all.map(|(one, other)| Point::Writes(point(one, side(one + other)), point(other, side(other)))).collect()
}

async fn interrupted(redis: Option<String>, dialogue: &Dialogue, point: &Point) -> Result<Ended, String> {
    let world = World::start_with(redis, dialogue.beside).await;
    let dies_at = |point: &WritePoint, n: usize| -> Command {
        crashing_bot::command(&world.settings(), Some(point), &world.folder().join(format!("writes{n}")))
    };
    match point {
        Point::Write(point) => world.hold(dialogue, Process::start(dies_at(point, 0), &world.log()), Vec::new()).await,
        Point::Writes(one, other) => {
            let first = Process::start(dies_at(one, 0), &world.log());
            world.hold(dialogue, first, vec![dies_at(other, 1)]).await
        }
        Point::Call(point, _) => {
            hold_through_gates(&world, dialogue, &Calls::with(Some(point.clone())), world.origins()).await
        }
    }
}

/// The first bot goes through gates to these servers; the one after it does not.
pub(super) async fn hold_through_gates(
    world: &World,
    dialogue: &Dialogue,
    calls: &Arc<Calls>,
    origins: Vec<String>,
) -> Result<Ended, String> {
    hold_of(world, dialogue, calls, origins, serve).await
}

/// The same with a bot that is started in some way.
pub(super) async fn hold_of(
    world: &World,
    dialogue: &Dialogue,
    calls: &Arc<Calls>,
    origins: Vec<String>,
    bot: impl FnOnce(&HashMap<String, String>) -> Command,
) -> Result<Ended, String> {
    let mut settings = world.settings();
    let mut gates = Vec::new();
    for origin in origins {
        let gate = Gate::before(&origin, calls.clone()).await;
        settings.values_mut().for_each(|value| *value = value.replace(&origin, gate.url()));
        gates.push(gate);
    }
    world.hold(dialogue, Process::start_for(&calls.kill, bot(&settings), &world.log()), Vec::new()).await
}
