//! Work in progress, for questions about it: runs, populations, comparisons and analyses, from their records. The jobs
//! of the bridge do not say what they belong to, and an analysis has none.

use countersign_core::clock::Timestamp;
use countersign_graph::action::{ActionRecord, Outcome, Status};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    Deps,
    actions::{compare, simulation_of},
    memory::{comparison_target, population_target, run_target, sensitivity_target},
};

/// The maximum number of simulations whose records are read if none is named.
const MAX_SIMULATIONS: usize = 16;

/// The maximum number of comparisons of a simulation that are read.
const MAX_COMPARISONS: usize = 10;

/// The targets of work on a simulation.
const TARGETS: [fn(&str) -> String; 4] = [run_target, population_target, sensitivity_target, comparison_target];

/// Work in progress.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UnderWay {
    /// The name of the action.
    pub action: String,
    /// The simulation.
    pub simulation: String,
    /// The paths of the parameters that vary.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub varied: Vec<String>,
    /// The number of virtual subjects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subjects: Option<u64>,
    /// The number of finished points.
    pub done: u64,
    /// The number of points.
    pub total: u64,
    /// The remark of the progress, such as `at 2 L`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// The time of the beginning.
    pub since: Timestamp,
}

impl UnderWay {
    /// Describes the work of a record.
    pub fn of(record: &ActionRecord) -> Self {
        let parameters = &record.parameters;
        let path = |parameter: &Value| parameter["path"].as_str().map(str::to_owned);
        let varied = match parameters["parameters"].as_array() {
            Some(several) => several.iter().filter_map(path).collect(),
            None => parameters["parameter"].as_str().map(str::to_owned).into_iter().collect(),
        };
        let progress = record.progress.as_ref();
        Self {
            action: record.name.clone(),
            simulation: simulation_of(record).to_owned(),
            varied,
            subjects: parameters["size"].as_u64(),
            done: progress.map_or(0, |progress| progress.done),
            total: progress.map_or(1, |progress| progress.total),
            note: progress.map(|progress| progress.note.words()).unwrap_or_default(),
            since: record.intent_at.unwrap_or(record.requested_at),
        }
    }
}

/// Returns the newest record of work in progress: on a simulation, or on any that is loaded if none is named.
pub async fn newest(deps: &Deps, simulation: Option<&str>) -> Option<ActionRecord> {
    let simulations = simulations(deps, simulation);
    let found = of_simulations(deps, simulations.iter().map(String::as_str)).await;
    found.into_iter().max_by_key(|record| record.intent_at)
}

/// Returns the records of work in progress on these simulations, the newest of each kind.
pub async fn of_simulations(deps: &Deps, simulations: impl Iterator<Item = &str>) -> Vec<ActionRecord> {
    let mut found: Vec<ActionRecord> = Vec::new();
    for simulation in simulations.take(MAX_SIMULATIONS) {
        for target in TARGETS {
            found.extend(deps.memory.in_progress(&target(simulation)).await);
        }
    }
    found
}

/// Returns the newest record of work that has ended, of the same simulations.
pub async fn last(deps: &Deps, simulation: Option<&str>) -> Option<ActionRecord> {
    let mut found: Vec<ActionRecord> = Vec::new();
    for simulation in simulations(deps, simulation) {
        for target in TARGETS {
            found.extend(deps.memory.records(&target(&simulation), 1).await);
        }
    }
    found.into_iter().filter(|record| record.status != Status::Intent).max_by_key(|record| record.intent_at)
}

/// Returns the records of comparisons of values that have ended with results, of the same simulations, newest first.
pub async fn comparisons(deps: &Deps, simulation: Option<&str>) -> Vec<ActionRecord> {
    let mut found: Vec<ActionRecord> = Vec::new();
    for simulation in simulations(deps, simulation) {
        found.extend(deps.memory.records(&comparison_target(&simulation), MAX_COMPARISONS).await);
    }
    found.retain(|record| record.name == compare::NAME && matches!(record.outcome, Some(Outcome::Done { .. })));
    found.sort_by_key(|record| std::cmp::Reverse(record.intent_at));
    found
}

/// Returns the name of a simulation as it is written, or the names of all that are loaded.
fn simulations(deps: &Deps, named: Option<&str>) -> Vec<String> {
    let names = deps.memory.names();
    let mut all = names.all().iter().map(|known| known.name.clone());
    match named {
        Some(named) => vec![all.find(|known| known.eq_ignore_ascii_case(named)).unwrap_or_else(|| named.to_owned())],
        None => all.take(MAX_SIMULATIONS).collect(),
    }
}
