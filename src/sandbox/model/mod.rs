//! The stand-in for a language model: a real server with scripted answers for the APIs of Anthropic,
//! OpenAI and Google, the latter two also with embeddings.
//!
//! It does not depend on the bot. Each request is checked against the rules of its API (`check`,
//! `completions`, `content`); an invalid one is recorded and answered with the API's error. Then a
//! fault may occur (`script`), and the next scripted answer is sent, whole or as events (`answer`),
//! with a count of tokens that depends on what was sent before (`cache`). Answers are scripted once,
//! in the form of the Messages API, for all APIs (`dialect`). Under the names of the newest models it
//! refuses what these refuse (`newest`), and it lists its models (`offer`).
//!
//! Start at [`SandboxModel`]. A request without a scripted answer is an error, because a test must
//! fail if the bot calls the model once more than expected. To measure the cost of requests, or to
//! try the bot without a key, a function can answer instead ([`SandboxModel::answers_by`]); its
//! answers do not represent a real model.

mod answer;
mod cache;
mod check;
mod completions;
mod content;
mod dialect;
mod embedding;
mod newest;
mod obedient;
mod offer;
mod script;
mod server;
mod strict;

use std::sync::Arc;

use countersign_core::clock::SystemClock;
use serde::Serialize;
use serde_json::{Value, json};

use self::{
    script::{Fault, Hold, Otherwise, Scripted},
    server::World,
};
use crate::{
    ledger::Entry,
    stand_in::{Place, StandIn},
};

/// The only valid API key.
const API_KEY: &str = "sandbox-model-key";

/// A received request and its outcome.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Received {
    /// The body of the request.
    pub body: Value,
    /// The rule of the API that it violates, if any.
    pub violation: Option<String>,
    /// The status of the answer.
    pub status: u16,
    /// The place of the request in a trace, if it has one: the header `traceparent`.
    pub trace: Option<String>,
}

impl Entry for Received {}

/// The usage of all requests and answers so far. A token is counted as four bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// The number of answered requests.
    pub calls: u64,
    /// The number of tokens in requests that were not read from the cache.
    pub fresh: u64,
    /// The number of tokens in requests that were read from the cache.
    pub cached: u64,
    /// The number of tokens in answers.
    pub answered: u64,
}

/// A running stand-in. Dropping it stops the server.
#[derive(Debug)]
pub struct SandboxModel {
    server: StandIn<World>,
}

impl SandboxModel {
    /// Starts a server on this machine. Port 0 means a free one.
    ///
    /// # Errors
    ///
    /// If the port is taken.
    pub async fn start(port: u16) -> std::io::Result<Self> {
        let place = Place::new(port, Arc::new(SystemClock));
        Ok(Self { server: StandIn::start(World::default(), (), place, server::routes).await? })
    }

    /// Returns the base URL of the APIs of Anthropic and Google, such as `http://127.0.0.1:4000`.
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// Returns the base URL of the API of OpenAI, such as `http://127.0.0.1:4000/v1`.
    pub fn openai_url(&self) -> String {
        format!("{}/v1", self.url())
    }

