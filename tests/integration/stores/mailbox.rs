//! What arrives: once, in order, and only for us.

use std::time::Duration;

use countersign::{
    graph::{
        action::{Decision, Verdict},
        store::{Changes, Error, External, Handling, Ingested, Then, ThreadFilter, ThreadMessage},
    },
    ids::DedupKey,
};
use serde_json::json;

use super::fixture::*;

pub(crate) async fn a_message_wakes_its_thread(f: impl Fixture) {
    assert!(f.acquire("w1").await.is_none(), "nothing is ready in an empty store");
    let Ingested::New(seq) = f.hears(&thread(1), "hello").await else { panic!("it is new") };
    let acquired = f.acquire("w1").await.expect("the thread is ready");
    assert_eq!(acquired.lease.thread, thread(1));
    assert_eq!(acquired.lease.worker, "w1".into());
    assert_eq!(acquired.saved.version, 0);
    assert_eq!(acquired.messages.len(), 1);
    assert_eq!(acquired.messages[0].seq, seq);
    assert_eq!(acquired.messages[0].message, said("hello"));
}

pub(crate) async fn a_repeat_is_recognised_by_any_of_its_keys(f: impl Fixture) {
    let keys = |keys: &[&str]| delivery(&thread(1), "hello", true, keys, f.now());
    let first = f.store().ingest(&keys(&["event:1", "message:1"]), Handling::Later).await.unwrap().0;
    assert!(matches!(first, Ingested::New(_)));
    for repeat in [&["event:1", "message:1"][..], &["event:1"], &["event:2", "message:1"], &["event:1", "message:3"]] {
        assert_eq!(
            f.store().ingest(&keys(repeat), Handling::Later).await.unwrap().0,
            Ingested::Duplicate,
            "{repeat:?}"
        );
    }
    assert!(matches!(
        f.store().ingest(&keys(&["event:9", "message:9"]), Handling::Later).await.unwrap().0,
        Ingested::New(_)
    ));
    assert_eq!(f.acquire("w1").await.unwrap().messages.len(), 2);
}

pub(crate) async fn keys_are_remembered_for_a_day(f: impl Fixture) {
    f.hears(&thread(1), "hello").await;
    f.store().sweep(f.now() + Duration::from_secs(23 * 3600)).await.unwrap();
    assert_eq!(f.hears(&thread(1), "hello").await, Ingested::Duplicate);
}

pub(crate) async fn messages_come_in_order_of_arrival(f: impl Fixture) {
    for n in 0..12 {
        f.hears(&thread(1), &format!("{n}")).await;
    }
    let messages = f.acquire("w1").await.unwrap().messages;
    assert_eq!(words(&messages), (0..12).map(|n| n.to_string()).collect::<Vec<_>>());
    assert!(messages.is_sorted_by(|a, b| a.seq < b.seq));
}

pub(crate) async fn messages_can_be_looked_at_without_a_lease(f: impl Fixture) {
    assert_eq!(f.store().messages(&thread(1), 0, None).await.unwrap(), []);
    f.hears(&thread(1), "one").await;
    f.hears(&thread(2), "elsewhere").await;
    f.hears(&thread(1), "two").await;
    let unread = f.store().messages(&thread(1), 0, None).await.unwrap();
    assert_eq!(words(&unread), ["one", "two"]);
    assert_eq!(f.acquire_only("w1", &thread(1)).await.unwrap().messages, unread, "nothing was taken away");
}

pub(crate) async fn messages_that_came_meanwhile_can_be_asked_for(f: impl Fixture) {
    let acquired = f.awake(&thread(1)).await;
    let seen = acquired.messages[0].seq;
    assert_eq!(f.store().messages(&acquired.lease.thread, seen, Some(&acquired.lease)).await.unwrap(), []);
    f.hears(&thread(1), "and another thing").await;
    assert_eq!(
        words(&f.store().messages(&acquired.lease.thread, seen, Some(&acquired.lease)).await.unwrap()),
        ["and another thing"]
    );
    assert_eq!(
        words(&f.store().messages(&acquired.lease.thread, 0, Some(&acquired.lease)).await.unwrap()),
        ["wake up", "and another thing"]
    );

    f.run_out().await;
    f.acquire_only("w2", &thread(1)).await.expect("the lease ran out");
    let refused = f.store().messages(&acquired.lease.thread, 0, Some(&acquired.lease)).await;
    assert!(matches!(refused, Err(Error::Fenced(id)) if id == thread(1)));
}

