//! Checks that the server still preserves acknowledged writes. Its settings can be changed while it
//! runs, and a different server may answer at its address.
//!
//! The settings are checked at intervals, and after every new connection before its answers are
//! relied upon. While they are wrong, nothing is stored and no work is handed out: an event that is
//! not acknowledged is delivered again.

use std::{sync::Mutex, time::Duration};

use countersign_graph::store::{Durability, Error};
use futures_util::future::BoxFuture;
use tokio::time::Instant;

use super::{durability::Trust, server::Server};

/// The interval between checks of the settings.
const CHECK_EVERY: Duration = Duration::from_secs(15);

/// The interval between checks while the settings are wrong.
const CHECK_EVERY_WHILE_LOSSY: Duration = Duration::from_secs(1);

/// A watch on the settings of a server, with the result of the last check.
#[derive(Debug)]
pub(super) struct DurabilityWatch {
    trust: Trust,
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
    /// Creates a watch. The settings have not been checked.
    pub(super) fn new(trust: Trust) -> Self {
        Self { trust, last: Mutex::default() }
    }

    /// Checks, before an operation, that the server is known to preserve acknowledged writes. `look` reads its settings.
    pub(super) async fn check_before<'a>(
        &self,
        server: &Server,
        look: impl FnOnce() -> BoxFuture<'a, Result<Durability, Error>>,
    ) -> Result<(), Error> {
        if self.trust == Trust::Lossy {
            return Ok(());
        }
        if self.is_due(server) {
            Box::pin(self.check_now(server, look())).await?;
        }
        self.outcome()
    }

    /// Checks, after an operation, that the server that answered preserves acknowledged writes. `look` reads its settings.
    pub(super) async fn check_after<'a>(
        &self,
        server: &Server,
        look: impl FnOnce() -> BoxFuture<'a, Result<Durability, Error>>,
    ) -> Result<(), Error> {
        if self.trust == Trust::Lossy || self.last.lock().is_ok_and(|last| last.connection == server.connections_made())
        {
            return Ok(());
        }
        Box::pin(self.check_now(server, look())).await?;
        self.outcome()
    }

    /// Checks the server now, by what `look` finds.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] if it does not answer.
    pub(super) async fn check_now(
        &self,
        server: &Server,
        look: impl Future<Output = Result<Durability, Error>>,
    ) -> Result<Durability, Error> {
        let checked = look.await;
        match &checked {
            Ok(found) => {
                let before = self.note(server, found);
                if found.problems.is_empty() != before.is_empty() && self.trust != Trust::Lossy {
                    log_change(found);
                }
            }
            Err(_) => {
                if let Ok(mut last) = self.last.lock() {
                    last.at = None;
                }
            }
        }
        checked
    }

    /// Notes what a check of the server has just found. Returns the problems that the check before it found.
    pub(super) fn note(&self, server: &Server, found: &Durability) -> Vec<String> {
        let problems = found.problems.clone();
        let now = LastCheck { at: Some(Instant::now()), connection: server.connections_made(), problems };
        self.last.lock().map(|mut last| std::mem::replace(&mut *last, now).problems).unwrap_or_default()
    }

    /// Returns true if a check is due. Of several concurrent callers, only one gets this answer.
    fn is_due(&self, server: &Server) -> bool {
        let Ok(mut last) = self.last.lock() else { return true };
        let interval = if last.problems.is_empty() { CHECK_EVERY } else { CHECK_EVERY_WHILE_LOSSY };
        let due = last.connection != server.connections_made() || last.at.is_none_or(|at| at.elapsed() >= interval);
        if due && last.connection == server.connections_made() && last.at.is_some() {
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
