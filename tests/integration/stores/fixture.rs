//! What the suite needs of a store under test, and the small things it writes into one.

use std::{sync::Arc, time::Duration};

use countersign::{
    clock::Timestamp,
    graph::{
        action::{ActionRecord, Approver, Evidence, NewRecord, Policy, Scope, Status},
        json::Json,
        keyring::Keyring,
        store::{
            Acquired, ActionChange, AuditDraft, AuditKind, Changes, Claimed, Delivery, Destination, Handling, Holder,
            Ingested, Lease, Outbound, Outgoing, QueuedMessage, Sent, Seq, StepRecord, Store, Then, ThreadFilter,
            ThreadMessage, Version,
        },
    },
    ids::{ActionId, ApprovalId, CommitId, Nonce, Partition, ThreadId, WorkerId},
    reply::{Card, Reply},
};
use serde_json::json;

/// A store of its own for one test.
pub(crate) trait Fixture: Sized + Send + Sync {
    /// An empty store.
    async fn fresh() -> Self;

    /// The store.
    fn store(&self) -> &Arc<dyn Store>;

    /// What to pass as `now`: not before the store's own clock.
    fn now(&self) -> Timestamp;

    /// How long a lease or claim has to be for [`Self::run_out`] to let it run out, and no test to do so by being slow.
    fn ttl(&self) -> Duration;

    /// Lets every lease and claim of [`Self::ttl`] run out.
    async fn run_out(&self);

    /// Lets so much time pass that the store's clock shows another moment.
    async fn a_moment(&self);

    /// The process ends without a word and another opens the same store.
    async fn reopen(self) -> Self;

    /// Puts other bytes where something is stored.
    async fn spoil(&self, place: &Place, with: &[u8]);
}

/// Where something is stored.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// A message of a thread, by its position.
    Mailbox(ThreadId, Seq),
    /// An interaction, by its partition and position.
    Inbox(Partition, Seq),
    /// The body of an outgoing message, by its position.
    Outgoing(ThreadId, Seq),
    /// The record of an action.
    Action(ThreadId, ActionId),
    /// A line of the record, counted from 1.
    Audit(ThreadId, u64),
    /// The step that led to this version: its record.
    Step(ThreadId, u64),
    /// The whole checkpoint.
    Snapshot(ThreadId),
    /// What was set aside and lies under this name.
    Aside(Partition, String),
}

/// Bytes that nothing can read: neither JSON nor UTF-8.
pub(crate) const NONSENSE: &[u8] = b"{\"kind\":\xff";

/// What nearly every test does.
pub(crate) trait Shorthand: Fixture {
    /// Delivers `text` to the bot.
    async fn hears(&self, thread: &ThreadId, text: &str) -> Ingested {
        self.ingest(thread, text, true).await
    }

    /// Delivers `text` that is not for the bot.
    async fn overhears(&self, thread: &ThreadId, text: &str) -> Ingested {
        self.ingest(thread, text, false).await
    }

    /// Delivers `text` under keys made of it.
    async fn ingest(&self, thread: &ThreadId, text: &str, addressed: bool) -> Ingested {
        let keys = [format!("event:{thread}:{text}"), format!("message:{thread}:{text}")];
        let delivery = delivery(thread, text, addressed, &keys, self.now());
        self.store().ingest(&delivery, Handling::Later).await.unwrap().0
    }

    /// Leases whichever thread is ready.
    async fn acquire(&self, worker: &str) -> Option<Acquired> {
        self.store().acquire(&self.holder(worker), None).await.unwrap()
    }

    /// Leases one thread.
    async fn acquire_only(&self, worker: &str, thread: &ThreadId) -> Option<Acquired> {
        self.store().acquire(&self.holder(worker), Some(thread)).await.unwrap()
    }

    /// A worker that takes a lease or a claim for [`Fixture::ttl`].
    fn holder(&self, worker: &str) -> Holder {
        Holder { worker: worker.into(), ttl: self.ttl(), now: self.now() }
    }

