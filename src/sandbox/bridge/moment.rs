//! Moments in microseconds, in the four spellings of the bridge.

use serde::{Deserialize, Serialize};

/// A moment, in microseconds since 1970-01-01 00:00 UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Moment(pub(crate) i64);

impl Moment {
    /// Returns ISO 8601 with microseconds and offset, as the REST routes write it.
    pub(crate) fn iso(self) -> String {
        self.written("%Y-%m-%dT%H:%M:%S%.6f+00:00")
    }

    /// Returns ISO 8601 with whole seconds, as results are stamped.
    pub(crate) fn whole(self) -> String {
        self.written("%Y-%m-%dT%H:%M:%SZ")
    }

    /// Returns ISO 8601 with microseconds, as snapshots are stamped.
    pub(crate) fn fine(self) -> String {
        self.written("%Y-%m-%dT%H:%M:%S%.6fZ")
    }

    /// Returns the moment without marks between the numbers, as snapshots and files are named.
    pub(crate) fn packed(self) -> String {
        self.written("%Y%m%dT%H%M%S%6fZ")
    }

    /// Returns whole seconds without marks, as files are named.
    pub(crate) fn packed_whole(self) -> String {
        self.written("%Y%m%dT%H%M%SZ")
    }

    /// Returns seconds since 1970, as tools write it.
    pub(crate) fn epoch(self) -> f64 {
        self.0 as f64 / 1e6
    }

    fn written(self, format: &str) -> String {
        let moment = jiff::Timestamp::from_microsecond(self.0).unwrap_or_default();
        moment.strftime(format).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_is_the_bridges() {
        let moment = Moment(1_795_188_939_791_998);
        assert_eq!(moment.iso(), "2026-11-20T15:35:39.791998+00:00");
        assert_eq!(moment.whole(), "2026-11-20T15:35:39Z");
        assert_eq!(moment.fine(), "2026-11-20T15:35:39.791998Z");
        assert_eq!(moment.packed(), "20261120T153539791998Z");
        assert_eq!(moment.packed_whole(), "20261120T153539Z");
    }
}
