//! The times at which to look whether a change without an answer happened: often at first, then less and less.
//!
//! The times follow from the time at which the request left. Nothing has to be stored, and a process that takes over
//! continues with the same ones.

use std::time::Duration;

use countersign_core::clock::Timestamp;

/// The distance from the first look to the second; each further distance is twice the one before.
const DISTANCE: Duration = Duration::from_secs(2);

/// Returns the next look after `now`, for a request that left at `left`: the first when it must have arrived, the last
/// when it is `within` old. `None` if that was the last.
pub(super) fn next(left: Timestamp, now: Timestamp, arrived: Duration, within: Duration) -> Option<Timestamp> {
    let last = left + within.max(arrived);
    let (mut look, mut distance) = (left + arrived, DISTANCE);
    while look <= now {
        if look >= last {
            return None;
        }
        look = last.min(look + distance);
        distance *= 2;
    }
    Some(look)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the looks at a request that left at 0, in seconds.
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
    fn there_is_always_one_when_it_must_have_arrived() {
        assert_eq!(looks(24, 10), [24]);
        assert_eq!(looks(24, 0), [24]);
    }

    #[test]
    fn who_takes_over_late_looks_once_and_knows_that_it_was_the_last() {
        let arrived = Duration::from_secs(4);
        assert_eq!(next(Timestamp(0), Timestamp(3_600_000), arrived, Duration::from_secs(60)), None);
    }
}
