//! `compare_values`: runs a simulation at several values of one parameter and compares the PK figures.
//!
//! One approval covers all points on the card and nothing else. Each point is set, run and read, and the progress is
//! saved between them. Every call of a point can be repeated, because values are absolute and each run has its own key.
//! Finally the parameter is set back.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use countersign_capabilities::{
    parameters::{incomplete, non_blank, refused},
    rows::{Change, stored},
};
use countersign_core::{
    ids::UserId,
    reply::{Card, Fact, Reply, Text},
    units::quantity,
};
use countersign_graph::action::{
    ActionInfo, ActionKind, ActionRecord, Batch, Batches, ErrorKind, IS_BACK, Outcome, PrepareError, Progress, Proposal,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    approved, free, in_flight, proposal,
    running::{self, Found},
    set::{same, set_back},
    still_free, unread, with_figures,
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
    find::{self, Target},
    memory::{comparison_target, parameter_target},
    replies::{errors, figures, lasting, outcomes, refusals},
    under_way, wanted,
};

/// The name of the action.
pub const NAME: &str = "compare_values";

/// Stands for the parameter and the values of the last comparison.
pub const SAME_VALUES: &str = "the same values";

/// The parameters of the action.
#[derive(Deserialize, JsonSchema)]
struct Given {
    #[serde(flatten)]
    target: Target,
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

impl Comparison {
    /// Returns the parameter with its value before.
    fn old(&self) -> Parameter {
        Parameter { path: self.parameter.clone(), value: self.before, unit: self.unit.clone() }
    }

