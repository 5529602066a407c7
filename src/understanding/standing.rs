//! Standing approvals: `allow up to 200 simulated users in Math Hints until Friday`, `list standing approvals`,
//! `revoke standing approval sa-1a2b3c`.

use serde_json::{Map, Value};

use super::{
    names::{self, Named},
    situation::Situation,
    testing,
    wish::{Understood, Wish},
    words::{Word, after, lower, skip, text},
};

const GRANT: &str = "grant_standing_approval";
const REVOKE: &str = "revoke_standing_approval";
const LIST: &str = "list_standing_approvals";

/// What is asked about, or of, standing approvals.
pub(super) fn standing(words: &[Word], situation: &Situation) -> Option<Understood> {
    list(words).or_else(|| revoke(words, situation)).or_else(|| grant(words, situation)).map(Understood::from)
}

/// `list (the) standing approvals`, `what may be done without asking?`.
fn list(words: &[Word]) -> Option<Wish> {
    const SHOWN: &str = "list|show|show me|what are|which are|which|are there|are there any|what|do we have|give me";
    let rest = skip(skip(words, SHOWN), "all the|all|the|our|any|me the|me all");
    let named = after(rest, "standing approvals|standing approval");
    let ends = |rest: &[Word]| {
        rest.is_empty()
            || after(rest, "are there|there are|do we have|exist|here|in force|now").is_some_and(<[_]>::is_empty)
    };
    let asked = lower(words);
    let in_other_words =
        ["what may be done without asking", "what may i do without asking", "what can be done without asking"];
    let is_asked = named.is_some_and(ends) || in_other_words.contains(&asked.as_str());
    is_asked.then(|| Wish::Read { tool: LIST, arguments: Map::new() })
}

/// `revoke (the) standing approval (sa-1a2b3c | for X)`, `end sa-1a2b3c`.
fn revoke(words: &[Word], situation: &Situation) -> Option<Wish> {
    let rest = after(words, "revoke|end|withdraw|take back|cancel|stop|remove|delete|undo")?;
    let rest = skip(rest, "the|my|our|that|this");
    let named = after(rest, "standing approval|standing approvals");
    let by_id = |rest: &[Word]| matches!(rest, [one] if one.lower.starts_with("sa-"));
    let rest = match named {
        Some(rest) => skip(rest, "for|of|in|on"),
        None if by_id(rest) => rest,
        None => return None,
    };
    let mut params = Map::new();
    if let Some(name) = name_in(rest, situation) {
        params.insert("id".to_owned(), name.into());
    }
    Some(Wish::change(REVOKE, params))
}

/// `allow up to 200 simulated users in X until Friday`, `may simulate up to 200 users in X until Friday`,
/// `allow up to 5 starts and stops of X until Friday`.
fn grant(words: &[Word], situation: &Situation) -> Option<Wish> {
    const NAMED: &str = "grant a standing approval|grant standing approval|grant us a standing approval|\
        give us a standing approval|give a standing approval|give me a standing approval|ask for a standing approval|\
        request a standing approval|i want a standing approval|i need a standing approval|we need a standing approval|\
        set up a standing approval|make a standing approval|create a standing approval|add a standing approval|\
        new standing approval|a standing approval|standing approval";
    const ALLOWED: &str = "allow us to|allow me to|allow everybody to|allow everyone to|allow|permit us to|permit|let us|\
        approve in advance|pre-approve|preapprove|may|you may|i may|we may|everybody may|everyone may|anybody may|anyone may|\
        the team may";
    let by_name = after(words, NAMED);
    let rest = match by_name {
        Some(rest) => skip(skip(rest, "to allow|for|to|that allows|that"), ALLOWED),
        None => after(words, ALLOWED)?,
    };
    let rest = skip(rest, "to");
    let mut params = Map::new();
    let rest = match rest.iter().rposition(|word| word.any(&["until", "till"])) {
        Some(at) if at + 1 < rest.len() => {
            params.insert("until".to_owned(), text(&rest[at + 1..]).into());
            &rest[..at]
        }
        _ => rest,
    };
    let within = simulated(rest, &mut params).or_else(|| started(rest, &mut params));
    match within {
        Some(within) => {
            let within = after(&within, "in|into|for|of|on|with|at").map(<[_]>::to_vec).unwrap_or(within);
            if let Some(name) = name_in(skip(&within, "the experiment|experiment|the context|context|the"), situation) {
                params.insert("within".to_owned(), name.into());
            }
        }
        // “Grant a standing approval” alone: what for is asked then. “May I …” is no such request.
        None if by_name.is_some() && rest.is_empty() => {}
        None => return None,
    }
    Some(Wish::change(GRANT, params))
}

