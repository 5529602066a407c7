//! Brings requests into threads: posts the message that begins the thread, and stores the event that wakes it.
//!
//! A request waits in a list until its thread has it, so a process can be killed anywhere: the next look finds it there. If
//! several processes look, the one that notes its name in the request posts; after a while, or after a failure, it is the turn
//! of any of them, and the message is searched for first by its nonce.

use std::{
    collections::{HashMap, VecDeque},
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use countersign_core::{
    cause,
    clock::{Clock, Timestamp},
    ids::{ChannelId, GraphName, MessageTs, Nonce, TeamId, ThreadId, UserId},
    reply::{Reply, Text},
};
use countersign_graph::store::{Delivery, Destination, Error, External, Handling, ThreadMessage};
use futures_util::{StreamExt as _, stream};
use serde_json::json;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{
    callback, card,
    graph::{API, SOURCE},
    register::{Ended, Entry, Requests},
    settings::Api,
};

/// The time for which a process has a request to itself to post it.
const POSTING_FOR: Duration = Duration::from_secs(30);

/// The longest wait between two attempts to post a request.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// The time between two looks for requests that wait.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// The time after which a request is forgotten that was listed and never stored: its program got no answer.
const FORGET_AFTER: Duration = Duration::from_secs(600);

/// The number of requests that are posted at the same time.
const AT_ONCE: usize = 8;

/// The messages that begin threads.
#[async_trait]
pub trait Roots: Send + Sync + fmt::Debug {
    /// Posts a message with this nonce. If `since` is given, it is searched for first, from then on.
    ///
    /// # Errors
    ///
    /// The reason, in words; the message may have been posted.
    async fn post(
        &self,
        channel: &ChannelId,
        message: &Reply,
        nonce: &Nonce,
        since: Option<Timestamp>,
    ) -> Result<MessageTs, String>;

    /// Removes a message that begins no thread.
    async fn remove(&self, channel: &ChannelId, message: &MessageTs);
}

/// The dependencies of a [`Poster`].
#[expect(missing_debug_implementations, reason = "a function has none")]
pub struct PosterDeps {
    /// The requests.
    pub requests: Requests,
    /// The settings.
    pub settings: Arc<Api>,
    /// The messages that begin threads.
    pub roots: Arc<dyn Roots>,
    /// The workspace.
    pub team: TeamId,
    /// The function that goes on with a thread and sends its messages.
    pub wake: Arc<dyn Fn(ThreadId) + Send + Sync>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
}

/// The loop that brings requests into threads.
pub struct Poster {
    deps: PosterDeps,
    wanted: Notify,
    /// The times of the last cards in each channel.
    posted: Mutex<HashMap<String, VecDeque<Timestamp>>>,
}

impl fmt::Debug for Poster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Poster")
    }
}

impl Poster {
    /// Creates the loop; nothing happens before [`Self::run`].
    pub fn new(deps: PosterDeps) -> Self {
        Self { deps, wanted: Notify::new(), posted: Mutex::default() }
    }

    /// Looks for requests at once.
    pub fn look_now(&self) {
        self.wanted.notify_one();
    }

