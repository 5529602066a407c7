//! The HTTP server: checks a request, injects faults, and answers from the script.
//!
//! It speaks the dialects of three providers ([`Dialect`]). All share one script, one ledger and one key.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{DefaultBodyLimit, Path, State},
    http::{HeaderMap, header},
    response::Response,
    routing::{get, post},
};
use futures_util::{StreamExt as _, stream};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{
    API_KEY, Cost, Received,
    answer::{self, Envelope},
    cache::Cache,
    check::Refusal,
    completions, content,
    dialect::Dialect,
    embedding, newest,
    offer::Offer,
    script::{Fault, Hold, Script, Turn},
};
use crate::stand_in;

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

/// The time between two looks at what an answer is held back for.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// The state of the stand-in.
#[derive(Default)]
pub(super) struct World {
    /// The scripted answers and faults.
    pub(super) script: Script,
    /// The usage so far.
    pub(super) cost: Cost,
    /// The number of requests so far.
    count: usize,
    cache: Cache,
    /// The parts of answers that must come back unchanged.
    sent: Vec<Value>,
    /// The models on offer.
    pub(super) offer: Offer,
}

impl stand_in::World for World {
    type Options = ();
    type Entry = Received;
    type Own = Infallible;
}

type Shared = stand_in::Shared<World>;

