//! The test harness of the nodes: a scripted model, a fake platform, and a driver that runs the graph without an
//! engine.

mod record;

use std::{
    collections::VecDeque,
    sync::{Arc, LazyLock, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use countersign_capabilities::{
    Capability, CapabilityInfo, Registry, Tool, ToolError, ToolInfo,
    parameters::{incomplete, missing},
    rows::{Change, Read, Settle},
};
use countersign_config::{Additions, Config};
use countersign_core::{
    clock::{SystemClock, Timestamp},
    reply::{Card, Choice, Fact, Reply},
};
use countersign_experiments::{
    Experiments,
    settings::{SECTION, Upgrade},
};
use countersign_graph::{
    action::*,
    definition::Graph,
    node::{Ask, Context, Next, Said, State},
    store,
};
use countersign_model::{Block, Error, KnownBlock, Model, Request, Response, Usage};
use countersign_understanding::{RulesModel, phrase_book::PhraseBook};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use self::record::{record, thread};
use crate::{blob_cache::BlobCache, graph::chat_graph, plan_settings::PlanSettings, state::AgentState};

/// A model that gives prepared answers and records the requests.
#[derive(Debug, Default)]
pub(super) struct Script {
    answers: Mutex<VecDeque<Result<Response, Error>>>,
    pub(super) asked: Mutex<Vec<Request>>,
}

impl Script {
    pub(super) fn of(answers: impl IntoIterator<Item = Result<Response, Error>>) -> Arc<Self> {
        Arc::new(Self { answers: Mutex::new(answers.into_iter().collect()), asked: Mutex::default() })
    }

    pub(super) fn calls(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

#[async_trait]
impl Model for Script {
    fn name(&self) -> &str {
        "script"
    }

    async fn respond(&self, request: &Request) -> Result<Response, Error> {
        self.asked.lock().unwrap().push(request.clone());
        self.answers.lock().unwrap().pop_front().expect("the script has an answer for each question")
    }
}

/// Returns a response that calls these tools.
pub(super) fn calls<const N: usize>(calls: [(&str, Value); N]) -> Result<Response, Error> {
    let block = |(i, (name, input)): (usize, (&str, Value))| -> Block {
        KnownBlock::ToolUse { id: format!("call_{i}"), name: name.to_owned(), input }.into()
    };
    Ok(response(calls.into_iter().enumerate().map(block).collect(), "tool_use"))
}

/// Returns a response that says this.
pub(super) fn says(text: &str) -> Result<Response, Error> {
    Ok(response(vec![KnownBlock::Text { text: text.to_owned() }.into()], "end_turn"))
}

/// Returns a response with this analysis.
pub(super) fn finds(intent: &str, confidence: f64) -> Result<Response, Error> {
    calls([(
        "analyze_user_request",
        json!({ "intent_type": intent, "confidence": confidence, "user_request_summary": "…" }),
    )])
}

/// Returns the error of a model that cannot be reached.
pub(super) fn is_away() -> Result<Response, Error> {
    Err(Error::Unavailable { reason: "529".to_owned() })
}

fn response(content: Vec<Block>, stop_reason: &str) -> Response {
    let usage =
        Usage { model: "script".to_owned(), input_tokens: 10, cached_tokens: 5, output_tokens: 1, nano_usd: None };
    Response { content, stop_reason: stop_reason.to_owned(), usage }
}

/// The parameters of a fake tool.
#[derive(Deserialize, JsonSchema)]
struct Sought {
    #[serde(rename = "context")]
    _context: Option<String>,
}

/// Returns a tool that gives this answer.
fn fake_tool(name: &'static str, answer: Result<Value, ToolError>) -> Arc<dyn Tool> {
    let info = ToolInfo::new(name, "Reads something.");
    Arc::new(Read::new(answer, info, |answer, _: Sought, _| Box::pin(async move { answer.clone() })))
}

/// The parameters of a fake action.
type Given = Map<String, Value>;

/// Returns an action that knows one experiment.
fn fake_action(name: &'static str) -> Arc<dyn ActionKind> {
    Arc::new(Change {
        settle: Settle::Ask,
        ..Change::new(
            (),
            ActionInfo::new(name, "Changes something."),
            |row, given: Given, _| Box::pin(async move { proposed(row.info.name, &Value::Object(given)) }),
            |_, _: Value, _| unreachable!("nodes perform nothing"),
        )
    })
}

fn proposed(action: &str, parameters: &Value) -> Result<Proposal, PrepareError> {
    let refused = |reply: Reply| Err(Refusal::Refused { error: ErrorKind::NotFound, reply }.into());
    let (name, title) = match action {
        "create_experiment" => {
            let mut lacking = Vec::new();
            if parameters["name"].is_null() {
                lacking.push(missing("name", "What should it be called?", Vec::new()));
            }
            if parameters["context"].is_null() {
                let contexts = ["assign-prog", "mathstream"].map(str::to_owned).into();
                lacking.push(missing("context", "Which context is it for?", contexts));
            }
            if !lacking.is_empty() {
                return Err(Refusal::Missing(lacking).into());
            }
            let name = parameters["name"].as_str().unwrap();
            (name, format!("Create “{name}” in {}?", parameters["context"].as_str().unwrap()))
        }
        _ => match parameters["experiment"].as_str() {
            None => return Err(incomplete("experiment", "Which experiment?", Vec::new())),
            Some("Away") => {
                let reply = Reply::text("UpGrade isn't answering.");
                return Err(PrepareError::Unavailable { error: ErrorKind::Network, reply });
            }
            Some(name) if name.eq_ignore_ascii_case("math hints") => ("Math Hints", "Start “Math Hints”?".to_owned()),
            Some(name) => {
                let words = format!("No experiment is called “{name}”. Did you mean “Math Hints”?");
                return refused(Reply::text(words).choice("Math Hints", "start Math Hints"));
            }
        },
    };
    let card = Card {
        facts: vec![Fact::new("Status", "enrolling")],
        reject: "Cancel request".into(),
        ..Card::new(title, "Start", format!("Started “{name}”."))
    };
    let undo = Undo {
        name: "update_experiment_status".into(),
        parameters: json!({ "experiment": name, "status": "enrollmentComplete" }),
        label: "Undo: stop experiment".into(),
    };
    let parameters = json!({ "experiment": "id-1", "experiment_name": name });
    Ok(Proposal { undo: Some(undo), ..Proposal::new(parameters, card) })
}

fn registry() -> Registry {
    let down = ToolError { kind: ErrorKind::Network, reply: Reply::text("UpGrade isn't answering."), transient: true };
    let tools = [
        fake_tool("get_context_metadata", Ok(json!({ "assign-prog": { "CONDITIONS": ["control", "variant"] } }))),
        fake_tool(
            "get_experiment_names",
            Ok(json!({ "total": 1, "experiments": [{ "id": "1", "name": "Math Hints" }] })),
        ),
        fake_tool("explain_upgrade_concept", Ok(json!({ "meaning": "A *weight* is a share of participants." }))),
        fake_tool("check_upgrade_health", Err(down)),
        fake_tool("count_things", Ok(json!({ "things": 7 }))),
    ];
    let actions = ["create_experiment", "update_experiment_status"].map(fake_action);
    with_phrases(Fakes { tools: tools.into(), actions: actions.into() })
}

/// Returns the default settings of the largest capability.
pub(crate) fn settings() -> Upgrade {
    let additions = Additions { sections: &[SECTION], measures: &[] };
    let config = Config::load(None, &Default::default(), &additions).unwrap();
    let api_url = Some("http://127.0.0.1:3030/api".to_owned());
    Upgrade { api_url, ..config.sections.get::<Upgrade>().clone() }
}

/// Returns the registry of the largest capability alone.
pub(crate) fn experiments() -> Registry {
    Registry::build(vec![Arc::new(Experiments::new(&settings(), Arc::new(SystemClock)).unwrap())]).unwrap()
}

/// Returns the phrases of the largest capability. Its registry takes a while to build, so there is one for all tests.
pub(crate) fn book() -> Arc<PhraseBook> {
    static BOOK: LazyLock<Arc<PhraseBook>> = LazyLock::new(|| experiments().book);
    BOOK.clone()
}

/// Returns a registry of these fakes, with the phrases about experiments.
pub(super) fn with_phrases(fakes: Fakes) -> Registry {
    let mut registry = Registry::build(vec![Arc::new(fakes)]).unwrap();
    registry.book = book();
    registry
}

/// A capability of fakes.
pub(super) struct Fakes {
    pub(super) tools: Vec<Arc<dyn Tool>>,
    pub(super) actions: Vec<Arc<dyn ActionKind>>,
}

impl Capability for Fakes {
    fn info(&self) -> CapabilityInfo {
        CapabilityInfo {
            suggestions: &[("List experiments", "list experiments"), ("Is UpGrade running?", "is UpGrade running?")],
            invitations: &[
                ("See what there is", "list experiments"),
                ("Look at a context", "what conditions does assign-prog have?"),
                ("With an approval", "start the Math Hints experiment"),
                ("Make something new", "create an experiment Hint Timing in assign-prog"),
            ],
            ..CapabilityInfo::new("fakes", "What a test needs.")
        }
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.tools.clone()
    }

    fn actions(&self) -> Vec<Arc<dyn ActionKind>> {
        self.actions.clone()
    }

    fn subject(&self, parameters: &Value, result: &Value) -> Option<String> {
        let places = [&result["name"], &parameters["name"], &parameters["experiment_name"], &parameters["experiment"]];
        places.into_iter().find_map(Value::as_str).map(str::to_owned)
    }

    fn next_steps(&self, record: &ActionRecord) -> Vec<Choice> {
        let name = self.subject(&record.parameters, &Value::Null).unwrap_or_default();
        match record.status {
            Status::Done | Status::Unknown => vec![Choice::new("Show details", format!("show “{name}”"))],
            _ => Vec::new(),
        }
    }
}

/// The graph under test, with its state, open cards and clock.
pub(super) struct Harness {
    graph: Graph<AgentState>,
    pub(super) state: AgentState,
    pub(super) open: Vec<ActionRecord>,
    suspended: Value,
    now: Timestamp,
}

/// The output of one turn.
pub(super) struct Told {
    pub(super) says: Vec<Reply>,
    pub(super) asked: Option<Ask>,
    pub(super) usage: Option<store::Usage>,
    pub(super) way: Vec<&'static str>,
    /// The waits before nodes.
    pub(super) waits: Vec<Duration>,
    /// The events of plans, each as its text and its error.
    pub(super) events: Vec<String>,
}

impl Told {
    /// Returns the words of the replies, each followed by its buttons in brackets, and the title of the card.
    pub(super) fn read(&self) -> String {
        let mut lines: Vec<String> = Vec::new();
        for reply in &self.says {
            lines.push(reply.words());
            lines.extend(reply.choices.iter().map(|choice| format!("[{} → {}]", choice.label, choice.says)));
        }
        lines.extend(self.asked.iter().map(|ask| format!("card: {}", ask.proposal.card.title)));
        lines.join("\n")
    }
}

/// A blob cache in memory.
#[derive(Default)]
struct MemoryBlobCache(Mutex<Vec<Vec<u8>>>);

#[async_trait]
impl BlobCache for MemoryBlobCache {
    async fn put(&self, bytes: &[u8]) -> Option<String> {
        let mut all = self.0.lock().unwrap();
        all.push(bytes.to_vec());
        Some((all.len() - 1).to_string())
    }

    async fn get(&self, name: &str) -> Option<Vec<u8>> {
        self.0.lock().unwrap().get(name.parse::<usize>().ok()?).cloned()
    }
}

impl Harness {
    pub(super) fn with(model: Arc<dyn Model>) -> Self {
        Self::on(model, registry())
    }

    /// Creates a harness with these tools and actions.
    pub(super) fn on(model: Arc<dyn Model>, registry: Registry) -> Self {
        Self::with_settings(model, registry, PlanSettings::default())
    }

    /// Creates a harness without a language model, with these settings of plans.
    pub(super) fn with_plans(plans: PlanSettings) -> Self {
        Self::with_settings(Arc::new(RulesModel(registry().book)), registry(), plans)
    }

    fn with_settings(model: Arc<dyn Model>, registry: Registry, plans: PlanSettings) -> Self {
        let graph = chat_graph(
            model,
            Arc::new(RulesModel(registry.book.clone())),
            registry,
            Arc::new(MemoryBlobCache::default()),
            plans,
        )
        .unwrap();
        let now = Timestamp(1_700_000_000_000);
        Self { graph, state: AgentState::default(), open: Vec::new(), suspended: Value::Null, now }
    }

    /// Creates a harness without a language model.
    pub(super) fn with_rules() -> Self {
        Self::with(Arc::new(RulesModel(registry().book)))
    }

    pub(super) async fn says(&mut self, text: &str) -> Told {
        self.now = Timestamp(self.now.0 + 1_000);
        self.state.begin_turn(&Said {
            by: "ana".into(),
            text: text.to_owned(),
            at: self.now,
            ts: None,
            zone: None,
            request: None,
        });
        self.follow(self.graph.start(), None).await
    }

    /// Lets time pass.
    pub(super) fn waits(&mut self, time: Duration) {
        self.now = self.now + time;
    }

    /// Continues the turn at this node, as after a restart.
    pub(super) async fn has_next_step(&mut self, node: &'static str) -> Told {
        self.follow(node, None).await
    }

    /// Resumes with the decisions on the newest card, and the outcome of its action.
    pub(super) async fn ends(&mut self, status: Status, decisions: Vec<Decision>, outcome: Option<Outcome>) -> Told {
        let mut record = self.open.pop().expect("a card is open");
        record.status = status;
        record.decisions = decisions;
        record.outcome = outcome;
        self.state.resume(self.suspended.take()).unwrap();
        self.follow("respond", Some(record)).await
    }

    async fn follow(&mut self, start: &'static str, ended: Option<ActionRecord>) -> Told {
        let mut told =
            Told { says: Vec::new(), asked: None, usage: None, way: Vec::new(), waits: Vec::new(), events: Vec::new() };
        let mut name = start;
        for _ in 0..30 {
            told.way.push(name);
            let context = Context {
                thread: thread(),
                run: "r1".into(),
                now: self.now,
                attempt: 0,
                ended: ended.clone(),
                open: self.open.clone(),
            };
            let node = self.graph.node(name).expect("the builder checked it");
            // The state is stored and loaded before each node.
            let stored = serde_json::to_string(&self.state).unwrap();
            let step = node.run(serde_json::from_str(&stored).unwrap(), &context).await.unwrap();
            self.state = step.state;
            told.events.extend(self.state.take_events().iter().map(|event| match event["reason"].as_str() {
                Some(error) => format!("{}: {error}", event["text"].as_str().unwrap()),
                None => event["text"].as_str().unwrap().to_owned(),
            }));
            if let Next::Later(_, wait) = step.next {
                told.waits.push(wait);
            }
            told.says.extend(step.says);
            if let Some(usage) = step.usage {
                let sum = told.usage.get_or_insert_with(store::Usage::default);
                sum.calls += usage.calls;
                sum.input_tokens += usage.input_tokens;
            }
            match step.next {
                Next::Go(next) | Next::Later(next, _) => {
                    assert!(node.targets().contains(&next), "{name} may not go to {next}");
                    name = next;
                }
                Next::Close(_) | Next::End => return told,
                Next::Ask(ask) => {
                    self.suspended = self.state.suspend();
                    self.open.push(record(&ask, self.now));
                    told.asked = Some(*ask);
                    return told;
                }
            }
        }
        panic!("the graph does not end: {:?}", told.way)
    }
}
