//! An action as it is stored.

use countersign_core::{
    clock::Timestamp,
    ids::{ActionId, ApprovalId, RunId, Slot, ThreadId, UserId},
    reply::{Card, Fact, Text},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Approver, Decision, IllegalMove, Outcome, Policy, Progress, Scope, Status, Verdict, Wait};
use crate::{
    digest::Digest,
    keyring::{Keyed, Proof, RowSeal},
    standing::Under,
    store::{AuditDraft, AuditKind},
};

/// A change in the outside world. The version of its stored shape is [`ActionRecord::FORMAT`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionRecord {
    /// The version of this shape.
    pub format: u32,
    /// The action's name.
    pub id: ActionId,
    /// The one-shot key in its buttons.
    pub approval: ApprovalId,
    /// The thread it was asked for in.
    pub thread: ThreadId,
    /// The run that proposed it.
    pub run: RunId,
    /// The [`super::ActionKind::name`].
    pub name: String,
    /// The [`super::ActionKind::version`].
    pub action_version: u32,
    /// The exact change; validated, with defaults filled in.
    pub parameters: Value,
    /// The state of the target when the card was shown; read again before execution.
    pub preconditions: Value,
    /// The people who may decide.
    pub policy: Policy,
    /// The fingerprint of the change: of name, version, parameters, preconditions and policy, and since version 2 also
    /// of this action, its thread and the person who asked.
    pub digest: Digest,
    /// The key that the digest was made with; `None` in records of the first version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keyed: Option<Keyed>,
    /// The seal of the whole record, made anew with each write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<RowSeal>,
    /// The result of checking the seal and the digest.
    #[serde(skip)]
    pub proof: Proof,
    /// The status.
    pub status: Status,
    /// The number of moves; each move names the one before it.
    pub revision: u64,
    /// The card that people see.
    pub card: Card,
    /// The message the card is on.
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
    /// The time at which the request was about to leave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent_at: Option<Timestamp>,
    /// The number of times that the request was about to leave.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub sends: u32,
    /// The results of the sends whose answer, if any, did not say whether the change happened.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<String>,
    /// The progress, if the change is made in batches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// The time of that progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress_at: Option<Timestamp>,
    /// True if it was stopped before everything was done.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut_short: bool,
    /// The time at which a batch was found interrupted; kept until its requests must have arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupted_at: Option<Timestamp>,
    /// The event that it waits for, or that it waited for before the present batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<Wait>,
    /// The outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// The person who settled an unknown outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled: Option<Settlement>,
    /// The action that would undo the change, as name and parameters; worked out before execution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<Undo>,
    /// The people who were notified directly that it waits for them.
    #[serde(rename = "told", default, skip_serializing_if = "Vec::is_empty")]
    pub notified: Vec<UserId>,
    /// The things that the change is about.
    #[serde(default, skip_serializing_if = "Scope::is_empty")]
    pub scope: Scope,
    /// The people who changed it on its way here, in order. Each change made a new record with a new key; this is the
    /// last of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edits: Vec<Edit>,
    /// The key that the thread waits for, if it is not this record's: that of the version before the first edit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<ApprovalId>,
    /// The time at which more people were brought in because nobody had decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalated_at: Option<Timestamp>,
    /// The record that replaced this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced_by: Option<Replacement>,
    /// The standing approval that it was approved under, if no person was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub under: Option<Under>,
}

/// Returns true for a count of zero, which is not stored.
fn is_zero(sends: &u32) -> bool {
    *sends == 0
}

/// The replacement of a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replacement {
    /// The new record.
    pub action: ActionId,
    /// The message its card is on.
    pub slot: Slot,
    /// True if it is the same request, changed in its form; false if it is a newer request for the same thing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub edited: bool,
}

/// A change of a request by a person, before it was decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edit {
    /// The person.
    pub by: UserId,
    /// The time.
    pub at: Timestamp,
    /// The version before.
    pub from: ActionId,
    /// The differences on the card.
    pub changed: Vec<Fact>,
    /// The window it was entered in, by Slack's name: the same window sent again changes nothing more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<String>,
}

/// The person whose press settled an unknown outcome.
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
    /// The [`super::ActionKind::name`].
    pub name: String,
    /// The parameters.
    pub parameters: Value,
    /// The label of the button that offers it.
    pub label: String,
}

impl ActionRecord {
    /// The version of the stored shape.
    pub const FORMAT: u32 = 1;

    /// Returns the digest of the first version, without a key, of the record as it is now.
    pub fn computed_digest(&self) -> Digest {
        digest_of(&self.name, self.action_version, &self.parameters, &self.preconditions, &self.policy)
    }

    /// Returns the record after a move, with the revision counted up.
    ///
    /// # Errors
    ///
    /// [`IllegalMove`] if the table has no such move.
    pub fn moved(&self, to: Status) -> Result<Self, IllegalMove> {
        if !self.status.may_become(to) {
            return Err(IllegalMove { from: self.status, to });
        }
        Ok(Self { status: to, revision: self.revision + 1, ..self.clone() })
    }

