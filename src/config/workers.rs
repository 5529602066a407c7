//! `[workers]`: the distribution of threads among workers, and time limits.

use std::time::Duration;

use serde::Deserialize;

/// `[workers]`: the distribution of threads among workers, and time limits.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workers {
    /// The number of threads that one process advances at the same time.
    pub threads: usize,
    /// The number of messages that are sent to Slack at the same time.
    pub senders: usize,
    /// The duration of a lease without renewal, such as `"30s"`. A crash blocks a thread for at most this time.
    #[serde(with = "humantime_serde")]
    pub lease: Duration,
    /// The interval at which the store is searched for unannounced work: due timers, and work left by a crash.
    #[serde(with = "humantime_serde")]
    pub sweep_every: Duration,
    /// The time limit of one step, model calls included.
    #[serde(with = "humantime_serde")]
    pub step_timeout: Duration,
    /// The time without a message from the bot after which a status line appears.
    #[serde(with = "humantime_serde")]
    pub status_after: Duration,
    /// The time for work in progress to finish after a request to stop.
    #[serde(with = "humantime_serde")]
    pub drain: Duration,
}
