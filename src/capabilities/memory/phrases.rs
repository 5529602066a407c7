//! The phrases about notes: `remember that I work in mathstream`, `what do you remember about me?`, `forget it`.

use countersign_understanding::{
    corrections::Correction,
    lines::Candidate,
    phrases::{Phrases, Stage, Utterance, Vocabulary},
    user_request::{Interpretation, UserRequest},
    words::{Word, after, sentence, skip},
};

use super::{recall, remember};

/// The maximum length of a note, in words.
const MAX_WORDS: usize = 60;

/// The minimum length of a fact that stands before “please remember”, in words.
const MIN_FACT: usize = 3;

/// The maximum length of what takes the place of a part of a note, in words.
const MAX_CORRECTION: usize = 12;

/// The phrases about notes.
pub(super) struct OfMemory;

impl Phrases for OfMemory {
    fn vocabulary(&self) -> Vocabulary {
        const ENDED_BY: &[(&str, &str)] = &[("remember", "forget that <note>"), ("recall_notes", "forget my note")];
        Vocabulary {
            lines: include_str!("phrases.txt"),
            greeting: "",
            ended_by: ENDED_BY,
            ..Vocabulary::new(&["note", "notes"])
        }
    }

    /// Reads a correction of the last note. Asks about a state that is to be put back later: a note only keeps the words.
    fn read(&self, stage: Stage, utterance: Utterance<'_>) -> Option<Interpretation> {
        if stage == Stage::Correction {
            return correction(utterance);
        }
        let words = utterance.words;
        let state = after(words, "remember|keep in mind|note down|note|save|store|preserve")
            .filter(|rest| stage == Stage::First && is_state(rest))?;
        let question = "I can't save a state and put it back later, except where a snapshot can be taken. Should I keep your \
            words as a note instead?";
        let note = format!("remember that we may want to get back to this: {}", sentence(state));
        Some(Interpretation::unclear(question, vec![note]))
    }

    /// Returns all following words as the note.
    fn slot(&self, kind: &str, Utterance { words, .. }: Utterance<'_>) -> Vec<Candidate> {
        let begins = words.first().is_some_and(|first| first.lower != "that");
        match kind {
            "fact" => (MIN_FACT..=words.len().min(MAX_WORDS)).filter_map(|length| fact(&words[..length])).collect(),
            "note" if is_state(words) => Vec::new(),
            "note" if begins => {
                // The longest note costs least: other phrases may skip a word such as “my”, but it belongs to the note.
                let cost = MAX_WORDS.saturating_sub(words.len());
                vec![Candidate { value: sentence(words).into(), taken: words.len(), cost }]
            }
            _ => Vec::new(),
        }
    }
}

/// Reads a fact that stands before “please remember”.
fn fact(words: &[Word]) -> Option<Candidate> {
    const LEADS: &str =
        "by the way|btw|fyi|note|also|and|so|ok|well|just so you know|for the record|for your information|,|:";
    const NO_FACT: &[&str] = &[
        "what", "which", "who", "when", "where", "why", "how", "do", "does", "did", "can", "could", "if", "unless",
        "you", "don't", "please", "is", "are",
    ];
    let mut told = words;
    while let Some(rest) = after(told, LEADS).filter(|rest| !rest.is_empty()) {
        told = rest;
    }
    // What is to be done later is no fact.
    let is_conditional = told.iter().any(|word| word.any(&["when", "once", "if", "unless", "until"]));
    let is_end = told.last().is_some_and(|last| last.any(&[",", "and", "so", "please"]));
    let tells = told.iter().skip(1).any(|word| word.any(remember::TELLS));
    let is_fact = told.len() >= MIN_FACT && tells && !is_end && !is_conditional && !told[0].any(NO_FACT);
    // The words are used up, whichever they are.
    is_fact.then(|| Candidate::known(sentence(told), words.len()))
}

/// Reads “actually it's 3A and 3C” about the note on the card, the one that was just written, or those that were listed.
fn correction(utterance: Utterance<'_>) -> Option<Interpretation> {
    const IS: &str = "it is|it's|its|it should be|it was|that is|that's|they are|they're|those are|these are|this is|\
        should be|it must be|must be";
    let Utterance { situation, is_question, .. } = utterance;
    if is_question || situation.draft.as_ref().is_some_and(|draft| draft.asked.is_some()) {
        return None;
    }
    let found = Correction::of(utterance.words);
    let named = after(found.value, IS);
    let value = named.unwrap_or(found.value);
    if value.is_empty() || value.len() > MAX_CORRECTION {
        return None;
    }
    let on_card = situation.in_hand().filter(|change| change.action == remember::NAME);
    let last = situation.aside.as_ref().or(situation.topic.as_ref()).filter(|_| situation.in_hand().is_none());
    let written = last.filter(|last| last.call == remember::NAME);
    let Some(old) = on_card.map(|change| &change.params).or(written.map(|last| &last.parameters)) else {
        let is_listed = last.is_some_and(|last| last.call == recall::NAME);
        return (is_listed && named.is_some() && found.objects).then(|| change([("correct", sentence(value))]));
    };
    let old = old.get("note")?.as_str()?;
    let note = remember::corrected(old, &sentence(value))?;
    // Without “it is”, it has to resemble what it takes the place of.
    let is_meant = named.is_some() || found.is_marked && remember::shares_word(old, &sentence(value));
    if !is_meant {
        return None;
    }
    Some(match on_card {
        Some(_) => Interpretation::update("note", note),
        None => change([("note", note), ("instead_of", old.to_owned())]),
    })
}

fn change<const N: usize>(given: [(&str, String); N]) -> Interpretation {
    let given = given.map(|(key, value)| (key.to_owned(), value.into()));
    UserRequest::change(remember::NAME, given.into_iter().collect()).into()
}

