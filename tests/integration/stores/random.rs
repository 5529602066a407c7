//! Random operations: whatever happens in whatever order, a store answers as the model does.

use std::{collections::BTreeMap, time::Duration};

use countersign::{
    clock::Timestamp,
    graph::{
        action::{ActionRecord, Status},
        store::{
            Acquired, ActionChange, ActionKey, Changes, Claimed, ClaimedInteraction, Delivery, Destination, Error,
            Handling, Holder, Ingested, Lease, Outgoing, Posted, QueuedMessage, Sent, Settlement, Then, ThreadFilter,
            ThreadMessage, TimerChange, Version,
        },
    },
    ids::{CommitId, ThreadId},
};
use proptest::{
    prelude::*,
    sample::Index,
    test_runner::{Config, TestRunner},
};
use serde_json::json;

use super::{
    fixture::*,
    model::{Claim, Model, Refused, ToldClaim},
    operations::{Op, THREADS, Writes, any_op},
};

/// Runs `cases` sequences of operations, each on a fresh store.
pub(crate) fn agrees_with_the_model<F: Fixture>(cases: u32) {
    let config = Config {
        cases,
        failure_persistence: None,
        max_shrink_iters: 400,
        max_shrink_time: 20_000,
        ..Config::default()
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let result = TestRunner::new(config).run(&prop::collection::vec(any_op(), 1..160), |ops| {
        runtime.block_on(async {
            let store = F::fresh().await;
            let mut world = World::new(&store);
            for op in ops {
                world.run(op).await?;
            }
            world.look().await
        })
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}

/// A store, the model, and what the callers know.
struct World<'a, F> {
    f: &'a F,
    model: Model,
    now: Timestamp,
    names: u64,
    leases: Vec<Lease>,
    seen: BTreeMap<ThreadId, Vec<QueuedMessage>>,
    commits: Vec<(Version, Changes)>,
    applied: Vec<Changes>,
    claimed: Vec<Claimed>,
    /// Those that were claimed with the last write.
    together: Vec<Claimed>,
    entries: Vec<ClaimedInteraction>,
}

impl<'a, F: Fixture> World<'a, F> {
    fn new(f: &'a F) -> Self {
        // Ahead of the store's clock, whatever this test does, and within a day of it.
        let now = f.now() + Duration::from_secs(12 * 3600);
        Self {
            f,
            model: Model::default(),
            now,
            names: 0,
            leases: Vec::new(),
            seen: BTreeMap::new(),
            commits: Vec::new(),
            applied: Vec::new(),
            claimed: Vec::new(),
            together: Vec::new(),
            entries: Vec::new(),
        }
    }

    /// A word that was never used.
    fn name(&mut self) -> String {
        self.names += 1;
        format!("n{}", self.names)
    }

    async fn run(&mut self, op: Op) -> Result<(), TestCaseError> {
        let store = self.f.store();
        match op {
            Op::Ingest { thread: n, addressed, event, message, leases } => {
                let (id, text) = (thread(n), self.name());
                let keys = [format!("event:{n}:{event}"), format!("message:{n}:{message}")];
                let delivery = delivery(&id, &text, addressed, &keys, self.now);
                let holder = self.holder();
                let handling = if leases { Handling::Lease(&holder) } else { Handling::Later };
                let (got, leased) = store.ingest(&delivery, handling).await.unwrap();
                if !self.model.remember(&delivery.dedup) {
                    prop_assert_eq!(got, Ingested::Duplicate);
                } else if self.model.deliver(&id, addressed, said(&text), self.now) {
                    prop_assert!(matches!(got, Ingested::New(_)), "{got:?}");
                } else {
                    prop_assert!(matches!(got, Ingested::Parked(_)), "{got:?}");
                }
                // A store may leave a thread alone to which nothing came.
                if leased.is_some() || leases && matches!(got, Ingested::New(_)) {
                    self.is_leased(leased, Some(id))?;
                }
            }
            Op::IngestInteraction { thread: n, key, claimed } => {
                let entry = json!(self.name());
                let claim = claimed.then(|| ("w1".into(), self.f.ttl()));
                let to = Destination::Inbox { partition: thread(n).partition(), entry: entry.clone(), claim };
                let delivery = Delivery { to, dedup: vec![format!("inbox:{n}:{key}").as_str().into()], at: self.now };
                let got = store.ingest(&delivery, Handling::Later).await.unwrap().0;
                let new = self.model.remember(&delivery.dedup);
                prop_assert_eq!(matches!(got, Ingested::New(_)), new);
                if new {
                    self.model.inbox.push((thread(n), entry, if claimed { Claim::Held } else { Claim::Free }));
                }
            }
            Op::Acquire { thread: only } => self.acquire(only.map(thread)).await?,
            Op::Renew { lease } => {
                let Some((lease, held)) = self.pick(&lease) else { return Ok(()) };
                let got = store.renew(&lease, self.f.ttl()).await;
                prop_assert_eq!(refused(got), if held { Ok(()) } else { Err(Refused::Fenced) });
            }
            Op::Messages { lease, skip } => {
                let Some((lease, held)) = self.pick(&lease) else { return Ok(()) };
                let seen = self.seen.get(&lease.thread).cloned().unwrap_or_default();
                let after = if skip == 0 { 0 } else { seen.get(skip - 1).map_or(0, |message| message.seq) };
                let got = store.messages(&lease.thread, after, Some(&lease)).await;
                if !held {
                    prop_assert_eq!(refused(got), Err(Refused::Fenced));
                    return Ok(());
                }
                let got = got.unwrap();
                let older: Vec<_> =
                    seen.iter().filter(|message| message.seq <= after).map(|l| l.message.clone()).collect();
                let expected: Vec<ThreadMessage> =
                    self.mailbox(&lease.thread).into_iter().filter(|m| !older.contains(m)).collect();
                prop_assert_eq!(mails(&got), expected);
                if after == 0 {
                    self.seen.insert(lease.thread, got);
                }
            }
            Op::Commit { lease, acks, steps, snapshot, wrong, mut writes, then, claims } => {
                let Some((lease, held)) = self.pick(&lease) else { return Ok(()) };
                if wrong {
                    writes.actions.clear();
                }
                let id = lease.thread.clone();
                let mut changes = self.changes(&id, &writes);
                let messages = self.seen.get(&id).cloned().unwrap_or_default();
                let acked = &messages[..acks.min(messages.len())];
                changes.acks = acked.iter().map(|message| message.seq).collect();
                changes.steps.extend((0..steps).map(|_| step(&self.name())));
                changes.snapshot = (snapshot && steps > 0).then(|| json!({ "whole": self.name() }).into());
                let version = self.model.thread(&id).version;
                let expected = if wrong { version + 1 } else { version };
                let then = match then {
                    0 => Then::Keep,
                    1 | 2 => Then::Release,
                    _ => Then::ReleaseUntil(self.now + Duration::from_secs(60)),
                };
                let holder = self.holder();
                let claiming = (claims > 0).then_some((&holder, claims));
                let written = store.commit(&lease, expected, &changes, then, claiming).await;
                let (version, claimed) = match refused(written) {
                    Ok((version, claimed)) => (Ok(version), claimed),
                    Err(refused) => (Err(refused), Vec::new()),
                };
                let outcome = self.model.commit(held, expected, &changes, &mails(acked), then);
                prop_assert_eq!(&version, &outcome);
                if claims > 0 && outcome.is_ok() {
                    // A store may claim fewer.
                    let together = self.model.thread(&id).claim_together(self.now, claimed.len());
                    prop_assert!(claimed.len() <= claims);
                    let nonces = together.into_iter().map(|entry| (entry.attempts, entry.outgoing));
                    let got = claimed.iter().map(|claim| (claim.attempts, claim.outgoing.clone()));
                    prop_assert_eq!(got.collect::<Vec<_>>(), nonces.collect::<Vec<_>>());
                    self.together.clone_from(&claimed);
                    self.claimed.extend(claimed);
                }
                if outcome.is_ok() {
                    self.commits.push((expected, changes));
                }
            }
            Op::RepeatCommit { lease, which } => {
                let Some((lease, held)) = self.pick(&lease) else { return Ok(()) };
                let of_thread: Vec<_> = self.commits.iter().filter(|(_, c)| c.thread == lease.thread).collect();
                if of_thread.is_empty() {
                    return Ok(());
                }
                let (expected, changes) = which.get(&of_thread);
                let got = store.commit(&lease, *expected, changes, Then::Release, None).await;
                let got = refused(got.map(|(version, _)| version));
                prop_assert_eq!(got, self.model.commit(held, *expected, changes, &[], Then::Release));
            }
            Op::Apply { thread: n, inbox_ack, writes } => {
                let mut changes = self.changes(&thread(n), &writes);
                let partition = thread(n).partition();
                let known = self.entries.iter().find(|entry| inbox_ack && entry.partition == partition).cloned();
                changes.inbox_acks = known.iter().map(|entry| entry.seq).collect();
                let got = refused(store.apply(&changes).await);
                let outcome = self.model.apply(&changes);
                prop_assert_eq!(&got, &outcome);
                if outcome.is_ok() {
                    self.model.inbox.retain(|(_, entry, _)| known.as_ref().is_none_or(|known| known.entry != *entry));
                    self.applied.push(changes);
                }
            }
            Op::RepeatApply { which } if !self.applied.is_empty() => {
                let changes = which.get(&self.applied);
                prop_assert_eq!(refused(store.apply(changes).await), Ok(()));
            }
            Op::ClaimOutbox { thread: only } => {
                let only = only.map(thread);
                let worker = sender();
                let got = store
                    .claim_outbox(&Holder::new(worker.clone(), self.f.ttl(), self.now), 100, only.as_ref())
                    .await
                    .unwrap();
                prop_assert_eq!(told(&got), self.model.claim(self.now, only.as_ref()));
                self.claimed.extend(got);
            }
            Op::FinishOutbox { which, sent } if !self.claimed.is_empty() => {
                let claimed = which.get(recent(&self.claimed)).clone();
                let claims_next = sent >= 10;
                let sent = match sent % 10 {
                    0 => Sent::Retry(self.now + Duration::from_secs(60)),
                    1 => Sent::Retry(self.now),
                    2 => Sent::Dropped,
                    3 => Sent::Delivered(None),
                    4 => Sent::Deferred(self.now + Duration::from_secs(60)),
                    5 => Sent::Deferred(self.now),
                    6 | 7 => Sent::Postponed(self.now + Duration::from_secs(if sent == 6 { 60 } else { 0 })),
                    8 => Sent::Failed { reason: "invalid_blocks".to_owned(), at: self.now },
                    _ => Sent::Delivered(Some(Posted::at("C1".into(), self.name().as_str().into()))),
                };
                let (holder, result) = (self.holder(), [(claimed.clone(), sent.clone())]);
                let finished = store.finish_outbox(&result, claims_next.then_some(&holder)).await;
                let (counted, next) = finished.unwrap();
                let nonce = claimed.outgoing.nonce.as_str();
                prop_assert_eq!(counted[0], self.model.thread(&claimed.thread).finish(nonce, claimed.attempts, &sent));
                if claims_next {
                    let next = next.as_slice();
                    prop_assert_eq!(told(next), self.model.claim(self.now, Some(&claimed.thread)));
                    self.claimed.extend_from_slice(next);
                }
            }
            Op::FinishTogether { sent } if !self.together.is_empty() => {
                let claimed = std::mem::take(&mut self.together);
                // After one that is to be tried again, the others are given back.
                let results = |nth: usize| match (sent, nth) {
                    (0..4, 0) => Sent::Retry(self.now + Duration::from_secs(60)),
                    (0..4, _) => Sent::Deferred(self.now),
                    (4..8, 1) => Sent::Retry(self.now),
                    _ => Sent::Delivered(None),
                };
                let sent: Vec<_> = claimed.into_iter().enumerate().map(|(nth, claim)| (claim, results(nth))).collect();
                let (ours, next) = store.finish_outbox(&sent, Some(&self.holder())).await.unwrap();
                let thread = sent[0].0.thread.clone();
                let model = self.model.thread(&thread);
                let finish =
                    |(claim, sent): &(Claimed, Sent)| model.finish(claim.outgoing.nonce.as_str(), claim.attempts, sent);
                prop_assert_eq!(ours, sent.iter().map(finish).collect::<Vec<_>>());
                prop_assert_eq!(told(next.as_slice()), self.model.claim(self.now, Some(&thread)));
                self.claimed.extend(next);
            }
            Op::ClaimInteraction => {
                let got = store.claim_interaction(self.f.ttl(), 1000).await.unwrap();
                let mut expected = Vec::new();
                for (id, entry, claim) in &mut self.model.inbox {
                    if *claim != Claim::Held {
                        *claim = Claim::Held;
                        expected.push((id.partition().number(), entry.to_string()));
                    }
                }
                let mut found: Vec<_> = got.iter().map(|e| (e.partition.number(), e.entry.to_string())).collect();
                expected.sort();
                found.sort();
                prop_assert_eq!(found, expected);
                self.entries.extend(got);
            }
            Op::FinishInteraction { which } if !self.entries.is_empty() => {
                let entry = which.get(&self.entries).clone();
                store.settle_interaction(&entry, Settlement::Done).await.unwrap();
                self.model.inbox.retain(|(_, stored, _)| *stored != entry.entry);
            }
            Op::FireTimers => {
                prop_assert_eq!(store.fire_timers(self.now).await.unwrap(), self.model.fire_timers(self.now));
            }
            Op::Sweep => {
                store.sweep(self.now).await.unwrap();
                self.model.sweep(self.now);
            }
            Op::TimePasses => self.now = self.now + Duration::from_millis(45_001),
            Op::RunOut => {
                self.f.run_out().await;
                self.model.run_out();
            }
            Op::RepeatApply { .. }
            | Op::FinishOutbox { .. }
            | Op::FinishTogether { .. }
            | Op::FinishInteraction { .. } => {}
        }
        Ok(())
    }

    async fn acquire(&mut self, only: Option<ThreadId>) -> Result<(), TestCaseError> {
        let store = self.f.store();
        let got = store.acquire(&Holder::new("w1", self.f.ttl(), self.now), only.as_ref()).await.unwrap();
        self.is_leased(got, only)
    }

    fn holder(&self) -> Holder {
        Holder { worker: "w1".into(), ttl: self.f.ttl(), now: self.now }
    }

    /// Whether this is what leasing any thread, or only this one, comes to.
    fn is_leased(&mut self, got: Option<Acquired>, only: Option<ThreadId>) -> Result<(), TestCaseError> {
        let mut ready = self.model.ready(self.now);
        ready.retain(|id| only.as_ref().is_none_or(|only| only == id));
        let Some(got) = got else {
            prop_assert_eq!(ready, []);
            return Ok(());
        };
        let id = got.lease.thread.clone();
        prop_assert!(ready.contains(&id), "{id} is not ready, only {ready:?}");
        let model = self.model.thread(&id);
        prop_assert!(got.lease.fence > model.fence);
        prop_assert_eq!(got.saved.version, model.version);
        prop_assert_eq!(&got.saved.snapshot, &model.snapshot);
        prop_assert_eq!(&got.saved.deltas, &model.deltas);
        (model.fence, model.lease) = (got.lease.fence, Claim::Held);
        prop_assert_eq!(mails(&got.messages), self.mailbox(&id));
        self.seen.insert(id, got.messages);
        self.leases.push(got.lease);
        Ok(())
    }

    /// One of the leases there ever were, and whether it is good. Not one that ran out and was not taken over: a store
    /// may take such a one for good or not.
    fn pick(&mut self, which: &Index) -> Option<(Lease, bool)> {
        if self.leases.is_empty() {
            return None;
        }
        let lease = which.get(recent(&self.leases)).clone();
        let thread = self.model.thread(&lease.thread);
        match (thread.fence == lease.fence, thread.lease) {
            (true, Claim::RanOut) => None,
            (newest, claim) => Some((lease, newest && claim == Claim::Held)),
        }
    }

    fn mailbox(&mut self, thread: &ThreadId) -> Vec<ThreadMessage> {
        self.model.thread(thread).mailbox.iter().map(|(message, _)| message.clone()).collect()
    }

    fn changes(&mut self, id: &ThreadId, writes: &Writes) -> Changes {
        let mut changes = Changes::new(CommitId::new(self.name()), id.clone());
        changes.messages = (0..writes.message).map(|_| said(&self.name())).collect();
        changes.outbox = writes.outbox.iter().map(|what| self.outgoing(*what)).collect();
        changes.audit = (0..writes.audit).map(|_| event(&self.name())).collect();
        changes.timers.extend(writes.timer.map(|(key, due)| {
            let key = format!("timer:{key}");
            if due == 0 {
                return TimerChange::Clear { key };
            }
            let due = self.now + Duration::from_secs(u64::from(due - 1) * 30);
            TimerChange::Set { key, due, entry: json!(self.name()) }
        }));
        let actions = writes.actions.iter().map(|what| self.action(id, *what));
        changes.actions = actions.collect();
        changes
    }

    fn outgoing(&mut self, (slot, kind): (u8, u8)) -> Outgoing {
        let (slot, words) = (["", "turn:1", "turn:2"][usize::from(slot)], self.name());
        match kind {
            0 | 1 => reply(slot, &words),
            2 => Outgoing { not_before: self.now + Duration::from_secs(60), ..reply(slot, &words) },
            3 if !slot.is_empty() => remove(slot),
            _ => progress(slot, &words),
        }
    }

    fn action(&mut self, id: &ThreadId, (name, to, fitting): (u8, Status, bool)) -> ActionChange {
        let name = format!("a{name}");
        let Some(stored) = self.model.thread(id).actions.get(&name.as_str().into()).cloned() else {
            let expected = (!fitting).then_some(1);
            return ActionChange { expected, record: action(id, &name, self.now) };
        };
        // A fitting move follows the table where it can; the others are up to chance.
        let next = Status::ALL.into_iter().find(|next| fitting && stored.status.may_become(*next)).unwrap_or(to);
        let expected = if fitting { Some(stored.revision) } else { Some(stored.revision + u64::from(name == "a0")) };
        ActionChange { expected, record: ActionRecord { status: next, revision: stored.revision + 1, ..stored } }
    }

    /// Whether all that can be read is as it should be.
    async fn look(&mut self) -> Result<(), TestCaseError> {
        let store = self.f.store();
        let mut ours = Vec::new();
        for n in 0..THREADS {
            let id = thread(n);
            let model = self.model.thread(&id);
            let saved = store.load(&id).await.unwrap();
            let expected = model.known.then(|| (model.version, model.snapshot.clone(), model.deltas.clone()));
            prop_assert_eq!(saved.map(|saved| (saved.version, saved.snapshot, saved.deltas)), expected);
            prop_assert_eq!(store.steps(&id, 0, 1000).await.unwrap().len(), model.steps);
            let record = store.audit(&id).await.unwrap().entries;
            let mut previous = "";
            for entry in &record {
                prop_assert!(entry.holds(&id, previous));
                previous = &entry.hash;
            }
            prop_assert_eq!(record.iter().map(|entry| entry.event.clone()).collect::<Vec<_>>(), model.audit.clone());
            for name in ["a0", "a1"] {
                let expected = model.actions.get(&name.into()).cloned();
                prop_assert_eq!(store.action(ActionKey::Of(&id, &name.into())).await.unwrap(), expected.clone());
                prop_assert_eq!(store.action(ActionKey::ByApproval(&approval(&id, name))).await.unwrap(), expected);
            }
            for slot in ["turn:1", "turn:2"] {
                let expected = model.slots.get(&slot.into()).cloned();
                prop_assert_eq!(store.posted(&id, &slot.into()).await.unwrap(), expected);
            }
            if model.known {
                ours.push((id, model.version));
            }
        }
        let mut listed: Vec<_> = store
            .threads(ThreadFilter::All, 100)
            .await
            .unwrap()
            .into_iter()
            .map(|summary| (summary.thread, summary.version))
            .collect();
        listed.sort();
        prop_assert_eq!(listed, ours);
        Ok(())
    }
}

/// The last few: older ones are stale in the same way.
fn recent<T>(all: &[T]) -> &[T] {
    &all[all.len().saturating_sub(3)..]
}

fn mails(messages: &[QueuedMessage]) -> Vec<ThreadMessage> {
    messages.iter().map(|message| message.message.clone()).collect()
}

fn refused<T>(result: Result<T, Error>) -> Result<T, Refused> {
    result.map_err(|error| match error {
        Error::Fenced(_) => Refused::Fenced,
        Error::VersionConflict { found, .. } => Refused::Version(found),
        Error::ActionMoved { current, .. } => Refused::Moved(current),
        error => panic!("{error:?}"),
    })
}

/// What the store tells of claimed messages, in the order of their threads.
fn told(claimed: &[Claimed]) -> Vec<ToldClaim> {
    let told = |c: &Claimed| (c.thread.clone(), c.attempts, c.posted.clone(), c.outgoing.clone());
    let mut told: Vec<_> = claimed.iter().map(told).collect();
    told.sort_by(|a, b| a.0.cmp(&b.0));
    told
}
