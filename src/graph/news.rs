//! What happens to an action after its decision: a reason is given, an unknown outcome is looked up again or settled.

use serde_json::json;

use super::{
    action::{ActionRecord, ErrorKind, Outcome, Probed, Status},
    engine::Engine,
    node::State,
    perform::{failed, illegal},
    session::{Session, StepInfo},
    store::{ActionChange, AuditKind, Error, News, Then},
};
use crate::{
    ids::{ActionId, UserId},
    reply::Text,
};

/// The trace's name for what happens here.
const NEWS: &str = "news";

impl<S: State> Engine<S> {
    /// Takes the news up, and says what there is to say about it. A thread that is in the middle of something goes on with
    /// that afterwards.
    pub(super) async fn take_news(
        &self,
        session: &mut Session<S>,
        id: &ActionId,
        by: &UserId,
        news: News,
    ) -> Result<(), Error> {
        let began = self.clock.now();
        let mut changes = session.changes();
        let Some(mut record) = self.store.action(&session.lease.thread, id).await? else {
            return self.save(session, changes, Then::Keep).await;
        };
        if news == News::CheckAgain {
            if record.status != Status::Unknown {
                return self.save(session, changes, Then::Keep).await; // settled meanwhile: the card says so
            }
            let outcome = self.look_again(&record).await;
            let now = self.clock.now();
            let detail = json!({ "status": outcome.status(), "summary": outcome.summary().words(), "checked_by": by });
            changes.audit.push(record.event(AuditKind::Outcome, now, Some(by.clone()), detail));
            if outcome.status() != Status::Unknown {
                let expected = Some(record.revision);
                record = record.moved(outcome.status()).map_err(illegal)?;
                record.outcome = Some(outcome);
                changes.actions.push(ActionChange { expected, record: record.clone() });
                changes.outbox.push(record.redrawn(now));
            }
        }
        let now = self.clock.now();
        let reply = session.checkpoint.state.heard(&record, news, by, now);
        let voice = std::mem::replace(
            &mut session.checkpoint.voice,
            super::checkpoint::Voice::of(format!("news:{id}:{}", began.0)),
        );
        self.say(session, &mut changes, reply).await?;
        session.checkpoint.voice = voice;
        let info =
            StepInfo { node: NEWS, next: "end", began, took: now.since(began), usage: None, error: None, pause: false };
        let step = session.step(info);
        changes.step = step.step;
        changes.snapshot = step.snapshot;
        match self.save(session, changes, Then::Keep).await {
            Err(Error::ActionMoved { .. }) => self.save(session, session.changes(), Then::Keep).await,
            saved => saved,
        }
    }

    /// Reads back once more whether it happened.
    async fn look_again(&self, record: &ActionRecord) -> Outcome {
        let unknown = |evidence: Text| Outcome::Unknown { summary: evidence };
        let Some(kind) = self.actions.get(record.name.as_str()) else {
            return unknown(Text::from("This kind of change is no longer offered, so I cannot look it up."));
        };
        let probed = tokio::time::timeout(self.settings.step_timeout, kind.probe(record)).await;
        match probed.unwrap_or(Probed::CannotTell { evidence: "The platform does not answer.".into() }) {
            Probed::Happened(outcome) => outcome,
            Probed::DidNotHappen => {
                failed(ErrorKind::Execution, Text::from("I looked again: it did not happen. Nothing was changed."))
            }
            Probed::CannotTell { evidence } => unknown(evidence),
        }
    }
}
