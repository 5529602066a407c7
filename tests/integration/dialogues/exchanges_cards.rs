//! Exchanges beside an open card, and around the decision about it, that once went wrong.

use countersign_sandbox::faults::Fault;

use crate::support::{bot::TestBot, thread::Thread};

/// Fails if the text lacks one of the parts.
fn assert_holds(heard: &str, parts: &[&str]) {
    for part in parts {
        assert!(heard.contains(part), "lacks “{part}” in:\n{heard}");
    }
}

async fn card<'a>(bot: &'a TestBot, request: &str) -> Thread<'a> {
    bot.user("ana").asks(request).await
}

#[tokio::test(flavor = "multi_thread")]
async fn yes_go_ahead_approves_where_a_typed_yes_counts() {
    let bot = TestBot::start().await;
    let thread = card(&bot, "stop Lesson Video Hints").await;
    thread.says("bo", "@countersign yes go ahead").await;
    assert_eq!(bot.upgrade.experiment("Lesson Video Hints").unwrap()["state"], "paused");

    let mut thread = card(&bot, "delete Math Hints").await;
    thread.says("bo", "@countersign ok, go ahead").await;
    assert_holds(&thread.told("bo"), &["Press *Delete permanently* or *Reject…* on the card."]);
    assert!(bot.upgrade.contains("Math Hints"));
}

