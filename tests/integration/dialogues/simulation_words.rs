//! Words about simulations that name no domain, and values that name no parameter: the thread tells what is meant.

use countersign_sandbox::bridge::Version;
use insta::assert_snapshot;

use super::simulation::{Transcript, bot_with, finish, has_said, loads};
use crate::support::bot::eventually;

#[tokio::test(flavor = "multi_thread")]
async fn what_the_thread_is_about_decides_between_domains() {
    let mut told = Transcript::default();
    let (bot, bridge) = bot_with(Version::V05).await;
    let mut thread = loads(&bot, "demo").await;
    for said in ["what is the weight?", "what can I change?", "status", "@countersign asdf"] {
        told.says(said, &mut thread).await;
    }
    thread.says("ana", "simulate it").await;
    bridge.hold_jobs();
    thread.clicks("bo", "Run simulation").await;
    thread.skip();
    for said in ["how far are you?", "which jobs are running?", "status", "show the results of demo"] {
        told.says(said, &mut thread).await;
    }
    bridge.finish_jobs();
    eventually("the end of the run", || has_said(&thread, "Cmax")).await;
    bot.settled().await;
    thread.skip();
    thread.says("ana", "show the results of demo").await;
    assert!(thread.heard().contains("VenousBlood | Plasma | Concentration"), "{}", thread.last());
    for said in ["is it done?", "run a population of 100 adults"] {
        told.says(said, &mut thread).await;
    }
    let elsewhere = bot.user("ana").answer("what is cmax?").await;
    assert!(elsewhere.contains("PK figures of the run of *demo*, started "), "{elsewhere}");
    assert_snapshot!(told.0);
    finish(bot, bridge).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_words_are_about_experiments_in_a_thread_about_them() {
    let mut told = Transcript::default();
    let (bot, bridge) = bot_with(Version::V05).await;
    let mut thread = bot.user("ana").says("show Math Hints in short").await;
    thread.skip();
    for said in
        ["what is the weight?", "status", "@countersign asdf", "which simulations are loaded?", "@countersign asdf"]
    {
        told.says(said, &mut thread).await;
    }
    assert_snapshot!(told.0);
    finish(bot, bridge).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn values_are_set_in_the_words_of_people() {
    let mut told = Transcript::default();
    let (bot, bridge) = bot_with(Version::V05).await;
    let mut thread = loads(&bot, "demo").await;
    for said in [
        "set the dose twice as high",
        "simulate it in 50 people",
        "half of the liver clearance",
        "compare cmax at 100, 200 and 400 mg",
        "set the weight",
        "95",
        "what is the liver volume?",
        "2",
        "make it 1800 ml",
    ] {
        told.says(said, &mut thread).await;
    }
    assert_snapshot!(told.0);
    finish(bot, bridge).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dose_by_body_weight_and_a_run_for_a_time_are_asked_about() {
    let mut told = Transcript::default();
    let (bot, bridge) = bot_with(Version::V05).await;
    let mut thread = loads(&bot, "demo").await;
    for said in ["change dose to 2 mg/kg", "run it for 48 hours"] {
        told.says(said, &mut thread).await;
    }
    assert_snapshot!(told.0, @"
    > change dose to 2 mg/kg
    `Dose` is given in mg, a mass. mg/kg is a dose by body weight.
    Give the dose in mg: multiply it by the body weight.

    > run it for 48 hours
    Should the simulated time be 48 hours, or should the run take no longer than 48 hours?
    [set Simulation|EndTime to 48 hours in demo] [run demo with a time limit of 48 hours]
    ");
    finish(bot, bridge).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_with_a_value_is_a_plan_of_two_steps() {
    let mut told = Transcript::default();
    let (bot, bridge) = bot_with(Version::V05).await;
    let mut thread = loads(&bot, "demo").await;
    told.says("run demo with a dose of 300 mg", &mut thread).await;
    told.says("set the dose to 250 mg", &mut thread).await;
    thread.clicks("bo", "Set value").await;
    told.note("[Set value]", &mut thread);
    assert_eq!(bridge.parameter("demo", "Dose"), Some((250.0, "mg".to_owned())));
    assert_snapshot!(told.0);
    finish(bot, bridge).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_value_takes_the_place_of_the_open_card() {
    let mut told = Transcript::default();
    let (bot, bridge) = bot_with(Version::V05).await;
    let mut thread = loads(&bot, "demo").await;
    for said in [
        "set the weight to 80 kg",
        "set the weight to 95 kg",
        "set the body weight to 90 kg in demo",
        "actually set the liver volume to 1800 ml",
        "set the colour of it to blue",
    ] {
        told.says(said, &mut thread).await;
    }
    thread.says("bo", "@countersign set the liver volume to 1.7 L").await;
    told.note("bo: set the liver volume to 1.7 L", &mut thread);
    assert_snapshot!(told.0);
    finish(bot, bridge).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn work_in_progress_is_described_without_ids() {
    let (bot, bridge) = bot_with(Version::V05).await;
    let mut thread = loads(&bot, "demo").await;
    bridge.hold_jobs();
    thread.says("ana", "run demo at 1.5, 2 and 3 L liver volume and compare cmax").await;
    thread.clicks("bo", "Run 3 values").await;
    eventually("the first value", || bridge.jobs().len() == 1).await;
    bot.settled().await;
    thread.skip();
    for said in ["how far are you?", "is anything running?", "where are we?"] {
        thread.says("ana", said).await;
        let heard = thread.heard();
        assert!(
            heard.contains("The comparison of 3 values of `Organism|Liver|Volume` in *demo* is running, for "),
            "{said}: {heard}"
        );
        assert!(heard.contains(": 0 of 3 values are done, now at 1.5 L."), "{said}: {heard}");
        assert!(!heard.contains("‹id›") && !heard.contains("[Cancel job]"), "{said}: {heard}");
    }
    bridge.finish_jobs();
    eventually("the end of the comparison", || has_said(&thread, "Cmax")).await;
    bot.settled().await;
    drop(thread);
    let elsewhere = bot.user("ana").answer("what is cmax?").await;
    assert!(elsewhere.contains("only a comparison of values of *demo*"), "no figures without their value: {elsewhere}");
    finish(bot, bridge).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn values_are_listed_and_set_back_to_those_of_the_file() {
    let (bot, bridge) = bot_with(Version::V05).await;
    let mut thread = loads(&bot, "demo").await;
    thread.says("ana", "show me the values of demo").await;
    let heard = thread.heard();
    assert!(heard.contains("`Organism|Weight`: 70 kg") && heard.contains("`Dose`: 100 mg"), "{heard}");
    thread.says("ana", "set demo back to how it was loaded").await;
    assert!(thread.heard().contains("I have no changes to *demo* on record since it was loaded."), "{}", thread.last());
    thread.says("ana", "set the dose to 200 mg").await;
    thread.clicks("bo", "Set value").await;
    thread.skip();
    thread.says("ana", "set demo back to how it was loaded").await;
    let heard = thread.heard();
    assert!(heard.contains("Changed in *demo* since it was loaded: `Dose` 100 → 200 mg."), "{heard}");
    assert!(heard.contains("[Set Dose back to 100 mg]"), "{heard}");
    thread.clicks("ana", "Set Dose back to 100 mg").await;
    assert!(thread.heard().contains("200 mg → *100 mg*"), "{}", thread.last());
    finish(bot, bridge).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_goes_on_with_the_simulation_that_is_loaded_already() {
    let (bot, bridge) = bot_with(Version::V05).await;
    drop(loads(&bot, "demo").await);
    for answer in ["use it as it is", "[Use it as it is]"] {
        let mut thread = bot.user("ana").says("load the demo model as demo, then set the dose to 200 mg").await;
        let heard = thread.heard();
        assert!(heard.contains("Should I use it as it is?"), "{heard}");
        match answer.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            Some(label) => thread.clicks("ana", label).await,
            None => thread.says("ana", answer).await,
        }
        let heard = thread.heard();
        assert!(heard.contains("I'll use *demo* as it is."), "{answer}: {heard}");
        assert!(heard.contains("100 mg → *200 mg*") && heard.contains("Step 2 of 2."), "{answer}: {heard}");
    }
    finish(bot, bridge).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_without_a_name_is_about_the_last_simulation_of_the_thread() {
    let (bot, bridge) = bot_with(Version::V05).await;
    drop(loads(&bot, "other").await);
    let mut thread = loads(&bot, "demo").await;
    thread.says("ana", "show Math Hints in short").await;
    assert!(thread.heard().contains("Math Hints"), "an experiment is between");
    thread.says("ana", "what is the dose?").await;
    let heard = thread.heard();
    assert!(heard.contains("in *demo* is 100 mg") && !heard.contains("Which simulation?"), "{heard}");
    thread.says("ana", "what is the dose in other?").await;
    assert!(thread.heard().contains("in *other* is 100 mg"));
    thread.says("ana", "what is the body weight?").await;
    let heard = thread.heard();
    assert!(heard.contains("in *other* is 70 kg"), "{heard}");
    finish(bot, bridge).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unlikely_value_is_warned_of_or_refused() {
    let (bot, bridge) = bot_with(Version::V05).await;
    let mut thread = loads(&bot, "demo").await;
    thread.says("ana", "make the subject heavier").await;
    thread.says("ana", "60").await;
    let heard = thread.heard();
    assert!(heard.contains("You asked for a higher value, but 60 kg is below the current 70 kg."), "{heard}");
    thread.says("ana", "set the dose to 1e9 mg").await;
    let heard = thread.heard();
    assert!(heard.contains("100 mg → *1e9 mg*"), "{heard}");
    assert!(heard.contains("This is about 10 million times the current value. Check the number"), "{heard}");
    thread.says("ana", "set the bioavailability to 150%").await;
    let heard = thread.heard();
    assert!(heard.contains("`Compound|Bioavailability` can't be 150%: a fraction is between 0 and 1"), "{heard}");
    assert!(bridge.audit().iter().all(|call| call.tool == "load_simulation"));
    finish(bot, bridge).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_beside_an_open_value_says_which_value_it_uses() {
    let (bot, bridge) = bot_with(Version::V05).await;
    let mut thread = loads(&bot, "demo").await;
    thread.says("ana", "set the dose to 300 mg").await;
    thread.skip();
    thread.says("ana", "run it").await;
    let heard = thread.heard();
    assert!(
        heard.contains(
            "*Set Dose to 300 mg in “demo”* is not approved yet: this run uses the current 100 mg of `Dose`."
        ),
        "{heard}"
    );
    finish(bot, bridge).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_loaded_simulation_is_no_job() {
    let (bot, bridge) = bot_with(Version::V05).await;
    let mut thread = loads(&bot, "theo-25").await;
    thread.says("ana", "run theo-25").await;
    let heard = thread.heard();
    assert!(heard.contains("[Run simulation]") && !heard.contains("has no job"), "{heard}");
    finish(bot, bridge).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_listed_model_is_loaded() {
    let mut told = Transcript::default();
    let (bot, bridge) = bot_with(Version::V05).await;
    let mut thread = bot.user("ana").says("is there a model for caffeine?").await;
    told.note("is there a model for caffeine?", &mut thread);
    thread.says("ana", "ok load it").await;
    let card = thread.heard();
    assert!(card.contains("*Load caffeine-child.pkml as “caffeine-child”?*"), "{card}");
    thread.says("ana", "never mind").await;
    thread.skip();
    for said in ["load aspirin", "simulate theophylline"] {
        told.says(said, &mut thread).await;
    }
    thread.says("ana", "load the caffeine model").await;
    thread.clicks("bo", "Load model").await;
    thread.skip();
    thread.says("ana", "go").await;
    assert!(thread.heard().contains("*Run “caffeine-child”?*"), "{}", thread.last());
    assert_snapshot!(told.0, @"
    > is there a model for caffeine?
    Yes: `/data/models/caffeine-child.pkml`.
    [Load caffeine-child.pkml]

    > load aspirin
    The bridge has no model file for “aspirin”. It can load:
    • `/data/models/demo.pkml`
    • `/data/models/theophylline.pkml`
    • `/data/models/caffeine-child.pkml`
    [Load theophylline.pkml] [Load caffeine-child.pkml] [Load demo.pkml]

    > simulate theophylline
    No simulation called *theophylline* is loaded.
    There is a model file of that name. Load it first.
    [Load theophylline.pkml]
    ");
    finish(bot, bridge).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_is_added_to_a_comparison_and_the_best_one_named() {
    let (bot, bridge) = bot_with(Version::V05).await;
    let mut thread = loads(&bot, "demo").await;
    thread.says("ana", "which weight gives the highest cmax?").await;
    assert!(thread.heard().contains("I have no comparison of values of the weight on record"), "{}", thread.last());
    thread.says("ana", "try the body weight at 60, 70 and 80 kg").await;
    thread.skip();
    thread.says("ana", "wait, add 75").await;
    let card = thread.heard();
    assert!(card.contains("60 kg, 70 kg, 80 kg, 75 kg"), "{card}");
    thread.clicks("bo", "Run 4 values").await;
    eventually("the end of the comparison", || has_said(&thread, "Compared `Organism|Weight`")).await;
    bot.settled().await;
    thread.skip();
    thread.says("ana", "which weight gives the highest cmax?").await;
    assert!(thread.heard().contains("*60 kg* gives the highest Cmax"), "{}", thread.last());
    thread.says("ana", "and auc?").await;
    assert!(thread.heard().contains("gives the highest AUC"), "{}", thread.last());
    thread.says("ana", "export that as csv").await;
    assert!(thread.heard().contains("I can't write files such as CSV."), "{}", thread.last());
    finish(bot, bridge).await;
}
