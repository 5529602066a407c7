//! What could not be delivered or handled: kept, found, put back; and who may still send.

use std::time::Duration;

use countersign::{
    graph::store::{
        Changes, Claimed, ClaimedInteraction, DeadLetter, Delivery, Destination, Forget, Handling, Posted, Sent,
        Settlement, ShownCard, Then, TimerChange, Undelivered,
    },
    ids::Slot,
};
use serde_json::json;

use super::fixture::*;

async fn letters(f: &impl Fixture) -> Vec<DeadLetter> {
    f.store().dead_letters(10).await.unwrap()
}

async fn fails(f: &impl Fixture, claimed: &Claimed) {
    let sent = Sent::Failed { reason: "invalid_blocks".to_owned(), at: f.now() };
    assert!(f.finish(claimed, &sent).await);
}

async fn claim_entry(f: &impl Fixture) -> Option<ClaimedInteraction> {
    f.store().claim_interaction(f.ttl(), 1).await.unwrap().pop()
}

async fn puts_in_inbox(f: &impl Fixture) {
    let to = Destination::Inbox { partition: thread(1).partition(), entry: json!({ "click": 1 }), claim: None };
    f.store().ingest(&Delivery { to, dedup: vec![], at: f.now() }, Handling::Later).await.unwrap();
}

pub(crate) async fn a_failed_message_is_kept_and_can_be_sent_again(f: impl Fixture) {
    for slot in ["turn:1", ""] {
        f.says(&thread(1), [reply(slot, "one"), reply("", "two")]).await;
        let first = f.claim_one().await.unwrap();
        fails(&f, &first).await;
        let kept = letters(&f).await;
        let [letter] = kept.as_slice() else { panic!("one is kept: {kept:?}") };
        assert_eq!(
            (letter.thread.as_ref(), letter.reason.as_str(), letter.attempts),
            (Some(&thread(1)), "invalid_blocks", 1)
        );
        assert_eq!(letter.what, Undelivered::Message(Box::new(first.outgoing.clone())));
        let second = f.claim_one().await.unwrap();
        assert_eq!(spoken(&second), "two", "the next one does not wait for it");
        f.finish(&second, &Sent::Delivered(None)).await;

        assert!(f.store().send_again(&letter.id, f.now()).await.unwrap());
        assert!(!f.store().send_again(&letter.id, f.now()).await.unwrap(), "once");
        assert_eq!(letters(&f).await, []);
        let again = f.claim_one().await.unwrap();
        assert_eq!((spoken(&again), again.attempts), ("one".to_owned(), 1), "it is looked for first");
        assert_eq!(again.outgoing.nonce, first.outgoing.nonce);
        f.finish(&again, &Sent::Delivered(None)).await;
    }
    assert!(!f.store().send_again("nonsense", f.now()).await.unwrap());
}

pub(crate) async fn something_newer_takes_the_place_of_a_dead_letter(f: impl Fixture) {
    f.says(&thread(1), [reply("turn:1", "open")]).await;
    let open = f.claim_one().await.unwrap();
    fails(&f, &open).await;
    let letter = letters(&f).await.pop().unwrap();
    f.says(&thread(1), [reply("turn:1", "decided")]).await;
    assert_eq!(letters(&f).await, [], "what is out of date is never sent again");
    assert!(!f.store().send_again(&letter.id, f.now()).await.unwrap());
    assert_eq!(spoken(&f.claim_one().await.unwrap()), "decided");
}

pub(crate) async fn a_failed_message_is_not_kept_if_a_newer_one_waits(f: impl Fixture) {
    f.says(&thread(1), [reply("turn:1", "open")]).await;
    let open = f.claim_one().await.unwrap();
    f.says(&thread(1), [reply("turn:1", "decided")]).await;
    fails(&f, &open).await;
    assert_eq!(letters(&f).await, []);
    assert_eq!(spoken(&f.claim_one().await.unwrap()), "decided");
}

pub(crate) async fn an_entry_that_fails_waits_and_is_kept_in_the_end(f: impl Fixture) {
    puts_in_inbox(&f).await;
    let first = claim_entry(&f).await.unwrap();
    assert_eq!(first.attempts, 0);
    f.store().settle_interaction(&first, Settlement::Retry(Duration::ZERO)).await.unwrap();
    let second = claim_entry(&f).await.unwrap();
    assert_eq!(second.attempts, 1);
    f.store().settle_interaction(&first, Settlement::Retry(Duration::ZERO)).await.unwrap();
    f.store().settle_interaction(&first, Settlement::Fail { reason: "late", at: f.now() }).await.unwrap();
    assert_eq!((claim_entry(&f).await, letters(&f).await), (None, vec![]), "somebody else has it");
    f.store().settle_interaction(&second, Settlement::Retry(Duration::from_secs(3600))).await.unwrap();
    f.run_out().await;
    assert_eq!(claim_entry(&f).await, None, "it waits for its time, not for its claim");

    puts_in_inbox(&f).await;
    let other = claim_entry(&f).await.unwrap();
    f.store().settle_interaction(&other, Settlement::Fail { reason: "it cannot be read", at: f.now() }).await.unwrap();
    let kept = letters(&f).await;
    let [letter] = kept.as_slice() else { panic!("one is kept: {kept:?}") };
    assert_eq!((letter.thread.clone(), letter.reason.as_str()), (None, "it cannot be read"));
    assert_eq!(letter.what, Undelivered::Inbox(json!({ "click": 1 })));
    assert!(f.store().send_again(&letter.id, f.now()).await.unwrap());
    let again = claim_entry(&f).await.unwrap();
    assert_eq!((again.entry, again.attempts), (json!({ "click": 1 }), 0));
}

