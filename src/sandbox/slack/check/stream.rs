//! The chunks of a streamed message.

use serde_json::Value;

use super::{
    Checked, Problem,
    blocks::{message, status},
    problem,
    text::{required_string, string},
};

/// The maximum length of a text in a task or a plan, in characters.
const WORDS: usize = 256;
const MARKDOWN: usize = 12_000;
const NAME: usize = 255;

/// Checks the chunks that are added to a stream.
///
/// # Errors
///
/// The first problem, with Slack's name for it.
pub(in crate::slack) fn chunks(chunks: &[Value]) -> Checked {
    let all = chunks.iter().enumerate().try_for_each(|(index, chunk)| one(&format!("/chunks/{index}"), chunk));
    all.map_err(|problem| Problem { error: "invalid_chunks", ..problem })
}

fn one(at: &str, chunk: &Value) -> Checked {
    match chunk["type"].as_str() {
        Some("markdown_text") => required_string(&format!("{at}/text"), &chunk["text"], MARKDOWN),
        Some("task_update") => {
            required_string(&format!("{at}/id"), &chunk["id"], NAME)?;
            required_string(&format!("{at}/title"), &chunk["title"], WORDS)?;
            for name in ["details", "output"] {
                string(&format!("{at}/{name}"), &chunk[name], WORDS)?;
            }
            status(at, chunk)
        }
        Some("plan_update") => required_string(&format!("{at}/title"), &chunk["title"], WORDS),
        Some("blocks") => match chunk["blocks"].as_array() {
            Some(blocks) => message(blocks),
            None => Err(problem(&format!("{at}/blocks"), "missing required field")),
        },
        Some(kind) => Err(problem(&format!("{at}/type"), format_args!("unsupported type: {kind}"))),
        None => Err(problem(&format!("{at}/type"), "missing required field")),
    }
}
