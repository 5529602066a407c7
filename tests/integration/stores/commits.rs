//! A step is saved whole, once, and on top of what it was made from.

use std::sync::Arc;

use countersign::graph::{
    action::Status,
    store::{ActionKey, Changes, Error, Holder, Saved, Sent, Store, Then},
};
use serde_json::json;

use super::fixture::*;

pub(crate) async fn a_step_counts_the_version_up(f: impl Fixture) {
    let lease = f.awake(&thread(1)).await.lease;
    assert_eq!(f.store().load(&thread(1)).await.unwrap(), Some(Saved::default()), "ours, and nothing saved");
    for (version, what) in ["one", "two", "three"].into_iter().enumerate() {
        let version = version as u64;
        let changes = Changes { steps: vec![step(what)], ..changes(&thread(1)) };
        assert_eq!(f.commit(&lease, version, &changes, Then::Keep).await, version + 1);
    }
    let expected = Saved { version: 3, snapshot: None, deltas: vec![delta("one"), delta("two"), delta("three")] };
    assert_eq!(f.store().load(&thread(1)).await.unwrap(), Some(expected.clone()));
    f.run_out().await;
    assert_eq!(f.acquire("w2").await.unwrap().saved, expected);
}

pub(crate) async fn a_write_without_a_step_leaves_the_version(f: impl Fixture) {
    let lease = f.awake(&thread(1)).await.lease;
    let with = Changes { steps: vec![step("one")], ..changes(&thread(1)) };
    assert_eq!(f.commit(&lease, 0, &with, Then::Keep).await, 1);
    let without = Changes { audit: vec![event("asked")], ..changes(&thread(1)) };
    assert_eq!(f.commit(&lease, 1, &without, Then::Keep).await, 1);
    assert_eq!(f.store().audit(&thread(1)).await.unwrap().entries.len(), 1);
}

pub(crate) async fn a_snapshot_takes_the_place_of_the_differences(f: impl Fixture) {
    let lease = f.awake(&thread(1)).await.lease;
    let store = f.store();
    let whole = json!({ "state": { "log": ["one", "two"] }, "cursor": "idle" });
    let one = Changes { steps: vec![step("one")], ..changes(&thread(1)) };
    let two = Changes { steps: vec![step("two")], snapshot: Some(whole.clone().into()), ..changes(&thread(1)) };
    let three = Changes { steps: vec![step("three")], ..changes(&thread(1)) };
    for (version, changes) in [one, two, three].iter().enumerate() {
        store.commit(&lease, version as u64, changes, Then::Keep, None).await.unwrap();
    }
    let expected = Saved { version: 3, snapshot: Some(whole.into()), deltas: vec![delta("three")] };
    assert_eq!(store.load(&thread(1)).await.unwrap(), Some(expected));
    assert_eq!(store.steps(&thread(1), 0, 10).await.unwrap().len(), 3, "the trace is whole");

    let whole = json!({ "state": { "log": [] } });
    let four = Changes { steps: vec![step("four")], snapshot: Some(whole.clone().into()), ..changes(&thread(1)) };
    store.commit(&lease, 3, &four, Then::Release, None).await.unwrap();
    let expected = Saved { version: 4, snapshot: Some(whole.into()), deltas: vec![] };
    assert_eq!(store.load(&thread(1)).await.unwrap(), Some(expected));
}

pub(crate) async fn a_wrong_version_writes_nothing(f: impl Fixture) {
    let acquired = f.awake(&thread(1)).await;
    let first = Changes { steps: vec![step("one")], ..changes(&thread(1)) };
    f.commit(&acquired.lease, 0, &first, Then::Keep).await;
    let wrong = Changes {
        steps: vec![step("other")],
        acks: vec![acquired.messages[0].seq],
        messages: vec![said("to myself")],
        outbox: vec![reply("", "done")],
        actions: vec![created(&action(&thread(1), "a1", f.now()))],
        audit: vec![event("other")],
        ..changes(&thread(1))
    };
    for expected in [0, 2] {
        let refused = f.store().commit(&acquired.lease, expected, &wrong, Then::Release, None).await;
        let Err(Error::VersionConflict { thread: id, expected: e, found }) = refused else { panic!("{refused:?}") };
        assert_eq!((id, e, found), (thread(1), expected, 1));
    }
    assert_eq!(f.store().load(&thread(1)).await.unwrap().unwrap().deltas, [delta("one")]);
    assert_eq!(
        f.store().messages(&acquired.lease.thread, 0, Some(&acquired.lease)).await.unwrap(),
        acquired.messages,
        "and the lease is still held"
    );
    assert_eq!(f.claim(10).await, []);
    assert_eq!(f.store().action(ActionKey::Of(&thread(1), &"a1".into())).await.unwrap(), None);
    assert_eq!(f.store().audit(&thread(1)).await.unwrap().entries, []);
    assert_eq!(f.commit(&acquired.lease, 1, &wrong, Then::Release).await, 2, "it was never recorded");
}

