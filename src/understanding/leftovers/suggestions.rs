//! Suggestions for words that no rule reads: the nearest requests, as up to three buttons.
//!
//! A message is compared with the sentences of all `offer`s ([`crate::lines`]) by the letters of their words: the cosine of
//! their character n-grams, weighted by how rare each n-gram is. An offer is filled with the names and values of the message,
//! and is only suggested if the rules then read it. So a suggestion decides nothing: a button sends a request, which is read
//! and approved as if it had been typed. Such a comparison does not see “don't”, “unless” or “except”; a message with one of
//! these is therefore never answered with a change.

use std::collections::HashMap;

use super::rewordings::{GAP, Rewording, reworded};
use crate::{
    lexicon::Mention,
    phrase_book::{CapabilityPhrases, MENTION_CONFIDENCE, PhraseBook},
    phrases::Utterance,
    requests::{
        dates::moment,
        lines::Offer,
        slots::{LIMITING, SMALL},
        talk,
    },
    situation::Situation,
    split::conditions,
    user_request::{Interpretation, Talk, UserRequest},
    words::{Word, as_typed},
};

/// The maximum number of suggestions.
const MAX_SUGGESTIONS: usize = 3;
/// The minimum similarity, from 0 to 1, of a suggestion.
const MIN_SIMILARITY: f32 = 0.3;
/// The same of a suggested change.
const MIN_SIMILARITY_OF_CHANGE: f32 = 0.4;
/// A suggestion has at least this part of the similarity of the best one.
const MIN_PART_OF_BEST: f32 = 0.6;
/// The minimum similarity of a question that is answered at once, and its lead over the next one.
const CLEAR: (f32, f32) = (0.7, 0.2);
/// The factor by which requests about the topic of the thread are preferred.
const ON_TOPIC: f32 = 1.3;
/// The factor for requests about things of other capabilities, which the message does not name, while the thread has a topic.
const OFF_TOPIC: f32 = 0.7;
/// The lengths of the n-grams, in characters.
const LENGTHS: std::ops::RangeInclusive<usize> = 2..=4;
/// Stands for a name.
const NAME: &str = "§";

/// Words that negate or make a condition: with one of them, a change is not what is asked for.
const LIMITS: &[&str] = &[
    "not",
    "no",
    "never",
    "don't",
    "dont",
    "doesn't",
    "won't",
    "shouldn't",
    "can't",
    "cannot",
    "isn't",
    "without",
    "unless",
    "except",
    "if",
    "only",
    "but",
    "until",
    "instead",
    "rather",
    "before",
    "after",
    "nobody",
    "none",
    "neither",
    "nor",
];

/// The offers of all capabilities, indexed by the n-grams of their sentences.
#[derive(Debug, Default)]
pub(crate) struct Index {
    /// The index of the capability of each offer, `None` for talk, and the offer.
    offers: Vec<(Option<usize>, Offer)>,
    /// For each n-gram, the sentences that contain it, each with the weight of the n-gram in it.
    postings: HashMap<String, Vec<(usize, f32)>>,
    /// The rareness of each n-gram.
    rareness: HashMap<String, f32>,
    /// The index of the offer of each sentence.
    offer_of: Vec<usize>,
    /// The words of each sentence, as they are compared.
    words: Vec<Vec<String>>,
    /// What can be said in the words of the rules.
    rewordings: Vec<Rewording>,
}

impl Index {
    /// Creates the index of the offers of these capabilities, and of those for talk.
    pub(crate) fn of(capabilities: &[CapabilityPhrases]) -> Self {
        let of_capabilities = capabilities.iter().enumerate().map(|(at, one)| (Some(at), one.lines.offers()));
        let all = of_capabilities.chain([(None, talk::offers())]);
        let all = all.flat_map(|(owner, offers)| offers.iter().map(move |offer| (owner, offer)));
        let (with_gap, all): (Vec<_>, Vec<_>) = all.partition(|(_, offer)| offer.request.contains(GAP));
        let rewordings = Rewording::all(with_gap.into_iter().map(|(_, offer)| offer));
        let mut index = Self { rewordings, ..Self::default() };
        let mut sentences: Vec<HashMap<String, f32>> = Vec::new();
        for (owner, offer) in all {
            for sentence in offer.samples.iter().chain([&offer.request]) {
                index.offer_of.push(index.offers.len());
                let words = compared(&crate::words::words(sentence));
                sentences.push(counts(&words));
                index.words.push(words);
            }
            index.offers.push((owner, offer.clone()));
        }
        let mut frequency: HashMap<&str, f32> = HashMap::new();
        sentences.iter().flat_map(HashMap::keys).for_each(|gram| *frequency.entry(gram).or_default() += 1.0);
        let total = sentences.len() as f32;
        index.rareness = frequency.iter().map(|(gram, n)| ((*gram).to_owned(), (total / n).ln() + 1.0)).collect();
        for (at, sentence) in sentences.into_iter().enumerate() {
            for (gram, weight) in index.weighted(sentence) {
                index.postings.entry(gram).or_default().push((at, weight));
            }
        }
        index
    }

