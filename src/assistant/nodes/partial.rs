//! Requests and changes that are understood or accepted only in part: the rest of a change is kept as a draft.

use countersign_graph::{
    action::{PrepareError, Reader, Refusal},
    node::Step,
};
use countersign_understanding::situation::{Analysis, Draft};
use serde_json::Value;

use super::{
    super::{
        exchange::{self, Call},
        replies,
        state::AgentState,
        tools, view,
    },
    CLARIFY, GATHER,
    round::{Round, Rounds},
};

impl Rounds {
    /// Handles requests that leave out a part of their message: the model is asked once to correct
    /// them, and if they are still incomplete, the person is asked.
    pub(super) fn ask_for_whole_steps(
        &self,
        round: Round<'_>,
        analysis: Analysis,
        calls: &[Call],
        lost: &[String],
    ) -> Step<AgentState> {
        let Round { mut state, usage, response, .. } = round;
        if !state.turn.exchange.is_empty() {
            let question = replies::in_no_step(lost);
            state.turn.analysis = Some(Analysis { confidence: 0.0, question, steps: Vec::new(), ..analysis });
            return Step::go(state, CLARIFY).cost(usage.total());
        }
        let mistake = format!("each step needs everything that was said of it; in none is: {}", lost.join("; "));
        let results = calls.iter().map(|call| exchange::result(call, Err(mistake.clone()))).collect();
        exchange::append(&mut state.turn.exchange, response, results);
        Step::go(state, GATHER).cost(usage.total())
    }

    /// Returns the analysis of a request that a model began to work on without giving one.
    pub(super) fn analysis_of(&self, round: &Round<'_>, calls: &[Call]) -> Analysis {
        let state = &round.state;
        let situation = view::situation(state, round.context);
        let by_call = calls.iter().find_map(|call| self.kit.capability_of(&call.name)).map(str::to_owned);
        let capability = by_call.or_else(|| self.registry.book.capability(&situation));
        Analysis { capability, ..Analysis::of_step(&state.turn.said) }
    }

    /// Returns the change that a response proposes together with a question about a part of it.
    pub(super) fn begun_draft(&self, calls: &[Call]) -> Option<Draft> {
        let proposed = |call: &Call| {
            let action = tools::proposed_action(&call.name)?;
            let schema = self.registry.schema_of(action).filter(|_| self.registry.book.makes_new(action))?;
            let Value::Object(params) = exchange::validate(&call.input, &schema).ok()? else { return None };
            Some(Draft::begun(action, params))
        };
        calls.iter().find_map(proposed)
    }

    /// Returns the parameter whose value is the reason why a new thing is refused: without it, the rest is accepted or
    /// something else is missing. Otherwise, if it was added to what was `known` and is the only one without which
    /// nothing is refused, it is that one.
    pub(super) async fn wrong_parameter(
        &self,
        change: &Draft,
        known: Option<&Draft>,
        reader: &Reader,
    ) -> Option<String> {
        let action = self.registry.actions.get(change.action.as_str())?;
        if !self.registry.book.makes_new(&change.action) || change.params.len() < 2 {
            return None;
        }
        let is_new = |key: &&String| known.is_none_or(|known| known.params.get(*key) != change.params.get(*key));
        let mut needed = Vec::new();
        for key in change.params.keys().filter(is_new) {
            let mut rest = change.params.clone();
            rest.remove(key);
            let prepared = action.prepare(&Value::Object(rest), Some(reader)).await;
            let is_accepted = match prepared {
                Ok(_) => true,
                Err(PrepareError::Refusal(Refusal::Missing(missing))) => {
                    let is_needed = missing.iter().any(|missing| missing.name == *key);
                    needed.extend(is_needed.then_some(key));
                    !is_needed
                }
                Err(_) => false,
            };
            if is_accepted {
                return Some(key.clone());
            }
        }
        match needed.as_slice() {
            [only] if known.is_some() => Some((*only).clone()),
            _ => None,
        }
    }
}
