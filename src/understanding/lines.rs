//! Phrases as lines of text: which words stand in which order, and what they ask for.
//!
//! ```text
//! change archive_document copies=1
//!     (archive|put away) <document:thing> [with one copy]
//! ```
//!
//! A line without indentation names a tool (`read`) or an action (`change`), and what is given to it; each indented line below is one way to
//! say it. `(a|b)` is one of several, `[a]` may be left out, `<name:kind>` is a value, by the name of the parameter that it
//! fills: `thing` (what it is about, or “it”), `word`, `text` (up to what follows), `number`, `when`, `users`, or a kind of
//! the capability's own ([`super::phrases::Phrases::slot`]). `$name = …` names something that several lines hold. A line fits where it uses every word of a request; articles
//! and the like may stand anywhere. Of several that fit, the one counts that says most of it in words of its own.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::{
    dates,
    phrases::{Heard, Phrases},
    situation::Situation,
    slots::LIMITING,
    wish::Wish,
    words::{Word, lower, sentence, skip, text, without_last},
};

/// A part of a line.
#[derive(Clone, Debug, PartialEq)]
enum Part {
    /// This word.
    Word(String),
    /// One of several; an empty one may be left out.
    OneOf(Vec<Vec<Part>>),
    /// A value.
    Slot { name: String, kind: String },
}

/// A line.
#[derive(Clone, Debug)]
struct Line {
    /// The place of what it asks for.
    asks_for: usize,
    parts: Vec<Part>,
}

/// What kind of thing a line asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks {
    /// A tool.
    Read,
    /// An action.
    Change,
    /// Nothing: it is talk.
    Talk,
}

/// What lines ask for.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// What kind of thing that is.
    pub asks: Asks,
    /// The tool or action, or what is talked about.
    pub name: String,
    /// What is given to it.
    pub given: Map<String, Value>,
}

impl Call {
    /// The same as a wish.
    pub(crate) fn wish(self) -> Wish {
        match self.asks {
            Asks::Change => Wish::Change { action: self.name, params: self.given },
            Asks::Read | Asks::Talk => Wish::Read { tool: self.name, arguments: self.given },
        }
    }
}

/// Lines that are ready to be looked through.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    calls: Vec<Call>,
    lines: Vec<Line>,
    /// The lines by the words that they can begin with.
    by_first: HashMap<String, Vec<usize>>,
    /// Those that can begin with a value.
    open: Vec<usize>,
}

/// What a request fits.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fit {
    /// The tool or action, and with what.
    pub(crate) call: Call,
    /// How many words of the request are values.
    pub(crate) values: usize,
}

/// Words that may stand anywhere.
const ANYWHERE: &[&str] = &[
    "the",
    "a",
    "an",
    "our",
    "my",
    "please",
    "just",
    "some",
    "any",
    "me",
    "us",
    "now",
    "currently",
    "still",
    "exactly",
    "here",
    ",",
    "that",
    "is",
    "are",
];

impl Lines {
    /// The lines of a text.
    ///
    /// # Errors
    ///
    /// The line that cannot be read, and why.
    pub fn read(written: &str) -> Result<Self, String> {
        let mut lines = Self::default();
        let mut named: Vec<(&str, String)> = Vec::new();
        for line in written.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
            let stands_for = |line: &str| {
                named.iter().fold(line.to_owned(), |line, (name, stands_for)| line.replace(name, stands_for))
            };
            if let Some((name, written)) = line.split_once(" = ").filter(|_| line.starts_with('$')) {
                named.push((name, stands_for(written)));
                continue;
            }
            let line = &*stands_for(line);
            if !line.starts_with(' ') {
                lines.calls.push(
                    call(line)
                        .ok_or_else(|| format!("“{line}”: `read name key=value …` or `change name …` belongs here"))?,
                );
                continue;
            }
            let asks_for = lines.calls.len().checked_sub(1).ok_or_else(|| format!("“{line}” asks for nothing"))?;
            let mut rest = line.trim();
            let parts = parts(&mut rest).filter(|parts| rest.is_empty() && !parts.is_empty());
            let parts = parts.ok_or_else(|| format!("“{}”: brackets do not fit together", line.trim()))?;
            let mut firsts = Vec::new();
            let ways = begins(&parts, &mut firsts);
            if ways.by_value || ways.may_be_empty {
                lines.open.push(lines.lines.len());
            }
            firsts.sort_unstable();
            firsts.dedup();
            for first in firsts {
                lines.by_first.entry(first).or_default().push(lines.lines.len());
            }
            lines.lines.push(Line { asks_for, parts });
        }
        Ok(lines)
    }

    /// What they ask for.
    pub fn calls(&self) -> &[Call] {
        &self.calls
    }

    /// What a request fits best.
    pub(crate) fn fit(&self, heard: Heard<'_>, phrases: &dyn Phrases) -> Option<Fit> {
        let words = heard.words;
        let mut best: Option<Fit> = None;
        let first = words.iter().find(|word| !word.any(ANYWHERE)).into_iter().chain(words.first());
        let known = first.filter(|word| !word.quoted).filter_map(|word| self.by_first.get(&word.lower)).flatten();
        let mut tried: Vec<usize> = known.chain(&self.open).copied().collect();
        tried.sort_unstable();
        tried.dedup();
        for line in tried.into_iter().map(|at| &self.lines[at]) {
            let mut reading = Reading { heard, phrases, given: Vec::new(), values: 0, best: None };
            reading.go(words, &mut vec![&line.parts[..]]);
            let Some((given, values)) = reading.best else { continue };
            if best.as_ref().is_none_or(|best| values < best.values) {
                let call = &self.calls[line.asks_for];
                let mut all = call.given.clone();
                for (name, value) in given {
                    match (name.as_str(), value) {
                        ("*", Value::Object(several)) => all.extend(several),
                        ("_", _) => {}
                        (name, value) => drop(all.insert(name.to_owned(), value)),
                    }
                }
                best = Some(Fit { call: Call { given: all, ..call.clone() }, values });
            }
        }
        best
    }
}

