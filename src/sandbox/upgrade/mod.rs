//! The stand-in for UpGrade: a real HTTP server on this machine that answers like the recorded
//! servers.
//!
//! It simulates either the 6.5 line or the older 6.2 line. It keeps state, enrols users and refuses
//! the same requests as the platform, with the same messages and the same peculiarities: a change
//! of the status of an unknown experiment is answered with status 500, a `PUT` drops its lists, and
//! any status may follow any other. A contract test compares the stand-in with the recordings in
//! `tests/fixtures/upgrade`. It does not depend on the bot, and checks only what the platform
//! checks.
//!
//! Start at [`SandboxUpgrade`]. A request goes through `server` to a handler in `routes`, which works
//! on `world`. `wire` and `failure` format the result for the
//! version, and `assign` assigns conditions to users.
//!
//! Two things differ from the platform: the random numbers of assignments (see `assign`), and the
//! path `/sandbox/ledger`, by which another process reads the ledger.
//!
//! A library that replays canned answers was rejected as a design: the bot reads back its changes,
//! so the answers depend on state.

mod assign;
mod failure;
mod routes;
mod seed;
mod server;
mod validate;
mod wire;
mod world;

use std::{path::PathBuf, sync::Arc, time::Duration};

use countersign_core::clock::{Clock, SystemClock};
use serde_json::Value;

use self::world::World;
use super::google::Tokens;
use crate::{
    faults::{Down, Fault, Held, When},
    ledger::Request,
    stand_in::{self, Place, StandIn},
};

/// The version of the simulated server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// 6.5.0. In all relevant respects, every version since 6.3 is alike.
    #[default]
    V6_5,
    /// The 6.2 line.
    V6_2,
}

impl Version {
    /// Returns the version that the server reports. Every release of the older line reports 6.2.0.
    pub fn text(self) -> &'static str {
        match self {
            Self::V6_5 => "6.5.0",
            Self::V6_2 => "6.2.0",
        }
    }
}

/// The options of the stand-in.
#[derive(Clone, Debug)]
pub struct Options {
    /// The version of the simulated server.
    pub version: Version,
    /// The administration token that requests must have; `None` if they need no token.
    pub token: Option<String>,
    /// The issuer of the access tokens that requests must have instead of `token`.
    pub minted: Option<Arc<Tokens>>,
    /// The port on 127.0.0.1; 0 means a free one.
    pub port: u16,
    /// True if a new world contains the experiments of the playground.
    pub seed: bool,
    /// The file from which the world is read, and to which it is written after each change.
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
            token: None,
            minted: None,
            port: 0,
            seed: false,
            persist: None,
            ledger_file: None,
            clock: Arc::new(SystemClock),
        }
    }
}

/// A running stand-in. Dropping it stops the server.
#[derive(Debug)]
pub struct SandboxUpgrade {
    server: StandIn<World>,
}

impl SandboxUpgrade {
    /// Starts a server.
    ///
    /// # Errors
    ///
    /// If the port is taken or one of the files cannot be used.
    pub async fn start(options: Options) -> std::io::Result<Self> {
        let place = Place {
            port: options.port,
            clock: options.clock.clone(),
            ledger: options.ledger_file.clone(),
            persist: options.persist.clone(),
        };
        let saved: Option<World> = place.kept()?.map(|saved| serde_json::from_slice(&saved)).transpose()?;
        let is_new = saved.is_none();
        let mut world = World { version: options.version, now: options.clock.now(), ..saved.unwrap_or_default() };
        if options.seed && is_new {
            seed::plant(&mut world);
        }
        Ok(Self { server: StandIn::start(world, options, place, stand_in::routes).await? })
    }

    /// Returns the base URL with the API's prefix, such as `http://127.0.0.1:4000/api`.
    pub fn url(&self) -> String {
        format!("{}/api", self.server.url())
    }

    /// Finishes the requests in progress, then frees the port.
    pub async fn stop(self) {
        self.server.stop().await;
    }

    /// Adds a simple experiment to the world and returns its id.
    ///
    /// `status` is any status of the version, such as `inactive` or `enrolling`.
    ///
    /// # Panics
    ///
    /// If the version has no such status.
    pub fn has(&self, name: &str, status: &str) -> String {
        self.server.change(|world| seed::plain(world, name, status))
    }

    /// Adds an experiment with this text in all its fields for free text: the description, a tag, and a condition.
    pub fn has_written(&self, name: &str, status: &str, text: &str) -> String {
        self.server.change(|world| seed::written(world, name, status, text))
    }

    /// Adds an experiment like [`Self::has`], after removing all experiments with that name.
    pub fn has_anew(&self, name: &str, status: &str) -> String {
        self.server.change(|world| {
            world.experiments.retain(|experiment| experiment.row.name != name);
            seed::plain(world, name, status)
        })
    }

    /// Enrolls users of an application in the newest experiment with that name.
    pub fn enrolls(&self, name: &str, users: usize) {
        self.server.change(|world| seed::enroll(world, name, users));
    }

