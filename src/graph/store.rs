//! What the engine asks of a place that remembers.
//!
//! Each operation is atomic: it happens whole or not at all, also when the process is killed in the middle. After an
//! operation that answered, the effect survives a crash of the machine (as far as the store's settings allow, which
//! [`Store::durability`] tells). Two implementations exist, one conformance suite runs against both
//! (`tests/integration/stores.rs`).
//!
//! **One thread, one partition.** Everything of a thread (mailbox, steps, actions, outbox, timers, audit) lives in
//! [`ThreadId::partition`], so that each operation touches one partition only.
//!
//! **Two lanes.** What arrives for a thread waits in its mailbox until a worker *leases* the thread. What needs an
//! answer although the thread may be busy (clicks, commands, timers) waits on the *desk*, where entries are claimed one
//! by one without a lease.
//!
//! **Time.** Leases and claims run by the store's own clock. `now` arguments are for what people see: timers, waits.
//!
//! The design we did not take: a key-value façade with the logic above it. What must be atomic would then need locks.

use std::{fmt, time::Duration};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    action::{ActionRecord, Decision, Status},
    digest::Digest,
};
use crate::{
    clock::Timestamp,
    ids::{
        ActionId, ApprovalId, ChannelId, CommitId, DedupKey, MessageTs, Nonce, Partition, RunId, Slot, ThreadId,
        UserId, WorkerId,
    },
    reply::{Card, CardState, Reply},
};

/// A position in a mailbox, an outbox or on the desk of one partition. Only grows.
pub type Seq = u64;

/// How many steps a thread has saved.
pub type Version = u64;

/// Something that arrived, to be stored before it is acknowledged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Delivery {
    /// Where it goes.
    pub to: Destination,
    /// Any of these known already: it is a repeat and is dropped. All of them are remembered for at least a day.
    pub dedup: Vec<DedupKey>,
    /// When it arrived.
    pub at: Timestamp,
}

/// Where a delivery goes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Destination {
    /// Into the mailbox of a thread.
    Mailbox {
        /// The thread.
        thread: ThreadId,
        /// Whether the bot is addressed. If not, and the thread is not one of ours, the entry is *parked*: it is seen
        /// only if somebody addresses the bot there before [`Store::sweep`] drops it.
        addressed: bool,
        /// What arrived.
        mail: Mail,
    },
    /// On the desk of a partition.
    Desk {
        /// The partition.
        partition: Partition,
        /// What arrived, in the words of `conversation`, which alone reads it.
        entry: Value,
        /// Claimed by this worker from the start, for the time given, so that it can be handled without another call.
        claim: Option<(WorkerId, Duration)>,
    },
}

/// What waits in a thread's mailbox.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Mail {
    /// A person said something, or pressed a button that says something.
    Said {
        /// Who.
        by: UserId,
        /// What, without the mention of the bot.
        text: String,
        /// When, by Slack; orders messages that arrive in another order.
        ts: MessageTs,
    },
    /// An action of this thread was decided.
    Decided {
        /// Which.
        action: ActionId,
        /// The question it answers.
        approval: ApprovalId,
        /// The deciding decision.
        decision: Decision,
    },
    /// A person wants the run to end.
    Stop {
        /// Who.
        by: UserId,
    },
}

/// A mailbox entry with its position.
#[derive(Clone, Debug, PartialEq)]
pub struct Letter {
    /// Its position; goes into [`Changes::acks`].
    pub seq: Seq,
    /// What it says.
    pub mail: Mail,
}

/// What became of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ingested {
    /// Stored, at this position.
    New(Seq),
    /// One of its keys was known: nothing was stored.
    Duplicate,
    /// Stored, but the thread is not one of ours and was not woken.
    Parked(Seq),
}

/// Proof that this worker may advance one thread. Only [`Store::acquire`] makes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The thread.
    pub thread: ThreadId,
    /// The worker.
    pub worker: WorkerId,
    /// Grows with each lease of the thread; a write with an old one is refused.
    pub fence: u64,
}

/// A leased thread with all that is needed to go on.
#[derive(Clone, Debug, PartialEq)]
pub struct Acquired {
    /// The right to write.
    pub lease: Lease,
    /// What is saved.
    pub saved: Saved,
    /// The unread mailbox, in order of arrival.
    pub letters: Vec<Letter>,
}

/// A thread's saved checkpoint: the last whole one and the differences since.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Saved {
    /// The version after all deltas.
    pub version: Version,
    /// The last whole checkpoint, if there is one.
    pub snapshot: Option<Value>,
    /// JSON Patches, oldest first.
    pub deltas: Vec<Value>,
}

