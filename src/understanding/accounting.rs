//! Every word of a request is accounted for: it is in a value of the change, belongs to how the change is asked for, or is
//! politeness. What is not is a restriction that would be lost, so it is told, and nothing is done.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{
    intents::told,
    lexicon::fold,
    situation::Situation,
    slots::{Part, SMALL, cut},
    wish::Understood,
    words::Word,
};

/// Words with which changes are asked for: they say nothing that the change does not hold.
const ASKING: &str = "create make set up build add new design draft another start begin launch run activate enable get \
    going bring live resume restart unpause continue reopen stop halt pause suspend disable cancel abort archive unschedule \
    deactivate turn switch kick off go on delete remove erase rid drop destroy permanently update change edit modify adjust \
    move put give rename name names call called named titled status state back running enrolling paused stopped inactive \
    schedule reschedule postpone delay forward shift date day time next this coming utc user users student students participant \
    participants person people simulated test tests fake me us one ones initialize initialise init register introduce mark \
    record visit visited visits condition conditions weight weights weighting weighted split ratio percent arms arm variants \
    variant payload payloads factor factors factorial level levels decision point points site sites target targets context app application tag tags tagged \
    description described described- saying group groups assigned assign assignment assignments by unit type types consistency rule rules \
    post post-experiment list lists inclusion exclusion include exclude including excluding take off working memberships \
    membership individual individually within subjects within-subjects within-subject order algorithm filter mode includeall excludeall \
    balance check try simulate simulation simulating generate visiting through taking part all every each everything both \
    completed cancelled canceled scheduled archived ended that are which we have enroll enrolled enrol enrollment enrolment \
    equal equally even evenly and or as into using use to of the is be should ending ends end starting starts after user's id ids \
    grant allow permit let approval standing advance may up most at least maximum max simulated without asking want need like \
    what who does do would will get gets see sees receive condition: value values its it's whose s distribution undo revert try \
    again ask retry repeat take last the them they also too then experiment's study trial a/b ab hello hi hey yes no, ok okay \
    so well actually grouped starts stops starting stopping show know tell what which work works hold holds whether created made latest previous we i you per your our do you stratified random sampling sampled round robin ordered reached if revoke withdraw finish conclude close terminate complete wrap id: hour hours days weeks in";

/// What is left over of a request for a change that was understood by position: to be told. `None`: nothing.
pub(super) fn unaccounted(words: &[Word], params: &Map<String, Value>, situation: &Situation) -> Option<Understood> {
    let parts = cut(words, situation);
    let mut values = HashSet::new();
    let mut whole = Vec::new();
    params.iter().for_each(|(key, value)| {
        collect(value, &mut values, &mut whole);
        values.extend(fold(&key.replace('_', " ")).split(' ').map(str::to_owned));
    });
    let asking: HashSet<&str> = ASKING.split_whitespace().collect();
    let has = |keys: &[&str]| params.keys().any(|key| keys.iter().any(|part| key.contains(part)));
    let covered = |word: &Word| {
        if word.quoted {
            let folded = fold(&word.text);
            return whole
                .iter()
                .any(|value| value.contains(&folded) || folded.contains(value.as_str()) && !value.is_empty());
        }
        let held = |word: &str| {
            fold(word).split(' ').all(|piece| values.contains(piece) || !piece.contains(char::is_alphanumeric))
        };
        match word.lower.as_str() {
            "if" => has(&["reached"]),
            "only" => has(&["inclu", "filter"]) || held("only"),
            "but" | "unless" | "once" | "while" | "never" | "before" => held(&word.lower),
            "instead" => held(&word.lower) || has(&["group", "unit", "name", "weights"]),
            "not" | "no" | "without" => has(&["reached"]) || held(&word.lower),
            "except" => has(&["exclu"]) || held(&word.lower),
            "after" => has(&["ends", "start", "end"]) || held("after"),
            "until" | "till" => has(&["end", "until", "start"]) || held(&word.lower),
            lower => {
                let owned = lower.trim_end_matches("'s");
                SMALL.contains(&lower) || asking.contains(lower) || held(owned) || counts(lower) && has(NUMBERS)
            }
        }
    };
    let misspelt = |word: &Word| {
        let near = |known: &&&str| known.len() >= 4 && strsim::damerau_levenshtein(known, &word.lower) == 1;
        word.lower.len() >= 4 && asking.iter().any(|known| near(&known))
    };
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

/// Where a number that is written out may be.
const NUMBERS: &[&str] = &["users", "limit", "ends", "count", "start", "end"];

/// Whether it is a number that is written out.
fn counts(word: &str) -> bool {
    const TENS: [&str; 8] = ["thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety", "hundred"];
    super::dates::number_word(word).is_some() || TENS.contains(&word)
}

/// Whether something that the request is about stands before this part.
fn names_before(parts: &[Part], at: usize) -> bool {
    parts[..at].iter().any(|part| part.slot.is_some() || part.words[0].quoted)
}

/// That a request is not carried out without its restriction.
pub(super) fn declined(left: &str, used: &str, follows: bool) -> Understood {
    match follows && used.split_whitespace().count() > 1 {
        true => Understood::unclear(
            format!(
                "I can {used}, but not “{left}”. Nothing was changed. Ask again without it, or put it another way."
            ),
            Vec::new(),
        ),
        false => Understood::unclear(
            format!("I couldn't make sense of “{left}” in that. Nothing was changed. Please put it another way."),
            Vec::new(),
        ),
    }
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
