//! Handles the frames of a Socket Mode connection: envelopes are stored and acknowledged, and changes in the connection
//! are reported to its supervisor.
//!
//! This module does not know how to connect; [`super::ingress_socket`] does.

use std::{
    error::Error as StdError,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use async_trait::async_trait;
use serde_json::{Value, json};
use slack_morphism::{SlackSocketModeClientListener, SlackSocketModeWssClientId};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use super::{
    Identity, Inbound, UnreadableDelivery, command, event, field, interaction,
    sink::{Retry, Sink, Transport, Verdict, deliver},
};

/// A change in the state of a connection, reported to its supervisor.
#[derive(Debug, PartialEq)]
pub enum ConnectionEvent {
    /// Slack is ready to send envelopes.
    Hello,
    /// Slack is about to close the connection, for the given reason.
    Disconnect(String),
    /// The connection was closed.
    Closed,
}

/// The result of handling one frame.
#[derive(Debug, PartialEq)]
pub enum FrameResult {
    /// The frame reports a change in the connection.
    Connection(ConnectionEvent),
    /// The envelope was stored; the text is the acknowledgement to send.
    Acknowledge(String),
    /// There is nothing to send back.
    Ignored,
}

/// Stores the envelopes of all Socket Mode connections, and counts those that are being stored.
pub struct Intake {
    sink: Arc<dyn Sink>,
    identity: Identity,
    storing: AtomicUsize,
    stop: CancellationToken,
}

impl Intake {
    /// Creates an intake that stores in `sink` the envelopes that are for the app `identity`.
    pub fn new(sink: Arc<dyn Sink>, identity: Identity) -> Self {
        Self { sink, identity, storing: AtomicUsize::new(0), stop: CancellationToken::new() }
    }

    /// Refuses all envelopes from now on.
    pub(super) fn stop(&self) {
        self.stop.cancel();
    }

    /// Returns true if all envelopes are refused.
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.is_cancelled()
    }

    /// Returns true if any envelope is being stored.
    pub(super) fn is_busy(&self) -> bool {
        self.storing.load(Ordering::SeqCst) > 0
    }

    /// Handles one text frame. A frame that is not JSON is counted and dropped.
    pub async fn on_frame(&self, frame: &str) -> FrameResult {
        let Ok(frame) = serde_json::from_str::<Value>(frame) else {
            metrics::counter!("countersign_slack_unreadable_total", "transport" => "socket").increment(1);
            warn!(payload_bytes = frame.len(), "Dropped a Socket Mode frame that is not JSON");
            return FrameResult::Ignored;
        };
        match field::text(&frame, "/type") {
            Some("hello") => {
                if let Some(app) = field::text(&frame, "/connection_info/app_id") {
                    self.identity.learn_app(app);
                }
                FrameResult::Connection(ConnectionEvent::Hello)
            }
            Some("disconnect") => FrameResult::Connection(ConnectionEvent::Disconnect(
                field::text(&frame, "/reason").unwrap_or("unknown").to_owned(),
            )),
            _ => self.on_envelope(&frame).await.map_or(FrameResult::Ignored, FrameResult::Acknowledge),
        }
    }

    /// Stores an envelope and returns its acknowledgement, or `None` if it must not be acknowledged.
    async fn on_envelope(&self, envelope: &Value) -> Option<String> {
        let id = field::text(envelope, "/envelope_id")?;
        let _storing = StoringGuard::new(&self.storing);
        let verdict = if self.stop.is_cancelled() {
            Verdict::Refuse
        } else {
            deliver(&self.sink, parse(envelope, &self.identity), Transport::Socket, retry(envelope)).await
        };
        let Verdict::Acknowledge(payload) = verdict else { return None };
        let accepts = envelope["accepts_response_payload"] == true;
        Some(match payload.filter(|_| accepts) {
            Some(payload) => json!({ "envelope_id": id, "payload": payload }).to_string(),
            None => json!({ "envelope_id": id }).to_string(),
        })
    }
}

/// A guard that counts an envelope as being stored until it is dropped.
struct StoringGuard<'a>(&'a AtomicUsize);

impl<'a> StoringGuard<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl Drop for StoringGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Parses the payload of an envelope.
fn parse(envelope: &Value, identity: &Identity) -> Result<Inbound, UnreadableDelivery> {
    let payload = &envelope["payload"];
    match field::text(envelope, "/type") {
        Some("events_api") => event::read(payload, identity),
        Some("interactive") => interaction::read(payload.clone().into(), identity),
        Some("slash_commands") => command::read(payload, identity),
        _ => Err(UnreadableDelivery("envelope type")),
    }
}

/// Returns the details of a repeated delivery; `None` for a first delivery.
fn retry(envelope: &Value) -> Option<Retry> {
    let attempt = envelope["retry_attempt"].as_u64().filter(|attempt| *attempt > 0)?;
    Some(Retry { attempt, reason: field::text(envelope, "/retry_reason").unwrap_or_default().to_owned() })
}

/// The listener that the Slack library calls for each frame of one connection.
pub(super) struct Listener {
    pub(super) intake: Arc<Intake>,
    pub(super) events: mpsc::UnboundedSender<ConnectionEvent>,
}

impl Listener {
    fn notify(&self, event: ConnectionEvent) {
        // The supervisor no longer receives once it has given up the connection.
        self.events.send(event).ok();
    }
}

#[async_trait]
impl SlackSocketModeClientListener for Listener {
    async fn on_message(&self, _: &SlackSocketModeWssClientId, frame: String) -> Option<String> {
        match self.intake.on_frame(&frame).await {
            FrameResult::Connection(event) => self.notify(event),
            FrameResult::Acknowledge(acknowledgement) => return Some(acknowledgement),
            FrameResult::Ignored => {}
        }
        None
    }

    async fn on_error(&self, _: Box<dyn StdError + Send + Sync>) {
        debug!("The Socket Mode transport reports an error"); // its text may hold what was received
    }

    async fn on_disconnect(&self, _: &SlackSocketModeWssClientId) {
        self.notify(ConnectionEvent::Closed);
    }
}
