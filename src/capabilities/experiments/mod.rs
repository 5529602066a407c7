//! Experiments on UpGrade: what can be read about them and what can be done with them.
//!
//! [`tools`] and [`context_tools`] read at any time, [`knowledge`] needs no looking up; each file in [`actions`] is one
//! change that a person approves. All find experiments by name through [`lookup`] and [`access`]. [`rules`] is the table of
//! status changes that the platform does not keep itself, [`given`] the forms in which people state things, [`listing`]
//! which experiments a list shows, [`summary`] an experiment in few words, [`setup`] the rest of it, [`testing`] tries a
//! running one with simulated participants, and [`replies`] every sentence. None of it knows Slack, a language model or
//! the engine beyond the two traits it implements.
//!
//! *Architecture Invariant:* `prepare` reads and never writes, and a card is made of what it read and of validated
//! parameters, never of a model's words.

pub mod access;
pub mod actions;
pub mod context_tools;
pub mod examples;
mod forms;
pub mod given;
pub mod knowledge;
pub mod listing;
pub mod lookup;
pub mod period;
pub mod points;
pub mod replies;
pub mod rules;
mod scope;
pub mod setup;
mod subject;
pub mod summary;
pub mod testing;
pub mod tools;

use std::sync::Arc;

use serde_json::Value;

use super::{Capability, Tool};
use crate::{
    clock::Clock,
    graph::action::{ActionKind, ActionRecord},
    reply::Choice,
    services::upgrade::client::UpgradeClient,
};

/// Everything that can be read and done, on one platform.
#[derive(Debug)]
pub struct Experiments {
    client: Arc<UpgradeClient>,
    clock: Arc<dyn Clock>,
}

impl Experiments {
    /// On this platform. The clock tells which dates are to come.
    pub fn new(client: Arc<UpgradeClient>, clock: Arc<dyn Clock>) -> Self {
        Self { client, clock }
    }
}

impl Capability for Experiments {
    fn name(&self) -> &'static str {
        "experiments"
    }

    fn purpose(&self) -> &'static str {
        "A/B experiments on UpGrade: look them up, design them, start and stop them, try them with simulated users."
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let client = || self.client.clone();
        let tools: [Arc<dyn Tool>; 11] = [
            Arc::new(tools::CheckHealth(client())),
            Arc::new(knowledge::ExplainConcept(client())),
            Arc::new(tools::ContextMetadata(client())),
            Arc::new(context_tools::AvailableContexts(client())),
            Arc::new(context_tools::ConditionsOfContext(client())),
            Arc::new(context_tools::PointsOfContext(client())),
            Arc::new(context_tools::GroupTypesOfContext(client())),
            Arc::new(tools::ExperimentNames(client())),
            Arc::new(tools::AllExperiments(client(), self.clock.clone())),
            Arc::new(tools::ExperimentDetails(client())),
            Arc::new(testing::users::GenerateUsers(client())),
        ];
        let terms = knowledge::TERMS.into_iter().map(|terms| Arc::new(terms) as Arc<dyn Tool>);
        tools.into_iter().chain(terms).chain(knowledge::schemas(&self.actions())).collect()
    }

    fn actions(&self) -> Vec<Arc<dyn ActionKind>> {
        let (client, clock) = (|| self.client.clone(), || self.clock.clone());
        vec![
            Arc::new(actions::create::CreateExperiment(client(), clock())),
            Arc::new(actions::update::UpdateExperiment(client(), clock())),
            Arc::new(actions::status::UpdateStatus(client(), clock())),
            Arc::new(actions::delete::DeleteExperiment(client())),
            Arc::new(actions::init::InitUser(client())),
            Arc::new(actions::assign::GetAssignments(client())),
            Arc::new(actions::mark::MarkDecisionPoint(client())),
            Arc::new(testing::balance::TestBalance(client(), clock())),
            Arc::new(testing::consistency::TestConsistency(client(), clock())),
            Arc::new(testing::journey::SimulateJourney(client())),
        ]
    }
    fn subject(&self, parameters: &Value, result: &Value) -> Option<String> {
        subject::of_change(parameters, result)
    }

    fn next_steps(&self, record: &ActionRecord) -> Vec<Choice> {
        subject::next_steps(record)
    }

    fn suggestions(&self) -> &'static [(&'static str, &'static str)] {
        &[subject::LIST, ("Is UpGrade running?", "is UpGrade running?")]
    }

    fn examples(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("Words", "what is a decision point?"),
            ("Version and health", "is UpGrade running?"),
            ("Lists", "list the running experiments"),
            ("Details", "show Math Hints"),
            ("Changes, each approved on a card", "start Math Hints"),
            ("Users", "what condition would u1 get in assign-prog?"),
            ("Tests", "test the balance of Math Hints with 200 users"),
        ]
    }
}
