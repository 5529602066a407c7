//! Tests of an experiment with simulated participants.
//!
//! [`journey`] sends one through a decision point; [`balance`] enrols many and compares their conditions with the
//! weights; [`consistency`] sends a few through every phase and compares their conditions with those that the rules
//! require, which [`expected`] works out. [`simulated`] is one visit, [`users`] makes names for visits by hand,
//! [`fit`] has the statistics and [`chart`] the picture. Simulated participants have recognisable names, so that they
//! can be distinguished from real ones; the platform has no way to remove them, and the card says so.

pub mod balance;
pub mod chart;
pub(crate) mod conditions;
pub mod consistency;
pub mod draw;
pub mod expected;
pub mod fit;
pub mod journey;
pub mod simulated;
pub mod split;
pub mod users;
