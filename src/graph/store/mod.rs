//! The store of threads, as the engine needs it.
//!
//! Each operation is atomic: it happens whole or not at all, also when the process is killed in the middle. After an
//! operation that answered, the effect survives a crash of the machine (as far as the store's settings allow, which
//! [`Store::durability`] reports). Two implementations exist, one conformance suite runs against both
//! (`tests/integration/stores.rs`).
//!
//! **One thread, one partition.** Everything of a thread (mailbox, steps, actions, outbox, timers, audit) lives in
//! [`ThreadId::partition`], so that each operation touches one partition only.
//!
//! **Two lanes.** Messages for a thread wait in its mailbox until a worker *leases* the thread. Events that need an
//! answer although the thread may be busy (clicks, commands, timers) wait in the *inbox*, where entries are claimed one
//! by one without a lease.
//!
//! **Time.** Leases and claims run by the store's own clock. `now` arguments are for what people see: timers, waits.
//!
//! **One unreadable entry hides no other.** A message, an interaction or an outgoing message that this process cannot
//! read is *set aside*: kept as it is, counted, logged once, listed by [`Store::unreadable`], and out of the way of
//! later ones. [`Store::sweep`] puts back those that it can read: an entry of a newer program waits for that one. Lists
//! leave out unreadable rows; a line of the record keeps its place ([`AuditEntry::unreadable`]).
//!
//! The design we did not take: a key-value façade with the logic above it. Atomic changes would then need locks.

mod audit;
mod changes;
mod dead_letter;
mod delivery;
mod forget;
mod lease;
mod outgoing;
mod query;
mod register;
mod unreadable;

use std::{fmt, time::Duration};

use async_trait::async_trait;
use countersign_core::{
    clock::Timestamp,
    ids::{ActionId, ApprovalId, GraphName, Partition, Slot, ThreadId, WorkerId},
};
use serde_json::Value;

pub use self::{
    audit::{AuditDraft, AuditEntry, AuditKind, ChainFault},
    changes::{ActionChange, Changes, StepRecord, TimerChange, Usage},
    dead_letter::{DeadLetter, Undelivered},
    delivery::{
        ActionFollowUp, ClaimedInteraction, Delivery, Destination, External, Ingested, QueuedMessage, ThreadMessage,
        TooLong, graph_of_new,
    },
    forget::{Forget, UNFINISHED},
    lease::{Acquired, Lease, Saved, Then},
    outgoing::{Claimed, Outbound, Outgoing, Posted, Sent, ShownCard, TRIED_OFTEN, Waiting},
    query::{ActionFilter, Backlog, Durability, ThreadSummary},
    register::Register,
    unreadable::{Unreadable, read_versioned, why_unreadable},
};
use super::action::{ActionRecord, Label, Status};

/// A position in a mailbox, an outbox or in the inbox of one partition. Only grows.
pub type Seq = u64;

/// The number of steps that a thread has saved.
pub type Version = u64;

/// The reason why an operation was not done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another worker holds the thread now: stop writing at once.
    #[error("the lease on thread {0} was taken over")]
    Fenced(ThreadId),
    /// The thread is at another version than the write assumes.
    #[error("thread {thread} is at version {found}, not {expected}")]
    VersionConflict {
        /// The thread.
        thread: ThreadId,
        /// The version that the write assumed.
        expected: Version,
        /// The stored version.
        found: Version,
    },
    /// The action was moved by another write, or the move is not legal. Nothing was written.
    #[error("action {id} has moved on")]
    ActionMoved {
        /// The action.
        id: ActionId,
        /// The record as it stands; `None` if there is none.
        current: Option<Box<ActionRecord>>,
    },
    /// The store did not answer. The write may or may not have happened; repeating it with the same commit id is safe.
    #[error("the store does not answer")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A newer version of this program wrote it. It stays as it is, for that version.
    #[error(
        "{what} was written by a newer Countersign (format {found}; this one reads {known}); run the newer program"
    )]
    Newer {
        /// The kind and place of the data.
        what: String,
        /// The version of its shape.
        found: u32,
        /// The newest version that this program reads.
        known: u32,
    },
    /// The thread belongs to a graph that this program does not have. It stays as it is, for a program that has it.
    #[error(
        "thread {thread} belongs to the graph `{graph}`, which this Countersign does not have; run one that has it"
    )]
    OtherGraph {
        /// The thread.
        thread: ThreadId,
        /// The graph of the thread.
        graph: GraphName,
    },
    /// The stored data cannot be read.
    #[error("cannot read what is stored: {what}")]
    Corrupt {
        /// The kind and place of the data.
        what: String,
    },
}

