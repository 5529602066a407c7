//! Questions that an MCP server asks in the middle of a call: on the card, answered by a form or a button.

use std::{sync::Arc, time::Duration};

use countersign::{
    app::{Bot, dependencies, installed},
    config::{Config, SlackMode, StoreKind},
};
use countersign_sandbox::slack::{Mode, Options};
use insta::assert_snapshot;
use secrecy::SecretString;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::mcp::Notes;
use crate::{
    approvals::windows::{as_read, opens, sends},
    support::{
        bot::{Setup, TestBot, eventually, in_time},
        redis::RedisServer,
        thread::Thread,
    },
};

const TOOLS: &[&str] = &["list-notes", "sign-board", "trigger-elicitation-request"];

/// A call that has come as far as the server's question.
async fn asked<'a>(notes: &Notes, bot: &'a TestBot, tool: &str) -> Thread<'a> {
    let mut thread = bot.user("ana").says(&format!("call {tool} on notes")).await;
    thread.heard();
    thread.clicks("bo", "Call tool").await;
    in_time(bot, "the question", || notes.server.asking() == 1).await;
    bot.settled().await;
    thread
}

async fn ready() -> (Notes, TestBot) {
    let notes = Notes::start().await;
    let settings = notes.settings(TOOLS);
    notes.accepts(&settings).await;
    let bot = notes.bot(&settings).await;
    (notes, bot)
}

/// The actions of the answers that the server got.
fn actions(notes: &Notes) -> Vec<Value> {
    notes.server.answers().iter().map(|answer| answer["action"].clone()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_answered_in_a_form() {
    let mut told: Vec<String> = Vec::new();
    let (notes, bot) = ready().await;
    let mut thread = asked(&notes, &bot, "sign-board").await;
    told.push(thread.heard());

    // The thread goes on meanwhile, and nothing said in it is taken for the answer.
    thread.says("ana", "what can notes do?").await;
    assert!(thread.heard().contains("offers 3 tools"));
    assert_eq!(actions(&notes), [Value::Null; 0]);

    let view = opens(&bot, &thread, "ana", "Answer…").await;
    told.push(as_read(&bot, &view));
    let wrong = sends(&bot, "ana", json!({})).await;
    told.push(format!("{wrong:?}"));
    sends(&bot, "ana", json!({ "Name": "Ada", "In large letters": "Yes" })).await;
    in_time(&bot, "the note", || !notes.server.notes().is_empty()).await;
    bot.settled().await;
    told.push(thread.heard());
    assert_eq!(notes.server.notes(), ["— ADA"]);
    assert_eq!(notes.server.answers()[0]["content"], json!({ "name": "Ada", "large": true }));
    bot.finish().await;
    assert_snapshot!("mcp_a_question_is_answered_in_a_form", told.join("\n\n=====\n\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_declined_or_the_call_cancelled() {
    let mut told: Vec<String> = Vec::new();
    let (notes, bot) = ready().await;
    for label in ["Don't answer", "Cancel call"] {
        let mut thread = asked(&notes, &bot, "sign-board").await;
        thread.heard();
        thread.clicks("ana", label).await;
        let count = told.len() + 1;
        in_time(&bot, "the answer", || actions(&notes).len() == count).await;
        bot.settled().await;
        told.push(thread.heard());
    }
    assert_eq!(actions(&notes), ["decline", "cancel"]);
    assert_eq!(notes.server.notes(), ["— somebody"]);
    bot.finish().await;
    assert_snapshot!("mcp_a_question_is_declined_or_the_call_cancelled", told.join("\n\n=====\n\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_nobody_answers_is_cancelled_in_the_end() {
    let notes = Notes::start().await;
    let mut settings = notes.settings(TOOLS);
    settings.longest = Duration::from_secs(600);
    notes.accepts(&settings).await;
    let bot = notes.bot(&settings).await;
    let mut thread = asked(&notes, &bot, "sign-board").await;
    thread.heard();
    bot.clock.advance(Duration::from_secs(601));
    in_time(&bot, "the cancellation", || actions(&notes) == ["cancel"]).await;
    bot.settled().await;
    assert!(notes.server.notes().is_empty());
    assert!(thread.heard().contains("❌") || thread.last().contains("Stopped"), "{}", thread.last());
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_closed_and_told_after_a_restart() {
    let notes = Notes::start().await;
    let settings = notes.settings(TOOLS);
    notes.accepts(&settings).await;
    let mut bot = notes.bot(&settings).await;
    let root = asked(&notes, &bot, "sign-board").await.root.clone();
    bot.stop().await;
    bot.brings(vec![Arc::new(Notes::timed(&settings, Arc::new(bot.clock.clone())))]);
    bot.run().await;
    let mut thread = Thread::new(&bot, "experiments", root);
    // Nobody presses anything, and no time passes.
    in_time(&bot, "the end", || thread.last().contains("It may or may not have happened")).await;
    bot.settled().await;
    let heard = thread.heard();
    let told =
        "I was restarted while *notes* was waiting for an answer to its question, so the call ended without one.";
    assert!(heard.contains(told), "{heard}");
    assert!(!heard.contains("[Don't answer]"), "{heard}");
    assert!(notes.server.notes().is_empty(), "nothing was called again");
    let calls = notes.server.calls().iter().filter(|(tool, _)| tool == "sign-board").count();
    assert_eq!(calls, 1);
    bot.finish().await;
}

/// Settings with a store for several processes.
fn in_redis(redis: &RedisServer) -> impl FnOnce(&mut Config) + 'static {
    let url = redis.url();
    move |config: &mut Config| {
        config.store.kind = Some(StoreKind::Redis);
        config.store.redis_url = Some(SecretString::from(url));
        config.slack.mode = Some(SlackMode::Http);
    }
}

/// The press arrives at another process than the one that holds the call: it has to find its way there.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_reaches_the_process_that_holds_the_call() {
    let redis = RedisServer::start().await;
    let notes = Notes::start().await;
    let settings = notes.settings(TOOLS);
    notes.accepts(&settings).await;
    // Each event goes to one address.
    let mode = Mode::Http { events_url: None, signing_secret: "a secret of this test".to_owned() };
    let slack = Options { mode, ..Options::default() };
    let bot = notes.bot_of(&settings, Setup { slack, settings: Box::new(in_redis(&redis)), ..Setup::default() }).await;
    let mut thread = asked(&notes, &bot, "sign-board").await;
    thread.heard();

    let stop = CancellationToken::new();
    let clock = Arc::new(bot.clock.clone());
    let mut all = installed::capabilities(&bot.config, clock.clone()).unwrap();
    all.push(Arc::new(Notes::timed(&settings, clock.clone())));
    let store = dependencies::store(&bot.config, clock.clone()).await.unwrap();
    let second = Bot::with_capabilities(all, store, &bot.config, clock, stop.clone()).await.unwrap();
    bot.slack.point_at(&format!("http://{}", second.address().unwrap()));
    let second = tokio::spawn(second.run(stop.clone()));

    thread.press("ana", "Don't answer").await;
    // No faster than the processes work: they wait only so long for each other.
    let answered = || {
        bot.clock.advance(Duration::from_millis(5));
        actions(&notes) == ["decline"]
    };
    eventually("the answer", answered).await;
    bot.settled().await;
    assert_eq!(notes.server.notes(), ["— somebody"]);
    let calls = notes.server.calls().iter().filter(|(tool, _)| tool == "sign-board").count();
    assert_eq!(calls, 1, "it was called once");
    assert!(thread.heard().contains("✅"), "{}", thread.last());
    stop.cancel();
    second.await.unwrap().unwrap();
    bot.finish().await;
}
