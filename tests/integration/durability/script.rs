//! The dialogue that every crash interrupts, and how it must come out all the same.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use countersign::{
    clock::SystemClock,
    graph::store::{AuditKind, Backlog, Store},
    ids::{MessageTs, ThreadId},
    sandbox::{
        slack::{self, SandboxSlack, world::message::Message},
        upgrade::{self, SandboxUpgrade},
    },
    store::{redis::RedisStore, sqlite::SqliteStore},
};
use tempfile::TempDir;
use tokio::{task::JoinHandle, time::Instant};

use super::process::{Process, serve};
use crate::support::bot::{eventually, well_mannered};

/// How long a dialogue may take, its interruption included. Generous: many run at a time.
const DIALOGUE: Duration = Duration::from_secs(60);
/// How long is left between two looks.
const LOOK: Duration = Duration::from_millis(20);
/// How long a bot is left to finish what it can only do when a claim of the dead one has run out.
const CLEARING: Duration = Duration::from_millis(1500);
/// How often it is.
const CLEARINGS: usize = 8;

const CHANNEL: &str = "experiments";
const BUTTON: &str = "Start experiment";

/// Which store, and where.
#[derive(Clone, Debug)]
pub(super) enum Kept {
    Sqlite(PathBuf),
    Redis(String),
}

impl Kept {
    async fn open(&self) -> Arc<dyn Store> {
        match self {
            Self::Sqlite(path) => Arc::new(SqliteStore::open(path, Arc::new(SystemClock)).unwrap()),
            Self::Redis(url) => Arc::new(RedisStore::open(url, false).await.unwrap()),
        }
    }
}

/// A workspace and a platform, in this process; bots are told of them by their settings.
pub(super) struct World {
    pub(super) slack: SandboxSlack,
    pub(super) upgrade: SandboxUpgrade,
    pub(super) kept: Kept,
    folder: TempDir,
}

/// How the dialogue came out.
#[derive(Debug)]
pub(super) struct Ended {
    /// What the thread says, message by message.
    pub(super) words: Vec<String>,
    /// Whether the first bot died on the way.
    pub(super) crashed: bool,
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
        let folder = tempfile::tempdir().unwrap();
        let slack = slack::Options {
            answer_within: Duration::from_secs(1),
            redeliver_after: [0, 100, 200, 400, 800, 1600, 3200, 6400].map(Duration::from_millis).to_vec(),
            ..slack::Options::default()
        };
        let upgrade = upgrade::Options { seed: true, ..upgrade::Options::default() };
        let kept = redis.map_or_else(|| Kept::Sqlite(folder.path().join("threads.sqlite")), Kept::Redis);
        Self {
            slack: SandboxSlack::start(slack).await.unwrap(),
            upgrade: SandboxUpgrade::start(upgrade).await.unwrap(),
            kept,
            folder,
        }
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
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
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
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

    /// Holds the dialogue with a bot that may die, and with another after it, until nothing is left to do.
    pub(super) async fn hold(&self, first: Process) -> Result<Ended, String> {
        let mut bot = first;
        let mut crashed = false;
        let deadline = Instant::now() + DIALOGUE;
        let root = self.slack.says("ana", CHANNEL, "@countersign start the Math Hints experiment", None).unwrap();
        let mut press: Option<JoinHandle<Result<(), slack::Error>>> = None;
        loop {
            if bot.ended().is_some() {
                if std::mem::replace(&mut crashed, true) {
                    return Err(format!("the second bot ended, too:\n{}", bot.log()));
                }
                bot = Process::start(serve(&self.settings()), &self.log());
            }
            let said = self.said(&root);
            if self.is_over(&said) {
                break;
            }
            let card = said.iter().find(|message| message.button(BUTTON).is_some());
            match &press {
                None => press = card.map(|card| self.press(card.ts.clone())),
                Some(pressing) if pressing.is_finished() => {
                    // A person whose click was not acknowledged sees a warning sign, and presses again.
                    let answered = press.take().unwrap().await.unwrap();
                    if answered.is_ok() {
                        press = Some(tokio::spawn(std::future::pending()));
                    }
                }
                Some(_) => {}
            }
            if Instant::now() > deadline {
                return Err(format!("it does not come to its end; the thread: {:#?}\n{}", words(&said), bot.log()));
            }
            tokio::time::sleep(LOOK).await;
        }
        self.clear(&root, bot, &mut crashed).await?;
        self.judge(&root)?;
        Ok(Ended { words: words(&self.said(&root)), crashed })
    }

