//! Parts of names: “the lesson video thing”, if only one name contains these words.

use super::{MAX_MENTIONS, MIN_TYPO_LENGTH, Mention, Names, Token, WordId, tokenize};
use crate::words::is_one_of;

/// Words that are more likely ordinary ones than names.
pub(super) const ORDINARY: &str = "start stop pause resume cancel archive delete create change set make test tests list show study \
    context contexts condition conditions weight weights site target user users group groups class classes school tag tags \
    status running paused stopped draft scheduled archived cancelled completed inactive new help name names description end \
    begin run now today tomorrow day week month control individual random balance consistency";
/// Small words.
pub(super) const SMALL: &str =
    "all the a it this that one what which how who and or not for with me first last of to in on is are my";
/// Other words that may follow a name.
const AFTER_NAMES: &str = "about at by if when until every so too also please again instead more has have had does did was were get gets \
    look looks still yet right back from into over under than as be been can could should will would then but because next \
    against versus vs compared";
/// Words that say what a name is of.
const NOUNS: &str = "experiment experiments study thing one";

impl Names {
    /// Notes the words of a name that is added next.
    pub(super) fn note_parts(&mut self, words: &[WordId], name: &str) {
        let place = self.all.len();
        let pairs = words.windows(2).map(|pair| (pair[0], Some(pair[1])));
        for part in words.iter().map(|word| (*word, None)).chain(pairs) {
            let known = self.parts.entry(part).or_insert(Some(place));
            let is_of_another = known.is_some_and(|at| at != place && self.all[at].name != name);
            if is_of_another {
                *known = None;
            }
        }
    }

    /// Adds the names of which the free tokens are a part. Another kind of name that is only similar gives way.
    pub(super) fn collect_parts(&self, message: &str, tokens: &[Token], kept: &mut Vec<(usize, usize, Mention)>) {
        // “Math hints” is rather the thing “Math Hints 7” than a word of the vocabulary such as `math-hints`.
        let stays = |mention: &Mention| mention.subject || mention.said.eq_ignore_ascii_case(&mention.name);
        let is_free = |token: &Token| {
            let holds = |(start, end, mention): &(usize, usize, Mention)| {
                stays(mention) && *start < token.end && token.start < *end
            };
            token.quote.is_none() && !kept.iter().any(holds)
        };
        let mut parts = Vec::new();
        for free in tokens.chunk_by(|one, next| is_free(one) && is_free(next)).filter(|free| is_free(&free[0])) {
            let mut at = 0;
            while at < free.len() {
                let part = self.part_at(message, &free[at..]);
                at += part.as_ref().map_or(1, |(words, ..)| *words);
                parts.extend(part.map(|(_, start, mention)| (start, start, mention)));
            }
        }
        kept.extend(parts.into_iter().take(MAX_MENTIONS.saturating_sub(kept.len())));
    }

    /// Returns the number of words with which the tokens begin that are a part of only one name (“the lesson video thing”), where
    /// they begin, and the name. A single word has to be followed by what it is.
    fn part_at(&self, message: &str, tokens: &[Token]) -> Option<(usize, usize, Mention)> {
        let id = |at: usize| self.word_ids.get(&tokens.get(at)?.folded).copied();
        let is_one = |part: (WordId, Option<WordId>)| self.parts.get(&part).copied().flatten();
        let word = |at: usize| tokens[at].folded.as_str();
        let (first, second) = (id(0)?, id(1));
        let pair = second.and_then(|second| is_one((first, Some(second)))).filter(|_| {
            let is_ordinary = |at: usize| is_one_of(ORDINARY, word(at));
            ![0, 1].into_iter().any(|at| is_one_of(SMALL, word(at))) && ![0, 1].into_iter().all(is_ordinary)
        });
        let (place, mut length) = match pair {
            Some(place) => (place, 2),
            None => {
                let is_distinct = word(0).chars().count() > MIN_TYPO_LENGTH && !is_one_of(ORDINARY, word(0));
                let place = is_one((first, None)).filter(|_| is_distinct)?;
                let is_named = tokens
                    .get(1)
                    .is_some_and(|next| is_one_of(NOUNS, &next.folded) || next.folded == self.all[place].kind);
                is_named.then_some((place, 1))?
            }
        };
        let name = &self.all[place];
        let whole: Vec<String> =
            tokenize(&countersign_core::emoji::from_names(&name.name)).into_iter().map(|token| token.folded).collect();
        let from = whole.windows(length).position(|part| (0..length).all(|at| part[at] == word(at)))?;
        while whole.get(from + length).is_some_and(|next| tokens.get(length).is_some_and(|token| token.folded == *next))
        {
            length += 1;
        }
        let thing = tokens.get(length).filter(|next| is_one_of("one thing", &next.folded));
        // What follows may belong to another name, which is not known: “Lesson Video Pilot”.
        let goes_on = |next: &Token| {
            let is_apart = message[tokens[length - 1].end..next.start].contains(|c: char| !c.is_whitespace());
            !is_apart && ![SMALL, ORDINARY, NOUNS, AFTER_NAMES].iter().any(|words| is_one_of(words, &next.folded))
        };
        if tokens.get(length).is_some_and(goes_on) {
            return None;
        }
        let last = thing.unwrap_or(&tokens[length - 1]);
        let said = message[tokens[0].start..last.end].to_owned();
        let (kind, owner) = (name.kind.clone(), name.owner.clone());
        let mention = Mention { kind, name: name.name.clone(), said, owner, subject: true, unsure: true };
        Some((length + usize::from(thing.is_some()), tokens[0].start, mention))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::found;

    #[test]
    fn a_part_that_only_one_name_has_is_enough() {
        let all = ["Lesson Video Hints", "Class Hint Rollout", "Concrete Fractions", "Class of 5B", "Test of the Week"];
        for (message, expected) in [
            ("stop the lesson video thing", "lesson video thing=Lesson Video Hints?"),
            ("what is lesson video about", "lesson video=Lesson Video Hints?"),
            ("and class hint?", "class hint=Class Hint Rollout?"),
            ("video hints and hint rollout", "video hints=Lesson Video Hints?, hint rollout=Class Hint Rollout?"),
            ("pause the fractions experiment", "fractions=Concrete Fractions?"),
            ("how do fractions work", ""),
            ("show Lesson Video Pilot", ""),
            ("start “Lesson Video”", ""),
            ("what is the week of the test", ""),
            ("test class 5B", ""),
        ] {
            assert_eq!(found(&all, message), expected, "{message}");
        }
        assert_eq!(found(&["Lesson Video Hints", "Lesson Video 2"], "stop lesson video"), "", "which of the two?");
        let six = [
            "Chat Tone",
            "Class Hint Rollout",
            "Lesson Video Hints",
            "Math Hints",
            "Running Test",
            "Concrete Fractions",
        ];
        assert_eq!(found(&six, "weights of class hint?"), "class hint=Class Hint Rollout?");
        assert_eq!(found(&six, "whats lesson video about"), "lesson video=Lesson Video Hints?");
    }
}
