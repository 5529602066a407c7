//! Past changes, for a capability that needs the history of one of its things, and for questions about what was changed.

use async_trait::async_trait;
use countersign_graph::action::{ActionRecord, Label};

/// A reader of the records of changes in the store, which cover all processes and survive restarts.
#[async_trait]
pub trait History: Send + Sync {
    /// Returns the changes whose requests were sent and whose scope has this target, newest first, at most `limit`.
    /// Empty if the store isn't answering.
    async fn of(&self, target: &str, limit: usize) -> Vec<ActionRecord>;

    /// Returns the requests that have any of these labels, in any state, newest first, at most `limit`, without those whose
    /// record was altered. `None` if the store isn't answering in time.
    async fn under(&self, labels: &[Label], limit: usize) -> Option<Vec<ActionRecord>>;

    /// Returns the address of the message that shows a request; `None` if it is not known.
    async fn address(&self, record: &ActionRecord) -> Option<String>;
}
