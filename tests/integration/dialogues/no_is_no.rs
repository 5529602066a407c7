//! After a message that a person takes for “no”, a bare “yes” approves nothing that was open then: dialogues drawn at random,
//! with cards of several capabilities, corrections that fail, and talk. The seed is `PROPTEST_RNG_SEED`, as in every test that
//! draws.

use std::collections::BTreeSet;

use countersign::{
    graph::{
        action::{ActionRecord, Status},
        store::ActionFilter,
    },
    ids::{ActionId, ThreadId},
};
use countersign_sandbox::bridge::Version;
use proptest::{
    collection::vec,
    prelude::*,
    sample::select,
    strategy::ValueTree as _,
    test_runner::{Config, TestRunner},
};

use super::simulation::{bot_with, finish};
use crate::support::{bot::TestBot, thread::Thread};

/// The number of dialogues.
const DIALOGUES: usize = 24;

const REQUESTS: &[&str] = &[
    "start Math Hints",
    "stop Lesson Video Hints",
    "set the weights of Math Hints to 70/30",
    "create an experiment called Foo in assign-prog at SelectSection / area_model",
    "delete Running Test",
    "load /data/models/demo.pkml as s1",
    "allow starting and stopping Math Hints until tomorrow, at most 3 times",
    "remember that I like hints",
    "show me the plan first: start Math Hints, then stop Lesson Video Hints",
    "create an experiment called Bar",
];
/// Corrections and requests that lead to no card, or seldom.
const FAILING: &[&str] = &[
    "make it 50",
    "and stop it after two weeks",
    "no, Mth Hnts instead",
    "call it Baz and then some",
    "use weights 70/40",
    "no, twice",
    "start Mth Hnts",
    "stop it on the moon",
    "what is waiting?",
    "hm",
    "thanks",
    "list experiments in short",
];
const NOS: &[&str] = &[
    "no",
    "nope",
    "nah",
    "actually no",
    "don't",
    "please don't",
    "don't do it",
    "never mind",
    "forget it",
    "drop it",
    "cancel",
    "cancel that",
    "stop",
    "stop it",
    "wait, stop",
    "undo that",
    "not now",
    "not yet",
    "hold on",
    "I changed my mind",
    "withdraw it",
    "let's not",
    "scrap that",
];
const YESES: &[&str] = &["yes", "yes please", "yep", "go ahead", "ok, do it", "approve", "confirm", "Yes!"];

/// Who says something, and what.
type Line = (&'static str, String);

fn line(said: &'static [&'static str]) -> impl Strategy<Value = Line> {
    let who = select(vec![("ana", ""), ("ana", "@countersign "), ("bo", "@countersign ")]);
    (who, select(said)).prop_map(|((who, mention), said)| (who, format!("{mention}{said}")))
}

/// A dialogue: requests and what goes wrong about them, a no, anything but a request, and a yes.
fn dialogue() -> impl Strategy<Value = (Vec<Line>, Vec<Line>)> {
    let after = prop_oneof![3 => line(FAILING), 2 => line(NOS), 2 => line(YESES)];
    let before = (line(REQUESTS), vec(prop_oneof![1 => line(REQUESTS), 3 => line(FAILING)], 0..3));
    let after = (line(NOS), vec(after, 0..3), vec(line(YESES), 1..3));
    (before, after).prop_map(|((first, more), (no, between, yes))| {
        let before = std::iter::once(first).chain(more).collect();
        (before, std::iter::once(no).chain(between).chain(yes).collect())
    })
}

async fn actions(bot: &TestBot, thread: &Thread<'_>) -> Vec<ActionRecord> {
    let (team, channel) =
        bot.slack.look(|world| (world.team.clone(), world.channel("experiments").unwrap().id.clone()));
    let thread = ThreadId { team, channel, root: thread.root.clone() };
    bot.store().actions(&ActionFilter::of(&thread, &[], 50)).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_no_no_yes_approves_what_was_open() {
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::default() });
    let dialogues = dialogue();
    let (bot, bridge) = bot_with(Version::V01).await;
    let (mut refused, mut open_at_a_no) = (0, 0);
    for _ in 0..DIALOGUES {
        let (before, after) = dialogues.new_tree(&mut runner).unwrap().current();
        let [(who, first), more @ ..] = before.as_slice() else { unreachable!() };
        let mut thread = bot.user(who).says(first.trim_start_matches("@countersign ")).await;
        for name in ["ana", "bo"] {
            thread.told(name);
        }
        for (who, said) in more {
            thread.says(who, said).await;
        }
        let is_open = |record: &ActionRecord| record.status == Status::Pending;
        let open = actions(&bot, &thread).await.into_iter().filter(is_open);
        let open: BTreeSet<ActionId> = open.map(|record| record.id).collect();
        open_at_a_no += open.len();
        for (who, said) in &after {
            thread.says(who, said).await;
            refused += usize::from(thread.told(who).contains("may have meant no"));
            let of_then = actions(&bot, &thread).await.into_iter().filter(|record| open.contains(&record.id));
            for record in of_then {
                let is_approved = matches!(
                    record.status,
                    Status::Approved | Status::Intent | Status::Done | Status::Failed | Status::Unknown
                );
                assert!(!is_approved, "“{said}” approved {}:\n{before:#?}\n{after:#?}", record.card.title);
            }
        }
        thread.skip();
        // What is left open would be in the way of the next dialogue.
        thread.says("ana", "@countersign stop").await;
    }
    assert!(open_at_a_no > DIALOGUES / 2, "there are cards to say no to: {open_at_a_no}");
    assert!(refused > 0, "some stay open, and a yes to them is refused");
    finish(bot, bridge).await;
}
