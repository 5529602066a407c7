//! Experiments on UpGrade: the tools that read them and the actions that change them.
//!
//! The tools in [`tools`] and [`context_tools`] read from the platform; those in [`knowledge`] need
//! no access to it. Each file in [`actions`] is one change that a person approves. All of them find
//! experiments by name through [`lookup`] and [`access`]. The names and an overview of all experiments are kept in
//! memory, and [`upgrade::known`] says when they are read again.
//!
//! [`rules`] is the table of status changes, which the platform does not enforce. [`inputs`] has the
//! formats in which people give parameters, [`listing`] the filter and order of a list, and
//! [`families`] the groups of tools that a language model is offered. [`summary`] is the short form
//! of an experiment, and [`setup`] the rest of it. [`testing`] tests a running experiment with
//! simulated participants, and [`replies`] holds all sentences. Nothing here depends on Slack, a
//! language model, or the engine beyond the two traits that this crate implements.
//!
//! Start reading at [`Experiments`], then at a file in [`actions`].
//!
//! *Architecture Invariant:* `prepare` reads and never writes, and a card is made from the data it
//! read and from validated parameters, never from a model's words.

pub mod access;
pub mod actions;
pub mod allowances;
mod check;
mod commands;
pub mod compare;
pub mod context_tools;
mod described;
mod enrollment;
mod enrollment_chart;
pub mod examples;
mod families;
mod forms;
pub mod glossary;
mod home;
pub mod inputs;
pub mod knowledge;
pub mod listing;
pub mod lookup;
mod names;
mod observer;
mod off;
pub mod phrases;
pub mod points;
pub mod replies;
pub mod rules;
mod scope;
pub mod settings;
pub mod setup;
mod subject;
pub mod summary;
pub mod testing;
pub mod tools;
pub mod upgrade;

use std::{iter, sync::Arc, time::Duration};

use async_trait::async_trait;
use countersign_core::{
    clock::{Clock, Timestamp},
    reply::{Choice, Reply},
};
use countersign_graph::action::{ActionKind, ActionRecord, PrepareError, Reader};
use countersign_planner::condition::Verdict;
use countersign_understanding::lexicon::Names;
use serde_json::Value;

pub use self::off::NotSetUp;
use self::{
    settings::Upgrade,
    upgrade::{client::UpgradeClient, status::Status},
};
use countersign_capabilities::{
    AllowancePlace, Capability, CapabilityInfo, Family, History, Nameable, Observer, Service, Shortcut, Things, Tool,
    facts::Facts,
};

/// The capability for experiments on one platform.
#[derive(Debug)]
pub struct Experiments {
    client: Arc<UpgradeClient>,
    settings: Upgrade,
    clock: Arc<dyn Clock>,
    names: names::KnownNames,
}

/// The name of the capability.
const NAME: &str = "experiments";

impl Experiments {
    /// Creates the capability for the platform in the settings. `clock` decides which dates are in
    /// the future.
    ///
    /// # Errors
    ///
    /// Fails if the client cannot be set up.
    pub fn new(settings: &Upgrade, clock: Arc<dyn Clock>) -> anyhow::Result<Self> {
        Ok(Self::with_client(settings.client(clock.clone())?, settings, clock))
    }

    /// Creates the capability with an existing client.
    pub fn with_client(client: Arc<UpgradeClient>, settings: &Upgrade, clock: Arc<dyn Clock>) -> Self {
        let names = names::KnownNames::new(client.clone(), clock.clone());
        Self { client, settings: settings.clone(), clock, names }
    }

    fn deps(&self) -> access::Deps {
        access::Deps { client: self.client.clone(), clock: self.clock.clone() }
    }
}

/// The platform as a service. The settings override its times.
const SERVICE: Service = Service {
    name: "UpGrade",
    health: "check_upgrade_health",
    timeout: Duration::from_secs(10),
    settle_within: Duration::from_secs(60),
};

