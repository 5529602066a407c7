//! `recall_notes`: shows a person the notes about them.

use std::sync::Arc;

use countersign_capabilities::{
    ToolError, ToolInfo,
    rows::{Nothing, Read},
};
use countersign_graph::action::ErrorKind;
use serde_json::json;

use super::{notes::Notes, replies};

/// The name of the tool.
pub const NAME: &str = "recall_notes";

/// Returns the tool. It shows nothing if the reader is not known.
pub(super) fn tool(notes: Arc<Notes>) -> Read<Arc<Notes>, Nothing> {
    let info = ToolInfo::new(NAME, "Lists the notes about the person who asks, which they asked to be remembered.");
    Read {
        present: |_, _, answer| {
            Some(replies::list(&serde_json::from_value::<Vec<String>>(answer["notes"].clone()).ok()?))
        },
        ..Read::new(notes, info, |notes, _, reader| {
            Box::pin(async move {
                let Some(person) = reader.and_then(|reader| reader.by.as_ref()) else {
                    return Ok(json!({ "notes": [] }));
                };
                let known = notes.of(person).await.map_err(|error| {
                    tracing::warn!(
                        error = countersign_core::cause::chain(&error),
                        "The notes about a person cannot be read"
                    );
                    ToolError { kind: ErrorKind::Network, reply: replies::not_now(), transient: true }
                })?;
                Ok(json!({ "notes": known.iter().map(|note| &note.text).collect::<Vec<_>>() }))
            })
        })
    }
}
