//! The outbox. The messages of a thread are sent in order, and claimed by one sender at a time.
//!
//! A thread with messages to send is in one of two sorted sets of its partition. With no message in
//! flight, its score is the time from which the next one may be sent (people's clock); with a
//! message in flight, it is the end of the claim (server's clock). The rules for the order are in
//! `common.lua`.

use std::collections::BTreeMap;

use countersign_core::{
    clock::Timestamp,
    ids::{Nonce, Partition, Slot, ThreadId},
};
use countersign_graph::store::{Claimed, Error, Holder, Outgoing, Sent, Seq, Waiting};
use futures_util::future::join_all;
use serde::Deserialize;

use super::{
    RedisStore, aside,
    connection::Look,
    json,
    keys::{PartitionKey, ThreadKey},
    scripts::Call,
};
use crate::aside::{StoredPlace, reason_of};

/// The number of threads whose outboxes are read in one round trip.
const MAX_READ: usize = 500;

/// Implements [`countersign_graph::store::Store::claim_outbox`].
pub(super) async fn claim(
    store: &RedisStore,
    Holder { ttl, now, .. }: &Holder,
    limit: usize,
    only: Option<&ThreadId>,
) -> Result<Vec<Claimed>, Error> {
    let threads = match only {
        Some(thread) => vec![thread.clone()],
        None => due_threads(store, *now, limit).await?,
    };
    let mut claimed = Vec::new();
    let mut failed = None;
    // The calls share one connection, so together they take one round trip.
    let calls = threads.iter().take(limit).map(|thread| {
        let call = Call::on_thread(&store.scripts.claim_outbox, thread);
        let call = call.arg(thread.to_string()).arg(json::micros(*ttl)).arg(now.millis());
        claim_by(store, thread, if only.is_some() { call } else { call.at_once() })
    });
    for answer in join_all(calls).await {
        match answer {
            Ok(message) => claimed.extend(message),
            Err(error) => failed = Some(error),
        }
    }
    match failed {
        // The messages claimed so far are returned: no other sender gets them before their claims expire.
        Some(error) if claimed.is_empty() => Err(error),
        _ => Ok(claimed),
    }
}

/// Implements [`countersign_graph::store::Store::holds_outbox`].
pub(super) async fn holds(store: &RedisStore, claimed: &Claimed) -> Result<bool, Error> {
    let call = Call::on_thread(&store.scripts.holds_outbox, &claimed.thread);
    store.link.script(&call.arg(claimed.thread.to_string()).arg(claimed.seq).arg(claimed.attempts)).await
}

/// Records the results of sending messages of one thread, and claims the next one if there is a holder.
pub(super) async fn finish(
    store: &RedisStore,
    sent: &[(Claimed, Sent)],
    next: Option<&Holder>,
) -> Result<(Vec<bool>, Option<Claimed>), Error> {
    let Some((Claimed { thread, .. }, _)) = sent.first() else { return Ok((Vec::new(), None)) };
    let call = Call::on_thread(&store.scripts.finish_outbox, thread).arg(thread.to_string());
    let call = match next {
        Some(Holder { ttl, now, .. }) => call.arg(json::micros(*ttl)).arg(now.millis()),
        None => call.arg("").arg(""),
    };
    let call = sent.iter().fold(call, |call, (claimed, sent)| with_result(call, claimed, sent));
    let (ours, next): (Vec<bool>, Vec<StoredClaimed>) = store.link.script(&call).await?;
    Ok((ours, read_all_claimed(store, thread, next).await.pop()))
}

/// Adds the claim and the result to a call of `finish_outbox`.
fn with_result<'a>(call: Call<'a>, claimed: &Claimed, sent: &Sent) -> Call<'a> {
    let (what, detail, reason) = match sent {
        Sent::Delivered(posted) => ("delivered", posted.as_ref().map(json::write).unwrap_or_default(), ""),
        Sent::Retry(at) => ("retry", at.millis().to_string(), ""),
        Sent::Deferred(at) => ("deferred", at.millis().to_string(), ""),
        Sent::Postponed(at) => ("postponed", at.millis().to_string(), ""),
        Sent::Dropped => ("dropped", String::new(), ""),
        Sent::Failed { reason, at } => ("failed", at.millis().to_string(), reason.as_str()),
    };
    call.arg(claimed.seq).arg(claimed.attempts).arg(what).arg(detail).arg(reason)
}

/// A claimed message, as the scripts return it: its position, the number of earlier claims, the place of the message that
/// is to be edited, and the message itself.
pub(super) type StoredClaimed = (Seq, u32, Option<String>, StoredOutgoing);
/// The slot, the nonce, whether it is a progress message, the time from which it may be sent, and the body.
type StoredOutgoing = (Option<String>, String, bool, i64, Option<Vec<u8>>);

