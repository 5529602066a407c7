//! Messages that only make sense after the ones before: “the second one”, “which of those are running?”, “again with 100
//! more”, “why?”.

use countersign_sandbox::model::SandboxModel;
use serde_json::json;

use super::{
    first_questions::{answer, asked},
    scripted::{bot_with_model, finish},
};
use crate::support::bot::TestBot;

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_of_the_last_list_is_named_by_its_place() {
    let (bot, mut thread) = TestBot::hears("ana", "list experiments").await;
    thread.skip();
    let second = answer(&mut thread, "show me the second one").await;
    assert!(second.starts_with("Class Hint Rollout"), "{second}");
    let fifth = answer(&mut thread, "start the fifth one").await;
    assert!(fifth.contains("Start “Math Hints”"), "{fifth}");
    let ninth = answer(&mut thread, "show the ninth one").await;
    assert!(ninth.contains("The last list has only 6 entries"), "{ninth}");
    assert!(bot.upgrade.effects().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_list_nothing_can_be_counted() {
    let bot = TestBot::start().await;
    let question = asked(&bot, "show me the second one").await;
    assert!(question.contains("I haven't shown a list in this thread"), "{question}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_limited_further() {
    let (_bot, mut thread) = TestBot::hears("ana", "list experiments in mathstream").await;
    thread.skip();
    let running = answer(&mut thread, "which of those are running?").await;
    assert!(running.contains("(running, in mathstream)"), "{running}");
    let (_bot, mut thread) = TestBot::hears("ana", "list experiments in assign-prog").await;
    thread.skip();
    let paused = answer(&mut thread, "only the paused ones").await;
    assert!(paused.contains("Running Test") && !paused.contains("Math Hints"), "{paused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn both_are_on_one_card() {
    let (bot, mut thread) = TestBot::hears("ana", "list running experiments").await;
    thread.skip();
    let card = answer(&mut thread, "stop both").await;
    assert!(card.contains("Stop 2 experiments?"), "{card}");
    assert!(card.contains("Class Hint Rollout") && card.contains("Lesson Video Hints"), "{card}");
    assert!(bot.upgrade.effects().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn both_of_more_than_two_is_asked_about() {
    let (_bot, mut thread) = TestBot::hears("ana", "list experiments").await;
    thread.skip();
    let question = answer(&mut thread, "stop both").await;
    assert!(question.contains("The last list has 6 entries"), "{question}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_is_done_for_another_context_and_another_experiment() {
    let (_bot, mut thread) = TestBot::hears("ana", "list experiments in assign-prog").await;
    thread.skip();
    let same = answer(&mut thread, "the same for mathstream").await;
    assert!(same.contains("Class Hint Rollout") && !same.contains("Math Hints"), "{same}");
    let elsewhere = answer(&mut thread, "and assign-prog?").await;
    assert!(elsewhere.contains("Math Hints") && !elsewhere.contains("Class Hint Rollout"), "{elsewhere}");
    let (_bot, mut thread) = TestBot::hears("ana", "show Math Hints in detail").await;
    thread.skip();
    let same = answer(&mut thread, "the same for Running Test").await;
    assert!(same.starts_with("Running Test"), "{same}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_is_repeated_with_other_numbers() {
    let (_bot, mut thread) = TestBot::hears("ana", "test the balance of Lesson Video Hints with 200 users").await;
    thread.skip();
    let again = answer(&mut thread, "again with 100 more").await;
    assert!(again.contains("100"), "{again}");
    assert!(again.contains("Lesson Video Hints"), "{again}");
}

#[tokio::test(flavor = "multi_thread")]
async fn it_stays_the_experiment_of_the_questions_before() {
    let (bot, mut thread) = TestBot::hears("ana", "who created Math Hints?").await;
    let created = thread.heard();
    assert!(created.contains("“*Math Hints*” was created"), "{created}");
    let long = answer(&mut thread, "how long has it been running?").await;
    assert!(long.contains("isn't running: it is inactive"), "{long}");
    let enrolled = answer(&mut thread, "how many enrolled so far?").await;
    assert!(enrolled.contains("Nobody is enrolled in “*Math Hints*”"), "{enrolled}");
    let lists = answer(&mut thread, "who is excluded from it?").await;
    assert!(lists.contains("has no exclusion list"), "{lists}");
    let tagged = answer(&mut thread, "add tag pilot to it").await;
    assert!(tagged.contains("pilot") && tagged.contains("Math Hints"), "{tagged}");
    assert!(bot.upgrade.effects().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn how_long_a_running_one_has_been_running() {
    let bot = TestBot::start().await;
    let long = asked(&bot, "how long has Lesson Video Hints been running?").await;
    assert!(long.contains("has been running"), "{long}");
    let enrolled = asked(&bot, "how many people have enrolled in Lesson Video Hints so far?").await;
    assert!(enrolled.contains("users are enrolled in “*Lesson Video Hints*”"), "{enrolled}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_is_a_draft_that_asks_for_a_name() {
    let (bot, mut thread) = TestBot::hears("ana", "show Math Hints").await;
    thread.skip();
    let question = answer(&mut thread, "make a copy").await;
    assert!(question.contains("What should the experiment be called?"), "{question}");
    let card = answer(&mut thread, "Math Hints 2").await;
    assert!(card.contains("Create “Math Hints 2”"), "{card}");
    assert!(card.contains("absolute_value_plot_equality"), "its decision point is copied: {card}");
    thread.clicked("bo", "Create experiment").await;
    let copy = bot.upgrade.experiment("Math Hints 2").unwrap();
    assert_eq!((copy["state"].as_str(), copy["context"][0].as_str()), (Some("inactive"), Some("assign-prog")));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_experiment_like_another_one_is_a_copy() {
    let bot = TestBot::start().await;
    let question = asked(&bot, "create an experiment like Math Hints").await;
    assert!(question.contains("What should the experiment be called?"), "{question}");
    let unknown = asked(&bot, "make a copy of Mth Hnts").await;
    assert!(unknown.contains("No experiment is called"), "{unknown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_reason_and_the_person_are_known_after_a_rejection() {
    let (bot, mut thread) = TestBot::asked("ana", "start Math Hints").await;
    thread.clicked("bo", "Reject…").await;
    thread.skip();
    let why = answer(&mut thread, "why?").await;
    assert!(why.contains("rejected without a reason"), "{why}");
    let who = answer(&mut thread, "who turned it down?").await;
    assert!(!who.contains("No experiment is called"), "{who}");
    assert!(who.contains("bo"), "{who}");
    assert!(bot.upgrade.effects().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_points_that_can_be_used_there_are_those_of_the_context() {
    let (bot, mut thread) = TestBot::hears("ana", "what conditions does assign-prog have?").await;
    thread.skip();
    let points = answer(&mut thread, "what points can I use there?").await;
    assert!(points.contains("A decision point in `assign-prog`"), "{points}");
    let (_, mut thread) = TestBot::hears("ana", "show Lesson Video Hints").await;
    thread.skip();
    let points = answer(&mut thread, "which decision points can I use?").await;
    assert!(points.contains("A decision point in `mathstream`"), "{points}");
    let which = asked(&bot, "which decision points can I use?").await;
    assert!(which.contains("The decision points depend on the context. Which one:"), "{which}");
}

#[tokio::test(flavor = "multi_thread")]
async fn why_after_a_change_names_who_asked_and_who_approved() {
    let (bot, mut thread) = TestBot::asked("ana", "start Math Hints").await;
    thread.clicked("bo", "Start experiment").await;
    thread.skip();
    for said in ["why?", "why was it started?", "why did you do that?"] {
        let why = answer(&mut thread, said).await;
        assert!(why.contains("1 change in this thread:"), "{said}: {why}");
        assert!(why.contains("asked by @ana, approved by @bo"), "{said}: {why}");
    }
    assert_eq!(bot.upgrade.effects().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn why_without_a_reason_asks_back() {
    let bot = TestBot::start().await;
    let why = asked(&bot, "why?").await;
    assert!(why.contains("Which change or answer do you mean?"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_is_told_the_last_list() {
    let (bot, model): (TestBot, SandboxModel) = bot_with_model().await;
    model.will_call("get_all_experiments", json!({ "context": "mathstream" }));
    let mut thread = bot.user("ana").says("list experiments in mathstream").await;
    thread.skip();
    model.will_call("get_experiment_details", json!({ "experiment_id": "Lesson Video Hints" }));
    model.will_say("Lesson Video Hints is running.");
    thread.says("ana", "and what about the one after the first, is that okay for us?").await;
    let last = model.requests().last().unwrap().body.to_string();
    assert!(last.contains("Lesson Video Hints") && last.contains("listed"), "{last}");
    finish(bot, model).await;
}
