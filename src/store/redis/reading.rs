//! Looking without touching: actions, steps, audit, lists; and bytes kept under their hash.

use std::time::Duration;

use redis::cmd;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::{
    RedisStore, json,
    keys::{self, Drawer, Shelf},
    scripts::Call,
};
use crate::{
    clock::Timestamp,
    graph::{
        action::{ActionRecord, Label, Status},
        store::{ActionFilter, AuditEntry, Backlog, Error, Posted, Register, StepRecord, ThreadSummary, Version},
    },
    ids::{ActionId, ApprovalId, Partition, Slot, ThreadId},
};

/// [`crate::graph::store::Store::action_by_approval`].
pub(super) async fn action_by_approval(
    store: &RedisStore,
    approval: &ApprovalId,
) -> Result<Option<ActionRecord>, Error> {
    let approvals = Shelf::Approvals.of(approval.partition());
    let named: Option<String> = store.link.command(cmd("HGET").arg(approvals).arg(approval.as_str())).await?;
    let Some(named) = named else { return Ok(None) };
    let (thread, id) = read_action(&named)?;
    // A record that got a new key answers to that one only.
    Ok(action(store, &thread, &id).await?.filter(|record| record.approval == *approval))
}

/// [`crate::graph::store::Store::action`].
pub(super) async fn action(
    store: &RedisStore,
    thread: &ThreadId,
    id: &ActionId,
) -> Result<Option<ActionRecord>, Error> {
    let text: Option<String> = store.link.command(cmd("HGET").arg(Drawer::Actions.of(thread)).arg(id.as_str())).await?;
    text.map(|text| json::read("an action", &text)).transpose()
}

/// [`crate::graph::store::Store::actions`].
pub(super) async fn actions(store: &RedisStore, filter: &ActionFilter) -> Result<Vec<ActionRecord>, Error> {
    if let Some(thread) = &filter.thread {
        return actions_of(store, thread, filter).await;
    }
    let mut named = newest_actions(store, filter).await?;
    named.sort_unstable_by(|a, b| b.cmp(a));
    named.truncate(filter.limit);
    let mut records = records_of(store, &named).await?;
    // One may have moved between the two looks.
    records.retain(|record| wanted(filter, record));
    Ok(records)
}

/// [`crate::graph::store::Store::actions_under`].
pub(super) async fn actions_under(
    store: &RedisStore,
    labels: &[Label],
    statuses: &[Status],
    limit: usize,
) -> Result<Vec<ActionRecord>, Error> {
    if labels.is_empty() || limit == 0 {
        return Ok(Vec::new());
    }
    let wanted = if statuses.is_empty() { Status::ALL.as_slice() } else { statuses };
    let mut pipeline = redis::pipe();
    for partition in Partition::all() {
        for label in labels {
            for status in wanted {
                newest_with(&mut pipeline, Shelf::ActionLabels.of(partition), &format!("{label} {status}"), limit);
            }
        }
    }
    let found: Vec<Vec<String>> = store.link.pipeline(&pipeline).await?;
    let ranges = labels.iter().flat_map(|label| wanted.iter().map(move |status| format!("{label} {status} ")));
    let ranges: Vec<String> = ranges.collect(); // the same in each partition
    let mut named = Vec::new();
    for (members, range) in found.iter().zip(ranges.iter().cycle()) {
        named.extend(members.iter().filter_map(|member| member.strip_prefix(range).map(str::to_owned)));
    }
    named.sort_unstable_by(|a, b| b.cmp(a));
    named.dedup();
    named.truncate(limit);
    let mut records = records_of(store, &named).await?;
    // One may have moved between the two looks.
    records.retain(|record| wanted.contains(&record.status) && record.is_under(labels));
    Ok(records)
}

/// [`crate::graph::store::Store::steps`].
pub(super) async fn steps(
    store: &RedisStore,
    thread: &ThreadId,
    after: Version,
    limit: usize,
) -> Result<Vec<(Version, StepRecord)>, Error> {
    if limit == 0 {
        return Ok(Vec::new());
    }
    let last = after.saturating_add(limit as u64 - 1).min(i64::MAX as u64);
    let command = cmd("LRANGE").arg(Drawer::Steps.of(thread)).arg(after).arg(last).to_owned();
    let texts: Vec<String> = store.link.command(&command).await?;
    let kept = (after + 1..).zip(texts).filter(|(_, text)| !text.is_empty()); // dropped steps leave their place
    kept.map(|(version, text)| Ok((version, json::read("a step", &text)?))).collect()
}

