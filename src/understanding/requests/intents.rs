//! Lines without a fixed order: the request is read from the rest of a sentence, after its names
//! and values are extracted.
//!
//! Such a line lists the verbs that request something, the values that it takes and the words that
//! may accompany them. It matches if every word is used: by a value that it takes, its verb, its
//! nouns, or politeness. If the sentence begins with the verb of a line but words are left over,
//! the request has an unknown *restriction*, which is reported, and nothing is done
//! ([`Reading::Partly`]).

use serde_json::Value;

use crate::{
    lines::{Call, PatternPart, parts},
    phrases::{Phrases, Utterance},
    slots::{LIMITING, SMALL, SentencePart, Slot, sentence_parts},
    user_request::{Interpretation, UserRequest},
    words::{Word, as_typed},
};

/// A line without a fixed order.
#[derive(Clone, Debug)]
pub(crate) struct Intent {
    /// The tool or action that the line requests.
    call: Call,
    /// Verbs in three forms ([`words_used_by`]), or whole phrases without their small words.
    verbs: Vec<String>,
    /// Other words that may accompany the verb.
    nouns: Vec<String>,
    /// The values that it takes.
    slots: Vec<ValueSlot>,
}

/// A place for a value.
#[derive(Clone, Debug)]
struct ValueSlot {
    /// The values that may fill it: the parameter and the kind of each.
    one_of: Vec<(String, String)>,
    /// True if one of them is required.
    is_required: bool,
}

impl Intent {
    /// Returns the call that the line stands for.
    pub(crate) fn call(&self) -> &Call {
        &self.call
    }

    /// Returns its verbs.
    pub(crate) fn verbs(&self) -> &[String] {
        &self.verbs
    }

    /// Returns true if it takes this parameter.
    pub(crate) fn takes(&self, parameter: &str) -> bool {
        self.slots.iter().flat_map(|slot| &slot.one_of).any(|(name, _)| name == parameter)
    }

    /// Reads a line written as `verbs: parts`; `None` if it is malformed.
    pub(crate) fn read(call: &Call, written: &str) -> Option<Self> {
        let (verbs, mut rest) = written.split_once(": ")?;
        let verbs = verbs.split('|').map(|verb| verb.trim().to_owned()).collect();
        let mut intent = Self { call: call.clone(), verbs, nouns: Vec::new(), slots: Vec::new() };
        for part in parts(&mut rest)? {
            let (is_required, several) = match part {
                PatternPart::OneOf(several) => (!several.iter().any(Vec::is_empty), several),
                one => (true, vec![vec![one]]),
            };
            let mut one_of = Vec::new();
            for one in several.into_iter().flatten() {
                match one {
                    PatternPart::Slot { name, kind } => one_of.push((name, kind)),
                    PatternPart::Word(noun) => intent.nouns.push(noun),
                    PatternPart::OneOf(_) => return None,
                }
            }
            if !one_of.is_empty() {
                intent.slots.push(ValueSlot { one_of, is_required });
            }
        }
        rest.is_empty().then_some(intent)
    }
}

impl ValueSlot {
    /// Returns the parameter and its value, if the slot can fill this place.
    fn takes(&self, slot: &Slot) -> Option<(&str, Value)> {
        self.one_of.iter().find_map(|(name, kind)| Some((name.as_str(), value(kind, slot)?)))
    }
}

/// Returns the value of a slot, if it is of this kind.
fn value(kind: &str, slot: &Slot) -> Option<Value> {
    Some(match (kind, slot) {
        ("subject", Slot::Pronoun(name)) => name.as_str().into(),
        ("subject", Slot::Subjects(names)) if names.len() == 1 => names[0].as_str().into(),
        ("subjects", Slot::Subjects(names)) if names.len() > 1 => names.clone().into(),
        ("moment", Slot::Moment { when, until: false, .. })
        | ("until", Slot::Moment { when, until: true, .. })
        | ("through", Slot::Moment { when, until: true, by: false }) => when.as_str().into(),
        ("weights", Slot::Weights(weights)) => weights.clone(),
        (kind, Slot::Count { number, of }) if kind == *of => (*number).into(),
        ("members", Slot::Members(members)) => members.clone().into(),
        ("group-type", Slot::GroupType(kind)) => kind.as_str().into(),
        _ => return None,
    })
}

