//! Operations that follow each other in any case, in one transaction of the writing thread. The thread's row is read and
//! saved once for both.
//!
//! If the second one fails, the first one counts all the same: what it would have claimed or leased is found later.

use std::sync::Arc;

use countersign_core::clock::Timestamp;
use countersign_graph::store::{
    Acquired, Changes, Claimed, Delivery, Destination, Error, Holder, Ingested, Lease, Sent, Then, Version,
};

use super::{
    SqliteStore,
    changes::{self, StoredChanges},
    connection::Connection,
    failure::Failure,
    inbox,
    keys::json,
    leases::{self, StoredAcquired},
    mailbox::{self, MailboxDelivery},
    outbox::{self, StoredClaimed},
    recent,
    thread_row::ThreadRow,
    writer::Durable,
};

impl SqliteStore {
    /// Implements [`countersign_graph::store::Store::commit`].
    pub(super) async fn commit_then_claim(
        &self,
        lease: &Lease,
        expected: Version,
        changes: &Changes,
        then: Then,
        claims: Option<(&Holder, usize)>,
    ) -> Result<(Version, Vec<Claimed>), Error> {
        debug_assert_eq!(lease.thread, changes.thread, "a lease is only valid for its own thread");
        let (sync, stored, clock) = (changes::sync(changes), Arc::new(self.stored(changes)), self.clock.now());
        let claims = claims.map(|(holder, most)| (holder.clone(), most));
        let (lease, written) = (lease.clone(), Arc::clone(&stored));
        let both = move |connection: &Connection<'_>| {
            let (version, mut row) = changes::commit(connection, &lease, expected, &written, then, clock)?;
            let claims = claims.as_ref().map(|(holder, most)| (holder, *most));
            let claimed = claim(connection, &mut row, claims, clock)?;
            row.save(connection, clock)?;
            Ok((version, claimed))
        };
        let (version, claimed) = self.writer.run_with(sync, both).await?;
        changes.actions.iter().for_each(|change| self.written.note(change));
        let mut messages = Vec::with_capacity(claimed.len());
        for claimed in claimed {
            match stored.position_of(&claimed) {
                Some(position) => messages.push(claimed.with_body(changes.outbox[position].body.clone())),
                None => messages.extend(self.read_claimed(vec![claimed]).await.unwrap_or_default()),
            }
        }
        Ok((version, messages))
    }

    /// Implements [`countersign_graph::store::Store::ingest`], and leases the thread if there is a holder.
    pub(super) async fn ingest_then_acquire(
        &self,
        delivery: &Delivery,
        holder: Option<&Holder>,
    ) -> Result<(Ingested, Option<Acquired>), Error> {
        let (clock, holder) = (self.clock.now(), holder.cloned());
        let Delivery { dedup, at, to } = delivery.clone();
        let delivery = match to {
            Destination::Mailbox { thread, addressed, message, graph } => {
                MailboxDelivery { thread, addressed, message: json(&message), graph, dedup, at }
            }
            Destination::Inbox { partition, entry, claim } => {
                let (entry, until) = (json(&entry), claim.map_or(Timestamp(0), |(_, ttl)| clock + ttl));
                let ingest =
                    move |connection: &Connection<'_>| inbox::ingest(connection, partition, &entry, until, &dedup, at);
                return Ok((self.writer.run(ingest).await?, None));
            }
        };
        let both = move |connection: &Connection<'_>| {
            let (ingested, row) = mailbox::ingest(connection, &delivery, clock)?;
            let Some(mut row) = row else { return Ok((ingested, None)) };
            let acquired = lease(connection, &mut row, holder.as_ref(), clock)?;
            row.save(connection, clock)?;
            Ok((ingested, acquired))
        };
        let (ingested, acquired) = self.writer.run(both).await?;
        Ok((ingested, self.read_leased(acquired).await))
    }

    /// Implements [`countersign_graph::store::Store::finish_outbox`].
    pub(super) async fn finish_then_claim(
        &self,
        sent: &[(Claimed, Sent)],
        next: Option<&Holder>,
    ) -> Result<(Vec<bool>, Option<Claimed>), Error> {
        let Some((first, _)) = sent.first() else { return Ok((Vec::new(), None)) };
        let (thread, clock) = (first.thread.clone(), self.clock.now());
        debug_assert!(sent.iter().all(|(claimed, _)| claimed.thread == thread), "they were claimed together");
        let written: Vec<_> = sent.iter().map(|(claimed, sent)| (outbox::Claim::from(claimed), sent.clone())).collect();
        let holder = next.cloned();
        let both = move |connection: &Connection<'_>| {
            let Some(mut row) = ThreadRow::find(connection, &thread)? else {
                return Ok((vec![false; written.len()], Vec::new()));
            };
            let finish = |(claim, sent): &(_, _)| outbox::finish(connection, &mut row, claim, sent);
            let ours = written.iter().map(finish).collect::<Result<Vec<_>, _>>()?;
            outbox::schedule(connection, &mut row)?;
            let next = claim(connection, &mut row, holder.as_ref().map(|holder| (holder, 1)), clock)?;
            row.save(connection, clock)?;
            Ok((ours, next))
        };
        let (ours, next) = self.writer.run_with(Durable::Later, both).await?;
        // If the next message cannot be set aside, these were recorded all the same.
        let next = self.read_claimed(next).await.unwrap_or_default();
        Ok((ours, next.into_iter().next()))
    }

    /// Implements [`countersign_graph::store::Handling::Apply`].
    pub(super) async fn apply_instead_of(
        &self,
        delivery: &Delivery,
        changes: &Changes,
        holder: Option<&Holder>,
    ) -> Result<(Ingested, Option<Acquired>), Error> {
        let (stored, clock) = (self.stored(changes), self.clock.now());
        let (dedup, at, holder) = (delivery.dedup.clone(), delivery.at, holder.cloned());
        let all = move |connection: &Connection<'_>| {
            if !recent::add_keys(connection, &dedup, at)? {
                return Ok(None);
            }
            let mut row = changes::apply(connection, &stored, clock)?;
            let acquired = lease(connection, &mut row, holder.as_ref(), clock)?;
            row.save(connection, clock)?;
            Ok(Some(acquired))
        };
        let Some(acquired) = self.writer.run(all).await? else { return Ok((Ingested::Duplicate, None)) };
        changes.actions.iter().for_each(|change| self.written.note(change));
        Ok((Ingested::Handled, self.read_leased(acquired).await))
    }

    /// Parses a thread that was leased together with another operation, which counts even if there is no lease.
    async fn read_leased(&self, acquired: Option<StoredAcquired>) -> Option<Acquired> {
        self.read_acquired(acquired?).await.ok()
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
        StoredChanges::new(changes, &self.written)
    }
}