    /// Returns the only valid API key.
    pub fn api_key(&self) -> &'static str {
        API_KEY
    }

    /// Finishes the answers in progress, then frees the port.
    pub async fn stop(self) {
        self.server.stop().await;
    }

    /// Makes the next answer call one tool. If an answer in JSON is requested, it has these arguments.
    pub fn will_call(&self, tool: &str, arguments: Value) {
        self.will_call_all([(tool, arguments)]);
    }

    /// Makes the next answer call several tools.
    pub fn will_call_all<'a>(&self, calls: impl IntoIterator<Item = (&'a str, Value)>) {
        let call = |(tool, arguments)| json!({ "type": "tool_use", "name": tool, "input": arguments });
        self.will_answer(calls.into_iter().map(call).collect(), "tool_use");
    }

    /// Makes the next answer a text that ends the turn.
    pub fn will_say(&self, text: &str) {
        self.will_answer(vec![json!({ "type": "text", "text": text })], "end_turn");
    }

    /// Makes the next answer consist of these blocks. Tool calls without an `id` get one.
    pub fn will_answer(&self, content: Vec<Value>, stop_reason: &str) {
        self.server.world().script.add(Scripted { content, stop_reason: stop_reason.to_owned() });
    }

    /// Answers every request without a scripted answer with `answers`, which maps the request to the
    /// blocks of the answer, both in the form of the Messages API.
    pub fn answers_by(&self, answers: impl Fn(&Value) -> Vec<Value> + Send + 'static) {
        self.server.world().script.otherwise = Otherwise(Some(Box::new(answers)));
    }

    /// Makes the model obey every instruction in what it is sent, such as `[[call propose_x thing=A]]` or `[[say Done!]]` in a
    /// description or in an answer of a tool.
    pub fn obeys_everything(&self) {
        self.answers_by(obedient::answer);
    }

    /// Answers the next request with this status. The scripted answers remain queued.
    pub fn fails_next(&self, status: u16, retry_after: Option<f64>) {
        self.server.world().script.fail(Fault::Fail { status, retry_after });
    }

    /// Answers the next request with the beginning of the scripted answer, and keeps the connection
    /// open without sending the rest.
    pub fn stalls_next(&self) {
        self.server.world().script.fail(Fault::Stall);
    }

    /// Answers the next request with the beginning of the scripted answer, then closes the
    /// connection.
    pub fn cuts_next(&self) {
        self.server.world().script.fail(Fault::Cut);
    }

    /// Interrupts the next answer with an error of this type, such as `overloaded_error`.
    pub fn breaks_off_next(&self, kind: &str) {
        self.server.world().script.fail(Fault::BreakOff { kind: kind.to_owned() });
    }

    /// Truncates the arguments in the next answer, so that they are not valid JSON.
    pub fn sends_bad_json_next(&self) {
        self.server.world().script.fail(Fault::BadJson);
    }

    /// Sends the next answer of the Chat Completions API without a reason for its end.
    pub fn omits_reason_next(&self) {
        self.server.world().script.fail(Fault::NoReason);
    }

    /// Holds back the second half of each streamed answer with text from now on, until this is true.
    pub fn holds_rest_until(&self, is_seen: impl Fn() -> bool + Send + Sync + 'static) {
        self.server.world().script.hold = Hold(Some(Arc::new(is_seen)));
    }

    /// Sends the next answer as one JSON value, also if a stream was requested.
    pub fn sends_whole_next(&self) {
        self.server.world().script.fail(Fault::Whole);
    }

    /// Refuses all requests with the member of this path from now on, as a model that does not support it. A choice of
    /// tools is refused only if it demands a call.
    pub fn refuses(&self, member: &'static str) {
        self.server.world().script.refused.push(member);
    }

    /// Adds a model to the lists, with the day on which it is retired.
    pub fn offers(&self, model: &str, retires_on: Option<&str>) {
        self.server.world().offer.add(model, retires_on);
    }

    /// Retires a model: it is no longer listed, and does not answer.
    pub fn retires(&self, model: &str) {
        self.server.world().offer.retire(model);
    }

    /// Makes the server one without lists of models.
    pub fn lists_nothing(&self) {
        self.server.world().offer.is_hidden = true;
    }

    /// Sets whether the server is overloaded. If so, it answers every valid request with status
    /// 529.
    pub fn is_down(&self, down: bool) {
        self.server.world().script.down = down;
    }

    /// Returns all requests so far, including those that were refused.
    pub fn requests(&self) -> Vec<Received> {
        self.server.requests()
    }

    /// Returns all requests since the last call of this method, and removes them from the ledger. For runs so long that
    /// the ledger would fill the memory.
    pub fn takes_requests(&self) -> Vec<Received> {
        self.server.take_requests()
    }

    /// Returns the usage of all answers so far.
    pub fn cost(&self) -> Cost {
        self.server.world().cost
    }

    /// Returns the number of requests without a scripted answer.
    pub fn unscripted(&self) -> usize {
        self.server.world().script.unscripted
    }

    /// Returns the number of scripted answers that were not requested yet.
    pub fn unasked(&self) -> usize {
        self.server.world().script.unasked()
    }

    /// Returns the rules of the API that requests violated.
    pub fn violations(&self) -> Vec<String> {
        self.requests().into_iter().filter_map(|request| request.violation).collect()
    }
}
