//! The Socket Mode ingress, which receives envelopes over WebSockets that the bot opens.
//!
//! The Slack library provides the transport and yields raw frames; everything else is done here. Each connection has
//! its own manager with one client, so that a successor can be opened before the old one is closed. A supervisor
//! ([`Supervisor::keep_connected`]) closes and reopens it:
//!
//! | event | reaction |
//! | --- | --- |
//! | no `hello` within [`Settings::hello_within`] | close, wait (doubling, with jitter), reopen |
//! | `disconnect`: `warning`, `refresh_requested`, … | open a successor immediately; read the old one until it closes |
//! | closed, or no pong | reopen |
//! | `disconnect`: `link_disabled`; opening fails with `invalid_auth`, … | [`SocketHealth::Fatal`]; retry rarely |
//! | the same, before there was any connection | [`SocketIngress::run`] ends with the [`Refusal`] |
//!
//! Before the library calls `apps.connections.open`, it is called once here: the library only logs fatal errors, and
//! its call cannot be abandoned if it hangs.
//!
//! The error lines of the library contain addresses with tickets, so its log target (`slack_morphism`) must be off.
//!
//! The library's listener reads the frames of a connection one after another, and each is acknowledged once the sink
//! has stored it. Several connections (Slack allows ten) are read in parallel. An envelope that is not stored in time
//! is not acknowledged, and Slack sends it again.

use std::{fmt, io, sync::Arc, time::Duration};

use countersign_core::clock::Clock;
use rand::RngExt;
use secrecy::SecretString;
use slack_morphism::{
    SlackClientSocketModeConfig,
    clients_manager::{SlackSocketModeClientsManager, SlackSocketModeClientsManagerFactory},
    listener::SlackClientEventsListenerEnvironment,
};
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, info, warn};

pub use super::socket_health::SocketHealth;
use super::{
    Identity,
    client::SlackClient,
    client_error::is_fatal,
    refusal::Refusal,
    sink::Sink,
    socket_health::Gauge,
    socket_intake::{ConnectionEvent, Intake, Listener},
};

/// The time for which an old connection is still read after Slack has asked for a new one.
const LINGER: Duration = Duration::from_secs(15);

/// The time that a connection which is opening at shutdown has to finish opening, so that it can be closed.
const OPENING_GRACE: Duration = Duration::from_secs(2);

/// The time limit for the library to shut a connection down.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// The time for pending acknowledgements to be sent at shutdown.
const ACKNOWLEDGE_GRACE: Duration = Duration::from_millis(100);

/// The settings of Socket Mode.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The address of the API, such as `https://slack.com/api`.
    pub api_url: String,
    /// The app-level token (`xapp-…`).
    pub app_token: SecretString,
    /// The number of connections, at most ten. With two, one can be renewed while the other is open.
    pub connections: u32,
    /// The time limit for opening a connection, until its `hello`.
    pub hello_within: Duration,
    /// The wait after the first failure of a connection, which doubles with each further failure.
    pub backoff: Duration,
    /// The maximum wait after a failure.
    pub backoff_max: Duration,
    /// The interval between pings, in whole seconds. After four unanswered pings the connection is considered dead.
    pub ping_every: Duration,
}

impl Settings {
    /// Returns settings for production.
    pub fn new(api_url: impl Into<String>, app_token: SecretString) -> Self {
        Self {
            api_url: api_url.into(),
            app_token,
            connections: 2,
            hello_within: Duration::from_secs(10),
            backoff: Duration::from_secs(1),
            backoff_max: Duration::from_secs(60),
            ping_every: Duration::from_secs(10),
        }
    }
}

/// The Socket Mode ingress, not yet running.
pub struct SocketIngress {
    supervisor: Arc<Supervisor>,
    health: watch::Receiver<SocketHealth>,
}

impl fmt::Debug for SocketIngress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SocketIngress").field("health", &*self.health.borrow()).finish_non_exhaustive()
    }
}

impl SocketIngress {
    /// Creates an ingress that passes deliveries to `sink`.
    ///
    /// # Errors
    ///
    /// Fails if the address uses `https` and the machine's root certificates cannot be read.
    pub fn new(settings: Settings, us: Identity, sink: Arc<dyn Sink>, clock: Arc<dyn Clock>) -> io::Result<Self> {
        let (gauge, health) = Gauge::new();
        let slack = SlackClient::new(&settings.api_url, &settings.app_token, settings.hello_within)?;
        let intake = Arc::new(Intake::new(sink, us));
        Ok(Self { supervisor: Arc::new(Supervisor { settings, slack, intake, gauge, clock }), health })
    }

