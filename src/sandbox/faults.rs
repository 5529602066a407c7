//! Faults that a test injects, and the switch that takes a stand-in down.

use std::{
    collections::HashMap,
    convert::Infallible,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// A fault in the handling of one request. `Own` are the faults that only one service has.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault<Own = Infallible> {
    /// The request has no effect and is refused with this status, in the service's own format.
    Status(u16),
    /// The request has no effect and is answered with status 429 and these seconds in `Retry-After`.
    TooMany(u64),
    /// A proxy in front of the service answers with this status and an HTML page. The request has no effect.
    Proxy(u16),
    /// The request has no effect and is answered with this status and JSON.
    Answer(u16, Value),
    /// The request takes effect, and the connection closes without an answer.
    LostAnswer,
    /// The connection closes without an effect.
    LostRequest,
    /// The request has no effect and no answer.
    Hang,
    /// There is no answer, and the request takes effect later.
    Late {
        /// The delay, in milliseconds of the stand-in's clock.
        after_ms: u64,
        /// True if the connection closes; false if it stays open without an answer.
        is_closed: bool,
    },
    /// The request has no effect. The body of the answer does not end.
    Flood {
        /// The HTTP status.
        status: u16,
        /// The pause before each 64 KiB, in milliseconds.
        pause_ms: u64,
    },
    /// The request takes effect, and is answered as with this fault.
    After(Box<Self>),
    /// A fault of this service.
    Own(Own),
}

/// The moment of a fault: before or after the request takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// The fault replaces the effect.
    BeforeEffect,
    /// The request takes effect, and only its answer is affected.
    AfterEffect,
}

impl<Own> Fault<Own> {
    /// Returns the fault after the effect of the request.
    #[must_use]
    pub fn after(self) -> Self {
        match self {
            Self::LostRequest => Self::LostAnswer,
            fault @ (Self::LostAnswer | Self::After(_)) => fault,
            fault => Self::After(Box::new(fault)),
        }
    }

    /// Returns the fault at this moment.
    #[must_use]
    pub fn at(self, when: When) -> Self {
        match when {
            When::BeforeEffect => self,
            When::AfterEffect => self.after(),
        }
    }

    /// Returns true if the request takes effect first.
    pub(crate) fn is_after_effect(&self) -> bool {
        matches!(self, Self::LostAnswer | Self::After(_))
    }
}

/// The way in which a stand-in is down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Down {
    /// Connections are accepted and closed.
    Closed,
    /// A proxy in front of it answers with status 503 and an HTML page.
    Unavailable,
}

/// An answer that is held back.
#[derive(Clone, Debug, Default)]
pub struct Held {
    arrived: CancellationToken,
    free: CancellationToken,
}

impl Held {
    /// Waits until the request was handled, and only its answer is not yet sent.
    pub async fn arrived(&self) {
        self.arrived.cancelled().await;
    }

    /// Sends the answer.
    pub fn let_go(&self) {
        self.free.cancel();
    }

    /// Waits for [`Self::let_go`].
    pub(crate) async fn freed(&self) {
        self.arrived.cancel();
        self.free.cancelled().await;
    }
}

/// A fault for each `nth` request that fits.
#[derive(Debug)]
struct Recurring<Own> {
    nth: u64,
    seen: u64,
    fault: Fault<Own>,
    only: String,
}

/// A fault that some of the requests that fit have.
#[derive(Clone, Debug)]
pub struct Rate<Own = Infallible> {
    /// The fault.
    pub fault: Fault<Own>,
    /// The text that `METHOD /path` contains.
    pub only: String,
    /// The share of these requests, in thousandths.
    pub per_mille: u16,
}

impl<Own> Rate<Own> {
    /// Creates the rate of a fault.
    pub fn new(fault: Fault<Own>, only: &str, per_mille: u16) -> Self {
        Self { fault, only: only.to_owned(), per_mille }
    }
}

/// Faults that a seed chooses. The choice depends on the request and on how often the same request came before, not on
/// the order of other requests, so that several clients at the same time change nothing.
#[derive(Debug)]
struct Chosen<Own> {
    seed: u64,
    rates: Vec<Rate<Own>>,
    seen: HashMap<String, u64>,
}

impl<Own: Clone> Chosen<Own> {
    fn take(&mut self, request: &str) -> Option<Fault<Own>> {
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
                None => return Some(rate.fault.clone()),
                Some(rest) => drawn = rest,
            }
        }
        None
    }
}

#[derive(Debug)]
struct Plan<Own> {
    once: Vec<(Fault<Own>, String)>,
    recurring: Vec<Recurring<Own>>,
    chosen: Chosen<Own>,
    held: Vec<(Held, String)>,
    /// The number of times that each fault was applied.
    applied: Vec<(Fault<Own>, u64)>,
    slow: Duration,
    down: Option<Down>,
    ends_connections: bool,
}

impl<Own> Default for Plan<Own> {
    fn default() -> Self {
        Self {
            once: Vec::new(),
            recurring: Vec::new(),
            chosen: Chosen { seed: 0, rates: Vec::new(), seen: HashMap::new() },
            held: Vec::new(),
            applied: Vec::new(),
            slow: Duration::ZERO,
            down: None,
            ends_connections: false,
        }
    }
}

impl<Own: Clone> Plan<Own> {
    fn next(&mut self, request: &str, fits: impl Fn(&Fault<Own>) -> bool) -> Option<Fault<Own>> {
        if let Some(at) = self.once.iter().position(|(fault, only)| request.contains(only) && fits(fault)) {
            return Some(self.once.remove(at).0);
        }
        let mut due = None;
        for recurring in self.recurring.iter_mut().filter(|recurring| request.contains(&recurring.only)) {
            recurring.seen += 1;
            if recurring.seen % recurring.nth == 0 {
                due = due.or_else(|| Some(recurring.fault.clone()));
            }
        }
        due.or_else(|| self.chosen.take(request))
    }
}

