//! Simulations behind a bridge: loading, setting, running, comparing, and what goes wrong on the way.

use countersign::{clock::ManualClock, graph::store::ActionFilter, simulation::settings::SimulationSettings};
use countersign_sandbox::bridge::{self, Bridge, Fault, Version};

use insta::assert_snapshot;

use crate::support::{
    bot::{Setup, TestBot, eventually, in_time},
    thread::Thread,
};

/// A bot with a bridge of a version.
pub(super) async fn bot_with(version: Version) -> (TestBot, Bridge) {
    let clock = ManualClock::default();
    let options = bridge::Options {
        version,
        rate_limit: usize::MAX,
        look_every: std::time::Duration::from_millis(10),
        clock: std::sync::Arc::new(clock.clone()),
        ..bridge::Options::default()
    };
    let bridge = Bridge::with(options).await.unwrap();
    let (url, secret) = (bridge.url(), bridge.jwt_secret().to_owned());
    let settings = Box::new(move |config: &mut countersign::config::Config| {
        let simulation: &mut SimulationSettings = config.sections.get_mut();
        simulation.url = Some(url);
        simulation.jwt_secret = Some(secret.into());
        simulation.models = Some("/data/models".to_owned());
        simulation.timeout = std::time::Duration::from_secs(2);
    });
    (TestBot::with(Setup { settings, clock, ..Setup::default() }).await, bridge)
}

/// A dialogue as it went, to be compared with how it is to go.
#[derive(Default)]
pub(super) struct Transcript(pub(super) String);

impl Transcript {
    /// Ana writes in the thread; notes it with the answer.
    pub(super) async fn says(&mut self, said: &str, thread: &mut Thread<'_>) {
        thread.says("ana", said).await;
        self.note(said, thread);
    }

    /// Notes what somebody did, and what the bot has said or changed since.
    pub(super) fn note(&mut self, what: &str, thread: &mut Thread<'_>) {
        let heard = thread.heard();
        // How long a run takes depends on the machine.
        let took = fancy_regex::Regex::new(r" (in|for) [0-9.]+ s\b").unwrap();
        let heard = took.replace_all(&heard, " $1 ‹duration›");
        let asked = fancy_regex::Regex::new(r"(?m)^Asked by @.*\n").unwrap();
        let heard = asked.replace_all(&heard, "");
        self.0.push_str(&format!("> {what}\n{heard}\n\n"));
    }
}

/// Whether the bot has said these words in the thread.
pub(super) fn has_said(thread: &Thread<'_>, words: &str) -> bool {
    thread.messages().iter().any(|message| message.words().contains(words))
}

