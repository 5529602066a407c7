//! The continuation of a plan after a step: the next step, the same one again, or the end.
//!
//! The decision is that of [`countersign_planner::routing::next`], on counters that stand in the plan. A wait before
//! another attempt is the engine's: the thread is free meanwhile, and a “stop” is heard.

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

/// The kinds of problems that may pass.
const PASSING: &[&str] = &["network", "api"];

/// Carries on with plans.
#[derive(Clone)]
pub(in super::super) struct CarryOn {
    registry: Registry,
    settings: PlanSettings,
}

impl CarryOn {
    /// Creates it for the conditions that these capabilities know.
    pub(in super::super) fn new(registry: Registry, settings: PlanSettings) -> Self {
        Self { registry, settings }
    }

    /// Says `reply`, which ends the step in hand with this result, and goes on with the next one if there is one.
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
        reply.rates = None; // only the last answer is asked about
        self.begin_next(state, reply, usage, now)
    }

    /// Begins the next step of a plan, if its condition holds.
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

    /// Takes up a plan that waited for the person's word that the condition of its next step holds.
    pub(super) fn condition_confirmed(&self, mut state: AgentState, of_turn: u64, now: Timestamp) -> Step<AgentState> {
        state.take_up_plan(of_turn);
        let next = state.plan().and_then(|plan| plan.ahead.first().cloned()).unwrap_or_default();
        state.take_step(now);
        state.turn.said = countersign_understanding::conditions::split(&next).request.to_owned();
        Step::go(state, Analyze::NAME)
    }

    /// Ends a step that failed: it is tried again if that may help, or the plan ends.
    pub(super) fn after_failure(
        &self,
        mut state: AgentState,
        reply: Reply,
        usage: StepUsage,
        now: Timestamp,
    ) -> Step<AgentState> {
        let kind = state.turn.errors.last().map(|problem| problem.kind.clone()).unwrap_or_default();
        let severity = if PASSING.contains(&kind.as_str()) { Severity::Retriable } else { Severity::Critical };
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
