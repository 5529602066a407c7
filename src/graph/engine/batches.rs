//! Carries out an approved action that is made in batches: saves each batch, shows the progress,
//! and checks for “stop”.
//!
//! A batch that was begun but not saved is *interrupted*. Its requests may still be in flight, so
//! it is left alone until they must have arrived. Then the action finds out how much of the batch
//! is done.
//!
//! A batch may also wait for an external event (`external.rs`). The action is then saved and the
//! thread released; the action continues here when the event arrives, at its deadline, or to be
//! stopped.
//!
//! The requests of a batch are sent under a [`SendPermit`], which is renewed as long as the store
//! confirms that the thread is still ours. A process that takes the thread over waits for the time
//! in flight from then on, and the permit ends before that.

use std::{ops::Range, time::Duration};

use countersign_core::{cause, clock::Timestamp, http_log::HttpLog, ids::UserId, send_permit::SendPermit};

use super::{
    perform::{Attempt, illegal, note_requests, so_far, unknown},
    session::{Session, outgoing},
};
use crate::{
    action::{ActionRecord, Batch, Batches, Progress, Status},
    engine::{Engine, LeaseState},
    node::State,
    store::{ActionChange, AuditKind, Error, Outbound, Outgoing, Then},
    unwind::{Panicked, caught},
};

/// The time for which a thread is left to other processes, in milliseconds.
const LEFT_TO_OTHERS: Range<u64> = 50..400;

/// The value of [`ActionRecord::interrupted_at`] if no request of the action can be in flight.
pub(super) const NOTHING_IN_FLIGHT: Timestamp = Timestamp(0);

impl<S: State> Engine<S> {
    /// Makes one batch after another until the action ends, waits or is interrupted.
    pub(super) async fn make_batches(
        &self,
        session: &mut Session<S>,
        batches: &dyn Batches,
        mut record: ActionRecord,
        attempt: Attempt<'_>,
        mut interrupted: bool,
    ) -> Result<LeaseState, Error> {
        let mut stop = None;
        // An event that arrived is processed before a stop or the deadline, since only then is the state of the change
        // known.
        let mut arrived = !interrupted && record.waits.as_ref().is_some_and(|wait| wait.arrived().is_some());
        let http_log = HttpLog::default();
        loop {
            // The permit begins before the store is asked whether the thread is still ours, which the check for a stop
            // does.
            let permit = SendPermit::new(self.clock.clone(), batches.in_flight() / 2);
            stop = stop.or(self.stopped_by(session).await?);
            // The result of an interrupted batch is looked up first, since the reported outcome must be true.
            let late = record.intent_at.is_some_and(|began| self.clock.now() > began + batches.longest());
            if !interrupted && !arrived && (stop.is_some() || late) {
                let gives_up = tokio::time::timeout(self.settings.step_timeout, caught(batches.give_up(&record)));
                let given_up = tokio::select! {
                    given_up = http_log.during(permit.during(gives_up)) => given_up,
                    () = self.keep_permit(session, &permit) => return Err(Error::Fenced(session.lease.thread.clone())),
                };
                if let Ok(Ok(Some(progress))) = given_up {
                    record.progress = Some(progress);
                }
                let now = self.clock.now();
                note_requests(session, &record, &http_log, now);
                if let Some(by) = &stop {
                    session.note(record.event(AuditKind::Stopped, now, Some(by.clone()), so_far(&record)));
                }
                let outcome = batches.stopped(&record, stop.as_ref());
                let cut_short = ActionRecord { cut_short: true, ..record };
                session.stop();
                return self.close(session, &cut_short, attempt, outcome).await;
            }
            if !interrupted && self.stopping.is_cancelled() {
                note_requests(session, &record, &http_log, self.clock.now());
                return self.hand_over(session, &record).await;
            }
            let next = tokio::time::timeout(self.settings.step_timeout, caught(batches.next(&record, interrupted)));
            let batch = tokio::select! {
                batch = http_log.during(permit.during(next)) => batch,
                () = self.keep_permit(session, &permit) => return Err(Error::Fenced(session.lease.thread.clone())),
            };
            let batch = match batch {
                Ok(Err(Panicked)) => {
                    note_requests(session, &record, &http_log, self.clock.now());
                    let evidence = "Something went wrong on my side midway.";
                    session.stop();
                    return self.close(session, &record, attempt, unknown(evidence.into())).await;
                }
                Ok(Ok(batch)) => Ok(batch),
                Err(elapsed) => Err(elapsed),
            };
            if !matches!(batch, Ok(Batch::Made(_))) {
                note_requests(session, &record, &http_log, self.clock.now());
            }
            match batch {
                Ok(Batch::Made(progress)) => record = self.save_batch(session, record, progress).await?,
                Ok(waits @ (Batch::Waits(..) | Batch::Asks(..))) => {
                    let (progress, awaited, asks) = match waits {
                        Batch::Waits(progress, awaited) => (progress, awaited, None),
                        Batch::Asks(progress, awaited, asks) => (progress, awaited, Some(asks)),
                        _ => unreachable!("these two are matched"),
                    };
                    let now = self.clock.now();
                    let longest = record.intent_at.unwrap_or(now) + batches.longest();
                    let until = longest.min(now + awaited.within);
                    if stop.is_none() && until > now {
                        return self.wait_for(session, &record, attempt, progress, (awaited, asks, until)).await;
                    }
                    record = self.save_batch(session, record, progress).await?; // the next pass of the loop stops it
                }
                Ok(Batch::Ended(outcome)) => {
                    session.stop();
                    return self.close(session, &record, attempt, outcome).await;
                }
                Ok(Batch::Elsewhere(progress)) => {
                    record.progress = Some(progress);
                    return self.leave_to_others(session, &record).await;
                }
                Ok(Batch::NotNow) | Err(_) => return self.wait_for_flight(session, batches, &record).await,
            }
            (interrupted, arrived) = (false, false);
        }
    }

