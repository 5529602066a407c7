//! A round: the calls in one response of a model are run concurrently, and their results determine
//! the next node.
//!
//! `analyze` begins the first round of a message, `gather` the others; [`super::gather_tools`]
//! implements the effects of a call. Instead of working on the request, a model can classify it in
//! an [`Analysis`].

use std::sync::Arc;

use countersign_capabilities::Registry;
use countersign_core::reply::Reply;
use countersign_graph::{
    action::{ErrorKind, PrepareError, Reader, Refusal},
    node::{Context, Step},
};
use countersign_model::{Message, Response, Role, ToolSpec, Usage};
use countersign_understanding::{
    self as understanding, Hint,
    situation::{Analysis, Draft, IntentType, Situation},
};
use futures_util::future::join_all;
use serde_json::Value;

use super::{
    super::{
        blob_cache::{self, BlobCache},
        exchange::{self, Call},
        model_with_fallback::StepUsage,
        plan_settings::PlanSettings,
        replies,
        state::AgentState,
        tools::{self, Kit},
        view::{self, Prompts},
    },
    CLARIFY, CONFIRM, GATHER, RESPOND,
    carry_on::{CarryOn, StepEnd},
    claims,
    close::{ask, close},
    gather_tools::{self, RoundEffects},
    look_first, notes,
    proposal_text::{proposal_text, without_ids},
    respond,
};

/// The maximum number of rounds in one turn.
pub(super) const MAX_ROUNDS: u32 = 5;

/// The confidence below which the person is asked to clarify the request.
const MIN_CONFIDENCE: f64 = 0.7;

/// The maximum number of pieces of a message, not used in the change, that are kept with a draft.
const MAX_UNHEARD: usize = 6;

/// A service that processes rounds.
#[derive(Clone)]
pub(in super::super) struct Rounds {
    pub(super) registry: Registry,
    pub(super) kit: Arc<Kit>,
    blobs: Arc<dyn BlobCache>,
    prompts: Prompts,
    plans: PlanSettings,
    carry_on: CarryOn,
}

/// A round of a turn.
pub(super) struct Round<'a> {
    /// The state of the thread after the turn so far.
    pub(super) state: AgentState,
    /// The context of the node.
    pub(super) context: &'a Context,
    /// The usage so far.
    pub(super) usage: StepUsage,
    /// The response of the model.
    pub(super) response: Response,
    /// The analysis of the request, if the model gave one.
    pub(super) analysis: Option<Analysis>,
    /// True if the response is from a language model, which can write replies and use the results
    /// of its calls.
    pub(super) has_language_model: bool,
    /// True for the first round of a message, whose calls are run in a separate step.
    pub(super) is_first: bool,
    /// The tools that a language model was offered; none if the phrases answered.
    pub(super) offered: Arc<[ToolSpec]>,
}

/// Stores the calls of the first round in the state, so that they are saved before they are run.
fn defer_calls(round: Round<'_>) -> Step<AgentState> {
    let Round { mut state, usage, response, .. } = round;
    state.turn.exchange.push(Message { role: Role::Assistant, content: response.content });
    Step::go(state, GATHER).cost(usage.total())
}

/// Removes the deferred calls of the first round from the state and returns them, if there are any.
pub(super) fn take_deferred_calls(state: &mut AgentState, has_language_model: bool) -> Option<Response> {
    let Message { content, .. } = state.turn.exchange.pop_if(|last| last.role == Role::Assistant)?;
    let stop_reason = if has_language_model { "tool_use" } else { "end_turn" };
    Some(Response { content, stop_reason: stop_reason.to_owned(), usage: Usage::default() })
}

impl Rounds {
    /// Creates the service with the tools and actions of `registry`. Large results are kept in
    /// `blobs`.
    pub(in super::super) fn new(
        registry: Registry,
        blobs: Arc<dyn BlobCache>,
        prompts: Prompts,
        plans: PlanSettings,
        carry_on: CarryOn,
    ) -> Self {
        Self { kit: Arc::new(Kit::new(registry.clone())), registry, blobs, prompts, plans, carry_on }
    }

    /// Returns the instructions for the model.
    pub(super) fn prompts(&self) -> &Prompts {
        &self.prompts
    }

