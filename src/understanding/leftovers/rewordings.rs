//! A message that no rule reads, in the words that the rules know.
//!
//! `rewordings.txt` says which words have a usual one (“kick off” is “start”), and which can be left out (“by the way”). What
//! the rules make of the other words was not typed by anybody, so it is a suggestion: a question is answered with “I took this
//! as …”, and a change is a button. Words after “called” and the like are a text of the person and stay as they are.

use crate::{
    lexicon::Mention,
    lines::Offer,
    phrase_book::PhraseBook,
    situation::Situation,
    words::{Word, as_typed, begin_with, strip_politeness},
};

/// Words after which a text of the person follows.
const BEFORE_TEXT: &str = "called named rename name description describe titled title remember note reply answer say saying \
    write mention search tag";

/// Stands for any words.
pub(crate) const GAP: char = '~';

/// A rewording: what people say, and what the rules say. Both may have a gap for any words.
#[derive(Debug)]
pub(crate) struct Rewording {
    other: (String, Option<String>),
    usual: (String, Option<String>),
}

impl Rewording {
    /// Returns what can be said otherwise: the rewordings of this file's table, and the offers with a gap. The longest come
    /// first.
    pub(crate) fn all<'o>(offers: impl Iterator<Item = &'o Offer>) -> Vec<Self> {
        let lines = include_str!("rewordings.txt").lines().filter(|line| !line.starts_with('#'));
        let pairs = lines.filter_map(|line| line.split_once(':'));
        let of_line =
            |(usual, others): (&'static str, &'static str)| others.split('|').map(move |other| Self::new(other, usual));
        let of_offer = |offer: &'o Offer| offer.samples.iter().map(|sample| Self::new(sample, &offer.request));
        let mut all: Vec<_> = pairs.flat_map(of_line).chain(offers.flat_map(of_offer)).collect();
        let words = |part: &str| part.split_whitespace().count();
        all.sort_by_key(|one| std::cmp::Reverse(words(&one.other.0) + 2 * one.other.1.as_deref().map_or(0, words)));
        all
    }

    fn new(other: &str, usual: &str) -> Self {
        let with_gap = |text: &str| match text.split_once(GAP) {
            Some((before, after)) => (before.trim().to_owned(), Some(after.trim().to_owned())),
            None => (text.trim().to_owned(), None),
        };
        Self { other: with_gap(other), usual: with_gap(usual) }
    }

    /// Returns the words that this makes of the first ones, and the words after them; `None` if they are others.
    fn apply<'w>(&self, words: &'w [Word]) -> Option<(Vec<Word>, &'w [Word])> {
        let plain = |text: &str| text.split_whitespace().map(|word| Word::new(word, false)).collect::<Vec<_>>();
        let rest = begin_with(words, &self.other.0)?;
        let Some(closing) = &self.other.1 else {
            return Some((plain(&self.usual.0), rest));
        };
        // Without words that close it, the gap goes on to the end.
        let closes = |at: &usize| begin_with(&rest[*at..], closing).is_some();
        let end = if closing.is_empty() { rest.len() } else { (1..rest.len()).find(closes)? };
        let all = [plain(&self.usual.0), rest[..end].to_vec(), plain(self.usual.1.as_deref().unwrap_or_default())];
        let after = begin_with(&rest[end..], closing).unwrap_or_default();
        Some((all.concat(), after))
    }
}

/// Returns the situation with the message in other words; `None` if it has none that could be said otherwise.
pub(crate) fn reworded(book: &PhraseBook, situation: &Situation) -> Option<Situation> {
    let typed = book.words(&situation.said, &situation.names);
    let mut words: Vec<Word> = Vec::with_capacity(typed.len());
    let mut rest = strip_politeness(&typed);
    let mut has_changed = false;
    while let Some((first, others)) = rest.split_first() {
        // With a gap, it rewords a whole request.
        let begins = words.last().is_none_or(|last| last.is(","));
        let mut fitting = book.offers().rewordings().iter().filter(|one| begins || one.other.1.is_none());
        let Some((usual, after)) = fitting.find_map(|one| one.apply(rest)) else {
            if first.among(BEFORE_TEXT) {
                words.extend_from_slice(rest);
                break;
            }
            words.push(first.clone());
            rest = others;
            continue;
        };
        has_changed = true;
        let begins_text = usual.iter().any(|word| word.among(BEFORE_TEXT));
        words.extend(usual);
        rest = after;
        if begins_text {
            words.extend_from_slice(rest);
            break;
        }
    }
    // A comma beside what was left out.
    let from = words.iter().position(|word| !word.is(",")).unwrap_or(words.len());
    words.drain(..from);
    words.dedup_by(|next, before| next.is(",") && before.is(","));
    while words.last().is_some_and(|last| last.is(",")) {
        words.pop();
    }
    if !has_changed || words.is_empty() {
        return None;
    }
    let mut said = as_typed(&words);
    if situation.said.trim_end().ends_with('?') {
        said.push('?');
    }
    let is_kept = |name: &&Mention| said.contains(&name.said);
    let names = situation.names.iter().filter(is_kept).cloned().collect();
    Some(Situation { said, names, ..situation.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn says(said: &str, expected: &str) {
        let situation = Situation { said: said.to_owned(), ..Situation::default() };
        let other = reworded(&PhraseBook::default(), &situation).map(|other| other.said);
        assert_eq!(other.as_deref().unwrap_or("nothing else"), expected, "{said}");
    }

    #[test]
    fn usual_words_take_the_place_of_others() {
        says("by the way, kick off “Math Hints”", "start “Math Hints”");
        says("how many ppl so far?", "how many users?");
        says("hmm, let me know when it ends, if you don't mind", "tell me when it ends");
        says("don't let class 7C into “Math Hints”", "exclude class 7C from “Math Hints”");
        says("please turn “Math Hints” off", "stop “Math Hints”");
        says("start it", "nothing else");
    }

    #[test]
    fn texts_and_names_stay_as_they_were_typed() {
        says("launch a new one called Kids and People", "start a new one called Kids and People");
        says("show “Launch of the kids”", "nothing else");
        says("please", "nothing else");
    }
}
