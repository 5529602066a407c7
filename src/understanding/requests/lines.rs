//! Phrases as lines of text: words in a fixed order, and the tool or action that they request.
//!
//! ```text
//! change archive_document copies=1
//!     (archive|put away) <document:thing> [with one copy]
//! ```
//!
//! A line without indentation names a tool (`read`) or an action (`change`) and its fixed
//! arguments, or an answer (`say I can't do that.`); each indented line below is one way to request it. `(a|b)` is an alternative, `[a]`
//! is optional, and `$name = …` defines a text to use in several lines. `<name:kind>` is a value of
//! the parameter `name`. Kinds are `thing` (the thing that the request is about, or “it”), `thing?`
//! (the same, but optional), `subject` (optional only if the thread has a last subject), `word`,
//! `text` (up to the next part), `rest`, `number`, `when`, `from` (a moment, but not the end of a period), `here` (no words; the thread has to be
//! about the capability, or its last call of it), and those of the capability ([`Phrases::slot`]).
//!
//! A line matches if it uses every word of a request, except for articles and the like, which may
//! occur anywhere. If several match, the one that takes the fewest words for values is used.
//!
//! ```text
//!     ~ archive/archiving/archived|put away: <document:subject> [<on:moment>] [safely]
//! ```
//!
//! ```text
//! offer show <thing>
//!     what is going on with <thing>
//! ```
//!
//! An `offer` is a request that may be suggested for words that nothing reads ([`crate::suggestions`]); below it are other ways
//! to say it, which are only compared with it. In one with a gap, `~`, a message is read once more (`leftovers/rewordings.rs`).
//!
//! A line with `~` has no fixed order ([`crate::intents`]): verbs, in up to three forms, then the values that it takes (kinds
//! `subject`, `subjects` for several, `moment`, `until`, `through` (`until` without “by”), `weights`, `users`, `groups`,
//! `members`, `group-type`), and words that may accompany them. In a line with an order, only a verb's first form is used.

mod things;
mod verbs;
mod written;

use std::{
    cell::LazyCell,
    collections::{HashMap, HashSet},
    rc::Rc,
};

use serde_json::{Map, Value};

pub use self::things::{Candidate, ThingReference, longest_name, points_back, thing};
pub use self::written::{Call, CallKind};
pub(crate) use self::written::{Offer, PatternPart, parts};
use self::{
    things::LEADING,
    written::{beginnings, call},
};
use crate::{
    dates,
    intents::Intent,
    phrases::{Phrases, Utterance},
    slots::LIMITING,
    words::{Word, sentence, text},
};

/// A line with a fixed order.
#[derive(Clone, Debug)]
struct OrderedLine {
    /// The index of the call that the line stands for.
    call_index: usize,
    parts: Vec<PatternPart>,
}

/// The lines of a capability, indexed for reading requests.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    calls: Vec<Call>,
    lines: Vec<OrderedLine>,
    intents: Vec<Intent>,
    /// The indices of lines, by each word that a line can begin with.
    by_first: HashMap<String, Vec<usize>>,
    /// The indices of lines that can begin with a value.
    open: Vec<usize>,
    offers: Vec<Offer>,
}

/// The best reading of a request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fit {
    /// The tool or action, with its arguments.
    pub(crate) call: Call,
    /// The number of words of the request that are taken for a value without being recognised as
    /// one.
    pub(crate) cost: usize,
}

/// Words that may occur anywhere.
const ANYWHERE: &str = "the a an our my please just some any me us now currently still exactly here , that is are";

