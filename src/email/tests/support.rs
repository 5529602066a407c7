//! The support of the tests: a store, a scripted model, an account, sources of context, and the engine that joins them.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use countersign_core::{
    clock::{Clock, ManualClock, Timestamp},
    ids::{ApprovalId, CommitId, GraphName, MessageTs, ThreadId},
    reply::Card,
};
use countersign_graph::{
    action::{ActionRecord, ActionRequest, Approver, Decision, Evidence, NewRecord, Policy, Scope, Status, Verdict},
    engine::{Engine, EngineDeps, Settings},
    keyring::Keyring,
    store::{
        ActionChange, ActionFilter, ActionFollowUp, Changes, Delivery, Destination, External, Handling, Holder, Keep,
        Outbound, Sent as OutboxSent, StepRecord, Store, ThreadMessage,
    },
};
use countersign_mail::{Address, Mail, MailId, MailThreadId, RawMail};
use countersign_model::Model;
use countersign_store::{
    sealed::{SealScope, SealedStore},
    sqlite::SqliteStore,
};
use jiff::tz::TimeZone;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    MAIL, SOURCE,
    automatic::AutomaticAnswers,
    deps::Deps,
    graph::{actions, mail_graph},
    register::{Entry, MailRegister, REGISTERS},
    rules::AutomaticSettings,
    send::{self, SendParameters},
    state::{Arrival, MailState},
};

pub(crate) use super::fakes::*;

/// The bot.
pub(crate) const US: &str = "UBOT";

/// Returns an ordinary mail.
pub(crate) fn mail() -> Mail {
    Mail::read(&raw("m1", "Prices", "How much is the small plan?"))
}

/// Returns an ordinary mail as the server stores it.
pub(crate) fn raw(id: &str, subject: &str, text: &str) -> RawMail {
    let bytes = format!(
        "From: Dana Fields <dana@example.org>\r\nTo: Support <us@example.com>\r\nSubject: {subject}\r\n\
         Message-ID: <{id}@example.org>\r\nDate: Tue, 4 Mar 2025 09:00:00 +0000\r\n\
         Content-Type: text/plain; charset=utf-8\r\n\r\n{text}\r\n"
    )
    .into_bytes();
    RawMail {
        id: MailId::new(id),
        thread: Some(MailThreadId::new(format!("t-{id}"))),
        received_at: Timestamp(1_741_078_800_000),
        labels: Vec::new(),
        size: bytes.len() as u64,
        bytes,
        is_cut: false,
    }
}

pub(crate) fn thread() -> ThreadId {
    ThreadId { team: "T1".into(), channel: "C1".into(), root: "1700000000.000100".into() }
}

/// Returns the record of an answer that was just asked for.
pub(crate) fn send_record(mail: &str, to: &str, run: &str) -> ActionRecord {
    let answer = SendParameters {
        mail: MailId::new(mail),
        from: Address::parse("us@example.com").unwrap(),
        to: Address { name: None, address: to.to_owned() },
        subject: "Re: Prices".into(),
        in_reply_to: None,
        references: Vec::new(),
        thread: None,
        text: "Yes.".into(),
        about: Default::default(),
        choices: Vec::new(),
    };
    let record = NewRecord {
        id: format!("A-{mail}-{run}").as_str().into(),
        approval: ApprovalId::new(&thread(), 1),
        thread: thread(),
        run: run.into(),
        name: send::NAME.into(),
        action_version: 1,
        parameters: serde_json::to_value(answer).unwrap(),
        preconditions: json!({}),
        policy: policy(),
        card: Card {
            title: "Send?".into(),
            facts: Vec::new(),
            approve: "Send".into(),
            reject: "Reject…".into(),
            done: "Sent.".into(),
            editable: true,
            ..Card::default()
        },
        slot: "turn:1".into(),
        requested_by: US.into(),
        requested_at: Timestamp(0),
        expires_at: Timestamp(1),
        undo: None,
        scope: Scope::of(format!("mail:{mail}")),
        evidence: Evidence::default(),
    };
    record.signed(&keys())
}

fn policy() -> Policy {
    Policy { approvers: vec![Approver::Channel], own_request: true, needed: 1, typed: true, ..Policy::default() }
}

