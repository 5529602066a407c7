//! Tests with simulated participants: `test the balance of Math Hints with 200 users`, `enrol 50 users in Math Hints`.

use serde_json::Map;

use super::{
    names::{self, Named},
    situation::Situation,
    wish::{Understood, Wish},
    words::{Word, after, skip},
};

const BALANCE: &str = "test_condition_balance";

/// A test that is asked for.
pub(super) fn test(words: &[Word], situation: &Situation) -> Option<Understood> {
    balance(words, situation).or_else(|| enrol(words, situation)).map(Understood::from)
}

/// `test (the) (condition) balance (of|for) X (with N users)`.
fn balance(words: &[Word], situation: &Situation) -> Option<Wish> {
    let rest = after(words, "test|check|run a test of|run|try")?;
    let rest = skip(rest, "the|a");
    let rest = after(
        rest,
        "condition balance test|condition balance|balance of conditions|balance test|balance|assignment balance|weights|distribution of conditions|distribution",
    )?;
    let rest = skip(rest, "of the conditions|of conditions");
    let (users, rest) = users(rest);
    Some(change(skip(&rest, "of|for|on|in"), users, situation))
}

/// `enrol N users in X`.
fn enrol(words: &[Word], situation: &Situation) -> Option<Wish> {
    let rest = after(words, "enroll|enrol|simulate|add|send")?;
    let (users, rest) = users(rest);
    let whose = after(&rest, "in|into|to|for|at|through")?;
    users.map(|users| change(whose, Some(users), situation))
}

fn change(experiment: &[Word], users: Option<i64>, situation: &Situation) -> Wish {
    let mut params = Map::new();
    if let Named::Name(name) = names::experiment(experiment, situation) {
        params.insert("experiment".to_owned(), name.into());
    }
    if let Some(users) = users {
        params.insert("users".to_owned(), users.into());
    }
    Wish::change(BALANCE, params)
}

/// `(with|using) N (simulated|test) users` anywhere: the number, and the words without it.
fn users(words: &[Word]) -> (Option<i64>, Vec<Word>) {
    for (at, word) in words.iter().enumerate() {
        let Ok(users) = word.text.replace('.', "").parse::<i64>() else { continue };
        let Some(rest) = after(
            &words[at + 1..],
            "users|user|simulated users|test users|simulated user|test user|participants|students|people|simulated participants|fake users",
        ) else {
            continue;
        };
        let mut before = words[..at].to_vec();
        while before.last().is_some_and(|word| word.any(&["with", "using", "for", "by", "of"])) {
            before.pop();
        }
        before.extend_from_slice(rest);
        return (Some(users), before);
    }
    (None, words.to_vec())
}
