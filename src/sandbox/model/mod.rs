//! The stand-in for a language model: a real server that speaks the Messages API and gives the answers of a test.
//!
//! It knows nothing of the bot. Each request is held to the rules of the API (`check`); a broken one is answered as the
//! API answers it and remembered. Then a fault may happen (`script`), and the next scripted answer goes out, whole or
//! as events (`answer`), with a count of tokens that follows the marks for the cache (`cache`).
//!
//! Start at [`SandboxModel`]. A request without a scripted answer is an error: a test that asks the model once more
//! than it expects should fail. Only to measure the cost of questions, or to try the bot without a key, a function may
//! answer instead ([`SandboxModel::answers_by`]); such answers say nothing about a real model.

mod answer;
mod cache;
mod check;
mod script;
mod server;
mod strict;

use std::{net::SocketAddr, sync::Arc};

use serde_json::{Value, json};
use tokio::task::JoinHandle;

use self::{
    script::{Fault, Otherwise, Scripted},
    server::Shared,
};

/// The key it accepts.
const API_KEY: &str = "sandbox-model-key";

/// A request, and its outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct Received {
    /// The body of the request.
    pub body: Value,
    /// The rule of the API that it breaks, if any.
    pub violation: Option<String>,
    /// The status of the answer.
    pub status: u16,
}

/// The usage of all requests and answers so far, in tokens of four bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Requests that were answered.
    pub calls: u64,
    /// Tokens sent and not read from the cache.
    pub fresh: u64,
    /// Tokens sent and read from the cache.
    pub cached: u64,
    /// Tokens answered.
    pub answered: u64,
}

/// A running stand-in. Dropping it stops the server.
#[derive(Debug)]
pub struct SandboxModel {
    address: SocketAddr,
    shared: Arc<Shared>,
    serving: Option<JoinHandle<()>>,
}

impl SandboxModel {
    /// Starts a server on this machine; port 0 takes a free one.
    ///
    /// # Errors
    ///
    /// If the port is taken.
    pub async fn start(port: u16) -> std::io::Result<Self> {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::new(API_KEY));
        let serving = Some(tokio::spawn(server::serve(listener, shared.clone())));
        Ok(Self { address, shared, serving })
    }

    /// Returns the base URL, such as `http://127.0.0.1:4000`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the key it accepts.
    pub fn api_key(&self) -> &'static str {
        API_KEY
    }

    /// Finishes the answers in hand, then frees the port.
    pub async fn stop(mut self) {
        self.shared.stop.cancel();
        if let Some(serving) = self.serving.take() {
            let _ = serving.await;
        }
    }

    /// Makes the next answer call one tool.
    pub fn will_call(&self, tool: &str, arguments: Value) {
        self.will_call_all([(tool, arguments)]);
    }

    /// Makes the next answer call several tools.
    pub fn will_call_all<'a>(&self, calls: impl IntoIterator<Item = (&'a str, Value)>) {
        let call = |(tool, arguments)| json!({ "type": "tool_use", "name": tool, "input": arguments });
        self.will_answer(calls.into_iter().map(call).collect(), "tool_use");
    }

    /// Makes the next answer say this and end the turn.
    pub fn will_say(&self, text: &str) {
        self.will_answer(vec![json!({ "type": "text", "text": text })], "end_turn");
    }

    /// Makes the next answer consist of these blocks; calls without an `id` get one.
    pub fn will_answer(&self, content: Vec<Value>, stop_reason: &str) {
        self.shared.script().add(Scripted { content, stop_reason: stop_reason.to_owned() });
    }

    /// Answers every request that is not scripted with `answers`, from the body of the request to the blocks of a
    /// message.
    pub fn answers_by(&self, answers: impl Fn(&Value) -> Vec<Value> + Send + 'static) {
        self.shared.script().otherwise = Otherwise(Some(Box::new(answers)));
    }

    /// Answers the next request with this status; the scripted answers stay.
    pub fn fails_next(&self, status: u16, retry_after: Option<f64>) {
        self.shared.script().fail(Fault::Fail { status, retry_after });
    }

    /// Answers the next request with the beginning of the scripted answer, then with silence.
    pub fn stalls_next(&self) {
        self.shared.script().fail(Fault::Stall);
    }

    /// Answers the next request with the beginning of the scripted answer, then cuts the connection.
    pub fn cuts_next(&self) {
        self.shared.script().fail(Fault::Cut);
    }

    /// Makes the next answer break off with an error of this type, such as `overloaded_error`.
    pub fn breaks_off_next(&self, kind: &str) {
        self.shared.script().fail(Fault::BreakOff { kind: kind.to_owned() });
    }

    /// Cuts the arguments in the next answer short, so that they are no longer JSON.
    pub fn sends_bad_json_next(&self) {
        self.shared.script().fail(Fault::BadJson);
    }

    /// Takes the server down, or up again: while down, every request is answered 529.
    pub fn is_down(&self, down: bool) {
        self.shared.script().down = down;
    }

    /// Returns all requests so far, including those that were refused.
    pub fn requests(&self) -> Vec<Received> {
        self.shared.received()
    }

    /// Returns the usage of all answers so far.
    pub fn cost(&self) -> Cost {
        self.shared.cost()
    }

    /// Returns the number of requests without a scripted answer.
    pub fn unscripted(&self) -> usize {
        self.shared.script().unscripted
    }

    /// Returns the number of scripted answers that were not asked for yet.
    pub fn unasked(&self) -> usize {
        self.shared.script().unasked()
    }

    /// Returns the rules of the API that were broken.
    pub fn violations(&self) -> Vec<String> {
        self.requests().into_iter().filter_map(|request| request.violation).collect()
    }
}

impl Drop for SandboxModel {
    fn drop(&mut self) {
        self.shared.stop.cancel();
    }
}
