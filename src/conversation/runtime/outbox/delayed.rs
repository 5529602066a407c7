//! The messages that Slack has not accepted after many attempts.
//!
//! The state is kept in memory: after a restart such a message is reported again, which merely updates the text of the
//! report.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use countersign_core::ids::Nonce;

/// The maximum wait between two attempts.
pub(super) const MAX_WAIT: Duration = Duration::from_secs(60);

/// The maximum number of messages that are remembered. If there are more, all are forgotten.
const MAX_REMEMBERED: usize = 10_000;

/// The state of messages that Slack has not accepted.
#[derive(Debug, Default)]
pub(super) struct DelayedMessages(Mutex<HashMap<Nonce, DelayedMessage>>);

#[derive(Debug, Default)]
pub(super) struct DelayedMessage {
    /// The number of times that Slack asked to wait with the message.
    pub(super) asked_to_wait: u32,
    /// The reason for the last refusal, as a code.
    pub(super) reason: Option<String>,
    /// True if the delay was reported.
    pub(super) is_reported: bool,
}

impl DelayedMessages {
    /// Changes the state of one message.
    pub(super) fn update<T>(&self, nonce: &Nonce, change: impl FnOnce(&mut DelayedMessage) -> T) -> T {
        let mut delayed = self.lock();
        if delayed.len() >= MAX_REMEMBERED && !delayed.contains_key(nonce) {
            delayed.clear();
        }
        change(delayed.entry(nonce.clone()).or_default())
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, HashMap<Nonce, DelayedMessage>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
