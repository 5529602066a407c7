//! Lists of experiments: which ones, in which order, which page.
//!
//! A list is asked for by what is listed (“experiments”) or by a status (“what is running?”); what limits it are clauses
//! that may stand anywhere and in any order. Words that belong to no clause are left aside.

use serde_json::{Map, Value, json};

use super::{
    questions::{ASKING, SHOWING},
    wish::Wish,
    words::{Word, after, lower, skip, text},
};

const LIST: &str = "get_all_experiments";
const NAMES: &str = "get_experiment_names";

/// Words for statuses, and the status that the tool filters by.
const STATUSES: &[(&str, &str)] = &[
    ("running", "enrolling"),
    ("enrolling", "enrolling"),
    ("active", "enrolling"),
    ("live", "enrolling"),
    ("started", "enrolling"),
    ("paused", "enrollmentComplete"),
    ("stopped", "enrollmentComplete"),
    ("inactive", "inactive"),
    ("cancelled", "cancelled"),
    ("canceled", "cancelled"),
    ("completed", "cancelled"),
    ("finished", "cancelled"),
    ("archived", "archived"),
    ("draft", "draft"),
    ("scheduled", "scheduled"),
    ("preview", "preview"),
];

const CREATED: &str = "created|create|made|make|added|set up";
const CHANGED: &str = "last changed|last updated|changed|updated|edited|modified|change|update";
const THINGS: [&str; 6] = ["experiments", "studies", "experiement", "experimets", "tests", "ones"];
/// What cannot be the name of a context.
const NO_CONTEXT: [&str; 14] = [
    "total", "upgrade", "all", "there", "status", "detail", "details", "short", "json", "raw", "full", "this", "last",
    "general",
];

/// Whether it is a word for a status.
pub(super) fn is_status(word: &Word) -> bool {
    status(word).is_some()
}

fn status(word: &Word) -> Option<&'static str> {
    STATUSES.iter().find(|(said, _)| word.is(said)).map(|(_, status)| *status)
}

/// All experiments.
pub(super) fn all() -> Wish {
    Wish::read(LIST, [])
}

/// Which experiments are asked for, if a list is.
pub(super) fn list(words: &[Word]) -> Option<Wish> {
    let plain = lower(words);
    let asks = after(words, SHOWING).is_some()
        || after(words, ASKING).is_some()
        || after(
            words,
            "the|all|any|every|my|our|running|newest|latest|oldest|recent|we have|you have|i have|there are",
        )
        .is_some();
    let place = words.iter().position(|word| word.any(&THINGS));
    if plain.contains("experiment names")
        || plain.contains("names of the experiments")
        || plain.contains("names of all")
    {
        return (asks || words.len() == 2).then(|| Wish::read(NAMES, []));
    }
    match place {
        Some(place) if asks || place == 0 || words[..place].iter().any(is_status) => {}
        None if matches!(plain.as_str(), "list" | "list all" | "show all" | "show everything" | "list everything") => {}
        None if stands(words) || was_made(words) => {}
        _ => return None,
    }
    Some(Wish::Read { tool: LIST, arguments: clauses(words, place) })
}

/// `what is running in assign-prog?`, `anything paused?`
fn stands(words: &[Word]) -> bool {
    let asked = after(
        skip(words, "show me|show us|tell me|show|check"),
        "what is|what are|which are|which is|is anything|is something|anything|what else is|list|all|list all",
    );
    let asked = asked.or_else(|| after(words, "show me all|show all|show me|show"));
    let Some((first, rest)) = asked.and_then(|rest| skip(rest, "currently|still").split_first()) else { return false };
    let goes_on =
        |word: &Word| word.any(&["in", "for", "at", "right", "now", "currently", "tagged", "with", "page", ","]);
    is_status(first) && rest.first().is_none_or(goes_on)
}

/// `what was created today?`
fn was_made(words: &[Word]) -> bool {
    let asked = after(words, "what was|what has been|what did we|what did i|what got|what is");
    asked.and_then(|rest| after(rest, CREATED)).is_some_and(|when| period(when).is_some())
}

/// What limits and orders the list.
fn clauses(words: &[Word], place: Option<usize>) -> Map<String, Value> {
    let mut found = Map::new();
    let mut set = |key: &str, value: Value| {
        found.entry(key).or_insert(value);
    };
    let mut at = 0;
    while at < words.len() {
        let rest = &words[at..];
        at += match clause(rest) {
            Some((key, value, length)) => {
                set(key, value);
                length
            }
            None => {
                if let Some(status) = status(&rest[0]) {
                    set("status", json!(status));
                }
                1
            }
        };
    }
    // `the assign-prog experiments`
    let before = place.and_then(|place| place.checked_sub(1)).map(|at| &words[at]);
    if let Some(context) = before.filter(|word| word.text == word.lower && word.text.contains('-') && !word.quoted) {
        set("context", json!(context.text));
    }
    found
}

