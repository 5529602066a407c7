//! A store that seals all data that can lead to a change. Write access to the inner store is not
//! enough to forge such data: that takes the key as well.
//!
//! Every action record is sealed as a whole on each write and verified on each read. The result is
//! in [`ActionRecord::proof`], which the engine checks before it acts on a record. Interactions in
//! the inbox and the registers in [`SealScope::registers`] are sealed too, since each of them can
//! lead to a change, and so are external events, which an approved action may wait for.
//!
//! *Architecture Invariant:* a record that was read with an invalid seal is never sealed again. It
//! is written with the seal that it has, so an altered record remains recognisable as altered.

mod recent;
mod sealing;

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use countersign_core::{
    clock::Timestamp,
    ids::{ActionId, ApprovalId, Partition, Slot, ThreadId, WorkerId},
};
use countersign_graph::{
    action::{ActionRecord, Label, Status},
    keyring::Keyring,
    store::{
        Acquired, ActionFilter, AuditTrail, Backlog, Changes, Claimed, ClaimedInteraction, DeadLetter, Delivery,
        Durability, Error, Forget, Holder, Ingested, KnownCard, Lease, Posted, QueuedMessage, Register, Saved, Sent,
        Seq, StepRecord, Store, Then, ThreadSummary, Unreadable, Unwritable, Version, Waiting,
    },
};
use serde_json::Value;

use self::{recent::RecentRecords, sealing::INBOX};

/// The data to seal in addition to action records.
#[derive(Clone, Copy)]
pub struct SealScope {
    /// The registers that are sealed.
    pub registers: &'static [&'static str],
    /// The beginnings of the keys of further registers that are sealed, such as those with the notes about each person.
    pub register_families: &'static [&'static str],
}

impl SealScope {
    fn has_register(&self, key: &str) -> bool {
        self.registers.contains(&key) || self.register_families.iter().any(|family| key.starts_with(family))
    }
}

/// A store that seals the data written to another store and verifies the data read from it.
pub struct SealedStore {
    inner: Arc<dyn Store>,
    keys: Arc<Keyring>,
    scope: SealScope,
    recent: RecentRecords,
}

impl fmt::Debug for SealedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SealedStore").field("inner", &self.inner).field("keys", &self.keys).finish_non_exhaustive()
    }
}

impl SealedStore {
    /// Wraps `inner` with the keys to seal and verify with.
    pub fn new(inner: Arc<dyn Store>, keys: Arc<Keyring>, scope: SealScope) -> Self {
        Self { inner, keys, scope, recent: RecentRecords::default() }
    }
}

#[async_trait]
impl Store for SealedStore {
    async fn ingest(&self, delivery: &Delivery) -> Result<Ingested, Error> {
        self.inner.ingest(&self.sealed_delivery(delivery)).await
    }

    async fn ingest_and_acquire(
        &self,
        delivery: &Delivery,
        holder: &Holder,
    ) -> Result<(Ingested, Option<Acquired>), Error> {
        let (ingested, acquired) = self.inner.ingest_and_acquire(&self.sealed_delivery(delivery), holder).await?;
        Ok((ingested, acquired.map(|acquired| self.unsealed(acquired))))
    }

    async fn acquire(
        &self,
        worker: &WorkerId,
        ttl: Duration,
        now: Timestamp,
        only: Option<&ThreadId>,
    ) -> Result<Option<Acquired>, Error> {
        let acquired = self.inner.acquire(worker, ttl, now, only).await?;
        Ok(acquired.map(|acquired| self.unsealed(acquired)))
    }

    async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<(), Error> {
        self.inner.renew(lease, ttl).await
    }

    async fn messages(&self, lease: &Lease, after: Seq) -> Result<Vec<QueuedMessage>, Error> {
        Ok(self.unsealed_messages(&lease.thread, self.inner.messages(lease, after).await?))
    }

    async fn unread(&self, thread: &ThreadId) -> Result<Vec<QueuedMessage>, Error> {
        Ok(self.unsealed_messages(thread, self.inner.unread(thread).await?))
    }

    async fn commit(&self, lease: &Lease, expected: Version, changes: &Changes, then: Then) -> Result<Version, Error> {
        let sealed = self.sealed_changes(changes);
        let written = self.inner.commit(lease, expected, &sealed, then).await;
        self.after_write(sealed, written)
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
        let sealed = self.sealed_changes(changes);
        let written = self.inner.commit_and_claim(lease, expected, &sealed, then, holder, most).await;
        self.after_write(sealed, written)
    }

    async fn apply(&self, changes: &Changes) -> Result<(), Error> {
        let sealed = self.sealed_changes(changes);
        let written = self.inner.apply(&sealed).await;
        self.after_write(sealed, written)
    }

