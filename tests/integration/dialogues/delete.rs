//! What cannot be undone needs two people and a button.

use insta::assert_snapshot;

use crate::support::bot::TestBot;

#[tokio::test(flavor = "multi_thread")]
async fn another_person_has_to_approve_a_deletion() {
    let (bot, mut thread) = TestBot::hears("ana", "Delete experiment Lesson Video Hints").await;
    assert_snapshot!(thread.in_short(), @"
    *Permanently delete “Lesson Video Hints”?*
    *Status*  running
    *Context*  `mathstream`
    *Conditions*  control 34%, question-hint-default 33%, question-hint-tutorbot 33%
    *Decision points*  lesson-stream / lesson-video
    *ID*  `‹id›`
    *Enrolled*  24 users
    *Overlapping experiments*  none
    ⚠️ This can't be undone. The enrollments of 24 users are deleted too.
    ⚠️ It is running, so users are getting its conditions now.
    Asked by @ana · anyone in this channel except the requester can approve · expires ‹time› · digest `‹id›`
    [Delete permanently] [Reject…] [Withdraw] [Show all]
    ");

    assert_snapshot!(thread.private_answer("ana", "Delete permanently").await, @"You asked for this and it can't be undone, so another person has to approve it.");
    assert_snapshot!(thread.heard(), @"");
    assert!(bot.upgrade.contains("Lesson Video Hints"));

    assert_snapshot!(thread.outcome("bo", "Delete permanently").await, @"
    ✅ *“Lesson Video Hints” was permanently deleted.*
    Approved by @bo · ‹time›
    Asked by @ana · digest `‹id›`
    [Show all]
    ---
    @ana “Lesson Video Hints” was permanently deleted. Approved by bo. What next?
    [List experiments]
    ");
    assert!(!bot.upgrade.contains("Lesson Video Hints"));
    assert_eq!(bot.upgrade.effects().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_requester_may_think_better_of_it() {
    let (bot, mut thread) = TestBot::asked("ana", "delete Math Hints").await;
    assert_snapshot!(thread.outcome("ana", "Withdraw").await, @"
    *Permanently delete “Math Hints”*
    Withdrawn by @ana · ‹time›
    Asked by @ana · digest `‹id›`
    [Show all]
    ---
    @ana *Permanently delete “Math Hints”* was withdrawn, so nothing was changed.
    ");
    assert!(bot.upgrade.contains("Math Hints"));
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_else_reads_a_direct_message() {
    let bot = TestBot::start().await;
    let mut thread = bot.user("ana").writes("delete Math Hints").await;
    let card = thread.heard();
    assert!(
        card.contains("⚠️ Another person has to approve this, and no one else can read our direct messages."),
        "{card}"
    );
    assert!(card.contains("no one here can approve"), "{card}");
    assert_snapshot!(thread.private_answer("ana", "Delete permanently").await, @"
    You asked for this and it can't be undone, so another person has to approve it.
    No one else can read this conversation. Ask in a channel where someone can approve it.
    ");
    assert!(bot.upgrade.contains("Math Hints"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_typed_yes_is_not_enough_and_a_typed_no_is() {
    let (bot, mut thread) = TestBot::asked("ana", "delete Math Hints").await;
    thread.says("ana", "yes").await;
    assert_snapshot!(thread.told("ana"), @"You asked for this and it can't be undone, so another person has to approve it.");
    thread.says("bo", "yes").await;
    assert_snapshot!(thread.told("bo"), @"A typed answer isn't enough for this. Press *Delete permanently* or *Reject…* on the card.");
    assert_eq!(thread.heard(), "");
    assert_snapshot!(thread.answer("bo", "no").await, @"
    *Permanently delete “Math Hints”*
    Rejected by @bo · ‹time›
    Asked by @ana · digest `‹id›`
    [Show all]
    ---
    @ana, @bo rejected this, so nothing was changed.
    ");
    assert!(bot.upgrade.contains("Math Hints"));
}