/// A clause at the beginning: what it sets, and how many words it is long.
fn clause(words: &[Word]) -> Option<(&'static str, Value, usize)> {
    let length = |rest: &[Word]| words.len() - rest.len();
    let form = [
        ("in detail|in full|with details|with all details|detailed", "full"),
        ("in short|in brief|briefly|short", "short"),
        ("as raw json|in raw|as raw|as json|in json|raw json|raw|json", "raw"),
    ];
    let sort = [
        (
            "newest first|most recent first|newest|latest|most recent|recently created|by creation date|by date|by age",
            "newest",
        ),
        ("oldest first|oldest", "oldest"),
        ("by name|by names|alphabetically", "name"),
        ("by status|by state", "status"),
        ("by context|by app", "context"),
        ("by last change|by last update|recently changed|recently updated|by change date", "changed"),
    ];
    let fixed = |key: &'static str, table: &[(&str, &str)]| {
        table.iter().find_map(|(phrases, value)| Some((key, json!(value), length(after(words, phrases)?))))
    };
    if let Some(found) = fixed("form", &form).or_else(|| fixed("sort", &sort)) {
        return Some(found);
    }
    if let Some((number, rest)) = after(words, "page").and_then(<[Word]>::split_first) {
        return Some(("page", json!(number.text.parse::<u32>().ok()?), length(rest)));
    }
    for (phrases, key) in [(CREATED, "created"), (CHANGED, "changed")] {
        if let Some((when, rest)) = after(words, phrases).and_then(period) {
            return Some((key, json!(when), length(rest)));
        }
    }
    const TAG: &str =
        "tagged with|tagged as|tagged|with the tag|with tag|that have the tag|having the tag|labelled|labeled";
    const ABOUT: &str = "about|called|named|matching|containing|that contain|with the name|with the word";
    for (phrases, key) in [(TAG, "tag"), (ABOUT, "search")] {
        if let Some((word, rest)) = after(words, phrases).and_then(<[Word]>::split_first) {
            return Some((key, json!(word.text), length(rest)));
        }
    }
    let named = skip(after(words, "in|of|for|from|under")?, "the context|the|context|app");
    let (first, rest) = named.split_first()?;
    let is_context = !first.any(&NO_CONTEXT) && !is_status(first) && !first.is("experiments");
    is_context.then(|| ("context", json!(first.text), length(rest)))
}

/// When something happened, in the words that the tool reads; and what follows.
fn period(words: &[Word]) -> Option<(String, &[Word])> {
    let named = |phrases: &str| after(words, phrases).map(|rest| words.len() - rest.len());
    let length = named("today|yesterday|recently|this week|last week|this month|last month|this year").or_else(|| {
        let rest = after(words, "in the last|in the past|within the last|the last|last|during the last")?;
        let (number, unit) = (rest.first()?, rest.get(1)?);
        let counts =
            number.text.parse::<u32>().is_ok() && unit.any(&["day", "days", "week", "weeks", "month", "months"]);
        counts.then(|| words.len() - rest.len() + 2)
    });
    if let Some(length) = length {
        return Some((plain_period(&words[..length]), &words[length..]));
    }
    let rest = after(words, "since|after|before|until|on|from")?;
    let opening = words.len() - rest.len();
    let ends = |word: &Word| {
        word.is(",") || word.any(&["in", "by", "tagged", "with", "sorted", "page", "for", "and", "newest", "oldest"])
    };
    let more = rest.iter().position(ends).unwrap_or(rest.len()).min(3);
    (more > 0).then(|| (plain_period(&words[..opening + more]), &rest[more..]))
}

/// `in the last 3 days` is `last 3 days`.
fn plain_period(words: &[Word]) -> String {
    let words = skip(words, "in the|in|within the|during the|the");
    text(match words.first() {
        Some(first) if first.is("on") => &words[1..],
        _ => words,
    })
}

#[cfg(test)]
mod tests {
    use super::super::{situation::Situation, tests::check};

    #[test]
    fn a_list_is_limited_ordered_and_paged() {
        let list = |arguments: &str| format!("read get_all_experiments {arguments}");
        let rows = [
            ("what experiments were created today?", r#"{"created":"today"}"#),
            ("find experiments created today", r#"{"created":"today"}"#),
            (
                "Find all experiments in assign-prog created this week",
                r#"{"context":"assign-prog","created":"this week"}"#,
            ),
            (
                "show experiments created since 2026-11-01 in mathstream",
                r#"{"context":"mathstream","created":"since 2026-11-01"}"#,
            ),
            ("which experiments did we create yesterday?", r#"{"created":"yesterday"}"#),
            ("what was created today?", r#"{"created":"today"}"#),
            ("list experiments changed in the last 3 days", r#"{"changed":"last 3 days"}"#),
            ("show experiments updated since November 3", r#"{"changed":"since November 3"}"#),
            ("experiments tagged hints", r#"{"tag":"hints"}"#),
            ("list running experiments with the tag “grade 7”", r#"{"status":"enrolling","tag":"grade 7"}"#),
            ("search for experiments about fractions", r#"{"search":"fractions"}"#),
            ("list experiments by name", r#"{"sort":"name"}"#),
            ("list all experiments sorted by creation date", r#"{"sort":"newest"}"#),
            ("show the newest experiments", r#"{"sort":"newest"}"#),
            ("list experiments page 2", r#"{"page":2}"#),
            (
                "list running experiments in assign-prog tagged hints created this week oldest first in detail page 3",
                r#"{"context":"assign-prog","created":"this week","form":"full","page":3,"sort":"oldest","status":"enrolling","tag":"hints"}"#,
            ),
            ("list experiments in short", r#"{"form":"short"}"#),
            ("list experiments as raw JSON", r#"{"form":"raw"}"#),
            ("what is running in assign-prog?", r#"{"context":"assign-prog","status":"enrolling"}"#),
            ("what is paused?", r#"{"status":"enrollmentComplete"}"#),
            ("which experiments are archived", r#"{"status":"archived"}"#),
            ("the assign-prog experiments", r#"{"context":"assign-prog"}"#),
        ];
        let rows: Vec<_> = rows.iter().map(|(said, arguments)| (*said, list(arguments))).collect();
        let rows: Vec<_> = rows.iter().map(|(said, line)| (*said, line.as_str())).collect();
        check(&Situation::default(), &rows);
    }
}
