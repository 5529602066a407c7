//! [`TestBot`]: the production bot in this process, a workspace and a platform to talk to, and a clock to push.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use countersign::experiments::settings::Upgrade;
use countersign::{
    app::{Bot, bot::InHand, dependencies, installed},
    capabilities::Capability,
    clock::ManualClock,
    config::{Config, SlackMode, StoreKind},
    graph::store::{Backlog, Store, ThreadFilter},
    ids::MessageTs,
};
use countersign_sandbox::{
    slack::{self, SandboxSlack, world::World},
    upgrade::{self, SandboxUpgrade},
};
use secrecy::SecretString;
use tempfile::TempDir;
use tokio::{runtime::Handle, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use super::thread::{Thread, normalised};

/// How long anything may take before a test gives up. Nothing waits for this long unless something is broken.
pub(crate) const BOUND: Duration = Duration::from_secs(30);

/// The bot with its surroundings.
pub(crate) struct TestBot {
    pub(crate) slack: SandboxSlack,
    pub(crate) upgrade: SandboxUpgrade,
    pub(crate) clock: ManualClock,
    pub(crate) config: Box<Config>,
    /// Capabilities besides those that are installed.
    more: Vec<Arc<dyn Capability>>,
    /// Holds the store's file; gone with the bot.
    _folder: TempDir,
    running: Option<Running>,
    /// Whether the test provokes what Slack objects to.
    provoking: AtomicBool,
}

struct Running {
    store: Arc<dyn Store>,
    in_hand: InHand,
    address: SocketAddr,
    api: Option<SocketAddr>,
    stop: CancellationToken,
    task: JoinHandle<anyhow::Result<()>>,
}

/// Everything that a test may want otherwise.
pub(crate) struct Setup {
    pub(crate) slack: slack::Options,
    pub(crate) upgrade: upgrade::Options,
    pub(crate) settings: Box<dyn FnOnce(&mut Config)>,
    /// Capabilities besides those that are installed.
    pub(crate) more: Vec<Arc<dyn Capability>>,
    /// The time, which a stand-in may share.
    pub(crate) clock: ManualClock,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            slack: slack::Options::default(),
            upgrade: upgrade::Options { seed: true, ..upgrade::Options::default() },
            settings: Box::new(|_| ()),
            more: Vec::new(),
            clock: ManualClock::default(),
        }
    }
}

/// The settings of [`TestBot::impatient`].
pub(crate) fn impatient(config: &mut Config) {
    let settings = config.sections.get_mut::<Upgrade>();
    settings.timeout = Duration::from_secs(1);
    settings.settle_within = Duration::from_secs(1);
}

impl TestBot {
    /// On SQLite, over Socket Mode, with the playground's experiments.
    pub(crate) async fn start() -> Self {
        Self::with(Setup::default()).await
    }

    /// The same, and a thread in which somebody has said this to it.
    pub(crate) async fn hears(name: &str, text: &str) -> (Arc<Self>, Thread<'static>) {
        let bot = Arc::new(Self::start().await);
        let Thread { channel, root, .. } = bot.user(name).says(text).await;
        let thread = Thread::shared(bot.clone(), &channel, root);
        (bot, thread)
    }

    /// The same where the answer is not what the test is about.
    pub(crate) async fn asked(name: &str, text: &str) -> (Arc<Self>, Thread<'static>) {
        let (bot, mut thread) = Self::hears(name, text).await;
        thread.skip();
        (bot, thread)
    }

    /// The same with other settings.
    pub(crate) async fn with_settings(settings: impl FnOnce(&mut Config) + 'static) -> Self {
        Self::with(Setup { settings: Box::new(settings), ..Setup::default() }).await
    }

    /// The same with a platform that is waited for, and looked at after no answer, for a second only.
    pub(crate) async fn impatient() -> Self {
        Self::with_settings(impatient).await
    }

