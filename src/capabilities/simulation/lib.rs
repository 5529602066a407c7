//! Pharmacokinetic simulations behind a bridge: tools that read them, actions that change and run them.
//!
//! [`tools`] read at any time; each file in [`actions`] is one change or run that a person approves. [`bridge`] is the
//! client. [`find`] finds simulations and parameters by people's words; [`amount`] and [`wanted`] convert a
//! value in words into the absolute number that a card shows; [`ranges`] has the values that a bridge allows.
//! [`events`] follows running jobs, [`under_way`] describes work in progress, and [`analyses`] the calls that are answered only when their work is done. [`chart`]
//! draws, [`memory`] keeps facts that the bridge does not report, and [`replies`] contains the sentences.
//!
//! Start reading at [`Simulation`], then at a file in [`actions`].
//!
//! *Architecture Invariant:* only one place tells the bridge that a person agreed ([`bridge::confirmed::Confirmed`]),
//! and it requires the record of an approved action.
//!
//! # The state of the confirm-before-execute agent
//!
//! An earlier agent for the same bridge kept all of this in one state. This table shows where each of its fields is
//! now:
//!
//! | field | place |
//! | --- | --- |
//! | `messages` | the thread's history, in the state of the chat graph |
//! | `simulation_context.simulationId` | the last subject of the conversation: “it” |
//! | `simulation_context.filePath` | the bridge's list of simulations, if it has the path; otherwise the record of the loading, by [`memory`] |
//! | `simulation_context.lastJobId` | the progress and outcome of the run's record; [`memory`] for “the last job” |
//! | `pending_tool_call` | the record of the action, with its parameters and the state that was shown |
//! | `user_feedback` | the decisions of that record |
//! | `plan` | the drafts and steps of the chat graph |
//! | `intermediate_steps` | the saved steps of the thread, and the audit log |
//! | `awaiting_confirmation` | the record's status |
//! | `confirmation_prompt` | the record's card |
//! | `retry_counts` | the record's sends for changes; the client for reads |
//! | `last_tool_name`, `last_tool_result`, `last_error` | the gathered facts and errors of the turn |

pub mod actions;
pub mod amount;
pub mod analyses;
pub mod bridge;
pub mod busy;
pub mod changes;
pub mod chart;
mod check;
mod commands;
pub mod comparing;
pub mod curve;
pub mod events;
mod families;
pub mod find;
mod home;
pub mod memory;
pub mod phrases;
pub mod populations;
pub mod ranges;
pub mod replies;
pub mod runs;
pub mod settings;
pub mod snapshots;
pub mod tools;
pub mod under_way;
pub mod wanted;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use countersign_capabilities::{
    Capability, CapabilityInfo, EventSource, Family, History, Nameable, Service, Things, Tool, facts::Facts,
};
use countersign_core::{
    clock::{Clock, Timestamp},
    reply::{Choice, Reply},
};
use countersign_graph::action::{ActionKind, ActionRecord, ErrorKind, Outcome, Reader, Status};
use countersign_understanding::lexicon::Names;
use serde_json::Value;

use self::{analyses::Analyses, bridge::client::BridgeClient, memory::Memory, settings::SimulationSettings};

/// The name of the capability.
const NAME: &str = "simulation";

/// The source of the events that its runs wait for.
pub const SOURCE: &str = "simulation";

/// The dependencies of tools and actions.
#[derive(Clone, Debug)]
pub struct Deps {
    /// The client of the bridge.
    pub client: Arc<BridgeClient>,
    /// The settings.
    pub settings: Arc<SimulationSettings>,
    /// The memory of this process.
    pub memory: Arc<Memory>,
    /// The analyses that this process has requested.
    pub analyses: Arc<Analyses>,
}

/// The capability for simulations on one bridge.
#[derive(Debug)]
pub struct Simulation {
    deps: Deps,
    clock: Arc<dyn Clock>,
}

/// The bridge as a service; its times are replaced by those of the settings.
const SERVICE: Service = Service {
    name: "Simulation bridge",
    health: tools::HEALTH,
    timeout: Duration::from_secs(10),
    settle_within: Duration::from_secs(60),
};

impl Simulation {
    /// Creates the capability for the bridge in the settings.
    ///
    /// # Errors
    ///
    /// Fails if there isn't an address, or the client cannot be set up.
    pub fn new(settings: &SimulationSettings, clock: Arc<dyn Clock>) -> anyhow::Result<Self> {
        let client = settings.client(clock.clone())?;
        let settings = Arc::new(settings.clone());
        let deps = Deps { client, settings, memory: Arc::default(), analyses: Arc::default() };
        Ok(Self { deps, clock })
    }
}

