//! The settings say otherwise who may decide while a card is open.

use std::sync::Arc;

use countersign::conversation::record::notebook::{Notebook, Redaction};
use insta::assert_snapshot;

use crate::support::{
    bot::TestBot,
    thread::{Thread, normalised},
};

/// The lines of the thread's notebook in which somebody presses, decides, or the policy changes.
async fn told(bot: &TestBot, thread: &Thread<'_>) -> String {
    let (team, channel) =
        bot.slack.look(|world| (world.team.clone(), world.channel("experiments").unwrap().id.clone()));
    let id = countersign::ids::ThreadId { team, channel, root: thread.root.clone() };
    let notebook = Notebook::new(bot.store(), Arc::new(bot.clock.clone()), None, Redaction::default());
    let exported = notebook.export(&id).await.unwrap();
    let markdown = String::from_utf8(exported.markdown.bytes).unwrap();
    let of_interest =
        |line: &&str| ["did not count", "policy changed", "approved card"].iter().any(|w| line.contains(w));
    let lines = markdown.lines().filter(of_interest).map(|line| line.split_once(" · ").map_or(line, |(_, what)| what));
    let word = |word: &str| {
        let bare = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        let is_digest = bare.len() == 64 && bare.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_digest { word.replace(bare, "‹digest›") } else { word.to_owned() }
    };
    let lines = lines.map(|line| line.split(' ').map(word).collect::<Vec<_>>().join(" "));
    normalised(&lines.collect::<Vec<_>>().join("\n"))
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_decide_now_is_noted_and_shown_at_the_first_press() {
    let mut bot = TestBot::decided_by(&["U2"]).await;
    let root = bot.user("ana").says("start Math Hints").await.root.clone();
    bot.stop().await;
    bot.config.approvals.approvers = vec!["U3".to_owned()];
    bot.run().await;
    let mut thread = Thread::new(&bot, "experiments", root);
    thread.skip();
    assert_snapshot!(thread.private_answer("bo", "Start experiment").await, @"
    You can't approve or reject this.
    Who can decide: @cy.
    ");
    assert_snapshot!(thread.in_short(), @"
    *Start “Math Hints”?* ⋯
    Asked by @ana · @cy can approve · expires ‹time› · digest `‹id›`
    ⋯
    ");
    thread.clicks("bo", "Edit…").await;
    assert_eq!(thread.heard(), "", "it is noted once");
    thread.says("cy", "yes").await;
    assert_eq!(bot.upgrade.effects().len(), 1);
    assert_snapshot!(told(&bot, &thread).await, @"
    The policy changed in the meantime: under the current settings, other people can decide about card 1. Its digest is now `‹digest›`, no longer `‹digest›`. Who could decide: @U3; one approval was needed.
    **@U3** approved card 1 by typing “yes”.
    ");
}
