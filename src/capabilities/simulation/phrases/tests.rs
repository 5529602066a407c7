//! Requests about simulations, and their interpretation without a language model.

use countersign_understanding::{
    Hint,
    checking::{check, check_offers},
    lexicon::Mention,
    phrase_book::PhraseBook,
    situation::{Draft, Situation, Topic},
    user_request::UserRequest,
};
use serde_json::Map;

use super::OfSimulations;

pub(super) fn book() -> PhraseBook {
    let mut book = PhraseBook::default().with("simulation", &OfSimulations).expect("they can be read");
    for family in crate::families::all() {
        book.note_family(family.within, &family.tools, &family.actions);
    }
    book
}

#[test]
fn each_suggestion_is_read() {
    let topic = Topic { capability: "simulation".to_owned(), ..Topic::default() };
    let situation = Situation { topic: Some(topic), last_subject: Some("demo".to_owned()), ..Situation::default() };
    check_offers(&book(), &situation);
}

#[test]
fn the_last_request_is_repeated_with_another_value() {
    let of = |call: &str, parameters: &[(&str, &str)]| {
        let parameters = parameters.iter().map(|(key, value)| ((*key).to_owned(), (*value).into())).collect();
        let topic = Topic { capability: "simulation".to_owned(), call: call.to_owned(), parameters };
        Situation { topic: Some(topic), last_subject: Some("demo".to_owned()), ..Situation::default() }
    };
    let set = of("set_parameter_value", &[("parameter", "Dose"), ("value", "200 mg"), ("simulation", "demo")]);
    let with_400 = r#"set_parameter_value {"parameter":"Dose","simulation":"demo","value":"400"}"#;
    check(&book(), &set, &[("now with 400", with_400), ("and at 400?", with_400)]);
    let asked = of("get_parameter_value", &[("parameter", "Dose"), ("simulation", "demo")]);
    let weight = r#"read get_parameter_value {"parameter":"weight","simulation":"demo"}"#;
    check(&book(), &asked, &[("and the weight?", weight), ("what about the weight?", weight)]);
}

