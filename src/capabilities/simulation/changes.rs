//! The parameters that were changed since a model was loaded, or between two runs, from the records of the approved
//! changes. Changes by others are not in them.

use countersign_core::{clock::Timestamp, reply::Text, units::quantity};
use countersign_graph::action::{ActionRecord, Status};
use futures_util::future::join_all;
use serde::{Deserialize, Serialize};

use super::{
    Deps,
    actions::set::{self, same},
    memory::{parameter_target, restore_target},
};

/// The maximum number of parameters whose changes are looked up.
const MAX_PATHS: usize = 100;
/// The maximum number of changes of a parameter that are read.
const MAX_CHANGES: usize = 200;
/// The maximum number of changes in a sentence.
const MAX_NAMED: usize = 6;

/// A parameter with two different values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Changed {
    /// The path.
    pub path: String,
    /// The value before.
    pub before: f64,
    /// The value after.
    pub after: f64,
    /// The unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
}

/// Returns the parameters whose present values differ from those in the model file, as far as the records show it.
pub async fn since_loading(deps: &Deps, simulation: &str) -> Vec<Changed> {
    let Some(loaded_at) = deps.memory.loaded_at(simulation, None).await else { return Vec::new() };
    let changed = |path: String| async move {
        let changes = changes_of(deps, simulation, &path).await;
        let (first, _) = ends(&changes, loaded_at, None)?;
        let before = first.preconditions["value"].as_f64()?;
        let now = deps.client.parameter(simulation, &path).await.ok()?;
        (!same(before, now.value)).then_some(Changed { path, before, after: now.value, unit: now.unit })
    };
    for_each_path(deps, simulation, changed).await.unwrap_or_default()
}

/// Looks at each parameter of a simulation, up to [`MAX_PATHS`]; `None` if they cannot be read.
pub async fn for_each_path<F: Future<Output = Option<Changed>>>(
    deps: &Deps,
    simulation: &str,
    changed: impl Fn(String) -> F,
) -> Option<Vec<Changed>> {
    let paths = deps.client.parameters(simulation).await.ok()?;
    let all = join_all(paths.into_iter().take(MAX_PATHS).map(changed)).await;
    Some(all.into_iter().flatten().collect())
}

/// Returns the parameters with different values in two runs of a simulation, which were started at these times. Returns
/// `None` if the records do not show it.
pub async fn between(deps: &Deps, simulation: &str, earlier: Timestamp, later: Timestamp) -> Option<Vec<Changed>> {
    let first_load = deps.memory.loaded_at(simulation, Some(earlier)).await?;
    let last_load = deps.memory.loaded_at(simulation, Some(later)).await?;
    // The records do not contain the values of a snapshot.
    if is_restored(deps, simulation, |at| at > first_load && at <= later).await {
        return None;
    }
    let changed = |path: String| async move {
        let changes = changes_of(deps, simulation, &path).await;
        let (then, now) = (ends(&changes, first_load, Some(earlier)), ends(&changes, last_load, Some(later)));
        let of_file = |change: &ActionRecord| change.preconditions["value"].as_f64();
        let reached = |change: &ActionRecord| change.parameters["value"].as_f64();
        let (before, after) = match (then, now) {
            (Some((_, last)), Some((_, newest))) => (reached(last)?, reached(newest)?),
            (Some((first, last)), None) => (reached(last)?, of_file(first)?),
            (None, Some((first, last))) => (of_file(first)?, reached(last)?),
            (None, None) => return None,
        };
        let unit = changes.first().and_then(|change| change.parameters["unit"].as_str()).map(str::to_owned);
        (!same(before, after)).then_some(Changed { path, before, after, unit })
    };
    for_each_path(deps, simulation, changed).await
}

/// Returns true if a snapshot was restored at such a time.
pub async fn is_restored(deps: &Deps, simulation: &str, is_within: impl Fn(Timestamp) -> bool) -> bool {
    let restores = deps.memory.records(&restore_target(simulation), MAX_CHANGES).await;
    restores.iter().any(|record| record.status == Status::Done && record.intent_at.is_some_and(&is_within))
}

/// Returns the changes of a parameter that were made, newest first.
pub async fn changes_of(deps: &Deps, simulation: &str, path: &str) -> Vec<ActionRecord> {
    let mut all = deps.memory.records(&parameter_target(simulation, path), MAX_CHANGES).await;
    all.retain(|record| record.name == set::NAME && record.status == Status::Done);
    all
}

/// Returns the first and the last of these changes after a time and, if it is given, up to another one.
fn ends(
    changes: &[ActionRecord],
    after: Timestamp,
    until: Option<Timestamp>,
) -> Option<(&ActionRecord, &ActionRecord)> {
    let is_within = |at: Timestamp| at > after && until.is_none_or(|until| at <= until);
    let within = || changes.iter().filter(|change| change.intent_at.is_some_and(is_within));
    Some((within().min_by_key(|change| change.intent_at)?, within().max_by_key(|change| change.intent_at)?))
}

/// Lists changes for a sentence: “`Dose` 100 → 500 mg”.
pub fn listed(changes: &[Changed]) -> Text {
    let one = |change: &Changed| {
        let values = format!(" {} → {}", quantity(change.before, None), quantity(change.after, change.unit.as_deref()));
        Text::new().code(&change.path).plain(values)
    };
    let mut named: Vec<Text> = changes.iter().take(MAX_NAMED).map(one).collect();
    if changes.len() > MAX_NAMED {
        named.push(Text::from(format!("{} more", changes.len() - MAX_NAMED)));
    }
    Text::listed(named, "and")
}
