//! A store in which somebody is faster: at a chosen moment another write comes first, or the process never gets to it.

use std::{
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use countersign::{
    clock::Timestamp,
    graph::{
        action::{ActionRecord, Label, Status},
        store::{
            Acquired, ActionFilter, AuditEntry, Backlog, Changes, Claimed, ClaimedInteraction, DeadLetter, Delivery,
            Durability, Error, Forget, Ingested, Lease, Posted, QueuedMessage, Register, Saved, Sent, Seq, StepRecord,
            Store, Then, ThreadSummary, Unreadable, Version, Waiting,
        },
    },
    ids::{ActionId, ApprovalId, Partition, Slot, ThreadId, WorkerId},
};
use futures_util::future::BoxFuture;
use serde_json::Value;

/// What comes first. An error takes the place of the write: it is never made.
type Act = Box<dyn FnOnce(Arc<dyn Store>) -> BoxFuture<'static, Result<(), Error>> + Send>;
/// Which write it comes before.
type Which = Box<dyn Fn(&Changes) -> bool + Send>;

/// Another store, and what happens right before a write to it.
pub(crate) struct RacedStore {
    inner: Arc<dyn Store>,
    acts: Mutex<Vec<(Which, Act)>>,
}

impl fmt::Debug for RacedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RacedStore").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl RacedStore {
    pub(crate) fn new(inner: Arc<dyn Store>) -> Self {
        Self { inner, acts: Mutex::default() }
    }

    /// Has `act` happen once, right before the next commit that is of this kind.
    pub(crate) fn before_commit<F>(
        &self,
        which: impl Fn(&Changes) -> bool + Send + 'static,
        act: impl FnOnce(Arc<dyn Store>) -> F + Send + 'static,
    ) where
        F: Future<Output = Result<(), Error>> + Send + 'static,
    {
        self.acts.lock().unwrap().push((Box::new(which), Box::new(move |store| Box::pin(act(store)))));
    }

    /// Whether everything that was to happen did.
    pub(crate) fn is_spent(&self) -> bool {
        self.acts.lock().unwrap().is_empty()
    }

    fn due(&self, changes: &Changes) -> Option<Act> {
        let mut acts = self.acts.lock().unwrap();
        let at = acts.iter().position(|(which, _)| which(changes))?;
        Some(acts.remove(at).1)
    }
}

#[async_trait]
impl Store for RacedStore {
    async fn ingest(&self, delivery: &Delivery) -> Result<Ingested, Error> {
        self.inner.ingest(delivery).await
    }

    async fn acquire(
        &self,
        worker: &WorkerId,
        ttl: Duration,
        now: Timestamp,
        only: Option<&ThreadId>,
    ) -> Result<Option<Acquired>, Error> {
        self.inner.acquire(worker, ttl, now, only).await
    }

    async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<(), Error> {
        self.inner.renew(lease, ttl).await
    }

    async fn messages(&self, lease: &Lease, after: Seq) -> Result<Vec<QueuedMessage>, Error> {
        self.inner.messages(lease, after).await
    }

    async fn unread(&self, thread: &ThreadId) -> Result<Vec<QueuedMessage>, Error> {
        self.inner.unread(thread).await
    }

    async fn commit(&self, lease: &Lease, expected: Version, changes: &Changes, then: Then) -> Result<Version, Error> {
        if let Some(act) = self.due(changes) {
            act(self.inner.clone()).await?;
        }
        self.inner.commit(lease, expected, changes, then).await
    }

    async fn apply(&self, changes: &Changes) -> Result<(), Error> {
        self.inner.apply(changes).await
    }

    async fn claim_interaction(
        &self,
        worker: &WorkerId,
        ttl: Duration,
        limit: usize,
    ) -> Result<Vec<ClaimedInteraction>, Error> {
        self.inner.claim_interaction(worker, ttl, limit).await
    }

    async fn finish_interaction(&self, partition: Partition, seq: Seq) -> Result<(), Error> {
        self.inner.finish_interaction(partition, seq).await
    }

    async fn retry_interaction(&self, entry: &ClaimedInteraction, wait: Duration) -> Result<(), Error> {
        self.inner.retry_interaction(entry, wait).await
    }

    async fn fail_interaction(&self, entry: &ClaimedInteraction, reason: &str, at: Timestamp) -> Result<(), Error> {
        self.inner.fail_interaction(entry, reason, at).await
    }

