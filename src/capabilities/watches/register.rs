//! All watches and digests, in one register of the store that is changed by compare-and-set.

use std::{fmt, sync::Arc};

use countersign_core::clock::{Clock, Timestamp};
use countersign_graph::store::{Error, Store, TypedRegister};
use serde::{Deserialize, Serialize};

use super::watch::{Digest, Followed, Watch};

/// The key of the register.
pub const KEY: &str = "watches";

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
pub struct WatchRegister {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
}

impl fmt::Debug for WatchRegister {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WatchRegister")
    }
}

impl WatchRegister {
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

    /// Returns the register.
    pub fn register(&self) -> TypedRegister<Contents> {
        TypedRegister::new(self.store.clone(), KEY)
    }

    /// Changes the contents, and removes what is no longer needed ([`Contents::tidy`]).
    ///
    /// # Errors
    ///
    /// As [`TypedRegister::change`].
    pub async fn change<A: Send>(&self, mut change: impl FnMut(&mut Contents) -> A + Send) -> Result<A, Error> {
        let register = self.register();
        let changed = register.change(|contents| {
            let answer = change(contents);
            contents.tidy();
            answer
        });
        changed.await
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
