//! Checks that the server still keeps acknowledged writes. Its settings can be changed while it runs, and another
//! server may answer at its address.
//!
//! The settings are checked from time to time, and after every new connection before its answers are relied upon. While
//! they are wrong, nothing is stored and no work is given out: an event that is not acknowledged is delivered again.

use std::{sync::Mutex, time::Duration};

use countersign_graph::store::{Durability, Error};
use tokio::time::Instant;

use super::{connection::Link, durability};

/// The time after which the settings are checked again.
const CHECK_EVERY: Duration = Duration::from_secs(15);

/// The time after which they are checked again while they are wrong.
const CHECK_EVERY_WHILE_LOSSY: Duration = Duration::from_secs(1);

/// The result of the last check.
#[derive(Debug)]
pub(super) struct DurabilityWatch {
    /// True if the settings do not matter.
    allow_lossy: bool,
    seen: Mutex<LastCheck>,
}

#[derive(Debug, Default)]
struct LastCheck {
    /// The time at which the last check began; `None`: another one is due.
    at: Option<Instant>,
    /// The number of the connection it went over.
    connection: u64,
    /// The faults that it found.
    problems: Vec<String>,
}

/// The server may lose acknowledged writes.
#[derive(Debug, thiserror::Error)]
#[error("Redis may lose what it acknowledges: {}", .0.join("; "))]
struct LossyServer(Vec<String>);

impl DurabilityWatch {
    /// Creates a watch after the check when the store was opened.
    pub(super) fn new(allow_lossy: bool, link: &Link) -> Self {
        let seen = LastCheck { at: Some(Instant::now()), connection: link.connections_made(), problems: Vec::new() };
        Self { allow_lossy, seen: Mutex::new(seen) }
    }

    /// Checks, before an operation, that the server can be relied upon, as far as is known.
    pub(super) async fn check_before(&self, link: &Link) -> Result<(), Error> {
        if self.allow_lossy {
            return Ok(());
        }
        if self.is_due(link) {
            self.check_now(link).await?;
        }
        self.outcome()
    }

    /// Checks, after an operation, that the server that answered can be relied upon.
    pub(super) async fn check_after(&self, link: &Link) -> Result<(), Error> {
        if self.allow_lossy || self.seen.lock().is_ok_and(|seen| seen.connection == link.connections_made()) {
            return Ok(());
        }
        self.check_now(link).await?;
        self.outcome()
    }

    /// Checks the server now.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] if it does not answer.
    pub(super) async fn check_now(&self, link: &Link) -> Result<Durability, Error> {
        let checked = durability::durability(link).await;
        let Ok(mut seen) = self.seen.lock() else { return checked };
        match &checked {
            Ok(found) => {
                if found.problems.is_empty() != seen.problems.is_empty() && !self.allow_lossy {
                    log_change(found);
                }
                *seen = LastCheck {
                    at: Some(Instant::now()),
                    connection: link.connections_made(),
                    problems: found.problems.clone(),
                };
            }
            Err(_) => seen.at = None,
        }
        checked
    }

    /// Returns true if a check is due, and only to one of several concurrent callers.
    fn is_due(&self, link: &Link) -> bool {
        let Ok(mut seen) = self.seen.lock() else { return true };
        let patience = if seen.problems.is_empty() { CHECK_EVERY } else { CHECK_EVERY_WHILE_LOSSY };
        let due = seen.connection != link.connections_made() || seen.at.is_none_or(|at| at.elapsed() >= patience);
        if due && seen.connection == link.connections_made() && seen.at.is_some() {
            seen.at = Some(Instant::now());
        }
        due
    }

    fn outcome(&self) -> Result<(), Error> {
        match self.seen.lock() {
            Ok(seen) if !seen.problems.is_empty() => {
                Err(Error::Unavailable(Box::new(LossyServer(seen.problems.clone()))))
            }
            _ => Ok(()),
        }
    }
}

fn log_change(found: &Durability) {
    if found.problems.is_empty() {
        tracing::info!("{} keeps again what it acknowledges, and what arrives is stored again", found.name);
    } else {
        let problems = found.problems.join("; ");
        tracing::error!("Nothing is stored or acknowledged: {} may lose it: {problems}", found.name);
    }
}
