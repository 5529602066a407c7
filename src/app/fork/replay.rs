//! The copy of a thread: an engine on a store that is deleted at the end. Its messages are in its record; nobody sends them.

use std::{sync::Arc, time::Duration};

use anyhow::Context as _;
use async_trait::async_trait;
use countersign_assistant::{graph::chat_graph, plan_settings::PlanSettings, state::AgentState};
use countersign_capabilities::{Capability, Registry};
use countersign_config::Config;
use countersign_conversation::{approvals::policy, presentation::links::Links};
use countersign_core::{
    clock::{Clock, Timestamp},
    ids::{CommitId, MessageTs, ThreadId, UserId},
};
use countersign_graph::{
    action::{ActionRecord, Lapse},
    admission::{Admission, Admits},
    engine::{Engine, EngineDeps, Settings},
    json::Json,
    keyring::Keyring,
    standing::Entitled,
    store::{
        Acquired, AuditKind, Changes, Delivery, Destination, Handling, Holder, Saved, StepRecord, Store, Then,
        ThreadMessage,
    },
};
use countersign_store::sqlite::SqliteStore;
use countersign_understanding::RulesModel;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::{
    super::{dependencies, installed},
    record::{Record, Recorded},
};

/// The time for which the copy is leased. Its clock stands still, so that a lease never ends.
const LEASE: Duration = Duration::from_secs(60);

/// The copy of a thread at a step, which can go on.
pub(super) struct Replay {
    engine: Engine<AgentState>,
    store: Arc<dyn Store>,
    record: Arc<Record>,
    thread: ThreadId,
    /// The person who wrote last, who writes in the copy as well.
    by: UserId,
    at: Timestamp,
    /// The number of messages so far.
    said: u32,
    /// The number of entries of the copy's record that were looked at.
    looked_at: usize,
    _folder: TempDir,
}

impl Replay {
    /// Makes a copy of a thread in `source` with the checkpoint after this step. A turn that is not at its end then goes
    /// on; returns what happened in it.
    pub(super) async fn start(
        config: &Config,
        source: &dyn Store,
        thread: &ThreadId,
        step: StepRecord,
        checkpoint: &Value,
        mut record: Record,
    ) -> anyhow::Result<(Self, Option<Value>)> {
        let at = step.at;
        let clock: Arc<dyn Clock> = Arc::new(StandingClock(at));
        let folder = tempfile::tempdir()
            .context("cannot create a folder for the copy; set TMPDIR to one that can be written to")?;
        let store: Arc<dyn Store> = Arc::new(SqliteStore::open(folder.path().join("copy.sqlite"), clock.clone())?);
        record.fetch(source, &*store).await?;
        let record = Arc::new(record);
        let turn = &checkpoint["state"]["turn"];
        let people = Arc::new(People { zone: turn["zone"].as_str().map(str::to_owned) });
        let engine = engine(config, &store, clock, people, &record)?;
        let by = UserId::new(turn["by"].as_str().unwrap_or("UNKNOWN"));
        let mut replay =
            Self { engine, store, record, thread: thread.clone(), by, at, said: 0, looked_at: 0, _folder: folder };
        let copied = replay.copied(step, checkpoint).await?;
        replay.engine.advance(copied).await?;
        let said = turn["said"].as_str().unwrap_or_default();
        let rest = (checkpoint["cursor"] != "idle").then_some(replay.turn(said).await?);
        Ok((replay, rest))
    }

    /// Saves the checkpoint as the first step of a new thread.
    async fn copied(&mut self, step: StepRecord, checkpoint: &Value) -> anyhow::Result<Acquired> {
        // A thread begins with a message; this one is acknowledged and never read.
        let ts = self.next_ts();
        let begun = self.deliver(ThreadMessage::Overheard { by: self.by.clone(), ts }).await?;
        let whole = Json::of(checkpoint);
        let mut changes = Changes::new(CommitId::fresh(), self.thread.clone());
        changes.acks = begun.messages.iter().map(|message| message.seq).collect();
        changes.snapshot = Some(whole.clone());
        let delta = Json::from(json!([{ "op": "add", "path": "", "value": checkpoint }]));
        changes.steps.push(StepRecord { delta, ..step });
        let lease = begun.lease;
        let (version, _) = self.store.commit(&lease, begun.saved.version, &changes, Then::Keep, None).await?;
        let saved = Saved { version, snapshot: Some(whole), deltas: Vec::new() };
        Ok(Acquired { lease, saved, messages: Vec::new(), decided: None })
    }

