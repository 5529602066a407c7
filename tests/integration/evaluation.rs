//! The utterances that come with the program, and the command that asks a model about them.

mod words;

use countersign::{app::golden, config::Config, conversation::record::notebook::Redaction, ids::ThreadId};
use countersign_playground::{
    evaluate::{self, Case, Outcome},
    model_stand_in,
};
use countersign_sandbox::model::SandboxModel;
use serde_json::json;

use crate::support::bot::TestBot;

fn cases() -> Vec<Case> {
    evaluate::cases(None).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_grammar_understands_every_utterance() {
    let config = Config::load(None, &Default::default(), &countersign::app::installed::SETTINGS).unwrap();
    let score = evaluate::run(&config, &cases()).await.unwrap();
    assert_eq!(score.understood(), score.lines.len(), "{score}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_answers_as_the_grammar_does_understands_as_much() {
    let model = SandboxModel::start(0).await.unwrap();
    model.answers_by(model_stand_in::answers().unwrap());
    let mut config = Config::load(None, &Default::default(), &countersign::app::installed::SETTINGS).unwrap();
    config.model.base_url = Some(model.url());
    config.model.api_key = Some(model.api_key().into());
    // The stand-in knows the phrases of the capabilities that need no store and no bridge.
    let is_known = |case: &Case| !["memory", "watches", "standing", "simulation"].contains(&case.category().as_str());
    let cases: Vec<Case> = cases().into_iter().filter(is_known).collect();
    let score = evaluate::run(&config, &cases).await.unwrap();
    assert_eq!(model.violations(), Vec::<String>::new());
    assert_eq!(score.understood(), score.lines.len(), "{score}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_language_model_gets_a_score() {
    let model = SandboxModel::start(0).await.unwrap();
    let mut config = Config::load(None, &Default::default(), &countersign::app::installed::SETTINGS).unwrap();
    config.model.base_url = Some(model.url());
    config.model.api_key = Some(model.api_key().into());
    let said = ["Start Math Hints", "What is running?", "write a poem about fractions"];
    let cases: Vec<Case> = cases().into_iter().filter(|case| said.contains(&case.said.as_str())).collect();

    let found = |intent: &str, capability: &str| json!({ "intent_type": intent, "capability": capability, "confidence": 0.9, "user_request_summary": "…" });
    model.will_call("get_all_experiments", json!({ "status": "enrollmentComplete" }));
    let parameters = json!({ "experiment": "Math Hints", "status": "enrolling" });
    model.will_call("propose_update_experiment_status", parameters);
    model.will_call("analyze_user_request", found("direct_answer", "unsupported"));

    let score = evaluate::run(&config, &cases).await.unwrap();
    assert_eq!((model.violations(), model.unscripted(), model.unasked()), (Vec::new(), 0, 0));
    let table = score.to_string();
    let wrong = "wrong      What is running?\n           status: enrollmentComplete, should be enrolling\n";
    assert!(table.starts_with(wrong) && table.contains("ok         Start Math Hints\n"), "{table}");
    assert!(table.contains("claude-sonnet-5-5: 2 of 3 understood (66%), 3 calls, "), "{table}");
    assert!(table.contains(" tokens, $0.0"), "what it cost: {table}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outcome_is_understood_suggested_a_dead_end_or_wrong() {
    let config = Config::load(None, &Default::default(), &countersign::app::installed::SETTINGS).unwrap();
    let cases = json!([
        { "said": "start Math Hints", "intent": "needs_info", "category": "a", "action": "update_experiment_status" },
        { "said": "frobnicate", "intent": "needs_info", "category": "b", "tool": "get_execution_log" },
        { "said": "show Math Hints", "intent": "needs_info", "category": "b", "action": "update_experiment_status" },
        { "said": "pull the plug on Math Hints", "intent": "needs_info", "category": "b",
          "action": "update_experiment_status", "parameters": { "experiment": "Math Hints" } },
    ]);
    let cases: Vec<Case> = serde_json::from_value(cases).unwrap();
    let score = evaluate::run(&config, &cases).await.unwrap();
    let outcomes: Vec<_> = score.lines.iter().map(|line| line.outcome).collect();
    assert_eq!(outcomes, [Outcome::Understood, Outcome::DeadEnd, Outcome::Wrong, Outcome::Suggested], "{score}");
    let table = score.to_string();
    let row =
        |name: &str| table.lines().find(|line| line.starts_with(name)).unwrap().split_whitespace().collect::<Vec<_>>();
    assert_eq!(row("a "), ["a", "1", "0", "0", "0", "1"]);
    assert_eq!(row("b "), ["b", "0", "1", "1", "1", "3"]);
    assert_eq!(row("all "), ["all", "1", "1", "1", "1", "4"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_models_are_compared() {
    let model = SandboxModel::start(0).await.unwrap();
    let mut config = Config::load(None, &Default::default(), &countersign::app::installed::SETTINGS).unwrap();
    config.model.base_url = Some(model.url());
    config.model.api_key = Some(model.api_key().into());
    let cases: Vec<Case> = cases().into_iter().filter(|case| case.said == "What is running?").collect();
    model.will_call("get_all_experiments", json!({ "status": "enrollmentComplete" }));
    let comparison = evaluate::compare(&config, &cases, ["rules", "claude-haiku-4-5"]).await.unwrap();
    assert_eq!(model.requests()[0].body["model"], "claude-haiku-4-5");
    let [rules, haiku] = &comparison.0;
    assert_eq!((rules.understood(), rules.calls, haiku.understood(), haiku.calls), (1, 0, 0, 1));
    let table = comparison.to_string();
    assert!(table.starts_with("understood wrong      What is running?\n"), "{table}");
    assert!(table.contains("claude-haiku-4-5: status: enrollmentComplete, should be enrolling"), "{table}");
    let wrong = evaluate::compare(&config, &cases, ["rules", "gpt-4.1"]).await.unwrap_err().to_string();
    assert_eq!(wrong, "model.provider is \"openai\", but OPENAI_API_KEY is not set");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thread_becomes_a_case() {
    let (bot, thread) = TestBot::asked("ana", "show Math Hints").await;
    thread.says("ana", "start it").await;
    let (team, channel) =
        bot.slack.look(|world| (world.team.clone(), world.channel("experiments").unwrap().id.clone()));
    let id = ThreadId { team, channel, root: thread.root.clone() };
    let case = golden::case(&*bot.store(), &id, &Redaction::default(), &[]).await.unwrap();
    assert_eq!((&case["before"], &case["said"]), (&json!(["show Math Hints"]), &json!("start it")));
    assert_eq!(
        (&case["action"], &case["parameters"]["experiment"]),
        (&json!("update_experiment_status"), &json!("Math Hints"))
    );
    let config = Config::load(None, &Default::default(), &countersign::app::installed::SETTINGS).unwrap();
    let score = evaluate::run(&config, &[serde_json::from_value(case).unwrap()]).await.unwrap();
    assert_eq!(score.understood(), 1, "{score}");
}
