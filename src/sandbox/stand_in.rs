//! The server under every stand-in: it keeps a world, records requests, injects faults, lets late requests take effect,
//! and saves the world.
//!
//! A stand-in implements [`World`] with its state. If requests go one way through the server, it also implements
//! [`Http`], and [`routes`] reads a request, injects faults, lets the world handle it, and writes the ledger. Otherwise it
//! brings its own routes.

mod answers;

use std::{
    io,
    net::SocketAddr,
    ops::Deref,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, Weak},
    time::Duration,
};

use axum::{
    Json, Router,
    body::{Bytes, HttpBody as _, to_bytes},
    extract::{ConnectInfo, Request, State},
    http::{header, request::Parts},
    response::{IntoResponse as _, Response},
    routing::get,
};
use countersign_core::clock::{Clock, Timestamp};
use countersign_wire::this_machine;
use tokio::{net::TcpListener, sync::Notify, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::{
    connection::{Switch, SwitchListener},
    faults::{Down, Fault, Faults},
    files, flood,
    ledger::{Entry, Ledger},
};

use self::answers::status_code;
pub(crate) use self::answers::{json, page};

/// The time that the requests in progress have to end when a server stops.
const LAST_REQUESTS: Duration = Duration::from_secs(2);

/// The state of a stand-in.
pub(crate) trait World: Send + Sized + 'static {
    /// What does not change while the stand-in runs.
    type Options: Send + Sync;
    /// The record of a request.
    type Entry: Entry;
    /// The faults that only this service has.
    type Own: Clone + PartialEq + std::fmt::Debug + Send + Sync;

    /// Sets the time.
    fn tick(&mut self, _now: Timestamp) {}

    /// Does what follows from a change.
    fn settle(&mut self) {}

    /// Returns the content of the file in which the world is kept.
    fn kept(&self) -> Vec<u8> {
        Vec::new()
    }
}

/// A world that handles each request in the same way.
pub(crate) trait Http: World {
    /// The maximum size of a request body.
    const BODY_LIMIT: usize = 5 * 1024 * 1024;
    /// True if a fault after the effect waits for a request that has one, so that a read before does not use it up.
    const SPARES_READS: bool = false;
    /// A request as the world reads it.
    type Call: Clone + Send + Sync;

    /// Reads a request, and returns it with its record.
    fn read(&mut self, head: &Parts, body: Bytes, now: Timestamp) -> (Self::Call, Self::Entry);

    /// Returns the text to which faults are matched, which begins with `METHOD /path`.
    fn text(call: &Self::Call) -> String;

    /// Handles a request. Returns `None` instead of an answer if it has to wait for a change, and true if the world is to
    /// be saved.
    fn handle(&mut self, on: &Shared<Self>, call: &Self::Call, number: usize) -> (Option<Response>, bool);

    /// Refuses a request with this status, in the format of the service, for an injected fault.
    fn refused(on: &Shared<Self>, call: &Self::Call, status: u16) -> Response;

    /// Lets a request take effect, with a fault of this service. Returns `None` if the client gets no answer.
    fn respond(
        on: &Arc<Shared<Self>>,
        call: &Self::Call,
        number: usize,
        _fault: Option<Self::Own>,
    ) -> impl Future<Output = Option<Response>> + Send {
        async move { Some(on.answer(call, number).await) }
    }
}

/// The port, the clock and the files of a stand-in.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// The port on 127.0.0.1; 0 means a free one.
    pub(crate) port: u16,
    /// The clock.
    pub(crate) clock: Arc<dyn Clock>,
    /// The file to which each request is appended as a line of JSON.
    pub(crate) ledger: Option<PathBuf>,
    /// The file in which the world is kept.
    pub(crate) persist: Option<PathBuf>,
}

impl Place {
    /// A port without files.
    pub(crate) fn new(port: u16, clock: Arc<dyn Clock>) -> Self {
        Self { port, clock, ledger: None, persist: None }
    }

    /// Returns the content of the file in which the world is kept, if there is one.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    pub(crate) fn kept(&self) -> io::Result<Option<Vec<u8>>> {
        let Some(path) = &self.persist else { return Ok(None) };
        files::read(path).map_err(|error| about(&format!("cannot use {}", path.display()), &error))
    }
}

