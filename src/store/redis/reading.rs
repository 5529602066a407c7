//! Reads of actions, steps, audit trails and lists; also blobs and registers.

use std::{fmt::Display, time::Duration};

use countersign_core::{
    clock::Timestamp,
    hash::sha256,
    ids::{ActionId, ApprovalId, GraphName, Partition, Slot, ThreadId},
};
use countersign_graph::{
    action::{ActionRecord, Label, Status},
    keyring::Proof,
    store::{
        ActionFilter, AuditEntry, AuditTrail, Backlog, Error, Posted, Register, StepRecord, ThreadSummary, Version,
        read_versioned,
    },
};
use redis::{Cmd, cmd};
use serde_json::Value;

use super::{
    RedisStore, aside,
    commit::read_head,
    json,
    keys::{self, PartitionKey, ThreadKey},
    scripts::Call,
};
use crate::aside::{StoredPlace, reason_of};

/// The placeholder for the hash of an unreadable audit entry whose successor cannot be read either.
const UNKNOWN: &str = "unknown";

/// Implements [`countersign_graph::store::Store::action_by_approval`].
pub(super) async fn action_by_approval(
    store: &RedisStore,
    approval: &ApprovalId,
) -> Result<Option<ActionRecord>, Error> {
    let (thread, id) = match store.approvals.get(approval) {
        Some(known) => known,
        None => {
            let approvals = PartitionKey::Approvals.of(approval.partition());
            let named: Option<String> = store.link.command(cmd("HGET").arg(approvals).arg(approval.as_str())).await?;
            let Some(named) = named else { return Ok(None) };
            let found = read_action(&named)?;
            store.approvals.set(approval.clone(), found.clone());
            found
        }
    };
    // A record that got a new approval key is found only by that key.
    Ok(action(store, &thread, &id).await?.filter(|record| record.approval == *approval))
}

/// Implements [`countersign_graph::store::Store::action`].
pub(super) async fn action(
    store: &RedisStore,
    thread: &ThreadId,
    id: &ActionId,
) -> Result<Option<ActionRecord>, Error> {
    let get = cmd("HGET").arg(ThreadKey::Actions.of(thread)).arg(id.as_str()).to_owned();
    let stored: Option<Vec<u8>> = store.link.command(&get).await?;
    stored.map(|stored| json::read_record(&stored)).transpose()
}

/// Implements [`countersign_graph::store::Store::actions`].
pub(super) async fn actions(store: &RedisStore, filter: &ActionFilter) -> Result<Vec<ActionRecord>, Error> {
    if let Some(thread) = &filter.thread {
        return actions_of(store, thread, filter).await;
    }
    let named = newest_actions(store, filter).await?;
    newest_first(store, filter, named).await
}

/// Implements [`countersign_graph::store::Store::actions_under`].
pub(super) async fn actions_under(
    store: &RedisStore,
    labels: &[Label],
    statuses: &[Status],
    limit: usize,
) -> Result<Vec<ActionRecord>, Error> {
    if labels.is_empty() || limit == 0 {
        return Ok(Vec::new());
    }
    find_under(store, labels, statuses, limit, redis::pipe()).await.map(|(records, _)| records)
}

/// Implements [`countersign_graph::store::Store::actions_and_register`].
pub(super) async fn actions_and_register(
    store: &RedisStore,
    labels: &[Label],
    statuses: &[Status],
    limit: usize,
    key: &str,
) -> Result<(Vec<ActionRecord>, Option<Register>), Error> {
    if store.link.is_one_server() {
        let ranges = ranges(labels, statuses);
        let mut call = Call::on_partition(&store.scripts.find_labels, Partition::of(key)).arg(limit_of(limit));
        call = Partition::all().fold(call, |call, partition| call.key(PartitionKey::ActionLabels.of(partition)));
        call = ranges.iter().fold(call.key(keys::register(key)), |call, words| call.arg(&words.end).arg(&words.first));
        let (register, members): (redis::Value, Vec<String>) = store.link.script(&call).await?;
        let names = members.iter().filter_map(|member| ranges.iter().find_map(|words| words.strip_from(member)));
        let records = newest_named(store, names.map(str::to_owned).collect(), labels, statuses, limit).await?;
        return Ok((records, readable_register(register)));
    }
    let mut pipeline = redis::pipe();
    pipeline.add_command(get_register(key));
    let (records, answers) = find_under(store, labels, statuses, limit, pipeline).await?;
    Ok((records, answers.into_iter().next().and_then(readable_register)))
}

