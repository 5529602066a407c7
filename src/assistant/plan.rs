//! Plans: several requests in one message, which are carried out in order.
//!
//! The plan of the requests is checked before the first of them begins ([`countersign_planner::plan::Plan::checked`]),
//! and [`countersign_planner::routing::next`] decides on what follows each step. Its progress is noted as events,
//! which the engine writes into the record with the step.
//!
//! A plan belongs to the turn that works on it and waits with it: for the answer to a question, or for a decision on a
//! card. It is stored beside the turn and not in it, so that a message in between can drop it, and an answer to a
//! question can continue it in a later turn. A step that does not succeed ends the plan, and the steps that were not
//! done are named.

use countersign_capabilities::{ASSISTANT, Registry};
use countersign_core::{clock::Timestamp, status_line};
use countersign_graph::retry::RetryPolicy;
use countersign_planner::{
    self as planner,
    control::{Control, Limits, Severity, StepError},
    events::{EndsEarly, Phase, StreamEvent},
    plan::Step,
    routing::{self, Next},
};
use countersign_understanding::situation::Draft;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

use super::{
    context::shortened_to,
    history::shorten,
    state::{AgentState, Heard},
};

/// The maximum number of requests of one message that are carried out.
pub const MAX_STEPS: usize = 8;

/// The maximum number of plans that wait at the same time.
const MAX_PLANS: usize = 6;

/// The maximum length of a stored request or result, in characters.
const MAX_TEXT_LENGTH: usize = 300;

