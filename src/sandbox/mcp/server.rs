//! The protocol: sessions, requests and streams of events, over both transports.

use std::{collections::HashMap, convert::Infallible, sync::Arc, time::Duration};

use axum::{
    Json, Router,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, Method, StatusCode, Uri, header},
    response::{IntoResponse as _, Response},
    routing::{any, get, post},
};
use futures_util::{StreamExt as _, stream};
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, oneshot};

use super::{
    Fault, Received, Session, SessionLost, Shared, oauth,
    tools::{self, Work},
};
use crate::flood;

const INSTRUCTIONS: &str = include_str!("instructions.md");

/// The supported versions of the protocol. The first is offered in place of an unknown one.
const VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// The duration of a step of a long operation.
const STEP: Duration = Duration::from_millis(2);

pub(super) fn routes(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/mcp", any(handle))
        .route("/sse", get(old_stream))
        .route("/message", post(old_message))
        // A path with a slash at its end, as frameworks redirect it, and a server that has moved.
        .route("/mcp/", any(|| async { (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, "/mcp")]) }))
        .route(
            "/moved",
            any(|| async { (StatusCode::PERMANENT_REDIRECT, [(header::LOCATION, "http://elsewhere.test/mcp")]) }),
        )
        .with_state(shared)
}

/// Opens the stream of the older transport, which begins with the address for the client's messages.
async fn old_stream(State(shared): State<Arc<Shared>>) -> Response {
    let id = uuid::Uuid::new_v4().to_string();
    let (sender, receiver) = mpsc::unbounded_channel::<Value>();
    shared.world().sessions.insert(id.clone(), Session { listening: vec![sender] });
    let first = format!("event: endpoint\ndata: /message?sessionId={id}\n\n");
    let stop = shared.stop.clone();
    let body = stream::unfold((Some(first), receiver, stop), |(first, mut receiver, stop)| async move {
        let event = match first {
            Some(first) => first,
            None => tokio::select! {
                message = receiver.recv() => format!("event: message\ndata: {}\n\n", message?),
                () = stop.cancelled() => return None,
            },
        };
        Some((Ok::<_, Infallible>(Bytes::from(event)), (None, receiver, stop)))
    });
    ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(body)).into_response()
}

/// Takes a message of the older transport. The answer goes to the stream.
async fn old_message(State(shared): State<Arc<Shared>>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let session = uri.query().and_then(|query| query.strip_prefix("sessionId=")).unwrap_or_default().to_owned();
    let listening = shared.world().sessions.get(&session).and_then(|session| session.listening.first().cloned());
    let Some(listening) = listening else { return StatusCode::NOT_FOUND.into_response() };
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let token = headers.get("authorization").and_then(|token| token.to_str().ok()).map(str::to_owned);
    let received =
        Received { method: "POST".to_owned(), body: body.clone(), in_session: true, token, headers: HashMap::new() };
    shared.arrived(received);
    let answer = match body["method"] == "initialize" {
        true => initialize(&shared, &body),
        false => respond(shared, session, body).await,
    };
    tokio::spawn(async move {
        let mut events = answer.into_body().into_data_stream();
        let mut text = String::new();
        while let Some(Ok(piece)) = events.next().await {
            text += &String::from_utf8_lossy(&piece);
            while let Some((event, rest)) = text.split_once("\n\n") {
                let data = event.lines().find_map(|line| line.strip_prefix("data: "));
                if let Some(message) = data.and_then(|data| serde_json::from_str(data).ok()) {
                    let _ = listening.send(message);
                }
                text = rest.to_owned();
            }
        }
    });
    StatusCode::ACCEPTED.into_response()
}

/// Returns an error response of the transport. With `id`, its body contains a null `id`.
fn refused(status: StatusCode, message: &str, id: bool) -> Response {
    let mut body = json!({ "jsonrpc": "2.0", "error": { "code": -32000, "message": message } });
    if id {
        body["id"] = Value::Null;
    }
    (status, Json(body)).into_response()
}

