//! A session: the work on a thread during one lease.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use countersign_core::{
    cause,
    clock::Timestamp,
    draft::Draft,
    ids::{ActionId, CommitId, Nonce, RunId, Slot, UserId},
    spans,
};
use serde_json::Value;
use tokio::time::Instant;

use super::paused::Paused;
use crate::{
    action::{ActionRecord, Status},
    checkpoint::{Checkpoint, Restored, Written},
    delta,
    digest::Digest,
    engine::Engine,
    indexed::Indexed,
    node::State,
    store::{
        Acquired, ActionKey, AuditDraft, Changes, Error, Lease, Outbound, Outgoing, QueuedMessage, Seq, StepRecord,
        Then, ThreadMessage, Usage, Version,
    },
};

/// The maximum number of steps after which a full checkpoint is stored.
const SNAPSHOT_EVERY: Version = 16;

/// The maximum number of times that a write is repeated if the store isn't answering. Together with
/// the waits of [`STORE_RETRY_DELAY`] this takes less time than a lease.
const STORE_ATTEMPTS: u32 = 4;

/// The maximum time for which a step is held back, to be written with the next one. In this time, a step that only reads or
/// formats ends; a call of a model or of a slow platform takes longer.
const HOLD: Duration = Duration::from_millis(50);

/// The length of the id of a run.
const RUN_ID_CHARS: usize = 32;

/// The wait before each repetition.
const STORE_RETRY_DELAY: Duration = Duration::from_millis(500);

/// A leased thread: the saved state, the changes since, and the unread messages.
pub(super) struct Session<S: State> {
    pub(super) lease: Lease,
    pub(super) checkpoint: Checkpoint<S>,
    /// The messages that the next write acknowledges.
    pub(super) acks: Vec<Seq>,
    /// The input of the next step, for the trace.
    pub(super) input: Option<Value>,
    /// The audit entries that are stored with the next write.
    audit: Vec<AuditDraft>,
    /// The time at which the mailbox was last checked for a “stop”.
    pub(super) listened_at: Option<Timestamp>,
    /// True if the lease was released.
    pub(super) released: bool,
    /// The time at which the status line may appear or change, or `None` before the first step of a
    /// run.
    pub(super) status_due: Option<Timestamp>,
    /// The time at which more of a draft may be shown; `None` if none is shown.
    pub(super) draft_due: Option<Timestamp>,
    /// The draft of the next reply, with the slot of that.
    draft: Option<(Slot, Draft)>,
    /// The decided action in progress. After the decision, only the holder of the lease changes its
    /// status.
    decided: Option<ActionRecord>,
    version: Version,
    /// The checkpoint as it is in the store with the steps that are held back. Each delta is relative to it.
    saved: Written<S>,
    /// The checkpoint as it will be in the store when the last step is saved.
    staged: Written<S>,
    snapshot_version: Version,
    /// The steps that are held back, to be written with the next one.
    held: Option<Held>,
    /// True if the last write was a pause: the full checkpoint was stored, and the lease was released.
    is_paused: bool,
    /// True if the saved checkpoint could not be read.
    anew: bool,
    /// True if the next step must store the full checkpoint, because the saved one could not be
    /// read, or was written by a program whose checkpoints had other fields.
    whole: bool,
    messages: VecDeque<QueuedMessage>,
    /// The position of the newest known message.
    newest_seq: Seq,
}

impl<S: State> Session<S> {
    /// Returns the version of the thread in the store.
    pub(super) fn version(&self) -> Version {
        self.version
    }

    /// Returns the id of the run that the last message begins. It follows from the message and what is stored.
    pub(super) fn run_id(&self) -> RunId {
        let message = self.input.as_ref().map(Value::to_string).unwrap_or_default();
        let begun_by = [&self.lease.thread.to_string(), &self.version.to_string(), &message];
        let digest = Digest::of_texts(&begun_by.map(String::as_str));
        RunId::new(&digest.as_str()[..RUN_ID_CHARS])
    }

