//! Requests for lists of experiments, with their filters, order and page.
//!
//! A list is requested by the word for its items (“experiments”) or by a status (“what is running?”).
//! Its clauses may come in any place and order. Small words are ignored. Any other word that belongs to
//! no clause leads to a question, since ignoring it could give the wrong list.

use countersign_understanding::dates::{fixed_period, plain_period};
use serde_json::{Map, Value, json};

use super::{
    user_request::{Interpretation, UserRequest},
    words::{Word, after, lower, skip, text},
};
use crate::{listing::ListArguments, upgrade::status::Status};

const SHOWING: &str = "show me|show us|show|list|get me|get|display|give me|see|view|find|tell me|fetch|search for|look up|open|pull up|sort|order|check|bring up";
const ASKING: &str = "what are|what is|which are|what|which|are there|how many|do we have|are any|is any";
pub(super) const LIST: &str = "get_all_experiments";
const NAMES: &str = "get_experiment_names";

const CREATED: &str = "created|create|made|make|added|set up";
const CHANGED: &str = "last changed|last updated|changed|updated|edited|modified|change|update";
const THINGS: [&str; 8] =
    ["experiments", "studies", "experiement", "experimets", "tests", "ones", "everything", "drafts"];
/// Words that cannot be the name of a context.
const NO_CONTEXT: &str = "total upgrade all there status detail details short json raw full this last general them me us mine ours my \
    our now order ascending descending reverse system platform server database these those which progress between \
    today yesterday";
/// Words that have no meaning in a request for a list.
const SMALL: &str = "all any every each the a an my our me us you your please pls now currently right just of them these those \
    that which who are is was were be been have has had got there exist exists existing do does did we i in on at for from \
    with and or nor , also only still moment present here so far ever experiment name names list show see view display tell \
    give find get fetch search look overview upgrade system platform server database whole entire complete current available \
    total number many how what else again thanks thank it yet already everything anything something some can could would like \
    to know want need if by sorted sort ordered order status state their its set up created create made make context app \
    but quickly kindly hello hi list overview over word first either just rn lying around up pull more mean means sort order \
    atm trial trials most title having them's thanks ty cheers it's team all";
/// Small words that are quoted together with an unknown word after them.
const OPENING: &str = "with by that which are is was have has status state in on of for from the created made create but and or at \
    who sorted ordered";
const NOT: &str = "haven't been|have not been|hasn't been|has not been|not been|never been|never|haven't|not|except for|except|excluding|without|other than|apart from|aren't|isn't|nor";

/// Verbs that ask for another state of what follows.
const SETTING: &str = "set|make|mark|move|switch|turn|put|change|convert";

/// Returns true for a word for a status.
pub(super) fn is_status(word: &Word) -> bool {
    status(word).is_some()
}

/// Returns true for a status as the platform stores it in one word, such as `enrollmentComplete`, which is asked about as a term.
pub(super) fn is_stored_status(word: &Word) -> bool {
    is_status(word) && word.text.chars().skip(1).any(char::is_uppercase)
}

/// Returns true for a word that cannot be the name of a context.
pub(super) fn is_no_context(word: &Word) -> bool {
    word.among(NO_CONTEXT)
        || word.any(&THINGS)
        || is_status(word)
        || word.among("experiment i we you does do have has what which its mean means")
}

fn status(word: &Word) -> Option<&'static str> {
    Status::of_list(&word.lower).filter(|_| !word.quoted).map(Status::stored)
}

/// Returns the request for a list of all experiments.
pub(super) fn all() -> UserRequest {
    UserRequest::read(LIST, [])
}

/// Parses the filters and the order of a list, and nothing else. `Err` is the question about words that are not understood.
pub(super) fn limits(words: &[Word]) -> Result<Map<String, Value>, Interpretation> {
    clauses(words, None)
}

