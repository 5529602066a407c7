//! Jobs: submitting, starting when a worker is free, and ending.
//!
//! Everything here is synchronous; `server` waits in between. A run is computed when it starts,
//! from the parameters at that time, and its results are stored when it ends.

use std::{sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::{
    Backend,
    engine::{self, Parameters, Series},
    moment::Moment,
    population,
    world::{Population, Results, World, fresh_id},
};

/// The maximum number of simultaneous runs.
const WORKERS: usize = 2;

/// The default time limit of a run, in seconds.
pub(crate) const TIME_LIMIT: f64 = 300.0;

/// The state of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Status {
    /// The job waits for a worker.
    Queued,
    /// The job is running.
    Running,
    /// The job ended with results.
    Succeeded,
    /// The job ended with an error.
    Failed,
    /// The job was cancelled.
    Cancelled,
    /// The job exceeded its time limit.
    Timeout,
}

impl Status {
    /// Returns the name of the state.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Timeout => "timeout",
        }
    }

    /// Returns true if the state does not change any more.
    pub(crate) fn is_final(self) -> bool {
        !matches!(self, Self::Queued | Self::Running)
    }
}

/// The work of a job.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Work {
    /// A run of a simulation.
    Run,
    /// A run of a population, with the arguments of the call.
    Population(Value),
}

/// The results of a job.
#[derive(Clone, Debug)]
enum Output {
    Curves(Vec<Series>),
    Population(Box<Population>),
}

/// The record of a job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Job {
    /// The id.
    pub(crate) id: String,
    /// The simulation.
    pub(crate) simulation: String,
    /// The id of the results.
    pub(crate) results: String,
    /// The work.
    pub(crate) work: Work,
    /// The state.
    pub(crate) status: Status,
    /// The time of submission.
    pub(crate) submitted: Moment,
    /// The time at which the last attempt started.
    pub(crate) started: Option<Moment>,
    /// The time at which it ended.
    pub(crate) finished: Option<Moment>,
    /// The number of attempts so far.
    pub(crate) attempts: u64,
    /// The maximum number of further attempts after an error of the engine.
    pub(crate) max_retries: u64,
    /// The time limit of an attempt, in seconds.
    pub(crate) timeout: f64,
    /// The error.
    pub(crate) error: Option<String>,
    /// True if cancellation was requested.
    pub(crate) cancel_requested: bool,
    /// The id in the queueing scheduler.
    pub(crate) external: Option<String>,
    /// True while a task waits for its duration to elapse.
    #[serde(skip)]
    pub(crate) timed: bool,
    /// Notifies the event streams of the job of a change of its state.
    #[serde(skip)]
    pub(crate) news: Arc<Notify>,
    #[serde(skip)]
    outcome: Option<Result<Output, String>>,
}

impl Job {
    /// Returns the id of the results, if there are any.
    pub(crate) fn result_id(&self) -> Option<&str> {
        (self.status == Status::Succeeded).then_some(self.results.as_str())
    }

    fn error(&self) -> Value {
        self.error.as_ref().map_or(Value::Null, |message| json!({ "message": message }))
    }

    /// Returns the record in the format of the REST route.
    pub(crate) fn on_route(&self) -> Value {
        json!({
            "jobId": self.id, "status": self.status.word(), "progress": null, "submittedAt": self.submitted.iso(),
            "startedAt": self.started.map(Moment::iso), "finishedAt": self.finished.map(Moment::iso),
            "attempts": self.attempts, "maxRetries": self.max_retries, "timeoutSeconds": self.timeout,
            "resultHandle": self.result_id().map(|id| json!({ "resultsId": id })), "error": self.error(),
            "cancelRequested": self.cancel_requested, "externalJobId": self.external,
        })
    }

    /// Returns the record in the format of tools.
    pub(crate) fn in_tool(&self) -> Value {
        json!({
            "jobId": self.id, "status": self.status.word(), "submittedAt": self.submitted.epoch(),
            "startedAt": self.started.map(Moment::epoch), "finishedAt": self.finished.map(Moment::epoch),
            "attempts": self.attempts, "maxRetries": self.max_retries, "timeoutSeconds": self.timeout,
            "cancelRequested": self.cancel_requested, "resultId": self.result_id(), "error": self.error(),
            "externalJobId": self.external,
        })
    }