/// The maximum length of a stored message with several requests, in characters.
const MAX_ASKED_LENGTH: usize = 1_000;

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
    /// The whole message, shortened.
    pub asked: String,
    /// The results of the finished steps.
    pub step_results: Vec<StepResult>,
    /// The requests after the current one in the person's words, in order.
    pub ahead: Vec<String>,
    /// All steps and the answer at the end, as they were checked.
    pub planned: planner::plan::Plan,
    /// The results that the conditions of later steps look at, by the keys of their steps.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub results: BTreeMap<String, Value>,
    /// The number of requests in the message beyond [`MAX_STEPS`].
    pub left_out: usize,
    /// The counters that determine how the plan continues.
    #[serde(skip_serializing_if = "is_untouched")]
    pub control: Control,
    /// The time zone of all its requests, even if someone in another zone answers a question in between; `None` if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// The words of people that asked for the steps, if a language model wrote them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub heard: Vec<Heard>,
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

    /// Describes each step with its state.
    pub fn lines(&self) -> Vec<String> {
        let now = match self.waits_for {
            WaitsFor::Condition => {
                let condition = self.next_step().and_then(|step| step.condition.as_ref());
                condition.map(|condition| format!("Now: waiting for an answer (“{}”?)", shorten(&condition.words, 80)))
            }
            _ => self.request_in_hand().map(|request| format!("Now: {}", shorten(request, 80))),
        };
        let ahead = self.ahead.iter().map(|request| format!("Next: {}", shorten(request, 80)));
        self.lines_of_done().chain(now).chain(ahead).collect()
    }

    /// Describes each step of a plan that was stopped: done or not done.
    pub(super) fn lines_when_stopped(&self) -> Vec<String> {
        let undone = self.undone().into_iter().map(|request| format!("Not done: {}", shorten(&request, 80)));
        self.lines_of_done().chain(undone).collect()
    }

    /// Returns the results of the steps before the current one.
    pub(super) fn before_current(&self) -> &[StepResult] {
        let count = self.step_results.iter().take_while(|step| step.step < self.step_counter).count();
        &self.step_results[..count]
    }

    /// Describes the finished steps.
    fn lines_of_done(&self) -> impl Iterator<Item = String> {
        self.step_results.iter().map(|step| {
            // The first line may be a heading, such as a name that the request holds already.
            let is_news = |line: &&str| !line.trim().is_empty() && !step.request.contains(line.trim());
            let result = step.result.lines().find(is_news).unwrap_or_default().trim_end_matches(':');
            match result {
                "" => format!("Done: {}", shorten(&step.request, 80)),
                result => format!("Done: {} → {}", shorten(&step.request, 80), shorten(result, 120)),
            }
        })
    }

    /// Returns the requests that are not done, in order.
    pub(super) fn undone(&self) -> Vec<String> {
        self.request_in_hand().map(str::to_owned).into_iter().chain(self.ahead.iter().cloned()).collect()
    }

    /// Returns the same where the current step was stopped while it ran, which is said of its request.
    pub(super) fn undone_when_stopped(&self) -> Vec<String> {
        let stopped = self.request_in_hand();
        let stopped = stopped.map(|request| format!("{} (stopped midway)", shorten(request, 80)));
        stopped.into_iter().chain(self.ahead.iter().cloned()).collect()
    }

    /// Returns the request of the current step, unless that is finished.
    fn request_in_hand(&self) -> Option<&str> {
        let is_taken = self.step_results.len() < self.step_counter;
        self.next_step().filter(|_| is_taken).map(|step| step.task_objective.as_str())
    }

    /// Returns the decision on what follows, by the rules of [`routing::next`].
    pub fn route(&self, registry: &Registry, limits: &Limits) -> Next {
        routing::next(&routing::Turn {
            control: &self.control,
            limits,
            task: self.planned.steps.first().map(|step| step.task_objective.as_str()),
            is_classified: true,
            plan: Some(&self.planned),
            step: self.step_results.len(),
            known: &|name| registry.carries_out(name),
        })
        .unwrap_or(Next::Error)
    }

    /// Records that the step that follows the finished ones has failed.
    pub(super) fn step_failed(&mut self, severity: Severity, user_message: String, cause: String) {
        let failed = self.next_step().and_then(|step| step.capability.clone());
        self.control.failed(StepError { failed, severity, user_message, cause, retry: RetryPolicy::OF_CAPABILITY });
    }

    /// Returns the step that follows the finished ones.
    pub fn next_step(&self) -> Option<&Step> {
        self.planned.steps.get(self.step_results.len())
    }

    /// Assigns the steps ahead to capabilities once more.
    pub(super) fn reclassify(&mut self, registry: &Registry) {
        self.control.reclassified();
        let again = registry.plan_of(self.turn, &self.ahead);
        let ahead = self.planned.steps.iter_mut().skip(self.step_results.len());
        for (step, again) in ahead.zip(again.steps) {
            step.capability = again.capability;
        }
    }

    /// Returns an event of the current step.
    fn event(&self, text: impl Into<String>) -> StreamEvent {
        let step = self.step_counter.checked_sub(1).and_then(|index| self.planned.steps.get(index));
        StreamEvent {
            text: text.into(),
            source: step.and_then(|step| step.capability.clone()).unwrap_or_else(|| ASSISTANT.to_owned()),
            phase: Phase::Execution,
            step: self.step_counter,
            total_steps: self.total_steps,
            done: self.step_results.len(),
            ..StreamEvent::default()
        }
    }

    /// Returns the event that the step in hand begins: it is understood now, so no capability has a part in it yet.
    fn begin_event(&self, request: &str) -> StreamEvent {
        let text = format!("Started: {}", shorten(request, MAX_TEXT_LENGTH));
        StreamEvent { source: ASSISTANT.to_owned(), ..self.event(text) }
    }

    /// Returns the event of the end; `why` is the reason if steps are left that are not done.
    fn end_event(&self, why: Option<EndsEarly<'_>>) -> StreamEvent {
        let (done, total) = (self.step_results.len(), self.total_steps);
        let text =
            if done == total { format!("All {total} steps done") } else { format!("{done} of {total} steps done") };
        let decided = why.is_some_and(EndsEarly::is_decision);
        StreamEvent { error: why.map(|why| why.words().to_owned()), decided, complete: true, ..self.event(text) }
    }
}

