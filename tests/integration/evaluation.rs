//! The utterances that come with the program, and the command that asks a model about them.

mod words;

use countersign::config::Config;
use countersign_playground::{
    evaluate::{self, Case},
    model_stand_in,
};
use countersign_sandbox::model::SandboxModel;
use insta::assert_snapshot;
use serde_json::json;

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
    let score = evaluate::run(&config, &cases()).await.unwrap();
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
    assert_snapshot!(table.split(" calls").next().unwrap(), @"
    wrong  What is running?
           status: enrollmentComplete, should be enrolling
    ok     Start Math Hints
    ok     write a poem about fractions
    claude-sonnet-5-5: 2 of 3 understood (66%), 3
    ");
}