/// A store of threads.
#[async_trait]
pub trait Store: Send + Sync + fmt::Debug {
    /// Stores a delivery, unless it is a repeat, and wakes its thread.
    async fn ingest(&self, delivery: &Delivery) -> Result<Ingested, Error>;

    /// Leases a ready thread: `only` that one, or the one that has been ready longest. A thread whose lease ran out is
    /// ready again. `None`: nothing is ready.
    async fn acquire(
        &self,
        worker: &WorkerId,
        ttl: Duration,
        now: Timestamp,
        only: Option<&ThreadId>,
    ) -> Result<Option<Acquired>, Error>;

    /// Lengthens a lease to `ttl` from now.
    ///
    /// # Errors
    ///
    /// [`Error::Fenced`] if it is no longer ours.
    async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<(), Error>;

    /// Returns messages that arrived after `after`, in order of arrival, for a worker that continues with them.
    async fn messages(&self, lease: &Lease, after: Seq) -> Result<Vec<QueuedMessage>, Error>;

    /// Returns the messages of a thread that no step has dealt with yet, in order of arrival, without a lease.
    async fn unread(&self, thread: &ThreadId) -> Result<Vec<QueuedMessage>, Error>;

    /// Writes the changes of a step. Returns the new version: `expected + 1` with a step, `expected` without.
    ///
    /// # Errors
    ///
    /// [`Error::Fenced`], [`Error::VersionConflict`], [`Error::ActionMoved`]: nothing was written. A repeated commit id
    /// answers as the first time.
    async fn commit(&self, lease: &Lease, expected: Version, changes: &Changes, then: Then) -> Result<Version, Error>;

    /// Writes without a lease: decisions, and other changes of the inbox. [`Changes::step`] and [`Changes::snapshot`]
    /// must be empty.
    ///
    /// # Errors
    ///
    /// [`Error::ActionMoved`] if another write was first: nothing was written.
    async fn apply(&self, changes: &Changes) -> Result<(), Error>;

    /// Claims the oldest unclaimed interactions. A claim that is not finished within `ttl` is void.
    async fn claim_interaction(
        &self,
        worker: &WorkerId,
        ttl: Duration,
        limit: usize,
    ) -> Result<Vec<ClaimedInteraction>, Error>;

    /// Takes an interaction away.
    async fn finish_interaction(&self, partition: Partition, seq: Seq) -> Result<(), Error>;

    /// Leaves a claimed interaction alone for `wait`; then it may be claimed again. Does nothing if it was claimed
    /// again since.
    async fn retry_interaction(&self, entry: &ClaimedInteraction, wait: Duration) -> Result<(), Error>;

    /// Takes a claimed interaction away and keeps it as a [`DeadLetter`]. Does nothing if it was claimed again since.
    async fn fail_interaction(&self, entry: &ClaimedInteraction, reason: &str, at: Timestamp) -> Result<(), Error>;

    /// Claims outgoing messages that may be sent now, at most one per thread: the oldest that is not progress, or else
    /// the progress. A message that was tried [`TRIED_OFTEN`] times goes when nothing else may, and holds up only its
    /// own slot. A claim that is not finished within `ttl` is void, and the message counts as tried.
    async fn claim_outbox(
        &self,
        worker: &WorkerId,
        ttl: Duration,
        now: Timestamp,
        limit: usize,
        only: Option<&ThreadId>,
    ) -> Result<Vec<Claimed>, Error>;

    /// Returns true if a claim still holds: its time is not over, and the message was not claimed again since.
    async fn holds_outbox(&self, claimed: &Claimed) -> Result<bool, Error>;

    /// Records the result of sending a claimed message. `false`: it was claimed again since, or is gone; then only a
    /// delivery is recorded, and that only if the message is still to be sent.
    async fn finish_outbox(&self, claimed: &Claimed, sent: &Sent) -> Result<bool, Error>;

    /// Returns outgoing messages, progress apart, that were to be sent before `before` and are not sent yet; those that
    /// wait longest first, at most `limit`.
    async fn waiting(&self, before: Timestamp, limit: usize) -> Result<Vec<Waiting>, Error>;

    /// Returns messages and interactions that could not be delivered or handled, the oldest first, at most `limit`.
    async fn dead_letters(&self, limit: usize) -> Result<Vec<DeadLetter>, Error>;

    /// Puts a dead letter back to be sent or handled from `now` on. A message counts as tried: it is looked for before
    /// it is posted. `false`: there is no such dead letter any more.
    async fn send_again(&self, id: &str, now: Timestamp) -> Result<bool, Error>;

