//! Changes too large for one request: made in batches, each saved before the next.

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
/// The record alone decides what a call of [`Self::next`] does: its parameters, and the progress that the batch before
/// left in it. So a process that takes over knows the batch its predecessor was working on.
#[async_trait]
pub trait Batches: Send + Sync {
    /// Makes the next batch, within about half a second: the change can be stopped between batches.
    ///
    /// `interrupted`: this very batch may have been begun before, and its extent is not known. No part of it may be
    /// done twice.
    async fn next(&self, record: &ActionRecord, interrupted: bool) -> Batch;

    /// Returns the time for which a request may still arrive after it left. An interrupted batch is left alone for so
    /// long.
    fn in_flight(&self) -> Duration;

    /// Returns the longest duration of the whole change; then it is stopped.
    fn longest(&self) -> Duration;

    /// Returns the outcome if the change is stopped here, by a person or, if `by` is `None`, because its time is over.
    fn stopped(&self, record: &ActionRecord, by: Option<&UserId>) -> Outcome;

    /// Returns the form in which a person answers the question that the change waits for ([`Batch::Asks`]).
    fn answer_form(&self, record: &ActionRecord) -> Option<Form> {
        let _ = record;
        None
    }

    /// Checks an answer that was given in the form, before the change goes on with it: returns the wrong fields by their
    /// places, each with what would be right.
    fn wrong_answer(&self, record: &ActionRecord, answer: &Value) -> BTreeMap<String, String> {
        let _ = (record, answer);
        BTreeMap::new()
    }
}

/// The result of one batch.
#[derive(Clone, Debug, PartialEq)]
pub enum Batch {
    /// The batch is made, and there is more to do.
    Made(Progress),
    /// There is more to do once an event has happened elsewhere. Until then nothing is held: no lease, no worker. The
    /// next call finds the end of the wait in [`ActionRecord::waits`]; if the event did not arrive, that call is an
    /// `interrupted` one, which reads the present state.
    Waits(Progress, Awaited),
    /// The same, where the event is a person's answer to this question. It is asked on the card and in the thread; the
    /// event's body has the `action` (`accept`, `decline` or `cancel`), the `content` of the form, and the person in `by`.
    Asks(Progress, Awaited, Asked),
    /// The change is over.
    Ended(Outcome),
    /// The extent of an interrupted batch cannot be found out now: later.
    NotNow,
}

/// The progress of a change. Stored with its action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// The data that the next batch needs.
    pub data: Value,
    /// The amount done.
    pub done: u64,
    /// The whole amount.
    pub total: u64,
    /// A remark, such as errors; may be empty.
    pub note: Text,
}

impl Progress {
    /// Estimates the time left at the pace so far; `None` before anything is done.
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
