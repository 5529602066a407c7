//! Writes all changes of one step or one decision.
//!
//! The script receives a *plan*: the values to compare and to index, and the records, which it
//! stores unchanged, each as an argument of its own. The legal transitions of an action are defined
//! by [`Status::may_become`], so the plan lists the statuses from which each new status may be
//! reached.
//!
//! The audit chain needs SHA-256, which Lua does not have. The entries are therefore chained here,
//! after the last known head of the chain. If the head has changed in the meantime, the script
//! writes nothing and returns the new head, and the entries are chained again.

use countersign_core::{
    ids::{ActionId, ApprovalId, ThreadId},
    recent::Recent,
};
use countersign_graph::{
    action::{Label, Status},
    store::{
        Acquired, ActionChange, AuditEntry, AuditHead, Changes, Claimed, Delivery, Error, Holder, Lease, Outbound,
        Outgoing, StepRecord, Then, TimerChange, Version,
    },
};
use redis::Value;
use serde::Serialize;

use super::{
    RedisStore,
    ingest::with_holder,
    json, keys,
    lease::{AcquiredAnswer, read_acquired},
    outbox::{self, StoredClaimed},
    scripts::Call,
};

/// The time for which the answer to a write is kept, in seconds.
const REMEMBER_S: u64 = 24 * 60 * 60;
/// The maximum number of attempts at chaining, if the head of the chain keeps changing.
const CHAINING_ATTEMPTS: usize = 16;

/// The head of the audit trail of each thread, as this process has seen it last. An outdated one only costs another round
/// trip.
pub(super) type AuditHeads = Recent<ThreadId, AuditHead>;

/// The action of each approval that this process has seen. It never changes.
pub(super) type Approvals = Recent<ApprovalId, (ThreadId, ActionId)>;

/// What is done in the same script as a write.
#[derive(Clone, Copy, Default)]
pub(super) struct Joined<'a> {
    /// Who claims messages of the thread, and how many at most.
    pub(super) claims: Option<(&'a Holder, usize)>,
    /// The delivery that the write handles. A repeat is not written.
    pub(super) delivery: Option<&'a Delivery>,
    /// Who leases the thread.
    pub(super) leases: Option<&'a Holder>,
}

/// A write that was made.
pub(super) struct Written {
    pub(super) version: Version,
    pub(super) claimed: Vec<Claimed>,
    pub(super) acquired: Option<Acquired>,
}

/// Implements [`countersign_graph::store::Store::commit`].
pub(super) async fn commit(
    store: &RedisStore,
    lease: &Lease,
    expected: Version,
    changes: &Changes,
    then: Then,
    claims: Option<(&Holder, usize)>,
) -> Result<(Version, Vec<Claimed>), Error> {
    debug_assert_eq!(lease.thread, changes.thread, "a lease is only valid for its own thread");
    let (release, wait_until) = match then {
        Then::Keep => (false, None),
        Then::Release => (true, None),
        Then::ReleaseUntil(at) => (true, Some(at.millis())),
    };
    let fence = lease.fence.to_string();
    let lease = LeasePlan { worker: lease.worker.as_str(), fence, expected, release, wait_until };
    let written = write(store, changes, Some(lease), Joined { claims, ..Joined::default() }).await?;
    Ok(written.map(|written| (written.version, written.claimed)).unwrap_or_default())
}

/// Implements [`countersign_graph::store::Store::apply`] and [`countersign_graph::store::Handling::Apply`].
/// Returns `None` if the delivery is a repeat.
pub(super) async fn apply(store: &RedisStore, changes: &Changes, joined: Joined<'_>) -> Result<Option<Written>, Error> {
    debug_assert!(changes.steps.is_empty() && changes.snapshot.is_none(), "a step needs a lease");
    write(store, changes, None, joined).await
}

