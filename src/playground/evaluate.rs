//! `countersign-playground evaluate`: measures how well the configured model understands a set of utterances.
//!
//! Each utterance runs through the nodes of the chat graph as in production, up to a card, a
//! question or an answer. A stand-in replaces the platform, and nothing is approved or sent. The
//! result is compared with the expected one. Without a key for a language model, the grammar is
//! evaluated.

use std::{fmt, path::Path, sync::Arc};

use anyhow::Context as _;
use countersign::app::dependencies;
use countersign_assistant::{
    blob_cache::NoBlobCache, graph::chat_graph, plan_settings::PlanSettings, state::AgentState,
};
use countersign_capabilities::Registry;
use countersign_config::Config;
use countersign_core::{
    clock::{Clock, SystemClock},
    ids::{RunId, ThreadId},
};
use countersign_graph::{
    definition::Graph,
    node::{Context, Next, NodeError, Said, State},
};
use countersign_model::Model as _;
use countersign_understanding::situation::{Analysis, Draft};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::platform_stand_in::{LAST_SUBJECT, PlatformOptions, PlatformStandIn};

/// The maximum number of nodes that are run for an utterance; no turn needs as many.
const MAX_NODES: usize = 40;

/// The confidence below which a message counts as not understood.
const MIN_CONFIDENCE: f64 = 0.7;

/// An utterance, the state of the thread before it, and the expected interpretation.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// The message.
    pub said: String,
    /// The state of the thread before the message; missing fields have their defaults.
    #[serde(default, deserialize_with = "state_before")]
    pub given: AgentState,
    /// The expected intent: `needs_info`, `direct_answer`, or `unclear` if the person should be
    /// asked.
    pub intent: String,
    /// The expected capability; if it is missing, any will do.
    #[serde(default)]
    pub capability: Option<String>,
    /// The expected action, if the message requests a change.
    #[serde(default)]
    pub action: Option<String>,
    /// The expected tool, if there is one; `drop_draft` if the draft should be discarded.
    #[serde(default)]
    pub tool: Option<String>,
    /// The expected parameters of the action or tool; others are ignored.
    #[serde(default)]
    pub parameters: Map<String, Value>,
    /// The number of requests in the message, if there are several.
    #[serde(default, deserialize_with = "at_least_two")]
    pub steps: Option<usize>,
}

fn state_before<'de, D: Deserializer<'de>>(deserializer: D) -> Result<AgentState, D::Error> {
    let mut given = Map::deserialize(deserializer)?;
    if let Some(subject) = given.remove(LAST_SUBJECT) {
        given.insert("last_subject".to_owned(), subject);
    }
    serde_json::from_value(Value::Object(given)).map_err(serde::de::Error::custom)
}

fn at_least_two<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<usize>, D::Error> {
    let steps = usize::deserialize(deserializer)?;
    (steps > 1).then_some(Some(steps)).ok_or_else(|| serde::de::Error::custom("`steps` must be at least 2"))
}

/// The result for one utterance.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseResult {
    /// The message.
    pub said: String,
    /// The differences from the expected interpretation; empty if there are none.
    pub wrong: Vec<String>,
}

/// The results of all utterances.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    /// The name of the model that was asked.
    pub model: String,
    /// The results, one for each utterance.
    pub lines: Vec<CaseResult>,
    /// The number of calls to a language model.
    pub calls: u64,
    /// The number of tokens of these calls, input and output together.
    pub tokens: u64,
}

impl Score {
    /// Returns the number of utterances that were understood as expected.
    pub fn understood(&self) -> usize {
        self.lines.iter().filter(|line| line.wrong.is_empty()).count()
    }
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for CaseResult { said, wrong } in &self.lines {
            match wrong.is_empty() {
                true => writeln!(f, "ok     {said}")?,
                false => writeln!(f, "wrong  {said}\n       {}", wrong.join("\n       "))?,
            }
        }
        let (understood, all) = (self.understood(), self.lines.len());
        let percent = understood * 100 / all.max(1);
        write!(f, "{}: {understood} of {all} understood ({percent}%)", self.model)?;
        match self.calls {
            0 => Ok(()),
            calls => write!(f, ", {calls} calls, {} tokens", self.tokens),
        }
    }
}

/// Reads the utterances in a file, or those that come with the program.
///
/// # Errors
///
/// If the file cannot be read, or is not a list of [`Case`]s.
pub fn cases(file: Option<&Path>) -> anyhow::Result<Vec<Case>> {
    let Some(file) = file else {
        return Ok(
            serde_json::from_str(include_str!("../../config/evaluation.json")).expect("a test reads these utterances")
        );
    };
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} is not a list of utterances", file.display()))
}

/// Evaluates the configured model on each case.
///
/// # Errors
///
/// If the stand-in for the platform does not start, or no usable model is configured.
pub async fn run(config: &Config, cases: &[Case]) -> anyhow::Result<Score> {
    let platform = PlatformStandIn::start(PlatformOptions::default(), None, None).await?;
    let mut with_stand_in = config.clone();
    platform.apply_to(&mut with_stand_in);
    let clock = Arc::new(SystemClock);
    let registry = dependencies::capabilities(&with_stand_in, clock.clone())?;
    let (model, fallback) = dependencies::models(config, registry.book.clone())?;
    let mut score = Score { model: model.name().to_owned(), lines: Vec::new(), calls: 0, tokens: 0 };
    let graph = chat_graph(Arc::new(model), fallback, registry.clone(), Arc::new(NoBlobCache), PlanSettings::default())?;
    for case in cases {
        let found = interpret(&graph, case, &*clock).await;
        score.calls += found.calls;
        score.tokens += found.tokens;
        score.lines.push(CaseResult { said: case.said.clone(), wrong: compare(&registry, case, &found) });
    }
    platform.stop().await;
    Ok(score)
}

