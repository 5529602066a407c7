//! Leases: who may advance a thread.
//!
//! A script leases a thread if it is ready, and tells all that is needed to go on with it.

use std::time::Duration;

use super::{RedisStore, json, scripts::Call};
use crate::{
    clock::Timestamp,
    graph::store::{Acquired, Error, Lease, Letter, Saved, Seq, StepRecord, Version},
    ids::{ThreadId, WorkerId},
};

/// What the scripts say of a thread's checkpoint: version, whole checkpoint, steps after it.
type SavedAnswer = (Version, Option<String>, Vec<String>);

/// [`crate::graph::store::Store::acquire`].
pub(super) async fn acquire(
    store: &RedisStore,
    worker: &WorkerId,
    ttl: Duration,
    now: Timestamp,
    only: Option<&ThreadId>,
) -> Result<Option<Acquired>, Error> {
    if let Some(thread) = only {
        return acquire_one(store, worker, ttl, now, thread).await;
    }
    let mut search = store.finder.search();
    while let Some(thread) = store.finder.next(&mut search, &store.link, now).await? {
        if let Some(acquired) = acquire_one(store, worker, ttl, now, &thread).await? {
            return Ok(Some(acquired));
        }
    }
    Ok(None)
}

/// [`crate::graph::store::Store::renew`].
pub(super) async fn renew(store: &RedisStore, lease: &Lease, ttl: Duration) -> Result<(), Error> {
    let call = Call::on_thread(&store.scripts.renew, &lease.thread)
        .arg(lease.thread.to_string())
        .arg(lease.worker.as_str())
        .arg(lease.fence)
        .arg(json::micros(ttl));
    let held: bool = store.link.script(&call).await?;
    if held { Ok(()) } else { Err(Error::Fenced(lease.thread.clone())) }
}

/// [`crate::graph::store::Store::letters`].
pub(super) async fn letters(store: &RedisStore, lease: &Lease, after: Seq) -> Result<Vec<Letter>, Error> {
    let call =
        Call::on_thread(&store.scripts.letters, &lease.thread).arg(lease.worker.as_str()).arg(lease.fence).arg(after);
    let answer: Option<Vec<(Seq, String)>> = store.link.script(&call).await?;
    read_letters(answer.ok_or_else(|| Error::Fenced(lease.thread.clone()))?)
}

/// [`crate::graph::store::Store::unread`].
pub(super) async fn unread(store: &RedisStore, thread: &ThreadId) -> Result<Vec<Letter>, Error> {
    read_letters(store.link.script(&Call::on_thread(&store.scripts.unread, thread)).await?)
}

/// [`crate::graph::store::Store::load`].
pub(super) async fn load(store: &RedisStore, thread: &ThreadId) -> Result<Option<Saved>, Error> {
    let answer: Option<SavedAnswer> = store.link.script(&Call::on_thread(&store.scripts.load, thread)).await?;
    answer.map(read_saved).transpose()
}

async fn acquire_one(
    store: &RedisStore,
    worker: &WorkerId,
    ttl: Duration,
    now: Timestamp,
    thread: &ThreadId,
) -> Result<Option<Acquired>, Error> {
    let call = Call::on_thread(&store.scripts.acquire, thread)
        .arg(thread.to_string())
        .arg(worker.as_str())
        .arg(json::micros(ttl))
        .arg(now.millis());
    type Answer = (u64, Version, Option<String>, Vec<String>, Vec<(Seq, String)>);
    let answer: Option<Answer> = store.link.script(&call).await?;
    let Some((fence, version, snapshot, steps, letters)) = answer else { return Ok(None) };
    Ok(Some(Acquired {
        lease: Lease { thread: thread.clone(), worker: worker.clone(), fence },
        saved: read_saved((version, snapshot, steps))?,
        letters: read_letters(letters)?,
    }))
}

fn read_saved((version, snapshot, steps): SavedAnswer) -> Result<Saved, Error> {
    let snapshot = snapshot.map(|text| json::read("a checkpoint", &text)).transpose()?;
    let delta = |step: &String| json::read::<StepRecord>("a step", step).map(|step| step.delta);
    Ok(Saved { version, snapshot, deltas: steps.iter().map(delta).collect::<Result<_, _>>()? })
}

fn read_letters(raw: Vec<(Seq, String)>) -> Result<Vec<Letter>, Error> {
    raw.into_iter().map(|(seq, mail)| Ok(Letter { seq, mail: json::read("mail", &mail)? })).collect()
}
