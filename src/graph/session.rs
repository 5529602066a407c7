//! A leased thread while it is being worked on.

use std::{collections::VecDeque, time::Duration};

use countersign_core::{
    clock::Timestamp,
    ids::{ActionId, CommitId, Nonce, Slot, UserId},
};
use serde_json::Value;

use super::{
    action::{ActionRecord, Status},
    checkpoint::Checkpoint,
    delta,
    engine::Engine,
    node::State,
    store::{
        Acquired, AuditDraft, Changes, Error, Lease, Outbound, Outgoing, QueuedMessage, Seq, StepRecord, Then,
        ThreadMessage, Usage, Version,
    },
};

/// The most steps after which a whole checkpoint is kept.
const SNAPSHOT_EVERY: Version = 16;

/// The number of times that a write is repeated when the store does not answer; with [`STORE_RETRY_DELAY`] less than a
/// lease.
const STORE_ATTEMPTS: u32 = 4;

/// The wait between such repetitions.
const STORE_RETRY_DELAY: Duration = Duration::from_millis(500);

/// A leased thread: the saved state, the changes since, and the unread messages.
pub(super) struct Session<S: State> {
    pub(super) lease: Lease,
    pub(super) checkpoint: Checkpoint<S>,
    /// The messages that the next write acknowledges.
    pub(super) acks: Vec<Seq>,
    /// The input of the next step, for the trace.
    pub(super) input: Option<Value>,
    /// The entries that go into the record with the next write.
    noted: Vec<AuditDraft>,
    /// The time at which the mailbox was last checked for a “stop”.
    pub(super) listened_at: Option<Timestamp>,
    /// True if the lease was given back.
    pub(super) released: bool,
    /// The time at which the status line may appear or change; not known before the first step of a run.
    pub(super) status_due: Option<Timestamp>,
    /// The decided action in progress. Once it is decided, only the holder of the thread moves it.
    decided: Option<ActionRecord>,
    version: Version,
    /// The checkpoint as it is in the store. A difference is always made against this.
    saved: Value,
    /// The checkpoint as it will be in the store once the step that was made last is saved.
    staged: Value,
    snapshot_version: Version,
    /// True if the next step must keep the whole checkpoint, since the saved one cannot be built upon.
    anew: bool,
    messages: VecDeque<QueuedMessage>,
    /// The position of the newest known message.
    newest_seq: Seq,
}

impl<S: State> Session<S> {
    /// Returns the version of the thread in the store.
    pub(super) fn version(&self) -> Version {
        self.version
    }

    /// Reads the saved checkpoint. If it cannot be read, the session begins anew, and [`Self::begins_anew`] is true:
    /// otherwise the thread would be silent for ever.
    pub(super) fn open(acquired: Acquired) -> Self {
        let Acquired { lease, saved, messages } = acquired;
        let version = saved.version;
        let snapshot_version = version - saved.deltas.len() as Version;
        let read = saved.restore().and_then(|value| {
            let checkpoint: Checkpoint<S> = match &value {
                Value::Null => Checkpoint::of(lease.graph.clone()),
                value => serde::Deserialize::deserialize(value).map_err(|error| Error::Corrupt {
                    what: format!("the checkpoint at version {version}: {error}"),
                })?,
            };
            if checkpoint.graph != lease.graph {
                let (found, graph) = (&checkpoint.graph, &lease.graph);
                let what = format!("the checkpoint at version {version} is of the graph `{found}`, not of `{graph}`");
                return Err(Error::Corrupt { what });
            }
            Ok((value, checkpoint))
        });
        let (saved, checkpoint, anew) = match read {
            Ok((value, checkpoint)) => (value, checkpoint, false),
            Err(error) => {
                tracing::error!(thread.id = %lease.thread, error = countersign_core::cause::chain(&error), "A thread cannot be read and begins anew");
                (Value::Null, Checkpoint::of(lease.graph.clone()), true)
            }
        };
        let newest_seq = messages.iter().map(|message| message.seq).max().unwrap_or(0);
        let (messages, overheard) =
            if checkpoint.turns == 0 { since_addressed(messages) } else { (messages, Vec::new()) };
        Self {
            lease,
            checkpoint,
            acks: overheard,
            input: None,
            noted: Vec::new(),
            listened_at: None,
            released: false,
            status_due: None,
            decided: None,
            version,
            saved,
            staged: Value::Null,
            snapshot_version,
            anew,
            newest_seq,
            messages: in_order(messages),
        }
    }

