//! Outside events that actions wait for, such as the end of a job.

use async_trait::async_trait;
use serde_json::Value;

/// A follower of the events of one outside system.
#[async_trait]
pub trait EventSource: Send + Sync {
    /// Returns the name of the system, as in the waits of actions.
    fn source(&self) -> &'static str;

    /// Waits for the event with this key and returns its body; `None` if the source cannot find out about it. `alone` is
    /// true if no other process uses the same store.
    ///
    /// This is called again after a restart, and by other processes at the same time.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future stops following the event and changes nothing in the outside system.
    async fn follow(&self, key: &str, alone: bool) -> Option<Value>;
}
