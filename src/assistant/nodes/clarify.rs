//! The node that asks one question, with the possible meanings as buttons. It never guesses, and it never shows an
//! error message.

use async_trait::async_trait;
use countersign_capabilities::Registry;
use countersign_graph::node::{Context, Node, NodeError, Step};
use countersign_understanding::conditions::split;

use super::{
    super::{
        model_with_fallback::StepUsage,
        replies,
        state::{AgentState, Phase},
    },
    CLARIFY,
    close::close,
};

/// The node that asks the person what is meant.
pub(in super::super) struct Clarify {
    registry: Registry,
}

impl Clarify {
    /// Creates the node.
    pub(in super::super) fn new(registry: Registry) -> Self {
        Self { registry }
    }
}

#[async_trait]
impl Node<AgentState> for Clarify {
    fn name(&self) -> &'static str {
        CLARIFY
    }

    fn targets(&self) -> &'static [&'static str] {
        &[]
    }

    async fn run(&self, mut state: AgentState, context: &Context) -> Result<Step<AgentState>, NodeError> {
        state.turn.phase = Phase::Responding;
        state.is_unsure = true;
        let begun = state.draft_turn == state.turn.number;
        let is_asked = state.draft.as_ref().is_some_and(|draft| draft.asked.is_some());
        state.misunderstood += u32::from(is_asked);
        state.keep_own_words();
        if let (Some(analysis), Some(draft)) = (&state.turn.analysis, &mut state.draft)
            && begun
            && draft.asked.is_none()
        {
            draft.unread = Some(analysis.question.clone()).filter(|question| !question.is_empty());
        }
        let reply = match (&state.turn.analysis, &state.draft) {
            (Some(analysis), Some(draft)) if begun && draft.asked.is_none() && !analysis.question.is_empty() => {
                replies::ask_about_part(&self.registry, &analysis.question, &analysis.options, draft)
            }
            (Some(analysis), _) if !analysis.question.is_empty() || !analysis.options.is_empty() => {
                replies::ask_which(&analysis.question, &analysis.options)
            }
            (_, Some(draft)) => {
                replies::still_waiting(&self.registry, draft, state.misunderstood, state.topic.as_ref())
            }
            _ if state.turn.replan.is_some() => replies::no_other_plan(&state.turn.said),
            _ => match split(&state.turn.said).condition {
                Some(condition) => replies::cannot_tell(condition),
                None if !context.open.is_empty() => replies::not_understood(),
                None => replies::examples(&self.registry, state.topic.as_ref().or(state.aside.as_ref())),
            },
        };
        state.remember_offer(&self.registry, &reply);
        let reply = replies::still_open(reply, &context.open);
        Ok(close(state, reply, StepUsage::default()))
    }
}
