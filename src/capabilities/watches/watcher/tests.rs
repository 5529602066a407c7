//! Watches and digests over days of a fast clock, with restarts, outages and people who have left.

use std::sync::Mutex;

use countersign_capabilities::{Capability as _, Phase};
use countersign_core::{
    clock::{Clock as _, ManualClock},
    ids::WorkerId,
};
use countersign_graph::{
    action::Reader,
    store::{Holder, Outbound, Posted, Sent, Store},
};
use countersign_store::sqlite::SqliteStore;
use serde_json::json;

use super::*;
use crate::{
    Watches,
    testing::{Platform, observed, thread},
};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

/// The people who may no longer read, and those of whom it is not known.
#[derive(Debug, Default)]
struct People {
    gone: Mutex<Vec<UserId>>,
    is_slack_away: Mutex<bool>,
}

#[async_trait]
impl Readers for People {
    async fn may_read(&self, person: &UserId) -> Option<bool> {
        let is_away = *self.is_slack_away.lock().unwrap();
        (!is_away).then(|| !self.gone.lock().unwrap().contains(person))
    }
}

/// A platform, a store in a file, and a clock.
struct World {
    clock: ManualClock,
    store: Arc<dyn Store>,
    platform: Arc<Platform>,
    people: Arc<People>,
    folder: tempfile::TempDir,
    watcher: Watcher,
    /// All messages so far, with the time at which each was sent.
    told: Vec<(Timestamp, String)>,
}

fn settings() -> WatchSettings {
    WatchSettings { every: MINUTE, tell_after: HOUR }
}

fn reader(person: &str) -> Reader {
    let mut reader = Reader::in_thread(Some(person.into()), &thread());
    reader.zone = Some("Europe/Berlin".to_owned());
    reader
}

impl World {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = ManualClock::default();
        // A Monday, in a week in which no clocks change.
        let begin = "2099-06-01T00:00:00Z".parse::<jiff::Timestamp>().unwrap().as_millisecond();
        clock.advance(Duration::from_millis(u64::try_from(begin - clock.now().millis()).unwrap()));
        let store: Arc<dyn Store> =
            Arc::new(SqliteStore::open(folder.path().join("store.sqlite"), Arc::new(clock.clone())).unwrap());
        let platform = Arc::new(Platform::with(observed(100, Phase::Running)));
        let people = Arc::new(People::default());
        let watcher = watcher(&store, &clock, &platform, &people);
        Self { clock, store, platform, people, folder, watcher, told: Vec::new() }
    }

    fn observers(&self) -> Observers {
        [("things".to_owned(), self.platform.clone() as Arc<dyn Observer>)].into()
    }

    /// Another process takes over: only what is stored is left.
    fn restarts(&mut self) {
        self.watcher = watcher(&self.store, &self.clock, &self.platform, &self.people);
    }

    /// Calls a tool as a person in the thread; returns the words of the reply.
    async fn asks(&self, person: &str, tool: &str, arguments: serde_json::Value) -> String {
        let book = WatchRegister::new(self.store.clone(), Arc::new(self.clock.clone()));
        let tools = Watches::new(book, self.observers(), MINUTE).tools();
        let tool = tools.iter().find(|known| known.name() == tool).unwrap();
        match tool.call(&arguments, Some(&reader(person))).await {
            Ok(answer) => tool.present(&arguments, &answer).unwrap().words(),
            Err(error) => error.reply.words(),
        }
    }

    /// Looks once, and sends what is in the outbox.
    async fn look(&mut self) {
        self.watcher.look().await.unwrap();
        self.sends().await;
    }

    async fn sends(&mut self) {
        let now = self.clock.now();
        let worker = WorkerId::from("sender");
        loop {
            let claimed = self.store.claim_outbox(&Holder::new(worker.clone(), MINUTE, now), 10, None).await.unwrap();
            if claimed.is_empty() {
                return;
            }
            for one in claimed {
                let Outbound::Reply { reply } = &one.outgoing.body else { panic!("not a reply") };
                assert!(one.posted.is_none(), "a message is not replaced by another one");
                self.told.push((now, reply.words()));
                let posted = Posted::at(thread().channel, "1700000001.000100".into());
                let sent = [(one, Sent::Delivered(Some(posted)))];
                assert_eq!(self.store.finish_outbox(&sent, None).await.unwrap().0, [true]);
            }
        }
    }

    /// Lets time pass in steps, with a look after each.
    async fn passes(&mut self, time: Duration, step: Duration) {
        for _ in 0..time.as_secs() / step.as_secs() {
            self.clock.advance(step);
            self.look().await;
        }
    }

    fn words(&self) -> Vec<&str> {
        self.told.iter().map(|(_, words)| words.as_str()).collect()
    }

    fn reads(&self) -> usize {
        *self.platform.reads.lock().unwrap()
    }
}

