//! A gate on the way to an outside system: counts the calls that pass and, at a chosen one, has the caller killed, or
//! something else happen.

use std::sync::{Arc, Mutex};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{Request, State},
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use serde_json::Value;
use tokio::task::JoinHandle;

use super::process::Kill;

/// How late a call is that was still on its way when its caller died.
const LATE: std::time::Duration = std::time::Duration::from_millis(700);

/// What happens to the call at which the caller is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// It never arrives.
    Before,
    /// It is done, and the answer finds nobody.
    After,
    /// It is still on its way, and arrives after the caller has died.
    Late,
}

/// Where the caller is killed.
#[derive(Clone, Debug)]
pub(super) struct Point {
    /// At which call, counted from 1.
    pub(super) at: usize,
    pub(super) side: Side,
    /// The name of the call, if only those of this name are counted, since others come at times of their own.
    pub(super) among: Option<String>,
}

/// The calls that passed several gates, in order.
#[derive(Default)]
pub(super) struct Calls {
    seen: Mutex<Vec<String>>,
    point: Option<Point>,
    /// Happens at the point, in place of the death of the caller.
    instead: Option<Box<dyn Fn() + Send + Sync>>,
    /// Kills the caller.
    pub(super) kill: Kill,
}

impl Calls {
    pub(super) fn with(point: Option<Point>) -> Arc<Self> {
        Arc::new(Self { point, ..Self::default() })
    }

    /// At this point the caller is not killed, but this happens: before the call arrives, or when it is done and its answer
    /// is lost with that.
    pub(super) fn where_happens(point: Point, what: impl Fn() + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { point: Some(point), instead: Some(Box::new(what)), ..Self::default() })
    }

    /// `METHOD /path` of each, without the ids in it, and with the tool if one is called by its name.
    pub(super) fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }

    /// Counts a call. The side on which its caller dies, if it does.
    fn count(&self, call: String) -> Option<Side> {
        let mut seen = self.seen.lock().unwrap();
        let point = self.point.as_ref().filter(|point| point.among.as_ref().is_none_or(|name| *name == call));
        seen.push(call);
        let count = |point: &Point| match &point.among {
            Some(name) => seen.iter().filter(|call| *call == name).count(),
            None => seen.len(),
        };
        point.filter(|point| point.at == count(point)).map(|point| point.side)
    }
}

/// One gate, open until it is dropped.
#[derive(Debug)]
pub(super) struct Gate {
    url: String,
    serving: JoinHandle<()>,
}

impl Gate {
    /// A gate before the server at `target`, such as `http://127.0.0.1:4711`.
    pub(super) async fn before(target: &str, calls: Arc<Calls>) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let client = reqwest::Client::builder().no_proxy().tls_certs_only([]).build().unwrap();
        let app = Router::new().fallback(pass).with_state((client, target.to_owned(), calls));
        let serving = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { url, serving }
    }

    /// Where callers knock.
    pub(super) fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

type Passage = (reqwest::Client, String, Arc<Calls>);

async fn pass(State((client, target, calls)): State<Passage>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
    let body = to_bytes(body, usize::MAX).await.unwrap();
    let tool = tool_of(&body).map(|tool| format!(" {tool}")).unwrap_or_default();
    let side = calls.count(format!("{} {}{tool}", head.method, without_ids(head.uri.path())));
    let mut headers = head.headers;
    headers.remove("host");
    let forward = client.request(head.method, format!("{target}{path}")).headers(headers).body(body);
    // A task of its own: the call goes on although its caller hangs up.
    let passed = tokio::spawn(async move {
        match side {
            None => {}
            Some(side) if let Some(happens) = &calls.instead => {
                let arrives = side != Side::Before;
                if arrives {
                    forward.try_clone().expect("its body is here").send().await.ok();
                }
                happens();
                if arrives {
                    return None;
                }
            }
            Some(Side::Before) => {
                calls.kill.now();
                return None;
            }
            Some(Side::After) => {
                forward.send().await.ok();
                calls.kill.now();
                return None;
            }
            Some(Side::Late) => {
                calls.kill.now();
                tokio::time::sleep(LATE).await;
                forward.send().await.ok();
                return None;
            }
        }
        let answer = forward.send().await.ok()?;
        let (status, headers) = (answer.status(), answer.headers().clone());
        let mut response = Response::new(Body::from_stream(answer.bytes_stream())); // some never end
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        response.headers_mut().remove("transfer-encoding");
        Some(response)
    });
    passed.await.unwrap().unwrap_or_else(|| StatusCode::BAD_GATEWAY.into_response())
}

/// A path in which the ids of mails, drafts and labels are `‹id›`.
fn without_ids(path: &str) -> String {
    let is_id = |part: &str| part.len() > 4 && part.bytes().any(|b| b.is_ascii_digit());
    path.split('/').map(|part| if is_id(part) { "‹id›" } else { part }).collect::<Vec<_>>().join("/")
}

/// The tool that a request calls by its name, or what it is else, as bridges and MCP servers are called.
fn tool_of(body: &[u8]) -> Option<String> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let answer = body.get("jsonrpc").and(body.get("result")).map(|_| "answer");
    let named = [&body["tool"], &body["params"]["name"], &body["method"]].into_iter().find_map(Value::as_str);
    named.or(answer).map(str::to_owned)
}
