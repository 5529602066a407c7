//! What is handled one by one, whether or not its thread is busy.

use std::time::Duration;

use countersign::{
    clock::Timestamp,
    graph::{
        action::Status,
        store::{
            ActionKey, Changes, ClaimedInteraction, Delivery, Destination, Error, Handling, Ingested, Settlement,
            TimerChange,
        },
    },
    ids::{Partition, WorkerId},
};
use serde_json::{Value, json};

use super::fixture::*;

async fn put(f: &impl Fixture, n: u32, entry: &str, claim: Option<(WorkerId, Duration)>) -> Ingested {
    let delivery = Delivery {
        to: Destination::Inbox { partition: thread(n).partition(), entry: json!({ "click": entry }), claim },
        dedup: vec![format!("click:{entry}").as_str().into()],
        at: f.now(),
    };
    f.store().ingest(&delivery, Handling::Later).await.unwrap().0
}

async fn claim(f: &impl Fixture, limit: usize) -> Vec<ClaimedInteraction> {
    f.store().claim_interaction(f.ttl(), limit).await.unwrap()
}

fn entries(claimed: &[ClaimedInteraction]) -> Vec<Value> {
    claimed.iter().map(|entry| entry.entry.clone()).collect()
}

fn set(key: &str, due: Timestamp, entry: &str) -> TimerChange {
    TimerChange::Set { key: key.to_owned(), due, entry: json!(entry) }
}

async fn timers(f: &impl Fixture, n: u32, timers: Vec<TimerChange>) {
    f.store().apply(&Changes { timers, ..changes(&thread(n)) }).await.unwrap();
}

pub(crate) async fn entries_are_claimed_oldest_first(f: impl Fixture) {
    for entry in ["one", "two", "three"] {
        assert!(matches!(put(&f, 1, entry, None).await, Ingested::New(_)));
    }
    let claimed = claim(&f, 2).await;
    assert_eq!(entries(&claimed), [json!({ "click": "one" }), json!({ "click": "two" })]);
    assert!(claimed.iter().all(|entry| entry.partition == thread(1).partition()));
    assert!(claimed[0].seq < claimed[1].seq);
    assert_eq!(entries(&claim(&f, 2).await), [json!({ "click": "three" })]);
}

pub(crate) async fn a_claimed_entry_is_given_once(f: impl Fixture) {
    for n in 0..10 {
        put(&f, n, &format!("{n}"), None).await;
    }
    let claimed = claim(&f, 100).await;
    assert_eq!(claimed.len(), 10, "of every partition");
    assert_eq!(claim(&f, 100).await, []);
    for entry in &claimed {
        f.store().settle_interaction(entry, Settlement::Done).await.unwrap();
    }
    f.run_out().await;
    assert_eq!(claim(&f, 100).await, [], "finished is finished");
}

pub(crate) async fn an_entry_can_arrive_claimed(f: impl Fixture) {
    let Ingested::New(seq) = put(&f, 1, "mine", Some(("w1".into(), f.ttl()))).await else { panic!("it is new") };
    assert_eq!(claim(&f, 10).await, []);
    f.run_out().await;
    let again = claim(&f, 10).await;
    assert_eq!(entries(&again), [json!({ "click": "mine" })]);
    assert_eq!(again[0].seq, seq);
    f.store().settle_interaction(&again[0], Settlement::Done).await.unwrap();
    f.run_out().await;
    assert_eq!(claim(&f, 10).await, []);
}

pub(crate) async fn a_claim_that_ran_out_is_given_again(f: impl Fixture) {
    put(&f, 1, "one", None).await;
    put(&f, 1, "two", None).await;
    let first = claim(&f, 1).await;
    f.run_out().await;
    let again = ClaimedInteraction { attempts: 1, ..first[0].clone() };
    assert_eq!(claim(&f, 1).await, [again], "the oldest first, also the second time");
}

pub(crate) async fn a_repeated_entry_is_dropped(f: impl Fixture) {
    put(&f, 1, "one", None).await;
    assert_eq!(put(&f, 1, "one", None).await, Ingested::Duplicate);
    assert_eq!(claim(&f, 10).await.len(), 1);
}

pub(crate) async fn an_entry_is_dealt_with_by_a_change(f: impl Fixture) {
    put(&f, 1, "one", None).await;
    put(&f, 1, "two", None).await;
    let claimed = claim(&f, 10).await;
    let changes = Changes { inbox_acks: vec![claimed[0].seq], ..changes(&thread(1)) };
    f.store().apply(&changes).await.unwrap();
    f.run_out().await;
    assert_eq!(entries(&claim(&f, 10).await), [json!({ "click": "two" })]);
}

