//! `run_population_simulation`: runs a simulation for a cohort of virtual subjects.

use std::{sync::Arc, time::Duration};

use countersign_capabilities::{
    parameters::{incomplete, refused},
    rows::Change,
};
use countersign_core::reply::{Card, Fact, Reply, Text};
use countersign_graph::action::{ActionInfo, ActionKind, ErrorKind, PrepareError, Proposal};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{
    free, model_file, proposal,
    running::{self, Runs},
    still_free, with_figures,
};
use crate::{
    Deps,
    bridge::client::PopulationRun,
    find::Target,
    memory::population_target,
    populations,
    replies::{figures, lasting},
};

/// The name of the action.
pub const NAME: &str = "run_population_simulation";

/// The largest cohort that a bridge accepts.
const MAX_SUBJECTS: u64 = 5_000;

/// The parameters of the action.
#[derive(Deserialize, JsonSchema)]
struct Given {
    #[serde(flatten)]
    target: Target,
    /// The number of virtual subjects, 1 to 5000. Required.
    #[serde(default)]
    size: Option<f64>,
    /// The random seed; the same seed samples the same subjects.
    #[serde(default)]
    seed: Option<u64>,
    /// The model file, if the bridge does not report it.
    #[serde(default)]
    file: Option<String>,
    /// The time limit of the run in seconds.
    #[serde(default)]
    time_limit_s: Option<f64>,
}

/// Returns the action `run_population_simulation`.
pub(crate) fn action(deps: Deps) -> Arc<dyn ActionKind> {
    let info = ActionInfo::new(
        NAME,
        "Runs a loaded simulation for a cohort of virtual subjects and tells aggregated figures. Only when someone asks \
         for a population, a cohort or a number of subjects.",
    );
    let runs = Runs {
        deps,
        part: "population",
        is_estimate: false, // of the duration of a single run
        submit: |deps, run: PopulationRun, record, confirmed| {
            Box::pin(async move { deps.client.run_population(&run, record.id.as_str(), &confirmed).await })
        },
        read: |deps, results| Box::pin(async move { Ok(json!(populations::read(deps, results).await?)) }),
    };
    Arc::new(Change::<Runs<PopulationRun>, Given, PopulationRun> {
        now: |row, _, record| Box::pin(still_free(&row.deps.deps, record)),
        report: |_, record, reply| {
            with_figures(record, reply, |reply, result| figures::population_report(reply, &result["population"]))
        },
        ..Change::in_batches(runs, info, |row, asked, _| Box::pin(prepare(&row.deps.deps, asked)), |row| &row.deps)
    })
}

async fn prepare(deps: &Deps, asked: Given) -> Result<Proposal, PrepareError> {
    let says = |simulation: &str| match asked.size {
        Some(size) => format!("run {simulation} for a population of {size}"),
        None => format!("run {simulation} for a population"),
    };
    let loaded = free(deps, &asked.target, says).await?;
    let Some(size) = asked.size else {
        return Err(incomplete("size", format!("How many virtual subjects (1 to {MAX_SUBJECTS})?"), Vec::new()));
    };
    if !(1.0..=MAX_SUBJECTS as f64).contains(&size) || size.fract() != 0.0 {
        let reply = Reply::text(format!("A population has 1 to {MAX_SUBJECTS} subjects; the bridge accepts no more."));
        return Err(refused(ErrorKind::Validation, reply));
    }
    let file = model_file(deps, asked.file.as_ref(), &loaded, "run")?;
    let limit_s = running::limit(deps, asked.time_limit_s)?;
    let size = size as u64;
    let mut facts = vec![
        Fact::new("Simulation", Text::new().bold(&loaded.id)),
        Fact::new("Model file", Text::new().code(&file)),
        Fact::new("Subjects", size.to_string()),
    ];
    facts.extend(asked.seed.map(|seed| Fact::new("Seed", seed.to_string())));
    facts.push(Fact::new("Time limit", lasting(Duration::from_secs(limit_s))));
    let card = Card {
        facts,
        notes: vec![Text::from(
            "It runs at the bridge. I'll post the aggregated figures when it ends; say “stop” to cancel it.",
        )],
        ..Card::new(
            format!("Run “{}” for {size} virtual subjects?", loaded.id),
            "Run population",
            format!("Ran {} for {size} virtual subjects.", loaded.id),
        )
    };
    let run = PopulationRun { simulation: loaded.id.clone(), file, size, seed: asked.seed, limit_s };
    Ok(proposal(&loaded, population_target(&loaded.id), run, card))
}
