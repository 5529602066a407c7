//! The HTTP server for health, metrics and, without Socket Mode, Slack's requests.
//!
//! Anyone on the network may open connections here, and clients may be slow, silent or numerous. So each wait for a
//! client has a time limit, and the number of open connections is limited, so that descriptors are left for everything
//! else. At that limit the connection whose client has kept us waiting longest is closed ([`connections`]), so a new
//! one is always served: `/healthz` answers and Slack is acknowledged even while other clients hold as many connections
//! as they can.
//!
//! `axum::serve` was rejected as a design, since it has none of these limits; so was relying on a proxy in front, which
//! not every installation has, and which would have to be configured well. Only HTTP/1.1 is supported; Slack and every
//! proxy speak it.

mod connection;
mod connections;
pub mod limits;
mod watched;

use std::{io, time::Duration};

use axum::Router;
use tokio::{
    net::TcpListener,
    task::JoinSet,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;

use self::{
    connections::Connections,
    limits::{LOG_EVERY, Limits},
};

/// The pause after a connection could not be accepted, for example for lack of descriptors.
const PAUSE: Duration = Duration::from_millis(50);

/// Serves until `stop`. Returns when the requests in progress are answered.
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
                stream.set_nodelay(true).ok(); // an error means that the connection is already closed
                serving.spawn(connection::serve(stream, router.clone(), room, stop.clone()));
            }
            Err(error) if concerns_one_connection(&error) => {}
            Err(error) => {
                metrics::counter!("countersign_http_accept_errors_total").increment(1);
                if logged.is_none_or(|at: Instant| at.elapsed() >= LOG_EVERY) {
                    tracing::error!(%error, "Cannot accept connections; the longest-waiting ones are closed");
                    logged = Some(Instant::now());
                }
                connections.evict_oldest();
                sleep(PAUSE).await;
            }
        }
    }
    drop(listener);
    while serving.join_next().await.is_some() {}
}

/// Returns true if an error concerns only the connection that was being accepted.
fn concerns_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}
