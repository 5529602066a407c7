//! What can be done to experiments: one file for each change, and how a change ends.
//!
//! An action's `prepare` reads and makes a card; `perform` sends one request; `probe` reads back. What they share is
//! here: the stored parameters as a type, and the translation of the client's errors into an end.
//!
//! An answer is what somebody said. A success counts as far as it tells of the change that was asked for; a refusal may come
//! from something in front of the platform, or after the change was made. So whatever is not told is read back on the spot,
//! and only what was read is claimed: [`looked_up`] after a success, [`ended_badly`] after everything else.

pub mod assign;
pub mod create;
pub mod delete;
pub mod init;
pub mod mark;
pub mod status;
pub mod update;

mod changed;
pub(super) mod choices;
mod design;
mod expects;
mod factorial;
mod fields;
mod lists;
pub(crate) mod plan;
mod several;
mod stratified;
mod surroundings;
mod wanted;
mod written;

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;

pub(crate) use countersign_capabilities::{
    moment,
    parameters::{given, missing},
};
use countersign_core::reply::{Fact, Text};
use countersign_graph::action::{ActionKind, ActionRecord, ErrorKind, Outcome, Performed, Probed, Recovery};

use super::{access, replies::outcomes};
use crate::upgrade::{client::UpgradeClient, error::Error, experiment::ExperimentId};

/// The stored parameters as a type.
pub(super) fn stored<T: DeserializeOwned>(record: &ActionRecord) -> Result<T, Outcome> {
    serde_json::from_value(record.parameters.clone())
        .map_err(|_| failed(ErrorKind::Execution, outcomes::unreadable_record()))
}

/// It did not happen.
pub(super) fn failed(error: ErrorKind, summary: Text) -> Outcome {
    Outcome::Failed { error, summary }
}

/// It happened; the card's own words say so.
fn done(record: &ActionRecord, result: Value) -> Outcome {
    Outcome::Done { result, summary: Text::from(record.card.done.as_str()) }
}

/// A read before a change failed; nothing was sent.
pub(super) fn unread(error: &Error) -> Outcome {
    failed(access::kind(error), outcomes::not_done(error))
}

/// How a change ended that the client reports as an error.
pub(super) async fn ended_badly(action: &dyn ActionKind, record: &ActionRecord, error: Error) -> Performed {
    match error {
        Error::NoAnswer { reason } => Performed::NoAnswer { detail: reason },
        Error::Unclear { reason } => looked_up(action, record, reason).await,
        error @ (Error::Unavailable { .. } | Error::SignIn(_)) => not_sent(record, &error),
        error => Performed::Ended(after_a_refusal(action, record, &error).await),
    }
}

/// The request did not leave. If an earlier one did, that is still to be settled.
pub(super) fn not_sent(record: &ActionRecord, error: &Error) -> Performed {
    match record.sends {
        0 | 1 => Performed::Ended(unread(error)),
        _ => Performed::NoAnswer { detail: "UpGrade could not be reached".to_owned() },
    }
}

/// Reads back a change whose answer does not say that it was made. What cannot be seen yet is looked for again later.
async fn looked_up(action: &dyn ActionKind, record: &ActionRecord, instead: String) -> Performed {
    match action.probe(record).await {
        Probed::Happened(outcome) => Performed::Ended(outcome),
        _ => Performed::NoAnswer { detail: instead },
    }
}

/// What can be said of a change that was refused: what reading back shows.
async fn after_a_refusal(action: &dyn ActionKind, record: &ActionRecord, error: &Error) -> Outcome {
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

/// Reading back failed.
fn cannot_read_back(error: &Error) -> Probed {
    let reason = match error {
        Error::Unavailable { reason } => reason.clone(),
        error => error.to_string(),
    };
    Probed::CannotTell { evidence: outcomes::cannot_read_back(&reason) }
}

/// Whether an experiment that a change did not find is gone: the change is not the only one who says so.
async fn is_gone(client: &UpgradeClient, id: ExperimentId, error: &Error) -> bool {
    matches!(error, Error::NotFound { .. }) && matches!(client.single(id).await, Err(Error::NotFound { .. }))
}

/// How long a request may still arrive after it left: the client gives up before.
pub(super) fn in_flight(client: &UpgradeClient) -> Duration {
    client.timeout() + Duration::from_secs(2)
}

/// When a change of several requests may still send one. What is left after that waits until the change is read back, so
/// that [`Window::in_flight`] holds for all of them.
struct Window(tokio::time::Instant);

impl Window {
    /// Opens now, for as long as one call may take.
    fn open(client: &UpgradeClient) -> Self {
        Self(tokio::time::Instant::now() + client.timeout())
    }

    /// Nothing, if another request may leave.
    fn is_open(&self) -> Result<(), Error> {
        match tokio::time::Instant::now() < self.0 {
            true => Ok(()),
            false => Err(Error::NoAnswer { reason: "the platform is slow; the rest waits".to_owned() }),
        }
    }

    /// How long a request may still arrive after the window was opened.
    fn in_flight(client: &UpgradeClient) -> Duration {
        client.timeout() + in_flight(client)
    }
}

/// A line of a card about something new.
pub(super) fn fact(label: &str, after: impl Into<Text>) -> Fact {
    Fact { label: label.to_owned(), before: None, after: after.into() }
}

/// A line of a card about a change.
fn change(label: &str, before: impl Into<Text>, after: impl Into<Text>) -> Fact {
    Fact { label: label.to_owned(), before: Some(before.into()), after: after.into() }
}
