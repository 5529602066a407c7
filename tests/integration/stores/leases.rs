//! One worker at a time, and no thread left behind.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use countersign::{
    clock::Timestamp,
    graph::store::{Acquired, Changes, Delivery, Destination, Error, Handling, Holder, Ingested, Then, ThreadFilter},
    ids::ThreadId,
};

use super::fixture::*;

/// Acknowledges every message and lets go.
async fn finish(f: &impl Fixture, acquired: &Acquired, then: Then) {
    let acks = acquired.messages.iter().map(|message| message.seq).collect();
    let changes = Changes { acks, ..changes(&acquired.lease.thread) };
    f.commit(&acquired.lease, acquired.saved.version, &changes, then).await;
}

pub(crate) async fn one_worker_holds_a_thread(f: impl Fixture) {
    f.awake(&thread(1)).await;
    assert!(f.acquire("w2").await.is_none());
    assert!(f.acquire_only("w2", &thread(1)).await.is_none());
    f.hears(&thread(1), "more").await;
    assert!(f.acquire("w2").await.is_none(), "message does not break a lease");
    assert!(f.acquire("w1").await.is_none(), "not even its own worker leases it twice");
}

pub(crate) async fn a_thread_is_leased_with_what_arrives(f: impl Fixture) {
    let arrives = async |text: &str, addressed: bool, worker: &str| {
        let delivery = delivery(&thread(1), text, addressed, &[format!("message:{text}")], f.now());
        f.store().ingest(&delivery, Handling::Lease(&f.holder(worker))).await.unwrap()
    };
    let (parked, nobody) = arrives("between people", false, "w1").await;
    assert!(matches!(parked, Ingested::Parked(_)) && nobody.is_none(), "{parked:?}");
    let (new, leased) = arrives("hello", true, "w1").await;
    let leased = leased.expect("the thread is ready");
    assert_eq!(
        (leased.lease.worker.as_str(), words(&leased.messages).join(", ").as_str()),
        ("w1", "between people, hello")
    );
    assert!(matches!(new, Ingested::New(seq) if seq == leased.messages[1].seq), "{new:?}");
    assert!(f.acquire("w2").await.is_none());

    let (more, nobody) = arrives("more", true, "w2").await;
    assert!(matches!(more, Ingested::New(_)) && nobody.is_none(), "it waits for who holds the thread");
    assert_eq!(arrives("more", true, "w2").await, (Ingested::Duplicate, None));
    finish(&f, &leased, Then::Release).await;
    assert_eq!(words(&f.acquire("w2").await.unwrap().messages), ["more"]);
}

pub(crate) async fn only_the_named_thread_is_leased(f: impl Fixture) {
    f.hears(&thread(1), "one").await;
    f.hears(&thread(2), "two").await;
    assert!(f.acquire_only("w1", &thread(3)).await.is_none());
    assert_eq!(f.acquire_only("w1", &thread(2)).await.unwrap().lease.thread, thread(2));
    assert_eq!(f.acquire("w1").await.unwrap().lease.thread, thread(1));
}

pub(crate) async fn a_thread_whose_lease_ran_out_is_taken_over(f: impl Fixture) {
    let first = f.awake(&thread(1)).await;
    f.run_out().await;
    let second = f.acquire("w2").await.expect("the lease ran out");
    assert!(second.lease.fence > first.lease.fence);
    assert_eq!(second.messages, first.messages, "what was not acknowledged is still there");
    f.run_out().await;
    let third = f.acquire_only("w1", &thread(1)).await.expect("again");
    assert!(third.lease.fence > second.lease.fence);
}

