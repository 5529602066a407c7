//! Redis is away for longer than a lease, in the middle of things.

use std::time::Duration;

use countersign::config::StoreKind;
use countersign_sandbox::slack::{self, Error};
use futures_util::future::join_all;
use secrecy::SecretString;
use tokio::time::sleep;

use crate::support::{
    bot::{Setup, TestBot, eventually},
    proxy::Proxy,
    redis::RedisServer,
    thread::Thread,
};

/// How long Redis is away: longer than the lease of a test's bot.
const AWAY: Duration = Duration::from_millis(2500);

struct Given {
    bot: TestBot,
    wire: Proxy,
    server: RedisServer,
}

async fn given() -> Given {
    let server = RedisServer::start().await;
    let wire = Proxy::before(server.port()).await;
    let bot = bot_on(format!("redis://127.0.0.1:{}", wire.port())).await;
    Given { bot, wire, server }
}

/// A bot whose threads are in the Redis at `url`, in a workspace that does not wait long and tries again often.
pub(super) async fn bot_on(url: String) -> TestBot {
    let redeliver_after = [0, 100, 200, 400, 800, 1600, 3200, 6400].map(Duration::from_millis).to_vec();
    TestBot::with(Setup {
        slack: slack::Options { answer_within: Duration::from_secs(1), redeliver_after, ..slack::Options::default() },
        settings: Box::new(move |config| {
            // What was claimed when Redis went away is free again after three calls' time.
            config.slack.timeout = Duration::from_secs(1);
            config.store.kind = Some(StoreKind::Redis);
            config.store.redis_url = Some(SecretString::from(url));
        }),
        ..Setup::default()
    })
    .await
}

pub(super) const START: &str = "@countersign start the Math Hints experiment";

/// How the wire breaks.
const BREAKS: [fn(&Proxy); 3] = [Proxy::cut, Proxy::stall, Proxy::lose_answers];

/// What was stalled stays so: connections are ended before new ones are let through.
fn mend(wire: &Proxy) {
    wire.cut();
    wire.restore();
}

pub(super) async fn is_over(bot: &TestBot, thread: &Thread<'_>) {
    eventually("the answer", || {
        thread.messages().len() >= 2 && thread.messages()[0].button("Start experiment").is_none()
    })
    .await;
    bot.settled().await;
    assert_eq!(thread.messages().len(), 2, "the last one: {}", thread.last());
    assert_eq!(bot.upgrade.experiment("Math Hints").unwrap()["state"], "running");
    assert_eq!(bot.upgrade.effects().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_stored_is_not_acknowledged_and_comes_again() {
    let each = BREAKS.map(|breaks| async move {
        let Given { bot, wire, server: _server } = given().await;
        breaks(&wire);
        let root = bot.slack.says("ana", "experiments", START, None).unwrap();
        sleep(AWAY).await;
        mend(&wire);
        let thread = Thread::new(&bot, "experiments", root);
        eventually("the card", || !thread.messages().is_empty()).await;

        breaks(&wire);
        let card = thread.with_button("Start experiment");
        let warned = bot.slack.clicks("bo", "experiments", &card, "Start experiment").await;
        assert!(matches!(warned, Err(Error::Unanswered)), "a click that may be lost is not acknowledged");
        sleep(AWAY).await;
        mend(&wire);
        // The person sees a warning sign and presses again. Whether the first press was stored after all does not matter.
        let again = || async { bot.slack.clicks("bo", "experiments", &card, "Start experiment").await.is_ok() };
        while !again().await {
            sleep(Duration::from_millis(50)).await;
        }
        is_over(&bot, &thread).await;
        bot.finish().await;
    });
    join_all(each).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outcome_that_cannot_be_stored_is_found_out_afterwards() {
    let each = BREAKS.map(|breaks| async move {
        let Given { bot, wire, server: _server } = given().await;
        let root = bot.slack.says("ana", "experiments", START, None).unwrap();
        let thread = Thread::new(&bot, "experiments", root);
        eventually("the card", || !thread.messages().is_empty()).await;
        bot.settled().await;
        // Its intent is stored then.
        let change = bot.upgrade.holds_next_answer("/experiments/state");
        thread.press("bo", "Start experiment").await;
        change.arrived().await;
        breaks(&wire);
        change.let_go();
        sleep(AWAY).await;
        mend(&wire);
        is_over(&bot, &thread).await;
        bot.finish().await;
    });
    join_all(each).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_killed_and_returns_has_forgotten_nothing() {
    let Given { bot, wire: _wire, mut server } = given().await;
    let root = bot.slack.says("ana", "experiments", START, None).unwrap();
    bot.delivered(&root).await;
    server.kill();
    sleep(AWAY).await;
    server.restart().await;
    let thread = Thread::new(&bot, "experiments", root);
    eventually("the card", || !thread.messages().is_empty()).await;
    bot.settled().await;
    thread.press("bo", "Start experiment").await;
    server.kill();
    sleep(AWAY).await;
    server.restart().await;
    is_over(&bot, &thread).await;
    bot.finish().await;
}