    fn press(&self, card: MessageTs) -> JoinHandle<Result<(), slack::Error>> {
        let slack = self.slack.clone();
        tokio::spawn(async move { slack.clicks("bo", CHANNEL, &card, BUTTON).await })
    }

    /// What the bot has in the thread now.
    fn said(&self, root: &MessageTs) -> Vec<Message> {
        self.slack.thread(CHANNEL, root).into_iter().filter(|message| message.by_app).collect()
    }

    fn is_over(&self, said: &[Message]) -> bool {
        said.len() >= 2 && said[0].button("Start experiment").is_none() && self.is_running()
    }

    fn is_running(&self) -> bool {
        self.upgrade.experiment("Math Hints").unwrap()["state"] == "running"
    }

    /// Lets the bot finish until its store says that nothing is left to do, and looks into it.
    async fn clear(&self, root: &MessageTs, mut bot: Process, crashed: &mut bool) -> Result<(), String> {
        for _ in 0..CLEARINGS {
            eventually("a bot that is connected", || bot.ended().is_some() || bot.is_up()).await;
            let status = bot.stop().await;
            if !status.success() && std::mem::replace(crashed, true) {
                return Err(format!("told to stop, it ended with {status}:\n{}", bot.log()));
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
            tokio::time::sleep(CLEARING).await;
        }
        Err(format!("something is left to do for ever:\n{}", bot.log()))
    }

    /// The record: one chain, one question, one decision, one outcome.
    async fn verify(&self, store: &dyn Store, root: &MessageTs) -> Result<(), String> {
        let channel = self.slack.look(|world| world.channel(CHANNEL).unwrap().id.clone());
        let thread = ThreadId { team: self.slack.look(|world| world.team.clone()), channel, root: root.clone() };
        let audit = store.audit(&thread).await.unwrap();
        let mut previous = String::new();
        for entry in &audit {
            if !entry.holds(&thread, &previous) {
                return Err(format!("the record is broken at {}", entry.seq));
            }
            previous.clone_from(&entry.hash);
        }
        for kind in [AuditKind::Asked, AuditKind::Shown, AuditKind::Decided, AuditKind::Outcome] {
            let times = audit.iter().filter(|entry| entry.event.kind == kind).count();
            if times != 1 {
                return Err(format!("{kind:?} is in the record {times} times"));
            }
        }
        Ok(())
    }

    /// By what the others saw, and nothing else.
    fn judge(&self, root: &MessageTs) -> Result<(), String> {
        let effects: Vec<_> = self.upgrade.effects().iter().map(|e| format!("{} {}", e.method, e.path)).collect();
        if effects != ["POST /api/experiments/state"] {
            return Err(format!("the platform saw these changes: {effects:?}"));
        }
        // Also what was taken back again: two cards are wrong although one is deleted later.
        let ever = self.slack.look(|world| {
            let all = world.messages.values().flat_map(|messages| messages.values());
            all.filter(|m| m.by_app && m.ephemeral_to.is_none()).cloned().collect::<Vec<_>>()
        });
        let said = self.said(root);
        if ever.len() != 2 || said.len() != 2 || said[0].button("Start experiment").is_some() {
            return Err(format!("these messages were posted: {:#?}", words(&ever)));
        }
        Ok(())
    }
}

fn words(said: &[Message]) -> Vec<String> {
    said.iter().map(|message| crate::support::thread::normalised(&message.words())).collect()
}