async fn handle(State(shared): State<Arc<Shared>>, method: Method, headers: HeaderMap, body: Bytes) -> Response {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let session = text("mcp-session-id");
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let token = text("authorization");
    let received = Received {
        method: method.to_string(),
        body: body.clone(),
        in_session: session.is_some(),
        token: token.clone(),
        headers: headers
            .iter()
            .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
            .collect(),
    };
    shared.arrived(received);
    if shared.options.token.as_ref().is_some_and(|wanted| token != Some(format!("Bearer {wanted}"))) {
        return (StatusCode::UNAUTHORIZED, Json(json!({ "error": "invalid_token" }))).into_response();
    }
    if shared.options.oauth && !shared.world().signed_in.accepts(token.as_deref()) {
        return oauth::unauthorized(&headers);
    }
    let is_known = session.as_ref().is_some_and(|id| shared.world().sessions.contains_key(id));
    let no_session = || refused(StatusCode::BAD_REQUEST, "Bad Request: No valid session ID provided", false);
    match method {
        Method::DELETE => {
            let removed = session.and_then(|id| shared.world().sessions.remove(&id));
            if removed.is_some() { StatusCode::OK.into_response() } else { no_session() }
        }
        Method::GET if is_known => listen(&shared, &session.unwrap_or_default()),
        Method::GET => no_session(),
        Method::POST => {
            let accept = text("accept").unwrap_or_default();
            if !(accept.contains("application/json") && accept.contains("text/event-stream")) {
                let message = "Not Acceptable: Client must accept both application/json and text/event-stream";
                return refused(StatusCode::NOT_ACCEPTABLE, message, true);
            }
            if body["method"] == "initialize" {
                return initialize(&shared, &body);
            }
            match session {
                None => refused(StatusCode::BAD_REQUEST, "Bad Request: Server not initialized", true),
                Some(_) if !is_known => no_session(),
                Some(session) => respond(shared, session, body).await,
            }
        }
        _ => StatusCode::METHOD_NOT_ALLOWED.into_response(),
    }
}

/// Returns an event stream as a response, and the sender of its messages.
fn events(shared: &Shared, session: &str) -> (mpsc::UnboundedSender<Value>, Response) {
    let (sender, receiver) = mpsc::unbounded_channel::<Value>();
    let stop = shared.stop.clone();
    let body = stream::unfold((receiver, stop), |(mut receiver, stop)| async move {
        let message = tokio::select! {
            message = receiver.recv() => message?,
            () = stop.cancelled() => return None,
        };
        let event = format!("event: message\nid: {}\ndata: {message}\n\n", uuid::Uuid::new_v4());
        Some((Ok::<_, Infallible>(Bytes::from(event)), (receiver, stop)))
    });
    let headers = [
        (header::CONTENT_TYPE.as_str(), "text/event-stream"),
        (header::CACHE_CONTROL.as_str(), "no-cache, no-transform"),
        ("mcp-session-id", session),
    ];
    (sender, (headers, Body::from_stream(body)).into_response())
}

/// Returns an event stream with one message.
fn one(shared: &Shared, session: &str, message: Value) -> Response {
    let (sender, response) = events(shared, session);
    let _ = sender.send(message);
    response
}

fn listen(shared: &Shared, session: &str) -> Response {
    let (sender, response) = events(shared, session);
    if let Some(session) = shared.world().sessions.get_mut(session) {
        session.listening.push(sender);
    }
    response
}