    /// Says something in the copy. Returns what happened.
    pub(super) async fn say(&mut self, words: &str) -> anyhow::Result<Value> {
        let (by, text, ts) = (self.by.clone(), words.to_owned(), self.next_ts());
        let heard = self.deliver(ThreadMessage::Said { by, text, ts, addressed: true, request: None }).await?;
        self.engine.advance(heard).await?;
        self.turn(words).await
    }

    async fn deliver(&self, message: ThreadMessage) -> anyhow::Result<Acquired> {
        let to = Destination::mailbox(self.thread.clone(), true, message);
        let holder = Holder::new("fork", LEASE, self.at);
        let delivery = Delivery { to, dedup: Vec::new(), at: self.at };
        let (_, acquired) = self.store.ingest(&delivery, Handling::Lease(&holder)).await?;
        acquired.context("the copy takes no message")
    }

    /// Returns the time stamp of the next message.
    fn next_ts(&mut self) -> MessageTs {
        self.said += 1;
        let millis = self.at.millis();
        MessageTs::new(format!("{}.{:03}{:03}", millis / 1000, millis % 1000, self.said))
    }

    /// Describes what happened since the last turn.
    async fn turn(&mut self, said: &str) -> anyhow::Result<Value> {
        let entries = self.store.audit(&self.thread).await?.entries;
        let new = entries[self.looked_at..].iter().map(|entry| &entry.event);
        let answers = new.filter(|event| event.kind == AuditKind::Answered).map(|event| &event.detail["text"]);
        let (not_on_record, refused) = self.record.take_asked_in_vain();
        let answers: Vec<_> = answers.collect();
        let turn = json!({ "said": said, "answers": answers, "not_on_record": not_on_record, "refused": refused });
        self.looked_at = entries.len();
        Ok(turn)
    }

    /// Lists the reads on record.
    pub(super) fn on_record(&self) -> Value {
        self.record.summary()
    }
}

/// Creates the engine of the chat graph for the copy. It has no client of a model or of Slack, and those of the platforms are
/// never called.
fn engine(
    config: &Config,
    store: &Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    people: Arc<People>,
    record: &Arc<Record>,
) -> anyhow::Result<Engine<AgentState>> {
    let installed = installed::capabilities(config, clock.clone())?;
    let links = Links::new(store.clone(), None);
    let (all, standing) =
        dependencies::with_standing_approvals(config, installed, store.clone(), clock.clone(), people.clone(), links)?;
    let recorded = |inner| -> Arc<dyn Capability> { Arc::new(Recorded::new(inner, record.clone())) };
    let registry = Registry::build(all.capabilities.into_iter().map(recorded).collect())?;
    let rules = Arc::new(RulesModel(registry.book.clone()));
    let blobs = Arc::new(dependencies::StoreBlobCache(store.clone()));
    let policies = config.approvals.clone();
    Ok(Engine::new(EngineDeps {
        graph: chat_graph(rules.clone(), rules, registry.clone(), blobs, PlanSettings::from(&config.plans))?,
        actions: registry.actions,
        store: store.clone(),
        clock,
        policy_for: Arc::new(move |matter| policy::policy_for(&policies, matter)),
        standing,
        entitled: people.clone(),
        keys: Arc::new(Keyring::new(vec![rand::random::<[u8; 32]>().to_vec()])?),
        admission: people,
        settings: Settings { step_timeout: config.workers.step_timeout, ..Settings::default() },
        stopping: CancellationToken::new(),
    }))
}

/// A clock that stands at the time of the step, so that “tomorrow” is the day after it.
#[derive(Debug)]
struct StandingClock(Timestamp);

impl Clock for StandingClock {
    fn now(&self) -> Timestamp {
        self.0
    }
}

/// The people of the copy: everyone may write, and nobody may approve.
#[derive(Debug)]
struct People {
    /// The time zone of the person who wrote last.
    zone: Option<String>,
}

#[async_trait]
impl Admission for People {
    async fn admits(&self, _: &ThreadId, _: &UserId, _: &MessageTs) -> Admits {
        Admits::Yes
    }

    async fn zone(&self, _: &UserId) -> Option<String> {
        self.zone.clone()
    }
}

#[async_trait]
impl Entitled for People {
    async fn who_may_approve(&self, _: &ActionRecord, _: &[UserId]) -> Vec<UserId> {
        Vec::new()
    }

    async fn lapses(&self, _: &ActionRecord) -> Vec<Lapse> {
        Vec::new()
    }
}
