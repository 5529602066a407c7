//! `forget`: deletes notes about the person who asks, after that person has approved.

use std::sync::Arc;

use async_trait::async_trait;
use countersign_capabilities::parameters::{self, missing, non_blank, refused};
use countersign_graph::action::{
    ActionInfo, ActionKind, ActionRecord, ErrorKind, Outcome, Performed, PrepareError, Proposal, Reader, Recovery,
    Refusal, Scope,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{notes::Notes, replies};

/// The name of the action.
pub const NAME: &str = "forget";

/// The phrases that mean all notes.
const ALL: &[&str] = &["everything", "all", "all of it", "it all", "all notes", "all of them"];

/// The action `forget`.
#[derive(Debug)]
pub struct Forget(pub Arc<Notes>);

/// The parameters of the action.
#[derive(Deserialize, JsonSchema)]
struct ForgetParameters {
    /// The note, or a word of it; `everything` for all notes. Required unless there is only one.
    #[serde(default)]
    note: Option<String>,
}

#[async_trait]
impl ActionKind for Forget {
    fn info(&self) -> ActionInfo {
        ActionInfo {
            is_personal: true,
            ..ActionInfo::new(
                NAME,
                "Deletes notes about the person who asks, which they asked to be remembered before.",
            )
        }
    }

    fn schema(&self) -> Value {
        parameters::schema::<ForgetParameters>()
    }

    async fn prepare(&self, parameters: &Value, reader: Option<&Reader>) -> Result<Proposal, PrepareError> {
        let ForgetParameters { note } = parameters::parameters(parameters)?;
        let Some(person) = reader.and_then(|reader| reader.by.as_ref()) else {
            return Err(refused(ErrorKind::UserInput, replies::nobody())); // a note belongs to a person
        };
        let known = self.0.of(person).await.map_err(|error| replies::unavailable(&error))?;
        let texts: Vec<String> = known.into_iter().map(|note| note.text).collect();
        let chosen: Vec<String> = match (non_blank(note.as_ref()), texts.as_slice()) {
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
        Ok(Proposal {
            card: replies::forget_card(&chosen),
            parameters: json!({ "notes": chosen }),
            preconditions: Value::Null,
            undo: None,
            scope: Scope::of(format!("memory:{}", person.as_str())).personal(),
        })
    }

    async fn preconditions(&self, _: &ActionRecord) -> Result<Value, Outcome> {
        Ok(Value::Null)
    }

    async fn perform(&self, record: &ActionRecord) -> Performed {
        let notes: Vec<String> = serde_json::from_value(record.parameters["notes"].clone()).unwrap_or_default();
        match self.0.remove(&record.requested_by, &notes).await {
            Ok(()) => Performed::Ended(Outcome::done(record, json!({ "notes": notes.len() }))),
            Err(error) => Performed::NoAnswer { detail: error.to_string() },
        }
    }

    /// Deleting the same notes again changes nothing.
    fn recovery(&self) -> Recovery {
        Recovery::Idempotent
    }
}
