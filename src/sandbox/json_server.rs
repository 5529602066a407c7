//! The server of the stand-ins for services that answer in JSON: reads a request, injects faults, calls the service's
//! handler, writes the ledger, and answers.
//!
//! A stand-in implements [`World`] with its state and its checks. The faults are those of [`crate::gmail`].

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard},
};

use axum::{
    Router,
    body::to_bytes,
    extract::{ConnectInfo, Request as HttpRequest, State},
    http::{StatusCode, header},
    response::{IntoResponse as _, Response},
};
use countersign_core::clock::{Clock, Timestamp};
use countersign_wire::this_machine;
use serde::Serialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use url::form_urlencoded;

use crate::{
    connection::{Switch, SwitchListener},
    flood,
    gmail::{Fault, Faults},
};

/// The maximum size of a request body.
const BODY_LIMIT: usize = 4 * 1024 * 1024;

/// A request as a stand-in handles it.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// The method.
    pub(crate) method: String,
    /// The path without the query, still encoded.
    pub(crate) path: String,
    /// The decoded parameters of the query.
    pub(crate) query: Vec<(String, String)>,
    /// The bearer token.
    pub(crate) token: Option<String>,
    /// The body; `None` if it is empty, an error if it isn't JSON.
    pub(crate) body: Result<Option<Value>, ()>,
}

impl Call {
    /// Returns the decoded parts of the path.
    pub(crate) fn parts(&self) -> Vec<String> {
        let decode = |part: &str| {
            // A plus sign in a path means itself.
            let part = part.replace('+', "%2B");
            form_urlencoded::parse(format!("x={part}").as_bytes()).next().map(|(_, value)| value.into_owned())
        };
        self.path.split('/').filter(|part| !part.is_empty()).filter_map(decode).collect()
    }

    /// Returns a parameter of the query.
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }
}

/// The answer of a stand-in.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    /// The HTTP status.
    pub(crate) status: u16,
    /// The body.
    pub(crate) body: Value,
    /// True if the request changed something.
    pub(crate) effect: bool,
}

impl Reply {
    /// An answer to a read.
    pub(crate) fn ok(body: Value) -> Self {
        Self { status: 200, body, effect: false }
    }

    /// An answer to a change.
    pub(crate) fn changed(status: u16, body: Value) -> Self {
        Self { status, body, effect: true }
    }
}

/// The state of a stand-in.
pub(crate) trait World: Send + 'static {
    /// Handles a request at a time.
    fn handle(&mut self, call: &Call, now: Timestamp) -> Reply;

    /// Returns an error with this status, in the format of the service, for an injected fault.
    fn failure(&self, status: u16) -> Value;
}

/// A received request.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Request {
    /// The time of its arrival, in milliseconds since 1970.
    pub at: i64,
    /// The method.
    pub method: String,
    /// The path without the query.
    pub path: String,
    /// The parameters of the query.
    pub query: Vec<(String, String)>,
    /// The body, if it was JSON.
    pub body: Value,
    /// True if the request changed something.
    pub effect: bool,
    /// The status of the answer; `None` if none was sent.
    pub status: Option<u16>,
}

/// A running server. Dropping it stops the server.
pub(crate) struct JsonServer<W> {
    address: SocketAddr,
    shared: Arc<Shared<W>>,
}

impl<W> std::fmt::Debug for JsonServer<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JsonServer").field("address", &self.address).finish_non_exhaustive()
    }
}

struct Shared<W> {
    world: Mutex<W>,
    faults: Faults,
    ledger: Mutex<Vec<Request>>,
    /// The requests that take effect later, with their times and places in the ledger.
    late: Mutex<Vec<(Timestamp, usize, Call)>>,
    clock: Arc<dyn Clock>,
    stop: CancellationToken,
}

impl<W: World> JsonServer<W> {
    /// Starts a server on a port on this machine; 0 means a free one.
    ///
    /// # Errors
    ///
    /// If the port is taken.
    pub(crate) async fn start(world: W, port: u16, clock: Arc<dyn Clock>) -> std::io::Result<Self> {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            world: Mutex::new(world),
            faults: Faults::default(),
            ledger: Mutex::default(),
            late: Mutex::default(),
            clock,
            stop: CancellationToken::new(),
        });
        tokio::spawn(serve(SwitchListener(listener), shared.clone()));
        Ok(Self { address, shared })
    }

    /// Returns the address without a path.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Locks the state, after the late requests that are due took effect.
    pub(crate) fn world(&self) -> MutexGuard<'_, W> {
        self.shared.catch_up();
        self.shared.world()
    }

    /// Returns the faults.
    pub(crate) fn faults(&self) -> Faults {
        self.shared.faults.clone()
    }

    /// Returns every request so far.
    pub(crate) fn ledger(&self) -> Vec<Request> {
        self.shared.catch_up();
        self.shared.ledger().clone()
    }
}

impl<W> Drop for JsonServer<W> {
    fn drop(&mut self) {
        self.shared.stop.cancel();
    }
}

impl<W> Shared<W> {
    fn world(&self) -> MutexGuard<'_, W> {
        self.world.lock().expect("no handler panics")
    }

    fn ledger(&self) -> MutexGuard<'_, Vec<Request>> {
        self.ledger.lock().expect("no holder of the lock panics")
    }
}