    /// Opens a session with the saved checkpoint. If that cannot be read, the session starts from
    /// an empty one, and [`Self::begins_anew`] returns true. Otherwise the thread would never
    /// answer again.
    pub(super) fn open(acquired: Acquired, paused: &Paused<S>) -> Self {
        let Acquired { lease, saved, messages, decided } = acquired;
        let version = saved.version;
        let snapshot_version = version - saved.deltas.len() as Version;
        let whole = saved.snapshot.as_ref().filter(|_| saved.deltas.is_empty());
        let read = match whole.and_then(|snapshot| paused.take(&lease.thread, snapshot)) {
            Some((checkpoint, text)) => Ok(Restored { checkpoint, text, as_saved: true }),
            None => Restored::<S>::read(&saved, &lease.graph),
        };
        let read = read.and_then(|restored| {
            if restored.checkpoint.graph != lease.graph {
                let (found, graph) = (&restored.checkpoint.graph, &lease.graph);
                let what = format!("the checkpoint at version {version} is of the graph `{found}`, not of `{graph}`");
                return Err(Error::Corrupt { what });
            }
            Ok(restored)
        });
        let (Restored { checkpoint, text, as_saved }, anew) = match read {
            Ok(restored) => (restored, false),
            Err(error) => {
                tracing::error!(thread.id = %lease.thread, error = cause::chain(&error), "A checkpoint cannot be read; its thread starts from an empty one");
                let checkpoint = Checkpoint::of(lease.graph.clone());
                (Restored { checkpoint, text: Indexed::null(), as_saved: false }, true)
            }
        };
        let newest_seq = messages.iter().map(|message| message.seq).max().unwrap_or(0);
        let (messages, not_for_us) =
            if checkpoint.turns == 0 { since_addressed(messages) } else { (messages, Vec::new()) };
        Self {
            lease,
            acks: not_for_us,
            input: None,
            audit: Vec::new(),
            listened_at: None,
            released: false,
            status_due: None,
            draft_due: None,
            draft: None,
            decided: decided.map(|decided| *decided),
            version,
            saved: Written::of(&checkpoint, text),
            staged: Written::nothing(),
            checkpoint,
            snapshot_version,
            held: None,
            is_paused: false,
            anew,
            whole: !as_saved,
            newest_seq,
            messages: in_order(messages),
        }
    }

    /// Ends the session. If the thread is left in a pause, its checkpoint is kept.
    pub(super) fn keep_if_paused(mut self, paused: &Paused<S>) {
        if self.is_paused {
            self.checkpoint.state_mut().take_events(); // they are not saved, so no other process would report them
            paused.keep(self.lease.thread, self.checkpoint, self.saved.text);
        }
    }

    /// Returns true if the saved checkpoint could not be read.
    pub(super) fn begins_anew(&self) -> bool {
        self.anew
    }

    /// Takes the draft of the next reply, if one was begun.
    pub(super) fn take_draft(&mut self) -> Option<Draft> {
        let slot = self.checkpoint.reply_slots.slot();
        let draft = self.draft.take().filter(|(of, _)| *of == slot).map(|(_, draft)| draft);
        if draft.is_none() {
            self.draft_due = None;
        }
        draft
    }

    /// Keeps the draft of the next reply.
    pub(super) fn keep_draft(&mut self, draft: Option<Draft>) {
        let slot = self.checkpoint.reply_slots.slot();
        self.draft = draft.map(|draft| (slot, draft));
    }

    /// Removes and returns the next message.
    pub(super) fn next_message(&mut self) -> Option<QueuedMessage> {
        self.messages.pop_front()
    }

    /// Puts back a message for the next turn, so that it is not acknowledged.
    pub(super) fn put_back(&mut self, message: QueuedMessage) {
        self.acks.retain(|seq| *seq != message.seq);
        self.messages.push_front(message);
    }

