//! An action waits for an event from elsewhere: nothing is held meanwhile, and nothing is lost, whenever the process ends.

use std::sync::atomic::{AtomicUsize, Ordering};

use countersign::{
    conversation::runtime::interaction::Interaction,
    graph::{
        action::{ActionInfo, Awaited, Batch, Batches, Progress, Reader, WaitEnd},
        engine::AwaitedEvent,
        store::{Error, External, Handling, Holder},
    },
};

use super::*;

/// How long it waits.
const WITHIN: Duration = Duration::from_secs(600);

/// A job that runs elsewhere.
#[derive(Default)]
struct Job {
    /// How often it was started: there it is known.
    started: Mutex<u32>,
    /// What a look at it shows.
    result: Mutex<Option<Value>>,
    /// How the batches were called.
    calls: Mutex<Vec<(bool, Option<WaitEnd>)>>,
    /// How many looks at it are in vain.
    away: Mutex<u32>,
    /// How often it was given up.
    given_up: Mutex<u32>,
}

#[async_trait]
impl ActionKind for Job {
    fn info(&self) -> ActionInfo {
        ActionInfo::new("change", "Runs a job.")
    }

    fn schema(&self) -> Value {
        json!({ "type": "object" })
    }

    async fn prepare(&self, _: &Value, _: Option<&Reader>) -> Result<Proposal, PrepareError> {
        unreachable!("the node proposes by itself")
    }

    async fn preconditions(&self, _: &ActionRecord) -> Result<Value, Outcome> {
        Ok(json!("as it was"))
    }

    async fn perform(&self, _: &ActionRecord) -> Performed {
        unreachable!("it is made in batches")
    }

    fn recovery(&self) -> Recovery {
        Recovery::Ask
    }

    async fn probe(&self, _: &ActionRecord) -> Probed {
        unreachable!("it is made in batches")
    }

    fn batches(&self) -> Option<&dyn Batches> {
        Some(self)
    }
}

#[async_trait]
impl Batches for Job {
    async fn next(&self, record: &ActionRecord, interrupted: bool) -> Batch {
        let end = record.waits.as_ref().and_then(|wait| wait.end.clone());
        self.calls.lock().unwrap().push((interrupted, end.clone()));
        if let Some(WaitEnd::Arrived(result)) = end {
            return Batch::Ended(ended(result));
        }
        let less = self.away.lock().unwrap().checked_sub(1);
        if let Some(less) = less {
            *self.away.lock().unwrap() = less;
            return Batch::NotNow;
        }
        let mut started = self.started.lock().unwrap();
        if *started > 0 {
            assert!(interrupted, "who was not interrupted begins");
            if let Some(result) = self.result.lock().unwrap().clone() {
                return Batch::Ended(ended(result));
            }
            if end == Some(WaitEnd::Overdue) {
                return Batch::Ended(Outcome::Unknown { summary: "The job did not end in time.".into() });
            }
        } else {
            *started += 1;
        }
        let progress = Progress { data: json!({ "job": 1 }), done: 1, total: 2, note: Text::new() };
        let awaited = Awaited { source: "cluster".to_owned(), key: "job-1 ended".to_owned(), within: WITHIN };
        Batch::Waits(progress, awaited)
    }

    fn in_flight(&self) -> Duration {
        Duration::from_secs(5)
    }

    fn longest(&self) -> Duration {
        Duration::from_secs(3600)
    }

    async fn give_up(&self, record: &ActionRecord) -> Option<Progress> {
        *self.given_up.lock().unwrap() += 1;
        Some(Progress { data: json!({ "job": "given up" }), ..record.progress.clone()? })
    }

    fn stopped(&self, record: &ActionRecord, by: Option<&UserId>) -> Outcome {
        let job = record.progress.as_ref().map(|progress| progress.data["job"].clone());
        ended(json!({ "stopped by": by, "job": job }))
    }
}

fn ended(result: Value) -> Outcome {
    Outcome::Done { result, summary: Text::from("Done.") }
}

impl Bench {
    fn running(job: &Arc<Job>) -> Self {
        Self::carrying_out(job.clone(), Arc::default(), Duration::ZERO)
    }