/// A late request, as what happens once it is due.
type Late<W> = Box<dyn FnOnce(&Shared<W>, &mut W) + Send>;

/// The state shared by the server and its owner.
pub(crate) struct Shared<W: World> {
    /// The options.
    pub(crate) options: W::Options,
    /// The faults.
    pub(crate) faults: Faults<W::Own>,
    /// The clock.
    pub(crate) clock: Arc<dyn Clock>,
    /// Cancelled when the server stops.
    pub(crate) stop: CancellationToken,
    /// Notified after each change of the world.
    pub(crate) news: Notify,
    this: Weak<Self>,
    address: SocketAddr,
    persist: Option<PathBuf>,
    ledger: Ledger<W::Entry>,
    late: Mutex<Vec<(Timestamp, Late<W>)>>,
    /// Cancelled by a restart, which then creates a new one.
    epoch: Mutex<CancellationToken>,
    world: Mutex<W>,
}

impl<W: World> Shared<W> {
    /// Returns the address without a path, such as `http://127.0.0.1:4000`.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the owner of this state.
    pub(crate) fn owned(&self) -> Arc<Self> {
        self.this.upgrade().expect("it is in an Arc")
    }

    /// Locks the world, after the late requests that are due took effect, and sets the time.
    pub(crate) fn world(&self) -> MutexGuard<'_, W> {
        let mut world = self.world.lock().expect("no handler panics");
        let now = self.clock.now();
        let mut due: Vec<_> = self.late().extract_if(.., |(due, _)| *due <= now).collect();
        due.sort_by_key(|(due, _)| *due);
        for (due, happens) in due {
            world.tick(due);
            happens(self, &mut world);
        }
        world.tick(now);
        world
    }

    /// Changes the world from outside a request.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut W) -> T) -> T {
        let mut world = self.world();
        let result = change(&mut world);
        self.changed(&mut world);
        result
    }

    /// Saves a world that changed, and notifies those who wait for a change.
    pub(crate) fn changed(&self, world: &mut W) {
        world.settle();
        if let Err(error) = self.save(world) {
            tracing::error!(%error, "cannot save the world of a stand-in");
        }
        self.news.notify_waiters();
    }

    /// Returns every request so far.
    pub(crate) fn requests(&self) -> Vec<W::Entry> {
        drop(self.world()); // the late requests that are due come first
        self.ledger.all()
    }

    /// Returns every request that is complete since the last call of this method, and removes them from the ledger.
    pub(crate) fn take_requests(&self) -> Vec<W::Entry> {
        self.ledger.take()
    }

    /// Records a request that arrived. Returns its number.
    pub(crate) fn arrived(&self, entry: W::Entry) -> usize {
        self.ledger.arrived(entry)
    }

    /// Changes the record of a request.
    pub(crate) fn note(&self, number: usize, change: impl FnOnce(&mut W::Entry)) {
        self.ledger.note(number, change);
    }

    /// Cuts off the requests in progress.
    pub(crate) fn restart(&self) {
        let next = self.stop.child_token();
        std::mem::replace(&mut *self.epoch.lock().expect("no holder of the lock panics"), next).cancel();
    }

    /// Returns the token that the next restart cancels.
    pub(crate) fn epoch(&self) -> CancellationToken {
        self.epoch.lock().expect("no holder of the lock panics").clone()
    }

    fn save(&self, world: &W) -> io::Result<()> {
        self.persist.as_deref().map_or(Ok(()), |path| files::replace(path, &world.kept()))
    }

    fn late(&self) -> MutexGuard<'_, Vec<(Timestamp, Late<W>)>> {
        self.late.lock().expect("no holder of the lock panics")
    }
}

impl<W: Http> Shared<W> {
    /// Lets a request take effect, and waits for its answer.
    pub(crate) async fn answer(&self, call: &W::Call, number: usize) -> Response {
        loop {
            // Created before the world is read, so that no change in between is missed.
            let news = self.news.notified();
            let answer = self.apply(&mut self.world(), call, number);
            match answer {
                Some(answer) => return answer,
                None => news.await,
            }
        }
    }

    /// Lets a request take effect.
    pub(crate) fn apply(&self, world: &mut W, call: &W::Call, number: usize) -> Option<Response> {
        let (mut answer, has_changed) = world.handle(self, call, number);
        if has_changed {
            self.note(number, Entry::took_effect);
            self.changed(world);
            if let Some(answer) = &mut answer {
                answer.extensions_mut().insert(Effect);
            }
        }
        answer
    }

