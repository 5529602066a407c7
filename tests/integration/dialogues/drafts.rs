//! Drafts that forgive: what is understood is kept and shown, an answer may change its mind, and a wrong value stands in
//! nobody's way.

use serde_json::json;

use crate::{
    approvals::windows::{opens, sends},
    support::{bot::TestBot, thread::Thread},
};

/// The answers in a conversation, each with what the reply has to contain.
async fn converse(first: &str, answers: &[(&str, &[&str])]) {
    let bot = TestBot::start().await;
    let mut thread = bot.user("ana").asks(first).await;
    for (said, expected) in answers {
        thread.says("ana", &format!("@countersign {said}")).await;
        let heard = thread.heard();
        for part in *expected {
            assert!(heard.contains(part), "{first} … {said}\nlacks “{part}” in:\n{heard}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_understood_so_far_is_in_one_line() {
    let bot = TestBot::start().await;
    let mut thread = bot.user("ana").says("create experiment Foo in assign-prog, 60/40").await;
    let heard = thread.heard();
    assert!(heard.contains("So far: “Foo” in assign-prog, 60/40. Still needed: decision points."), "{heard}");
    assert!(heard.contains("[Fill in a form]"), "{heard}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_may_correct_and_add_several_things() {
    let card: &[&str] = &["*Create “Foo”?*", "control 60%, variant 40%"];
    converse(
        "create experiment Foo in assign-prog",
        &[
            ("hmm, make that 60/40 actually", &["“Foo” in assign-prog, 60/40", "I need a decision point"]),
            ("SelectSection area_model", card),
        ],
    )
    .await;
    converse(
        "create experiment Foo in assign-prog",
        &[
            ("oops I meant mathstream", &["“Foo” in mathstream", "lesson-quiz / question-hint"]),
            ("lesson-quiz question-hint", &["*Create “Foo”?*", "lesson-quiz / question-hint"]),
        ],
    )
    .await;
    converse(
        "create experiment Foo in assign-prog",
        &[
            ("control and hints", &["has no condition “hints”"]),
            ("control and variant", &["I need a decision point", "conditions control, variant"]),
            ("target area_model, site SelectSection", &["*Create “Foo”?*", "SelectSection / area_model"]),
        ],
    )
    .await;
    converse(
        "create experiment Foo in assign-prog",
        &[(
            "actually call it Bar and put it in mathstream, not assign-prog",
            &["“Bar” in mathstream", "lesson-quiz / question-hint"],
        )],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_value_does_not_block_the_good_ones() {
    let refused: &[&str] = &["The weights add up to 110"];
    let warned: &[&str] = &["*Create “Foo”?*", "You also said “70/40”. That isn't part of this change."];
    converse(
        "create experiment Foo in assign-prog",
        &[("SelectSection / area_model, weights 70/40", refused), ("tags pilot", warned)],
    )
    .await;
    converse(
        "create experiment Foo in assign-prog",
        &[
            ("SelectSection / area_model, weights 70/40", refused),
            ("60/40", &["*Create “Foo”?*", "control 60%, variant 40%"]),
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_button_of_an_earlier_question_changes_only_its_own_answer() {
    let bot = TestBot::start().await;
    let mut thread = bot.user("ana").asks("create experiment Foo").await;
    thread.clicked("ana", "assign-prog").await;
    thread.clicks("ana", "mathstream").await;
    let heard = thread.heard();
    assert!(heard.contains("“Foo” in mathstream") && heard.contains("lesson-quiz / question-hint"), "{heard}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_description_that_is_partly_understood_becomes_a_draft() {
    converse(
        "create experiment Foo in assign-prog at SelectSection/area_model starting soon",
        &[("continue without it", &["*Create “Foo”?*"])],
    )
    .await;
    let bot = TestBot::start().await;
    let mut thread = bot.user("ana").says("create experiment Foo in mathstream starting soon").await;
    let heard = thread.heard();
    for part in
        ["I couldn't make sense of “starting soon”", "“Foo” in mathstream", "[Continue without it]", "[Fill in a form]"]
    {
        assert!(heard.contains(part), "{part}: {heard}");
    }
    let mut thread = bot.user("ana").says("I want to run a new A/B test on hints").await;
    let heard = thread.heard();
    assert!(heard.contains("What should the experiment be called?") && heard.contains("[Fill in a form]"), "{heard}");
}

#[tokio::test(flavor = "multi_thread")]
async fn conditions_that_are_not_named_are_asked_for() {
    converse(
        "create experiment Hint Speed with two conditions in assign-prog at SelectSection/area_model",
        &[("conditions concrete and abstract", &["*Create “Hint Speed”?*", "concrete 50%, abstract 50%"])],
    )
    .await;
    let bot = TestBot::start().await;
    for (said, expected) in [
        ("Voice 2 with the concrete and abstract conditions", "concrete 50%, abstract 50%"),
        ("Voice 3 (concrete, abstract)", "Are concrete, abstract the conditions, or part of the name?"),
        ("Voice 4 with sound", "Is “with sound” part of the name?"),
    ] {
        let said = format!("create experiment {said} in assign-prog at SelectSection/area_model");
        let heard = bot.user("ana").says(&said).await.heard();
        assert!(heard.contains(expected) && !heard.contains("Conditions (the first of"), "{heard}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_description_is_understood_in_one_go() {
    let bot = TestBot::start().await;
    let said = "create \"Pace & Place\" in livehint-ai with control 30% and variant 70%, ending on Dec 20, 2099, for 300 users max";
    let mut thread = bot.user("ana").says(said).await;
    let heard = thread.heard();
    assert!(heard.contains("Pace & Place") || heard.contains("Pace &amp; Place"), "{heard}");
    let mut thread = bot
        .user("ana")
        .says(
            "create Area Study in assign-prog at SelectSection/area_model with control 30% and variant 70%, it should run from \
             Dec 1, 2098 to Dec 18, 2098, with no more than 200 users, leave out students u1 and u2",
        )
        .await;
    let heard = thread.heard();
    for part in ["control 30%, variant 70%", "after 200 users", "u1, u2", "2098-12-01 00:00", "2098-12-18 23:59"] {
        assert!(heard.contains(part), "{part}: {heard}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_form_opens_filled_in_and_its_card_comes_in_the_same_thread() {
    let bot = TestBot::start().await;
    let mut thread = bot.user("ana").asks("create experiment Foo in assign-prog, 60/40").await;
    let view = opens(&bot, &thread, "ana", "Fill in a form").await;
    let fields = json!(view.blocks()).to_string();
    assert!(fields.contains("Foo") && fields.contains("60/40") && fields.contains("assign-prog"), "{fields}");
    let wrong = sends(&bot, "ana", json!({ "/decision_points": "SelectSection / area_model" })).await;
    assert!(wrong.is_empty(), "{wrong:?}");
    let heard = thread.heard();
    assert!(heard.contains("*Create “Foo”?*") && heard.contains("control 60%, variant 40%"), "{heard}");
}

#[tokio::test(flavor = "multi_thread")]
async fn after_two_answers_that_were_not_understood_the_form_is_offered() {
    let bot = TestBot::start().await;
    let mut thread = bot.user("ana").asks("create experiment Foo").await;
    thread.says("ana", "@countersign well that depends on what the people in the other team would like to see").await;
    thread.says("ana", "@countersign and on what the people in yet another team might have to say to that").await;
    let heard = thread.heard();
    assert!(heard.contains("A form may be easier") && heard.contains("[Fill in a form]"), "{heard}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_click_on_a_choice_leaves_a_line_that_everyone_sees() {
    let (_bot, mut thread) = TestBot::hears("ana", "create an experiment Hint Timing in assign-prog").await;
    thread.skip();
    thread.clicks("ana", "SelectSection / area_model").await;
    let heard = thread.heard();
    assert!(heard.starts_with("@ana chose *SelectSection / area_model*."), "{heard}");
    assert!(heard.contains("*Create “Hint Timing”?*"), "{heard}");
    assert_eq!(edits_of_question(&thread), (false, 1), "an answered question has no buttons");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_in_words_takes_the_buttons_away_as_a_click_does() {
    let (_bot, thread) = TestBot::hears("ana", "create an experiment Hint Timing in assign-prog").await;
    thread.says("ana", "@countersign what is running?").await;
    assert_eq!(edits_of_question(&thread), (true, 0), "the question is still open");
    thread.says("ana", "SelectSection / area_model").await;
    assert!(thread.last().contains("*Create “Hint Timing”?*"), "{}", thread.last());
    assert_eq!(edits_of_question(&thread), (false, 1));
}

/// True if the question about a decision point has its buttons, and the number of times it was edited.
fn edits_of_question(thread: &Thread<'_>) -> (bool, usize) {
    let messages = thread.messages();
    let question = messages.iter().find(|message| message.words().contains("decision point")).unwrap();
    (question.words().contains("[SelectSection / area_model]"), question.earlier.len())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_context_stands_in_nobodys_way() {
    converse(
        "create an experiment called Hint Timing",
        &[
            ("in zebra, two conditions early and late", &["No context is called “*zebra*”", "[mathstream]"]),
            ("mathstream", &["early"]),
        ],
    )
    .await;
    converse(
        "create an experiment called Foo",
        &[
            ("zebra", &["No context is called “*zebra*”"]),
            ("mathstream, 60/40", &["“Foo” in mathstream, 60/40", "I need a decision point"]),
            ("lesson-quiz / question-hint", &["*Create “Foo”?*"]),
        ],
    )
    .await;
    converse(
        "create an experiment called Foo",
        &[
            ("mathstream, purple elephants", &["I couldn't make sense of “purple elephants”", "“Foo” in mathstream"]),
            ("continue without it", &["I need a decision point"]),
        ],
    )
    .await;
}
