//! External events, from systems other than Slack: the event that an action waits for, or an input
//! for the graph.

use std::time::Duration;

use countersign_core::{
    clock::Timestamp,
    ids::{ActionId, Slot},
    reply::{Asked, Reply, Text},
};
use serde_json::json;

use super::{
    batches::NOTHING_IN_FLIGHT,
    perform::{Attempt, illegal, so_far},
    session::{Session, StepInfo, outgoing},
};
use crate::{
    action::{ActionRecord, Awaited, Progress, Status, Wait, WaitEnd},
    checkpoint::{Checkpoint, Cursor, ReplySlots, Suspended},
    digest::Digest,
    engine::{AwaitedEvent, Engine, LeaseState},
    node::State,
    store::{ActionChange, AuditDraft, AuditKind, Error, External, Outbound, QueuedMessage, TimerChange},
};

/// The name of the trace step for an event that arrived.
const EXTERNAL: &str = "external";

/// The name of the trace step for a wait that ended without its event.
const OVERDUE: &str = "overdue";

/// The name of the trace step for carrying out an action.
const EXECUTE: &str = "execute";

impl<S: State> Checkpoint<S> {
    /// Returns the action that waits for this event, if there is one.
    fn waiting_for(&self, arrived: &External) -> Option<ActionId> {
        let matches = |suspended: &&Suspended| {
            suspended.waits_for.as_ref().is_some_and(|(source, key)| source == arrived.source() && key == arrived.key())
        };
        self.suspended.values().find(matches).map(|suspended| suspended.action.clone())
    }

    /// Returns the events that actions wait for.
    pub(super) fn awaited_events(&self) -> Vec<AwaitedEvent> {
        let awaited = |suspended: &Suspended| {
            let (source, key) = suspended.waits_for.clone()?;
            Some(AwaitedEvent { action: suspended.action.clone(), source, key })
        };
        self.suspended.values().filter_map(awaited).collect()
    }

    /// Returns an action that waits for an event, if there is one.
    pub(super) fn waiting(&self) -> Option<ActionId> {
        let mut waiting = self.suspended.values().filter(|suspended| suspended.waits_for.is_some());
        waiting.next().map(|suspended| suspended.action.clone())
    }
}

impl<S: State> Engine<S> {
    /// Handles an event: the action that waits for it continues, or else the graph receives it. If
    /// neither accepts it, only a trace step is saved.
    pub(super) async fn take_external(&self, session: &mut Session<S>, arrived: External) -> Result<LeaseState, Error> {
        let now = self.clock.now();
        let (source, key) = (arrived.source().to_owned(), arrived.key().to_owned());
        session.input = Some(json!({ "kind": EXTERNAL, "source": source, "key": key }));
        if let Some(action) = session.checkpoint.waiting_for(&arrived) {
            session.note(AuditDraft { action: Some(action.clone()), ..arrival(&arrived, now) });
            let end = WaitEnd::Arrived(arrived.into_body());
            return self.end_wait(session, &action, Some(end), EXTERNAL).await;
        }
        if arrived.is_of_unknown_origin() || !session.checkpoint.state_mut().begin_with(&arrived, now) {
            tracing::info!(thread.id = %session.lease.thread, source, "An external event arrived that nothing waits for");
            return self.save_empty_step(session, EXTERNAL).await;
        }
        session.note(arrival(&arrived, now));
        self.begin_run(session);
        Ok(LeaseState::Held)
    }

    /// Ends the wait of an action whose deadline has passed.
    pub(super) async fn take_overdue(
        &self,
        session: &mut Session<S>,
        action: &ActionId,
        until: Timestamp,
    ) -> Result<LeaseState, Error> {
        let record = self.decided(session, action).await?;
        session.input = Some(json!({ "kind": OVERDUE, "action": action }));
        if record.and_then(|record| record.waits).is_some_and(|wait| wait.until != until) {
            return self.save_empty_step(session, OVERDUE).await; // the deadline of an earlier wait
        }
        self.end_wait(session, action, Some(WaitEnd::Overdue), OVERDUE).await
    }

    /// Wakes a waiting action after “stop”, so that it continues and reads the message.
    pub(super) async fn wake_to_stop(
        &self,
        session: &mut Session<S>,
        message: QueuedMessage,
        action: &ActionId,
    ) -> Result<LeaseState, Error> {
        session.put_back(message);
        self.end_wait(session, action, None, EXTERNAL).await
    }

    /// Begins a run at the graph's start node. If the run is begun again after a crash, because none of its steps was
    /// stored, it has the same id, so what it has spent of a standing approval is found.
    pub(super) fn begin_run(&self, session: &mut Session<S>) {
        let run = session.run_id();
        let checkpoint = &mut session.checkpoint;
        checkpoint.turns += 1;
        checkpoint.run = Some(run);
        checkpoint.reply_slots = ReplySlots::of(format!("turn:{}", checkpoint.turns));
        checkpoint.cursor = Cursor::At { node: self.graph.start().to_owned(), attempt: 0, ended: None };
        session.status_due = None;
    }

