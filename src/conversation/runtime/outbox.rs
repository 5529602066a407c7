//! Sends outgoing messages once, and in order within a thread.
//!
//! Slack has no idempotency keys. Instead, each post carries a random nonce in its metadata. If the
//! result of an attempt is unknown, the thread is searched for this nonce before the message is
//! posted again. Edits and deletions can simply be repeated.
//!
//! A claim expires. A process that was suspended for longer stops sending ([`channel::Claim`]). If a message
//! was posted twice nevertheless, the copies are searched for and deleted ([`duplicates`]). If
//! Slack permanently refuses a message, the message is kept, and the failure is reported
//! ([`refused`]). A message that Slack does not accept for some time delays no others, and is
//! reported as well.
//!
//! Before a message is sent, [`super::pacing`] checks Slack's rate limits. If it must wait, it is
//! put back into the outbox, not counted as tried, and the sender continues with another thread.
//! The first sweep after its time sends it.
//!
//! A message is sent by a [`Channel`], which is Slack for all but [`Outbound::Elsewhere`]. If this
//! program does not have its channel, the message stays in the outbox.
//!
//! The messages of a step are usually claimed in the write that saves the step ([`mod@step_commit`]). The results of messages
//! that were claimed together are stored together.
//!
//! The number of tasks is limited by permits. If no permit is free, the thread is put into a queue
//! ([`mod@queue`]) of limited length. Threads that do not fit are found by the next sweep.

mod attempt;
pub mod channel;
mod clearance;
mod delayed;
mod drafts;
pub mod duplicates;
mod queue;
pub mod refused;
mod step_commit;

use std::{
    sync::{Arc, PoisonError, atomic::AtomicI64},
    time::Duration,
};

use countersign_core::{
    cause,
    clock::Clock,
    draft::Drafting,
    ids::{ChannelId, CommitId, ThreadId, UserId, WorkerId},
    recent::Recent,
    reply::CardState,
    spans,
};
use countersign_graph::{
    action::Status,
    conversing::Memories,
    store::{ActionFilter, ActionKey, Changes, Claimed, Holder, KnownCards, Outbound, Sent, Store},
};
use countersign_slack::client::SlackClient;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::task::TaskTracker;
use tracing::{Instrument as _, debug_span, field::Empty};

use self::{
    channel::{Channel, Channels, Claim, ClaimTerm},
    delayed::{DelayedMessages, MAX_WAIT},
    drafts::Drafts,
    queue::ThreadQueue,
};
use super::{
    pacing::{Clearance, Pacing},
    thread_status::ThreadStatus,
};
use crate::{
    presentation::{links::Links, names::Names},
    record::undelivered,
};

/// The duration of a claim, as a multiple of the time-out of a call. Afterwards another process may
/// send the message.
const CLAIM_IN_TIMEOUTS: u32 = 3;

/// The maximum number of threads whose messages a sweep claims at once.
const MAX_CLAIMED: usize = 64;

/// The maximum number of a thread's superseded cards that are checked for a link to a new card.
const MAX_OLDER_CARDS: usize = 20;

/// The maximum number of direct conversations that are known.
const MAX_DIRECT: usize = 10_000;

/// The sender of outgoing messages.
#[derive(Clone)]
pub struct Sender(Arc<Inner>);

/// The dependencies of a [`Sender`].
pub struct SenderDeps {
    /// The store of the messages.
    pub store: Arc<dyn Store>,
    /// The cards that this process knows.
    pub cards: Arc<KnownCards>,
    /// The client that sends messages.
    pub slack: SlackClient,
    /// The channels other than Slack.
    pub channels: Vec<Arc<dyn Channel>>,
    /// Slack's status line for work in progress.
    pub thread_status: ThreadStatus,
    /// Whether the draft of an answer is shown. It is switched off if Slack does not have what that needs.
    pub drafting: Drafting,
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
    /// The maximum number of messages that are sent at the same time.
    pub permits: usize,
    /// True if Slack's rate limits are observed.
    pub rate_limits: bool,
    /// The tasks in progress, for draining.
    pub tasks: TaskTracker,
}

struct Inner {
    store: Arc<dyn Store>,
    cards: Arc<KnownCards>,
    slack: SlackClient,
    channels: Channels,
    thread_status: ThreadStatus,
    drafts: Drafts,
    memories: Memories,
    clock: Arc<dyn Clock>,
    name: WorkerId,
    pacing: Option<Pacing>,
    permits: Arc<Semaphore>,
    queue: ThreadQueue,
    tasks: TaskTracker,
    /// The number of milliseconds by which Slack's clock is ahead of ours, according to its last
    /// answer.
    ahead: AtomicI64,
    delayed: DelayedMessages,
    links: Links,
    names: Names,
    /// The direct conversations with people, as far as they are known.
    direct: Recent<UserId, ChannelId>,
}

