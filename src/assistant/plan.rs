//! Several requests in one message, done in order.
//!
//! A plan belongs to the turn that works on it and waits with it: for the answer to a question, or for a decision on a
//! card. It stands beside the turn and not in it, so that a message in between can drop it, and an answer to a question
//! can take it up in a turn of its own. A step that does not succeed ends the plan, and the steps that were not done
//! are named.

use countersign_capabilities::Registry;
use countersign_core::clock::Timestamp;
use countersign_understanding::situation::Draft;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    history::shorten,
    state::{AgentState, Turn},
};

/// The maximum number of requests of one message that are carried out.
pub const MAX_STEPS: usize = 8;
/// The maximum number of plans that wait at a time.
const MAX_PLANS: usize = 6;
/// The longest request or result that is kept, in characters.
const MAX_TEXT_LENGTH: usize = 300;

/// The requests of one message, and the progress with them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Plan {
    /// The turn that works on it.
    pub turn: u64,
    /// The event that it waits for.
    pub waits_for: WaitsFor,
    /// The step in hand, counted from 1.
    pub step_counter: usize,
    /// The number of steps.
    pub total_steps: usize,
    /// The results of the steps before it.
    pub step_results: Vec<StepResult>,
    /// The requests after it, in order.
    pub ahead: Vec<String>,
    /// The number of requests in the message beyond [`MAX_STEPS`].
    pub left_out: usize,
}

/// The event that a plan waits for between two steps of the graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitsFor {
    /// None: the plan is being worked on.
    #[default]
    Nothing,
    /// The answer to a question about a draft.
    Answer,
    /// A decision on a card.
    Card,
}

/// The result of a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepResult {
    /// The number of the step, counted from 1.
    pub step: usize,
    /// The request.
    pub request: String,
    /// The reply to it, shortened.
    pub result: String,
}

impl Plan {
    /// Returns the place of the current step, such as `Step 2 of 3`.
    pub fn place(&self) -> String {
        format!("Step {} of {}", self.step_counter, self.total_steps)
    }
}

/// Lists requests in one line.
pub fn requests_in_words(requests: &[String]) -> String {
    let requests: Vec<_> = requests.iter().map(|request| shorten(request, 120)).collect();
    let words = requests.join("; ");
    if words.ends_with(['.', '!', '?', '…']) { words } else { format!("{words}.") }
}

impl AgentState {
    /// Returns the plan of this turn, if its message held several requests.
    pub fn plan(&self) -> Option<&Plan> {
        self.plans.iter().find(|plan| plan.turn == self.turn.number)
    }

    /// Returns the plan of this turn, mutable.
    pub fn plan_mut(&mut self) -> Option<&mut Plan> {
        let number = self.turn.number;
        self.plans.iter_mut().find(|plan| plan.turn == number)
    }

    /// Returns true if another request follows the one in hand.
    pub fn has_next_step(&self) -> bool {
        self.plan().is_some_and(|plan| !plan.ahead.is_empty())
    }

    /// Begins a plan: the first of these requests is the one in hand from now on.
    pub fn begin_plan(&mut self, steps: &[String]) {
        let mut ahead = steps.iter().take(MAX_STEPS).map(|step| shorten(step, super::state::MAX_MESSAGE_LENGTH));
        let Some(first) = ahead.next() else { return };
        let ahead: Vec<String> = ahead.collect();
        self.turn.said = first;
        self.drop_plan();
        self.plans.push(Plan {
            turn: self.turn.number,
            step_counter: 1,
            total_steps: 1 + ahead.len(),
            ahead,
            left_out: steps.len().saturating_sub(MAX_STEPS),
            ..Plan::default()
        });
        let over = self.plans.len().saturating_sub(MAX_PLANS);
        self.plans.drain(..over);
    }

    /// Takes up the plan that waits at `of_turn`, for the answer to its question or a correction of its card.
    pub fn take_up_plan(&mut self, of_turn: u64) {
        let number = self.turn.number;
        let waits = |plan: &Plan| plan.turn == of_turn && plan.waits_for != WaitsFor::Nothing;
        let Some(place) = self.plans.iter().position(waits).filter(|_| of_turn != number) else { return };
        let mut plan = self.plans.remove(place);
        if let Some(new) = self.drop_plan() {
            plan.total_steps += new.ahead.len();
            plan.ahead.extend(new.ahead);
        }
        self.plans.push(Plan { turn: number, waits_for: WaitsFor::Nothing, ..plan });
    }

    /// Returns true if `change` goes on with the draft: it is the same change to the same thing.
    pub fn continues_draft(&self, registry: &Registry, change: &Draft) -> bool {
        let about = |draft: &Draft| registry.subject(&draft.action, &json!(draft.params), &Value::Null);
        let draft = self.draft.as_ref().filter(|draft| draft.action == change.action);
        draft.is_some_and(|draft| match (about(draft), about(change)) {
            (Some(before), Some(now)) => before == now,
            _ => true,
        })
    }

    /// Notes the result of the step in hand and takes up the next one, if there is one.
    pub fn next_step(&mut self, result: &str, now: Timestamp) {
        let request = shorten(&self.turn.said, MAX_TEXT_LENGTH);
        let Some(plan) = self.plan_mut().filter(|plan| !plan.ahead.is_empty()) else { return };
        plan.waits_for = WaitsFor::Nothing;
        plan.step_results.push(StepResult {
            step: plan.step_counter,
            request,
            result: shorten(result, MAX_TEXT_LENGTH),
        });
        let said = plan.ahead.remove(0);
        plan.step_counter += 1;
        // Others may have written after the card: this step then belongs to a newer turn.
        let newest = self.newest_turn();
        let number = if newest > self.turn.number { newest + 1 } else { self.turn.number };
        if let Some(plan) = self.plan_mut() {
            plan.turn = number;
        }
        let Turn { by, without_model, .. } = std::mem::take(&mut self.turn);
        self.turn = Turn { number, said, by, at: now, without_model, ..Turn::default() };
    }

    /// Removes the plan of this turn.
    pub fn drop_plan(&mut self) -> Option<Plan> {
        let place = self.plans.iter().position(|plan| plan.turn == self.turn.number)?;
        Some(self.plans.remove(place))
    }

    /// Removes the plans of other turns whose question is no longer open, or that broke off; returns the requests that
    /// were ahead.
    pub fn drop_abandoned_plans(&mut self) -> Vec<String> {
        let (number, newest) = (self.turn.number, self.draft_turn);
        let asked = self.draft.is_some();
        let is_over = |plan: &mut Plan| {
            plan.turn != number
                && match plan.waits_for {
                    WaitsFor::Nothing => true,
                    WaitsFor::Answer => !asked || newest != plan.turn,
                    WaitsFor::Card => false,
                }
        };
        self.plans.extract_if(.., is_over).flat_map(|plan| plan.ahead).collect()
    }
}
