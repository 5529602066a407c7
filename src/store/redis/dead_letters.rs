//! Dead letters: messages and interactions that could not be delivered or handled, kept in their
//! partition.
//!
//! There are few of them, so a list reads them all. The name of a message's dead letter contains
//! its slot, so a newer message for the slot removes it without a search.

use std::collections::BTreeMap;

use countersign_core::{
    clock::Timestamp,
    ids::{Nonce, Partition, Slot, ThreadId},
};
use countersign_graph::store::{DeadLetter, Error, Outgoing, Undelivered};
use redis::cmd;
use serde::Deserialize;

use super::{RedisStore, json, keys::PartitionKey, scripts::Call};

/// A dead letter, as the scripts write it.
#[derive(Deserialize)]
struct Stored {
    at: i64,
    attempts: u32,
    reason: String,
    /// The entry of an interaction; `None` for a message.
    entry: Option<String>,
    /// The body of a message; `None` for an interaction. The fields that follow also belong to
    /// messages.
    body: Option<String>,
    slot: Option<String>,
    #[serde(default)]
    nonce: String,
    #[serde(default)]
    progress: bool,
    #[serde(default)]
    not_before: i64,
}

/// Implements [`countersign_graph::store::Store::dead_letters`].
pub(super) async fn list(store: &RedisStore, limit: usize) -> Result<Vec<DeadLetter>, Error> {
    let mut letters = Vec::new();
    for (partition, stored) in all(store).await? {
        for (name, text) in stored {
            letters.push(read(partition, &name, &text)?);
        }
    }
    letters.sort_by(|a, b| (a.at, &a.id).cmp(&(b.at, &b.id)));
    letters.truncate(limit);
    Ok(letters)
}

/// Implements [`countersign_graph::store::Store::send_again`].
pub(super) async fn send_again(store: &RedisStore, id: &str, now: Timestamp) -> Result<bool, Error> {
    let Some((number, name)) = id.split_once(' ') else { return Ok(false) };
    let Some(partition) = Partition::all().find(|partition| partition.number().to_string() == number) else {
        return Ok(false);
    };
    let call = match thread_of(name) {
        // A name with a thread of another partition is invalid.
        Some(thread) if thread.partition() != partition => return Ok(false),
        Some(thread) => {
            Call::on_thread(&store.scripts.send_again, &thread).arg(name).arg(now.millis()).arg(thread.to_string())
        }
        None => Call::on_partition(&store.scripts.send_again, partition).arg(name).arg(now.millis()).arg(""),
    };
    store.link.script(&call).await
}

/// Deletes the dead letters older than [`DeadLetter::KEPT_FOR`].
pub(super) async fn drop_old(store: &RedisStore, now: Timestamp) -> Result<(), Error> {
    let kept = i64::try_from(DeadLetter::KEPT_FOR.as_millis()).unwrap_or(i64::MAX);
    for (partition, stored) in all(store).await? {
        for (name, text) in stored {
            if read(partition, &name, &text)?.at.millis() < now.millis().saturating_sub(kept) {
                store.link.command::<i64>(cmd("HDEL").arg(PartitionKey::DeadLetters.of(partition)).arg(name)).await?;
            }
        }
    }
    Ok(())
}

async fn all(store: &RedisStore) -> Result<Vec<(Partition, BTreeMap<String, String>)>, Error> {
    let mut pipeline = redis::pipe();
    for partition in Partition::all() {
        pipeline.hgetall(PartitionKey::DeadLetters.of(partition));
    }
    let found: Vec<BTreeMap<String, String>> = store.link.pipeline(&pipeline).await?;
    Ok(Partition::all().zip(found).filter(|(_, stored)| !stored.is_empty()).collect())
}

fn read(partition: Partition, name: &str, text: &str) -> Result<DeadLetter, Error> {
    let stored: Stored = json::read("a dead letter", text)?;
    let thread = thread_of(name);
    let what = match (&stored.entry, &stored.body) {
        (Some(entry), _) => Undelivered::Inbox(json::read("an unhandled interaction", entry)?),
        (None, Some(body)) => Undelivered::Message(Box::new(Outgoing {
            slot: stored.slot.map(Slot::new),
            nonce: Nonce::new(stored.nonce),
            progress: stored.progress,
            not_before: Timestamp(stored.not_before),
            body: json::read("an undelivered message", body)?,
        })),
        (None, None) => return Err(json::corrupt(format!("the dead letter `{name}`"))),
    };
    let id = format!("{} {name}", partition.number());
    Ok(DeadLetter { id, thread, at: Timestamp(stored.at), attempts: stored.attempts, reason: stored.reason, what })
}

/// Returns the thread in a name; `None` for an interaction.
fn thread_of(name: &str) -> Option<ThreadId> {
    name.split_once(' ')?.0.parse().ok()
}
