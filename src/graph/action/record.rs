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
    /// The fingerprint of the change: of name, version, parameters, preconditions and policy, and since version 2 also of
    /// this action, its thread and who asked.
    pub digest: Digest,
    /// The key that the digest was made with; none in records of the first version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keyed: Option<Keyed>,
    /// The seal of the whole record, made anew with each write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<RowSeal>,
    /// What is known of where the record is from.
    #[serde(skip)]
    pub proof: Proof,
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
    /// How often the request was about to leave.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub sends: u32,
    /// What came of each time that the request left and its answer, if any, did not say whether it happened.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<String>,
    /// How far it is, if it is made in batches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// When it was as far as that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress_at: Option<Timestamp>,
    /// Whether it was stopped before everything was done.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut_short: bool,
    /// When it was found that a batch had been interrupted; until its requests must have arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupted_at: Option<Timestamp>,
    /// The event that it waits for, or that it waited for before the batch in hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<Wait>,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// Who settled an outcome that was not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled: Option<Settlement>,
    /// The action that would put things back, as name and parameters; worked out before execution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<Undo>,
    /// Who was told directly that it waits for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub told: Vec<UserId>,
    /// What it is about.
    #[serde(default, skip_serializing_if = "Scope::is_empty")]
    pub scope: Scope,
    /// Who changed it on its way here, in order. Each change made a new record with a new key; this is the last of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edits: Vec<Edit>,
    /// The key that the thread waits for, if it is not this record's: that of the version before the first edit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<ApprovalId>,
    /// When more people were brought in, since nobody had decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalated_at: Option<Timestamp>,
    /// The record that took this one's place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced_by: Option<Replacement>,
    /// The standing approval that it was approved under, if nobody was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub under: Option<Under>,
}

/// What says nothing is not stored.
fn is_zero(sends: &u32) -> bool {
    *sends == 0
}

/// What took the place of a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replacement {
    /// The new record.
    pub action: ActionId,
    /// The message its card is on.
    pub slot: Slot,
    /// Whether it is the same request, changed in its form; if not, it is a newer request for the same thing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub edited: bool,
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
    /// The window it was entered in, by Slack's name: the same window sent again changes nothing more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<String>,
}

/// Whose press settled an outcome that was not known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settlement {
    /// Who.
    pub by: UserId,
    /// When.
    pub at: Timestamp,
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

    /// The digest of the first version, without a key, of what the record says now.
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

    /// The key of the timer that ends a wait for an event.
    pub fn waiting_timer(&self) -> String {
        format!("wait:{}", self.id)
    }

    /// The key of the timer that has those told who are named by the policy.
    pub fn telling_timer(&self) -> String {
        format!("tell:{}", self.id)
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
    pub fn timers(&self) -> [String; 4] {
        [self.expiry_timer(), self.reminder_timer(), self.escalation_timer(), self.telling_timer()]
    }

    /// The key under which the thread waits for the decision: that of the first version.
    pub fn question(&self) -> &ApprovalId {
        self.origin.as_ref().unwrap_or(&self.approval)
    }

    /// Those who may decide: those of the policy, and those who were brought in.
    pub fn approvers(&self) -> impl Iterator<Item = &Approver> {
        self.policy.approvers.iter().chain(self.brought_in())
    }

    /// Those who were brought in.
    pub fn brought_in(&self) -> &[Approver] {
        let escalation = self.escalated_at.and(self.policy.escalation.as_ref());
        escalation.map_or(&[], |escalation| &escalation.approvers)
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
        AuditDraft { action: Some(self.id.clone()), ..AuditDraft::new(kind, at, by, detail) }
    }

    /// That its card was shown, exactly as it stood on it; for the record.
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

    /// Whether a new version took its place, since somebody changed the request in its form.
    pub fn was_edited(&self) -> bool {
        self.replaced_by.as_ref().is_some_and(|newer| newer.edited)
    }

    /// What is said of what ended before everything was done: “stopped after 32 of 400”.
    pub fn stopped_after(&self) -> Option<String> {
        let stopped = self.cut_short && self.status == Status::Done;
        stopped.then(|| match &self.progress {
            Some(Progress { done, total, .. }) => format!("stopped after {done} of {total}"),
            None => "stopped before the first step".to_owned(),
        })
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

/// The digest of the first version: of a change and of who may allow it, without a key.
pub fn digest_of(name: &str, version: u32, parameters: &Value, preconditions: &Value, policy: &Policy) -> Digest {
    let policy = serde_json::to_value(policy).expect("a policy is plain data");
    Digest::of(&[&json!(1), &json!(name), &json!(version), parameters, preconditions, &policy])
}
