//! The open connections: their number, what each waits for, and which one gives way.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{LOG_EVERY, Limits};

/// The time a request may take to be handled. Deliveries are stored, or refused, in less.
const HANDLING: Duration = Duration::from_secs(10);

/// The largest number of bytes of request bodies that are held, in all connections together.
const BODIES: usize = 32 << 20;

/// All connections.
#[derive(Clone)]
pub(super) struct Connections(Arc<Inner>);

struct Inner {
    limits: Limits,
    open: Mutex<Open>,
    closed: Notify,
    /// Bytes of bodies that are held.
    bodies: AtomicUsize,
}

#[derive(Default)]
struct Open {
    last: u64,
    all: BTreeMap<u64, Arc<State>>,
    logged: Option<Instant>,
}

/// The phase of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing of the next request has arrived.
    Idle,
    /// The head of a request is arriving.
    Head,
    /// The body of a request is arriving.
    Body,
    /// The request is being handled: we wait for nobody.
    Handling,
    /// The answer is on its way.
    Answer,
}

impl Phase {
    /// Its name, for counters.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Head => "head",
            Self::Body => "body",
            Self::Handling => "handling",
            Self::Answer => "answer",
        }
    }
}

struct State {
    at: Mutex<(Phase, Instant)>,
    body: AtomicUsize,
    gives_way: CancellationToken,
}

impl State {
    fn at(&self) -> (Phase, Instant) {
        *self.at.lock().expect("no holder panics")
    }

    /// Returns the moment since which the client keeps us waiting; `None` if it does not, or was already cut off.
    fn keeps_us_waiting(&self) -> Option<Instant> {
        let (phase, since) = self.at();
        (phase != Phase::Handling && !self.gives_way.is_cancelled()).then_some(since)
    }
}

/// The place of one connection; dropping it frees the place.
pub(super) struct Room {
    connections: Connections,
    number: u64,
    state: Arc<State>,
}

impl Connections {
    pub(super) fn new(limits: Limits) -> Self {
        let open = Mutex::default();
        Self(Arc::new(Inner { limits, open, closed: Notify::new(), bodies: AtomicUsize::new(0) }))
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.0.open.lock().expect("no holder panics")
    }

    /// Waits for a place for a connection. At the limit the one that has kept us waiting longest gives way; if all are
    /// being handled, the first that ends.
    pub(super) async fn room(&self) -> Room {
        loop {
            let mut closed = std::pin::pin!(self.0.closed.notified());
            closed.as_mut().enable(); // before it is looked, so that none is missed
            if let Some(room) = self.enter() {
                return room;
            }
            self.oldest_gives_way();
            closed.await;
        }
    }

    fn enter(&self) -> Option<Room> {
        let mut open = self.open();
        if open.all.len() >= self.0.limits.connections {
            return None;
        }
        open.last += 1;
        let at = Mutex::new((Phase::Head, Instant::now()));
        let state = Arc::new(State { at, body: AtomicUsize::new(0), gives_way: CancellationToken::new() });
        let number = open.last;
        open.all.insert(number, state.clone());
        metrics::gauge!("countersign_http_connections").set(open.all.len() as f64);
        Some(Room { connections: self.clone(), number, state })
    }

    /// Closes the connection that has kept us waiting longest.
    pub(super) fn oldest_gives_way(&self) {
        self.gives_way(|_| true);
    }

    fn gives_way(&self, which: impl Fn(Phase) -> bool) {
        let mut open = self.open();
        let waiting = open.all.values().filter(|state| which(state.at().0));
        let waiting = waiting.filter_map(|state| state.keeps_us_waiting().map(|since| (since, state)));
        let Some((_, oldest)) = waiting.min_by_key(|(since, _)| *since) else { return };
        oldest.gives_way.cancel();
        metrics::counter!("countersign_http_cut_off_total", "phase" => oldest.at().0.as_str(), "why" => "room")
            .increment(1);
        if open.logged.is_none_or(|at| at.elapsed() >= LOG_EVERY) {
            open.logged = Some(Instant::now());
            tracing::warn!(open = open.all.len(), "Too many connections: those that wait longest are closed");
        }
    }
}

impl Room {
    /// Returns the moment at which the client has kept us waiting for too long.
    pub(super) fn deadline(&self) -> Instant {
        let (phase, since) = self.state.at();
        let Limits { header_timeout, body_timeout, idle_timeout, .. } = self.connections.0.limits;
        since
            + match phase {
                Phase::Idle => idle_timeout,
                Phase::Head => header_timeout,
                Phase::Body | Phase::Answer => body_timeout,
                Phase::Handling => HANDLING,
            }
    }

    pub(super) fn phase(&self) -> Phase {
        self.state.at().0
    }

    /// Returns the token that is cancelled when another connection needs the place.
    pub(super) fn must_go(&self) -> CancellationToken {
        self.state.gives_way.clone()
    }

    /// Moves on to another phase, if the current one is among `from`.
    pub(super) fn goes_on(&self, from: &[Phase], to: Phase) {
        let mut at = self.state.at.lock().expect("no holder panics");
        if from.contains(&at.0) {
            *at = (to, Instant::now());
        }
    }

    /// Counts bytes of a body that arrived. If all bodies together are too large, the one that has been arriving
    /// longest gives way.
    pub(super) fn holds(&self, bytes: usize) {
        self.state.body.fetch_add(bytes, Ordering::SeqCst);
        if self.connections.0.bodies.fetch_add(bytes, Ordering::SeqCst) + bytes > BODIES {
            self.connections.gives_way(|phase| phase == Phase::Body);
        }
    }

    /// Stops counting the body, which is no longer held.
    pub(super) fn lets_go(&self) {
        let bytes = self.state.body.swap(0, Ordering::SeqCst);
        self.connections.0.bodies.fetch_sub(bytes, Ordering::SeqCst);
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.lets_go();
        let mut open = self.connections.open();
        open.all.remove(&self.number);
        metrics::gauge!("countersign_http_connections").set(open.all.len() as f64);
        drop(open);
        self.connections.0.closed.notify_waiters();
    }
}
