//! The names of existing things, which are found in a message before anything else is read.
//!
//! [`Names`] is a snapshot of all names, indexed by the first word of each, so that a message is
//! scanned once and never compared with every name. An exact match comes first, then one that
//! differs only in case, quotes, spaces, accents and apostrophes ([`fold`]). A match with a typing
//! mistake is used only if nothing else matches there. The longest name wins. A quotation must
//! match a whole name.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

/// Something that exists on a platform.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Name {
    /// The kind of thing, such as `context`.
    pub kind: String,
    /// The name exactly as the platform writes it.
    pub name: String,
    /// The id of the thing, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The capability that the thing belongs to.
    #[serde(default)]
    pub owner: String,
    /// True if requests are about such things. Other names are only values in requests.
    #[serde(default)]
    pub subject: bool,
}

/// A name in a message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mention {
    /// The kind of thing.
    pub kind: String,
    /// The name exactly as the platform writes it.
    pub name: String,
    /// The name as written in the message.
    pub said: String,
    /// The capability that the thing belongs to.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub owner: String,
    /// True if requests are about such things.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub subject: bool,
    /// True if the name was written with a typing mistake, so the person has to confirm it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unsure: bool,
}

/// The maximum number of typing mistakes in a name.
const MAX_TYPOS: usize = 2;
/// The minimum length of a word in which a typing mistake is recognised, in letters. In a shorter
/// one, a changed letter is likely to make another word.
const MIN_TYPO_LENGTH: usize = 4;
/// The maximum number of names that are found in a message.
const MAX_MENTIONS: usize = 40;

/// A snapshot of all names.
#[derive(Clone, Debug, Default)]
pub struct Names {
    all: Vec<Name>,
    words: Vec<Vec<String>>,
    by_first: HashMap<String, Vec<usize>>,
    /// The words of names, by each form that lacks one of their letters.
    near: HashMap<String, Vec<String>>,
}

impl Names {
    /// Indexes these names. Names without a letter, digit or sign are left out, since they look
    /// like punctuation.
    pub fn new(all: impl IntoIterator<Item = Name>) -> Self {
        let mut names = Self::default();
        let mut indexed: HashSet<String> = HashSet::new();
        for name in all {
            let words: Vec<String> = tokenize(&name.name).into_iter().map(|token| token.folded).collect();
            let Some(first) = words.first() else { continue };
            names.by_first.entry(first.clone()).or_default().push(names.all.len());
            for word in words.iter().filter(|word| word.chars().count() >= MIN_TYPO_LENGTH) {
                if indexed.insert(word.clone()) {
                    for shorter in one_letter_deletions(word) {
                        names.near.entry(shorter).or_default().push(word.clone());
                    }
                }
            }
            names.all.push(name);
            names.words.push(words);
        }
        names
    }

    /// Returns true if there are no names.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns all names.
    pub fn all(&self) -> &[Name] {
        &self.all
    }

    /// Returns the names in a message, in order. No two of the same kind overlap.
    pub fn find(&self, message: &str) -> Vec<Mention> {
        if self.is_empty() {
            return Vec::new();
        }
        let tokens = tokenize(message);
        let mut found: Vec<(usize, usize, Mention)> = Vec::new();
        for at in 0..tokens.len() {
            self.collect_at(message, &tokens, at, &mut found);
        }
        // Matches without typing mistakes come first, then longer ones. A match is dropped if it
        // overlaps a kept one of the same kind or, with a typing mistake, any kept one.
        found.sort_by_key(|(start, end, mention)| (mention.unsure, std::cmp::Reverse(end - start), *start));
        let mut kept: Vec<(usize, usize, Mention)> = Vec::new();
        for (start, end, mention) in found {
            let clashes = |other: &(usize, usize, Mention)| {
                (mention.unsure || other.2.kind == mention.kind) && start < other.1 && other.0 < end
            };
            if kept.len() < MAX_MENTIONS && !kept.iter().any(clashes) {
                kept.push((start, end, mention));
            }
        }
        kept.sort_by_key(|(start, ..)| *start);
        kept.into_iter().map(|(.., mention)| mention).collect()
    }