/// [`crate::graph::store::Store::audit`].
pub(super) async fn audit(store: &RedisStore, thread: &ThreadId) -> Result<Vec<AuditEntry>, Error> {
    let texts: Vec<String> = store.link.command(cmd("LRANGE").arg(Drawer::Audit.of(thread)).arg(0).arg(-1)).await?;
    texts.iter().map(|text| json::read("an audit entry", text)).collect()
}

/// [`crate::graph::store::Store::posted`].
pub(super) async fn posted(store: &RedisStore, thread: &ThreadId, slot: &Slot) -> Result<Option<Posted>, Error> {
    let text: Option<String> =
        store.link.command(cmd("HGET").arg(Drawer::Posted.of(thread)).arg(slot.as_str())).await?;
    text.map(|text| json::read("where a message is", &text)).transpose()
}

/// [`crate::graph::store::Store::backlog`].
pub(super) async fn backlog(store: &RedisStore) -> Result<Backlog, Error> {
    const SHELVES: [Shelf; 5] = [Shelf::Ready, Shelf::Waiting, Shelf::Desk, Shelf::Outbox, Shelf::Sending];
    let mut pipeline = redis::pipe();
    for partition in Partition::all() {
        for shelf in SHELVES {
            pipeline.zcard(shelf.of(partition));
        }
    }
    let counts: Vec<u64> = store.link.pipeline(&pipeline).await?;
    let mut backlog = Backlog::default();
    for counts in counts.chunks_exact(SHELVES.len()) {
        let [ready, waiting, desk, outbox, sending] = counts else { continue };
        backlog.threads += ready + waiting;
        backlog.desk += desk;
        backlog.outbox += outbox + sending;
    }
    Ok(backlog)
}

/// [`crate::graph::store::Store::threads`].
pub(super) async fn threads(store: &RedisStore, limit: usize) -> Result<Vec<ThreadSummary>, Error> {
    if limit == 0 {
        return Ok(Vec::new());
    }
    let newest = isize::try_from(limit).unwrap_or(isize::MAX) - 1;
    let mut pipeline = redis::pipe();
    for partition in Partition::all() {
        pipeline.zrevrange_withscores(Shelf::Recent.of(partition), 0, newest);
    }
    let found: Vec<Vec<(String, f64)>> = store.link.pipeline(&pipeline).await?;
    let mut recent: Vec<(String, f64)> = found.into_iter().flatten().collect();
    recent.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    recent.truncate(limit);
    if recent.is_empty() {
        return Ok(Vec::new());
    }

    let threads: Vec<ThreadId> =
        recent.iter().map(|(thread, _)| thread.parse().map_err(json::corrupt)).collect::<Result<_, _>>()?;
    let mut pipeline = redis::pipe();
    for thread in &threads {
        pipeline.hget(Drawer::Meta.of(thread), "version");
        pipeline.zscore(Shelf::Ready.of(thread.partition()), thread.to_string());
    }
    let details: Vec<Option<f64>> = store.link.pipeline(&pipeline).await?;
    let summaries = threads.into_iter().zip(recent).zip(details.chunks_exact(2));
    let summary = summaries.map(|((thread, (_, at)), detail)| ThreadSummary {
        thread,
        version: detail[0].unwrap_or(0.0) as Version,
        updated_at: Timestamp(at as i64 / 1000),
        busy: detail[1].is_some(),
    });
    Ok(summary.collect())
}

/// [`crate::graph::store::Store::put_blob`].
pub(super) async fn put_blob(store: &RedisStore, bytes: &[u8], keep: Option<Duration>) -> Result<String, Error> {
    let hash = hex::encode(Sha256::digest(bytes));
    let mut set = cmd("SET");
    set.arg(keys::blob(&hash)).arg(bytes);
    if let Some(keep) = keep {
        // What is kept for good already stays so.
        set.arg("NX").arg("PX").arg(u64::try_from(keep.as_millis()).unwrap_or(u64::MAX));
    }
    store.link.command::<Option<String>>(&set).await?;
    Ok(hash)
}

