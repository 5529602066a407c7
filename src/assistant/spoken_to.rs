//! Decides, without a model and before anything else is done, if a message that does not mention the bot is meant for
//! it.
//!
//! People in a thread also talk with each other. Without a mention, the bot listens to two kinds of messages: an answer
//! to its question from the person it asked and, as long as only one person has written in the thread, the requests of
//! that person. A plain yes, no or stop is handled elsewhere. Everything else is talk: it costs nothing, and its words
//! are not kept.

use countersign_core::ids::UserId;
use countersign_graph::action::ActionRecord;
use countersign_understanding::{self as understanding, Meaning, phrase_book::PhraseBook, situation::DraftQuestion};

use super::{conditions, offered, state::AgentState, view};

/// Words for numbers.
const NUMBER_WORDS: &[&str] = &[
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "twelve", "twenty", "fifty",
    "hundred", "thousand",
];

/// The maximum number of people remembered as writers in a thread; it matters only if there is more than one.
const MAX_SPEAKERS: usize = 3;

/// Words that mark a message as talk with other people or about the subject.
const TALK: &[&str] = &[
    "i",
    "i'm",
    "i'd",
    "i'll",
    "i've",
    "im",
    "we",
    "we're",
    "we'd",
    "we'll",
    "we've",
    "let's",
    "lets",
    "let",
    "you",
    "you're",
    "your",
    "he",
    "she",
    "they",
    "them",
    "him",
    "her",
    "me",
    "us",
    "my",
    "our",
    "his",
    "their",
    "think",
    "thought",
    "guess",
    "suppose",
    "maybe",
    "perhaps",
    "hm",
    "hmm",
    "lol",
    "haha",
    "wow",
    "agree",
    "agreed",
    "should",
    "would",
    "could",
    "might",
    "wait",
    "sounds",
    "looks",
    "seems",
    "feels",
    "good",
    "great",
    "nice",
    "fine",
    "cool",
    "sure",
    "ok",
    "okay",
    "thanks",
    "thank",
    "sorry",
    "yeah",
    "yes",
    "yep",
    "no",
    "nope",
    "not",
    "don't",
    "doesn't",
    "isn't",
    "won't",
    "can't",
    "anyone",
    "everyone",
    "somebody",
    "someone",
    "nobody",
    "who",
    "why",
    "how",
    "what",
    "when",
    "because",
    "but",
    "though",
    "interesting",
    "right",
    "exactly",
    "true",
    "same",
    "me",
    "lunch",
    "meeting",
    "call",
    "later",
    "busy",
];

/// Phrases that may precede an answer.
const ANSWER_OPENINGS: &[&str] = &[
    "it should be",
    "it will be",
    "it is",
    "it's",
    "that would be",
    "let us use",
    "let's use",
    "let us say",
    "let's say",
    "i think",
    "i would say",
    "i'd say",
    "please use",
    "no",
    "yes",
    "ok",
    "okay",
    "actually",
    "sure",
    "well",
    "so",
    "then",
    "hm",
    "hmm",
    "um",
    "uh",
    "oh",
    "oops",
    "sorry",
    "wait",
    "rather",
    "i meant",
    "i mean",
    "make that",
    "change it to",
    "change that to",
    "please",
    "use",
    "call it",
    "name it",
    "the name is",
    "make it",
    "we want",
    "how about",
    "with",
];

/// Words that may follow an answer.
const ANSWER_ENDINGS: &[&str] = &["actually", "instead", "rather", "please", "then", "though", "sorry"];

/// Phrases that mark a message as a correction of what was said before.
const CORRECTION_OPENINGS: &[&str] = &[
    "oops",
    "i meant",
    "i mean",
    "actually",
    "make that",
    "make it",
    "change it to",
    "change that to",
    "no make it",
    "no i meant",
    "no use",
    "sorry i meant",
    "rather",
];

/// Words that mark a request if they are among its first three.
const REQUEST_WORDS: &[&str] = &[
    "please",
    "can",
    "could",
    "show",
    "tell",
    "list",
    "give",
    "explain",
    "what",
    "which",
    "how",
    "when",
    "who",
    "why",
    "start",
    "stop",
    "create",
    "change",
    "update",
    "delete",
    "rename",
    "compare",
    "check",
    "look",
    "find",
    "test",
    "undo",
    "again",
    "try",
    "pause",
    "resume",
    "archive",
    "schedule",
    "summarize",
    "describe",
    "is",
    "are",
    "does",
    "do",
    "did",
];

