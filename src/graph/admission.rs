//! Admission of people: checked before a turn begins, so that people who may not ask incur no cost.

use std::fmt;

use async_trait::async_trait;
use countersign_core::ids::{MessageTs, ThreadId, UserId};

/// Decides which people may ask the bot for something.
#[async_trait]
pub trait Admission: Send + Sync + fmt::Debug {
    /// Decides whether a person's message in a thread is accepted.
    async fn admits(&self, thread: &ThreadId, by: &UserId, said: &MessageTs) -> Admits;

    /// Returns the time zone of a person who was admitted, such as `Europe/Berlin`, if it is known.
    async fn zone(&self, by: &UserId) -> Option<String> {
        let _ = by;
        None
    }
}

/// The result of the admission of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admits {
    /// The message is accepted.
    Yes,
    /// The message is rejected, and its author has been notified. The reason is one word, for the
    /// audit trail.
    No(&'static str),
    /// The decision cannot be made at the moment; the message stays in the mailbox.
    Later,
}
