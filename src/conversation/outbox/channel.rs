//! The ways by which messages go out, by name. Slack is the one that is always there.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;

use super::{Held, Sender, refused::LONGEST_WAIT};
use crate::graph::store::{Claimed, Outbound, Sent};

/// The name of the channel that is Slack.
pub const SLACK: &str = "slack";

/// A way by which messages go out.
#[async_trait]
pub trait Channel: Send + Sync {
    /// Its name: that of [`Outbound::Elsewhere`].
    fn name(&self) -> &str;

    /// Delivers a claimed message, once. Where an earlier attempt may have arrived ([`Claimed::attempts`]), it is looked for
    /// before it is sent again, by its nonce; right before something leaves, [`Held::is_ours`] is asked.
    async fn deliver(&self, held: &Held) -> Sent;
}

/// Slack.
#[async_trait]
impl Channel for Sender {
    fn name(&self) -> &str {
        SLACK
    }

    async fn deliver(&self, held: &Held) -> Sent {
        self.send_now(held).await
    }
}

/// The other channels, and what is known of those that messages name and that are not there.
#[derive(Default)]
pub(super) struct Channels {
    others: BTreeMap<String, Arc<dyn Channel>>,
    /// Names of channels that this program does not have, each told once.
    unknown: Mutex<BTreeSet<String>>,
}

impl fmt::Debug for Channels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.others.keys()).finish()
    }
}

impl Channels {
    /// These, besides Slack.
    pub(super) fn new(others: Vec<Arc<dyn Channel>>) -> Self {
        let others = others.into_iter().map(|channel| (channel.name().to_owned(), channel)).collect();
        Self { others, unknown: Mutex::default() }
    }
}

impl Sender {
    /// Sends a message by its channel. One whose channel this program does not have is kept for a program that has it, and
    /// holds up nothing else.
    pub(super) async fn send_by_its_channel(&self, held: &Held) -> Sent {
        let Outbound::Elsewhere { channel, .. } = &held.message.outgoing.body else { return self.deliver(held).await };
        match self.0.channels.others.get(channel) {
            Some(channel) => channel.deliver(held).await,
            None => self.keep_for_another(&held.message, channel),
        }
    }

    /// Puts a message back, and tells the operator, once for each channel.
    fn keep_for_another(&self, claimed: &Claimed, channel: &str) -> Sent {
        metrics::counter!("countersign_messages_for_other_channels_total").increment(1);
        let mut unknown = self.0.channels.unknown.lock().unwrap_or_else(PoisonError::into_inner);
        if unknown.insert(channel.to_owned()) {
            tracing::error!(thread.id = %claimed.thread, channel, "A message is for a channel that this program does not have; it waits for one that has it");
        }
        Sent::Postponed(self.0.clock.now() + LONGEST_WAIT)
    }
}
