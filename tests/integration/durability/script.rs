//! Plays a dialogue with bots that die, and says how it came out: by what the others saw, and nothing else.

use std::{
    collections::{BTreeMap, HashMap},
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::Duration,
};

use countersign::{
    clock::SystemClock,
    graph::store::{AuditKind, Backlog, Store},
    ids::{MessageTs, ThreadId},
    store::{redis::RedisStore, sqlite::SqliteStore},
};
use countersign_sandbox::{
    bridge::Bridge,
    mcp::SandboxMcp,
    model::SandboxModel,
    slack::{self, SandboxSlack, world::message::Message},
    upgrade::{self, SandboxUpgrade},
};
use tempfile::TempDir;
use tokio::{task::JoinHandle, time::Instant};

use super::{
    beside::{Beside, Running},
    dialogues::{Act, Dialogue, Seen},
    mail_servers::MailServers,
    process::{Process, serve},
    synced,
};
use crate::support::{
    bot::{eventually, well_mannered},
    redis::CHECKED,
};

/// How long a dialogue may take, its interruption included. Generous: many run at a time.
const DIALOGUE: Duration = Duration::from_secs(60);
/// How long is left between two looks.
const LOOK: Duration = Duration::from_millis(20);
/// How long a bot is left to finish what it can only do when a claim of the dead one has run out.
const CLEARING: Duration = Duration::from_millis(1500);
/// How often it is.
const CLEARINGS: usize = 8;

/// How long somebody whose press was not acknowledged waits whether it did something, before they press again.
const PATIENCE: Duration = Duration::from_secs(4);

const CHANNEL: &str = "experiments";

/// What is counted in the record: each of these happens as often as without a crash.
const COUNTED: [AuditKind; 6] =
    [AuditKind::Asked, AuditKind::Shown, AuditKind::Edited, AuditKind::Decided, AuditKind::Outcome, AuditKind::Settled];

/// Which store, and where.
#[derive(Clone, Debug)]
pub(super) enum Kept {
    Sqlite(PathBuf),
    Redis(String),
}

impl Kept {
    pub(super) async fn open(&self) -> Arc<dyn Store> {
        match self {
            Self::Sqlite(path) => Arc::new(SqliteStore::open(path, Arc::new(SystemClock)).unwrap()),
            Self::Redis(url) => Arc::new(RedisStore::open(url, &CHECKED).await.unwrap()),
        }
    }

    /// Opens it to look, beside the bot that has it, over a connection of its own.
    pub(super) async fn open_beside(&self) -> Arc<dyn Store> {
        match self {
            Self::Sqlite(path) => Arc::new(SqliteStore::open_to_read(path, Arc::new(SystemClock)).unwrap()),
            Self::Redis(_) => self.open().await,
        }
    }
}

/// A workspace and a platform, in this process; bots are told of them by their settings.
pub(super) struct World {
    pub(super) slack: SandboxSlack,
    pub(super) upgrade: SandboxUpgrade,
    beside: Running,
    pub(super) kept: Kept,
    folder: TempDir,
}

/// How a dialogue came out.
#[derive(Debug)]
pub(super) struct Ended {
    /// What can be told of it, and must be the same wherever it was interrupted.
    pub(super) outcome: Outcome,
    /// How many bots died on the way.
    pub(super) crashes: usize,
}

/// What can be told of a dialogue afterwards.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Outcome {
    /// What the thread says, message by message; nothing where that depends on chance.
    pub(super) words: Vec<String>,
    /// How many messages there ever were: two cards are wrong although one is deleted later.
    pub(super) posted: usize,
    /// What the platform was made to do.
    pub(super) effects: Vec<String>,
    /// How often what is in the record.
    pub(super) recorded: BTreeMap<String, usize>,
}

impl Drop for World {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            well_mannered(&self.slack);
        }
    }
}

impl World {
    /// `redis`: where to keep threads, else in a file.
    pub(super) async fn start(redis: Option<String>) -> Self {
        Self::start_with(redis, Beside::Nothing).await
    }