impl AgentState {
    /// Notes that a person wrote in the thread. `to_another` is true if the message was addressed to another person. As
    /// long as nobody else writes, the thread is in company only until the person speaks to the bot again: a message
    /// may look as if it begins with a name.
    pub(super) fn note_presence(&mut self, by: &UserId, to_another: bool) {
        self.in_company |= to_another;
        if self.speakers.len() < MAX_SPEAKERS && !self.speakers.contains(by) {
            self.speakers.push(by.clone());
        }
    }

    /// Returns true if a message that does not mention the bot is meant for it. `open` are the open cards of the
    /// thread.
    pub(super) fn is_spoken_to(&self, book: &PhraseBook, by: &UserId, text: &str, open: &[ActionRecord]) -> bool {
        let words = lowercase_words(text);
        if words.is_empty() {
            return false;
        }
        if self.takes_forget_from(by) && understanding::says_forget(text) {
            return true;
        }
        let asked_of = self.asked_of.as_ref().or(self.turn.by.as_ref());
        if asked_of == Some(by) && self.is_answer(book, text, &words) {
            return true;
        }
        if self.speakers.iter().any(|speaker| speaker != by) {
            return false;
        }
        if self.in_company {
            let situation = view::situation_for_message(self, by, text, open);
            return !is_talk(&words) && book.meaning(&situation) == Meaning::Request;
        }
        if self.asks_about_rest_of_plan(text) {
            return true;
        }
        let asks = text.trim_end().ends_with('?');
        // Nobody else is in the thread, so the message is for the bot. If it is not an answer, the bot asks again.
        let begun = self.draft.as_ref().is_some_and(|draft| book.makes_new(&draft.action));
        let agrees = begun && matches!(words.as_slice(), [word] if AGREEMENTS.contains(&word.as_str()));
        let waits_for_it = self.waits_for_an_answer() || begun;
        if asked_of == Some(by) && waits_for_it && !asks && (agrees || !is_talk(&words)) {
            return true;
        }
        let waits = !open.is_empty() || self.draft.is_some() || !self.offered.is_empty();
        let situation = view::situation_for_message(self, by, text, open);
        let can_correct = !open.is_empty() || situation.turned_down.is_some();
        match book.meaning(&situation) {
            Meaning::Request | Meaning::Agreement => true,
            Meaning::Correction if self.waits_for_an_answer() => asked_of == Some(by) && begins_correction(&words),
            Meaning::Correction => can_correct || !is_talk(&words),
            Meaning::Drop => waits,
            Meaning::Chat => !waits,
            // “Running Test instead”: names of things are not known here.
            Meaning::Nothing
                if situation.on_card.is_some() && !asks && !is_talk(&words) && understanding::is_retraction(text) =>
            {
                true
            }
            Meaning::Nothing => {
                let begins = words.iter().take(3).any(|word| REQUEST_WORDS.contains(&word.as_str()));
                let asks_for_change = !is_talk(&words) && book.begins_change(text);
                asks_for_change || if waits { asks && begins } else { asks || begins }
            }
        }
    }

    /// Notes that the author of this turn speaks to the bot. If nobody else has written, they are alone with it again.
    pub(super) fn note_spoken_to(&mut self, by: &UserId) {
        self.in_company &= self.speakers.iter().any(|speaker| speaker != by);
    }

    fn waits_for_an_answer(&self) -> bool {
        self.draft.as_ref().is_some_and(|draft| draft.asked.is_some())
    }

