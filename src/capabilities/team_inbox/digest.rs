//! The daily digest: posted once a day in the channel of mails, also if the process was stopped at that time or several
//! processes run.
//!
//! A register of the store has the day of the last digest. To post one, a process first claims the day there, with the
//! nonce of the message, and records afterwards that it was posted. If it is stopped in between, another claims the day
//! again after [`CLAIM`] and looks for a message with that nonce before it posts one.

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use countersign_core::{
    clock::{Clock, Timestamp},
    ids::{ChannelId, Nonce},
    reply::Reply,
};
use countersign_graph::store::{Register, Store};
use jiff::{
    ToSpan as _,
    civil::{Date, Time},
    tz::TimeZone,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{
    figures::Figures,
    mail_list::{MailList, MailListError},
    replies,
};

/// The key of the register.
const KEY: &str = "mail:digest";
/// The time after which a claim that was not carried out may be claimed again.
const CLAIM: Duration = Duration::from_secs(300);
/// The time between two looks at the clock.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// The maximum period of a digest. After a longer break, only its last part is reported.
const MAX_PERIOD: Duration = Duration::from_secs(7 * 24 * 3600);
/// The maximum number of mails that are counted.
const MAX_COUNTED: usize = 5_000;
/// The maximum number of mails in each list.
const MAX_LISTED: usize = 5;

/// A poster of messages that are in no thread.
#[async_trait]
pub trait Announcer: Send + Sync + fmt::Debug {
    /// Posts a message in a channel. If `since` is given, an earlier attempt at or after that time may have posted it:
    /// then it is posted only if there is no message with this nonce.
    ///
    /// # Errors
    ///
    /// The reason why it is not known to be posted.
    async fn announce(
        &self,
        channel: &ChannelId,
        reply: &Reply,
        nonce: &Nonce,
        since: Option<Timestamp>,
    ) -> Result<(), String>;
}

/// The time of the digest.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// The time of day.
    pub at: Time,
    /// The time zone of the team.
    pub zone: TimeZone,
}

/// The reasons why a digest was not posted.
#[derive(Debug, thiserror::Error)]
pub enum DigestError {
    /// The store did not answer.
    #[error(transparent)]
    Store(#[from] countersign_graph::store::Error),
    /// The mails cannot be read.
    #[error(transparent)]
    Mails(#[from] MailListError),
    /// The register cannot be read.
    #[error("the last digest cannot be read: {0}")]
    Register(String),
    /// The message may not have been posted. It is looked for before it is posted again.
    #[error("the digest may not have been posted: {0}")]
    Announce(String),
}

/// The daily digest, with its dependencies.
#[derive(Debug)]
pub struct Digest {
    /// The mails.
    pub book: Arc<dyn MailList>,
    /// The store with the register.
    pub store: Arc<dyn Store>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The poster of the message.
    pub announcer: Arc<dyn Announcer>,
    /// The time of the digest.
    pub schedule: Schedule,
}

/// The last digest, as the register has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct LastDigest {
    /// The day that it is for, in the time zone of the team.
    day: Date,
    /// The end of its period.
    until: Timestamp,
    /// True if it was posted; otherwise a process has claimed it.
    is_posted: bool,
    /// The time of the first claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    first_claim: Option<Timestamp>,
    /// The time of the last claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_claim: Option<Timestamp>,
    /// The nonce of its message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    nonce: Option<Nonce>,
    /// The beginning of its period.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<Timestamp>,
}

impl LastDigest {
    /// Returns a digest that needs no message.
    fn posted(day: Date, until: Timestamp) -> Self {
        Self { day, until, is_posted: true, first_claim: None, last_claim: None, nonce: None, from: None }
    }
}

impl Schedule {
    /// Returns the day of the newest digest that is due at this time.
    fn due_day(&self, now: Timestamp) -> Option<Date> {
        let local = jiff::Timestamp::from_millisecond(now.millis()).ok()?.to_zoned(self.zone.clone());
        match local.time() >= self.at {
            true => Some(local.date()),
            false => local.date().checked_sub(1.day()).ok(),
        }
    }
}

impl Digest {
    /// Posts each digest when it is due, until the signal to stop.
    pub async fn run(self, stop: CancellationToken) {
        let mut looks = tokio::time::interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while stop.run_until_cancelled(looks.tick()).await.is_some() {
            match self.post_if_due().await {
                Ok(false) => {}
                Ok(true) => tracing::info!("The daily digest of mails was posted"),
                Err(error) => {
                    tracing::warn!(error = countersign_core::cause::chain(&error), "The daily digest was not posted");
                }
            }
        }
    }

