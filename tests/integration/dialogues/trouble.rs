//! The platform is away, slow, or answers badly.

use std::time::Duration;

use countersign_sandbox::faults::{Down, Fault, When};
use insta::assert_snapshot;

use crate::support::{
    bot::{TestBot, eventually},
    thread::Thread,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_platform_that_is_down_is_said_and_the_thread_goes_on_when_it_is_back() {
    let bot = TestBot::start().await;
    bot.upgrade.is_down(Some(Down::Closed));
    let mut thread = bot.user("ana").says("start Math Hints").await;
    assert_snapshot!(thread.in_short(), @"‹UpGrade is away: the connection was closed›");
    assert_snapshot!(thread.answer("ana", "is UpGrade running?").await, @"‹UpGrade is away: the connection was closed›");
    bot.upgrade.is_down(Some(Down::Unavailable));
    assert_snapshot!(thread.answer("ana", "list experiments").await, @"
    UpGrade isn't answering (status 503), so I couldn't look that up.
    Try again in a minute. If it keeps failing, contact your administrator.
    [Try again]
    ");
    bot.upgrade.is_well();
    thread.clicks("ana", "Try again").await;
    assert!(thread.heard().contains("Math Hints"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_platform_that_goes_down_before_the_click_is_left_alone() {
    let (bot, mut thread) = TestBot::asked("ana", "start Math Hints").await;
    bot.upgrade.is_down(Some(Down::Closed));
    assert_snapshot!(thread.outcome("bo", "Start experiment").await, @"
    *Start “Math Hints”*
    ❌ UpGrade isn't answering (the connection was closed). Nothing was changed. Try again in a minute. If it keeps failing, contact your administrator.
    Approved by @bo · ‹time›
    *Status*  inactive → *running*
    Asked by @ana · digest `‹id›`
    [Try again] [Show all]
    ---
    @ana, @bo *Start “Math Hints”* didn't work. UpGrade isn't answering (the connection was closed). Nothing was changed. Try again in a minute. If it keeps failing, contact your administrator.
    ");
    bot.upgrade.is_well();
    assert_snapshot!(thread.outcome("ana", "Try again").await, @"‹Start “Math Hints”, open›");
    thread.clicks("bo", "Start experiment").await;
    assert_eq!(bot.upgrade.effects().len(), 1);
}

/// A click whose answer never comes: it is looked up, told, and done once.
async fn done_once_without_an_answer(spoil: impl FnOnce(&TestBot)) {
    let bot = TestBot::impatient().await;
    let mut thread = bot.user("ana").asks("start Math Hints").await;
    spoil(&bot);
    thread.press("bo", "Start experiment").await;
    eventually("a word about it", || thread.last().contains("No answer")).await;
    assert_eq!(thread.in_short(), "‹Start “Math Hints”, running without an answer›");
    bot.clock.advance(Duration::from_secs(5));
    bot.settled().await;
    assert_eq!(thread.in_short(), "‹Math Hints is started, as bo approved›");
    assert_eq!(bot.upgrade.effects().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_is_looked_up_and_nothing_is_done_twice() {
    done_once_without_an_answer(|bot| bot.upgrade.loses_next_answer()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_never_arrived_is_sent_again_with_evidence() {
    let hangs = |bot: &TestBot| {
        bot.upgrade.will("POST /api/experiments/state", Fault::Hang);
    };
    done_once_without_an_answer(hangs).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_page_after_the_effect_is_no_failure() {
    done_once_without_an_answer(|bot| bot.upgrade.fails_next(503, When::AfterEffect, None)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn when_the_outcome_cannot_be_known_that_is_said() {
    let bot = TestBot::impatient().await;
    let mut thread = bot.user("ana").asks("start Math Hints").await;
    bot.upgrade.loses_next_answer();
    thread.press("bo", "Start experiment").await;
    eventually("the change", || !bot.upgrade.effects().is_empty()).await;
    bot.upgrade.is_down(Some(Down::Closed));
    eventually("a word about it", || thread.last().contains("No answer")).await;
    thread.skip();
    bot.clock.advance(Duration::from_secs(5));
    bot.settled().await;
    assert_snapshot!(thread.in_short(), @"
    *Start “Math Hints”*
    ❔ It was sent, but the connection was closed. I couldn't check UpGrade (the connection was closed). It may or may not have happened. Check before asking again. It was sent ‹time›.
    Approved by @bo · ‹time›
    *Status*  inactive → *running*
    Asked by @ana · digest `‹id›`
    [Check again] [Mark as done] [Try again] [Abandon] [Show all]
    ---
    @ana, @bo It was sent, but the connection was closed. I couldn't check UpGrade (the connection was closed). It may or may not have happened. Check before asking again.
    I won't send it again unless someone asks.
    [Show details]
    ");
    bot.upgrade.is_well();
    thread.says("ana", "show Math Hints").await;
    assert!(thread.heard().contains("running"));
    assert_eq!(bot.upgrade.effects().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn while_it_takes_long_one_status_line_says_what_is_going_on() {
    for (after, slow) in [(20, 400), (200, 1_500)] {
        one_status_line(Duration::from_millis(after), Duration::from_millis(slow)).await;
    }
}

async fn one_status_line(after: Duration, slow: Duration) {
    let bot = TestBot::with_settings(move |config| config.workers.status_after = after).await;
    bot.upgrade.is_slow(slow);
    let ts = bot.slack.says("ana", "experiments", "@countersign list experiments", None).unwrap();
    bot.delivered(&ts).await;
    let mut thread = Thread::new(&bot, "experiments", ts);
    eventually("a status line", || !thread.messages().is_empty()).await;
    assert_eq!(thread.heard(), "_Looking things up…_");
    bot.settled().await;
    assert!(thread.heard().contains("Math Hints"));
    assert_eq!(thread.messages().len(), 1, "the line became the answer");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_that_is_repeated_shows_in_the_status_line() {
    let bot = TestBot::with_settings(|config| config.workers.status_after = Duration::from_millis(300)).await;
    bot.upgrade.is_down(Some(Down::Unavailable));
    let ts = bot.slack.says("ana", "experiments", "@countersign list experiments", None).unwrap();
    bot.delivered(&ts).await;
    let mut thread = Thread::new(&bot, "experiments", ts);
    eventually("a status line", || !thread.messages().is_empty()).await;
    assert!(thread.heard().starts_with("_UpGrade isn't answering. Asking again ("), "the wait has a reason");
    bot.upgrade.is_well();
    bot.settled().await;
    assert!(thread.heard().contains("Math Hints"));
    assert_eq!(thread.messages().len(), 1, "the line became the answer");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_answered_each_time_is_told() {
    let bot = TestBot::impatient().await;
    let mut thread = bot.user("ana").says("start Math Hints").await;
    for _ in 0..3 {
        bot.upgrade.will("POST /api/experiments/state", Fault::Proxy(500));
    }
    thread.skip();
    thread.press("bo", "Start experiment").await;
    eventually("a word about it", || thread.last().contains("No answer")).await;
    for _ in 0..3 {
        bot.settled().await;
        bot.clock.advance(Duration::from_secs(5));
    }
    bot.settled().await;
    let heard = thread.heard();
    let told = heard.lines().find(|line| line.contains("3 times")).unwrap_or_default();
    assert_snapshot!(told, @"❔ It was sent 3 times; each time, it answered 500. I checked: nothing had changed. It may or may not have happened. Check before asking again. It was sent ‹time›.");
    assert!(bot.upgrade.effects().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_platform_without_an_address_is_not_asked() {
    let bot = TestBot::with_settings(|config| {
        config.sections.get_mut::<countersign::experiments::settings::Upgrade>().api_url = None;
    })
    .await;
    let off = "Experiments aren't set up here: I don't know where UpGrade is.";
    for said in ["list experiments", "is UpGrade running?", "create an experiment Foo in assign-prog"] {
        let answer = bot.user("ana").answer(said).await;
        assert!(answer.contains(off), "{said}: {answer}");
    }
    let answer = bot.user("ana").answer("start Math Hints").await;
    assert!(answer.contains("I didn't catch that") && !answer.contains("answering"), "{answer}");
    assert!(bot.user("ana").answer("what can you do?").await.contains("Not set up here."));
    assert!(bot.user("ana").types("/upgrade list").await.contains(off));
    assert!(bot.user("ana").opens_home().await.contains(off));
    assert!(bot.upgrade.takes_ledger().is_empty(), "nothing was asked of it");
}
