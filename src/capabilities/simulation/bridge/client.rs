//! The client, with one method for each call.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use countersign_core::clock::Clock;
use countersign_services::{changes::Changes, event_stream::Streams, http};
use reqwest::{Client, Method};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use url::Url;

use super::{
    confirmed::Confirmed,
    data::{self, Governance, Loaded, Metric, Parameter, Population, Scenario, Series, Snapshot},
    error::Error,
    job::Job,
    token::Access,
};

/// The version of a bridge, as far as it matters for calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// 0.1 to 0.4: `call_tool`.
    V01,
    /// 0.5 and later: MCP, ranges, snapshots before changes.
    V05,
}

/// The settings of a client.
#[derive(Clone, Debug)]
pub struct BridgeConfig {
    /// The address of the bridge.
    pub url: Url,
    /// The source of tokens.
    pub access: Access,
    /// The time limit of a call.
    pub timeout: Duration,
    /// The largest answer that is read, in bytes.
    pub longest: usize,
}

/// A client of one bridge.
#[derive(Debug)]
pub struct BridgeClient {
    pub(super) client: Client,
    pub(super) changes: Changes,
    /// The sender of the sensitivity analysis, which is answered only when all its scenarios are done.
    pub(super) long_changes: Changes,
    pub(super) streams: Streams,
    pub(super) longest: usize,
    pub(super) base: String,
    pub(super) access: Access,
    pub(super) timeout: Duration,
    pub(super) clock: Arc<dyn Clock>,
    version: Mutex<Option<Version>>,
}

/// The bridge's report of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    /// The name.
    pub name: String,
    /// The version.
    pub version: String,
    /// The model engine behind it, such as `inmemory`; `None` if it is not reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
}

/// A run to be started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// The simulation.
    pub simulation: String,
    /// The id of the run, which is also the id of its results.
    pub run: String,
    /// The time limit in seconds.
    pub limit_s: u64,
}

/// A population run to be started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PopulationRun {
    /// The simulation.
    pub simulation: String,
    /// The model file.
    pub file: String,
    /// The number of subjects.
    pub size: u64,
    /// The seed of the sampling.
    pub seed: Option<u64>,
    /// The time limit in seconds.
    pub limit_s: u64,
}

/// A sensitivity analysis to be made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sensitivity {
    /// The simulation.
    pub simulation: String,
    /// The model file.
    pub file: String,
    /// The parameters, with their present values.
    pub parameters: Vec<Parameter>,
    /// The changes as fractions: 0.1 is +10 %, and 0 a copy with the present value, with which the others are compared.
    pub changes: Vec<f64>,
}

impl BridgeClient {
    /// Creates a client for the bridge of `config`, without calling it.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] if this machine has no TLS.
    pub fn new(config: BridgeConfig, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        let BridgeConfig { url, access, timeout, longest } = config;
        let unavailable = |reason: String| Error::Unavailable { reason };
        let client = http::client(&url, timeout).map_err(|error| unavailable(error.to_string()))?;
        let changes =
            |timeout| Changes::to("bridge", &url, timeout, longest).map_err(|error| unavailable(error.to_string()));
        let (changes, long_changes) = (changes(timeout)?, changes(LONG)?);
        let streams = Streams::of(&url, timeout).map_err(|error| unavailable(error.to_string()))?;
        let base = url.as_str().trim_end_matches('/').to_owned();
        Ok(Self {
            client,
            changes,
            long_changes,
            streams,
            longest,
            base,
            access,
            timeout,
            clock,
            version: Mutex::default(),
        })
    }

    /// Returns the time limit of a call.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Returns the address.
    pub fn address(&self) -> &str {
        &self.base
    }

    /// Returns the clock.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// Returns the source of tokens.
    pub fn access(&self) -> &Access {
        &self.access
    }

    /// Reads the bridge's report of itself. This needs no token.
    ///
    /// # Errors
    ///
    /// [`Error`], as for every read.
    pub async fn health(&self) -> Result<Health, Error> {
        let body = self.read(Method::GET, "/health", None).await?;
        let version = data::word(&body["version"]);
        let version = version.ok_or_else(|| Error::Decode { reason: "it doesn't report its version".to_owned() })?;
        let name = data::word(&body["service"]).unwrap_or_else(|| "bridge".to_owned());
        Ok(Health { name, version, engine: None })
    }

    /// Reads the name of the model engine. This needs no token.
    ///
    /// # Errors
    ///
    /// [`Error`], as for every read.
    pub async fn engine(&self) -> Result<Option<String>, Error> {
        let body = self.read(Method::GET, "/mcp/capabilities", None).await?;
        Ok(data::word(&body["adapter"]["name"]))
    }