    /// Returns the tools to offer to a model in this turn.
    pub(super) fn offered(&self, state: &AgentState, situation: &Situation) -> Arc<[ToolSpec]> {
        let hint = match self.registry.book.hint(situation) {
            Hint::Calls(calls) => calls,
            Hint::Talk | Hint::Nothing => Vec::new(),
        };
        let in_hand = situation.in_hand().or(state.turn.change.as_ref());
        let first: Vec<String> = hint.iter().cloned().chain(in_hand.map(|change| change.action.clone())).collect();
        let asked_for = state.turn.families.iter().map(String::as_str);
        let mut families: Vec<&str> = asked_for.chain(self.kit.families_of(&first)).collect();
        let named_before = state.turn.analysis.as_ref().and_then(|analysis| analysis.capability.as_deref());
        if families.is_empty() {
            families.extend(named_before);
        }
        if families.is_empty() && self.registry.book.hint(situation) != Hint::Talk {
            families.extend(self.kit.common_families());
        }
        self.kit.offered(families, &first, situation.in_hand().is_some())
    }

    /// Returns the tool with which a model analyses a request, and no other.
    pub(super) fn analysis_alone(&self) -> Arc<[ToolSpec]> {
        [self.kit.analysis().clone()].into()
    }

    /// Returns a model's analysis of the request, from its first such call that can be parsed, or
    /// `None` if it made no such call.
    ///
    /// # Errors
    ///
    /// A message for the model, if it made such calls and none can be parsed.
    pub(super) fn analysis(&self, response: &Response) -> Result<Option<Analysis>, String> {
        let mut outcome = Ok(None);
        for call in exchange::calls(response).iter().filter(|call| call.name == tools::ANALYZE) {
            let schema = self.kit.analysis_schema();
            let mut input = call.input.clone();
            let known = schema.parameter("capability")["enum"].as_array();
            if let Some(given) = input.as_object_mut()
                && given.get("capability").is_some_and(|name| known.is_some_and(|known| !known.contains(name)))
            {
                given.remove("capability"); // no capability has this name
            }
            match exchange::parse::<Analysis>(&input, schema) {
                Ok(analysis) => return Ok(Some(analysis)),
                Err(mistake) => outcome = Err(mistake),
            }
        }
        outcome
    }

    /// Processes a round and returns the step it leads to.
    pub(super) async fn process(&self, mut round: Round<'_>) -> Step<AgentState> {
        let mut calls = exchange::calls(&round.response);
        self.note_not_offered(&mut round, &calls);
        let works_on_request =
            calls.iter().any(|call| ![tools::ANALYZE, tools::NEXT_STEPS].contains(&call.name.as_str()));
        if let Some(analysis) = round.analysis.take() {
            let steps = if round.state.plan().is_none() { analysis.steps.clone() } else { Vec::new() };
            let is_clear = analysis.intent_type == IntentType::NeedsInfo
                && analysis.confidence >= MIN_CONFIDENCE
                && analysis.capability.as_deref() != Some(tools::UNSUPPORTED)
                && (steps.is_empty() || (steps.len() < 2 && round.state.turn.replan.is_none()));
            // Another plan need not hold the words of the reason for it, and is shown before it begins.
            if steps.len() > 1 && round.has_language_model && round.state.turn.replan.is_none() {
                let lost = understanding::left_out(&round.state.turn.said, &steps.join("\n"));
                if !lost.is_empty() {
                    return self.ask_for_whole_steps(round, analysis, &calls, &lost);
                }
            }
            if !(works_on_request && is_clear) {
                calls.retain(|call| !round.state.turn.not_offered.contains(&call.id));
                return self.follow_analysis(round, analysis, &calls, steps);
            }
            self.note_analysis(&mut round, analysis);
        }
        if round.state.turn.analysis.is_none() {
            let analysis = self.analysis_of(&round, &calls);
            round.state.turn.analysis = Some(analysis);
        }
        if round.is_first {
            return defer_calls(round);
        }
        Box::pin(self.run_calls(round, calls)).await
    }

