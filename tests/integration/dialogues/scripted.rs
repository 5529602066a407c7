//! The whole bot with a language model that says what it is told to say, and sometimes nothing or nonsense.

use std::time::Duration;

use countersign::config::Config;
use countersign_sandbox::model::SandboxModel;
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::support::bot::{Setup, TestBot};

/// The settings with which a bot asks a model.
pub(crate) fn asking(model: &SandboxModel) -> impl FnOnce(&mut Config) + use<> {
    let (url, key) = (model.url(), model.api_key());
    move |config| {
        config.model.base_url = Some(url);
        config.model.api_key = Some(key.into());
    }
}

/// A bot that has a model, and the model.
pub(crate) async fn bot_with_model() -> (TestBot, SandboxModel) {
    let model = SandboxModel::start(0).await.unwrap();
    let ask = asking(&model);
    let settings = Box::new(move |config: &mut Config| {
        ask(config);
        config.model.timeout = Duration::from_secs(20);
        config.model.attempts = 2;
    });
    (TestBot::with(Setup { settings, ..Setup::default() }).await, model)
}

/// What every dialogue ends with.
pub(crate) async fn finish(bot: TestBot, model: SandboxModel) {
    bot.finish().await;
    assert_eq!(model.violations(), Vec::<String>::new());
    assert_eq!(model.unscripted(), 0, "the model was asked more often than expected");
    assert_eq!(model.unasked(), 0, "the model was asked less often than expected");
}

/// The model finds that something has to be looked up or changed.
pub(crate) fn needs_info(model: &SandboxModel) {
    model.will_call("analyze_user_request", analysis("needs_info"));
}

/// The model answers without looking anything up.
pub(crate) fn answers_at_once(model: &SandboxModel, words: &str) {
    model.will_call("analyze_user_request", analysis("direct_answer"));
    model.will_say(words);
}

fn analysis(intent: &str) -> Value {
    json!({ "intent_type": intent, "confidence": 0.95, "user_request_summary": "What ana asked for." })
}

/// The model wants Math Hints started.
fn starts_math_hints(model: &SandboxModel) {
    model.will_call("propose_update_experiment_status", parameters());
}

fn parameters() -> Value {
    json!({ "experiment": "Math Hints", "status": "enrolling" })
}

/// The results that went back to the model with its latest request.
fn told(model: &SandboxModel) -> Vec<String> {
    let requests = model.requests();
    let messages = requests.last().unwrap().body["messages"].as_array().unwrap().clone();
    let results = messages.last().unwrap()["content"].as_array().unwrap().clone();
    let failed = |result: &Value| if result["is_error"] == true { "error: " } else { "" };
    results.iter().map(|result| format!("{}{}", failed(result), result["content"].as_str().unwrap())).collect()
}

