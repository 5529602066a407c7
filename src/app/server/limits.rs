//! The limits on connections. The number of them depends on that of file descriptors, so that enough are left for
//! everything else.

use std::time::Duration;

use countersign_config as config;
use rustix::process::{Resource, getrlimit};

/// The maximum number of connections, regardless of the descriptors. More would be a sign of a fault, not of load.
const MAX_CONNECTIONS: usize = 4096;

/// The number of descriptors that the process needs for everything but connections: the files of the store, the
/// runtime, the logs.
const RESERVED: usize = 64;

/// The time limit for handling a request of Slack. A delivery is stored or refused in less.
const HANDLING_TIMEOUT: Duration = Duration::from_secs(10);

/// The minimum time between two log lines about the same problem with connections.
pub(super) const LOG_EVERY: Duration = Duration::from_secs(60);

/// The limits on connections: their number, and the time that clients may keep us waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The maximum number of open connections.
    pub connections: usize,
    /// The time limit for receiving the head of a request, from its first byte; for the first request, from the opening
    /// of the connection.
    pub header_timeout: Duration,
    /// The time limit for receiving the body of a request, and for sending the answer.
    pub body_timeout: Duration,
    /// The time for which a connection may stay open without a request.
    pub idle_timeout: Duration,
    /// The time limit for handling a request.
    pub handling_timeout: Duration,
}

impl Limits {
    /// Returns the limits that the settings and the descriptors of this process allow.
    pub fn of(server: &config::Server, workers: &config::Workers) -> Self {
        let most = for_connections(descriptors(), workers);
        let connections = server.connections.unwrap_or(most).min(most);
        if server.connections.is_some_and(|wanted| wanted > most) {
            tracing::warn!(most, "server.connections exceeds what the limit of open files allows");
        }
        Self {
            connections,
            header_timeout: server.header_timeout,
            body_timeout: server.body_timeout,
            idle_timeout: server.idle_timeout,
            handling_timeout: HANDLING_TIMEOUT,
        }
    }

    /// Returns these limits with at most so many connections.
    #[must_use]
    pub fn at_most(self, connections: usize) -> Self {
        Self { connections: self.connections.min(connections), ..self }
    }
}

/// Returns the number of files and sockets that this process may have open, `RLIMIT_NOFILE`.
fn descriptors() -> usize {
    let limit = getrlimit(Resource::Nofile).current;
    limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX)
}

/// Returns how many of the `limit` descriptors incoming connections may use.
///
/// Each permit of a worker and of a sender is assumed to need two outgoing connections, one in use and one idle in a
/// pool. These are reserved, but at least a quarter of the descriptors is left for incoming connections.
fn for_connections(limit: usize, workers: &config::Workers) -> usize {
    let outgoing = workers.threads.saturating_add(workers.senders).saturating_mul(2);
    let left = limit.saturating_sub(RESERVED.saturating_add(outgoing));
    left.max(limit / 4).clamp(1, MAX_CONNECTIONS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use countersign_config::Config;

    #[test]
    fn enough_is_left_for_everything_else() {
        let mut workers = Config::load(None, &Default::default(), &crate::app::installed::SETTINGS).unwrap().workers;
        (workers.threads, workers.senders) = (64, 32);
        let of = |limit: usize, workers: &config::Workers| for_connections(limit, workers);
        assert_eq!(of(1024, &workers), 1024 - 256);
        assert_eq!(of(usize::MAX, &workers), MAX_CONNECTIONS);
        assert_eq!(of(300, &workers), 75, "a quarter, if the settings would use up the rest");
        assert_eq!(of(1, &workers), 1);
        workers.threads = usize::MAX;
        assert_eq!(of(1024, &workers), 256);
    }
}