/// Claims the next messages of a thread, at most that number, if there is a holder.
fn claim(
    connection: &Connection<'_>,
    row: &mut ThreadRow,
    claims: Option<(&Holder, usize)>,
    clock: Timestamp,
) -> Result<Vec<StoredClaimed>, Failure> {
    let Some((Holder { ttl, now, .. }, most)) = claims.filter(|(_, most)| *most > 0) else { return Ok(Vec::new()) };
    or_nothing(connection, outbox::claim_of_row(connection, row, clock + *ttl, *now, clock, most))
}

/// Leases a thread for the holder, if there is one.
fn lease(
    connection: &Connection<'_>,
    row: &mut ThreadRow,
    holder: Option<&Holder>,
    clock: Timestamp,
) -> Result<Option<StoredAcquired>, Failure> {
    let Some(holder) = holder else { return Ok(None) };
    or_nothing(connection, leases::acquire_row(connection, row, holder, clock))
}

/// Returns nothing instead of an error, unless SQLite has undone the whole transaction because of it, as for an error of
/// the disk.
fn or_nothing<T: Default>(connection: &Connection<'_>, second: Result<T, Failure>) -> Result<T, Failure> {
    match second {
        Err(error) if connection.is_autocommit() => Err(error),
        second => Ok(second.unwrap_or_default()),
    }
}