    /// Returns the version, which is read once, and again after the bridge was unreachable.
    ///
    /// # Errors
    ///
    /// [`Error`], as for every read.
    pub async fn version(&self) -> Result<Version, Error> {
        if let Some(version) = *self.known_version() {
            return Ok(version);
        }
        let version = version_of(&Box::pin(self.health()).await?.version);
        *self.known_version() = Some(version);
        Ok(version)
    }

    pub(super) fn forget_version(&self) {
        *self.known_version() = None;
    }

    fn known_version(&self) -> std::sync::MutexGuard<'_, Option<Version>> {
        self.version.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the loaded simulations, sorted by name, without the copies that sensitivity analyses have left.
    ///
    /// # Errors
    ///
    /// [`Error`], as for every read.
    pub async fn simulations(&self) -> Result<Vec<Loaded>, Error> {
        Ok(data::without_copies(self.simulations_and_copies().await?).0)
    }

    /// Reads everything that is loaded, sorted by name. This needs a token that the bridge accepts.
    ///
    /// # Errors
    ///
    /// [`Error`], as for every read.
    pub async fn simulations_and_copies(&self) -> Result<Vec<Loaded>, Error> {
        let body = self.read(Method::GET, "/mcp/resources/simulations?limit=200", None).await?;
        let mut all = data::simulations(&body);
        all.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(all)
    }

    /// Checks that the bridge accepts our token, by a call that needs one.
    ///
    /// # Errors
    ///
    /// [`Error::Auth`] if the token is not accepted.
    pub async fn signed_in(&self) -> Result<(), Error> {
        self.read(Method::GET, "/mcp/list_tools", None).await.map(drop)
    }

    /// Reads the paths of the parameters of a simulation.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] if the simulation is not loaded.
    pub async fn parameters(&self, simulation: &str) -> Result<Vec<String>, Error> {
        Ok(data::paths(&self.tool("list_parameters", json!({ "simulationId": simulation })).await?))
    }

    /// Reads a parameter.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] if the simulation or the parameter does not exist.
    pub async fn parameter(&self, simulation: &str, path: &str) -> Result<Parameter, Error> {
        let arguments = json!({ "simulationId": simulation, "parameterPath": path });
        data::parameter(&self.tool("get_parameter_value", arguments).await?)
    }

    /// Reads the state of a job.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] if it does not exist.
    pub async fn job(&self, job: &str) -> Result<Job, Error> {
        Job::read(&self.tool("get_job_status", json!({ "jobId": job })).await?)
    }

    /// Reads the PK figures of results.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] if the bridge does not have them any more.
    pub async fn metrics(&self, results: &str) -> Result<Vec<Metric>, Error> {
        Ok(data::metrics(&self.tool("calculate_pk_parameters", json!({ "resultsId": results })).await?))
    }

    /// Reads the curves of results.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] if the bridge does not have them any more.
    pub async fn results(&self, results: &str) -> Result<Vec<Series>, Error> {
        let body = json!({ "resultsId": results });
        Ok(data::series(&self.read(Method::POST, "/get_simulation_results", Some(&body)).await?))
    }

    /// Reads the results of a population run.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] if the bridge does not have them any more.
    pub async fn population(&self, results: &str) -> Result<Population, Error> {
        Ok(data::population(&self.tool("get_population_results", json!({ "resultsId": results })).await?))
    }

    /// Reads the snapshots of a simulation, newest first.
    ///
    /// # Errors
    ///
    /// [`Error`], as for every read.
    pub async fn snapshots(&self, simulation: &str) -> Result<Vec<Snapshot>, Error> {
        let query: String = url::form_urlencoded::byte_serialize(simulation.as_bytes()).collect();
        let path = format!("/get_simulation_snapshot?simulationId={query}");
        Ok(data::snapshots(&self.read(Method::GET, &path, None).await?))
    }

    /// Reads the model files that the bridge can load.
    ///
    /// # Errors
    ///
    /// [`Error`], as for every read.
    pub async fn models(&self) -> Result<Vec<String>, Error> {
        Ok(data::models(&self.tool("discover_models", json!({})).await?))
    }

    /// Loads a model file as a simulation. Returns the bridge's warnings.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`] if the name is taken.
    pub async fn load(&self, file: &str, simulation: &str, confirmed: &Confirmed) -> Result<Vec<String>, Error> {
        let arguments = json!({ "filePath": file, "simulationId": simulation });
        let answer = self.change_by_tool("load_simulation", arguments, None, confirmed).await?;
        let warnings = answer["warnings"].as_array().into_iter().flatten();
        Ok(warnings.filter_map(data::word).take(8).collect())
    }

