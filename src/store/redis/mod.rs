//! A store in Redis 7, for several processes that share a server or a cluster.
//!
//! Each operation is one Lua script, atomic within one partition; the central one is `scripts/commit.lua`. Start
//! reading at [`keys`] (the layout of the keys) and [`commit`] (the parts of a write). A record is a JSON string that
//! is written and read in Rust; the server stores it as it is, and compares only the values passed along with it.
//!
//! **Readiness doubles as crash recovery.** A thread's readiness is a time in a sorted set: the current time if a
//! message arrived, or the end of the lease if a worker holds one. Nothing has to detect a dead worker: when its lease
//! runs out, its thread is ready again. Claims of interactions and of outgoing messages work the same way.
//!
//! **Two clocks.** Leases and claims use the `TIME` of the server that has the partition, read inside the script, so the
//! processes' clocks do not matter. Times that people see (timers, waits before a retry, `not_before`) are compared with
//! the `now` that callers pass. The two are never compared with each other: a thread that waits for a retry is in a set of
//! its own (`waiting`), and is ready if *either* set says so. A message makes it ready at once.
//!
//! **After a lost answer** the write may or may not have happened. The caller repeats it with the same commit id; the
//! store keeps the answer to each commit id for a day.
//!
//! **Idle.** A script that gives the processes something to do tells them the partition ([`hints`]), so an idle process
//! does not ask for each partition again and again ([`agenda`]). Nothing depends on these hints.
//!
//! **Server settings that lose data** are rejected on opening and watched afterwards ([`watch`]).
//!
//! **Growth.** The sweep deletes deduplication keys after a day. Answers to writes have a TTL of one day, and temporary
//! blobs have a TTL of their own. Nothing else expires; in particular, no audit entry, no pending action and no
//! outgoing message does.
//!
//! **Valkey** is a Redis for this store.
//!
//! **A cluster** has the partitions on several servers, each in one hash slot. The operations do not know: they call a
//! [`connection`], which knows one server or a [`cluster`].
//!
//! *Architecture Invariant:* scripts never re-encode a record. *Architecture Invariant:* no key is touched outside the
//! partition of the operation.
//!
//! Streams with consumer groups were rejected as a design for distributing work. When a consumer
//! dies, another one has to find and claim its entries (`XAUTOCLAIM`), in addition to the lease,
//! which is needed anyway. A sorted set of times needs no such second recovery mechanism.

pub mod address;
mod agenda;
mod aside;
mod cluster;
mod commit;
mod connection;
mod dead_letters;
pub mod durability;
mod files;
mod finder;
mod forget;
mod hints;
mod inbox;
mod ingest;
mod json;
mod keys;
mod lease;
mod outbox;
mod reading;
mod rights;
mod scripts;
mod server;
mod trouble;
mod watch;

use std::time::Duration;

use async_trait::async_trait;
use countersign_core::{
    clock::Timestamp,
    ids::{Slot, ThreadId},
};
use countersign_graph::{
    action::ActionRecord,
    store::{
        Acquired, ActionFilter, ActionKey, AuditTrail, Backlog, Changes, Claimed, ClaimedInteraction, DeadLetter,
        Delivery, Durability, Error, Forget, Handling, Holder, Ingested, Keep, Lease, Posted, QueuedMessage, Register,
        Saved, Sent, Seq, Settlement, StepRecord, Store, Then, ThreadFilter, ThreadSummary, Unreadable, Unwritable,
        Version, Waiting,
    },
};
use serde_json::Value;

use self::{
    address::Access,
    agenda::Agenda,
    commit::{Approvals, AuditHeads, Joined},
    connection::Link,
    durability::OpenError,
    finder::Finder,
    ingest::Deliveries,
    scripts::Scripts,
};
use crate::aside::UnreadableEntries;

/// A store in Redis.
#[derive(Debug)]
pub struct RedisStore {
    link: Link,
    scripts: Scripts,
    audit_heads: AuditHeads,
    approvals: Approvals,
    deliveries: Deliveries,
    agenda: Agenda,
    finder: Finder,
    /// The entries that this process could not read.
    unreadable: UnreadableEntries,
}

/// The version of the keys and of what is stored under them. A store with a newer layout is not opened, since this program
/// could misread it. A new key or field that older programs may ignore keeps the version; any other change takes the next
/// one, and the store gets it from the first process that writes.
const LAYOUT_VERSION: u32 = 1;

/// The maximum number of facts of a kind that this process remembers.
const MAX_REMEMBERED: usize = 4096;

