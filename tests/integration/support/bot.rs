//! [`TestBot`]: the production bot in this process, a workspace and a platform to talk to, and a clock to push.

use std::{sync::Arc, time::Duration};

use countersign::{
    app::Bot,
    clock::ManualClock,
    config::{Config, SlackMode, StoreKind},
    graph::store::{Backlog, Store},
    ids::MessageTs,
    sandbox::{
        slack::{self, SandboxSlack, world::World},
        upgrade::{self, SandboxUpgrade},
    },
    store::sqlite::OpenError,
};
use secrecy::SecretString;
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::thread::Thread;

/// How long anything may take before a test gives up. Nothing waits for this long unless something is broken.
pub(crate) const BOUND: Duration = Duration::from_secs(30);

/// The bot with its surroundings.
pub(crate) struct TestBot {
    pub(crate) slack: SandboxSlack,
    pub(crate) upgrade: SandboxUpgrade,
    pub(crate) clock: ManualClock,
    pub(crate) config: Config,
    folder: TempDir,
    running: Option<Running>,
}

struct Running {
    store: Arc<dyn Store>,
    stop: CancellationToken,
    task: JoinHandle<anyhow::Result<()>>,
}

/// Everything that a test may want otherwise.
pub(crate) struct Setup {
    pub(crate) slack: slack::Options,
    pub(crate) upgrade: upgrade::Options,
    pub(crate) settings: Box<dyn FnOnce(&mut Config)>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            slack: slack::Options::default(),
            upgrade: upgrade::Options { seed: true, ..upgrade::Options::default() },
            settings: Box::new(|_| ()),
        }
    }
}

impl TestBot {
    /// On SQLite, by Socket Mode, with the playground's experiments.
    pub(crate) async fn start() -> Self {
        Self::with(Setup::default()).await
    }

    pub(crate) async fn with(setup: Setup) -> Self {
        rustls::crypto::ring::default_provider().install_default().ok();
        let folder = tempfile::tempdir().unwrap();
        let clock = ManualClock::default();
        let slack = SandboxSlack::start(setup.slack).await.unwrap();
        let upgrade = SandboxUpgrade::start(setup.upgrade).await.unwrap();
        let mut config = Config::load(None, &Default::default()).unwrap();
        config.server.port = 0;
        config.slack.api_url = slack.api_url();
        config.slack.mode = Some(SlackMode::Socket);
        config.slack.bot_token = Some(SecretString::from(slack.bot_token()));
        config.slack.app_token = Some(SecretString::from(slack.app_token()));
        config.slack.signing_secret = Some(SecretString::from(slack.signing_secret()));
        config.upgrade.api_url = upgrade.url();
        config.upgrade.timeout = Duration::from_secs(2);
        config.store.kind = Some(StoreKind::Sqlite);
        config.store.path = folder.path().join("threads.sqlite");
        config.workers.sweep_every = Duration::from_millis(50);
        config.workers.lease = Duration::from_secs(2);
        // Without a real model nothing takes long; a status line would come and go by chance.
        config.workers.status_after = Duration::from_secs(20);
        (setup.settings)(&mut config);
        let mut bot = Self { slack, upgrade, clock, config, folder, running: None };
        bot.run().await;
        bot
    }

    /// Starts the bot on what an earlier one left, and waits until it is connected.
    pub(crate) async fn run(&mut self) {
        assert!(self.running.is_none(), "it runs already");
        let stop = CancellationToken::new();
        let bot = self.start_bot(&stop).await;
        let store = bot.store();
        if self.config.slack_mode() == SlackMode::Http {
            self.slack.point_at(&format!("http://{}", bot.address().unwrap()));
        }
        let task = tokio::spawn(bot.run(stop.clone()));
        self.running = Some(Running { store, stop, task });
        if self.config.slack_mode() == SlackMode::Socket {
            eventually("a socket", || self.slack.sockets() > 0).await;
        }
    }

