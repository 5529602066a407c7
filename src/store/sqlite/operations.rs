//! The operations of the store. Each one serializes its arguments, runs in the writing or a reading
//! thread, and parses the result.

use std::time::Duration;

use async_trait::async_trait;
use countersign_core::{
    clock::Timestamp,
    hash::sha256,
    ids::{ActionId, ApprovalId, Partition, Slot, ThreadId, WorkerId},
};
use countersign_graph::{
    action::{ActionRecord, Label, Status},
    keyring::Proof,
    store::{
        Acquired, ActionFilter, AuditTrail, Backlog, Changes, Claimed, ClaimedInteraction, DeadLetter, Delivery,
        Durability, Error, Forget, Holder, Ingested, KnownCard, Lease, Posted, QueuedMessage, Register, Saved, Sent,
        Seq, StepRecord, Store, Then, ThreadSummary, Unreadable, Unwritable, Version, Waiting,
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
    async fn ingest(&self, delivery: &Delivery) -> Result<Ingested, Error> {
        Ok(self.ingest_then_acquire(delivery, None).await?.0)
    }

    async fn ingest_and_acquire(
        &self,
        delivery: &Delivery,
        holder: &Holder,
    ) -> Result<(Ingested, Option<Acquired>), Error> {
        self.ingest_then_acquire(delivery, Some(holder)).await
    }

    async fn acquire(
        &self,
        worker: &WorkerId,
        ttl: Duration,
        now: Timestamp,
        only: Option<&ThreadId>,
    ) -> Result<Option<Acquired>, Error> {
        let (worker, only, clock) = (worker.clone(), only.cloned(), self.clock.now());
        let acquired = self
            .writer
            .run_with(Durable::Later, move |connection| {
                leases::acquire(connection, &worker, clock + ttl, now, clock, only.as_ref())
            })
            .await?;
        match acquired {
            Some(acquired) => self.read_acquired(acquired).await.map(Some),
            None => Ok(None),
        }
    }

    async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<(), Error> {
        let (lease, until) = (lease.clone(), self.clock.now() + ttl);
        self.writer.run_with(Durable::Later, move |connection| leases::renew(connection, &lease, until)).await
    }

    async fn messages(&self, lease: &Lease, after: Seq) -> Result<Vec<QueuedMessage>, Error> {
        let (lease, thread) = (lease.clone(), lease.thread.clone());
        let messages = self.readers.run(move |connection| {
            let row = leases::leased_row(connection, &lease)?;
            mailbox::messages(connection, &row, after)
        });
        self.read_messages(&thread, messages.await?).await
    }

    async fn unread(&self, thread: &ThreadId) -> Result<Vec<QueuedMessage>, Error> {
        let thread = thread.clone();
        let messages = self.readers.run(move |connection| match ThreadRow::find(connection, &thread)? {
            Some(row) => mailbox::messages(connection, &row, 0),
            None => Ok(Vec::new()),
        });
        Ok(mailbox::read(messages.await?, |_, _| ())) // unreadable ones are reported when the thread is leased
    }

    async fn commit(&self, lease: &Lease, expected: Version, changes: &Changes, then: Then) -> Result<Version, Error> {
        Ok(self.commit_then_claim(lease, expected, changes, then, None, 0).await?.0)
    }

    async fn commit_and_claim(
        &self,
        lease: &Lease,
        expected: Version,
        changes: &Changes,
        then: Then,
        holder: &Holder,
        most: usize,
    ) -> Result<(Version, Vec<Claimed>), Error> {
        self.commit_then_claim(lease, expected, changes, then, Some(holder).filter(|_| most > 0), most).await
    }

    async fn apply(&self, changes: &Changes) -> Result<(), Error> {
        let sync = changes::sync(changes);
        let (stored, clock) = (self.stored(changes), self.clock.now());
        let apply =
            move |connection: &Connection<'_>| changes::apply(connection, &stored, clock)?.save(connection, clock);
        self.writer.run_with(sync, apply).await?;
        self.note_written(changes);
        Ok(())
    }

    async fn ingest_and_apply(
        &self,
        delivery: &Delivery,
        changes: &Changes,
        holder: Option<&Holder>,
    ) -> Result<(bool, Option<Acquired>), Error> {
        self.apply_instead_of(delivery, changes, holder).await
    }

    fn note_posted(&self, posted: &Posted) {
        self.cards.on_posted(posted);
    }

    async fn known_card(&self, approval: &ApprovalId) -> Option<KnownCard> {
        self.cards.get(approval).await
    }

    async fn claim_interaction(
        &self,
        _worker: &WorkerId,
        ttl: Duration,
        limit: usize,
    ) -> Result<Vec<ClaimedInteraction>, Error> {
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

    async fn finish_interaction(&self, partition: Partition, seq: Seq) -> Result<(), Error> {
        self.writer.run(move |connection| inbox::finish(connection, partition, seq)).await
    }

    async fn retry_interaction(&self, entry: &ClaimedInteraction, wait: Duration) -> Result<(), Error> {
        let (seq, attempts, until) = (entry.seq, entry.attempts, self.clock.now() + wait);
        self.writer.run(move |connection| inbox::retry(connection, seq, attempts, until)).await
    }

    async fn fail_interaction(&self, entry: &ClaimedInteraction, reason: &str, at: Timestamp) -> Result<(), Error> {
        let (claim, reason) = ((entry.partition, entry.seq, entry.attempts), reason.to_owned());
        self.writer.run(move |connection| inbox::fail(connection, claim, &reason, at)).await
    }

    async fn claim_outbox(
        &self,
        _worker: &WorkerId,
        ttl: Duration,
        now: Timestamp,
        limit: usize,
        only: Option<&ThreadId>,
    ) -> Result<Vec<Claimed>, Error> {
        let (only, clock) = (only.cloned(), self.clock.now());
        let claimed = self
            .writer
            .run_with(Durable::Later, move |connection| {
                outbox::claim(connection, clock + ttl, now, clock, limit, only.as_ref())
            })
            .await?;
        self.read_claimed(claimed).await
    }

    async fn holds_outbox(&self, claimed: &Claimed) -> Result<bool, Error> {
        let (claim, clock) = (outbox::Claim::from(claimed), self.clock.now());
        self.readers.run(move |connection| outbox::holds(connection, &claim, clock)).await
    }

    async fn finish_outbox(&self, claimed: &Claimed, sent: &Sent) -> Result<bool, Error> {
        let (ours, _) = self.finish_then_claim(&[(claimed, sent)], None).await?;
        Ok(ours[0])
    }

    async fn finish_and_claim(
        &self,
        claimed: &Claimed,
        sent: &Sent,
        ttl: Duration,
        now: Timestamp,
    ) -> Result<(bool, Option<Claimed>), Error> {
        let (ours, next) = self.finish_then_claim(&[(claimed, sent)], Some((ttl, now))).await?;
        Ok((ours[0], next))
    }

    async fn finish_all_and_claim(
        &self,
        sent: &[(Claimed, Sent)],
        holder: &Holder,
    ) -> Result<(Vec<bool>, Option<Claimed>), Error> {
        let sent: Vec<_> = sent.iter().map(|(claimed, sent)| (claimed, sent)).collect();
        self.finish_then_claim(&sent, Some((holder.ttl, holder.now))).await
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

    async fn finished(&self, before: Timestamp, limit: usize) -> Result<Vec<ThreadId>, Error> {
        let clock = self.clock.now();
        self.readers.run(move |connection| forget::finished(connection, before, clock, limit)).await
    }

    async fn forget(&self, forget: &Forget) -> Result<bool, Error> {
        let (forget, clock) = (forget.clone(), self.clock.now());
        self.writer.run(move |connection| forget::forget(connection, &forget, clock)).await
    }

    async fn action_by_approval(&self, approval: &ApprovalId) -> Result<Option<ActionRecord>, Error> {
        let approval = approval.clone();
        let record = self.readers.run(move |connection| actions::find_by_approval(connection, &approval)).await?;
        record.map(|record| record.read()).transpose()
    }

    async fn action(&self, thread: &ThreadId, id: &ActionId) -> Result<Option<ActionRecord>, Error> {
        let (thread, id) = (thread.clone(), id.clone());
        let record = self.readers.run(move |connection| actions::find(connection, &thread, &id)).await?;
        record.map(|record| record.read()).transpose()
    }

    async fn actions(&self, filter: &ActionFilter) -> Result<Vec<ActionRecord>, Error> {
        let filter = filter.clone();
        let records = self.readers.run(move |connection| actions::list(connection, &filter)).await?;
        Ok(self.read_actions(records).await)
    }

    async fn actions_under(
        &self,
        labels: &[Label],
        statuses: &[Status],
        limit: usize,
    ) -> Result<Vec<ActionRecord>, Error> {
        Ok(self.find_under(labels, statuses, limit, |_| ()).await?.0)
    }

    async fn actions_and_register(
        &self,
        labels: &[Label],
        statuses: &[Status],
        limit: usize,
        key: &str,
    ) -> Result<(Vec<ActionRecord>, Option<Register>), Error> {
        let key = key.to_owned();
        let register = move |connection: &Connection<'_>| registers::get(connection, &key).ok();
        let (records, register) = self.find_under(labels, statuses, limit, register).await?;
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

    async fn threads(&self, limit: usize) -> Result<Vec<ThreadSummary>, Error> {
        let clock = self.clock.now();
        self.readers.run(move |connection| lists::threads(connection, limit, clock)).await
    }

    async fn backlog(&self) -> Result<Backlog, Error> {
        self.readers.run(lists::backlog).await
    }

    async fn put_blob(&self, bytes: &[u8], keep: Option<Duration>) -> Result<String, Error> {
        let (hash, bytes) = (hex::encode(sha256(bytes)), bytes.to_owned());
        let (key, until) = (hash.clone(), keep.map(|keep| self.clock.now() + keep));
        self.writer.run(move |connection| lists::put_blob(connection, &key, &bytes, until)).await?;
        Ok(hash)
    }

    async fn put_file(&self, thread: &ThreadId, bytes: &[u8]) -> Result<String, Error> {
        let (hash, bytes) = (hex::encode(sha256(bytes)), bytes.to_owned());
        let (key, thread) = (hash.clone(), thread.clone());
        self.writer.run(move |connection| lists::put_file(connection, &thread, &key, &bytes)).await?;
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

    async fn set_aside_interaction(&self, partition: Partition, seq: Seq, why: &str) -> Result<(), Error> {
        self.set_aside(vec![(StoredPlace::Inbox(partition, seq), why.to_owned())]).await
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
