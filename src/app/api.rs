//! The HTTP API for programs, as the settings say.
//!
//! Start at [`Api::listen`], then [`Api::ready`], which needs the rest of the bot.

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use anyhow::Context as _;
use async_trait::async_trait;
use countersign_api::{
    callback::Callbacks,
    graph::{ApiState, api_graph},
    keys::{CurrentKeys, ReadKeys},
    poster::{Poster, PosterDeps, Roots},
    register::Requests,
    server::{Server, ServerDeps},
    settings,
    token::TokenKeys,
};
use countersign_config::{Config, Problem, Problems, environment};
use countersign_conversation::{approvals::inbox::Approvals, runtime::outbox::channel::Channel};
use countersign_core::{
    cause,
    clock::{Clock, Timestamp},
    ids::{ChannelId, MessageTs, Nonce, TeamId, ThreadId},
    reply::Reply,
};
use countersign_graph::{definition::Graph, store::Written};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::{
    installed::SETTINGS,
    mail::announcer::ChannelAnnouncer,
    server::{self, limits::Limits},
    supervision::{Task, task},
};

/// The time limit for handling a request: the longest wait of an agent, and some more.
const HANDLING_TIMEOUT: Duration = Duration::from_secs(260);

/// The number of connections beside those that wait.
const CONNECTIONS: usize = 100;

/// The API, listening.
pub(super) struct Api {
    settings: Arc<settings::Api>,
    listener: TcpListener,
}

/// The API with its requests.
pub(super) struct ReadyApi {
    api: Api,
    requests: Requests,
    tokens: TokenKeys,
}

/// The components of the bot that the tasks of the API need.
pub(super) struct TaskDeps<'a> {
    /// The settings.
    pub(super) config: &'a Config,
    /// The rules of decisions, with the store, the clock, Slack and its people.
    pub(super) approvals: &'a Approvals,
    /// The workspace.
    pub(super) team: TeamId,
    /// The function that goes on with a thread and sends its messages.
    pub(super) wake: Arc<dyn Fn(ThreadId) + Send + Sync>,
    /// The signal to shut down.
    pub(super) stop: CancellationToken,
}

impl Api {
    /// Listens on the configured address; `None` if there is none.
    ///
    /// # Errors
    ///
    /// Fails if another program listens there.
    pub(super) async fn listen(config: &Config) -> anyhow::Result<Option<Self>> {
        let settings: &settings::Api = config.sections.get();
        let Some(address) = settings.listen else { return Ok(None) };
        let listener = TcpListener::bind(address).await;
        let listener =
            listener.with_context(|| format!("cannot listen on {address}; api.listen names another address"))?;
        Ok(Some(Self { settings: Arc::new(settings.clone()), listener }))
    }

    /// Returns the address.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        self.listener.local_addr().ok()
    }

    /// Adds the requests, in a store that tells of its writes, and the keys of tokens.
    pub(super) fn ready(self, requests: Requests, tokens: TokenKeys) -> ReadyApi {
        ReadyApi { api: self, requests, tokens }
    }
}

/// Returns the requests in the store of the bot.
pub(super) fn requests(store: &Arc<dyn countersign_graph::store::Store>, written: Arc<Written>) -> Requests {
    Requests::new(store.clone(), written)
}

impl ReadyApi {
    /// Returns the address.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        self.api.address()
    }

    /// Returns the graph of requests.
    ///
    /// # Errors
    ///
    /// Fails if the graph is invalid, which is a fault in the program.
    pub(super) fn graph(&self) -> anyhow::Result<Graph<ApiState>> {
        api_graph(self.requests.clone()).context("the graph of requests is invalid")
    }

    /// Returns the channel that calls programs back.
    ///
    /// # Errors
    ///
    /// Fails if no HTTP client can be set up.
    pub(super) fn callbacks(&self, clock: &Arc<dyn Clock>) -> anyhow::Result<Arc<dyn Channel>> {
        let callbacks = Callbacks::new(self.api.settings.clone(), self.requests.clone(), clock.clone());
        Ok(Arc::new(callbacks.context("cannot set up the client for callbacks")?))
    }

    /// Returns the tasks that run as long as the bot does.
    pub(super) fn tasks(self, deps: TaskDeps<'_>) -> Vec<Task> {
        let TaskDeps { config, approvals, team, wake, stop } = deps;
        let Self { api: Api { settings, listener }, requests, tokens } = self;
        let announcer = ChannelAnnouncer::new(approvals.slack.clone(), approvals.names.clone());
        let poster = Arc::new(Poster::new(PosterDeps {
            requests: requests.clone(),
            settings: settings.clone(),
            roots: Arc::new(announcer),
            team,
            wake: wake.clone(),
            clock: approvals.clock.clone(),
        }));
        let limits = Limits {
            handling_timeout: HANDLING_TIMEOUT,
            ..Limits::of(&config.server, &config.workers).at_most(settings.waiting + CONNECTIONS)
        };
        let server = Server::new(ServerDeps {
            requests,
            keys: CurrentKeys::new(settings.keys.clone(), config.file.clone(), read_keys(config.file.clone())),
            settings,
            approvals: config.approvals.clone(),
            poster: poster.clone(),
            tokens,
            policy_for: approvals.policy_for.clone(),
            entitled: Arc::new(approvals.groups.clone()),
            links: approvals.links.clone(),
            wake,
            clock: approvals.clock.clone(),
            stop,
        });
        let router = server.router();
        vec![
            task("api", move |stop| server::serve(listener, router, limits, stop)),
            task("api cards", |stop| poster.run(stop)),
            task("api waits", |stop| server.look_elsewhere(stop)),
        ]
    }
}

/// Returns the function that reads the keys in the settings again.
fn read_keys(file: Option<PathBuf>) -> ReadKeys {
    Box::new(move || {
        let (config, Problems(problems)) = Config::read(file.as_deref(), &environment(), &SETTINGS);
        let of_file = file.as_ref().map(|file| file.display().to_string());
        let concerns = |problem: &&Problem| problem.key.starts_with("api") || Some(&problem.key) == of_file.as_ref();
        match (problems.iter().find(concerns), config) {
            (None, Some(config)) => Ok(config.sections.get::<settings::Api>().keys.clone()),
            (Some(problem), _) => Err(problem.to_string()),
            (None, None) => Err("they cannot be read".to_owned()),
        }
    })
}

#[async_trait]
impl Roots for ChannelAnnouncer {
    async fn post(
        &self,
        channel: &ChannelId,
        message: &Reply,
        nonce: &Nonce,
        since: Option<Timestamp>,
    ) -> Result<MessageTs, String> {
        Self::post(self, channel, message, nonce, since).await.map_err(|error| cause::chain(&error))
    }

    async fn remove(&self, channel: &ChannelId, message: &MessageTs) {
        Self::remove(self, channel, message).await;
    }
}
