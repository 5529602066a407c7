//! Requests about simulations, and their interpretation without a language model.

use countersign_understanding::{Hint, book::Book, checking::check, situation::Situation};

use super::OfSimulations;

fn book() -> Book {
    let mut book = Book::default().with("simulation", &OfSimulations).expect("they can be read");
    for family in crate::families::all() {
        book.note_family(family.within, &family.tools, &family.actions);
    }
    book
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
        ("raise the dose to 1 g", r#"set_parameter_value {"parameter":"dose","value":"1 g"}"#),
        ("double the dose", r#"set_parameter_value {"parameter":"dose","value":"twice"}"#),
        ("halve the clearance", r#"set_parameter_value {"parameter":"clearance","value":"half"}"#),
        ("set the dose back to the default", r#"set_parameter_value {"parameter":"dose","value":"default"}"#),
        (
            "set the kidney clearance to half of the liver clearance",
            r#"set_parameter_value {"parameter":"kidney clearance","value":"half of the liver clearance"}"#,
        ),
        ("Make the subject heavier.", r#"set_parameter_value {"parameter":"Organism|Weight"}"#),
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
    ];
    check(&book(), &of_demo, &rows);
    let rows = [("run simulation", "run_simulation {}"), ("Run the simulation please", "run_simulation {}")];
    check(&book(), &Situation::default(), &rows);
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
        ("make the subject heavier", r#"set_parameter_value {"active":"renal-study","parameter":"Organism|Weight"}"#),
        ("take a snapshot", r#"snapshot_simulation {"active":"renal-study"}"#),
    ];
    check(&book(), &of_study, &rows);
}
