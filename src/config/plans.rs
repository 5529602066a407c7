//! The section `[plans]`: requests of several steps.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The settings of requests of several steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plans {
    /// The plans that are shown on a card before their first step.
    pub look_first: LookFirst,
    /// The longest time that the steps of a plan may take, without the time in which people are asked.
    #[serde(with = "humantime_serde")]
    pub run_time: Duration,
    /// The largest number of nodes that may run for one plan.
    pub nodes: u32,
}

impl Default for Plans {
    fn default() -> Self {
        Self { look_first: LookFirst::default(), run_time: Duration::from_secs(300), nodes: 100 }
    }
}

/// The plans that are shown before their first step. One that a person asks to see is always shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LookFirst {
    /// Those with a step that cannot be undone.
    #[default]
    Irreversible,
    /// Those with more than one change, too.
    Changes,
}
