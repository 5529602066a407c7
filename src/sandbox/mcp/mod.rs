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

use std::{collections::HashMap, sync::Arc};

use countersign_core::clock::SystemClock;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use crate::{
    ledger::Entry,
    stand_in::{self, Place, StandIn},
};

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

/// A fault in the handling of the next tool call. A refusal is an internal error of the protocol.
pub type Fault = crate::faults::Fault<SessionLost>;

/// The fault that only this server has: all sessions are lost before the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionLost;

/// A received request.
#[derive(Clone, Debug, PartialEq, Serialize)]
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

impl Entry for Received {}

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
    calls: Vec<(String, Value)>,
    /// The open questions to the user, by their ids.
    asked: HashMap<u64, oneshot::Sender<Value>>,
    /// The answers to questions so far.
    answers: Vec<Value>,
    cancelled: Vec<Value>,
    next_id: u64,
    signed_in: oauth::SignedIn,
}

impl stand_in::World for World {
    type Options = Options;
    type Entry = Received;
    type Own = SessionLost;
}

/// The state shared by the handlers.
type Shared = stand_in::Shared<World>;

/// A running stand-in. Dropping it stops the server.
#[derive(Debug)]
pub struct SandboxMcp {
    server: StandIn<World>,
}

impl SandboxMcp {
    /// Starts a server.
    ///
    /// # Errors
    ///
    /// If the port is taken.
    pub async fn start(options: Options) -> std::io::Result<Self> {
        let world = World { tools: tools::all(), ..World::default() };
        let place = Place::new(options.port, Arc::new(SystemClock));
        let routes = |shared: Arc<Shared>| server::routes(shared.clone()).merge(oauth::routes(shared));
        Ok(Self { server: StandIn::start(world, options, place, routes).await? })
    }

    /// Returns the address, such as `http://127.0.0.1:4000/mcp`.
    pub fn url(&self) -> String {
        self.at("/mcp")
    }

    /// Returns another address of the same server, such as the one of the older transport, `/sse`.
    pub fn at(&self, path: &str) -> String {
        format!("{}{path}", self.server.url())
    }

    /// Returns every request so far.
    pub fn requests(&self) -> Vec<Received> {
        self.server.requests()
    }

    /// Returns the tool calls that took effect so far, with their arguments.
    pub fn calls(&self) -> Vec<(String, Value)> {
        self.server.world().calls.clone()
    }

    /// Adds a note, as another program does.
    pub fn has_note(&self, text: &str) {
        self.server.world().notes.push(text.to_owned());
    }

    /// Returns the notes.
    pub fn notes(&self) -> Vec<String> {
        self.server.world().notes.clone()
    }

    /// Returns the answers to the server's questions so far.
    pub fn answers(&self) -> Vec<Value> {
        self.server.world().answers.clone()
    }

    /// Returns the number of open questions.
    pub fn asking(&self) -> usize {
        self.server.world().asked.values().filter(|asked| !asked.is_closed()).count()
    }

    /// Returns the client's notifications of cancelled calls.
    pub fn cancelled(&self) -> Vec<Value> {
        self.server.world().cancelled.clone()
    }

    /// Returns the number of tokens that were issued.
    pub fn tokens_issued(&self) -> usize {
        self.server.world().signed_in.issued
    }

    /// Ends the valid token, before its time.
    pub fn ends_token(&self) {
        self.server.world().signed_in.ended = true;
    }

    /// Queues a fault for the next tool call.
    pub fn fail_next(&self, fault: Fault) {
        self.server.faults.next(fault);
    }

    /// Removes all sessions, as a restart does.
    pub fn forgets_sessions(&self) {
        self.server.world().sessions.clear();
    }

    /// Changes the definition of a tool, and notifies the clients that the tools have changed.
    ///
    /// # Panics
    ///
    /// If there is no such tool.
    pub fn changes_tool(&self, name: &str, change: impl FnOnce(&mut Value)) {
        let mut world = self.server.world();
        let tool = world.tools.iter_mut().find(|tool| tool["name"] == name).expect("there is such a tool");
        change(tool);
        let notification = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
        for session in world.sessions.values_mut() {
            session.listening.retain(|stream| stream.send(notification.clone()).is_ok());
        }
    }
}