    /// Wakes a thread and leases it.
    async fn awake(&self, thread: &ThreadId) -> Acquired {
        self.hears(thread, "wake up").await;
        self.acquire_only("w1", thread).await.expect("it was just woken")
    }

    /// Puts messages into a thread's outbox.
    async fn says(&self, thread: &ThreadId, outgoing: impl IntoIterator<Item = Outgoing>) {
        let changes = Changes { outbox: outgoing.into_iter().collect(), ..changes(thread) };
        self.store().apply(&changes).await.unwrap();
    }

    /// Claims messages of any thread.
    async fn claim(&self, limit: usize) -> Vec<Claimed> {
        self.store().claim_outbox(&Holder::new(sender(), self.ttl(), self.now()), limit, None).await.unwrap()
    }

    /// Claims the next message of the only thread that has one.
    async fn claim_one(&self) -> Option<Claimed> {
        let mut claimed = self.claim(10).await;
        assert!(claimed.len() <= 1, "more than one thread speaks: {claimed:?}");
        claimed.pop()
    }

    /// Writes the changes of a step, and claims nothing. Returns the new version.
    async fn commit(&self, lease: &Lease, expected: Version, changes: &Changes, then: Then) -> Version {
        self.store().commit(lease, expected, changes, then, None).await.unwrap().0
    }

    /// Records the result of sending a message. Returns whether the claim was still valid.
    async fn finish(&self, claimed: &Claimed, sent: &Sent) -> bool {
        self.store().finish_outbox(&[(claimed.clone(), sent.clone())], None).await.unwrap().0[0]
    }

    /// Returns the threads in which nothing has happened since `before` and nothing remains to be done.
    async fn finished(&self, before: Timestamp, limit: usize) -> Vec<ThreadId> {
        let found = self.store().threads(ThreadFilter::FinishedBefore(before), limit).await.unwrap();
        found.into_iter().map(|summary| summary.thread).collect()
    }
}

impl<F: Fixture> Shorthand for F {}

/// A worker that sends.
pub(crate) fn sender() -> WorkerId {
    "sender".into()
}

/// The `n`th thread.
pub(crate) fn thread(n: u32) -> ThreadId {
    ThreadId { team: "T1".into(), channel: "C1".into(), root: format!("17000{n:05}.000100").as_str().into() }
}

/// A message to the bot, or overheard by it.
pub(crate) fn delivery(
    thread: &ThreadId,
    text: &str,
    addressed: bool,
    dedup: &[impl AsRef<str>],
    at: Timestamp,
) -> Delivery {
    Delivery {
        to: Destination::mailbox(thread.clone(), addressed, said(text)),
        dedup: dedup.iter().map(|key| key.as_ref().into()).collect(),
        at,
    }
}

/// What ana said.
pub(crate) fn said(text: &str) -> ThreadMessage {
    ThreadMessage::Said {
        by: "ana".into(),
        text: text.to_owned(),
        ts: "1700000000.000100".into(),
        addressed: true,
        request: None,
    }
}

/// The words of messages.
pub(crate) fn words(messages: &[QueuedMessage]) -> Vec<String> {
    messages
        .iter()
        .map(|message| match &message.message {
            ThreadMessage::Said { text, .. } => text.clone(),
            other => format!("{other:?}"),
        })
        .collect()
}

/// A write that changes nothing, under a name of its own.
pub(crate) fn changes(thread: &ThreadId) -> Changes {
    Changes::new(CommitId::fresh(), thread.clone())
}

/// A step that added `what` to the checkpoint.
pub(crate) fn step(what: &str) -> StepRecord {
    StepRecord {
        format: StepRecord::FORMAT,
        run: "r1".into(),
        node: "gather".to_owned(),
        input: None,
        delta: delta(what),
        next: "respond".to_owned(),
        at: Timestamp(1_700_000_000_000),
        duration_ms: 3,
        usage: None,
        error: None,
        trace: None,
    }
}

/// The difference that [`step`] makes.
pub(crate) fn delta(what: &str) -> Json {
    json!([{ "op": "add", "path": "/state/log/-", "value": what }]).into()
}