    /// Returns what can be said in the words of the rules.
    pub(super) fn rewordings(&self) -> &[Rewording] {
        &self.rewordings
    }

    /// Returns the requests, each with the name of its capability, which is empty for talk.
    #[cfg(any(test, feature = "checking"))]
    pub(crate) fn requests<'a>(&'a self, book: &'a PhraseBook) -> impl Iterator<Item = (&'a str, &'a str)> {
        let owner = |at: &Option<usize>| at.map_or("", |at| book.capabilities[at].owner);
        self.offers.iter().map(move |(at, offer)| (owner(at), offer.request.as_str()))
    }

    /// Returns the weights of n-grams, as a vector of length 1.
    fn weighted(&self, counts: HashMap<String, f32>) -> Vec<(String, f32)> {
        // An n-gram that is in no sentence still makes the message less similar to each.
        let unknown = (self.offer_of.len().max(1) as f32).ln() + 1.0;
        let weight = |gram: &str, n: f32| n.sqrt() * self.rareness.get(gram).copied().unwrap_or(unknown);
        let weights: Vec<_> = counts.into_iter().map(|(gram, n)| (weight(&gram, n), gram)).collect();
        let length = weights.iter().map(|(weight, _)| weight * weight).sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
        weights.into_iter().map(|(weight, gram)| (gram, weight / length)).collect()
    }

    /// Returns the similarity of the message to each offer, and the index of the sentence that is most similar.
    fn similarities(&self, words: &[Word]) -> Vec<(f32, usize)> {
        let mut of_sentences = vec![0.0_f32; self.offer_of.len()];
        for (gram, weight) in self.weighted(counts(&compared(words))) {
            for (sentence, other) in self.postings.get(&gram).into_iter().flatten() {
                of_sentences[*sentence] += weight * other;
            }
        }
        let mut of_offers = vec![(0.0_f32, 0); self.offers.len()];
        for (at, (similarity, offer)) in of_sentences.into_iter().zip(&self.offer_of).enumerate() {
            if similarity > of_offers[*offer].0 {
                of_offers[*offer] = (similarity, at);
            }
        }
        of_offers
    }
}

/// Returns the words as they are compared: names and numbers are all alike.
fn compared(words: &[Word]) -> Vec<String> {
    let alike = |word: &Word| match word.lower.as_str() {
        "<thing>" => NAME.to_owned(),
        _ if word.quoted => NAME.to_owned(),
        "<number>" => "#".to_owned(),
        plain => {
            let mut out = String::with_capacity(plain.len());
            for letter in plain.chars() {
                match letter.is_ascii_digit() {
                    true if out.ends_with('#') => {}
                    true => out.push('#'),
                    false => out.push(letter),
                }
            }
            out
        }
    };
    words.iter().filter(|word| !word.is(",")).map(alike).collect()
}

/// Returns how often each n-gram occurs in the words. An n-gram may contain the end of a word, but not two words.
fn counts(words: &[String]) -> HashMap<String, f32> {
    let mut counts = HashMap::new();
    for word in words {
        let letters: Vec<char> = format!(" {word} ").chars().collect();
        for length in LENGTHS {
            for gram in letters.windows(length) {
                *counts.entry(gram.iter().collect()).or_default() += 1.0;
            }
        }
    }
    counts
}

/// The possible meaning of a message that no rule reads.
#[derive(Debug, PartialEq)]
pub(crate) enum Suggestion {
    /// A question that is much nearer than all others, and what the rules make of it. It is answered at once.
    Clear(String, Interpretation),
    /// The person is asked which of these requests is meant.
    Asked(Vec<String>),
}

impl Suggestion {
    /// Returns the interpretation of the message.
    pub(crate) fn interpretation(self) -> Interpretation {
        match self {
            Self::Clear(_, read) => read,
            Self::Asked(mut options) => {
                let question = match options.as_slice() {
                    [_] => "I'm not sure what you mean. Is it this?",
                    _ => "I'm not sure what you mean. Is it one of these?",
                };
                options.push(NONE_OF_THESE.to_owned());
                Interpretation::unclear(question, options)
            }
        }
    }
}

