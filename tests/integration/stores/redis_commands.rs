//! How much a store on Redis asks of the server, and how it learns of work without asking.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use countersign::{
    clock::{Clock as _, SystemClock},
    graph::store::{ActionKey, Changes, Handling, Holder, Store, Then, TimerChange},
    store::redis::RedisStore,
};
use serde_json::json;

use super::{
    fixture::*,
    redis::{Redis, open, pass},
};
use crate::support::redis::{CHECKED, RedisServer};

/// The interval between two sweeps.
const SWEEP: Duration = Duration::from_millis(250);
/// The interval at which an idle store looks at all partitions.
const LOOK: Duration = Duration::from_secs(2);
/// The number of partitions.
const ALL: u64 = 64;

/// The commands of a call: how often each was carried out.
async fn calls_of<T>(server: &RedisServer, call: impl Future<Output = T>) -> (T, BTreeMap<String, u64>) {
    let before = server.calls().await;
    let result = call.await;
    let mut calls = server.calls().await;
    calls.iter_mut().for_each(|(name, count)| *count -= before.get(name).copied().unwrap_or(0));
    calls.retain(|_, count| *count > 0);
    (result, calls)
}

async fn is_anything_due(store: &dyn Store) -> bool {
    store.is_anything_due(SystemClock.now()).await.unwrap()
}

/// Asks until a store hears hints and has looked at what they were about.
async fn is_idle(store: &dyn Store, server: &RedisServer) {
    let began = Instant::now();
    loop {
        let (due, calls) = calls_of(server, is_anything_due(store)).await;
        if !due && calls.is_empty() {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "it is never idle: {calls:?}");
    }
}

/// Asks until something is due, and returns what that cost.
async fn becomes_due(store: &dyn Store, server: &RedisServer) -> BTreeMap<String, u64> {
    let due = async {
        let began = Instant::now();
        while !is_anything_due(store).await {
            assert!(began.elapsed() < Duration::from_secs(30), "nothing becomes due");
            tokio::task::yield_now().await;
        }
    };
    calls_of(server, due).await.1
}

#[tokio::test]
async fn an_idle_store_asks_for_little() {
    let f = Redis::fresh().await;
    let later = f.now() + Duration::from_secs(3600);
    let timer = TimerChange::Set { key: "expiry".to_owned(), due: later, entry: json!({}) };
    f.store().apply(&Changes { timers: vec![timer], ..changes(&thread(1)) }).await.unwrap();
    is_idle(&**f.store(), &f.server).await;
    let ten_seconds = async {
        for _ in 0..40 {
            pass(SWEEP).await;
            assert!(!is_anything_due(&**f.store()).await);
        }
    };
    let calls = calls_of(&f.server, ten_seconds).await.1;
    let total: u64 = calls.values().sum();
    assert!(total <= 6 * (2 * ALL + 1), "{calls:?}");
    assert!(calls["exists"] >= 4 * ALL, "but it looks for itself: {calls:?}");
}

#[tokio::test]
async fn work_from_another_process_is_heard_of() {
    let f = Redis::fresh().await;
    let another = open(&f.server.url()).await;
    is_idle(&*another, &f.server).await;
    f.hears(&thread(1), "hello").await;
    let calls = becomes_due(&*another, &f.server).await;
    assert_eq!(calls.get("exists"), Some(&1), "one partition was looked at: {calls:?}");

    let acquired = another.acquire(&Holder::new("w2", f.ttl(), f.now()), None).await.unwrap().unwrap();
    let acks = acquired.messages.iter().map(|message| message.seq).collect();
    let done = Changes { acks, outbox: vec![reply("", "hello")], ..changes(&thread(1)) };
    another.commit(&acquired.lease, 0, &done, Then::Release, None).await.unwrap();
    becomes_due(&**f.store(), &f.server).await;
    assert!(f.claim_one().await.is_some(), "the message to send");
    is_idle(&*another, &f.server).await;
}