    /// Returns true if the saved checkpoint could not be read.
    pub(super) fn begins_anew(&self) -> bool {
        self.anew
    }

    /// Takes the next message.
    pub(super) fn next_message(&mut self) -> Option<QueuedMessage> {
        self.messages.pop_front()
    }

    /// Puts back a message that was taken up, for the next turn.
    pub(super) fn put_back(&mut self, message: QueuedMessage) {
        self.acks.retain(|seq| *seq != message.seq);
        self.messages.push_front(message);
    }

    /// Returns the position of the newest known message.
    pub(super) fn newest_seq(&self) -> Seq {
        self.newest_seq
    }

    /// Adds messages that arrived meanwhile.
    pub(super) fn add_messages(&mut self, messages: Vec<QueuedMessage>) {
        if let Some(newest) = messages.iter().map(|message| message.seq).max() {
            self.newest_seq = newest;
            self.messages = in_order(self.messages.drain(..).chain(messages).collect());
        }
    }

    /// Takes up every “stop” among the messages, with the messages before it that were not begun. Returns the author of
    /// the first “stop”.
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

    /// Acknowledges the messages ended by a “stop” at this position: the “stop” itself, and earlier ones that were not
    /// begun. Returns the number of the latter.
    pub(super) fn drop_stopped(&mut self, stop: Seq) -> usize {
        let mut said = 0;
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
                said += usize::from(matches!(message.message, ThreadMessage::Said { .. }));
            }
            !ended
        });
        said
    }

    /// Returns true if there are known messages that are unread.
    pub(super) fn has_messages(&self) -> bool {
        !self.messages.is_empty()
    }

    /// Adds an entry to the record, with the next write.
    pub(super) fn note(&mut self, event: AuditDraft) {
        self.noted.push(event);
    }

    /// Begins a write with the acknowledged messages and the noted entries.
    pub(super) fn changes(&self) -> Changes {
        let mut changes = Changes::new(CommitId::fresh(), self.lease.thread.clone());
        changes.acks.clone_from(&self.acks);
        changes.audit.clone_from(&self.noted);
        changes
    }

    /// Begins a write with a step: the difference between the saved checkpoint and the present one. Nothing counts as
    /// saved before the store has it ([`Engine::save`]): a step that was not stored leaves no trace in the next
    /// difference.
    pub(super) fn step(&mut self, step: StepInfo<'_>) -> Changes {
        let now = serde_json::to_value(&self.checkpoint).expect("a checkpoint is plain data");
        let delta = delta::between(&self.saved, &now);
        let mut changes = self.changes();
        let version = self.version + 1;
        changes.step = Some(StepRecord {
            format: StepRecord::FORMAT,
            run: self.checkpoint.run.clone().unwrap_or_else(|| "none".into()),
            node: step.node.to_owned(),
            input: self.input.clone(),
            delta: serde_json::to_value(&delta).expect("a patch is plain data"),
            next: step.next.to_owned(),
            at: step.began,
            duration_ms: u64::try_from(step.took.as_millis()).unwrap_or(u64::MAX),
            usage: step.usage,
            error: step.error,
        });
        if step.pause || self.anew || version - self.snapshot_version >= SNAPSHOT_EVERY {
            changes.snapshot = Some(now.clone());
        }
        self.staged = now;
        changes
    }

    /// Takes over the state that the store has now.
    fn mark_stored(&mut self, changes: &Changes, version: Version) {
        self.version = version;
        if changes.step.is_some() {
            self.saved = std::mem::take(&mut self.staged);
            self.input = None;
            self.anew = false;
        }
        if changes.snapshot.is_some() {
            self.snapshot_version = version;
        }
        self.acks.clear();
        self.noted.retain(|event| !changes.audit.contains(event));
    }
}