    /// The same with cards that these decide about: people and user groups by their ids, or `requester`.
    pub(crate) async fn decided_by(approvers: &[&str]) -> Self {
        let approvers = approvers.iter().map(|name| (*name).to_owned()).collect();
        Self::with_settings(|config| config.approvals.approvers = approvers).await
    }

    pub(crate) async fn with(setup: Setup) -> Self {
        rustls::crypto::ring::default_provider().install_default().ok();
        let folder = tempfile::tempdir().unwrap();
        let clock = setup.clock;
        let mut options = setup.slack;
        if options.scopes == slack::Options::default().scopes {
            options.scopes = manifest_scopes();
        }
        let slack = SandboxSlack::start(options).await.unwrap();
        let same_time = upgrade::Options { clock: Arc::new(clock.clone()), ..setup.upgrade };
        let upgrade = SandboxUpgrade::start(same_time).await.unwrap();
        let mut config =
            Box::new(Config::load(None, &Default::default(), &countersign::app::installed::SETTINGS).unwrap());
        config.server.port = 0;
        config.slack.api_url = slack.api_url();
        config.slack.mode = Some(SlackMode::Socket);
        config.slack.bot_token = Some(SecretString::from(slack.bot_token()));
        config.slack.app_token = Some(SecretString::from(slack.app_token()));
        config.slack.signing_secret = Some(SecretString::from(slack.signing_secret()));
        config.sections.get_mut::<Upgrade>().api_url = Some(upgrade.url());
        config.sections.get_mut::<Upgrade>().timeout = Duration::from_secs(2);
        // The workspace counts nothing unless a test wants it; pacing has tests of its own.
        config.slack.rate_limits = false;
        config.store.kind = Some(StoreKind::Sqlite);
        config.store.path = folder.path().join("threads.sqlite");
        config.approvals.digest_key_file = Some(folder.path().join("countersign.key"));
        config.workers.sweep_every = Duration::from_millis(50);
        config.workers.lease = Duration::from_secs(2);
        // Without a real model nothing takes long; a status line would come and go by chance.
        config.workers.status_after = Duration::from_secs(20);
        // What is being done is told by a message, which a test can read in the thread.
        config.slack.native_status = false;
        // And an answer that is streamed would be, or not, by chance.
        config.slack.streaming = false;
        (setup.settings)(&mut config);
        let mut bot = Self {
            slack,
            upgrade,
            clock,
            config,
            more: setup.more,
            _folder: folder,
            running: None,
            provoking: AtomicBool::new(false),
        };
        bot.run().await;
        bot
    }

    /// Starts the bot on what an earlier one left, and waits until it is connected.
    pub(crate) async fn run(&mut self) {
        assert!(self.running.is_none(), "it runs already");
        let stop = CancellationToken::new();
        let bot = self.open(&stop).await;
        let (store, address, in_hand) = (bot.store(), bot.address().unwrap(), bot.in_hand());
        let api = bot.api_address();
        if self.config.slack_mode() == SlackMode::Http {
            self.slack.point_at(&format!("http://{address}"));
        }
        let task = tokio::spawn(bot.run(stop.clone()));
        self.running = Some(Running { store, in_hand, address, api, stop, task });
        if self.config.slack_mode() == SlackMode::Socket {
            eventually("a socket", || self.slack.sockets() > 0).await;
        }
    }

