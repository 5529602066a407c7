//! The channels that send messages, and the claim on an outgoing message, with the time for which its holder may rely on it.
//! Slack is always available.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use countersign_core::clock::{Clock, Timestamp};
use countersign_graph::store::{Claimed, Sent, Store};
use tokio::time::Instant;

/// A channel that sends messages.
#[async_trait]
pub trait Channel: Send + Sync {
    /// Returns the channel's name, as used in [`countersign_graph::store::Outbound::Elsewhere`].
    fn name(&self) -> &str;

    /// Delivers a claimed message exactly once. If an earlier attempt may have succeeded
    /// ([`Claimed::attempts`]), implementations must search for the message by its nonce before
    /// they send it again. Right before the call they must check [`Claim::is_ours`].
    async fn deliver(&self, claim: &Claim) -> Sent;
}

/// The channels other than Slack.
#[derive(Default)]
pub(super) struct Channels {
    pub(super) others: BTreeMap<String, Arc<dyn Channel>>,
    /// The names of requested channels that this program does not have. Each is reported once.
    pub(super) unknown: Mutex<BTreeSet<String>>,
}

impl Channels {
    /// Creates the set of these channels, in addition to Slack.
    pub(super) fn new(others: Vec<Arc<dyn Channel>>) -> Self {
        let others = others.into_iter().map(|channel| (channel.name().to_owned(), channel)).collect();
        Self { others, unknown: Mutex::default() }
    }
}

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
mod claim_tests {
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

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::*;
    use crate::runtime::outbox::{delayed::MAX_WAIT, tests::sender_without_slack};
    use countersign_core::{
        clock::ManualClock,
        ids::{CommitId, Nonce, ThreadId},
    };
    use countersign_graph::store::{Changes, Outbound, Outgoing, Waiting};
    use countersign_store::sqlite::SqliteStore;

    /// A channel that records its messages.
    pub(crate) struct RecordingChannel(pub(crate) &'static str, pub(crate) Mutex<Vec<Value>>);

    #[async_trait]
    impl Channel for RecordingChannel {
        fn name(&self) -> &str {
            self.0
        }

        async fn deliver(&self, claim: &Claim) -> Sent {
            let Outbound::Elsewhere { body, .. } = &claim.message.outgoing.body else { panic!("{claim:?}") };
            self.1.lock().unwrap().push(body.clone());
            Sent::Delivered(None)
        }
    }

    pub(crate) fn message(channel: &str, text: &str) -> Outgoing {
        let body = Outbound::Elsewhere { channel: channel.to_owned(), body: json!(text) };
        Outgoing { slot: None, nonce: Nonce::fresh(), progress: false, not_before: Timestamp(0), body }
    }

    #[tokio::test]
    async fn a_message_for_an_unknown_channel_waits_for_a_program_that_has_it() {
        let (folder, clock) = (tempfile::tempdir().unwrap(), ManualClock::default());
        let shared: Arc<dyn Clock> = Arc::new(clock.clone());
        let store = SqliteStore::open(folder.path().join("threads.sqlite"), shared.clone()).unwrap();
        let store: Arc<dyn Store> = Arc::new(store);
        let thread = ThreadId { team: "T1".into(), channel: "C1".into(), root: "1.1".into() };
        let mut changes = Changes::new(CommitId::fresh(), thread.clone());
        changes.outbox = vec![message("air", "one"), message("road", "two"), message("air", "three")];
        store.apply(&changes).await.unwrap();
        let channel_named = |name| Arc::new(RecordingChannel(name, Mutex::default()));
        let got = |channel: &RecordingChannel| channel.1.lock().unwrap().clone();

        let (road, air) = (channel_named("road"), channel_named("air"));
        sender_without_slack(store.clone(), shared.clone(), vec![road.clone()]).send_all(&thread, Vec::new()).await;
        assert_eq!(got(&road), [json!("two")], "a message that cannot be sent delays no others");
        clock.advance(Duration::from_secs(3600));
        sender_without_slack(store.clone(), shared.clone(), Vec::new()).send_all(&thread, Vec::new()).await;
        let late = store.waiting(Waiting::late_before(clock.now()), 10).await.unwrap();
        assert_eq!(late.len(), 2, "they are kept, and `check` reports them");
        assert!(store.dead_letters(10).await.unwrap().is_empty());

        clock.advance(MAX_WAIT);
        sender_without_slack(store.clone(), shared, vec![road.clone(), air.clone()])
            .send_all(&thread, Vec::new())
            .await;
        assert_eq!(got(&air), [json!("one"), json!("three")], "in order");
        assert_eq!(got(&road).len(), 1, "and nothing twice");
        assert_eq!(store.backlog().await.unwrap().outbox, 0);
    }
}
