//! Tests with simulated participants: `test the balance of Math Hints with 200 users`, `enrol 50 users in Math Hints`.

use serde_json::{Map, Value};

use super::{
    names::{self, Named},
    situation::Situation,
    wish::{Understood, Wish},
    words::{Word, after, skip},
};

const BALANCE: &str = "test_condition_balance";
const JOURNEY: &str = "simulate_user_journey";

/// A test that is asked for.
pub(super) fn test(words: &[Word], situation: &Situation) -> Option<Understood> {
    balance(words, situation)
        .or_else(|| enrol(words, situation))
        .or_else(|| journey(words, situation))
        .map(Understood::from)
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

/// `simulate user u1 visiting SelectSection area_model`, `simulate user u1 in Math Hints`.
fn journey(words: &[Word], situation: &Situation) -> Option<Wish> {
    let rest = after(
        words,
        "simulate the user|simulate a user|simulate user|simulate student|simulate a visit of user|simulate a visit of|simulate",
    )?;
    let mut params = Map::new();
    let (user, rest) = match rest.split_first() {
        Some((first, rest)) if !first.any(&["visiting", "at", "in", "going", "users"]) => (Some(first), rest),
        _ => (None, rest),
    };
    params.extend(user.map(|user| ("user".to_owned(), user.text.clone().into())));
    if let Some(place) = after(rest, "visiting|going to|at|to") {
        let place = skip(place, "the decision point|decision point|the");
        match (place, place.first().and_then(|one| one.text.split_once('/'))) {
            ([_], Some((site, target))) => {
                params.insert("site".to_owned(), site.into());
                params.insert("target".to_owned(), target.into());
            }
            ([site, target], None) if !site.quoted && target.text.contains('_') => {
                params.insert("site".to_owned(), site.text.clone().into());
                params.insert("target".to_owned(), target.text.clone().into());
            }
            _ => named(&mut params, place, situation),
        }
    } else if let Some(experiment) = after(rest, "in|through|for|taking part in") {
        named(&mut params, experiment, situation);
    } else if !rest.is_empty() {
        return None;
    }
    Some(Wish::change(JOURNEY, params))
}

fn named(params: &mut Map<String, Value>, experiment: &[Word], situation: &Situation) {
    if let Named::Name(name) = names::experiment(experiment, situation) {
        params.insert("experiment".to_owned(), name.into());
    }
}

fn change(experiment: &[Word], users: Option<i64>, situation: &Situation) -> Wish {
    let mut params = Map::new();
    named(&mut params, experiment, situation);
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
