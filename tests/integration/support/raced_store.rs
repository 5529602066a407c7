//! A store in which somebody is faster: at a chosen moment another write comes first, or the process never gets to it.

use std::{
    fmt,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use countersign::graph::store::{Changes, Error, Store};
use futures_util::future::BoxFuture;

use super::watched_store::{Watch, WatchedStore};

/// What comes first. An error takes the place of the write: it is never made.
type Act = Box<dyn FnOnce(Arc<dyn Store>) -> BoxFuture<'static, Result<(), Error>> + Send>;
/// Which write it comes before.
type Which = Box<dyn Fn(&Changes) -> bool + Send>;

/// Another store, and what happens right before a write to it.
pub(crate) type RacedStore = WatchedStore<Race>;

/// What is to happen right before commits.
pub(crate) struct Race {
    inner: Arc<dyn Store>,
    acts: Mutex<Vec<(Which, Act)>>,
}

impl fmt::Debug for Race {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Race").finish_non_exhaustive()
    }
}

impl RacedStore {
    pub(crate) fn raced(inner: Arc<dyn Store>) -> Self {
        Self::new(inner.clone(), Race { inner, acts: Mutex::default() })
    }

    /// Has `act` happen once, right before the next commit that is of this kind.
    pub(crate) fn before_commit<F>(
        &self,
        which: impl Fn(&Changes) -> bool + Send + 'static,
        act: impl FnOnce(Arc<dyn Store>) -> F + Send + 'static,
    ) where
        F: Future<Output = Result<(), Error>> + Send + 'static,
    {
        self.watch.acts.lock().unwrap().push((Box::new(which), Box::new(move |store| Box::pin(act(store)))));
    }

    /// Whether everything that was to happen did.
    pub(crate) fn is_spent(&self) -> bool {
        self.watch.acts.lock().unwrap().is_empty()
    }
}

impl Race {
    fn due(&self, changes: &Changes) -> Option<Act> {
        let mut acts = self.acts.lock().unwrap();
        let at = acts.iter().position(|(which, _)| which(changes))?;
        Some(acts.remove(at).1)
    }
}

#[async_trait]
impl Watch for Race {
    async fn commits(&self, changes: &Changes) -> Result<(), Error> {
        match self.due(changes) {
            Some(act) => act(self.inner.clone()).await,
            None => Ok(()),
        }
    }
}
