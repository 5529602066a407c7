//! The receiver of deliveries, which stores them before they are acknowledged.
//!
//! A [`Sink`] stores a delivery so that a crash cannot lose it. Only then is the delivery acknowledged; it is processed
//! afterwards. If the sink fails or takes longer than [`PATIENCE`], the delivery is not acknowledged, and Slack sends
//! it again.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use serde_json::Value;
use tracing::{debug, warn};

use super::{Inbound, UnreadableDelivery};

/// The time limit of a sink. Slack gives up after 3 s; the rest is for transmission.
pub const PATIENCE: Duration = Duration::from_secs(2);

/// The receiver of Slack's deliveries.
#[async_trait]
pub trait Sink: Send + Sync {
    /// Stores a delivery. `Ok` guarantees that the delivery cannot be lost any more, or that it is a repeat.
    ///
    /// # Errors
    ///
    /// [`SinkError`] if the delivery is not stored. Slack will then send it again.
    ///
    /// # Cancel safety
    ///
    /// The future is dropped after [`PATIENCE`]. The delivery may be stored nevertheless; Slack's repeat is then
    /// recognised by [`Inbound::dedup`].
    async fn receive(&self, received: Received) -> Result<SinkAnswer, SinkError>;
}

/// A delivery and its transport.
#[derive(Clone, Debug, PartialEq)]
pub struct Received {
    /// The content of the delivery.
    pub inbound: Inbound,
    /// The transport by which it arrived.
    pub transport: Transport,
    /// The details of a repeat, according to Slack. Only for logs, since earlier attempts may not have arrived.
    pub retry: Option<Retry>,
}

/// The transports of deliveries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// The HTTP Events API.
    Http,
    /// Socket Mode.
    Socket,
}

impl Transport {
    /// Returns the name of the transport, for metrics and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Socket => "socket",
        }
    }
}

/// The details of a repeated delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retry {
    /// The number of the repeat, from 1.
    pub attempt: u64,
    /// The reason, such as `http_timeout`.
    pub reason: String,
}

/// The content sent back with the acknowledgement.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SinkAnswer {
    /// The `response_action` of a modal, or the immediate answer to a command. Usually nothing.
    pub payload: Option<Value>,
}

impl SinkAnswer {
    /// Returns an acknowledgement without content.
    pub fn empty() -> Self {
        Self::default()
    }

    /// Returns an acknowledgement with content.
    pub fn with(payload: Value) -> Self {
        Self { payload: Some(payload) }
    }
}

/// The failure to store a delivery.
#[derive(Debug, thiserror::Error)]
#[error("the delivery could not be stored")]
pub struct SinkError(#[source] pub Box<dyn std::error::Error + Send + Sync>);

/// The ways in which an ingress can answer a delivery.
#[derive(Debug, PartialEq)]
pub(super) enum Verdict {
    /// Acknowledge the delivery, with this content.
    Acknowledge(Option<Value>),
    /// Do not acknowledge the delivery, so that Slack sends it again.
    Refuse,
}

/// Passes a delivery to the sink, counts it, and returns the answer for Slack.
pub(super) async fn deliver(
    sink: &Arc<dyn Sink>,
    read: Result<Inbound, UnreadableDelivery>,
    transport: Transport,
    retry: Option<Retry>,
) -> Verdict {
    let by = transport.as_str();
    let inbound = match read {
        Ok(Inbound::Ignored(why)) => {
            metrics::counter!("countersign_slack_ignored_total", "transport" => by, "why" => why).increment(1);
            return Verdict::Acknowledge(None);
        }
        Ok(inbound) => inbound,
        Err(unreadable) => {
            metrics::counter!("countersign_slack_unreadable_total", "transport" => by).increment(1);
            warn!(transport = by, "Dropped a delivery: {unreadable}");
            return Verdict::Acknowledge(None);
        }
    };
    let kind = inbound.kind();
    metrics::counter!("countersign_slack_received_total", "transport" => by, "kind" => kind).increment(1);
    if let Some(Retry { attempt, reason }) = &retry {
        metrics::counter!("countersign_slack_retries_total", "transport" => by).increment(1);
        debug!(transport = by, kind, attempt, reason, "Slack delivers again");
    }
    let failure = match tokio::time::timeout(PATIENCE, sink.receive(Received { inbound, transport, retry })).await {
        Ok(Ok(answer)) => return Verdict::Acknowledge(answer.payload),
        Ok(Err(error)) => countersign_core::cause::chain(&error),
        Err(_) => format!("no answer from the store within {} s", PATIENCE.as_secs()),
    };
    metrics::counter!("countersign_slack_refused_total", "transport" => by, "kind" => kind).increment(1);
    warn!(transport = by, kind, "Did not acknowledge a delivery: {failure}");
    Verdict::Refuse
}
