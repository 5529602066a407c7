//! Brings new mails into threads, each once.
//!
//! A round asks the account what arrived, and begins a thread in the channel for each mail. The message that begins the
//! thread carries a nonce that was stored before, so a lost answer leads to a search and not to a second message. The
//! mail's event is stored by its key, and the point up to which the inbox was read is stored only when all mails before
//! it are in their threads. So a process can be killed anywhere: the next round finds the same mails again and continues
//! with what each of them lacks.
//!
//! With several processes, one of them at a time makes the rounds: the one that holds the term, which it extends while a
//! round lasts and gives up when it stops. If it was suspended meanwhile and posts a message for a thread that another
//! has begun, it removes its message again.

mod answers;
mod control;
mod relatives;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use countersign_core::{
    cause::chain,
    clock::{Clock, Timestamp},
    ids::{ChannelId, GraphName, MessageTs, Nonce, TeamId, ThreadId},
    reply::Reply,
};
use countersign_graph::store::{Delivery, Destination, Error, External, Handling, Keep, ThreadMessage};
use countersign_mail::{Batch, Mail, MailAccount, MailError, MailId, Warning};
use futures_util::{StreamExt as _, stream};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use self::answers::Rotation;
pub use self::control::{SyncControl, SyncState};
use super::{
    MAIL, SOURCE,
    heading::heading,
    register::{Entry, MailRegister, MailStatus, OpenMail},
    replies,
    rules::needs_no_answer,
    state::Arrival,
};

/// The number of mails that are brought in at the same time.
const AT_ONCE: usize = 8;

/// The age of the oldest mails that the first round brings in; what is older was there before the bot.
const FIRST_LOOKBACK: Duration = Duration::from_secs(24 * 3600);

/// The time after which a run that has not ended counts as stuck.
const STUCK_AFTER: Duration = Duration::from_secs(600);

/// The maximum number of times that a stuck mail is tried again.
const MAX_STUCK: u32 = 3;

/// The messages that begin threads in the channel.
#[async_trait]
pub trait Roots: Send + Sync + fmt::Debug {
    /// Posts the message with this nonce. If `may_exist`, it is searched for first, from `since` on.
    ///
    /// # Errors
    ///
    /// [`PostError`]; the message may have been posted.
    async fn post(
        &self,
        message: &Reply,
        nonce: &Nonce,
        since: Timestamp,
        may_exist: bool,
    ) -> Result<MessageTs, PostError>;

    /// Removes a message that begins no thread.
    async fn remove(&self, message: &MessageTs);

    /// Returns the address of a thread, if it is known.
    fn link(&self, thread: &ThreadId) -> Option<String>;
}

/// The reason why a message was not posted, as a sentence for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PostError(pub String);

/// The dependencies of a [`MailSync`].
#[expect(missing_debug_implementations, reason = "a function has none")]
pub struct SyncDeps {
    /// The mail account.
    pub account: Arc<dyn MailAccount>,
    /// The list of mails.
    pub book: MailRegister,
    /// The control, shared with the commands.
    pub control: SyncControl,
    /// The messages that begin threads.
    pub roots: Arc<dyn Roots>,
    /// The workspace.
    pub team: TeamId,
    /// The channel.
    pub channel: ChannelId,
    /// The function that wakes a thread.
    pub wake: Arc<dyn Fn(ThreadId) + Send + Sync>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The name of this process.
    pub holder: String,
    /// The interval between two rounds, if the account reports nothing earlier.
    pub every: Duration,
    /// The time for which this process makes the rounds without renewing it; at least twice the interval between them.
    pub term: Duration,
}

/// The loop that brings mails into threads. The lock is held while a new mail is compared with the list and added to it.
#[expect(missing_debug_implementations, reason = "a function has none")]
pub struct MailSync(SyncDeps, Rotation, Mutex<()>);

