//! One thing that cannot be read hides no other, and is not lost.

use std::time::Duration;

use countersign::graph::store::{
    ActionFilter, ActionKey, Changes, Delivery, Destination, Handling, Holder, Ingested, Seq, Settlement, Then,
};
use serde_json::{Value, json};

use super::fixture::*;

/// A message of a kind that only a newer program knows.
const NEWER_LETTER: &[u8] = br#"{"kind":"sung","by":"ana","melody":"la"}"#;

async fn message(f: &impl Fixture, text: &str) -> Seq {
    match f.hears(&thread(1), text).await {
        Ingested::New(seq) => seq,
        other => panic!("{other:?}"),
    }
}

async fn entry(f: &impl Fixture, n: u32, words: &str) -> Seq {
    let to = Destination::Inbox { partition: thread(n).partition(), entry: json!(words), claim: None };
    let delivery = Delivery { to, dedup: vec![words.into()], at: f.now() };
    match f.store().ingest(&delivery, Handling::Later).await.unwrap().0 {
        Ingested::New(seq) => seq,
        other => panic!("{other:?}"),
    }
}

/// Takes the thread up, deals with all that can be read and lets go. Returns what could be read.
async fn read_all(f: &impl Fixture, worker: &str) -> Option<Vec<String>> {
    let acquired = f.acquire(worker).await?;
    let acks = acquired.messages.iter().map(|message| message.seq).collect();
    let done = Changes { acks, ..changes(&thread(1)) };
    f.commit(&acquired.lease, acquired.saved.version, &done, Then::Release).await;
    Some(words(&acquired.messages))
}

pub(crate) async fn an_unreadable_message_holds_up_no_other(f: impl Fixture) {
    for spoilt in [NONSENSE, NEWER_LETTER, b"not even close", b""] {
        let seq = message(&f, &format!("first, later {spoilt:?}")).await;
        message(&f, &format!("second after {spoilt:?}")).await;
        f.spoil(&Place::Mailbox(thread(1), seq), spoilt).await;
        assert!(f.store().messages(&thread(1), 0, None).await.unwrap().len() == 1, "it can be looked past");
        assert_eq!(read_all(&f, "w1").await, Some(vec![format!("second after {spoilt:?}")]));
        assert_eq!(read_all(&f, "w1").await, None, "it keeps the thread awake");
    }
    assert_eq!(f.store().unreadable(10).await.unwrap().len(), 4, "none is lost");
}

pub(crate) async fn an_unreadable_message_that_came_meanwhile_holds_up_no_other(f: impl Fixture) {
    let acquired = f.awake(&thread(1)).await;
    let seq = message(&f, "first").await;
    message(&f, "second").await;
    f.spoil(&Place::Mailbox(thread(1), seq), NEWER_LETTER).await;
    let came =
        f.store().messages(&acquired.lease.thread, acquired.messages[0].seq, Some(&acquired.lease)).await.unwrap();
    assert_eq!(words(&came), ["second"]);
    let acks = acquired.messages.iter().chain(&came).map(|message| message.seq).collect();
    let done = Changes { acks, ..changes(&thread(1)) };
    f.commit(&acquired.lease, 0, &done, Then::Release).await;
    assert_eq!(read_all(&f, "w1").await, None);
    assert_eq!(f.store().unreadable(10).await.unwrap().len(), 1);
}

pub(crate) async fn a_message_waits_for_a_program_that_can_read_it(f: impl Fixture) {
    let seq = message(&f, "first").await;
    f.spoil(&Place::Mailbox(thread(1), seq), NEWER_LETTER).await;
    assert_eq!(read_all(&f, "old").await, Some(vec![]));
    let f = f.reopen().await;
    f.store().sweep(f.now()).await.unwrap();
    assert_eq!(read_all(&f, "old").await, None, "this one cannot read it either");
    let aside = f.store().unreadable(10).await.unwrap();
    assert_eq!(aside.len(), 1);
    // To a newer program these would be plain words.
    let plain = serde_json::to_vec(&said("la")).unwrap();
    f.spoil(&Place::Aside(thread(1).partition(), aside[0].place.clone()), &plain).await;
    let f = f.reopen().await;
    f.store().sweep(f.now()).await.unwrap();
    assert_eq!(read_all(&f, "new").await, Some(vec!["la".to_owned()]));
    assert_eq!(f.store().unreadable(10).await.unwrap(), []);
    assert_eq!(read_all(&f, "new").await, None, "once");
}

