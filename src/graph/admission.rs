//! The admission of people: checked before a turn begins, so that people who may not ask cause no cost.

use std::fmt;

use async_trait::async_trait;
use countersign_core::ids::{MessageTs, ThreadId, UserId};

/// Decides who may ask.
#[async_trait]
pub trait Admission: Send + Sync + fmt::Debug {
    /// Returns whether a person's message in a thread is taken up.
    async fn admits(&self, thread: &ThreadId, by: &UserId, said: &MessageTs) -> Admits;
}

/// The answer to whether a message is taken up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admits {
    /// The message is taken up.
    Yes,
    /// The message is not taken up, and its author has been notified; with the reason in a word for the record.
    No(&'static str),
    /// The admission cannot be decided at the moment: the message stays in the mailbox.
    Later,
}
