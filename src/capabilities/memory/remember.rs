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
    notes::{MAX_LENGTH, MAX_NOTES, Notes, NotesError},
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
}

/// The stored parameters.
#[derive(Serialize, Deserialize)]
pub(super) struct Note {
    note: String,
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
        |row, Note { note }, record| {
            Box::pin(async move {
                match row.deps.add(&record.requested_by, &note).await {
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
    let Some(text) = non_blank(asked.note.as_ref()) else {
        return Err(Refusal::Missing(vec![missing("note", "What should I remember?", Vec::new())]).into());
    };
    if text.chars().count() > MAX_LENGTH {
        return Err(refused(ErrorKind::Validation, replies::too_long(text.chars().count())));
    }
    let known = notes.of(person).await.map_err(|error| replies::unavailable(&error))?;
    if known.iter().any(|note| note.text == text) {
        return Err(refused(ErrorKind::Execution, replies::known_already(text)));
    }
    if known.len() >= MAX_NOTES {
        return Err(refused(ErrorKind::Execution, replies::full()));
    }
    Ok(Proposal {
        scope: Scope::of(format!("memory:{}:{text}", person.as_str())).personal(),
        ..Proposal::new(Note { note: text.to_owned() }, replies::remember_card(text))
    })
}
