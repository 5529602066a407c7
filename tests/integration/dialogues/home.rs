//! The Home tab, and the direct messages to those who are named.

use std::time::Duration;

use countersign::sandbox::{slack::faults::Fault, upgrade::faults::Down};
use insta::assert_snapshot;

use crate::support::{
    bot::{TestBot, eventually},
    short::in_short,
};

#[tokio::test(flavor = "multi_thread")]
async fn somebody_new_is_told_how_to_ask() {
    let bot = TestBot::start().await;
    assert_snapshot!(in_short(&bot.user("bo").opens_home().await), @"
    Waiting for you
    Nothing is waiting for you.
    ‹the rest of the tab: all is well, how to ask›
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_channels_card_is_not_told_to_those_who_may_not_be_in_it() {
    let (bot, thread) = TestBot::hears("ana", "start Math Hints").await;
    thread.says("ana", "stop Lesson Video Hints").await;
    assert!(!bot.user("cy").opens_home().await.contains("Hints”"), "nothing is known of cy and this channel");
    thread.clicks("bo", "Start experiment").await;
    assert_snapshot!(in_short(&bot.user("bo").opens_home().await), @"
    Waiting for you
    In <#C1>, a card waits that anyone there may decide · ‹open the card›
    Lately
    • *Start “Math Hints”* was done · Approved by @bo · ‹time› · ‹open the card›
    ‹the rest of the tab: all is well, how to ask›
    ");
    assert_snapshot!(in_short(&bot.user("ana").opens_home().await), @"
    Waiting for you
    Nothing is waiting for you.
    You asked for
    *Stop “Lesson Video Hints”* · anyone in this channel may decide · until ‹time› · ‹open the card›
    [Withdraw]
    Lately
    • *Start “Math Hints”* was done · Approved by @bo · ‹time› · ‹open the card›
    ‹the rest of the tab: all is well, how to ask›
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_named_decides_in_the_home_tab() {
    let bot = TestBot::decided_by(&["S1"]).await;
    let mut thread = bot.user("ana").says("start Math Hints").await;
    assert_snapshot!(in_short(&bot.user("bo").opens_home().await), @"
    Waiting for you
    *Start “Math Hints”?*
    *Status*  inactive → *enrolling (running)*
    *Context*  `assign-prog`
    *Conditions*  control 50%, variant 50%
    *Decision points*  SelectSection / absolute_value_plot_equality
    ‹nobody is enrolled, and nobody else is at the point›
    Asked by @ana · a member of `@approvers` may decide · until ‹time› · digest `‹id›`
    [Start experiment] [Don't start] [Edit…] [Show all]
    Asked for in a thread · ‹open it›
    ---
    ‹the rest of the tab: all is well, how to ask›
    ");
    thread.skip();
    assert_snapshot!(bot.user("bo").presses_at_home("Start experiment").await.lines().next().unwrap_or_default(), @"*Start “Math Hints”*: Approved by @bo · ‹time›");
    assert!(thread.heard().contains("Approved by @bo"));
    assert_eq!(bot.done_to_platform().len(), 1);
    eventually("how it ended", || bot.user("bo").home().contains("was done")).await;
    assert_snapshot!(in_short(&bot.user("bo").home()), @"
    *Start “Math Hints”*: Approved by @bo · ‹time›
    ---
    Waiting for you
    Nothing is waiting for you.
    Lately
    • *Start “Math Hints”* was done · Approved by @bo · ‹time› · ‹open the card›
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
    Waiting for you
    Nothing is waiting for you.
    Lately
    • *Start “Math Hints”* · Withdrawn by @ana · ‹time› · ‹open the card›
    ‹the rest of the tab: all is well, how to ask›
    ");
    assert!(thread.heard().contains("Withdrawn by @ana"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_decided_last_is_on_top() {
    let (bot, first) = TestBot::hears("ana", "start Math Hints").await;
    let second = bot.user("ana").says("stop Lesson Video Hints").await;
    second.clicks("bo", "Don't stop").await;
    bot.clock.advance(Duration::from_secs(60));
    first.clicks("bo", "Don't start").await;
    let home = bot.user("ana").opens_home().await;
    let lately: Vec<_> = home.lines().filter(|line| line.contains("Rejected by @bo")).collect();
    assert!(lately.len() == 2 && lately[0].contains("Math Hints") && lately[1].contains("Lesson Video"), "{home}");
}

#[tokio::test(flavor = "multi_thread")]
async fn long_lists_have_pages() {
    let bot = TestBot::start().await;
    for _ in 0..7 {
        bot.user("ana").says("start Math Hints").await;
    }
    let asked = |home: String| {
        home.lines().filter(|line| line.contains("may decide · until")).map(str::to_owned).collect::<Vec<_>>()
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
    @bo asks you to decide: *Start “Math Hints”?* · open until ‹time›
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
    assert!(bot.user("ana").opens_home().await.contains("does not answer; it did just now, version `6.5.0`"));
}
