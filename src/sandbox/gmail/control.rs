//! The paths under `/sandbox`, by which another process writes mails as an outside sender and reads the sent ones.

use std::sync::Arc;

use axum::{
    Json, Router,
    extract::State,
    http::StatusCode,
    response::Response,
    routing::{get, post},
};
use serde_json::json;

use super::{
    deliver,
    faults::Fault,
    letter::Letter,
    server::{Shared, as_json},
};

/// The body of a request for faults.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    fault: Fault,
    #[serde(default)]
    only: String,
}

/// Returns the routes.
pub(super) fn routes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/letters", post(receive))
        .route("/sent", get(sent))
        .route("/ledger", get(ledger))
        .route("/faults", post(add_fault).delete(clear_faults))
}

async fn receive(State(shared): State<Arc<Shared>>, Json(letter): Json<Letter>) -> Response {
    as_json(StatusCode::OK, &json!({ "id": deliver(&shared, &letter) }))
}

async fn sent(State(shared): State<Arc<Shared>>) -> Response {
    drop(shared.world()); // the late requests that are due come first
    as_json(StatusCode::OK, &json!(shared.ledger.sent()))
}

async fn ledger(State(shared): State<Arc<Shared>>) -> Response {
    as_json(StatusCode::OK, &json!(shared.ledger.all()))
}

async fn add_fault(State(shared): State<Arc<Shared>>, Json(wanted): Json<Wanted>) -> StatusCode {
    shared.faults.next_on(&wanted.only, wanted.fault);
    StatusCode::NO_CONTENT
}

async fn clear_faults(State(shared): State<Arc<Shared>>) -> StatusCode {
    shared.faults.clear();
    StatusCode::NO_CONTENT
}
