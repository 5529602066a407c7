//! Tests of several requests in one message.

use countersign_understanding::phrase_book::PhraseBook;

use super::{
    book,
    situation::{Draft, DraftQuestion, Situation},
};

fn steps(situation: &Situation) -> Vec<String> {
    PhraseBook::steps(&book(), situation)
}

#[track_caller]
fn check(said: &str, expected: &[&str]) {
    let situation = Situation { said: said.to_owned(), ..Situation::default() };
    assert_eq!(steps(&situation), expected, "{said}");
}

#[test]
fn several_requests_are_separated() {
    check(
        "Create Foo in assign-prog with weights 70/30 and start it",
        &["Create Foo in assign-prog with weights 70/30", "start it"],
    );
    check(
        "create experiment Foo in assign-prog with conditions control and hints at S/t, start it, and then show it",
        &["create experiment Foo in assign-prog with conditions control and hints at S/t", "start it", "show it"],
    );
    check(
        "start Math Hints and then simulate user u1 at SelectSection/absolute_value_plot_equality",
        &["start Math Hints", "simulate user u1 at SelectSection/absolute_value_plot_equality"],
    );
    check(
        "list the running experiments; then show details of Math Hints",
        &["list the running experiments", "show details of Math Hints"],
    );
    check("First start Math Hints, then show it.", &["start Math Hints", "show it."]);
    check("1. start Math Hints\n2. show it\n3) stop it", &["start Math Hints", "show it", "stop it"]);
    check("please do this: 1. start Math Hints 2. show it", &["start Math Hints", "show it"]);
    check("Please do the following:\n- start Math Hints\n- show it", &["start Math Hints", "show it"]);
    check("Start Math Hints. Is UpGrade running?", &["Start Math Hints", "Is UpGrade running?"]);
    check("start “Stop and Go” and show “Math Hints”", &["start “Stop and Go”", "show “Math Hints”"]);
    check("what is a weight and what is a condition?", &["what is a weight", "what is a condition?"]);
    check("stop Math Hints and delete it", &["stop Math Hints", "delete it"]);
}

#[test]
fn a_request_keeps_its_condition() {
    check(
        "create Foo in assign-prog with conditions control and hints at S/t, test its balance with 200 users, and only if \
         it is even, start it",
        &[
            "create Foo in assign-prog with conditions control and hints at S/t",
            "test its balance with 200 users",
            "only if it is even, start it",
        ],
    );
    check(
        "test the balance of Math Hints with 200 users and stop it only if it is not even",
        &["test the balance of Math Hints with 200 users", "stop it only if it is not even"],
    );
}

#[test]
fn a_new_name_with_capitals_needs_no_noun() {
    check(
        "create Foo, test its balance with 200 users, and only if it is even, start it",
        &["create Foo", "test its balance with 200 users", "only if it is even, start it"],
    );
    check(
        "Create Hint Timing and check its balance with 100 users. If it is even, start it.",
        &["Create Hint Timing", "check its balance with 100 users", "If it is even, start it."],
    );
    check(
        "please create Fraction Bars 2, then test the balance with 50 users and start it only if it is even",
        &["please create Fraction Bars 2", "test the balance with 50 users", "start it only if it is even"],
    );
    check(
        "create Foo with conditions control and hints; test its balance with 200 users; if it is even then start it",
        &[
            "create Foo with conditions control and hints",
            "test its balance with 200 users",
            "if it is even then start it",
        ],
    );
    for said in
        ["create a plan and start it", "create lunch and test its balance with 5 users", "create a Report and start it"]
    {
        check(said, &[]);
    }
}

#[test]
fn an_answer_may_be_followed_by_a_request() {
    let draft = Draft { action: "create_experiment".into(), params: Default::default(), asked: None, unread: None };
    let of_card = Situation {
        said: "weights to 70/30 and start it".to_owned(),
        on_card: Some(draft.clone()),
        ..Situation::default()
    };
    assert_eq!(steps(&of_card), ["weights to 70/30", "start it"]);
    let asked = Some(DraftQuestion { parameter: "context".into(), ..DraftQuestion::default() });
    let of_draft = Situation {
        said: "assign-prog, and then start it".to_owned(),
        draft: Some(Draft { asked, ..draft }),
        ..Situation::default()
    };
    assert_eq!(steps(&of_draft), ["assign-prog", "start it"]);
}

#[test]
fn a_message_full_of_openings_is_parsed_quickly() {
    let said =
        format!("create experiment Foo {}", "exclude include tags conditions a, payloads x factors y and ".repeat(60));
    let situation = Situation { said, ..Situation::default() };
    assert!(steps(&situation).is_empty(), "parsing ends");
}

#[test]
fn a_single_request_is_not_separated() {
    for said in [
        "create experiment Foo in assign-prog with conditions control and treatment",
        "create experiment Foo with conditions control, hints and video",
        "create experiment Foo with conditions no hints and show hints",
        "create a group experiment Foo in assign-prog assigned by classId with conditions a and b weights 70/30",
        "initialize user u1 with groups class 5B and 5C and school North in assign-prog",
        "how do weights and consistency rules work together?",
        "create experiment Foo in assign-prog, stop after 50 users, tags pilot, autumn",
        "show Stop and Go",
        "start Read and Write",
        "delete Search and Find",
        "allow up to 3 starts and stops of Math Hints until Friday",
        "allow up to 3 starts and stops in Math Hints until Friday",
        "allow starting and stopping Math Hints until tomorrow",
        "start Read and Start Over",
        "show “Start, then stop” in detail",
        "set the description of Math Hints to Show hints and start early",
        "stop “A”, “B” and “C”",
        "archive all completed experiments from May in mathstream",
        "what conditions and sites does assign-prog have?",
        "undo: Started “A” and stopped “B”.",
        "what version is it and is UpGrade running?",
        "start Math Hints and sing a song",
        "mark SelectSection/area_model for u1 with condition control",
        "hello and thanks",
        "weights 70/30 and 50/50",
    ] {
        check(said, &[]);
    }
}
