//! The times at which to check whether a change without an answer happened: frequent at first, then
//! less and less.
//!
//! All times are derived from the time at which the request was sent. Nothing has to be stored, and
//! a process that takes over continues with the same times.

use std::time::Duration;

use countersign_core::clock::Timestamp;

/// The interval between the first look and the second; each later interval is twice the one before.
const INTERVAL: Duration = Duration::from_secs(2);

/// Returns the time of the next look after `now`, for a request that was sent at `left`. The first
/// look is when the request must have arrived, `arrived` after `left`; the last one is `within`
/// after `left`, but never before the first. `None` if the last look is over.
pub(super) fn next(left: Timestamp, now: Timestamp, arrived: Duration, within: Duration) -> Option<Timestamp> {
    let last = left + within.max(arrived);
    let (mut look, mut interval) = (left + arrived, INTERVAL);
    while look <= now {
        if look >= last {
            return None;
        }
        look = last.min(look + interval);
        interval *= 2;
    }
    Some(look)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the times of all looks, in seconds, for a request sent at 0.
    fn looks(arrived: u64, within: u64) -> Vec<i64> {
        let (mut now, mut all) = (Timestamp(0), Vec::new());
        while let Some(look) = next(Timestamp(0), now, Duration::from_secs(arrived), Duration::from_secs(within)) {
            all.push(look.0 / 1000);
            now = look;
        }
        all
    }

    #[test]
    fn looks_are_further_and_further_apart_until_the_last() {
        assert_eq!(looks(4, 60), [4, 6, 10, 18, 34, 60]);
        assert_eq!(looks(24, 60), [24, 26, 30, 38, 54, 60]);
    }

    #[test]
    fn there_is_always_a_look_when_the_request_must_have_arrived() {
        assert_eq!(looks(24, 10), [24]);
        assert_eq!(looks(24, 0), [24]);
    }

    #[test]
    fn no_look_remains_for_a_process_that_takes_over_late() {
        let arrived = Duration::from_secs(4);
        assert_eq!(next(Timestamp(0), Timestamp(3_600_000), arrived, Duration::from_secs(60)), None);
    }
}
