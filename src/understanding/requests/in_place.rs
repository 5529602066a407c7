//! Whole requests in place of another one: “start Running Test instead”, “instead of that, start Running Test”.

use crate::{
    corrections::Correction,
    phrase_book::PhraseBook,
    situation::{OpenCard, Situation},
    user_request::{Interpretation, UserRequest},
    words::{Word, after, are, as_typed, lower, strip_politeness, without_last, words_with},
};

/// Returns the change that the message asks for in place of another one, if it was not understood as a change. `found` is
/// its interpretation so far.
pub(crate) fn resolve(book: &PhraseBook, found: Interpretation, situation: &Situation) -> Interpretation {
    if !matches!(found.user_request, UserRequest::Unclear { .. } | UserRequest::Read { .. }) {
        return found;
    }
    let words = words_with(&situation.said, &situation.names);
    let Some(said) = without_instead(strip_politeness(&words), &situation.open_cards) else { return found };
    let in_place = book.understand(&Situation { said, ..situation.clone() });
    if matches!(in_place.user_request, UserRequest::Change { .. }) { in_place } else { found }
}

/// Returns the request in a message that asks for it in place of another one: “instead, start Running Test”, “start Running
/// Test instead”, “start Running Test instead of that”. What is named after “instead of” has to be on an open card.
fn without_instead(words: &[Word], open: &[OpenCard]) -> Option<String> {
    let replaced = |at: usize| Some((at, after(&words[at..], "instead of|rather than")?));
    let is_on_a_card = |replaced: &[Word]| {
        let name = lower(without_last(replaced, &["please", "then", ","]));
        are(replaced, "it|that|this|that one|this one|the other|the other one")
            || open.iter().any(|card| !name.is_empty() && card.title.to_lowercase().contains(&name))
    };
    let (kept, names_another) = match (1..words.len()).find_map(replaced) {
        Some((at, replaced)) if is_on_a_card(replaced) => (&words[..at], true),
        Some(_) => return None,
        None => (words, false),
    };
    let found = Correction::of(kept);
    // A “rather” in the middle of a sentence replaces nothing.
    let is_shorter = found.value.len() < words.len() && !found.value.is_empty();
    ((names_another || found.replaces) && is_shorter).then(|| as_typed(found.value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_is_what_remains_without_the_other_one() {
        let open = [OpenCard { title: "Start “Math Hints”?".to_owned(), ..OpenCard::default() }];
        for (said, request) in [
            ("start Running Test instead", Some("start Running Test")),
            ("no, start Running Test instead please!", Some("start Running Test")),
            ("instead, start Running Test", Some("start Running Test")),
            ("rather start Running Test", Some("start Running Test")),
            ("start Running Test instead of Math Hints", Some("start Running Test")),
            ("start Running Test rather than that.", Some("start Running Test")),
            ("start Running Test instead of Chat Tone", None),
            ("start Running Test", None),
            ("should we rather start Running Test", None),
            ("instead", None),
        ] {
            let words = words_with(said, &[]);
            assert_eq!(without_instead(strip_politeness(&words), &open).as_deref(), request, "{said}");
        }
    }
}
