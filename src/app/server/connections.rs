//! The open connections: their number, their phases, and which one is closed to make room for another.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::{sync::Notify, time::Instant};
use tokio_util::sync::CancellationToken;

use super::limits::{LOG_EVERY, Limits};

/// The maximum total size of the request bodies in memory, in bytes, over all connections.
const MAX_BODY_BYTES: usize = 32 << 20;

/// All open connections.
#[derive(Clone)]
pub(super) struct Connections(Arc<Inner>);

struct Inner {
    limits: Limits,
    open: Mutex<Open>,
    closed: Notify,
    /// The total size of the request bodies in memory, in bytes.
    bodies: AtomicUsize,
}

#[derive(Default)]
struct Open {
    /// The number of the latest connection.
    last: u64,
    all: BTreeMap<u64, Arc<State>>,
    /// The time of the last log line about evictions.
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
    /// The request is being handled; the client is not keeping us waiting.
    Handling,
    /// The answer is being sent.
    Answer,
}

impl Phase {
    /// Returns the name of the phase in metrics.
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
    /// The phase, and the time at which it began.
    at: Mutex<(Phase, Instant)>,
    /// The size of the part of the request body that is in memory, in bytes.
    body: AtomicUsize,
    /// Cancelled when the connection must close to make room for another.
    eviction: CancellationToken,
}

impl State {
    fn at(&self) -> (Phase, Instant) {
        *self.at.lock().expect("no holder panics")
    }

    /// Returns the time since which we have been waiting for the client; `None` if we are not, or if the connection is
    /// already being evicted.
    fn waiting_since(&self) -> Option<Instant> {
        let (phase, since) = self.at();
        (phase != Phase::Handling && !self.eviction.is_cancelled()).then_some(since)
    }
}

/// A place among the open connections, taken by one of them. Dropping it frees the place.
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

    /// Waits for a place for a connection. At the limit, the connection whose client has kept us waiting longest is
    /// closed; if all requests are being handled, the first place that becomes free is taken.
    pub(super) async fn room(&self) -> Room {
        loop {
            let mut closed = std::pin::pin!(self.0.closed.notified());
            closed.as_mut().enable(); // before the check, so that no notification is missed
            if let Some(room) = self.enter() {
                return room;
            }
            self.evict_oldest();
            closed.await;
        }
    }

    /// Takes a place, if one is free.
    fn enter(&self) -> Option<Room> {
        let mut open = self.open();
        if open.all.len() >= self.0.limits.connections {
            return None;
        }
        open.last += 1;
        let at = Mutex::new((Phase::Head, Instant::now()));
        let state = Arc::new(State { at, body: AtomicUsize::new(0), eviction: CancellationToken::new() });
        let number = open.last;
        open.all.insert(number, state.clone());
        metrics::gauge!("countersign_http_connections").set(open.all.len() as f64);
        Some(Room { connections: self.clone(), number, state })
    }

    /// Closes the connection whose client has kept us waiting longest.
    pub(super) fn evict_oldest(&self) {
        self.evict(|_| true);
    }

    /// Closes the connection that has been waiting longest in one of these phases.
    fn evict(&self, which: impl Fn(Phase) -> bool) {
        let mut open = self.open();
        let waiting = open.all.values().filter(|state| which(state.at().0));
        let waiting = waiting.filter_map(|state| state.waiting_since().map(|since| (since, state)));
        let Some((_, oldest)) = waiting.min_by_key(|(since, _)| *since) else { return };
        oldest.eviction.cancel();
        metrics::counter!("countersign_http_cut_off_total", "phase" => oldest.at().0.as_str(), "why" => "room")
            .increment(1);
        if open.logged.is_none_or(|at| at.elapsed() >= LOG_EVERY) {
            open.logged = Some(Instant::now());
            tracing::warn!(open = open.all.len(), "Too many connections; the longest-waiting ones are closed");
        }
    }
}

impl Room {
    /// Returns the deadline of the current phase.
    pub(super) fn deadline(&self) -> Instant {
        let (phase, since) = self.state.at();
        let Limits { header_timeout, body_timeout, idle_timeout, handling_timeout, .. } = self.connections.0.limits;
        since
            + match phase {
                Phase::Idle => idle_timeout,
                Phase::Head => header_timeout,
                Phase::Body | Phase::Answer => body_timeout,
                Phase::Handling => handling_timeout,
            }
    }

    pub(super) fn phase(&self) -> Phase {
        self.state.at().0
    }

    /// Returns the token that is cancelled when the connection must make room for another.
    pub(super) fn eviction(&self) -> CancellationToken {
        self.state.eviction.clone()
    }

    /// Changes to another phase, if the current one is among `from`.
    pub(super) fn change_phase(&self, from: &[Phase], to: Phase) {
        let mut at = self.state.at.lock().expect("no holder panics");
        if from.contains(&at.0) {
            *at = (to, Instant::now());
        }
    }

    /// Counts received bytes of a request body. If all bodies together exceed [`MAX_BODY_BYTES`], the connection whose
    /// body has been arriving longest is closed.
    pub(super) fn add_body(&self, bytes: usize) {
        self.state.body.fetch_add(bytes, Ordering::SeqCst);
        if self.connections.0.bodies.fetch_add(bytes, Ordering::SeqCst) + bytes > MAX_BODY_BYTES {
            self.connections.evict(|phase| phase == Phase::Body);
        }
    }

    /// Stops counting the request body, which is no longer in memory.
    pub(super) fn release_body(&self) {
        let bytes = self.state.body.swap(0, Ordering::SeqCst);
        self.connections.0.bodies.fetch_sub(bytes, Ordering::SeqCst);
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.release_body();
        let mut open = self.connections.open();
        open.all.remove(&self.number);
        metrics::gauge!("countersign_http_connections").set(open.all.len() as f64);
        drop(open);
        self.connections.0.closed.notify_waiters();
    }
}
