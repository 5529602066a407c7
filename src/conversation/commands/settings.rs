//! The settings, for people: no secrets, no addresses.

use std::{collections::BTreeMap, time::Duration};

use countersign_config::{Envelope, Measure};
use countersign_graph::action::Policy;

/// The policies of one kind of action.
#[derive(Clone, Debug)]
pub struct Told {
    /// The action's name.
    pub action: String,
    /// The policy for an action that can be undone.
    pub policy: Policy,
    /// The policy where it cannot be undone.
    pub irreversible: Policy,
}

/// The settings that are shown.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The policies of each action.
    pub policies: Vec<Told>,
    /// The policies that differ in a context, by context.
    pub contexts: BTreeMap<String, Vec<Told>>,
    /// The envelopes, by name.
    pub envelopes: BTreeMap<String, Envelope>,
    /// The measures that envelopes can limit.
    pub measures: &'static [&'static [Measure]],
    /// The language model, if there is one.
    pub model: Option<String>,
    /// The time that a card is open.
    pub expires_after: Duration,
    /// The number of threads that are worked on at a time.
    pub threads: usize,
    /// The limit on the time of one step.
    pub step_timeout: Duration,
}

impl Told {
    /// Returns true if both would be described alike.
    fn is_as(&self, other: &Self) -> bool {
        let said = |told: &Self| {
            let Policy { approvers, also, own_request, needed, escalation, apart, .. } = told.policy.clone();
            (approvers, also, own_request, needed, escalation, apart, told.irreversible.own_request)
        };
        said(self) == said(other)
    }
}

/// Groups the policies, each with the actions it is for; the most common first.
pub fn by_policy(policies: &[Told]) -> Vec<(&Told, Vec<&str>)> {
    let mut grouped: Vec<(&Told, Vec<&str>)> = Vec::new();
    for told in policies {
        match grouped.iter_mut().find(|(known, _)| known.is_as(told)) {
            Some((_, actions)) => actions.push(&told.action),
            None => grouped.push((told, vec![&told.action])),
        }
    }
    grouped.sort_by_key(|(_, actions)| std::cmp::Reverse(actions.len()));
    grouped
}

/// Returns the policies that differ from the usual ones.
pub fn different(policies: Vec<Told>, usual: &[Told]) -> Vec<Told> {
    let is_usual = |told: &Told| usual.iter().any(|usual| usual.action == told.action && usual.is_as(told));
    policies.into_iter().filter(|told| !is_usual(told)).collect()
}
