//! Plans that are corrected, stopped while they wait, and made again with a language model.

use countersign_sandbox::model::SandboxModel;
use insta::assert_snapshot;
use serde_json::{Value, json};

use super::{
    plans::{assert_holds, refuses, stream_of},
    scripted::{bot_with_model, finish},
};
use crate::{
    approvals::windows::{opens, sends},
    support::bot::TestBot,
};

#[tokio::test(flavor = "multi_thread")]
async fn an_order_given_in_the_form_is_kept_by_a_later_correction() {
    let bot = TestBot::start().await;
    let said = "show me the plan first: show Math Hints, then list the contexts, then start Math Hints, then pause Class Hint Rollout";
    let mut thread = bot.user("ana").asks(said).await;
    opens(&bot, &thread, "ana", "Edit…").await;
    assert!(sends(&bot, "ana", json!({ "Steps, in order": "4, 1, 2, 3" })).await.is_empty());
    assert_holds(&thread.heard(), &["*1*  pause Class Hint Rollout", "*4*  start Math Hints"]);
    thread.says("ana", "drop step 4").await;
    let heard = thread.heard();
    assert_holds(
        &heard,
        &[
            "*Run these 3 steps?*",
            "*1*  pause Class Hint Rollout",
            "*2*  show Math Hints",
            "*3*  list the contexts",
            "*Left out*  start Math Hints",
        ],
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_of_a_plan_that_has_begun_is_not_taken_for_a_name() {
    let bot = TestBot::start().await;
    let said = "show me the plan first: start Math Hints, then show it, then list the contexts";
    let mut thread = bot.user("ana").asks(said).await;
    thread.clicked("ana", "Run plan").await;
    thread.says("ana", "drop step 2").await;
    assert_eq!(thread.heard(), "");
    assert_snapshot!(thread.told("ana"), @"
    The plan has begun, so I can't leave out a single step. Nothing was changed.
    Reject the card of that step when it comes, or say “stop” to end the plan.
    The plan here (step 1 of 3):
    • Now: start Math Hints
    • Next: show it
    • Next: list the contexts
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_ends_the_plan_and_leaves_other_cards_open() {
    let bot = TestBot::start().await;
    let mut thread = bot.user("ana").asks("start Math Hints, then show Math Hints in short").await;
    thread.says("ana", "pause Class Hint Rollout").await;
    thread.heard();
    thread.says("ana", "stop").await;
    assert_snapshot!(thread.in_short(), @"
    *Start “Math Hints”*
    Withdrawn by @ana · ‹time›
    *Status*  inactive → *running*
    Asked by @ana · digest `‹id›`
    [Change and ask again…] [Show all]
    ---
    @ana *Start “Math Hints”* was withdrawn, so nothing was changed.
    Not done: show Math Hints in short.
    ");
    assert_snapshot!(thread.told("ana"), @"
    Stopped the plan. These other cards stay open:
    • *Stop “Class Hint Rollout”* · asked by @ana
    To withdraw them too, say “stop” again.
    ");
    thread.says("ana", "stop").await;
    assert_holds(&thread.heard(), &["Withdrawn by @ana", "@ana *Stop “Class Hint Rollout”* was withdrawn"]);
    assert!(bot.upgrade.effects().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_that_waits_at_a_condition_is_shown_and_stopped() {
    let bot = TestBot::start().await;
    let mut thread = bot.user("ana").asks("show Math Hints, and only if it looks nice, start it").await;
    thread.says("ana", "is UpGrade running?").await;
    thread.heard();
    thread.says("ana", "@countersign status").await;
    assert_snapshot!(thread.told("ana"), @"
    The plan here (step 1 of 2):
    • Done: show Math Hints → Worked hints when the graph of an absolute value is compared.
    • Now: waiting for an answer (“it looks nice”?)
    • Next: only if it looks nice, start it
    ");
    thread.says("ana", "stop").await;
    assert_snapshot!(thread.heard(), @"
    Stopped, as @ana asked.
    • Done: show Math Hints → Worked hints when the graph of an absolute value is compared.
    • Not done: only if it looks nice, start it
    ");
    thread.says("ana", "yes, go on").await;
    assert!(!thread.heard().contains("Start “Math Hints”?"), "the plan is over");
    assert!(bot.upgrade.effects().is_empty());
    assert_snapshot!(stream_of(&bot, &thread).await.join("\n"), @"
    Task Preparation 3/3 planner: A plan of 2 steps
    Execution 1/2 assistant: Started: show Math Hints
    Execution 1/2 experiments: Done: show Math Hints
    Execution 1/2 experiments: Asks whether “it looks nice”
    Execution 1/2 experiments: 1 of 2 steps done (a person said stop) ■
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_done_before_a_denied_condition_is_told() {
    let bot = TestBot::start().await;
    let mut thread =
        bot.user("ana").asks("list the contexts, then show Math Hints, and only if it looks nice, start it").await;
    thread.says("ana", "no").await;
    assert_snapshot!(thread.heard(), @"
    OK, I stopped here.
    Done before that: list the contexts; show Math Hints.
    Not done: only if it looks nice, start it.
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_step_in_hand_is_named_after_other_messages() {
    let bot = TestBot::start().await;
    let mut thread = bot.user("ana").asks("start Math Hints, then pause Class Hint Rollout").await;
    thread.says("ana", "is UpGrade running?").await;
    thread.heard();
    thread.says("ana", "@countersign status").await;
    assert_holds(
        &thread.told("ana"),
        &["The plan here (step 1 of 2):", "Now: start Math Hints", "Next: pause Class Hint Rollout"],
    );
}

/// The model divides the message into these requests.
fn divides(model: &SandboxModel, steps: &[&str]) {
    let found = json!({
        "intent_type": "needs_info", "confidence": 0.95, "user_request_summary": "Several.", "steps": steps,
    });
    model.will_call("analyze_user_request", found);
}

/// The situation in the newest request to the model.
fn situation(model: &SandboxModel) -> String {
    let requests = model.requests();
    requests.last().unwrap().body["messages"].as_array().unwrap().last().unwrap().to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_makes_one_other_plan_from_the_reason() {
    let (bot, model) = bot_with_model().await;
    divides(&model, &["stop Lesson Video Hints", "delete Lesson Video Hints"]);
    let mut thread = bot.user("ana").asks("stop Lesson Video Hints and delete it").await;
    divides(&model, &["stop Lesson Video Hints", "archive Lesson Video Hints"]);
    refuses(&bot, &thread, "we must keep its data").await;
    assert!(situation(&model).contains(r#"replan"#) && situation(&model).contains("we must keep its data"));
    let heard = thread.heard();
    assert_holds(&heard, &["Rejected by @ana", "*Run these 2 steps?*", "*2*  archive Lesson Video Hints"]);
    assert!(!heard.contains("I'll try"), "{heard}");
    refuses(&bot, &thread, "I changed my mind").await;
    assert_holds(&thread.heard(), &["I've made 2 plans for this request, so I won't make another unless you ask."]);
    assert!(bot.upgrade.effects().is_empty());
    finish(bot, model).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_knows_no_other_plan_says_why() {
    let (bot, model) = bot_with_model().await;
    divides(&model, &["stop Lesson Video Hints", "delete Lesson Video Hints"]);
    let mut thread = bot.user("ana").asks("stop Lesson Video Hints and delete it").await;
    let why = "Without a deletion nothing but the stop is left, and you can ask for that alone.";
    let found = json!({
        "intent_type": "direct_answer", "confidence": 0.9, "user_request_summary": "Another plan.", "answer": why,
    });
    model.will_call("analyze_user_request", found);
    refuses(&bot, &thread, "no deletion today").await;
    let heard = thread.heard();
    assert!(heard.ends_with(why) && !heard.contains("I'll try"), "{heard}");
    finish(bot, model).await;
}

/// A plan whose condition does not hold, with the model's calls up to there.
async fn fails_at_its_condition<'a>(bot: &'a TestBot, model: &SandboxModel) -> crate::support::thread::Thread<'a> {
    let steps = [
        "test the balance of Lesson Video Hints with 60 users",
        "only if enrolled is above 60, stop Lesson Video Hints",
    ];
    divides(model, &steps);
    model.will_call("propose_test_condition_balance", json!({ "experiment": "Lesson Video Hints", "users": 60 }));
    let said = "test the balance of Lesson Video Hints with 60 users, and only if enrolled is above 60, stop Lesson Video Hints";
    bot.user("ana").asks(said).await
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_condition_that_does_not_hold_a_model_makes_one_other_plan() {
    let (bot, model) = bot_with_model().await;
    let mut thread = fails_at_its_condition(&bot, &model).await;
    divides(
        &model,
        &["test the balance of Lesson Video Hints with 100 users", "only if enrolled is above 60, stop it"],
    );
    thread.clicks("bo", "Enroll test users").await;
    assert_holds(
        &thread.heard(),
        &[
            "I stopped here: enrolled is 60.",
            "Not done: only if enrolled is above 60, stop Lesson Video Hints.",
            "*Run these 2 steps?*",
            "*1*  test the balance of Lesson Video Hints with 100 users · _needs approval_",
            "[Run plan] [Reject…] [Edit…]",
        ],
    );
    let situation = situation(&model);
    assert!(
        situation.contains("the condition does not hold: enrolled is 60") && situation.contains("not_done"),
        "{situation}"
    );
    thread.clicks("ana", "Reject…").await;
    finish(bot, model).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_is_away_or_knows_no_other_plan_adds_nothing() {
    for is_away in [true, false] {
        let (bot, model) = bot_with_model().await;
        let mut thread = fails_at_its_condition(&bot, &model).await;
        match is_away {
            true => model.is_down(true),
            false => model.will_say(""),
        }
        thread.clicks("bo", "Enroll test users").await;
        let heard = thread.heard();
        let end = "Not done: only if enrolled is above 60, stop Lesson Video Hints.";
        assert!(heard.contains(end) && !heard.contains("[Run plan]"), "{heard}");
        finish(bot, model).await;
    }
}

/// A value that nothing has: the plan cannot work as it is.
#[tokio::test(flavor = "multi_thread")]
async fn after_a_change_that_failed_at_most_two_plans_are_made() {
    let (bot, model) = bot_with_model().await;
    let steps = ["start Math Hints", "stop Lesson Video Hints"];
    divides(&model, &steps);
    let start: fn() -> Value = || json!({ "experiment": "Math Hints", "status": "enrolling" });
    model.will_call("propose_update_experiment_status", start());
    let mut thread = bot.user("ana").asks("start Math Hints, then stop Lesson Video Hints").await;
    model.will_call("propose_update_experiment_status", start());
    bot.user("cy").asks("start Math Hints").await.clicks("bo", "Start experiment").await;
    divides(&model, &steps[1..]);
    thread.clicks("bo", "Start experiment").await;
    assert_holds(
        &thread.heard(),
        &["didn't work", "Not done: stop Lesson Video Hints.", "*Run this step?*", "*1*  stop Lesson Video Hints"],
    );
    let stop: fn() -> Value = || json!({ "experiment": "Lesson Video Hints", "status": "enrollmentComplete" });
    model.will_call("propose_update_experiment_status", stop());
    thread.clicks("ana", "Run plan").await;
    model.will_call("propose_update_experiment_status", stop());
    bot.user("cy").asks("stop Lesson Video Hints").await.clicks("bo", "Stop experiment").await;
    thread.heard();
    thread.clicks("bo", "Stop experiment").await;
    let heard = thread.heard();
    assert!(heard.contains("didn't work") && !heard.contains("Run this step?"), "two plans are enough: {heard}");
    finish(bot, model).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_is_not_understood_is_named() {
    let bot = TestBot::start().await;
    let said = "list the contexts, then wobble the frobs, and only if it looks nice, stop Lesson Video Hints";
    let mut thread = bot.user("ana").says(said).await;
    assert_snapshot!(thread.heard(), @"
    I couldn't make sense of “only if it looks nice” in that. What did you mean by it?
    [show “Lesson Video Hints”]
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_whose_it_comes_later_is_told_which_step_it_needs() {
    let bot = TestBot::start().await;
    let said = "show me the plan first: start Math Hints, then pause Class Hint Rollout, then show it";
    let mut thread = bot.user("ana").asks(said).await;
    thread.says("ana", "without step 2").await;
    thread.heard();
    thread.says("ana", "2 before 1").await;
    assert_holds(&thread.heard(), &["“show it” needs “start Math Hints” before it."]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_is_taken_back_is_no_step() {
    let bot = TestBot::start().await;
    let said = [
        "delete Chat Tone? no, just archive it",
        "delete Chat Tone. Actually, archive it",
        "delete Chat Tone, or rather archive it",
        "delete Chat Tone? no",
    ];
    for said in said {
        let mut thread = bot.user("ana").says(said).await;
        let heard = thread.heard();
        assert!(!heard.contains("Run these") && !heard.contains("Delete “Chat Tone”"), "{said}: {heard}");
    }
    assert!(bot.upgrade.effects().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_about_what_an_earlier_one_deletes_is_refused() {
    let bot = TestBot::start().await;
    for said in ["delete Chat Tone and then start it", "delete Chat Tone, then start Chat Tone"] {
        let mut thread = bot.user("ana").says(said).await;
        let heard = thread.heard();
        assert_holds(&heard, &["Step 2 isn't possible, so I didn't begin the plan", "Step 1 deletes it first"]);
        assert!(!heard.contains("Run plan"), "{heard}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_to_another_person_is_no_part_of_a_request() {
    let bot = TestBot::start().await;
    let card = bot.user("ana").answer("thanks @bo! @countersign start Math Hints").await;
    assert!(card.contains("Start “Math Hints”"), "{card}");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_steps_that_are_understood_are_offered() {
    let bot = TestBot::start().await;
    let answer = bot.user("ana").answer("start Math Hints but only \"for the kids in 5B\"").await;
    assert!(!answer.contains("takes more than one step") && answer.contains("for the kids in 5B"), "{answer}");
}
