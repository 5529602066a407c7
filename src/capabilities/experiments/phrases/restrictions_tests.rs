//! Property tests that no restriction in a request is ignored: each one is in the proposed change or in
//! the reply to the person.

use proptest::prelude::*;

use super::{book, situation::Situation, tests::understand, user_request::UserRequest};

use countersign_understanding::lexicon::{Mention, Name, Names, fold};

const NAMES: &[&str] =
    &["Math Hints", "Running Test", "Geometry B", "Ana's Übung 🚀", "Stop and Go", "数学提示", "Foo Experiment"];

/// Returns the names on a platform.
pub(super) fn names() -> Names {
    let context = |context: &&str| Name { kind: "context".to_owned(), subject: false, ..name(context) };
    Names::new(NAMES.iter().map(|experiment| name(experiment)).chain(["assign-prog", "mathstream"].iter().map(context)))
}

fn name(name: &str) -> Name {
    Name {
        kind: "experiment".to_owned(),
        name: name.to_owned(),
        id: None,
        owner: "experiments".to_owned(),
        subject: true,
    }
}

/// Returns the situation of a message, with the names that it mentions.
fn situation(said: &str) -> Situation {
    let found: Vec<Mention> = names().find(said);
    Situation { said: said.to_owned(), names: found, today: "2026-11-22".to_owned(), ..Situation::default() }
}

/// Generates a restriction with its marks. The change or the reply must contain one mark of each list.
fn restriction() -> impl Strategy<Value = (String, Vec<Vec<&'static str>>)> {
    let fixed: Vec<(&'static str, Vec<Vec<&'static str>>)> = vec![
        ("on Friday", vec![vec!["friday"]]),
        ("on Friday evening", vec![vec!["friday"], vec!["evening"]]),
        ("tomorrow at 8", vec![vec!["tomorrow"], vec!["8"]]),
        ("on 3 December at 9am", vec![vec!["2026-12-03", "december"], vec!["9"]]),
        ("next week", vec![vec!["week"]]),
        ("in two weeks", vec![vec!["two", "2"]]),
        ("at midnight", vec![vec!["midnight"]]),
        ("until Dec 18", vec![vec!["18"]]),
        ("before the exam", vec![vec!["exam"]]),
        ("after Thanksgiving", vec![vec!["thanksgiving"]]),
        ("for class 5B only", vec![vec!["5b"]]),
        ("but only in class 5B", vec![vec!["5b"]]),
        ("only for school 12", vec![vec!["12"]]),
        ("but only 200 users", vec![vec!["200"]]),
        ("with at most 200 users", vec![vec!["200"]]),
        ("for half of the students", vec![vec!["half"]]),
        ("in assign-prog", vec![vec!["assign-prog", "assign prog"]]),
        ("if Bo agrees", vec![vec!["bo"]]),
        ("unless Ana objects", vec![vec!["ana"]]),
        ("once Running Test has ended", vec![vec!["once", "running test"]]),
        ("except in mathstream", vec![vec!["mathstream"]]),
        ("without the video condition", vec![vec!["video"]]),
        ("and Tutor Voice", vec![vec!["tutor"]]),
        ("and keep the data", vec![vec!["data"]]),
        ("at 50%", vec![vec!["50"]]),
        ("twice", vec![vec!["twice"]]),
        ("in an hour", vec![vec!["hour"]]),
        ("as a pilot", vec![vec!["pilot"]]),
        ("or Running Test", vec![vec!["or", "running test"]]),
        ("for two weeks", vec![vec!["weeks"]]),
        ("from scratch", vec![vec!["scratch"]]),
        ("for the variant condition", vec![vec!["variant"]]),
        ("with 3 conditions", vec![vec!["3"]]),
        ("on the site SelectSection", vec![vec!["selectsection"]]),
        ("but keep it hidden from class 5B", vec![vec!["5b"]]),
        ("slowly", vec![vec!["slowly"]]),
        ("like Running Test", vec![vec!["like", "running test"]]),
        ("instead of Geometry B", vec![vec!["geometry b"]]),
    ];
    proptest::sample::select(fixed).prop_map(|(said, marks)| (said.to_owned(), marks))
}

fn verb() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(vec![
        "start",
        "please stop",
        "pause",
        "resume",
        "cancel",
        "archive",
        "delete",
        "can you start",
        "let's launch",
        "kick off",
        "set the weights to 70/30 for",
        "exclude u17 from",
        "schedule",
        "would you mind stopping",
        "run",
        "turn off",
        "test the balance of",
        "simulate 50 users in",
        "test consistency rules for",
        "remove",
    ])
}