/// The result of a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Round {
    /// It is paused, or another process makes the rounds.
    NotOurs,
    /// All mails up to the new point are in their threads. True if there are more.
    Complete(bool),
    /// Something failed; the next round continues. Contains the time after which to try again, if it is known.
    Failed(Option<Duration>),
}

/// The result for one mail.
enum Brought {
    /// It is in its thread now.
    New(Box<Entry>),
    /// It is in its thread already.
    Known(Box<Entry>),
    /// It is another copy of a mail of the list.
    Copy(Box<Mail>, MailId),
    /// It is no longer there, or is older than the bot.
    Skipped,
    /// It could not be brought in.
    Failed(String),
}

impl MailSync {
    /// Creates the loop; nothing happens before [`Self::run`].
    pub fn new(deps: SyncDeps) -> Self {
        Self(deps, Rotation::default(), Mutex::default())
    }

    /// Makes rounds until the signal to stop.
    pub async fn run(self, stop: CancellationToken) {
        stop.run_until_cancelled(self.rounds()).await;
        self.give_up_term().await;
    }

    async fn rounds(&self) {
        loop {
            let wait = match self.round().await {
                Round::Complete(true) => continue,
                Round::Complete(false) | Round::NotOurs => self.0.every,
                Round::Failed(after) => after.unwrap_or(self.0.every),
            };
            tokio::select! {
                () = self.0.control.wanted.notified() => {}
                () = self.0.account.wait_for_news(wait) => {}
            }
        }
    }

    /// Makes one round.
    pub async fn round(&self) -> Round {
        let state = match self.take_term().await {
            Ok(Some(state)) => state,
            Ok(None) => return Round::NotOurs,
            Err(error) => {
                tracing::warn!(error = chain(&error), "Cannot begin a round of mails");
                return Round::Failed(None);
            }
        };
        tokio::select! {
            round = self.bring_all(state) => round,
            () = self.keep_term() => Round::NotOurs,
        }
    }

    /// Brings everything that arrived into threads.
    async fn bring_all(&self, state: SyncState) -> Round {
        let batch = match self.0.account.sync(state.point.as_ref()).await {
            Ok(batch) => batch,
            Err(error) => {
                let after = match &error {
                    MailError::Unavailable { retry_after, .. } => *retry_after,
                    _ => None,
                };
                tracing::warn!(error = chain(&error), "Cannot read the inbox");
                self.note_problem(replies::account_error(&error)).await;
                return Round::Failed(after);
            }
        };
        let Batch { arrived, next, is_full, has_more } = batch;
        // Mails that arrived before the bot's first round are left alone.
        let oldest = state.started_at.filter(|_| is_full).map(|at| Timestamp(at.millis() - lookback()));
        // A later full list is made when the server no longer knows the point, or has given new ids.
        let is_resync = is_full && state.point.is_some();
        let brought = stream::iter(distinct(arrived)).map(|id| self.bring(id, oldest, is_resync)).buffered(AT_ONCE);
        let brought: Vec<Brought> = brought.collect().await;
        let new = brought.iter().filter(|one| matches!(one, Brought::New(_))).count() as u64;
        if let Err(problem) = self.tell_relatives(brought).await {
            self.note_problem(problem).await;
            return Round::Failed(None);
        }
        match self.0.book.open().await {
            Ok(open) => {
                self.bring_back_stuck(&open).await;
                self.notice_answers(&open).await;
            }
            Err(error) => tracing::warn!(error = chain(&error), "Cannot look for stuck and answered mails"),
        }
        let now = self.0.clock.now();
        let saved = self.0.control.change(|state| {
            if self.holds(state) {
                state.point = Some(next.clone());
                (state.synced_at, state.problem) = (Some(now), None);
                state.brought += new;
            }
        });
        if let Err(error) = saved.await {
            tracing::warn!(error = chain(&error), "Cannot store the end of a round of mails");
            return Round::Failed(None);
        }
        Round::Complete(has_more)
    }

    fn holds(&self, state: &SyncState) -> bool {
        state.holder.as_ref() == Some(&self.0.holder)
    }

