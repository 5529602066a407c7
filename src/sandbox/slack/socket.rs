//! Socket Mode: the connections of the app, and attempts to deliver over them.
//!
//! Envelopes are sent on the connections in turn, and can be acknowledged on any of them. If a
//! connection closes, its envelopes without an acknowledgement have failed, and `delivery`
//! redelivers them. If there is no connection, an event waits for one.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    extract::{Query, Request, State},
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::timeout,
};

use super::{
    Mode,
    delivery::{Delivery, Kind, Outcome, Retry},
    faults::Faults,
    server::{Server, locked},
};
use crate::web_socket::{self, Frame, WebSocket};

const MAX_CONNECTIONS: usize = 10;
/// The time after which a connection is closed after a warning.
const AFTER_WARNING: Duration = Duration::from_secs(10);

/// All connections.
#[derive(Default)]
pub(super) struct Sockets {
    state: Mutex<Connections>,
    open: watch::Sender<usize>,
}

#[derive(Default)]
struct Connections {
    tickets: BTreeSet<String>,
    open: Vec<Connection>,
    turn: usize,
    last_id: u64,
    waiting: BTreeMap<String, Waiting>,
    /// A disconnect that is sent with the next envelopes after it: its reason, the socket once it
    /// is chosen, and the number of envelopes left.
    armed: Option<(String, Option<u64>, usize)>,
}

struct Connection {
    id: u64,
    orders: mpsc::UnboundedSender<Order>,
    leaving: bool,
}

struct Waiting {
    connection: u64,
    acknowledged: oneshot::Sender<Option<Value>>,
}

enum Order {
    Send(String),
    CloseAfter(Duration),
    Break,
}

/// An envelope that was sent on a socket.
pub(super) struct Ticket {
    envelope: String,
    acknowledged: oneshot::Receiver<Option<Value>>,
}

impl Sockets {
    /// Returns the address for a new connection, which is valid once.
    pub(super) fn address(&self, server: &Server) -> String {
        let ticket = uuid::Uuid::new_v4().simple().to_string();
        locked(&self.state).tickets.insert(ticket.clone());
        format!("{}/link?ticket={ticket}&app_id=A1", server.url.replacen("http", "ws", 1))
    }

    /// Returns the number of open connections.
    pub(super) fn count(&self) -> usize {
        *self.open.borrow()
    }

    /// Sends a delivery on a socket at once, if there is one.
    pub(super) fn line_up(&self, server: &Server, delivery: &Delivery) -> Option<Ticket> {
        matches!(server.options.mode, Mode::Socket).then(|| self.put(delivery, &Retry::default()))?
    }

    /// Waits for a socket if necessary, sends the envelope and waits for the acknowledgement.
    pub(super) async fn attempt(
        &self,
        server: &Server,
        delivery: &Delivery,
        retry: &Retry,
        ticket: Option<Ticket>,
    ) -> Outcome {
        let ticket = match ticket {
            Some(ticket) => ticket,
            None => {
                let put = async {
                    let mut open = self.open.subscribe();
                    loop {
                        if let Some(ticket) = self.put(delivery, retry) {
                            return ticket;
                        }
                        open.changed().await.ok();
                    }
                };
                match delivery.kind {
                    Kind::Event => put.await,
                    Kind::Interaction | Kind::Command => match timeout(server.options.answer_within, put).await {
                        Ok(ticket) => ticket,
                        Err(_) => return Outcome::failed("connection_failed"),
                    },
                }
            }
        };
        let outcome = match timeout(server.options.answer_within, ticket.acknowledged).await {
            Ok(Ok(answer)) => Outcome::Acknowledged(answer),
            Ok(Err(_)) => Outcome::failed("connection_failed"),
            Err(_) => Outcome::failed("timeout"),
        };
        locked(&self.state).waiting.remove(&ticket.envelope);
        outcome
    }

    /// Sends `disconnect` now, or just before the next `queued` envelopes.
    pub(super) fn disconnect(&self, reason: &str, queued: usize, linger: Duration) {
        let mut state = locked(&self.state);
        if queued > 0 {
            state.armed = Some((reason.to_owned(), None, queued));
            return;
        }
        for connection in &mut state.open {
            leave(connection, reason, linger);
        }
    }

    /// Closes all connections without a close frame.
    pub(super) fn break_all(&self) {
        for connection in &locked(&self.state).open {
            connection.orders.send(Order::Break).ok();
        }
    }

    fn put(&self, delivery: &Delivery, retry: &Retry) -> Option<Ticket> {
        let mut state = locked(&self.state);
        let envelope = uuid::Uuid::new_v4().to_string();
        let kind = match delivery.kind {
            Kind::Event => "events_api",
            Kind::Interaction => "interactive",
            Kind::Command => "slash_commands",
        };
        let accepts = match delivery.kind {
            Kind::Event => false,
            Kind::Interaction => {
                delivery.payload["type"] == "view_submission" || delivery.payload["type"] == "block_suggestion"
            }
            Kind::Command => true,
        };
        let frame = json!({
            "envelope_id": envelope, "type": kind, "payload": delivery.payload, "accepts_response_payload": accepts,
            "retry_attempt": retry.number, "retry_reason": retry.reason,
        });
        let pinned = state.armed.as_ref().and_then(|(_, connection, _)| *connection);
        let index = match pinned {
            Some(id) => state.open.iter().position(|connection| connection.id == id)?,
            None => {
                let ready: Vec<usize> =
                    state.open.iter().enumerate().filter(|(_, c)| !c.leaving).map(|(index, _)| index).collect();
                let turn = state.turn;
                state.turn = turn.wrapping_add(1);
                *ready.get(turn.checked_rem(ready.len())?)?
            }
        };
        let connection = state.open[index].id;
        let mut closing = false;
        if let Some((reason, pinned, left)) = &mut state.armed {
            let first = pinned.is_none().then(|| disconnect_frame(reason));
            *pinned = Some(connection);
            *left -= 1;
            closing = *left == 0;
            if let Some(first) = first {
                state.open[index].orders.send(Order::Send(first)).ok();
            }
        }
        let (acknowledged, receiver) = oneshot::channel();
        state.waiting.insert(envelope.clone(), Waiting { connection, acknowledged });
        state.open[index].orders.send(Order::Send(frame.to_string())).ok();
        if closing {
            state.armed = None;
            state.open[index].leaving = true;
            state.open[index].orders.send(Order::CloseAfter(AFTER_WARNING)).ok();
        }
        Some(Ticket { envelope, acknowledged: receiver })
    }

