//! The plans of a thread, in its state.

use countersign_capabilities::{Capability, Registry};
use countersign_core::{clock::Timestamp, status_line};
use countersign_planner::{
    self as planner,
    control::Control,
    events::{EndsEarly, Phase, StreamEvent},
    plan::Step,
};
use countersign_understanding::situation::Draft;
use serde_json::{Value, json};

use super::{
    context::shortened_to,
    history::shorten,
    plan::{MAX_STEPS, MAX_TEXT_LENGTH, PLANNER, Plan, StepResult, WaitsFor},
    state::AgentState,
    turn::MAX_MESSAGE_LENGTH,
};

/// The maximum number of plans that wait at the same time.
const MAX_PLANS: usize = 6;

/// The maximum length of a stored message with several requests, in characters.
const MAX_ASKED_LENGTH: usize = 1_000;

/// The maximum length of a result that is stored as data, in bytes of JSON.
const MAX_RESULT_LENGTH: usize = 2_000;

/// The number of steps in which a message becomes a plan; the last of them makes it.
const PREPARATIONS: usize = 3;

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
        let mut ahead = requests.iter().take(MAX_STEPS).map(|step| shorten(step, MAX_MESSAGE_LENGTH));
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
    pub(super) fn note_owner(&mut self, owner: Option<&dyn Capability>) {
        let Some(plan) = self.plan_mut() else { return };
        let index = plan.step_counter.saturating_sub(1);
        if let (Some(step), Some(owner)) = (plan.planned.steps.get_mut(index), owner) {
            step.capability = Some(owner.name().to_owned());
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
