//! What concerns one participant: who they are, what they would get, where they have been.

use serde_json::{Map, Value, json};

use super::{
    clauses, names, slots,
    wish::{Understood, Wish},
    words::{Word, after, skip, text, without_last},
};

const ASSIGNMENTS: &str = "get_decision_point_assignments";
const INIT: &str = "init_experiment_user";
const MARK: &str = "mark_decision_point";

/// What is asked about, or of, one participant.
pub(super) fn participant(words: &[Word]) -> Option<Understood> {
    init(words).or_else(|| mark(words)).or_else(|| assignments(words)).map(Understood::from)
}

/// `… in assign-prog` anywhere: the context, and the words without it.
fn context(words: &[Word]) -> (Option<String>, Vec<Word>) {
    for (i, word) in words.iter().enumerate().rev() {
        if !word.any(&["in", "within"]) {
            continue;
        }
        let named = skip(&words[i + 1..], "the context|context|the");
        let Some((first, rest)) = named.split_first() else { continue };
        let rest = skip(rest, "context");
        // `… in Math Hints`: an experiment, by its whole name.
        const ON: [&str; 10] = ["at", "with", "who", "and", ",", "working", "is", "on", "right", "now"];
        if !rest.is_empty() && !rest.iter().any(|word| word.any(&ON)) {
            return (Some(text(named)), words[..i].to_vec());
        }
        let mut others = words[..i].to_vec();
        others.extend_from_slice(rest);
        return (Some(first.text.clone()), others);
    }
    (None, words.to_vec())
}

fn init(words: &[Word]) -> Option<Wish> {
    let rest = after(words, "initialize|initialise|initialize experiment|init|register|set up|create|add|introduce")?;
    let named = after(
        rest,
        "the user|the participant|the student|a user|user|participant|student|test user|experiment user|a test user|new user|a new user",
    );
    // `initialize u1 in assign-prog`: nobody but a user is initialised, so one word alone is one.
    let bare = || {
        let one = rest.get(1).is_none_or(|next| next.any(&["in", "within", "with", "working", "and", ","]));
        (one && words[0].any(&["initialize", "initialise", "init"]) && !rest.first()?.is("it")).then_some(rest)
    };
    let rest = skip(named.or_else(bare)?, "called|named|with id|id");
    let mut params = Map::new();
    // `initialize a user in assign-prog`: who is still to be asked.
    let rest = match rest.split_first() {
        Some((user, rest)) if !user.any(&["in", "within", "with", "for", "and", ",", "who"]) => {
            params.insert("user".to_owned(), user.text.clone().into());
            rest
        }
        _ => rest,
    };
    let (context, rest) = context(rest);
    params.extend(context.map(|context| ("context".to_owned(), context.into())));
    let mut rest = skip(&rest, ",").to_vec();
    if let Some(i) = rest.iter().position(|word| word.is("working")) {
        let working = rest.split_off(i);
        let named = skip(&working, "working groups|working group");
        let groups = groups(skip(named, "is|of|in|,"), true);
        if !groups.is_empty() {
            params.insert("working_group".to_owned(), groups.into());
        }
        while rest.last().is_some_and(|word| word.any(&["and", "with", ",", "in", "the"])) {
            rest.pop();
        }
    }
    let groups =
        groups(skip(skip(&rest, "with|who is|in|and"), "the groups|groups|group|in|the|memberships|membership"), false);
    if !groups.is_empty() {
        params.insert("group".to_owned(), groups.into());
    }
    Some(Wish::change(INIT, params))
}

/// `class 5B and 5C, school North`: ids by type. A working group has one id for each type.
pub(super) fn groups(words: &[Word], one_each: bool) -> Map<String, Value> {
    let mut groups: Map<String, Value> = Map::new();
    let (items, _) = clauses::list(words);
    let mut kind: Option<String> = None;
    for item in &items {
        let id = match item.as_slice() {
            [one] => match one.text.split_once([':', '=']) {
                Some((named, id)) => {
                    kind = Some(named.to_owned());
                    id.to_owned()
                }
                None => one.text.clone(),
            },
            [named, id @ ..] => {
                kind = Some(named.text.trim_end_matches(':').to_owned());
                text(id)
            }
            [] => continue,
        };
        let Some(kind) = &kind else { continue };
        if one_each {
            groups.insert(kind.clone(), id.into());
        } else if let Value::Array(ids) = groups.entry(kind.clone()).or_insert_with(|| json!([])) {
            ids.push(id.into());
        }
    }
    groups
}

