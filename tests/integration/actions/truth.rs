//! A platform, or something in front of it, that answers what is not so: only what was looked up is claimed.

use countersign::graph::action::{ActionRecord, Outcome, Performed, Probed};
use countersign_sandbox::{
    faults::{Fault, When},
    upgrade::Version,
};
use insta::assert_snapshot;
use serde_json::{Value, json};

use super::{Bench, failure, parameters};

/// An action with what it is asked to do, and its request.
const CHANGES: [(&str, &str); 4] = [
    ("create_experiment", "POST /api/experiments "),
    ("update_experiment", "PUT /api/experiments"),
    ("update_experiment_status", "POST /api/experiments/state"),
    ("delete_experiment", "DELETE /api/experiments"),
];

async fn ready(name: &str) -> (Bench, ActionRecord) {
    let bench = Bench::start(Version::V6_5).await;
    bench.upgrade.has("Math Hints", "inactive");
    bench.upgrade.has("Another", "enrolling");
    let record = bench.approved(name, parameters(name)).await;
    (bench, record)
}

/// Successes that do not say that the change was made.
fn odd_successes(bench: &Bench) -> Vec<Value> {
    let unchanged = bench.upgrade.experiment("Math Hints").unwrap();
    let another = bench.upgrade.experiment("Another").unwrap();
    let mut without_state = unchanged.clone();
    without_state.as_object_mut().unwrap().remove("state");
    let wrong_types = json!({ "id": 7, "name": [], "state": {} });
    vec![
        unchanged,
        another.clone(),
        json!([another]),
        without_state,
        wrong_types,
        json!(null),
        json!({}),
        json!([]),
        json!("ok"),
        json!(true),
    ]
}

#[tokio::test]
async fn a_success_that_says_something_else_is_not_claimed() {
    for (name, request) in CHANGES {
        let (bench, _) = ready(name).await;
        for body in odd_successes(&bench) {
            let (bench, record) = ready(name).await;
            bench.upgrade.answers_next(200, body.clone(), When::BeforeEffect, request);
            let performed = bench.performs(&record).await;
            assert!(matches!(performed, Performed::NoAnswer { .. }), "{name} {body}: {performed:?}");
            assert_eq!(bench.changes(), 0, "{name} {body}");
        }
    }
}

#[tokio::test]
async fn a_success_that_says_nothing_is_looked_up_and_told_as_it_is() {
    for (name, request) in CHANGES {
        let (bench, _) = ready(name).await;
        for body in odd_successes(&bench) {
            let (bench, record) = ready(name).await;
            bench.upgrade.answers_next(200, body.clone(), When::AfterEffect, request);
            match bench.performs(&record).await {
                Performed::Ended(Outcome::Done { summary, .. }) => assert_eq!(summary.words(), record.card.done),
                other => panic!("{name} {body}: {other:?}"),
            }
            assert_eq!(bench.changes(), 1, "{name} {body}");
        }
        let (bench, record) = ready(name).await;
        bench.upgrade.fails_next(200, When::AfterEffect, Some(request));
        let performed = bench.performs(&record).await;
        assert!(matches!(performed, Performed::Ended(Outcome::Done { .. })), "{name}, a web page: {performed:?}");
    }
}

/// Answers that say no: with JSON, and with the page of something in front of the platform.
fn refusals() -> Vec<Fault> {
    let statuses = [301, 302, 304, 400, 401, 403, 404, 405, 409, 410, 413, 422, 429];
    let json = |status| Fault::Answer(status, json!({ "message": "No way.", "errorCode": status }));
    statuses.into_iter().flat_map(|status| [Fault::Proxy(status), json(status)]).collect()
}

#[tokio::test]
async fn a_change_that_was_refused_and_made_all_the_same_is_told_as_made() {
    for (name, request) in CHANGES {
        for fault in refusals() {
            let (bench, record) = ready(name).await;
            bench.upgrade.will(request, fault.clone().after());
            let performed = bench.performs(&record).await;
            let said = match performed {
                Performed::Ended(outcome @ Outcome::Done { .. }) => outcome.summary().words(),
                // Whoever deletes what is gone cannot be told from whoever deleted it.
                Performed::Ended(outcome) if name == "delete_experiment" => {
                    let said = outcome.summary().words();
                    assert!(said.contains("no longer exists"), "{fault:?}: {said}");
                    continue;
                }
                other => panic!("{name} {fault:?}: {other:?}"),
            };
            assert!(said.starts_with(&record.card.done), "{name} {fault:?}: {said}");
            assert!(said.contains("but I checked and it went through"), "{name} {fault:?}: {said}");
            assert_eq!(bench.changes(), 1, "{name} {fault:?}");
        }
    }
}

#[tokio::test]
async fn that_nothing_changed_is_said_after_a_look() {
    for (name, request) in CHANGES {
        for fault in refusals() {
            let (bench, record) = ready(name).await;
            bench.upgrade.will(request, fault.clone());
            let before = bench.upgrade.ledger().len();
            let said = failure(bench.performs(&record).await);
            let ledger = bench.upgrade.ledger();
            let refused = ledger.iter().rposition(|entry| entry.method != "GET").unwrap();
            assert!(before <= refused && refused + 1 < ledger.len(), "{name} {fault:?}: nobody looked");
            assert!(said.contains("I checked: nothing was changed."), "{name} {fault:?}: {said}");
            assert_eq!(bench.changes(), 0);
        }
    }
}

