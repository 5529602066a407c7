//! Health, readiness and metrics over HTTP.

use std::sync::Arc;

use axum::{Json, Router, extract::State, http::StatusCode, routing::get};
use serde_json::{Value, json};

use tokio::sync::watch;

use super::{readiness::Readiness, telemetry};
use crate::{
    graph::store::Store,
    slack::{missing_scopes::MissingScopes, socket_health::SocketHealth},
};

/// Whether the way in is open.
pub type Health = watch::Receiver<SocketHealth>;

/// `/healthz`: the process runs. `/readyz`: the store keeps what is written, and Slack answers; scopes that turned out to be missing are named there,
/// and the bot is ready all the same for everything else. `/metrics`: for Prometheus.
pub fn router(store: Arc<dyn Store>, slack: Option<Health>, missing: Arc<MissingScopes>) -> Router {
    Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/metrics", get(async || telemetry::metrics()))
        .route("/readyz", get(ready))
        .with_state(Ready { store: Readiness::new(store), slack, missing })
}

#[derive(Clone)]
struct Ready {
    store: Readiness,
    slack: Option<Health>,
    missing: Arc<MissingScopes>,
}

async fn ready(State(Ready { store, slack, missing }): State<Ready>) -> (StatusCode, Json<Value>) {
    let store = store.look().await;
    let slack = match slack.map(|health| health.borrow().clone()) {
        None => Ok("events come by HTTP".to_owned()),
        Some(SocketHealth::Connected) => Ok("connected".to_owned()),
        Some(other) => Err(other.to_string()),
    };
    let status = if store.is_ok() && slack.is_ok() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let tell = |result: Result<String, String>| match result {
        Ok(what) => json!({ "ok": true, "what": what }),
        Err(what) => json!({ "ok": false, "what": what }),
    };
    let mut told = json!({ "ready": status == StatusCode::OK, "store": tell(store), "slack": tell(slack) });
    let missing = missing.told();
    if !missing.is_empty() {
        told["missing_scopes"] = json!(missing);
    }
    (status, Json(told))
}
