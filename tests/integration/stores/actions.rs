//! An action moves one way, by one hand at a time.

use std::{sync::Arc, time::Duration};

use countersign::{
    clock::Timestamp,
    graph::{
        action::{ActionRecord, Approver, Decision, Label, Parts, Status, Undo, Verdict},
        store::{ActionChange, ActionFilter, ActionKey, Changes, Error, Register, Store, Then, TimerChange},
    },
};
use serde_json::json;

use super::fixture::*;

/// Stores a pending action.
async fn pending(f: &impl Fixture, n: u32, name: &str) -> ActionRecord {
    let record = action(&thread(n), name, f.now());
    f.store().apply(&Changes { actions: vec![created(&record)], ..changes(&thread(n)) }).await.unwrap();
    record
}

/// A write that moves `change` and leaves a trace in everything else.
fn decision(change: ActionChange) -> Changes {
    let thread = change.record.thread.clone();
    Changes {
        actions: vec![change],
        messages: vec![said("decided")],
        outbox: vec![reply("", "decided")],
        timers: vec![TimerChange::Set { key: "reminder".to_owned(), due: Timestamp(1), entry: json!("remind") }],
        audit: vec![event("decided")],
        ..changes(&thread)
    }
}

/// What the refused write would have left behind.
async fn assert_untouched(f: &impl Fixture, n: u32) {
    assert!(f.acquire_only("w9", &thread(n)).await.is_none(), "no message");
    assert_eq!(f.claim(10).await, [], "no message");
    assert_eq!(f.store().fire_timers(f.now()).await.unwrap(), 0, "no timer");
    assert_eq!(f.store().audit(&thread(n)).await.unwrap().entries, [], "no record");
}

pub(crate) async fn an_action_is_found_by_each_of_its_names(f: impl Fixture) {
    let (one, other) = (pending(&f, 1, "a1").await, pending(&f, 2, "a2").await);
    let store = f.store();
    assert_eq!(store.action(ActionKey::Of(&thread(1), &"a1".into())).await.unwrap(), Some(one.clone()));
    assert_eq!(store.action(ActionKey::Of(&thread(2), &"a2".into())).await.unwrap(), Some(other));
    assert_eq!(store.action(ActionKey::Of(&thread(2), &"a1".into())).await.unwrap(), None, "it is another thread's");
    assert_eq!(store.action(ActionKey::Of(&thread(3), &"a1".into())).await.unwrap(), None);
    assert_eq!(store.action(ActionKey::ByApproval(&one.approval)).await.unwrap(), Some(one));
    assert_eq!(store.action(ActionKey::ByApproval(&approval(&thread(1), "nobody's"))).await.unwrap(), None);
}

pub(crate) async fn an_action_moves_one_way(f: impl Fixture) {
    let mut record = pending(&f, 1, "a1").await;
    for to in [Status::Pending, Status::Approved, Status::Intent, Status::Unknown, Status::Done] {
        let change = moved(&record, to);
        record = change.record.clone();
        f.store().apply(&Changes { actions: vec![change], ..changes(&thread(1)) }).await.unwrap();
        assert_eq!(f.store().action(ActionKey::Of(&thread(1), &"a1".into())).await.unwrap(), Some(record.clone()));
        assert_eq!(f.store().action(ActionKey::ByApproval(&record.approval)).await.unwrap(), Some(record.clone()));
    }
}