fn watcher(store: &Arc<dyn Store>, clock: &ManualClock, platform: &Arc<Platform>, people: &Arc<People>) -> Watcher {
    let book = WatchRegister::new(store.clone(), Arc::new(clock.clone()));
    let observers = [("things".to_owned(), platform.clone() as Arc<dyn Observer>)].into();
    Watcher::new(book, observers, people.clone(), settings())
}

fn reaching(number: u64) -> serde_json::Value {
    json!({ "thing": "Math Hints", "event": "reaches", "number": number })
}

#[tokio::test]
async fn a_week_of_watches_and_digests_misses_nothing_and_tells_nothing_twice() {
    let mut world = World::start();
    let said = world.asks("U1", "schedule_digest", json!({ "days": "every day", "time": "9am" })).await;
    assert!(said.contains("every day at 9:00 AM (Europe/Berlin)"), "{said}");
    for number in [150, 300, 450, 600, 700] {
        let said = world.asks("U1", "watch", reaching(number)).await;
        assert!(said.contains(&format!("when Math Hints reaches {number} users. It has 100 now.")), "{said}");
    }
    world.asks("U2", "watch", json!({ "thing": "Math Hints", "event": "ends" })).await;
    for hour in 0..7 * 24 {
        world.platform.enrols(100 + hour * 4);
        if hour == 7 * 24 - 20 {
            world.platform.turns(Phase::Ended);
        }
        if hour % 5 == 0 {
            world.restarts();
        }
        world.passes(HOUR, 10 * MINUTE).await;
    }
    let words = world.words();
    let count = |part: &str| words.iter().filter(|words| words.contains(part)).count();
    for number in [150, 300, 450, 600, 700] {
        assert_eq!(count(&format!("reached {number} users")), 1, "{number}: {words:?}");
    }
    assert_eq!(count("has ended"), 1);
    assert_eq!(count("Running experiments") + count("no experiments are running"), 7, "a digest each day: {words:?}");
    assert_eq!(words.len(), 5 + 1 + 7);
    for (at, words) in &world.told {
        if words.contains("experiments") {
            let local = jiff::Timestamp::from_millisecond(at.millis()).unwrap().in_tz("Europe/Berlin").unwrap();
            assert!(local.hour() == 9 && local.minute() < 10, "late: {local}");
        }
    }
}

#[tokio::test]
async fn what_happens_while_no_process_runs_is_told_once_it_does() {
    let mut world = World::start();
    world.asks("U1", "watch", reaching(500)).await;
    world.asks("U1", "schedule_digest", json!({ "days": "every day", "time": "9am" })).await;
    world.look().await;
    world.platform.enrols(512);
    world.clock.advance(HOUR * 24 * 3);
    world.restarts();
    world.passes(HOUR, MINUTE).await;
    let words = world.words();
    assert_eq!(words.len(), 2, "one message, and one digest for the three that were missed: {words:?}");
    assert!(words[0].contains("Math Hints reached 500 users (512 enrolled, "), "{words:?}");
}

#[tokio::test]
async fn a_process_that_dies_after_it_queued_a_message_does_not_queue_it_twice() {
    let mut world = World::start();
    world.asks("U1", "watch", reaching(500)).await;
    world.platform.enrols(512);
    let book = WatchRegister::new(world.store.clone(), Arc::new(world.clock.clone()));
    let (_, before) = book.register().load().await.unwrap();
    world.look().await;
    assert_eq!(world.told.len(), 1);
    // The register as it was before: the message was queued, and the watch not yet removed.
    let (revision, _) = book.register().load().await.unwrap();
    assert!(book.register().set(revision, &before).await.unwrap());
    world.restarts();
    world.passes(HOUR, MINUTE).await;
    assert_eq!(world.told.len(), 1, "{:?}", world.words());
    assert_eq!(book.register().load().await.unwrap().1, Contents::default());
}

#[tokio::test]
async fn two_processes_tell_once_and_read_once() {
    let mut world = World::start();
    world.asks("U1", "watch", reaching(500)).await;
    world.platform.enrols(512);
    let reads = world.reads();
    let other = watcher(&world.store, &world.clock, &world.platform, &world.people);
    let (one, two) = tokio::join!(world.watcher.look(), other.look());
    assert_eq!(one.unwrap() + two.unwrap(), 1);
    world.sends().await;
    assert_eq!(world.told.len(), 1);
    assert_eq!(world.reads(), reads + 1);
}