    /// Adds to `found` the names that begin at a token.
    fn collect_at(&self, message: &str, tokens: &[Token], at: usize, found: &mut Vec<(usize, usize, Mention)>) {
        let first = &tokens[at];
        for place in self.by_first.get(&first.folded).into_iter().flatten().copied() {
            if let Some((end, typos)) = match_words(&self.words[place], &tokens[at..], 0) {
                self.push_mention(message, &tokens[at..at + self.words[place].len()], end, place, typos > 0, found);
            }
        }
        let near = self.similar_words(&first.folded);
        let exact = std::iter::once((&first.folded, 0)).filter(|(word, _)| self.by_first.contains_key(*word));
        for (word, typos) in exact.chain(near.iter().map(|word| (*word, 1))) {
            for place in self.by_first.get(word).into_iter().flatten().copied() {
                let Some((end, more)) = match_words(&self.words[place][1..], &tokens[at + 1..], MAX_TYPOS - typos)
                else {
                    if self.words[place].len() == 1 && typos > 0 {
                        self.push_mention(message, &tokens[at..=at], first.end, place, true, found);
                    }
                    continue;
                };
                if typos + more > 0 {
                    let end = if self.words[place].len() == 1 { first.end } else { end };
                    self.push_mention(message, &tokens[at..at + self.words[place].len()], end, place, true, found);
                }
            }
        }
    }

    /// Returns the words of names that are one typing mistake away from `word`.
    fn similar_words(&self, word: &str) -> Vec<&String> {
        if word.chars().count() < MIN_TYPO_LENGTH {
            return Vec::new();
        }
        let mut near: Vec<&String> = Vec::new();
        let shorter = one_letter_deletions(word);
        for key in shorter.iter().chain([&word.to_owned()]) {
            near.extend(self.near.get(key).into_iter().flatten());
        }
        near.retain(|known| known.as_str() != word && strsim::damerau_levenshtein(known, word) == 1);
        near.sort_unstable();
        near.dedup();
        near
    }

    fn push_mention(
        &self,
        message: &str,
        tokens: &[Token],
        end: usize,
        place: usize,
        unsure: bool,
        found: &mut Vec<(usize, usize, Mention)>,
    ) {
        let (first, last) = (&tokens[0], &tokens[tokens.len() - 1]);
        // A quotation must match a whole name.
        let quotes_fit = first.quote == last.quote
            && first.quote.is_none_or(|quote| first.opens && last.closes && quote == last.quote.unwrap_or(quote));
        if !quotes_fit {
            return;
        }
        let said = &message[first.start..end];
        let name = &self.all[place];
        // Of two names that differ only in case, the exact match is used; if neither is exact, the
        // platform asks.
        let twin = found.iter().position(|(start, until, other)| {
            (*start, *until) == (first.start, end) && other.kind == name.kind && !other.unsure
        });
        match twin {
            Some(_) if unsure || name.name != said => return,
            Some(at) => drop(found.remove(at)),
            None => {}
        }
        let in_quotes = first.quote.is_some();
        if !in_quotes && tokens.len() == 1 && is_ordinary(message, first, name, unsure) {
            return;
        }
        let mention = Mention {
            kind: name.kind.clone(),
            name: name.name.clone(),
            said: said.to_owned(),
            owner: name.owner.clone(),
            subject: name.subject,
            unsure,
        };
        found.push((first.start, end, mention));
    }
}

/// Returns true if a word is more likely an ordinary word than a name: “start”, “test”, a number.
/// In the middle of a sentence, a word with the same capital letters as the name is the name.
fn is_ordinary(message: &str, token: &Token, name: &Name, unsure: bool) -> bool {
    const ORDINARY: &str = "start stop pause resume cancel archive delete create change set make test tests list show \
        study context contexts condition conditions weight weights site target user users group \
        groups class classes school tag tags status running paused stopped draft scheduled archived cancelled completed \
        inactive new all the a it this that one what which how who help name names description end begin run now today \
        tomorrow day week month control individual random balance consistency and or not for with hint hints me first last";
    let said = &message[token.start..token.end];
    let number = said.chars().all(|c| c.is_ascii_digit());
    let too_short = token.folded.chars().count() < if unsure { 6 } else { 2 };
    let is_kind = token.folded.strip_suffix('s').unwrap_or(&token.folded) == name.kind;
    let common = is_kind || ORDINARY.split_whitespace().any(|word| word == token.folded);
    let capital =
        said == name.name && said.chars().any(char::is_uppercase) && !message[..token.start].trim().is_empty();
    number || too_short && !stands_alone(said.chars().next().unwrap_or('a')) || common && (unsure || !capital)
}

