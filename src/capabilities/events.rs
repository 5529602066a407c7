//! Events elsewhere that actions wait for, such as the end of a job.

use async_trait::async_trait;
use serde_json::Value;

/// A follower of the events of one outside system.
#[async_trait]
pub trait EventSource: Send + Sync {
    /// Returns the name of the system, as actions give it with what they wait for.
    fn source(&self) -> &'static str;

    /// Waits until the event of this key has happened, and returns its body. `None`: it will not be found out.
    ///
    /// It is called again after a restart, and by other processes at the same time.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the following and changes nothing elsewhere.
    async fn follow(&self, key: &str) -> Option<Value>;
}
