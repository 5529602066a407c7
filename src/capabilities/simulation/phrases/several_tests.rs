//! Requests about several loaded simulations, and corrections of requests within one message.

use countersign_understanding::{
    checking::check,
    lexicon::Mention,
    situation::{Situation, Topic},
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