    /// Posts the digest if it is due and nobody has posted it. Returns true if it was posted. When the digest is first
    /// turned on, the next one is the first.
    ///
    /// # Errors
    ///
    /// [`DigestError`]; it is tried again later.
    pub async fn post_if_due(&self) -> Result<bool, DigestError> {
        let now = self.clock.now();
        let Some(day) = self.schedule.due_day(now) else { return Ok(false) };
        let Register { revision, value } = self.store.register(KEY).await?;
        if value.is_null() {
            self.store.set_register(KEY, revision, &json!(LastDigest::posted(day, now))).await?;
            return Ok(false);
        }
        let last: LastDigest =
            serde_json::from_value(value).map_err(|error| DigestError::Register(error.to_string()))?;
        let claimed = match self.claim(&last, day, now) {
            Some(claimed) if self.store.set_register(KEY, revision, &json!(claimed)).await? => claimed,
            _ => return Ok(false), // not due, or another process has it
        };
        let reply = self.compose(&claimed, now).await?;
        let nonce = claimed.nonce.clone().unwrap_or_else(Nonce::fresh);
        let is_repeat = claimed.first_claim != claimed.last_claim;
        let since = claimed.first_claim.filter(|_| is_repeat);
        let posted = self.announcer.announce(self.book.channel(), &reply, &nonce, since).await;
        posted.map_err(DigestError::Announce)?;
        let done = LastDigest::posted(claimed.day, claimed.until);
        if !self.store.set_register(KEY, revision + 1, &json!(done)).await? {
            tracing::warn!("Another process took over the daily digest while it was posted");
        }
        Ok(true)
    }

    /// Returns the claim to post a digest; `None` if there is nothing to post, or another process may be posting it.
    fn claim(&self, last: &LastDigest, day: Date, now: Timestamp) -> Option<LastDigest> {
        if last.is_posted {
            let earliest = Timestamp(now.millis() - i64::try_from(MAX_PERIOD.as_millis()).unwrap_or(i64::MAX));
            return (last.day < day).then(|| LastDigest {
                day,
                until: now,
                is_posted: false,
                first_claim: Some(now),
                last_claim: Some(now),
                nonce: Some(Nonce::fresh()),
                from: Some(last.until.max(earliest)),
            });
        }
        let is_free = last.last_claim.is_none_or(|at| now.since(at) >= CLAIM);
        // A digest that could not be posted is posted late rather than never, under its own nonce.
        is_free.then(|| LastDigest { last_claim: Some(now), ..last.clone() })
    }

