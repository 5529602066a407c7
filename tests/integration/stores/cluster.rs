//! The suite against a Redis Cluster, and what only several servers have to stand.

use std::{
    collections::BTreeSet,
    process::Child,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use countersign::{
    clock::{Clock as _, SystemClock, Timestamp},
    graph::store::{
        ActionFilter, Changes, Delivery, Error, Handling, Ingested, Sent, Store, Then, ThreadFilter, TimerChange,
    },
    ids::{Partition, ThreadId},
    store::redis::{RedisStore, durability::OpenError},
};
use futures_util::future::join_all;
use serde_json::json;

use super::{
    fixture::*,
    redis::{insist, open, pass, run_out, set, spoiling},
};
use crate::support::{
    redis::{CHECKED, RedisServer},
    redis_cluster::{MASTERS, RedisCluster},
};

/// The node timeout of a cluster in which no server fails.
const LONG: Duration = Duration::from_secs(60);

/// A store on a cluster that no other test uses at the time. It takes seconds to start one, so tests hand it on.
pub(crate) struct Cluster {
    shared: Option<Shared>,
    store: Arc<dyn Store>,
}

/// A cluster with a replica for each master, and the process that ends it.
struct Shared {
    cluster: RedisCluster,
    _end: Child,
}

/// The clusters that no test uses.
static IDLE: Mutex<Vec<Shared>> = Mutex::new(Vec::new());

impl Cluster {
    pub(super) fn servers(&self) -> &RedisCluster {
        &self.shared.as_ref().expect("it is there until it is dropped").cluster
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.take().filter(|_| !std::thread::panicking()) {
            IDLE.lock().unwrap().push(shared);
        }
    }
}

impl Fixture for Cluster {
    async fn fresh() -> Self {
        let idle = IDLE.lock().unwrap().pop();
        let shared = match idle {
            Some(shared) => shared,
            None => {
                let cluster = RedisCluster::start(1, LONG).await;
                Shared { _end: cluster.ends_with_this_process(), cluster }
            }
        };
        for master in 0..MASTERS {
            shared.cluster.command::<()>(master, &["FLUSHALL"]).await;
        }
        let store = open(&shared.cluster.url()).await;
        Self { shared: Some(shared), store }
    }

    fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    fn now(&self) -> Timestamp {
        SystemClock.now()
    }

    fn ttl(&self) -> Duration {
        Duration::from_secs(600)
    }

    async fn run_out(&self) {
        for master in &self.servers().servers[..MASTERS] {
            run_out(master, self.ttl()).await;
        }
    }

    async fn a_moment(&self) {
        let before = self.now();
        while self.now() == before {
            tokio::task::yield_now().await;
        }
    }

    /// The servers go on: what becomes of them has tests of its own.
    async fn reopen(mut self) -> Self {
        let shared = self.shared.take();
        let store = open(&shared.as_ref().expect("it was there").cluster.url()).await;
        Self { shared, store }
    }

    async fn spoil(&self, place: &Place, with: &[u8]) {
        let partition = match place {
            Place::Inbox(partition, _) | Place::Aside(partition, _) => *partition,
            Place::Mailbox(thread, _) | Place::Outgoing(thread, _) | Place::Audit(thread, _) => thread.partition(),
            Place::Action(thread, _) | Place::Step(thread, _) | Place::Snapshot(thread) => thread.partition(),
        };
        let master = self.servers().master_of(partition, 0).await;
        let mut connection = self.servers().servers[master].connection().await;
        let _: redis::Value = spoiling(place, with).query_async(&mut connection).await.unwrap();
    }
}

/// The first threads whose partitions are on each of the masters, by the master.
pub(super) async fn threads_of(cluster: &RedisCluster) -> [ThreadId; MASTERS] {
    let mut threads = [const { None }; MASTERS];
    for n in 0.. {
        let master = cluster.master_of(thread(n).partition(), 0).await;
        threads[master].get_or_insert(thread(n));
        if threads.iter().all(Option::is_some) {
            break;
        }
    }
    threads.map(|thread| thread.expect("each has one"))
}

fn hello(thread: &ThreadId, key: &str) -> Delivery {
    delivery(thread, key, true, &[format!("{thread}:{key}")], SystemClock.now())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_server_is_told_the_scripts_that_it_has_forgotten() {
    let f = Cluster::fresh().await;
    for thread in threads_of(f.servers()).await {
        f.hears(&thread, "hello").await;
        for n in 0..MASTERS {
            f.servers().command::<()>(n, &["SCRIPT", "FLUSH"]).await;
        }
        assert_eq!(f.store().messages(&thread, 0, None).await.unwrap().len(), 1, "a script that reads");
        f.hears(&thread, "still there?").await;
        assert_eq!(words(&f.store().messages(&thread, 0, None).await.unwrap()), ["hello", "still there?"]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_all_servers_have_is_put_together_in_order() {
    let f = Cluster::fresh().await;
    let mut made = Vec::new();
    for n in 0..40 {
        let record = action(&thread(n), &format!("a{n}"), Timestamp(1_700_000_000_000 + i64::from(n)));
        let timer = TimerChange::Set { key: "later".into(), due: Timestamp(n.into()), entry: json!(n) };
        let actions = vec![created(&record)];
        f.store().apply(&Changes { actions, timers: vec![timer], ..changes(&thread(n)) }).await.unwrap();
        f.hears(&thread(n), "hello").await;
        made.push(record);
    }
    made.reverse();
    let all = ActionFilter::all(&[], 100);
    assert_eq!(f.store().actions(&all).await.unwrap(), made, "newest first");
    assert_eq!(f.store().threads(ThreadFilter::All, 100).await.unwrap().len(), 40);
    assert_eq!(f.store().backlog().await.unwrap().threads, 40);
    let mut leased = BTreeSet::new();
    while let Some(acquired) = f.acquire("w1").await {
        assert!(leased.insert(acquired.lease.thread));
    }
    assert_eq!(leased.len(), 40);
    assert_eq!(f.store().fire_timers(Timestamp(39)).await.unwrap(), 40);
    assert_eq!(f.store().claim_interaction(f.ttl(), 100).await.unwrap().len(), 40);
}

/// The number of partitions that were looked at, on all servers.
async fn looks(cluster: &RedisCluster) -> u64 {
    let calls = join_all(cluster.servers[..MASTERS].iter().map(RedisServer::calls)).await;
    calls.iter().filter_map(|calls| calls.get("exists")).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_on_any_server_is_heard_of() {
    let f = Cluster::fresh().await;
    let another = open(&f.servers().url()).await;
    let is_due = async || another.is_anything_due(SystemClock.now()).await.unwrap();
    let is_idle = async || {
        let began = Instant::now();
        loop {
            let before = looks(f.servers()).await;
            if !is_due().await && looks(f.servers()).await == before {
                return before;
            }
            assert!(began.elapsed() < Duration::from_secs(30), "it is never idle");
        }
    };
    for thread in threads_of(f.servers()).await {
        let before = is_idle().await;
        f.hears(&thread, "hello").await;
        let began = Instant::now();
        while !is_due().await {
            assert!(began.elapsed() < Duration::from_secs(30), "nobody hears of {thread}");
            tokio::task::yield_now().await;
        }
        assert_eq!(looks(f.servers()).await, before + 1, "one partition was looked at");
        f.acquire_only("w1", &thread).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_says_that_it_is_one() {
    let f = Cluster::fresh().await;
    let found = f.store().durability().await.unwrap();
    assert!(found.name.contains(", cluster of 3 masters and 3 replicas (127.0.0.1:"), "{}", found.name);
    assert_eq!(found.problems, [""; 0]);
    assert_eq!(f.store().probe().await.unwrap(), []);
}

#[tokio::test]
async fn a_lossy_server_of_a_cluster_is_named() {
    let f = Cluster::fresh().await;
    let servers = f.servers();
    for n in [1, MASTERS + 2] {
        set(&servers.servers[n], "appendfsync", "everysec").await;
    }
    let Err(OpenError::Lossy(found)) = RedisStore::open(&servers.url(), &CHECKED).await else { panic!("it is lossy") };
    let [problem] = found.problems.as_slice() else { panic!("a master and a replica: {:?}", found.problems) };
    assert!(problem.contains(": appendfsync is"), "{problem}");
    assert!([1, MASTERS + 2].iter().all(|n| problem.contains(&servers.servers[*n].port().to_string())), "{problem}");

    pass(Duration::from_secs(61)).await;
    let threads = threads_of(servers).await;
    let hear = async |master: usize, key: &str| f.store().ingest(&hello(&threads[master], key), Handling::Later).await;
    let told: Vec<String> = f.store().probe().await.unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(told.len(), 2, "the others are written: {told:?}");
    assert!(told.iter().all(|line| line.starts_with("partitions ") && line.contains("may lose what it acknowledges")));
    for master in 0..MASTERS {
        let heard = hear(master, "weak").await;
        assert_eq!(heard.is_ok(), master == 0, "those of other servers are stored: {master} {heard:?}");
    }
    for n in [1, MASTERS + 2] {
        set(&servers.servers[n], "appendfsync", "always").await;
    }
    pass(Duration::from_secs(61)).await;
    for master in 0..MASTERS {
        hear(master, "right again").await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_addresses_are_those_of_one_cluster() {
    let f = Cluster::fresh().await;
    let port = f.servers().servers[2].port();
    let store = RedisStore::open(&format!("redis://127.0.0.1:1,127.0.0.1:{port}"), &CHECKED).await.unwrap();
    f.hears(&thread(1), "hello").await;
    assert_eq!(
        store.ingest(&hello(&thread(2), "hello"), Handling::Later).await.unwrap().0,
        Ingested::New(1),
        "found by its other server"
    );
    let single = RedisServer::start().await;
    let both = RedisStore::open(&format!("{},127.0.0.1:{port}", single.url()), &CHECKED).await;
    let Err(refused @ OpenError::NotInCluster { .. }) = both else { panic!("two stores: {both:?}") };
    assert!(refused.to_string().contains(&single.port().to_string()), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stands_still_holds_up_nothing_on_the_others() {
    let f = Cluster::fresh().await;
    let threads = threads_of(f.servers()).await;
    f.hears(&threads[0], "before").await;
    let acquired = f.acquire_only("w1", &threads[0]).await.unwrap();
    let mut partitions_of_first = 0;
    for partition in Partition::all() {
        partitions_of_first += usize::from(f.servers().master_of(partition, 0).await == 0);
    }
    f.servers().stall(0);
    let lost = f.store().renew(&acquired.lease, f.ttl()).await;
    assert!(matches!(lost, Err(Error::Unavailable(_))), "{lost:?}");
    let began = Instant::now();
    for thread in &threads[1..] {
        f.hears(thread, "hello").await;
        let acquired = f.acquire("w1").await.expect("it is found among all");
        assert_eq!(acquired.lease.thread, *thread);
        let acks = acquired.messages.iter().map(|message| message.seq).collect();
        let answers = Changes { steps: vec![step("one")], acks, outbox: vec![reply("", "hi")], ..changes(thread) };
        f.commit(&acquired.lease, 0, &answers, Then::Release).await;
        let claimed = f.claim_one().await.expect("it is found among all");
        f.finish(&claimed, &Sent::Delivered(None)).await;
        f.store().is_anything_due(f.now()).await.unwrap();
        f.store().sweep(f.now()).await.expect_err("some is left");
        let told = f.store().probe().await.expect("another server answers");
        assert!(told.len() == 1 && told[0].to_string().contains("isn't answering"), "{told:?}");
        assert_eq!(told[0].partitions.len(), partitions_of_first, "those of the first server");
        let everything = f.store().threads(ThreadFilter::All, 10).await.expect_err("it would not be everything");
        let named = countersign::cause::chain(&everything);
        assert!(named.contains(&f.servers().servers[0].port().to_string()), "{named}");
    }
    assert!(began.elapsed() < Duration::from_secs(10), "nobody waits for it: {:?}", began.elapsed());
    f.servers().resume(0);
    insist("the same lease", || f.store().renew(&acquired.lease, f.ttl())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_that_no_replica_has_does_not_count() {
    let f = Cluster::fresh().await;
    let threads = threads_of(f.servers()).await;
    let replica = f.servers().replica_of(0).await;
    f.hears(&threads[0], "before").await;
    f.servers().stall(replica);
    let (one, other) = (hello(&threads[0], "one"), hello(&threads[1], "other"));
    let (lost, heard) =
        tokio::join!(f.store().ingest(&one, Handling::Later), f.store().ingest(&other, Handling::Later));
    let Err(Error::Unavailable(why)) = lost else { panic!("nobody else has it: {lost:?}") };
    assert!(why.to_string().contains("no replica has confirmed it"), "{why}");
    assert!(matches!(heard, Ok((Ingested::New(_), _))), "{heard:?}");
    f.servers().resume(replica);
    let again = insist("the repeat", || f.store().ingest(&one, Handling::Later)).await;
    assert_eq!(again.0, Ingested::Duplicate, "it was stored, and has a replica now");
}

/// The names of everything that is stored on a server, with what a script would see of it.
async fn contents(cluster: &RedisCluster, n: usize) -> Vec<(String, String)> {
    let keys: Vec<String> = cluster.command(n, &["KEYS", "countersign:*"]).await;
    let dumped = keys.into_iter().map(async |key| {
        let dump: redis::Value = cluster.command(n, &["DUMP", &key]).await;
        (key, format!("{dump:?}"))
    });
    let mut dumped = join_all(dumped).await;
    dumped.sort();
    dumped
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_script_begins_only_where_it_can_end() {
    let f = Cluster::fresh().await;
    let t = threads_of(f.servers()).await[0].clone();
    // All keys of the script that records the result exist, and the last message of the thread leaves with it.
    f.says(&t, [reply("turn:1", "one")]).await;
    let failed = f.claim_one().await.unwrap();
    let refused = Sent::Failed { reason: "invalid_blocks".into(), at: f.now() };
    f.finish(&failed, &refused).await;
    f.says(&t, [reply("turn:2", "two")]).await;
    let posted = Sent::Delivered(Some(countersign::graph::store::Posted::at("C1".into(), "1.1".into())));
    f.finish(&f.claim_one().await.unwrap(), &posted).await;
    f.says(&thread_beside(&t), [reply("", "beside")]).await;
    f.says(&t, [reply("turn:3", "three")]).await;
    let sender = f.holder("sender");
    let claimed = f.store().claim_outbox(&sender, 1, Some(&t)).await.unwrap().pop().unwrap();

    let slot = f.servers().slot_of(t.partition()).await.to_string();
    f.servers().opens_slot(t.partition(), 0, 1).await;
    let before = contents(f.servers(), 0).await;
    let refused = f.store().finish_outbox(&[(claimed.clone(), Sent::Delivered(None))], None).await;
    assert!(matches!(refused, Err(Error::Unavailable(_))), "{refused:?}");
    assert_eq!(contents(f.servers(), 0).await, before, "nothing of it was done");
    for n in [0, 1] {
        f.servers().command::<()>(n, &["CLUSTER", "SETSLOT", &slot, "STABLE"]).await;
    }
    assert!(f.finish(&claimed, &Sent::Delivered(None)).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_that_stands_still_is_named_and_leaves_no_key_on_both_servers() {
    let f = Cluster::fresh().await;
    let servers = f.servers();
    let t = threads_of(servers).await[0].clone();
    let (partition, slot) = (t.partition(), servers.slot_of(t.partition()).await.to_string());
    let confirmed = format!("countersign:{{p{:02}}}:confirmed", partition.number());
    servers.command::<()>(0, &["SET", &confirmed, "1"]).await;
    servers.opens_slot(partition, 0, 1).await;
    // Every other key of the script is missing here, so it is sent to the other server, which refuses it.
    let refused = f.store().ingest(&hello(&t, "one"), Handling::Later).await;
    assert!(matches!(refused, Err(Error::Unavailable(_))), "{refused:?}");
    assert_eq!(servers.command::<u64>(1, &["CLUSTER", "COUNTKEYSINSLOT", &slot]).await, 0, "nothing came into being");

    let [stuck] = f.store().probe().await.unwrap().try_into().expect("one partition");
    assert_eq!(stuck.partitions, [partition]);
    let told = stuck.to_string();
    let address = |n: usize| format!("127.0.0.1:{}", servers.servers[n].port());
    assert_eq!(
        told,
        format!(
            "partition {} can't be written: slot {slot} has begun to move from {} to {}, and the move doesn't go on; \
             `redis-cli --cluster fix {} --cluster-replace` ends it",
            partition.number(),
            address(0),
            address(1),
            address(0),
        )
    );
    // A key that is on both servers.
    let mut connection = servers.servers[1].connection().await;
    let mut both = redis::pipe();
    both.cmd("ASKING").ignore().cmd("SET").arg(&confirmed).arg(1).ignore();
    both.query_async::<()>(&mut connection).await.unwrap();
    servers.cli(0, &["fix", "--cluster-replace"]).await.unwrap();
    servers.agrees().await;
    assert_eq!(f.store().probe().await.unwrap(), []);
    f.store().ingest(&hello(&t, "one"), Handling::Later).await.unwrap();
}

/// Another thread of the same partition.
fn thread_beside(t: &ThreadId) -> ThreadId {
    let same = |other: &ThreadId| other.partition() == t.partition() && other != t;
    (1000..).map(thread).find(same).expect("there are more threads than partitions")
}
