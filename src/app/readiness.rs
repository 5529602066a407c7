//! The readiness of the store, checked by writing to it.

use std::{sync::Arc, time::Duration};

use countersign_core::cause::chain;
use countersign_graph::store::Store;
use tokio::{
    sync::Mutex,
    time::{Instant, timeout},
};

/// The time for which a result is reused.
const GOOD_FOR: Duration = Duration::from_secs(1);

/// The time limit of a check.
const LIMIT: Duration = Duration::from_secs(3);

/// The name of the store, or a description of the problem.
type Answer = Result<String, String>;

/// Checks the store, at most once per [`GOOD_FOR`].
#[derive(Clone, Debug)]
pub(super) struct Readiness {
    store: Arc<dyn Store>,
    last: Arc<Mutex<Option<(Instant, Answer)>>>,
}

impl Readiness {
    /// Creates the check of this store.
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, last: Arc::default() }
    }

    /// Returns the name of the store, or a description of the problem.
    pub(super) async fn check(&self) -> Answer {
        let mut last = self.last.lock().await;
        if let Some((at, answer)) = &*last
            && at.elapsed() < GOOD_FOR
        {
            return answer.clone();
        }
        let check = async {
            self.store.probe().await?;
            self.store.durability().await
        };
        let answer = match timeout(LIMIT, check).await {
            Ok(Ok(durability)) => Ok(durability.name),
            Ok(Err(error)) => Err(chain(&error)),
            Err(_) => Err(format!("the store didn't complete a write within {} s", LIMIT.as_secs())),
        };
        *last = Some((Instant::now(), answer.clone()));
        answer
    }
}
