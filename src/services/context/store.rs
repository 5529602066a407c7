//! The trait of a store of texts and contacts.
//!
//! One suite of tests runs against every implementation. All of them behave alike, except that [`crate::postgres`]
//! may use an approximate index for large accounts, while [`crate::sqlite`] is always exact.

use std::{cmp::Ordering, fmt::Debug};

use async_trait::async_trait;
use countersign_core::clock::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    contact::Contact,
    error::ContextError,
    item::{Embedding, Item, Kind},
};

/// The least similarity of a match unless the query says otherwise.
pub const AT_LEAST: f32 = 0.7;

/// The number of matches unless the query says otherwise.
pub const LIMIT: usize = 5;

/// The maximum number of matches or contacts of one search.
pub const MAX_LIMIT: usize = 100;

/// The least similarity of a match by words. Two texts about the same thing rarely share more than half of their words.
pub const WORDS_AT_LEAST: f32 = 0.2;

/// A search for similar texts.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// The text. It is used only if there is no embedding.
    pub text: String,
    /// The embedding of the text; `None` to compare words instead.
    pub embedding: Option<Embedding>,
    /// The kind of the wanted texts; `None` for all kinds.
    pub kind: Option<Kind>,
    /// The least similarity of vectors. Matches by words need [`WORDS_AT_LEAST`].
    pub at_least: f32,
    /// The maximum number of matches, up to [`MAX_LIMIT`].
    pub limit: usize,
    /// The source that is not a match, usually the mail itself.
    pub not: Option<String>,
}

impl Query {
    /// Creates a search with the usual limits.
    pub fn new(text: impl Into<String>, embedding: Option<Embedding>) -> Self {
        Self { text: text.into(), embedding, kind: None, at_least: AT_LEAST, limit: LIMIT, not: None }
    }

    /// Returns the number of matches to return.
    pub(crate) fn limit(&self) -> usize {
        self.limit.min(MAX_LIMIT)
    }
}

/// The way in which two texts were compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// The cosine of the angle between their embeddings.
    Cosine,
    /// The words that they share.
    Words,
}

/// A similar text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Match {
    /// The kind of its source.
    pub kind: Kind,
    /// The id of its source.
    pub source_id: String,
    /// The text.
    pub text: String,
    /// The similarity, from 0 to 1.
    pub similarity: f32,
    /// The way in which it was computed.
    pub how: How,
    /// The metadata of the text.
    pub metadata: Value,
    /// The time of the source.
    pub at: Timestamp,
}

impl Match {
    /// Compares matches: the nearest first; of equally near ones the newest, then by kind and id.
    pub(crate) fn order(&self, other: &Self) -> Ordering {
        (other.similarity.total_cmp(&self.similarity))
            .then_with(|| other.at.cmp(&self.at))
            .then_with(|| (self.kind, &self.source_id).cmp(&(other.kind, &other.source_id)))
    }
}

/// A store of texts and contacts.
#[async_trait]
pub trait ContextStore: Send + Sync + Debug {
    /// Remembers an item. One with the same account, kind and source is replaced.
    ///
    /// # Errors
    ///
    /// [`ContextError::Invalid`] if an id or the metadata is too long; otherwise fails if the store cannot write.
    async fn remember(&self, item: &Item) -> Result<(), ContextError>;

    /// Returns the texts of an account that are most similar to the query, the nearest first.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be read.
    async fn similar(&self, account: &str, to: &Query) -> Result<Vec<Match>, ContextError>;

    /// Forgets an item. Does nothing if there is none.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot write.
    async fn forget(&self, account: &str, kind: Kind, source_id: &str) -> Result<(), ContextError>;

    /// Forgets the items of all accounts whose source is older than `before`. Returns their number.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot write.
    async fn forget_before(&self, before: Timestamp) -> Result<u64, ContextError>;

    /// Returns the contact with an address, in any case.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be read.
    async fn contact(&self, account: &str, address: &str) -> Result<Option<Contact>, ContextError>;

    /// Stores a contact. One with the same address is replaced.
    ///
    /// # Errors
    ///
    /// [`ContextError::Invalid`] if a field is too long; otherwise fails if the store cannot write.
    async fn put_contact(&self, account: &str, contact: &Contact) -> Result<(), ContextError>;

    /// Stores a contact if its address is unknown. If it is known, only the time of the last contact is moved forward.
    /// Returns true if the contact is new.
    ///
    /// # Errors
    ///
    /// As [`Self::put_contact`].
    async fn meet(&self, account: &str, contact: &Contact) -> Result<bool, ContextError>;

    /// Returns the contacts whose address, name or company contains `text`, in any case, sorted by address.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be read.
    async fn search_contacts(&self, account: &str, text: &str, limit: usize) -> Result<Vec<Contact>, ContextError>;

    /// Forgets a contact. Does nothing if there is none.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot write.
    async fn forget_contact(&self, account: &str, address: &str) -> Result<(), ContextError>;

    /// Checks the store, and describes it in one line.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be used.
    async fn check(&self) -> Result<String, ContextError>;
}