    /// Returns true if these words answer the last question.
    fn is_answer(&self, book: &PhraseBook, text: &str, words: &[String]) -> bool {
        if text.trim_end().ends_with('?') {
            return false;
        }
        if !self.offered.is_empty()
            && offered::picked_words(&self.offered, self.turn.final_response.as_deref(), text).is_some()
        {
            return true;
        }
        if !self.offered.is_empty() && understanding::drops_any(text) {
            return true;
        }
        if self.conditional_plan().is_some() && conditions::answer(text).is_some() {
            return true;
        }
        let Some(draft) = &self.draft else { return false };
        if understanding::is_cancellation(text) || understanding::ends_draft(text) {
            return true;
        }
        let rest = without_openings(words);
        if book.only_parts(&rest.join(" ")) || book.only_parts(text) {
            return true;
        }
        let Some(asked) = &draft.asked else { return false };
        let plain = words.join(" ");
        if asked.options.iter().any(|option| lowercase_words(option).join(" ") == plain) {
            return true;
        }
        is_possible_answer(asked, text, rest)
    }
}

/// Returns true if the words have the form of an answer to the question.
fn is_possible_answer(asked: &DraftQuestion, text: &str, words: &[String]) -> bool {
    let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    let digits = words.iter().any(|word| word.contains(|c: char| c.is_ascii_digit()));
    let at_most = |count: usize| !words.is_empty() && words.len() <= count;
    let resembles_option = |likeness: f64| {
        let said = words.join(" ");
        asked
            .options
            .iter()
            .any(|option| strsim::normalized_damerau_levenshtein(&option.to_lowercase(), &said) > likeness)
    };
    let parameter = asked.parameter.as_str();
    // A description may contain any words, unless it begins like talk or addresses a person.
    if parameter == "description" {
        return !is_talk(&words[..words.len().min(1)]) && !has(&["you", "your"]);
    }
    if is_talk(words) {
        return false;
    }
    match parameter {
        "weights" => (digits || has(&["equal", "equally", "even", "evenly", "half"])) && at_most(8),
        "conditions" => (text.contains([',', '/']) || has(&["and", "vs", "versus"]) || at_most(3)) && at_most(14),
        "decision_points" => (text.contains('/') || has(&["site", "target"])) && at_most(14),
        "start_on" | "end_on" => (digits || has(DAYS)) && at_most(8),
        "limit" | "users" | "count" | "number" => (digits || has(NUMBER_WORDS)) && at_most(5),
        "unit" => {
            has(&["individual", "group", "person", "user", "student", "class", "school", "teacher"]) && at_most(5)
        }
        "context" => at_most(2) || resembles_option(0.7),
        "name" | "new_name" => at_most(8),
        _ => resembles_option(0.6) || at_most(5),
    }
}

const DAYS: &[&str] = &[
    "today",
    "tomorrow",
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
    "week",
    "month",
    "noon",
    "midnight",
    "morning",
    "evening",
    "now",
];

/// The words that alone go on with a draft.
const AGREEMENTS: [&str; 6] = ["yes", "yeah", "yep", "ok", "okay", "sure"];

fn is_talk(words: &[String]) -> bool {
    words.iter().any(|word| TALK.contains(&word.as_str()))
}

/// Returns true if the words, after any hesitation, begin like a correction.
fn begins_correction(words: &[String]) -> bool {
    let hesitations =
        words.iter().take_while(|word| ["hm", "hmm", "um", "uh", "oh", "wait", "well"].contains(&word.as_str()));
    let rest = words[hesitations.count()..].join(" ");
    let begins = |phrase: &&str| rest.strip_prefix(phrase).is_some_and(|after| after.starts_with(' '));
    CORRECTION_OPENINGS.iter().any(begins)
}

/// Returns the words without those that may stand around an answer.
fn without_openings(words: &[String]) -> &[String] {
    let mut rest = words;
    while let Some((last, before)) = rest.split_last()
        && !before.is_empty()
        && ANSWER_ENDINGS.contains(&last.as_str())
    {
        rest = before;
    }
    while let Some(length) = ANSWER_OPENINGS.iter().find_map(|phrase| {
        let phrase: Vec<&str> = phrase.split(' ').collect();
        (rest.len() > phrase.len() && rest.iter().zip(&phrase).all(|(word, other)| word == other))
            .then_some(phrase.len())
    }) {
        rest = &rest[length..];
    }
    rest
}

