//! “Stop”: ends a run within one step, even while a model is being called.
//!
//! Between two nodes, the mailbox is checked at most once every [`LISTEN_EVERY`]. While a node
//! runs, it is checked continuously at that interval, and the node is dropped when a person says
//! stop: its results are lost, but it has changed nothing. An action that is being carried out is
//! not dropped, since its request may already have been sent; an action made in batches checks for
//! a stop between batches (`batches.rs`). The outcome of an action is always reported, even after a
//! stop.

use std::time::Duration;

use countersign_core::{
    cause,
    clock::Timestamp,
    ids::{ActionId, UserId},
    reply::{Reply, Text},
};
use serde_json::json;

use super::{
    session::{Session, StepInfo},
    step::record_events,
};
use crate::{
    checkpoint::{Cursor, ReplySlots},
    engine::{Engine, LeaseState},
    node::State,
    store::{AuditDraft, AuditKind, Error, Lease, QueuedMessage, Seq, Then, ThreadMessage},
};

/// The interval between checks of the mailbox during a run.
const LISTEN_EVERY: Duration = Duration::from_millis(250);

/// The name of the trace step for a stopped run.
const STOP: &str = "stop";

/// Returns the reply to a “stop” in a thread where nothing is being done. What runs elsewhere was not looked at.
pub fn nothing_to_stop() -> Reply {
    Reply::text("I'm not working on anything in this thread, so there's nothing to stop here.")
        .hint("To stop something that runs elsewhere, name it.")
}

impl<S: State> Engine<S> {
    /// Returns the person who said stop before the next node of a run. `None` if nobody did, or if
    /// the node is to report how the action `ended`.
    pub(super) async fn stop_between(
        &self,
        session: &mut Session<S>,
        ended: Option<&ActionId>,
    ) -> Result<Option<UserId>, Error> {
        if ended.is_some() {
            return Ok(None);
        }
        let now = self.clock.now();
        let listened_at = session.listened_at.get_or_insert(now);
        if now.since(*listened_at) >= LISTEN_EVERY {
            *listened_at = now;
            let lease = &session.lease;
            session.add_messages(self.store.messages(&lease.thread, session.newest_seq(), Some(lease)).await?);
        }
        Ok(session.stop())
    }

    /// Waits for a “stop”. Returns all messages after the position `heard`.
    pub(super) async fn messages_with_stop(&self, lease: Lease, heard: Seq) -> Vec<QueuedMessage> {
        loop {
            tokio::time::sleep(LISTEN_EVERY).await;
            match self.store.messages(&lease.thread, heard, Some(&lease)).await {
                Ok(messages)
                    if messages.iter().any(|message| matches!(message.message, ThreadMessage::Stop { .. })) =>
                {
                    return messages;
                }
                Ok(_) => {}
                Err(error) => {
                    tracing::debug!(thread.id = %lease.thread, error = cause::chain(&error), "Cannot check the mailbox for a stop")
                }
            }
        }
    }

    /// Ends the run at its current node.
    pub(super) async fn end_stopped(
        &self,
        session: &mut Session<S>,
        node: &str,
        began: Timestamp,
        by: UserId,
    ) -> Result<LeaseState, Error> {
        let now = self.clock.now();
        tracing::info!(thread.id = %session.lease.thread, node.name = node, "A run was stopped");
        let mut extra = session.changes();
        let detail = json!({ "run": session.checkpoint.run, "node": node });
        extra.audit.push(AuditDraft::new(AuditKind::Stopped, now, Some(by.clone()), detail));
        let rest = session.checkpoint.state_mut().stopped();
        let rest = rest.unwrap_or_else(|| " Steps that hadn't started were not run.".to_owned());
        let text = Text::from("Stopped, as ").person(by).plain(format!(" asked.{rest}"));
        self.say(session, &mut extra, Reply::text(text)).await?;
        record_events(session, &mut extra, now);
        session.checkpoint.cursor = Cursor::Idle;
        let (took, usage, error) = (now.since(began), None, None);
        let info = StepInfo { node: STOP, next: "end", began, took, usage, error, pause: false };
        self.save_step(session, info, extra, None).await
    }

    /// Handles a “stop” while no run is in progress. Earlier messages that no run has begun are
    /// dropped, from all people, and so is a request that waits for an answer.
    pub(super) async fn nothing_to_stop(
        &self,
        session: &mut Session<S>,
        seq: Seq,
        by: &UserId,
        asks: bool,
    ) -> Result<LeaseState, Error> {
        let not_begun = session.drop_stopped(seq);
        let waiting = session.checkpoint.state_mut().stopped_waiting();
        if not_begun == 0 && !asks && waiting.is_none() {
            self.save(session, session.changes(), Then::Keep).await?;
            return Ok(LeaseState::Held);
        }
        let now = self.clock.now();
        let mut extra = session.changes();
        session.checkpoint.reply_slots = ReplySlots::of(format!("stop:{seq}"));
        let stopped = || Text::from("Stopped, as ").person(by.clone());
        let reply = match (waiting, not_begun) {
            (Some(rest), _) => Reply::text(stopped().plain(format!(" asked.{rest}"))),
            (None, 0) => nothing_to_stop(),
            (None, _) => Reply::text(stopped().plain(" asked, before I started.")),
        };
        let detail = json!({ "not_begun": not_begun });
        extra.audit.push(AuditDraft::new(AuditKind::Stopped, now, Some(by.clone()), detail));
        self.say(session, &mut extra, reply).await?;
        record_events(session, &mut extra, now);
        let info = StepInfo {
            node: STOP,
            next: "end",
            began: now,
            took: Duration::ZERO,
            usage: None,
            error: None,
            pause: false,
        };
        self.save_step(session, info, extra, None).await
    }
}