    fn term(&self) -> Duration {
        self.0.term.max(self.0.every * 2)
    }

    /// Extends the term again and again. Returns when it is lost, or the rounds are paused.
    async fn keep_term(&self) {
        loop {
            tokio::time::sleep(self.term() / 3).await;
            match self.take_term().await {
                Ok(Some(_)) => {}
                Ok(None) => return,
                Err(error) => tracing::warn!(error = chain(&error), "Cannot extend the term of a round of mails"),
            }
        }
    }

    /// Leaves the rounds to another process at once.
    async fn give_up_term(&self) {
        let given_up = self.0.control.change(|state| {
            if self.holds(state) {
                (state.holder, state.until) = (None, Timestamp::default());
            }
        });
        if let Err(error) = given_up.await {
            tracing::warn!(error = chain(&error), "Cannot leave the rounds of mails to another process");
        }
    }

    /// Takes or extends the term of this process. Returns `None` if the rounds are paused or another process's.
    async fn take_term(&self) -> Result<Option<SyncState>, Error> {
        let now = self.0.clock.now();
        let register = self.0.control.register();
        let taken = register.change(|state| {
            if state.paused_by.is_some() || !self.holds(state) && state.holder.is_some() && now < state.until {
                return None;
            }
            state.started_at.get_or_insert(now);
            (state.holder, state.until) = (Some(self.0.holder.clone()), now + self.term());
            Some(state.clone())
        });
        taken.await
    }

    async fn note_problem(&self, problem: String) {
        if let Err(error) = self.0.control.change(|state| state.problem = Some(problem.clone())).await {
            tracing::warn!(error = chain(&error), "Cannot store the problem of a round of mails");
        }
    }

    async fn bring(&self, id: MailId, oldest: Option<Timestamp>, is_resync: bool) -> Brought {
        match self.try_to_bring(&id, oldest, is_resync).await {
            Ok(brought) => brought,
            Err(problem) => Brought::Failed(problem),
        }
    }

    async fn try_to_bring(&self, id: &MailId, oldest: Option<Timestamp>, is_resync: bool) -> Result<Brought, String> {
        let known = match self.0.book.entry(id).await.map_err(|error| store_problem(&error))? {
            Some(entry) if entry.is_delivered => return Ok(Brought::Known(Box::new(entry))),
            known => known,
        };
        let mail = match self.0.account.read(id).await {
            Ok(Some(raw)) => Mail::read(&raw),
            Ok(None) => return Ok(Brought::Skipped),
            Err(error @ (MailError::Refused { .. } | MailError::Decode { .. })) => {
                // It would fail again; a person looks at it, and later mails are not held up.
                tracing::warn!(error = chain(&error), "A mail cannot be read");
                unreadable(id, self.0.clock.now())
            }
            Err(error) => return Err(replies::account_error(&error)),
        };
        if known.is_none() && oldest.is_some_and(|oldest| mail.received_at < oldest) {
            return Ok(Brought::Skipped);
        }
        let is_new = known.is_none();
        if is_new && is_resync && self.has_new_id(&mail).await.map_err(|error| store_problem(&error))? {
            return Ok(Brought::Skipped);
        }
        let entry = match known {
            Some(entry) => entry,
            None => match self.add(&mail).await.map_err(|error| store_problem(&error))? {
                Ok(entry) => entry,
                Err(original) => return Ok(Brought::Copy(Box::new(mail), original)),
            },
        };
        let thread = self.thread(&mail, &entry, is_new).await?;
        if self.is_taken(&thread).await.map_err(|error| store_problem(&error))? {
            self.begin_elsewhere(id).await.map_err(|error| store_problem(&error))?;
            return Err(
                "Someone wrote in an email's thread before the email was in it, so the email gets another thread."
                    .to_owned(),
            );
        }
        self.deliver(&mail, &thread, id.as_str(), false).await.map_err(|error| store_problem(&error))?;
        let delivered = |entry: &mut Entry| !std::mem::replace(&mut entry.is_delivered, true);
        let entry = self.0.book.update(id, delivered).await.map_err(|error| store_problem(&error))?.unwrap_or(entry);
        metrics::counter!("countersign_mails_total").increment(1);
        (self.0.wake)(thread);
        Ok(Brought::New(Box::new(entry)))
    }