pub(crate) async fn what_is_overheard_wakes_nobody(f: impl Fixture) {
    assert!(matches!(f.overhears(&thread(1), "lunch?").await, Ingested::Parked(_)));
    assert_eq!(f.overhears(&thread(1), "lunch?").await, Ingested::Duplicate);
    assert!(f.acquire("w1").await.is_none());
    assert!(f.acquire_only("w1", &thread(1)).await.is_none());
    assert_eq!(f.store().load(&thread(1)).await.unwrap(), None);
    assert_eq!(f.store().threads(ThreadFilter::All, 10).await.unwrap(), []);
}

pub(crate) async fn being_addressed_shows_what_was_overheard(f: impl Fixture) {
    f.overhears(&thread(1), "the weights look wrong").await;
    f.overhears(&thread(2), "lunch?").await;
    f.hears(&thread(1), "@bot what do you think?").await;
    let acquired = f.acquire("w1").await.unwrap();
    assert_eq!(words(&acquired.messages), ["the weights look wrong", "@bot what do you think?"]);
    assert!(f.acquire("w1").await.is_none(), "nobody asked the bot in the other thread");
}

pub(crate) async fn what_was_overheard_is_forgotten_after_two_minutes(f: impl Fixture) {
    f.overhears(&thread(1), "lunch?").await;
    f.store().sweep(f.now() + Duration::from_secs(60)).await.unwrap();
    f.overhears(&thread(2), "dinner?").await;
    f.hears(&thread(1), "hello").await;
    assert_eq!(words(&f.acquire_only("w1", &thread(1)).await.unwrap().messages), ["lunch?", "hello"]);

    f.store().sweep(f.now() + Duration::from_secs(180)).await.unwrap();
    f.hears(&thread(2), "hello").await;
    assert_eq!(words(&f.acquire_only("w1", &thread(2)).await.unwrap().messages), ["hello"]);
}

pub(crate) async fn a_thread_of_ours_is_woken_by_anybody(f: impl Fixture) {
    let acquired = f.awake(&thread(1)).await;
    let changes = Changes { acks: vec![acquired.messages[0].seq], ..changes(&thread(1)) };
    f.commit(&acquired.lease, 0, &changes, Then::Release).await;
    assert!(matches!(f.overhears(&thread(1), "I agree").await, Ingested::New(_)));
    f.store().sweep(f.now() + Duration::from_secs(180)).await.unwrap();
    assert_eq!(words(&f.acquire("w1").await.unwrap().messages), ["I agree"]);
}

pub(crate) async fn every_kind_of_mail_comes_back_as_it_was(f: impl Fixture) {
    let decision = Decision {
        by: Some("bo".into()),
        at: f.now(),
        verdict: Verdict::Rejected { reason: Some("“too early” \u{0} 🦀".to_owned()) },
    };
    let message = vec![
        said("naïve ‘quotes’ \n and\u{0}nulls"),
        ThreadMessage::Decided { action: "a1".into(), approval: approval(&thread(1), "a1"), decision },
        ThreadMessage::Stop { by: "bo".into(), asks: false },
        ThreadMessage::Stop { by: "bo".into(), asks: true },
        ThreadMessage::External(External::new("post", "a \"key\"", json!({ "body": [1, null, "é"] })).unwrap()),
        ThreadMessage::Overdue { action: "a1".into(), until: f.now() },
    ];
    f.store().apply(&Changes { messages: message.clone(), ..changes(&thread(1)) }).await.unwrap();
    let messages = f.acquire("w1").await.unwrap().messages;
    assert_eq!(messages.into_iter().map(|message| message.message).collect::<Vec<_>>(), message);

    let odd: Vec<DedupKey> = vec!["message:C1:1.0'; --".into()];
    let mut odd_delivery = delivery(&thread(2), "x", true, &[""; 0], f.now());
    odd_delivery.dedup = odd;
    assert!(matches!(f.store().ingest(&odd_delivery, Handling::Later).await.unwrap().0, Ingested::New(_)));
    assert_eq!(f.store().ingest(&odd_delivery, Handling::Later).await.unwrap().0, Ingested::Duplicate);
}
