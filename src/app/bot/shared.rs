//! The components that most others are made from, and the engines and rooms that are made from them.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use countersign_assistant::model_health::WatchedModel;
use countersign_capabilities::{Registry, facts::Facts};
use countersign_config::Config;
use countersign_conversation::{
    approvals::{self, groups::Groups, inbox::Approvals, notify::ApproverNotices, people::People},
    commands::{self, Commands},
    presentation::{links::Links, names::Names, render},
    record::{
        notebook::{Notebook, Redaction},
        rating::Ratings,
    },
    runtime::{
        inbox::{self, Inbox},
        outbox::{self, Sender, channel::Channel},
        stopping::Stopping,
        thread_status::ThreadStatus,
        workers::Workers,
    },
    surfaces::{
        creation::{self, Creation},
        home::{self, Home},
    },
};
use countersign_core::{clock::Clock, ids::WorkerId};
use countersign_graph::{
    action::ActionKind,
    conversing::Memories,
    definition::Graph,
    engine::{self, Engine, PolicyFor, Settings},
    keyring::Keyring,
    node::State,
    request::{OutsideTimes, Times},
    standing::StandingApprovals,
    store::Store,
};
use countersign_model::{
    Model,
    watched::{Pulse, Watched},
};
use countersign_slack::client::SlackClient;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::super::dependencies;

/// The components that most others need.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) slack: SlackClient,
    pub(super) registry: Registry,
    /// The actions of the capabilities, and those of the graphs that have their own.
    pub(super) actions: BTreeMap<&'static str, Arc<dyn ActionKind>>,
    pub(super) people: People,
    pub(super) groups: Groups,
    pub(super) names: Names,
    pub(super) links: Links,
    pub(super) policy_for: PolicyFor,
    pub(super) keys: Arc<Keyring>,
    pub(super) memories: Memories,
    pub(super) tasks: TaskTracker,
}

impl Shared {
    /// Creates the engine of a graph that can propose these actions. All graphs have the same policies and time limits,
    /// except for `settle_within`.
    pub(super) fn engine<S: State>(
        &self,
        graph: Graph<S>,
        actions: BTreeMap<&'static str, Arc<dyn ActionKind>>,
        standing: Arc<dyn StandingApprovals>,
        settle_within: Duration,
        config: &Config,
        stopping: &CancellationToken,
    ) -> Engine<S> {
        Engine::new(engine::EngineDeps {
            actions,
            graph,
            store: self.store.clone(),
            clock: self.clock.clone(),
            policy_for: self.policy_for.clone(),
            standing,
            entitled: Arc::new(self.groups.clone()),
            keys: self.keys.clone(),
            admission: Arc::new(self.people.clone()),
            settings: Settings {
                approval_ttl: config.approvals.expires_after,
                remind_before: config.approvals.remind_before,
                outside: outside_times(config),
                step_timeout: config.workers.step_timeout,
                settle_within,
                status_after: config.workers.status_after,
                chunks: render::chunks,
                ..Settings::default()
            },
            stopping: stopping.clone(),
        })
    }

    /// Creates the sender of the threads' messages, through Slack and these channels.
    pub(super) fn sender(&self, config: &Config, name: &WorkerId, channels: Vec<Arc<dyn Channel>>) -> Sender {
        let thread_status = ThreadStatus::new(self.slack.clone(), config.slack.native_status, config.slack.agent_view);
        Sender::new(outbox::SenderDeps {
            store: self.store.clone(),
            slack: self.slack.clone(),
            channels,
            thread_status,
            links: self.links.clone(),
            names: self.names.clone(),
            memories: self.memories.clone(),
            clock: self.clock.clone(),
            name: name.clone(),
            seats: config.workers.senders,
            rate_limits: config.slack.rate_limits,
            tasks: self.tasks.clone(),
        })
    }

    /// Creates the Home tab.
    pub(super) fn home(&self, facts: &Facts, model: WatchedModel) -> Home {
        Home::new(home::HomeDeps {
            store: self.store.clone(),
            clock: self.clock.clone(),
            slack: self.slack.clone(),
            facts: facts.clone(),
            model,
            policy_for: self.policy_for.clone(),
            groups: self.groups.clone(),
            names: self.names.clone(),
            links: self.links.clone(),
            tasks: self.tasks.clone(),
        })
    }

    /// Creates the inbox, with everything that answers what people do outside of a thread's turn.
    pub(super) fn inbox(&self, config: &Config, facts: Facts, home: Home, workers: Workers, sender: Sender) -> Inbox {
        let notebook = Notebook::new(
            self.store.clone(),
            self.clock.clone(),
            Some(self.slack.clone()),
            Redaction::from(&config.record),
        );
        Inbox::new(inbox::InboxDeps {
            store: self.store.clone(),
            approvals: self.approvals(config),
            creation: Creation::new(creation::CreationDeps {
                store: self.store.clone(),
                clock: self.clock.clone(),
                slack: self.slack.clone(),
                registry: self.registry.clone(),
                links: self.links.clone(),
            }),
            commands: Commands::new(commands::CommandsDeps {
                store: self.store.clone(),
                clock: self.clock.clone(),
                facts,
                groups: self.groups.clone(),
                policy_for: self.policy_for.clone(),
                links: self.links.clone(),
                settings: dependencies::shown_settings(config, &self.actions),
                notebook: notebook.clone(),
            }),
            home,
            people: self.people.clone(),
            approver_notices: ApproverNotices::new(self.store.clone(), self.clock.clone(), self.groups.clone()),
            names: self.names.clone(),
            clock: self.clock.clone(),
            stopping: Stopping::new(
                self.store.clone(),
                self.clock.clone(),
                self.groups.clone(),
                self.memories.clone(),
                self.registry.plan_action(),
            ),
            notebook,
            ratings: Ratings::new(self.store.clone(), self.clock.clone()),
            agent_view: config.slack.agent_view,
            prompts: self.registry.book.first_steps(),
            memories: self.memories.clone(),
            slack: self.slack.clone(),
            workers,
            sender,
            tasks: self.tasks.clone(),
        })
    }

    fn approvals(&self, config: &Config) -> Approvals {
        Approvals::new(approvals::inbox::ApprovalsDeps {
            store: self.store.clone(),
            clock: self.clock.clone(),
            memories: self.memories.clone(),
            slack: self.slack.clone(),
            groups: self.groups.clone(),
            people: self.people.clone(),
            names: self.names.clone(),
            links: self.links.clone(),
            actions: self.actions.clone(),
            policy_for: self.policy_for.clone(),
            keys: self.keys.clone(),
            times: Times {
                open_for: config.approvals.expires_after,
                remind_before: config.approvals.remind_before,
                outside: outside_times(config),
            },
        })
    }
}

/// Returns the times of cards about emails, which are what comes from outside.
fn outside_times(config: &Config) -> OutsideTimes {
    OutsideTimes { open_for: config.email.expires_after, remind_every: config.email.remind_every }
}

/// Wraps a remote model to record its health, and also returns its name and pulse. Returns a local model unchanged.
pub(super) fn watched(model: Arc<dyn Model>, clock: &Arc<dyn Clock>) -> (Arc<dyn Model>, Option<(String, Pulse)>) {
    if !model.is_remote() {
        return (model, None);
    }
    let name = model.name().to_owned();
    let (watched, pulse) = Watched::new(model, clock.clone());
    (Arc::new(watched), Some((name, pulse)))
}
