//! The HTTP server: reads a request, injects faults, calls the handler, writes the ledger, and
//! answers.
//!
//! A request holds the lock from the check of its token until its entry in the ledger, so crash
//! tests read an exact ledger. Control paths under `/sandbox` are not part of the API: faults do
//! not apply to them, and they are not in the ledger.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use axum::{
    Json, Router,
    body::{Body, Bytes, HttpBody as _, to_bytes},
    extract::{ConnectInfo, Request, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use countersign_core::private_file;
use countersign_wire::this_machine;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{
    Held, Options,
    failure::Failure,
    faults::{Down, Faults, Kind, When},
    late::{Late, LateRequest},
    ledger::{Entry, Ledger},
    routes::{self, Call, Gate},
    seed,
    world::{World, fresh_id},
};
use crate::{
    connection::{Switch, SwitchListener},
    flood,
};

/// The maximum size of a request body.
const BODY_LIMIT: usize = 5 * 1024 * 1024;

/// The state shared by the server and [`super::SandboxUpgrade`].
pub(crate) struct Shared {
    options: Options,
    world: Mutex<World>,
    faults: Mutex<Faults>,
    held: Mutex<Vec<(String, Held)>>,
    late: Late,
    pub(crate) ledger: Ledger,
    pub(crate) stop: CancellationToken,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl Shared {
    /// Opens the world that was saved in the file, or a new one.
    pub(crate) fn open(options: Options) -> std::io::Result<Self> {
        let saved = match &options.persist {
            Some(path) => load(path).map_err(|error| about(&format!("cannot use {}", path.display()), &error))?,
            None => None,
        };
        let found = saved.is_some();
        let mut world = saved.unwrap_or_default();
        world.version = options.version;
        world.now = options.clock.now();
        if options.seed && !found {
            seed::plant(&mut world);
        }
        let shared = Self {
            ledger: Ledger::open(options.ledger_file.as_deref())?,
            options,
            world: Mutex::new(world),
            late: Late::default(),
            faults: Mutex::default(),
            held: Mutex::default(),
            stop: CancellationToken::new(),
        };
        shared.save(&shared.world())?;
        Ok(shared)
    }

    /// Locks the world, carries out the late requests that are due, and sets the time.
    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        let mut world = self.world.lock().expect("no handler panics");
        let now = self.options.clock.now();
        for LateRequest { due, call, mut entry } in self.late.due(now) {
            world.now = due;
            let before = world.revision;
            drop(respond(&mut world, &call, &self.options)); // the caller has timed out
            entry.effect = world.revision != before;
            entry.at = due.to_string();
            self.saved(&world);
            self.ledger.write(entry);
        }
        world.now = now;
        world
    }

    /// Changes the world from outside a request.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut World) -> T) -> T {
        let mut world = self.world();
        let result = change(&mut world);
        self.saved(&world);
        result
    }

    /// Locks the active faults.
    pub(crate) fn faults(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().expect("no holder of the lock panics")
    }

    /// Locks the answers to hold back.
    pub(crate) fn held(&self) -> MutexGuard<'_, Vec<(String, Held)>> {
        self.held.lock().expect("no holder of the lock panics")
    }

    /// Removes and returns the handle that holds back the answer to this request, if any.
    fn take_held(&self, method: &str, path: &str) -> Option<Held> {
        let request = format!("{method} {path}");
        let mut held = self.held();
        let at = held.iter().position(|(only, _)| request.contains(only.as_str()))?;
        Some(held.remove(at).1)
    }

    fn save(&self, world: &World) -> std::io::Result<()> {
        let Some(path) = &self.options.persist else { return Ok(()) };
        let mut temporary = path.clone().into_os_string();
        temporary.push(".tmp");
        let temporary = PathBuf::from(temporary);
        private_file::write(&temporary, &serde_json::to_vec_pretty(world)?)?;
        std::fs::rename(&temporary, path)
    }

    fn saved(&self, world: &World) {
        if let Err(error) = self.save(world) {
            tracing::error!(%error, "cannot save the sandbox world");
        }
    }
}

fn load(path: &Path) -> std::io::Result<Option<World>> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Serves until the token is cancelled.
pub(crate) async fn serve(listener: SwitchListener, shared: Arc<Shared>) {
    let stop = shared.stop.clone();
    let app = router(shared).into_make_service_with_connect_info::<Switch>();
    if let Err(error) = axum::serve(listener, app).with_graceful_shutdown(stop.cancelled_owned()).await {
        tracing::error!(%error, "the sandbox UpGrade stopped");
    }
}