pub(crate) async fn a_repeated_commit_changes_nothing(f: impl Fixture) {
    let lease = f.awake(&thread(1)).await.lease;
    let first = Changes {
        steps: vec![step("one")],
        outbox: vec![reply("", "done")],
        audit: vec![event("asked")],
        messages: vec![said("to myself")],
        actions: vec![created(&action(&thread(1), "a1", f.now()))],
        ..changes(&thread(1))
    };
    let second = Changes { steps: vec![step("two")], ..changes(&thread(1)) };
    assert_eq!(f.commit(&lease, 0, &first, Then::Keep).await, 1);
    assert_eq!(f.commit(&lease, 0, &first, Then::Keep).await, 1);
    assert_eq!(f.commit(&lease, 1, &second, Then::Keep).await, 2);
    assert_eq!(f.commit(&lease, 0, &first, Then::Keep).await, 1, "as the first time");

    assert_eq!(f.store().load(&thread(1)).await.unwrap().unwrap().deltas, [delta("one"), delta("two")]);
    assert_eq!(f.store().audit(&thread(1)).await.unwrap().entries.len(), 1);
    assert_eq!(words(&f.store().messages(&lease.thread, 0, Some(&lease)).await.unwrap()), ["wake up", "to myself"]);
    let said = f.claim_one().await.unwrap();
    f.finish(&said, &Sent::Delivered(None)).await;
    assert_eq!(f.claim_one().await, None);
}

pub(crate) async fn a_repeated_commit_is_recognised_after_the_lease_is_lost(f: impl Fixture) {
    let lease = f.awake(&thread(1)).await.lease;
    let last = Changes { steps: vec![step("one")], ..changes(&thread(1)) };
    assert_eq!(f.commit(&lease, 0, &last, Then::Release).await, 1);
    assert_eq!(f.commit(&lease, 0, &last, Then::Release).await, 1, "its answer may have been lost");
    assert_eq!(f.store().load(&thread(1)).await.unwrap().unwrap().version, 1);
}

pub(crate) async fn a_repeated_apply_changes_nothing(f: impl Fixture) {
    let record = action(&thread(1), "a1", f.now());
    let make = Changes { actions: vec![created(&record)], messages: vec![said("made")], ..changes(&thread(1)) };
    let approve = Changes {
        actions: vec![moved(&record, Status::Approved)],
        audit: vec![event("approved")],
        ..changes(&thread(1))
    };
    for changes in [&make, &make, &approve, &approve, &make] {
        f.store().apply(changes).await.unwrap();
    }
    assert_eq!(f.store().audit(&thread(1)).await.unwrap().entries.len(), 1);
    assert_eq!(words(&f.acquire("w1").await.unwrap().messages), ["made"]);
}

pub(crate) async fn mail_in_a_change_wakes_the_thread(f: impl Fixture) {
    f.store().apply(&Changes { messages: vec![said("from the inbox")], ..changes(&thread(1)) }).await.unwrap();
    let acquired = f.acquire("w1").await.expect("it has message");
    assert_eq!(words(&acquired.messages), ["from the inbox"]);

    let acks = vec![acquired.messages[0].seq];
    let to_itself = Changes { acks, messages: vec![said("one more"), said("and one")], ..changes(&thread(1)) };
    f.commit(&acquired.lease, 0, &to_itself, Then::Release).await;
    assert_eq!(words(&f.acquire("w1").await.expect("it has message again").messages), ["one more", "and one"]);
}

pub(crate) async fn acknowledged_messages_are_gone(f: impl Fixture) {
    for text in ["one", "two", "three"] {
        f.hears(&thread(1), text).await;
    }
    let acquired = f.acquire("w1").await.unwrap();
    let acks = vec![acquired.messages[0].seq, acquired.messages[2].seq];
    let changes = Changes { acks, ..changes(&thread(1)) };
    f.commit(&acquired.lease, 0, &changes, Then::Release).await;
    assert_eq!(words(&f.acquire("w1").await.unwrap().messages), ["two"]);
}

pub(crate) async fn threads_do_not_mix(f: impl Fixture) {
    let write = async |store: Arc<dyn Store>, n: u32, ttl, now| {
        let acquired = store.acquire(&Holder::new("w1", ttl, now), Some(&thread(n))).await.unwrap().unwrap();
        let acks = acquired.messages.iter().map(|message| message.seq).collect();
        let changes = Changes {
            steps: vec![step(&format!("of {n}"))],
            acks,
            outbox: vec![reply("turn:1", &format!("for {n}"))],
            audit: vec![event(&format!("in {n}"))],
            ..changes(&thread(n))
        };
        store.commit(&acquired.lease, 0, &changes, Then::Release, None).await.unwrap();
    };
    for n in 0..20 {
        f.hears(&thread(n), &format!("to {n}")).await;
    }
    for n in 0..10 {
        write(Arc::clone(f.store()), n, f.ttl(), f.now()).await;
    }
    for n in 0..20 {
        let written = n < 10;
        let saved = f.store().load(&thread(n)).await.unwrap().unwrap();
        assert_eq!(saved.deltas, if written { vec![delta(&format!("of {n}"))] } else { vec![] });
        assert_eq!(f.store().audit(&thread(n)).await.unwrap().entries.len(), usize::from(written));
        let messages = f.acquire_only("w2", &thread(n)).await.map(|acquired| words(&acquired.messages));
        assert_eq!(messages, (!written).then(|| vec![format!("to {n}")]));
    }
    for claimed in f.claim(100).await {
        let n: u32 = claimed.thread.root.as_str()[5..10].parse().unwrap();
        assert_eq!(spoken(&claimed), format!("for {n}"));
    }
}
