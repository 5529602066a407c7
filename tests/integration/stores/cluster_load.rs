//! A cluster that changes under load: slots move, and masters are killed. Nothing that was acknowledged may be lost, and
//! nothing may be done twice.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use countersign::{
    clock::{Clock as _, SystemClock},
    graph::store::{Changes, Error, Handling, Holder, Ingested, Sent, Store, Then},
    ids::{Nonce, Partition},
};
use tokio::task::JoinSet;

use super::{
    fixture::*,
    redis::{insist, open, set},
};
use crate::support::redis_cluster::{MASTERS, Node, RedisCluster};

/// The threads in which people write.
const THREADS: u32 = 6;
/// The number of messages that each thread gets after each change of the cluster.
const MORE: u32 = 3;
/// How many messages of a thread may wait for their answers.
const AHEAD: u32 = 2;
/// How long anything may take. Generous: the machine may have other work as well.
const LIMIT: Duration = Duration::from_secs(60);
/// How long is left between two looks, where there is nothing to do.
const PAUSE: Duration = Duration::from_millis(10);
/// How long leases and claims are held at most. What a change of the cluster leaves behind is free again then.
const TTL: Duration = Duration::from_secs(3);

/// People who write in threads, workers who answer each message, and senders who post the answers.
struct Load {
    stores: Vec<Arc<dyn Store>>,
    /// How many messages of each thread were acknowledged, and how many answers were posted.
    acknowledged: Vec<AtomicU32>,
    answered: Vec<AtomicU32>,
    enough: AtomicBool,
    over: AtomicBool,
    /// The messages in Slack, each with how often it was posted.
    posted: Mutex<BTreeMap<Nonce, u32>>,
}

impl Load {
    /// Begins, with two processes.
    async fn begin(cluster: &RedisCluster) -> (Arc<Self>, JoinSet<()>) {
        let load = Arc::new(Self {
            stores: vec![open(&cluster.url()).await, open(&cluster.url()).await],
            acknowledged: (0..THREADS).map(|_| AtomicU32::new(0)).collect(),
            answered: (0..THREADS).map(|_| AtomicU32::new(0)).collect(),
            enough: AtomicBool::new(false),
            over: AtomicBool::new(false),
            posted: Mutex::default(),
        });
        let mut work = JoinSet::new();
        for n in 0..THREADS {
            work.spawn(Arc::clone(&load).writes(n));
        }
        for n in 0..2 {
            work.spawn(Arc::clone(&load).answers(n));
            work.spawn(Arc::clone(&load).sends(n));
        }
        (load, work)
    }

    fn store(&self, n: usize) -> &dyn Store {
        &*self.stores[n % self.stores.len()]
    }

    /// Calls until there is an answer.
    async fn insist<T, F: Future<Output = Result<T, Error>>>(&self, call: impl Fn() -> F) -> Result<T, Error> {
        let began = Instant::now();
        loop {
            match call().await {
                Err(Error::Unavailable(why)) => {
                    assert!(began.elapsed() < LIMIT, "{why}");
                    tokio::time::sleep(PAUSE).await;
                }
                answer => return answer,
            }
        }
    }

