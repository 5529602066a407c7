//! The trait for the store in which the engine keeps its threads.
//!
//! Each operation is atomic: it takes effect completely or not at all, even if the process is
//! killed in the middle. Once an operation has returned, its effect survives a crash of the
//! machine, as far as the store's settings allow ([`Store::durability`] reports this). There are
//! two implementations; one conformance suite runs against both (`tests/integration/stores.rs`).
//!
//! **One thread, one partition.** All data of a thread (mailbox, steps, actions, outbox, timers,
//! audit trail) is in [`ThreadId::partition`], so each operation concerns only one partition.
//!
//! **Mailboxes and the inbox.** Messages for a thread wait in its mailbox until a worker *leases*
//! the thread. Interactions that need an answer even while the thread is busy (clicks, commands,
//! timers) wait in the *inbox*, where entries are claimed individually without a lease.
//!
//! **Time.** Leases and claims use the store's own clock. The `now` arguments are for times that
//! people see, such as timers and waits.
//!
//! **Unreadable entries do not block others.** A message, an interaction or an outgoing message
//! that this process cannot read is *set aside*: it is kept unchanged, counted, logged once and
//! listed by [`Store::unreadable`], and does not hold up later entries. [`Store::sweep`] puts back
//! the entries that the calling process can read, such as those written by a newer program once
//! that program runs. Lists leave out unreadable rows, but an audit entry keeps its place
//! ([`AuditEntry::unreadable`]).
//!
//! A design with a plain key-value interface and this logic on top of it was rejected, because
//! atomic changes would then need locks.

mod audit;
mod changes;
mod dead_letter;
mod delivery;
mod forget;
mod head;
mod known_cards;
mod lease;
mod outgoing;
mod query;
mod register;
mod unreadable;
mod written;

use std::{fmt, time::Duration};

use async_trait::async_trait;
use countersign_core::{
    clock::Timestamp,
    ids::{ActionId, GraphName, Slot, ThreadId},
};
use serde_json::Value;

pub use self::{
    audit::{AuditDraft, AuditEntry, AuditKind, ChainFault, Unchained},
    changes::{ActionChange, Changes, StepRecord, TimerChange, Usage},
    dead_letter::{DeadLetter, Undelivered},
    delivery::{
        ActionFollowUp, ClaimedInteraction, Delivery, Destination, External, Handling, Ingested, QueuedMessage,
        Settlement, ThreadMessage, TooLong, graph_of_new,
    },
    forget::{Forget, UNFINISHED},
    head::{AuditHead, AuditTrail, TrailFault},
    known_cards::{KnownCard, KnownCards},
    lease::{Acquired, Holder, Lease, Saved, Then},
    outgoing::{Claimed, Outbound, Outgoing, Posted, Sent, ShownCard, TRIED_OFTEN, Waiting},
    query::{ActionFilter, ActionKey, ActionsOf, Backlog, Durability, Keep, ThreadFilter, ThreadSummary, Unwritable},
    register::{Register, TypedRegister},
    unreadable::{Unreadable, Versioned, read_versioned, why_unreadable},
    written::Written,
};
use super::action::ActionRecord;

/// A position in a mailbox, in an outbox, or in the inbox of a partition. Positions only increase.
pub type Seq = u64;

/// The number of steps that a thread has saved.
pub type Version = u64;

