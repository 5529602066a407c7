//! Answers to the question for the decision points of an experiment.

use super::{
    clauses::two_words,
    words::{Word, text},
};

/// Returns the only one of the offered decision points whose site and target are named, in any order and with spaces in
/// the place of signs: `lesson quiz question hint`, `area_model in SelectSection`.
pub(super) fn offered_point(words: &[Word], key: &str, options: &[String]) -> Option<String> {
    const BESIDE: &[&str] = &["the", "decision", "point", "at", "in", "on", "of", "is", "site", "target", "and", "a"];
    let plain = |text: &str| -> Vec<String> {
        let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        words.map(str::to_lowercase).collect()
    };
    let said = plain(&text(words));
    let without = |said: &[String], part: &str| -> Option<Vec<String>> {
        let part = plain(part);
        let at = (!part.is_empty()).then(|| said.windows(part.len()).position(|some| some == part))??;
        Some([&said[..at], &said[at + part.len()..]].concat())
    };
    let is_named = |option: &&String| {
        let left = option.split_once(" / ").and_then(|(site, target)| without(&without(&said, target)?, site));
        left.is_some_and(|left| left.iter().all(|word| BESIDE.contains(&word.as_str())))
    };
    let mut named = options.iter().filter(|_| key == "decision_points").filter(is_named);
    named.next().filter(|_| named.next().is_none()).cloned()
}

/// Returns the words that may be sites and targets.
fn codes(words: &[Word]) -> Vec<&Word> {
    words.iter().filter(|word| !word.among("the decision point points at a is site target and , :")).collect()
}

/// Returns true if the words may be decision points: one word, a site with a target, or points with slashes.
pub(super) fn may_be_point(words: &[Word]) -> bool {
    match codes(words).as_slice() {
        [_] => true,
        [site, target] if two_words(site, target).is_some() || names_a_point(words) => true,
        codes => !codes.is_empty() && codes.iter().all(|word| word.text.contains('/')),
    }
}

/// Parses one decision point in words: `lesson-quiz question-hint`, also with `site` and `target` in any order.
pub(super) fn point_in_words(words: &[Word]) -> Option<String> {
    let is_reversed = words.iter().find(|word| word.any(&["site", "target"])).is_some_and(|first| first.is("target"));
    match codes(words).as_slice() {
        [one, other] if !one.text.contains('/') && !other.text.contains('/') => {
            let (site, target) = if is_reversed { (other, one) } else { (one, other) };
            Some(format!("{} / {}", site.text, target.text))
        }
        _ => None,
    }
}

/// Returns true if the words name the parts of a decision point.
pub(super) fn names_a_point(words: &[Word]) -> bool {
    words.iter().any(|word| word.any(&["site", "target"]))
}
