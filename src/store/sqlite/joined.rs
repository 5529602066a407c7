//! Operations that follow each other in any case, in one transaction of the writing thread.
//!
//! If the second one fails, the first one counts all the same: what it would have claimed or leased is found later.

use std::sync::Arc;

use countersign_graph::store::{Acquired, Changes, Claimed, Delivery, Error, Holder, Lease, Then, Version};
use rusqlite::Connection;

use super::{
    SqliteStore,
    changes::{self, StoredChanges},
    failure::Failure,
    leases::{self, StoredAcquired},
    outbox, recent,
};

impl SqliteStore {
    /// Implements [`countersign_graph::store::Store::commit_and_claim`]. At most one message is claimed.
    pub(super) async fn commit_then_claim(
        &self,
        lease: &Lease,
        expected: Version,
        changes: &Changes,
        then: Then,
        holder: &Holder,
    ) -> Result<(Version, Vec<Claimed>), Error> {
        let (sync, stored) = (changes::sync(changes), Arc::new(self.stored(changes)));
        let (clock, now, until) = (self.clock.now(), holder.now, self.clock.now() + holder.ttl);
        let (lease, written) = (lease.clone(), Arc::clone(&stored));
        let both = move |connection: &Connection| {
            let version = changes::commit(connection, &lease, expected, &written, then, clock)?;
            let claimed = outbox::claim(connection, until, now, clock, 1, Some(&lease.thread));
            Ok((version, or_nothing(connection, claimed)?))
        };
        let (version, claimed) = self.writer.run_with(sync, both).await?;
        self.note_written(changes);
        let mut messages = Vec::with_capacity(1);
        for claimed in claimed {
            match stored.position_of(&claimed) {
                Some(position) => messages.push(claimed.with_body(changes.outbox[position].body.clone())),
                None => messages.extend(self.read_claimed(vec![claimed]).await.unwrap_or_default()),
            }
        }
        Ok((version, messages))
    }

    /// Implements [`countersign_graph::store::Store::ingest_and_apply`].
    pub(super) async fn apply_instead_of(
        &self,
        delivery: &Delivery,
        changes: &Changes,
        holder: Option<&Holder>,
    ) -> Result<(bool, Option<Acquired>), Error> {
        let (stored, clock) = (self.stored(changes), self.clock.now());
        let (dedup, at, thread, holder) =
            (delivery.dedup.clone(), delivery.at, changes.thread.clone(), holder.cloned());
        let all = move |connection: &Connection| {
            if !recent::add_keys(connection, &dedup, at)? {
                return Ok(None);
            }
            changes::apply(connection, &stored, clock)?;
            let Some(Holder { worker, ttl, now }) = &holder else { return Ok(Some(None)) };
            let acquired = leases::acquire(connection, worker, clock + *ttl, *now, clock, Some(&thread));
            Ok(Some(or_nothing(connection, acquired)?))
        };
        let Some(acquired) = self.writer.run(all).await? else { return Ok((false, None)) };
        self.note_written(changes);
        let acquired = match acquired {
            Some(acquired) => self.read_acquired(acquired).await.ok(),
            None => None,
        };
        Ok((true, acquired))
    }

    /// Parses a leased thread.
    pub(super) async fn read_acquired(&self, acquired: StoredAcquired) -> Result<Acquired, Error> {
        let StoredAcquired { lease, saved, messages } = acquired;
        let saved = self.read_saved(&lease.thread, saved).await;
        let messages = self.read_messages(&lease.thread, messages).await?;
        Ok(Acquired { lease, saved, messages, decided: None })
    }

    /// Serializes a write.
    pub(super) fn stored(&self, changes: &Changes) -> StoredChanges {
        StoredChanges::new(changes, |change| self.parts.has(change))
    }

    /// Notes the actions of a write that was made.
    pub(super) fn note_written(&self, changes: &Changes) {
        for change in &changes.actions {
            self.cards.on_written(change);
            self.parts.note(change);
        }
    }
}

/// Returns nothing instead of an error, unless SQLite has undone the whole transaction because of it, as for an error of
/// the disk.
fn or_nothing<T: Default>(connection: &Connection, second: Result<T, Failure>) -> Result<T, Failure> {
    match second {
        Err(error) if connection.is_autocommit() => Err(error),
        second => Ok(second.unwrap_or_default()),
    }
}
