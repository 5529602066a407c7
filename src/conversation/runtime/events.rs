//! Follows what happens elsewhere for the actions that wait for it, and stores each event once.
//!
//! An action that waits holds nothing: its record says what for. This room reads those records after a start, hears from
//! then on of each thread of this process what it waits for ([`Advanced`]), and has the capability follow the event
//! ([`EventSource`]). A thread that waits for nothing costs it nothing, and one that waits costs nothing while nothing
//! happens; only where other processes work with the same store, it reads every [`LOOK`] what they may have left.
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

/// The interval between looks at the waiting actions of all threads where other processes may leave some, and between
/// attempts to follow an event that could not be followed.
const LOOK: Duration = Duration::from_secs(60);
/// The same where there are no other processes: nothing should be found then.
const RARE_LOOK: Duration = Duration::from_secs(3600);
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
        let every = |period| {
            let mut ticks = interval(period);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            ticks
        };
        let mut looks = every(if self.store.is_shared() { LOOK } else { RARE_LOOK });
        let mut attempts = every(LOOK);
        loop {
            let heard = tokio::select! {
                () = stop.cancelled() => return,
                Some(ended) = following.tasks.join_next() => {
                    if let Ok((wanted, found)) = ended {
                        following.ended(&wanted, found);
                    }
                    continue;
                }
                _ = attempts.tick() => {
                    self.follow_again(&mut following);
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
                tracing::warn!(error = cause::chain(&error), "Cannot look for actions that wait; looking again soon");
                looks.reset_after(LOOK);
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

    /// Follows the events again that could not be followed.
    fn follow_again(&self, following: &mut Following) {
        for (thread, followed) in &mut following.threads {
            for (event, task) in followed.events.iter_mut().filter(|(_, task)| task.is_none()) {
                *task = self.begin(&mut following.tasks, thread, event);
            }
        }
    }

    /// Begins to follow an event. `None`: there is no capability here that could.
    fn begin(&self, tasks: &mut Tasks, thread: &ThreadId, event: &AwaitedEvent) -> Option<AbortHandle> {
        let source = self.source(&event.source)?.clone();
        let wanted = Wanted { thread: thread.clone(), event: event.clone() };
        let (store, clock, workers) = (self.store.clone(), self.clock.clone(), self.workers.clone());
        Some(tasks.spawn(follow(source, store, clock, workers, wanted)))
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
            } else if let Some(task) = self.begin(&mut following.tasks, thread, &event) {
                tracing::info!(thread.id = %thread, action.id = %event.action, source = event.source, "Following an event");
                followed.events.push((event, Some(task)));
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
    tasks: Tasks,
}

/// The tasks that follow events. Each returns its event, and false if it could not be followed to its end.
type Tasks = JoinSet<(Wanted, bool)>;

/// The events of one thread that are followed.
#[derive(Default)]
struct Followed {
    /// The fence of the lease that began the last of these waits; 0 if it is not known.
    fence: u64,
    /// With their tasks; `None` for one that could not be followed so far.
    events: Vec<(AwaitedEvent, Option<AbortHandle>)>,
}

impl Following {
    /// Returns true unless something later is known of the thread: two workers may tell of it in the wrong order.
    fn is_newer(&self, thread: &ThreadId, fence: u64) -> bool {
        self.threads.get(thread).is_none_or(|followed| followed.fence <= fence)
    }

    /// Forgets an event that was `found`, or keeps it for another attempt.
    fn ended(&mut self, wanted: &Wanted, found: bool) {
        if let Some(followed) = self.threads.get_mut(&wanted.thread) {
            match followed.events.iter_mut().find(|(event, _)| *event == wanted.event) {
                Some((_, task)) if !found => *task = None,
                _ => followed.events.retain(|(event, _)| *event != wanted.event),
            }
            if followed.events.is_empty() {
                self.threads.remove(&wanted.thread);
            }
        }
    }
}

impl Followed {
    /// Ends the following. Returns false: nothing is followed any more.
    fn end(&mut self) -> bool {
        self.events.drain(..).filter_map(|(_, task)| task).for_each(|task| task.abort());
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
) -> (Wanted, bool) {
    let AwaitedEvent { action, source: name, key } = &wanted.event;
    let Some(body) = source.follow(key).await else { return (wanted, false) };
    let event = match External::new(name.clone(), key.clone(), body) {
        Ok(event) => event,
        Err(error) => {
            tracing::error!(action.id = %action, %error, "An event is too long; its wait ends when its time is over");
            return (wanted, true);
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
            Ok(()) => return (wanted, true),
            Err(error) => {
                tracing::warn!(error = cause::chain(&error), "Cannot store an event; trying again");
                tokio::time::sleep(AGAIN).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use async_trait::async_trait;
    use countersign_core::{
        clock::Timestamp,
        ids::{CommitId, GraphName},
    };
    use countersign_graph::store::{Acquired, Changes, Then};
    use serde_json::Value;
    use tokio::{
        sync::{mpsc, oneshot},
        time::timeout,
    };

    use super::*;
    use crate::runtime::workers::{
        Advance,
        tests::{deliver, open_store, workers},
    };

    const BOUND: Duration = Duration::from_secs(30);

    /// A follower that tells what it begins and what it gives up.
    struct Told(mpsc::UnboundedSender<String>);

    struct GivenUp(mpsc::UnboundedSender<String>, String);

    impl Drop for GivenUp {
        fn drop(&mut self) {
            self.0.send(format!("-{}", self.1)).ok();
        }
    }

    #[async_trait]
    impl EventSource for Told {
        fn source(&self) -> &'static str {
            "cluster"
        }

        async fn follow(&self, key: &str) -> Option<Value> {
            self.0.send(format!("+{key}")).ok();
            let _given_up = GivenUp(self.0.clone(), key.to_owned());
            std::future::pending().await
        }
    }

    /// An engine whose threads wait for these events, one list after the other.
    struct Waits(Mutex<Vec<Vec<&'static str>>>, Arc<dyn Store>);

    #[async_trait]
    impl Advance for Waits {
        fn graph(&self) -> GraphName {
            GraphName::default()
        }

        async fn advance(&self, acquired: Acquired) -> Result<Vec<AwaitedEvent>, Error> {
            let Acquired { lease, saved, .. } = acquired;
            let nothing = Changes::new(CommitId::fresh(), lease.thread.clone());
            self.1.commit(&lease, saved.version, &nothing, Then::Release).await?;
            let keys = self.0.lock().unwrap().remove(0);
            let event = |key: &str| AwaitedEvent {
                action: "a".into(),
                source: if key == "elsewhere" { "nobody" } else { "cluster" }.to_owned(),
                key: key.to_owned(),
            };
            Ok(keys.into_iter().map(event).collect())
        }
    }

    /// The follower reads another store, which is empty: all that it knows of a thread it hears from the workers.
    #[tokio::test]
    async fn what_a_thread_waits_for_is_heard_and_not_read() {
        let (store, clock, _folder) = open_store();
        let (empty, _, _empty_folder) = open_store();
        let turns = vec![vec![], vec!["job-1", "elsewhere"], vec!["job-1", "job-2"], vec!["job-2"], vec![]];
        let count = turns.len();
        let workers = workers(&store, &clock, vec![Arc::new(Waits(Mutex::new(turns), store.clone()))]);
        let (told, mut tells) = mpsc::unbounded_channel();
        let events = Events::new(EventsDeps {
            store: empty,
            clock: Arc::new(clock.clone()),
            workers: workers.clone(),
            sources: vec![Arc::new(Told(told))],
        });
        let (stop, (begun, began)) = (CancellationToken::new(), oneshot::channel());
        let follower = tokio::spawn({
            let stop = stop.clone();
            async move {
                begun.send(()).ok();
                events.run(stop).await;
            }
        });
        began.await.unwrap();
        tokio::task::yield_now().await;
        let mut advanced = workers.advanced();
        for _ in 0..count {
            let thread = deliver(&store, "1.1", "chat", Timestamp(clock.now().0)).await;
            workers.wake(thread);
            timeout(BOUND, advanced.recv()).await.unwrap().unwrap();
        }
        let mut heard = Vec::new();
        for _ in 0..4 {
            heard.push(timeout(BOUND, tells.recv()).await.expect("it is told").unwrap());
        }
        heard.sort();
        assert_eq!(heard, ["+job-1", "+job-2", "-job-1", "-job-2"]);
        stop.cancel();
        timeout(BOUND, follower).await.unwrap().unwrap();
    }
}