impl RedisStore {
    /// Connects to the server at `url`, or to the cluster of the servers at several addresses with commas between them.
    /// Unless writes may be lost, each server must be set up to keep those that it acknowledged.
    ///
    /// # Errors
    ///
    /// [`OpenError::Lossy`] lists every unsafe setting with the value it needs; see [`OpenError`] for the others.
    pub async fn open(url: &str, access: &Access) -> Result<Self, OpenError> {
        let link = Link::open(url, access).await?;
        let unavailable = |source| OpenError::Unavailable { address: link.address(), source };
        let durability = link.durability().await.map_err(unavailable)?;
        for line in durability.problems.iter().chain(&durability.vouched).chain(&durability.advice) {
            tracing::warn!("{}: {line}", durability.name);
        }
        if check_layout(&link).await? != Some(LAYOUT_VERSION) {
            let mut set = redis::pipe();
            set.set(keys::layout(), LAYOUT_VERSION);
            link.write(&set).await.map_err(unavailable)?;
        }
        Ok(Self::with(link))
    }

    /// Connects as [`Self::open`] does, to look at a store that other processes use, and writes nothing. They may be older
    /// programs, which could not open the store again if it got a new layout.
    ///
    /// # Errors
    ///
    /// As [`Self::open`].
    pub async fn open_to_read(url: &str, access: &Access) -> Result<Self, OpenError> {
        let link = Link::open(url, access).await?;
        check_layout(&link).await?;
        Ok(Self::with(link))
    }

    fn with(link: Link) -> Self {
        Self {
            link,
            scripts: Scripts::new(),
            audit_heads: AuditHeads::new(MAX_REMEMBERED),
            approvals: Approvals::new(MAX_REMEMBERED),
            deliveries: Deliveries::new(MAX_REMEMBERED),
            agenda: Agenda::default(),
            finder: Finder::default(),
            unreadable: UnreadableEntries::default(),
        }
    }
}

/// Returns the version of a store's layout; `None` if it is empty. Refuses a newer one.
async fn check_layout(link: &Link) -> Result<Option<u32>, OpenError> {
    let get = redis::cmd("GET").arg(keys::layout()).to_owned();
    let found = link.command::<Option<u32>>(&get).await;
    match found.map_err(|source| OpenError::Unavailable { address: link.address(), source })? {
        Some(found) if found > LAYOUT_VERSION => {
            Err(OpenError::Newer { address: link.address(), found, known: LAYOUT_VERSION })
        }
        found => Ok(found),
    }
}

#[async_trait]
impl Store for RedisStore {
    async fn ingest(&self, delivery: &Delivery, handling: Handling<'_>) -> Result<(Ingested, Option<Acquired>), Error> {
        match handling {
            Handling::Later => ingest::ingest(self, delivery, None).await,
            Handling::Lease(holder) => ingest::ingest(self, delivery, Some(holder)).await,
            Handling::Apply(changes, holder) => {
                let joined = Joined { delivery: Some(delivery), leases: holder, ..Joined::default() };
                let written = commit::apply(self, changes, joined).await?;
                Ok(written.map_or((Ingested::Duplicate, None), |written| (Ingested::Handled, written.acquired)))
            }
        }
    }

    async fn acquire(&self, holder: &Holder, only: Option<&ThreadId>) -> Result<Option<Acquired>, Error> {
        Box::pin(lease::acquire(self, holder, only)).await
    }

    async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<(), Error> {
        lease::renew(self, lease, ttl).await
    }

    async fn messages(
        &self,
        thread: &ThreadId,
        after: Seq,
        lease: Option<&Lease>,
    ) -> Result<Vec<QueuedMessage>, Error> {
        match lease {
            Some(lease) => lease::messages(self, lease, after).await,
            None => lease::unread(self, thread, after).await,
        }
    }

    async fn commit(
        &self,
        lease: &Lease,
        expected: Version,
        changes: &Changes,
        then: Then,
        claims: Option<(&Holder, usize)>,
    ) -> Result<(Version, Vec<Claimed>), Error> {
        commit::commit(self, lease, expected, changes, then, claims).await
    }

    async fn apply(&self, changes: &Changes) -> Result<(), Error> {
        commit::apply(self, changes, Joined::default()).await.map(drop)
    }

    async fn claim_interaction(&self, ttl: Duration, limit: usize) -> Result<Vec<ClaimedInteraction>, Error> {
        inbox::claim(self, ttl, limit).await
    }

    async fn settle_interaction(&self, entry: &ClaimedInteraction, settlement: Settlement<'_>) -> Result<(), Error> {
        inbox::settle(self, entry, settlement).await
    }

