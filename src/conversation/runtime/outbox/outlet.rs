//! Sends the messages of a step without claiming them in another write.

use async_trait::async_trait;
use countersign_core::{clock::Timestamp, ids::ThreadId};
use countersign_graph::{
    outlet::Outlet,
    store::{Changes, Error, Lease, Outbound, Outgoing, Then, Version},
};

use tokio::sync::OwnedSemaphorePermit;

use super::{Claim, Sender};

#[async_trait]
impl Outlet for Sender {
    async fn commit(&self, lease: &Lease, expected: Version, changes: &Changes, then: Then) -> Result<Version, Error> {
        let store = &self.0.store;
        let (holder, term) = self.holder();
        let most = sent_together(&changes.outbox, holder.now);
        let Some(turn) = (most > 0).then(|| self.reserve(&lease.thread)).flatten() else {
            return store.commit(lease, expected, changes, then).await;
        };
        let (version, claimed) = store.commit_and_claim(lease, expected, changes, then, &holder, most).await?;
        turn.start(claimed.into_iter().map(|message| Claim { message, term }).collect());
        Ok(version)
    }
}

impl Sender {
    /// Reserves a seat for the messages of a thread. `None` if there is none, or a task sends its messages already.
    fn reserve(&self, thread: &ThreadId) -> Option<Turn> {
        let seat = self.0.seats.clone().try_acquire_owned().ok()?;
        let is_free = self.0.queue.begin(thread);
        is_free.then(|| Turn { sender: self.clone(), thread: thread.clone(), seat: Some(seat) })
    }
}

/// A seat that is reserved for the messages of a thread.
struct Turn {
    sender: Sender,
    thread: ThreadId,
    seat: Option<OwnedSemaphorePermit>,
}

impl Turn {
    /// Starts a task that sends these messages and those after them. Without any, the seat is given back.
    fn start(mut self, claimed: Vec<Claim>) {
        if claimed.is_empty() {
            return;
        }
        let (sender, thread, seat) = (self.sender.clone(), self.thread.clone(), self.seat.take());
        self.sender.0.tasks.spawn(async move {
            sender.send_all(&thread, claimed).await;
            if let Some(seat) = seat {
                sender.serve_queue(seat).await;
            }
        });
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if self.seat.take().is_some() {
            self.sender.0.queue.give_back(&self.thread);
            if !self.sender.0.queue.is_empty() {
                self.sender.start_task();
            }
        }
    }
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
