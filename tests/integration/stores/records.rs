//! What people look at later: steps, the record, lists, large data.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use countersign::{
    app::installed,
    capabilities::Allowances,
    clock::{Clock, SystemClock, Timestamp},
    config::Config,
    graph::{
        action::{ActionRecord, Lapse, Scope, Status},
        standing::{Entitled, Spent, StandingApprovals as _},
        store::{
            Acquired, ActionChange, ActionFilter, ActionKey, AuditEntry, Changes, Error, Forget, Keep, Register, Saved,
            StepRecord, Then, ThreadFilter, TypedRegister, Usage,
        },
    },
    ids::{ThreadId, UserId},
    standing::{
        grant::{Bounds, Grant, GrantScope},
        register::{GrantRegister, GrantRegisterError},
    },
};
use serde_json::json;

use super::fixture::*;

/// Whether every entry follows from the one before.
fn verifies(thread: &ThreadId, entries: &[AuditEntry]) -> bool {
    let mut previous = "";
    entries.iter().enumerate().all(|(n, entry)| {
        let holds = entry.seq == n as u64 + 1 && entry.holds(thread, previous);
        previous = &entry.hash;
        holds
    })
}

pub(crate) async fn steps_are_listed_in_order(f: impl Fixture) {
    let lease = f.awake(&thread(1)).await.lease;
    let numbered = |n: u64| {
        let usage = Usage {
            model: "m".to_owned(),
            calls: 1,
            input_tokens: n,
            cached_tokens: 2,
            output_tokens: 3,
            nano_usd: Some(4),
        };
        let error = (n == 3).then(|| "no answer".to_owned());
        StepRecord { input: Some(json!({ "n": n })), usage: Some(usage), error, ..step(&n.to_string()) }
    };
    for (first, end) in [(0, 1), (1, 4), (4, 5), (5, 7)] {
        let snapshot = (first == 4).then(|| json!({ "n": first }).into());
        let changes = Changes { steps: (first..end).map(numbered).collect(), snapshot, ..changes(&thread(1)) };
        f.commit(&lease, first, &changes, Then::Keep).await;
    }
    let saved: Vec<_> = (0..7).map(|n| (n + 1, numbered(n))).collect();
    assert_eq!(f.store().steps(&thread(1), 0, 100).await.unwrap(), saved);
    assert_eq!(f.store().steps(&thread(1), 2, 3).await.unwrap(), saved[2..5]);
    assert_eq!(f.store().steps(&thread(1), 7, 100).await.unwrap(), []);
    assert_eq!(f.store().steps(&thread(2), 0, 100).await.unwrap(), []);
}

pub(crate) async fn the_record_is_chained(f: impl Fixture) {
    let lease = f.awake(&thread(1)).await.lease;
    let of = |audit: &[&str]| Changes { audit: audit.iter().map(|why| event(why)).collect(), ..changes(&thread(1)) };
    f.commit(&lease, 0, &of(&["asked", "shown"]), Then::Keep).await;
    f.store().apply(&of(&["decided"])).await.unwrap();
    f.store().apply(&Changes { audit: vec![event("elsewhere")], ..changes(&thread(2)) }).await.unwrap();
    f.commit(&lease, 0, &of(&["executed", "outcome"]), Then::Release).await;

    let record = f.store().audit(&thread(1)).await.unwrap().entries;
    let events: Vec<_> = record.iter().map(|entry| entry.event.clone()).collect();
    assert_eq!(events, ["asked", "shown", "decided", "executed", "outcome"].map(event));
    assert!(verifies(&thread(1), &record));
    assert!(verifies(&thread(2), &f.store().audit(&thread(2)).await.unwrap().entries));
    assert!(!verifies(&thread(2), &record), "a record belongs to its thread");
    assert_eq!(f.store().audit(&thread(3)).await.unwrap().entries, []);
}

