//! The state of the rounds, and their control for commands.

use std::sync::Arc;

use countersign_core::{clock::Timestamp, ids::UserId};
use countersign_graph::store::{Error, TypedRegister};
use countersign_mail::SyncPoint;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use super::super::register::MailRegister;

/// The state of the rounds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SyncState {
    /// The point up to which the inbox was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub point: Option<SyncPoint>,
    /// The time of the first round.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// The person who paused the rounds, if they are paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused_by: Option<UserId>,
    /// The time at which they were paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused_at: Option<Timestamp>,
    /// The process that makes the rounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) holder: Option<String>,
    /// The time until which it does.
    pub(super) until: Timestamp,
    /// The time of the last complete round.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub synced_at: Option<Timestamp>,
    /// The problem of the last round, as a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The number of mails that were brought in.
    pub brought: u64,
}

/// The control of the rounds, for commands.
#[derive(Clone, Debug)]
pub struct SyncControl {
    book: MailRegister,
    pub(super) wanted: Arc<Notify>,
}

impl SyncControl {
    /// Creates the control for the account of this list.
    pub fn new(book: MailRegister) -> Self {
        Self { book, wanted: Arc::default() }
    }

    /// Returns the state.
    ///
    /// # Errors
    ///
    /// Fails if the store isn't answering.
    pub async fn state(&self) -> Result<SyncState, Error> {
        Ok(self.register().load().await?.1)
    }

    /// Pauses the rounds. Mails stay in the account until they are resumed.
    ///
    /// # Errors
    ///
    /// Fails if the store isn't answering. The call can be repeated.
    pub async fn pause(&self, by: &UserId, now: Timestamp) -> Result<(), Error> {
        self.change(|state| (state.paused_by, state.paused_at) = (Some(by.clone()), Some(now))).await
    }

    /// Resumes the rounds.
    ///
    /// # Errors
    ///
    /// Fails if the store isn't answering. The call can be repeated.
    pub async fn resume(&self) -> Result<(), Error> {
        self.change(|state| (state.paused_by, state.paused_at) = (None, None)).await?;
        self.sync_now();
        Ok(())
    }

    /// Begins a round at once, if this process makes them.
    pub fn sync_now(&self) {
        self.wanted.notify_one();
    }

    pub(super) async fn change(&self, change: impl Fn(&mut SyncState) + Send + Sync) -> Result<(), Error> {
        self.register().change(change).await
    }

    /// Returns the register with the state.
    pub(super) fn register(&self) -> TypedRegister<SyncState> {
        self.book.register(&self.book.key("sync", "state"))
    }
}
