//! The conversion of a message into a request: the phrases of all capabilities, in the order in
//! which they are tried.
//!
//! “Never mind” and offered answers are tried first, then whole requests, then words that only make
//! sense as the answer to an open question. A person may therefore ask something else before
//! answering a question, and an answer is never taken for a request that it contains.

use std::{borrow::Cow, collections::HashMap, fmt};

use serde_json::{Map, Value};

use super::{
    answers, asides, dates, doubts, either, id_lists, in_place,
    intents::{self, Reading, declined},
    languages,
    left_out::left_out,
    lines::{CallKind, Lines},
    memory::Memory,
    own_terms,
    phrases::{Phrases, Utterance},
    quotations,
    references::{self, Resolution},
    situation::Situation,
    talk,
    user_request::{Interpretation, Talk, UserRequest},
    words::{Word, after, lower, respell, strip_objection, strip_politeness, text, words, words_with},
};

/// The confidence that a message asks about a thing that it merely mentions.
pub(super) const MENTION_CONFIDENCE: f64 = 0.75;

/// Verbs that refer to a change from an earlier message, whose words are not all in this one.
const REPEAT_VERBS: &str = "undo|revert|take back|put back|roll back|rollback|try|retry|repeat|ask again|ask";

/// The maximum length of a message that is read, in words. The cost grows faster than the length.
pub(super) const MAX_WORDS: usize = 250;

/// The phrases of all capabilities.
#[derive(Default)]
pub struct Book {
    pub(super) capabilities: Vec<CapabilityPhrases>,
    /// The family of each tool and action. A family is offered to language models as a whole.
    families: HashMap<String, String>,
    /// The first family with actions. Questions about changes in general belong to it.
    changes: Option<String>,
    /// The names by which people call the outside systems.
    services: Vec<&'static str>,
    /// What is known of the newest messages.
    pub(super) memory: Memory,
}

/// The phrases of one capability.
pub(super) struct CapabilityPhrases {
    /// The name of the capability.
    owner: &'static str,
    phrases: &'static dyn Phrases,
    pub(super) lines: Lines,
}

impl fmt::Debug for Book {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.capabilities.iter().map(|capability| capability.owner)).finish()
    }
}

impl Book {
    /// Adds the phrases of a capability.
    ///
    /// # Errors
    ///
    /// Fails with the first line that cannot be read, and the reason.
    pub fn with(mut self, owner: &'static str, phrases: &'static dyn Phrases) -> Result<Self, String> {
        let lines = Lines::read(phrases.vocabulary().lines)?;
        self.capabilities.push(CapabilityPhrases { owner, phrases, lines });
        self.memory = Memory::default();
        Ok(self)
    }

    /// Assigns these tools and actions to a family, unless they have one.
    pub fn note_family(&mut self, family: &str, tools: &[&'static str], actions: &[&'static str]) {
        for name in tools.iter().chain(actions) {
            self.families.entry((*name).to_owned()).or_insert_with(|| family.to_owned());
        }
        if !actions.is_empty() {
            self.changes.get_or_insert_with(|| family.to_owned());
        }
    }

    /// Adds the name of an outside system.
    pub fn note_service(&mut self, service: &'static str) {
        self.services.push(service);
    }

    /// Returns the tools (`false`) and actions (`true`) that lines request.
    pub fn leads_to(&self) -> impl Iterator<Item = (&str, bool)> {
        let lines = self.capabilities.iter().flat_map(|capability| capability.lines.calls());
        lines.filter(|call| call.kind != CallKind::Talk).map(|call| (call.name.as_str(), call.kind == CallKind::Change))
    }