impl Drop for Simulation {
    fn drop(&mut self) {
        self.deps.analyses.give_up();
    }
}

#[async_trait]
impl Capability for Simulation {
    fn info(&self) -> CapabilityInfo {
        CapabilityInfo {
            phrases: Some(&phrases::OfSimulations),
            suggestions: &[
                ("Load the demo model", "load the demo model"),
                ("What is loaded?", "which simulations are loaded?"),
            ],
            examples: &[
                ("Simulations", "load the demo model"),
                ("Parameters, by path or in words", "set the dose to 500 mg"),
                ("Runs, with their curve", "run it"),
                ("Comparisons", "run it at 1.5, 2 and 3 L liver volume"),
            ],
            invitations: &[("Simulate", "load the demo model")],
            instructions: include_str!("instructions.md"),
            service: {
                let SimulationSettings { timeout, settle_within, .. } = *self.deps.settings;
                Some(Service { timeout, settle_within, ..SERVICE })
            },
            command: Some(commands::COMMAND),
            ..CapabilityInfo::new(
                NAME,
                "Pharmacokinetic simulations behind a bridge: load models, read and set parameters, run, compare.",
            )
        }
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        tools::all(&self.deps)
    }

    fn actions(&self) -> Vec<Arc<dyn ActionKind>> {
        let actions = [
            actions::load::action,
            actions::set::action,
            actions::run::action,
            actions::compare::action,
            actions::population::action,
            actions::sensitivity::action,
            actions::restore::action,
            actions::snapshot::action,
            actions::cancel::action,
        ];
        actions.map(|action| action(self.deps.clone())).into()
    }

    fn things(&self) -> Option<&dyn Things> {
        Some(self)
    }

    fn families(&self) -> Vec<Family> {
        families::all()
    }

    fn subject(&self, parameters: &Value, _: &Value) -> Option<String> {
        parameters["simulation"].as_str().map(str::to_owned)
    }

    fn next_steps(&self, record: &ActionRecord) -> Vec<Choice> {
        next_steps(&self.deps, record)
    }

    async fn check(&self) -> Option<(&'static str, Result<String, String>)> {
        Some(("simulation", check::bridge(&self.deps.client).await))
    }

    fn remember_by(&self, history: Arc<dyn History>) {
        self.deps.memory.remember_by(history);
    }

    fn events(&self) -> Option<Arc<dyn EventSource>> {
        Some(events::Jobs::of(&self.deps))
    }

    async fn answer(&self, word: &str, rest: &str, facts: &Facts, _: &Reader) -> Reply {
        commands::answer(word, rest, facts).await
    }

    async fn home(&self, facts: &Facts) -> Option<Reply> {
        home::section(&self.deps, facts).await
    }
}

#[async_trait]
impl Things for Simulation {
    fn names(&self) -> Arc<Names> {
        self.deps.memory.names()
    }

    async fn refresh_names(&self, since: Option<Timestamp>) {
        self.deps.memory.refresh(&self.deps.client, &*self.clock, NAME, since).await;
    }

    async fn nameable(&self) -> Result<Nameable, String> {
        let all = self.deps.client.simulations().await.map_err(|error| error.to_string())?;
        let things = all.into_iter().map(|loaded| loaded.id).collect();
        Ok(Nameable { thing: "simulation", contexts: Vec::new(), things })
    }
}

/// Returns suggestions for the next request after a change has ended.
fn next_steps(deps: &Deps, record: &ActionRecord) -> Vec<Choice> {
    let Some(simulation) = record.parameters["simulation"].as_str() else { return Vec::new() };
    let run = || Choice::new("Run simulation", format!("run {simulation}"));
    match (&record.status, record.name.as_str(), &record.outcome) {
        (Status::Done, actions::load::NAME, _) => {
            vec![run(), Choice::new("Show its parameters", format!("list the parameters of {simulation}"))]
        }
        (Status::Done, actions::set::NAME | actions::restore::NAME, _) => vec![run()],
        (Status::Failed, _, Some(Outcome::Failed { error: ErrorKind::NotFound, .. })) => match deps
            .memory
            .file(simulation)
        {
            Some(file) => vec![Choice::new(format!("Load {simulation} again"), format!("load {file} as {simulation}"))],
            None => Vec::new(),
        },
        _ => Vec::new(),
    }
}