    /// Stores an analysis in the state. The name of a family of tools is replaced by that of its
    /// capability.
    fn note_analysis(&self, round: &mut Round<'_>, mut analysis: Analysis) {
        let state = &mut round.state;
        analysis.steps.clear();
        analysis.answer.clear();
        if let Some(name) = &analysis.capability {
            if name != tools::UNSUPPORTED && !state.turn.families.contains(name) {
                state.turn.families.push(name.clone());
            }
            analysis.capability = Some(self.kit.capability_name(name).to_owned());
        }
        analysis.capability =
            analysis.capability.or_else(|| self.registry.book.capability(&view::situation(state, round.context)));
        state.turn.analysis = Some(analysis);
    }

    /// Returns the step that a model's analysis leads to.
    fn follow_analysis(
        &self,
        mut round: Round<'_>,
        analysis: Analysis,
        calls: &[Call],
        steps: Vec<String>,
    ) -> Step<AgentState> {
        // Of another plan, a single step may be left.
        if steps.len() > 1 || (!steps.is_empty() && round.state.turn.replan.is_some()) {
            let round_has_model = round.has_language_model;
            let Round { mut state, context, usage, .. } = round;
            if round_has_model {
                state.turn.goes_on_in_words_of_model();
            }
            if let Some(action) = look_first::card_for(&self.registry, self.plans.look_first, &state, &steps) {
                return look_first::show_steps(state, usage, action, steps);
            }
            state.turn.plans_created += 1;
            state.turn.families.clear();
            state.turn.exchange.clear();
            return self.carry_on.begin(state, &steps, None, usage, context.now);
        }
        let (intent, confidence) = (analysis.intent_type, analysis.confidence);
        let answer = analysis.answer.trim().to_owned();
        self.note_analysis(&mut round, analysis);
        let (round_has_model, is_cut) = (round.has_language_model, round.response.is_cut());
        let Round { mut state, context, usage, response, .. } = round;
        let capability = state.turn.analysis.as_ref().and_then(|analysis| analysis.capability.as_deref());
        let next = match intent {
            _ if capability == Some(tools::UNSUPPORTED) => RESPOND,
            _ if confidence < MIN_CONFIDENCE => {
                if round_has_model {
                    claims::check_question(&self.registry, &mut state, context);
                }
                let contains = |draft: &Draft, known: &Draft| {
                    known.action == draft.action && known.params.keys().all(|key| draft.params.contains_key(key))
                };
                let begun = self.begun_draft(calls);
                if let Some(draft) =
                    begun.filter(|draft| state.draft.as_ref().is_none_or(|known| contains(draft, known)))
                {
                    state.keep_draft(draft);
                }
                CLARIFY
            }
            IntentType::DirectAnswer => {
                if !answer.is_empty() {
                    state.turn.reply = Some(match round_has_model {
                        true => claims::answer(&self.registry, &state, context, answer, calls, is_cut),
                        false => Reply { choices: claims::choices_of(calls), ..Reply::markdown(answer) },
                    });
                }
                RESPOND
            }
            IntentType::NeedsInfo => {
                state.turn.rounds += u32::from(!state.turn.exchange.is_empty());
                if state.turn.rounds >= MAX_ROUNDS {
                    return Step::go(state, RESPOND).cost(usage.total());
                }
                let known = "Here is what that needs; go on.";
                let results = calls.iter().map(|call| exchange::result(call, Ok(known.to_owned()))).collect();
                exchange::append(&mut state.turn.exchange, response, results);
                GATHER
            }
        };
        Step::go(state, next).cost(usage.total())
    }

