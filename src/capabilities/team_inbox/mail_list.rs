//! The mails as the surfaces see them: who wrote, what became of each, and the state of the synchronization.
//!
//! The mail graph keeps the mails; this crate only reads them, through [`MailList`].

use std::fmt;

use async_trait::async_trait;
use countersign_core::{
    clock::Timestamp,
    ids::{ChannelId, ThreadId, UserId},
};
use countersign_graph::action::Reader;
pub use countersign_mail::MailStatus;
use serde::{Deserialize, Serialize};

/// A mail in a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The id of the mail.
    pub id: String,
    /// The display name of the sender.
    pub sender_name: Option<String>,
    /// The address of the sender; `None` if the mail names none.
    pub sender: Option<String>,
    /// The subject; possibly empty.
    pub subject: String,
    /// The class, such as `meeting_request`; `None` if it is not classified yet.
    pub class: Option<String>,
    /// The confidence of the classification, from 0 to 1.
    pub confidence: Option<f64>,
    /// The state.
    pub status: MailStatus,
    /// The reason why it waits for a person.
    pub why: Option<String>,
    /// The time at which the server received it.
    pub received_at: Timestamp,
    /// The time at which it was answered or rejected.
    pub settled_at: Option<Timestamp>,
    /// True if it was answered without a person.
    pub is_automatic: bool,
    /// True if it was closed as spam, rather than rejected.
    pub is_spam: bool,
    /// True if it was put away because it needs no reply.
    pub is_put_away: bool,
    /// The thread in Slack.
    pub thread: Option<ThreadId>,
    /// The address of that thread.
    pub link: Option<String>,
}

impl Entry {
    /// Returns the sender for people: the name, or else the address.
    pub fn from(&self) -> &str {
        let name = self.sender_name.as_deref().map(str::trim).filter(|name| !name.is_empty());
        name.or(self.sender.as_deref()).unwrap_or("an unknown sender")
    }

    /// Returns true if a word of the sender's name or address begins with each of these words. A word may end with the “s” of
    /// “Ben's” or “bens”.
    pub fn is_from(&self, words: &str) -> bool {
        let sender = [self.sender_name.as_deref(), self.sender.as_deref()].into_iter().flatten();
        let sender = sender.collect::<Vec<_>>().join(" ").to_lowercase();
        let begins = |word: &str| sender.split(|one: char| !one.is_alphanumeric()).any(|one| one.starts_with(word));
        let is_in = |word: &str| {
            let word = word.to_lowercase();
            let stem = word.strip_suffix('s').map(|stem| stem.trim_end_matches(['\'', '’']));
            begins(&word)
                || stem.is_some_and(|stem| !stem.is_empty() && begins(stem))
                || sender.contains(&word) && word.contains('@')
        };
        words.split_whitespace().all(is_in)
    }

    /// Returns the state in words for people.
    pub fn outcome(&self) -> &'static str {
        match (self.is_spam, self.status) {
            _ if self.is_put_away => "no reply needed",
            (true, MailStatus::Sent) => "answered, marked as spam",
            (true, _) => "marked as spam",
            (false, status) => status.words(),
        }
    }
}

/// A stop of the synchronization by a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// The person.
    pub by: UserId,
    /// The time, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
}

/// The state of the account and of the synchronization.
#[derive(Clone, Debug, PartialEq)]
pub struct Overview {
    /// The address of the account.
    pub account: String,
    /// The time of the last successful synchronization.
    pub last_sync: Option<Timestamp>,
    /// The reason why the last synchronization failed, if it did.
    pub fault: Option<String>,
    /// The stop by a person, if there is one.
    pub paused: Option<Pause>,
    /// The number of mails that wait for a person.
    pub waiting: usize,
    /// The time at which the oldest of them was received.
    pub oldest_waiting: Option<Timestamp>,
    /// The number of mails in progress.
    pub in_progress: usize,
    /// True if some answers are sent without a person.
    pub is_automatic: bool,
    /// The number of answers that were sent today without a person.
    pub automatic_today: u32,
    /// The maximum number of such answers a day.
    pub automatic_a_day: u32,
}

/// The reasons why the mails cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MailListError {
    /// The store did not answer, or its data cannot be read.
    #[error("the emails cannot be read: {0}")]
    Unavailable(String),
}

/// The mails of one account.
#[async_trait]
pub trait MailList: Send + Sync + fmt::Debug {
    /// Returns the channel in which each mail has a thread.
    fn channel(&self) -> &ChannelId;

    /// Returns the state of the account and of the synchronization.
    ///
    /// # Errors
    ///
    /// Fails if the mails cannot be read.
    async fn overview(&self) -> Result<Overview, MailListError>;

    /// Returns the mails that wait for a person, the oldest first, at most `limit`.
    ///
    /// # Errors
    ///
    /// Fails if the mails cannot be read.
    async fn waiting(&self, limit: usize) -> Result<Vec<Entry>, MailListError>;

    /// Returns the mails with this id, or whose sender or subject contains all these words: the newest first, at most
    /// `limit`.
    ///
    /// # Errors
    ///
    /// Fails if the mails cannot be read.
    async fn find(&self, words: &str, limit: usize) -> Result<Vec<Entry>, MailListError>;

    /// Returns the mails that were received, answered or rejected at `since` or later, at most `limit`.
    ///
    /// # Errors
    ///
    /// Fails if the mails cannot be read.
    async fn since(&self, since: Timestamp, limit: usize) -> Result<Vec<Entry>, MailListError>;

    /// Starts a synchronization soon, even if it is not due.
    ///
    /// # Errors
    ///
    /// Fails if the request cannot be stored.
    async fn sync_soon(&self) -> Result<(), MailListError>;

    /// Pauses or resumes the synchronization. Returns false if it was already in that state.
    ///
    /// # Errors
    ///
    /// Fails if the state cannot be stored.
    async fn set_paused(&self, is_paused: bool, by: &UserId) -> Result<bool, MailListError>;
}

/// Returns true if a reader may see senders and subjects: only the members of the channel of mails can read there.
/// Membership is not looked up, as for the lists of cards (`conversation::record::sight`).
pub fn may_read(book: &dyn MailList, reader: &Reader) -> bool {
    reader.channel == *book.channel()
}