pub(crate) async fn an_entry_is_dealt_with_as_it_arrives(f: impl Fixture) {
    let record = action(&thread(1), "a1", f.now());
    f.store().apply(&Changes { actions: vec![created(&record)], ..changes(&thread(1)) }).await.unwrap();
    let press = |key: &str| Delivery {
        to: Destination::Inbox { partition: thread(1).partition(), entry: json!({ "click": key }), claim: None },
        dedup: vec![format!("click:{key}").as_str().into()],
        at: f.now(),
    };
    let decides = |to| Changes {
        actions: vec![moved(&record, to)],
        audit: vec![event("decided")],
        messages: vec![said("it is decided")],
        ..changes(&thread(1))
    };
    let (holder, approves) = (f.holder("w1"), decides(Status::Approved));
    let (ingested, acquired) =
        f.store().ingest(&press("one"), Handling::Apply(&approves, Some(&holder))).await.unwrap();
    let acquired = acquired.unwrap();
    assert_eq!(ingested, Ingested::Handled);
    assert_eq!((acquired.lease.worker.as_str(), words(&acquired.messages)), ("w1", vec!["it is decided".to_owned()]));
    assert_eq!(
        f.store().action(ActionKey::Of(&thread(1), &"a1".into())).await.unwrap().unwrap().status,
        Status::Approved
    );
    assert_eq!((f.store().backlog().await.unwrap().inbox, claim(&f, 10).await), (0, Vec::new()));

    let again =
        f.store().ingest(&press("one"), Handling::Apply(&decides(Status::Rejected), Some(&holder))).await.unwrap();
    assert_eq!(again, (Ingested::Duplicate, None));
    let late = f.store().ingest(&press("two"), Handling::Apply(&decides(Status::Rejected), None)).await;
    assert!(matches!(late, Err(Error::ActionMoved { .. })), "{late:?}");
    assert_eq!(f.store().audit(&thread(1)).await.unwrap().entries.len(), 1, "nothing else was written");
    assert!(
        matches!(f.store().ingest(&press("two"), Handling::Later).await, Ok((Ingested::New(_), None))),
        "it is stored then"
    );
    assert_eq!(put(&f, 1, "one", None).await, Ingested::Duplicate);
}

pub(crate) async fn a_due_timer_is_put_in_the_inbox_once(f: impl Fixture) {
    let now = f.now();
    let (soon, later) = (now + Duration::from_secs(60), now + Duration::from_secs(120));
    timers(&f, 1, vec![set("expire:a1", later, "expire a1"), set("remind:a1", soon, "remind a1")]).await;
    assert_eq!(f.store().fire_timers(now).await.unwrap(), 0);
    assert_eq!(claim(&f, 10).await, []);
    assert_eq!(f.store().fire_timers(soon).await.unwrap(), 1);
    assert_eq!(f.store().fire_timers(soon).await.unwrap(), 0, "once");
    let fired = claim(&f, 10).await;
    assert_eq!(entries(&fired), [json!("remind a1")]);
    assert_eq!(fired[0].partition, thread(1).partition());
    assert_eq!(f.store().fire_timers(later).await.unwrap(), 1);
    assert_eq!(entries(&claim(&f, 10).await), [json!("expire a1")]);
}

pub(crate) async fn a_timer_can_be_moved_and_cleared(f: impl Fixture) {
    let now = f.now();
    let (soon, later) = (now + Duration::from_secs(60), now + Duration::from_secs(120));
    timers(&f, 1, vec![set("a", soon, "a"), set("b", soon, "b"), set("c", later, "c")]).await;
    timers(&f, 1, vec![set("a", later, "a moved"), TimerChange::Clear { key: "b".to_owned() }]).await;
    timers(&f, 1, vec![TimerChange::Clear { key: "unheard of".to_owned() }, set("c", soon, "c moved")]).await;
    assert_eq!(f.store().fire_timers(soon).await.unwrap(), 1);
    assert_eq!(entries(&claim(&f, 10).await), [json!("c moved")]);
    assert_eq!(f.store().fire_timers(later).await.unwrap(), 1);
    assert_eq!(entries(&claim(&f, 10).await), [json!("a moved")]);
}

pub(crate) async fn timers_of_two_threads_share_a_key(f: impl Fixture) {
    let now = f.now();
    timers(&f, 1, vec![set("expire", now, "one")]).await;
    timers(&f, 2, vec![set("expire", now, "two")]).await;
    timers(&f, 1, vec![TimerChange::Clear { key: "expire".to_owned() }]).await;
    assert_eq!(f.store().fire_timers(now).await.unwrap(), 1);
    let fired = claim(&f, 10).await;
    assert_eq!(
        fired,
        [ClaimedInteraction { partition: thread(2).partition(), seq: fired[0].seq, attempts: 0, entry: json!("two") }]
    );
    assert!(Partition::all().any(|partition| partition == fired[0].partition));
}
