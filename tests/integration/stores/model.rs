//! What a store does, as plainly as it can be said: vectors and maps, no clock, nothing atomic.
//!
//! The random tests compare a store with it. Times are the `now` of the caller, which stays ahead of every store's own
//! clock, so message makes a thread ready at time zero.

use std::collections::{BTreeMap, BTreeSet};

use countersign::{
    clock::Timestamp,
    graph::{
        action::ActionRecord,
        json::Json,
        store::{
            ActionChange, AuditDraft, Changes, Outbound, Outgoing, Posted, Sent, TRIED_OFTEN, Then, ThreadMessage,
            TimerChange, Version,
        },
    },
    ids::{ActionId, CommitId, DedupKey, Slot, ThreadId},
};
use serde_json::Value;

/// Why a write was refused.
#[derive(Debug, PartialEq)]
pub(crate) enum Refused {
    Fenced,
    Version(Version),
    Moved(Option<Box<ActionRecord>>),
}

/// A claimed message: its thread, the number of earlier claims, where it was posted, and the message.
pub(crate) type ToldClaim = (ThreadId, u32, Option<Posted>, Outgoing);

/// A store in memory.
#[derive(Debug, Default)]
pub(crate) struct Model {
    pub(crate) threads: BTreeMap<ThreadId, Thread>,
    pub(crate) inbox: Vec<(ThreadId, Value, Claim)>,
    keys: BTreeSet<DedupKey>,
}

/// A thread in memory.
#[derive(Debug, Default)]
pub(crate) struct Thread {
    pub(crate) known: bool,
    pub(crate) mailbox: Vec<(ThreadMessage, Timestamp)>,
    pub(crate) ready_at: Option<Timestamp>,
    pub(crate) lease: Claim,
    pub(crate) fence: u64,
    pub(crate) version: Version,
    pub(crate) snapshot: Option<Json>,
    pub(crate) deltas: Vec<Json>,
    pub(crate) steps: usize,
    pub(crate) actions: BTreeMap<ActionId, ActionRecord>,
    pub(crate) audit: Vec<AuditDraft>,
    pub(crate) outbox: Vec<Entry>,
    /// The nonces of the messages that are claimed.
    pub(crate) in_flight: BTreeSet<String>,
    pub(crate) slots: BTreeMap<Slot, Posted>,
    pub(crate) timers: BTreeMap<String, (Timestamp, Value)>,
    commits: BTreeMap<CommitId, Version>,
}

/// A message in memory, known by its nonce.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) attempts: u32,
    pub(crate) outgoing: Outgoing,
    /// When it was to be sent at first; it was put off if that is no longer its time.
    since: Timestamp,
}

/// Whether something is held.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Claim {
    #[default]
    Free,
    Held,
    RanOut,
}

impl Model {
    /// Whether the keys were new; they are remembered if they were.
    pub(crate) fn remember(&mut self, keys: &[DedupKey]) -> bool {
        let new = keys.iter().all(|key| !self.keys.contains(key));
        if new {
            self.keys.extend(keys.iter().cloned());
        }
        new
    }

    pub(crate) fn thread(&mut self, thread: &ThreadId) -> &mut Thread {
        self.threads.entry(thread.clone()).or_default()
    }

    /// Whether the message wakes its thread.
    pub(crate) fn deliver(
        &mut self,
        thread: &ThreadId,
        addressed: bool,
        message: ThreadMessage,
        at: Timestamp,
    ) -> bool {
        let thread = self.thread(thread);
        thread.mailbox.push((message, at));
        thread.known |= addressed;
        if thread.known {
            thread.ready_at = Some(Timestamp(0));
        }
        thread.known
    }

    pub(crate) fn ready(&self, now: Timestamp) -> Vec<ThreadId> {
        let ready = |thread: &Thread| thread.lease != Claim::Held && thread.ready_at.is_some_and(|at| at <= now);
        self.threads.iter().filter(|(_, thread)| ready(thread)).map(|(id, _)| id.clone()).collect()
    }

    /// A write under the newest lease (`held`) or an older one.
    pub(crate) fn commit(
        &mut self,
        held: bool,
        expected: Version,
        changes: &Changes,
        acked: &[ThreadMessage],
        then: Then,
    ) -> Result<Version, Refused> {
        let thread = self.thread(&changes.thread);
        if let Some(version) = thread.commits.get(&changes.commit) {
            return Ok(*version);
        }
        if !held {
            return Err(Refused::Fenced);
        }
        if thread.version != expected {
            return Err(Refused::Version(thread.version));
        }
        let version = expected + changes.steps.len() as u64;
        self.write(changes, acked, version)?;
        let thread = self.thread(&changes.thread);
        for step in &changes.steps {
            thread.steps += 1;
            thread.deltas.push(step.delta.clone());
        }
        if let Some(snapshot) = &changes.snapshot {
            thread.snapshot = Some(snapshot.clone());
            thread.deltas.clear();
        }
        thread.version = version;
        thread.ready_at = match then {
            Then::Keep => return Ok(version),
            Then::Release if thread.mailbox.is_empty() => None,
            Then::Release => Some(Timestamp(0)),
            Then::ReleaseUntil(at) => Some(at),
        };
        thread.lease = Claim::Free;
        Ok(version)
    }

