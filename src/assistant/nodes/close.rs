//! Ends a turn: the reply is sent and remembered, and data that is needed only during the turn is
//! dropped.
//!
//! If the message contained several requests, [`ask`] makes the following ones wait for the answer,
//! and [`close`] drops them and lists them in the reply. After a request that was answered or
//! carried out, [`super::carry_on`] begins the next one.

use countersign_core::reply::Reply;
use countersign_graph::node::Step;
use countersign_planner::events::EndsEarly;

use super::super::{model_with_fallback::StepUsage, plan::WaitsFor, replies, state::AgentState};

/// Sends `reply` and ends the run. The requests that were to follow are not done.
pub(super) fn close(state: AgentState, reply: Reply, usage: StepUsage) -> Step<AgentState> {
    close_because(state, reply, usage, EndsEarly::ByFailure("the current step didn't succeed"))
}

/// Sends `reply`, which is about the current step, and ends the run; `why` is the reason in the record if requests are
/// left.
pub(super) fn close_because(
    mut state: AgentState,
    reply: Reply,
    usage: StepUsage,
    why: EndsEarly<'_>,
) -> Step<AgentState> {
    let reply = match state.end_plan(Some(why)) {
        Some(plan) => replies::ended_early(reply, plan.before_current(), &plan.ahead),
        None => reply,
    };
    let reply = replies::left_behind(reply, &state.drop_abandoned_plans());
    end(state, reply, usage)
}

/// Sends `reply`, which is about the current step that was stopped while it ran, and ends the run; `why` is as in
/// [`close_because`].
pub(super) fn close_stopped(mut state: AgentState, reply: Reply, usage: StepUsage, why: &str) -> Step<AgentState> {
    let reply = match state.end_plan(Some(EndsEarly::ByDecision(why))) {
        Some(plan) => replies::ended_early(reply, plan.before_current(), &plan.undone_when_stopped()),
        None => reply,
    };
    let reply = replies::left_behind(reply, &state.drop_abandoned_plans());
    end(state, reply, usage)
}

/// Sends `reply`, which is about no step, and ends the run between two steps of a plan by a person's decision; `why` is
/// the reason in the record.
pub(super) fn close_between_steps(mut state: AgentState, reply: Reply, why: &str) -> Step<AgentState> {
    let reply = match state.end_plan(Some(EndsEarly::ByDecision(why))) {
        Some(plan) => replies::ended_early(reply, &plan.step_results, &plan.ahead),
        None => reply,
    };
    let reply = replies::left_behind(reply, &state.drop_abandoned_plans());
    end(state, reply, StepUsage::default())
}

/// Sends `reply`, which asks for data that a change lacks, and ends the run. The following requests
/// wait for the answer.
pub(super) fn ask(mut state: AgentState, reply: Reply, usage: StepUsage) -> Step<AgentState> {
    let mut reply = replies::left_behind(reply, &state.drop_abandoned_plans());
    if let Some(plan) = state.plan_mut() {
        plan.waits_for = WaitsFor::Answer;
        reply = replies::with_next_steps(reply, &plan.ahead);
    }
    end(state, reply, usage)
}

/// Sends `reply` and ends the run.
pub(super) fn end(mut state: AgentState, reply: Reply, usage: StepUsage) -> Step<AgentState> {
    let reply = match state.note_without_model() {
        Some(note) => reply.hint(note),
        None => reply,
    };
    state.remember_reply(&reply);
    state.is_unsure |= state.turn.led_nowhere();
    let turn = &mut state.turn;
    turn.exchange.clear();
    turn.gathered.clear();
    turn.reads.clear();
    turn.reply = None;
    Step::end(state).say(reply).cost(usage.total())
}
