//! A simulation bridge that restarts at any call, before it or with its answer lost: it has forgotten what was loaded, and
//! the runs under way have failed. The bot lives on. Nothing is run or set twice, and the end is told once.

use futures_util::StreamExt as _;

use super::{
    crash_matrix::hold_through_gates,
    dialogues::Dialogue,
    dialogues_beside::{RESTARTED, restarts},
    gate::{Calls, Point, Side},
    script::{Outcome, World},
};

/// How many dialogues are held at a time.
const AT_A_TIME: usize = 6;

#[tokio::test(flavor = "multi_thread")]
async fn a_bridge_may_restart_at_any_call() {
    let mut wrong = Vec::new();
    for dialogue in RESTARTED {
        let (undisturbed, calls) = held(dialogue, None).await.unwrap();
        let points =
            (1..=calls.len()).flat_map(|at| [Side::Before, Side::After].map(|side| Point { at, side, among: None }));
        let results: Vec<_> = futures_util::stream::iter(points)
            .map(|point| async move { (point.clone(), held(dialogue, Some(point)).await) })
            .buffer_unordered(AT_A_TIME)
            .collect()
            .await;
        for (point, result) in results {
            let what = format!("{}: {} {:?}", dialogue.name, calls[point.at - 1], point.side);
            match result {
                Err(why) => wrong.push(format!("{what}: {why}")),
                Ok((outcome, _)) if !is_true(&undisturbed, &outcome) => wrong.push(format!("{what}: {outcome:#?}")),
                Ok(_) => {}
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// Holds a dialogue with a bridge that restarts at a point. Returns its end, and the calls to the bridge.
async fn held(dialogue: &Dialogue, point: Option<Point>) -> Result<(Outcome, Vec<String>), String> {
    let world = World::start_with(None, dialogue.beside).await;
    let bridge = world.bridge().clone();
    let calls = match point {
        Some(point) => Calls::where_happens(point, move || restarts(&bridge)),
        None => Calls::with(None),
    };
    let ended = hold_through_gates(&world, dialogue, &calls, vec![world.bridge().url()]).await?;
    match ended.crashes {
        0 => Ok((ended.outcome, calls.seen())),
        _ => Err("the bot died".to_owned()),
    }
}

/// True if nothing was done more often than without a restart, and the outcome of each change was recorded once.
fn is_true(undisturbed: &Outcome, disturbed: &Outcome) -> bool {
    let times = |outcome: &Outcome, effect: &String| outcome.effects.iter().filter(|other| *other == effect).count();
    let is_count = |effect: &&String| effect.ends_with(" runs") || effect.ends_with(" cancellations");
    let known = disturbed.effects.iter().filter(|effect| !is_count(effect));
    known.into_iter().all(|effect| times(disturbed, effect) <= times(undisturbed, effect))
        && disturbed.recorded["Outcome"] == disturbed.recorded["Decided"]
}