/// Returns the routes.
pub(super) fn routes(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/v1/messages", post(messages))
        .route("/v1/chat/completions", post(completions))
        .route("/v1/embeddings", post(embeddings))
        .route("/v1beta/models/{call}", post(gemini))
        .route("/v1/models", get(list))
        .route("/v1beta/models", get(list_of_gemini))
        .fallback(async || failure(&Dialect::Messages, 404, "Not found", 0, None))
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
        .with_state(shared)
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

/// Lists the models of Anthropic or OpenAI, which have the same address. Lists are not recorded: no model is asked.
async fn list(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    let dialect = if headers.contains_key("anthropic-version") { Dialect::Messages } else { Dialect::Completions };
    listed(&shared, &dialect, &headers)
}

async fn list_of_gemini(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    listed(&shared, &Dialect::Content { model: String::new(), streams: false }, &headers)
}

fn listed(shared: &Shared, dialect: &Dialect, headers: &HeaderMap) -> Response {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let key = match dialect {
        Dialect::Messages => header("x-api-key"),
        Dialect::Completions => header("authorization").trim_start_matches("Bearer "),
        Dialect::Content { .. } => header("x-goog-api-key"),
    };
    if key != API_KEY {
        return failure(dialect, 401, "invalid key", 0, None);
    }
    match shared.world().offer.list(dialect) {
        Some(list) => json_answer(&list, 0),
        None => failure(dialect, 404, "Not found", 0, None),
    }
}

/// Answers a request to a language model.
fn answered(shared: &Shared, dialect: Dialect, headers: &HeaderMap, bytes: &Bytes) -> Response {
    received(shared, dialect, headers, bytes, |world, dialect, body, number| {
        dialect.check(headers, API_KEY, body, &world.sent)?;
        Ok(respond(&shared.stop, world, dialect, body, number))
    })
}

/// Answers a request for an embedding. It needs no script.
fn embedded(shared: &Shared, dialect: Dialect, headers: &HeaderMap, bytes: &Bytes) -> Response {
    received(shared, dialect, headers, bytes, |world, dialect, body, number| {
        let invalid = |message: String| Refusal { status: 400, message };
        let vector = match dialect {
            Dialect::Content { .. } => {
                content::authorize(headers, API_KEY)?;
                embedding::gemini(body).map_err(invalid)?
            }
            Dialect::Completions | Dialect::Messages => {
                completions::authorize(headers, API_KEY)?;
                embedding::openai(body).map_err(invalid)?
            }
        };
        Ok(match world.script.refuses() {
            Some((status, wait)) => failure(dialect, status, "The sandbox fails.", number, wait),
            None => json_answer(&vector, number),
        })
    })
}

/// Handles a request and records it with its outcome.
fn received(
    shared: &Shared,
    dialect: Dialect,
    headers: &HeaderMap,
    bytes: &Bytes,
    handle: impl FnOnce(&mut World, &Dialect, &Value, usize) -> Result<Response, Refusal>,
) -> Response {
    let body: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let mut world = shared.world();
    world.count += 1;
    let number = world.count;
    let (violation, response) = match handle(&mut world, &dialect, &body, number) {
        Err(Refusal { status, message }) => {
            let response = failure(&dialect, status, &message, number, None);
            (Some(message), response)
        }
        Ok(response) => (None, response),
    };
    let trace = headers.get("traceparent").and_then(|trace| trace.to_str().ok()).map(str::to_owned);
    shared.arrived(Received { body, violation, status: response.status().as_u16(), trace });
    response
}

fn respond(stop: &CancellationToken, world: &mut World, dialect: &Dialect, body: &Value, number: usize) -> Response {
    let is_refused = |member: &&&str| body.pointer(&format!("/{}", member.replace('.', "/"))).is_some_and(is_demanded);
    if let Some(member) = world.script.refused.iter().find(is_refused) {
        let message = format!("{member} is not supported with this model.");
        return failure(dialect, 400, &message, number, None);
    }
    if let Some(message) = newest::refusal(dialect, body) {
        return failure(dialect, 400, &message, number, None);
    }
    let question = dialect.question(body);
    if let Some(message) = world.offer.refusal(dialect, question["model"].as_str().unwrap_or_default()) {
        return failure(dialect, 404, &message, number, None);
    }
    let (answer, fault) = match world.script.next(&question) {
        Turn::Answer(answer, fault) => (answer, fault),
        Turn::Fail { status, retry_after } => {
            return failure(dialect, status, "The sandbox fails.", number, retry_after);
        }
        Turn::Unscripted => {
            return failure(dialect, 500, "The sandbox has nothing scripted to say.", number, None);
        }
    };
    let model = question["model"].as_str().unwrap_or_default().to_owned();
    let envelope = Envelope { id: format!("msg_sandbox_{number:04}"), model, usage: world.cache.count(&question) };
    world.sent.extend(dialect.kept(&envelope, &answer, body));
    world.cost.add(&envelope.usage, answer::output_tokens(&answer));
    if !dialect.streams(body) || fault == Some(Fault::Whole) {
        return json_answer(&dialect.whole(&envelope, &answer, body), number);
    }
    let kind = if let Some(Fault::BreakOff { kind }) = &fault { kind.as_str() } else { "" };
    let events = dialect.events(&envelope, &answer, body, fault.as_ref());
    let has_text = answer.content.iter().any(|block| block["type"] == "text");
    let hold = Some(world.script.hold.clone()).filter(|_| has_text).unwrap_or_default();
    let chunks = answer::chunks(events, fault.as_ref(), &dialect.break_off(kind));
    Response::builder()
        .header("request-id", request_id(number))
        .header(header::CONTENT_TYPE, "text/event-stream; charset=utf-8")
        .body(streamed(chunks, fault.as_ref(), hold, stop.clone()))
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

/// Waits until the rest of an answer is no longer held back.
async fn held(Hold(is_seen): &Hold, stop: &CancellationToken) {
    let Some(is_seen) = is_seen else { return };
    while !is_seen() && !stop.is_cancelled() {
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// Returns the chunks as a body. Depending on the fault, the connection is then closed, or kept
/// open without an end of the body.
fn streamed(chunks: Vec<Bytes>, fault: Option<&Fault>, hold: Hold, stop: CancellationToken) -> Body {
    let (half, silent) = (chunks.len() / 2, stop.clone());
    let chunks = stream::iter(chunks.into_iter().enumerate()).then(move |(n, chunk)| {
        let (hold, stop) = (hold.clone(), stop.clone());
        async move {
            if n == half {
                held(&hold, &stop).await;
            }
            Ok::<_, std::io::Error>(chunk)
        }
    });
    match fault {
        Some(Fault::Cut) => {
            let cut = stream::once(async { Err(std::io::Error::other("cut by the sandbox")) });
            Body::from_stream(chunks.chain(cut))
        }
        Some(Fault::Stall) => {
            let silence = stream::once(async move { silent.cancelled().await }).filter_map(async |()| None);
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
