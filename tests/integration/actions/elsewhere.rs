//! Changes of other processes and people, while names and the overview of all experiments are in memory.

use countersign::experiments::upgrade::{
    UpgradeConfig, client::UpgradeClient, experiment::ExperimentId, sign_in::SignIn,
};
use countersign_sandbox::{faults, upgrade::Version};
use serde_json::json;

use super::{Bench, failure};

/// A client of another process.
fn other_process(bench: &Bench) -> UpgradeClient {
    let base_url = bench.upgrade.url().parse().unwrap();
    let sign_in = SignIn::Token("token".into());
    UpgradeClient::new(UpgradeConfig { base_url, sign_in, timeout: UpgradeConfig::TIMEOUT }).unwrap()
}

fn reads_of_all(bench: &Bench) -> usize {
    let ledger = bench.upgrade.ledger();
    ledger.iter().filter(|entry| entry.method == "GET" && entry.path == "/api/experiments").count()
}

#[tokio::test]
async fn a_renamed_experiment_is_only_found_under_its_new_name() {
    for version in [Version::V6_5, Version::V6_2] {
        let bench = Bench::start(version).await;
        let id: ExperimentId = bench.upgrade.has("Math Hints", "inactive").parse().unwrap();
        let start = |name: &str| json!({ "experiment": name, "status": "start" });
        bench.proposes("update_experiment_status", start("Math Hints")).await;

        let other = other_process(&bench);
        let mut raw = other.single(id).await.unwrap().raw().unwrap();
        raw["name"] = json!("Algebra");
        other.update(id, &raw).await.unwrap();
        let refused = bench.refuses("update_experiment_status", start("Math Hints")).await;
        assert!(refused.starts_with("No experiment is called “Math Hints”"), "{refused}");
        let found = bench.proposes("update_experiment_status", start("Algebra")).await;
        assert_eq!(found.card.title, "Start “Algebra”?");
    }
}

#[tokio::test]
async fn after_a_change_with_an_unknown_outcome_everything_is_read_again() {
    let bench = Bench::start(Version::V6_5).await;
    bench.upgrade.has("Math Hints", "inactive");
    bench.upgrade.has("Rival", "inactive");
    let start = |name: &str| json!({ "experiment": name, "status": "start" });
    let approved = bench.approved("update_experiment_status", start("Rival")).await;
    bench.proposes("update_experiment_status", start("Math Hints")).await;
    assert_eq!(reads_of_all(&bench), 1, "the second card needs no other read");

    // The status is changed, although the answer is an error.
    bench.upgrade.fails_next(403, faults::When::AfterEffect, Some("POST /api/experiments/state"));
    bench.performs(&approved).await;
    let card = super::card(&bench.proposes("update_experiment_status", start("Math Hints")).await.card);
    assert!(card.contains("Overlapping experiments: “Rival”, running"), "{card}");
    assert_eq!(reads_of_all(&bench), 2);
}

#[tokio::test]
async fn an_experiment_that_was_deleted_elsewhere_is_not_found() {
    let bench = Bench::start(Version::V6_5).await;
    let id = bench.upgrade.has("Math Hints", "inactive");
    let start = json!({ "experiment": "Math Hints", "status": "start" });
    let approved = bench.approved("update_experiment_status", start.clone()).await;
    bench.upgrade.forgets(&id);
    let refused = bench.refuses("update_experiment_status", start).await;
    assert!(refused.starts_with("No experiment is called “Math Hints”"), "{refused}");
    assert!(failure(bench.performs(&approved).await).contains("Math Hints"), "nor is it changed");
    assert_eq!(bench.changes(), 0);
}

#[tokio::test]
async fn what_cannot_be_undone_is_never_guessed() {
    let bench = Bench::start(Version::V6_5).await;
    bench.upgrade.has("Math Hints", "inactive");
    let becomes = |status: &str| json!({ "experiment": "Math Hints", "status": status });
    bench.proposes("update_experiment_status", becomes("start")).await;
    bench.upgrade.has("Math Hints", "inactive");
    for (action, parameters) in
        [("update_experiment_status", becomes("cancel")), ("delete_experiment", json!({ "experiment": "Math Hints" }))]
    {
        let refused = bench.refuses(action, parameters).await;
        assert!(refused.starts_with("Several experiments are called “Math Hints”."), "{refused}");
    }
}
