//! Tests of plans in the whole graph: their limits, replies and events.

use std::time::Duration;

use countersign_core::{
    clock::Timestamp,
    reply::Text,
    status_line::{self, Progress},
};
use countersign_graph::action::{Decision, Outcome, Status, Verdict};
use countersign_planner::control::Limits;
use insta::assert_snapshot;
use serde_json::json;

use super::harness::{Harness, Script, Told, calls};
use crate::{plan::Plan, plan_settings::PlanSettings};

fn with(limits: Limits) -> Harness {
    Harness::with_plans(PlanSettings { limits, ..PlanSettings::default() })
}

/// Approves the newest card and ends its change with success.
async fn done(harness: &mut Harness) -> Told {
    let approved = vec![Decision { by: Some("bo".into()), at: Timestamp(0), verdict: Verdict::Approved }];
    let outcome =
        Outcome::Done { result: json!({ "name": "Math Hints" }), summary: Text::from("Started “Math Hints”.") };
    harness.ends(Status::Done, approved, Some(outcome)).await
}

#[tokio::test]
async fn a_plan_is_reported_by_its_events() {
    let mut harness = Harness::with_rules();
    let told = harness.says("start Math Hints and then start Away").await;
    assert_eq!(told.events, ["A plan of 2 steps", "Started: start Math Hints"]);
    let told = done(&mut harness).await;
    assert_eq!(told.events[..2], ["Done: start Math Hints", "Started: start Away"]);
    assert_eq!(told.events.last().unwrap(), "1 of 2 steps done: network");
}

#[tokio::test]
async fn the_status_line_says_which_step_is_in_hand() {
    let mut harness = Harness::with_rules();
    let (line, run) = status_line::during(
        Progress::of("Reading your message…"),
        harness.says("start Math Hints and then start Away"),
    );
    run.await;
    assert_eq!(line.borrow().status, "Step 1 of 2 · start Math Hints");
    let (line, run) = status_line::during(Progress::default(), done(&mut harness));
    run.await;
    assert_eq!(line.borrow().status, "Step 2 of 2 · start Away");
}

#[tokio::test]
async fn a_step_is_tried_three_times_with_growing_waits() {
    let mut harness = Harness::with_rules();
    let told = harness.says("start Away and then start Math Hints").await;
    assert_eq!(told.waits, [Duration::from_millis(500), Duration::from_millis(750)]);
    assert_eq!(told.way.iter().filter(|node| **node == "analyze").count(), 1 + 3, "the plan, then each try");
    assert_snapshot!(told.read(), @"
    UpGrade isn't answering.
    I tried 3 times, waiting longer each time.
    Not done: start Math Hints.
    [Try again → start Away]
    ");
    assert_eq!(
        told.events,
        [
            "A plan of 2 steps",
            "Started: start Away",
            "Attempt 1 failed; next attempt in 0.5 s: network",
            "Attempt 2 failed; next attempt in 0.75 s: network",
            "0 of 2 steps done: network",
        ]
    );
}

#[tokio::test]
async fn a_request_alone_is_not_repeated_unasked() {
    let told = Harness::with_rules().says("start Away").await;
    assert!(told.waits.is_empty());
}

#[tokio::test]
async fn a_plan_ends_when_its_time_is_over() {
    let mut harness = with(Limits { run_time: Duration::ZERO, ..Limits::default() });
    harness.says("start Math Hints and then check UpGrade").await;
    let told = done(&mut harness).await;
    assert_snapshot!(told.read(), @"
    @ana Started “Math Hints”. Approved by @bo.
    I stopped here: it took longer than 0 s, the limit for one request.
    Not done: check UpGrade.
    ");
}

#[tokio::test]
async fn the_time_in_which_a_person_is_asked_does_not_count() {
    let mut harness = with(Limits { run_time: Duration::from_secs(60), ..Limits::default() });
    harness.says("start Math Hints and then check UpGrade").await;
    harness.waits(Duration::from_secs(3600));
    let told = done(&mut harness).await;
    assert!(told.events.contains(&"Started: check UpGrade".to_owned()), "{:?}", told.events);
}

#[tokio::test]
async fn a_plan_ends_after_its_number_of_nodes() {
    let mut harness = with(Limits { nodes: 2, ..Limits::default() });
    harness.says("start Math Hints and then check UpGrade").await;
    let told = done(&mut harness).await;
    assert_snapshot!(told.read(), @"
    @ana Started “Math Hints”. Approved by @bo.
    I stopped here: it took more than 2 steps of work, the limit for one request.
    Not done: check UpGrade.
    ");
}

/// Replaces the capability of the next step with one that does not exist, as after an update that removed it.
fn loses_a_capability(harness: &mut Harness) -> &mut Plan {
    let plan = harness.state.plans.last_mut().unwrap();
    plan.planned.steps[1].capability = Some("weather".to_owned());
    plan
}

#[tokio::test]
async fn a_step_of_a_capability_that_is_gone_is_assigned_again_once() {
    let mut harness = Harness::with_rules();
    harness.says("start Math Hints and then check UpGrade").await;
    loses_a_capability(&mut harness);
    let told = done(&mut harness).await;
    assert!(told.events.contains(&"Started: check UpGrade".to_owned()), "{:?}", told.events);

    let mut harness = Harness::with_rules();
    harness.says("start Math Hints and then check UpGrade").await;
    loses_a_capability(&mut harness).control.reclassifications = 1;
    assert_snapshot!(done(&mut harness).await.read(), @"
    @ana Started “Math Hints”. Approved by @bo.
    I stopped here: what the next step needs (weather) is no longer offered here.
    Not done: check UpGrade.
    ");
}

#[tokio::test]
async fn a_condition_that_nothing_can_show_begins_nothing() {
    let steps = json!({
        "intent_type": "needs_info", "confidence": 0.9, "user_request_summary": "…",
        "steps": ["if it rains, start Math Hints", "check UpGrade"],
    });
    let script = Script::of([calls([("analyze_user_request", steps)])]);
    let told = Harness::with(script).says("if it rains, start Math Hints; then check UpGrade").await;
    assert_snapshot!(told.read(), @"
    I can't tell whether the condition in “if it rains, start Math Hints” holds: nothing before it looks that up.
    Nothing was started. Ask again in another order, or one at a time.
    ");
    assert!(told.asked.is_none());

    let told = Harness::with_rules().says("if it rains, delete everything").await;
    assert_snapshot!(told.read(), @"
    I can't check the condition “it rains”, so nothing was changed.
    A condition can refer to the result of an earlier request in the same message.
    ");
}