    /// The same with one system more.
    pub(super) async fn start_with(redis: Option<String>, beside: Beside) -> Self {
        let slack = slack::Options {
            answer_within: Duration::from_secs(1),
            redeliver_after: [0, 100, 200, 400, 800, 1600, 3200, 6400].map(Duration::from_millis).to_vec(),
            ..slack::Options::default()
        };
        Self::start_in(slack, redis, beside).await
    }

    /// The same where a bot may be very slow, and is left alone until it answers.
    pub(super) async fn unhurried(redis: Option<String>) -> Self {
        let hour = Duration::from_secs(3600);
        let slack = slack::Options { answer_within: hour, ping_every: hour, ..slack::Options::default() };
        Self::start_in(slack, redis, Beside::Nothing).await
    }

    async fn start_in(slack: slack::Options, redis: Option<String>, beside: Beside) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let upgrade = upgrade::Options { seed: true, ..upgrade::Options::default() };
        let kept = redis.map_or_else(|| Kept::Sqlite(folder.path().join("threads.sqlite")), Kept::Redis);
        Self {
            slack: SandboxSlack::start(slack).await.unwrap(),
            upgrade: SandboxUpgrade::start(upgrade).await.unwrap(),
            beside: Running::start(beside, folder.path()).await,
            kept,
            folder,
        }
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The simulation bridge of a dialogue that has one.
    pub(super) fn bridge(&self) -> &Arc<Bridge> {
        let Running::Bridge(bridge) = &self.beside else { panic!("this dialogue has no bridge") };
        bridge
    }

    /// The MCP server of a dialogue that has one.
    pub(super) fn notes(&self) -> &SandboxMcp {
        let Running::Notes(notes) = &self.beside else { panic!("this dialogue has no MCP server") };
        notes
    }

    /// The language model of a dialogue that has one.
    pub(super) fn model(&self) -> &SandboxModel {
        let Running::Model(model) = &self.beside else { panic!("this dialogue has no model") };
        model
    }

    /// The servers for mail of a dialogue that has them.
    pub(super) fn mail(&self) -> &MailServers {
        let Running::Mail(mail) = &self.beside else { panic!("this dialogue has no mail") };
        mail
    }

    /// The servers that a bot calls, as `http://127.0.0.1:4711`.
    pub(super) fn origins(&self) -> Vec<String> {
        let upgrade = self.upgrade.url();
        let (upgrade, _) = upgrade.split_at(upgrade.rfind("/api").unwrap());
        [self.slack.url().to_owned(), upgrade.to_owned()].into_iter().chain(self.beside.origins()).collect()
    }

    pub(super) fn log(&self) -> PathBuf {
        self.folder().join("bot.log")
    }