/// The number of steps in which a message becomes a plan; the last of them makes it.
const PREPARATIONS: usize = 3;
/// The source of the events about making a plan.
pub(super) const PLANNER: &str = "planner";

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

    /// Begins a checked plan of these requests: the first of them becomes the current request.
    pub fn begin_plan(&mut self, planned: planner::plan::Plan, requests: &[String], now: Timestamp) {
        let mut ahead = requests.iter().take(MAX_STEPS).map(|step| shorten(step, super::state::MAX_MESSAGE_LENGTH));
        let Some(first) = ahead.next() else { return };
        let ahead: Vec<String> = ahead.collect();
        let asked = shorten(&std::mem::replace(&mut self.turn.said, first), MAX_ASKED_LENGTH);
        self.drop_plan();
        self.rest_of_plan.clear();
        self.rest_heard.clear();
        let control = Control { plans_created: self.turn.plans_created, started_at: now, ..Control::default() };
        let plan = Plan {
            turn: self.turn.number,
            step_counter: 1,
            total_steps: 1 + ahead.len(),
            asked,
            ahead,
            planned,
            left_out: requests.len().saturating_sub(MAX_STEPS),
            control,
            zone: self.turn.zone.clone(),
            heard: if self.turn.is_of_model { self.turn.heard.clone() } else { Vec::new() },
            ..Plan::default()
        };
        self.events.push(StreamEvent {
            text: format!("A plan of {} steps", plan.total_steps),
            source: PLANNER.to_owned(),
            phase: Phase::TaskPreparation,
            step: PREPARATIONS,
            total_steps: PREPARATIONS,
            ..StreamEvent::default()
        });
        self.events.push(plan.begin_event(&self.turn.said));
        self.plans.push(plan);
        let over = self.plans.len().saturating_sub(MAX_PLANS);
        for plan in self.plans.drain(..over) {
            self.events.push(plan.end_event(Some(EndsEarly::ByFailure("too many requests are waiting here"))));
        }
    }

    /// Notes which capability did the step in hand: before it was understood, that was a guess by its words.
    pub(super) fn note_capability(&mut self, name: Option<String>) {
        let Some(plan) = self.plan_mut() else { return };
        let index = plan.step_counter.saturating_sub(1);
        if let (Some(step), Some(name)) = (plan.planned.steps.get_mut(index), name) {
            step.capability = Some(name);
        }
    }

    /// Notes an event of the plan of this turn.
    pub(super) fn note_plan_event(&mut self, text: &str, error: Option<String>) {
        let Some(event) = self.plan().map(|plan| StreamEvent { error, ..plan.event(text) }) else { return };
        self.events.push(event);
    }

    /// Ends the plan of this turn; `why` is the reason if steps are left that are not done.
    pub(super) fn end_plan(&mut self, why: Option<EndsEarly<'_>>) -> Option<Plan> {
        let plan = self.drop_plan()?;
        self.rest_of_plan = why.map(|_| plan.undone()).unwrap_or_default();
        self.rest_heard.clone_from(&plan.heard);
        self.events.push(plan.end_event(why));
        Some(plan)
    }

    /// Continues, in the current turn, the plan that waits in `of_turn`: its question was answered
    /// or its card corrected.
    pub fn take_up_plan(&mut self, of_turn: u64) {
        let number = self.turn.number;
        let waits = |plan: &Plan| plan.turn == of_turn && plan.waits_for != WaitsFor::Nothing;
        let Some(place) = self.plans.iter().position(waits).filter(|_| of_turn != number) else { return };
        let mut plan = self.plans.remove(place);
        self.turn.heard.extend(plan.heard.iter().cloned());
        if let Some(new) = self.drop_plan() {
            plan.total_steps += new.ahead.len();
            plan.ahead.extend(new.ahead);
            plan.planned.steps.pop(); // the answer at the end
            plan.planned.steps.extend(new.planned.steps.into_iter().skip(1));
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

    /// Notes the result of the current step, in words and, if a later condition looks at it, as data.
    pub fn finish_step(&mut self, result: &str, data: &Value) {
        let said = self.turn.said.clone();
        let Some(plan) = self.plan_mut() else { return };
        plan.waits_for = WaitsFor::Nothing;
        // The last message can be the answer to a question of the step.
        let request = shorten(plan.request_in_hand().unwrap_or(&said), MAX_TEXT_LENGTH);
        let key = plan.next_step().map(|step| step.context_key.clone()).unwrap_or_default();
        let is_looked_at = |step: &Step| step.condition.as_ref().is_some_and(|condition| condition.on == key);
        if plan.planned.steps.iter().any(is_looked_at) {
            plan.results.insert(key, shortened_to(data, MAX_RESULT_LENGTH));
        }
        plan.step_results.push(StepResult {
            step: plan.step_counter,
            request: request.clone(),
            result: shorten(result, MAX_TEXT_LENGTH),
        });
        plan.control.succeeded();
        let event = plan.event(format!("Done: {request}"));
        self.events.push(event);
    }

    /// Begins the next step of the plan, if there is one.
    pub fn take_step(&mut self, now: Timestamp) {
        let Some(plan) = self.plan_mut().filter(|plan| !plan.ahead.is_empty()) else { return };
        plan.waits_for = WaitsFor::Nothing;
        let words = plan.ahead.remove(0);
        let said = plan.next_step().map_or(words, |step| step.task_objective.clone());
        plan.step_counter += 1;
        let zone = plan.zone.clone();
        let event = plan.begin_event(&said);
        self.events.push(event);
        let number = self.present_turn();
        if let Some(plan) = self.plan_mut() {
            plan.turn = number;
        }
        self.begin_step(number, said, now);
        self.turn.zone = zone.or_else(|| self.turn.zone.take());
    }

    /// Returns the number of the turn for what follows. Others may have written after the card: it then belongs to a newer
    /// turn.
    pub(super) fn present_turn(&self) -> u64 {
        let newest = self.newest_turn();
        if newest > self.turn.number { newest + 1 } else { self.turn.number }
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

    /// Ends the plans that wait for no card, and returns them; `why` is the reason in the record.
    pub(super) fn stop_waiting_plans(&mut self, why: EndsEarly<'_>) -> Vec<Plan> {
        let stopped: Vec<Plan> = self.plans.extract_if(.., |plan| plan.waits_for != WaitsFor::Card).collect();
        self.events.extend(stopped.iter().map(|plan| plan.end_event(Some(why))));
        if !stopped.is_empty() {
            self.rest_of_plan = stopped.iter().flat_map(Plan::undone).collect();
            self.rest_heard = stopped.iter().flat_map(|plan| plan.heard.clone()).collect();
        }
        stopped
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
        let over: Vec<Plan> = self.plans.extract_if(.., is_over).collect();
        let why = EndsEarly::ByDecision("something else was asked for");
        self.events.extend(over.iter().map(|plan| plan.end_event(Some(why))));
        over.into_iter().flat_map(|plan| plan.ahead).collect()
    }
}

#[cfg(test)]
mod tests {
    use countersign_graph::node::{Said, State as _};
    use proptest::prelude::*;

    use super::*;

    fn said(by: &str, text: &str, zone: Option<&str>) -> Said {
        let zone = zone.map(str::to_owned);
        Said { by: by.into(), text: text.to_owned(), ts: None, at: Timestamp(0), zone, request: None }
    }

    proptest! {
        #[test]
        fn every_step_is_meant_in_the_zone_of_its_message(
            of_person in proptest::option::of(proptest::sample::select(vec!["Europe/Berlin", "Asia/Tokyo", "America/Lima"])),
            (named, of_message) in proptest::sample::select(vec![("", None), (" ET", Some("America/New_York")), (" utc+2", Some("Etc/GMT-2"))]),
            answered_by_another in proptest::collection::vec(any::<bool>(), 1..MAX_STEPS),
        ) {
            let mut state = AgentState::default();
            state.begin_turn(&said("U1", &format!("start A at 9:00{named}, then end it on Monday at 18:00"), of_person));
            let zone = of_message.or(of_person).map(str::to_owned);
            let requests: Vec<String> = (0..=answered_by_another.len()).map(|step| format!("show {step}")).collect();
            state.begin_plan(planner::plan::Plan::default(), &requests, Timestamp(1));
            prop_assert_eq!(&state.turn.zone, &zone);
            for by_another in answered_by_another {
                if by_another {
                    let of_turn = state.turn.number;
                    state.plan_mut().unwrap().waits_for = WaitsFor::Answer;
                    state.begin_turn(&said("U2", "yes", Some("Pacific/Auckland")));
                    state.take_up_plan(of_turn);
                }
                state.finish_step("done", &Value::Null);
                state.take_step(Timestamp(2));
                if zone.is_some() {
                    prop_assert_eq!(&state.turn.zone, &zone);
                }
                state.repeat_step(Timestamp(3));
                prop_assert!(zone.is_none() || state.turn.zone == zone);
            }
        }
    }
}
