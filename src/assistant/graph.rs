//! The construction of the chat graph.

use std::sync::Arc;

use countersign_capabilities::Registry;
use countersign_core::ids::CHAT;
use countersign_graph::definition::{DefinitionError, Graph};
use countersign_model::Model;

use super::{
    blob_cache::BlobCache,
    follow_up::ChatListener,
    model_with_fallback::ModelWithFallback,
    nodes::{
        ANALYZE, analyze::Analyze, carry_on::CarryOn, clarify::Clarify, confirm::Confirm, gather::Gather,
        replan::Replan, respond::Respond, round::Rounds,
    },
    plan_settings::PlanSettings,
    state::AgentState,
    view::Prompts,
};

/// Builds the chat graph. `fallback` answers whenever `model` cannot, and has to be local. Large answers are kept in
/// `blobs`, and `plans` are the settings for requests of several steps.
///
/// # Errors
///
/// Fails if the nodes do not fit together, which is a bug.
pub fn chat_graph(
    model: Arc<dyn Model>,
    fallback: Arc<dyn Model>,
    registry: Registry,
    blobs: Arc<dyn BlobCache>,
    plans: PlanSettings,
) -> Result<Graph<AgentState>, DefinitionError> {
    let model = ModelWithFallback::new(model, fallback);
    let prompts = Prompts::new(&registry);
    let carry_on = CarryOn::new(model.clone(), registry.clone(), plans);
    let rounds = Rounds::new(registry.clone(), blobs.clone(), prompts.clone(), plans, carry_on.clone());
    let listener =
        ChatListener { book: registry.book.clone(), plan_action: registry.plan_action(), limits: plans.limits };
    Graph::builder(CHAT, ANALYZE, listener)
        .node(Analyze::new(model.clone(), registry.clone(), rounds.clone(), carry_on.clone()))
        .node(Clarify::new(registry.clone()))
        .node(Gather::new(model.clone(), rounds.clone()))
        .node(Replan::new(model.clone(), registry.clone(), rounds))
        .node(Confirm::new(registry.clone()))
        .node(Respond::new(model, registry, blobs, prompts, carry_on))
        .build()
}
