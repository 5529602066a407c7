//! The node that makes another plan instead of one that ended early.
//!
//! A language model is asked once. Its plan is shown on a card; if it knows none, its reason is the reply. If it does not
//! answer, nothing more is said: the reply about the end of the plan was sent before.

use async_trait::async_trait;
use countersign_capabilities::Registry;
use countersign_graph::node::{Context, Node, NodeError, Step};
use countersign_model::{Purpose, ToolChoice};

use super::{
    super::{
        model_with_fallback::{ModelWithFallback, StepUsage},
        state::{AgentState, Phase},
        view,
    },
    GATHER, REPLAN, claims,
    close::end,
    look_first::show_steps,
    round::Rounds,
};

/// The node that asks for another plan.
pub(in super::super) struct Replan {
    model: ModelWithFallback,
    registry: Registry,
    rounds: Rounds,
}

impl Replan {
    /// Creates the node.
    pub(in super::super) fn new(model: ModelWithFallback, registry: Registry, rounds: Rounds) -> Self {
        Self { model, registry, rounds }
    }
}

#[async_trait]
impl Node<AgentState> for Replan {
    fn name(&self) -> &'static str {
        REPLAN
    }

    fn status(&self) -> Option<&'static str> {
        Some("Looking for another way…")
    }

    fn targets(&self) -> &'static [&'static str] {
        &[GATHER]
    }

    async fn run(&self, mut state: AgentState, context: &Context) -> Result<Step<AgentState>, NodeError> {
        state.turn.phase = Phase::Analyzing;
        let mut usage = StepUsage::default();
        let tools = self.rounds.analysis_alone();
        let request = view::request(self.rounds.prompts(), Purpose::Analyze, &state, context, tools, ToolChoice::Any);
        let response = self.model.ask(&mut state, &mut usage, &request).await?;
        if !self.model.has_language_model(&state) {
            return Ok(Step::end(state).cost(usage.total())); // the phrases would begin with the first step again
        }
        let analysis = self.rounds.analysis(&response).unwrap_or_default().unwrap_or_default();
        if let (Some(action), false) = (self.registry.plan_action(), analysis.steps.is_empty()) {
            state.turn.goes_on_in_words_of_model();
            return Ok(show_steps(state, usage, action, analysis.steps));
        }
        let text = response.text();
        let reason = [&analysis.answer, &analysis.question, &text].into_iter().map(|words| words.trim());
        Ok(match reason.into_iter().find(|words| !words.is_empty()) {
            Some(words) => {
                let answer = (words.to_owned(), Vec::new());
                let reply = claims::checked(&self.registry, &state, context, answer, &[]);
                end(state, reply, usage)
            }
            None => Step::end(state).cost(usage.total()),
        })
    }
}
