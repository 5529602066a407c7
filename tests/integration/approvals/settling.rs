//! An outcome that is not known: looked up again, or settled by somebody who may.

use std::time::Duration;

use countersign_sandbox::faults::{Down, When};
use insta::assert_snapshot;

use crate::support::{
    bot::{TestBot, eventually, impatient},
    thread::Thread,
};

/// It was sent, no answer came, and it cannot be read back.
async fn unknown(bot: &TestBot) -> Thread<'_> {
    let mut thread = bot.user("ana").says("start Math Hints").await;
    bot.upgrade.loses_next_answer();
    thread.press("bo", "Start experiment").await;
    eventually("a word about it", || thread.last().contains("No answer")).await;
    bot.upgrade.is_down(Some(Down::Closed));
    bot.clock.advance(Duration::from_secs(5));
    bot.settled().await;
    thread.skip();
    thread
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_outcome_is_looked_up_again() {
    let bot = TestBot::impatient().await;
    let mut thread = unknown(&bot).await;
    assert_snapshot!(thread.outcome("ana", "Check again").await, @"
    @ana *Start “Math Hints”*: I checked again, and the outcome still isn't known. I couldn't check UpGrade (the connection was closed).
    Check the platform itself, then press Mark as done or Abandon on the card.
    ");
    bot.upgrade.is_well();
    assert_snapshot!(thread.outcome("ana", "Check again").await, @"
    ✅ *Started “Math Hints”: it is running now.*
    Approved by @bo · ‹time›
    *Status*  inactive → *running*
    Asked by @ana · digest `‹id›`
    [Undo: stop experiment] [Show all]
    ---
    @ana, @bo I checked again: it happened. *Start “Math Hints”*: Started “Math Hints”: it is running now.
    ");
    thread.clicks("cy", "Check again").await;
    assert_eq!(thread.told("cy").lines().count(), 1, "it is settled");
    assert_eq!(bot.upgrade.effects().len(), 1, "nothing is sent by looking");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_to_be_done_and_reads_so_is_done() {
    let bot = TestBot::impatient().await;
    let mut thread = unknown(&bot).await;
    bot.upgrade.is_well();
    assert_snapshot!(thread.outcome("bo", "Mark as done").await, @"
    ✅ *Started “Math Hints”: it is running now.*
    Approved by @bo · ‹time›
    *Status*  inactive → *running*
    Asked by @ana · digest `‹id›`
    [Undo: stop experiment] [Show all]
    ---
    @bo, @ana I checked again: it happened. *Start “Math Hints”*: Started “Math Hints”: it is running now.
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_to_be_done_and_cannot_be_read_back_is_that_word_alone() {
    let bot = TestBot::impatient().await;
    let mut thread = unknown(&bot).await;
    assert_snapshot!(thread.outcome("bo", "Mark as done").await, @"
    *Start “Math Hints”*
    ❔ @bo says it was done. I couldn't check UpGrade (the connection was closed).
    Approved by @bo · ‹time›
    *Status*  inactive → *running*
    Asked by @ana · digest `‹id›`
    [Show all]
    ---
    *Start “Math Hints”*: @bo says it was done. I couldn't check UpGrade (the connection was closed).
    ");
    assert_snapshot!(thread.private_answer("cy", "Abandon").await, @"@bo resolved this a moment ago. The card says how.");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_given_up_says_by_whom() {
    let bot = TestBot::impatient().await;
    let mut thread = unknown(&bot).await;
    assert_snapshot!(thread.outcome("bo", "Abandon").await, @"
    *Start “Math Hints”*
    ❌ @bo abandoned it; it isn't known whether it happened.
    Approved by @bo · ‹time›
    *Status*  inactive → *running*
    Asked by @ana · digest `‹id›`
    [Try again] [Show all]
    ---
    @bo abandoned *Start “Math Hints”*; it isn't known whether it happened. I won't try it again unless someone asks.
    ");
    assert_snapshot!(thread.private_answer("cy", "Mark as done").await, @"@bo resolved this a moment ago. The card says how.");
}

#[tokio::test(flavor = "multi_thread")]
async fn those_settle_it_who_may_decide_and_what_contradicts_them_is_told() {
    let bot = TestBot::with_settings(|config| {
        impatient(config);
        config.approvals.approvers = vec!["U1".to_owned(), "U2".to_owned()];
        config.approvals.own_request = false;
    })
    .await;
    let mut thread = unknown(&bot).await;
    bot.upgrade.is_well();
    let elsewhere = bot.user("cy").says("cancel Math Hints").await;
    elsewhere.clicks("bo", "Cancel experiment").await;
    for (who, button) in [("ana", "Mark as done"), ("cy", "Mark as done"), ("cy", "Abandon"), ("cy", "Try again")] {
        thread.clicks(who, button).await;
    }
    assert_snapshot!(thread.told("ana"), @"
    You asked for this, so another person has to confirm that it was done.
    Who can resolve this: @bo (but not the requester).
    ");
    assert_snapshot!(thread.told("cy"), @"
    You can't resolve this, but you can press Check again.
    Who can resolve this: @bo (but not the requester).
    ---
    You can't resolve this, but you can press Check again.
    Who can resolve this: @bo (but not the requester).
    ---
    You can't resolve this, but you can press Check again.
    Who can resolve this: @bo (but not the requester).
    ");
    assert_eq!(thread.heard(), "", "nothing was settled");
    assert_snapshot!(thread.outcome("cy", "Check again").await, @"
    @cy *Start “Math Hints”*: I checked again, and the outcome still isn't known. Checked: “*Math Hints*” is cancelled.
    Check the platform itself, then press Mark as done or Abandon on the card.
    ");
    assert_snapshot!(thread.outcome("bo", "Mark as done").await, @"
    *Start “Math Hints”*
    ❔ @bo says it was done, but the platform shows something else. Checked: “*Math Hints*” is cancelled.
    Approved by @bo · ‹time›
    *Status*  inactive → *running*
    Asked by @ana · digest `‹id›`
    [Show all]
    ---
    *Start “Math Hints”*: @bo says it was done, but the platform shows something else. Checked: “*Math Hints*” is cancelled.
    ");
    assert_snapshot!(thread.private_answer("cy", "Abandon").await, @"@bo resolved this a moment ago. The card says how.");
}

#[tokio::test(flavor = "multi_thread")]
async fn those_are_told_that_it_did_not_happen_who_were_told_that_it_is_not_known() {
    let bot = TestBot::impatient().await;
    let mut thread = bot.user("ana").says("start Math Hints").await;
    bot.upgrade.fails_next(503, When::BeforeEffect, Some("POST /api/experiments/state"));
    thread.press("bo", "Start experiment").await;
    eventually("a word about it", || thread.last().contains("No answer")).await;
    bot.upgrade.is_down(Some(Down::Closed));
    bot.clock.advance(Duration::from_secs(5));
    bot.settled().await;
    thread.skip();
    bot.upgrade.is_well();
    assert_snapshot!(thread.outcome("cy", "Check again").await, @"
    *Start “Math Hints”*
    ❌ I checked again: it didn't happen. Nothing was changed.
    Approved by @bo · ‹time›
    *Status*  inactive → *running*
    Asked by @ana · digest `‹id›`
    [Try again] [Show all]
    ---
    @cy, @ana, @bo *Start “Math Hints”*: I checked again: it didn't happen. Nothing was changed.
    ");
    assert!(bot.upgrade.effects().is_empty());
}
