//! Parses what was read from the file. What cannot be read is set aside or noted, and the rest counts.

use countersign_core::ids::ThreadId;
use countersign_graph::{
    action::ActionRecord,
    store::{Claimed, Error, QueuedMessage, Saved},
};

use super::{SqliteStore, actions, aside, connection::Connection, lists, mailbox, outbox};
use crate::aside::{StoredPlace, reason_of};

impl SqliteStore {
    /// Parses messages, and sets aside those that cannot be read.
    pub(super) async fn read_messages(
        &self,
        thread: &ThreadId,
        messages: Vec<mailbox::StoredMessage>,
    ) -> Result<Vec<QueuedMessage>, Error> {
        let mut unreadable = Vec::new();
        let messages = mailbox::read(messages, |seq, error| {
            unreadable.push((StoredPlace::Mailbox(thread.clone(), seq), reason_of(&error)))
        });
        self.set_aside(unreadable).await?;
        Ok(messages)
    }

    /// Parses claimed messages, and sets aside those that cannot be read.
    pub(super) async fn read_claimed(&self, claimed: Vec<outbox::StoredClaimed>) -> Result<Vec<Claimed>, Error> {
        let (mut messages, mut unreadable) = (Vec::new(), Vec::new());
        for claimed in claimed {
            let place = StoredPlace::Message(claimed.thread.clone(), claimed.seq);
            match claimed.read() {
                Ok(message) => messages.push(message),
                Err(error) => unreadable.push((place, reason_of(&error))),
            }
        }
        self.set_aside(unreadable).await?;
        Ok(messages)
    }

    pub(super) async fn read_saved(&self, thread: &ThreadId, saved: lists::StoredSaved) -> Saved {
        let mut unreadable = Vec::new();
        let saved = saved.read(|error| {
            unreadable.push((StoredPlace::of_thread("checkpoint", thread, "as it is saved"), reason_of(&error)));
        });
        self.note(unreadable).await;
        saved
    }

    pub(super) async fn read_actions(&self, records: Vec<actions::Listed>) -> Vec<ActionRecord> {
        let mut unreadable = Vec::new();
        let records = actions::read_list(records, |place, error| {
            unreadable.push((StoredPlace::Other("action", place), reason_of(&error)));
        });
        self.note(unreadable).await;
        records
    }

    /// Sets unreadable entries aside.
    pub(super) async fn set_aside(&self, unreadable: Vec<(StoredPlace, String)>) -> Result<(), Error> {
        if unreadable.is_empty() {
            return Ok(());
        }
        for (place, why) in &unreadable {
            self.found.note(place, why);
        }
        let clock = self.clock.now();
        let set = move |connection: &Connection<'_>| {
            unreadable.iter().try_for_each(|(place, why)| aside::set(connection, place, why, clock))
        };
        self.writer.run(set).await
    }

    /// Records unreadable entries that stay where they are. An error is only logged, since a
    /// read-only store cannot record anything.
    pub(super) async fn note(&self, mut unreadable: Vec<(StoredPlace, String)>) {
        unreadable.retain(|(place, why)| self.found.note(place, why));
        if let Err(error) = self.set_aside(unreadable).await {
            tracing::debug!(%error, "Cannot record unreadable entries");
        }
    }
}
