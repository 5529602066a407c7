//! The bot is stopped and comes back.

use insta::assert_snapshot;

use crate::support::{
    bot::{TestBot, eventually},
    thread::Thread,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_card_that_was_open_still_works() {
    let mut bot = TestBot::start().await;
    let root = {
        let thread = bot.user("ana").says("start Math Hints").await;
        assert!(thread.last().contains("[Start experiment]"));
        thread.root.clone()
    };
    bot.restart().await;
    let mut thread = Thread::new(&bot, "experiments", root);
    thread.skip();
    assert_snapshot!(thread.outcome("bo", "Start experiment").await, @"‹Math Hints is started, as bo approved›");
    assert_eq!(bot.upgrade.effects().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_half_told_wish_is_remembered() {
    let mut bot = TestBot::start().await;
    let root = bot.user("ana").says("create experiment Foo").await.root;
    bot.restart().await;
    let mut thread = Thread::new(&bot, "experiments", root);
    thread.skip();
    thread.says("ana", "assign-prog").await;
    assert!(thread.heard().contains("I need a decision point"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_said_meanwhile_is_heard_afterwards() {
    let mut bot = TestBot::start().await;
    let root = bot.user("ana").says("is UpGrade running?").await.root;
    bot.stop().await;
    let ts = bot.slack.says("ana", "experiments", "start Math Hints", Some(&root)).unwrap();
    bot.run().await;
    bot.delivered(&ts).await;
    bot.settled().await;
    let thread = Thread::new(&bot, "experiments", root);
    assert!(thread.last().contains("[Start experiment]"), "{}", thread.last());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_whose_answer_was_lost_is_told_by_the_next_process() {
    let mut bot = TestBot::start().await;
    bot.upgrade.loses_next_answer();
    let root = {
        let thread = bot.user("ana").says("start Math Hints").await;
        thread.press("bo", "Start experiment").await;
        eventually("the change", || !bot.upgrade.effects().is_empty()).await;
        thread.root.clone()
    };
    bot.restart().await;
    bot.clock.advance(std::time::Duration::from_secs(10));
    bot.settled().await;
    let mut thread = Thread::new(&bot, "experiments", root);
    assert_snapshot!(thread.in_short(), @"‹Math Hints is started, as bo approved›");
    assert_eq!(bot.upgrade.effects().len(), 1);
}
