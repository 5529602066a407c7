//! How every turn ends: the reply is said and remembered, and what only the turn needed is let go.

use super::super::{mind::Bill, replies, state::AgentState};
use crate::{graph::node::Step, reply::Reply};

/// Says `reply` and ends the run.
pub(super) fn close(mut state: AgentState, reply: Reply, bill: Bill) -> Step<AgentState> {
    let reply = if state.turn.without_model { replies::without_model(reply) } else { reply };
    state.remember_reply(&reply);
    let turn = &mut state.turn;
    turn.exchange.clear();
    turn.gathered.clear();
    turn.reads.clear();
    turn.reply = None;
    Step::end(state).say(reply).cost(bill.total())
}
