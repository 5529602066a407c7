//! What could not be delivered or handled, kept until somebody looks at it.

use std::time::Duration;

use countersign_core::{
    clock::Timestamp,
    ids::{Slot, ThreadId},
};
use serde_json::Value;

use super::Outgoing;

/// A message that was refused for good or tried too often, or an interaction that failed each time.
#[derive(Clone, Debug, PartialEq)]
pub struct DeadLetter {
    /// Names it in [`super::Store::send_again`]. Only the store reads it.
    pub id: String,
    /// The thread of a message; an interaction has none.
    pub thread: Option<ThreadId>,
    /// When it was given up.
    pub at: Timestamp,
    /// How often it was tried.
    pub attempts: u32,
    /// Why it was given up, in a word.
    pub reason: String,
    /// What it is.
    pub what: Undelivered,
}

/// What a dead letter holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Undelivered {
    /// A message to a thread or to a person.
    Message(Box<Outgoing>),
    /// An entry of the inbox, in the words of `conversation`.
    Inbox(Value),
}

impl DeadLetter {
    /// How long it is kept.
    pub const KEPT: Duration = Duration::from_secs(30 * 24 * 3600);

    /// Whether it is the message of a slot of a thread.
    pub fn fills(&self, thread: &ThreadId, slot: &Slot) -> bool {
        let of = match &self.what {
            Undelivered::Message(outgoing) => outgoing.slot.as_ref(),
            Undelivered::Inbox(_) => None,
        };
        self.thread.as_ref() == Some(thread) && of == Some(slot)
    }
}
