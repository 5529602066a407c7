//! Tests of a running experiment with simulated participants.
//!
//! [`journey`] sends one through a decision point; [`balance`] enrols many and compares who got what with the weights.
//! [`simulated`] is one visit, [`fit`] the statistics and [`chart`] the picture. Simulated participants have names of their own, so that they can be told apart
//! from real ones; the platform has no way to take them out again, and the card says so.

pub mod balance;
pub mod chart;
pub mod fit;
pub mod journey;
pub mod simulated;
