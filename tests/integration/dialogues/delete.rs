//! What cannot be undone needs two people and a button.

use insta::assert_snapshot;

use crate::support::bot::TestBot;

#[tokio::test(flavor = "multi_thread")]
async fn another_person_has_to_approve_a_deletion() {
    let (bot, mut thread) = TestBot::hears("ana", "Delete experiment Lesson Video Hints").await;
    assert_snapshot!(thread.in_short(), @"
    *PERMANENTLY DELETE “Lesson Video Hints”?*
    *Status*  enrolling (running)
    *Context*  `mathstream`
    *Conditions*  control 34%, question-hint-default 33%, question-hint-tutorbot 33%
    *Decision points*  lesson-stream / lesson-video
    *Id*  `‹id›`
    *Enrolled*  24 people
    *Same points*  no other live experiment
    ⚠️ This cannot be undone. The enrolments of 24 people go with it.
    ⚠️ It is enrolling (running): people are getting its conditions now.
    Asked by @ana · anyone in this channel but the person who asked may decide · until ‹time› · digest `‹id›`
    [Delete for good] [Keep it] [Show all]
    ");

    assert_snapshot!(thread.private_answer("ana", "Delete for good").await, @"You asked for this, and it cannot be undone, so another person has to approve it.");
    assert_snapshot!(thread.heard(), @"");
    assert!(bot.upgrade.contains("Lesson Video Hints"));

    assert_snapshot!(thread.outcome("bo", "Delete for good").await, @"
    *PERMANENTLY DELETE “Lesson Video Hints”?* ⋯
    Approved by @bo · ‹time›
    ✅ Deleted “Lesson Video Hints”.
    ‹no buttons›
    ---
    @ana “*Lesson Video Hints*”: done, approved by bo. What next?
    [List experiments]
    ");
    assert!(!bot.upgrade.contains("Lesson Video Hints"));
    assert_eq!(bot.upgrade.effects().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_requester_may_think_better_of_it() {
    let (bot, mut thread) = TestBot::asked("ana", "delete Math Hints").await;
    assert_snapshot!(thread.outcome("ana", "Keep it").await, @"
    *PERMANENTLY DELETE “Math Hints”?*
    *Status*  inactive
    *Context*  `assign-prog`
    *Conditions*  control 50%, variant 50%
    *Decision points*  SelectSection / absolute_value_plot_equality
    *Id*  `‹id›`
    ‹nobody is enrolled, and nobody else is at the point›
    ⚠️ This cannot be undone. Nobody is enrolled.
    Withdrawn by @ana · ‹time›
    Asked by @ana · digest `‹id›`
    ---
    @ana *PERMANENTLY DELETE “Math Hints”* was withdrawn, so nothing was changed.
    ");
    assert!(bot.upgrade.contains("Math Hints"));
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_else_reads_a_direct_message() {
    let bot = TestBot::start().await;
    let mut thread = bot.user("ana").writes("delete Math Hints").await;
    let card = thread.heard();
    assert!(
        card.contains("⚠️ Another person has to approve this, and nobody else can read a direct message."),
        "{card}"
    );
    assert!(card.contains("nobody in this conversation may decide"), "{card}");
    assert_snapshot!(thread.private_answer("ana", "Delete for good").await, @"
    You asked for this, and it cannot be undone, so another person has to approve it.
    Nobody else can read this conversation. Ask me in a channel, where somebody can approve it.
    ");
    assert!(bot.upgrade.contains("Math Hints"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_typed_yes_is_not_enough_and_a_typed_no_is() {
    let (bot, mut thread) = TestBot::asked("ana", "delete Math Hints").await;
    thread.says("bo", "yes").await;
    assert_snapshot!(thread.told("bo"), @"This cannot be undone, so a typed answer is not enough. Please press *Delete for good* or *Keep it* on the card.");
    assert_eq!(thread.heard(), "");
    assert_snapshot!(thread.answer("bo", "no").await, @"
    *PERMANENTLY DELETE “Math Hints”?*
    *Status*  inactive
    *Context*  `assign-prog`
    *Conditions*  control 50%, variant 50%
    *Decision points*  SelectSection / absolute_value_plot_equality
    *Id*  `‹id›`
    ‹nobody is enrolled, and nobody else is at the point›
    ⚠️ This cannot be undone. Nobody is enrolled.
    Rejected by @bo · ‹time›
    Asked by @ana · digest `‹id›`
    ---
    @ana, @bo turned this down, so nothing was changed.
    ");
    assert!(bot.upgrade.contains("Math Hints"));
}
