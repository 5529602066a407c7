//! Slash commands, their likes in threads, direct messages, and to whom the bot listens.

use std::time::Duration;

use countersign::sandbox::upgrade::faults::Down;
use insta::assert_snapshot;

use crate::support::bot::TestBot;

#[tokio::test(flavor = "multi_thread")]
async fn the_platform_at_a_glance() {
    let bot = TestBot::start().await;
    let ana = bot.user("ana");
    assert_snapshot!(ana.types("/upgrade status").await);
    assert_snapshot!(ana.types("/upgrade list").await);
    assert_snapshot!(ana.types("/upgrade list running").await);
    assert_snapshot!(ana.types("/upgrade list livehint-ai").await);
    assert_snapshot!(ana.types("/upgrade list zebra").await);
    assert_snapshot!(ana.types("/upgrade show math hints").await);
    assert_snapshot!(ana.types("/upgrade show Maht Hints").await);
    assert_snapshot!(ana.types("/upgrade help").await);
    assert_eq!(ana.types("/upgrade").await, ana.types("/upgrade help").await);
    assert!(bot.slack.thread("experiments", &"0".into()).is_empty());
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_that_is_not_understood_is_answered_with_one_that_would_be() {
    let bot = TestBot::start().await;
    let ana = bot.user("ana");
    assert_snapshot!(ana.types("/upgrade stauts").await);
    assert_snapshot!(ana.types("/upgrade runs").await);
    assert_snapshot!(ana.types("/upgrade explode").await);
    assert_snapshot!(ana.types("/upgrade show").await);
    assert_snapshot!(ana.types("/countersign pending please").await);
    assert_snapshot!(ana.types("/countersign <!channel> *x*").await);
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_and_what_was_done() {
    let bot = TestBot::start().await;
    let (ana, bo) = (bot.user("ana"), bot.user("bo"));
    assert_snapshot!(bo.types("/countersign pending").await);
    assert_snapshot!(bo.types("/countersign runs").await);
    assert_snapshot!(bo.types("/countersign mine").await);
    let thread = ana.says("start Math Hints").await;
    thread.says("ana", "stop Lesson Video Hints").await;
    thread.clicks("bo", "Start experiment").await;
    assert_snapshot!(bo.types("/countersign pending").await);
    assert_eq!(bo.types("/upgrade pending").await, bo.types("/countersign pending").await);
    assert_snapshot!(bo.types("/countersign runs").await);
    assert_snapshot!(ana.types("/countersign mine").await);
    assert_snapshot!(bo.types("/countersign mine").await);
    assert_snapshot!(bo.types("/countersign help").await);
    assert_snapshot!(bo.types("/countersign settings").await);
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_leads_to_the_card() {
    let bot = TestBot::start().await;
    let thread = bot.user("ana").says("start Math Hints").await;
    bot.user("bo").types("/countersign pending").await;
    let card = thread.with_button("Start experiment");
    let told = bot.slack.ephemerals("bo");
    let expected = format!(
        "https://learning-lab.slack.com/archives/C1/p{}?thread_ts={}&amp;cid=C1|open the card",
        card.as_str().replace('.', ""),
        thread.root
    );
    assert!(told[0].words().contains(&expected), "{}", told[0].words());
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_asked_for_elsewhere_is_shown_to_nobody_else() {
    let bot = TestBot::start().await;
    bot.user("ana").says("start Math Hints").await;
    bot.user("cy").writes("stop Lesson Video Hints").await;
    let everything = async |name: &'static str, channel: &'static str| {
        let person = bot.user(name);
        let pending = person.types_in(channel, "/countersign pending").await;
        let runs = person.types_in(channel, "/countersign runs").await;
        let mine = person.types_in(channel, "/countersign mine").await;
        [pending.contains("Math"), runs.contains("Math"), mine.contains("Math")]
            .into_iter()
            .chain([pending.contains("Lesson"), runs.contains("Lesson"), mine.contains("Lesson")])
            .map(|seen| if seen { 'x' } else { '.' })
            .collect::<String>()
    };
    //                                     Math Hints: pending, runs, mine; then Lesson Video Hints
    assert_eq!(everything("bo", "experiments").await, "xx....", "asked for in this channel");
    assert_eq!(everything("bo", "general").await, "......", "asked for somewhere else");
    assert_eq!(everything("ana", "general").await, "xxx...", "her own");
    assert_eq!(everything("cy", "general").await, "...xxx", "his own, in his direct messages");
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_platform_that_is_away_is_said_in_a_command_too() {
    let bot = TestBot::start().await;
    let ana = bot.user("ana");
    bot.upgrade.is_down(Some(Down::Unavailable));
    assert_snapshot!(ana.types("/upgrade status").await);
    bot.upgrade.is_down(None);
    ana.types("/upgrade status").await;
    ana.types("/upgrade list livehint-ai").await;
    bot.upgrade.is_down(Some(Down::Unavailable));
    bot.clock.advance(Duration::from_secs(180));
    assert_snapshot!(ana.types("/upgrade status").await);
    assert_snapshot!(ana.types("/upgrade list livehint-ai").await);
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_thread_a_mention_does_what_a_command_does_elsewhere() {
    let bot = TestBot::start().await;
    let mut thread = bot.user("ana").says("start Math Hints").await;
    thread.heard();
    thread.says("bo", "@countersign status").await;
    assert_snapshot!(thread.told("bo"));
    thread.says("bo", "@countersign cancel").await;
    assert_snapshot!(thread.told("bo"));
    assert_eq!(thread.heard(), "", "nothing changed");
    thread.says("ana", "stop Lesson Video Hints").await;
    thread.heard();
    thread.says("ana", "@countersign cancel!").await;
    assert_snapshot!(thread.told("ana"));
    assert!(thread.heard().contains("Withdrawn by @ana"));
    thread.says("ana", "@countersign Status?").await;
    assert_snapshot!(thread.told("ana"));
    assert_eq!(bot.done_to_platform(), [""; 0]);
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_a_question_is_open_the_words_are_its_answer() {
    let bot = TestBot::start().await;
    let mut thread = bot.user("ana").writes("create an experiment").await;
    thread.heard();
    thread.says("ana", "cancel").await;
    assert_snapshot!(thread.heard());
    assert_eq!(thread.told("ana"), "");
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_can_be_written_to_directly() {
    let bot = TestBot::start().await;
    let mut thread = bot.user("ana").writes("start Math Hints").await;
    assert_snapshot!(thread.heard(), @"
    *Start “Math Hints”?*
    *Status*  inactive → *enrolling (running)*
    *Context*  `assign-prog`
    *Conditions*  control 50%, variant 50%
    *Decision points*  SelectSection / absolute_value_plot_equality
    Asked by @ana · anyone in this channel may decide · until ‹time› · digest `‹id›`
    [Start experiment] [Don't start]
    ");
    thread.clicks("ana", "Start experiment").await;
    assert_snapshot!(thread.heard(), @"
    *Start “Math Hints”?*
    *Status*  inactive → *enrolling (running)*
    *Context*  `assign-prog`
    *Conditions*  control 50%, variant 50%
    *Decision points*  SelectSection / absolute_value_plot_equality
    Approved by @ana · ‹time›
    ✅ Started “Math Hints”: it is enrolling now.
    digest `‹id›`
    ---
    @ana “*Math Hints*”: done. What next?
    [Undo: stop it again] [Show details]
    ");
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_listens_in_its_own_threads_and_nowhere_else() {
    let bot = TestBot::start().await;
    let mut elsewhere = bot.user("ana").says_in("experiments", "shall we start Math Hints?").await;
    elsewhere.says("bo", "yes").await;
    elsewhere.says("bo", "start Math Hints").await;
    assert_eq!(elsewhere.heard(), "", "talk to somebody else");

    elsewhere.says("ana", "@countersign is UpGrade running?").await;
    assert!(elsewhere.heard().contains("6.5.0"), "a mention opens it");
    assert_eq!(elsewhere.messages().len(), 1, "what was said before was for somebody else");
    elsewhere.says("bo", "list experiments").await;
    assert!(elsewhere.heard().contains("6 experiments"), "no mention is needed any more");
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_does_not_answer_itself() {
    let bot = TestBot::start().await;
    let mut thread = bot.user("ana").says("list experiments").await;
    thread.says("ana", "start Math Hints").await;
    thread.clicks("ana", "Start experiment").await;
    thread.heard();
    let deliveries = bot.slack.recorded().deliveries;
    let of_ours = |kind: &str| deliveries.iter().filter(|d| d.payload["event"]["subtype"] == kind).count();
    assert!(of_ours("message_changed") > 0, "edits of our own messages are delivered to us");
    assert_eq!(thread.messages().len(), 3, "a table, a record, a reply");
    bot.finish().await;
}
