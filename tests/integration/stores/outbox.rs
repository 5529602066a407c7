//! What is said: in order, once, and not before what matters more.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use countersign::{
    clock::Timestamp,
    graph::{
        action::{ActionRecord, Status},
        keyring::Keyring,
        store::{
            Changes, Claimed, Error, Holder, Outbound, Outgoing, Posted, Sent, ShownCard, Store as _, TRIED_OFTEN,
            Then, Waiting,
        },
    },
    ids::Slot,
    reply::{CardState, Reply},
    store::sealed::{SealScope, SealedStore},
};
use serde_json::json;

use super::fixture::*;

fn posted(ts: &str) -> Posted {
    Posted::at("C1".into(), ts.into())
}

/// Reports a message as sent, posted where its slot is if it has one.
async fn delivered(f: &impl Fixture, claimed: &Claimed, at: Option<&str>) {
    f.finish(claimed, &Sent::Delivered(at.map(posted))).await;
}

/// Sends all that can be sent and returns it.
async fn drained(f: &impl Fixture) -> Vec<String> {
    let mut said = Vec::new();
    while let Some(claimed) = f.claim_one().await {
        said.push(spoken(&claimed));
        let at = claimed.outgoing.slot.as_ref().map(|slot| format!("ts of {slot}"));
        delivered(f, &claimed, at.as_deref()).await;
    }
    said
}

async fn at(f: &impl Fixture, slot: &str) -> Option<Posted> {
    f.store().posted(&thread(1), &Slot::from(slot)).await.unwrap()
}

pub(crate) async fn what_is_said_keeps_its_order(f: impl Fixture) {
    f.says(&thread(1), [reply("", "one"), reply("turn:1", "two")]).await;
    f.says(&thread(1), [reply("", "three")]).await;
    assert_eq!(drained(&f).await, ["one", "two", "three"]);
    assert_eq!(drained(&f).await, [""; 0]);
}

pub(crate) async fn one_message_of_a_thread_is_in_flight(f: impl Fixture) {
    f.says(&thread(1), [reply("", "one"), reply("", "two"), progress("turn:1", "working")]).await;
    let first = f.claim_one().await.unwrap();
    assert_eq!(spoken(&first), "one");
    assert_eq!(first.attempts, 0);
    assert_eq!(f.claim(10).await, []);
    f.says(&thread(1), [reply("", "three")]).await;
    assert_eq!(f.claim(10).await, []);
    delivered(&f, &first, None).await;
    assert_eq!(spoken(&f.claim_one().await.unwrap()), "two");
}

/// Saves a step of a thread that says this, and claims messages with it.
async fn said_by_a_step(f: &impl Fixture, outbox: Vec<Outgoing>, most: usize) -> Vec<Claimed> {
    f.hears(&thread(1), &format!("{outbox:?}")).await;
    let acquired = f.acquire_only("w1", &thread(1)).await.unwrap();
    let acks = acquired.messages.iter().map(|message| message.seq).collect();
    let changes = Changes { acks, steps: vec![step("said")], outbox, ..changes(&thread(1)) };
    let (lease, version) = (&acquired.lease, acquired.saved.version);
    let written = f.store().commit(lease, version, &changes, Then::Release, Some((&f.holder("sender"), most))).await;
    let (after, claimed) = written.unwrap();
    assert_eq!(after, version + 1);
    claimed
}

