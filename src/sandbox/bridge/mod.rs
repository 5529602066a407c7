//! The stand-in for the simulation bridge: a real HTTP server on this machine that answers as recorded bridges do.
//!
//! It plays version 0.1, which has REST routes and `call_tool`, or 0.5, which also speaks MCP and checks what it is told.
//! It keeps simulations, jobs and results, asks for tokens and confirmations, and has the bridge's surprises: a blank
//! path is a 500, a restart forgets everything but the jobs, a body weight that is too small blocks every later change.
//! `tests/fixtures/simulation-api` holds the recordings and a contract test holds the stand-in to them.
//!
//! Start at [`Bridge`]. A request goes through `server` (faults, ledger, trail) to `rest` or `mcp`, which settle role,
//! confirmation and the shape of the arguments, and call one of the `tools`; these work on `world`. Behind it there is
//! one of three back ends ([`Backend`]); `engine` computes the curves of the two that know a model, `jobs` says what
//! becomes of a run.
//!
//! Canned answers were not used: a curve has to react to what was set before, and a job to its cancellation.

mod arguments;
mod catalogue;
mod consistency;
mod engine;
mod failure;
pub mod faults;
mod jobs;
mod ledger;
mod mcp;
mod models;
mod moment;
mod pages;
mod plausible;
mod population;
mod rest;
mod server;
mod stream;
mod token;
mod tools;
mod world;

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use countersign_core::clock::{Clock, SystemClock};
use serde_json::{Value, json};

pub use self::{
    catalogue::CRITICAL,
    faults::Fault,
    ledger::{CriticalCall, Request},
};
use self::{server::Shared, world::fresh_id};

/// The version of the bridge that is played.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// 0.1.0: REST routes and `call_tool`.
    V01,
    /// 0.5.0: also MCP, ranges, consistency, and a snapshot before each change.
    #[default]
    V05,
}

impl Version {
    /// Returns the version as the bridge reports it.
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
    /// None: a simulation starts without parameters, and every run gives the same line.
    Memory,
    /// The engine that was recorded: six parameters, no populations.
    Recorded,
    /// Models with parameters enough to look around in, and populations.
    ///
    /// As with the recorded engine, a name decides about a run: `slow…` takes 6 s, `hang…` 15 s, `flaky…` fails twice,
    /// `fail…` always; and about a load: `env-…`, `gone-…`, `broken-…`, `crash-…` and `noise-…` fail.
    #[default]
    Demo,
}

/// A role in a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Reads.
    Viewer,
    /// Reads, changes and runs.
    Operator,
    /// Does all, and reads the trail.
    Admin,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 3] = [Self::Viewer, Self::Operator, Self::Admin];

    /// Returns the word for it in a token.
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
    /// The version that is played.
    pub version: Version,
    /// The engine behind it.
    pub backend: Backend,
    /// True if runs wait in a queueing scheduler first; to cancel one there stalls the bridge, as it does the original.
    pub scheduler: bool,
    /// The port on 127.0.0.1; 0 means a free one.
    pub port: u16,
    /// The secret that tokens are signed with.
    pub secret: String,
    /// The number of requests with a token that are answered in a minute.
    pub rate_limit: usize,
    /// The time that a run takes.
    pub run_takes: Duration,
    /// The time between two looks at a job that is followed.
    pub look_every: Duration,
    /// The file that jobs and snapshots are kept in; a restart without one forgets them with the process.
    pub persist: Option<PathBuf>,
    /// The file that each request is appended to as a line of JSON.
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
    /// Returns the options of a bridge without a limit of requests and with short looks at jobs.
    pub fn quick(version: Version) -> Self {
        Self { version, rate_limit: usize::MAX, look_every: Duration::from_millis(20), ..Self::default() }
    }
}

/// A running stand-in. Dropping it stops the server.
#[derive(Debug)]
pub struct Bridge {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl Bridge {
    /// Starts a bridge of a version with the demo models and [`Options::quick`].
    ///
    /// # Panics
    ///
    /// If no port is free.
    pub async fn start(version: Version) -> Self {
        Self::with(Options::quick(version)).await.expect("a port is free")
    }

