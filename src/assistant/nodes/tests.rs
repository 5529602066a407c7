//! Tests of turns in the whole graph, with a scripted model or none.

use std::{sync::Arc, time::Duration};

use countersign_capabilities::Registry;
use countersign_core::{
    clock::{SystemClock, Timestamp},
    reply::Text,
};
use countersign_experiments::{
    Experiments,
    listing::ListArguments,
    upgrade::{UpgradeConfig, client::UpgradeClient, sign_in::SignIn},
};
use countersign_graph::{
    action::{Decision, ErrorKind, Outcome, Status, Verdict},
    node::State,
};
use countersign_model::{Block, KnownBlock, Model, Purpose, Request, ToolChoice};
use countersign_understanding::{RulesModel, situation::Situation};
use insta::assert_snapshot;
use serde_json::{Value, json};

use super::harness::{Harness, Script, Told, calls, finds, is_away, says};

fn by_bo(verdict: Verdict) -> Vec<Decision> {
    vec![Decision { by: Some("bo".into()), at: Timestamp(0), verdict }]
}

fn done(words: &str) -> Option<Outcome> {
    Some(Outcome::Done { result: json!({ "name": "Math Hints" }), summary: Text::from(words) })
}

async fn started(harness: &mut Harness) -> Told {
    harness.says("start Math Hints").await;
    harness.ends(Status::Done, by_bo(Verdict::Approved), done("Started “Math Hints”.")).await
}

/// Returns the tool results in the last message of a request: their text, and true for an error.
fn results(script: &Script, request: usize) -> Vec<(String, bool)> {
    let asked = script.asked.lock().unwrap();
    let last = asked[request].exchange.last().expect("an exchange");
    let results = last.content.iter().map(|block| match block {
        Block::Known(KnownBlock::ToolResult { content, is_error, .. }) => (content.clone(), *is_error),
        other => panic!("{other:?}"),
    });
    results.collect()
}