fn mark(words: &[Word]) -> Option<Wish> {
    let rest = after(
        words,
        "mark the decision point|mark decision point|mark a visit to|mark a visit of|mark a visit at|mark|record a visit of|record a visit to|record a visit at|record",
    )?;
    let at = rest.iter().position(|word| !word.quoted && slots::point(&word.text).is_some())?;
    let (site, target) = rest[at].text.split_once('/')?;
    let mut params =
        Map::from_iter([("site".to_owned(), Value::from(site)), ("target".to_owned(), Value::from(target))]);
    let mut others = rest[..at].to_vec();
    others.extend_from_slice(&rest[at + 1..]);
    // A point can belong to several experiments, and to several contexts.
    if let Some(i) = others.iter().position(|word| word.any(&["in", "of"])) {
        let mut named = others.split_off(i);
        let end = named.iter().position(|word| word.any(&["with", ",", "for"])).unwrap_or(named.len());
        others.extend(named.split_off(end));
        let whole = skip(&named[1..], "the context|context|the experiment|experiment|the");
        let place = without_last(whole, &["context"]);
        let is_context = place.len() < whole.len() || names::looks_like_context(place) && named[0].is("in");
        params.insert(if is_context { "context" } else { "experiment" }.to_owned(), text(place).into());
    }
    if let Some(i) = others.iter().position(|word| word.any(&["condition", "with"]))
        && let Some(code) = skip(&others[i..], "with the condition|with condition|condition|with").first()
    {
        params.insert("condition".to_owned(), code.text.clone().into());
    }
    let small = ["for", "user", "at", "by", "as", "visited", "participant", "student", "the", "on", "to"];
    let end = others.iter().position(|word| word.any(&["with", "condition", ",", "and"])).unwrap_or(others.len());
    if let Some(user) = others[..end].iter().find(|word| !word.any(&small)) {
        params.insert("user".to_owned(), user.text.clone().into());
    }
    Some(Wish::change(MARK, params))
}

fn assignments(words: &[Word]) -> Option<Wish> {
    let (context, words) = context(words);
    let read = |user: &Word| {
        let mut params = Map::from_iter([("user".to_owned(), Value::from(user.text.clone()))]);
        params.extend(context.clone().map(|context| ("context".to_owned(), context.into())));
        Some(Wish::change(ASSIGNMENTS, params))
    };
    let about = after(
        &words,
        "get the assignments for|get the assignments of|get assignments for|get assignments of|get assignment for|show the assignments of|show the assignments for|\
         show me the assignments of|show me the assignments for|show assignments for|show assignments of|list assignments for|list assignments of|assignments for|\
         assignments of|what assignments does|what are the assignments of|what are the assignments for|which assignments does|assignment for|assignment of|assign",
    );
    if let Some(rest) = about {
        return skip(rest, "the user|user|participant|student").first().and_then(read);
    }
    let asked = skip(&words, "tell me|show me|find out|do you know|you know|know|check|see");
    let rest = after(asked, "what condition|which condition|what conditions|which conditions|what|which")?;
    let turned; // `what condition user u1 would get`
    let rest = match after(rest, "would|will|does|did|do|is|should|has") {
        Some(rest) => rest,
        None => {
            let place = rest.iter().position(|word| word.any(&["would", "will", "gets", "sees"]))?;
            turned = rest.iter().filter(|word| !word.any(&["would", "will"])).cloned().collect::<Vec<_>>();
            (1..=3).contains(&place).then_some(turned.as_slice())?
        }
    };
    let (user, rest) = skip(rest, "the user|user|participant|student").split_first()?;
    let verb = rest.first();
    let asks = match verb {
        Some(verb) => verb.any(&["get", "gets", "see", "sees", "have", "receive", "be", "got", "assigned", "gotten"]),
        None => {
            context.is_some()
                && words.iter().any(|word| word.any(&["condition"]))
                && words.iter().any(|word| word.is("is"))
        }
    };
    let looks_like_user = !user.any(&["it", "the", "that", "experiment", "this", "we", "you", "i", "a"]);
    let about_user = words.iter().any(|word| word.any(&["would", "will", "user", "participant", "student"]))
        || (words.iter().any(|word| word.is("condition")) && user.text.chars().any(|c| c.is_ascii_digit()))
        || rest.first().is_some_and(|verb| verb.any(&["get", "gets", "see", "sees", "receive"]));
    (asks && looks_like_user && about_user).then(|| read(user)).flatten()
}
