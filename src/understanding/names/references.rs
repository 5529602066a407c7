//! References to the last list in the thread: “the second one”, “the first two”, “both”, “those”, “the other one”; and
//! links that contain an id.
//!
//! They are replaced by names before a message is read, so each request can use them. A reference that cannot be resolved
//! leads to a question.

use crate::{
    dates::number_word,
    lexicon::{Mention, quotes},
    phrases::Phrases,
    situation::{DraftQuestion, Listed, Situation},
};

/// The result of resolving the references of a message.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Resolution {
    /// The message contains no reference.
    Nothing,
    /// The message with names instead of references.
    Message(String),
    /// The question about a reference that is not clear, with whole requests as options.
    Question(String, Vec<String>),
}

const ORDINALS: &[&str] =
    &["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"];
const SHORT_ORDINALS: &[&str] = &["1st", "2nd", "3rd", "4th", "5th", "6th", "7th", "8th", "9th", "10th"];
/// Words for an entry of a list, in addition to the nouns of the capabilities.
const ENTRIES: &[&str] = &["one", "ones", "entry", "entries", "item", "items", "row", "result", "line"];
/// Words that may follow a reference without a noun.
const FOLLOWING: &[&str] = &[
    "and", "with", "vs", "versus", "or", "to", "please", "now", "too", "instead", "again", "until", "for", "be", "in",
];
/// Words before a day of a month: “on the first”.
const BEFORE_DAYS: &[&str] = &["on", "from", "until", "till", "by", "before", "after", "since"];

/// A word of the message, with its place in the text.
struct Token<'a> {
    start: usize,
    end: usize,
    /// The word in lower case without punctuation; empty in a quotation or a name.
    lower: String,
    typed: &'a str,
}

/// A reference: its tokens, and the places in the list that it means.
struct Reference {
    length: usize,
    meaning: Meaning,
}

/// The meaning of a reference.
enum Meaning {
    /// The entry at this place, from 0.
    Nth(usize),
    /// The last entry.
    Last,
    /// The first entries.
    FirstFew(usize),
    /// The last entries.
    LastFew(usize),
    /// All entries; their number, if the words name it.
    All(Option<usize>),
    /// The one of two entries that the thread is not about.
    Other,
}

/// Replaces the references of a message by names.
pub(crate) fn resolve<'p>(situation: &Situation, phrases: impl Iterator<Item = &'p dyn Phrases>) -> Resolution {
    let said = &situation.said;
    let linked = without_links(said);
    let text = linked.as_deref().unwrap_or(said);
    let nouns: Vec<&str> = phrases.flat_map(|phrases| phrases.vocabulary().things.iter().copied()).collect();
    let asked = situation.draft.as_ref().and_then(|draft| draft.asked.as_ref());
    let tokens = tokens(text, situation);
    let mut out = String::with_capacity(text.len());
    let (mut at, mut copied, mut found) = (0, 0, false);
    while at < tokens.len() {
        // As an answer to a question, only a message that is a reference as a whole names things: “both”.
        let is_meant = |reference: &Reference| {
            asked.is_none_or(|asked| reference.length == tokens.len() && asks_for_listed(asked, situation))
        };
        let Some(reference) = reference(&tokens, at, &nouns, situation).filter(is_meant) else {
            at += 1;
            continue;
        };
        let names = match names(&reference.meaning, situation) {
            Ok(names) => names,
            Err(question) => return question,
        };
        let last = &tokens[at + reference.length - 1];
        let is_all = reference.length == tokens.len();
        out.push_str(&text[copied..tokens[at].start]);
        out.push_str(if is_all && asked.is_none() { "show " } else { "" });
        out.push_str(&joined(&names));
        // The punctuation of the last word stays.
        let punctuation = last.typed.len() - last.typed.trim_end_matches([',', '.', '?', '!', ';', ':']).len();
        copied = last.end - punctuation;
        at += reference.length;
        found = true;
    }
    out.push_str(&text[copied..]);
    match (found, linked) {
        (true, _) => Resolution::Message(out),
        (false, Some(linked)) => Resolution::Message(linked),
        (false, None) => Resolution::Nothing,
    }
}

