//! What is set, for people: no secrets, no addresses.

use std::time::Duration;

use crate::graph::action::Policy;

/// What is set.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Who may decide about each action, by its name.
    pub policies: Vec<(String, Policy)>,
    /// The language model, if there is one.
    pub model: Option<String>,
    /// How long a card is open.
    pub expires_after: Duration,
    /// How many threads are worked on at a time.
    pub threads: usize,
    /// How long one step may take.
    pub step_timeout: Duration,
    /// How long a call to the platform may take.
    pub platform_timeout: Duration,
}

impl Settings {
    /// The policies, each with the actions it is for; the most common first.
    pub fn by_policy(&self) -> Vec<(&Policy, Vec<&str>)> {
        let mut grouped: Vec<(&Policy, Vec<&str>)> = Vec::new();
        for (action, policy) in &self.policies {
            let same = grouped.iter_mut().find(|(known, _)| {
                (&known.approvers, known.own_request, known.needed)
                    == (&policy.approvers, policy.own_request, policy.needed)
            });
            match same {
                Some((_, actions)) => actions.push(action),
                None => grouped.push((policy, vec![action])),
            }
        }
        grouped.sort_by_key(|(_, actions)| std::cmp::Reverse(actions.len()));
        grouped
    }
}