/// Returns true if the words name a state of something, as in “the present state of X so that I can get back to it”, and
/// tell no fact about it.
fn is_state(words: &[Word]) -> bool {
    const STATES: &str = "state|states|values|settings|setup|configuration|parameters|parameter values|weights|version";
    let named = skip(words, "the|its|their|our|my|this");
    let current = skip(named, "present|current|exact|existing|whole");
    let goes_back = words.iter().any(|word| word.any(&["back", "restore", "return", "revert", "undo", "reset"]));
    let tells = words.iter().any(|word| word.any(&["is", "are", "was", "were", "should", "has", "have"]));
    after(current, STATES).is_some() && !tells && (goes_back || current.len() < named.len())
}

#[cfg(test)]
mod tests {
    use super::OfMemory;
    use countersign_understanding::{
        checking::{check, check_offers},
        phrase_book::PhraseBook,
        situation::{Draft, Situation, Topic},
    };
    use serde_json::Map;

    #[test]
    fn each_suggestion_is_read() {
        check_offers(&PhraseBook::default().with("memory", &OfMemory).unwrap(), &Situation::default());
    }

    #[test]
    fn the_last_note_is_meant_before_things() {
        let parameters = Map::from_iter([("note".to_owned(), "I work in mathstream".into())]);
        let last = Topic { capability: "memory".to_owned(), call: "remember".to_owned(), parameters };
        let situation =
            Situation { aside: Some(last), last_subject: Some("Math Hints".to_owned()), ..Situation::default() };
        let forgotten = r#"forget {"note":"I work in mathstream"}"#;
        check(
            &PhraseBook::default().with("memory", &OfMemory).unwrap(),
            &situation,
            &[("remove it again", forgotten), ("delete that one", forgotten), ("cancel it", forgotten)],
        );
    }

    #[test]
    fn notes_are_written_listed_and_deleted() {
        check(
            &PhraseBook::default().with("memory", &OfMemory).unwrap(),
            &Situation::default(),
            &[
                ("remember that I work in mathstream", r#"remember {"note":"I work in mathstream"}"#),
                ("please remember that I work in mathstream", r#"remember {"note":"I work in mathstream"}"#),
                ("remember I usually use 60/40", r#"remember {"note":"I usually use 60/40"}"#),
                ("remember my favourite colour is blue", r#"remember {"note":"my favourite colour is blue"}"#),
                ("what do you remember about me?", "read recall_notes"),
                ("what do you know about me", "read recall_notes"),
                ("show me my notes", "read recall_notes"),
                (
                    "remember the present state of Math Hints so that I can get back to it",
                    "unclear: remember that we may want to get back to this: the present state of Math Hints so that I can \
                     get back to it",
                ),
                (
                    "remember that we may want to get back to this: the state of Math Hints",
                    r#"remember {"note":"we may want to get back to this: the state of Math Hints"}"#,
                ),
                ("remember the current weights are 60/40", r#"remember {"note":"the current weights are 60/40"}"#),
                ("forget my note", "forget {}"),
                ("delete that note", "forget {}"),
                ("remove my last note again", "forget {}"),
                ("please keep that in mind", "remember {}"),
                ("remember that", "remember {}"),
                ("forget everything", r#"forget {"note":"everything"}"#),
                ("forget everything you remember about me", r#"forget {"note":"everything"}"#),
                ("forget that I work in mathstream", r#"forget {"note":"I work in mathstream"}"#),
            ],
        );
    }
    #[test]
    fn a_fact_may_stand_before_the_request_to_remember_it() {
        check(
            &PhraseBook::default().with("memory", &OfMemory).unwrap(),
            &Situation::default(),
            &[
                (
                    "by the way, our pilot classes are 3A and 3B, please remember",
                    r#"remember {"note":"our pilot classes are 3A and 3B"}"#,
                ),
                ("I teach class 7C, keep that in mind", r#"remember {"note":"I teach class 7C"}"#),
                ("we use 60/40, can you remember that", r#"remember {"note":"we use 60/40"}"#),
                ("do you remember", "unclear"),
                ("stop it when it is done, remember", "unclear"),
                ("can you forget all that", r#"forget {"note":"everything"}"#),
                ("delete what you know about me", r#"forget {"note":"everything"}"#),
            ],
        );
    }

    #[test]
    fn a_note_is_corrected() {
        let note = Map::from_iter([("note".to_owned(), "our classes are 3A and 3B".into())]);
        let last = |call: &str, parameters: Map<String, serde_json::Value>| {
            let topic = Topic { capability: "memory".to_owned(), call: call.to_owned(), parameters };
            Situation { topic: Some(topic), ..Situation::default() }
        };
        let book = PhraseBook::default().with("memory", &OfMemory).unwrap();
        let other = r#"remember {"instead_of":"our classes are 3A and 3B","note":"our classes are 3A and 3C"}"#;
        let written = last("remember", note.clone());
        check(
            &book,
            &written,
            &[
                ("actually its 3A and 3C", other),
                ("no, 3A and 3C", other),
                ("sorry, they are 3A and 3C", other),
                ("no, stop Math Hints", "unclear"),
                ("is it 3A and 3C?", "unclear"),
            ],
        );
        let on_card = Situation { on_card: Some(Draft::begun("remember", note)), ..written };
        check(&book, &on_card, &[("actually its 3A and 3C", r#"update {"note":"our classes are 3A and 3C"}"#)]);
        let listed = last("recall_notes", Map::new());
        check(&book, &listed, &[("actually its 3A and 3C", r#"remember {"correct":"3A and 3C"}"#)]);
    }
}