pub(crate) async fn every_part_of_an_action_may_change(f: impl Fixture) {
    let first = pending(&f, 1, "a1").await;
    let write = async |f: &dyn Store, record: &ActionRecord, expected: u64| {
        let change = ActionChange { expected: Some(expected), record: record.clone() };
        f.apply(&Changes { actions: vec![change], ..changes(&thread(1)) }).await
    };
    let stored = async |f: &dyn Store| f.action(ActionKey::Of(&thread(1), &"a1".into())).await.unwrap().unwrap();
    let undo = Undo { name: "stop".to_owned(), parameters: json!({}), label: "Undo".to_owned() };

    let mut second = moved(&first, Status::Pending).record;
    second.card.title.push('!');
    second.parameters = json!({ "users": 7 }).into();
    second.undo = Some(undo.into());
    let refused = write(&**f.store(), &second, first.revision + 1).await;
    assert!(matches!(refused, Err(Error::ActionMoved { .. })), "{refused:?}");
    assert_eq!(stored(&**f.store()).await, first);
    write(&**f.store(), &second, first.revision).await.unwrap();
    assert_eq!(stored(&**f.store()).await, second);

    let outdated = moved(&first, Status::Approved).record;
    let refused = write(&**f.store(), &outdated, first.revision).await;
    assert!(matches!(refused, Err(Error::ActionMoved { .. })), "{refused:?}");
    let parts_of_first = second.moved(Status::Pending).unwrap().with_parts(Parts::of(&first));
    write(&**f.store(), &parts_of_first, second.revision).await.unwrap();
    assert_eq!(stored(&**f.store()).await, parts_of_first, "those of two revisions ago");

    let approved = moved(&parts_of_first, Status::Approved).record;
    write(&**f.store(), &approved, parts_of_first.revision).await.unwrap();
    let f = f.reopen().await;
    assert_eq!(stored(&**f.store()).await, approved);
    let intent = moved(&approved, Status::Intent).record;
    write(&**f.store(), &intent, approved.revision).await.unwrap();
    let mut last = moved(&intent, Status::Intent).record;
    last.policy.needed += 1;
    last.preconditions = json!([1]).into();
    write(&**f.store(), &last, intent.revision).await.unwrap();
    assert_eq!(stored(&**f.store()).await, last);
    assert_eq!(f.store().action(ActionKey::ByApproval(&last.approval)).await.unwrap(), Some(last.clone()));
    let all = ActionFilter::all(&[Status::Intent], 10);
    assert_eq!(f.store().actions(&all).await.unwrap(), [last]);
}

pub(crate) async fn a_wrong_revision_writes_nothing(f: impl Fixture) {
    let record = pending(&f, 1, "a1").await;
    for expected in [0, record.revision + 1] {
        let change = ActionChange { expected: Some(expected), ..moved(&record, Status::Approved) };
        let refused = f.store().apply(&decision(change)).await;
        let Err(Error::ActionMoved { id, current }) = refused else { panic!("{refused:?}") };
        assert_eq!((id, current), (record.id.clone(), Some(Box::new(record.clone()))));
    }
    assert_untouched(&f, 1).await;
}

pub(crate) async fn an_illegal_move_writes_nothing(f: impl Fixture) {
    let record = pending(&f, 1, "a1").await;
    for status in [Status::Proposed, Status::Intent, Status::Done, Status::Failed, Status::Unknown] {
        let record = ActionRecord { status, revision: record.revision + 1, ..record.clone() };
        let change = ActionChange { expected: Some(record.revision - 1), record };
        let refused = f.store().apply(&decision(change)).await;
        let Err(Error::ActionMoved { current, .. }) = refused else { panic!("{status}: {refused:?}") };
        assert_eq!(current.unwrap().status, Status::Pending);
    }
    assert_untouched(&f, 1).await;
}

pub(crate) async fn an_action_is_created_once(f: impl Fixture) {
    let record = pending(&f, 1, "a1").await;
    let again = ActionRecord { status: Status::Approved, ..record.clone() };
    let refused = f.store().apply(&decision(created(&again))).await;
    let Err(Error::ActionMoved { current, .. }) = refused else { panic!("{refused:?}") };
    assert_eq!(current, Some(Box::new(record)));
    assert_untouched(&f, 1).await;
}

pub(crate) async fn an_action_that_does_not_exist_cannot_move(f: impl Fixture) {
    let record = action(&thread(1), "a1", f.now());
    let refused = f.store().apply(&decision(moved(&record, Status::Approved))).await;
    let Err(Error::ActionMoved { id, current }) = refused else { panic!("{refused:?}") };
    assert_eq!((id, current), (record.id, None));
    assert_untouched(&f, 1).await;
}

pub(crate) async fn one_bad_action_stops_the_whole_commit(f: impl Fixture) {
    let acquired = f.awake(&thread(1)).await;
    let decided = pending(&f, 1, "a1").await;
    let changed = Changes {
        steps: vec![step("one")],
        acks: vec![acquired.messages[0].seq],
        actions: vec![
            created(&action(&thread(1), "a2", f.now())),
            ActionChange { expected: Some(9), ..moved(&decided, Status::Cancelled) },
        ],
        outbox: vec![reply("", "done")],
        audit: vec![event("asked")],
        ..changes(&thread(1))
    };
    let refused = f.store().commit(&acquired.lease, 0, &changed, Then::Release, None).await;
    assert!(matches!(refused, Err(Error::ActionMoved { id, .. }) if id == decided.id));
    assert_eq!(f.store().action(ActionKey::Of(&thread(1), &"a2".into())).await.unwrap(), None);
    assert_eq!(f.store().load(&thread(1)).await.unwrap().unwrap().version, 0);
    assert_eq!(
        f.store().messages(&acquired.lease.thread, 0, Some(&acquired.lease)).await.unwrap(),
        acquired.messages,
        "the lease is still held"
    );
    assert_eq!(f.claim(10).await, []);
    assert_eq!(f.store().audit(&thread(1)).await.unwrap().entries, []);
}

