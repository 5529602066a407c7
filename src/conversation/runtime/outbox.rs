//! Sends outgoing messages: in order within a thread, once.
//!
//! Slack has no idempotency key. Each post carries a random one in its metadata; when an attempt has no known end, the
//! thread is searched for it before anything is posted again. Edits and deletions can simply be repeated.
//!
//! A claim has an end. A process that stood still for longer than that does not send any more ([`claim`]); a message
//! posted twice all the same is searched for and deleted ([`twins`]). A message that Slack refuses for good is reported
//! another way and kept ([`refused`]). One that it does not take for long holds up nothing else, and is reported
//! ([`mod@waiting`]).
//!
//! Before a message goes, [`super::pacing`] is asked if Slack would take it now. If not, it goes back into the outbox,
//! untried, and the sender turns to another thread; the next sweep after its time takes it up.
//!
//! A message goes by a [`Channel`], which is Slack but for [`Outbound::Elsewhere`]; one for a channel that this program
//! does not have stays in the outbox.
//!
//! As many tasks run as there are seats. A caller that finds none puts the thread in a line ([`mod@line`]) of limited
//! length: threads that do not fit are found by the next sweep.

mod attempt;
pub mod channel;
mod claim;
mod line;
pub mod refused;
pub mod twins;
mod waiting;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, atomic::AtomicI64},
};

use countersign_core::{
    clock::Clock,
    ids::{ChannelId, CommitId, ThreadId, UserId, WorkerId},
};
use countersign_graph::{
    action::Status,
    conversing::Memories,
    store::{ActionFilter, Changes, Claimed, Outbound, Sent, Store},
};
use countersign_slack::client::SlackClient;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::task::TaskTracker;

pub use self::claim::Held;
use self::{
    channel::{Channel, Channels},
    line::Line,
    waiting::Troubles,
};
use super::{
    pacing::{Candidate, Method, Pacing, Turn},
    thread_status::ThreadStatus,
};
use crate::presentation::{links::Links, names::Names};

/// The time after which another process may send a claimed message, in timeouts of a call.
const CLAIM: u32 = 3;

/// The number of threads whose messages a sweep claims at a time.
const BATCH: usize = 64;

/// The number of a thread's superseded cards that are searched for those that lead to a new one.
const OLDER: usize = 20;

/// The sender of outgoing messages.
#[derive(Clone)]
pub struct Sender(Arc<Inner>);

/// The dependencies of a [`Sender`].
pub struct SenderDeps {
    /// The store of the messages.
    pub store: Arc<dyn Store>,
    /// The client that messages go by.
    pub slack: SlackClient,
    /// The other channels that messages can go by.
    pub channels: Vec<Arc<dyn Channel>>,
    /// Slack's status line for work in progress.
    pub thread_status: ThreadStatus,
    /// The links to cards.
    pub links: Links,
    /// The names of user groups and people.
    pub names: Names,
    /// The reader of the threads' memories.
    pub memories: Memories,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The name of this process in claims.
    pub name: WorkerId,
    /// The number of messages that are sent at a time.
    pub seats: usize,
    /// True if Slack's limits are kept.
    pub rate_limits: bool,
    /// The tasks in progress, for draining.
    pub tasks: TaskTracker,
}

struct Inner {
    store: Arc<dyn Store>,
    slack: SlackClient,
    channels: Channels,
    thread_status: ThreadStatus,
    memories: Memories,
    clock: Arc<dyn Clock>,
    name: WorkerId,
    pacing: Option<Pacing>,
    seats: Arc<Semaphore>,
    line: Line,
    tasks: TaskTracker,
    /// The milliseconds that Slack's clock is ahead of ours, from its last answer.
    ahead: AtomicI64,
    troubles: Troubles,
    links: Links,
    names: Names,
    /// The direct conversations with people, as far as they were needed.
    direct: Mutex<HashMap<UserId, ChannelId>>,
}

