//! The operations of the store. Each one serializes its arguments, runs in the writing or a reading
//! thread, and parses the result.

use std::time::Duration;

use async_trait::async_trait;
use countersign_core::{
    clock::Timestamp,
    hash::sha256,
    ids::{Slot, ThreadId},
};
use countersign_graph::{
    action::ActionRecord,
    keyring::Proof,
    store::{
        Acquired, ActionFilter, ActionKey, ActionsOf, AuditTrail, Backlog, Changes, Claimed, ClaimedInteraction,
        DeadLetter, Delivery, Durability, Error, Forget, Handling, Holder, Ingested, Keep, Lease, Posted,
        QueuedMessage, Register, Saved, Sent, Seq, Settlement, StepRecord, Store, Then, ThreadFilter, ThreadSummary,
        Unreadable, Unwritable, Version, Waiting,
    },
};
use serde_json::Value;

use super::{
    SqliteStore, actions, aside, changes, connection::Connection, dead_letters, forget, inbox, keys::json, leases,
    lists, mailbox, outbox, record, registers, steps, sweep, thread_row::ThreadRow, writer::Durable,
};
use crate::aside::{StoredPlace, reason_of};

#[async_trait]
impl Store for SqliteStore {
    async fn ingest(&self, delivery: &Delivery, handling: Handling<'_>) -> Result<(Ingested, Option<Acquired>), Error> {
        match handling {
            Handling::Later => self.ingest_then_acquire(delivery, None).await,
            Handling::Lease(holder) => self.ingest_then_acquire(delivery, Some(holder)).await,
            Handling::Apply(changes, holder) => self.apply_instead_of(delivery, changes, holder).await,
        }
    }

    async fn acquire(&self, holder: &Holder, only: Option<&ThreadId>) -> Result<Option<Acquired>, Error> {
        let (holder, only, clock) = (holder.clone(), only.cloned(), self.clock.now());
        let acquire = move |connection: &Connection<'_>| leases::acquire(connection, &holder, clock, only.as_ref());
        match self.writer.run_with(Durable::Later, acquire).await? {
            Some(acquired) => self.read_acquired(acquired).await.map(Some),
            None => Ok(None),
        }
    }

    async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<(), Error> {
        let (lease, until) = (lease.clone(), self.clock.now() + ttl);
        self.writer.run_with(Durable::Later, move |connection| leases::renew(connection, &lease, until)).await
    }

    async fn messages(
        &self,
        thread: &ThreadId,
        after: Seq,
        lease: Option<&Lease>,
    ) -> Result<Vec<QueuedMessage>, Error> {
        let (id, lease) = (thread.clone(), lease.cloned());
        let is_leased = lease.is_some();
        let messages = self.readers.run(move |connection| {
            let row = match &lease {
                Some(lease) => Some(leases::leased_row(connection, lease)?),
                None => ThreadRow::find(connection, &id)?,
            };
            row.map_or(Ok(Vec::new()), |row| mailbox::messages(connection, &row, after))
        });
        match messages.await? {
            messages if is_leased => self.read_messages(thread, messages).await,
            messages => Ok(mailbox::read(messages, |_, _| ())), // unreadable ones are reported when the thread is leased
        }
    }

    async fn commit(
        &self,
        lease: &Lease,
        expected: Version,
        changes: &Changes,
        then: Then,
        claims: Option<(&Holder, usize)>,
    ) -> Result<(Version, Vec<Claimed>), Error> {
        self.commit_then_claim(lease, expected, changes, then, claims).await
    }

    async fn apply(&self, changes: &Changes) -> Result<(), Error> {
        let sync = changes::sync(changes);
        let (stored, clock) = (self.stored(changes), self.clock.now());
        let apply =
            move |connection: &Connection<'_>| changes::apply(connection, &stored, clock)?.save(connection, clock);
        self.writer.run_with(sync, apply).await?;
        changes.actions.iter().for_each(|change| self.written.note(change));
        Ok(())
    }

    async fn claim_interaction(&self, ttl: Duration, limit: usize) -> Result<Vec<ClaimedInteraction>, Error> {
        let clock = self.clock.now();
        let claim = move |connection: &Connection<'_>| inbox::claim(connection, clock + ttl, clock, limit);
        let claimed = self.writer.run_with(Durable::Later, claim);
        let mut unreadable = Vec::new();
        let entries = inbox::read(claimed.await?, |partition, seq, error| {
            unreadable.push((StoredPlace::Inbox(partition, seq), reason_of(&error)));
        });
        self.set_aside(unreadable).await?;
        Ok(entries)
    }

