//! Plans: several requests in one message, which are carried out in order.
//!
//! A plan belongs to the turn that works on it. Together with that turn it waits for the answer to
//! a question or for a decision on a card. It is stored next to the turn, not in it, so that
//! another message can drop it, and the answer to a question can continue it in a new turn. A step
//! that fails ends the plan, and the reply lists the remaining steps.

use countersign_capabilities::Registry;
use countersign_core::{clock::Timestamp, status_line};
use countersign_planner::{
    self as planner,
    control::{Control, Limits},
    plan::{RESPOND, Step},
    routing::{self, Next},
};
use countersign_understanding::situation::Draft;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    context::shortened_to,
    history::shorten,
    state::{AgentState, Turn},
};

/// The maximum number of requests of one message that are carried out.
pub const MAX_STEPS: usize = 8;

/// The maximum number of plans that wait at the same time.
const MAX_PLANS: usize = 6;

/// The maximum length of a stored request or result, in characters.
const MAX_TEXT_LENGTH: usize = 300;

/// The maximum length of a result that is stored as data, in bytes of JSON.
const MAX_RESULT_LENGTH: usize = 2_000;

/// The requests of one message, and the progress with them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Plan {
    /// The number of the turn that works on the plan.
    pub turn: u64,
    /// The event that the plan waits for.
    pub waits_for: WaitsFor,
    /// The number of the current step, counted from 1.
    pub step_counter: usize,
    /// The number of steps.
    pub total_steps: usize,
    /// The results of the finished steps.
    pub step_results: Vec<StepResult>,
    /// The requests that follow the current step, in order.
    pub ahead: Vec<String>,
    /// The number of requests in the message beyond [`MAX_STEPS`].
    pub left_out: usize,
    /// The result of the last finished step, as data on which conditions are evaluated.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub last_result: Value,
    /// The counters that determine how the plan continues.
    #[serde(skip_serializing_if = "is_untouched")]
    pub control: Control,
}

/// Returns true if the counters have their initial values, which are not stored.
fn is_untouched(control: &Control) -> bool {
    *control == Control::default()
}

/// The event that a plan waits for between two steps of the graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitsFor {
    /// No event: the plan is being worked on.
    #[default]
    Nothing,
    /// The answer to a question about a draft.
    Answer,
    /// A decision on a card.
    Card,
    /// A person's answer to the question whether the condition of the next step holds.
    Condition,
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
    /// Returns the position of the current step, such as `Step 2 of 3`.
    pub fn place(&self) -> String {
        format!("Step {} of {}", self.step_counter, self.total_steps)
    }

    /// Describes each step with its state; `in_hand` is the request of the current step.
    pub fn lines(&self, in_hand: &str) -> Vec<String> {
        let done = self.step_results.iter().map(|step| {
            let result = step.result.lines().next().unwrap_or_default();
            format!("Done: {} → {}", shorten(&step.request, 80), shorten(result, 120))
        });
        let is_taken = self.step_results.len() < self.step_counter;
        let current = is_taken.then(|| format!("Now: {}", shorten(in_hand, 80)));
        let ahead = self.ahead.iter().map(|request| format!("Next: {}", shorten(request, 80)));
        done.chain(current).chain(ahead).collect()
    }

    /// Returns the next step of the plan according to [`routing::next`].
    pub fn route(&self, limits: &Limits) -> Next {
        let request = |_| Step { capability: Some(REQUEST.to_owned()), ..Step::default() };
        let end = Step { capability: Some(RESPOND.to_owned()), ..Step::default() };
        let finished = self.step_results.len();
        let steps = (0..finished + self.ahead.len()).map(request).chain([end]).collect();
        routing::next(&routing::Turn {
            control: &self.control,
            limits,
            task: Some(REQUEST),
            is_classified: true,
            plan: Some(&planner::plan::Plan { steps }),
            step: finished,
            known: &|name| name == REQUEST,
        })
        .unwrap_or(Next::Error)
    }
}

/// The capability that every step is routed as. A step is a request, which is only interpreted when
/// its turn comes.
const REQUEST: &str = "request";

