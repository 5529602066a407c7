//! Connections that end, and answers that do not.

use std::time::Duration;

use countersign::{
    experiments::upgrade::{UpgradeConfig, client::UpgradeClient, error::Error, sign_in::SignIn, status::Status},
    graph::action::{Outcome, Performed, Probed},
};
use countersign_sandbox::{
    faults::{Fault, When},
    upgrade::{Options, SandboxUpgrade, Version},
};
use serde_json::json;

use super::Bench;

#[tokio::test]
async fn a_change_does_not_go_where_a_read_has_ended_the_connection() {
    for version in [Version::V6_2, Version::V6_5] {
        let bench = Bench::start(version).await;
        bench.upgrade.ends_connections_after_errors();
        let new = json!({ "name": "New", "context": "livehint-ai", "site": "chat", "target": "chat-tone" });
        let record = bench.approved("create_experiment", new).await;
        // It looks whether the experiment is there (404, after which the connection is closed), then creates it.
        let performed = bench.performs(&record).await;
        assert!(matches!(performed, Performed::Ended(Outcome::Done { .. })), "{version:?}: {performed:?}");
        let creations = bench.upgrade.ledger().into_iter().filter(|entry| entry.path == "/api/experiments");
        assert_eq!(creations.filter(|entry| entry.method == "POST").count(), 1);
    }
}

/// A client that reads a megabyte.
async fn modest() -> (SandboxUpgrade, UpgradeClient) {
    let upgrade = SandboxUpgrade::start(Options::default()).await.unwrap();
    let base_url = upgrade.url().parse().unwrap();
    let config = UpgradeConfig { base_url, sign_in: SignIn::Nobody, timeout: Duration::from_secs(20) };
    let client = UpgradeClient::new(config).unwrap().reading_at_most(1 << 20);
    (upgrade, client)
}

fn flood(status: u16, when: When) -> Fault {
    Fault::Flood { status, pause_ms: 1 }.at(when)
}

#[tokio::test]
async fn an_answer_without_an_end_is_not_read() {
    let (upgrade, client) = modest().await;
    for status in [200, 404, 500] {
        upgrade.will("", flood(status, When::BeforeEffect));
        let reason = "its answer is longer than the limit of 1 MB".to_owned();
        assert_eq!(client.names().await.unwrap_err(), Error::Decode { reason }, "{status}");
    }
    assert_eq!(upgrade.ledger().len(), 3, "and it is not asked for again");
}

#[tokio::test]
async fn an_answer_without_an_end_leaves_a_change_open() {
    let (upgrade, client) = modest().await;
    let id = upgrade.has("Math Hints", "inactive").parse().unwrap();
    upgrade.will("", flood(200, When::AfterEffect));
    let changed = client.set_state(id, Status::Enrolling, None).await;
    assert!(
        matches!(&changed, Err(Error::NoAnswer { reason }) if reason.contains("longer than the limit of 1 MB")),
        "{changed:?}"
    );
    assert_eq!(client.single(id).await.unwrap().view.state, Status::Enrolling);
    assert_eq!(upgrade.effects().len(), 1);
}

#[tokio::test]
async fn an_answer_without_an_end_is_settled_by_reading_back() {
    let bench = Bench::start(Version::V6_5).await;
    bench.upgrade.has("Math Hints", "inactive");
    let start = json!({ "experiment": "Math Hints", "status": "start" });
    let record = bench.approved("update_experiment_status", start).await;
    bench.upgrade.will("", flood(200, When::AfterEffect));
    let performed = bench.performs(&record).await;
    assert!(matches!(performed, Performed::NoAnswer { .. }), "{performed:?}");
    let probed = bench.action("update_experiment_status").probe(&record).await;
    assert!(matches!(probed, Probed::Happened(_)), "{probed:?}");
}

#[tokio::test]
async fn an_answer_that_drips_ends_with_the_time() {
    let upgrade = SandboxUpgrade::start(Options::default()).await.unwrap();
    let base_url = upgrade.url().parse().unwrap();
    let config = UpgradeConfig { base_url, sign_in: SignIn::Nobody, timeout: Duration::from_millis(500) };
    let client = UpgradeClient::new(config).unwrap();
    let id = upgrade.has("Math Hints", "inactive").parse().unwrap();
    let drip = Fault::Flood { status: 200, pause_ms: 50 };
    upgrade.will("", drip.after());
    let changed = client.set_state(id, Status::Enrolling, None).await;
    assert_eq!(changed.unwrap_err(), Error::NoAnswer { reason: "no answer in time".into() });
}