/// Returns what the words may mean, up to three requests; `None` if none is near. `found` is what the rules made of them,
/// which is not suggested.
pub(crate) fn suggested(book: &PhraseBook, situation: &Situation, found: &Interpretation) -> Option<Suggestion> {
    let is_answer = situation.draft.is_some() || situation.replan.is_some();
    let in_other_words = reworded(book, situation);
    let situation = in_other_words.as_ref().unwrap_or(situation);
    let typed = book.words(&situation.said, &situation.names);
    let utterance = Utterance::whole(&typed, situation);
    let words = utterance.words;
    let asks = utterance.is_question || words.first().is_some_and(|first| first.any(QUESTION_WORDS));
    // While a question of the bot is open, only other questions are no answers.
    if is_answer && !asks || conditions::split(&situation.said).condition.is_some() {
        return None;
    }
    if let Some(meant) = in_other_words.as_ref().and_then(|other| meant(book, other)) {
        return Some(meant);
    }
    // What is said while a card is open may be about the card, unless it is a question.
    if !situation.open_cards.is_empty() && !asks {
        return None;
    }
    let limits = |word: &Word| !word.quoted && (word.any(LIMITS) || word.lower.ends_with("n't"));
    let may_change = !is_answer && !words.iter().any(limits);
    let index = book.offers();
    let similarities = index.similarities(words).into_iter().zip(&index.offers);
    let similarities = similarities.map(|((similarity, sentence), (owner, offer))| {
        let owner = owner.map(|at| &book.capabilities[at]);
        (similarity * owner.map_or(1.0, |owner| closeness(owner, utterance)), sentence, owner, offer)
    });
    let mut ranked: Vec<_> = similarities.filter(|(similarity, ..)| *similarity >= MIN_SIMILARITY).collect();
    ranked.sort_by(|(one, ..), (other, ..)| other.total_cmp(one));
    let best = ranked.first()?.0;
    let next = ranked.get(1).map_or(0.0, |(next, ..)| *next);
    let mut options: Vec<String> = Vec::new();
    let listed = situation.listed.as_ref().filter(|listed| listed.names.len() <= MAX_SUGGESTIONS);
    let listed = listed.map_or(&[][..], |listed| listed.names.as_slice());
    for (similarity, sentence, owner, offer) in
        ranked.into_iter().take_while(|(similarity, ..)| *similarity >= best * MIN_PART_OF_BEST)
    {
        let named = filled(&offer.request, owner, utterance, None);
        let is_only = named.is_some() || listed.len() < 2;
        // Without a name, one of a short list is meant.
        let of_list =
            || listed.iter().filter_map(|name| filled(&offer.request, owner, utterance, Some(name))).collect();
        let fits = named.map_or_else(of_list, |named| vec![named]);
        for (request, name) in fits {
            if options.contains(&request) || options.len() == MAX_SUGGESTIONS {
                continue;
            }
            let names = situation.names.iter().cloned().chain(name).collect();
            let pressed = Situation { said: request.clone(), names, ..situation.clone() };
            let read = book.understand(&pressed);
            // A button whose request names nothing that exists leads nowhere.
            if book.unknown_name(&read.user_request, &pressed).is_some() {
                continue;
            }
            let is_allowed = match &read.user_request {
                UserRequest::Change { .. } | UserRequest::Update(_) => {
                    may_change
                        && similarity >= MIN_SIMILARITY_OF_CHANGE
                        && !leaves_out(words, &index.words[sentence], &request)
                }
                user_request => is_read(user_request) && has_object(user_request, situation),
            };
            if !is_allowed || read.user_request == found.user_request {
                continue;
            }
            // A capability that is about the things of others has questions that begin something, such as a watch.
            let only_reads = owner.is_some_and(|owner| !owner.phrases.vocabulary().about_others)
                && matches!(read.user_request, UserRequest::Read { .. });
            let is_clear = similarity >= best && similarity >= CLEAR.0 && similarity - next >= CLEAR.1;
            if is_clear && only_reads && may_change && is_only {
                return Some(Suggestion::Clear(request, read));
            }
            options.push(request);
        }
        if options.len() == MAX_SUGGESTIONS {
            break;
        }
    }
    (!options.is_empty()).then_some(Suggestion::Asked(options))
}

/// Returns what the message means in other words, if the rules read them.
pub(crate) fn in_other_words(book: &PhraseBook, situation: &Situation) -> Option<Suggestion> {
    meant(book, &reworded(book, situation)?)
}

