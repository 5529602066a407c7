//! The phrases about notes: `remember that I work in mathstream`, `what do you remember about me?`, `forget it`.

use countersign_understanding::phrases::Phrases;

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
