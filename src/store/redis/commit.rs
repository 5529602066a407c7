//! Writes all changes of one step or one decision.
//!
//! The script receives a *plan* in JSON: the values to compare and to index, and the records as
//! strings, which it stores unchanged. The legal transitions of an action are defined by
//! [`Status::may_become`], so the plan lists the statuses from which each new status may be
//! reached.
//!
//! The audit chain needs SHA-256, which Lua does not have. The entries are therefore chained here,
//! after the last known head of the chain. If the head has changed in the meantime, the script
//! writes nothing and returns the new head, and the entries are chained again.

use std::collections::HashMap;

use countersign_core::ids::ThreadId;
use countersign_graph::{
    action::{Label, Status},
    store::{
        ActionChange, AuditDraft, AuditEntry, Changes, Error, Lease, Outbound, Outgoing, Then, TimerChange, Version,
    },
};
use redis::Value;
use serde::Serialize;

use super::{RedisStore, json, keys, scripts::Call};

/// The time for which the answer to a write is kept, in seconds.
const REMEMBER_S: u64 = 24 * 60 * 60;
/// The maximum number of attempts at chaining, if the head of the chain keeps changing.
const CHAINING_ATTEMPTS: usize = 16;
/// The maximum number of chain heads kept in memory.
const MAX_HEADS: usize = 4096;

/// The last audit entry of a thread: its position and hash.
type Head = (u64, String);

/// The latest audit entry of each thread that this process has seen. A stale one only costs another
/// round trip.
#[derive(Debug, Default)]
pub(super) struct AuditHeads(std::sync::Mutex<HashMap<ThreadId, Head>>);

impl AuditHeads {
    fn get(&self, thread: &ThreadId) -> Head {
        self.0.lock().map_or_else(|_| Head::default(), |heads| heads.get(thread).cloned().unwrap_or_default())
    }

    fn set(&self, thread: &ThreadId, head: Head) {
        if let Ok(mut heads) = self.0.lock() {
            if heads.len() >= MAX_HEADS {
                heads.clear();
            }
            heads.insert(thread.clone(), head);
        }
    }
}

/// Implements [`countersign_graph::store::Store::commit`].
pub(super) async fn commit(
    store: &RedisStore,
    lease: &Lease,
    expected: Version,
    changes: &Changes,
    then: Then,
) -> Result<Version, Error> {
    debug_assert_eq!(lease.thread, changes.thread, "a lease is only valid for its own thread");
    let (release, wait_until) = match then {
        Then::Keep => (false, None),
        Then::Release => (true, None),
        Then::ReleaseUntil(at) => (true, Some(at.millis())),
    };
    let fence = lease.fence.to_string();
    let lease = LeasePlan { worker: lease.worker.as_str(), fence, expected, release, wait_until };
    write(store, changes, Some(lease)).await
}

/// Implements [`countersign_graph::store::Store::apply`].
pub(super) async fn apply(store: &RedisStore, changes: &Changes) -> Result<(), Error> {
    debug_assert!(changes.step.is_none() && changes.snapshot.is_none(), "a step needs a lease");
    write(store, changes, None).await.map(|_| ())
}

async fn write(store: &RedisStore, changes: &Changes, lease: Option<LeasePlan<'_>>) -> Result<Version, Error> {
    let thread = &changes.thread;
    let mut plan = Plan::new(changes, lease);
    let step = changes.step.as_ref().map(json::write).unwrap_or_default();
    let snapshot = changes.snapshot.as_ref().map(json::write).unwrap_or_default();
    let mut head = store.audit_heads.get(thread);
    for _ in 0..CHAINING_ATTEMPTS {
        plan.audit = AuditPlan::new(thread, head, &changes.audit);
        let call = Call::on_thread(&store.scripts.commit, thread)
            .key(keys::commit(thread, &changes.commit))
            .arg(json::write(&plan))
            .arg(&step)
            .arg(&snapshot);
        match CommitAnswer::read(store.link.script(&call).await?)? {
            CommitAnswer::Written(version) => {
                if let Some(audit) = plan.audit {
                    store.audit_heads.set(thread, (audit.seq, audit.hash));
                }
                return Ok(version);
            }
            CommitAnswer::Fenced => return Err(Error::Fenced(thread.clone())),
            CommitAnswer::Conflict(found) => {
                let expected = plan.lease.map_or(found, |lease| lease.expected);
                return Err(Error::VersionConflict { thread: thread.clone(), expected, found });
            }
            CommitAnswer::Moved(id, current) => {
                let current = current.map(|stored| json::read_record(&stored)).transpose()?.map(Box::new);
                return Err(Error::ActionMoved { id: id.as_str().into(), current });
            }
            CommitAnswer::ChainMoved(found) => head = found,
        }
    }
    Err(Error::Unavailable(format!("the audit chain of thread {thread} moved {CHAINING_ATTEMPTS} times").into()))
}

/// The answer of `commit.lua`.
enum CommitAnswer {
    Written(Version),
    Fenced,
    Conflict(Version),
    Moved(String, Option<Vec<u8>>),
    ChainMoved(Head),
}

