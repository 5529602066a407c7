//! Forms that are sent without anything new in them, and weights with many decimals.

use insta::assert_snapshot;
use serde_json::json;

use super::windows::{opens, sends, window};
use crate::support::bot::TestBot;

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_that_changes_nothing_makes_no_new_card() {
    let (bot, mut thread) = TestBot::asked("ana", "set the weights of Math Hints to 70/30").await;
    for (label, text, place) in
        [("End after this many users", "0", "/ends_after_users"), ("New name", "  ", "/new_name")]
    {
        opens(&bot, &thread, "ana", "Edit…").await;
        let wrong = sends(&bot, "ana", json!({ label: text })).await;
        assert_eq!(wrong, [(place.to_owned(), "You haven't changed anything.".to_owned())].into());
        assert!(window(&bot, "ana").is_some() && thread.heard().is_empty(), "it stays as it is");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_weight_is_sent_as_it_is_shown() {
    let (_bot, mut thread) = TestBot::hears("ana", "set the weights of Math Hints to 99.996/0.004").await;
    let card = thread.heard();
    assert_snapshot!(card.lines().find(|line| line.starts_with("*Conditions*")).unwrap_or(&card), @"*Conditions*  control 50%, variant 50% → *control 99.996%, variant 0.004%*");
    thread.clicked("bo", "Update experiment").await;
    thread.says("ana", "show Math Hints").await;
    let shown = thread.heard();
    assert!(shown.contains("99.996%") && shown.contains("0.004%"), "{shown}");
}
