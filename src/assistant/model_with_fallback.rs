//! The model of a turn: the language model, or the grammar if the language model does not answer.

use std::{borrow::Cow, sync::Arc};

use countersign_core::{cause, reply::Reply, status_line};
use countersign_graph::{node::NodeError, store};
use countersign_model::{Error, Model, Purpose, Request, Response, words::Words};
use tracing::{error, warn};

use super::state::AgentState;

/// The factor of the maximum length of an answer that is asked for again because it was cut off.
const MORE_ROOM: u32 = 3;

/// A model and its fallback.
#[derive(Clone, Debug)]
pub(super) struct ModelWithFallback {
    model: Arc<dyn Model>,
    fallback: Arc<dyn Model>,
}

impl ModelWithFallback {
    /// Creates the pair. `fallback` answers when `model` cannot, and has to be local.
    pub(super) fn new(model: Arc<dyn Model>, fallback: Arc<dyn Model>) -> Self {
        Self { model, fallback }
    }

    /// Sends a request to the model. If the language model does not answer, the rest of the turn continues without it:
    /// its calls so far are dropped, and the results of its tools are kept.
    ///
    /// # Errors
    ///
    /// Fails if the fallback does not answer either, which is a bug.
    pub(super) async fn ask(
        &self,
        state: &mut AgentState,
        usage: &mut StepUsage,
        request: &Request,
    ) -> Result<Response, NodeError> {
        if !state.turn.without_model {
            if let Some(by) = state.turn.by.as_ref().filter(|_| self.model.is_remote()) {
                status_line::begin_draft(by);
            }
            let before = usage.nano_usd;
            let answer = self.answer(usage, request).await;
            state.cost = state.cost.saturating_add(usage.nano_usd - before);
            match answer {
                Ok(response) => return Ok(response),
                Err(reason) => {
                    match &reason {
                        Error::OverLimit(reached) => state.turn.over_limit = Some(*reached),
                        Error::Unavailable { .. } => {
                            warn!("The language model did not answer: {}", cause::chain(&reason))
                        }
                        Error::Auth | Error::Refused { .. } | Error::Decode { .. } => {
                            error!("The language model cannot be used: {}", cause::chain(&reason));
                        }
                    }
                    self.continue_without_model(state);
                    return self.without_model(&Request { exchange: Vec::new(), ..request.clone() }).await;
                }
            }
        }
        self.without_model(request).await
    }

    /// Sends a request to the model. An answer that is cut off is asked for once more, with more room.
    async fn answer(&self, usage: &mut StepUsage, request: &Request) -> Result<Response, Error> {
        let mut sent = self.for_model(request);
        if let Some(words) = words_for(request) {
            sent.to_mut().words = Some(words);
        }
        let response = self.model.respond(&sent).await?;
        if !self.model.is_remote() {
            return Ok(response);
        }
        usage.add(&response);
        if response.stop_reason != "max_tokens" {
            return Ok(response);
        }
        sent.to_mut().max_tokens *= MORE_ROOM;
        Ok(match self.model.respond(&sent).await {
            Ok(again) => {
                usage.add(&again);
                again
            }
            Err(error) => {
                warn!("The language model did not repeat an answer that was cut off: {}", cause::chain(&error));
                response
            }
        })
    }

    /// Returns the request to send. A language model is not sent the names and the topic: it finds them itself, and each
    /// word of the situation costs.
    fn for_model<'a>(&self, request: &'a Request) -> Cow<'a, Request> {
        const ONLY_FOR_RULES: [&str; 2] = ["names", "topic"];
        if !self.model.is_remote() || ONLY_FOR_RULES.iter().all(|key| request.situation.get(key).is_none()) {
            return Cow::Borrowed(request);
        }
        let mut sent = request.clone();
        if let Some(situation) = sent.situation.as_object_mut() {
            situation.retain(|key, _| !ONLY_FOR_RULES.contains(&key.as_str()));
        }
        Cow::Owned(sent)
    }

    async fn without_model(&self, request: &Request) -> Result<Response, NodeError> {
        self.fallback.respond(request).await.map_err(|source| NodeError::Permanent {
            reply: Reply::text("Something went wrong on my side, so I couldn't answer. Nothing further was changed."),
            source: source.into(),
        })
    }

    /// Continues without the language model for the rest of the turn.
    pub(super) fn continue_without_model(&self, state: &mut AgentState) {
        state.turn.without_model = true;
        state.turn.exchange.clear();
        state.turn.change = None;
    }

    /// Returns true if a language model is used in this turn. Unlike the grammar, it can put any answer into words.
    pub(super) fn has_language_model(&self, state: &AgentState) -> bool {
        !state.turn.without_model && self.model.is_remote()
    }
}

/// Returns the receiver of the words of an answer to a person, if they are shown while they are written. What is checked
/// afterwards is the whole answer, which takes the place of these words.
fn words_for(request: &Request) -> Option<Words> {
    const ANSWERS: [Purpose; 3] = [Purpose::Analyze, Purpose::Gather, Purpose::Respond];
    let writer = status_line::writer().filter(|_| ANSWERS.contains(&request.purpose))?;
    Some(Words::to(move |so_far| writer.write(so_far)))
}

/// The usage of the model calls of one step.
#[derive(Debug, Default)]
pub(super) struct StepUsage {
    sum: Option<store::Usage>,
    /// The cost of the calls whose price is known.
    nano_usd: u64,
}

impl StepUsage {
    fn add(&mut self, response: &Response) {
        let cost = response.usage.nano_usd;
        self.nano_usd = self.nano_usd.saturating_add(cost.unwrap_or_default());
        let sum = self.sum.get_or_insert_with(|| store::Usage { nano_usd: Some(0), ..store::Usage::default() });
        sum.nano_usd = sum.nano_usd.zip(cost).map(|(sum, cost)| sum.saturating_add(cost));
        sum.model.clone_from(&response.usage.model);
        sum.calls += 1;
        sum.input_tokens += response.usage.input_tokens;
        sum.cached_tokens += response.usage.cached_tokens;
        sum.output_tokens += response.usage.output_tokens;
    }

    /// Returns the sum, if there was any call that costs.
    pub(super) fn total(self) -> Option<store::Usage> {
        self.sum
    }
}
