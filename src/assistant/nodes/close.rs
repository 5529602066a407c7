//! The end of every turn: the reply is said and remembered, and the data of the turn alone are dropped.
//!
//! A message may have held several requests. Then a request that was answered or done leads to the next one, a question
//! waits for its answer, and anything else is the end of them, which is said.

use countersign_core::reply::Reply;
use countersign_graph::node::Step;

use super::super::{model_with_fallback::StepUsage, plan::WaitsFor, replies, state::AgentState};

/// Says `reply` and ends the run. The requests that were to follow are not done.
pub(super) fn close(mut state: AgentState, reply: Reply, usage: StepUsage) -> Step<AgentState> {
    let undone = state.drop_plan().map(|plan| plan.ahead).unwrap_or_default();
    let reply = replies::not_gone_on_to(reply, &undone);
    let reply = replies::left_behind(reply, &state.drop_abandoned_plans());
    end(state, reply, usage)
}

/// Asks for what a change lacks and ends the run. The requests that follow wait for the answer.
pub(super) fn ask(mut state: AgentState, reply: Reply, usage: StepUsage) -> Step<AgentState> {
    let mut reply = replies::left_behind(reply, &state.drop_abandoned_plans());
    if let Some(plan) = state.plan_mut() {
        plan.waits_for = WaitsFor::Answer;
        reply = replies::with_next_steps(reply, &plan.ahead);
    }
    end(state, reply, usage)
}

/// Says `reply` and ends the run.
pub(super) fn end(mut state: AgentState, reply: Reply, usage: StepUsage) -> Step<AgentState> {
    let reply = if state.turn.without_model { replies::without_model(reply) } else { reply };
    state.remember_reply(&reply);
    let turn = &mut state.turn;
    turn.exchange.clear();
    turn.gathered.clear();
    turn.reads.clear();
    turn.reply = None;
    Step::end(state).say(reply).cost(usage.total())
}