impl Lines {
    /// Reads the lines of a text.
    ///
    /// # Errors
    ///
    /// Fails with the first line that cannot be read, and the reason.
    pub fn read(written: &str) -> Result<Self, String> {
        let mut lines = Self::default();
        let mut named: Vec<(&str, String)> = Vec::new();
        let mut is_offer = false;
        for line in written.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
            let names: &[_] = if line.contains('$') { &named } else { &[] };
            let expand = |line: &str| names.iter().fold(line.to_owned(), |line, (from, to)| line.replace(from, to));
            if let Some((name, written)) = line.split_once(" = ").filter(|_| line.starts_with('$')) {
                let written = expand(written);
                let longer = named.partition_point(|(other, _): &(&str, String)| other.len() >= name.len());
                named.insert(longer, (name, written));
                continue;
            }
            let line = &*expand(line);
            if let Some(request) = line.strip_prefix("offer ") {
                is_offer = true;
                lines.offers.push(Offer { request: request.to_owned(), samples: Vec::new() });
                continue;
            }
            if let (Some(offer), true) = (lines.offers.last_mut(), is_offer && line.starts_with(' ')) {
                offer.samples.push(line.trim().to_owned());
                continue;
            }
            is_offer = false;
            if !line.starts_with(' ') {
                lines.calls.push(
                    call(line)
                        .ok_or_else(|| format!("“{line}”: `read name key=value …` or `change name …` belongs here"))?,
                );
                continue;
            }
            let call_index = lines.calls.len().checked_sub(1).ok_or_else(|| format!("“{line}” asks for nothing"))?;
            if let Some(written) = line.trim().strip_prefix("~ ") {
                let intent = Intent::read(&lines.calls[call_index], written);
                lines.intents.push(intent.ok_or_else(|| format!("“{}”: `~ verbs: values` belongs here", line.trim()))?);
                continue;
            }
            let mut rest = line.trim();
            let parts = parts(&mut rest).filter(|parts| rest.is_empty() && !parts.is_empty());
            let parts = parts.ok_or_else(|| format!("“{}”: brackets do not fit together", line.trim()))?;
            let mut firsts = Vec::new();
            let ways = beginnings(&parts, &mut firsts);
            if ways.by_value || ways.may_be_empty {
                lines.open.push(lines.lines.len());
            }
            firsts.sort_unstable();
            firsts.dedup();
            for first in firsts {
                lines.by_first.entry(first).or_default().push(lines.lines.len());
            }
            lines.lines.push(OrderedLine { call_index, parts });
        }
        Ok(lines)
    }

    /// Returns the tools and actions that the lines stand for.
    pub fn calls(&self) -> &[Call] {
        &self.calls
    }

    /// Returns true if a line that requests a change begins with this word.
    pub(crate) fn begin_change_with(&self, word: &str) -> bool {
        let changes = |line: &usize| self.calls[self.lines[*line].call_index].kind == CallKind::Change;
        self.by_first.get(word).is_some_and(|lines| lines.iter().any(changes))
    }

    /// Returns true if a line for this tool or action takes this parameter.
    pub(crate) fn take(&self, call: &str, parameter: &str) -> bool {
        let is_of_call = |line: &&OrderedLine| self.calls[line.call_index].name == call;
        self.lines.iter().filter(is_of_call).any(|line| line.parts.iter().any(|part| part.takes(parameter)))
            || self.intents.iter().any(|intent| intent.call().name == call && intent.takes(parameter))
    }

    /// Returns the words of all lines, in lower case; a word may occur several times.
    pub(crate) fn words(&self) -> impl Iterator<Item = String> {
        let mut words = Vec::new();
        self.lines.iter().for_each(|line| line.parts.iter().for_each(|part| part.add_words(&mut words)));
        let verbs = self.intents.iter().flat_map(|intent| intent.verbs()).flat_map(|verb| verb.split(['/', ' ']));
        words.extend(verbs.map(str::to_owned));
        words.into_iter()
    }

    /// Returns the requests that may be suggested.
    pub(crate) fn offers(&self) -> &[Offer] {
        &self.offers
    }

    /// Returns the value that all of these words are, if a line for this tool or action takes such a value for the parameter.
    /// Words that could be anything are no value.
    pub(crate) fn value_of<'a>(
        &'a self,
        call: &str,
        parameter: &str,
        utterance: Utterance<'a>,
        phrases: &'a dyn Phrases,
        owner: &'a str,
    ) -> Option<Value> {
        let lines = self.lines.iter().filter(|line| self.calls[line.call_index].name == call);
        let matcher = Matcher::of(utterance, phrases, owner);
        let mut kinds = Vec::new();
        lines.for_each(|line| line.parts.iter().for_each(|part| part.add_kinds(parameter, &mut kinds)));
        let is_whole =
            |found: &Candidate| found.taken == utterance.words.len() && found.cost == 0 && !found.value.is_null();
        kinds.into_iter().find_map(|kind| Some(matcher.values(kind, utterance.words).into_iter().find(is_whole)?.value))
    }

    /// Returns the lines without a fixed order.
    pub(crate) fn intents(&self) -> &[Intent] {
        &self.intents
    }

    /// Returns the best reading of a request. With `names_only`, its thing must be a known name, a
    /// name in quotes, or “it”.
    pub(crate) fn fit<'a>(
        &'a self,
        utterance: Utterance<'a>,
        phrases: &'a dyn Phrases,
        owner: &'a str,
        names_only: bool,
    ) -> Option<Fit> {
        self.best(utterance, phrases, owner, names_only, true)
    }

    /// Returns the values in these words, if all of them match a line.
    pub fn values_in<'a>(
        &'a self,
        utterance: Utterance<'a>,
        phrases: &'a dyn Phrases,
        owner: &'a str,
    ) -> Option<Map<String, Value>> {
        Some(self.fit(utterance, phrases, owner, false)?.call.arguments)
    }

    /// Returns the values in the longest prefix of these words that matches a line, and the length
    /// of the prefix in words.
    pub fn begin<'a>(
        &'a self,
        utterance: Utterance<'a>,
        phrases: &'a dyn Phrases,
        owner: &'a str,
    ) -> Option<(Map<String, Value>, usize)> {
        let found = self.best(utterance, phrases, owner, false, false)?;
        Some((found.call.arguments, utterance.words.len() - found.cost))
    }

    /// Returns the best reading of all words (`is_whole`), or of the longest prefix of them. The
    /// cost of the latter is the number of words left.
    fn best<'a>(
        &'a self,
        utterance: Utterance<'a>,
        phrases: &'a dyn Phrases,
        owner: &'a str,
        names_only: bool,
        is_whole: bool,
    ) -> Option<Fit> {
        let words = utterance.words;
        let anywhere = if is_whole { ANYWHERE } else { "the" };
        let small: Vec<bool> = words.iter().map(|word| word.among(anywhere)).collect();
        let first = (0..words.len()).find(|at| !small[*at]).into_iter().chain([0]);
        let known =
            first.filter_map(|at| self.by_first.get(&words.get(at).filter(|word| !word.quoted)?.lower)).flatten();
        let mut tried: Vec<usize> = known.chain(&self.open).copied().collect();
        tried.sort_unstable();
        tried.dedup();
        if tried.is_empty() {
            return None;
        }
        let said: HashSet<&str> = words.iter().filter(|word| !word.quoted).map(|word| word.lower.as_str()).collect();
        let mut reading = Matcher { names_only, is_whole, small, ..Matcher::of(utterance, phrases, owner) };
        let mut best: Option<Fit> = None;
        for line in tried.into_iter().map(|at| &self.lines[at]) {
            if !line.parts.iter().all(|part| part.may_be_in(&said)) {
                continue;
            }
            reading.best = None;
            reading.advance(0, &Rest { parts: &line.parts, then: None });
            let Some((arguments, cost)) = reading.best.take() else { continue };
            if best.as_ref().is_none_or(|best| cost < best.cost) {
                let call = &self.calls[line.call_index];
                let mut all = call.arguments.clone();
                for (name, value) in arguments {
                    match (name, value) {
                        ("*", Value::Object(several)) => all.extend(several),
                        ("_", _) | (_, Value::Null) => {}
                        (name, value) => drop(all.insert(name.to_owned(), value)),
                    }
                }
                best = Some(Fit { call: Call { arguments: all, ..call.clone() }, cost });
            }
        }
        best
    }
}

