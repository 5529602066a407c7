//! The HTTP server: checks a request, injects faults, and answers from the script.

use std::sync::{Arc, Mutex, MutexGuard};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{DefaultBodyLimit, State},
    http::{HeaderMap, header},
    response::Response,
    routing::post,
};
use countersign_wire::this_machine;
use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::{
    Cost, Received,
    answer::{self, Envelope},
    cache::Cache,
    check::{self, Refusal},
    script::{Fault, Script, Turn},
};

impl Cost {
    /// Adds an answer of `answered` tokens. `question` is the usage of its request, in the format
    /// of the API.
    fn add(&mut self, question: &Value, answered: usize) {
        let tokens = |key: &str| question[key].as_u64().unwrap_or(0);
        self.calls += 1;
        self.fresh += tokens("input_tokens") + tokens("cache_creation_input_tokens");
        self.cached += tokens("cache_read_input_tokens");
        self.answered += answered as u64;
    }
}

/// The maximum size of a request body, as in the API.
const BODY_LIMIT: usize = 32 * 1024 * 1024;

/// The state shared by the server and [`super::SandboxModel`].
#[derive(Debug)]
pub(super) struct Shared {
    key: &'static str,
    script: Mutex<Script>,
    ledger: Mutex<Ledger>,
    pub(super) stop: CancellationToken,
}

#[derive(Debug, Default)]
struct Ledger {
    received: Vec<Received>,
    cache: Cache,
    cost: Cost,
    unknown_blocks: Vec<Value>,
}

impl Shared {
    pub(super) fn new(key: &'static str) -> Self {
        Self { key, script: Mutex::default(), ledger: Mutex::default(), stop: CancellationToken::new() }
    }

    pub(super) fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().expect("no holder of the lock panics")
    }

    pub(super) fn received(&self) -> Vec<Received> {
        self.ledger().received.clone()
    }

    pub(super) fn cost(&self) -> Cost {
        self.ledger().cost
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().expect("no holder of the lock panics")
    }
}

/// Serves until it is stopped.
pub(super) async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let stop = shared.stop.clone();
    let routes = Router::new()
        .route("/v1/messages", post(messages))
        .fallback(async || failure(404, "Not found", 0, None))
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
        .with_state(shared);
    let app = this_machine::only(routes);
    if let Err(error) = axum::serve(listener, app).with_graceful_shutdown(stop.cancelled_owned()).await {
        tracing::error!(%error, "the sandbox model stopped");
    }
}

async fn messages(State(shared): State<Arc<Shared>>, headers: HeaderMap, bytes: Bytes) -> Response {
    let body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let mut ledger = shared.ledger();
    let number = ledger.received.len() + 1;
    let (violation, response) = match check::check(&headers, shared.key, &body, &ledger.unknown_blocks) {
        Err(Refusal { status, message }) => {
            let response = failure(status, &message, number, None);
            (Some(message), response)
        }
        Ok(()) => (None, respond(&shared, &mut ledger, &body, number)),
    };
    ledger.received.push(Received { body, violation, status: response.status().as_u16() });
    response
}

fn respond(shared: &Shared, ledger: &mut Ledger, body: &Value, number: usize) -> Response {
    let (answer, fault) = match shared.script().next(body) {
        Turn::Answer(answer, fault) => (answer, fault),
        Turn::Fail { status, retry_after } => return failure(status, "The sandbox fails.", number, retry_after),
        Turn::Unscripted => return failure(500, "The sandbox has nothing scripted to say.", number, None),
    };
    let kinds = ["text", "tool_use"];
    let unknown_blocks = answer.content.iter().filter(|block| kinds.iter().all(|kind| block["type"] != *kind));
    ledger.unknown_blocks.extend(unknown_blocks.cloned());
    let model = body["model"].as_str().unwrap_or_default().to_owned();
    let envelope = Envelope { id: format!("msg_sandbox_{number:04}"), model, usage: ledger.cache.count(body) };
    ledger.cost.add(&envelope.usage, answer::output_tokens(&answer));
    let builder = Response::builder().header("request-id", request_id(number));
    let response = if body["stream"] == true {
        let chunks = answer::chunks(&envelope, &answer, fault.as_ref());
        builder.header(header::CONTENT_TYPE, "text/event-stream; charset=utf-8").body(streamed(
            chunks,
            fault.as_ref(),
            shared.stop.clone(),
        ))
    } else {
        let message = answer::whole(&envelope, &answer).to_string();
        builder.header(header::CONTENT_TYPE, "application/json").body(Body::from(message))
    };
    response.expect("the headers are valid")
}

/// Returns the chunks as a body. Depending on the fault, the connection is then closed, or kept
/// open without an end of the body.
fn streamed(chunks: Vec<Bytes>, fault: Option<&Fault>, stop: CancellationToken) -> Body {
    let chunks = stream::iter(chunks.into_iter().map(Ok::<_, std::io::Error>));
    match fault {
        Some(Fault::Cut) => {
            let cut = stream::once(async { Err(std::io::Error::other("cut by the sandbox")) });
            Body::from_stream(chunks.chain(cut))
        }
        Some(Fault::Stall) => {
            let silence = stream::once(async move { stop.cancelled().await }).filter_map(async |()| None);
            Body::from_stream(chunks.chain(silence))
        }
        _ => Body::from_stream(chunks),
    }
}

fn failure(status: u16, message: &str, number: usize, retry_after: Option<f64>) -> Response {
    let kind = match status {
        400 => "invalid_request_error",
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        _ => "api_error",
    };
    let id = request_id(number);
    let body = json!({ "type": "error", "error": { "type": kind, "message": message }, "request_id": id });
    let mut builder =
        Response::builder().status(status).header(header::CONTENT_TYPE, "application/json").header("request-id", id);
    if let Some(seconds) = retry_after {
        builder = builder.header(header::RETRY_AFTER, seconds.to_string());
    }
    builder.body(Body::from(body.to_string())).expect("the status and the headers are valid")
}

fn request_id(number: usize) -> String {
    format!("req_sandbox_{number:04}")
}
