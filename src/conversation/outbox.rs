//! Sends what was said: in order within a thread, once.
//!
//! Slack has no idempotency key. Each post carries a random one in its metadata; when an attempt has no known end, the
//! thread is searched for it before anything is posted again. Edits and deletions can simply be repeated.
//!
//! Before a message goes, [`super::pacing`] is asked whether Slack would take it now. If not, it goes back into the
//! outbox, untried, and the sender turns to somebody else; the next sweep after its time takes it up.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

use super::{
    links::Links,
    names::Names,
    pacing::{Candidate, Method, Pacing, Turn},
    presence::Presence,
    render,
};
use crate::{
    clock::{Clock, Timestamp},
    graph::{
        action::Status,
        store::{ActionFilter, Changes, Claimed, Outbound, Outgoing, Posted, Sent, Store},
    },
    ids::{ChannelId, CommitId, MessageTs, Nonce, Slot, ThreadId, UserId, WorkerId},
    reply::{CardState, Part, Reply, Span, Text},
    slack::{blocks::Message, client::SlackClient, client_error::Error},
};

/// For how many calls' time a claimed message is left alone before somebody else may send it.
const CLAIM: u32 = 3;

/// For how many calls' time an attempt may go on: one to look for the message, one to post it. Less than [`CLAIM`], or
/// two would send the same message.
const ATTEMPT: u32 = 2;

/// How many threads' messages are claimed at a time when looking for what is due.
const BATCH: usize = 64;

/// How often a message is tried before it is given up. With the waits below this is several hours.
const ATTEMPTS: u32 = 300;

/// How many cards of a thread that gave way are looked through for those that lead to a new one.
const OLDER: usize = 20;

/// The longest wait between two attempts.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// Sends outgoing messages.
#[derive(Clone)]
pub struct Sender(Arc<Inner>);

/// What a [`Sender`] needs.
pub struct Parts {
    /// Where messages wait.
    pub store: Arc<dyn Store>,
    /// Where they go.
    pub slack: SlackClient,
    /// What Slack itself shows while something is done.
    pub presence: Presence,
    /// Where cards are.
    pub links: Links,
    /// What those are called who are named.
    pub names: Names,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// The name of this process in claims.
    pub name: WorkerId,
    /// How many messages are sent at a time.
    pub seats: usize,
    /// Whether Slack's limits are kept.
    pub rate_limits: bool,
    /// What is going on, for draining.
    pub tasks: TaskTracker,
}

struct Inner {
    store: Arc<dyn Store>,
    slack: SlackClient,
    presence: Presence,
    clock: Arc<dyn Clock>,
    name: WorkerId,
    pacing: Option<Pacing>,
    seats: Arc<Semaphore>,
    tasks: TaskTracker,
    links: Links,
    names: Names,
    /// The direct messages with people, as far as they were needed.
    direct: Mutex<HashMap<UserId, ChannelId>>,
}

impl Sender {
    /// Sends with these parts.
    pub fn new(parts: Parts) -> Self {
        let Parts { store, slack, presence, links, names, clock, name, seats, rate_limits, tasks } = parts;
        let (seats, direct) = (Arc::new(Semaphore::new(seats)), Mutex::default());
        let pacing = rate_limits.then(Pacing::default);
        Self(Arc::new(Inner { store, slack, presence, clock, name, pacing, seats, tasks, links, names, direct }))
    }

    /// Sends what a thread has to say now.
    pub fn flush(&self, thread: ThreadId) {
        let sender = self.clone();
        self.0.tasks.spawn(async move {
            // A seat comes before a claim: the time of a claim is for sending, not for queueing.
            let Ok(_seat) = sender.0.seats.acquire().await else { return };
            sender.send_all(&thread).await;
        });
    }

    /// Sends what a thread has to say now that nothing is being done in it, and takes Slack's own line away if that
    /// leaves it standing.
    pub fn ended(&self, thread: ThreadId) {
        let sender = self.clone();
        self.0.tasks.spawn(async move {
            let Ok(_seat) = sender.0.seats.acquire().await else { return };
            if !sender.send_all(&thread).await {
                sender.0.presence.ended(&thread).await;
            }
        });
    }

    /// Sends whatever is due anywhere, as far as there are seats.
    pub async fn sweep(&self) {
        let free = self.0.seats.available_permits().min(BATCH);
        let many = u32::try_from(free).unwrap_or(0);
        let Ok(mut seats) = self.0.seats.clone().try_acquire_many_owned(many) else { return };
        for claimed in self.claim(None, free).await {
            let (sender, seat) = (self.clone(), seats.split(1));
            self.0.tasks.spawn(async move {
                let thread = claimed.thread.clone();
                sender.send(claimed).await;
                sender.send_all(&thread).await;
                drop(seat);
            });
        }
    }

    /// Sends all that a thread has to say now. Returns whether a status was the last of it: then something goes on.
    async fn send_all(&self, thread: &ThreadId) -> bool {
        let mut goes_on = false;
        while let Some(claimed) = self.claim(Some(thread), 1).await.pop() {
            goes_on = matches!(claimed.outgoing.body, Outbound::Status { .. });
            self.send(claimed).await;
        }
        goes_on
    }

