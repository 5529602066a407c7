//! Phrases as lines of text: which words stand in which order, and what they ask for.
//!
//! ```text
//! change archive_document copies=1
//!     (archive|put away) <document:thing> [with one copy]
//! ```
//!
//! A line without indentation names a tool (`read`) or an action (`change`), and what is given to it; each indented line below is one way to
//! say it. `(a|b)` is one of several, `[a]` may be left out, `<name:kind>` is a value, by the name of the parameter that it
//! fills: `thing` (what it is about, or “it”; `thing?` where it may go without saying, `subject` where that needs something that was talked about), `word`, `text` (up to what follows), `number`, `when`, `users`, or a kind of
//! the capability's own ([`super::phrases::Phrases::slot`]). `$name = …` names something that several lines hold. A line fits where it uses every word of a request; articles
//! and the like may stand anywhere. Of several that fit, the one counts that says most of it in words of its own.

use std::{
    collections::{HashMap, HashSet},
    rc::Rc,
};

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
    /// How many words of the request are only taken for a value, since they may be one.
    pub(crate) cost: usize,
}

/// A value that can stand at the beginning of some words.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The value; null fills nothing, and an object in the place of `*` fills all that it names.
    pub value: Value,
    /// How many words it takes.
    pub taken: usize,
    /// How many of them are only taken for it, since they may be one.
    pub cost: usize,
}

impl Candidate {
    /// A value that is recognised.
    pub fn known(value: impl Into<Value>, taken: usize) -> Self {
        Self { value: value.into(), taken, cost: 0 }
    }

    /// Words that may be the value.
    pub fn taken(value: impl Into<Value>, taken: usize) -> Self {
        Self { value: value.into(), taken, cost: taken }
    }
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
                let written = stands_for(written);
                let longer = named.partition_point(|(other, _): &(&str, String)| other.len() >= name.len());
                named.insert(longer, (name, written));
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

    /// What a request fits best. `names_only`: what it is about has to be a name that is known or stands in quotes, or “it”.
    pub(crate) fn fit<'a>(
        &'a self,
        heard: Heard<'a>,
        chapter: (&'a dyn Phrases, &'a str),
        names_only: bool,
    ) -> Option<Fit> {
        let words = heard.words;
        let small: Vec<bool> = words.iter().map(|word| word.any(ANYWHERE)).collect();
        let first = (0..words.len()).find(|at| !small[*at]).into_iter().chain([0]);
        let known =
            first.filter_map(|at| self.by_first.get(&words.get(at).filter(|word| !word.quoted)?.lower)).flatten();
        let mut tried: Vec<usize> = known.chain(&self.open).copied().collect();
        tried.sort_unstable();
        tried.dedup();
        let said: HashSet<&str> = words.iter().filter(|word| !word.quoted).map(|word| word.lower.as_str()).collect();
        let (phrases, owner) = chapter;
        let mut reading = Reading {
            heard,
            phrases,
            owner,
            names_only,
            small,
            seen: HashMap::new(),
            given: Vec::new(),
            cost: 0,
            best: None,
        };
        let mut best: Option<Fit> = None;
        for line in tried.into_iter().map(|at| &self.lines[at]) {
            if !line.parts.iter().all(|part| part.may_be_in(&said)) {
                continue;
            }
            reading.best = None;
            reading.go(0, &Rest { parts: &line.parts, then: None });
            let Some((given, cost)) = reading.best.take() else { continue };
            if best.as_ref().is_none_or(|best| cost < best.cost) {
                let call = &self.calls[line.asks_for];
                let mut all = call.given.clone();
                for (name, value) in given {
                    match (name, value) {
                        ("*", Value::Object(several)) => all.extend(several),
                        ("_", _) | (_, Value::Null) => {}
                        (name, value) => drop(all.insert(name.to_owned(), value)),
                    }
                }
                best = Some(Fit { call: Call { given: all, ..call.clone() }, cost });
            }
        }
        best
    }
}

impl Part {
    /// Whether a request that holds these words can hold this part: a word that has to be there is.
    fn may_be_in(&self, said: &HashSet<&str>) -> bool {
        match self {
            Self::Word(word) => word.len() > 7 || said.contains(word.as_str()),
            Self::OneOf(several) => several.iter().any(|one| one.iter().all(|part| part.may_be_in(said))),
            Self::Slot { .. } => true,
        }
    }
}

