//! Gathers everything that is known about a mail, from all sources at once.
//!
//! Each source fails alone and has its own time limit: a failure is reported beside what the others found.

use std::{sync::Arc, time::Duration};

use countersign_core::{cause, clock::Timestamp};
use futures_util::future::{OptionFuture, join, join3};
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::timeout;

use crate::{
    calendar::{Calendar, Event, Slot},
    contact::{Contact, one_line},
    contacts::Contacts,
    embed::{Embedded, Embedder, EmbeddingUsage},
    error::ContextError,
    item::{Embedding, Item, Kind},
    store::{ContextStore, How, Match, Query},
};

/// The length to which a similar text is cut in a line of context, in characters.
const EXCERPT: usize = 500;

/// The number of events in a line of context.
const EVENTS: usize = 10;

/// The number of days for which events and free times are looked up.
const DAYS: u32 = 7;

/// The time limit of each source unless another is set.
const LIMIT: Duration = Duration::from_secs(20);

/// The sources of context of one account. Only the store is needed.
#[derive(Clone, Debug)]
pub struct Context {
    account: String,
    store: Arc<dyn ContextStore>,
    embedder: Option<Arc<dyn Embedder>>,
    contacts: Arc<dyn Contacts>,
    calendar: Option<Arc<dyn Calendar>>,
    limit: Duration,
}

/// A mail about which everything is gathered.
#[derive(Clone, Copy, Debug)]
pub struct About<'a> {
    /// The id of the mail, which is not similar to itself.
    pub id: &'a str,
    /// The subject and the text, with a space between them.
    pub text: &'a str,
    /// The sender's address; `None` if the mail has no sender.
    pub sender: Option<&'a str>,
    /// True to look up events and free times.
    pub with_calendar: bool,
    /// The current time.
    pub now: Timestamp,
    /// The time zone of the person whose mail it is.
    pub zone: &'a TimeZone,
}

/// Everything that was found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Gathered {
    /// The similar mails, the nearest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub similar: Vec<Match>,
    /// The contact of the sender.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contact: Option<Contact>,
    /// The next events.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<Event>,
    /// The free times.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub slots: Vec<Slot>,
    /// The failures, one sentence for each source that failed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<String>,
    /// The usage of the model for embeddings, if it was called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<EmbeddingUsage>,
}

/// The result of looking for similar mails.
struct Similar {
    found: Result<Vec<Match>, ContextError>,
    /// The reason why they were compared by their words although there is a model.
    not_embedded: Option<ContextError>,
    usage: Option<EmbeddingUsage>,
}

impl Gathered {
    /// Returns the context in lines for a model: similar mails with their similarity, then the contact, then the
    /// events. No line is empty.
    pub fn lines(&self, zone: &TimeZone) -> Vec<String> {
        let mut lines: Vec<String> = self.similar.iter().map(similar_line).collect();
        let contact = self.contact.as_ref().map(Contact::line).filter(|line| !line.is_empty());
        lines.extend(contact.map(|line| format!("CRM Contact — {line}")));
        if !self.events.is_empty() {
            let events: Vec<_> = self.events.iter().map(|event| event.line(zone)).collect();
            lines.push(format!("Upcoming calendar events: {}", events.join("; ")));
        }
        lines
    }
}

/// Returns the line about a similar mail.
fn similar_line(found: &Match) -> String {
    let excerpt: String = one_line(&found.text).chars().take(EXCERPT).collect();
    let by = match found.how {
        How::Cosine => "",
        How::Words => ", by shared words",
    };
    format!("Similar email (similarity {:.2}{by}): {excerpt}", found.similarity)
}

impl Context {
    /// Creates the context of an account. Without an embedder, texts are compared by their words.
    pub fn new(account: impl Into<String>, store: Arc<dyn ContextStore>, contacts: Arc<dyn Contacts>) -> Self {
        Self { account: account.into(), store, embedder: None, contacts, calendar: None, limit: LIMIT }
    }

    /// Compares texts by the embeddings of a model.
    #[must_use]
    pub fn with_embedder(self, embedder: Arc<dyn Embedder>) -> Self {
        Self { embedder: Some(embedder), ..self }
    }

    /// Looks up events and free times in a calendar.
    #[must_use]
    pub fn with_calendar(self, calendar: Arc<dyn Calendar>) -> Self {
        Self { calendar: Some(calendar), ..self }
    }

