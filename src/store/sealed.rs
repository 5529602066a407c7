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

mod counts;
mod sealing;

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use countersign_core::{
    clock::Timestamp,
    ids::{ActionId, Slot, ThreadId},
    recent::Recent,
};
use countersign_graph::{
    action::ActionRecord,
    keyring::Keyring,
    store::{
        Acquired, ActionFilter, ActionKey, AuditTrail, Backlog, Changes, Claimed, ClaimedInteraction, DeadLetter,
        Delivery, Durability, Error, Forget, Handling, Holder, Ingested, Keep, KnownCards, Lease, Outgoing, Posted,
        QueuedMessage, Register, Saved, Sent, Seq, Settlement, StepRecord, Store, Then, ThreadFilter, ThreadSummary,
        Unreadable, Unwritable, Version, Waiting, Written,
    },
};
use serde_json::Value;

use self::sealing::INBOX;

/// The maximum number of records that need not be verified again.
const MAX_RECORDS: usize = 128;

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
    /// The records that this process has sealed or verified lately. One that is read exactly as it was then need not be
    /// verified again.
    recent: Recent<ActionId, ActionRecord>,
    cards: Arc<KnownCards>,
    written: Arc<Written>,
    announced: Option<Announced>,
}

/// Returns the message about a new status of a record that goes into the outbox in the same write, if there is one: given the
/// record before, if this process knows it, the record, and the time.
pub type Announced = fn(&dyn Fn() -> Option<ActionRecord>, &ActionRecord, Timestamp) -> Option<Outgoing>;

impl fmt::Debug for SealedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SealedStore").field("inner", &self.inner).field("keys", &self.keys).finish_non_exhaustive()
    }
}

impl SealedStore {
    /// Wraps `inner` with the keys to seal and verify with.
    pub fn new(inner: Arc<dyn Store>, keys: Arc<Keyring>, scope: SealScope) -> Self {
        Self {
            inner,
            keys,
            scope,
            recent: Recent::new(MAX_RECORDS),
            cards: Arc::default(),
            written: Arc::default(),
            announced: None,
        }
    }

    /// Adds the messages that `announced` returns to the writes of changed records.
    #[must_use]
    pub fn announcing(mut self, announced: Announced) -> Self {
        self.announced = Some(announced);
        self
    }

    /// Returns the watchers of what this process writes through this store.
    pub fn written(&self) -> Arc<Written> {
        self.written.clone()
    }

    /// Returns the cards that this process has written through this store.
    pub fn cards(&self) -> Arc<KnownCards> {
        self.cards.clone()
    }
}

#[async_trait]
impl Store for SealedStore {
    async fn ingest(&self, delivery: &Delivery, handling: Handling<'_>) -> Result<(Ingested, Option<Acquired>), Error> {
        let delivery = self.sealed_delivery(delivery);
        let (ingested, acquired) = match handling {
            Handling::Apply(changes, holder) => {
                let changes = self.sealed_changes(changes);
                let written = self.inner.ingest(&delivery, Handling::Apply(&changes, holder)).await;
                self.after_write(changes, written, |(ingested, _)| *ingested != Ingested::Duplicate)?
            }
            handling => self.inner.ingest(&delivery, handling).await?,
        };
        Ok((ingested, acquired.map(|acquired| self.unsealed(acquired))))
    }

    async fn acquire(&self, holder: &Holder, only: Option<&ThreadId>) -> Result<Option<Acquired>, Error> {
        let acquired = self.inner.acquire(holder, only).await?;
        Ok(acquired.map(|acquired| self.unsealed(acquired)))
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
        Ok(self.unsealed_messages(thread, self.inner.messages(thread, after, lease).await?))
    }

    async fn commit(
        &self,
        lease: &Lease,
        expected: Version,
        changes: &Changes,
        then: Then,
        claims: Option<(&Holder, usize)>,
    ) -> Result<(Version, Vec<Claimed>), Error> {
        let sealed = self.sealed_changes(changes);
        let written = self.inner.commit(lease, expected, &sealed, then, claims).await;
        self.after_write(sealed, written, |_| true)
    }

    async fn apply(&self, changes: &Changes) -> Result<(), Error> {
        let sealed = self.sealed_changes(changes);
        let written = self.inner.apply(&sealed).await;
        self.after_write(sealed, written, |()| true)
    }

    async fn claim_interaction(&self, ttl: Duration, limit: usize) -> Result<Vec<ClaimedInteraction>, Error> {
        let mut claimed = self.inner.claim_interaction(ttl, limit).await?;
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

    async fn settle_interaction(&self, entry: &ClaimedInteraction, settlement: Settlement<'_>) -> Result<(), Error> {
        self.inner.settle_interaction(entry, settlement).await
    }

    async fn claim_outbox(
        &self,
        holder: &Holder,
        limit: usize,
        only: Option<&ThreadId>,
    ) -> Result<Vec<Claimed>, Error> {
        self.inner.claim_outbox(holder, limit, only).await
    }

    async fn holds_outbox(&self, claimed: &Claimed) -> Result<bool, Error> {
        self.inner.holds_outbox(claimed).await
    }

    async fn finish_outbox(
        &self,
        sent: &[(Claimed, Sent)],
        next: Option<&Holder>,
    ) -> Result<(Vec<bool>, Option<Claimed>), Error> {
        let finished = self.inner.finish_outbox(sent, next).await;
        for (position, (_, sent)) in sent.iter().enumerate() {
            self.cards.on_finished(sent, finished.as_ref().is_ok_and(|(ours, _)| ours[position]));
        }
        finished
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

    async fn forget(&self, forget: &Forget) -> Result<bool, Error> {
        self.inner.forget(forget).await
    }

    async fn action(&self, key: ActionKey<'_>) -> Result<Option<ActionRecord>, Error> {
        Ok(self.inner.action(key).await?.map(|record| self.verified_match(record, key)))
    }

    async fn actions_and_register(
        &self,
        filter: &ActionFilter,
        key: Option<&str>,
    ) -> Result<(Vec<ActionRecord>, Option<Register>), Error> {
        let (actions, register) = self.inner.actions_and_register(filter, key).await?;
        let register = key.zip(register).map(|(key, register)| self.unsealed_register(key, register));
        Ok((actions.into_iter().map(|record| self.verified(record)).collect(), register))
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

    async fn threads(&self, filter: ThreadFilter, limit: usize) -> Result<Vec<ThreadSummary>, Error> {
        self.inner.threads(filter, limit).await
    }

    async fn backlog(&self) -> Result<Backlog, Error> {
        self.inner.backlog().await
    }

    async fn put_blob(&self, bytes: &[u8], keep: Keep<'_>) -> Result<String, Error> {
        self.inner.put_blob(bytes, keep).await
    }

    async fn get_blob(&self, hash: &str) -> Result<Option<Vec<u8>>, Error> {
        self.inner.get_blob(hash).await
    }

    async fn register(&self, key: &str) -> Result<Register, Error> {
        Ok(self.unsealed_register(key, self.inner.register(key).await?))
    }

    async fn set_register(&self, key: &str, expected: u64, value: &Value) -> Result<bool, Error> {
        let set = match self.scope.has_register(key) {
            true => self.inner.set_register(key, expected, &self.seal_value(key, value.clone())).await,
            false => self.inner.set_register(key, expected, value).await,
        };
        self.written.on_register(key);
        set
    }

    async fn durability(&self) -> Result<Durability, Error> {
        self.inner.durability().await
    }
}