    async fn ingest_and_apply(
        &self,
        delivery: &Delivery,
        changes: &Changes,
        holder: Option<&Holder>,
    ) -> Result<(bool, Option<Acquired>), Error> {
        let (delivery, changes) = (self.sealed_delivery(delivery), self.sealed_changes(changes));
        let written = self.inner.ingest_and_apply(&delivery, &changes, holder).await;
        let (is_new, acquired) = self.after_write(changes, written)?;
        Ok((is_new, acquired.map(|acquired| self.unsealed(acquired))))
    }

    async fn claim_interaction(
        &self,
        worker: &WorkerId,
        ttl: Duration,
        limit: usize,
    ) -> Result<Vec<ClaimedInteraction>, Error> {
        let mut claimed = self.inner.claim_interaction(worker, ttl, limit).await?;
        for interaction in &mut claimed {
            interaction.entry = match self.unseal_value(INBOX, &interaction.entry) {
                Ok(Some(entry)) => entry,
                // It cannot be parsed as an interaction, and is therefore set aside.
                refused => {
                    tracing::error!(interaction.seq = interaction.seq, proof = ?refused.err(), "An interaction has no valid seal");
                    Value::Null
                }
            };
        }
        Ok(claimed)
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

    async fn finish_and_claim(
        &self,
        claimed: &Claimed,
        sent: &Sent,
        ttl: Duration,
        now: Timestamp,
    ) -> Result<(bool, Option<Claimed>), Error> {
        self.inner.finish_and_claim(claimed, sent, ttl, now).await
    }

    async fn finish_all_and_claim(
        &self,
        sent: &[(Claimed, Sent)],
        holder: &Holder,
    ) -> Result<(Vec<bool>, Option<Claimed>), Error> {
        self.inner.finish_all_and_claim(sent, holder).await
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

    fn is_shared(&self) -> bool {
        self.inner.is_shared()
    }

    async fn probe(&self) -> Result<Vec<Unwritable>, Error> {
        self.inner.probe().await
    }

    async fn is_anything_due(&self, now: Timestamp) -> Result<bool, Error> {
        self.inner.is_anything_due(now).await
    }

    async fn fire_timers(&self, now: Timestamp) -> Result<usize, Error> {
        self.inner.fire_timers(now).await
    }

    async fn sweep(&self, now: Timestamp) -> Result<(), Error> {
        self.inner.sweep(now).await
    }

    async fn finished(&self, before: Timestamp, limit: usize) -> Result<Vec<ThreadId>, Error> {
        self.inner.finished(before, limit).await
    }

    async fn forget(&self, forget: &Forget) -> Result<bool, Error> {
        self.inner.forget(forget).await
    }

    async fn action_by_approval(&self, approval: &ApprovalId) -> Result<Option<ActionRecord>, Error> {
        let found = self.inner.action_by_approval(approval).await?;
        Ok(found.map(|record| self.verified_match(record, |record| record.approval == *approval)))
    }

    fn note_posted(&self, posted: &Posted) {
        self.inner.note_posted(posted);
    }

    async fn known_card(&self, approval: &ApprovalId) -> Option<KnownCard> {
        let KnownCard { record, posted } = self.inner.known_card(approval).await?;
        Some(KnownCard { record: self.verified_match(record, |record| record.approval == *approval), posted })
    }

    async fn action(&self, thread: &ThreadId, id: &ActionId) -> Result<Option<ActionRecord>, Error> {
        let found = self.inner.action(thread, id).await?;
        Ok(found.map(|record| self.verified_match(record, |record| record.id == *id && record.thread == *thread)))
    }

    async fn actions(&self, filter: &ActionFilter) -> Result<Vec<ActionRecord>, Error> {
        Ok(self.all_verified(self.inner.actions(filter).await?))
    }

    async fn actions_under(
        &self,
        labels: &[Label],
        statuses: &[Status],
        limit: usize,
    ) -> Result<Vec<ActionRecord>, Error> {
        Ok(self.all_verified(self.inner.actions_under(labels, statuses, limit).await?))
    }

    async fn actions_and_register(
        &self,
        labels: &[Label],
        statuses: &[Status],
        limit: usize,
        key: &str,
    ) -> Result<(Vec<ActionRecord>, Option<Register>), Error> {
        let (actions, register) = self.inner.actions_and_register(labels, statuses, limit, key).await?;
        Ok((self.all_verified(actions), register.map(|register| self.unsealed_register(key, register))))
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
        let trail = self.inner.audit(thread).await?;
        Ok(AuditTrail { proof: trail.head().proof(thread, &self.keys), ..trail })
    }

    async fn posted(&self, thread: &ThreadId, slot: &Slot) -> Result<Option<Posted>, Error> {
        self.inner.posted(thread, slot).await
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
        Ok(self.unsealed_register(key, self.inner.register(key).await?))
    }

    async fn set_register(&self, key: &str, expected: u64, value: &Value) -> Result<bool, Error> {
        if self.scope.has_register(key) {
            return self.inner.set_register(key, expected, &self.seal_value(key, value.clone())).await;
        }
        self.inner.set_register(key, expected, value).await
    }

    async fn durability(&self) -> Result<Durability, Error> {
        self.inner.durability().await
    }
}
