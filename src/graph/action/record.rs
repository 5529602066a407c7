//! An action as it is stored.

use std::sync::Arc;

use countersign_core::{
    clock::Timestamp,
    ids::{ActionId, ApprovalId, RunId, Slot, ThreadId, UserId},
    reply::{Card, Fact, Text},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    Approver, Decision, Evidence, IllegalMove, Lapse, Outcome, Policy, Progress, Scope, Status, Verdict, Wait,
};
use crate::{
    digest::Digest,
    keyring::{Keyed, Proof, RowSeal},
    shared::Shared,
    standing::Under,
    store::{AuditDraft, AuditKind},
};

/// A change in the outside world. The version of its stored shape is [`ActionRecord::FORMAT`].
///
/// Seals cover the record as it is stored ([`crate::keyring`]): the order of its fields, and of those in them, is part of
/// every seal, and so is which of them are [`Shared`]. A new field is added at the end, with a default that is not
/// written, so that the seals of the records without it hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionRecord {
    /// The version of this shape.
    pub format: u32,
    /// The action's id.
    pub id: ActionId,
    /// The single-use key in its buttons.
    pub approval: ApprovalId,
    /// The thread in which the change was requested.
    pub thread: ThreadId,
    /// The run that proposed it.
    pub run: RunId,
    /// The [`super::ActionInfo::name`].
    pub name: String,
    /// The [`super::ActionInfo::version`].
    pub action_version: u32,
    /// The exact change: validated parameters with defaults filled in.
    pub parameters: Shared<Value>,
    /// The state of the target when the card was shown. It is read again before execution.
    pub preconditions: Shared<Value>,
    /// The people who may decide.
    pub policy: Shared<Policy>,
    /// The digest of the change. It covers the action's id, its thread, the person who asked, and the name, version,
    /// parameters, preconditions and policy.
    pub digest: Digest,
    /// The key and version of the digest.
    pub keyed: Keyed,
    /// The seal of the whole record, recomputed with each write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<RowSeal>,
    /// The result of checking the seal and the digest.
    #[serde(skip)]
    pub proof: Proof,
    /// The status.
    pub status: Status,
    /// The number of status transitions. A write names the revision that it expects.
    pub revision: u64,
    /// The card that people see.
    pub card: Shared<Card>,
    /// The message that shows the card.
    pub slot: Slot,
    /// The person who asked.
    pub requested_by: UserId,
    /// The time of the request.
    pub requested_at: Timestamp,
    /// The time at which the card expires.
    pub expires_at: Timestamp,
    /// The decisions, in order.
    #[serde(default)]
    pub decisions: Vec<Decision>,
    /// The time at which the request was about to be sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent_at: Option<Timestamp>,
    /// The number of times that the request was about to be sent.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub sends: u32,
    /// The results of those attempts whose answer, if any, did not show whether the change
    /// happened.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<String>,
    /// The progress, if the change is made in batches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// The time at which the progress was saved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress_at: Option<Timestamp>,
    /// True if the change was stopped before it was complete.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut_short: bool,
    /// The time at which a batch was found interrupted. It is kept until the batch's requests must
    /// have arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupted_at: Option<Timestamp>,
    /// The wait for an event, either the current one or the one before the current batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<Wait>,
    /// The outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// The person who settled an unknown outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled: Option<Settlement>,
    /// The action that would undo the change, determined before execution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<Shared<Undo>>,
    /// The people who were notified directly that the action waits for their decision.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notified: Vec<UserId>,
    /// The things that the change concerns. Copies share it.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub scope: Arc<Scope>,
    /// The edits of the request, in order. Each edit created a new record with a new key; this
    /// record is the latest of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edits: Vec<Edit>,
    /// The approval key that the thread waits for, if it is not this record's: the key of the
    /// version before the first edit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<ApprovalId>,
    /// The time at which the escalation added more people because nobody had decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalated_at: Option<Timestamp>,
    /// The record that replaced this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced_by: Option<Replacement>,
    /// The standing approval under which the action was approved, if no person was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub under: Option<Under>,
    /// The approvals that no longer count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lapses: Vec<Lapse>,
    /// True if only its buttons decide from now on, because someone said no in the thread and the card stayed open.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub buttons_only: bool,
    /// The words of a person that ask for the change. Copies share it.
    #[serde(default, skip_serializing_if = "has_no_words")]
    pub evidence: Arc<Evidence>,
    /// The span that made the record, as in `traceparent`, if it was exported. Those of its decision are linked to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span: Option<String>,
}

