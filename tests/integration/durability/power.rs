//! Whole dialogues, interrupted by power failures: the bot dies at a write, where a step is held back, or at a call to the
//! outside, and the one after it finds the files as the disk had them, on a machine that was started again. What was not
//! synced is lost, and nobody may notice.
//!
//! Redis syncs each write before it answers, so there a power failure is no different from a killed process.
//!
//! The points are drawn as in [`super::crash_matrix`]. One kind is left out, because it is noticed: a message that was
//! still on its way to Slack when the power failed, and arrives after the next bot has looked for it, is posted twice.

use std::{collections::HashMap, process::Command};

use countersign::config::environment;
use futures_util::StreamExt as _;
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng, seq::IndexedRandom as _};

use super::{
    crash_matrix::{AT_A_TIME, Point, SEED, WHICH, hold_of, names_of_calls, names_of_writes, points},
    crashing_bot,
    crashing_store::Point as WritePoint,
    dialogues::{DIALOGUES, Dialogue},
    gate::{Calls, Side},
    process::Process,
    script::{Ended, World},
};

/// How many points of each dialogue are drawn.
const DRAWN: usize = 16;

#[tokio::test(flavor = "multi_thread")]
async fn a_power_failure_is_not_noticed() {
    is_not_noticed("start").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_power_failure_between_two_changes_is_not_noticed() {
    is_not_noticed("undo").await;
}

#[expect(clippy::print_stdout, reason = "which points were played is a result, too")]
async fn is_not_noticed(name: &str) {
    let dialogue = DIALOGUES.iter().find(|dialogue| dialogue.name == name).unwrap();
    let (writes, undisturbed) = names_of_writes(None, dialogue).await.unwrap();
    let calls = names_of_calls(None, dialogue, &undisturbed).await.unwrap();
    let mut points = points(&writes, &calls, false);
    points.retain(|point| !is_still_posted(point));
    let points = drawn(points);
    let total = points.len();
    let results: Vec<_> = futures_util::stream::iter(points)
        .map(|point| async move {
            let ended = interrupted(dialogue, &point).await;
            (point, ended)
        })
        .buffer_unordered(AT_A_TIME)
        .collect()
        .await;
    let (mut noticed, mut missed) = (Vec::new(), Vec::new());
    for (point, ended) in results {
        match ended {
            Err(what) => noticed.push(format!("{point:?}: {what}")),
            Ok(ended) if !(dialogue.agrees)(&undisturbed, &ended.outcome) => {
                noticed.push(format!("{point:?}: it came out otherwise: {:#?}", ended.outcome));
            }
            Ok(ended) if ended.crashes < point.deaths() => missed.push(point),
            Ok(_) => {}
        }
    }
    println!("{name}: {total} power failures; not reached: {missed:?}");
    let all = noticed.join("\n\n");
    assert!(noticed.is_empty(), "{} of {total} were noticed (without: {undisturbed:#?}):\n{all}", noticed.len());
    assert!(missed.len() <= total / 4, "too many points were not reached: {missed:?}");
}

/// Whether a message to Slack is still on its way there.
fn is_still_posted(point: &Point) -> bool {
    matches!(point, Point::Call(call, name) if call.side == Side::Late && name.contains("/api/chat."))
}

#[expect(clippy::print_stdout, reason = "whoever wants the same points again needs the seed")]
fn drawn(points: Vec<Point>) -> Vec<Point> {
    let environment = environment();
    if environment.get(WHICH).is_some_and(|which| which == "all") {
        return points;
    }
    let seed = environment.get(SEED).and_then(|seed| seed.parse().ok()).unwrap_or_else(|| rand::rng().random());
    println!("{SEED}={seed}");
    points.sample(&mut StdRng::seed_from_u64(seed), DRAWN).cloned().collect()
}

async fn interrupted(dialogue: &Dialogue, point: &Point) -> Result<Ended, String> {
    let world = World::start_with(None, dialogue.beside).await;
    let dies = |settings: &HashMap<String, String>, at: Option<&WritePoint>| -> Command {
        let command = crashing_bot::command(settings, at, &world.folder().join("writes"));
        crashing_bot::with_synced(command, &world.synced())
    };
    match point {
        Point::Write(at) => {
            let bot = Process::start(dies(&world.settings(), Some(at)), &world.log());
            world.hold(dialogue, bot, Vec::new()).await
        }
        Point::Call(at, _) => {
            let calls = Calls::with(Some(at.clone()));
            hold_of(&world, dialogue, &calls, world.origins(), |settings| dies(settings, None)).await
        }
        Point::Writes(..) => panic!("no pairs are drawn"),
    }
}
