//! What the tools read, and how it is said.

use countersign::experiments::{
    listing::{Form, ListArguments},
    replies::{answers, contexts, details, lists},
};
use countersign_sandbox::{faults::Down, upgrade::Version};
use insta::assert_snapshot;
use serde_json::{Value, json};

use super::{Bench, read};

async fn call(bench: &Bench, tool: &str, arguments: Value) -> Value {
    bench.registry.tools[tool].call(&arguments, None).await.expect("the tool answers")
}

#[tokio::test]
async fn every_tool_answers_and_is_said() {
    for version in [Version::V6_5, Version::V6_2] {
        let bench = Bench::start(version).await;
        bench.upgrade.has("Math Hints", "inactive");
        bench.upgrade.has("Running Test", "enrolling");

        let health = call(&bench, "check_upgrade_health", json!({})).await;
        assert_eq!(
            answers::health_reply(&health).words(),
            format!("UpGrade is running: A/B Testing Backend, version {}.", version.text())
        );
        let names = call(&bench, "get_experiment_names", Value::Null).await;
        reads!(answers::names_reply(&names).words(), @r"
        2 experiments:
        • Math Hints
        • Running Test
        ");
        let contexts = call(&bench, "get_context_metadata", json!({})).await;
        reads!(contexts::contexts_reply(&contexts, Some("livehint-ai")).words(), @r"
        livehint-ai
        Conditions: control, tutor-a, tutor-b
        Sites: chat
        Targets: chat-tone
        Group types: classId
        ");
        let running = call(&bench, "get_all_experiments", json!({ "status": "running" })).await;
        let listed =
            lists::list_reply(&running, &ListArguments { status: Some("running".into()), ..ListArguments::default() });
        reads!(listed.words(), @r"
        1 experiment (running):
        Name | Status | Context | Conditions
        Running Test | running | assign-prog | control 50%, variant 50%
        ");
        let details = call(&bench, "get_experiment_details", json!({ "experiment_id": "running test" })).await;
        let said = read(&details::details_reply(&details, Form::Normal));
        assert!(said.contains("\nConditions: control 50% (0 enrolled), variant 50% (0 enrolled)\n"), "{said}");
        assert!(said.contains("\nEnrolled: 0\n"), "{said}");
        assert!(said.contains("\n[Stop → stop Running Test]\n"), "{said}");
        assert_eq!(bench.changes(), 0);
    }
}

#[tokio::test]
async fn an_unknown_name_is_answered_with_its_neighbours() {
    let bench = Bench::start(Version::V6_5).await;
    bench.upgrade.has("Math Hints", "inactive");
    let details = &bench.registry.tools["get_experiment_details"];
    let error = details.call(&json!({ "experiment_id": "Mat Hints" }), None).await.unwrap_err();
    assert!(!error.transient);
    assert_snapshot!(read(&error.reply), @r"
    No experiment is called “Mat Hints”. Did you mean “Math Hints”?
    [Math Hints → show Math Hints]
    ");
}

#[tokio::test]
async fn a_platform_that_is_away_is_asked_again_and_then_said_to_be_away() {
    let bench = Bench::start(Version::V6_5).await;
    for (down, reason) in [(Down::Unavailable, "status 503"), (Down::Closed, "")] {
        bench.upgrade.is_down(Some(down));
        let error = bench.registry.tools["get_experiment_names"].call(&json!({}), None).await.unwrap_err();
        assert!(error.transient);
        let said = error.reply.words();
        assert!(said.starts_with(&format!("UpGrade isn't answering ({reason}")), "{said}");
    }
}

#[tokio::test]
async fn every_schema_is_an_object_without_references() {
    let bench = Bench::start(Version::V6_5).await;
    let schemas = bench.registry.tools.values().map(|tool| (tool.name(), tool.schema()));
    let schemas = schemas.chain(bench.registry.actions.values().map(|action| (action.name(), action.schema())));
    let mut count = 0;
    for (name, schema) in schemas {
        assert_eq!(schema["type"], "object", "{name}");
        assert!(!schema.to_string().contains("$ref"), "{name}: {schema}");
        count += 1;
    }
    assert_eq!(count, 27);
}
