//! Points in time in microseconds, and the bridge's formats for them.

use serde::{Deserialize, Serialize};

/// A point in time, in microseconds since 1970-01-01 00:00 UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Moment(pub(crate) i64);

impl Moment {
    /// Returns ISO 8601 with microseconds and offset, the format of REST routes.
    pub(crate) fn iso(self) -> String {
        self.written("%Y-%m-%dT%H:%M:%S%.6f+00:00")
    }

    /// Returns ISO 8601 with whole seconds, the format of results.
    pub(crate) fn whole(self) -> String {
        self.written("%Y-%m-%dT%H:%M:%SZ")
    }

    /// Returns ISO 8601 with microseconds, the format of snapshots.
    pub(crate) fn fine(self) -> String {
        self.written("%Y-%m-%dT%H:%M:%S%.6fZ")
    }

    /// Returns ISO 8601 with microseconds and without separators, the format of the ids of
    /// snapshots.
    pub(crate) fn packed(self) -> String {
        self.written("%Y%m%dT%H%M%S%6fZ")
    }

    /// Returns ISO 8601 with whole seconds and without separators, the format of file names.
    pub(crate) fn packed_whole(self) -> String {
        self.written("%Y%m%dT%H%M%SZ")
    }

    /// Returns the seconds since 1970, the format of tools.
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
    fn every_format_is_the_bridges() {
        let moment = Moment(1_795_188_939_791_998);
        assert_eq!(moment.iso(), "2026-11-20T15:35:39.791998+00:00");
        assert_eq!(moment.whole(), "2026-11-20T15:35:39Z");
        assert_eq!(moment.fine(), "2026-11-20T15:35:39.791998Z");
        assert_eq!(moment.packed(), "20261120T153539791998Z");
        assert_eq!(moment.packed_whole(), "20261120T153539Z");
    }
}
