//! The names of existing things, which are found in a message before anything else is read.
//!
//! [`Names`] is a snapshot of all names, in a tree of their words, so that a message is scanned once
//! and never compared with every name, even if many begin alike. It is made once for a list of names
//! and shared by all messages. An exact match comes first, then one that
//! differs only in case, quotes, spaces, accents and apostrophes ([`fold`]). A match with a typing
//! mistake is used only if nothing else matches there. The longest name wins. A quotation must
//! match a whole name.

mod letters;
mod parts;

use std::{
    collections::{HashMap, hash_map::DefaultHasher},
    hash::{Hash as _, Hasher as _},
};

use countersign_core::emoji;
use serde::{Deserialize, Serialize};

use self::{
    letters::{fold_word, is_accent},
    parts::{ORDINARY, SMALL},
};
use crate::words::is_one_of;

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
    /// The words of all names, each once.
    words: Vec<String>,
    word_ids: HashMap<String, WordId>,
    /// The branches of the tree: the node that follows a node by a word.
    branches: HashMap<(Node, WordId), Node>,
    /// For each node the names that end there, by their places in `all`.
    ends: Vec<Vec<usize>>,
    /// The words of names, by the hash of each form that lacks one of their letters.
    near: HashMap<u64, Vec<WordId>>,
    /// One or two words in a row, and the only thing that requests are about with them in its name; `None` for several.
    parts: HashMap<(WordId, Option<WordId>), Option<usize>>,
}

/// A word by its place in the list of words.
type WordId = u32;
/// A node of the tree of names: the words that lead to it.
type Node = u32;

/// The node at which all names begin.
const ROOT: Node = 0;

/// A name with which a part of a message begins.
struct Match {
    place: usize,
    /// The number of words.
    words: usize,
    /// The end of the last word, in bytes of the message.
    end: usize,
    typos: usize,
    /// The first word of the name, if it differs from that of the message.
    near_first: Option<WordId>,
}

impl Names {
    /// Indexes these names. Names without a letter, digit or sign are left out, since they look
    /// like punctuation.
    pub fn new(all: impl IntoIterator<Item = Name>) -> Self {
        let mut names = Self { ends: vec![Vec::new()], ..Self::default() };
        for name in all {
            let mut node = ROOT;
            let mut words = Vec::new();
            for token in tokenize(&emoji::from_names(&name.name)) {
                let word = names.word_id(token.folded);
                words.push(word);
                node = match names.branches.get(&(node, word)) {
                    Some(next) => *next,
                    None => {
                        let next = small(names.ends.len());
                        names.ends.push(Vec::new());
                        names.branches.insert((node, word), next);
                        next
                    }
                };
            }
            if node == ROOT {
                continue;
            }
            // One of several equal names is enough to find them.
            let is_same = |at: &usize| {
                let other = &names.all[*at];
                (&other.kind, &other.name, &other.owner, other.subject)
                    == (&name.kind, &name.name, &name.owner, name.subject)
            };
            let is_known = names.ends[node as usize].last().is_some_and(is_same);
            if name.subject && words.len() > 1 {
                names.note_parts(&words, &name.name);
            }
            if !is_known {
                names.ends[node as usize].push(names.all.len());
            }
            names.all.push(name);
        }
        names
    }

