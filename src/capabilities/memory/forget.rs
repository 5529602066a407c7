//! `forget`: deletes notes about the person who asks, after that person has approved.

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

use super::{notes::Notes, replies};

/// The name of the action.
pub const NAME: &str = "forget";

/// The phrases that mean all notes.
const ALL: &[&str] = &["everything", "all", "all of it", "it all", "all notes", "all of them"];

/// The action `forget`.
pub(super) type Forget = Change<Arc<Notes>, Asked, Forgotten>;

/// The parameters of the action.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Asked {
    /// The note, or a word of it; `everything` for all notes. Required unless there is only one.
    #[serde(default)]
    note: Option<String>,
}

/// The stored parameters.
#[derive(Serialize, Deserialize)]
pub(super) struct Forgotten {
    notes: Vec<String>,
}

/// Returns the action.
pub(super) fn action(notes: Arc<Notes>) -> Forget {
    let info = ActionInfo {
        is_personal: true,
        ..ActionInfo::new(NAME, "Deletes notes about the person who asks, which they asked to be remembered before.")
    };
    Change::new(
        notes,
        info,
        |row, asked, reader| Box::pin(prepare(&row.deps, asked, reader)),
        // Deleting the same notes again changes nothing.
        |row, Forgotten { notes }, record| {
            Box::pin(async move {
                match row.deps.remove(&record.requested_by, &notes).await {
                    Ok(()) => Performed::Ended(Outcome::done(record, json!({ "notes": notes.len() }))),
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
    let texts: Vec<String> = known.into_iter().map(|note| note.text).collect();
    let chosen: Vec<String> = match (non_blank(asked.note.as_ref()), texts.as_slice()) {
        (_, []) => return Err(refused(ErrorKind::NotFound, replies::nothing_known())),
        (None, [_]) => texts,
        (None, _) => {
            let mut options = texts;
            options.push("everything".to_owned());
            return Err(Refusal::Missing(vec![missing("note", "Which note should I forget?", options)]).into());
        }
        (Some(asked), _) if ALL.contains(&asked.to_lowercase().as_str()) => texts,
        (Some(asked), _) => {
            let asked = asked.to_lowercase();
            let holds = |text: &&String| text.to_lowercase().contains(&asked);
            let found: Vec<String> = texts.iter().filter(holds).cloned().collect();
            if found.is_empty() {
                return Err(refused(ErrorKind::NotFound, replies::unknown(&asked, &texts)));
            }
            found
        }
    };
    let card = replies::forget_card(&chosen);
    Ok(Proposal {
        scope: Scope::of(format!("memory:{}", person.as_str())).personal(),
        ..Proposal::new(Forgotten { notes: chosen }, card)
    })
}