    pub(crate) fn apply(&mut self, changes: &Changes) -> Result<(), Refused> {
        let thread = self.thread(&changes.thread);
        if thread.commits.contains_key(&changes.commit) {
            return Ok(());
        }
        let version = thread.version;
        self.write(changes, &[], version)
    }

    fn write(&mut self, changes: &Changes, acked: &[ThreadMessage], version: Version) -> Result<(), Refused> {
        let thread = self.thread(&changes.thread);
        let before = thread.actions.clone();
        for change in &changes.actions {
            if let Err(refused) = thread.change(change) {
                thread.actions = before;
                return Err(refused);
            }
        }
        thread.mailbox.retain(|(message, _)| !acked.contains(message));
        for message in &changes.messages {
            thread.mailbox.push((message.clone(), Timestamp(0)));
            thread.known = true;
            thread.ready_at = Some(Timestamp(0));
        }
        for outgoing in &changes.outbox {
            thread.say(outgoing);
        }
        for timer in &changes.timers {
            match timer {
                TimerChange::Set { key, due, entry } => {
                    drop(thread.timers.insert(key.clone(), (*due, entry.clone())));
                }
                TimerChange::Clear { key } => drop(thread.timers.remove(key)),
            }
        }
        thread.audit.extend(changes.audit.iter().cloned());
        thread.commits.insert(changes.commit.clone(), version);
        Ok(())
    }

    /// Claims the next message of each thread, or of one.
    pub(crate) fn claim(&mut self, now: Timestamp, only: Option<&ThreadId>) -> Vec<ToldClaim> {
        let mut claimed = Vec::new();
        for (id, thread) in &mut self.threads {
            if only.is_none_or(|only| only == id)
                && let Some(entry) = thread.claim(now)
            {
                let posted = entry.outgoing.slot.as_ref().and_then(|slot| thread.slots.get(slot)).cloned();
                claimed.push((id.clone(), entry.attempts, posted, entry.outgoing));
            }
        }
        claimed
    }

    pub(crate) fn fire_timers(&mut self, now: Timestamp) -> usize {
        let mut fired = Vec::new();
        for (id, thread) in &mut self.threads {
            let due: Vec<String> =
                thread.timers.iter().filter(|(_, (at, _))| *at <= now).map(|(key, _)| key.clone()).collect();
            fired.extend(due.iter().filter_map(|key| thread.timers.remove(key)).map(|(_, entry)| (id.clone(), entry)));
        }
        let count = fired.len();
        self.inbox.extend(fired.into_iter().map(|(id, entry)| (id, entry, Claim::Free)));
        count
    }

    /// Forgets what was overheard more than two minutes ago.
    pub(crate) fn sweep(&mut self, now: Timestamp) {
        for thread in self.threads.values_mut().filter(|thread| !thread.known) {
            thread.mailbox.retain(|(_, at)| at.0 >= now.0 - 120_000);
        }
    }

    /// Every lease and claim runs out.
    pub(crate) fn run_out(&mut self) {
        let threads = self.threads.values_mut().map(|thread| {
            thread.in_flight.clear();
            &mut thread.lease
        });
        for claim in threads.chain(self.inbox.iter_mut().map(|(_, _, claim)| claim)) {
            if *claim == Claim::Held {
                *claim = Claim::RanOut;
            }
        }
    }
}

impl Thread {
    fn change(&mut self, change: &ActionChange) -> Result<(), Refused> {
        let stored = self.actions.get(&change.record.id);
        let legal = match (stored, change.expected) {
            (None, None) => true,
            (Some(stored), Some(expected)) => {
                stored.revision == expected && stored.status.may_become(change.record.status)
            }
            _ => false,
        };
        if !legal {
            return Err(Refused::Moved(stored.cloned().map(Box::new)));
        }
        self.actions.insert(change.record.id.clone(), change.record.clone());
        Ok(())
    }

    fn say(&mut self, new: &Outgoing) {
        let untried = |entry: &Entry| entry.attempts == 0;
        if let Some(slot) = &new.slot {
            self.outbox.retain(|entry| !(entry.outgoing.progress && untried(entry)));
            let same = |entry: &Entry| entry.outgoing.slot.as_ref() == Some(slot);
            let tried = self.outbox.iter().any(|entry| same(entry) && !untried(entry));
            if new.body == Outbound::Remove && !self.slots.contains_key(slot) && !tried {
                self.outbox.retain(|entry| !same(entry));
                return;
            }
            let waits = |entry: &Entry| same(entry) && untried(entry);
            if let Some(first) = self.outbox.iter().position(waits) {
                let Entry { outgoing: waiting, since, .. } = &mut self.outbox[first];
                waiting.body = new.body.clone();
                if waiting.not_before == *since {
                    *since = (*since).min(new.not_before);
                    waiting.not_before = *since;
                }
                let first = self.outbox[first].outgoing.nonce.clone();
                self.outbox.retain(|entry| !waits(entry) || entry.outgoing.nonce == first);
                return;
            }
        }
        self.outbox.push(Entry { attempts: 0, outgoing: new.clone(), since: new.not_before });
    }

