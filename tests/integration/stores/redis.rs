//! The suite against Redis, and what only a store on the other end of a wire has to stand.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use countersign::{
    clock::{Clock as _, SystemClock, Timestamp},
    graph::{
        action::{ActionRecord, Label, Status},
        store::{
            ActionFilter, Changes, Error, Handling, Holder, Ingested, Keep, Saved, Sent, Store, Then, ThreadFilter,
        },
    },
    ids::ThreadId,
    store::redis::{RedisStore, durability::OpenError},
};

use super::fixture::*;
use crate::support::{
    proxy::Proxy,
    redis::{CHECKED, LOSSY, RedisServer},
};

/// A store on a server of its own.
pub(crate) struct Redis {
    pub(super) server: RedisServer,
    store: Arc<dyn Store>,
}

impl Redis {
    async fn on(server: RedisServer) -> Self {
        let store = open(&server.url()).await;
        Self { server, store }
    }
}

pub(super) async fn open(url: &str) -> Arc<dyn Store> {
    Arc::new(RedisStore::open(url, &CHECKED).await.unwrap())
}

impl Fixture for Redis {
    async fn fresh() -> Self {
        Self::on(RedisServer::start().await).await
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
        run_out(&self.server, self.ttl()).await;
    }

    async fn a_moment(&self) {
        let before = self.now();
        while self.now() == before {
            tokio::task::yield_now().await;
        }
    }

    async fn reopen(self) -> Self {
        let Self { mut server, store } = self;
        drop(store);
        server.kill();
        server.restart().await;
        Self::on(server).await
    }

    async fn spoil(&self, place: &Place, with: &[u8]) {
        let mut connection = self.server.connection().await;
        let _: redis::Value = spoiling(place, with).query_async(&mut connection).await.unwrap();
    }
}

/// The server's clock cannot be moved forward, so everything that is measured by it is moved back.
pub(super) async fn run_out(server: &RedisServer, ttl: Duration) {
    let script = redis::Script::new(
        r"
        for _, index in ipairs({'ready', 'desk', 'sending'}) do
          for _, key in ipairs(redis.call('KEYS', 'countersign:*:' .. index)) do
            for _, member in ipairs(redis.call('ZRANGE', key, 0, -1)) do
              redis.call('ZINCRBY', key, -ARGV[1], member)
            end
          end
        end
        for _, key in ipairs(redis.call('KEYS', 'countersign:*blob:*')) do
          local left = redis.call('PTTL', key)
          if left > 0 then
            redis.call('PEXPIRE', key, left - ARGV[1] / 1000)
          end
        end",
    );
    let ttl = u64::try_from(ttl.as_micros()).unwrap();
    script.arg(ttl).invoke_async::<()>(&mut server.connection().await).await.unwrap();
}

/// The command that puts other bytes where something is stored.
pub(super) fn spoiling(place: &Place, with: &[u8]) -> redis::Cmd {
    let of_thread = |thread: &ThreadId, what: &str| {
        format!("countersign:{{p{:02}}}:thread:{thread}:{what}", thread.partition().number())
    };
    let in_hash = |key: String, field: String| redis::cmd("HSET").arg(key).arg(field).arg(with).to_owned();
    let in_list = |key: String, n: u64| redis::cmd("LSET").arg(key).arg(n).arg(with).to_owned();
    match place {
        Place::Mailbox(thread, seq) => in_hash(of_thread(thread, "mailbox"), seq.to_string()),
        Place::Inbox(partition, seq) => {
            let mut entry = b"1700000000000000 ".to_vec();
            entry.extend(with);
            let key = format!("countersign:{{p{:02}}}:desk_entries", partition.number());
            redis::cmd("HSET").arg(key).arg(*seq).arg(entry).to_owned()
        }
        Place::Outgoing(thread, seq) => in_hash(of_thread(thread, "outbox_bodies"), seq.to_string()),
        Place::Action(thread, id) => in_hash(of_thread(thread, "actions"), id.to_string()),
        Place::Audit(thread, seq) => in_list(of_thread(thread, "audit"), seq - 1),
        Place::Step(thread, version) => in_list(of_thread(thread, "steps"), version - 1),
        Place::Snapshot(thread) => redis::cmd("SET").arg(of_thread(thread, "snapshot")).arg(with).to_owned(),
        Place::Aside(partition, name) => {
            in_hash(format!("countersign:{{p{:02}}}:set_aside", partition.number()), name.clone())
        }
    }
}