const UP_TO: &str = "up to|at most|as many as|no more than|not more than|a maximum of|max";

/// `simulate up to 200 users`, `up to 200 simulated users`: what comes after.
fn simulated(words: &[Word], params: &mut Map<String, Value>) -> Option<Vec<Word>> {
    const VERBS: &str = "simulate|simulating|the simulation of|simulation of|simulations of|enrol|enroll|enrolling|\
        balance tests with|tests with|testing with|test with";
    let verb = after(words, VERBS);
    let (users, rest) = testing::users(skip(verb.unwrap_or(words), UP_TO));
    let simulates = verb.is_some() || words.iter().any(|word| word.any(&["simulated", "test", "fake"]));
    if !simulates || (users.is_none() && verb.is_none()) {
        return None;
    }
    params.insert("what".to_owned(), "simulate".into());
    params.extend(users.map(|users| ("limit".to_owned(), users.into())));
    let rest = if users.is_none() { skip(&rest, "simulated users|test users|users").to_vec() } else { rest };
    Some(rest)
}

/// `up to 5 starts and stops of`, `starting and stopping`: what comes after.
fn started(words: &[Word], params: &mut Map<String, Value>) -> Option<Vec<Word>> {
    const CHANGES: &str = "starts and stops|starts or stops|changes of status|status changes|starts|stops";
    const VERBS: &str = "starting and stopping|starting or stopping|start and stop|start or stop";
    let counted = skip(words, UP_TO);
    let number = counted.split_first().and_then(|(number, rest)| Some((number.text.parse::<u64>().ok()?, rest)));
    let rest = match number {
        Some((number, rest)) => {
            let rest = after(rest, CHANGES)?;
            params.insert("limit".to_owned(), number.into());
            rest
        }
        None => after(words, VERBS).or_else(|| after(words, CHANGES))?,
    };
    params.insert("what".to_owned(), "start_and_stop".into());
    Some(rest.to_vec())
}

fn name_in(words: &[Word], situation: &Situation) -> Option<String> {
    match names::experiment(words, situation) {
        Named::Name(name) if !words.is_empty() => Some(name),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{situation::Situation, tests::check};

    #[test]
    fn standing_approvals_are_asked_for_listed_and_ended() {
        let simulate =
            r#"grant_standing_approval {"limit":200,"until":"Friday","what":"simulate","within":"Math Hints"}"#;
        check(
            &Situation::default(),
            &[
                ("allow up to 200 simulated users in Math Hints until Friday", simulate),
                ("may simulate up to 200 users in Math Hints until Friday", simulate),
                ("you may simulate up to 200 users in “Math Hints” until Friday", simulate),
                ("please allow us to simulate 200 test users in Math Hints until Friday", simulate),
                ("grant a standing approval to simulate up to 200 users in Math Hints until Friday", simulate),
                ("standing approval for up to 200 simulated users in Math Hints until Friday", simulate),
                (
                    "allow at most 50 simulated users in assign-prog until 2027-01-15 09:00",
                    r#"grant_standing_approval {"limit":50,"until":"2027-01-15 09:00","what":"simulate","within":"assign-prog"}"#,
                ),
                (
                    "allow up to 5 starts and stops of Math Hints until Friday",
                    r#"grant_standing_approval {"limit":5,"until":"Friday","what":"start_and_stop","within":"Math Hints"}"#,
                ),
                (
                    "allow starting and stopping Math Hints until tomorrow",
                    r#"grant_standing_approval {"until":"tomorrow","what":"start_and_stop","within":"Math Hints"}"#,
                ),
                ("grant a standing approval", "grant_standing_approval {}"),
                ("list standing approvals", "read list_standing_approvals"),
                ("show me the standing approvals", "read list_standing_approvals"),
                ("which standing approvals are there?", "read list_standing_approvals"),
                ("what may be done without asking?", "read list_standing_approvals"),
                ("revoke standing approval sa-1a2b3c", r#"revoke_standing_approval {"id":"sa-1a2b3c"}"#),
                ("revoke sa-1a2b3c", r#"revoke_standing_approval {"id":"sa-1a2b3c"}"#),
                ("end the standing approval for Math Hints", r#"revoke_standing_approval {"id":"Math Hints"}"#),
                ("revoke the standing approval", "revoke_standing_approval {}"),
                ("stop Math Hints", r#"update_experiment_status {"experiment":"Math Hints","status":"stop"}"#),
                ("simulate 50 users in Math Hints", r#"test_condition_balance {"experiment":"Math Hints","users":50}"#),
            ],
        );
    }
}
