//! Tests of a running experiment with simulated participants.
//!
//! [`balance`] enrols many and compares who got what with the weights; [`simulated`] is one of them, [`fit`] the
//! statistics and [`chart`] the picture. Simulated participants have names of their own, so that they can be told apart
//! from real ones; the platform has no way to take them out again, and the card says so.

pub mod balance;
pub mod chart;
pub mod fit;
pub mod simulated;