    async fn settle_interaction(&self, entry: &ClaimedInteraction, settlement: Settlement<'_>) -> Result<(), Error> {
        let (partition, seq, attempts) = (entry.partition, entry.seq, entry.attempts);
        match settlement {
            Settlement::Done => self.writer.run(move |connection| inbox::finish(connection, partition, seq)).await,
            Settlement::Retry(wait) => {
                let until = self.clock.now() + wait;
                self.writer.run(move |connection| inbox::retry(connection, seq, attempts, until)).await
            }
            Settlement::Fail { reason, at } => {
                let (claim, reason) = ((partition, seq, attempts), reason.to_owned());
                self.writer.run(move |connection| inbox::fail(connection, claim, &reason, at)).await
            }
            Settlement::SetAside(why) => {
                self.set_aside(vec![(StoredPlace::Inbox(partition, seq), why.to_owned())]).await
            }
        }
    }

    async fn claim_outbox(
        &self,
        holder: &Holder,
        limit: usize,
        only: Option<&ThreadId>,
    ) -> Result<Vec<Claimed>, Error> {
        let (only, now, clock) = (only.cloned(), holder.now, self.clock.now());
        let until = clock + holder.ttl;
        let claim =
            move |connection: &Connection<'_>| outbox::claim(connection, until, now, clock, limit, only.as_ref());
        self.read_claimed(self.writer.run_with(Durable::Later, claim).await?).await
    }

    async fn holds_outbox(&self, claimed: &Claimed) -> Result<bool, Error> {
        let (claim, clock) = (outbox::Claim::from(claimed), self.clock.now());
        self.readers.run(move |connection| outbox::holds(connection, &claim, clock)).await
    }

    async fn finish_outbox(
        &self,
        sent: &[(Claimed, Sent)],
        next: Option<&Holder>,
    ) -> Result<(Vec<bool>, Option<Claimed>), Error> {
        self.finish_then_claim(sent, next).await
    }

    async fn waiting(&self, before: Timestamp, limit: usize) -> Result<Vec<Waiting>, Error> {
        self.readers.run(move |connection| outbox::waiting(connection, before, limit)).await
    }

    async fn dead_letters(&self, limit: usize) -> Result<Vec<DeadLetter>, Error> {
        let messages = self.readers.run(move |connection| dead_letters::list(connection, limit)).await?;
        messages.into_iter().map(dead_letters::StoredDeadLetter::read).collect()
    }

    async fn send_again(&self, id: &str, now: Timestamp) -> Result<bool, Error> {
        let Some(id) = dead_letters::read_id(id) else { return Ok(false) };
        let clock = self.clock.now();
        self.writer.run(move |connection| dead_letters::send_again(connection, id, now, clock)).await
    }

    async fn fire_timers(&self, now: Timestamp) -> Result<usize, Error> {
        self.writer.run_with(Durable::Later, move |connection| inbox::fire_timers(connection, now)).await
    }

    async fn sweep(&self, now: Timestamp) -> Result<(), Error> {
        while self.writer.run_with(Durable::Later, move |connection| sweep::drop_some(connection, now)).await? {}
        let (found, clock) = (self.found.clone(), self.clock.now());
        self.writer.run(move |connection| aside::put_back(connection, &found, clock)).await
    }

    async fn forget(&self, forget: &Forget) -> Result<bool, Error> {
        let (forget, clock) = (forget.clone(), self.clock.now());
        self.writer.run(move |connection| forget::forget(connection, &forget, clock)).await
    }

    async fn action(&self, key: ActionKey<'_>) -> Result<Option<ActionRecord>, Error> {
        let record = match key {
            ActionKey::ByApproval(approval) => {
                let approval = approval.clone();
                self.readers.run(move |connection| actions::find_by_approval(connection, &approval)).await?
            }
            ActionKey::Of(thread, id) => {
                let (thread, id) = (thread.clone(), id.clone());
                self.readers.run(move |connection| actions::find(connection, &thread, &id)).await?
            }
        };
        record.map(|record| record.read()).transpose()
    }

