//! The lookups of the mail graph in outside systems: similar mails, contacts and the calendar.
//!
//! The graph knows no store of contacts and no calendar; the program joins this trait with them.

use std::fmt;

use async_trait::async_trait;
use countersign_core::{clock::Timestamp, reply::Text};
use countersign_graph::store::Usage;
use countersign_mail::{Address, Mail, MailId};
use serde::{Deserialize, Serialize};

/// The mail about which something is looked up.
#[derive(Clone, Debug)]
pub struct About<'a> {
    /// The mail, shortened.
    pub mail: &'a Mail,
    /// True if the events of the next days matter.
    pub with_events: bool,
    /// The current time.
    pub now: Timestamp,
}

/// The contact of a sender.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownContact {
    /// One line for a model.
    pub line: String,
    /// The same in words for people.
    pub shown: Text,
}

impl From<&str> for KnownContact {
    fn from(line: &str) -> Self {
        Self { line: line.to_owned(), shown: line.into() }
    }
}

/// The texts that were found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The texts for a model, the most relevant first: similar mails, then the contact, then events.
    pub context: Vec<String>,
    /// The similar mails and the events in words for people.
    pub shown: Vec<Text>,
    /// The contact of the sender; `None` if the sender is not known.
    pub contact: Option<KnownContact>,
    /// The sources that failed, each as a sentence.
    pub failures: Vec<String>,
    /// The usage of the model by which texts are compared, if it was called.
    pub usage: Option<Usage>,
}

/// A free time of the calendar.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FreeSlot {
    /// The start, with its time zone, such as `2025-03-04T09:00:00+01:00`.
    pub start: String,
    /// The end.
    pub end: String,
    /// The length in minutes.
    pub duration_minutes: u32,
}

/// The reason why something could not be looked up, as a sentence without addresses or texts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LookupError(pub String);

/// The sources of context for mails.
#[async_trait]
pub trait MailLookup: Send + Sync + fmt::Debug {
    /// Asks all sources; each of them fails alone.
    async fn gather(&self, about: &About<'_>) -> Found;

    /// Returns the contact with this address; `None` if there is none.
    ///
    /// # Errors
    ///
    /// Fails if the contacts cannot be read.
    async fn contact(&self, address: &Address) -> Result<Option<KnownContact>, LookupError>;

    /// Returns the free times from `from` on for `days` days, never in the past.
    ///
    /// # Errors
    ///
    /// Fails if the calendar cannot be read, or there is none.
    async fn free_slots(&self, from: Timestamp, days: u32) -> Result<Vec<FreeSlot>, LookupError>;

    /// Notes that a mail of this sender arrived, and makes a contact for a sender that is not known.
    ///
    /// # Errors
    ///
    /// Fails if the contact could not be stored.
    async fn seen(&self, sender: &Address, at: Timestamp) -> Result<(), LookupError>;

    /// Stores the mail, and its answer once there is one, so that they are found for similar mails. Returns the usage of
    /// the model by which texts are compared, if it was called.
    ///
    /// # Errors
    ///
    /// Fails if it could not be stored.
    async fn remember(&self, mail: &Mail, answer: Option<&str>) -> Result<Option<Usage>, LookupError>;

    /// Forgets a mail.
    ///
    /// # Errors
    ///
    /// Fails if it could not be removed.
    async fn forget(&self, mail: &MailId) -> Result<(), LookupError>;
}

/// A lookup that finds nothing, for a program without sources.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoLookup;

#[async_trait]
impl MailLookup for NoLookup {
    async fn gather(&self, _: &About<'_>) -> Found {
        Found::default()
    }

    async fn contact(&self, _: &Address) -> Result<Option<KnownContact>, LookupError> {
        Ok(None)
    }

    async fn free_slots(&self, _: Timestamp, _: u32) -> Result<Vec<FreeSlot>, LookupError> {
        Err(LookupError("No calendar is set up.".to_owned()))
    }

    async fn seen(&self, _: &Address, _: Timestamp) -> Result<(), LookupError> {
        Ok(())
    }

    async fn remember(&self, _: &Mail, _: Option<&str>) -> Result<Option<Usage>, LookupError> {
        Ok(None)
    }

    async fn forget(&self, _: &MailId) -> Result<(), LookupError> {
        Ok(())
    }
}
