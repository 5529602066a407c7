//! Past changes, for a capability that needs the history of one of its things.

use async_trait::async_trait;
use countersign_graph::action::ActionRecord;

/// A reader of the records of changes in the store, which cover all processes and survive restarts.
#[async_trait]
pub trait History: Send + Sync {
    /// Returns the changes whose requests were sent and whose scope has this target, newest first, at most `limit`.
    /// Empty if the store isn't answering.
    async fn of(&self, target: &str, limit: usize) -> Vec<ActionRecord>;
}