pub(crate) async fn a_thread_with_a_message_set_aside_is_not_finished(f: impl Fixture) {
    let acquired = f.awake(&thread(1)).await;
    let seq = message(&f, "first").await;
    f.spoil(&Place::Mailbox(thread(1), seq), NEWER_LETTER).await;
    f.store().messages(&acquired.lease.thread, acquired.messages[0].seq, Some(&acquired.lease)).await.unwrap();
    let acks = vec![acquired.messages[0].seq];
    let done = Changes { steps: vec![step("one")], acks, ..changes(&thread(1)) };
    f.commit(&acquired.lease, 0, &done, Then::Release).await;
    f.a_moment().await;
    let later = f.now() + Duration::from_secs(3600);
    assert_eq!(f.finished(later, 10).await, []);
}

pub(crate) async fn an_unreadable_interaction_holds_up_no_other(f: impl Fixture) {
    for (n, spoilt) in [NONSENSE, b"{\"half\":", b""].into_iter().enumerate() {
        let first = entry(&f, 1, &format!("first {n}")).await;
        entry(&f, 1, &format!("second {n}")).await;
        f.spoil(&Place::Inbox(thread(1).partition(), first), spoilt).await;
        let claimed = f.store().claim_interaction(f.ttl(), 10).await.unwrap();
        let entries: Vec<&Value> = claimed.iter().map(|claimed| &claimed.entry).collect();
        assert_eq!(entries, [&json!(format!("second {n}"))]);
        f.store().settle_interaction(&claimed[0], Settlement::Done).await.unwrap();
        f.run_out().await;
        assert_eq!(f.store().claim_interaction(f.ttl(), 10).await.unwrap(), []);
    }
    assert_eq!(f.store().unreadable(10).await.unwrap().len(), 3, "none is lost");
    assert_eq!(f.store().backlog().await.unwrap().inbox, 0, "nothing waits for anybody here");
}

pub(crate) async fn an_entry_of_an_unknown_kind_is_kept_for_a_newer_program(f: impl Fixture) {
    entry(&f, 1, "of an unknown kind").await;
    let claimed = f.store().claim_interaction(f.ttl(), 10).await.unwrap();
    f.store().settle_interaction(&claimed[0], Settlement::SetAside("an unknown kind")).await.unwrap();
    f.run_out().await;
    f.store().sweep(f.now()).await.unwrap();
    assert_eq!(f.store().claim_interaction(f.ttl(), 10).await.unwrap(), [], "we know that we cannot");
    assert_eq!(f.store().unreadable(10).await.unwrap().len(), 1);
    let f = f.reopen().await;
    f.store().sweep(f.now()).await.unwrap();
    let again = f.store().claim_interaction(f.ttl(), 10).await.unwrap();
    assert_eq!(again[0].entry, json!("of an unknown kind"), "whoever comes next may");
    assert_eq!(f.store().unreadable(10).await.unwrap(), []);
}

pub(crate) async fn an_unreadable_outgoing_message_holds_up_no_other(f: impl Fixture) {
    for spoilt in [NONSENSE, br#"{"kind":"sung"}"#, b""] {
        f.says(&thread(1), [reply("", "first"), reply("", "second")]).await;
        f.says(&thread(2), [reply("", "elsewhere")]).await;
        let probe =
            f.store().claim_outbox(&Holder::new(sender(), Duration::from_secs(1), f.now()), 1, Some(&thread(1))).await;
        let claimed = probe.unwrap().remove(0);
        let first = claimed.seq;
        f.finish(&claimed, &countersign::graph::store::Sent::Deferred(f.now())).await;
        f.spoil(&Place::Outgoing(thread(1), first), spoilt).await;
        let mut said = Vec::new();
        for _ in 0..3 {
            for claimed in f.claim(10).await {
                said.push(spoken(&claimed));
                f.finish(&claimed, &countersign::graph::store::Sent::Delivered(None)).await;
            }
        }
        said.sort();
        assert_eq!(said, ["elsewhere", "second"]);
        assert_eq!(f.store().backlog().await.unwrap().outbox, 0);
    }
    assert_eq!(f.store().unreadable(10).await.unwrap().len(), 3, "none is lost");
}

