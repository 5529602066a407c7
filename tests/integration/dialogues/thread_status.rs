//! What Slack itself shows while the bot works: its line, sessions with a Stop button, what can be asked first.

use std::time::Duration;

use countersign::experiments::settings::Upgrade;
use countersign_sandbox::slack::faults::Fault;
use serde_json::Value;

use super::testing::running;
use crate::support::{
    bot::{Setup, TestBot, eventually},
    thread::Thread,
};

/// A bot with Slack's own line, in a workspace that has what agents need if it is an `agent`.
async fn bot(agent: bool, scopes: impl FnOnce(&mut Vec<String>)) -> TestBot {
    let mut setup = Setup::default();
    scopes(&mut setup.slack.scopes);
    setup.settings = Box::new(move |config| {
        config.slack.native_status = true;
        config.slack.agent_view = agent;
        config.workers.status_after = Duration::from_millis(20);
        config.sections.get_mut::<Upgrade>().timeout = Duration::from_secs(20);
    });
    TestBot::with(setup).await
}

/// The values of a field in the calls of a method so far.
fn told(bot: &TestBot, method: &str, field: &str) -> Vec<String> {
    let calls = bot.slack.ledger().calls(method);
    calls.iter().map(|call| call.body[field].as_str().unwrap_or_default().to_owned()).collect()
}

