//! How fast messages go out, against a workspace that counts as Slack does.

use std::time::Duration;

use countersign::config::Config;
use countersign_sandbox::slack::{Options, faults::Fault};

use crate::support::bot::{Setup, TestBot, eventually};

/// A bot that keeps the limits, in a workspace that has them. The workspace counts by the machine's clock.
async fn paced() -> TestBot {
    let slack = Options { rate_limits: true, ..Options::default() };
    let settings = Box::new(|config: &mut Config| config.slack.rate_limits = true);
    TestBot::with(Setup { slack, settings, ..Setup::default() }).await
}

fn refused(bot: &TestBot) -> usize {
    bot.slack.recorded().calls.iter().filter(|call| call.status == 429).count()
}

fn posts(bot: &TestBot) -> usize {
    bot.slack.ledger().calls("chat.postMessage").iter().filter(|call| call.status == 200).count()
}

/// Mentions the bot so often at once, and waits for nothing.
fn crowd(bot: &TestBot, channel: &str, threads: usize) {
    for _ in 0..threads {
        bot.slack.says("ana", channel, "@countersign is UpGrade running?", None).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_is_answered_in_turn_and_slack_never_has_to_say_wait() {
    let bot = paced().await;
    crowd(&bot, "experiments", 8);
    eventually("the first answers", || posts(&bot) == 5).await;
    crowd(&bot, "general", 3);
    eventually("another channel, meanwhile", || posts(&bot) == 8).await;
    bot.settled().await;
    assert_eq!(posts(&bot), 11);
    assert_eq!(refused(&bot), 0, "we waited by ourselves");
}

#[tokio::test(flavor = "multi_thread")]
async fn retry_after_holds_up_one_channel_and_nobody_else() {
    let bot = paced().await;
    bot.slack.inject(Fault::RateLimit { method: "chat.postMessage".into(), calls: 1, retry_after: 30 });
    let at_first = bot.slack.says("ana", "experiments", "@countersign is UpGrade running?", None).unwrap();
    eventually("Slack to ask for a wait", || refused(&bot) == 1).await;
    crowd(&bot, "experiments", 1);
    let mut direct = bot.slack.says("bo", "D2", "is UpGrade running?", None).unwrap();
    eventually("an answer elsewhere", || bot.slack.thread("D2", &direct).len() == 2).await;
    bot.settled_but_for(2).await; // Slack shows a message before the bot has recorded it, and then the clock jumps
    assert_eq!(posts(&bot), 1, "the channel waits");
    assert_eq!(refused(&bot), 1, "nobody asks before the time");

    bot.clock.advance(Duration::from_secs(31));
    eventually("all answers", || posts(&bot) == 3).await;
    assert_eq!(bot.slack.thread("experiments", &at_first).len(), 2);
    bot.settled().await;
    assert_eq!(bot.slack.ledger().calls("conversations.replies").len(), 0, "a refused post needs no search");
    direct = bot.slack.says("bo", "D2", "thanks", Some(&direct)).unwrap();
    bot.delivered(&direct).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_goes_out_although_the_line_for_progress_is_full() {
    let bot = paced().await;
    let thread = bot.user("ana").says("start Math Hints").await;
    bot.slack.inject(Fault::RateLimit { method: "chat.postMessage".into(), calls: 1, retry_after: 60 });
    crowd(&bot, "experiments", 1);
    eventually("Slack to ask for a wait", || refused(&bot) == 1).await;
    thread.press("bo", "Start experiment").await;
    eventually("the card as the record", || thread.messages()[0].words().contains("✅ *Started")).await;
    bot.clock.advance(Duration::from_secs(61));
}
