//! Tests of sentences that sound like a request for a change but are not.

use serde_json::json;

use super::{
    book,
    situation::{Draft, Situation},
    tests::{check, open_card, params},
};

#[test]
fn agreement_does_not_decide_a_card() {
    let waiting = Situation { open_cards: vec![open_card("Start “Math Hints”?")], ..Situation::default() };
    let agreements = ["ok", "Okay!", "👍🏽", ":+1:", "ok, go ahead", "sure", "<@U0BOT> yes", "don’t"];
    check(&waiting, &agreements.map(|said| (said, "talk cardwaits")));
    check(&Situation::default(), &agreements.map(|said| (said, "talk nothingasked")));
}

#[test]
fn dropping_a_request_does_not_decide_a_card() {
    let waiting = Situation { open_cards: vec![open_card("Start “Math Hints”?")], ..Situation::default() };
    let withdrawals = [
        "never mind",
        "Forget it.",
        "cancel",
        "hold on, cancel that please",
        "wait, never mind",
        "wait, stop that",
        "please withdraw my request",
    ];
    check(&waiting, &withdrawals.map(|said| (said, "talk cardwaits")));
    check(&Situation::default(), &[("never mind", "drop"), ("hang on, forget it", "drop")]);
    let draft = Draft { action: "create_experiment".into(), params: params(json!({})), asked: None, unread: None };
    let drafting = Situation { draft: Some(draft), ..Situation::default() };
    let ends = ["hold on, cancel that please", "please withdraw it", "wait, stop that", "cancel it please", "stop"];
    check(&drafting, &ends.map(|said| (said, "drop")));
}

#[test]
fn negated_requests_and_doubts_are_not_changes() {
    let talked = Situation { last_subject: Some("Math Hints".into()), ..Situation::default() };
    let shown = r#"read get_experiment_details {"experiment_id":"Math Hints"}"#;
    check(
        &talked,
        &[
            ("don't start Math Hints", r#"talk nothingdone("started")"#),
            ("No, do not delete it!", r#"talk nothingdone("deleted")"#),
            ("please don’t create experiment Foo", r#"talk nothingdone("created")"#),
            ("wait, don't finish it", r#"talk nothingdone("ended")"#),
            ("never start it", r#"talk nothingdone("started")"#),
            ("don't forget to stop it", r#"update_experiment_status {"experiment":"Math Hints","status":"stop"}"#),
            (
                "please do not fail to start it",
                r#"update_experiment_status {"experiment":"Math Hints","status":"start"}"#,
            ),
            ("make sure to stop it", r#"update_experiment_status {"experiment":"Math Hints","status":"stop"}"#),
            (
                "don't pause it, archive it",
                r#"update_experiment_status {"experiment":"Math Hints","status":"archived"}"#,
            ),
            ("don't pause it but stop it", r#"update_experiment_status {"experiment":"Math Hints","status":"stop"}"#),
            (
                "don't change the name. Just start it",
                r#"update_experiment_status {"experiment":"Math Hints","status":"start"}"#,
            ),
            ("remember to stop it", r#"update_experiment_status {"experiment":"Math Hints","status":"stop"}"#),
            ("don't start it, please", r#"talk nothingdone("started")"#),
            ("don't start it, and do not stop it", "unclear"),
            ("should I start Math Hints?", shown),
            ("do you think we should cancel it?", shown),
            ("Is it safe to set the weights of “Math Hints” to 70/30?", shown),
            ("shall we start?", shown),
        ],
    );
    let draft =
        Draft { action: "update_experiment_status".into(), params: params(json!({})), asked: None, unread: None };
    check(&Situation { draft: Some(draft), ..talked.clone() }, &[("don't start it", "drop")]);
    for (said, request) in [
        ("should I start it?", Some("start Math Hints")),
        ("should we set the weights of “Math Hints” to 70/30?", Some("set the weights of “Math Hints” to 70/30")),
        ("show Math Hints", None),
    ] {
        let situation = Situation { said: said.into(), ..talked.clone() };
        assert_eq!(book().considered_request(&situation).as_deref(), request, "{said}");
    }
}