pub(crate) async fn a_forged_record_shows(f: impl Fixture) {
    let audit = ["asked", "decided", "outcome"].map(event).to_vec();
    f.store().apply(&Changes { audit, ..changes(&thread(1)) }).await.unwrap();
    let record = f.store().audit(&thread(1)).await.unwrap().entries;
    assert!(verifies(&thread(1), &record));

    let forge = |change: fn(&mut Vec<AuditEntry>)| {
        let mut forged = record.clone();
        change(&mut forged);
        verifies(&thread(1), &forged)
    };
    assert!(!forge(|r| r[1].event.by = Some("bo".into())), "another name");
    assert!(!forge(|r| r[1].event.at.0 += 1), "another time");
    assert!(!forge(|r| r[1].event.detail = json!({ "why": "decideD" }).into()), "one message");
    assert!(!forge(|r| drop(r.remove(1))), "a line less");
    assert!(!forge(|r| r.swap(0, 1)), "another order");
    let rewritten = AuditEntry::chain(&thread(1), 2, &record[0].hash, event("forged"));
    let mut forged = record.clone();
    forged[1] = rewritten;
    assert!(!verifies(&thread(1), &forged), "what follows no longer fits");
}

pub(crate) async fn threads_are_listed_newest_change_first(f: impl Fixture) {
    for n in 1..=4 {
        f.hears(&thread(n), "hello").await;
        f.a_moment().await;
    }
    f.overhears(&thread(9), "lunch?").await;
    let acquired = f.acquire_only("w1", &thread(2)).await.unwrap();
    let acks = acquired.messages.iter().map(|message| message.seq).collect();
    let changes = Changes { steps: vec![step("one")], acks, ..changes(&thread(2)) };
    f.commit(&acquired.lease, 0, &changes, Then::Release).await;

    let listed = f.store().threads(ThreadFilter::All, 3).await.unwrap();
    let names: Vec<_> = listed.iter().map(|summary| summary.thread.clone()).collect();
    assert_eq!(names, [2, 4, 3].map(thread));
    assert_eq!(listed.iter().map(|summary| summary.version).collect::<Vec<_>>(), [1, 0, 0]);
    assert_eq!(listed.iter().map(|summary| summary.busy).collect::<Vec<_>>(), [false, true, true]);
    assert!(listed.is_sorted_by(|a, b| a.updated_at >= b.updated_at));
    assert_eq!(
        f.store().threads(ThreadFilter::All, 10).await.unwrap().len(),
        4,
        "what is only overheard is not listed"
    );
}