/// The faults of a stand-in. Clones share their state. A fault applies to requests whose `METHOD /path` contains the
/// given text; the empty text fits all.
#[derive(Debug)]
pub struct Faults<Own = Infallible>(Arc<Mutex<Plan<Own>>>);

impl<Own> Clone for Faults<Own> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<Own> Default for Faults<Own> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<Own: Clone + PartialEq + std::fmt::Debug> Faults<Own> {
    /// Queues a fault for the next request.
    pub fn next(&self, fault: Fault<Own>) {
        self.next_on("", fault);
    }

    /// Queues a fault for the next request that fits.
    pub fn next_on(&self, only: &str, fault: Fault<Own>) {
        self.plan().once.push((fault, only.to_owned()));
    }

    /// Applies a fault to each `nth` request that fits, until [`Self::clear`].
    pub fn every(&self, nth: u64, only: &str, fault: Fault<Own>) {
        self.plan().recurring.push(Recurring { nth: nth.max(1), seen: 0, fault, only: only.to_owned() });
    }

    /// Applies faults at these rates, as the seed chooses, until [`Self::clear`].
    pub fn at_rates(&self, seed: u64, rates: Vec<Rate<Own>>) {
        self.plan().chosen = Chosen { seed, rates, seen: HashMap::new() };
    }

    /// Holds back the answer to the next request that fits. The request takes effect.
    pub fn holds(&self, only: &str) -> Held {
        let held = Held::default();
        self.plan().held.push((held.clone(), only.to_owned()));
        held
    }

    /// Returns how often each fault was applied so far, also before [`Self::clear`]; the most frequent one first.
    pub fn applied(&self) -> Vec<(Fault<Own>, u64)> {
        let mut applied = self.plan().applied.clone();
        applied.sort_by_key(|(fault, times)| (std::cmp::Reverse(*times), format!("{fault:?}")));
        applied
    }

    /// Delays every answer.
    pub fn slow(&self, delay: Duration) {
        self.plan().slow = delay;
    }

    /// Takes the stand-in down, or up again for `None`.
    pub fn down(&self, down: Option<Down>) {
        self.plan().down = down;
    }

    /// Closes the connection after each error from now on, although the answer says that it is kept open. The next
    /// request on it gets no answer and has no effect.
    pub fn ends_connections(&self) {
        self.plan().ends_connections = true;
    }

    /// Removes all faults.
    pub fn clear(&self) {
        let mut plan = self.plan();
        let applied = std::mem::take(&mut plan.applied);
        *plan = Plan { applied, ..Plan::default() };
    }

    /// Returns the way in which the stand-in is down.
    pub(crate) fn is_down(&self) -> Option<Down> {
        self.plan().down
    }

    /// Returns true if the connection closes after an error.
    pub(crate) fn are_connections_ended(&self) -> bool {
        self.plan().ends_connections
    }

    /// Returns the delay of every answer.
    pub(crate) fn delay(&self) -> Duration {
        self.plan().slow
    }

    /// Returns the fault that applies to the request, among those that fit. One from the queue is removed.
    pub(crate) fn take(&self, request: &str, fits: impl Fn(&Fault<Own>) -> bool) -> Option<Fault<Own>> {
        let mut plan = self.plan();
        let fault = plan.next(request, fits)?;
        match plan.applied.iter_mut().find(|(own, _)| *own == fault) {
            Some((_, times)) => *times += 1,
            None => plan.applied.push((fault.clone(), 1)),
        }
        Some(fault)
    }

    /// Removes and returns the handle that holds back the answer to this request, if any.
    pub(crate) fn take_held(&self, request: &str) -> Option<Held> {
        let mut plan = self.plan();
        let at = plan.held.iter().position(|(_, only)| request.contains(only))?;
        Some(plan.held.remove(at).0)
    }

    fn plan(&self) -> MutexGuard<'_, Plan<Own>> {
        self.0.lock().expect("no holder of the lock panics")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(faults: &Faults, request: &str) -> Option<Fault> {
        faults.take(request, |_| true)
    }

    #[test]
    fn a_queued_fault_applies_once_and_a_recurring_one_to_each_nth_request() {
        let faults: Faults = Faults::default();
        faults.next_on("drafts/send", Fault::LostAnswer);
        faults.every(3, "GET", Fault::Status(500));
        assert_eq!(take(&faults, "POST /drafts"), None);
        assert_eq!(take(&faults, "POST /drafts/send"), Some(Fault::LostAnswer));
        assert_eq!(take(&faults, "POST /drafts/send"), None);
        let taken: Vec<_> = (0..6).map(|_| take(&faults, "GET /messages").is_some()).collect();
        assert_eq!(taken, [false, false, true, false, false, true]);
        faults.clear();
        assert!((0..6).all(|_| take(&faults, "GET /messages").is_none()));
        assert_eq!(faults.applied(), [(Fault::Status(500), 2), (Fault::LostAnswer, 1)]);
    }

    #[test]
    fn a_seed_chooses_the_same_faults_in_any_order() {
        let taken = |seed: u64, backwards: bool| {
            let faults: Faults = Faults::default();
            let rates = [Rate::new(Fault::Status(500), "GET", 100), Rate::new(Fault::TooMany(1), "messages", 100)];
            faults.at_rates(seed, rates.to_vec());
            let mut requests: Vec<_> = (0..1000).collect();
            if backwards {
                requests.reverse();
            }
            let mut hit: Vec<_> = requests
                .into_iter()
                .filter_map(|n| take(&faults, &format!("GET /messages/{n}")).map(|fault| (n, fault)))
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
