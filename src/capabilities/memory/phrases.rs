//! The phrases about notes: `remember that I work in mathstream`, `what do you remember about me?`, `forget it`.

use countersign_understanding::{
    lines::Candidate,
    phrases::{Phrases, Utterance},
    words::sentence,
};

/// The maximum length of a note, in words.
const MAX_WORDS: usize = 60;

/// The phrases about notes.
pub(super) struct OfMemory;

impl Phrases for OfMemory {
    fn things(&self) -> &'static [&'static str] {
        &["note", "notes"]
    }

    fn greeting(&self) -> &'static str {
        ""
    }

    fn lines(&self) -> &'static str {
        include_str!("phrases.txt")
    }

    /// Returns all following words as the note.
    fn slot(&self, kind: &str, Utterance { words, .. }: Utterance<'_>) -> Vec<Candidate> {
        let begins = words.first().is_some_and(|first| first.lower != "that");
        match kind {
            "note" if begins => {
                // The longest note costs least: other phrases may skip a word such as “my”, but it belongs to the note.
                let cost = MAX_WORDS.saturating_sub(words.len());
                vec![Candidate { value: sentence(words).into(), taken: words.len(), cost }]
            }
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::OfMemory;
    use countersign_understanding::{book::Book, checking::check, situation::Situation};

    #[test]
    fn notes_are_written_listed_and_deleted() {
        check(
            &Book::default().with("memory", &OfMemory).unwrap(),
            &Situation::default(),
            &[
                ("remember that I work in mathstream", r#"remember {"note":"I work in mathstream"}"#),
                ("please remember that I work in mathstream", r#"remember {"note":"I work in mathstream"}"#),
                ("remember I usually use 60/40", r#"remember {"note":"I usually use 60/40"}"#),
                ("remember my favourite colour is blue", r#"remember {"note":"my favourite colour is blue"}"#),
                ("what do you remember about me?", "read recall_notes"),
                ("what do you know about me", "read recall_notes"),
                ("show me my notes", "read recall_notes"),
                ("forget my note", "forget {}"),
                ("forget everything", r#"forget {"note":"everything"}"#),
                ("forget everything you remember about me", r#"forget {"note":"everything"}"#),
                ("forget that I work in mathstream", r#"forget {"note":"I work in mathstream"}"#),
            ],
        );
    }
}
