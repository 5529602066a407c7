//! The handling of a call: token, faults, limits, the method itself, the ledger.

use std::{collections::BTreeMap, future::pending, sync::Arc, time::Duration};

use axum::{
    Json,
    body::Bytes,
    extract::{Path, Query, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use serde_json::{Value, json};

use super::{Refusal, args::Args, dispatch};
use crate::{
    flood,
    slack::{
        SandboxSlack,
        check::Problem,
        faults::{Faults, Loss},
        ledger::Call,
        scopes,
        server::{Server, locked},
    },
};

/// `/api/<method>`
pub(in crate::slack) async fn call(
    State(server): State<Arc<Server>>,
    Path(method): Path<String>,
    Query(query): Query<BTreeMap<String, String>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let at = server.now();
    let method = method.trim_start_matches('/').to_owned();
    let args = Args::read(&headers, query, &body);
    let recorded = args.as_ref().map_or(Value::Null, recorded_without_token);
    let trouble = server.faults().take(&method, &recorded.to_string());
    if !trouble.delay.is_zero() {
        tokio::time::sleep(trouble.delay).await;
    }
    let record = |answer: &Value, status: StatusCode, answer_lost: bool| {
        let (method, body, answer) = (method.clone(), recorded.clone(), answer.clone());
        server.ledger.called(Call { at, method, body, answer, status: status.as_u16(), answer_lost });
    };
    if let Some(how) = trouble.request_lost {
        record(&json!({ "ok": false, "error": "request_lost" }), StatusCode::OK, true);
        return lost(how, &server).await;
    }
    if let Some(status) = trouble.page {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::FORBIDDEN);
        record(&json!({ "ok": false, "error": "page_of_a_proxy" }), status, false);
        return page(status);
    }
    if let Some(delay) = trouble.late {
        record(&json!({ "ok": false, "error": "request_late" }), StatusCode::OK, true);
        tokio::spawn(arrive_late(server.clone(), method, headers, args, delay));
        return lost(Loss::Closed, &server).await;
    }
    if method == "apps.connections.open" && Faults::take_one(&mut server.faults().hang_open) {
        record(&json!({ "ok": false, "error": "request_lost" }), StatusCode::OK, true);
        return lost(Loss::TimedOut, &server).await;
    }
    if let Some(seconds) = trouble.retry_after.or_else(|| over_limit(&server, &method, &recorded)) {
        let answer = Refusal::of("ratelimited").body();
        record(&answer, StatusCode::TOO_MANY_REQUESTS, false);
        return (StatusCode::TOO_MANY_REQUESTS, [(header::RETRY_AFTER, seconds.to_string())], Json(answer))
            .into_response();
    }
    let answering = server.ledger.answering();
    let refused = match &args {
        Ok(args) if trouble.blocks_refused && has_blocks(args) => Some("invalid_blocks".to_owned()),
        _ => trouble.error,
    };
    let answer = match refused {
        Some(error) => Err(Refusal::of(&error)),
        None => args
            .and_then(|mut args| {
                let token = args.take_token();
                allowed(&server, &method, &headers, token)?;
                permitted(&server, &method, &recorded)?;
                dispatch::call(&server, &method, &args)
            })
            .inspect_err(|refusal| server.complain_about(&method, refusal)),
    };
    let answer = match answer {
        Ok(mut answer) => {
            answer["ok"] = json!(true);
            answer
        }
        Err(refusal) => refusal.body(),
    };
    record(&answer, StatusCode::OK, trouble.answer_lost.is_some() || trouble.flood.is_some());
    drop(answering);
    if let Some(flood) = trouble.flood {
        return server.flood(flood);
    }
    match trouble.answer_lost {
        Some(how) => lost(how, &server).await,
        None => ([("x-oauth-scopes", server.options.scopes.join(","))], Json(answer)).into_response(),
    }
}

/// Returns true if the call has blocks.
fn has_blocks(args: &Args) -> bool {
    args.json("blocks").is_some_and(|blocks| blocks.as_array().is_none_or(|blocks| !blocks.is_empty()))
}

/// Returns the answer of a proxy in front of Slack.
fn page(status: StatusCode) -> Response {
    const HTML: &str = "<html><body><h1>Access denied</h1></body></html>";
    let mut response = (status, [(header::CONTENT_TYPE, "text/html")], HTML).into_response();
    if status.is_redirection() {
        response.headers_mut().insert(header::LOCATION, header::HeaderValue::from_static("http://127.0.0.1:9/"));
    }
    response
}

/// Carries out a call that arrives after its caller has timed out.
async fn arrive_late(
    server: Arc<Server>,
    method: String,
    headers: HeaderMap,
    args: Result<Args, Refusal>,
    delay: std::time::Duration,
) {
    tokio::time::sleep(delay).await;
    let done = args.and_then(|mut args| {
        let token = args.take_token();
        allowed(&server, &method, &headers, token)?;
        dispatch::call(&server, &method, &args)
    });
    if let Err(refusal) = done {
        server.complain_about(&method, &refusal);
    }
}

impl Server {
    /// Returns an answer whose body does not end.
    pub(in crate::slack) fn flood(&self, (status, pause): (u16, Duration)) -> Response {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let kind = [(header::CONTENT_TYPE, "application/json; charset=utf-8")];
        (status, kind, flood::body(pause, self.stop.clone())).into_response()
    }

    /// Records a complaint if the payload is the reason for the refusal.
    pub(in crate::slack) fn complain_about(&self, method: &str, refusal: &Refusal) {
        if let Some(reason) = refusal.fault_of_payload() {
            self.ledger.complain(self.now(), method, &refusal.error, &reason);
        }
    }

    /// Records a complaint about content that is accepted nevertheless.
    pub(in crate::slack) fn record_problem(&self, method: &str, checked: Result<(), Problem>) {
        if let Err(problem) = checked {
            self.ledger.complain(self.now(), method, problem.error, &problem.reason);
        }
    }
}

/// Checks that the app has the scope that a method needs.
fn permitted(server: &Server, method: &str, args: &Value) -> Result<(), Refusal> {
    let provided = &server.options.scopes;
    let scope = {
        let world = server.world();
        scopes::of_method(method, scopes::named(args).and_then(|name| world.channel(name)))
    };
    match scope.filter(|needed| !provided.iter().any(|scope| scope == needed)) {
        None => Ok(()),
        Some(needed) => {
            let mut refusal = Refusal::of("missing_scope");
            refusal.more.insert("needed".to_owned(), json!(needed));
            refusal.more.insert("provided".to_owned(), json!(provided.join(",")));
            Err(refusal)
        }
    }
}

fn recorded_without_token(args: &Args) -> Value {
    let mut args = args.clone();
    args.take_token();
    args.recorded()
}

fn allowed(server: &Server, method: &str, headers: &HeaderMap, argument: Option<String>) -> Result<(), Refusal> {
    let bearer = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let token = bearer.and_then(|value| value.strip_prefix("Bearer ")).map(str::to_owned).or(argument);
    let token = token.filter(|token| !token.is_empty()).ok_or_else(|| Refusal::of("not_authed"))?;
    let wanted = if method == "apps.connections.open" { SandboxSlack::APP_TOKEN } else { SandboxSlack::BOT_TOKEN };
    let refused = server.faults().token_refused.clone();
    if let Some(error) = refused.filter(|_| token == SandboxSlack::BOT_TOKEN) {
        return Err(Refusal::of(&error));
    }
    match token.as_str() {
        token if token == wanted || method == "api.test" => Ok(()),
        SandboxSlack::APP_TOKEN | SandboxSlack::BOT_TOKEN => Err(Refusal::of("not_allowed_token_type")),
        _ => Err(Refusal::of("invalid_auth")),
    }
}

fn over_limit(server: &Server, method: &str, args: &Value) -> Option<u64> {
    let limited = server.options.rate_limits.then(|| locked(&server.limits));
    limited?.count(method, args["channel"].as_str(), server.now())
}

/// Simulates the loss of an answer.
async fn lost(how: Loss, server: &Server) -> Response {
    match how {
        Loss::Closed => Response::new(flood::broken()),
        Loss::TimedOut => {
            tokio::select! {
                response = pending::<Response>() => response,
                () = server.stop.cancelled() => StatusCode::SERVICE_UNAVAILABLE.into_response(),
            }
        }
    }
}
