//! The health of Socket Mode, for the readiness probe and the log.

use std::fmt;

use countersign_core::clock::Timestamp;
use tokio::sync::watch;

use super::refusal::Refusal;

/// The health of all Socket Mode connections together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SocketHealth {
    /// Not connected yet.
    Connecting,
    /// At least one connection is open and has received `hello`.
    Connected,
    /// All connections have closed and are being reopened.
    Down {
        /// The time at which the last connection closed.
        since: Timestamp,
    },
    /// No connection will work until a setting changes.
    Fatal(Refusal),
}

impl fmt::Display for SocketHealth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connecting => f.write_str("not connected yet"),
            Self::Connected => f.write_str("connected"),
            Self::Down { since } => write!(f, "not connected since {since}; retrying"),
            Self::Fatal(refusal) => refusal.fmt(f),
        }
    }
}

/// Counts the open connections and publishes their health.
#[derive(Debug)]
pub(super) struct Gauge {
    health: watch::Sender<SocketHealth>,
    open: std::sync::atomic::AtomicUsize,
}

impl Gauge {
    pub(super) fn new() -> (Self, watch::Receiver<SocketHealth>) {
        let (health, receiver) = watch::channel(SocketHealth::Connecting);
        (Self { health, open: 0.into() }, receiver)
    }

    /// Counts a connection that has received `hello`.
    pub(super) fn opened(&self) {
        self.health.send_modify(|health| {
            let open = self.open.fetch_add(1, std::sync::atomic::Ordering::SeqCst) + 1;
            metrics::gauge!("countersign_slack_sockets").set(open as f64);
            *health = SocketHealth::Connected;
        });
    }

    /// Stops counting a connection that has received `hello`.
    pub(super) fn closed(&self, at: Timestamp) {
        self.health.send_modify(|health| {
            let open = self.open.fetch_sub(1, std::sync::atomic::Ordering::SeqCst) - 1;
            metrics::gauge!("countersign_slack_sockets").set(open as f64);
            if open == 0 && *health == SocketHealth::Connected {
                *health = SocketHealth::Down { since: at };
            }
        });
    }

    /// Records that no connection will work until a setting changes. Returns the previous health.
    pub(super) fn fatal(&self, refusal: &Refusal) -> SocketHealth {
        self.health.send_replace(SocketHealth::Fatal(refusal.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_open_connection_of_two_is_enough() {
        let (gauge, health) = Gauge::new();
        assert_eq!(*health.borrow(), SocketHealth::Connecting);
        gauge.opened();
        gauge.opened();
        gauge.closed(Timestamp(1));
        assert_eq!(*health.borrow(), SocketHealth::Connected);
        gauge.closed(Timestamp(2));
        assert_eq!(*health.borrow(), SocketHealth::Down { since: Timestamp(2) });
        gauge.opened();
        assert_eq!(*health.borrow(), SocketHealth::Connected);
    }

    #[test]
    fn a_fatal_state_lasts_until_a_connection_opens() {
        let (gauge, health) = Gauge::new();
        gauge.opened();
        assert_eq!(gauge.fatal(&Refusal::new("link_disabled")), SocketHealth::Connected);
        gauge.closed(Timestamp(2));
        assert_eq!(*health.borrow(), SocketHealth::Fatal(Refusal::new("link_disabled")));
    }
}