    /// Returns the record in the format of the event stream.
    pub(crate) fn in_stream(&self) -> Value {
        json!({
            "jobId": self.id, "status": self.status.word(), "attempts": self.attempts, "maxRetries": self.max_retries,
            "timeoutSeconds": self.timeout, "submittedAt": self.submitted.iso(),
            "startedAt": self.started.map(Moment::iso), "finishedAt": self.finished.map(Moment::iso),
            "resultId": self.result_id(), "error": self.error(),
        })
    }
}

impl World {
    /// Submits a job and starts it if a worker is free. Returns its id.
    pub(crate) fn submit(
        &mut self,
        simulation: &str,
        results: Option<&str>,
        work: Work,
        limit: Option<f64>,
        retries: Option<u64>,
    ) -> String {
        let id = fresh_id();
        let results = match (&work, results) {
            (Work::Population(_), _) => format!("pop-{}", fresh_id()),
            (Work::Run, Some(results)) => results.to_owned(),
            (Work::Run, None) => id.clone(),
        };
        let submitted = self.moment();
        let external = self.scheduler.then(|| format!("SLURM-{}", &fresh_id()[..8].to_uppercase()));
        self.jobs.push(Job {
            id: id.clone(),
            simulation: simulation.to_owned(),
            results,
            work,
            status: Status::Queued,
            submitted,
            started: None,
            finished: None,
            attempts: 0,
            max_retries: retries.unwrap_or(0),
            timeout: limit.unwrap_or(TIME_LIMIT),
            error: None,
            cancel_requested: false,
            external,
            timed: false,
            news: Arc::default(),
            outcome: None,
        });
        self.start_next();
        id
    }

    /// Returns a job.
    pub(crate) fn job(&self, id: &str) -> Option<&Job> {
        self.jobs.iter().find(|job| job.id == id)
    }

    fn place(&self, id: &str) -> Option<usize> {
        self.jobs.iter().position(|job| job.id == id)
    }

    /// Starts queued jobs while workers are free. Jobs in the scheduler are started by it.
    fn start_next(&mut self) {
        while self.jobs.iter().filter(|job| job.status == Status::Running).count() < WORKERS {
            let waits = |job: &Job| job.status == Status::Queued && job.external.is_none();
            let Some(at) = self.jobs.iter().position(waits) else { return };
            self.start(at);
        }
    }

    /// Starts an attempt.
    fn start(&mut self, at: usize) {
        let now = self.moment();
        let job = &mut self.jobs[at];
        job.status = Status::Running;
        job.started = Some(now);
        job.attempts += 1;
        let (simulation, attempts, work) = (job.simulation.clone(), job.attempts, job.work.clone());
        let results = job.results.clone();
        let parameters = self.simulation(&simulation).map(|own| own.parameters.clone()).unwrap_or_default();
        let outcome = self.compute(&simulation, &results, attempts, &work, &parameters);
        self.jobs[at].outcome = Some(outcome);
        self.jobs[at].news.notify_waiters();
    }

    fn compute(
        &self,
        simulation: &str,
        results: &str,
        attempt: u64,
        work: &Work,
        parameters: &Parameters,
    ) -> Result<Output, String> {
        if self.backend != Backend::Memory {
            if simulation.starts_with("fail") {
                return Err("InteropError: solver did not converge ({'step': 't=3.2 h'})".to_owned());
            }
            if simulation.starts_with("flaky") && attempt < 3 {
                return Err("InteropError: the engine lost its connection".to_owned());
            }
        }
        match (work, self.backend) {
            (Work::Run, Backend::Memory) => {
                let points = vec![(0.0, 0.0), (1.0, 1.0)];
                let (parameter, unit) = ("Concentration".to_owned(), "mg/L".to_owned());
                Ok(Output::Curves(vec![Series { parameter, unit, points }]))
            }
            (Work::Run, _) => Ok(Output::Curves(vec![engine::run(parameters)])),
            (Work::Population(_), Backend::Recorded) => {
                Err("InteropError: Population simulations are not implemented for the subprocess adapter".to_owned())
            }
            (Work::Population(arguments), Backend::Memory) => {
                Ok(Output::Population(Box::new(population::of_memory(results, arguments, self.now))))
            }
            (Work::Population(arguments), Backend::Demo) => {
                Ok(Output::Population(Box::new(population::of_model(results, arguments, parameters, self.now))))
            }
        }
    }