/// The parts of a line that are not yet matched.
#[derive(Clone, Copy)]
struct Rest<'r, 'a> {
    parts: &'a [PatternPart],
    then: Option<&'r Rest<'r, 'a>>,
}

/// The state of matching a request with a line.
struct Matcher<'a> {
    utterance: Utterance<'a>,
    phrases: &'a dyn Phrases,
    /// The capability of the lines.
    owner: &'a str,
    names_only: bool,
    is_whole: bool,
    /// For each word, true if it may occur anywhere.
    small: Vec<bool>,
    /// The values found so far, by kind and index of the first word.
    seen: HashMap<(&'a str, usize), Rc<[Candidate]>>,
    arguments: Vec<(&'a str, Value)>,
    cost: usize,
    best: Option<(Vec<(&'a str, Value)>, usize)>,
}

impl<'a> Matcher<'a> {
    /// Creates the state before any word is matched.
    fn of(utterance: Utterance<'a>, phrases: &'a dyn Phrases, owner: &'a str) -> Self {
        Self {
            utterance,
            phrases,
            owner,
            names_only: false,
            is_whole: true,
            small: Vec::new(),
            seen: HashMap::new(),
            arguments: Vec::new(),
            cost: 0,
            best: None,
        }
    }

    /// Matches the words from this one on with the rest of a line, and keeps the best match.
    fn advance(&mut self, at: usize, rest: &Rest<'_, 'a>) {
        let Rest { parts, then } = *rest;
        let words = self.utterance.words;
        let Some((part, parts)) = parts.split_first() else {
            return match then {
                Some(then) => self.advance(at, then),
                None => self.finish(at),
            };
        };
        if self.small.get(at) == Some(&true) {
            self.advance(at + 1, rest);
        }
        match part {
            PatternPart::Word(word) => {
                if words.get(at).is_some_and(|first| is_word(first, word)) {
                    self.advance(at + 1, &Rest { parts, then });
                }
            }
            PatternPart::OneOf(several) => {
                let after = Rest { parts, then };
                for one in several {
                    self.advance(at, &Rest { parts: one, then: Some(&after) });
                }
            }
            PatternPart::Slot { name, kind } => {
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
                    self.arguments.push((name, value.clone()));
                    self.cost += cost;
                    self.advance(at + taken, &Rest { parts, then });
                    self.cost -= cost;
                    self.arguments.pop();
                }
            }
        }
    }

    /// Keeps the match of a whole line, if it is the best so far and only words that may occur
    /// anywhere are left.
    fn finish(&mut self, at: usize) {
        let is_end = !self.is_whole || self.small[at..].iter().all(|small| *small);
        let cost = if self.is_whole { self.cost } else { self.small.len() - at };
        if is_end && self.best.as_ref().is_none_or(|(_, best)| cost < *best) {
            self.best = Some((self.arguments.clone(), cost));
        }
    }

    /// Returns the values of this kind with which these words can begin.
    fn values(&self, kind: &str, words: &[Word]) -> Vec<Candidate> {
        let utterance = Utterance { words, ..self.utterance };
        let first = words.first();
        if first.is_some_and(|first| first.text.is_empty()) {
            return Vec::new(); // the “is” of “whats” was not typed as a word
        }
        match kind {
            "thing" => self.things(words),
            "subject" => {
                let back = self.subject().map(|name| Candidate::known(name, 0));
                self.things(words).into_iter().filter(|found| !found.value.is_null()).chain(back).collect()
            }
            // Without a name, the last subject of the thread is meant.
            "thing?" => {
                let back = self.subject().map_or(Value::Null, Value::from);
                self.things(words).into_iter().chain([Candidate::known(back, 0)]).collect()
            }
            "word" => {
                let fits = first.filter(|first| !first.any(LIMITING) && !first.is(","));
                fits.map(|first| Candidate::taken(first.text.clone(), 1)).into_iter().collect()
            }
            "text" => {
                let most = words.len().min(MAX_VALUE_WORDS);
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
            "from" => {
                let found = dates::moment(words, &utterance.situation.today).filter(|(_, until, _)| !until);
                found.map(|(when, _, rest)| Candidate::known(when, words.len() - rest.len())).into_iter().collect()
            }
            "when" => {
                let found = dates::moment(words, &utterance.situation.today);
                found.map(|(when, _, rest)| Candidate::known(when, words.len() - rest.len())).into_iter().collect()
            }
            "here" => utterance.place_of(self.owner).map(|_| Candidate::known(Value::Null, 0)).into_iter().collect(),
            kind => self.phrases.slot(kind, utterance),
        }
    }

    /// Returns the last subject of the thread, if it may be a thing of this capability.
    fn subject(&self) -> Option<&'a str> {
        match self.phrases.vocabulary().about_others {
            true => self.utterance.situation.last_subject.as_deref(),
            false => self.utterance.subject_of(self.owner),
        }
    }

    /// Returns the things with which these words can begin: a name that is known or in quotes,
    /// “it”, or words that may be a name.
    fn things(&self, words: &[Word]) -> Vec<Candidate> {
        let quoted = words.iter().position(|word| word.quoted);
        let most = quoted.map_or(words.len().min(MAX_VALUE_WORDS), |at| (at + 2).min(words.len()));
        let situation = self.utterance.situation;
        // Looked for only if a name without quotes is allowed: it takes longer than all the rest.
        let longest = LazyCell::new(|| longest_name(&words[..quoted.unwrap_or(most)], &situation.today));
        let (vocabulary, mut found) = (self.phrases.vocabulary(), Vec::new());
        for length in 1..=most {
            let span = &words[..length];
            let named = span.iter().any(|word| word.quoted);
            let leads = &span[..quoted.unwrap_or(length).min(length)];
            if named && !leads.iter().all(|word| word.any(LEADING) || word.any(vocabulary.things)) {
                continue;
            }
            let foreign = |word: &Word| self.utterance.is_of_another(word, self.owner);
            if !vocabulary.about_others && span.iter().any(foreign) {
                continue;
            }
            let ends = named && quoted != Some(length - 1);
            if ends && !span[length - 1].any(vocabulary.things)
                || !named && self.names_only && !points_back(span, self.phrases)
            {
                continue;
            }
            match thing(span, situation, self.phrases) {
                ThingReference::Name(name) if named => found.push(Candidate::known(name, length)),
                ThingReference::Pronoun(name) if name.is_some() && self.subject().is_none() => {}
                ThingReference::Pronoun(name) => {
                    found.push(Candidate::known(name.map_or(Value::Null, Value::from), length))
                }
                ThingReference::Name(name) if length <= *longest => found.push(Candidate::taken(name, length)),
                ThingReference::Name(_) | ThingReference::Nothing => {}
            }
        }
        found
    }
}

/// Returns true if `said` is this word. A long word may have one typing mistake.
fn is_word(said: &Word, word: &str) -> bool {
    let may_be_mistyped = || said.lower.chars().count().abs_diff(word.chars().count()) <= 1;
    said.is(word)
        || word.len() > 7 && !said.quoted && may_be_mistyped() && strsim::damerau_levenshtein(&said.lower, word) == 1
}

/// The maximum length of a value without quotes, in words.
const MAX_VALUE_WORDS: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::user_request::UserRequest;
    use crate::{intents, phrases::Vocabulary, situation::Situation, words::words};

    const OF_DOCUMENTS: Vocabulary = Vocabulary::new(&["document", "documents"]);

    const WRITTEN: &str = "$put = put/putting/put\n\
        change archive copies=1\n    ($put|archive) <document:thing>\n    ~ $put|archive: <document:subject> [<on:moment>] [safely]\n\
        change paint\n    paint [is] <colour:word>\n    paint <colour:word> and <other:word>\n";

    #[test]
    fn begin_returns_the_longest_prefix_that_matches() {
        let lines = Lines::read(WRITTEN).unwrap();
        let begin = |said: &str| {
            let (words, situation) = (words(said), Situation::default());
            let utterance = Utterance::of(&words, &situation);
            lines
                .begin(utterance, &OF_DOCUMENTS, "")
                .map(|(arguments, taken)| (Value::Object(arguments).to_string(), taken))
        };
        assert_eq!(begin("paint red, then go"), Some((r#"{"colour":"red"}"#.to_owned(), 2)));
        assert_eq!(begin("paint red and blue now"), Some((r#"{"colour":"red","other":"blue"}"#.to_owned(), 4)));
        assert_eq!(begin("then paint red"), None);
    }

    #[test]
    fn a_line_without_an_order_uses_every_word_or_reports_the_rest() {
        let lines = Lines::read(WRITTEN).unwrap();
        let read = |said: &str| {
            let (words, situation) = (words(said), Situation::default());
            let utterance = Utterance::of(&words, &situation);
            match intents::read(utterance, &OF_DOCUMENTS, "", lines.intents()).as_slice() {
                [intents::Reading::Whole(UserRequest::Change { params, .. })] => {
                    Value::Object(params.clone()).to_string()
                }
                [intents::Reading::Partly { left, .. }] => left.clone(),
                other => format!("{other:?}"),
            }
        };
        assert_eq!(read("archive “Plan” on Friday"), r#"{"copies":1,"document":"Plan","on":"Friday"}"#);
        assert_eq!(read("archive safely the “Plan” document"), r#"{"copies":1,"document":"Plan"}"#);
        assert_eq!(read("“Plan” archive for Bo"), "for Bo");
        assert!(Lines::read("change archive\n    ~ archive <document:subject>").is_err(), "no colon");
    }
}