    async fn claim(&self, only: Option<&ThreadId>, limit: usize) -> Vec<Claimed> {
        let ttl = self.0.slack.timeout() * CLAIM;
        let claimed = self.0.store.claim_outbox(&self.0.name, ttl, self.0.clock.now(), limit, only).await;
        claimed.unwrap_or_else(|error| {
            tracing::warn!(error = crate::cause::chain(&error), "Cannot claim outgoing messages");
            Vec::new()
        })
    }

    async fn send(&self, claimed: Claimed) {
        let sent = match self.turn(&claimed) {
            Turn::Go => self.send_now(&claimed).await,
            Turn::Wait(until) => Sent::Deferred(until),
        };
        if let (Sent::Delivered(Some(_)), Outbound::Card { .. }) = (&sent, &claimed.outgoing.body) {
            self.lead_to(&claimed).await;
        }
        if let Err(error) = self.0.store.finish_outbox(&claimed.thread, claimed.seq, &sent).await {
            tracing::warn!(
                error = crate::cause::chain(&error),
                "Cannot record that a message was sent; it will be looked for"
            );
        }
    }

    /// The card that was posted now may have taken the place of older ones: those are drawn once more, behind it, since
    /// they can lead to it from now on.
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
                error = crate::cause::chain(&error),
                "An older card does not lead to the one that took its place"
            );
        }
    }

    /// Whether Slack would take it now.
    fn turn(&self, claimed: &Claimed) -> Turn {
        let (Some(pacing), Some(method)) = (&self.0.pacing, method(claimed)) else { return Turn::Go };
        let message = claimed.posted.as_ref().map(|posted| &posted.ts);
        let candidate = Candidate { method, thread: &claimed.thread, message, progress: claimed.outgoing.progress };
        pacing.turn(&candidate, self.0.clock.now())
    }

    async fn send_now(&self, claimed: &Claimed) -> Sent {
        let attempt = tokio::time::timeout(self.0.slack.timeout() * ATTEMPT, self.attempt(claimed));
        match attempt.await.unwrap_or(Err(Error::NoAnswer("too slow"))) {
            Ok(posted) => {
                self.0.presence.said(&claimed.thread, &claimed.outgoing.body).await;
                Sent::Delivered(posted)
            }
            Err(error) => self.after(claimed, &error),
        }
    }

    /// Sends once.
    async fn attempt(&self, claimed: &Claimed) -> Result<Option<Posted>, Error> {
        if let (Outbound::Status { text }, None) = (&claimed.outgoing.body, &claimed.posted)
            && self.0.presence.show(&claimed.thread, text).await
        {
            return Ok(None);
        }
        let message = match &claimed.outgoing.body {
            Outbound::Status { text } => render::status(text),
            Outbound::Reply { reply } => render::reply(self.0.names.in_reply(reply).await.as_ref()),
            Outbound::Card { card, state } => {
                let state = self.0.names.in_state(self.linked(claimed, state).await).await;
                let draw = if self.0.presence.has_stop() { render::card_beside_stop } else { render::card };
                draw(card, &state)
            }
            Outbound::File { name, title, hash } => return self.upload(claimed, name, title, hash).await,
            Outbound::Direct { card, reply, .. } => {
                let reply = self.with_link(claimed, card, reply).await?;
                render::reply(self.0.names.in_reply(&reply).await.as_ref())
            }
            Outbound::Remove => return self.remove(claimed).await,
        };
        let slack = &self.0.slack;
        if let Some(posted) = &claimed.posted {
            slack.update_message(&posted.channel, &posted.ts, &message).await?;
            return Ok(None);
        }
        if claimed.attempts > 0
            && let Some(posted) = self.find(claimed).await?
        {
            return Ok(Some(posted));
        }
        self.post(claimed, &message).await.map(Some)
    }

    /// The state with a link to the card that took this one's place, once that is posted. Without an answer there is none.
    async fn linked(&self, claimed: &Claimed, state: &CardState) -> CardState {
        let mut linked = state.clone();
        if let CardState::Closed { newer: Some(slot), decision, .. } = &mut linked
            && let Ok(Some(url)) = self.0.links.slot(&claimed.thread, slot).await
        {
            decision.0.push(Span::Plain(" · ".to_owned()));
            decision.0.push(Span::Link { url, text: "the newer card".to_owned() });
        }
        linked
    }

    async fn post(&self, claimed: &Claimed, message: &Message) -> Result<Posted, Error> {
        let (channel, root) = self.place(claimed).await?;
        let nonce = &claimed.outgoing.nonce;
        let ts = self.0.slack.post_message(&channel, root, message, nonce).await?;
        Ok(Posted { channel, ts })
    }

    /// Where a message goes: into its thread, or to one person directly.
    async fn place<'a>(&self, claimed: &'a Claimed) -> Result<(ChannelId, Option<&'a MessageTs>), Error> {
        let Outbound::Direct { to, .. } = &claimed.outgoing.body else {
            return Ok((claimed.thread.channel.clone(), Some(&claimed.thread.root)));
        };
        let known = self.0.direct.lock().ok().and_then(|known| known.get(to).cloned());
        let channel = match known {
            Some(channel) => channel,
            None => self.0.slack.open_direct(to).await?,
        };
        if let Ok(mut known) = self.0.direct.lock() {
            known.insert(to.clone(), channel.clone());
        }
        Ok((channel, None))
    }

    /// What is said, with a link to the card, which was sent before it.
    async fn with_link(&self, claimed: &Claimed, card: &Slot, reply: &Reply) -> Result<Reply, Error> {
        let thread = &claimed.thread;
        let posted = self.0.store.posted(thread, card).await.map_err(|_| Error::NotSent)?;
        let (channel, ts) = posted.as_ref().map_or((&thread.channel, &thread.root), |at| (&at.channel, &at.ts));
        Ok(match self.0.links.message(channel, ts, &thread.root) {
            Some(url) => reply.clone().and(Part::Text(Text::new().link(url, "Open the card"))),
            None => reply.clone(),
        })
    }

    /// Whether an earlier attempt arrived although nobody said so.
    async fn find(&self, claimed: &Claimed) -> Result<Option<Posted>, Error> {
        let (channel, root) = self.place(claimed).await?;
        let Outgoing { nonce, not_before, .. } = &claimed.outgoing;
        let found = self.0.slack.find_by_nonce(&channel, root, nonce, *not_before).await?;
        Ok(found.map(|ts| Posted { channel, ts }))
    }

    /// Shares a file in the thread. A file has no metadata to know it by, so its name carries some of the nonce.
    async fn upload(&self, claimed: &Claimed, name: &str, title: &str, hash: &str) -> Result<Option<Posted>, Error> {
        let ThreadId { channel, root, .. } = &claimed.thread;
        let Outgoing { nonce, not_before, .. } = &claimed.outgoing;
        let bytes = match self.0.store.get_blob(hash).await {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Err(Error::Gone { code: "file_not_stored".to_owned() }),
            Err(_) => return Err(Error::NotSent),
        };
        let name = unmistakable(name, nonce);
        let slack = &self.0.slack;
        if claimed.attempts == 0 || !slack.has_file(channel, root, &name, *not_before).await? {
            slack.upload_file(channel, root, &name, title, &bytes).await?;
        }
        Ok(None)
    }

    async fn remove(&self, claimed: &Claimed) -> Result<Option<Posted>, Error> {
        if let Some(posted) = &claimed.posted {
            match self.0.slack.delete_message(&posted.channel, &posted.ts).await {
                Ok(()) | Err(Error::Gone { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// When to try again, if ever.
    fn after(&self, claimed: &Claimed, error: &Error) -> Sent {
        let now = self.0.clock.now();
        if claimed.attempts + 1 >= ATTEMPTS {
            tracing::error!(thread.id = %claimed.thread, error = crate::cause::chain(&error), "A message is given up");
            return Sent::Dropped;
        }
        match error {
            Error::RateLimited { retry_after } => {
                let until = now + *retry_after;
                if let (Some(pacing), Some(method)) = (&self.0.pacing, method(claimed)) {
                    pacing.asked_to_wait(method, &claimed.thread.channel, until);
                }
                Sent::Deferred(until) // nothing was done
            }
            Error::NoAnswer(_) | Error::NotSent | Error::Decode => {
                tracing::warn!(thread.id = %claimed.thread, attempts = claimed.attempts, error = crate::cause::chain(&error), "Slack did not answer");
                Sent::Retry(wait(now, claimed.attempts))
            }
            Error::Auth { .. } => {
                tracing::error!(error = crate::cause::chain(&error), "Slack does not accept our token");
                Sent::Retry(now + LONGEST_WAIT)
            }
            Error::MissingScope { .. } => Sent::Dropped, // the client names the scope, once
            Error::Gone { .. } | Error::Refused { .. } => {
                tracing::error!(thread.id = %claimed.thread, error = crate::cause::chain(&error), "Slack refuses a message, so it is dropped");
                Sent::Dropped
            }
        }
    }
}

/// What sending it asks of Slack; nothing if nothing.
fn method(claimed: &Claimed) -> Option<Method> {
    match (&claimed.outgoing.body, &claimed.posted) {
        (Outbound::File { .. }, _) => Some(Method::Upload),
        (Outbound::Remove, posted) => posted.as_ref().map(|_| Method::Delete),
        (_, Some(_)) => Some(Method::Update),
        (_, None) => Some(Method::Post),
    }
}

/// The name with the beginning of the nonce in it: `chart-3fa85f64.png`.
fn unmistakable(name: &str, nonce: &Nonce) -> String {
    let part: String = nonce.as_str().chars().take(8).collect();
    match name.rsplit_once('.') {
        Some((stem, kind)) => format!("{stem}-{part}.{kind}"),
        None => format!("{name}-{part}"),
    }
}

/// One second, then twice as long each time.
fn wait(now: Timestamp, attempts: u32) -> Timestamp {
    now + Duration::from_secs(1).saturating_mul(1 << attempts.min(6)).min(LONGEST_WAIT)
}
