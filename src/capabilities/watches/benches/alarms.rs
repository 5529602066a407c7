//! The false-alarm rate and the power of the test of a split, with a look after every user:
//! `cargo bench -p countersign-watches --bench alarms`.
//!
//! The figures are written down in `docs/watches.md`. The seeds are fixed, so they are the same at each run.

#![allow(clippy::print_stdout, reason = "the figures are what it is for")]

use countersign_watches::split::{FALSE_ALARM_RATE, looks_wrong};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};

/// The number of simulated courses for each figure.
const SIMULATED: u64 = 10_000;

/// Returns the share of courses with an alarm up to each of these numbers of users. `drawn` is the share of the first
/// condition by which users are drawn, `planned` the share that it should have.
fn alarms(drawn: f64, planned: f64, after: &[u64]) -> Vec<f64> {
    let shares = [planned, 1.0 - planned];
    let most = after.iter().copied().max().unwrap_or_default();
    let first_alarm = |seed: u64| {
        let mut random = StdRng::seed_from_u64(seed);
        let mut counts = [0, 0];
        (1..=most).find(|_| {
            counts[usize::from(random.random::<f64>() >= drawn)] += 1;
            looks_wrong(&shares, &counts)
        })
    };
    let all: Vec<Option<u64>> = (0..SIMULATED).map(first_alarm).collect();
    let rate = |users: &u64| {
        let found = all.iter().flatten().filter(|at| *at <= users).count();
        found as f64 / SIMULATED as f64
    };
    after.iter().map(rate).collect()
}

fn main() {
    const AFTER: [u64; 4] = [500, 1_000, 2_000, 5_000];
    println!("{SIMULATED} courses each, a look after every user; false alarms allowed: {FALSE_ALARM_RATE}");
    println!("drawn   planned   alarms after {AFTER:?} users");
    for (drawn, planned) in [(0.5, 0.5), (0.7, 0.7), (0.52, 0.5), (0.55, 0.5), (0.6, 0.5)] {
        let rates = alarms(drawn, planned, &AFTER);
        let shown: Vec<String> = rates.iter().map(|rate| format!("{:.2} %", rate * 100.0)).collect();
        println!("{drawn:<7} {planned:<9} {}", shown.join("  "));
    }
}