impl<W: World> Shared<W> {
    /// Lets the late requests that are due take effect.
    fn catch_up(&self) {
        let now = self.clock.now();
        let due: Vec<_> = {
            let mut late = self.late.lock().expect("no holder of the lock panics");
            late.extract_if(.., |(due, ..)| *due <= now).collect()
        };
        for (_, at, call) in due {
            drop(self.apply(&call, at));
        }
    }

    fn apply(&self, call: &Call, at: usize) -> Reply {
        let reply = self.world().handle(call, self.clock.now());
        self.ledger()[at].effect |= reply.effect;
        reply
    }

    /// Handles a request. Returns `None` if the client gets no answer.
    async fn handle(&self, call: &Call, at: usize) -> Option<Response> {
        self.catch_up();
        if self.faults.is_down() {
            return None;
        }
        let fault = self.faults.take(&format!("{} {}", call.method, call.path));
        let failed = |status: u16| json_response(status, &self.world().failure(status));
        let response = match fault {
            None => self.applied(call, at),
            Some(Fault::Status(status)) => failed(status),
            Some(Fault::TooMany(seconds)) => {
                let mut response = failed(429);
                response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
                response
            }
            Some(Fault::Proxy(status)) => page(status),
            Some(Fault::StatusAfterEffect(status)) => {
                drop(self.apply(call, at));
                failed(status)
            }
            Some(Fault::LostAnswer) => {
                drop(self.apply(call, at));
                return None;
            }
            Some(Fault::LostRequest) => return None,
            Some(Fault::HangAfterEffect) => {
                drop(self.apply(call, at));
                std::future::pending().await
            }
            Some(Fault::Hang) => std::future::pending().await,
            Some(Fault::Late(millis)) => {
                let due = Timestamp(self.clock.now().0.saturating_add_unsigned(millis));
                self.late.lock().expect("no holder of the lock panics").push((due, at, call.clone()));
                return None;
            }
            Some(Fault::Flood) => {
                let flood = flood::body(std::time::Duration::ZERO, self.stop.clone());
                ([(header::CONTENT_TYPE, "application/json")], flood).into_response()
            }
        };
        tokio::time::sleep(self.faults.delay()).await;
        Some(response)
    }

    fn applied(&self, call: &Call, at: usize) -> Response {
        let reply = self.apply(call, at);
        json_response(reply.status, &reply.body)
    }
}

async fn serve<W: World>(listener: SwitchListener, shared: Arc<Shared<W>>) {
    let stop = shared.stop.clone();
    let routes = Router::new().fallback(answer::<W>).with_state(shared);
    let app = this_machine::only(routes).into_make_service_with_connect_info::<Switch>();
    if let Err(error) = axum::serve(listener, app).with_graceful_shutdown(stop.cancelled_owned()).await {
        tracing::error!(%error, "a stand-in stopped");
    }
}

async fn answer<W: World>(
    State(shared): State<Arc<Shared<W>>>,
    ConnectInfo(switch): ConnectInfo<Switch>,
    request: HttpRequest,
) -> Response {
    let (head, body) = request.into_parts();
    let Ok(bytes) = to_bytes(body, BODY_LIMIT).await else { return page(413) };
    let token = head.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let token = token.and_then(|value| value.strip_prefix("Bearer ")).map(str::to_owned);
    let query = head.uri.query().unwrap_or_default();
    let call = Call {
        method: head.method.to_string(),
        path: head.uri.path().to_owned(),
        query: form_urlencoded::parse(query.as_bytes()).into_owned().collect(),
        token,
        body: if bytes.is_empty() { Ok(None) } else { serde_json::from_slice(&bytes).map(Some).map_err(drop) },
    };
    let at = {
        let mut ledger = shared.ledger();
        ledger.push(Request {
            at: shared.clock.now().millis(),
            method: call.method.clone(),
            path: call.path.clone(),
            query: call.query.clone(),
            body: call.body.clone().ok().flatten().unwrap_or_default(),
            effect: false,
            status: None,
        });
        ledger.len() - 1
    };
    let handled = tokio::select! {
        () = shared.stop.cancelled() => None,
        handled = shared.handle(&call, at) => handled,
    };
    shared.ledger()[at].status = handled.as_ref().map(|response| response.status().as_u16());
    handled.unwrap_or_else(|| {
        switch.cut();
        page(500)
    })
}

fn json_response(status: u16, body: &Value) -> Response {
    let headers = [(header::CONTENT_TYPE, "application/json; charset=UTF-8")];
    (status_of(status), headers, body.to_string()).into_response()
}

/// Returns the page of a proxy in front of the service.
fn page(status: u16) -> Response {
    let headers = [(header::CONTENT_TYPE, "text/html")];
    (status_of(status), headers, "<html><body>The service is not available.</body></html>").into_response()
}

fn status_of(status: u16) -> StatusCode {
    StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_path_are_decoded() {
        let call = Call {
            method: "GET".into(),
            path: "/calendars/a%40b.c+d/events".into(),
            query: vec![("q".into(), "1".into())],
            token: None,
            body: Ok(None),
        };
        assert_eq!(call.parts(), ["calendars", "a@b.c+d", "events"]);
        assert_eq!((call.parameter("q"), call.parameter("r")), (Some("1"), None));
    }
}
