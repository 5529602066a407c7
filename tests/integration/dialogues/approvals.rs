//! Cards: who may press, what becomes of them.

use insta::assert_snapshot;

use crate::support::bot::TestBot;

#[tokio::test(flavor = "multi_thread")]
async fn starting_an_experiment_waits_for_a_person() {
    let bot = TestBot::start().await;
    let mut thread = bot.user("ana").says("start the Math Hints experiment").await;
    assert_snapshot!(thread.heard(), @"");
    assert_eq!(bot.upgrade.experiment("Math Hints").unwrap()["state"], "inactive", "nothing happens before a click");

    thread.clicks("bo", "Start experiment").await;
    assert_snapshot!(thread.heard(), @"");
    assert_eq!(bot.upgrade.experiment("Math Hints").unwrap()["state"], "running");
    assert_eq!(bot.upgrade.effects().len(), 1);
    bot.finish().await;
}