impl Sender {
    /// Creates a sender from its dependencies.
    pub fn new(deps: SenderDeps) -> Self {
        let SenderDeps {
            store,
            cards,
            slack,
            channels,
            thread_status,
            drafting,
            links,
            names,
            memories,
            clock,
            name,
            permits,
            rate_limits,
            tasks,
        } = deps;
        let (permits, direct) = (Arc::new(Semaphore::new(permits)), Recent::new(MAX_DIRECT));
        let pacing = rate_limits.then(Pacing::default);
        let (queue, ahead) = (ThreadQueue::default(), AtomicI64::new(0));
        Self(Arc::new(Inner {
            store,
            cards,
            slack,
            channels: Channels::new(channels),
            thread_status,
            drafts: Drafts::new(drafting),
            memories,
            clock,
            name,
            pacing,
            permits,
            queue,
            tasks,
            ahead,
            delayed: DelayedMessages::default(),
            links,
            names,
            direct,
        }))
    }

    /// Sends the messages of a thread that are due.
    pub fn flush(&self, thread: ThreadId) {
        self.0.queue.push(thread, false);
        self.start_task();
    }

    /// Sends the messages of a thread whose work has ended, and clears the thread status if none of
    /// the messages did.
    pub fn flush_finished(&self, thread: ThreadId) {
        self.0.queue.push(thread, true);
        self.start_task();
    }

    /// Starts a task for the queued threads, if there is a permit. The permit is taken before messages
    /// are claimed, since the time of a claim is for sending.
    fn start_task(&self) {
        let Ok(permit) = self.0.permits.clone().try_acquire_owned() else { return };
        self.0.tasks.spawn(self.clone().serve_queue(permit));
    }

    async fn serve_queue(self, mut permit: OwnedSemaphorePermit) {
        loop {
            while let Some((thread, origin)) = self.0.queue.pop() {
                self.send_all(&thread, Vec::new()).instrument(origin).await;
            }
            drop(permit);
            // A thread may have been queued between the last `pop` and the release of the permit, when
            // no permit was free.
            if self.0.queue.is_empty() {
                return;
            }
            match self.0.permits.clone().try_acquire_owned() {
                Ok(again) => permit = again,
                Err(_) => return,
            }
        }
    }

    /// Sends due messages of all threads, as long as there are permits.
    pub async fn sweep(&self) {
        let free = self.0.permits.available_permits().min(MAX_CLAIMED);
        let count = u32::try_from(free).unwrap_or(0);
        let Ok(mut permits) = self.0.permits.clone().try_acquire_many_owned(count) else { return };
        for claimed in self.claim(None, free).await {
            let Some(permit) = permits.split(1) else { return };
            let sender = self.clone();
            self.0.tasks.spawn(async move {
                sender.send_from(vec![claimed], &mut false).await;
                sender.serve_queue(permit).await;
            });
        }
        drop(permits);
        self.start_task();
    }

    /// Sends all due messages of a thread for which a task has begun, first those that are claimed already.
    async fn send_all(&self, thread: &ThreadId, claimed: Vec<Claim>) {
        let _sending = SendingGuard { sender: self, thread };
        let mut next = claimed;
        let mut has_ended = false;
        loop {
            if next.is_empty() {
                has_ended |= self.0.queue.looks(thread);
                next = self.claim(Some(thread), 1).await;
            }
            self.send_from(next, &mut has_ended).await;
            if self.0.queue.end(thread) {
                break;
            }
            next = Vec::new();
        }
        if has_ended {
            self.0.thread_status.on_work_ended(thread).await;
        }
    }

    /// Sends claimed messages of a thread and those after them. `has_ended` becomes true if the work in the thread ends
    /// meanwhile, and false with a status line: one that is sent after the end stays.
    async fn send_from(&self, mut next: Vec<Claim>, has_ended: &mut bool) {
        while let Some(last) = next.last() {
            *has_ended &= !matches!(last.message.outgoing.body, Outbound::Status { .. });
            next = self.send_together(next, has_ended).await.into_iter().collect();
        }
    }

