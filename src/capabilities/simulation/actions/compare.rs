//! `compare_values`: runs a simulation at several values of one parameter and compares the PK figures.
//!
//! One approval covers all points on the card and nothing else. Each point is set, run and read, and the progress is
//! saved between them. Every call of a point can be repeated, because values are absolute and each run has its own key.
//! Finally the parameter is set back.

use std::time::Duration;

use async_trait::async_trait;
use countersign_capabilities::parameters::{missing, non_blank, parameters, refused, schema};
use countersign_core::{
    ids::UserId,
    reply::{Card, Reply, Text},
    units::quantity,
};
use countersign_graph::action::{
    ActionInfo, ActionKind, ActionRecord, Batch, Batches, ErrorKind, IS_BACK, Outcome, PrepareError, Progress,
    Proposal, Reader, Refusal, Scope, Undo,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    approved, fact, in_flight, run,
    running::{self, Found},
    set::{self, same},
    stored, unread,
};
use crate::{
    Deps,
    amount::listed,
    bridge::{
        client::Run,
        confirmed::Confirmed,
        data::{Metric, Parameter},
        error::Error,
        job::{Job, JobStatus},
    },
    busy,
    curve::{self, Curve},
    find::{self, Asked},
    memory::{comparison_target, parameter_target},
    replies::{errors, figures, lasting, refusals},
    wanted,
};

/// The name of the action.
pub const NAME: &str = "compare_values";

/// The action `compare_values`.
#[derive(Debug)]
pub struct CompareValues(pub Deps);

/// The parameters of the action.
#[derive(Deserialize, JsonSchema)]
struct Given {
    /// The simulation, by name. Optional if only one is loaded.
    #[serde(default)]
    simulation: Option<String>,
    /// The simulation mentioned before, if none is named.
    #[serde(default)]
    active: Option<String>,
    /// The parameter: its path or words for it. Required.
    #[serde(default)]
    parameter: Option<String>,
    /// The values with their unit, as the person wrote them: `1.5, 2 and 3 L`. Required.
    #[serde(default)]
    values: Option<String>,
    /// The time limit of each run in seconds.
    #[serde(default)]
    time_limit_s: Option<f64>,
}

/// The stored parameters.
#[derive(Serialize, Deserialize)]
pub struct Comparison {
    /// The simulation.
    pub simulation: String,
    /// The path of the parameter.
    pub parameter: String,
    /// The unit of the values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// The values, in order.
    pub values: Vec<f64>,
    /// The value before, to which the parameter is set back.
    pub before: f64,
    /// The time limit of each run in seconds.
    pub limit_s: u64,
}

/// The progress, as stored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sweep {
    /// The job of the current point, once it is submitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// The points that are done.
    pub points: Vec<Point>,
    /// True if the parameter was set back.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub set_back: bool,
    /// True if the cancellation of the current job was requested.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cancelled: bool,
}

/// A point of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// The value of the parameter.
    pub value: f64,
    /// The PK figures of the first output; `None` if the run has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<Metric>,
    /// The curve of the first output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub curve: Option<Curve>,
    /// The reason if there is no figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

#[async_trait]
impl ActionKind for CompareValues {
    fn info(&self) -> ActionInfo {
        ActionInfo::new(
            NAME,
            "Runs a loaded simulation at several values of one parameter and compares the PK figures, under one approval. Use \
         it whenever someone asks to run at several values, to compare values, or for a sweep.",
        )
    }

    fn schema(&self) -> Value {
        schema::<Given>()
    }

