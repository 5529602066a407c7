//! Changes too large for one request: made in batches, each saved before the next.

use std::time::Duration;

use async_trait::async_trait;
use countersign_core::{ids::UserId, reply::Text};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ActionRecord, Awaited, Outcome};

/// A change that is made in batches, such as enrolling a thousand users.
///
/// What one call of [`Self::next`] does is decided by the record alone: its parameters, and the progress that the
/// batch before left in it. So a process that takes over knows what the one before it had in hand.
#[async_trait]
pub trait Batches: Send + Sync {
    /// Makes the next batch, within about half a second: between batches it can be stopped.
    ///
    /// `interrupted`: this very batch may have been begun before, and how far it came is not known. Nothing of it may
    /// be done twice.
    async fn next(&self, record: &ActionRecord, interrupted: bool) -> Batch;

    /// How long a request may still arrive after it left. An interrupted batch is left alone for so long.
    fn in_flight(&self) -> Duration;

    /// How long it may take in all; then it is stopped.
    fn longest(&self) -> Duration;

    /// How it ended, if somebody stops it here; nobody: its time is over.
    fn stopped(&self, record: &ActionRecord, by: Option<&UserId>) -> Outcome;
}

/// What a batch came to.
#[derive(Clone, Debug, PartialEq)]
pub enum Batch {
    /// There is more to do.
    Made(Progress),
    /// There is more to do once something has happened elsewhere. Until then nothing is held: no lease, no seat. The next
    /// call finds in [`ActionRecord::waits`] how the wait ended; if nothing arrived, that call is an `interrupted` one, which
    /// looks up how things stand.
    Waits(Progress, Awaited),
    /// It is over.
    Ended(Outcome),
    /// What an interrupted batch did cannot be found out now: later.
    NotNow,
}

/// How far a change is. Stored with its action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// What the next batch has to know.
    pub data: Value,
    /// How much is done.
    pub done: u64,
    /// Of how much.
    pub total: u64,
    /// What else is worth a glance, such as errors; may be empty.
    pub note: Text,
}

impl Progress {
    /// How long the rest takes, going by what is done: nothing before there is anything to go by.
    pub fn left(&self, elapsed: Duration) -> Option<Duration> {
        let rest = self.total.checked_sub(self.done)?;
        (self.done > 0).then(|| elapsed.mul_f64(rest as f64 / self.done as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_takes_as_long_as_what_was_done() {
        let at = |done| Progress { data: Value::Null, done, total: 100, note: Text::new() };
        let elapsed = Duration::from_secs(10);
        assert_eq!(at(0).left(elapsed), None);
        assert_eq!(at(25).left(elapsed), Some(Duration::from_secs(30)));
        assert_eq!(at(100).left(elapsed), Some(Duration::ZERO));
    }
}
