//! Plans that are shown on a card before they begin.

use countersign_capabilities::{Effect, Registry};
use countersign_config::plans::LookFirst;
use countersign_graph::node::Step;
use countersign_understanding::{
    conditions::split,
    situation::{Analysis, Draft},
};
use serde_json::{Map, Value, json};

use super::{
    super::{model_with_fallback::StepUsage, state::AgentState},
    GATHER,
};

/// Returns the action that shows a plan of these requests on a card, if it has to be shown before it begins.
pub(super) fn card_for(
    registry: &Registry,
    setting: LookFirst,
    state: &AgentState,
    steps: &[String],
) -> Option<&'static str> {
    let effects: Vec<Effect> = steps.iter().map(|step| registry.effect_of(split(step).request)).collect();
    let changes = effects.iter().filter(|effect| matches!(effect, Effect::Changes | Effect::Irreversible)).count();
    let must_show = state.turn.plan_first
        || effects.contains(&Effect::Irreversible)
        || (setting == LookFirst::Changes && changes > 1);
    registry.plan_action().filter(|_| must_show)
}

/// Returns true if a change is a plan with a step that cannot be undone.
pub(super) fn is_irreversible(registry: &Registry, change: &Draft) -> bool {
    let steps = change.params.get("steps").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let is_plan = registry.plan_action() == Some(change.action.as_str());
    is_plan && steps.map(|step| registry.effect_of(split(step).request)).any(|effect| effect == Effect::Irreversible)
}

/// Makes the card of a plan the change of this turn, and returns the step that leads to it.
pub(super) fn show_steps(
    mut state: AgentState,
    usage: StepUsage,
    action: &str,
    steps: Vec<String>,
) -> Step<AgentState> {
    let params = Map::from_iter([("steps".to_owned(), json!(steps))]);
    state.turn.change = Some(Draft::begun(action, params));
    state.turn.is_explicit = true;
    state.turn.exchange.clear();
    state.turn.analysis = Some(Analysis::of_step(&state.turn.said));
    Step::go(state, GATHER).cost(usage.total())
}