fn state(bot: &TestBot, name: &str) -> Value {
    bot.upgrade.experiment(name).unwrap()["state"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn starting_an_experiment_asks_the_model_once_and_the_click_not_at_all() {
    let (bot, model) = bot_with_model().await;
    starts_math_hints(&model);

    let mut thread = bot.user("ana").says("could we get math hints going?").await;
    assert_snapshot!(thread.in_short(), @"‹Start “Math Hints”, open›");
    assert_eq!(model.requests().len(), 1);
    assert_eq!(state(&bot, "Math Hints"), "inactive");

    assert_snapshot!(thread.outcome("bo", "Start experiment").await, @"‹Math Hints is started, as bo approved›");
    assert_eq!(state(&bot, "Math Hints"), "running");
    assert_eq!(model.requests().len(), 1);
    finish(bot, model).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_lead_to_the_same_card_in_any_order_side_by_side_and_one_after_another() {
    let (bot, model) = bot_with_model().await;
    let correct = || ("update_action_params", json!({ "key": "status", "value": "enrolling" }));
    let propose = || ("propose_update_experiment_status", parameters());
    let details = || ("get_experiment_details", json!({ "experiment_id": "Math Hints" }));

    model.will_call_all([correct(), propose()]);
    model.will_call_all([propose(), correct()]);
    model.will_call_all([details(), propose()]);
    model.will_say("That should be it.");
    model.will_call_all([details()]);
    model.will_call_all([propose()]);
    for calls in [1, 1, 2, 2] {
        let before = model.requests().len();
        let mut thread = bot.user("ana").says("could we get math hints going?").await;
        assert!(thread.heard().starts_with("*Start “Math Hints”?*"), "{}", thread.last());
        assert_eq!(model.requests().len() - before, calls);
    }
    finish(bot, model).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_model_leaves_out_stands_on_the_card() {
    let (bot, model) = bot_with_model().await;
    starts_math_hints(&model);
    let mut thread = bot.user("ana").says("could we get math hints going, but only for class 5B?").await;
    let card = thread.heard();
    assert!(card.contains("You also said “only for class 5B”. That isn't part of this change."), "{card}");
    finish(bot, model).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_does_not_exist_is_told_to_the_model() {
    let (bot, model) = bot_with_model().await;
    needs_info(&model);
    model.will_call("launch_experiment", json!({ "name": "Math Hints" }));
    starts_math_hints(&model);

    let mut thread = bot.user("ana").says("could we get math hints going?").await;
    assert_eq!(told(&model), ["error: there is no tool `launch_experiment`"]);
    assert!(thread.heard().contains("Start"), "{}", thread.last());
    assert_eq!(bot.upgrade.effects(), []);
    finish(bot, model).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_that_are_no_json_are_told_to_the_model() {
    let (bot, model) = bot_with_model().await;
    needs_info(&model);
    model.sends_bad_json_next();
    needs_info(&model);
    starts_math_hints(&model);

    let mut thread = bot.user("ana").says("could we get math hints going?").await;
    let again = &model.requests()[1].body["messages"];
    let result = &again[again.as_array().unwrap().len() - 1]["content"][0];
    assert_eq!(result["is_error"], true);
    assert_eq!(result["content"], "the arguments must be a JSON object");
    assert!(thread.heard().contains("Start"), "{}", thread.last());
    finish(bot, model).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_that_are_called_together_are_answered_together() {
    let (bot, model) = bot_with_model().await;
    needs_info(&model);
    let details = json!({ "experiment": "Math Hints" });
    model.will_call_all([
        ("get_experiment_names", json!({})),
        ("get_experiment_details", details),
        ("get_weather", json!({})),
    ]);
    model.will_say("Math Hints is not running yet.");

    assert_snapshot!(bot.user("ana").answer("how are things with math hints, compared to the rest?").await, @"Math Hints is not running yet.");
    let told = told(&model);
    assert_eq!((told.len(), told[2].as_str()), (3, "error: there is no tool `get_weather`"));
    finish(bot, model).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn words_of_the_model_mention_nobody_and_forge_no_link() {
    let (bot, model) = bot_with_model().await;
    model.will_call("analyze_user_request", analysis("direct_answer"));
    model.will_say("Hello <!channel> and <@U0AAAAAAAAA>, see <https://example.com|your bank>.");

    assert_snapshot!(bot.user("ana").answer("hello there, how do you do?").await, @"Hello ‹!channel> and ‹@U0AAAAAAAAA>, see ‹`https://example.com`|your bank>.");
    finish(bot, model).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_its_model_the_bot_still_works_and_says_so() {
    let (bot, model) = bot_with_model().await;
    model.is_down(true);

    let mut thread = bot.user("ana").says("list experiments").await;
    assert_snapshot!(thread.in_short(), @"
    6 experiments: ⋯
    I worked without my language model this time, so I may have missed some nuance.
    ");
    assert_eq!(model.requests().len(), 2, "two attempts, and none in the rest of the turn");

    let mut thread = bot.user("ana").says("start the Math Hints experiment").await;
    assert_snapshot!(thread.in_short(), @"
    *Start “Math Hints”?* ⋯
    I worked without my language model this time, so I may have missed some nuance.
    ⋯
    ");
    thread.clicks("bo", "Start experiment").await;
    assert_eq!(state(&bot, "Math Hints"), "running");
    finish(bot, model).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_comes_back_is_used_in_the_next_turn() {
    let (bot, model) = bot_with_model().await;
    model.is_down(true);
    let mut thread = bot.user("ana").says("list experiments").await;
    assert!(thread.heard().contains("without my language model"), "{}", thread.last());

    model.is_down(false);
    model.will_call("analyze_user_request", analysis("direct_answer"));
    model.will_say("You are welcome!");
    assert_snapshot!(thread.answer("ana", "@countersign thanks, that was quick").await, @"You are welcome!");
    finish(bot, model).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn several_requests_cost_one_analysis_and_one_call_each() {
    let (bot, model) = bot_with_model().await;
    let mut found = analysis("needs_info");
    found["capability"] = json!("experiment_management");
    found["steps"] = json!(["start Math Hints", "show Math Hints in short"]);
    model.will_call("analyze_user_request", found);
    starts_math_hints(&model);

    let mut thread = bot.user("ana").says("could we get math hints going, and have a glance at it?").await;
    assert!(thread.heard().contains("Step 1 of 2. When it is done: show Math Hints in short."), "{}", thread.last());
    assert_eq!(model.requests().len(), 2);

    model.will_call("get_experiment_details", json!({ "experiment_id": "Math Hints", "form": "short" }));
    thread.clicks("bo", "Start experiment").await;
    assert_snapshot!(thread.last_in_short(), @"
    Step 2 of 2
    *Math Hints* is running in `assign-prog`, comparing control 50%, variant 50%. Nobody is enrolled.
    [Stop] [In detail]
    ");
    finish(bot, model).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_here_can_do_is_declined_with_what_can_be_done() {
    let (bot, model) = bot_with_model().await;
    let mut found = analysis("direct_answer");
    found["capability"] = json!("unsupported");
    model.will_call("analyze_user_request", found);

    assert_snapshot!(bot.user("ana").answer("could you get us some coffee?").await, @"
    I can't do that. Here's what I can do:
    • *Words*: _what is a decision point?_
    • *Version and health*: _is UpGrade running?_
    • *Lists*: _list the running experiments_
    • *Details*: _show Math Hints_
    • *Changes, each approved on a card*: _start Math Hints_
    • *Users*: _what condition would u1 get in assign-prog?_
    • *Tests*: _test the balance of Math Hints with 200 users_
    [List experiments] [What can you do?]
    ");
    assert_eq!(model.requests().len(), 1);
    finish(bot, model).await;
}

/// The provider tells the day; `/readyz` shows it, and the bot stays ready.
#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_its_provider_retires_is_shown_by_readyz() {
    let model = SandboxModel::start(0).await.unwrap();
    model.offers("claude-haiku-4-5-20251001", Some("2027-03-01"));
    let ask = asking(&model);
    let settings = Box::new(move |config: &mut Config| {
        ask(config);
        config.model.name = Some("claude-haiku-4-5".to_owned());
    });
    let bot = TestBot::with(Setup { settings, ..Setup::default() }).await;
    let answer = reqwest::get(format!("http://{}/readyz", bot.address())).await.unwrap();
    assert_eq!(answer.status(), 200);
    let shown: Value = answer.json().await.unwrap();
    let news = "the provider retires claude-haiku-4-5 on 2027-03-01; set model.name to \"claude-haiku-5-5\"";
    assert_eq!(shown["models"], json!([news]));
    finish(bot, model).await;
}
