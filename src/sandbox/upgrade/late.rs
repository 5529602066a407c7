//! Requests that take effect after their caller has given up.
//!
//! A held request gets no answer. It takes effect once the clock has come to its moment, before the world is looked at
//! the next time: every look sees the world as it would be by then, with no timer and no thread to wait for.

use std::sync::Mutex;

use countersign_core::clock::Timestamp;

use super::{ledger::Entry, routes::Call};

/// A request that has not taken effect yet.
#[derive(Debug)]
pub(crate) struct LateRequest {
    /// The moment at which it does.
    pub(crate) due: Timestamp,
    /// The request.
    pub(crate) call: Call,
    /// Its line in the ledger, written when it takes effect.
    pub(crate) entry: Entry,
}

/// The requests that have not taken effect yet.
#[derive(Debug, Default)]
pub(crate) struct Late(Mutex<Vec<LateRequest>>);

impl Late {
    /// Keeps a request until its moment.
    pub(crate) fn hold(&self, held: LateRequest) {
        self.0.lock().expect("nobody panics with the lock").push(held);
    }

    /// Takes those whose moment has come, the earliest first.
    pub(crate) fn due(&self, now: Timestamp) -> Vec<LateRequest> {
        let mut held = self.0.lock().expect("nobody panics with the lock");
        let mut due: Vec<_> = held.extract_if(.., |held| held.due <= now).collect();
        due.sort_by_key(|held| held.due);
        due
    }
}
