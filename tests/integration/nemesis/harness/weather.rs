//! Which faults there are at the moment, which there were, and for how long there have been none.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard},
    time::{Duration, Instant},
};

use countersign::clock::{Clock as _, SystemClock, Timestamp};

/// How many lines of the log of faults are kept for the timelines of violations.
const KEPT: usize = 4_000;

/// The faults of a run. Clones share them.
#[derive(Clone)]
pub(crate) struct Weather(Arc<Mutex<State>>);

struct State {
    active: usize,
    calm_since: Instant,
    log: VecDeque<(Timestamp, String)>,
    counts: BTreeMap<String, u64>,
}

/// A fault that is present until this is dropped.
pub(crate) struct Fault {
    weather: Weather,
    /// Empty for a consequence, which is not written down.
    what: String,
}

impl Weather {
    /// No faults.
    pub(crate) fn fair() -> Self {
        let state = State { active: 0, calm_since: Instant::now(), log: VecDeque::new(), counts: BTreeMap::new() };
        Self(Arc::new(Mutex::new(state)))
    }

    /// Counts a fault of a kind and writes it down.
    pub(crate) fn begins(&self, kind: &str, what: &str) -> Fault {
        let mut state = self.state();
        state.active += 1;
        *state.counts.entry(kind.to_owned()).or_default() += 1;
        drop(state);
        let what = format!("{kind}: {what}");
        self.note(&what);
        Fault { weather: self.clone(), what }
    }

    /// A fault that is over as soon as it has happened.
    pub(crate) fn strikes(&self, kind: &str, what: &str) {
        let mut fault = self.begins(kind, what);
        fault.what.clear();
    }

    /// The time that a process needs to come up: no fault of its own, but nothing may be expected meanwhile.
    pub(crate) fn consequence(&self) -> Fault {
        self.state().active += 1;
        Fault { weather: self.clone(), what: String::new() }
    }

    /// Writes a line into the log of faults.
    pub(crate) fn note(&self, what: &str) {
        let mut state = self.state();
        state.log.push_back((SystemClock.now(), what.to_owned()));
        if state.log.len() > KEPT {
            state.log.pop_front();
        }
    }

    /// For how long there has been no fault.
    pub(crate) fn calm_for(&self) -> Duration {
        let state = self.state();
        if state.active > 0 { Duration::ZERO } else { state.calm_since.elapsed() }
    }

    /// What was written down since then.
    pub(crate) fn since(&self, from: Timestamp) -> Vec<(Timestamp, String)> {
        self.state().log.iter().filter(|(at, _)| *at >= from).cloned().collect()
    }

    /// How many faults there were of each kind.
    pub(crate) fn counts(&self) -> BTreeMap<String, u64> {
        self.state().counts.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("nobody panics with the lock")
    }
}

impl Drop for Fault {
    fn drop(&mut self) {
        {
            let mut state = self.weather.state();
            state.active -= 1;
            state.calm_since = Instant::now();
        }
        if !self.what.is_empty() {
            self.weather.note(&format!("over: {}", self.what));
        }
    }
}
