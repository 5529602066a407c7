//! Runs of a simulation, which are submitted once and then awaited without holding any resources.
//!
//! The progress of a run is stored in its record. As long as the progress names no job, the run is submitted with a key
//! that the bridge recognises, so submitting it again returns the same job. Once there is a job, the action waits for
//! the event that it has ended ([`crate::events`]). If no event arrives, the state is read from the bridge at the
//! deadline.

use std::time::Duration;

use async_trait::async_trait;
use countersign_capabilities::parameters::refused;
use countersign_core::{
    clock::Timestamp,
    ids::UserId,
    reply::{Reply, Text},
};
use countersign_graph::action::{
    ActionRecord, Awaited, Batch, Batches, ErrorKind, Outcome, PrepareError, Progress, WaitEnd,
};
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{approved, confirmed, failed, in_flight, simulation_of, unread};
use crate::{
    Deps, SOURCE,
    bridge::{
        confirmed::Confirmed,
        data::{Metric, auc_unit},
        error::Error,
        follow::forgotten,
        job::{Job, JobStatus},
    },
    replies::outcomes,
};

/// The time during which submitting a run is retried if the bridge does not respond. After that, a person decides.
const SUBMIT_LIMIT: Duration = Duration::from_secs(10 * 60);
/// The additional time, beyond a run's limit, to wait for its end: it may be queued, and the bridge may notice its end
/// late.
const GRACE: Duration = Duration::from_secs(30 * 60);
/// The maximum duration of a run, including its time in the queue.
pub const LONGEST: Duration = Duration::from_secs(26 * 3600);

/// The progress of a run, as stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunProgress {
    /// The job, once the run is submitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// True if the cancellation of the job was requested.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancelled: bool,
}

/// The state of a job that an action waits for.
pub enum Found {
    /// It has ended.
    Ended(Job),
    /// It has not ended yet. Contains its status.
    Unfinished(JobStatus),
    /// Its state cannot be read at the moment.
    Unknown,
}

/// Submits the job of a run.
type Submit<S> = for<'a> fn(&'a Deps, S, &'a ActionRecord, Confirmed) -> BoxFuture<'a, Result<Job, Error>>;

/// A kind of run with a single job, whose stored parameters are an `S` with a simulation and a limit.
pub(super) struct Runs<S> {
    pub(super) deps: Deps,
    /// Submits it.
    pub(super) submit: Submit<S>,
    /// Reads the part of the outcome that its results are for, once it has succeeded.
    pub(super) read: for<'a> fn(&'a Deps, &'a str) -> BoxFuture<'a, Result<Value, Error>>,
    /// The name of that part.
    pub(super) part: &'static str,
    /// True if its duration is an estimate for the next run.
    pub(super) is_estimate: bool,
}

#[async_trait]
impl<S: DeserializeOwned + Send> Batches for Runs<S> {
    async fn next(&self, record: &ActionRecord, interrupted: bool) -> Batch {
        let deps = &self.deps;
        let limit_s = record.parameters["limit_s"].as_u64().unwrap_or_default();
        let (run, confirmed) = match approved(record) {
            Ok(approved) => approved,
            Err(outcome) => return Batch::Ended(outcome),
        };
        if let Some(job) = progress_of::<RunProgress>(record).job {
            return match follow(deps, record, &job, limit_s).await {
                Ok(ended) => Batch::Ended(self.ended(simulation_of(record), &ended).await),
                Err(batch) => batch,
            };
        }
        match (self.submit)(deps, run, record, confirmed).await {
            Ok(job) => submitted(deps, record, &job, limit_s),
            Err(error) => not_submitted(deps, record, interrupted, &error),
        }
    }

    fn in_flight(&self) -> Duration {
        in_flight(&self.deps)
    }

    fn longest(&self) -> Duration {
        LONGEST
    }

    /// Cancels the job.
    async fn give_up(&self, record: &ActionRecord) -> Option<Progress> {
        let RunProgress { job: Some(job), cancelled: false } = progress_of(record) else { return None };
        let cancelled = cancel(&self.deps, record, &job).await;
        self.deps.memory.ended(&job, None, None); // it is no longer followed, even if it still runs
        Some(progress(RunProgress { job: Some(job), cancelled }, 0, 1, Text::new()))
    }

    fn stopped(&self, record: &ActionRecord, by: Option<&UserId>) -> Outcome {
        let RunProgress { job, cancelled } = progress_of(record);
        let simulation = simulation_of(record);
        Outcome::Done {
            result: json!({ "simulation": simulation, "job": job, "stopped": true }),
            summary: outcomes::run_stopped(simulation, job.is_some().then_some(cancelled), by),
        }
    }
}

impl<S> Runs<S> {
    /// Returns the outcome of a run whose job has ended.
    async fn ended(&self, simulation: &str, job: &Job) -> Outcome {
        let memory = &self.deps.memory;
        if job.status != JobStatus::Succeeded {
            memory.ended(&job.id, None, None);
            return failed(ErrorKind::Execution, outcomes::run_failed(simulation, job));
        }
        let took = job.took(self.deps.client.clock().now());
        let results = job.results.as_deref();
        memory.ended(&job.id, took, results.filter(|_| self.is_estimate));
        let mut result = json!({ "simulation": simulation, "job": job.id, "results": results });
        let unread = match (self.read)(&self.deps, results.unwrap_or_default()).await {
            Ok(found) => {
                result[self.part] = found;
                None
            }
            Err(error) => Some(error),
        };
        Outcome::Done { result, summary: outcomes::ran(simulation, took, unread.as_ref()) }
    }
}

