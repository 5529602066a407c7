//! What time does to a card, and what can be done once it is closed.

use std::time::Duration;

use countersign::config::Config;
use countersign_sandbox::faults::Down;
use insta::assert_snapshot;

use crate::support::{
    bot::{TestBot, eventually},
    thread::normalised,
};

const HOUR: Duration = Duration::from_secs(60 * 60);

/// Moments in words, such as `2026-11-21 19:21 UTC`, differ from run to run.
fn without_moments(text: &str) -> String {
    let mut parts = text.split(" UTC").peekable();
    let mut out = String::new();
    while let Some(part) = parts.next() {
        match part.len().checked_sub("2026-11-21 19:21".len()) {
            Some(start) if parts.peek().is_some() => out.push_str(&format!("{}‹moment›", &part[..start])),
            _ => out.push_str(part),
        }
    }
    out
}

#[tokio::test(flavor = "multi_thread")]
async fn a_card_is_spoken_of_once_before_it_closes() {
    let (bot, mut thread) = TestBot::asked("ana", "start Math Hints").await;
    bot.clock.advance(HOUR * 22);
    bot.settled().await;
    assert_eq!(thread.heard(), "", "not yet");
    bot.clock.advance(HOUR + Duration::from_secs(60));
    eventually("a reminder", || thread.last().contains("no one has decided")).await;
    bot.settled().await;
    assert_snapshot!(thread.in_short(), @"
    ⏰ @ana, no one has decided yet: *Start “Math Hints”*. The card expires ‹time›.
    Who can decide: anyone in this channel.
    ");
    bot.clock.advance(Duration::from_secs(600));
    bot.settled().await;
    assert_eq!(thread.heard(), "", "once");
    thread.clicks("bo", "Start experiment").await;
    assert_eq!(bot.upgrade.effects().len(), 1, "it is open still");
    bot.clock.advance(HOUR * 2);
    bot.settled().await;
    assert!(!thread.heard().contains("Expired"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decided_card_is_not_spoken_of() {
    let (bot, mut thread) = TestBot::asked("ana", "start Math Hints").await;
    thread.clicked("bo", "Reject…").await;
    bot.clock.advance(HOUR * 30);
    bot.settled().await;
    assert_eq!(thread.heard(), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn more_people_may_decide_once_nobody_did_for_a_while() {
    let settings = |config: &mut Config| {
        config.approvals.approvers = vec!["U2".to_owned()];
        config.approvals.escalate_to = vec!["U3".to_owned()];
        config.approvals.escalate_after = HOUR * 4;
    };
    let bot = TestBot::with_settings(settings).await;
    let mut thread = bot.user("ana").asks("start Math Hints").await;
    assert_snapshot!(thread.private_answer("cy", "Start experiment").await, @"
    You can't approve or reject this.
    Who can decide: @bo.
    ");
    bot.clock.advance(HOUR * 4 + Duration::from_secs(60));
    eventually("more people", || thread.last().contains("for a while")).await;
    bot.settled().await;
    assert_snapshot!(thread.in_short(), @"
    *Start “Math Hints”?* ⋯
    Asked by @ana · @bo or @cy can approve · expires ‹time› · digest `‹id›`
    ⋯
    ---
    No one has decided about *Start “Math Hints”* for a while. From now on, @cy can decide too.
    ");
    eventually("a word to cy", || !bot.user("cy").direct_messages().is_empty()).await;
    assert_snapshot!(bot.user("cy").direct_messages(), @"
    @ana asks for your decision: *Start “Math Hints”?* · expires ‹time›
    ‹Open the card›
    ");
    thread.clicks("cy", "Start experiment").await;
    assert!(thread.heard().contains("Approved by @cy"));
    assert_eq!(bot.upgrade.effects().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_that_was_not_enough_is_not_forgotten() {
    let settings = |config: &mut Config| {
        config.approvals.approvers = vec!["U2".to_owned()];
        config.approvals.needed = 2;
        config.approvals.escalate_to = vec!["U3".to_owned()];
        config.approvals.escalate_after = HOUR * 4;
    };
    let bot = TestBot::with_settings(settings).await;
    let mut thread = bot.user("ana").asks("start Math Hints").await;
    thread.clicks("bo", "Start experiment").await;
    for (passed, what) in [(HOUR * 4, "for a while"), (HOUR * 19, "⏰"), (HOUR, "so nothing was changed")] {
        thread.skip();
        bot.clock.advance(passed + Duration::from_secs(60));
        eventually(what, || thread.last().contains(what)).await;
        bot.settled().await;
    }
    let all: Vec<_> = thread.messages().iter().map(|message| normalised(&message.words())).collect();
    let said = all.iter().flat_map(|words| words.lines()).filter(|line| line.contains(" of 2")).collect::<Vec<_>>();
    assert_snapshot!(bot.readable(&said.join("\n")), @"
    Expired: 1 of 2 had approved (@bo) when it expired · ‹time›
    *Start “Math Hints”*: 1 of 2 approved (@bo), and no one else has for a while. From now on, @cy can decide too.
    ⏰ @ana, 1 of 2 approved so far (@bo): *Start “Math Hints”*. The card expires ‹time›.
    @ana 1 of 2 had approved *Start “Math Hints”* (@bo) when it expired, so nothing was changed.
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_offers_the_way_back() {
    let (bot, mut thread) = TestBot::asked("ana", "start Math Hints").await;
    thread.clicked("bo", "Start experiment").await;
    assert_snapshot!(thread.outcome("cy", "undo").await, @"
    *Stop “Math Hints”?*
    *Status*  running → *paused*
    *Context*  `assign-prog`
    *After enrollment ends*  enrolled users keep their condition
    ‹nobody is enrolled, and nobody else is at the point›
    Stopping only pauses it, so it can be resumed. To end it permanently, ask me to cancel it.
    This undoes the change made ‹time›: Started “Math Hints”: it is running now.
    Asked by @cy · anyone in this channel can approve · expires ‹time› · digest `‹id›`
    [Stop experiment] [Reject…] [Withdraw] [Edit…] [Show all]
    ");
    thread.clicks("bo", "approve").await;
    assert_eq!(bot.upgrade.effects().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_failed_is_tried_again_with_a_card_of_its_own() {
    let (bot, mut thread) = TestBot::asked("ana", "start Math Hints").await;
    bot.upgrade.is_down(Some(Down::Closed));
    thread.clicks("bo", "Start experiment").await;
    bot.upgrade.is_well();
    thread.skip();
    assert_snapshot!(thread.outcome("cy", "again").await, @"
    *Start “Math Hints”?* ⋯
    Asked by @cy · anyone in this channel can approve · expires ‹time› · digest `‹id›`
    ⋯
    ");
    assert!(bot.upgrade.effects().is_empty(), "a person decides first");
    thread.clicks("bo", "approve").await;
    assert_eq!(bot.upgrade.effects().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_target_that_changed_since_is_left_alone_and_both_states_are_told() {
    let (bot, mut thread) = TestBot::asked("ana", "change the weights of Math Hints to 70/30").await;
    let other = bot.user("cy").says("change the weights of Math Hints to 60/40").await;
    other.clicks("bo", "approve").await;
    thread.clicks("bo", "approve").await;
    assert_snapshot!(without_moments(&thread.in_short()), @"
    *Change the weights of “Math Hints”*
    ❌ It changed after this card was posted, so nothing was done. On the card → now: *Conditions* control 50%, variant 50% → control 60%, variant 40%; *Last changed* ‹moment› → ‹moment›. *Try again* posts a card that shows how it is now.
    Approved by @bo · ‹time›
    *Conditions*  control 50%, variant 50% → *control 70%, variant 30%*
    *Of 1,000 new users*  about 496 control, 504 variant → *about 689 control, 311 variant*
    Asked by @ana · digest `‹id›`
    [Try again] [Show all]
    ---
    @ana, @bo *Change the weights of “Math Hints”* didn't work. It changed after this card was posted, so nothing was done. On the card → now: *Conditions* control 50%, variant 50% → control 60%, variant 40%; *Last changed* ‹moment› → ‹moment›. *Try again* posts a card that shows how it is now.
    ");
    assert_eq!(bot.done_to_platform().len(), 1);
    thread.clicks("ana", "again").await;
    assert_snapshot!(without_moments(&thread.in_short()), @"
    *Change the weights of “Math Hints”?*
    *Conditions*  control 60%, variant 40% → *control 70%, variant 30%*
    *Of 1,000 new users*  about 595 control, 405 variant → *about 689 control, 311 variant*
    ‹nobody is enrolled, and nobody else is at the point›
    It is inactive in assign-prog.
    Simulated with UpGrade's own assignment. 95% of the time, each count lands within ±29.
    ‹ana asks, anyone may decide› [Update experiment] [Reject…] [Withdraw] [Edit…] [Show all]
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_that_changed_since_is_told_on_a_card_about_something_else() {
    let (bot, mut thread) = TestBot::hears("ana", "change the weights of Math Hints to 70/30").await;
    let other = bot.user("cy").says("start Math Hints").await;
    other.clicks("bo", "approve").await;
    thread.skip();
    thread.clicks("bo", "approve").await;
    let told = without_moments(&thread.heard());
    let line = told.lines().find(|line| line.contains("changed after")).unwrap_or_default();
    assert_snapshot!(line, @"❌ It changed after this card was posted, so nothing was done. On the card → now: *Status* inactive → running; *Last changed* ‹moment› → ‹moment›. *Try again* posts a card that shows how it is now.");
    assert_eq!(bot.done_to_platform().len(), 1, "only the start");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_could_decide_already_or_may_not_is_not_brought_in() {
    let settings = |more: &'static [&'static str]| {
        move |config: &mut Config| {
            config.approvals.approvers = vec!["S1".to_owned()];
            config.approvals.own_request = false;
            config.approvals.escalate_to = more.iter().map(|name| (*name).to_owned()).collect();
            config.approvals.escalate_after = HOUR * 4;
        }
    };
    let bot = TestBot::with_settings(settings(&["S1", "U1", "U3"])).await;
    let mut thread = bot.user("ana").asks("start Math Hints").await;
    bot.clock.advance(HOUR * 4 + Duration::from_secs(60));
    eventually("more people", || thread.last().contains("for a while")).await;
    bot.settled().await;
    let heard = thread.heard();
    assert!(heard.contains("a member of `@approvers` or @cy (but not the requester) can approve"), "{heard}");
    assert!(heard.ends_with("From now on, @cy can decide too."), "{heard}");
    bot.finish().await;

    let bot = TestBot::with_settings(settings(&["S1", "U1"])).await;
    let mut thread = bot.user("ana").asks("start Math Hints").await;
    bot.clock.advance(HOUR * 4 + Duration::from_secs(60));
    bot.settled().await;
    assert_eq!(thread.heard(), "", "there is nobody new");
}