    pub(super) fn phrases(&self) -> impl Iterator<Item = &'static dyn Phrases> {
        self.capabilities.iter().map(|capability| capability.phrases)
    }

    /// Returns true if the message begins like a request for a change.
    pub fn begins_change(&self, said: &str) -> bool {
        let words = self.words(said, None);
        let first = strip_politeness(strip_objection(strip_politeness(&words))).first();
        let begins = |first: &Word| self.capabilities.iter().any(|one| one.lines.begin_change_with(&first.lower));
        first.is_some_and(|first| !first.quoted && begins(first))
    }

    /// Returns the index of the capability that the pending change belongs to.
    fn owner_of_change(&self, situation: &Situation) -> Option<usize> {
        let action = situation.in_hand()?.action.as_str();
        let leads = |lines: &Lines| lines.calls().iter().any(|call| call.name == action);
        self.capabilities.iter().position(|one| leads(&one.lines) || one.phrases.makes_new(action))
    }

    /// Returns the phrases of all capabilities, that of the pending change first: an answer is most likely for it.
    fn in_charge(&self, situation: &Situation) -> impl Iterator<Item = &'static dyn Phrases> {
        let owner = self.owner_of_change(situation);
        let others = self.capabilities.iter().enumerate().filter(move |(at, _)| Some(*at) != owner);
        let first = owner.and_then(|at| self.capabilities.get(at)).into_iter();
        first.chain(others.map(|(_, capability)| capability)).map(|capability| capability.phrases)
    }

    /// Reads a correction of the pending change. If the change is about things of its own capability,
    /// only that one can, since others would take its values for theirs.
    fn correction(&self, utterance: Utterance<'_>) -> Option<Interpretation> {
        let owner = self.owner_of_change(utterance.situation).map(|at| self.capabilities[at].phrases);
        match owner.filter(|owner| !owner.vocabulary().greeting.is_empty()) {
            Some(owner) => owner.correction(utterance),
            None => self.in_charge(utterance.situation).find_map(|phrases| phrases.correction(utterance)),
        }
    }

    /// Returns the requests that a sentence with one verb combines, in order; `None` for a single one.
    pub(super) fn combined_requests(&self, said: &str, situation: &Situation) -> Option<Vec<String>> {
        let words = self.words(said, Some(situation));
        let is_question = said.trim_end().ends_with('?');
        let utterance = Utterance { words: strip_politeness(&words), situation, is_question };
        self.phrases().find_map(|phrases| phrases.combined_requests(utterance))
    }

    /// Returns the names of the outside systems.
    pub(super) fn services(&self) -> &[&'static str] {
        &self.services
    }

    /// Returns the family of the tool or action that a request needs; `None` for talk.
    pub(super) fn family_of(&self, user_request: &UserRequest, situation: &Situation) -> Option<&str> {
        let of = |name: &str| self.families.get(name).map(String::as_str);
        match user_request {
            UserRequest::Term { .. } => {
                self.families.values().find(|family| *family == "terminology").map(String::as_str)
            }
            UserRequest::Talk(Talk::NothingDone(_)) => self.changes.as_deref(),
            UserRequest::Read { tool, .. } if tool == talk::EXECUTION_LOG => self.changes.as_deref(),
            UserRequest::Unclear { options, .. } if !options.is_empty() => self.changes.as_deref(),
            UserRequest::Read { tool, .. } => of(tool),
            UserRequest::Change { action, .. } => of(action),
            UserRequest::Update(_) | UserRequest::Drop => situation.in_hand().and_then(|draft| of(&draft.action)),
            UserRequest::Unsupported => Some("unsupported"),
            UserRequest::Talk(_) | UserRequest::Unclear { .. } => None,
        }
    }

    /// Returns the words of a message. Each name of the situation is one word.
    pub(super) fn words(&self, said: &str, situation: Option<&Situation>) -> Vec<Word> {
        let mut found = match situation {
            Some(situation) => words_with(said, &situation.names),
            None => words(said),
        };
        self.phrases().for_each(|phrases| respell(&mut found, phrases.vocabulary().things));
        let found = id_lists::with_commas(found);
        if found.len() > MAX_WORDS { id_lists::joined(found) } else { found }
    }

    /// Returns the situation with a message without asides, and with names in place of references to the last list.
    ///
    /// # Errors
    ///
    /// The question about a reference that is not clear.
    pub(super) fn resolved<'s>(&self, situation: &'s Situation) -> Result<Cow<'s, Situation>, Interpretation> {
        let situation = match asides::without(self, situation) {
            Some(said) => Cow::Owned(Situation { said, ..situation.clone() }),
            None => Cow::Borrowed(situation),
        };
        match references::resolve(&situation, self.phrases()) {
            Resolution::Nothing => Ok(situation),
            Resolution::Message(said) => Ok(Cow::Owned(Situation { said, ..situation.into_owned() })),
            Resolution::Question(question, options) => Err(Interpretation::unclear(question, options)),
        }
    }

    /// Returns the request that a message expresses. A message is only read if it is not one of the newest.
    pub fn understand(&self, situation: &Situation) -> Interpretation {
        let situation = &*situation.without_quotes();
        let resolve = |resolved: Cow<'_, Situation>| {
            let found = in_place::resolve(self, self.read(&resolved), situation);
            quotations::exact(either::asked(found, &resolved), &situation.said)
        };
        let read = || self.resolved(situation).map_or_else(|question| question, resolve);
        self.recall(situation, |known| &mut known.interpretation, read)
    }

    /// Returns the request of a message without references.
    fn read(&self, situation: &Situation) -> Interpretation {
        let typed = self.words(&situation.said, None);
        let plain = strip_politeness(&typed);
        if plain.is_empty() {
            return Interpretation::nothing();
        }
        if plain.len() > MAX_WORDS {
            let words = plain.iter().filter(|word| !word.is(",")).count();
            return Interpretation::unclear(
                format!(
                    "That message is too long: it has {words} words, and I can read up to {MAX_WORDS}, counting commas. Nothing was changed. Split it into several requests; a list of IDs separated by commas counts as one word."
                ),
                Vec::new(),
            );
        }
        if let Some(asked) = self.which_date(situation) {
            return asked;
        }
        let is_question = situation.said.trim_end().ends_with('?');
        const NEW: &[&str] = &["create", "make", "set", "build", "add", "new", "design", "draft", "creat"];
        let has_pending_change = situation.in_hand().is_some() || situation.draft.is_some();
        if !situation.names.is_empty() && (has_pending_change || plain[0].any(NEW)) {
            // A new name, an answer or a correction may contain an existing name, so it is read without names first.
            let utterance = Utterance { words: plain, situation, is_question };
            let found = self.before_requests(utterance).unwrap_or_else(|| self.read_by_position(&typed, utterance));
            let makes_new = |action: &str| self.phrases().any(|phrases| phrases.makes_new(action));
            let creates = matches!(&found.user_request, UserRequest::Change { action, .. } if makes_new(action));
            if creates
                || matches!(found.user_request, UserRequest::Update(_) | UserRequest::Drop | UserRequest::Talk(_))
            {
                return self.report_left_out(found, utterance);
            }
        }
        let all = self.words(&situation.said, Some(situation));
        let utterance = Utterance { words: strip_politeness(&all), situation, is_question };
        let lead = self.before_requests(utterance);
        let read = if lead.is_some() { Vec::new() } else { self.read_unordered(utterance) };
        match read.as_slice() {
            [(_, Reading::Whole(user_request))] => return user_request.clone().into(),
            [(one, Reading::Whole(_)), (other, Reading::Whole(_)), ..] => {
                return self.ask_which_is_meant(utterance, &[one, other]);
            }
            _ => {}
        }
        let found = self.report_left_out(lead.unwrap_or_else(|| self.read_by_position(&all, utterance)), utterance);
        match read.into_iter().next() {
            Some((_, Reading::Partly { left, used, follows, .. })) if self.is_worse_than_partial(&found, utterance) => {
                declined(&left, &used, follows)
            }
            _ if found.is_nothing() && languages::is_other_language(utterance.words) => {
                Interpretation::unclear(languages::ENGLISH_ONLY, Vec::new())
            }
            _ if found.is_nothing() && situation.draft.is_none() => {
                let mentioned = self.phrases().find_map(|phrases| phrases.mentioned(utterance));
                mentioned.map_or(found, |user_request| doubts::of_mention(self, user_request, utterance))
            }
            _ => found,
        }
    }

    /// Asks which day is meant by a date such as `12/03/2026`, if the message asks for a change at this date. The options
    /// are the whole message with each of the two days.
    fn which_date(&self, situation: &Situation) -> Option<Interpretation> {
        // An answer that is only `1/2` may be weights.
        let is_unclear = |written: &str| written.matches('/').count() == 1 && situation.said.starts_with(written);
        let date = dates::ambiguous(&situation.said).filter(|date| !is_unclear(&date.written))?;
        let with = |meaning: &String| situation.said.replacen(&date.written, meaning, 1);
        let found = self.understand(&Situation { said: with(&date.meanings[0]), ..situation.clone() });
        let params = match &found.user_request {
            UserRequest::Change { params, .. } | UserRequest::Update(params) => params,
            _ => return Some(found),
        };
        if !date.is_first_in(&Value::Object(params.clone()).to_string()) {
            return None; // a part of a text
        }
        let [first, second] = &date.meanings;
        let question = format!("Is {} {first} or {second}?", date.written);
        Some(Interpretation::unclear(question, date.meanings.iter().map(with).collect()))
    }

    /// Reads a sentence by the lines without a fixed order of each capability. Returns all whole
    /// readings, or else the partial one with the fewest words left over.
    fn read_unordered(&self, utterance: Utterance<'_>) -> Vec<(&'static dyn Phrases, Reading)> {
        let mut whole = Vec::new();
        let mut partly: Option<(usize, &'static dyn Phrases, Reading)> = None;
        for CapabilityPhrases { phrases, owner, lines } in &self.capabilities {
            for reading in intents::read(utterance, *phrases, owner, lines.intents()) {
                match &reading {
                    Reading::Whole(_) => whole.push((*phrases, reading)),
                    Reading::Partly { left, .. } => {
                        let length = left.split(' ').count();
                        if partly.as_ref().is_none_or(|(least, ..)| length < *least) {
                            partly = Some((length, *phrases, reading));
                        }
                    }
                }
            }
        }
        match whole.is_empty() {
            true => partly.into_iter().map(|(_, phrases, reading)| (phrases, reading)).collect(),
            false => whole,
        }
    }

    /// Asks the person which of several capabilities is meant, with whole requests as options.
    fn ask_which_is_meant(&self, utterance: Utterance<'_>, between: &[&&'static dyn Phrases]) -> Interpretation {
        let options =
            between.iter().map(|phrases| intents::request_naming(utterance.words, phrases.vocabulary().things[0]));
        Interpretation::unclear("Which of these do you mean?", options.collect())
    }

    /// Reads words that take precedence over requests: “never mind”, an offered answer, “don't”,
    /// “should I”, a correction.
    fn before_requests(&self, utterance: Utterance<'_>) -> Option<Interpretation> {
        let Utterance { words, situation, .. } = utterance;
        answers::cancellation(words, situation)
            .or_else(|| answers::offered_answer(self, words, situation))
            .or_else(|| answers::both_cards(words, situation))
            .or_else(|| doubts::negated(self, utterance))
            .or_else(|| doubts::considered_subject(self, utterance))
            .or_else(|| doubts::remark(self, utterance))
            .or_else(|| answers::postponement(words, situation))
            .or_else(|| self.correction(utterance))
            .or_else(|| self.match_lines(utterance, true))
            .or_else(|| self.unsupported(utterance))
            .or_else(|| self.in_steps(utterance))
    }

    /// Returns the interpretation, unless it is a change that was read by position, or a choice of
    /// changes, that omits words of the message. Those words are then reported.
    fn report_left_out(&self, found: Interpretation, utterance: Utterance<'_>) -> Interpretation {
        let holds = match &found.user_request {
            UserRequest::Change { params, .. } if !found.is_whole && after(utterance.words, REPEAT_VERBS).is_none() => {
                Value::Object(params.clone()).to_string().replace('_', " ")
            }
            // A button is only offered if it repeats the whole request.
            UserRequest::Unclear { options, .. } if options.iter().any(|option| !option.starts_with("list ")) => {
                options.join(" ")
            }
            _ => return found,
        };
        match left_out(&utterance.situation.said, &holds).first() {
            Some(left) => declined(left, "", false),
            None => found,
        }
    }

    /// Returns true if a reading by position only shows something, or does not contain the thing that is named.
    fn is_worse_than_partial(&self, found: &Interpretation, utterance: Utterance<'_>) -> bool {
        let named = utterance.words.iter().find(|word| word.quoted && word.kind.is_some());
        let holds = |arguments: &Map<String, Value>, name: &Word| arguments.values().any(|value| *value == name.text);
        match &found.user_request {
            UserRequest::Unclear { .. } => true,
            UserRequest::Read { arguments, .. } if named.is_some_and(|name| !holds(arguments, name)) => true,
            user_request => self.phrases().any(|phrases| phrases.only_shows(user_request)),
        }
    }

    /// Reads words by position, if [`Self::before_requests`] does not match.
    fn read_by_position(&self, all: &[Word], utterance: Utterance<'_>) -> Interpretation {
        let Utterance { words, situation, .. } = utterance;
        self.phrases()
            .find_map(|phrases| phrases.first(utterance))
            .or_else(|| self.whole_request(all, utterance))
            .or_else(|| self.in_charge(situation).find_map(|phrases| phrases.answer(utterance)))
            .or_else(|| self.with_corrected_verb(utterance))
            .or_else(|| self.after_objection(utterance))
            .or_else(|| answers::about_card(words, situation))
            .or_else(|| answers::unclear_correction(words, situation))
            .or_else(|| (situation.said.trim() == "?").then(|| UserRequest::Talk(Talk::Help).into()))
            .unwrap_or_else(Interpretation::nothing)
    }

    /// Reads the words by the lines. With `names_only`, only requests about something whose name is
    /// known. If the lines of two capabilities match equally well, the topic of the thread decides,
    /// unless the words name something.
    fn match_lines(&self, utterance: Utterance<'_>, names_only: bool) -> Option<Interpretation> {
        let fits = self.capabilities.iter().filter_map(|capability| {
            let fit = capability.lines.fit(utterance, capability.phrases, capability.owner, names_only)?;
            Some((fit.cost, capability, fit.call))
        });
        let mut fits: Vec<_> = fits.collect();
        fits.sort_by_key(|(cost, capability, _)| (*cost, utterance.topic_of(capability.owner).is_none()));
        let mut fits = fits.into_iter();
        let (least, capability, call) = fits.next()?;
        let named = utterance.words.iter().any(|word| word.quoted);
        match fits.next().filter(|(cost, ..)| *cost == least) {
            Some((_, other, _)) if named => {
                Some(self.ask_which_is_meant(utterance, &[&capability.phrases, &other.phrases]))
            }
            _ => {
                let user_request = capability.phrases.finish_request(call.user_request());
                Some(Interpretation { is_whole: true, ..user_request.into() })
            }
        }
    }

    /// Reads a request for a change after “actually” and the like.
    fn after_objection(&self, utterance: Utterance<'_>) -> Option<Interpretation> {
        let words = strip_politeness(strip_objection(utterance.words));
        let is_shorter = words.len() < utterance.words.len() && !words.is_empty();
        let found = is_shorter.then(|| self.match_lines(Utterance { words, ..utterance }, false))??;
        matches!(found.user_request, UserRequest::Change { .. }).then_some(found)
    }

    /// Recognises requests that people make of bots but that this one cannot serve. If one capability
    /// cannot serve a request, another one that the thread is about may.
    fn unsupported(&self, utterance: Utterance<'_>) -> Option<Interpretation> {
        let words = utterance.words;
        let in_topic = |capability: &&CapabilityPhrases| utterance.topic_of(capability.owner).is_some();
        let serves =
            |other: &CapabilityPhrases| other.lines.fit(utterance, other.phrases, other.owner, false).is_some();
        let by_capability = || {
            let topic = self.capabilities.iter().find(in_topic);
            self.capabilities.iter().find_map(|capability| {
                let rest = after(words, capability.phrases.vocabulary().unsupported_requests)?;
                let is_served = topic.is_some_and(|topic| topic.owner != capability.owner && serves(topic));
                (!is_served).then_some(rest)
            })
        };
        let rest = after(words, talk::UNSUPPORTED_REQUESTS).or_else(by_capability)?;
        // “Play” alone may be the name of something.
        let has_object = !rest.is_empty() || lower(words).contains(' ');
        let about = after(words, "shut down").is_some() && rest.iter().any(|word| word.kind.is_some());
        (has_object && !about).then(|| Interpretation { confidence: 0.9, ..UserRequest::Unsupported.into() })
    }

    /// Corrects the first word, if it is one typing mistake away from a verb, and reads the words
    /// with it.
    fn with_corrected_verb(&self, utterance: Utterance<'_>) -> Option<Interpretation> {
        const FIRST: &str = "create delete update change rename remove list show explain describe simulate initialize find \
            what which test enroll schedule archive cancel start stop";
        let (first, rest) = utterance.words.split_first()?;
        if first.quoted || first.lower.len() < 4 || rest.is_empty() {
            return None;
        }
        let corrected = FIRST.split(' ').find(|corrected| strsim::damerau_levenshtein(corrected, &first.lower) == 1)?;
        let mut corrected_words = utterance.words.to_vec();
        corrected.clone_into(&mut corrected_words[0].lower);
        let utterance = Utterance { words: &corrected_words, ..utterance };
        let found =
            self.match_lines(utterance, true).or_else(|| self.phrases().find_map(|phrases| phrases.first(utterance)));
        let found = found.or_else(|| self.whole_request(&corrected_words, utterance))?;
        Some(Interpretation { confidence: found.confidence.min(0.8), ..found })
    }

    /// Returns the value of a parameter that is written in these words.
    pub(super) fn value(&self, parameter: &str, words: &[Word]) -> Value {
        self.phrases().map(|phrases| phrases.value(parameter, words)).next().unwrap_or_else(|| text(words).into())
    }

    /// Reads a change by position.
    pub(super) fn change(&self, utterance: Utterance<'_>) -> Option<Interpretation> {
        self.match_lines(utterance, false).or_else(|| self.phrases().find_map(|phrases| phrases.change(utterance)))
    }

    /// Reads a whole request. While a question is open, a bare name is more likely its answer than a request to see
    /// something.
    fn whole_request(&self, all: &[Word], utterance: Utterance<'_>) -> Option<Interpretation> {
        let Utterance { words, situation, is_question } = utterance;
        let found = talk::talk(all)
            .or_else(|| talk::talk(words))
            .map(Interpretation::from)
            .or_else(|| self.phrases().find_map(|phrases| phrases.question(utterance)))
            .or_else(|| answers::undo_or_retry(words, situation))
            .or_else(|| self.match_lines(utterance, false))
            .or_else(|| self.phrases().find_map(|phrases| phrases.change(utterance)))
            .or_else(|| own_terms::own_term(words).map(|(name, meaning)| UserRequest::Term { name, meaning }.into()))?;
        let waiting = situation.draft.as_ref().is_some_and(|draft| draft.asked.is_some());
        let begun = situation.draft.as_ref().is_some_and(|draft| self.makes_new(&draft.action));
        match found.user_request {
            UserRequest::Talk(Talk::NothingAsked)
                if waiting && situation.open_cards.is_empty() && talk::is_postponement(&lower(words)) =>
            {
                Some(Interpretation::nothing()) // not an answer either: the question stays open
            }
            // “Looks good” is about what is known so far, and no value: the question stays open.
            UserRequest::Talk(Talk::NothingAsked | Talk::Remark) if waiting => Some(Interpretation::nothing()),
            // “Yes” continues without a part of a description that was not understood.
            UserRequest::Talk(Talk::NothingAsked) if begun => None,
            UserRequest::Talk(Talk::NothingAsked) if !situation.open_cards.is_empty() => {
                Some(UserRequest::Talk(Talk::CardWaits).into())
            }
            UserRequest::Talk(Talk::Why) if talk::ends_with_a_done_change(situation) => {
                Some(UserRequest::Read { tool: talk::EXECUTION_LOG.to_owned(), arguments: Map::new() }.into())
            }
            UserRequest::Term { .. } if waiting && !is_question && words.len() == 1 => None,
            _ => Some(found),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phrases::Vocabulary;

    /// Phrases that read a message with “only” as two requests: one with what follows it, and a start.
    struct InSteps;

    impl Phrases for InSteps {
        fn vocabulary(&self) -> Vocabulary {
            Vocabulary {
                lines: "change start_document\n    start <document:thing>\nchange limit_document\n    limit <document:thing> to class <class:word>\n",
                ..Vocabulary::new(&["document"])
            }
        }

        fn in_steps(&self, utterance: Utterance<'_>) -> Option<Vec<String>> {
            let at = utterance.words.iter().position(|word| word.is("only"))?;
            let limit = format!("limit “A” to {}", text(&utterance.words[at + 1..]));
            Some(vec![limit, "start “A”".to_owned()])
        }
    }

    #[test]
    fn only_steps_that_read_back_as_changes_are_offered() {
        let book = Book::default().with("documents", &InSteps).unwrap();
        let options = |said: &str| match book
            .understand(&Situation { said: said.to_owned(), ..Situation::default() })
            .user_request
        {
            UserRequest::Unclear { options, .. } => options,
            other => panic!("{said}: {other:?}"),
        };
        assert_eq!(options("start “A” only class 5B"), ["limit “A” to class 5B, then start “A”"]);
        assert_eq!(options("start “A” only “for the kids in 5B”"), [""; 0]);
    }
}