    /// Sets a parameter to an absolute value in its own unit.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] if the bridge refuses the value.
    pub async fn set(
        &self,
        simulation: &str,
        wanted: &Parameter,
        confirmed: &Confirmed,
    ) -> Result<(Parameter, Governance), Error> {
        let mut arguments = json!({ "simulationId": simulation, "parameterPath": wanted.path, "value": wanted.value });
        if let Some(unit) = &wanted.unit {
            arguments["unit"] = json!(unit);
        }
        let answer = self.change_by_tool("set_parameter_value", arguments, None, confirmed).await?;
        let set = data::parameter(&answer).map_err(|error| Error::NoAnswer { reason: error.to_string() })?;
        Ok((set, data::governance(&answer)))
    }

    /// Starts a run. A repeated call with the same key returns the same job.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] if the simulation is not loaded.
    pub async fn run(&self, run: &Run, key: &str, confirmed: &Confirmed) -> Result<Job, Error> {
        let arguments = json!({ "simulationId": run.simulation, "runId": run.run, "timeoutSeconds": run.limit_s });
        started(&self.change_by_tool("run_simulation", arguments, Some(key), confirmed).await?)
    }

    /// Starts a population run. A repeated call with the same key returns the same job.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] if the cohort is too large.
    pub async fn run_population(&self, run: &PopulationRun, key: &str, confirmed: &Confirmed) -> Result<Job, Error> {
        let mut cohort = json!({ "size": run.size });
        if let Some(seed) = run.seed {
            cohort["seed"] = json!(seed);
        }
        let arguments = json!({
            "modelPath": run.file, "simulationId": run.simulation, "cohort": cohort, "timeoutSeconds": run.limit_s,
        });
        started(&self.change_by_tool("run_population_simulation", arguments, Some(key), confirmed).await?)
    }

    /// Makes a sensitivity analysis. Returns when all its scenarios are done.
    ///
    /// # Errors
    ///
    /// [`Error`], as for every change.
    pub async fn sensitivity(&self, asked: &Sensitivity, confirmed: &Confirmed) -> Result<Vec<Scenario>, Error> {
        let parameter = |parameter: &Parameter| {
            let mut found =
                json!({ "path": parameter.path, "deltas": asked.changes, "baselineValue": parameter.value });
            if let Some(unit) = &parameter.unit {
                found["unit"] = json!(unit);
            }
            found
        };
        let parameters: Vec<Value> = asked.parameters.iter().map(parameter).collect();
        let arguments = json!({ "modelPath": asked.file, "simulationId": asked.simulation, "parameters": parameters });
        let sender = &self.long_changes;
        let answer =
            self.change_by_tool_through(sender, "run_sensitivity_analysis", arguments, None, confirmed).await?;
        Ok(data::scenarios(&answer))
    }

    /// Restores a snapshot.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] if it does not exist.
    pub async fn restore(&self, simulation: &str, snapshot: &str, confirmed: &Confirmed) -> Result<Snapshot, Error> {
        let body = json!({ "simulationId": simulation, "snapshotId": snapshot });
        let answer = self.change("/restore_simulation", body, confirmed).await?;
        let restored = data::snapshot(&answer["snapshot"]).filter(|restored| restored.id == snapshot);
        restored.ok_or_else(|| Error::NoAnswer { reason: "its answer doesn't name the snapshot".to_owned() })
    }

    /// Takes a snapshot.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] if the simulation is not loaded.
    pub async fn take_snapshot(&self, simulation: &str, confirmed: &Confirmed) -> Result<Snapshot, Error> {
        let answer = self.change("/snapshot_simulation", json!({ "simulationId": simulation }), confirmed).await?;
        let taken = data::snapshot(&answer["snapshot"]);
        taken.ok_or_else(|| Error::NoAnswer { reason: "its answer names no snapshot".to_owned() })
    }

    /// Cancels a job. Returns its state at that moment.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] if it does not exist.
    pub async fn cancel(&self, job: &str, confirmed: &Confirmed) -> Result<Job, Error> {
        Job::read(&self.change_by_tool("cancel_job", json!({ "jobId": job }), None, confirmed).await?)
    }
}

/// The time limit of a call that is answered when a whole analysis is done.
pub const LONG: Duration = Duration::from_secs(90);

fn started(answer: &Value) -> Result<Job, Error> {
    // On some routes, version 0.1 answers a run without a state; a job that was just submitted is queued.
    let mut answer = answer.clone();
    if answer["status"].is_null() {
        answer["status"] = json!("queued");
    }
    Job::read(&answer).map_err(|error| Error::NoAnswer { reason: error.to_string() })
}

/// Returns the version with this number.
fn version_of(number: &str) -> Version {
    let mut parts = number.trim_start_matches('v').split('.').map(|part| part.parse::<u64>().unwrap_or(0));
    let (major, minor) = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    if (major, minor) >= (0, 5) { Version::V05 } else { Version::V01 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_told_apart_by_their_number() {
        for (number, version) in
            [("0.1.0", Version::V01), ("0.4.9", Version::V01), ("0.5.0", Version::V05), ("1.0", Version::V05)]
        {
            assert_eq!(version_of(number), version, "{number}");
        }
    }
}
