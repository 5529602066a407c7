//! The engines and rooms that are made from the components that most others need.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use countersign_assistant::model_health::WatchedModel;
use countersign_capabilities::{Registry, facts::Facts};
use countersign_config::Config;
use countersign_conversation::{
    approvals::inbox::Approvals,
    commands::{self, Commands},
    presentation::render,
    record::{
        notebook::{Notebook, Redaction},
        rating::Ratings,
        spending::{Limited, Spending},
    },
    runtime::{
        inbox::{self, Inbox},
        outbox::{self, Sender, channel::Channel},
        thread_status::ThreadStatus,
        workers::Workers,
    },
    surfaces::{
        creation::Creation,
        home::{self, Home},
    },
};
use countersign_core::{clock::Clock, draft::Drafting, ids::WorkerId};
use countersign_graph::{
    action::ActionKind,
    definition::Graph,
    engine::{self, Engine, Settings},
    node::State,
    request::{OutsideTimes, Times},
    standing::StandingApprovals,
};
use countersign_model::{
    Model, Purpose,
    watched::{Pulse, Watched},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::super::dependencies;

/// The components that most others need.
pub(super) struct Shared<'a> {
    pub(super) config: &'a Config,
    /// The rules of decisions, with the store, the clock, Slack, its people and their names.
    pub(super) approvals: Approvals,
    /// The tasks in progress, for draining.
    pub(super) tasks: TaskTracker,
    /// Whether the drafts of answers are shown, which the engines and the sender have to agree on.
    pub(super) drafting: Drafting,
}

impl Shared<'_> {
    /// Creates the engine of a graph that can propose these actions. All graphs have the same policies and time limits,
    /// except for `settle_within`.
    pub(super) fn engine<S: State>(
        &self,
        graph: Graph<S>,
        actions: BTreeMap<&'static str, Arc<dyn ActionKind>>,
        standing: Arc<dyn StandingApprovals>,
        settle_within: Duration,
        stopping: &CancellationToken,
    ) -> Engine<S> {
        let (approvals, workers) = (&self.approvals, &self.config.workers);
        Engine::new(engine::EngineDeps {
            actions,
            graph,
            store: approvals.store.clone(),
            clock: approvals.clock.clone(),
            policy_for: approvals.policy_for.clone(),
            standing,
            entitled: Arc::new(approvals.groups.clone()),
            keys: approvals.keys.clone(),
            admission: Arc::new(approvals.people.clone()),
            settings: Settings {
                approval_ttl: approvals.times.open_for,
                remind_before: approvals.times.remind_before,
                outside: approvals.times.outside,
                step_timeout: workers.step_timeout,
                settle_within,
                status_after: workers.status_after,
                drafting: self.drafting.clone(),
                chunks: render::chunks,
                ..Settings::default()
            },
            stopping: stopping.clone(),
        })
    }

    /// Creates the sender of the threads' messages, through Slack and these channels.
    pub(super) fn sender(&self, name: &WorkerId, channels: Vec<Arc<dyn Channel>>) -> Sender {
        let (approvals, slack) = (&self.approvals, &self.config.slack);
        Sender::new(outbox::SenderDeps {
            store: approvals.store.clone(),
            cards: approvals.cards.clone(),
            slack: approvals.slack.clone(),
            channels,
            thread_status: ThreadStatus::new(approvals.slack.clone(), slack.native_status, slack.agent_view),
            drafting: self.drafting.clone(),
            links: approvals.links.clone(),
            names: approvals.names.clone(),
            memories: approvals.memories.clone(),
            clock: approvals.clock.clone(),
            name: name.clone(),
            permits: self.config.workers.senders,
            rate_limits: slack.rate_limits,
            tasks: self.tasks.clone(),
        })
    }

    /// Creates the Home tab.
    pub(super) fn home(&self, facts: &Facts, model: WatchedModel, spending: Spending) -> Home {
        let (approvals, facts, tasks) = (self.approvals.clone(), facts.clone(), self.tasks.clone());
        Home::new(home::HomeDeps { approvals, facts, model, spending, tasks })
    }

    /// Creates the inbox, with everything that answers what people do outside of a thread's turn.
    pub(super) fn inbox(&self, facts: Facts, home: Home, workers: Workers, sender: Sender) -> Inbox {
        let (approvals, config) = (self.approvals.clone(), self.config);
        let (store, clock, slack) = (approvals.store.clone(), approvals.clock.clone(), approvals.slack.clone());
        let registry = facts.registry().clone();
        let redaction = Redaction::from(&config.record);
        let notebook = Notebook::new(store.clone(), clock.clone(), Some(slack.clone()), redaction);
        Inbox::new(inbox::InboxDeps {
            creation: Creation { approvals: approvals.clone(), registry: registry.clone() },
            commands: Commands::new(commands::CommandsDeps {
                settings: dependencies::shown_settings(config, &approvals.actions),
                approvals: approvals.clone(),
                facts,
                notebook: notebook.clone(),
            }),
            home,
            plan_action: registry.plan_action(),
            notebook,
            ratings: Ratings::new(store.clone(), clock.clone()),
            agent_view: config.slack.agent_view,
            prompts: registry.book.first_steps(),
            approvals,
            store,
            clock,
            slack,
            workers,
            sender,
            tasks: self.tasks.clone(),
        })
    }
}

/// Returns the times for which cards are open. Those about emails are what comes from outside.
pub(super) fn times(config: &Config) -> Times {
    Times {
        open_for: config.approvals.expires_after,
        remind_before: config.approvals.remind_before,
        outside: OutsideTimes { open_for: config.email.expires_after, remind_every: config.email.remind_every },
    }
}

/// The models of the graphs.
pub(super) struct Models {
    pub(super) chat: Arc<dyn Model>,
    /// The model that needs no server, for when the other does not answer.
    pub(super) rules: Arc<dyn Model>,
    /// The models that classify and write mails; `None` if that needs no language model.
    pub(super) classifier: Option<Arc<dyn Model>>,
    pub(super) writer: Option<Arc<dyn Model>>,
    /// The name and the health of a model on a server.
    pub(super) pulse: Option<(String, Pulse)>,
}

impl Models {
    /// Creates the configured models. The health of a model on a server is recorded, and its cost counted in `spending`.
    pub(super) fn of(
        config: &Config,
        registry: &Registry,
        clock: &Arc<dyn Clock>,
        spending: &Spending,
    ) -> anyhow::Result<Self> {
        let (models, rules) = dependencies::models(config, registry.book.clone())?;
        let models = models.map_remote(|model| Arc::new(Limited::new(model, spending.clone())));
        let models = Arc::new(models);
        let remote = [Purpose::Classify, Purpose::Generate].map(|purpose| models.model_for(purpose).is_remote());
        let (chat, pulse): (Arc<dyn Model>, _) = if models.is_remote() {
            let name = models.name().to_owned();
            let (watched, pulse) = Watched::new(models, clock.clone());
            (Arc::new(watched), Some((name, pulse)))
        } else {
            (models, None)
        };
        let [classifier, writer] = remote.map(|is_remote| is_remote.then(|| chat.clone()));
        Ok(Self { chat, rules, classifier, writer, pulse })
    }
}
