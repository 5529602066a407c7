//! Faults that a test injects.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use serde::{Deserialize, Serialize};

/// A fault in the handling of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
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

/// A fault that some of the requests that fit have.
#[derive(Clone, Debug)]
pub struct Rate {
    /// The fault.
    pub fault: Fault,
    /// The text that `METHOD /path` contains.
    pub only: String,
    /// The share of these requests, in thousandths.
    pub per_mille: u16,
}

impl Rate {
    /// Creates the rate of a fault.
    pub fn new(fault: Fault, only: &str, per_mille: u16) -> Self {
        Self { fault, only: only.to_owned(), per_mille }
    }
}

/// Faults that a seed chooses. The choice depends on the request and on how often the same request came before, not on
/// the order of other requests, so that several clients at the same time change nothing.
#[derive(Debug, Default)]
struct Chosen {
    seed: u64,
    rates: Vec<Rate>,
    seen: HashMap<String, u64>,
}

impl Chosen {
    fn take(&mut self, request: &str) -> Option<Fault> {
        if self.rates.is_empty() {
            return None;
        }
        let seen = self.seen.entry(request.to_owned()).or_default();
        *seen += 1;
        let mut hasher = DefaultHasher::new();
        (self.seed, request, *seen).hash(&mut hasher);
        let mut drawn = hasher.finish() % 1000;
        for rate in self.rates.iter().filter(|rate| request.contains(&rate.only)) {
            match drawn.checked_sub(u64::from(rate.per_mille)) {
                None => return Some(rate.fault),
                Some(rest) => drawn = rest,
            }
        }
        None
    }
}

#[derive(Debug, Default)]
struct Plan {
    once: Vec<(Fault, String)>,
    recurring: Vec<Recurring>,
    chosen: Chosen,
    /// The number of times that each fault was applied.
    applied: HashMap<Fault, u64>,
    slow: Duration,
    is_down: bool,
}

impl Plan {
    fn next(&mut self, request: &str) -> Option<Fault> {
        if let Some(at) = self.once.iter().position(|(_, only)| request.contains(only)) {
            return Some(self.once.remove(at).0);
        }
        let mut due = None;
        for recurring in self.recurring.iter_mut().filter(|recurring| request.contains(&recurring.only)) {
            recurring.seen += 1;
            if recurring.seen % recurring.nth == 0 {
                due = due.or(Some(recurring.fault));
            }
        }
        due.or_else(|| self.chosen.take(request))
    }
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

    /// Applies faults at these rates, as the seed chooses, until [`Self::clear`].
    pub fn at_rates(&self, seed: u64, rates: Vec<Rate>) {
        self.plan().chosen = Chosen { seed, rates, seen: HashMap::new() };
    }

    /// Returns how often each fault was applied so far, also before [`Self::clear`]; the most frequent one first.
    pub fn applied(&self) -> Vec<(Fault, u64)> {
        let mut applied: Vec<_> = self.plan().applied.iter().map(|(fault, times)| (*fault, *times)).collect();
        applied.sort_by_key(|(fault, times)| (std::cmp::Reverse(*times), format!("{fault:?}")));
        applied
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
        let mut plan = self.plan();
        let applied = std::mem::take(&mut plan.applied);
        *plan = Plan { applied, ..Plan::default() };
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
        let fault = plan.next(request)?;
        *plan.applied.entry(fault).or_default() += 1;
        Some(fault)
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
        assert_eq!(faults.applied(), [(Fault::Status(500), 2), (Fault::LostAnswer, 1)]);
    }

    #[test]
    fn a_seed_chooses_the_same_faults_in_any_order() {
        let taken = |seed: u64, backwards: bool| {
            let faults = Faults::default();
            let rates = [Rate::new(Fault::Status(500), "GET", 100), Rate::new(Fault::TooMany(1), "messages", 100)];
            faults.at_rates(seed, rates.to_vec());
            let mut requests: Vec<_> = (0..1000).collect();
            if backwards {
                requests.reverse();
            }
            let mut hit: Vec<_> = requests
                .into_iter()
                .filter_map(|n| faults.take(&format!("GET /messages/{n}")).map(|fault| (n, fault)))
                .collect();
            hit.sort_by_key(|(n, _)| *n);
            hit
        };
        assert_eq!(taken(1, false), taken(1, true));
        assert_ne!(taken(1, false), taken(2, false));
        let (failed, limited): (Vec<_>, Vec<_>) =
            taken(1, false).into_iter().partition(|(_, fault)| *fault == Fault::Status(500));
        assert!((60..140).contains(&failed.len()) && (60..140).contains(&limited.len()), "{failed:?} {limited:?}");
    }
}
