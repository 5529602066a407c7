//! `remember`: writes a note about the person who asks, after that person has approved.

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

use super::{
    notes::{MAX_LENGTH, MAX_NOTES, Notes, NotesError},
    replies,
};

/// The name of the action.
pub const NAME: &str = "remember";

/// The action `remember`.
#[derive(Debug)]
pub struct Remember(pub Arc<Notes>);

/// The parameters of the action.
#[derive(Deserialize, JsonSchema)]
struct RememberParameters {
    /// The note in the person's own words, such as `I work in mathstream`. Required.
    #[serde(default)]
    note: Option<String>,
}

#[async_trait]
impl ActionKind for Remember {
    fn info(&self) -> ActionInfo {
        ActionInfo {
            is_personal: true,
            ..ActionInfo::new(
                NAME,
                "Remembers a note about the person who asks, such as where they work. Use it only when this person says in this \
         message that it should be remembered.",
            )
        }
    }

    fn schema(&self) -> Value {
        parameters::schema::<RememberParameters>()
    }

    async fn prepare(&self, parameters: &Value, reader: Option<&Reader>) -> Result<Proposal, PrepareError> {
        let RememberParameters { note } = parameters::parameters(parameters)?;
        let Some(person) = reader.and_then(|reader| reader.by.as_ref()) else {
            return Err(refused(ErrorKind::UserInput, replies::nobody())); // a note belongs to a person
        };
        let Some(text) = non_blank(note.as_ref()) else {
            return Err(Refusal::Missing(vec![missing("note", "What should I remember?", Vec::new())]).into());
        };
        if text.chars().count() > MAX_LENGTH {
            return Err(refused(ErrorKind::Validation, replies::too_long(text.chars().count())));
        }
        let known = self.0.of(person).await.map_err(|error| replies::unavailable(&error))?;
        if known.iter().any(|note| note.text == text) {
            return Err(refused(ErrorKind::Execution, replies::known_already(text)));
        }
        if known.len() >= MAX_NOTES {
            return Err(refused(ErrorKind::Execution, replies::full()));
        }
        Ok(Proposal {
            parameters: json!({ "note": text }),
            preconditions: Value::Null,
            card: replies::remember_card(text),
            undo: None,
            scope: Scope::of(format!("memory:{}:{text}", person.as_str())).personal(),
        })
    }

    async fn preconditions(&self, _: &ActionRecord) -> Result<Value, Outcome> {
        Ok(Value::Null)
    }

    async fn perform(&self, record: &ActionRecord) -> Performed {
        let text = record.parameters["note"].as_str().unwrap_or_default();
        match self.0.add(&record.requested_by, text).await {
            Ok(()) => Performed::Ended(Outcome::done(record, json!({ "note": text }))),
            Err(NotesError::Full) => Performed::Ended(Outcome::Failed {
                error: ErrorKind::Execution,
                summary: replies::full().words().into(),
            }),
            Err(error) => Performed::NoAnswer { detail: error.to_string() },
        }
    }

    /// Writing the same note again changes nothing.
    fn recovery(&self) -> Recovery {
        Recovery::Idempotent
    }
}
