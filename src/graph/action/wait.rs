//! An event that a change waits for, such as the end of a job, without holding anything meanwhile.

use std::time::Duration;

use countersign_core::clock::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The event that a batch waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Awaited {
    /// The name of the system that tells of it.
    pub source: String,
    /// The event's key there ([`crate::store::External::key`]).
    pub key: String,
    /// How long it is waited for. Never longer than [`super::Batches::longest`] allows for all of it.
    pub within: Duration,
}

/// A wait, as it is stored with its action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    /// The name of the system that tells of the event.
    pub source: String,
    /// The event's key there.
    pub key: String,
    /// When it ends without the event.
    pub until: Timestamp,
    /// How it ended; nothing: it did not, or somebody wants the action to stop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<WaitEnd>,
}

/// How a wait ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitEnd {
    /// The event arrived; what it says.
    Arrived(Value),
    /// Its time is over.
    Overdue,
}

impl Wait {
    /// What the event said, if it arrived.
    pub fn arrived(&self) -> Option<&Value> {
        match &self.end {
            Some(WaitEnd::Arrived(body)) => Some(body),
            Some(WaitEnd::Overdue) | None => None,
        }
    }
}
