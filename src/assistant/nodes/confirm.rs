//! The card: the change becomes a question to a person, and the turn pauses.
//!
//! It does nothing else. The card was made by the action from checked parameters; no model's words are on it. If the
//! grammar took a language model's place the card says so: whoever approves should read it with more care.

use async_trait::async_trait;
use countersign_core::{
    ids::UserId,
    reply::{Reply, Text},
};
use countersign_graph::{
    action::{ActionRecord, Proposal},
    node::{Ask, Context, Node, NodeError, Step},
};
use countersign_understanding::{self as understanding, situation::Draft};

use super::{
    super::{
        log::Log,
        model_with_fallback::StepUsage,
        plan::WaitsFor,
        replies,
        state::{AgentState, Phase, Turn},
        view,
    },
    close::close,
    respond::Respond,
};

/// Asks for approval.
pub(in super::super) struct Confirm;

impl Confirm {
    /// Its name.
    pub(in super::super) const NAME: &'static str = "confirm";
}

/// Returns true if a card asks for exactly this already. The small print may differ.
fn is_same(open: &ActionRecord, action: &str, proposal: &Proposal) -> bool {
    let card = &proposal.card;
    open.name == action
        && open.parameters == proposal.parameters
        && (&open.card.title, &open.card.facts) == (&card.title, &card.facts)
}

/// The fate of a card that was open when a person asked for something else instead.
enum Replaced<'a> {
    /// The same person asked for it: the new card takes its place.
    Own(&'a ActionRecord),
    /// Another person asked for it, or it is one of several: it stays.
    Stays(&'a ActionRecord),
    /// The message is no correction.
    Nothing,
}

/// Finds the card that “no, Running Test instead” is about.
fn replaced<'a>(turn: &Turn, change: &Draft, by: &UserId, context: &'a Context) -> Replaced<'a> {
    let own: Vec<_> = context.open.iter().filter(|open| open.requested_by == *by).collect();
    match (turn.corrects, own.as_slice(), context.open.as_slice()) {
        (true, ..) => match view::corrected(&change.action, context) {
            Some(open) if open.requested_by == *by => Replaced::Own(open),
            open => open.map_or(Replaced::Nothing, Replaced::Stays),
        },
        (false, ..) if !understanding::says_no(&turn.said) => Replaced::Nothing,
        (false, [only], _) => Replaced::Own(only),
        (false, _, [newest, ..]) => Replaced::Stays(newest),
        (false, _, []) => Replaced::Nothing,
    }
}

/// Returns a note of what this change takes back, if it is the undo of another one.
fn taken_back(log: &Log, change: &Draft) -> Option<Text> {
    let undone = log.entries.iter().rev().find(|entry| {
        entry.undo.as_ref().is_some_and(|undo| {
            undo.name == change.action && undo.parameters.as_object().is_some_and(|params| *params == change.params)
        })
    })?;
    Some(replies::takes_back(&undone.what, undone.at))
}

#[async_trait]
impl Node<AgentState> for Confirm {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn targets(&self) -> &'static [&'static str] {
        &[Respond::NAME]
    }

    async fn run(&self, mut state: AgentState, context: &Context) -> Result<Step<AgentState>, NodeError> {
        let turn = &mut state.turn;
        let (Some(mut proposal), Some(change), Some(by)) = (turn.proposal.take(), turn.change.clone(), turn.by.clone())
        else {
            return Ok(close(state, replies::nothing_to_do(), StepUsage::default()));
        };
        if let Some(open) = context.open.iter().find(|open| is_same(open, &change.action, &proposal)) {
            let reply = replies::card_is_open(&open.card.title, &open.card.approve, &open.card.reject);
            return Ok(close(state, reply, StepUsage::default()));
        }
        proposal.card.notes.extend(taken_back(&state.log, &change));
        let replaces = match replaced(&state.turn, &change, &by, context) {
            Replaced::Own(open) => Some(open.id.clone()),
            Replaced::Nothing => None,
            Replaced::Stays(open) => {
                if !open.scope.shares_target_with(&proposal.scope) {
                    proposal.card.notes.push(replies::stays_open(open));
                }
                None
            }
        };
        let turn = &mut state.turn;
        turn.phase = Phase::Confirming;
        if turn.without_model {
            proposal.card.notes.push(Text::from(replies::WITHOUT_MODEL));
            turn.without_model = false; // it is said; how it ends is told by code
        }
        let turn_number = turn.number;
        state.on_card_turn = turn_number;
        let undone = state.left_behind();
        if let Some(plan) = state.plan_mut() {
            plan.waits_for = WaitsFor::Card;
            proposal.card.notes.push(replies::of_plan(plan));
        }
        state.conversation.bot_said(turn_number, &format!("(asked on a card: {})", proposal.card.title));
        let ask =
            Step::ask(state, Ask { action: change.action, proposal, requested_by: by, replaces, then: Respond::NAME });
        Ok(match undone.is_empty() {
            true => ask,
            false => ask.say(replies::left_behind(Reply::default(), &undone)),
        })
    }
}
