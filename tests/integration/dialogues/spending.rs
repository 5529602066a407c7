//! What the language model costs, and what happens at a limit.

use std::{sync::Arc, time::Duration};

use countersign::{
    clock::Clock as _,
    config::{Config, CostLimits},
    conversation::record::notebook::{Notebook, Redaction},
};
use countersign_sandbox::model::SandboxModel;

use super::{notebook::id_of, scripted::asking};
use crate::support::{
    bot::{Setup, TestBot},
    thread::Thread,
};

/// In milliseconds.
const DAY: i64 = 24 * 60 * 60 * 1000;

const DAY_LIMIT: &str = "Today's cost limit for my language model is reached.";
const PERSON_LIMIT: &str = "You've reached today's cost limit for my language model.";
const THREAD_LIMIT: &str = "This thread has reached the cost limit for my language model.";

/// A bot whose model may cost only this, and the model. Every call costs more than a millionth of a dollar.
async fn bot_with(limits: CostLimits) -> (TestBot, SandboxModel) {
    let model = SandboxModel::start(0).await.unwrap();
    let ask = asking(&model);
    let settings = Box::new(move |config: &mut Config| {
        ask(config);
        config.model.limits = limits;
    });
    let setup = Setup { settings, ..Setup::default() };
    let since_midnight = u64::try_from(setup.clock.now().millis() % DAY).unwrap();
    setup.clock.advance(Duration::from_millis(DAY as u64 * 3 / 2 - since_midnight)); // noon
    (TestBot::with(setup).await, model)
}

fn starts_math_hints(model: &SandboxModel) {
    let parameters = serde_json::json!({ "experiment": "Math Hints", "status": "enrolling" });
    model.will_call("propose_update_experiment_status", parameters);
}

#[tokio::test(flavor = "multi_thread")]
async fn at_the_limit_of_a_day_the_rules_answer_and_say_so_once_also_after_a_restart() {
    let (mut bot, model) = bot_with(CostLimits { day: Some(0.000_001), ..CostLimits::default() }).await;
    starts_math_hints(&model);
    let root = {
        let mut thread = bot.user("ana").says("could we get math hints going?").await;
        let card = thread.heard();
        assert!(card.contains("Start “Math Hints”?") && !card.contains("cost limit"), "{card}");
        thread.root.clone()
    };
    assert_eq!(model.requests().len(), 1);

    bot.restart().await;
    let mut thread = Thread::new(&bot, "experiments", root);
    thread.skip();
    let answer = thread.answer("ana", "show Lesson Video Hints").await;
    assert!(answer.contains("Lesson Video Hints") && answer.contains(DAY_LIMIT), "{answer}");
    let answer = thread.answer("ana", "show Math Hints").await;
    assert!(answer.contains("Math Hints") && !answer.contains("cost limit"), "it is said once: {answer}");
    assert_eq!(model.requests().len(), 1, "nothing more was sent");

    let home = bot.user("bo").opens_home().await;
    assert!(home.contains("Model cost today"), "{home}");
    assert!(home.contains("limit less than $0.001 reached") && home.contains("for you, $0.00"), "{home}");
    drop(thread);

    bot.clock.advance(Duration::from_millis(DAY as u64));
    model.will_call("get_experiment_details", serde_json::json!({ "experiment_id": "Math Hints" }));
    let answer = bot.user("bo").answer("show Math Hints").await;
    assert!(!answer.contains("cost limit"), "{answer}");
    assert_eq!(model.requests().len(), 2, "another day begins at zero");
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_limit_of_one_person_leaves_the_model_to_others() {
    let (bot, model) = bot_with(CostLimits { person_a_day: Some(0.000_001), ..CostLimits::default() }).await;
    starts_math_hints(&model);
    bot.user("ana").says("could we get math hints going?").await;
    let answer = bot.user("ana").answer("show Lesson Video Hints").await;
    assert!(answer.contains(PERSON_LIMIT), "{answer}");
    let settings = bot.user("ana").types("/countersign settings").await;
    assert!(settings.contains("less than $0.001 a day for each person"), "{settings}");
    assert_eq!(model.requests().len(), 1);
    model.will_call("get_experiment_details", serde_json::json!({ "experiment_id": "Lesson Video Hints" }));
    let answer = bot.user("bo").answer("show Lesson Video Hints").await;
    assert!(!answer.contains("cost limit"), "{answer}");
    assert_eq!(model.requests().len(), 2);
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_limit_of_a_thread_holds_there_only_and_a_card_says_so() {
    let (bot, model) = bot_with(CostLimits { thread: Some(0.000_001), ..CostLimits::default() }).await;
    model.will_call("get_experiment_details", serde_json::json!({ "experiment_id": "Math Hints" }));
    let mut thread = bot.user("ana").says("show Math Hints").await;
    thread.skip();
    let card = thread.answer("ana", "start Math Hints").await;
    assert!(card.contains("Start “Math Hints”?") && card.contains(THREAD_LIMIT), "{card}");
    drop(thread);
    model.will_call("get_experiment_details", serde_json::json!({ "experiment_id": "Math Hints" }));
    let answer = bot.user("ana").answer("show Math Hints").await;
    assert!(!answer.contains("cost limit"), "{answer}");
    assert_eq!(model.requests().len(), 2);
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_notebook_says_what_a_thread_cost() {
    let (bot, model) = bot_with(CostLimits::default()).await;
    model.will_call("get_experiment_details", serde_json::json!({ "experiment_id": "Math Hints" }));
    let thread = bot.user("ana").says("show Math Hints").await;
    let notebook = {
        let notebook = Notebook::new(bot.store(), Arc::new(bot.clock.clone()), None, Redaction::default());
        let exported = notebook.export(&id_of(&bot, &thread)).await.unwrap();
        String::from_utf8(exported.markdown.bytes).unwrap()
    };
    drop(thread);
    let cost = notebook.lines().find(|line| line.starts_with("Total: 1 calls")).unwrap_or_default();
    assert!(cost.contains(" Cost: $0.0"), "{notebook}");
    bot.finish().await;
}