    /// Starts once the file of an earlier bot is free: its threads end a moment after it.
    async fn open(&self, stop: &CancellationToken) -> Bot {
        let deadline = tokio::time::Instant::now() + BOUND;
        loop {
            match self.start_with_capabilities(stop).await {
                Ok(bot) => return bot,
                Err(error) if tokio::time::Instant::now() >= deadline => panic!("it does not start: {error:?}"),
                Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    }

    async fn start_with_capabilities(&self, stop: &CancellationToken) -> anyhow::Result<Bot> {
        let clock = Arc::new(self.clock.clone());
        if self.more.is_empty() {
            return Box::pin(Bot::start(&self.config, clock, stop.clone())).await;
        }
        let mut all = installed::capabilities(&self.config, clock.clone())?;
        all.extend(self.more.iter().cloned());
        let store = dependencies::store(&self.config, clock.clone()).await?;
        Box::pin(Bot::with_capabilities(all, store, &self.config, clock, stop.clone())).await
    }

    /// Ends the bot as SIGTERM does: the step in hand is saved.
    pub(crate) async fn stop(&mut self) {
        let Running { store, stop, task, .. } = self.running.take().expect("it runs");
        stop.cancel();
        tokio::time::timeout(BOUND, task).await.expect("it drains in time").unwrap().unwrap();
        // A socket's last task ends a moment later; a process would be gone, and its lock on the file with it.
        eventually("everybody to let go of the store", || Arc::strong_count(&store) == 1).await;
    }

    /// Other capabilities from the next start on, besides those that are installed.
    pub(crate) fn brings(&mut self, more: Vec<Arc<dyn Capability>>) {
        self.more = more;
    }

    /// The process dies and returns.
    pub(crate) async fn restart(&mut self) {
        self.stop().await;
        self.run().await;
    }

    pub(crate) fn store(&self) -> Arc<dyn Store> {
        self.running.as_ref().expect("it runs").store.clone()
    }

    /// Where health and metrics are.
    pub(crate) fn address(&self) -> SocketAddr {
        self.running.as_ref().expect("it runs").address
    }

    /// Where the API for programs is.
    pub(crate) fn api(&self) -> SocketAddr {
        self.running.as_ref().expect("it runs").api.expect("it has an API")
    }

    /// This test is about something that Slack objects to.
    pub(crate) fn expects_complaints(&self) {
        self.provoking.store(true, Ordering::SeqCst);
    }

    /// A person of the workspace: `ana`, `bo` or `cy`.
    pub(crate) fn user<'a>(&'a self, name: &'a str) -> Person<'a> {
        Person { bot: self, name }
    }

    /// As people read it: names for ids, and nothing that differs from run to run.
    pub(crate) fn readable(&self, text: &str) -> String {
        let named = |world: &World| {
            world.users.iter().fold(text.to_owned(), |text, user| {
                text.replace(&format!("<@{}>", user.id), &format!("@{}", user.name))
            })
        };
        normalised(&self.slack.look(named))
    }

    /// What the platform was made to do so far, such as `POST /api/experiments/state`.
    pub(crate) fn done_to_platform(&self) -> Vec<String> {
        self.upgrade.effects().iter().map(|entry| format!("{} {}", entry.method, entry.path)).collect()
    }

    /// Waits until nothing is left to do and nothing is being done: what is taken out of the store is still in hand, and
    /// so are private answers and windows, which are in no store.
    pub(crate) async fn settled(&self) {
        self.settled_but_for(0).await;
    }

    /// Waits until nothing is being done, and nothing is left to do but the messages of so many threads, which wait.
    pub(crate) async fn settled_but_for(&self, outbox: u64) {
        let expected = Backlog { outbox, ..Backlog::default() };
        let deadline = tokio::time::Instant::now() + BOUND;
        loop {
            // Compared before and after: what is in hand becomes backlog, and the other way round. Both could happen
            // between two looks, but not without a commit.
            let before = self.progress().await;
            let backlog = self.store().backlog().await.unwrap();
            if before.0 == 0 && backlog == expected && self.progress().await == before {
                return;
            }
            assert!(tokio::time::Instant::now() < deadline, "it does not settle: {} in hand, {backlog:?}", before.0);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// The number of tasks in hand, and then the versions of all threads, which grow with each commit.
    async fn progress(&self) -> (usize, u64) {
        let in_hand = self.running.as_ref().expect("it runs").in_hand.count();
        let threads = self.store().threads(ThreadFilter::All, usize::MAX).await.unwrap();
        (in_hand, threads.iter().map(|thread| thread.version).sum())
    }

    /// Waits until everybody who pressed or typed was answered, though a thread may still be at work or wait.
    pub(crate) async fn answered(&self) {
        let store = self.store();
        let deadline = tokio::time::Instant::now() + BOUND;
        loop {
            let backlog = store.backlog().await.unwrap();
            if backlog.inbox == 0 && backlog.outbox == 0 {
                return;
            }
            assert!(tokio::time::Instant::now() < deadline, "somebody is not answered: {backlog:?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Lets waits pass until every message was sent: those that Slack or a mail server refused are tried again later.
    pub(crate) async fn sends_everything(&self) {
        let deadline = tokio::time::Instant::now() + BOUND;
        while self.store().backlog().await.unwrap().outbox > 0 {
            assert!(tokio::time::Instant::now() < deadline, "messages that are not delivered");
            self.clock.advance(Duration::from_millis(250));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Waits until nothing is being done. A thread may wait for a moment that has not come.
    pub(crate) async fn rests(&self) {
        let store = self.store();
        let deadline = tokio::time::Instant::now() + BOUND;
        loop {
            let (threads, backlog) =
                (store.threads(ThreadFilter::All, 100).await.unwrap(), store.backlog().await.unwrap());
            if threads.iter().all(|thread| !thread.busy) && (backlog.inbox, backlog.outbox) == (0, 0) {
                return;
            }
            assert!(tokio::time::Instant::now() < deadline, "it does not come to rest: {backlog:?}");
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

    /// The end of a test, which comes by itself when the bot is dropped: nothing is left to do, and it stops in time.
    pub(crate) async fn finish(mut self) {
        self.ends().await;
    }

    async fn ends(&mut self) {
        self.settled().await;
        self.stop().await;
    }
}

/// Whatever a test is about: nothing is left to do in the end, and nothing that was sent is more than Slack shows, or calls
/// everybody, or needs a scope that the manifest does not ask for.
impl Drop for TestBot {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        if self.running.is_some() {
            wait_for(self.ends());
        }
        if !self.provoking.load(Ordering::SeqCst) {
            well_mannered(&self.slack);
        }
    }
}

/// Waits for a future where nothing can be awaited. It runs on a thread of its own: on this one it would take the
/// wake-ups of the task that is being polled for its own, and that task would sleep for ever.
pub(crate) fn wait_for<F>(future: F) -> F::Output
where
    F: Future<Output: Send> + Send,
{
    let runtime = Handle::current();
    let on_its_thread = || std::thread::scope(|scope| scope.spawn(move || runtime.block_on(future)).join());
    tokio::task::block_in_place(on_its_thread).unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Fails if the app sent anything that it should not have.
pub(crate) fn well_mannered(slack: &SandboxSlack) {
    let complaints: Vec<_> = slack
        .ledger()
        .complaints()
        .into_iter()
        .map(|complaint| format!("{} {}: {}", complaint.method, complaint.error, complaint.reason))
        .collect();
    assert!(complaints.is_empty(), "Slack would object:\n{}", complaints.join("\n"));
}

/// What an app is allowed to do that was made from our manifest.
pub(crate) fn manifest_scopes() -> Vec<String> {
    let manifest = std::fs::read_to_string("deploy/slack-manifest.socket.json").unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    let scopes = manifest["oauth_config"]["scopes"]["bot"].as_array().unwrap();
    scopes.iter().map(|scope| scope.as_str().unwrap().to_owned()).collect()
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

    /// The same where the answer is not what the test is about.
    pub(crate) async fn asks(self, text: &str) -> Thread<'a> {
        let mut thread = self.says(text).await;
        thread.skip();
        thread
    }

    /// What the bot answers in a new thread, in short.
    pub(crate) async fn answer(self, text: &str) -> String {
        self.says(text).await.in_short()
    }

    /// Writes to the bot directly.
    pub(crate) async fn writes(self, text: &str) -> Thread<'a> {
        let user = self.bot.slack.user(self.name);
        let with_us =
            |world: &World| world.channels.iter().find(|c| c.with.as_ref() == Some(&user)).map(|c| c.id.clone());
        let channel = self.bot.slack.look(with_us).expect("everybody can write to the bot");
        self.says_in(channel.as_str(), text).await
    }

    /// Types a command in #experiments; what only this person is told.
    pub(crate) async fn types(self, line: &str) -> String {
        self.types_in("experiments", line).await
    }

    /// Types a command in a channel; what only this person is told.
    pub(crate) async fn types_in(self, channel: &str, line: &str) -> String {
        let before = self.bot.slack.ephemerals(self.name).len();
        self.bot.slack.command(self.name, channel, line).await.unwrap();
        eventually("an answer", || self.bot.slack.ephemerals(self.name).len() > before).await;
        self.bot.settled().await;
        let told = self.bot.slack.ephemerals(self.name);
        told[before..].iter().map(|message| self.bot.readable(&message.words())).collect::<Vec<_>>().join("\n---\n")
    }

    /// Looks at the Home tab: what it says once it is drawn again.
    pub(crate) async fn opens_home(self) -> String {
        let before = self.published();
        self.bot.slack.opens_home(self.name);
        eventually("a Home tab", || self.published() > before).await;
        self.bot.settled().await;
        self.home()
    }

    /// Presses something in the Home tab; what it says once it is drawn again.
    pub(crate) async fn presses_at_home(self, label: &str) -> String {
        self.clicks_at_home(label).await;
        self.bot.settled().await;
        self.home()
    }

    /// Presses a button in the Home tab, and waits only until the tab is drawn again.
    pub(crate) async fn clicks_at_home(self, label: &str) {
        let user = self.bot.slack.user(self.name);
        let view = self.bot.slack.look(|world| world.homes[&user].id.clone());
        let before = self.published();
        self.bot.slack.clicks_in_view(self.name, &view, label).await.unwrap();
        eventually("a Home tab", || self.published() > before).await;
    }

    /// How often this person's Home tab was drawn: those of others are drawn meanwhile.
    fn published(self) -> usize {
        let user = self.bot.slack.user(self.name);
        let calls = self.bot.slack.ledger().calls("views.publish");
        calls.iter().filter(|call| call.body["user_id"] == user.as_str()).count()
    }

    /// What the Home tab says now.
    pub(crate) fn home(self) -> String {
        let user = self.bot.slack.user(self.name);
        self.bot
            .readable(&self.bot.slack.look(|world| world.homes.get(&user).map(|home| home.words())).unwrap_or_default())
    }

    /// What the bot wrote to this person directly, outside threads, as it stands now.
    pub(crate) fn direct_messages(self) -> String {
        let user = self.bot.slack.user(self.name);
        let channel = self
            .bot
            .slack
            .look(|world| world.channels.iter().find(|c| c.with.as_ref() == Some(&user)).map(|c| c.id.to_string()));
        let all = self.bot.slack.messages(&channel.expect("everybody can be written to"));
        let ours: Vec<_> = all.iter().filter(|message| message.by_app && !message.deleted).collect();
        ours.iter().map(|message| self.bot.readable(&message.words())).collect::<Vec<_>>().join("\n---\n")
    }

    /// Writes in a channel as it is, which opens a thread if the bot is mentioned.
    pub(crate) async fn says_in(self, channel: &str, text: &str) -> Thread<'a> {
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

/// Lets waits pass until something is the case.
pub(crate) async fn in_time(bot: &TestBot, what: &str, fact: impl Fn() -> bool) {
    eventually(what, || {
        let is_so = fact();
        if !is_so {
            bot.clock.advance(Duration::from_millis(250));
        }
        is_so
    })
    .await;
}