pub(crate) async fn who_lost_the_thread_cannot_write(f: impl Fixture) {
    let lost = f.awake(&thread(1)).await;
    f.run_out().await;
    let held = f.acquire("w2").await.unwrap();

    let late = Changes { steps: vec![step("late")], audit: vec![event("late")], ..changes(&thread(1)) };
    let refused = f.store().commit(&lost.lease, 0, &late, Then::Release, None).await;
    assert!(matches!(refused, Err(Error::Fenced(id)) if id == thread(1)));
    let refused = f.store().renew(&lost.lease, f.ttl()).await;
    assert!(matches!(refused, Err(Error::Fenced(id)) if id == thread(1)));
    assert_eq!(f.store().load(&thread(1)).await.unwrap().unwrap().version, 0);
    assert_eq!(f.store().audit(&thread(1)).await.unwrap().entries, []);

    f.store().renew(&held.lease, f.ttl()).await.unwrap();
    finish(&f, &held, Then::Release).await;
}

pub(crate) async fn who_released_the_thread_cannot_write(f: impl Fixture) {
    let acquired = f.awake(&thread(1)).await;
    finish(&f, &acquired, Then::Release).await;
    let late = Changes { steps: vec![step("late")], ..changes(&thread(1)) };
    let refused = f.store().commit(&acquired.lease, 0, &late, Then::Keep, None).await;
    assert!(matches!(refused, Err(Error::Fenced(_))));
    assert!(matches!(f.store().renew(&acquired.lease, f.ttl()).await, Err(Error::Fenced(_))));
}

pub(crate) async fn renewing_keeps_the_thread(f: impl Fixture) {
    let acquired = f.awake(&thread(1)).await;
    f.store().renew(&acquired.lease, f.ttl() * 1000).await.unwrap();
    f.run_out().await;
    assert!(f.acquire("w2").await.is_none());
    finish(&f, &acquired, Then::Release).await;
}

pub(crate) async fn a_worker_that_dies_without_mail_is_replaced(f: impl Fixture) {
    let acquired = f.awake(&thread(1)).await;
    finish(&f, &acquired, Then::Keep).await;
    assert!(f.acquire("w2").await.is_none());
    f.run_out().await;
    let next = f.acquire("w2").await.expect("its run is not over");
    assert_eq!(next.messages, []);
    finish(&f, &next, Then::Release).await;
    f.run_out().await;
    assert!(f.acquire("w2").await.is_none(), "a released thread has no lease that could run out");
}

pub(crate) async fn a_released_thread_sleeps(f: impl Fixture) {
    let acquired = f.awake(&thread(1)).await;
    finish(&f, &acquired, Then::Release).await;
    assert!(f.acquire("w1").await.is_none());
    assert!(f.acquire_only("w1", &thread(1)).await.is_none());
    f.hears(&thread(1), "again").await;
    assert_eq!(words(&f.acquire("w1").await.unwrap().messages), ["again"]);
}

pub(crate) async fn a_thread_released_with_mail_is_ready_at_once(f: impl Fixture) {
    let acquired = f.awake(&thread(1)).await;
    f.hears(&thread(1), "meanwhile").await;
    finish(&f, &acquired, Then::Release).await;
    assert_eq!(words(&f.acquire("w2").await.expect("there is unread mail").messages), ["meanwhile"]);
}

pub(crate) async fn a_thread_waits_until_its_time(f: impl Fixture) {
    let acquired = f.awake(&thread(1)).await;
    let hour = Duration::from_secs(3600);
    let then = f.now() + hour;
    finish(&f, &acquired, Then::ReleaseUntil(then)).await;
    assert!(f.acquire("w1").await.is_none());
    let acquire = async |now| f.store().acquire(&Holder::new("w1", f.ttl(), now), None).await.unwrap();
    assert!(acquire(Timestamp(then.0 - 1)).await.is_none());
    let acquired = acquire(then).await.expect("its time has come");
    assert_eq!(acquired.messages, []);
}

