//! The node that makes the first model call for a message, with the tools that are probably needed.
//! The model works on a clear request at once and classifies any other message.

use std::sync::Arc;

use async_trait::async_trait;
use countersign_capabilities::Registry;
use countersign_core::clock::Timestamp;
use countersign_graph::node::{Context, Node, NodeError, Step};
use countersign_model::{Purpose, Response, ToolChoice, ToolSpec};
use countersign_understanding::{
    Hint,
    lexicon::Mention,
    phrase_book::PhraseBook,
    situation::{Analysis, IntentType, Situation},
};

use super::{
    super::{
        conditions, exchange,
        model_with_fallback::{ModelWithFallback, StepUsage},
        replies,
        rest_of_plan::Reaction,
        state::{AgentState, Phase},
        tools, view,
    },
    ANALYZE, CLARIFY, GATHER, RESPOND,
    carry_on::CarryOn,
    close::{close, close_between_steps, end},
    look_first::show_steps,
    round::{Round, Rounds},
};

/// The maximum number of attempts to get a response that can be parsed.
const MAX_TRIES: usize = 2;

/// The first node of every turn.
pub(in super::super) struct Analyze {
    model: ModelWithFallback,
    registry: Registry,
    rounds: Rounds,
    carry_on: CarryOn,
}

/// The first usable response of a model, and the analysis in it, if there is one.
struct FirstResponse {
    response: Response,
    analysis: Option<Analysis>,
    /// The tools that the model was offered; none if the grammar answered.
    offered: Arc<[ToolSpec]>,
}

impl Analyze {
    /// Creates the node.
    pub(in super::super) fn new(
        model: ModelWithFallback,
        registry: Registry,
        rounds: Rounds,
        carry_on: CarryOn,
    ) -> Self {
        Self { model, registry, rounds, carry_on }
    }

    /// Finds the names in the message, if its interpretation needs them. Outdated lists of names
    /// are read again first, and all of them if the message names nothing that is known: it may be new.
    async fn find_names(&self, state: &mut AgentState, context: &Context) {
        state.turn.names.clear();
        if !self.registry.book.wants_names(&view::situation(state, context)) {
            return;
        }
        self.read_names(state, None).await;
        if self.registry.book.lacks_names(&view::situation(state, context)) {
            let said_at = state.turn.at;
            self.read_names(state, Some(said_at)).await;
        }
    }

    /// Finds the names in the message. Lists of names that are outdated, or were read before `since`, are read again first.
    async fn read_names(&self, state: &mut AgentState, since: Option<Timestamp>) {
        self.registry.refresh_names(since).await;
        state.turn.names = self.registry.names_in(&state.turn.said);
        let subject = state.last_subject.as_deref().map(|subject| self.registry.names_in(subject));
        let known = |name: &Mention| Some(name.name.as_str()) == state.last_subject.as_deref() && name.subject;
        state.turn.names.extend(subject.into_iter().flatten().filter(known)); // the referent of “it”
    }

    /// Returns the first usable response, from the model in at most [`MAX_TRIES`] attempts,
    /// otherwise from the grammar.
    async fn first_round(
        &self,
        state: &mut AgentState,
        context: &Context,
        usage: &mut StepUsage,
        situation: &Situation,
    ) -> Result<FirstResponse, NodeError> {
        let offered = self.rounds.offered(state, situation);
        let mut request =
            view::request(self.rounds.prompts(), Purpose::Analyze, state, context, offered.clone(), ToolChoice::Any);
        for _ in 0..MAX_TRIES {
            let response = self.model.ask(state, usage, &request).await?;
            let calls = exchange::calls(&response);
            match self.rounds.analysis(&response) {
                Ok(analysis) if !calls.is_empty() => {
                    let offered = if self.model.has_language_model(state) { offered } else { [].into() };
                    return Ok(FirstResponse { response, analysis, offered });
                }
                // The model was required to call a tool and did not. Its text is used only if the
                // message requests nothing.
                Ok(_) => match direct_answer(&self.registry.book, &response, situation) {
                    Some(analysis) => return Ok(FirstResponse { response, analysis: Some(analysis), offered }),
                    None => break,
                },
                Err(_) if calls.iter().any(|call| call.name != tools::ANALYZE) => {
                    return Ok(FirstResponse { response, analysis: None, offered });
                }
                Err(mistake) => {
                    let results = calls.iter().map(|call| exchange::result(call, Err(mistake.clone()))).collect();
                    exchange::append(&mut request.exchange, response, results);
                }
            }
        }
        self.model.continue_without_model(state);
        request.exchange.clear();
        let response = self.model.ask(state, usage, &request).await?;
        let analysis = match self.rounds.analysis(&response) {
            Ok(None) if !exchange::calls(&response).is_empty() => None,
            Ok(Some(analysis)) => Some(analysis),
            Ok(None) | Err(_) => Some(Analysis {
                intent_type: IntentType::DirectAnswer,
                confidence: 0.0,
                user_request_summary: state.turn.said.clone(),
                ..Analysis::default()
            }),
        };
        Ok(FirstResponse { response, analysis, offered: [].into() })
    }
}

