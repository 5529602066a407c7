//! What is wished, from what is left of a sentence once its names and values are taken out: rows of a table.
//!
//! A row says with which verbs something is asked for, which nouns go with it, and which slots it takes. It fits where
//! every word is used: by a slot that it takes, its verb, its nouns, or politeness. A row whose verb opens the sentence and
//! that leaves words over is what the person wishes *with a restriction*: that is told, and nothing is done
//! ([`Reading::Partly`]). To teach a phrase is to add a row.

use super::{
    phrases::{Heard, Phrases},
    slots::{LIMITING, Part, SMALL, Slot, cut},
    wish::{Understood, Wish},
    words::{Word, as_typed},
};

/// A row: something that can be wished.
pub struct Intent {
    /// How it is said: verbs in three forms ([`asks_by`]), or whole phrases without their small words; separated by `|`.
    pub verbs: &'static str,
    /// The action that it asks for.
    pub action: &'static str,
    /// What else belongs to it.
    pub nouns: &'static [&'static str],
    /// The slots that it takes.
    pub takes: &'static [Takes],
    /// The wish, from what was taken. `None`: something that it needs is not there.
    pub make: fn(&Taken<'_>, &'static str) -> Option<Wish>,
    /// What the row gives to it.
    pub with: &'static str,
}

/// A kind of slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// What it is about, one or several.
    Subjects,
    /// When it begins.
    Moment,
    /// Up to when it goes on.
    Until,
    /// Shares.
    Weights,
    /// So many users or groups.
    Count,
    /// Users and groups.
    Members,
    /// A type of group.
    GroupType,
}

impl Takes {
    fn of(slot: &Slot) -> Option<Self> {
        Some(match slot {
            Slot::Subjects(_) | Slot::Back(_) => Self::Subjects,
            Slot::Moment { until: false, .. } => Self::Moment,
            Slot::Moment { until: true, .. } => Self::Until,
            Slot::Weights(_) => Self::Weights,
            Slot::Count { .. } => Self::Count,
            Slot::Members(_) => Self::Members,
            Slot::GroupType(_) => Self::GroupType,
            Slot::Known(..) | Slot::Point(_) => return None,
        })
    }
}

/// The slots of a sentence that a row takes.
pub struct Taken<'a>(Vec<&'a Slot>);

impl Taken<'_> {
    /// The one thing that it is about.
    pub fn subject(&self) -> Option<String> {
        match self.subjects()?.as_slice() {
            [one] => Some(one.clone()),
            _ => None,
        }
    }

    /// All that it is about.
    pub fn subjects(&self) -> Option<Vec<String>> {
        self.0.iter().find_map(|slot| match slot {
            Slot::Subjects(names) => Some(names.clone()),
            Slot::Back(name) => Some(vec![name.clone()]),
            _ => None,
        })
    }

    /// The first of the rest that is so.
    pub fn find<T>(&self, is: impl Fn(&Slot) -> Option<T>) -> Option<T> {
        self.0.iter().find_map(|slot| is(slot))
    }
}

/// How a sentence reads.
#[derive(Clone, Debug, PartialEq)]
pub enum Reading {
    /// Every word is used.
    Whole(Wish),
    /// All but these words.
    Partly {
        /// The wish without them.
        wish: Wish,
        /// What is left over, as typed.
        left: String,
        /// The rest of the sentence, as typed.
        used: String,
        /// Whether it stands behind what the wish is about.
        follows: bool,
    },
}

/// How a sentence reads by the rows of a capability. Two that fit it equally well and mean different things are both given.
pub(super) fn read(heard: Heard<'_>, phrases: &dyn Phrases, owner: &str) -> Vec<Reading> {
    const QUESTIONS: &[&str] =
        &["is", "are", "was", "were", "has", "did", "does", "what", "which", "who", "when", "why", "how", "where"];
    let Heard { words, situation: _, asks } = heard;
    if words.first().is_some_and(|first| first.any(QUESTIONS))
        || words.iter().any(|word| heard.is_of_another(word, owner))
    {
        return Vec::new();
    }
    let parts = cut(heard, phrases, owner);
    let mut whole: Vec<Wish> = Vec::new();
    let mut partly: Option<(usize, Reading)> = None;
    for intent in phrases.rows().iter().copied().flatten() {
        let Some((wish, left)) = fit(intent, &parts, asks, phrases) else { continue };
        if left.is_empty() {
            if !whole.contains(&wish) {
                whole.push(wish);
            }
        } else if partly.as_ref().is_none_or(|(fewest, _)| left.len() < *fewest) {
            let (text, used) = told(&parts, &left);
            let follows = parts[..left[0]].iter().any(|part| part.slot.is_some());
            partly = Some((left.len(), Reading::Partly { wish, left: text, used, follows }));
        }
    }
    match whole.is_empty() {
        true => partly.into_iter().map(|(_, reading)| reading).collect(),
        false => whole.into_iter().map(Reading::Whole).take(1).collect(),
    }
}

