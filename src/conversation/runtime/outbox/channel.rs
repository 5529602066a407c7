//! The channels that messages go out by, by name. Slack is always there.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use countersign_graph::store::{Claimed, Outbound, Sent};

use super::{Claim, Sender, refused::MAX_WAIT};

/// The name of the channel that is Slack.
pub const SLACK: &str = "slack";

/// A channel that messages go out by.
#[async_trait]
pub trait Channel: Send + Sync {
    /// Returns the channel's name: that of [`Outbound::Elsewhere`].
    fn name(&self) -> &str;

    /// Delivers a claimed message, once. Where an earlier attempt may have arrived ([`Claimed::attempts`]), it is
    /// searched for by its nonce before it is sent again; right before the call, [`Claim::is_ours`] is asked.
    async fn deliver(&self, claim: &Claim) -> Sent;
}

/// The channel that is Slack.
#[async_trait]
impl Channel for Sender {
    fn name(&self) -> &str {
        SLACK
    }

    async fn deliver(&self, claim: &Claim) -> Sent {
        self.send_to_slack(claim).await
    }
}

/// The channels other than Slack, and the names of missing ones.
#[derive(Default)]
pub(super) struct Channels {
    others: BTreeMap<String, Arc<dyn Channel>>,
    /// Names of channels that this program does not have, each reported once.
    unknown: Mutex<BTreeSet<String>>,
}

impl fmt::Debug for Channels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.others.keys()).finish()
    }
}

impl Channels {
    /// Holds these channels, in addition to Slack.
    pub(super) fn new(others: Vec<Arc<dyn Channel>>) -> Self {
        let others = others.into_iter().map(|channel| (channel.name().to_owned(), channel)).collect();
        Self { others, unknown: Mutex::default() }
    }
}

impl Sender {
    /// Sends a message by its channel. One whose channel this program does not have is kept for a program that has it,
    /// and holds up nothing else.
    pub(super) async fn send_by_channel(&self, claim: &Claim) -> Sent {
        let Outbound::Elsewhere { channel, .. } = &claim.message.outgoing.body else {
            return self.deliver(claim).await;
        };
        match self.0.channels.others.get(channel) {
            Some(channel) => channel.deliver(claim).await,
            None => self.postpone_for_unknown_channel(&claim.message, channel),
        }
    }

    /// Puts a message back, and reports it, once for each channel.
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
mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::*;
    use crate::runtime::outbox::tests::alone;
    use countersign_core::{
        clock::{Clock, ManualClock, Timestamp},
        ids::{CommitId, Nonce, ThreadId},
    };
    use countersign_graph::store::{Changes, Outgoing, Store, Waiting};
    use countersign_store::sqlite::SqliteStore;

    /// A channel that keeps its messages.
    struct Pigeons(&'static str, Mutex<Vec<Value>>);

    #[async_trait]
    impl Channel for Pigeons {
        fn name(&self) -> &str {
            self.0
        }

        async fn deliver(&self, claim: &Claim) -> Sent {
            let Outbound::Elsewhere { body, .. } = &claim.message.outgoing.body else { panic!("{claim:?}") };
            self.1.lock().unwrap().push(body.clone());
            Sent::Delivered(None)
        }
    }

    fn message(channel: &str, text: &str) -> Outgoing {
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
        let pigeons = |name| Arc::new(Pigeons(name, Mutex::default()));
        let got = |pigeons: &Pigeons| pigeons.1.lock().unwrap().clone();

        let (road, air) = (pigeons("road"), pigeons("air"));
        alone(store.clone(), shared.clone(), vec![road.clone()]).send_all(&thread).await;
        assert_eq!(got(&road), [json!("two")], "what cannot be sent holds up nothing else");
        clock.advance(Duration::from_secs(3600));
        alone(store.clone(), shared.clone(), Vec::new()).send_all(&thread).await;
        let late = store.waiting(Waiting::late_before(clock.now()), 10).await.unwrap();
        assert_eq!(late.len(), 2, "it is kept, and `check` tells of it");
        assert!(store.dead_letters(10).await.unwrap().is_empty());

        clock.advance(MAX_WAIT);
        alone(store.clone(), shared, vec![road.clone(), air.clone()]).send_all(&thread).await;
        assert_eq!(got(&air), [json!("one"), json!("three")], "in order");
        assert_eq!(got(&road).len(), 1, "and nothing twice");
        assert_eq!(store.backlog().await.unwrap().outbox, 0);
    }
}