/// Returns the rest of a message that asks, at its beginning or its end, to see the plan before it
/// is carried out.
fn asks_for_plan_first(said: &str) -> Option<String> {
    const PHRASES: &[&str] =
        &["/planning:on", "/planning", "show me the plan first", "let me see the plan first", "show the plan first"];
    let is_divider = |c: char| c.is_whitespace() || matches!(c, ',' | ';' | ':' | '.' | '-' | '!');
    let said = said.trim_matches(is_divider);
    let lower = said.to_ascii_lowercase();
    let rest = PHRASES.iter().find_map(|phrase| match (lower.strip_prefix(phrase), lower.strip_suffix(phrase)) {
        (Some(_), _) => Some(&said[phrase.len()..]),
        (None, Some(before)) => Some(&said[..before.len()]),
        (None, None) => None,
    })?;
    let rest = rest.trim_matches(is_divider).trim_end_matches(" and").trim_end_matches(" but");
    (!rest.is_empty()).then(|| rest.trim_end_matches(is_divider).to_owned())
}

/// Returns the text of a response as a direct answer, unless the message contains a known request.
fn direct_answer(book: &PhraseBook, response: &Response, situation: &Situation) -> Option<Analysis> {
    let answer = response.text().trim().to_owned();
    let is_talk = !answer.is_empty() && !matches!(book.hint(situation), Hint::Calls(_));
    is_talk.then(|| Analysis {
        intent_type: IntentType::DirectAnswer,
        confidence: 1.0,
        user_request_summary: situation.said.clone(),
        answer,
        ..Analysis::default()
    })
}

#[async_trait]
impl Node<AgentState> for Analyze {
    fn name(&self) -> &'static str {
        ANALYZE
    }

    fn status(&self) -> Option<&'static str> {
        Some("Reading your message…")
    }

    fn targets(&self) -> &'static [&'static str] {
        &[ANALYZE, CLARIFY, GATHER, RESPOND]
    }

    async fn run(&self, mut state: AgentState, context: &Context) -> Result<Step<AgentState>, NodeError> {
        state.turn.phase = Phase::Analyzing;
        state.note_work();
        if (&state.topic, &state.aside) == (&None, &None) {
            state.aside = self.registry.topic_in(&context.thread.channel);
        }
        if let Some(rest) = asks_for_plan_first(&state.turn.said) {
            (state.turn.said, state.turn.plan_first) = (rest, true);
        }
        if let Some(of_turn) = state.conditional_plan().map(|plan| plan.turn).filter(|_| state.plan().is_none()) {
            match conditions::answer(&state.turn.said) {
                Some(true) => return Ok(self.carry_on.condition_confirmed(state, of_turn, context.now)),
                Some(false) => {
                    state.take_up_plan(of_turn);
                    let reply = replies::condition_denied();
                    return Ok(close_between_steps(state, reply, "the condition does not hold"));
                }
                None => {}
            }
        }
        if state.turn.declines_offer {
            let reply = replies::dropped(&context.open);
            return Ok(close(state, reply, StepUsage::default()));
        }
        if state.turn.is_explicit {
            state.turn.analysis = Some(Analysis::of_step(&state.turn.said));
            return Ok(Step::go(state, GATHER));
        }
        if let Some(length) = state.turn.cut_from.filter(|_| state.plan().is_none()) {
            return Ok(end(state, replies::too_long(length), StepUsage::default()));
        }
        match state.about_rest_of_plan(&self.registry, &context.open) {
            Some(Reaction::Say(reply)) => return Ok(end(state, reply, StepUsage::default())),
            Some(Reaction::Offer(action, rest)) => {
                if !state.rest_heard.is_empty() {
                    let earlier = state.rest_heard.clone();
                    state.turn.heard.extend(earlier);
                    state.turn.goes_on_in_words_of_model();
                }
                return Ok(show_steps(state, StepUsage::default(), action, rest));
            }
            None => {}
        }
        self.find_names(&mut state, context).await;
        let situation = view::situation(&state, context);
        if self.registry.book.without_a_request(&situation).is_some() {
            state.turn.analysis = Some(Analysis {
                confidence: 1.0,
                capability: self.registry.book.capability(&situation),
                user_request_summary: state.turn.said.clone(),
                ..Analysis::default()
            });
            return Ok(Step::go(state, RESPOND));
        }
        let mut usage = StepUsage::default();
        let FirstResponse { response, analysis, offered } =
            self.first_round(&mut state, context, &mut usage, &situation).await?;
        let has_language_model = self.model.has_language_model(&state);
        let round = Round { state, context, usage, response, analysis, has_language_model, is_first: true, offered };
        Ok(self.rounds.process(round).await)
    }
}

#[cfg(test)]
mod tests {
    use super::asks_for_plan_first;

    #[test]
    fn a_plan_is_asked_for_at_the_beginning_or_the_end() {
        for said in [
            "show me the plan first: start A, then stop B",
            "/planning start A, then stop B",
            "start A, then stop B, but show me the plan first.",
            "start A, then stop B and let me see the plan first",
        ] {
            assert_eq!(asks_for_plan_first(said).as_deref(), Some("start A, then stop B"), "{said}");
        }
        for said in ["show me the plan first", "show Lesson plan first draft", "start A, then stop B"] {
            assert_eq!(asks_for_plan_first(said), None, "{said}");
        }
    }
}
