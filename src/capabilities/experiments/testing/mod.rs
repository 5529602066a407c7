//! Tests of an experiment with simulated participants.
//!
//! [`journey`] sends one through a decision point; [`balance`] enrols many and compares who got what with the weights;
//! [`consistency`] sends a few through every phase and compares what they got with what the rules say, which is
//! [`expected`]. [`simulated`] is one visit, [`users`] names for visits of one's own, [`fit`] the statistics and [`chart`]
//! the picture. Simulated participants have names of their own, so that they can be told apart from real ones; the platform
//! has no way to take them out again, and the card says so.

pub mod balance;
pub mod chart;
pub mod consistency;
pub mod draw;
pub mod expected;
pub mod fit;
pub mod journey;
pub mod simulated;
pub mod split;
pub mod users;
