//! `[workers]`: the sharing of threads among workers, and time limits.

use std::time::Duration;

use serde::Deserialize;

/// `[workers]`: the sharing of threads among workers, and time limits.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workers {
    /// The number of threads that one process advances at the same time.
    pub threads: usize,
    /// The number of messages that are sent to Slack at the same time.
    pub senders: usize,
    /// The time a worker owns a thread without renewing, such as `"30s"`: the longest a crash blocks a thread.
    #[serde(with = "humantime_serde")]
    pub lease: Duration,
    /// The interval at which the store is asked for work that was not announced: timers, and what a crash left behind.
    #[serde(with = "humantime_serde")]
    pub sweep_every: Duration,
    /// The time limit of one step, model calls included.
    #[serde(with = "humantime_serde")]
    pub step_timeout: Duration,
    /// The time the bot may be silent before a status line appears.
    #[serde(with = "humantime_serde")]
    pub status_after: Duration,
    /// The time the step in hand may take after a request to stop.
    #[serde(with = "humantime_serde")]
    pub drain: Duration,
}