/// Returns the actions under these labels, and the answers to the commands that are sent before.
async fn find_under(
    store: &RedisStore,
    labels: &[Label],
    statuses: &[Status],
    limit: usize,
    mut pipeline: redis::Pipeline,
) -> Result<(Vec<ActionRecord>, Vec<redis::Value>), Error> {
    let before = pipeline.cmd_iter().count();
    let ranges = ranges(labels, statuses); // the same in each partition
    for partition in Partition::all() {
        let key = PartitionKey::ActionLabels.of(partition);
        ranges.iter().for_each(|words| newest_with(&mut pipeline, &key, words, limit));
    }
    let mut answers: Vec<redis::Value> = store.link.pipeline(&pipeline).await?;
    let found =
        answers.split_off(before).into_iter().map(json::answer::<Vec<String>>).collect::<Result<Vec<_>, _>>()?;
    let mut named = Vec::new();
    for (members, words) in found.iter().zip(ranges.iter().cycle()) {
        named.extend(members.iter().filter_map(|member| words.strip_from(member).map(str::to_owned)));
    }
    Ok((newest_named(store, named, labels, statuses, limit).await?, answers))
}

/// Returns what members of the labels of actions begin with, for each label and status.
fn ranges(labels: &[Label], statuses: &[Status]) -> Vec<Words> {
    let of = |label| wanted(statuses).iter().map(move |status| Words::new(format!("{label} {status}")));
    labels.iter().flat_map(of).collect()
}

/// Returns the statuses to look for. None stands for all.
fn wanted(statuses: &[Status]) -> &[Status] {
    if statuses.is_empty() { &Status::ALL } else { statuses }
}

/// Returns the newest of the actions with these names, if they are still under one of the labels.
async fn newest_named(
    store: &RedisStore,
    mut named: Vec<String>,
    labels: &[Label],
    statuses: &[Status],
    limit: usize,
) -> Result<Vec<ActionRecord>, Error> {
    named.sort_unstable_by(|a, b| b.cmp(a));
    named.dedup();
    named.truncate(limit);
    let mut records = records_of(store, &named).await?;
    // An action may have changed between the two reads.
    records.retain(|record| wanted(statuses).contains(&record.status) && record.is_under(labels));
    Ok(records)
}

/// Implements [`countersign_graph::store::Store::steps`].
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
    let command = cmd("LRANGE").arg(ThreadKey::Steps.of(thread)).arg(after).arg(last).to_owned();
    let stored: Vec<Vec<u8>> = store.link.command(&command).await?;
    let kept = (after + 1..).zip(stored).filter(|(_, step)| !step.is_empty()); // deleted steps leave an empty entry
    let mut steps = Vec::new();
    for (version, step) in kept {
        match read_versioned("a step", &step, StepRecord::FORMAT) {
            Ok(step) => steps.push((version, step)),
            Err(error) => {
                let place = StoredPlace::of_thread("step", thread, version);
                aside::note(store, thread, &place, &reason_of(&error)).await;
            }
        }
    }
    Ok(steps)
}

/// Implements [`countersign_graph::store::Store::audit`].
pub(super) async fn audit(store: &RedisStore, thread: &ThreadId) -> Result<AuditTrail, Error> {
    let mut look = redis::pipe();
    look.atomic().lrange(ThreadKey::Audit.of(thread), 0, -1).hget(ThreadKey::Meta.of(thread), "audit_hash");
    let (stored, head): (Vec<Vec<u8>>, Option<String>) = store.link.pipeline(&look).await?;
    let head = head.map(|head| read_head(stored.len() as u64, &head)).unwrap_or_default();
    let mut record: Vec<AuditEntry> = Vec::with_capacity(stored.len());
    for (n, entry) in stored.iter().enumerate() {
        let error = match json::read("an entry of the record", entry) {
            Ok(entry) => {
                record.push(entry);
                continue;
            }
            Err(error) => error,
        };
        let seq = n as u64 + 1;
        aside::note(store, thread, &StoredPlace::of_thread("record", thread, seq), &reason_of(&error)).await;
        // The hash is in the next entry or, for the last entry, in the thread's metadata.
        let after = stored.get(n + 1).map(|next| json::read::<AuditEntry>("an entry", next).map(|next| next.previous));
        let hash = after.map_or_else(|| head.hash.clone(), |hash| hash.unwrap_or_else(|_| UNKNOWN.into()));
        let (previous, at) = record.last().map_or(("", Timestamp(0)), |last| (&last.hash, last.event.at));
        record.push(AuditEntry::unreadable(seq, previous, hash, at));
    }
    Ok(AuditTrail { entries: record, seal: head.seal, proof: Proof::Unsealed })
}