    /// Sends messages that were claimed together, records the results, and claims the next message.
    async fn send_together(&self, claims: Vec<Claim>, has_ended: &mut bool) -> Option<Claim> {
        let (mut terms, mut results): (Vec<ClaimTerm>, Vec<(Claimed, Sent)>) = Default::default();
        for mut claim in claims {
            // Messages of one claim are in order. If one waits, those after it wait too, or answers would change
            // places.
            let sent = match results.last() {
                Some((_, before)) if !may_follow(before, &claim, &*self.0.clock) => Sent::Deferred(self.0.clock.now()),
                _ => self.send(&mut claim).await,
            };
            if let Sent::Delivered(Some(posted)) = &sent
                && claim.term.holds(&*self.0.clock)
            {
                self.0.cards.on_posted(posted);
            }
            terms.push(claim.term);
            results.push((claim.message, sent));
        }
        let thread = results.first().map(|(claimed, _)| claimed.thread.clone())?;
        let (holder, term) = self.holder();
        *has_ended |= self.0.queue.looks(&thread);
        match self.0.store.finish_outbox(&results, Some(&holder)).await {
            Ok((ours, next)) => {
                for ((is_ours, term), (claimed, sent)) in ours.into_iter().zip(terms).zip(&results) {
                    // Another sender may have sent it as well, or something newer, which this one has overwritten.
                    if !(is_ours && term.holds(&*self.0.clock)) && matches!(sent, Sent::Delivered(_)) {
                        self.repair_after_lost_claim(claimed).await;
                    }
                }
                next.map(|message| Claim { message, term })
            }
            Err(error) => {
                tracing::warn!(
                    error = cause::chain(&error),
                    "Cannot record that a message was sent; it will be searched for"
                );
                None
            }
        }
    }

    fn claim_ttl(&self) -> Duration {
        self.0.slack.timeout() * CLAIM_IN_TIMEOUTS
    }

    /// Returns this sender as the holder of claims, and the term of those that are made from now on. It begins before the
    /// store's claim, so that it also ends before.
    fn holder(&self) -> (Holder, ClaimTerm) {
        let ttl = self.claim_ttl();
        let term = ClaimTerm::of(ttl, &*self.0.clock);
        (Holder { worker: self.0.name.clone(), ttl, now: self.0.clock.now() }, term)
    }

    async fn claim(&self, only: Option<&ThreadId>, limit: usize) -> Vec<Claim> {
        let (holder, term) = self.holder();
        let claimed = self.0.store.claim_outbox(&holder, limit, only).await;
        let claimed = claimed.unwrap_or_else(|error| {
            tracing::warn!(error = cause::chain(&error), "Cannot claim outgoing messages");
            Vec::new()
        });
        claimed.into_iter().map(|message| Claim { message, term }).collect()
    }

    /// Sends a claimed message, and returns the result.
    async fn send(&self, claim: &mut Claim) -> Sent {
        let kind = undelivered::kind(&claim.message.outgoing.body);
        let post = spans::begun(debug_span!("post", kind, attempts = claim.message.attempts, trace.id = Empty));
        self.send_in_span(claim).instrument(post).await
    }

    async fn send_in_span(&self, claim: &mut Claim) -> Sent {
        let drawn = self.draw(&mut claim.message).await;
        self.drop_unshowable_draft(&mut claim.message);
        let claimed = &claim.message;
        let sent = match (drawn, self.clearance(claimed)) {
            (Err(not_drawn), _) => not_drawn,
            (Ok(()), Clearance::Go) => self.send_by_channel(claim).await,
            (Ok(()), Clearance::Wait(until)) => Sent::Deferred(until),
        };
        if let (Sent::Delivered(Some(_)), true) = (&sent, may_replace_others(claimed)) {
            self.link_older_cards(claimed).await;
        }
        if let Sent::Failed { reason, .. } = &sent {
            self.report_failure(claimed, reason).await;
        }
        self.report_delay(claimed, &sent).await;
        let is_possible_duplicate = claimed.attempts > 0 && claimed.posted.is_none();
        if let (Sent::Delivered(Some(_)), true) = (&sent, is_possible_duplicate) {
            self.schedule_duplicate_search(claimed).await; // an earlier attempt may still arrive
        }
        sent
    }

    /// Replaces an [`Outbound::Redraw`] with the current card. If the action changes later, the
    /// change adds another message to the outbox.
    async fn draw(&self, claimed: &mut Claimed) -> Result<(), Sent> {
        let Outbound::Redraw { action } = &claimed.outgoing.body else { return Ok(()) };
        match self.0.store.action(ActionKey::Of(&claimed.thread, action)).await {
            Ok(Some(record)) => {
                claimed.outgoing.body = Outbound::Card { card: record.card.clone(), state: record.card_state() };
                Ok(())
            }
            Ok(None) => Err(Sent::Dropped),
            Err(error) => Err(self.retry_after_store_error(claimed, &error)),
        }
    }

