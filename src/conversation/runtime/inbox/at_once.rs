//! Handles a press in the write that would store it, if it is an approval of which everything is known here.

use countersign_core::{cause, spans};
use countersign_graph::{
    action::ActionRecord,
    store::{Acquired, Changes, Delivery, Error, Handling, Ingested},
};
use tracing::{Instrument as _, debug_span};

use super::Inbox;
use crate::{
    approvals::{clicks::Click, inbox::InboxAnswer},
    runtime::workers::Reservation,
};

impl Inbox {
    /// Writes the approval that a press makes, instead of the press. Returns false if the press has to be stored, and
    /// handled like every other; if the approval was written all the same, the press is a repeat then.
    pub async fn approve_at_once(&self, delivery: &Delivery, click: &Click) -> bool {
        let Some((record, changes)) = self.0.approvals.approval_at_once(click).await else { return false };
        let (inbox, delivery) = (self.clone(), delivery.clone());
        // A task of its own: if the store answers too late for an acknowledgement, the thread goes on all the same.
        let decide = debug_span!("decide", action.name = record.name);
        let work = async move {
            spans::link(record.span.as_deref());
            inbox.write_approval(&delivery, record, changes).await
        };
        match self.0.workers.tasks().spawn(work.instrument(decide)).await {
            Ok(Ok(())) => true,
            Ok(Err(Error::ActionMoved { .. })) => false, // another decision came first
            Ok(Err(error)) => {
                let error = cause::chain(&error);
                tracing::warn!(error, "Cannot write an approval at once; the press is stored instead");
                false
            }
            Err(_) => false, // it panicked, which is logged
        }
    }

    async fn write_approval(&self, delivery: &Delivery, record: ActionRecord, changes: Changes) -> Result<(), Error> {
        let deps = &self.0;
        let thread = &changes.thread;
        let worker = if changes.messages.is_empty() { None } else { deps.workers.reserve(thread) };
        let holder = worker.as_ref().map(Reservation::holder);
        let (ingested, acquired) = deps.store.ingest(delivery, Handling::Apply(&changes, holder.as_ref())).await?;
        if ingested == Ingested::Duplicate {
            metrics::counter!("countersign_duplicates_total").increment(1);
            return Ok(());
        }
        let now = deps.clock.now();
        match worker {
            Some(worker) => {
                let decided = Some(Box::new(record));
                worker.start(acquired.map(|acquired| Acquired { decided, ..acquired }));
                deps.home.mark_changed();
                if changes.outbox.iter().any(|outgoing| outgoing.not_before <= now) {
                    deps.sender.flush(thread.clone());
                }
            }
            None => self.continue_thread(&InboxAnswer::Counted(thread.clone())),
        }
        Ok(())
    }
}