    /// Starts a bridge with options.
    ///
    /// # Errors
    ///
    /// If the port is taken or one of the files cannot be used.
    pub async fn with(options: Options) -> std::io::Result<Self> {
        let (door, address) = server::bind(options.port).await?;
        let shared = Arc::new(Shared::open(options)?);
        tokio::spawn(server::serve(door, shared.clone()));
        Ok(Self { address, shared })
    }

    /// Returns the base URL, such as `http://127.0.0.1:4000`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the secret that tokens are signed with.
    pub fn jwt_secret(&self) -> &str {
        &self.shared.options.secret
    }

    /// Returns a token with a role that is good for an hour, for the subject `alice`.
    pub fn token(&self, role: Role) -> String {
        let now = self.shared.options.clock.now().seconds();
        self.signed(&json!({ "sub": "alice", "roles": [role.name()], "exp": now + 3600 }))
    }

    /// Returns a token with these claims.
    pub fn signed(&self, claims: &Value) -> String {
        token::sign(claims, &self.shared.options.secret)
    }

    /// Restarts the bridge: simulations and results are forgotten, jobs under way fail, connections in use are cut.
    pub async fn restart(&self) {
        self.shared.restart();
        tokio::task::yield_now().await;
    }

    /// Takes the bridge down, where connections are closed without an answer, or up again.
    pub fn is_down(&self, down: bool) {
        self.shared.set_down(down);
    }

    /// Returns every request so far.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.ledger.requests()
    }

    /// Returns every call of a critical tool so far, in their order.
    pub fn audit(&self) -> Vec<CriticalCall> {
        self.shared.world().critical.clone()
    }

    /// Returns the bridge's own trail, oldest first.
    pub fn trail(&self) -> Vec<Value> {
        self.shared.world().trail.clone()
    }

    /// Lets a fault happen to the next request.
    pub fn fail_next(&self, fault: Fault) {
        self.shared.faults().add(fault, None);
    }

    /// Lets a fault happen to the next request whose `METHOD /path tool` contains `only`; the tool is the one that is
    /// called through `call_tool` or MCP.
    pub fn fail_next_on(&self, only: &str, fault: Fault) {
        self.shared.faults().add(fault, Some(only));
    }

    /// Forgets the faults that are yet to come, and ends a stall.
    pub fn is_well(&self) {
        self.shared.faults().clear();
        self.shared.set_down(false);
        self.shared.world().stalled = false;
    }

    /// Holds the jobs: none ends from now on.
    pub fn hold_jobs(&self) {
        self.shared.world().held = true;
    }

    /// Takes every job to its end, and holds none any longer.
    pub fn finish_jobs(&self) {
        self.shared.finish_jobs();
    }

    /// Lets jobs go on by themselves again.
    pub fn release_jobs(&self) {
        self.shared.release_jobs();
    }

    /// Takes the oldest job that is not at its end there, and goes on holding the others. Returns its id.
    pub fn finish_next_job(&self) -> Option<String> {
        self.shared.finish_next_job()
    }

    /// Returns the ids of all jobs with their states, oldest first.
    pub fn jobs(&self) -> Vec<(String, String)> {
        let world = self.shared.world();
        world.jobs.iter().map(|job| (job.id.clone(), job.status.word().to_owned())).collect()
    }

    /// Returns the ids of the loaded simulations.
    pub fn simulations(&self) -> Vec<String> {
        self.shared.world().simulations.iter().map(|simulation| simulation.id.clone()).collect()
    }

    /// Loads a model under an id, as if somebody else had.
    pub fn has_loaded(&self, path: &str, id: &str) {
        self.shared.world().register(id, &models::resolved(path));
    }

    /// Returns the value and the unit of a parameter as they stand now.
    pub fn parameter(&self, simulation: &str, path: &str) -> Option<(f64, String)> {
        let mut world = self.shared.world();
        let parameter = world.simulation(simulation)?.parameters.get(path)?;
        Some((parameter.value, parameter.unit.clone()))
    }

    /// Sets a parameter, as if somebody else had.
    pub fn changes(&self, simulation: &str, path: &str, value: f64) {
        let mut world = self.shared.world();
        if let Some(parameter) = world.simulation(simulation).and_then(|own| own.parameters.get_mut(path)) {
            parameter.value = value;
        }
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        self.shared.stop();
    }
}
