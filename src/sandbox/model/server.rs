//! The HTTP server: checks a request, injects faults, and answers from the script.
//!
//! It speaks the dialects of three providers ([`Dialect`]). All share one script, one ledger and one key.

use std::sync::{Arc, Mutex, MutexGuard};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{DefaultBodyLimit, Path, State},
    http::{HeaderMap, header},
    response::Response,
    routing::post,
};
use countersign_wire::this_machine;
use futures_util::{StreamExt as _, stream};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::{
    Cost, Received,
    answer::{self, Envelope},
    cache::Cache,
    check::Refusal,
    completions, content,
    dialect::Dialect,
    embedding,
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
    /// The number of requests so far, with those that were taken.
    count: usize,
    cache: Cache,
    cost: Cost,
    /// The parts of answers that must come back unchanged.
    sent: Vec<Value>,
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

    pub(super) fn take_received(&self) -> Vec<Received> {
        std::mem::take(&mut self.ledger().received)
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
        .route("/v1/chat/completions", post(completions))
        .route("/v1/embeddings", post(embeddings))
        .route("/v1beta/models/{call}", post(gemini))
        .fallback(async || failure(&Dialect::Messages, 404, "Not found", 0, None))
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
        .with_state(shared);
    let app = this_machine::only(routes);
    if let Err(error) = axum::serve(listener, app).with_graceful_shutdown(stop.cancelled_owned()).await {
        tracing::error!(%error, "the sandbox model stopped");
    }
}

async fn messages(State(shared): State<Arc<Shared>>, headers: HeaderMap, bytes: Bytes) -> Response {
    answered(&shared, Dialect::Messages, &headers, &bytes)
}

async fn completions(State(shared): State<Arc<Shared>>, headers: HeaderMap, bytes: Bytes) -> Response {
    answered(&shared, Dialect::Completions, &headers, &bytes)
}

async fn embeddings(State(shared): State<Arc<Shared>>, headers: HeaderMap, bytes: Bytes) -> Response {
    embedded(&shared, Dialect::Completions, &headers, &bytes)
}

/// Answers a request of the Gemini API, in which the name of a method follows that of the model.
async fn gemini(
    State(shared): State<Arc<Shared>>,
    Path(call): Path<String>,
    headers: HeaderMap,
    bytes: Bytes,
) -> Response {
    let (model, method) = call.split_once(':').unwrap_or((&call, ""));
    let model = model.to_owned();
    match method {
        "streamGenerateContent" => answered(&shared, Dialect::Content { model, streams: true }, &headers, &bytes),
        "generateContent" => answered(&shared, Dialect::Content { model, streams: false }, &headers, &bytes),
        "embedContent" => embedded(&shared, Dialect::Content { model, streams: false }, &headers, &bytes),
        _ => failure(&Dialect::Content { model, streams: false }, 404, "Not found", 0, None),
    }
}

/// Answers a request to a language model.
fn answered(shared: &Shared, dialect: Dialect, headers: &HeaderMap, bytes: &Bytes) -> Response {
    received(shared, dialect, bytes, |ledger, dialect, body, number| {
        dialect.check(headers, shared.key, body, &ledger.sent)?;
        Ok(respond(shared, ledger, dialect, body, number))
    })
}

/// Answers a request for an embedding. It needs no script.
fn embedded(shared: &Shared, dialect: Dialect, headers: &HeaderMap, bytes: &Bytes) -> Response {
    received(shared, dialect, bytes, |_, dialect, body, number| {
        let invalid = |message: String| Refusal { status: 400, message };
        let vector = match dialect {
            Dialect::Content { .. } => {
                content::authorize(headers, shared.key)?;
                embedding::gemini(body).map_err(invalid)?
            }
            Dialect::Completions | Dialect::Messages => {
                completions::authorize(headers, shared.key)?;
                embedding::openai(body).map_err(invalid)?
            }
        };
        Ok(match shared.script().refuses() {
            Some((status, wait)) => failure(dialect, status, "The sandbox fails.", number, wait),
            None => json_answer(&vector, number),
        })
    })
}

/// Handles a request and records it with its outcome.
fn received(
    shared: &Shared,
    dialect: Dialect,
    bytes: &Bytes,
    handle: impl FnOnce(&mut Ledger, &Dialect, &Value, usize) -> Result<Response, Refusal>,
) -> Response {
    let body: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let mut ledger = shared.ledger();
    ledger.count += 1;
    let number = ledger.count;
    let (violation, response) = match handle(&mut ledger, &dialect, &body, number) {
        Err(Refusal { status, message }) => {
            let response = failure(&dialect, status, &message, number, None);
            (Some(message), response)
        }
        Ok(response) => (None, response),
    };
    ledger.received.push(Received { body, violation, status: response.status().as_u16() });
    response
}

fn respond(shared: &Shared, ledger: &mut Ledger, dialect: &Dialect, body: &Value, number: usize) -> Response {
    let refused = shared.script().refused.filter(|member| is_demanded(&body[*member]));
    if let Some(member) = refused {
        let message = format!("{member} is not supported with this model.");
        return failure(dialect, 400, &message, number, None);
    }
    let question = dialect.question(body);
    let (answer, fault) = match shared.script().next(&question) {
        Turn::Answer(answer, fault) => (answer, fault),
        Turn::Fail { status, retry_after } => {
            return failure(dialect, status, "The sandbox fails.", number, retry_after);
        }
        Turn::Unscripted => {
            return failure(dialect, 500, "The sandbox has nothing scripted to say.", number, None);
        }
    };
    let model = question["model"].as_str().unwrap_or_default().to_owned();
    let envelope = Envelope { id: format!("msg_sandbox_{number:04}"), model, usage: ledger.cache.count(&question) };
    ledger.sent.extend(dialect.kept(&envelope, &answer, body));
    ledger.cost.add(&envelope.usage, answer::output_tokens(&answer));
    if !dialect.streams(body) || fault == Some(Fault::Whole) {
        return json_answer(&dialect.whole(&envelope, &answer, body), number);
    }
    let kind = if let Some(Fault::BreakOff { kind }) = &fault { kind.as_str() } else { "" };
    let events = dialect.events(&envelope, &answer, body, fault.as_ref());
    let chunks = answer::chunks(events, fault.as_ref(), &dialect.break_off(kind));
    Response::builder()
        .header("request-id", request_id(number))
        .header(header::CONTENT_TYPE, "text/event-stream; charset=utf-8")
        .body(streamed(chunks, fault.as_ref(), shared.stop.clone()))
        .expect("the headers are valid")
}

/// Returns true if a request has a member, except for a choice of tools that leaves it to the model.
fn is_demanded(member: &Value) -> bool {
    !member.is_null() && *member != "auto" && member["type"] != "auto"
}

fn json_answer(answer: &Value, number: usize) -> Response {
    Response::builder()
        .header("request-id", request_id(number))
        .header(header::CONTENT_TYPE, "application/json")
        .body(Body::from(answer.to_string()))
        .expect("the headers are valid")
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

fn failure(dialect: &Dialect, status: u16, message: &str, number: usize, retry_after: Option<f64>) -> Response {
    let id = request_id(number);
    let (status, body) = dialect.error(status, message, &id);
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
