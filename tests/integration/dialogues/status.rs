//! Starting, stopping, resuming, cancelling.

use insta::assert_snapshot;

use crate::support::bot::TestBot;

#[tokio::test(flavor = "multi_thread")]
async fn starting_an_experiment_waits_for_a_person() {
    let (bot, mut thread) = TestBot::hears("ana", "start the Math Hints experiment").await;
    assert_snapshot!(thread.in_short(), @"
    ‹Start “Math Hints”, open›
    ");
    assert_eq!(bot.upgrade.experiment("Math Hints").unwrap()["state"], "inactive", "nothing happens before a click");

    assert_snapshot!(thread.outcome("bo", "Start experiment").await, @"‹Math Hints is started, as bo approved›");
    assert_eq!(bot.upgrade.experiment("Math Hints").unwrap()["state"], "running");
    assert_eq!(bot.upgrade.effects().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejected_start_changes_nothing() {
    let (bot, mut thread) = TestBot::asked("ana", "start Math Hints").await;
    assert_snapshot!(thread.outcome("bo", "Reject…").await, @"
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

    thread.says("ana", "start Math Hints").await;
    thread.skip();
    assert_snapshot!(thread.outcome("ana", "Withdraw").await, @"
    *Start “Math Hints”*
    Withdrawn by @ana · ‹time›
    *Status*  inactive → *running*
    Asked by @ana · digest `‹id›`
    [Change and ask again…] [Show all]
    ---
    @ana *Start “Math Hints”* was withdrawn, so nothing was changed.
    ");
    assert!(bot.upgrade.effects().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_so_already_needs_no_card() {
    let (bot, mut thread) = TestBot::hears("ana", "Stop the Running Test experiment").await;
    assert_snapshot!(thread.heard(), @"“*Running Test*” is already paused, so there's nothing to change.");
    assert_snapshot!(thread.answer("ana", "start Lesson Video Hints").await, @"“*Lesson Video Hints*” is already running, so there's nothing to change.");
    assert_snapshot!(thread.answer("ana", "start Chat Tone").await, @"
    “*Chat Tone*” is cancelled, so I won't make it running. UpGrade would accept that, but it isn't good practice. I can make it: archived.
    [archive Chat Tone]
    ");
    assert!(bot.upgrade.effects().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn stopping_can_be_undone_with_a_card_of_its_own() {
    let (bot, mut thread) = TestBot::hears("ana", "stop Lesson Video Hints").await;
    assert_snapshot!(thread.in_short(), @"‹Stop “Lesson Video Hints”, open›");
    assert_snapshot!(thread.outcome("ana", "Stop experiment").await, @"
    ✅ *Stopped “Lesson Video Hints”: no new users are enrolled.*
    Approved by @ana · ‹time›
    *Status*  running → *paused*
    Asked by @ana · digest `‹id›`
    [Undo: resume experiment] [Show all]
    ---
    @ana Stopped “Lesson Video Hints”: no new users are enrolled. What next?
    [Show details]
    ");
    assert_snapshot!(thread.outcome("ana", "Undo: resume experiment").await, @"
    *Resume “Lesson Video Hints”?*
    *Status*  paused → *running*
    *Context*  `mathstream`
    *Conditions*  control 34%, question-hint-default 33%, question-hint-tutorbot 33%
    *Decision points*  lesson-stream / lesson-video
    *Enrolled*  24 users
    *Overlapping experiments*  none
    This undoes the change made ‹time›: Stopped “Lesson Video Hints”: no new users are enrolled.
    ‹ana asks, anyone may decide› [Resume experiment] [Reject…] [Withdraw] [Edit…] [Show all]
    ");
    assert_snapshot!(thread.outcome("ana", "Resume experiment").await, @"
    ✅ *Resumed “Lesson Video Hints”: it is running again.*
    Approved by @ana · ‹time›
    *Status*  paused → *running*
    Asked by @ana · digest `‹id›`
    [Undo: stop experiment] [Show all]
    ---
    @ana Resumed “Lesson Video Hints”: it is running again. What next?
    [Show details]
    ");
    assert_eq!(bot.upgrade.experiment("Lesson Video Hints").unwrap()["state"], "running");
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_is_for_good() {
    let (_bot, mut thread) = TestBot::hears("ana", "cancel Running Test").await;
    assert_snapshot!(thread.in_short(), @"
    *Cancel “Running Test”?*
    *Status*  paused → *cancelled*
    *Context*  `assign-prog`
    *Enrolled*  24 users
    *Overlapping experiments*  none
    ⚠️ A cancelled experiment can't be started again here.
    Asked by @ana · anyone in this channel except the requester can approve · expires ‹time› · digest `‹id›`
    [Cancel experiment] [Reject…] [Withdraw] [Edit…] [Show all]
    ");
    thread.clicks("ana", "Cancel experiment").await;
    assert!(thread.told("ana").contains("another person has to approve it"), "what cannot be undone needs two");
    assert_snapshot!(thread.outcome("bo", "Cancel experiment").await, @"
    ✅ *Cancelled “Running Test”: nobody gets its conditions anymore.*
    Approved by @bo · ‹time›
    *Status*  paused → *cancelled*
    Asked by @ana · digest `‹id›`
    [Show all]
    ---
    @ana Cancelled “Running Test”: nobody gets its conditions anymore. Approved by bo. What next?
    [Show details]
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_misspelt_name_is_suggested_and_the_button_leads_to_the_card() {
    let (_bot, mut thread) = TestBot::hears("ana", "Start math hint").await;
    assert_snapshot!(thread.in_short(), @"
    No experiment is called “*math hint*”. Did you mean “*Math Hints*”?
    [Math Hints]
    ");
    assert_snapshot!(thread.outcome("ana", "Math Hints").await, @"
    @ana chose *Math Hints*.
    ---
    ‹Start “Math Hints”, open›
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_name_it_is_asked_for() {
    let (_bot, mut thread) = TestBot::hears("ana", "start an experiment").await;
    assert_snapshot!(thread.in_short(), @"
    Which experiment?
    [Math Hints] [Running Test]
    ");
    assert_snapshot!(thread.answer("ana", "Zebra").await, @"
    No experiment is called “*Zebra*”.
    [List experiments]
    ");
    thread.says("ana", "Math Hints").await;
    assert!(thread.heard().contains("[Start experiment]"));
}

#[tokio::test(flavor = "multi_thread")]
async fn twins_are_told_apart_before_anything_is_asked() {
    let bot = TestBot::start().await;
    bot.upgrade.has("Math Hints", "inactive");
    assert_snapshot!(bot.user("ana").answer("start Math Hints").await, @"
    Several experiments are called “*Math Hints*”. Which one do you mean?
    [assign-prog, inactive, id ‹id›…] [assign-prog, inactive, id ‹id›…]
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_done_in_a_thread_is_told_with_who_approved_it() {
    let (_bot, mut thread) = TestBot::hears("ana", "what have we accomplished?").await;
    assert_snapshot!(thread.in_short(), @"
    Nothing has been changed in this thread yet, nor in the other threads of this channel.
    I looked in this thread and the other threads of this channel. Threads that were removed from the store aren't included.
    [List experiments]
    ");
    for (said, by, label) in [
        ("start Math Hints", "bo", "Start experiment"),
        ("rename Chat Tone to Tutor Tone", "ana", "Update experiment"),
        ("stop Lesson Video Hints", "cy", "Reject…"),
        ("delete Concrete Fractions", "bo", "Delete permanently"),
    ] {
        thread.says("ana", said).await;
        thread.clicks(by, label).await;
    }
    thread.skip();
    assert_snapshot!(thread.answer("cy", "@countersign What have we accomplished?").await, @"
    3 changes in this thread:
    • ✅ Started “Math Hints”: it is running now. · ‹time› · asked by @ana, approved by @bo
    • ✅ Renamed “Chat Tone” to “Tutor Tone”. · ‹time› · asked by @ana, approved by @ana
    • ✅ “Concrete Fractions” was permanently deleted. · ‹time› · asked by @ana, approved by @bo
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn not_wishing_and_wondering_change_nothing() {
    let (bot, mut thread) = TestBot::hears("ana", "should I start Math Hints?").await;
    assert_snapshot!(thread.in_short(), @"
    Math Hints ⋯
    0
    ‹not: nobody›
    ⋯
    It's up to you. To request it, say “start Math Hints”. I'll post a card, and nothing is changed until someone approves it.
    [Start] [In detail]
    ");
    assert_snapshot!(thread.answer("ana", "don't start it").await, @"OK, nothing was started.");
    thread.says("ana", "start it").await;
    thread.skip();
    assert_snapshot!(thread.answer("bo", "@countersign wait, don't start it").await, @"OK, nothing was started. A card is open: Start “Math Hints”? Press **Start experiment** or **Reject…** on it. What is typed decides nothing for this one.");
    assert!(bot.upgrade.effects().is_empty());
}
