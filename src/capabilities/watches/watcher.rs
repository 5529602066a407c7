//! The looks at everything that people follow, and the digests.
//!
//! The register has the time of the next look at each thing and of each digest, so both survive a restart, and a time that
//! passed while no process ran is made up for by one look or one digest. A process claims a look by moving it to the next
//! time, so each thing is read by one process, once, however many watches it has.
//!
//! A message is put into the outbox of its thread under a key of its own before the register forgets its watch. If the
//! process ends in between, the next look finds the same event again, and the store knows the key.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use countersign_capabilities::{Observed, Observer, ToolError};
use countersign_core::{
    clock::Timestamp,
    ids::{CommitId, UserId},
};
use countersign_graph::{
    request::reply_in_thread,
    store::{Changes, Error},
};
use futures_util::future::join_all;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::{
    news::{Look, News},
    register::{Contents, WatchRegister},
    replies,
    settings::WatchSettings,
    watch::{Counted, Digest},
};

/// The time limit of a read.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// The maximum number of things that are looked at together.
const MAX_LOOKS: usize = 16;

/// The maximum number of things whose counts a digest keeps for the next one.
const MAX_COUNTED: usize = 200;

/// The capabilities whose things can be followed, by name.
pub type Observers = BTreeMap<String, Arc<dyn Observer>>;

/// Knows which people may still read.
#[async_trait]
pub trait Readers: Send + Sync + fmt::Debug {
    /// Returns true if this person may still ask the bot for something; `None` if that is not known at the moment.
    async fn may_read(&self, person: &UserId) -> Option<bool>;
}

/// The task that looks at things and posts digests.
pub struct Watcher {
    book: WatchRegister,
    observers: Observers,
    readers: Arc<dyn Readers>,
    settings: WatchSettings,
}

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watcher").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Watcher {
    /// Creates the task for this register.
    pub fn new(book: WatchRegister, observers: Observers, readers: Arc<dyn Readers>, settings: WatchSettings) -> Self {
        Self { book, observers, readers, settings }
    }

    /// Looks whenever something is due, until the signal to stop. The register is checked every `tick`.
    pub async fn run(self, tick: Duration, stop: CancellationToken) {
        let mut ticks = tokio::time::interval(tick);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut is_failing = false;
        while stop.run_until_cancelled(ticks.tick()).await.is_some() {
            match self.look().await {
                Ok(_) => is_failing = false,
                Err(error) => {
                    if !std::mem::replace(&mut is_failing, true) {
                        let error = countersign_core::cause::chain(&error);
                        tracing::warn!(error, "The watches cannot be read or written; they are tried again");
                    }
                }
            }
        }
    }

    /// Looks at everything that is due, and queues the messages that follow. Returns their number.
    ///
    /// # Errors
    ///
    /// Fails if the store isn't answering; what is not done is done at the next look.
    pub async fn look(&self) -> Result<usize, Error> {
        let (now, register) = (self.book.now(), self.book.register());
        let (revision, mut contents) = register.load().await?;
        let mut due = Vec::new();
        for followed in contents.followed.iter_mut().filter(|followed| followed.next_look <= now).take(MAX_LOOKS) {
            followed.next_look = now + self.settings.every;
            due.push((followed.source.clone(), followed.thing.clone()));
        }
        let mut digests = Vec::new();
        for digest in contents.digests.iter_mut().filter(|digest| digest.next <= now && digest.not_before <= now) {
            digest.not_before = now + self.settings.every;
            digests.push(digest.id.clone());
        }
        if due.is_empty() && digests.is_empty() {
            return Ok(0);
        }
        if !register.set(revision, &contents).await? {
            return Ok(0); // another process has changed it; the next look finds what it left
        }
        let mut reads = Vec::new();
        for (source, thing) in &due {
            reads.push(self.read(source, thing));
        }
        let mut sent = 0;
        for ((source, thing), look) in due.iter().zip(join_all(reads).await) {
            sent += self.take_in(source, thing, &look).await?;
        }
        if !digests.is_empty() {
            let counts = counts(&self.observers).await.ok();
            for id in digests {
                sent += self.post_digest(&id, counts.as_deref()).await?;
            }
        }
        Ok(sent)
    }

    async fn read(&self, source: &str, thing: &str) -> Look {
        let Some(observer) = self.observers.get(source) else { return Look::Unreadable };
        match timeout(READ_TIMEOUT, observer.observe(thing)).await {
            Ok(Ok(Some(seen))) => Look::Seen(seen),
            Ok(Ok(None)) => Look::Gone,
            Ok(Err(_)) | Err(_) => Look::Unreadable,
        }
    }

    /// Records a look and sends what follows from it. If it is not known whether a person may still read, it is left to
    /// the next look.
    async fn take_in(&self, source: &str, thing: &str, look: &Look) -> Result<usize, Error> {
        let register = self.book.register();
        let taken_in = register.change_with(|before| async move {
            let (now, mut contents) = (self.book.now(), before.clone());
            let news = contents.after_look(source, thing, look, now, self.settings.tell_after);
            if contents == before {
                return Ok((before, 0));
            }
            let Some(allowed) = self.allowed(news).await else { return Ok((before, 0)) };
            for news in &allowed {
                self.send(news, now).await?;
            }
            Ok::<_, Error>((contents, allowed.len()))
        });
        taken_in.await
    }

    /// Returns the messages to people who may still read; `None` if that is not known of all of them at the moment.
    async fn allowed(&self, news: Vec<News>) -> Option<Vec<News>> {
        let mut allowed = Vec::new();
        for news in news {
            match self.readers.may_read(&news.by).await? {
                true => allowed.push(news),
                false => tracing::info!(thread = %news.thread, "Nobody is told: the person may no longer read"),
            }
        }
        Some(allowed)
    }

    /// Puts a message into the outbox of its thread, unless it was put there before.
    async fn send(&self, news: &News, now: Timestamp) -> Result<(), Error> {
        let key = format!("watch:{}", news.key);
        let mut changes = Changes::new(CommitId::new(key.as_str()), news.thread.clone());
        changes.outbox.push(reply_in_thread(key, now, news.reply.clone()));
        self.book.store().apply(&changes).await
    }

    /// Posts a digest with these counts. Without counts it is left to the next look, until it is too late.
    async fn post_digest(&self, id: &str, counts: Option<&[Counted]>) -> Result<usize, Error> {
        let register = self.book.register();
        let posted = register.change_with(|mut contents| async move {
            let now = self.book.now();
            let Some(at) = contents.digests.iter().position(|digest| digest.id == id) else { return Ok((contents, 0)) };
            let digest = contents.digests[at].clone();
            if digest.next > now || (counts.is_none() && now.since(digest.next) < self.settings.tell_after) {
                return Ok((contents, 0));
            }
            let things = things(&self.observers);
            let reply = match counts {
                Some(counts) => replies::digest(&things, counts, &digest.last, &digest.by, true),
                None => replies::no_digest(&things, &digest.by),
            };
            let key = format!("{id}:{}", digest.next.millis());
            let news = News { thread: digest.thread.clone(), by: digest.by.clone(), key, reply };
            let Some(allowed) = self.allowed(vec![news]).await else { return Ok((contents, 0)) };
            for news in &allowed {
                self.send(news, now).await?;
            }
            plan_next(&mut contents, at, counts, now, allowed.is_empty());
            Ok::<_, Error>((contents, allowed.len()))
        });
        posted.await
    }
}