    /// The lock of the one before may outlast it a little: by the last task of a socket, which a process would take
    /// with it, or by a process that some other test is starting, which holds copies of our files until it runs.
    async fn start_bot(&self, stop: &CancellationToken) -> Bot {
        let deadline = tokio::time::Instant::now() + BOUND;
        loop {
            match Bot::start(&self.config, Arc::new(self.clock.clone()), stop.clone()).await {
                Ok(bot) => return bot,
                Err(error) => {
                    let locked =
                        error.downcast_ref::<OpenError>().is_some_and(|e| matches!(e, OpenError::InUse { .. }));
                    assert!(locked && tokio::time::Instant::now() < deadline, "{error:#}");
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            }
        }
    }

    /// Ends the bot as SIGTERM does: the step in hand is saved.
    pub(crate) async fn stop(&mut self) {
        let Running { store, stop, task } = self.running.take().expect("it runs");
        stop.cancel();
        tokio::time::timeout(BOUND, task).await.expect("it drains in time").unwrap().unwrap();
        drop(store);
    }

    /// The process dies and returns.
    pub(crate) async fn restart(&mut self) {
        self.stop().await;
        self.run().await;
    }

    pub(crate) fn store(&self) -> Arc<dyn Store> {
        self.running.as_ref().expect("it runs").store.clone()
    }

    pub(crate) fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// A person of the workspace: `ana`, `bo` or `cy`.
    pub(crate) fn user<'a>(&'a self, name: &'a str) -> Person<'a> {
        Person { bot: self, name }
    }

    /// Waits until nothing is left to do.
    pub(crate) async fn settled(&self) {
        let store = self.store();
        let deadline = tokio::time::Instant::now() + BOUND;
        loop {
            let backlog = store.backlog().await.unwrap();
            if backlog == Backlog::default() {
                return;
            }
            assert!(tokio::time::Instant::now() < deadline, "it does not settle: {backlog:?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Waits until Slack was told that a message, or an edit of it, arrived.
    pub(crate) async fn delivered(&self, ts: &MessageTs) {
        eventually("an acknowledged delivery", || {
            self.slack
                .recorded()
                .deliveries
                .iter()
                .any(|attempt| attempt.acknowledged_after_ms.is_some() && attempt.payload["event"]["ts"] == ts.as_str())
        })
        .await;
    }

    /// Part of every test: nothing is left to do, and the platform saw no request it refused to read.
    pub(crate) async fn finish(mut self) {
        self.settled().await;
        self.stop().await;
        let refused: Vec<_> = self
            .slack
            .recorded()
            .calls
            .iter()
            .filter(|call| call.answer["error"] == "invalid_blocks" || call.answer["error"] == "msg_too_long")
            .map(|call| format!("{}: {}", call.method, call.answer))
            .collect();
        assert!(refused.is_empty(), "Slack would not show this: {refused:?}");
    }
}

/// Somebody who writes and presses.
#[derive(Clone, Copy)]
pub(crate) struct Person<'a> {
    bot: &'a TestBot,
    name: &'a str,
}

impl<'a> Person<'a> {
    /// Mentions the bot in #experiments, which opens a thread; returns when the bot is done.
    pub(crate) async fn says(self, text: &str) -> Thread<'a> {
        self.says_in("experiments", &format!("@countersign {text}")).await
    }

    /// Writes to the bot directly.
    pub(crate) async fn writes(self, text: &str) -> Thread<'a> {
        let user = self.bot.slack.user(self.name);
        let with_us =
            |world: &World| world.channels.iter().find(|c| c.with.as_ref() == Some(&user)).map(|c| c.id.clone());
        let channel = self.bot.slack.look(with_us).expect("everybody can write to the bot");
        self.says_in(channel.as_str(), text).await
    }

    async fn says_in(self, channel: &str, text: &str) -> Thread<'a> {
        let ts = self.bot.slack.says(self.name, channel, text, None).unwrap();
        self.bot.delivered(&ts).await;
        self.bot.settled().await;
        Thread::new(self.bot, channel, ts)
    }
}

/// Waits for a fact.
pub(crate) async fn eventually(what: &str, fact: impl Fn() -> bool) {
    let deadline = tokio::time::Instant::now() + BOUND;
    while !fact() {
        assert!(tokio::time::Instant::now() < deadline, "waited in vain for {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
