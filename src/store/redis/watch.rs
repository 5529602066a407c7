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
const AGAIN: Duration = Duration::from_secs(15);

/// The time after which they are checked again while they are wrong.
const AGAIN_WHILE_WRONG: Duration = Duration::from_secs(1);

/// The result of the last check.
#[derive(Debug)]
pub(super) struct Watch {
    /// True if the settings do not matter.
    allow_lossy: bool,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
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
struct Weak(Vec<String>);

impl Watch {
    /// Creates a watch after the check when the store was opened.
    pub(super) fn new(allow_lossy: bool, link: &Link) -> Self {
        let seen = Seen { at: Some(Instant::now()), connection: link.made(), problems: Vec::new() };
        Self { allow_lossy, seen: Mutex::new(seen) }
    }

    /// Checks, before an operation, that the server can be relied upon, as far as is known.
    pub(super) async fn before(&self, link: &Link) -> Result<(), Error> {
        if self.allow_lossy {
            return Ok(());
        }
        if self.is_due(link) {
            self.look(link).await?;
        }
        self.judge()
    }

    /// Checks, after an operation, that the server that answered can be relied upon.
    pub(super) async fn after(&self, link: &Link) -> Result<(), Error> {
        if self.allow_lossy || self.seen.lock().is_ok_and(|seen| seen.connection == link.made()) {
            return Ok(());
        }
        self.look(link).await?;
        self.judge()
    }

    /// Checks the server now.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] if it does not answer.
    pub(super) async fn look(&self, link: &Link) -> Result<Durability, Error> {
        let looked = durability::durability(link).await;
        let Ok(mut seen) = self.seen.lock() else { return looked };
        match &looked {
            Ok(found) => {
                if found.problems.is_empty() != seen.problems.is_empty() && !self.allow_lossy {
                    tell(found);
                }
                *seen = Seen { at: Some(Instant::now()), connection: link.made(), problems: found.problems.clone() };
            }
            Err(_) => seen.at = None,
        }
        looked
    }

    /// Returns true if a check is due, and only to one of several concurrent callers.
    fn is_due(&self, link: &Link) -> bool {
        let Ok(mut seen) = self.seen.lock() else { return true };
        let patience = if seen.problems.is_empty() { AGAIN } else { AGAIN_WHILE_WRONG };
        let due = seen.connection != link.made() || seen.at.is_none_or(|at| at.elapsed() >= patience);
        if due && seen.connection == link.made() && seen.at.is_some() {
            seen.at = Some(Instant::now());
        }
        due
    }

    fn judge(&self) -> Result<(), Error> {
        match self.seen.lock() {
            Ok(seen) if !seen.problems.is_empty() => Err(Error::Unavailable(Box::new(Weak(seen.problems.clone())))),
            _ => Ok(()),
        }
    }
}

fn tell(found: &Durability) {
    if found.problems.is_empty() {
        tracing::info!("{} keeps again what it acknowledges, and what arrives is stored again", found.name);
    } else {
        let problems = found.problems.join("; ");
        tracing::error!("Nothing is stored or acknowledged: {} may lose it: {problems}", found.name);
    }
}
