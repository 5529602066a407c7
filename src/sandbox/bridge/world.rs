//! The memory of the bridge: simulations, results, jobs, snapshots, and the trail of what was asked.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{
    Backend, CriticalCall, Version,
    engine::{Parameters, Series},
    jobs::Job,
    models,
    moment::Moment,
    plausible::Change,
};

/// A loaded simulation.
#[derive(Clone, Debug)]
pub(crate) struct Simulation {
    /// The id.
    pub(crate) id: String,
    /// The file it was loaded from.
    pub(crate) file: String,
    /// The parameters as they stand now.
    pub(crate) parameters: Parameters,
    /// The moment of loading.
    pub(crate) created: Moment,
    /// The moment of the last use.
    pub(crate) accessed: Moment,
    /// Every change since it was loaded.
    pub(crate) changes: Vec<Change>,
}

/// The results of a run.
#[derive(Clone, Debug)]
pub(crate) struct Results {
    /// The simulation that was run.
    pub(crate) simulation: String,
    /// The moment at which they were made.
    pub(crate) generated: Moment,
    /// The curves.
    pub(crate) series: Vec<Series>,
}

/// The results of a population run.
#[derive(Clone, Debug)]
pub(crate) struct Population {
    /// The answer to a request for them.
    pub(crate) shown: Value,
    /// The chunks by id.
    pub(crate) chunks: HashMap<String, Value>,
}

/// A snapshot of the parameters.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Snapshot {
    /// The id.
    pub(crate) id: String,
    /// The simulation.
    pub(crate) simulation: String,
    /// The moment it was taken.
    pub(crate) created: Moment,
    /// The parameters.
    pub(crate) parameters: Parameters,
    /// The hash of the parameters.
    pub(crate) hash: String,
}

impl Snapshot {
    /// Returns the snapshot as answers show it.
    pub(crate) fn shown(&self) -> Value {
        json!({
            "snapshotId": self.id, "simulationId": self.simulation, "createdAt": self.created.fine(),
            "hash": self.hash,
        })
    }
}

/// The part of the memory that the bridge keeps on disk.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct OnDisk {
    jobs: Vec<Job>,
    keys: HashMap<String, (String, String)>,
    snapshots: Vec<Snapshot>,
}

/// Everything that the bridge remembers.
#[derive(Debug)]
pub(crate) struct World {
    /// The version that is played.
    pub(crate) version: Version,
    /// The back end behind it.
    pub(crate) backend: Backend,
    /// True if runs wait in a queueing scheduler first.
    pub(crate) scheduler: bool,
    /// The time that a run takes.
    pub(crate) run_takes: std::time::Duration,
    /// The present moment; no two looks are the same.
    pub(crate) now: Moment,
    /// The loaded simulations in the order of loading.
    pub(crate) simulations: Vec<Simulation>,
    /// The results by id.
    pub(crate) results: HashMap<String, Results>,
    /// The results of population runs by id.
    pub(crate) populations: HashMap<String, Population>,
    /// The jobs in the order of their submission.
    pub(crate) jobs: Vec<Job>,
    /// The keys of calls that must not be done twice, with the digest of tool and arguments, and the job.
    pub(crate) keys: HashMap<String, (String, String)>,
    /// The snapshots, oldest first.
    pub(crate) snapshots: Vec<Snapshot>,
    /// The trail, oldest first.
    pub(crate) trail: Vec<Value>,
    /// The critical calls that reached the check of their confirmation.
    pub(crate) critical: Vec<CriticalCall>,
    /// The ids of tokens that were used.
    pub(crate) used_tokens: HashSet<String>,
    /// True while jobs wait for the test to finish them.
    pub(crate) held: bool,
    /// True from the moment on from which nothing is answered any more.
    pub(crate) stalled: bool,
}

