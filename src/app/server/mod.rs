//! The HTTP server: health, metrics and, with HTTP, Slack's requests.
//!
//! Everybody on the network may open connections here, and whoever opens them may be slow, silent or many. So each wait
//! for a client has a limit, and so has the number of open connections, with descriptors left for everything else. At
//! that limit the connection that has kept us waiting longest gives way ([`connections`]), so a new one is always
//! served: `/healthz` answers, and Slack is acknowledged, while others hold as many connections as they can.
//!
//! The design we did not take: `axum::serve`, which has none of these limits, and a proxy in front, which not everybody
//! has and which would have to be configured well. Only HTTP/1.1 is spoken; Slack and every proxy speak it.

mod connection;
mod connections;
mod descriptors;
mod watched;

use std::{io, time::Duration};

use axum::Router;
use countersign_config as config;
use tokio::{
    net::TcpListener,
    task::JoinSet,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;

use self::connections::Connections;

/// The pause after the system refused a connection, such as for want of descriptors.
const PAUSE: Duration = Duration::from_millis(50);

/// The shortest time between two log lines about the same trouble with connections.
const LOG_EVERY: Duration = Duration::from_secs(60);

/// The limits of connections: their number, and the time clients may keep us waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest number of open connections.
    pub connections: usize,
    /// The time the head of a request may take, from its first byte, or from the connection for the first one.
    pub header_timeout: Duration,
    /// The time its body may take, and the sending of the answer.
    pub body_timeout: Duration,
    /// The time a connection may stay open without a request.
    pub idle_timeout: Duration,
}

impl Limits {
    /// Returns the limits that the settings and the descriptors of this process allow.
    pub fn of(server: &config::Server, workers: &config::Workers) -> Self {
        let most = descriptors::for_connections(descriptors::limit(), workers);
        let connections = server.connections.unwrap_or(most).min(most);
        if server.connections.is_some_and(|wanted| wanted > most) {
            tracing::warn!(most, "server.connections is more than the limit of open files leaves");
        }
        Self {
            connections,
            header_timeout: server.header_timeout,
            body_timeout: server.body_timeout,
            idle_timeout: server.idle_timeout,
        }
    }
}

/// Serves until `stop`; returns when the requests in hand are answered.
///
/// # Cancel safety
///
/// Dropping the future closes all connections.
pub async fn serve(listener: TcpListener, router: Router, limits: Limits, stop: CancellationToken) {
    let connections = Connections::new(limits);
    let mut serving = JoinSet::new();
    let mut logged = None;
    loop {
        let accepted = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        while serving.try_join_next().is_some() {}
        match accepted {
            Ok((stream, _)) => {
                let room = tokio::select! {
                    biased;
                    () = stop.cancelled() => break,
                    room = connections.room() => room,
                };
                stream.set_nodelay(true).ok(); // an error means that it is closed already
                serving.spawn(connection::serve(stream, router.clone(), room, stop.clone()));
            }
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                metrics::counter!("countersign_http_accept_errors_total").increment(1);
                if logged.is_none_or(|at: Instant| at.elapsed() >= LOG_EVERY) {
                    tracing::error!(%error, "Cannot accept connections; the oldest ones give way");
                    logged = Some(Instant::now());
                }
                connections.oldest_gives_way();
                sleep(PAUSE).await;
            }
        }
    }
    drop(listener);
    while serving.join_next().await.is_some() {}
}

/// Returns true if an error is about the connection that would have been accepted, and about no other.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}
