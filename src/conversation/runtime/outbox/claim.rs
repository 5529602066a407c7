//! The claim on an outgoing message, and the time for which its holder may rely on it.

use std::time::Duration;

use countersign_core::clock::{Clock, Timestamp};
use countersign_graph::store::{Claimed, Store};
use tokio::time::Instant;

/// The part of a claim's time in which it is believed without asking the store again.
const JUST_BEGUN: u32 = 16;

/// A claimed message, with the time until which it may be sent.
#[derive(Debug)]
pub struct Claim {
    /// The message.
    pub message: Claimed,
    pub(super) term: ClaimTerm,
}

impl Claim {
    /// Returns true if the claim is still valid. This must be checked right before a call. For
    /// progress, and for a claim that has just begun, only the time is checked.
    pub async fn is_ours(&self, store: &dyn Store, clock: &dyn Clock) -> bool {
        self.term.holds(clock)
            && (self.message.outgoing.progress
                || self.term.has_just_begun(clock)
                || store.holds_outbox(&self.message).await.unwrap_or(false) && self.term.holds(clock))
    }
}

/// The end of a claim on two clocks: the wall clock continues while the machine sleeps, and the
/// monotonic clock is never set.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClaimTerm {
    wall: Timestamp,
    monotonic: Instant,
    ttl: Duration,
}

impl ClaimTerm {
    /// Returns a term that starts now and lasts for `ttl`.
    pub(super) fn of(ttl: Duration, clock: &dyn Clock) -> Self {
        Self { wall: clock.now() + ttl, monotonic: Instant::now() + ttl, ttl }
    }

    /// Returns true if the term has ended on neither clock.
    pub(super) fn holds(&self, clock: &dyn Clock) -> bool {
        clock.now() < self.wall && Instant::now() < self.monotonic
    }

    /// Returns true if there is time for another attempt to send: at least two thirds of the term, on both clocks.
    pub(super) fn leaves_time(&self, clock: &dyn Clock) -> bool {
        self.is_younger_than(self.ttl / 3, clock)
    }

    /// Returns true if less than a part of the term, 1 / [`JUST_BEGUN`], is over on both clocks. The store then need not be asked: no
    /// clock has run so far ahead that another sender could have the message.
    fn has_just_begun(&self, clock: &dyn Clock) -> bool {
        self.is_younger_than(self.ttl / JUST_BEGUN, clock)
    }

    fn is_younger_than(&self, age: Duration, clock: &dyn Clock) -> bool {
        let left = self.ttl.saturating_sub(age);
        clock.now() + left < self.wall && Instant::now() + left < self.monotonic
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use countersign_core::clock::ManualClock;

    #[tokio::test(start_paused = true)]
    async fn a_claim_ends_by_whichever_clock_is_first() {
        let clock = ManualClock::default();
        let ttl = Duration::from_secs(30);
        let (slept, stalled) = (ClaimTerm::of(ttl, &clock), ClaimTerm::of(ttl, &clock));
        clock.advance(Duration::from_secs(29));
        assert!(slept.holds(&clock));
        tokio::time::advance(Duration::from_secs(30)).await;
        assert!(!stalled.holds(&clock), "the process was suspended");
        assert!(!slept.has_just_begun(&clock) && !stalled.has_just_begun(&clock));
        let other = ClaimTerm::of(ttl, &clock);
        assert!(other.has_just_begun(&clock));
        tokio::time::advance(ttl / JUST_BEGUN).await;
        assert!(other.holds(&clock) && !other.has_just_begun(&clock), "the store is asked from then on");
        clock.advance(Duration::from_secs(30));
        assert!(!other.holds(&clock), "the machine slept");
    }
}
