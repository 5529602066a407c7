//! Exchanges that once went wrong: new experiments, changes, dates, weights and lists of users. Each ends as the person
//! meant it.

use serde_json::json;

use crate::{
    approvals::windows::{opens, sends},
    support::{bot::TestBot, thread::Thread},
};

/// Fails if the text lacks one of the parts.
pub(super) fn assert_holds(said: &str, heard: &str, parts: &[&str]) {
    for part in parts {
        assert!(heard.contains(part), "{said}\nlacks “{part}” in:\n{heard}");
    }
}

/// Single requests, each in a thread of its own and with what the reply has to contain. The requests find these
/// experiments besides those that are always there.
pub(super) async fn check(experiments: &[(&str, &str)], rows: &[(&str, &[&str])]) {
    let bot = TestBot::start().await;
    for (name, state) in experiments {
        bot.upgrade.has(name, state);
    }
    for (said, expected) in rows {
        let mut thread = bot.user("ana").says(said).await;
        assert_holds(said, &thread.heard(), expected);
        thread.says("ana", "never mind").await;
    }
    assert!(bot.done_to_platform().is_empty(), "nothing is changed without a decision");
}

/// The answers in a draft, without a mention, each with what the reply has to contain.
async fn drafts(first: &str, answers: &[(&str, &[&str])]) {
    let bot = TestBot::start().await;
    let mut thread = bot.user("ana").asks(first).await;
    for (said, expected) in answers {
        thread.says("ana", said).await;
        assert_holds(said, &thread.heard(), expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_experiment_is_started_by_the_second_card() {
    let bot = TestBot::start().await;
    let said = "create Foo in assign-prog with conditions control and variant at SelectSection/area_model and start it \
                right away";
    let mut thread = bot.user("ana").says(said).await;
    assert_holds(said, &thread.heard(), &["*Create “Foo”?*", "Step 1 of 2. When it is done: start it right away."]);
    thread.clicks("bo", "Create experiment").await;
    assert_holds(said, &thread.heard(), &["*Start “Foo”?*", "Step 2 of 2."]);
    thread.clicks("bo", "Start experiment").await;
    assert_eq!(bot.upgrade.experiment("Foo").unwrap()["state"], "running");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draft_takes_corrections_without_a_mention() {
    let card: &[&str] = &["*Create “Foo”?*", "control 60%, variant 40%", "SelectSection / area_model"];
    drafts(
        "create experiment Foo in assign-prog",
        &[
            ("hmm, make that 60/40 actually", &["“Foo” in assign-prog, 60/40", "I need a decision point"]),
            ("SelectSection / area_model", card),
        ],
    )
    .await;
    drafts(
        "create experiment Foo in assign-prog",
        &[("oops I meant mathstream", &["“Foo” in mathstream", "lesson-quiz / question-hint"])],
    )
    .await;
    drafts(
        "create experiment Foo in mathstream",
        &[("lesson-quiz question-hint", &["*Create “Foo”?*", "lesson-quiz / question-hint"])],
    )
    .await;
    drafts(
        "create experiment Foo in mathstream",
        &[
            ("end it on Dec 20, 2098", &["I need a decision point", "Foo"]),
            ("question hint in lesson quiz", &["*Create “Foo”?*", "lesson-quiz / question-hint", "2098-12-20"]),
        ],
    )
    .await;
    drafts(
        "create experiment Foo in assign-prog",
        &[("control and hints", &["assign-prog has no condition “hints”", "conditions control, hints"])],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_description_of_something_new_becomes_a_draft_or_a_card() {
    check(
        &[],
        &[
            ("I want to run a new A/B test on hints", &["What should the experiment be called?", "[Fill in a form]"]),
            (
                "create \"Pace Place\" in assign-prog, control vs question-hint-tutorbot, ending on Dec 20, for 300 users max",
                &[
                    "assign-prog has no condition “question-hint-tutorbot”",
                    "“Pace Place” in assign-prog",
                    "ends December 20, ends after 300 users",
                    "[Fill in a form]",
                ],
            ),
            (
                "I'd like to set up an A/B test 'Praise' for livehint-ai: tutor-a vs tutor-b, target chat-tone",
                &["*Create “Praise”?*", "tutor-a 50%, tutor-b 50%", "chat / chat-tone"],
            ),
            (
                "create Foo in assign-prog comparing control, variant and concrete with weights 40/30/30 at \
                 SelectSection/fraction_intro",
                &["*Create “Foo”?*", "control 40%, variant 30%, concrete 30%"],
            ),
            (
                "create experiments W16a and W16b in mathstream",
                &["I create one experiment at a time. Which one first?", "[create experiment W16a in mathstream]"],
            ),
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dates_are_part_of_the_change() {
    check(
        &[("Geometry B", "inactive"), ("Reading Speed Test", "enrolling")],
        &[
            ("end Lesson Video Hints on Dec 1, 2098", &["*Change the end date", "2098-12-01 23:59 UTC"]),
            ("start Geometry B on 12/01/2098", &["Is 12/01/2098 December 1, 2098 or January 12, 2098?"]),
            ("start Geometry B in two weeks", &["*Schedule “Geometry B”?*", "*Starts*"]),
            ("stop Reading Speed Test on Friday", &["*Change the end date of “Reading Speed Test”?*", "*Ends*"]),
            ("move the start of Math Hints to 3 December 2098 at 09:30", &["*Starts*  2098-12-03 09:30 UTC"]),
            (
                "start Geometry B on 1 December 2098 at noon and end it on 15 Jan",
                &[
                    "*Schedule “Geometry B”?*",
                    "*Starts*  2098-12-01 12:00 UTC",
                    "Step 1 of 2. When it is done: end it on 15 Jan.",
                ],
            ),
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn words_around_a_name_are_no_part_of_it() {
    let name = "Émotions & Équations – \"v2\" 🚀";
    check(
        &[("Geometry B", "inactive"), ("Tutor Voice", "inactive"), ("Pizza or Pasta", "cancelled"), (name, "inactive")],
        &[
            ("start Geometry B right now", &["*Start “Geometry B”?*"]),
            ("start Tutor Voice\nthanks a lot!", &["*Start “Tutor Voice”?*"]),
            ("archive Pizza or Pasta permanently", &["*Archive “Pizza or Pasta”?*"]),
            ("can you start Math Hints and Tutor Voice?", &["*Start 2 experiments?*", "*Math Hints*", "*Tutor Voice*"]),
            (&format!("start {name}"), &["*Start “", "🚀”?*"]),
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_of_users_and_groups_are_taken_whole() {
    let many: Vec<String> = (1..=400).map(|nth| format!("u{nth}")).collect();
    let many = format!("exclude {} from Math Hints", many.join(", "));
    let too_many: Vec<String> = (1..=900).map(|nth| format!("u{nth}")).collect();
    let too_many = format!("Math Hints: exclude {}", too_many.join(", "));
    let some: Vec<String> = (1..=60).map(|nth| format!("u{nth}")).collect();
    let some = format!("exclude {} from Math Hints", some.join(", "));
    check(
        &[],
        &[
            ("exclude classId 5B and 6A from Class Hint Rollout", &["*classId 5B, classId 6A*"]),
            ("put schools 12 and 13 on the exclusion list of Math Hints", &["*schoolId 12, schoolId 13*"]),
            ("include only u1, u2 in Math Hints", &["*excluded*", "*u1, u2*"]),
            ("only let schools 12 and 13 into Math Hints", &["*excluded*", "*schoolId 12, schoolId 13*"]),
            ("exclude everyone in class 5B from Class Hint Rollout", &["*classId 5B*"]),
            ("exclude user ids 1, 2 and 3 from Math Hints", &["*1, 2, 3*"]),
            ("exclude users u1 u2 u3 from Math Hints", &["*u1, u2, u3*"]),
            (&many, &["*Change the exclusion list of “Math Hints”?*", "Not everything fits here"]),
            (&too_many, &["characters, and I can read up to 4000. Nothing was changed.", "Split it."]),
            (&some, &["*Change the exclusion list of “Math Hints”?*", "*u1, u10, u11, ", "u59, u6, "]),
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn several_values_are_changed_by_one_card() {
    let both: &[&str] = &["*Update “O'Brien's Test”", "control 60%, variant 40%", "abc"];
    check(
        &[("O'Brien's Test", "inactive")],
        &[
            ("set the weights to 60/40 and the description to 'abc' for O'Brien's Test", both),
            ("set the weights to 60/40 for O'Brien's Test and the description to 'abc'", both),
            ("add tags pilot and fall to Math Hints", &["pilot, fall"]),
        ],
    )
    .await;
}

/// The cards of a start that is restricted: the person agrees to the two steps, and both are approved.
async fn starts_in_two_steps(bot: &TestBot, said: &str, steps: &str, first: &[&str]) {
    let mut thread: Thread<'_> = bot.user("ana").says(said).await;
    let heard = thread.heard();
    assert_holds(said, &heard, &["That takes more than one step: ", steps]);
    assert!(!heard.contains("[Start experiment]"), "no card without the restriction: {heard}");
    let label = thread.messages().last().unwrap().buttons()[0].label.clone();
    assert!(steps.starts_with(label.trim_end_matches('…')), "the button says what it begins: {label}");
    thread.clicks("ana", &label).await;
    assert_holds(said, &thread.heard(), first);
    thread.clicks("bo", "Update experiment").await;
    assert_holds(said, &thread.heard(), &["[Start experiment]", "Step 2 of 2."]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_for_some_people_only_takes_two_cards() {
    let bot = TestBot::start().await;
    let one_of_two = "Step 1 of 2. When it is done: start “Math Hints”.";
    let class = ["*classId 5B*", "*excluded*", one_of_two];
    let steps = "include only class 5B in “Math Hints”, then start “Math Hints”";
    starts_in_two_steps(&bot, "start Math Hints for class 5B only", steps, &class).await;

    let steps = "exclude u7 from “Math Hints”, then start “Math Hints”";
    starts_in_two_steps(&bot, "start Math Hints for everybody but u7", steps, &["*u7*", one_of_two]).await;

    let steps = "end “Math Hints” after 200 users, then start “Math Hints”";
    starts_in_two_steps(&bot, "start Math Hints but only with 200 users", steps, &["200 users", one_of_two]).await;
    assert_eq!(bot.upgrade.experiment("Math Hints").unwrap()["state"], "inactive", "that is the second decision");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standing_approval_ends_in_the_evening_that_was_meant() {
    let bot = TestBot::start().await;
    let mut thread = bot.user("ana").says("allow starts and stops of Running Test until tomorrow evening").await;
    assert_holds("allow", &thread.heard(), &["What is the maximum number of starts and stops?"]);
    let heard = thread.answer("ana", "5").await;
    assert_holds("5", &heard, &["*At most*  5 starts and stops in total", "18:00 UTC"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_form_of_a_card_adds_and_removes_conditions() {
    let bot = TestBot::start().await;
    let said = "create experiment Foo in assign-prog at SelectSection / area_model";
    let mut thread = bot.user("ana").asks(said).await;
    let conditions = "Conditions and weights, one per line";
    opens(&bot, &thread, "ana", "Edit…").await;
    let entered = json!({ conditions: "control 40%\nvariant: 30%\nconcrete = 30" });
    assert!(sends(&bot, "ana", entered).await.is_empty());
    assert_holds("three", &thread.heard(), &["control 40%, variant 30%, concrete 30%"]);
    opens(&bot, &thread, "ana", "Edit…").await;
    assert!(sends(&bot, "ana", json!({ conditions: "control: 10%\nvariant: 90%" })).await.is_empty());
    assert_holds("two", &thread.heard(), &["control 10%, variant 90%"]);

    let mut thread = bot.user("ana").asks("set the weights of Math Hints to 60/40").await;
    opens(&bot, &thread, "ana", "Edit…").await;
    assert!(sends(&bot, "ana", json!({ conditions: "control: 50%\nvariant: 25%\nconcrete: 25%" })).await.is_empty());
    assert_holds("added", &thread.heard(), &["control 50%, variant 25%, concrete 25%"]);
}
