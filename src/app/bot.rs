//! The bot: creates and connects all components, and runs them until it is stopped.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use anyhow::{Context, bail};
use countersign_assistant::{graph::chat_graph, model_health::WatchedModel, plan_settings::PlanSettings};
use countersign_capabilities::{Capability, Registry, facts::Facts};
use countersign_config::{Config, SlackMode};
use countersign_conversation::{
    approvals::{self, groups::Groups, inbox::Approvals, notify::ApproverNotices, people::People, policy},
    commands::{self, Commands},
    presentation::{links::Links, names::Names, render},
    record::{
        notebook::{Notebook, Redaction},
        rating::Ratings,
        retention::Retention,
    },
    runtime::{
        dispatch::Dispatch,
        events::{self, Events},
        inbox::{self, Inbox},
        outbox::{self, Sender},
        stopping::Stopping,
        sweeper::{Rounds, Sweeper},
        thread_status::ThreadStatus,
        workers::{self, Workers},
    },
    surfaces::{
        creation::{self, Creation},
        home::{self, Home},
    },
};
use countersign_core::{clock::Clock, ids::WorkerId};
use countersign_graph::{
    engine::{self, Engine, PolicyFor, Settings},
    request::Times,
    store::Store,
};
use countersign_model::{
    Model,
    watched::{Pulse, Watched},
};
use countersign_slack::{
    Identity,
    account::Account,
    client::SlackClient,
    client_error, ingress_http,
    ingress_socket::{self, SocketIngress},
    refusal::Refusal,
    sink::Sink,
};
use secrecy::SecretString;
use tokio::{
    task::{AbortHandle, JoinHandle},
    time::{Instant, timeout_at},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    dependencies, http, installed, keys,
    readiness::Readiness,
    server::{self, Limits},
    services::Services,
    supervision::Supervision,
};

/// The number of attempts to get the bot's identity from Slack before startup fails.
const IDENTITY_ATTEMPTS: u32 = 30;

/// A bot that is set up and listening. [`Bot::run`] runs it.
pub struct Bot {
    store: Arc<dyn Store>,
    registry: Registry,
    sweeper: Sweeper,
    events: Events,
    workers: Workers,
    tasks: TaskTracker,
    ingress: Ingress,
    listener: tokio::net::TcpListener,
    router: axum::Router,
    limits: Limits,
    running: Supervision,
    drain: Duration,
}

/// The work in progress: steps, button clicks and messages being sent. Work that has not started is only in the store.
#[derive(Clone, Debug)]
pub struct InHand([TaskTracker; 2]);

impl InHand {
    /// Returns the number of tasks in progress.
    pub fn count(&self) -> usize {
        self.0.iter().map(TaskTracker::len).sum()
    }
}

/// The source of events.
enum Ingress {
    Http,
    Socket(Box<SocketIngress>),
}

impl Bot {
    /// Opens the store, connects all components and starts listening. Nothing is handled before [`Bot::run`].
    ///
    /// # Errors
    ///
    /// Fails if something cannot be opened. The error says what, and why.
    pub async fn start(config: &Config, clock: Arc<dyn Clock>, stop: CancellationToken) -> anyhow::Result<Self> {
        let store = dependencies::store(config, clock.clone()).await?;
        Self::with_store(store, config, clock, stop).await
    }

    /// Starts the bot as [`Bot::start`] does, on a store that is already open.
    ///
    /// # Errors
    ///
    /// The same as for [`Bot::start`].
    pub async fn with_store(
        store: Arc<dyn Store>,
        config: &Config,
        clock: Arc<dyn Clock>,
        stop: CancellationToken,
    ) -> anyhow::Result<Self> {
        let capabilities = installed::capabilities(config, clock.clone())?;
        Self::with_capabilities(capabilities, store, config, clock, stop).await
    }