pub(crate) async fn what_a_step_says_is_claimed_with_it(f: impl Fixture) {
    let said = vec![reply("", "one"), reply("", "two"), progress("turn:1", "working"), reply("", "three")];
    let claimed = said_by_a_step(&f, said, 3).await;
    let words: Vec<_> = claimed.iter().map(spoken).collect();
    assert!(words == ["one"] || words == ["one", "two"], "what comes after progress waits: {words:?}");
    assert!(claimed.iter().all(|claim| claim.attempts == 0));
    assert_eq!(f.claim(10).await, [], "one sender at a time");
    for claim in &claimed {
        assert!(f.store().holds_outbox(claim).await.unwrap());
    }
    let sent: Vec<_> = claimed.into_iter().map(|claim| (claim, Sent::Delivered(None))).collect();
    let (ours, next) = f.store().finish_outbox(&sent, Some(&f.holder("sender"))).await.unwrap();
    assert!(ours.iter().all(|is_ours| *is_ours) && ours.len() == sent.len());
    let next = next.unwrap();
    assert_eq!(spoken(&next), ["two", "three"][words.len() - 1]);
    delivered(&f, &next, None).await;
    assert!(drained(&f).await.ends_with(&["… working".to_owned()]));
}

/// Writes a card through a store that seals, and claims the message that shows it. Returns the place that it gets, too.
async fn card_that_is_posted(f: &impl Fixture, name: &str) -> (SealedStore, ActionRecord, Claimed, Posted) {
    let keys = Arc::new(Keyring::new(vec![vec![7; 32]]).unwrap());
    let store = SealedStore::new(f.store().clone(), keys, SealScope { registers: &[], register_families: &[] });
    let record = action(&thread(1), name, f.now());
    let outbox = vec![reply(&format!("card:{name}"), "the card")];
    store.apply(&Changes { actions: vec![created(&record)], outbox, ..changes(&thread(1)) }).await.unwrap();
    let shown = ShownCard { approval: record.approval.clone(), digest: "01234567".to_owned(), since: "1.1".into() };
    let posted = Posted { card: Some(shown), ..posted("1.1") };
    (store, record, f.claim_one().await.unwrap(), posted)
}

pub(crate) async fn a_card_is_known_as_soon_as_it_is_posted(f: impl Fixture) {
    let (store, record, claimed, posted) = card_that_is_posted(&f, "a1").await;
    let cards = store.cards();
    let known = async || cards.get(&record.approval).await.map(|card| (card.record.id, card.posted));
    let expected = Some((record.id.clone(), posted.clone()));
    // Looked for first: the place becomes known while this waits, before it is stored.
    let posting = async { cards.on_posted(&posted) };
    let (at_once, ()) = tokio::join!(known(), posting);
    assert_eq!(at_once, expected);
    let sent = [(claimed, Sent::Delivered(Some(posted.clone())))];
    let (ours, _) = store.finish_outbox(&sent, Some(&f.holder("sender"))).await.unwrap();
    assert_eq!(ours, [true]);
    assert_eq!(known().await, expected);

    let unseen = action(&thread(2), "a2", f.now());
    store.apply(&Changes { actions: vec![created(&unseen)], ..changes(&thread(2)) }).await.unwrap();
    assert_eq!(cards.get(&unseen.approval).await, None, "nobody sees it yet");
    let approves = Changes { actions: vec![moved(&record, Status::Approved)], ..changes(&thread(1)) };
    f.store().apply(&approves).await.unwrap();
    assert_eq!(known().await, expected, "it is outdated: another process has decided");
    let refused =
        store.apply(&Changes { actions: vec![moved(&record, Status::Approved)], ..changes(&thread(1)) }).await;
    assert!(matches!(refused, Err(Error::ActionMoved { .. })), "{refused:?}");
}

pub(crate) async fn a_card_is_forgotten_if_the_claim_was_lost(f: impl Fixture) {
    let (store, record, claimed, posted) = card_that_is_posted(&f, "a1").await;
    store.cards().on_posted(&posted);
    let lost = Claimed { attempts: claimed.attempts + 1, ..claimed };
    let sent = [(lost, Sent::Delivered(Some(posted.clone())))];
    assert_eq!(store.finish_outbox(&sent, None).await.unwrap().0, [false]);
    assert_eq!(store.cards().get(&record.approval).await, None);
    store.cards().on_posted(&posted);
    assert_eq!(store.cards().get(&record.approval).await, None, "a place alone is not a card");
}

