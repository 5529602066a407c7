//! Several experiments on one card; archiving; a start at a date.

use countersign_sandbox::faults::Fault;
use insta::assert_snapshot;

use crate::support::bot::TestBot;

#[tokio::test(flavor = "multi_thread")]
async fn all_of_a_kind_are_archived_with_one_decision() {
    let bot = TestBot::start().await;
    bot.upgrade.has("Pilot", "cancelled");
    bot.upgrade.has("Second Pilot", "cancelled");
    let mut thread = bot.user("ana").says("archive all completed experiments in assign-prog").await;
    assert_snapshot!(thread.in_short(), @"
    *Archive 2 experiments?*
    *Pilot*  cancelled → *archived*
    *Second Pilot*  cancelled → *archived*
    *Enrolled*  0
    One decision covers all of them. I'll report the outcome of each.
    ‹ana asks, anyone may decide› [Archive 2 experiments] [Reject…] [Withdraw] [Show all]
    ");
    assert_snapshot!(thread.outcome("bo", "Archive 2 experiments").await, @"
    ✅ *Archived 2 experiments: “Pilot”, “Second Pilot”.*
    Approved by @bo · ‹time›
    *Pilot*  cancelled → *archived*
    *Second Pilot*  cancelled → *archived*
    Asked by @ana · digest `‹id›`
    [Show all]
    ---
    @ana Archived 2 experiments: “Pilot”, “Second Pilot”. Approved by bo.
    ");
    for name in ["Pilot", "Second Pilot"] {
        assert_eq!(bot.upgrade.experiment(name).unwrap()["state"], "archived");
    }
    assert_eq!(bot.upgrade.experiment("Chat Tone").unwrap()["state"], "completed", "it is of another context");
    assert_snapshot!(thread.answer("ana", "archive all completed experiments in assign-prog").await, @"
    No experiments match, so there's nothing to change.
    [List experiments]
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn those_that_start_together_may_share_a_point() {
    let bot = TestBot::start().await;
    bot.upgrade.has("Pilot", "inactive");
    assert_snapshot!(bot.user("ana").answer("start all inactive experiments in assign-prog").await, @"
    *Start 2 experiments?*
    *Math Hints*  inactive → *running*
    *Pilot*  inactive → *running*
    *Enrolled*  0
    ⚠️ “*Math Hints*”: “*Pilot*”, running, has SelectSection / absolute_value_plot_equality too. Each user takes part in only one experiment at a decision point.
    ⚠️ “*Pilot*”: “*Math Hints*”, running, has SelectSection / absolute_value_plot_equality too. Each user takes part in only one experiment at a decision point.
    One decision covers all of them. I'll report the outcome of each.
    ‹ana asks, anyone may decide› [Start 2 experiments] [Reject…] [Withdraw] [Show all]
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_became_of_each_is_said() {
    let bot = TestBot::start().await;
    bot.upgrade.has("Pilot", "enrolling");
    let mut thread = bot.user("ana").says("stop “Pilot”, “Lesson Video Hints” and “Chat Tone”").await;
    assert_snapshot!(thread.in_short(), @"
    *Stop 2 experiments?*
    *Pilot*  running → *paused*
    *Lesson Video Hints*  running → *paused*
    *Enrolled*  24 users in total
    One decision covers all of them. I'll report the outcome of each.
    Left out: Chat Tone (it is cancelled).
    ‹ana asks, anyone may decide› [Stop 2 experiments] [Reject…] [Withdraw] [Show all]
    ");
    bot.upgrade.will("POST /api/experiments/state", Fault::Proxy(400));
    assert_snapshot!(thread.outcome("ana", "Stop 2 experiments").await, @"
    *Stop 2 experiments*
    ❌ 1 of 2: stopped “*Lesson Video Hints*”. Not done: “*Pilot*”: UpGrade said: `a web page with status 400, not an answer; check the address`. I checked: it was not changed.
    Approved by @ana · ‹time›
    *Pilot*  running → *paused*
    *Lesson Video Hints*  running → *paused*
    Asked by @ana · digest `‹id›`
    [Try again] [Show all]
    ---
    @ana *Stop 2 experiments* worked only for some of them. 1 of 2: stopped “*Lesson Video Hints*”. Not done: “*Pilot*”: UpGrade said: `a web page with status 400, not an answer; check the address`. I checked: it was not changed.
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_changed_in_the_meantime_is_named() {
    let bot = TestBot::start().await;
    bot.upgrade.has("Pilot", "enrolling");
    let mut thread = bot.user("ana").says("stop “Pilot” and “Lesson Video Hints”").await;
    bot.user("cy").says("stop Pilot").await.clicks("bo", "approve").await;
    thread.clicks("bo", "Stop 2 experiments").await;
    let told = thread.heard();
    let line = told.lines().find(|line| line.contains("changed after")).unwrap_or_default();
    assert_snapshot!(line, @"❌ It changed after this card was posted, so nothing was done. On the card → now: *Status of “Pilot”* running → paused. *Try again* posts a card that shows how it is now.");
    assert_eq!(bot.done_to_platform().len(), 1, "only the first stop");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_is_scheduled_and_taken_back() {
    let (bot, mut thread) = TestBot::hears("ana", "schedule Math Hints").await;
    assert_snapshot!(thread.heard(), @"When should “Math Hints” start? For example Friday 9:00, or 2027-01-15 09:00.");
    assert_snapshot!(thread.answer("ana", "2020-01-15").await, @"2020-01-15 00:00 UTC is in the past. Give a time in the future.");
    assert_snapshot!(thread.answer("ana", "schedule Math Hints for 2099-01-15 09:00").await, @"
    *Schedule “Math Hints”?*
    *Status*  inactive → *scheduled*
    *Context*  `assign-prog`
    *Starts*  2099-01-15 09:00 UTC
    *Conditions*  control 50%, variant 50%
    *Decision points*  SelectSection / absolute_value_plot_equality
    ‹nobody is enrolled, and nobody else is at the point›
    UpGrade starts it automatically if its scheduler is enabled.
    ‹ana asks, anyone may decide› [Schedule experiment] [Reject…] [Withdraw] [Edit…] [Show all]
    ");
    assert_snapshot!(thread.outcome("ana", "Schedule experiment").await, @"
    ✅ *Scheduled “Math Hints”: it starts on 2099-01-15 09:00 UTC.*
    Approved by @ana · ‹time›
    *Status*  inactive → *scheduled*
    Asked by @ana · digest `‹id›`
    [Undo: unschedule experiment] [Show all]
    ---
    @ana Scheduled “Math Hints”: it starts on 2099-01-15 09:00 UTC. What next?
    [Show details]
    ");
    let now = bot.upgrade.experiment("Math Hints").unwrap();
    assert_eq!((&now["state"], &now["startOn"]), (&"scheduled".into(), &"2099-01-15T09:00:00.000Z".into()));
    assert_snapshot!(thread.outcome("ana", "Undo: unschedule experiment").await, @"
    *Unschedule “Math Hints”?*
    *Status*  scheduled → *inactive*
    *Context*  `assign-prog`
    ‹nobody is enrolled, and nobody else is at the point›
    This undoes the change made ‹time›: Scheduled “Math Hints”: it starts on 2099-01-15 09:00 UTC.
    ‹ana asks, anyone may decide› [Unschedule experiment] [Reject…] [Withdraw] [Edit…] [Show all]
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_is_completed_is_archived() {
    let (_bot, mut thread) = TestBot::hears("ana", "archive Math Hints").await;
    assert_snapshot!(thread.in_short(), @"
    “*Math Hints*” is inactive, so I won't make it archived. UpGrade would accept that, but it isn't good practice. I can make it: scheduled, running, cancelled.
    [schedule Math Hints] [start Math Hints] [cancel Math Hints]
    ");
    assert_snapshot!(thread.answer("ana", "archive Chat Tone").await, @"
    *Archive “Chat Tone”?*
    *Status*  cancelled → *archived*
    *Context*  `livehint-ai`
    *Enrolled*  24 users
    *Overlapping experiments*  none
    Its design and results are kept. It can't be started again here.
    ‹ana asks, anyone may decide› [Archive experiment] [Reject…] [Withdraw] [Edit…] [Show all]
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn both_means_those_on_the_card_or_those_that_were_suggested() {
    let bot = TestBot::start().await;
    bot.upgrade.has("Pilot A", "inactive");
    bot.upgrade.has("Pilot B", "inactive");
    let mut thread = bot.user("ana").says("start Pilot").await;
    assert!(thread.heard().contains("Did you mean"), "{}", thread.last());
    thread.says("ana", "both").await;
    assert!(thread.heard().contains("*Start 2 experiments?*"), "{}", thread.last());
    thread.clicked("bo", "Start 2 experiments").await;
    thread.says("ana", "@countersign stop both").await;
    let heard = thread.heard();
    for part in ["*Stop 2 experiments?*", "*Pilot A*", "*Pilot B*"] {
        assert!(heard.contains(part), "{part}: {heard}");
    }
}
