//! Requests that take effect after their caller has timed out.
//!
//! A late request gets no answer. It is carried out on the first access to the world after its due
//! time, so that every access sees the right state without a timer or a task.

use std::sync::Mutex;

use countersign_core::clock::Timestamp;

use super::{ledger::Entry, routes::Call};

/// A request that has not taken effect yet.
#[derive(Debug)]
pub(crate) struct LateRequest {
    /// The time at which it takes effect.
    pub(crate) due: Timestamp,
    /// The request.
    pub(crate) call: Call,
    /// Its entry for the ledger, written when it takes effect.
    pub(crate) entry: Entry,
}

/// The requests that have not taken effect yet.
#[derive(Debug, Default)]
pub(crate) struct Late(Mutex<Vec<LateRequest>>);

impl Late {
    /// Adds a request.
    pub(crate) fn hold(&self, held: LateRequest) {
        self.0.lock().expect("no holder of the lock panics").push(held);
    }

    /// Removes and returns the requests that are due, earliest first.
    pub(crate) fn due(&self, now: Timestamp) -> Vec<LateRequest> {
        let mut held = self.0.lock().expect("no holder of the lock panics");
        let mut due: Vec<_> = held.extract_if(.., |held| held.due <= now).collect();
        due.sort_by_key(|held| held.due);
        due
    }
}