#[tokio::test(flavor = "multi_thread")]
async fn another_status_takes_the_place_of_the_card() {
    let bot = TestBot::start().await;
    for said in ["actually no, make it cancelled instead", "actually no, cancel it instead"] {
        let mut thread = card(&bot, "stop Lesson Video Hints").await;
        let heard = thread.answer("ana", said).await;
        assert_holds(&heard, &["Replaced by a newer request", "*Cancel “Lesson Video Hints”?*"]);
        thread.says("ana", "never mind").await;
    }
    assert_eq!(bot.upgrade.experiment("Lesson Video Hints").unwrap()["state"], "running", "nothing was decided");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_time_or_experiment_takes_the_place_of_the_card() {
    let bot = TestBot::start().await;
    for (said, expected) in [
        ("yes, but on 2099-01-15", &["*Schedule “Math Hints”?*", "*Starts*  2099-01-15 00:00 UTC"][..]),
        ("make it end on Dec 20, 2098 too", &["*Start “Math Hints”?*", "*Ends*  2098-12-20 23:59 UTC"]),
        ("Running Test instead", &["*Resume “Running Test”?*"]),
    ] {
        let mut thread = card(&bot, "start Math Hints").await;
        assert_holds(&thread.answer("ana", said).await, expected);
        thread.says("ana", "never mind").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_request_in_place_of_the_card_supersedes_it() {
    let bot = TestBot::start().await;
    for said in [
        "@countersign start Running Test instead",
        "no, start Running Test instead please",
        "start Running Test instead of Math Hints",
    ] {
        let mut thread = card(&bot, "delete Math Hints").await;
        let heard = thread.answer("ana", said).await;
        assert_holds(&heard, &["Replaced by a newer request", "*Resume “Running Test”?*", "Replaces the open card"]);
        thread.says("ana", "never mind").await;
    }
    let mut thread = card(&bot, "start Math Hints").await;
    thread.says("bo", "@countersign start Running Test instead").await;
    assert_holds(&thread.heard(), &["*Resume “Running Test”?*", "The earlier card stays open: "]);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_split_edits_the_card_or_gets_one_of_its_own() {
    let bot = TestBot::start().await;
    let mut thread = card(&bot, "set the weights of Math Hints to 70/30").await;
    let heard = thread.answer("ana", "make the split 60/40").await;
    assert_holds(&heard, &["Replaced by a newer request", "control 60%, variant 40%"]);
    let mut thread =
        card(&bot, "create an experiment called Foo in assign-prog at SelectSection/area_model, 70/30").await;
    thread.says("ana", "make it an even split").await;
    assert_holds(&thread.heard(), &["*Create “Foo”?*", "control 50%, variant 50%"]);
    let mut thread = card(&bot, "start Math Hints").await;
    let heard = thread.answer("ana", "make the split 60/40").await;
    assert_holds(&heard, &["“Math Hints”?*", "control 60%, variant 40%"]);
    assert!(heard.contains("Replaces the open card: Start “Math Hints”."), "two about one experiment: {heard}");
}

#[tokio::test(flavor = "multi_thread")]
async fn never_mind_drops_the_draft_beside_a_card_and_names_the_card() {
    let bot = TestBot::start().await;
    for said in ["hmm never mind", "forget it", "@countersign never mind"] {
        let mut thread = card(&bot, "start Math Hints").await;
        thread.says("ana", "create experiment Foo in assign-prog").await;
        thread.skip();
        thread.says("ana", said).await;
        let heard = thread.heard();
        assert_holds(&heard, &["OK, dropped. Nothing was changed.", "The card is still open: *Start “Math Hints”?*"]);
        assert!(!heard.contains("Withdrawn"), "{said}: {heard}");
        thread.says("ana", said).await;
        assert_holds(&thread.heard(), &["Withdrawn by @ana"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn never_mind_answers_the_question_that_was_asked_after_the_card() {
    let bot = TestBot::start().await;
    let mut thread = card(&bot, "start Math Hints").await;
    assert_holds(&thread.answer("ana", "finish Running Test").await, &["Do you want to pause it"]);
    thread.says("ana", "hmm never mind").await;
    assert_holds(&thread.heard(), &["OK, dropped.", "The card is still open: *Start “Math Hints”?*"]);
    thread.says("ana", "hmm never mind").await;
    assert_holds(&thread.heard(), &["Withdrawn by @ana"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn hmm_never_mind_takes_the_request_back() {
    let bot = TestBot::start().await;
    let mut thread = card(&bot, "stop Lesson Video Hints").await;
    assert_holds(&thread.answer("ana", "hmm never mind").await, &["Withdrawn by @ana"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn not_yet_decides_nothing() {
    let bot = TestBot::start().await;
    for said in ["@countersign no, not yet", "@countersign not yet", "@countersign later"] {
        let mut thread = card(&bot, "start Math Hints").await;
        thread.says("bo", said).await;
        assert_holds(&thread.heard(), &["A card is open: Start “Math Hints”?"]);
        thread.says("ana", "never mind").await;
    }
    assert!(bot.done_to_platform().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_say_to_each_other_is_not_answered() {
    let bot = TestBot::start().await;
    let mut thread = card(&bot, "start Math Hints").await;
    let said = "Ana, are you sure about fraction_intro? I would wait until Monday.";
    assert_eq!(thread.answer("bo", said).await, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_somebody_else_did_first_is_not_tried_again() {
    let bot = TestBot::start().await;
    let mut thread = card(&bot, "stop Lesson Video Hints").await;
    let other = card(&bot, "stop Lesson Video Hints").await;
    other.clicks("bo", "Stop experiment").await;
    thread.skip();
    thread.clicks("bo", "Stop experiment").await;
    let heard = thread.heard();
    assert_holds(&heard, &["“*Lesson Video Hints*” is already", "so nothing was changed."]);
    assert!(!heard.contains("Try again"), "{heard}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_end_date_that_was_set_before_the_start_was_refused_is_told() {
    let bot = TestBot::start().await;
    let mut thread = card(&bot, "Run Math Hints from Dec 1, 2098 to Dec 18, 2098").await;
    bot.upgrade.will("POST /api/experiments/state", Fault::Proxy(400));
    thread.clicks("bo", "Schedule experiment").await;
    let told = ["The end date of “*Math Hints*” was set to 2098-12-18 23:59 UTC", "its status is still inactive"];
    assert_holds(&thread.heard(), &told);
    let now = bot.upgrade.experiment("Math Hints").unwrap();
    assert_eq!((&now["state"], &now["endOn"]), (&"inactive".into(), &"2098-12-18T23:59:00.000Z".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn deleting_what_nobody_is_enrolled_in_says_so() {
    let bot = TestBot::start().await;
    let mut thread = card(&bot, "start Math Hints").await;
    thread.clicked("bo", "Start experiment").await;
    let heard = bot.user("ana").answer("delete Math Hints").await;
    assert_holds(&heard, &["Nobody is enrolled.", "It is running, but nobody has been enrolled yet."]);
    assert!(!heard.contains("people are getting"), "{heard}");
}
