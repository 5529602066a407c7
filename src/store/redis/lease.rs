//! Leases: the right to advance a thread.
//!
//! A script leases a thread if it is ready, and returns all data that is needed to continue it.

use std::{collections::BTreeMap, time::Duration};

use countersign_core::ids::{GraphName, ThreadId, WorkerId};
use countersign_graph::{
    json::Json,
    store::{Acquired, Error, Holder, Lease, QueuedMessage, Saved, Seq, Version},
};

use super::{RedisStore, aside, commit::read_head, json, scripts::Call};
use crate::aside::{StoredPlace, reason_of};

/// The answer of a script with a checkpoint: its version, the last full checkpoint, and the steps
/// after it.
type SavedAnswer = (Version, Option<Vec<u8>>, Vec<Vec<u8>>);

/// Messages with their positions, still serialized.
type StoredMessages = Vec<(Seq, Vec<u8>)>;

/// A leased thread, as the scripts return it: the fence, the parts of [`SavedAnswer`], the messages, and the graph with
/// the head of the audit trail.
pub(super) type AcquiredAnswer = (u64, Version, Option<Vec<u8>>, Vec<Vec<u8>>, StoredMessages, AcquiredMeta);
type AcquiredMeta = (Option<String>, Option<u64>, Option<String>);

/// Implements [`countersign_graph::store::Store::acquire`].
pub(super) async fn acquire(
    store: &RedisStore,
    Holder { worker, ttl, now }: &Holder,
    only: Option<&ThreadId>,
) -> Result<Option<Acquired>, Error> {
    let call = |thread: &ThreadId| {
        let call = Call::on_thread(&store.scripts.acquire, thread);
        call.arg(thread.to_string()).arg(worker.as_str()).arg(json::micros(*ttl)).arg(now.millis())
    };
    if let Some(thread) = only {
        return acquire_by(store, worker, thread, call(thread)).await;
    }
    let (mut search, mut failed) = (store.finder.search(), BTreeMap::new());
    while let Some(thread) = store.finder.next(&mut search, &store.link, *now).await? {
        if failed.contains_key(&thread) {
            break; // nothing else is ready
        }
        match acquire_by(store, worker, &thread, call(&thread).at_once()).await {
            Ok(Some(acquired)) => return Ok(Some(acquired)),
            Ok(None) => {}
            // In a cluster, another server may answer.
            Err(error) if store.link.is_cluster() => drop(failed.insert(thread, error)),
            Err(error) => return Err(error),
        }
    }
    failed.into_values().next().map_or(Ok(None), Err)
}

/// Implements [`countersign_graph::store::Store::renew`].
pub(super) async fn renew(store: &RedisStore, lease: &Lease, ttl: Duration) -> Result<(), Error> {
    let call = Call::on_thread(&store.scripts.renew, &lease.thread)
        .arg(lease.thread.to_string())
        .arg(lease.worker.as_str())
        .arg(lease.fence)
        .arg(json::micros(ttl));
    let held: bool = store.link.script(&call).await?;
    if held { Ok(()) } else { Err(Error::Fenced(lease.thread.clone())) }
}

/// Implements [`countersign_graph::store::Store::messages`] with a lease.
pub(super) async fn messages(store: &RedisStore, lease: &Lease, after: Seq) -> Result<Vec<QueuedMessage>, Error> {
    let call =
        Call::on_thread(&store.scripts.messages, &lease.thread).arg(lease.worker.as_str()).arg(lease.fence).arg(after);
    let answer: Option<StoredMessages> = store.link.script(&call).await?;
    let stored = answer.ok_or_else(|| Error::Fenced(lease.thread.clone()))?;
    read_messages(store, &lease.thread, stored).await
}

