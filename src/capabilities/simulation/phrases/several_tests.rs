//! Requests about several loaded simulations, and corrections of requests within one message.

use countersign_understanding::{
    checking::check,
    lexicon::Mention,
    situation::{Draft, Situation, Topic},
    user_request::UserRequest,
};

use serde_json::Map;

use super::tests::{book, topic};

/// Returns the situation of a thread about `demo` in which these simulations are loaded.
fn with_loaded(said: &str, names: &[&str]) -> Situation {
    let loaded = |name: &&str| Mention {
        said: (*name).to_owned(),
        name: (*name).to_owned(),
        kind: "simulation".to_owned(),
        owner: "simulation".to_owned(),
        subject: true,
        ..Mention::default()
    };
    let names = names.iter().map(loaded).collect();
    Situation { said: said.to_owned(), last_subject: Some("demo".to_owned()), names, ..Situation::default() }
}

#[test]
fn loaded_simulations_are_run_one_after_the_other() {
    for (said, steps) in [
        ("run theo and run-2", &["run theo", "run run-2"][..]),
        ("please run theo, demo and run-2", &["run theo", "run demo", "run run-2"]),
        ("simulate both theo and demo", &["run theo", "run demo"]),
        ("run theo and archive demo", &[]),
        ("run theo and Math Hints", &[]),
    ] {
        assert_eq!(book().steps(&with_loaded(said, &["theo", "run-2", "demo"])), steps, "{said}");
    }
}