async fn claim_by(store: &RedisStore, thread: &ThreadId, call: Call<'_>) -> Result<Option<Claimed>, Error> {
    match store.link.script::<Vec<StoredClaimed>>(&call).await?.pop() {
        Some(claimed) => read_claimed(store, thread, claimed).await,
        None => Ok(None),
    }
}

/// Reads messages that were claimed together with a write, which counts whether or not they can be read.
pub(super) async fn read_all_claimed(
    store: &RedisStore,
    thread: &ThreadId,
    claimed: Vec<StoredClaimed>,
) -> Vec<Claimed> {
    let mut read = Vec::with_capacity(claimed.len());
    for claimed in claimed {
        read.extend(read_claimed(store, thread, claimed).await.unwrap_or_default());
    }
    read
}

/// Reads a claimed message. One that cannot be read is set aside.
async fn read_claimed(store: &RedisStore, thread: &ThreadId, claimed: StoredClaimed) -> Result<Option<Claimed>, Error> {
    let (seq, attempts, posted, (slot, nonce, progress, not_before, body)) = claimed;
    let body = match json::read("an outgoing message", &body.unwrap_or_default()) {
        Ok(body) => body,
        Err(error) => {
            aside::set(store, &StoredPlace::Message(thread.clone(), seq), &reason_of(&error)).await?;
            return Ok(None);
        }
    };
    let outgoing = Outgoing {
        slot: slot.map(Slot::new),
        nonce: Nonce::new(nonce),
        progress,
        not_before: Timestamp(not_before),
        body,
    };
    // If the place cannot be read, the message is looked up in Slack, as after a lost answer.
    let posted = posted.and_then(|text| json::read("where a message is", &text).ok());
    Ok(Some(Claimed { thread: thread.clone(), seq, attempts, posted, outgoing }))
}

/// Returns the threads that have a message to send now, the one that has been due longest first.
async fn due_threads(store: &RedisStore, now: Timestamp, limit: usize) -> Result<Vec<ThreadId>, Error> {
    let limit = isize::try_from(limit).unwrap_or(isize::MAX);
    let looks = store.link.look(Partition::all(), |pipeline, partition| {
        pipeline.zrangebyscore_limit_withscores(PartitionKey::Outbox.of(partition), "-inf", now.millis(), 0, limit);
        pipeline.zrange_withscores(PartitionKey::Sending.of(partition), 0, limit.saturating_sub(1));
    });
    // How long each thread has been due, in microseconds.
    let mut due_for: BTreeMap<String, i64> = BTreeMap::new();
    for Look { server_now, answers, .. } in looks.await? {
        for (n, answer) in answers.into_iter().enumerate() {
            for (thread, from) in json::answer::<Vec<(String, f64)>>(answer)? {
                let due = match n {
                    0 => now.millis().saturating_sub(from as i64).saturating_mul(1000),
                    _ => server_now.saturating_sub(from as i64),
                };
                if due >= 0 {
                    due_for.insert(thread, due);
                }
            }
        }
    }
    let mut threads: Vec<_> = due_for.into_iter().collect();
    threads.sort_by_key(|(_, due)| std::cmp::Reverse(*due));
    Ok(threads.into_iter().filter_map(|(thread, _)| thread.parse().ok()).collect())
}

/// The fields of a waiting message that are needed here.
#[derive(Deserialize)]
struct StoredWaiting {
    slot: Option<String>,
    progress: bool,
    attempts: u32,
    since: i64,
}

/// Implements [`countersign_graph::store::Store::waiting`].
pub(super) async fn waiting(store: &RedisStore, before: Timestamp, limit: usize) -> Result<Vec<Waiting>, Error> {
    let mut pipeline = redis::pipe();
    for partition in Partition::all() {
        pipeline.zrange(PartitionKey::Outbox.of(partition), 0, -1);
        pipeline.zrange(PartitionKey::Sending.of(partition), 0, -1);
    }
    let found: Vec<Vec<String>> = store.link.pipeline(&pipeline).await?;
    let threads: Vec<ThreadId> = found.into_iter().flatten().filter_map(|thread| thread.parse().ok()).collect();
    let mut waiting = Vec::new();
    for threads in threads.chunks(MAX_READ) {
        let mut pipeline = redis::pipe();
        for thread in threads {
            pipeline.hgetall(ThreadKey::OutboxMeta.of(thread));
        }
        let entries: Vec<BTreeMap<Seq, String>> = store.link.pipeline(&pipeline).await?;
        for (thread, entries) in threads.iter().zip(entries) {
            for text in entries.values() {
                let StoredWaiting { slot, progress, attempts, since } = json::read("a waiting message", text)?;
                let since = Timestamp(since);
                if since < before && !progress {
                    waiting.push(Waiting { thread: thread.clone(), slot: slot.map(Slot::new), since, attempts });
                }
            }
        }
    }
    waiting.sort_by_key(|message| message.since);
    waiting.truncate(limit);
    Ok(waiting)
}
