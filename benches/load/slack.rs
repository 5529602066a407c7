//! A light stand-in for Slack: it answers what the bot asks of it and tells whoever waits for a thread what was said
//! there, with the moment at which it came.
//!
//! The sandbox's workspace keeps every message with its history, renders it, checks it and writes a ledger: right for
//! tests, and more work than the bot's own. This one remembers only which message belongs to which thread.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use axum::{
    Json, Router,
    body::Bytes,
    extract::{Path, Query, Request, State},
    response::{IntoResponse as _, Response},
    routing::{any, post},
};
use countersign_sandbox::web_socket::{self, Frame, WebSocket};
use futures_util::{SinkExt as _, StreamExt as _};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{
    net::TcpListener,
    sync::{mpsc, oneshot},
};

/// The channel of all messages.
pub(crate) const CHANNEL: &str = "C1";

/// The bot's user.
pub(crate) const BOT: &str = "U0BOT";

/// A message that the bot posted or updated.
#[derive(Clone, Debug)]
pub(crate) struct Heard {
    pub(crate) at: Instant,
    pub(crate) ts: String,
    /// The thread, if it is a reply.
    pub(crate) root: Option<String>,
    /// True if it is an update.
    pub(crate) edit: bool,
    pub(crate) text: String,
    /// The block and the value of the button that approves, if there is one.
    pub(crate) approve: Option<(String, String)>,
    /// The same of the button that asks for the same change again.
    pub(crate) again: Option<(String, String)>,
}

/// The running stand-in.
#[derive(Clone)]
pub(crate) struct Slack(Arc<Inner>);

struct Inner {
    address: SocketAddr,
    last_ts: AtomicU64,
    calls: AtomicU64,
    threads: Mutex<HashMap<String, mpsc::UnboundedSender<Heard>>>,
    /// The receivers of all messages.
    everything: Mutex<Option<mpsc::UnboundedSender<Heard>>>,
    /// The thread of each message.
    roots: Mutex<HashMap<String, String>>,
    sockets: Mutex<Sockets>,
    /// The receivers of the answer to a command, or of a Home tab.
    expected: Mutex<HashMap<String, oneshot::Sender<Instant>>>,
}

#[derive(Default)]
struct Sockets {
    open: Vec<mpsc::UnboundedSender<String>>,
    turn: usize,
    last_envelope: u64,
    waiting: HashMap<String, oneshot::Sender<()>>,
}

/// The fields of a message that are read.
#[derive(Deserialize)]
struct Posted {
    #[serde(default)]
    thread_ts: Option<String>,
    #[serde(default)]
    ts: Option<String>,
    #[serde(default)]
    text: String,
    #[serde(default)]
    blocks: Vec<Block>,
}

#[derive(Deserialize)]
struct Block {
    #[serde(default)]
    block_id: Option<String>,
    #[serde(default)]
    elements: Vec<Element>,
}

#[derive(Deserialize)]
struct Element {
    #[serde(default)]
    action_id: Option<String>,
    #[serde(default)]
    value: Option<String>,
}

