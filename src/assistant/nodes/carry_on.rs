//! Continues a plan after a step: with the next step, with the same one again, or not at all.
//!
//! [`countersign_planner::routing::next`] decides this from counters that are stored in the plan.
//! The engine implements the wait before another attempt: the thread is not blocked in the
//! meantime, and a “stop” takes effect.

use countersign_capabilities::Registry;
use countersign_core::{clock::Timestamp, reply::Reply};
use countersign_graph::{node::Step, retry::RetryPolicy};
use countersign_planner::{
    control::{Severity, StepError},
    routing::Next,
};
use serde_json::Value;

use super::{
    super::{
        conditions::{self, Decision},
        model_with_fallback::StepUsage,
        plan::WaitsFor,
        plan_settings::PlanSettings,
        replies,
        state::AgentState,
    },
    analyze::Analyze,
    close::{close, end},
};

/// The kinds of problems that may be transient.
const TRANSIENT: &[&str] = &["network", "api"];

/// A service that continues plans.
#[derive(Clone)]
pub(in super::super) struct CarryOn {
    registry: Registry,
    settings: PlanSettings,
}

impl CarryOn {
    /// Creates the service. The capabilities of `registry` evaluate the conditions of steps.
    pub(in super::super) fn new(registry: Registry, settings: PlanSettings) -> Self {
        Self { registry, settings }
    }

    /// Ends the current step with this reply and result, and begins the next step if there is one.
    pub(super) fn after_step(
        &self,
        mut state: AgentState,
        reply: Reply,
        result: Value,
        usage: StepUsage,
        now: Timestamp,
    ) -> Step<AgentState> {
        let mut reply = replies::left_behind(reply, &state.drop_abandoned_plans());
        state.finish_step(&reply.words(), result);
        let limits = &self.settings.limits;
        let Some(plan) = state.plan_mut() else { return end(state, reply, usage) };
        if !plan.ahead.is_empty()
            && let Some(reached) = plan.control.enforce(limits, now)
        {
            return close(state, replies::limit_reached(reply, &reached), usage);
        }
        if !matches!(plan.route(limits), Next::Step(_)) {
            let left_out = state.drop_plan().map_or(0, |plan| plan.left_out);
            return end(state, replies::left_out(reply, left_out), usage);
        }
        reply.rates = None; // people are asked to rate only the last reply
        self.begin_next(state, reply, usage, now)
    }

    /// Begins the next step of a plan if its condition holds; otherwise ends the plan or asks the
    /// person.
    fn begin_next(&self, mut state: AgentState, reply: Reply, usage: StepUsage, now: Timestamp) -> Step<AgentState> {
        let Some(plan) = state.plan_mut() else { return end(state, reply, usage) };
        let next = plan.ahead.first().cloned().unwrap_or_default();
        match conditions::decide(&self.registry, &next, &plan.last_result) {
            Decision::Do { request, because } => {
                let reply = replies::condition_holds(reply, because.as_deref(), &request);
                state.remember_reply(&reply);
                state.take_step(now);
                state.turn.said = request;
                Step::go(state, Analyze::NAME).say(reply).cost(usage.total())
            }
            Decision::Stop { because } => close(state, replies::condition_fails(reply, &because), usage),
            Decision::Ask { condition, because, .. } => {
                plan.waits_for = WaitsFor::Condition;
                end(state, replies::ask_condition(reply, &condition, &because), usage)
            }
        }
    }

    /// Continues a plan after the person has confirmed that the condition of its next step holds.
    pub(super) fn condition_confirmed(&self, mut state: AgentState, of_turn: u64, now: Timestamp) -> Step<AgentState> {
        state.take_up_plan(of_turn);
        let next = state.plan().and_then(|plan| plan.ahead.first().cloned()).unwrap_or_default();
        state.take_step(now);
        state.turn.said = countersign_understanding::conditions::split(&next).request.to_owned();
        Step::go(state, Analyze::NAME)
    }

    /// Handles the failure of a step: the step is tried again if that may help, otherwise the plan
    /// ends.
    pub(super) fn after_failure(
        &self,
        mut state: AgentState,
        reply: Reply,
        usage: StepUsage,
        now: Timestamp,
    ) -> Step<AgentState> {
        let kind = state.turn.errors.last().map(|problem| problem.kind.clone()).unwrap_or_default();
        let severity = if TRANSIENT.contains(&kind.as_str()) { Severity::Retriable } else { Severity::Critical };
        let limits = &self.settings.limits;
        let Some(plan) = state.plan_mut().filter(|plan| plan.total_steps > 1) else {
            return close(state, reply, usage);
        };
        plan.control.failed(StepError {
            failed: Some(plan.place()),
            severity,
            user_message: reply.words(),
            cause: kind,
            retry: RetryPolicy::OF_CAPABILITY,
        });
        plan.control.enforce(limits, now);
        match plan.route(limits) {
            Next::Again { after, .. } => {
                state.repeat_step(now);
                Step::later(state, Analyze::NAME, after).cost(usage.total())
            }
            _ => close(state, reply, usage),
        }
    }
}