pub(crate) async fn a_claim_that_is_given_back_was_not_tried(f: impl Fixture) {
    let claimed = said_by_a_step(&f, vec![reply("", "one"), reply("", "two")], 2).await;
    let results = [Sent::Retry(f.now()), Sent::Deferred(f.now())];
    let sent: Vec<_> = claimed.into_iter().zip(results).collect();
    let (_, again) = f.store().finish_outbox(&sent, Some(&f.holder("sender"))).await.unwrap();
    let again = again.unwrap();
    assert_eq!((spoken(&again).as_str(), again.attempts), ("one", 1));
    delivered(&f, &again, None).await;
    let two = f.claim_one().await.unwrap();
    assert_eq!((spoken(&two).as_str(), two.attempts), ("two", 0));
}

pub(crate) async fn what_was_claimed_together_may_arrive_one_by_one(f: impl Fixture) {
    let claimed = said_by_a_step(&f, vec![reply("", "one"), reply("", "two"), reply("", "three")], 2).await;
    for claim in &claimed {
        assert_eq!(f.claim(10).await, [], "there is one in flight");
        delivered(&f, claim, None).await;
        assert!(!f.store().holds_outbox(claim).await.unwrap());
    }
    assert_eq!(drained(&f).await, ["two", "three"][claimed.len() - 1..]);

    let claimed = said_by_a_step(&f, vec![reply("", "four"), reply("", "five")], 2).await;
    f.run_out().await;
    for claim in &claimed {
        assert!(!f.store().holds_outbox(claim).await.unwrap());
    }
    let again = f.claim_one().await.unwrap();
    assert_eq!((spoken(&again).as_str(), again.attempts), ("four", 1), "it may have arrived");
}

pub(crate) async fn threads_speak_side_by_side(f: impl Fixture) {
    for n in 0..5 {
        f.says(&thread(n), [reply("", "one"), reply("", "two")]).await;
    }
    let first = f.claim(3).await;
    let rest = f.claim(10).await;
    assert_eq!((first.len(), rest.len()), (3, 2));
    let threads: BTreeSet<_> = first.iter().chain(&rest).map(|claimed| claimed.thread.clone()).collect();
    assert_eq!(threads.len(), 5, "each thread once");
    assert!(first.iter().chain(&rest).all(|claimed| spoken(claimed) == "one"));
}

pub(crate) async fn only_the_named_thread_is_claimed(f: impl Fixture) {
    f.says(&thread(1), [reply("", "one")]).await;
    f.says(&thread(2), [reply("", "two")]).await;
    let only =
        async |n| f.store().claim_outbox(&Holder::new(sender(), f.ttl(), f.now()), 10, Some(&thread(n))).await.unwrap();
    assert_eq!(only(3).await, []);
    assert_eq!(only(2).await.iter().map(spoken).collect::<Vec<_>>(), ["two"]);
    assert_eq!(only(2).await, []);
    assert_eq!(spoken(&f.claim_one().await.unwrap()), "one");
}

pub(crate) async fn a_message_waits_for_its_time(f: impl Fixture) {
    let later = f.now() + Duration::from_secs(3600);
    f.says(&thread(1), [Outgoing { not_before: later, ..reply("", "one") }, reply("", "two")]).await;
    assert_eq!(f.claim(10).await, [], "the second does not overtake the first");
    let claimed = f.store().claim_outbox(&Holder::new(sender(), f.ttl(), later), 10, None).await.unwrap();
    assert_eq!(claimed.iter().map(spoken).collect::<Vec<_>>(), ["one"]);
}