/// A request that is compared with a line.
struct Reading<'a> {
    heard: Heard<'a>,
    phrases: &'a dyn Phrases,
    given: Vec<(String, Value)>,
    values: usize,
    best: Option<(Vec<(String, Value)>, usize)>,
}

impl<'a> Reading<'a> {
    /// Goes on with these parts, the innermost at the end, and keeps the best way to the end of the words.
    fn go(&mut self, words: &'a [Word], parts: &mut Vec<&[Part]>) {
        while parts.last().is_some_and(|inner| inner.is_empty()) {
            parts.pop();
        }
        if words.first().is_some_and(|word| word.any(ANYWHERE)) {
            self.go(&words[1..], &mut parts.clone());
        }
        let Some(inner) = parts.pop() else {
            if words.is_empty() && self.best.as_ref().is_none_or(|(_, values)| self.values < *values) {
                self.best = Some((self.given.clone(), self.values));
            }
            return;
        };
        let (part, rest) = (&inner[0], &inner[1..]);
        match part {
            Part::Word(word) => {
                if words.first().is_some_and(|first| is_word(first, word)) {
                    let mut parts = parts.clone();
                    parts.push(rest);
                    self.go(&words[1..], &mut parts);
                }
            }
            Part::OneOf(several) => {
                for one in several {
                    let mut parts = parts.clone();
                    parts.push(rest);
                    parts.push(one);
                    self.go(words, &mut parts);
                }
            }
            Part::Slot { name, kind } => {
                let (heard, phrases) = (self.heard, self.phrases);
                for (value, taken) in values(kind, Heard { words, ..heard }, phrases) {
                    self.given.push((name.clone(), value));
                    self.values += taken;
                    let mut parts = parts.clone();
                    parts.push(rest);
                    self.go(&words[taken..], &mut parts);
                    self.values -= taken;
                    self.given.pop();
                }
            }
        }
    }
}

/// Whether it is this word; a long one may have a slip of the finger.
fn is_word(said: &Word, word: &str) -> bool {
    said.is(word) || word.len() > 7 && !said.quoted && strsim::damerau_levenshtein(&said.lower, word) == 1
}

/// The longest value without quotes, in words.
const LONGEST: usize = 12;

/// The values that can stand at the beginning of these words, and how many words each takes.
fn values(kind: &str, heard: Heard<'_>, phrases: &dyn Phrases) -> Vec<(Value, usize)> {
    let words = heard.words;
    let Some(first) = words.first() else { return Vec::new() };
    match kind {
        "thing" => things(words, heard.situation, phrases),
        "word" => {
            let fits = !first.any(LIMITING) && !first.is(",");
            if fits { vec![(first.text.clone().into(), 1)] } else { Vec::new() }
        }
        "text" => {
            let most = words.len().min(LONGEST);
            (1..=most).map(|length| (text(&words[..length]).into(), length)).collect()
        }
        "rest" => vec![(sentence(words).into(), words.len())],
        "number" => {
            let number = first.lower.replace(',', "").parse::<u64>().ok().or_else(|| dates::number_word(&first.lower));
            number.filter(|_| !first.quoted).map(|number| (number.into(), 1)).into_iter().collect()
        }
        "when" => {
            let found = dates::moment(words, &heard.situation.today);
            found.map(|(when, _, rest)| (when.into(), words.len() - rest.len())).into_iter().collect()
        }
        kind => phrases.slot(kind, heard),
    }
}

/// What a request can be about: a name that is known or stands in quotes, “it”, or words that may be a name.
fn things(words: &[Word], situation: &Situation, phrases: &dyn Phrases) -> Vec<(Value, usize)> {
    let mut found = Vec::new();
    let quoted = words.iter().position(|word| word.quoted);
    let most = quoted.map_or(words.len().min(LONGEST), |at| at + 1);
    for length in 1..=most {
        let span = &words[..length];
        let name = match thing(span, situation, phrases) {
            Some(name) => name,
            None => continue,
        };
        if name.is_empty() || (span[length - 1].quoted != quoted.is_some_and(|at| at < length)) {
            continue;
        }
        found.push((name.into(), length));
    }
    found
}

