//! The source of Slack's events: Socket Mode, or HTTP requests.

use std::sync::Arc;

use anyhow::{Context as _, bail};
use countersign_config::{Config, SlackMode};
use countersign_core::clock::Clock;
use countersign_slack::{
    Identity, ingress_http,
    ingress_socket::{self, SocketIngress},
    refusal::Refusal,
    sink::Sink,
};
use tokio_util::sync::CancellationToken;

use super::super::http::Health;

/// The source of events.
pub(super) enum Ingress {
    Http,
    Socket(Box<SocketIngress>),
}

impl Ingress {
    /// Returns the state of the connection, if events arrive through one.
    pub(super) fn health(&self) -> Option<Health> {
        match self {
            Self::Socket(socket) => Some(socket.health()),
            Self::Http => None,
        }
    }
}

/// Receives events until `stop`, and cancels `stop` if Slack refuses the bot permanently.
pub(super) async fn receive(ingress: Ingress, stop: CancellationToken) -> Result<(), Refusal> {
    match ingress {
        Ingress::Socket(socket) => socket.run(stop.clone()).await.inspect_err(|_| stop.cancel()),
        Ingress::Http => {
            stop.cancelled().await; // the HTTP server receives the events
            Ok(())
        }
    }
}

/// Returns the source of events, and the routes it needs.
pub(super) fn ingress(
    config: &Config,
    us: Identity,
    sink: Arc<dyn Sink>,
    clock: Arc<dyn Clock>,
) -> anyhow::Result<(Ingress, axum::Router)> {
    match config.slack_mode() {
        SlackMode::Http => {
            let Some(secret) = &config.slack.signing_secret else {
                bail!("neither SLACK_APP_TOKEN (Socket Mode) nor SLACK_SIGNING_SECRET (HTTP) is set");
            };
            Ok((Ingress::Http, ingress_http::router(secret, us, sink)))
        }
        SlackMode::Socket => {
            let Some(token) = config.slack.app_token.clone() else {
                bail!("slack.mode is \"socket\", but SLACK_APP_TOKEN is not set");
            };
            let settings = ingress_socket::Settings {
                connections: config.slack.connections,
                ..ingress_socket::Settings::new(&*config.slack.api_url, token)
            };
            let socket = SocketIngress::new(settings, us, sink, clock).context("cannot set up Socket Mode")?;
            Ok((Ingress::Socket(Box::new(socket)), axum::Router::new()))
        }
    }
}
