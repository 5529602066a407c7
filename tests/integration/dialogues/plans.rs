//! Plans: shown before they begin, edited, stopped; steps with conditions.

use countersign::conversation::record::{
    notebook::{Notebook, Redaction},
    trace::Traces,
};
use countersign_sandbox::bridge::Version;
use insta::assert_snapshot;
use serde_json::{Value, json};

use super::{
    notebook::id_of,
    simulation::{self, Transcript, bot_with, has_said},
};
use crate::{
    approvals::windows::{as_read, opens, sends},
    support::{
        bot::{TestBot, eventually},
        thread::Thread,
    },
};

/// Asserts that a text holds each of these, in order.
#[track_caller]
pub(super) fn assert_holds(text: &str, lines: &[&str]) {
    let mut rest = text;
    for line in lines {
        let at = rest.find(line).unwrap_or_else(|| panic!("{line:?} is missing, or stands earlier, in:\n{text}"));
        rest = &rest[at + line.len()..];
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_with_a_deletion_is_shown_first() {
    let bot = TestBot::start().await;
    let mut thread = bot.user("ana").says("stop Lesson Video Hints and delete it").await;
    assert_holds(
        &thread.heard(),
        &[
            "*Run these 2 steps?*",
            "*1*  stop Lesson Video Hints · _needs approval_",
            "*2*  delete it · _can't be undone, needs approval_",
            "[Run plan] [Reject…] [Edit…]",
        ],
    );
    assert!(bot.upgrade.effects().is_empty(), "nothing is changed by a plan");

    thread.clicks("ana", "Run plan").await;
    assert_holds(&thread.heard(), &["Started a plan with 2 steps.", "*Stop “Lesson Video Hints”?*", "Step 1 of 2."]);
    thread.clicks("bo", "Stop experiment").await;
    assert_holds(&thread.heard(), &["Next: delete it", "*Permanently delete “Lesson Video Hints”?*", "Step 2 of 2."]);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_person_who_asked_starts_a_plan() {
    let bot = TestBot::start().await;
    let mut thread = bot.user("ana").says("stop Lesson Video Hints and delete it").await;
    thread.heard();
    thread.clicks("bo", "Run plan").await;
    assert!(!thread.heard().contains("Step 1 of 2"), "the plan has not begun");
    thread.clicks("ana", "Reject…").await;
    let heard = thread.heard();
    assert!(!heard.contains("Step 1 of 2") && bot.upgrade.effects().is_empty(), "{heard}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_may_ask_to_see_the_plan_and_drop_a_step() {
    let bot = TestBot::start().await;
    let mut thread =
        bot.user("ana").says("show me the plan first: start Math Hints, then show it, then list the contexts").await;
    assert_holds(&thread.heard(), &["*Run these 3 steps?*", "*1*  start Math Hints", "*2*  show it", "*3*  list"]);
    thread.says("ana", "without step 2").await;
    assert_holds(&thread.heard(), &["*Run these 2 steps?*", "*2*  list", "*Left out*  show it"]);
    thread.clicks("ana", "Run plan").await;
    assert_holds(&thread.heard(), &["*Start “Math Hints”?*", "Step 1 of 2."]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_is_done_only_if_its_condition_holds() {
    let bot = TestBot::start().await;
    let said = "test the balance of Lesson Video Hints with 60 users, and only if enrolled is at least 60, stop it";
    let mut thread = bot.user("ana").says(said).await;
    assert_holds(&thread.heard(), &["Step 1 of 2. When it is done: only if enrolled is at least 60, stop it."]);
    thread.clicks("bo", "Enroll test users").await;
    assert_holds(&thread.heard(), &["Next, since enrolled is 60: stop it", "*Stop “Lesson Video Hints”?*"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn something_new_is_tested_and_started_only_if_the_test_is_good() {
    let bot = TestBot::start().await;
    let said = "create Foo, test its balance with 200 users, and only if it is even, start it";
    let mut thread = bot.user("ana").says(said).await;
    assert_holds(
        &thread.heard(),
        &[
            "Which context (application) is it for?",
            "After that: test its balance with 200 users; only if it is even, start it.",
        ],
    );
    thread.says("ana", "assign-prog").await;
    thread.says("ana", "control and variant").await;
    thread.says("ana", "SelectSection/area_model").await;
    assert_holds(
        &thread.heard(),
        &["*Create “Foo”?*", "Step 1 of 3. When it is done: test its balance with 200 users; only if it is even"],
    );
    thread.clicks("bo", "Create experiment").await;
    // Nobody can be enrolled before the start, so the platform's own draw is tested.
    assert_holds(
        &thread.heard(),
        &[
            "Next: test its balance with 200 users",
            "” is inactive, so nobody was enrolled. Of 200 users, expect about control 100, variant 100.",
            "Next, since it fits the weights (p = ",
            "*Start “Foo”?*",
        ],
    );
    thread.clicks("bo", "Start experiment").await;
    assert!(thread.heard().contains("Started “Foo”"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_condition_that_does_not_hold_ends_the_plan() {
    let bot = TestBot::start().await;
    let said = "test the balance of Lesson Video Hints with 60 users, and only if enrolled is above 60, stop it";
    let mut thread = bot.user("ana").says(said).await;
    thread.heard();
    thread.clicks("bo", "Enroll test users").await;
    let heard = thread.heard();
    assert_holds(&heard, &["I stopped here: enrolled is 60.", "Not done: only if enrolled is above 60, stop it."]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_code_cannot_tell_is_asked() {
    let bot = TestBot::start().await;
    let said = "show Math Hints, and only if it looks nice, start it";
    let mut thread = bot.user("ana").says(said).await;
    assert_holds(
        &thread.heard(),
        &["You said “if it looks nice”, and the result doesn't show it. Should I go on?", "[Yes, go on]"],
    );
    thread.says("ana", "hello").await;
    thread.heard();
    thread.says("ana", "yes, go on").await;
    assert_holds(&thread.heard(), &["*Start “Math Hints”?*"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_code_cannot_tell_may_be_denied() {
    let bot = TestBot::start().await;
    let mut thread = bot.user("ana").says("show Math Hints, and only if it looks nice, start it").await;
    thread.heard();
    thread.says("ana", "no").await;
    assert_holds(&thread.heard(), &["OK, I stopped here.", "Not done: only if it looks nice, start it."]);
}

/// The trace of a thread.
async fn trace_of(bot: &TestBot, thread: &Thread<'_>) -> Value {
    Traces::new(bot.store()).trace(&id_of(bot, thread)).await.unwrap().unwrap()
}

/// What the stream of a thread's plans tells, a line for each event.
pub(super) async fn stream_of(bot: &TestBot, thread: &Thread<'_>) -> Vec<String> {
    let trace = trace_of(bot, thread).await;
    let line = |event: &Value| {
        let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
        let end = if event["complete"] == true { " ■" } else { "" };
        let error = event["error"].as_str().map(|error| format!(" ({error})")).unwrap_or_default();
        format!(
            "{} {}/{} {}: {}{error}{end}",
            text("phase"),
            event["step"],
            event["total_steps"],
            text("source"),
            text("message")
        )
    };
    trace["events"]["stream"].as_array().unwrap().iter().map(line).collect()
}

const THREE: &str = "start Math Hints, then pause Class Hint Rollout, then stop Lesson Video Hints";
const BUTTONS: [&str; 3] = ["Start experiment", "Stop experiment", "Stop experiment"];

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_stopped_in_each_step() {
    let mut told = Transcript::default();
    for step in 0..=3 {
        let bot = TestBot::start().await;
        let mut thread = bot.user("ana").asks(&format!("/planning {THREE}")).await;
        if step > 0 {
            thread.clicked("ana", "Run plan").await;
        }
        for button in &BUTTONS[..usize::max(step, 1) - 1] {
            thread.clicked("bo", button).await;
        }
        told.0.push_str(&format!("--- with {step} steps begun\n"));
        thread.says("ana", "stop").await;
        told.0.push_str(&format!("{}\n", thread.in_short()));
        told.0.push_str(&format!("{}\n", stream_of(&bot, &thread).await.join("\n")));
        assert_eq!(bot.upgrade.effects().len(), usize::max(step, 1) - 1, "stopped with {step} steps begun");
        thread.says("ana", "@countersign status").await;
        assert!(!thread.told("ana").contains("The plan here"), "it is over");
    }
    assert_snapshot!(told.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rest_of_a_stopped_plan_is_listed_and_offered_again() {
    let bot = TestBot::start().await;
    let mut thread = bot.user("ana").asks(THREE).await;
    thread.clicked("bo", BUTTONS[0]).await;
    thread.says("ana", "stop").await;
    thread.skip();
    thread.says("ana", "what is left of the plan?").await;
    assert_holds(&thread.heard(), &["Remaining steps:", "pause Class Hint Rollout", "stop Lesson Video Hints"]);
    thread.says("ana", "go on").await;
    let card = ["*Run these 2 steps?*", "*1*  pause Class Hint Rollout", "*2*  stop Lesson Video Hints", "[Run plan]"];
    assert_holds(&thread.heard(), &card);
    assert_eq!(bot.upgrade.effects().len(), 1, "the rest is only offered");
    thread.clicks("ana", "Run plan").await;
    assert_holds(&thread.heard(), &["*Stop “Class Hint Rollout”?*", "Step 1 of 2."]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_of_two_domains_is_stopped_while_a_step_runs() {
    let mut told = Transcript::default();
    let (bot, bridge) = bot_with(Version::V01).await;
    bridge.hold_jobs();
    let said = "load the demo model as demo, then set the dose to 200 mg, then run it, then start Math Hints";
    let mut thread = bot.user("ana").asks(said).await;
    for button in ["Load model", "Set value"] {
        thread.clicked("bo", button).await;
    }
    thread.clicked("bo", "Run simulation").await;
    thread.says("ana", "@countersign status").await;
    told.0.push_str(&format!("> @countersign status\n{}\n\n", thread.told("ana")));
    thread.says("ana", "stop").await;
    eventually("the end", || has_said(&thread, "Not done")).await;
    bot.settled().await;
    told.note("stop", &mut thread);
    told.0.push_str(&stream_of(&bot, &thread).await.join("\n"));
    assert!(bot.upgrade.effects().is_empty(), "the step after it is not done");
    assert_snapshot!(told.0);
    simulation::finish(bot, bridge).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_domains_are_in_one_plan_and_one_thread() {
    let mut told = Transcript::default();
    let (bot, bridge) = bot_with(Version::V05).await;
    let said = "show me the plan first: load the demo model as demo, then start Math Hints, then run demo, then show Math Hints in short";
    let mut thread = bot.user("ana").says(said).await;
    told.note(said, &mut thread);
    thread.clicks("ana", "Run plan").await;
    told.note("[Run plan]", &mut thread);
    for button in ["Load model", "Start experiment"] {
        thread.clicks("bo", button).await;
        told.note(&format!("[{button}]"), &mut thread);
    }
    thread.clicks("bo", "Run simulation").await;
    eventually("the end of the plan", || has_said(&thread, "Step 4 of 4")).await;
    bot.settled().await;
    told.note("[Run simulation]", &mut thread);
    told.0.push_str(&stream_of(&bot, &thread).await.join("\n"));
    assert_eq!(bridge.jobs().len(), 1);
    assert_eq!(bot.upgrade.experiment("Math Hints").unwrap()["state"], "running");
    assert_snapshot!(told.0);
    simulation::finish(bot, bridge).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_while_a_card_is_open_is_no_answer_and_is_not_lost() {
    let mut told = Transcript::default();
    let bot = TestBot::start().await;
    let mut thread = bot.user("ana").asks("start Math Hints, then show Math Hints in short").await;
    for said in ["is UpGrade running?", "sounds good", "pause Class Hint Rollout", "and list the paused experiments"] {
        thread.says("ana", said).await;
        told.0.push_str(&format!("> {said}\n{}\n\n", thread.in_short()));
        assert!(bot.upgrade.effects().is_empty(), "{said:?} decides nothing");
    }
    let first = thread.messages().into_iter().find(|message| message.words().contains("Step 1 of 2")).unwrap();
    bot.slack.clicks("bo", "experiments", &first.ts, "Start experiment").await.unwrap();
    bot.settled().await;
    told.0.push_str(&format!("> [Start experiment] on the card of the plan\n{}\n\n", thread.in_short()));
    assert_eq!(bot.upgrade.experiment("Math Hints").unwrap()["state"], "running");
    assert_snapshot!(told.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_put_into_another_order_and_checked() {
    let mut told = Transcript::default();
    let bot = TestBot::start().await;
    let said = "show me the plan first: show Math Hints, then start it, then list the contexts, and only if it looks nice, stop Lesson Video Hints";
    let mut thread = bot.user("ana").says(said).await;
    told.note(said, &mut thread);
    for said in ["3 before 1", "without step 1", "without step 3", "without the list"] {
        told.says(said, &mut thread).await;
    }
    assert!(bot.upgrade.effects().is_empty());
    assert_snapshot!(told.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn steps_are_swapped_and_put_elsewhere_in_words() {
    let bot = TestBot::start().await;
    let said = "show me the plan first: show Math Hints, then start it, then list the contexts";
    let mut thread = bot.user("ana").asks(said).await;
    thread.says("ana", "swap step 2 and 3").await;
    assert_holds(&thread.heard(), &["*1*  show Math Hints", "*2*  list the contexts", "*3*  start it"]);
    thread.says("ana", "put step 3 first").await;
    assert_holds(&thread.heard(), &["“start it” needs “show Math Hints” before it."]);
    thread.says("ana", "move step 2 to the top").await;
    assert_holds(&thread.heard(), &["*1*  list the contexts", "*2*  show Math Hints", "*3*  start it"]);
    thread.says("ana", "drop the first step").await;
    let two = ["*Run these 2 steps?*", "*1*  show Math Hints", "*2*  start it", "*Left out*  list the contexts"];
    assert_holds(&thread.heard(), &two);
    assert!(bot.upgrade.effects().is_empty());
}

/// Ana refuses the plan on the newest card for a reason.
pub(super) async fn refuses(bot: &TestBot, thread: &Thread<'_>, reason: &str) {
    opens(bot, thread, "ana", "Reject…").await;
    assert!(sends(bot, "ana", json!({ "Reason": reason })).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_reason_of_a_refused_plan_leads_to_one_other_plan() {
    let mut told = Transcript::default();
    let bot = TestBot::start().await;
    let mut thread = bot.user("ana").asks("stop Lesson Video Hints and delete it").await;
    refuses(&bot, &thread, "without the delete").await;
    told.note("[Reject…] without the delete", &mut thread);
    refuses(&bot, &thread, "without step 1").await;
    told.note("[Reject…] without step 1", &mut thread);
    assert!(bot.upgrade.effects().is_empty());

    let mut thread = bot.user("ana").asks("stop Lesson Video Hints and delete it").await;
    refuses(&bot, &thread, "I had too much coffee").await;
    told.note("[Reject…] I had too much coffee", &mut thread);

    let mut thread = bot.user("ana").asks("stop Lesson Video Hints and delete it").await;
    thread.clicks("ana", "Reject…").await;
    told.note("[Reject…]", &mut thread);
    told.says("no, without the delete", &mut thread).await;
    thread.clicks("ana", "Run plan").await;
    told.note("[Run plan]", &mut thread);
    assert!(thread.last().contains("Step 1 of 1"), "{}", thread.last());
    assert!(bot.upgrade.effects().is_empty());
    assert_snapshot!(told.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_refused_for_a_typed_reason() {
    let bot = TestBot::start().await;
    let mut thread = bot.user("ana").asks("stop Lesson Video Hints and delete it").await;
    thread.says("ana", "don't do it: without the delete").await;
    let refused = ["Rejected by @ana", "_without the delete_", "*Run this step?*", "*Left out*  delete it"];
    assert_holds(&thread.heard(), &refused);

    let asked = as_read(&bot, &opens(&bot, &thread, "ana", "Reject…").await);
    assert!(asked.contains("Nothing is decided until you press *Reject*."), "{asked}");
    assert!(bot.upgrade.effects().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn status_shows_the_plan_with_its_results() {
    let bot = TestBot::start().await;
    let mut thread = bot.user("ana").asks(THREE).await;
    thread.clicked("bo", BUTTONS[0]).await;
    thread.says("ana", "@countersign status").await;
    assert_snapshot!(thread.told("ana"), @"
    In this thread:
    • *Stop “Class Hint Rollout”* · asked by @ana · expires ‹time›
    Last: *Started “Math Hints”* · asked by @ana ‹time›
    The plan here (step 2 of 3):
    • Done: start Math Hints → Started “Math Hints”: it is running now.
    • Now: pause Class Hint Rollout
    • Next: stop Lesson Video Hints
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_is_left_of_a_plan_whose_card_is_open() {
    let bot = TestBot::start().await;
    let mut thread = bot.user("ana").asks("show me the plan first: start Math Hints, then list the contexts").await;
    thread.skip();
    thread.says("ana", "what is left of the plan?").await;
    assert_holds(
        &thread.heard(),
        &["The plan hasn't started. Its steps:", "1. start Math Hints", "2. list the contexts"],
    );
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_about_the_progress_are_about_the_plan() {
    let bot = TestBot::start().await;
    let mut thread = bot.user("ana").asks("show me the plan first: start Math Hints, then list the contexts").await;
    thread.says("ana", "how far are you?").await;
    assert_holds(&thread.told("ana"), &["*Run these 2 steps* · asked by @ana"]);
    thread.clicks("ana", "Run plan").await;
    thread.skip();
    for said in ["how far are you?", "where are we?", "status", "is anything running?", "@countersign status"] {
        thread.says("ana", said).await;
        let told = thread.told("ana");
        assert_holds(
            &told,
            &[
                "*Start “Math Hints”* · asked by @ana",
                "Last: *Run these 2 steps* was approved",
                "The plan here (step 1 of 2):",
                "Now: start Math Hints",
                "Next: list the contexts",
            ],
        );
        assert_eq!(thread.heard(), "", "{said} is answered privately");
    }
    let mut thread = bot.user("ana").asks("show Math Hints in short").await;
    thread.says("ana", "is anything running?").await;
    assert!(!thread.heard().is_empty(), "without a plan, the assistant answers");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_limits_of_a_plan_are_settings() {
    let bot = TestBot::with_settings(|config| config.plans.nodes = 5).await;
    let mut thread = bot.user("ana").asks(THREE).await;
    thread.clicked("bo", BUTTONS[0]).await;
    thread.clicks("bo", BUTTONS[1]).await;
    assert_snapshot!(thread.in_short(), @"
    ✅ *Stopped “Class Hint Rollout”: no new users are enrolled.*
    Approved by @bo · ‹time›
    *Status*  running → *paused*
    Asked by @ana · digest `‹id›`
    [Undo: resume experiment] [Show all]
    ---
    @ana Stopped “Class Hint Rollout”: no new users are enrolled. Approved by bo.
    I stopped here: it took more than 5 steps of work, the limit for one request.
    Done before that: start Math Hints.
    Not done: stop Lesson Video Hints.
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_notebook_tells_how_a_plan_went() {
    let bot = TestBot::start().await;
    let mut thread = bot.user("ana").asks("start Math Hints, then stop Lesson Video Hints").await;
    thread.clicked("bo", "Start experiment").await;
    thread.clicked("bo", "Reject…").await;
    let trace = trace_of(&bot, &thread).await;
    let updates = trace["events"]["status_updates"].as_array().unwrap();
    let last = updates.last().unwrap();
    assert_eq!((last["progress"].as_f64(), last["complete"].as_bool()), (Some(0.5), Some(true)));
    let last = trace["events"]["stream"].as_array().unwrap().last().unwrap();
    assert_eq!(last["decided"], true, "a refusal is no failure");
    let clock = std::sync::Arc::new(bot.clock.clone());
    let book =
        Notebook::new(bot.store(), clock, None, Redaction::default()).export(&id_of(&bot, &thread)).await.unwrap();
    let book = String::from_utf8(book.markdown.bytes).unwrap();
    let plan: Vec<&str> = book.lines().filter_map(|line| Some(line.split_once(" · **Plan**")?.1)).collect();
    assert_snapshot!(plan.join("\n"), @"
    , made: A plan of 2 steps.
    , step 1 of 2: Started: start Math Hints.
    , step 1 of 2: Done: start Math Hints.
    , step 2 of 2: Started: stop Lesson Video Hints.
    , end: 1 of 2 steps done (Stop “Lesson Video Hints”: rejected).
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_condition_about_nothing_known_changes_nothing() {
    let bot = TestBot::start().await;
    let mut thread = bot.user("ana").says("if it rains, delete everything").await;
    assert_snapshot!(thread.heard(), @"
    I can't check the condition “it rains”, so nothing was changed.
    A condition can refer to the result of an earlier request in the same message.
    ");
    let mut thread = bot.user("ana").says("if it rains, delete Math Hints").await;
    assert_snapshot!(thread.in_short(), @"
    I can't check the condition “it rains”, so nothing was changed.
    A condition can refer to the result of an earlier request in the same message.
    ");
    assert!(bot.upgrade.effects().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_with_an_impossible_step_is_refused_before_its_card() {
    let bot = TestBot::start().await;
    bot.upgrade.has("Old Study", "archived");
    let mut thread = bot.user("ana").says("start Old Study, then delete Chat Tone").await;
    let heard = thread.heard();
    assert_holds(&heard, &["Step 1 isn't possible, so I didn't begin the plan", "start Old Study", "is archived"]);
    assert!(!heard.contains("Run plan"), "{heard}");
    let mut thread = bot.user("ana").says("delete Chat Tone, then start Old Study").await;
    assert_holds(&thread.heard(), &["Step 2 isn't possible, so I didn't begin the plan"]);
    // The first step may make the second one possible.
    let mut thread = bot.user("ana").says("cancel Lesson Video Hints, then archive Lesson Video Hints").await;
    assert!(!thread.heard().contains("isn't possible"), "{}", thread.last());
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_can_be_done_is_offered() {
    let bot = TestBot::start().await;
    bot.upgrade.has("Old Study", "archived");
    let asked = bot.user("ana").answer("start the experiment").await;
    assert!(asked.contains("Math Hints"), "{asked}");
    assert!(!asked.contains("Old Study") && !asked.contains("Lesson Video Hints"), "{asked}");
    let asked = bot.user("bo").answer("stop the experiment").await;
    assert!(asked.contains("Lesson Video Hints") && !asked.contains("Old Study"), "{asked}");
}
