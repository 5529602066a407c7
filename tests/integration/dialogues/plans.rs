//! Plans: shown before they begin, edited, stopped; steps with conditions.

use crate::support::bot::TestBot;

/// Asserts that a text holds each of these, in order.
#[track_caller]
fn assert_holds(text: &str, lines: &[&str]) {
    let mut rest = text;
    for line in lines {
        let at = rest.find(line).unwrap_or_else(|| panic!("{line:?} is missing, or stands earlier, in:\n{text}"));
        rest = &rest[at + line.len()..];
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_with_a_deletion_is_shown_first() {
    let bot = TestBot::start().await;
    let mut thread = bot.user("ana").says("stop Lesson Video Hints and delete it").await;
    assert_holds(
        &thread.heard(),
        &[
            "*Do these 2 steps?*",
            "*1*  stop Lesson Video Hints · _asks again_",
            "*2*  delete it · _cannot be undone, asks again_",
            "[Start] [Don't] [Edit…]",
        ],
    );
    assert!(bot.upgrade.effects().is_empty(), "nothing is changed by a plan");

    thread.clicks("ana", "Start").await;
    assert_holds(&thread.heard(), &["Started with 2 steps.", "*Stop “Lesson Video Hints”?*", "Step 1 of 2."]);
    thread.clicks("bo", "Stop experiment").await;
    assert_holds(&thread.heard(), &["Next: delete it", "*PERMANENTLY DELETE “Lesson Video Hints”?*", "Step 2 of 2."]);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_person_who_asked_starts_a_plan() {
    let bot = TestBot::start().await;
    let mut thread = bot.user("ana").says("stop Lesson Video Hints and delete it").await;
    thread.heard();
    thread.clicks("bo", "Start").await;
    assert!(!thread.heard().contains("Step 1 of 2"), "the plan has not begun");
    thread.clicks("ana", "Don't").await;
    let heard = thread.heard();
    assert!(!heard.contains("Step 1 of 2") && bot.upgrade.effects().is_empty(), "{heard}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_may_ask_to_see_the_plan_and_drop_a_step() {
    let bot = TestBot::start().await;
    let mut thread =
        bot.user("ana").says("show me the plan first: start Math Hints, then show it, then list the contexts").await;
    assert_holds(&thread.heard(), &["*Do these 3 steps?*", "*1*  start Math Hints", "*2*  show it", "*3*  list"]);
    thread.says("ana", "without step 2").await;
    assert_holds(&thread.heard(), &["*Do these 2 steps?*", "*2*  list", "*Left out*  show it"]);
    thread.clicks("ana", "Start").await;
    assert_holds(&thread.heard(), &["*Start “Math Hints”?*", "Step 1 of 2."]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_is_done_only_if_its_condition_holds() {
    let bot = TestBot::start().await;
    let said = "test the balance of Lesson Video Hints with 60 users, and only if enrolled is at least 60, stop it";
    let mut thread = bot.user("ana").says(said).await;
    assert_holds(&thread.heard(), &["Step 1 of 2. When it is done: only if enrolled is at least 60, stop it."]);
    thread.clicks("bo", "Enrol test users").await;
    assert_holds(&thread.heard(), &["Since enrolled is 60, I go on: stop it", "*Stop “Lesson Video Hints”?*"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_condition_that_does_not_hold_ends_the_plan() {
    let bot = TestBot::start().await;
    let said = "test the balance of Lesson Video Hints with 60 users, and only if enrolled is above 60, stop it";
    let mut thread = bot.user("ana").says(said).await;
    thread.heard();
    thread.clicks("bo", "Enrol test users").await;
    let heard = thread.heard();
    assert_holds(
        &heard,
        &["I stop here, since enrolled is 60.", "I did not go on to: only if enrolled is above 60, stop it."],
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_code_cannot_tell_is_asked() {
    let bot = TestBot::start().await;
    let said = "show Math Hints, and only if it looks nice, start it";
    let mut thread = bot.user("ana").says(said).await;
    assert_holds(
        &thread.heard(),
        &["You said “if it looks nice”, and that cannot be worked out from the result. Shall I go on?", "[Yes, go on]"],
    );
    thread.says("ana", "hello").await;
    thread.heard();
    thread.says("ana", "yes, go on").await;
    assert_holds(&thread.heard(), &["*Start “Math Hints”?*"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_code_cannot_tell_may_be_denied() {
    let bot = TestBot::start().await;
    let mut thread = bot.user("ana").says("show Math Hints, and only if it looks nice, start it").await;
    thread.heard();
    thread.says("ana", "no").await;
    assert_holds(&thread.heard(), &["All right, I stop here.", "I did not go on to: only if it looks nice, start it."]);
}
