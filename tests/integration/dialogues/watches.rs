//! Watches and digests, and enrollment over time.

use std::time::Duration;

use serde_json::json;
use tokio::time::timeout;

use super::scripted::{bot_with_model, finish};
use crate::support::{
    bot::{TestBot, eventually},
    thread::Thread,
};

const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// The time after which a look is taken for one that failed.
const SLOW_LOOK: Duration = Duration::from_secs(10);

/// Waits until the bot says this in the thread by itself.
async fn speaks_up(bot: &TestBot, thread: &Thread<'_>, words: &str) {
    let says_it = || thread.messages().iter().any(|message| message.words().contains(words));
    // A look that the busy machine made too slow is repeated when more time has passed.
    for _ in 0..5 {
        if timeout(SLOW_LOOK, eventually(words, says_it)).await.is_ok() {
            break;
        }
        bot.clock.advance(2 * MINUTE);
    }
    eventually(words, says_it).await;
    bot.settled().await;
}

/// The number of messages of the bot in a thread with these words.
fn count(thread: &Thread<'_>, words: &str) -> usize {
    thread.messages().iter().filter(|message| message.words().contains(words)).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_number_of_users_is_told_once_when_it_is_reached() {
    let bot = TestBot::start().await;
    bot.upgrade.has("Trial", "enrolling");
    let mut thread = bot.user("ana").says("tell me when Trial reaches 30 users").await;
    let heard = thread.heard();
    assert!(heard.contains("I'll tell you here when *Trial* reaches 30 users. It has 0 now."), "{heard}");
    assert!(bot.upgrade.effects().is_empty(), "it only reads");

    // Once for the answer, and once for the first look, which would otherwise come while they enrol.
    let counts =
        || bot.upgrade.ledger().iter().filter(|entry| entry.path.ends_with("/stats/enrollment/detail")).count();
    eventually("the first look", || counts() >= 2).await;
    bot.upgrade.enrolls("Trial", 40);
    bot.clock.advance(2 * MINUTE);
    speaks_up(&bot, &thread, "reached 30 users (40 enrolled").await;
    assert!(thread.last().contains("Asked for by @ana"), "{}", thread.last());
    for _ in 0..5 {
        bot.clock.advance(2 * MINUTE);
        bot.settled().await;
    }
    assert_eq!(count(&thread, "reached 30 users"), 1);
    let heard = bot.user("ana").answer("what are you watching?").await;
    assert!(heard.contains("I'm not watching anything"), "{heard}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_is_told_also_after_a_restart() {
    let mut bot = TestBot::start().await;
    let root = bot.user("ana").asks("let me know when Math Hints starts").await.root.clone();
    bot.user("ana").asks("start Math Hints").await.clicks("bo", "approve").await;
    bot.stop().await;
    bot.clock.advance(2 * MINUTE);
    bot.run().await;
    let thread = Thread::new(&bot, "experiments", root);
    speaks_up(&bot, &thread, "has started").await;
    assert_eq!(count(&thread, "has started"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn watches_are_listed_and_stopped_by_a_button_and_by_words() {
    let bot = TestBot::start().await;
    let mut thread = bot.user("ana").asks("tell me when Math Hints ends").await;
    thread.says("ana", "@countersign tell me if the split of Lesson Video Hints looks wrong").await;
    let heard = thread.heard();
    assert!(heard.contains("if the split of *Lesson Video Hints* looks wrong"), "{heard}");
    assert!(heard.contains("At most 1 in 100"), "the false-alarm rate is said: {heard}");
    thread.says("ana", "@countersign what are you watching?").await;
    let heard = thread.heard();
    assert!(heard.contains("when *Math Hints* ends") && heard.contains("*Lesson Video Hints* looks wrong"), "{heard}");
    let told = bot.user("ana").types("/upgrade watches").await;
    assert!(told.contains("when *Math Hints* ends"), "{told}");

    thread.clicks("ana", "Stop watching Math Hints").await;
    assert!(thread.heard().contains("I stopped watching *Math Hints*."), "{}", thread.last());
    thread.says("ana", "@countersign stop watching Lesson Video Hints").await;
    assert!(thread.heard().contains("I stopped watching *Lesson Video Hints*."), "{}", thread.last());
    let told = bot.user("ana").types("/upgrade watches").await;
    assert!(told.contains("I'm not watching anything"), "{told}");
    assert!(bot.upgrade.effects().is_empty(), "nothing was stopped on the platform");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_digest_comes_every_week_until_it_is_stopped() {
    let bot = TestBot::start().await;
    bot.upgrade.has("Trial", "enrolling");
    let mut thread = bot.user("ana").says("post a digest here every Monday 9am").await;
    let heard = thread.heard();
    assert!(heard.contains("I'll post a digest in this thread every Monday at 9:00 AM"), "{heard}");
    bot.clock.advance(7 * DAY);
    speaks_up(&bot, &thread, "Running experiments").await;
    assert!(thread.last().contains("*Trial*: 0 users"), "{}", thread.last());
    bot.clock.advance(7 * DAY);
    eventually("a second digest", || count(&thread, "Running experiments") == 2).await;
    bot.settled().await;
    assert!(thread.last().contains("*Trial*: 0 users, 0 new"), "{}", thread.last());
    thread.says("ana", "@countersign stop the digest").await;
    assert!(thread.last().contains("I stopped the digest."), "{}", thread.last());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_digest_is_posted_in_the_thread_in_which_it_is_asked_for_until_it_is_forgotten() {
    let (bot, mut thread) = TestBot::hears("ana", "show Math Hints").await;
    thread.skip();
    thread.says("ana", "post a digest here every Monday 9am").await;
    let heard = thread.heard();
    assert!(heard.contains("I'll post a digest in this thread every Monday at 9:00 AM"), "{heard}");
    thread.says("ana", "what are you watching?").await;
    let heard = thread.heard();
    assert!(heard.contains("A digest in this thread every Monday at 9:00 AM"), "{heard}");
    assert!(heard.contains("[Stop the digest]"), "{heard}");
    thread.says("ana", "forget the weekly digest").await;
    let heard = thread.heard();
    assert!(heard.contains("I stopped the digest."), "{heard}");
    let heard = bot.user("ana").answer("what are you watching?").await;
    assert!(heard.contains("I'm not watching anything"), "{heard}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_person_who_is_told_is_you_to_herself() {
    let bot = TestBot::start().await;
    let mut thread = bot.user("ana").asks("tell me when Math Hints ends").await;
    thread.says("ana", "what are you watching?").await;
    let heard = thread.heard();
    assert!(heard.contains("I'll tell you when *Math Hints* ends"), "{heard}");
    thread.says("bo", "@countersign what are you watching?").await;
    let heard = thread.heard();
    assert!(heard.contains("I'll tell ana when *Math Hints* ends"), "{heard}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_experiment_ends_its_watch() {
    let bot = TestBot::start().await;
    let thread = bot.user("ana").asks("tell me when Math Hints starts").await;
    let card = bot.user("ana").asks("delete Math Hints").await;
    card.clicks("bo", "approve").await;
    bot.clock.advance(2 * MINUTE);
    speaks_up(&bot, &thread, "was deleted, so I stopped watching it").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_can_begin_a_watch() {
    let (bot, model) = bot_with_model().await;
    super::unasked::asks_for_tools(&model, "watches");
    model.will_call("watch", json!({ "thing": "Math Hints", "event": "starts" }));
    model.will_say("I will tell you when Math Hints starts.");
    let mut thread =
        bot.user("ana").says("could you keep an eye on math hints for me and shout when it gets going?").await;
    assert!(thread.heard().contains("I will tell you when Math Hints starts."), "{}", thread.last());
    let told = bot.user("ana").types("/upgrade watches").await;
    assert!(told.contains("when *Math Hints* starts"), "{told}");
    finish(bot, model).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn enrollment_is_shown_over_time_and_side_by_side() {
    let bot = TestBot::start().await;
    bot.upgrade.has("Trial", "enrolling");
    bot.upgrade.enrolls("Trial", 10);
    bot.clock.advance(DAY);
    let mut thread = bot.user("ana").says("show enrollment of Trial over time").await;
    let heard = thread.heard();
    assert!(heard.contains("*Trial*: 10 users since"), "{heard}");
    let mut thread = bot.user("ana").says("compare enrollment of Trial and Math Hints").await;
    let heard = thread.heard();
    assert!(heard.contains("*Trial*: 10 users") && heard.contains("*Math Hints*: nobody is enrolled yet."), "{heard}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_student_and_a_digest_in_the_afternoon_are_asked_for() {
    let bot = TestBot::start().await;
    let mut thread = bot.user("ana").says("let me know if Math Hints gets its first student").await;
    let heard = thread.heard();
    assert!(heard.contains("when *Math Hints* reaches 1 user."), "{heard}");
    thread.says("ana", "can you also ping Bo?").await;
    assert!(thread.heard().contains("I post in this thread"), "{}", thread.last());
    thread.says("ana", "send me a summary every friday afternoon").await;
    assert!(thread.heard().contains("every Friday at 3:00 PM"), "{}", thread.last());
    thread.says("ana", "4pm is better").await;
    assert!(thread.heard().contains("every Friday at 4:00 PM"), "{}", thread.last());
    thread.says("ana", "only running ones please").await;
    assert!(thread.heard().contains("It can't be limited"), "{}", thread.last());
    thread.says("ana", "how often do you check?").await;
    assert!(thread.heard().contains("I check everything that is watched every minute"), "{}", thread.last());
}
