//! Changes that are too large for one request, made in batches, each of which is saved before the
//! next.

use std::{collections::BTreeMap, time::Duration};

use async_trait::async_trait;
use countersign_core::{
    ids::UserId,
    reply::{Asked, Text},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ActionRecord, Awaited, Form, Outcome};

/// A change that is made in batches, such as enrolling a thousand users.
///
/// The effect of [`Self::next`] depends only on the record: on its parameters, and on the progress
/// that the previous batch left in it. A process that takes over therefore knows which batch its
/// predecessor was working on.
#[async_trait]
pub trait Batches: Send + Sync {
    /// Makes the next batch, within about half a second, since the change can be stopped only
    /// between batches.
    ///
    /// `interrupted` is true if this batch may already have been begun, to an unknown extent. No
    /// part of it may be done twice.
    async fn next(&self, record: &ActionRecord, interrupted: bool) -> Batch;

    /// Returns the time during which a request may still arrive after it was sent. An interrupted
    /// batch is left alone for this time.
    fn in_flight(&self) -> Duration;

    /// Returns the maximum duration of the whole change, after which it is stopped.
    fn longest(&self) -> Duration;

    /// Ends the work elsewhere, such as a job, of a change that is about to be stopped. Returns the progress that
    /// records this. It is called again if the process dies before the change is closed.
    async fn give_up(&self, record: &ActionRecord) -> Option<Progress> {
        let _ = record;
        None
    }

    /// Returns the outcome if the change is stopped at this point, by a person or, if `by` is
    /// `None`, because its maximum duration is over.
    fn stopped(&self, record: &ActionRecord, by: Option<&UserId>) -> Outcome;

    /// Returns the form in which a person answers the question that the change waits for ([`Batch::Asks`]).
    fn answer_form(&self, record: &ActionRecord) -> Option<Form> {
        let _ = record;
        None
    }

    /// Checks an answer from the form before the change continues with it. Returns the invalid
    /// fields by their places, each with a description of what would be valid.
    fn wrong_answer(&self, record: &ActionRecord, answer: &Value) -> BTreeMap<String, String> {
        let _ = (record, answer);
        BTreeMap::new()
    }
}

/// The result of one batch.
#[derive(Clone, Debug, PartialEq)]
pub enum Batch {
    /// The batch is done, and there is more to do.
    Made(Progress),
    /// There is more to do after an external event. Until then nothing is held: no lease and no
    /// worker. The next call finds the end of the wait in [`ActionRecord::waits`]. If the event did
    /// not arrive, that call is an `interrupted` one, which reads the current state.
    Waits(Progress, Awaited),
    /// Like [`Self::Waits`], where the event is a person's answer to this question. It is asked on
    /// the card and in the thread. The event's body contains the `action` (`accept`, `decline` or
    /// `cancel`), the `content` of the form, and the person in `by`.
    Asks(Progress, Awaited, Asked),
    /// The change is over.
    Ended(Outcome),
    /// The extent of an interrupted batch cannot be determined now; try again later.
    NotNow,
    /// Only another process can continue, such as one that holds a connection. The thread is released for a moment, so
    /// that it can be leased there; the next call may be in any process.
    Elsewhere(Progress),
}

/// The progress of a change. Stored with its action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// The data for the next batch.
    pub data: Value,
    /// The amount done.
    pub done: u64,
    /// The total amount.
    pub total: u64,
    /// A remark, such as errors; may be empty.
    pub note: Text,
}

impl Progress {
    /// Estimates the remaining time at the pace so far; `None` if nothing is done yet.
    pub fn left(&self, elapsed: Duration) -> Option<Duration> {
        let rest = self.total.checked_sub(self.done)?;
        (self.done > 0).then(|| elapsed.mul_f64(rest as f64 / self.done as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_continues_at_the_pace_so_far() {
        let at = |done| Progress { data: Value::Null, done, total: 100, note: Text::new() };
        let elapsed = Duration::from_secs(10);
        assert_eq!(at(0).left(elapsed), None);
        assert_eq!(at(25).left(elapsed), Some(Duration::from_secs(30)));
        assert_eq!(at(100).left(elapsed), Some(Duration::ZERO));
    }
}
