//! `/trace` and `/trace/threads`: the bot's threads, and a record of what it did in each.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Query, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::TraceSource;

/// The query parameters that identify a thread.
#[derive(Debug, Deserialize)]
pub(super) struct Thread {
    channel: String,
    ts: String,
}

/// Responds with the list of all threads.
pub(super) async fn threads(State(source): State<Arc<dyn TraceSource>>) -> Response {
    respond(source.threads().await.map(Some))
}

/// Responds with the trace of one thread.
pub(super) async fn thread(State(source): State<Arc<dyn TraceSource>>, Query(thread): Query<Thread>) -> Response {
    respond(source.trace(&thread.channel, &thread.ts).await)
}

fn respond(result: Result<Option<Value>, String>) -> Response {
    let (status, body) = match result {
        Ok(Some(found)) => (StatusCode::OK, found),
        Ok(None) => (StatusCode::NOT_FOUND, json!({ "error": "the bot hasn't been in this thread" })),
        Err(reason) => (StatusCode::BAD_GATEWAY, json!({ "error": reason })),
    };
    (status, [(header::CACHE_CONTROL, "no-store")], Json(body)).into_response()
}