    /// Returns the position of the newest known message.
    pub(super) fn newest_seq(&self) -> Seq {
        self.newest_seq
    }

    /// Adds messages that arrived in the meantime.
    pub(super) fn add_messages(&mut self, messages: Vec<QueuedMessage>) {
        if let Some(newest) = messages.iter().map(|message| message.seq).max() {
            self.newest_seq = newest;
            self.messages = in_order(self.messages.drain(..).chain(messages).collect());
        }
    }

    /// Returns the author of the first “stop” among the messages, which is not acknowledged.
    pub(super) fn stop_said(&self) -> Option<UserId> {
        self.messages.iter().find_map(|message| match &message.message {
            ThreadMessage::Stop { by, .. } => Some(by.clone()),
            _ => None,
        })
    }

    /// Acknowledges every “stop” among the messages, and the earlier requests that have not been
    /// begun. Returns the author of the first “stop”.
    pub(super) fn stop(&mut self) -> Option<UserId> {
        let mut first = None;
        let mut last = 0;
        for message in &self.messages {
            if let ThreadMessage::Stop { by, .. } = &message.message {
                first.get_or_insert_with(|| by.clone());
                last = last.max(message.seq);
            }
        }
        self.drop_stopped(last);
        first
    }

    /// Acknowledges the messages that a “stop” at this position ends: the “stop” itself, and the
    /// earlier requests that have not been begun. Returns the number of these requests.
    pub(super) fn drop_stopped(&mut self, stop: Seq) -> usize {
        let mut dropped = 0;
        let acks = &mut self.acks;
        self.messages.retain(|message| {
            let ended = match &message.message {
                ThreadMessage::Stop { .. } => true,
                ThreadMessage::Said { .. } => message.seq < stop,
                ThreadMessage::Overheard { .. }
                | ThreadMessage::Decided { .. }
                | ThreadMessage::FollowUp { .. }
                | ThreadMessage::External(_)
                | ThreadMessage::Overdue { .. } => false,
            } && message.seq <= stop;
            if ended {
                acks.push(message.seq);
                dropped += usize::from(matches!(message.message, ThreadMessage::Said { .. }));
            }
            !ended
        });
        dropped
    }

    /// Returns true if any of the known messages is unread.
    pub(super) fn has_messages(&self) -> bool {
        !self.messages.is_empty()
    }

    /// Adds an entry to the audit log, which is stored with the next write.
    pub(super) fn note(&mut self, event: AuditDraft) {
        self.audit.push(event);
    }

    /// Returns a write with the acknowledged messages and the new audit entries.
    pub(super) fn changes(&self) -> Changes {
        let mut changes = Changes::new(CommitId::fresh(), self.lease.thread.clone());
        changes.acks.clone_from(&self.acks);
        changes.audit.clone_from(&self.audit);
        changes
    }

    /// Returns a write with a step: the delta from the saved checkpoint to the current one. A step
    /// counts as saved only when the store has accepted it ([`Engine::save`]), so a step that was
    /// not stored does not affect the next delta.
    pub(super) fn step(&mut self, step: StepInfo<'_>) -> Changes {
        let now = self.saved.next(&self.checkpoint);
        let delta = delta::between(&self.saved.text, &now.text);
        let mut changes = self.changes();
        let version = self.version + self.held_steps() + 1;
        metrics::histogram!("countersign_step_seconds", "node" => step.node.to_owned()).record(step.took.as_secs_f64());
        changes.steps.push(StepRecord {
            format: StepRecord::FORMAT,
            run: self.checkpoint.run.clone().unwrap_or_else(|| "none".into()),
            node: step.node.to_owned(),
            input: self.input.clone(),
            delta,
            next: step.next.to_owned(),
            at: step.began,
            duration_ms: u64::try_from(step.took.as_millis()).unwrap_or(u64::MAX),
            usage: step.usage,
            error: step.error,
            trace: spans::trace_id(),
        });
        if step.pause || self.whole || version - self.snapshot_version >= SNAPSHOT_EVERY {
            changes.snapshot = Some(now.text.json().clone());
        }
        self.staged = now;
        changes
    }

