//! Every word of a request is accounted for: it is in a value of the change, belongs to how the change is asked for, or is
//! politeness. What is not is a restriction that would be lost, so it is told, and nothing is done.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::understanding::phrases::{Heard, Phrases as _};

use super::{
    intents::{declined, told},
    lexicon::fold,
    situation::Situation,
    slots::{Part, SMALL, cut},
    wish::Understood,
    words::Word,
};

/// Words with which changes are asked for.
const ASKING: &str = "create make set up build add new design draft another update change edit modify adjust move put give \
    rename call called named titled switch get as into using use or and next this coming utc one ones me us them they also too \
    then simulated test tests fake initialize initialise init register introduce mark record visit visited visits saying by \
    take off working on within check try simulate simulating generate visiting through taking part which that are we have \
    enroll enrolled enrol let undo what who does do would will get gets see sees receive should be asking want need like \
    without say says work works hold holds whether show know tell your per our you i run trial study a/b ab so well actually \
    grant allow permit approval standing advance may up most maximum max revoke withdraw end ends ending finish conclude close terminate complete wrap up permanently archive pause resume restart suspend halt abort launch run activate enable disable deactivate unschedule starting starts \
    starting stops stopping start stop delete remove cancel take drop again ask retry repeat last s go";

/// Words for parts of a change, and the parameters or actions of which one has to hold them.
const NOUNS: &[(&str, &[&str])] = &[
    (
        "weight weights weighting weighted split ratio percent equal equally even evenly distribution shares share",
        &["weight", "condition", "create", "balance"],
    ),
    (
        "condition conditions condition: arm arms variant variants compare",
        &["condition", "weight", "payload", "mark", "assign", "create", "post_rule"],
    ),
    ("payload payloads", &["payload"]),
    ("factor factors factorial level levels", &["factor"]),
    ("decision point points site sites target targets", &["point", "site", "mark", "simulate", "assign"]),
    ("context app application", &["context", "within", "init", "mark"]),
    ("tag tags tagged label labels", &["tag", "all"]),
    ("description described", &["description"]),
    ("name names", &["name", "label"]),
    (
        "group groups grouped individual individually unit type types assigned assign assignment assignments randomize membership memberships class school",
        &["group", "unit", "clusion", "assign", "init", "simulate"],
    ),
    (
        "user users student students participant participants person people user's id ids",
        &["user", "clusion", "balance", "simulate", "limit"],
    ),
    ("consistency rule rules post post-experiment", &["consistency", "post_rule", "rule"]),
    ("list lists inclusion exclusion include exclude including excluding", &["clusion"]),
    ("subjects within-subjects within-subject subject order round robin random", &["unit", "order", "algorithm"]),
    ("algorithm stratified sampling sampled factor", &["algorithm", "stratif"]),
    ("filter mode includeall excludeall", &["filter"]),
    ("reached", &["reached"]),
    ("balance simulation simulations simulated", &["balance", "grant"]),
    ("date day time hour hours", &["start_on", "end_on", "until"]),
    ("all every each everything of kind from since experiments", &["all"]),
    ("or", &["ends", "clusion", "all", "create"]),
    ("status state", &["status"]),
];

