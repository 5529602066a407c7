//! Tests with simulated participants: `test the balance of Math Hints with 200 users`, `enrol 50 users in Math Hints`,
//! `test consistency rules for Math Hints`, `generate 5 test users`.

use serde_json::{Map, Value};

use super::{
    names::{self, Named},
    participants,
    situation::Situation,
    wish::{Understood, Wish},
    words::{Word, after, skip, without_last},
};

const BALANCE: &str = "test_condition_balance";
const JOURNEY: &str = "simulate_user_journey";
const CONSISTENCY: &str = "test_consistency_rules";
const USERS: &str = "generate_test_users";

/// A test that is asked for.
pub(super) fn test(words: &[Word], situation: &Situation) -> Option<Understood> {
    balance(words, situation)
        .or_else(|| consistency(words, situation))
        .or_else(|| generate(words, situation))
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

/// `test (the) consistency (rules) (of|for) X`, `does the consistency rule of X work?`.
fn consistency(words: &[Word], situation: &Situation) -> Option<Wish> {
    const RULES: &str = "consistency rules|consistency rule|consistency";
    let whose = if let Some(rest) = after(words, "test|check|verify|run a test of|run|try|try out") {
        let rest = after(skip(rest, "the|a|its|whether the"), RULES)?;
        skip(skip(rest, "test|tests"), "of|for|on|in")
    } else {
        let rest = after(skip(words, "does the|do the|does|the"), RULES)?;
        let rest = skip(rest, "of|for|in");
        let (last, whose) = rest.split_last()?;
        last.any(&["work", "hold", "works", "apply"]).then_some(whose)?
    };
    let whose = without_last(whose, &["work", "works", "hold"]);
    let mut params = Map::new();
    named(&mut params, whose, situation);
    Some(Wish::change(CONSISTENCY, params))
}

/// `generate N test users (with groups) (for X)`, `make 10 test users with classId groups`.
fn generate(words: &[Word], situation: &Situation) -> Option<Wish> {
    let rest = after(words, "generate|make up|make|create|invent|give me|get me|prepare|generate me|make me")?;
    let (count, rest) = match users(skip(rest, "some|the|a|a few|a list of|names of|names for")) {
        (Some(count), rest) => (Some(count), rest),
        (None, rest) => (None, after(&rest, TEST_USERS)?.to_vec()),
    };
    let mut arguments = Map::new();
    arguments.extend(count.map(|count| ("users".to_owned(), count.into())));
    let at = rest.iter().position(|word| word.any(&["for", "of"])).unwrap_or(rest.len());
    let (with, whose) = rest.split_at(at);
    let with = skip(with, "ids|names");
    match skip(with, "with|in") {
        [] => {}
        [one] if one.any(&["groups", "group", "memberships"]) => {
            arguments.insert("with_groups".to_owned(), true.into());
        }
        [one] if one.any(&["classes", "schools", "districts", "teachers"]) => {
            let kind = one.lower.trim_end_matches('s').replace("classe", "class");
            arguments.insert("group_type".to_owned(), kind.into());
        }
        [kind, one] if one.any(&["groups", "group"]) => {
            arguments.insert("group_type".to_owned(), kind.text.clone().into());
        }
        _ => return None,
    }
    if let [_, whose @ ..] = whose {
        named(&mut arguments, whose, situation);
    }
    Some(Wish::Read { tool: USERS.to_owned(), arguments })
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
        "run a test user|run test user|run the test user|run user|send a test user|send user|simulate a test user|simulate test user|\
         simulate the user|simulate a user|simulate user|simulate student|simulate a visit of user|simulate a visit of|simulate",
    )?;
    let mut params = Map::new();
    let (user, rest) = match rest.split_first() {
        Some((first, rest)) if !first.any(&["visiting", "at", "in", "going", "users"]) => (Some(first), rest),
        _ => (None, rest),
    };
    params.extend(user.map(|user| ("user".to_owned(), user.text.clone().into())));
    if rest
        .first()
        .is_some_and(|first| !first.any(&["visiting", "going", "at", "to", "in", "through", "for", "taking", "with"]))
    {
        return None;
    }
    // `in Hints in Fractions` is one part; a visit and groups begin another, and “in” after these.
    let begins = |at: usize| {
        let slashed = rest.get(at + 1).is_some_and(|next| next.text.contains('/'));
        rest[at].any(&["visiting", "with"])
            || rest[at].is("at") && slashed
            || rest[at].is("in") && rest[..at].iter().any(|word| word.any(&["visiting", "with"]))
    };
    let mut start = 0;
    while start < rest.len() {
        let end = (start + 1..rest.len()).find(|at| begins(*at)).unwrap_or(rest.len());
        journey_part(&mut params, &rest[start..end], situation);
        start = end;
    }
    Some(Wish::change(JOURNEY, params))
}

