//! The thing that a request is about: a name, or “it”.

use serde_json::Value;

use crate::{
    dates,
    phrases::Phrases,
    situation::Situation,
    slots::LIMITING,
    words::{Word, are, skip, text, without_last},
};

/// A value with which some words can begin.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The value. Null sets no parameter; an object for the parameter `*` sets each parameter that
    /// it contains.
    pub value: Value,
    /// The number of words that the value takes.
    pub taken: usize,
    /// The number of these words that are taken for the value without being recognised.
    pub cost: usize,
}

impl Candidate {
    /// Creates a candidate for a recognised value.
    pub fn known(value: impl Into<Value>, taken: usize) -> Self {
        Self { value: value.into(), taken, cost: 0 }
    }

    /// Creates a candidate for words that may be a value.
    pub fn taken(value: impl Into<Value>, taken: usize) -> Self {
        Self { value: value.into(), taken, cost: taken }
    }
}

/// Words that may precede a name in quotes and belong to it.
pub(super) const LEADING: &[&str] = &["the", "our", "my", "an", "a", "called", "named"];

/// Returns the number of leading words that can be a name.
pub fn longest_name(words: &[Word], today: &str) -> usize {
    const NOT_IN_NAMES: &[&str] = &[
        "that", "which", "but", "only", "if", "until", "unless", "except", "without", "ends", "starting", "not",
        "once", "keep", ",",
    ];
    let plain = |word: &Word| word.text == word.lower;
    let ends_at = |at: &usize| {
        plain(&words[*at]) && words[*at].any(NOT_IN_NAMES) || dates::moment(&words[*at..], today).is_some()
    };
    match words.first() {
        Some(first) if first.any(LIMITING) && plain(first) => 0,
        _ => (1..words.len()).find(ends_at).unwrap_or(words.len()),
    }
}

/// The thing that some words refer to.
#[derive(Clone, Debug, PartialEq)]
pub enum ThingReference {
    /// A thing of this name, as typed.
    Name(String),
    /// “It”: the last subject of the thread; `None` if there is none.
    Pronoun(Option<String>),
    /// Nothing.
    Nothing,
}

impl ThingReference {
    /// Returns the name of the thing.
    pub fn name(self) -> Option<String> {
        match self {
            Self::Name(name) => Some(name),
            Self::Pronoun(name) => name,
            Self::Nothing => None,
        }
    }
}

/// Returns the thing that these words refer to. Words around the name are dropped; a name in quotes
/// is kept as it is.
pub fn thing(words: &[Word], situation: &Situation, phrases: &dyn Phrases) -> ThingReference {
    let words = without_last(words, &[",", "please", "now", "again"]);
    if points_back(words, phrases) {
        return ThingReference::Pronoun(situation.last_subject.clone());
    }
    if let Some(quoted) = words.iter().find(|word| word.quoted) {
        return ThingReference::Name(quoted.text.clone());
    }
    let name = skip(words, "the|our|my|an|a");
    let name = match name.split_first() {
        Some((first, rest)) if first.any(phrases.vocabulary().things) => skip(rest, "called|named"),
        _ => name,
    };
    if is_no_name(name) {
        return ThingReference::Nothing;
    }
    let name = text(if name.len() > 1 { without_last(name, phrases.vocabulary().things) } else { name });
    let name = name.strip_suffix("'s").or_else(|| name.strip_suffix("’s")).unwrap_or(&name).to_owned();
    if name.is_empty() { ThingReference::Nothing } else { ThingReference::Name(name) }
}

/// Returns true if these words cannot be a name: they begin like a question or a number of things, or contain a verb of a
/// clause. A word with capitals may be a part of any name.
fn is_no_name(words: &[Word]) -> bool {
    const FIRST: &[&str] = &[
        "all",
        "every",
        "each",
        "everything",
        "everyone",
        "everybody",
        "many",
        "much",
        "them",
        "how",
        "why",
        "when",
        "where",
        "who",
        "whose",
        "what",
        "which",
        "whether",
    ];
    const CLAUSES: &[&str] =
        &["is", "are", "was", "were", "did", "does", "happened", "happens", "happening", "wasn't", "isn't", "didn't"];
    let is_plain = |word: &Word, among: &[&str]| word.any(among) && word.text == word.lower;
    words.first().is_some_and(|first| is_plain(first, FIRST)) || words.iter().any(|word| is_plain(word, CLAUSES))
}

/// Returns true if these words are a form of “it”.
pub fn points_back(words: &[Word], phrases: &dyn Phrases) -> bool {
    const POINTING: &str = "it|that|this|that one|this one|the one|them|last one|one|same one|new one|previous one|\
        one from before";
    if words.iter().any(|word| word.quoted) {
        return false;
    }
    if matches!(words, [one] if one.any(&["the", "our", "my", "same", "last", "new", "latest", "previous"])) {
        return false; // belongs to a word that follows
    }
    let words = skip(words, "the|our|my|that|this|same|last|new|latest|previous");
    let made = |rest: &[Word]| {
        let rest = skip(skip(rest, "we|i|you"), "just");
        matches!(rest, [one] if one.any(&["created", "made"]))
    };
    let of_thing = words.split_first().filter(|(first, _)| first.any(phrases.vocabulary().things) || first.is("one"));
    words.is_empty() || are(words, POINTING) || of_thing.is_some_and(|(_, rest)| rest.is_empty() || made(rest))
}