/// [`crate::graph::store::Store::get_blob`].
pub(super) async fn get_blob(store: &RedisStore, hash: &str) -> Result<Option<Vec<u8>>, Error> {
    let get = cmd("MGET").arg(keys::blob(hash)).arg(keys::file(hash)).to_owned();
    let found: Vec<Option<Vec<u8>>> = store.link.command(&get).await?;
    Ok(found.into_iter().flatten().next())
}

/// [`crate::graph::store::Store::register`].
pub(super) async fn register(store: &RedisStore, key: &str) -> Result<Register, Error> {
    let get = cmd("HMGET").arg(keys::register(key)).arg("revision").arg("value").to_owned();
    let (revision, value): (Option<u64>, Option<String>) = store.link.command(&get).await?;
    match (revision, value) {
        (Some(revision), Some(value)) => Ok(Register { revision, value: json::read("a register", &value)? }),
        _ => Ok(Register::default()),
    }
}

/// [`crate::graph::store::Store::set_register`].
pub(super) async fn set_register(store: &RedisStore, key: &str, expected: u64, value: &Value) -> Result<bool, Error> {
    let call = Call::on_partition(&store.scripts.set_register, Partition::of(key));
    store.link.script(&call.key(keys::register(key)).arg(expected).arg(value.to_string())).await
}

async fn actions_of(store: &RedisStore, thread: &ThreadId, filter: &ActionFilter) -> Result<Vec<ActionRecord>, Error> {
    let texts: Vec<String> = store.link.command(cmd("HVALS").arg(Drawer::Actions.of(thread))).await?;
    let records = texts.iter().map(|text| json::read("an action", text));
    let mut records: Vec<ActionRecord> = records.collect::<Result<_, _>>()?;
    records.retain(|record| wanted(filter, record));
    records.sort_by(|a, b| (b.requested_at, &b.id).cmp(&(a.requested_at, &a.id)));
    records.truncate(filter.limit);
    Ok(records)
}

/// The newest actions of each partition and status, by what [`keys::action`] calls them.
async fn newest_actions(store: &RedisStore, filter: &ActionFilter) -> Result<Vec<String>, Error> {
    let statuses = if filter.statuses.is_empty() { Status::ALL.as_slice() } else { filter.statuses.as_slice() };
    let mut pipeline = redis::pipe();
    for partition in Partition::all() {
        for status in statuses {
            newest_with(&mut pipeline, Shelf::ActionIndex.of(partition), status.as_str(), filter.limit);
        }
    }
    let found: Vec<Vec<String>> = store.link.pipeline(&pipeline).await?;
    let names = found.into_iter().flatten();
    Ok(names.filter_map(|member| member.split_once(' ').map(|(_, name)| name.to_owned())).collect())
}

/// Asks for the last members of a sorted set that begin with these words and a blank.
fn newest_with(pipeline: &mut redis::Pipeline, key: String, words: &str, limit: usize) {
    // From the last member that begins so, back to the first; `!` follows the blank.
    let (from, to) = (format!("({words}!"), format!("[{words} "));
    let limit = limit.min(i64::MAX as usize);
    pipeline.cmd("ZREVRANGEBYLEX").arg(key).arg(from).arg(to).arg("LIMIT").arg(0).arg(limit);
}

/// The records of actions by what [`keys::action`] calls them, in that order.
async fn records_of(store: &RedisStore, named: &[String]) -> Result<Vec<ActionRecord>, Error> {
    if named.is_empty() {
        return Ok(Vec::new());
    }
    let mut pipeline = redis::pipe();
    for name in named {
        let (thread, id) = read_action(name)?;
        pipeline.hget(Drawer::Actions.of(&thread), id.as_str());
    }
    let records: Vec<Option<String>> = store.link.pipeline(&pipeline).await?;
    records.into_iter().flatten().map(|text| json::read("an action", &text)).collect()
}

fn wanted(filter: &ActionFilter, record: &ActionRecord) -> bool {
    filter.statuses.is_empty() || filter.statuses.contains(&record.status)
}

fn read_action(name: &str) -> Result<(ThreadId, ActionId), Error> {
    keys::read_action(name).ok_or_else(|| json::corrupt(format!("the action `{name}`")))
}
