//! Records that somebody without the key has written: nothing of them is sent, wherever they stand.

use super::*;

#[tokio::test]
async fn what_was_altered_after_it_was_sent_is_not_sent_again() {
    let bench = Bench::new();
    bench.hears("x").await;
    bench.change.answers.lock().unwrap().push_back(no_answer());
    bench.decides(Verdict::Approved, |_| ()).await;
    let sent = bench.action().await;
    assert_eq!(sent.status, Status::Intent);
    let mut altered = sent.moved(Status::Intent).unwrap();
    altered.parameters["also"] = json!("something else");
    let mut changes = Changes::new(CommitId::fresh(), thread());
    changes.actions.push(ActionChange { expected: Some(sent.revision), record: altered });
    bench.raw.apply(&changes).await.unwrap();
    bench.clock.advance(Duration::from_secs(6));
    assert!(bench.advances().await);
    let action = bench.action().await;
    assert_eq!((action.status, bench.sent()), (Status::Unknown, 1), "it is neither sent again nor looked up");
    let told = action.outcome.unwrap().summary().words();
    assert!(told.starts_with("The stored request differs from what the card shows"), "{told}");
}

#[tokio::test]
async fn an_approval_without_a_decision_sends_nothing() {
    let bench = Bench::new();
    bench.hears("x").await;
    let mut changes = decided(&bench.action().await, Verdict::Approved, bench.clock.now(), |_| ());
    changes.actions[0].record.decisions.clear();
    bench.raw.apply(&changes).await.unwrap();
    bench.advances().await;
    assert_eq!((bench.action().await.status, bench.sent()), (Status::Failed, 0));
}

#[tokio::test]
async fn what_was_altered_stays_altered_whoever_writes_it_next() {
    let bench = Bench::new();
    bench.hears("x").await;
    let record = bench.action().await;
    let mut altered = record.moved(Status::Pending).unwrap();
    altered.requested_by = "cy".into();
    let mut changes = Changes::new(CommitId::fresh(), thread());
    changes.actions.push(ActionChange { expected: Some(record.revision), record: altered });
    bench.raw.apply(&changes).await.unwrap();
    // The bot itself moves it on: a reminder, a person who is told, an approval that counts.
    bench.decides(Verdict::Approved, |_| ()).await;
    assert_eq!((bench.action().await.status, bench.sent()), (Status::Failed, 0));
}

#[tokio::test]
async fn a_register_that_somebody_else_wrote_counts_as_empty() {
    let bench = Bench::new();
    let keys = Arc::new(Keyring::new(vec![vec![7; 32]]).unwrap());
    let scope = Sealing { registers: &["grants"], register_families: &[] };
    let sealed = SealedStore::new(bench.raw.clone(), keys, scope);
    assert!(sealed.set_register("grants", 0, &json!(["one"])).await.unwrap());
    assert_eq!(sealed.register("grants").await.unwrap().value, json!(["one"]));
    let mut forged = bench.raw.register("grants").await.unwrap().value;
    forged["value"] = json!(["one", "more"]);
    assert!(bench.raw.set_register("grants", 1, &forged).await.unwrap());
    assert_eq!(sealed.register("grants").await.unwrap().value, Value::Null);
    assert!(bench.raw.set_register("grants", 2, &json!(["bare"])).await.unwrap());
    assert_eq!(sealed.register("grants").await.unwrap().value, Value::Null);
    assert!(bench.raw.set_register("others", 0, &json!("bare")).await.unwrap());
    assert_eq!(sealed.register("others").await.unwrap().value, json!("bare"), "only what is named is sealed");
}
