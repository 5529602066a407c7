//! `recall_notes`: shows a person the notes about them.

use std::sync::Arc;

use async_trait::async_trait;
use countersign_capabilities::{Tool, ToolError, ToolInfo};
use countersign_core::reply::Reply;
use countersign_graph::action::{ErrorKind, Reader};
use serde_json::{Value, json};

use super::{notes::Notes, replies};

/// The name of the tool.
pub const NAME: &str = "recall_notes";

/// The tool `recall_notes`.
#[derive(Debug)]
pub struct RecallNotes(pub Arc<Notes>);

#[async_trait]
impl Tool for RecallNotes {
    fn info(&self) -> ToolInfo {
        ToolInfo::new(NAME, "Lists the notes about the person who asks, which they asked to be remembered.")
    }

    fn schema(&self) -> Value {
        json!({ "type": "object", "properties": {} })
    }

    /// Returns no notes if the reader is not known.
    async fn call(&self, _: &Value, reader: Option<&Reader>) -> Result<Value, ToolError> {
        let Some(person) = reader.and_then(|reader| reader.by.as_ref()) else { return Ok(json!({ "notes": [] })) };
        let notes = self.0.of(person).await.map_err(|error| {
            tracing::warn!(error = countersign_core::cause::chain(&error), "The notes about a person cannot be read");
            ToolError { kind: ErrorKind::Network, reply: replies::not_now(), transient: true }
        })?;
        Ok(json!({ "notes": notes.iter().map(|note| &note.text).collect::<Vec<_>>() }))
    }

    fn present(&self, _: &Value, answer: &Value) -> Option<Reply> {
        let notes: Vec<String> = serde_json::from_value(answer["notes"].clone()).ok()?;
        Some(replies::list(&notes))
    }
}
