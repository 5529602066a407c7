//! Chooses the next thread to lease, if the caller wants any thread.
//!
//! All partitions are asked for their first few ready threads in one round trip, and the result is
//! shared by all workers of the process: each takes the next thread, the one that has been ready
//! longest first. The script for leasing then decides whether the thread is still ready, since
//! another process may have been faster.
//!
//! A search by each worker on its own was rejected as a design: all workers find the same threads
//! and compete for them, and with 64 workers most calls lose again and again.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, VecDeque},
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use countersign_core::{
    clock::Timestamp,
    ids::{Partition, ThreadId},
};
use countersign_graph::store::Error;
use tokio::{sync::Mutex, time::Instant};

use super::{
    connection::{Link, Look},
    json,
    keys::PartitionKey,
};

/// The maximum number of ready threads of each partition that a search returns.
const MAX_PER_PARTITION: isize = 4;
/// The time for which a result is used. After that, other threads may have been ready for longer.
const MAX_AGE: Duration = Duration::from_millis(50);

/// The threads that were found and have not been taken yet.
#[derive(Debug, Default)]
pub(super) struct Finder {
    found: Mutex<ReadyThreads>,
    /// The number of searches so far. A search that began after a call did is recent enough for
    /// that call.
    searches: AtomicU64,
}

#[derive(Debug, Default)]
struct ReadyThreads {
    threads: VecDeque<ThreadId>,
    at: Option<Instant>,
    /// True if the last search found no thread.
    nothing: bool,
}

/// The state of one call: the number of searches when it last began one.
#[derive(Debug)]
pub(super) struct Search {
    searches_before: u64,
}

impl Finder {
    /// Begins a search.
    pub(super) fn search(&self) -> Search {
        Search { searches_before: self.searches.load(Ordering::SeqCst) }
    }

    /// Returns a thread that was ready a moment ago and that no other worker of this process was
    /// given. `None` if a search that began after this call found nothing.
    pub(super) async fn next(
        &self,
        search: &mut Search,
        link: &Link,
        now: Timestamp,
    ) -> Result<Option<ThreadId>, Error> {
        let mut found = self.found.lock().await;
        if found.at.is_none_or(|at| at.elapsed() > MAX_AGE) {
            found.threads.clear();
        }
        let searched_meanwhile = self.searches.load(Ordering::SeqCst) > search.searches_before;
        if found.threads.is_empty() && !(searched_meanwhile && found.nothing) {
            search.searches_before = self.searches.fetch_add(1, Ordering::SeqCst);
            *found = ReadyThreads { at: Some(Instant::now()), ..ReadyThreads::default() };
            found.threads = ready_threads(link, now).await?;
            found.nothing = found.threads.is_empty();
        }
        Ok(found.threads.pop_front())
    }
}

/// Returns the ready threads of all partitions, the one that has been ready longest first.
async fn ready_threads(link: &Link, now: Timestamp) -> Result<VecDeque<ThreadId>, Error> {
    let looks = link.look(Partition::all(), |pipeline, partition| {
        for index in [PartitionKey::Ready, PartitionKey::Waiting] {
            pipeline.zrange_withscores(index.of(partition), 0, MAX_PER_PARTITION - 1);
        }
    });
    // How long each thread has been ready, in microseconds. For a thread that is in both sets, the longer time counts.
    let mut ready_for: BTreeMap<String, i64> = BTreeMap::new();
    for Look { server_now, answers, .. } in looks.await? {
        for (n, answer) in answers.into_iter().enumerate() {
            for (thread, from) in json::answer::<Vec<(String, f64)>>(answer)? {
                let since = match n {
                    0 => server_now.saturating_sub(from as i64),
                    _ => now.millis().saturating_sub(from as i64).saturating_mul(1000),
                };
                if since >= 0 {
                    let longest = ready_for.entry(thread).or_insert(since);
                    *longest = since.max(*longest);
                }
            }
        }
    }
    let mut threads: Vec<_> = ready_for.into_iter().collect();
    threads.sort_by_key(|(_, since)| Reverse(*since));
    Ok(threads.into_iter().filter_map(|(thread, _)| thread.parse().ok()).collect())
}