/// Calls until the store answers, as the engine does.
pub(super) async fn insist<T, F: Future<Output = Result<T, Error>>>(what: &str, call: impl Fn() -> F) -> T {
    let began = Instant::now();
    loop {
        match call().await {
            Ok(answer) => return answer,
            Err(Error::Unavailable(source)) => {
                assert!(began.elapsed() < Duration::from_secs(30), "{what}: {source}");
                tokio::task::yield_now().await;
            }
            Err(other) => panic!("{what}: {other}"),
        }
    }
}

#[tokio::test]
async fn what_this_process_stored_is_a_repeat_without_a_request() {
    let mut f = Redis::fresh().await;
    f.hears(&thread(1), "hello").await;
    f.server.kill();
    assert_eq!(f.hears(&thread(1), "hello").await, Ingested::Duplicate);
}

#[tokio::test]
async fn a_lease_runs_out_by_the_clock_of_the_server() {
    let f = Redis::fresh().await;
    f.hears(&thread(1), "hello").await;
    let short = Duration::from_millis(50);
    let began = Instant::now();
    let first = f.store().acquire(&Holder::new("w1", short, Timestamp(0)), None).await.unwrap().unwrap();
    let second = loop {
        match f.store().acquire(&Holder::new("w2", f.ttl(), Timestamp(0)), None).await.unwrap() {
            Some(second) => break second,
            None => assert!(began.elapsed() < Duration::from_secs(10), "the lease never ends"),
        }
    };
    assert!(began.elapsed() >= short);
    assert!(second.lease.fence > first.lease.fence);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_advance_every_thread_once() {
    let server = RedisServer::start().await;
    let stores = [open(&server.url()).await, open(&server.url()).await];
    let (threads, messages) = (12, 4);
    let mut work = Vec::new();
    for (p, store) in stores.iter().enumerate() {
        for w in 0..3 {
            work.push(tokio::spawn(advance(Arc::clone(store), format!("p{p}w{w}"), threads * messages)));
        }
    }
    for message in 0..messages {
        for n in 0..threads {
            let text = format!("{message}");
            let key = [format!("{n}:{message}")];
            let delivery = delivery(&thread(n), &text, true, &key, SystemClock.now());
            // Slack delivers to both; one of them is late.
            let first = stores[(n % 2) as usize].ingest(&delivery, Handling::Later).await.unwrap().0;
            let second = stores[((n + 1) % 2) as usize].ingest(&delivery, Handling::Later).await.unwrap().0;
            assert!(matches!((first, second), (Ingested::New(_), Ingested::Duplicate)));
        }
    }
    for worker in work {
        worker.await.unwrap();
    }
    for n in 0..threads {
        let saved = stores[0].load(&thread(n)).await.unwrap().unwrap();
        let expected: Vec<_> = (0..messages).map(|message| delta(&message.to_string())).collect();
        assert_eq!(saved, Saved { version: u64::from(messages), snapshot: None, deltas: expected }, "in order, once");
        let audit = stores[1].audit(&thread(n)).await.unwrap().entries;
        let mut previous = "";
        for entry in &audit {
            assert!(entry.holds(&thread(n), previous), "the chain of thread {n} at {}", entry.seq);
            previous = &entry.hash;
        }
        assert_eq!(audit.len(), messages as usize);
    }
}

/// Takes ready threads one message further each, until `total` steps are saved in all of the store.
async fn advance(store: Arc<dyn Store>, worker: String, total: u32) {
    let began = Instant::now();
    loop {
        let now = SystemClock.now();
        let ttl = Duration::from_secs(60);
        let Some(acquired) = store.acquire(&Holder::new(worker.as_str(), ttl, now), None).await.unwrap() else {
            let done: u64 =
                store.threads(ThreadFilter::All, 1000).await.unwrap().iter().map(|summary| summary.version).sum();
            if done == u64::from(total) {
                return;
            }
            assert!(began.elapsed() < Duration::from_secs(60), "{done} of {total} steps");
            tokio::task::yield_now().await;
            continue;
        };
        let message = &acquired.messages[0];
        let what = words(&acquired.messages).swap_remove(0);
        let thread = acquired.lease.thread.clone();
        let step = Changes {
            steps: vec![step(&what)],
            acks: vec![message.seq],
            audit: vec![event(&what)],
            ..changes(&thread)
        };
        store.commit(&acquired.lease, acquired.saved.version, &step, Then::Release, None).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_answered_survives_a_killed_server() {
    let mut server = RedisServer::start().await;
    let store = open(&server.url()).await;
    let (ttl, ours) = (Duration::from_secs(600), thread(1));
    store.ingest(&delivery(&thread(1), "go", true, &["k"], SystemClock.now()), Handling::Later).await.unwrap();
    let acquired = store.acquire(&Holder::new("w1", ttl, SystemClock.now()), None).await.unwrap().unwrap();

    // Steps are saved one after the other while the server is killed under them, and started again.
    let saving = tokio::spawn({
        let (store, lease) = (Arc::clone(&store), acquired.lease.clone());
        async move {
            for version in 0..60 {
                let step = Changes {
                    steps: vec![step(&version.to_string())],
                    audit: vec![event(&version.to_string())],
                    outbox: vec![reply("", &version.to_string())],
                    ..changes(&lease.thread)
                };
                let saved = insist("a step", || store.commit(&lease, version, &step, Then::Keep, None)).await;
                assert_eq!(saved.0, version + 1);
            }
        }
    });
    for version in [10, 25, 40] {
        until(&store, version).await;
        server.kill();
        server.restart().await;
    }
    saving.await.unwrap();

    let expected: Vec<_> = (0..60).map(|version| delta(&version.to_string())).collect();
    let found = insist("load", || store.load(&ours)).await.unwrap();
    assert_eq!(found.deltas, expected, "each step once");
    assert_eq!(store.audit(&thread(1)).await.unwrap().entries.len(), 60);
    assert_eq!(drain(&store).await, (0..60).map(|version| version.to_string()).collect::<Vec<_>>());
}

/// Waits until the first thread has reached a version.
async fn until(store: &Arc<dyn Store>, version: u64) {
    let (began, ours) = (Instant::now(), thread(1));
    loop {
        let found = insist("load", || store.load(&ours)).await.map_or(0, |saved| saved.version);
        if found >= version {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "still at version {found}");
        tokio::task::yield_now().await;
    }
}

async fn drain(store: &Arc<dyn Store>) -> Vec<String> {
    let mut said = Vec::new();
    loop {
        let claimed = store
            .claim_outbox(&Holder::new(sender(), Duration::from_secs(60), SystemClock.now()), 10, None)
            .await
            .unwrap();
        let [message] = claimed.as_slice() else { return said };
        said.push(spoken(message));
        store.finish_outbox(&[(message.clone(), Sent::Delivered(None))], None).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_whose_answer_was_cut_off_can_be_repeated() {
    let server = RedisServer::start().await;
    let proxy = Proxy::before(server.port()).await;
    let (store, ours) = (open(&format!("redis://127.0.0.1:{}", proxy.port())).await, thread(1));
    let (done, failed, enough) = (AtomicU32::new(0), AtomicU32::new(0), AtomicBool::new(false));
    let writing = async {
        while !enough.load(Ordering::Relaxed) {
            let words = done.load(Ordering::Relaxed).to_string();
            let message = Changes { messages: vec![said(&words)], audit: vec![event(&words)], ..changes(&thread(1)) };
            let apply = || async {
                let answer = store.apply(&message).await;
                failed.fetch_add(u32::from(answer.is_err()), Ordering::Relaxed);
                answer
            };
            insist("mail", apply).await;
            done.fetch_add(1, Ordering::Relaxed);
        }
    };
    let cutting = async {
        for round in 0..20 {
            let (written, lost) = (done.load(Ordering::Relaxed), failed.load(Ordering::Relaxed));
            more_than(&done, written + round % 3).await;
            if round % 2 == 0 {
                proxy.cut()
            } else {
                proxy.lose_answers()
            }
            more_than(&failed, lost).await;
            proxy.restore();
        }
        enough.store(true, Ordering::Relaxed);
    };
    tokio::join!(writing, cutting);
    let written = done.into_inner();
    let holder = Holder::new("w1", Duration::from_secs(60), SystemClock.now());
    let acquired = insist("acquire", || store.acquire(&holder, Some(&ours)));
    let messages = acquired.await.expect("it has message").messages;
    assert_eq!(words(&messages), (0..written).map(|n| n.to_string()).collect::<Vec<_>>(), "each once, in order");
    assert_eq!(store.audit(&thread(1)).await.unwrap().entries.len(), written as usize);
}

/// Waits until a count has gone up.
async fn more_than(count: &AtomicU32, before: u32) {
    let began = Instant::now();
    while count.load(Ordering::Relaxed) <= before {
        assert!(began.elapsed() < Duration::from_secs(30), "still {before}");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_write_that_happened_without_an_answer_is_recognised() {
    let server = RedisServer::start().await;
    let proxy = Proxy::before(server.port()).await;
    let (far, near) = (open(&format!("redis://127.0.0.1:{}", proxy.port())).await, open(&server.url()).await);
    let (ttl, now) = (Duration::from_secs(600), SystemClock.now());
    near.ingest(&delivery(&thread(1), "go", true, &["k"], now), Handling::Later).await.unwrap();
    let acquired = far.acquire(&Holder::new("w1", ttl, now), None).await.unwrap().unwrap();
    let record = action(&thread(1), "a1", now);
    let write = Changes {
        steps: vec![step("one")],
        acks: vec![acquired.messages[0].seq],
        actions: vec![created(&record)],
        outbox: vec![reply("", "done")],
        audit: vec![event("asked")],
        ..changes(&thread(1))
    };

    near.apply(&changes(&thread(2))).await.unwrap(); // now the server knows the script, and does not have to ask for it
    proxy.lose_answers();
    let lost = far.commit(&acquired.lease, 0, &write, Then::Release, None).await;
    assert!(matches!(lost, Err(Error::Unavailable(_))), "{lost:?}");
    assert_eq!(near.load(&thread(1)).await.unwrap().unwrap().version, 1, "it did happen");
    proxy.restore();
    let ours = &acquired.lease;
    let again = insist("again", || far.commit(ours, 0, &write, Then::Release, None)).await;
    assert_eq!(again.0, 1, "as the first time");
    assert_eq!(near.audit(&thread(1)).await.unwrap().entries.len(), 1);
    assert_eq!(drain(&near).await, ["done"]);
}

#[tokio::test]
async fn a_lease_and_claims_without_an_answer_end_by_themselves() {
    let f = Redis::fresh().await;
    let proxy = Proxy::before(f.server.port()).await;
    let far = open(&format!("redis://127.0.0.1:{}", proxy.port())).await;
    f.hears(&thread(2), "go").await; // now the server knows the scripts
    f.store().apply(&changes(&thread(2))).await.unwrap();
    let (hello, holder) = (delivery(&thread(1), "hello", true, &["k"], f.now()), f.holder("w1"));
    proxy.lose_answers();
    let lost = far.ingest(&hello, Handling::Lease(&holder)).await;
    assert!(matches!(lost, Err(Error::Unavailable(_))), "{lost:?}");
    proxy.restore();
    let again = insist("again", || far.ingest(&hello, Handling::Lease(&holder))).await;
    assert_eq!(again, (Ingested::Duplicate, None));
    assert!(f.acquire_only("w2", &thread(1)).await.is_none(), "nobody knows that it is leased");
    f.run_out().await;
    let acquired = f.acquire_only("w2", &thread(1)).await.unwrap();
    assert_eq!(words(&acquired.messages), ["hello"]);

    let acks = vec![acquired.messages[0].seq];
    let outbox = vec![reply("", "one"), reply("", "two")];
    let write = Changes { steps: vec![step("one")], acks, outbox, ..changes(&thread(1)) };
    let (lease, sender) = (&acquired.lease, f.holder("sender"));
    proxy.lose_answers();
    let lost = far.commit(lease, 0, &write, Then::Release, Some((&sender, 2))).await;
    assert!(matches!(lost, Err(Error::Unavailable(_))), "{lost:?}");
    proxy.restore();
    let again = insist("again", || far.commit(lease, 0, &write, Then::Release, Some((&sender, 2)))).await;
    assert_eq!(again, (1, Vec::new()), "as the first time; nobody knows that the messages are claimed");
    assert_eq!(f.claim(10).await, []);
    f.run_out().await;
    let one = f.claim_one().await.unwrap();
    assert_eq!((spoken(&one).as_str(), one.attempts), ("one", 1), "it is looked up before it is posted");
}

#[tokio::test]
async fn a_cut_wire_is_told_at_once_and_a_mended_one_used_at_once() {
    let server = RedisServer::start().await;
    let proxy = Proxy::before(server.port()).await;
    let store = open(&format!("redis://127.0.0.1:{}", proxy.port())).await;
    store.put_blob(b"before", Keep::Permanently).await.unwrap();
    proxy.cut();
    for _ in 0..3 {
        let began = Instant::now();
        assert!(matches!(store.put_blob(b"cut", Keep::Permanently).await, Err(Error::Unavailable(_))));
        assert!(began.elapsed() < Duration::from_secs(3));
    }
    proxy.restore();
    insist("a mended wire", || store.put_blob(b"after", Keep::Permanently)).await;
}

#[tokio::test]
async fn a_wire_that_says_nothing_is_given_up() {
    let server = RedisServer::start().await;
    let proxy = Proxy::before(server.port()).await;
    let store = open(&format!("redis://127.0.0.1:{}", proxy.port())).await;
    store.put_blob(b"before", Keep::Permanently).await.unwrap();
    proxy.stall();
    let began = Instant::now();
    assert!(matches!(store.put_blob(b"stalled", Keep::Permanently).await, Err(Error::Unavailable(_))));
    assert!(began.elapsed() < Duration::from_secs(10), "every call is bounded");
    proxy.restore();
    store
        .put_blob(b"after", Keep::Permanently)
        .await
        .expect("a new connection is made; the old one would stall for ever");
}

#[tokio::test]
async fn a_server_that_forgot_the_scripts_is_told_them_again() {
    let f = Redis::fresh().await;
    f.hears(&thread(1), "hello").await;
    redis::cmd("SCRIPT").arg("FLUSH").query_async::<()>(&mut f.server.connection().await).await.unwrap();
    f.hears(&thread(1), "still there?").await;
    assert_eq!(words(&f.acquire("w1").await.unwrap().messages), ["hello", "still there?"]);
}

#[tokio::test]
async fn a_lossy_server_is_refused_unless_allowed() {
    let server = RedisServer::start_with(&["--appendfsync", "everysec", "--maxmemory-policy", "allkeys-lru"]).await;
    let Err(OpenError::Lossy(found)) = RedisStore::open(&server.url(), &CHECKED).await else { panic!("it is lossy") };
    assert_eq!(found.problems.len(), 2, "{:?}", found.problems);
    assert!(found.problems[0].contains("set `appendfsync always`"), "{:?}", found.problems);
    assert!(found.problems[1].contains("set `maxmemory-policy noeviction`"), "{:?}", found.problems);
    let allowed = RedisStore::open(&server.url(), &LOSSY).await.unwrap();
    assert_eq!(allowed.durability().await.unwrap(), found, "but it is still told");
}

#[tokio::test]
async fn a_server_that_hides_its_settings_is_not_trusted() {
    let server = RedisServer::start_with(&["--rename-command", "CONFIG", ""]).await;
    let Err(OpenError::Lossy(found)) = RedisStore::open(&server.url(), &CHECKED).await else { panic!("who knows?") };
    assert!(found.problems.iter().all(|problem| problem.contains("cannot be read")), "{:?}", found.problems);
}

#[tokio::test]
async fn a_password_is_never_told() {
    let server = RedisServer::start().await;
    let mut let_in = redis::cmd("ACL");
    let_in.arg(&["SETUSER", "ana", "on", ">sesame", "~*", "&*", "+@all"]);
    let_in.query_async::<()>(&mut server.connection().await).await.unwrap();
    let with = |password: &str| format!("redis://ana:{password}@127.0.0.1:{}", server.port());
    let store = RedisStore::open(&with("sesame"), &CHECKED).await.unwrap();
    let mut told = vec![format!("{store:?}"), store.durability().await.unwrap().name];
    for url in [with("wrong-sesame"), "redis://ana:sesame@127.0.0.1:1".into(), "redis://ana:sesame@:x:1/".into()] {
        let error = RedisStore::open(&url, &CHECKED).await.unwrap_err();
        told.push(format!("{error:?}"));
        let mut source: Option<&dyn std::error::Error> = Some(&error);
        while let Some(error) = source {
            told.push(error.to_string());
            source = error.source();
        }
    }
    assert!(told.iter().all(|line| !line.contains("sesame")), "{told:#?}");
}

#[tokio::test]
async fn what_was_only_overheard_leaves_nothing_behind() {
    let f = Redis::fresh().await;
    for n in 0..20 {
        f.overhears(&thread(n), "lunch?").await;
        f.overhears(&thread(n), "at noon?").await;
    }
    f.store().sweep(f.now() + Duration::from_secs(25 * 3600)).await.unwrap();
    let keys: Vec<String> = redis::cmd("KEYS").arg("*").query_async(&mut f.server.connection().await).await.unwrap();
    assert!(keys.iter().all(|key| key.ends_with(":layout")), "{keys:?}");
    assert!(matches!(f.overhears(&thread(1), "lunch?").await, Ingested::Parked(_)), "a day later it is news");
}

#[tokio::test]
async fn everything_of_a_thread_shares_its_slot() {
    let f = Redis::fresh().await;
    for n in 0..5 {
        let acquired = f.awake(&thread(n)).await;
        f.overhears(&thread(n + 100), "lunch?").await;
        let everything = Changes {
            steps: vec![step("one")],
            snapshot: Some(serde_json::json!({}).into()),
            outbox: vec![reply("turn:1", "done")],
            actions: vec![created(&action(&thread(n), "a1", f.now()))],
            audit: vec![event("asked")],
            ..changes(&thread(n))
        };
        f.commit(&acquired.lease, 0, &everything, Then::Release).await;
    }
    let keys: Vec<String> = redis::cmd("KEYS").arg("*").query_async(&mut f.server.connection().await).await.unwrap();
    let mut of_thread: BTreeMap<ThreadId, usize> = BTreeMap::new();
    for key in &keys {
        let tag = key.split(['{', '}']).nth(1).expect("every key has a hash tag");
        if let Some(rest) = key.split(":thread:").nth(1) {
            let thread: ThreadId = rest.rsplit_once(':').unwrap().0.parse().unwrap();
            assert_eq!(tag, format!("p{:02}", thread.partition().number()), "{key}");
            *of_thread.entry(thread).or_default() += 1;
        }
    }
    assert!((0..5).all(|n| of_thread[&thread(n)] >= 7), "{of_thread:?}");
}

/// The server's settings, changed while a bot runs.
pub(super) async fn set(server: &RedisServer, name: &str, value: &str) {
    let mut connection = server.connection().await;
    let set = redis::cmd("CONFIG").arg("SET").arg(name).arg(value).to_owned();
    set.query_async::<()>(&mut connection).await.unwrap();
}

/// Lets so much time pass for everything that goes by the process's own clock.
pub(super) async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

const WEAKER: [(&str, &str, &str); 4] = [
    ("appendfsync", "everysec", "always"),
    ("appendonly", "no", "yes"),
    ("maxmemory-policy", "allkeys-lru", "noeviction"),
    ("no-appendfsync-on-rewrite", "yes", "no"),
];

#[tokio::test]
async fn a_server_that_is_weakened_while_it_runs_is_not_relied_upon() {
    let f = Redis::fresh().await;
    let hear = async |text: &str| {
        let delivery = delivery(&thread(1), text, true, &[text], f.now());
        f.store().ingest(&delivery, Handling::Later).await
    };
    hear("one").await.unwrap();
    for (n, (name, weak, right)) in WEAKER.into_iter().enumerate() {
        set(&f.server, name, weak).await;
        pass(Duration::from_secs(61)).await;
        let refused = hear(&format!("weak {n}")).await;
        assert!(matches!(refused, Err(Error::Unavailable(_))), "{name}: {refused:?}");
        set(&f.server, name, right).await;
        pass(Duration::from_secs(61)).await;
        assert!(matches!(hear(&format!("weak {n}")).await, Ok((Ingested::New(_), _))), "{name} is right again");
    }
}

#[tokio::test]
async fn a_server_that_returns_weaker_is_not_relied_upon() {
    let mut f = Redis::fresh().await;
    f.hears(&thread(1), "one").await;
    f.server.kill();
    f.server.set_extra(&["--appendfsync", "everysec"]);
    f.server.restart().await;
    let again = delivery(&thread(1), "two", true, &["two"], f.now());
    for _ in 0..3 {
        assert!(matches!(f.store().ingest(&again, Handling::Later).await, Err(Error::Unavailable(_))));
    }
    f.server.kill();
    f.server.set_extra(&[]);
    f.server.restart().await;
    pass(Duration::from_secs(2)).await;
    insist("the delivery", || f.store().ingest(&again, Handling::Later)).await;
}

#[tokio::test]
async fn a_thread_with_many_old_actions_costs_no_more() {
    let f = Redis::fresh().await;
    let open = ActionFilter::of(&thread(1), &[Status::Pending], 20);
    let now = f.now();
    let put = async |record: &ActionRecord| {
        f.store().apply(&Changes { actions: vec![created(record)], ..changes(&thread(1)) }).await.unwrap();
    };
    put(&action(&thread(1), "open", now)).await;
    let cost = async || {
        let before = sent_by(&f.server).await;
        let found = f.store().actions(&open).await.unwrap();
        assert_eq!(found.len(), 1);
        sent_by(&f.server).await - before
    };
    let alone = cost().await;
    for n in 0..500 {
        put(&ActionRecord { status: Status::Rejected, ..action(&thread(1), &format!("old {n}"), now) }).await;
    }
    let among = cost().await;
    assert!(among <= alone + 500, "{alone} bytes alone, {among} among 500 old ones");
}

/// How many bytes the server has sent.
async fn sent_by(server: &RedisServer) -> u64 {
    let mut connection = server.connection().await;
    let info: String = redis::cmd("INFO").arg("stats").query_async(&mut connection).await.unwrap();
    let sent = info.lines().find_map(|line| line.strip_prefix("total_net_output_bytes:")).unwrap();
    sent.trim().parse().unwrap()
}

#[tokio::test]
async fn a_store_gets_its_layout_only_from_a_process_that_writes() {
    let server = RedisServer::start().await;
    let mut connection = server.connection().await;
    let mut layouts = async || -> Vec<u32> {
        let keys: Vec<String> =
            redis::cmd("KEYS").arg("countersign:*:layout").query_async(&mut connection).await.unwrap();
        let mut layouts = Vec::new();
        for key in keys {
            layouts.push(redis::cmd("GET").arg(key).query_async(&mut connection).await.unwrap());
        }
        layouts
    };
    let to_read = RedisStore::open_to_read(&server.url(), &CHECKED).await.unwrap();
    assert_eq!(to_read.threads(ThreadFilter::All, 10).await.unwrap(), []);
    assert_eq!(layouts().await, [0; 0]);
    drop(open(&server.url()).await);
    assert_eq!(layouts().await, [1]);
}

#[tokio::test]
async fn a_register_that_cannot_be_read_does_not_keep_actions_from_being_found() {
    let server = RedisServer::start().await;
    let store = open(&server.url()).await;
    assert!(store.set_register("numbers", 0, &serde_json::json!([1])).await.unwrap());
    let mut connection = server.connection().await;
    let keys: Vec<String> = redis::cmd("KEYS").arg("countersign:*numbers").query_async(&mut connection).await.unwrap();
    assert_eq!(keys.len(), 1);
    redis::cmd("SET").arg(&keys[0]).arg("of another kind").query_async::<()>(&mut connection).await.unwrap();
    let label = Label::AskedBy("ana".into());
    let filter = ActionFilter::under(&[label], &[], 2);
    let (found, register) = store.actions_and_register(&filter, Some("numbers")).await.unwrap();
    assert_eq!((found, register), (Vec::new(), None));
}

#[tokio::test]
async fn a_layout_from_the_future_is_left_alone() {
    let server = RedisServer::start().await;
    drop(open(&server.url()).await);
    let mut connection = server.connection().await;
    let keys: Vec<String> = redis::cmd("KEYS").arg("countersign:*:layout").query_async(&mut connection).await.unwrap();
    assert_eq!(keys.len(), 1, "it says which layout it has");
    redis::cmd("SET").arg(&keys[0]).arg(99).query_async::<()>(&mut connection).await.unwrap();
    let to_read = RedisStore::open_to_read(&server.url(), &CHECKED).await.unwrap_err();
    for refused in [RedisStore::open(&server.url(), &CHECKED).await.unwrap_err(), to_read] {
        assert!(refused.to_string().contains("run the newer program"), "{refused}");
    }
}
