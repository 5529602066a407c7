//! The stand-in for a server of the Model Context Protocol: a real HTTP server on this machine that
//! answers like the public reference server, over streamable HTTP.
//!
//! It has the reference server's tools, with the same descriptions and hints, two tools with the
//! optional and nested arguments of a server written with the Python SDK, and four more that store
//! notes, so that the effects of calls can be counted. It keeps sessions, reports progress,
//! asks the user questions during a call, and simulates the faults that clients encounter: lost
//! sessions, answers that are late, huge or lost after the call took effect, tools that change, and
//! false hints. A contract test compares the stand-in with the recordings in `tests/fixtures/mcp`.
//! It does not depend on the bot.
//!
//! Start at [`SandboxMcp`]; `server` implements the protocol, `oauth` the sign-in, `tools` the tools.

mod oauth;
mod server;
mod tools;

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard},
};

use countersign_wire::this_machine;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// The options of the stand-in.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The port on 127.0.0.1; 0 means a free one.
    pub port: u16,
    /// The token that requests must have; `None` if they need no token.
    pub token: Option<String>,
    /// True if requests need a token that the stand-in issues after a sign-in.
    pub oauth: bool,
}

/// A fault in the handling of the next tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// All sessions are lost before the call.
    SessionLost,
    /// The call takes effect, and the connection is closed without an answer.
    AnswerLost,
    /// The call takes effect, and there is no answer.
    Silent,
    /// The call takes effect, and the body of the answer does not end.
    Huge,
    /// The call takes effect, and is answered with an internal error.
    Fails,
}

/// A received request.
#[derive(Clone, Debug, PartialEq)]
pub struct Received {
    /// The HTTP method.
    pub method: String,
    /// The body; null if there was none.
    pub body: Value,
    /// True if it contained a session id.
    pub in_session: bool,
    /// The `Authorization` header, if there was one.
    pub token: Option<String>,
    /// All headers, by their names in lower case.
    pub headers: HashMap<String, String>,
}

/// The state of a session.
#[derive(Debug, Default)]
struct Session {
    /// The open streams of notifications.
    listening: Vec<mpsc::UnboundedSender<Value>>,
}

/// The state of the server.
#[derive(Debug, Default)]
struct World {
    sessions: HashMap<String, Session>,
    tools: Vec<Value>,
    notes: Vec<String>,
    requests: Vec<Received>,
    calls: Vec<(String, Value)>,
    faults: Vec<Fault>,
    /// The open questions to the user, by their ids.
    asked: HashMap<u64, oneshot::Sender<Value>>,
    /// The answers to questions so far.
    answers: Vec<Value>,
    cancelled: Vec<Value>,
    next_id: u64,
    signed_in: oauth::SignedIn,
}

/// The state shared by the handlers.
#[derive(Debug)]
struct Shared {
    world: Mutex<World>,
    token: Option<String>,
    oauth: bool,
    stop: CancellationToken,
}

impl Shared {
    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().expect("no holder of the lock panics")
    }
}

/// A running stand-in. Dropping it stops the server.
#[derive(Debug)]
pub struct SandboxMcp {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl SandboxMcp {
    /// Starts a server.
    ///
    /// # Errors
    ///
    /// If the port is taken.
    pub async fn start(options: Options) -> std::io::Result<Self> {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", options.port)).await?;
        let address = listener.local_addr()?;
        let world = World { tools: tools::all(), ..World::default() };
        let stop = CancellationToken::new();
        let shared = Arc::new(Shared {
            world: Mutex::new(world),
            token: options.token,
            oauth: options.oauth,
            stop: stop.clone(),
        });
        let router = this_machine::only(server::routes(shared.clone()).merge(oauth::routes(shared.clone())));
        tokio::spawn(async move {
            let served = axum::serve(listener, router).with_graceful_shutdown(stop.cancelled_owned()).await;
            if let Err(error) = served {
                tracing::error!(%error, "the sandbox MCP server stopped");
            }
        });
        Ok(Self { address, shared })
    }

    /// Returns the address, such as `http://127.0.0.1:4000/mcp`.
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Returns another address of the same server, such as the one of the older transport, `/sse`.
    pub fn at(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Returns every request so far.
    pub fn requests(&self) -> Vec<Received> {
        self.shared.world().requests.clone()
    }

    /// Returns the tool calls that took effect so far, with their arguments.
    pub fn calls(&self) -> Vec<(String, Value)> {
        self.shared.world().calls.clone()
    }

    /// Adds a note, as another program does.
    pub fn has_note(&self, text: &str) {
        self.shared.world().notes.push(text.to_owned());
    }

    /// Returns the notes.
    pub fn notes(&self) -> Vec<String> {
        self.shared.world().notes.clone()
    }

    /// Returns the answers to the server's questions so far.
    pub fn answers(&self) -> Vec<Value> {
        self.shared.world().answers.clone()
    }

    /// Returns the number of open questions.
    pub fn asking(&self) -> usize {
        self.shared.world().asked.values().filter(|asked| !asked.is_closed()).count()
    }

    /// Returns the client's notifications of cancelled calls.
    pub fn cancelled(&self) -> Vec<Value> {
        self.shared.world().cancelled.clone()
    }

    /// Returns the number of tokens that were issued.
    pub fn tokens_issued(&self) -> usize {
        self.shared.world().signed_in.issued
    }

    /// Ends the valid token, before its time.
    pub fn ends_token(&self) {
        self.shared.world().signed_in.ended = true;
    }

    /// Queues a fault for the next tool call.
    pub fn fail_next(&self, fault: Fault) {
        self.shared.world().faults.push(fault);
    }

    /// Removes all sessions, as a restart does.
    pub fn forgets_sessions(&self) {
        self.shared.world().sessions.clear();
    }

    /// Changes the definition of a tool, and notifies the clients that the tools have changed.
    ///
    /// # Panics
    ///
    /// If there is no such tool.
    pub fn changes_tool(&self, name: &str, change: impl FnOnce(&mut Value)) {
        let mut world = self.shared.world();
        let tool = world.tools.iter_mut().find(|tool| tool["name"] == name).expect("there is such a tool");
        change(tool);
        let notification = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
        for session in world.sessions.values_mut() {
            session.listening.retain(|stream| stream.send(notification.clone()).is_ok());
        }
    }

    /// Removes a tool.
    pub fn removes_tool(&self, name: &str) {
        self.shared.world().tools.retain(|tool| tool["name"] != name);
    }
}

impl Drop for SandboxMcp {
    fn drop(&mut self) {
        self.shared.stop.cancel();
    }
}