/// What is still to come of a line.
#[derive(Clone, Copy)]
struct Rest<'r, 'a> {
    parts: &'a [Part],
    then: Option<&'r Rest<'r, 'a>>,
}

/// A request that is compared with lines.
struct Reading<'a> {
    heard: Heard<'a>,
    phrases: &'a dyn Phrases,
    /// The capability.
    owner: &'a str,
    names_only: bool,
    /// Which words may stand anywhere.
    small: Vec<bool>,
    /// The values that were found, by kind and place.
    seen: HashMap<(&'a str, usize), Rc<[Candidate]>>,
    given: Vec<(&'a str, Value)>,
    cost: usize,
    best: Option<(Vec<(&'a str, Value)>, usize)>,
}

impl<'a> Reading<'a> {
    /// Goes on from this word with the rest of a line, and keeps the best way to the end of the words.
    fn go(&mut self, at: usize, rest: &Rest<'_, 'a>) {
        let Rest { parts, then } = *rest;
        let words = self.heard.words;
        let Some((part, parts)) = parts.split_first() else {
            return match then {
                Some(then) => self.go(at, then),
                None => self.ends(at),
            };
        };
        if self.small.get(at) == Some(&true) {
            self.go(at + 1, rest);
        }
        match part {
            Part::Word(word) => {
                if words.get(at).is_some_and(|first| is_word(first, word)) {
                    self.go(at + 1, &Rest { parts, then });
                }
            }
            Part::OneOf(several) => {
                let after = Rest { parts, then };
                for one in several {
                    self.go(at, &Rest { parts: one, then: Some(&after) });
                }
            }
            Part::Slot { name, kind } => {
                let found = match self.seen.get(&(kind.as_str(), at)) {
                    Some(found) => found.clone(),
                    None => {
                        let found: Rc<[Candidate]> = self.values(kind, &words[at..]).into();
                        self.seen.insert((kind, at), found.clone());
                        found
                    }
                };
                for Candidate { value, taken, cost } in found.iter() {
                    let worse = self.best.as_ref().is_some_and(|(_, best)| self.cost + cost >= *best);
                    if worse {
                        continue;
                    }
                    self.given.push((name, value.clone()));
                    self.cost += cost;
                    self.go(at + taken, &Rest { parts, then });
                    self.cost -= cost;
                    self.given.pop();
                }
            }
        }
    }

    /// Only words that may stand anywhere are left.
    fn ends(&mut self, at: usize) {
        let is_end = self.small[at..].iter().all(|small| *small);
        if is_end && self.best.as_ref().is_none_or(|(_, cost)| self.cost < *cost) {
            self.best = Some((self.given.clone(), self.cost));
        }
    }

    /// The values that can stand at the beginning of these words.
    fn values(&self, kind: &str, words: &[Word]) -> Vec<Candidate> {
        let heard = Heard { words, ..self.heard };
        let first = words.first();
        match kind {
            "thing" => self.things(words),
            "subject" => {
                let back = self.subject().map(|name| Candidate::known(name, 0));
                self.things(words).into_iter().filter(|found| !found.value.is_null()).chain(back).collect()
            }
            // What is not named is what was talked about.
            "thing?" => {
                let back = self.subject().map_or(Value::Null, Value::from);
                self.things(words).into_iter().chain([Candidate::known(back, 0)]).collect()
            }
            "word" => {
                let fits = first.filter(|first| !first.any(LIMITING) && !first.is(","));
                fits.map(|first| Candidate::taken(first.text.clone(), 1)).into_iter().collect()
            }
            "text" => {
                let most = words.len().min(LONGEST);
                (1..=most).map(|length| Candidate::taken(text(&words[..length]), length)).collect()
            }
            "rest" if !words.is_empty() => vec![Candidate::taken(sentence(words), words.len())],
            "number" => {
                let number = |first: &Word| match first.quoted {
                    true => None,
                    false => first.lower.replace(',', "").parse().ok().or_else(|| dates::number_word(&first.lower)),
                };
                first.and_then(number).map(|number| Candidate::known(number, 1)).into_iter().collect()
            }
            "when" => {
                let found = dates::moment(words, &heard.situation.today);
                found.map(|(when, _, rest)| Candidate::known(when, words.len() - rest.len())).into_iter().collect()
            }
            kind => self.phrases.slot(kind, heard),
        }
    }

    /// What “it” means, if it may be a thing of this capability.
    fn subject(&self) -> Option<&'a str> {
        match self.phrases.about_others() {
            true => self.heard.situation.last_subject.as_deref(),
            false => self.heard.subject_of(self.owner),
        }
    }

    /// What a request can be about: a name that is known or stands in quotes, “it”, or words that may be a name.
    fn things(&self, words: &[Word]) -> Vec<Candidate> {
        let quoted = words.iter().position(|word| word.quoted);
        let most = quoted.map_or(words.len().min(LONGEST), |at| (at + 2).min(words.len()));
        let situation = self.heard.situation;
        let longest = longest_name(&words[..quoted.unwrap_or(most)], &situation.today);
        let mut found = Vec::new();
        for length in 1..=most {
            let span = &words[..length];
            let named = span.iter().any(|word| word.quoted);
            let leads = &span[..quoted.unwrap_or(length).min(length)];
            if named && !leads.iter().all(|word| word.any(LEADING) || word.any(self.phrases.things())) {
                continue;
            }
            let foreign = |word: &Word| !self.phrases.about_others() && self.heard.is_of_another(word, self.owner);
            if span.iter().any(foreign) {
                continue;
            }
            let ends = named && quoted != Some(length - 1);
            if ends && !span[length - 1].any(self.phrases.things())
                || !named && self.names_only && !points_back(span, self.phrases)
            {
                continue;
            }
            match thing(span, situation, self.phrases) {
                Named::Name(name) if named => found.push(Candidate::known(name, length)),
                Named::Back(name) if name.is_some() && self.subject().is_none() => {}
                Named::Back(name) => found.push(Candidate::known(name.map_or(Value::Null, Value::from), length)),
                Named::Name(name) if length <= longest => found.push(Candidate::taken(name, length)),
                Named::Name(_) | Named::Nothing => {}
            }
        }
        found
    }
}

/// What may stand before a name in quotes and belongs to it.
const LEADING: &[&str] = &["the", "our", "my", "an", "a", "called", "named"];

/// How many of these words can be a name, before something else is said.
fn longest_name(words: &[Word], today: &str) -> usize {
    const ELSE: &[&str] = &[
        "that", "which", "but", "only", "if", "until", "unless", "except", "without", "ends", "starting", "not",
        "once", "keep", ",",
    ];
    let plain = |word: &Word| word.text == word.lower;
    let more = |at: &usize| plain(&words[*at]) && words[*at].any(ELSE) || dates::moment(&words[*at..], today).is_some();
    match words.first() {
        Some(first) if first.any(LIMITING) && plain(first) => 0,
        _ => (1..words.len()).find(more).unwrap_or(words.len()),
    }
}

/// What words name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Named {
    /// Something of this name, as typed.
    Name(String),
    /// “It”: what was talked about, if anything was.
    Back(Option<String>),
    /// Nothing.
    Nothing,
}

impl Named {
    /// The name, or what was talked about.
    pub(crate) fn name(self) -> Option<String> {
        match self {
            Self::Name(name) => Some(name),
            Self::Back(name) => name,
            Self::Nothing => None,
        }
    }
}

/// Whether it is this word; a long one may have a slip of the finger.
fn is_word(said: &Word, word: &str) -> bool {
    said.is(word) || word.len() > 7 && !said.quoted && strsim::damerau_levenshtein(&said.lower, word) == 1
}

/// The longest value without quotes, in words.
const LONGEST: usize = 12;

/// What these words name. Words around the name are dropped; in quotes it is taken as it is.
pub(crate) fn thing(words: &[Word], situation: &Situation, phrases: &dyn Phrases) -> Named {
    let words = without_last(words, &[",", "please", "now", "again"]);
    if points_back(words, phrases) {
        return Named::Back(situation.last_subject.clone());
    }
    if let Some(quoted) = words.iter().find(|word| word.quoted) {
        return Named::Name(quoted.text.clone());
    }
    let name = skip(words, "the|our|my|an|a");
    let name = match name.split_first() {
        Some((first, rest)) if first.any(phrases.things()) => skip(rest, "called|named"),
        _ => name,
    };
    let name = text(if name.len() > 1 { without_last(name, phrases.things()) } else { name });
    let name = name.strip_suffix("'s").or_else(|| name.strip_suffix("’s")).unwrap_or(&name).to_owned();
    if name.is_empty() { Named::Nothing } else { Named::Name(name) }
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
    if matches!(words, [one] if one.any(&["the", "our", "my", "same", "last", "new", "latest", "previous"])) {
        return false; // of something that follows
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