/// Returns true if a question asks for something of the last list.
fn asks_for_listed(asked: &DraftQuestion, situation: &Situation) -> bool {
    let names = situation.listed.iter().flat_map(|listed| &listed.names);
    names.into_iter().any(|name| asked.options.contains(name))
}

/// Returns the names in quotes, as a list.
fn joined(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("“{name}”")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => quoted.join(""),
    }
}

/// Returns the names that a reference means.
fn names(meaning: &Meaning, situation: &Situation) -> Result<Vec<String>, Resolution> {
    let ask = |question: String| Resolution::Question(question, Vec::new());
    let Some(Listed { names, is_complete, .. }) = &situation.listed else {
        return Err(ask(
            "I haven't shown a list in this thread, so I can't tell which one that is. What's its name?".to_owned()
        ));
    };
    let count = names.len();
    let entries = |count: usize| if count == 1 { "1 entry".to_owned() } else { format!("{count} entries") };
    let too_few = || ask(format!("The last list has only {}. What's the name of the one you mean?", entries(count)));
    let incomplete = || {
        ask(format!(
            "The last list continues after the {} that I showed. Which ones do you mean? Name them, or narrow the list first.",
            entries(count)
        ))
    };
    match *meaning {
        Meaning::Nth(nth) => names.get(nth).map(|name| vec![name.clone()]).ok_or_else(too_few),
        Meaning::Last | Meaning::LastFew(_) if !is_complete => Err(incomplete()),
        Meaning::Last => names.last().map(|name| vec![name.clone()]).ok_or_else(too_few),
        Meaning::FirstFew(few) => names.get(..few).map(<[String]>::to_vec).ok_or_else(too_few),
        Meaning::LastFew(few) => {
            let from = count.checked_sub(few).ok_or_else(too_few)?;
            Ok(names[from..].to_vec())
        }
        Meaning::All(Some(expected)) if expected != count => {
            let words = if expected == 2 { "both of them".to_owned() } else { format!("all {expected}") };
            Err(ask(format!(
                "The last list has {}, so I'm not sure which “{words}” are. Give me the names of the ones you mean.",
                entries(count)
            )))
        }
        Meaning::All(_) if !is_complete => Err(incomplete()),
        Meaning::All(_) if count == 0 => Err(ask("The last list is empty.".to_owned())),
        Meaning::All(_) => Ok(names.clone()),
        Meaning::Other => {
            let subject = situation.last_subject.as_deref();
            let others: Vec<&String> = names.iter().filter(|name| Some(name.as_str()) != subject).collect();
            match others.as_slice() {
                [other] if count == 2 => Ok(vec![(*other).clone()]),
                _ => Err(ask("What's the name of the one you mean?".to_owned())),
            }
        }
    }
}

