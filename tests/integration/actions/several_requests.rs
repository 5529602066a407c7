//! Changes that take several requests: an answer that is lost between them, and a request that is refused.

use countersign::graph::action::{Outcome, Performed, Probed};
use countersign_sandbox::{
    faults::{Fault, When},
    upgrade::Version,
};
use insta::assert_snapshot;
use serde_json::{Value, json};

use super::{Bench, failure};

const BOTH: [Version; 2] = [Version::V6_5, Version::V6_2];

fn rich() -> Value {
    json!({
        "name": "New", "context": "livehint-ai", "site": "chat", "target": "chat-tone", "post_rule": "assign tutor-a",
        "conditions": ["tutor-a", "tutor-b"],
        "inclusion": ["u1", "classId:5B"], "exclusion": ["u9"],
        "payloads": { "tutor-a": "calm" }, "ends_after_users": 10,
    })
}

fn members() -> Value {
    json!({
        "experiment": "Math Hints", "description": "new", "add_to_inclusion": ["u1", "class 5B"], "exclusion": "u9",
    })
}

/// The members of one kind of list, in either version's shape.
fn listed(experiment: &Value, field: &str) -> Vec<String> {
    let links = match &experiment[field] {
        Value::Array(links) => links.clone(),
        link => vec![link.clone()],
    };
    let mut all = Vec::new();
    for link in links {
        let segment = &link["segment"];
        let users = segment["individualForSegment"].as_array().unwrap().iter().map(|user| user["userId"].to_string());
        let groups = segment["groupForSegment"].as_array().unwrap().iter().map(|group| group["groupId"].to_string());
        all.extend(users.chain(groups));
    }
    all.sort();
    all
}

/// Performs until it is known how it ended, as the engine does: reading back after each lost answer.
async fn to_the_end(bench: &Bench, name: &str, parameters: Value) -> Outcome {
    let record = bench.approved(name, parameters).await;
    for _ in 0..3 {
        match bench.action(name).perform(&record).await {
            Performed::Ended(outcome) => return outcome,
            Performed::NoAnswer { .. } => match bench.action(name).probe(&record).await {
                Probed::Happened(outcome) => return outcome,
                Probed::DidNotHappen | Probed::Unfinished { .. } => {}
                Probed::Otherwise { evidence } | Probed::CannotTell { evidence } => panic!("{}", evidence.words()),
            },
        }
    }
    panic!("it does not come to an end");
}

#[tokio::test]
async fn whichever_answer_is_lost_each_part_is_there_once() {
    for version in BOTH {
        for (name, parameters, experiment) in
            [("create_experiment", rich(), "New"), ("update_experiment", members(), "Math Hints")]
        {
            for when in [When::BeforeEffect, When::AfterEffect] {
                for only in ["POST /api/experiments", "PUT ", "inclusionList", "exclusionList"] {
                    let bench = Bench::start(version).await;
                    bench.upgrade.has("Math Hints", "inactive");
                    bench.upgrade.will(only, Fault::Proxy(502).at(when));
                    let outcome = to_the_end(&bench, name, parameters.clone()).await;
                    let case = format!("{version:?} {name} {when:?} {only}");
                    assert!(matches!(outcome, Outcome::Done { .. }), "{case}: {outcome:?}");
                    let made = bench.upgrade.experiment(experiment).unwrap();
                    assert_eq!(listed(&made, "experimentSegmentInclusion"), ["\"5B\"", "\"u1\""], "{case}");
                    assert_eq!(listed(&made, "experimentSegmentExclusion"), ["\"u9\""], "{case}");
                    assert_eq!(made["conditions"].as_array().unwrap().len(), 2, "{case}");
                    if name == "create_experiment" {
                        assert_eq!(made["revertTo"], made["conditions"][0]["id"], "{case}");
                        assert_eq!(made["conditionPayloads"][0]["payload"]["value"], "calm", "{case}");
                    }
                }
            }
        }
    }
}

#[tokio::test]
async fn several_experiments_are_each_changed_once() {
    for version in BOTH {
        for when in [When::BeforeEffect, When::AfterEffect] {
            let bench = Bench::start(version).await;
            for name in ["One", "Two", "Three"] {
                bench.upgrade.has(name, "cancelled");
            }
            bench.does("update_experiment_status", json!({ "experiment": "One", "status": "archive" })).await;
            bench.upgrade.will("POST /api/experiments/state", Fault::Proxy(502).at(when));
            let asked = json!({ "experiments": ["one", "Two", "Three"], "status": "archived" });
            let outcome = to_the_end(&bench, "update_experiment_status", asked).await;
            assert_eq!(outcome.summary().words(), "Archived 2 experiments: “Two”, “Three”.");
            assert_eq!(bench.changes(), 3, "{version:?} {when:?}");
        }
    }
}

#[tokio::test]
async fn a_part_that_is_refused_is_said() {
    let bench = Bench::start(Version::V6_5).await;
    bench.upgrade.has("Math Hints", "inactive");
    let mut said = Vec::new();
    for (name, parameters) in [("create_experiment", rich()), ("update_experiment", members())] {
        let record = bench.approved(name, parameters).await;
        bench.upgrade.will("exclusionList", Fault::Proxy(400));
        said.push(failure(bench.performs(&record).await));
    }
    assert_snapshot!(said.join("\n"), @"
    “New” was created, but without its exclusion list. UpGrade said: a web page with status 400, not an answer; check the address. Ask me to update it with what is missing.
    “Math Hints” was changed, but not its exclusion list. UpGrade said: a web page with status 400, not an answer; check the address. Ask me again for the rest.
    ");
}

#[tokio::test]
async fn members_are_added_moved_and_removed() {
    for version in BOTH {
        let bench = Bench::start(version).await;
        bench.upgrade.has("Math Hints", "inactive");
        let included = || listed(&bench.upgrade.experiment("Math Hints").unwrap(), "experimentSegmentInclusion");
        let change = async |key: &str, who: Value| {
            bench.does("update_experiment", json!({ "experiment": "Math Hints", key: who })).await;
        };
        change("add_to_inclusion", json!(["u1", "u2", "class 5B"])).await;
        change("add_to_inclusion", json!(["u3", "school 7"])).await;
        assert_eq!(included(), ["\"5B\"", "\"7\"", "\"u1\"", "\"u2\"", "\"u3\""]);
        change("remove_from_inclusion", json!(["u2", "classId:5B"])).await;
        assert_eq!(included(), ["\"7\"", "\"u1\"", "\"u3\""]);
        change("inclusion", json!({ "Individual": ["u4"] })).await;
        assert_eq!(included(), ["\"u4\""]);
    }
}
