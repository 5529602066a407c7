//! Threads in Redis 7, for several processes that share one server.
//!
//! Each operation is one Lua script, atomic on one partition; `scripts/commit.lua` is the heart of it. Start reading at
//! [`keys`] (the place of everything) and [`commit`] (the parts of a write). A record is a JSON string that is written
//! and read in Rust; the server stores it as it is, and compares only values passed beside it.
//!
//! **Readiness is crash recovery.** Readiness of a thread is a time in a sorted set: now, if a message came; the end of
//! the lease, if a worker has it. A dead worker need not be noticed: when its lease runs out, its thread is simply
//! ready again. Claims of interactions and of outgoing messages work the same way.
//!
//! **Two clocks.** Leases and claims run by the server's `TIME`, read inside the script, so the processes' clocks do
//! not matter. Times that people see (timers, waits before a retry, `not_before`) are compared with the `now` that
//! callers pass. The two never meet in one number: a thread that waits for a retry stands in a set of its own
//! (`waiting`), and is ready if *either* set says so. A message makes it ready at once.
//!
//! **After a lost answer** the write may or may not have happened. The caller repeats it with its commit id, whose
//! answer is kept for a day.
//!
//! **Settings that lose data** are refused at the start and watched afterwards ([`watch`]).
//!
//! **Growth.** Deduplication keys go with the sweep after a day, answers to writes by their TTL after a day, bytes that
//! are kept for a time only by theirs. Nothing else expires, above all no audit, no pending action and no outgoing
//! message.
//!
//! *Architecture Invariant:* scripts never re-encode a record. *Architecture Invariant:* no key is touched outside the
//! partition of the operation, so the layout works on Redis Cluster (the client here talks to one server).
//!
//! The design we did not take: streams with consumer groups for work. An entry that was delivered to a consumer that
//! died has to be found and claimed by another (`XAUTOCLAIM`), next to the lease that exists anyway; a sorted set of
//! times needs no such second recovery.

mod aside;
mod commit;
mod connection;
mod dead_letters;
pub mod durability;
mod files;
mod finder;
mod forget;
mod inbox;
mod ingest;
mod json;
mod keys;
mod labelling;
mod lease;
mod outbox;
mod reading;
mod scripts;
mod watch;

use std::time::Duration;

use async_trait::async_trait;
use countersign_core::{
    clock::{Clock as _, SystemClock, Timestamp},
    ids::{ActionId, ApprovalId, Partition, Slot, ThreadId, WorkerId},
};
use countersign_graph::{
    action::{ActionRecord, Label, Status},
    store::{
        Acquired, ActionFilter, AuditEntry, Backlog, Changes, Claimed, ClaimedInteraction, DeadLetter, Delivery,
        Durability, Error, Forget, Ingested, Lease, Posted, QueuedMessage, Register, Saved, Sent, Seq, StepRecord,
        Store, Then, ThreadSummary, Unreadable, Version, Waiting,
    },
};
use serde_json::Value;

use self::{
    commit::Heads, connection::Link, durability::OpenError, finder::Finder, scripts::Scripts, watch::DurabilityWatch,
};
use crate::aside::{StoredPlace, UnreadableEntries};

/// A store in Redis.
#[derive(Debug)]
pub struct RedisStore {
    link: Link,
    scripts: Scripts,
    heads: Heads,
    finder: Finder,
    watch: DurabilityWatch,
    /// The entries that this process could not read.
    found: UnreadableEntries,
}

/// The version of the layout of the keys, which counts up if this program would misread or miss something in a new one.
const LAYOUT: u32 = 1;

impl RedisStore {
    /// Connects, and checks that the server keeps acknowledged writes, unless `allow_lossy`.
    ///
    /// # Errors
    ///
    /// [`OpenError`]; [`OpenError::Lossy`] lists every wrong setting, with the right one.
    pub async fn open(url: &str, allow_lossy: bool) -> Result<Self, OpenError> {
        let link = Link::new(url).map_err(|error| OpenError::Url(error.category().to_owned()))?;
        let found = durability::durability(&link)
            .await
            .map_err(|source| OpenError::Unavailable { address: link.address(), source })?;
        if !found.problems.is_empty() && !allow_lossy {
            return Err(OpenError::Lossy(found));
        }
        let unavailable = |source| OpenError::Unavailable { address: link.address(), source };
        let get = redis::cmd("GET").arg(keys::layout()).to_owned();
        match link.command::<Option<u32>>(&get).await.map_err(unavailable)? {
            Some(found) if found > LAYOUT => {
                return Err(OpenError::Newer { address: link.address(), found, known: LAYOUT });
            }
            Some(LAYOUT) => {}
            _ => {
                let set = redis::cmd("SET").arg(keys::layout()).arg(LAYOUT).to_owned();
                link.command::<()>(&set).await.map_err(unavailable)?;
            }
        }
        labelling::bring_up_to_date(&link).await.map_err(unavailable)?;
        let watch = DurabilityWatch::new(allow_lossy, &link);
        let (scripts, heads, finder, found) =
            (Scripts::new(), Heads::default(), Finder::default(), UnreadableEntries::default());
        Ok(Self { link, scripts, heads, finder, watch, found })
    }

    /// Runs an operation and checks, before and after it, that the server keeps acknowledged writes.
    async fn kept<T>(&self, operation: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        self.watch.check_before(&self.link).await?;
        let answer = operation.await?;
        self.watch.check_after(&self.link).await?;
        Ok(answer)
    }
}

#[async_trait]
impl Store for RedisStore {
    async fn ingest(&self, delivery: &Delivery) -> Result<Ingested, Error> {
        self.kept(ingest::ingest(self, delivery)).await
    }