impl World {
    /// Returns a bridge that nobody has called.
    pub(crate) fn new(version: Version, backend: Backend, scheduler: bool, run_takes: std::time::Duration) -> Self {
        Self {
            version,
            backend,
            scheduler,
            run_takes,
            now: Moment::default(),
            simulations: Vec::new(),
            results: HashMap::new(),
            populations: HashMap::new(),
            jobs: Vec::new(),
            keys: HashMap::new(),
            snapshots: Vec::new(),
            trail: Vec::new(),
            critical: Vec::new(),
            used_tokens: HashSet::new(),
            held: false,
            stalled: false,
        }
    }

    /// Returns what is kept on disk.
    pub(crate) fn on_disk(&self) -> OnDisk {
        OnDisk { jobs: self.jobs.clone(), keys: self.keys.clone(), snapshots: self.snapshots.clone() }
    }

    /// Takes up what was kept on disk, as a restart does.
    pub(crate) fn resume(&mut self, kept: OnDisk) {
        (self.jobs, self.keys, self.snapshots) = (kept.jobs, kept.keys, kept.snapshots);
        self.abandon_jobs();
    }

    /// Sets the clock, which never stands still between two looks.
    pub(crate) fn tick(&mut self, millis: i64) {
        self.now = Moment((millis * 1000).max(self.now.0 + 1));
    }

    /// Returns the next moment.
    pub(crate) fn moment(&mut self) -> Moment {
        self.now.0 += 1;
        self.now
    }

    /// Forgets what a restart forgets: simulations and results. Job records and snapshots are on disk.
    pub(crate) fn restart(&mut self) {
        self.simulations.clear();
        self.results.clear();
        self.populations.clear();
        self.stalled = false;
        self.abandon_jobs();
    }

    /// Returns a simulation.
    pub(crate) fn simulation(&mut self, id: &str) -> Option<&mut Simulation> {
        let now = self.now;
        let found = self.simulations.iter_mut().find(|simulation| simulation.id == id)?;
        found.accessed = now;
        Some(found)
    }

    /// Puts a simulation into the registry, in place of one of the same id.
    pub(crate) fn register(&mut self, id: &str, file: &str) {
        let parameters = match self.backend {
            Backend::Memory => Parameters::new(),
            Backend::Recorded => models::recorded(),
            Backend::Demo => models::demo(file).map_or_else(models::recorded, models::Demo::parameters),
        };
        let now = self.now;
        self.simulations.retain(|simulation| simulation.id != id);
        self.simulations.push(Simulation {
            id: id.to_owned(),
            file: file.to_owned(),
            parameters,
            created: now,
            accessed: now,
            changes: Vec::new(),
        });
    }

    /// Takes a snapshot of a simulation.
    pub(crate) fn take_snapshot(&mut self, id: &str) -> Option<Snapshot> {
        let parameters = self.simulation(id)?.parameters.clone();
        let created = self.moment();
        let rows: Vec<Value> = parameters.iter().map(|(path, own)| json!([path, own.value, own.unit])).collect();
        let hash = digest(&json!(rows).to_string());
        let snapshot = Snapshot { id: created.packed(), simulation: id.to_owned(), created, parameters, hash };
        self.snapshots.push(snapshot.clone());
        Some(snapshot)
    }

    /// Appends an event to the trail, chained to the one before.
    pub(crate) fn record(&mut self, mut event: Value) {
        let previous = self.trail.last().and_then(|event| event["hash"].as_str()).map(str::to_owned);
        event["eventId"] = json!(fresh_id());
        event["timestamp"] = json!(self.moment().iso());
        event["previousHash"] = json!(previous.unwrap_or_else(|| "0".repeat(64)));
        event["hash"] = json!(digest(&event.to_string()));
        self.trail.push(event);
    }
}

/// Returns a fresh id.
pub(crate) fn fresh_id() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// Returns the SHA-256 of a text in hexadecimal digits.
pub(crate) fn digest(text: &str) -> String {
    hex::encode(Sha256::digest(text.as_bytes()))
}
