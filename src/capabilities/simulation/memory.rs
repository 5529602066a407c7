//! Facts about simulations and runs that the bridge itself does not report.
//!
//! The model file of a simulation and the values of its parameters before they were changed are in the records of the
//! approved changes, across restarts and for all processes: [`Memory::recall`] and [`Memory::recalled_default`] read
//! them there. Everything else is only a cache: it is empty after a restart, its lists are bounded, and the loaded
//! simulations are always read from the bridge again. The names of simulations are cached for [`NAMES_MAX_AGE`], so
//! that they are recognised in messages.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use countersign_capabilities::History;
use countersign_core::{
    clock::{Clock, Timestamp},
    ids::ThreadId,
};
use countersign_graph::action::{ActionRecord, Status};
use countersign_understanding::lexicon::{Name, Names};

use super::{
    actions::{compare, load, simulation_of},
    bridge::{client::BridgeClient, data::Parameter},
};

/// The time for which the names of simulations are used without reading them again.
const NAMES_MAX_AGE: Duration = Duration::from_secs(20);
/// The pause before the names are read again after a failed read.
const RETRY_PAUSE: Duration = Duration::from_secs(5);
/// The time limit of reading names, for which a message waits.
const NAMES_TIMEOUT: Duration = Duration::from_secs(2);
/// The maximum number of entries in each list.
const MAX_ENTRIES: usize = 200;
/// The maximum number of changes of one parameter that are read to find its first value.
const MAX_CHANGES: usize = 1_000;

/// The maximum number of records about a target among which one in progress is looked for.
const MAX_IN_PROGRESS: usize = 20;

/// The kind of a simulation's name.
pub const SIMULATION: &str = "simulation";

/// A run that was started by this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    /// The job.
    pub job: String,
    /// The simulation.
    pub simulation: String,
    /// The thread in which it was requested.
    pub thread: ThreadId,
    /// True if it is the run of one value of a comparison.
    pub is_step: bool,
    /// The time of the start.
    pub at: Timestamp,
    /// The time it took, once it has ended.
    pub took: Option<Duration>,
    /// The results, once it has succeeded.
    pub results: Option<String>,
}

/// Returns the target of the loading of a simulation.
pub fn load_target(simulation: &str) -> String {
    format!("simulation:{simulation}")
}

/// Returns the target of the changes of a parameter.
pub fn parameter_target(simulation: &str, path: &str) -> String {
    format!("parameter:{simulation}:{path}")
}

/// Returns the target of the runs of a simulation.
pub fn run_target(simulation: &str) -> String {
    format!("run:{simulation}")
}

/// Returns the target of the population runs of a simulation.
pub fn population_target(simulation: &str) -> String {
    format!("population:{simulation}")
}

/// Returns the target of the sensitivity analyses of a simulation.
pub fn sensitivity_target(simulation: &str) -> String {
    format!("sensitivity:{simulation}")
}

/// Returns the target of the comparisons of values in a simulation, in addition to their parameter's target.
pub fn comparison_target(simulation: &str) -> String {
    format!("comparison:{simulation}")
}

/// Returns the target of the snapshots of a simulation.
pub fn snapshot_target(simulation: &str) -> String {
    format!("snapshot:{simulation}")
}

/// Returns the target of the restorations of a simulation.
pub fn restore_target(simulation: &str) -> String {
    format!("parameters:{simulation}")
}

#[derive(Debug, Default)]
struct Inner {
    files: BTreeMap<String, String>,
    defaults: BTreeMap<(String, String), Parameter>,
    runs: VecDeque<Started>,
    names: Arc<Names>,
    read_at: Option<Timestamp>,
}

