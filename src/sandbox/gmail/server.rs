//! The HTTP server: reads a request, injects faults, calls the handler, writes the ledger, and answers.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use axum::{
    Router,
    body::to_bytes,
    extract::{ConnectInfo, Request, State},
    http::{StatusCode, header},
    response::{IntoResponse as _, Response},
};
use countersign_wire::this_machine;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{
    Options,
    call::Call,
    control,
    failure::Failure,
    faults::{Fault, Faults},
    ledger::{self, Ledger},
    mailbox::Mailbox,
    persistence,
    pubsub::PubSub,
    routes::{self, Outcome, World},
};
use crate::{
    connection::{Switch, SwitchListener},
    flood,
    google::{Holder, SCOPES},
};

/// The maximum size of a request body: a mail of the maximum size in base64.
const BODY_LIMIT: usize = 64 * 1024 * 1024;
/// The duration for which a pull waits for a message.
const LONGEST_PULL: Duration = Duration::from_secs(90);

/// A request that takes effect later.
#[derive(Debug)]
struct Late {
    due: i64,
    at: usize,
    call: Call,
}

/// The state shared by the server and [`super::SandboxGmail`].
#[derive(Debug)]
pub(crate) struct Shared {
    options: Options,
    world: Mutex<World>,
    /// The injected faults.
    pub(crate) faults: Faults,
    /// The ledger.
    pub(crate) ledger: Ledger,
    late: Mutex<Vec<Late>>,
    /// Notified after each change of the mailbox.
    news: Notify,
    stop: CancellationToken,
}

impl Shared {
    /// Creates the state with the saved mailbox, or with an empty one.
    ///
    /// # Errors
    ///
    /// If the saved mailbox cannot be read.
    pub(crate) fn new(options: Options) -> std::io::Result<Self> {
        let saved = options.persist.as_deref().map(persistence::load).transpose()?.flatten();
        let (mailbox, sent) = saved.unwrap_or_else(|| {
            let empty = Mailbox::new(options.address.clone(), options.replaces_message_ids);
            (empty.counting_from(options.numbers_from), Vec::new())
        });
        let page_size = options.page_size;
        Ok(Self {
            world: Mutex::new(World { mailbox, pubsub: PubSub::new(), now: options.clock.now().millis(), page_size }),
            faults: Faults::default(),
            ledger: Ledger::with_sent(sent),
            late: Mutex::default(),
            news: Notify::new(),
            stop: CancellationToken::new(),
            options,
        })
    }

    /// Locks the world, after the late requests that are due took effect.
    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        let now = self.options.clock.now().millis();
        let due = {
            let mut late = self.late.lock().expect("no holder of the lock panics");
            let (due, rest): (Vec<_>, Vec<_>) = late.drain(..).partition(|late| late.due <= now);
            *late = rest;
            due
        };
        for Late { at, call, .. } in due {
            // The refusal of a late request is not seen by anybody.
            drop(self.apply(&call, at));
        }
        self.lock(now)
    }

    /// Changes the mailbox in the name of its owner, and notifies those who wait for news.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut World) -> T) -> T {
        let mut world = self.world();
        let before = world.mailbox.newest_history;
        let result = change(&mut world);
        self.announce(&mut world, before);
        self.save(&world);
        result
    }

    /// Stops the server.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }

    fn lock(&self, now: i64) -> MutexGuard<'_, World> {
        let mut world = self.world.lock().expect("no handler panics");
        world.now = now;
        world
    }

    fn announce(&self, world: &mut World, before: u64) {
        let (history, now) = (world.mailbox.newest_history, world.now);
        if history != before {
            world.pubsub.publish(history, now);
        }
        self.news.notify_waiters();
    }

    /// Lets a request take effect.
    fn apply(&self, call: &Call, at: usize) -> Result<Outcome, Failure> {
        let holder = self.holder(call)?;
        let mut world = self.lock(self.options.clock.now().millis());
        let (history, changes) = (world.mailbox.newest_history, world.mailbox.changes);
        let outcome = routes::handle(&mut world, call, &holder);
        if let Ok(Outcome::Sent(sent, _)) = &outcome {
            self.ledger.sent_one((**sent).clone());
        }
        if world.mailbox.changes != changes {
            self.ledger.took_effect(at);
            self.save(&world);
        }
        if world.mailbox.newest_history != history || call.path.ends_with("/watch") {
            self.announce(&mut world, history);
        }
        outcome
    }

    /// Saves the mailbox, if it is to be kept.
    fn save(&self, world: &World) {
        let Some(path) = &self.options.persist else { return };
        if let Err(error) = persistence::save(path, &world.mailbox, &self.ledger.sent()) {
            tracing::warn!(%error, "The sandbox mailbox cannot be saved");
        }
    }

    fn holder(&self, call: &Call) -> Result<Holder, Failure> {
        let token = call.token.as_deref().filter(|token| !token.is_empty()).ok_or_else(Failure::unauthenticated)?;
        match &self.options.tokens {
            Some(tokens) => tokens.holder(token).ok_or_else(Failure::unauthenticated),
            None => {
                let scopes = SCOPES.iter().map(|scope| (*scope).to_owned()).collect();
                Ok(Holder { person: Some(self.options.address.clone()), scopes })
            }
        }
    }

    fn put_off(&self, call: &Call, at: usize, by: u64) {
        let due = self.options.clock.now().millis().saturating_add_unsigned(by);
        self.late.lock().expect("no holder of the lock panics").push(Late { due, at, call: call.clone() });
    }
}

