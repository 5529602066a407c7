//! The kind of action that a program asks for and carries out itself.
//!
//! The engine only waits: for the claim, and then for the report of how it went. Both are written by the API
//! ([`ActionRecord::claimed`](countersign_graph::action::ActionRecord::claimed)).

use std::time::Duration;

use async_trait::async_trait;
use countersign_core::{
    clock::Timestamp,
    ids::UserId,
    reply::{Reply, Text},
};
use countersign_graph::action::{
    ActionInfo, ActionKind, ActionRecord, Awaited, Batch, Batches, CLAIMED_BY, ErrorKind, Outcome, PrepareError,
    Proposal, Reader, Refusal, Scope, WaitEnd,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{asked::Asked, card};

/// The name of the kind.
pub const NAME: &str = "outside_change";

/// The beginning of the context of a change, before the name of its policy.
pub const CONTEXT: &str = "api:";

/// The time within which an outcome has to be reported after the claim.
pub const REPORT_WITHIN: Duration = Duration::from_secs(3600);

/// The longest time that the whole change takes.
const LONGEST: Duration = Duration::from_secs(2 * 3600);

/// A change that a program asked for, as it is approved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutsideChange {
    /// The id of the request.
    pub id: String,
    /// The name of the key.
    pub key: String,
    /// The digest of the payload.
    pub payload_digest: String,
    /// The seconds for which the approval may be claimed.
    pub claim_within: u64,
    /// The end of the request.
    pub expires_at: Timestamp,
    /// The address from which it was asked for.
    pub asked_from: String,
    /// The hash of its `Idempotency-Key`.
    pub idempotency: String,
    /// What was asked for.
    #[serde(flatten)]
    pub asked: Asked,
    /// What people decided about the same target a moment before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Text>,
}

impl OutsideChange {
    /// Returns the change of a record; `None` if it is of another kind.
    pub fn of(record: &ActionRecord) -> Option<Self> {
        (record.name == NAME).then(|| Self::deserialize(&*record.parameters).ok()).flatten()
    }
}

/// The kind of action.
#[derive(Clone, Copy, Debug)]
pub struct OutsideChangeKind;

#[async_trait]
impl ActionKind for OutsideChangeKind {
    fn info(&self) -> ActionInfo {
        ActionInfo::new(NAME, "A change that a program asks for over the API and carries out itself.")
    }

    fn schema(&self) -> Value {
        Value::Bool(false) // no person and no model can ask for it
    }

    async fn prepare(&self, parameters: &Value, _: Option<&Reader>) -> Result<Proposal, PrepareError> {
        let Ok(change) = OutsideChange::deserialize(parameters) else {
            let reply = Reply::text("Only a program can ask for this.");
            return Err(Refusal::Refused { error: ErrorKind::UserInput, reply }.into());
        };
        let Asked { policy, change: asked, .. } = &change.asked;
        let scope = Scope::of(format!("{CONTEXT}{policy}:{}", asked.target)).from_outside();
        let scope = scope.in_context(format!("{CONTEXT}{policy}")).ends_at(change.expires_at);
        Ok(Proposal { scope, ..Proposal::new(&change, card::card(&change)) })
    }

    async fn preconditions(&self, record: &ActionRecord) -> Result<Value, Outcome> {
        Ok((*record.preconditions).clone()) // its program checks what it is about to change
    }

    fn claimed_within(&self, record: &ActionRecord) -> Option<Duration> {
        Some(OutsideChange::of(record).map_or(Duration::ZERO, |change| Duration::from_secs(change.claim_within)))
    }

    fn batches(&self) -> Option<&dyn Batches> {
        Some(self)
    }
}

#[async_trait]
impl Batches for OutsideChangeKind {
    async fn next(&self, record: &ActionRecord, _: bool) -> Batch {
        let is_overdue = record.waits.as_ref().is_some_and(|wait| wait.end == Some(WaitEnd::Overdue));
        match &record.progress {
            Some(progress) if !is_overdue => {
                let (source, key) = (CLAIMED_BY.to_owned(), record.id.to_string());
                Batch::Waits(progress.clone(), Awaited { source, key, within: REPORT_WITHIN })
            }
            _ => Batch::Ended(unreported(&record.requested_by)),
        }
    }

    fn in_flight(&self) -> Duration {
        Duration::ZERO
    }

    fn longest(&self) -> Duration {
        LONGEST
    }

    fn stopped(&self, record: &ActionRecord, by: Option<&UserId>) -> Outcome {
        match by {
            Some(by) => {
                let summary = Text::from("Stopped by ").person(by.clone()).plain(" after ");
                let summary = summary
                    .person(record.requested_by.clone())
                    .plain(" had taken it, so it may have been carried out.");
                Outcome::Unknown { summary }
            }
            None => unreported(&record.requested_by),
        }
    }
}

fn unreported(by: &UserId) -> Outcome {
    let summary = Text::new()
        .person(by.clone())
        .plain(" took it and did not report how it went, so it may have been carried out.");
    Outcome::Unknown { summary }
}
