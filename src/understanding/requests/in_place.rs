//! Whole requests in place of another one: “start Running Test instead”, “instead of that, start Running Test”.

use crate::{
    book::Book,
    situation::{OpenCard, Situation},
    user_request::{Interpretation, UserRequest},
};

/// Returns the change that the message asks for in place of another one, if it was not understood as a change. `found` is
/// its interpretation so far.
pub(crate) fn resolve(book: &Book, found: Interpretation, situation: &Situation) -> Interpretation {
    if !matches!(found.user_request, UserRequest::Unclear { .. } | UserRequest::Read { .. }) {
        return found;
    }
    let Some(said) = without_instead(&situation.said, &situation.open_cards) else { return found };
    let in_place = book.understand(&Situation { said: said.to_owned(), ..situation.clone() });
    if matches!(in_place.user_request, UserRequest::Change { .. }) { in_place } else { found }
}

/// Returns the request in a message that asks for it in place of another one: “instead, start Running Test”, “start Running
/// Test instead”, “start Running Test instead of that”. What is named after “instead of” has to be on an open card.
fn without_instead<'a>(said: &'a str, open: &[OpenCard]) -> Option<&'a str> {
    const POLITE: [&str; 5] = ["please", "pls", "thanks", "thx", "then"];
    const DIVIDERS: [char; 7] = [' ', ',', '.', '!', ';', ':', '\n'];
    let mut rest = said.trim_matches(DIVIDERS);
    while let Some(shorter) = POLITE.iter().find_map(|word| without_suffix(rest, word)) {
        rest = shorter.trim_end_matches(DIVIDERS);
    }
    let lower = rest.to_lowercase();
    let is_on_a_card = |replaced: &str| {
        let name = replaced.trim_matches(|c: char| !c.is_alphanumeric());
        let points = ["it", "that", "this", "that one", "this one", "the other", "the other one"].contains(&name);
        points || open.iter().any(|card| !name.is_empty() && card.title.to_lowercase().contains(name))
    };
    let replaced = ["instead of ", "rather than "].iter().find_map(|mark| {
        let at = lower.find(mark).filter(|at| *at > 0 && lower.len() == rest.len())?;
        is_on_a_card(&lower[at + mark.len()..]).then(|| &rest[..at])
    });
    let found = replaced
        .or_else(|| without_suffix(rest, "instead"))
        .or_else(|| ["instead", "rather"].iter().find_map(|word| without_prefix(rest, word)))?;
    let mut found = found.trim_matches(DIVIDERS);
    while let Some(shorter) = ["no", "nope", "actually", "wait", "sorry", "then", "and", "but", "rather"]
        .iter()
        .find_map(|word| without_prefix(found, word))
    {
        found = shorter.trim_start_matches(DIVIDERS);
    }
    (!found.is_empty()).then_some(found)
}

/// Returns the text without this word at its end, if it is a word of its own.
fn without_suffix<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let at = text.len().checked_sub(word.len()).filter(|at| *at > 0)?;
    let rest = text.get(..at)?;
    (text.get(at..)?.eq_ignore_ascii_case(word) && !rest.ends_with(char::is_alphanumeric)).then_some(rest)
}

/// Returns the text without this word at its beginning, if it is a word of its own.
fn without_prefix<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let rest = text.get(word.len()..)?;
    (text.get(..word.len())?.eq_ignore_ascii_case(word) && rest.starts_with([' ', ','])).then_some(rest)
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
            ("instead", None),
        ] {
            assert_eq!(without_instead(said, &open), request, "{said}");
        }
    }
}
