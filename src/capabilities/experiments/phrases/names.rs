//! Which experiment is meant: a name as it was typed, or “it”.
//!
//! Whether there is such an experiment is for the tools to say; they also know which names are near.

use super::{
    situation::Situation,
    words::{Word, lower, skip, text, without_last},
};

/// What words point at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Named {
    /// An experiment of this name, as typed.
    Name(String),
    /// “It”, and nothing was talked about yet.
    Nothing,
}

const POINTING: &[&str] = &[
    "it",
    "that",
    "this",
    "that one",
    "this one",
    "the one",
    "them",
    "last one",
    "one",
    "experiment",
    "that experiment",
    "this experiment",
    "same experiment",
    "last experiment",
    "new experiment",
    "latest experiment",
    "same one",
    "new one",
    "one we created",
    "one we just created",
    "one i created",
    "one i just created",
    "one you created",
    "one you just created",
    "experiment we created",
    "experiment we just created",
    "experiment i just created",
    "experiment you just created",
    "one we just made",
    "experiment we just made",
    "one from before",
    "previous experiment",
    "previous one",
];

/// The experiment that these words name. Words around the name are dropped; in quotes it is taken as it is.
pub(super) fn experiment(words: &[Word], situation: &Situation) -> Named {
    let words = without_last(words, &[",", "please", "now", "again"]);
    if points_back(words) {
        return situation.last_subject.clone().map_or(Named::Nothing, Named::Name);
    }
    if let Some(quoted) = words.iter().find(|word| word.quoted) {
        return Named::Name(quoted.text.clone());
    }
    let mut name = skip(
        skip(words, "the|our|my|an|a"),
        "experiment called|experiment named|experiment|study|test called|test named",
    );
    if name.len() > 1 {
        name = without_last(name, &["experiment", "study"]);
    }
    match text(name) {
        name if name.is_empty() => Named::Nothing,
        name => Named::Name(name),
    }
}

/// Whether these words are “it” in some form.
pub(super) fn points_back(words: &[Word]) -> bool {
    if words.iter().any(|word| word.quoted) {
        return false;
    }
    let plain = lower(skip(words, "the|our|my"));
    words.is_empty() || POINTING.contains(&plain.as_str())
}

/// Whether these words look like a context rather than the name of an experiment: one word, all in lower case.
pub(super) fn looks_like_context(words: &[Word]) -> bool {
    match words {
        [one] => !one.quoted && one.text == one.lower && !points_back(words),
        _ => false,
    }
}
