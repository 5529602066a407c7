//! Waits until the program that carries an approved change out elsewhere claims it ([`ActionRecord::claimed`]).

use std::time::Duration;

use countersign_core::reply::Text;
use serde_json::json;

use super::{
    perform::{Attempt, failed},
    session::{Session, StepInfo, outgoing},
};
use crate::{
    action::{ActionRecord, CLAIMED_BY, ErrorKind},
    checkpoint::{Cursor, Suspended},
    engine::{Engine, LeaseState},
    node::State,
    store::{AuditKind, Error, Outbound, TimerChange},
};

impl<S: State> Engine<S> {
    /// Saves an approved change as waiting for its claim and releases the thread, or ends it if it was stopped or nobody
    /// has claimed it in time. The record stays as it is, so that a claim can be written meanwhile.
    pub(super) async fn await_claim(
        &self,
        session: &mut Session<S>,
        record: &ActionRecord,
        within: Duration,
        attempt: Attempt<'_>,
    ) -> Result<LeaseState, Error> {
        let now = self.clock.now();
        let until = record.decisions.last().map_or(record.requested_at, |decision| decision.at) + within;
        if let Some(by) = self.stopped_by(session).await? {
            session.note(record.event(AuditKind::Stopped, now, Some(by.clone()), json!({})));
            session.stop();
            let summary = Text::from("Stopped by ").person(by).plain(" before ").person(record.requested_by.clone());
            let summary = summary.plain(" took it, so it must not be carried out.");
            return self.close(session, record, attempt, failed(ErrorKind::Execution, summary)).await;
        }
        if now >= until {
            let summary = Text::new().person(record.requested_by.clone());
            let summary = summary.plain(" did not take it in time, so it must not be carried out any more.");
            return self.close(session, record, attempt, failed(ErrorKind::Execution, summary)).await;
        }
        let mut changes = session.changes();
        changes.timers.push(TimerChange::Set {
            key: record.claim_timer(),
            due: until,
            entry: json!({ "kind": "overdue", "thread": record.thread, "action": record.id, "until": until }),
        });
        changes.outbox.push(outgoing(session.checkpoint.reply_slots.slot(), now, Outbound::Remove));
        let suspended = Suspended {
            action: record.id.clone(),
            run: session.checkpoint.run.clone().unwrap_or_else(|| "none".into()),
            node: attempt.node.to_owned(),
            turn: session.checkpoint.state.suspend(),
            waits_for: Some((CLAIMED_BY.to_owned(), record.id.to_string())),
        };
        session.checkpoint.suspended.insert(record.question().clone(), suspended);
        session.checkpoint.cursor = Cursor::Idle;
        let (began, took) = (attempt.began, now.since(attempt.began));
        let info = StepInfo { node: "execute", next: "await", began, took, usage: None, error: None, pause: true };
        self.save_step(session, info, changes, None).await
    }
}
