//! The store is a Redis Cluster, and the server that has the thread dies in the middle of an approval.

use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::time::sleep;

use super::{
    process::{Process, serve},
    redis_down::{START, bot_on, is_over},
    script::World,
};
use crate::support::{
    bot::{BOUND, eventually},
    ports::free_port,
    redis_cluster::{MASTERS, RedisCluster},
    thread::Thread,
};

/// The silence after which the replica of a server takes over.
const SILENT: Duration = Duration::from_secs(1);

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_outlives_the_server_of_its_thread() {
    let mut cluster = RedisCluster::start(1, SILENT).await;
    let bot = bot_on(cluster.url()).await;
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

/// What `/readyz` says of the store, which is that the bot is ready; `None` before it listens.
async fn store_of(address: &str) -> Option<Value> {
    let answer = reqwest::get(format!("{address}/readyz")).await.ok()?;
    assert!(answer.status().is_success(), "{answer:?}");
    Some(answer.json::<Value>().await.unwrap()["store"].take())
}

/// The partitions that `/metrics` says can't be written.
async fn unwritable(address: &str) -> usize {
    let text = reqwest::get(format!("{address}/metrics")).await.unwrap().text().await.unwrap();
    let is_one =
        |line: &&str| line.starts_with("countersign_store_partition_unwritable{partition=") && line.ends_with(" 1");
    text.lines().filter(is_one).count()
}

/// In a process of its own, whose metrics no other bot tells.
#[tokio::test(flavor = "multi_thread")]
async fn a_weakened_server_is_told_and_the_bot_is_ready() {
    let cluster = RedisCluster::start(0, Duration::from_secs(60)).await;
    let world = World::start(Some(cluster.url())).await;
    let (port, mut settings) = (free_port(), world.settings());
    settings.insert("PORT".to_owned(), port.to_string());
    let bot = Process::start(serve(&settings), &world.log());
    eventually("a bot that is connected", || bot.is_up() && world.slack.sockets() > 0).await;
    let page = format!("http://127.0.0.1:{port}");
    let store = store_of(&page).await.expect("it listens");
    assert_eq!((&store["ok"], store.get("problems")), (&Value::Bool(true), None), "{store}");
    cluster.command::<()>(1, &["CONFIG", "SET", "appendfsync", "everysec"]).await;
    let address = format!("127.0.0.1:{}", cluster.servers[1].port());
    let began = Instant::now();
    loop {
        let store = store_of(&page).await.expect("it listens");
        if let Some(problems) = store["problems"].as_array() {
            let [partitions, setting] = problems.as_slice() else { panic!("{store}") };
            let (partitions, setting) = (partitions.as_str().unwrap(), setting.as_str().unwrap());
            assert!(partitions.starts_with("partitions ") && partitions.contains("can't be written"), "{store}");
            assert!(setting.starts_with(&format!("{address}: appendfsync is `everysec`")), "{store}");
            break;
        }
        assert!(began.elapsed() < BOUND, "{store}");
        sleep(Duration::from_millis(50)).await;
    }
    let weak = unwritable(&page).await;
    assert!((1..64).contains(&weak), "{weak}");
    cluster.command::<()>(1, &["CONFIG", "SET", "appendfsync", "always"]).await;
    while unwritable(&page).await > 0 {
        assert!(began.elapsed() < BOUND, "it can be written again");
        store_of(&page).await.expect("it listens"); // looks again
        sleep(Duration::from_millis(50)).await;
    }
    assert!(bot.stop().await.success(), "{}", bot.log());
}
