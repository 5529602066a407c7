//! Starting and stopping the server, its configuration, and access to its state.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::Arc,
};

use axum::{
    Router,
    extract::DefaultBodyLimit,
    middleware::from_fn_with_state,
    routing::{any, get, post},
};
use countersign_wire::this_machine;
use tokio::{sync::mpsc, time::Instant};

use super::{
    Error, Mode, Options, SandboxSlack, delivery,
    faults::Fault,
    http_delivery,
    ledger::{Ledger, Recorded},
    persistence, response_url,
    server::{AppAddress, Server, locked},
    socket, web_api, workspace,
    world::World,
};
use crate::stand_in::{Place, StandIn};

/// The maximum size of a request body, enough for any file that the bot uploads.
const MAX_BODY_BYTES: usize = 64 << 20;

impl SandboxSlack {
    /// The token for the Web API.
    pub const BOT_TOKEN: &'static str = "xoxb-sandbox-bot-token";
    /// The token for Socket Mode.
    pub const APP_TOKEN: &'static str = "xapp-1-A1-sandbox-app-token";
    /// A secret for configurations that require one. In [`Mode::Socket`] there are no requests to
    /// sign with it.
    pub const SIGNING_SECRET: &'static str = "sandbox-signing-secret";

    /// Starts a workspace, with its saved state if there is one.
    ///
    /// # Errors
    ///
    /// [`Error::Start`] if the port is taken, [`Error::File`] if a file cannot be read.
    pub async fn start(options: Options) -> Result<Self, Error> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, options.port));
        let no_file = |path: &Option<PathBuf>, source| Error::File { path: path.clone().unwrap_or_default(), source };
        let world = persistence::load(options.persist.as_deref()).map_err(|error| no_file(&options.persist, error))?;
        let ledger = Ledger::open(options.ledger.as_deref()).map_err(|error| no_file(&options.ledger, error))?;
        let place = Place { persist: options.persist.clone(), ..Place::new(options.port, options.clock.clone()) };
        let bound = StandIn::bind(world, options, place).await;
        let (stand_in, listener) = bound.map_err(|source| Error::Start { address, source })?;
        let (deliveries, queue) = mpsc::unbounded_channel();
        let this = Self { server: Arc::new(Server::new(stand_in, ledger, deliveries)) };
        tokio::spawn(delivery::dispatch(this.server.clone(), queue));
        this.server.stand_in.serve(listener, this.everything());
        Ok(this)
    }

    /// Stops serving, after the world has been saved.
    pub async fn stop(&self) {
        self.server.stand_in.stop().await;
        persistence::save(&self.server);
    }

    /// Returns the base URL of the Web API, without a trailing slash.
    pub fn api_url(&self) -> String {
        format!("{}/api", self.server.url)
    }

    /// Returns the address of the server, such as `http://127.0.0.1:4711`.
    pub fn url(&self) -> &str {
        &self.server.url
    }

    /// Returns the token for the Web API.
    pub fn bot_token(&self) -> &'static str {
        Self::BOT_TOKEN
    }

    /// Returns the token for Socket Mode.
    pub fn app_token(&self) -> &'static str {
        Self::APP_TOKEN
    }

    /// Returns the secret that requests to the app are signed with.
    pub fn signing_secret(&self) -> &str {
        match &self.server.options.mode {
            Mode::Http { signing_secret, .. } => signing_secret,
            Mode::Socket => Self::SIGNING_SECRET,
        }
    }

    /// Sets the base URL of the app in HTTP mode, to which `/slack/events` and the like are
    /// appended.
    pub fn point_at(&self, url: &str) {
        *locked(&self.server.app) = AppAddress { url: Some(url.trim_end_matches('/').to_owned()), verified: false };
    }

    /// Sends `url_verification`, as Slack does when the address is configured. Otherwise it is sent
    /// before the first delivery. Returns true if the app repeated the challenge.
    pub async fn verifies_app(&self) -> bool {
        let Some(url) = locked(&self.server.app).url.clone() else { return false };
        let deadline = Instant::now() + self.server.options.answer_within;
        let verified = http_delivery::verify(&self.server, &url, self.signing_secret(), deadline).await;
        locked(&self.server.app).verified = verified;
        verified
    }

    /// Returns the number of open sockets of the app.
    pub fn sockets(&self) -> usize {
        self.server.sockets.count()
    }

    /// Injects a fault.
    pub fn inject(&self, fault: Fault) {
        match &fault {
            Fault::Disconnect { reason, queued } => {
                self.server.sockets.disconnect(reason, *queued, self.server.options.linger);
            }
            Fault::DropSockets => self.server.sockets.break_all(),
            _ => self.server.faults().add(fault),
        }
    }

    /// Returns the ledger of all calls and deliveries.
    pub fn ledger(&self) -> &Ledger {
        &self.server.ledger
    }

    /// Returns a copy of all calls and deliveries.
    pub fn recorded(&self) -> Recorded {
        self.server.ledger.read()
    }

    /// Reads the world with a function.
    pub fn look<T>(&self, at: impl FnOnce(&World) -> T) -> T {
        at(&self.server.world())
    }

    /// Changes the world without any event, such as its members, groups and names.
    pub fn arrange<T>(&self, change: impl FnOnce(&mut World) -> T) -> T {
        self.server.change(change)
    }

    /// Returns the API of the page, `/workspace/…`, to serve on the page's own port.
    pub fn router(&self) -> Router {
        let saved = from_fn_with_state(self.server.clone(), persistence::save_before_answering);
        workspace::router(self.server.clone()).layer(saved)
    }

    fn everything(&self) -> Router {
        let routes = Router::new()
            .route("/api/{*method}", any(web_api::entry::call))
            .route("/link", get(socket::link))
            .route("/response/{id}", post(response_url::receive))
            .route("/upload/{id}", post(web_api::files::upload))
            .route("/files-pri/{file}/{name}", get(web_api::files::private))
            .route("/files-pri/{file}/download/{name}", get(web_api::files::private))
            .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
            .layer(from_fn_with_state(self.server.clone(), persistence::save_before_answering))
            .with_state(self.server.clone());
        this_machine::only(routes).merge(self.router())
    }
}
