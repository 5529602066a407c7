//! The stand-in for a server of the Model Context Protocol: a real HTTP server on this machine that answers as the public
//! reference server does, over streamable HTTP.
//!
//! It has the reference server's tools, with its descriptions and hints, and four of its own that keep notes, so that a
//! call has an effect that can be counted. It keeps sessions, reports progress, asks questions in the middle of a call,
//! and has the faults that clients meet: sessions that are lost, answers that are late, huge or lost after the work,
//! tools that change, and hints that lie. `tests/fixtures/mcp` holds the recordings, and a contract test holds the
//! stand-in to them. It knows nothing of the bot.
//!
//! Start at [`SandboxMcp`]; `server` is the protocol, `tools` what the tools do.

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
    /// The token to ask for; `None`: it asks for none.
    pub token: Option<String>,
}

/// A fault of the next call of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Every session is forgotten before the call.
    SessionLost,
    /// The work is done, and the connection closed without an answer.
    AnswerLost,
    /// The work is done, and the answer does not come.
    Silent,
    /// The work is done, and the answer does not end.
    Huge,
    /// The call is answered with an internal error, after the work.
    Fails,
}

/// A request that was received.
#[derive(Clone, Debug, PartialEq)]
pub struct Received {
    /// The HTTP method.
    pub method: String,
    /// The body; null if there was none.
    pub body: Value,
    /// True if it named a session.
    pub in_session: bool,
    /// The `Authorization` header, if there was one.
    pub token: Option<String>,
}

/// The server's part of a session.
#[derive(Debug, Default)]
struct Session {
    /// The streams of notifications that are open.
    listening: Vec<mpsc::UnboundedSender<Value>>,
}

/// Everything that the server knows.
#[derive(Debug, Default)]
struct World {
    sessions: HashMap<String, Session>,
    tools: Vec<Value>,
    notes: Vec<String>,
    requests: Vec<Received>,
    calls: Vec<(String, Value)>,
    faults: Vec<Fault>,
    /// The questions that wait for an answer, by their ids.
    asked: HashMap<u64, oneshot::Sender<Value>>,
    /// The answers to questions so far.
    answers: Vec<Value>,
    cancelled: Vec<Value>,
    next_id: u64,
}

/// What the handlers share.
#[derive(Debug)]
struct Shared {
    world: Mutex<World>,
    token: Option<String>,
    stop: CancellationToken,
}

impl Shared {
    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().expect("nobody panics with the lock")
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
        let shared = Arc::new(Shared { world: Mutex::new(world), token: options.token, stop: stop.clone() });
        let router = this_machine::only(server::routes(shared.clone()));
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

    /// Returns every request so far.
    pub fn requests(&self) -> Vec<Received> {
        self.shared.world().requests.clone()
    }

    /// Returns the tools that did their work so far, with their arguments.
    pub fn calls(&self) -> Vec<(String, Value)> {
        self.shared.world().calls.clone()
    }

    /// Returns the notes.
    pub fn notes(&self) -> Vec<String> {
        self.shared.world().notes.clone()
    }

    /// Returns the answers to the server's questions so far.
    pub fn answers(&self) -> Vec<Value> {
        self.shared.world().answers.clone()
    }

    /// Returns the number of questions that wait for an answer.
    pub fn asking(&self) -> usize {
        self.shared.world().asked.values().filter(|asked| !asked.is_closed()).count()
    }

    /// Returns the calls that the client has given up, as it told the server.
    pub fn cancelled(&self) -> Vec<Value> {
        self.shared.world().cancelled.clone()
    }

    /// Lets the next call of a tool have a fault.
    pub fn fail_next(&self, fault: Fault) {
        self.shared.world().faults.push(fault);
    }

    /// Forgets every session, as a restart does.
    pub fn forgets_sessions(&self) {
        self.shared.world().sessions.clear();
    }

    /// Changes the definition of a tool, and tells the clients that the tools changed.
    ///
    /// # Panics
    ///
    /// If there is no such tool.
    pub fn changes_tool(&self, name: &str, change: impl FnOnce(&mut Value)) {
        let mut world = self.shared.world();
        let tool = world.tools.iter_mut().find(|tool| tool["name"] == name).expect("there is such a tool");
        change(tool);
        let said = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
        for session in world.sessions.values_mut() {
            session.listening.retain(|stream| stream.send(said.clone()).is_ok());
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
