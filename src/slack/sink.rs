//! The receiver of deliveries: store, then acknowledge.
//!
//! A [`Sink`] stores a delivery where a crash cannot lose it, and returns. Only then is the delivery acknowledged; its
//! meaning is worked out afterwards. If the sink fails, or takes longer than [`PATIENCE`], nothing is acknowledged and
//! Slack delivers again.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use serde_json::Value;
use tracing::{debug, warn};

use super::{Inbound, UnreadableDelivery};

/// The time a sink may take. Slack gives up after 3 s; the rest is for the way back.
pub const PATIENCE: Duration = Duration::from_secs(2);

/// The receiver of Slack's deliveries.
#[async_trait]
pub trait Sink: Send + Sync {
    /// Stores a delivery. Returning `Ok` is the promise that it cannot be lost any more, or that it is a repeat.
    ///
    /// # Errors
    ///
    /// [`SinkError`] if it is not stored: Slack will deliver it again.
    ///
    /// # Cancel safety
    ///
    /// Dropped after [`PATIENCE`]. It may have been stored then; the repeat is recognised by [`Inbound::dedup`].
    async fn receive(&self, received: Received) -> Result<SinkAnswer, SinkError>;
}

/// A delivery, with the way it came.
#[derive(Clone, Debug, PartialEq)]
pub struct Received {
    /// The delivery's content.
    pub inbound: Inbound,
    /// The transport it came by.
    pub transport: Transport,
    /// Slack's word that it delivered this before. A hint for logs: the first may never have arrived.
    pub retry: Option<Retry>,
}

/// The transports that deliveries come by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// The HTTP Events API.
    Http,
    /// Socket Mode.
    Socket,
}

impl Transport {
    /// Returns the transport in a word, for counters and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Socket => "socket",
        }
    }
}

/// Slack's remarks on a repeat.
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

/// The ways an ingress can answer a delivery.
#[derive(Debug, PartialEq)]
pub(super) enum Verdict {
    /// Acknowledge, with this content.
    Acknowledge(Option<Value>),
    /// Do not acknowledge: Slack delivers again.
    Refuse,
}

/// Hands a delivery to the sink, counts it, and returns whether to acknowledge it.
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