/// Where a journey goes, in which experiment, or with which groups.
fn journey_part(params: &mut Map<String, Value>, part: &[Word], situation: &Situation) {
    let part = without_last(part, &[","]);
    if let Some(listed) = after(part, "with the groups|with groups|with group|with the group|with the|with") {
        let groups = participants::groups(listed, false);
        if !groups.is_empty() {
            params.insert("group".to_owned(), groups.into());
        }
    } else if let Some(place) = after(part, "visiting|going to|at|to") {
        let place = skip(place, "the decision point|decision point|the");
        let as_point = |word: &Word| {
            !word.quoted && (word.text.contains('_') || word.text.contains('-') && word.text == word.lower)
        };
        match (place, place.first().and_then(|one| one.text.split_once('/'))) {
            ([_], Some((site, target))) => {
                params.insert("site".to_owned(), site.into());
                params.insert("target".to_owned(), target.into());
            }
            ([site, target], None) if !site.quoted && as_point(target) => {
                params.insert("site".to_owned(), site.text.clone().into());
                params.insert("target".to_owned(), target.text.clone().into());
            }
            _ => named(params, place, situation),
        }
    } else if let Some(whole) = after(part, "in|through|for|taking part in") {
        named(params, whole, situation);
    }
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

const TEST_USERS: &str = "simulated users|test users|simulated user|test user|test participants|simulated participants|fake users|test students";

/// `(with|using) N (simulated|test) users` anywhere: the number, and the words without it.
pub(super) fn users(words: &[Word]) -> (Option<i64>, Vec<Word>) {
    for (at, word) in words.iter().enumerate() {
        let hundred = after(&words[at..], "a hundred|one hundred");
        let number = || word.text.replace('.', "").parse().ok().or_else(|| in_words(&word.lower));
        let Some(users) = hundred.map(|_| 100).or_else(number) else { continue };
        let following = hundred.unwrap_or(&words[at + 1..]);
        let Some(rest) =
            after(following, "users|user|participants|students|people").or_else(|| after(following, TEST_USERS))
        else {
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

/// A number up to a hundred that is written out.
fn in_words(word: &str) -> Option<i64> {
    const SMALL: &str = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen \
        seventeen eighteen nineteen";
    const TENS: &str = "twenty thirty forty fifty sixty seventy eighty ninety hundred";
    let place = |names: &str, word: &str| Some(names.split_whitespace().position(|name| name == word)? as i64);
    let tens = |word: &str| Some((place(TENS, word)? + 2) * 10);
    match word.split_once('-') {
        None => place(SMALL, word).map(|place| place + 1).or_else(|| tens(word)),
        Some((ten, one)) => Some(tens(ten).filter(|ten| *ten < 100)? + place(SMALL, one).filter(|one| *one < 9)? + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{situation::Situation, tests::check};

    #[test]
    fn consistency_rules_and_names_of_users() {
        let of_math_hints = r#"test_consistency_rules {"experiment":"Math Hints"}"#;
        check(
            &Situation { last_subject: Some("Math Hints".to_owned()), ..Situation::default() },
            &[
                ("test consistency rules for Math Hints", of_math_hints),
                ("test the consistency rule of “Math Hints”", of_math_hints),
                ("test consistency of it", of_math_hints),
                ("test its consistency rules", r#"test_consistency_rules {"experiment":"Math Hints"}"#),
                ("check the consistency rule of Math Hints", of_math_hints),
                ("does the consistency rule of Math Hints work?", of_math_hints),
                ("do the consistency rules of Math Hints hold?", of_math_hints),
                ("test the consistency rules", of_math_hints),
                ("run a consistency test for Math Hints", of_math_hints),
                (
                    "set Math Hints back to inactive",
                    r#"update_experiment_status {"experiment":"Math Hints","status":"inactive"}"#,
                ),
                (
                    "deactivate Math Hints",
                    r#"update_experiment_status {"experiment":"Math Hints","status":"inactive"}"#,
                ),
                ("what is a consistency rule?", "term consistency rule"),
                ("generate 5 test users", r#"read generate_test_users {"users":5}"#),
                ("generate test users", "read generate_test_users"),
                ("give me some test users", "read generate_test_users"),
                (
                    "make 10 test users with groups for Math Hints",
                    r#"read generate_test_users {"experiment":"Math Hints","users":10,"with_groups":true}"#,
                ),
                (
                    "create 20 simulated users with classId groups",
                    r#"read generate_test_users {"group_type":"classId","users":20}"#,
                ),
                (
                    "simulate user u1 in Zeta visiting SelectSection/area_model",
                    r#"simulate_user_journey {"experiment":"Zeta","site":"SelectSection","target":"area_model","user":"u1"}"#,
                ),
                (
                    "simulate user u1 visiting lesson-quiz question-hint with class 5B",
                    r#"simulate_user_journey {"group":{"class":["5B"]},"site":"lesson-quiz","target":"question-hint","user":"u1"}"#,
                ),
                (
                    "simulate user u5 in Class Hint Rollout with groups classId 5B visiting lesson-quiz/question-hint",
                    r#"simulate_user_journey {"experiment":"Class Hint Rollout","group":{"classId":["5B"]},"site":"lesson-quiz","target":"question-hint","user":"u5"}"#,
                ),
                (
                    "test the balance of Class Hint Rollout with fifty users",
                    r#"test_condition_balance {"experiment":"Class Hint Rollout","users":50}"#,
                ),
                (
                    "test the balance of Math Hints with a hundred users",
                    r#"test_condition_balance {"experiment":"Math Hints","users":100}"#,
                ),
                ("enrol 5 users in Math Hints", r#"test_condition_balance {"experiment":"Math Hints","users":5}"#),
            ],
        );
    }
}
