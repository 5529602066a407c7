//! The answer of a language model, which people see while it is written.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use countersign::config::Config;
use countersign_sandbox::{
    model::SandboxModel,
    slack::{
        faults::{Fault, Loss},
        world::message::{Message, StreamState},
    },
};

use super::scripted::{answers_at_once, asking, finish};
use crate::support::{
    bot::{Setup, TestBot, eventually},
    thread::Thread,
};

const ANSWER: &str = "A decision point is the place in an app where a condition is asked for. It has a site and a \
                      target, and each user gets one condition there, which stays the same until the experiment ends.";

/// The first words of the answer, which are sent before the rest of it is.
const FIRST: &str = "A decision point is the place";

/// The last word, which nobody sees before the answer is complete.
const LAST: &str = "ends.";

/// A bot whose answers are streamed, and a model that holds back the second half of them until it is let go.
async fn bot(settings: impl FnOnce(&mut Config) + 'static) -> (TestBot, SandboxModel, Arc<AtomicBool>) {
    let model = SandboxModel::start(0).await.unwrap();
    let ask = asking(&model);
    let settings = Box::new(move |config: &mut Config| {
        ask(config);
        config.slack.streaming = true;
        config.model.timeout = Duration::from_secs(20);
        config.model.attempts = 2;
        settings(config);
    });
    let bot = TestBot::with(Setup { settings, ..Setup::default() }).await;
    let goes_on = Arc::new(AtomicBool::new(false));
    let seen = goes_on.clone();
    model.holds_rest_until(move || seen.load(Ordering::SeqCst));
    (bot, model, goes_on)
}

/// ana asks something, and nobody waits for the answer.
async fn asked<'a>(bot: &'a TestBot, text: &str) -> Thread<'a> {
    let ts = bot.slack.says("ana", "experiments", &format!("@countersign {text}"), None).unwrap();
    bot.delivered(&ts).await;
    Thread::new(bot, "experiments", ts)
}

/// The only message of the bot, once it has these words and is still written.
async fn streamed(thread: &Thread<'_>, words: &str) -> Message {
    let is_written = |message: &Message| message.stream == Some(StreamState::InProgress);
    let only = || thread.messages().into_iter().find(|message| is_written(message) && message.words().contains(words));
    eventually("the first words", || only().is_some()).await;
    assert_eq!(thread.messages().len(), 1);
    only().unwrap()
}

fn calls(bot: &TestBot, method: &str) -> usize {
    bot.slack.ledger().calls(method).len()
}

/// The thread has one message of the bot, which is complete.
async fn ends_in_one_message(bot: &TestBot, thread: &Thread<'_>, words: &str) {
    bot.settled().await;
    let messages = thread.messages();
    assert_eq!(messages.len(), 1, "{messages:#?}");
    assert!(messages[0].words().contains(words), "{}", messages[0].words());
    assert_ne!(messages[0].stream, Some(StreamState::InProgress));
}

#[tokio::test(flavor = "multi_thread")]
async fn words_appear_before_the_model_is_finished() {
    let (bot, model, goes_on) = bot(|_| ()).await;
    answers_at_once(&model, ANSWER);
    let thread = asked(&bot, "tell me something about the place where it happens").await;
    let first = streamed(&thread, FIRST).await;
    assert!(!first.words().contains(LAST), "{}", first.words());
    goes_on.store(true, Ordering::SeqCst);
    ends_in_one_message(&bot, &thread, ANSWER).await;
    assert_eq!(thread.messages()[0].ts, first.ts, "the answer takes the place of its draft");
    let called = ["chat.startStream", "chat.stopStream", "chat.postMessage"].map(|method| calls(&bot, method));
    assert_eq!(called, [1, 1, 0]);
    finish(bot, model).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_is_not_true_is_replaced() {
    let (bot, model, goes_on) = bot(|_| ()).await;
    answers_at_once(&model, "I started Math Hints a moment ago, as you asked, and it is enrolling users now.");
    let thread = asked(&bot, "what do you think of all this").await;
    streamed(&thread, "I started Math Hints").await;
    goes_on.store(true, Ordering::SeqCst);
    ends_in_one_message(&bot, &thread, "othing was changed").await;
    assert!(!thread.last().contains("I started"), "{}", thread.last());
    finish(bot, model).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_slack_has_no_streams_answers_are_posted_and_it_is_not_asked_again() {
    let (bot, model, goes_on) = bot(|_| ()).await;
    let (method, error) = ("chat.startStream".to_owned(), "unknown_method".to_owned());
    bot.slack.inject(Fault::Fail { method, error, calls: 1 });
    answers_at_once(&model, ANSWER);
    let thread = asked(&bot, "tell me something about the place where it happens").await;
    eventually("an attempt", || calls(&bot, "chat.startStream") == 1).await;
    goes_on.store(true, Ordering::SeqCst);
    ends_in_one_message(&bot, &thread, ANSWER).await;
    answers_at_once(&model, ANSWER);
    thread.says("ana", "@countersign and again, please, the same about that place").await;
    assert_eq!(calls(&bot, "chat.startStream"), 1);
    finish(bot, model).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_slack_has_stopped_becomes_the_answer() {
    let (bot, model, goes_on) = bot(|_| ()).await;
    answers_at_once(&model, ANSWER);
    let thread = asked(&bot, "tell me something about the place where it happens").await;
    streamed(&thread, FIRST).await;
    bot.slack.stops_streams();
    goes_on.store(true, Ordering::SeqCst);
    ends_in_one_message(&bot, &thread, ANSWER).await;
    finish(bot, model).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_whose_start_was_not_answered_is_found_again() {
    let (bot, model, goes_on) = bot(|_| ()).await;
    let method = "chat.startStream".to_owned();
    bot.slack.inject(Fault::LoseAnswer { method, calls: 1, how: Loss::Closed });
    answers_at_once(&model, ANSWER);
    let thread = asked(&bot, "tell me something about the place where it happens").await;
    streamed(&thread, FIRST).await;
    goes_on.store(true, Ordering::SeqCst);
    bot.settled_but_for(1).await; // else the clock would leave the model behind
    bot.sends_everything().await;
    ends_in_one_message(&bot, &thread, ANSWER).await;
    assert_eq!(calls(&bot, "chat.postMessage"), 0);
    finish(bot, model).await;
}