/// Returns the reference with which the tokens begin at this place.
fn reference(tokens: &[Token<'_>], at: usize, nouns: &[&str], situation: &Situation) -> Option<Reference> {
    let word = |index: usize| tokens.get(index).map_or("", |token| token.lower.as_str());
    let before = if at == 0 { "" } else { word(at - 1) };
    let has_list = situation.listed.is_some();
    let is_noun = |word: &str| ENTRIES.contains(&word) || nouns.contains(&word);
    // The number of tokens of “of those” and the like.
    let of_list = |index: usize| match (word(index), word(index + 1), word(index + 2)) {
        ("of", "those" | "these" | "them", next) => 2 + usize::from(is_noun(next)),
        ("of" | "in" | "on" | "from", "the" | "that" | "this", "list" | "two" | "three") => 3,
        _ => 0,
    };
    let may_end = |index: usize| {
        let ends =
            index > 0 && tokens.get(index - 1).is_some_and(|token| token.typed.ends_with([',', '.', '?', '!', ';']));
        ends || index >= tokens.len() || FOLLOWING.contains(&word(index))
    };
    let article = usize::from(word(at) == "the");
    let start = at + article;
    if let Some(place) = place(word(start)) {
        if BEFORE_DAYS.contains(&before) && !is_noun(word(start + 1)) {
            return None; // a day of the month
        }
        if article == 0 && matches!(before, "a" | "an" | "another" | "new" | "every" | "each") {
            return None; // one more of them
        }
        let nth = |length: usize| Some(Reference { length, meaning: place.one() });
        let mut end = start + 1;
        if let Some(few) = number(word(end)).filter(|few| (2..=10).contains(few)) {
            end += 1;
            let noun = usize::from(is_noun(word(end)));
            let of = of_list(end + noun);
            let is_meant = noun > 0 || of > 0 || article > 0 && may_end(end);
            let meaning = place.few(few).filter(|_| is_meant && has_list)?;
            return Some(Reference { length: end + noun + of - at, meaning });
        }
        let noun = usize::from(is_noun(word(end)));
        end += noun;
        let of = of_list(end);
        let is_whole = at == 0 && end == tokens.len();
        let is_meant = noun > 0 && (article > 0 || word(start + 1) == "one" || of > 0)
            || of > 0
            || has_list && (article > 0 && may_end(end) || is_whole);
        let is_last = matches!(place, Place::Last);
        if is_last && situation.listed.as_ref().is_none_or(|listed| listed.is_passed) && of == 0 {
            return None; // “the last one” is the last subject
        }
        // Without a list, the words may be about what is in hand.
        let is_asked = word(start + 1) == "one" && situation.in_hand().is_none();
        return if is_meant && (has_list || is_asked) { nth(end + of - at) } else { None };
    }
    if !has_list {
        return None;
    }
    // “number 2”, “#2”
    let marked = word(at).strip_prefix('#').and_then(|digits| digits.parse::<usize>().ok());
    let named = matches!(word(at), "number" | "no" | "nr").then(|| word(at + 1).parse::<usize>().ok()).flatten();
    let is_numbered = |length: usize| may_end(at + length);
    if let Some((number, length)) = marked.map(|n| (n, 1)).or(named.map(|n| (n, 2)))
        && (1..=100).contains(&number)
        && is_numbered(length)
    {
        return Some(Reference { length, meaning: Meaning::Nth(number - 1) });
    }
    let end_of = |index: usize| {
        let noun = usize::from(is_noun(word(index)));
        let of = of_list(index + noun);
        (noun > 0 || of > 0 || may_end(index)).then_some(index + noun + of)
    };
    let all = |meaning: Option<usize>, end: usize| Some(Reference { length: end - at, meaning: Meaning::All(meaning) });
    let is_other = |name: &Mention| name.subject && Some(&name.name) != situation.last_subject.as_ref();
    let no_names = !situation.names.iter().any(is_other);
    match (word(at), word(at + 1)) {
        ("both", "those" | "these" | "them") => all(Some(2), end_of(at + 2)?),
        ("both", _) if no_names => all(Some(2), end_of(at + 1)?),
        ("the" | "that", "other") => {
            let end = at + 2 + usize::from(is_noun(word(at + 2)));
            (end > at + 2 || may_end(end)).then_some(Reference { length: end - at, meaning: Meaning::Other })
        }
        ("all", "of") if matches!(word(at + 2), "those" | "these" | "them") => all(None, end_of(at + 3)?),
        ("all", "those" | "these") => all(None, end_of(at + 2)?),
        ("all", few) if number(few).is_some() => all(number(few), end_of(at + 2)?),
        ("them" | "those" | "these", "all") => all(None, end_of(at + 2)?),
        ("those" | "these", few) if number(few).is_some_and(|few| few > 1) => all(number(few), end_of(at + 2)?),
        ("those" | "these", _) if before != "of" => all(None, end_of(at + 1)?),
        ("them", _) if before != "of" && situation.listed.as_ref().is_some_and(|listed| !listed.is_passed) => {
            all(None, end_of(at + 1)?)
        }
        _ => None,
    }
}

/// A place in a list.
#[derive(Clone, Copy)]
enum Place {
    /// This place, from 0.
    Nth(usize),
    /// The end.
    Last,
}

impl Place {
    fn one(self) -> Meaning {
        match self {
            Self::Nth(nth) => Meaning::Nth(nth),
            Self::Last => Meaning::Last,
        }
    }

    /// Returns the first or the last entries.
    fn few(self, few: usize) -> Option<Meaning> {
        match self {
            Self::Nth(0) => Some(Meaning::FirstFew(few)),
            Self::Nth(_) => None,
            Self::Last => Some(Meaning::LastFew(few)),
        }
    }
}

/// Returns the place that an ordinal names.
fn place(word: &str) -> Option<Place> {
    let of = |all: &[&str]| all.iter().position(|one| *one == word).map(Place::Nth);
    of(ORDINALS).or_else(|| of(SHORT_ORDINALS)).or_else(|| (word == "last").then_some(Place::Last))
}

/// Returns the number that a word names.
fn number(word: &str) -> Option<usize> {
    let written = || number_word(word).and_then(|number| usize::try_from(number).ok());
    word.parse().ok().or_else(|| written().filter(|number| (2..=10).contains(number)))
}

/// Returns the tokens of a message. Those in quotations and names have no word.
fn tokens<'a>(text: &'a str, situation: &Situation) -> Vec<Token<'a>> {
    let mut hidden: Vec<(usize, usize)> = Vec::new();
    for name in situation.names.iter().filter(|name| !name.said.is_empty()) {
        hidden.extend(text.match_indices(&name.said).map(|(start, found)| (start, start + found.len())));
    }
    hidden.extend(quotes(text));
    let mut tokens = Vec::new();
    for (start, typed) in text.split_whitespace().map(|word| (word.as_ptr() as usize - text.as_ptr() as usize, word)) {
        let end = start + typed.len();
        let is_hidden = hidden.iter().any(|(from, to)| *from < end && start < *to);
        let lower = typed.trim_matches(|c: char| !c.is_alphanumeric() && c != '#').to_lowercase();
        tokens.push(Token { start, end, lower: if is_hidden { String::new() } else { lower }, typed });
    }
    tokens
}

