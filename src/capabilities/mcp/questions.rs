//! Questions that a server asks in the middle of a call.

use countersign_core::reply::Text;
use countersign_graph::action::{ActionRecord, Batch, Progress};
use countersign_mcp_client::{Answered, Question};
use serde_json::{Value, json};

use super::calls::Running;

/// Asks a person in the thread.
pub(crate) async fn ask(
    server: &str,
    record: &ActionRecord,
    nth: u64,
    question: &Question,
    running: &Running,
) -> Batch {
    let _ = (server, record, question);
    running.answer(Answered::Cancelled);
    running.goes_on_from(nth).await;
    Batch::Made(Progress { data: json!({}), done: 0, total: 0, note: Text::new() })
}

/// Reads a person's answer.
pub(crate) fn answered(body: &Value) -> Answered {
    match body["action"].as_str() {
        Some("accept") => Answered::Accepted(body["content"].clone()),
        Some("decline") => Answered::Declined,
        _ => Answered::Cancelled,
    }
}
