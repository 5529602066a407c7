//! Slack and the network on a bad day: nothing is lost, and nothing is done or said twice.

use std::{collections::HashMap, time::Duration};

use countersign::{config::SlackMode, ids::MessageTs};
use countersign_sandbox::slack::{
    self, Mode,
    faults::{Fault, Loss},
};

use crate::support::{
    bot::{Setup, TestBot, eventually},
    thread::Thread,
};

const START: &str = "@countersign start the Math Hints experiment";
const QUESTION: &str = "@countersign what conditions does assign-prog have?";
const FOLLOW_UP: &str = "what conditions does assign-prog have?";

fn say<'a>(bot: &'a TestBot, text: &str) -> Thread<'a> {
    let root = bot.slack.says("ana", "experiments", text, None).unwrap();
    Thread::new(bot, "experiments", root)
}

/// Waits until the bot has this many messages in the thread and nothing to do.
async fn answered(bot: &TestBot, thread: &Thread<'_>, messages: usize) {
    eventually("an answer", || thread.messages().len() >= messages).await;
    bot.settled().await;
    assert_eq!(thread.messages().len(), messages, "the last one: {}", thread.last());
}

/// Everything that was ever said by the bot, what was taken back too.
fn ever_said(bot: &TestBot) -> usize {
    bot.slack.look(|world| {
        let all = world.messages.values().flat_map(|messages| messages.values());
        all.filter(|message| message.by_app && message.ephemeral_to.is_none()).count()
    })
}

fn is_running(bot: &TestBot) -> bool {
    bot.upgrade.experiment("Math Hints").unwrap()["state"] == "running"
}