    /// Adds a mail to the list. Returns the id of the mail of which it is another copy, if it is one.
    async fn add(&self, mail: &Mail) -> Result<Result<Entry, MailId>, Error> {
        let _alone = self.2.lock().await;
        if let Some(message_id) = &mail.message_id
            && let Some(known) = self.0.book.with_message_id(message_id).await?
            && known.is_copied_by(mail)
        {
            return Ok(Err(known.mail));
        }
        let earlier = self.0.book.earlier(mail).await?;
        let quiet = needs_no_answer(mail, |address| self.0.account.is_us(address));
        let entry = Entry { earlier, quiet, ..Entry::new(mail, self.0.clock.now()) };
        self.0.book.add(entry).await.map(Ok)
    }

    /// Returns true if this is a mail of the list to which the server has given a new id, as IMAP servers do with all
    /// mails at once. The list notes the new id.
    ///
    /// The sender chooses the `Message-ID`, so it alone proves nothing: a mail that came after the known one was seen is
    /// another one.
    async fn has_new_id(&self, mail: &Mail) -> Result<bool, Error> {
        let Some(message_id) = &mail.message_id else { return Ok(false) };
        let Some(known) = self.0.book.with_message_id(message_id).await? else { return Ok(false) };
        let copy = Entry::new(mail, known.first_seen);
        let is_same = (&copy.sender, &copy.subject) == (&known.sender, &known.subject);
        if known.mail == mail.id || !is_same || mail.received_at > known.first_seen {
            return Ok(false);
        }
        self.0
            .book
            .update(&known.mail, |entry| entry.renamed.replace(mail.id.clone()) != Some(mail.id.clone()))
            .await?;
        Ok(true)
    }

    /// Returns the thread of a mail, which is begun if there is none.
    async fn thread(&self, mail: &Mail, entry: &Entry, is_new: bool) -> Result<ThreadId, String> {
        if let Some(thread) = &entry.thread {
            return Ok(thread.clone());
        }
        let heading = heading(&self.0.book, entry, &|thread| self.0.roots.link(thread)).await;
        let heading = heading.map_err(|error| store_problem(&error))?;
        let posted = self.0.roots.post(&heading, &entry.nonce, entry.first_seen, !is_new).await;
        let root = posted.map_err(|error| error.to_string())?;
        let ours = ThreadId { team: self.0.team.clone(), channel: self.0.channel.clone(), root: root.clone() };
        let stored = self.0.book.update(&mail.id, |entry| {
            entry.thread.get_or_insert_with(|| ours.clone());
            true
        });
        let stored = stored.await.map_err(|error| store_problem(&error))?.and_then(|entry| entry.thread);
        match stored {
            Some(theirs) if theirs != ours => {
                self.0.roots.remove(&root).await; // another process began the thread meanwhile
                Ok(theirs)
            }
            _ => Ok(ours),
        }
    }

    /// Returns true if the thread belongs to another graph, because a person mentioned the bot in it before the mail was
    /// there.
    async fn is_taken(&self, thread: &ThreadId) -> Result<bool, Error> {
        let Some(saved) = self.0.book.store().load(thread).await? else { return Ok(false) };
        let checkpoint = saved.restore()?;
        Ok(!checkpoint.is_null() && checkpoint["graph"] != MAIL)
    }

    /// Has the next round begin another thread for a mail.
    async fn begin_elsewhere(&self, id: &MailId) -> Result<(), Error> {
        let (nonce, now) = (Nonce::fresh(), self.0.clock.now());
        let begun = self.0.book.update(id, |entry| {
            (entry.thread, entry.nonce, entry.first_seen) = (None, nonce.clone(), now);
            true
        });
        begun.await.map(drop)
    }