/// Returns the text with the id in quotes in place of each link that contains one; `None` if there is no such link.
fn without_links(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut rest = text;
    let mut found = false;
    while let Some(start) = ["https://", "http://"].iter().filter_map(|scheme| rest.find(scheme)).min() {
        let link = &rest[start..];
        let is_bracketed = rest[..start].ends_with('<');
        let ends = |c: char| if is_bracketed { c == '>' } else { c.is_whitespace() || c == '>' || c == ')' };
        let end = link.find(ends).unwrap_or(link.len());
        let shown = link[..end].split('|').next().unwrap_or_default();
        let after = link[end..].strip_prefix('>').unwrap_or(&link[end..]);
        match id_in(shown) {
            Some(id) => {
                let before = rest[..start].strip_suffix('<').unwrap_or(&rest[..start]);
                out.push_str(before);
                out.push_str(&format!("“{id}”"));
                found = true;
            }
            None => out.push_str(&rest[..start + end + (link[end..].len() - after.len())]),
        }
        rest = after;
    }
    out.push_str(rest);
    found.then_some(out)
}

/// Returns the first id in a link: 32 hexadecimal digits in groups of 8, 4, 4, 4 and 12.
fn id_in(link: &str) -> Option<&str> {
    const LENGTH: usize = 36;
    let is_id = |text: &str| {
        text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
    };
    (0..link.len().saturating_sub(LENGTH - 1)).filter_map(|at| link.get(at..at + LENGTH)).find(|text| is_id(text))
}

#[cfg(test)]
mod tests;