async fn write(
    store: &RedisStore,
    changes: &Changes,
    lease: Option<LeasePlan<'_>>,
    joined: Joined<'_>,
) -> Result<Option<Written>, Error> {
    let thread = &changes.thread;
    let plan = Plan::new(changes, lease, joined);
    let mut head = store.audit_heads.get(thread).unwrap_or_default();
    for _ in 0..CHAINING_ATTEMPTS {
        let audit = AuditPlan::new(thread, head, changes);
        let call = Call::on_thread(&store.scripts.commit, thread);
        let commit = keys::commit(thread, call.partition(), &changes.commit);
        let call = plan.call(call.key(commit), &audit);
        match CommitAnswer::read(store.link.script(&call).await?)? {
            CommitAnswer::Repeat => return Ok(None),
            CommitAnswer::Written(version, claimed, leased) => {
                if !audit.entries.is_empty() {
                    store.audit_heads.set(thread.clone(), audit.head);
                }
                for change in &changes.actions {
                    let record = &change.record;
                    store.approvals.set(record.approval.clone(), (thread.clone(), record.id.clone()));
                }
                let acquired = match (leased, joined.leases) {
                    // If a message cannot be set aside, the thread is leased all the same, until its lease ends.
                    (Some(leased), Some(holder)) => {
                        Box::pin(read_acquired(store, &holder.worker, thread, leased)).await.ok()
                    }
                    _ => None,
                };
                let claimed = Box::pin(outbox::read_all_claimed(store, thread, claimed)).await;
                return Ok(Some(Written { version, claimed, acquired }));
            }
            CommitAnswer::Fenced => return Err(Error::Fenced(thread.clone())),
            CommitAnswer::Conflict(found) => {
                let expected = plan.lease.as_ref().map_or(found, |lease| lease.expected);
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
    Written(Version, Vec<StoredClaimed>, Option<AcquiredAnswer>),
    Repeat,
    Fenced,
    Conflict(Version),
    Moved(String, Option<Vec<u8>>),
    ChainMoved(AuditHead),
}

impl CommitAnswer {
    fn read(answer: Vec<Value>) -> Result<Self, Error> {
        let mut parts = answer.into_iter();
        let mut next = || parts.next().unwrap_or(Value::Nil);
        match json::answer::<String>(next())?.as_str() {
            "ok" => Ok(Self::Written(json::answer(next())?, json::answer(next())?, json::answer(next())?)),
            "repeat" => Ok(Self::Repeat),
            "fenced" => Ok(Self::Fenced),
            "conflict" => Ok(Self::Conflict(json::answer(next())?)),
            "moved" => Ok(Self::Moved(json::answer(next())?, json::answer(next())?)),
            "chain" => Ok(Self::ChainMoved(read_head(json::answer(next())?, &json::answer::<String>(next())?))),
            other => Err(json::corrupt(format!("a write is `{other}`"))),
        }
    }
}

/// The arguments of the script, apart from the audit trail.
struct Plan<'a> {
    thread: String,
    /// The text that follows the position in [`keys::parked`].
    parked: String,
    steps: Vec<String>,
    snapshot: String,
    joined: Joined<'a>,
    lease: Option<LeasePlan<'a>>,
    acks: &'a [u64],
    inbox_acks: &'a [u64],
    messages: Vec<String>,
    timers: Vec<TimerPlan>,
    actions: Vec<ActionPlan<'a>>,
    outbox: Vec<OutgoingPlan<'a>>,
}

struct LeasePlan<'a> {
    worker: &'a str,
    fence: String,
    expected: Version,
    release: bool,
    wait_until: Option<i64>,
}

struct OutgoingPlan<'a> {
    slot: &'a str,
    nonce: &'a str,
    progress: bool,
    remove: bool,
    not_before: i64,
    body: String,
}

struct TimerPlan {
    name: String,
    due: i64,
    /// Empty if the timer is cleared.
    entry: String,
}

struct ActionPlan<'a> {
    id: &'a str,
    expected: Option<u64>,
    /// The statuses from which it may come, with spaces around each.
    from: String,
    meta: String,
    status: &'static str,
    index: String,
    approval: &'a str,
    record: String,
    labels: Vec<String>,
}

/// What is stored in [`keys::ThreadKey::ActionMeta`].
#[derive(Serialize)]
struct ActionMeta<'a> {
    revision: u64,
    status: &'static str,
    index: &'a str,
    labels: &'a [String],
}

/// What a write appends to the audit trail.
struct AuditPlan {
    after: AuditHead,
    head: AuditHead,
    entries: Vec<String>,
}

impl<'a> Plan<'a> {
    fn new(changes: &'a Changes, lease: Option<LeasePlan<'a>>, joined: Joined<'a>) -> Self {
        Self {
            thread: changes.thread.to_string(),
            parked: keys::parked("", &changes.thread),
            steps: changes.steps.iter().map(StepRecord::json).collect(),
            snapshot: changes.snapshot.as_ref().map(|snapshot| snapshot.text().to_owned()).unwrap_or_default(),
            joined,
            lease,
            acks: &changes.acks,
            inbox_acks: &changes.inbox_acks,
            messages: changes.messages.iter().map(json::write).collect(),
            timers: changes.timers.iter().map(|timer| TimerPlan::new(&changes.thread, timer)).collect(),
            actions: changes.actions.iter().map(ActionPlan::new).collect(),
            outbox: changes.outbox.iter().map(OutgoingPlan::new).collect(),
        }
    }

