//! Several experiments on one card; archiving; a start at a date.

use countersign::sandbox::upgrade::faults::{Fault, Kind, When};
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
    *Pilot*  cancelled (completed) → *archived*
    *Second Pilot*  cancelled (completed) → *archived*
    *Enrolled*  nobody
    One decision for all of them; I say what became of each.
    ‹ana asks, anyone may decide› [Archive 2 experiments] [Don't archive] [Show all]
    ");
    assert_snapshot!(thread.outcome("bo", "Archive 2 experiments").await, @"
    *Archive 2 experiments?* ⋯
    Approved by @bo · ‹time›
    ✅ Archived 2 experiments: “Pilot”, “Second Pilot”.
    ‹no buttons›
    ---
    @ana *Archive 2 experiments*: done, approved by bo.
    ");
    for name in ["Pilot", "Second Pilot"] {
        assert_eq!(bot.upgrade.experiment(name).unwrap()["state"], "archived");
    }
    assert_eq!(bot.upgrade.experiment("Chat Tone").unwrap()["state"], "completed", "it is of another context");
    assert_snapshot!(thread.answer("ana", "archive all completed experiments in assign-prog").await, @"
    No experiment is like that, so there is nothing to change.
    [Show all]
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn those_that_start_together_may_share_a_point() {
    let bot = TestBot::start().await;
    bot.upgrade.has("Pilot", "inactive");
    assert_snapshot!(bot.user("ana").answer("start all inactive experiments in assign-prog").await, @"
    *Start 2 experiments?*
    *Math Hints*  inactive → *enrolling (running)*
    *Pilot*  inactive → *enrolling (running)*
    *Enrolled*  nobody
    ⚠️ “*Math Hints*”: “*Pilot*”, enrolling (running), has SelectSection / absolute_value_plot_equality too: each person takes part in only one experiment at a point.
    ⚠️ “*Pilot*”: “*Math Hints*”, enrolling (running), has SelectSection / absolute_value_plot_equality too: each person takes part in only one experiment at a point.
    One decision for all of them; I say what became of each.
    ‹ana asks, anyone may decide› [Start 2 experiments] [Don't start] [Show all]
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_became_of_each_is_said() {
    let bot = TestBot::start().await;
    bot.upgrade.has("Pilot", "enrolling");
    let mut thread = bot.user("ana").says("stop “Pilot”, “Lesson Video Hints” and “Chat Tone”").await;
    assert_snapshot!(thread.in_short(), @"
    *Stop 2 experiments?*
    *Pilot*  enrolling (running) → *enrollmentComplete (paused)*
    *Lesson Video Hints*  enrolling (running) → *enrollmentComplete (paused)*
    *Enrolled*  24 people in all
    One decision for all of them; I say what became of each.
    Left out: Chat Tone (it is cancelled (completed)).
    ‹ana asks, anyone may decide› [Stop 2 experiments] [Don't stop] [Show all]
    ");
    bot.upgrade.will(Fault {
        kind: Kind::Fail(400),
        when: When::BeforeEffect,
        only: Some("POST /api/experiments/state".into()),
    });
    assert_snapshot!(thread.outcome("ana", "Stop 2 experiments").await, @"
    *Stop 2 experiments?* ⋯
    Approved by @ana · ‹time›
    ❌ 1 of 2: stopped “*Lesson Video Hints*”. Not “*Pilot*”: UpGrade said: `a web page with status 400, not an answer; check the address`. I checked: it was not changed.
    [Try again]
    ---
    @ana *Stop 2 experiments* did not work for all of them. 1 of 2: stopped “*Lesson Video Hints*”. Not “*Pilot*”: UpGrade said: `a web page with status 400, not an answer; check the address`. I checked: it was not changed.
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_is_scheduled_and_taken_back() {
    let (bot, mut thread) = TestBot::hears("ana", "schedule Math Hints").await;
    assert_snapshot!(thread.heard(), @"When should “Math Hints” start? Such as Friday 9:00, or 2027-01-15 09:00.");
    assert_snapshot!(thread.answer("ana", "2020-01-15").await, @"2020-01-15 00:00 UTC is over. It has to be a moment to come.");
    assert_snapshot!(thread.answer("ana", "schedule Math Hints for 2099-01-15 09:00").await, @"
    *Schedule “Math Hints”?*
    *Status*  inactive → *scheduled*
    *Context*  `assign-prog`
    *Starts*  2099-01-15 09:00 UTC
    *Conditions*  control 50%, variant 50%
    *Decision points*  SelectSection / absolute_value_plot_equality
    ‹nobody is enrolled, and nobody else is at the point›
    UpGrade starts it by itself, where its scheduler is set up.
    ‹ana asks, anyone may decide› [Schedule experiment] [Don't schedule] [Edit…] [Show all]
    ");
    assert_snapshot!(thread.outcome("ana", "Schedule experiment").await, @"
    *Schedule “Math Hints”?* ⋯
    Approved by @ana · ‹time›
    ✅ Scheduled “Math Hints”: it starts on 2099-01-15 09:00 UTC.
    [Undo: unschedule it]
    ---
    @ana “*Math Hints*”: done. What next?
    [Show details]
    ");
    let now = bot.upgrade.experiment("Math Hints").unwrap();
    assert_eq!((&now["state"], &now["startOn"]), (&"scheduled".into(), &"2099-01-15T09:00:00.000Z".into()));
    assert_snapshot!(thread.outcome("ana", "Undo: unschedule it").await, @"
    *Unschedule “Math Hints”?*
    *Status*  scheduled → *inactive*
    *Context*  `assign-prog`
    ‹nobody is enrolled, and nobody else is at the point›
    This takes back what was done ‹time›: Scheduled “Math Hints”: it starts on 2099-01-15 09:00 UTC.
    ‹ana asks, anyone may decide› [Unschedule experiment] [Keep the date] [Edit…] [Show all]
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_is_completed_is_archived() {
    let (_bot, mut thread) = TestBot::hears("ana", "archive Math Hints").await;
    assert_snapshot!(thread.in_short(), @"
    “*Math Hints*” is inactive, and from there it cannot become archived. It can become: scheduled, enrolling (running), cancelled (completed).
    [schedule Math Hints] [start Math Hints] [cancel Math Hints]
    ");
    assert_snapshot!(thread.answer("ana", "archive Chat Tone").await, @"
    *Archive “Chat Tone”?*
    *Status*  cancelled (completed) → *archived*
    *Context*  `livehint-ai`
    *Enrolled*  24 people
    *Same points*  no other live experiment
    Its design and results are kept; it cannot be started from there.
    ‹ana asks, anyone may decide› [Archive experiment] [Don't archive] [Edit…] [Show all]
    ");
}
