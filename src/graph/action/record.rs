//! An action as it is stored.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Decision, IllegalMove, Outcome, Policy, Progress, Scope, Status, Verdict};
use crate::{
    clock::Timestamp,
    graph::{
        digest::Digest,
        store::{AuditDraft, AuditKind},
    },
    ids::{ActionId, ApprovalId, RunId, Slot, ThreadId, UserId},
    reply::{Card, Fact},
};

/// A change in the outside world. The version of its stored shape is [`ActionRecord::FORMAT`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionRecord {
    /// The version of this shape.
    pub format: u32,
    /// Its name.
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
    /// Exactly what will be done; validated, with defaults filled in.
    pub parameters: Value,
    /// What was true of the target when the card was shown; read again before execution.
    pub preconditions: Value,
    /// Who may decide.
    pub policy: Policy,
    /// The fingerprint of name, version, parameters, preconditions and policy.
    pub digest: Digest,
    /// Where it stands.
    pub status: Status,
    /// Counts the moves; each move names the one before it.
    pub revision: u64,
    /// What people see.
    pub card: Card,
    /// The message the card is on.
    pub slot: Slot,
    /// Who asked.
    pub requested_by: UserId,
    /// When.
    pub requested_at: Timestamp,
    /// When the card goes.
    pub expires_at: Timestamp,
    /// Who decided what, in order.
    #[serde(default)]
    pub decisions: Vec<Decision>,
    /// When the request was about to leave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent_at: Option<Timestamp>,
    /// How far it is, if it is made in portions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// When it was as far as that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress_at: Option<Timestamp>,
    /// When it was found that a portion had been interrupted; until its requests must have arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupted_at: Option<Timestamp>,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// The action that would put things back, as name and parameters; worked out before execution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<Undo>,
    /// What it is about.
    #[serde(default, skip_serializing_if = "Scope::is_empty")]
    pub scope: Scope,
    /// Who changed it on its way here, in order. Each change made a new record with a new key; this is the last of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edits: Vec<Edit>,
    /// The key that the thread waits for, if it is not this record's: that of the version before the first edit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<ApprovalId>,
    /// The record that took this one's place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced_by: Option<Replacement>,
}

/// What took the place of a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replacement {
    /// The new record.
    pub action: ActionId,
    /// The message its card is on.
    pub slot: Slot,
}

/// A change of a request by a person, before it was decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edit {
    /// Who.
    pub by: UserId,
    /// When.
    pub at: Timestamp,
    /// The version before.
    pub from: ActionId,
    /// What is different on the card.
    pub changed: Vec<Fact>,
}

/// The action that puts things back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undo {
    /// The [`super::ActionKind::name`].
    pub name: String,
    /// Its parameters.
    pub parameters: Value,
    /// The label of the button that offers it.
    pub label: String,
}

impl ActionRecord {
    /// The version of the stored shape.
    pub const FORMAT: u32 = 1;

    /// The digest of what the record says now; differs from [`Self::digest`] if anything was changed.
    pub fn computed_digest(&self) -> Digest {
        digest_of(&self.name, self.action_version, &self.parameters, &self.preconditions, &self.policy)
    }

    /// The record after a move, with the revision counted up.
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

    /// The key of the timer that lets the card expire.
    pub fn expiry_timer(&self) -> String {
        format!("expire:{}", self.id)
    }

    /// The key of the timer that reminds of the card.
    pub fn reminder_timer(&self) -> String {
        format!("remind:{}", self.id)
    }

    /// The key of the timer that brings more people in.
    pub fn escalation_timer(&self) -> String {
        format!("escalate:{}", self.id)
    }

    /// The keys of all timers that an open card has.
    pub fn timers(&self) -> [String; 3] {
        [self.expiry_timer(), self.reminder_timer(), self.escalation_timer()]
    }

    /// The key under which the thread waits for the decision: that of the first version.
    pub fn question(&self) -> &ApprovalId {
        self.origin.as_ref().unwrap_or(&self.approval)
    }

    /// Counts the versions of the request, from 1.
    pub fn edition(&self) -> usize {
        self.edits.len() + 1
    }

    /// Whether this person asked for it, or changed what was asked for: it is their request.
    pub fn is_request_of(&self, person: &UserId) -> bool {
        self.requested_by == *person || self.edits.iter().any(|edit| edit.by == *person)
    }

    /// An event about this action, for the record.
    pub fn event(&self, kind: AuditKind, at: Timestamp, by: Option<UserId>, detail: Value) -> AuditDraft {
        AuditDraft { at, kind, by, action: Some(self.id.clone()), detail }
    }

    /// Who approved so far, each person once.
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

/// The digest of a change and of who may allow it.
pub fn digest_of(name: &str, version: u32, parameters: &Value, preconditions: &Value, policy: &Policy) -> Digest {
    let policy = serde_json::to_value(policy).expect("a policy is plain data");
    Digest::of(&[&json!(1), &json!(name), &json!(version), parameters, preconditions, &policy])
}
