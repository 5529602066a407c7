//! `[workers]`: how threads are shared out and how long things may take.

use std::time::Duration;

use serde::Deserialize;

/// `[workers]`: how threads are shared out and how long things may take.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workers {
    /// How many threads are advanced at the same time by one process.
    pub threads: usize,
    /// How many messages are sent to Slack at the same time.
    pub senders: usize,
    /// How long a worker owns a thread without renewing, such as `"30s"`: the longest a crash blocks a thread.
    #[serde(with = "humantime_serde")]
    pub lease: Duration,
    /// How often the store is asked for work that nobody announced: timers, and what a crash left behind.
    #[serde(with = "humantime_serde")]
    pub sweep_every: Duration,
    /// How long one step may take, model calls included.
    #[serde(with = "humantime_serde")]
    pub step_timeout: Duration,
    /// How long the bot may be silent before a status line appears.
    #[serde(with = "humantime_serde")]
    pub status_after: Duration,
    /// How long the step in hand may take after a request to stop.
    #[serde(with = "humantime_serde")]
    pub drain: Duration,
}