/// Joins requests into a single line, shortened.
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

    /// Returns a mutable reference to the plan of this turn.
    pub fn plan_mut(&mut self) -> Option<&mut Plan> {
        let number = self.turn.number;
        self.plans.iter_mut().find(|plan| plan.turn == number)
    }

    /// Returns true if another request follows the current one.
    pub fn has_next_step(&self) -> bool {
        self.plan().is_some_and(|plan| !plan.ahead.is_empty())
    }

    /// Begins a plan with the first of these requests as the current step.
    pub fn begin_plan(&mut self, steps: &[String], now: Timestamp) {
        let mut ahead = steps.iter().take(MAX_STEPS).map(|step| shorten(step, super::state::MAX_MESSAGE_LENGTH));
        let Some(first) = ahead.next() else { return };
        let ahead: Vec<String> = ahead.collect();
        self.turn.said = first;
        let plans_created = self.drop_plan().map_or(0, |plan| plan.control.plans_created);
        let mut control = Control { plans_created, started_at: now, ..Control::default() };
        control.plan_created();
        self.plans.push(Plan {
            turn: self.turn.number,
            step_counter: 1,
            total_steps: 1 + ahead.len(),
            ahead,
            left_out: steps.len().saturating_sub(MAX_STEPS),
            control,
            ..Plan::default()
        });
        let over = self.plans.len().saturating_sub(MAX_PLANS);
        self.plans.drain(..over);
    }

    /// Continues, in the current turn, the plan that waits in `of_turn`: its question was answered
    /// or its card corrected.
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

    /// Returns true if `change` continues the draft: it has the same action and the same subject.
    pub fn continues_draft(&self, registry: &Registry, change: &Draft) -> bool {
        let subject = |draft: &Draft| registry.subject(&draft.action, &json!(draft.params), &Value::Null);
        let draft = self.draft.as_ref().filter(|draft| draft.action == change.action);
        draft.is_some_and(|draft| match (subject(draft), subject(change)) {
            (Some(before), Some(now)) => before == now,
            _ => true,
        })
    }

    /// Records the result of the current step, as text and as data.
    pub fn finish_step(&mut self, result: &str, data: Value) {
        let request = shorten(&self.turn.said, MAX_TEXT_LENGTH);
        let Some(plan) = self.plan_mut() else { return };
        plan.waits_for = WaitsFor::Nothing;
        plan.step_results.push(StepResult {
            step: plan.step_counter,
            request,
            result: shorten(result, MAX_TEXT_LENGTH),
        });
        plan.last_result = shortened_to(&data, MAX_RESULT_LENGTH);
        plan.control.succeeded();
    }

    /// Begins the next step of the plan, if there is one.
    pub fn take_step(&mut self, now: Timestamp) {
        let Some(plan) = self.plan_mut().filter(|plan| !plan.ahead.is_empty()) else { return };
        plan.waits_for = WaitsFor::Nothing;
        let said = plan.ahead.remove(0);
        plan.step_counter += 1;
        // Messages may have arrived since the card was shown; the step then belongs to a newer
        // turn.
        let newest = self.newest_turn();
        let number = if newest > self.turn.number { newest + 1 } else { self.turn.number };
        if let Some(plan) = self.plan_mut() {
            plan.turn = number;
        }
        self.begin_step(number, said, now);
    }

    /// Begins the current step again.
    pub fn repeat_step(&mut self, now: Timestamp) {
        let (number, said) = (self.turn.number, self.turn.said.clone());
        self.begin_step(number, said, now);
    }

    fn begin_step(&mut self, number: u64, said: String, now: Timestamp) {
        let Turn { by, without_model, .. } = std::mem::take(&mut self.turn);
        self.turn = Turn { number, said, by, at: now, without_model, ..Turn::default() };
    }

    /// Counts a node that runs for the plan, and shows the current step in the status line.
    pub(super) fn note_work(&mut self) {
        let request = shorten(&self.turn.said, 60);
        if let Some(plan) = self.plan_mut() {
            plan.control.nodes += 1;
            status_line::say(format!("{} · {request}", plan.place()));
        }
    }

    /// Returns the newest plan that waits for a person's answer about a condition.
    pub(super) fn conditional_plan(&self) -> Option<&Plan> {
        self.plans.iter().rev().find(|plan| plan.waits_for == WaitsFor::Condition)
    }

    /// Removes the plan of this turn.
    pub fn drop_plan(&mut self) -> Option<Plan> {
        let place = self.plans.iter().position(|plan| plan.turn == self.turn.number)?;
        Some(self.plans.remove(place))
    }

    /// Removes the plans of other turns whose question is no longer open or that were broken off.
    /// Returns their remaining requests.
    pub fn drop_abandoned_plans(&mut self) -> Vec<String> {
        let (number, newest) = (self.turn.number, self.draft_turn);
        let asked = self.draft.is_some();
        let is_over = |plan: &mut Plan| {
            plan.turn != number
                && match plan.waits_for {
                    WaitsFor::Nothing => true,
                    WaitsFor::Answer => !asked || newest != plan.turn,
                    WaitsFor::Card | WaitsFor::Condition => false,
                }
        };
        self.plans.extract_if(.., is_over).flat_map(|plan| plan.ahead).collect()
    }
}