    /// Stores the mail and its event, which wakes the thread.
    async fn deliver(&self, mail: &Mail, thread: &ThreadId, key: &str, is_stuck: bool) -> Result<(), Error> {
        let store = self.0.book.store();
        let whole = serde_json::to_vec(mail).map_err(|error| Error::Corrupt { what: error.to_string() })?;
        let stored = store.put_blob(&whole, Keep::WithThread(thread)).await?;
        self.store_event(thread, key, &Arrival::new(mail, Some(stored), is_stuck)).await
    }

    /// Stores an event, which wakes the thread.
    async fn store_event(&self, thread: &ThreadId, key: &str, arrival: &Arrival) -> Result<(), Error> {
        let arrival = serde_json::to_value(arrival);
        let arrival = arrival.map_err(|error| Error::Corrupt { what: error.to_string() })?;
        let event = External::new(SOURCE, key, arrival).map_err(|error| Error::Corrupt { what: error.to_string() })?;
        let dedup = vec![event.dedup(thread)];
        let to = Destination::Mailbox {
            thread: thread.clone(),
            addressed: true,
            message: ThreadMessage::External(event),
            graph: GraphName::new(MAIL),
        };
        self.0.book.store().ingest(&Delivery { to, dedup, at: self.0.clock.now() }, Handling::Later).await?;
        Ok(())
    }

    /// Has mails whose run ended without a result reviewed by a person.
    async fn bring_back_stuck(&self, open: &BTreeMap<MailId, OpenMail>) {
        let now = self.0.clock.now();
        for (id, _) in open.iter().filter(|(_, mail)| mail.status == MailStatus::Processing) {
            let entry = match self.0.book.entry(id).await {
                Ok(Some(entry)) => entry,
                Ok(None) => continue,
                Err(error) => return tracing::warn!(error = chain(&error), "Cannot look for stuck mails"),
            };
            let is_stuck = entry.status == MailStatus::Processing && now.since(entry.updated_at) > STUCK_AFTER;
            let (Some(thread), true) = (&entry.thread, is_stuck && entry.stuck < MAX_STUCK) else { continue };
            if let Err(error) = self.bring_back(&entry, thread).await {
                tracing::warn!(thread.id = %thread, error = chain(&error), "Cannot bring a stuck mail back");
            }
        }
    }

    async fn bring_back(&self, entry: &Entry, thread: &ThreadId) -> Result<(), Error> {
        tracing::warn!(thread.id = %thread, "A mail was in progress for too long; a person decides");
        metrics::counter!("countersign_mails_stuck_total").increment(1);
        let mail = unreadable(&entry.mail, entry.received_at); // the thread knows the mail itself
        let key = format!("{}#{}", entry.mail, entry.stuck + 1);
        self.deliver(&mail, thread, &key, true).await?;
        let (tries, now) = (entry.stuck + 1, self.0.clock.now());
        self.0
            .book
            .update(&entry.mail, |entry| {
                (entry.stuck, entry.updated_at) = (tries, now);
                true
            })
            .await?;
        (self.0.wake)(thread.clone());
        Ok(())
    }
}

fn lookback() -> i64 {
    i64::try_from(FIRST_LOOKBACK.as_millis()).unwrap_or(i64::MAX)
}

fn store_problem(error: &Error) -> String {
    tracing::warn!(error = chain(error), "Cannot store a mail");
    "The store isn't answering.".to_owned()
}

/// Returns each id once, in order.
fn distinct(ids: Vec<MailId>) -> Vec<MailId> {
    let mut seen = BTreeSet::new();
    ids.into_iter().filter(|id| seen.insert(id.clone())).collect()
}

/// Returns what is known of a mail that cannot be read, so that its thread says so.
fn unreadable(id: &MailId, received_at: Timestamp) -> Mail {
    Mail {
        warnings: vec![Warning::Unreadable("the mail server doesn't return it".to_owned())],
        ..Mail::unknown(id.clone(), received_at)
    }
}
