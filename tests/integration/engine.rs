//! The engine by itself, on a small graph: what is saved, what is asked, what is sent, and what is not.

mod graphs;
mod races;
mod sealed;
mod waits;

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use countersign::{
    clock::{Clock, ManualClock, Timestamp},
    graph::{
        action::{
            ActionInfo, ActionKind, ActionRecord, Approver, Decision, Evidence, Lapse, Outcome, Performed, Policy,
            PrepareError, Probed, Proposal, Reader, Recovery, Scope, Status, Verdict,
        },
        admission::{Admission, Admits},
        definition::Graph,
        engine::{Engine, EngineDeps, Settings},
        keyring::Keyring,
        node::{Ask, Context, Listener, Node, NodeError, Said, State, Step},
        standing::{Entitled, Spent, StandingApprovals, Under},
        store::{
            ActionChange, ActionFilter, ActionFollowUp, AuditKind, Changes, Delivery, Destination, Handling, Holder,
            Sent, Store, ThreadMessage,
        },
    },
    ids::{CommitId, MessageTs, ThreadId, UserId, WorkerId},
    reply::{Card, Reply, Text},
    store::{
        sealed::{SealScope as Sealing, SealedStore},
        sqlite::SqliteStore,
    },
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::raced_store::RacedStore;

/// What the small graph remembers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Notes {
    heard: Vec<String>,
    asked: Option<String>,
    ended: Vec<Status>,
    /// What became of actions after their end, as it was told.
    #[serde(default)]
    follow_up: Vec<String>,
    /// Marks notes that were not parsed since a change was asked for.
    #[serde(skip)]
    unparsed: Unparsed,
}

/// A mark that is not saved, and makes no difference in comparisons.
#[derive(Clone, Debug, Default)]
struct Unparsed(bool);

impl PartialEq for Unparsed {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl State for Notes {
    fn begin_turn(&mut self, said: &Said) {
        self.heard.push(said.text.clone());
        self.asked = None;
    }

    fn suspend(&self) -> Value {
        json!(self.asked)
    }

    fn resume(&mut self, turn: Value) -> Result<(), serde_json::Error> {
        self.asked = serde_json::from_value(turn)?;
        Ok(())
    }

    fn superseded(&mut self, older: &ActionRecord, _: Timestamp) {
        self.ended.push(older.status);
    }
}

/// What is heard without running a node.
struct Hears;

impl Listener<Notes> for Hears {
    fn heard(
        &self,
        state: &mut Notes,
        record: &ActionRecord,
        follow_up: ActionFollowUp,
        _: &UserId,
        _: Timestamp,
    ) -> Option<Reply> {
        state.follow_up.push(format!("{follow_up:?} {}", record.status));
        Some(Reply::text("Noted."))
    }
}

/// Everybody may ask, and approve.
#[derive(Debug)]
struct Everybody;

#[async_trait]
impl Admission for Everybody {
    async fn admits(&self, _: &ThreadId, _: &UserId, _: &MessageTs) -> Admits {
        Admits::Yes
    }
}

#[async_trait]
impl Entitled for Everybody {
    async fn who_may_approve(&self, _: &ActionRecord, people: &[UserId]) -> Vec<UserId> {
        people.to_vec()
    }

    /// Who approved this has left since, if the change says so.
    async fn lapses(&self, record: &ActionRecord) -> Vec<Lapse> {
        let lapse = |by| Lapse { by, at: record.requested_at, why: "deactivated account".to_owned() };
        let has_left = record.parameters["what"] == "approved by a person who leaves";
        record.approved_by().into_iter().filter(|_| has_left).map(lapse).collect()
    }
}

/// Covers a change of this name, once for each run and message.
#[derive(Debug)]
struct Covers(&'static str, Mutex<Vec<String>>);

#[async_trait]
impl StandingApprovals for Covers {
    async fn spend(&self, record: &ActionRecord) -> Spent {
        let mut spent = self.1.lock().unwrap();
        let claim = format!("{} {}", record.run, record.slot);
        if record.parameters["what"] != self.0 {
            return Spent::Nothing { why: None };
        }
        if !spent.contains(&claim) {
            spent.push(claim);
        }
        let granted_by = vec!["bo".into(), "cy".into()];
        let (used, allows) = (spent.len() as u64, "everything".to_owned());
        Spent::Under(Under { id: "sa-1".into(), allows, granted_by, used, limit: 9 })
    }
}

/// Asks for the change that was named; fails as often as it was told to.
struct Listen {
    failures: Arc<Mutex<u32>>,
}

#[async_trait]
impl Node<Notes> for Listen {
    fn name(&self) -> &'static str {
        "listen"
    }

    fn targets(&self) -> &'static [&'static str] {
        &["report"]
    }

