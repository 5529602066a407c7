//! All that one bot needs, on its own and gone with it: a store, Slack and a platform.

use std::{fs, path::Path, sync::Arc, time::Duration};

use anyhow::{Context as _, ensure};
use countersign_sandbox::upgrade::{self, SandboxUpgrade};
use redis::aio::MultiplexedConnection;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use crate::{
    approvals::further_experiments,
    bot::{Redis, STORE, Surroundings},
    commands,
    slack::Slack,
};

/// The time limit for Redis to write its append-only file anew.
const LONGEST_REWRITE: Duration = Duration::from_secs(120);

/// Which store a bot has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    Sqlite,
    Redis,
}

impl Kept {
    /// Returns its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "SQLite",
            Self::Redis => "Redis",
        }
    }
}

/// The surroundings of one bot.
pub(crate) struct Place {
    pub(crate) slack: Slack,
    pub(crate) upgrade: Arc<SandboxUpgrade>,
    slack_url: String,
    upgrade_url: String,
    redis: Option<Redis>,
    redis_url: Option<String>,
    folder: TempDir,
}

impl Place {
    /// Starts them, with so many further experiments on the platform and threads in the store.
    pub(crate) async fn start(kept: Kept, experiments: usize, threads: usize) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let slack = Slack::start().await?;
        let upgrade = Arc::new(SandboxUpgrade::start(upgrade::Options::default()).await?);
        further_experiments(&upgrade, experiments);
        let redis = (kept == Kept::Redis).then(|| Redis::start(folder.path())).transpose()?;
        let redis_url = redis.as_ref().map(Redis::url);
        if threads > 0 {
            commands::fill(folder.path(), redis_url.as_deref(), threads, false).await.context("filling the store")?;
        }
        let (slack_url, upgrade_url) = (slack.api_url(), upgrade.url());
        Ok(Self { slack, upgrade, slack_url, upgrade_url, redis, redis_url, folder })
    }

    /// Returns what a bot has to know of it, with further settings.
    pub(crate) fn surroundings<'a>(
        &'a self,
        program: &'a Path,
        settings: &'a [(&'static str, String)],
    ) -> Surroundings<'a> {
        Surroundings {
            slack_url: &self.slack_url,
            upgrade_url: &self.upgrade_url,
            bridge: None,
            folder: self.folder.path(),
            redis_url: self.redis_url.as_deref(),
            socket: false,
            program,
            under: None,
            settings,
        }
    }

    /// Returns the folder of the store's files.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the processor time of the store's server so far, if it has one.
    pub(crate) fn server_processor_time(&self) -> anyhow::Result<Option<Duration>> {
        self.redis.as_ref().map(Redis::processor_time).transpose()
    }

    /// Puts what the log of the store holds where it stays, so that the files are as small as they become by
    /// themselves: a checkpoint of SQLite, which no bot may use then, or a new append-only file of Redis.
    pub(crate) async fn settle(&self) -> anyhow::Result<()> {
        let Some(url) = &self.redis_url else {
            let database = rusqlite::Connection::open(self.folder().join(STORE))?;
            let busy = database.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, bool>(0))?;
            ensure!(!busy, "the store is still in use");
            return Ok(());
        };
        let mut server = redis::Client::open(url.as_str())?.get_multiplexed_async_connection().await?;
        until_rewritten(&mut server).await?; // the server may have begun one by itself, and refuses a second one
        redis::cmd("BGREWRITEAOF").query_async::<()>(&mut server).await?;
        until_rewritten(&mut server).await
    }

    /// Returns how many bytes the store's files hold.
    pub(crate) fn on_disk(&self) -> anyhow::Result<f64> {
        on_disk(self.folder())
    }
}

/// Waits until Redis writes no new append-only file.
async fn until_rewritten(server: &mut MultiplexedConnection) -> anyhow::Result<()> {
    let bound = Instant::now() + LONGEST_REWRITE;
    loop {
        let told: String = redis::cmd("INFO").arg("persistence").query_async(server).await?;
        let is_so = |field: &str| told.lines().any(|line| line.trim() == field);
        if is_so("aof_rewrite_in_progress:0") && is_so("aof_rewrite_scheduled:0") {
            ensure!(is_so("aof_last_bgrewrite_status:ok"), "Redis cannot write a new append-only file");
            return Ok(());
        }
        ensure!(Instant::now() < bound, "Redis does not finish its new append-only file");
        sleep(Duration::from_millis(50)).await;
    }
}

/// Returns how many bytes the files in a folder and its folders hold.
pub(crate) fn on_disk(folder: &Path) -> anyhow::Result<f64> {
    let mut bytes = 0;
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            match entry.metadata() {
                Ok(found) if found.is_dir() => folders.push(entry.path()),
                Ok(found) => bytes += found.len(),
                Err(_) => {} // it was removed meanwhile
            }
        }
    }
    Ok(bytes as f64)
}

/// Returns the setting with which a bot reads a list of ten thousand experiments.
pub(crate) fn reads_long_lists() -> [(&'static str, String); 1] {
    [("COUNTERSIGN__UPGRADE__MAX_ANSWER_MB", "256".to_owned())]
}