    /// Holds back a step, to be written with the next one, or at the latest [`HOLD`] after the first step that is held
    /// back ([`Self::held_until`]). A step with a snapshot cannot be held back.
    pub(super) fn hold(&mut self, changes: Changes) {
        self.mark_written(&changes, true);
        self.remember_decided(&changes);
        self.held = Some(match self.held.take() {
            Some(Held { changes: earlier, until }) => Held { changes: changes.after(earlier), until },
            None => Held { changes, until: Instant::now() + HOLD },
        });
    }

    /// Returns the time at which the steps that are held back have to be written, if there are any.
    pub(super) fn held_until(&self) -> Option<Instant> {
        self.held.as_ref().map(|held| held.until)
    }

    fn held_steps(&self) -> Version {
        self.held.as_ref().map_or(0, |held| held.changes.steps.len() as Version)
    }

    /// Updates the session after a write was stored or held back, with the last step in it or without.
    fn mark_written(&mut self, changes: &Changes, with_step: bool) {
        if with_step {
            self.saved = std::mem::replace(&mut self.staged, Written::nothing());
            self.input = None;
            (self.anew, self.whole) = (false, false);
        }
        self.acks.clear();
        self.audit.retain(|event| !changes.audit.contains(event));
    }

    fn remember_decided(&mut self, changes: &Changes) {
        let written = changes.actions.iter().map(|change| &change.record);
        if let Some(decided) = written.rev().find(|record| record.status != Status::Pending) {
            self.decided = Some(decided.clone());
        }
    }
}

/// Steps that are held back.
struct Held {
    changes: Changes,
    /// The time at which they have to be written.
    until: Instant,
}

/// The facts about a step other than the state.
pub(super) struct StepInfo<'a> {
    pub(super) node: &'a str,
    pub(super) next: &'a str,
    pub(super) began: Timestamp,
    pub(super) took: Duration,
    pub(super) usage: Option<Usage>,
    pub(super) error: Option<String>,
    /// True if the thread waits after this step, so that the full checkpoint is stored.
    pub(super) pause: bool,
}

/// Creates an outgoing message that may be sent from the time `at` on.
pub(super) fn outgoing(slot: Slot, at: Timestamp, body: Outbound) -> Outgoing {
    let progress = matches!(body, Outbound::Status { .. });
    Outgoing { slot: Some(slot), nonce: Nonce::fresh(), progress, not_before: at, body }
}

impl<S: State> Engine<S> {
    /// Writes the changes. If the store isn't answering, the same write is repeated.
    ///
    /// # Errors
    ///
    /// If the changes could not be written. The session then still matches the store. The checkpoint
    /// keeps the caller's changes, so a caller that continues after an error must restore it first.
    pub(super) async fn save(&self, session: &mut Session<S>, own: Changes, then: Then) -> Result<(), Error> {
        let with_step = !own.steps.is_empty();
        let changes = Arc::new(match &session.held {
            Some(held) => own.after(held.changes.clone()),
            None => own,
        });
        let mut attempt = 0;
        let version = loop {
            match self.step_commit.commit(&session.lease, session.version, &changes, then).await {
                Ok(version) => break version,
                Err(Error::Unavailable(error)) if attempt < STORE_ATTEMPTS => {
                    attempt += 1;
                    tracing::warn!(thread.id = %session.lease.thread, attempt, error = cause::chain(&*error), "The store does not answer");
                    tokio::time::sleep(STORE_RETRY_DELAY).await;
                }
                Err(error) => return Err(error),
            }
        };
        session.version = version;
        if changes.snapshot.is_some() {
            session.snapshot_version = version;
        }
        session.held = None;
        session.is_paused = with_step && changes.snapshot.is_some() && then != Then::Keep;
        session.mark_written(&changes, with_step);
        session.remember_decided(&changes);
        session.released = then != Then::Keep;
        Ok(())
    }

