//! Handles a press in the write that would store it, if it is an approval of which everything is known here.

use countersign_graph::store::{Acquired, Delivery, Error};

use super::Inbox;
use crate::{
    approvals::{clicks::Click, inbox::InboxAnswer},
    runtime::workers::Reservation,
};

impl Inbox {
    /// Writes the approval that a press makes, instead of the press. Returns false if the press has to be stored, and
    /// handled like every other.
    ///
    /// # Errors
    ///
    /// If the store isn't answering. The approval may have been written; the delivery is a repeat then.
    pub async fn approve_at_once(&self, delivery: &Delivery, click: &Click) -> Result<bool, Error> {
        let deps = &self.0;
        let Some((record, changes)) = deps.approvals.approval_at_once(click) else { return Ok(false) };
        let thread = &changes.thread;
        let worker = if changes.messages.is_empty() { None } else { deps.workers.reserve(thread) };
        let holder = worker.as_ref().map(Reservation::holder);
        let (is_new, acquired) = match deps.store.ingest_and_apply(delivery, &changes, holder.as_ref()).await {
            Ok(written) => written,
            Err(Error::ActionMoved { .. }) => return Ok(false), // another decision came first
            Err(error) => return Err(error),
        };
        if !is_new {
            metrics::counter!("countersign_duplicates_total").increment(1);
            return Ok(true);
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
        Ok(true)
    }
}
