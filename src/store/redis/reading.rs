//! Reads of actions, steps, audit trails and lists; also registers.

use std::fmt::Display;

use countersign_core::{
    clock::Timestamp,
    ids::{ActionId, ApprovalId, GraphName, Partition, Slot, ThreadId},
};
use countersign_graph::{
    action::{ActionRecord, Label, Status},
    keyring::Proof,
    store::{
        ActionFilter, ActionsOf, AuditEntry, AuditTrail, Backlog, Error, Posted, Register, StepRecord, ThreadFilter,
        ThreadSummary, Version, read_versioned,
    },
};
use redis::{Cmd, cmd};
use serde_json::Value;

use super::{
    RedisStore, aside,
    commit::read_head,
    forget, json,
    keys::{self, PartitionKey, ThreadKey},
    scripts::Call,
};
use crate::aside::{StoredPlace, reason_of};

/// The placeholder for the hash of an unreadable audit entry whose successor cannot be read either.
const UNKNOWN: &str = "unknown";

/// Returns the action with this approval key.
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

/// Returns an action of a thread.
pub(super) async fn action(
    store: &RedisStore,
    thread: &ThreadId,
    id: &ActionId,
) -> Result<Option<ActionRecord>, Error> {
    let get = cmd("HGET").arg(ThreadKey::Actions.of(thread)).arg(id.as_str()).to_owned();
    let stored: Option<Vec<u8>> = store.link.command(&get).await?;
    stored.map(|stored| json::read_record(&stored)).transpose()
}

/// Implements [`countersign_graph::store::Store::actions_and_register`].
pub(super) async fn actions(
    store: &RedisStore,
    filter: &ActionFilter,
    key: Option<&str>,
) -> Result<(Vec<ActionRecord>, Option<Register>), Error> {
    let (mut named, register) = names(store, filter, key).await?;
    named.sort_unstable_by(|a, b| b.cmp(a));
    named.dedup();
    if let ActionsOf::Thread(thread) = &filter.of {
        named.retain(|name| keys::read_action(name).is_some_and(|(of, _)| of == *thread));
    }
    named.truncate(filter.limit);
    let mut records = records_of(store, &named).await?;
    // An action may have changed between the two reads.
    records.retain(|record| match &filter.of {
        ActionsOf::Labels(labels) if !record.is_under(labels) => false,
        _ => filter.statuses.is_empty() || filter.statuses.contains(&record.status),
    });
    Ok((records, register))
}

/// Returns the names ([`keys::action`]) of the newest actions in each partition that the filter may select, and a register.
async fn names(
    store: &RedisStore,
    filter: &ActionFilter,
    key: Option<&str>,
) -> Result<(Vec<String>, Option<Register>), Error> {
    let statuses = if filter.statuses.is_empty() { &Status::ALL } else { filter.statuses.as_slice() };
    let sets = |index: PartitionKey| Partition::all().map(|partition| index.of(partition)).collect::<Vec<_>>();
    let under = |labels: &[Label]| -> Vec<Words> {
        let of = |label| statuses.iter().map(move |status| Words::new(format!("{label} {status}")));
        labels.iter().flat_map(of).collect()
    };
    let (sets, words, limit) = match &filter.of {
        ActionsOf::All => (sets(PartitionKey::ActionIndex), statuses.iter().map(Words::new).collect(), filter.limit),
        ActionsOf::Labels(labels) => (sets(PartitionKey::ActionLabels), under(labels), filter.limit),
        // Any conversation has few open actions, which are found by their status, so older actions of the thread cost
        // nothing.
        ActionsOf::Thread(thread) if statuses.iter().all(|status| status.is_in_progress()) => {
            let here = Label::Within(thread.team.clone(), thread.channel.clone());
            (vec![PartitionKey::ActionLabels.of(thread.partition())], under(&[here]), usize::MAX)
        }
        ActionsOf::Thread(thread) => {
            let register = match key {
                Some(key) => register(store, key).await.ok(),
                None => None,
            };
            return Ok((names_of(store, thread, filter).await?, register));
        }
    };
    if let Some(key) = key
        && store.link.is_one_server()
    {
        let call = Call::on_partition(&store.scripts.find_labels, Partition::of(key)).arg(limit_of(limit));
        let call = sets.into_iter().fold(call, Call::key).key(keys::register(key));
        let call = words.iter().fold(call, |call, words| call.arg(&words.end).arg(&words.first));
        let (register, members): (redis::Value, Vec<String>) = store.link.script(&call).await?;
        let names = members.iter().filter_map(|member| words.iter().find_map(|words| words.strip_from(member)));
        return Ok((names.map(str::to_owned).collect(), readable_register(register)));
    }
    let mut pipeline = redis::pipe();
    if let Some(key) = key {
        pipeline.add_command(get_register(key));
    }
    sets.iter().for_each(|set| words.iter().for_each(|words| newest_with(&mut pipeline, set, words, limit)));
    if pipeline.is_empty() {
        return Ok((Vec::new(), None));
    }
    let mut answers = store.link.pipeline::<Vec<redis::Value>>(&pipeline).await?.into_iter();
    let register = key.and_then(|_| answers.next()).and_then(readable_register);
    let mut names = Vec::new();
    for (members, words) in answers.zip(words.iter().cycle()) {
        let members = json::answer::<Vec<String>>(members)?;
        names.extend(members.iter().filter_map(|member| words.strip_from(member).map(str::to_owned)));
    }
    Ok((names, register))
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
pub(super) async fn threads(
    store: &RedisStore,
    filter: ThreadFilter,
    limit: usize,
) -> Result<Vec<ThreadSummary>, Error> {
    let found = match filter {
        _ if limit == 0 => return Ok(Vec::new()),
        ThreadFilter::All => recent_threads(store, limit).await?,
        ThreadFilter::FinishedBefore(before) => forget::finished(store, before, limit).await?,
    };
    let found = found.into_iter().filter_map(|(name, at)| Some((name.parse().ok()?, at)));
    let (threads, times): (Vec<ThreadId>, Vec<f64>) = found.unzip();
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
    let summaries = threads.into_iter().zip(times).zip(details.chunks_exact(3));
    let summary = summaries.map(|((thread, at), detail)| ThreadSummary {
        thread,
        graph: detail[2].as_deref().map(GraphName::from).unwrap_or_default(),
        version: detail[0].as_deref().and_then(|version| version.parse().ok()).unwrap_or(0),
        updated_at: Timestamp(at as i64 / 1000),
        busy: detail[1].is_some(),
    });
    Ok(summary.collect())
}

/// Returns the threads that changed most recently, with the times in microseconds.
async fn recent_threads(store: &RedisStore, limit: usize) -> Result<Vec<(String, f64)>, Error> {
    let newest = isize::try_from(limit).unwrap_or(isize::MAX) - 1;
    let mut pipeline = redis::pipe();
    for partition in Partition::all() {
        pipeline.zrevrange_withscores(PartitionKey::Recent.of(partition), 0, newest);
    }
    let found: Vec<Vec<(String, f64)>> = store.link.pipeline(&pipeline).await?;
    let mut recent: Vec<(String, f64)> = found.into_iter().flatten().collect();
    recent.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    recent.truncate(limit);
    Ok(recent)
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

fn read_action(name: &str) -> Result<(ThreadId, ActionId), Error> {
    keys::read_action(name).ok_or_else(|| json::corrupt(format!("the action `{name}`")))
}
