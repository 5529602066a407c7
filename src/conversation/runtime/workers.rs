//! Leases threads and has the engine advance them.
//!
//! [`Workers::wake`] is only a hint that a thread has work; the store decides. If a hint is lost,
//! the thread merely waits for the next [`Workers::sweep`], which leases all ready threads,
//! including those of a crashed process.
//!
//! A worker can be reserved for a thread that is about to have work, so that the write that gives it the work leases the
//! thread too ([`Workers::reserve`]).
//!
//! A thread is advanced by the engine of its graph. If this process has no such engine, the thread
//! is released unchanged, for a process that has one. It is ready again after a minute, or when a
//! message arrives.
//!
//! A work queue was rejected as a design: readiness is a property of the thread in the store, so
//! there is nothing to redeliver, trim or lose.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use countersign_core::{
    cause,
    clock::Clock,
    ids::{GraphName, ThreadId, WorkerId},
    spans,
};
use countersign_graph::{
    engine::{AwaitedEvent, Engine, release_to_another},
    node::State,
    store::{Acquired, Error, Holder, Lease, Store},
    unwind::caught,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, broadcast};
use tokio_util::{
    sync::CancellationToken,
    task::{AbortOnDropHandle, TaskTracker, task_tracker::TaskTrackerToken},
};
use tracing::{Instrument, Span, field::Empty};

use super::outbox::Sender;

/// The number of advanced threads by which a slow receiver may lag behind.
const MAX_LAG: usize = 256;

/// An engine that can advance a leased thread.
#[async_trait]
pub trait Advance: Send + Sync {
    /// Returns the graph whose threads this engine advances.
    fn graph(&self) -> GraphName;

    /// Advances the thread until nothing is left to do, and releases it. Returns the events that its actions wait for
    /// from then on.
    ///
    /// # Errors
    ///
    /// See [`Engine::advance`].
    async fn advance(&self, acquired: Acquired) -> Result<Vec<AwaitedEvent>, Error>;
}

#[async_trait]
impl<S: State> Advance for Engine<S> {
    fn graph(&self) -> GraphName {
        Self::graph(self)
    }

    async fn advance(&self, acquired: Acquired) -> Result<Vec<AwaitedEvent>, Error> {
        Self::advance(self, acquired).await
    }
}

/// A thread that was advanced, once its work is saved.
#[derive(Clone, Debug)]
pub struct Advanced {
    /// The thread.
    pub thread: ThreadId,
    /// The fence of the lease under which it was advanced: a later lease has a higher one.
    pub fence: u64,
    /// The events that its actions wait for; `None` if that is not known, since the work broke off.
    pub awaits: Option<Arc<[AwaitedEvent]>>,
}

/// The workers of one process.
#[derive(Clone)]
pub struct Workers(Arc<Inner>);

struct Inner {
    store: Arc<dyn Store>,
    engines: BTreeMap<GraphName, Arc<dyn Advance>>,
    /// The graphs of threads for which there is no engine here. Each is reported once.
    unknown: Mutex<BTreeSet<GraphName>>,
    sender: Sender,
    clock: Arc<dyn Clock>,
    name: WorkerId,
    lease: Duration,
    permits: Arc<Semaphore>,
    tasks: TaskTracker,
    stop: CancellationToken,
    /// The threads that this process is working on; true if another hint arrived in the meantime.
    busy: Mutex<HashMap<ThreadId, bool>>,
    /// Announces each thread that was advanced.
    advanced: broadcast::Sender<Advanced>,
}

/// The dependencies of [`Workers`].
pub struct WorkersDeps {
    /// The store of the threads.
    pub store: Arc<dyn Store>,
    /// The engines that advance threads, one for each graph.
    pub engines: Vec<Arc<dyn Advance>>,
    /// The sender of the threads' replies.
    pub sender: Sender,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The name of this process in leases.
    pub name: WorkerId,
    /// The duration of a lease.
    pub lease: Duration,
    /// The maximum number of threads that are worked on at the same time.
    pub threads: usize,
    /// The signal to stop.
    pub stop: CancellationToken,
}