    async fn run(&self, mut state: Notes, context: &Context) -> Result<Step<Notes>, NodeError> {
        assert_ne!(state.heard.last().map(String::as_str), Some("panic"), "the node was asked to");
        let mut failures = self.failures.lock().unwrap();
        if *failures > 0 {
            *failures -= 1;
            return Err(NodeError::Transient { reply: Reply::text("It never worked."), source: "busy".into() });
        }
        let said = state.heard.last().cloned().unwrap_or_default();
        if said == "hello" {
            return Ok(Step::end(state).say(Reply::text("Hello.")));
        }
        state.asked = Some(said.clone());
        state.unparsed = Unparsed(true);
        let card = Card {
            title: format!("Do {said}?"),
            facts: Vec::new(),
            warnings: Vec::new(),
            notes: Vec::new(),
            approve: "Do it".to_owned(),
            reject: "Cancel request".to_owned(),
            done: "Done.".to_owned(),
            irreversible: false,
            editable: false,
        };
        let proposal = Proposal {
            parameters: json!({ "what": said }),
            preconditions: json!("as it was"),
            card,
            undo: None,
            scope: Scope::default(),
        };
        let replaces = context.open.first().filter(|_| said.starts_with("instead")).map(|open| open.id.clone());
        let ask = Ask {
            action: "change".to_owned(),
            proposal,
            requested_by: "ana".into(),
            evidence: Evidence::default(),
            replaces,
            then: "report",
        };
        Ok(Step::ask(state, ask))
    }
}

/// Notes how it ended, and whether the notes were parsed since it was asked for.
struct Report {
    unparsed: Arc<Mutex<Vec<bool>>>,
}

#[async_trait]
impl Node<Notes> for Report {
    fn name(&self) -> &'static str {
        "report"
    }

    fn targets(&self) -> &'static [&'static str] {
        &[]
    }

    async fn run(&self, mut state: Notes, context: &Context) -> Result<Step<Notes>, NodeError> {
        let ended = context.ended.as_ref().expect("it is led here by an action");
        assert_eq!(state.asked.as_deref(), ended.parameters["what"].as_str(), "the turn that asked is back");
        state.ended.push(ended.status);
        self.unparsed.lock().unwrap().push(state.unparsed.0);
        Ok(Step::end(state).say(Reply::text(format!("It is {}.", ended.status))))
    }
}

/// A change whose fate is a script.
#[derive(Default)]
struct Change {
    sent: Mutex<Vec<String>>,
    answers: Mutex<VecDeque<Performed>>,
    probes: Mutex<VecDeque<Probed>>,
    found: Mutex<Option<Value>>,
    hurts_twice: Mutex<bool>,
}

#[async_trait]
impl ActionKind for Change {
    fn info(&self) -> ActionInfo {
        ActionInfo::new("change", "Changes something.")
    }

    fn schema(&self) -> Value {
        json!({ "type": "object" })
    }

    async fn prepare(&self, _: &Value, _: Option<&Reader>) -> Result<Proposal, PrepareError> {
        unreachable!("the node proposes by itself")
    }

    async fn preconditions(&self, _: &ActionRecord) -> Result<Value, Outcome> {
        Ok(self.found.lock().unwrap().clone().unwrap_or_else(|| json!("as it was")))
    }

    async fn perform(&self, record: &ActionRecord) -> Performed {
        self.sent.lock().unwrap().push(record.parameters["what"].to_string());
        assert_ne!(record.parameters["what"], "panic while it is sent", "the action was asked to");
        self.answers.lock().unwrap().pop_front().unwrap_or_else(done)
    }

    fn recovery(&self) -> Recovery {
        Recovery::Probe { in_flight: Duration::from_secs(5), repeatable: !*self.hurts_twice.lock().unwrap() }
    }

    async fn probe(&self, _: &ActionRecord) -> Probed {
        self.probes.lock().unwrap().pop_front().expect("nobody looks without need")
    }
}

