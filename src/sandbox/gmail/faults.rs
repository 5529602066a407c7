//! Faults that a test injects.

use std::{
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use serde::{Deserialize, Serialize};

/// A fault in the handling of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// The request has no effect and is refused with this status, in Google's error format. 403 is an exceeded rate.
    Status(u16),
    /// The request has no effect and is answered with status 429 and these seconds in `Retry-After`.
    TooMany(u64),
    /// A proxy in front of Gmail answers with this status and an HTML page; Gmail does not receive the request.
    Proxy(u16),
    /// The request takes effect and is answered with this status, in Google's error format.
    StatusAfterEffect(u16),
    /// The request takes effect, and the connection closes without an answer.
    LostAnswer,
    /// The connection closes without an effect.
    LostRequest,
    /// The request takes effect and has no answer.
    HangAfterEffect,
    /// The request has no effect and no answer.
    Hang,
    /// The connection closes without an answer, and the request takes effect after this many milliseconds of the
    /// stand-in's clock.
    Late(u64),
    /// The body of the answer does not end. The request has no effect.
    Flood,
}

/// A fault for each `nth` request that fits.
#[derive(Clone, Debug)]
struct Recurring {
    nth: u64,
    seen: u64,
    fault: Fault,
    only: String,
}

#[derive(Debug, Default)]
struct Plan {
    once: Vec<(Fault, String)>,
    recurring: Vec<Recurring>,
    slow: Duration,
    is_down: bool,
}

/// The faults of a stand-in. Clones share their state. A fault applies to requests whose `METHOD /path` contains the
/// given text; the empty text fits all.
#[derive(Clone, Debug, Default)]
pub struct Faults(Arc<Mutex<Plan>>);

impl Faults {
    /// Queues a fault for the next request.
    pub fn next(&self, fault: Fault) {
        self.next_on("", fault);
    }

    /// Queues a fault for the next request that fits.
    pub fn next_on(&self, only: &str, fault: Fault) {
        self.plan().once.push((fault, only.to_owned()));
    }

    /// Applies a fault to each `nth` request that fits, until [`Self::clear`].
    pub fn every(&self, nth: u64, only: &str, fault: Fault) {
        self.plan().recurring.push(Recurring { nth: nth.max(1), seen: 0, fault, only: only.to_owned() });
    }

    /// Delays every answer.
    pub fn slow(&self, delay: Duration) {
        self.plan().slow = delay;
    }

    /// Takes the stand-in down or up again. While it is down, connections are closed without an answer.
    pub fn down(&self, is_down: bool) {
        self.plan().is_down = is_down;
    }

    /// Removes all faults.
    pub fn clear(&self) {
        *self.plan() = Plan::default();
    }

    /// Returns true if connections are closed.
    pub(crate) fn is_down(&self) -> bool {
        self.plan().is_down
    }

    /// Returns the delay of every answer.
    pub(crate) fn delay(&self) -> Duration {
        self.plan().slow
    }

    /// Returns the fault that applies to the request. One from the queue is removed.
    pub(crate) fn take(&self, request: &str) -> Option<Fault> {
        let mut plan = self.plan();
        if let Some(at) = plan.once.iter().position(|(_, only)| request.contains(only)) {
            return Some(plan.once.remove(at).0);
        }
        let mut due = None;
        for recurring in plan.recurring.iter_mut().filter(|recurring| request.contains(&recurring.only)) {
            recurring.seen += 1;
            if recurring.seen % recurring.nth == 0 {
                due = due.or(Some(recurring.fault));
            }
        }
        due
    }

    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.0.lock().expect("no holder of the lock panics")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queued_fault_applies_once_and_a_recurring_one_to_each_nth_request() {
        let faults = Faults::default();
        faults.next_on("drafts/send", Fault::LostAnswer);
        faults.every(3, "GET", Fault::Status(500));
        assert_eq!(faults.take("POST /drafts"), None);
        assert_eq!(faults.take("POST /drafts/send"), Some(Fault::LostAnswer));
        assert_eq!(faults.take("POST /drafts/send"), None);
        let taken: Vec<_> = (0..6).map(|_| faults.take("GET /messages").is_some()).collect();
        assert_eq!(taken, [false, false, true, false, false, true]);
        faults.clear();
        assert!((0..6).all(|_| faults.take("GET /messages").is_none()));
    }
}
