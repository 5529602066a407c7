//! The wait of a change for an event, such as the end of a job. Nothing is held during the wait.

use std::time::Duration;

use countersign_core::{clock::Timestamp, reply::Asked};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The event that a batch waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Awaited {
    /// The name of the system that reports it.
    pub source: String,
    /// The event's key in that system ([`crate::store::External::key`]).
    pub key: String,
    /// The maximum duration of the wait; [`super::Batches::longest`] limits it further.
    pub within: Duration,
}

/// A wait, as it is stored with its action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    /// The name of the system that reports the event.
    pub source: String,
    /// The event's key in that system.
    pub key: String,
    /// The time at which the wait ends without the event.
    pub until: Timestamp,
    /// The end of the wait. `None` while it lasts, or if the action was woken to be stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<WaitEnd>,
    /// The question to a person, if the event is a person's answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asks: Option<Asked>,
}

/// The end of a wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitEnd {
    /// The event arrived, with this body.
    Arrived(Value),
    /// The deadline passed without the event.
    Overdue,
}

impl Wait {
    /// Returns the question, if it is still open.
    pub fn open_question(&self) -> Option<&Asked> {
        self.asks.as_ref().filter(|_| self.end.is_none())
    }

    /// Returns the body of the event, if it arrived.
    pub fn arrived(&self) -> Option<&Value> {
        match &self.end {
            Some(WaitEnd::Arrived(body)) => Some(body),
            Some(WaitEnd::Overdue) | None => None,
        }
    }
}
