//! What was answered is still there after the process died.

use std::time::Duration;

use countersign::graph::{
    action::Status,
    store::{
        ActionKey, Changes, Delivery, Destination, Handling, Holder, Ingested, Keep, Posted, Saved, Sent, Then,
        TimerChange,
    },
};
use serde_json::json;

use super::fixture::*;

pub(crate) async fn everything_outlives_the_process(f: impl Fixture) {
    let now = f.now();
    let t = thread(1);
    f.overhears(&thread(2), "lunch?").await;
    let acquired = f.awake(&t).await;
    let record = action(&t, "a1", now);
    let commit = Changes {
        steps: vec![step("one")],
        acks: vec![acquired.messages[0].seq],
        outbox: vec![reply("turn:1", "posted"), reply("", "waiting")],
        timers: vec![TimerChange::Set { key: "expire".into(), due: now, entry: json!("expire") }],
        actions: vec![created(&record)],
        audit: vec![event("asked")],
        ..changes(&t)
    };
    let version = f.commit(&acquired.lease, 0, &commit, Then::Release).await;
    let sent = f.claim_one().await.unwrap();
    let posted = Posted::at("C1".into(), "1.1".into());
    f.finish(&sent, &Sent::Delivered(Some(posted.clone()))).await;
    let decided =
        Changes { actions: vec![moved(&record, Status::Approved)], messages: vec![said("go")], ..changes(&t) };
    f.store().apply(&decided).await.unwrap();
    let hash = f.store().put_blob(b"large", Keep::Permanently).await.unwrap();
    let file = f.store().put_blob(b"chart", Keep::WithThread(&thread(1))).await.unwrap();

    let f = f.reopen().await;
    assert_eq!(f.hears(&t, "wake up").await, Ingested::Duplicate, "keys");
    let expected = Saved { version: 1, snapshot: None, deltas: vec![delta("one")] };
    assert_eq!(f.store().load(&t).await.unwrap(), Some(expected), "steps");
    assert_eq!(
        f.store().action(ActionKey::ByApproval(&record.approval)).await.unwrap().unwrap().status,
        Status::Approved
    );
    assert_eq!(f.store().audit(&t).await.unwrap().entries.len(), 1, "the record");
    assert_eq!(f.store().posted(&t, &"turn:1".into()).await.unwrap(), Some(posted), "slots");
    assert_eq!(f.store().get_blob(&hash).await.unwrap(), Some(b"large".to_vec()), "blobs");
    assert_eq!(f.store().get_blob(&file).await.unwrap(), Some(b"chart".to_vec()), "files");
    assert_eq!(spoken(&f.claim_one().await.unwrap()), "waiting", "the outbox");
    assert_eq!(f.store().fire_timers(f.now()).await.unwrap(), 1, "timers");
    f.store().apply(&decided).await.unwrap();
    let again = f.acquire_only("w2", &t).await.expect("it has message");
    assert_eq!(words(&again.messages), ["go"], "the mailbox, and the repeated write was recognised");
    assert!(again.lease.fence > acquired.lease.fence, "fences go on");
    assert_eq!(f.commit(&again.lease, 0, &commit, Then::Keep).await, version, "commits");
    f.hears(&thread(2), "hello").await;
    assert_eq!(words(&f.acquire("w2").await.unwrap().messages), ["lunch?", "hello"], "what was overheard");
}

pub(crate) async fn claims_and_leases_outlive_the_process(f: impl Fixture) {
    let t = thread(1);
    let acquired = f.awake(&t).await;
    f.store().renew(&acquired.lease, Duration::from_secs(3600)).await.unwrap();
    f.says(&thread(2), [reply("", "one")]).await;
    f.store().claim_outbox(&Holder::new(sender(), Duration::from_secs(3600), f.now()), 10, None).await.unwrap();
    let click = Delivery {
        to: Destination::Inbox {
            partition: t.partition(),
            entry: json!("click"),
            claim: Some(("w1".into(), Duration::from_secs(3600))),
        },
        dedup: vec![],
        at: f.now(),
    };
    f.store().ingest(&click, Handling::Later).await.unwrap();

    let f = f.reopen().await;
    assert!(f.acquire("w2").await.is_none());
    assert_eq!(f.claim(10).await, []);
    assert_eq!(f.store().claim_interaction(f.ttl(), 10).await.unwrap(), []);
    f.store().renew(&acquired.lease, f.ttl()).await.unwrap();
}
