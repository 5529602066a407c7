//! All watches and digests, in one register of the store that is changed by compare-and-set.

use std::{fmt, sync::Arc};

use countersign_core::clock::{Clock, Timestamp};
use countersign_graph::store::{Error, Register, Store};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::watch::{Digest, Followed, Watch};

/// The key of the register.
pub const KEY: &str = "watches";

/// The maximum number of attempts at a change while others change the register at the same time.
const MAX_TRIES: u32 = 20;

/// The contents of the register.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Contents {
    /// The watches, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub watches: Vec<Watch>,
    /// The digests, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub digests: Vec<Digest>,
    /// The things that the watches are about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub followed: Vec<Followed>,
}

impl Contents {
    /// Removes the things that no watch is about any more, and the tests of splits that nobody waits for.
    pub fn tidy(&mut self) {
        let watches = &self.watches;
        self.followed.retain_mut(|followed| {
            let mut about = watches.iter().filter(|watch| followed.is_of(watch)).peekable();
            let is_followed = about.peek().is_some();
            if !about.any(|watch| watch.event == super::watch::Event::SplitLooksWrong) {
                followed.split = None;
            }
            is_followed
        });
    }
}

impl Followed {
    /// Returns true if a watch is about this thing.
    pub fn is_of(&self, watch: &Watch) -> bool {
        watch.source == self.source && watch.thing == self.thing
    }
}

/// The register in the store.
#[derive(Clone)]
pub struct WatchBook {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
}

impl fmt::Debug for WatchBook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WatchBook")
    }
}

/// The reason why the register could not be changed.
#[derive(Debug, thiserror::Error)]
pub enum BookError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] Error),
    /// Others changed the register at every attempt.
    #[error("other processes keep changing the watches")]
    Busy,
}

impl WatchBook {
    /// Opens the register in this store.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock }
    }

    /// Returns the store.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Returns the current time.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns the contents and their revision.
    ///
    /// # Errors
    ///
    /// Fails if the store isn't answering, or the register cannot be read.
    pub async fn read(&self) -> Result<(u64, Contents), Error> {
        let Register { revision, value } = self.store.register(KEY).await?;
        if value.is_null() {
            return Ok((revision, Contents::default()));
        }
        let contents = serde_json::from_value(value);
        let corrupt = |error: serde_json::Error| Error::Corrupt { what: format!("{KEY}: {error}") };
        contents.map(|contents| (revision, contents)).map_err(corrupt)
    }

    /// Writes the contents unless the register has changed since this revision. Returns false if it has.
    ///
    /// # Errors
    ///
    /// Fails if the store isn't answering. The contents may be written then.
    pub async fn write(&self, revision: u64, contents: &Contents) -> Result<bool, Error> {
        self.store.set_register(KEY, revision, &json!(contents)).await
    }

    /// Changes the contents, with further attempts if others changed them in the meantime. Nothing is written if the
    /// change leaves them as they are.
    ///
    /// # Errors
    ///
    /// [`BookError`].
    pub async fn change<T>(&self, mut change: impl FnMut(&mut Contents) -> T) -> Result<T, BookError> {
        for _ in 0..MAX_TRIES {
            let (revision, before) = self.read().await?;
            let mut contents = before.clone();
            let answer = change(&mut contents);
            contents.tidy();
            if contents == before || self.write(revision, &contents).await? {
                return Ok(answer);
            }
        }
        Err(BookError::Busy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_stored_comes_out_as_it_went_in() {
        let stored: Vec<serde_json::Value> =
            serde_json::from_str(include_str!("../../../tests/fixtures/shapes/watches.json")).unwrap();
        for one in stored {
            let contents: Contents = serde_json::from_value(one.clone()).unwrap();
            assert_eq!(json!(contents), one);
        }
    }
}
