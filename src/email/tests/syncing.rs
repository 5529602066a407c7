//! Mails come into threads once, whatever is killed in between.

use std::{
    sync::{Arc, Mutex, atomic::Ordering},
    time::Duration,
};

use countersign_core::ids::ThreadId;
use countersign_graph::action::{Status, Verdict};
use countersign_mail::{AnswerByHand, MailError};
use tokio_util::sync::CancellationToken;

use super::support::*;
use crate::{
    register::MailStatus,
    sync::{MailSync, PostError, Round, SyncControl, SyncDeps},
};

pub(super) struct Syncing {
    pub(super) sync: MailSync,
    control: SyncControl,
    pub(super) roots: Arc<FakeRoots>,
    pub(super) woken: Arc<Mutex<Vec<ThreadId>>>,
}

pub(super) fn syncing(world: &World, holder: &str, roots: Arc<FakeRoots>) -> Syncing {
    let control = SyncControl::new(world.book.clone());
    let woken: Arc<Mutex<Vec<ThreadId>>> = Arc::default();
    let wakes = woken.clone();
    let sync = MailSync::new(SyncDeps {
        account: world.account.clone(),
        book: world.book.clone(),
        control: control.clone(),
        roots: roots.clone(),
        team: "T1".into(),
        channel: "C1".into(),
        wake: Arc::new(move |thread| wakes.lock().unwrap().push(thread)),
        clock: Arc::new(world.store.clock.clone()),
        holder: holder.to_owned(),
        every: Duration::from_secs(60),
        term: Duration::from_secs(120),
    });
    Syncing { sync, control, roots, woken }
}

/// Returns a mail that arrives now.
fn fresh(world: &World, id: &str) -> countersign_mail::RawMail {
    countersign_mail::RawMail { received_at: world.now(), ..raw(id, "Prices", "How much is it?") }
}

#[tokio::test]
async fn each_mail_gets_one_thread() {
    let world =
        World::with(vec![classifies("inquiry", 0.9), drafts("Yes."), classifies("inquiry", 0.9), drafts("No.")]);
    let Syncing { sync, roots, woken, control } = syncing(&world, "p1", Arc::default());
    world.account.inbox.lock().unwrap().push(fresh(&world, "m1"));
    assert_eq!(sync.round().await, Round::Complete(false));
    assert_eq!(sync.round().await, Round::Complete(false), "nothing new");
    world.account.inbox.lock().unwrap().push(fresh(&world, "m2"));
    assert_eq!(sync.round().await, Round::Complete(false));
    let posted: Vec<_> = roots.posted.lock().unwrap().iter().map(|(_, words)| words.clone()).collect();
    assert_eq!(posted, ["Email from Dana Fields: Prices", "Email from Dana Fields: Prices"]);
    let threads = woken.lock().unwrap().clone();
    assert_eq!(threads.len(), 2);
    for thread in &threads {
        world.work(thread).await;
        assert!(!world.cards(thread).await.is_empty());
    }
    let state = control.state().await.unwrap();
    assert_eq!((state.brought, state.problem), (2, None));
}

#[tokio::test]
async fn a_lost_answer_of_slack_leads_to_no_second_message() {
    let world = World::with(Vec::new());
    let Syncing { sync, roots, control, .. } = syncing(&world, "p1", Arc::default());
    *roots.failure.lock().unwrap() = Some(PostError("Slack doesn't answer.".into()));
    world.account.inbox.lock().unwrap().push(fresh(&world, "m1"));
    assert_eq!(sync.round().await, Round::Failed(None));
    assert_eq!(control.state().await.unwrap().problem.as_deref(), Some("Slack doesn't answer."));
    assert!(control.state().await.unwrap().point.is_none(), "the mail is asked for again");
    assert_eq!(sync.round().await, Round::Complete(false));
    assert_eq!(roots.posted.lock().unwrap().len(), 1);
    assert!(world.entry("m1").await.is_delivered);
}