    /// Handles a request. Returns `None` if the client gets no answer.
    async fn handled(self: &Arc<Self>, call: &W::Call, number: usize) -> Option<Response> {
        match self.faults.is_down() {
            Some(Down::Closed) => return None,
            Some(Down::Unavailable) => return Some(page(503)),
            None => {}
        }
        let text = W::text(call);
        let mut fault = self.faults.take(&text, |fault| !W::SPARES_READS || !fault.is_after_effect());
        let own = match fault {
            Some(Fault::Own(own)) => {
                fault = None;
                Some(own)
            }
            Some(fault) if !fault.is_after_effect() => return self.spoiled(call, number, fault).await,
            _ => None,
        };
        let response = W::respond(self, call, number, own).await;
        let has_effect = response.as_ref().is_some_and(|response| response.extensions().get::<Effect>().is_some());
        if W::SPARES_READS && has_effect {
            fault = self.faults.take(&text, Fault::is_after_effect);
        }
        if let Some(held) = self.faults.take_held(&text) {
            held.freed().await;
        }
        match fault {
            Some(fault) => self.spoiled(call, number, fault).await,
            None => response,
        }
    }

    /// Answers a request with a fault. Returns `None` if the client gets no answer.
    async fn spoiled(&self, call: &W::Call, number: usize, fault: Fault<W::Own>) -> Option<Response> {
        let fault = match fault {
            Fault::After(fault) => *fault,
            fault => fault,
        };
        match fault {
            Fault::Status(status) => Some(W::refused(self, call, status)),
            Fault::TooMany(seconds) => {
                let mut response = W::refused(self, call, 429);
                response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
                Some(response)
            }
            Fault::Proxy(status) => Some(page(status)),
            Fault::Answer(status, body) => Some(json(status, &body)),
            Fault::LostAnswer | Fault::LostRequest | Fault::After(_) | Fault::Own(_) => None,
            Fault::Hang => std::future::pending().await,
            Fault::Late { after_ms, is_closed } => {
                let due = self.clock.now() + Duration::from_millis(after_ms);
                let call = call.clone();
                self.ledger.is_late(number);
                let happens = move |on: &Self, world: &mut W| {
                    on.apply(world, &call, number); // nobody sees the answer
                    on.ledger.came(number);
                };
                self.late().push((due, Box::new(happens)));
                if is_closed { None } else { std::future::pending().await }
            }
            Fault::Flood { status, pause_ms } => {
                let flood = flood::body(Duration::from_millis(pause_ms), self.epoch());
                let headers = [(header::CONTENT_TYPE, "application/json")];
                Some((status_code(status), headers, flood).into_response())
            }
        }
    }
}

/// Marks the answer to a request that changed the world.
#[derive(Clone)]
struct Effect;

/// A running stand-in. Dropping it stops the server.
pub(crate) struct StandIn<W: World> {
    shared: Arc<Shared<W>>,
    serving: Mutex<Option<JoinHandle<()>>>,
}

impl<W: World> StandIn<W> {
    /// Starts a server with these routes.
    ///
    /// # Errors
    ///
    /// If the port is taken or one of the files cannot be used.
    pub(crate) async fn start(
        world: W,
        options: W::Options,
        place: Place,
        routes: impl FnOnce(Arc<Shared<W>>) -> Router,
    ) -> io::Result<Self> {
        let (stand_in, listener) = Self::bind(world, options, place).await?;
        stand_in.serve(listener, this_machine::only(routes(stand_in.shared.clone())));
        Ok(stand_in)
    }