/// The interpretation of an utterance in one turn.
#[derive(Debug, Default)]
struct Interpretation {
    analysis: Option<Analysis>,
    change: Option<Draft>,
    read: Option<(String, Value)>,
    dropped: bool,
    steps: Option<usize>,
    without_model: bool,
    failed: Option<String>,
    calls: u64,
    tokens: u64,
}

impl Interpretation {
    /// Records the results of a node. Of several requests, only the first one's change and read are
    /// recorded.
    fn record(&mut self, state: &AgentState) {
        let plan = state.plan();
        self.steps = self.steps.or(plan.map(|plan| plan.total_steps));
        self.without_model |= state.turn.without_model;
        if plan.is_some_and(|plan| plan.step_counter > 1) {
            return;
        }
        self.analysis = self.analysis.take().or_else(|| state.turn.analysis.clone());
        self.change = state.turn.change.clone().or_else(|| self.change.take());
        let read = state.turn.reads.first().map(|read| (read.tool.clone(), read.arguments.clone()));
        self.read = self.read.take().or(read);
    }
}

/// Runs one message through the graph, up to the first card or the end.
async fn interpret(graph: &Graph<AgentState>, case: &Case, clock: &dyn Clock) -> Interpretation {
    let mut state = case.given.clone();
    state.begin_turn(&Said {
        by: "U1".into(),
        text: case.said.clone(),
        ts: None,
        at: clock.now(),
        zone: None,
        request: None,
    });
    let mut found = Interpretation::default();
    let mut name = graph.start();
    for _ in 0..MAX_NODES {
        let Some(node) = graph.node(name) else { break };
        let thread = ThreadId { team: "T1".into(), channel: "C1".into(), root: "1.1".into() };
        let run = RunId::fresh();
        let context = Context { thread, run, now: clock.now(), attempt: 0, ended: None, open: Vec::new() };
        let step = match node.run(state, &context).await {
            Ok(step) => step,
            Err(NodeError::Transient { source, .. } | NodeError::Permanent { source, .. }) => {
                found.failed = Some(source.to_string());
                return found;
            }
        };
        if let Some(usage) = &step.usage {
            found.calls += u64::from(usage.calls);
            found.tokens += usage.input_tokens + usage.cached_tokens + usage.output_tokens;
        }
        state = step.state;
        found.record(&state);
        match step.next {
            Next::Go(next) | Next::Later(next, _) => name = next,
            Next::Ask(_) | Next::Close(_) | Next::End => break,
        }
    }
    found.dropped = case.given.draft.is_some() && state.draft.is_none() && found.change.is_none();
    found
}

/// Describes each difference from the expected interpretation.
fn compare(registry: &Registry, case: &Case, found: &Interpretation) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut expect = |name: &str, actual: &str, expected: &str| {
        if actual != expected {
            wrong.push(format!("{name}: {actual}, should be {expected}"));
        }
    };
    let text_of = |value: Value| value.as_str().unwrap_or("none").to_owned();
    let intent = match &found.analysis {
        Some(analysis) if analysis.confidence < MIN_CONFIDENCE => "unclear".to_owned(),
        Some(analysis) => text_of(serde_json::json!(analysis.intent_type)),
        None => "none".to_owned(),
    };
    expect("intent", &intent, &case.intent);
    if let Some(capability) = &case.capability {
        let actual = found.analysis.as_ref().and_then(|analysis| analysis.capability.clone());
        expect("capability", &text_of(serde_json::json!(actual)), capability);
    }
    let action = found.change.as_ref().map_or("none", |change| &change.action);
    expect("action", action, case.action.as_deref().unwrap_or("none"));
    let tool = match &found.read {
        _ if found.dropped => "drop_draft",
        Some((tool, _)) => tool,
        None => "none",
    };
    if case.tool.is_some() || case.action.is_none() {
        expect("tool", tool, case.tool.as_deref().unwrap_or("none"));
    }
    let steps = |steps: Option<usize>| steps.unwrap_or(1).to_string();
    expect("requests", &steps(found.steps), &steps(case.steps));
    let given = match (&found.change, &found.read) {
        (Some(change), _) => Value::Object(change.params.clone()),
        (None, Some((_, arguments))) => arguments.clone(),
        (None, None) => Value::Null,
    };
    for (name, expected) in &case.parameters {
        expect(name, &canonical(registry, name, &given[name]), &canonical(registry, name, expected));
    }
    if found.without_model {
        wrong.push("the language model did not answer".to_owned());
    }
    wrong.extend(found.failed.clone());
    wrong
}

/// Returns the canonical form of a value for comparison: weights may be given as `70/30` or as a
/// list, a status as the verb that leads to it, such as `start`.
fn canonical(registry: &Registry, name: &str, value: &Value) -> String {
    let text = match value {
        Value::Null => "none".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(|item| canonical(registry, "", item)).collect::<Vec<_>>().join("/"),
        Value::Object(members) => members
            .iter()
            .map(|(key, value)| format!("{key}={}", canonical(registry, "", value)))
            .collect::<Vec<_>>()
            .join(","),
        Value::Number(number) => number.as_f64().map_or_else(|| number.to_string(), |number| number.to_string()),
        Value::Bool(_) => value.to_string(),
    };
    match registry.canonical(name, &text) {
        Some(canonical) => canonical,
        None => text.trim().trim_end_matches(['.', '?', '!']).to_lowercase(),
    }
}