#[test]
fn a_correction_takes_the_place_of_the_request_before_it() {
    let of_theo = with_loaded("", &["theo", "demo"]);
    let run_theo = r#"run_simulation {"simulation":"theo"}"#;
    let rows = [
        ("restore theo? no, just run it", run_theo),
        ("restore theo, no, run it", run_theo),
        ("restore theo. Actually, run it.", run_theo),
        ("restore theo; on second thought, take a snapshot of it", r#"snapshot_simulation {"simulation":"theo"}"#),
        ("restore demo, or rather run theo", run_theo),
        ("restore theo? no, wait, run it", run_theo),
        ("restore theo? no, don't restore it, run it", run_theo),
        ("restore theo? no", "talk nothingdone(\"restored\")"),
        ("restore theo. No, never mind", "talk nothingdone(\"restored\")"),
        ("thanks @bo! run theo", run_theo),
        ("nice find, @bo! run theo", run_theo),
    ];
    check(&book(), &of_theo, &rows);
    for (said, _) in rows {
        assert_eq!(book().steps(&Situation { said: said.to_owned(), ..of_theo.clone() }), [""; 0], "{said}");
    }
    for (said, steps) in [
        ("is theo done? no, run it", &["is theo done", "no, run it"][..]),
        ("run theo, then actually restore it", &["run theo", "actually restore it"]),
        ("restore demo @bo. run theo", &[]), // neither a greeting nor understood
        ("run demo, restore theo? no, run it", &["run demo", "run “theo”"]),
        ("restore theo? no, run it, then show its parameters", &["run “theo”", "show its parameters"]),
    ] {
        assert_eq!(book().steps(&Situation { said: said.to_owned(), ..of_theo.clone() }), steps, "{said}");
    }
}

#[test]
fn a_clause_is_no_name() {
    let rows = [
        ("run all of them", "unclear"),
        ("run what is open", "unclear"),
        ("run “all of them”", r#"run_simulation {"simulation":"all of them"}"#),
        ("run All Hands", r#"run_simulation {"simulation":"All Hands"}"#),
    ];
    check(&book(), &Situation::default(), &rows);
}

#[test]
fn labels_and_ranges_are_read() {
    let topic = Topic { capability: "simulation".to_owned(), ..Topic::default() };
    let situation = Situation { topic: Some(topic), last_subject: Some("demo".to_owned()), ..Situation::default() };
    let rows = [
        ("population run, n=500, seed 42", r#"run_population_simulation {"active":"demo","seed":42,"size":500}"#),
        (
            "population run of 500 people with seed=7",
            r#"run_population_simulation {"active":"demo","seed":7,"size":500}"#,
        ),
        (
            "sweep liver volume from 1 to 2 L in steps of 0.25",
            r#"compare_values {"active":"demo","parameter":"liver volume","values":"1, 1.25, 1.5, 1.75, 2 l"}"#,
        ),
        (
            "vary the dose between 0.1 to 0.4 mg by 0.1",
            r#"compare_values {"active":"demo","parameter":"dose","values":"0.1, 0.2, 0.3, 0.4 mg"}"#,
        ),
        (
            "sensitivity analysis of weight and dose, +-20 %",
            r#"run_sensitivity_analysis {"parameters":"weight and dose","percent":20.0,"simulation":"demo"}"#,
        ),
        ("load the theophylline modell", r#"load_simulation {"file":"theophylline"}"#),
    ];
    check(&book(), &situation, &rows);
}

#[test]
fn what_would_be_otherwise_is_a_value_to_set() {
    let changed =
        |value: &str| format!(r#"set_parameter_value {{"active":"demo","parameter":"clearance","value":"{value}"}}"#);
    let situation = Situation {
        last_subject: Some("demo".to_owned()),
        topic: topic("run_simulation", None),
        ..Situation::default()
    };
    check(
        &book(),
        &situation,
        &[
            ("what if clearance was doubled", &changed("doubled")),
            ("what if the clearance were halved?", &changed("halved")),
            ("what if we doubled the clearance?", &changed("twice")),
            ("what if clearance was set to 2 L/h", &changed("2 L/h")),
            ("which parameter matters most for auc", r#"run_sensitivity_analysis {"active":"demo"}"#),
            ("cmax and tmax?", "read calculate_pk_parameters"),
        ],
    );
    let doubled = Situation {
        topic: Some(Topic {
            capability: "simulation".to_owned(),
            call: "set_parameter_value".to_owned(),
            parameters: Map::from_iter([
                ("parameter".to_owned(), "clearance".into()),
                ("value".to_owned(), "doubled".into()),
            ]),
        }),
        ..situation
    };
    let halved = r#"set_parameter_value {"parameter":"clearance","value":"halved"}"#;
    let half = r#"set_parameter_value {"active":"demo","parameter":"clearance","value":"half"}"#;
    check(&book(), &doubled, &[("and halved?", halved), ("make that half", half)]);
}

fn after(call: &str, parameters: &[(&str, &str)]) -> Situation {
    let parameters = parameters.iter().map(|(key, value)| ((*key).to_owned(), (*value).into())).collect();
    let topic = Topic { capability: "simulation".to_owned(), call: call.to_owned(), parameters };
    Situation { topic: Some(topic), ..Situation::default() }
}

#[test]
fn a_model_is_asked_about_and_then_loaded() {
    let caffeine = r#"read discover_models {"search":"caffeine"}"#;
    check(
        &book(),
        &Situation::default(),
        &[
            ("is there a model for caffeine?", caffeine),
            ("is there a caffeine model?", caffeine),
            ("do you have a model of caffeine?", caffeine),
            ("which models are there for caffeine?", caffeine),
            ("do you have any models?", "read discover_models"),
            ("open the caffeine model", r#"load_simulation {"file":"caffeine"}"#),
            ("what parameters does the demo model have", r#"read list_parameters {"simulation":"demo"}"#),
            ("show me the parameters I can change", "read list_parameters"),
        ],
    );
    let load = r#"load_simulation {"file":"caffeine"}"#;
    let asked = after("discover_models", &[("search", "caffeine")]);
    check(&book(), &asked, &[("ok load it", load), ("load that one", load), ("use it", load)]);
    let nothing = Situation { said: "load that one".to_owned(), ..after("list_simulations", &[]) };
    assert!(
        !matches!(book().understand(&nothing).user_request, UserRequest::Change { .. }),
        "no model was asked about"
    );
}

#[test]
fn the_best_value_of_a_comparison_is_asked_for() {
    let best = |parameter: &str, figure: &str, best: &str| {
        format!(r#"read calculate_pk_parameters {{"best":"{best}","figure":"{figure}","parameter":"{parameter}"}}"#)
    };
    check(
        &book(),
        &Situation::default(),
        &[
            ("which weight gives the highest cmax?", &best("weight", "cmax", "highest")),
            ("which dose has the lowest auc?", &best("dose", "auc", "lowest")),
            ("at which dose is the exposure lowest?", &best("dose", "auc", "lowest")),
            ("what body weight leads to the biggest peak?", &best("body weight", "cmax", "highest")),
        ],
    );
    let compared = after("compare_values", &[("parameter", "dose"), ("values", "1, 2 mg")]);
    let which = r#"read calculate_pk_parameters {"best":"highest","figure":"cmax"}"#;
    check(&book(), &compared, &[("which one has the highest cmax?", which), ("where is cmax highest?", which)]);
}

#[test]
fn values_are_added_to_a_comparison_and_left_out_of_it() {
    let params = [("parameter", "body weight"), ("values", "10, 15 and 20 kg")];
    let params = params.map(|(key, value)| (key.to_owned(), value.into())).into_iter().collect();
    let on_card = Some(Draft::begun("compare_values", params));
    let situation = Situation { on_card, ..after("compare_values", &[]) };
    let with_25 = r#"update {"values":"10 kg, 15 kg, 20 kg, 25 kg"}"#;
    check(
        &book(),
        &situation,
        &[
            ("wait, add 25", with_25),
            ("also 25 kg", with_25),
            ("oh, and 25 too", with_25),
            ("please include 25 and 30", r#"update {"values":"10 kg, 15 kg, 20 kg, 25 kg, 30 kg"}"#),
            ("without 10", r#"update {"values":"15 kg, 20 kg"}"#),
            ("leave out 15 kg", r#"update {"values":"10 kg, 20 kg"}"#),
        ],
    );
}

#[test]
fn several_values_are_tried() {
    let weights = r#"compare_values {"parameter":"body weight","values":"10, 15 and 20 kg"}"#;
    let doses = r#"compare_values {"parameter":"dose","values":"100, 200 and 300 mg"}"#;
    check(
        &book(),
        &after("load_simulation", &[("simulation", "demo")]),
        &[
            ("try the body weight at 10, 15 and 20 kg", weights),
            ("check body weights of 10, 15 and 20 kg", weights),
            ("how about body weights of 10, 15 and 20 kg?", weights),
            ("try it at 100, 200 and 300 mg", doses),
            ("what happens at 100, 200 and 300 mg?", doses),
        ],
    );
}

#[test]
fn the_weights_of_conditions_are_no_body_weights() {
    for said in [
        "try weights of 60/40",
        "use weights 50/50",
        "which language models do you use?",
        "show the settings I can change",
    ] {
        let situation = Situation { said: said.to_owned(), ..Situation::default() };
        let found = book().understand(&situation).user_request;
        assert!(matches!(found, UserRequest::Unclear { .. }), "{said}: {found:?}");
    }
}

#[test]
fn the_same_values_are_compared_again() {
    let again = r#"compare_values {"simulation":"demo","values":"the same values"}"#;
    check(&book(), &Situation::default(), &[("compare the same values in demo", again)]);
}

#[test]
fn what_was_done_last_is_done_again_with_another_value() {
    let compared = [("parameter", "body weight"), ("values", "10, 20 kg"), ("simulation", "demo")];
    for (last, said, steps) in [
        (
            after("compare_values", &compared),
            "now the same but with half the dose",
            ["set the dose to half its value in demo", "compare body weight at 10, 20 kg in demo"],
        ),
        (
            after("run_simulation", &[("simulation", "demo")]),
            "again with a dose of 300 mg",
            ["set the dose to 300 mg in demo", "run demo"],
        ),
        (
            after("calculate_pk_parameters", &[("best", "highest"), ("simulation", "demo")]),
            "the same with half the dose",
            ["set the dose to half its value in demo", "compare the same values in demo"],
        ),
        (
            after("run_simulation", &[("simulation", "demo")]),
            "do it again but with 80 kg",
            ["set the body weight to 80 kg in demo", "run demo"],
        ),
    ] {
        let situation = Situation { said: said.to_owned(), ..last };
        assert_eq!(book().steps(&situation), steps, "{said}");
    }
}

#[test]
fn go_runs_what_was_just_loaded() {
    let loaded = after("load_simulation", &[("simulation", "demo")]);
    let run = r#"run_simulation {"simulation":"demo"}"#;
    check(&book(), &loaded, &[("go", run), ("go ahead", run), ("start it", run)]);
    let ran = Situation { said: "go".to_owned(), ..after("run_simulation", &[("simulation", "demo")]) };
    assert!(matches!(book().understand(&ran).user_request, UserRequest::Talk(_)), "it ran already");
}

#[test]
fn an_id_of_something_else_is_no_job() {
    let situation = Situation { said: "studnet-008".to_owned(), ..Situation::default() };
    assert!(!matches!(book().understand(&situation).user_request, UserRequest::Read { .. }));
    let said = [
        ("status of job x-12", r#"read get_job_status {"job":"x-12"}"#),
        ("job-12", r#"read get_job_status {"job":"job-12"}"#),
    ];
    check(&book(), &Situation::default(), &said);
}

#[test]
fn files_are_not_written() {
    let said = ["export that as csv", "give me the results as an excel file", "can i get a spreadsheet of it?"];
    for said in said {
        let situation = Situation { said: said.to_owned(), ..after("get_results", &[]) };
        let UserRequest::Unclear { question, .. } = book().understand(&situation).user_request else {
            panic!("“{said}” is answered")
        };
        assert!(question.starts_with("I can't write files"), "{said}: {question}");
    }
}
