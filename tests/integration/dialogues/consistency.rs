//! Consistency rules tested from the thread, and names for test users.

use std::time::Duration;

use insta::assert_snapshot;
use serde_json::json;

use super::{
    scripted::{bot_with_model, finish},
    testing::without_run,
};
use crate::support::bot::{TestBot, eventually};

/// Lots fall differently each time.
fn without_lots(text: &str) -> String {
    let text = without_run(text).replace("control again", "‹any› again").replace("variant again", "‹any› again");
    text.replace("| control |", "| ‹any› |").replace("| variant |", "| ‹any› |")
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_are_tested_and_the_experiment_is_put_back() {
    let (bot, mut thread) = TestBot::hears("ana", "test consistency rules for Math Hints").await;
    assert_snapshot!(without_lots(&thread.in_short()), @"
    *Test the consistency rules of “Math Hints”?*
    *Rules*  individual; consistency individual; early visitors are included; after enrollment ends, enrolled users keep their condition
    *Decision point*  SelectSection / absolute_value_plot_equality
    *1. Before the start*  visit by `test-‹run›-0001` (early visitor)
    *2. Start experiment*  inactive → *running*
    *3. While it runs*  visits by the same users, and by `test-‹run›-0002` (later visitor)
    *4. Pause experiment*  running → *paused*
    *5. While it is paused*  visits by the same users, and by `test-‹run›-0003` (newcomer)
    *Limits*  3 test users, this experiment only, at most 10 minutes
    ⚠️ While it runs, real users at SelectSection / absolute_value_plot_equality are enrolled too.
    ⚠️ It is paused at the end: newcomers get no condition, and enrolled users keep their condition.
    ⚠️ UpGrade removes enrolled users only together with the experiment.
    You can stop it midway; the experiment then keeps its status at that moment. I'll offer to undo that.
    ‹ana asks, anyone may decide› [Run the test] [Reject…] [Withdraw] [Show all]
    ");
    assert_eq!(bot.upgrade.effects().len(), 0, "asking changes nothing");

    thread.clicks("bo", "Run the test").await;
    assert_snapshot!(without_lots(&thread.in_short()), @"
    *Test the consistency rules of “Math Hints”*
    ✅ Tested the consistency rules of “*Math Hints*”: all 6 observations match the rules. It is paused now.
    Approved by @bo · ‹time›
    *2. Start experiment*  inactive → *running*
    *4. Pause experiment*  running → *paused*
    Asked by @ana · digest `‹id›`
    [Show all]
    ---
    @ana Tested the consistency rules of “*Math Hints*”: all 6 observations match the rules. It is paused now. Approved by bo.
    Phase | Visitor | Expected | Observed | Result
    Before start | Early visitor | nothing | nothing | ✓ fits
    Running | Early visitor | any condition | ‹any› | ✓ fits
    Running | Later visitor | any condition | ‹any› | ✓ fits
    Paused | Early visitor | ‹any› again | ‹any› | ✓ fits
    Paused | Later visitor | ‹any› again | ‹any› | ✓ fits
    Paused | Newcomer | nothing | nothing | ✓ fits
    “Nothing” means that the application shows its default.
    [Set to inactive] [Resume experiment] [Show details]
    ");

    assert_snapshot!(thread.outcome("ana", "Set to inactive").await, @"
    @ana chose *Set to inactive*.
    ---
    *Set “Math Hints” back to inactive?*
    *Status*  paused → *inactive*
    *Context*  `assign-prog`
    *Enrolled*  0, plus 2 test users
    *Overlapping experiments*  none
    ⚠️ Enrolled users get the application's default too.
    Enrollments are kept. If it is started again, users keep their condition.
    ‹ana asks, anyone may decide› [Set to inactive] [Reject…] [Withdraw] [Edit…] [Show all]
    ");
    thread.clicks("bo", "Set to inactive").await;
    assert_eq!(bot.upgrade.experiment("Math Hints").unwrap()["state"], "inactive");
    thread.skip();
    assert_snapshot!(thread.answer("ana", "does the consistency rule of Chat Tone work?").await, @"
    “*Chat Tone*” is cancelled. The test needs an experiment that can be started and paused, which isn't possible from this status.
    [List experiments]
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_that_is_stopped_says_where_it_leaves_the_experiment() {
    let (bot, mut thread) = TestBot::hears("ana", "test consistency of Math Hints").await;
    bot.upgrade.is_slow(Duration::from_millis(150));
    thread.press("bo", "Run the test").await;
    let running = || bot.upgrade.experiment("Math Hints").unwrap()["state"] == "running";
    eventually("it runs", running).await;
    eventually("some progress", || thread.messages().iter().any(|m| m.button("Stop").is_some())).await;
    thread.clicks("cy", "Stop").await;
    bot.upgrade.is_well();
    let state = bot.upgrade.experiment("Math Hints").unwrap()["state"].as_str().unwrap().to_owned();
    let heard = thread.heard();
    assert!(heard.contains("Stopped by @cy after "), "{heard}");
    assert!(heard.contains(&format!("is {state} now; so far ")), "{state}: {heard}");
}

#[tokio::test(flavor = "multi_thread")]
async fn names_for_test_users() {
    let (bot, mut thread) = TestBot::hears("ana", "generate 3 test users").await;
    assert_snapshot!(without_run(&thread.in_short()), @"
    Here are 3 test users:
    • `test-‹run›-0001`
    • `test-‹run›-0002`
    • `test-‹run›-0003`
    These are only IDs. Nobody is enrolled until a visit is approved.
    ");
    thread.says("ana", "make 6 test users for Class Hint Rollout").await;
    assert_snapshot!(without_run(&thread.in_short()), @"
    Here are 6 test users for “*Class Hint Rollout*”, in 2 groups of `classId`:
    User | classId
    test-‹run›-0001 | test-‹run›-group-001
    test-‹run›-0002 | test-‹run›-group-001
    test-‹run›-0003 | test-‹run›-group-001
    test-‹run›-0004 | test-‹run›-group-001
    test-‹run›-0005 | test-‹run›-group-001
    test-‹run›-0006 | test-‹run›-group-002
    These are only IDs. Nobody is enrolled until a visit is approved.
    ");
    assert_snapshot!(thread.answer("ana", "make 10 test users with groups for Math Hints").await, @"
    Which group type should they have: classId, instructorId, schoolId?
    [classId] [instructorId] [schoolId]
    ");
    thread.clicks("ana", "classId").await;
    assert!(
        thread.last().starts_with("Here are 10 test users for “*Math Hints*”, in 2 groups of `classId`:"),
        "{}",
        thread.last()
    );
    thread.says("ana", "generate 2 test users for Math Hints").await;
    assert!(thread.last().contains("[Simulate the first]"), "{}", thread.last());
    thread.says("ana", "generate 300 test users").await;
    let file = thread.messages().into_iter().find_map(|message| message.files.first().cloned()).expect("a file");
    let csv = bot.slack.look(|world| world.files[&file].bytes.clone());
    assert_eq!(String::from_utf8(csv).unwrap().lines().count(), 301);
    thread.says("ana", "generate 2000 test users").await;
    assert_snapshot!(thread.last(), @"I can make up 1 to 1000 test users. How many do you need?");
    assert_eq!(bot.upgrade.effects().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_tests_take() {
    let (_bot, mut thread) = TestBot::hears("ana", "how do I test consistency rules?").await;
    assert_snapshot!(thread.in_short(), @"
    To *test the consistency rules*, I need: experiment.
    What | Needed | Meaning
    Experiment | yes | its name or ID
    Say it in one sentence, for example “test consistency rules for Math Hints”, or step by step: I'll ask for what's missing.
    ");
    assert_snapshot!(thread.answer("ana", "what do I need to test the balance?").await, @"
    To *test the balance of conditions*, I need: experiment. Everything else is optional.
    What | Needed | Meaning
    Experiment | yes | its name or ID
    Users | no | how many test users to enroll, up to 1,000; otherwise 100
    Say it in one sentence, for example “test the balance of Math Hints with 200 users”, or step by step: I'll ask for what's missing.
    ");
    assert_snapshot!(thread.answer("ana", "how do I simulate a user?").await, @"
    To *simulate a user's visit*, I need: user. Everything else is optional.
    What | Needed | Meaning
    User | yes | the user's ID, such as student-001
    Experiment | no | its name or ID, or its decision point
    Decision point | no | site / target; otherwise its first
    Groups | no | the groups of the user by type, such as classId 5B
    Working group | no | the group that the user acts in, such as classId 5B
    Say it in one sentence, for example “simulate user u1 in Math Hints”, or step by step: I'll ask for what's missing.
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_asks_for_the_test() {
    let (bot, model) = bot_with_model().await;
    super::unasked::asks_for_tools(&model, "testing");
    model.will_call("propose_test_consistency_rules", json!({ "experiment": "Math Hints" }));
    let thread = bot.user("ana").says("I'd like to be sure math hints treats late pupils as its rules say").await;
    assert!(thread.last().contains("*Test the consistency rules of “Math Hints”?*"), "{}", thread.last());
    assert!(thread.last().contains("Suggested by the assistant while answering @ana"), "her words name no test");
    thread.clicks("bo", "Run the test").await;
    let said = thread.last();
    assert!(said.contains("all 6 observations match the rules. It is paused now."), "{said}");
    finish(bot, model).await;
}
