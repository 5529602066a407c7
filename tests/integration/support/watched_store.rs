//! A store around another one, which is asked before each write and told after it.

use std::{fmt::Debug, sync::Arc, time::Duration};

use async_trait::async_trait;
use countersign::{
    clock::Timestamp,
    graph::{
        action::{ActionRecord, Label, Status},
        store::{
            Acquired, ActionFilter, AuditTrail, Backlog, Changes, Claimed, ClaimedInteraction, DeadLetter, Delivery,
            Destination, Durability, Error, Forget, Holder, Ingested, KnownCard, Lease, Posted, QueuedMessage,
            Register, Saved, Sent, Seq, StepRecord, Store, Then, ThreadSummary, Unreadable, Unwritable, Version,
            Waiting,
        },
    },
    ids::{ActionId, ApprovalId, Partition, Slot, ThreadId, WorkerId},
};
use serde_json::Value;

/// Stands beside the writes of a store. Looking in vain for work, renewing a lease and housekeeping are none.
#[async_trait]
pub(crate) trait Watch: Debug + Send + Sync {
    /// A write begins; a `certain` one changes something for sure. An error takes its place: it is never made.
    async fn begins(&self, _name: &str, _certain: bool) -> Result<(), Error> {
        Ok(())
    }

    /// A commit is about to begin. An error takes its place.
    async fn commits(&self, _changes: &Changes) -> Result<(), Error> {
        Ok(())
    }

    /// A write that changed something is done.
    fn done(&self, _name: &str) {}
}

/// Another store, and who watches it.
#[derive(Debug)]
pub(crate) struct WatchedStore<W> {
    inner: Arc<dyn Store>,
    pub(crate) watch: W,
}

impl<W: Watch> WatchedStore<W> {
    pub(crate) fn new(inner: Arc<dyn Store>, watch: W) -> Self {
        Self { inner, watch }
    }

    async fn certain<T>(&self, name: &str, write: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        self.watch.begins(name, true).await?;
        let result = write.await;
        if result.is_ok() {
            self.watch.done(name);
        }
        result
    }

    async fn claim<T>(
        &self,
        name: &str,
        found: impl FnOnce(&T) -> bool,
        write: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        self.watch.begins(name, false).await?;
        let result = write.await;
        if result.as_ref().is_ok_and(found) {
            self.watch.done(name);
        }
        result
    }
}

#[async_trait]
impl<W: Watch> Store for WatchedStore<W> {
    async fn ingest(&self, delivery: &Delivery) -> Result<Ingested, Error> {
        let new = |ingested: &Ingested| *ingested != Ingested::Duplicate;
        self.claim("ingest", new, self.inner.ingest(delivery)).await
    }

    async fn acquire(
        &self,
        worker: &WorkerId,
        ttl: Duration,
        now: Timestamp,
        only: Option<&ThreadId>,
    ) -> Result<Option<Acquired>, Error> {
        self.claim("acquire", Option::is_some, self.inner.acquire(worker, ttl, now, only)).await
    }

    async fn ingest_and_acquire(
        &self,
        delivery: &Delivery,
        holder: &Holder,
    ) -> Result<(Ingested, Option<Acquired>), Error> {
        if let (false, Destination::Mailbox { thread, .. }) = (self.inner.is_shared(), &delivery.to) {
            let ingested = self.ingest(delivery).await?; // two writes there
            let acquired = self.acquire(&holder.worker, holder.ttl, holder.now, Some(thread)).await;
            return Ok((ingested, acquired.unwrap_or_default()));
        }
        let new = |(ingested, _): &(Ingested, _)| *ingested != Ingested::Duplicate;
        self.claim("ingest", new, self.inner.ingest_and_acquire(delivery, holder)).await
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
        self.watch.commits(changes).await?;
        self.certain("commit", self.inner.commit(lease, expected, changes, then)).await
    }

    async fn commit_and_claim(
        &self,
        lease: &Lease,
        expected: Version,
        changes: &Changes,
        then: Then,
        holder: &Holder,
        most: usize,
    ) -> Result<(Version, Vec<Claimed>), Error> {
        if !self.inner.is_shared() {
            let version = self.commit(lease, expected, changes, then).await?; // two writes there
            let (worker, thread) = (&holder.worker, Some(&lease.thread));
            let claimed = self.claim_outbox(worker, holder.ttl, holder.now, most.min(1), thread).await;
            return Ok((version, claimed.unwrap_or_default()));
        }
        self.watch.commits(changes).await?;
        let commit = self.inner.commit_and_claim(lease, expected, changes, then, holder, most);
        self.certain("commit", commit).await
    }

    async fn apply(&self, changes: &Changes) -> Result<(), Error> {
        self.certain("apply", self.inner.apply(changes)).await
    }

    async fn ingest_and_apply(
        &self,
        delivery: &Delivery,
        changes: &Changes,
        holder: Option<&Holder>,
    ) -> Result<(bool, Option<Acquired>), Error> {
        self.claim("apply", |(is_new, _)| *is_new, self.inner.ingest_and_apply(delivery, changes, holder)).await
    }

    async fn claim_interaction(
        &self,
        worker: &WorkerId,
        ttl: Duration,
        limit: usize,
    ) -> Result<Vec<ClaimedInteraction>, Error> {
        self.claim("claim_interaction", |found| !found.is_empty(), self.inner.claim_interaction(worker, ttl, limit))
            .await
    }

    async fn finish_interaction(&self, partition: Partition, seq: Seq) -> Result<(), Error> {
        self.certain("finish_interaction", self.inner.finish_interaction(partition, seq)).await
    }