    /// Writes the steps that are held back.
    pub(super) async fn save_held(&self, session: &mut Session<S>) -> Result<(), Error> {
        let nothing = Changes::new(CommitId::fresh(), session.lease.thread.clone());
        let acks = std::mem::take(&mut session.acks);
        self.save(session, nothing, Then::Keep).await?;
        session.acks = acks;
        Ok(())
    }

    /// Returns the action with this id, which was decided.
    pub(super) async fn decided(&self, session: &mut Session<S>, id: &ActionId) -> Result<Option<ActionRecord>, Error> {
        if session.decided.as_ref().is_none_or(|record| record.id != *id) {
            session.decided = self.store.action(ActionKey::Of(&session.lease.thread, id)).await?;
        }
        Ok(session.decided.clone())
    }
}

/// Splits messages into those since the first one addressed to the bot, and the positions of
/// earlier messages between people. The latter were stored only because the first mention of the
/// bot may arrive after the replies to it.
fn since_addressed(messages: Vec<QueuedMessage>) -> (Vec<QueuedMessage>, Vec<Seq>) {
    let sent_at = |message: &QueuedMessage, to_us: bool| match &message.message {
        ThreadMessage::Said { ts, addressed, .. } if *addressed == to_us => Some(ts.clone()),
        _ => None,
    };
    let Some(first) = messages.iter().filter_map(|message| sent_at(message, true)).min() else {
        return (messages, Vec::new());
    };
    let (talk, messages): (Vec<_>, Vec<_>) =
        messages.into_iter().partition(|message| sent_at(message, false).is_some_and(|ts| ts < first));
    (messages, talk.into_iter().map(|message| message.seq).collect())
}

/// Sorts messages: “stop” first, then decisions and events, then what people wrote, in the order of
/// its time stamps regardless of the order of arrival.
fn in_order(mut messages: Vec<QueuedMessage>) -> VecDeque<QueuedMessage> {
    messages.sort_by(|a, b| sort_key(a).cmp(&sort_key(b)));
    messages.into()
}

fn sort_key(message: &QueuedMessage) -> (u8, &str, Seq) {
    match &message.message {
        ThreadMessage::Stop { .. } => (0, "", message.seq),
        ThreadMessage::Decided { .. }
        | ThreadMessage::FollowUp { .. }
        | ThreadMessage::External(_)
        | ThreadMessage::Overdue { .. } => (1, "", message.seq),
        ThreadMessage::Said { ts, .. } | ThreadMessage::Overheard { ts, .. } => (2, ts.as_str(), message.seq),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(seq: Seq, ts: &str) -> QueuedMessage {
        QueuedMessage {
            seq,
            message: ThreadMessage::Said {
                by: "U1".into(),
                text: "hi".into(),
                ts: ts.into(),
                addressed: false,
                request: None,
            },
        }
    }

    #[test]
    fn messages_before_the_first_mention_are_not_for_the_bot() {
        let mut mention = said(3, "20.2");
        let ThreadMessage::Said { addressed, .. } = &mut mention.message else { unreachable!() };
        *addressed = true;
        let (for_us, others) = since_addressed(vec![said(1, "20.1"), said(2, "20.3"), mention]);
        assert_eq!(for_us.iter().map(|message| message.seq).collect::<Vec<_>>(), [2, 3]);
        assert_eq!(others, [1]);
    }

    #[test]
    fn messages_are_ordered_by_time_stamp() {
        let order: Vec<_> =
            in_order(vec![said(1, "20.2"), said(2, "20.1")]).into_iter().map(|message| message.seq).collect();
        assert_eq!(order, [2, 1]);
    }
}
