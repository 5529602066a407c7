//! The rarer parts of a description: payloads, factors, ending criteria, lists of members, dates.

use countersign_understanding::dates::moment;
use serde_json::{Map, Value};

use super::{
    changes::who_of,
    clauses::{Taken, list, one, starts_clause},
    factors::{FACTORS, factors},
    words::{Word, after, skip, text},
};

const PAYLOADS: &str = "the payloads|payloads|payload";

/// Parses one of the rarer parts.
pub(super) fn rare(words: &[Word]) -> Taken<'_> {
    payloads(words)
        .or_else(|| factors(words))
        .or_else(|| ending(words))
        .or_else(|| members(words))
        .or_else(|| dates(words))
}

/// Returns true if one of the rarer parts begins here. Lists are recognised only by their first words,
/// since parsing a list looks ahead for the next part.
pub(super) fn begins(words: &[Word]) -> bool {
    let more = |rest: Option<&[Word]>| rest.is_some_and(|rest| !rest.is_empty());
    more(after(words, PAYLOADS))
        || more(after(words, FACTORS))
        || more(listed(words).map(|(_, rest)| rest))
        || ending(words).is_some()
        || dates(words).is_some()
}

/// Parses `payloads control=short, variant=long`, also with items such as `control short` or
/// `short for control`.
fn payloads(words: &[Word]) -> Taken<'_> {
    let after = after(words, PAYLOADS)?;
    let (items, rest) = items(skip(after, "are|is|of|:|,"));
    let mut by_code = Map::new();
    for item in items {
        let (code, value) = match item.as_slice() {
            [one] => {
                let (code, value) = one.text.split_once(['=', ':'])?;
                (code.to_owned(), value.to_owned())
            }
            [value @ .., preposition, code] if preposition.is("for") => (code.text.clone(), text(value)),
            [code, value @ ..] => (code.text.trim_end_matches([':', '=']).to_owned(), text(skip(value, "is|=|:|to"))),
            [] => continue,
        };
        by_code.insert(code, value.into());
    }
    (!by_code.is_empty()).then(|| (vec![("payloads".to_owned(), Value::Object(by_code))], rest))
}

/// Parses a list whose items may contain prepositions: only “with”, “at” and “in” end it, or another part
/// after a comma or “and”. Returns its items and the words that follow.
fn items(words: &[Word]) -> (Vec<Vec<Word>>, &[Word]) {
    let next_part = |i: usize| words[i].any(&[",", "and"]) && starts_clause(skip(&words[i..], ", and|,|and"));
    let end = (0..words.len()).find(|&i| words[i].any(&["with", "at", "in"]) || next_part(i)).unwrap_or(words.len());
    let items = words[..end].split(|word| word.any(&[",", "and"])).map(<[Word]>::to_vec);
    (items.filter(|item| !item.is_empty()).collect(), &words[end..])
}

/// Parses `ending after 100 users or 10 groups`.
fn ending(words: &[Word]) -> Taken<'_> {
    const ENDS: &str =
        "enrollment ends after|enrolment ends after|ending after|ends after|end after|stop after|stopping after";
    let mut rest = after(words, ENDS)?;
    let mut params = Vec::new();
    while let [number, what, more @ ..] = skip(rest, "or|and|,") {
        let Ok(count) = number.text.parse::<u64>() else { break };
        let key = match what.lower.as_str() {
            "users" | "people" | "students" | "participants" | "user" | "person" => "ends_after_users",
            "groups" | "classes" | "group" | "schools" => "ends_after_groups",
            _ => break,
        };
        params.push((key.to_owned(), count.into()));
        rest = more;
    }
    (!params.is_empty()).then_some((params, rest))
}

/// Parses `inclusion list u1, u2`, `excluding class 5B`.
fn members(words: &[Word]) -> Taken<'_> {
    let (key, start) = listed(words)?;
    let (items, rest) = list(skip(start, "is|to|of|are|:|,"));
    if items.is_empty() {
        return None;
    }
    let mut params = vec![(key.to_owned(), who_of(&items))];
    if after(words, "only for|only with").is_some() {
        params.push(("filter_mode".to_owned(), "excludeAll".into())); // nobody except those on the list
    }
    Some((params, rest))
}

/// Parses the name of a list at the beginning. Returns its parameter and the words that follow.
fn listed(words: &[Word]) -> Option<(&'static str, &[Word])> {
    const IN: &str = "the inclusion list|inclusion list|including|only for";
    const OUT: &str = "the exclusion list|exclusion list|excluding";
    // With a capital letter the verb is probably part of a name.
    let verb = |verb| after(words, verb).filter(|_| words[0].text == words[0].lower);
    match after(words, IN).or_else(|| verb("include")) {
        Some(start) => Some(("inclusion", start)),
        None => Some(("exclusion", after(words, OUT).or_else(|| verb("exclude"))?)),
    }
}

/// Parses `starting 2027-01-15 09:00`, `until 2027-02-01`.
fn dates(words: &[Word]) -> Taken<'_> {
    const START: &str = "starting on|starting at|starting|starts on|start on|starting from|scheduled for";
    const END: &str = "ending on|ends on|end on|until|ending";
    let (key, start) = match after(words, START) {
        Some(start) => ("start_on", start),
        None => ("end_on", after(words, END)?),
    };
    let (moment, rest) = date(start)?;
    one(key, moment, rest)
}

/// Parses `2027-01-15`, `Friday` or `in 3 days`, optionally with a time. Returns the date and the words
/// that follow.
pub(super) fn date(words: &[Word]) -> Option<(String, &[Word])> {
    let (when, _, rest) = moment(words, "")?;
    Some((when, rest))
}
