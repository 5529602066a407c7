//! Runs of simulations beside changes and each other: analyses after changes, earlier runs, comparisons in progress.

use std::time::Duration;

use countersign::clock::Clock as _;
use countersign_sandbox::bridge::Version;
use insta::assert_snapshot;

use super::simulation::{Transcript, bot_with, finish, has_said, loads};
use crate::support::{
    bot::{TestBot, eventually},
    thread::Thread,
};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Runs the simulation of the thread to its end.
async fn runs(bot: &TestBot, thread: &Thread<'_>) {
    let count = || thread.messages().iter().filter(|message| message.words().contains("Cmax")).count();
    let before = count();
    thread.says("ana", "run it").await;
    thread.clicks("bo", "Run simulation").await;
    eventually("the end of the run", || count() > before).await;
    bot.settled().await;
}

/// The names of the files in the thread.
fn files(bot: &TestBot, thread: &Thread<'_>) -> Vec<String> {
    let ids: Vec<String> = thread.messages().into_iter().flat_map(|message| message.files).collect();
    bot.slack.look(|world| ids.iter().map(|id| world.files[id].name.clone()).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_analysis_after_changes_compares_copies_with_copies() {
    let mut told = Transcript::default();
    let (bot, bridge) = bot_with(Version::V05).await;
    let mut thread = loads(&bot, "demo").await;
    thread.says("ana", "set the dose to 500 mg").await;
    thread.clicks("bo", "Set value").await;
    thread.heard();
    told.says("sensitivity analysis for dose and liver clearance", &mut thread).await;
    thread.clicks("bo", "Run analysis").await;
    eventually("the end of the analysis", || has_said(&thread, "Analyzed")).await;
    bot.settled().await;
    told.note("[Run analysis]", &mut thread);
    let heard = &told.0;
    for row in ["Dose | -10% | -10.0% | -10.0%", "Clearance | +10% | -1.7% | -6.5%"] {
        assert!(heard.contains(row), "as without the change: {row}\n{heard}");
    }
    told.says("which simulations are loaded?", &mut thread).await;
    told.says("what is the dose?", &mut thread).await;
    let home = bot.user("ana").opens_home().await;
    assert!(home.contains("Loaded: *demo*."), "{home}");
    assert_eq!(bridge.simulations().len(), 7, "the copies are there");
    assert_snapshot!(told.0);
    finish(bot, bridge).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_analysis_tells_of_changes_that_others_made() {
    let (bot, bridge) = bot_with(Version::V05).await;
    let mut thread = loads(&bot, "demo").await;
    bridge.changes("demo", "Organism|Weight", 140.0);
    thread.says("ana", "sensitivity analysis for liver clearance").await;
    thread.heard();
    thread.clicks("bo", "Run analysis").await;
    eventually("the end of the analysis", || has_said(&thread, "Analyzed")).await;
    bot.settled().await;
    let heard = thread.heard();
    assert!(heard.contains("Clearance | +10% | -1.7% | -6.5%"), "{heard}");
    assert!(heard.contains("lack the changes made in *demo* since it was loaded."), "{heard}");
    assert!(
        heard.contains("With nothing varied, Cmax is 1.383 mg/L in the copies and 0.8179 mg/L in *demo*."),
        "{heard}"
    );
    finish(bot, bridge).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_compared_with_yesterdays() {
    let mut told = Transcript::default();
    let (bot, bridge) = bot_with(Version::V05).await;
    // At noon, so that a day later is the next day throughout the test.
    let day = i64::try_from(DAY.as_millis()).unwrap();
    let to_noon = day + day / 2 - bot.clock.now().millis() % day;
    bot.clock.advance(Duration::from_millis(to_noon.unsigned_abs()));
    let thread = loads(&bot, "demo").await;
    runs(&bot, &thread).await;
    drop(thread);
    bot.clock.advance(DAY);
    bridge.restart().await;

    let said = "load demo, set the dose to 500 mg, run it, and compare with yesterday's run";
    let mut thread = bot.user("ana").says(said).await;
    told.note(said, &mut thread);
    for button in ["Load model", "Set value", "Run simulation"] {
        thread.clicks("bo", button).await;
    }
    eventually("the comparison", || has_said(&thread, "+400.0%")).await;
    bot.settled().await;
    told.note("[Load model] [Set value] [Run simulation]", &mut thread);
    for said in ["compare it with the run 30 days ago", "compare it with the previous run"] {
        told.says(said, &mut thread).await;
    }
    let files = files(&bot, &thread);
    assert!(files.iter().filter(|name| name.starts_with("concentration-time")).count() >= 2, "{files:?}");
    let date = fancy_regex::Regex::new(r"\d{4}-\d\d-\d\d").unwrap();
    let took = fancy_regex::Regex::new(r"about [0-9.]+ s\b").unwrap();
    assert_snapshot!(took.replace_all(&date.replace_all(&told.0, "‹date›"), "about ‹duration›"));
    finish(bot, bridge).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_an_earlier_run_there_is_nothing_to_compare() {
    let (bot, bridge) = bot_with(Version::V01).await;
    let mut thread = loads(&bot, "demo").await;
    thread.says("ana", "compare it with yesterday's run").await;
    assert_snapshot!(thread.heard(), @"
    I have no finished run of *demo* on record, so there is nothing to compare.
    [Run simulation]
    ");
    runs(&bot, &thread).await;
    thread.heard();
    thread.says("ana", "compare it with yesterday's run").await;
    assert_snapshot!(thread.heard(), @"I have only one finished run of *demo* on record (‹time›), so there is no earlier one to compare it with.");
    finish(bot, bridge).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn impossible_values_get_no_card_and_no_impossible_suggestion() {
    let mut told = Transcript::default();
    for version in [Version::V01, Version::V05] {
        let (bot, bridge) = bot_with(version).await;
        let mut thread = loads(&bot, "demo").await;
        for said in [
            "put the weight at -20 kg",
            "set the body weight to 0 kg",
            "decrease the dose by 200 mg",
            "set the liver volume to -1 L",
            "set the liver volume to 5 mg",
            "set the liver volume to 2 mg",
            "set the dose to -5 L",
            "run it at -1, 2 and 3 L liver volume",
        ] {
            thread.says("ana", said).await;
            told.note(&format!("{said} ({version:?})"), &mut thread);
        }
        assert!(bridge.audit().iter().all(|call| call.tool == "load_simulation"));
        finish(bot, bridge).await;
    }
    assert!(!told.0.contains("[Set value]") && !told.0.contains("[Run 3 values]"), "{}", told.0);
    assert_snapshot!(told.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_changed_or_run_during_a_comparison() {
    let mut told = Transcript::default();
    let (bot, bridge) = bot_with(Version::V05).await;
    bridge.hold_jobs();
    let mut other = loads(&bot, "demo").await;
    other.says("ana", "set the dose to 200 mg").await;
    let thread = bot.user("ana").says("run demo at 2 and 3 L liver volume and compare cmax").await;
    thread.clicks("bo", "Run 2 values").await;
    eventually("the first value", || bridge.parameter("demo", "Organism|Liver|Volume").unwrap().0 == 2.0).await;
    bot.settled().await;
    other.heard();
    other.clicks("bo", "Set value").await;
    told.note("[Set value] on a card from before", &mut other);
    for said in [
        "set the liver volume to 1.8 L",
        "run it",
        "take a snapshot",
        "run it for a population of 10",
        "sensitivity analysis for dose",
        "run it at 100 and 200 mg dose",
    ] {
        told.says(said, &mut other).await;
    }
    assert_eq!(bridge.parameter("demo", "Dose"), Some((100.0, "mg".to_owned())));
    bridge.finish_jobs();
    eventually("the end of the comparison", || has_said(&thread, "Cmax")).await;
    bot.settled().await;
    other.says("ana", "set the liver volume to 1.8 L").await;
    let heard = other.heard();
    assert!(heard.contains("1.5 L → *1.8 L*"), "the value before the comparison: {heard}");
    assert_snapshot!(told.0);
    drop((thread, other));
    finish(bot, bridge).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_during_a_run_is_warned_of_or_refused() {
    let (bot, bridge) = bot_with(Version::V05).await;
    let mut thread = loads(&bot, "demo").await;
    let mut early = bot.user("ana").says("set the dose of demo to 200 mg").await;
    early.heard();
    bridge.hold_jobs();
    thread.says("ana", "run it").await;
    thread.clicks("bo", "Run simulation").await;
    eventually("the run", || bridge.jobs().len() == 1).await;
    bot.settled().await;
    thread.heard();
    early.clicks("bo", "Set value").await;
    let heard = early.heard();
    assert!(heard.contains("A run of *demo* started after this card was posted"), "{heard}");
    thread.says("ana", "set the dose to 300 mg").await;
    let heard = thread.heard();
    assert!(heard.contains("⚠️ A run of demo is in progress."), "{heard}");
    thread.clicks("bo", "Set value").await;
    assert_eq!(bridge.parameter("demo", "Dose"), Some((300.0, "mg".to_owned())), "the card said so");
    bridge.finish_jobs();
    eventually("the end of the run", || has_said(&thread, "Cmax")).await;
    bot.settled().await;
    drop((thread, early));
    finish(bot, bridge).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_population_has_the_units_of_a_run_and_a_chart() {
    let mut told = Transcript::default();
    let (bot, bridge) = bot_with(Version::V05).await;
    let mut thread = loads(&bot, "demo").await;
    runs(&bot, &thread).await;
    thread.heard();
    thread.says("ana", "run it for a population of 50").await;
    thread.heard();
    thread.clicks("bo", "Run population").await;
    eventually("the end of the run", || has_said(&thread, "95th percentile")).await;
    bot.settled().await;
    told.note("[Run population]", &mut thread);
    assert_snapshot!(told.0);
    let files = files(&bot, &thread);
    assert!(files.iter().any(|name| name.starts_with("population")), "{files:?}");
    finish(bot, bridge).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_condition_in_minutes_is_worked_out() {
    let (bot, bridge) = bot_with(Version::V05).await;
    let said = "load the demo model as demo, then run it, and only if tmax is above 90 minutes, set the dose to 50 mg";
    let mut thread = bot.user("ana").says(said).await;
    for button in ["Load model", "Run simulation"] {
        thread.clicks("bo", button).await;
    }
    eventually("the next step", || has_said(&thread, "Next, since tmax is")).await;
    bot.settled().await;
    let heard = thread.heard();
    assert!(heard.contains("Next, since tmax is 2 h (90 minutes = 1.5 h): set the dose to 50 mg"), "{heard}");
    assert!(heard.contains("100 mg → *50 mg*") && !heard.contains("in progress"), "the run is over: {heard}");
    finish(bot, bridge).await;
}