/// Asks about “my experiments”, whether they are listed or changed: the list of the platform does not say whose they are.
pub(super) fn own(words: &[Word]) -> Option<Interpretation> {
    let is_thing = |word: &Word| word.any(&THINGS);
    let before_thing = |at: usize| words[at + 1..].iter().take(3).any(is_thing);
    let is_own = |at: usize| {
        match () {
        () if words[at].is("my") => before_thing(at),
        () if words[at].is("mine") => words.iter().any(is_thing),
        () => after(&words[at..], "by me|by myself|i created|i made|i have created|i've created|i set up|did i create|have i created|i own|i started|i run|assigned to me").is_some(),
    }
    };
    const DESCRIBING: &str =
        "create|make|set|build|add|new|design|draft|rename|change|update|edit|describe|copy|duplicate";
    let describes = after(words, DESCRIBING).is_some(); // whose words may be anything
    let is_about_things = !describes && words.iter().any(is_thing) && !words.iter().any(|word| word.quoted);
    let found = is_about_things && (0..words.len()).any(is_own);
    found.then(|| {
        Interpretation::unclear(
            "I can't tell which experiments are yours: the list doesn't say who created them. Should I list all of them?",
            vec!["list experiments".to_owned(), "list running experiments".to_owned()],
        )
    })
}

/// Parses a request for a list of experiments, or of their names.
pub(super) fn list(words: &[Word]) -> Option<Interpretation> {
    let words = about_all(words).unwrap_or(words);
    if words.iter().any(|word| word.quoted && word.kind.is_some()) {
        return None; // about a single thing
    }
    if after(words, SETTING).is_some() && words.last().is_some_and(is_status) {
        return None; // “set all running experiments to inactive” asks for more than a list
    }
    let plain = lower(words);
    let is_question = after(words, SHOWING).is_some()
        || after(words, ASKING).is_some()
        || after(
            words,
            "the|all|any|every|my|our|running|newest|latest|oldest|recent|we have|you have|i have|there are",
        )
        .is_some();
    let every = |at: usize| {
        words[at].is("experiment")
            && at > 0
            && words[at - 1].any(&["every", "each", "any", "newest", "latest", "oldest"])
    };
    let place = words.iter().position(|word| word.any(&THINGS)).or_else(|| (0..words.len()).find(|at| every(*at)));
    let names = plain.contains("experiment names")
        || plain.contains("names of the experiments")
        || plain.contains("names of all");
    match place {
        _ if names && (is_question || words.len() == 2) => {}
        _ if names => return None,
        Some(place) if is_question || place == 0 || words[..place].iter().any(is_status) => {}
        None if matches!(
            plain.as_str(),
            "list"
                | "list all"
                | "list what is left"
                | "show what is left"
                | "show all"
                | "show everything"
                | "list everything"
        ) => {}
        None if asks_by_status(words) || asks_by_time(words) || asks_by_context(words) => {}
        _ => return None,
    }
    // “Which studies live in mathstream?”: a verb, not a status.
    let is_verb = |at: usize| after(words, "which|what").is_some() && after(&words[at + 1..], "live in").is_some();
    let without_verb = place.filter(|at| is_verb(*at)).map(|at| [&words[..=at], &words[at + 2..]].concat());
    Some(match clauses(without_verb.as_deref().unwrap_or(words), place) {
        Ok(limits) if names && limits.is_empty() => UserRequest::read(NAMES, []).into(),
        Ok(arguments) => UserRequest::Read { tool: LIST.to_owned(), arguments }.into(),
        Err(question) => question,
    })
}

/// Returns the words for all experiments in a question about them: `what can you tell me about our experiments?`
fn about_all(words: &[Word]) -> Option<&[Word]> {
    const ABOUT: &str = "what can you tell me about|what can you tell us about|what could you tell me about|can you tell me about|\
        tell me more about|tell me something about|tell us about|tell me about|what do you know about|what do we know about|\
        what can you say about|i want to know about|what about|talk about";
    const ALL: &str = "all of our|all of the|all of my|all our|all the|all my|all|our|the|my|these|those";
    let named = after(words, ABOUT)?;
    let is_about_all = skip(named, ALL).first().is_some_and(|first| first.any(&["experiments", "studies", "tests"]));
    is_about_all.then_some(named)
}