/// Ends a test: the bridge was told of a confirmation in calls of approved actions alone, by the person who approved them.
pub(super) async fn finish(bot: TestBot, bridge: Bridge) {
    let filter = ActionFilter::all(&[], 1_000);
    let actions = bot.store().actions(&filter).await.unwrap();
    for request in bridge.requests().iter().filter(|request| request.says_confirmed()) {
        let told = request.body.to_string();
        let approved = actions.iter().any(|action| {
            // A fault may come before the token is read.
            let by =
                request.subject.as_deref().is_none_or(|who| action.approved_by().iter().any(|by| by.as_str() == who));
            let about = ["simulation", "job"].iter().filter_map(|key| action.parameters[key].as_str());
            let tool = request.tool.as_deref().unwrap_or(request.path.trim_start_matches('/'));
            let same = action.name == "compare_values" || tool == action.name;
            by && same && about.into_iter().any(|name| told.contains(name))
        });
        let stops_a_run = request.tool.as_deref() == Some("cancel_job");
        assert!(approved || stops_a_run, "nobody approved {request:?}");
        assert!(request.subject.is_none() || request.roles == ["operator"]);
    }
    assert!(bridge.audit().iter().all(|call| call.confirmed));
    let reads = bridge.requests().into_iter().filter(|request| !request.says_confirmed() && request.subject.is_some());
    assert!(reads.into_iter().all(|request| request.roles == ["viewer"]), "who reads needs no more");
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_is_loaded_set_and_run_on_both_versions() {
    for version in [Version::V01, Version::V05] {
        let mut told = Transcript::default();
        let (bot, bridge) = bot_with(version).await;
        let mut thread = bot.user("ana").says("load /data/models/demo.pkml as renal-study").await;
        told.note("load /data/models/demo.pkml as renal-study", &mut thread);
        assert!(bridge.simulations().is_empty(), "nothing happens before a click");
        thread.clicks("bo", "Load model").await;
        told.note("[Load model]", &mut thread);
        assert_eq!(bridge.simulations(), ["renal-study"]);
        told.says("set the dose to 0.5 g", &mut thread).await;
        thread.clicks("bo", "Set value").await;
        told.note("[Set value]", &mut thread);
        assert_eq!(bridge.parameter("renal-study", "Dose"), Some((500.0, "mg".to_owned())));
        told.says("run it", &mut thread).await;
        bridge.hold_jobs();
        thread.clicks("bo", "Run simulation").await;
        told.note("[Run simulation]", &mut thread);
        bridge.finish_jobs();
        eventually("the end of the run", || has_said(&thread, "Cmax")).await;
        bot.settled().await;
        told.note("(the run ends)", &mut thread);
        assert_snapshot!(format!("load_set_run_{version:?}"), told.0);
        finish(bot, bridge).await;
    }
}

/// Loads the demo model under a name.
pub(super) async fn loads<'a>(bot: &'a TestBot, name: &str) -> Thread<'a> {
    let mut thread = bot.user("ana").says(&format!("load the demo model as {name}")).await;
    thread.clicks("bo", "Load model").await;
    assert!(thread.heard().contains(&format!("Loaded demo.pkml as {name}.")), "{}", thread.last());
    thread
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_is_worked_out_and_checked() {
    let mut told = Transcript::default();
    let (bot, bridge) = bot_with(Version::V05).await;
    let mut thread = loads(&bot, "demo").await;
    for said in [
        "increase the body weight by 10 %",
        "set the liver volume to 1500 ml",
        "set the liver volume to 1800 ml",
        "set the liver volume to 500 mg",
        "set the liver volume to 9.9 L",
        "double the dose",
        "set Dose to -5 mg",
        "set the dose to 7 bananas",
        "set the kidney clearance to half of the liver clearance",
        "set the dose back to the default",
        "set Organism|Weight to 1 kg",
        "set the spleen volume to 0.2 L",
        "what is the dose?",
        "list the parameters with liver",
    ] {
        told.says(said, &mut thread).await;
    }
    assert_eq!(bridge.parameter("demo", "Dose"), Some((100.0, "mg".to_owned())));
    assert_snapshot!(told.0);
    finish(bot, bridge).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_dialogues_of_the_reference_agent_end_well() {
    let mut told = Transcript::default();
    let (bot, bridge) = bot_with(Version::V01).await;
    let dialogues = [
        &["Make the subject heavier.", "load the demo model as heavy"][..],
        &["Increase the liver weight parameter by 10%."],
        &["set Organism|Weight to 70 kg"],
        &["run simulation"],
        &["status of abc-123"],
        &["set Organism|Weight to 70 kg for phantom"],
        &["load /data/models/none.pkml as nofile", "!Load model"],
        &["load /data/outside.pkml as outside", "!Load model"],
        &["load /data/models/demo.pkml", "!Load model"],
        &["load /data/models/demo.pkml as dup", "!Load model", "load /data/models/demo.pkml as dup"],
        &["load /data/models/demo.pkml as s1", "no", "load /data/models/demo.pkml as s2", "ok"],
        &["load /data/models/demo.pkml as sent1", "yes please"],
        &["load /data/models/demo.pkml as case1", "  YES "],
        &["load /data/models/demo.pkml as wait1", "run simulation wait1", "!Load model"],
        &["load /data/models/demo.pkml as dec", "!Load model", "set Dose = 2.5", "!Set value"],
        &["load /data/models/demo.pkml as neg", "!Load model", "set Dose to -5 mg", "yes"],
        &[
            "load /data/models/demo.pkml as renal-study",
            "!Load model",
            "set Organism|Weight to 50 kg for renal-study",
            "no",
        ],
        &["load /data/models/demo.pkml as act", "!Load model", "make the subject heavier", "80 kg", "!Set value"],
        &["load /data/models/demo.pkml as empty1", "   ", "yes"],
        &["load /data/models/demo.pkml as renal-study-2", "yes", "run simulation renal-study-2", "approve"],
    ];
    assert_eq!(dialogues.len(), 20, "all of them");
    for dialogue in dialogues {
        let mut thread = bot.user("ana").says(dialogue[0]).await;
        told.0.push_str("---\n");
        told.note(dialogue[0], &mut thread);
        for said in &dialogue[1..] {
            match said.strip_prefix('!') {
                Some(label) => thread.clicks("ana", label).await,
                None => thread.says("ana", said).await,
            }
            if !bridge.jobs().is_empty() {
                eventually("the end of the run", || has_said(&thread, "Cmax")).await;
                bot.settled().await;
            }
            told.note(said, &mut thread);
        }
    }
    assert_eq!(bridge.jobs().len(), 1);
    assert_snapshot!(told.0);
    finish(bot, bridge).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_to_a_question_is_never_met_with_silence() {
    let mut told = Transcript::default();
    let (bot, bridge) = bot_with(Version::V05).await;
    let mut thread = loads(&bot, "demo").await;
    for said in [
        "run it at 1.5, 2 and 3 L and compare cmax",
        "weigh cmax against Volume at 1.5, then at 2, and then at 3 L, in one chart",
        "compare cmax at Volume 1.5, 2 and 3 L",
    ] {
        told.says(said, &mut thread).await;
    }
    assert_snapshot!(told.0);
    finish(bot, bridge).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn several_values_are_compared_under_one_approval() {
    let mut told = Transcript::default();
    let (bot, bridge) = bot_with(Version::V05).await;
    let mut thread = loads(&bot, "demo").await;
    told.says("run it at 1.5, 2 and 3 L liver volume and compare cmax", &mut thread).await;
    thread.clicks("bo", "Run 3 values").await;
    eventually("the end of the comparison", || has_said(&thread, "Cmax")).await;
    bot.settled().await;
    told.note("[Run 3 values]", &mut thread);
    assert_eq!(bridge.parameter("demo", "Organism|Liver|Volume"), Some((1.5, "L".to_owned())));
    assert_snapshot!(told.0);
    finish(bot, bridge).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_can_be_stopped_and_survives_a_restart_of_the_bot() {
    let mut told = Transcript::default();
    let (mut bot, bridge) = bot_with(Version::V01).await;
    bridge.hold_jobs();
    let mut thread = loads(&bot, "demo").await;
    thread.says("ana", "run it").await;
    thread.clicks("bo", "Run simulation").await;
    told.note("[Run simulation]", &mut thread);
    told.says("how is the run going?", &mut thread).await;
    let (root, channel) = (thread.root.clone(), "experiments");
    drop(thread);
    bot.restart().await;
    let mut thread = Thread::new(&bot, channel, root);
    thread.heard();
    told.says("stop", &mut thread).await;
    bridge.finish_jobs();
    assert_snapshot!(told.0);
    finish(bot, bridge).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_bridge_is_told_and_the_model_is_offered_again() {
    let mut told = Transcript::default();
    let (bot, bridge) = bot_with(Version::V01).await;
    let mut thread = loads(&bot, "demo").await;
    thread.says("ana", "run it").await;
    bridge.restart().await;
    thread.heard();
    thread.clicks("bo", "Run simulation").await;
    told.note("[Run simulation]", &mut thread);
    thread.clicks("ana", "Load demo again").await;
    told.note("[Load demo again]", &mut thread);
    assert!(bridge.audit().iter().all(|call| call.tool == "load_simulation"));
    assert_snapshot!(told.0);
    finish(bot, bridge).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_to_a_run_starts_it_once() {
    let mut told = Transcript::default();
    let (bot, bridge) = bot_with(Version::V05).await;
    let mut thread = loads(&bot, "demo").await;
    thread.says("ana", "run it").await;
    bridge.fail_next_on("run_simulation", Fault::LostAnswer);
    thread.press("bo", "Run simulation").await;
    in_time(&bot, "the end of the run", || has_said(&thread, "Cmax")).await;
    bot.settled().await;
    told.note("[Run simulation]", &mut thread);
    assert_eq!(bridge.jobs().len(), 1, "it ran once");
    assert_snapshot!(told.0);
    finish(bot, bridge).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_fault_of_the_bridge_has_a_sentence_and_a_refusal_is_not_repeated() {
    let mut told = Transcript::default();
    let (bot, bridge) = bot_with(Version::V01).await;
    drop(loads(&bot, "demo").await);
    let refusals = [400, 401, 403, 404, 409, 422, 428, 429, 500].map(Fault::Status);
    let open = [Fault::Status(502), Fault::Status(503), Fault::Status(504), Fault::LostAnswer, Fault::LostRequest];
    let sent = || bridge.requests().iter().filter(|r| r.tool.as_deref() == Some("set_parameter_value")).count();
    for (nth, fault) in refusals.into_iter().chain(open).enumerate() {
        let dose = 101 + nth;
        let thread = bot.user("ana").says(&format!("set the dose to {dose} mg in demo")).await;
        let before = sent();
        bridge.fail_next_on("set_parameter_value", fault.clone());
        thread.press("bo", "Set value").await;
        let is_set = || bridge.parameter("demo", "Dose") == Some((dose as f64, "mg".to_owned()));
        if nth < 9 {
            eventually("a refusal", || has_said(&thread, "didn't work")).await;
            assert_eq!((sent() - before, is_set()), (1, false), "{fault:?}: it is not sent again");
            told.0.push_str(&format!("{fault:?}\n{}\n\n", thread.last()));
        } else {
            // It may have arrived, so it is looked up, and sent again if it did not.
            in_time(&bot, "an outcome", || has_said(&thread, "What next?")).await;
            assert!(is_set(), "{fault:?}");
        }
        bot.settled().await;
    }
    assert_snapshot!(told.0);
    finish(bot, bridge).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_is_repeated_while_the_bridge_is_away_and_no_longer() {
    let (bot, bridge) = bot_with(Version::V05).await;
    let mut thread = loads(&bot, "demo").await;
    bridge.fail_next_on("get_parameter_value", Fault::Proxy(503));
    thread.says("ana", "what is the dose?").await;
    assert_snapshot!(thread.heard(), @"`Dose` in *demo* is 100 mg.");
    bridge.is_down(true);
    thread.says("ana", "what is the dose?").await;
    let heard = thread.heard();
    assert!(heard.starts_with("The simulation bridge isn't answering"), "{heard}");
    bridge.is_well();
    finish(bot, bridge).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_cut_is_followed_by_asking() {
    let (bot, bridge) = bot_with(Version::V01).await;
    bridge.hold_jobs();
    let mut thread = loads(&bot, "demo").await;
    thread.says("ana", "run it").await;
    for _ in 0..3 {
        bridge.fail_next(Fault::Own(bridge::Own::CutStream));
    }
    thread.clicks("bo", "Run simulation").await;
    thread.heard();
    let asked = || bridge.requests().iter().filter(|r| r.tool.as_deref() == Some("get_job_status")).count();
    eventually("a look at the job", || asked() > 0).await;
    bridge.finish_jobs();
    eventually("the end of the run", || has_said(&thread, "Cmax")).await;
    finish(bot, bridge).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn populations_and_sensitivities_are_run() {
    let mut told = Transcript::default();
    let (bot, bridge) = bot_with(Version::V05).await;
    let mut thread = loads(&bot, "demo").await;
    told.says("run it for a population of 50", &mut thread).await;
    thread.clicks("bo", "Run population").await;
    eventually("the end of the run", || has_said(&thread, "95th percentile")).await;
    bot.settled().await;
    told.note("[Run population]", &mut thread);
    told.says("sensitivity analysis for dose and liver clearance", &mut thread).await;
    thread.clicks("bo", "Run analysis").await;
    eventually("the end of the analysis", || has_said(&thread, "Analyzed")).await;
    bot.settled().await;
    told.note("[Run analysis]", &mut thread);
    thread.says("ana", "list the snapshots").await;
    thread.says("ana", "take a snapshot").await;
    thread.clicks("bo", "Take snapshot").await;
    thread.says("ana", "set the dose to 5 mg").await;
    thread.clicks("bo", "Set value").await;
    thread.says("ana", "restore it").await;
    thread.clicks("bo", "Restore snapshot").await;
    assert_eq!(bridge.parameter("demo", "Dose"), Some((100.0, "mg".to_owned())));
    assert_snapshot!(told.0);
    finish(bot, bridge).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_snapshot_that_was_taken_is_restored_and_not_one_of_the_bridge() {
    for version in [Version::V01, Version::V05] {
        let (bot, bridge) = bot_with(version).await;
        let mut thread = loads(&bot, "demo").await;
        for (said, button) in [
            ("take a snapshot", "Take snapshot"),
            ("set the dose to 120 mg", "Set value"),
            ("set the dose to 140 mg", "Set value"),
            ("restore it to the last snapshot", "Restore snapshot"),
        ] {
            thread.says("ana", said).await;
            if button == "Restore snapshot" {
                let card = thread.heard();
                assert!(card.contains("*Dose*  140 mg → *100 mg*"), "{version:?}: {card}");
                assert!(version == Version::V01 || card.contains("There are 2 newer ones."), "{card}");
            }
            thread.clicks("bo", button).await;
            thread.skip();
        }
        assert_eq!(bridge.parameter("demo", "Dose"), Some((100.0, "mg".to_owned())), "{version:?}");
        finish(bot, bridge).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_and_home_show_what_is_loaded() {
    let (bot, bridge) = bot_with(Version::V05).await;
    drop(loads(&bot, "demo").await);
    let status = bot.user("ana").types("/simulation status").await;
    assert!(status.contains("running") && status.contains("0.5.0"), "{status}");
    let list = bot.user("ana").types("/simulation list").await;
    assert!(list.contains("*demo*, from `/data/models/demo.pkml`"), "{list}");
    let parameters = bot.user("ana").types("/simulation parameters demo").await;
    assert!(parameters.contains("`Organism|Weight`"), "{parameters}");
    let home = bot.user("ana").opens_home().await;
    assert!(home.contains("Simulations") && home.contains("Loaded: *demo*."), "{home}");
    finish(bot, bridge).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_ends_after_a_restart_of_the_bot_is_told_once() {
    for version in [Version::V01, Version::V05] {
        let (mut bot, bridge) = bot_with(version).await;
        bridge.hold_jobs();
        let thread = loads(&bot, "demo").await;
        thread.says("ana", "run it").await;
        thread.clicks("bo", "Run simulation").await;
        let root = thread.root.clone();
        drop(thread);
        bot.restart().await;
        let home = bot.user("ana").opens_home().await;
        assert!(home.contains("Running:\n• *demo*"), "{home}");
        bridge.finish_jobs();
        let thread = Thread::new(&bot, "experiments", root);
        eventually("the end of the run", || has_said(&thread, "Cmax")).await;
        bot.settled().await;
        let told = thread.messages().iter().filter(|message| message.words().contains("Cmax")).count();
        assert_eq!((told, bridge.jobs().len()), (1, 1));
        drop(thread);
        finish(bot, bridge).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_a_restart_of_the_bridge_ended_is_told_as_lost() {
    let (bot, bridge) = bot_with(Version::V01).await;
    bridge.hold_jobs();
    let mut thread = loads(&bot, "demo").await;
    thread.says("ana", "run it").await;
    thread.clicks("bo", "Run simulation").await;
    thread.heard();
    bridge.restart().await;
    eventually("the end of the run", || has_said(&thread, "the bridge restarted before it ended")).await;
    bot.settled().await;
    finish(bot, bridge).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_model_file_and_the_first_values_outlive_a_restart_of_the_bot() {
    let (mut bot, bridge) = bot_with(Version::V01).await;
    let thread = loads(&bot, "demo").await;
    for value in ["5 mg", "7 mg"] {
        thread.says("ana", &format!("set the dose to {value}")).await;
        thread.clicks("bo", "Set value").await;
    }
    assert_eq!(bridge.parameter("demo", "Dose"), Some((7.0, "mg".to_owned())));
    drop(thread);
    bot.restart().await;
    let mut thread = bot.user("ana").says("set the dose of demo back to the default").await;
    let card = thread.heard();
    assert!(card.contains("100 mg") && card.contains("the value when the model was loaded"), "{card}");
    let mut thread = bot.user("ana").says("run demo for a population of 50").await;
    let card = thread.heard();
    assert!(card.contains("*Model file*  `/data/models/demo.pkml`"), "{card}");
    // The bridge forgets the simulation, too: what to load again is still known.
    bridge.restart().await;
    let mut thread = bot.user("ana").says("run demo").await;
    let heard = thread.heard();
    assert!(heard.contains("load /data/models/demo.pkml as demo") || heard.contains("Load demo again"), "{heard}");
    drop(thread);
    finish(bot, bridge).await;
}

/// A thread in which an analysis is being made that does not end.
async fn analyzes(bot: &TestBot) -> Thread<'_> {
    let mut thread = loads(bot, "demo").await;
    thread.says("ana", "sensitivity analysis for dose").await;
    thread.clicks("bo", "Run analysis").await;
    eventually("the wait", || has_said(&thread, "I'm waiting for it to end.")).await;
    bot.settled().await;
    thread.heard();
    thread
}

#[tokio::test(flavor = "multi_thread")]
async fn an_analysis_is_waited_for_and_holds_nothing() {
    for version in [Version::V01, Version::V05] {
        let (bot, bridge) = bot_with(version).await;
        bridge.hold_jobs();
        let mut thread = analyzes(&bot).await;
        thread.says("ana", "which simulations are loaded?").await;
        let heard = thread.heard();
        assert!(heard.contains("demo") && !has_said(&thread, "Analyzed"), "the thread goes on meanwhile: {heard}");
        bridge.finish_jobs();
        eventually("the end of the analysis", || has_said(&thread, "Analyzed the sensitivity of demo.")).await;
        bot.settled().await;
        finish(bot, bridge).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_analysis_can_be_left_to_the_bridge() {
    let (bot, bridge) = bot_with(Version::V05).await;
    bridge.hold_jobs();
    let mut thread = analyzes(&bot).await;
    thread.says("ana", "stop").await;
    let said = "The bridge can't cancel an analysis, so it may still finish the one for *demo*";
    assert!(thread.heard().contains(said), "{}", thread.last());
    bridge.finish_jobs();
    bot.settled().await;
    assert!(!has_said(&thread, "Analyzed"));
    finish(bot, bridge).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_analysis_that_a_restart_cut_off_is_told_as_lost_and_not_repeated() {
    let (mut bot, bridge) = bot_with(Version::V05).await;
    bridge.hold_jobs();
    let root = analyzes(&bot).await.root.clone();
    bot.restart().await;
    let thread = Thread::new(&bot, "experiments", root);
    bot.settled().await;
    assert!(!has_said(&thread, "lost"), "another process may have the answer");
    bot.clock.advance(std::time::Duration::from_secs(101));
    eventually("the end of the wait", || has_said(&thread, "The answer with the figures is lost.")).await;
    bot.settled().await;
    let calls = bridge.audit().iter().filter(|call| call.tool == "run_sensitivity_analysis").count();
    assert_eq!(calls, 1);
    drop(thread);
    finish(bot, bridge).await;
}

/// The number of times that the bridge was asked to cancel a job.
fn cancellations(bridge: &Bridge) -> usize {
    bridge.requests().iter().filter(|request| request.tool.as_deref() == Some("cancel_job")).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_before_the_job_is_known_cancels_it() {
    let (bot, bridge) = bot_with(Version::V05).await;
    bridge.hold_jobs();
    let thread = loads(&bot, "demo").await;
    thread.says("ana", "run it").await;
    bridge.fail_next_on("run_simulation", Fault::LostAnswer);
    thread.press("bo", "Run simulation").await;
    eventually("the run", || bridge.jobs().len() == 1).await;
    let stop = bot.slack.says("ana", "experiments", "stop", Some(&thread.root)).unwrap();
    bot.delivered(&stop).await;
    in_time(&bot, "the stop", || has_said(&thread, "Stopped by <@U1>")).await;
    bot.settled().await;
    assert!(has_said(&thread, "I asked the bridge to cancel the run of"), "{}", thread.last());
    assert_eq!((bridge.jobs().len(), cancellations(&bridge)), (1, 1), "what is told is true");
    drop(thread);
    finish(bot, bridge).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_comparison_that_is_stopped_between_two_runs_sets_the_parameter_back() {
    let (bot, bridge) = bot_with(Version::V05).await;
    bridge.hold_jobs();
    let thread = loads(&bot, "demo").await;
    let volume = bridge.parameter("demo", "Organism|Liver|Volume");
    thread.says("ana", "run it at 2 and 3 L liver volume and compare cmax").await;
    thread.clicks("bo", "Run 2 values").await;
    bridge.fail_next_on("set_parameter_value", Fault::LostAnswer);
    bridge.finish_next_job();
    eventually("the second value", || bridge.parameter("demo", "Organism|Liver|Volume").unwrap().0 == 3.0).await;
    let stop = bot.slack.says("ana", "experiments", "stop", Some(&thread.root)).unwrap();
    bot.delivered(&stop).await;
    in_time(&bot, "the stop", || has_said(&thread, "Stopped by <@U1>")).await;
    bot.settled().await;
    assert!(has_said(&thread, "after 1 of 2 values. `Organism|Liver|Volume` is 1.5 L again."), "{}", thread.last());
    assert_eq!(bridge.parameter("demo", "Organism|Liver|Volume"), volume);
    assert_eq!((bridge.jobs().len(), cancellations(&bridge)), (2, 1));
    drop(thread);
    finish(bot, bridge).await;
}