impl Sender {
    /// Creates a sender from its dependencies.
    pub fn new(deps: SenderDeps) -> Self {
        let SenderDeps {
            store,
            slack,
            channels,
            thread_status,
            links,
            names,
            memories,
            clock,
            name,
            seats,
            rate_limits,
            tasks,
        } = deps;
        let (seats, direct) = (Arc::new(Semaphore::new(seats)), Mutex::default());
        let pacing = rate_limits.then(Pacing::default);
        let (line, ahead) = (Line::default(), AtomicI64::new(0));
        Self(Arc::new(Inner {
            store,
            slack,
            channels: Channels::new(channels),
            thread_status,
            memories,
            clock,
            name,
            pacing,
            seats,
            line,
            tasks,
            ahead,
            troubles: Troubles::default(),
            links,
            names,
            direct,
        }))
    }

    /// Sends the messages of a thread that are due.
    pub fn flush(&self, thread: ThreadId) {
        self.0.line.push(thread, false);
        self.serve();
    }

    /// Sends the messages of a thread whose work has ended, and clears the thread status if they leave it standing.
    pub fn ended(&self, thread: ThreadId) {
        self.0.line.push(thread, true);
        self.serve();
    }

    /// Takes up the threads in line, if there is a seat: a seat comes before a claim, whose time is for sending.
    fn serve(&self) {
        let Ok(seat) = self.0.seats.clone().try_acquire_owned() else { return };
        self.0.tasks.spawn(self.clone().serve_line(seat));
    }

    async fn serve_line(self, mut seat: OwnedSemaphorePermit) {
        loop {
            while let Some((thread, ended)) = self.0.line.pop() {
                if !self.send_all(&thread).await && ended {
                    self.0.thread_status.ended(&thread).await;
                }
            }
            drop(seat);
            // Somebody may have come between the last look and the seat's being free, and have found none.
            if self.0.line.is_empty() {
                return;
            }
            match self.0.seats.clone().try_acquire_owned() {
                Ok(again) => seat = again,
                Err(_) => return,
            }
        }
    }

    /// Sends the messages that are due in any thread, as far as there are seats.
    pub async fn sweep(&self) {
        let free = self.0.seats.available_permits().min(BATCH);
        let many = u32::try_from(free).unwrap_or(0);
        let Ok(mut seats) = self.0.seats.clone().try_acquire_many_owned(many) else { return };
        for claimed in self.claim(None, free).await {
            let Some(seat) = seats.split(1) else { return };
            let sender = self.clone();
            self.0.tasks.spawn(async move {
                let thread = claimed.message.thread.clone();
                sender.send(claimed).await;
                sender.send_all(&thread).await;
                sender.serve_line(seat).await;
            });
        }
        drop(seats);
        self.serve();
    }

    /// Sends all due messages of a thread. Returns true if the last of them was a status: then the work goes on.
    async fn send_all(&self, thread: &ThreadId) -> bool {
        let mut goes_on = false;
        while let Some(held) = self.claim(Some(thread), 1).await.pop() {
            goes_on = matches!(held.message.outgoing.body, Outbound::Status { .. });
            self.send(held).await;
        }
        goes_on
    }

    async fn claim(&self, only: Option<&ThreadId>, limit: usize) -> Vec<Held> {
        let ttl = self.0.slack.timeout() * CLAIM;
        let term = claim::Term::of(ttl, &*self.0.clock); // from before the store's, so that it ends before
        let claimed = self.0.store.claim_outbox(&self.0.name, ttl, self.0.clock.now(), limit, only).await;
        let claimed = claimed.unwrap_or_else(|error| {
            tracing::warn!(error = countersign_core::cause::chain(&error), "Cannot claim outgoing messages");
            Vec::new()
        });
        claimed.into_iter().map(|message| Held { message, term }).collect()
    }

