//! The values in the lines about experiments: contexts, users, groups, points, terms of the glossary.

use countersign_understanding::{
    dates::number_word,
    lines::{Candidate, points_back},
    phrases::Utterance,
};
use serde_json::{Map, Value, json};

use super::{
    ExperimentPhrases, bulk, changes, clauses, free_text, lists,
    members::{USERS, who_of},
    slots::{LIMITING, point},
    words::{Word, after, lower, skip, text},
};
use crate::{glossary, upgrade::status::Status};

/// The maximum length of a list, in words.
const MAX_LIST_WORDS: usize = 60;

/// Returns true if a list can have this length: the message ends there, or the next word may begin
/// another part.
fn may_end(words: &[Word], length: usize) -> bool {
    const NEXT: &[&str] =
        &["to", "on", "onto", "from", "off", "in", "into", "with", "and", "working", "visiting", "at", ",", "for"];
    words.get(length).is_none_or(|next| next.any(NEXT))
}

/// Returns the possible values of a kind at the beginning of the words.
pub(super) fn of(kind: &str, utterance: Utterance<'_>) -> Vec<Candidate> {
    let words = utterance.words;
    let each = |most: usize, value: &dyn Fn(&[Word]) -> Option<Value>, known: bool| {
        let candidate = |length: usize| {
            let value = value(&words[..length])?;
            Some(if known { Candidate::known(value, length) } else { Candidate::taken(value, length) })
        };
        let lengths = (1..=words.len().min(most)).filter(|length| most < MAX_LIST_WORDS || may_end(words, *length));
        lengths.filter_map(candidate).collect::<Vec<_>>()
    };
    match kind {
        "alone" if utterance.situation.last_subject.is_none() => vec![Candidate::known(Value::Null, 0)],
        "context" => each(1, &|words| is_context(words).then(|| words[0].text.clone().into()), true),
        "known" => {
            let known = |word: &Word| word.kind.as_deref() == Some("context") || word.text.contains('-');
            each(1, &|words| (known(&words[0]) && is_context(words)).then(|| words[0].text.clone().into()), true)
        }
        "there" => {
            let there = here(utterance).map_or(Value::Null, Value::from);
            vec![Candidate::known(there, 0)]
        }
        "place" => each(4, &|words| place_name(words), false),
        "users" => {
            let hundred = after(words, "a hundred|one hundred").map(|_| Candidate::known(100, 2));
            let written = |word: &Word| number_word(&word.lower).filter(|_| !word.any(&["a", "an"]));
            let number =
                |word: &Word| word.text.trim_end_matches('.').replace(',', "").parse().ok().or_else(|| written(word));
            hundred.into_iter().chain(each(1, &|words| number(&words[0]).map(Value::from), true)).collect()
        }
        "who" => each(1, &|words| is_user(&words[0]).then(|| words[0].text.clone().into()), true),
        "state" => {
            let state = |word: &Word| lists::is_status(word) || word.any(&["done", "on", "up", "start", "stop"]);
            each(1, &|words| state(&words[0]).then_some(Value::Null), true)
        }
        "status" => each(1, &|words| status(&words[0]), true),
        "back" => {
            let in_hand = utterance.situation.in_hand().is_some();
            let back = utterance.situation.last_subject.clone().filter(|_| !in_hand);
            each(
                1,
                &|words| words[0].any(&["it", "this", "that"]).then(|| back.clone().map(Value::from)).flatten(),
                true,
            )
        }
        "term" => each(5, &|words| term(words, utterance.words), true),
        "plain" => each(
            5,
            &|words| (words.len() == utterance.words.len() && is_plain(words, utterance)).then(|| text(words).into()),
            false,
        ),
        "name" => each(
            8,
            &|words| (words.len() == utterance.words.len() && is_name(words)).then(|| text(words).into()),
            false,
        ),
        "point" => site_and_target(words).into_iter().collect(),
        "within" => each(8, &within, false),
        "groups" => each(MAX_LIST_WORDS, &|words| ids(words, false), true),
        "groups-one" => each(MAX_LIST_WORDS, &|words| ids(words, true), true),
        "group-kind" => each(2, &group_kind, true),
        "every" => each(
            MAX_LIST_WORDS,
            &|words| (words.len() == utterance.words.len()).then(|| bulk::every(words)).flatten(),
            true,
        ),
        "several" => each(
            MAX_LIST_WORDS,
            &|words| (words.len() == utterance.words.len()).then(|| bulk::several(words)).flatten().map(Value::from),
            true,
        ),
        "pair" => each(24, &|words| bulk::several_compared(words).map(Value::from), true),
        "any" => each(1, &|words| Some(words[0].text.clone().into()), true),
        "rule" => each(1, &|words| (!words[0].is("rule")).then(|| words[0].lower.clone().into()), true),
        "mode" => each(1, &|words| (!words[0].is("mode")).then(|| clauses::filter_mode(&words[0]).into()), true),
        "grouping" => each(1, &|words| is_grouping(&words[0]).then(|| words[0].text.clone().into()), true),
        "post-rule" => each(2, &post_rule, true),
        "assigned" => each(1, &|words| is_code(&words[0]).then(|| format!("assign {}", words[0].text).into()), true),
        "ended" if words.first().is_none_or(|next| next.among(", and with at in but")) => {
            vec![Candidate::known(Value::Null, 0)]
        }
        "shares" => each(MAX_LIST_WORDS, &changes::by_condition, true),
        "members" => each(MAX_LIST_WORDS, &|words| members(words), true),
        "tags-more" => each(MAX_LIST_WORDS, &|words| tags(words, '+'), true),
        "tags-less" => each(MAX_LIST_WORDS, &|words| tags(words, '-'), true),
        "code" => each(1, &|words| is_code(&words[0]).then(|| words[0].text.clone().into()), true),
        "new-name" => {
            let taken = free_text::name(words).0.len();
            each(40, &|words| (words.len() == taken).then(|| new_name(words)).flatten(), true)
        }
        _ => Vec::new(),
    }
}