/// Returns true for a question by status: `what is running in assign-prog?`, `is anything paused?`
fn asks_by_status(words: &[Word]) -> bool {
    let asked = after(
        skip(words, "show me|show us|tell me|show|check|list"),
        "what is|what are|what have we got|what do we have|which are|which is|how many are|who is|is anything|is something|anything|what else is|list|all|list all",
    );
    let asked = asked.or_else(|| after(words, "show me all|show all|show me|show"));
    let Some(rest) = asked else { return false };
    let Some((first, rest)) = skip(skip(rest, "currently|still"), "not").split_first() else { return false };
    let may_follow = |word: &Word| {
        word.any(&["in", "for", "at", "right", "now", "atm", "currently", "tagged", "with", "page", "or", "and", ","])
    };
    is_status(first) && !(rest.is_empty() && is_stored_status(first)) && rest.first().is_none_or(may_follow)
}

/// Returns true for a question by context: `what do we have in livehint-ai?`
fn asks_by_context(words: &[Word]) -> bool {
    let named = after(
        words,
        "what do we have in|what is in|what is there in|what do we run in|anything in|do we have anything in",
    );
    named.is_some_and(|rest| matches!(rest, [one] if one.kind.as_deref() == Some("context")))
}

/// Returns true for a question by time: `what was created today?`
fn asks_by_time(words: &[Word]) -> bool {
    let asked = after(words, "what was|what has been|what did we|what did i|what got|what is");
    let asked = asked.or_else(|| after(words, "what been|whats been|what's been"));
    let when = asked.and_then(|rest| after(skip(rest, "been"), CREATED).or_else(|| after(skip(rest, "been"), CHANGED)));
    when.is_some_and(|when| period(when).is_some())
}

/// The use of a word in a request for a list.
#[derive(Clone, Copy, PartialEq)]
enum WordUse {
    /// It belongs to a clause.
    Used,
    /// It has no meaning of its own.
    Small,
    /// It is not understood.
    Unknown,
}

/// Parses the arguments of a list: its filters and order. `Err` is the question about words that are not
/// understood.
fn clauses(words: &[Word], things: Option<usize>) -> Result<Map<String, Value>, Interpretation> {
    let mut found = Map::new();
    let mut uses: Vec<WordUse> =
        words.iter().map(|word| if is_small(word) { WordUse::Small } else { WordUse::Unknown }).collect();
    let (mut with, mut without) = (Vec::new(), Vec::new());
    let mut negated = false;
    let mut at = words.len() - skip(skip(words, SHOWING), ASKING).len();
    uses[..at].fill(WordUse::Used);
    // `the assign-prog experiments`
    let before = things.and_then(|things| things.checked_sub(1)).filter(|before| *before >= at);
    let is_context = |word: &Word| {
        let known = word.kind.as_deref() == Some("context");
        (known || word.text == word.lower && word.text.contains('-')) && !word.quoted
    };
    if let Some(before) = before.filter(|before| is_context(&words[*before])) {
        found.insert("context".to_owned(), json!(words[before].text));
        uses[before] = WordUse::Used;
    }
    while at < words.len() {
        let rest = &words[at..];
        let mut length = 1;
        if uses[at] == WordUse::Used || rest[0].any(&THINGS) && !rest[0].is("drafts") {
            uses[at] = WordUse::Used;
        } else if let Some((key, value, taken)) = clause(rest) {
            length = taken;
            let word_use =
                if found.get(key).is_none_or(|other| *other == value) { WordUse::Used } else { WordUse::Unknown };
            uses[at..at + length].fill(word_use);
            found.entry(key).or_insert(value);
        } else if after(rest, SORTED).is_some() {
            return Err(Interpretation::unclear(
                "I can sort by name, status, or date.",
                ["list experiments by name", "list experiments by status", "list experiments newest first"]
                    .map(str::to_owned)
                    .to_vec(),
            ));
        } else if let Some((not, status, taken)) = status_clause(rest) {
            length = taken;
            negated = not || negated;
            if negated { &mut without } else { &mut with }.push(status);
            uses[at..at + length].fill(WordUse::Used);
        }
        negated &= words.get(at + length).is_some_and(|next| next.any(&["or", "nor", "and", ","]) || is_status(next));
        at += length;
    }
    match (with.is_empty(), without.is_empty()) {
        (false, _) => found.insert("status".to_owned(), json!(with.join(" or "))),
        (true, false) => found.insert("status".to_owned(), json!(format!("not {}", without.join(" or ")))),
        (true, true) => None,
    };
    if let Some(unknown) = unknown_words(words, &uses) {
        // What is understood is one press away.
        let is_known = |word: &Word| word.kind.as_deref() == Some("context") && found["context"] == *word.text;
        if found.contains_key("context") && !words.iter().any(is_known) {
            found.remove("context");
        }
        let understood = serde_json::from_value::<ListArguments>(Value::Object(found)).unwrap_or_default();
        let all = ["list experiments".to_owned(), "list running experiments".to_owned()];
        let options = match understood == ListArguments::default() {
            true => all.to_vec(),
            false => vec![understood.request(1), all[0].clone()],
        };
        return Err(Interpretation::unclear(format!("I couldn't make sense of “{unknown}” in this."), options));
    }
    Ok(found)
}

