//! `run_simulation`: runs a loaded simulation and reports its PK figures.

use std::time::Duration;

use async_trait::async_trait;
use countersign_capabilities::parameters::{parameters, refused, schema};
use countersign_core::{
    ids::UserId,
    reply::{Card, Reply, Text},
};
use countersign_graph::action::{
    ActionInfo, ActionKind, ActionRecord, Batch, Batches, ErrorKind, Outcome, PrepareError, Progress, Proposal, Reader,
    Scope,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{approved, fact, file_of, in_flight, running, set, stored, unread};
use crate::{
    Deps,
    bridge::{
        client::Run,
        job::{Job, JobStatus},
    },
    busy,
    find::{self, Asked},
    memory::run_target,
    replies::{figures, lasting, outcomes, refusals},
};

/// The name of the action.
pub const NAME: &str = "run_simulation";

/// The action `run_simulation`.
#[derive(Debug)]
pub struct RunSimulation(pub Deps);

/// The parameters of the action.
#[derive(Deserialize, JsonSchema)]
struct Given {
    /// The simulation, by name. Optional if only one is loaded.
    #[serde(default)]
    simulation: Option<String>,
    /// The simulation mentioned before, if none is named.
    #[serde(default)]
    active: Option<String>,
    /// The time limit of the run in seconds.
    #[serde(default)]
    time_limit_s: Option<f64>,
}

/// Returns the time limit of a run in seconds.
///
/// # Errors
///
/// A refusal if it is not between a second and a day.
pub(super) fn limit(deps: &Deps, asked: Option<f64>) -> Result<u64, PrepareError> {
    let usual = deps.settings.run_limit.as_secs();
    let limit = asked.unwrap_or(usual as f64);
    match (1.0..=86_400.0).contains(&limit) {
        true => Ok(limit.round() as u64),
        false => {
            Err(refused(ErrorKind::Validation, Reply::text("The time limit must be between 1 second and 24 hours.")))
        }
    }
}

/// Returns the state of a loaded simulation that must not have changed since the card.
pub(super) fn loaded_state(loaded: &crate::bridge::data::Loaded) -> Value {
    json!({ "loaded_at": loaded.loaded_at })
}

/// Reads that state again.
///
/// # Errors
///
/// An outcome if the simulation is no longer loaded, or cannot be read.
pub(super) async fn still_loaded(deps: &Deps, simulation: &str) -> Result<Value, Outcome> {
    let all = deps.client.simulations_and_copies().await.map_err(|error| unread(deps, simulation, &error))?;
    match all.iter().find(|loaded| loaded.id == simulation) {
        Some(loaded) => Ok(loaded_state(loaded)),
        None => {
            deps.memory.recall(simulation).await;
            Err(super::failed(ErrorKind::NotFound, outcomes::forgotten(deps, simulation)))
        }
    }
}

#[async_trait]
impl ActionKind for RunSimulation {
    fn info(&self) -> ActionInfo {
        ActionInfo::new(
            NAME,
            "Runs a loaded simulation as it stands. Only when someone asks to run, start or execute it.",
        )
    }

    fn schema(&self) -> Value {
        schema::<Given>()
    }

    async fn prepare(&self, given_parameters: &Value, _: Option<&Reader>) -> Result<Proposal, PrepareError> {
        let deps = &self.0;
        let asked: Given = parameters(given_parameters)?;
        let says = |simulation: &str| format!("run {simulation}");
        let loaded = find::simulation(deps, Asked::of(&asked.simulation, &asked.active), says).await?;
        busy::no_comparison(deps, &loaded.id).await?;
        let limit_s = limit(deps, asked.time_limit_s)?;
        let mut facts = vec![fact("Simulation", Text::new().bold(&loaded.id))];
        if let Some(file) = file_of(deps, &loaded) {
            facts.push(fact("Model file", Text::new().code(file)));
        }
        facts.push(fact("Time limit", lasting(Duration::from_secs(limit_s))));
        facts.push(match deps.memory.last_took(&loaded.id) {
            Some(took) => fact("Expected", format!("about {}, based on its last run", lasting(took))),
            None => fact("Expected", "unknown; there is no earlier run"),
        });
        let card = Card {
            title: format!("Run “{}”?", loaded.id),
            facts,
            notes: vec![Text::from(
                "It runs at the bridge. I'll post its PK figures when it ends; say “stop” to cancel it.",
            )],
            approve: "Run simulation".to_owned(),
            reject: Card::REJECT.to_owned(),
            done: format!("Ran {}.", loaded.id),
            ..Card::default()
        };
        Ok(Proposal {
            preconditions: loaded_state(&loaded),
            scope: Scope::of(run_target(&loaded.id)).of_subject(&loaded.id),
            parameters: json!({ "simulation": loaded.id, "limit_s": limit_s }),
            card,
            undo: None,
        })
    }

    async fn preconditions(&self, record: &ActionRecord) -> Result<Value, Outcome> {
        let run: Stored = stored(record)?;
        busy::still_no_comparison(&self.0, &run.simulation, record).await?;
        still_loaded(&self.0, &run.simulation).await
    }

    /// Warns of values on open cards: the run does not wait for them.
    fn beside(&self, parameters: &Value, open: &[ActionRecord]) -> Vec<Text> {
        let is_of_run = |record: &&ActionRecord| {
            record.name == set::NAME && record.parameters["simulation"] == parameters["simulation"]
        };
        open.iter().filter(is_of_run).filter_map(refusals::not_set_yet).collect()
    }

    fn batches(&self) -> Option<&dyn Batches> {
        Some(self)
    }

    fn report(&self, record: &ActionRecord, reply: Reply) -> Reply {
        match &record.outcome {
            Some(Outcome::Done { result, .. }) => figures::run_report(reply, result),
            _ => reply,
        }
    }
}

/// The stored parameters.
#[derive(Serialize, Deserialize)]
struct Stored {
    simulation: String,
    limit_s: u64,
}

#[async_trait]
impl Batches for RunSimulation {
    async fn next(&self, record: &ActionRecord, interrupted: bool) -> Batch {
        let deps = &self.0;
        let (run, confirmed): (Stored, _) = match approved(record) {
            Ok(approved) => approved,
            Err(outcome) => return Batch::Ended(outcome),
        };
        let Some(job) = running::progress_of(record).job else {
            let asked = Run { simulation: run.simulation, run: format!("run-{}", record.id), limit_s: run.limit_s };
            return match deps.client.run(&asked, record.id.as_str(), &confirmed).await {
                Ok(job) => running::submitted(deps, record, &job, &asked.simulation, asked.limit_s),
                Err(error) => running::not_submitted(deps, record, &asked.simulation, interrupted, &error),
            };
        };
        match running::follow(deps, record, &job, run.limit_s).await {
            Ok(ended) => Batch::Ended(self.ended(&run.simulation, &ended).await),
            Err(batch) => batch,
        }
    }

    fn in_flight(&self) -> Duration {
        in_flight(&self.0)
    }

    fn longest(&self) -> Duration {
        running::LONGEST
    }

    async fn give_up(&self, record: &ActionRecord) -> Option<Progress> {
        running::give_up(&self.0, record).await
    }

    fn stopped(&self, record: &ActionRecord, by: Option<&UserId>) -> Outcome {
        match stored::<Stored>(record) {
            Ok(run) => running::stopped(record, &run.simulation, by),
            Err(outcome) => outcome,
        }
    }
}

impl RunSimulation {
    /// Returns the outcome of a run whose job has ended.
    async fn ended(&self, simulation: &str, job: &Job) -> Outcome {
        let deps = &self.0;
        if job.status != JobStatus::Succeeded {
            return running::not_succeeded(deps, simulation, job);
        }
        let took = job.took(deps.client.clock().now());
        deps.memory.ended(&job.id, took, job.results.as_deref());
        let mut result = json!({ "simulation": simulation, "job": job.id, "results": job.results });
        let summary = match running::figures(deps, job).await {
            Ok(figures) => {
                result["figures"] = figures;
                outcomes::ran(simulation, took, None)
            }
            Err(error) => outcomes::ran(simulation, took, Some(&error)),
        };
        Outcome::Done { result, summary }
    }
}