pub(crate) async fn a_slot_remembers_where_it_was_posted(f: impl Fixture) {
    f.says(&thread(1), [reply("turn:1", "draft")]).await;
    let first = f.claim_one().await.unwrap();
    assert_eq!((first.posted.clone(), at(&f, "turn:1").await), (None, None));
    delivered(&f, &first, Some("1.1")).await;
    assert_eq!(at(&f, "turn:1").await, Some(posted("1.1")));
    assert_eq!(at(&f, "turn:2").await, None);
    assert_eq!(f.store().posted(&thread(2), &"turn:1".into()).await.unwrap(), None);

    f.says(&thread(1), [reply("turn:1", "final")]).await;
    let second = f.claim_one().await.unwrap();
    assert_eq!(second.posted, Some(posted("1.1")), "an edit");
    delivered(&f, &second, None).await;
    assert_eq!(at(&f, "turn:1").await, Some(posted("1.1")), "an edit leaves it where it is");
}

pub(crate) async fn a_retry_waits_and_counts(f: impl Fixture) {
    f.says(&thread(1), [reply("", "one"), reply("", "two")]).await;
    let first = f.claim_one().await.unwrap();
    let later = f.now() + Duration::from_secs(3600);
    f.finish(&first, &Sent::Retry(later)).await;
    assert_eq!(f.claim(10).await, [], "it keeps its place");
    let again = f.store().claim_outbox(&Holder::new(sender(), f.ttl(), later), 10, None).await.unwrap();
    assert_eq!(
        again,
        [Claimed { attempts: 1, outgoing: Outgoing { not_before: later, ..first.outgoing.clone() }, ..first }]
    );
}

/// Tries the next message without success until it counts as tried often; it is tried again at `later`.
async fn tried_often(f: &impl Fixture, later: Timestamp) -> Claimed {
    let first = f.claim_one().await.unwrap();
    let mut claimed = first.clone();
    for _ in 1..TRIED_OFTEN {
        f.finish(&claimed, &Sent::Retry(f.now())).await;
        claimed = f.claim_one().await.unwrap();
        assert_eq!(claimed.outgoing.nonce, first.outgoing.nonce, "nothing goes before it so far");
    }
    assert_eq!(claimed.attempts, TRIED_OFTEN - 1);
    f.finish(&claimed, &Sent::Retry(later)).await;
    claimed
}

pub(crate) async fn what_was_tried_often_holds_up_its_own_slot_only(f: impl Fixture) {
    let later = f.now() + Duration::from_secs(60);
    f.says(&thread(1), [reply("card:a1", "Start?"), reply("", "two")]).await;
    let card = tried_often(&f, later).await;
    f.says(&thread(1), [progress("turn:1", "working"), reply("card:a1", "started"), reply("turn:2", "three")]).await;
    assert_eq!(drained(&f).await, ["two", "three"], "and nothing of its slot");
    f.says(&thread(1), [progress("turn:1", "working")]).await;
    assert_eq!(drained(&f).await, ["… working"], "nothing else is waited for");
    f.says(&thread(1), [reply("", "four")]).await;

    let at = async |now| f.store().claim_outbox(&Holder::new(sender(), f.ttl(), now), 10, None).await;
    let four = at(later).await.unwrap().pop().unwrap();
    assert_eq!(spoken(&four), "four", "what goes in order goes first");
    assert_eq!(at(later).await.unwrap(), [], "one is in flight");
    delivered(&f, &four, None).await;
    let again = at(later).await.unwrap().pop().unwrap();
    assert_eq!((spoken(&again), again.attempts), ("Start?".to_owned(), TRIED_OFTEN));
    assert_eq!(again.outgoing.nonce, card.outgoing.nonce);
    delivered(&f, &again, Some("1.1")).await;
    let after = f.claim_one().await.unwrap();
    assert_eq!((spoken(&after), after.posted), ("started".to_owned(), Some(posted("1.1"))));
}