    /// Returns the progress as it is stored and shown.
    fn progress(&self, sweep: &Sweep) -> Progress {
        let (done, total) = (sweep.points.len() as u64, self.values.len() as u64);
        let present = self.values.get(sweep.points.len());
        let note = present.map(|value| format!("at {}", quantity(*value, self.unit.as_deref()))).unwrap_or_default();
        running::progress(sweep, done, total, Text::from(note))
    }
}

/// Returns the action `compare_values`.
pub(crate) fn action(deps: Deps) -> Arc<dyn ActionKind> {
    let info = ActionInfo::new(
        NAME,
        "Runs a loaded simulation at several values of one parameter and compares the PK figures, under one approval. Use \
         it whenever someone asks to run at several values, to compare values, or for a sweep.",
    );
    Arc::new(Change::<Sweeps, Given, Comparison> {
        now: |row, comparison, record| Box::pin(now(&row.deps.0, comparison, record)),
        report: |_, record, reply| match stored::<Comparison>(record) {
            Ok(comparison) => with_figures(record, reply, |reply, result| {
                let points: Vec<Point> = serde_json::from_value(result["points"].clone()).unwrap_or_default();
                figures::comparison_report(reply, &comparison, &points)
            }),
            Err(_) => reply,
        },
        ..Change::in_batches(Sweeps(deps), info, |row, asked, _| Box::pin(prepare(&row.deps.0, asked)), |row| &row.deps)
    })
}

async fn prepare(deps: &Deps, asked: Given) -> Result<Proposal, PrepareError> {
    let (parameter, values) = (non_blank(asked.parameter.as_ref()), non_blank(asked.values.as_ref()));
    let words = |simulation: &str, parameter: &str| match values {
        Some(values) => format!("compare {parameter} at {values} in {simulation}"),
        None => format!("compare values of {parameter} in {simulation}"),
    };
    let says = |simulation: &str| words(simulation, parameter.unwrap_or("Dose"));
    let loaded = free(deps, &asked.target, says).await?;
    let last = match values {
        Some(SAME_VALUES) => Some(last_compared(deps, &loaded.id).await?),
        _ => None,
    };
    let (parameter, values) = match &last {
        Some((parameter, values)) => (Some(parameter.as_str()), Some(values.as_str())),
        None => (parameter, values),
    };
    let Some(parameter) = parameter else {
        return Err(incomplete("parameter", "Which parameter should vary?", Vec::new()));
    };
    let path = find::parameter(deps, &loaded.id, parameter, |path| words(&loaded.id, path)).await?;
    let Some(before) = find::value(deps, &loaded.id, &path).await? else {
        return Err(refused(ErrorKind::Validation, refusals::no_present_value(&path)));
    };
    let Some(values) = values else {
        let question = format!("At which values of {path}? It is {} now.", before.words());
        return Err(incomplete("values", question, Vec::new()));
    };
    let most = deps.settings.most_points;
    let said = listed(values);
    if said.len() < 2 || said.len() > most {
        let text = format!("A comparison has 2 to {most} values; I found {} in “{values}”.", said.len());
        return Err(refused(ErrorKind::Validation, Reply::text(text)));
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
    let limit_s = running::limit(deps, asked.time_limit_s)?;
    let comparison = Comparison {
        simulation: loaded.id.clone(),
        parameter: path,
        unit: before.unit.clone(),
        values: points,
        before: before.value,
        limit_s,
    };
    let card = card(&comparison, deps.memory.last_took(&loaded.id));
    let target = parameter_target(&loaded.id, &comparison.parameter);
    let undo = set_back(&loaded.id, &comparison.old());
    let mut proposal = Proposal { undo: Some(undo), ..proposal(&loaded, target, comparison, card) };
    proposal.scope.targets.push(comparison_target(&loaded.id));
    proposal.preconditions["value"] = json!(before.value);
    busy::warn_of_run(deps, &loaded.id, &mut proposal).await;
    Ok(proposal)
}

/// Returns the parameter and the values of the last comparison, as a person writes them.
async fn last_compared(deps: &Deps, simulation: &str) -> Result<(String, String), PrepareError> {
    let records = under_way::comparisons(deps, Some(simulation)).await;
    let last = records.first().and_then(|record| stored::<Comparison>(record).ok());
    let last = last.ok_or_else(|| {
        let text = format!("I have no comparison of values in {simulation} on record, so there is none to repeat.");
        refused(ErrorKind::NotFound, Reply::text(text))
    })?;
    let unit = last.unit.unwrap_or_default();
    let values: Vec<String> = last.values.iter().map(|value| format!("{value} {unit}").trim_end().to_owned()).collect();
    Ok((last.parameter, values.join(", ")))
}

async fn now(deps: &Deps, comparison: Comparison, record: &ActionRecord) -> Result<Value, Outcome> {
    let mut state = still_free(deps, record).await?;
    let now = deps.client.parameter(&comparison.simulation, &comparison.parameter).await;
    state["value"] = json!(now.map_err(|error| unread(deps, record, &error))?.value);
    busy::no_new_run(deps, record, &mut state).await?;
    Ok(state)
}

/// The points of comparisons, one by one.
struct Sweeps(Deps);

#[async_trait]
impl Batches for Sweeps {
    async fn next(&self, record: &ActionRecord, interrupted: bool) -> Batch {
        let step = match Step::of(&self.0, record, interrupted) {
            Ok(step) => step,
            Err(outcome) => return Batch::Ended(outcome),
        };
        let sweep: Sweep = running::progress_of(record);
        match (sweep.job.clone(), step.comparison.values.get(sweep.points.len())) {
            (Some(job), _) => step.check_run(sweep, &job).await,
            (None, Some(value)) => step.begin_point(sweep, *value).await,
            (None, None) => step.finish(sweep).await,
        }
    }

    fn in_flight(&self) -> Duration {
        in_flight(&self.0) + self.0.client.timeout() // one batch sets a value and submits a run
    }

    fn longest(&self) -> Duration {
        running::LONGEST
    }

    async fn give_up(&self, record: &ActionRecord) -> Option<Progress> {
        let step = Step::of(&self.0, record, true).ok()?;
        let mut sweep: Sweep = running::progress_of(record);
        if let Some(job) = &sweep.job {
            sweep.cancelled = running::cancel(&self.0, record, job).await;
        }
        sweep.set_back = step.set(step.comparison.before).await.is_ok();
        Some(step.comparison.progress(&sweep))
    }

    fn stopped(&self, record: &ActionRecord, by: Option<&UserId>) -> Outcome {
        match stored(record) {
            Ok(comparison) => {
                let sweep: Sweep = running::progress_of(record);
                let summary = outcomes::comparison_stopped(&comparison, &sweep, by);
                Outcome::Done { result: result(&comparison, &sweep, sweep.set_back), summary }
            }
            Err(outcome) => outcome,
        }
    }
}

/// Returns the result of a comparison.
fn result(comparison: &Comparison, sweep: &Sweep, is_back: bool) -> Value {
    json!({ "simulation": comparison.simulation, "points": sweep.points, IS_BACK: is_back })
}

/// A step of an approved comparison.
struct Step<'a> {
    deps: &'a Deps,
    record: &'a ActionRecord,
    comparison: Comparison,
    confirmed: Confirmed,
    /// True if the step may have been begun before.
    interrupted: bool,
}

impl<'a> Step<'a> {
    fn of(deps: &'a Deps, record: &'a ActionRecord, interrupted: bool) -> Result<Self, Outcome> {
        let (comparison, confirmed) = approved(record)?;
        Ok(Self { deps, record, comparison, confirmed, interrupted })
    }