fn initialize(shared: &Shared, body: &Value) -> Response {
    let id = uuid::Uuid::new_v4().to_string();
    shared.world().sessions.insert(id.clone(), Session::default());
    let asked = body["params"]["protocolVersion"].as_str().unwrap_or_default();
    let version = VERSIONS.into_iter().find(|version| *version == asked).unwrap_or(VERSIONS[0]);
    let result = json!({
        "protocolVersion": version,
        "capabilities": {
            "tools": { "listChanged": true },
            "prompts": { "listChanged": true },
            "resources": { "subscribe": true, "listChanged": true },
            "logging": {},
            "tasks": { "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } },
            "completions": {},
        },
        "serverInfo": {
            "name": "mcp-servers/everything",
            "title": "Everything Reference Server",
            "version": "2.0.0",
        },
        "instructions": INSTRUCTIONS,
    });
    one(shared, &id, json!({ "result": result, "jsonrpc": "2.0", "id": body["id"] }))
}

async fn respond(shared: Arc<Shared>, session: String, body: Value) -> Response {
    let Some(method) = body["method"].as_str() else {
        answered(&shared, &body);
        return StatusCode::ACCEPTED.into_response();
    };
    if body.get("id").is_none() {
        if method == "notifications/cancelled" {
            shared.world().cancelled.push(body["params"].clone());
        }
        return StatusCode::ACCEPTED.into_response();
    }
    let id = body["id"].clone();
    let result = |result: Value| json!({ "result": result, "jsonrpc": "2.0", "id": id });
    match method {
        "ping" => one(&shared, &session, result(json!({}))),
        "tools/list" => {
            let tools = shared.world().tools.clone();
            one(&shared, &session, result(json!({ "tools": tools })))
        }
        "tools/call" => call(shared, session, body).await,
        "resources/list" => {
            let document = json!({ "uri": "demo://resource/static/document/features.md", "name": "features.md" });
            one(&shared, &session, result(json!({ "resources": [document] })))
        }
        "resources/read" => {
            let uri = body["params"]["uri"].clone();
            let read = json!({ "contents": [{ "uri": uri, "mimeType": "text/markdown", "text": "# Features" }] });
            one(&shared, &session, result(read))
        }
        _ => {
            let error = json!({ "code": -32601, "message": "Method not found" });
            one(&shared, &session, json!({ "jsonrpc": "2.0", "id": id, "error": error }))
        }
    }
}

/// Records the answer to a question, and passes it to the call that asked.
fn answered(shared: &Shared, body: &Value) {
    let mut world = shared.world();
    let Some(asked) = body["id"].as_u64().and_then(|id| world.asked.remove(&id)) else { return };
    world.answers.push(body["result"].clone());
    let _ = asked.send(body["result"].clone());
}

async fn call(shared: Arc<Shared>, session: String, body: Value) -> Response {
    let params = &body["params"];
    let name = params["name"].as_str().unwrap_or_default().to_owned();
    let arguments: Map<String, Value> = params["arguments"].as_object().cloned().unwrap_or_default();
    let fault = shared.faults.take(&name, |_| true);
    if fault == Some(Fault::Own(SessionLost)) {
        shared.world().sessions.clear();
        return refused(StatusCode::BAD_REQUEST, "Bad Request: No valid session ID provided", false);
    }
    let has_effect = fault.as_ref().is_none_or(Fault::is_after_effect);
    let work = if has_effect { tools::call(&mut shared.world(), &name, &arguments) } else { Work::Done(Value::Null) };
    match fault {
        None => {}
        Some(Fault::After(fault)) => return spoiled(&shared, &session, &body["id"], *fault).await,
        Some(fault) => return spoiled(&shared, &session, &body["id"], fault).await,
    }
    let (sender, response) = events(&shared, &session);
    let token = params["_meta"]["progressToken"].clone();
    let id = body["id"].clone();
    tokio::spawn(async move {
        let result = match work {
            Work::Done(result) => result,
            Work::Steps(steps, result) => {
                for step in 1..=steps {
                    tokio::time::sleep(STEP).await;
                    let params = json!({ "progress": step, "total": steps, "progressToken": token });
                    let progress = json!({ "method": "notifications/progress", "params": params, "jsonrpc": "2.0" });
                    if !token.is_null() && sender.send(progress).is_err() {
                        return;
                    }
                }
                result
            }
            Work::Asks(question) => match ask(&shared, &sender, question).await {
                Some(answer) => tools::answered(&answer),
                None => return,
            },
            Work::AsksForNote(question) => match ask(&shared, &sender, question).await {
                Some(answer) => tools::signed(&mut shared.world(), &answer),
                None => return,
            },
        };
        let _ = sender.send(json!({ "result": result, "jsonrpc": "2.0", "id": id }));
    });
    response
}

/// Answers a call with a fault.
async fn spoiled(shared: &Shared, session: &str, id: &Value, fault: Fault) -> Response {
    match fault {
        Fault::Status(_) => {
            let error = json!({ "code": -32603, "message": "Internal error" });
            return one(shared, session, json!({ "jsonrpc": "2.0", "id": id, "error": error }));
        }
        Fault::Flood { pause_ms, .. } => {
            let flood = flood::body(Duration::from_millis(pause_ms), shared.stop.clone());
            return ([("content-type", "application/json")], flood).into_response();
        }
        Fault::Hang => shared.stop.cancelled().await,
        _ => {}
    }
    ([("content-type", "text/event-stream")], flood::broken()).into_response()
}

/// Asks the client's user a question. Returns `None` if the client has closed the stream.
async fn ask(shared: &Shared, stream: &mpsc::UnboundedSender<Value>, question: Value) -> Option<Value> {
    let (sender, receiver) = oneshot::channel();
    let id = {
        let mut world = shared.world();
        let id = world.next_id;
        world.next_id += 1;
        world.asked.insert(id, sender);
        id
    };
    let asked = json!({ "method": "elicitation/create", "params": question, "jsonrpc": "2.0", "id": id });
    stream.send(asked).ok()?;
    tokio::select! {
        answer = receiver => answer.ok(),
        () = stream.closed() => None,
    }
}
