//! Deliveries to the app: the attempts and redeliveries, over HTTP or sockets.
//!
//! Events are delivered until they are acknowledged or no redeliveries are left. Interactions and
//! commands are delivered once, because a person is waiting and sees an error after the deadline.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};

use super::{Mode, http_delivery, ledger::Attempt, server::Server};

/// The maximum time for which [`Fault::Reorder`](super::faults::Fault::Reorder) holds back events
/// until it has enough of them.
const HELD_BACK: Duration = Duration::from_secs(2);

/// A delivery to the app.
#[derive(Debug)]
pub(super) struct Delivery {
    pub(super) kind: Kind,
    /// The event id, or the trigger.
    pub(super) id: String,
    /// The type of the event or interaction, or the command.
    pub(super) about: String,
    pub(super) payload: Value,
    /// The receiver that waits for the app's answer.
    pub(super) answer: Option<oneshot::Sender<Option<Value>>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Event,
    Interaction,
    Command,
}

impl Kind {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Event => "event",
            Self::Interaction => "interaction",
            Self::Command => "command",
        }
    }
}

/// The outcome of an attempt.
#[derive(Clone, Debug)]
pub(super) enum Outcome {
    /// The app acknowledged, with this content if any.
    Acknowledged(Option<Value>),
    /// The attempt failed for this reason. `again` is true if the delivery may be repeated.
    Failed { reason: String, again: bool },
}

impl Outcome {
    pub(super) fn failed(reason: &str) -> Self {
        Self::Failed { reason: reason.to_owned(), again: true }
    }
}

/// The number of an attempt, and the reason for repeating the delivery.
#[derive(Clone, Debug, Default)]
pub(super) struct Retry {
    /// 0 for the first delivery.
    pub(super) number: u32,
    pub(super) reason: String,
}

/// Starts the queued deliveries in order, each in a separate task, until the server stops.
pub(super) async fn dispatch(server: Arc<Server>, mut queue: mpsc::UnboundedReceiver<Delivery>) {
    let mut held: Vec<Delivery> = Vec::new();
    let mut release_at = Instant::now();
    loop {
        let next = tokio::select! {
            next = queue.recv() => next,
            () = tokio::time::sleep_until(release_at), if !held.is_empty() => {
                server.faults().reorder = 0;
                release(&server, &mut held);
                continue;
            }
            () = server.stop.cancelled() => return,
        };
        let Some(delivery) = next else { return };
        let wanted = server.faults().reorder;
        if wanted == 0 || delivery.kind != Kind::Event {
            start(&server, delivery);
            continue;
        }
        if held.is_empty() {
            release_at = Instant::now() + HELD_BACK;
        }
        held.push(delivery);
        if held.len() >= wanted {
            server.faults().reorder = 0;
            release(&server, &mut held);
        }
    }
}

fn release(server: &Arc<Server>, held: &mut Vec<Delivery>) {
    for delivery in held.drain(..).rev() {
        start(server, delivery);
    }
}

fn start(server: &Arc<Server>, mut delivery: Delivery) {
    let (team_null, twice, foreign) = {
        let faults = server.faults();
        (faults.team_null, faults.deliver_twice, (faults.foreign_app.clone(), faults.foreign_team.clone()))
    };
    make_foreign(&mut delivery, foreign);
    if team_null && delivery.kind == Kind::Interaction {
        delivery.payload["team"] = Value::Null;
        delivery.payload["enterprise"] = json!({ "id": "E1", "name": "Learning Organisation" });
        delivery.payload["is_enterprise_install"] = json!(true);
    }
    let copy = twice.then(|| Delivery {
        kind: delivery.kind,
        id: delivery.id.clone(),
        about: delivery.about.clone(),
        payload: delivery.payload.clone(),
        answer: None,
    });
    for delivery in std::iter::once(delivery).chain(copy) {
        // The frame is queued on the socket before the next delivery starts, so that the order is
        // kept.
        let ticket = server.sockets.line_up(server, &delivery);
        let server = server.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = carry(&server, delivery, ticket) => {}
                () = server.stop.cancelled() => {}
            }
        });
    }
}

/// Replaces the ids of the app and the workspace in a delivery.
fn make_foreign(delivery: &mut Delivery, (app, team): (Option<String>, Option<String>)) {
    let payload = &mut delivery.payload;
    if let Some(app) = app {
        payload["api_app_id"] = json!(app);
    }
    let Some(team) = team else { return };
    match delivery.kind {
        Kind::Event => {
            payload["team_id"] = json!(team);
            payload["context_team_id"] = json!(team);
            payload["authorizations"][0]["team_id"] = json!(team);
        }
        Kind::Interaction => {
            payload["team"]["id"] = json!(team);
            payload["user"]["team_id"] = json!(team);
        }
        Kind::Command => payload["team_id"] = json!(team),
    }
}

async fn carry(server: &Arc<Server>, delivery: Delivery, mut ticket: Option<super::socket::Ticket>) {
    let mut retry = Retry::default();
    let again: &[Duration] = if delivery.kind == Kind::Event { &server.options.redeliver_after } else { &[] };
    let mut waits = again.iter();
    let answer = loop {
        let (at, started) = (server.now(), Instant::now());
        let outcome = match &server.options.mode {
            Mode::Http { signing_secret, .. } => {
                http_delivery::attempt(server, &delivery, &retry, signing_secret).await
            }
            Mode::Socket => server.sockets.attempt(server, &delivery, &retry, ticket.take()).await,
        };
        let (acknowledged_after_ms, failure) = match &outcome {
            Outcome::Acknowledged(_) => (Some(u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX)), None),
            Outcome::Failed { reason, .. } => (None, Some(reason.clone())),
        };
        server.ledger.delivered(Attempt {
            at,
            kind: delivery.kind.as_str().to_owned(),
            id: delivery.id.clone(),
            about: delivery.about.clone(),
            attempt: retry.number + 1,
            acknowledged_after_ms,
            failure,
            payload: delivery.payload.clone(),
        });
        match outcome {
            Outcome::Acknowledged(answer) => break Some(answer),
            Outcome::Failed { again: false, .. } => break None,
            Outcome::Failed { reason, .. } => {
                let Some(wait) = waits.next() else { break None };
                retry = Retry { number: retry.number + 1, reason };
                tokio::time::sleep(*wait).await;
            }
        }
    };
    if let (Some(sender), Some(answer)) = (delivery.answer, answer) {
        sender.send(answer).ok();
    }
}
