//! Health, readiness and metrics over HTTP.

use std::time::Instant;

use axum::{Json, Router, extract::State, http::StatusCode, routing::get};
use serde_json::{Value, json};

use countersign_conversation::runtime::sweeper::Rounds;
use countersign_slack::{client::SlackClient, socket_health::SocketHealth};
use tokio::sync::watch;

use super::{
    mail::probe::MailProbe,
    models::ModelNews,
    readiness::{Readiness, Working},
    services::Services,
    supervision::Supervision,
    telemetry,
};

/// The state of the Socket Mode connection.
pub(super) type Health = watch::Receiver<SocketHealth>;

/// Returns the routes for probes and metrics.
///
/// - `/healthz` succeeds if the process runs.
/// - `/readyz` succeeds if the store accepts writes, Slack answers and accepts the bot token, and all tasks run. It also shows
///   parts of the store that do not accept writes, missing scopes, models that the provider retires, the state of the
///   outside systems of the capabilities and that of mail; none of them makes the bot unready.
/// - `/metrics` returns the metrics for Prometheus.
pub(super) fn router(deps: HttpDeps) -> Router {
    Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/metrics", get(metrics))
        .route("/readyz", get(ready))
        .with_state(deps)
}

/// The dependencies of the probes.
#[derive(Clone)]
pub(super) struct HttpDeps {
    /// The state of the store.
    pub store: Readiness,
    /// The state of the Socket Mode connection, if events arrive through it.
    pub slack: Option<Health>,
    /// The platforms of the capabilities; they are shown, but never make the bot unready.
    pub services: Services,
    /// The client with the bot token, which knows the scopes that are missing and whether the token is accepted.
    pub client: SlackClient,
    /// The tasks that must run all the time.
    pub tasks: Supervision,
    /// The rounds of the sweeper.
    pub rounds: Rounds,
    /// The state of mail, if there is a mail account.
    pub mail: Option<MailProbe>,
    /// The warnings of the providers' lists about the configured models. They never make the bot unready.
    pub models: ModelNews,
}

/// What makes the bot ready, or why it is not.
struct Seen {
    store: Result<Working, String>,
    slack: Result<String, String>,
    tasks: Result<String, String>,
}

impl Seen {
    fn is_ready(&self) -> bool {
        self.store.is_ok() && self.slack.is_ok() && self.tasks.is_ok()
    }
}

impl HttpDeps {
    async fn seen(&self) -> Seen {
        let store = self.store.check().await;
        let wrong = self.tasks.wrong().or_else(|| self.rounds.fault());
        let tasks = wrong.map_or_else(|| Ok("running".to_owned()), Err);
        let slack = match (token(&self.client), self.slack.as_ref().map(|health| health.borrow().clone())) {
            (Err(refused), _) => Err(refused),
            (Ok(()), None) => Ok("events arrive over HTTP".to_owned()),
            (Ok(()), Some(SocketHealth::Connected)) => Ok("connected".to_owned()),
            (Ok(()), Some(other)) => Err(other.to_string()),
        };
        Seen { store, slack, tasks }
    }
}

async fn metrics(State(deps): State<HttpDeps>) -> String {
    let is_ready = deps.seen().await.is_ready(); // sets the gauges of the store
    metrics::gauge!("countersign_ready").set(f64::from(u8::from(is_ready)));
    if let Some(mail) = &deps.mail {
        mail.refresh_metrics().await;
    }
    telemetry::metrics()
}

async fn ready(State(deps): State<HttpDeps>) -> (StatusCode, Json<Value>) {
    let seen = deps.seen().await;
    let HttpDeps { services, client, mail, models, .. } = deps;
    let status = if seen.is_ready() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let Seen { store, slack, tasks } = seen;
    let report = |result: Result<String, String>| match result {
        Ok(what) => json!({ "ok": true, "what": what }),
        Err(what) => json!({ "ok": false, "what": what }),
    };
    let store = match store {
        Ok(Working { name, problems }) if problems.is_empty() => report(Ok(name)),
        Ok(Working { name, problems }) => json!({ "ok": true, "what": name, "problems": problems }),
        Err(what) => report(Err(what)),
    };
    let mut body = json!({
        "ready": status == StatusCode::OK,
        "store": store,
        "slack": report(slack),
        "tasks": report(tasks),
    });
    let services = services.report();
    if !services.is_empty() {
        body["services"] = json!(services);
    }
    if let Some(mail) = mail {
        body["mail"] = mail.report().await;
    }
    let models = models.lines();
    if !models.is_empty() {
        body["models"] = json!(models);
    }
    let missing = client.missing_scopes().lines();
    if !missing.is_empty() {
        body["missing_scopes"] = json!(missing);
    }
    (status, Json(body))
}

/// Returns the reason why Slack refuses the bot token, if it does. The token is then tried again in the background, for which
/// no probe waits: nothing else might call Slack.
fn token(client: &SlackClient) -> Result<(), String> {
    let health = client.token_health();
    if health.is_to_be_tried(Instant::now()) {
        let client = client.clone();
        tokio::spawn(async move { client.auth_test().await });
    }
    health.refusal().map_or(Ok(()), |refusal| Err(refusal.to_string()))
}