pub(crate) async fn of_those_tried_often_the_one_that_waits_longest_goes(f: impl Fixture) {
    let (now, minute) = (f.now(), Duration::from_secs(60));
    f.says(&thread(1), [reply("", "one"), reply("", "two"), reply("", "three")]).await;
    tried_often(&f, now + minute * 2).await;
    tried_often(&f, now + minute).await;
    let three = f.claim_one().await.unwrap();
    assert_eq!(spoken(&three), "three");
    delivered(&f, &three, None).await;
    assert_eq!(f.claim(10).await, []);
    for (minutes, expected) in [(1, vec!["two"]), (2, vec!["one"])] {
        let claimed =
            f.store().claim_outbox(&Holder::new(sender(), f.ttl(), now + minute * minutes), 10, None).await.unwrap();
        assert_eq!(claimed.iter().map(spoken).collect::<Vec<_>>(), expected);
        delivered(&f, &claimed[0], None).await;
    }
}

pub(crate) async fn what_was_postponed_counts_as_tried_often(f: impl Fixture) {
    let later = f.now() + Duration::from_secs(300);
    f.says(&thread(1), [reply("card:a1", "Start?"), reply("", "two")]).await;
    let card = f.claim_one().await.unwrap();
    assert!(f.finish(&card, &Sent::Postponed(later)).await);
    f.says(&thread(1), [reply("card:a1", "started")]).await;
    assert_eq!(drained(&f).await, ["two"]);
    let again = f.store().claim_outbox(&Holder::new(sender(), f.ttl(), later), 10, None).await.unwrap();
    assert_eq!((spoken(&again[0]), again[0].attempts), ("Start?".to_owned(), TRIED_OFTEN));
    f.finish(&again[0], &Sent::Postponed(later)).await;
    let again = f.store().claim_outbox(&Holder::new(sender(), f.ttl(), later), 10, None).await.unwrap();
    assert_eq!(again[0].attempts, TRIED_OFTEN + 1, "it is never counted down");
}

pub(crate) async fn what_waits_is_found_with_the_time_it_was_to_be_sent(f: impl Fixture) {
    let (now, minute) = (f.now(), Duration::from_secs(60));
    let found = async |before| f.store().waiting(before, 10).await.unwrap();
    assert_eq!(found(now + minute).await, []);
    let planned = |words: &str, at| Outgoing { not_before: at, ..reply("", words) };
    f.says(&thread(1), [Outgoing { not_before: now, ..reply("card:a1", "Start?") }]).await;
    f.says(&thread(2), [planned("two", now + minute * 5), progress("turn:1", "working")]).await;
    let card = f.claim_one().await.unwrap();
    let waiting = |attempts| Waiting { thread: thread(1), slot: Some("card:a1".into()), since: now, attempts };
    assert_eq!(found(now).await, []);
    assert_eq!(found(now + minute).await, [waiting(1)], "also while it is on its way");
    f.finish(&card, &Sent::Retry(now + minute * 30)).await;
    assert_eq!(found(now + minute).await, [waiting(1)], "since then, not until then");
    let both = found(now + minute * 6).await;
    assert_eq!(both.iter().map(|message| message.since).collect::<Vec<_>>(), [now, now + minute * 5]);
    assert_eq!(f.store().waiting(now + minute * 6, 1).await.unwrap(), [waiting(1)]);
    let again =
        f.store().claim_outbox(&Holder::new(sender(), f.ttl(), now + minute * 30), 1, Some(&thread(1))).await.unwrap();
    delivered(&f, &again[0], Some("1.1")).await;
    assert_eq!(found(now + minute).await, []);
}

pub(crate) async fn what_was_deferred_was_not_tried(f: impl Fixture) {
    f.says(&thread(1), [progress("turn:1", "working")]).await;
    let first = f.claim_one().await.unwrap();
    let later = f.now() + Duration::from_secs(3);
    f.finish(&first, &Sent::Deferred(later)).await;
    assert_eq!(f.claim(10).await, [], "it is not time yet");
    let again = f.store().claim_outbox(&Holder::new(sender(), f.ttl(), later), 10, None).await.unwrap();
    assert_eq!(again[0].attempts, 0, "{again:?}");
    f.finish(&first, &Sent::Deferred(later)).await;
    f.says(&thread(1), [reply("turn:1", "final")]).await;
    assert_eq!(drained(&f).await, ["final"], "progress gives way");
}