pub(crate) async fn bytes_are_kept_under_their_hash(f: impl Fixture) {
    let bytes: Vec<u8> = (0..100_000_u32).map(|n| n.to_le_bytes()[1]).collect();
    let hash = f.store().put_blob(&bytes, Keep::Permanently).await.unwrap();
    assert_eq!(f.store().put_blob(&bytes, Keep::Permanently).await.unwrap(), hash, "twice is once");
    assert_eq!(f.store().get_blob(&hash).await.unwrap(), Some(bytes));
    let of_nothing = f.store().put_blob(b"", Keep::Permanently).await.unwrap();
    assert_eq!(of_nothing, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_eq!(f.store().get_blob(&of_nothing).await.unwrap(), Some(Vec::new()));
    assert_eq!(f.store().get_blob("feed").await.unwrap(), None);
}

pub(crate) async fn bytes_may_be_kept_for_a_time_only(f: impl Fixture) {
    let (day, moment) = (Keep::For(Duration::from_secs(24 * 3600)), Keep::For(f.ttl()));
    let long = f.store().put_blob(b"long", day).await.unwrap();
    let good = f.store().put_blob(b"for good", Keep::Permanently).await.unwrap();
    let still_good = f.store().put_blob(b"for good", moment).await.unwrap();
    let short = f.store().put_blob(b"short", moment).await.unwrap();
    assert_eq!(f.store().get_blob(&short).await.unwrap(), Some(b"short".to_vec()));
    f.run_out().await;
    f.store().sweep(f.now()).await.unwrap();
    assert_eq!(f.store().get_blob(&short).await.unwrap(), None);
    for hash in [long, good, still_good] {
        assert!(f.store().get_blob(&hash).await.unwrap().is_some());
    }
}

pub(crate) async fn bytes_put_again_are_kept_for_longer(f: impl Fixture) {
    let hash = f.store().put_blob(b"again", Keep::For(f.ttl())).await.unwrap();
    f.store().put_blob(b"again", Keep::For(Duration::from_secs(24 * 3600))).await.unwrap();
    f.store().put_blob(b"again", Keep::For(f.ttl())).await.unwrap();
    f.run_out().await;
    f.store().sweep(f.now()).await.unwrap();
    assert!(f.store().get_blob(&hash).await.unwrap().is_some(), "the longer time counts");
}

pub(crate) async fn a_register_is_set_by_whoever_knows_how_it_stands(f: impl Fixture) {
    let read = async |key: &str| f.store().register(key).await.unwrap();
    assert_eq!(read("rules").await, Register::default());
    assert!(!f.store().set_register("rules", 1, &json!("too early")).await.unwrap());
    assert!(f.store().set_register("rules", 0, &json!({ "n": 1, "words": "“é” \n" })).await.unwrap());
    assert!(!f.store().set_register("rules", 0, &json!("again")).await.unwrap());
    assert_eq!(read("rules").await, Register { revision: 1, value: json!({ "n": 1, "words": "“é” \n" }) });
    assert!(f.store().set_register("rules", 1, &json!([])).await.unwrap());
    assert_eq!(read("rules").await, Register { revision: 2, value: json!([]) });
    assert_eq!(read("others").await, Register::default());
    let f = f.reopen().await;
    assert_eq!(f.store().register("rules").await.unwrap(), Register { revision: 2, value: json!([]) });
}

pub(crate) async fn of_many_who_count_in_a_register_none_is_lost(f: impl Fixture) {
    let counting = (0..8).map(|_| {
        let store = f.store().clone();
        tokio::spawn(async move {
            for _ in 0..10 {
                loop {
                    let found = store.register("count").await.unwrap();
                    let next = found.value.as_u64().unwrap_or_default() + 1;
                    if store.set_register("count", found.revision, &json!(next)).await.unwrap() {
                        break;
                    }
                }
            }
        })
    });
    for one in counting.collect::<Vec<_>>() {
        one.await.unwrap();
    }
    assert_eq!(f.store().register("count").await.unwrap(), Register { revision: 80, value: json!(80) });
}

pub(crate) async fn a_typed_register_begins_with_the_default(f: impl Fixture) {
    let register = TypedRegister::<Vec<u64>>::new(f.store().clone(), "numbers");
    assert_eq!(register.load().await.unwrap(), (0, vec![]));
    register.change(|numbers| numbers.retain(|number| *number > 7)).await.unwrap();
    assert_eq!(register.load().await.unwrap(), (0, vec![]), "nothing changed, so nothing was written");
    assert_eq!(register.change(|numbers| (numbers.push(3), numbers.len()).1).await.unwrap(), 1);
    assert_eq!(f.store().register("numbers").await.unwrap(), Register { revision: 1, value: json!([3]) });
    assert!(!register.set(0, &vec![4]).await.unwrap(), "it was set in the meantime");
    f.store().set_register("numbers", 1, &json!("three")).await.unwrap();
    assert!(matches!(register.load().await, Err(Error::Corrupt { .. })));
    assert!(matches!(register.change(Vec::clear).await, Err(Error::Corrupt { .. })), "it is not overwritten");
}

pub(crate) async fn a_change_of_a_register_is_made_again_after_another_one(f: impl Fixture) {
    let register = TypedRegister::<u64>::new(f.store().clone(), "count");
    let other = TypedRegister::<u64>::new(f.store().clone(), "count");
    let (register, other) = (&register, &other);
    let added = register.change_with(|count| async move {
        if count == 0 {
            other.change(|count| *count = 5).await?; // between the read and the write
        }
        Ok::<_, Error>((count + 1, count))
    });
    assert_eq!(added.await.unwrap(), 5, "the first attempt had seen 0");
    assert_eq!(register.load().await.unwrap(), (2, 6));

    let always_late = register.change_with(|count| async move {
        other.change(|count| *count += 10).await?;
        Ok::<_, Error>((count + 1, ()))
    });
    assert!(matches!(always_late.await, Err(Error::Unavailable(_))), "it is given up in the end");
    assert_eq!(register.load().await.unwrap().1 % 10, 6, "and nothing of it was written");
}

pub(crate) async fn a_change_of_a_register_that_fails_writes_nothing(f: impl Fixture) {
    let register = TypedRegister::<u64>::new(f.store().clone(), "count");
    let failed = register.change_with(|_| async { Err::<(u64, ()), _>(Error::Unavailable("it rains".into())) });
    assert!(matches!(failed.await, Err(Error::Unavailable(_))));
    assert_eq!(register.load().await.unwrap(), (0, 0));
}

/// Everybody may approve everything.
struct Everybody;

#[async_trait]
impl Entitled for Everybody {
    async fn who_may_approve(&self, _: &ActionRecord, people: &[UserId]) -> Vec<UserId> {
        people.to_vec()
    }

    async fn lapses(&self, _: &ActionRecord) -> Vec<Lapse> {
        Vec::new()
    }
}

pub(crate) async fn of_two_processes_none_spends_what_the_other_did(f: impl Fixture) {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let capabilities = {
        let address = ("UPGRADE_API_URL".to_owned(), "http://127.0.0.1:9".to_owned());
        let settings = Config::load(None, &[address].into(), &installed::SETTINGS).unwrap();
        installed::capabilities(&settings, clock.clone()).unwrap()
    };
    let allowances = || Allowances::new(capabilities.iter().flat_map(|capability| capability.info().allowances));
    let books = [0, 1]
        .map(|_| Arc::new(GrantRegister::new(f.store().clone(), clock.clone(), Arc::new(Everybody), allowances())));
    let mut asks = action(&thread(1), "spend", f.now());
    asks.name = "test_condition_balance".to_owned();
    asks.parameters = json!({ "place": { "experiment": "1" } }).into();
    asks.scope = Scope::default().of_subject("Math Hints").measure("users", 10).into();
    let within = GrantScope::Thing { id: "1".to_owned(), name: "Math Hints".to_owned() };
    let until = Timestamp(clock.now().0 + 3_600_000);
    let grant = Grant {
        bounds: Bounds { id: "sa-1".to_owned(), what: "simulate".to_owned(), within, limit: 95, until },
        team: asks.thread.team.clone(),
        channel: asks.thread.channel.clone(),
        action: asks.id.clone(),
        asked_by: "ana".into(),
        granted_by: vec!["bo".into()],
        granted_at: clock.now(),
        used: 0,
        uses: Vec::new(),
        revoked: None,
    };
    books[0].add(&grant).await.unwrap();
    books[1].add(&grant).await.unwrap(); // a repeat after a lost answer
    assert_eq!(books[1].all().await.unwrap(), [grant]);

    // Twelve ask at the same moment, half of them in each process; each asks once more, as after a crash.
    let spending = (0..12).map(|n: u64| {
        let (book, mut asks) = (books[n as usize % 2].clone(), asks.clone());
        asks.slot = format!("turn:{n}").as_str().into();
        tokio::spawn(async move { [book.spend(&asks).await, book.spend(&asks).await] })
    });
    let mut covered = 0;
    for one in spending.collect::<Vec<_>>() {
        let [first, again] = one.await.unwrap();
        let is_covered = |spent: &Spent| matches!(spent, Spent::Under(_));
        assert_eq!(is_covered(&first), is_covered(&again), "a repeat is answered as before");
        covered += usize::from(is_covered(&first));
    }
    let spent = &books[0].all().await.unwrap()[0];
    assert_eq!((covered, spent.used, spent.uses.len()), (9, 90, 9));

    books[0].revoke("sa-1", &"cy".into()).await.unwrap();
    asks.slot = "turn:99".into();
    asks.scope = Scope::default().of_subject("Math Hints").measure("users", 5).into();
    assert_eq!(books[1].spend(&asks).await, Spent::Nothing { why: None }, "it is revoked");
    assert!(matches!(books[1].revoke("sa-2", &"cy".into()).await, Err(GrantRegisterError::Unknown)));
}

/// A thread with two steps, a record of two entries, and nothing left to do.
async fn finished(f: &impl Fixture, n: u32) {
    let Acquired { lease, messages, .. } = f.awake(&thread(n)).await;
    let acks = messages.iter().map(|message| message.seq).collect();
    let first = Changes { steps: vec![step("one")], acks, audit: vec![event("asked")], ..changes(&thread(n)) };
    f.commit(&lease, 0, &first, Then::Keep).await;
    let second = Changes { steps: vec![step("two")], audit: vec![event("said")], ..changes(&thread(n)) };
    f.commit(&lease, 1, &second, Then::Release).await;
}

/// A moment after everything that happened so far.
fn later(f: &impl Fixture) -> Timestamp {
    f.now() + Duration::from_secs(3600)
}

fn forgetting(f: &impl Fixture, n: u32) -> Forget {
    let (checkpoint, record) = (Some(json!({ "turns": 3 }).into()), Vec::new());
    Forget { thread: thread(n), version: 2, before: later(f), checkpoint, files: false, record }
}

pub(crate) async fn finished_threads_are_found_oldest_first(f: impl Fixture) {
    for n in 1..=3 {
        finished(&f, n).await;
        f.a_moment().await;
    }
    f.hears(&thread(4), "hello").await;
    f.overhears(&thread(5), "lunch?").await;
    let mut found = f.finished(later(&f), 10).await;
    found.sort();
    assert_eq!(found, [1, 2, 3].map(thread));
    assert_eq!(f.finished(later(&f), 2).await.len(), 2);
    assert_eq!(f.finished(Timestamp(1_000), 10).await, [], "nothing is so old");
}

pub(crate) async fn a_thread_that_somebody_has_to_do_with_is_not_finished(f: impl Fixture) {
    for n in 1..=5 {
        finished(&f, n).await;
    }
    f.hears(&thread(1), "one more thing").await;
    f.says(&thread(2), [reply("turn:1", "hello")]).await;
    let open = action(&thread(3), "open", f.now());
    let change = ActionChange { expected: None, record: open };
    f.store().apply(&Changes { actions: vec![change], ..changes(&thread(3)) }).await.unwrap();
    f.hears(&thread(4), "again").await;
    f.acquire_only("w1", &thread(4)).await.unwrap();
    assert_eq!(f.finished(later(&f), 10).await, [thread(5)]);
    for n in 1..=4 {
        assert!(!f.store().forget(&forgetting(&f, n)).await.unwrap(), "thread {n}");
        assert_eq!(f.store().steps(&thread(n), 0, 10).await.unwrap().len(), 2, "thread {n}");
    }
    let other_version = Forget { version: 1, ..forgetting(&f, 5) };
    assert!(!f.store().forget(&other_version).await.unwrap());
    let too_young = Forget { before: Timestamp(1_000), ..forgetting(&f, 5) };
    assert!(!f.store().forget(&too_young).await.unwrap());
    assert!(f.store().forget(&forgetting(&f, 5)).await.unwrap());
}

pub(crate) async fn a_forgotten_thread_goes_on_from_what_stays(f: impl Fixture) {
    finished(&f, 1).await;
    let record = f.store().audit(&thread(1)).await.unwrap().entries;
    assert!(f.store().forget(&forgetting(&f, 1)).await.unwrap());
    assert!(!f.store().forget(&forgetting(&f, 1)).await.unwrap(), "once");
    assert_eq!(f.finished(later(&f), 10).await, []);
    assert_eq!(f.store().steps(&thread(1), 0, 10).await.unwrap(), []);
    assert_eq!(f.store().audit(&thread(1)).await.unwrap().entries, record, "the record is not touched");
    let saved = f.store().load(&thread(1)).await.unwrap().unwrap();
    assert_eq!((saved.version, saved.snapshot, saved.deltas), (2, Some(json!({ "turns": 3 }).into()), vec![]));

    f.hears(&thread(1), "one more thing").await;
    let Acquired { lease, .. } = f.acquire_only("w1", &thread(1)).await.unwrap();
    let third = Changes { steps: vec![step("three")], audit: vec![event("more")], ..changes(&thread(1)) };
    assert_eq!(f.commit(&lease, 2, &third, Then::Keep).await, 3);
    assert_eq!(f.store().steps(&thread(1), 0, 10).await.unwrap(), [(3, step("three"))]);
    let saved = f.store().load(&thread(1)).await.unwrap().unwrap();
    assert_eq!(saved.deltas, [delta("three")]);
    assert!(verifies(&thread(1), &f.store().audit(&thread(1)).await.unwrap().entries), "the chain goes on");
}

pub(crate) async fn a_record_can_be_kept_with_its_words_hidden(f: impl Fixture) {
    finished(&f, 1).await;
    let record = f.store().audit(&thread(1)).await.unwrap().entries;
    let hidden = record[1].clone().hide(|place, _, _| (place == "/detail/why").then(|| "[hidden]".to_owned()));
    let forged = AuditEntry { hash: "feed".to_owned(), ..record[0].clone() };
    let forget = Forget { record: vec![hidden.clone(), forged], ..forgetting(&f, 1) };
    assert!(f.store().forget(&forget).await.unwrap());
    let kept = f.store().audit(&thread(1)).await.unwrap().entries;
    assert_eq!(kept, [record[0].clone(), hidden], "only what has the same hash takes its place");
    assert!(verifies(&thread(1), &kept));
}

pub(crate) async fn a_whole_thread_can_be_dropped(f: impl Fixture) {
    finished(&f, 1).await;
    finished(&f, 2).await;
    let closed = action(&thread(1), "closed", f.now());
    let approval = closed.approval.clone();
    let open = ActionChange { expected: None, record: closed.clone() };
    let over = ActionChange { expected: Some(1), record: closed.moved(Status::Expired).unwrap() };
    for change in [open, over] {
        f.store().apply(&Changes { actions: vec![change], ..changes(&thread(1)) }).await.unwrap();
    }
    assert!(f.store().forget(&Forget { checkpoint: None, ..forgetting(&f, 1) }).await.unwrap());
    assert_eq!(f.store().load(&thread(1)).await.unwrap(), None);
    assert_eq!(f.store().audit(&thread(1)).await.unwrap().entries, []);
    assert_eq!(f.store().action(ActionKey::ByApproval(&approval)).await.unwrap(), None);
    assert_eq!(f.store().actions(&ActionFilter::all(&[], 10)).await.unwrap(), []);
    let listed: Vec<_> =
        f.store().threads(ThreadFilter::All, 10).await.unwrap().into_iter().map(|summary| summary.thread).collect();
    assert_eq!(listed, [thread(2)], "others stay");
    f.hears(&thread(1), "one more thing").await;
    let Acquired { saved, .. } = f.acquire_only("w1", &thread(1)).await.unwrap();
    assert_eq!(saved, Saved::default(), "it begins anew");
}

pub(crate) async fn a_file_goes_with_the_last_thread_that_shows_it(f: impl Fixture) {
    for n in 1..=4 {
        finished(&f, n).await;
    }
    let shared = f.store().put_blob(b"shared", Keep::WithThread(&thread(1))).await.unwrap();
    for n in [1, 2, 4] {
        assert_eq!(f.store().put_blob(b"shared", Keep::WithThread(&thread(n))).await.unwrap(), shared, "twice is once");
    }
    let own = f.store().put_blob(b"own", Keep::WithThread(&thread(1))).await.unwrap();
    let other = f.store().put_blob(b"other", Keep::WithThread(&thread(3))).await.unwrap();
    let kept = f.store().put_blob(b"kept", Keep::WithThread(&thread(3))).await.unwrap();
    assert_eq!(f.store().put_blob(b"kept", Keep::For(Duration::from_secs(24 * 3600))).await.unwrap(), kept);
    let is_there = async |hash: &str| f.store().get_blob(hash).await.unwrap().is_some();
    let drops = |n: u32| Forget { files: true, ..forgetting(&f, n) };

    let too_young = Forget { before: Timestamp(1_000), ..drops(1) };
    assert!(!f.store().forget(&too_young).await.unwrap());
    assert!(is_there(&own).await, "it is not forgotten");
    assert!(f.store().forget(&drops(1)).await.unwrap());
    assert!(!is_there(&own).await);
    assert_eq!(f.store().get_blob(&shared).await.unwrap(), Some(b"shared".to_vec()), "others show it");
    assert!(f.store().forget(&forgetting(&f, 2)).await.unwrap());
    assert!(f.store().forget(&Forget { checkpoint: None, ..forgetting(&f, 4) }).await.unwrap());
    assert!(is_there(&shared).await, "a thread was forgotten, and still shows it");
    assert!(f.store().forget(&drops(3)).await.unwrap());
    assert!(!is_there(&other).await);
    assert!(is_there(&kept).await, "it is kept for a time as well");

    f.store().put_blob(b"own", Keep::WithThread(&thread(1))).await.unwrap();
    f.finished(later(&f), 10).await;
    assert!(is_there(&own).await, "it is shown anew");
}

pub(crate) async fn a_file_of_whole_threads_is_dropped_with_them(f: impl Fixture) {
    finished(&f, 1).await;
    finished(&f, 2).await;
    let hash = f.store().put_blob(b"shared", Keep::WithThread(&thread(1))).await.unwrap();
    f.store().put_blob(b"shared", Keep::WithThread(&thread(2))).await.unwrap();
    for (n, stays) in [(1, true), (2, false)] {
        assert!(f.store().forget(&Forget { checkpoint: None, ..forgetting(&f, n) }).await.unwrap());
        assert_eq!(f.store().get_blob(&hash).await.unwrap().is_some(), stays, "thread {n}");
    }
}

pub(crate) async fn the_store_says_what_it_is(f: impl Fixture) {
    assert!(!f.store().durability().await.unwrap().name.is_empty());
}
