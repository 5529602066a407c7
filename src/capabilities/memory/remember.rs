//! `remember`: writes a note about the person who asks, after that person has approved.

use std::sync::Arc;

use countersign_capabilities::{
    parameters::{missing, non_blank, refused},
    rows::Change,
};
use countersign_graph::action::{
    ActionInfo, ErrorKind, Outcome, Performed, PrepareError, Proposal, Reader, Refusal, Scope,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    notes::{MAX_LENGTH, MAX_NOTES, Note as StoredNote, Notes, NotesError},
    replies,
};

/// The name of the action.
pub const NAME: &str = "remember";

/// The action `remember`.
pub(super) type Remember = Change<Arc<Notes>, Asked, Note>;

/// The parameters of the action.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Asked {
    /// The note in the person's own words, such as `I work in mathstream`. Required.
    #[serde(default)]
    note: Option<String>,
    /// The earlier note whose place it takes, in the words of that note.
    #[serde(default)]
    instead_of: Option<String>,
    /// What a note should say instead, if the note itself is not named: “3A and 3C” corrects “our classes are 3A and 3B”.
    #[serde(default)]
    correct: Option<String>,
}

/// Words that tell a fact.
pub(super) const TELLS: &[&str] =
    &["is", "are", "was", "were", "has", "have", "use", "uses", "means", "work", "prefer", "call", "teach"];

/// Returns a note with another end: what stands after the first word that tells a fact; `None` if it has none.
pub(super) fn corrected(note: &str, end: &str) -> Option<String> {
    let words: Vec<&str> = note.split(' ').collect();
    let verb = words.iter().position(|word| TELLS.contains(word))?;
    Some(format!("{} {end}", words[..=verb].join(" ")))
}

/// Returns true if these words have one of those that [`corrected`] replaces in a note.
pub(super) fn shares_word(note: &str, end: &str) -> bool {
    const JOINS: &[&str] = &["and", "or", "the", "a", ",", "in", "of", "to"];
    let replaced = note.split(' ').skip_while(|word| !TELLS.contains(word)).skip(1).map(str::to_lowercase);
    let is_in = |word: String| end.split(' ').any(|other| other.to_lowercase() == word);
    replaced.filter(|word| !JOINS.contains(&word.as_str())).any(is_in)
}

/// The stored parameters.
#[derive(Serialize, Deserialize)]
pub(super) struct Note {
    note: String,
    /// The note whose place it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    instead_of: Option<String>,
}

/// Returns the action.
pub(super) fn action(notes: Arc<Notes>) -> Remember {
    let info = ActionInfo {
        is_personal: true,
        ..ActionInfo::new(
            NAME,
            "Remembers a note about the person who asks, such as where they work. Use it only when this person says in this \
             message that it should be remembered.",
        )
    };
    Change::new(
        notes,
        info,
        |row, asked, reader| Box::pin(prepare(&row.deps, asked, reader)),
        // Writing the same note again changes nothing.
        |row, Note { note, instead_of }, record| {
            Box::pin(async move {
                match row.deps.add(&record.requested_by, &note, instead_of.as_deref()).await {
                    Ok(()) => Performed::Ended(Outcome::done(record, json!({ "note": note }))),
                    Err(NotesError::Full) => Performed::Ended(Outcome::Failed {
                        error: ErrorKind::Execution,
                        summary: replies::full().words().into(),
                    }),
                    Err(error) => Performed::NoAnswer { detail: error.to_string() },
                }
            })
        },
    )
}

async fn prepare(notes: &Notes, asked: Asked, reader: Option<&Reader>) -> Result<Proposal, PrepareError> {
    let Some(person) = reader.and_then(|reader| reader.by.as_ref()) else {
        return Err(refused(ErrorKind::UserInput, replies::nobody())); // a note belongs to a person
    };
    let known = notes.of(person).await.map_err(|error| replies::unavailable(&error))?;
    let asked = match asked.correct.as_deref() {
        Some(end) => corrected_one(&known, end)?,
        None => asked,
    };
    let Some(text) = non_blank(asked.note.as_ref()) else {
        return Err(Refusal::Missing(vec![missing("note", "What should I remember?", Vec::new())]).into());
    };
    if text.chars().count() > MAX_LENGTH {
        return Err(refused(ErrorKind::Validation, replies::too_long(text.chars().count())));
    }
    if known.iter().any(|note| note.text == text) {
        return Err(refused(ErrorKind::Execution, replies::known_already(text)));
    }
    let earlier = non_blank(asked.instead_of.as_ref());
    let earlier =
        earlier.and_then(|earlier| known.iter().find(|note| note.text == earlier)).map(|note| note.text.clone());
    if known.len() >= MAX_NOTES && earlier.is_none() {
        return Err(refused(ErrorKind::Execution, replies::full()));
    }
    Ok(Proposal {
        scope: Scope::of(format!("memory:{}:{text}", person.as_str())).personal(),
        ..Proposal::new(
            Note { note: text.to_owned(), instead_of: earlier.clone() },
            replies::remember_card(text, earlier.as_deref()),
        )
    })
}

/// Returns the request to correct the one note that shares a word with these, or the only one.
fn corrected_one(known: &[StoredNote], end: &str) -> Result<Asked, PrepareError> {
    let telling = || known.iter().filter(|note| corrected(&note.text, end).is_some());
    let sharing: Vec<&StoredNote> = telling().filter(|note| shares_word(&note.text, end)).collect();
    let meant = if sharing.is_empty() { telling().collect() } else { sharing };
    match meant.as_slice() {
        [one] => Ok(Asked { note: corrected(&one.text, end), instead_of: Some(one.text.clone()), correct: None }),
        _ => {
            let question = format!("What should be “{end}”? Say the whole note.");
            Err(Refusal::Missing(vec![missing("note", question, Vec::new())]).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{corrected, corrected_one, shares_word};
    use crate::notes::Note;
    use countersign_core::clock::Timestamp;

    #[test]
    fn the_end_of_a_note_is_replaced() {
        let note = "our pilot classes are 3A and 3B";
        assert_eq!(corrected(note, "3A and 3C").as_deref(), Some("our pilot classes are 3A and 3C"));
        assert_eq!(corrected("blue", "red"), None);
        assert!(shares_word(note, "3A and 3C") && !shares_word(note, "4A and 4B") && !shares_word(note, "our classes"));
    }

    #[test]
    fn the_note_with_a_word_in_common_is_corrected() {
        let notes = |texts: &[&str]| -> Vec<Note> {
            texts.iter().map(|text| Note { text: (*text).to_owned(), at: Timestamp(0) }).collect()
        };
        let of = |texts: &[&str], end: &str| corrected_one(&notes(texts), end).ok()?.note;
        let both = ["our classes are 3A and 3B", "my context is mathstream"];
        assert_eq!(of(&both, "3A and 3C").as_deref(), Some("our classes are 3A and 3C"));
        assert_eq!(of(&both, "4A"), None, "either could be meant");
        assert_eq!(of(&both[1..], "assign-prog").as_deref(), Some("my context is assign-prog"));
    }
}
