//! A bot that has nothing to do leaves its server alone.

use std::time::{Duration, Instant};

use countersign::config::StoreKind;
use secrecy::SecretString;
use tokio::time::sleep;

use crate::support::{
    bot::{Setup, TestBot},
    redis::RedisServer,
};

/// The most commands a second of an idle bot.
const MOST: f64 = 200.0;

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_bot_asks_redis_for_little() {
    let server = RedisServer::start().await;
    let url = server.url();
    let settings = move |config: &mut countersign::config::Config| {
        config.store.kind = Some(StoreKind::Redis);
        config.store.redis_url = Some(SecretString::from(url));
        config.workers.sweep_every = Duration::from_millis(250);
    };
    let bot = TestBot::with(Setup { settings: Box::new(settings), ..Setup::default() }).await;
    bot.user("ana").says("start the Math Hints experiment").await;

    let looks = async || server.calls().await.get("exists").copied().unwrap_or(0);
    let more_looks = async |more: u64| {
        let (before, began) = (looks().await, Instant::now());
        while looks().await < before + more {
            assert!(began.elapsed() < Duration::from_secs(30), "it does not look for work by itself");
            sleep(Duration::from_millis(20)).await;
        }
    };
    more_looks(64).await;
    let (before, began) = (server.calls().await, Instant::now());
    more_looks(128).await;
    let mut calls = server.calls().await;
    let seconds = began.elapsed().as_secs_f64();
    calls.iter_mut().for_each(|(name, count)| *count -= before.get(name).copied().unwrap_or(0));
    let a_second = calls.values().sum::<u64>() as f64 / seconds;
    assert!(a_second < MOST, "{a_second:.0} commands a second: {calls:?}");
    bot.finish().await;
}
