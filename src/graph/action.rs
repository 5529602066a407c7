//! A change in the outside world, from the proposal to its outcome.
//!
//! An [`ActionRecord`] is the only way to change anything. It moves one way, each move is a compare-and-set in the
//! store, and the legal moves are one table, [`Status::may_become`]. `Intent` is written before the request leaves, so
//! a record that is found there after a crash says: *the request may or may not have arrived*. What is done then is the
//! action's own choice, its [`Recovery`].
//!
//! What an action is made of (parameters, card, request) is an [`ActionKind`], written by a capability.

use std::{fmt, time::Duration};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    digest::Digest,
    store::{AuditDraft, AuditKind},
};
use crate::{
    clock::Timestamp,
    ids::{ActionId, ApprovalId, RunId, Slot, ThreadId, UserId},
    reply::{Card, Reply, Text},
};

/// Where an action stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Worked out, not yet shown.
    Proposed,
    /// On a card, waiting for people.
    Pending,
    /// Approved by everyone who is needed; not yet begun.
    Approved,
    /// The request is about to leave, or has left.
    Intent,
    /// It happened.
    Done,
    /// It did not happen, and why is known.
    Failed,
    /// It may have happened; a person has to look.
    Unknown,
    /// A person said no.
    Rejected,
    /// Nobody answered in time.
    Expired,
    /// A newer request for the same thing took its place.
    Superseded,
    /// Withdrawn before anybody decided.
    Cancelled,
}

impl Status {
    /// Every status, in the order of a life.
    pub const ALL: [Self; 11] = [
        Self::Proposed,
        Self::Pending,
        Self::Approved,
        Self::Intent,
        Self::Done,
        Self::Failed,
        Self::Unknown,
        Self::Rejected,
        Self::Expired,
        Self::Superseded,
        Self::Cancelled,
    ];

    /// The legal moves: what has no arm cannot happen.
    pub fn may_become(self, next: Self) -> bool {
        use Status::*;
        match (self, next) {
            (Proposed, Pending | Cancelled) => true,
            (Pending, Pending) => true, // one of several approvals counted
            (Pending, Approved | Rejected | Expired | Superseded | Cancelled) => true,
            (Approved, Intent) => true,
            (Approved, Failed | Cancelled) => true, // refused at execution: changed target, digest, stop
            (Intent, Intent) => true,               // sent again, with evidence that it had not happened
            (Intent, Done | Failed | Unknown) => true,
            (Unknown, Done | Failed) => true, // a person, or a later look, settled it
            _ => false,
        }
    }

    /// Whether the record is waiting for a person.
    pub fn is_open(self) -> bool {
        self == Self::Pending
    }

    /// The word for it, as stored.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Proposed => "proposed",
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Intent => "intent",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
            Self::Rejected => "rejected",
            Self::Expired => "expired",
            Self::Superseded => "superseded",
            Self::Cancelled => "cancelled",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Who may decide about an action. Part of its digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// Any of these may decide. Empty: nobody may.
    pub approvers: Vec<Approver>,
    /// Whether the person who asked may approve.
    pub own_request: bool,
    /// How many different people must approve.
    pub needed: u32,
    /// Whether a typed “yes” counts; irreversible actions need the button.
    pub typed: bool,
}

/// A person or a set of people in a [`Policy`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approver {
    /// Everybody in the channel of the request.
    Channel,
    /// The person who asked.
    Requester,
    /// This person.
    User(UserId),
    /// The members of this Slack user group (`S…`).
    Group(String),
}

/// What a person, or the clock, made of a pending action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Do it.
    Approved,
    /// Do not.
    Rejected {
        /// Why, in the person's words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Nobody answered in time.
    Expired,
    /// Withdrawn.
    Cancelled,
    /// A newer request took its place.
    Superseded,
}

/// One decision, as recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// Who; nobody for an expiry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<UserId>,
    /// When it arrived.
    pub at: Timestamp,
    /// What.
    pub verdict: Verdict,
}

/// How an action ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Outcome {
    /// It happened; `result` is what the system answered or what was read back.
    Done {
        /// For the log and for later steps: names and ids, no echoes.
        result: Value,
        /// One sentence for people.
        summary: Text,
    },
    /// It did not happen.
    Failed {
        /// What to do about it.
        error: ErrorKind,
        /// One sentence for people, saying what to do.
        summary: Text,
    },
    /// It may have happened.
    Unknown {
        /// What was sent, what was read back, what to do.
        summary: Text,
    },
}

impl Outcome {
    /// The sentence for people.
    pub fn summary(&self) -> &Text {
        match self {
            Self::Done { summary, .. } | Self::Failed { summary, .. } | Self::Unknown { summary } => summary,
        }
    }

    /// The status an action has after it.
    pub fn status(&self) -> Status {
        match self {
            Self::Done { .. } => Status::Done,
            Self::Failed { .. } => Status::Failed,
            Self::Unknown { .. } => Status::Unknown,
        }
    }
}

