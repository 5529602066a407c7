//! The way of a step's messages to whoever sends them.
//!
//! The messages of a step are in the outbox as soon as the step is saved, and whoever claims them sends them. If the
//! sender of the same process has time, the write that saves the step claims them too.

use std::sync::Arc;

use async_trait::async_trait;

use super::store::{Changes, Error, Lease, Store, Then, Version};

/// Saves steps and has their messages sent.
#[async_trait]
pub trait StepCommit: Send + Sync {
    /// Writes the changes of steps like [`Store::commit`]. Their messages may be claimed in the same write, and are then
    /// sent; otherwise they wait in the outbox.
    ///
    /// # Errors
    ///
    /// As [`Store::commit`].
    async fn commit(
        &self,
        lease: &Lease,
        expected: Version,
        changes: &Arc<Changes>,
        then: Then,
    ) -> Result<Version, Error>;
}

/// Saves steps and leaves their messages in the outbox of this store.
pub(super) struct Outbox(pub(super) Arc<dyn Store>);

#[async_trait]
impl StepCommit for Outbox {
    async fn commit(
        &self,
        lease: &Lease,
        expected: Version,
        changes: &Arc<Changes>,
        then: Then,
    ) -> Result<Version, Error> {
        Ok(self.0.commit(lease, expected, changes, then, None).await?.0)
    }
}