    /// Sets the time limit of each source.
    #[must_use]
    pub fn with_limit(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    /// Returns the contacts.
    pub fn contacts(&self) -> &Arc<dyn Contacts> {
        &self.contacts
    }

    /// Returns the calendar, if there is one.
    pub fn calendar(&self) -> Option<&Arc<dyn Calendar>> {
        self.calendar.as_ref()
    }

    /// Returns the store.
    pub fn store(&self) -> &Arc<dyn ContextStore> {
        &self.store
    }

    /// Returns true if texts are compared by embeddings rather than by words.
    pub fn has_embeddings(&self) -> bool {
        self.embedder.is_some()
    }

    /// Gathers everything about a mail. Never fails as a whole.
    pub async fn gather(&self, about: &About<'_>) -> Gathered {
        let calendar = OptionFuture::from(self.calendar.as_deref().filter(|_| about.with_calendar).map(|calendar| {
            join(
                self.within(calendar.upcoming(about.now, DAYS, about.zone, EVENTS)),
                self.within(calendar.free(about.now, DAYS, about.zone, about.now)),
            )
        }));
        let contact = OptionFuture::from(about.sender.map(|sender| self.within(self.contacts.find(sender))));
        let (similar, contact, calendar) = join3(self.similar(about), contact, calendar).await;

        let mut gathered = Gathered::default();
        let Similar { found, not_embedded, usage } = similar;
        gathered.usage = usage;
        gathered.failures.extend(not_embedded.map(|error| failure("Embedding the email", &error)));
        gathered.similar = gathered.or_fail("Looking for similar emails", found);
        gathered.contact = gathered.or_fail("Looking up the contact", contact.unwrap_or(Ok(None)));
        let (events, slots) = calendar.unwrap_or((Ok(Vec::new()), Ok(Vec::new())));
        gathered.events = gathered.or_fail("Reading the calendar", events);
        gathered.slots = gathered.or_fail("Looking for free times", slots);
        gathered
    }

    /// Remembers a text, so that later mails can be compared with it. Without an embedding it can still be found by its
    /// words. Returns the usage of the model for embeddings, if it was called.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot write.
    pub async fn remember(
        &self,
        kind: Kind,
        source_id: &str,
        text: &str,
        metadata: Value,
        at: Timestamp,
    ) -> Result<Option<EmbeddingUsage>, ContextError> {
        let embedded = self.embedding(text).await.unwrap_or_else(|error| {
            tracing::warn!(error = cause::chain(&error), "Remembering a text without an embedding");
            None
        });
        let (embedding, usage) = embedded.unzip();
        let (account, source_id, text) = (self.account.clone(), source_id.to_owned(), text.to_owned());
        let item = Item { account, kind, source_id, text, embedding, metadata, at };
        self.within(self.store.remember(&item)).await?;
        Ok(usage)
    }

    /// Forgets a text. Does nothing if there is none.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot write.
    pub async fn forget(&self, kind: Kind, source_id: &str) -> Result<(), ContextError> {
        self.within(self.store.forget(&self.account, kind, source_id)).await
    }

    /// Checks every source. Returns a line or an error for each: the store, contacts elsewhere, the calendar.
    pub async fn check(&self) -> Vec<(&'static str, Result<String, ContextError>)> {
        let calendar = OptionFuture::from(self.calendar.as_deref().map(|calendar| self.within(calendar.check())));
        let (store, contacts, calendar) =
            join3(self.within(self.store.check()), self.within(self.contacts.check()), calendar).await;
        let mut lines = vec![("store", store), ("contacts", contacts)];
        lines.extend(calendar.map(|line| ("calendar", line)));
        lines
    }

    /// Looks for similar mails.
    async fn similar(&self, about: &About<'_>) -> Similar {
        if about.text.trim().is_empty() {
            return Similar { found: Ok(Vec::new()), not_embedded: None, usage: None };
        }
        let (embedded, not_embedded) = match self.embedding(about.text).await {
            Ok(embedded) => (embedded, None),
            Err(error) => (None, Some(error)),
        };
        let (embedding, usage) = embedded.unzip();
        let not = Some(about.id.to_owned());
        let query = Query { kind: Some(Kind::Email), not, ..Query::new(about.text, embedding) };
        Similar { found: self.within(self.store.similar(&self.account, &query)).await, not_embedded, usage }
    }

    /// Returns the embedding of a text and its usage; `None` without a model, or if the text is empty.
    async fn embedding(&self, text: &str) -> Result<Option<(Embedding, EmbeddingUsage)>, ContextError> {
        let Some(embedder) = self.embedder.as_ref().filter(|_| !text.trim().is_empty()) else { return Ok(None) };
        let Embedded { vector, tokens } = self.within(embedder.embed(text)).await?;
        let usage = EmbeddingUsage { model: embedder.name().to_owned(), calls: 1, tokens };
        Ok(Some((Embedding::new(embedder.name(), vector)?, usage)))
    }

    /// Waits for a source within the time limit.
    async fn within<T>(&self, source: impl Future<Output = Result<T, ContextError>>) -> Result<T, ContextError> {
        let late =
            |_| Err(ContextError::unavailable("the source", format!("no answer within {} s", self.limit.as_secs())));
        timeout(self.limit, source).await.unwrap_or_else(late)
    }
}

impl Gathered {
    /// Returns what a source found, or notes its failure.
    fn or_fail<T: Default>(&mut self, doing: &str, found: Result<T, ContextError>) -> T {
        found.unwrap_or_else(|error| {
            self.failures.push(failure(doing, &error));
            T::default()
        })
    }
}

fn failure(doing: &str, error: &ContextError) -> String {
    format!("{doing} failed: {}.", error.to_string().trim_end_matches('.'))
}

#[cfg(test)]
mod tests;