/// The name of a thing: as typed, or what “it” means. `None`: these words are none.
pub(crate) fn thing(words: &[Word], situation: &Situation, phrases: &dyn Phrases) -> Option<String> {
    let words = without_last(words, &[",", "please", "now", "again"]);
    if points_back(words, phrases) {
        return situation.last_subject.clone();
    }
    if let Some(quoted) = words.iter().find(|word| word.quoted) {
        return Some(quoted.text.clone());
    }
    let name = skip(words, "the|our|my|an|a");
    let name = match name.split_first() {
        Some((first, rest)) if first.any(phrases.things()) => skip(rest, "called|named"),
        _ => name,
    };
    let name = if name.len() > 1 { without_last(name, phrases.things()) } else { name };
    let name = text(name);
    (!name.is_empty()).then_some(name)
}

/// Whether these words are “it” in some form.
pub(crate) fn points_back(words: &[Word], phrases: &dyn Phrases) -> bool {
    const POINTING: &[&str] = &[
        "it",
        "that",
        "this",
        "that one",
        "this one",
        "the one",
        "them",
        "last one",
        "one",
        "same one",
        "new one",
        "previous one",
        "one from before",
    ];
    if words.iter().any(|word| word.quoted) {
        return false;
    }
    let words = skip(words, "the|our|my|that|this|same|last|new|latest|previous");
    let made = |rest: &[Word]| {
        let rest = skip(skip(rest, "we|i|you"), "just");
        matches!(rest, [one] if one.any(&["created", "made"]))
    };
    let of_thing = words.split_first().filter(|(first, _)| first.any(phrases.things()) || first.is("one"));
    words.is_empty()
        || POINTING.contains(&lower(words).as_str())
        || of_thing.is_some_and(|(_, rest)| rest.is_empty() || made(rest))
}

/// `read name key=value key="two words"`, or `change …`.
fn call(line: &str) -> Option<Call> {
    let (kind, line) = line.split_once(' ')?;
    let (name, mut rest) = line.trim_end().split_once(' ').unwrap_or((line.trim_end(), ""));
    let mut given = Map::new();
    loop {
        rest = rest.trim_start();
        let Some((key, after)) = rest.split_once('=') else { break };
        let (value, after) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => after.split_once(' ').unwrap_or((after, "")),
        };
        let plain = serde_json::from_str(value).ok().filter(|value: &Value| !value.is_object());
        given.insert(key.to_owned(), plain.unwrap_or_else(|| value.into()));
        rest = after;
    }
    let asks = match kind {
        "read" => Asks::Read,
        "change" => Asks::Change,
        "talk" => Asks::Talk,
        _ => return None,
    };
    (rest.is_empty() && !name.is_empty()).then(|| Call { asks, name: name.to_owned(), given })
}

/// The parts of a line up to a closing bracket or `|`.
fn parts(rest: &mut &str) -> Option<Vec<Part>> {
    let mut found = Vec::new();
    loop {
        *rest = rest.trim_start();
        let Some(first) = rest.chars().next() else { return Some(found) };
        match first {
            ')' | ']' | '|' => return Some(found),
            '(' | '[' => {
                let closing = if first == '(' { ')' } else { ']' };
                let mut several = if first == '[' { vec![Vec::new()] } else { Vec::new() };
                loop {
                    *rest = &rest[1..];
                    several.push(parts(rest)?);
                    match rest.chars().next()? {
                        '|' => {}
                        last if last == closing => break,
                        _ => return None,
                    }
                }
                *rest = &rest[1..];
                found.push(Part::OneOf(several));
            }
            '<' => {
                let (slot, after) = rest[1..].split_once('>')?;
                let (name, kind) = slot.split_once(':').unwrap_or((slot, slot));
                found.push(Part::Slot { name: name.to_owned(), kind: kind.to_owned() });
                *rest = after;
            }
            _ => {
                let end = rest.find([' ', '(', ')', '[', ']', '|', '<']).unwrap_or(rest.len());
                found.push(Part::Word(rest[..end].to_owned()));
                *rest = &rest[end..];
            }
        }
    }
}

/// How parts can begin.
#[derive(Clone, Copy, Debug, Default)]
struct Begins {
    /// With a value.
    by_value: bool,
    /// Not at all: they may be left out.
    may_be_empty: bool,
}

/// Collects the words with which parts can begin, and says how else they can.
fn begins(parts: &[Part], firsts: &mut Vec<String>) -> Begins {
    let mut by_value = false;
    for part in parts {
        match part {
            Part::Word(word) => {
                firsts.push(word.clone());
                return Begins { by_value, may_be_empty: false };
            }
            Part::Slot { .. } => return Begins { by_value: true, may_be_empty: false },
            Part::OneOf(several) => {
                let ways: Vec<Begins> = several.iter().map(|one| begins(one, firsts)).collect();
                by_value |= ways.iter().any(|way| way.by_value);
                if !ways.iter().any(|way| way.may_be_empty) {
                    return Begins { by_value, may_be_empty: false };
                }
            }
        }
    }
    Begins { by_value, may_be_empty: true }
}
