//! The stand-in going wrong on purpose, and its ledger telling what happened all the same.

use std::time::{Duration, Instant};

use countersign_sandbox::{
    faults::{Down, Fault, When},
    upgrade::{Options, SandboxUpgrade},
};
use serde_json::{Value, json};

use super::replay::http;

async fn delete(sandbox: &SandboxUpgrade, id: &str) -> reqwest::Result<reqwest::Response> {
    http().delete(format!("{}/experiments/{id}", sandbox.url())).send().await
}

async fn names(sandbox: &SandboxUpgrade) -> reqwest::Result<reqwest::Response> {
    http().get(format!("{}/experiments/names", sandbox.url())).send().await
}

#[tokio::test]
async fn a_lost_answer_leaves_its_effect_and_its_line_in_the_ledger() {
    let sandbox = SandboxUpgrade::start(Options::default()).await.unwrap();
    let id = sandbox.has("Math Hints", "inactive");
    sandbox.loses_next_answer();
    assert!(names(&sandbox).await.is_ok(), "a read does not use the fault up");
    let error = delete(&sandbox, &id).await.unwrap_err();
    assert!(error.is_request(), "{error:?}");
    assert!(!sandbox.contains("Math Hints"));
    let effects = sandbox.effects();
    assert_eq!(effects.len(), 1);
    assert_eq!((effects[0].method.as_str(), effects[0].status, effects[0].effect), ("DELETE", None, true));
    assert_eq!(delete(&sandbox, &id).await.unwrap().status(), 404, "the fault is gone");
}

#[tokio::test]
async fn a_failure_comes_before_or_after_the_effect() {
    let sandbox = SandboxUpgrade::start(Options::default()).await.unwrap();
    let id = sandbox.has("Math Hints", "inactive");
    sandbox.fails_next(502, When::BeforeEffect, Some("DELETE /api/experiments"));
    assert_eq!(names(&sandbox).await.unwrap().status(), 200, "another path");
    assert_eq!(delete(&sandbox, &id).await.unwrap().status(), 502);
    assert!(sandbox.contains("Math Hints"));
    sandbox.fails_next(502, When::AfterEffect, None);
    assert_eq!(delete(&sandbox, &id).await.unwrap().status(), 502);
    assert!(!sandbox.contains("Math Hints"));
    assert_eq!(sandbox.effects().len(), 1);
}

#[tokio::test]
async fn a_server_is_down_in_two_ways_until_it_is_well() {
    let sandbox = SandboxUpgrade::start(Options::default()).await.unwrap();
    sandbox.is_down(Some(Down::Closed));
    assert!(names(&sandbox).await.unwrap_err().is_request());
    sandbox.is_down(Some(Down::Unavailable));
    assert_eq!(names(&sandbox).await.unwrap().status(), 503);
    sandbox.is_well();
    assert_eq!(names(&sandbox).await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_hanging_request_has_no_effect_and_stops_with_the_server() {
    let sandbox = SandboxUpgrade::start(Options::default()).await.unwrap();
    let id = sandbox.has("Math Hints", "inactive");
    sandbox.hangs_next();
    let url = format!("{}/experiments/{id}", sandbox.url());
    let impatient = http().delete(&url).timeout(Duration::from_millis(50)).send().await.unwrap_err();
    assert!(impatient.is_timeout());
    assert!(sandbox.contains("Math Hints"));
    sandbox.hangs_next();
    let hanging = tokio::spawn(http().delete(&url).send());
    while sandbox.ledger().len() < 2 {
        tokio::task::yield_now().await;
    }
    sandbox.stop().await;
    assert!(hanging.await.unwrap().is_err());
}

#[tokio::test]
async fn a_slow_server_answers_in_the_end() {
    let sandbox = SandboxUpgrade::start(Options::default()).await.unwrap();
    sandbox.is_slow(Duration::from_millis(40));
    let before = Instant::now();
    assert_eq!(names(&sandbox).await.unwrap().status(), 200);
    assert!(before.elapsed() >= Duration::from_millis(40));
}

#[tokio::test]
async fn another_process_reads_the_ledger() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ledger.jsonl");
    let options = Options { ledger_file: Some(file.clone()), ..Options::default() };
    let sandbox = SandboxUpgrade::start(options).await.unwrap();
    let id = sandbox.has("Math Hints", "inactive");
    let root = sandbox.url().replace("/api", "/sandbox");
    sandbox.will("DELETE", Fault::LostAnswer);
    assert!(delete(&sandbox, &id).await.is_err());
    let told: Vec<Value> = http().get(format!("{root}/ledger")).send().await.unwrap().json().await.unwrap();
    assert_eq!(told.len(), 1, "control calls are not in it");
    assert_eq!((&told[0]["effect"], &told[0]["status"]), (&json!(true), &Value::Null));
    let line: Value = serde_json::from_str(std::fs::read_to_string(file).unwrap().trim()).unwrap();
    assert_eq!(line, told[0]);
}
