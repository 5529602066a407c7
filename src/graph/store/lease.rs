//! The right to advance a thread, and the data handed over with it.

use std::time::Duration;

use countersign_core::{
    clock::Timestamp,
    ids::{GraphName, ThreadId, WorkerId},
};

use super::{QueuedMessage, Version};
use crate::{action::ActionRecord, json::Json};

/// Proof that this worker may advance one thread. Only [`super::Store::acquire`] creates one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The thread.
    pub thread: ThreadId,
    /// The worker.
    pub worker: WorkerId,
    /// The graph that the thread belongs to; only this graph may advance it.
    pub graph: GraphName,
    /// The fencing token, which increases with each lease of the thread. A write with an older one
    /// is refused.
    pub fence: u64,
}

/// Who takes a lease or a claim, and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The worker.
    pub worker: WorkerId,
    /// The duration.
    pub ttl: Duration,
    /// The present, by people's clock.
    pub now: Timestamp,
}

impl Holder {
    /// Creates a holder.
    pub fn new(worker: impl Into<WorkerId>, ttl: Duration, now: Timestamp) -> Self {
        Self { worker: worker.into(), ttl, now }
    }
}

/// A leased thread with everything that is needed to continue it.
#[derive(Clone, Debug, PartialEq)]
pub struct Acquired {
    /// The lease.
    pub lease: Lease,
    /// The saved checkpoint.
    pub saved: Saved,
    /// The unread mailbox, in order of arrival.
    pub messages: Vec<QueuedMessage>,
    /// The action that was decided in the write that leased the thread, if that is known.
    pub decided: Option<Box<ActionRecord>>,
}

/// A thread's saved checkpoint: the last full snapshot and the deltas since.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Saved {
    /// The version after all deltas.
    pub version: Version,
    /// The last full checkpoint, if there is one.
    pub snapshot: Option<Json>,
    /// The deltas since the snapshot, as JSON Patches, oldest first.
    pub deltas: Vec<Json>,
}

/// The treatment of the lease after a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// The worker keeps the lease.
    Keep,
    /// The worker releases the thread, which is immediately ready again if its mailbox is not
    /// empty.
    Release,
    /// The worker releases the thread, which is ready again at this time, for example for a retry,
    /// or as soon as a new message arrives. Messages that are already in its mailbox wait as well,
    /// since they cannot be processed earlier.
    ReleaseUntil(Timestamp),
}