    /// What a bot has to know to work here.
    pub(super) fn settings(&self) -> HashMap<String, String> {
        let mut settings: HashMap<String, String> = [
            ("SLACK_API_URL", self.slack.api_url().as_str()),
            ("SLACK_BOT_TOKEN", self.slack.bot_token()),
            ("SLACK_APP_TOKEN", self.slack.app_token()),
            ("UPGRADE_API_URL", &self.upgrade.url()),
            ("PORT", "0"),
            ("COUNTERSIGN__SLACK__TIMEOUT", "1s"),
            ("COUNTERSIGN__SLACK__CONNECTIONS", "1"),
            ("COUNTERSIGN__SLACK__RATE_LIMITS", "false"),
            ("COUNTERSIGN__UPGRADE__TIMEOUT", "1s"),
            ("COUNTERSIGN__UPGRADE__SETTLE_WITHIN", "1s"),
            ("COUNTERSIGN__WORKERS__LEASE", "1s"),
            ("COUNTERSIGN__WORKERS__SWEEP_EVERY", "50ms"),
            // Nothing takes long here; a status line would come and go by chance.
            ("COUNTERSIGN__WORKERS__STATUS_AFTER", "60s"),
            ("COUNTERSIGN__WORKERS__DRAIN", "10s"),
            ("COUNTERSIGN__WATCHES__EVERY", "1s"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
        let key = self.folder().join("countersign.key").display().to_string();
        settings.insert("COUNTERSIGN__APPROVALS__DIGEST_KEY_FILE".to_owned(), key);
        settings.extend(self.beside.settings(self.folder()).into_iter().map(|(name, value)| (name.to_owned(), value)));
        match &self.kept {
            Kept::Sqlite(path) => {
                settings.insert("COUNTERSIGN__STORE__KIND".to_owned(), "sqlite".to_owned());
                settings.insert("COUNTERSIGN__STORE__PATH".to_owned(), path.display().to_string());
            }
            Kept::Redis(url) => {
                settings.insert("COUNTERSIGN__STORE__KIND".to_owned(), "redis".to_owned());
                settings.insert("REDIS_URL".to_owned(), url.clone());
            }
        }
        settings
    }

    /// Plays the dialogue with a bot that may die, and with others after it, until nothing is left to do. `next` are the
    /// bots that come after it and may die as well; the one after them does not.
    pub(super) async fn hold(
        &self,
        dialogue: &Dialogue,
        first: Process,
        mut next: Vec<Command>,
    ) -> Result<Ended, String> {
        (dialogue.before)(self);
        let (mut bot, mut crashes, mut may_die) = (first, 0, next.len() + 1);
        let deadline = Instant::now() + DIALOGUE;
        let (who, text) = dialogue.request;
        let mut root = match dialogue.beside {
            Beside::Mail(_) => None, // the bot begins the thread when a mail is there
            _ => Some(self.slack.says(who, CHANNEL, &format!("@countersign {text}"), None).unwrap()),
        };
        let mut turns = dialogue.turns.iter();
        let mut turn = turns.next();
        let mut until: fn(&Seen) -> bool = dialogue.asked;
        let mut acting: Option<(Act, JoinHandle<bool>)> = None;
        let mut again_at = None;
        loop {
            if bot.ended().is_some() {
                if may_die == 0 {
                    return Err(format!("a bot ended that should not have:\n{}", bot.log()));
                }
                (may_die, crashes) = (may_die - 1, crashes + 1);
                self.lose_power();
                let command = if next.is_empty() { serve(&self.settings()) } else { next.remove(0) };
                bot = Process::start(command, &self.log());
            }
            root = root.or_else(|| self.begun());
            let seen = self.seen(root.as_ref());
            if until(&seen) {
                if let Some((_, acting)) = acting.take() {
                    acting.abort();
                }
                let Some(now) = turn else { break };
                (until, turn, again_at) = (now.then, turns.next(), None);
                acting = Some((now.act, self.act(root.as_ref(), &seen, now.act)));
                continue;
            }
            if let Some((act, task)) = acting.take_if(|(_, task)| task.is_finished()) {
                // A person whose click was not acknowledged sees a warning sign. They look whether it did something, and
                // press again if not.
                if !task.await.unwrap_or(false) {
                    again_at = Some((act, Instant::now() + PATIENCE));
                }
            }
            if let Some((act, _)) = again_at.take_if(|(_, at)| *at <= Instant::now()) {
                acting = Some((act, self.act(root.as_ref(), &seen, act)));
            }
            if Instant::now() > deadline {
                let said = words(&self.said(root.as_ref()));
                return Err(format!("it does not come to its end; the thread: {said:#?}\n{}", bot.log()));
            }
            tokio::time::sleep(LOOK).await;
        }
        let root = root.ok_or("there is no thread")?;
        let recorded = self.clear(&root, bot, &mut may_die, &mut crashes).await?;
        let (said, ever) = (self.said(Some(&root)), self.ever());
        let open: Vec<_> = said.iter().filter(|message| Seen::is_open(message)).map(Message::words).collect();
        if !open.is_empty() {
            return Err(format!("buttons are left that decide something: {open:#?}"));
        }
        let words = if dialogue.by_chance { Vec::new() } else { words(&said) };
        let effects = (dialogue.effects)(self);
        Ok(Ended { outcome: Outcome { words, posted: ever, effects, recorded }, crashes })
    }

    /// Where a bot of [`super::crashing_bot::with_synced`] leaves its files as the disk has them.
    pub(super) fn synced(&self) -> PathBuf {
        self.folder().join("synced")
    }

    /// A bot has died: if it has left its files as the disk has them, its machine had a power failure.
    fn lose_power(&self) {
        if let Kept::Sqlite(path) = &self.kept {
            synced::put_back(path, &self.synced());
        }
    }

    /// Does what somebody does, as a task: whether it was acknowledged.
    fn act(&self, root: Option<&MessageTs>, seen: &Seen, act: Act) -> JoinHandle<bool> {
        let slack = self.slack.clone();
        match act {
            Act::Says(who, text) => {
                let said = slack.says(who, CHANNEL, text, root).unwrap();
                let by = slack.user(who);
                // Somebody who is told privately that it did not count says it again.
                tokio::spawn(async move {
                    let is_told = |message: &Message| message.ephemeral_to.as_ref() == Some(&by) && message.ts > said;
                    while !slack.look(|world| world.messages.values().flat_map(|all| all.values()).any(is_told)) {
                        tokio::time::sleep(LOOK).await;
                    }
                    false
                })
            }
            Act::Presses(who, button, on) => {
                let card = seen.newest_with(button, on);
                tokio::spawn(async move {
                    let Some(card) = card else { return false };
                    slack.clicks(who, CHANNEL, &card, button).await.is_ok()
                })
            }
            Act::FillsIn(who, button, label, value) => {
                let card = seen.newest_with(button, "");
                tokio::spawn(async move {
                    let Some(card) = card else { return false };
                    slack.clicks(who, CHANNEL, &card, button).await.is_ok() && fills_in(&slack, who, label, value).await
                })
            }
            Act::Beside(happens) => {
                happens(self);
                tokio::spawn(async { true })
            }
            Act::Elsewhere(name, state) => {
                let url = format!("{}/experiments/state", self.upgrade.url());
                let id = self.upgrade.experiment(name).unwrap()["id"].clone();
                tokio::spawn(async move {
                    let client = reqwest::Client::builder().no_proxy().tls_certs_only([]).build().unwrap();
                    let body = serde_json::json!({ "experimentId": id, "state": state }).to_string();
                    let post = client.post(url).header("content-type", "application/json").body(body);
                    let answer = post.send().await.unwrap();
                    assert!(answer.status().is_success(), "{}", answer.text().await.unwrap());
                    true
                })
            }
        }
    }

    /// The thread that the bot has begun.
    fn begun(&self) -> Option<MessageTs> {
        let begins = |message: &&Message| message.by_app && message.is_root() && message.ephemeral_to.is_none();
        self.slack.look(|world| {
            let all = world.messages.values().flat_map(|messages| messages.values());
            all.filter(|message| !message.deleted).find(begins).map(|message| message.ts.clone())
        })
    }

    /// What the bot has in the thread now.
    fn said(&self, root: Option<&MessageTs>) -> Vec<Message> {
        let all = root.map(|root| self.slack.thread(CHANNEL, root)).unwrap_or_default();
        all.into_iter().filter(|message| message.by_app && !message.deleted).collect()
    }

    fn seen(&self, root: Option<&MessageTs>) -> Seen {
        let effects = self.upgrade.effects().len() + self.beside.effects();
        let follows = match &self.beside {
            Running::Bridge(bridge) => {
                let mut streams: Vec<String> = bridge.requests().into_iter().map(|request| request.path).collect();
                streams.retain(|path| path.ends_with("/events"));
                streams.sort();
                streams.dedup();
                streams.len()
            }
            Running::Mail(mail) => mail.rounds(),
            Running::Nothing | Running::Notes(_) | Running::Model(_) => 0,
        };
        Seen { messages: self.said(root), effects, follows }
    }

    /// How many messages of the bot there ever were in a channel, also those that were taken back again.
    fn ever(&self) -> usize {
        self.slack.look(|world| {
            let all = world.messages.values().flat_map(|messages| messages.values());
            all.filter(|message| message.by_app && message.ephemeral_to.is_none()).count()
        })
    }

    /// Lets the bot finish until its store says that nothing is left to do, and looks into it.
    async fn clear(
        &self,
        root: &MessageTs,
        mut bot: Process,
        may_die: &mut usize,
        crashes: &mut usize,
    ) -> Result<BTreeMap<String, usize>, String> {
        for _ in 0..CLEARINGS {
            eventually("a bot that is connected", || bot.ended().is_some() || bot.is_up()).await;
            let status = bot.stop().await;
            if !status.success() {
                let Some(left) = may_die.checked_sub(1) else {
                    return Err(format!("told to stop, it ended with {status}:\n{}", bot.log()));
                };
                (*may_die, *crashes) = (left, *crashes + 1);
                self.lose_power();
            }
            let store = self.kept.open().await;
            let backlog = store.backlog().await.unwrap();
            if backlog == Backlog::default() {
                return self.verify(&*store, root).await;
            }
            drop(store);
            // A process that some other test is starting holds copies of our files, and the lock, until it runs.
            tokio::time::sleep(LOOK * 5).await;
            bot = Process::start(serve(&self.settings()), &self.log());
            eventually("a bot that is connected", || bot.ended().is_some() || bot.is_up()).await;
            tokio::time::sleep(CLEARING).await;
        }
        Err(format!("something is left to do for ever:\n{}", bot.log()))
    }

    /// The record: one chain, and what is counted of it.
    pub(super) async fn verify(&self, store: &dyn Store, root: &MessageTs) -> Result<BTreeMap<String, usize>, String> {
        let channel = self.slack.look(|world| world.channel(CHANNEL).unwrap().id.clone());
        let thread = ThreadId { team: self.slack.look(|world| world.team.clone()), channel, root: root.clone() };
        let audit = store.audit(&thread).await.unwrap().entries;
        let mut previous = String::new();
        for entry in &audit {
            if !entry.holds(&thread, &previous) {
                return Err(format!("the record is broken at {}", entry.seq));
            }
            previous.clone_from(&entry.hash);
        }
        let times = |kind| audit.iter().filter(|entry| entry.event.kind == kind).count();
        Ok(COUNTED.map(|kind| (format!("{kind:?}"), times(kind))).into())
    }
}

/// Fills in the window before somebody, and sends it: whether it closed.
async fn fills_in(slack: &SandboxSlack, who: &str, label: &str, value: &str) -> bool {
    let user = slack.user(who);
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        let window = slack.look(|world| world.views.get(world.stacks.get(&user)?.last()?).cloned());
        if let Some(window) = window.filter(|window| window.blocks().iter().any(|block| block["type"] == "input")) {
            let closed = slack.submits(who, &window.id, serde_json::json!({ label: value })).await;
            if closed.is_err() {
                slack.closes(who, &window.id).ok(); // it is begun once more from the card
            }
            return closed.is_ok();
        }
        tokio::time::sleep(LOOK).await;
    }
    false
}

fn words(said: &[Message]) -> Vec<String> {
    let took = fancy_regex::Regex::new(r"\b(in|for|about) [0-9.]+ s\b").unwrap();
    let words = |message: &Message| without_names(&crate::support::thread::normalised(&message.words()));
    said.iter().map(|message| took.replace_all(&words(message), "$1 ‹duration›").into_owned()).collect()
}

/// Standing approvals have names of their own, and mails ids.
fn without_names(text: &str) -> String {
    let link = fancy_regex::Regex::new("(#all/)[0-9a-f]+").unwrap();
    let text = link.replace_all(text, "$1‹id›");
    let mut parts = text.split("sa-");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |told, part| told + "sa-‹id›" + part.get(6..).unwrap_or_default())
}