#[tokio::test]
async fn what_cannot_be_looked_up_is_not_claimed() {
    for (name, request) in CHANGES {
        for when in [When::BeforeEffect, When::AfterEffect] {
            let (bench, record) = ready(name).await;
            bench.upgrade.will(request, Fault::Proxy(409).at(when));
            for _ in 0..2 {
                bench.upgrade.will("GET /api/experiments/single", Fault::Proxy(404));
            }
            let performed = bench.action(name).perform(&record).await;
            let Performed::Ended(outcome) = performed else { panic!("{name} {when:?}: {performed:?}") };
            let said = outcome.summary().words();
            if let Outcome::Failed { .. } = outcome {
                assert_eq!(bench.changes(), 0, "{name} {when:?}: {said}");
            }
            assert!(!said.to_lowercase().contains("nothing was changed") || bench.changes() == 0, "{name}: {said}");
        }
    }
}

#[tokio::test]
async fn a_look_that_shows_another_experiment_shows_nothing() {
    for (name, _) in CHANGES {
        let (bench, record) = ready(name).await;
        let another = bench.upgrade.experiment("Another").unwrap();
        for body in [another, json!(null), json!({}), json!([]), json!("ok")] {
            bench.upgrade.answers_next(200, body.clone(), When::BeforeEffect, "GET /api/experiments/single");
            let probed = bench.action(name).probe(&record).await;
            assert!(matches!(probed, Probed::CannotTell { .. }), "{name} {body}: {probed:?}");
        }
    }
}

#[tokio::test]
async fn an_experiment_that_is_only_said_to_be_gone_is_not_deleted() {
    let (bench, record) = ready("delete_experiment").await;
    let gone = json!({ "message": "Experiment not found!" });
    bench.upgrade.answers_next(404, gone, When::BeforeEffect, "GET /api/experiments/single");
    let probed = bench.action("delete_experiment").probe(&record).await;
    assert!(matches!(probed, Probed::CannotTell { .. }), "{probed:?}");
}

#[tokio::test]
async fn each_of_several_is_looked_up_before_something_is_said_of_it() {
    let asked = json!({ "experiments": ["One", "Two"], "status": "archived" });
    for (when, body, status) in [
        (When::BeforeEffect, json!(null), 200),
        (When::AfterEffect, json!(null), 200),
        (When::AfterEffect, json!({ "message": "No." }), 409),
        (When::BeforeEffect, json!({ "message": "No." }), 409),
        (When::AfterEffect, json!({ "message": "No.", "name": "Error" }), 500),
    ] {
        let bench = Bench::start(Version::V6_5).await;
        bench.upgrade.has("One", "cancelled");
        bench.upgrade.has("Two", "cancelled");
        let record = bench.approved("update_experiment_status", asked.clone()).await;
        bench.upgrade.answers_next(status, body, when, "POST /api/experiments/state");
        let performed = bench.performs(&record).await;
        let case = format!("{status} {when:?}: {performed:?}");
        match (performed, when, status) {
            (Performed::Ended(Outcome::Done { .. }), When::AfterEffect, _) => assert_eq!(bench.changes(), 2, "{case}"),
            (Performed::NoAnswer { .. }, When::BeforeEffect, 200) => {}
            (Performed::Ended(Outcome::Failed { summary, .. }), When::BeforeEffect, _) => {
                assert_eq!(bench.changes(), 1, "{case}");
                assert_snapshot!(summary.words(), @"1 of 2: archived “Two”. Not done: “One”: UpGrade said: No. I checked: it was not changed.");
            }
            _ => panic!("{case}"),
        }
    }
}

#[tokio::test]
async fn several_of_which_some_are_changed_are_not_called_unchanged() {
    let bench = Bench::start(Version::V6_5).await;
    bench.upgrade.has("One", "cancelled");
    bench.upgrade.has("Two", "cancelled");
    let asked = json!({ "experiments": ["One", "Two"], "status": "archived" });
    let record = bench.approved("update_experiment_status", asked).await;
    bench.does("update_experiment_status", json!({ "experiment": "One", "status": "archived" })).await;
    let probed = bench.action("update_experiment_status").probe(&record).await;
    assert_ne!(probed, Probed::DidNotHappen);
}

#[tokio::test]
async fn participants_are_claimed_only_as_far_as_the_answer_names_them() {
    let bench = Bench::start(Version::V6_5).await;
    bench.upgrade.has("Math Hints", "enrolling");
    bench.does("init_experiment_user", json!({ "user": "u1" })).await;
    let place = json!({ "user": "u1", "site": "SelectSection", "target": "absolute_value_plot_equality" });
    let cases = [
        ("init_experiment_user", json!({ "user": "u1", "group": { "classId": ["5B"] } }), "POST /api/v6/init"),
        ("mark_decision_point", place, "POST /api/v6/mark"),
    ];
    for (name, asked, request) in cases {
        for body in [json!(null), json!({}), json!([]), json!({ "id": "u2", "userId": "u2" }), json!("ok")] {
            let record = bench.approved(name, asked.clone()).await;
            bench.upgrade.answers_next(200, body.clone(), When::BeforeEffect, request);
            let performed = bench.performs(&record).await;
            assert!(matches!(performed, Performed::NoAnswer { .. }), "{name} {body}: {performed:?}");
        }
        for status in [400, 409, 429] {
            let record = bench.approved(name, asked.clone()).await;
            bench.upgrade.answers_next(status, json!({ "message": "No way." }), When::BeforeEffect, request);
            let said = failure(bench.performs(&record).await);
            assert!(!said.to_lowercase().contains("nothing was changed"), "{name} {status}: {said}");
            assert!(said.contains("couldn't check whether anything changed"), "{name} {status}: {said}");
        }
    }
}
