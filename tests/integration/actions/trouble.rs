//! Lost answers, dead servers, targets that changed: what is claimed has to be true.

use std::time::Duration;

use countersign::graph::action::{ActionRecord, Outcome, Performed, Probed, Recovery};
use countersign_sandbox::{
    faults::{Down, When},
    upgrade::Version,
};
use insta::assert_snapshot;
use serde_json::json;

use super::{Bench, failure, parameters};

const WRITES: [&str; 4] = ["create_experiment", "update_experiment", "update_experiment_status", "delete_experiment"];

async fn ready(version: Version, name: &str) -> (Bench, ActionRecord) {
    let bench = Bench::start(version).await;
    bench.upgrade.has("Math Hints", "inactive");
    let record = bench.approved(name, parameters(name)).await;
    (bench, record)
}

#[tokio::test]
async fn a_lost_answer_is_settled_by_reading_back() {
    for version in [Version::V6_5, Version::V6_2] {
        for name in WRITES {
            let (bench, record) = ready(version, name).await;
            bench.upgrade.loses_next_answer();
            let performed = bench.performs(&record).await;
            assert!(matches!(performed, Performed::NoAnswer { .. }), "{name}: {performed:?}");
            let probed = bench.action(name).probe(&record).await;
            let Probed::Happened(Outcome::Done { summary, .. }) = probed else { panic!("{name}: {probed:?}") };
            assert_eq!(summary.words(), record.card.done);
            assert_eq!(bench.changes(), 1, "{name}");
        }
    }
}

#[tokio::test]
async fn a_gateway_error_before_the_change_reads_back_as_not_done() {
    for name in WRITES {
        for status in [502, 503, 504] {
            let (bench, record) = ready(Version::V6_5, name).await;
            let only = match name {
                "update_experiment" => "PUT ",
                "delete_experiment" => "DELETE ",
                "create_experiment" => "POST /api/experiments ",
                "update_experiment_status" => "POST /api/experiments/state",
                _ => "POST ",
            };
            bench.upgrade.fails_next(status, When::BeforeEffect, Some(only));
            let performed = bench.performs(&record).await;
            assert!(matches!(performed, Performed::NoAnswer { .. }), "{name}: {performed:?}");
            assert_eq!(bench.action(name).probe(&record).await, Probed::DidNotHappen, "{name}");
            assert_eq!(bench.changes(), 0);
        }
    }
}

#[tokio::test]
async fn a_server_that_is_gone_was_certainly_not_changed() {
    let each = WRITES.map(async |name| {
        let (bench, record) = ready(Version::V6_5, name).await;
        let Bench { upgrade, registry } = bench;
        upgrade.stop().await;
        let said = failure(registry.actions[name].perform(&record).await);
        assert!(said.starts_with("UpGrade isn't answering (Connection refused"), "{said}");
        assert!(said.contains("Nothing was changed."), "{said}");
        let probed = registry.actions[name].probe(&record).await;
        assert!(matches!(probed, Probed::CannotTell { .. }), "{name}: {probed:?}");
    });
    futures_util::future::join_all(each).await;
}

#[tokio::test]
async fn a_server_that_hangs_leaves_the_change_open() {
    let bench = Bench::patient(Version::V6_5, Duration::from_millis(400)).await;
    bench.upgrade.has("Math Hints", "inactive");
    let record = bench.approved("delete_experiment", parameters("delete_experiment")).await;
    bench.upgrade.hangs_next();
    let performed = bench.action("delete_experiment").perform(&record).await;
    assert_eq!(performed, Performed::NoAnswer { detail: "no answer in time".into() });
    let recovery = bench.action("delete_experiment").recovery();
    assert_eq!(recovery, Recovery::Probe { in_flight: Duration::from_millis(2400), repeatable: false });
}

#[tokio::test]
async fn creating_again_with_the_same_record_makes_nothing_more() {
    for version in [Version::V6_5, Version::V6_2] {
        let (bench, record) = ready(version, "create_experiment").await;
        let once = bench.performs(&record).await;
        let again = bench.performs(&record).await;
        assert_eq!(once, again);
        assert_eq!(bench.changes(), 1);
        assert_eq!(bench.upgrade.experiment("New").unwrap()["conditions"].as_array().unwrap().len(), 2);
    }
}

