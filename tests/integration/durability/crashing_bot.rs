//! The production bot around a [`CrashingStore`], as a process of its own: this test binary, started again.
//!
//! So there is no further program to link, and none that could be out of date.

use std::{collections::HashMap, path::Path, process::Command, sync::Arc};

use countersign::{
    app::{Bot, dependencies, telemetry},
    clock::SystemClock,
    config::{Config, environment},
};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::{layer::SubscriberExt as _, util::SubscriberInitExt as _};

use super::{
    crashing_store::{Crash, CrashingStore, Holding, Point},
    synced::Synced,
};

/// Where the process dies, as JSON.
const POINT: &str = "CRASHING_BOT_POINT";
/// Where the names of its writes go. Without it the process is no bot.
const NAMES: &str = "CRASHING_BOT_NAMES";

/// Where copies of its files go, as the disk has them. Without it there are none.
const SYNCED: &str = "CRASHING_BOT_SYNCED";

/// The bot with these settings that dies at `point`, if one is given, and writes down what it wrote.
pub(super) fn command(settings: &HashMap<String, String>, point: Option<&Point>, names: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--ignored", "--exact", "--nocapture", "durability::crashing_bot::the_bot_that_crashes"])
        .env_clear()
        .envs(settings)
        .env(NAMES, names);
    if let Some(point) = point {
        command.env(POINT, serde_json::to_string(point).unwrap());
    }
    command
}

/// The same, on SQLite, which leaves its files behind as the disk has them, in a folder.
pub(super) fn with_synced(mut command: Command, folder: &Path) -> Command {
    command.env(SYNCED, folder);
    command
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "no test: the process that the crash matrix starts"]
async fn the_bot_that_crashes() {
    let environment = environment();
    let Some(names) = environment.get(NAMES) else { return };
    let point = environment.get(POINT).map(|point| serde_json::from_str(point).unwrap());
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).unwrap();
    rustls::crypto::ring::default_provider().install_default().ok();
    let config = Config::load(None, &environment, &countersign::app::installed::SETTINGS).unwrap();
    let crash = Arc::new(Crash::at(point, Path::new(names)));
    let levels = format!("{},countersign::graph=debug", config.server.log); // what is held back is told there
    let log = telemetry::subscriber(&levels, config.server.log_format, false, std::io::stderr, None);
    log.with(Holding(crash.clone())).init();
    let synced = environment.get(SYNCED).map(|folder| Synced::of(&config.store.path, Path::new(folder)));
    let clock = Arc::new(SystemClock);
    let store = dependencies::store(&config, clock.clone()).await.unwrap();
    if let Some(synced) = synced {
        synced.copies_from_now_on();
    }
    let store = Arc::new(CrashingStore::new(store, crash));
    let stop = CancellationToken::new();
    let bot = Bot::with_store(store, &config, clock, stop.clone()).await.unwrap();
    let stopped = stop.clone();
    tokio::spawn(async move {
        terminate.recv().await;
        stopped.cancel();
    });
    bot.run(stop).await.unwrap();
}
