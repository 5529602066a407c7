//! Follow-ups to an action after its decision: a person gives a reason, or has an unknown outcome
//! looked up again or settled.

use countersign_core::{
    clock::Timestamp,
    ids::{ActionId, UserId},
    reply::Text,
};
use serde_json::json;

use super::{
    perform::{failed, illegal},
    session::{Session, StepInfo},
    step::record_events,
};
use crate::{
    action::{ActionRecord, ErrorKind, Outcome, Probed, Recovery, Settlement, Status},
    checkpoint::ReplySlots,
    engine::Engine,
    node::State,
    store::{ActionChange, ActionFollowUp, ActionKey, AuditKind, Changes, Error, Then},
};

/// The name of the trace step for a follow-up.
const FOLLOW_UP: &str = "news";

impl<S: State> Engine<S> {
    /// Handles a follow-up and reports it. A thread in the middle of a run then continues with the
    /// run.
    pub(super) async fn take_follow_up(
        &self,
        session: &mut Session<S>,
        id: &ActionId,
        by: &UserId,
        follow_up: ActionFollowUp,
    ) -> Result<(), Error> {
        let began = self.clock.now();
        let Some(record) = self.store.action(ActionKey::Of(&session.lease.thread, id)).await? else {
            return self.save(session, session.changes(), Then::Keep).await;
        };
        let mut changes = session.changes();
        let handled = match follow_up {
            ActionFollowUp::CheckAgain | ActionFollowUp::SaidDone if record.status == Status::Unknown => {
                self.read_back(&mut changes, record, by, follow_up).await?
            }
            ActionFollowUp::CheckAgain => None, // already settled, as the card shows
            ActionFollowUp::SaidDone => Some((record, ActionFollowUp::CameLate)),
            ActionFollowUp::Explained | ActionFollowUp::Settled | ActionFollowUp::CameLate => Some((record, follow_up)),
        };
        let Some((record, follow_up)) = handled else {
            return self.save(session, session.changes(), Then::Keep).await;
        };
        let before = session.checkpoint.clone();
        self.report_follow_up(session, &mut changes, &record, by, follow_up, began).await?;
        let conflicting = match self.save(session, changes, Then::Keep).await {
            Err(Error::ActionMoved { current, .. }) => current,
            saved => return saved,
        };
        // The action was settled in the meantime, so the report no longer applies, and the state must not contain it.
        session.checkpoint = before;
        let mut changes = session.changes();
        if let Some(current) = conflicting.filter(|_| follow_up == ActionFollowUp::SaidDone) {
            self.report_follow_up(session, &mut changes, &current, by, ActionFollowUp::CameLate, began).await?;
        }
        self.save(session, changes, Then::Keep).await
    }

    /// Has the graph's listener report a follow-up, as a step of its own.
    async fn report_follow_up(
        &self,
        session: &mut Session<S>,
        changes: &mut Changes,
        record: &ActionRecord,
        by: &UserId,
        follow_up: ActionFollowUp,
        began: Timestamp,
    ) -> Result<(), Error> {
        let now = self.clock.now();
        let reply = self.graph.listener().heard(session.checkpoint.state_mut(), record, follow_up, by, now);
        if let Some(reply) = reply {
            let reply_slots = std::mem::replace(
                &mut session.checkpoint.reply_slots,
                ReplySlots::of(format!("news:{}:{}", record.id, began.0)),
            );
            self.say(session, changes, reply).await?;
            session.checkpoint.reply_slots = reply_slots;
        }
        let zone = self.admission.zone(&record.requested_by).await;
        let goes_on = self.graph.listener().goes_on(session.checkpoint.state_mut(), record, follow_up, zone, now);
        if goes_on {
            self.begin_run(session);
        }
        record_events(session, changes, now);
        let info = StepInfo {
            node: FOLLOW_UP,
            next: if goes_on { self.graph.start() } else { "end" },
            began,
            took: now.since(began),
            usage: None,
            error: None,
            pause: false,
        };
        let step = session.step(info);
        changes.steps = step.steps;
        changes.snapshot = step.snapshot;
        Ok(())
    }

