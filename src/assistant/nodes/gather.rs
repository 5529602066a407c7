//! The node that gathers facts and parameters: it runs the calls of the first round, then calls the
//! model once per run, until there is an answer or a change to show.
//!
//! Rounds are described in [`super::round`]. The node runs once per round and is its own successor,
//! so that a crash in the fourth round does not lose the first three. A change that is complete
//! from the beginning, because it comes from a form or a button, is prepared here without a model.

use async_trait::async_trait;
use countersign_graph::{
    action::Reader,
    node::{Context, Node, NodeError, Step},
};
use countersign_model::{Purpose, ToolChoice};

use super::{
    super::{
        model_with_fallback::{ModelWithFallback, StepUsage},
        state::{AgentState, Phase},
        view,
    },
    ANALYZE, CLARIFY, CONFIRM, GATHER, REPLAN, RESPOND,
    round::{self, Round, Rounds},
};

/// The node that gathers facts and parameters.
pub(in super::super) struct Gather {
    model: ModelWithFallback,
    rounds: Rounds,
}

impl Gather {
    /// Creates the node.
    pub(in super::super) fn new(model: ModelWithFallback, rounds: Rounds) -> Self {
        Self { model, rounds }
    }
}

#[async_trait]
impl Node<AgentState> for Gather {
    fn name(&self) -> &'static str {
        GATHER
    }

    fn status(&self) -> Option<&'static str> {
        Some("Looking things up…")
    }

    fn targets(&self) -> &'static [&'static str] {
        &[GATHER, ANALYZE, CLARIFY, CONFIRM, REPLAN, RESPOND]
    }

    async fn run(&self, mut state: AgentState, context: &Context) -> Result<Step<AgentState>, NodeError> {
        let mut usage = StepUsage::default();
        state.turn.phase = Phase::GatheringInfo;
        state.note_work();
        if let Some(change) = state.turn.change.clone().filter(|_| state.turn.is_explicit) {
            let reader = Reader::in_thread(state.turn.by.clone(), &context.thread).in_zone(state.turn.zone.clone());
            state.note_topic(&self.rounds.registry);
            return Ok(self.rounds.prepare(state, change, usage, &reader, "", context).await);
        }
        let has_language_model = self.model.has_language_model(&state);
        if let Some(response) = round::take_deferred_calls(&mut state, has_language_model) {
            let round = Round {
                state,
                context,
                usage,
                response,
                analysis: None,
                has_language_model,
                is_first: false,
                offered: [].into(),
            };
            return Ok(self.rounds.process(round).await);
        }
        let offered = self.rounds.offered(&state, &view::situation(&state, context));
        let request =
            view::request(self.rounds.prompts(), Purpose::Gather, &state, context, offered.clone(), ToolChoice::Auto);
        let response = self.model.ask(&mut state, &mut usage, &request).await?;
        let has_language_model = self.model.has_language_model(&state);
        let analysis = self.rounds.analysis(&response).unwrap_or_default();
        let offered = if has_language_model { offered } else { [].into() };
        let round = Round { state, context, usage, response, analysis, has_language_model, is_first: false, offered };
        Ok(self.rounds.process(round).await)
    }
}