/// Returns the end of the last word and the number of typing mistakes, if the tokens begin with these words.
fn match_words(words: &[String], tokens: &[Token], max_typos: usize) -> Option<(usize, usize)> {
    let mut typos = 0;
    let mut end = 0;
    if tokens.len() < words.len() {
        return None;
    }
    for (at, word) in words.iter().enumerate() {
        let token = &tokens[at];
        end = token.end;
        if token.folded == *word {
            continue;
        }
        // `Math Hints's`: the name with a possessive.
        if let Some((_, stem_end)) = token.stem.as_ref().filter(|(stem, _)| at + 1 == words.len() && stem == word) {
            end = *stem_end;
            continue;
        }
        let long = word.chars().count() >= MIN_TYPO_LENGTH && token.folded.chars().count() >= MIN_TYPO_LENGTH;
        if typos < max_typos && long && strsim::damerau_levenshtein(word, &token.folded) == 1 {
            typos += 1;
            continue;
        }
        return None;
    }
    (!words.is_empty()).then_some((end, typos))
}

/// Returns all forms of a word that lack one of its letters.
fn one_letter_deletions(word: &str) -> Vec<String> {
    let starts: Vec<(usize, char)> = word.char_indices().collect();
    starts.iter().map(|(at, letter)| format!("{}{}", &word[..*at], &word[at + letter.len_utf8()..])).collect()
}

/// A word of a message or a name, in the form in which words are compared.
#[derive(Clone, Debug)]
struct Token {
    folded: String,
    /// The word without a possessive `'s`, and the byte index at which it then ends.
    stem: Option<(String, usize)>,
    start: usize,
    end: usize,
    /// The index of the quotation that contains it. `opens` and `closes` mark the first and last
    /// word of the quotation.
    quote: Option<usize>,
    opens: bool,
    closes: bool,
}

/// Divides a text into words: runs of letters and digits. A sign other than punctuation is a
/// separate word.
fn tokenize(text: &str) -> Vec<Token> {
    let mut found: Vec<Token> = Vec::new();
    let quotes = quotes(text);
    let mut run: Option<usize> = None;
    let mut push = |start: usize, end: usize| {
        let written = &text[start..end];
        let stem = written.strip_suffix("'s").or_else(|| written.strip_suffix("’s"));
        let quote = quotes.iter().position(|(from, to)| (*from..*to).contains(&start));
        found.push(Token {
            folded: fold_word(written),
            stem: stem.map(|stem| (fold_word(stem), start + stem.len())),
            start,
            end,
            quote,
            opens: quote.is_some_and(|quote| text[quotes[quote].0..start].trim().is_empty()),
            closes: quote.is_some_and(|quote| text[end..quotes[quote].1].trim().is_empty()),
        });
    };
    let mut letters = text.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        let in_word = letter.is_alphanumeric() && !stands_alone(letter) || run.is_some() && is_accent(letter);
        let apostrophe = matches!(letter, '\'' | '’')
            && run.is_some()
            && letters.peek().is_some_and(|(_, next)| next.is_alphanumeric())
            && !quotes.iter().any(|(_, to)| *to == at);
        match (in_word || apostrophe, run) {
            (true, None) => run = Some(at),
            (true, Some(_)) => {}
            (false, start) => {
                if let Some(start) = start {
                    push(start, at);
                    run = None;
                }
                if stands_alone(letter) {
                    push(at, at + letter.len_utf8());
                }
            }
        }
    }
    if let Some(start) = run {
        push(start, text.len());
    }
    found
}

/// Returns true for letters of scripts without spaces between words, and for signs such as emoji.
fn stands_alone(letter: char) -> bool {
    let code = letter as u32;
    let without_blanks = matches!(code, 0x0E00..=0x0EFF | 0x3040..=0x30FF | 0x3400..=0x9FFF | 0xF900..=0xFAFF);
    let sign =
        matches!(code, 0x2190..=0x2BFF | 0x1F000..=0x1FAFF) || matches!(letter, '+' | '&' | '#' | '@' | '%' | '=');
    without_blanks || sign
}

/// Returns the byte ranges of the texts in quotes, without the quotes.
fn quotes(text: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let inside = at + first.len_utf8();
        let begins = at == 0 || text[..at].ends_with(|c: char| !c.is_alphanumeric());
        match super::words::quoted(first, &text[at..]).filter(|_| begins) {
            Some((quoted, _)) => {
                found.push((inside, inside + quoted.len()));
                at = inside + quoted.len();
                at += text[at..].chars().next().map_or(0, char::len_utf8);
            }
            None => at = inside,
        }
    }
    found
}

/// Returns a text in the form in which names are compared: lower case, single spaces, and no
/// accents, apostrophes or punctuation.
pub fn fold(text: &str) -> String {
    tokenize(text).into_iter().map(|token| token.folded).collect::<Vec<_>>().join(" ")
}

fn fold_word(word: &str) -> String {
    let mut folded = String::with_capacity(word.len());
    for letter in word.chars().filter(|letter| !matches!(letter, '\'' | '’')) {
        for lower in letter.to_lowercase() {
            match plain(lower) {
                Some(plain) => folded.push_str(plain),
                None if is_accent(lower) => {}
                None => folded.push(lower),
            }
        }
    }
    folded
}

