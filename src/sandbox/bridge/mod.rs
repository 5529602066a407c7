//! The stand-in for the simulation bridge: a real HTTP server on this machine that answers like the
//! recorded bridges.
//!
//! It simulates version 0.1, which has REST routes and `call_tool`, or 0.5, which also has MCP and
//! checks the values of parameters. It keeps simulations, jobs and results, requires tokens and
//! confirmations, and has the bridge's peculiarities: a blank path is answered with status 500, a
//! restart loses everything except jobs and snapshots, and a body weight that is too small blocks
//! all later changes. A contract test compares the stand-in with the recordings in
//! `tests/fixtures/simulation-api`.
//!
//! Start at [`Bridge`]. A request goes through `server` to `rest` or `mcp`,
//! which check the role, the confirmation and the arguments, and call one of the `tools`, which
//! work on `world`. There are three back ends ([`Backend`]). `engine` computes the curves for the
//! two that have models, and `jobs` implements the states of jobs.
//!
//! Canned answers were rejected as a design: a curve depends on the parameters that were set, and a
//! job on its cancellation.

mod arguments;
mod catalogue;
mod consistency;
mod engine;
mod failure;
mod jobs;
mod ledger;
mod mcp;
mod models;
mod moment;
mod pages;
mod population;
mod rest;
mod server;
mod stream;
mod sweeps;
mod token;
mod tools;
mod world;

use std::{path::PathBuf, sync::Arc, time::Duration};

use countersign_core::clock::{Clock, SystemClock};
use serde_json::{Value, json};

pub use self::{
    catalogue::CRITICAL,
    ledger::{CriticalCall, Request},
};
use self::{
    server::start_timers,
    world::{World, fresh_id},
};
use crate::{
    faults::Down,
    stand_in::{self, Place, StandIn},
};

/// A fault in the handling of one request. After a refusal with 500, the connection closes.
pub type Fault = crate::faults::Fault<Own>;

/// The faults that only the bridge has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Own {
    /// Nothing is answered from this request on, `/health` included, until a restart.
    Stall,
    /// An event stream ends after its first event, or without any event if the first one would be
    /// final. It applies only to event streams.
    CutStream,
    /// The bridge restarts before it handles the request.
    Restart,
}

/// The version of the simulated bridge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// 0.1.0: REST routes and `call_tool`.
    V01,
    /// 0.5.0: also MCP, ranges, consistency, and a snapshot before each change.
    #[default]
    V05,
}

impl Version {
    /// Returns the version that the bridge reports.
    pub fn text(self) -> &'static str {
        match self {
            Self::V01 => "0.1.0",
            Self::V05 => "0.5.0",
        }
    }
}

/// The model engine behind the bridge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backend {
    /// No engine: a simulation starts without parameters, and every run has the same result, a
    /// straight line.
    Memory,
    /// The engine of the recordings, with six parameters and no populations.
    Recorded,
    /// An engine for demonstrations, with models that have many parameters, and with populations.
    ///
    /// As with the recorded engine, the outcome of a run depends on the name of the simulation:
    /// `slow…` takes 6 s, `hang…` 15 s, `flaky…` fails twice, and `fail…` always fails. Loading
    /// fails for `env-…`, `gone-…`, `broken-…`, `crash-…` and `noise-…`.
    #[default]
    Demo,
}

/// A role in a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// May read.
    Viewer,
    /// May read, change and run.
    Operator,
    /// May do everything, including reading the trail.
    Admin,
}

impl Role {
    /// All roles.
    pub const ALL: [Self; 3] = [Self::Viewer, Self::Operator, Self::Admin];

    /// Returns its name in a token.
    pub fn name(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }
}

/// The options of the stand-in.
#[derive(Clone, Debug)]
pub struct Options {
    /// The version of the simulated bridge.
    pub version: Version,
    /// The model engine.
    pub backend: Backend,
    /// True if runs wait in a queueing scheduler first. As in the original, cancelling a run there
    /// stalls the bridge.
    pub scheduler: bool,
    /// The port on 127.0.0.1; 0 means a free one.
    pub port: u16,
    /// The secret with which tokens are signed.
    pub secret: String,
    /// The maximum number of requests with a token per minute.
    pub rate_limit: usize,
    /// The duration of a run.
    pub run_takes: Duration,
    /// The interval at which a job is polled for its event stream.
    pub look_every: Duration,
    /// The file that stores jobs and snapshots; `None` if they are lost when the process ends.
    pub persist: Option<PathBuf>,
    /// The file to which each request is appended as a line of JSON.
    pub ledger_file: Option<PathBuf>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            version: Version::default(),
            backend: Backend::default(),
            scheduler: false,
            port: 0,
            secret: "sandbox-bridge-secret".to_owned(),
            rate_limit: 120,
            run_takes: Duration::ZERO,
            look_every: Duration::from_millis(250),
            persist: None,
            ledger_file: None,
            clock: Arc::new(SystemClock),
        }
    }
}

impl Options {
    /// Returns options for tests: no rate limit, and frequent polling of jobs.
    pub fn quick(version: Version) -> Self {
        Self { version, rate_limit: usize::MAX, look_every: Duration::from_millis(20), ..Self::default() }
    }
}

/// A running stand-in. Dropping it stops the server.
#[derive(Debug)]
pub struct Bridge {
    server: StandIn<World>,
}