/// What kind of thing went wrong, by what can be done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The platform answered with an error of its own.
    Api,
    /// The platform does not accept our credentials.
    Auth,
    /// A parameter is not valid.
    Validation,
    /// What was named does not exist.
    NotFound,
    /// The platform cannot be reached.
    Network,
    /// The request cannot be understood or served.
    UserInput,
    /// The action could not be carried out.
    Execution,
    /// None of these.
    Unknown,
}

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
    /// The [`ActionKind::name`].
    pub name: String,
    /// The [`ActionKind::version`].
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
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// The action that would put things back, as name and parameters; worked out before execution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<Undo>,
}

/// The action that puts things back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undo {
    /// The [`ActionKind::name`].
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

/// A move that the table does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an action that is {from} cannot become {to}")]
pub struct IllegalMove {
    /// Where it stood.
    pub from: Status,
    /// Where it was to go.
    pub to: Status,
}

/// A validated change, ready for its card.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Proposal {
    /// Exactly what will be done.
    pub parameters: Value,
    /// What is true of the target now.
    pub preconditions: Value,
    /// What people will see.
    pub card: Card,
    /// What would put things back.
    pub undo: Option<Undo>,
}

/// Why a change cannot be proposed.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    /// Parameters are missing: ask for the first, keep the rest.
    Missing(Vec<MissingParameter>),
    /// It is not to be done, and why: already so, not allowed, unknown name.
    Refused {
        /// What is wrong.
        error: ErrorKind,
        /// What to say, with a way on.
        reply: Reply,
    },
}

/// A parameter that a person still has to give.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MissingParameter {
    /// Its name in the action's schema.
    pub name: String,
    /// How to ask for it.
    pub question: String,
    /// What can be answered, where that is known; drawn as buttons.
    #[serde(default)]
    pub options: Vec<String>,
}

/// What became of one attempt.
#[derive(Clone, Debug, PartialEq)]
pub enum Performed {
    /// It ended, well or badly.
    Ended(Outcome),
    /// The request left and no answer came.
    NoAnswer {
        /// What is known, for the operator's log.
        detail: String,
    },
}

/// What reading back showed after an attempt without an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Probed {
    /// It did happen.
    Happened(Outcome),
    /// It did not happen, and can be sent again.
    DidNotHappen,
    /// It cannot be told.
    CannotTell {
        /// What was read back.
        evidence: Text,
    },
}

/// What to do with an action that is found in `Intent` without an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// Send it again with the same key: the target recognises a repeat, or repeating changes nothing.
    Idempotent,
    /// Read back, after the time a request can be in flight.
    Probe {
        /// How long a request may still arrive after it left.
        in_flight: Duration,
    },
    /// A person has to look.
    Ask,
}

/// One thing that can be done to the outside world: its parameters, its card, its request.
#[async_trait]
pub trait ActionKind: Send + Sync {
    /// Its name, such as `update_experiment_status`.
    fn name(&self) -> &'static str;

    /// Counts up when parameters or request change their meaning.
    fn version(&self) -> u32 {
        1
    }

    /// One sentence for the language model: when to use it.
    fn description(&self) -> &'static str;

    /// The JSON schema of the parameters a person or model gives.
    fn schema(&self) -> Value;

    /// Whether it cannot be put back.
    fn irreversible(&self) -> bool {
        false
    }

    /// Checks the parameters against the live system and works out the exact change. Reads only.
    ///
    /// # Errors
    ///
    /// [`PrepareError`] says whether a person, or time, can help.
    async fn prepare(&self, parameters: &Value) -> Result<Proposal, PrepareError>;

    /// Reads what [`Proposal::preconditions`] holds, again. A difference refuses the execution.
    ///
    /// # Errors
    ///
    /// If the system cannot be read; nothing has been sent.
    async fn preconditions(&self, record: &ActionRecord) -> Result<Value, Outcome>;

    /// Sends the request, once.
    async fn perform(&self, record: &ActionRecord) -> Performed;

    /// How an attempt without an answer is settled.
    fn recovery(&self) -> Recovery;

    /// Reads back whether it happened.
    async fn probe(&self, record: &ActionRecord) -> Probed;
}

/// Why [`ActionKind::prepare`] has no proposal.
#[derive(Clone, Debug, PartialEq)]
pub enum PrepareError {
    /// A person can help.
    Refusal(Refusal),
    /// The system cannot be asked at the moment.
    Unavailable {
        /// What is wrong.
        error: ErrorKind,
        /// What to say.
        reply: Reply,
    },
}

impl From<Refusal> for PrepareError {
    fn from(refusal: Refusal) -> Self {
        Self::Refusal(refusal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ended_action_stays_ended() {
        for ended in [Status::Done, Status::Failed, Status::Rejected, Status::Expired, Status::Superseded] {
            for next in Status::ALL {
                assert!(!ended.may_become(next), "{ended} → {next}");
            }
        }
    }

    #[test]
    fn nothing_is_sent_without_an_approval() {
        let before_intent: Vec<_> = Status::ALL.into_iter().filter(|s| s.may_become(Status::Intent)).collect();
        assert_eq!(before_intent, [Status::Approved, Status::Intent]);
        let before_approved: Vec<_> = Status::ALL.into_iter().filter(|s| s.may_become(Status::Approved)).collect();
        assert_eq!(before_approved, [Status::Pending]);
    }
}
