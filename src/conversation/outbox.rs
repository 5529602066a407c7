//! Sends what was said: in order within a thread, once.
//!
//! Slack has no idempotency key. Each post carries a random one in its metadata; when an attempt has no known end, the
//! thread is searched for it before anything is posted again. Edits and deletions can simply be repeated.
//!
//! Before a message goes, [`super::pacing`] is asked whether Slack would take it now. If not, it goes back into the
//! outbox, untried, and the sender turns to somebody else; the next sweep after its time takes it up.

use std::{sync::Arc, time::Duration};

use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

use super::{
    pacing::{Candidate, Method, Pacing, Turn},
    render,
};
use crate::{
    clock::{Clock, Timestamp},
    graph::store::{Claimed, Outbound, Outgoing, Posted, Sent, Store},
    ids::{Nonce, ThreadId, WorkerId},
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

/// The longest wait between two attempts.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// Sends outgoing messages.
#[derive(Clone)]
pub struct Sender(Arc<Inner>);

struct Inner {
    store: Arc<dyn Store>,
    slack: SlackClient,
    clock: Arc<dyn Clock>,
    name: WorkerId,
    pacing: Option<Pacing>,
    seats: Arc<Semaphore>,
    tasks: TaskTracker,
}

/// What a [`Sender`] needs.
pub struct Parts {
    /// Where messages wait.
    pub store: Arc<dyn Store>,
    /// Through which they go.
    pub slack: SlackClient,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// The name of this process in claims.
    pub name: WorkerId,
    /// How many are sent at a time.
    pub seats: usize,
    /// Whether Slack's limits are kept.
    pub rate_limits: bool,
    /// What is going on, for draining.
    pub tasks: TaskTracker,
}

impl Sender {
    /// An idle sender.
    pub fn new(parts: Parts) -> Self {
        let Parts { store, slack, clock, name, seats, rate_limits, tasks } = parts;
        let pacing = rate_limits.then(Pacing::default);
        Self(Arc::new(Inner { store, slack, clock, name, pacing, seats: Arc::new(Semaphore::new(seats)), tasks }))
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

    async fn send_all(&self, thread: &ThreadId) {
        while let Some(claimed) = self.claim(Some(thread), 1).await.pop() {
            self.send(claimed).await;
        }
    }

    async fn claim(&self, only: Option<&ThreadId>, limit: usize) -> Vec<Claimed> {
        let ttl = self.0.slack.timeout() * CLAIM;
        let claimed = self.0.store.claim_outbox(&self.0.name, ttl, self.0.clock.now(), limit, only).await;
        claimed.unwrap_or_else(|error| {
            tracing::warn!(error = %error, "Cannot claim outgoing messages");
            Vec::new()
        })
    }

    async fn send(&self, claimed: Claimed) {
        let sent = match self.turn(&claimed) {
            Turn::Go => self.send_now(&claimed).await,
            Turn::Wait(until) => Sent::Deferred(until),
        };
        if let Err(error) = self.0.store.finish_outbox(&claimed.thread, claimed.seq, &sent).await {
            tracing::warn!(error = %error, "Cannot record that a message was sent; it will be looked for");
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
            Ok(posted) => Sent::Delivered(posted),
            Err(error) => self.after(claimed, &error),
        }
    }

    /// Sends once.
    async fn attempt(&self, claimed: &Claimed) -> Result<Option<Posted>, Error> {
        let message = match &claimed.outgoing.body {
            Outbound::Status { text } => render::status(text),
            Outbound::Reply { reply } => render::reply(reply),
            Outbound::Card { card, state } => render::card(card, state),
            Outbound::File { name, title, hash } => return self.upload(claimed, name, title, hash).await,
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

    async fn post(&self, claimed: &Claimed, message: &Message) -> Result<Posted, Error> {
        let ThreadId { channel, root, .. } = &claimed.thread;
        let nonce = &claimed.outgoing.nonce;
        let ts = self.0.slack.post_message(channel, Some(root), message, nonce).await?;
        Ok(Posted { channel: channel.clone(), ts })
    }

    /// Whether an earlier attempt arrived although nobody said so.
    async fn find(&self, claimed: &Claimed) -> Result<Option<Posted>, Error> {
        let ThreadId { channel, root, .. } = &claimed.thread;
        let Outgoing { nonce, not_before, .. } = &claimed.outgoing;
        let found = self.0.slack.find_by_nonce(channel, Some(root), nonce, *not_before).await?;
        Ok(found.map(|ts| Posted { channel: channel.clone(), ts }))
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
            tracing::error!(thread.id = %claimed.thread, error = %error, "A message is given up");
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
                tracing::warn!(thread.id = %claimed.thread, attempts = claimed.attempts, error = %error, "Slack did not answer");
                Sent::Retry(wait(now, claimed.attempts))
            }
            Error::Auth { .. } => {
                tracing::error!(error = %error, "Slack does not accept our token");
                Sent::Retry(now + LONGEST_WAIT)
            }
            Error::MissingScope { .. } => Sent::Dropped, // the client names the scope, once
            Error::Gone { .. } | Error::Refused { .. } => {
                tracing::error!(thread.id = %claimed.thread, error = %error, "Slack refuses a message, so it is dropped");
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
        (Outbound::Status { .. } | Outbound::Reply { .. } | Outbound::Card { .. }, Some(_)) => Some(Method::Update),
        (Outbound::Status { .. } | Outbound::Reply { .. } | Outbound::Card { .. }, None) => Some(Method::Post),
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