/// A store in a folder of its own.
pub(crate) struct TestStore {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: ManualClock,
    _folder: tempfile::TempDir,
}

impl TestStore {
    pub(crate) fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = ManualClock::default();
        let store = SqliteStore::open(folder.path().join("test.sqlite"), Arc::new(clock.clone())).unwrap();
        let scope = SealScope { registers: &[], register_families: &[REGISTERS] };
        let store = SealedStore::new(Arc::new(store), keys(), scope);
        Self { store: Arc::new(store), clock, _folder: folder }
    }
}

/// Returns the keys of digests and seals.
fn keys() -> Arc<Keyring> {
    Arc::new(Keyring::new(vec![vec![7; 32]]).unwrap())
}

/// The mail graph on an engine, with everything around it.
pub(crate) struct World {
    pub(crate) store: TestStore,
    pub(crate) account: Arc<FakeAccount>,
    pub(crate) lookup: Arc<FakeLookup>,
    pub(crate) model: Option<Arc<Script>>,
    pub(crate) book: MailRegister,
    engine: Engine<MailState>,
    said: Mutex<u32>,
}

/// The way in which a world is made.
#[derive(Default)]
pub(crate) struct Making {
    pub(crate) settings: AutomaticSettings,
    pub(crate) answers: Option<Vec<Result<String, countersign_model::Error>>>,
    pub(crate) answer_takes: Duration,
}

/// Returns settings under which answers may be sent without a person.
pub(crate) fn automatic() -> AutomaticSettings {
    AutomaticSettings { is_on: true, ..AutomaticSettings::default() }
}

impl World {
    /// Creates a world in which nothing is sent without a person.
    pub(crate) fn with(answers: Vec<Result<String, countersign_model::Error>>) -> Self {
        Self::made(Making { answers: Some(answers), ..Making::default() })
    }

    /// Creates a world in which the operator has turned automatic answers on.
    pub(crate) fn automatic(answers: Vec<Result<String, countersign_model::Error>>) -> Self {
        Self::made(Making { answers: Some(answers), settings: automatic(), ..Making::default() })
    }

    /// Creates a world without a language model.
    pub(crate) fn without_model(settings: AutomaticSettings) -> Self {
        Self::made(Making { settings, ..Making::default() })
    }

    pub(crate) fn made(making: Making) -> Self {
        let Making { settings, answers, answer_takes } = making;
        let store = TestStore::open();
        let clock: Arc<dyn Clock> = Arc::new(store.clock.clone());
        let takes = (!answer_takes.is_zero()).then(|| (store.clock.clone(), answer_takes));
        let model = answers
            .map(|answers| Arc::new(Script { answers: Mutex::new(answers.into()), asked: Mutex::default(), takes }));
        let (account, lookup) = (Arc::new(FakeAccount::default()), Arc::new(FakeLookup::default()));
        let book = MailRegister::new(store.store.clone(), "us@example.com");
        let standing = Arc::new(AutomaticAnswers::new(book.clone(), clock.clone(), settings.clone(), TimeZone::UTC));
        let remote = model.clone().map(|model| model as Arc<dyn Model>);
        let deps = Arc::new(Deps {
            account: account.clone(),
            lookup: lookup.clone(),
            classifier: remote.clone(),
            writer: remote,
            settings,
            automatic: standing.clone(),
            book: book.clone(),
            time_zone: TimeZone::UTC,
            clock: clock.clone(),
            in_flight: Duration::from_secs(60),
            us: US.into(),
        });
        let engine = Engine::new(EngineDeps {
            actions: actions(&deps),
            graph: mail_graph(deps).unwrap(),
            store: store.store.clone(),
            clock,
            policy_for: Arc::new(|_| policy()),
            standing,
            entitled: Arc::new(Everybody),
            keys: keys(),
            admission: Arc::new(Everybody),
            settings: Settings::default(),
            stopping: CancellationToken::new(),
        });
        Self { store, account, lookup, model, book, engine, said: Mutex::new(0) }
    }