fn done() -> Performed {
    Performed::Ended(Outcome::Done { result: json!({}), summary: Text::from("Done.") })
}

fn no_answer() -> Performed {
    Performed::NoAnswer { detail: "cut".to_owned() }
}

/// An engine with its store and its script.
struct Bench {
    store: Arc<RacedStore>,
    /// The same without seals: what somebody has who can write into the file.
    raw: Arc<dyn Store>,
    engine: Engine<Notes>,
    change: Arc<Change>,
    failures: Arc<Mutex<u32>>,
    unparsed: Arc<Mutex<Vec<bool>>>,
    clock: ManualClock,
    _folder: tempfile::TempDir,
}

fn thread() -> ThreadId {
    ThreadId { team: "T1".into(), channel: "C1".into(), root: "1.1".into() }
}

/// An engine for a graph that may propose one kind of change.
fn engine_of<S: State>(
    graph: Graph<S>,
    kind: Arc<dyn ActionKind>,
    store: Arc<dyn Store>,
    keys: Arc<Keyring>,
    clock: &ManualClock,
    settings: Settings,
) -> Engine<S> {
    Engine::new(EngineDeps {
        graph,
        actions: [("change", kind)].into(),
        store,
        clock: Arc::new(clock.clone()),
        keys,
        standing: Arc::new(Covers("what is covered", Mutex::default())),
        entitled: Arc::new(Everybody),
        admission: Arc::new(Everybody),
        policy_for: Arc::new(|_| Policy {
            approvers: vec![Approver::Channel],
            own_request: true,
            needed: 1,
            typed: true,
            ..Policy::default()
        }),
        settings,
        stopping: tokio_util::sync::CancellationToken::new(),
    })
}

impl Bench {
    /// Looks once.
    fn new() -> Self {
        Self::looking_for(Duration::ZERO)
    }

    fn looking_for(settle_within: Duration) -> Self {
        let change = Arc::new(Change::default());
        Self::carrying_out(change.clone(), change, settle_within)
    }

    /// Carries out this kind of change, which is the scripted one or another.
    fn carrying_out(kind: Arc<dyn ActionKind>, change: Arc<Change>, settle_within: Duration) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = ManualClock::default();
        let store = SqliteStore::open(folder.path().join("threads.sqlite"), Arc::new(clock.clone())).unwrap();
        let keys = Arc::new(Keyring::new(vec![vec![7; 32]]).unwrap());
        let scope = Sealing { registers: &[], register_families: &[] };
        let raw: Arc<dyn Store> = Arc::new(store);
        let store = Arc::new(RacedStore::raced(Arc::new(SealedStore::new(raw.clone(), keys.clone(), scope))));
        let failures = Arc::new(Mutex::new(0));
        let unparsed = Arc::new(Mutex::default());
        let (listen, report) = (Listen { failures: failures.clone() }, Report { unparsed: unparsed.clone() });
        let graph = Graph::builder("chat", "listen", Hears).node(listen).node(report).build();
        let settings = Settings { settle_within, ..Settings::default() };
        let engine = engine_of(graph.unwrap(), kind, store.clone(), keys, &clock, settings);
        Self { store, raw, engine, change, failures, unparsed, clock, _folder: folder }
    }

    async fn hears(&self, text: &str) {
        let message = ThreadMessage::Said {
            by: "ana".into(),
            text: text.to_owned(),
            ts: "1.1".into(),
            addressed: true,
            request: None,
        };
        let to = Destination::mailbox(thread(), true, message);
        self.store.ingest(&Delivery { to, dedup: Vec::new(), at: self.clock.now() }, Handling::Later).await.unwrap();
        self.advances().await;
    }

    /// Lets the engine go on with whatever is ready; says whether there was anything.
    async fn advances(&self) -> bool {
        let worker = WorkerId::new("w");
        let acquired = self
            .store
            .acquire(&Holder::new(worker.clone(), Duration::from_secs(30), self.clock.now()), None)
            .await
            .unwrap();
        match acquired {
            Some(acquired) => {
                self.engine.advance(acquired).await.unwrap();
                true
            }
            None => false,
        }
    }

    async fn action(&self) -> ActionRecord {
        let filter = ActionFilter::of(&thread(), &[], 1);
        self.store.actions(&filter).await.unwrap().remove(0)
    }

    async fn decides(&self, verdict: Verdict, alter: impl FnOnce(&mut ActionRecord)) {
        let changes = decided(&self.action().await, verdict, self.clock.now(), alter);
        self.store.apply(&changes).await.unwrap();
        self.advances().await;
    }

    fn sent(&self) -> usize {
        self.change.sent.lock().unwrap().len()
    }

    /// What is remembered of the thread.
    async fn saved(&self) -> Value {
        self.store.load(&thread()).await.unwrap().unwrap().restore().unwrap()
    }

    async fn audited(&self) -> Vec<AuditKind> {
        let record = self.store.audit(&thread()).await.unwrap().entries;
        record.iter().filter(|entry| entry.event.action.is_some()).map(|entry| entry.event.kind).collect()
    }
}