#[tokio::test]
async fn what_is_set_for_later_is_due_then() {
    let f = Redis::fresh().await;
    is_idle(&**f.store(), &f.server).await;
    let later = f.now() + Duration::from_secs(60);
    let timer = TimerChange::Set { key: "expiry".to_owned(), due: later, entry: json!({}) };
    f.store().apply(&Changes { timers: vec![timer], ..changes(&thread(1)) }).await.unwrap();
    is_idle(&**f.store(), &f.server).await;
    let acquired = f.awake(&thread(2)).await;
    f.commit(&acquired.lease, 0, &changes(&thread(2)), Then::ReleaseUntil(later)).await;
    is_idle(&**f.store(), &f.server).await;
    assert!(f.store().is_anything_due(later).await.unwrap());
    assert_eq!(f.store().fire_timers(later).await.unwrap(), 1);
    assert!(f.store().acquire(&Holder::new("w1", f.ttl(), later), None).await.unwrap().is_some());
}

#[tokio::test]
async fn a_lost_hint_costs_no_more_than_a_look() {
    let f = Redis::fresh().await;
    is_idle(&**f.store(), &f.server).await;
    let ready = format!("countersign:{{p{:02}}}:ready", thread(1).partition().number());
    let mut add = redis::cmd("ZADD");
    add.arg(ready).arg(1).arg(thread(1).to_string());
    add.query_async::<()>(&mut f.server.connection().await).await.unwrap();
    pass(LOOK).await;
    assert!(is_anything_due(&**f.store()).await);
}

#[tokio::test]
async fn a_store_that_cannot_hear_looks_each_time() {
    let f = Redis::fresh().await;
    is_idle(&**f.store(), &f.server).await;
    let mut kill = redis::cmd("CLIENT");
    kill.arg("KILL").arg("TYPE").arg("pubsub");
    let killed: u64 = kill.query_async(&mut f.server.connection().await).await.unwrap();
    assert_eq!(killed, 1);
    f.hears(&thread(1), "hello").await;
    becomes_due(&**f.store(), &f.server).await;
    f.acquire("w1").await.unwrap();
    is_idle(&**f.store(), &f.server).await; // it has subscribed again
}

#[tokio::test]
async fn a_server_that_forbids_to_publish_loses_nothing() {
    let server = RedisServer::start().await;
    let mut let_in = redis::cmd("ACL");
    let_in.arg(&["SETUSER", "ana", "on", ">sesame", "~*", "resetchannels", "+@all"]);
    let_in.query_async::<()>(&mut server.connection().await).await.unwrap();
    let url = format!("redis://ana:sesame@127.0.0.1:{}", server.port());
    let store = RedisStore::open(&url, &CHECKED).await.unwrap();
    assert!(!is_anything_due(&store).await);
    store.ingest(&delivery(&thread(1), "hello", true, &["k"], SystemClock.now()), Handling::Later).await.unwrap();
    assert!(is_anything_due(&store).await);
    let acquired = store.acquire(&Holder::new("w1", LOOK, SystemClock.now()), None).await.unwrap().unwrap();
    assert_eq!(words(&acquired.messages), ["hello"]);
}

#[tokio::test]
async fn what_a_process_knows_is_not_asked_for_again() {
    let f = Redis::fresh().await;
    let another = open(&f.server.url()).await;
    let record = action(&thread(1), "a1", f.now());
    let asked = Changes { actions: vec![created(&record)], audit: vec![event("asked")], ..changes(&thread(1)) };
    f.store().apply(&asked).await.unwrap();
    let look_up = async |store: &dyn Store| {
        let (found, calls) = calls_of(&f.server, store.action(ActionKey::ByApproval(&record.approval))).await;
        assert_eq!(found.unwrap().as_ref(), Some(&record));
        calls["hget"]
    };
    assert_eq!(look_up(&**f.store()).await, 1);
    assert_eq!((look_up(&*another).await, look_up(&*another).await), (2, 1));

    f.awake(&thread(2)).await; // now the server knows the scripts
    f.hears(&thread(1), "hello").await;
    let goes_on = async {
        let acquired = another.acquire(&Holder::new("w2", f.ttl(), f.now()), None).await.unwrap().unwrap();
        let decided = Changes { audit: vec![event("decided")], ..changes(&thread(1)) };
        another.commit(&acquired.lease, 0, &decided, Then::Release, None).await.unwrap();
    };
    let calls = calls_of(&f.server, goes_on).await.1;
    assert_eq!(calls.get("evalsha"), Some(&2), "the chain goes on from its end at once: {calls:?}");
}
