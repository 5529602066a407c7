//! The sentences for people.

pub mod answers;
pub mod comparisons;
pub mod errors;
pub mod figures;
pub mod outcomes;
pub mod refusals;

use std::time::Duration;

/// Returns a duration in words: “0.6 s”, “45 s”, “6 min 5 s”, “2 h 10 min”.
pub fn lasting(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..=9 => format!("{:.1} s", duration.as_secs_f64()).replace(".0 s", " s"),
        10..=59 => format!("{seconds} s"),
        60..=3599 if seconds.is_multiple_of(60) => format!("{} min", seconds / 60),
        60..=3599 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}
