//! Follows what happens elsewhere for the actions that wait for it, and stores each event once.
//!
//! An action that waits holds nothing: its record says what for. This room reads those records after a start, hears from
//! then on of each thread of this process what it waits for ([`Advanced`]), and has the capability follow the event
//! ([`EventSource`]). A thread that waits for nothing costs it nothing; every [`LOOK`] it reads what other processes may
//! have left.
//!
//! Several processes may follow the same event. That does no harm: an event is stored once, by its key
//! ([`External::dedup`]), and one that nobody waits for any more is not stored.

use std::{collections::HashMap, sync::Arc, time::Duration};

use countersign_capabilities::EventSource;
use countersign_core::{cause, clock::Clock, ids::ThreadId};
use countersign_graph::{
    action::Status,
    engine::AwaitedEvent,
    store::{ActionFilter, Error, External, Store},
};
use tokio::{
    sync::broadcast::error::RecvError,
    task::{AbortHandle, JoinSet},
    time::{MissedTickBehavior, interval},
};
use tokio_util::sync::CancellationToken;

use super::workers::{Advanced, Workers};

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
    event: AwaitedEvent,
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
            let heard = tokio::select! {
                () = stop.cancelled() => return,
                Some(ended) = following.tasks.join_next() => {
                    if let Ok(wanted) = ended {
                        following.ended(&wanted);
                    }
                    continue;
                }
                _ = looks.tick() => None,
                advanced = advanced.recv() => match advanced {
                    Ok(advanced) => Some(advanced),
                    Err(RecvError::Lagged(_)) => None,
                    Err(RecvError::Closed) => return stop.cancelled().await,
                },
            };
            let looked = match heard {
                Some(Advanced { thread, fence, awaits: Some(awaits) }) => {
                    if !following.is_newer(&thread, fence) {
                        continue;
                    }
                    self.follow_in(&mut following, &thread, fence, awaits.to_vec());
                    Ok(())
                }
                Some(Advanced { thread, fence, awaits: None }) => {
                    let wanted = self.wanted(Some(&thread)).await;
                    wanted.map(|mut wanted| {
                        let events = wanted.remove(&thread).unwrap_or_default();
                        self.follow_in(&mut following, &thread, fence, events);
                    })
                }
                None => self.wanted(None).await.map(|wanted| self.follow_all(&mut following, wanted)),
            };
            if let Err(error) = looked {
                tracing::warn!(error = cause::chain(&error), "Cannot look for actions that wait");
            }
        }
    }

    /// Reads the events that actions wait for, by their threads: of one thread, or of all.
    async fn wanted(&self, of: Option<&ThreadId>) -> Result<HashMap<ThreadId, Vec<AwaitedEvent>>, Error> {
        let filter = ActionFilter { thread: of.cloned(), statuses: vec![Status::Intent], limit: MOST };
        let mut wanted: HashMap<_, Vec<_>> = HashMap::new();
        for record in self.store.actions(&filter).await? {
            if let Some(wait) = record.waits.filter(|wait| wait.end.is_none()) {
                let event = AwaitedEvent { action: record.id, source: wait.source, key: wait.key };
                wanted.entry(record.thread).or_default().push(event);
            }
        }
        Ok(wanted)
    }

    fn source(&self, name: &str) -> Option<&Arc<dyn EventSource>> {
        self.sources.iter().find(|source| source.source() == name)
    }

    /// Follows these events of all threads and no others.
    fn follow_all(&self, following: &mut Following, wanted: HashMap<ThreadId, Vec<AwaitedEvent>>) {
        following.threads.retain(|thread, followed| wanted.contains_key(thread) || followed.end());
        for (thread, events) in wanted {
            let fence = following.threads.get(&thread).map_or(0, |followed| followed.fence);
            self.follow_in(following, &thread, fence, events);
        }
    }

    /// Follows these events of a thread and no others.
    fn follow_in(&self, following: &mut Following, thread: &ThreadId, fence: u64, events: Vec<AwaitedEvent>) {
        let mut known = following.threads.remove(thread).unwrap_or_default();
        let mut followed = Followed { fence, events: Vec::new() };
        for event in events {
            if let Some(at) = known.events.iter().position(|(known, _)| *known == event) {
                followed.events.push(known.events.swap_remove(at));
            } else if let Some(source) = self.source(&event.source) {
                tracing::info!(thread.id = %thread, action.id = %event.action, source = event.source, "Following an event");
                let wanted = Wanted { thread: thread.clone(), event: event.clone() };
                let (store, clock, workers) = (self.store.clone(), self.clock.clone(), self.workers.clone());
                let task = following.tasks.spawn(follow(source.clone(), store, clock, workers, wanted));
                followed.events.push((event, task));
            }
        }
        known.end();
        if !followed.events.is_empty() {
            following.threads.insert(thread.clone(), followed);
        }
    }
}

/// The events that are followed now.
#[derive(Default)]
struct Following {
    threads: HashMap<ThreadId, Followed>,
    tasks: JoinSet<Wanted>,
}

/// The events of one thread that are followed.
#[derive(Default)]
struct Followed {
    /// The fence of the lease that began the last of these waits; 0 if it is not known.
    fence: u64,
    events: Vec<(AwaitedEvent, AbortHandle)>,
}

impl Following {
    /// Returns true unless something later is known of the thread: two workers may tell of it in the wrong order.
    fn is_newer(&self, thread: &ThreadId, fence: u64) -> bool {
        self.threads.get(thread).is_none_or(|followed| followed.fence <= fence)
    }

    /// Forgets an event whose task has ended.
    fn ended(&mut self, wanted: &Wanted) {
        if let Some(followed) = self.threads.get_mut(&wanted.thread) {
            followed.events.retain(|(event, _)| *event != wanted.event);
            if followed.events.is_empty() {
                self.threads.remove(&wanted.thread);
            }
        }
    }
}

impl Followed {
    /// Ends the following. Returns false: nothing is followed any more.
    fn end(&mut self) -> bool {
        self.events.drain(..).for_each(|(_, task)| task.abort());
        false
    }
}

/// Follows one event and stores it.
async fn follow(
    source: Arc<dyn EventSource>,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    workers: Workers,
    wanted: Wanted,
) -> Wanted {
    let AwaitedEvent { action, source: name, key } = &wanted.event;
    let Some(body) = source.follow(key).await else { return wanted };
    let event = match External::new(name.clone(), key.clone(), body) {
        Ok(event) => event,
        Err(error) => {
            tracing::error!(action.id = %action, %error, "An event is too long; its wait ends when its time is over");
            return wanted;
        }
    };
    loop {
        let stored = async {
            let record = store.action(&wanted.thread, action).await?;
            let waits = record.and_then(|record| record.waits);
            if waits.is_some_and(|wait| wait.end.is_none() && wait.key == *key) {
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
