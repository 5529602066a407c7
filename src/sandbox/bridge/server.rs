//! The HTTP server: reads a request, injects faults, calls the handler, writes the ledger, and
//! answers.

use std::{
    net::SocketAddr,
    path::Path,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes, to_bytes},
    extract::{ConnectInfo, Request, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use countersign_core::private_file;
use countersign_wire::this_machine;
use serde_json::Value;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{
    Fault, Options, Version,
    failure::Failure,
    faults::Faults,
    fresh_id,
    ledger::{self, Ledger},
    mcp,
    moment::Moment,
    rest::{self, Answer, Call, RequestContext},
    stream,
    world::{OnDisk, World},
};
use crate::{
    connection::{Switch, SwitchListener},
    flood,
};

/// The maximum size of a request body.
const BODY_LIMIT: usize = 5 * 1024 * 1024;

/// The window of the rate limit, in milliseconds.
const MINUTE: i64 = 60_000;

/// The state shared by the server and [`super::Bridge`].
pub(crate) struct Shared {
    /// The options.
    pub(crate) options: Options,
    world: Mutex<World>,
    faults: Mutex<Faults>,
    /// The ledger of all requests.
    pub(crate) ledger: Ledger,
    /// The beginning of the current window, and the number of requests in it.
    window: Mutex<(i64, usize)>,
    down: Mutex<bool>,
    /// Cancelled by a restart of the bridge, which then creates a new one.
    epoch: Mutex<CancellationToken>,
    released: Notify,
    stop: CancellationToken,
    started: Moment,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl Shared {
    /// Creates the state, with the jobs and snapshots that were saved.
    pub(crate) fn open(options: Options) -> std::io::Result<Self> {
        let stop = CancellationToken::new();
        let mut world = World::new(options.version, options.backend, options.scheduler, options.run_takes);
        world.tick(options.clock.now().millis());
        if let Some(saved) = options.persist.as_deref().map(load).transpose()? {
            world.resume(saved);
        }
        Ok(Self {
            world: Mutex::new(world),
            faults: Mutex::default(),
            ledger: Ledger::open(options.ledger_file.as_deref())?,
            window: Mutex::default(),
            down: Mutex::new(false),
            epoch: Mutex::new(stop.child_token()),
            released: Notify::new(),
            stop,
            started: Moment(options.clock.now().millis() * 1000),
            options,
        })
    }

    /// Locks the world, with the clock set.
    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        let mut world = self.world.lock().expect("no handler panics");
        world.tick(self.options.clock.now().millis());
        world
    }

    /// Locks the faults.
    pub(crate) fn faults(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().expect("no holder of the lock panics")
    }

    /// Stops the server.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }

    /// Takes the bridge down or up.
    pub(crate) fn set_down(&self, down: bool) {
        *self.down.lock().expect("no holder of the lock panics") = down;
    }

    fn is_down(&self) -> bool {
        *self.down.lock().expect("no holder of the lock panics")
    }

    fn epoch(&self) -> CancellationToken {
        self.epoch.lock().expect("no holder of the lock panics").clone()
    }

    /// Restarts the bridge.
    pub(crate) fn restart(&self) {
        let mut world = self.world();
        world.restart();
        self.save(&world);
        drop(world);
        let next = self.stop.child_token();
        std::mem::replace(&mut *self.epoch.lock().expect("no holder of the lock panics"), next).cancel();
    }

    /// Finishes all jobs, and stops holding jobs.
    pub(crate) fn finish_jobs(&self) {
        let mut world = self.world();
        world.held = false;
        world.finish_all();
        self.save(&world);
        drop(world);
        self.released.notify_waiters();
    }

    /// Stops holding jobs, so that they end by themselves again.
    pub(crate) fn release_jobs(self: &Arc<Self>) {
        let mut world = self.world();
        world.held = false;
        self.start_timers(&mut world);
        drop(world);
        self.released.notify_waiters();
    }

    /// Finishes the oldest unfinished job. Returns its id.
    pub(crate) fn finish_next_job(&self) -> Option<String> {
        let mut world = self.world();
        let id = world.jobs.iter().find(|job| !job.status.is_final())?.id.clone();
        while world.job(&id).is_some_and(|job| !job.status.is_final()) {
            world.advance(&id);
        }
        self.save(&world);
        Some(id)
    }

    /// Counts a request. Returns true if it is within the rate limit.
    fn is_within_limit(&self) -> bool {
        let now = self.options.clock.now().millis();
        let mut window = self.window.lock().expect("no holder of the lock panics");
        if window.0 + MINUTE < now {
            *window = (now, 0);
        }
        let within = window.1 < self.options.rate_limit;
        window.1 += usize::from(within);
        within
    }

    /// Starts a timer for each started job and each job in the scheduler.
    fn start_timers(self: &Arc<Self>, world: &mut World) {
        let waiting: Vec<(String, Duration)> = world
            .jobs
            .iter()
            .filter(|job| !job.timed && !job.status.is_final())
            .filter(|job| job.started.is_some() || job.external.is_some())
            .map(|job| (job.id.clone(), world.takes(job)))
            .collect();
        for (id, takes) in waiting {
            for job in world.jobs.iter_mut().filter(|job| job.id == id) {
                job.timed = true;
            }
            let (shared, epoch) = (self.clone(), self.epoch());
            tokio::spawn(async move {
                tokio::select! {
                    () = epoch.cancelled() => return,
                    () = tokio::time::sleep(takes) => {}
                }
                shared.time_elapsed(&id);
            });
        }
    }

    /// Advances a job after its time has elapsed, unless jobs are held.
    fn time_elapsed(self: &Arc<Self>, id: &str) {
        let mut world = self.world();
        if world.held {
            for job in world.jobs.iter_mut().filter(|job| job.id == id) {
                job.timed = false;
            }
            return;
        }
        if world.job(id).is_some_and(|job| !job.status.is_final()) {
            world.advance(id);
        }
        self.start_timers(&mut world);
        self.save(&world);
    }

    /// Writes the state to store on disk.
    fn save(&self, world: &World) {
        let Some(path) = &self.options.persist else { return };
        let temporary = path.with_extension("tmp");
        let saved = serde_json::to_vec(&world.on_disk()).expect("plain JSON");
        let written = private_file::write(&temporary, &saved).and_then(|()| std::fs::rename(&temporary, path));
        if let Err(error) = written {
            tracing::error!(%error, "cannot save the jobs of the sandbox bridge");
        }
    }

    /// Waits for the duration of these runs and until jobs are not held. A sensitivity run is
    /// answered after its last scenario.
    async fn wait_for_runs(&self, runs: usize) {
        let runs = u32::try_from(runs).unwrap_or(u32::MAX);
        tokio::time::sleep(self.options.run_takes.saturating_mul(runs)).await;
        loop {
            let released = self.released.notified();
            if !self.world().held {
                return;
            }
            released.await;
        }
    }
}

/// Reads the state that was stored on disk; the default if there is no file yet.
fn load(path: &Path) -> std::io::Result<OnDisk> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(serde_json::from_slice(&bytes)?),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(OnDisk::default()),
        Err(error) => Err(error),
    }
}

