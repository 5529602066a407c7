//! The state shared by all parts of the stand-in: the world, its faults, its ledger, and the
//! receivers of changes.
//!
//! The lock of the world is never held across an `await`. A change of the world is announced under
//! the same lock, so that changes are received in the order in which they happened.

use std::{
    convert::Infallible,
    ops::Deref,
    sync::{Mutex, MutexGuard, PoisonError},
};

use countersign_core::clock::Timestamp;
use tokio::sync::{broadcast, mpsc};

use super::{
    Mode, Options, broadcast::Change, delivery::Delivery, faults::Faults, ledger::Ledger, limits::RateLimits,
    socket::Sockets, world::World,
};
use crate::stand_in::{self, StandIn};

impl stand_in::World for World {
    type Options = Options;
    type Entry = ();
    type Own = Infallible;

    fn kept(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("the world is plain data")
    }
}

/// The running stand-in.
pub(super) struct Server {
    pub(super) stand_in: StandIn<World>,
    /// The address of the server, such as `http://127.0.0.1:4711`.
    pub(super) url: String,
    pub(super) sockets: Sockets,
    pub(super) ledger: Ledger,
    /// The address of the app, in HTTP mode.
    pub(super) app: Mutex<AppAddress>,
    pub(super) http: reqwest::Client,
    pub(super) changes: broadcast::Sender<Change>,
    pub(super) deliveries: mpsc::UnboundedSender<Delivery>,
    pub(super) limits: Mutex<RateLimits>,
    faults: Mutex<Faults>,
}

impl Deref for Server {
    type Target = stand_in::Shared<World>;

    fn deref(&self) -> &stand_in::Shared<World> {
        &self.stand_in
    }
}

/// The address of the app. `verified` is true once the app has answered `url_verification`.
#[derive(Clone, Debug, Default)]
pub(super) struct AppAddress {
    pub(super) url: Option<String>,
    pub(super) verified: bool,
}

impl Server {
    pub(super) fn new(stand_in: StandIn<World>, ledger: Ledger, deliveries: mpsc::UnboundedSender<Delivery>) -> Self {
        let app = match &stand_in.options.mode {
            Mode::Http { events_url, .. } => AppAddress { url: events_url.clone(), verified: false },
            Mode::Socket => AppAddress::default(),
        };
        // The client needs a TLS provider, and the TLS library has no default one. It never uses
        // TLS here, so it need not read the machine's certificates, which takes a quarter of a
        // second.
        rustls::crypto::ring::default_provider().install_default().ok();
        let http = reqwest::Client::builder().no_proxy().tls_certs_only([]).build();
        let url = stand_in.url();
        stand_in.world().url.clone_from(&url);
        Self {
            stand_in,
            url,
            sockets: Sockets::default(),
            ledger,
            app: Mutex::new(app),
            http: http.expect("a TLS provider was just installed"),
            changes: broadcast::Sender::new(4096),
            deliveries,
            limits: Mutex::default(),
            faults: Mutex::default(),
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(super) fn faults(&self) -> MutexGuard<'_, Faults> {
        locked(&self.faults)
    }

    /// Notifies the page and the waiting tests.
    pub(super) fn announce(&self, change: Change) {
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