/// Implements [`countersign_graph::store::Store::messages`] without a lease.
pub(super) async fn unread(store: &RedisStore, thread: &ThreadId, after: Seq) -> Result<Vec<QueuedMessage>, Error> {
    let call = Call::on_thread(&store.scripts.unread, thread).arg(after);
    let stored: StoredMessages = store.link.script(&call).await?;
    // Unreadable messages are reported when the thread is leased.
    Ok(stored
        .into_iter()
        .filter_map(|(seq, message)| Some(QueuedMessage { seq, message: json::read("mail", &message).ok()? }))
        .collect())
}

/// Implements [`countersign_graph::store::Store::load`].
pub(super) async fn load(store: &RedisStore, thread: &ThreadId) -> Result<Option<Saved>, Error> {
    let answer: Option<SavedAnswer> = store.link.script(&Call::on_thread(&store.scripts.load, thread)).await?;
    match answer {
        Some(saved) => Ok(Some(read_saved(store, thread, saved).await)),
        None => Ok(None),
    }
}

async fn acquire_by(
    store: &RedisStore,
    worker: &WorkerId,
    thread: &ThreadId,
    call: Call<'_>,
) -> Result<Option<Acquired>, Error> {
    match store.link.script::<Option<AcquiredAnswer>>(&call).await? {
        Some(answer) => read_acquired(store, worker, thread, answer).await.map(Some),
        None => Ok(None),
    }
}

/// Parses a leased thread.
pub(super) async fn read_acquired(
    store: &RedisStore,
    worker: &WorkerId,
    thread: &ThreadId,
    (fence, version, snapshot, steps, messages, meta): AcquiredAnswer,
) -> Result<Acquired, Error> {
    let (graph, audit_seq, audit_hash) = meta;
    if let (Some(seq), Some(hash)) = (audit_seq, audit_hash) {
        store.audit_heads.set(thread.clone(), read_head(seq, &hash)); // the first write then needs no second attempt
    }
    let graph = graph.map(GraphName::new).unwrap_or_default();
    Ok(Acquired {
        lease: Lease { thread: thread.clone(), worker: worker.clone(), graph, fence },
        saved: read_saved(store, thread, (version, snapshot, steps)).await,
        messages: read_messages(store, thread, messages).await?,
        decided: None,
    })
}

/// Parses a checkpoint. Unreadable data is recorded, and the returned value then cannot be
/// restored as a checkpoint.
async fn read_saved(store: &RedisStore, thread: &ThreadId, (version, snapshot, steps): SavedAnswer) -> Saved {
    /// The part of a step that leads to the next checkpoint. A newer program may have added other
    /// fields to the step.
    #[derive(serde::Deserialize)]
    struct Difference {
        delta: Json,
    }
    let read = || -> Result<Saved, Error> {
        let snapshot = snapshot.map(|stored| json::read("a checkpoint", &stored)).transpose()?;
        let delta = |step: &Vec<u8>| json::read::<Difference>("a step", step).map(|step| step.delta);
        Ok(Saved { version, snapshot, deltas: steps.iter().map(delta).collect::<Result<_, _>>()? })
    };
    match read() {
        Ok(saved) => saved,
        Err(error) => {
            let place = StoredPlace::of_thread("checkpoint", thread, "as it is saved");
            aside::note(store, thread, &place, &reason_of(&error)).await;
            Saved { version, snapshot: Some(Json::of("unreadable")), deltas: Vec::new() }
        }
    }
}

/// Parses messages, and sets aside those that cannot be read.
async fn read_messages(
    store: &RedisStore,
    thread: &ThreadId,
    stored: StoredMessages,
) -> Result<Vec<QueuedMessage>, Error> {
    let mut messages = Vec::with_capacity(stored.len());
    for (seq, message) in stored {
        match json::read("a message", &message) {
            Ok(message) => messages.push(QueuedMessage { seq, message }),
            Err(error) => aside::set(store, &StoredPlace::Mailbox(thread.clone(), seq), &reason_of(&error)).await?,
        }
    }
    Ok(messages)
}