/// The reason why an operation failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another worker now holds the lease: stop writing at once.
    #[error("the lease on thread {0} was taken over")]
    Fenced(ThreadId),
    /// The thread is not at the version that the write assumed.
    #[error("thread {thread} is at version {found}, not {expected}")]
    VersionConflict {
        /// The thread.
        thread: ThreadId,
        /// The version that the write assumed.
        expected: Version,
        /// The stored version.
        found: Version,
    },
    /// Another write changed the action, or the transition is not legal. Nothing was written.
    #[error("action {id} has moved on")]
    ActionMoved {
        /// The action.
        id: ActionId,
        /// The current record; `None` if there is none.
        current: Option<Box<ActionRecord>>,
    },
    /// The store did not answer. The write may or may not have happened; repeating it with the same commit id is safe.
    #[error("the store isn't answering")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The data was written by a newer version of this program. It is left unchanged for that
    /// version.
    #[error(
        "{what} was written by a newer Countersign (format {found}; this one reads {known}); run the newer program"
    )]
    Newer {
        /// The kind and place of the data.
        what: String,
        /// The version of its format.
        found: u32,
        /// The newest version that this program reads.
        known: u32,
    },
    /// The thread belongs to a graph that this program does not have. It is left unchanged for a
    /// program that has it.
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
    /// Stores a delivery, unless it is a repeat, wakes its thread, and does what `handling` says, in one request where the
    /// store is elsewhere. Returns the leased thread as well, if there is one: it is not leased if it is not ready, and
    /// need not be if the delivery is not new.
    ///
    /// # Errors
    ///
    /// With [`Handling::Apply`], [`Error::ActionMoved`] if another write came first. Nothing was stored then.
    async fn ingest(&self, delivery: &Delivery, handling: Handling<'_>) -> Result<(Ingested, Option<Acquired>), Error>;

    /// Leases a ready thread: the thread `only`, or else the one that has been ready longest. A
    /// thread whose lease has expired is ready again. Returns `None` if no thread is ready.
    async fn acquire(&self, holder: &Holder, only: Option<&ThreadId>) -> Result<Option<Acquired>, Error>;

    /// Extends a lease to `ttl` from now.
    ///
    /// # Errors
    ///
    /// [`Error::Fenced`] if the lease is no longer ours.
    async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<(), Error>;

    /// Returns the messages of a thread after the position `after` that no step has acknowledged yet, in order of arrival.
    /// Unreadable ones are set aside if there is a lease, and left out if there is none.
    ///
    /// # Errors
    ///
    /// [`Error::Fenced`] if the lease is no longer ours.
    async fn messages(&self, thread: &ThreadId, after: Seq, lease: Option<&Lease>)
    -> Result<Vec<QueuedMessage>, Error>;

    /// Writes the changes of one or several steps. Returns the new version: `expected` and the number
    /// of steps that the changes include. Repeating a commit id returns the same result as the first
    /// time.
    ///
    /// With `claims`, messages of the thread are claimed like by [`Self::claim_outbox`], in one request where the store is
    /// elsewhere: at most that number, which are sent one after another. Only the first may be one that was tried before
    /// or that reports progress.
    ///
    /// # Errors
    ///
    /// [`Error::Fenced`], [`Error::VersionConflict`] or [`Error::ActionMoved`]; nothing was
    /// written.
    async fn commit(
        &self,
        lease: &Lease,
        expected: Version,
        changes: &Changes,
        then: Then,
        claims: Option<(&Holder, usize)>,
    ) -> Result<(Version, Vec<Claimed>), Error>;

    /// Writes without a lease: decisions, and other changes caused by interactions.
    /// [`Changes::steps`] and [`Changes::snapshot`] must be empty.
    ///
    /// # Errors
    ///
    /// [`Error::ActionMoved`] if another write came first; nothing was written.
    async fn apply(&self, changes: &Changes) -> Result<(), Error>;

    /// Claims the oldest unclaimed interactions, at most `limit`. A claim that is not finished within `ttl` expires.
    async fn claim_interaction(&self, ttl: Duration, limit: usize) -> Result<Vec<ClaimedInteraction>, Error>;

    /// Ends the claim of an interaction.
    async fn settle_interaction(&self, entry: &ClaimedInteraction, settlement: Settlement<'_>) -> Result<(), Error>;

    /// Claims outgoing messages that may be sent now, at most one per thread: the oldest one that
    /// is not a progress message, or else the progress message. A message that was tried
    /// [`TRIED_OFTEN`] times is claimed only if nothing else in its thread may be sent, and holds
    /// up only its own slot. A claim that is not finished in time expires, and the message
    /// counts as tried.
    async fn claim_outbox(&self, holder: &Holder, limit: usize, only: Option<&ThreadId>)
    -> Result<Vec<Claimed>, Error>;

    /// Returns true if a claim is still valid: it has not expired, and the message has not been
    /// claimed again.
    async fn holds_outbox(&self, claimed: &Claimed) -> Result<bool, Error>;

    /// Records the results of sending messages of one thread that were claimed together, in this order, and, with `next`,
    /// claims the next message of the thread like [`Self::claim_outbox`], in one write. Returns for each result whether its
    /// claim was still valid, and the next message. A claim is not valid if the message has been claimed again in the
    /// meantime or no longer exists. In that case only a delivery is recorded, and only if the message is still to be sent.
    async fn finish_outbox(
        &self,
        sent: &[(Claimed, Sent)],
        next: Option<&Holder>,
    ) -> Result<(Vec<bool>, Option<Claimed>), Error>;

    /// Returns outgoing messages, except progress messages, that were due before `before` and have
    /// not been sent yet: those that have waited longest first, at most `limit`.
    async fn waiting(&self, before: Timestamp, limit: usize) -> Result<Vec<Waiting>, Error>;

    /// Returns messages and interactions that could not be delivered or handled, the oldest first, at most `limit`.
    async fn dead_letters(&self, limit: usize) -> Result<Vec<DeadLetter>, Error>;

    /// Puts a dead letter back, to be sent or handled from `now` on. A message counts as tried, so
    /// it is looked up in Slack before it is posted. Returns false if the dead letter no longer
    /// exists.
    async fn send_again(&self, id: &str, now: Timestamp) -> Result<bool, Error>;

    /// Returns false if no timer is due, no thread is ready, and no interaction or outgoing message
    /// can be claimed, so that looking for them can wait. Work that another process left behind may
    /// be noticed a few seconds late.
    async fn is_anything_due(&self, _now: Timestamp) -> Result<bool, Error> {
        Ok(true)
    }

    /// Moves every due timer to the inbox of its partition. Returns their number.
    async fn fire_timers(&self, now: Timestamp) -> Result<usize, Error>;

    /// Deletes expired data: deduplication keys after a day, parked messages after two minutes,
    /// blobs after their `keep` time, dead letters after [`DeadLetter::KEPT_FOR`]. Puts back
    /// entries that another process set aside and this one can read.
    async fn sweep(&self, now: Timestamp) -> Result<(), Error>;

    /// Deletes the steps of a thread, and the other parts that [`Forget`] names. Returns false, and
    /// deletes nothing, if the thread is no longer finished or is at another version.
    async fn forget(&self, forget: &Forget) -> Result<bool, Error>;

    /// Returns an action.
    async fn action(&self, key: ActionKey<'_>) -> Result<Option<ActionRecord>, Error>;

    /// Returns the actions selected by a filter, newest first, and a register if its key is given, in one request where the
    /// store is elsewhere. Without the register, if it cannot be read.
    async fn actions_and_register(
        &self,
        filter: &ActionFilter,
        key: Option<&str>,
    ) -> Result<(Vec<ActionRecord>, Option<Register>), Error>;

    /// Returns the actions selected by a filter, newest first.
    async fn actions(&self, filter: &ActionFilter) -> Result<Vec<ActionRecord>, Error> {
        Ok(self.actions_and_register(filter, None).await?.0)
    }

    /// Returns the saved checkpoint of a thread; `None` if the bot has no such thread. Needs no
    /// lease.
    async fn load(&self, thread: &ThreadId) -> Result<Option<Saved>, Error>;

    /// Returns the steps of a thread after version `after`, oldest first, at most `limit`.
    async fn steps(&self, thread: &ThreadId, after: Version, limit: usize)
    -> Result<Vec<(Version, StepRecord)>, Error>;

    /// Returns the audit trail of a thread, oldest entry first.
    async fn audit(&self, thread: &ThreadId) -> Result<AuditTrail, Error>;

    /// Returns the place of the message that was posted for a slot.
    async fn posted(&self, thread: &ThreadId, slot: &Slot) -> Result<Option<Posted>, Error>;

    /// Returns the threads selected by a filter, at most `limit`.
    async fn threads(&self, filter: ThreadFilter, limit: usize) -> Result<Vec<ThreadSummary>, Error>;

    /// Returns the amount of pending work, for operators and for callers that wait until there is
    /// none.
    async fn backlog(&self) -> Result<Backlog, Error>;

    /// Stores bytes under their hash (SHA-256, in hexadecimal) and returns the hash.
    async fn put_blob(&self, bytes: &[u8], keep: Keep<'_>) -> Result<String, Error>;

    /// Returns the bytes stored under a hash by [`Self::put_blob`]; `None` if there are none.
    async fn get_blob(&self, hash: &str) -> Result<Option<Vec<u8>>, Error>;

    /// Returns a register: a small value that belongs to no thread and that several processes may
    /// change.
    async fn register(&self, key: &str) -> Result<Register, Error>;

    /// Sets a register if it has been set exactly `expected` times. Returns false, and writes
    /// nothing, if another process has set it in the meantime.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] if the store did not answer: the register may have been set. Read it
    /// before repeating the call.
    async fn set_register(&self, key: &str, expected: u64, value: &Value) -> Result<bool, Error>;

    /// Returns the entries that this process or an earlier one could not read: the oldest first, at
    /// most `limit`.
    async fn unreadable(&self, limit: usize) -> Result<Vec<Unreadable>, Error>;

    /// Returns true if several processes may use the store at the same time.
    fn is_shared(&self) -> bool {
        true
    }

    /// Performs test writes and checks that a restarted process would find them. Returns the partitions that cannot be
    /// written, if others can.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`], with the reason, if nothing can be stored, or any acknowledged write could be lost.
    async fn probe(&self) -> Result<Vec<Unwritable>, Error>;

    /// Returns the name of the store, and whether its settings preserve acknowledged writes. Fails
    /// if the store isn't answering.
    async fn durability(&self) -> Result<Durability, Error>;
}