impl Bridge {
    /// Starts a bridge of this version with the demo models and [`Options::quick`].
    ///
    /// # Panics
    ///
    /// If no port is free.
    pub async fn start(version: Version) -> Self {
        Self::with(Options::quick(version)).await.expect("a port is free")
    }

    /// Starts a bridge with these options.
    ///
    /// # Errors
    ///
    /// If the port is taken or one of the files cannot be used.
    pub async fn with(options: Options) -> std::io::Result<Self> {
        let place = Place {
            port: options.port,
            clock: options.clock.clone(),
            ledger: options.ledger_file.clone(),
            persist: options.persist.clone(),
        };
        let mut world = World::new(&options);
        if let Some(saved) = place.kept()? {
            world.resume(serde_json::from_slice(&saved)?);
        }
        Ok(Self { server: StandIn::start(world, options, place, stand_in::routes).await? })
    }

    /// Returns the base URL, such as `http://127.0.0.1:4000`.
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// Returns the secret with which tokens are signed.
    pub fn jwt_secret(&self) -> &str {
        &self.server.options.secret
    }

    /// Returns a token for the subject `alice` with this role, valid for an hour.
    pub fn token(&self, role: Role) -> String {
        let now = self.server.options.clock.now().seconds();
        self.signed(&json!({ "sub": "alice", "roles": [role.name()], "exp": now + 3600 }))
    }

    /// Returns a token with these claims.
    pub fn signed(&self, claims: &Value) -> String {
        token::sign(claims, &self.server.options.secret)
    }

    /// Restarts the bridge: simulations and results are lost, unfinished jobs fail, and requests in
    /// progress are cut off.
    pub async fn restart(&self) {
        self.server.change(World::restart);
        self.server.restart();
        tokio::task::yield_now().await;
    }

    /// Takes the bridge down or up again. While it is down, connections are closed without an
    /// answer.
    pub fn is_down(&self, down: bool) {
        self.server.faults.down(down.then_some(Down::Closed));
    }

    /// Returns every request so far.
    pub fn requests(&self) -> Vec<Request> {
        self.server.requests()
    }

    /// Returns every call of a critical tool so far, oldest first.
    pub fn audit(&self) -> Vec<CriticalCall> {
        self.server.world().critical.clone()
    }

    /// Returns the audit trail of the bridge, oldest first.
    pub fn trail(&self) -> Vec<Value> {
        self.server.world().trail.clone()
    }

    /// Queues a fault for the next request.
    pub fn fail_next(&self, fault: Fault) {
        let only = if fault == Fault::Own(Own::CutStream) { "GET /jobs/" } else { "" };
        self.fail_next_on(only, fault);
    }

    /// Queues a fault for the next request whose `METHOD /path tool` contains `only`. The tool is
    /// the one called through `call_tool`, MCP or its route.
    pub fn fail_next_on(&self, only: &str, fault: Fault) {
        self.server.faults.next_on(only, fault);
    }

    /// Removes all queued faults, takes the bridge up, and ends a stall.
    pub fn is_well(&self) {
        self.server.faults.clear();
        self.server.world().stalled = false;
    }

    /// Holds the jobs: from now on none of them ends.
    pub fn hold_jobs(&self) {
        self.server.world().held = true;
    }

    /// Finishes all jobs, and stops holding jobs.
    pub fn finish_jobs(&self) {
        self.server.change(|world| {
            world.held = false;
            world.finish_all();
        });
    }

    /// Stops holding jobs, so that they end by themselves again.
    pub fn release_jobs(&self) {
        self.server.change(|world| {
            world.held = false;
            start_timers(&self.server, world);
        });
    }

    /// Finishes the oldest unfinished job, without releasing the others. Returns its id.
    pub fn finish_next_job(&self) -> Option<String> {
        self.server.change(|world| {
            let id = world.jobs.iter().find(|job| !job.status.is_final())?.id.clone();
            while world.job(&id).is_some_and(|job| !job.status.is_final()) {
                world.advance(&id);
            }
            Some(id)
        })
    }

    /// Returns the ids of all jobs with their states, oldest first.
    pub fn jobs(&self) -> Vec<(String, String)> {
        let world = self.server.world();
        world.jobs.iter().map(|job| (job.id.clone(), job.status.word().to_owned())).collect()
    }

    /// Returns the ids of the loaded simulations.
    pub fn simulations(&self) -> Vec<String> {
        self.server.world().simulations.iter().map(|simulation| simulation.id.clone()).collect()
    }

    /// Loads a model under an id, as if another client had.
    pub fn has_loaded(&self, path: &str, id: &str) {
        self.server.world().register(id, &models::resolved(path));
    }

    /// Returns the current value and unit of a parameter.
    pub fn parameter(&self, simulation: &str, path: &str) -> Option<(f64, String)> {
        let mut world = self.server.world();
        let parameter = world.simulation(simulation)?.parameters.get(path)?;
        Some((parameter.value, parameter.unit.clone()))
    }

    /// Sets a parameter, as if another client had.
    pub fn changes(&self, simulation: &str, path: &str, value: f64) {
        let mut world = self.server.world();
        if let Some(parameter) = world.simulation(simulation).and_then(|own| own.parameters.get_mut(path)) {
            parameter.value = value;
        }
    }
}
