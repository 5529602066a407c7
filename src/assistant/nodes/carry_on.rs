//! Continues a plan after a step: with the next step, with the same one again, with another plan, or not at all.
//!
//! [`countersign_planner::routing::next`] decides this from counters that are stored in the plan.
//! The engine implements the wait before another attempt: the thread is not blocked in the
//! meantime, and a “stop” takes effect.

use countersign_capabilities::Registry;
use countersign_core::{clock::Timestamp, reply::Reply};
use countersign_graph::{
    action::{ActionRecord, Outcome},
    node::{self, Step},
    retry::RetryPolicy,
};
use countersign_planner::{
    self as planner,
    control::{Severity, StepError},
    events::EndsEarly,
    routing::Next,
};
use serde_json::Value;

use super::{
    super::{
        conditions::{self, Decision},
        model_with_fallback::{ModelWithFallback, StepUsage},
        plan::{MAX_STEPS, WaitsFor},
        plan_settings::PlanSettings,
        replanning::severity_of,
        replies,
        state::AgentState,
    },
    ANALYZE, REPLAN,
    close::{close, close_because, end},
};

/// The end of a step that succeeded.
pub(super) struct StepEnd {
    /// The reply to its request.
    pub(super) reply: Reply,
    /// The text of the reply, which is stored as the result of the step.
    pub(super) words: String,
    /// Its result.
    pub(super) result: Value,
    /// True if something was changed. The reply then names the next request, too.
    pub(super) is_change: bool,
}

/// The end of a step that did not succeed, or whose condition does not hold.
struct Failed {
    /// The reason, for the record.
    why: String,
    /// The reason in the words of the reply, from which another plan is made.
    told: String,
    /// The severity.
    severity: Severity,
    /// True if only the condition of the step does not hold.
    by_condition: bool,
}

/// A service that continues plans.
#[derive(Clone)]
pub(in super::super) struct CarryOn {
    model: ModelWithFallback,
    registry: Registry,
    settings: PlanSettings,
}

impl CarryOn {
    /// Creates the service. The capabilities of `registry` evaluate the conditions of steps; another plan is made only if
    /// `model` is a language model.
    pub(in super::super) fn new(model: ModelWithFallback, registry: Registry, settings: PlanSettings) -> Self {
        Self { model, registry, settings }
    }

    /// Begins the requests of a message in order, if their plan is valid. `planned` is the plan if a person has
    /// approved one.
    pub(super) fn begin(
        &self,
        mut state: AgentState,
        requests: &[String],
        planned: Option<planner::plan::Plan>,
        usage: StepUsage,
        now: Timestamp,
    ) -> Step<AgentState> {
        let requests_done = &requests[..requests.len().min(MAX_STEPS)];
        let planned = planned.unwrap_or_else(|| self.registry.plan_of(state.turn.number, requests_done));
        let known = |capability: &str| self.registry.carries_out(capability);
        match planned.checked(&known, &[]) {
            Ok(planned) => {
                state.begin_plan(planned, requests, now);
                Step::go(state, ANALYZE).cost(usage.total())
            }
            Err(fault) => close(state, replies::plan_fault(&fault, requests_done), usage),
        }
    }

    /// Sends the reply to the current step, and continues with the next one if there is one.
    pub(super) fn after_step(
        &self,
        mut state: AgentState,
        StepEnd { reply, words, result, is_change }: StepEnd,
        usage: StepUsage,
        now: Timestamp,
    ) -> Step<AgentState> {
        let mut reply = replies::left_behind(reply, &state.drop_abandoned_plans());
        state.finish_step(&words, &result);
        let limits = &self.settings.limits;
        let Some(plan) = state.plan_mut() else { return end(state, reply, usage) };
        if !plan.ahead.is_empty()
            && let Some(reached) = plan.control.enforce(limits, now)
        {
            let by_limit = reached.to_string();
            let by_limit = EndsEarly::ByFailure(&by_limit);
            return close_because(state, replies::limit_reached(reply, &reached), usage, by_limit);
        }
        let next = loop {
            match plan.route(&self.registry, limits) {
                Next::Missing(capability) => plan.control.failed(StepError {
                    user_message: replies::no_longer_offered(&capability),
                    failed: Some(capability),
                    severity: Severity::Reclassification,
                    cause: "unknown capability".to_owned(),
                    retry: RetryPolicy::OF_CAPABILITY,
                }),
                Next::Classify => plan.reclassify(&self.registry),
                next => break next,
            }
        };
        match next {
            Next::Step(_) => {
                reply.rates = None; // only the last answer is asked about
                self.begin_next(state, reply, is_change, usage, now)
            }
            Next::Respond(_) => {
                let left_out = state.end_plan(None).map_or(0, |plan| plan.left_out);
                end(state, replies::left_out(reply, left_out), usage)
            }
            _ => {
                let why = plan.control.error.take().map(|error| error.user_message).unwrap_or_default();
                close_because(state, replies::stops_here(reply, &why), usage, EndsEarly::ByFailure(&why))
            }
        }
    }

