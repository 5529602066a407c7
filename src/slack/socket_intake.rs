//! The handling of a socket's frames: envelopes are stored and acknowledged, the rest goes to the supervisor.
//!
//! This module knows nothing of connecting; that is [`super::ingress_socket`].

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
    Identity, Inbound, Unreadable, command, event, field, interaction,
    sink::{Retry, Sink, Transport, Verdict, deliver},
};

/// A change of a connection, for its supervisor.
#[derive(Debug, PartialEq)]
pub enum Notice {
    /// Slack is ready to send.
    Hello,
    /// Slack is about to close the connection, for this reason.
    Disconnect(String),
    /// The connection is closed.
    Closed,
}

/// The consequence of one frame.
#[derive(Debug, PartialEq)]
pub enum FrameResult {
    /// The connection changed.
    Notice(Notice),
    /// The envelope was stored; this is its acknowledgement.
    Acknowledge(String),
    /// There is nothing to send back.
    Ignored,
}

/// The intake of envelopes, whichever connection they come by.
pub struct Intake {
    sink: Arc<dyn Sink>,
    us: Identity,
    in_hand: AtomicUsize,
    stop: CancellationToken,
}

impl Intake {
    /// Creates an intake that stores in `sink`.
    pub fn new(sink: Arc<dyn Sink>, us: Identity) -> Self {
        Self { sink, us, in_hand: AtomicUsize::new(0), stop: CancellationToken::new() }
    }

    /// Refuses all envelopes from now on.
    pub(super) fn stop(&self) {
        self.stop.cancel();
    }

    /// Returns true if nothing more is taken.
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.is_cancelled()
    }

    /// Returns true if envelopes are being stored.
    pub(super) fn is_busy(&self) -> bool {
        self.in_hand.load(Ordering::SeqCst) > 0
    }

    /// Reads one text frame. A frame that is not JSON is counted and dropped.
    pub async fn on_frame(&self, frame: &str) -> FrameResult {
        let Ok(frame) = serde_json::from_str::<Value>(frame) else {
            metrics::counter!("countersign_slack_unreadable_total", "transport" => "socket").increment(1);
            warn!(payload_bytes = frame.len(), "Dropped a Socket Mode frame that is not JSON");
            return FrameResult::Ignored;
        };
        match field::text(&frame, "/type") {
            Some("hello") => {
                if let Some(app) = field::text(&frame, "/connection_info/app_id") {
                    self.us.learn_app(app);
                }
                FrameResult::Notice(Notice::Hello)
            }
            Some("disconnect") => {
                FrameResult::Notice(Notice::Disconnect(field::text(&frame, "/reason").unwrap_or("unknown").to_owned()))
            }
            _ => self.on_envelope(&frame).await.map_or(FrameResult::Ignored, FrameResult::Acknowledge),
        }
    }

    /// Stores an envelope and returns its acknowledgement; `None` if it is not to be acknowledged.
    async fn on_envelope(&self, envelope: &Value) -> Option<String> {
        let id = field::text(envelope, "/envelope_id")?;
        let _in_hand = InHand::one(&self.in_hand);
        let verdict = if self.stop.is_cancelled() {
            Verdict::Refuse
        } else {
            deliver(&self.sink, read(envelope, &self.us), Transport::Socket, retry(envelope)).await
        };
        let Verdict::Acknowledge(payload) = verdict else { return None };
        let accepts = envelope["accepts_response_payload"] == true;
        Some(match payload.filter(|_| accepts) {
            Some(payload) => json!({ "envelope_id": id, "payload": payload }).to_string(),
            None => json!({ "envelope_id": id }).to_string(),
        })
    }
}

/// A count of one for an envelope, for as long as it is being stored, however that ends.
struct InHand<'a>(&'a AtomicUsize);

impl<'a> InHand<'a> {
    fn one(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl Drop for InHand<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Reads the content of an envelope.
fn read(envelope: &Value, us: &Identity) -> Result<Inbound, Unreadable> {
    let payload = &envelope["payload"];
    match field::text(envelope, "/type") {
        Some("events_api") => event::read(payload, us),
        Some("interactive") => interaction::read(payload, us),
        Some("slash_commands") => command::read(payload, us),
        _ => Err(Unreadable("envelope type")),
    }
}

fn retry(envelope: &Value) -> Option<Retry> {
    let attempt = envelope["retry_attempt"].as_u64().filter(|attempt| *attempt > 0)?;
    Some(Retry { attempt, reason: field::text(envelope, "/retry_reason").unwrap_or_default().to_owned() })
}

/// The library's listener for the frames of one connection.
pub(super) struct Listener {
    pub(super) intake: Arc<Intake>,
    pub(super) notices: mpsc::UnboundedSender<Notice>,
}

impl Listener {
    fn notify(&self, notice: Notice) {
        // Nobody listens any more when the connection is being let go.
        self.notices.send(notice).ok();
    }
}

#[async_trait]
impl SlackSocketModeClientListener for Listener {
    async fn on_message(&self, _: &SlackSocketModeWssClientId, frame: String) -> Option<String> {
        match self.intake.on_frame(&frame).await {
            FrameResult::Notice(notice) => self.notify(notice),
            FrameResult::Acknowledge(answer) => return Some(answer),
            FrameResult::Ignored => {}
        }
        None
    }

    async fn on_error(&self, _: Box<dyn StdError + Send + Sync>) {
        debug!("The Socket Mode transport reports an error"); // its text may hold what was received
    }

    async fn on_disconnect(&self, _: &SlackSocketModeWssClientId) {
        self.notify(Notice::Closed);
    }
}