fn is_empty(scope: &Arc<Scope>) -> bool {
    scope.is_empty()
}

fn has_no_words(evidence: &Arc<Evidence>) -> bool {
    evidence.is_empty()
}

/// Returns true if the count is zero; zero is not stored.
fn is_zero(sends: &u32) -> bool {
    *sends == 0
}

/// The replacement of a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replacement {
    /// The new record.
    pub action: ActionId,
    /// The message that shows its card.
    pub slot: Slot,
    /// True if it is the same request, edited in its form; false if it is a newer request for the
    /// same thing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub edited: bool,
}

/// An edit of a request by a person, before it was decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edit {
    /// The person.
    pub by: UserId,
    /// The time.
    pub at: Timestamp,
    /// The record before the edit.
    pub from: ActionId,
    /// The differences on the card.
    pub changed: Vec<Fact>,
    /// Slack's id of the window in which the edit was entered. The same window submitted again
    /// changes nothing more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<String>,
}

/// The settlement of an unknown outcome by a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settlement {
    /// The person.
    pub by: UserId,
    /// The time.
    pub at: Timestamp,
}

/// The action that undoes a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undo {
    /// The [`super::ActionInfo::name`].
    pub name: String,
    /// The parameters.
    pub parameters: Value,
    /// The label of the button that offers it.
    pub label: String,
}

impl ActionRecord {
    /// The version of the stored shape.
    pub const FORMAT: u32 = 1;

    /// Returns true if a no of this person rejects the request, for which there may be a reason, and does not withdraw
    /// it: another person made the request, it came from outside, or only the requester decides and the request can be
    /// edited, as a plan.
    pub fn is_judged_by(&self, by: &UserId) -> bool {
        self.requested_by != *by || self.scope.is_from_outside || (self.scope.is_personal() && self.card.editable)
    }

    /// Returns the record with a new status and an increased revision.
    ///
    /// # Errors
    ///
    /// [`IllegalMove`] if the transition is not legal.
    pub fn moved(&self, to: Status) -> Result<Self, IllegalMove> {
        if !self.status.may_become(to) {
            return Err(IllegalMove { from: self.status, to });
        }
        Ok(Self { status: to, revision: self.revision + 1, ..self.clone() })
    }

    /// Returns true if a typed “yes” approves the card, as well as its button.
    pub fn takes_typed_yes(&self) -> bool {
        self.policy.typed && !self.buttons_only
    }

    /// Returns the key of the timer for the card's expiry.
    pub fn expiry_timer(&self) -> String {
        format!("expire:{}", self.id)
    }

    /// Returns the key of the timer that ends a wait for an event.
    pub fn waiting_timer(&self) -> String {
        format!("wait:{}", self.id)
    }

    /// Returns the key of the timer that ends the wait for a claim.
    pub fn claim_timer(&self) -> String {
        format!("claim:{}", self.id)
    }

    /// Returns the key of the timer that notifies the people whom the policy names.
    pub fn notification_timer(&self) -> String {
        format!("tell:{}", self.id)
    }

    /// Returns the key of the timer for the reminder.
    pub fn reminder_timer(&self) -> String {
        format!("remind:{}", self.id)
    }

    /// Returns the key of the timer for the escalation.
    pub fn escalation_timer(&self) -> String {
        format!("escalate:{}", self.id)
    }

    /// Returns the keys of all timers that an open card has.
    pub fn timers(&self) -> [String; 4] {
        [self.expiry_timer(), self.reminder_timer(), self.escalation_timer(), self.notification_timer()]
    }

    /// Returns the approval key under which the thread waits for the decision: the key of the first
    /// version of the request.
    pub fn question(&self) -> &ApprovalId {
        self.origin.as_ref().unwrap_or(&self.approval)
    }

