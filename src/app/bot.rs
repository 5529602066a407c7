//! The bot: creates and connects all components, and runs them until it is stopped.

mod identity;
mod ingress;
mod shared;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use anyhow::Context;
use countersign_assistant::{graph::chat_graph, model_health::WatchedModel, plan_settings::PlanSettings};
use countersign_capabilities::{Capability, Registry, facts::Facts};
use countersign_config::Config;
use countersign_conversation::{
    approvals::{groups::Groups, people::People, policy},
    presentation::{links::Links, names::Names},
    record::retention::Retention,
    runtime::{
        dispatch::Dispatch,
        events::{self, Events},
        sweeper::{Rounds, Sweeper},
        workers::{self, Advance, Workers},
    },
};
use countersign_core::{clock::Clock, ids::WorkerId};
use countersign_graph::store::Store;
use countersign_model::Purpose;
use countersign_slack::sink::Sink;
use countersign_watches::watcher::Watcher;
use futures_util::future::join_all;
use tokio::{
    task::{AbortHandle, JoinHandle},
    time::{Instant, timeout_at},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::{
    identity::{learn_app, own_account},
    ingress::{Ingress, ingress, receive},
    shared::{Shared, watched},
};
use super::{
    dependencies, http, installed, keys,
    mail::{self, Mail, ReadyMail},
    readiness::Readiness,
    server::{self, Limits},
    services::Services,
    supervision::Supervision,
    watches,
};

/// A bot that is set up and listening. [`Bot::run`] runs it.
pub struct Bot {
    store: Arc<dyn Store>,
    registry: Registry,
    sweeper: Sweeper,
    events: Events,
    mail: Option<mail::Tasks>,
    watcher: Watcher,
    watch_tick: Duration,
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

impl Bot {
    /// Opens the store, connects all components and starts listening. Nothing is handled before [`Bot::run`].
    ///
    /// # Errors
    ///
    /// Fails if something cannot be opened. The error says what, and why.
    pub async fn start(config: &Config, clock: Arc<dyn Clock>, stop: CancellationToken) -> anyhow::Result<Self> {
        let store = dependencies::store(config, clock.clone()).await?;
        Box::pin(Self::with_store(store, config, clock, stop)).await
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
        Box::pin(Self::with_capabilities(capabilities, store, config, clock, stop)).await
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
                    "cannot listen on {}:{}; choose another port with server.port (or PORT), or another address with \
                     server.address",
                    server.address, server.port
                )
            })?;
        let keys = keys::open(config)?;
        let store = keys::sealed(store, &keys, config).await?;
        let slack = dependencies::slack(config)?;
        let names = Names::new(slack.clone(), clock.clone());
        let account = own_account(&slack).await?;
        let us = account.identity;
        learn_app(&slack, account.bot.as_deref(), &us).await;
        let people = People::new(slack.clone(), clock.clone(), us.clone(), config);
        let groups = Groups::new(slack.clone(), clock.clone(), config.approvals.named(), people.clone());
        let links = Links::new(store.clone(), account.url);
        let mail = Mail::open(config, &store, &clock, &links).await?;
        let of_mail = mail.as_ref().map(|mail| -> Arc<dyn Capability> { Arc::new(mail.capability()) });
        let capabilities = capabilities.into_iter().chain(of_mail).collect();
        let entitled = Arc::new(groups.clone());
        let (registry, book) =
            dependencies::with_standing_approvals(config, capabilities, store.clone(), clock.clone(), entitled)?;
        let (models, rules) = dependencies::models(config, registry.book.clone())?;
        let has_model = |purpose| models.model_for(purpose).is_remote();
        let (classifies, writes) = (has_model(Purpose::Classify), has_model(Purpose::Generate));
        let (model, pulse) = watched(models, &clock);
        let of = |is_remote: bool| is_remote.then(|| model.clone());
        let mail = mail.map(|mail| mail.ready(&config.email, of(classifies), of(writes), us.user.clone()));
        let mail_actions = mail.as_ref().map(ReadyMail::actions).unwrap_or_default();
        let approvals = config.approvals.clone();
        let shared = Shared {
            store: store.clone(),
            clock: clock.clone(),
            slack,
            registry: registry.clone(),
            actions: registry.actions.clone().into_iter().chain(mail_actions.clone()).collect(),
            people,
            groups,
            names,
            links,
            policy_for: Arc::new(move |matter| policy::policy_for(&approvals, matter)),
            keys: keys.ring,
            memories: dependencies::memories(),
            tasks: TaskTracker::new(),
        };

        let name = WorkerId::new(format!("{}-{}", std::process::id(), uuid::Uuid::new_v4().simple()));
        let channels = mail.iter().flat_map(|mail| mail.channels(&shared.slack, &shared.names)).collect();
        let sender = shared.sender(config, &name, channels);
        let outlet = Arc::new(sender.clone());

        let blobs = Arc::new(dependencies::StoreBlobCache(store.clone()));
        let graph = chat_graph(model, rules, registry.clone(), blobs, PlanSettings::from(&config.plans))
            .context("the chat graph is invalid")?;
        let settle_within = registry.services().map(|service| service.settle_within).max().unwrap_or_default();
        let actions = registry.actions.clone();
        let chat = shared.engine(graph, actions, book, settle_within, config, &stop);
        let mut engines: Vec<Arc<dyn Advance>> = vec![Arc::new(chat.with_outlet(outlet.clone()))];
        if let Some(mail) = &mail {
            let (graph, automatic) = (mail.graph()?, mail.automatic());
            let settle_within = mail::settle_within(&config.email);
            let email = shared.engine(graph, mail_actions, automatic, settle_within, config, &stop);
            engines.push(Arc::new(email.with_outlet(outlet)));
        }

        let workers = Workers::new(workers::WorkersDeps {
            store: store.clone(),
            engines,
            sender: sender.clone(),
            clock: clock.clone(),
            name: name.clone(),
            lease: config.workers.lease,
            threads: config.workers.threads,
            stop,
        });
        let facts = Facts::new(registry.clone(), clock.clone());
        let home = shared.home(&facts, WatchedModel::new(pulse));
        let inbox = shared.inbox(config, facts, home.clone(), workers.clone(), sender.clone());
        let sink: Arc<dyn Sink> = Arc::new(Dispatch::new(store.clone(), clock.clone(), workers.clone(), inbox.clone()));
        let (ingress, slack_events) = ingress(config, us, sink, clock.clone())?;
        let health = match &ingress {
            Ingress::Socket(socket) => Some(socket.health()),
            Ingress::Http => None,
        };
        let events = Events::new(events::EventsDeps {
            store: store.clone(),
            clock: clock.clone(),
            workers: workers.clone(),
            sources: registry.capabilities.iter().filter_map(|capability| capability.events()).collect(),
        });
        let (running, rounds) = (Supervision::default(), Rounds::default());
        let probes = http::HttpDeps {
            store: Readiness::new(store.clone()),
            slack: health,
            services: Services::new(&registry.capabilities),
            client: shared.slack.clone(),
            tasks: running.clone(),
            rounds: rounds.clone(),
            mail: mail.as_ref().map(|mail| mail.probe(config)),
        };
        let mail = mail.map(|mail| {
            let (slack, names) = (shared.slack.clone(), shared.names.clone());
            let workers = workers.clone();
            let wake = Arc::new(move |thread| workers.wake(thread));
            mail.tasks(config, mail::TaskDeps { team: account.team, slack, names, holder: name, wake })
        });
        let mail = mail.transpose()?;
        let router = http::router(probes).merge(slack_events);
        let limits = Limits::of(&config.server, &config.workers);
        let retention = Retention::new(store.clone(), clock.clone(), shared.memories, &config.record);
        let every = config.workers.sweep_every;
        let watcher = watches::watcher(config, &registry, &store, &clock, shared.people.clone());
        let watch_tick = every * watches::SWEEPS_A_TICK;
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
        let (tasks, drain) = (shared.tasks, config.workers.drain);
        Ok(Self {
            store,
            registry,
            sweeper,
            events,
            mail,
            watcher,
            watch_tick,
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
        let Self {
            registry,
            sweeper,
            events,
            mail,
            watcher,
            watch_tick,
            workers,
            tasks,
            ingress,
            listener,
            router,
            limits,
            running,
            drain,
            ..
        } = self;
        let serving = running.start("http", server::serve(listener, router, limits, stop.clone()), &stop);
        let sweeping = running.start("sweeper", sweeper.run(stop.clone()), &stop);
        let following = running.start("events", events.run(stop.clone()), &stop);
        let watching = running.start("watches", watcher.run(watch_tick, stop.clone()), &stop);
        let mailing = mail.map(|tasks| tasks.start(&running, &stop)).unwrap_or_default();
        let receiving = running.start("ingress", receive(ingress, stop.clone()), &stop);
        stop.cancelled().await;
        let deadline = Instant::now() + drain;
        tasks.close();
        let own = [&serving, &sweeping, &following, &watching].into_iter();
        let aborts: Vec<AbortHandle> = own.chain(&mailing).map(JoinHandle::abort_handle).collect();
        let receiving_abort = receiving.abort_handle();
        let received = timeout_at(deadline, receiving).await;
        let drained = async {
            // A panic was recorded by `running`.
            let _ = tokio::join!(serving, sweeping, following, watching, join_all(mailing));
            workers.drain().await;
            tasks.wait().await;
        };
        if timeout_at(deadline, drained).await.is_err() || received.is_err() {
            let left = in_hand.count();
            tracing::warn!(left, "Not everything ended in time; unfinished work continues at the next start");
            aborts.iter().chain([&receiving_abort]).for_each(AbortHandle::abort);
        }
        registry.close().await;
        match (received, running.ended()) {
            (Ok(Ok(Some(Err(refusal)))), _) => Err(refusal.into()),
            (_, Some(ended)) => Err(ended.into()),
            _ => Ok(()),
        }
    }
}