    /// Saves an action as waiting and releases everything it holds. The turn that requested it is
    /// saved unchanged, and the thread continues with other messages.
    pub(super) async fn wait_for(
        &self,
        session: &mut Session<S>,
        record: &ActionRecord,
        attempt: Attempt<'_>,
        progress: Progress,
        (awaited, asks, until): (Awaited, Option<Asked>, Timestamp),
    ) -> Result<LeaseState, Error> {
        let now = self.clock.now();
        let Awaited { source, key, within: _ } = awaited;
        // A wait that goes on after it was looked after is neither told nor recorded again.
        let goes_on = record.waits.as_ref().is_some_and(|wait| wait.source == source && wait.key == key);
        let mut waiting = record.moved(Status::Intent).map_err(illegal)?;
        waiting.progress = Some(progress);
        waiting.progress_at = Some(now);
        waiting.interrupted_at = Some(NOTHING_IN_FLIGHT);
        waiting.waits = Some(Wait { source: source.clone(), key: key.clone(), until, end: None, asks: asks.clone() });
        tracing::info!(action.id = %record.id, source, %until, "An action waits for an event");

        let mut changes = session.changes();
        let mut detail = so_far(&waiting);
        detail["source"] = json!(source);
        detail["key"] = json!(key);
        detail["until"] = json!(until);
        if !goes_on {
            changes.audit.push(waiting.event(AuditKind::Waits, now, None, detail));
        }
        changes.timers.push(TimerChange::Set {
            key: waiting.waiting_timer(),
            due: until,
            entry: json!({ "kind": OVERDUE, "thread": waiting.thread, "action": waiting.id, "until": until }),
        });
        changes.outbox.push(outgoing(session.checkpoint.reply_slots.slot(), now, Outbound::Remove));
        if !goes_on {
            let card = Outbound::Card { card: waiting.card.clone(), state: waiting.card_state() };
            changes.outbox.push(outgoing(waiting.slot.clone(), now, card));
        }
        if let Some(asked) = asks.filter(|_| !goes_on) {
            // Editing a card notifies nobody, so the question is also posted.
            let text = Text::new().person(waiting.requested_by.clone()).plain(" ").join(asked.text);
            let reply = Reply::text(text).hint("Answer it with the buttons on the card above.");
            let slot = Slot::new(format!("asks:{}:{key}", waiting.id));
            changes.outbox.push(outgoing(slot, now, Outbound::Reply { reply }));
        }
        let suspended = Suspended {
            action: waiting.id.clone(),
            run: session.checkpoint.run.clone().unwrap_or_else(|| "none".into()),
            node: attempt.node.to_owned(),
            turn: session.checkpoint.state.suspend(),
            waits_for: Some((source, key)),
        };
        session.checkpoint.suspended.insert(waiting.question().clone(), suspended);
        session.checkpoint.cursor = Cursor::Idle;
        changes.actions.push(ActionChange { expected: Some(record.revision), record: waiting });
        let took = now.since(attempt.began);
        let info = StepInfo {
            node: EXECUTE,
            next: "await",
            began: attempt.began,
            took,
            usage: None,
            error: None,
            pause: true,
        };
        self.save_step(session, info, changes, None).await
    }

    /// Resumes a waiting action, or does nothing if it is no longer waiting. `end` is saved in the
    /// same write that acknowledges the message.
    async fn end_wait(
        &self,
        session: &mut Session<S>,
        action: &ActionId,
        end: Option<WaitEnd>,
        node: &'static str,
    ) -> Result<LeaseState, Error> {
        let record = self.decided(session, action).await?;
        let waiting = record.filter(|record| match record.status {
            Status::Approved => true, // nobody has claimed it
            Status::Intent => record.waits.as_ref().is_some_and(|wait| wait.end.is_none()),
            _ => false,
        });
        let suspended = session.checkpoint.suspended.values().find(|suspended| suspended.action == *action).cloned();
        let (Some(record), Some(suspended)) = (waiting, suspended) else {
            session
                .checkpoint
                .suspended
                .retain(|_, suspended| suspended.action != *action || suspended.waits_for.is_none());
            return self.save_empty_step(session, node).await;
        };
        let now = self.clock.now();
        let mut changes = session.changes();
        if record.status == Status::Approved {
            changes.timers.push(TimerChange::Clear { key: record.claim_timer() });
        } else {
            let mut resumed = record.moved(Status::Intent).map_err(illegal)?;
            resumed.waits = resumed.waits.map(|wait| Wait { end, ..wait });
            changes.timers.push(TimerChange::Clear { key: resumed.waiting_timer() });
            changes.actions.push(ActionChange { expected: Some(record.revision), record: resumed });
        }
        session.checkpoint.suspended.remove(record.question());
        self.restore_turn(session, suspended)?;
        let info =
            StepInfo { node, next: EXECUTE, began: now, took: Duration::ZERO, usage: None, error: None, pause: false };
        self.save_step(session, info, changes, None).await
    }

    /// Restores the turn that requested a waiting action, so that the action can continue.
    fn restore_turn(&self, session: &mut Session<S>, suspended: Suspended) -> Result<(), Error> {
        let Suspended { action, run, node, turn, waits_for: _ } = suspended;
        let checkpoint = &mut session.checkpoint;
        checkpoint.state_mut().resume(turn).map_err(|error| Error::Corrupt {
            what: format!("the turn that asked for action {action} cannot be read: {error}"),
        })?;
        checkpoint.run = Some(run);
        checkpoint.reply_slots = ReplySlots::of(format!("after:{action}"));
        checkpoint.cursor = Cursor::Performing { action, node };
        session.status_due = None;
        Ok(())
    }
}

/// Creates the audit entry for an event; the digest in it covers the body.
fn arrival(arrived: &External, now: Timestamp) -> AuditDraft {
    let detail = json!({
        "source": arrived.source(), "key": arrived.key(), "digest": Digest::of(&[arrived.body()]),
    });
    AuditDraft::new(AuditKind::Arrived, now, None, detail)
}
