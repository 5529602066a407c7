//! Changes that a program elsewhere carries out: it claims the approval, once, and reports the outcome.
//!
//! Both are written without the thread's lease, in one compare-and-set on the record, as decisions are. So of a claim, a
//! stop and the end of the time for it, one comes first, and the others find that it did.

use std::time::Duration;

use countersign_core::{
    clock::Timestamp,
    ids::{CommitId, UserId},
    reply::Text,
};
use serde_json::{Value, json};

use super::{ActionRecord, IllegalMove, Outcome, Progress, Status, Wait};
use crate::store::{ActionChange, AuditKind, Changes, External, ThreadMessage, TimerChange};

/// The name of the source of the event that such a change waits for: its claim, and then its outcome.
pub const CLAIMED_BY: &str = "claim";

/// A claim of an approved change.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The program.
    pub by: UserId,
    /// The time.
    pub at: Timestamp,
    /// The id of the claim.
    pub id: String,
    /// What is kept of the claim, among it the `digest` of what the program is about to use, as it gave it.
    pub data: Value,
    /// The time within which it has to report the outcome.
    pub report_within: Duration,
}

impl ActionRecord {
    /// Returns the record with this claim, and the write that stores it.
    ///
    /// # Errors
    ///
    /// [`IllegalMove`] unless the change is approved and nobody has claimed it.
    pub fn claimed(&self, claim: &Claim) -> Result<(Self, Changes), IllegalMove> {
        let Claim { by, at, id, data, report_within } = claim;
        if self.status != Status::Approved {
            return Err(IllegalMove { from: self.status, to: Status::Intent });
        }
        let until = *at + *report_within;
        let mut claimed = self.moved(Status::Intent)?;
        claimed.intent_at = Some(*at);
        claimed.sends += 1;
        let note = Text::new().person(by.clone()).plain(" took it and has not reported how it went.");
        let mut data = data.clone();
        data["claim"] = json!(id);
        let digest = data["digest"].clone();
        claimed.progress = Some(Progress { data, done: 0, total: 1, note });
        claimed.progress_at = Some(*at);
        claimed.interrupted_at = Some(Timestamp::default()); // nothing is in flight
        let (source, key) = (CLAIMED_BY.to_owned(), self.id.to_string());
        claimed.waits = Some(Wait { source, key, until, end: None, asks: None });

        let mut changes = Changes::new(CommitId::fresh(), self.thread.clone());
        let detail = json!({ "digest": claimed.digest, "keyed": claimed.keyed, "claim": id, "payload_digest": digest });
        changes.audit.push(claimed.event(AuditKind::Executed, *at, Some(by.clone()), detail));
        changes.timers.push(TimerChange::Clear { key: self.claim_timer() });
        changes.timers.push(TimerChange::Set {
            key: self.waiting_timer(),
            due: until,
            entry: json!({ "kind": "overdue", "thread": self.thread, "action": self.id, "until": until }),
        });
        changes.outbox.push(claimed.card_message(*at));
        changes.actions.push(ActionChange { expected: Some(self.revision), record: claimed.clone() });
        Ok((claimed, changes))
    }

    /// Returns the id of its claim, if a program has claimed it.
    pub fn claim(&self) -> Option<&str> {
        self.progress.as_ref()?.data["claim"].as_str()
    }

    /// Returns the record with the outcome that the program reports, and the write that stores it. `data` is kept with
    /// the progress.
    ///
    /// # Errors
    ///
    /// [`IllegalMove`] unless the change was claimed, and its outcome is open or not known.
    pub fn reported(
        &self,
        by: &UserId,
        outcome: Outcome,
        data: Value,
        at: Timestamp,
    ) -> Result<(Self, Changes), IllegalMove> {
        let mut ended = self.moved(outcome.status())?;
        if let Some(progress) = &mut ended.progress {
            progress.data["reported"] = data;
        }
        let detail = json!({ "status": ended.status, "summary": outcome.summary().words(), "reported_by": by });
        ended.outcome = Some(outcome);
        let mut changes = Changes::new(CommitId::fresh(), self.thread.clone());
        changes.audit.push(ended.event(AuditKind::Outcome, at, Some(by.clone()), detail));
        changes.timers.push(TimerChange::Clear { key: self.waiting_timer() });
        changes.outbox.push(ended.card_message(at));
        // The thread waits for this event, and goes on with it.
        let event = External::new(CLAIMED_BY, self.id.as_str(), json!({ "status": ended.status }));
        changes.messages.extend(event.ok().map(ThreadMessage::External));
        changes.actions.push(ActionChange { expected: Some(self.revision), record: ended.clone() });
        Ok((ended, changes))
    }

    /// Returns the line about a change that a program carries out elsewhere and has not claimed yet; `None` for others.
    pub(crate) fn waits_for_claim(&self) -> Option<Text> {
        self.requested_by.key().filter(|_| self.status == Status::Approved)?;
        Some(Text::from("Waiting for ").person(self.requested_by.clone()).plain(" to take it."))
    }
}
