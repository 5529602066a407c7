//! The changes of the past, for a capability that needs to know what was done to one of its things.

use async_trait::async_trait;
use countersign_graph::action::ActionRecord;

/// A reader of the records of changes, as the store keeps them: across restarts, and of all processes.
#[async_trait]
pub trait History: Send + Sync {
    /// Returns the changes of a thing whose requests were sent, newest first, at most `limit`. The thing is one of the
    /// targets of their scope. Empty if the store does not answer.
    async fn of(&self, target: &str, limit: usize) -> Vec<ActionRecord>;
}
