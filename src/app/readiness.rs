//! The readiness of the store, checked by writing to it.
//!
//! Of a Redis Cluster, one part that can be written is enough to be ready; those that cannot be written are listed as
//! problems.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use countersign_core::{cause::chain, ids::Partition};
use countersign_graph::store::{Error, Store};
use tokio::{
    sync::Mutex,
    time::{Instant, timeout},
};

/// The time for which a result is reused.
const GOOD_FOR: Duration = Duration::from_secs(1);

/// The time limit of a check.
const LIMIT: Duration = Duration::from_secs(3);

/// What works, or the reason why nothing works.
type Answer = Result<Working, String>;

/// A store that works, at least in parts.
#[derive(Clone, Debug)]
pub(super) struct Working {
    /// The name of the store.
    pub(super) name: String,
    /// What does not work, or is not as it should be.
    pub(super) problems: Vec<String>,
}

/// Checks the store, at most once per [`GOOD_FOR`].
#[derive(Clone, Debug)]
pub(super) struct Readiness {
    store: Arc<dyn Store>,
    last: Arc<Mutex<Option<(Instant, Answer)>>>,
    /// The partitions that could not be written at any time since the start.
    told: Arc<Mutex<BTreeSet<Partition>>>,
}

impl Readiness {
    /// Creates the check of this store.
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, last: Arc::default(), told: Arc::default() }
    }

    /// Returns what works, or why nothing does.
    pub(super) async fn check(&self) -> Answer {
        let mut last = self.last.lock().await;
        if let Some((at, answer)) = &*last
            && at.elapsed() < GOOD_FOR
        {
            return answer.clone();
        }
        let check = async {
            let unwritable = self.store.probe().await?;
            Ok::<_, Error>((unwritable, self.store.durability().await?))
        };
        let answer = match timeout(LIMIT, check).await {
            Ok(Ok((unwritable, durability))) => {
                self.tell(unwritable.iter().flat_map(|of| of.partitions.iter().copied()).collect()).await;
                let problems = unwritable.iter().map(ToString::to_string).chain(durability.problems);
                Ok(Working { name: durability.name, problems: problems.collect() })
            }
            failed => {
                self.tell(Partition::all().collect()).await;
                Err(match failed {
                    Ok(Err(error)) => chain(&error),
                    _ => format!("the store didn't complete a write within {} s", LIMIT.as_secs()),
                })
            }
        };
        *last = Some((Instant::now(), answer.clone()));
        answer
    }

    /// Tells the partitions that cannot be written as metrics, and of those that could not be before that they can.
    async fn tell(&self, unwritable: BTreeSet<Partition>) {
        let mut told = self.told.lock().await;
        told.extend(&unwritable);
        for partition in &*told {
            let number = partition.number().to_string();
            let is_unwritable = f64::from(u8::from(unwritable.contains(partition)));
            metrics::gauge!("countersign_store_partition_unwritable", "partition" => number).set(is_unwritable);
        }
    }
}