#[tokio::test]
async fn a_target_that_changed_is_noticed() {
    let bench = Bench::start(Version::V6_5).await;
    bench.upgrade.has("Math Hints", "inactive");
    let update = bench.approved("update_experiment", parameters("update_experiment")).await;
    let start = bench.approved("update_experiment_status", parameters("update_experiment_status")).await;
    let delete = bench.approved("delete_experiment", parameters("delete_experiment")).await;
    bench.does("update_experiment", json!({ "experiment": "Math Hints", "weights": "60/40" })).await;
    for record in [&update, &start, &delete] {
        let now = bench.action(&record.name).preconditions(record).await.unwrap();
        assert_ne!(now, *record.preconditions, "{}", record.name);
    }
    assert_snapshot!(
        failure(bench.action("update_experiment").perform(&update).await),
        @"“Math Hints” changed after this card was posted, so nothing was done. Ask again for a new card."
    );
    let probed = bench.action("update_experiment").probe(&update).await;
    let Probed::Otherwise { evidence } = probed else { panic!("{probed:?}") };
    assert_snapshot!(evidence.words(), @"Checked “Math Hints”: changed: none; not changed: Conditions.");
}

#[tokio::test]
async fn a_target_that_is_gone_is_said_to_be_gone() {
    for version in [Version::V6_5, Version::V6_2] {
        for name in ["update_experiment", "update_experiment_status", "delete_experiment"] {
            let (bench, record) = ready(version, name).await;
            bench.does("delete_experiment", json!({ "experiment": "Math Hints" })).await;
            let gone = "“Math Hints” no longer exists, so nothing was changed.";
            assert_eq!(failure(bench.performs(&record).await), gone, "{name} {version:?}");
            // Gone between the check and the request.
            let said = failure(bench.action(name).perform(&record).await);
            let expected = match name {
                "update_experiment" => gone,
                "delete_experiment" => {
                    "“Math Hints” no longer exists. UpGrade couldn't find it when I tried to delete it. Someone else may have deleted it."
                }
                _ => "“Math Hints” no longer exists: UpGrade couldn't find it when I tried to change it.",
            };
            assert_eq!(said, expected, "{name} {version:?}");
        }
    }
}

#[tokio::test]
async fn undo_takes_a_start_back_as_far_as_the_rules_go() {
    let (bench, record) = ready(Version::V6_5, "update_experiment_status").await;
    bench.performs(&record).await;
    let undo = record.undo.unwrap();
    assert_eq!(undo.label, "Undo: stop experiment");
    assert_eq!(
        bench.does(&undo.name, undo.parameters.clone()).await,
        "Stopped “Math Hints”: no new users are enrolled."
    );
}

#[tokio::test]
async fn a_platform_that_is_away_proposes_nothing() {
    let (bench, _) = ready(Version::V6_5, "delete_experiment").await;
    bench.upgrade.is_down(Some(Down::Unavailable));
    assert_snapshot!(bench.refuses("delete_experiment", parameters("delete_experiment")).await, @"
    unavailable: UpGrade isn't answering (status 503), so I couldn't look that up.
    Try again in a minute. If it keeps failing, contact your administrator.
    ");
}

#[tokio::test]
async fn a_token_that_is_not_accepted_is_said_plainly() {
    let bench = Bench::start(Version::V6_5).await;
    let config = countersign::experiments::upgrade::UpgradeConfig {
        base_url: bench.upgrade.url().parse().unwrap(),
        sign_in: countersign::experiments::upgrade::sign_in::SignIn::Nobody,
        timeout: Duration::from_secs(5),
    };
    let client = countersign::experiments::upgrade::client::UpgradeClient::new(config).unwrap();
    let registry = super::registry(client);
    let error = registry.tools["get_experiment_names"].call(&json!({}), None).await.unwrap_err();
    assert!(!error.transient);
    assert!(error.reply.words().starts_with("UpGrade doesn't accept my credentials"));
}