/// The start of an experiment from the click to the record, once.
async fn approved_once(bot: &TestBot, thread: &Thread<'_>) {
    answered(bot, thread, 1).await;
    thread.press("bo", "Start experiment").await;
    answered(bot, thread, 2).await;
    assert!(is_running(bot));
    assert_eq!(bot.upgrade.effects().len(), 1);
    assert_eq!(ever_said(bot), 2);
    assert!(thread.messages()[0].button("Start experiment").is_none(), "the card is a record now");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_delivered_twice_is_handled_once() {
    let bot = TestBot::start().await;
    bot.slack.inject(Fault::DeliverTwice { on: true });
    let thread = say(&bot, START);
    approved_once(&bot, &thread).await;
    eventually("both copies of everything", || {
        let mut times: HashMap<String, usize> = HashMap::new();
        for attempt in bot.slack.recorded().deliveries {
            *times.entry(attempt.id).or_default() += 1;
        }
        times.len() >= 3 && times.values().all(|times| *times == 2)
    })
    .await;
    bot.settled().await;
    assert_eq!(ever_said(&bot), 2);
    assert!(bot.slack.ephemerals("bo").is_empty(), "a copy of a click is no second click");
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_overtook_the_mention_waits_for_it() {
    let bot = TestBot::start().await;
    bot.slack.inject(Fault::Reorder { events: 3 }); // the mention is two events: a mention and a message
    let thread = say(&bot, START);
    bot.slack.says("ana", "experiments", FOLLOW_UP, Some(&thread.root)).unwrap();
    answered(&bot, &thread, 2).await;
    let said = thread.messages();
    assert!(said[0].button("Start experiment").is_some(), "first what was asked first: {}", said[0].words());
    assert!(said[1].words().contains("control"), "then the follow-up: {}", said[1].words());
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_talk_between_others_that_was_parked_stays_unanswered() {
    let bot = TestBot::start().await;
    let root = bot.slack.says("ana", "experiments", "lunch?", None).unwrap();
    let reply = bot.slack.says("bo", "experiments", "yes", Some(&root)).unwrap();
    let question = bot.slack.says("bo", "experiments", FOLLOW_UP, Some(&root)).unwrap();
    bot.delivered(&reply).await;
    bot.delivered(&question).await;
    bot.settled().await;
    assert_eq!(ever_said(&bot), 0);
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_connections_share_the_work() {
    let bot = TestBot::start().await;
    eventually("two sockets", || bot.slack.sockets() == 2).await;
    let threads: Vec<_> = (0..12).map(|_| say(&bot, QUESTION)).collect();
    for thread in &threads {
        answered(&bot, thread, 1).await;
    }
    assert_eq!(ever_said(&bot), threads.len());
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_without_a_hello_holds_nothing_up() {
    let mut bot = TestBot::start().await;
    bot.stop().await;
    eventually("no socket", || bot.slack.sockets() == 0).await;
    bot.slack.inject(Fault::HangHello);
    bot.run().await;
    let thread = say(&bot, START);
    approved_once(&bot, &thread).await;
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_queued_behind_a_disconnect_is_answered() {
    let bot = TestBot::start().await;
    bot.slack.inject(Fault::Disconnect { reason: "refresh_requested".into(), queued: 6 });
    let threads: Vec<_> = (0..6).map(|_| say(&bot, QUESTION)).collect();
    for thread in &threads {
        answered(&bot, thread, 1).await;
    }
    assert_eq!(ever_said(&bot), threads.len());
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn slack_is_not_asked_again_before_it_allows_it() {
    let bot = TestBot::start().await;
    bot.slack.inject(Fault::RateLimit { method: "chat.postMessage".into(), calls: 1, retry_after: 1 });
    let thread = say(&bot, START);
    bot.slack.says("ana", "experiments", FOLLOW_UP, Some(&thread.root)).unwrap();
    answered(&bot, &thread, 2).await;
    let posts = bot.slack.ledger().calls("chat.postMessage");
    let statuses: Vec<_> = posts.iter().map(|post| post.status).collect();
    assert_eq!(statuses, [429, 200, 200]);
    assert!(posts[1].at.since(posts[0].at) >= Duration::from_millis(990), "sooner than Slack allowed");
    assert_eq!(posts[0].body, posts[1].body, "the same message, and nothing overtook it");
    assert!(thread.messages()[0].button("Start experiment").is_some());
    bot.finish().await;
}

/// A bot that does not wait long for Slack.
async fn impatient() -> TestBot {
    let settings = Box::new(|config: &mut countersign::config::Config| config.slack.timeout = Duration::from_secs(1));
    TestBot::with(Setup { settings, ..Setup::default() }).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_post_whose_answer_was_lost_is_found_and_not_repeated() {
    for how in [Loss::Closed, Loss::TimedOut] {
        let bot = impatient().await;
        bot.slack.inject(Fault::LoseAnswer { method: "chat.postMessage".into(), calls: 1, how });
        let thread = say(&bot, START);
        approved_once(&bot, &thread).await;
        assert_eq!(bot.slack.ledger().calls("chat.postMessage").len(), 2, "the card and the answer, {how:?}");
        assert!(!bot.slack.ledger().calls("conversations.replies").is_empty(), "it looked, {how:?}");
        bot.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_arrives_once_although_the_answer_was_lost() {
    for how in [Loss::Closed, Loss::TimedOut] {
        let bot = impatient().await;
        bot.slack.inject(Fault::LoseAnswer { method: "files.completeUploadExternal".into(), calls: 1, how });
        let thread = say(&bot, "@countersign show Math Hints as JSON");
        let shared = || thread.messages().iter().map(|message| message.files.len()).sum::<usize>();
        eventually("the file", || shared() > 0).await;
        eventually("another look", || {
            bot.clock.advance(Duration::from_secs(1));
            !bot.slack.ledger().calls("conversations.replies").is_empty()
        })
        .await;
        answered(&bot, &thread, 2).await;
        assert_eq!(shared(), 1, "{how:?}");
        assert_eq!(bot.slack.ledger().calls("files.completeUploadExternal").len(), 1, "it looked first, {how:?}");
        bot.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_post_that_never_arrived_is_repeated() {
    for how in [Loss::Closed, Loss::TimedOut] {
        let bot = impatient().await;
        bot.slack.inject(Fault::LoseRequest { method: "chat.postMessage".into(), calls: 1, how });
        let thread = say(&bot, START);
        approved_once(&bot, &thread).await;
        bot.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_whose_answer_was_lost_is_made_again() {
    let bot = impatient().await;
    let thread = say(&bot, START);
    answered(&bot, &thread, 1).await;
    bot.slack.inject(Fault::LoseAnswer { method: "chat.update".into(), calls: 2, how: Loss::Closed });
    approved_once(&bot, &thread).await;
    assert!(thread.messages()[0].words().contains("Approved by"), "{}", thread.messages()[0].words());
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_click_without_a_team_counts() {
    let bot = TestBot::start().await;
    bot.slack.inject(Fault::TeamNull { on: true });
    let thread = say(&bot, START);
    approved_once(&bot, &thread).await;
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_choice_without_a_team_goes_on_in_its_thread() {
    let bot = TestBot::start().await;
    let thread = say(&bot, START);
    approved_once(&bot, &thread).await;
    bot.slack.inject(Fault::TeamNull { on: true });
    thread.press("bo", "Show details").await;
    answered(&bot, &thread, 4).await; // the choice has a line of its own
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_clicks_at_the_same_time_make_one_decision() {
    let bot = TestBot::start().await;
    let thread = say(&bot, START);
    answered(&bot, &thread, 1).await;
    tokio::join!(thread.press("bo", "Start experiment"), thread.press("cy", "Start experiment"));
    answered(&bot, &thread, 2).await;
    assert_eq!(bot.upgrade.effects().len(), 1);
    let told = bot.slack.ephemerals("bo").len() + bot.slack.ephemerals("cy").len();
    assert_eq!(told, 1, "one of them is told that it was decided");
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn over_http_what_was_not_acknowledged_comes_again() {
    let mode = Mode::Http { events_url: None, signing_secret: "a secret of this test".to_owned() };
    let redeliver_after = [0, 50, 100, 200, 400, 800, 1600].map(Duration::from_millis).to_vec();
    let mut bot = TestBot::with(Setup {
        slack: slack::Options { mode, redeliver_after, ..slack::Options::default() },
        settings: Box::new(|config| config.slack.mode = Some(SlackMode::Http)),
        ..Setup::default()
    })
    .await;
    bot.stop().await;
    let root: MessageTs = bot.slack.says("ana", "experiments", START, None).unwrap();
    eventually("a failed delivery", || bot.slack.recorded().deliveries.iter().any(|a| a.failure.is_some())).await;
    bot.run().await;
    bot.slack.inject(Fault::DeliverTwice { on: true });
    let thread = Thread::new(&bot, "experiments", root);
    approved_once(&bot, &thread).await;
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn slack_may_be_down_for_a_while() {
    let bot = impatient().await;
    let thread = say(&bot, START);
    answered(&bot, &thread, 1).await;
    for method in ["chat.postMessage", "chat.update", "conversations.replies"] {
        bot.slack.inject(Fault::LoseRequest { method: method.into(), calls: 3, how: Loss::Closed });
    }
    thread.press("bo", "Start experiment").await;
    bot.slack.inject(Fault::DropSockets);
    eventually("the experiment runs all the same", || is_running(&bot)).await;
    // Waits double; there is no need to sit through them.
    eventually("everything is said", || {
        bot.clock.advance(Duration::from_secs(1));
        thread.messages().len() >= 2 && thread.messages()[0].button("Start experiment").is_none()
    })
    .await;
    bot.sends_everything().await;
    answered(&bot, &thread, 2).await;
    assert_eq!(bot.upgrade.effects().len(), 1);
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_survives_a_restart() {
    let mut bot = TestBot::start().await;
    let root = bot.slack.says("ana", "experiments", START, None).unwrap();
    bot.delivered(&root).await;
    bot.restart().await;
    let thread = Thread::new(&bot, "experiments", root.clone());
    answered(&bot, &thread, 1).await;
    thread.press("bo", "Start experiment").await;
    bot.restart().await;
    let thread = Thread::new(&bot, "experiments", root);
    answered(&bot, &thread, 2).await;
    assert_eq!(bot.upgrade.effects().len(), 1);
    assert_eq!(ever_said(&bot), 2);
    bot.finish().await;
}