/// Returns what a message in other words means, if the rules read them.
fn meant(book: &PhraseBook, situation: &Situation) -> Option<Suggestion> {
    let read = book.understand(situation);
    if book.unknown_name(&read.user_request, situation).is_some() || read.confidence <= MENTION_CONFIDENCE {
        return None;
    }
    let said = situation.said.clone();
    match &read.user_request {
        UserRequest::Unclear { .. } | UserRequest::Unsupported => None,
        user_request if !has_object(user_request, situation) => None,
        UserRequest::Change { .. } | UserRequest::Update(_) | UserRequest::Drop => Some(Suggestion::Asked(vec![said])),
        UserRequest::Read { tool, .. } if book.begins_something(tool) => Some(Suggestion::Asked(vec![said])),
        _ => Some(Suggestion::Clear(said, read)),
    }
}

/// Returns the factor by which the requests of a capability are preferred: the thread may be about its things, or about others.
fn closeness(owner: &CapabilityPhrases, utterance: Utterance<'_>) -> f32 {
    let vocabulary = owner.phrases.vocabulary();
    let situation = utterance.situation;
    let is_named = |word: &Word| match &word.owner {
        Some(of) => of == owner.owner,
        None => word.any(vocabulary.things) || word.any(vocabulary.kinds) || word.any(vocabulary.groups),
    };
    match utterance.place_of(owner.owner) {
        Some(_) => ON_TOPIC,
        None if vocabulary.about_others || situation.topic.is_none() && situation.aside.is_none() => 1.0,
        None if utterance.words.iter().any(is_named) => 1.0,
        None => OFF_TOPIC,
    }
}

/// The last button below suggestions.
const NONE_OF_THESE: &str = "None of these";

/// Returns true if the rules read this as a request.
pub(crate) fn is_read(user_request: &UserRequest) -> bool {
    !matches!(user_request, UserRequest::Unsupported | UserRequest::Unclear { .. })
}

/// Returns true if words of the message are neither in the sentence that it resembles nor in the request: they may restrict a
/// change, and a button must not leave them out.
fn leaves_out(words: &[Word], sentence: &[String], request: &str) -> bool {
    let request = request.to_lowercase();
    let is_kept = |word: &Word| {
        let in_sentence = |kept: &String| *kept == word.lower || strsim::damerau_levenshtein(kept, &word.lower) == 1;
        request.contains(&word.lower) || sentence.iter().any(in_sentence)
    };
    let is_small = |word: &Word| word.any(HARMLESS) || word.any(SMALL) && !word.any(LIMITING);
    words.iter().any(|word| !word.quoted && !is_small(word) && !is_kept(word))
}

/// Words that restrict nothing.
const HARMLESS: &[&str] = &[
    "we", "i", "you", "us", "me", "can", "could", "want", "need", "like", "would", "let", "get", "pls", "please", "to",
    "do", "did", "be", "this", "that", "these", "those", "my", "your", "and", "so", "ok", "then", "now",
];

/// The words with which questions begin.
const QUESTION_WORDS: &[&str] = &[
    "what", "who", "whom", "why", "how", "when", "which", "where", "is", "are", "does", "do", "did", "will", "would",
    "can", "could", "should", "has", "have",
];

/// Returns false for talk about what there is not, such as a change to undo.
fn has_object(user_request: &UserRequest, situation: &Situation) -> bool {
    match user_request {
        UserRequest::Drop => !situation.open_cards.is_empty(),
        UserRequest::Talk(talk) => !matches!(talk, Talk::NothingToUndo | Talk::NothingToRepeat | Talk::NothingAsked),
        _ => true,
    }
}

/// Fills the values of a message into an offer, and `listed` if it names no thing. Returns the request and the name in it;
/// `None` if the message lacks a value of the offer.
fn filled(
    offer: &str,
    owner: Option<&CapabilityPhrases>,
    utterance: Utterance<'_>,
    listed: Option<&String>,
) -> Option<(String, Option<Mention>)> {
    let mut request = offer.to_owned();
    let mut named = None;
    while let Some((before, rest)) = request.split_once('<') {
        let (value, after) = rest.split_once('>')?;
        let filled = match value {
            "thing" => {
                let owner = owner?;
                let of_list = || listed.map(|name| mention_of(owner, name.clone()));
                let mention = thing(owner, utterance).or_else(of_list)?;
                let name = mention.name.clone();
                named = Some(mention);
                name
            }
            "number" => {
                let is_number =
                    |word: &&Word| !word.quoted && word.text.starts_with(|letter: char| letter.is_ascii_digit());
                let mut numbers = utterance.words.iter().filter(is_number).map(|word| word.text.clone());
                let first = numbers.next()?;
                numbers.next().is_none().then_some(first)?
            }
            "weights" => {
                let is_ratio = |word: &&Word| {
                    let parts: Vec<&str> = word.text.split('/').collect();
                    parts.len() > 1 && parts.iter().all(|part| part.parse::<f64>().is_ok())
                };
                utterance.words.iter().find(is_ratio)?.text.clone()
            }
            "when" => (0..utterance.words.len()).find_map(|at| {
                let rest = &utterance.words[at..];
                let (_, _, left) = moment(rest, &utterance.situation.today)?;
                Some(as_typed(&rest[..rest.len() - left.len()]))
            })?,
            "text" => {
                let (_, text) = utterance.situation.said.split_once(':')?;
                Some(text.trim()).filter(|text| !text.is_empty())?.to_owned()
            }
            _ => return None,
        };
        request = format!("{before}{filled}{after}");
    }
    Some((request, named))
}