    /// Runs the calls of a response, if there are any, and returns the step that their results lead
    /// to.
    async fn run_calls(&self, round: Round<'_>, calls: Vec<Call>) -> Step<AgentState> {
        let Round { mut state, context, usage, response, has_language_model, .. } = round;
        state.turn.rounds += 1;
        blob_cache::restore(&*self.blobs, &mut state).await;
        let reader = Reader::in_thread(state.turn.by.clone(), &context.thread).in_zone(state.turn.zone.clone());
        let situation = view::situation(&state, context);

        let mut effects = RoundEffects::default();
        let not_offered = std::mem::take(&mut state.turn.not_offered);
        let several = gather_tools::several_changes(&calls, &not_offered);
        let mut planned: Vec<_> = calls.iter().map(|_| None).collect();
        let mut order: Vec<usize> = (0..calls.len()).collect();
        // A change first, then its updates.
        order.sort_by_key(|at| gather_tools::call_order(&calls[*at]));
        for at in order {
            let effects = &mut effects;
            let call_context = gather_tools::CallContext {
                registry: &self.registry,
                kit: &self.kit,
                situation: &situation,
                not_offered: &not_offered,
                several,
            };
            planned[at] = Some(call_context.handle(&mut state, effects, &calls[at]));
        }
        let answers = join_all(planned.into_iter().flatten().map(|planned| planned.run(&*self.blobs, &reader))).await;
        let results = calls
            .iter()
            .zip(answers)
            .map(|(call, answer)| gather_tools::keep_answer(&mut state, &self.registry, call, answer))
            .collect();
        state.note_topic(&self.registry);

        let only_offers = calls.iter().all(|call| call.name == tools::NEXT_STEPS);
        let text = response.text().trim().to_owned();
        let has_answer = only_offers && !text.is_empty();
        let stopped =
            calls.is_empty() || has_answer || response.stop_reason != "tool_use" || state.turn.rounds >= MAX_ROUNDS;
        if has_answer && has_language_model && state.turn.change.is_none() {
            state.turn.reply = Some(claims::answer(&self.registry, &state, context, text, &calls, response.is_cut()));
        }
        if !calls.is_empty() {
            exchange::append(&mut state.turn.exchange, response, results);
        }
        if effects.dropped {
            return close(state, replies::dropped(&context.open), usage);
        }
        if effects.unknown_parameter && stopped {
            return close(state, replies::still_open(replies::no_part_of_it(), &context.open), usage);
        }
        if effects.no_number && stopped {
            let question =
                state.draft.as_ref().and_then(|draft| draft.asked.as_ref()).map(|asked| asked.question.clone());
            state.draft_turn = state.turn.number;
            return ask(state, replies::needs_a_number(question.as_deref()), usage);
        }
        let answered = !effects.mistaken
            && state.turn.change.is_none()
            && respond::is_documented(&self.registry.book, &state, &situation);
        blob_cache::offload(&*self.blobs, &mut state).await;
        let complete = effects.parameters && !effects.mistaken && !effects.read;
        match state.turn.change.clone() {
            Some(change) if complete || stopped => {
                let said = if has_language_model { state.turn.said.clone() } else { String::new() };
                Box::pin(self.prepare(state, change, usage, &reader, &said, context)).await
            }
            _ if stopped || answered => Step::go(state, RESPOND).cost(usage.total()),
            _ => Step::go(state, GATHER).cost(usage.total()),
        }
    }