    async fn actions_and_register(
        &self,
        filter: &ActionFilter,
        key: Option<&str>,
    ) -> Result<(Vec<ActionRecord>, Option<Register>), Error> {
        let (wanted, key) = (filter.clone(), key.map(str::to_owned));
        let find = move |connection: &Connection<'_>| {
            let register = key.and_then(|key| registers::get(connection, &key).ok());
            Ok((actions::list(connection, &wanted)?, register))
        };
        let (records, register) = self.readers.run(find).await?;
        let mut records = self.read_actions(records).await;
        if let ActionsOf::Labels(labels) = &filter.of {
            records.retain(|record| record.is_under(labels));
        }
        Ok((records, register.and_then(|stored| registers::read(stored).ok())))
    }

    async fn load(&self, thread: &ThreadId) -> Result<Option<Saved>, Error> {
        let id = thread.clone();
        match self.readers.run(move |connection| lists::load(connection, &id)).await? {
            Some(saved) => Ok(Some(self.read_saved(thread, saved).await)),
            None => Ok(None),
        }
    }

    async fn steps(
        &self,
        thread: &ThreadId,
        after: Version,
        limit: usize,
    ) -> Result<Vec<(Version, StepRecord)>, Error> {
        let id = thread.clone();
        let steps = self.readers.run(move |connection| steps::list(connection, &id, after, limit)).await?;
        let mut unreadable = Vec::new();
        let steps = steps::read(&steps, after, limit, |version, error| {
            unreadable.push((StoredPlace::of_thread("step", thread, version), reason_of(&error)));
        });
        self.note(unreadable).await;
        Ok(steps)
    }

    async fn audit(&self, thread: &ThreadId) -> Result<AuditTrail, Error> {
        let id = thread.clone();
        let (entries, seal) = self.readers.run(move |connection| record::entries(connection, &id)).await?;
        let mut unreadable = Vec::new();
        let entries = record::read(entries, |seq, error| {
            unreadable.push((StoredPlace::of_thread("record", thread, seq), reason_of(&error)));
        });
        self.note(unreadable).await;
        Ok(AuditTrail { entries, seal, proof: Proof::Unsealed })
    }

    async fn posted(&self, thread: &ThreadId, slot: &Slot) -> Result<Option<Posted>, Error> {
        let (thread, slot) = (thread.clone(), slot.clone());
        let posted = self.readers.run(move |connection| match ThreadRow::find(connection, &thread)? {
            Some(row) => outbox::posted(connection, row.id, &slot),
            None => Ok(None),
        });
        posted.await
    }

    async fn threads(&self, filter: ThreadFilter, limit: usize) -> Result<Vec<ThreadSummary>, Error> {
        let clock = self.clock.now();
        self.readers.run(move |connection| lists::threads(connection, filter, limit, clock)).await
    }

    async fn backlog(&self) -> Result<Backlog, Error> {
        self.readers.run(lists::backlog).await
    }

    async fn put_blob(&self, bytes: &[u8], keep: Keep<'_>) -> Result<String, Error> {
        let (hash, bytes) = (hex::encode(sha256(bytes)), bytes.to_owned());
        let key = hash.clone();
        let until = match keep {
            Keep::For(time) => Some(self.clock.now() + time),
            Keep::Permanently => None,
            Keep::WithThread(thread) => {
                let thread = thread.clone();
                self.writer.run(move |connection| lists::put_file(connection, &thread, &key, &bytes)).await?;
                return Ok(hash);
            }
        };
        self.writer.run(move |connection| lists::put_blob(connection, &key, &bytes, until)).await?;
        Ok(hash)
    }

    async fn get_blob(&self, hash: &str) -> Result<Option<Vec<u8>>, Error> {
        let hash = hash.to_owned();
        self.readers.run(move |connection| lists::get_blob(connection, &hash)).await
    }

    async fn register(&self, key: &str) -> Result<Register, Error> {
        let key = key.to_owned();
        registers::read(self.readers.run(move |connection| registers::get(connection, &key)).await?)
    }

    async fn set_register(&self, key: &str, expected: u64, value: &Value) -> Result<bool, Error> {
        let (key, value) = (key.to_owned(), json(value));
        self.writer.run(move |connection| registers::set(connection, &key, expected, &value)).await
    }

    async fn unreadable(&self, limit: usize) -> Result<Vec<Unreadable>, Error> {
        self.readers.run(move |connection| aside::list(connection, limit)).await
    }

    fn is_shared(&self) -> bool {
        false // it locks its file
    }

    async fn probe(&self) -> Result<Vec<Unwritable>, Error> {
        let clock = self.clock.now();
        let write = move |connection: &Connection<'_>| {
            const SQL: &str = "INSERT OR REPLACE INTO probe (id, at) VALUES (1, ?1)";
            connection.statement(SQL)?.execute([clock.0])?;
            Ok(())
        };
        self.writer.run(write).await?;
        // Read back through another connection, since a file that was truncated in place can still be written to.
        let read = |connection: &Connection<'_>| {
            connection.statement("SELECT at FROM probe WHERE id = 1")?.query_row([], |row| row.get::<_, i64>(0))
        };
        match self.readers.run(move |connection| Ok(read(connection)?)).await? {
            found if found >= clock.0 => Ok(Vec::new()),
            found => Err(Error::Unavailable(format!("what was written is not there: {found} for {}", clock.0).into())),
        }
    }

    async fn durability(&self) -> Result<Durability, Error> {
        let settings = |connection: &Connection<'_>| {
            let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
            let synchronous: i64 = connection.pragma_query_value(None, "synchronous", |row| row.get(0))?;
            Ok((mode, synchronous))
        };
        let (mode, synchronous) = self.writer.run(settings).await?;
        let mut problems = Vec::new();
        if mode != "wal" {
            problems.push(format!("journal_mode is `{mode}`; put the file where WAL works: on a local disk"));
        }
        if synchronous < 2 {
            problems.push(format!("synchronous is {synchronous}; it has to be 2 (FULL)"));
        }
        Ok(Durability { name: self.name.clone(), problems, ..Durability::default() })
    }
}
