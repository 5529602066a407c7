//! The calls to the platform that an approval takes, and when names and the overview of all experiments are read.

use countersign::experiments::upgrade::known::MAX_AGE;
use insta::assert_snapshot;

use crate::support::bot::{BOUND, TestBot};

/// The calls to the platform since the last time, without ids, each with the length of its answer.
fn calls(bot: &TestBot) -> Vec<(String, u64)> {
    let entries = bot.upgrade.takes_ledger().into_iter();
    let call = |path: &str| match path.rsplit_once('/') {
        Some((before, id)) if id.len() == 36 => format!("{before}/…"),
        _ => path.to_owned(),
    };
    entries.map(|entry| (format!("{} {}", entry.method, call(&entry.path)), entry.answer_bytes)).collect()
}

fn in_words(calls: &[(String, u64)]) -> String {
    calls.iter().map(|(call, _)| call.as_str()).collect::<Vec<_>>().join("\n")
}

/// Ana asks for the start of an experiment and Bo approves it; the card, and all calls to the platform.
async fn starts(bot: &TestBot, name: &str) -> (String, Vec<(String, u64)>) {
    calls(bot);
    let mut thread = bot.user("ana").says(&format!("start {name}")).await;
    let card = thread.heard();
    thread.clicks("bo", "Start experiment").await;
    assert!(thread.heard().contains(&format!("Started “{name}”")), "{card}");
    bot.settled().await;
    (card, calls(bot))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_takes_six_calls_to_the_platform() {
    let bot = TestBot::start().await;
    bot.upgrade.has("First One", "inactive");
    bot.upgrade.has("Second One", "inactive");
    let (_, mut filling) = starts(&bot, "First One").await;
    filling.sort(); // two of them at the same time
    assert_snapshot!(in_words(&filling), @"
    GET /api/experiments
    GET /api/experiments/contextMetaData
    GET /api/experiments/names
    GET /api/experiments/single/…
    GET /api/experiments/single/…
    POST /api/experiments/paginated
    POST /api/experiments/paginated
    POST /api/experiments/state
    POST /api/stats/enrollment
    ");
    // With names and overview in memory: the experiment and its enrolled users for the card; then the experiment again
    // before it is changed, with the others that are running and paused, and the change.
    let (card, rest) = starts(&bot, "Second One").await;
    assert_snapshot!(in_words(&rest), @"
    GET /api/experiments/single/…
    POST /api/stats/enrollment
    GET /api/experiments/single/…
    POST /api/experiments/paginated
    POST /api/experiments/paginated
    POST /api/experiments/state
    ");
    assert!(card.contains("“*First One*”, running, at SelectSection"), "our own change is known: {card}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_waits_for_the_names_as_long_as_there_are_requests() {
    let bot = TestBot::start().await;
    bot.upgrade.has("First One", "inactive");
    bot.upgrade.has("Second One", "inactive");
    starts(&bot, "First One").await;
    bot.clock.advance(MAX_AGE * 5 / 6);
    let names = bot.upgrade.holds_next_answer("/experiments/names");
    let (card, _) = starts(&bot, "Second One").await;
    assert!(card.contains("Start “Second One”?"), "the answer has not arrived yet: {card}");
    tokio::time::timeout(BOUND, names.arrived()).await.expect("they are read ahead");
    names.let_go();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_calls_of_an_approval_do_not_grow_with_the_number_of_experiments() {
    let mut all = Vec::new();
    for others in [10, 1_000] {
        let bot = TestBot::start().await;
        for number in 0..others {
            bot.upgrade.has(&format!("Other {number}"), "inactive");
        }
        bot.upgrade.has("First One", "inactive");
        bot.upgrade.has("Second One", "inactive");
        let (_, filling) = starts(&bot, "First One").await;
        let largest = filling.iter().map(|(_, bytes)| *bytes).max();
        assert!(largest > Some(500 * others), "all of them are read once: {filling:?}");
        let mut calls = starts(&bot, "Second One").await.1;
        calls.sort(); // some are made at the same time
        all.push(calls);
    }
    assert_eq!(all[0], all[1], "the same calls, with answers of the same length");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_somebody_else_changes_is_noticed() {
    let bot = TestBot::start().await;
    starts(&bot, "Math Hints").await;

    bot.upgrade.has("Brand New", "inactive");
    starts(&bot, "Brand New").await; // a name that is not in memory

    bot.upgrade.has_anew("Brand New", "inactive");
    starts(&bot, "Brand New").await; // another experiment with that name

    bot.upgrade.has_anew("Brand New", "inactive");
    bot.upgrade.has("Rival", "enrolling");
    let rival = "“*Rival*”, running, at SelectSection";
    assert!(!bot.user("ana").answer("start Brand New").await.contains(rival), "the overview is in memory");
    bot.clock.advance(MAX_AGE);
    let mut thread = bot.user("ana").says("start Brand New").await;
    assert!(thread.heard().contains(rival), "it is read again");

    bot.upgrade.has_anew("Brand New", "inactive");
    thread.clicks("bo", "Start experiment").await;
    assert_snapshot!(thread.in_short(), @"
    *Start “Brand New”*
    ❌ “*Brand New*” no longer exists, so nothing was changed.
    Approved by @bo · ‹time›
    *Status*  inactive → *running*
    Asked by @ana · digest `‹id›`
    [Show all]
    ---
    @ana, @bo *Start “Brand New”* didn't work. “*Brand New*” no longer exists, so nothing was changed.
    [List experiments]
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_is_not_known_yet_is_looked_up_before_it_is_denied() {
    let bot = TestBot::start().await;
    starts(&bot, "Math Hints").await;
    bot.upgrade.has("Typed Yes Study", "inactive");
    calls(&bot);
    let card = bot.user("ana").answer("start Typed Yes Study").await;
    assert!(card.contains("Start “Typed Yes Study”?"), "its last word is no noun: {card}");
    let names = |calls: &[(String, u64)]| calls.iter().filter(|(call, _)| call.ends_with("/experiments/names")).count();
    assert_eq!(names(&calls(&bot)), 1);

    let card = bot.user("ana").answer("show Typed Yes Study in short").await;
    assert!(card.contains("Typed Yes Study"), "{card}");
    assert_eq!(names(&calls(&bot)), 0, "what is known is not looked up again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clause_is_not_denied_as_a_name() {
    let bot = TestBot::start().await;
    for said in
        ["how long is it open?", "halt all of them", "cancel all simulations", "how many complaints did we get?"]
    {
        let answer = bot.user("ana").answer(said).await;
        assert!(!answer.contains("No experiment is called"), "{said}: {answer}");
    }
}