    /// Sets the value of a point and submits its run.
    async fn begin_point(&self, mut sweep: Sweep, value: f64) -> Batch {
        let Self { deps, record, comparison, confirmed, interrupted } = self;
        deps.memory.before_change(&comparison.simulation, &comparison.old());
        let nth = sweep.points.len();
        let asked = Run {
            simulation: comparison.simulation.clone(),
            run: format!("run-{}-{nth}", record.id),
            limit_s: comparison.limit_s,
        };
        let key = format!("{}-{nth}", record.id);
        let submitted = async {
            self.set(value).await?;
            deps.client.run(&asked, &key, confirmed).await
        };
        match submitted.await {
            Ok(job) => {
                deps.memory.started(&job.id, record, deps.client.clock().now());
                sweep.job = Some(job.id.clone());
                Batch::Waits(comparison.progress(&sweep), running::awaited(&job.id, comparison.limit_s))
            }
            // This value is refused, which is reported in the table; the comparison continues with the next one.
            Err(error @ (Error::Invalid { .. } | Error::Engine { .. } | Error::Conflict { .. })) => {
                sweep.points.push(Point { value, metric: None, curve: None, problem: Some(errors::fact(&error)) });
                Batch::Made(comparison.progress(&sweep))
            }
            Err(error) => running::not_submitted(deps, record, *interrupted || nth > 0, &error),
        }
    }

    /// Checks the run of the current point, and reads its figures if it has ended.
    async fn check_run(&self, mut sweep: Sweep, job: &str) -> Batch {
        let comparison = &self.comparison;
        match running::found(self.deps, self.record, job).await {
            Found::Ended(ended) => {
                let value = comparison.values.get(sweep.points.len()).copied().unwrap_or_default();
                sweep.points.push(point(self.deps, value, &ended).await);
                sweep.job = None;
                Batch::Made(comparison.progress(&sweep))
            }
            Found::Unfinished(_) | Found::Unknown => {
                Batch::Waits(comparison.progress(&sweep), running::awaited(job, comparison.limit_s))
            }
        }
    }

    /// Sets the parameter back and ends the action. Setting it back twice does no harm.
    async fn finish(&self, sweep: Sweep) -> Batch {
        let comparison = &self.comparison;
        let worked = sweep.points.iter().filter(|point| point.metric.is_some()).count();
        let back = comparison.old().words();
        let text = Text::from("Compared ").code(&comparison.parameter);
        let count = match comparison.values.len() {
            all if worked == all => all.to_string(),
            all => format!("{worked} of {all}"),
        };
        let text = text.plain(format!(" at {count} values in ")).bold(&comparison.simulation);
        let set_back = self.set(comparison.before).await;
        if let Err(error @ (Error::NoAnswer { .. } | Error::Unavailable { .. } | Error::Busy)) = &set_back
            && running::not_submitted(self.deps, self.record, true, error) == Batch::NotNow
        {
            return Batch::NotNow;
        }
        let is_back = set_back.is_ok();
        let summary = text.plain(match set_back {
            Ok(()) => format!(". It is {back} again."),
            Err(error) => format!(". I couldn't set it back to {back}: {}", errors::fact(&error)),
        });
        Batch::Ended(Outcome::Done { result: result(comparison, &sweep, is_back), summary })
    }

    /// Sets the parameter. If it was perhaps set before, it is read first, and not set again where it has this value.
    async fn set(&self, value: f64) -> Result<(), Error> {
        let (client, Comparison { simulation, parameter, .. }) = (&self.deps.client, &self.comparison);
        if self.interrupted && same(client.parameter(simulation, parameter).await?.value, value) {
            return Ok(());
        }
        client.set(simulation, &Parameter { value, ..self.comparison.old() }, &self.confirmed).await.map(drop)
    }
}

/// Reads the figures of one point.
async fn point(deps: &Deps, value: f64, job: &Job) -> Point {
    let nothing = |problem: String| Point { value, metric: None, curve: None, problem: Some(problem) };
    if job.status != JobStatus::Succeeded {
        deps.memory.ended(&job.id, None, None);
        return nothing(job.error.clone().unwrap_or_else(|| job.status.word().to_owned()));
    }
    deps.memory.ended(&job.id, job.took(deps.client.clock().now()), job.results.as_deref());
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

fn card(comparison: &Comparison, took: Option<Duration>) -> Card {
    let Comparison { simulation, parameter, .. } = comparison;
    let count = comparison.values.len();
    let values = comparison.values.iter().map(|value| quantity(*value, comparison.unit.as_deref()));
    let mut facts = vec![
        Fact::new("Simulation", Text::new().bold(simulation)),
        Fact::new("Parameter", Text::new().code(parameter)),
        Fact::new("Values", values.collect::<Vec<_>>().join(", ")),
        Fact::new("Now", comparison.old().words()),
        Fact::new("Time limit", format!("{} for each run", lasting(Duration::from_secs(comparison.limit_s)))),
    ];
    facts.extend(took.map(|took| {
        let expected = lasting(took * u32::try_from(count).unwrap_or(1));
        Fact::new("Expected", format!("about {expected} in total, based on its last run"))
    }));
    Card {
        facts,
        warnings: vec![Text::from(
            "The parameter changes while this runs. Other runs of this simulation would use these values.",
        )],
        notes: vec![Text::from("One approval covers these runs. Afterward, I set the parameter back.")],
        ..Card::new(
            format!("Compare {count} values of {parameter} in “{simulation}”?"),
            &format!("Run {count} values"),
            format!("Compared {count} values of {parameter}."),
        )
    }
}
