//! The Home tab, and the direct messages to those who are named.

use std::time::Duration;

use countersign_sandbox::{faults::Down, slack::faults::Fault};
use insta::assert_snapshot;

use crate::support::{
    bot::{TestBot, eventually},
    short::in_short,
};

#[tokio::test(flavor = "multi_thread")]
async fn somebody_new_is_told_how_to_ask() {
    let bot = TestBot::start().await;
    assert_snapshot!(in_short(&bot.user("bo").opens_home().await), @"
    [New experiment]
    Waiting for you
    Nothing is waiting for you.
    ‹the rest of the tab: all is well, how to ask›
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn running_experiments_are_listed_with_their_enrollment() {
    let bot = TestBot::start().await;
    let home = bot.user("ana").opens_home().await;
    assert!(home.contains("Running experiments"), "{home}");
    assert!(home.contains("*Lesson Video Hints* · `mathstream` · 24 users enrolled"), "{home}");
    assert!(!home.contains("Chat Tone"), "it is not running: {home}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_experiment_begins_in_the_home_tab() {
    let bot = TestBot::start().await;
    bot.user("ana").opens_home().await;
    let user = bot.slack.user("ana");
    let tab = bot.slack.look(|world| world.homes[&user].id.clone());
    bot.slack.clicks_in_view("ana", &tab, "New experiment").await.unwrap();
    eventually("a window", || bot.slack.look(|world| world.stacks.get(&user).is_some_and(|stack| !stack.is_empty())))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn everyone_in_a_channel_that_decides_has_the_buttons_of_its_card() {
    let (bot, mut thread) = TestBot::hears("ana", "start Math Hints").await;
    for name in ["ana", "bo"] {
        let home = bot.user(name).opens_home().await;
        assert!(home.contains("*Start “Math Hints”?*") && home.contains("[Start experiment]"), "{name}: {home}");
        assert!(home.contains("anyone in <#C1> can approve"), "{name}: {home}");
    }
    thread.skip();
    bot.user("bo").presses_at_home("Start experiment").await;
    bot.settled().await;
    assert!(thread.heard().contains("Approved by @bo"));
    assert_eq!(bot.done_to_platform().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_scope_to_see_members_the_tab_links_to_the_channels_card() {
    let (bot, thread) = TestBot::hears("ana", "start Math Hints").await;
    let refused =
        Fault::Fail { method: "conversations.members".to_owned(), error: "missing_scope".to_owned(), calls: 1000 };
    bot.slack.inject(refused);
    thread.says("ana", "stop Lesson Video Hints").await;
    assert!(!bot.user("cy").opens_home().await.contains("Hints”"), "nothing is known of cy and this channel");
    thread.clicks("bo", "Start experiment").await;
    let home = bot.user("bo").opens_home().await;
    assert!(home.contains("In <#C1>, 1 card is waiting; anyone there can approve · ‹open the card›"), "{home}");
    assert!(home.contains("‹Started “Math Hints”› · Approved by @bo"), "{home}");
    assert!(!home.contains("[Start experiment]") && !home.contains("[Stop experiment]"), "{home}");
    let home = bot.user("ana").opens_home().await;
    assert!(home.contains("Nothing is waiting for you."), "{home}");
    assert!(home.contains("‹Stop “Lesson Video Hints”› · anyone in <#C1> can approve · expires"), "{home}");
    assert!(home.contains("[Withdraw]"), "{home}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_named_decides_in_the_home_tab() {
    let bot = TestBot::decided_by(&["S1"]).await;
    let mut thread = bot.user("ana").says("start Math Hints").await;
    assert_snapshot!(in_short(&bot.user("bo").opens_home().await), @"
    [New experiment]
    Waiting for you
    *Start “Math Hints”?*
    *Status*  inactive → *running*
    *Context*  `assign-prog`
    *Conditions*  control 50%, variant 50%
    *Decision points*  SelectSection / absolute_value_plot_equality
    ‹nobody is enrolled, and nobody else is at the point›
    Asked by @ana · a member of `@approvers` can approve · expires ‹time› · digest `‹id›`
    [Start experiment] [Reject…] [Withdraw] [Edit…] [Show all]
    Asked in <#C1> · ‹Start “Math Hints” in its thread›
    ---
    ‹the rest of the tab: all is well, how to ask›
    ");
    thread.skip();
    let outcome = bot.upgrade.holds_next_answer("POST /api/experiments/state");
    bot.user("bo").clicks_at_home("Start experiment").await;
    eventually("the decision", || bot.user("bo").home().contains("Approved by")).await;
    outcome.let_go();
    bot.settled().await;
    let (drawn, bo) = (bot.slack.ledger().calls("views.publish"), bot.slack.user("bo").to_string());
    let first = drawn.iter().find(|call| call.body["user_id"] == bo && call.body.to_string().contains("Approved by"));
    let first = first.expect("the decision is shown at once").body.to_string();
    assert!(first.contains("You'll see the outcome here and in its thread."), "{first}");
    assert!(thread.heard().contains("Approved by @bo"));
    assert_eq!(bot.done_to_platform().len(), 1);
    eventually("how it ended", || bot.user("bo").home().contains("‹Started “Math Hints”›")).await;
    assert_snapshot!(in_short(&bot.user("bo").home()), @"
    ✅ Started “Math Hints”: it is running now. · Approved by @bo · ‹time›
    ---
    [New experiment]
    Waiting for you
    Nothing is waiting for you.
    Recent activity
    • ‹Started “Math Hints”› · Approved by @bo · ‹time›
    ‹the rest of the tab: all is well, how to ask›
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_press_that_comes_too_late_is_answered_in_the_tab() {
    let bot = TestBot::decided_by(&["U2", "U3"]).await;
    let thread = bot.user("ana").says("start Math Hints").await;
    bot.user("bo").opens_home().await;
    bot.slack.inject(Fault::Fail { method: "views.publish".to_owned(), error: "fatal_error".to_owned(), calls: 1000 });
    thread.clicks("cy", "Start experiment").await;
    eventually("a tab that could not be drawn", || bot.slack.ledger().calls("views.publish").len() >= 2).await;
    bot.slack.inject(Fault::Clear);
    bot.user("bo").presses_at_home("Start experiment").await;
    eventually("an answer", || bot.user("bo").home().contains("approved this")).await;
    assert_snapshot!(in_short(&bot.user("bo").home()), @"
    @cy approved this a moment ago; it is done.
    ---
    [New experiment]
    Waiting for you
    Nothing is waiting for you.
    ‹the rest of the tab: all is well, how to ask›
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_withdrawn_in_the_home_tab() {
    let (bot, mut thread) = TestBot::hears("ana", "start Math Hints").await;
    bot.user("ana").opens_home().await;
    thread.skip();
    assert_snapshot!(in_short(&bot.user("ana").presses_at_home("Withdraw").await), @"
    *Start “Math Hints”*: Withdrawn by @ana · ‹time›
    ---
    [New experiment]
    Waiting for you
    Nothing is waiting for you.
    Recent activity
    • ‹Start “Math Hints”› · Withdrawn by @ana · ‹time›
    ‹the rest of the tab: all is well, how to ask›
    ");
    assert!(thread.heard().contains("Withdrawn by @ana"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_decided_last_is_on_top() {
    let (bot, first) = TestBot::hears("ana", "start Math Hints").await;
    let second = bot.user("ana").says("stop Lesson Video Hints").await;
    second.clicks("bo", "Reject…").await;
    bot.clock.advance(Duration::from_secs(60));
    first.clicks("bo", "Reject…").await;
    let home = bot.user("ana").opens_home().await;
    let lately: Vec<_> = home.lines().filter(|line| line.contains("Rejected by @bo")).collect();
    assert!(lately.len() == 2 && lately[0].contains("Math Hints") && lately[1].contains("Lesson Video"), "{home}");
}

#[tokio::test(flavor = "multi_thread")]
async fn long_lists_have_pages() {
    let bot = TestBot::decided_by(&["U2"]).await;
    for _ in 0..7 {
        bot.user("ana").says("start Math Hints").await;
    }
    let asked = |home: String| {
        home.lines().filter(|line| line.contains("can approve · expires")).map(str::to_owned).collect::<Vec<_>>()
    };
    let first = bot.user("ana").opens_home().await;
    assert_eq!(asked(first.clone()).len(), 5, "{first}");
    let second = bot.user("ana").presses_at_home("Older").await;
    assert_eq!(asked(second.clone()).len(), 2, "{second}");
    let back = bot.user("ana").presses_at_home("Newer").await;
    assert_eq!(asked(back), asked(first));
}

#[tokio::test(flavor = "multi_thread")]
async fn those_who_are_named_are_told_once_and_it_is_edited() {
    let mut bot = TestBot::decided_by(&["U2", "S1", "requester"]).await;
    let thread = bot.user("bo").says("start Math Hints").await;
    eventually("a direct message", || !bot.user("cy").direct_messages().is_empty()).await;
    bot.settled().await;
    assert_snapshot!(bot.user("cy").direct_messages(), @"
    @bo asks for your decision: *Start “Math Hints”?* · expires ‹time›
    ‹Open the card›
    ");
    assert_eq!(bot.user("bo").direct_messages(), "", "bo asked");
    assert_eq!(bot.user("ana").direct_messages(), "", "ana is not named");
    drop(thread);
    bot.restart().await;
    bot.settled().await;
    let home = bot.user("cy").opens_home().await;
    assert!(home.contains("[Start experiment]"), "{home}");
    bot.user("cy").presses_at_home("Start experiment").await;
    bot.settled().await;
    assert_snapshot!(bot.user("cy").direct_messages(), @"
    *Start “Math Hints”* · Approved by @cy · ‹time›
    ‹Open the card›
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_platform_that_went_away_is_told_to_whoever_opens_the_tab() {
    let bot = TestBot::start().await;
    assert!(bot.user("ana").opens_home().await.contains("is running, version `6.5.0` (just now)"));
    bot.upgrade.is_down(Some(Down::Unavailable));
    assert!(bot.user("ana").opens_home().await.contains("isn't answering; last answered just now, version `6.5.0`"));
}