/// The request with what it is about called by this word, as typed: `archive the document “Plan”`.
pub(super) fn told_with(words: &[Word], thing: &str) -> String {
    let named = |word: &Word| match word.quoted {
        true => format!("the {thing} “{}”", word.text),
        false => word.text.clone(),
    };
    words.iter().map(named).collect::<Vec<_>>().join(" ").replace("the the ", "the ").replace(" ,", ",")
}

/// That a request is not carried out without its restriction.
pub fn declined(left: &str, used: &str, follows: bool) -> Understood {
    let left = left.strip_prefix("but ").unwrap_or(left);
    // “Mind stopping X” is no verb that goes with “I can”.
    match follows && used.split_whitespace().count() > 1 && !used.starts_with("mind ") {
        true => Understood::unclear(
            format!(
                "I can {used}, but not “{left}”. Nothing was changed. Ask again without it, or put it another way."
            ),
            Vec::new(),
        ),
        false => Understood::unclear(
            format!("I couldn't make sense of “{left}” in that. Nothing was changed. Please put it another way."),
            Vec::new(),
        ),
    }
}

/// What a row makes of the parts, and the places of those that it leaves over.
fn fit(intent: &Intent, parts: &[Part], asks: bool, phrases: &dyn Phrases) -> Option<(Wish, Vec<usize>)> {
    let mut taken = Vec::new();
    let mut kinds = Vec::new();
    let mut over = Vec::new();
    let mut said: Vec<(usize, &str)> = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        match &part.slot {
            Some(slot) => match Takes::of(slot).filter(|kind| intent.takes.contains(kind) && !kinds.contains(kind)) {
                Some(kind) => {
                    kinds.push(kind);
                    taken.push(slot);
                }
                None => over.push(at),
            },
            None if part.words[0].quoted => over.push(at),
            None => said.push((at, part.lower())),
        }
    }
    let plain: Vec<(usize, &str)> =
        said.iter().copied().filter(|(_, word)| !SMALL.contains(word) && !phrases.things().contains(word)).collect();
    let bare: Vec<(usize, &str)> = plain.iter().copied().filter(|(_, word)| !intent.nouns.contains(word)).collect();
    let used =
        intent.verbs.split('|').filter_map(|verb| asks_by(&bare, verb, asks).max(asks_by(&plain, verb, asks))).max()?;
    let words = if bare.len() >= used { &bare } else { &plain };
    over.extend(words.iter().skip(used).map(|(at, _)| *at));
    over.sort_unstable();
    let wish = (intent.make)(&Taken(taken), intent.with)?;
    Some((wish, over))
}

/// How many words a phrase takes, if these begin with it.
fn begins(words: &[(usize, &str)], frame: &str, verb: &str) -> Option<usize> {
    let mut count = 0;
    for wanted in frame.split(' ').chain(verb.split(' ')).filter(|word| !word.is_empty()) {
        if words.get(count)?.1 != wanted {
            return None;
        }
        count += 1;
    }
    Some(count)
}

/// What may stand before a verb, before its form that ends in -ing, and before its participle.
const DOES: &[&str] = &[
    "we should",
    "we can",
    "we could",
    "i think we can",
    "i think we should",
    "you can",
    "should",
    "let",
    "have",
    "let us",
    "must",
    "needs",
    "has",
];
const DOING: &[&str] = &["mind", "would you mind", "do you mind"];
const DONE: &[&str] = &[
    "should be",
    "can be",
    "may be",
    "must be",
    "needs be",
    "has be",
    "be",
    "have",
    "needs",
    "get",
    "can now be",
    "need",
    "want",
    "like",
    "we need",
    "we want",
];

/// How many words these take to ask for something with this verb. `start/starting/started`: “start X”, “would you mind
/// starting X”, “X should be started”. That something may or should be so is no request in a question.
fn asks_by(words: &[(usize, &str)], verb: &str, asks: bool) -> Option<usize> {
    let mut of = verb.split('/');
    let base = of.next().unwrap_or_default();
    let plainly = begins(words, "", base);
    let (Some(doing), Some(done)) = (of.next(), of.next()) else { return plainly };
    let framed = |frames: &[&str], verb: &str| frames.iter().filter_map(|frame| begins(words, frame, verb)).max();
    let states = || framed(DOES, base).max(framed(DONE, done));
    plainly.max(framed(DOING, doing)).max(if asks { None } else { states() })
}

/// What is left over and what is not, as typed: a slot behind a word that is left over belongs to it, and so do the small
/// words between.
pub fn told(parts: &[Part], left: &[usize]) -> (String, String) {
    let small = |part: &Part| part.slot.is_none() && SMALL.contains(&part.lower());
    let mut over: Vec<bool> = (0..parts.len()).map(|at| left.contains(&at)).collect();
    for at in 1..parts.len() {
        let limits = |part: &Part| part.slot.is_none() && LIMITING.contains(&part.lower());
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
