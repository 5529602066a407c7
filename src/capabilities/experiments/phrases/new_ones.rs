//! Requests for new experiments without the verb “create”, and what is said about them beside their description.

use super::{
    clauses::{self, clauses},
    situation::Situation,
    user_request::Interpretation,
    words::{Word, after, as_typed, sentence, skip, without_last},
};

/// Returns true if the words ask for something new without a verb of their own for it: `run a new A/B test`.
pub(super) fn begins_new(words: &[Word]) -> bool {
    const NEW: &str = "run a new|start a new|launch a new|try a new|do a new|plan a new|run an a/b test|run an ab test|\
        start an a/b test|start an ab test|we need a|we need an|we want a|we want an|i need a|i need an|i want a|i want an|\
        we would like a|we would like an|a new|another new|new experiment|new study|new test|new a/b test|new ab test";
    after(words, NEW).is_some()
}

/// Parses a request for a new experiment that could be taken for a start: `run a new A/B test on hints`.
pub(super) fn new_one(words: &[Word], situation: &Situation) -> Option<Interpretation> {
    begins_new(words).then(|| super::changes::create(words, situation)).flatten()
}

/// Returns the words without “but don't start it yet” at the end: a new experiment is not started anyway.
pub(super) fn without_start(words: &[Word]) -> &[Word] {
    const NOT_YET: &str = "but don't start it yet|but do not start it yet|but don't start it|but do not start it|\
        don't start it yet|do not start it yet|but don't start yet|without starting it|but leave it inactive";
    let ends = |at: &usize| after(&words[*at..], NOT_YET).is_some_and(<[Word]>::is_empty);
    let end = (1..words.len()).find(ends).unwrap_or(words.len());
    without_last(&words[..end], &[","])
}

/// Asks which of several new experiments comes first: `create experiments A and B in mathstream`.
pub(super) fn several_new(words: &[Word]) -> Option<Interpretation> {
    let rest = after(skip(words, "the|two|three|several|some|new"), "experiments|studies|a/b tests")?;
    let found = clauses(skip(rest, "called|named"));
    let (names, _) = clauses::list(found.front());
    let beyond = as_typed(&rest[found.front().len().min(rest.len())..]);
    let options = names.iter().map(|name| format!("create experiment {} {beyond}", as_typed(name)).trim().to_owned());
    Some(Interpretation::unclear("I create one experiment at a time. Which one first?", options.take(4).collect()))
}

/// Returns the purpose of an experiment as its description: `that compares hints with no hints`. A restriction is no
/// purpose.
pub(super) fn purpose(words: &[Word]) -> Option<String> {
    const PURPOSES: &str = "that compares|which compares|to compare|comparing|that tests|which tests|to test|testing|\
        that looks at|about|on|to see|to find out";
    const RESTRICTING: &str = "only if until unless except before after once not but never ends starting keep \
        excluding including";
    let rest = after(words, PURPOSES)?;
    if rest.is_empty() || words.iter().any(|word| word.among(RESTRICTING)) {
        return None;
    }
    let kept = skip(words, "that|which|on|about");
    let written = sentence(kept);
    let mut letters = written.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect())
}

/// Returns true if `front` looks like the name of something new and `words` begin with it: each of its words begins with
/// a capital letter, or with a digit after the first.
pub(super) fn is_title(front: &[Word], words: &[Word]) -> bool {
    let begins = |word: &Word, fits: fn(char) -> bool| word.text.chars().next().is_some_and(fits);
    let Some((first, rest)) = front.split_first() else { return false };
    begins(first, char::is_uppercase)
        && rest.iter().all(|word| begins(word, |c| c.is_uppercase() || c.is_ascii_digit()))
        && front.len() <= MAX_TITLE
        && words.starts_with(front)
}

/// The maximum length of a new name that nothing introduces, in words.
const MAX_TITLE: usize = 5;