    async fn claim_outbox(
        &self,
        worker: &WorkerId,
        ttl: Duration,
        now: Timestamp,
        limit: usize,
        only: Option<&ThreadId>,
    ) -> Result<Vec<Claimed>, Error> {
        let claim = self.inner.claim_outbox(worker, ttl, now, limit, only);
        self.claim("claim_outbox", |found| !found.is_empty(), claim).await
    }

    async fn holds_outbox(&self, claimed: &Claimed) -> Result<bool, Error> {
        self.inner.holds_outbox(claimed).await
    }

    async fn finish_outbox(&self, claimed: &Claimed, sent: &Sent) -> Result<bool, Error> {
        self.certain("finish_outbox", self.inner.finish_outbox(claimed, sent)).await
    }

    async fn finish_and_claim(
        &self,
        claimed: &Claimed,
        sent: &Sent,
        ttl: Duration,
        now: Timestamp,
    ) -> Result<(bool, Option<Claimed>), Error> {
        self.certain("finish_outbox", self.inner.finish_and_claim(claimed, sent, ttl, now)).await
    }

    async fn finish_all_and_claim(
        &self,
        sent: &[(Claimed, Sent)],
        holder: &Holder,
    ) -> Result<(Vec<bool>, Option<Claimed>), Error> {
        self.certain("finish_outbox", self.inner.finish_all_and_claim(sent, holder)).await
    }

    async fn retry_interaction(&self, entry: &ClaimedInteraction, wait: Duration) -> Result<(), Error> {
        self.inner.retry_interaction(entry, wait).await
    }

    async fn fail_interaction(&self, entry: &ClaimedInteraction, reason: &str, at: Timestamp) -> Result<(), Error> {
        self.certain("fail_interaction", self.inner.fail_interaction(entry, reason, at)).await
    }

    async fn waiting(&self, before: Timestamp, limit: usize) -> Result<Vec<Waiting>, Error> {
        self.inner.waiting(before, limit).await
    }

    async fn dead_letters(&self, limit: usize) -> Result<Vec<DeadLetter>, Error> {
        self.inner.dead_letters(limit).await
    }

    async fn send_again(&self, id: &str, now: Timestamp) -> Result<bool, Error> {
        self.certain("send_again", self.inner.send_again(id, now)).await
    }

    async fn is_anything_due(&self, now: Timestamp) -> Result<bool, Error> {
        self.inner.is_anything_due(now).await
    }

    async fn fire_timers(&self, now: Timestamp) -> Result<usize, Error> {
        self.claim("fire_timers", |fired| *fired > 0, self.inner.fire_timers(now)).await
    }

    async fn sweep(&self, now: Timestamp) -> Result<(), Error> {
        self.inner.sweep(now).await
    }

    async fn action_by_approval(&self, approval: &ApprovalId) -> Result<Option<ActionRecord>, Error> {
        self.inner.action_by_approval(approval).await
    }

    fn note_posted(&self, posted: &Posted) {
        self.inner.note_posted(posted);
    }

    async fn known_card(&self, approval: &ApprovalId) -> Option<KnownCard> {
        self.inner.known_card(approval).await
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

    async fn actions_and_register(
        &self,
        labels: &[Label],
        statuses: &[Status],
        limit: usize,
        key: &str,
    ) -> Result<(Vec<ActionRecord>, Option<Register>), Error> {
        self.inner.actions_and_register(labels, statuses, limit, key).await
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

    async fn audit(&self, thread: &ThreadId) -> Result<AuditTrail, Error> {
        self.inner.audit(thread).await
    }

    async fn posted(&self, thread: &ThreadId, slot: &Slot) -> Result<Option<Posted>, Error> {
        self.inner.posted(thread, slot).await
    }

    async fn finished(&self, before: Timestamp, limit: usize) -> Result<Vec<ThreadId>, Error> {
        self.inner.finished(before, limit).await
    }

    async fn forget(&self, forget: &Forget) -> Result<bool, Error> {
        self.certain("forget", self.inner.forget(forget)).await
    }

    async fn threads(&self, limit: usize) -> Result<Vec<ThreadSummary>, Error> {
        self.inner.threads(limit).await
    }

    async fn backlog(&self) -> Result<Backlog, Error> {
        self.inner.backlog().await
    }

    async fn put_blob(&self, bytes: &[u8], keep: Option<Duration>) -> Result<String, Error> {
        self.certain("put_blob", self.inner.put_blob(bytes, keep)).await
    }

    async fn put_file(&self, thread: &ThreadId, bytes: &[u8]) -> Result<String, Error> {
        self.certain("put_file", self.inner.put_file(thread, bytes)).await
    }

    async fn get_blob(&self, hash: &str) -> Result<Option<Vec<u8>>, Error> {
        self.inner.get_blob(hash).await
    }

    async fn register(&self, key: &str) -> Result<Register, Error> {
        self.inner.register(key).await
    }

    async fn set_register(&self, key: &str, expected: u64, value: &Value) -> Result<bool, Error> {
        let family = key.rsplit_once('/').map_or("", |(family, _)| family);
        let name = format!("set_register {family}");
        self.certain(&name, self.inner.set_register(key, expected, value)).await
    }

    async fn set_aside_interaction(&self, partition: Partition, seq: Seq, why: &str) -> Result<(), Error> {
        self.inner.set_aside_interaction(partition, seq, why).await
    }

    async fn unreadable(&self, limit: usize) -> Result<Vec<Unreadable>, Error> {
        self.inner.unreadable(limit).await
    }

    async fn probe(&self) -> Result<Vec<Unwritable>, Error> {
        self.inner.probe().await
    }

    async fn durability(&self) -> Result<Durability, Error> {
        self.inner.durability().await
    }
}