    /// Starts the bot as [`Bot::start`] does, on a store that is already open, with these capabilities.
    ///
    /// # Errors
    ///
    /// The same as for [`Bot::start`]. Also fails if the capabilities conflict.
    pub async fn with_capabilities(
        capabilities: Vec<Arc<dyn Capability>>,
        store: Arc<dyn Store>,
        config: &Config,
        clock: Arc<dyn Clock>,
        stop: CancellationToken,
    ) -> anyhow::Result<Self> {
        let listener =
            tokio::net::TcpListener::bind((config.server.address, config.server.port)).await.with_context(|| {
                let server = &config.server;
                format!(
                    "cannot listen on {}:{}; choose another port with server.port (or PORT), another address with \
                     server.address",
                    server.address, server.port
                )
            })?;
        let keys = keys::open(config)?;
        let store = keys::sealed(store, &keys, config).await?;
        let keys = keys.ring;
        let slack = dependencies::slack(config)?;
        let names = Names::new(slack.clone(), clock.clone());
        let account = own_account(&slack).await?;
        let us = account.identity;
        learn_app(&slack, account.bot.as_deref(), &us).await;
        let people = People::new(slack.clone(), clock.clone(), us.clone(), config);
        let groups = Groups::new(slack.clone(), clock.clone(), config.approvals.named(), people.clone());
        let entitled = Arc::new(groups.clone());
        let (registry, book) =
            dependencies::with_standing_approvals(config, capabilities, store.clone(), clock.clone(), entitled)?;
        let links = Links::new(store.clone(), account.url);
        let missing = slack.missing_scopes().clone();

        let (model, rules) = dependencies::models(config, registry.book.clone())?;
        let (model, pulse) = watched(model, &clock);
        let facts = Facts::new(registry.clone(), clock.clone());
        let services = Services::new(&registry.capabilities);
        let settle_within = registry.services().map(|service| service.settle_within).max().unwrap_or_default();
        let settings = dependencies::shown_settings(config, &registry);
        let approvals = config.approvals.clone();
        let policy_for: PolicyFor = Arc::new(move |matter| policy::policy_for(&approvals, matter));
        let actions = registry.actions.clone();
        let blobs = Arc::new(dependencies::StoreBlobCache(store.clone()));
        let engine = Engine::new(engine::EngineDeps {
            actions: actions.clone(),
            graph: chat_graph(model, rules, registry.clone(), blobs, PlanSettings::from(&config.plans))
                .context("the chat graph is invalid")?,
            store: store.clone(),
            clock: clock.clone(),
            policy_for: policy_for.clone(),
            standing: book,
            keys: keys.clone(),
            admission: Arc::new(people.clone()),
            settings: Settings {
                approval_ttl: config.approvals.expires_after,
                remind_before: config.approvals.remind_before,
                step_timeout: config.workers.step_timeout,
                settle_within,
                status_after: config.workers.status_after,
                chunks: render::chunks,
                ..Settings::default()
            },
            stopping: stop.clone(),
        });

        let tasks = TaskTracker::new();
        let name = WorkerId::new(format!("{}-{}", std::process::id(), uuid::Uuid::new_v4().simple()));
        let senders = config.workers.senders;
        let thread_status = ThreadStatus::new(slack.clone(), config.slack.native_status, config.slack.agent_view);
        let memories = dependencies::memories();
        let sender = Sender::new(outbox::SenderDeps {
            store: store.clone(),
            slack: slack.clone(),
            channels: Vec::new(),
            thread_status,
            links: links.clone(),
            names: names.clone(),
            memories: memories.clone(),
            clock: clock.clone(),
            name: name.clone(),
            seats: senders,
            rate_limits: config.slack.rate_limits,
            tasks: tasks.clone(),
        });
        let workers = Workers::new(workers::WorkersDeps {
            store: store.clone(),
            engines: vec![Arc::new(engine)],
            sender: sender.clone(),
            clock: clock.clone(),
            name,
            lease: config.workers.lease,
            threads: config.workers.threads,
            stop,
        });
        let home = Home::new(home::HomeDeps {
            store: store.clone(),
            clock: clock.clone(),
            slack: slack.clone(),
            facts: facts.clone(),
            model: WatchedModel::new(pulse),
            policy_for: policy_for.clone(),
            groups: groups.clone(),
            names: names.clone(),
            links: links.clone(),
            tasks: tasks.clone(),
        });
        let redaction = Redaction::from(&config.record);
        let notebook = Notebook::new(store.clone(), clock.clone(), Some(slack.clone()), redaction);
        let creation = Creation::new(creation::CreationDeps {
            store: store.clone(),
            clock: clock.clone(),
            slack: slack.clone(),
            registry: registry.clone(),
        });
        let inbox = Inbox::new(inbox::InboxDeps {
            store: store.clone(),
            approvals: Approvals::new(approvals::inbox::ApprovalsDeps {
                store: store.clone(),
                clock: clock.clone(),
                memories: memories.clone(),
                slack: slack.clone(),
                groups: groups.clone(),
                people: people.clone(),
                names: names.clone(),
                links: links.clone(),
                actions,
                policy_for: policy_for.clone(),
                keys,
                tasks: tasks.clone(),
                times: Times {
                    open_for: config.approvals.expires_after,
                    remind_before: config.approvals.remind_before,
                },
            }),
            creation,
            commands: Commands::new(commands::CommandsDeps {
                store: store.clone(),
                clock: clock.clone(),
                facts,
                groups: groups.clone(),
                policy_for,
                links,
                settings,
                notebook: notebook.clone(),
            }),
            home: home.clone(),
            people,
            approver_notices: ApproverNotices::new(store.clone(), clock.clone(), groups.clone()),
            names,
            clock: clock.clone(),
            stopping: Stopping::new(store.clone(), clock.clone(), groups, memories.clone(), registry.plan_action()),
            notebook,
            ratings: Ratings::new(store.clone(), clock.clone()),
            agent_view: config.slack.agent_view,
            prompts: registry.book.first_steps(),
            memories: memories.clone(),
            slack,
            workers: workers.clone(),
            sender: sender.clone(),
            tasks: tasks.clone(),
        });
        let sink: Arc<dyn Sink> = Arc::new(Dispatch::new(store.clone(), clock.clone(), workers.clone(), inbox.clone()));
        let (ingress, events) = ingress(config, us, sink, clock.clone())?;
        let health = match &ingress {
            Ingress::Socket(socket) => Some(socket.health()),
            Ingress::Http => None,
        };
        let event_sources = Events::new(events::EventsDeps {
            store: store.clone(),
            clock: clock.clone(),
            workers: workers.clone(),
            sources: registry.capabilities.iter().filter_map(|capability| capability.events()).collect(),
        });
        let (running, rounds) = (Supervision::default(), Rounds::default());
        let probes = http::HttpDeps {
            store: Readiness::new(store.clone()),
            slack: health,
            services,
            missing,
            tasks: running.clone(),
            rounds: rounds.clone(),
        };
        let router = http::router(probes).merge(events);
        let limits = Limits::of(&config.server, &config.workers);
        let every = config.workers.sweep_every;
        let retention = Retention::new(store.clone(), clock.clone(), memories, &config.record);
        let sweeper = Sweeper {
            store: store.clone(),
            clock,
            workers: workers.clone(),
            inbox,
            home,
            sender,
            retention,
            every,
            rounds,
        };
        let drain = config.workers.drain;
        Ok(Self {
            store,
            registry,
            sweeper,
            events: event_sources,
            workers,
            tasks,
            ingress,
            listener,
            router,
            limits,
            running,
            drain,
        })
    }

