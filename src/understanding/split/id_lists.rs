//! Lists of ids, such as `u1, u2 and u3`: a long one is one word, so that it does not make a message too long.

use crate::words::Word;

/// The separator between the ids of a long list in its word.
const SEPARATOR: &str = ", ";

/// The minimum number of ids of a list that becomes one word.
const LONG: usize = 20;

/// The minimum number of ids without commas that are a list.
const WITHOUT_COMMAS: usize = 3;

/// The words before ids without commas.
const NOUNS: &[&str] = &["users", "students", "participants", "learners", "ids"];

/// Returns the words with a comma between ids that follow a noun for people: `users u1 u2 u3`.
pub(crate) fn with_commas(words: Vec<Word>) -> Vec<Word> {
    let mut found: Vec<Word> = Vec::with_capacity(words.len());
    let mut separated = 0..0;
    for (at, word) in words.iter().enumerate() {
        if separated.contains(&at) {
            found.push(Word::new(",", false));
        }
        if word.any(NOUNS) {
            let ids = words[at + 1..].iter().take_while(|next| is_id(next)).count();
            separated = if ids >= WITHOUT_COMMAS { at + 2..at + 1 + ids } else { 0..0 };
        }
        found.push(word.clone());
    }
    found
}

/// Returns the words with each long list of ids as one word.
pub(crate) fn joined(words: Vec<Word>) -> Vec<Word> {
    let mut found = Vec::new();
    let mut rest = words.as_slice();
    while let Some((first, others)) = rest.split_first() {
        let (ids, after) = list(rest);
        if ids.len() >= LONG {
            found.push(Word::new(&ids.join(SEPARATOR), false));
            rest = after;
        } else {
            found.push(first.clone());
            rest = others;
        }
    }
    found
}

/// Returns the ids of a word, one unless it is a long list.
pub fn ids(word: &str) -> impl Iterator<Item = &str> {
    word.split(SEPARATOR)
}

/// Returns the ids at the beginning, and the words after the last of them.
fn list(words: &[Word]) -> (Vec<&str>, &[Word]) {
    let (mut ids, mut after, mut rest) = (Vec::new(), words, words);
    while let Some((id, others)) = rest.split_first().filter(|(first, _)| is_id(first) || is_quoted_id(first)) {
        ids.push(id.text.as_str());
        after = others;
        let separators = others.iter().take_while(|next| next.any(&[",", "and", "&"])).count();
        rest = &others[separators..];
    }
    (ids, after)
}

/// Returns true if the word looks like an id: it has a digit, and no characters other than those of a name or an address.
fn is_id(word: &Word) -> bool {
    let may_be_in_id = |c: char| c.is_alphanumeric() || "-_.@".contains(c);
    !word.quoted
        && word.kind.is_none()
        && word.text.contains(|c: char| c.is_ascii_digit())
        && word.text.chars().all(may_be_in_id)
}

/// Returns true for what is one item of a list in any case, since it is in quotes.
fn is_quoted_id(word: &Word) -> bool {
    word.quoted && word.kind.is_none() && !word.text.contains(SEPARATOR)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::{text, words};

    #[test]
    fn a_long_list_is_one_word() {
        let all: Vec<String> = (1..=400).map(|nth| format!("u{nth}")).collect();
        for separator in [", ", ",", " ", "\n", ", and "] {
            let said = format!("exclude {} from Math Hints", all.join(separator));
            let found = joined(words(&said));
            assert_eq!(found.len(), 5, "{separator:?}");
            assert!(ids(&found[1].text).eq(all.iter().map(String::as_str)), "{separator:?}");
        }
        let quoted: Vec<String> = (1..=400).map(|nth| format!("“a b{nth}”")).collect();
        let found = joined(words(&format!("exclude {} from Math Hints", quoted.join(", "))));
        assert_eq!((found.len(), ids(&found[1].text).last()), (5, Some("a b400")));
        let short = words("exclude u1, u2 and u3 from Math Hints");
        assert_eq!(joined(short.clone()), short);
    }

    #[test]
    fn ids_need_no_commas_after_a_noun() {
        let read = |said: &str| text(&with_commas(words(said)));
        assert_eq!(read("exclude users u1 u2 u3 from Math Hints"), "exclude users u1, u2, u3 from Math Hints");
        for said in ["exclude users u1, u2, u3 from Math Hints", "draw 200 users 30% variant", "start Test 1 2 3"] {
            assert_eq!(read(said), said);
        }
    }
}