    /// Returns the people who may decide: the approvers of the policy and those added by the
    /// escalation.
    pub fn approvers(&self) -> impl Iterator<Item = &Approver> {
        self.policy.approvers.iter().chain(self.brought_in())
    }

    /// Returns the people whom the escalation has added; none if it has not taken place.
    pub fn brought_in(&self) -> &[Approver] {
        let escalation = self.escalated_at.and(self.policy.escalation.as_ref());
        escalation.map_or(&[], |escalation| &escalation.approvers)
    }

    /// Returns the version number of the request, starting at 1.
    pub fn edition(&self) -> usize {
        self.edits.len() + 1
    }

    /// Returns true if this person asked for the change or edited the request, which makes it their
    /// request.
    pub fn is_request_of(&self, person: &UserId) -> bool {
        self.requested_by == *person || self.edits.iter().any(|edit| edit.by == *person)
    }

    /// Creates an event about this action, for the audit trail.
    pub fn event(&self, kind: AuditKind, at: Timestamp, by: Option<UserId>, detail: Value) -> AuditDraft {
        AuditDraft { action: Some(self.id.clone()), ..AuditDraft::new(kind, at, by, detail) }
    }

    /// Creates the audit event for showing the card, with the exact contents of the card.
    pub fn shown(&self, at: Timestamp) -> AuditDraft {
        let Card { title, facts, warnings, notes, approve, reject, irreversible, .. } = &*self.card;
        let words = |texts: &[Text]| texts.iter().map(Text::words).collect::<Vec<_>>();
        let facts = facts.iter().map(|fact| {
            let mut shown = json!({ "label": fact.label, "after": fact.after.words() });
            if let Some(before) = &fact.before {
                shown["before"] = before.words().into();
            }
            shown
        });
        let card = json!({
            "title": title, "facts": facts.collect::<Vec<_>>(), "warnings": words(warnings), "notes": words(notes),
            "approve": approve, "reject": reject, "irreversible": irreversible,
        });
        let mut detail = json!({
            "action": self.name, "edition": self.edition(), "digest": self.digest, "parameters": *self.parameters, "expires_at": self.expires_at,
            "preconditions": *self.preconditions, "policy": *self.policy, "undo": self.undo.as_deref(), "card": card, "keyed": self.keyed,
        });
        if !self.evidence.is_empty() {
            detail["evidence"] = json!(*self.evidence);
        }
        self.event(AuditKind::Shown, at, None, detail)
    }

    /// Returns true if a new version replaced this record because a person edited the request in
    /// its form.
    pub fn was_edited(&self) -> bool {
        self.replaced_by.as_ref().is_some_and(|newer| newer.edited)
    }

    /// Describes a change that was stopped before it was complete: “stopped after 32 of 400”.
    pub fn stopped_after(&self) -> Option<String> {
        let stopped = self.cut_short && self.status == Status::Done;
        stopped.then(|| match &self.progress {
            Some(Progress { done, total, .. }) => format!("stopped after {done} of {total}"),
            None => "stopped before the first step".to_owned(),
        })
    }

    /// Notes on the record and on its card which approvals no longer count.
    pub fn lapse(&mut self, lapses: Vec<Lapse>) {
        if lapses.is_empty() {
            return;
        }
        let mut card = (*self.card).clone();
        for Lapse { by, why, .. } in &lapses {
            card.notes.push(Text::new().person(by.clone()).plain(format!("’s approval no longer counts: {why}.")));
        }
        self.card = card.into();
        self.lapses.extend(lapses);
    }

    /// Returns the people who have approved so far, each once, without those whose approval no longer counts.
    pub fn approved_by(&self) -> Vec<UserId> {
        let mut people = Vec::new();
        for decision in &self.decisions {
            if let (Verdict::Approved, Some(by)) = (&decision.verdict, &decision.by)
                && !people.contains(by)
                && !self.lapses.iter().any(|lapse| lapse.by == *by && decision.at <= lapse.at)
            {
                people.push(by.clone());
            }
        }
        people
    }
}
