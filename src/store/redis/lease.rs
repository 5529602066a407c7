//! Leases: who may advance a thread.
//!
//! To find a ready thread, all partitions are asked for their first few in one round trip; then a script leases the
//! one that has been ready longest, if it still is ready. Whoever loses such a race tries the next.

use std::{collections::BTreeMap, time::Duration};

use redis::Value;

use super::{RedisStore, json, keys::Shelf, scripts::Call};
use crate::{
    clock::Timestamp,
    graph::store::{Acquired, Error, Lease, Letter, Saved, Seq, StepRecord, Version},
    ids::{Partition, ThreadId, WorkerId},
};

/// How many ready threads of each partition are looked at: as many as may be lost to others at a time.
const CANDIDATES: isize = 4;
/// How often to look again after all of them were lost.
const LOOKS: usize = 3;

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
    for _ in 0..LOOKS {
        let candidates = ready_threads(store, now).await?;
        if candidates.is_empty() {
            return Ok(None);
        }
        for thread in &candidates {
            if let Some(acquired) = acquire_one(store, worker, ttl, now, thread).await? {
                return Ok(Some(acquired));
            }
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

/// Threads that are ready in any partition, the one that has been so for longest first.
async fn ready_threads(store: &RedisStore, now: Timestamp) -> Result<Vec<ThreadId>, Error> {
    let mut pipeline = redis::pipe();
    pipeline.cmd("TIME");
    for partition in Partition::all() {
        for shelf in [Shelf::Ready, Shelf::Waiting] {
            pipeline.zrange_withscores(shelf.of(partition), 0, CANDIDATES - 1);
        }
    }
    let mut answers = store.link.pipeline::<Vec<Value>>(&pipeline).await?.into_iter();
    let server_now = server_time(answers.next())?;

    // For how long, in microseconds; a thread that is on both shelves counts with the longer.
    let mut ready_for: BTreeMap<String, i64> = BTreeMap::new();
    for (n, answer) in answers.enumerate() {
        for (thread, from) in read::<Vec<(String, f64)>>(answer)? {
            let since = match n % 2 {
                0 => server_now.saturating_sub(from as i64),
                _ => now.millis().saturating_sub(from as i64).saturating_mul(1000),
            };
            if since >= 0 {
                let longest = ready_for.entry(thread).or_insert(since);
                *longest = since.max(*longest);
            }
        }
    }
    let mut threads: Vec<_> = ready_for.into_iter().collect();
    threads.sort_by_key(|(_, since)| std::cmp::Reverse(*since));
    threads.into_iter().map(|(thread, _)| thread.parse().map_err(json::corrupt)).collect()
}

/// The server's clock in microseconds, from its answer to `TIME`.
pub(super) fn server_time(answer: Option<Value>) -> Result<i64, Error> {
    let (seconds, micros): (i64, i64) = read(answer.unwrap_or(Value::Nil))?;
    Ok(seconds * 1_000_000 + micros)
}

/// An answer of a pipeline, as what it has to be.
pub(super) fn read<T: redis::FromRedisValue>(answer: Value) -> Result<T, Error> {
    redis::from_redis_value(answer).map_err(|error| json::corrupt(error.to_string()))
}

fn read_saved((version, snapshot, steps): SavedAnswer) -> Result<Saved, Error> {
    let snapshot = snapshot.map(|text| json::read("a checkpoint", &text)).transpose()?;
    let delta = |step: &String| json::read::<StepRecord>("a step", step).map(|step| step.delta);
    Ok(Saved { version, snapshot, deltas: steps.iter().map(delta).collect::<Result<_, _>>()? })
}

fn read_letters(raw: Vec<(Seq, String)>) -> Result<Vec<Letter>, Error> {
    raw.into_iter().map(|(seq, mail)| Ok(Letter { seq, mail: json::read("mail", &mail)? })).collect()
}
