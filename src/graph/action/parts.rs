//! The parts of a record that hardly ever change, so that a store can keep them apart.

use std::sync::LazyLock;

use countersign_core::reply::Card;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ActionRecord, Policy, Undo};
use crate::shared::Shared;

/// The parts of a record that hardly ever change. They are most of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parts {
    parameters: Shared<Value>,
    preconditions: Shared<Value>,
    policy: Shared<Policy>,
    card: Shared<Card>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    undo: Option<Shared<Undo>>,
}

/// Parts without content, which are written as JSON only once.
static NOTHING: LazyLock<Parts> = LazyLock::new(|| Parts {
    parameters: Shared::default(),
    preconditions: Shared::default(),
    policy: Shared::default(),
    card: Shared::default(),
    undo: None,
});

impl Parts {
    /// Returns the parts of a record.
    pub fn of(record: &ActionRecord) -> Self {
        let ActionRecord { parameters, preconditions, policy, card, undo, .. } = record;
        Self {
            parameters: parameters.clone(),
            preconditions: preconditions.clone(),
            policy: policy.clone(),
            card: card.clone(),
            undo: undo.clone(),
        }
    }

    /// Returns true if all of them are copies of the same data. They are not compared, so equal ones may differ here.
    pub fn are_same(&self, other: &Self) -> bool {
        let Self { parameters, preconditions, policy, card, undo } = self;
        let is_same_undo = match (undo, &other.undo) {
            (Some(one), Some(other)) => one.is_same(other),
            (None, None) => true,
            _ => false,
        };
        parameters.is_same(&other.parameters)
            && preconditions.is_same(&other.preconditions)
            && policy.is_same(&other.policy)
            && card.is_same(&other.card)
            && is_same_undo
    }
}

impl ActionRecord {
    /// Returns the record with nothing in place of its [`Parts`].
    #[must_use]
    pub fn without_parts(&self) -> Self {
        self.clone().with_parts(NOTHING.clone())
    }

    /// Returns the record with these parts.
    #[must_use]
    pub fn with_parts(self, parts: Parts) -> Self {
        let Parts { parameters, preconditions, policy, card, undo } = parts;
        Self { parameters, preconditions, policy, card, undo, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_put_together_as_it_was() {
        let saved = include_str!("../../../tests/fixtures/shapes/action_record.json");
        let saved: Vec<ActionRecord> = serde_json::from_str(saved).unwrap();
        for record in saved {
            let rest = serde_json::to_string(&record.without_parts()).unwrap();
            let parts = serde_json::to_string(&Parts::of(&record)).unwrap();
            let rest: ActionRecord = serde_json::from_str(&rest).unwrap();
            assert_ne!(rest, record);
            assert_eq!(rest.with_parts(serde_json::from_str(&parts).unwrap()), record);

            let mut edited = record.clone();
            assert!(Parts::of(&edited).are_same(&Parts::of(&record)));
            edited.card.title.push('!');
            assert!(!Parts::of(&edited).are_same(&Parts::of(&record)));
        }
    }
}