/// Parses ids of groups by type; `None` if there are other words.
fn ids(words: &[Word], one_each: bool) -> Option<Value> {
    let has_other =
        words.iter().any(|word| word.any(&["groups", "group", "working", "visiting", "in", "to", "from", "on"]));
    let ids = groups(words, one_each);
    (!has_other && !ids.is_empty()).then_some(Value::Object(ids))
}

/// Returns true for a context: a known one, or a single lower-case word that has no other meaning here.
fn is_context(words: &[Word]) -> bool {
    let [one] = words else { return false };
    let known = one.kind.as_deref() == Some("context");
    known && !one.quoted
        || !one.quoted
            && one.text == one.lower
            && one.text.contains(char::is_alphanumeric)
            && !lists::is_no_context(one)
            && !points_back(words, &ExperimentPhrases)
}

/// Returns the context that the thread is about: that of the change being worked out, or of the last request, or the name
/// of the last experiment, which stands for its context.
fn here(utterance: Utterance<'_>) -> Option<String> {
    let situation = utterance.situation;
    let named = |parameters: &serde_json::Map<String, Value>| {
        parameters.get("context").and_then(Value::as_str).map(str::to_owned)
    };
    let in_hand = situation.in_hand().and_then(|change| named(&change.params));
    in_hand
        .or_else(|| utterance.topic_of(super::OWNER).and_then(|topic| named(&topic.parameters)))
        .or_else(|| utterance.subject_of(super::OWNER).map(str::to_owned))
}

/// Parses a context, or the full name of an experiment.
fn place_name(words: &[Word]) -> Option<Value> {
    let plain = skip(words, "the");
    (!plain.is_empty() && !plain.iter().any(|word| word.any(&["with", ",", "who", "at", "on", "right"])))
        .then(|| text(plain).into())
}

fn is_user(word: &Word) -> bool {
    const NOBODY: &str = "it the that experiment this we you i a user users student students in with for and , who at \
        visiting going to of by";
    !word.quoted && !word.among(NOBODY)
}

/// Returns true for an arrow, which stands for “to”: `weights -> 80/20`.
pub(super) fn is_arrow(word: &Word) -> bool {
    !word.quoted && ["->", "-->", "=>", "→", "⇒"].contains(&word.text.as_str())
}

/// Returns true for a type of group.
fn is_grouping(word: &Word) -> bool {
    !word.quoted && (word.lower.ends_with("id") || word.among("class school teacher district"))
}

/// Parses a post-experiment rule: `continue`, `assign control`.
fn post_rule(words: &[Word]) -> Option<Value> {
    match words {
        [one] => Some(one.lower.clone().into()),
        [one, condition] if one.any(&["assign", "revert"]) => Some(format!("{} {}", one.lower, condition.text).into()),
        _ => None,
    }
}

/// Parses a status that an experiment can be set to.
pub(super) fn status(word: &Word) -> Option<Value> {
    let status = Status::asked_for(&word.lower).filter(|status| !word.quoted && status.verb(&word.lower).is_none());
    status.map(|_| word.text.clone().into())
}

/// Parses a term of the glossary, and returns its usual name. A status alone is a request for a list,
/// unless “means” follows.
fn term(words: &[Word], all: &[Word]) -> Option<Value> {
    let is_status = matches!(words, [one] if lists::is_status(one) && !lists::is_stored_status(one));
    let means = all.get(1).is_some_and(|next| next.any(&["mean", "means"]));
    let found = glossary::find(&text(words)).filter(|_| !words.iter().any(|word| word.quoted || word.is("the")));
    found.filter(|_| !is_status || means).map(|term| term.name().into())
}

/// Returns true for words that are not a name: they are in lower case and refer to nothing on the
/// platform.
fn is_plain(words: &[Word], utterance: Utterance<'_>) -> bool {
    const THEIRS: &str = "of in experiment study setup details detail context it its this that briefly";
    let plain = |word: &Word| !word.quoted && word.text.chars().all(|c| c.is_lowercase() || c == '-' || c == '\'');
    let known = utterance.situation.last_subject.as_ref().is_some_and(|name| name.to_lowercase() == lower(words));
    let is_context = matches!(words, [one] if one.text.contains('-'));
    words.iter().all(plain) && !words.iter().any(|word| word.among(THEIRS)) && !known && !is_context
}