    async fn acquire(
        &self,
        worker: &WorkerId,
        ttl: Duration,
        now: Timestamp,
        only: Option<&ThreadId>,
    ) -> Result<Option<Acquired>, Error> {
        Box::pin(self.kept(lease::acquire(self, worker, ttl, now, only))).await
    }

    async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<(), Error> {
        lease::renew(self, lease, ttl).await
    }

    async fn messages(&self, lease: &Lease, after: Seq) -> Result<Vec<QueuedMessage>, Error> {
        lease::messages(self, lease, after).await
    }

    async fn unread(&self, thread: &ThreadId) -> Result<Vec<QueuedMessage>, Error> {
        lease::unread(self, thread).await
    }

    async fn commit(&self, lease: &Lease, expected: Version, changes: &Changes, then: Then) -> Result<Version, Error> {
        self.kept(commit::commit(self, lease, expected, changes, then)).await
    }

    async fn apply(&self, changes: &Changes) -> Result<(), Error> {
        self.kept(commit::apply(self, changes)).await
    }

    async fn claim_interaction(
        &self,
        _worker: &WorkerId,
        ttl: Duration,
        limit: usize,
    ) -> Result<Vec<ClaimedInteraction>, Error> {
        self.kept(inbox::claim(self, ttl, limit)).await
    }

    async fn finish_interaction(&self, partition: Partition, seq: Seq) -> Result<(), Error> {
        inbox::finish(self, partition, seq).await
    }

    async fn retry_interaction(&self, entry: &ClaimedInteraction, wait: Duration) -> Result<(), Error> {
        inbox::retry(self, entry, wait).await
    }

    async fn fail_interaction(&self, entry: &ClaimedInteraction, reason: &str, at: Timestamp) -> Result<(), Error> {
        inbox::fail(self, entry, reason, at).await
    }

    async fn claim_outbox(
        &self,
        _worker: &WorkerId,
        ttl: Duration,
        now: Timestamp,
        limit: usize,
        only: Option<&ThreadId>,
    ) -> Result<Vec<Claimed>, Error> {
        self.kept(outbox::claim(self, ttl, now, limit, only)).await
    }

    async fn holds_outbox(&self, claimed: &Claimed) -> Result<bool, Error> {
        outbox::holds(self, claimed).await
    }

    async fn finish_outbox(&self, claimed: &Claimed, sent: &Sent) -> Result<bool, Error> {
        outbox::finish(self, claimed, sent).await
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

    async fn fire_timers(&self, now: Timestamp) -> Result<usize, Error> {
        inbox::fire_timers(self, now).await
    }

    async fn sweep(&self, now: Timestamp) -> Result<(), Error> {
        inbox::sweep(self, now).await
    }

    async fn finished(&self, before: Timestamp, limit: usize) -> Result<Vec<ThreadId>, Error> {
        forget::finished(self, before, limit).await
    }

    async fn forget(&self, forget: &Forget) -> Result<bool, Error> {
        self.kept(forget::forget(self, forget)).await
    }

    async fn action_by_approval(&self, approval: &ApprovalId) -> Result<Option<ActionRecord>, Error> {
        reading::action_by_approval(self, approval).await
    }

    async fn action(&self, thread: &ThreadId, id: &ActionId) -> Result<Option<ActionRecord>, Error> {
        reading::action(self, thread, id).await
    }

    async fn actions(&self, filter: &ActionFilter) -> Result<Vec<ActionRecord>, Error> {
        reading::actions(self, filter).await
    }

    async fn actions_under(
        &self,
        labels: &[Label],
        statuses: &[Status],
        limit: usize,
    ) -> Result<Vec<ActionRecord>, Error> {
        reading::actions_under(self, labels, statuses, limit).await
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

    async fn audit(&self, thread: &ThreadId) -> Result<Vec<AuditEntry>, Error> {
        reading::audit(self, thread).await
    }

    async fn posted(&self, thread: &ThreadId, slot: &Slot) -> Result<Option<Posted>, Error> {
        reading::posted(self, thread, slot).await
    }

    async fn threads(&self, limit: usize) -> Result<Vec<ThreadSummary>, Error> {
        reading::threads(self, limit).await
    }

    async fn backlog(&self) -> Result<Backlog, Error> {
        reading::backlog(self).await
    }

    async fn put_blob(&self, bytes: &[u8], keep: Option<Duration>) -> Result<String, Error> {
        self.kept(reading::put_blob(self, bytes, keep)).await
    }

    async fn put_file(&self, thread: &ThreadId, bytes: &[u8]) -> Result<String, Error> {
        self.kept(files::put_file(self, thread, bytes)).await
    }

    async fn get_blob(&self, hash: &str) -> Result<Option<Vec<u8>>, Error> {
        reading::get_blob(self, hash).await
    }

    async fn register(&self, key: &str) -> Result<Register, Error> {
        reading::register(self, key).await
    }

    async fn set_register(&self, key: &str, expected: u64, value: &Value) -> Result<bool, Error> {
        self.kept(reading::set_register(self, key, expected, value)).await
    }

    async fn set_aside_interaction(&self, partition: Partition, seq: Seq, why: &str) -> Result<(), Error> {
        aside::set(self, &StoredPlace::Inbox(partition, seq), why).await
    }

    async fn unreadable(&self, limit: usize) -> Result<Vec<Unreadable>, Error> {
        aside::list(self, limit).await
    }

    async fn probe(&self) -> Result<(), Error> {
        self.watch.check_now(&self.link).await?;
        let set = redis::cmd("SET").arg(keys::probe()).arg(SystemClock.now().millis()).to_owned();
        self.kept(self.link.command::<()>(&set)).await
    }

    async fn durability(&self) -> Result<Durability, Error> {
        durability::durability(&self.link).await
    }
}