    async fn prepare(&self, given_parameters: &Value, _: Option<&Reader>) -> Result<Proposal, PrepareError> {
        let deps = &self.0;
        let asked: Given = parameters(given_parameters)?;
        let (parameter, values) = (non_blank(asked.parameter.as_ref()), non_blank(asked.values.as_ref()));
        let words = |simulation: &str, parameter: &str| match values {
            Some(values) => format!("compare {parameter} at {values} in {simulation}"),
            None => format!("compare values of {parameter} in {simulation}"),
        };
        let says = |simulation: &str| words(simulation, parameter.unwrap_or("Dose"));
        let loaded = find::simulation(deps, Asked::of(&asked.simulation, &asked.active), says).await?;
        let ask =
            |name: &str, question: String| Err(Refusal::Missing(vec![missing(name, question, Vec::new())]).into());
        busy::no_comparison(deps, &loaded.id).await?;
        let Some(parameter) = parameter else { return ask("parameter", "Which parameter should vary?".to_owned()) };
        let path = find::parameter(deps, &loaded.id, parameter, |path| words(&loaded.id, path)).await?;
        let before = find::value(deps, &loaded.id, &path).await?;
        let Some(before) = before else {
            return Err(refused(ErrorKind::Validation, refusals::no_present_value(&path)));
        };
        let Some(values) = values else {
            let unit = before.unit.as_deref();
            let question = format!("At which values of {path}? It is {} now.", quantity(before.value, unit));
            return ask("values", question);
        };
        let wrong = |text: String| Err(refused(ErrorKind::Validation, Reply::text(text)));
        let most = deps.settings.most_points;
        let said = listed(values);
        if said.len() < 2 || said.len() > most {
            return wrong(format!("A comparison has 2 to {most} values; I found {} in “{values}”.", said.len()));
        }
        let mut points: Vec<f64> = Vec::new();
        for value in &said {
            let says = |value: &str| format!("compare {path} at {value} in {}", loaded.id);
            let wanted = wanted::absolute(deps, &loaded.id, &path, Some(&before), value, says).await?;
            if !points.iter().any(|known| same(*known, wanted.value)) {
                points.push(wanted.value);
            }
        }
        find::allowed(deps, &loaded.id, &path, &points, before.unit.as_deref()).await?;
        let limit_s = run::limit(deps, asked.time_limit_s)?;
        let comparison = Comparison {
            simulation: loaded.id.clone(),
            parameter: path,
            unit: before.unit.clone(),
            values: points,
            before: before.value,
            limit_s,
        };
        let back = before.unit.as_ref().map_or(before.value.to_string(), |unit| format!("{} {unit}", before.value));
        let undo = Undo {
            name: set::NAME.to_owned(),
            parameters: json!({ "simulation": loaded.id, "parameter": comparison.parameter, "value": back }),
            label: format!("Set back to {}", quantity(before.value, before.unit.as_deref())),
        };
        let mut preconditions = run::loaded_state(&loaded);
        preconditions["value"] = json!(before.value);
        let mut card = card(&comparison, deps.memory.last_took(&loaded.id));
        busy::warn_of_run(deps, &loaded.id, &mut card, &mut preconditions).await;
        let mut scope = Scope::of(parameter_target(&loaded.id, &comparison.parameter)).of_subject(&loaded.id);
        scope.targets.push(comparison_target(&loaded.id));
        Ok(Proposal { card, scope, parameters: json!(comparison), preconditions, undo: Some(undo) })
    }

    async fn preconditions(&self, record: &ActionRecord) -> Result<Value, Outcome> {
        let comparison: Comparison = stored(record)?;
        busy::still_no_comparison(&self.0, &comparison.simulation, record).await?;
        let mut state = run::still_loaded(&self.0, &comparison.simulation).await?;
        let now = self.0.client.parameter(&comparison.simulation, &comparison.parameter).await;
        state["value"] = json!(now.map_err(|error| unread(&self.0, &comparison.simulation, &error))?.value);
        busy::no_new_run(&self.0, &comparison.simulation, record, &mut state).await?;
        Ok(state)
    }

    fn batches(&self) -> Option<&dyn Batches> {
        Some(self)
    }

    fn report(&self, record: &ActionRecord, reply: Reply) -> Reply {
        match (&record.outcome, stored::<Comparison>(record)) {
            (Some(Outcome::Done { result, .. }), Ok(comparison)) => {
                let points: Vec<Point> = serde_json::from_value(result["points"].clone()).unwrap_or_default();
                figures::comparison_report(reply, &comparison, &points)
            }
            _ => reply,
        }
    }
}

#[async_trait]
impl Batches for CompareValues {
    async fn next(&self, record: &ActionRecord, interrupted: bool) -> Batch {
        let (comparison, confirmed): (Comparison, _) = match approved(record) {
            Ok(approved) => approved,
            Err(outcome) => return Batch::Ended(outcome),
        };
        let sweep = sweep_of(record);
        match (&sweep.job, comparison.values.get(sweep.points.len())) {
            (Some(job), _) => self.check_run(record, &comparison, sweep.clone(), job).await,
            (None, Some(value)) => self.begin_point(record, &comparison, sweep, *value, &confirmed, interrupted).await,
            (None, None) => self.finish(record, &comparison, sweep, &confirmed, interrupted).await,
        }
    }

    fn in_flight(&self) -> Duration {
        in_flight(&self.0) + self.0.client.timeout() // one batch sets a value and submits a run
    }

    fn longest(&self) -> Duration {
        running::LONGEST
    }

    async fn give_up(&self, record: &ActionRecord) -> Option<Progress> {
        let (comparison, confirmed): (Comparison, _) = approved(record).ok()?;
        let mut sweep = sweep_of(record);
        if let Some(job) = &sweep.job {
            sweep.cancelled = running::cancel(&self.0, record, job).await;
        }
        sweep.set_back = self.set(&comparison, comparison.before, &confirmed, true).await.is_ok();
        Some(progress(&comparison, &sweep))
    }