/// One step of a run, as saved: the difference it made, and what people see in a trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepRecord {
    /// The version of this shape.
    pub format: u32,
    /// The run it belongs to; the trace id.
    pub run: RunId,
    /// The node that ran.
    pub node: String,
    /// What set it off, if it was not the step before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// What changed in the checkpoint, as a JSON Patch.
    pub delta: Value,
    /// Where it goes on, in a word: a node, `await`, `end`.
    pub next: String,
    /// When it began.
    pub at: Timestamp,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// What it cost in model tokens, if it asked a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// What went wrong, if it failed and is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl StepRecord {
    /// The version of the stored shape.
    pub const FORMAT: u32 = 1;
}

/// What model calls cost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Which model.
    pub model: String,
    /// How many calls.
    pub calls: u32,
    /// Tokens sent and not read from the cache.
    pub input_tokens: u64,
    /// Tokens sent and read from the cache.
    pub cached_tokens: u64,
    /// Tokens received.
    pub output_tokens: u64,
}

/// What one atomic write changes, all in one thread.
#[derive(Clone, Debug, PartialEq)]
pub struct Changes {
    /// Names the write: a repeat of it answers as the first did and changes nothing.
    pub commit: CommitId,
    /// The thread.
    pub thread: ThreadId,
    /// The step that was taken. Only under a lease.
    pub step: Option<StepRecord>,
    /// The whole checkpoint after the step, from time to time.
    pub snapshot: Option<Value>,
    /// Mailbox entries that are dealt with.
    pub acks: Vec<Seq>,
    /// Desk entries of the same partition that are dealt with.
    pub desk_acks: Vec<Seq>,
    /// New mailbox entries; they wake the thread.
    pub mail: Vec<Mail>,
    /// What is to be said.
    pub outbox: Vec<Outgoing>,
    /// Timers to set or to take away.
    pub timers: Vec<TimerChange>,
    /// Actions that are new or that move.
    pub actions: Vec<ActionChange>,
    /// What goes into the record.
    pub audit: Vec<AuditDraft>,
}

impl Changes {
    /// No change yet.
    pub fn new(commit: CommitId, thread: ThreadId) -> Self {
        Self {
            commit,
            thread,
            step: None,
            snapshot: None,
            acks: Vec::new(),
            desk_acks: Vec::new(),
            mail: Vec::new(),
            outbox: Vec::new(),
            timers: Vec::new(),
            actions: Vec::new(),
            audit: Vec::new(),
        }
    }
}

/// A new action, or a move of one.
#[derive(Clone, Debug, PartialEq)]
pub struct ActionChange {
    /// The revision the record must have now; `None`: there must be no such record.
    pub expected: Option<u64>,
    /// The record as it is to be. Its status must be a legal move from the one that is stored.
    pub record: ActionRecord,
}

/// What happens to the lease after a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// The worker keeps the thread.
    Keep,
    /// The worker lets go. The thread is ready again at once if its mailbox is not empty.
    Release,
    /// The worker lets go, and the thread is ready at this time at the latest (a wait before a retry).
    ReleaseUntil(Timestamp),
}

/// A message to be said, in order within its thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outgoing {
    /// The message it is, for what is posted once and edited afterwards.
    pub slot: Option<Slot>,
    /// Finds the post in Slack after its answer was lost.
    pub nonce: Nonce,
    /// Whether it only tells of progress: it may be dropped for something newer, and everything else overtakes it.
    pub progress: bool,
    /// Not to be sent before.
    pub not_before: Timestamp,
    /// What is said.
    pub body: Outbound,
}

/// What can be said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Outbound {
    /// The line that tells what is being done.
    Status {
        /// One short phrase.
        text: String,
    },
    /// An answer.
    Reply {
        /// What it says.
        reply: Reply,
    },
    /// The card of an action.
    Card {
        /// What it asks.
        card: Card,
        /// How it stands.
        state: CardState,
    },
    /// Takes the message of the slot away, if there is one.
    Remove,
}

/// An outgoing message that this worker is to send.
#[derive(Clone, Debug, PartialEq)]
pub struct Claimed {
    /// The thread whose outbox it is in.
    pub thread: ThreadId,
    /// Its position.
    pub seq: Seq,
    /// How often it was tried before: if it was, and the slot is not posted yet, look before posting.
    pub attempts: u32,
    /// Where the slot's message is, if it is posted.
    pub posted: Option<Posted>,
    /// The message.
    pub outgoing: Outgoing,
}