    /// Returns the id of a word, which is added if it is new.
    fn word_id(&mut self, word: String) -> WordId {
        if let Some(known) = self.word_ids.get(&word) {
            return *known;
        }
        let id = small(self.words.len());
        if word.chars().count() >= MIN_TYPO_LENGTH {
            for shorter in one_letter_deletions(&word) {
                self.near.entry(hash(&shorter)).or_default().push(id);
            }
        }
        self.words.push(word.clone());
        self.word_ids.insert(word, id);
        id
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
            self.collect_at(message, &tokens[at..], 0, &mut found);
        }
        // Longer matches come first. A match is dropped if it overlaps a kept one of the same kind.
        found.sort_by_key(|(start, end, _)| (std::cmp::Reverse(end - start), *start));
        let mut kept: Vec<(usize, usize, Mention)> = Vec::new();
        for (start, end, mention) in found.iter().cloned() {
            let is_same_kind = |other: &Mention| other.kind == mention.kind;
            let clashes = |other: &(usize, usize, Mention)| is_same_kind(&other.2) && start < other.1 && other.0 < end;
            if kept.len() < MAX_MENTIONS && !kept.iter().any(clashes) {
                kept.push((start, end, mention));
            }
        }
        // A match with a typing mistake is dropped if it overlaps any kept one, so only the rest of
        // the message can have one.
        let exact = found.len();
        let is_free = |token: &Token| !kept.iter().any(|(start, end, _)| *start < token.end && token.start < *end);
        for part in tokens.chunk_by(|one, next| is_free(one) && is_free(next)).filter(|part| is_free(&part[0])) {
            for at in 0..part.len() {
                self.collect_at(message, &part[at..], MAX_TYPOS, &mut found);
            }
        }
        let mut unsure = found.split_off(exact);
        unsure.sort_by_key(|(start, end, _)| (std::cmp::Reverse(end - start), *start));
        for (start, end, mention) in unsure {
            let clashes = |other: &(usize, usize, Mention)| start < other.1 && other.0 < end;
            if kept.len() < MAX_MENTIONS && !kept.iter().any(clashes) {
                kept.push((start, end, mention));
            }
        }
        self.collect_parts(message, &tokens, &mut kept);
        kept.sort_by_key(|(start, _, mention)| (*start, !mention.subject));
        kept.into_iter().map(|(.., mention)| mention).collect()
    }

    /// Adds to `found` the names with which the tokens begin: those without typing mistakes if
    /// `max_typos` is 0, otherwise those with at least one.
    fn collect_at(&self, message: &str, tokens: &[Token], max_typos: usize, found: &mut Vec<(usize, usize, Mention)>) {
        let mut matches = Vec::new();
        self.walk(ROOT, tokens, 0, (0, max_typos), None, &mut matches);
        matches.retain(|found| (found.typos > 0) == (max_typos > 0));
        let near_first = |found: &Match| found.near_first.map(|word| &self.words[word as usize]);
        matches.sort_by(|a, b| (near_first(a), a.place).cmp(&(near_first(b), b.place)));
        for Match { place, words, end, typos, .. } in matches {
            self.push_mention(message, &tokens[..words], end, place, typos > 0, found);
        }
    }

    /// Adds to `matches` the names below a node that the tokens from `depth` on continue.
    fn walk(
        &self,
        node: Node,
        tokens: &[Token],
        depth: usize,
        (typos, max_typos): (usize, usize),
        near_first: Option<WordId>,
        matches: &mut Vec<Match>,
    ) {
        let Some(token) = tokens.get(depth) else { return };
        let words = depth + 1;
        let mut end_at = |node: Node, end: usize, typos: usize, near_first: Option<WordId>| {
            let names = self.ends[node as usize].iter();
            matches.extend(names.map(|place| Match { place: *place, words, end, typos, near_first }));
        };
        // `Math Hints's`: the name with a possessive.
        let stem = token.stem.as_ref().filter(|_| depth > 0).and_then(|(stem, end)| {
            let word = *self.word_ids.get(stem)?;
            Some((word, *end))
        });
        if let Some((word, end)) = stem
            && let Some(next) = self.branches.get(&(node, word))
        {
            end_at(*next, end, typos, near_first);
        }
        let mut nexts = Vec::new();
        if let Some(next) = self.word_ids.get(&token.folded).and_then(|word| self.branches.get(&(node, *word))) {
            end_at(*next, token.end, typos, near_first);
            nexts.push((*next, typos, near_first));
        }
        if typos < max_typos {
            for (word, next) in self.similar_branches(node, &token.folded) {
                let near_first = if node == ROOT { Some(word) } else { near_first };
                if stem.is_none_or(|(stem, _)| stem != word) {
                    end_at(next, token.end, typos + 1, near_first);
                }
                nexts.push((next, typos + 1, near_first));
            }
        }
        for (next, typos, near_first) in nexts {
            self.walk(next, tokens, words, (typos, max_typos), near_first, matches);
        }
    }

    /// Returns the branches of a node by words that are one typing mistake away from `word`. A letter
    /// too many is only a mistake after the first word: “maths” is another word than “Math”.
    fn similar_branches(&self, node: Node, word: &str) -> Vec<(WordId, Node)> {
        if word.chars().count() < MIN_TYPO_LENGTH {
            return Vec::new();
        }
        let shorter = one_letter_deletions(word);
        let forms = shorter.iter().map(String::as_str).chain([word]);
        let mut near: Vec<WordId> = forms.filter_map(|form| self.near.get(&hash(form))).flatten().copied().collect();
        if node != ROOT {
            near.extend(shorter.iter().filter_map(|form| self.word_ids.get(form)));
        }
        near.sort_unstable();
        near.dedup();
        let is_similar = |known: &str| {
            known.chars().count() >= MIN_TYPO_LENGTH && known != word && strsim::damerau_levenshtein(known, word) == 1
        };
        let branches = near.into_iter().filter_map(|known| Some((known, *self.branches.get(&(node, known))?)));
        branches.filter(|(known, _)| is_similar(&self.words[*known as usize])).collect()
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
        let name = &self.all[place];
        // A quotation must match a whole name, unless the name contains quotes.
        let quotes_fit = first.quote == last.quote
            && first.quote.is_none_or(|quote| first.opens && last.closes && quote == last.quote.unwrap_or(quote));
        let (start, end) = match quotes_fit {
            true => (first.start, end),
            false => with_own_quotes(message, first.start, end, &name.name),
        };
        let said = &message[start..end];
        let own = plain_quotes(&name.name);
        let is_own_name = own.contains('"') && plain_quotes(said) == own;
        if !quotes_fit && !is_own_name {
            return;
        }
        // Of two names that differ only in case, the exact match is used; if neither is exact, the
        // platform asks.
        let twin = found.iter().position(|(from, until, other)| {
            (*from, *until) == (start, end) && other.kind == name.kind && !other.unsure
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
        found.push((start, end, mention));
    }
}

/// Returns the range of a name in a message with the quotes at its ends, if they are a part of the name.
fn with_own_quotes(message: &str, start: usize, end: usize, name: &str) -> (usize, usize) {
    let is_quote = |c: &char| "“”„\"«»‘’'`".contains(*c);
    let before = message[..start].chars().next_back().filter(|_| name.starts_with(|c: char| is_quote(&c)));
    let after = message[end..].chars().next().filter(|_| name.ends_with(|c: char| is_quote(&c)));
    let (before, after) = (before.filter(is_quote), after.filter(is_quote));
    (start - before.map_or(0, char::len_utf8), end + after.map_or(0, char::len_utf8))
}

/// Returns a text in lower case, with straight quotes and single spaces.
fn plain_quotes(text: &str) -> String {
    let straight = |c: char| match c {
        '“' | '”' | '„' | '«' | '»' => '"',
        '‘' | '’' | '`' => '\'',
        c => c,
    };
    let plain: String = text.chars().map(straight).flat_map(char::to_lowercase).collect();
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns true if a word is more likely an ordinary word than a name: “start”, “test”, a number.
/// In the middle of a sentence, a word with the same capital letters as the name is the name.
fn is_ordinary(message: &str, token: &Token, name: &Name, unsure: bool) -> bool {
    let said = &message[token.start..token.end];
    let number = said.chars().all(|c| c.is_ascii_digit());
    let too_short = token.folded.chars().count() < if unsure { 6 } else { 2 };
    let is_kind = token.folded.strip_suffix('s').unwrap_or(&token.folded) == name.kind;
    let common = is_kind || [ORDINARY, SMALL, "hint hints"].iter().any(|words| is_one_of(words, &token.folded));
    let capital =
        said == name.name && said.chars().any(char::is_uppercase) && !message[..token.start].trim().is_empty();
    number || too_short && !stands_alone(said.chars().next().unwrap_or('a')) || common && (unsure || !capital)
}

/// Returns all forms of a word that lack one of its letters.
fn one_letter_deletions(word: &str) -> Vec<String> {
    let starts: Vec<(usize, char)> = word.char_indices().collect();
    starts.iter().map(|(at, letter)| format!("{}{}", &word[..*at], &word[at + letter.len_utf8()..])).collect()
}

/// Returns the hash of a word. Two words with the same hash are compared later.
fn hash(word: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    word.hash(&mut hasher);
    hasher.finish()
}

/// Returns the id of the next word or node.
fn small(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// A word of a message or a name, in the form in which words are compared.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) folded: String,
    /// The word without a possessive `'s`, and the byte index at which it then ends.
    stem: Option<(String, usize)>,
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// The index of the quotation that contains it. `opens` and `closes` mark the first and last
    /// word of the quotation.
    pub(crate) quote: Option<usize>,
    opens: bool,
    closes: bool,
}

/// Divides a text into words: runs of letters and digits. A sign other than punctuation is a
/// separate word.
pub(crate) fn tokenize(text: &str) -> Vec<Token> {
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
pub(crate) fn quotes(text: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let inside = at + first.len_utf8();
        let begins = at == 0 || text[..at].ends_with(|c: char| !c.is_alphanumeric());
        match crate::words::quoted(first, &text[at..]).filter(|_| begins) {
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

    pub(super) fn found(all: &[&str], message: &str) -> String {
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
    fn names_that_begin_alike_are_told_apart() {
        let all = ["Math Hints 7", "Math Hints 70", "Math Hints 7 B", "Math Hints", "Hints", "Math Hnits 8"];
        assert_eq!(found(&all, "start Math Hints 7"), "Math Hints 7");
        assert_eq!(found(&all, "start Math Hints 7 b's copy"), "Math Hints 7 b=Math Hints 7 B");
        assert_eq!(found(&all, "start Math Hints 71"), "Math Hints");
        assert_eq!(found(&all, "start Math Hintss 70"), "Math Hintss 70=Math Hints 70?", "a letter too many");
        assert_eq!(found(&all, "start Maht Hints 8"), "Hints", "an exact name, not one with mistakes round it");
        assert_eq!(found(&all, "start Maht Hnits 70"), "Maht Hnits 70=Math Hints 70?", "two mistakes");
        assert_eq!(found(&["Same", "Same"], "start Same and Same"), "Same, Same");
    }

    #[test]
    fn names_are_found_as_slack_sends_them() {
        let all = ["Hints 🎉", "Party :tada:", "“Quoted” test", "It’s new", "Hints, part 2", "Say \"hi\""];
        for (message, expected) in [
            ("start Hints 🎉", "Hints 🎉"),
            ("start party 🎉", "party 🎉=Party :tada:"),
            ("start \"Quoted\" test now", "\"Quoted\" test=“Quoted” test"),
            ("start “quoted” test", "“quoted” test=“Quoted” test"),
            ("start quoted test", "quoted test=“Quoted” test"),
            ("show It's new", "It's new=It’s new"),
            ("stop Hints, part 2, please", "Hints, part 2"),
            ("stop Say “hi” and go", "Say “hi”=Say \"hi\""),
            ("stop “Say hi”", "Say hi=Say \"hi\""),
        ] {
            assert_eq!(found(&all, message), expected, "{message}");
        }
    }

    #[test]
    fn folding() {
        assert_eq!(fold("  “Ana’s  Übung” "), "anas ubung");
        assert_eq!(fold("E\u{301}tude"), "etude");
    }
}
