//! The answers of a conversation's state to the rooms around it.

use countersign_core::ids::UserId;
use countersign_graph::{action::ActionRequest, conversing::Conversing};
use serde_json::Value;

use super::{
    plan::{Plan, WaitsFor},
    state::AgentState,
};

impl Conversing for AgentState {
    fn is_drafting(&self) -> bool {
        self.draft.is_some()
    }

    fn is_choosing(&self) -> bool {
        !self.offered.is_empty()
    }

    fn is_unsure(&self) -> bool {
        self.is_unsure
    }

    fn takes_forget(&self) -> bool {
        self.forget_means.is_some()
    }

    fn plan_lines(&self) -> Vec<String> {
        let newest = self.plan().or_else(|| self.plans.last());
        newest.map(Plan::lines).unwrap_or_default()
    }

    fn plan_place(&self) -> Option<String> {
        let newest = self.plan().or_else(|| self.plans.last());
        newest.map(|plan| plan.place().to_lowercase())
    }

    fn draft(&self) -> Option<ActionRequest> {
        let draft = self.draft.as_ref()?;
        Some(ActionRequest { action: draft.action.clone(), parameters: Value::Object(draft.params.clone()) })
    }

    fn is_part_of_plan(&self, turn: &Value) -> bool {
        turn["number"].as_u64().is_some_and(|number| self.plans.iter().any(|plan| plan.turn == number))
    }

    fn works_for(&self) -> Option<&UserId> {
        self.turn.by.as_ref()
    }
}

impl AgentState {
    /// Returns the question that waits for an answer: about the draft, the condition of a plan's next step, or the
    /// choices that were offered.
    pub(super) fn open_question(&self) -> Option<String> {
        let about_draft = self.draft.as_ref().and_then(|draft| draft.asked.as_ref());
        let waits = |plan: &&Plan| plan.waits_for == WaitsFor::Condition;
        let about_plan = || self.plans.iter().find(waits).map(|plan| format!("{}: {}", plan.turn, plan.place()));
        let about_choices = || self.offered.first().map(|choice| choice.says.clone());
        about_draft.map(|asked| asked.question.clone()).or_else(about_plan).or_else(about_choices)
    }
}
