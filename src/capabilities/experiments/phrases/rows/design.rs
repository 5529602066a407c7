//! What an experiment compares, whom, and up to when; and tests with simulated users.

use serde_json::{Map, Value, json};

use super::super::{
    changes::UPDATE,
    intents::{Intent, Taken, Takes},
    slots::Slot,
    wish::Wish,
};

/// The rows.
pub(super) const ROWS: &[Intent] = &[
    Intent {
        action: UPDATE,
        verbs: "set/setting/set|change/changing/changed|update/updating/updated|adjust/adjusting/adjusted|make/making/made|switch|put|\
                edit|modify|give|use|move|split|weight|rebalance|let have|should be|should have",
        nouns: &[
            "weights",
            "weight",
            "split",
            "ratio",
            "weighting",
            "assignment",
            "weightings",
            "distribution",
            "condition",
        ],
        takes: &[Takes::Subjects, Takes::Weights],
        make: weights,
        with: "",
    },
    Intent {
        action: UPDATE,
        verbs: "let end after|end after|ends after|should end after|stop after|should stop after|finish after|close after|\
                end enrollment after|stop enrollment after|let stop after|limit|cap|end once has|stop enrolling after",
        nouns: &["enrollment", "enrolment"],
        takes: &[Takes::Subjects, Takes::Count],
        make: ends_after,
        with: "",
    },
    Intent {
        action: UPDATE,
        verbs: "end/ending/ended|let end|should end|finish/finishing/finished|set end date|change end date|move end date|set end|\
                move end|change end",
        nouns: &["enrollment", "enrolment"],
        takes: &[Takes::Subjects, Takes::Moment, Takes::Until],
        make: ends_on,
        with: "",
    },
    Intent {
        action: UPDATE,
        verbs: "keep out|leave out|exclude/excluding/excluded|take out|shut out",
        nouns: &[],
        takes: &[Takes::Subjects, Takes::Members],
        make: members,
        with: "add_to_exclusion",
    },
    Intent {
        action: UPDATE,
        verbs: "include/including/included|let in|bring in",
        nouns: &[],
        takes: &[Takes::Subjects, Takes::Members],
        make: members,
        with: "add_to_inclusion",
    },
    Intent {
        action: UPDATE,
        verbs: "assign/assigning/assigned|randomize/randomizing/randomized|draw|set assign|make assign|use|set|switch",
        nouns: &["instead", "individually", "rather", "than", "individual", "users", "students"],
        takes: &[Takes::Subjects, Takes::GroupType],
        make: by_group,
        with: "",
    },
    Intent {
        action: "test_condition_balance",
        verbs: "test balance|check balance|test condition balance|try balance|simulate|simulate enrolling|enroll|run balance test",
        nouns: &["conditions"],
        takes: &[Takes::Subjects, Takes::Count],
        make: balance,
        with: "",
    },
];

fn about(taken: &Taken<'_>, key: &str, value: impl Into<Value>) -> Option<Wish> {
    let mut params = Map::from_iter([("experiment".to_owned(), Value::from(taken.subject()?))]);
    params.insert(key.to_owned(), value.into());
    Some(Wish::change(UPDATE, params))
}

fn weights(taken: &Taken<'_>, _: &'static str) -> Option<Wish> {
    let weights = taken.find(|slot| match slot {
        Slot::Weights(weights) => Some(weights.clone()),
        _ => None,
    });
    about(taken, "weights", weights?)
}

fn ends_after(taken: &Taken<'_>, _: &'static str) -> Option<Wish> {
    let (number, of) = count(taken)?;
    about(taken, if of == "groups" { "ends_after_groups" } else { "ends_after_users" }, number)
}

fn count(taken: &Taken<'_>) -> Option<(u64, &'static str)> {
    taken.find(|slot| match slot {
        Slot::Count { number, of } => Some((*number, *of)),
        _ => None,
    })
}

fn ends_on(taken: &Taken<'_>, _: &'static str) -> Option<Wish> {
    let when = taken.find(|slot| match slot {
        Slot::Moment { when, .. } => Some(when.clone()),
        _ => None,
    });
    about(taken, "end_on", when?)
}

fn members(taken: &Taken<'_>, list: &'static str) -> Option<Wish> {
    let members = taken.find(|slot| match slot {
        Slot::Members(members) => Some(json!(members)),
        _ => None,
    });
    about(taken, list, members?)
}

fn by_group(taken: &Taken<'_>, _: &'static str) -> Option<Wish> {
    let kind = taken.find(|slot| match slot {
        Slot::GroupType(kind) => Some(kind.clone()),
        _ => None,
    });
    let mut params = Map::from_iter([("experiment".to_owned(), Value::from(taken.subject()?))]);
    params.insert("unit".to_owned(), "group".into());
    params.insert("group".to_owned(), kind?.into());
    Some(Wish::change(UPDATE, params))
}

fn balance(taken: &Taken<'_>, _: &'static str) -> Option<Wish> {
    let (number, of) = count(taken)?;
    let mut params = Map::from_iter([("experiment".to_owned(), Value::from(taken.subject()?))]);
    params.insert("users".to_owned(), number.into());
    (of == "users").then(|| Wish::change("test_condition_balance", params))
}
