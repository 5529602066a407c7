//! Stratified random sampling: a draw by a factor of the participants.
//!
//! The factor has to be uploaded to the platform first, and an unknown name causes an error in the
//! platform's database. The uploaded factors are therefore read before one is used.

use countersign_graph::action::PrepareError;

use super::choices;
use crate::{
    access, lookup,
    replies::refusals,
    upgrade::{client::UpgradeClient, experiment::View},
};

/// The platform's name of the algorithm.
pub(super) const STRATIFIED: &str = "stratified random sampling";

/// Returns the factor by which a new experiment draws; `None` if the draw is simply random.
pub(super) async fn factor(
    client: &UpgradeClient,
    algorithm: Option<&str>,
    factor: Option<&str>,
) -> Result<Option<String>, PrepareError> {
    if !is_stratified(algorithm) && factor.is_none() {
        choices::algorithm(algorithm)?;
        return Ok(None);
    }
    let known = client.stratification_factors().await?;
    let found = match (factor, known.as_slice()) {
        (Some(factor), known) => lookup::pick(known, factor),
        (None, [only]) => Some(only),
        (None, _) => None,
    };
    let refusal = || access::invalid(refusals::no_such_factor(factor, &known));
    found.cloned().map(Some).ok_or_else(refusal)
}

/// Checks that the algorithm is that of the experiment, which cannot be changed.
pub(super) fn check_unchanged(algorithm: Option<&str>, experiment: &View) -> Result<(), PrepareError> {
    match experiment.assignment_algorithm.as_deref() {
        Some(STRATIFIED) if is_stratified(algorithm) => Ok(()),
        Some(STRATIFIED) if algorithm.is_some() => Err(access::invalid(refusals::stays_stratified(&experiment.name))),
        _ => choices::algorithm(algorithm),
    }
}

fn is_stratified(algorithm: Option<&str>) -> bool {
    algorithm.is_some_and(|algorithm| algorithm.to_lowercase().starts_with("stratified"))
}