impl Slack {
    /// Listens on a free port.
    pub(crate) async fn start() -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let slack = Self(Arc::new(Inner {
            address: listener.local_addr()?,
            last_ts: AtomicU64::new(1_767_225_600_000_000),
            calls: AtomicU64::new(0),
            threads: Mutex::default(),
            everything: Mutex::default(),
            roots: Mutex::default(),
            sockets: Mutex::default(),
            expected: Mutex::default(),
        }));
        let router = Router::new()
            .route("/api/{method}", post(on_call).get(on_call))
            .route("/link", any(on_link))
            .route("/response/{id}", post(on_response))
            .with_state(slack.clone());
        let listener = axum::serve::ListenerExt::tap_io(listener, |stream| {
            stream.set_nodelay(true).ok();
        });
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(slack)
    }

    /// Returns its address.
    pub(crate) fn api_url(&self) -> String {
        format!("http://{}/api/", self.0.address)
    }

    /// Returns the number of calls that it answered.
    pub(crate) fn calls(&self) -> u64 {
        self.0.calls.load(Ordering::Relaxed)
    }

    /// Returns a timestamp that no message had before.
    pub(crate) fn fresh_ts(&self) -> String {
        let at = self.0.last_ts.fetch_add(100, Ordering::Relaxed);
        format!("{}.{:06}", at / 1_000_000, at % 1_000_000)
    }

    /// Listens to a thread until the receiver is dropped.
    pub(crate) fn listen(&self, root: &str) -> mpsc::UnboundedReceiver<Heard> {
        let (heard, hears) = mpsc::unbounded_channel();
        self.0.threads.lock().expect("nobody panics with the lock").insert(root.to_owned(), heard);
        hears
    }

    /// Listens to all messages from now on, also to those that begin threads.
    pub(crate) fn listen_to_all(&self) -> mpsc::UnboundedReceiver<Heard> {
        let (heard, hears) = mpsc::unbounded_channel();
        *self.0.everything.lock().expect("nobody panics with the lock") = Some(heard);
        hears
    }

    /// Learns which thread a message belongs to, one that was forgotten.
    pub(crate) fn learns(&self, message: &str, root: &str) {
        self.0.roots.lock().expect("nobody panics with the lock").insert(message.to_owned(), root.to_owned());
    }

    /// Forgets a thread.
    pub(crate) fn forget(&self, root: &str) {
        self.0.threads.lock().expect("nobody panics with the lock").remove(root);
        self.0.roots.lock().expect("nobody panics with the lock").retain(|_, of| of != root);
    }

    /// Returns the address for the answer to a command.
    pub(crate) fn response_url(&self, id: &str) -> String {
        format!("http://{}/response/{id}", self.0.address)
    }

    /// Returns a receiver for the time at which the answer to a command, or a person's Home tab, arrives.
    pub(crate) fn expects(&self, id: &str) -> oneshot::Receiver<Instant> {
        let (arrived, waits) = oneshot::channel();
        self.0.expected.lock().expect("nobody panics with the lock").insert(id.to_owned(), arrived);
        waits
    }

    fn arrived(&self, id: &str) {
        if let Some(waits) = self.0.expected.lock().expect("nobody panics with the lock").remove(id) {
            waits.send(Instant::now()).ok(); // an error means that nobody waits any more
        }
    }

    /// Returns the number of connections that the bot has opened.
    pub(crate) fn sockets(&self) -> usize {
        self.0.sockets.lock().expect("nobody panics with the lock").open.len()
    }

    /// Puts an envelope on the next connection and waits until it is acknowledged.
    pub(crate) async fn envelope(&self, kind: &str, payload: Value) {
        let (acknowledged, waits) = oneshot::channel();
        {
            let mut sockets = self.0.sockets.lock().expect("nobody panics with the lock");
            sockets.last_envelope += 1;
            sockets.turn += 1;
            let id = sockets.last_envelope.to_string();
            let turn = sockets.turn % sockets.open.len();
            let envelope =
                json!({ "type": kind, "envelope_id": id, "payload": payload, "accepts_response_payload": false });
            sockets.waiting.insert(id, acknowledged);
            sockets.open[turn].send(envelope.to_string()).expect("the bot keeps its connections");
        }
        waits.await.expect("the bot acknowledges");
    }

    fn heard(&self, posted: Posted, edit: bool) -> String {
        let ts = match posted.ts {
            Some(ts) => ts,
            None => self.fresh_ts(),
        };
        let root = {
            let mut roots = self.0.roots.lock().expect("nobody panics with the lock");
            match posted.thread_ts {
                Some(root) => {
                    roots.insert(ts.clone(), root.clone());
                    Some(root)
                }
                None => roots.get(&ts).cloned(),
            }
        };
        let button = |action: &str| {
            posted.blocks.iter().find_map(|Block { block_id, elements }| {
                let button = elements.iter().find(|element| element.action_id.as_deref() == Some(action))?;
                Some((block_id.clone()?, button.value.clone()?))
            })
        };
        let (approve, again) = (button("approve"), button("again"));
        let (at, ts_of, root_of) = (Instant::now(), ts.clone(), root.clone());
        let heard = Heard { at, ts: ts_of, root: root_of, edit, text: posted.text, approve, again };
        if let Some(everything) = &*self.0.everything.lock().expect("nobody panics with the lock") {
            everything.send(heard.clone()).ok(); // an error means that nobody listens any more
        }
        if let Some(root) = root
            && let Some(thread) = self.0.threads.lock().expect("nobody panics with the lock").get(&root)
        {
            thread.send(heard).ok(); // an error means that nobody listens any more
        }
        ts
    }
}

