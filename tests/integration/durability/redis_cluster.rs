//! The store is a Redis Cluster, and the server that has the thread dies in the middle of an approval.

use std::time::Duration;

use countersign::{config::StoreKind, sandbox::slack};
use secrecy::SecretString;
use tokio::time::sleep;

use super::redis_down::{START, is_over};
use crate::support::{
    bot::{Setup, TestBot, eventually},
    redis_cluster::{MASTERS, RedisCluster},
    thread::Thread,
};

/// The silence after which the replica of a server takes over.
const SILENT: Duration = Duration::from_secs(1);

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_outlives_the_server_of_its_thread() {
    let mut cluster = RedisCluster::start(1, SILENT).await;
    let url = cluster.url();
    let redeliver_after = [0, 100, 200, 400, 800, 1600, 3200, 6400].map(Duration::from_millis).to_vec();
    let bot = TestBot::with(Setup {
        slack: slack::Options { answer_within: Duration::from_secs(1), redeliver_after, ..slack::Options::default() },
        settings: Box::new(move |config| {
            config.slack.timeout = Duration::from_secs(1);
            config.store.kind = Some(StoreKind::Redis);
            config.store.redis_url = Some(SecretString::from(url));
        }),
        ..Setup::default()
    })
    .await;
    let root = bot.slack.says("ana", "experiments", START, None).unwrap();
    let thread = Thread::new(&bot, "experiments", root);
    eventually("the card", || !thread.messages().is_empty()).await;
    bot.settled().await;

    let mut master = None;
    for n in 0..MASTERS {
        let keys: Vec<String> = cluster.command(n, &["KEYS", "countersign:*:thread:*:snapshot"]).await;
        if !keys.is_empty() {
            master = Some(n);
        }
    }
    cluster.servers[master.expect("the thread is on one of them")].kill();
    // The person sees a warning sign and presses again.
    let card = thread.with_button("Start experiment");
    let presses = || async { bot.slack.clicks("bo", "experiments", &card, "Start experiment").await.is_ok() };
    while !presses().await {
        sleep(Duration::from_millis(50)).await;
    }
    is_over(&bot, &thread).await;
    bot.finish().await;
}