/// Binds a port on this machine only.
pub(crate) async fn bind(port: u16) -> std::io::Result<(SwitchListener, SocketAddr)> {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    let address = listener.local_addr()?;
    Ok((SwitchListener(listener), address))
}

/// Serves until the bridge is dropped.
pub(crate) async fn serve(listener: SwitchListener, shared: Arc<Shared>) {
    let stop = shared.stop.clone();
    let routes = this_machine::only(Router::new().fallback(answer).with_state(shared));
    let app = routes.into_make_service_with_connect_info::<Switch>();
    if let Err(error) = axum::serve(listener, app).with_graceful_shutdown(stop.cancelled_owned()).await {
        tracing::error!(%error, "the sandbox bridge stopped");
    }
}

async fn answer(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(switch): ConnectInfo<Switch>,
    request: Request,
) -> Response {
    let (head, body) = request.into_parts();
    let Ok(bytes) = to_bytes(body, BODY_LIMIT).await else { return page(413) };
    let call = Call::read(&head.method, &head.uri, &head.headers, &bytes);
    let at = shared.ledger.arrived(ledger_entry(&shared, &call, &head.headers, &bytes));

    let epoch = shared.epoch();
    let handled = tokio::select! {
        () = epoch.cancelled() => None,
        handled = handle(&shared, &call, at, &epoch) => handled,
    };
    shared.ledger.ended(at, handled.as_ref().map(|response| response.status().as_u16()));
    handled.unwrap_or_else(|| {
        switch.cut();
        page(500)
    })
}