    /// Binds the port of a server, which [`Self::serve`] then starts.
    ///
    /// # Errors
    ///
    /// If the port is taken or one of the files cannot be used.
    pub(crate) async fn bind(mut world: W, options: W::Options, place: Place) -> io::Result<(Self, TcpListener)> {
        let Place { port, clock, ledger, persist } = place;
        let listener = TcpListener::bind(("127.0.0.1", port)).await;
        let listener = listener.map_err(|error| about(&format!("cannot listen on 127.0.0.1:{port}"), &error))?;
        let address = listener.local_addr()?;
        world.tick(clock.now());
        let stop = CancellationToken::new();
        let ledger = Ledger::open(ledger.as_deref())?;
        let shared = Arc::new_cyclic(|this| Shared {
            this: this.clone(),
            options,
            faults: Faults::default(),
            clock,
            epoch: Mutex::new(stop.child_token()),
            stop,
            news: Notify::new(),
            address,
            persist,
            ledger,
            late: Mutex::default(),
            world: Mutex::new(world),
        });
        shared.save(&shared.world())?;
        Ok((Self { shared, serving: Mutex::default() }, listener))
    }

    /// Serves these routes.
    pub(crate) fn serve(&self, listener: TcpListener, routes: Router) {
        let app = routes.into_make_service_with_connect_info::<Switch>();
        let stop = self.stop.clone();
        let serving = tokio::spawn(async move {
            let served = axum::serve(SwitchListener(listener), app).with_graceful_shutdown(stop.cancelled_owned());
            if let Err(error) = served.await {
                tracing::error!(%error, "a stand-in stopped");
            }
        });
        *self.serving.lock().expect("no holder of the lock panics") = Some(serving);
    }

    /// Finishes the requests in progress, then frees the port.
    pub(crate) async fn stop(&self) {
        self.stop.cancel();
        let serving = self.serving.lock().expect("no holder of the lock panics").take();
        let Some(mut serving) = serving else { return };
        if tokio::time::timeout(LAST_REQUESTS, &mut serving).await.is_err() {
            serving.abort();
        }
    }
}

impl<W: World> Deref for StandIn<W> {
    type Target = Shared<W>;

    fn deref(&self) -> &Shared<W> {
        &self.shared
    }
}

impl<W: World> std::fmt::Debug for StandIn<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StandIn").field("address", &self.shared.address).finish_non_exhaustive()
    }
}

impl<W: World> Drop for StandIn<W> {
    fn drop(&mut self) {
        self.shared.stop.cancel();
    }
}

/// Returns the routes of a world that handles each request in the same way. Faults do not apply to the path under
/// `/sandbox`, by which another process reads the ledger.
pub(crate) fn routes<W: Http>(on: Arc<Shared<W>>) -> Router {
    let ledger = async |State(on): State<Arc<Shared<W>>>| Json(on.requests());
    Router::new().route("/sandbox/ledger", get(ledger)).fallback(receive::<W>).with_state(on)
}

async fn receive<W: Http>(
    State(on): State<Arc<Shared<W>>>,
    ConnectInfo(switch): ConnectInfo<Switch>,
    request: Request,
) -> Response {
    if switch.is_spent() {
        // The previous answer was the last one on this connection, so the client now notices that it is closed.
        switch.cut();
        return page(500);
    }
    let (head, body) = request.into_parts();
    let Ok(bytes) = to_bytes(body, W::BODY_LIMIT).await else { return page(413) };
    let delay = on.faults.delay();
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
    let (call, entry) = on.world().read(&head, bytes, on.clock.now());
    let number = on.arrived(entry);
    let mut in_progress = InProgress { on: &on, number, answer: (None, None) };
    let epoch = on.epoch();
    let response = tokio::select! {
        () = epoch.cancelled() => None,
        response = on.handled(&call, number) => response,
    };
    let status = response.as_ref().map(Response::status);
    let length = response.as_ref().and_then(|response| response.body().size_hint().exact());
    in_progress.answer = (status.map(|status| status.as_u16()), length);
    drop(in_progress);
    let Some(response) = response else {
        switch.cut();
        return page(500);
    };
    let is_refused = status.is_some_and(|status| status.is_client_error() || status.is_server_error());
    if is_refused && on.faults.are_connections_ended() {
        switch.spend();
    }
    response
}

/// A request in progress. It ends without an answer if the client goes away first.
struct InProgress<'a, W: World> {
    on: &'a Shared<W>,
    number: usize,
    /// The status of the answer and the length of its body.
    answer: (Option<u16>, Option<u64>),
}

impl<W: World> Drop for InProgress<'_, W> {
    fn drop(&mut self) {
        let (status, length) = self.answer;
        self.on.ledger.ended(self.number, status, length);
    }
}

/// Returns the error with `what` in front of its message.
fn about(what: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what}: {error}"))
}