/// A reading of a sentence.
#[derive(Clone, Debug, PartialEq)]
pub enum Reading {
    /// Every word is used.
    Whole(UserRequest),
    /// Some words are left over.
    Partly {
        /// The words left over, as typed.
        left: String,
        /// The rest of the sentence, as typed.
        used: String,
        /// True if a value of the sentence precedes them.
        follows: bool,
    },
}

/// Reads a sentence by these lines of a capability. Returns the first whole reading, or else the
/// one with the fewest words left over.
pub(crate) fn read(utterance: Utterance<'_>, phrases: &dyn Phrases, owner: &str, intents: &[Intent]) -> Vec<Reading> {
    const QUESTIONS: &[&str] =
        &["is", "are", "was", "were", "has", "did", "does", "what", "which", "who", "when", "why", "how", "where"];
    let Utterance { words, is_question, .. } = utterance;
    if intents.is_empty()
        || words.first().is_some_and(|first| first.any(QUESTIONS))
        || words.iter().any(|word| utterance.is_of_another(word, owner))
    {
        return Vec::new();
    }
    let parts = sentence_parts(utterance, phrases, owner);
    let mut whole: Vec<UserRequest> = Vec::new();
    let mut partly: Option<(usize, Reading)> = None;
    for intent in intents {
        let Some((user_request, left)) = fit(intent, &parts, is_question, phrases) else { continue };
        if left.is_empty() {
            if !whole.contains(&user_request) {
                whole.push(user_request);
            }
        } else if partly.as_ref().is_none_or(|(fewest, _)| left.len() < *fewest) {
            let (text, used) = left_and_used(&parts, &left);
            let follows = parts[..left[0]].iter().any(|part| part.slot.is_some());
            partly = Some((left.len(), Reading::Partly { left: text, used, follows }));
        }
    }
    match whole.is_empty() {
        true => partly.into_iter().map(|(_, reading)| reading).collect(),
        false => whole.into_iter().map(Reading::Whole).take(1).collect(),
    }
}

/// Returns the request as typed, with the noun for its thing before the name: `archive the document
/// “Plan”`.
pub(crate) fn request_naming(words: &[Word], thing: &str) -> String {
    let named = |word: &Word| match word.quoted {
        true => format!("the {thing} “{}”", word.text),
        false => word.text.clone(),
    };
    words.iter().map(named).collect::<Vec<_>>().join(" ").replace("the the ", "the ").replace(" ,", ",")
}

/// Returns the reply to a request with the restriction `left`, which the bot does not understand.
pub fn declined(left: &str, used: &str, follows: bool) -> Interpretation {
    let left = left.strip_prefix("but ").unwrap_or(left);
    // “I can start X, but not “not on Friday”” would say the contrary.
    let is_negated = ["not", "don't", "don’t", "without", "except", "no", "never", "unless"];
    let is_negated = left.split_whitespace().next().is_some_and(|first| is_negated.contains(&first));
    // “Mind stopping X” cannot follow “I can”.
    match follows && used.split_whitespace().count() > 1 && !used.starts_with("mind ") && !is_negated {
        true => Interpretation::unclear(
            format!(
                "I can {used}, but not “{left}”. Nothing was changed. Ask again without it, or put it another way."
            ),
            Vec::new(),
        ),
        false => Interpretation::unclear(
            format!("I couldn't make sense of “{left}” in that. Nothing was changed. What did you mean by it?"),
            Vec::new(),
        ),
    }
}