/// Returns the numbers of participants of everything that is in progress.
pub(super) async fn counts(observers: &Observers) -> Result<Vec<Counted>, ToolError> {
    let mut all = Vec::new();
    for (source, observer) in observers {
        let found = timeout(READ_TIMEOUT, observer.in_progress()).await.map_err(|_| too_slow())??;
        let counted = |thing: Observed| Counted {
            source: source.clone(),
            thing: thing.id,
            name: thing.name,
            enrolled: thing.enrolled,
            simulated: thing.simulated,
        };
        all.extend(found.into_iter().map(counted));
    }
    all.truncate(MAX_COUNTED);
    Ok(all)
}

/// Returns the word for the things of all capabilities.
pub(super) fn things(observers: &Observers) -> String {
    let words: Vec<&str> = observers.values().map(|observer| observer.things()).collect();
    words.join(" and ")
}

/// Plans the next digest, or removes it if its person may no longer read.
fn plan_next(contents: &mut Contents, at: usize, counts: Option<&[Counted]>, now: Timestamp, may_not_read: bool) {
    let digest: &mut Digest = &mut contents.digests[at];
    match digest.schedule.next_after(now).filter(|_| !may_not_read) {
        Some(next) => {
            (digest.next, digest.not_before) = (next, next);
            if let Some(counts) = counts {
                digest.last = counts.to_vec();
            }
        }
        None => drop(contents.digests.remove(at)),
    }
}

fn too_slow() -> ToolError {
    ToolError { kind: countersign_graph::action::ErrorKind::Network, reply: replies::unavailable(), transient: true }
}

#[cfg(test)]
mod tests;
