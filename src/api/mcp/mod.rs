//! The MCP server: tools with which agents ask. Each is one or more calls of the HTTP API, made within the server for
//! `POST /mcp` and over the network for `countersign mcp`; there is no tool that decides.
//!
//! A call returns before its client gives up, with words that keep a model from asking twice. Ending a call ends the wait,
//! not the request.

mod tool_use;
mod tools;

use std::{sync::Arc, time::Duration};

use axum::{
    body::{Body, to_bytes},
    http::{Request, header, request::Parts},
    response::{IntoResponse as _, Response},
};
use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt as _,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, ListToolsResult,
        PaginatedRequestParams, ProgressNotificationParam, ServerCapabilities, ServerConfig,
    },
    service::RequestContext,
    transport::{
        stdio,
        streamable_http_server::{
            StreamableHttpServerConfig, StreamableHttpService, session::never::NeverSessionManager,
        },
    },
};
use serde_json::{Value, json};
use tokio::time::{Instant, interval};
use tokio_util::sync::CancellationToken;

pub(crate) use self::tool_use::{Answered, approve};
use super::{client::Http, server::Server, settings::Api};

/// What a client is told about the whole.
const INSTRUCTIONS: &str = "Asks people in Slack for approvals. Ask before a change that needs one, with exactly what you are \
    about to do as the payload. Only the state `approved`, and then a claim, allows the change. People decide in Slack; you \
    cannot, and waiting may take hours.";

/// The longest wait of a call without a progress token, which clients end after half a minute or later.
const WAIT: Duration = Duration::from_secs(25);

/// The longest wait of a call that reports its progress, and of a permission prompt.
const LONG_WAIT: Duration = Duration::from_secs(240);

/// The time between two reports of progress, and the longest wait of one call of the API.
const PROGRESS_EVERY: Duration = Duration::from_secs(10);

/// The largest answer of the API that is read, in bytes.
const MAX_ANSWER: usize = 4 << 20;

/// A call of the API.
pub(crate) struct Call<'a> {
    pub(crate) method: &'static str,
    pub(crate) path: String,
    pub(crate) body: Option<&'a Value>,
    pub(crate) idempotency_key: Option<String>,
    /// The time for which the API may wait before it answers.
    pub(crate) waits: Duration,
}

impl<'a> Call<'a> {
    fn get(path: impl Into<String>) -> Self {
        Self { method: "GET", path: path.into(), body: None, idempotency_key: None, waits: Duration::ZERO }
    }

    fn post(path: impl Into<String>, body: &'a Value) -> Self {
        Self { method: "POST", body: Some(body), ..Self::get(path) }
    }

    fn under(self, idempotency_key: impl Into<String>) -> Self {
        Self { idempotency_key: Some(idempotency_key.into()), ..self }
    }
}

/// The way to the API.
#[derive(Clone)]
pub(crate) enum Door {
    /// Within the server, with the key of the request that the tool call came in.
    Inside(Server, Arc<Parts>),
    /// Over the network.
    Outside(Arc<Http>),
}

impl Door {
    /// Makes a call.
    ///
    /// # Errors
    ///
    /// The problem, as the API describes it.
    async fn call(&self, call: Call<'_>) -> Result<Value, Value> {
        let (server, parts) = match self {
            Self::Inside(server, parts) => (server, parts),
            Self::Outside(http) => return Box::pin(http.make(call)).await,
        };
        let mut request = Request::builder().method(call.method).uri(&call.path);
        if let Some(key) = parts.headers.get(header::AUTHORIZATION) {
            request = request.header(header::AUTHORIZATION, key);
        }
        if let Some(key) = &call.idempotency_key {
            request = request.header("idempotency-key", key);
        }
        let body = call.body.map(Value::to_string).unwrap_or_default();
        let request = request.header(header::CONTENT_TYPE, "application/json").body(Body::from(body));
        let mut request =
            request.map_err(|_| json!({ "detail": "An id or a key has characters that it cannot have." }))?;
        *request.extensions_mut() = parts.extensions.clone();
        let answer = Box::pin(server.answer(request)).await.unwrap_or_else(axum::response::IntoResponse::into_response);
        let is_good = answer.status().is_success();
        let bytes = to_bytes(answer.into_body(), MAX_ANSWER).await.unwrap_or_default();
        let body = serde_json::from_slice(&bytes).unwrap_or_default();
        if is_good { Ok(body) } else { Err(body) }
    }
}

/// A tool call that is being answered.
struct Waiting<'a> {
    door: &'a Door,
    /// The context, by which progress is reported; `None` for a hook, which has no client.
    context: Option<&'a RequestContext<RoleServer>>,
    began: Instant,
}

impl<'a> Waiting<'a> {
    fn new(door: &'a Door, context: Option<&'a RequestContext<RoleServer>>) -> Self {
        Self { door, context, began: Instant::now() }
    }

    /// Returns the longest wait that the client allows.
    fn patience(&self) -> Duration {
        let reports = self.context.is_some_and(|context| context.meta.get_progress_token().is_some());
        if reports { LONG_WAIT } else { WAIT }
    }

