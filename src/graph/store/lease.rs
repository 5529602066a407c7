//! The right to advance a thread, and the data handed over with it.

use countersign_core::{
    clock::Timestamp,
    ids::{GraphName, ThreadId, WorkerId},
};
use serde_json::Value;

use super::{QueuedMessage, Version};

/// Proof that this worker may advance one thread. Only [`super::Store::acquire`] makes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The thread.
    pub thread: ThreadId,
    /// The worker.
    pub worker: WorkerId,
    /// The graph that the thread belongs to: no other may advance it.
    pub graph: GraphName,
    /// The number of the lease, which grows with each lease of the thread; a write with an old one is refused.
    pub fence: u64,
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

/// The fate of the lease after a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// The worker keeps the thread.
    Keep,
    /// The worker releases the thread, which is ready again at once if its mailbox is not empty.
    Release,
    /// The worker releases the thread, which is ready at this time, or as soon as more messages arrive (a wait before a
    /// retry). Unread messages in its mailbox wait with it: they could not be taken up before the retry anyway.
    ReleaseUntil(Timestamp),
}
