//! The results of population runs, with what the bridge leaves out of them: the unit, and the spread of the curves.

use super::{
    Deps,
    bridge::{data::Population, error::Error},
    runs,
};

/// Reads the results of a population run.
///
/// # Errors
///
/// [`Error`], as for every read.
pub async fn read(deps: &Deps, results: &str) -> Result<Population, Error> {
    let mut found = deps.client.population(results).await?;
    found.band = deps.client.spread(results, &found.chunk_ids).await.unwrap_or_else(|error| {
        tracing::debug!(%error, "Cannot read the curves of a population");
        None
    });
    found.chunk_ids.clear();
    if let Some(simulation) = &found.simulation {
        found.unit = runs::unit(deps, simulation).await;
    }
    Ok(found)
}
