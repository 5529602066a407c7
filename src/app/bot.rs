//! The bot: creates and connects all components, and runs them until it is stopped.

mod identity;
mod ingress;
mod shared;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use anyhow::Context;
use countersign_api::{graph::NothingInAdvance, token::TokenKeys};
use countersign_assistant::{graph::chat_graph, model_health::WatchedModel, plan_settings::PlanSettings};
use countersign_capabilities::{Capability, Registry, facts::Facts};
use countersign_config::{Config, Server};
use countersign_conversation::{
    approvals::{
        groups::Groups,
        inbox::{Approvals, ApprovalsDeps},
        people::People,
    },
    presentation::{links::Links, names::Names},
    record::{
        retention::Retention,
        spending::{self, Spending},
    },
    runtime::{
        dispatch::Dispatch,
        events::Events,
        sweeper::{Rounds, Sweeper},
        workers::{self, Advance, Workers},
    },
};
use countersign_core::{
    clock::Clock,
    draft::Drafting,
    ids::{ThreadId, WorkerId},
};
use countersign_graph::store::Store;
use futures_util::future::join_all;
use tokio::{
    net::TcpListener,
    task::{AbortHandle, JoinHandle},
    time::{Instant, timeout_at},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::{
    identity::own_account,
    ingress::{Ingress, ingress, receive},
    shared::{Models, Shared},
};
use super::{
    api::{self, Api, ReadyApi},
    audit_stream, dependencies, http, installed, keys,
    mail::{self, Mail, ReadyMail},
    models::{ModelNews, Offered},
    readiness::Readiness,
    seen::Seen,
    server::{self, limits::Limits},
    services::Services,
    supervision::{Supervision, Task, task},
    telemetry, watches,
};

/// A bot that is set up and listening. [`Bot::run`] runs it.
pub struct Bot {
    store: Arc<dyn Store>,
    registry: Registry,
    address: SocketAddr,
    /// The address of the API for programs, if there is one.
    api: Option<SocketAddr>,
    ingress: Ingress,
    /// The tasks that run as long as the bot does, apart from the ingress.
    tasks: Vec<Task>,
    running: Supervision,
    workers: Workers,
    /// Notes in the end how far the store is.
    seen: Option<Seen>,
    /// The button clicks that are handled, and the messages that are sent.
    in_progress: TaskTracker,
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
        let listener = listen(&config.server).await?;
        let address = listener.local_addr()?;
        let api = Api::listen(config).await?;
        let offered = Offered::ask(config).await;
        let config = &offered.with_names(config);
        let model_news = ModelNews::default();
        model_news.tell(offered.news(config));
        let keys = keys::open(config)?;
        let store = keys::sealed(store, &keys, config).await?;
        let written = store.written();
        let (store, cards): (Arc<dyn Store>, _) = (store.clone(), store.cards());
        let api = api.map(|api| api.ready(api::requests(&store, written), TokenKeys::of(&keys.ring)));
        let slack = dependencies::slack(config)?;
        let account = own_account(&slack).await?;
        let us = account.identity;
        let people = People::new(slack.clone(), clock.clone(), us.clone(), config);
        let groups = Groups::new(slack.clone(), clock.clone(), dependencies::approvers_named(config), people.clone());
        let links = Links::new(store.clone(), account.url);
        let mail = Mail::open(config, &store, &clock, &links).await?;
        let of_mail = mail.as_ref().map(|mail| -> Arc<dyn Capability> { Arc::new(mail.capability()) });
        let capabilities = capabilities.into_iter().chain(of_mail).collect();
        let entitled = Arc::new(groups.clone());
        let (registry, register) = dependencies::with_standing_approvals(
            config,
            capabilities,
            store.clone(),
            clock.clone(),
            entitled,
            links.clone(),
        )?;
        let spending = Spending::new(store.clone(), clock.clone(), spending::Limits::from(&config.model.limits));
        let models = Models::of(config, &registry, &clock, &spending)?;
        let mail = mail.map(|mail| mail.ready(&config.email, models.classifier, models.writer, us.user.clone()));
        let mail_actions = mail.as_ref().map(ReadyMail::actions).unwrap_or_default();
        let policies = dependencies::policies(config);
        let api_actions = api.as_ref().map(|_| countersign_api::graph::actions()).unwrap_or_default();
        let approvals = Approvals::new(ApprovalsDeps {
            store: store.clone(),
            cards,
            clock: clock.clone(),
            memories: dependencies::memories(),
            slack: slack.clone(),
            groups,
            people,
            names: Names::new(slack.clone(), clock.clone()),
            links,
            actions: registry
                .actions
                .clone()
                .into_iter()
                .chain(mail_actions.clone())
                .chain(api_actions.clone())
                .collect(),
            policy_for: policies,
            keys: keys.ring,
            times: shared::times(config),
        });
        let (tasks, drafting) = (TaskTracker::new(), Drafting::new(config.slack.streaming));
        let shared = Shared { config, approvals: approvals.clone(), tasks, drafting };

        let name = WorkerId::new(format!("{}-{}", std::process::id(), uuid::Uuid::new_v4().simple()));
        let of_api = api.as_ref().map(|api| api.callbacks(&clock)).transpose()?;
        let channels = mail.iter().flat_map(|mail| mail.channels(&slack, &approvals.names)).chain(of_api).collect();
        let sender = shared.sender(&name, channels);
        let step_commit = Arc::new(sender.clone());
        let blobs = Arc::new(dependencies::StoreBlobCache(store.clone()));
        let graph = chat_graph(models.chat, models.rules, registry.clone(), blobs, PlanSettings::from(&config.plans))
            .context("the chat graph is invalid")?;
        let settle_within = registry.services().map(|service| service.settle_within).max().unwrap_or_default();
        let chat = shared.engine(graph, registry.actions.clone(), register, settle_within, &stop);
        let mut engines: Vec<Arc<dyn Advance>> = vec![Arc::new(chat.with_outlet(step_commit.clone()))];
        if let Some(mail) = &mail {
            let settle_within = mail::settle_within(&config.email);
            let email = shared.engine(mail.graph()?, mail_actions, mail.automatic(), settle_within, &stop);
            engines.push(Arc::new(email.with_outlet(step_commit.clone())));
        }
        if let Some(api) = &api {
            let engine = shared.engine(api.graph()?, api_actions, Arc::new(NothingInAdvance), Duration::ZERO, &stop);
            engines.push(Arc::new(engine.with_outlet(step_commit)));
        }
        let workers = Workers::new(workers::WorkersDeps {
            store: store.clone(),
            engines,
            sender: sender.clone(),
            clock: clock.clone(),
            name: name.clone(),
            lease: config.workers.lease,
            threads: config.workers.threads,
            stop: stop.clone(),
        });
        let facts = Facts::new(registry.clone(), clock.clone());
        let home = shared.home(&facts, WatchedModel::new(models.pulse), spending);
        let inbox = shared.inbox(facts, home.clone(), workers.clone(), sender.clone());
        let sink = Arc::new(Dispatch::new(store.clone(), clock.clone(), workers.clone(), inbox.clone()));
        let (ingress, slack_events) = ingress(config, us, sink, clock.clone())?;

        let (running, rounds) = (Supervision::default(), Rounds::default());
        let probes = http::HttpDeps {
            store: Readiness::new(store.clone()),
            slack: ingress.health(),
            services: Services::new(&registry.capabilities),
            client: slack.clone(),
            tasks: running.clone(),
            rounds: rounds.clone(),
            mail: mail.as_ref().map(|mail| mail.probe(config)),
            models: model_news.clone(),
        };
        let router = http::router(probes).merge(slack_events);
        let limits = Limits::of(&config.server, &config.workers);
        let sources = registry.capabilities.iter().filter_map(|capability| capability.events()).collect();
        let events = Events { store: store.clone(), clock: clock.clone(), workers: workers.clone(), sources };
        let watcher = watches::watcher(config, &registry, &store, &clock, approvals.people.clone());
        let every = config.workers.sweep_every;
        let (waking, sending) = (workers.clone(), sender.clone());
        let sweeper = Sweeper {
            store: store.clone(),
            clock: clock.clone(),
            workers: workers.clone(),
            inbox,
            home,
            sender,
            retention: Retention::new(store.clone(), clock.clone(), approvals.memories.clone(), &config.record),
            every,
            rounds,
        };
        let mut tasks = vec![
            task("http", move |stop| server::serve(listener, router, limits, stop)),
            task("sweeper", |stop| sweeper.run(stop)),
            task("events", |stop| events.run(stop)),
            task("metrics", telemetry::keep_up),
            task("watches", move |stop| watcher.run(every * watches::SWEEPS_A_TICK, stop)),
        ];
        if !config.model.all().is_empty() {
            let config = config.clone();
            tasks.push(task("models", move |stop| model_news.keep_up(config, stop)));
        }
        let stream = audit_stream::of(&config.record, &store, &clock, &name)?;
        tasks.extend(stream.map(|stream| task("audit stream", |stop| audit_stream::run(stream, stop))));
        let seen = || Seen::of(config, &store, clock.clone());
        tasks.extend(seen().map(|seen| task("seen", |stop| seen.run(stop))));
        let seen = seen();
        if let Some(mail) = mail {
            let (names, waking) = (approvals.names.clone(), workers.clone());
            let wake = Arc::new(move |thread| waking.wake(thread));
            let team = account.team.clone();
            tasks.extend(mail.tasks(config, mail::TaskDeps { team, slack, names, holder: name, wake })?);
        }
        let api_address = api.as_ref().and_then(ReadyApi::address);
        if let Some(api) = api {
            let (approvals, team) = (&approvals, account.team);
            let wake = Arc::new(move |thread: ThreadId| {
                waking.wake(thread.clone());
                sending.flush(thread);
            });
            tasks.extend(api.tasks(api::TaskDeps { config, approvals, team, wake, stop }));
        }
        let (in_progress, drain) = (shared.tasks, config.workers.drain);
        Ok(Self {
            store,
            registry,
            address,
            api: api_address,
            ingress,
            tasks,
            running,
            workers,
            seen,
            in_progress,
            drain,
        })
    }

    /// Returns the address of the HTTP server for health, metrics and, without Socket Mode, Slack's requests.
    ///
    /// # Errors
    ///
    /// Never.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        Ok(self.address)
    }

    /// Returns the address of the API for programs, if there is one.
    pub fn api_address(&self) -> Option<SocketAddr> {
        self.api
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
        InHand([self.in_progress.clone(), self.workers.tasks().clone()])
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
        let Self { registry, ingress, tasks, running, workers, seen, in_progress, drain, .. } = self;
        let begin = |(name, task): Task| running.start(name, task(stop.clone()), &stop);
        let started: Vec<JoinHandle<Option<()>>> = tasks.into_iter().map(begin).collect();
        // Last, so that nothing arrives before everything that handles it runs.
        let receiving = running.start("ingress", receive(ingress, stop.clone()), &stop);
        stop.cancelled().await;
        let deadline = Instant::now() + drain;
        in_progress.close();
        let aborts: Vec<_> = started.iter().map(JoinHandle::abort_handle).chain([receiving.abort_handle()]).collect();
        // First nothing more arrives. What has arrived by then is handled, up to the deadline.
        let received = timeout_at(deadline, receiving).await;
        let drained = async {
            join_all(started).await; // a panic was recorded by `running`
            workers.drain().await;
            in_progress.wait().await;
        };
        // A restart loses nothing: unfinished work is in the store, and its lease or claim expires.
        if timeout_at(deadline, drained).await.is_err() || received.is_err() {
            let left = in_hand.count();
            tracing::warn!(left, "Not everything ended in time; unfinished work continues at the next start");
            aborts.iter().for_each(AbortHandle::abort);
        }
        registry.close().await;
        if let Some(mut seen) = seen {
            seen.note().await;
        }
        match (received, running.ended()) {
            (Ok(Ok(Some(Err(refusal)))), _) => Err(refusal.into()),
            (_, Some(ended)) => Err(ended.into()),
            _ => Ok(()),
        }
    }
}

/// Listens on the configured address.
async fn listen(server: &Server) -> anyhow::Result<TcpListener> {
    let Server { address, port, .. } = server;
    TcpListener::bind((*address, *port)).await.with_context(|| {
        format!(
            "cannot listen on {address}:{port}; choose another port with server.port (or PORT), or another address \
             with server.address"
        )
    })
}
