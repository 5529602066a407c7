//! The state shared by all parts of the stand-in: the world, its faults, its ledger, and the
//! receivers of changes.
//!
//! The lock of the world is never held across an `await`. A change of the world is announced under
//! the same lock, so that changes are received in the order in which they happened.

use std::sync::{Mutex, MutexGuard, PoisonError};

use countersign_core::clock::Timestamp;
use tokio::sync::{Notify, broadcast, mpsc};
use tokio_util::sync::CancellationToken;

use super::{
    Options, broadcast::Change, delivery::Delivery, faults::Faults, ledger::Ledger, limits::RateLimits,
    socket::Sockets, world::World,
};

/// The running stand-in.
pub(super) struct Server {
    pub(super) options: Options,
    /// The address of the server, such as `http://127.0.0.1:4711`.
    pub(super) url: String,
    pub(super) sockets: Sockets,
    pub(super) ledger: Ledger,
    /// The address of the app, in HTTP mode.
    pub(super) app: Mutex<AppAddress>,
    pub(super) http: reqwest::Client,
    /// Wakes the task that writes the world to disk.
    pub(super) changed: Notify,
    /// Stops all tasks.
    pub(super) stopped: CancellationToken,
    /// Cancelled when all tasks have stopped.
    pub(super) ended: CancellationToken,
    pub(super) changes: broadcast::Sender<Change>,
    pub(super) deliveries: mpsc::UnboundedSender<Delivery>,
    pub(super) limits: Mutex<RateLimits>,
    /// Held while the world is written to disk.
    pub(super) saving: tokio::sync::Mutex<()>,
    world: Mutex<World>,
    faults: Mutex<Faults>,
}

/// The address of the app. `verified` is true once the app has answered `url_verification`.
#[derive(Clone, Debug, Default)]
pub(super) struct AppAddress {
    pub(super) url: Option<String>,
    pub(super) verified: bool,
}

impl Server {
    pub(super) fn new(
        options: Options,
        url: String,
        mut world: World,
        ledger: Ledger,
        deliveries: mpsc::UnboundedSender<Delivery>,
    ) -> Self {
        let app = match &options.mode {
            super::Mode::Http { events_url, .. } => AppAddress { url: events_url.clone(), verified: false },
            super::Mode::Socket => AppAddress::default(),
        };
        // The client needs a TLS provider, and the TLS library has no default one. It never uses
        // TLS here, so it need not read the machine's certificates, which takes a quarter of a
        // second.
        rustls::crypto::ring::default_provider().install_default().ok();
        let http = reqwest::Client::builder().no_proxy().tls_certs_only([]).build();
        world.url.clone_from(&url);
        Self {
            url,
            sockets: Sockets::default(),
            ledger,
            app: Mutex::new(app),
            http: http.expect("a TLS provider was just installed"),
            changed: Notify::new(),
            stopped: CancellationToken::new(),
            ended: CancellationToken::new(),
            changes: broadcast::Sender::new(4096),
            deliveries,
            limits: Mutex::default(),
            saving: tokio::sync::Mutex::default(),
            world: Mutex::new(world),
            faults: Mutex::default(),
            options,
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.options.clock.now()
    }

    pub(super) fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn faults(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notifies the page and the waiting tests, and has the world saved.
    pub(super) fn announce(&self, change: Change) {
        self.changed.notify_one();
        self.changes.send(change).ok();
    }

    /// Queues a delivery to the app.
    pub(super) fn send(&self, delivery: Delivery) {
        self.deliveries.send(delivery).ok();
    }
}

/// Locks a mutex. Poisoning is ignored, so that the stand-in continues after a panic.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