    /// Has a mail arrive in a thread of its own, and works on it.
    pub(crate) async fn arrives(&self, raw: RawMail) -> ThreadId {
        let nth = {
            let mut inbox = self.account.inbox.lock().unwrap();
            inbox.push(raw.clone());
            inbox.len()
        };
        let thread = ThreadId { root: format!("17000000{nth:02}.000100").as_str().into(), ..thread() };
        let mail = Mail::read(&raw);
        let entry = self.book.add(Entry::new(&mail, self.now())).await.unwrap();
        self.book
            .update(&entry.mail, |entry| {
                (entry.thread, entry.is_delivered) = (Some(thread.clone()), true);
                true
            })
            .await
            .unwrap();
        let stored =
            self.store.store.put_blob(&serde_json::to_vec(&mail).unwrap(), Keep::WithThread(&thread)).await.unwrap();
        self.event(&thread, raw.id.as_str(), &Arrival::new(&mail, Some(stored), false)).await;
        thread
    }

    /// Delivers an event to a thread, and works on it.
    pub(crate) async fn event(&self, thread: &ThreadId, key: &str, arrival: &Arrival) {
        let event = External::new(SOURCE, key, serde_json::to_value(arrival).unwrap()).unwrap();
        let dedup = vec![event.dedup(thread)];
        self.deliver(thread, ThreadMessage::External(event), dedup).await;
        self.work(thread).await;
    }

    /// Has a person say something in a thread, and works on it.
    pub(crate) async fn says(&self, thread: &ThreadId, text: &str) {
        self.writes(thread, text, false).await;
    }

    /// Says something to the bot in a mail's thread as Ana, with a mention.
    pub(crate) async fn tells(&self, thread: &ThreadId, text: &str) {
        self.writes(thread, text, true).await;
    }

    async fn writes(&self, thread: &ThreadId, text: &str, addressed: bool) {
        let nth = {
            let mut said = self.said.lock().unwrap();
            *said += 1;
            *said
        };
        let ts = MessageTs::new(format!("1700009{nth:03}.000100"));
        let message = ThreadMessage::Said { by: "ana".into(), text: text.to_owned(), ts, addressed, request: None };
        self.deliver(thread, message, Vec::new()).await;
        self.work(thread).await;
    }

    /// Has a person press a button that requests the change of a record again.
    pub(crate) async fn requests(&self, thread: &ThreadId, record: &ActionRecord) {
        let request = ActionRequest { action: record.name.clone(), parameters: Value::clone(&record.parameters) };
        let message = ThreadMessage::Said {
            by: "ana".into(),
            text: format!("try again: {}", record.act()),
            ts: thread.root.clone(),
            addressed: true,
            request: Some(request),
        };
        self.deliver(thread, message, Vec::new()).await;
        self.work(thread).await;
    }

    /// Has a person press *Check again* on a record, and works on it.
    pub(crate) async fn checks_again(&self, thread: &ThreadId, record: &ActionRecord) {
        let follow_up = ActionFollowUp::CheckAgain;
        let message = ThreadMessage::FollowUp { action: record.id.clone(), by: "ana".into(), follow_up };
        self.deliver(thread, message, Vec::new()).await;
        self.work(thread).await;
    }

    async fn deliver(&self, thread: &ThreadId, message: ThreadMessage, dedup: Vec<countersign_core::ids::DedupKey>) {
        let to = Destination::Mailbox { thread: thread.clone(), addressed: true, message, graph: GraphName::new(MAIL) };
        self.store.store.ingest(&Delivery { to, dedup, at: self.now() }, Handling::Later).await.unwrap();
    }