/// A line of the record.
pub(crate) fn event(detail: &str) -> AuditDraft {
    AuditDraft {
        at: Timestamp(1_700_000_000_000),
        kind: AuditKind::Asked,
        by: Some("ana".into()),
        action: None,
        detail: json!({ "why": detail }).into(),
        format: AuditDraft::FORMAT,
        salt: serde_json::from_value(json!("5a17".repeat(8))).unwrap(),
    }
}

/// A pending action; `name` also makes its approval and digest.
pub(crate) fn action(thread: &ThreadId, name: &str, requested_at: Timestamp) -> ActionRecord {
    let parameters = json!({ "experiment": name, "status": "enrolling" });
    let preconditions = json!({ "status": "inactive" });
    let policy =
        Policy { approvers: vec![Approver::Channel], own_request: true, needed: 1, typed: true, ..Policy::default() };
    let record = NewRecord {
        id: name.into(),
        approval: approval(thread, name),
        thread: thread.clone(),
        run: "r1".into(),
        name: "update_experiment_status".to_owned(),
        action_version: 1,
        parameters,
        preconditions,
        policy,
        card: card(name),
        slot: format!("card:{name}").as_str().into(),
        requested_by: "ana".into(),
        requested_at,
        expires_at: requested_at + Duration::from_secs(86_400),
        undo: None,
        scope: Scope::default(),
        evidence: Evidence::default(),
    };
    record.signed(&keys())
}

/// The keys of digests and seals.
pub(crate) fn keys() -> Keyring {
    Keyring::new(vec![vec![7; 32]]).unwrap()
}

/// The key in the buttons of the action `name`.
pub(crate) fn approval(thread: &ThreadId, name: &str) -> ApprovalId {
    let random = name.bytes().fold(7_u128, |sum, byte| sum.wrapping_mul(257).wrapping_add(u128::from(byte)));
    ApprovalId::new(thread, random)
}

/// The card of an action.
pub(crate) fn card(name: &str) -> Card {
    Card {
        title: format!("Start “{name}”?"),
        facts: Vec::new(),
        warnings: Vec::new(),
        notes: Vec::new(),
        approve: "Start experiment".to_owned(),
        reject: "Cancel request".to_owned(),
        done: format!("Started “{name}”."),
        irreversible: false,
        editable: false,
    }
}

/// Makes an action.
pub(crate) fn created(record: &ActionRecord) -> ActionChange {
    ActionChange { expected: None, record: record.clone() }
}

/// Moves an action on from `record`.
pub(crate) fn moved(record: &ActionRecord, to: Status) -> ActionChange {
    ActionChange { expected: Some(record.revision), record: record.moved(to).unwrap() }
}

/// An answer, in a slot if `slot` is not empty.
pub(crate) fn reply(slot: &str, words: &str) -> Outgoing {
    outgoing(slot, false, Outbound::Reply { reply: Reply::text(words) })
}

/// A line of progress.
pub(crate) fn progress(slot: &str, text: &str) -> Outgoing {
    outgoing(slot, true, Outbound::Status { text: text.to_owned(), draft: None })
}

/// Takes the message of a slot away.
pub(crate) fn remove(slot: &str) -> Outgoing {
    outgoing(slot, false, Outbound::Remove)
}

/// A message of any kind, to be sent at once, with a nonce of its own.
pub(crate) fn outgoing(slot: &str, progress: bool, body: Outbound) -> Outgoing {
    Outgoing {
        slot: (!slot.is_empty()).then(|| slot.into()),
        nonce: Nonce::fresh(),
        progress,
        not_before: Timestamp(0),
        body,
    }
}

/// The words of a claimed message.
pub(crate) fn spoken(claimed: &Claimed) -> String {
    match &claimed.outgoing.body {
        Outbound::Reply { reply } => reply.words(),
        Outbound::Status { text, .. } => format!("… {text}"),
        Outbound::Remove => "(removed)".to_owned(),
        other => format!("{other:?}"),
    }
}