/// Bo's decision, as the inbox writes it.
fn decided(record: &ActionRecord, verdict: Verdict, at: Timestamp, alter: impl FnOnce(&mut ActionRecord)) -> Changes {
    let to = if verdict == Verdict::Approved { Status::Approved } else { Status::Rejected };
    let mut decided = record.moved(to).unwrap();
    let decision = Decision { by: Some("bo".into()), at, verdict };
    decided.decisions.push(decision.clone());
    alter(&mut decided);
    let mut changes = Changes::new(CommitId::fresh(), thread());
    changes.messages.push(ThreadMessage::Decided {
        action: record.id.clone(),
        approval: record.approval.clone(),
        decision,
    });
    changes.actions.push(ActionChange { expected: Some(record.revision), record: decided });
    changes
}

#[tokio::test]
async fn a_checkpoint_that_was_left_in_a_pause_is_not_parsed_again() {
    let bench = Bench::new();
    bench.hears("the thing").await;
    bench.decides(Verdict::Approved, |_| {}).await;
    assert_eq!(*bench.unparsed.lock().unwrap(), [true]);

    bench.hears("another thing").await;
    let mut changes = Changes::new(CommitId::fresh(), thread());
    changes.messages.push(ThreadMessage::Overheard { by: "cy".into(), ts: "1.2".into() });
    bench.store.apply(&changes).await.unwrap();
    bench.advances().await; // it writes a step after the pause
    bench.decides(Verdict::Approved, |_| {}).await;
    assert_eq!(*bench.unparsed.lock().unwrap(), [true, false]);
}

#[tokio::test]
async fn an_approved_change_is_sent_once_after_its_intent_was_written() {
    let bench = Bench::new();
    bench.hears("x").await;
    assert_eq!((bench.action().await.status, bench.sent()), (Status::Pending, 0));
    bench.decides(Verdict::Approved, |_| ()).await;
    assert_eq!((bench.action().await.status, bench.sent()), (Status::Done, 1));
    use AuditKind::{Asked, Executed, Outcome, Shown};
    assert_eq!(bench.audited().await, [Asked, Shown, Executed, Outcome], "the decision is the inbox's to record");
}

#[tokio::test]
async fn an_approval_of_some_time_ago_is_looked_at_again_before_the_change_is_sent() {
    for (wait, sent) in [(0, 1), (11, 0)] {
        let bench = Bench::new();
        bench.hears("approved by a person who leaves").await;
        let changes = decided(&bench.action().await, Verdict::Approved, bench.clock.now(), |_| ());
        bench.store.apply(&changes).await.unwrap();
        bench.clock.advance(Duration::from_secs(wait)); // the process was stopped
        bench.advances().await;
        assert_eq!(bench.sent(), sent, "after {wait} s");
        if sent == 0 {
            let action = bench.action().await;
            assert_eq!(action.status, Status::Failed);
            let said = action.outcome.unwrap().summary().words();
            assert_eq!(
                said,
                "Nothing was done. @bo’s approval no longer counts: deactivated account. This needs 1 approval now. Ask again for a new card."
            );
        }
    }
}

#[tokio::test]
async fn what_is_covered_is_sent_without_asking_and_says_whose_decision_it_was() {
    let bench = Bench::new();
    bench.hears("what is covered").await;
    let action = bench.action().await;
    assert_eq!((action.status, bench.sent()), (Status::Done, 1));
    assert_eq!(action.approved_by(), ["bo".into(), "cy".into()]);
    assert_eq!(action.under.as_ref().map(|under| under.id.as_str()), Some("sa-1"));
    assert!(action.decision_line().words().contains("sa-1"));
    use AuditKind::{Asked, Decided, Executed, Outcome, Shown};
    assert_eq!(bench.audited().await, [Asked, Shown, Decided, Decided, Executed, Outcome]);
    let due = bench.clock.now() + Duration::from_secs(7 * 24 * 3600);
    assert_eq!(bench.store.fire_timers(due).await.unwrap(), 0, "no card waits for anybody");
}