/// Binds a port on this machine only.
pub(crate) async fn bind(port: u16) -> std::io::Result<(SwitchListener, SocketAddr)> {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    let address = listener.local_addr()?;
    Ok((SwitchListener(listener), address))
}

/// Serves until the stand-in is dropped.
pub(crate) async fn serve(listener: SwitchListener, shared: Arc<Shared>) {
    let stop = shared.stop.clone();
    let control = control::routes().with_state(shared.clone());
    let routes = Router::new().nest("/sandbox", control).fallback(answer).with_state(shared);
    let app = this_machine::only(routes).into_make_service_with_connect_info::<Switch>();
    if let Err(error) = axum::serve(listener, app).with_graceful_shutdown(stop.cancelled_owned()).await {
        tracing::error!(%error, "the sandbox Gmail stopped");
    }
}

async fn answer(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(switch): ConnectInfo<Switch>,
    request: Request,
) -> Response {
    let (head, body) = request.into_parts();
    let Ok(bytes) = to_bytes(body, BODY_LIMIT).await else { return page(413) };
    let token = head.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let token = token.and_then(|value| value.strip_prefix("Bearer ")).map(str::to_owned);
    let call = Call::read(&head.method, &head.uri, token, bytes);
    let at = shared.ledger.arrived(ledger::Request {
        at: shared.options.clock.now().millis(),
        method: call.method.clone(),
        path: call.path.clone(),
        query: call.query.clone(),
        effect: false,
        status: None,
    });
    let handled = tokio::select! {
        () = shared.stop.cancelled() => None,
        handled = handle(&shared, &call, at) => handled,
    };
    shared.ledger.answered(at, handled.as_ref().map(|response| response.status().as_u16()));
    handled.unwrap_or_else(|| {
        switch.cut();
        page(500)
    })
}

/// Handles a request. Returns `None` if the client gets no answer.
async fn handle(shared: &Arc<Shared>, call: &Call, at: usize) -> Option<Response> {
    if shared.faults.is_down() {
        return None;
    }
    let delay = shared.faults.delay();
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
    drop(shared.world()); // the late requests that are due come first
    match shared.faults.take(&call.text()) {
        None => Some(sent(outcome(shared, call, at).await)),
        Some(Fault::Status(status)) => Some(sent(Err(Failure::of_status(status)))),
        Some(Fault::TooMany(seconds)) => Some(sent(Err(Failure::too_many(Some(seconds))))),
        Some(Fault::Proxy(status)) => Some(page(status)),
        Some(Fault::StatusAfterEffect(status)) => {
            drop(outcome(shared, call, at).await);
            Some(sent(Err(Failure::of_status(status))))
        }
        Some(Fault::LostAnswer) => {
            drop(outcome(shared, call, at).await);
            None
        }
        Some(Fault::LostRequest) => None,
        Some(Fault::HangAfterEffect) => {
            drop(outcome(shared, call, at).await);
            std::future::pending().await
        }
        Some(Fault::Hang) => std::future::pending().await,
        Some(Fault::Late(by)) => {
            shared.put_off(call, at, by);
            None
        }
        Some(Fault::Flood) => {
            let flood = flood::body(Duration::ZERO, shared.stop.clone());
            Some(([(header::CONTENT_TYPE, "application/json")], flood).into_response())
        }
    }
}

/// Lets a request take effect. A pull waits until there is a message.
async fn outcome(shared: &Shared, call: &Call, at: usize) -> Result<Outcome, Failure> {
    let waited = async {
        loop {
            let news = shared.news.notified();
            match shared.apply(call, at) {
                Ok(Outcome::Wait) => news.await,
                outcome => return outcome,
            }
        }
    };
    tokio::time::timeout(LONGEST_PULL, waited).await.unwrap_or_else(|_| Ok(Outcome::Json(json!({}))))
}

/// Converts an outcome to an HTTP response.
fn sent(outcome: Result<Outcome, Failure>) -> Response {
    let (status, body, retry_after) = match &outcome {
        Ok(Outcome::Json(body) | Outcome::Sent(_, body)) => (200, Some(body.clone()), None),
        Ok(Outcome::Nothing) => (204, None, None),
        Ok(Outcome::Wait) => (200, Some(json!({})), None),
        Err(failure) => (failure.status, Some(failure.body()), failure.retry_after),
    };
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = match body {
        Some(body) => as_json(status, &body),
        None => status.into_response(),
    };
    if let Some(seconds) = retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

/// Returns a response with JSON.
pub(super) fn as_json(status: StatusCode, body: &Value) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json; charset=UTF-8")], body.to_string()).into_response()
}

/// Returns the page of a proxy in front of Gmail.
fn page(status: u16) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let html = format!("<html><head><title>{status}</title></head><body><h1>{status}</h1></body></html>\n");
    (status, [(header::CONTENT_TYPE, "text/html; charset=utf-8")], html).into_response()
}