    /// Prepares the change for `reader` and returns the step that the result leads to. `said` is
    /// the text from which a model derived the change; parts of it that the change leaves out are
    /// shown as a warning on the card.
    pub(super) async fn prepare(
        &self,
        mut state: AgentState,
        change: Draft,
        usage: StepUsage,
        reader: &Reader,
        said: &str,
        context: &Context,
    ) -> Step<AgentState> {
        let Some(action) = self.registry.actions.get(change.action.as_str()) else {
            return close(state, replies::cannot_do(&change.action), usage);
        };
        let parameters = change.params.clone().into();
        let topic_before = state.topic.clone();
        state.note_topic_of_change(&self.registry, &change);
        let known = state.draft.clone().filter(|draft| draft.action == change.action);
        state.misunderstood = 0;
        let heard = self.words_behind(&mut state, context, &change, !said.is_empty());
        state.refused_value = state.refused_value.take().filter(|refused| {
            state.continues_draft(&self.registry, &change) && !change.params.contains_key(&refused.parameter)
        });
        let before = std::mem::take(&mut state.unheard);
        let noted = std::mem::take(&mut state.draft_notes);
        if state.continues_draft(&self.registry, &change) {
            // A question came between the note and the card.
            let still = noted.into_iter().filter(|note| notes::gave_value(note, &change));
            let notes: Vec<String> = still.filter(|note| !state.turn.from_notes.contains(note)).collect();
            state.turn.from_notes.extend(notes);
        }
        let before = if state.continues_draft(&self.registry, &change) { before } else { Vec::new() };
        let unheard = |used: &str| -> Vec<String> {
            let still =
                before.iter().filter(|words| !understanding::left_out(words, &without_ids(used, words)).is_empty());
            let used = &without_ids(used, said);
            still.cloned().chain(understanding::left_out(said, used)).take(MAX_UNHEARD).collect()
        };
        match action.prepare(&parameters, Some(reader)).await {
            Ok(mut proposal) => {
                if !heard.is_empty()
                    && let Some(refusal) = self.add_evidence(&mut state, context, &change, &proposal, &heard)
                {
                    return close(state, refusal, usage);
                }
                let lost = unheard(&proposal_text(&change, &proposal));
                proposal.card.notes.extend(state.turn.from_notes.iter().map(|note| replies::from_a_note(note)));
                let refused = state.refused_value.take().map(|refused| refused.words);
                let lost: Vec<String> = lost.into_iter().chain(refused).collect();
                if !lost.is_empty() {
                    proposal.card.warnings.push(replies::not_a_part(&lost));
                }
                if let Some(subject) = self.registry.subject(&change.action, &proposal.parameters, &Value::Null) {
                    state.note_subject(&self.registry, &change.action, subject);
                }
                state.note_things_on_card(&change.action, &proposal.scope.subjects);
                state.draft = None;
                state.on_card = Some(Draft { asked: None, ..change.clone() });
                state.turned_down = None;
                let turn = &mut state.turn;
                if self.registry.plan_action() == Some(change.action.as_str()) {
                    turn.plans_created += 1;
                }
                turn.change = Some(change);
                turn.proposal = Some(proposal);
                // The turn is stored while the card is open, so it keeps only what is needed then.
                turn.exchange.clear();
                turn.gathered.clear();
                turn.reads.clear();
                Step::go(state, CONFIRM).cost(usage.total())
            }
            Err(PrepareError::Refusal(Refusal::Missing(missing))) => match missing.first() {
                Some(first) => {
                    if let Some((value, note)) = Box::pin(notes::value_of(&self.registry, &state, &change, first)).await
                    {
                        let mut completed = change;
                        completed.params.insert(first.name.clone(), value.into());
                        state.turn.from_notes.push(note);
                        state.unheard = before;
                        return Box::pin(self.prepare(state, completed, usage, reader, said, context)).await;
                    }
                    state.unheard = unheard(&parameters.to_string());
                    state.draft_notes.clone_from(&state.turn.from_notes);
                    state.turn.missing = missing.iter().map(|missing| missing.name.clone()).collect();
                    state.ask_for(change.clone(), first);
                    ask(state, replies::ask_for(&self.registry, &change, &missing), usage)
                }
                None => close(state, replies::nothing_to_do(), usage),
            },
            Err(PrepareError::Refusal(Refusal::Refused { error, reply })) => {
                state.note_problem(replies::kind_name(error), &reply.words());
                // A wrong value can be corrected in the next message; any other refusal ends the
                // request.
                match error {
                    ErrorKind::Validation | ErrorKind::NotFound | ErrorKind::UserInput => {
                        state.unheard = unheard(&parameters.to_string());
                        state.draft_notes.clone_from(&state.turn.from_notes);
                        let asked = self.registry.subject(&change.action, &parameters, &Value::Null);
                        let reply = replies::with_whole_requests(reply, &state.turn.said, asked.as_deref());
                        if state.leaves_nothing(&self.registry, &reply, known.is_some(), error) {
                            state.topic = topic_before;
                            return close(state, reply, usage);
                        }
                        match Box::pin(self.wrong_parameter(&change, known.as_ref(), reader)).await {
                            Some(parameter) => state.keep_without(change, known.as_ref(), &parameter, &reply),
                            None => state.keep_draft(change),
                        }
                        state.remember_offer(&self.registry, &reply);
                        ask(state, reply, usage)
                    }
                    _ => {
                        state.draft = None;
                        close(state, reply, usage)
                    }
                }
            }
            Err(PrepareError::Answered { mut reply, result }) => {
                state.draft = None;
                if state.has_next_step() {
                    reply.choices.clear(); // the next step begins without a choice
                }
                let ended = StepEnd { words: reply.words(), reply, result, is_change: false };
                self.carry_on.after_step(state, ended, usage, context.now)
            }
            Err(PrepareError::Unavailable { error, reply }) => {
                state.note_problem(replies::kind_name(error), &reply.words());
                let again = state.turn.said.clone();
                self.carry_on.after_failure(state, replies::try_again(reply, &again), usage, context.now)
            }
        }
    }
}
