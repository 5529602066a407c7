//! Facts and parameters: one model call a run, until there is a change to show or the model has what it needs.
//!
//! What a call may do is in [`super::gather_tools`]. The node runs once per round and goes to itself, so that a crash in
//! the fourth round does not cost the first three. It prepares the change, which reads; the card is asked in the next node.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::join_all;
use serde_json::Value;

use super::{
    super::{
        exchange,
        mind::{Bill, Mind},
        replies,
        shelf::{self, Shelf},
        state::{AgentState, Phase},
        tools, view,
    },
    close::{ask, close},
    confirm::Confirm,
    gather_tools::{self, Heard},
    respond::Respond,
};
use crate::{
    capabilities::Registry,
    graph::{
        action::{ErrorKind, PrepareError, Reader, Refusal},
        node::{Context, Node, NodeError, Step},
    },
    model::{Purpose, ToolChoice, ToolSpec},
    understanding::situation::Draft,
};

/// How many times the model is asked in one turn.
pub(super) const ROUNDS: u32 = 5;

/// Works out what is needed.
pub(in super::super) struct Gather {
    mind: Mind,
    registry: Registry,
    tools: Arc<[ToolSpec]>,
    shelf: Arc<dyn Shelf>,
}

impl Gather {
    /// Its name.
    pub(in super::super) const NAME: &'static str = "gather";

    /// The node.
    pub(in super::super) fn new(mind: Mind, registry: Registry, shelf: Arc<dyn Shelf>) -> Self {
        let tools = tools::gathering(&registry).into();
        Self { mind, registry, tools, shelf }
    }

    /// Works the change out for `reader` and says where that leads.
    async fn prepare(&self, mut state: AgentState, change: Draft, bill: Bill, reader: &Reader) -> Step<AgentState> {
        let Some(action) = self.registry.actions.get(change.action.as_str()) else {
            return close(state, replies::cannot_do(&change.action), bill);
        };
        let parameters = change.params.clone().into();
        match action.prepare_for(&parameters, reader).await {
            Ok(proposal) => {
                if let Some(subject) = self.registry.subject(&change.action, &proposal.parameters, &Value::Null) {
                    state.last_subject = Some(subject);
                }
                state.draft = None;
                state.on_card = Some(Draft { asked: None, ..change.clone() });
                state.turned_down = None;
                let turn = &mut state.turn;
                turn.change = Some(change);
                turn.proposal = Some(proposal);
                turn.exchange.clear(); // the turn is kept while the card is open: only what the answer needs
                turn.gathered.clear();
                turn.reads.clear();
                Step::go(state, Confirm::NAME).cost(bill.total())
            }
            Err(PrepareError::Refusal(Refusal::Missing(missing))) => match missing.first() {
                Some(first) => {
                    state.turn.missing = missing.iter().map(|missing| missing.name.clone()).collect();
                    state.ask_for(change.clone(), first);
                    ask(state, replies::ask_for(&change, first, missing.len()), bill)
                }
                None => close(state, replies::nothing_to_do(), bill),
            },
            Err(PrepareError::Refusal(Refusal::Refused { error, reply })) => {
                state.note_problem(replies::kind_name(error), &reply.words());
                // A wrong value can be corrected in the next message; what is not allowed is over.
                match error {
                    ErrorKind::Validation | ErrorKind::NotFound | ErrorKind::UserInput => {
                        state.keep_draft(change);
                        state.remember_offer(&reply);
                        ask(state, reply, bill)
                    }
                    _ => {
                        state.draft = None;
                        close(state, reply, bill)
                    }
                }
            }
            Err(PrepareError::Unavailable { error, reply }) => {
                state.note_problem(replies::kind_name(error), &reply.words());
                let again = state.turn.said.clone();
                close(state, replies::try_again(reply, &again), bill)
            }
        }
    }
}

#[async_trait]
impl Node<AgentState> for Gather {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn status(&self) -> Option<&'static str> {
        Some("Looking things up…")
    }

    fn targets(&self) -> &'static [&'static str] {
        &[Self::NAME, Confirm::NAME, Respond::NAME]
    }

    async fn run(&self, mut state: AgentState, context: &Context) -> Result<Step<AgentState>, NodeError> {
        let mut bill = Bill::default();
        state.turn.phase = Phase::GatheringInfo;
        state.turn.rounds += 1;
        let reader = Reader::in_thread(state.turn.by.clone(), &context.thread);
        if let Some(change) = state.turn.change.clone().filter(|_| state.turn.wished) {
            return Ok(self.prepare(state, change, bill, &reader).await);
        }
        shelf::take_back(&*self.shelf, &mut state).await;
        let request = view::request(Purpose::Gather, &state, context, Arc::clone(&self.tools), ToolChoice::Auto);
        let asked_for = view::situation(&state, context).asked_for().cloned();
        let response = self.mind.ask(&mut state, &mut bill, &request).await?;

        let calls = exchange::calls(&response);
        let mut heard = Heard::default();
        let mut planned = Vec::with_capacity(calls.len());
        for call in &calls {
            planned.push(gather_tools::hear(
                &mut state,
                &self.registry,
                &self.tools,
                asked_for.as_ref(),
                &mut heard,
                call,
            ));
        }
        let answers = join_all(planned.into_iter().map(|planned| planned.run(&*self.shelf, &reader))).await;
        let results =
            calls.iter().zip(answers).map(|(call, answer)| gather_tools::keep(&mut state, call, answer)).collect();

        let stopped = calls.is_empty() || response.stop_reason != "tool_use" || state.turn.rounds >= ROUNDS;
        if !calls.is_empty() {
            exchange::append(&mut state.turn.exchange, response, results);
        }
        if heard.dropped {
            return Ok(close(state, replies::dropped(!context.open.is_empty()), bill));
        }
        if heard.foreign && stopped {
            return Ok(close(state, replies::still_open(replies::no_part_of_it(), &context.open), bill));
        }
        if heard.no_number && stopped {
            let question =
                state.draft.as_ref().and_then(|draft| draft.asked.as_ref()).map(|asked| asked.question.clone());
            state.draft_turn = state.turn.number;
            return Ok(ask(state, replies::needs_a_number(question.as_deref()), bill));
        }
        shelf::put_away(&*self.shelf, &mut state).await;
        let complete = heard.parameters && !heard.mistaken && !heard.read;
        match state.turn.change.clone() {
            Some(change) if complete || stopped => Ok(self.prepare(state, change, bill, &reader).await),
            _ if stopped => Ok(Step::go(state, Respond::NAME).cost(bill.total())),
            _ => Ok(Step::go(state, Self::NAME).cost(bill.total())),
        }
    }
}