    /// Redraws the cards that were replaced by the one just posted, since they can now link to it.
    async fn link_older_cards(&self, newer: &Claimed) {
        let filter = ActionFilter::of(&newer.thread, &[Status::Superseded], MAX_OLDER_CARDS);
        let older = self.0.store.actions(&filter).await.unwrap_or_default();
        let older = older.iter().filter(|record| {
            let replaced_by = record.replaced_by.as_ref().map(|newer| &newer.slot);
            replaced_by.is_some() && replaced_by == newer.outgoing.slot.as_ref()
        });
        let mut changes = Changes::new(CommitId::fresh(), newer.thread.clone());
        changes.outbox.extend(older.map(|record| record.card_message(self.0.clock.now())));
        if !changes.outbox.is_empty() {
            self.apply_or_warn(&changes, "An older card has no link to the one that replaced it").await;
        }
    }

    /// Writes changes that are useful, but that no message depends on. Returns false if the store did not accept them.
    async fn apply_or_warn(&self, changes: &Changes, otherwise: &'static str) -> bool {
        let applied = self.0.store.apply(changes).await;
        applied.inspect_err(|error| tracing::warn!(error = cause::chain(error), "{otherwise}")).is_ok()
    }

    /// Sends a message by its channel. If this program does not have that channel, the message is
    /// kept for one that has it, and delays no other messages.
    pub(super) async fn send_by_channel(&self, claim: &Claim) -> Sent {
        let Outbound::Elsewhere { channel, .. } = &claim.message.outgoing.body else {
            return self.send_to_slack(claim).await;
        };
        match self.0.channels.others.get(channel) {
            Some(channel) => channel.deliver(claim).await,
            None => self.postpone_for_unknown_channel(&claim.message, channel),
        }
    }

    /// Postpones a message, and logs an error once for each channel.
    fn postpone_for_unknown_channel(&self, claimed: &Claimed, channel: &str) -> Sent {
        metrics::counter!("countersign_messages_for_other_channels_total").increment(1);
        let mut unknown = self.0.channels.unknown.lock().unwrap_or_else(PoisonError::into_inner);
        if unknown.insert(channel.to_owned()) {
            tracing::error!(thread.id = %claimed.thread, channel, "A message is for a channel that this program does not have; it waits for one that has it");
        }
        Sent::Postponed(self.0.clock.now() + MAX_WAIT)
    }
}

/// Returns true if a message that was claimed together with the one before it is sent now. If not, its claim is given
/// back. Only a reply follows: other messages may contain a link to the one before, whose place is not recorded yet.
fn may_follow(before: &Sent, claim: &Claim, clock: &dyn Clock) -> bool {
    let is_done = matches!(before, Sent::Delivered(_) | Sent::Dropped | Sent::Failed { .. });
    is_done && matches!(claim.message.outgoing.body, Outbound::Reply { .. }) && claim.term.leaves_time(clock)
}

/// Returns true if a card is posted that may replace older ones: it then has a note about them, or names who edited them.
fn may_replace_others(claimed: &Claimed) -> bool {
    match &claimed.outgoing.body {
        Outbound::Card { card, state: CardState::Open { edited_by, .. } } => {
            claimed.posted.is_none() && (!card.notes.is_empty() || !edited_by.is_empty())
        }
        Outbound::Card { .. } => claimed.posted.is_none(),
        _ => false,
    }
}

/// A guard that ends the sending of a thread if its task panics. Otherwise its messages would always wait for a sweep.
struct SendingGuard<'a> {
    sender: &'a Sender,
    thread: &'a ThreadId,
}

impl Drop for SendingGuard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.sender.0.queue.give_back(self.thread);
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use secrecy::SecretString;

    use super::*;

    /// Returns a sender without a reachable Slack.
    pub(crate) fn sender_without_slack(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        channels: Vec<Arc<dyn Channel>>,
    ) -> Sender {
        let (token, timeout) = (SecretString::from("xoxb-1"), Duration::from_secs(10));
        let slack = SlackClient::new("http://127.0.0.1:9/api", &token, timeout).unwrap();
        Sender::new(SenderDeps {
            thread_status: ThreadStatus::new(slack.clone(), false, false),
            drafting: Drafting::default(),
            links: Links::new(store.clone(), None),
            names: Names::new(slack.clone(), clock.clone()),
            store,
            cards: Arc::default(),
            slack,
            channels,
            memories: Memories::default(),
            clock,
            name: WorkerId::new("w"),
            permits: 1,
            rate_limits: false,
            tasks: TaskTracker::new(),
        })
    }
}
