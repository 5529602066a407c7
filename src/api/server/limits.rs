//! Limits: of requests by key, of failed sign-ins by address, and of connections that wait.

use std::{
    collections::{HashMap, VecDeque},
    net::IpAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use countersign_core::clock::{Clock, Timestamp};
use tokio_util::sync::CancellationToken;

/// The number of requests that a key may make at once: a third of those of a minute.
const BURST_SHARE: f64 = 3.0;

/// The number of failed sign-ins a minute from one address.
const MAX_FAILURES: usize = 10;

/// The time in which failed sign-ins are counted.
const MINUTE: Duration = Duration::from_secs(60);

/// The number of addresses that are remembered. If there are more, all are forgotten.
const MAX_ADDRESSES: usize = 10_000;

/// The number of connections of one key that may wait.
const WAITING_OF_KEY: usize = 50;

/// The limits of requests and sign-ins.
pub(super) struct Limits {
    a_minute: f64,
    clock: Arc<dyn Clock>,
    /// The requests left of each key, and the time of this count.
    left: Mutex<HashMap<String, (f64, Timestamp)>>,
    failures: Mutex<HashMap<IpAddr, VecDeque<Timestamp>>>,
}

impl Limits {
    pub(super) fn new(a_minute: u32, clock: Arc<dyn Clock>) -> Self {
        Self { a_minute: f64::from(a_minute), clock, left: Mutex::default(), failures: Mutex::default() }
    }

    /// Counts a request of a key. Returns the seconds to wait if there were too many.
    pub(super) fn take(&self, key: &str) -> Option<u64> {
        let now = self.clock.now();
        let most = (self.a_minute / BURST_SHARE).max(1.0);
        let mut all = self.left.lock().expect("no holder panics");
        let (left, at) = all.entry(key.to_owned()).or_insert((most, now));
        *left = (*left + now.since(*at).as_secs_f64() * self.a_minute / 60.0).min(most);
        *at = now;
        if *left >= 1.0 {
            *left -= 1.0;
            return None;
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is a small positive number")]
        Some(((1.0 - *left) * 60.0 / self.a_minute).ceil() as u64)
    }

    /// Returns the seconds to wait if too many sign-ins from an address failed.
    pub(super) fn is_locked_out(&self, address: IpAddr) -> Option<u64> {
        let now = self.clock.now();
        let mut all = self.failures.lock().expect("no holder panics");
        let failures = all.get_mut(&address)?;
        while failures.front().is_some_and(|at| now.since(*at) >= MINUTE) {
            failures.pop_front();
        }
        let first = failures.front().filter(|_| failures.len() >= MAX_FAILURES)?;
        Some(MINUTE.saturating_sub(now.since(*first)).as_secs().max(1))
    }

    /// Counts a failed sign-in.
    pub(super) fn note_failure(&self, address: IpAddr) {
        let mut all = self.failures.lock().expect("no holder panics");
        if all.len() >= MAX_ADDRESSES {
            all.clear();
        }
        all.entry(address).or_default().push_back(self.clock.now());
    }
}

/// The connections that wait for decisions. If there are too many, the oldest one gives way.
pub(super) struct Waiters {
    most: usize,
    all: Mutex<(u64, VecDeque<Waiting>)>,
}

/// A connection that waits: its number, its key, and the token that ends its wait.
type Waiting = (u64, String, CancellationToken);

/// A place among the connections that wait. Dropping it frees the place.
pub(super) struct Place<'w> {
    waiters: &'w Waiters,
    number: u64,
    /// Cancelled when it has to give way.
    pub(super) gives_way: CancellationToken,
}

impl Waiters {
    pub(super) fn new(most: usize) -> Self {
        Self { most, all: Mutex::default() }
    }

    /// Takes a place for a connection of a key.
    pub(super) fn enter(&self, key: &str) -> Place<'_> {
        let mut all = self.all.lock().expect("no holder panics");
        let (last, waiting) = &mut *all;
        let of_key = waiting.iter().filter(|(_, of, _)| of == key).count();
        let oldest = match () {
            () if of_key >= WAITING_OF_KEY => waiting.iter().position(|(_, of, _)| of == key),
            () if waiting.len() >= self.most => Some(0),
            () => None,
        };
        if let Some((.., gives_way)) = oldest.and_then(|at| waiting.remove(at)) {
            gives_way.cancel();
        }
        *last += 1;
        let gives_way = CancellationToken::new();
        waiting.push_back((*last, key.to_owned(), gives_way.clone()));
        metrics::gauge!("countersign_api_waiters").set(waiting.len() as f64);
        Place { waiters: self, number: *last, gives_way }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut all = self.waiters.all.lock().expect("no holder panics");
        all.1.retain(|(number, ..)| *number != self.number);
        metrics::gauge!("countersign_api_waiters").set(all.1.len() as f64);
    }
}

#[cfg(test)]
mod tests {
    use countersign_core::clock::ManualClock;

    use super::*;

    #[test]
    fn a_key_may_make_a_third_of_its_requests_at_once_and_the_rest_over_the_minute() {
        let clock = ManualClock::default();
        let limits = Limits::new(60, Arc::new(clock.clone()));
        assert!((0..20).all(|_| limits.take("a").is_none()));
        assert_eq!(limits.take("a"), Some(1));
        assert_eq!(limits.take("b"), None, "each has its own");
        clock.advance(Duration::from_secs(1));
        assert_eq!((limits.take("a"), limits.take("a")), (None, Some(1)));
    }

    #[test]
    fn an_address_that_fails_often_is_locked_out_for_a_minute() {
        let clock = ManualClock::default();
        let limits = Limits::new(60, Arc::new(clock.clone()));
        let (one, other) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        for _ in 0..MAX_FAILURES {
            assert_eq!(limits.is_locked_out(one), None);
            limits.note_failure(one);
        }
        assert_eq!((limits.is_locked_out(one), limits.is_locked_out(other)), (Some(60), None));
        clock.advance(Duration::from_secs(60));
        assert_eq!(limits.is_locked_out(one), None);
    }

    #[test]
    fn the_oldest_connection_gives_way() {
        let waiters = Waiters::new(2);
        let (first, second) = (waiters.enter("a"), waiters.enter("b"));
        let third = waiters.enter("c");
        assert!(first.gives_way.is_cancelled() && !second.gives_way.is_cancelled() && !third.gives_way.is_cancelled());
        drop(third);
        let _fourth = waiters.enter("d");
        assert!(!second.gives_way.is_cancelled(), "there was room");
    }
}
