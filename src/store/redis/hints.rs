//! Hints from the scripts: the partitions in which something is to be done, received on a
//! connection of its own. The servers of a cluster pass them on to each other.
//!
//! A hint may be lost, and there are none while the connection is away or where the server does not
//! let this user publish or subscribe. [`super::agenda`] therefore looks by itself as well.
//!
//! A stream or a list of hints was rejected as a design: each hint would be written to the server's
//! file, and would have to be removed once every process has seen it.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use countersign_core::ids::Partition;
use futures_util::StreamExt as _;
use redis::RedisResult;
use tokio::{task::JoinHandle, time::Instant};

use super::connection::Link;

/// The interval between attempts to subscribe.
const SUBSCRIBE_EVERY: Duration = Duration::from_secs(1);

/// The hints that this process receives from its first question on.
#[derive(Debug, Default)]
pub(super) struct Hints(Mutex<Option<Subscription>>);

/// A subscription, with the task that receives its hints.
#[derive(Debug)]
struct Subscription {
    heard: Arc<Mutex<Heard>>,
    task: JoinHandle<()>,
    begun: Instant,
    /// The number of the link's connection at that time. If the link had to connect again, the
    /// subscription may be dead too, without having noticed.
    connection: u64,
}

/// What was heard since the last question.
#[derive(Debug, Default)]
struct Heard {
    /// False until the server has accepted the subscription.
    is_subscribed: bool,
    partitions: BTreeSet<Partition>,
}

impl Hints {
    /// Returns the partitions of which a hint arrived since the last call, and subscribes if
    /// necessary. `None` if hints may have been missed.
    pub(super) fn take(&self, link: &Link) -> Option<BTreeSet<Partition>> {
        let mut subscription = self.0.lock().ok()?;
        let connection = link.subscription_number();
        match &*subscription {
            Some(current) if current.connection == connection && !current.task.is_finished() => current.take(),
            Some(ended) if ended.begun.elapsed() < SUBSCRIBE_EVERY => None,
            _ => {
                *subscription = Some(Subscription::begin(link, connection));
                None
            }
        }
    }
}

impl Subscription {
    fn begin(link: &Link, connection: u64) -> Self {
        let heard = Arc::<Mutex<Heard>>::default();
        let (subscriber, hears) = (link.subscriber(), heard.clone());
        let task = tokio::spawn(async move {
            if let Err(error) = listen(subscriber, &hears).await {
                tracing::debug!(error = countersign_core::cause::chain(&error), "Cannot subscribe to hints of work");
            }
        });
        Self { heard, task, begun: Instant::now(), connection }
    }

    fn take(&self) -> Option<BTreeSet<Partition>> {
        let mut heard = self.heard.lock().ok()?;
        heard.is_subscribed.then(|| std::mem::take(&mut heard.partitions))
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Receives hints until the connection ends.
async fn listen(
    subscriber: impl Future<Output = RedisResult<redis::aio::PubSub>>,
    heard: &Mutex<Heard>,
) -> RedisResult<()> {
    let mut subscribed = subscriber.await?;
    if let Ok(mut heard) = heard.lock() {
        // Whatever was to be done before the subscription was told to nobody here.
        *heard = Heard { is_subscribed: true, partitions: Partition::all().collect() };
    }
    let mut messages = subscribed.on_message();
    while let Some(message) = messages.next().await {
        let number: u8 = message.get_payload()?;
        if let Ok(mut heard) = heard.lock() {
            heard.partitions.extend(Partition::all().filter(|partition| partition.number() == number));
        }
    }
    Ok(())
}