    async fn claim_outbox(
        &self,
        holder: &Holder,
        limit: usize,
        only: Option<&ThreadId>,
    ) -> Result<Vec<Claimed>, Error> {
        outbox::claim(self, holder, limit, only).await
    }

    async fn holds_outbox(&self, claimed: &Claimed) -> Result<bool, Error> {
        outbox::holds(self, claimed).await
    }

    async fn finish_outbox(
        &self,
        sent: &[(Claimed, Sent)],
        next: Option<&Holder>,
    ) -> Result<(Vec<bool>, Option<Claimed>), Error> {
        let Some((Claimed { thread, .. }, _)) = sent.first() else { return Ok((Vec::new(), None)) };
        let partition = thread.partition();
        // The results are recorded in any case; the next message is sent only if the server loses nothing.
        if next.is_none() || self.link.check_before(partition).await.is_err() {
            return outbox::finish(self, sent, None).await;
        }
        let (ours, next) = outbox::finish(self, sent, next).await?;
        let is_safe = self.link.check_after(partition).await.is_ok();
        Ok((ours, next.filter(|_| is_safe)))
    }

    async fn waiting(&self, before: Timestamp, limit: usize) -> Result<Vec<Waiting>, Error> {
        outbox::waiting(self, before, limit).await
    }

    async fn dead_letters(&self, limit: usize) -> Result<Vec<DeadLetter>, Error> {
        dead_letters::list(self, limit).await
    }

    async fn send_again(&self, id: &str, now: Timestamp) -> Result<bool, Error> {
        dead_letters::send_again(self, id, now).await
    }

    async fn is_anything_due(&self, now: Timestamp) -> Result<bool, Error> {
        self.agenda.is_anything_due(&self.link, now).await
    }

    async fn fire_timers(&self, now: Timestamp) -> Result<usize, Error> {
        inbox::fire_timers(self, now).await
    }

    async fn sweep(&self, now: Timestamp) -> Result<(), Error> {
        self.deliveries.clear(); // none is remembered for longer than in the store
        inbox::sweep(self, now).await
    }

    async fn forget(&self, forget: &Forget) -> Result<bool, Error> {
        forget::forget(self, forget).await
    }

    async fn action(&self, key: ActionKey<'_>) -> Result<Option<ActionRecord>, Error> {
        match key {
            ActionKey::ByApproval(approval) => reading::action_by_approval(self, approval).await,
            ActionKey::Of(thread, id) => reading::action(self, thread, id).await,
        }
    }

    async fn actions_and_register(
        &self,
        filter: &ActionFilter,
        key: Option<&str>,
    ) -> Result<(Vec<ActionRecord>, Option<Register>), Error> {
        reading::actions(self, filter, key).await
    }

    async fn load(&self, thread: &ThreadId) -> Result<Option<Saved>, Error> {
        lease::load(self, thread).await
    }

    async fn steps(
        &self,
        thread: &ThreadId,
        after: Version,
        limit: usize,
    ) -> Result<Vec<(Version, StepRecord)>, Error> {
        reading::steps(self, thread, after, limit).await
    }

    async fn audit(&self, thread: &ThreadId) -> Result<AuditTrail, Error> {
        reading::audit(self, thread).await
    }

    async fn posted(&self, thread: &ThreadId, slot: &Slot) -> Result<Option<Posted>, Error> {
        reading::posted(self, thread, slot).await
    }

    async fn threads(&self, filter: ThreadFilter, limit: usize) -> Result<Vec<ThreadSummary>, Error> {
        reading::threads(self, filter, limit).await
    }

    async fn backlog(&self) -> Result<Backlog, Error> {
        reading::backlog(self).await
    }

    async fn put_blob(&self, bytes: &[u8], keep: Keep<'_>) -> Result<String, Error> {
        files::put_blob(self, bytes, keep).await
    }

    async fn get_blob(&self, hash: &str) -> Result<Option<Vec<u8>>, Error> {
        files::get_blob(self, hash).await
    }

    async fn register(&self, key: &str) -> Result<Register, Error> {
        reading::register(self, key).await
    }

    async fn set_register(&self, key: &str, expected: u64, value: &Value) -> Result<bool, Error> {
        reading::set_register(self, key, expected, value).await
    }

    async fn unreadable(&self, limit: usize) -> Result<Vec<Unreadable>, Error> {
        aside::list(self, limit).await
    }

    async fn probe(&self) -> Result<Vec<Unwritable>, Error> {
        self.link.probe().await
    }

    async fn durability(&self) -> Result<Durability, Error> {
        self.link.durability().await
    }
}
