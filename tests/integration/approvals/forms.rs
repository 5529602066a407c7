//! Requests changed in a form, and turned down with a reason.

use std::time::Duration;

use countersign::config::Config;
use countersign_sandbox::slack::faults::Fault;
use insta::{assert_debug_snapshot, assert_snapshot};
use serde_json::{Value, json};

use super::windows::{as_read, opens, sends, window};
use crate::support::bot::TestBot;

/// A bot where another person has to approve.
async fn of_two_people() -> TestBot {
    TestBot::with_settings(|config| config.approvals.own_request = false).await
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asked_changes_the_request_in_its_form() {
    let (bot, mut thread) = TestBot::asked("ana", "start Math Hints").await;
    let view = opens(&bot, &thread, "ana", "Edit…").await;
    assert_snapshot!(as_read(&bot, &view), @"
    ‹Edit the request›
    *Start “Math Hints”*. Saving replaces the card with a new one, which still needs approval.
    Status: running
    Start automatically at: (empty)
    Ends at: (empty)
    ");
    assert_debug_snapshot!(sends(&bot, "ana", json!({})).await, @r#"
    {
        "/status": "You haven't changed anything.",
    }
    "#);
    assert_debug_snapshot!(sends(&bot, "ana", json!({ "Status": "scheduled" })).await, @r#"
    {
        "/start_on": "When should “Math Hints” start? For example Friday 9:00, or 2027-01-15 09:00.",
    }
    "#);
    assert_eq!(thread.heard(), "", "nothing was saved yet");
    let entered = json!({ "Status": "scheduled", "Start automatically at": 4_072_150_800_u64 });
    assert_debug_snapshot!(sends(&bot, "ana", entered).await, @"{}");
    assert_snapshot!(thread.in_short(), @"
    *Start “Math Hints”*
    Edited by @ana · ‹time› · ‹the newer card›
    [Show all]
    ---
    *Schedule “Math Hints”?*
    *Status*  inactive → *scheduled*
    *Context*  `assign-prog`
    *Starts*  2099-01-15 09:00 UTC
    *Conditions*  control 50%, variant 50%
    *Decision points*  SelectSection / absolute_value_plot_equality
    ‹nobody is enrolled, and nobody else is at the point›
    UpGrade starts it automatically if its scheduler is enabled.
    Asked by @ana, edited by @ana · anyone in this channel can approve · expires ‹time› · digest `‹id›`
    [Schedule experiment] [Reject…] [Withdraw] [Edit…] [Show all]
    ");
    assert!(window(&bot, "ana").is_none(), "it closed");
    assert_snapshot!(thread.outcome("bo", "approve").await, @"
    ✅ *Scheduled “Math Hints”: it starts on 2099-01-15 09:00 UTC.*
    Approved by @bo · ‹time›
    *Status*  inactive → *scheduled*
    Asked by @ana, edited by @ana · digest `‹id›`
    [Undo: unschedule experiment] [Show all]
    ---
    @ana Scheduled “Math Hints”: it starts on 2099-01-15 09:00 UTC. Approved by bo. What next?
    [Show details]
    ");
    assert_eq!(bot.upgrade.experiment("Math Hints").unwrap()["state"], "scheduled");
    assert_eq!(bot.upgrade.effects().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_edited_cannot_be_the_second_person() {
    let bot = of_two_people().await;
    let mut thread = bot.user("ana").asks("start Math Hints").await;
    opens(&bot, &thread, "bo", "Edit…").await;
    assert!(sends(&bot, "bo", json!({ "Status": "cancelled" })).await.is_empty());
    assert_snapshot!(thread.in_short(), @"
    *Start “Math Hints”*
    Edited by @bo · ‹time› · ‹the newer card›
    [Show all]
    ---
    *Cancel “Math Hints”?*
    *Status*  inactive → *cancelled*
    *Context*  `assign-prog`
    ‹nobody is enrolled, and nobody else is at the point›
    ⚠️ A cancelled experiment can't be started again here.
    Asked by @ana, edited by @bo · anyone in this channel except the requester and editors can approve · expires ‹time› · digest `‹id›`
    [Cancel experiment] [Reject…] [Withdraw] [Edit…] [Show all]
    ");
    for name in ["ana", "bo"] {
        thread.clicks(name, "approve").await;
    }
    assert_snapshot!(format!("ana: {}\nbo: {}", thread.told("ana"), thread.told("bo")), @"
    ana: You asked for this and it can't be undone, so another person has to approve it.
    bo: You edited this, so another person has to approve it.
    ");
    assert!(bot.upgrade.effects().is_empty());
    thread.clicks("cy", "approve").await;
    assert_eq!(bot.upgrade.experiment("Math Hints").unwrap()["state"], "completed", "the platform's word for it");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_is_said_at_its_field() {
    let (bot, mut thread) =
        TestBot::hears("ana", "create an experiment called Foo in assign-prog at SelectSection / area_model").await;
    thread.skip();
    let view = opens(&bot, &thread, "ana", "Edit…").await;
    assert_snapshot!(as_read(&bot, &view), @"
    ‹Edit the request›
    *Create “Foo”*. Saving replaces the card with a new one, which still needs approval.
    Name: Foo
    Context: assign-prog
    Decision points, one per line: SelectSection / area_model
    Conditions and weights, one per line: control: 50%
    variant: 50%
    Description: (empty)
    Assignment: individual
    Group type: (empty)
    Consistency: individual
    After enrollment ends: continue
    Users on no list: included
    Tags, one per line: (empty)
    End after this many users: (empty)
    Start automatically at: (empty)
    Ends at: (empty)
    ");
    assert_debug_snapshot!(sends(&bot, "ana", json!({ "Name": "  " })).await, @r#"
    {
        "/name": "Fill this in.",
    }
    "#);
    let conditions = "Conditions and weights, one per line";
    let wrong = sends(&bot, "ana", json!({ "Name": "Foo", conditions: "control: 150%\nvariant: 50%" })).await;
    assert!(wrong.values().any(|why| why.contains("200")), "the sum is said: {wrong:?}");
    assert_eq!(thread.heard(), "", "nothing was saved");
    let both = json!({ "Name": "Foo", conditions: "control 70%\nvariant 30%" });
    assert_debug_snapshot!(sends(&bot, "ana", both).await, @"{}");
    assert_snapshot!(thread.in_short(), @"
    *Create “Foo”*
    Edited by @ana · ‹time› · ‹the newer card›
    [Show all]
    ---
    *Create “Foo”?* ⋯
    ‹not: Defaults used: Assignment, Consistency, After enrollment ends, Users on no list.›
    ⋯
    Asked by @ana, edited by @ana · anyone in this channel can approve · expires ‹time› · digest `‹id›`
    ⋯
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_that_comes_too_late_says_so_and_saves_nothing() {
    let (bot, mut thread) = TestBot::asked("ana", "start Math Hints").await;
    opens(&bot, &thread, "ana", "Edit…").await;
    thread.says("ana", "cancel Math Hints").await;
    thread.skip();
    assert!(sends(&bot, "ana", json!({ "Status": "cancelled" })).await.is_empty());
    assert_snapshot!(as_read(&bot, &window(&bot, "ana").expect("it stays")), @"
    ‹Nothing was saved›
    A newer request took the place of this one a moment ago.
    ‹Open the newer card›
    ");
    assert_eq!(thread.heard(), "", "nothing was saved");

    opens(&bot, &thread, "cy", "Edit…").await;
    thread.clicks("bo", "approve").await;
    assert!(sends(&bot, "cy", json!({ "Status": "enrolling" })).await.is_empty());
    assert!(as_read(&bot, &window(&bot, "cy").expect("it stays")).contains("approved this"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_reason_is_asked_before_a_rejection_counts_and_reaches_who_asked() {
    let (bot, mut thread) = TestBot::asked("ana", "start Math Hints").await;
    let view = opens(&bot, &thread, "bo", "Reject…").await;
    assert_snapshot!(as_read(&bot, &view), @"
    ‹Reject this request?›
    *Start “Math Hints”*, asked by @ana. Nothing is decided until you press *Reject*.
    Reason: (empty)
    ");
    assert_eq!(thread.heard(), "", "nothing is decided yet");
    assert!(sends(&bot, "bo", json!({ "Reason": "Not before the <!channel> meeting" })).await.is_empty());
    assert_snapshot!(thread.in_short(), @"
    *Start “Math Hints”*
    Rejected by @bo · ‹time› · _Not before the &lt;!channel&gt; meeting_
    *Status*  inactive → *running*
    Asked by @ana · digest `‹id›`
    [Change and ask again…] [Show all]
    ---
    @ana, @bo rejected this, so nothing was changed.
    To ask for something else, press *Change and ask again…* on the card, or tell me here.
    ---
    @ana, @bo explains why this was rejected: *Start “Math Hints”*
    _Not before the &lt;!channel&gt; meeting_
    ");

    let view = opens(&bot, &thread, "ana", "Change and ask again…").await;
    assert_snapshot!(as_read(&bot, &view), @"
    ‹Change and ask again›
    *Start “Math Hints”* was rejected. Saving posts a new card, which still needs approval.
    Status: running
    Start automatically at: (empty)
    Ends at: (empty)
    ");
    let entered = json!({ "Status": "scheduled", "Start automatically at": 4_072_150_800_u64 });
    assert!(sends(&bot, "ana", entered).await.is_empty());
    assert_snapshot!(thread.in_short(), @"
    *Schedule “Math Hints”?*
    *Status*  inactive → *scheduled*
    *Context*  `assign-prog`
    *Starts*  2099-01-15 09:00 UTC
    *Conditions*  control 50%, variant 50%
    *Decision points*  SelectSection / absolute_value_plot_equality
    ‹nobody is enrolled, and nobody else is at the point›
    UpGrade starts it automatically if its scheduler is enabled.
    ‹ana asks, anyone may decide› [Schedule experiment] [Reject…] [Withdraw] [Edit…] [Show all]
    ");
    thread.clicks("bo", "approve").await;
    assert_eq!(bot.upgrade.experiment("Math Hints").unwrap()["state"], "scheduled");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_withdrawn_can_be_asked_for_again_changed() {
    let (bot, mut thread) = TestBot::asked("ana", "start Math Hints").await;
    thread.clicks("ana", "Withdraw").await;
    let heard = thread.heard();
    assert!(heard.contains("Withdrawn by @ana · ‹time›") && heard.contains("[Change and ask again…]"), "{heard}");
    let view = opens(&bot, &thread, "ana", "Change and ask again…").await;
    let intro = "*Start “Math Hints”* was withdrawn. Saving posts a new card, which still needs approval.";
    assert!(as_read(&bot, &view).contains(intro), "{}", as_read(&bot, &view));
    let entered = json!({ "Status": "scheduled", "Start automatically at": 4_072_150_800_u64 });
    assert!(sends(&bot, "ana", entered).await.is_empty());
    let heard = thread.heard();
    assert!(heard.contains("*Schedule “Math Hints”?*") && heard.contains("Asked by @ana"), "{heard}");
    thread.clicks("bo", "approve").await;
    assert_eq!(bot.upgrade.experiment("Math Hints").unwrap()["state"], "scheduled");

    let thread = bot.user("ana").asks("stop Lesson Video Hints").await;
    thread.says("bo", "stop").await;
    let view = opens(&bot, &thread, "ana", "Change and ask again…").await;
    assert!(as_read(&bot, &view).contains("*Stop “Lesson Video Hints”* was closed."), "{}", as_read(&bot, &view));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_goes_back_has_not_rejected_anything() {
    let (bot, mut thread) = TestBot::asked("ana", "start Math Hints").await;
    let view = opens(&bot, &thread, "bo", "Reject…").await;
    bot.slack.closes("bo", &view.id).unwrap();
    bot.settled().await;
    assert_eq!(thread.heard(), "");
    opens(&bot, &thread, "cy", "Reject…").await;
    thread.clicks("bo", "Start experiment").await;
    assert_eq!(bot.upgrade.effects().len(), 1);
    assert!(sends(&bot, "cy", json!({ "Reason": "Too early" })).await.is_empty());
    assert_snapshot!(as_read(&bot, &window(&bot, "cy").expect("it stays")), @"
    ‹Nothing was decided›
    @bo approved this a moment ago; it is done.
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_who_asked_withdraws() {
    let (bot, mut thread) = TestBot::asked("ana", "start Math Hints").await;
    assert_snapshot!(thread.private_answer("bo", "Withdraw").await, @"
    Only @ana can withdraw this request.
    If you don't want it, press *Reject…*.
    ");
    assert_eq!(thread.heard(), "");
    thread.clicks("ana", "Withdraw").await;
    assert!(thread.heard().contains("Withdrawn by @ana"));
    assert!(bot.upgrade.effects().is_empty());
}

/// What becomes of a window that is sent twice: by Slack, which delivers it again, and by a person who presses again
/// before it closes.
async fn sent_twice(bot: &TestBot, name: &str, values: Value) {
    let view = window(bot, name).expect("a window is open");
    bot.slack.inject(Fault::DeliverTwice { on: true });
    let both = tokio::join!(
        bot.slack.submits(name, &view.id, values.clone()),
        bot.slack.submits(name, &view.id, values.clone())
    );
    assert!(matches!(both, (Ok(true), Ok(true))), "it closes each time: {both:?}");
    bot.slack.inject(Fault::DeliverTwice { on: false });
    bot.settled().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_that_is_sent_twice_asks_once() {
    let bot = TestBot::start().await;
    let asks = "create an experiment called Foo in assign-prog at SelectSection / area_model";
    let mut thread = bot.user("ana").asks(asks).await;
    opens(&bot, &thread, "ana", "Edit…").await;
    sent_twice(&bot, "ana", json!({ "Name": "Bar" })).await;
    let heard = thread.heard();
    assert_eq!(heard.matches("[Create experiment]").count(), 1, "{heard}");
    thread.clicks("bo", "Reject…").await;
    thread.skip();
    opens(&bot, &thread, "ana", "Change and ask again…").await;
    sent_twice(&bot, "ana", json!({ "Name": "Baz" })).await;
    let heard = thread.heard();
    assert_eq!(heard.matches("[Create experiment]").count(), 1, "{heard}");
    assert_eq!(heard.matches("Create “Baz”?").count(), 1, "{heard}");

    // Another window of the same card is another request.
    opens(&bot, &thread, "ana", "Change and ask again…").await;
    assert!(sends(&bot, "ana", json!({ "Name": "Qux" })).await.is_empty());
    let heard = thread.heard();
    assert!(heard.contains("Create “Qux”?") && !heard.contains("Replaced"), "{heard}");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_window_of_an_edited_card_is_not_taken_for_the_same() {
    let (bot, mut thread) = TestBot::asked("ana", "start Math Hints").await;
    let first = opens(&bot, &thread, "ana", "Edit…").await;
    opens(&bot, &thread, "bo", "Edit…").await;
    // On another device, the window that was opened first stays there.
    bot.slack.arrange(|world| {
        let user = world.user("ana").unwrap().id.clone();
        world.stacks.remove(&user);
    });
    opens(&bot, &thread, "ana", "Edit…").await;
    assert!(sends(&bot, "ana", json!({ "Status": "cancelled" })).await.is_empty());
    thread.skip();
    let mut read = Vec::new();
    for (name, view) in [("ana", &first.id), ("bo", &window(&bot, "bo").unwrap().id)] {
        assert!(!bot.slack.submits(name, view, json!({ "Status": "archived" })).await.unwrap(), "it stays");
        read.push(as_read(&bot, &bot.slack.look(|world| world.views[view].clone())));
    }
    assert_eq!(read[0], read[1]);
    assert_snapshot!(read[0], @"
    ‹Nothing was saved›
    @ana edited this a moment ago, so another card took its place.
    ‹Open the newer card›
    ");
    bot.settled().await;
    assert_eq!(thread.heard(), "", "nothing was saved");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_is_answered_in_time_and_kept_however_slow_others_are() {
    let settings = |config: &mut Config| config.approvals.approvers = vec!["S1".to_owned()];
    let bot = TestBot::with_settings(settings).await;
    let asks = "create an experiment called Foo in assign-prog at SelectSection / area_model";
    let mut thread = bot.user("ana").asks(asks).await;
    let who = bot.slack.look(|world| world.groups[0].members[0].to_string());
    let who = bot.slack.look(|world| world.user(&who).unwrap().name.clone());
    opens(&bot, &thread, &who, "Edit…").await;

    bot.upgrade.is_slow(Duration::from_millis(1800));
    assert_debug_snapshot!(sends(&bot, &who, json!({ "Name": "Bar" })).await, @r#"
    {
        "/conditions": "The platform took too long to check this, so nothing was saved. Try again in a moment.",
    }
    "#);
    bot.upgrade.is_well();
    bot.clock.advance(Duration::from_secs(11)); // who is in a group is known for seconds only
    let method = "usergroups.users.list".to_owned();
    bot.slack.inject(Fault::Slow { method, delay_ms: 2500, calls: 1 });
    assert_debug_snapshot!(sends(&bot, &who, json!({})).await, @r#"
    {
        "/conditions": "I can't look up the user groups right now, so I couldn't check whether you can decide. Try again.\nWho can decide: a member of @approvers.",
    }
    "#);
    assert_eq!(thread.heard(), "", "nothing was saved");
    assert!(sends(&bot, &who, json!({})).await.is_empty(), "it closes");
    assert!(thread.heard().contains("Create “Bar”?"), "what was entered first was kept");
    let recorded = bot.slack.recorded();
    let sent: Vec<_> = recorded.deliveries.iter().filter(|attempt| attempt.about == "view_submission").collect();
    assert_eq!(sent.len(), 3);
    for sent in sent {
        assert!(sent.acknowledged_after_ms.is_some_and(|after| after < 2000), "{sent:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_that_leaves_nobody_to_approve_it_is_not_saved() {
    let settings = |config: &mut Config| {
        config.approvals.approvers = vec!["U2".to_owned(), "U1".to_owned()];
        config.approvals.own_request = false;
    };
    let bot = TestBot::with_settings(settings).await;
    let mut thread = bot.user("ana").asks("start Math Hints").await;
    opens(&bot, &thread, "bo", "Edit…").await;
    let wrong = sends(&bot, "bo", json!({ "Status": "cancelled" })).await;
    let told = "If you save this, no one can approve it: people who asked for or edited a request can't approve it. Ask someone else to edit it, or leave it as it is.";
    assert_eq!(wrong.into_values().collect::<Vec<_>>(), [told]);
    assert!(window(&bot, "bo").is_some(), "what was entered stands there still");
    assert_eq!(thread.heard(), "", "the card stays");
    thread.clicks("bo", "Start experiment").await;
    assert!(thread.heard().contains("Approved by @bo"));
}