impl Workers {
    /// Creates idle workers from their dependencies.
    pub fn new(deps: WorkersDeps) -> Self {
        let WorkersDeps { store, engines, sender, clock, name, lease, threads, stop } = deps;
        Self(Arc::new(Inner {
            store,
            engines: engines.into_iter().map(|engine| (engine.graph(), engine)).collect(),
            unknown: Mutex::default(),
            sender,
            clock,
            name,
            lease,
            permits: Arc::new(Semaphore::new(threads)),
            tasks: TaskTracker::new(),
            stop,
            busy: Mutex::default(),
            advanced: broadcast::Sender::new(MAX_LAG),
        }))
    }

    /// Returns the name of this process in leases and claims.
    pub fn name(&self) -> &WorkerId {
        &self.0.name
    }

    /// Returns a receiver of the threads that are advanced here from now on. A thread is sent once
    /// its work is saved.
    pub fn advanced(&self) -> broadcast::Receiver<Advanced> {
        self.0.advanced.subscribe()
    }

    /// Hints that a thread has work.
    pub fn wake(&self, thread: ThreadId) {
        if self.begin(&thread) {
            self.spawn(thread, None);
        }
    }

    /// Reserves a worker for a thread that is about to have work, so that the thread can be leased in the write that
    /// gives it the work. `None` if no worker is free, or one works on the thread already.
    pub fn reserve(&self, thread: &ThreadId) -> Option<Reservation> {
        if self.0.stop.is_cancelled() {
            return None;
        }
        let permit = self.0.permits.clone().try_acquire_owned().ok()?;
        let mut busy = self.0.busy.lock().expect("no holder panics");
        if busy.contains_key(thread) {
            return None; // this is no hint yet: what is about to be written may be a repeat
        }
        busy.insert(thread.clone(), false);
        let in_progress = self.0.tasks.token(); // counted before the lease, as in a sweep
        Some(Reservation {
            workers: self.clone(),
            thread: thread.clone(),
            permit: Some(permit),
            _in_progress: in_progress,
        })
    }

    /// Notes that this process works on a thread. Returns false if it already does, and notes the hint.
    fn begin(&self, thread: &ThreadId) -> bool {
        let mut busy = self.0.busy.lock().expect("no holder panics");
        if let Some(hinted) = busy.get_mut(thread) {
            *hinted = true;
            return false;
        }
        busy.insert(thread.clone(), false);
        true
    }

    /// Notes that this process no longer works on a thread. Returns false if a hint arrived in the meantime.
    fn end(&self, thread: &ThreadId) -> bool {
        let mut busy = self.0.busy.lock().expect("no holder panics");
        match busy.get_mut(thread) {
            Some(hinted) if *hinted => {
                *hinted = false;
                false
            }
            _ => {
                busy.remove(thread); // under the same lock: the next hint starts a new task
                true
            }
        }
    }

    /// Works on a thread, which is leased already if `leased` is given, with the permit of its worker.
    fn spawn(&self, thread: ThreadId, mut leased: Option<(Acquired, OwnedSemaphorePermit)>) {
        let workers = self.clone();
        let mut origin = Span::current();
        self.0.tasks.spawn(async move {
            let _busy = BusyGuard { workers: &workers, thread: &thread };
            loop {
                // What the thread is woken for later has another origin.
                let origin = std::mem::replace(&mut origin, Span::none());
                if let Some((acquired, _permit)) = leased.take() {
                    workers.advance(acquired).instrument(origin).await;
                } else {
                    // The permit comes before the lease, whose time is for working.
                    let Ok(_permit) = workers.0.permits.acquire().await else { return };
                    if workers.0.stop.is_cancelled() {
                        return;
                    }
                    workers.lease_and_advance(Some(&thread)).instrument(origin).await;
                }
                if workers.end(&thread) {
                    return;
                }
            }
        });
    }