    /// Waits until a request is decided, for at most this time. Returns it as it is then.
    async fn decided(&self, mut seen: Value, longest: Duration) -> Result<Value, Value> {
        let deadline = self.began + longest;
        let id = seen["id"].as_str().unwrap_or_default().to_owned();
        while is_undecided(&seen) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left < Duration::from_secs(1) {
                break;
            }
            let waits = left.min(PROGRESS_EVERY * 5);
            let (began, path) = (Instant::now(), format!("/v1/approvals/{id}?wait={}", waits.as_secs()));
            seen = self.reporting(&seen, self.door.call(Call { waits, ..Call::get(path) })).await?;
            // A server that shuts down, or has too many connections, answers before the time is over.
            if is_undecided(&seen) && began.elapsed() < waits / 2 {
                match self.door {
                    Door::Inside(..) => break,
                    Door::Outside(_) => tokio::time::sleep(Duration::from_millis(500)).await,
                }
            }
        }
        Ok(seen)
    }

    /// Waits for an answer, and reports progress meanwhile.
    async fn reporting<T>(&self, seen: &Value, answer: impl Future<Output = T>) -> T {
        let token = self.context.and_then(|context| Some((context, context.meta.get_progress_token()?)));
        let Some((context, token)) = token else { return answer.await };
        let mut ticks = interval(PROGRESS_EVERY);
        let mut answer = std::pin::pin!(answer);
        loop {
            tokio::select! {
                biased;
                answer = &mut answer => return answer,
                _ = ticks.tick() => {
                    let (policy, ends) = (&seen["policy"], seen["expires_at"].as_str().unwrap_or_default());
                    let message = format!("{} of {} approvals; ends {ends}", policy["approvals"], policy["needed"]);
                    let progress = ProgressNotificationParam::new(token.clone(), self.began.elapsed().as_secs_f64());
                    context.peer.notify_progress(progress.with_message(message)).await.ok(); // nobody has to see it
                }
            }
        }
    }
}

fn is_undecided(seen: &Value) -> bool {
    matches!(seen["state"].as_str(), Some("proposed" | "pending"))
}

/// The tools, as a client of the protocol sees them.
#[derive(Clone)]
pub(crate) enum Tools {
    /// Within the server. The key is in each request.
    Inside(Server),
    /// Over the network.
    Outside(Arc<Http>),
}

impl ServerHandler for Tools {
    fn get_info(&self) -> ServerConfig {
        let version = Implementation::new("countersign", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(version)
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::TOOLS.iter().map(tools::Tool::described).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let door = match self {
            Self::Outside(http) => Door::Outside(http.clone()),
            Self::Inside(server) => {
                let parts = context.extensions.get::<Parts>().cloned();
                let parts = parts.ok_or_else(|| ErrorData::internal_error("the request has no headers", None))?;
                Door::Inside(server.clone(), Arc::new(parts))
            }
        };
        let Some(tool) = tools::TOOLS.iter().find(|tool| tool.name == request.name) else {
            return Err(ErrorData::invalid_params(format!("there is no tool {}", request.name), None));
        };
        let given = Value::Object(request.arguments.unwrap_or_default());
        let waiting = Waiting::new(&door, Some(&context));
        let called = tokio::select! {
            called = tool.call(&waiting, given) => called,
            () = context.ct.cancelled() => return Err(ErrorData::internal_error("the call was cancelled", None)),
        };
        let result = match called {
            Ok(answer) => {
                let text = answer.as_str().map_or_else(|| format!("{answer:#}"), str::to_owned);
                let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
                result.structured_content = answer.is_object().then_some(answer);
                result
            }
            Err(problem) => CallToolResult::error(vec![ContentBlock::text(in_words(&problem))]),
        };
        Ok(result.into())
    }
}

/// Describes a problem in words.
fn in_words(problem: &Value) -> String {
    let mut words = problem["detail"].as_str().unwrap_or("The request failed.").to_owned();
    for error in problem["errors"].as_array().into_iter().flatten() {
        let (at, what) = (error["pointer"].as_str().unwrap_or_default(), error["detail"].as_str().unwrap_or_default());
        if !words.contains(what) {
            words = format!("{words}\n{at}: {what}");
        }
    }
    words
}

/// The protocol over HTTP. Each request is answered by itself: there are no sessions.
pub(crate) type OverHttp = StreamableHttpService<Tools, NeverSessionManager>;

/// Returns the protocol over HTTP, which only programs may use that name this server in `Host`, and no page of a browser.
pub(crate) fn over_http(server: &Server, settings: &Api, stop: CancellationToken) -> OverHttp {
    let listen = settings.listen.map(|address| address.ip().to_string());
    let public = url::Url::parse(&settings.url()).ok().and_then(|url| url.host_str().map(str::to_owned));
    let hosts = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).into_iter().chain(listen).chain(public);
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_allowed_hosts(hosts)
        .enforce_origin_validation()
        .with_max_request_body_bytes(2 * super::server::MAX_BODY)
        .with_cancellation_token(stop);
    let server = server.clone();
    StreamableHttpService::new(move || Ok(Tools::Inside(server.clone())), Arc::default(), config)
}

/// Answers a request of the protocol.
pub(crate) async fn serve(service: &OverHttp, request: Request<Body>) -> Response {
    service.handle(request).await.map(Body::new).into_response()
}

/// Speaks the protocol on standard input and output until the client is gone.
///
/// # Errors
///
/// The reason, if the client does not speak it.
pub(crate) async fn over_stdio(http: Http) -> Result<(), String> {
    let running = Box::pin(Tools::Outside(Arc::new(http)).serve(stdio())).await.map_err(|error| error.to_string())?;
    running.waiting().await.map(drop).map_err(|error| error.to_string())
}
