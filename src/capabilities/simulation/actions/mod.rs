//! The actions, one file for each, and their shared functions.
//!
//! An action's `prepare` reads and makes a card; the call that executes it carries the proof of the record's approval
//! ([`Confirmed`]). Runs continue at the bridge after their call ([`running`]): they are submitted with a key by which
//! the bridge recognises a repeated call, and then the action waits for the end of the job without holding anything.

pub mod cancel;
pub mod compare;
pub mod load;
pub mod population;
pub mod restore;
pub mod run;
pub mod running;
pub mod sensitivity;
pub mod set;
pub mod snapshot;

use std::time::Duration;

use countersign_core::reply::{Fact, Text};
use countersign_graph::action::{ActionKind, ActionRecord, ErrorKind, Outcome, Performed, Probed};
use serde::de::DeserializeOwned;

use super::{
    Deps,
    bridge::{confirmed::Confirmed, error::Error},
    replies::{errors, outcomes},
};

/// Reads the stored parameters as a type.
fn stored<T: DeserializeOwned>(record: &ActionRecord) -> Result<T, Outcome> {
    T::deserialize(&*record.parameters)
        .map_err(|_| failed(ErrorKind::Execution, "The stored request can't be read, so nothing was done. Ask again."))
}

/// Returns the outcome of a change that did not happen.
pub(crate) fn failed(error: ErrorKind, summary: impl Into<Text>) -> Outcome {
    Outcome::Failed { error, summary: summary.into() }
}

/// Returns the proof that the record was approved.
fn confirmed(record: &ActionRecord) -> Result<Confirmed, Outcome> {
    Confirmed::by_record(record)
        .ok_or_else(|| failed(ErrorKind::Execution, "No one approved this, so nothing was done."))
}

/// Returns the parameters and the proof of approval of a record that is being carried out.
fn approved<T: DeserializeOwned>(record: &ActionRecord) -> Result<(T, Confirmed), Outcome> {
    Ok((stored(record)?, confirmed(record)?))
}

/// Returns the outcome of a change before which a read failed, so that nothing was sent.
fn unread(deps: &Deps, simulation: &str, error: &Error) -> Outcome {
    match error.forgot(simulation) {
        true => failed(ErrorKind::NotFound, outcomes::forgotten(deps, simulation)),
        false => failed(errors::kind(error), errors::not_done(error)),
    }
}

/// Returns the result of a change for which the client returned an error.
async fn after_error(
    action: &dyn ActionKind,
    record: &ActionRecord,
    deps: &Deps,
    simulation: &str,
    error: Error,
) -> Performed {
    let refused = || Performed::Ended(unread(deps, simulation, &error));
    match &error {
        Error::NoAnswer { reason } => Performed::NoAnswer { detail: reason.clone() },
        // Nothing was sent now, but the effect of an earlier request is still unknown.
        Error::Unavailable { reason } if record.sends > 1 => Performed::NoAnswer { detail: reason.clone() },
        Error::Unavailable { .. } | Error::NoToken | Error::Busy => refused(),
        // An earlier request may have had the effect, and this one may be refused because of it.
        _ => match action.probe(record).await {
            Probed::Happened(outcome) if record.sends > 1 => Performed::Ended(outcome),
            Probed::DidNotHappen => refused(),
            _ if matches!(error, Error::Faulted { .. } | Error::Decode { .. }) => {
                Performed::NoAnswer { detail: error.to_string() }
            }
            _ => refused(),
        },
    }
}

/// Returns the result of a probe that could not read.
fn cannot_read_back(error: &Error) -> Probed {
    Probed::CannotTell { evidence: Text::from(format!("It couldn't be read back: {}", errors::fact(error))) }
}

/// Returns the time after which a sent request can no longer have an effect: a little more than the client's time
/// limit.
fn in_flight(deps: &Deps) -> Duration {
    deps.client.timeout() + Duration::from_secs(2)
}

/// Returns a line of a card about a value.
fn fact(label: &str, after: impl Into<Text>) -> Fact {
    Fact { label: label.to_owned(), before: None, after: after.into() }
}

/// Returns the model file of a simulation, from the bridge or from the memory.
fn file_of(deps: &Deps, loaded: &super::bridge::data::Loaded) -> Option<String> {
    loaded.file.clone().or_else(|| deps.memory.file(&loaded.id))
}