/// ana asks for something that takes a while.
async fn slow(bot: &TestBot) -> Thread<'_> {
    bot.upgrade.is_slow(Duration::from_millis(700));
    let ts = bot.slack.says("ana", "experiments", "@countersign list experiments", None).unwrap();
    bot.delivered(&ts).await;
    Thread::new(bot, "experiments", ts)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_line_under_the_thread_says_what_is_done() {
    let bot = bot(false, |_| ()).await;
    let thread = slow(&bot).await;
    eventually("a status", || bot.slack.look(|world| !world.statuses.is_empty())).await;
    assert!(thread.messages().is_empty(), "no message says it besides");
    bot.settled().await;
    assert!(bot.slack.look(|world| world.statuses.is_empty()), "the answer took it away");
    assert_eq!(thread.messages().len(), 1);
    let told = told(&bot, "assistant.threads.setStatus", "status");
    // Taken away by an empty one where the turn ended before its answer was out.
    assert!(told.iter().all(|status| status.starts_with("is ") || status.is_empty()), "{told:?}");
    assert!(bot.slack.ledger().calls("agents.sessions.setStatus").is_empty(), "it is no agent");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workspace_without_it_has_an_edited_message() {
    let bot = bot(false, |_| ()).await;
    let (method, error) = ("assistant.threads.setStatus".to_owned(), "not_allowed".to_owned());
    bot.slack.inject(Fault::Fail { method, error, calls: 1 });
    let thread = slow(&bot).await;
    eventually("a message", || !thread.messages().is_empty()).await;
    bot.settled().await;
    assert_eq!(thread.messages().len(), 1, "the answer takes its place");
    assert_eq!(told(&bot, "assistant.threads.setStatus", "status").len(), 1, "it is not tried again");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agents_session_is_stopped_by_slacks_button() {
    let bot = bot(true, |scopes| scopes.push("assistant:write".to_owned())).await;
    bot.upgrade.is_slow(Duration::from_millis(200)); // so that there is a line when the card comes
    let mut thread = bot.user("ana").says("start Math Hints").await;
    let sessions = || told(&bot, "agents.sessions.setStatus", "status");
    eventually("a card that waits", || sessions().last().is_some_and(|status| status == "suspended")).await;
    bot.upgrade.is_well();
    thread.clicks("bo", "Start experiment").await;
    eventually("an answer", || sessions().last().is_some_and(|status| status == "active")).await;
    thread.skip();

    bot.upgrade.is_slow(Duration::from_secs(8));
    bot.slack.says("ana", "experiments", "list experiments", Some(&thread.root)).unwrap();
    eventually("a session that works", || sessions().last().is_some_and(|status| status == "processing")).await;
    bot.slack.stops_session("bo", "experiments", &thread.root).unwrap();
    eventually("an end", || thread.last().contains("Stopped, as @bo asked.")).await;
    bot.settled().await;
    eventually("a session at rest", || sessions().last().is_some_and(|status| status == "active")).await;
    bot.upgrade.is_well();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_suspended_while_a_person_has_to_decide() {
    let bot = bot(true, |scopes| scopes.push("assistant:write".to_owned())).await;
    bot.upgrade.is_slow(Duration::from_millis(200)); // so that there is a line when the card comes
    let thread = bot.user("ana").says("start Math Hints").await;
    bot.upgrade.is_well();
    assert!(thread.last().contains("Start “Math Hints”?"), "{}", thread.last());
    let statuses = told(&bot, "assistant.threads.setStatus", "status");
    assert_eq!(statuses.last().map(String::as_str), Some(""), "the line is gone: {statuses:?}");
    let sessions = told(&bot, "agents.sessions.setStatus", "status");
    assert_eq!(sessions.last().map(String::as_str), Some("suspended"), "{sessions:?}");
}

/// A test with many users is going on, and its card says how far it is.
async fn testing(bot: &TestBot) -> Thread<'_> {
    let thread = running(bot).await;
    thread.says("ana", "test the balance of Math Hints with 1000 users").await;
    bot.upgrade.is_slow(Duration::from_millis(10));
    thread.press("bo", "Enroll test users").await;
    eventually("some progress", || thread.messages().iter().any(|m| m.words().contains(" of 1000"))).await;
    thread
}

fn stop_buttons(thread: &Thread<'_>) -> usize {
    thread.messages().iter().filter(|message| message.button("Stop").is_some()).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn where_slack_has_a_stop_button_the_card_has_none() {
    let bot = bot(true, |scopes| scopes.push("assistant:write".to_owned())).await;
    let mut thread = testing(&bot).await;
    thread.skip();
    assert_eq!(stop_buttons(&thread), 0);
    let sessions = || told(&bot, "agents.sessions.setStatus", "status");
    eventually("a session that works", || sessions().last().is_some_and(|status| status == "processing")).await;
    bot.slack.stops_session("cy", "experiments", &thread.root).unwrap();
    eventually("an end", || {
        thread.messages().iter().any(|m| m.words().contains("users already enrolled stay enrolled"))
    })
    .await;
    bot.upgrade.is_well();
}

#[tokio::test(flavor = "multi_thread")]
async fn where_slack_turns_out_to_have_none_the_card_has_it() {
    let bot = bot(true, |_| ()).await; // declared an agent, but never installed as one
    bot.expects_complaints();
    let thread = testing(&bot).await;
    assert_eq!(stop_buttons(&thread), 1);
    thread.clicks("cy", "Stop").await;
    assert_eq!(bot.slack.ledger().calls("agents.sessions.setStatus").len(), 1, "it is not tried again");
    bot.upgrade.is_well();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_be_asked_is_offered_first() {
    let bot = bot(true, |scopes| scopes.push("assistant:write".to_owned())).await;
    bot.slack.opens_talk("ana");
    let prompts = || bot.slack.look(|world| world.prompts.values().next().cloned().unwrap_or(Value::Null));
    eventually("prompts", || prompts().is_array()).await;
    assert_eq!(prompts()[0]["message"], "list experiments");
    bot.settled().await;
    assert!(bot.slack.ledger().calls("assistant.threads.setSuggestedPrompts")[0].body["thread_ts"].is_null());
    let mut thread = bot.user("bo").writes("hello").await;
    let heard = thread.heard();
    assert!(
        heard.contains("[List experiments] [Is UpGrade running?] [Create an experiment] [What can you do?]"),
        "{heard}"
    );
}
