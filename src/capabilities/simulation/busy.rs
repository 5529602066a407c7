//! Work in progress that another change or run would disturb: comparisons, which change a parameter for each of their
//! runs, and runs, which may not have read their values yet.

use countersign_capabilities::parameters::refused;
use countersign_core::reply::Text;
use countersign_graph::action::{ActionRecord, ErrorKind, Outcome, PrepareError, Proposal};
use serde_json::{Value, json};

use super::{
    Deps,
    actions::{failed, simulation_of},
    memory::{comparison_target, population_target, run_target, sensitivity_target},
    replies::{outcomes, refusals},
};

/// The field of the preconditions with the run in progress that the card mentions.
const RUN: &str = "run";

/// Refuses a request while a comparison of the simulation is in progress.
///
/// # Errors
///
/// The refusal.
pub async fn no_comparison(deps: &Deps, simulation: &str) -> Result<(), PrepareError> {
    match deps.memory.in_progress(&comparison_target(simulation)).await {
        Some(comparison) => Err(refused(ErrorKind::Validation, refusals::comparison_in_progress(&comparison))),
        None => Ok(()),
    }
}

/// Checks the same again before an approved action begins.
///
/// # Errors
///
/// The outcome that nothing was done.
pub async fn still_no_comparison(deps: &Deps, own: &ActionRecord) -> Result<(), Outcome> {
    match deps.memory.in_progress(&comparison_target(simulation_of(own))).await {
        Some(comparison) if comparison.id != own.id => {
            Err(failed(ErrorKind::Validation, outcomes::comparison_in_progress(&comparison)))
        }
        _ => Ok(()),
    }
}

/// Warns on the card of a change about a run in progress, and adds the run to the preconditions.
pub async fn warn_of_run(deps: &Deps, simulation: &str, proposal: &mut Proposal) {
    if let Some(run) = run(deps, simulation).await {
        proposal.card.warnings.push(Text::from(format!(
            "A run of {simulation} is in progress. If it is still queued at the bridge, it may use the change."
        )));
        proposal.preconditions[RUN] = json!(run.id);
    }
}

/// Checks before an approved change that no run has begun since its card was shown, and adds the run that the card
/// mentions to the present state: if it has ended, that is no reason against the change.
///
/// # Errors
///
/// The outcome that nothing was done.
pub async fn no_new_run(deps: &Deps, own: &ActionRecord, state: &mut Value) -> Result<(), Outcome> {
    let simulation = simulation_of(own);
    let known = &own.preconditions[RUN];
    match run(deps, simulation).await {
        Some(new) if Some(new.id.as_str()) != known.as_str() => {
            return Err(failed(ErrorKind::Validation, outcomes::run_in_progress(simulation)));
        }
        _ if known.is_null() => {}
        _ => state[RUN] = known.clone(),
    }
    Ok(())
}

/// Returns the newest run of a simulation that is in progress.
async fn run(deps: &Deps, simulation: &str) -> Option<ActionRecord> {
    for target in [run_target(simulation), population_target(simulation), sensitivity_target(simulation)] {
        if let Some(run) = deps.memory.in_progress(&target).await {
            return Some(run);
        }
    }
    None
}