    /// Puts every timer that is due in its partition's inbox. Returns their number.
    async fn fire_timers(&self, now: Timestamp) -> Result<usize, Error>;

    /// Drops data that is kept for a time only: deduplication keys older than a day, entries parked for two minutes,
    /// bytes whose time is over, dead letters older than [`DeadLetter::KEPT_FOR`]. Puts back entries that another process
    /// set aside and this one can read.
    async fn sweep(&self, now: Timestamp) -> Result<(), Error>;

    /// Returns threads of ours in which nothing happened since `before`, and nothing is left to be done, said or
    /// decided ([`UNFINISHED`]); the oldest first, at most `limit`. Those whose steps were dropped since are left out.
    async fn finished(&self, before: Timestamp, limit: usize) -> Result<Vec<ThreadId>, Error>;

    /// Drops the steps of a thread, and the other parts that [`Forget`] names. `false`, and nothing was dropped: it is
    /// no longer finished, or at another version.
    async fn forget(&self, forget: &Forget) -> Result<bool, Error>;

    /// Returns the action that a button's key names.
    async fn action_by_approval(&self, approval: &ApprovalId) -> Result<Option<ActionRecord>, Error>;

    /// Returns an action of a thread.
    async fn action(&self, thread: &ThreadId, id: &ActionId) -> Result<Option<ActionRecord>, Error>;

    /// Returns actions, newest first.
    async fn actions(&self, filter: &ActionFilter) -> Result<Vec<ActionRecord>, Error>;

    /// Returns actions under any of these labels, with one of these statuses (none: any), newest first, each once.
    async fn actions_under(
        &self,
        labels: &[Label],
        statuses: &[Status],
        limit: usize,
    ) -> Result<Vec<ActionRecord>, Error>;

    /// Returns the saved checkpoint of a thread, without a lease; `None` if the thread is not one of ours.
    async fn load(&self, thread: &ThreadId) -> Result<Option<Saved>, Error>;

    /// Returns the steps of a thread after version `after`, oldest first, at most `limit`.
    async fn steps(&self, thread: &ThreadId, after: Version, limit: usize)
    -> Result<Vec<(Version, StepRecord)>, Error>;

    /// Returns the record of a thread, oldest entry first.
    async fn audit(&self, thread: &ThreadId) -> Result<Vec<AuditEntry>, Error>;

    /// Returns the place of a slot's message.
    async fn posted(&self, thread: &ThreadId, slot: &Slot) -> Result<Option<Posted>, Error>;

    /// Returns threads, the one with the newest change first.
    async fn threads(&self, limit: usize) -> Result<Vec<ThreadSummary>, Error>;

    /// Returns the amount of pending work, for operators and for callers that wait until there is none.
    async fn backlog(&self) -> Result<Backlog, Error>;

    /// Keeps bytes under their own hash (SHA-256, hexadecimal), which it returns: for at least `keep`, or for good.
    async fn put_blob(&self, bytes: &[u8], keep: Option<Duration>) -> Result<String, Error>;

    /// Keeps a file that a thread shows, under its hash as [`Self::put_blob`] does, for as long as any thread shows it
    /// that was not forgotten ([`Forget::files`]).
    async fn put_file(&self, thread: &ThreadId, bytes: &[u8]) -> Result<String, Error>;

    /// Returns the bytes kept under a hash, for a time, for good or as a file; `None` if there are none.
    async fn get_blob(&self, hash: &str) -> Result<Option<Vec<u8>>, Error>;

    /// Returns a register: small data that belongs to no thread and that several processes change.
    async fn register(&self, key: &str) -> Result<Register, Error>;

    /// Sets a register, if it was set `expected` times so far. `false`: another process was first, and nothing was
    /// written.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`]: it may have been set. Read the register before repeating the call.
    async fn set_register(&self, key: &str, expected: u64, value: &Value) -> Result<bool, Error>;

    /// Takes a claimed interaction that this process cannot read out of the inbox and keeps it. `why` holds none of its
    /// contents.
    async fn set_aside_interaction(&self, partition: Partition, seq: Seq, why: &str) -> Result<(), Error>;

    /// Returns the entries that this process, or one before it, could not read; the oldest first, at most `limit`.
    async fn unreadable(&self, limit: usize) -> Result<Vec<Unreadable>, Error>;

    /// Writes something and checks that the next start would find it.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`], with the reason, if an acknowledged write could be lost.
    async fn probe(&self) -> Result<(), Error>;

    /// Reports whether the store answers, its name, and whether its settings keep acknowledged writes.
    async fn durability(&self) -> Result<Durability, Error>;
}