    /// Asks for the job, and approves it: it waits.
    async fn waiting(job: &Arc<Job>) -> Self {
        let bench = Self::running(job);
        bench.hears("x").await;
        bench.decides(Verdict::Approved, |_| ()).await;
        let action = bench.action().await;
        assert_eq!(action.status, Status::Intent);
        let wait = action.waits.expect("it waits");
        assert_eq!((wait.key.as_str(), wait.end), ("job-1 ended", None));
        bench
    }

    async fn ends_there(&self) {
        let event = External::new("cluster", "job-1 ended", json!({ "rows": 3 })).unwrap();
        self.store.ingest(&event.deliver_to(thread(), self.clock.now()), Handling::Later).await.unwrap();
    }

    /// What the inbox does with timers that are due.
    async fn time_is_over(&self) -> usize {
        self.store.fire_timers(self.clock.now()).await.unwrap();
        let claimed = self.store.claim_interaction(Duration::from_secs(9), 9).await.unwrap();
        for interaction in &claimed {
            let Interaction::Overdue { thread, action, until } =
                serde_json::from_value(interaction.entry.clone()).unwrap()
            else {
                panic!("{interaction:?}");
            };
            let mut changes = Changes::new(CommitId::fresh(), thread);
            changes.messages.push(ThreadMessage::Overdue { action, until });
            changes.inbox_acks.push(interaction.seq);
            self.store.apply(&changes).await.unwrap();
        }
        claimed.len()
    }

