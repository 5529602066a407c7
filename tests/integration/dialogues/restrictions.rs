//! What is asked for with a restriction: it is on the card, or it is told and nothing is done.

use crate::support::bot::TestBot;

#[tokio::test(flavor = "multi_thread")]
async fn a_name_is_found_in_the_middle_of_what_is_said_about_it() {
    let bot = TestBot::start().await;
    for said in ["hey team, let's start math hints right now!", "please start the Math Hints experiment for me"] {
        let mut thread = bot.user("ana").says(said).await;
        let heard = thread.heard();
        assert!(heard.contains("Math Hints") && heard.contains("[Start experiment]"), "{said}: {heard}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restriction_is_never_gone_from_a_card() {
    let bot = TestBot::start().await;
    for (said, told) in [
        ("start Math Hints but only with half of the users", "half of the users"),
        ("stop Running Test for class 5B only", "for class 5B only"),
        ("delete the enrollments of Running Test", "enrollments"),
        ("archive Chat Tone, but not before Friday", "before Friday"),
    ] {
        let mut thread = bot.user("ana").says(said).await;
        let heard = thread.heard();
        assert!(heard.contains(told) && heard.contains("Nothing was changed."), "{said}: {heard}");
        assert!(!heard.contains("[Cancel request"), "no card: {heard}");
    }
}
