//! A store around another one, which is asked before each write and told after it.

use std::{fmt::Debug, sync::Arc, time::Duration};

use async_trait::async_trait;
use countersign::{
    clock::Timestamp,
    graph::{
        action::ActionRecord,
        store::{
            Acquired, ActionFilter, ActionKey, AuditTrail, Backlog, Changes, Claimed, ClaimedInteraction, DeadLetter,
            Delivery, Destination, Durability, Error, Forget, Handling, Holder, Ingested, Keep, Lease, Posted,
            QueuedMessage, Register, Saved, Sent, Seq, Settlement, StepRecord, Store, Then, ThreadFilter,
            ThreadSummary, Unreadable, Unwritable, Version, Waiting,
        },
    },
    ids::{Slot, ThreadId},
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
    async fn ingest(&self, delivery: &Delivery, handling: Handling<'_>) -> Result<(Ingested, Option<Acquired>), Error> {
        let new = |(ingested, _): &(Ingested, _)| *ingested != Ingested::Duplicate;
        let later = match (handling, &delivery.to) {
            (Handling::Lease(holder), Destination::Mailbox { thread, .. }) if !self.inner.is_shared() => {
                Some((holder, thread)) // two writes there
            }
            _ => None,
        };
        let name = if matches!(handling, Handling::Apply(..)) { "apply" } else { "ingest" };
        let handling = if later.is_some() { Handling::Later } else { handling };
        let (ingested, acquired) = self.claim(name, new, self.inner.ingest(delivery, handling)).await?;
        let Some((holder, thread)) = later else { return Ok((ingested, acquired)) };
        let acquired = self.acquire(holder, Some(thread)).await;
        Ok((ingested, acquired.unwrap_or_default()))
    }

    async fn acquire(&self, holder: &Holder, only: Option<&ThreadId>) -> Result<Option<Acquired>, Error> {
        self.claim("acquire", Option::is_some, self.inner.acquire(holder, only)).await
    }

    async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<(), Error> {
        self.inner.renew(lease, ttl).await
    }

    async fn messages(
        &self,
        thread: &ThreadId,
        after: Seq,
        lease: Option<&Lease>,
    ) -> Result<Vec<QueuedMessage>, Error> {
        self.inner.messages(thread, after, lease).await
    }

    async fn commit(
        &self,
        lease: &Lease,
        expected: Version,
        changes: &Changes,
        then: Then,
        claims: Option<(&Holder, usize)>,
    ) -> Result<(Version, Vec<Claimed>), Error> {
        self.watch.commits(changes).await?;
        let later = claims.filter(|_| !self.inner.is_shared()); // two writes there
        let claims = if later.is_some() { None } else { claims };
        let commit = self.inner.commit(lease, expected, changes, then, claims);
        let (version, claimed) = self.certain("commit", commit).await?;
        let Some((holder, most)) = later else { return Ok((version, claimed)) };
        let claimed = self.claim_outbox(holder, most.min(1), Some(&lease.thread)).await;
        Ok((version, claimed.unwrap_or_default()))
    }

    async fn apply(&self, changes: &Changes) -> Result<(), Error> {
        self.certain("apply", self.inner.apply(changes)).await
    }

    async fn claim_interaction(&self, ttl: Duration, limit: usize) -> Result<Vec<ClaimedInteraction>, Error> {
        self.claim("claim_interaction", |found| !found.is_empty(), self.inner.claim_interaction(ttl, limit)).await
    }

    async fn settle_interaction(&self, entry: &ClaimedInteraction, settlement: Settlement<'_>) -> Result<(), Error> {
        let settle = self.inner.settle_interaction(entry, settlement);
        match settlement {
            Settlement::Done => self.certain("finish_interaction", settle).await,
            Settlement::Fail { .. } => self.certain("fail_interaction", settle).await,
            Settlement::Retry(_) | Settlement::SetAside(_) => settle.await,
        }
    }

    async fn claim_outbox(
        &self,
        holder: &Holder,
        limit: usize,
        only: Option<&ThreadId>,
    ) -> Result<Vec<Claimed>, Error> {
        let claim = self.inner.claim_outbox(holder, limit, only);
        self.claim("claim_outbox", |found| !found.is_empty(), claim).await
    }

    async fn holds_outbox(&self, claimed: &Claimed) -> Result<bool, Error> {
        self.inner.holds_outbox(claimed).await
    }

    async fn finish_outbox(
        &self,
        sent: &[(Claimed, Sent)],
        next: Option<&Holder>,
    ) -> Result<(Vec<bool>, Option<Claimed>), Error> {
        self.certain("finish_outbox", self.inner.finish_outbox(sent, next)).await
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

    async fn action(&self, key: ActionKey<'_>) -> Result<Option<ActionRecord>, Error> {
        self.inner.action(key).await
    }

    async fn actions_and_register(
        &self,
        filter: &ActionFilter,
        key: Option<&str>,
    ) -> Result<(Vec<ActionRecord>, Option<Register>), Error> {
        self.inner.actions_and_register(filter, key).await
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

    async fn forget(&self, forget: &Forget) -> Result<bool, Error> {
        self.certain("forget", self.inner.forget(forget)).await
    }

    async fn threads(&self, filter: ThreadFilter, limit: usize) -> Result<Vec<ThreadSummary>, Error> {
        self.inner.threads(filter, limit).await
    }

    async fn backlog(&self) -> Result<Backlog, Error> {
        self.inner.backlog().await
    }

    async fn put_blob(&self, bytes: &[u8], keep: Keep<'_>) -> Result<String, Error> {
        let name = if matches!(keep, Keep::WithThread(_)) { "put_file" } else { "put_blob" };
        self.certain(name, self.inner.put_blob(bytes, keep)).await
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