    fn stopped(&self, record: &ActionRecord, by: Option<&UserId>) -> Outcome {
        let comparison: Comparison = match stored(record) {
            Ok(comparison) => comparison,
            Err(outcome) => return outcome,
        };
        let sweep = sweep_of(record);
        let (done, total) = (sweep.points.len(), comparison.values.len());
        let text = match by {
            Some(by) => {
                Text::from("Stopped by ").person(by.clone()).plain(format!(" after {done} of {total} values. "))
            }
            None => Text::from(format!("Stopped after {done} of {total} values, because it took too long. ")),
        };
        let before = quantity(comparison.before, comparison.unit.as_deref());
        let text = match sweep.set_back {
            true => text.code(&comparison.parameter).plain(format!(" is {before} again.")),
            false => text
                .code(&comparison.parameter)
                .plain(format!(" may still have a value from the comparison; before that, it was {before}.")),
        };
        let text = match sweep.job.is_some() && !sweep.cancelled {
            true => text.plain(" I couldn't cancel the run of the current value, so it may continue at the bridge."),
            false => text,
        };
        let result = json!({ "simulation": comparison.simulation, "points": sweep.points, IS_BACK: sweep.set_back });
        Outcome::Done { result, summary: text }
    }
}

impl CompareValues {
    /// Sets the value of a point and submits its run.
    async fn begin_point(
        &self,
        record: &ActionRecord,
        comparison: &Comparison,
        mut sweep: Sweep,
        value: f64,
        confirmed: &Confirmed,
        interrupted: bool,
    ) -> Batch {
        let deps = &self.0;
        let before = old(comparison);
        deps.memory.before_change(&comparison.simulation, &before);
        let nth = sweep.points.len();
        let asked = Run {
            simulation: comparison.simulation.clone(),
            run: format!("run-{}-{nth}", record.id),
            limit_s: comparison.limit_s,
        };
        let key = format!("{}-{nth}", record.id);
        let submitted = async {
            self.set(comparison, value, confirmed, interrupted).await?;
            deps.client.run(&asked, &key, confirmed).await
        };
        match submitted.await {
            Ok(job) => {
                let now = deps.client.clock().now();
                deps.memory.started(&job.id, &comparison.simulation, record, now);
                sweep.job = Some(job.id.clone());
                Batch::Waits(progress(comparison, &sweep), running::awaited(&job.id, comparison.limit_s))
            }
            // This value is refused, which is reported in the table; the comparison continues with the next one.
            Err(error @ (Error::Invalid { .. } | Error::Engine { .. } | Error::Conflict { .. })) => {
                sweep.points.push(Point { value, metric: None, curve: None, problem: Some(errors::fact(&error)) });
                Batch::Made(progress(comparison, &sweep))
            }
            Err(error) => running::not_submitted(deps, record, &comparison.simulation, interrupted || nth > 0, &error),
        }
    }

    /// Checks the run of the current point, and reads its figures if it has ended.
    async fn check_run(&self, record: &ActionRecord, comparison: &Comparison, mut sweep: Sweep, job: &str) -> Batch {
        match running::found(&self.0, record, job).await {
            Found::Ended(ended) => {
                let value = comparison.values.get(sweep.points.len()).copied().unwrap_or_default();
                sweep.points.push(self.point(value, &ended).await);
                sweep.job = None;
                Batch::Made(progress(comparison, &sweep))
            }
            Found::Unfinished(_) | Found::Unknown => {
                Batch::Waits(progress(comparison, &sweep), running::awaited(job, comparison.limit_s))
            }
        }
    }

    /// Sets the parameter back and ends the action. Setting it back twice does no harm.
    async fn finish(
        &self,
        record: &ActionRecord,
        comparison: &Comparison,
        sweep: Sweep,
        confirmed: &Confirmed,
        interrupted: bool,
    ) -> Batch {
        let deps = &self.0;
        let worked = sweep.points.iter().filter(|point| point.metric.is_some()).count();
        let back = quantity(comparison.before, comparison.unit.as_deref());
        let text = Text::from("Compared ").code(&comparison.parameter);
        let count = match comparison.values.len() {
            all if worked == all => all.to_string(),
            all => format!("{worked} of {all}"),
        };
        let text = text.plain(format!(" at {count} values in ")).bold(&comparison.simulation);
        let set_back = self.set(comparison, comparison.before, confirmed, interrupted).await;
        let is_back = set_back.is_ok();
        let text = match set_back {
            Ok(()) => text.plain(format!(". It is {back} again.")),
            Err(error @ (Error::NoAnswer { .. } | Error::Unavailable { .. } | Error::Busy)) => {
                match running::not_submitted(deps, record, &comparison.simulation, true, &error) {
                    Batch::NotNow => return Batch::NotNow,
                    _ => text.plain(format!(". I couldn't set it back to {back}: {}", errors::fact(&error))),
                }
            }
            Err(error) => text.plain(format!(". I couldn't set it back to {back}: {}", errors::fact(&error))),
        };
        let result = json!({ "simulation": comparison.simulation, "points": sweep.points, IS_BACK: is_back });
        Batch::Ended(Outcome::Done { result, summary: text })
    }