/// Returns the thing that the message is about: the one that it names, or else the last one of the thread.
fn thing(owner: &CapabilityPhrases, utterance: Utterance<'_>) -> Option<Mention> {
    let vocabulary = owner.phrases.vocabulary();
    // The last thing of the thread is among the names as well.
    let is_its = |name: &&Mention| {
        let is_said = utterance.situation.said.contains(&name.said);
        name.subject && is_said && (vocabulary.about_others || name.owner == owner.owner)
    };
    let mut named = utterance.situation.names.iter().filter(is_its);
    if let Some(first) = named.next() {
        let is_only = named.all(|other| other.name == first.name);
        return is_only.then(|| Mention { said: first.name.clone(), ..first.clone() });
    }
    let last = match vocabulary.about_others {
        true => utterance.situation.last_subject.as_deref(),
        false => utterance.subject_of(owner.owner),
    };
    Some(mention_of(owner, last?.to_owned()))
}

/// Returns a mention of a thing of a capability.
fn mention_of(owner: &CapabilityPhrases, name: String) -> Mention {
    let kind = owner.phrases.vocabulary().things.first().copied().unwrap_or_default().to_owned();
    Mention { kind, said: name.clone(), name, owner: owner.owner.to_owned(), subject: true, unsure: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phrases::Vocabulary;

    /// Phrases about documents.
    const OF_DOCUMENTS: Vocabulary = Vocabulary {
        subjects: &["document"],
        lines: "read list_documents\n    list documents\nread show_document\n    show <document:thing>\n\
            change print_document\n    print <document:thing>\n    print <copies:number> copies of <document:thing>\n\
            offer list documents\n    what papers have we got\n\
            offer show <thing>\n    what is written in <thing>\n\
            offer print <thing>\n    i need <thing> on paper\n    put <thing> on paper\n\
            offer print <number> copies of <thing>\n    i need <thing> on paper 3 times\n",
        ..Vocabulary::new(&["document", "documents"])
    };

    #[track_caller]
    fn suggests(said: &str, expected: &[&str]) {
        let book = PhraseBook::default().with("documents", &OF_DOCUMENTS).unwrap();
        let plan = Mention {
            kind: "document".to_owned(),
            name: "Plan B".to_owned(),
            said: "Plan B".to_owned(),
            owner: "documents".to_owned(),
            subject: true,
            unsure: false,
        };
        let names = if said.contains("Plan B") { vec![plan] } else { Vec::new() };
        let situation = Situation { said: said.to_owned(), names, ..Situation::default() };
        let found = suggested(&book, &situation, &Interpretation::nothing());
        let options = match found {
            None => Vec::new(),
            Some(Suggestion::Clear(request, _)) => vec![format!("took it as {request}")],
            Some(Suggestion::Asked(options)) => options,
        };
        assert_eq!(options, expected, "{said}");
    }

    #[test]
    fn the_nearest_requests_are_suggested_with_the_names_and_values_of_the_message() {
        suggests("what papers do we have", &["took it as list documents"]);
        suggests("whats written in Plan B", &["took it as show Plan B"]);
        suggests("need Plan B on paper", &["print Plan B"]);
        suggests("need Plan B on paper 20 times", &["print 20 copies of Plan B"]);
    }

    #[test]
    fn without_the_name_that_it_needs_a_request_is_not_suggested() {
        suggests("whats written in it", &[]);
    }

    #[test]
    fn a_message_that_limits_or_negates_is_not_answered_with_a_change() {
        for said in
            ["i never need Plan B on paper", "need Plan B on paper unless it rains", "i needn't Plan B on paper"]
        {
            suggests(said, &[]);
        }
    }

    #[test]
    fn nothing_is_suggested_for_words_that_are_near_nothing() {
        suggests("zzz quux", &[]);
    }
}
