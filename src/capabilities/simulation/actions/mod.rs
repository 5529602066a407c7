//! The actions: one file for each change, and what they share.
//!
//! An action's `prepare` reads and makes a card; the executing call carries the proof of the record's approval
//! ([`Confirmed`]). Runs go on at the bridge after their call ([`running`]): they are handed in with a key by which the
//! bridge recognises a repeat, and then the action waits for the job's end and holds nothing.

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
    serde_json::from_value(record.parameters.clone())
        .map_err(|_| failed(ErrorKind::Execution, "The stored request can't be read, so nothing was done. Ask again."))
}

/// Returns the outcome of a change that did not happen.
fn failed(error: ErrorKind, summary: impl Into<Text>) -> Outcome {
    Outcome::Failed { error, summary: summary.into() }
}

/// Returns the proof that the record was approved.
fn confirmed(record: &ActionRecord) -> Result<Confirmed, Outcome> {
    Confirmed::by_record(record)
        .ok_or_else(|| failed(ErrorKind::Execution, "This was not approved by anybody, so nothing was done."))
}

/// Reads the parameters and the proof of a record that is being carried out.
fn approved<T: DeserializeOwned>(record: &ActionRecord) -> Result<(T, Confirmed), Outcome> {
    Ok((stored(record)?, confirmed(record)?))
}

/// Returns the outcome if a read before the change failed; nothing was sent.
fn unread(deps: &Deps, simulation: &str, error: &Error) -> Outcome {
    match error.forgot(simulation) {
        true => failed(ErrorKind::NotFound, outcomes::forgotten(deps, simulation)),
        false => failed(errors::kind(error), errors::not_done(error)),
    }
}

/// Returns the end of a change for which the client reports an error.
async fn ended_badly(
    action: &dyn ActionKind,
    record: &ActionRecord,
    deps: &Deps,
    simulation: &str,
    error: Error,
) -> Performed {
    let refused = || Performed::Ended(unread(deps, simulation, &error));
    match &error {
        Error::NoAnswer { reason } => Performed::NoAnswer { detail: reason.clone() },
        // Nothing left now; what was sent before is still open.
        Error::Unavailable { reason } if record.sends > 1 => Performed::NoAnswer { detail: reason.clone() },
        Error::Unavailable { .. } | Error::NoToken | Error::Busy => refused(),
        // An earlier sending may have had the effect that this one is refused for.
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

/// Returns the evidence that reading back failed.
fn cannot_read_back(error: &Error) -> Probed {
    Probed::CannotTell { evidence: Text::from(format!("It couldn't be read back: {}", errors::fact(error))) }
}

/// Returns the time after which a sent request can no longer arrive: the client gives up earlier.
fn in_flight(deps: &Deps) -> Duration {
    deps.client.timeout() + Duration::from_secs(2)
}

/// Returns a line of a card about a value.
fn fact(label: &str, after: impl Into<Text>) -> Fact {
    Fact { label: label.to_owned(), before: None, after: after.into() }
}

/// Returns the model file of a simulation, as the bridge tells it or as it is remembered.
fn file_of(deps: &Deps, loaded: &super::bridge::data::Loaded) -> Option<String> {
    loaded.file.clone().or_else(|| deps.memory.file(&loaded.id))
}