pub(crate) async fn what_was_put_back_and_what_came_after_it_become_one(f: impl Fixture) {
    f.says(&thread(1), [reply("turn:1", "one")]).await;
    let first = f.claim_one().await.unwrap();
    f.says(&thread(1), [reply("turn:1", "two")]).await;
    f.finish(&first, &Sent::Deferred(f.now())).await;
    f.says(&thread(1), [reply("turn:1", "three")]).await;
    assert_eq!(drained(&f).await, ["three"], "the newest is what is left to see, and it is said once");
}

pub(crate) async fn progress_that_was_put_back_gives_way_to_what_came_after_it(f: impl Fixture) {
    f.says(&thread(1), [progress("turn:1", "working")]).await;
    let first = f.claim_one().await.unwrap();
    f.says(&thread(1), [reply("turn:1", "final")]).await;
    f.finish(&first, &Sent::Deferred(f.now())).await;
    assert_eq!(drained(&f).await, ["final"], "it is not put over the answer");

    f.says(&thread(1), [progress("turn:2", "working")]).await;
    f.claim_one().await.unwrap();
    f.run_out().await;
    let again = f.claim_one().await.unwrap();
    f.says(&thread(1), [reply("turn:2", "final")]).await;
    f.finish(&again, &Sent::Deferred(f.now())).await;
    assert_eq!(drained(&f).await, ["… working", "final"], "the first attempt may have arrived");
}

pub(crate) async fn a_dropped_message_is_gone(f: impl Fixture) {
    f.says(&thread(1), [reply("turn:1", "one"), reply("", "two")]).await;
    let first = f.claim_one().await.unwrap();
    f.finish(&first, &Sent::Dropped).await;
    assert_eq!(at(&f, "turn:1").await, None);
    assert_eq!(drained(&f).await, ["two"]);
}

pub(crate) async fn a_void_claim_counts_as_an_attempt(f: impl Fixture) {
    f.says(&thread(1), [reply("turn:1", "one")]).await;
    let first = f.claim_one().await.unwrap();
    for attempts in 1..4 {
        f.run_out().await;
        let again = f.claim_one().await.expect("the claim is void");
        assert_eq!(again, Claimed { attempts, ..first.clone() });
    }
}

pub(crate) async fn a_late_report_does_not_disturb_the_next_claim(f: impl Fixture) {
    f.says(&thread(1), [progress("turn:1", "working")]).await;
    let late = f.claim_one().await.unwrap();
    f.run_out().await;
    f.says(&thread(1), [reply("", "urgent")]).await;
    let urgent = f.claim_one().await.unwrap();
    assert_eq!(spoken(&urgent), "urgent");
    delivered(&f, &late, Some("1.1")).await;
    assert_eq!(at(&f, "turn:1").await, Some(posted("1.1")));
    assert_eq!(f.claim(10).await, [], "the urgent one is still in flight");
    delivered(&f, &late, Some("9.9")).await;
    assert_eq!(at(&f, "turn:1").await, Some(posted("1.1")), "a second report says nothing new");
    delivered(&f, &urgent, None).await;
    assert_eq!(drained(&f).await, [""; 0]);
}

pub(crate) async fn an_untried_message_takes_the_newer_words(f: impl Fixture) {
    let first = reply("turn:1", "draft");
    f.says(&thread(1), [reply("", "before"), first.clone(), reply("", "after")]).await;
    f.says(&thread(1), [reply("turn:1", "final")]).await;
    let before = f.claim_one().await.unwrap();
    delivered(&f, &before, None).await;
    let merged = f.claim_one().await.unwrap();
    assert_eq!(spoken(&merged), "final");
    assert_eq!(merged.outgoing.nonce, first.nonce, "its place and its nonce are kept");
    delivered(&f, &merged, Some("1.1")).await;
    assert_eq!(drained(&f).await, ["after"]);
}

