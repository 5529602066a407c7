//! `[plans]`: requests of several steps.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// `[plans]`: requests of several steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plans {
    /// The plans that are shown on a card before their first step.
    pub look_first: LookFirst,
    /// The maximum total time of the steps of a plan, not counting the time spent waiting for people.
    #[serde(with = "humantime_serde")]
    pub run_time: Duration,
    /// The maximum number of nodes that may run for one plan.
    pub nodes: u32,
}

impl Default for Plans {
    fn default() -> Self {
        Self { look_first: LookFirst::default(), run_time: Duration::from_secs(300), nodes: 100 }
    }
}

/// The plans that are shown before their first step. A plan that a person asks to see is always shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LookFirst {
    /// Plans with a step that cannot be undone.
    #[default]
    Irreversible,
    /// Plans with a step that cannot be undone, or with more than one change.
    Changes,
}
