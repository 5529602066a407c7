//! `run_population_simulation`: runs a simulation for a cohort of virtual subjects.

use std::time::Duration;

use async_trait::async_trait;
use countersign_capabilities::parameters::{missing, non_blank, parameters, refused, schema};
use countersign_core::{
    ids::UserId,
    reply::{Card, Reply, Text},
};
use countersign_graph::action::{
    ActionInfo, ActionKind, ActionRecord, Batch, Batches, ErrorKind, Outcome, PrepareError, Progress, Proposal, Reader,
    Refusal, Scope,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{approved, fact, file_of, in_flight, run, running, stored};
use crate::{
    Deps,
    bridge::{
        client::PopulationRun,
        job::{Job, JobStatus},
    },
    busy,
    find::{self, Asked},
    memory::population_target,
    populations,
    replies::{figures, lasting, outcomes},
};

/// The name of the action.
pub const NAME: &str = "run_population_simulation";

/// The largest cohort that a bridge accepts.
const MAX_SUBJECTS: u64 = 5_000;

/// The action `run_population_simulation`.
#[derive(Debug)]
pub struct RunPopulation(pub Deps);

/// The parameters of the action.
#[derive(Deserialize, JsonSchema)]
struct Given {
    /// The simulation, by name. Optional if only one is loaded.
    #[serde(default)]
    simulation: Option<String>,
    /// The simulation mentioned before, if none is named.
    #[serde(default)]
    active: Option<String>,
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

#[async_trait]
impl ActionKind for RunPopulation {
    fn info(&self) -> ActionInfo {
        ActionInfo::new(
            NAME,
            "Runs a loaded simulation for a cohort of virtual subjects and tells aggregated figures. Only when someone asks \
         for a population, a cohort or a number of subjects.",
        )
    }

    fn schema(&self) -> Value {
        schema::<Given>()
    }

    async fn prepare(&self, given_parameters: &Value, _: Option<&Reader>) -> Result<Proposal, PrepareError> {
        let deps = &self.0;
        let asked: Given = parameters(given_parameters)?;
        let says = |simulation: &str| match asked.size {
            Some(size) => format!("run {simulation} for a population of {size}"),
            None => format!("run {simulation} for a population"),
        };
        let loaded = find::simulation(deps, Asked::of(&asked.simulation, &asked.active), says).await?;
        busy::no_comparison(deps, &loaded.id).await?;
        let Some(size) = asked.size else {
            let question = format!("How many virtual subjects (1 to {MAX_SUBJECTS})?");
            return Err(Refusal::Missing(vec![missing("size", question, Vec::new())]).into());
        };
        if !(1.0..=MAX_SUBJECTS as f64).contains(&size) || size.fract() != 0.0 {
            let reply =
                Reply::text(format!("A population has 1 to {MAX_SUBJECTS} subjects; the bridge accepts no more."));
            return Err(refused(ErrorKind::Validation, reply));
        }
        let file = non_blank(asked.file.as_ref()).and_then(|file| deps.settings.file_named(file));
        let Some(file) = file.or_else(|| file_of(deps, &loaded)) else {
            let question = format!("Which model file was {} loaded from? The bridge needs it for this run.", loaded.id);
            return Err(Refusal::Missing(vec![missing("file", question, Vec::new())]).into());
        };
        let limit_s = run::limit(deps, asked.time_limit_s)?;
        let size = size as u64;
        let mut facts = vec![
            fact("Simulation", Text::new().bold(&loaded.id)),
            fact("Model file", Text::new().code(&file)),
            fact("Subjects", size.to_string()),
        ];
        if let Some(seed) = asked.seed {
            facts.push(fact("Seed", seed.to_string()));
        }
        facts.push(fact("Time limit", lasting(Duration::from_secs(limit_s))));
        let card = Card {
            title: format!("Run “{}” for {size} virtual subjects?", loaded.id),
            facts,
            notes: vec![Text::from(
                "It runs at the bridge. I'll post the aggregated figures when it ends; say “stop” to cancel it.",
            )],
            approve: "Run population".to_owned(),
            reject: Card::REJECT.to_owned(),
            done: format!("Ran {} for {size} virtual subjects.", loaded.id),
            ..Card::default()
        };
        let preconditions = run::loaded_state(&loaded);
        let scope = Scope::of(population_target(&loaded.id)).of_subject(&loaded.id);
        let run = PopulationRun { simulation: loaded.id, file, size, seed: asked.seed, limit_s };
        Ok(Proposal { parameters: json!(run), preconditions, card, undo: None, scope })
    }

    async fn preconditions(&self, record: &ActionRecord) -> Result<Value, Outcome> {
        let run: PopulationRun = stored(record)?;
        busy::still_no_comparison(&self.0, &run.simulation, record).await?;
        run::still_loaded(&self.0, &run.simulation).await
    }

    fn batches(&self) -> Option<&dyn Batches> {
        Some(self)
    }

    fn report(&self, record: &ActionRecord, reply: Reply) -> Reply {
        match &record.outcome {
            Some(Outcome::Done { result, .. }) => figures::population_report(reply, &result["population"]),
            _ => reply,
        }
    }
}

#[async_trait]
impl Batches for RunPopulation {
    async fn next(&self, record: &ActionRecord, interrupted: bool) -> Batch {
        let deps = &self.0;
        let (run, confirmed): (PopulationRun, _) = match approved(record) {
            Ok(approved) => approved,
            Err(outcome) => return Batch::Ended(outcome),
        };
        let Some(job) = running::progress_of(record).job else {
            return match deps.client.run_population(&run, record.id.as_str(), &confirmed).await {
                Ok(job) => running::submitted(deps, record, &job, &run.simulation, run.limit_s),
                Err(error) => running::not_submitted(deps, record, &run.simulation, interrupted, &error),
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
        match stored::<PopulationRun>(record) {
            Ok(run) => running::stopped(record, &run.simulation, by),
            Err(outcome) => outcome,
        }
    }
}

impl RunPopulation {
    /// Returns the outcome of a run whose job has ended.
    async fn ended(&self, simulation: &str, job: &Job) -> Outcome {
        let deps = &self.0;
        if job.status != JobStatus::Succeeded {
            return running::not_succeeded(deps, simulation, job);
        }
        let took = job.took(deps.client.clock().now());
        deps.memory.ended(&job.id, took, None); // without results: its duration is no estimate for a single run
        let mut result = json!({ "simulation": simulation, "job": job.id, "results": job.results });
        let summary = match populations::read(deps, job.results.as_deref().unwrap_or_default()).await {
            Ok(population) => {
                result["population"] = json!(population);
                outcomes::ran(simulation, took, None)
            }
            Err(error) => outcomes::ran(simulation, took, Some(&error)),
        };
        Outcome::Done { result, summary }
    }
}