pub(crate) async fn of_two_who_decide_one_wins(f: impl Fixture) {
    for round in 0..200 {
        let record = pending(&f, 1, &format!("a{round}")).await;
        let gate = Arc::new(tokio::sync::Barrier::new(2));
        let decide = |to: Status| {
            let (store, gate, change) = (Arc::clone(f.store()), Arc::clone(&gate), moved(&record, to));
            tokio::spawn(async move {
                gate.wait().await;
                store.apply(&Changes { audit: vec![event(to.as_str())], ..changes_of(change) }).await
            })
        };
        let (yes, no) = (decide(Status::Approved), decide(Status::Rejected));
        let (yes, no) = (yes.await.unwrap(), no.await.unwrap());
        let (winner, loser) = match (yes, no) {
            (Ok(()), Err(error)) => (Status::Approved, error),
            (Err(error), Ok(())) => (Status::Rejected, error),
            both => panic!("round {round}: {both:?}"),
        };
        let Error::ActionMoved { current: Some(current), .. } = loser else { panic!("round {round}: {loser:?}") };
        assert_eq!(current.status, winner, "the loser is told who won");
        assert_eq!(f.store().action(ActionKey::Of(&thread(1), &record.id)).await.unwrap().unwrap().status, winner);
        let audit = f.store().audit(&thread(1)).await.unwrap().entries;
        assert_eq!(audit.len(), round + 1);
        assert_eq!(audit.last().unwrap().event, event(winner.as_str()));
    }
}

fn changes_of(change: ActionChange) -> Changes {
    Changes { actions: vec![change.clone()], ..changes(&change.record.thread) }
}

pub(crate) async fn actions_are_listed_newest_first(f: impl Fixture) {
    let mut records = Vec::new();
    for n in 0..6_u32 {
        let asked = f.now() + Duration::from_secs(u64::from(n));
        let record = action(&thread(n % 2), &format!("a{n}"), asked);
        f.store().apply(&changes_of(created(&record))).await.unwrap();
        records.push(record);
    }
    for n in [0, 3] {
        f.store().apply(&changes_of(moved(&records[n], Status::Approved))).await.unwrap();
    }
    let list = |thread, statuses: &[Status], limit| {
        let filter = match thread {
            Some(thread) => ActionFilter::of(&thread, statuses, limit),
            None => ActionFilter::all(statuses, limit),
        };
        let store = Arc::clone(f.store());
        async move {
            let found = store.actions(&filter).await.unwrap();
            found.into_iter().map(|record| record.id.to_string()).collect::<Vec<_>>()
        }
    };
    assert_eq!(list(None, &[], 10).await, ["a5", "a4", "a3", "a2", "a1", "a0"]);
    assert_eq!(list(None, &[], 2).await, ["a5", "a4"]);
    assert_eq!(list(Some(thread(0)), &[], 10).await, ["a4", "a2", "a0"]);
    assert_eq!(list(Some(thread(7)), &[], 10).await, [""; 0]);
    assert_eq!(list(None, &[Status::Pending], 3).await, ["a5", "a4", "a2"]);
    assert_eq!(list(None, &[Status::Approved], 10).await, ["a3", "a0"]);
    assert_eq!(list(None, &[Status::Approved, Status::Pending], 4).await, ["a5", "a4", "a3", "a2"]);
    assert_eq!(list(Some(thread(1)), &[Status::Approved, Status::Done], 10).await, ["a3"]);
}