    /// Returns the key of the timer that lets the card expire.
    pub fn expiry_timer(&self) -> String {
        format!("expire:{}", self.id)
    }

    /// Returns the key of the timer that ends a wait for an event.
    pub fn waiting_timer(&self) -> String {
        format!("wait:{}", self.id)
    }

    /// Returns the key of the timer that notifies the people whom the policy names.
    pub fn notification_timer(&self) -> String {
        format!("tell:{}", self.id)
    }

    /// Returns the key of the timer that reminds of the card.
    pub fn reminder_timer(&self) -> String {
        format!("remind:{}", self.id)
    }

    /// Returns the key of the timer that brings more people in.
    pub fn escalation_timer(&self) -> String {
        format!("escalate:{}", self.id)
    }

    /// Returns the keys of all timers that an open card has.
    pub fn timers(&self) -> [String; 4] {
        [self.expiry_timer(), self.reminder_timer(), self.escalation_timer(), self.notification_timer()]
    }

    /// Returns the key under which the thread waits for the decision: that of the first version.
    pub fn question(&self) -> &ApprovalId {
        self.origin.as_ref().unwrap_or(&self.approval)
    }

    /// Returns the people who may decide: those of the policy, and those who were brought in.
    pub fn approvers(&self) -> impl Iterator<Item = &Approver> {
        self.policy.approvers.iter().chain(self.brought_in())
    }

    /// Returns the people who were brought in.
    pub fn brought_in(&self) -> &[Approver] {
        let escalation = self.escalated_at.and(self.policy.escalation.as_ref());
        escalation.map_or(&[], |escalation| &escalation.approvers)
    }

    /// Counts the versions of the request, from 1.
    pub fn edition(&self) -> usize {
        self.edits.len() + 1
    }

    /// Returns true if this person asked for the change or edited the request: it is their request.
    pub fn is_request_of(&self, person: &UserId) -> bool {
        self.requested_by == *person || self.edits.iter().any(|edit| edit.by == *person)
    }

    /// Creates an event about this action, for the record.
    pub fn event(&self, kind: AuditKind, at: Timestamp, by: Option<UserId>, detail: Value) -> AuditDraft {
        AuditDraft { action: Some(self.id.clone()), ..AuditDraft::new(kind, at, by, detail) }
    }

    /// Creates the event that its card was shown, exactly as it was; for the record.
    pub fn shown(&self, at: Timestamp) -> AuditDraft {
        let Card { title, facts, warnings, notes, approve, reject, irreversible, .. } = &self.card;
        let words = |texts: &[Text]| texts.iter().map(Text::words).collect::<Vec<_>>();
        let facts = facts.iter().map(|fact| {
            let before = fact.before.as_ref().map(Text::words);
            json!({ "label": fact.label, "before": before, "after": fact.after.words() })
        });
        let card = json!({
            "title": title, "facts": facts.collect::<Vec<_>>(), "warnings": words(warnings), "notes": words(notes),
            "approve": approve, "reject": reject, "irreversible": irreversible,
        });
        let detail = json!({
            "action": self.name, "edition": self.edition(), "digest": self.digest, "parameters": self.parameters, "expires_at": self.expires_at,
            "preconditions": self.preconditions, "policy": self.policy, "undo": self.undo, "card": card, "keyed": self.keyed,
        });
        self.event(AuditKind::Shown, at, None, detail)
    }

    /// Returns true if a new version replaced it because a person changed the request in its form.
    pub fn was_edited(&self) -> bool {
        self.replaced_by.as_ref().is_some_and(|newer| newer.edited)
    }

    /// Describes a change that ended before everything was done: “stopped after 32 of 400”.
    pub fn stopped_after(&self) -> Option<String> {
        let stopped = self.cut_short && self.status == Status::Done;
        stopped.then(|| match &self.progress {
            Some(Progress { done, total, .. }) => format!("stopped after {done} of {total}"),
            None => "stopped before the first step".to_owned(),
        })
    }

    /// Returns the people who have approved so far, each once.
    pub fn approved_by(&self) -> Vec<UserId> {
        let mut people = Vec::new();
        for decision in &self.decisions {
            if let (Verdict::Approved, Some(by)) = (&decision.verdict, &decision.by)
                && !people.contains(by)
            {
                people.push(by.clone());
            }
        }
        people
    }
}

/// Returns the digest of the first version: of a change and its policy, without a key.
pub fn digest_of(name: &str, version: u32, parameters: &Value, preconditions: &Value, policy: &Policy) -> Digest {
    let policy = serde_json::to_value(policy).expect("a policy is plain data");
    Digest::of(&[&json!(1), &json!(name), &json!(version), parameters, preconditions, &policy])
}
