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
pub mod summary;
pub mod testing;
pub mod tools;

use std::sync::Arc;

use super::{Registry, Tool};
use crate::{clock::Clock, graph::action::ActionKind, services::upgrade::client::UpgradeClient};

/// Everything that can be read and done, on one platform. The clock tells which dates are to come.
pub fn registry(client: Arc<UpgradeClient>, clock: Arc<dyn Clock>) -> Registry {
    let tools: [Arc<dyn Tool>; 11] = [
        Arc::new(tools::CheckHealth(client.clone())),
        Arc::new(knowledge::ExplainConcept(client.clone())),
        Arc::new(tools::ContextMetadata(client.clone())),
        Arc::new(context_tools::AvailableContexts(client.clone())),
        Arc::new(context_tools::ConditionsOfContext(client.clone())),
        Arc::new(context_tools::PointsOfContext(client.clone())),
        Arc::new(context_tools::GroupTypesOfContext(client.clone())),
        Arc::new(tools::ExperimentNames(client.clone())),
        Arc::new(tools::AllExperiments(client.clone(), clock.clone())),
        Arc::new(tools::ExperimentDetails(client.clone())),
        Arc::new(testing::users::GenerateUsers(client.clone())),
    ];
    let actions: [Arc<dyn ActionKind>; 10] = [
        Arc::new(actions::create::CreateExperiment(client.clone(), clock.clone())),
        Arc::new(actions::update::UpdateExperiment(client.clone(), clock.clone())),
        Arc::new(actions::status::UpdateStatus(client.clone(), clock.clone())),
        Arc::new(actions::delete::DeleteExperiment(client.clone())),
        Arc::new(actions::init::InitUser(client.clone())),
        Arc::new(actions::assign::GetAssignments(client.clone())),
        Arc::new(actions::mark::MarkDecisionPoint(client.clone())),
        Arc::new(testing::balance::TestBalance(client.clone(), clock.clone())),
        Arc::new(testing::consistency::TestConsistency(client.clone(), clock)),
        Arc::new(testing::journey::SimulateJourney(client)),
    ];
    let terms = knowledge::TERMS.into_iter().map(|terms| Arc::new(terms) as Arc<dyn Tool>);
    Registry {
        tools: tools
            .into_iter()
            .chain(terms)
            .chain(knowledge::schemas(&actions))
            .map(|tool| (tool.name(), tool))
            .collect(),
        actions: actions.into_iter().map(|action| (action.name(), action)).collect(),
    }
}
