//! Whether the store can be relied upon: it is written to, not only asked.

use std::{sync::Arc, time::Duration};

use countersign_core::cause::chain;
use countersign_graph::store::Store;
use tokio::{
    sync::Mutex,
    time::{Instant, timeout},
};

/// For how long an answer is good: whoever asks more often gets the same one.
const GOOD_FOR: Duration = Duration::from_secs(1);

/// How long the store may take to write a few bytes.
const LIMIT: Duration = Duration::from_secs(3);

/// How the store is, or what is wrong.
type Answer = Result<String, String>;

/// Looks at the store, not more often than is worth it.
#[derive(Clone, Debug)]
pub(super) struct Readiness {
    store: Arc<dyn Store>,
    last: Arc<Mutex<Option<(Instant, Answer)>>>,
}

impl Readiness {
    /// Of this store.
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, last: Arc::default() }
    }

    /// How the store is, or what is wrong.
    pub(super) async fn look(&self) -> Answer {
        let mut last = self.last.lock().await;
        if let Some((at, answer)) = &*last
            && at.elapsed() < GOOD_FOR
        {
            return answer.clone();
        }
        let look = async {
            self.store.probe().await?;
            self.store.durability().await
        };
        let answer = match timeout(LIMIT, look).await {
            Ok(Ok(durability)) => Ok(durability.name),
            Ok(Err(error)) => Err(chain(&error)),
            Err(_) => Err(format!("the store wrote nothing within {} s", LIMIT.as_secs())),
        };
        *last = Some((Instant::now(), answer.clone()));
        answer
    }
}
