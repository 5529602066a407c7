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

use countersign_capabilities::{
    parameters::{incomplete, non_blank},
    rows::{Change, Probe, Settle, stored},
};
use countersign_core::reply::{Card, Reply, Text};
use countersign_graph::action::{
    ActionKind, ActionRecord, ErrorKind, Outcome, Performed, PrepareError, Probed, Proposal, Scope,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{
    Deps,
    bridge::{confirmed::Confirmed, data::Loaded, error::Error},
    busy,
    find::{self, Target},
    replies::{errors, outcomes},
};

/// An action with one request.
type Action<A, S> = Change<Deps, A, S>;

/// Returns the simulation that a record is about; empty if it is about a job.
pub(crate) fn simulation_of(record: &ActionRecord) -> &str {
    record.parameters["simulation"].as_str().unwrap_or_default()
}

/// Returns the simulation that is meant, unless a comparison of it is in progress. `says` turns a name into a whole
/// request.
async fn free(deps: &Deps, target: &Target, says: impl Fn(&str) -> String) -> Result<Loaded, PrepareError> {
    let loaded = find::simulation(deps, target, says).await?;
    busy::no_comparison(deps, &loaded.id).await?;
    Ok(loaded)
}

/// Proposes a change of a loaded simulation, with the state of it that must not have changed since the card.
fn proposal(loaded: &Loaded, target: String, parameters: impl Serialize, card: Card) -> Proposal {
    Proposal {
        preconditions: json!({ "loaded_at": loaded.loaded_at }),
        scope: Scope::of(target).of_subject(&loaded.id),
        ..Proposal::new(parameters, card)
    }
}

/// Reads that state again, before an approved action begins.
async fn still_free(deps: &Deps, record: &ActionRecord) -> Result<Value, Outcome> {
    busy::still_no_comparison(deps, record).await?;
    let simulation = simulation_of(record);
    let all = deps.client.simulations_and_copies().await.map_err(|error| unread(deps, record, &error))?;
    match all.iter().find(|loaded| loaded.id == simulation) {
        Some(loaded) => Ok(json!({ "loaded_at": loaded.loaded_at })),
        None => {
            deps.memory.recall(simulation).await;
            Err(failed(ErrorKind::NotFound, outcomes::forgotten(deps, simulation)))
        }
    }
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
fn unread(deps: &Deps, record: &ActionRecord, error: &Error) -> Outcome {
    let simulation = simulation_of(record);
    // One that was to be loaded cannot be forgotten.
    match record.name != load::NAME && error.forgot(simulation) {
        true => failed(ErrorKind::NotFound, outcomes::forgotten(deps, simulation)),
        false => failed(errors::kind(error), errors::not_done(error)),
    }
}

/// Sends the request of an action with the proof of its approval.
async fn sent<A, S, F>(row: &Action<A, S>, record: &ActionRecord, call: impl FnOnce(Confirmed) -> F + Send) -> Performed
where
    Action<A, S>: ActionKind,
    F: Future<Output = Result<Outcome, Error>> + Send,
{
    let confirmed = match confirmed(record) {
        Ok(confirmed) => confirmed,
        Err(outcome) => return Performed::Ended(outcome),
    };
    match call(confirmed).await {
        Ok(outcome) => Performed::Ended(outcome),
        Err(error) => after_error(&row.deps, record, error, row.probe(record)).await,
    }
}

/// Returns the result of a change for which the client returned an error. `probe` is the action's own.
async fn after_error(
    deps: &Deps,
    record: &ActionRecord,
    error: Error,
    probe: impl Future<Output = Probed> + Send,
) -> Performed {
    let refused = || Performed::Ended(unread(deps, record, &error));
    match &error {
        Error::NoAnswer { reason } => Performed::NoAnswer { detail: reason.clone() },
        // Nothing was sent now, but the effect of an earlier request is still unknown.
        Error::Unavailable { reason } if record.sends > 1 => Performed::NoAnswer { detail: reason.clone() },
        Error::Unavailable { .. } | Error::NoToken | Error::Busy => refused(),
        // An earlier request may have had the effect, and this one may be refused because of it.
        _ => match probe.await {
            Probed::Happened(outcome) if record.sends > 1 => Performed::Ended(outcome),
            Probed::DidNotHappen => refused(),
            _ if matches!(error, Error::Faulted { .. } | Error::Decode { .. }) => {
                Performed::NoAnswer { detail: error.to_string() }
            }
            _ => refused(),
        },
    }
}

/// Settles an attempt without an answer by this probe. Every change can be repeated: its values are absolute, or the
/// bridge refuses it the second time.
fn read_back<A, S>(probe: Probe<Deps, A, S>) -> Settle<Deps, A, S> {
    Settle::ReadBack { in_flight, repeatable: true, probe }
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

/// Adds the figures in the result of an action that is done to the reply about it.
fn with_figures(record: &ActionRecord, reply: Reply, add: impl FnOnce(Reply, &Value) -> Reply) -> Reply {
    match &record.outcome {
        Some(Outcome::Done { result, .. }) => add(reply, result),
        _ => reply,
    }
}

/// Adds the warnings of the bridge to a sentence.
fn with_warnings<'a>(text: Text, warnings: impl IntoIterator<Item = &'a str>) -> Text {
    let add = |text: Text, warning: &str| text.plain(format!(" The bridge warns: {}.", warning.trim_end_matches('.')));
    warnings.into_iter().fold(text, add)
}

/// Returns the model file of a simulation, from the bridge or from the memory.
fn file_of(deps: &Deps, loaded: &Loaded) -> Option<String> {
    loaded.file.clone().or_else(|| deps.memory.file(&loaded.id))
}

/// Returns the model file that is named, or else that of the simulation; asks if there is none. `work` needs it.
fn model_file(deps: &Deps, named: Option<&String>, loaded: &Loaded, work: &str) -> Result<String, PrepareError> {
    let named = non_blank(named).and_then(|file| deps.settings.file_named(file));
    named.or_else(|| file_of(deps, loaded)).ok_or_else(|| {
        let question = format!("Which model file was {} loaded from? The bridge needs it for this {work}.", loaded.id);
        incomplete("file", question, Vec::new())
    })
}
