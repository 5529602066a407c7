//! Clients that are slow, silent or many, at the door where Slack's requests come in.

use std::{collections::HashMap, process::Command, time::Duration};

use countersign::config::SlackMode;
use countersign_sandbox::{
    slack::{self, Mode},
    slow_client::{Slow, SlowClient},
};
use tokio::time::timeout;

use super::{
    process::{COUNTERSIGN, Process},
    processes::{By, Given, given},
};
use crate::support::bot::{BOUND, Setup, TestBot};

const EVERY: [Slow; 4] = [Slow::Silent, Slow::Head, Slow::Body, Slow::Idle];

/// A bot that is reached by HTTP, with these settings.
async fn by_http(settings: impl FnOnce(&mut countersign::config::Config) + 'static) -> TestBot {
    let mode = Mode::Http { events_url: None, signing_secret: "a secret of this test".to_owned() };
    TestBot::with(Setup {
        slack: slack::Options { mode, ..slack::Options::default() },
        settings: Box::new(|config| {
            config.slack.mode = Some(SlackMode::Http);
            settings(config);
        }),
        ..Setup::default()
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_keeps_the_server_waiting_is_cut_off() {
    let bot = by_http(|config| {
        let soon = Duration::from_millis(300);
        (config.server.header_timeout, config.server.body_timeout, config.server.idle_timeout) = (soon, soon, soon);
    })
    .await;
    for how in EVERY {
        let mut client = SlowClient::connect(bot.address(), how).await.unwrap();
        let dripping = async {
            while client.drips().await.is_ok() {
                tokio::select! {
                    () = client.closed() => return,
                    () = tokio::time::sleep(Duration::from_millis(20)) => {}
                }
            }
        };
        timeout(BOUND, dripping).await.unwrap_or_else(|_| panic!("{how:?} may stay for ever"));
    }
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_are_taken_up_to_their_limit() {
    let bot = by_http(|_| ()).await;
    let url = format!("http://{}/healthz", bot.address());
    for (kibibytes, expected) in [(60, 200), (70, 431), (90, 431)] {
        let filler = "x".repeat(kibibytes << 10);
        let answer = reqwest::Client::new().get(&url).header("x-filler", filler).send().await.unwrap();
        assert_eq!(answer.status().as_u16(), expected, "{kibibytes} KiB");
    }
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn at_the_limit_the_oldest_gives_way_and_everybody_new_is_served() {
    const LIMIT: usize = 16;
    let bot = by_http(|config| {
        let never = Duration::from_secs(600);
        (config.server.header_timeout, config.server.body_timeout, config.server.idle_timeout) = (never, never, never);
        config.server.connections = Some(LIMIT);
        config.workers.drain = Duration::from_secs(1);
    })
    .await;
    let mut clients = Vec::new();
    for nth in 0..4 * LIMIT {
        clients.push(SlowClient::connect(bot.address(), EVERY[nth % EVERY.len()]).await.unwrap());
    }
    let health = SlowClient::connect(bot.address(), Slow::Idle);
    timeout(BOUND, health).await.expect("/healthz answers").unwrap();
    for client in &mut clients[..2 * LIMIT] {
        timeout(BOUND, client.closed()).await.expect("the oldest gave way");
    }
    let thread = bot.user("ana").says("start the Math Hints experiment").await;
    assert!(thread.messages()[0].button("Start experiment").is_some(), "Slack is acknowledged all the same");
    bot.finish().await;
}

/// A request that is still arriving does not hold up the stop: nothing of it was acknowledged.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_client_does_not_hold_up_the_stop() {
    let mut bot = by_http(|config| {
        config.server.body_timeout = Duration::from_secs(600);
        config.workers.drain = Duration::from_secs(1);
    })
    .await;
    let mut client = SlowClient::connect(bot.address(), Slow::Body).await.unwrap();
    client.drips().await.unwrap();
    bot.stop().await;
    timeout(BOUND, client.closed()).await.expect("it is closed");
}

/// `countersign serve` that may have so many files and sockets open.
fn serve_with(descriptors: usize, settings: &HashMap<String, String>) -> Command {
    let mut command = Command::new("sh");
    let limited = r#"ulimit -n "$1" && exec "$2" serve"#;
    command.args(["-c", limited, "sh", &descriptors.to_string(), COUNTERSIGN]).env_clear().envs(settings);
    command
}

#[tokio::test(flavor = "multi_thread")]
async fn more_connections_than_descriptors_stop_nothing() {
    let Given { folder, sandbox, settings, page, bot: here } = given(By::Http, None).await;
    let bot = Process::start(serve_with(256, &settings), &folder.path().join("bot.log"));
    page.until_ready(&bot, &here).await;
    let address = here.trim_start_matches("http://").parse().unwrap();
    let mut clients = Vec::new();
    for nth in 0..600 {
        let how = [Slow::Silent, Slow::Head, Slow::Body][nth % 3];
        let client = timeout(BOUND, SlowClient::connect(address, how)).await.expect("it is accepted");
        clients.extend(client.ok()); // it may have had to give way already
    }
    assert_eq!(page.get(&format!("{here}/healthz")).await, Some((true, "ok\n".to_owned())));
    let root = page.says("ana", "@countersign start the Math Hints experiment").await;
    page.message_with(&root, "approve").await;
    drop(clients);
    let status = bot.stop().await;
    assert!(status.success(), "{status}\n{}", bot.log());
    sandbox.stop().await;
}

/// Neither words nor secrets, even if everything is logged that can be.
#[tokio::test(flavor = "multi_thread")]
async fn the_log_holds_no_words_and_no_secrets() {
    let Given { folder, sandbox: _sandbox, mut settings, page, bot: here } = given(By::Socket, None).await;
    settings.insert("COUNTERSIGN__SERVER__LOG".to_owned(), "trace".to_owned());
    let bot = Process::start(super::process::serve(&settings), &folder.path().join("bot.log"));
    page.until_ready(&bot, &here).await;
    let root = page.says("ana", "@countersign start the Math Hints experiment, zanzibar").await;
    page.until("an answer", async || page.says_in_thread(&root).await > 1).await;
    assert!(bot.stop().await.success());
    let log = bot.log();
    let secrets = ["SLACK_BOT_TOKEN", "SLACK_APP_TOKEN"].map(|name| settings[name].as_str());
    for hidden in secrets.into_iter().chain(["zanzibar", "ticket=", "Math Hints"]) {
        let line = log.lines().find(|line| line.contains(hidden));
        assert_eq!(line, None, "{hidden} is in the log");
    }
    assert!(log.contains("Connected to a workspace"), "{log}");
}