#[tokio::test]
async fn starting_an_experiment_takes_one_call_and_the_click_none() {
    let script = Script::of([calls([(
        "propose_update_experiment_status",
        json!({ "experiment": "Math Hints", "status": "start" }),
    )])]);
    let mut harness = Harness::with(script.clone());
    let told = harness.says("please start math hints").await;
    assert_eq!(told.way, ["analyze", "gather", "confirm"]);
    assert_snapshot!(told.read(), @"card: Start “Math Hints”?");
    assert_eq!(told.usage.unwrap().calls, 1);
    assert_eq!(told.asked.unwrap().requested_by.as_str(), "ana");
    let told = harness.ends(Status::Done, by_bo(Verdict::Approved), done("Started “Math Hints”.")).await;
    assert_eq!((told.way.as_slice(), told.usage.is_none(), script.calls()), (["respond"].as_slice(), true, 1));
    assert_snapshot!(told.read(), @"
    @ana Started “Math Hints”. Approved by @bo. What next?
    [Show details → show “Math Hints”]
    ");
}

#[tokio::test]
async fn the_grammar_takes_the_same_path() {
    let mut harness = Harness::with_rules();
    let told = harness.says("Start the Math Hints experiment").await;
    assert_eq!(told.way, ["analyze", "gather", "confirm"]);
    assert_snapshot!(told.read(), @"card: Start “Math Hints”?");
    assert!(told.usage.is_none(), "the grammar costs nothing");
}

#[tokio::test]
async fn missing_parameters_are_asked_for_and_kept() {
    let mut harness = Harness::with_rules();
    assert_snapshot!(harness.says("create an experiment").await.read(), @r"
    What should it be called?
    Needed: name, context. You can give several at once, or say never mind.
    ");
    assert_snapshot!(harness.says("Hint Timing").await.read(), @r"
    Which context is it for?
    So far: “Hint Timing”. Still needed: context.
    [assign-prog → context: assign-prog]
    [mathstream → context: mathstream]
    ");
    let told = harness.says("is UpGrade running?").await;
    assert!(told.read().starts_with("UpGrade isn't answering"), "{}", told.read());
    assert_snapshot!(harness.says("mathstream").await.read(), @"card: Create “Hint Timing” in mathstream?");
    assert_eq!(harness.state.draft, None);
    assert_snapshot!(harness.says("no, use assign-prog").await.read(), @"card: Create “Hint Timing” in assign-prog?");
}

#[tokio::test]
async fn a_refused_answer_leaves_the_question_open() {
    let mut harness = Harness::with_rules();
    harness.says("start an experiment").await;
    assert!(harness.says("Zebra").await.read().starts_with("No experiment is called “Zebra”"));
    assert_snapshot!(harness.says("Math Hints").await.read(), @"card: Start “Math Hints”?");
}

#[tokio::test]
async fn never_mind_drops_the_draft() {
    let mut harness = Harness::with_rules();
    harness.says("create an experiment").await;
    assert_snapshot!(harness.says("never mind").await.read(), @"OK, dropped. Nothing was changed.");
    assert_eq!(harness.state.draft, None);
    let told = harness.says("Hint Timing").await;
    assert_eq!(told.way, ["analyze", "clarify"], "it is no answer any more");
}

#[tokio::test]
async fn a_question_that_nobody_answers_is_forgotten() {
    let mut harness = Harness::with_rules();
    harness.says("create an experiment").await;
    for _ in 0..5 {
        harness.says("hello").await;
    }
    assert_eq!(harness.state.draft, None);
}

#[tokio::test]
async fn an_unknown_request_gets_examples_and_no_guess() {
    let mut harness = Harness::with_rules();
    assert_snapshot!(harness.says("asdf").await.read(), @r"
    I didn't catch that. Here are some things you can ask:
    • list experiments
    • what conditions does assign-prog have?
    • start the Math Hints experiment
    • create an experiment Hint Timing in assign-prog
    [List experiments → list experiments]
    [Is UpGrade running? → is UpGrade running?]
    [What can you do? → what can you do?]
    ");
    assert_snapshot!(harness.says("finish Math Hints").await.read(), @"
    Do you want to pause it (no new users; you can resume it) or cancel it permanently?
    [pause “Math Hints” → pause “Math Hints”]
    [cancel “Math Hints” → cancel “Math Hints”]
    ");
}

#[tokio::test]
async fn a_misspelt_name_gets_a_suggestion() {
    let mut harness = Harness::with_rules();
    assert_snapshot!(harness.says("start math hint").await.read(), @r"
    No experiment is called “math hint”. Did you mean “Math Hints”?
    [Math Hints → start Math Hints]
    ");
    assert_snapshot!(harness.says("Math Hints").await.read(), @"card: Start “Math Hints”?");
}

#[tokio::test]
async fn a_platform_outage_is_reported_and_can_be_retried() {
    let mut harness = Harness::with_rules();
    assert_snapshot!(harness.says("start Away").await.read(), @r"
    UpGrade isn't answering.
    [Try again → start Away]
    ");
    assert_snapshot!(harness.says("health check").await.read(), @r"
    UpGrade isn't answering.
    [Try again → health check]
    ");
}

#[tokio::test]
async fn each_outcome_of_a_card_has_its_reply() {
    let mut harness = Harness::with_rules();
    let rejected = |reason: Option<&str>| by_bo(Verdict::Rejected { reason: reason.map(str::to_owned) });
    let failed = Outcome::Failed { error: ErrorKind::Api, summary: Text::from("UpGrade refused it: full.") };
    let unknown = Outcome::Unknown { summary: Text::from("I cannot tell whether it started.") };
    let mut read = Vec::new();
    for (status, decisions, outcome) in [
        (Status::Failed, by_bo(Verdict::Approved), Some(failed)),
        (Status::Unknown, by_bo(Verdict::Approved), Some(unknown)),
        (Status::Rejected, rejected(None), None),
        (Status::Rejected, rejected(Some("not before the exam")), None),
        (Status::Expired, Vec::new(), None),
        (Status::Cancelled, Vec::new(), None),
        (Status::Superseded, Vec::new(), None),
    ] {
        harness.says("start Math Hints").await;
        read.push(format!("{status}: {}", harness.ends(status, decisions, outcome).await.read()));
    }
    assert_snapshot!(read.join("\n"), @"
    failed: @ana, @bo Start “Math Hints” didn't work. UpGrade refused it: full.
    unknown: @ana, @bo I cannot tell whether it started.
    I won't send it again unless someone asks.
    [Show details → show “Math Hints”]
    rejected: @ana, @bo rejected this, so nothing was changed.
    rejected: @ana, @bo rejected this, so nothing was changed.
    expired: @ana no one decided in time about Start “Math Hints”, so nothing was changed.
    [Ask again → try again: Start “Math Hints”]
    cancelled: @ana Start “Math Hints” was withdrawn, so nothing was changed.
    superseded: @ana Start “Math Hints” was replaced by a newer request. It changed nothing.
    ");
}

#[tokio::test]
async fn changes_are_listed_with_their_approvers() {
    let mut harness = Harness::with_rules();
    assert_snapshot!(harness.says("what have we accomplished?").await.read(), @r"
    Nothing has been changed in this thread yet.
    [List experiments → list experiments]
    ");
    started(&mut harness).await;
    assert_snapshot!(harness.says("what have we accomplished?").await.read(), @r"
    1 change in this thread:
    • ✅ Started “Math Hints”. · 2023-11-14T22:13:22.000Z · asked by @ana, approved by @bo
    ");
}

#[tokio::test]
async fn undo_proposes_the_reverse_change() {
    let mut harness = Harness::with_rules();
    started(&mut harness).await;
    let told = harness.says("undo: Started “Math Hints”.").await;
    let asked = told.asked.unwrap();
    assert_eq!(asked.action, "update_experiment_status");
    let notes: Vec<_> = asked.proposal.card.notes.iter().map(Text::words).collect();
    let [note] = notes.as_slice() else { panic!("{notes:?}") };
    assert!(note.starts_with("This undoes the change made ") && note.contains("Started “Math Hints”"), "{note}");
    assert_eq!(harness.state.on_card.unwrap().params["status"], "enrollmentComplete");
}

#[tokio::test]
async fn a_change_that_failed_can_be_asked_for_again() {
    let mut harness = Harness::with_rules();
    harness.says("start Math Hints").await;
    let told = harness.ends(Status::Expired, Vec::new(), None).await;
    let button = told.says[0].choices[0].says.clone();
    let told = harness.says(&button).await;
    assert_eq!(told.way, ["analyze", "gather"], "{}", told.read());
    assert_eq!(harness.state.draft.unwrap().params["experiment"], "id-1", "exactly what was on the card");
}

#[tokio::test]
async fn the_grammar_speaks_the_language_of_the_capabilities() {
    let config = UpgradeConfig {
        base_url: "http://127.0.0.1:9/api".parse().unwrap(),
        sign_in: SignIn::Nobody,
        timeout: Duration::from_secs(1),
    };
    let client = Arc::new(UpgradeClient::new(config).unwrap());
    let settings = super::harness::settings();
    let registry =
        Registry::build(vec![Arc::new(Experiments::with_client(client, &settings, Arc::new(SystemClock)))]).unwrap();
    let takes = |schema: Value, key: &str| schema["properties"].get(key).is_some();
    for said in [
        "is UpGrade running?",
        "list the running experiments in assign-prog",
        "list experiment names",
        "show Math Hints",
        "start Math Hints",
        "delete Math Hints",
        "rename Math Hints to Hints 2",
        "set the weights of Math Hints to 70/30",
        "set the post rule of Math Hints to continue",
        "create experiment Foo in assign-prog with conditions a, b weights 70/30 at S/t assigned by classId, consistency group, tags x, y, description z",
        "initialize user u1 with groups classId 5B and working group classId 5B in assign-prog",
        "what condition would u1 get in assign-prog?",
        "mark S/t for u1 in Math Hints with condition control",
    ] {
        let request = Request {
            purpose: Purpose::Gather,
            instructions: "".into(),
            tools: [].into(),
            history: Vec::new(),
            situation: json!(Situation { said: said.to_owned(), ..Situation::default() }),
            exchange: Vec::new(),
            tool_choice: ToolChoice::Auto,
            answer_schema: None,
            max_tokens: 1,
            payer: Default::default(),
            words: None,
        };
        let response = RulesModel(registry.book.clone()).respond(&request).await.unwrap();
        for (_, name, input) in response.tool_calls() {
            let given = input.as_object().unwrap();
            match name {
                proposal if proposal.starts_with("propose_") => {
                    let action = registry.actions.get(&proposal["propose_".len()..]).expect("a known action");
                    assert!(given.keys().all(|key| takes(action.schema(), key)), "{said}: {given:?}");
                }
                tool => {
                    let schema = registry.tools.get(tool).expect("a known tool").schema();
                    assert!(given.keys().all(|key| takes(schema.clone(), key)), "{said}: {given:?}");
                }
            }
        }
        assert!(response.tool_calls().count() > 0, "{said}");
    }
}

#[test]
fn the_button_for_the_next_page_is_understood() {
    for which in [
        json!({}),
        json!({ "status": "enrolling", "context": "assign-prog", "tag": "grade 7" }),
        json!({ "search": "hint", "created": "since 2026-11-01", "sort": "oldest" }),
        json!({ "changed": "last 3 days", "sort": "name", "form": "full" }),
        json!({ "created": "this week", "sort": "changed", "form": "short" }),
        json!({ "tag": "hints", "created": "today", "sort": "status" }),
        json!({ "search": "two words", "created": "last month", "sort": "context" }),
        json!({ "context": "mathstream", "changed": "yesterday", "sort": "newest" }),
    ] {
        let mut which: ListArguments = serde_json::from_value(which).unwrap();
        let situation = Situation { said: which.request(2), ..Situation::default() };
        let (tool, arguments) = super::harness::book().documented_read(&situation).expect("a documented question");
        assert_eq!(tool, "get_all_experiments");
        let mut read: ListArguments = serde_json::from_value(arguments).unwrap();
        assert_eq!(read.page.take(), Some(2), "{}", situation.said);
        read.status = read.status.map(|status| status.replace("running", "enrolling"));
        which.page = None;
        assert_eq!(read, which, "{}", situation.said);
    }
}

#[tokio::test]
async fn it_means_the_last_subject() {
    let mut harness = Harness::with_rules();
    started(&mut harness).await;
    assert_snapshot!(harness.says("stop it").await.read(), @"card: Start “Math Hints”?");
    assert_eq!(harness.state.on_card.as_ref().unwrap().params["experiment"], "Math Hints");
}

#[tokio::test]
async fn an_outage_of_the_model_is_bridged_and_reported() {
    let mut harness = Harness::with(Script::of([is_away()]));
    let told = harness.says("what is a weight?").await;
    assert!(told.read().contains("share of participants"), "{}", told.read());
    assert!(told.read().ends_with("I worked without my language model this time, so I may have missed some nuance."));

    let script = Script::of([finds("needs_info", 0.9), calls([("count_things", json!({}))]), is_away()]);
    let mut harness = Harness::with(script.clone());
    let told = harness.says("start Math Hints").await;
    assert_snapshot!(told.read(), @"card: Start “Math Hints”?");
    assert_eq!(script.calls(), 3, "not asked again in this turn");
    assert!(
        told.asked.unwrap().proposal.card.notes.iter().any(|note| note.words().contains("without my language model"))
    );
    let told = harness.ends(Status::Done, by_bo(Verdict::Approved), done("Started “Math Hints”.")).await;
    assert!(!told.read().contains("language model"), "the card said it: {}", told.read());
}

#[tokio::test]
async fn a_careless_model_is_corrected_and_never_breaks_the_turn() {
    let script = Script::of([
        calls([("analyze_user_request", json!({ "intent_type": "whatever" }))]),
        calls([(
            "analyze_user_request",
            json!({ "intent_type": "needs_info", "confidence": 0.9, "capability": "fakes", "user_request_summary": "…" }),
        )]),
        calls([
            ("count_things", json!(null)),
            ("fly_to_the_moon", json!({})),
            ("get_experiment_names", json!("{\"oops")),
            ("get_context_metadata", json!({ "context": 7 })),
            ("get_context_metadata", json!({ "context": null })),
            ("update_action_params", json!({ "key": "name", "value": "Foo" })),
            ("propose_format_disk", json!({})),
        ]),
        Ok(countersign_model::Response {
            content: Vec::new(),
            stop_reason: "end_turn".into(),
            usage: countersign_model::Usage::default(),
        }),
        calls([("get_errors", json!({})), ("get_all_gathered_info", json!({})), ("no_such_tool", json!({}))]),
        Ok(countersign_model::Response {
            content: vec![
                KnownBlock::Text { text: "There are 7 things.".into() }.into(),
                KnownBlock::ToolUse {
                    id: "n".into(),
                    name: "offer_next_steps".into(),
                    input: json!({ "steps": [{ "label": "List", "says": "list experiments" }] }),
                }
                .into(),
            ],
            stop_reason: "tool_use".into(),
            usage: countersign_model::Usage::default(),
        }),
    ]);
    let mut harness = Harness::with(script.clone());
    let told = harness.says("how many things are there?").await;
    assert_eq!(told.way, ["analyze", "gather", "gather", "respond"]);
    assert_snapshot!(told.read(), @r"
    There are 7 things.
    [list experiments → list experiments]
    ");
    assert_eq!(told.usage.unwrap().calls, 6);
    let told = results(&script, 3);
    let wrong: Vec<bool> = told.iter().map(|(_, is_error)| *is_error).collect();
    assert_eq!(wrong, [false, true, true, true, false, true, true], "{told:?}");
    assert_eq!(told[0].0, r#"{"things":7}"#);
    let read_back = results(&script, 5);
    assert!(read_back[1].0.contains(r#""things":7"#) && read_back[2].1, "{read_back:?}");
}

#[tokio::test]
async fn an_invalid_analysis_is_replaced_by_the_grammar() {
    let mut harness = Harness::with(Script::of([says("Sure, I will start it!")]));
    assert_snapshot!(harness.says("start Math Hints").await.read(), @"card: Start “Math Hints”?");
}

#[tokio::test]
async fn a_model_that_never_stops_is_stopped() {
    let round = || calls([("count_things", json!({})), ("get_execution_log", json!({}))]);
    let script = Script::of([finds("needs_info", 0.9), round(), round(), round(), round(), round(), says("Seven.")]);
    let mut harness = Harness::with(script.clone());
    let told = harness.says("count").await;
    assert_eq!(script.calls(), 1 + super::round::MAX_ROUNDS as usize + 1);
    assert_snapshot!(told.read(), @"Seven.");
}

#[tokio::test]
async fn an_unsure_model_asks_with_its_options() {
    let script = Script::of([calls([(
        "analyze_user_request",
        json!({
            "intent_type": "needs_info", "confidence": 0.4, "user_request_summary": "end it",
            "question": "Pause it, or cancel it?", "options": ["pause Math Hints", "cancel Math Hints"],
        }),
    )])]);
    assert_snapshot!(Harness::with(script).says("end it").await.read(), @r"
    Pause it, or cancel it?
    [pause Math Hints → pause Math Hints]
    [cancel Math Hints → cancel Math Hints]
    ");
}

#[tokio::test]
async fn a_turn_is_resumed_as_it_was() {
    let mut harness = Harness::with_rules();
    harness.says("start Math Hints").await;
    let paused = harness.state.turn.clone();
    let stored = harness.state.suspend();
    harness.says("hello").await;
    harness.says("create an experiment").await;
    assert_ne!(harness.state.turn, paused);
    harness.state.resume(stored).unwrap();
    assert_eq!(harness.state.turn, paused);
    assert!(harness.state.draft.is_some(), "what persists is as the later turns left it");
}

/// Returns the size of the requests to a model in one turn, in bytes.
fn cost(harness: &Harness, script: &Script, from: usize) -> usize {
    let asked = script.asked.lock().unwrap();
    let _ = harness;
    asked[from..]
        .iter()
        .map(|request| {
            let history = serde_json::to_string(&request.history).unwrap().len();
            let _: Situation = serde_json::from_value(request.situation.clone()).expect("the contract");
            history + request.situation.to_string().len() + serde_json::to_string(&request.exchange).unwrap().len()
        })
        .sum()
}

#[tokio::test]
async fn the_five_hundredth_turn_costs_as_much_as_the_tenth() {
    let turn = || {
        [
            finds("needs_info", 0.9),
            calls([("get_context_metadata", json!({})), ("count_things", json!({}))]),
            says("There are seven of them, as before, and I would not expect that to change much."),
        ]
    };
    let script = Script::of((0..600).flat_map(|_| turn()));
    let mut harness = Harness::with(script.clone());
    let (mut costs, mut sizes) = (Vec::new(), Vec::new());
    for _ in 0..600 {
        let before = script.calls();
        harness.says("how many things are there in assign-prog at the moment, and what are they called?").await;
        costs.push(cost(&harness, &script, before));
        sizes.push(serde_json::to_string(&harness.state).unwrap().len());
    }
    assert!(costs[499] * 10 <= costs[9] * 12, "turn 10: {}, turn 500: {}", costs[9], costs[499]);
    assert!(sizes[499] * 10 <= sizes[9] * 12, "turn 10: {}, turn 500: {}", sizes[9], sizes[499]);
}

#[tokio::test]
async fn the_state_stays_small_whatever_is_said() {
    let mut harness = Harness::with_rules();
    let long = "x".repeat(3_900);
    let phrases = ["start Math Hints", "list contexts", "what have we done?", "create an experiment", &long, "asdf"];
    let mut largest = 0;
    for turn in 0..600 {
        let told = harness.says(phrases[turn % phrases.len()]).await;
        if told.asked.is_some() {
            harness.ends(Status::Done, by_bo(Verdict::Approved), done("Started “Math Hints”.")).await;
        }
        largest = largest.max(serde_json::to_string(&harness.state).unwrap().len());
    }
    assert_eq!(harness.state.log.entries.len() as u64 + harness.state.log.earlier, 200);
    assert!(largest < 60_000, "{largest}");
}