#[async_trait]
impl Capability for Experiments {
    fn info(&self) -> CapabilityInfo {
        CapabilityInfo {
            phrases: Some(&phrases::ExperimentPhrases),
            suggestions: &[subject::LIST, ("Is UpGrade running?", "is UpGrade running?")],
            examples: &[
                ("Words", "what is a decision point?"),
                ("Version and health", "is UpGrade running?"),
                ("Lists", "list the running experiments"),
                ("Details", "show Math Hints"),
                ("Changes, each approved on a card", "start Math Hints"),
                ("Users", "what condition would u1 get in assign-prog?"),
                ("Tests", "test the balance of Math Hints with 200 users"),
            ],
            invitations: &[
                ("See what's there", "list experiments"),
                ("Look at a context", "what conditions does assign-prog have?"),
                ("Make a change with approval", "start the Math Hints experiment"),
                ("Create something new", "create an experiment Hint Timing in assign-prog"),
                ("Try something that can't be undone", "delete the Chat Tone experiment"),
                ("Check the platform", "is UpGrade running?"),
            ],
            instructions: include_str!("instructions.md"),
            service: {
                let Upgrade { timeout, settle_within, .. } = self.settings;
                Some(Service { timeout, settle_within, ..SERVICE })
            },
            command: Some(commands::COMMAND),
            shortcuts: &[Shortcut {
                callback: "new_experiment",
                title: "New experiment",
                what: "new experiment",
                submit: "Propose experiment",
                says: "create an experiment",
                action: actions::create::NAME,
            }],
            allowances: allowances::ALL,
            measures: settings::MEASURES,
            ..CapabilityInfo::new(
                NAME,
                "A/B experiments on UpGrade: look them up, design them, start and stop them, try them with simulated users.",
            )
        }
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let deps = || self.deps();
        let contexts = iter::once(context_tools::names(deps())).chain(context_tools::parts(deps()));
        let first = [
            tools::health(deps()),
            knowledge::explain_concept(deps()),
            knowledge::explain_change(self.actions()),
            tools::vocabulary(deps()),
        ];
        let rest = [
            tools::names(deps()),
            tools::list(deps()),
            tools::details(deps()),
            compare::tool(deps()),
            enrollment::tool(deps()),
            testing::users::tool(deps()),
        ];
        first.into_iter().chain(contexts).chain(rest).chain(knowledge::terms()).collect()
    }

    fn actions(&self) -> Vec<Arc<dyn ActionKind>> {
        let all = [
            actions::create::action,
            actions::update::action,
            actions::status::action,
            actions::delete::action,
            actions::init::action,
            actions::assign::action,
            actions::mark::action,
            testing::balance::action,
            testing::consistency::action,
            testing::journey::action,
        ];
        all.into_iter().map(|action| action(self.deps())).collect()
    }

    fn things(&self) -> Option<&dyn Things> {
        Some(self)
    }

    fn families(&self) -> Vec<Family> {
        families::all()
    }

    fn subject(&self, parameters: &Value, result: &Value) -> Option<String> {
        subject::of_change(parameters, result)
    }

    fn verdict(&self, condition: &str, result: &Value) -> Option<Verdict> {
        testing::conditions::verdict(condition, result)
    }

    fn next_steps(&self, record: &ActionRecord) -> Vec<Choice> {
        subject::next_steps(record)
    }

    async fn check(&self) -> Option<(&'static str, Result<String, String>)> {
        Some(("upgrade", check::platform(&self.client, &self.settings).await))
    }

    async fn answer(&self, word: &str, rest: &str, facts: &Facts, reader: &Reader) -> Reply {
        commands::answer(word, rest, facts, reader).await
    }

    async fn home(&self, facts: &Facts) -> Option<Reply> {
        Some(home::section(facts).await)
    }

    fn remember_by(&self, history: Arc<dyn History>) {
        self.client.own_tests().remember_by(history);
    }

    fn observer(&self) -> Option<Arc<dyn Observer>> {
        Some(Arc::new(observer::ExperimentObserver(self.client.clone())))
    }
}

#[async_trait]
impl Things for Experiments {
    fn names(&self) -> Arc<Names> {
        self.names.snapshot()
    }

    async fn refresh_names(&self, since: Option<Timestamp>) {
        self.names.refresh(since).await;
    }

    fn canonical(&self, parameter: &str, value: &str) -> Option<String> {
        let status = Status::asked_for(value).filter(|_| parameter == "status")?;
        Some(status.stored().to_owned())
    }

    async fn nameable(&self) -> Result<Nameable, String> {
        check::nameable(&self.client).await
    }

    async fn place(&self, name: &str) -> Result<AllowancePlace, PrepareError> {
        allowances::place(&self.client, name).await
    }

    async fn places(&self) -> Vec<String> {
        access::which_experiment(&self.client).await.options
    }
}
