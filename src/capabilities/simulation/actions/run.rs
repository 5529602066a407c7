//! `run_simulation`: runs a loaded simulation and reports its PK figures.

use std::{sync::Arc, time::Duration};

use countersign_capabilities::rows::Change;
use countersign_core::reply::{Card, Fact, Text};
use countersign_graph::action::{ActionInfo, ActionKind, PrepareError, Proposal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    file_of, free, proposal,
    running::{self, Runs},
    set, still_free, with_figures,
};
use crate::{
    Deps,
    bridge::client::Run,
    find::Target,
    memory::run_target,
    replies::{figures, lasting, refusals},
};

/// The name of the action.
pub const NAME: &str = "run_simulation";

/// The parameters of the action.
#[derive(Deserialize, JsonSchema)]
struct Given {
    #[serde(flatten)]
    target: Target,
    /// The time limit of the run in seconds.
    #[serde(default)]
    time_limit_s: Option<f64>,
}

/// The stored parameters.
#[derive(Serialize, Deserialize)]
struct Stored {
    simulation: String,
    limit_s: u64,
}

/// Returns the action `run_simulation`.
pub(crate) fn action(deps: Deps) -> Arc<dyn ActionKind> {
    let info = ActionInfo::new(
        NAME,
        "Runs a loaded simulation as it stands. Only when someone asks to run, start or execute it.",
    );
    let runs = Runs {
        deps,
        part: "figures",
        is_estimate: true,
        submit: |deps, Stored { simulation, limit_s }, record, confirmed| {
            let run = Run { simulation, run: format!("run-{}", record.id), limit_s };
            Box::pin(async move { deps.client.run(&run, record.id.as_str(), &confirmed).await })
        },
        read: |deps, results| Box::pin(running::figures(deps, results)),
    };
    Arc::new(Change::<Runs<Stored>, Given, Stored> {
        now: |row, _, record| Box::pin(still_free(&row.deps.deps, record)),
        // The run does not wait for values on open cards.
        beside: |parameters, open| {
            let of_run = open.iter().filter(|record| {
                record.name == set::NAME && record.parameters["simulation"] == parameters["simulation"]
            });
            of_run.filter_map(refusals::not_set_yet).collect()
        },
        report: |_, record, reply| with_figures(record, reply, figures::run_report),
        ..Change::in_batches(runs, info, |row, asked, _| Box::pin(prepare(&row.deps.deps, asked)), |row| &row.deps)
    })
}

async fn prepare(deps: &Deps, asked: Given) -> Result<Proposal, PrepareError> {
    let loaded = free(deps, &asked.target, |simulation| format!("run {simulation}")).await?;
    let limit_s = running::limit(deps, asked.time_limit_s)?;
    let mut facts = vec![Fact::new("Simulation", Text::new().bold(&loaded.id))];
    facts.extend(file_of(deps, &loaded).map(|file| Fact::new("Model file", Text::new().code(file))));
    facts.push(Fact::new("Time limit", lasting(Duration::from_secs(limit_s))));
    facts.push(match deps.memory.last_took(&loaded.id) {
        Some(took) => Fact::new("Expected", format!("about {}, based on its last run", lasting(took))),
        None => Fact::new("Expected", "unknown; there is no earlier run"),
    });
    let card = Card {
        facts,
        notes: vec![Text::from(
            "It runs at the bridge. I'll post its PK figures when it ends; say “stop” to cancel it.",
        )],
        ..Card::new(format!("Run “{}”?", loaded.id), "Run simulation", format!("Ran {}.", loaded.id))
    };
    let stored = Stored { simulation: loaded.id.clone(), limit_s };
    Ok(proposal(&loaded, run_target(&loaded.id), stored, card))
}