proptest! {
    #[test]
    fn a_restriction_is_in_the_change_or_the_reply(
        verb in verb(),
        name in proptest::sample::select(NAMES.to_vec()),
        quotes in any::<bool>(),
        (said, marks) in restriction(),
        comma in any::<bool>(),
        first in any::<bool>(),
        ending in proptest::sample::select(vec!["", " please", ", thanks!", "."]),
    ) {
        let name = if quotes { format!("“{name}”") } else { name.to_owned() };
        let comma = if comma { "," } else { "" };
        let words = match first {
            true => format!("{said}, {verb} {name}{ending}"),
            false => format!("{verb} {name}{comma} {said}{ending}"),
        };
        let situation = situation(&words);
        let result = match (understand(&situation).user_request, book().steps(&situation)) {
            (_, steps) if steps.len() > 1 => steps.join(" "), // each step is a separate request
            (UserRequest::Change { params, .. }, _) => serde_json::Value::Object(params).to_string(),
            (UserRequest::Unclear { question, options }, _) if question.is_empty() && options.is_empty() => return Ok(()),
            (UserRequest::Unclear { question, options }, _) => {
                // The buttons, if any, contain it as well.
                for option in &options {
                    let option = option.to_lowercase();
                    prop_assert!(marks.iter().flatten().any(|mark| option.contains(mark)), "{words}: the button {option}");
                }
                question
            }
            (UserRequest::Read { .. } | UserRequest::Term { .. } | UserRequest::Talk(_) | UserRequest::Unsupported | UserRequest::Drop, _) => return Ok(()),
            (UserRequest::Update(params), _) => serde_json::Value::Object(params).to_string(),
        };
        let (plain, folded) = (result.to_lowercase(), fold(&result));
        for any in &marks {
            let kept = any.iter().any(|mark| plain.contains(mark) || folded.contains(&fold(mark)));
            prop_assert!(kept, "{words}: {result}");
        }
    }
}

#[test]
fn requests_without_a_restriction_are_understood() {
    for name in NAMES {
        for (said, status) in [
            (format!("start {name}"), "start"),
            (format!("please start the {name} experiment for me"), "start"),
            (format!("hey team, let's start {name} right now!"), "start"),
            (format!("would you mind stopping “{name}”? cheers"), "stop"),
            (format!("{name} can be archived, it's done"), "archived"),
            (format!("kick off {name} for me, would you?"), "start"),
            (format!("stop the one called {name}"), "stop"),
            (format!("pause {} when you get a chance", name.to_lowercase()), "pause"),
        ] {
            let UserRequest::Change { params, .. } = understand(&situation(&said)).user_request else {
                panic!("{said}")
            };
            assert_eq!(params["status"], status, "{said}");
            assert_eq!(fold(params["experiment"].as_str().unwrap()), fold(name), "{said}");
        }
    }
}

#[test]
fn another_experiment_that_stays_as_it_is_restricts_nothing() {
    for said in ["stop Math Hints, but not Geometry B", "stop Math Hints but not Running Test"] {
        let UserRequest::Change { params, .. } = understand(&situation(said)).user_request else { panic!("{said}") };
        assert_eq!((&params["experiment"], &params["status"]), (&"Math Hints".into(), &"stop".into()), "{said}");
    }
    for said in ["stop everything but not Math Hints", "stop Math Hints, but not Math Hints"] {
        assert!(matches!(understand(&situation(said)).user_request, UserRequest::Unclear { .. }), "{said}");
    }
}

/// Returns the reply to a request that is refused.
fn reply_to(said: &str) -> String {
    match understand(&situation(said)).user_request {
        UserRequest::Unclear { question, options } if options.is_empty() => question,
        other => format!("{other:?}"),
    }
}

#[test]
fn an_unsupported_restriction_is_quoted_in_the_reply() {
    let rest = "Nothing was changed. Ask again without it, or put it another way.";
    assert_eq!(
        reply_to("cancel Math Hints but only with 200 users"),
        format!("I can cancel Math Hints, but not “only with 200 users”. {rest}")
    );
    assert_eq!(
        reply_to("please pause Geometry B for class 5B"),
        format!("I can pause Geometry B, but not “for class 5B”. {rest}")
    );
    assert_eq!(
        reply_to("cancel Running Test next week"),
        format!("I can cancel Running Test, but not “next week”. {rest}")
    );
    assert_eq!(
        reply_to("stop everything in mathstream apart from Geometry B"),
        "I couldn't make sense of “everything in mathstream apart from Geometry B” in that. Nothing was changed. What did you mean by it?"
    );
}

#[test]
fn a_name_is_found_among_thousands() {
    let many =
        Names::new((0..5_000).map(|at| name(&format!("{} Hints {at}", ["Math", "Geometry", "Reading"][at % 3]))));
    let said = "Hey team, when you get a chance, could you please start Math Hints 4320 on Friday at 9:00, but only for class 5B \
                of the northern schools, as their teachers would like to be the first who try it before the holidays begin, \
                thanks a lot to all of you and have a nice day";
    let names = many.find(said);
    assert_eq!(names.iter().map(|name| name.name.as_str()).collect::<Vec<_>>(), ["Math Hints 4320"]);
    let situation = Situation { said: said.to_owned(), names, today: "2026-11-22".to_owned(), ..Situation::default() };
    understand(&situation); // the benchmark measures the time
}