    /// Looks again and again, until the signal to stop.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.wanted.notified() => {}
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
            // What has begun is finished: it takes no longer than a call to Slack.
            if let Err(error) = self.look().await {
                tracing::warn!(error = cause::chain(&error), "Cannot look for requests of programs");
            }
        }
    }

    async fn look(&self) -> Result<(), Error> {
        let waiting = self.deps.requests.waiting().await?;
        metrics::gauge!("countersign_api_waiting_requests").set(waiting.len() as f64);
        let bring = |(id, since): (String, Timestamp)| async move {
            if let Err(error) = self.bring(&id, since).await {
                tracing::warn!(request.id = id, error = cause::chain(&error), "Cannot bring a request into a thread");
            }
        };
        stream::iter(waiting).for_each_concurrent(AT_ONCE, bring).await;
        Ok(())
    }

    async fn bring(&self, id: &str, since: Timestamp) -> Result<(), Error> {
        let PosterDeps { requests, clock, .. } = &self.deps;
        let now = clock.now();
        let Some(entry) = requests.entry(id).await? else {
            if now.since(since) > FORGET_AFTER {
                requests.set_waiting(id, None).await?;
            }
            return Ok(());
        };
        if entry.ended.is_some() {
            callback::store_end(requests, &entry, self.deps.team.as_str(), now).await?;
        }
        if entry.ended.is_some() || entry.is_delivered {
            return requests.set_waiting(id, None).await;
        }
        let thread = match &entry.thread {
            Some(thread) => thread.clone(),
            None => match self.begin(&entry).await? {
                Some(thread) => thread,
                None => return Ok(()),
            },
        };
        if self.is_taken(&thread).await? {
            tracing::warn!(thread.id = %thread, "Someone wrote in a request's thread first, so it gets another one");
            let again = requests.change(id, |entry| {
                (entry.thread, entry.nonce, entry.tries, entry.posting_until) = (None, Nonce::fresh(), 0, now);
            });
            return again.await.map(drop);
        }
        self.deliver(&entry, &thread).await?;
        requests.change(id, |entry| entry.is_delivered = true).await?;
        requests.set_waiting(id, None).await
    }

    /// Posts the message that begins the thread. Returns `None` if that is not to be done now.
    async fn begin(&self, entry: &Entry) -> Result<Option<ThreadId>, Error> {
        let PosterDeps { requests, settings, roots, team, clock, .. } = &self.deps;
        let now = clock.now();
        let channel = settings.policies.get(&entry.asked.policy).map(|policy| ChannelId::from(&*policy.channel));
        let (Some(channel), true) = (channel, now < entry.expires_at) else {
            // Its policy is gone, or its time is over.
            let ended = requests.change(&entry.id, |entry| {
                if entry.thread.is_none() {
                    entry.ended.get_or_insert(Ended::Expired);
                }
            });
            ended.await?;
            return Ok(None);
        };
        if !self.has_room(&channel, now) {
            return Ok(None);
        }
        let taken = requests.change(&entry.id, |entry| {
            let is_free = entry.thread.is_none() && entry.ended.is_none() && entry.posting_until <= now;
            if is_free {
                entry.tries += 1;
                entry.posting_until = now + POSTING_FOR;
            }
            is_free.then(|| entry.clone())
        });
        let Some(entry) = taken.await?.flatten() else { return Ok(None) };
        self.note_card(&channel, now);
        let may_exist = (entry.tries > 1).then_some(entry.created_at);
        let root = match roots.post(&channel, &heading(&entry), &entry.nonce, may_exist).await {
            Ok(root) => root,
            Err(why) => {
                tracing::warn!(request.id = entry.id, why, "Cannot post the message that begins a request's thread");
                let wait = Duration::from_secs(1 << entry.tries.min(6)).min(MAX_WAIT);
                requests.change(&entry.id, |entry| entry.posting_until = now + wait).await?;
                return Ok(None);
            }
        };
        let thread = ThreadId { team: team.clone(), channel: channel.clone(), root: root.clone() };
        let kept = requests.change(&entry.id, |entry| match (&entry.ended, &entry.thread) {
            (None, None) => Some(entry.thread.insert(thread.clone()).clone()),
            (None, Some(theirs)) => Some(theirs.clone()),
            (Some(_), _) => None,
        });
        let kept = kept.await?.flatten();
        if kept.as_ref() != Some(&thread) {
            roots.remove(&channel, &root).await; // it was withdrawn, or another process began its thread
        }
        Ok(kept)
    }

    /// Returns true if the thread belongs to another graph, because a person mentioned the bot in it first.
    async fn is_taken(&self, thread: &ThreadId) -> Result<bool, Error> {
        let Some(saved) = self.deps.requests.store().load(thread).await? else { return Ok(false) };
        let checkpoint = saved.restore()?;
        Ok(!checkpoint.is_null() && checkpoint["graph"] != API)
    }

    /// Stores the event with which the thread begins.
    async fn deliver(&self, entry: &Entry, thread: &ThreadId) -> Result<(), Error> {
        let PosterDeps { requests, wake, clock, .. } = &self.deps;
        let event = External::new(SOURCE, &entry.id, json!({ "id": entry.id }));
        let event = event.map_err(|error| Error::Corrupt { what: error.to_string() })?;
        let dedup = vec![event.dedup(thread)];
        let message = ThreadMessage::External(event);
        let to = Destination::Mailbox { thread: thread.clone(), addressed: true, message, graph: GraphName::new(API) };
        requests.store().ingest(&Delivery { to, dedup, at: clock.now() }, Handling::Later).await?;
        wake(thread.clone());
        Ok(())
    }

    fn has_room(&self, channel: &ChannelId, now: Timestamp) -> bool {
        let mut posted = self.posted.lock().expect("no holder panics");
        let Some(times) = posted.get_mut(channel.as_str()) else { return true };
        while times.front().is_some_and(|at| now.since(*at) >= Duration::from_secs(60)) {
            times.pop_front();
        }
        times.len() < self.deps.settings.cards_a_minute as usize
    }

    fn note_card(&self, channel: &ChannelId, now: Timestamp) {
        let mut posted = self.posted.lock().expect("no holder panics");
        posted.entry(channel.to_string()).or_default().push_back(now);
    }
}

/// Returns the message that begins the thread of a request.
fn heading(entry: &Entry) -> Reply {
    let act = card::act(&entry.as_change());
    Reply::text(Text::new().person(UserId::of_key(&entry.key)).plain(" asks for an approval: ").bold(act))
        .hint("The card is in this thread.")
}
