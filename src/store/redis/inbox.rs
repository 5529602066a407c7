//! The inbox, the timers that put entries into it, and the sweep.
//!
//! An interaction is claimed by moving the time from which it may be claimed to the end of the
//! claim, so an unfinished claim expires. The worker is not stored, since it is not needed.

use std::{cmp::Reverse, time::Duration};

use countersign_core::{
    clock::Timestamp,
    ids::{Partition, ThreadId},
};
use countersign_graph::store::{ClaimedInteraction, Error, Seq, Settlement};
use redis::Value;

use super::{
    RedisStore, aside,
    connection::Look,
    dead_letters, json,
    keys::{self, PartitionKey},
    scripts::Call,
};
use crate::aside::{StoredPlace, reason_of};

/// The time for which deduplication keys are kept.
const KEEP_DEDUP: Duration = Duration::from_secs(24 * 60 * 60);
/// The time for which parked messages are kept.
const KEEP_PARKED: Duration = Duration::from_secs(2 * 60);
/// The maximum number of timers that one script fires, so that it does not hold up the server.
const MAX_TIMERS: usize = 100;
/// The maximum number of parked messages of one partition that one sweep deletes.
const MAX_PARKED: isize = 1000;

/// Implements [`countersign_graph::store::Store::claim_interaction`].
pub(super) async fn claim(store: &RedisStore, ttl: Duration, limit: usize) -> Result<Vec<ClaimedInteraction>, Error> {
    let mut claimed: Vec<(i64, ClaimedInteraction)> = Vec::new();
    let mut failed = None;
    for partition in due_inboxes(store).await? {
        let wanted = limit - claimed.len();
        if wanted == 0 {
            break;
        }
        let call = Call::on_partition(&store.scripts.claim_interaction, partition).arg(json::micros(ttl)).arg(wanted);
        let entries: Vec<(Seq, u32, Option<Vec<u8>>)> = match store.link.script(&call.at_once()).await {
            Ok(entries) => entries,
            Err(error) => {
                failed = Some(error);
                match store.link.is_cluster() {
                    true => continue, // another server may answer
                    false => break,
                }
            }
        };
        for (seq, attempts, stored) in entries {
            let place = StoredPlace::Inbox(partition, seq);
            let stored = stored.unwrap_or_default();
            match read(&place, &stored) {
                Ok((arrived, entry)) => claimed.push((arrived, ClaimedInteraction { partition, seq, attempts, entry })),
                Err(error) => aside::set(store, &place, &reason_of(&error)).await?,
            }
        }
    }
    claimed.sort_by_key(|(arrived, entry)| (*arrived, entry.seq));
    match failed {
        // The interactions claimed so far are returned: no other worker gets them before their claims expire.
        Some(error) if claimed.is_empty() => Err(error),
        _ => Ok(claimed.into_iter().map(|(_, entry)| entry).collect()),
    }
}

/// Implements [`countersign_graph::store::Store::settle_interaction`].
pub(super) async fn settle(
    store: &RedisStore,
    ClaimedInteraction { partition, seq, attempts, .. }: &ClaimedInteraction,
    settlement: Settlement<'_>,
) -> Result<(), Error> {
    let scripts = &store.scripts;
    let call = |script| Call::on_partition(script, *partition).arg(*seq);
    let call = match settlement {
        Settlement::Done => call(&scripts.finish_interaction),
        Settlement::Retry(wait) => call(&scripts.retry_interaction).arg(*attempts).arg(json::micros(wait)),
        Settlement::Fail { reason, at } => call(&scripts.fail_interaction).arg(*attempts).arg(reason).arg(at.millis()),
        Settlement::SetAside(why) => return aside::set(store, &StoredPlace::Inbox(*partition, *seq), why).await,
    };
    store.link.script(&call).await
}

/// Implements [`countersign_graph::store::Store::fire_timers`].
pub(super) async fn fire_timers(store: &RedisStore, now: Timestamp) -> Result<usize, Error> {
    let looks = store.link.look(Partition::all(), |pipeline, partition| {
        pipeline.zrangebyscore_limit(PartitionKey::Timers.of(partition), "-inf", now.millis(), 0, 1);
    });
    let (mut fired, mut failed) = (0, None);
    for Look { partition, mut answers, .. } in looks.await? {
        if json::answer::<Vec<String>>(answers.pop().unwrap_or(Value::Nil))?.is_empty() {
            continue;
        }
        loop {
            let call = Call::on_partition(&store.scripts.fire_timers, partition).arg(now.millis()).arg(MAX_TIMERS);
            match store.link.script::<usize>(&call.at_once()).await {
                Ok(count) => {
                    fired += count;
                    if count < MAX_TIMERS {
                        break;
                    }
                }
                // Another server may answer.
                Err(error) if store.link.is_cluster() => {
                    failed = Some(error);
                    break;
                }
                Err(error) => return Err(error),
            }
        }
    }
    failed.map_or(Ok(fired), Err)
}

/// Implements [`countersign_graph::store::Store::sweep`].
pub(super) async fn sweep(store: &RedisStore, now: Timestamp) -> Result<(), Error> {
    let before = |kept: Duration| {
        let moment = now.millis().saturating_sub(i64::try_from(kept.as_millis()).unwrap_or(i64::MAX));
        format!("({moment}") // exclusive
    };
    let looks = store.link.look(Partition::all(), |pipeline, partition| {
        let dedup = PartitionKey::Dedup.of(partition);
        pipeline.cmd("ZREMRANGEBYSCORE").arg(dedup).arg("-inf").arg(before(KEEP_DEDUP));
        let parked = PartitionKey::Parked.of(partition);
        pipeline.zrangebyscore_limit(parked, "-inf", before(KEEP_PARKED), 0, MAX_PARKED);
    });
    for Look { mut answers, .. } in looks.await? {
        for member in json::answer::<Vec<String>>(answers.pop().unwrap_or(Value::Nil))? {
            let Some((seq, thread)): Option<(Seq, ThreadId)> = keys::read_parked(&member) else { continue };
            let call = Call::on_thread(&store.scripts.drop_parked, &thread).arg(seq).arg(&member);
            store.link.script::<()>(&call).await?;
        }
    }
    dead_letters::drop_old(store, now).await?;
    aside::put_back(store).await
}

/// Parses the time of arrival and the contents of an entry.
fn read(place: &StoredPlace, stored: &[u8]) -> Result<(i64, serde_json::Value), Error> {
    let entry = json::read("an interaction", aside::contents_of(place, stored))?;
    let arrived = std::str::from_utf8(stored).ok().and_then(|stored| stored.split_once(' ')?.0.parse().ok());
    Ok((arrived.unwrap_or_default(), entry))
}

/// Returns the partitions whose inbox has an entry to claim, the one that has waited longest first.
async fn due_inboxes(store: &RedisStore) -> Result<Vec<Partition>, Error> {
    let looks = store.link.look(Partition::all(), |pipeline, partition| {
        pipeline.zrange_withscores(PartitionKey::Inbox.of(partition), 0, 0);
    });
    let mut due = Vec::new();
    for Look { partition, server_now, mut answers } in looks.await? {
        let first = json::answer::<Vec<(String, f64)>>(answers.pop().unwrap_or(Value::Nil))?;
        let waits_for = first.first().map(|(_, from)| server_now.saturating_sub(*from as i64));
        due.extend(waits_for.filter(|time| *time >= 0).map(|time| (Reverse(time), partition)));
    }
    due.sort_unstable();
    Ok(due.into_iter().map(|(_, partition)| partition).collect())
}
