//! The state of the bridge: simulations, results, jobs, snapshots, and the audit trail.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{
    Backend, CriticalCall, Options, Version,
    engine::{Parameters, Series},
    jobs::Job,
    models,
    moment::Moment,
    sweeps::Change,
};

/// The window of the rate limit, in microseconds.
const MINUTE: i64 = 60_000_000;

/// A loaded simulation.
#[derive(Clone, Debug)]
pub(crate) struct Simulation {
    /// The id.
    pub(crate) id: String,
    /// The file from which it was loaded.
    pub(crate) file: String,
    /// The current parameters.
    pub(crate) parameters: Parameters,
    /// The time at which it was loaded.
    pub(crate) created: Moment,
    /// The time of its last use.
    pub(crate) accessed: Moment,
    /// All changes since it was loaded.
    pub(crate) changes: Vec<Change>,
}

/// The results of a run.
#[derive(Clone, Debug)]
pub(crate) struct Results {
    /// The simulation that was run.
    pub(crate) simulation: String,
    /// The time at which they were generated.
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
    /// The time at which it was taken.
    pub(crate) created: Moment,
    /// The parameters.
    pub(crate) parameters: Parameters,
    /// The hash of the parameters.
    pub(crate) hash: String,
}

impl Snapshot {
    /// Returns the snapshot in the format of answers.
    pub(crate) fn shown(&self) -> Value {
        json!({
            "snapshotId": self.id, "simulationId": self.simulation, "createdAt": self.created.fine(),
            "hash": self.hash,
        })
    }
}

/// The part of the state that the bridge stores on disk.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct OnDisk {
    jobs: Vec<Job>,
    keys: HashMap<String, (String, String)>,
    snapshots: Vec<Snapshot>,
}

/// The state of the bridge.
#[derive(Debug)]
pub(crate) struct World {
    /// The version of the simulated bridge.
    pub(crate) version: Version,
    /// The model engine.
    pub(crate) backend: Backend,
    /// True if runs wait in a queueing scheduler first.
    pub(crate) scheduler: bool,
    /// The duration of a run.
    pub(crate) run_takes: std::time::Duration,
    /// The current time, which is different at each access.
    pub(crate) now: Moment,
    /// The loaded simulations in the order of loading.
    pub(crate) simulations: Vec<Simulation>,
    /// The results by id.
    pub(crate) results: HashMap<String, Results>,
    /// The results of population runs by id.
    pub(crate) populations: HashMap<String, Population>,
    /// The jobs in the order of their submission.
    pub(crate) jobs: Vec<Job>,
    /// The idempotency keys of calls, each with the digest of tool and arguments, and the id of the
    /// job.
    pub(crate) keys: HashMap<String, (String, String)>,
    /// The snapshots, oldest first.
    pub(crate) snapshots: Vec<Snapshot>,
    /// The audit trail, oldest first.
    pub(crate) trail: Vec<Value>,
    /// The critical calls that reached the check of their confirmation.
    pub(crate) critical: Vec<CriticalCall>,
    /// The ids of used tokens.
    pub(crate) used_tokens: HashSet<String>,
    /// True while jobs end only if the test finishes them.
    pub(crate) held: bool,
    /// True if no request is answered any more.
    pub(crate) stalled: bool,
    /// True if the event stream of this request ends after its first event.
    pub(crate) cuts_stream: bool,
    /// The beginning of the current window of the rate limit, and the number of requests in it.
    window: (i64, usize),
    /// The time of the start.
    pub(crate) started: Moment,
}

impl World {
    /// Returns the initial state.
    pub(crate) fn new(options: &Options) -> Self {
        let now = Moment(options.clock.now().millis() * 1000);
        Self {
            version: options.version,
            backend: options.backend,
            scheduler: options.scheduler,
            run_takes: options.run_takes,
            now,
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
            cuts_stream: false,
            window: (0, 0),
            started: now,
        }
    }

    /// Returns the part of the state to store on disk.
    pub(crate) fn on_disk(&self) -> OnDisk {
        OnDisk { jobs: self.jobs.clone(), keys: self.keys.clone(), snapshots: self.snapshots.clone() }
    }

    /// Restores the state that was stored on disk, as a restart does.
    pub(crate) fn resume(&mut self, kept: OnDisk) {
        (self.jobs, self.keys, self.snapshots) = (kept.jobs, kept.keys, kept.snapshots);
        self.abandon_jobs();
    }

    /// Counts a request with a token. Returns true if there were fewer than `limit` within a minute.
    pub(crate) fn counts_request(&mut self, limit: usize) -> bool {
        if self.window.0 + MINUTE < self.now.0 {
            self.window = (self.now.0, 0);
        }
        let within = self.window.1 < limit;
        self.window.1 += usize::from(within);
        within
    }

    /// Advances the clock and returns the time.
    pub(crate) fn moment(&mut self) -> Moment {
        self.now.0 += 1;
        self.now
    }

    /// Restarts the bridge. Simulations and results are lost; jobs and snapshots are on disk.
    pub(crate) fn restart(&mut self) {
        self.simulations.clear();
        self.results.clear();
        self.populations.clear();
        self.stalled = false;
        self.abandon_jobs();
    }

    /// Returns a simulation, and records its use.
    pub(crate) fn simulation(&mut self, id: &str) -> Option<&mut Simulation> {
        let now = self.now;
        let found = self.simulations.iter_mut().find(|simulation| simulation.id == id)?;
        found.accessed = now;
        Some(found)
    }

    /// Registers a simulation. It replaces one with the same id.
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

    /// Appends an event to the trail, with the hash of the previous event.
    pub(crate) fn record(&mut self, mut event: Value) {
        let previous = self.trail.last().and_then(|event| event["hash"].as_str()).map(str::to_owned);
        event["eventId"] = json!(fresh_id());
        event["timestamp"] = json!(self.moment().iso());
        event["previousHash"] = json!(previous.unwrap_or_else(|| "0".repeat(64)));
        event["hash"] = json!(digest(&event.to_string()));
        self.trail.push(event);
    }
}

/// Returns a new id.
pub(crate) fn fresh_id() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// Returns the SHA-256 of a text in hexadecimal digits.
pub(crate) fn digest(text: &str) -> String {
    hex::encode(Sha256::digest(text.as_bytes()))
}