    async fn set_aside_interaction(&self, partition: Partition, seq: Seq, why: &str) -> Result<(), Error> {
        self.inner.set_aside_interaction(partition, seq, why).await
    }

    async fn claim_outbox(
        &self,
        worker: &WorkerId,
        ttl: Duration,
        now: Timestamp,
        limit: usize,
        only: Option<&ThreadId>,
    ) -> Result<Vec<Claimed>, Error> {
        self.inner.claim_outbox(worker, ttl, now, limit, only).await
    }

    async fn holds_outbox(&self, claimed: &Claimed) -> Result<bool, Error> {
        self.inner.holds_outbox(claimed).await
    }

    async fn finish_outbox(&self, claimed: &Claimed, sent: &Sent) -> Result<bool, Error> {
        self.inner.finish_outbox(claimed, sent).await
    }

    async fn waiting(&self, before: Timestamp, limit: usize) -> Result<Vec<Waiting>, Error> {
        self.inner.waiting(before, limit).await
    }

    async fn dead_letters(&self, limit: usize) -> Result<Vec<DeadLetter>, Error> {
        self.inner.dead_letters(limit).await
    }

    async fn send_again(&self, id: &str, now: Timestamp) -> Result<bool, Error> {
        self.inner.send_again(id, now).await
    }

    async fn unreadable(&self, limit: usize) -> Result<Vec<Unreadable>, Error> {
        self.inner.unreadable(limit).await
    }

    async fn probe(&self) -> Result<(), Error> {
        self.inner.probe().await
    }

    async fn fire_timers(&self, now: Timestamp) -> Result<usize, Error> {
        self.inner.fire_timers(now).await
    }

    async fn sweep(&self, now: Timestamp) -> Result<(), Error> {
        self.inner.sweep(now).await
    }

    async fn action_by_approval(&self, approval: &ApprovalId) -> Result<Option<ActionRecord>, Error> {
        self.inner.action_by_approval(approval).await
    }

    async fn action(&self, thread: &ThreadId, id: &ActionId) -> Result<Option<ActionRecord>, Error> {
        self.inner.action(thread, id).await
    }

    async fn actions(&self, filter: &ActionFilter) -> Result<Vec<ActionRecord>, Error> {
        self.inner.actions(filter).await
    }

    async fn actions_under(
        &self,
        labels: &[Label],
        statuses: &[Status],
        limit: usize,
    ) -> Result<Vec<ActionRecord>, Error> {
        self.inner.actions_under(labels, statuses, limit).await
    }

    async fn load(&self, thread: &ThreadId) -> Result<Option<Saved>, Error> {
        self.inner.load(thread).await
    }

    async fn steps(
        &self,
        thread: &ThreadId,
        after: Version,
        limit: usize,
    ) -> Result<Vec<(Version, StepRecord)>, Error> {
        self.inner.steps(thread, after, limit).await
    }

    async fn audit(&self, thread: &ThreadId) -> Result<Vec<AuditEntry>, Error> {
        self.inner.audit(thread).await
    }

    async fn posted(&self, thread: &ThreadId, slot: &Slot) -> Result<Option<Posted>, Error> {
        self.inner.posted(thread, slot).await
    }

    async fn finished(&self, before: Timestamp, limit: usize) -> Result<Vec<ThreadId>, Error> {
        self.inner.finished(before, limit).await
    }

    async fn forget(&self, forget: &Forget) -> Result<bool, Error> {
        self.inner.forget(forget).await
    }

    async fn threads(&self, limit: usize) -> Result<Vec<ThreadSummary>, Error> {
        self.inner.threads(limit).await
    }

    async fn backlog(&self) -> Result<Backlog, Error> {
        self.inner.backlog().await
    }

    async fn put_blob(&self, bytes: &[u8], keep: Option<Duration>) -> Result<String, Error> {
        self.inner.put_blob(bytes, keep).await
    }

    async fn put_file(&self, thread: &ThreadId, bytes: &[u8]) -> Result<String, Error> {
        self.inner.put_file(thread, bytes).await
    }

    async fn get_blob(&self, hash: &str) -> Result<Option<Vec<u8>>, Error> {
        self.inner.get_blob(hash).await
    }

    async fn register(&self, key: &str) -> Result<Register, Error> {
        self.inner.register(key).await
    }

    async fn set_register(&self, key: &str, expected: u64, value: &Value) -> Result<bool, Error> {
        self.inner.set_register(key, expected, value).await
    }

    async fn durability(&self) -> Result<Durability, Error> {
        self.inner.durability().await
    }
}