#[tokio::test]
async fn a_mail_that_cannot_be_read_does_not_hold_up_others() {
    let world = World::with(Vec::new());
    let Syncing { sync, roots, .. } = syncing(&world, "p1", Arc::default());
    world.account.inbox.lock().unwrap().extend([fresh(&world, "m1"), fresh(&world, "m2")]);
    world.account.unreadable.lock().unwrap().push("m1".into());
    assert_eq!(sync.round().await, Round::Complete(false));
    let mut posted: Vec<_> = roots.posted.lock().unwrap().iter().map(|(_, words)| words.clone()).collect();
    posted.sort();
    assert_eq!(posted, ["Email from Dana Fields: Prices", "Email from an unknown sender: (no subject)"]);
}

#[tokio::test]
async fn mails_from_before_the_bot_are_left_alone() {
    let world = World::with(Vec::new());
    let Syncing { sync, roots, .. } = syncing(&world, "p1", Arc::default());
    world.account.inbox.lock().unwrap().extend([raw("old", "Old", "From March."), fresh(&world, "new")]);
    assert_eq!(sync.round().await, Round::Complete(false));
    assert_eq!(roots.posted.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn an_account_that_does_not_answer_loses_nothing() {
    let world = World::with(Vec::new());
    let Syncing { sync, control, .. } = syncing(&world, "p1", Arc::default());
    world.account.inbox.lock().unwrap().push(fresh(&world, "m1"));
    let after = Some(Duration::from_secs(7));
    *world.account.failure.lock().unwrap() = Some(MailError::Unavailable { reason: "429".into(), retry_after: after });
    assert_eq!(sync.round().await, Round::Failed(after));
    assert_eq!(control.state().await.unwrap().problem.as_deref(), Some("The mail server isn't answering."));
    *world.account.failure.lock().unwrap() = None;
    assert_eq!(sync.round().await, Round::Complete(false));
    assert!(world.entry("m1").await.is_delivered);
}

#[tokio::test]
async fn rounds_can_be_paused() {
    let world = World::with(Vec::new());
    let Syncing { sync, control, .. } = syncing(&world, "p1", Arc::default());
    control.pause(&"ana".into(), world.now()).await.unwrap();
    world.account.inbox.lock().unwrap().push(fresh(&world, "m1"));
    assert_eq!(sync.round().await, Round::NotOurs);
    control.resume().await.unwrap();
    assert_eq!(sync.round().await, Round::Complete(false));
    assert!(world.entry("m1").await.is_delivered);
}

#[tokio::test]
async fn one_process_at_a_time_makes_the_rounds() {
    let world = World::with(Vec::new());
    let roots: Arc<FakeRoots> = Arc::default();
    let (first, second) = (syncing(&world, "p1", roots.clone()), syncing(&world, "p2", roots));
    assert_eq!(first.sync.round().await, Round::Complete(false));
    assert_eq!(second.sync.round().await, Round::NotOurs);
    world.store.clock.advance(Duration::from_secs(121));
    assert_eq!(second.sync.round().await, Round::Complete(false), "the other one is gone");
}

#[tokio::test]
async fn a_process_that_stops_leaves_the_rounds_to_another_one() {
    let world = World::with(Vec::new());
    let roots: Arc<FakeRoots> = Arc::default();
    let (first, second) = (syncing(&world, "p1", roots.clone()), syncing(&world, "p2", roots));
    assert_eq!(first.sync.round().await, Round::Complete(false));
    let stop = CancellationToken::new();
    stop.cancel();
    first.sync.run(stop).await;
    assert_eq!(second.sync.round().await, Round::Complete(false), "at once");
}

#[tokio::test]
async fn a_stuck_mail_is_found_again() {
    let world = World::with(Vec::new());
    let Syncing { sync, woken, .. } = syncing(&world, "p1", Arc::default());
    world.account.inbox.lock().unwrap().push(fresh(&world, "m1"));
    sync.round().await;
    let mail = countersign_mail::MailId::new("m1");
    world.book.update(&mail, |entry| entry.move_to(MailStatus::Processing, entry.updated_at)).await.unwrap();
    world.store.clock.advance(Duration::from_secs(601));
    assert_eq!(sync.round().await, Round::Complete(false));
    assert_eq!(woken.lock().unwrap().len(), 2, "woken once more");
    assert_eq!(world.entry("m1").await.stuck, 1);
    assert_eq!(sync.round().await, Round::Complete(false));
    assert_eq!(woken.lock().unwrap().len(), 2, "not at every round");
}

#[tokio::test]
async fn an_answer_in_the_mailbox_reaches_the_thread() {
    let world = World::with(vec![classifies("inquiry", 0.9), drafts("Yes.")]);
    let Syncing { sync, woken, .. } = syncing(&world, "p1", Arc::default());
    world.account.inbox.lock().unwrap().push(fresh(&world, "m1"));
    sync.round().await;
    let thread = woken.lock().unwrap()[0].clone();
    world.work(&thread).await;
    assert_eq!(world.entry("m1").await.status, MailStatus::NeedsReview);
    let answer = AnswerByHand { by: None, at: world.now() };
    world.account.by_hand.lock().unwrap().push(("m1@example.org".to_owned(), answer));
    assert_eq!(sync.round().await, Round::Complete(false));
    assert_eq!(woken.lock().unwrap().len(), 2);
    world.work(&thread).await;
    assert_eq!(world.card(&thread).await.status, Status::Cancelled);
    assert_eq!(world.entry("m1").await.status, MailStatus::Sent);
    assert_eq!(sync.round().await, Round::Complete(false));
    assert_eq!(woken.lock().unwrap().len(), 2, "once");
}

#[tokio::test]
async fn mails_with_new_ids_are_not_brought_in_again() {
    let world = World::with(vec![classifies("inquiry", 0.9), drafts("Yes.")]);
    let Syncing { sync, woken, control, .. } = syncing(&world, "p1", Arc::default());
    let first = fresh(&world, "m1");
    world.account.inbox.lock().unwrap().push(first.clone());
    sync.round().await;
    let thread = woken.lock().unwrap()[0].clone();
    world.work(&thread).await;
    // The server gives a new id to the mail; another copy of it came later.
    world.store.clock.advance(Duration::from_secs(60));
    let same = countersign_mail::RawMail { id: countersign_mail::MailId::new("n1"), ..first };
    let later = countersign_mail::RawMail { id: countersign_mail::MailId::new("n2"), ..fresh(&world, "m1") };
    *world.account.inbox.lock().unwrap() = vec![same, later];
    world.account.is_renumbered.store(true, Ordering::Relaxed);
    assert_eq!(sync.round().await, Round::Complete(false));
    assert_eq!(control.state().await.unwrap().brought, 1, "one Message-ID is one thread");
    assert!(world.book.entry(&countersign_mail::MailId::new("n2")).await.unwrap().is_none());
    assert!(world.book.entry(&countersign_mail::MailId::new("n1")).await.unwrap().is_none());
    world.decide(&thread, Verdict::Approved).await;
    assert_eq!(world.sent(), ["Yes."]);
    assert_eq!(world.book.current_id(&countersign_mail::MailId::new("m1")).await.unwrap().as_str(), "n1");
}

#[tokio::test]
async fn a_stuck_mail_is_found_behind_any_number_of_newer_ones() {
    let world = World::with(Vec::new());
    let Syncing { sync, .. } = syncing(&world, "p1", Arc::default());
    world.account.inbox.lock().unwrap().push(fresh(&world, "m1"));
    sync.round().await;
    let mail = countersign_mail::MailId::new("m1");
    world.book.update(&mail, |entry| entry.move_to(MailStatus::Processing, entry.updated_at)).await.unwrap();
    for nth in 0..450 {
        let newer = countersign_mail::Mail { id: countersign_mail::MailId::new(format!("n{nth}")), ..mail_of_book() };
        world.book.add(crate::register::Entry::new(&newer, world.now())).await.unwrap();
    }
    world.store.clock.advance(Duration::from_secs(601));
    let mut rounds = 0;
    while world.entry("m1").await.stuck == 0 {
        assert!(rounds < 4, "each page of older mails has its turn");
        assert_eq!(sync.round().await, Round::Complete(false));
        rounds += 1;
    }
}

fn mail_of_book() -> countersign_mail::Mail {
    countersign_mail::Mail::read(&raw("n", "Prices", "How much is it?"))
}