fn is_small(word: &Word) -> bool {
    !word.quoted && SMALL.split_whitespace().any(|small| word.lower == small)
}

/// Returns the first words that are not understood, with the small words that belong to them.
fn unknown_words(words: &[Word], uses: &[WordUse]) -> Option<String> {
    let first = uses.iter().position(|word_use| *word_use == WordUse::Unknown)?;
    let mut end =
        first + uses[first..].iter().position(|word_use| *word_use == WordUse::Used).unwrap_or(uses.len() - first);
    if after(&words[first..], NOT).is_some() {
        end = words.len(); // including the excluded things
    }
    while end > first + 1 && uses[end - 1] == WordUse::Small {
        end -= 1;
    }
    let belongs = |at: &usize| uses[*at] == WordUse::Small && words[*at].among(OPENING);
    let start = (0..first).rev().take_while(belongs).last().unwrap_or(first);
    Some(text(skip(&words[start..end], "the|and|or")))
}

/// Parses a status at the beginning. Returns true if it is excluded, the status, and its number of
/// words.
fn status_clause(words: &[Word]) -> Option<(bool, &'static str, usize)> {
    let negation = after(words, NOT);
    let rest = match negation {
        Some(rest) => skip(skip(rest, "the|those that are|those which are|currently|yet"), "ones"),
        None => words,
    };
    let rest = skip(
        rest,
        "with the status|with status|in the status|in status|in state|with state|whose status is|status is|status",
    );
    if let Some(rest) = after(rest, "in progress") {
        return Some((negation.is_some(), Status::Enrolling.stored(), words.len() - rest.len()));
    }
    let (first, rest) = rest.split_first()?;
    if negation.is_some() && first.is("started") {
        return Some((false, Status::Inactive.stored(), words.len() - rest.len()));
    }
    Some((negation.is_some(), status(first)?, words.len() - rest.len()))
}

const SORTED: &str = "sorted by|sort by|sort them by|ordered by|order by|order them by|arranged by";