pub(crate) async fn a_tried_message_keeps_its_words(f: impl Fixture) {
    f.says(&thread(1), [reply("turn:1", "draft")]).await;
    let draft = f.claim_one().await.unwrap();
    f.says(&thread(1), [reply("turn:1", "better")]).await;
    f.says(&thread(1), [reply("turn:1", "final")]).await;
    f.finish(&draft, &Sent::Retry(f.now())).await;
    f.says(&thread(1), [reply("turn:1", "really final")]).await;
    let again = f.claim_one().await.unwrap();
    assert_eq!((spoken(&again), again.attempts), ("draft".to_owned(), 1));
    delivered(&f, &again, Some("1.1")).await;
    let last = f.claim_one().await.unwrap();
    assert_eq!((spoken(&last), last.posted.clone()), ("really final".to_owned(), Some(posted("1.1"))));
    delivered(&f, &last, None).await;
    assert_eq!(drained(&f).await, [""; 0]);
}

pub(crate) async fn different_slots_do_not_replace_each_other(f: impl Fixture) {
    f.says(&thread(1), [reply("turn:1", "one"), reply("turn:2", "two"), reply("", "three"), reply("", "four")]).await;
    f.says(&thread(2), [reply("turn:1", "elsewhere")]).await;
    let elsewhere =
        f.store().claim_outbox(&Holder::new(sender(), f.ttl(), f.now()), 1, Some(&thread(2))).await.unwrap();
    assert_eq!(elsewhere.iter().map(spoken).collect::<Vec<_>>(), ["elsewhere"]);
    assert_eq!(drained(&f).await, ["one", "two", "three", "four"]);
}

pub(crate) async fn progress_gives_way_to_what_is_newer(f: impl Fixture) {
    f.says(&thread(1), [progress("turn:1", "thinking")]).await;
    f.says(&thread(1), [progress("turn:1", "reading")]).await;
    let only = f.claim_one().await.unwrap();
    assert_eq!(spoken(&only), "… reading");
    delivered(&f, &only, Some("1.1")).await;
    assert_eq!(f.claim(10).await, []);

    f.says(&thread(1), [progress("turn:1", "writing")]).await;
    f.says(&thread(1), [reply("card:a1", "Start?")]).await;
    assert_eq!(drained(&f).await, ["Start?"], "of another slot, too");

    f.says(&thread(1), [progress("turn:1", "still writing"), reply("", "by the way")]).await;
    assert_eq!(drained(&f).await, ["by the way", "… still writing"], "what has no slot only goes first");
}

pub(crate) async fn progress_waits_for_everything_else(f: impl Fixture) {
    f.says(&thread(1), [reply("", "one"), progress("turn:1", "working"), reply("", "two")]).await;
    assert_eq!(drained(&f).await, ["one", "two", "… working"]);
}

pub(crate) async fn progress_in_flight_stays(f: impl Fixture) {
    f.says(&thread(1), [progress("turn:1", "working")]).await;
    let working = f.claim_one().await.unwrap();
    f.says(&thread(1), [reply("turn:1", "done")]).await;
    delivered(&f, &working, Some("1.1")).await;
    let done = f.claim_one().await.unwrap();
    assert_eq!((spoken(&done), done.posted), ("done".to_owned(), Some(posted("1.1"))));
}

pub(crate) async fn tried_progress_goes_before_its_own_slot(f: impl Fixture) {
    f.says(&thread(1), [progress("turn:1", "working")]).await;
    let working = f.claim_one().await.unwrap();
    f.says(&thread(1), [reply("card:a1", "Start?"), reply("turn:1", "done")]).await;
    f.finish(&working, &Sent::Retry(f.now())).await;
    assert_eq!(drained(&f).await, ["Start?", "… working", "done"], "or “working” would stand over the answer for ever");
}

pub(crate) async fn removing_what_was_never_posted_says_nothing(f: impl Fixture) {
    f.says(&thread(1), [reply("turn:1", "one"), reply("", "two")]).await;
    f.says(&thread(1), [remove("turn:1"), remove("turn:2")]).await;
    assert_eq!(drained(&f).await, ["two"]);
}