pub(crate) async fn an_unreadable_action_hides_no_other(f: impl Fixture) {
    let (one, two) = (action(&thread(1), "one", f.now()), action(&thread(1), "two", f.now()));
    let both = Changes { actions: vec![created(&one), created(&two)], ..changes(&thread(1)) };
    f.store().apply(&both).await.unwrap();
    f.spoil(&Place::Action(thread(1), one.id.clone()), NONSENSE).await;
    let of_thread = ActionFilter::of(&thread(1), &[one.status], 10);
    let all = ActionFilter::all(&[], 10);
    for filter in [of_thread, all] {
        assert_eq!(f.store().actions(&filter).await.unwrap(), std::slice::from_ref(&two), "{filter:?}");
    }
    let under = f.store().actions(&ActionFilter::under(&two.labels(), &[], 10)).await.unwrap();
    assert_eq!(under, std::slice::from_ref(&two));
    assert!(f.store().action(ActionKey::Of(&thread(1), &one.id)).await.is_err(), "asked for by name it is no secret");
    assert_eq!(f.store().unreadable(10).await.unwrap().len(), 1, "it is counted once");
}

pub(crate) async fn an_action_of_a_newer_program_is_not_misread(f: impl Fixture) {
    let record = action(&thread(1), "one", f.now());
    f.store().apply(&Changes { actions: vec![created(&record)], ..changes(&thread(1)) }).await.unwrap();
    let mut newer = serde_json::to_value(&record).unwrap();
    newer["format"] = json!(99);
    f.spoil(&Place::Action(thread(1), record.id.clone()), newer.to_string().as_bytes()).await;
    let refused = f.store().action(ActionKey::Of(&thread(1), &record.id)).await.unwrap_err().to_string();
    assert!(refused.contains("newer"), "{refused}");
    assert_eq!(f.store().actions(&ActionFilter::all(&[], 10)).await.unwrap(), []);
}

pub(crate) async fn an_unreadable_line_of_the_record_hides_no_other(f: impl Fixture) {
    for n in ["one", "two", "three", "four"] {
        f.store().apply(&Changes { audit: vec![event(n)], ..changes(&thread(1)) }).await.unwrap();
    }
    let whole = f.store().audit(&thread(1)).await.unwrap().entries;
    for seq in [2, 4] {
        f.spoil(&Place::Audit(thread(1), seq), NONSENSE).await;
    }
    let record = f.store().audit(&thread(1)).await.unwrap().entries;
    assert_eq!(record.len(), 4, "each has its place");
    assert_eq!((&record[0], &record[2]), (&whole[0], &whole[2]));
    let mut previous = String::new();
    for (entry, was) in record.iter().zip(&whole) {
        assert!(entry.holds(&thread(1), &previous), "the chain holds around it: {entry:?}");
        assert_eq!(entry.hash, was.hash);
        previous.clone_from(&entry.hash);
    }
    f.store().apply(&Changes { audit: vec![event("five")], ..changes(&thread(1)) }).await.unwrap();
    assert_eq!(f.store().audit(&thread(1)).await.unwrap().entries[4].previous, whole[3].hash, "and goes on");
    assert_eq!(f.store().unreadable(10).await.unwrap().len(), 2);
}

pub(crate) async fn an_unreadable_checkpoint_keeps_no_thread_from_being_leased(f: impl Fixture) {
    let acquired = f.awake(&thread(1)).await;
    let saved =
        Changes { snapshot: Some(json!({ "format": 1 }).into()), steps: vec![step("one")], ..changes(&thread(1)) };
    f.commit(&acquired.lease, 0, &saved, Then::Release).await;
    f.spoil(&Place::Snapshot(thread(1)), NONSENSE).await;
    message(&f, "hello").await;
    let again = f.acquire("w2").await.expect("it has message");
    assert_eq!(again.saved.version, 1);
    assert!(again.saved.snapshot.is_some(), "there was one");
    assert!(f.store().load(&thread(1)).await.unwrap().is_some());
    assert_eq!(f.store().unreadable(10).await.unwrap().len(), 1);
}

pub(crate) async fn an_unreadable_step_hides_no_other(f: impl Fixture) {
    let acquired = f.awake(&thread(1)).await;
    for (version, what) in ["one", "two", "three"].into_iter().enumerate() {
        let one = Changes { steps: vec![step(what)], ..changes(&thread(1)) };
        f.commit(&acquired.lease, version as u64, &one, Then::Keep).await;
    }
    f.spoil(&Place::Step(thread(1), 2), NONSENSE).await;
    let steps = f.store().steps(&thread(1), 0, 10).await.unwrap();
    assert_eq!(steps.iter().map(|(version, _)| *version).collect::<Vec<_>>(), [1, 3]);
}