/// Implements [`countersign_graph::store::Store::posted`].
pub(super) async fn posted(store: &RedisStore, thread: &ThreadId, slot: &Slot) -> Result<Option<Posted>, Error> {
    let text: Option<String> =
        store.link.command(cmd("HGET").arg(ThreadKey::Posted.of(thread)).arg(slot.as_str())).await?;
    text.map(|text| json::read("where a message is", &text)).transpose()
}

/// Implements [`countersign_graph::store::Store::backlog`].
pub(super) async fn backlog(store: &RedisStore) -> Result<Backlog, Error> {
    const COUNTED: [PartitionKey; 5] =
        [PartitionKey::Ready, PartitionKey::Waiting, PartitionKey::Inbox, PartitionKey::Outbox, PartitionKey::Sending];
    let mut pipeline = redis::pipe();
    pipeline.atomic(); // work that moves from the inbox to a thread in between would be in neither count
    for partition in Partition::all() {
        for index in COUNTED {
            pipeline.zcard(index.of(partition));
        }
    }
    let counts: Vec<u64> = store.link.pipeline(&pipeline).await?;
    let mut backlog = Backlog::default();
    for counts in counts.chunks_exact(COUNTED.len()) {
        let [ready, waiting, inbox, outbox, sending] = counts else { continue };
        backlog.threads += ready + waiting;
        backlog.inbox += inbox;
        backlog.outbox += outbox + sending;
    }
    Ok(backlog)
}

/// Implements [`countersign_graph::store::Store::threads`].
pub(super) async fn threads(store: &RedisStore, limit: usize) -> Result<Vec<ThreadSummary>, Error> {
    if limit == 0 {
        return Ok(Vec::new());
    }
    let newest = isize::try_from(limit).unwrap_or(isize::MAX) - 1;
    let mut pipeline = redis::pipe();
    for partition in Partition::all() {
        pipeline.zrevrange_withscores(PartitionKey::Recent.of(partition), 0, newest);
    }
    let found: Vec<Vec<(String, f64)>> = store.link.pipeline(&pipeline).await?;
    let mut recent: Vec<(String, f64)> = found.into_iter().flatten().collect();
    recent.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    recent.truncate(limit);
    if recent.is_empty() {
        return Ok(Vec::new());
    }

    let (recent, threads): (Vec<_>, Vec<ThreadId>) = recent
        .into_iter()
        .filter_map(|recent| {
            let thread = recent.0.parse().ok()?;
            Some((recent, thread))
        })
        .unzip();
    if threads.is_empty() {
        return Ok(Vec::new());
    }
    let mut pipeline = redis::pipe();
    for thread in &threads {
        pipeline.hget(ThreadKey::Meta.of(thread), "version");
        pipeline.zscore(PartitionKey::Ready.of(thread.partition()), thread.to_string());
        pipeline.hget(ThreadKey::Meta.of(thread), "graph");
    }
    let details: Vec<Option<String>> = store.link.pipeline(&pipeline).await?;
    let summaries = threads.into_iter().zip(recent).zip(details.chunks_exact(3));
    let summary = summaries.map(|((thread, (_, at)), detail)| ThreadSummary {
        thread,
        graph: detail[2].as_deref().map(GraphName::from).unwrap_or_default(),
        version: detail[0].as_deref().and_then(|version| version.parse().ok()).unwrap_or(0),
        updated_at: Timestamp(at as i64 / 1000),
        busy: detail[1].is_some(),
    });
    Ok(summary.collect())
}