    /// Begins the next step of a plan, if its condition holds.
    fn begin_next(
        &self,
        mut state: AgentState,
        reply: Reply,
        after_change: bool,
        usage: StepUsage,
        now: Timestamp,
    ) -> Step<AgentState> {
        let Some(plan) = state.plan_mut() else { return end(state, reply, usage) };
        let step = plan.next_step().cloned().unwrap_or_default();
        let looked_at = step.condition.as_ref().and_then(|condition| plan.results.get(&condition.on));
        match conditions::decide(&self.registry, &step, looked_at.unwrap_or(&Value::Null)) {
            Decision::Do { request, because } => {
                let reply = match &because {
                    Some(because) => replies::condition_holds(reply, because, &request),
                    None if after_change => replies::next_is(reply, &request),
                    None => reply,
                };
                if let Some(because) = because {
                    state.note_plan_event(&format!("The condition holds: {because}"), None);
                }
                state.remember_reply(&reply);
                state.take_step(now);
                Step::go(state, ANALYZE).say(reply).cost(usage.total())
            }
            Decision::Stop { because } => {
                let why = format!("the condition does not hold: {because}");
                let failed = Failed { told: why.clone(), why, severity: Severity::Replanning, by_condition: true };
                self.end_or_replan(state, replies::condition_fails(reply, &because), usage, failed, now)
            }
            Decision::Ask { condition, because } => {
                plan.waits_for = WaitsFor::Condition;
                state.note_plan_event(&format!("Asks whether “{condition}”"), None);
                end(state, replies::ask_condition(reply, &condition, &because), usage)
            }
        }
    }

    /// Continues a plan after the person has confirmed that the condition of its next step holds.
    pub(super) fn condition_confirmed(&self, mut state: AgentState, of_turn: u64, now: Timestamp) -> Step<AgentState> {
        state.take_up_plan(of_turn);
        state.take_step(now);
        Step::go(state, ANALYZE)
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
        let severity = severity_of(&kind);
        let limits = &self.settings.limits;
        let Some(plan) = state.plan_mut().filter(|plan| plan.total_steps > 1) else {
            return close(state, reply, usage);
        };
        plan.step_failed(severity, reply.words(), kind.clone());
        if let Some(reached) = plan.control.enforce(limits, now) {
            let by_limit = reached.to_string();
            let by_limit = EndsEarly::ByFailure(&by_limit);
            return close_because(state, replies::limit_reached(reply, &reached), usage, by_limit);
        }
        let failures = plan.control.failures;
        match plan.route(&self.registry, limits) {
            Next::Again { after, .. } => {
                let text = format!("Attempt {failures} failed; next attempt in {} s", after.as_secs_f64());
                state.note_plan_event(&text, Some(kind));
                state.repeat_step(now);
                Step::later(state, ANALYZE, after).cost(usage.total())
            }
            _ => {
                let failed = Failed { told: reply.words(), why: kind, severity, by_condition: false };
                self.end_or_replan(state, replies::tried(reply, failures), usage, failed, now)
            }
        }
    }

    /// Handles a change of a plan that did not happen. It is not tried again, since its approval was for that once.
    pub(super) fn after_failed_change(
        &self,
        state: AgentState,
        reply: Reply,
        usage: StepUsage,
        record: &ActionRecord,
        now: Timestamp,
    ) -> Step<AgentState> {
        let severity = match &record.outcome {
            Some(Outcome::Failed { error, .. }) => severity_of(replies::kind_name(*error)),
            _ => Severity::Critical,
        };
        let why = format!("{}: {}", record.act(), record.status);
        let failed = Failed { told: reply.words(), why, severity, by_condition: false };
        self.end_or_replan(state, reply, usage, failed, now)
    }

    /// Ends the plan of this turn, and lets a language model make another one if [`planner::routing::next`] says so.
    fn end_or_replan(
        &self,
        mut state: AgentState,
        reply: Reply,
        usage: StepUsage,
        Failed { why, told, severity, by_condition }: Failed,
        now: Timestamp,
    ) -> Step<AgentState> {
        let limits = &self.settings.limits;
        let can_replan = severity == Severity::Replanning
            && self.registry.plan_action().is_some()
            && self.model.has_language_model(&state);
        let ends = if by_condition { EndsEarly::ByDecision(&why) } else { EndsEarly::ByFailure(&why) };
        let Some(plan) = state.plan_mut().filter(|_| can_replan) else {
            return close_because(state, reply, usage, ends);
        };
        plan.step_failed(severity, told.clone(), why.clone());
        if plan.route(&self.registry, limits) != Next::Plan {
            return close_because(state, reply, usage, ends);
        }
        let plan = plan.clone();
        let mut step = close_because(state, reply, usage, ends);
        step.state.begin_plan_after(&plan, &told, now);
        Step { next: node::Next::Go(REPLAN), ..step }
    }
}
