//! Follows outside events for the actions that wait for them, and stores each event once.
//!
//! A waiting action holds no resources: its wait is in its record. This module reads these records at the start. After
//! that the workers report the waits of each thread that they advance ([`Advanced`]), and the capability follows the
//! event ([`EventSource`]). Threads without a wait cost nothing here, and neither do waiting threads until their event
//! happens. Only if other processes use the same store, all records are read again at the interval [`POLL`], to find
//! the waits that those have left.
//!
//! Several processes may follow the same event. That does no harm: an event is stored once, by its key
//! ([`External::dedup`]), and it is not stored if no action waits for it any more.

use std::{collections::HashMap, sync::Arc, time::Duration};

use countersign_capabilities::EventSource;
use countersign_core::{cause, clock::Clock, ids::ThreadId};
use countersign_graph::{
    action::Status,
    engine::AwaitedEvent,
    store::{ActionFilter, ActionKey, Error, External, Handling, Store},
};
use tokio::{
    sync::broadcast::error::RecvError,
    task::{AbortHandle, JoinSet},
    time::{MissedTickBehavior, interval},
};
use tokio_util::sync::CancellationToken;

use super::workers::{Advanced, Workers};

/// The interval at which all waits are read if other processes use the same store, and at which failed followers are
/// started again.
const POLL: Duration = Duration::from_secs(60);
/// The interval at which all waits are read if there are no other processes. Nothing new should be found then.
const RARE_POLL: Duration = Duration::from_secs(3600);
/// The maximum number of actions whose waits are read.
const MAX_ACTIONS: usize = 10_000;
/// The pause before another attempt to store an event.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// The event that an action waits for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Wanted {
    thread: ThreadId,
    event: AwaitedEvent,
}

/// The follower of events that actions wait for, with its dependencies.
pub struct Events {
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
    /// Follows events until the signal to stop.
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
        let mut polls = every(if self.store.is_shared() { POLL } else { RARE_POLL });
        let mut attempts = every(POLL);
        loop {
            let report = tokio::select! {
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
                _ = polls.tick() => None,
                advanced = advanced.recv() => match advanced {
                    Ok(advanced) => Some(advanced),
                    Err(RecvError::Lagged(_)) => None,
                    Err(RecvError::Closed) => return stop.cancelled().await,
                },
            };
            let read = match report {
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
            if let Err(error) = read {
                tracing::warn!(error = cause::chain(&error), "Cannot read the waiting actions; trying again soon");
                polls.reset_after(POLL);
            }
        }
    }