    /// Claims the next message, if one may go.
    pub(crate) fn claim(&mut self, now: Timestamp) -> Option<Entry> {
        if !self.in_flight.is_empty() {
            return None;
        }
        let next = self.candidates().into_iter().find(|next| self.outbox[*next].outgoing.not_before <= now)?;
        let entry = &mut self.outbox[next];
        let claimed = entry.clone();
        entry.attempts += 1;
        self.in_flight.insert(entry.outgoing.nonce.to_string());
        Some(claimed)
    }

    /// Claims the next message and, if none of the outbox was tried, those that follow it, at most `most`.
    pub(crate) fn claim_together(&mut self, now: Timestamp, most: usize) -> Vec<Entry> {
        let before: Vec<u32> = self.outbox.iter().map(|entry| entry.attempts).collect();
        let Some(first) = self.claim(now) else { return Vec::new() };
        let at = self.outbox.iter().position(|entry| entry.outgoing.nonce == first.outgoing.nonce).unwrap();
        let (is_progress, mut claimed) = (first.outgoing.progress, vec![first]);
        for (nth, entry) in self.outbox.iter_mut().enumerate().skip(at + 1) {
            let is_next = !entry.outgoing.progress && entry.outgoing.not_before <= now;
            if claimed.len() >= most || is_progress || !is_next || before[..=nth].iter().any(|tried| *tried > 0) {
                break;
            }
            claimed.push(entry.clone());
            entry.attempts += 1;
            self.in_flight.insert(entry.outgoing.nonce.to_string());
        }
        claimed
    }

    /// What may go next, in order of preference: what goes in order, then what was tried often.
    fn candidates(&self) -> Vec<usize> {
        let often = |entry: &Entry| entry.attempts >= TRIED_OFTEN;
        let free = |at: &usize| {
            let slot = &self.outbox[*at].outgoing.slot;
            slot.is_none() || !self.outbox[..*at].iter().any(|entry| often(entry) && entry.outgoing.slot == *slot)
        };
        let (mut tried_often, in_order): (Vec<usize>, Vec<usize>) =
            (0..self.outbox.len()).filter(free).partition(|at| often(&self.outbox[*at]));
        tried_often.sort_by_key(|at| (self.outbox[*at].outgoing.not_before, *at));
        let solid = in_order.iter().copied().find(|at| !self.outbox[*at].outgoing.progress);
        let first = solid.map(|solid| {
            let slot = &self.outbox[solid].outgoing.slot;
            let stands_before = |entry: &Entry| {
                entry.outgoing.progress && entry.attempts > 0 && slot.is_some() && entry.outgoing.slot == *slot
            };
            in_order.iter().copied().find(|at| *at < solid && stands_before(&self.outbox[*at])).unwrap_or(solid)
        });
        first.or(in_order.first().copied()).into_iter().chain(tried_often).collect()
    }

    /// Whether the claim, of which the message had been tried `attempts` times before, still counts.
    pub(crate) fn finish(&mut self, nonce: &str, attempts: u32, sent: &Sent) -> bool {
        let Some(at) = self.outbox.iter().position(|entry| entry.outgoing.nonce.as_str() == nonce) else {
            return false;
        };
        let is_ours = self.outbox[at].attempts == attempts + 1;
        if is_ours || matches!(sent, Sent::Delivered(_)) {
            self.record(nonce, at, sent);
        }
        is_ours
    }

    fn record(&mut self, nonce: &str, at: usize, sent: &Sent) {
        self.in_flight.remove(nonce);
        if let Sent::Retry(time) = sent {
            self.outbox[at].outgoing.not_before = *time;
            return;
        }
        if let Sent::Deferred(time) = sent {
            self.outbox[at].outgoing.not_before = *time;
            self.outbox[at].attempts = self.outbox[at].attempts.saturating_sub(1);
            let newer = self.outbox[at + 1..].iter().any(|later| later.outgoing.slot.is_some());
            if self.outbox[at].attempts == 0 && self.outbox[at].outgoing.progress && newer {
                self.outbox.remove(at); // as if it had been untried when the newer one was said
            }
            return;
        }
        if let Sent::Postponed(time) = sent {
            self.outbox[at].outgoing.not_before = *time;
            self.outbox[at].attempts = self.outbox[at].attempts.max(TRIED_OFTEN);
            return;
        }
        let outgoing = self.outbox.remove(at).outgoing;
        match (outgoing.slot, sent) {
            (Some(slot), Sent::Delivered(_)) if outgoing.body == Outbound::Remove => drop(self.slots.remove(&slot)),
            (Some(slot), Sent::Delivered(Some(posted))) => drop(self.slots.insert(slot, posted.clone())),
            _ => {}
        }
    }
}