    async fn result(&self) -> Value {
        match self.action().await.outcome {
            Some(Outcome::Done { result, .. }) => result,
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_wait_holds_nothing_and_ends_with_its_event() {
    let job = Arc::default();
    let bench = Bench::waiting(&job).await;
    assert!(!bench.advances().await, "nothing is to be done");
    bench.hears("hello").await;
    assert_eq!(bench.saved().await["state"]["heard"], json!(["x", "hello"]), "the thread goes on meanwhile");
    assert_eq!(bench.action().await.status, Status::Intent);

    for _ in 0..2 {
        bench.ends_there().await;
    }
    assert!(bench.advances().await);
    assert!(!bench.advances().await, "the event counts once");
    assert_eq!((bench.action().await.status, bench.result().await), (Status::Done, json!({ "rows": 3 })));
    let arrived = WaitEnd::Arrived(json!({ "rows": 3 }));
    assert_eq!(*job.calls.lock().unwrap(), [(false, None), (false, Some(arrived))]);
    assert_eq!(bench.saved().await["state"]["ended"], json!(["done"]));
    use AuditKind::{Arrived, Asked, Executed, Outcome, Shown, Waits};
    let record = bench.audited().await;
    assert!(record.starts_with(&[Asked, Shown, Executed, Waits]), "{record:?}");
    assert!(record.ends_with(&[Arrived, Outcome]), "{record:?}");
    bench.clock.advance(WITHIN * 2);
    assert_eq!(bench.time_is_over().await, 0, "nobody waits any more");
}

#[tokio::test]
async fn the_engine_tells_what_a_thread_waits_for() {
    let job = Arc::default();
    let bench = Bench::waiting(&job).await;
    let event = External::new("cluster", "job-2 ended", json!({})).unwrap();
    bench.store.ingest(&event.deliver_to(thread(), bench.clock.now()), Handling::Later).await.unwrap();
    let awaits = bench.engine.advance(bench.acquire().await.expect("something happened")).await.unwrap();
    let awaited =
        AwaitedEvent { action: bench.action().await.id, source: "cluster".to_owned(), key: "job-1 ended".to_owned() };
    assert_eq!(awaits, [awaited], "that was another job");
    bench.ends_there().await;
    let awaits = bench.engine.advance(bench.acquire().await.expect("the job ended")).await.unwrap();
    assert_eq!(awaits, []);
}

#[tokio::test]
async fn an_event_that_comes_before_the_wait_is_saved_is_not_lost() {
    let job = Arc::default();
    let bench = Bench::running(&job);
    bench.hears("x").await;
    let event = External::new("cluster", "job-1 ended", json!({ "rows": 3 })).unwrap();
    let delivery = event.deliver_to(thread(), bench.clock.now());
    let waits = |changes: &Changes| changes.actions.iter().any(|change| change.record.waits.is_some());
    bench
        .store
        .before_commit(waits, move |store| async move { store.ingest(&delivery, Handling::Later).await.map(drop) });
    bench.decides(Verdict::Approved, |_| ()).await;
    assert!(bench.store.is_spent());
    while bench.advances().await {}
    assert_eq!(bench.result().await, json!({ "rows": 3 }));
}

#[tokio::test]
async fn a_wait_that_nobody_answers_ends_with_a_look() {
    for (found, status) in [(None, Status::Unknown), (Some(json!({ "rows": 3 })), Status::Done)] {
        let job: Arc<Job> = Arc::default();
        let bench = Bench::waiting(&job).await;
        *job.result.lock().unwrap() = found;
        bench.clock.advance(WITHIN - Duration::from_secs(1));
        assert_eq!(bench.time_is_over().await, 0);
        bench.clock.advance(Duration::from_secs(1));
        assert_eq!(bench.time_is_over().await, 1);
        while bench.advances().await {}
        assert_eq!(bench.action().await.status, status);
        assert_eq!(*job.calls.lock().unwrap(), [(false, None), (true, Some(WaitEnd::Overdue))]);
        bench.ends_there().await;
        while bench.advances().await {}
        assert_eq!(bench.action().await.status, status, "what comes later changes nothing");
        assert_eq!(*job.started.lock().unwrap(), 1);
    }
}

#[tokio::test]
async fn the_end_of_an_earlier_wait_does_not_end_this_one() {
    let job = Arc::default();
    let bench = Bench::waiting(&job).await;
    let mut changes = Changes::new(CommitId::fresh(), thread());
    changes.messages.push(ThreadMessage::Overdue { action: bench.action().await.id, until: Timestamp(1) });
    bench.store.apply(&changes).await.unwrap();
    while bench.advances().await {}
    assert_eq!(bench.action().await.waits.unwrap().end, None);
    assert_eq!(job.calls.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_forged_event_ends_no_wait() {
    let job = Arc::default();
    let bench = Bench::waiting(&job).await;
    let event = || External::new("cluster", "job-1 ended", json!({ "rows": 3 })).unwrap();
    bench.raw.ingest(&event().deliver_to(thread(), bench.clock.now()), Handling::Later).await.unwrap();
    let elsewhere = ThreadId { root: "9.9".into(), ..thread() };
    bench.store.ingest(&event().deliver_to(elsewhere.clone(), bench.clock.now()), Handling::Later).await.unwrap();
    let worker = WorkerId::new("w");
    let moved = bench
        .raw
        .acquire(&Holder::new(worker.clone(), Duration::from_secs(30), bench.clock.now()), Some(&elsewhere))
        .await
        .unwrap();
    let mut copied = Changes::new(CommitId::fresh(), thread());
    copied.messages = moved.unwrap().messages.into_iter().map(|message| message.message).collect();
    bench.raw.apply(&copied).await.unwrap();
    while bench.advances().await {}
    assert_eq!(bench.action().await.status, Status::Intent, "who writes into the store has no key");
    assert_eq!(job.calls.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_wait_can_be_stopped() {
    let job = Arc::default();
    let bench = Bench::waiting(&job).await;
    let mut changes = Changes::new(CommitId::fresh(), thread());
    changes.messages.push(ThreadMessage::Stop { by: "bo".into(), asks: true });
    bench.store.apply(&changes).await.unwrap();
    while bench.advances().await {}
    let action = bench.action().await;
    assert_eq!((action.status, action.cut_short), (Status::Done, true));
    assert_eq!(bench.result().await, json!({ "stopped by": "bo", "job": "given up" }));
    assert_eq!(*job.calls.lock().unwrap(), [(false, None), (true, None)], "it is looked up how things stand");
    bench.hears("hello").await;
    assert_eq!(bench.saved().await["state"]["heard"], json!(["x", "hello"]));
}

#[tokio::test]
async fn a_stop_is_heard_when_it_can_be_found_out_how_things_stand() {
    let job: Arc<Job> = Arc::default();
    let bench = Bench::waiting(&job).await;
    *job.away.lock().unwrap() = 1;
    let mut changes = Changes::new(CommitId::fresh(), thread());
    changes.messages.push(ThreadMessage::Stop { by: "bo".into(), asks: true });
    bench.store.apply(&changes).await.unwrap();
    while bench.advances().await {}
    assert_eq!((bench.action().await.status, *job.given_up.lock().unwrap()), (Status::Intent, 0));
    bench.clock.advance(Duration::from_secs(6));
    while bench.advances().await {}
    assert_eq!(bench.result().await, json!({ "stopped by": "bo", "job": "given up" }));
    assert_eq!(*job.given_up.lock().unwrap(), 1);
    bench.hears("hello").await;
    assert_eq!(bench.saved().await["state"]["heard"], json!(["x", "hello"]), "the stop is not heard again");
}

#[tokio::test]
async fn a_late_decision_does_not_end_a_wait() {
    let job = Arc::default();
    let bench = Bench::waiting(&job).await;
    let record = bench.action().await;
    let decision = record.decisions[0].clone();
    let mut changes = Changes::new(CommitId::fresh(), thread());
    changes.messages.push(ThreadMessage::Decided { action: record.id, approval: record.approval, decision });
    bench.store.apply(&changes).await.unwrap();
    while bench.advances().await {}
    bench.ends_there().await;
    while bench.advances().await {}
    assert_eq!(bench.result().await, json!({ "rows": 3 }));
}

/// How a whole run goes with the process ending right before its `n`th write; whether there was one.
async fn ends_before_write(n: usize, early: bool, overdue: bool) -> bool {
    let job: Arc<Job> = Arc::default();
    let bench = Bench::running(&job);
    let writes = Arc::new(AtomicUsize::new(0));
    bench.store.before_commit(
        move |_| writes.fetch_add(1, Ordering::SeqCst) + 1 == n,
        |_| async { Err(Error::Fenced(thread())) },
    );
    let lives = async || {
        for _ in 0..20 {
            let worker = WorkerId::new("w");
            let ready = bench
                .store
                .acquire(&Holder::new(worker.clone(), Duration::from_secs(30), bench.clock.now()), None)
                .await
                .unwrap();
            match ready {
                Some(acquired) => drop(bench.engine.advance(acquired).await),
                None => bench.clock.advance(Duration::from_secs(8)), // leases end, and waits before a look
            }
        }
    };
    let message = ThreadMessage::Said {
        by: "ana".into(),
        text: "x".to_owned(),
        ts: "1.1".into(),
        addressed: true,
        request: None,
    };
    let to = Destination::mailbox(thread(), true, message);
    bench.store.ingest(&Delivery { to, dedup: Vec::new(), at: bench.clock.now() }, Handling::Later).await.unwrap();
    lives().await;
    let changes = decided(&bench.action().await, Verdict::Approved, bench.clock.now(), |_| ());
    bench.store.apply(&changes).await.unwrap();
    if early {
        bench.ends_there().await;
    }
    lives().await;
    if overdue {
        bench.clock.advance(WITHIN);
        assert_eq!(bench.time_is_over().await, 1, "{n}");
        *job.result.lock().unwrap() = Some(json!({ "rows": 3 }));
    } else {
        bench.ends_there().await;
    }
    lives().await;
    assert_eq!((bench.action().await.status, bench.result().await), (Status::Done, json!({ "rows": 3 })), "{n}");
    assert_eq!(*job.started.lock().unwrap(), 1, "{n}: it is started once");
    assert_eq!(bench.saved().await["state"]["ended"], json!(["done"]), "{n}: and told once");
    let outcomes = bench.audited().await.into_iter().filter(|kind| *kind == AuditKind::Outcome);
    assert_eq!(outcomes.count(), 1, "{n}");
    bench.store.is_spent()
}

#[tokio::test]
async fn whenever_the_process_ends_the_job_is_started_once_and_its_end_is_told() {
    for (early, overdue) in [(false, false), (true, false), (false, true)] {
        let mut n = 1;
        while ends_before_write(n, early, overdue).await {
            n += 1;
        }
        assert!(n > 6, "there are several writes: {n}");
    }
}