/// Returns the error with `what` in front of its message.
fn about(what: &str, error: &std::io::Error) -> std::io::Error {
    std::io::Error::new(error.kind(), format!("{what}: {error}"))
}

/// Binds a port on this machine only.
pub(crate) async fn bind(port: u16) -> std::io::Result<(SwitchListener, SocketAddr)> {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await;
    let listener = listener.map_err(|error| about(&format!("cannot listen on 127.0.0.1:{port}"), &error))?;
    let address = listener.local_addr()?;
    Ok((SwitchListener(listener), address))
}

fn router(shared: Arc<Shared>) -> Router {
    let routes = Router::new()
        .route("/sandbox/ledger", axum::routing::get(ledger))
        .route("/sandbox/faults", axum::routing::get(faults).post(add_faults).delete(clear_faults))
        .fallback(answer)
        .with_state(shared);
    this_machine::only(routes)
}

async fn ledger(State(shared): State<Arc<Shared>>) -> axum::Json<Vec<Entry>> {
    axum::Json(shared.ledger.entries())
}

async fn faults(State(shared): State<Arc<Shared>>) -> axum::Json<Faults> {
    axum::Json(shared.faults().clone())
}

async fn add_faults(State(shared): State<Arc<Shared>>, axum::Json(new): axum::Json<Faults>) -> axum::Json<Faults> {
    let mut faults = shared.faults();
    faults.once.extend(new.once);
    faults.down = new.down;
    faults.slow_ms = new.slow_ms;
    faults.ends_connections = new.ends_connections;
    axum::Json(faults.clone())
}

async fn clear_faults(State(shared): State<Arc<Shared>>) -> axum::Json<Faults> {
    *shared.faults() = Faults::default();
    axum::Json(Faults::default())
}

async fn answer(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(switch): ConnectInfo<Switch>,
    request: Request,
) -> Response {
    let (head, body) = request.into_parts();
    let (method, path) = (head.method.to_string(), head.uri.path().to_owned());
    if switch.is_spent() {
        // The previous answer was the last one on this connection, so the client now notices that
        // it is closed.
        switch.cut();
        return page(500);
    }
    let Ok(bytes) = to_bytes(body, BODY_LIMIT).await else { return page(413) };

    let (slow, down) = {
        let faults = shared.faults();
        (Duration::from_millis(faults.slow_ms), faults.down)
    };
    if !slow.is_zero() {
        tokio::time::sleep(slow).await;
    }
    let mut entry = Entry {
        at: shared.options.clock.now().to_string(),
        method: method.clone(),
        path: head.uri.path_and_query().map_or_else(|| path.clone(), ToString::to_string),
        user_id: text(&head.headers, "user-id"),
        body: serde_json::from_slice(&bytes).unwrap_or_default(),
        status: None,
        effect: false,
        answer_bytes: 0,
    };
    let early = match down {
        Some(Down::Closed) => Some(Kind::Lose),
        Some(Down::Unavailable) => Some(Kind::Fail(503)),
        None => shared.faults().take(When::BeforeEffect, &method, &path),
    };
    if let Some(Kind::Late { after_ms }) = early {
        let due = shared.options.clock.now() + Duration::from_millis(after_ms);
        if let Ok(call) = read(&head.headers, &entry, &path, head.uri.query(), &bytes) {
            shared.late.hold(LateRequest { due, call, entry });
        }
        return spoil(&shared, &switch, Kind::Hang).await;
    }
    if let Some(kind) = early {
        entry.status = status_of(&kind);
        shared.ledger.write(entry);
        return spoil(&shared, &switch, kind).await;
    }

    let call = read(&head.headers, &entry, &path, head.uri.query(), &bytes);
    let (response, late) = {
        let mut world = shared.world();
        let before = world.revision;
        let response = match call {
            Ok(call) => respond(&mut world, &call, &shared.options),
            Err(failure) => refuse(&failure, &world, &path, &Value::Null),
        };
        entry.effect = world.revision != before;
        let late = if entry.effect { shared.faults().take(When::AfterEffect, &method, &path) } else { None };
        entry.status = late.as_ref().map_or(Some(response.status().as_u16()), status_of);
        if late.is_none() {
            entry.answer_bytes = response.body().size_hint().exact().unwrap_or_default();
        }
        if entry.effect {
            shared.saved(&world);
        }
        shared.ledger.write(entry);
        (response, late)
    };
    if let Some(held) = shared.take_held(&method, &path) {
        tokio::select! {
            () = held.freed() => {}
            () = shared.stop.cancelled() => {}
        }
    }
    match late {
        Some(kind) => spoil(&shared, &switch, kind).await,
        None => {
            let refused = response.status().is_client_error() || response.status().is_server_error();
            if refused && shared.faults().ends_connections {
                switch.spend();
            }
            response
        }
    }
}

