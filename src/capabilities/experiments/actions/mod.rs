//! The actions on experiments: one file for each change, and the translation of errors into outcomes.
//!
//! An action's `prepare` reads and makes a card; `perform` sends one request; `probe` reads back. Shared by all are
//! the stored parameters as a type, and the translation of the client's errors into an outcome.
//!
//! An answer alone proves little. A success counts only if it describes the requested change; a refusal may come from
//! a proxy in front of the platform, or after the change was made. So an unclear change is read back at once, and
//! only the state that was read is claimed: [`read_back`] after a success, [`performed_with_error`] after everything else.

pub mod assign;
pub mod create;
pub mod delete;
pub mod init;
pub mod mark;
pub mod status;
pub mod update;

mod apply_changes;
mod card_differences;
pub(super) mod choices;
mod design;
mod expects;
mod factorial;
mod fields;
mod lists;
pub(crate) mod plan;
mod requested_changes;
mod several;
mod stratified;
mod surroundings;

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;

pub(crate) use countersign_capabilities::{
    moment,
    parameters::{missing, non_blank},
};
use countersign_core::reply::{Fact, Text};
use countersign_graph::action::{ActionKind, ActionRecord, ErrorKind, Outcome, Performed, Probed, Recovery};

use super::{access, replies::outcomes};
use crate::upgrade::{client::UpgradeClient, error::Error, experiment::ExperimentId};

/// Reads the stored parameters as a type.
pub(super) fn stored_parameters<T: DeserializeOwned>(record: &ActionRecord) -> Result<T, Outcome> {
    serde_json::from_value(record.parameters.clone())
        .map_err(|_| failed(ErrorKind::Execution, outcomes::unreadable_record()))
}

/// Returns the outcome of a change that did not happen.
pub(super) fn failed(error: ErrorKind, summary: Text) -> Outcome {
    Outcome::Failed { error, summary }
}

/// Returns the outcome of a change that happened; the summary is the card's own.
fn done(record: &ActionRecord, result: Value) -> Outcome {
    Outcome::Done { result, summary: Text::from(record.card.done.as_str()) }
}

/// Returns the outcome if a read before the change failed; nothing was sent.
pub(super) fn read_failed(error: &Error) -> Outcome {
    failed(access::kind(error), outcomes::not_done(error))
}

/// Returns the end of a change for which the client reports an error.
pub(super) async fn performed_with_error(action: &dyn ActionKind, record: &ActionRecord, error: Error) -> Performed {
    match error {
        Error::NoAnswer { reason } => Performed::NoAnswer { detail: reason },
        Error::Unclear { reason } => read_back(action, record, reason).await,
        error @ (Error::Unavailable { .. } | Error::SignIn(_)) => not_sent(record, &error),
        error => Performed::Ended(outcome_after_refusal(action, record, &error).await),
    }
}

/// Returns the end of a change whose request was not sent. If an earlier one was, the outcome is still open.
pub(super) fn not_sent(record: &ActionRecord, error: &Error) -> Performed {
    match record.sends {
        0 | 1 => Performed::Ended(read_failed(error)),
        _ => Performed::NoAnswer { detail: "UpGrade could not be reached".to_owned() },
    }
}

/// Reads back a change that its answer does not confirm. If it is not visible yet, it is looked for again later.
async fn read_back(action: &dyn ActionKind, record: &ActionRecord, instead: String) -> Performed {
    match action.probe(record).await {
        Probed::Happened(outcome) => Performed::Ended(outcome),
        _ => Performed::NoAnswer { detail: instead },
    }
}

/// Returns the outcome of a refused change as reading back shows it.
async fn outcome_after_refusal(action: &dyn ActionKind, record: &ActionRecord, error: &Error) -> Outcome {
    let kind = access::kind(error);
    if action.recovery() == Recovery::Idempotent {
        return failed(kind, outcomes::not_looked_up(error)); // there is nothing to read back
    }
    match action.probe(record).await {
        Probed::Happened(Outcome::Done { result, summary }) => {
            Outcome::Done { result, summary: outcomes::done_all_the_same(summary, error) }
        }
        Probed::Happened(outcome) => outcome,
        Probed::DidNotHappen => failed(kind, outcomes::refused_and_looked(error)),
        Probed::Unfinished { evidence } => failed(kind, outcomes::refused_in_part(error, evidence)),
        Probed::Otherwise { evidence } | Probed::CannotTell { evidence } => {
            Outcome::Unknown { summary: outcomes::refused_and_open(error, evidence) }
        }
    }
}

/// Returns the evidence that reading back failed.
fn cannot_read_back(error: &Error) -> Probed {
    let reason = match error {
        Error::Unavailable { reason } => reason.clone(),
        error => error.to_string(),
    };
    Probed::CannotTell { evidence: outcomes::cannot_read_back(&reason) }
}

/// Returns true if an experiment that a change did not find is not found by a read either.
async fn is_gone(client: &UpgradeClient, id: ExperimentId, error: &Error) -> bool {
    matches!(error, Error::NotFound { .. }) && matches!(client.single(id).await, Err(Error::NotFound { .. }))
}

/// Returns the time after which a sent request can no longer arrive: the client gives up earlier.
pub(super) fn in_flight(client: &UpgradeClient) -> Duration {
    client.timeout() + Duration::from_secs(2)
}

/// The time within which a change of several requests may send another one. The remaining requests wait until the
/// change is read back, so that [`Window::in_flight`] holds for all of them.
struct Window(tokio::time::Instant);

impl Window {
    /// Opens the window now, for as long as one call may take.
    fn open(client: &UpgradeClient) -> Self {
        Self(tokio::time::Instant::now() + client.timeout())
    }

    /// Returns an error if no further request may be sent.
    fn ensure_open(&self) -> Result<(), Error> {
        match tokio::time::Instant::now() < self.0 {
            true => Ok(()),
            false => Err(Error::NoAnswer { reason: "the platform is slow; the rest waits".to_owned() }),
        }
    }

    /// Returns the time after opening in which a request may still arrive.
    fn in_flight(client: &UpgradeClient) -> Duration {
        client.timeout() + in_flight(client)
    }
}

/// Returns a line of a card about a new value.
pub(super) fn fact(label: &str, after: impl Into<Text>) -> Fact {
    Fact { label: label.to_owned(), before: None, after: after.into() }
}

/// Returns a line of a card about a changed value.
fn change(label: &str, before: impl Into<Text>, after: impl Into<Text>) -> Fact {
    Fact { label: label.to_owned(), before: Some(before.into()), after: after.into() }
}