pub(crate) async fn unread_mail_waits_with_its_thread(f: impl Fixture) {
    let acquired = f.awake(&thread(1)).await;
    f.hears(&thread(1), "meanwhile").await;
    let then = f.now() + Duration::from_secs(3600);
    finish(&f, &acquired, Then::ReleaseUntil(then)).await;
    assert!(f.acquire("w1").await.is_none(), "the retry would come at once, again and again");
    let acquired =
        f.store().acquire(&Holder::new("w1", f.ttl(), then), None).await.unwrap().expect("its time has come");
    assert_eq!(words(&acquired.messages), ["meanwhile"]);
}

pub(crate) async fn mail_ends_a_wait(f: impl Fixture) {
    let acquired = f.awake(&thread(1)).await;
    finish(&f, &acquired, Then::ReleaseUntil(f.now() + Duration::from_secs(3600))).await;
    f.hears(&thread(1), "never mind").await;
    assert_eq!(words(&f.acquire("w1").await.expect("there is message").messages), ["never mind"]);
}

pub(crate) async fn the_longest_ready_goes_first(f: impl Fixture) {
    for n in [3, 1, 4, 2] {
        f.hears(&thread(n), "hello").await;
        f.a_moment().await;
    }
    f.hears(&thread(3), "hello?").await;
    let mut order = Vec::new();
    while let Some(acquired) = f.acquire("w1").await {
        order.push(acquired.lease.thread);
    }
    assert_eq!(order, [3, 1, 4, 2].map(thread));
}

pub(crate) async fn many_workers_share_the_threads(f: impl Fixture) {
    let threads: BTreeSet<ThreadId> = (0..40).map(thread).collect();
    for thread in &threads {
        f.hears(thread, "hello").await;
    }
    let (ttl, now) = (f.ttl() * 1000, f.now());
    let workers = (0..8).map(|n| {
        let store = Arc::clone(f.store());
        tokio::spawn(async move {
            let mut mine = Vec::new();
            let worker = format!("w{n}");
            while let Some(acquired) = store.acquire(&Holder::new(worker.as_str(), ttl, now), None).await.unwrap() {
                mine.push(acquired.lease.thread);
            }
            mine
        })
    });
    let mut leased = Vec::new();
    for worker in workers.collect::<Vec<_>>() {
        leased.extend(worker.await.unwrap());
    }
    assert_eq!(leased.len(), threads.len(), "each once");
    assert_eq!(leased.into_iter().collect::<BTreeSet<_>>(), threads);
}

pub(crate) async fn a_thread_belongs_to_the_graph_it_began_with(f: impl Fixture) {
    let begins = |n: u32, addressed, graph: &str| Delivery {
        to: Destination::Mailbox { thread: thread(n), addressed, message: said("hello"), graph: graph.into() },
        dedup: Vec::new(),
        at: f.now(),
    };
    f.hears(&thread(1), "hello").await;
    f.overhears(&thread(3), "lunch?").await;
    for delivery in
        [begins(2, true, "mail"), begins(3, true, "mail"), begins(1, true, "mail"), begins(2, true, "other")]
    {
        f.store().ingest(&delivery, Handling::Later).await.unwrap();
    }
    f.overhears(&thread(2), "more").await;
    let f = f.reopen().await;
    for (n, graph) in [(1, "chat"), (2, "mail"), (3, "mail")] {
        let acquired = f.acquire_only("w1", &thread(n)).await.unwrap();
        assert_eq!(acquired.lease.graph.as_str(), graph, "thread {n}");
        finish(&f, &acquired, Then::Release).await;
    }
    f.hears(&thread(2), "again").await;
    assert_eq!(f.acquire("w1").await.unwrap().lease.graph.as_str(), "mail", "whatever it hears later");
    let mut listed = f.store().threads(ThreadFilter::All, 10).await.unwrap();
    listed.sort_by(|a, b| a.thread.cmp(&b.thread));
    assert_eq!(listed.iter().map(|summary| summary.graph.as_str()).collect::<Vec<_>>(), ["chat", "mail", "mail"]);
}