#[tokio::test]
async fn a_thing_is_read_once_a_look_however_many_watch_it() {
    let mut world = World::start();
    for number in 200..215 {
        world.asks("U1", "watch", reaching(number)).await;
        world.asks("U2", "watch", reaching(number + 100)).await;
    }
    let reads = world.reads();
    world.passes(10 * MINUTE, MINUTE).await;
    assert_eq!(world.reads(), reads + 10);
    assert!(world.told.is_empty());
}

#[tokio::test]
async fn the_same_request_in_a_thread_is_one_watch_and_what_has_happened_is_said_at_once() {
    let world = World::start();
    world.asks("U1", "watch", reaching(500)).await;
    let said = world.asks("U1", "watch", reaching(500)).await;
    assert!(said.starts_with("I'll tell you here"), "a repeat after a crash gets the same answer: {said}");
    world.clock.advance(HOUR);
    let said = world.asks("U2", "watch", reaching(500)).await;
    assert!(said.starts_with("I'm already watching that."), "{said}");
    let said = world.asks("U1", "watch", reaching(50)).await;
    assert!(said.contains("already has 100 users") && said.contains("nothing to wait for"), "{said}");
    let said = world.asks("U1", "watch", json!({ "thing": "Math Hints", "event": "starts" })).await;
    assert!(said.contains("is already running"), "{said}");
    let said = world.asks("U1", "watch", json!({ "thing": "Nothing", "event": "starts" })).await;
    assert!(said.contains("There is no Nothing"), "{said}");
    let said = world.asks("U1", "watch", json!({ "thing": "Math Hints", "event": "reaches" })).await;
    assert!(said.contains("How many users?"), "{said}");
}

#[tokio::test]
async fn watches_are_listed_and_stopped() {
    let mut world = World::start();
    assert!(world.asks("U1", "list_watches", json!({})).await.contains("not watching anything"));
    world.asks("U1", "watch", reaching(500)).await;
    world.asks("U1", "schedule_digest", json!({ "days": "Monday", "time": "9am" })).await;
    let said = world.asks("U2", "list_watches", json!({})).await;
    assert!(said.contains("when Math Hints reaches 500 users") && said.contains("every Monday at 9:00 AM"), "{said}");
    let said = world.asks("U1", "stop_watching", json!({ "thing": "math hints" })).await;
    assert!(said.contains("I stopped watching Math Hints."), "{said}");
    let said = world.asks("U1", "stop_watching", json!({ "what": "digest" })).await;
    assert!(said.contains("I stopped the digest."), "{said}");
    let said = world.asks("U1", "stop_watching", json!({ "thing": "Math Hints" })).await;
    assert!(said.contains("nothing to stop"), "{said}");
    world.platform.enrols(999);
    world.passes(HOUR * 24 * 8, HOUR).await;
    assert!(world.told.is_empty(), "{:?}", world.words());
}

#[tokio::test]
async fn the_only_watch_is_stopped_without_its_name_and_of_several_one_is_asked_for() {
    let world = World::start();
    world.asks("U1", "watch", reaching(500)).await;
    world.asks("U1", "watch", json!({ "thing": "Math Hints", "event": "ends" })).await;
    let said = world.asks("U1", "stop_watching", json!({ "what": "watch" })).await;
    assert!(said.contains("Which one should I stop?") && said.contains("when Math Hints ends"), "{said}");
    let said = world.asks("U1", "stop_watching", json!({ "thing": "Math Hints" })).await;
    assert!(said.contains("I stopped watching Math Hints."), "{said}");
    world.asks("U1", "watch", reaching(500)).await;
    let said = world.asks("U1", "stop_watching", json!({ "what": "watch" })).await;
    assert!(said.contains("I stopped watching Math Hints."), "{said}");
}

#[tokio::test]
async fn a_corrected_digest_or_watch_takes_the_place_of_the_earlier_one() {
    let world = World::start();
    let digest = |time: &str, instead: bool| json!({ "days": "Monday", "time": time, "instead": instead });
    world.asks("U1", "schedule_digest", digest("9am", false)).await;
    world.asks("U1", "schedule_digest", digest("9:30", true)).await;
    let watch = |number: u64, instead: bool| json!({ "thing": "Math Hints", "event": "reaches", "number": number, "instead": instead });
    world.asks("U1", "watch", watch(500, false)).await;
    world.asks("U1", "watch", watch(400, true)).await;
    let listed = world.asks("U1", "list_watches", json!({})).await;
    assert!(listed.contains("9:30 AM") && !listed.contains("9:00 AM"), "{listed}");
    assert!(listed.contains("400 users") && !listed.contains("500 users"), "{listed}");
    let shown = world.asks("U1", "show_digest", json!({})).await;
    assert!(shown.contains("Running experiments") && shown.contains("Math Hints: 100 users"), "{shown}");
}