    async fn send(&self, mut held: Held) {
        let drawn = self.draw(&mut held.message).await;
        let claimed = &held.message;
        let sent = match (drawn, self.turn(claimed)) {
            (Err(not_drawn), _) => not_drawn,
            (Ok(()), Turn::Go) => self.send_by_its_channel(&held).await,
            (Ok(()), Turn::Wait(until)) => Sent::Deferred(until),
        };
        if let (Sent::Delivered(Some(_)), Outbound::Card { .. }, None) =
            (&sent, &claimed.outgoing.body, &claimed.posted)
        {
            self.lead_to(claimed).await;
        }
        if let Sent::Failed { reason, .. } = &sent {
            self.tell_otherwise(claimed, reason).await;
        }
        self.tell_of_waiting(claimed, &sent).await;
        let may_be_twice = claimed.attempts > 0 && claimed.posted.is_none();
        if let (Sent::Delivered(Some(_)), true) = (&sent, may_be_twice) {
            self.look_for_twins(claimed).await; // an earlier attempt may still arrive
        }
        match self.0.store.finish_outbox(claimed, &sent).await {
            Ok(true) if held.term.holds(&*self.0.clock) => {}
            Ok(_) if matches!(sent, Sent::Delivered(_)) => self.put_right(claimed).await,
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(
                    error = countersign_core::cause::chain(&error),
                    "Cannot record that a message was sent; it will be looked for"
                );
            }
        }
    }

    /// Replaces an [`Outbound::Redraw`] by the current card. A later change of the action puts a message behind it in
    /// the outbox.
    async fn draw(&self, claimed: &mut Claimed) -> Result<(), Sent> {
        let Outbound::Redraw { action } = &claimed.outgoing.body else { return Ok(()) };
        match self.0.store.action(&claimed.thread, action).await {
            Ok(Some(record)) => {
                claimed.outgoing.body = Outbound::Card { card: record.card.clone(), state: record.card_state() };
                Ok(())
            }
            Ok(None) => Err(Sent::Dropped),
            Err(error) => Err(self.later(claimed, &error)),
        }
    }

    /// Draws the older cards again that the card just posted has replaced, since they can lead to it from now on.
    async fn lead_to(&self, newer: &Claimed) {
        let filter =
            ActionFilter { thread: Some(newer.thread.clone()), statuses: vec![Status::Superseded], limit: OLDER };
        let older = self.0.store.actions(&filter).await.unwrap_or_default();
        let older = older.iter().filter(|record| {
            let replaced_by = record.replaced_by.as_ref().map(|newer| &newer.slot);
            replaced_by.is_some() && replaced_by == newer.outgoing.slot.as_ref()
        });
        let mut changes = Changes::new(CommitId::fresh(), newer.thread.clone());
        changes.outbox.extend(older.map(|record| record.redrawn(self.0.clock.now())));
        if !changes.outbox.is_empty()
            && let Err(error) = self.0.store.apply(&changes).await
        {
            tracing::warn!(
                error = countersign_core::cause::chain(&error),
                "An older card does not lead to the one that took its place"
            );
        }
    }

    /// Returns whether Slack would take the message now.
    fn turn(&self, claimed: &Claimed) -> Turn {
        let (Some(pacing), Some(method)) = (&self.0.pacing, method(claimed)) else { return Turn::Go };
        let message = claimed.posted.as_ref().map(|posted| &posted.ts);
        let candidate = Candidate { method, thread: &claimed.thread, message, progress: claimed.outgoing.progress };
        pacing.turn(&candidate, self.0.clock.now())
    }
}

/// Returns the Slack method that sends the message; `None` if it needs none.
fn method(claimed: &Claimed) -> Option<Method> {
    match (&claimed.outgoing.body, &claimed.posted) {
        (Outbound::Elsewhere { .. }, _) => None,
        (Outbound::File { .. }, _) => Some(Method::Upload),
        (Outbound::Remove, posted) => posted.as_ref().map(|_| Method::Delete),
        (_, Some(_)) => Some(Method::Update),
        (_, None) => Some(Method::Post),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use secrecy::SecretString;

    use super::*;

    /// Returns a sender to which Slack does not answer.
    pub(crate) fn alone(store: Arc<dyn Store>, clock: Arc<dyn Clock>, channels: Vec<Arc<dyn Channel>>) -> Sender {
        let (token, timeout) = (SecretString::from("xoxb-1"), Duration::from_secs(10));
        let slack = SlackClient::new("http://127.0.0.1:9/api", &token, timeout).unwrap();
        Sender::new(SenderDeps {
            thread_status: ThreadStatus::new(slack.clone(), false, false),
            links: Links::new(store.clone(), None),
            names: Names::new(slack.clone(), clock.clone()),
            store,
            slack,
            channels,
            memories: Memories::default(),
            clock,
            name: WorkerId::new("w"),
            seats: 1,
            rate_limits: false,
            tasks: TaskTracker::new(),
        })
    }
}