pub(crate) async fn an_entry_that_arrives_claimed_counts_as_claimed(f: impl Fixture) {
    let claim = Some(("w1".into(), f.ttl()));
    let to = Destination::Inbox { partition: thread(1).partition(), entry: json!("mine"), claim };
    f.store().ingest(&Delivery { to, dedup: vec![], at: f.now() }, Handling::Later).await.unwrap();
    f.run_out().await;
    assert_eq!(claim_entry(&f).await.unwrap().attempts, 1);
    let due = TimerChange::Set { key: "t".to_owned(), due: f.now(), entry: json!("due") };
    f.store().apply(&Changes { timers: vec![due], ..changes(&thread(1)) }).await.unwrap();
    f.store().fire_timers(f.now()).await.unwrap();
    assert_eq!(claim_entry(&f).await.unwrap().attempts, 0, "a timer is nobody's");
}

pub(crate) async fn a_claim_holds_until_it_is_over(f: impl Fixture) {
    f.says(&thread(1), [reply("turn:1", "one")]).await;
    let first = f.claim_one().await.unwrap();
    assert!(f.store().holds_outbox(&first).await.unwrap());
    f.run_out().await;
    assert!(!f.store().holds_outbox(&first).await.unwrap(), "nobody has it, and it is over");
    let second = f.claim_one().await.unwrap();
    assert!(!f.store().holds_outbox(&first).await.unwrap(), "somebody else has it");
    assert!(f.store().holds_outbox(&second).await.unwrap());
    assert!(f.finish(&second, &Sent::Delivered(None)).await);
    assert!(!f.store().holds_outbox(&second).await.unwrap());
}

pub(crate) async fn whoever_lost_a_claim_changes_nothing_but_says_what_arrived(f: impl Fixture) {
    f.says(&thread(1), [reply("turn:1", "one")]).await;
    let first = f.claim_one().await.unwrap();
    f.run_out().await;
    let second = f.claim_one().await.unwrap();
    let failed = Sent::Failed { reason: "late".to_owned(), at: f.now() };
    for sent in [Sent::Retry(f.now()), Sent::Deferred(f.now()), Sent::Dropped, failed] {
        assert!(!f.finish(&first, &sent).await, "{sent:?}");
        assert!(f.store().holds_outbox(&second).await.unwrap(), "{sent:?}");
    }
    let at = Posted::at("C1".into(), "1.1".into());
    assert!(!f.finish(&first, &Sent::Delivered(Some(at.clone()))).await);
    assert_eq!(f.store().posted(&thread(1), &Slot::from("turn:1")).await.unwrap(), Some(at));
    let late = Sent::Delivered(Some(Posted::at("C1".into(), "2.2".into())));
    assert!(!f.finish(&second, &late).await, "it may be there twice");
    assert_eq!(letters(&f).await, []);
}

pub(crate) async fn a_slot_remembers_the_card_that_it_shows(f: impl Fixture) {
    f.says(&thread(1), [reply("turn:1", "one")]).await;
    let card = ShownCard { approval: approval(&thread(1), "a1"), digest: "01234567".to_owned(), since: "1.1".into() };
    let shows = Posted { card: Some(card), ..Posted::at("C1".into(), "1.1".into()) };
    let claimed = f.claim_one().await.unwrap();
    f.finish(&claimed, &Sent::Delivered(Some(shows.clone()))).await;
    assert_eq!(f.store().posted(&thread(1), &Slot::from("turn:1")).await.unwrap(), Some(shows.clone()));
    f.says(&thread(1), [reply("turn:1", "two")]).await;
    let edit = f.claim_one().await.unwrap();
    assert_eq!(edit.posted, Some(shows.clone()));
    let none = Posted { card: None, ..shows };
    f.finish(&edit, &Sent::Delivered(Some(none.clone()))).await;
    assert_eq!(f.store().posted(&thread(1), &Slot::from("turn:1")).await.unwrap(), Some(none));
}

pub(crate) async fn dead_letters_go_with_their_thread_and_with_time(f: impl Fixture) {
    let acquired = f.awake(&thread(1)).await;
    let acks = acquired.messages.iter().map(|message| message.seq).collect();
    let step = Changes { steps: vec![step("one")], acks, ..changes(&thread(1)) };
    f.commit(&acquired.lease, 0, &step, Then::Release).await;
    for (n, slot) in [(1, "turn:1"), (2, "turn:1")] {
        f.says(&thread(n), [reply(slot, "one")]).await;
        let claimed = f.claim_one().await.unwrap();
        fails(&f, &claimed).await;
    }
    let forget = Forget {
        thread: thread(1),
        version: 1,
        before: f.now() + Duration::from_secs(3600),
        checkpoint: None,
        files: false,
        record: vec![],
    };
    assert!(f.store().forget(&forget).await.unwrap());
    let left: Vec<_> = letters(&f).await.into_iter().map(|letter| letter.thread).collect();
    assert_eq!(left, [Some(thread(2))]);
    f.store().sweep(f.now() + (DeadLetter::KEPT_FOR - Duration::from_secs(60))).await.unwrap();
    assert_eq!(letters(&f).await.len(), 1);
    f.store().sweep(f.now() + (DeadLetter::KEPT_FOR + Duration::from_secs(60))).await.unwrap();
    assert_eq!(letters(&f).await, []);
}
