//! Tests of an experiment with simulated participants.
//!
//! [`journey`] sends one participant through a decision point; [`balance`] enrols many and compares
//! their conditions with the weights; [`consistency`] sends a few through every phase and compares
//! their conditions with those that the rules require, which [`expected`] computes. [`simulated`] is
//! one visit, [`users`] generates names for manual visits, [`fit`] has the statistics and [`chart`] the
//! picture. [`enrolled`] knows who was enrolled by tests. [`draw`] reimplements the platform's draw, from which [`split`] computes the expected split
//! of newcomers.
//!
//! Simulated participants have recognisable names, so that they can be distinguished from real ones.
//! The platform removes them only together with the experiment, and the card warns of that.

pub mod balance;
pub mod chart;
pub(crate) mod conditions;
pub mod consistency;
pub mod draw;
pub mod enrolled;
pub mod expected;
pub mod fit;
pub mod journey;
pub mod simulated;
pub mod split;
pub mod users;

use serde_json::{Value, json};

use crate::upgrade::experiment::View;

/// Returns what the card of a test shows about the conditions.
fn conditions_of(view: &View) -> Vec<Value> {
    view.conditions.iter().map(|c| json!([c.id, c.condition_code, c.assignment_weight])).collect()
}