    /// Renews a permit as long as the thread is ours. Returns when it no longer is.
    async fn keep_permit(&self, session: &Session<S>, permit: &SendPermit) {
        loop {
            tokio::time::sleep(permit.length() / 3).await;
            let moment = permit.moment();
            let lease = &session.lease;
            match self.store.messages(&lease.thread, session.newest_seq(), Some(lease)).await {
                Ok(_) => permit.renew(moment),
                Err(Error::Fenced(_)) => return,
                Err(error) => tracing::warn!(
                    error = cause::chain(&error),
                    "Cannot check whether the lease of a thread is still held"
                ),
            }
        }
    }

    /// Continues an action that was found in the middle of a batch.
    pub(super) async fn take_over_batches(
        &self,
        session: &mut Session<S>,
        batches: &dyn Batches,
        record: ActionRecord,
        attempt: Attempt<'_>,
    ) -> Result<LeaseState, Error> {
        match record.interrupted_at {
            Some(since) if since + batches.in_flight() <= self.clock.now() => {
                // From here on, requests may be sent again, so a process that takes over later has to wait again.
                let resumed = ActionRecord { interrupted_at: None, ..record.moved(Status::Intent).map_err(illegal)? };
                let change = ActionChange { expected: Some(record.revision), record: resumed.clone() };
                self.save_record(session, change, None, Then::Keep).await?;
                // A batch that was to process the event it waited for has sent nothing yet.
                let is_fresh =
                    since == NOTHING_IN_FLIGHT && resumed.waits.as_ref().is_some_and(|wait| wait.arrived().is_some());
                self.make_batches(session, batches, resumed, attempt, !is_fresh).await
            }
            _ => self.wait_for_flight(session, batches, &record).await,
        }
    }

    /// Releases the thread between two batches, so that another process can continue at once.
    async fn hand_over(&self, session: &mut Session<S>, record: &ActionRecord) -> Result<LeaseState, Error> {
        let left =
            ActionRecord { interrupted_at: Some(NOTHING_IN_FLIGHT), ..record.moved(Status::Intent).map_err(illegal)? };
        let change = ActionChange { expected: Some(record.revision), record: left };
        self.save_record(session, change, None, Then::ReleaseUntil(self.clock.now())).await?;
        Ok(LeaseState::Released)
    }

    /// Releases the thread for a moment that differs each time: processes look for ready threads at regular intervals,
    /// and this one must not always be the first.
    async fn leave_to_others(&self, session: &mut Session<S>, record: &ActionRecord) -> Result<LeaseState, Error> {
        let left =
            ActionRecord { interrupted_at: Some(NOTHING_IN_FLIGHT), ..record.moved(Status::Intent).map_err(illegal)? };
        let change = ActionChange { expected: Some(record.revision), record: left };
        let pause = Duration::from_millis(rand::random_range(LEFT_TO_OTHERS));
        self.save_record(session, change, None, Then::ReleaseUntil(self.clock.now() + pause)).await?;
        Ok(LeaseState::Released)
    }

    /// Releases the thread until no request of an interrupted batch can be in flight.
    async fn wait_for_flight(
        &self,
        session: &mut Session<S>,
        batches: &dyn Batches,
        record: &ActionRecord,
    ) -> Result<LeaseState, Error> {
        let since = record.interrupted_at.unwrap_or_else(|| self.clock.now());
        tracing::info!(action.id = %record.id, "A batch was interrupted; waiting before checking how much of it happened");
        let found = ActionRecord { interrupted_at: Some(since), ..record.moved(Status::Intent).map_err(illegal)? };
        let change = ActionChange { expected: Some(record.revision), record: found };
        self.save_record(session, change, None, Then::ReleaseUntil(since + batches.in_flight())).await?;
        Ok(LeaseState::Released)
    }

    /// Saves the progress, and updates the card at intervals.
    async fn save_batch(
        &self,
        session: &mut Session<S>,
        record: ActionRecord,
        progress: Progress,
    ) -> Result<ActionRecord, Error> {
        let now = self.clock.now();
        let mut further = record.moved(Status::Intent).map_err(illegal)?;
        further.waits = None;
        further.progress = Some(progress);
        further.progress_at = Some(now);
        let due = session.status_due.is_none_or(|due| due <= now);
        let change = ActionChange { expected: Some(record.revision), record: further.clone() };
        self.save_record(session, change, due.then_some(now), Then::Keep).await?;
        Ok(further)
    }

    /// Writes a record and, if `shown` is given, a card that may be sent from then on.
    async fn save_record(
        &self,
        session: &mut Session<S>,
        change: ActionChange,
        shown: Option<Timestamp>,
        then: Then,
    ) -> Result<(), Error> {
        let mut changes = session.changes();
        if let Some(now) = shown {
            session.status_due = Some(now + self.settings.status_every);
            let card = Outbound::Card { card: change.record.card.clone(), state: change.record.card_state() };
            changes.outbox.push(Outgoing { progress: true, ..outgoing(change.record.slot.clone(), now, card) });
        }
        changes.actions.push(change);
        self.save(session, changes, then).await
    }

    /// Returns the person who said “stop” since this thread was leased, if anyone did. The message is acknowledged when
    /// the action is closed, so that a process that takes over in between finds it as well.
    pub(super) async fn stopped_by(&self, session: &mut Session<S>) -> Result<Option<UserId>, Error> {
        let lease = &session.lease;
        session.add_messages(self.store.messages(&lease.thread, session.newest_seq(), Some(lease)).await?);
        Ok(session.stop_said())
    }
}
