//! Tests of rounds with a scripted model: the tools it is offered, and the effects of its calls in any order.

use std::sync::Arc;

use countersign_capabilities::Registry;
use countersign_core::reply::Text;
use countersign_graph::action::Status;
use countersign_model::{Block, KnownBlock, Message, Request, Role, ToolChoice};
use insta::assert_snapshot;
use serde_json::{Value, json};

use super::{
    super::tools::{self, Kit, MAX_OFFER_BYTES},
    harness::{Fakes, Harness, Script, calls, experiments, finds, says},
};
use crate::state::AgentState;

/// Returns the names of the tools that a request offers.
fn offered(script: &Script, request: usize) -> Vec<String> {
    script.asked.lock().unwrap()[request].tools.iter().map(|tool| tool.name.clone()).collect()
}

/// Returns the results of the calls before a request: their text, and true for an error.
fn results(script: &Script, request: usize) -> Vec<(String, bool)> {
    let asked: &Vec<Request> = &script.asked.lock().unwrap();
    let last = asked[request].exchange.last().expect("an exchange");
    let result = |block: &Block| match block {
        Block::Known(KnownBlock::ToolResult { content, is_error, .. }) => (content.clone(), *is_error),
        other => panic!("{other:?}"),
    };
    last.content.iter().map(result).collect()
}

/// Returns a proposal to start Math Hints.
fn start() -> (&'static str, Value) {
    ("propose_update_experiment_status", json!({ "experiment": "Math Hints", "status": "enrolling" }))
}

#[tokio::test]
async fn the_order_of_calls_in_a_response_does_not_matter() {
    let orders = [
        calls([("update_action_params", json!({ "key": "status", "value": "enrolling" })), start()]),
        calls([start(), ("update_action_params", json!({ "key": "status", "value": "enrolling" }))]),
        calls([("offer_next_steps", json!({ "steps": [] })), start()]),
        calls([
            (
                "analyze_user_request",
                json!({ "intent_type": "needs_info", "confidence": 0.9, "user_request_summary": "…" }),
            ),
            start(),
        ]),
        calls([
            start(),
            (
                "analyze_user_request",
                json!({ "intent_type": "needs_info", "confidence": 0.9, "user_request_summary": "…" }),
            ),
        ]),
        calls([start(), start()]),
    ];
    for answer in orders {
        let script = Script::of([answer]);
        let mut harness = Harness::with(script.clone());
        let told = harness.says("could we get math hints going?").await;
        assert_eq!(told.read(), "card: Start “Math Hints”?");
        assert_eq!(harness.state.on_card.unwrap().params["status"], "enrolling");
        assert_eq!(script.calls(), 1);
    }
}

#[tokio::test]
async fn calls_in_several_rounds_lead_to_the_same_card() {
    let script = Script::of([
        finds("needs_info", 0.9),
        calls([("count_things", json!({}))]),
        calls([("propose_update_experiment_status", json!({ "experiment": "Math Hints" }))]),
    ]);
    let mut harness = Harness::with(script.clone());
    let told = harness.says("could we get math hints going?").await;
    assert_eq!(told.way, ["analyze", "gather", "gather", "confirm"]);
    assert_eq!(told.read(), "card: Start “Math Hints”?");
}

#[tokio::test]
async fn two_changes_at_once_become_steps() {
    let steps = json!({
        "intent_type": "needs_info", "confidence": 0.9, "user_request_summary": "…",
        "steps": ["start Math Hints", "create an experiment Foo in mathstream"],
    });
    let create = ("propose_create_experiment", json!({ "name": "Foo", "context": "mathstream" }));
    let script = Script::of([calls([start(), create]), calls([("analyze_user_request", steps)]), calls([start()])]);
    let mut harness = Harness::with(script.clone());
    let told = harness.says("get math hints going, and a new one called Foo in mathstream").await;
    assert!(results(&script, 1).iter().all(|(said, is_error)| *is_error && said.contains("steps")));
    assert_eq!(told.read(), "card: Start “Math Hints”?");
    assert_eq!(harness.state.plan().unwrap().total_steps, 2);
}

#[tokio::test]
async fn steps_that_lose_a_part_are_asked_for_again() {
    let steps = |second: &str| {
        calls([(
            "analyze_user_request",
            json!({
                "intent_type": "needs_info", "confidence": 0.9, "user_request_summary": "…",
                "steps": ["start Math Hints", second],
            }),
        )])
    };
    let said = "get math hints going and start Away only for class 5B";
    let script = Script::of([steps("start Away"), steps("start Away only for class 5B"), calls([start()])]);
    let mut harness = Harness::with(script.clone());
    harness.says(said).await;
    assert!(results(&script, 1)[0].0.contains("only for class 5B"));
    assert_eq!(harness.state.plan().unwrap().ahead, ["start Away only for class 5B"]);

    let script = Script::of([steps("start Away"), steps("start Away")]);
    let told = Harness::with(script).says(said).await;
    assert!(told.read().contains("“only for class 5B”"), "{}", told.read());
}

