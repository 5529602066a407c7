//! The time, passed as an argument.
//!
//! No other code reads the system's clock, so a test that waits for an expiry can move a [`ManualClock`] forward.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};

/// The days of the week in lower case, starting with Monday.
pub const WEEKDAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
/// The months in lower case, starting with January.
pub const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// A point in time, in milliseconds since 1970-01-01 00:00 UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// The end of what stays until someone ends it: the last day that all formats of a time can express.
    pub const NEVER: Self = Self(253_402_214_400_000);

    /// Returns true for [`Self::NEVER`].
    pub fn is_never(self) -> bool {
        self >= Self::NEVER
    }

    /// Returns the milliseconds since 1970-01-01 00:00 UTC.
    pub fn millis(self) -> i64 {
        self.0
    }

    /// Returns the time this much earlier.
    #[must_use]
    pub fn minus(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)))
    }

    /// Returns the whole seconds since 1970-01-01 00:00 UTC, as needed for Slack's `<!date^…>`.
    pub fn seconds(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// Returns the time since `earlier`; zero if this is not after it.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0 - earlier.0).unwrap_or(0))
    }
}

/// Describes the time since `then` for people: `just now`, `40 s ago`, `3 min ago`, `5 h ago`, `2 days ago`.
pub fn ago(now: Timestamp, then: Timestamp) -> String {
    match now.since(then).as_secs() {
        0..=1 => "just now".to_owned(),
        seconds @ 2..=119 => format!("{seconds} s ago"),
        seconds @ 120..=7199 => format!("{} min ago", seconds / 60),
        seconds @ 7200..=172_799 => format!("{} h ago", seconds / 3600),
        seconds => format!("{} days ago", seconds / 86400),
    }
}

impl std::ops::Add<Duration> for Timestamp {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)))
    }
}

impl fmt::Display for Timestamp {
    /// Formats the time as ISO 8601 in UTC with milliseconds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(moment) => write!(f, "{moment:.3}"),
            Err(_) => write!(f, "{} ms", self.0),
        }
    }
}

/// A source of the time.
pub trait Clock: Send + Sync + fmt::Debug {
    /// Returns the current time.
    fn now(&self) -> Timestamp;
}

/// The system's clock.
#[derive(Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the only place that reads the system's clock")]
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}

/// A clock that follows the system's clock and can be moved forward.
#[derive(Clone, Debug, Default)]
pub struct ManualClock {
    ahead_ms: Arc<AtomicI64>,
}

impl ManualClock {
    /// Moves the clock forward.
    pub fn advance(&self, by: Duration) {
        self.ahead_ms.fetch_add(i64::try_from(by.as_millis()).unwrap_or(i64::MAX), Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp(SystemClock.now().0 + self.ahead_ms.load(Ordering::SeqCst))
    }
}
