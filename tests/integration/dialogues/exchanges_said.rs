//! Exchanges that once went wrong, in the words in which they were said: questions about an experiment, copies, times,
//! forms and answers beside a card.

use std::time::Duration;

use serde_json::json;

use super::exchanges::{assert_holds, check};
use crate::{
    approvals::windows::{opens, sends},
    support::bot::TestBot,
};

/// A workspace whose people live in this time zone.
async fn bot_in(zone: &str) -> TestBot {
    let bot = TestBot::start().await;
    bot.slack.arrange(|world| world.users.iter_mut().for_each(|user| zone.clone_into(&mut user.tz)));
    bot
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_excluded_is_answered_with_the_list() {
    let bot = TestBot::start().await;
    let mut thread = bot.user("ana").asks("exclude u1 and class 5B from Math Hints").await;
    thread.clicked("bo", "Update experiment").await;
    let said = "who is excluded from Math Hints?";
    thread.says("ana", said).await;
    assert_holds(said, &thread.heard(), &["2 entries are excluded from “*Math Hints*”:", "u1", "classId: 5B"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_created_it_is_said_or_that_the_platform_does_not_say() {
    check(&[], &[("who created Math Hints?", &["“*Math Hints*” was created", " by"])]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_user_would_get_is_answered_without_a_card() {
    let bot = TestBot::start().await;
    let heard = bot.user("ana").answer("what condition would u1 get in assign-prog?").await;
    assert!(heard.starts_with("UpGrade doesn't know the user `u1` yet."), "{heard}");
    assert!(!heard.contains("[Reject…] [Withdraw]") && bot.done_to_platform().is_empty(), "{heard}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_and_one_like_it_end_in_the_same_card() {
    for said in ["make a copy of Running Test", "create an experiment like Running Test"] {
        let bot = TestBot::start().await;
        let mut thread = bot.user("ana").says(said).await;
        assert_holds(said, &thread.heard(), &["What should the experiment be called?"]);
        thread.says("ana", "Second Run").await;
        assert_holds(said, &thread.heard(), &["*Create “Second Run”?*", "SelectSection / area_model", "assign-prog"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_button_of_a_question_answered_long_ago_changes_the_context() {
    let bot = TestBot::start().await;
    let mut thread = bot.user("ana").asks("create an experiment called Foo").await;
    thread.clicked("ana", "assign-prog").await;
    assert_holds("assign-prog", &thread.answer("ana", "60/40").await, &["“Foo” in assign-prog, 60/40"]);
    thread.clicks("ana", "mathstream").await;
    assert_holds("mathstream", &thread.heard(), &["“Foo” in mathstream, 60/40", "lesson-quiz / question-hint"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_description_keeps_what_is_understood() {
    check(
        &[],
        &[
            (
                "create \"Pace & Place\" in assign-prog, control vs question-hint-tutorbot, ending on Dec 20, for 300 \
                 users max",
                &["Place” in assign-prog", "ends December 20, ends after 300 users", "[Fill in a form]"],
            ),
            (
                "I'd like to set up an A/B test 'Praise' for livehint-ai: ai-hints vs human-hints, target hint_tone",
                &[
                    "livehint-ai has no conditions “ai-hints”, “human-hints”",
                    "“Praise” in livehint-ai, conditions ai-hints, human-hints, target hint_tone",
                ],
            ),
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn days_without_a_year_and_restrictions_are_part_of_the_card() {
    check(
        &[("Geometry B", "inactive"), ("O'Brien's Test", "inactive")],
        &[
            ("end Lesson Video Hints on Dec 1", &["*Change the end date of “Lesson Video Hints”?*", "*Ends*"]),
            (
                "start Geometry B tomorrow at noon and end it on 15 Jan",
                &["*Schedule “Geometry B”?*", "*Starts*", "Step 1 of 2. When it is done: end it on 15 Jan."],
            ),
            (
                "start O'Brien's Test for class 5B only",
                &["include only class 5B in “O'Brien's Test”, then start “O'Brien's Test”"],
            ),
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn next_monday_8am_is_8am_where_the_person_is() {
    // Without daylight saving time, the offset is the same all year.
    let bot = bot_in("Asia/Kolkata").await;
    let mut thread = bot.user("ana").asks("move the start of Math Hints to next Monday 8am").await;
    thread.clicked("bo", "Schedule experiment").await;
    let start = bot.upgrade.experiment("Math Hints").unwrap()["startOn"].as_str().unwrap().to_owned();
    let monday: jiff::Timestamp = start.parse().unwrap();
    let there = monday.in_tz("Asia/Kolkata").unwrap();
    assert_eq!((there.weekday(), there.hour(), there.minute()), (jiff::civil::Weekday::Monday, 8, 0), "{start}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tomorrow_evening_is_18_00_where_the_person_is() {
    let bot = bot_in("Asia/Kolkata").await;
    let said = "allow starts and stops of Running Test until tomorrow evening";
    let mut thread = bot.user("ana").asks(said).await;
    thread.says("ana", "5").await;
    assert_holds(said, &thread.heard(), &["*At most*  5 starts and stops in total", "12:30 UTC"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn weights_are_taken_in_a_form_as_the_card_writes_them() {
    let bot = TestBot::start().await;
    let mut thread = bot.user("ana").asks("create experiment Foo in assign-prog").await;
    opens(&bot, &thread, "ana", "Fill in a form").await;
    let entered = json!({ "/weights": "control 10%, variant 90%", "/decision_points": "SelectSection / area_model" });
    assert_eq!(sends(&bot, "ana", entered).await, [].into(), "nothing is wrong");
    assert_holds("form", &thread.heard(), &["*Create “Foo”?*", "control 10%, variant 90%"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn again_with_100_more_is_a_card_for_another_100() {
    let bot = TestBot::start().await;
    let mut thread = bot.user("ana").asks("test the balance of Lesson Video Hints with 200 users").await;
    thread.clicked("bo", "Enroll test users").await;
    bot.clock.advance(Duration::from_secs(60));
    thread.says("ana", "again with 100 more").await;
    let card = thread.heard();
    assert_holds("again", &card, &["*Enroll 100 test users in “Lesson Video Hints”?*", "[Enroll test users]"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_typed_consent_beside_a_card_needs_no_mention() {
    let bot = TestBot::start().await;
    let thread = bot.user("ana").says("stop Lesson Video Hints").await;
    thread.says("bo", "yes go ahead").await;
    assert_eq!(bot.upgrade.experiment("Lesson Video Hints").unwrap()["state"], "paused");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_not_yet_beside_a_card_leaves_it_open() {
    let bot = TestBot::start().await;
    for who in ["ana", "bo"] {
        let mut thread = bot.user("ana").says("start Math Hints").await;
        thread.says(who, "no, not yet").await;
        assert!(!thread.heard().contains("No experiment is called"), "{who}: {}", thread.last());
        assert!(bot.done_to_platform().is_empty());
        thread.says("ana", "@countersign never mind").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn studies_live_in_a_context_whatever_their_status() {
    let (_bot, mut thread) = TestBot::hears("ana", "Which studies live in assign-prog?").await;
    assert_holds("live in", &thread.heard(), &["3 experiments (in assign-prog)"]);
}