/// Implements [`countersign_graph::store::Store::put_blob`].
pub(super) async fn put_blob(store: &RedisStore, bytes: &[u8], keep: Option<Duration>) -> Result<String, Error> {
    let hash = hex::encode(sha256(bytes));
    let key = keys::blob(&hash);
    let mut set = redis::pipe();
    set.atomic();
    match keep {
        // The later expiry wins, and a permanent blob stays permanent.
        Some(keep) => {
            let keep = u64::try_from(keep.as_millis()).unwrap_or(u64::MAX).clamp(1, i64::MAX as u64 / 2);
            set.cmd("SET").arg(&key).arg(bytes).arg("NX").arg("PX").arg(keep).ignore();
            set.cmd("PEXPIRE").arg(&key).arg(keep).arg("GT").ignore();
        }
        None => {
            set.cmd("SET").arg(&key).arg(bytes).ignore();
        }
    }
    store.link.write(&set).await?;
    Ok(hash)
}

/// Implements [`countersign_graph::store::Store::get_blob`].
pub(super) async fn get_blob(store: &RedisStore, hash: &str) -> Result<Option<Vec<u8>>, Error> {
    let get = cmd("MGET").arg(keys::blob(hash)).arg(keys::file(hash)).to_owned();
    let found: Vec<Option<Vec<u8>>> = store.link.command(&get).await?;
    Ok(found.into_iter().flatten().next())
}

/// Implements [`countersign_graph::store::Store::register`].
pub(super) async fn register(store: &RedisStore, key: &str) -> Result<Register, Error> {
    read_register(store.link.command(&get_register(key)).await?)
}

fn get_register(key: &str) -> redis::Cmd {
    cmd("HMGET").arg(keys::register(key)).arg("revision").arg("value").to_owned()
}

/// Returns a register, if it can be read.
fn readable_register(stored: redis::Value) -> Option<Register> {
    read_register(json::answer(stored).ok()?).ok()
}

fn read_register((revision, value): (Option<u64>, Option<String>)) -> Result<Register, Error> {
    match (revision, value) {
        (Some(revision), Some(value)) => Ok(Register { revision, value: json::read("a register", &value)? }),
        _ => Ok(Register::default()),
    }
}

/// Implements [`countersign_graph::store::Store::set_register`].
pub(super) async fn set_register(store: &RedisStore, key: &str, expected: u64, value: &Value) -> Result<bool, Error> {
    let call = Call::on_partition(&store.scripts.set_register, Partition::of(key));
    store.link.script(&call.key(keys::register(key)).arg(expected).arg(value.to_string())).await
}

/// Returns the actions of one thread. Any conversation has few open actions, which are found by
/// their status, so older actions of the thread cost nothing.
async fn actions_of(store: &RedisStore, thread: &ThreadId, filter: &ActionFilter) -> Result<Vec<ActionRecord>, Error> {
    let all_in_progress = !filter.statuses.is_empty() && filter.statuses.iter().all(|status| status.is_in_progress());
    let named = if all_in_progress {
        let label = Label::Within(thread.team.clone(), thread.channel.clone());
        let ranges: Vec<_> = filter.statuses.iter().map(|status| Words::new(format!("{label} {status}"))).collect();
        let labels = PartitionKey::ActionLabels.of(thread.partition());
        let mut pipeline = redis::pipe();
        ranges.iter().for_each(|words| newest_with(&mut pipeline, &labels, words, usize::MAX));
        let found: Vec<Vec<String>> = store.link.pipeline(&pipeline).await?;
        let named = ranges.iter().zip(found).flat_map(|(words, members)| {
            members.into_iter().filter_map(|member| words.strip_from(&member).map(str::to_owned))
        });
        named.filter(|name| keys::read_action(name).is_some_and(|(of, _)| of == *thread)).collect()
    } else {
        names_of(store, thread, filter).await?
    };
    newest_first(store, filter, named).await
}

/// Returns the names ([`keys::action`]) of a thread's actions that have the wanted statuses.
async fn names_of(store: &RedisStore, thread: &ThreadId, filter: &ActionFilter) -> Result<Vec<String>, Error> {
    #[derive(serde::Deserialize)]
    struct Meta {
        status: String,
        index: String,
    }
    let metas: Vec<Vec<u8>> = store.link.command(cmd("HVALS").arg(ThreadKey::ActionMeta.of(thread))).await?;
    let metas = metas.iter().filter_map(|meta| json::read::<Meta>("an action", meta).ok());
    let wanted =
        |meta: &Meta| filter.statuses.is_empty() || filter.statuses.iter().any(|status| status.as_str() == meta.status);
    Ok(metas.filter(wanted).map(|meta| meta.index).collect())
}