    /// Leases and advances ready threads without a hint. Returns when no thread is ready or all
    /// permits are taken.
    pub async fn sweep(&self) {
        while !self.0.stop.is_cancelled() {
            let Ok(permit) = self.0.permits.clone().try_acquire_owned() else { return };
            // Counted before the lease: after it the store no longer lists the thread as ready, and
            // its task has not started yet.
            let in_progress = self.0.tasks.token();
            match self.0.store.acquire(&self.holder(), None).await {
                Ok(Some(acquired)) => {
                    let workers = self.clone();
                    self.0.tasks.spawn(async move {
                        workers.advance(acquired).await;
                        drop((permit, in_progress));
                    });
                }
                Ok(None) => return,
                Err(error) => {
                    tracing::warn!(error = cause::chain(&error), "Cannot look for ready threads");
                    return;
                }
            }
        }
    }

    /// Returns the tracker of the steps in progress.
    pub fn tasks(&self) -> &TaskTracker {
        &self.0.tasks
    }

    /// Waits for the steps in progress to finish, after the signal to stop.
    pub async fn drain(&self) {
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }

    /// Returns this worker as the holder of leases from now on.
    fn holder(&self) -> Holder {
        Holder::new(self.0.name.clone(), self.0.lease, self.0.clock.now())
    }

    async fn lease_and_advance(&self, only: Option<&ThreadId>) {
        match self.0.store.acquire(&self.holder(), only).await {
            Ok(Some(acquired)) => self.advance(acquired).await,
            Ok(None) => {}
            Err(error) => tracing::warn!(error = cause::chain(&error), "Cannot lease a thread"),
        }
    }

    async fn advance(&self, acquired: Acquired) {
        let lease = acquired.lease.clone();
        let thread = lease.thread.clone();
        let span = tracing::info_span!("advance", thread.id = %thread, fence = lease.fence, trace.id = Empty);
        let span = spans::begun(span);
        let around_work = if spans::are_exported() { span.clone() } else { Span::none() };
        let work = caught(self.advance_in_its_graph(acquired)).instrument(around_work);
        // A task of its own: a step that computes for long, such as one that draws a picture, keeps its lease.
        let keeper = tokio::spawn(self.clone().keep_lease(lease.clone()));
        let result = tokio::select! {
            biased; // work that has just ended has released the lease itself
            result = work => result,
            Ok(lost) = AbortOnDropHandle::new(keeper) => Ok(Err(lost)),
        };
        let awaits = match &result {
            Ok(Ok(awaits)) => Some(Arc::from(&awaits[..])),
            Ok(Err(_)) | Err(_) => None,
        };
        let report = async {
            match result {
                Ok(Ok(_)) => {}
                Ok(Err(Error::Fenced(_))) => tracing::warn!("Another worker has taken over this thread"),
                Ok(Err(Error::OtherGraph { graph, .. })) => self.report_unknown_graph(graph),
                Err(panicked) => {
                    metrics::counter!("countersign_threads_broken_off_total").increment(1);
                    tracing::error!(error = %panicked, "Thread cannot continue before its lease expires");
                }
                Ok(Err(error)) => {
                    tracing::error!(error = cause::chain(&error), "Thread cannot continue before its lease expires")
                }
            }
        };
        report.instrument(span).await;
        let _ = self.0.advanced.send(Advanced { thread: thread.clone(), fence: lease.fence, awaits }); // there may be no receiver
        self.0.sender.flush_finished(thread);
    }

    /// Has the engine of the thread's graph advance it. Without such an engine, the thread is
    /// released unchanged.
    async fn advance_in_its_graph(&self, acquired: Acquired) -> Result<Vec<AwaitedEvent>, Error> {
        let Lease { thread, graph, .. } = &acquired.lease;
        match self.0.engines.get(graph) {
            Some(engine) => engine.advance(acquired).await,
            None => {
                let unknown = Error::OtherGraph { thread: thread.clone(), graph: graph.clone() };
                Err(release_to_another(&*self.0.store, &*self.0.clock, &acquired, unknown).await)
            }
        }
    }