/// Six actions of two people in two channels; bo and the group S1 are named by two of them each.
pub(crate) async fn labelled(f: &impl Fixture) -> Vec<ActionRecord> {
    let mut records = Vec::new();
    for n in 0..6_u32 {
        let mut place = thread(n);
        place.channel = if n % 2 == 0 { "C1" } else { "C2" }.into();
        let mut record = action(&place, &format!("a{n}"), f.now() + Duration::from_secs(u64::from(n)));
        record.requested_by = if n < 4 { "ana" } else { "bo" }.into();
        record.policy.approvers = match n {
            0 | 1 => vec![Approver::User("bo".into()), Approver::Channel],
            2 | 3 => vec![Approver::Group("S1".to_owned())],
            _ => vec![Approver::Requester],
        };
        f.store().apply(&changes_of(created(&record))).await.unwrap();
        records.push(record);
    }
    records
}

/// The names of what is found, newest first.
pub(crate) async fn found_under(f: &impl Fixture, labels: &[Label], statuses: &[Status], limit: usize) -> Vec<String> {
    let found = f.store().actions(&ActionFilter::under(labels, statuses, limit)).await.unwrap();
    found.into_iter().map(|record| record.id.to_string()).collect()
}

pub(crate) async fn an_action_is_found_under_its_labels(f: impl Fixture) {
    let records = labelled(&f).await;
    let (ana, bo) = (Label::AskedBy("ana".into()), Label::AskedBy("bo".into()));
    let (named, group) = (Label::Names("bo".into()), Label::NamesGroup("S1".to_owned()));
    let c2 = Label::Within("T1".into(), "C2".into());
    let one = std::slice::from_ref;
    assert_eq!(found_under(&f, one(&ana), &[], 10).await, ["a3", "a2", "a1", "a0"]);
    assert_eq!(found_under(&f, one(&ana), &[], 2).await, ["a3", "a2"]);
    assert_eq!(found_under(&f, one(&bo), &[Status::Pending], 10).await, ["a5", "a4"]);
    assert_eq!(found_under(&f, one(&c2), &[], 10).await, ["a5", "a3", "a1"]);
    assert_eq!(found_under(&f, one(&Label::Within("T1".into(), "C".into())), &[], 10).await, [""; 0], "no prefix");
    assert_eq!(
        found_under(&f, &[named.clone(), group.clone()], &[Status::Pending], 10).await,
        ["a3", "a2", "a1", "a0"]
    );
    assert_eq!(found_under(&f, &[c2.clone(), ana.clone()], &[], 10).await, ["a5", "a3", "a2", "a1", "a0"], "each once");
    assert_eq!(found_under(&f, &[], &[], 10).await, [""; 0]);
    assert!(f.store().set_register("numbers", 0, &json!([1, 2])).await.unwrap());
    let asked = ActionFilter::under(one(&ana), &[], 2);
    let (found, register) = f.store().actions_and_register(&asked, Some("numbers")).await.unwrap();
    assert_eq!(found.iter().map(|record| record.id.as_str()).collect::<Vec<_>>(), ["a3", "a2"]);
    assert_eq!(register, Some(Register { revision: 1, value: json!([1, 2]) }));
    for none in [ActionFilter::under(&[], &[], 2), ActionFilter::of(&thread(9), &[], 2), ActionFilter::all(&[], 0)] {
        let (found, register) = f.store().actions_and_register(&none, Some("nothing")).await.unwrap();
        assert_eq!((found.len(), register), (0, Some(Register::default())), "{none:?}");
    }

    let mut decided = moved(&records[1], Status::Rejected);
    let by = Some("cy".into());
    decided.record.decisions.push(Decision { by, at: f.now(), verdict: Verdict::Rejected { reason: None } });
    f.store().apply(&changes_of(decided)).await.unwrap();
    let cy = Label::DecidedBy("cy".into());
    assert_eq!(found_under(&f, one(&cy), &[Status::Rejected, Status::Done], 10).await, ["a1"]);
    assert_eq!(found_under(&f, one(&named), &[Status::Pending], 10).await, ["a0"], "it moved on");
    assert_eq!(found_under(&f, one(&named), &[], 10).await, ["a1", "a0"]);

    let mut renamed = moved(&records[0], Status::Pending);
    renamed.record.policy.approvers = vec![Approver::Group("S1".to_owned())];
    f.store().apply(&changes_of(renamed)).await.unwrap();
    assert_eq!(found_under(&f, one(&named), &[Status::Pending], 10).await, [""; 0], "no longer named");
    assert_eq!(found_under(&f, one(&group), &[Status::Pending], 10).await, ["a3", "a2", "a0"]);
}
