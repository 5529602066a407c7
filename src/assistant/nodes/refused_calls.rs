//! Calls of tools that a language model was not offered in a round: they are refused, and the record tells of them.
//!
//! A model that follows its instructions calls what it is offered. Another call may come from a text that it has read.

use countersign_planner::events::{Phase, StreamEvent};

use super::{
    super::{exchange::Call, state::AgentState, tools},
    round::{Round, Rounds},
};

/// The source of the events about a model.
const MODEL: &str = "model";

impl Rounds {
    /// Notes the calls of tools and changes that a language model was not offered in this round. They are refused, and the
    /// record tells of them.
    pub(super) fn note_not_offered(&self, round: &mut Round<'_>, calls: &[Call]) {
        if round.offered.is_empty() {
            return;
        }
        let exists = |name: &str| match tools::proposed_action(name) {
            Some(action) => self.registry.actions.contains_key(action),
            None => self.registry.tools.contains_key(name),
        };
        let is_offered = |name: &str| round.offered.iter().any(|tool| tool.name == name);
        for call in calls.iter().filter(|call| exists(&call.name) && !is_offered(&call.name)) {
            tracing::warn!(run.id = %round.context.run, call.id, tool.name = call.name, "A model called a tool that it was not offered");
            round.state.note_refused_call(&call.name);
            round.state.turn.not_offered.push(call.id.clone());
        }
    }
}

impl AgentState {
    /// Notes for the record that a model called a tool which it was not offered.
    fn note_refused_call(&mut self, name: &str) {
        let text = format!("Refused a call of {name}, which was not offered");
        let (source, phase) = (MODEL.to_owned(), Phase::TaskPreparation);
        self.events.push(StreamEvent { text, source, phase, ..StreamEvent::default() });
    }
}
