//! The trace of a mail: one run, each step once, with the state before and after.

use super::support::*;

const DRAFT: &str = "The small plan costs 5 a month.";

#[tokio::test]
async fn one_run_has_one_trace_id() {
    let world = World::automatic(vec![classifies("inquiry", 0.9), drafts(DRAFT)]);
    let thread = world.arrives(raw("m1", "Prices", "How much is it?")).await;
    let mut runs: Vec<_> = world.steps(&thread).await.into_iter().map(|step| step.run).collect();
    runs.dedup();
    assert_eq!(runs.len(), 1);
    assert_eq!(world.card(&thread).await.run, runs[0], "also of the answer");
}

#[tokio::test]
async fn each_step_is_recorded_once_with_the_state_before_and_after() {
    let world = World::with(vec![classifies("inquiry", 0.9), drafts(DRAFT)]);
    let thread = world.arrives(raw("m1", "Prices", "How much is it?")).await;
    let mut state = serde_json::Value::Null;
    let mut classes = Vec::new();
    for step in world.steps(&thread).await {
        let delta: json_patch::Patch = step.delta.read().unwrap();
        json_patch::patch(&mut state, &delta).unwrap();
        classes.push((step.node, state["state"]["classification"].clone()));
    }
    insta::assert_snapshot!(
        classes.iter().map(|(node, class)| format!("{node}: {class}")).collect::<Vec<_>>().join("\n"),
        @r#"
    start: null
    classify: "inquiry"
    retrieve: "inquiry"
    decide: "inquiry"
    execute_tools: "inquiry"
    generate: "inquiry"
    review: "inquiry"
    "#
    );
    assert_eq!(
        serde_json::from_value::<crate::state::MailState>(state["state"].clone()).unwrap(),
        world.state(&thread).await
    );
}

#[tokio::test]
async fn the_steps_have_the_facts_of_the_contract() {
    let world = World::automatic(vec![classifies("inquiry", 0.9), drafts(DRAFT)]);
    let thread = world.arrives(raw("m1", "Prices", "How much is it?")).await;
    let steps = world.state(&thread).await.steps;
    let facts = steps.iter().map(|step| {
        let facts: Vec<_> = step.facts.keys().map(String::as_str).collect();
        format!("{}: {}", step.step, facts.join(", "))
    });
    insta::assert_snapshot!(facts.collect::<Vec<_>>().join("\n"), @r"
    classify: classification, confidence, reasoning
    retrieve: context_count
    decide: fallback, reasoning, selected_tools
    execute: tools
    generate: generation_confidence, response_length, tone
    review: reasoning, requires_approval
    dispatch: action
    ");
    assert_eq!(world.entry("m1").await.steps, steps, "the list has them for figures");
}

#[tokio::test]
async fn the_usage_of_each_call_is_recorded() {
    let world = World::with(vec![classifies("inquiry", 0.9), drafts(DRAFT)]);
    let thread = world.arrives(raw("m1", "Prices", "How much is it?")).await;
    let used: Vec<_> =
        world.steps(&thread).await.into_iter().filter(|step| step.usage.is_some()).map(|step| step.node).collect();
    assert_eq!(used, ["classify", "generate"]);
}
