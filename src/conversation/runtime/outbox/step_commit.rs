//! Sends the messages of a step without claiming them in another write.

use std::sync::Arc;

use async_trait::async_trait;
use countersign_core::{clock::Timestamp, ids::ThreadId};
use countersign_graph::{
    step_commit::StepCommit,
    store::{Changes, Error, Lease, Outbound, Outgoing, Then, Version},
};
use tokio::sync::OwnedSemaphorePermit;
use tracing::{Instrument as _, Span};

use super::{Sender, channel::Claim};

#[async_trait]
impl StepCommit for Sender {
    async fn commit(
        &self,
        lease: &Lease,
        expected: Version,
        changes: &Arc<Changes>,
        then: Then,
    ) -> Result<Version, Error> {
        let (holder, term) = self.holder();
        let most = sent_together(&changes.outbox, holder.now);
        // If another task sends for this thread, it will find these messages, and a second sender would break their
        // order.
        let Some(turn) = (most > 0).then(|| self.reserve(&lease.thread)).flatten() else {
            let (version, _) = self.0.store.commit(lease, expected, changes, then, None).await?;
            // A status line may wait for the next sweep, but words appear as they are written.
            if changes.outbox.iter().any(is_draft) {
                self.flush(lease.thread.clone());
            }
            return Ok(version);
        };
        let (store, lease, changes) = (self.0.store.clone(), lease.clone(), Arc::clone(changes));
        // A task of its own: if the work on the thread ends meanwhile, what was claimed is sent all the same.
        let work = async move {
            let (version, claimed) = store.commit(&lease, expected, &changes, then, Some((&holder, most))).await?;
            turn.start(claimed.into_iter().map(|message| Claim { message, term }).collect());
            Ok(version)
        };
        match self.0.tasks.spawn(work.in_current_span()).await {
            Ok(written) => written,
            Err(panicked) if panicked.is_panic() => std::panic::resume_unwind(panicked.into_panic()),
            Err(ended) => Err(Error::Unavailable(Box::new(ended))),
        }
    }
}

impl Sender {
    /// Reserves a permit for the messages of a thread. `None` if there is none, or a task sends its messages already.
    fn reserve(&self, thread: &ThreadId) -> Option<Turn> {
        let permit = self.0.permits.clone().try_acquire_owned().ok()?;
        let is_free = self.0.queue.begin(thread);
        is_free.then(|| Turn { sender: self.clone(), thread: thread.clone(), permit: Some(permit) })
    }
}

/// A permit that is reserved for the messages of a thread.
struct Turn {
    sender: Sender,
    thread: ThreadId,
    permit: Option<OwnedSemaphorePermit>,
}

impl Turn {
    /// Starts a task that sends these messages and those after them. Without any, the permit is given back.
    fn start(mut self, claimed: Vec<Claim>) {
        if claimed.is_empty() {
            return;
        }
        let (sender, thread, permit) = (self.sender.clone(), self.thread.clone(), self.permit.take());
        let origin = Span::current();
        self.sender.0.tasks.spawn(async move {
            sender.send_all(&thread, claimed).instrument(origin).await;
            if let Some(permit) = permit {
                sender.serve_queue(permit).await;
            }
        });
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if self.permit.take().is_some() {
            self.sender.0.queue.give_back(&self.thread);
            if !self.sender.0.queue.is_empty() {
                self.sender.start_task();
            }
        }
    }
}

/// Returns true for a status line with the draft of an answer.
fn is_draft(outgoing: &Outgoing) -> bool {
    matches!(outgoing.body, Outbound::Status { draft: Some(_), .. })
}

/// Returns how many of these messages one claim is for: none if none is to be sent now, except progress, which may wait;
/// otherwise the first one, and the replies right after it.
fn sent_together(outbox: &[Outgoing], now: Timestamp) -> usize {
    let is_due = |outgoing: &&Outgoing| !outgoing.progress && outgoing.not_before <= now;
    let is_reply = |outgoing: &&Outgoing| matches!(outgoing.body, Outbound::Reply { .. });
    let mut due = outbox.iter().skip_while(|outgoing| !is_due(outgoing));
    match due.next() {
        Some(_) => 1 + due.take_while(|outgoing| is_due(outgoing) && is_reply(outgoing)).count(),
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use countersign_core::ids::CommitId;
    use futures_util::poll;
    use serde_json::json;

    use super::*;
    use crate::runtime::{
        outbox::{
            channel::tests::{RecordingChannel, message},
            tests::sender_without_slack,
        },
        workers::tests::{deliver, open_store},
    };

    #[tokio::test]
    async fn what_was_claimed_is_sent_if_the_work_on_the_thread_ends_during_the_write() {
        let (store, clock, _folder) = open_store();
        let thread = deliver(&store, "1.1", "chat", Timestamp(0)).await;
        let road = Arc::new(RecordingChannel("road", Mutex::default()));
        let sender = sender_without_slack(store.clone(), Arc::new(clock), vec![road.clone()]);
        let (holder, _) = sender.holder();
        let lease = store.acquire(&holder, Some(&thread)).await.unwrap().unwrap().lease;
        let mut changes = Changes::new(CommitId::fresh(), thread);
        changes.outbox = vec![message("road", "one")];
        let changes = Arc::new(changes);

        let mut write = sender.commit(&lease, 0, &changes, Then::Release);
        assert!(poll!(&mut write).is_pending(), "it has begun");
        drop(write);
        sender.0.tasks.close();
        sender.0.tasks.wait().await;
        assert_eq!(*road.1.lock().unwrap(), [json!("one")]);
        assert_eq!(store.backlog().await.unwrap().outbox, 0);
    }
}
