//! The node that shows the card: the change becomes a question to a person, and the turn pauses.
//!
//! The card was made by the action from checked parameters and contains no words of a model. If the grammar was used
//! instead of the language model, the card says so, since it should then be read with more care.

use async_trait::async_trait;
use countersign_capabilities::Registry;
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
    CONFIRM, RESPOND,
    close::close,
    evidence,
};

/// The node that asks for approval.
pub(in super::super) struct Confirm {
    registry: Registry,
}

impl Confirm {
    /// Creates the node. The actions of `registry` tell a new version of a change from another change.
    pub(in super::super) fn new(registry: Registry) -> Self {
        Self { registry }
    }

    /// Returns true if the change is a new version of the one on the newest open card of its kind.
    fn is_new_version(&self, change: &Draft, proposal: &Proposal, by: &UserId, context: &Context) -> bool {
        let kind = self.registry.actions.get(change.action.as_str());
        let card = view::card_to_correct(&change.action, &context.open).filter(|card| card.requested_by == *by);
        kind.zip(card).is_some_and(|(kind, card)| kind.is_new_version(&card.parameters, &proposal.parameters))
    }
}

/// Returns true if an open card asks for exactly this change. Its warnings and notes may differ.
fn is_same(open: &ActionRecord, action: &str, proposal: &Proposal) -> bool {
    let card = &proposal.card;
    open.name == action
        && *open.parameters == proposal.parameters
        && (&open.card.title, &open.card.facts) == (&card.title, &card.facts)
}

/// The effect of a new card on one that was open before.
enum CardToReplace<'a> {
    /// The same person asked for it: the new card replaces it.
    Own(&'a ActionRecord),
    /// Another person asked for it, or it is one of several: it stays.
    Stays(&'a ActionRecord),
    /// The message is not a correction, so no card is affected.
    Nothing,
}

/// Finds the card that a correction such as “no, Running Test instead” is about.
fn card_to_replace<'a>(turn: &Turn, change: &Draft, by: &UserId, context: &'a Context) -> CardToReplace<'a> {
    let own: Vec<_> = context.open.iter().filter(|open| open.requested_by == *by).collect();
    match (turn.corrects, own.as_slice(), context.open.as_slice()) {
        (true, ..) => match view::card_to_correct(&change.action, &context.open) {
            Some(open) if open.requested_by == *by => CardToReplace::Own(open),
            open => open.map_or(CardToReplace::Nothing, CardToReplace::Stays),
        },
        (false, ..) if !understanding::is_retraction(&turn.said) => CardToReplace::Nothing,
        (false, [only], _) => CardToReplace::Own(only),
        (false, _, [newest, ..]) => CardToReplace::Stays(newest),
        (false, _, []) => CardToReplace::Nothing,
    }
}

/// Returns a note about the change that this one reverses, if it is an undo.
fn undo_note(log: &Log, change: &Draft) -> Option<Text> {
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
        CONFIRM
    }

    fn targets(&self) -> &'static [&'static str] {
        &[RESPOND]
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
        proposal.card.notes.extend(undo_note(&state.log, &change));
        if let Some(kind) = self.registry.actions.get(change.action.as_str()) {
            proposal.card.warnings.extend(kind.beside(&proposal.parameters, &context.open));
        }
        if self.is_new_version(&change, &proposal, &by, context) {
            state.take_up_plan(state.on_card_turn);
        }
        let replaces = match card_to_replace(&state.turn, &change, &by, context) {
            CardToReplace::Own(open) => Some(open.id.clone()),
            CardToReplace::Nothing => None,
            CardToReplace::Stays(open) => {
                if !open.scope.shares_target_with(&proposal.scope) {
                    proposal.card.notes.push(replies::stays_open(open));
                }
                None
            }
        };
        let is_step = state.plan().is_some();
        proposal.card.notes.extend(state.note_without_model().map(Text::from));
        let turn = &mut state.turn;
        turn.phase = Phase::Confirming;
        if turn.without_model {
            turn.without_model = false; // the card says so, and the outcome needs no model
        }
        let evidence = turn.evidence.take().unwrap_or_else(|| evidence::of_phrases(turn, &proposal, is_step));
        let answer = turn.reply.take().filter(|_| evidence.suggested.is_some());
        let turn_number = turn.number;
        (state.on_card_turn, state.is_unsure) = (turn_number, false);
        let undone = state.drop_abandoned_plans();
        if let Some(plan) = state.plan_mut() {
            plan.waits_for = WaitsFor::Card;
            proposal.card.notes.push(replies::plan_note(plan));
        }
        state.conversation.add_bot_message(turn_number, &format!("(asked on a card: {})", proposal.card.title));
        let (action, then) = (change.action, RESPOND);
        let ask = Step::ask(state, Ask { action, proposal, requested_by: by, evidence, replaces, then });
        let ask = match undone.is_empty() {
            true => ask,
            false => ask.say(replies::left_behind(Reply::default(), &undone)),
        };
        // What was asked is answered, whatever else is suggested.
        Ok(answer.into_iter().fold(ask, Step::say))
    }
}