    /// Gives the experiments with that name a decision point of their own, so that they overlap with no others.
    pub fn has_own_point(&self, name: &str) {
        self.has_point(name, name);
    }

    /// Gives the decision points of the experiments with that name this target.
    pub fn has_point(&self, name: &str, target: &str) {
        self.server.change(|world| {
            let own = world.experiments.iter_mut().filter(|experiment| experiment.row.name == name);
            for point in own.flat_map(|experiment| &mut experiment.points) {
                point.target = Some(target.to_owned());
            }
        });
    }

    /// Makes the experiments with that name inactive, as if they had just been created: without their changes of status.
    pub fn is_as_new(&self, name: &str) {
        self.server.change(|world| {
            for experiment in world.experiments.iter_mut().filter(|experiment| experiment.row.name == name) {
                experiment.row.state = world::State::Inactive;
                experiment.logs.clear();
            }
        });
    }

    /// Adds a factor for stratified random sampling.
    pub fn has_factor(&self, name: &str) {
        self.server.change(|world| world.stratification_factors.insert(name.to_owned()));
    }

    /// Adds a public segment to a context and returns its id.
    pub fn has_segment(&self, name: &str, context: &str, users: &[&str]) -> String {
        self.server.change(|world| {
            let sent = serde_json::json!({ "name": name, "context": context, "type": "public", "userIds": users });
            let segment = routes::lists::read_segment(world, &sent, world::fresh_id()).expect("it has a name");
            let id = segment.id.clone();
            world.segments.push(segment);
            id
        })
    }

    /// Returns the newest experiment with that name, in the format of `GET /experiments/single`.
    pub fn experiment(&self, name: &str) -> Option<Value> {
        let world = self.server.world();
        let found = world.experiments.iter().rev().find(|experiment| experiment.row.name == name)?;
        Some(wire::single(found, &world))
    }

    /// Returns true if there is an experiment with that name.
    pub fn contains(&self, name: &str) -> bool {
        self.names().iter().any(|own| own == name)
    }

    /// Returns the names of all experiments, oldest first.
    pub fn names(&self) -> Vec<String> {
        self.server.world().experiments.iter().map(|experiment| experiment.row.name.clone()).collect()
    }

    /// Returns every request so far, with its effect.
    pub fn ledger(&self) -> Vec<Request> {
        self.server.requests()
    }

    /// Returns the requests that changed something.
    pub fn effects(&self) -> Vec<Request> {
        self.ledger().into_iter().filter(|entry| entry.effect).collect()
    }

    /// Returns every request since the last call of this method, and removes them from the ledger.
    /// For runs so long that the ledger would fill the memory.
    pub fn takes_ledger(&self) -> Vec<Request> {
        self.server.take_requests()
    }

    /// Removes an experiment, as if another client had deleted it.
    pub fn forgets(&self, id: &str) {
        self.server.change(|world| world.experiments.retain(|experiment| experiment.row.id != id));
    }

    /// Carries out the next change, but closes the connection without an answer.
    pub fn loses_next_answer(&self) {
        self.will("", Fault::LostAnswer);
    }

    /// Answers the next request whose `METHOD /path` contains `only` with an error page.
    pub fn fails_next(&self, status: u16, when: When, only: Option<&str>) {
        self.will(only.unwrap_or_default(), Fault::Proxy(status).at(when));
    }

    /// Leaves the next request without an answer and without an effect.
    pub fn hangs_next(&self) {
        self.will("", Fault::Hang);
    }

    /// Leaves the next request whose `METHOD /path` contains `only` without an answer. It takes
    /// effect after the delay `by`.
    pub fn delays_next(&self, by: Duration, only: &str) {
        let after_ms = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
        self.will(only, Fault::Late { after_ms, is_closed: false });
    }

    /// Answers the next request whose `METHOD /path` contains `only` with this status and JSON, before or after its
    /// effect.
    pub fn answers_next(&self, status: u16, body: Value, when: When, only: &str) {
        self.will(only, Fault::Answer(status, body).at(when));
    }

    /// Queues a fault for the next request whose `METHOD /path ` contains `only`, where a blank at the end ends the path.
    /// One after the effect waits for a request that has one.
    pub fn will(&self, only: &str, fault: Fault) {
        self.server.faults.next_on(only, fault);
    }

    /// Takes the server down, or up again for `None`.
    pub fn is_down(&self, down: Option<Down>) {
        self.server.faults.down(down);
    }

    /// Delays every answer from now on.
    pub fn is_slow(&self, delay: Duration) {
        self.server.faults.slow(delay);
    }

    /// Closes the connection after each error from now on, although the answer says that it is kept open, as version
    /// 6.2.6 does.
    pub fn ends_connections_after_errors(&self) {
        self.server.faults.ends_connections();
    }

    /// Holds back the answer to the next request whose `METHOD /path` contains `only`. The request
    /// takes effect.
    pub fn holds_next_answer(&self, only: &str) -> Held {
        self.server.faults.holds(only)
    }

    /// Removes all faults.
    pub fn is_well(&self) {
        self.server.faults.clear();
    }
}