    /// Counts a thread that waits for a program that has its graph, and logs an error once for each
    /// graph.
    fn report_unknown_graph(&self, graph: GraphName) {
        metrics::counter!("countersign_threads_of_other_graphs_total").increment(1);
        let mut unknown = self.0.unknown.lock().expect("no holder panics");
        if !unknown.contains(&graph) {
            tracing::error!(graph.name = %graph, "Threads belong to a graph that this program does not have; they wait for one that has it");
            unknown.insert(graph);
        }
    }

    /// Renews the lease as long as the future is polled. Returns when the lease is lost.
    async fn keep_lease(self, lease: Lease) -> Error {
        loop {
            tokio::time::sleep(self.0.lease / 3).await;
            match self.0.store.renew(&lease, self.0.lease).await {
                Ok(()) => {}
                Err(Error::Fenced(thread)) => return Error::Fenced(thread),
                Err(error) => tracing::warn!(error = cause::chain(&error), "Cannot renew a lease"),
            }
        }
    }
}

/// A worker that was reserved for a thread ([`Workers::reserve`]). If it is dropped, the worker is free again.
pub struct Reservation {
    workers: Workers,
    thread: ThreadId,
    permit: Option<OwnedSemaphorePermit>,
    _in_progress: TaskTrackerToken,
}

impl Reservation {
    /// Returns who leases the thread, and for how long.
    pub fn holder(&self) -> Holder {
        self.workers.holder()
    }

    /// Begins the work on the thread. If it could not be leased in the same write, it is leased now.
    pub fn start(mut self, acquired: Option<Acquired>) {
        let leased = acquired.zip(self.permit.take());
        self.workers.spawn(self.thread.clone(), leased);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        // Otherwise the work has begun, or is begun for a hint that arrived in the meantime.
        if self.permit.take().is_some() && !self.workers.end(&self.thread) {
            self.workers.spawn(self.thread.clone(), None);
        }
    }
}

/// A guard that removes a thread from [`Inner::busy`] if its task panics. Otherwise all later hints
/// about the thread would be ignored.
struct BusyGuard<'a> {
    workers: &'a Workers,
    thread: &'a ThreadId,
}