#[tokio::test]
async fn a_covered_change_without_an_answer_is_looked_up_and_not_sent_again() {
    let bench = Bench::new();
    bench.change.answers.lock().unwrap().push_back(no_answer());
    bench.change.probes.lock().unwrap().push_back(Probed::DidNotHappen);
    bench.hears("what is covered").await;
    assert_eq!((bench.action().await.status, bench.sent()), (Status::Intent, 1));
    bench.clock.advance(Duration::from_secs(6));
    assert!(bench.advances().await);
    assert_eq!((bench.action().await.status, bench.sent()), (Status::Done, 2));
}

#[tokio::test]
async fn what_is_covered_and_changed_meanwhile_is_left_alone() {
    let bench = Bench::new();
    *bench.change.found.lock().unwrap() = Some(json!("otherwise"));
    bench.hears("what is covered").await;
    assert_eq!((bench.action().await.status, bench.sent()), (Status::Failed, 0));
}

#[tokio::test]
async fn a_rejected_change_is_never_sent() {
    let bench = Bench::new();
    bench.hears("x").await;
    bench.decides(Verdict::Rejected { reason: None }, |_| ()).await;
    assert_eq!((bench.action().await.status, bench.sent()), (Status::Rejected, 0));
}

#[tokio::test]
async fn what_is_not_what_was_shown_is_refused() {
    let bench = Bench::new();
    bench.hears("x").await;
    let alter = |record: &mut ActionRecord| record.parameters["also"] = json!("another");
    let changes = decided(&bench.action().await, Verdict::Approved, bench.clock.now(), alter);
    bench.raw.apply(&changes).await.unwrap();
    bench.advances().await;
    let action = bench.action().await;
    assert_eq!((action.status, bench.sent()), (Status::Failed, 0));
}

#[tokio::test]
async fn a_target_that_changed_since_is_left_alone() {
    let bench = Bench::new();
    bench.hears("x").await;
    *bench.change.found.lock().unwrap() = Some(json!("otherwise"));
    bench.decides(Verdict::Approved, |_| ()).await;
    let action = bench.action().await;
    assert_eq!((action.status, bench.sent()), (Status::Failed, 0));
    assert!(action.outcome.unwrap().summary().words().contains("changed after this card was posted"));
}

#[tokio::test]
async fn a_lost_answer_is_looked_up_after_the_time_in_flight_and_not_sent_again() {
    let bench = Bench::new();
    bench.hears("x").await;
    bench.change.answers.lock().unwrap().push_back(no_answer());
    bench.decides(Verdict::Approved, |_| ()).await;
    assert_eq!(bench.action().await.status, Status::Intent, "the request may still be on its way");
    assert!(!bench.advances().await, "the thread waits");

    let happened = Outcome::Done { result: json!({}), summary: Text::from("It is so.") };
    bench.change.probes.lock().unwrap().push_back(Probed::Happened(happened));
    bench.clock.advance(Duration::from_secs(6));
    assert!(bench.advances().await);
    assert_eq!((bench.action().await.status, bench.sent()), (Status::Done, 1));
}

#[tokio::test]
async fn a_request_that_did_not_happen_is_sent_again_a_few_times_and_no_more() {
    let bench = Bench::new();
    bench.hears("x").await;
    for _ in 0..4 {
        bench.change.answers.lock().unwrap().push_back(no_answer());
        bench.change.probes.lock().unwrap().push_back(Probed::DidNotHappen);
    }
    bench.decides(Verdict::Approved, |_| ()).await;
    for _ in 0..4 {
        bench.clock.advance(Duration::from_secs(6));
        bench.advances().await;
    }
    assert_eq!((bench.action().await.status, bench.sent()), (Status::Unknown, 3));
}

