//! The stand-in for a language model: a real server that speaks the Messages API and says what a test told it to say.
//!
//! It knows nothing of the bot. Each request is held to the rules of the API (`check`) and a broken one is answered as
//! the API answers it and remembered; then a fault may happen (`script`); then the next scripted answer goes out, whole or
//! as events (`answer`), with a count of tokens that follows the marks for the cache (`cache`).
//!
//! Start at [`SandboxModel`]. An answer that is not scripted is an error: a test that asks the model once more than it
//! thinks should learn that. Only where the question is what asking costs, or somebody tries the bot without a key,
//! somebody else may answer ([`SandboxModel::answers_by`]): what a model *says* is not learned that way.

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

/// A request, and what became of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Received {
    /// What was sent.
    pub body: Value,
    /// Which rule of the API it breaks.
    pub violation: Option<String>,
    /// The status of the answer.
    pub status: u16,
}

/// What was asked and answered so far, in tokens of four bytes.
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

    /// The base URL, such as `http://127.0.0.1:4000`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The key it accepts.
    pub fn api_key(&self) -> &'static str {
        API_KEY
    }

    /// Ends what is being answered, then frees the port.
    pub async fn stop(mut self) {
        self.shared.stop.cancel();
        if let Some(serving) = self.serving.take() {
            let _ = serving.await;
        }
    }

    /// Next it calls one tool.
    pub fn will_call(&self, tool: &str, arguments: Value) {
        self.will_call_all([(tool, arguments)]);
    }

    /// Next it calls several tools in one answer.
    pub fn will_call_all<'a>(&self, calls: impl IntoIterator<Item = (&'a str, Value)>) {
        let call = |(tool, arguments)| json!({ "type": "tool_use", "name": tool, "input": arguments });
        self.will_answer(calls.into_iter().map(call).collect(), "tool_use");
    }

    /// Next it says something and ends its turn.
    pub fn will_say(&self, text: &str) {
        self.will_answer(vec![json!({ "type": "text", "text": text })], "end_turn");
    }

    /// Next it answers with these blocks; calls without an `id` get one.
    pub fn will_answer(&self, content: Vec<Value>, stop_reason: &str) {
        self.shared.script().add(Scripted { content, stop_reason: stop_reason.to_owned() });
    }

    /// Whatever is not scripted is answered by `answers`, from the body of the request to the blocks of a message.
    pub fn answers_by(&self, answers: impl Fn(&Value) -> Vec<Value> + Send + 'static) {
        self.shared.script().otherwise = Otherwise(Some(Box::new(answers)));
    }

    /// The next request is answered with this status; the scripted answers stay.
    pub fn fails_next(&self, status: u16, retry_after: Option<f64>) {
        self.shared.script().fail(Fault::Fail { status, retry_after });
    }

    /// The next request is answered with the beginning of the scripted answer, then with silence.
    pub fn stalls_next(&self) {
        self.shared.script().fail(Fault::Stall);
    }

    /// The next request is answered with the beginning of the scripted answer, then the connection is cut.
    pub fn cuts_next(&self) {
        self.shared.script().fail(Fault::Cut);
    }

    /// The next answer breaks off with an error of this type, such as `overloaded_error`.
    pub fn breaks_off_next(&self, kind: &str) {
        self.shared.script().fail(Fault::BreakOff { kind: kind.to_owned() });
    }

    /// The arguments in the next answer are cut short and no longer JSON.
    pub fn sends_bad_json_next(&self) {
        self.shared.script().fail(Fault::BadJson);
    }

    /// Takes it down, or up again: every request is answered 529.
    pub fn is_down(&self, down: bool) {
        self.shared.script().down = down;
    }

    /// Every request so far, the refused ones too.
    pub fn requests(&self) -> Vec<Received> {
        self.shared.received()
    }

    /// What all answers cost so far.
    pub fn cost(&self) -> Cost {
        self.shared.cost()
    }

    /// How often it was asked and had nothing scripted to say.
    pub fn unscripted(&self) -> usize {
        self.shared.script().unscripted
    }

    /// How many scripted answers nobody has asked for yet.
    pub fn unasked(&self) -> usize {
        self.shared.script().unasked()
    }

    /// The rules of the API that were broken.
    pub fn violations(&self) -> Vec<String> {
        self.requests().into_iter().filter_map(|request| request.violation).collect()
    }
}

impl Drop for SandboxModel {
    fn drop(&mut self) {
        self.shared.stop.cancel();
    }
}