impl Drop for BusyGuard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking()
            && let Ok(mut busy) = self.workers.0.busy.lock()
        {
            busy.remove(self.thread);
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use tokio::{sync::Notify, time::timeout};

    use super::*;
    use crate::runtime::outbox::tests::sender_without_slack;
    use countersign_core::{
        clock::{ManualClock, Timestamp},
        ids::CommitId,
    };
    use countersign_graph::store::{Changes, Delivery, Destination, Handling, Then, ThreadMessage};
    use countersign_store::sqlite::SqliteStore;

    /// The time-out of each wait.
    const BOUND: Duration = Duration::from_secs(30);

    const LEASE: Duration = Duration::from_secs(10);

    /// An engine that panics the first time.
    #[derive(Default)]
    struct PanicsOnce {
        calls: AtomicU32,
        called: Notify,
    }

    #[async_trait]
    impl Advance for PanicsOnce {
        fn graph(&self) -> GraphName {
            GraphName::default()
        }

        async fn advance(&self, _: Acquired) -> Result<Vec<AwaitedEvent>, Error> {
            let earlier = self.calls.fetch_add(1, Ordering::SeqCst);
            self.called.notify_one();
            assert!(earlier > 0, "the first call panics");
            Ok(Vec::new())
        }
    }

    /// An engine that records the messages of its graph's threads as read.
    struct Reader {
        graph: &'static str,
        store: Arc<dyn Store>,
        read: Mutex<Vec<(ThreadId, usize)>>,
    }

    #[async_trait]
    impl Advance for Reader {
        fn graph(&self) -> GraphName {
            self.graph.into()
        }

        async fn advance(&self, acquired: Acquired) -> Result<Vec<AwaitedEvent>, Error> {
            let Acquired { lease, saved, messages, .. } = acquired;
            let mut changes = Changes::new(CommitId::fresh(), lease.thread.clone());
            changes.acks = messages.iter().map(|message| message.seq).collect();
            self.store.commit(&lease, saved.version, &changes, Then::Release, None).await?;
            self.read.lock().unwrap().push((lease.thread, messages.len()));
            Ok(Vec::new())
        }
    }

    /// An engine that computes until its lease is renewed.
    struct Computes(Arc<CountedClock>);

    #[async_trait]
    impl Advance for Computes {
        fn graph(&self) -> GraphName {
            GraphName::default()
        }

        async fn advance(&self, _: Acquired) -> Result<Vec<AwaitedEvent>, Error> {
            let (began, before) = (std::time::Instant::now(), self.0.reads());
            while self.0.reads() == before {
                assert!(began.elapsed() < BOUND, "the lease is not renewed");
                std::thread::sleep(Duration::from_millis(1)); // it blocks, as a computation does
            }
            Ok(Vec::new())
        }
    }

    /// A clock that counts how often it is read, which the store does for each renewal.
    #[derive(Debug, Default)]
    struct CountedClock {
        clock: ManualClock,
        reads: AtomicU32,
    }

    impl CountedClock {
        fn reads(&self) -> u32 {
            self.reads.load(Ordering::SeqCst)
        }
    }

    impl Clock for CountedClock {
        fn now(&self) -> Timestamp {
            self.reads.fetch_add(1, Ordering::SeqCst);
            self.clock.now()
        }
    }

    /// Opens a store in a temporary folder, with its clock.
    pub(in crate::runtime) fn open_store() -> (Arc<dyn Store>, ManualClock, tempfile::TempDir) {
        let (folder, clock) = (tempfile::tempdir().unwrap(), ManualClock::default());
        let store = SqliteStore::open(folder.path().join("threads.sqlite"), Arc::new(clock.clone())).unwrap();
        (Arc::new(store), clock, folder)
    }

    pub(in crate::runtime) fn workers(
        store: &Arc<dyn Store>,
        clock: &ManualClock,
        engines: Vec<Arc<dyn Advance>>,
    ) -> Workers {
        let clock: Arc<dyn Clock> = Arc::new(clock.clone());
        Workers::new(WorkersDeps {
            store: store.clone(),
            engines,
            sender: sender_without_slack(store.clone(), clock.clone(), Vec::new()),
            clock,
            name: WorkerId::new("w"),
            lease: LEASE,
            threads: 1,
            stop: CancellationToken::new(),
        })
    }

    /// Delivers a message to the thread with this root in this graph.
    pub(in crate::runtime) async fn deliver(
        store: &Arc<dyn Store>,
        root: &str,
        graph: &str,
        at: Timestamp,
    ) -> ThreadId {
        let thread = ThreadId { team: "T1".into(), channel: "C1".into(), root: root.into() };
        let message = ThreadMessage::Said {
            by: "ana".into(),
            text: "hello".to_owned(),
            ts: "1.1".into(),
            addressed: true,
            request: None,
        };
        let to = Destination::Mailbox { thread: thread.clone(), addressed: true, message, graph: graph.into() };
        store.ingest(&Delivery { to, dedup: Vec::new(), at }, Handling::Later).await.unwrap();
        thread
    }

    #[tokio::test]
    async fn a_panic_leaves_no_thread_busy() {
        let (store, clock, _folder) = open_store();
        let engine = Arc::new(PanicsOnce::default());
        let workers = workers(&store, &clock, vec![engine.clone()]);
        let thread = deliver(&store, "1.1", "chat", clock.now()).await;

        workers.wake(thread.clone());
        timeout(BOUND, engine.called.notified()).await.unwrap();
        timeout(BOUND, workers.drain()).await.unwrap();
        assert!(workers.0.busy.lock().unwrap().is_empty(), "no thread is busy");
        clock.advance(LEASE * 2);
        workers.wake(thread);
        timeout(BOUND, engine.called.notified()).await.expect("the thread is advanced again after its lease");
        timeout(BOUND, workers.drain()).await.unwrap();
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_step_that_computes_for_long_keeps_its_lease() {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(CountedClock::default());
        let store = SqliteStore::open(folder.path().join("threads.sqlite"), clock.clone()).unwrap();
        let store: Arc<dyn Store> = Arc::new(store);
        let thread = deliver(&store, "1.1", "chat", clock.now()).await;
        let name = WorkerId::new("w");
        let acquired =
            store.acquire(&Holder::new(name.clone(), LEASE, clock.now()), Some(&thread)).await.unwrap().unwrap();
        let workers = Workers::new(WorkersDeps {
            sender: sender_without_slack(store.clone(), clock.clone(), Vec::new()),
            store,
            engines: vec![Arc::new(Computes(clock.clone()))],
            clock,
            name,
            lease: Duration::from_millis(30),
            threads: 1,
            stop: CancellationToken::new(),
        });
        let mut advanced = workers.advanced();
        workers.advance(acquired).await;
        let advanced = advanced.try_recv().unwrap();
        assert!(advanced.awaits.is_some(), "the work did not break off");
    }

    #[tokio::test]
    async fn a_reserved_worker_begins_with_the_thread_that_was_leased_for_it() {
        let (store, clock, _folder) = open_store();
        let chat = Arc::new(Reader { graph: "chat", store: store.clone(), read: Mutex::default() });
        let workers = workers(&store, &clock, vec![chat.clone()]);
        let first = deliver(&store, "1.1", "chat", clock.now()).await;
        let second = deliver(&store, "2.1", "chat", clock.now()).await;

        let worker = workers.reserve(&first).unwrap();
        assert!(workers.reserve(&second).is_none(), "there is one permit");
        let Holder { worker: name, ttl, now } = worker.holder();
        worker.start(store.acquire(&Holder::new(name.clone(), ttl, now), Some(&first)).await.unwrap());
        timeout(BOUND, workers.drain()).await.unwrap();
        assert_eq!(*chat.read.lock().unwrap(), [(first, 1)]);

        let worker = workers.reserve(&second).unwrap();
        workers.wake(second.clone());
        drop(worker);
        timeout(BOUND, workers.drain()).await.unwrap();
        assert_eq!(chat.read.lock().unwrap()[1..], [(second, 1)], "a hint counts even if the worker is given back");
        assert!(workers.0.busy.lock().unwrap().is_empty());
    }

    #[tokio::test]
    async fn each_thread_is_run_by_the_engine_of_its_graph_or_left_alone() {
        let (store, clock, _folder) = open_store();
        let reader = |graph| Arc::new(Reader { graph, store: store.clone(), read: Mutex::default() });
        let (chat, jobs, post) = (reader("chat"), reader("jobs"), reader("post"));
        let mut threads = Vec::new();
        for (root, graph) in [("1.1", "chat"), ("2.1", "jobs"), ("3.1", "post")] {
            threads.push(deliver(&store, root, graph, clock.now()).await);
        }
        let older = workers(&store, &clock, vec![chat.clone(), jobs.clone()]);
        for thread in &threads {
            older.wake(thread.clone());
        }
        timeout(BOUND, older.drain()).await.unwrap();
        assert_eq!(*chat.read.lock().unwrap(), [(threads[0].clone(), 1)]);
        assert_eq!(*jobs.read.lock().unwrap(), [(threads[1].clone(), 1)]);
        let reported: Vec<_> = older.0.unknown.lock().unwrap().iter().cloned().collect();
        assert_eq!(reported, [GraphName::new("post")]);

        deliver(&store, "3.1", "post", clock.now()).await;
        let newer = workers(&store, &clock, vec![post.clone()]);
        newer.wake(threads[2].clone());
        timeout(BOUND, newer.drain()).await.unwrap();
        assert_eq!(*post.read.lock().unwrap(), [(threads[2].clone(), 2)], "a newer process finds all messages");
    }
}