    /// Returns the time until the next state of a job, which depends on the name of its simulation.
    pub(crate) fn takes(&self, job: &Job) -> Duration {
        let name = |start: &str| self.backend != Backend::Memory && job.simulation.starts_with(start);
        match () {
            () if job.status == Status::Queued => Duration::from_millis(500),
            () if job.external.is_some() => Duration::ZERO,
            () if name("slow") => Duration::from_secs(6),
            () if name("hang") => Duration::from_secs(15),
            () if name("flaky") => Duration::from_secs(1),
            () => self.run_takes,
        }
    }

    /// Ends the current attempt of a job, after taking the job out of the scheduler. The job then
    /// ends or starts another attempt.
    pub(crate) fn advance(&mut self, id: &str) {
        let Some(at) = self.place(id) else { return };
        self.jobs[at].timed = false;
        if self.jobs[at].status == Status::Queued {
            self.start(at);
        }
        if self.jobs[at].status == Status::Running {
            self.end(at);
        }
        self.start_next();
    }

    /// Finishes all jobs.
    pub(crate) fn finish_all(&mut self) {
        while let Some(id) = self.jobs.iter().find(|job| !job.status.is_final()).map(|job| job.id.clone()) {
            self.advance(&id);
        }
    }

    fn end(&mut self, at: usize) {
        let taken = self.takes(&self.jobs[at]).as_secs_f64();
        let now = self.moment();
        let job = &mut self.jobs[at];
        let elapsed = job.started.map_or(0.0, |started| (now.0 - started.0) as f64 / 1e6).max(taken);
        let outcome = job.outcome.take();
        let (status, error) = match outcome {
            _ if job.cancel_requested => (Status::Cancelled, None),
            _ if elapsed > job.timeout => (Status::Timeout, Some("Job execution exceeded timeout".to_owned())),
            Some(Err(_)) if job.attempts <= job.max_retries => return self.start(at),
            Some(Err(message)) => (Status::Failed, Some(message)),
            Some(Ok(made)) => {
                let (results, simulation) = (job.results.clone(), job.simulation.clone());
                match made {
                    Output::Curves(series) => {
                        self.results.insert(results, Results { simulation, generated: now, series });
                    }
                    Output::Population(population) => {
                        self.populations.insert(results, *population);
                    }
                }
                (Status::Succeeded, None)
            }
            None => (Status::Failed, Some("InteropError: nothing was computed".to_owned())),
        };
        let job = &mut self.jobs[at];
        (job.status, job.error, job.finished) = (status, error, Some(now));
        job.news.notify_waiters();
    }

    /// Cancels a job. Returns its state afterwards.
    pub(crate) fn cancel(&mut self, id: &str) -> Option<Status> {
        let at = self.place(id)?;
        let now = self.moment();
        let job = &mut self.jobs[at];
        job.cancel_requested = true;
        if job.status == Status::Queued {
            if job.external.is_some() {
                // The bridge then deadlocks on a lock of its own.
                self.stalled = true;
            } else {
                (job.status, job.finished) = (Status::Cancelled, Some(now));
                job.news.notify_waiters();
            }
        }
        Some(self.jobs[at].status)
    }

    /// Fails the jobs that a restart interrupts.
    pub(crate) fn abandon_jobs(&mut self) {
        let now = self.moment();
        for job in self.jobs.iter_mut().filter(|job| !job.status.is_final()) {
            (job.status, job.finished, job.outcome) = (Status::Failed, Some(now), None);
            job.error = Some("Job service restarted before completion".to_owned());
            job.news.notify_waiters();
        }
    }

    /// Submits a job and finishes it at once. Returns its id.
    pub(crate) fn done(&mut self, simulation: &str, results: &str) -> String {
        let id = self.submit(simulation, Some(results), Work::Run, None, None);
        while self.job(&id).is_some_and(|job| !job.status.is_final()) {
            self.advance(&id);
        }
        id
    }
}