/// Returns true for several capitalised words, or words in quotes.
fn is_name(words: &[Word]) -> bool {
    words.iter().any(|word| word.quoted)
        || words.len() > 1 && words.iter().all(|word| word.text.starts_with(char::is_uppercase))
}

/// Parses `Site/target`, or the two as separate words.
fn site_and_target(words: &[Word]) -> Option<Candidate> {
    let as_point =
        |word: &Word| !word.quoted && (word.text.contains('_') || word.text.contains('-') && word.text == word.lower);
    let both = |site: &str, target: &str| json!({ "site": site, "target": target });
    match words {
        [one, ..] if !one.quoted && point(&one.text).is_some() => {
            let (site, target) = one.text.split_once('/')?;
            Some(Candidate::known(both(site, target), 1))
        }
        [site, target, ..] if !site.quoted && as_point(target) => {
            Some(Candidate::known(both(&site.text, &target.text), 2))
        }
        _ => None,
    }
}

/// Parses a context or an experiment after a preposition: `in assign-prog`, `of Math Hints`.
fn within(words: &[Word]) -> Option<Value> {
    let (first, rest) = words.split_first().filter(|(first, _)| first.any(&["in", "of"]))?;
    let named = skip(rest, "the context|context|the experiment|experiment|the");
    let plain = super::words::without_last(named, &["context"]);
    if plain.is_empty() || plain.iter().any(|word| word.any(&["for", "with", "in", "of", ","])) {
        return None;
    }
    let called = after(rest, "the context|context").is_some() || plain.len() < named.len();
    let key = if called || first.is("in") && is_context(plain) { "context" } else { "experiment" };
    Some(json!({ key: text(plain) }))
}

/// Parses `with groups`, `with classId groups`.
fn group_kind(words: &[Word]) -> Option<Value> {
    match words {
        [one] if one.any(&["groups", "group", "memberships"]) => Some(json!({ "with_groups": true })),
        [one] if one.any(&["classes", "schools", "districts", "teachers"]) => {
            Some(json!({ "group_type": one.lower.trim_end_matches('s').replace("classe", "class") }))
        }
        [kind, one] if !kind.any(&["with", "in"]) && one.any(&["groups", "group"]) => {
            Some(json!({ "group_type": kind.text }))
        }
        _ => None,
    }
}

/// Parses the members of a list: `u1, class 5B and u2`.
fn members(words: &[Word]) -> Option<Value> {
    const ALL_IN: &str = "everyone in|everybody in|anyone in|all students in|all users in|students in|users in|people in|all of|all in|\
        everyone from|everybody from|anyone from|all students from|all users from|students from|users from|people from";
    let items = items(skip(words, ALL_IN), 2)?;
    let is_everybody =
        |item: &Vec<Word>| matches!(item.as_slice(), [one] if one.among("everyone everybody anyone all"));
    (!items.iter().any(is_everybody)).then(|| who_of(&items))
}

/// Parses tags. `mark` is `+` to add them or `-` to remove them.
fn tags(words: &[Word], mark: char) -> Option<Value> {
    let items = items(words, 4).filter(|items| items.iter().all(|tag| free_text::other_part(tag).is_none()))?;
    let tags: Vec<String> = items.iter().map(|tag| format!("{mark}{}", text(tag))).collect();
    Some(tags.into())
}

/// Parses a list up to the last word. Each item has at most `most` words.
fn items(words: &[Word], most: usize) -> Option<Vec<Vec<Word>>> {
    let (items, rest) = clauses::list(words);
    let is_item = |item: &Vec<Word>| {
        let item = skip(skip(item, "the"), USERS);
        (1..=most).contains(&item.len()) && !item.iter().any(|word| word.any(LIMITING))
    };
    let ends = !words.last()?.any(&["and", ","]);
    (ends && rest.is_empty() && !items.is_empty() && items.iter().all(is_item)).then_some(items)
}

/// Returns true for a word that can be the code of a condition.
fn is_code(word: &Word) -> bool {
    !word.any(LIMITING) && !word.among(", the") && word.kind.as_deref() != Some("experiment")
}

/// Parses a new name up to the last of these words; `None` if another request follows it.
fn new_name(words: &[Word]) -> Option<Value> {
    const CONNECTIVES: &[&str] = &[",", "and", "but", "once", "if", "then", "unless", "when"];
    let more = |at: usize| {
        words[at].any(CONNECTIVES)
            && words[at + 1..].iter().any(|word| word.any(CONNECTIVES) || word.any(&["start", "stop", "it"]))
    };
    let name = super::words::without_last(words, &["instead", "rather"]);
    (!(1..words.len()).any(more)).then(|| text(name).into())
}

/// Parses ids of groups by type: `class 5B and 5C, school North`. With `one_each`, which is for working
/// groups, each type has only one id.
fn groups(words: &[Word], one_each: bool) -> Map<String, Value> {
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