    /// Returns a receiver of the health of the connections.
    pub fn health(&self) -> watch::Receiver<SocketHealth> {
        self.health.clone()
    }

    /// Keeps the connections open until `stop`. Then stops accepting envelopes, and returns once all accepted ones have
    /// been acknowledged.
    ///
    /// # Errors
    ///
    /// [`Refusal`] if Slack refuses the app permanently before any connection was open.
    ///
    /// # Panics
    ///
    /// Panics if the task of a connection panicked.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: if the future is dropped, open connections are abandoned. Cancel `stop` instead.
    pub async fn run(self, stop: CancellationToken) -> Result<(), Refusal> {
        let stop = stop.child_token();
        let mut connections = JoinSet::new();
        for slot in 0..self.supervisor.settings.connections.max(1) {
            let supervisor = self.supervisor.clone();
            let stop = stop.clone();
            connections.spawn(async move { supervisor.keep_connected(slot, stop).await });
        }
        let ended = loop {
            let ended = tokio::select! {
                () = stop.cancelled() => break Ok(()),
                Some(ended) = connections.join_next() => ended,
            };
            match ended {
                Ok(Ok(())) => {}
                Ok(Err(refusal)) => break Err(refusal),
                Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
                Err(_) => {} // aborted, which happens only together with this task
            }
        };
        stop.cancel();
        self.supervisor.intake.stop();
        while connections.join_next().await.is_some() {}
        ended
    }
}

struct Supervisor {
    settings: Settings,
    /// The client with the app token.
    slack: SlackClient,
    intake: Arc<Intake>,
    gauge: Gauge,
    clock: Arc<dyn Clock>,
}

/// The reason why a connection ended.
enum End {
    /// Slack asked for a new one, which should be opened immediately.
    Renew,
    /// The connection did not open, or was lost. The next attempt should wait.
    Failed(String),
    /// No connection will work until a setting changes.
    Fatal(Refusal),
    /// The ingress was stopped.
    Stopped,
}

impl Supervisor {
    /// Opens one connection after another until `stop`. Fails if Slack refuses the app permanently before any
    /// connection was open.
    async fn keep_connected(self: Arc<Self>, slot: u32, stop: CancellationToken) -> Result<(), Refusal> {
        let mut failures = 0;
        let mut lingering = JoinSet::new();
        loop {
            while lingering.try_join_next().is_some() {}
            let wait = match self.clone().connection(slot, &stop, &mut failures, &mut lingering).await {
                End::Stopped => break,
                End::Renew => Duration::ZERO,
                End::Failed(why) => {
                    failures += 1;
                    let wait = self.backoff(failures);
                    metrics::counter!("countersign_slack_socket_failures_total").increment(1);
                    warn!(slot, wait_ms = wait.as_millis(), "Socket Mode connection failed: {why}");
                    wait
                }
                End::Fatal(refusal) => {
                    match self.gauge.fatal(&refusal) {
                        SocketHealth::Connecting => return Err(refusal),
                        SocketHealth::Fatal(known) if known == refusal => {} // already logged
                        _ => error!("{refusal}"),
                    }
                    self.settings.backoff_max
                }
            };
            tokio::select! {
                () = sleep(wait) => {}
                () = stop.cancelled() => break,
            }
        }
        while lingering.join_next().await.is_some() {}
        Ok(())
    }

    /// Returns the delay before the next attempt, which doubles up to the maximum and has jitter.
    fn backoff(&self, failures: u32) -> Duration {
        let doubled = self.settings.backoff.saturating_mul(1 << failures.clamp(1, 16).saturating_sub(1));
        doubled.min(self.settings.backoff_max).mul_f64(rand::rng().random_range(0.5..1.0))
    }