    /// Advances a thread until it waits, over waits of up to ten minutes.
    pub(crate) async fn work(&self, thread: &ThreadId) {
        for _ in 0..20 {
            let ttl = Duration::from_secs(30);
            let acquired = self.store.store.acquire(&Holder::new("w1", ttl, self.now()), Some(thread)).await.unwrap();
            let Some(acquired) = acquired else {
                if self.store.store.backlog().await.unwrap().threads == 0 {
                    return;
                }
                self.store.clock.advance(Duration::from_secs(31));
                continue;
            };
            Box::pin(self.engine.advance(acquired)).await.unwrap();
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.store.clock.now()
    }

    /// Returns the newest action of a thread.
    pub(crate) async fn card(&self, thread: &ThreadId) -> ActionRecord {
        self.cards(thread).await.into_iter().next().expect("the thread has a card")
    }

    /// Returns the actions of a thread, newest first.
    pub(crate) async fn cards(&self, thread: &ThreadId) -> Vec<ActionRecord> {
        let filter = ActionFilter::of(thread, &[], 20);
        self.store.store.actions(&filter).await.unwrap()
    }

    /// Decides the open card of a thread as a person, and works on it.
    pub(crate) async fn decide(&self, thread: &ThreadId, verdict: Verdict) {
        let record = self.card(thread).await;
        assert_eq!(record.status, Status::Pending, "{:?}", record.outcome);
        let to = match &verdict {
            Verdict::Approved => Status::Approved,
            Verdict::Rejected { .. } => Status::Rejected,
            Verdict::Expired => Status::Expired,
            Verdict::Cancelled | Verdict::Obsolete { .. } => Status::Cancelled,
            Verdict::Superseded => Status::Superseded,
        };
        let decision = Decision { by: Some("bo".into()), at: self.now(), verdict };
        let mut decided = record.moved(to).unwrap();
        decided.decisions.push(decision.clone());
        let mut changes = Changes::new(CommitId::fresh(), thread.clone());
        changes.messages.push(ThreadMessage::Decided {
            action: decided.id.clone(),
            approval: decided.question().clone(),
            decision,
        });
        changes.actions.push(ActionChange { expected: Some(record.revision), record: decided });
        self.store.store.apply(&changes).await.unwrap();
        self.work(thread).await;
    }

    /// Returns the state of a thread.
    pub(crate) async fn state(&self, thread: &ThreadId) -> MailState {
        let saved = self.store.store.load(thread).await.unwrap().expect("the thread was saved");
        serde_json::from_value(saved.restore().unwrap()["state"].clone()).unwrap()
    }

    /// Returns the entry of a mail.
    pub(crate) async fn entry(&self, mail: &str) -> Entry {
        self.book.entry(&MailId::new(mail)).await.unwrap().expect("the mail is listed")
    }

    /// Returns the nodes that ran, in order, each with the node or the state that follows.
    pub(crate) async fn way(&self, thread: &ThreadId) -> Vec<String> {
        let steps = self.steps(thread).await;
        steps.into_iter().map(|step| format!("{} → {}", step.node, step.next)).collect()
    }

    /// Returns the steps of a thread.
    pub(crate) async fn steps(&self, thread: &ThreadId) -> Vec<StepRecord> {
        let steps = self.store.store.steps(thread, 0, 100).await.unwrap();
        steps.into_iter().map(|(_, step)| step).collect()
    }

    /// Takes the messages of a thread out of the outbox: the words of the replies, and the titles of the cards.
    pub(crate) async fn posted(&self, thread: &ThreadId) -> Vec<String> {
        let mut posted = Vec::new();
        let ttl = Duration::from_secs(30);
        while let Some(claimed) =
            self.store.store.claim_outbox(&Holder::new("w1", ttl, self.now()), 1, Some(thread)).await.unwrap().pop()
        {
            match &claimed.outgoing.body {
                Outbound::Reply { reply } => posted.push(reply.words()),
                Outbound::Card { card, state } => posted.push(format!("[{}] {}", state_name(state), card.title)),
                Outbound::Elsewhere { channel, body } => posted.push(format!("{channel}: {body}")),
                _ => {}
            }
            self.store.store.finish_outbox(&[(claimed.clone(), OutboxSent::Dropped)], None).await.unwrap();
        }
        posted
    }

    /// Returns the texts that were sent.
    pub(crate) fn sent(&self) -> Vec<String> {
        self.account.sent.lock().unwrap().iter().map(|sent| sent.text.clone()).collect()
    }

    /// Returns the situations of the questions that the model was asked.
    pub(crate) fn asked(&self) -> Vec<Value> {
        let model = self.model.as_ref().expect("there is a model");
        model.asked.lock().unwrap().iter().map(|request| request.situation.clone()).collect()
    }
}

fn state_name(state: &countersign_core::reply::CardState) -> &'static str {
    use countersign_core::reply::CardState::{Closed, Open, Running};
    match state {
        Open { .. } => "open",
        Running { .. } => "running",
        Closed { .. } => "closed",
    }
}
