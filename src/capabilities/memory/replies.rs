//! The replies about notes.

use countersign_core::reply::{Card, Fact, Part, Reply, Text};
use countersign_graph::{
    action::{ErrorKind, PrepareError},
    store::Error,
};

use super::notes::{MAX_LENGTH, MAX_NOTES, Note};

/// Returns the card that asks to remember something, also in place of an earlier note.
pub(super) fn remember_card(text: &str, instead_of: Option<&str>) -> Card {
    let earlier = instead_of.map(|earlier| Fact::new("Replaces", Text::new().italic(earlier)));
    Card {
        facts: [Fact::new("Note", Text::new().italic(text))].into_iter().chain(earlier).collect(),
        notes: vec![
            "I'll use it to fill in details that your requests leave out, and I'll say when I do.".into(),
            "You can see and delete it at any time: “what do you remember about me?”".into(),
        ],
        ..Card::new("Remember this about you?", "Remember it", format!("I'll remember: “{text}”."))
    }
}

/// Returns the card that asks to forget notes.
pub(super) fn forget_card(notes: &[String]) -> Card {
    let what = if notes.len() == 1 { "this note".to_owned() } else { format!("these {} notes", notes.len()) };
    Card {
        title: format!("Forget {what} about you?"),
        facts: notes.iter().map(|note| Fact::new("Note", Text::new().italic(note.as_str()))).collect(),
        approve: "Forget note".to_owned(),
        reject: "Keep note".to_owned(),
        done: match notes.len() {
            1 => "Deleted the note.".to_owned(),
            count => format!("Deleted {count} notes."),
        },
        ..Card::default()
    }
}

/// Lists a person's notes.
pub(super) fn list(notes: &[String]) -> Reply {
    match notes {
        [] => nothing_known(),
        notes => Reply::text("I remember this about you:")
            .and(Part::List(notes.iter().map(|note| Text::new().italic(note.as_str())).collect()))
            .choice("Forget everything", "forget everything you remember about me"),
    }
}

/// Returns the section of the Home tab.
pub(super) fn in_home(notes: &[Note]) -> Reply {
    Reply::text(Text::new().bold("What I remember about you"))
        .and(Part::List(notes.iter().map(|note| Text::new().italic(note.text.as_str())).collect()))
}

/// Says that there are no notes.
pub(super) fn nothing_known() -> Reply {
    Reply::text("I have no notes about you.").hint("To add one, say “remember that …”.")
}

/// Says that no note has these words.
pub(super) fn unknown(asked: &str, notes: &[String]) -> Reply {
    Reply::text(format!("None of your notes mentions “{asked}”. Your notes:"))
        .and(Part::List(notes.iter().map(|note| Text::new().italic(note.as_str())).collect()))
}

/// Says that a note exists already.
pub(super) fn known_already(text: &str) -> Reply {
    Reply::text(Text::from("That note already exists: ").italic(text))
}

/// Says that a note is too long.
pub(super) fn too_long(length: usize) -> Reply {
    Reply::text(format!("A note can have up to {MAX_LENGTH} characters; this one has {length}."))
}

/// Says that there is no room for another note.
pub(super) fn full() -> Reply {
    Reply::text(format!("You already have {MAX_NOTES} notes, which is the limit."))
        .hint("Say “what do you remember about me?” to see them, and “forget …” to delete one.")
}

/// Says that notes belong to people.
pub(super) fn nobody() -> Reply {
    Reply::text("I only keep notes about people, and I can't tell who is asking.")
}

/// Says that the notes cannot be read at the moment.
pub(super) fn not_now() -> Reply {
    Reply::text("The notes can't be read right now.").hint("Try again in a minute.")
}

/// Returns the error for a store that does not answer.
pub(super) fn unavailable(error: &Error) -> PrepareError {
    tracing::warn!(error = countersign_core::cause::chain(error), "The notes about a person cannot be read");
    PrepareError::Unavailable { error: ErrorKind::Network, reply: not_now() }
}