/// Returns the time limit of a run in seconds.
///
/// # Errors
///
/// A refusal if it is not between a second and a day.
pub(super) fn limit(deps: &Deps, asked: Option<f64>) -> Result<u64, PrepareError> {
    let limit = asked.unwrap_or(deps.settings.run_limit.as_secs() as f64);
    match (1.0..=86_400.0).contains(&limit) {
        true => Ok(limit.round() as u64),
        false => {
            Err(refused(ErrorKind::Validation, Reply::text("The time limit must be between 1 second and 24 hours.")))
        }
    }
}

/// Returns the stored progress of a record.
pub fn progress_of<T: DeserializeOwned + Default>(record: &ActionRecord) -> T {
    let progress = record.progress.as_ref();
    progress.and_then(|progress| serde_json::from_value(progress.data.clone()).ok()).unwrap_or_default()
}

/// Returns the progress of a run for its card.
pub fn progress(data: impl Serialize, done: u64, total: u64, note: Text) -> Progress {
    Progress { data: json!(data), done, total, note }
}

/// Returns the event that ends a wait for a job.
pub fn awaited(job: &str, limit_s: u64) -> Awaited {
    let within = Duration::from_secs(limit_s) + GRACE;
    Awaited { source: SOURCE.to_owned(), key: job.to_owned(), within }
}

/// Returns the state of a job that the record waited for.
pub async fn found(deps: &Deps, record: &ActionRecord, job: &str) -> Found {
    let wait = record.waits.as_ref().filter(|wait| wait.key == job);
    if let Some(WaitEnd::Arrived(body)) = wait.and_then(|wait| wait.end.as_ref())
        && let Ok(ended) = serde_json::from_value::<Job>(body.clone())
    {
        return Found::Ended(ended);
    }
    match deps.client.job(job).await {
        Ok(found) if found.status.is_final() => Found::Ended(found),
        Ok(found) => Found::Unfinished(found.status),
        Err(Error::NotFound { .. }) => Found::Ended(forgotten(job)),
        Err(_) => Found::Unknown,
    }
}

/// Requests the cancellation of a job whose action is being stopped, unless the job has ended or its cancellation was
/// already requested. Returns false if the request failed.
pub async fn cancel(deps: &Deps, record: &ActionRecord, job: &str) -> bool {
    let Ok(confirmed) = confirmed(record) else { return false };
    if deps.client.job(job).await.is_ok_and(|found| found.cancel_requested || found.status.is_final()) {
        return true;
    }
    let cancelled = deps.client.cancel(job, &confirmed).await;
    if let Err(error) = &cancelled {
        tracing::warn!(job.id = job, %error, "Cannot cancel the job of an action that is being stopped");
    }
    cancelled.is_ok()
}

/// Returns the batch that waits for a newly submitted job.
fn submitted(deps: &Deps, record: &ActionRecord, job: &Job, limit_s: u64) -> Batch {
    let now = deps.client.clock().now();
    deps.memory.started(&job.id, record, now);
    let data = RunProgress { job: Some(job.id.clone()), cancelled: false };
    Batch::Waits(progress(data, 0, 1, note(job.status, now)), awaited(&job.id, limit_s))
}

/// Reads the state of an action's only job. Returns the job if it has ended, or else the next batch as the error.
async fn follow(deps: &Deps, record: &ActionRecord, job: &str, limit_s: u64) -> Result<Job, Batch> {
    let status = match found(deps, record, job).await {
        Found::Ended(ended) => return Ok(ended),
        Found::Unfinished(status) => status,
        Found::Unknown => JobStatus::Running,
    };
    let since = record.progress_at.unwrap_or_else(|| deps.client.clock().now());
    let data = RunProgress { job: Some(job.to_owned()), cancelled: false };
    Err(Batch::Waits(progress(data, 0, 1, note(status, since)), awaited(job, limit_s)))
}

/// Returns the batch for a run that could not be submitted.
pub fn not_submitted(deps: &Deps, record: &ActionRecord, interrupted: bool, error: &Error) -> Batch {
    let now = deps.client.clock().now();
    let timed_out = record.intent_at.is_some_and(|began| now > began + SUBMIT_LIMIT);
    match error {
        Error::NoAnswer { .. } | Error::Faulted { .. } if !timed_out => Batch::NotNow,
        Error::Unavailable { .. } | Error::Busy if interrupted && !timed_out => Batch::NotNow,
        Error::NoAnswer { .. } | Error::Faulted { .. } | Error::Unavailable { .. } | Error::Busy if interrupted => {
            Batch::Ended(Outcome::Unknown { summary: outcomes::perhaps_submitted(error) })
        }
        error => Batch::Ended(unread(deps, record, error)),
    }
}

/// Returns the note on the card of a run that has been in this state since `since`.
fn note(status: JobStatus, since: Timestamp) -> Text {
    let state = match status {
        JobStatus::Queued => "Queued at the bridge since ",
        _ => "Running at the bridge since ",
    };
    Text::from(state).moment(since).plain(". I'm waiting for it to end.")
}

/// Reads the figures of results, and their curves if possible, for the outcome.
pub async fn figures(deps: &Deps, results: &str) -> Result<Value, Error> {
    let metrics = deps.client.metrics(results).await?.iter().map(with_units).collect::<Vec<_>>();
    let series = deps.client.results(results).await.unwrap_or_default();
    Ok(json!({ "metrics": metrics, "curves": crate::curve::thinned(&series) }))
}

/// Returns PK figures with the units of those that are not concentrations, for the conditions of plans.
fn with_units(metric: &Metric) -> Value {
    let mut figures = json!(metric);
    figures["tmax_unit"] = json!("h");
    if let Some(unit) = &metric.unit {
        figures["auc_unit"] = json!(auc_unit(unit));
    }
    figures
}
