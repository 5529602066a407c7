//! What is set, for people: no secrets, no addresses.

use std::{collections::BTreeMap, time::Duration};

use countersign_config::{Envelope, Measure};
use countersign_graph::action::Policy;

/// Who may decide about one kind of change.
#[derive(Clone, Debug)]
pub struct Told {
    /// Its name.
    pub action: String,
    /// Who may decide.
    pub policy: Policy,
    /// Who may where it cannot be undone.
    pub irreversible: Policy,
}

/// What is set.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Who may decide about each action.
    pub policies: Vec<Told>,
    /// Who may decide in a context, for what is different there.
    pub contexts: BTreeMap<String, Vec<Told>>,
    /// What was agreed beforehand, by name.
    pub envelopes: BTreeMap<String, Envelope>,
    /// What envelopes can limit.
    pub measures: &'static [&'static [Measure]],
    /// The language model, if there is one.
    pub model: Option<String>,
    /// How long a card is open.
    pub expires_after: Duration,
    /// How many threads are worked on at a time.
    pub threads: usize,
    /// How long one step may take.
    pub step_timeout: Duration,
}

impl Told {
    /// Whether the same is said of both.
    fn is_as(&self, other: &Self) -> bool {
        let said = |told: &Self| {
            let Policy { approvers, also, own_request, needed, escalation, apart, .. } = told.policy.clone();
            (approvers, also, own_request, needed, escalation, apart, told.irreversible.own_request)
        };
        said(self) == said(other)
    }
}

/// The policies, each with the actions it is for; the most common first.
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

/// Those that are not as usual.
pub fn different(policies: Vec<Told>, usual: &[Told]) -> Vec<Told> {
    let is_usual = |told: &Told| usual.iter().any(|usual| usual.action == told.action && usual.is_as(told));
    policies.into_iter().filter(|told| !is_usual(told)).collect()
}