/// Returns true for combining marks, which follow their letter.
fn is_accent(letter: char) -> bool {
    matches!(letter as u32, 0x0300..=0x036F | 0xFE0F | 0x200D)
}

/// Returns the letter without its accent; `None` if it has none.
fn plain(letter: char) -> Option<&'static str> {
    const TABLE: [(&str, &str); 25] = [
        ("àáâãäåāăą", "a"),
        ("çćĉċč", "c"),
        ("ďđð", "d"),
        ("èéêëēĕėęě", "e"),
        ("ĝğġģ", "g"),
        ("ĥħ", "h"),
        ("ìíîïĩīĭįı", "i"),
        ("ĵ", "j"),
        ("ķ", "k"),
        ("ĺļľł", "l"),
        ("ñńņň", "n"),
        ("òóôõöøōŏő", "o"),
        ("ŕŗř", "r"),
        ("śŝşšș", "s"),
        ("ţťŧț", "t"),
        ("ùúûüũūŭůűų", "u"),
        ("ŵ", "w"),
        ("ýÿŷ", "y"),
        ("źżž", "z"),
        ("ß", "ss"),
        ("æ", "ae"),
        ("œ", "oe"),
        ("þ", "th"),
        ("ё", "е"),
        ("й", "и"),
    ];
    if letter.is_ascii() {
        return None;
    }
    TABLE.iter().find(|(accented, _)| accented.contains(letter)).map(|(_, plain)| *plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(all: &[&str]) -> Names {
        let name = |(at, name): (usize, &&str)| Name {
            kind: "experiment".to_owned(),
            name: (*name).to_owned(),
            id: Some(at.to_string()),
            owner: String::new(),
            subject: true,
        };
        Names::new(all.iter().enumerate().map(name))
    }

    fn found(all: &[&str], message: &str) -> String {
        let describe = |mention: Mention| {
            let unsure = if mention.unsure { "?" } else { "" };
            if mention.said == mention.name {
                format!("{}{unsure}", mention.name)
            } else {
                format!("{}={}{unsure}", mention.said, mention.name)
            }
        };
        names(all).find(message).into_iter().map(describe).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn names_are_found_anywhere_in_a_message() {
        let all = [
            "Math Hints",
            "Geometry B",
            "Foo Experiment",
            "Stop and Go",
            "Ana's Test",
            "Prüfung 🚀",
            "数学提示",
            "C++ (v2)",
        ];
        for (message, expected) in [
            ("start Geometry B right now", "Geometry B"),
            ("archive the foo experiment, please", "foo experiment=Foo Experiment"),
            ("what are math  hints's conditions?", "math  hints=Math Hints"),
            ("show Stop and Go and Math Hints", "Stop and Go, Math Hints"),
            ("start Anas test", "Anas test=Ana's Test"),
            ("start prufung 🚀 now", "prufung 🚀=Prüfung 🚀"),
            ("启动数学提示吧", "数学提示"),
            ("stop “Math Hints”!", "Math Hints"),
            ("stop “Math Hints 2”", ""),
            ("list everything", ""),
        ] {
            assert_eq!(found(&all, message), expected, "{message}");
        }
    }

    #[test]
    fn the_longest_name_wins_and_the_exact_one_of_twins() {
        assert_eq!(found(&["Math", "Math Hints", "Math Hints 2"], "start Math Hints 2 and Math"), "Math Hints 2, Math");
        assert_eq!(found(&["math hints", "Math Hints"], "start Math Hints"), "Math Hints");
        assert_eq!(found(&["Math-Hints", "Math Hints"], "start Math Hints"), "Math Hints");
    }

    #[test]
    fn a_typing_mistake_is_only_accepted_where_nothing_else_matches() {
        let all = ["Math Hints", "Math Hints v2", "Maths"];
        assert_eq!(found(&all, "check on math hnts"), "math hnts=Math Hints?");
        assert_eq!(found(&all, "start Mtah Hints"), "Mtah Hints=Math Hints?");
        assert_eq!(found(&all, "start Math Hints"), "Math Hints");
        assert_eq!(found(&["Fractions"], "start Frations"), "Frations=Fractions?");
        assert_eq!(found(&["Hint"], "start hunt"), "");
        assert_eq!(found(&["Cat"], "start car"), "", "too short to tell");
    }

    #[test]
    fn folding() {
        assert_eq!(fold("  “Ana’s  Übung” "), "anas ubung");
        assert_eq!(fold("E\u{301}tude"), "etude");
    }
}
