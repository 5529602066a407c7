//! The actions on experiments, one module each, and what they share: turning the client's errors into
//! outcomes.
//!
//! An action's `prepare` reads the current state and builds the card, `send` makes the change, and reading back shows
//! whether it happened. [`one`] is for changes to one experiment, [`several`] for those to more.
//!
//! An answer alone proves little. A success counts only if it describes the requested change; a refusal may come from a
//! proxy in front of the platform, or after the change was made. A change with an unclear result is therefore read back
//! at once, and an outcome reports only what was read: [`read_back`] after a success, [`performed_with_error`] after an
//! error.

pub mod assign;
pub mod create;
pub mod delete;
pub mod init;
pub mod mark;
pub mod status;
pub mod update;

mod apply_changes;
pub(crate) mod card_differences;
pub(super) mod choices;
pub(crate) mod copy;
mod design;
mod end_date;
mod expects;
mod factorial;
mod fields;
mod lists;
mod one;
pub(crate) mod plan;
mod requested_changes;
mod requested_design;
mod several;
mod stratified;
pub(crate) mod surroundings;

use std::time::Duration;

pub(crate) use countersign_capabilities::{
    dates,
    parameters::{missing, non_blank},
};
use countersign_core::reply::Text;
use countersign_graph::action::{ActionKind, ActionRecord, ErrorKind, Outcome, Performed, Probed, Reader, Recovery};
use jiff::tz::TimeZone;
use serde::Serialize;
use serde_json::{Value, json};

use self::surroundings::Claims;
use super::{access, replies::outcomes};
use crate::upgrade::{
    client::UpgradeClient,
    error::Error,
    experiment::{ExperimentId, View},
};

/// Returns parameters in their stored form, which leaves out those that are not given.
pub(crate) fn compact(parameters: impl Serialize) -> Value {
    let mut parameters = json!(parameters);
    if let Some(all) = parameters.as_object_mut() {
        all.retain(|_, value| !value.is_null());
    }
    parameters
}

/// Returns the time zone of the person who asks.
fn zone(reader: Option<&Reader>) -> TimeZone {
    dates::time_zone(reader.and_then(|reader| reader.zone.as_deref()))
}

/// Reads an experiment again, and what its card says: the values of `state`, and the other experiments at its points.
pub(super) async fn shown_now(
    client: &UpgradeClient,
    experiment: ExperimentId,
    record: &ActionRecord,
    state: fn(&View) -> Value,
) -> Result<Value, Outcome> {
    let view = client.single(experiment).await.map_err(|error| read_failed(&error))?.view;
    Claims::about(&view).note_now(client, record, state(&view)).await
}

/// Returns the outcome of a change that did not happen.
pub(super) fn failed(error: ErrorKind, summary: Text) -> Outcome {
    Outcome::Failed { error, summary }
}

/// Returns the outcome of a change that was not sent because a read before it failed.
pub(super) fn read_failed(error: &Error) -> Outcome {
    failed(access::kind(error), outcomes::not_done(error))
}

/// Returns the result of a change for which the client reported an error.
pub(super) async fn performed_with_error(action: &dyn ActionKind, record: &ActionRecord, error: Error) -> Performed {
    match error {
        Error::NoAnswer { reason } => Performed::NoAnswer { detail: reason },
        Error::Unclear { reason } => read_back(action, record, reason).await,
        error @ (Error::Unavailable { .. } | Error::SignIn(_)) => not_sent(record, &error),
        error => Performed::Ended(outcome_after_refusal(action, record, &error).await),
    }
}

/// Returns the result of a change whose request was not sent. If an earlier request was sent, the outcome is still
/// unknown.
pub(super) fn not_sent(record: &ActionRecord, error: &Error) -> Performed {
    match record.sends {
        0 | 1 => Performed::Ended(read_failed(error)),
        _ => Performed::NoAnswer { detail: "UpGrade isn't answering".to_owned() },
    }
}

/// Reads back a change that its answer does not confirm. If the change is not visible, the result is
/// [`Performed::NoAnswer`] with this `detail`, so that the engine checks again later.
async fn read_back(action: &dyn ActionKind, record: &ActionRecord, detail: String) -> Performed {
    match action.probe(record).await {
        Probed::Happened(outcome) => Performed::Ended(outcome),
        _ => Performed::NoAnswer { detail },
    }
}

/// Reads back a change that the platform refused, and returns its outcome.
async fn outcome_after_refusal(action: &dyn ActionKind, record: &ActionRecord, error: &Error) -> Outcome {
    let kind = access::kind(error);
    if action.recovery() == Recovery::Idempotent {
        return failed(kind, outcomes::refused_and_unverifiable(error)); // there is nothing to read back
    }
    match action.probe(record).await {
        Probed::Happened(Outcome::Done { result, summary }) => {
            Outcome::Done { result, summary: outcomes::done_despite_error(summary, error) }
        }
        Probed::Happened(outcome) => outcome,
        Probed::DidNotHappen => failed(kind, outcomes::refused_and_unchanged(error)),
        Probed::Unfinished { evidence } => failed(kind, outcomes::refused_in_part(error, evidence)),
        Probed::Otherwise { evidence } | Probed::CannotTell { evidence } => {
            Outcome::Unknown { summary: outcomes::refused_and_unknown(error, evidence) }
        }
    }
}

/// Returns the result of a probe that could not read the platform.
fn cannot_read_back(error: &Error) -> Probed {
    let reason = match error {
        Error::Unavailable { reason } => reason.clone(),
        error => error.to_string(),
    };
    Probed::CannotTell { evidence: outcomes::cannot_read_back(&reason) }
}

/// Returns the time after which a sent request can no longer reach the platform; the client's timeout is shorter.
pub(super) fn in_flight(client: &UpgradeClient) -> Duration {
    client.timeout() + Duration::from_secs(2)
}

/// The period in which a change that takes several requests may send another one. Requests that are left when it closes
/// wait until the change has been read back. This bounds how late any request can arrive: [`SendWindow::in_flight`].
struct SendWindow(tokio::time::Instant);

impl SendWindow {
    /// Opens a window that lasts from now for the client's timeout.
    fn open(client: &UpgradeClient) -> Self {
        Self(tokio::time::Instant::now() + client.timeout())
    }

    /// Returns an error if the window has closed, so that no further request may be sent.
    fn ensure_open(&self) -> Result<(), Error> {
        match tokio::time::Instant::now() < self.0 {
            true => Ok(()),
            false => Err(Error::NoAnswer { reason: "the platform is slow, so the rest weren't started".to_owned() }),
        }
    }

    /// Returns the time after opening during which a request may still reach the platform.
    fn in_flight(client: &UpgradeClient) -> Duration {
        client.timeout() + in_flight(client)
    }
}
