//! “Stop”: while something is looked up, while a card waits, where there is nothing to stop.

use countersign::experiments::settings::Upgrade;
use countersign_sandbox::bridge::Version;
use std::time::{Duration, Instant};

use insta::assert_snapshot;

use super::simulation::{bot_with, finish, loads};
use crate::support::{
    bot::{Person, TestBot},
    thread::Thread,
};

/// A thread in which the bot looks something up, and will for a while.
async fn looking<'a>(bot: &'a TestBot, person: Person<'a>) -> Thread<'a> {
    let thread = person.says("what waits?").await;
    bot.upgrade.is_slow(Duration::from_secs(8));
    bot.slack.says("ana", "experiments", "list experiments", Some(&thread.root)).unwrap();
    tokio::time::sleep(Duration::from_millis(400)).await;
    thread
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_ends_while_it_waits_for_an_answer() {
    let bot =
        TestBot::with_settings(|config| config.sections.get_mut::<Upgrade>().timeout = Duration::from_secs(20)).await;
    let mut thread = looking(&bot, bot.user("ana")).await;
    thread.skip();
    let began = Instant::now();
    thread.says("bo", "stop").await;
    assert!(began.elapsed() < Duration::from_secs(4), "within a step: {:?}", began.elapsed());
    assert_snapshot!(thread.heard(), @"Stopped, as @bo asked. Steps that hadn't started were not run.");
    bot.upgrade.is_well();
    thread.says("ana", "@countersign is UpGrade running?").await;
    assert!(thread.heard().contains("UpGrade is running"), "and it goes on with what is said next");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_card_is_closed_by_who_may() {
    let bot = TestBot::decided_by(&["U2"]).await;
    let mut thread = bot.user("ana").asks("start Math Hints").await;
    thread.says("cy", "@countersign stop").await;
    assert_eq!(thread.heard(), "", "it is not theirs to close");
    assert_snapshot!(thread.told("cy"), @"
    I'm not working on anything else in this thread. These cards stay open, because you can't close them:
    • *Start “Math Hints”* · asked by @ana
    Only the requester or someone who can decide can close them.
    ");
    assert_snapshot!(thread.answer("ana", "Stop!").await, @"
    *Start “Math Hints”*
    Withdrawn by @ana · ‹time›
    *Status*  inactive → *running*
    Asked by @ana · digest `‹id›`
    [Change and ask again…] [Show all]
    ---
    @ana *Start “Math Hints”* was withdrawn, so nothing was changed.
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_card_that_another_person_closes_names_them() {
    let (_bot, mut thread) = TestBot::asked("ana", "start Math Hints").await;
    thread.says("cy", "stop").await;
    let heard = thread.heard();
    assert!(heard.contains("Closed by @cy · ‹time›"), "{heard}");
    assert!(heard.ends_with("@ana *Start “Math Hints”* was closed by @cy, so nothing was changed."), "{heard}");
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nothing_is_done_there_is_nothing_to_stop() {
    let (bot, mut thread) = TestBot::asked("ana", "is UpGrade running?").await;
    thread.says("ana", "stop").await;
    assert_eq!(thread.heard(), "", "nobody said it to the bot");
    assert_snapshot!(thread.answer("ana", "@countersign stop everything").await, @"
    I'm not working on anything in this thread, so there's nothing to stop here.
    To stop something that runs elsewhere, name it.
    ");
    let root = bot.slack.says("bo", "experiments", "lunch?", None).unwrap();
    let others = Thread::new(&bot, "experiments", root);
    others.says("cy", "stop").await;
    assert!(others.messages().is_empty(), "two people talking");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_stopped_in_many_words() {
    for said in ["wait, stop", "stop the plan", "cancel everything", "hold on, stop it", "stop it"] {
        let bot = TestBot::start().await;
        let mut thread = bot.user("ana").asks("/planning start Math Hints, then show it, then list the contexts").await;
        thread.says("ana", said).await;
        let heard = thread.heard();
        assert!(heard.contains("Withdrawn by @ana"), "{said}, at the card of the plan: {heard}");
        let mut thread = bot.user("ana").asks("start Math Hints, then show Math Hints in short").await;
        thread.says("ana", said).await;
        let heard = thread.heard();
        assert!(heard.contains("Withdrawn by @ana"), "{said}, in a step: {heard}");
        assert!(heard.contains("Not done: show Math Hints in short."), "{said}, in a step: {heard}");
        assert!(bot.upgrade.effects().is_empty(), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn words_that_point_are_about_the_subject_where_nothing_is_done() {
    let (bot, mut thread) = TestBot::asked("ana", "show Lesson Video Hints in short").await;
    thread.says("ana", "stop it").await;
    assert!(thread.heard().contains("*Stop “Lesson Video Hints”?*"), "{}", thread.last());
    thread.says("ana", "stop that experiment").await;
    assert!(!thread.heard().contains("Withdrawn"), "{}", thread.last());
    thread.says("ana", "wait, cancel it").await;
    assert!(thread.heard().contains("Withdrawn by @ana"), "{}", thread.last());
    assert!(bot.upgrade.effects().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_dropped_by_stop() {
    for said in ["stop", "wait, stop", "cancel everything", "quit"] {
        let (_bot, mut thread) = TestBot::asked("ana", "create an experiment called Pilot in assign-prog").await;
        thread.says("ana", said).await;
        assert!(thread.heard().contains("OK, dropped."), "{said}: {}", thread.last());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_stopped_in_many_words() {
    for said in ["hold on, stop it", "cancel it", "kill the job", "quit", "please stop everything now"] {
        let (bot, bridge) = bot_with(Version::V01).await;
        bridge.hold_jobs();
        let mut thread = loads(&bot, "demo").await;
        thread.says("ana", "run it").await;
        thread.clicked("bo", "Run simulation").await;
        thread.says("ana", said).await;
        let heard = thread.heard();
        assert!(heard.contains("I asked the bridge to cancel the run of *demo*"), "{said}: {heard}");
        drop(thread);
        bridge.finish_jobs();
        finish(bot, bridge).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_ends_the_job_and_leaves_other_cards_open() {
    let (bot, bridge) = bot_with(Version::V01).await;
    bridge.hold_jobs();
    let mut thread = loads(&bot, "demo").await;
    thread.says("ana", "run it").await;
    thread.clicked("bo", "Run simulation").await;
    thread.says("ana", "pause Class Hint Rollout").await;
    assert!(thread.heard().contains("*Stop “Class Hint Rollout”?*"), "{}", thread.last());
    thread.says("ana", "stop").await;
    let heard = thread.heard();
    assert!(heard.contains("I asked the bridge to cancel the run of *demo*"), "{heard}");
    assert!(!heard.contains("Withdrawn"), "{heard}");
    assert_snapshot!(thread.told("ana"), @"
    Stopped what was running. These other cards stay open:
    • *Stop “Class Hint Rollout”* · asked by @ana
    To withdraw them too, say “stop” again.
    ");
    thread.says("ana", "stop").await;
    let heard = thread.heard();
    assert!(heard.contains("@ana *Stop “Class Hint Rollout”* was withdrawn"), "{heard}");
    assert!(bot.upgrade.effects().is_empty());
    drop(thread);
    bridge.finish_jobs();
    finish(bot, bridge).await;
}