/// Handles a request. Returns `None` if the client gets no answer.
async fn handle(shared: &Arc<Shared>, call: &Call, at: usize, epoch: &CancellationToken) -> Option<Response> {
    if shared.is_down() {
        return None;
    }
    let mut lost = false;
    let mut cut = false;
    let fault = shared.faults().take(&format!("{} {} {}", call.method, call.path, call.tool().unwrap_or_default()));
    match fault {
        None => {}
        Some(Fault::Status(status)) => {
            let failure = Failure::of_status(status);
            let is_mcp = call.path == "/mcp" && shared.options.version == Version::V05;
            let refused = match is_mcp {
                true => mcp::refused(&failure, call),
                false => Answer::refused(&failure, &call.correlation),
            };
            return Some(sent(refused, &call.correlation));
        }
        Some(Fault::Proxy(status)) => return Some(page(status)),
        Some(Fault::LostAnswer) => lost = true,
        Some(Fault::LostRequest) => return None,
        Some(Fault::Hang) => std::future::pending().await,
        Some(Fault::Stall) => shared.world().stalled = true,
        Some(Fault::CutStream) => cut = true,
        Some(Fault::HugeAnswer) => {
            let flood = flood::body(Duration::ZERO, epoch.clone());
            return Some(([(header::CONTENT_TYPE, "application/json")], flood).into_response());
        }
        Some(Fault::Restart) => {
            shared.world().restart();
        }
    }
    if shared.world().stalled {
        std::future::pending::<()>().await;
    }
    let begun = tokio::time::Instant::now();
    let (answer, wait) = {
        let mut world = shared.world();
        let mut context = RequestContext {
            call,
            secret: &shared.options.secret,
            within_limit: &|| shared.is_within_limit(),
            uptime: world.now.epoch() - shared.started.epoch(),
            caller: None,
        };
        let runs_before = world.jobs.len();
        let answer = rest::answer(&mut world, &mut context);
        let caller = context.caller.clone();
        if let Some(caller) = &caller {
            shared.ledger.note(at, |request| {
                request.subject = Some(caller.subject.clone());
                request.roles.clone_from(&caller.roles);
            });
        }
        shared.start_timers(&mut world);
        if call.method == "POST" {
            shared.save(&world);
        }
        let millis = begun.elapsed().as_secs_f64() * 1000.0;
        world.record(rest::trail_of(call, &answer, caller.as_ref(), millis));
        let is_long = call.tool() == Some("run_sensitivity_analysis");
        let runs = world.jobs.len() - runs_before;
        (answer, (is_long && runs > 0).then_some(runs))
    };
    if let Some(runs) = wait {
        shared.wait_for_runs(runs).await;
    }
    if lost {
        return None;
    }
    match answer {
        Answer::Stream(job) => {
            let events = stream::events(shared.clone(), &job, cut, epoch.clone());
            let headers = [
                (header::CONTENT_TYPE, "text/event-stream; charset=utf-8".to_owned()),
                (header::HeaderName::from_static("x-correlation-id"), call.correlation.clone()),
            ];
            Some((headers, events).into_response())
        }
        answer => Some(sent(answer, &call.correlation)),
    }
}

/// Returns the entry of the ledger for a request without an answer.
fn ledger_entry(shared: &Shared, call: &Call, headers: &HeaderMap, bytes: &Bytes) -> ledger::Request {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    ledger::Request {
        at: shared.world().now.iso(),
        method: call.method.clone(),
        path: call.path.clone(),
        query: call.query.clone(),
        tool: call.tool().map(str::to_owned),
        subject: None,
        roles: Vec::new(),
        confirm: text("x-mcp-confirm"),
        correlation: text("x-correlation-id"),
        protocol: text("mcp-protocol-version"),
        body: serde_json::from_slice(bytes).unwrap_or(Value::Null),
        status: None,
    }
}

/// Converts an answer to an HTTP response.
fn sent(answer: Answer, correlation: &str) -> Response {
    let (status, body, headers) = match answer {
        Answer::Json { status, body, headers } => (status, body.map(|body| body.to_string()), headers),
        Answer::Text(text) => (200, Some(text), vec![("content-type", "text/plain; version=0.0.4".to_owned())]),
        Answer::Stream(_) => (200, None, Vec::new()),
    };
    let mut response = Response::builder().status(status).header("x-correlation-id", printable(correlation));
    if body.is_some() && !headers.iter().any(|(name, _)| *name == "content-type") {
        response = response.header(header::CONTENT_TYPE, "application/json");
    }
    if status == 500 {
        response = response.header(header::CONNECTION, "close");
    }
    for (name, value) in &headers {
        response = response.header(*name, printable(value));
    }
    response.body(body.map_or_else(Body::empty, Body::from)).expect("the status and the headers are valid")
}

/// Returns the text without characters that are not allowed in headers.
fn printable(text: &str) -> String {
    text.chars().filter(|own| (' '..='~').contains(own)).collect()
}

/// Returns the page of a proxy in front of the bridge.
fn page(status: u16) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let html = format!("<html><head><title>{status}</title></head><body><h1>{status}</h1></body></html>\n");
    (status, [(header::CONTENT_TYPE, "text/html; charset=utf-8")], html).into_response()
}

/// Returns the correlation id of a request, or a new one.
pub(crate) fn correlation(headers: &HeaderMap) -> String {
    let sent = headers.get("x-correlation-id").and_then(|value| value.to_str().ok());
    sent.map_or_else(fresh_id, str::to_owned)
}
