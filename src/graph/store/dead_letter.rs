//! Messages and interactions that could not be delivered or handled, kept until a person looks at them.

use std::time::Duration;

use countersign_core::{
    clock::Timestamp,
    ids::{Slot, ThreadId},
};
use serde_json::Value;

use super::Outgoing;

/// A message that was permanently refused or tried too often, or an interaction whose handling
/// failed each time.
#[derive(Clone, Debug, PartialEq)]
pub struct DeadLetter {
    /// The id for [`super::Store::send_again`], which only the store interprets.
    pub id: String,
    /// The thread of the message; `None` for an interaction.
    pub thread: Option<ThreadId>,
    /// The time at which it was given up.
    pub at: Timestamp,
    /// The number of attempts.
    pub attempts: u32,
    /// The reason, in one word.
    pub reason: String,
    /// The contents.
    pub what: Undelivered,
}

/// The contents of a dead letter.
#[derive(Clone, Debug, PartialEq)]
pub enum Undelivered {
    /// A message to a thread or to a person.
    Message(Box<Outgoing>),
    /// An entry of the inbox, in the format of `conversation`.
    Inbox(Value),
}

impl DeadLetter {
    /// The time for which a dead letter is kept.
    pub const KEPT_FOR: Duration = Duration::from_secs(30 * 24 * 3600);

    /// Returns true if it is a message for this slot of this thread.
    pub fn fills(&self, thread: &ThreadId, slot: &Slot) -> bool {
        let own_slot = match &self.what {
            Undelivered::Message(outgoing) => outgoing.slot.as_ref(),
            Undelivered::Inbox(_) => None,
        };
        self.thread.as_ref() == Some(thread) && own_slot == Some(slot)
    }
}
