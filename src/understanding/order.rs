//! The order in which a message is read: tables of rules, of which the first that reads the words decides.
//!
//! A message is read twice if an existing name could be a part of a new one: first without names, then with them. Each
//! time, [`BEFORE_REQUESTS`] comes first, then the lines without a fixed order, then [`BY_POSITION`], and last what is left:
//! another language, or a question by what the message mentions. A person may therefore ask something else before answering
//! a question, and an answer is never taken for a request that it contains.

use serde_json::{Map, Value};

use super::{
    corrections::Correction,
    dates, doubts, follow_ups,
    intents::{self, Reading, declined},
    languages,
    leftovers::left_out::left_out,
    own_terms,
    phrase_book::{CapabilityPhrases, MAX_WORDS, PhraseBook},
    phrases::{Division, Phrases, Stage, Utterance},
    refusals,
    situation::Situation,
    talk,
    user_request::{Interpretation, Talk, UserRequest},
    words::{Word, after, lower, strip_politeness},
};

/// A rule: it reads the words, or leaves them to the next one.
type Rule = fn(&PhraseBook, Utterance<'_>) -> Option<Interpretation>;

/// What takes precedence over requests.
const BEFORE_REQUESTS: &[Rule] = &[
    follow_ups::ending,                        // turn it off
    |_, said| refusals::cancellation(said),    // never mind
    refusals::offered_answer,                  // a button below a question
    |_, said| refusals::both_cards(said),      // both
    doubts::request_beside_refusal,            // don't pause it, stop it
    doubts::reminder,                          // don't let me forget to stop it
    doubts::refusal,                           // don't start it
    doubts::considered_subject,                // should I start it?
    doubts::remark,                            // we stopped it last week
    |_, said| refusals::postponement(said),    // no, not yet
    PhraseBook::correction,                    // no, at 9:00
    follow_ups::other_value,                   // make it 50
    |book, said| book.match_lines(said, true), // a line about something whose name is known
    PhraseBook::unsupported,                   // send an email
    PhraseBook::suggested_steps,               // start it for class 5B only
];

/// What is read by the place of the words, if none of [`BEFORE_REQUESTS`] matches.
const BY_POSITION: &[Rule] = &[
    follow_ups::follow_up,                         // the same for Math Hints
    |book, said| book.read_at(Stage::First, said), // words that only look like a request
    PhraseBook::whole_request,
    PhraseBook::answer,                           // control and variant
    PhraseBook::with_corrected_words,             // satrt it, load the demo modell
    PhraseBook::after_objection,                  // actually, start it
    |_, said| talk::thanks(said),                 // thx, bo will look at it
    |_, said| refusals::about_card(said),         // does that delete the data too?
    |_, said| refusals::unclear_correction(said), // no, make it shinier
    |_, said| (said.situation.said.trim() == "?").then(|| UserRequest::Talk(Talk::Help).into()),
];

/// Whole requests. While a question is open, some talk is none ([`PhraseBook::whole_request`]).
const WHOLE_REQUESTS: &[Rule] = &[
    |_, said| {
        let read = |words| talk::talk(words, said.situation);
        read(said.typed).or_else(|| read(said.words)).map(Interpretation::from) // hello
    },
    |book, said| book.read_at(Stage::Question, said),
    |_, said| refusals::undo_or_retry(said), // undo that
    PhraseBook::change,
    |_, said| own_terms::own_term(said.words).map(|(name, meaning)| UserRequest::Term { name, meaning }.into()),
];

/// The verbs with which most requests begin.
const FIRST_VERBS: &str = "create delete update change rename remove list show explain describe simulate initialize find \
    what which test enroll schedule archive cancel start stop";

/// The minimum length of a word in which a typing mistake is corrected, in letters.
const MIN_TYPO_LENGTH: usize = 4;

/// Returns the result of the first rule that reads the words.
fn first_of(rules: &[Rule], book: &PhraseBook, utterance: Utterance<'_>) -> Option<Interpretation> {
    rules.iter().find_map(|rule| rule(book, utterance))
}

/// Verbs that refer to a change from an earlier message, whose words are not all in this one.
const REPEAT_VERBS: &str = "undo|revert|take back|put back|roll back|rollback|try|retry|repeat|ask again|ask";

impl PhraseBook {
    /// Returns the request of a message without references.
    pub(super) fn read(&self, situation: &Situation) -> Interpretation {
        let typed = self.words(&situation.said, &[]);
        let plain = Utterance::whole(&typed, situation);
        if plain.words.is_empty() {
            return Interpretation::nothing();
        }
        if plain.words.len() > MAX_WORDS {
            let words = plain.words.iter().filter(|word| !word.is(",")).count();
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
        if situation.names.is_empty() {
            return self.read_with_names(plain);
        }
        let named = self.words(&situation.said, &situation.names);
        self.read_without_names(plain).unwrap_or_else(|| self.read_with_names(Utterance::whole(&named, situation)))
    }

    /// Reads a new name, an answer or a correction, which may contain an existing name.
    fn read_without_names(&self, utterance: Utterance<'_>) -> Option<Interpretation> {
        const NEW: &[&str] = &["create", "make", "set", "build", "add", "new", "design", "draft", "creat"];
        if utterance.situation.in_hand().is_none() && !utterance.words[0].any(NEW) {
            return None;
        }
        let found = first_of(BEFORE_REQUESTS, self, utterance).unwrap_or_else(|| self.read_by_position(utterance));
        let is_meant = match &found.user_request {
            UserRequest::Change { action, .. } => self.makes_new(action),
            UserRequest::Update(_) | UserRequest::Drop | UserRequest::Talk(_) => true,
            _ => false,
        };
        is_meant.then(|| self.report_left_out(found, utterance))
    }

    /// Reads a message in which each known name is one word.
    fn read_with_names(&self, utterance: Utterance<'_>) -> Interpretation {
        let lead = first_of(BEFORE_REQUESTS, self, utterance);
        let read = if lead.is_some() { Vec::new() } else { self.read_unordered(utterance) };
        match read.as_slice() {
            [(_, Reading::Whole(user_request))] => return user_request.clone().into(),
            [(one, Reading::Whole(_)), (other, Reading::Whole(_)), ..] => {
                return self.ask_which_is_meant(utterance, &[one, other]);
            }
            _ => {}
        }
        let found = self.report_left_out(lead.unwrap_or_else(|| self.read_by_position(utterance)), utterance);
        // A question with a typing mistake in it.
        if matches!(found.user_request, UserRequest::Unclear { .. })
            && let Some(corrected) = self.with_corrected_words(utterance)
            && matches!(corrected.user_request, UserRequest::Read { .. })
        {
            return corrected;
        }
        match read.into_iter().next() {
            Some((_, Reading::Partly { left, used, follows, .. })) if self.is_worse_than_partial(&found, utterance) => {
                declined(&left, &used, follows)
            }
            _ if found.is_nothing()
                && let Some(answer) = languages::in_other_language(utterance.words) =>
            {
                Interpretation::unclear(answer, Vec::new())
            }
            _ if found.is_nothing() && utterance.situation.draft.is_none() => {
                let mentioned = self.read_at(Stage::Mention, utterance);
                mentioned.map_or(found, |mentioned| doubts::of_mention(self, mentioned.user_request, utterance))
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
            UserRequest::Read { tool, .. } => self.shows().any(|shows| shows.one.0 == *tool),
            _ => false,
        }
    }

    /// Reads words by position, if none of [`BEFORE_REQUESTS`] matches.
    fn read_by_position(&self, utterance: Utterance<'_>) -> Interpretation {
        first_of(BY_POSITION, self, utterance).unwrap_or_else(Interpretation::nothing)
    }

    /// Reads the words by the phrases of all capabilities.
    fn read_at(&self, stage: Stage, utterance: Utterance<'_>) -> Option<Interpretation> {
        self.phrases().find_map(|phrases| phrases.read(stage, utterance))
    }

    /// Reads a change by position.
    pub(super) fn change(&self, utterance: Utterance<'_>) -> Option<Interpretation> {
        self.match_lines(utterance, false).or_else(|| self.read_at(Stage::Change, utterance))
    }

    /// Reads a correction of the pending change. If the change is about things of its own capability,
    /// only that one can, since others would take its values for theirs.
    fn correction(&self, utterance: Utterance<'_>) -> Option<Interpretation> {
        let correct = |phrases: &'static dyn Phrases| phrases.read(Stage::Correction, utterance);
        match self.in_charge(utterance.situation).next() {
            Some((owner, true)) if !owner.vocabulary().greeting.is_empty() => correct(owner),
            _ => self.in_charge(utterance.situation).find_map(|(phrases, _)| correct(phrases)),
        }
    }

    /// Reads the answer to an open question.
    fn answer(&self, utterance: Utterance<'_>) -> Option<Interpretation> {
        self.in_charge(utterance.situation).find_map(|(phrases, _)| phrases.read(Stage::Answer, utterance))
    }

    /// Asks whether several requests are meant that together do what is asked for. The option is the whole message. It is
    /// only offered if it reads back as changes.
    fn suggested_steps(&self, utterance: Utterance<'_>) -> Option<Interpretation> {
        let steps = self.phrases().find_map(|phrases| match phrases.divided(utterance)? {
            Division::Suggested(steps) => Some(steps),
            Division::Combined(_) => None,
        })?;
        let is_change = |said: &String| {
            let found = self.understand(&Situation { said: said.clone(), ..utterance.situation.clone() });
            matches!(found.user_request, UserRequest::Change { .. } | UserRequest::Update(_))
        };
        if !steps.iter().all(is_change) {
            return None;
        }
        let steps = steps.join(", then ");
        Some(Interpretation::unclear(format!("That takes more than one step: {steps}. Should I start?"), vec![steps]))
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
        fits.sort_by_key(|(cost, capability, _)| (*cost, utterance.place_of(capability.owner).unwrap_or(usize::MAX)));
        let mut fits = fits.into_iter();
        let (least, capability, call) = fits.next()?;
        let named = utterance.words.iter().any(|word| word.quoted);
        match fits.next().filter(|(cost, ..)| *cost == least) {
            Some((_, other, _)) if named => {
                Some(self.ask_which_is_meant(utterance, &[&capability.phrases, &other.phrases]))
            }
            _ => {
                let user_request = capability.phrases.finish_request(call.user_request());
                Some(Interpretation::whole(user_request))
            }
        }
    }

    /// Reads a request after “actually”, “wait” and the like.
    fn after_objection(&self, utterance: Utterance<'_>) -> Option<Interpretation> {
        let words = strip_politeness(Correction::of(utterance.words).value);
        let is_shorter = words.len() < utterance.words.len() && !words.is_empty();
        let found = is_shorter.then(|| self.match_lines(Utterance { words, ..utterance }, false))??;
        matches!(found.user_request, UserRequest::Change { .. } | UserRequest::Read { .. }).then_some(found)
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

    /// Corrects the words that are one typing mistake away from a word of the lines, and reads the words with them. A word
    /// whose correction is not clear stays.
    fn with_corrected_words(&self, utterance: Utterance<'_>) -> Option<Interpretation> {
        let mut corrected_words = utterance.words.to_vec();
        let mut has_corrected = false;
        for (at, word) in corrected_words.iter_mut().enumerate() {
            if word.quoted || word.lower.len() < MIN_TYPO_LENGTH {
                continue;
            }
            // A request begins with a verb.
            let is_verb = |verb: &&str| at == 0 && strsim::damerau_levenshtein(verb, &word.lower) == 1;
            let verb = FIRST_VERBS.split(' ').find(is_verb);
            if let Some(corrected) = verb.or_else(|| self.corrected(&word.lower)) {
                corrected.clone_into(&mut word.lower);
                has_corrected = true;
            }
        }
        if !has_corrected {
            return None;
        }
        let utterance = Utterance { words: &corrected_words, typed: &corrected_words, ..utterance };
        let found = self.match_lines(utterance, true).or_else(|| self.read_at(Stage::First, utterance));
        let found = found.or_else(|| self.whole_request(utterance))?;
        Some(Interpretation { confidence: found.confidence.min(0.8), ..found })
    }

    /// Returns the one word of the lines that differs from this one, which is none of them, by one typing mistake.
    fn corrected(&self, typed: &str) -> Option<&str> {
        if typed.contains(|letter: char| !letter.is_alphabetic()) || self.line_words().contains(typed) {
            return None;
        }
        let is_near = |known: &&String| {
            known.chars().next() == typed.chars().next()
                && known.len().abs_diff(typed.len()) <= 1
                && strsim::damerau_levenshtein(known, typed) == 1
        };
        let near = self.line_words().iter().filter(is_near).map(String::as_str).collect::<Vec<_>>();
        match near.as_slice() {
            [one] => Some(one),
            // “Modell” is nearer to “model” than to “models”.
            several => several.iter().copied().find(|known| is_doubled(typed, known)),
        }
    }

    /// Reads a whole request. While a question is open, a bare name is more likely its answer than a request to see
    /// something.
    fn whole_request(&self, utterance: Utterance<'_>) -> Option<Interpretation> {
        let Utterance { words, situation, is_question, .. } = utterance;
        let found = first_of(WHOLE_REQUESTS, self, utterance)?;
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

/// Returns true if this word is the other one with one of its letters typed twice.
fn is_doubled(typed: &str, known: &str) -> bool {
    let letters: Vec<char> = typed.chars().collect();
    let without =
        |at: usize| letters.iter().enumerate().filter(|(n, _)| *n != at).map(|(_, letter)| letter).collect::<String>();
    (1..letters.len()).any(|at| letters[at] == letters[at - 1] && without(at) == known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{phrases::Vocabulary, words::text};

    /// Phrases that read a message with “only” as two requests: one with what follows it, and a start.
    struct InSteps;

    impl Phrases for InSteps {
        fn vocabulary(&self) -> Vocabulary {
            Vocabulary {
                lines: "change start_document\n    start <document:thing>\nchange limit_document\n    limit <document:thing> to class <class:word>\n",
                ..Vocabulary::new(&["document"])
            }
        }

        fn divided(&self, utterance: Utterance<'_>) -> Option<Division> {
            let at = utterance.words.iter().position(|word| word.is("only"))?;
            let limit = format!("limit “A” to {}", text(&utterance.words[at + 1..]));
            Some(Division::Suggested(vec![limit, "start “A”".to_owned()]))
        }
    }

    #[test]
    fn only_steps_that_read_back_as_changes_are_offered() {
        let book = PhraseBook::default().with("documents", &InSteps).unwrap();
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