/// Parses an order at the beginning. Returns it and the words that follow.
fn order(words: &[Word]) -> Option<(&'static str, &[Word])> {
    const FIXED: [(&str, &str); 4] = [
        ("newest first|most recent first|newest|latest|most recent|recently created", "newest"),
        ("oldest first|oldest", "oldest"),
        ("alphabetically|in alphabetical order", "name"),
        ("recently changed|recently updated", "changed"),
    ];
    const BY: [(&str, &str); 5] = [
        ("names|name|title", "name"),
        ("status|state", "status"),
        ("context|app", "context"),
        ("last change|last update|last changed|last updated|change date|update date|changed|updated", "changed"),
        ("creation date|creation time|creation|created date|date created|date|created|age", "newest"),
    ];
    let sorted = skip(words, "sorted|ordered");
    let first_of = |words, table: &[(&str, &'static str)]| {
        table.iter().find_map(|(phrases, value)| Some((*value, after(words, phrases)?)))
    };
    if let Some(found) = first_of(sorted, &FIXED) {
        return Some(found);
    }
    let (sort, rest) = first_of(skip(after(words, SORTED).or_else(|| after(words, "by"))?, "the|their"), &BY)?;
    let direction = skip(rest, ",|in");
    let ascending =
        after(direction, "ascending order|ascending|asc|oldest first").map(|rest| (true, skip(rest, "order")));
    let descending = after(direction, "descending order|descending|desc|newest first").map(|rest| (false, rest));
    match (sort, ascending.or(descending)) {
        (sort, None) => Some((sort, rest)),
        ("newest", Some((true, rest))) => Some(("oldest", rest)),
        ("newest" | "changed", Some((false, rest))) => Some((sort, rest)),
        ("name" | "status" | "context", Some((true, rest))) => Some((sort, rest)),
        _ => None,
    }
}

/// Parses a clause at the beginning. Returns the argument that it sets, its value, and its number of
/// words.
fn clause(words: &[Word]) -> Option<(&'static str, Value, usize)> {
    let length = |rest: &[Word]| words.len() - rest.len();
    const IN_NAME: &str =
        "in their names|in their name|in the names|in the name|in its name|in their titles|in their title|in the title";
    let named = skip(words, "have the word|has the word|have|has|having|with the word|with|containing|contain");
    if let Some((word, rest)) = named.split_first()
        && let Some(rest) = after(rest, IN_NAME)
    {
        return Some(("search", json!(word.text), length(rest)));
    }
    if words[0].kind.as_deref() == Some("context") && !words[0].quoted {
        return Some(("context", json!(words[0].text), length(skip(&words[1..], "context"))));
    }
    let place = skip(skip(words, "that use|which use|using|used at|use|at|on"), "the site|the target|site|target|the");
    if let Some((point, rest)) = place.split_first().filter(|(point, _)| is_point(point)) {
        return Some(("at", json!(point.text), length(skip(rest, "site|target"))));
    }
    let forms = [
        ("in detail|in full|with details|with all details|detailed", "full"),
        ("in short|in brief|briefly|short", "short"),
        ("as raw json|in raw|as raw|as json|in json|raw json|raw|json", "raw"),
    ];
    let form = forms.iter().find_map(|(phrases, form)| Some((*form, after(words, phrases)?)));
    if let Some((form, rest)) = form {
        return Some(("form", json!(form), length(rest)));
    }
    if let Some((sort, rest)) = order(words) {
        return Some(("sort", json!(sort), length(rest)));
    }
    if let Some((number, rest)) = after(words, "page").and_then(<[Word]>::split_first) {
        return Some(("page", json!(number.text.parse::<u32>().ok()?), length(rest)));
    }
    for (phrases, key) in [(CREATED, "created"), (CHANGED, "changed")] {
        if let Some((when, rest)) = after(words, phrases).and_then(period) {
            return Some((key, json!(when), length(rest)));
        }
    }
    const TAG: &str = "tagged with|tagged as|tagged|with the tags|with the tag|with tags|with tag|by the tag|by tag|\
        that have the tag|which have the tag|having the tag|labelled|labeled|tag";
    const ABOUT: &str = "about|called|named|matching|containing|that contain|with the name|with the word";
    for (phrases, key) in [(TAG, "tag"), (ABOUT, "search")] {
        if let Some(rest) = after(words, phrases).filter(|rest| !rest.is_empty()) {
            let ends = |at: &usize| {
                let word = &rest[*at];
                word.quoted || is_small(word) || status_clause(&rest[*at..]).is_some() || clause(&rest[*at..]).is_some()
            };
            let end = if rest[0].quoted { 1 } else { (1..rest.len()).find(ends).unwrap_or(rest.len()) };
            return Some((key, json!(text(&rest[..end])), length(&rest[end..])));
        }
    }
    // `from last week`, `in the last 3 days`
    if let Some((when, rest)) = fixed_period(words).or_else(|| after(words, "from|of").and_then(fixed_period)) {
        return Some(("created", json!(when), length(rest)));
    }
    let named = skip(after(words, "in|of|for|from|under")?, "the context|the|context|app");
    let (first, rest) = named.split_first()?;
    let is_context = !first.among(NO_CONTEXT) && !is_status(first) && !first.any(&THINGS) && !first.is(",");
    is_context.then(|| ("context", json!(first.text), length(skip(rest, "context"))))
}

/// Returns true for a known site or target.
fn is_point(word: &Word) -> bool {
    matches!(word.kind.as_deref(), Some("site" | "target")) && !word.quoted
}

/// Parses a period. Returns it in the format of the tool, and the words that follow.
fn period(words: &[Word]) -> Option<(String, &[Word])> {
    if let Some(found) = fixed_period(words) {
        return Some(found);
    }
    let ends = |word: &Word| {
        word.is(",")
            || is_status(word)
            || word.any(&[
                "in", "by", "tagged", "with", "sorted", "page", "for", "and", "newest", "oldest", "that", "which",
            ])
    };
    let most = |rest: &[Word]| rest.iter().position(ends).unwrap_or(rest.len()).min(3);
    let upto = |length: usize| (plain_period(&words[..length]), &words[length..]);
    // `between 1 May and 31 May`, `from Monday to Friday`
    let range =
        after(words, "between").map(|rest| (rest, "and")).or(after(words, "from").map(|rest| (rest, "to|until|till")));
    if let Some((rest, separators)) = range
        && let Some(middle) = (1..rest.len().min(5)).find(|at| after(&rest[*at..], separators).is_some())
        && let more @ 1.. = most(&rest[middle + 1..])
    {
        return Some(upto(words.len() - rest.len() + middle + 1 + more));
    }
    let rest = after(words, "since|after|before|until|on|from")?;
    let more = most(rest);
    (more > 0).then(|| upto(words.len() - rest.len() + more))
}

#[cfg(test)]
mod tests {
    use super::super::{
        situation::Situation,
        tests::{check, understand},
        user_request::UserRequest,
    };

    #[test]
    fn lists_have_filters_orders_and_pages() {
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
            ("list experiments not running", r#"{"status":"not enrolling"}"#),
            ("which experiments are not running or archived?", r#"{"status":"not enrolling or archived"}"#),
            ("list experiments that are archived or cancelled", r#"{"status":"archived or cancelled"}"#),
            ("list all experiments except archived ones", r#"{"status":"not archived"}"#),
            ("show me the running and the paused experiments", r#"{"status":"enrolling or enrollmentComplete"}"#),
            (
                "list experiments by tag algebra in assign-prog which are inactive",
                r#"{"context":"assign-prog","status":"inactive","tag":"algebra"}"#,
            ),
            (
                "list experiments created between 1 May and 31 May in mathstream",
                r#"{"context":"mathstream","created":"between 1 May and 31 May"}"#,
            ),
            ("list experiments created from Monday to Friday", r#"{"created":"from Monday to Friday"}"#),
            ("list experiments created in May", r#"{"created":"May"}"#),
            ("list experiments from last week", r#"{"created":"last week"}"#),
            (
                "list experiments about linear equations that are paused",
                r#"{"search":"linear equations","status":"enrollmentComplete"}"#,
            ),
            ("list experiments sorted by created ascending", r#"{"sort":"oldest"}"#),
            ("list experiments sorted by name", r#"{"sort":"name"}"#),
            ("please show me all of them experiments right now", "{}"),
            ("which experiments do we currently have in UpGrade?", "{}"),
            ("list the names of the experiments in mathstream", r#"{"context":"mathstream"}"#),
        ];
        let rows: Vec<_> = rows.iter().map(|(said, arguments)| (*said, list(arguments).replace(" {}", ""))).collect();
        let rows: Vec<_> = rows.iter().map(|(said, line)| (*said, line.as_str())).collect();
        check(&Situation::default(), &rows);
    }

    #[test]
    fn unknown_words_are_not_ignored() {
        for (said, question) in [
            ("list experiments with status bogus", "I couldn't make sense of “with status bogus” in this."),
            ("list experiments created tomorrow", "I couldn't make sense of “created tomorrow” in this."),
            ("show experiments created by ana in assign-prog", "I couldn't make sense of “created by ana” in this."),
            ("list experiments in assign-prog and mathstream", "I couldn't make sense of “mathstream” in this."),
            ("list experiments not in mathstream", "I couldn't make sense of “not in mathstream” in this."),
            ("list experiments sorted by enrollment", "I can sort by name, status, or date."),
            ("list experiments sorted by weight", "I can sort by name, status, or date."),
        ] {
            let user_request = understand(&Situation { said: said.to_owned(), ..Situation::default() }).user_request;
            let asked = matches!(&user_request, UserRequest::Unclear { question: asked, options } if asked == question && !options.is_empty());
            assert!(asked, "{said}: {user_request:?}");
        }
    }
}