    /// Adds the arguments to a call, in the order in which the script takes them.
    fn call<'c>(&self, call: Call<'c>, audit: &AuditPlan) -> Call<'c> {
        let call = call.arg(&self.thread).arg(&self.parked).arg(&self.snapshot).arg(REMEMBER_S);
        let call = match self.joined.claims {
            Some((holder, most)) => call.arg(json::micros(holder.ttl)).arg(holder.now.millis()).arg(most),
            None => call.arg("").arg("").arg(""),
        };
        let (at, dedup) =
            self.joined.delivery.map(|delivery| (delivery.at.millis(), &*delivery.dedup)).unwrap_or_default();
        let call = with_holder(call.arg(at), self.joined.leases);
        let call = call.list(dedup, |call, key| call.arg(key.as_str()));
        let call = call.list(&self.steps, |call, step| call.arg(step));
        let call = match &self.lease {
            Some(LeasePlan { worker, fence, expected, release, wait_until }) => {
                let wait_until = wait_until.map(|at| at.to_string()).unwrap_or_default();
                call.arg(*worker).arg(fence).arg(*expected).arg(json::flag(*release)).arg(wait_until)
            }
            None => call.arg("").arg("").arg("").arg("").arg(""),
        };
        let call = call.list(&self.actions, |call, action| {
            let expected = action.expected.map(|revision| revision.to_string()).unwrap_or_default();
            let call = call.arg(action.id).arg(expected).arg(&action.from).arg(&action.meta).arg(action.status);
            let call = call.arg(&action.index).arg(action.approval).arg(&action.record);
            call.list(&action.labels, |call, label| call.arg(label))
        });
        let call =
            call.arg(audit.after.seq).arg(write_head(&audit.after)).arg(audit.head.seq).arg(write_head(&audit.head));
        let call = call.list(&audit.entries, |call, entry| call.arg(entry));
        let call = call.list(self.acks, |call, seq| call.arg(*seq));
        let call = call.list(self.inbox_acks, |call, seq| call.arg(*seq));
        let call = call.list(&self.messages, |call, message| call.arg(message));
        let call = call.list(&self.timers, |call, timer| call.arg(&timer.name).arg(timer.due).arg(&timer.entry));
        call.list(&self.outbox, |call, outgoing| {
            let OutgoingPlan { slot, nonce, progress, remove, not_before, body } = outgoing;
            let call = call.arg(*slot).arg(*nonce).arg(json::flag(*progress)).arg(json::flag(*remove));
            call.arg(*not_before).arg(body)
        })
    }
}

impl<'a> OutgoingPlan<'a> {
    fn new(outgoing: &'a Outgoing) -> Self {
        Self {
            slot: outgoing.slot.as_ref().map(|slot| slot.as_str()).unwrap_or_default(),
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
                Self { name: keys::timer(thread, key), due: due.millis(), entry: json::write(entry) }
            }
            TimerChange::Clear { key } => Self { name: keys::timer(thread, key), due: 0, entry: String::new() },
        }
    }
}

impl<'a> ActionPlan<'a> {
    fn new(change: &'a ActionChange) -> Self {
        let record = &change.record;
        let from = Status::ALL.into_iter().filter(|from| from.may_become(record.status));
        let index = keys::action(record.requested_at.millis(), &record.thread, &record.id);
        let labels: Vec<_> = record.labels().iter().map(Label::to_string).collect();
        let status = record.status.as_str();
        let meta = ActionMeta { revision: record.revision, status, index: &index, labels: &labels };
        Self {
            id: record.id.as_str(),
            expected: change.expected,
            from: from.map(|status| format!(" {status} ")).collect(),
            meta: json::write(&meta),
            status,
            index,
            approval: record.approval.as_str(),
            record: json::write(record),
            labels,
        }
    }
}

impl AuditPlan {
    fn new(thread: &ThreadId, after: AuditHead, changes: &Changes) -> Self {
        let (mut seq, mut hash) = (after.seq, after.hash.clone());
        let mut entries = Vec::with_capacity(changes.audit.len());
        for draft in &changes.audit {
            let entry = AuditEntry::chain(thread, seq + 1, &hash, draft.clone());
            entries.push(json::write(&entry));
            (seq, hash) = (entry.seq, entry.hash);
        }
        let head = match entries.is_empty() {
            true => after.clone(),
            false => after.moved(thread, seq, hash, changes.keys.as_deref()),
        };
        Self { after, head, entries }
    }
}

/// Writes the hash of a head, followed by its seal if it has one. The scripts compare both as one text.
fn write_head(head: &AuditHead) -> String {
    match &head.seal {
        Some(seal) => format!("{} {seal}", head.hash),
        None => head.hash.clone(),
    }
}

/// Reads a head as [`write_head`] wrote it.
pub(super) fn read_head(seq: u64, text: &str) -> AuditHead {
    match text.split_once(' ') {
        Some((hash, seal)) => AuditHead { seq, hash: hash.to_owned(), seal: Some(seal.to_owned()) },
        None => AuditHead { seq, hash: text.to_owned(), seal: None },
    }
}