    /// Reads back again whether the change happened, and stores the result: the state that was read
    /// or, if that does not show the change, the statement of the person who says that it happened.
    /// Returns the updated record and the follow-up to report; `None` if there is nothing to
    /// report.
    async fn read_back(
        &self,
        changes: &mut Changes,
        record: ActionRecord,
        by: &UserId,
        follow_up: ActionFollowUp,
    ) -> Result<Option<(ActionRecord, ActionFollowUp)>, Error> {
        let probed = self.probed(&record).await;
        // Reading takes time, and a person may have given the action up in the meantime.
        let record = self.store.action(ActionKey::Of(&record.thread, &record.id)).await?.unwrap_or(record);
        if record.status != Status::Unknown {
            return Ok((follow_up == ActionFollowUp::SaidDone).then_some((record, ActionFollowUp::CameLate)));
        }
        let (outcome, follow_up) = match (probed, follow_up) {
            (Probed::Happened(outcome), _) => (outcome, ActionFollowUp::CheckAgain),
            (probed, ActionFollowUp::SaidDone) => (Outcome::Settled { summary: stated_by(by, probed) }, follow_up),
            (Probed::DidNotHappen, _) if self.may_arrive(&record) => {
                let summary = Text::from("Nothing has changed so far, but the request may still arrive.");
                (Outcome::Unknown { summary }, follow_up)
            }
            (Probed::DidNotHappen, _) => {
                let summary = Text::from("I checked again: it didn't happen. Nothing was changed.");
                (failed(ErrorKind::Execution, summary), follow_up)
            }
            (Probed::Unfinished { evidence } | Probed::Otherwise { evidence } | Probed::CannotTell { evidence }, _) => {
                (Outcome::Unknown { summary: evidence }, follow_up)
            }
        };
        let now = self.clock.now();
        let mut detail = json!({ "status": outcome.status(), "summary": outcome.summary().words() });
        let kind = match follow_up {
            ActionFollowUp::SaidDone => AuditKind::Settled,
            _ => {
                detail["checked_by"] = json!(by);
                AuditKind::Outcome
            }
        };
        changes.audit.push(record.event(kind, now, Some(by.clone()), detail));
        if outcome.status() == Status::Unknown {
            return Ok(Some((ActionRecord { outcome: Some(outcome), ..record }, follow_up))); // reported, but not stored
        }
        let mut settled = record.moved(outcome.status()).map_err(illegal)?;
        settled.outcome = Some(outcome);
        settled.settled = Some(Settlement { by: by.clone(), at: now });
        changes.actions.push(ActionChange { expected: Some(record.revision), record: settled.clone() });
        changes.outbox.push(settled.card_message(now));
        Ok(Some((settled, follow_up)))
    }

    /// Returns true if a request that was sent for the action may still arrive.
    fn may_arrive(&self, record: &ActionRecord) -> bool {
        record.intent_at.is_some_and(|left| self.clock.now() < left + self.settings.settle_within)
    }

    /// Reads the change back, with a time-out. An idempotent change cannot be read back.
    async fn probed(&self, record: &ActionRecord) -> Probed {
        let Some(kind) = self.actions.get(record.name.as_str()) else {
            let evidence = Text::from("This kind of change is no longer offered, so I can't look it up.");
            return Probed::CannotTell { evidence };
        };
        if kind.recovery() == Recovery::Idempotent {
            return Probed::CannotTell { evidence: "I can't check whether it happened.".into() };
        }
        let probed = tokio::time::timeout(self.settings.step_timeout, kind.probe(record)).await;
        probed.unwrap_or(Probed::CannotTell { evidence: "The platform isn't answering.".into() })
    }
}

/// Describes that a person says the change happened although reading back does not show it.
fn stated_by(by: &UserId, probed: Probed) -> Text {
    let says = Text::new().person(by.clone()).plain(" says it was done");
    match probed {
        Probed::CannotTell { evidence } => says.plain(". ").join(evidence),
        Probed::Unfinished { evidence } | Probed::Otherwise { evidence } => {
            says.plain(", but the platform shows something else. ").join(evidence)
        }
        Probed::DidNotHappen | Probed::Happened(_) => says.plain(", but the platform shows it wasn't."),
    }
}