    /// Writes one message after the other, each until it is acknowledged, as Slack does.
    async fn writes(self: Arc<Self>, n: u32) {
        for k in 0.. {
            if self.enough.load(Ordering::Relaxed) {
                return;
            }
            let message = delivery(&thread(n), &k.to_string(), true, &[format!("{n}:{k}")], SystemClock.now());
            let ingested =
                self.insist(|| self.store((n + k) as usize).ingest(&message, Handling::Later)).await.unwrap();
            assert!(matches!(ingested.0, Ingested::New(_) | Ingested::Duplicate), "{ingested:?}");
            self.acknowledged[n as usize].store(k + 1, Ordering::Relaxed);
            while self.answered[n as usize].load(Ordering::Relaxed) + AHEAD < k + 1 {
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    /// Answers the messages of whichever thread is ready.
    async fn answers(self: Arc<Self>, n: usize) {
        let worker = format!("worker {n}");
        while !self.over.load(Ordering::Relaxed) {
            let acquired = self.store(n).acquire(&Holder::new(worker.as_str(), TTL, SystemClock.now()), None).await;
            let Ok(Some(acquired)) = acquired else {
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            let said = words(&acquired.messages);
            let changes = Changes {
                steps: said.iter().map(|words| step(words)).collect(),
                acks: acquired.messages.iter().map(|message| message.seq).collect(),
                audit: said.iter().map(|words| event(words)).collect(),
                outbox: said.iter().map(|words| reply("", words)).collect(),
                ..changes(&acquired.lease.thread)
            };
            let (lease, version) = (&acquired.lease, acquired.saved.version);
            match self.insist(|| self.store(n).commit(lease, version, &changes, Then::Release, None)).await {
                Ok(_) | Err(Error::Fenced(_) | Error::VersionConflict { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Posts the answers. One that may have been posted before is looked for first, as in Slack.
    async fn sends(self: Arc<Self>, n: usize) {
        let worker = format!("sender {n}");
        while !self.over.load(Ordering::Relaxed) {
            let began = Instant::now();
            let claimed =
                self.store(n).claim_outbox(&Holder::new(worker.as_str(), TTL, SystemClock.now()), 4, None).await;
            let claimed = claimed.unwrap_or_default();
            if claimed.is_empty() {
                tokio::time::sleep(PAUSE).await;
            }
            for message in claimed {
                if began.elapsed() >= TTL {
                    break; // the claims have ended, and others may have them
                }
                let (nonce, is_new) = (message.outgoing.nonce.clone(), message.attempts == 0);
                if is_new || !self.posted.lock().unwrap().contains_key(&nonce) {
                    *self.posted.lock().unwrap().entry(nonce).or_default() += 1;
                    let of = (0..THREADS).find(|n| thread(*n) == message.thread).expect("it is one of ours");
                    self.answered[of as usize].fetch_add(1, Ordering::Relaxed);
                }
                let sent = [(message, Sent::Delivered(None))];
                self.insist(|| self.store(n).finish_outbox(&sent, None)).await.unwrap();
            }
        }
    }

    /// Waits until every thread has some more messages that were acknowledged.
    async fn goes_on(&self) {
        let counts = || self.acknowledged.iter().map(|count| count.load(Ordering::Relaxed)).collect::<Vec<_>>();
        let (before, began) = (counts(), Instant::now());
        while counts().iter().zip(&before).any(|(now, before)| *now < before + MORE) {
            assert!(began.elapsed() < LIMIT, "{:?} after {before:?}", counts());
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Ends, once everything is answered and posted, and judges.
    async fn ends(&self, mut work: JoinSet<()>) {
        self.enough.store(true, Ordering::Relaxed);
        for _ in 0..THREADS {
            work.join_next().await.expect("those who write end first").unwrap();
        }
        let (store, began) = (self.store(0), Instant::now());
        loop {
            let backlog = insist("the backlog", || store.backlog()).await;
            if backlog.threads + backlog.outbox == 0 {
                break;
            }
            assert!(began.elapsed() < LIMIT, "{backlog:?}");
            tokio::time::sleep(PAUSE).await;
        }
        self.over.store(true, Ordering::Relaxed);
        while let Some(ended) = work.join_next().await {
            ended.unwrap();
        }

        let mut total = 0;
        for n in 0..THREADS {
            let acknowledged = self.acknowledged[n as usize].load(Ordering::Relaxed);
            let saved = store.load(&thread(n)).await.unwrap().unwrap();
            let expected: Vec<_> = (0..acknowledged).map(|k| delta(&k.to_string())).collect();
            assert_eq!(saved.deltas, expected, "thread {n}: each message is answered once, in order");
            let (audit, mut previous) = (store.audit(&thread(n)).await.unwrap().entries, "");
            assert_eq!(audit.len(), acknowledged as usize, "thread {n}");
            for entry in &audit {
                assert!(entry.holds(&thread(n), previous), "the chain of thread {n} at {}", entry.seq);
                previous = &entry.hash;
            }
            total += acknowledged;
        }
        let posted = self.posted.lock().unwrap();
        assert_eq!(posted.values().filter(|times| **times > 1).count(), 0, "answers were posted twice");
        assert_eq!(posted.len(), total as usize, "each answer is posted");
    }
}

/// How often slots are moved: twice, or as often as `RESHARDS` says.
#[expect(clippy::disallowed_methods, reason = "a test has no settings")]
fn reshards() -> usize {
    std::env::var("RESHARDS").map_or(2, |times| times.parse().expect("RESHARDS is a number"))
}

/// How many of the first slots of each master hold the partition with the `nth` of its threads.
async fn slots_with_threads(cluster: &RedisCluster, nth: usize) -> Vec<(usize, usize)> {
    let mut loaded = Vec::new();
    for partition in (0..THREADS).map(|n| thread(n).partition()).collect::<BTreeSet<_>>() {
        loaded.push((cluster.slot_of(partition).await, cluster.master_of(partition, 0).await));
    }
    loaded.sort_unstable();
    let nodes = cluster.nodes(0).await;
    let of_master = (0..MASTERS).filter_map(|master| {
        let slots: Vec<u16> = loaded.iter().filter(|(_, of)| *of == master).map(|(slot, _)| *slot).collect();
        let last = *slots.get(nth.min(slots.len().checked_sub(1)?))?;
        let node = nodes.iter().find(|node| node.port == cluster.servers[master].port())?;
        let before = |(first, end): &(u16, u16)| (last + 1).min(*end + 1).saturating_sub(*first);
        Some((usize::from(node.slots.iter().map(before).sum::<u16>()), master))
    });
    of_master.collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slots_that_move_under_load_lose_nothing() {
    let cluster = RedisCluster::start(1, LIMIT).await;
    let (load, work) = Load::begin(&cluster).await;
    load.goes_on().await;
    for n in 0..reshards() {
        let loaded = slots_with_threads(&cluster, n % 3).await;
        // The fewest slots, or those of each master in turn.
        let (slots, from) = if n < 2 { *loaded.iter().min().unwrap() } else { loaded[n % loaded.len()] };
        let key_by_key: &[&str] = if n % 2 == 0 { &["--cluster-pipeline", "1"] } else { &[] };
        let (began, to) = (Instant::now(), (from + 1 + n % 2) % MASTERS);
        let moved = cluster.reshard(from, to, slots, key_by_key).await;
        assert!(moved.is_ok(), "reshard {n} of {slots} slots from {from} to {to}: {}", moved.unwrap_err());
        eprintln!("reshard {n}: {slots} slots from {from} to {to} in {:?}", began.elapsed());
        load.goes_on().await;
    }
    cluster.agrees().await;
    assert_eq!(load.store(0).probe().await.unwrap(), [], "every partition can be written");
    load.ends(work).await;
}

/// Fills the connection between a master and its replica, which stands still, so that what is written next stays on the
/// master alone.
async fn fill(cluster: &RedisCluster, master: usize, partition: Partition) {
    let key = format!("{{p{:02}}}:filling", partition.number());
    let filling = "x".repeat(4 << 20);
    let began = Instant::now();
    loop {
        cluster.command::<()>(master, &["SET", &key, &filling]).await;
        let replicas: String = cluster.command(master, &["CLIENT", "LIST", "TYPE", "replica"]).await;
        let waits = replicas.split_whitespace().find_map(|word| word.strip_prefix("omem=")?.parse::<usize>().ok());
        if waits.is_some_and(|waits| waits > filling.len()) {
            return;
        }
        assert!(began.elapsed() < LIMIT, "the replica takes everything: {replicas}");
    }
}

/// Kills the master of a partition when it has written what its replica has not, and waits until the replica has taken
/// over, as another server sees it.
async fn fail_over(cluster: &mut RedisCluster, partition: Partition, master: usize, replica: usize, other: usize) {
    cluster.stall(replica);
    fill(cluster, master, partition).await;
    cluster.until_info("a write waits for the replica", master, |info| info["blocked_clients"] != "0").await;
    cluster.servers[master].kill();
    cluster.resume(replica);
    let port = cluster.servers[replica].port();
    let is_master = |nodes: &[Node]| nodes.iter().any(|node| node.port == port && node.flags == "master");
    cluster.until("the replica has taken over", other, is_master).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn masters_that_are_killed_under_load_lose_nothing() {
    let mut cluster = RedisCluster::start(1, Duration::from_secs(1)).await;
    let (load, work) = Load::begin(&cluster).await;
    load.goes_on().await;
    let partition = thread(0).partition();
    let master = cluster.master_of(partition, 0).await;
    let replica = cluster.replica_of(master).await;
    let other = (0..MASTERS).find(|n| *n != master).expect("there are three");
    fail_over(&mut cluster, partition, master, replica, other).await;
    load.goes_on().await;
    // The one that took over refuses writes while it is alone, and is killed as soon as the first one is back.
    set(&cluster.servers[replica], "min-replicas-to-write", "1").await;
    cluster.servers[master].restart().await;
    cluster.is_complete(master).await;
    cluster.is_complete(other).await;
    fail_over(&mut cluster, partition, replica, master, other).await;
    load.goes_on().await;
    load.ends(work).await;
}