fn status_of(kind: &Kind) -> Option<u16> {
    match kind {
        Kind::Fail(status) | Kind::Answer { status, .. } | Kind::Flood { status, .. } => Some(*status),
        Kind::Lose | Kind::Hang | Kind::Late { .. } => None,
    }
}

/// Answers a request with a fault.
async fn spoil(shared: &Shared, switch: &Switch, kind: Kind) -> Response {
    match kind {
        Kind::Fail(status) => return page(status),
        Kind::Answer { status, body } => return (status_code(status), Json(body)).into_response(),
        Kind::Flood { status, pause_ms } => {
            let flood = flood::body(Duration::from_millis(pause_ms), shared.stop.clone());
            return (status_code(status), [(header::CONTENT_TYPE, "application/json")], flood).into_response();
        }
        Kind::Hang | Kind::Late { .. } => shared.stop.cancelled().await,
        Kind::Lose => {}
    }
    switch.cut();
    page(500)
}

fn status_code(status: u16) -> StatusCode {
    StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// Returns the page of a proxy in front of the server.
fn page(status: u16) -> Response {
    let status = status_code(status);
    let html = format!("<html><head><title>{status}</title></head><body><h1>{status}</h1></body></html>\n");
    (status, [(header::CONTENT_TYPE, "text/html; charset=utf-8")], html).into_response()
}

fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

/// Parses the call, or refuses a body that is not valid JSON.
fn read(headers: &HeaderMap, entry: &Entry, path: &str, query: Option<&str>, body: &Bytes) -> Result<Call, Failure> {
    let body: Value = if body.is_empty() {
        Value::Null
    } else {
        serde_json::from_slice(body).map_err(|error| {
            let message = if error.is_eof() { "Unexpected end of JSON input" } else { "Unexpected token in JSON" };
            Failure::syntax(message)
        })?
    };
    // There are no routes outside the prefix or after an empty segment.
    let inside = path.strip_prefix("/api").filter(|rest| rest.is_empty() || rest.starts_with('/'));
    let mut segments: Vec<String> =
        inside.map_or_else(|| vec![String::new()], |rest| rest.split('/').skip(1).map(str::to_owned).collect());
    if inside.is_some() && segments.last().is_some_and(String::is_empty) {
        segments.pop();
    }
    Ok(Call {
        method: entry.method.clone(),
        path: path.to_owned(),
        segments,
        query: query.unwrap_or_default().to_owned(),
        user_id: entry.user_id.clone(),
        authorization: text(headers, "authorization"),
        body,
    })
}

fn respond(world: &mut World, call: &Call, options: &Options) -> Response {
    let Some((gate, handler)) = routes::find(call, world.version) else {
        let failure = Failure::no_route(&call.method, &call.path);
        return refuse(&failure, world, &call.path, &call.body);
    };
    let sent = call.authorization.as_deref().map(|sent| sent.strip_prefix("Bearer ").unwrap_or(sent));
    let (token, minted) = (options.token.as_deref(), options.minted.as_deref());
    world.authenticated = token.is_some() || minted.is_some();
    let is_authorized = match (minted, sent) {
        (Some(minted), Some(sent)) => minted.accepts(sent),
        (Some(_), None) => false,
        (None, sent) => token.is_none() || sent == token,
    };
    let outcome = if gate == Gate::Admin && !is_authorized {
        Err(Failure::unauthorized(&call.method, &call.path))
    } else {
        handler(world, call)
    };
    match outcome {
        Ok(value) => reply(200, "application/json; charset=utf-8", value.to_string()),
        Err(failure) => refuse(&failure, world, &call.path, &call.body),
    }
}

fn refuse(failure: &Failure, world: &World, path: &str, sent: &Value) -> Response {
    match failure.page() {
        Some(html) => reply(failure.status, "text/html; charset=utf-8", html),
        None => {
            let body = failure.body(world.version, path, sent);
            reply(failure.status, "application/json; charset=utf-8", json!(body).to_string())
        }
    }
}

fn reply(status: u16, kind: &'static str, body: String) -> Response {
    Response::builder()
        .status(status)
        .header(header::CONTENT_TYPE, kind)
        .header("x-request-id", fresh_id())
        .body(Body::from(body))
        .expect("the status and the headers are valid")
}