/// Splits the text into words in lower case, without the punctuation around them.
fn lowercase_words(text: &str) -> Vec<String> {
    let text = text.to_lowercase().replace('’', "'");
    let punctuation = |c: char| !c.is_alphanumeric();
    text.split_whitespace()
        .map(|word| word.trim_matches(punctuation).to_owned())
        .filter(|word| !word.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use crate::nodes::harness;
    use countersign_core::reply::Choice;
    use countersign_understanding::situation::Draft;

    fn book() -> Arc<PhraseBook> {
        harness::book()
    }

    /// Returns a thread in which ana was asked for this parameter.
    fn asks_for(parameter: &str, options: &[&str]) -> AgentState {
        let mut state = AgentState::default();
        state.note_presence(&"ana".into(), false);
        state.turn.by = Some("ana".into());
        state.keep_draft(Draft {
            action: "create_experiment".to_owned(),
            asked: Some(DraftQuestion {
                parameter: parameter.to_owned(),
                options: options.iter().map(|option| (*option).to_owned()).collect(),
                ..DraftQuestion::default()
            }),
            ..Draft::default()
        });
        state
    }

    const PARAMETERS: [&str; 9] =
        ["weights", "conditions", "decision_points", "start_on", "limit", "unit", "context", "name", "experiment"];

    #[test]
    fn an_answer_of_the_person_asked_is_heard_in_company() {
        for (parameter, options, answers) in [
            (
                "weights",
                &[][..],
                &["60/40", "equal", "it should be 60/40", "I think 70/30", "50/50 please", "equally"][..],
            ),
            (
                "conditions",
                &[],
                &["control and treatment", "control, hints, both", "A and B", "use control and variant"],
            ),
            ("decision_points", &[], &["SelectSection / area_model", "site A, target B"]),
            (
                "context",
                &["assign-prog", "mathstream"],
                &["assign-prog", "mathstream", "it should be mathstream", "Mathstream."],
            ),
            ("name", &[], &["Pilot", "call it Pilot Two", "Spring hints 2026"]),
            ("start_on", &[], &["2026-05-04", "next monday", "tomorrow at noon"]),
            ("unit", &["individual", "group"], &["individual", "by class group"]),
            ("limit", &[], &["200", "200 users"]),
            ("experiment", &["Math Hints", "Running Test"], &["Math Hints", "Running Test", "the second pilot"]),
            ("description", &[], &["hints for the second chapter of algebra, shown after an error"]),
        ] {
            let mut state = asks_for(parameter, options);
            state.note_presence(&"bo".into(), true);
            for answer in answers {
                assert!(state.is_spoken_to(&book(), &"ana".into(), answer, &[]), "{parameter}: {answer}");
                assert!(
                    !state.is_spoken_to(&book(), &"bo".into(), answer, &[]),
                    "bo was not asked for {parameter}: {answer}"
                );
            }
            for ends in ["never mind", "no", "cancel that please"] {
                assert!(state.is_spoken_to(&book(), &"ana".into(), ends, &[]), "{parameter}: {ends}");
            }
        }
    }

    #[test]
    fn talk_is_no_answer_whatever_was_asked() {
        let openings = ["", "hm, ", "well ", "ok, ", "honestly, ", "no, ", "yes, ", "I think "];
        let lines = [
            "let me ask the others first",
            "I would wait until Monday",
            "what do you think about it?",
            "we should look at the data again",
            "60/40 would be safer for us",
            "they didn't like the last one",
            "did you talk to the teachers?",
            "that sounds good to me",
            "can we do this tomorrow?",
            "you decide, I am busy until Friday",
            "not sure, maybe bo knows",
            "thanks, that was quick",
            "is it the same as last year?",
            "we could also use the other school",
            "someone should check the numbers",
            "he said they were fine with it",
        ];
        let mut checked = 0;
        for parameter in PARAMETERS {
            let mut state = asks_for(parameter, &["assign-prog", "mathstream"]);
            state.note_presence(&"bo".into(), true);
            for line in openings.iter().flat_map(|opening| lines.iter().map(move |line| format!("{opening}{line}"))) {
                for by in ["ana", "bo", "cy"] {
                    checked += 1;
                    assert!(
                        !state.is_spoken_to(&book(), &by.into(), &line, &[]),
                        "{by}, asked for {parameter}: {line}"
                    );
                }
            }
        }
        assert!(checked > 3_000);
    }

    #[test]
    fn a_person_alone_who_was_asked_always_gets_a_reply() {
        let state = asks_for("parameter", &[]);
        let said =
            "weigh cmax against Volume at 1.5, then at 2, and at 3 L, for the demo, with both curves in one chart";
        assert!(state.is_spoken_to(&book(), &"ana".into(), said, &[]));
        assert!(!state.is_spoken_to(&book(), &"bo".into(), said, &[]), "bo was not asked");
    }

    #[test]
    fn a_person_alone_is_heard_about_a_description_that_is_partly_understood() {
        let mut state = asks_for("context", &[]);
        if let Some(draft) = &mut state.draft {
            draft.asked = None;
        }
        for said in ["instead end on 15 Dec", "yes", "ok", "15 December"] {
            assert!(state.is_spoken_to(&book(), &"ana".into(), said, &[]), "{said}");
            assert!(!state.is_spoken_to(&book(), &"bo".into(), said, &[]), "bo: {said}");
        }
        assert!(!state.is_spoken_to(&book(), &"ana".into(), "we should look at the data again", &[]));
    }

    #[test]
    fn a_hesitant_correction_of_a_draft_is_heard() {
        let state = asks_for("decision_points", &["SelectSection / area_model"]);
        for said in ["hmm, make that 60/40 actually", "hm make it 60/40", "60/40 instead", "oops I meant 60/40"] {
            assert!(state.is_spoken_to(&book(), &"ana".into(), said, &[]), "{said}");
            assert!(!state.is_spoken_to(&book(), &"bo".into(), said, &[]), "bo: {said}");
        }
        let mut state = state;
        state.note_presence(&"bo".into(), true);
        assert!(state.is_spoken_to(&book(), &"ana".into(), "hmm, make that 60/40 actually", &[]), "in company");
        for said in ["hmm, let me ask bo", "hm, 60/40 would be safer for us"] {
            assert!(!state.is_spoken_to(&book(), &"ana".into(), said, &[]), "{said}");
        }
    }

    #[test]
    fn what_begins_like_a_change_is_heard_while_something_waits() {
        let mut state = AgentState::default();
        state.note_presence(&"ana".into(), false);
        state.offered = vec![Choice::new("The first", "start Math Hints")];
        for said in ["set the colour to blue", "please rename the whole thing somehow", "actually put it over there"] {
            assert!(state.is_spoken_to(&book(), &"ana".into(), said, &[]), "{said}");
        }
        for said in ["I would set the colour to blue", "a strange day", "blue"] {
            assert!(!state.is_spoken_to(&book(), &"ana".into(), said, &[]), "{said}");
        }
    }

    #[test]
    fn a_person_alone_with_the_bot_is_heard_until_another_writes() {
        let mut state = AgentState::default();
        state.note_presence(&"ana".into(), false);
        let requests = ["start Running Test", "what conditions does assign-prog have?", "and the other one?", "thanks"];
        for request in requests {
            assert!(state.is_spoken_to(&book(), &"ana".into(), request, &[]), "{request}");
            assert!(!state.is_spoken_to(&book(), &"bo".into(), request, &[]), "{request}");
        }
        assert!(!state.is_spoken_to(&book(), &"ana".into(), "interesting, that was quicker than last year", &[]));
        state.note_presence(&"bo".into(), false);
        for request in requests {
            assert!(!state.is_spoken_to(&book(), &"ana".into(), request, &[]), "{request}");
        }
    }

    #[test]
    fn a_word_to_somebody_who_does_not_answer_silences_the_thread_for_talk_only() {
        let (ana, bo) = (UserId::from("ana"), UserId::from("bo"));
        let mut state = AgentState::default();
        state.note_presence(&ana, true);
        for talk in ["are you there?", "I would start it on Monday", "and the other one?", "thanks"] {
            assert!(!state.is_spoken_to(&book(), &ana, talk, &[]), "{talk}");
        }
        assert!(state.is_spoken_to(&book(), &ana, "start Running Test", &[]));
        state.note_spoken_to(&ana);
        assert!(state.is_spoken_to(&book(), &ana, "and the other one?", &[]), "alone with the bot again");

        state.note_presence(&bo, false);
        state.note_presence(&ana, true);
        state.note_spoken_to(&ana);
        assert!(state.in_company && !state.is_spoken_to(&book(), &ana, "start Running Test", &[]), "bo is there");
    }
}