    /// Sets the parameter. If it was perhaps set before, it is read first, and not set again where it has this value.
    async fn set(
        &self,
        comparison: &Comparison,
        value: f64,
        confirmed: &Confirmed,
        interrupted: bool,
    ) -> Result<(), Error> {
        let client = &self.0.client;
        if interrupted {
            let now = client.parameter(&comparison.simulation, &comparison.parameter).await?;
            if same(now.value, value) {
                return Ok(());
            }
        }
        let wanted = Parameter { value, ..old(comparison) };
        client.set(&comparison.simulation, &wanted, confirmed).await.map(drop)
    }

    /// Reads the figures of one point.
    async fn point(&self, value: f64, job: &Job) -> Point {
        let deps = &self.0;
        let took = job.took(deps.client.clock().now());
        let nothing = |problem: String| Point { value, metric: None, curve: None, problem: Some(problem) };
        if job.status != JobStatus::Succeeded {
            deps.memory.ended(&job.id, None, None);
            return nothing(job.error.clone().unwrap_or_else(|| job.status.word().to_owned()));
        }
        deps.memory.ended(&job.id, took, job.results.as_deref());
        let results = job.results.as_deref().unwrap_or_default();
        match deps.client.metrics(results).await {
            Ok(metrics) => {
                let curves = deps.client.results(results).await.unwrap_or_default();
                let metric = metrics.into_iter().next();
                let of_metric = |metric: &Metric| curves.iter().find(|series| series.output == metric.output);
                let curve = metric.as_ref().and_then(of_metric).or(curves.first());
                Point { value, curve: curve.map(|series| curve::thin(&series.output, series)), metric, problem: None }
            }
            Err(error) => nothing(errors::fact(&error)),
        }
    }
}

fn old(comparison: &Comparison) -> Parameter {
    Parameter { path: comparison.parameter.clone(), value: comparison.before, unit: comparison.unit.clone() }
}

fn sweep_of(record: &ActionRecord) -> Sweep {
    let progress = record.progress.as_ref();
    progress.and_then(|progress| serde_json::from_value(progress.data.clone()).ok()).unwrap_or_default()
}

fn progress(comparison: &Comparison, sweep: &Sweep) -> Progress {
    let (done, total) = (sweep.points.len() as u64, comparison.values.len() as u64);
    let present = comparison.values.get(sweep.points.len());
    let note = present.map(|value| format!("at {}", quantity(*value, comparison.unit.as_deref()))).unwrap_or_default();
    running::progress(sweep, done, total, Text::from(note))
}

fn card(comparison: &Comparison, took: Option<Duration>) -> Card {
    let unit = comparison.unit.as_deref();
    let count = comparison.values.len();
    let values: Vec<String> = comparison.values.iter().map(|value| quantity(*value, unit)).collect();
    let mut facts = vec![
        fact("Simulation", Text::new().bold(&comparison.simulation)),
        fact("Parameter", Text::new().code(&comparison.parameter)),
        fact("Values", values.join(", ")),
        fact("Now", quantity(comparison.before, unit)),
        fact("Time limit", format!("{} for each run", lasting(Duration::from_secs(comparison.limit_s)))),
    ];
    if let Some(took) = took {
        facts.push(fact(
            "Expected",
            format!("about {} in total, based on its last run", lasting(took * u32::try_from(count).unwrap_or(1))),
        ));
    }
    Card {
        title: format!("Compare {count} values of {} in “{}”?", comparison.parameter, comparison.simulation),
        facts,
        warnings: vec![Text::from(
            "The parameter changes while this runs. Other runs of this simulation would use these values.",
        )],
        notes: vec![Text::from("One approval covers these runs. Afterward, I set the parameter back.")],
        approve: format!("Run {count} values"),
        reject: Card::REJECT.to_owned(),
        done: format!("Compared {count} values of {}.", comparison.parameter),
        ..Card::default()
    }
}
