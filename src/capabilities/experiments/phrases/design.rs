//! The rarer parts of a description: payloads, factors, ending criteria, lists of members, dates.

use countersign_understanding::{
    dates::{moment, period},
    slots::count,
};
use serde_json::{Map, Value};

use super::{
    clauses::{Taken, list, one, starts_clause},
    factors::{FACTORS, factors},
    members::who_of,
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

/// Parses `ending after 100 users or 10 groups`, `no more than 200 users`, `for 300 users max`.
fn ending(words: &[Word]) -> Taken<'_> {
    const ENDS: &str = "enrollment ends after|enrolment ends after|ending after|ends after|end after|stop after|\
        stopping after|stops after|it should end after|should end after|it ends after|that ends after|limited to|\
        with a limit of|a limit of|limit of|limit|capped at|cap at|cap of|with at most|at most|with no more than|\
        for no more than|no more than|with not more than|not more than|with a maximum of|a maximum of|maximum|max|up to|\
        only for up to|for up to|for at most|only with|but only with|but only|until|for";
    const AFTER: &str = "max|maximum|at most|at the most|only|are enrolled|have enrolled|enrolled|tops|in total";
    let of_all = after(words, ENDS)?;
    let mut rest = of_all;
    let mut params = Vec::new();
    while let Some((number, of, more)) = count(skip(rest, "or|and|,")) {
        params.push((format!("ends_after_{of}"), number.into()));
        rest = more;
    }
    let limited = skip(rest, AFTER);
    // “For 300 users” alone may describe something else.
    let is_limit = !words[0].is("for") || after(words, "for up to|for at most|for no more than").is_some();
    (!params.is_empty() && (is_limit || limited.len() < rest.len())).then_some((params, limited))
}

/// Parses `inclusion list u1, u2`, `excluding class 5B`.
fn members(words: &[Word]) -> Taken<'_> {
    // “Once Only in assign-prog” is a name.
    let is_of_name = words.first().is_some_and(|first| first.is("only") && first.text != first.lower);
    if is_of_name && words.get(1).is_some_and(|next| next.any(&["in", "at", "on", "with", "for"])) {
        return None;
    }
    let (key, start) = listed(words)?;
    let named = after(words, "without").unwrap_or(start);
    let named = match after(words, "only for|only include|only in") {
        None => after(words, "only").unwrap_or(named), // “only class 5B” names the kind
        Some(_) => named,
    };
    let (items, rest) = list(skip(named, "is|to|of|are|:|,"));
    if items.is_empty() {
        return None;
    }
    let mut params = vec![(key.to_owned(), who_of(&items))];
    if after(words, "only|but only|include only").is_some() {
        params.push(("filter_mode".to_owned(), "excludeAll".into())); // nobody except those on the list
    }
    Some((params, rest))
}

/// Parses the name of a list at the beginning. Returns its parameter and the words that follow.
fn listed(words: &[Word]) -> Option<(&'static str, &[Word])> {
    const IN: &str = "the inclusion list|inclusion list|including|only for|only include|include only|but only for|\
        only in|but only in|only students|only users|only class|only classes|only school|only schools";
    const OUT: &str = "the exclusion list|exclusion list|excluding|leave out|leaving out|keep out|keeping out|without students|\
        without users|without class|without classes|without school|without schools";
    // With a capital letter the verb is probably part of a name.
    let verb = |verb| after(words, verb).filter(|_| words[0].text == words[0].lower);
    match after(words, IN).or_else(|| verb("include")) {
        Some(start) => Some(("inclusion", start)),
        None => Some(("exclusion", after(words, OUT).or_else(|| verb("exclude"))?)),
    }
}

/// Parses `starting 2027-01-15 09:00`, `until 2027-02-01`, `it should run from Dec 1 to Dec 18`.
fn dates(words: &[Word]) -> Taken<'_> {
    const START: &str = "the start date|a start date|start date|\
        starting on|starting at|starting from|starting|starts on|starts at|starts|start on|start at|start|\
        beginning on|beginning|begins on|begins|begin on|scheduled for|schedule it for|running from|running|runs from|runs|\
        run from|run on|run|live from|live|from|between";
    const END: &str = "the end date|an end date|end date|\
        ending on|ending at|ending by|ends on|ends at|ends by|ends|end it on|end on|end by|end|until|till|\
        through|ending|stopping on|stops on|stop on";
    const JOINING: &str =
        "it should|it shall|it will|it must|it|that should|which should|that|which|and should|should|to|and";
    let words =
        after(words, JOINING).filter(|rest| after(rest, START).or_else(|| after(rest, END)).is_some()).unwrap_or(words);
    const IS: &str = "of|is|to|as|=|:";
    if let Some(start) = after(words, START).map(|start| skip(start, IS)) {
        // “From” and “between” belong to the period.
        let with_preposition = if words[0].any(&["from", "between"]) { words } else { start };
        if let Some((from, until, rest)) = period(with_preposition, "") {
            return Some((vec![("start_on".to_owned(), from.into()), ("end_on".to_owned(), until.into())], rest));
        }
        let (from, until, rest) = moment(with_preposition, "")?;
        let mut params = vec![(if until { "end_on" } else { "start_on" }.to_owned(), from.into())];
        let ends = moment(skip(rest, ","), "").filter(|(_, ends, _)| *ends && !until);
        let rest = match ends {
            Some((end, _, rest)) => {
                params.push(("end_on".to_owned(), end.into()));
                rest
            }
            None => rest,
        };
        return Some((params, rest));
    }
    let (moment, rest) = date(skip(after(words, END)?, IS))?;
    one("end_on", moment, rest)
}

/// Parses `2027-01-15`, `Friday` or `in 3 days`, optionally with a time. Returns the date and the words
/// that follow.
pub(super) fn date(words: &[Word]) -> Option<(String, &[Word])> {
    let (when, _, rest) = moment(words, "")?;
    Some((when, rest))
}