/// Lets some time go by in steps of a second, and tells after how many seconds it was looked up, and how it ended.
async fn looks(bench: &Bench) -> (Vec<u64>, Status) {
    bench.hears("x").await;
    bench.change.answers.lock().unwrap().push_back(no_answer());
    bench.decides(Verdict::Approved, |_| ()).await;
    let left = || bench.change.probes.lock().unwrap().len();
    let (mut looks, mut there) = (Vec::new(), left());
    for second in 1..=100 {
        bench.clock.advance(Duration::from_secs(1));
        while bench.advances().await {}
        if left() < there {
            looks.push(second);
            there = left();
        }
    }
    (looks, bench.action().await.status)
}

#[tokio::test]
async fn what_is_quiet_is_looked_up_less_and_less_and_then_a_person_is_asked() {
    let bench = Bench::looking_for(Duration::from_secs(60));
    *bench.change.hurts_twice.lock().unwrap() = true;
    bench.change.probes.lock().unwrap().extend(vec![Probed::DidNotHappen; 20]);
    assert_eq!(looks(&bench).await, (vec![5, 7, 11, 19, 35, 60], Status::Unknown));
    assert_eq!(bench.sent(), 1, "twice would hurt");
}

#[tokio::test]
async fn what_may_be_repeated_is_repeated_when_it_was_quiet_long_enough() {
    let bench = Bench::looking_for(Duration::from_secs(60));
    bench.change.probes.lock().unwrap().extend(vec![Probed::DidNotHappen; 20]);
    assert_eq!(looks(&bench).await, (vec![5, 7, 11, 19, 35, 60], Status::Done));
    assert_eq!(bench.sent(), 2);
}

#[tokio::test]
async fn a_platform_that_is_away_for_a_while_is_asked_again() {
    let bench = Bench::looking_for(Duration::from_secs(60));
    let happened = Outcome::Done { result: json!({}), summary: Text::from("It is so.") };
    let away = Probed::CannotTell { evidence: "It is down.".into() };
    bench.change.probes.lock().unwrap().extend([away.clone(), away, Probed::Happened(happened)]);
    assert_eq!(looks(&bench).await, (vec![5, 7, 11], Status::Done));
    assert_eq!(bench.sent(), 1);
}

#[tokio::test]
async fn what_reads_otherwise_is_asked_about_at_once() {
    let bench = Bench::looking_for(Duration::from_secs(60));
    bench.change.probes.lock().unwrap().push_back(Probed::Otherwise { evidence: "It is elsewhere.".into() });
    assert_eq!(looks(&bench).await, (vec![5], Status::Unknown));
}

#[tokio::test]
async fn what_is_half_done_is_gone_on_with_even_if_twice_would_hurt() {
    let bench = Bench::looking_for(Duration::from_secs(10));
    *bench.change.hurts_twice.lock().unwrap() = true;
    let half = Probed::Unfinished { evidence: "Half of it is there.".into() };
    bench.change.probes.lock().unwrap().extend(vec![half; 20]);
    assert_eq!(looks(&bench).await, (vec![5, 7, 10], Status::Done));
    assert_eq!(bench.sent(), 2);
}

#[tokio::test]
async fn what_cannot_be_told_is_said_to_be_unknown() {
    let bench = Bench::new();
    bench.hears("x").await;
    bench.change.answers.lock().unwrap().push_back(no_answer());
    bench.change.probes.lock().unwrap().push_back(Probed::CannotTell { evidence: "It is down.".into() });
    bench.decides(Verdict::Approved, |_| ()).await;
    bench.clock.advance(Duration::from_secs(6));
    bench.advances().await;
    let action = bench.action().await;
    assert_eq!((action.status, bench.sent()), (Status::Unknown, 1));
    let told = action.outcome.unwrap().summary().words();
    assert!(told.starts_with("It was sent, but "), "{told}");
    assert!(told.contains(" It is down. It may or may not have happened"), "{told}");
}

#[tokio::test]
async fn a_node_that_fails_for_a_passing_reason_is_tried_again_after_a_wait() {
    let bench = Bench::new();
    *bench.failures.lock().unwrap() = 2;
    bench.hears("hello").await;
    for _ in 0..2 {
        assert!(!bench.advances().await, "not at once");
        bench.clock.advance(Duration::from_secs(1));
        assert!(bench.advances().await);
    }
    let steps = bench.store.steps(&thread(), 0, 10).await.unwrap();
    let errors: Vec<_> = steps.iter().map(|(_, step)| step.error.is_some()).collect();
    assert_eq!(errors, [true, true, false]);
    assert_eq!(*bench.failures.lock().unwrap(), 0);
}