#[tokio::test]
async fn of_several_digests_the_one_that_is_named_is_stopped() {
    let world = World::start();
    for days in ["Monday", "every day", "Friday"] {
        world.asks("U1", "schedule_digest", json!({ "days": days, "time": "9am" })).await;
    }
    let said = world.asks("U1", "stop_watching", json!({ "what": "digest" })).await;
    assert!(said.contains("Which one should I stop?"), "{said}");
    let said = world.asks("U1", "stop_watching", json!({ "what": "digest", "days": "daily" })).await;
    assert!(said.contains("I stopped the digest."), "{said}");
    let said = world.asks("U1", "list_watches", json!({})).await;
    assert!(said.contains("every Monday") && said.contains("every Friday") && !said.contains("every day"), "{said}");
    let said = world.asks("U1", "stop_watching", json!({ "what": "digests" })).await;
    assert!(said.contains("I stopped 2 digests."), "{said}");
}

#[tokio::test]
async fn an_outage_is_told_once_and_so_is_its_end() {
    let mut world = World::start();
    world.asks("U1", "watch", reaching(500)).await;
    world.asks("U2", "watch", reaching(600)).await;
    *world.platform.is_down.lock().unwrap() = true;
    world.passes(50 * MINUTE, MINUTE).await;
    assert!(world.told.is_empty(), "not at once");
    world.passes(24 * HOUR, 10 * MINUTE).await;
    assert_eq!(world.told.len(), 2, "once each: {:?}", world.words());
    assert!(world.words()[0].contains("I can't read Math Hints since"));
    *world.platform.is_down.lock().unwrap() = false;
    world.platform.enrols(550);
    world.passes(HOUR, MINUTE).await;
    let words = world.words();
    assert_eq!(words.len(), 4, "{words:?}");
    assert!(words[2..].iter().any(|words| words.contains("reached 500 users")));
    assert!(words[2..].iter().any(|words| words.contains("I can read Math Hints again")));
}

#[tokio::test]
async fn a_deleted_thing_ends_its_watches() {
    let mut world = World::start();
    world.asks("U1", "watch", reaching(500)).await;
    *world.platform.thing.lock().unwrap() = None;
    world.passes(HOUR, MINUTE).await;
    assert_eq!(world.words().len(), 1);
    assert!(world.words()[0].contains("Math Hints was deleted, so I stopped watching it."));
}

#[tokio::test]
async fn a_person_without_access_is_told_nothing_and_one_who_is_not_known_later() {
    let mut world = World::start();
    world.asks("U1", "watch", reaching(500)).await;
    world.asks("U2", "watch", reaching(500)).await;
    world.asks("U2", "watch", reaching(505)).await;
    world.asks("U1", "schedule_digest", json!({ "days": "every day", "time": "9am" })).await;
    world.people.gone.lock().unwrap().push("U1".into());
    *world.people.is_slack_away.lock().unwrap() = true;
    world.platform.enrols(512);
    world.passes(10 * MINUTE, MINUTE).await;
    assert!(world.told.is_empty(), "it is not known who may read");
    *world.people.is_slack_away.lock().unwrap() = false;
    world.passes(HOUR * 48, HOUR).await;
    let words = world.words();
    assert!(words.len() == 1 && words[0].contains("505"), "the watch on 500 in this thread was U1's: {words:?}");
}

#[tokio::test]
async fn a_digest_without_a_platform_comes_late_or_says_so() {
    let mut world = World::start();
    world.asks("U1", "schedule_digest", json!({ "days": "every day", "time": "9am" })).await;
    *world.platform.is_down.lock().unwrap() = true;
    world.passes(24 * HOUR, 5 * MINUTE).await;
    world.passes(2 * HOUR, 5 * MINUTE).await;
    let words = world.words();
    assert!(words.len() == 1 && words[0].contains("couldn't read the experiments"), "{words:?}");
    *world.platform.is_down.lock().unwrap() = false;
    world.passes(24 * HOUR, 5 * MINUTE).await;
    assert_eq!(world.words().len(), 2);
    assert!(world.words()[1].contains("Math Hints: 100 users"), "{:?}", world.words());
    assert!(world.folder.path().exists());
}