impl CommitAnswer {
    fn read(answer: Vec<Value>) -> Result<Self, Error> {
        let mut parts = answer.into_iter();
        let mut next = || parts.next().unwrap_or(Value::Nil);
        match json::answer::<String>(next())?.as_str() {
            "ok" => Ok(Self::Written(json::answer(next())?)),
            "fenced" => Ok(Self::Fenced),
            "conflict" => Ok(Self::Conflict(json::answer(next())?)),
            "moved" => Ok(Self::Moved(json::answer(next())?, json::answer(next())?)),
            "chain" => Ok(Self::ChainMoved((json::answer(next())?, json::answer(next())?))),
            other => Err(json::corrupt(format!("a write is `{other}`"))),
        }
    }
}

#[derive(Serialize)]
struct Plan<'a> {
    thread: String,
    /// The text that follows the position in [`keys::parked`].
    parked: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    lease: Option<LeasePlan<'a>>,
    acks: &'a [u64],
    inbox_acks: &'a [u64],
    messages: Vec<String>,
    outbox: Vec<OutgoingPlan<'a>>,
    timers: Vec<TimerPlan>,
    actions: Vec<ActionPlan<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    audit: Option<AuditPlan>,
    remember_s: u64,
}

#[derive(Serialize)]
struct LeasePlan<'a> {
    worker: &'a str,
    fence: String,
    expected: Version,
    release: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    wait_until: Option<i64>,
}

#[derive(Serialize)]
struct OutgoingPlan<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    slot: Option<&'a str>,
    nonce: &'a str,
    progress: bool,
    remove: bool,
    not_before: i64,
    body: String,
}

#[derive(Serialize)]
struct TimerPlan {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    due: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    entry: Option<String>,
}

#[derive(Serialize)]
struct ActionPlan<'a> {
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    expected: Option<u64>,
    from: Vec<&'static str>,
    revision: u64,
    status: &'static str,
    index: String,
    labels: Vec<String>,
    approval: &'a str,
    record: String,
}

#[derive(Serialize)]
struct AuditPlan {
    after_seq: u64,
    after_hash: String,
    seq: u64,
    hash: String,
    entries: Vec<String>,
}

impl<'a> Plan<'a> {
    fn new(changes: &'a Changes, lease: Option<LeasePlan<'a>>) -> Self {
        Self {
            thread: changes.thread.to_string(),
            parked: keys::parked("", &changes.thread),
            lease,
            acks: &changes.acks,
            inbox_acks: &changes.inbox_acks,
            messages: changes.messages.iter().map(json::write).collect(),
            outbox: changes.outbox.iter().map(OutgoingPlan::new).collect(),
            timers: changes.timers.iter().map(|timer| TimerPlan::new(&changes.thread, timer)).collect(),
            actions: changes.actions.iter().map(ActionPlan::new).collect(),
            audit: None,
            remember_s: REMEMBER_S,
        }
    }
}

impl<'a> OutgoingPlan<'a> {
    fn new(outgoing: &'a Outgoing) -> Self {
        Self {
            slot: outgoing.slot.as_ref().map(|slot| slot.as_str()),
            nonce: outgoing.nonce.as_str(),
            progress: outgoing.progress,
            remove: matches!(outgoing.body, Outbound::Remove),
            not_before: outgoing.not_before.millis(),
            body: json::write(&outgoing.body),
        }
    }
}

impl TimerPlan {
    fn new(thread: &ThreadId, change: &TimerChange) -> Self {
        match change {
            TimerChange::Set { key, due, entry } => {
                Self { name: keys::timer(thread, key), due: Some(due.millis()), entry: Some(json::write(entry)) }
            }
            TimerChange::Clear { key } => Self { name: keys::timer(thread, key), due: None, entry: None },
        }
    }
}

impl<'a> ActionPlan<'a> {
    fn new(change: &'a ActionChange) -> Self {
        let record = &change.record;
        let from = Status::ALL.into_iter().filter(|from| from.may_become(record.status));
        Self {
            id: record.id.as_str(),
            expected: change.expected,
            from: from.map(Status::as_str).collect(),
            revision: record.revision,
            status: record.status.as_str(),
            index: keys::action(record.requested_at.millis(), &record.thread, &record.id),
            labels: record.labels().iter().map(Label::to_string).collect(),
            approval: record.approval.as_str(),
            record: json::write(record),
        }
    }
}

impl AuditPlan {
    fn new(thread: &ThreadId, (after_seq, after_hash): Head, drafts: &[AuditDraft]) -> Option<Self> {
        let (mut seq, mut hash) = (after_seq, after_hash.clone());
        let mut entries = Vec::with_capacity(drafts.len());
        for draft in drafts {
            let entry = AuditEntry::chain(thread, seq + 1, &hash, draft.clone());
            entries.push(json::write(&entry));
            (seq, hash) = (entry.seq, entry.hash);
        }
        (!entries.is_empty()).then_some(Self { after_seq, after_hash, seq, hash, entries })
    }
}