#[tokio::test]
async fn two_questions_can_be_open_and_each_turn_comes_back_as_it_was() {
    let bench = Bench::new();
    bench.hears("x").await;
    let first = bench.action().await;
    bench.clock.advance(Duration::from_secs(1));
    bench.hears("y").await;
    bench.decides(Verdict::Approved, |_| ()).await; // the newest: y
    let mut approved = first.moved(Status::Approved).unwrap();
    let decision = Decision { by: Some("bo".into()), at: bench.clock.now(), verdict: Verdict::Approved };
    approved.decisions.push(decision.clone());
    let mut changes = Changes::new("late".into(), thread());
    changes.messages.push(ThreadMessage::Decided {
        action: first.id.clone(),
        approval: first.approval.clone(),
        decision,
    });
    changes.actions.push(ActionChange { expected: Some(first.revision), record: approved });
    bench.store.apply(&changes).await.unwrap();
    bench.advances().await;
    assert_eq!(*bench.change.sent.lock().unwrap(), ["\"y\"", "\"x\""]);
}

#[tokio::test]
async fn a_thread_that_cannot_be_read_begins_anew_and_says_so() {
    let bench = Bench::new();
    bench.hears("hello").await;
    let worker = WorkerId::new("w");
    let hear = ThreadMessage::Said {
        by: "ana".into(),
        text: "hello".to_owned(),
        ts: "1.2".into(),
        addressed: true,
        request: None,
    };
    let to = Destination::mailbox(thread(), true, hear);
    bench.store.ingest(&Delivery { to, dedup: Vec::new(), at: bench.clock.now() }, Handling::Later).await.unwrap();
    let now = bench.clock.now();
    let mut acquired =
        bench.store.acquire(&Holder::new(worker.clone(), Duration::from_secs(30), now), None).await.unwrap().unwrap();
    acquired.saved.snapshot = Some(json!({ "format": 1, "turns": "unheard of" }).into());
    acquired.saved.deltas.clear();
    bench.engine.advance(acquired).await.unwrap();
    let saved = bench.store.load(&thread()).await.unwrap().unwrap();
    assert_eq!(saved.restore().unwrap()["state"]["heard"], json!(["hello"]), "the new beginning is what is saved");
}

#[tokio::test]
async fn a_panic_counts_as_a_failed_attempt_and_is_told_in_the_end() {
    let bench = Bench::new();
    bench.hears("panic").await;
    let told = async || {
        let (sender, ttl) = (WorkerId::new("s"), Duration::from_secs(30));
        let mut said = String::new();
        while let Some(claimed) = bench
            .store
            .claim_outbox(&Holder::new(sender.clone(), ttl, bench.clock.now()), 1, Some(&thread()))
            .await
            .unwrap()
            .pop()
        {
            said += &format!("{claimed:?}");
            bench.store.finish_outbox(&[(claimed.clone(), Sent::Delivered(None))], None).await.unwrap();
        }
        said
    };
    assert!(!told().await.contains("went wrong"), "it is tried again first");
    for attempt in 1..Settings::default().retry.attempts {
        assert!(!bench.advances().await, "not before a wait");
        bench.clock.advance(Duration::from_secs(2));
        assert!(bench.advances().await, "attempt {attempt}");
    }
    assert!(told().await.contains("Something went wrong on my side"), "the person is told");
    bench.clock.advance(Duration::from_secs(3600));
    assert!(!bench.advances().await, "and it is never run again");
    bench.hears("hello").await;
    bench.clock.advance(Duration::from_secs(3600));
    assert!(told().await.contains("Hello."), "the thread goes on");
}

#[tokio::test]
async fn an_action_that_panics_is_looked_up_and_not_sent_blindly() {
    let bench = Bench::new();
    bench.hears("panic while it is sent").await;
    bench
        .change
        .probes
        .lock()
        .unwrap()
        .push_back(Probed::Happened(Outcome::Done { result: json!({}), summary: Text::from("It is there.") }));
    bench.decides(Verdict::Approved, |_| ()).await;
    assert_eq!((bench.action().await.status, bench.sent()), (Status::Intent, 1));
    bench.clock.advance(Duration::from_secs(6));
    assert!(bench.advances().await);
    assert_eq!((bench.action().await.status, bench.sent()), (Status::Done, 1));
}
