//! The phrases about notes: `remember that I work in mathstream`, `what do you remember about me?`, `forget it`.

use countersign_understanding::{
    lines::Candidate,
    phrases::{Phrases, Stage, Utterance, Vocabulary},
    user_request::Interpretation,
    words::{Word, after, sentence, skip},
};

/// The maximum length of a note, in words.
const MAX_WORDS: usize = 60;

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

    /// Asks about a state that is to be put back later: a note only keeps the words.
    fn read(&self, stage: Stage, Utterance { words, .. }: Utterance<'_>) -> Option<Interpretation> {
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
        situation::{Situation, Topic},
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
}