async fn on_call(
    State(slack): State<Slack>,
    Path(method): Path<String>,
    Query(asked): Query<HashMap<String, String>>,
    body: Bytes,
) -> Response {
    slack.0.calls.fetch_add(1, Ordering::Relaxed);
    let answer = match method.as_str() {
        "chat.postMessage" | "chat.update" => match serde_json::from_slice(&body) {
            Ok(posted) => {
                let ts = slack.heard(posted, method == "chat.update");
                json!({ "ok": true, "channel": CHANNEL, "ts": ts })
            }
            Err(_) => json!({ "ok": false, "error": "invalid_arguments" }),
        },
        "auth.test" => {
            json!({ "ok": true, "url": "https://bench.slack.com/", "team": "Bench", "team_id": "T1", "user_id": BOT, "bot_id": "B1" })
        }
        "bots.info" => json!({ "ok": true, "bot": { "id": "B1", "app_id": "A1", "name": "countersign" } }),
        // Everybody is a full member of the workspace.
        "users.info" => json!({ "ok": true, "user": {
            "id": asked.get("user"), "team_id": "T1", "name": "ana", "deleted": false, "is_bot": false, "is_restricted": false,
            "is_ultra_restricted": false, "is_stranger": false, "profile": { "display_name": "ana" },
        } }),
        "views.publish" => {
            let view: Value = serde_json::from_slice(&body).unwrap_or_default();
            slack.arrived(view["user_id"].as_str().unwrap_or_default());
            json!({ "ok": true })
        }
        "apps.connections.open" => {
            json!({ "ok": true, "url": format!("ws://{}/link?ticket=1&app_id=A1", slack.0.address) })
        }
        "conversations.replies" | "conversations.history" => json!({ "ok": true, "messages": [], "has_more": false }),
        _ => json!({ "ok": true }),
    };
    Json(answer).into_response()
}

async fn on_response(State(slack): State<Slack>, Path(id): Path<String>) -> Response {
    slack.arrived(&id);
    Json(json!({ "ok": true })).into_response()
}

async fn on_link(State(slack): State<Slack>, request: Request) -> Response {
    web_socket::accept(request, move |socket| serve_link(slack, socket))
}

async fn serve_link(slack: Slack, mut socket: WebSocket) {
    let hello = json!({ "type": "hello", "num_connections": 1, "connection_info": { "app_id": "A1" },
        "debug_info": { "host": "bench", "approximate_connection_time": 3600 } });
    if socket.send(Frame::Text(hello.to_string().into())).await.is_err() {
        return;
    }
    let (orders, mut to_send) = mpsc::unbounded_channel();
    slack.0.sockets.lock().expect("nobody panics with the lock").open.push(orders.clone());
    loop {
        tokio::select! {
            order = to_send.recv() => {
                let Some(envelope) = order else { break };
                if socket.send(Frame::Text(envelope.into())).await.is_err() {
                    break;
                }
            }
            frame = socket.next() => match frame {
                Some(Ok(Frame::Text(text))) => {
                    let acknowledged: Value = serde_json::from_str(&text).unwrap_or_default();
                    let id = acknowledged["envelope_id"].as_str().unwrap_or_default();
                    let waiting = slack.0.sockets.lock().expect("nobody panics with the lock").waiting.remove(id);
                    if let Some(waiting) = waiting {
                        waiting.send(()).ok(); // an error means that nobody waits any more
                    }
                }
                Some(Ok(_)) => {}
                Some(Err(_)) | None => break,
            }
        }
    }
    slack.0.sockets.lock().expect("nobody panics with the lock").open.retain(|open| !open.same_channel(&orders));
}
