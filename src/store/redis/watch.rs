//! Checks that the server still preserves acknowledged writes. Its settings can be changed while it
//! runs, and a different server may answer at its address.
//!
//! The settings are checked at intervals, and after every new connection before its answers are
//! relied upon. While they are wrong, nothing is stored and no work is handed out: an event that is
//! not acknowledged is delivered again.

use std::{sync::Mutex, time::Duration};

use countersign_graph::store::{Durability, Error};
use tokio::time::Instant;

use super::{connection::Link, durability};

/// The interval between checks of the settings.
const CHECK_EVERY: Duration = Duration::from_secs(15);

/// The interval between checks while the settings are wrong.
const CHECK_EVERY_WHILE_LOSSY: Duration = Duration::from_secs(1);

/// A watch on the server's settings, with the result of the last check.
#[derive(Debug)]
pub(super) struct DurabilityWatch {
    /// True if unsafe settings are accepted.
    allow_lossy: bool,
    last: Mutex<LastCheck>,
}

#[derive(Debug, Default)]
struct LastCheck {
    /// The time of the last check, or `None` if another check is due.
    at: Option<Instant>,
    /// The number of the connection that the check used.
    connection: u64,
    /// The problems that the check found.
    problems: Vec<String>,
}

/// The error for a server that may lose acknowledged writes.
#[derive(Debug, thiserror::Error)]
#[error("Redis may lose what it acknowledges: {}", .0.join("; "))]
struct LossyServer(Vec<String>);

impl DurabilityWatch {
    /// Creates a watch. The settings have just been checked on opening the store.
    pub(super) fn new(allow_lossy: bool, link: &Link) -> Self {
        let last = LastCheck { at: Some(Instant::now()), connection: link.connections_made(), problems: Vec::new() };
        Self { allow_lossy, last: Mutex::new(last) }
    }

    /// Checks, before an operation, that the server is known to preserve acknowledged writes.
    pub(super) async fn check_before(&self, link: &Link) -> Result<(), Error> {
        if self.allow_lossy {
            return Ok(());
        }
        if self.is_due(link) {
            Box::pin(self.check_now(link)).await?;
        }
        self.outcome()
    }

    /// Checks, after an operation, that the server that answered preserves acknowledged writes.
    pub(super) async fn check_after(&self, link: &Link) -> Result<(), Error> {
        if self.allow_lossy || self.last.lock().is_ok_and(|last| last.connection == link.connections_made()) {
            return Ok(());
        }
        Box::pin(self.check_now(link)).await?;
        self.outcome()
    }

    /// Checks the server now.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] if it does not answer.
    pub(super) async fn check_now(&self, link: &Link) -> Result<Durability, Error> {
        let checked = durability::durability(link).await;
        let Ok(mut last) = self.last.lock() else { return checked };
        match &checked {
            Ok(found) => {
                if found.problems.is_empty() != last.problems.is_empty() && !self.allow_lossy {
                    log_change(found);
                }
                *last = LastCheck {
                    at: Some(Instant::now()),
                    connection: link.connections_made(),
                    problems: found.problems.clone(),
                };
            }
            Err(_) => last.at = None,
        }
        checked
    }

    /// Returns true if a check is due. Of several concurrent callers, only one gets this answer.
    fn is_due(&self, link: &Link) -> bool {
        let Ok(mut last) = self.last.lock() else { return true };
        let interval = if last.problems.is_empty() { CHECK_EVERY } else { CHECK_EVERY_WHILE_LOSSY };
        let due = last.connection != link.connections_made() || last.at.is_none_or(|at| at.elapsed() >= interval);
        if due && last.connection == link.connections_made() && last.at.is_some() {
            last.at = Some(Instant::now());
        }
        due
    }

    fn outcome(&self) -> Result<(), Error> {
        match self.last.lock() {
            Ok(last) if !last.problems.is_empty() => {
                Err(Error::Unavailable(Box::new(LossyServer(last.problems.clone()))))
            }
            _ => Ok(()),
        }
    }
}

fn log_change(found: &Durability) {
    if found.problems.is_empty() {
        tracing::info!("{} preserves acknowledged writes again; deliveries are stored again", found.name);
    } else {
        let problems = found.problems.join("; ");
        tracing::error!("Nothing is stored or acknowledged: {} may lose acknowledged writes: {problems}", found.name);
    }
}