    /// Returns the address of the HTTP server for health, metrics and, without Socket Mode, Slack's requests.
    ///
    /// # Errors
    ///
    /// Fails if the socket no longer has a local address.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Returns the store, for traces.
    pub fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    /// Returns the tools and actions of the bot.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Returns the work in progress. The result stays current while the bot runs.
    pub fn in_hand(&self) -> InHand {
        InHand([self.tasks.clone(), self.workers.tasks().clone()])
    }

    /// Runs until `stop`, then drains: no new events are accepted, the steps in progress are saved, and their messages
    /// are sent. Work that is not finished within `workers.drain` is left for the next start. Cancels `stop` itself
    /// if Slack refuses the bot permanently, or if a task ends early.
    ///
    /// # Errors
    ///
    /// Fails if Slack refuses the bot permanently, or if a task ended before `stop`.
    pub async fn run(self, stop: CancellationToken) -> anyhow::Result<()> {
        let in_hand = self.in_hand();
        let Self { sweeper, events, workers, tasks, ingress, listener, router, limits, running, drain, .. } = self;
        let serving = running.start("http", server::serve(listener, router, limits, stop.clone()), &stop);
        let sweeping = running.start("sweeper", sweeper.run(stop.clone()), &stop);
        let following = running.start("events", events.run(stop.clone()), &stop);
        let receiving = running.start("ingress", receive(ingress, stop.clone()), &stop);
        stop.cancelled().await;
        let deadline = Instant::now() + drain;
        tasks.close();
        let aborts = [&serving, &sweeping, &following].map(JoinHandle::abort_handle);
        let receiving_abort = receiving.abort_handle();
        let received = timeout_at(deadline, receiving).await;
        let drained = async {
            let _ = tokio::join!(serving, sweeping, following); // a panic was recorded by `running`
            workers.drain().await;
            tasks.wait().await;
        };
        if timeout_at(deadline, drained).await.is_err() || received.is_err() {
            let left = in_hand.count();
            tracing::warn!(left, "Not everything ended in time; unfinished work continues at the next start");
            aborts.iter().chain([&receiving_abort]).for_each(AbortHandle::abort);
        }
        match (received, running.ended()) {
            (Ok(Ok(Some(Err(refusal)))), _) => Err(refusal.into()),
            (_, Some(ended)) => Err(ended.into()),
            _ => Ok(()),
        }
    }
}

