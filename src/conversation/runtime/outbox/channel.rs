//! The channels that send messages. Slack is always available.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use countersign_graph::store::{Claimed, Outbound, Sent};

use super::{Claim, Sender, refused::MAX_WAIT};

/// The name of the Slack channel.
pub const SLACK: &str = "slack";

/// A channel that sends messages.
#[async_trait]
pub trait Channel: Send + Sync {
    /// Returns the channel's name, as used in [`Outbound::Elsewhere`].
    fn name(&self) -> &str;

    /// Delivers a claimed message exactly once. If an earlier attempt may have succeeded
    /// ([`Claimed::attempts`]), implementations must search for the message by its nonce before
    /// they send it again. Right before the call they must check [`Claim::is_ours`].
    async fn deliver(&self, claim: &Claim) -> Sent;
}

/// The Slack channel.
#[async_trait]
impl Channel for Sender {
    fn name(&self) -> &str {
        SLACK
    }

    async fn deliver(&self, claim: &Claim) -> Sent {
        self.send_to_slack(claim).await
    }
}

/// The channels other than Slack.
#[derive(Default)]
pub(super) struct Channels {
    others: BTreeMap<String, Arc<dyn Channel>>,
    /// The names of requested channels that this program does not have. Each is reported once.
    unknown: Mutex<BTreeSet<String>>,
}

impl fmt::Debug for Channels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.others.keys()).finish()
    }
}

impl Channels {
    /// Creates the set of these channels, in addition to Slack.
    pub(super) fn new(others: Vec<Arc<dyn Channel>>) -> Self {
        let others = others.into_iter().map(|channel| (channel.name().to_owned(), channel)).collect();
        Self { others, unknown: Mutex::default() }
    }
}

impl Sender {
    /// Sends a message by its channel. If this program does not have that channel, the message is
    /// kept for one that has it, and delays no other messages.
    pub(super) async fn send_by_channel(&self, claim: &Claim) -> Sent {
        let Outbound::Elsewhere { channel, .. } = &claim.message.outgoing.body else {
            return self.deliver(claim).await;
        };
        match self.0.channels.others.get(channel) {
            Some(channel) => channel.deliver(claim).await,
            None => self.postpone_for_unknown_channel(&claim.message, channel),
        }
    }

    /// Postpones a message, and logs an error once for each channel.
    fn postpone_for_unknown_channel(&self, claimed: &Claimed, channel: &str) -> Sent {
        metrics::counter!("countersign_messages_for_other_channels_total").increment(1);
        let mut unknown = self.0.channels.unknown.lock().unwrap_or_else(PoisonError::into_inner);
        if unknown.insert(channel.to_owned()) {
            tracing::error!(thread.id = %claimed.thread, channel, "A message is for a channel that this program does not have; it waits for one that has it");
        }
        Sent::Postponed(self.0.clock.now() + MAX_WAIT)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::*;
    use crate::runtime::outbox::tests::sender_without_slack;
    use countersign_core::{
        clock::{Clock, ManualClock, Timestamp},
        ids::{CommitId, Nonce, ThreadId},
    };
    use countersign_graph::store::{Changes, Outgoing, Store, Waiting};
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