pub(crate) async fn removing_what_was_posted_empties_the_slot(f: impl Fixture) {
    f.says(&thread(1), [reply("turn:1", "one")]).await;
    let one = f.claim_one().await.unwrap();
    delivered(&f, &one, Some("1.1")).await;
    f.says(&thread(1), [reply("turn:1", "edited")]).await;
    f.says(&thread(1), [remove("turn:1")]).await;
    let removal = f.claim_one().await.unwrap();
    assert_eq!((spoken(&removal), removal.posted.clone()), ("(removed)".to_owned(), Some(posted("1.1"))));
    delivered(&f, &removal, None).await;
    assert_eq!(at(&f, "turn:1").await, None);
    assert_eq!(drained(&f).await, [""; 0]);
    f.says(&thread(1), [reply("turn:1", "back")]).await;
    assert_eq!(f.claim_one().await.unwrap().posted, None, "to be posted anew");
}

pub(crate) async fn removing_what_may_be_posted_is_said(f: impl Fixture) {
    f.says(&thread(1), [reply("turn:1", "one")]).await;
    let one = f.claim_one().await.unwrap();
    f.says(&thread(1), [remove("turn:1")]).await;
    delivered(&f, &one, Some("1.1")).await;
    let removal = f.claim_one().await.unwrap();
    assert_eq!((spoken(&removal), removal.posted), ("(removed)".to_owned(), Some(posted("1.1"))));
}

pub(crate) async fn every_kind_of_message_comes_back_as_it_was(f: impl Fixture) {
    let state = CardState::Open {
        approval: approval(&thread(1), "a1"),
        asked_by: "ana".into(),
        deciders: "anybody in this channel".into(),
        expires_at: f.now(),
        digest: "01234567".to_owned(),
        approved_by: vec!["bo".into()],
        needed: 2,
        edited_by: vec![],
        because: None,
        is_risky: false,
        ended_by: Default::default(),
        origin: None,
    };
    let said = [
        outgoing("card:a1", false, Outbound::Card { card: card("a1").into(), state }),
        outgoing("", false, Outbound::Reply { reply: Reply::markdown("*you* may not").hint("ask ana") }),
        outgoing("", false, Outbound::Elsewhere { channel: "post".to_owned(), body: json!({ "to": [], "é": null }) }),
        outgoing("turn:1", true, Outbound::Status { text: "“reading” 🦀".to_owned(), draft: None }),
    ];
    f.says(&thread(1), said.clone()).await;
    for expected in said {
        let claimed = f.claim_one().await.unwrap();
        assert_eq!(claimed.outgoing, expected);
        delivered(&f, &claimed, None).await;
    }
}

pub(crate) async fn many_workers_share_the_outbox(f: impl Fixture) {
    let threads = 20;
    for n in 0..threads {
        f.says(&thread(n), ["one", "two", "three"].map(|words| reply("", words))).await;
    }
    let (ttl, now) = (f.ttl() * 1000, f.now());
    let workers = (0..6).map(|n| {
        let store = Arc::clone(f.store());
        tokio::spawn(async move {
            let worker = format!("w{n}");
            let mut sent = Vec::new();
            loop {
                let claimed = store.claim_outbox(&Holder::new(worker.as_str(), ttl, now), 4, None).await.unwrap();
                if claimed.is_empty() {
                    return sent;
                }
                for message in claimed {
                    sent.push((message.thread.clone(), message.seq));
                    store.finish_outbox(&[(message.clone(), Sent::Delivered(None))], None).await.unwrap();
                }
            }
        })
    });
    let mut sent = Vec::new();
    for worker in workers.collect::<Vec<_>>() {
        sent.extend(worker.await.unwrap());
    }
    assert_eq!(sent.len(), sent.iter().collect::<BTreeSet<_>>().len(), "each once");
    assert_eq!(sent.len(), threads as usize * 3);
}