/// Where a message of ours is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Posted {
    /// The channel.
    pub channel: ChannelId,
    /// The message.
    pub ts: MessageTs,
}

/// What became of an attempt to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sent {
    /// It is there; where, if it fills a slot.
    Delivered(Option<Posted>),
    /// Again at this time; the attempt counts.
    Retry(Timestamp),
    /// It cannot be sent, ever.
    Dropped,
}

/// A timer to set or to take away, by its key within the thread.
#[derive(Clone, Debug, PartialEq)]
pub enum TimerChange {
    /// Sets it, or moves it.
    Set {
        /// Its key within the thread.
        key: String,
        /// When it is due.
        due: Timestamp,
        /// What is put on the desk then.
        entry: Value,
    },
    /// Takes it away.
    Clear {
        /// Its key.
        key: String,
    },
}

/// A desk entry that this worker is to handle.
#[derive(Clone, Debug, PartialEq)]
pub struct DeskEntry {
    /// The partition it is in.
    pub partition: Partition,
    /// Its position; goes into [`Changes::desk_acks`] or [`Store::finish_desk`].
    pub seq: Seq,
    /// What it says, in the words of `conversation`.
    pub entry: Value,
}

/// One event for the record, before it is chained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AuditDraft {
    /// When.
    pub at: Timestamp,
    /// What kind of thing happened.
    pub kind: AuditKind,
    /// Who did it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<UserId>,
    /// Which action it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<ActionId>,
    /// What exactly: digests, names, reasons.
    pub detail: Value,
}

/// What the record tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuditKind {
    /// Somebody asked for something.
    Asked,
    /// A card was made.
    Shown,
    /// Somebody pressed a button and it did not count.
    ClickRefused,
    /// Somebody decided, or time did.
    Decided,
    /// The request was about to leave.
    Executed,
    /// How it ended.
    Outcome,
}

/// One event of the record, chained to the one before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// Counts from 1 within the thread.
    pub seq: u64,
    /// The hash of the entry before; empty for the first.
    pub previous: String,
    /// What happened.
    pub event: AuditDraft,
    /// SHA-256 over all of the above.
    pub hash: String,
}

impl AuditEntry {
    /// Chains an event to the entry before it.
    pub fn chain(thread: &ThreadId, seq: u64, previous: &str, event: AuditDraft) -> Self {
        let hash = Self::hash_of(thread, seq, previous, &event);
        Self { seq, previous: previous.to_owned(), event, hash }
    }

    /// Whether the hash is that of the content and the entry follows `previous`.
    pub fn holds(&self, thread: &ThreadId, previous: &str) -> bool {
        self.previous == previous && self.hash == Self::hash_of(thread, self.seq, previous, &self.event)
    }

    fn hash_of(thread: &ThreadId, seq: u64, previous: &str, event: &AuditDraft) -> String {
        let event = serde_json::to_value(event).expect("an audit event is plain data");
        Digest::of(&[&json!(thread.to_string()), &json!(seq), &json!(previous), &event]).as_str().to_owned()
    }
}

/// Which actions to list, newest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ActionFilter {
    /// Only of this thread.
    pub thread: Option<ThreadId>,
    /// Only with one of these statuses; empty: any.
    pub statuses: Vec<Status>,
    /// At most so many.
    pub limit: usize,
}

/// A thread in a list.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadSummary {
    /// The thread.
    pub thread: ThreadId,
    /// How many steps it has saved.
    pub version: Version,
    /// When something last happened in it.
    pub updated_at: Timestamp,
    /// Whether a worker holds it or it is ready for one.
    pub busy: bool,
}

/// Whether what was answered survives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Durability {
    /// What the store is: `SQLite 3.50 (countersign.sqlite)`, `Redis 7.2 (127.0.0.1:6379)`.
    pub name: String,
    /// What is wrong with its settings, one line each, with what would be right. Empty: nothing is lost.
    pub problems: Vec<String>,
}

/// Why an operation did not do what was asked.
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
        /// What the write assumed.
        expected: Version,
        /// What is stored.
        found: Version,
    },
    /// The action was moved by somebody else, or the move is not legal. Nothing was written.
    #[error("action {id} has moved on")]
    ActionMoved {
        /// Which.
        id: ActionId,
        /// The record as it stands; `None` if there is none.
        current: Option<Box<ActionRecord>>,
    },
    /// The store did not answer. The write may or may not have happened; repeating it with the same commit id is safe.
    #[error("the store does not answer")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// What is stored cannot be read.
    #[error("cannot read what is stored: {what}")]
    Corrupt {
        /// What and where.
        what: String,
    },
}