    /// Runs one connection, from opening to its end.
    async fn connection(
        self: Arc<Self>,
        slot: u32,
        stop: &CancellationToken,
        failures: &mut u32,
        lingering: &mut JoinSet<()>,
    ) -> End {
        let opened = tokio::select! {
            opened = self.slack.connections_open() => opened,
            () = stop.cancelled() => return End::Stopped,
        };
        if let Err(error) = opened {
            return Refusal::of(&error).map_or_else(|| End::Failed(error.to_string()), End::Fatal);
        }
        let (sender, mut events) = mpsc::unbounded_channel();
        let connection = match timeout(self.settings.hello_within, self.open(sender)).await {
            Ok(Some(connection)) => connection,
            Ok(None) => return End::Failed("cannot register".to_owned()),
            Err(_) => return End::Failed("it does not open".to_owned()),
        };
        let hello = tokio::select! {
            first = timeout(self.settings.hello_within, events.recv()) => first,
            () = stop.cancelled() => {
                // The library cannot shut down a connection that is still being opened; it would stay open.
                timeout(OPENING_GRACE, events.recv()).await.ok();
                return self.shut_down(connection, End::Stopped).await;
            }
        };
        match hello {
            Ok(Some(ConnectionEvent::Hello)) => {}
            Ok(Some(ConnectionEvent::Disconnect(reason))) if is_fatal(&reason) => {
                return self.shut_down(connection, End::Fatal(Refusal::new(reason))).await;
            }
            Ok(other) => return self.shut_down(connection, End::Failed(format!("{other:?} before hello"))).await,
            Err(_) => return self.shut_down(connection, End::Failed("no hello".to_owned())).await,
        }
        let since = Instant::now();
        self.gauge.opened();
        info!(slot, "Socket Mode connection is open");
        loop {
            let event = tokio::select! {
                event = events.recv() => event,
                () = stop.cancelled() => {
                    self.gauge.closed(self.clock.now());
                    return self.shut_down(connection, End::Stopped).await;
                }
            };
            match event {
                Some(ConnectionEvent::Hello) => {}
                Some(ConnectionEvent::Disconnect(reason)) if is_fatal(&reason) => {
                    self.gauge.closed(self.clock.now());
                    return self.shut_down(connection, End::Fatal(Refusal::new(reason))).await;
                }
                Some(ConnectionEvent::Disconnect(reason)) => {
                    debug!(slot, reason, "Slack asks for a new Socket Mode connection");
                    let (supervisor, stop) = (self.clone(), stop.clone());
                    lingering.spawn(async move { supervisor.linger(connection, events, stop).await });
                    if since.elapsed() < self.settings.hello_within {
                        return End::Failed(format!("{reason} soon after hello"));
                    }
                    *failures = 0;
                    return End::Renew;
                }
                Some(ConnectionEvent::Closed) | None => {
                    if since.elapsed() >= self.settings.hello_within {
                        *failures = 0;
                    }
                    self.gauge.closed(self.clock.now());
                    return self.shut_down(connection, End::Failed("closed".to_owned())).await;
                }
            }
        }
    }

    /// Keeps reading from an old connection until Slack closes it, `stop` is cancelled or [`LINGER`] has passed.
    async fn linger(
        self: Arc<Self>,
        connection: Connection,
        mut events: mpsc::UnboundedReceiver<ConnectionEvent>,
        stop: CancellationToken,
    ) {
        let closed = async { while !matches!(events.recv().await, Some(ConnectionEvent::Closed) | None) {} };
        tokio::select! {
            _ = timeout(LINGER, closed) => {}
            () = stop.cancelled() => {}
        }
        self.gauge.closed(self.clock.now());
        self.shut_down(connection, End::Renew).await;
    }

    /// Starts a connection that sends its events to `events`.
    async fn open(&self, events: mpsc::UnboundedSender<ConnectionEvent>) -> Option<Connection> {
        let library = self.slack.library();
        let environment = Arc::new(SlackClientEventsListenerEnvironment::new(library.clone()));
        let manager = library.http_api.connector.new_clients_manager(environment);
        let config = SlackClientSocketModeConfig::new()
            .with_max_connections_count(1)
            .with_reconnect_timeout_in_seconds(3600) // the supervisor reconnects, not the library
            .with_ping_interval_in_seconds(self.settings.ping_every.as_secs().max(1))
            .with_ping_failure_threshold_times(4);
        let listener = Arc::new(Listener { intake: self.intake.clone(), events });
        manager.register_new_token(&config, self.slack.token().clone(), listener).await.ok()?;
        manager.start().await;
        Some(Connection { manager })
    }

    /// Shuts a connection down. When the ingress is stopped, pending envelopes are acknowledged first.
    async fn shut_down(&self, connection: Connection, end: End) -> End {
        if matches!(end, End::Stopped) || self.intake.is_stopped() {
            self.intake.stop();
            while self.intake.is_busy() {
                sleep(Duration::from_millis(5)).await;
            }
            sleep(ACKNOWLEDGE_GRACE).await;
        }
        timeout(SHUTDOWN_TIMEOUT, connection.manager.shutdown()).await.ok(); // a hanging connection is abandoned
        end
    }
}

struct Connection {
    manager: Arc<dyn SlackSocketModeClientsManager + Send + Sync>,
}