#[tokio::test]
async fn a_question_takes_two_calls_and_talk_one() {
    let script = Script::of([calls([("count_things", json!({}))]), says("There are seven.")]);
    let told = Harness::with(script.clone()).says("how many things are there?").await;
    assert_eq!(told.way, ["analyze", "gather", "gather", "respond"]);
    assert_snapshot!(told.read(), @"There are seven.");
    assert_eq!(script.asked.lock().unwrap()[0].tool_choice, ToolChoice::Any);
    assert_eq!(offered(&script, 0), offered(&script, 1), "the same tools, so that they are cached");

    let script = Script::of([calls([
        (
            "analyze_user_request",
            json!({ "intent_type": "direct_answer", "confidence": 1, "user_request_summary": "…", "answer": "Hello, Ana!" }),
        ),
        ("offer_next_steps", json!({ "steps": [{ "label": "List", "says": "list experiments" }] })),
    ])]);
    let told = Harness::with(script.clone()).says("hello there, dear bot").await;
    assert_snapshot!(told.read(), @r"
    Hello, Ana!
    [list experiments → list experiments]
    ");
    assert_eq!(script.calls(), 1);
}

#[tokio::test]
async fn tools_that_continue_a_draft_are_offered_while_there_is_one() {
    let continuing = ["update_action_params", "set_missing_params", "add_error", "drop_draft"];
    let script = Script::of([
        calls([("propose_create_experiment", json!({ "name": "Foo" }))]),
        calls([("update_action_params", json!({ "key": "context", "value": "mathstream" }))]),
        calls([("update_action_params", json!({ "key": "context", "value": "assign-prog" }))]),
        calls([("update_action_params", json!({ "key": "context", "value": "assign-prog" }))]),
        says("There is nothing to change."),
    ]);
    let mut harness = Harness::with(script.clone());
    harness.says("create an experiment Foo").await;
    assert!(continuing.iter().all(|name| !offered(&script, 0).iter().any(|tool| tool == name)));
    assert_eq!(harness.says("mathstream").await.read(), "card: Create “Foo” in mathstream?");
    assert!(continuing.iter().all(|name| offered(&script, 1).iter().any(|tool| tool == name)));
    assert_eq!(harness.says("no, use assign-prog").await.read(), "card: Create “Foo” in assign-prog?");
    assert!(offered(&script, 2).contains(&"update_action_params".to_owned()), "a card is open");
    harness.open.clear();
    (harness.state.on_card, harness.state.draft) = (None, None);
    harness.says("use assign-prog, would you?").await;
    assert!(!offered(&script, 3).contains(&"update_action_params".to_owned()));
    assert_eq!(results(&script, 4)[0], ("there is no draft; propose the change".to_owned(), true));
}

#[tokio::test]
async fn the_card_shows_what_a_model_leaves_out() {
    let warnings = |told: &super::harness::Told| -> Vec<String> {
        told.asked.as_ref().unwrap().proposal.card.warnings.iter().map(Text::words).collect()
    };
    let mut harness = Harness::with(Script::of([calls([start()])]));
    let told = harness.says("get math hints going, but only for class 5B").await;
    assert_eq!(warnings(&told), ["You also said “only for class 5B”. That isn't part of this change."]);

    // Also when something else had to be asked first.
    let mut harness = Harness::with(Script::of([
        calls([("propose_create_experiment", json!({ "name": "Foo" }))]),
        calls([("update_action_params", json!({ "key": "context", "value": "mathstream" }))]),
    ]));
    harness.says("create an experiment Foo with 200 users").await;
    let told = harness.says("mathstream").await;
    assert_eq!(warnings(&told), ["You also said “with 200 users”. That isn't part of this change."]);

    let mut harness = Harness::with(Script::of([calls([start()])]));
    assert_eq!(warnings(&harness.says("get math hints going, would you?").await), Vec::<String>::new());
}

#[test]
fn a_number_is_not_found_in_an_id() {
    let id = "0f805b20-43d1-4e0e-9d0a-5b12c80a2000";
    let told = format!(r#"{{"id":"{id}","status":"enrolling"}} Start “Math Hints”?"#);
    let left = |said: &str| countersign_understanding::left_out(said, &super::proposal_text::without_ids(&told, said));
    assert_eq!(left("get math hints going to 80%"), ["to 80%"]);
    assert_eq!(left("get math hints going only for class 5B"), ["only for class 5B"]);
    assert_eq!(left(&format!("get {id} going")), Vec::<String>::new());
}

#[tokio::test]
async fn parameters_that_do_not_fit_are_told_to_the_model_and_then_to_the_person() {
    let foreign = ("propose_update_experiment_status", json!({ "experiment": "Math Hints", "colour": "red" }));
    let script = Script::of([calls([foreign]), calls([("propose_fly", json!({}))]), says("I cannot do that.")]);
    let mut harness = Harness::on(script.clone(), experiments());
    let told = harness.says("paint math hints red, could you?").await;
    assert_eq!(results(&script, 1)[0].0, "`update_experiment_status` has no parameter `colour`");
    assert_eq!(results(&script, 2)[0].0, "there is no change `fly`");
    assert_eq!(told.read(), "I cannot do that.");
}

#[tokio::test]
async fn an_exchange_with_a_tool_that_is_gone_is_continued() {
    let call = |id: &str, name: &str, input: Value| -> Block {
        KnownBlock::ToolUse { id: id.to_owned(), name: name.to_owned(), input }.into()
    };
    let result = |id: &str| -> Block {
        KnownBlock::ToolResult { tool_use_id: id.to_owned(), content: "noted".into(), is_error: false }.into()
    };
    let exchange = vec![
        Message {
            role: Role::Assistant,
            content: vec![
                call("a", "set_action_needed", json!({ "action": "update_experiment_status" })),
                call("b", "count_things", json!({})),
            ],
        },
        Message { role: Role::User, content: vec![result("a"), result("b")] },
    ];
    let saved = json!({
        "turn": {
            "number": 3, "said": "start math hints if there is room", "by": "ana", "phase": "GATHERING_INFO",
            "analysis": {
                "intent_type": "needs_info", "capability": "experiment_management", "confidence": 0.9,
                "user_request_summary": "Start Math Hints.",
            },
            "change": { "action": "update_experiment_status", "params": {} },
            "rounds": 1, "exchange": exchange,
        },
    });
    let script = Script::of([
        calls([("set_action_params", json!({ "action_params": { "experiment": "Math Hints" } }))]),
        calls([start()]),
    ]);
    let mut harness = Harness::with(script.clone());
    harness.state = serde_json::from_value::<AgentState>(saved).unwrap();
    let told = harness.has_next_step("gather").await;
    assert_eq!(results(&script, 1)[0], ("there is no tool `set_action_params`".to_owned(), true));
    assert!(told.read().ends_with("card: Start “Math Hints”?"), "{}", told.read());
    assert_eq!(harness.ends(Status::Expired, Vec::new(), None).await.way, ["respond"]);
}

#[test]
fn the_tools_for_any_single_request_fit() {
    let registry = experiments();
    let kit = Kit::new(registry.clone());
    let size = |tools: &[countersign_model::ToolSpec]| tools.iter().map(tools::size).sum::<usize>();
    for family in &registry.families {
        for in_hand in [false, true] {
            let tools = kit.offered([family.name], &[], in_hand);
            assert!(size(&tools) <= MAX_OFFER_BYTES, "{}: {}", family.name, size(&tools));
            for name in family.names() {
                let there =
                    tools.iter().any(|tool| tool.name == name || tools::proposed_action(&tool.name) == Some(name));
                assert!(there, "{} has no room for {name}", family.name);
            }
        }
    }
    for name in registry.tools.keys().chain(registry.actions.keys()) {
        let first = [(*name).to_owned()];
        let families = kit.families_of(&first);
        let tools = kit.offered(families, &first, true);
        let there = tools.iter().any(|tool| tool.name == *name || tools::proposed_action(&tool.name) == Some(name));
        assert!(there && size(&tools) <= MAX_OFFER_BYTES, "{name}");
    }
    // A second capability adds next to nothing to a request that does not need it.
    let start = ["update_experiment_status".to_owned()];
    let alone = size(&kit.offered(kit.families_of(&start), &start, false));
    let other = Fakes { tools: Vec::new(), actions: Vec::new() };
    let both =
        Registry::build(registry.capabilities.iter().cloned().chain([Arc::new(other) as Arc<_>]).collect()).unwrap();
    let kit_of_both = Kit::new(both);
    let beside = size(&kit_of_both.offered(kit_of_both.families_of(&start), &start, false));
    assert!(beside * 10 <= alone * 11, "{alone} bytes alone, {beside} beside another");
    let often = kit.offered(kit.common_families(), &[], false);
    assert!(size(&often) <= 10_000, "{}", size(&often));
}