/// Receives events until `stop`, and cancels `stop` if Slack refuses the bot permanently.
async fn receive(ingress: Ingress, stop: CancellationToken) -> Result<(), Refusal> {
    match ingress {
        Ingress::Socket(socket) => socket.run(stop.clone()).await.inspect_err(|_| stop.cancel()),
        Ingress::Http => {
            stop.cancelled().await; // the HTTP server receives the events
            Ok(())
        }
    }
}

/// Returns the source of events, and the routes it needs.
fn ingress(
    config: &Config,
    us: Identity,
    sink: Arc<dyn Sink>,
    clock: Arc<dyn Clock>,
) -> anyhow::Result<(Ingress, axum::Router)> {
    match config.slack_mode() {
        SlackMode::Http => {
            let Some(secret) = &config.slack.signing_secret else {
                bail!("neither SLACK_APP_TOKEN (Socket Mode) nor SLACK_SIGNING_SECRET (HTTP) is set");
            };
            Ok((Ingress::Http, ingress_http::router(secret, us, sink)))
        }
        SlackMode::Socket => {
            let Some(token) = config.slack.app_token.clone() else {
                bail!("slack.mode is \"socket\", but SLACK_APP_TOKEN is not set");
            };
            let socket = socket_mode(config, token, us, sink, clock)?;
            Ok((Ingress::Socket(Box::new(socket)), axum::Router::new()))
        }
    }
}

fn socket_mode(
    config: &Config,
    token: SecretString,
    us: Identity,
    sink: Arc<dyn Sink>,
    clock: Arc<dyn Clock>,
) -> anyhow::Result<SocketIngress> {
    let settings = ingress_socket::Settings {
        connections: config.slack.connections,
        ..ingress_socket::Settings::new(&*config.slack.api_url, token)
    };
    SocketIngress::new(settings, us, sink, clock).context("cannot set up Socket Mode")
}

/// Wraps a remote model to record its health, and also returns its name and pulse. Returns a local model unchanged.
fn watched(model: Arc<dyn Model>, clock: &Arc<dyn Clock>) -> (Arc<dyn Model>, Option<(String, Pulse)>) {
    if !model.is_remote() {
        return (model, None);
    }
    let name = model.name().to_owned();
    let (watched, pulse) = Watched::new(model, clock.clone());
    (Arc::new(watched), Some((name, pulse)))
}

/// Asks Slack for the id of the bot's app. If that fails, the id is learned from the socket or the first delivery.
async fn learn_app(slack: &SlackClient, bot: Option<&str>, us: &Identity) {
    let Some(bot) = bot else { return };
    match slack.app_of(bot).await {
        Ok(app) => us.learn_app(&app),
        Err(error) => {
            tracing::warn!(error = countersign_core::cause::chain(&error), "Slack has not returned the app's id yet")
        }
    }
}

/// Returns the bot's account, and retries if Slack does not respond.
async fn own_account(slack: &SlackClient) -> anyhow::Result<Account> {
    for attempt in 1.. {
        match slack.auth_test().await {
            Ok(account) => {
                tracing::info!(team = %account.team, bot = %account.identity.user, "Connected to a workspace");
                return Ok(account);
            }
            Err(error @ client_error::Error::Auth { .. }) => {
                return Err(error).context("Slack does not accept SLACK_BOT_TOKEN");
            }
            Err(error) if attempt >= IDENTITY_ATTEMPTS => return Err(error).context("Slack does not answer"),
            Err(error) => {
                tracing::warn!(attempt, error = countersign_core::cause::chain(&error), "Slack does not answer yet");
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
    }
    unreachable!("the loop ends by returning")
}