/// What is left over of a request for a change that was understood by position: to be told. `None`: nothing.
pub(super) fn unaccounted(
    words: &[Word],
    action: &str,
    params: &Map<String, Value>,
    situation: &Situation,
) -> Option<Understood> {
    let parts = cut(Heard { words, situation, asks: false }, &super::OfExperiments, super::OWNER);
    let mut values = HashSet::new();
    let mut whole = Vec::new();
    params.iter().for_each(|(key, value)| {
        collect(value, &mut values, &mut whole);
        values.extend(fold(&key.replace('_', " ")).split(' ').map(str::to_owned));
    });
    let asking: HashSet<&str> = ASKING.split_whitespace().collect();
    let has =
        |keys: &[&str]| keys.iter().any(|part| action.contains(part) || params.keys().any(|key| key.contains(part)));
    let holds =
        |word: &str| NOUNS.iter().any(|(nouns, keys)| nouns.split_whitespace().any(|noun| noun == word) && has(keys));
    let covered = |word: &Word| {
        if word.quoted {
            let folded = fold(&word.text);
            return whole.iter().any(|value| value.contains(&folded));
        }
        let held = |word: &str| {
            fold(word).split(' ').all(|piece| values.contains(piece) || !piece.contains(char::is_alphanumeric))
        };
        match word.lower.as_str() {
            "if" => has(&["reached"]),
            "only" => has(&["inclu", "filter"]) || held("only"),
            "but" | "unless" | "once" | "while" | "never" | "before" => held(&word.lower),
            "instead" => held(&word.lower) || has(&["group", "unit", "name", "weights"]),
            "next" | "this" | "coming" => has(&["start_on", "end_on", "until"]) || word.lower == "this",
            "not" | "no" | "without" => has(&["reached"]) || held(&word.lower),
            "except" => has(&["exclu"]) || held(&word.lower),
            "after" => has(&["ends_", "start_on", "end_on"]) || held("after"),
            "until" | "till" => has(&["end_on", "until", "start_on"]) || held(&word.lower),
            word => {
                let owned = word.trim_end_matches("'s");
                SMALL.contains(&word)
                    || super::OfExperiments.things().contains(&word)
                    || asking.contains(word)
                    || holds(owned)
                    || held(owned)
                    || counts(word) && has(NUMBERS)
            }
        }
    };
    let misspelt = |word: &Word| {
        let near = |known: &&&str| known.len() >= 4 && strsim::damerau_levenshtein(known, &word.lower) == 1;
        word.lower.len() >= 4 && asking.iter().any(|known| near(&known))
    };
    // A free text that is not in quotes ends where something else is said.
    if let Some(left) = swallowed(params, words) {
        return Some(declined(&left, "", false));
    }
    // What is named has to be what the change is about.
    let about = ["experiment", "experiments", "within", "id", "all"];
    let missed = || words.iter().find(|word| word.quoted && word.kind.is_some());
    if !params.keys().any(|key| about.contains(&key.as_str()))
        && action.starts_with("update_")
        && let Some(missed) = missed()
    {
        return Some(declined(&missed.text, "", false));
    }
    let over: Vec<usize> = (0..parts.len())
        .filter(|at| !parts[*at].words.iter().all(covered))
        .filter(|at| *at > 0 || !misspelt(&parts[0].words[0]))
        .collect();
    if over.is_empty() {
        return None;
    }
    let (left, used) = told(&parts, &over);
    Some(declined(&left, &used, over.first().is_some_and(|at| names_before(&parts, *at))))
}

/// Where a name, or one of several conditions, holds words that say something else: from the first of them.
fn swallowed(params: &Map<String, Value>, words: &[Word]) -> Option<String> {
    const ELSE: &[&str] = &[
        "that", "which", "but", "only", "if", "until", "unless", "except", "without", "ends", "starting", "not",
        "once", "keep",
    ];
    let free = ["name", "new_name", "conditions", "tags"].into_iter().filter_map(|key| params.get(key));
    let texts = free.flat_map(|value| match value {
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
        value => value.as_str().into_iter().collect::<Vec<_>>(),
    });
    for text in texts.filter(|text| !words.iter().any(|word| word.quoted && word.text == **text)) {
        let written: Vec<&str> = text.split(' ').collect();
        let count = ["experiments", "studies"].contains(written.last()?);
        if let Some(at) = written.iter().position(|word| ELSE.contains(word)).filter(|at| *at > 0 || written.len() > 1)
        {
            return Some(written[at..].join(" "));
        }
        if count && written.len() > 1 {
            return Some(text.to_owned()); // `create two experiments`
        }
    }
    None
}

/// Where a number that is written out may be.
const NUMBERS: &[&str] = &["users", "limit", "ends_", "count", "start_on", "end_on"];

/// Whether it is a number that is written out.
fn counts(word: &str) -> bool {
    const TENS: [&str; 8] = ["thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety", "hundred"];
    crate::understanding::dates::number_word(word).is_some() || TENS.contains(&word)
}

/// Whether something that the request is about stands before this part.
fn names_before(parts: &[Part], at: usize) -> bool {
    parts[..at].iter().any(|part| part.slot.is_some() || part.words[0].quoted)
}

/// The words in a value.
fn collect(value: &Value, words: &mut HashSet<String>, whole: &mut Vec<String>) {
    match value {
        Value::String(text) => {
            let folded = fold(text);
            words.extend(folded.split(' ').map(str::to_owned));
            whole.push(folded);
        }
        Value::Number(number) => {
            words.insert(number.as_f64().map_or_else(|| number.to_string(), |number| number.to_string()));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, words, whole)),
        Value::Object(members) => members.iter().for_each(|(key, value)| {
            collect(&Value::from(key.as_str()), words, whole);
            collect(value, words, whole);
        }),
        Value::Null | Value::Bool(_) => {}
    }
}