#[test]
fn models_are_loaded() {
    let rows = [
        (
            "load /data/models/demo.pkml as renal-study",
            r#"load_simulation {"file":"/data/models/demo.pkml","simulation":"renal-study"}"#,
        ),
        ("load /data/models/demo.pkml", r#"load_simulation {"file":"/data/models/demo.pkml"}"#),
        (
            "please load the model file /data/models/demo.pkml as s1",
            r#"load_simulation {"file":"/data/models/demo.pkml","simulation":"s1"}"#,
        ),
        ("load the demo model", r#"load_simulation {"file":"demo"}"#),
        ("load demo", r#"load_simulation {"file":"demo"}"#),
        ("can you load the demo model as Rats2?", r#"load_simulation {"file":"demo","simulation":"Rats2"}"#),
        ("load demo.pkml and call it act", r#"load_simulation {"file":"demo.pkml","simulation":"act"}"#),
    ];
    check(&book(), &Situation::default(), &rows);
}

#[test]
fn parameters_are_set() {
    let rows = [
        ("set Organism|Weight to 70 kg", r#"set_parameter_value {"parameter":"Organism|Weight","value":"70 kg"}"#),
        (
            "set Organism|Weight to 50 kg for renal-study",
            r#"set_parameter_value {"parameter":"Organism|Weight","simulation":"renal-study","value":"50 kg"}"#,
        ),
        ("set Dose = 2.5", r#"set_parameter_value {"parameter":"Dose","value":"2.5"}"#),
        ("set Dose to -5 mg", r#"set_parameter_value {"parameter":"Dose","value":"-5 mg"}"#),
        ("set the dose to 500mg", r#"set_parameter_value {"parameter":"dose","value":"500mg"}"#),
        ("set dose 500 mg", r#"set_parameter_value {"parameter":"dose","value":"500 mg"}"#),
        ("change the body weight to 80 kg", r#"set_parameter_value {"parameter":"body weight","value":"80 kg"}"#),
        (
            "Increase the liver weight parameter by 10%.",
            r#"set_parameter_value {"parameter":"liver weight","value":"+10%"}"#,
        ),
        ("increase the liver volume by 10 %", r#"set_parameter_value {"parameter":"liver volume","value":"+10 %"}"#),
        ("decrease the dose by 5 mg", r#"set_parameter_value {"parameter":"dose","value":"by -5 mg"}"#),
        ("raise the dose to 1 g", r#"set_parameter_value {"direction":"up","parameter":"dose","value":"1 g"}"#),
        ("double the dose", r#"set_parameter_value {"parameter":"dose","value":"twice"}"#),
        ("halve the clearance", r#"set_parameter_value {"parameter":"clearance","value":"half"}"#),
        ("set the dose back to the default", r#"set_parameter_value {"parameter":"dose","value":"default"}"#),
        (
            "set the kidney clearance to half of the liver clearance",
            r#"set_parameter_value {"parameter":"kidney clearance","value":"half of the liver clearance"}"#,
        ),
        ("Make the subject heavier.", r#"set_parameter_value {"direction":"up","parameter":"Organism|Weight"}"#),
        (
            "set Organism|Liver|Volume to 2.5 kg in renal-study",
            r#"set_parameter_value {"parameter":"Organism|Liver|Volume","simulation":"renal-study","value":"2.5 kg"}"#,
        ),
        ("set the dose to 7 bananas", r#"set_parameter_value {"parameter":"dose","value":"7 bananas"}"#),
    ];
    check(&book(), &Situation::default(), &rows);
}

#[test]
fn runs_are_asked_for() {
    let of_demo = Situation { last_subject: Some("demo".to_owned()), ..Situation::default() };
    let rows = [
        ("run simulation renal-study", r#"run_simulation {"simulation":"renal-study"}"#),
        ("run renal-study", r#"run_simulation {"simulation":"renal-study"}"#),
        ("run it", r#"run_simulation {"simulation":"demo"}"#),
        ("run it again", r#"run_simulation {"simulation":"demo"}"#),
        ("run the simulation", r#"run_simulation {"simulation":"demo"}"#),
        (
            "run it at 1.5, 2 and 3 L liver volume and compare cmax",
            r#"compare_values {"parameter":"liver volume","simulation":"demo","values":"1.5, 2 and 3 L"}"#,
        ),
        (
            "run it at 1.5, 2 and 3 L and compare cmax",
            r#"compare_values {"simulation":"demo","values":"1.5, 2 and 3 L"}"#,
        ),
        (
            "compare cmax at Volume 1.5, 2 and 3 L",
            r#"compare_values {"active":"demo","parameter":"Volume","values":"1.5, 2 and 3 L"}"#,
        ),
        (
            "compare the dose at 100, 200 and 400 mg",
            r#"compare_values {"active":"demo","parameter":"dose","values":"100, 200 and 400 mg"}"#,
        ),
        ("run it for a population of 100", r#"run_population_simulation {"simulation":"demo","size":100}"#),
        ("run it for 50 virtual subjects", r#"run_population_simulation {"simulation":"demo","size":50}"#),
        (
            "sensitivity analysis of demo for dose and clearance",
            r#"run_sensitivity_analysis {"parameters":"dose and clearance","simulation":"demo"}"#,
        ),
        ("restore demo", r#"restore_simulation {"simulation":"demo"}"#),
        ("take a snapshot", r#"snapshot_simulation {"active":"demo"}"#),
        (
            "remember the present state of demo so that I can get back to it",
            r#"snapshot_simulation {"simulation":"demo"}"#,
        ),
        ("save the current parameter values so we can go back", r#"snapshot_simulation {"active":"demo"}"#),
        ("save demo as it is now", r#"snapshot_simulation {"simulation":"demo"}"#),
    ];
    check(&book(), &of_demo, &rows);
    let rows = [("run simulation", "run_simulation {}"), ("Run the simulation please", "run_simulation {}")];
    check(&book(), &Situation::default(), &rows);
}

#[test]
fn a_run_for_a_time_is_a_question_and_a_time_limit_is_not() {
    let of_demo = Situation {
        last_subject: Some("demo".to_owned()),
        subjects: [("simulation".to_owned(), "demo".to_owned())].into(),
        ..Situation::default()
    };
    let asked = |time: &str| {
        format!("unclear: set Simulation|EndTime to {time} in demo | run demo with a time limit of {time}")
    };
    let (day, hours, minutes) = (asked("24 hours"), asked("48 h"), asked("5 minutes"));
    let rows = [
        ("run it for 24 hours", day.as_str()),
        ("simulate 24 hours", &day),
        ("run the simulation over 48 h", &hours),
        ("run it within 5 minutes", &minutes),
        ("run it with a time limit of 5 minutes", r#"run_simulation {"simulation":"demo","time_limit_s":300.0}"#),
        ("run it for at most 60 s", r#"run_simulation {"simulation":"demo","time_limit_s":60.0}"#),
        (
            "set Simulation|EndTime to 24 hours in demo",
            r#"set_parameter_value {"parameter":"Simulation|EndTime","simulation":"demo","value":"24 hours"}"#,
        ),
        ("run it for 50 virtual subjects", r#"run_population_simulation {"simulation":"demo","size":50}"#),
    ];
    check(&book(), &of_demo, &rows);
}

#[test]
fn states_and_results_are_read() {
    let of_demo = Situation { last_subject: Some("demo".to_owned()), ..Situation::default() };
    let rows = [
        ("status of abc-123", r#"read get_job_status {"job":"abc-123"}"#),
        (
            "what is the status of job 3c31983f-07d6-4324-99e7-a72639f64c37?",
            r#"read get_job_status {"job":"3c31983f-07d6-4324-99e7-a72639f64c37"}"#,
        ),
        ("how is the run going?", "read get_job_status"),
        ("is the run finished?", "read get_job_status"),
        ("cancel job abc-123", r#"cancel_job {"job":"abc-123"}"#),
        ("cancel the run", "cancel_job {}"),
        ("which simulations are loaded?", "read list_simulations"),
        ("what is loaded?", "read list_simulations"),
        ("list the parameters", r#"read list_parameters {"simulation":"demo"}"#),
        ("list the parameters of renal-study", r#"read list_parameters {"simulation":"renal-study"}"#),
        ("what is the dose?", r#"read get_parameter_value {"active":"demo","parameter":"dose"}"#),
        (
            "show Organism|Weight in demo",
            r#"read get_parameter_value {"parameter":"Organism|Weight","simulation":"demo"}"#,
        ),
        ("show the results", "read get_results"),
        ("show the results of run-1", r#"read get_results {"results":"run-1"}"#),
        ("what is the cmax of run-1?", r#"read calculate_pk_parameters {"results":"run-1"}"#),
        ("what was the cmax?", "read calculate_pk_parameters"),
        ("list the snapshots of demo", r#"read list_snapshots {"simulation":"demo"}"#),
        ("which models can I load?", "read discover_models"),
        ("is the simulation bridge running?", "read check_bridge_health"),
    ];
    check(&book(), &of_demo, &rows);
}

#[test]
fn a_run_is_compared_with_an_earlier_one() {
    let of_demo = Situation { last_subject: Some("demo".to_owned()), ..Situation::default() };
    let rows = [
        ("compare with yesterday's run", r#"read compare_runs {"active":"demo","with":"yesterday's run"}"#),
        ("compare it with yesterday’s run", r#"read compare_runs {"simulation":"demo","with":"yesterday’s run"}"#),
        ("compare with the previous run", r#"read compare_runs {"active":"demo","with":"previous run"}"#),
        ("compare it to the last run", r#"read compare_runs {"simulation":"demo","with":"last run"}"#),
        ("compare demo with the run of Monday", r#"read compare_runs {"simulation":"demo","with":"run of Monday"}"#),
        ("compare this run with the one before", r#"read compare_runs {"active":"demo","with":"one before"}"#),
        ("compare cmax with the run 3 days ago", r#"read compare_runs {"active":"demo","with":"run 3 days ago"}"#),
        ("how does it compare to yesterday?", r#"read compare_runs {"simulation":"demo","with":"yesterday"}"#),
        ("what changed since yesterday's run?", r#"read compare_runs {"active":"demo","with":"yesterday's run"}"#),
        ("compare the last two runs", r#"read compare_runs {"active":"demo","with":"the previous run"}"#),
        ("compare the runs of demo", r#"read compare_runs {"simulation":"demo","with":"the previous run"}"#),
    ];
    check(&book(), &of_demo, &rows);
}

#[test]
fn a_request_of_several_steps_ends_with_a_comparison() {
    let said = "load demo, set the dose to 500 mg, run it, and compare with yesterday's run";
    let hint = book().hint(&Situation { said: said.to_owned(), ..Situation::default() });
    let calls = ["load_simulation", "set_parameter_value", "run_simulation", "compare_runs"].map(str::to_owned);
    assert_eq!(hint, Hint::Calls(calls.into()));
}

#[test]
fn what_was_talked_about_is_meant_where_no_simulation_is_named() {
    let of_study = Situation { last_subject: Some("renal-study".to_owned()), ..Situation::default() };
    let rows = [
        ("set the dose to 0.5 g", r#"set_parameter_value {"active":"renal-study","parameter":"dose","value":"0.5 g"}"#),
        ("set Dose = 2.5", r#"set_parameter_value {"active":"renal-study","parameter":"Dose","value":"2.5"}"#),
        ("double the dose", r#"set_parameter_value {"active":"renal-study","parameter":"dose","value":"twice"}"#),
        ("what is the dose?", r#"read get_parameter_value {"active":"renal-study","parameter":"dose"}"#),
        (
            "make the subject heavier",
            r#"set_parameter_value {"active":"renal-study","direction":"up","parameter":"Organism|Weight"}"#,
        ),
        ("take a snapshot", r#"snapshot_simulation {"active":"renal-study"}"#),
    ];
    check(&book(), &of_study, &rows);
}

/// Returns the topic of a thread in which this was asked for last.
pub(super) fn topic(call: &str, parameter: Option<&str>) -> Option<Topic> {
    let parameters = parameter.map(|parameter| ("parameter".to_owned(), parameter.into())).into_iter().collect();
    Some(Topic { capability: "simulation".to_owned(), call: call.to_owned(), parameters })
}

#[test]
fn words_without_a_domain_are_about_the_topic_of_the_thread() {
    let rows = [
        ("how far are you?", "read get_job_status"),
        ("how far is it?", "read get_job_status"),
        ("how far along is it?", "read get_job_status"),
        ("how is it going?", "read get_job_status"),
        ("where are we?", "read get_job_status"),
        ("is anything running?", "read get_job_status"),
        ("what is running?", "read get_job_status"),
        ("is it done yet?", "read get_job_status"),
        ("are you done?", "read get_job_status"),
        ("any news?", "read get_job_status"),
        ("status", "read get_job_status"),
        ("status?", "read get_job_status"),
        ("what's the status?", "read get_job_status"),
        ("any progress yet?", "read get_job_status"),
        ("what can I change?", r#"read list_parameters {"active":"demo"}"#),
        ("what can be changed?", r#"read list_parameters {"active":"demo"}"#),
        ("what else could we adjust?", r#"read list_parameters {"active":"demo"}"#),
        ("what may I vary?", r#"read list_parameters {"active":"demo"}"#),
        ("reset everything pls", r#"restore_simulation {"active":"demo","snapshot":"loaded"}"#),
        ("put everything back to default", r#"restore_simulation {"active":"demo","snapshot":"loaded"}"#),
        (
            "half of the liver clearance",
            r#"set_parameter_value {"active":"demo","parameter":"liver clearance","value":"half"}"#,
        ),
        ("twice the dose", r#"set_parameter_value {"active":"demo","parameter":"dose","value":"twice"}"#),
        (
            "3 times the body weight",
            r#"set_parameter_value {"active":"demo","parameter":"body weight","value":"3 times"}"#,
        ),
    ];
    let in_thread = |topic| Situation { last_subject: Some("demo".to_owned()), topic, ..Situation::default() };
    check(&book(), &in_thread(topic("run_simulation", None)), &rows);
    for (said, _) in rows {
        let situation = Situation { said: said.to_owned(), ..in_thread(None) };
        let found = book().understand(&situation).user_request;
        assert!(matches!(found, UserRequest::Unclear { .. }), "{said}, in any other thread: {found:?}");
    }
}

#[test]
fn runs_and_results_are_asked_for_in_other_words() {
    let loaded = Mention {
        said: "demo".to_owned(),
        name: "demo".to_owned(),
        kind: "simulation".to_owned(),
        owner: "simulation".to_owned(),
        subject: true,
        ..Mention::default()
    };
    let of_demo = Situation { last_subject: Some("demo".to_owned()), names: vec![loaded], ..Situation::default() };
    let rows = [
        ("which jobs are running?", "read get_job_status"),
        ("what jobs are there?", "read get_job_status"),
        ("are there any runs?", "read get_job_status"),
        ("show the running jobs", "read get_job_status"),
        ("is demo done?", r#"read get_job_status {"simulation":"demo"}"#),
        ("what is the status of demo?", r#"read get_job_status {"simulation":"demo"}"#),
        ("show the results of demo", r#"read get_results {"simulation":"demo"}"#),
        ("plot the curve of demo", r#"read get_results {"simulation":"demo"}"#),
        ("what are the results of the last run of demo?", r#"read get_results {"simulation":"demo"}"#),
        ("what is the cmax of demo?", r#"read calculate_pk_parameters {"simulation":"demo"}"#),
        ("run a population of 100 adults", r#"run_population_simulation {"active":"demo","size":100}"#),
        ("run a population of 100 healthy volunteers", r#"run_population_simulation {"active":"demo","size":100}"#),
        ("simulate a cohort of 20 women", r#"run_population_simulation {"active":"demo","size":20}"#),
        ("simulate it in 50 people", r#"run_population_simulation {"simulation":"demo","size":50}"#),
        ("run it in 50 children", r#"run_population_simulation {"simulation":"demo","size":50}"#),
        ("run demo for 30 virtual patients", r#"run_population_simulation {"simulation":"demo","size":30}"#),
        (
            "compare cmax at 100, 200 and 400 mg",
            r#"compare_values {"active":"demo","parameter":"dose","values":"100, 200 and 400 mg"}"#,
        ),
        (
            "compare the exposure of demo at 0.1 and 0.2 g",
            r#"compare_values {"parameter":"dose","simulation":"demo","values":"0.1 and 0.2 g"}"#,
        ),
        (
            "run it at 60, 75 and 90 kg and compare auc",
            r#"compare_values {"parameter":"body weight","simulation":"demo","values":"60, 75 and 90 kg"}"#,
        ),
        (
            "compare doses of 100, 200 and 400 mg",
            r#"compare_values {"active":"demo","parameter":"dose","values":"100, 200 and 400 mg"}"#,
        ),
        (
            "run it with doses of 100 and 200 mg",
            r#"compare_values {"parameter":"dose","simulation":"demo","values":"100 and 200 mg"}"#,
        ),
        ("use demo as it is", r#"read use_simulation {"simulation":"demo"}"#),
        ("continue with demo", r#"read use_simulation {"simulation":"demo"}"#),
        ("sensitivity analysis on cmax", r#"run_sensitivity_analysis {"active":"demo"}"#),
        (
            "how sensitive is cmax to the liver clearance and weight?",
            r#"run_sensitivity_analysis {"active":"demo","parameters":"liver clearance and weight"}"#,
        ),
        (
            "vary the liver clearance of demo by 20%",
            r#"run_sensitivity_analysis {"parameters":"liver clearance","percent":20.0,"simulation":"demo"}"#,
        ),
        (
            "compare demo at liver volume 1, 2 and 2.5 L on cmax",
            r#"compare_values {"parameter":"liver volume","simulation":"demo","values":"1, 2 and 2.5 L"}"#,
        ),
        ("show me the values of demo", r#"read list_parameters {"simulation":"demo","with_values":"all"}"#),
        ("set demo back to how it was loaded", r#"restore_simulation {"simulation":"demo","snapshot":"loaded"}"#),
        ("how does the dose affect cmax?", r#"run_sensitivity_analysis {"active":"demo","parameters":"dose"}"#),
        ("which parameter matters most?", r#"run_sensitivity_analysis {"active":"demo"}"#),
        (
            "go back to the default dose",
            r#"set_parameter_value {"active":"demo","parameter":"dose","value":"default"}"#,
        ),
        ("compare cmax at 2 and 3 L", r#"compare_values {"active":"demo","values":"2 and 3 L"}"#),
        (
            "set the dose twice as high",
            r#"set_parameter_value {"active":"demo","parameter":"dose","value":"twice as high"}"#,
        ),
        (
            "make the dose half as large as it is now",
            r#"set_parameter_value {"active":"demo","parameter":"dose","value":"half as large as it"}"#,
        ),
        (
            "set the liver volume 3 times larger",
            r#"set_parameter_value {"active":"demo","parameter":"liver volume","value":"3 times larger"}"#,
        ),
        ("use twice the dose", r#"set_parameter_value {"active":"demo","parameter":"dose","value":"twice"}"#),
    ];
    check(&book(), &of_demo, &rows);
}

#[test]
fn a_value_alone_is_for_the_parameter_that_was_named_last() {
    let named = |call: &str| Situation {
        last_subject: Some("demo".to_owned()),
        topic: topic(call, Some("weight")),
        ..Situation::default()
    };
    let set =
        |value: &str| format!(r#"set_parameter_value {{"active":"demo","parameter":"weight","value":"{value}"}}"#);
    let (plain, kilos, half) = (set("95"), set("95 kg"), set("half"));
    let rows = [
        ("95", &*plain),
        ("95 kg", &kilos),
        ("set it to 95 kg", &kilos),
        ("make it 95 kg", &kilos),
        ("what about 95 kg?", &kilos),
        ("and now 95 kg", &kilos),
        ("half", &half),
        ("95 apples", "unclear"),
        ("default", "unclear"),
    ];
    let (more, less) = (set("+10 %"), set("by -2 kg"));
    let further = [
        ("increase it by 10 %", &*more),
        ("lower it by 2 kg", &less),
        ("raise it to 95 kg", &kilos),
        ("the weight should be 95 kg", &kilos),
        ("weight 95 kg", &kilos),
        ("stop it", "cancel_job {}"),
        ("show the last run", "read get_results"),
        ("what was the last result?", "read get_results"),
        ("show it", r#"read list_parameters {"active":"demo"}"#),
        ("unload it", "unsupported"),
    ];
    for call in ["get_parameter_value", "set_parameter_value"] {
        check(&book(), &named(call), &rows);
        check(&book(), &named(call), &further);
    }
    check(&book(), &Situation::default(), &[("95", "unclear"), ("make it 95 kg", "unclear")]);
    let card = Draft {
        action: "set_parameter_value".to_owned(),
        params: Map::from_iter([("parameter".to_owned(), "weight".into()), ("value".to_owned(), "80 kg".into())]),
        asked: None,
        unread: None,
    };
    let with_card = Situation { on_card: Some(card), ..named("set_parameter_value") };
    let rows = [
        ("95", r#"update {"value":"95"}"#),
        ("no, 95 kg", r#"update {"value":"95 kg"}"#),
        ("set the weight to 95 kg", &*kilos),
        (
            "actually set the liver volume to 1800 ml",
            r#"set_parameter_value {"active":"demo","parameter":"liver volume","value":"1800 ml"}"#,
        ),
        ("wait, double the dose", r#"set_parameter_value {"active":"demo","parameter":"dose","value":"twice"}"#),
    ];
    check(&book(), &with_card, &rows);
    let topic = topic("get_parameter_value", Some("liver volume"));
    let read_since = Situation { topic, ..with_card };
    let rows = [
        ("2 L", r#"set_parameter_value {"active":"demo","parameter":"liver volume","value":"2 L"}"#),
        ("make it 2 L", r#"set_parameter_value {"active":"demo","parameter":"liver volume","value":"2 L"}"#),
        ("no, 95 kg", r#"update {"value":"95 kg"}"#),
    ];
    check(&book(), &read_since, &rows);
}

#[test]
fn values_and_a_run_in_one_sentence_are_several_requests() {
    let steps = |said: &str, topic: Option<Topic>| {
        let situation =
            Situation { said: said.to_owned(), last_subject: Some("demo".to_owned()), topic, ..Situation::default() };
        book().steps(&situation)
    };
    for (said, expected) in [
        ("run demo with a dose of 300 mg", ["set the dose to 300 mg in demo", "run demo"]),
        ("please run it with the dose at 300 mg", ["set the dose to 300 mg in demo", "run demo"]),
        ("run renal-study at 300 mg", ["set the dose to 300 mg in renal-study", "run renal-study"]),
        ("simulate it with twice the liver volume", ["set the liver volume to twice its value in demo", "run demo"]),
        ("run it with a body weight of 95 kg", ["set the body weight to 95 kg in demo", "run demo"]),
    ] {
        assert_eq!(steps(said, None), expected, "{said}");
    }
    assert_eq!(
        steps("run demo with a dose of 300 mg and a body weight of 80 kg, then show the results", None),
        ["set the dose to 300 mg in demo", "set the body weight to 80 kg in demo", "run demo", "show the results"]
    );
    for said in
        ["run demo", "run it for 60 s", "run it at 1.5, 2 and 3 L", "run it for 50 people", "run Foo with weight 60"]
    {
        assert!(steps(said, None).is_empty(), "{said}");
    }
    for said in ["what if the dose were 300 mg?", "what would happen with a dose of 300 mg?", "what happens at 300 mg?"]
    {
        let expected = ["set the dose to 300 mg", "run the simulation"];
        assert_eq!(steps(said, topic("run_simulation", None)), expected, "{said}");
        assert!(steps(said, None).is_empty(), "{said}");
    }
    for said in ["simulate a 95 kg man", "run it for a patient of 95 kg", "simulate an adult weighing 95 kg"] {
        let expected = ["set the body weight to 95 kg", "run the simulation"];
        assert_eq!(steps(said, topic("run_simulation", None)), expected, "{said}");
    }
    for said in ["run it at 1, 2 and 3 L", "compare doses of 1, 2 and 3 mg"] {
        assert!(steps(said, topic("get_parameter_value", Some("dose"))).is_empty(), "{said}");
    }
    let of_runs = topic("run_simulation", None);
    assert_eq!(steps("run demo with a weight of 60", of_runs), ["set the weight to 60 in demo", "run demo"]);
}
