//! Follows what happens elsewhere for the actions that wait for it, and stores each event once.
//!
//! An action that waits holds nothing: its record says what for. This room reads those records, after a start and after
//! each step of a thread of this process, and has the capability follow the event ([`EventSource`]). While nothing waits it
//! does nothing, but for a look every [`LOOK`] at what other processes may have left.
//!
//! Several processes may follow the same event. That does no harm: an event is stored once, by its key
//! ([`External::dedup`]), and one that nobody waits for any more is not stored.

use std::{collections::HashMap, sync::Arc, time::Duration};

use countersign_capabilities::EventSource;
use countersign_core::{
    cause,
    clock::Clock,
    ids::{ActionId, ThreadId},
};
use countersign_graph::{
    action::{ActionRecord, Status},
    store::{ActionFilter, Error, External, Store},
};
use tokio::{
    sync::broadcast::error::RecvError,
    task::{AbortHandle, JoinSet},
    time::{MissedTickBehavior, interval},
};
use tokio_util::sync::CancellationToken;

use super::workers::Workers;

/// The interval between looks at the waiting actions of all threads.
const LOOK: Duration = Duration::from_secs(60);
/// The most waiting actions that are followed.
const MOST: usize = 10_000;
/// The wait before an event is stored again that the store did not take.
const AGAIN: Duration = Duration::from_secs(1);

/// The event that an action waits for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Wanted {
    thread: ThreadId,
    action: ActionId,
    source: String,
    key: String,
}

/// The follower of events that actions wait for.
pub struct Events {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    workers: Workers,
    sources: Vec<Arc<dyn EventSource>>,
}

/// The dependencies of [`Events`].
pub struct EventsDeps {
    /// The store of the actions.
    pub store: Arc<dyn Store>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The workers that advance threads.
    pub workers: Workers,
    /// The followers, one for each outside system.
    pub sources: Vec<Arc<dyn EventSource>>,
}

impl Events {
    /// Creates the follower; nothing is followed before [`Self::run`].
    pub fn new(deps: EventsDeps) -> Self {
        let EventsDeps { store, clock, workers, sources } = deps;
        Self { store, clock, workers, sources }
    }

    /// Follows until the stop.
    pub async fn run(self, stop: CancellationToken) {
        if self.sources.is_empty() {
            return stop.cancelled().await;
        }
        let mut advanced = self.workers.advanced();
        let mut following = Following::default();
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let of = tokio::select! {
                () = stop.cancelled() => return,
                Some(ended) = following.tasks.join_next() => {
                    if let Ok(wanted) = ended {
                        following.running.remove(&wanted);
                    }
                    continue;
                }
                _ = looks.tick() => None,
                thread = advanced.recv() => match thread {
                    Ok(thread) => Some(thread),
                    Err(RecvError::Lagged(_)) => None,
                    Err(RecvError::Closed) => return stop.cancelled().await,
                },
            };
            match self.wanted(of.as_ref()).await {
                Ok(wanted) => self.follow(&mut following, of.as_ref(), wanted),
                Err(error) => tracing::warn!(error = cause::chain(&error), "Cannot look for actions that wait"),
            }
        }
    }

    /// Returns the events that actions wait for: those of one thread, or of all.
    async fn wanted(&self, of: Option<&ThreadId>) -> Result<Vec<Wanted>, Error> {
        let filter = ActionFilter { thread: of.cloned(), statuses: vec![Status::Intent], limit: MOST };
        let actions = self.store.actions(&filter).await?;
        Ok(actions.iter().filter_map(|record| self.wanted_by(record)).collect())
    }

    fn wanted_by(&self, record: &ActionRecord) -> Option<Wanted> {
        let wait = record.waits.as_ref().filter(|wait| wait.end.is_none() && self.source(&wait.source).is_some())?;
        Some(Wanted {
            thread: record.thread.clone(),
            action: record.id.clone(),
            source: wait.source.clone(),
            key: wait.key.clone(),
        })
    }

    fn source(&self, name: &str) -> Option<&Arc<dyn EventSource>> {
        self.sources.iter().find(|source| source.source() == name)
    }

    /// Begins to follow what is not followed yet, and ends what nobody waits for any more.
    fn follow(&self, following: &mut Following, of: Option<&ThreadId>, wanted: Vec<Wanted>) {
        following.running.retain(|known, task| {
            let is_wanted = of.is_some_and(|of| *of != known.thread) || wanted.contains(known);
            if !is_wanted {
                task.abort();
            }
            is_wanted
        });
        for wanted in wanted {
            let Some(source) = self.source(&wanted.source).filter(|_| !following.running.contains_key(&wanted)) else {
                continue;
            };
            tracing::info!(thread.id = %wanted.thread, action.id = %wanted.action, source = wanted.source, "Following an event");
            let task =
                follow(source.clone(), self.store.clone(), self.clock.clone(), self.workers.clone(), wanted.clone());
            let task = following.tasks.spawn(task);
            following.running.insert(wanted, task);
        }
    }
}

/// The events that are followed now.
#[derive(Default)]
struct Following {
    running: HashMap<Wanted, AbortHandle>,
    tasks: JoinSet<Wanted>,
}

/// Follows one event and stores it.
async fn follow(
    source: Arc<dyn EventSource>,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    workers: Workers,
    wanted: Wanted,
) -> Wanted {
    let Some(body) = source.follow(&wanted.key).await else { return wanted };
    let event = match External::new(wanted.source.clone(), wanted.key.clone(), body) {
        Ok(event) => event,
        Err(error) => {
            tracing::error!(action.id = %wanted.action, %error, "An event is too long; its wait ends when its time is over");
            return wanted;
        }
    };
    loop {
        let stored = async {
            let action = store.action(&wanted.thread, &wanted.action).await?;
            let waits = action.and_then(|action| action.waits);
            if waits.is_some_and(|wait| wait.end.is_none() && wait.key == wanted.key) {
                store.ingest(&event.clone().deliver_to(wanted.thread.clone(), clock.now())).await?;
                workers.wake(wanted.thread.clone());
            }
            Ok::<_, Error>(())
        };
        match stored.await {
            Ok(()) => return wanted,
            Err(error) => {
                tracing::warn!(error = cause::chain(&error), "Cannot store an event; trying again");
                tokio::time::sleep(AGAIN).await;
            }
        }
    }
}
