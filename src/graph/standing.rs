//! Standing approvals: changes that run without a question, because a person approved a limited
//! number of their kind beforehand.
//!
//! The engine asks [`StandingApprovals`] when a change is proposed. If a standing approval covers
//! it, the allowance is spent first, and then the record is stored as approved, with the decisions
//! of the people who granted it. The rest is the same as after a click. After a crash between the
//! two writes, the step runs again and finds the allowance already spent for it.
//!
//! A grant approves changes that are not known yet. It therefore counts only if the people who
//! granted it may approve the change itself, under the policy that is in effect when the change is
//! proposed ([`Entitled`]).
//!
//! A setting of the operator can decide in the same way: [`Under::granted_by`] is then empty, and the
//! record contains one decision that names nobody. The operator, who can change everything the program
//! does, is who decided; the record names the setting and its allowance.

use std::fmt;

use async_trait::async_trait;
use countersign_core::{clock::Timestamp, ids::UserId, reply::Text};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    action::{ActionRecord, Decision, Lapse, Status, Verdict},
    request::Times,
    store::{ActionChange, AuditKind, Changes, Register},
};

/// The standing approval under which a record was approved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Under {
    /// The name.
    pub id: String,
    /// The allowance, in words.
    pub allows: String,
    /// The people who granted it; empty for a setting of the operator.
    pub granted_by: Vec<UserId>,
    /// The part of the allowance that is used, including this change.
    pub used: u64,
    /// The whole allowance.
    pub limit: u64,
}

impl Under {
    /// Returns true if a setting of the operator decided, and no people.
    pub fn is_setting(&self) -> bool {
        self.granted_by.is_empty()
    }
}

/// The result of applying standing approvals to a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spent {
    /// A standing approval covers the change, and the allowance is spent.
    Under(Under),
    /// No standing approval covers the change, so a person decides.
    Nothing {
        /// The reason why a standing approval for changes of this kind does not cover it, for the
        /// card; `None` if there is no such standing approval.
        why: Option<Text>,
    },
}

/// The standing approvals of a workspace.
#[async_trait]
pub trait StandingApprovals: Send + Sync + fmt::Debug {
    /// Spends the allowance for a change from a standing approval that covers it, if there is one.
    /// A repeated call for the same run and message returns the same answer and spends nothing
    /// more.
    async fn spend(&self, record: &ActionRecord) -> Spent;

    /// Returns the key of the register with the standing approvals, if that is where they are.
    fn register(&self) -> Option<&'static str> {
        None
    }

    /// Does what [`Self::spend`] does, from this content of the register, which was read with something else.
    async fn spend_from(&self, _register: Register, record: &ActionRecord) -> Spent {
        self.spend(record).await
    }
}

/// Decides which people's approval counts.
#[async_trait]
pub trait Entitled: Send + Sync {
    /// Returns the members of `people` who may approve this change under its policy, as far as is
    /// known. They are assumed to be members of its channel.
    async fn who_may_approve(&self, record: &ActionRecord, people: &[UserId]) -> Vec<UserId>;

    /// Returns the approvals of this change that no longer count under its policy, as far as is known.
    async fn lapses(&self, record: &ActionRecord) -> Vec<Lapse>;
}

impl ActionRecord {
    /// Adds an approved card to `changes`: the record, the audit entries and the message. Returns
    /// the record.
    pub fn publish_approved(self, under: Under, changes: &mut Changes, times: &Times, at: Timestamp) -> Self {
        let approved = self.approved_under(&under, at);
        let timers = changes.timers.len();
        self.publish(changes, times);
        // No decision is pending, so there are no timers, and the card is drawn and stored in its approved state.
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
        let decision = |by: Option<UserId>| Decision { by, at, verdict: Verdict::Approved };
        approved.decisions = match under.granted_by.as_slice() {
            [] => vec![decision(None)],
            people => people.iter().cloned().map(|by| decision(Some(by))).collect(),
        };
        approved.revision += approved.decisions.len() as u64;
        let Under { id, allows, granted_by, used, limit } = under;
        let note = if under.is_setting() {
            Text::from("Approved by the operator's setting ").code(id).plain(format!(": {allows}"))
        } else {
            let note = Text::from("Approved under the standing approval ").code(id);
            let note = note.plain(format!(": {allows}. Granted by "));
            granted_by.iter().enumerate().fold(note, |note, (nth, person)| {
                if nth > 0 { note.plain(" and ").person(person.clone()) } else { note.person(person.clone()) }
            })
        };
        approved.card.notes.push(note.plain(format!("; {used} of {limit} used with this.")));
        approved.under = Some(under.clone());
        approved
    }
}