/// The memory of this process, with access to the records.
#[derive(Default)]
pub struct Memory {
    inner: Mutex<Inner>,
    history: OnceLock<Arc<dyn History>>,
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl Memory {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the reader of past changes.
    pub fn remember_by(&self, history: Arc<dyn History>) {
        let _ = self.history.set(history); // set only once
    }

    /// Reads the model file of a simulation from the record of its loading, for [`Self::file`].
    pub async fn recall(&self, simulation: &str) {
        let Some(load) = self.load_of(simulation).await else { return };
        let Some(file) = load.parameters["file"].as_str() else { return };
        if self.file(simulation).as_deref() != Some(file) {
            self.loaded(simulation, file);
        }
    }

    /// Reads the value that a parameter had before its first change since the model was loaded, from the records of the
    /// changes.
    pub async fn recalled_default(&self, simulation: &str, path: &str) -> Option<Parameter> {
        let loaded_at = self.load_of(simulation).await?.intent_at?;
        let changes = self.records(&parameter_target(simulation, path), MAX_CHANGES).await;
        if changes.len() == MAX_CHANGES {
            return None; // the first one may be older
        }
        let since = |record: &&ActionRecord| record.intent_at.is_some_and(|at| at > loaded_at);
        let first = changes.iter().filter(since).min_by_key(|record| record.intent_at)?;
        let value = first.preconditions["value"].as_f64()?;
        let unit = first.preconditions["unit"].as_str().or(first.parameters["unit"].as_str());
        Some(Parameter { path: path.to_owned(), value, unit: unit.map(str::to_owned) })
    }

    /// Reads the record of the last loading of a simulation under this name.
    async fn load_of(&self, simulation: &str) -> Option<ActionRecord> {
        self.loads(simulation).await.into_iter().next()
    }

    /// Reads the records of the loadings of a simulation under this name, newest first.
    async fn loads(&self, simulation: &str) -> Vec<ActionRecord> {
        let mut loads = self.records(&load_target(simulation), MAX_ENTRIES).await;
        loads.retain(|record| record.name == load::NAME && record.status == Status::Done);
        loads
    }

    /// Reads the time at which a simulation was last loaded under this name, up to a time if one is given.
    pub async fn loaded_at(&self, simulation: &str, until: Option<Timestamp>) -> Option<Timestamp> {
        let loads = self.loads(simulation).await;
        let times = loads.iter().filter_map(|load| load.intent_at);
        times.filter(|at| until.is_none_or(|until| *at <= until)).max()
    }

    /// Reads the records about a target whose requests were sent, newest first.
    pub async fn records(&self, target: &str, limit: usize) -> Vec<ActionRecord> {
        match self.history.get() {
            Some(history) => history.of(target, limit).await,
            None => Vec::new(),
        }
    }

    /// Reads the newest record about a target that is being carried out.
    pub async fn in_progress(&self, target: &str) -> Option<ActionRecord> {
        let records = self.records(target, MAX_IN_PROGRESS).await;
        records.into_iter().find(|record| record.status == Status::Intent)
    }

    /// Returns the model file that a simulation was loaded from.
    pub fn file(&self, simulation: &str) -> Option<String> {
        self.inner().files.get(simulation).cloned()
    }

    /// Records a loaded model file, and removes the values of an earlier simulation with this name.
    pub fn loaded(&self, simulation: &str, file: &str) {
        let mut inner = self.inner();
        if inner.files.len() >= MAX_ENTRIES {
            inner.files.pop_first();
        }
        inner.files.insert(simulation.to_owned(), file.to_owned());
        inner.defaults.retain(|(of, _), _| of != simulation);
        inner.read_at = None;
    }

    /// Returns the value that a parameter had before this process changed it for the first time.
    pub fn default_of(&self, simulation: &str, path: &str) -> Option<Parameter> {
        self.inner().defaults.get(&(simulation.to_owned(), path.to_owned())).cloned()
    }

    /// Records the value of a parameter before its first change.
    pub fn before_change(&self, simulation: &str, before: &Parameter) {
        let mut inner = self.inner();
        // The value is known to be the first one only if this process loaded the model.
        if inner.defaults.len() < MAX_ENTRIES * 5 && inner.files.contains_key(simulation) {
            let key = (simulation.to_owned(), before.path.clone());
            inner.defaults.entry(key).or_insert_with(|| before.clone());
        }
    }

    /// Records a started run of an action.
    pub fn started(&self, job: &str, of: &ActionRecord, at: Timestamp) {
        let mut inner = self.inner();
        if inner.runs.iter().any(|run| run.job == job) {
            return;
        }
        if inner.runs.len() >= MAX_ENTRIES {
            inner.runs.pop_front();
        }
        let (job, simulation) = (job.to_owned(), simulation_of(of).to_owned());
        let (thread, is_step) = (of.thread.clone(), of.name == compare::NAME);
        inner.runs.push_back(Started { job, simulation, thread, is_step, at, took: None, results: None });
    }

    /// Records the end of a run.
    pub fn ended(&self, job: &str, took: Option<Duration>, results: Option<&str>) {
        if let Some(run) = self.inner().runs.iter_mut().find(|run| run.job == job) {
            run.took = took.or(Some(Duration::ZERO));
            run.results = results.map(str::to_owned);
        }
    }

    /// Returns the runs, newest first.
    pub fn runs(&self) -> Vec<Started> {
        self.inner().runs.iter().rev().cloned().collect()
    }

    /// Returns the time that the last run of a simulation took.
    pub fn last_took(&self, simulation: &str) -> Option<Duration> {
        let inner = self.inner();
        let mut ended = inner.runs.iter().rev().filter(|run| run.results.is_some());
        ended.find(|run| run.simulation == simulation)?.took
    }

    /// Returns the names of the simulations that were read last.
    pub fn names(&self) -> Arc<Names> {
        self.inner().names.clone()
    }

    /// Marks the names as outdated, after something was loaded.
    pub fn names_changed(&self) {
        self.inner().read_at = None;
    }

    /// Reads the names again if they are old, or were read before `since`.
    pub async fn refresh(&self, client: &BridgeClient, clock: &dyn Clock, owner: &str, since: Option<Timestamp>) {
        let now = clock.now();
        let is_new = |at: Timestamp| now.since(at) < NAMES_MAX_AGE && since.is_none_or(|since| at > since);
        {
            let mut inner = self.inner();
            if inner.read_at.is_some_and(is_new) {
                return;
            }
            // No other task reads in the meantime, and an unreachable bridge is not called again at once.
            inner.read_at = Some(Timestamp(now.0 - (NAMES_MAX_AGE - RETRY_PAUSE).as_millis() as i64));
        }
        let Ok(Ok(all)) = tokio::time::timeout(NAMES_TIMEOUT, client.simulations()).await else { return };
        let name = |id: &String| Name {
            kind: SIMULATION.to_owned(),
            name: id.clone(),
            id: None,
            owner: owner.to_owned(),
            subject: true,
        };
        let mut inner = self.inner();
        inner.names = Arc::new(Names::new(all.iter().map(|loaded| name(&loaded.id))));
        inner.read_at = Some(now);
        for loaded in &all {
            if let Some(file) = &loaded.file
                && inner.files.len() < MAX_ENTRIES
            {
                inner.files.entry(loaded.id.clone()).or_insert_with(|| file.clone());
            }
        }
    }
}
