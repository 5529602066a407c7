//! Lists of phrases that are compared with the beginning of every sentence, indexed by their first letter.
//!
//! Short lists are plain text ([`crate::words::after`]). A long list that is tried at each word of each message is
//! indexed once, since almost no word begins a phrase.

use std::sync::OnceLock;

use crate::words::{Word, begin_with};

/// Phrases separated by `|`. The first match is used.
pub(crate) struct PhraseList {
    written: &'static str,
    index: OnceLock<Index>,
}

struct Index {
    /// The phrases as they are listed.
    all: Vec<&'static str>,
    /// The phrases by their first byte; those with the same first byte in the order of the list.
    by_first: Vec<(u8, Vec<&'static str>)>,
}

impl PhraseList {
    /// Creates a list from its text.
    pub(crate) const fn new(written: &'static str) -> Self {
        Self { written, index: OnceLock::new() }
    }

    fn index(&self) -> &Index {
        self.index.get_or_init(|| {
            let all: Vec<&str> = self.written.split('|').filter(|phrase| !phrase.is_empty()).collect();
            let mut by_first: Vec<(u8, Vec<&str>)> = Vec::new();
            for phrase in all.iter().copied() {
                let first = phrase.as_bytes()[0];
                match by_first.iter_mut().find(|(known, _)| *known == first) {
                    Some((_, like)) => like.push(phrase),
                    None => by_first.push((first, vec![phrase])),
                }
            }
            by_first.sort_by_key(|(first, _)| *first);
            Index { all, by_first }
        })
    }

    /// Returns the phrases that begin like this text, in the order of the list.
    fn like(&self, text: &str) -> &[&'static str] {
        let Some(first) = text.as_bytes().first() else { return &[] };
        let by_first = &self.index().by_first;
        match by_first.binary_search_by_key(first, |(first, _)| *first) {
            Ok(at) => &by_first[at].1,
            Err(_) => &[],
        }
    }

    /// Returns all phrases, in the order of the list.
    pub(crate) fn all(&self) -> &[&'static str] {
        &self.index().all
    }

    /// Returns the words after one of the phrases, if they begin with it.
    pub(crate) fn after<'a>(&self, words: &'a [Word]) -> Option<&'a [Word]> {
        let first = words.first().filter(|first| !first.quoted)?;
        self.like(&first.lower).iter().find_map(|phrase| begin_with(words, phrase))
    }

    /// Returns true if this text is one of the phrases.
    pub(crate) fn contains(&self, text: &str) -> bool {
        self.like(text).contains(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::{after, words};

    static LIST: PhraseList = PhraseList::new("so|for me|forget it|for|,|let us|élan vital");

    #[test]
    fn a_list_is_read_like_its_text() {
        for said in ["so be it", "for me it is", "forget it", "for", ", and", "“for” me", "let it", "élan vital !", ""]
        {
            let words = words(said);
            let left = |rest: Option<&[Word]>| rest.map(<[Word]>::len);
            assert_eq!(left(LIST.after(&words)), left(after(&words, LIST.written)), "{said}");
        }
        assert_eq!(LIST.after(&words("for me it is")).map(<[Word]>::len), Some(2), "the first match is used");
    }

    #[test]
    fn only_a_whole_phrase_is_in_the_list() {
        assert!(LIST.contains("for me") && LIST.contains(","));
        assert!(!LIST.contains("for m") && !LIST.contains("me") && !LIST.contains(""));
        assert_eq!(LIST.all()[1..3], ["for me", "forget it"]);
    }
}