/// The facts about a step apart from the state.
pub(super) struct StepInfo<'a> {
    pub(super) node: &'a str,
    pub(super) next: &'a str,
    pub(super) began: Timestamp,
    pub(super) took: Duration,
    pub(super) usage: Option<Usage>,
    pub(super) error: Option<String>,
    /// True if the thread will wait now: the whole checkpoint is kept.
    pub(super) pause: bool,
}

/// Creates a message of ours, to be sent at once.
pub(super) fn outgoing(slot: Slot, at: Timestamp, body: Outbound) -> Outgoing {
    let progress = matches!(body, Outbound::Status { .. });
    Outgoing { slot: Some(slot), nonce: Nonce::fresh(), progress, not_before: at, body }
}

impl<S: State> Engine<S> {
    /// Writes, repeating the same write while the store does not answer.
    ///
    /// # Errors
    ///
    /// Nothing was written, and the session still matches the store. The checkpoint is as the caller has made it: a
    /// caller that continues after an error restores it first.
    pub(super) async fn save(&self, session: &mut Session<S>, changes: Changes, then: Then) -> Result<(), Error> {
        let mut attempt = 0;
        let version = loop {
            match self.store.commit(&session.lease, session.version, &changes, then).await {
                Ok(version) => break version,
                Err(Error::Unavailable(error)) if attempt < STORE_ATTEMPTS => {
                    attempt += 1;
                    tracing::warn!(thread.id = %session.lease.thread, attempt, error = countersign_core::cause::chain(&*error), "The store does not answer");
                    tokio::time::sleep(STORE_RETRY_DELAY).await;
                }
                Err(error) => return Err(error),
            }
        };
        session.mark_stored(&changes, version);
        session.released = then != Then::Keep;
        let mut written = changes.actions.into_iter().map(|change| change.record);
        session.decided = written.rfind(|record| record.status != Status::Pending).or(session.decided.take());
        Ok(())
    }

    /// Returns an action that was decided.
    pub(super) async fn decided(&self, session: &mut Session<S>, id: &ActionId) -> Result<Option<ActionRecord>, Error> {
        if session.decided.as_ref().is_none_or(|record| record.id != *id) {
            session.decided = self.store.action(&session.lease.thread, id).await?;
        }
        Ok(session.decided.clone())
    }
}

/// Splits messages into those from the first addressed to the bot on, and the positions of earlier talk among others,
/// which was kept only because a thread's first mention may arrive after the answers to it.
fn since_addressed(messages: Vec<QueuedMessage>) -> (Vec<QueuedMessage>, Vec<Seq>) {
    let said = |message: &QueuedMessage, to_us: bool| match &message.message {
        ThreadMessage::Said { ts, addressed, .. } if *addressed == to_us => Some(ts.clone()),
        _ => None,
    };
    let Some(first) = messages.iter().filter_map(|message| said(message, true)).min() else {
        return (messages, Vec::new());
    };
    let (talk, messages): (Vec<_>, Vec<_>) =
        messages.into_iter().partition(|message| said(message, false).is_some_and(|ts| ts < first));
    (messages, talk.into_iter().map(|message| message.seq).collect())
}

/// Sorts messages: “stop” first, then decisions and events, then words in the order of their time, whatever order they
/// arrived in.
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
    fn talk_before_the_first_mention_is_not_for_us() {
        let mut mention = said(3, "20.2");
        let ThreadMessage::Said { addressed, .. } = &mut mention.message else { unreachable!() };
        *addressed = true;
        let (heard, talk) = since_addressed(vec![said(1, "20.1"), said(2, "20.3"), mention]);
        assert_eq!(heard.iter().map(|message| message.seq).collect::<Vec<_>>(), [2, 3]);
        assert_eq!(talk, [1]);
    }

    #[test]
    fn what_was_said_first_is_heard_first() {
        let order: Vec<_> = in_order(vec![said(1, "20.2"), said(2, "20.1")]).into_iter().map(|l| l.seq).collect();
        assert_eq!(order, [2, 1]);
    }
}
