//! Cards: who may press, and what becomes of them.

use std::time::Duration;

use countersign::{clock::Timestamp, ids::MessageTs};
use insta::assert_snapshot;

use crate::support::bot::{TestBot, eventually};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

#[tokio::test(flavor = "multi_thread")]
async fn a_second_click_is_told_who_decided() {
    let (bot, mut thread) = TestBot::asked("ana", "start Math Hints").await;
    thread.clicked("bo", "Start experiment").await;
    assert_snapshot!(without_seconds(&thread.private_answer("cy", "Start experiment").await), @"@bo approved this a moment ago; it is done.");
    assert_snapshot!(without_seconds(&thread.private_answer("cy", "Reject…").await), @"@bo approved this a moment ago; it is done.");
    assert_eq!(thread.heard(), "", "the thread is spared");
    assert_eq!(bot.upgrade.effects().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_who_press_at_once_make_one_decision() {
    let (bot, mut thread) = TestBot::asked("ana", "start Math Hints").await;
    tokio::join!(
        thread.press("bo", "Start experiment"),
        thread.press("cy", "Start experiment"),
        thread.press("ana", "Start experiment"),
    );
    bot.settled().await;
    assert_eq!(bot.upgrade.effects().len(), 1);
    let told = [thread.told("ana"), thread.told("bo"), thread.told("cy")];
    assert_eq!(told.iter().filter(|told| told.contains("approved this")).count(), 2, "{told:?}");
    assert_eq!(thread.heard().matches("Approved by @").count(), 1, "on the card");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_those_who_are_named_may_decide() {
    let bot = TestBot::decided_by(&["U2"]).await;
    let mut thread = bot.user("ana").says("start Math Hints").await;
    assert_snapshot!(thread.in_short(), @"
    *Start “Math Hints”?* ⋯
    Asked by @ana · @bo can approve · expires ‹time› · digest `‹id›`
    ⋯
    ");
    assert_snapshot!(thread.private_answer("cy", "Start experiment").await, @"
    You can't approve or reject this.
    Who can decide: @bo.
    ");
    assert_snapshot!(thread.private_answer("cy", "Reject…").await, @"
    You can't approve or reject this.
    Who can decide: @bo.
    ");
    assert_eq!(thread.heard(), "");
    thread.clicks("bo", "Start experiment").await;
    assert_eq!(bot.upgrade.effects().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_people_can_be_asked_for() {
    let bot = TestBot::with_settings(|config| config.approvals.needed = 2).await;
    let mut thread = bot.user("ana").says("start Math Hints").await;
    assert_snapshot!(thread.in_short(), @"
    *Start “Math Hints”?* ⋯
    2 different people must approve.
    ⋯
    ");
    assert_snapshot!(thread.outcome("bo", "Start experiment").await, @"
    *Start “Math Hints”?* ⋯
    1 of 2: approved by @bo.
    ‹not: 2 different people must approve.›
    ⋯
    ");
    assert_snapshot!(thread.private_answer("bo", "Start experiment").await, @"You already approved this. Another person has to approve it too.");
    assert_snapshot!(thread.outcome("cy", "Start experiment").await, @"
    ✅ *Started “Math Hints”: it is running now.*
    Approved by @bo and @cy · ‹time›
    *Status*  inactive → *running*
    Asked by @ana · digest `‹id›`
    [Undo: stop experiment] [Show all]
    ---
    @ana Started “Math Hints”: it is running now. Approved by bo and cy. What next?
    [Show details]
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_card_expires_and_can_be_asked_for_again() {
    let (bot, mut thread) = TestBot::asked("ana", "start Math Hints").await;
    bot.clock.advance(DAY + Duration::from_secs(60));
    eventually("an expired card", || thread.last().contains("nothing was changed")).await;
    bot.settled().await;
    assert_snapshot!(thread.in_short(), @"
    *Start “Math Hints”*
    Expired: no one decided in time · ‹time›
    *Status*  inactive → *running*
    Asked by @ana · digest `‹id›`
    [Show all]
    ---
    @ana no one decided in time about *Start “Math Hints”*, so nothing was changed.
    [Ask again]
    ");
    assert_snapshot!(without_seconds(&thread.private_answer("bo", "Start experiment").await), @"This card expired a moment ago, so nothing was changed.");
    assert!(bot.upgrade.effects().is_empty());

    assert_snapshot!(thread.outcome("ana", "Ask again").await, @"
    @ana chose *Ask again*.
    ---
    ‹Start “Math Hints”, open›
    ");
    thread.clicks("bo", "Start experiment").await;
    assert_eq!(bot.upgrade.effects().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_typed_yes_answers_the_one_open_card() {
    let (bot, mut thread) = TestBot::asked("ana", "start Math Hints").await;
    assert_snapshot!(thread.answer("bo", "yes").await, @"‹Math Hints is started, as bo approved›");
    assert_eq!(bot.upgrade.effects().len(), 1);

    assert_snapshot!(thread.answer("bo", "@countersign yes").await, @"
    I'm not waiting for an answer here. If you mean a card, use its buttons.
    [List experiments] [What can you do?]
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_typed_no_turns_it_down() {
    let (bot, mut thread) = TestBot::asked("ana", "start Math Hints").await;
    assert_snapshot!(thread.answer("bo", "No!").await, @"
    *Start “Math Hints”*
    Rejected by @bo · ‹time›
    *Status*  inactive → *running*
    Asked by @ana · digest `‹id›`
    [Change and ask again…] [Show all]
    ---
    @ana, @bo rejected this, so nothing was changed.
    To ask for something else, press *Change and ask again…* on the card, or tell me here.
    ");
    assert!(bot.upgrade.effects().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ok_is_told_that_the_card_waits() {
    let (bot, mut thread) = TestBot::asked("ana", "start Math Hints").await;
    assert_snapshot!(thread.answer("bo", "@countersign ok").await, @"That isn't a decision yet. A card is open: Start “Math Hints”? Press **Start experiment** or **Reject…** on it, or type just “yes” or “no” in this thread.");
    thread.says("ana", "@countersign delete Lesson Video Hints").await;
    thread.skip();
    assert_snapshot!(thread.answer("bo", "@countersign 👍").await, @"
    That isn't a decision yet. Several cards are open. Use the buttons on the one you mean:
    • Permanently delete “Lesson Video Hints”?
    • Start “Math Hints”?
    ");
    assert!(bot.upgrade.effects().is_empty(), "nothing is decided by it");
}

#[tokio::test(flavor = "multi_thread")]
async fn with_two_cards_open_a_button_has_to_be_pressed() {
    let (bot, mut thread) = TestBot::asked("ana", "start Math Hints").await;
    assert_snapshot!(thread.answer("ana", "stop Lesson Video Hints").await, @"‹Stop “Lesson Video Hints”, open›");
    thread.says("bo", "yes").await;
    assert_snapshot!(thread.told("bo"), @"
    Several cards are open here, so I can't tell which one you mean. Use the buttons on one of them:
    • Stop “Lesson Video Hints”?
    • Start “Math Hints”?
    ");
    assert!(bot.upgrade.effects().is_empty());

    assert_snapshot!(thread.answer("ana", "@countersign what is pending?").await, @"
    Waiting in this thread:
    • Stop “Lesson Video Hints”?
    • Start “Math Hints”?
    ");
    thread.clicks("bo", "Start experiment").await;
    thread.clicks("bo", "Stop experiment").await;
    assert_eq!(bot.upgrade.effects().len(), 2, "neither was lost");
    assert_eq!(bot.upgrade.experiment("Math Hints").unwrap()["state"], "running");
    assert_eq!(bot.upgrade.experiment("Lesson Video Hints").unwrap()["state"], "paused");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_while_a_card_is_open_is_answered() {
    let (bot, mut thread) = TestBot::asked("ana", "start Math Hints").await;
    thread.says("cy", "@countersign what is a decision point?").await;
    assert!(thread.heard().starts_with("A *decision point*"));
    thread.clicks("bo", "Start experiment").await;
    assert_eq!(bot.upgrade.effects().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_changed_since_the_card_was_shown_is_left_alone() {
    let (bot, mut first) = TestBot::asked("ana", "start Math Hints").await;
    let mut second = bot.user("ana").asks("start Math Hints").await;
    second.clicked("cy", "Start experiment").await;
    assert_snapshot!(first.outcome("bo", "Start experiment").await, @"
    *Start “Math Hints”*
    ❌ “*Math Hints*” is already running, so nothing was changed.
    Approved by @bo · ‹time›
    *Status*  inactive → *running*
    Asked by @ana · digest `‹id›`
    [Show all]
    ---
    @ana, @bo *Start “Math Hints”* didn't work. “*Math Hints*” is already running, so nothing was changed.
    ");
    assert_eq!(bot.upgrade.effects().len(), 1);

    let mut third = bot.user("ana").says("delete Math Hints").await;
    third.clicks("bo", "Delete permanently").await;
    let mut fourth = bot.user("ana").asks("stop Lesson Video Hints").await;
    let mut fifth = bot.user("ana").says("delete Lesson Video Hints").await;
    fifth.clicked("bo", "Delete permanently").await;
    assert_snapshot!(fourth.outcome("bo", "Stop experiment").await, @"
    *Stop “Lesson Video Hints”*
    ❌ “*Lesson Video Hints*” no longer exists, so nothing was changed.
    Approved by @bo · ‹time›
    *Status*  running → *paused*
    Asked by @ana · digest `‹id›`
    [Show all]
    ---
    @ana, @bo *Stop “Lesson Video Hints”* didn't work. “*Lesson Video Hints*” no longer exists, so nothing was changed.
    [List experiments]
    ");
    third.skip();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_button_that_nobody_knows_does_nothing() {
    let (bot, mut thread) = TestBot::asked("ana", "start Math Hints").await;
    let card = thread.with_button("Start experiment");
    let copy = MessageTs::new(format!("{}.000001", Timestamp(0).seconds() + 1_900_000_000));
    bot.slack.arrange(|world| {
        let channel = world.channel("experiments").unwrap().id.clone();
        let messages = world.messages.get_mut(&channel).unwrap();
        let mut copied = messages[&card].clone();
        (copied.ts, copied.thread_ts) = (copy.clone(), None);
        messages.insert(copy.clone(), copied);
    });
    bot.slack.clicks("bo", "experiments", &copy, "Start experiment").await.unwrap();
    bot.settled().await;
    assert_snapshot!(thread.told("bo"), @"
    This is a copy of a card, so its buttons do nothing.
    Use the original card in its thread.
    ");

    bot.slack.arrange(|world| {
        let channel = world.channel("experiments").unwrap().id.clone();
        let forged = world.messages.get_mut(&channel).unwrap().get_mut(&copy).unwrap();
        let actions = forged.blocks.iter_mut().find(|block| block["type"] == "actions").unwrap();
        actions["elements"][0]["value"] = "guessed".into();
    });
    bot.slack.clicks("bo", "experiments", &copy, "Start experiment").await.unwrap();
    bot.settled().await;
    assert_snapshot!(thread.told("bo"), @"
    This card is no longer on record, so its buttons do nothing.
    Ask again in the thread for a new card.
    ");
    assert_eq!(thread.heard(), "");
    assert!(bot.upgrade.effects().is_empty());
}

/// How long ago something was differs from run to run.
fn without_seconds(told: &str) -> String {
    let words: Vec<_> = told.split(' ').collect();
    let mut out = told.to_owned();
    for pair in words.windows(2) {
        if pair[0].parse::<u32>().is_ok() && pair[1] == "s" {
            out = out.replace(&format!("{} s ago", pair[0]), "a moment ago");
        }
    }
    out
}

#[tokio::test(flavor = "multi_thread")]
async fn never_mind_withdraws_ones_own_card() {
    let (bot, mut thread) = TestBot::asked("ana", "start Math Hints").await;
    assert_snapshot!(thread.answer("bo", "@countersign never mind").await, @"That isn't a decision yet. A card is open: Start “Math Hints”? Press **Start experiment** or **Reject…** on it. What is typed decides nothing for this one.");
    assert_snapshot!(thread.answer("ana", "Never mind.").await, @"
    *Start “Math Hints”*
    Withdrawn by @ana · ‹time›
    *Status*  inactive → *running*
    Asked by @ana · digest `‹id›`
    [Change and ask again…] [Show all]
    ---
    @ana *Start “Math Hints”* was withdrawn, so nothing was changed.
    ");
    assert_snapshot!(thread.answer("ana", "@countersign never mind").await, @"OK, dropped. Nothing was changed.");
    assert_eq!(bot.upgrade.effects().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_card_is_withdrawn_in_whatever_words_that_are_plain() {
    let bot = TestBot::start().await;
    for said in ["hold on, cancel that please", "wait, stop that", "can you cancel it please?"] {
        let mut thread = bot.user("ana").asks("start Math Hints").await;
        thread.says("bo", said).await;
        assert!(!thread.heard().contains("Withdrawn"), "{said}: bo did not ask for it");
        thread.says("ana", "how do I cancel that?").await;
        assert!(!thread.heard().contains("Withdrawn"), "a question withdraws nothing");
        thread.says("ana", said).await;
        assert!(thread.heard().contains("Withdrawn by @ana"), "{said}");
    }
    assert_eq!(bot.upgrade.effects().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_typed_no_may_say_why() {
    let bot = TestBot::start().await;
    for said in ["no, because the exam is on Monday", "@countersign don't do it: the exam is on Monday"] {
        let mut thread = bot.user("ana").asks("start Math Hints").await;
        thread.says("bo", said).await;
        let heard = thread.heard();
        assert!(heard.contains("Rejected by @bo · ‹time› · _the exam is on Monday_"), "{said}: {heard}");
        assert!(heard.contains("@ana, @bo explains why this was rejected: *Start “Math Hints”*"), "{said}: {heard}");
    }
    let mut thread = bot.user("ana").asks("start Math Hints").await;
    thread.says("cy", "did you talk to the teachers?").await;
    thread.says("bo", "no, because the exam is on Monday").await;
    assert_eq!(thread.heard(), "", "people talk to each other");
    thread.says("ana", "@countersign no, because the exam is on Monday").await;
    assert!(thread.heard().contains("Withdrawn by @ana"), "her own request: {}", thread.last());
    assert_eq!(bot.upgrade.effects().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn never_mind_lets_an_unfinished_request_go_before_a_card() {
    let (bot, mut thread) = TestBot::asked("ana", "start Math Hints").await;
    thread.says("ana", "create an experiment called Foo").await;
    thread.skip();
    assert_snapshot!(thread.answer("ana", "forget it").await, @"
    OK, dropped. Nothing was changed.
    The card is still open: *Start “Math Hints”?*
    ");
    assert_snapshot!(thread.answer("ana", "@countersign cancel that").await, @"
    *Start “Math Hints”*
    Withdrawn by @ana · ‹time›
    *Status*  inactive → *running*
    Asked by @ana · digest `‹id›`
    [Change and ask again…] [Show all]
    ---
    @ana *Start “Math Hints”* was withdrawn, so nothing was changed.
    ");
    assert_eq!(bot.upgrade.effects().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_request_twice_is_one_card() {
    let (_bot, mut thread) = TestBot::asked("ana", "start Math Hints").await;
    assert_snapshot!(thread.answer("bo", "@countersign please start the Math Hints experiment").await, @"A card for exactly this is already open: *Start “Math Hints”?* Press *Start experiment* or *Reject…* on it.");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_answers_the_question_that_was_asked_last() {
    let (bot, mut thread) = TestBot::hears("ana", "start Math Hints").await;
    thread.says("ana", "create experiment Foo in assign-prog").await;
    thread.skip();
    assert_snapshot!(thread.answer("ana", "no").await, @"
    OK, dropped. Nothing was changed.
    The card is still open: *Start “Math Hints”?*
    ");
    assert_snapshot!(thread.answer("ana", "yes but not now").await, @"That isn't a decision yet. A card is open: Start “Math Hints”? Press **Start experiment** or **Reject…** on it. What is typed decides nothing for this one.");
    assert!(bot.upgrade.effects().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_card_tells_of_other_open_requests_about_the_same_thing() {
    const ELSEWHERE: &str = "\nOther open requests about this: at least one in another conversation.\n";
    let (bot, first) = TestBot::hears("ana", "start Math Hints").await;
    assert!(!first.last().contains("Other open requests"));
    let second = bot.user("bo").says("delete Math Hints").await;
    let told = "\nOther open requests about this: Start “Math Hints” (@ana, in this channel).\n";
    assert!(second.last().contains(told), "{}", second.last());
    let lab = bot.slack.founds_private_channel("cy", "lab", &["bo"]);
    let third = bot.user("cy").says_in(lab.as_str(), "@countersign start Math Hints").await;
    assert!(third.last().contains(ELSEWHERE), "{}", third.last());
    assert_eq!(third.last().matches("Other open requests").count(), 1, "both are elsewhere");
    first.clicks("bo", "reject").await;
    second.clicks("ana", "reject").await;
    let fourth = bot.user("ana").says("start Math Hints").await;
    assert!(fourth.last().contains(ELSEWHERE), "one is left, and nobody here learns what it is: {}", fourth.last());
}