    fn acknowledged(&self, frame: &str) {
        let Ok(frame) = serde_json::from_str::<Value>(frame) else { return };
        let Some(envelope) = frame["envelope_id"].as_str() else { return };
        if let Some(waiting) = locked(&self.state).waiting.remove(envelope) {
            let answer =
                Some(frame["payload"].clone()).filter(|payload| payload.as_object().is_some_and(|p| !p.is_empty()));
            waiting.acknowledged.send(answer).ok();
        }
    }

    fn enter(&self) -> Option<(u64, mpsc::UnboundedReceiver<Order>, usize)> {
        let mut state = locked(&self.state);
        if state.open.len() >= MAX_CONNECTIONS {
            return None;
        }
        let (orders, receiver) = mpsc::unbounded_channel();
        state.last_id += 1;
        let id = state.last_id;
        state.open.push(Connection { id, orders, leaving: false });
        let count = state.open.len();
        Some((id, receiver, count))
    }

    fn leave(&self, id: u64) {
        let mut state = locked(&self.state);
        state.open.retain(|connection| connection.id != id);
        state.waiting.retain(|_, waiting| waiting.connection != id);
        if state.armed.as_ref().is_some_and(|(_, connection, _)| *connection == Some(id)) {
            state.armed = None;
        }
        let count = state.open.len();
        drop(state);
        self.open.send_replace(count);
    }
}

fn leave(connection: &mut Connection, reason: &str, linger: Duration) {
    connection.leaving = reason != "warning";
    connection.orders.send(Order::Send(disconnect_frame(reason))).ok();
    let after = if reason == "warning" { AFTER_WARNING } else { linger };
    connection.orders.send(Order::CloseAfter(after)).ok();
}

fn disconnect_frame(reason: &str) -> String {
    json!({ "type": "disconnect", "reason": reason, "debug_info": { "host": "sandbox" } }).to_string()
}

/// `GET /link?ticket=…`
pub(super) async fn link(
    State(server): State<Arc<Server>>,
    Query(query): Query<BTreeMap<String, String>>,
    request: Request,
) -> Response {
    let known = query.get("ticket").is_some_and(|ticket| locked(&server.sockets.state).tickets.remove(ticket));
    if !known {
        return (StatusCode::NOT_FOUND, "this address was used, or was never given out").into_response();
    }
    web_socket::accept(request, move |socket| converse(server, socket))
}

async fn converse(server: Arc<Server>, socket: WebSocket) {
    let (mut out, mut incoming) = socket.split();
    let silent = Faults::take_one(&mut server.faults().hang_hello);
    if silent {
        let until_closed = async { while let Some(Ok(_)) = incoming.next().await {} };
        tokio::select! { () = until_closed => {}, () = server.stop.cancelled() => {} }
        return;
    }
    let Some((id, mut orders, count)) = server.sockets.enter() else {
        out.send(Frame::text(disconnect_frame("too_many_websockets"))).await.ok();
        out.close().await.ok();
        return;
    };
    let hello = json!({
        "type": "hello", "num_connections": count, "connection_info": { "app_id": "A1" },
        "debug_info": { "host": "sandbox", "approximate_connection_time": 18_060 },
    });
    if out.send(Frame::text(hello.to_string())).await.is_ok() {
        server.sockets.open.send_replace(count);
        let mut ping = tokio::time::interval(server.options.ping_every);
        ping.tick().await;
        let closing = tokio::time::sleep(Duration::MAX / 4);
        tokio::pin!(closing);
        loop {
            let sent = tokio::select! {
                order = orders.recv() => match order {
                    Some(Order::Send(frame)) => out.send(Frame::text(frame)).await,
                    Some(Order::CloseAfter(after)) => {
                        closing.as_mut().reset(tokio::time::Instant::now() + after);
                        Ok(())
                    }
                    Some(Order::Break) | None => break,
                },
                frame = incoming.next() => match frame {
                    Some(Ok(Frame::Text(text))) => {
                        server.sockets.acknowledged(&text);
                        Ok(())
                    }
                    Some(Ok(Frame::Close(_)) | Err(_)) | None => break,
                    Some(Ok(_)) => Ok(()),
                },
                _ = ping.tick() => out.send(Frame::Ping("Ping from sandbox".into())).await,
                () = &mut closing => {
                    out.close().await.ok();
                    break;
                }
                () = server.stop.cancelled() => {
                    out.close().await.ok();
                    break;
                }
            };
            if sent.is_err() {
                break;
            }
        }
    }
    server.sockets.leave(id);
}
