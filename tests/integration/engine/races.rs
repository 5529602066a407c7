//! Somebody is faster than the engine: a write that is refused, or never made, leaves everything as it was.

use countersign::graph::store::{ActionKey, Error, Handling, Holder};

use super::*;

impl Bench {
    /// A change whose outcome is not known.
    async fn with_an_unknown_outcome() -> Self {
        let bench = Self::new();
        bench.hears("x").await;
        bench.change.answers.lock().unwrap().push_back(no_answer());
        bench.change.probes.lock().unwrap().push_back(Probed::CannotTell { evidence: "It is down.".into() });
        bench.decides(Verdict::Approved, |_| ()).await;
        bench.clock.advance(Duration::from_secs(6));
        bench.advances().await;
        assert_eq!(bench.action().await.status, Status::Unknown);
        bench
    }

    /// Somebody follows up on the newest action.
    async fn follows_up(&self, follow_up: ActionFollowUp) {
        let message = ThreadMessage::FollowUp { action: self.action().await.id, by: "bo".into(), follow_up };
        let mut changes = Changes::new(CommitId::fresh(), thread());
        changes.messages.push(message);
        self.store.apply(&changes).await.unwrap();
        self.advances().await;
    }

    /// Whether what is stored can be read and the thread still answers, and what it knows.
    async fn goes_on(&self) -> Value {
        for text in ["hello", "hello"] {
            self.hears(text).await;
        }
        let saved = self.saved().await;
        let heard = saved["state"]["heard"].as_array().unwrap();
        assert_eq!(heard.first().unwrap(), "x", "it did not begin anew: {heard:?}");
        saved
    }
}

/// Cy settles the outcome: it did not happen.
fn settled(record: &ActionRecord) -> Changes {
    let mut settled = record.moved(Status::Failed).unwrap();
    settled.decisions.push(Decision { by: Some("cy".into()), at: Timestamp(9), verdict: Verdict::Cancelled });
    let mut changes = Changes::new(CommitId::fresh(), thread());
    changes.actions.push(ActionChange { expected: Some(record.revision), record: settled });
    changes
}

#[tokio::test]
async fn a_follow_up_that_comes_second_leaves_the_thread_readable() {
    for follow_up in [ActionFollowUp::SaidDone, ActionFollowUp::CheckAgain] {
        let bench = Bench::with_an_unknown_outcome().await;
        let record = bench.action().await;
        bench.change.probes.lock().unwrap().push_back(Probed::DidNotHappen);
        let moves = |changes: &Changes| !changes.actions.is_empty();
        bench.store.before_commit(moves, move |store| async move { store.apply(&settled(&record)).await });
        bench.follows_up(follow_up).await;
        assert!(bench.store.is_spent(), "{follow_up:?}: there was a race");
        let saved = bench.goes_on().await;
        let told = if follow_up == ActionFollowUp::SaidDone { json!(["CameLate failed"]) } else { json!([]) };
        assert_eq!(saved["state"]["follow_up"], told, "{follow_up:?}: only what was told is remembered");
    }
}

#[tokio::test]
async fn a_card_that_was_never_stored_takes_no_place() {
    let bench = Bench::new();
    bench.hears("x").await;
    let older = bench.action().await;
    let refused = Arc::new(Mutex::new(None));
    let seen = refused.clone();
    let asks = move |changes: &Changes| {
        let new = changes.actions.iter().find(|change| change.expected.is_none());
        if let Some(change) = new {
            seen.lock().unwrap().get_or_insert(change.record.run.clone());
        }
        new.is_some()
    };
    // The process dies, or stands still for longer than its lease, right before the step is written.
    bench.store.before_commit(asks, |_| async { Err(Error::Fenced(thread())) });
    let message = ThreadMessage::Said {
        by: "ana".into(),
        text: "instead y".to_owned(),
        ts: "1.2".into(),
        addressed: true,
        request: None,
    };
    let to = Destination::mailbox(thread(), true, message);
    bench.store.ingest(&Delivery { to, dedup: Vec::new(), at: bench.clock.now() }, Handling::Later).await.unwrap();
    let worker = WorkerId::new("w");
    let now = bench.clock.now();
    let acquired =
        bench.store.acquire(&Holder::new(worker.clone(), Duration::from_secs(30), now), None).await.unwrap().unwrap();
    bench.engine.advance(acquired).await.unwrap_err();
    let now = bench.store.action(ActionKey::Of(&thread(), &older.id)).await.unwrap().unwrap();
    assert_eq!((now.status, now.replaced_by), (Status::Pending, None), "nothing took its place");

    bench.clock.advance(Duration::from_secs(31));
    assert!(bench.advances().await, "another worker takes over");
    let (older, newer) =
        (bench.store.action(ActionKey::Of(&thread(), &older.id)).await.unwrap().unwrap(), bench.action().await);
    assert_eq!((older.status, newer.status), (Status::Superseded, Status::Pending));
    assert_eq!(older.replaced_by.unwrap().action, newer.id);
    let refused = refused.lock().unwrap().take();
    assert_eq!(Some(newer.run), refused, "it is the same run, which finds what it has spent of a standing approval");
}

#[tokio::test]
async fn a_card_that_is_approved_while_another_takes_its_place_runs_and_neither_is_lost() {
    let bench = Bench::new();
    bench.hears("x").await;
    let older = bench.action().await;
    bench.clock.advance(Duration::from_secs(1));
    let asks = |changes: &Changes| changes.actions.iter().any(|change| change.expected.is_none());
    let (at, first) = (bench.clock.now(), older.clone());
    bench.store.before_commit(asks, move |store| async move {
        store.apply(&decided(&first, Verdict::Approved, at, |_| ())).await
    });
    bench.hears("instead y").await;
    while bench.advances().await {}
    let older = bench.store.action(ActionKey::Of(&thread(), &older.id)).await.unwrap().unwrap();
    assert_eq!((older.status, older.replaced_by), (Status::Done, None), "who was first counts");
    let newer = bench.action().await;
    assert_eq!(newer.status, Status::Pending);
    assert!(newer.card.notes.is_empty(), "it takes nothing's place: {:?}", newer.card.notes);
    bench.decides(Verdict::Approved, |_| ()).await;
    assert_eq!(*bench.change.sent.lock().unwrap(), ["\"x\"", "\"instead y\""]);
}

#[tokio::test]
async fn one_of_two_approvals_does_not_keep_a_card_from_giving_way() {
    let bench = Bench::new();
    bench.hears("x").await;
    let older = bench.action().await;
    bench.clock.advance(Duration::from_secs(1));
    let asks = |changes: &Changes| changes.actions.iter().any(|change| change.expected.is_none());
    let first = older.clone();
    bench.store.before_commit(asks, move |store| async move {
        let mut changes = Changes::new(CommitId::fresh(), thread());
        let record = first.moved(Status::Pending).unwrap();
        changes.actions.push(ActionChange { expected: Some(first.revision), record });
        store.apply(&changes).await
    });
    bench.hears("instead y").await;
    let older = bench.store.action(ActionKey::Of(&thread(), &older.id)).await.unwrap().unwrap();
    let newer = bench.action().await;
    assert_eq!((older.status, newer.status), (Status::Superseded, Status::Pending));
    assert_eq!(newer.card.notes.len(), 1, "it says so once: {:?}", newer.card.notes);
    let steps = bench.store.steps(&thread(), 0, 10).await.unwrap();
    assert_eq!(steps.len(), 2, "one step for each message");
}