    async fn compose(&self, claimed: &LastDigest, now: Timestamp) -> Result<Reply, MailListError> {
        let from = claimed.from.unwrap_or(claimed.until);
        let recent = self.book.since(from, MAX_COUNTED).await?;
        let waiting = self.book.waiting(MAX_LISTED).await?;
        let mut automatic: Vec<_> = recent
            .iter()
            .filter(|entry| entry.is_automatic && entry.settled_at.is_some_and(|at| at >= from))
            .cloned()
            .collect();
        automatic.sort_by_key(|entry| std::cmp::Reverse(entry.settled_at));
        automatic.truncate(MAX_LISTED);
        Ok(replies::digest(&Figures::of(&recent), &waiting, &automatic, now))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use countersign_core::clock::ManualClock;
    use countersign_store::sqlite::SqliteStore;

    use super::*;
    use crate::{
        mail_list::MailStatus,
        testing::{FixedMailList, answered, entry},
    };

    /// A channel that keeps what is posted, and loses the next answers.
    #[derive(Debug, Default)]
    struct Channel {
        posted: Mutex<Vec<(Nonce, String)>>,
        loses: Mutex<usize>,
    }

    #[async_trait]
    impl Announcer for Channel {
        async fn announce(
            &self,
            _: &ChannelId,
            reply: &Reply,
            nonce: &Nonce,
            since: Option<Timestamp>,
        ) -> Result<(), String> {
            let mut posted = self.posted.lock().unwrap();
            let is_there = posted.iter().any(|(known, _)| known == nonce);
            if since.is_none() || !is_there {
                posted.push((nonce.clone(), reply.words()));
            }
            let mut loses = self.loses.lock().unwrap();
            if *loses > 0 {
                *loses -= 1;
                return Err("no answer".to_owned());
            }
            Ok(())
        }
    }

    struct World {
        clock: Arc<ManualClock>,
        channel: Arc<Channel>,
        digest: Digest,
        _folder: tempfile::TempDir,
    }

    const HOUR: Duration = Duration::from_secs(3600);

    /// Returns a digest that is due in an hour.
    async fn world() -> World {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::default());
        let store = SqliteStore::open(folder.path().join("store.sqlite"), clock.clone()).unwrap();
        let channel = Arc::new(Channel::default());
        let soon = jiff::Timestamp::from_millisecond((clock.now() + HOUR).millis()).unwrap();
        let at = soon.to_zoned(TimeZone::UTC).time();
        // This clock runs on, and the first digest counts from the first look at it, which comes a moment later.
        let now = Timestamp(clock.now().millis() + 1_000);
        let waiting = crate::mail_list::Entry { received_at: now, ..entry("m1", MailStatus::NeedsReview) };
        let sent = answered("m2", HOUR, true);
        let sent = crate::mail_list::Entry { received_at: now, settled_at: Some(now), ..sent };
        let digest = Digest {
            book: Arc::new(FixedMailList::new(vec![waiting, sent])),
            store: Arc::new(store),
            clock: clock.clone(),
            announcer: channel.clone(),
            schedule: Schedule { at, zone: TimeZone::UTC },
        };
        assert!(!digest.post_if_due().await.unwrap(), "the first digest is the next one");
        World { clock, channel, digest, _folder: folder }
    }

    #[tokio::test]
    async fn the_digest_is_posted_once_a_day() {
        let World { clock, channel, digest, _folder } = world().await;
        assert!(!digest.post_if_due().await.unwrap(), "it is not due");
        clock.advance(HOUR + Duration::from_secs(60));
        assert!(digest.post_if_due().await.unwrap());
        assert!(!digest.post_if_due().await.unwrap());
        clock.advance(24 * HOUR);
        assert!(digest.post_if_due().await.unwrap(), "the next day's");
        let posted = channel.posted.lock().unwrap();
        assert_eq!(posted.len(), 2);
        assert!(posted[0].1.contains("Waiting longest\n• Ada: Prices for 20 seats"), "{}", posted[0].1);
        assert!(posted[0].1.contains("Answered automatically: 1"), "{}", posted[0].1);
    }

    #[tokio::test]
    async fn a_digest_whose_answer_was_lost_is_found_again() {
        let World { clock, channel, digest, _folder } = world().await;
        clock.advance(HOUR + Duration::from_secs(60));
        *channel.loses.lock().unwrap() = 1;
        assert!(matches!(digest.post_if_due().await, Err(DigestError::Announce(_))));
        assert!(!digest.post_if_due().await.unwrap(), "another process could be posting it");
        clock.advance(CLAIM);
        assert!(digest.post_if_due().await.unwrap());
        assert_eq!(channel.posted.lock().unwrap().len(), 1);
    }

    #[tokio::test]
    async fn a_missed_digest_is_posted_at_the_next_start() {
        let World { clock, channel, digest, _folder } = world().await;
        clock.advance(60 * HOUR);
        assert!(digest.post_if_due().await.unwrap());
        assert!(!digest.post_if_due().await.unwrap(), "only the newest of several");
        assert_eq!(channel.posted.lock().unwrap().len(), 1);
    }
}
