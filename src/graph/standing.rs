//! Changes that need not wait, since a person approved a bounded number of their kind beforehand.
//!
//! The engine asks [`StandingApprovals`] when a change is proposed. If one covers it, its allowance is spent first and
//! the record is stored approved, with the decision of those who granted it; the rest is as after a click. After a
//! crash in between, the step runs again and finds the allowance spent for it.
//!
//! A grant approves changes that nobody knows yet. So it counts only as far as the people who granted it may approve
//! the change itself, under the policy of the day that it is asked for ([`Entitled`]).

use std::fmt;

use async_trait::async_trait;
use countersign_core::{clock::Timestamp, ids::UserId, reply::Text};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    action::{ActionRecord, Decision, Status, Verdict},
    request::Times,
    store::{ActionChange, AuditKind, Changes},
};

/// The standing approval that a record was approved under.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Under {
    /// The name.
    pub id: String,
    /// The allowance, in words.
    pub allows: String,
    /// The people who granted it.
    pub granted_by: Vec<UserId>,
    /// The part of it that is used, this change included.
    pub used: u64,
    /// The whole allowance.
    pub limit: u64,
}

/// The answer of standing approvals to a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spent {
    /// A standing approval covers the change, and the allowance is spent.
    Under(Under),
    /// No standing approval covers the change, so a person decides.
    Nothing {
        /// The reason why one about such changes does not cover it, if there is one: for the card.
        why: Option<Text>,
    },
}

/// A keeper of standing approvals.
#[async_trait]
pub trait StandingApprovals: Send + Sync + fmt::Debug {
    /// Spends the allowance for a change from a standing approval that covers it; nothing if none does. Asked again
    /// about the same run and message it answers as before, and spends nothing more.
    async fn spend(&self, record: &ActionRecord) -> Spent;
}

/// Decides whose approval counts.
#[async_trait]
pub trait Entitled: Send + Sync {
    /// Returns those of `people` who may approve this change under its policy, as far as that is known. They are
    /// assumed to be in its channel.
    async fn who_may_approve(&self, record: &ActionRecord, people: &[UserId]) -> Vec<UserId>;
}

impl ActionRecord {
    /// Puts the card out as approved: the record, the audit entries, the message. Returns the record.
    pub fn publish_approved(self, under: Under, changes: &mut Changes, times: &Times, at: Timestamp) -> Self {
        let approved = self.approved_under(&under, at);
        let timers = changes.timers.len();
        self.publish(changes, times);
        // Nobody is waited for: no timers, and the card is drawn and stored as it stands now.
        changes.timers.truncate(timers);
        changes.outbox.pop();
        changes.actions.pop();
        for decision in &approved.decisions {
            let detail = json!({
                "verdict": decision.verdict, "status": approved.status, "digest": approved.digest, "standing": under,
            });
            changes.audit.push(approved.event(AuditKind::Decided, at, decision.by.clone(), detail));
        }
        changes.outbox.push(approved.card_message(at));
        changes.actions.push(ActionChange { expected: None, record: approved.clone() });
        approved
    }

    fn approved_under(&self, under: &Under, at: Timestamp) -> Self {
        let mut approved = self.clone();
        approved.status = Status::Approved;
        let decision = |by: &UserId| Decision { by: Some(by.clone()), at, verdict: Verdict::Approved };
        approved.decisions = under.granted_by.iter().map(decision).collect();
        approved.revision += approved.decisions.len() as u64;
        let Under { id, allows, granted_by, used, limit } = under;
        let note = Text::new()
            .plain("Approved under the standing approval ")
            .code(id)
            .plain(format!(": {allows}. Granted by "));
        let note = granted_by.iter().enumerate().fold(note, |note, (nth, person)| {
            if nth > 0 { note.plain(" and ").person(person.clone()) } else { note.person(person.clone()) }
        });
        approved.card.notes.push(note.plain(format!("; {used} of {limit} used with this.")));
        approved.under = Some(under.clone());
        approved
    }
}