/// Returns the newest of these actions.
async fn newest_first(
    store: &RedisStore,
    filter: &ActionFilter,
    mut named: Vec<String>,
) -> Result<Vec<ActionRecord>, Error> {
    named.sort_unstable_by(|a, b| b.cmp(a));
    named.truncate(filter.limit);
    let mut records = records_of(store, &named).await?;
    // An action may have changed between the two reads.
    records.retain(|record| matches_filter(filter, record));
    Ok(records)
}

/// Returns the names ([`keys::action`]) of the newest actions of each partition and status.
async fn newest_actions(store: &RedisStore, filter: &ActionFilter) -> Result<Vec<String>, Error> {
    let statuses = if filter.statuses.is_empty() { Status::ALL.as_slice() } else { filter.statuses.as_slice() };
    let mut pipeline = redis::pipe();
    for partition in Partition::all() {
        for status in statuses {
            newest_with(&mut pipeline, &PartitionKey::ActionIndex.of(partition), &Words::new(status), filter.limit);
        }
    }
    let found: Vec<Vec<String>> = store.link.pipeline(&pipeline).await?;
    let names = found.into_iter().flatten();
    Ok(names.filter_map(|member| member.split_once(' ').map(|(_, name)| name.to_owned())).collect())
}

/// The words that members of a sorted set begin with, as the bounds of their range.
struct Words {
    /// The first member with these words and a space, with `[` before it.
    first: String,
    /// The end of those members, with `(` before it: `!` is the character after the space.
    end: String,
}

impl Words {
    fn new(words: impl Display) -> Self {
        Self { first: format!("[{words} "), end: format!("({words}!") }
    }

    /// Returns the rest of a member, if it begins with the words.
    fn strip_from<'m>(&self, member: &'m str) -> Option<&'m str> {
        member.strip_prefix(&self.first[1..])
    }
}

/// Adds a command for the last members of a sorted set that begin with these words and a space.
fn newest_with(pipeline: &mut redis::Pipeline, key: &str, words: &Words, limit: usize) {
    // From the last member with this prefix back to the first.
    let limit = limit_of(limit);
    let mut command = Cmd::with_capacity(7, key.len() + words.end.len() + words.first.len() + 48);
    command.arg("ZREVRANGEBYLEX").arg(key).arg(&words.end).arg(&words.first).arg("LIMIT").arg(0).arg(limit);
    pipeline.add_command(command);
}

/// Returns a limit that the server can read.
fn limit_of(limit: usize) -> usize {
    limit.min(i64::MAX as usize)
}

/// Returns the records of actions, given their names ([`keys::action`]), in the same order.
/// Unreadable ones are left out.
async fn records_of(store: &RedisStore, named: &[String]) -> Result<Vec<ActionRecord>, Error> {
    let named: Vec<_> = named.iter().filter_map(|name| keys::read_action(name)).collect();
    if named.is_empty() {
        return Ok(Vec::new());
    }
    let mut pipeline = redis::pipe();
    for (thread, id) in &named {
        pipeline.hget(ThreadKey::Actions.of(thread), id.as_str());
    }
    let stored: Vec<Option<Vec<u8>>> = store.link.pipeline(&pipeline).await?;
    let mut records = Vec::with_capacity(stored.len());
    for ((thread, id), stored) in named.iter().zip(stored) {
        match stored.map(|stored| json::read_record(&stored)) {
            Some(Ok(record)) => records.push(record),
            Some(Err(error)) => {
                aside::note(store, thread, &StoredPlace::of_thread("action", thread, id), &reason_of(&error)).await;
            }
            None => {}
        }
    }
    Ok(records)
}

fn matches_filter(filter: &ActionFilter, record: &ActionRecord) -> bool {
    filter.statuses.is_empty() || filter.statuses.contains(&record.status)
}

fn read_action(name: &str) -> Result<(ThreadId, ActionId), Error> {
    keys::read_action(name).ok_or_else(|| json::corrupt(format!("the action `{name}`")))
}
