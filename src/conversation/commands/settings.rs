//! The settings that people may see, without secrets and addresses.

use std::{collections::BTreeMap, time::Duration};

use countersign_config::{CostLimits, Envelope, Measure};
use countersign_graph::action::Policy;

/// The policies of one kind of action.
#[derive(Clone, Debug)]
pub struct ActionPolicies {
    /// The action's name.
    pub action: String,
    /// The policy for an action that can be undone.
    pub policy: Policy,
    /// The policy for an action that cannot be undone.
    pub irreversible: Policy,
}

/// The settings that are shown.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The policies of each action.
    pub policies: Vec<ActionPolicies>,
    /// The policies that differ in a context, by context.
    pub contexts: BTreeMap<String, Vec<ActionPolicies>>,
    /// The envelopes, by name.
    pub envelopes: BTreeMap<String, Envelope>,
    /// The measures that envelopes can limit.
    pub measures: &'static [&'static [Measure]],
    /// The language model, if there is one.
    pub model: Option<String>,
    /// What language models may cost.
    pub costs: CostLimits,
    /// The time for which a card is open.
    pub expires_after: Duration,
    /// The maximum number of threads that are worked on at the same time.
    pub threads: usize,
    /// The time-out of one step.
    pub step_timeout: Duration,
}

impl ActionPolicies {
    /// Returns true if both policies have the same description.
    fn has_same_description(&self, other: &Self) -> bool {
        let shown = |policies: &Self| {
            let Policy { approvers, also, own_request, needed, escalation, apart, .. } = policies.policy.clone();
            (approvers, also, own_request, needed, escalation, apart, policies.irreversible.own_request)
        };
        shown(self) == shown(other)
    }
}

/// Groups actions with the same policy. The most common policy comes first.
pub fn grouped_by_policy(policies: &[ActionPolicies]) -> Vec<(&ActionPolicies, Vec<&str>)> {
    let mut grouped: Vec<(&ActionPolicies, Vec<&str>)> = Vec::new();
    for policies in policies {
        match grouped.iter_mut().find(|(known, _)| known.has_same_description(policies)) {
            Some((_, actions)) => actions.push(&policies.action),
            None => grouped.push((policies, vec![&policies.action])),
        }
    }
    grouped.sort_by_key(|(_, actions)| std::cmp::Reverse(actions.len()));
    grouped
}

/// Returns the policies that differ from the usual ones.
pub fn differing(policies: Vec<ActionPolicies>, usual: &[ActionPolicies]) -> Vec<ActionPolicies> {
    let is_usual = |policies: &ActionPolicies| {
        usual.iter().any(|usual| usual.action == policies.action && usual.has_same_description(policies))
    };
    policies.into_iter().filter(|policies| !is_usual(policies)).collect()
}