/// A place that remembers threads.
#[async_trait]
pub trait Store: Send + Sync + fmt::Debug {
    /// Stores a delivery, unless it is a repeat, and wakes its thread.
    async fn ingest(&self, delivery: &Delivery) -> Result<Ingested, Error>;

    /// Leases a ready thread: `only` that one, or whichever has been ready longest. A thread whose lease ran out is
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
    /// [`Error::Fenced`] if it is not ours any more.
    async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<(), Error>;

    /// Mailbox entries that came after `after`, in order of arrival. For a worker that goes on with what came meanwhile.
    async fn letters(&self, lease: &Lease, after: Seq) -> Result<Vec<Letter>, Error>;

    /// Writes what a step changed. Returns the new version: `expected + 1` with a step, `expected` without.
    ///
    /// # Errors
    ///
    /// [`Error::Fenced`], [`Error::VersionConflict`], [`Error::ActionMoved`]: nothing was written. A repeated commit id
    /// answers as the first time.
    async fn commit(&self, lease: &Lease, expected: Version, changes: &Changes, then: Then) -> Result<Version, Error>;

    /// Writes without a lease: decisions, and whatever else the desk does. [`Changes::step`] and
    /// [`Changes::snapshot`] must be empty.
    ///
    /// # Errors
    ///
    /// [`Error::ActionMoved`] if somebody was faster: nothing was written.
    async fn apply(&self, changes: &Changes) -> Result<(), Error>;

    /// Claims desk entries that nobody handles, oldest first. A claim that is not finished within `ttl` is void.
    async fn claim_desk(&self, worker: &WorkerId, ttl: Duration, limit: usize) -> Result<Vec<DeskEntry>, Error>;

    /// Takes a desk entry away.
    async fn finish_desk(&self, partition: Partition, seq: Seq) -> Result<(), Error>;

    /// Claims outgoing messages that may be sent now, at most one per thread: the oldest that is not progress, or else
    /// the progress. A claim that is not finished within `ttl` is void, and the message counts as tried.
    async fn claim_outbox(
        &self,
        worker: &WorkerId,
        ttl: Duration,
        now: Timestamp,
        limit: usize,
        only: Option<&ThreadId>,
    ) -> Result<Vec<Claimed>, Error>;

    /// Records what became of a claimed message.
    async fn finish_outbox(&self, thread: &ThreadId, seq: Seq, sent: &Sent) -> Result<(), Error>;

    /// Puts every timer that is due on its partition's desk. Returns how many.
    async fn fire_timers(&self, now: Timestamp) -> Result<usize, Error>;

    /// Drops what is kept for a time only: deduplication keys older than a day, entries parked for two minutes.
    async fn sweep(&self, now: Timestamp) -> Result<(), Error>;

    /// The action that a button's key names.
    async fn action_by_approval(&self, approval: &ApprovalId) -> Result<Option<ActionRecord>, Error>;

    /// An action of a thread.
    async fn action(&self, thread: &ThreadId, id: &ActionId) -> Result<Option<ActionRecord>, Error>;

    /// Actions, newest first.
    async fn actions(&self, filter: &ActionFilter) -> Result<Vec<ActionRecord>, Error>;

    /// The saved checkpoint of a thread, without a lease; `None` if the thread is not one of ours.
    async fn load(&self, thread: &ThreadId) -> Result<Option<Saved>, Error>;

    /// The steps of a thread after version `after`, oldest first, at most `limit`.
    async fn steps(&self, thread: &ThreadId, after: Version, limit: usize)
    -> Result<Vec<(Version, StepRecord)>, Error>;

    /// The record of a thread, oldest first.
    async fn audit(&self, thread: &ThreadId) -> Result<Vec<AuditEntry>, Error>;

    /// Where the message of a slot is.
    async fn posted(&self, thread: &ThreadId, slot: &Slot) -> Result<Option<Posted>, Error>;

    /// Threads, the one with the newest change first.
    async fn threads(&self, limit: usize) -> Result<Vec<ThreadSummary>, Error>;

    /// Keeps bytes under their own hash (SHA-256, hexadecimal), which it returns.
    async fn put_blob(&self, bytes: &[u8]) -> Result<String, Error>;

    /// The bytes kept under a hash.
    async fn get_blob(&self, hash: &str) -> Result<Option<Vec<u8>>, Error>;

    /// Whether the store answers, what it is, and whether its settings keep what was answered.
    async fn durability(&self) -> Result<Durability, Error>;
}