/// Reads the parts by a line. Returns the request, and the indices of the parts that are left over.
fn fit(
    intent: &Intent,
    parts: &[SentencePart],
    is_question: bool,
    phrases: &dyn Phrases,
) -> Option<(UserRequest, Vec<usize>)> {
    let mut call = intent.call.clone();
    let mut open: Vec<&ValueSlot> = intent.slots.iter().collect();
    let mut over = Vec::new();
    let mut said: Vec<(usize, &str)> = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        match &part.slot {
            Some(slot) => match open.iter().enumerate().find_map(|(at, place)| Some((at, place.takes(slot)?))) {
                Some((filled, (name, value))) => {
                    call.arguments.insert(name.to_owned(), value);
                    open.remove(filled);
                }
                None => over.push(at),
            },
            None if part.words[0].quoted => over.push(at),
            None => said.push((at, part.lower())),
        }
    }
    if open.iter().any(|place| place.is_required) {
        return None;
    }
    let plain: Vec<(usize, &str)> = said
        .iter()
        .copied()
        .filter(|(_, word)| !SMALL.contains(word) && !phrases.vocabulary().things.contains(word))
        .collect();
    let bare: Vec<(usize, &str)> =
        plain.iter().copied().filter(|(_, word)| !intent.nouns.iter().any(|noun| noun == word)).collect();
    let used = intent
        .verbs
        .iter()
        .filter_map(|verb| words_used_by(&bare, verb, is_question).max(words_used_by(&plain, verb, is_question)))
        .max()?;
    let words = if bare.len() >= used { &bare } else { &plain };
    over.extend(words.iter().skip(used).map(|(at, _)| *at));
    over.sort_unstable();
    Some((call.user_request(), over))
}

/// Returns the number of words in a phrase, if these words begin with it.
fn phrase_length(words: &[(usize, &str)], frame: &str, verb: &str) -> Option<usize> {
    let mut count = 0;
    for wanted in frame.split(' ').chain(verb.split(' ')).filter(|word| !word.is_empty()) {
        if words.get(count)?.1 != wanted {
            return None;
        }
        count += 1;
    }
    Some(count)
}

/// Words that may precede the base form of a verb.
const BEFORE_BASE: &str = "we should|we can|we could|i think we can|i think we should|you can|should|let|have|\
    let us|must|needs|has";
/// Words that may precede the form of a verb in -ing.
const BEFORE_ING: &str = "mind|would you mind|do you mind";
/// Words that may precede the past participle of a verb.
const BEFORE_PARTICIPLE: &str = "should be|can be|may be|must be|needs be|has be|be|have|needs|get|can now be|need|\
    want|like|we need|we want";

/// Returns the number of leading words that request something with this verb. The verb
/// `start/starting/started` matches “start X”, “would you mind starting X”, and “X should be
/// started”. In a question, “can be” or “should be” is not a request.
fn words_used_by(words: &[(usize, &str)], verb: &str, is_question: bool) -> Option<usize> {
    let mut of = verb.split('/');
    let base = of.next().unwrap_or_default();
    let plainly = phrase_length(words, "", base);
    let (Some(doing), Some(done)) = (of.next(), of.next()) else { return plainly };
    let framed =
        |frames: &str, verb: &str| frames.split('|').filter_map(|frame| phrase_length(words, frame, verb)).max();
    let states = || framed(BEFORE_BASE, base).max(framed(BEFORE_PARTICIPLE, done));
    plainly.max(framed(BEFORE_ING, doing)).max(if is_question { None } else { states() })
}

/// Returns the words left over and the words used, as typed. A slot after a limiting word that is
/// left over counts as left over too, and so do small words next to it.
fn left_and_used(parts: &[SentencePart], left: &[usize]) -> (String, String) {
    let small = |part: &SentencePart| part.slot.is_none() && SMALL.contains(&part.lower());
    let mut over: Vec<bool> = (0..parts.len()).map(|at| left.contains(&at)).collect();
    for at in 1..parts.len() {
        let limits = |part: &SentencePart| part.slot.is_none() && LIMITING.contains(&part.lower());
        let follows = over[at - 1] && (small(&parts[at]) || parts[at].slot.is_some() && limits(&parts[at - 1]));
        over[at] |= follows;
    }
    for at in (0..parts.len().saturating_sub(1)).rev() {
        over[at] |= over[at + 1] && small(&parts[at]) && parts[at].lower() != ",";
    }
    let of = |wanted: bool| {
        let words: Vec<Word> = parts
            .iter()
            .zip(&over)
            .filter(|(_, over)| **over == wanted)
            .flat_map(|(part, _)| part.words.clone())
            .collect();
        as_typed(&words).trim_matches([',', ' ']).to_owned()
    };
    (of(true), of(false))
}
