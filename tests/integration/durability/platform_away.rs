//! A platform that is down or slow: `/readyz` says so at once, and the bot stays ready, since it still takes in and answers.

use std::time::{Duration, Instant};

use countersign_sandbox::faults::Down;
use serde_json::Value;

use crate::support::bot::{BOUND, TestBot};

/// What `/readyz` says of the platform. It says that the bot is ready, and without delay.
async fn told(bot: &TestBot) -> Value {
    let asked = Instant::now();
    let answer = reqwest::get(format!("http://{}/readyz", bot.address())).await.unwrap();
    assert!(answer.status().is_success(), "{}", answer.status());
    let said: Value = answer.json().await.unwrap();
    assert!(asked.elapsed() < Duration::from_secs(2), "a probe waits for nobody: {:?}", asked.elapsed());
    assert_eq!(said["ready"], true, "{said}");
    said["services"]["UpGrade"].clone()
}

async fn until_told(bot: &TestBot, ok: bool) -> String {
    let deadline = Instant::now() + BOUND;
    loop {
        let told = told(bot).await;
        if told["ok"] == ok {
            return told["what"].as_str().unwrap().to_owned();
        }
        assert!(Instant::now() < deadline, "{told}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_platform_that_is_down_is_told_and_the_bot_is_ready() {
    let bot = TestBot::start().await;
    bot.upgrade.is_down(Some(Down::Closed));
    assert_eq!(told(&bot).await["ok"], Value::Null, "nothing is known before it was asked");
    let what = until_told(&bot, false).await;
    assert!(what.contains(&bot.upgrade.url()), "{what}");
    bot.upgrade.is_well();
    let what = until_told(&bot, true).await;
    assert!(what.contains("6.5.0"), "{what}");
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_platform_that_is_slow_holds_up_no_probe() {
    let bot = TestBot::start().await;
    bot.upgrade.is_slow(Duration::from_secs(60));
    until_told(&bot, false).await;
    bot.upgrade.is_well();
    until_told(&bot, true).await;
    bot.finish().await;
}