    /// Reads the events that the actions of one thread, or of all threads, wait for.
    async fn wanted(&self, of: Option<&ThreadId>) -> Result<HashMap<ThreadId, Vec<AwaitedEvent>>, Error> {
        let filter = match of {
            Some(thread) => ActionFilter::of(thread, &[Status::Intent], MAX_ACTIONS),
            None => ActionFilter::all(&[Status::Intent], MAX_ACTIONS),
        };
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

    /// Starts the followers of events again that ended without a result.
    fn follow_again(&self, following: &mut Following) {
        for (thread, followed) in &mut following.threads {
            for (event, task) in followed.events.iter_mut().filter(|(_, task)| task.is_none()) {
                *task = self.begin(&mut following.tasks, thread, event);
            }
        }
    }

    /// Starts a task that follows an event; `None` if this process has no source for it.
    fn begin(&self, tasks: &mut Tasks, thread: &ThreadId, event: &AwaitedEvent) -> Option<AbortHandle> {
        let source = self.source(&event.source)?.clone();
        let wanted = Wanted { thread: thread.clone(), event: event.clone() };
        let (store, clock, workers) = (self.store.clone(), self.clock.clone(), self.workers.clone());
        Some(tasks.spawn(follow(source, store, clock, workers, wanted)))
    }

    /// Follows exactly these events, and stops following all others.
    fn follow_all(&self, following: &mut Following, wanted: HashMap<ThreadId, Vec<AwaitedEvent>>) {
        following.threads.retain(|thread, followed| wanted.contains_key(thread) || followed.end());
        for (thread, events) in wanted {
            let fence = following.threads.get(&thread).map_or(0, |followed| followed.fence);
            self.follow_in(following, &thread, fence, events);
        }
    }

    /// Follows exactly these events of a thread, and stops following its others.
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

/// The tasks that follow events. Each returns its event, and false if it has to be followed again.
type Tasks = JoinSet<(Wanted, bool)>;

/// The followed events of one thread.
#[derive(Default)]
struct Followed {
    /// The fence of the lease under which these waits were reported; 0 if it is unknown.
    fence: u64,
    /// The events with their tasks; `None` for an event whose follower ended without a result.
    events: Vec<(AwaitedEvent, Option<AbortHandle>)>,
}

impl Following {
    /// Returns false if a later report about the thread is known: the reports of two workers may arrive in the wrong
    /// order.
    fn is_newer(&self, thread: &ThreadId, fence: u64) -> bool {
        self.threads.get(thread).is_none_or(|followed| followed.fence <= fence)
    }

    /// Removes an event that was `found`, or keeps it for another attempt.
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
    /// Aborts the followers of this thread. Always returns false, so that it can be used in `retain`.
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
    let Some(body) = source.follow(key, !store.is_shared()).await else { return (wanted, false) };
    let event = match External::new(name.clone(), key.clone(), body) {
        Ok(event) => event,
        Err(error) => {
            tracing::error!(action.id = %action, %error, "An event is too long to store; its wait ends at the deadline");
            return (wanted, true);
        }
    };
    loop {
        let stored = async {
            let record = store.action(ActionKey::Of(&wanted.thread, action)).await?;
            let waits = record.and_then(|record| record.waits);
            if waits.is_some_and(|wait| wait.end.is_none() && wait.key == *key) {
                store.ingest(&event.clone().deliver_to(wanted.thread.clone(), clock.now()), Handling::Later).await?;
                workers.wake(wanted.thread.clone());
            }
            Ok::<_, Error>(())
        };
        match stored.await {
            Ok(()) => return (wanted, true),
            Err(error) => {
                tracing::warn!(error = cause::chain(&error), "Cannot store an event; trying again");
                tokio::time::sleep(RETRY_PAUSE).await;
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

    /// A source that reports the start and the end of each follower, as `+key` and `-key`.
    struct ReportingSource(mpsc::UnboundedSender<String>);

    /// Reports the end when it is dropped.
    struct ReportsEnd(mpsc::UnboundedSender<String>, String);

    impl Drop for ReportsEnd {
        fn drop(&mut self) {
            self.0.send(format!("-{}", self.1)).ok();
        }
    }

    #[async_trait]
    impl EventSource for ReportingSource {
        fn source(&self) -> &'static str {
            "cluster"
        }

        async fn follow(&self, key: &str, _: bool) -> Option<Value> {
            self.0.send(format!("+{key}")).ok();
            let _reports_end = ReportsEnd(self.0.clone(), key.to_owned());
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
            self.1.commit(&lease, saved.version, &nothing, Then::Release, None).await?;
            let keys = self.0.lock().unwrap().remove(0);
            let event = |key: &str| AwaitedEvent {
                action: "a".into(),
                source: if key == "elsewhere" { "nobody" } else { "cluster" }.to_owned(),
                key: key.to_owned(),
            };
            Ok(keys.into_iter().map(event).collect())
        }
    }

    /// The follower reads another, empty store, so it can learn about waits only from the workers.
    #[tokio::test]
    async fn what_a_thread_waits_for_is_heard_and_not_read() {
        let (store, clock, _folder) = open_store();
        let (empty, _, _empty_folder) = open_store();
        let turns = vec![vec![], vec!["job-1", "elsewhere"], vec!["job-1", "job-2"], vec!["job-2"], vec![]];
        let count = turns.len();
        let workers = workers(&store, &clock, vec![Arc::new(Waits(Mutex::new(turns), store.clone()))]);
        let (sender, mut reports) = mpsc::unbounded_channel();
        let events = Events {
            store: empty,
            clock: Arc::new(clock.clone()),
            workers: workers.clone(),
            sources: vec![Arc::new(ReportingSource(sender))],
        };
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
        let mut seen = Vec::new();
        for _ in 0..4 {
            seen.push(timeout(BOUND, reports.recv()).await.expect("there is a report").unwrap());
        }
        seen.sort();
        assert_eq!(seen, ["+job-1", "+job-2", "-job-1", "-job-2"]);
        stop.cancel();
        timeout(BOUND, follower).await.unwrap().unwrap();
    }
}
