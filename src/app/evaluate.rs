//! `countersign evaluate`: measures how well the model of the settings understands a set of utterances.
//!
//! Each utterance goes through the nodes of the chat graph as in production, up to a card, a question or an answer; a
//! stand-in takes the platform's place, and nothing is approved or sent. The result is compared with the expected one.
//! Without a key for a language model the grammar is asked.

use std::{fmt, path::Path, sync::Arc};

use anyhow::Context as _;
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
use countersign_understanding::situation::{Analysis, Draft};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::{
    dependencies,
    installed::{self, StandIn},
};

/// The number of nodes a turn may take; more than any does.
const MAX_NODES: usize = 40;
/// Below this a message counts as not understood.
const MIN_CONFIDENCE: f64 = 0.7;

/// An utterance in a situation, and what should be understood.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// The message.
    pub said: String,
    /// The knowledge of the thread before it: any part of the assistant's state.
    #[serde(default)]
    pub given: AgentState,
    /// `needs_info`, `direct_answer`, or `unclear` where the person should be asked.
    pub intent: String,
    /// The capability, if it matters.
    #[serde(default)]
    pub capability: Option<String>,
    /// The change that is asked for.
    #[serde(default)]
    pub action: Option<String>,
    /// The tool that answers; `drop_draft` where the draft should be let go.
    #[serde(default)]
    pub tool: Option<String>,
    /// The expected parameters of the action or tool; there may be others.
    #[serde(default)]
    pub parameters: Map<String, Value>,
    /// The number of requests in the message, if several.
    #[serde(default, deserialize_with = "at_least_two")]
    pub steps: Option<usize>,
}

fn at_least_two<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<usize>, D::Error> {
    let steps = usize::deserialize(deserializer)?;
    (steps > 1).then_some(Some(steps)).ok_or_else(|| serde::de::Error::custom("one request is no row of steps"))
}

/// An utterance, and the differences from what was expected.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseResult {
    /// The message.
    pub said: String,
    /// The differences; empty if it was understood.
    pub wrong: Vec<String>,
}

/// The results of all utterances.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    /// The name of the model that was asked.
    pub model: String,
    /// A line for each utterance.
    pub lines: Vec<CaseResult>,
    /// The number of calls of a language model.
    pub calls: u64,
    /// The tokens of the calls, in both directions.
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
        write!(f, "{}: {understood} of {all} understood ({percent} %)", self.model)?;
        match self.calls {
            0 => Ok(()),
            calls => write!(f, ", {calls} calls, {} tokens", self.tokens),
        }
    }
}

/// Reads the utterances in a file.
///
/// # Errors
///
/// If it cannot be read, or is not a list of [`Case`]s.
pub fn cases(file: &Path) -> anyhow::Result<Vec<Case>> {
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} holds no list of utterances", file.display()))
}

/// Asks the model of the settings about each case.
///
/// # Errors
///
/// If the stand-in for the platform does not start, or the settings name no usable model.
pub async fn run(config: &Config, cases: &[Case]) -> anyhow::Result<Score> {
    let platform = StandIn::start(installed::StandInOptions::default(), None, None).await?;
    let settings = config;
    let mut config = config.clone();
    platform.take_the_place(&mut config);
    let clock = Arc::new(SystemClock);
    let registry = dependencies::capabilities(&config, clock.clone())?;
    let (model, fallback) = dependencies::models(settings, registry.book.clone())?;
    let mut score = Score { model: model.name().to_owned(), lines: Vec::new(), calls: 0, tokens: 0 };
    let graph = chat_graph(model, fallback, registry.clone(), Arc::new(NoBlobCache), PlanSettings::default())?;
    for case in cases {
        let found = understand(&graph, case, &*clock).await;
        score.calls += found.calls;
        score.tokens += found.tokens;
        score.lines.push(CaseResult { said: case.said.clone(), wrong: compare(&registry, case, &found) });
    }
    platform.stop().await;
    Ok(score)
}

/// The understanding of one turn.
#[derive(Debug, Default)]
struct Understanding {
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

impl Understanding {
    /// Notes what a node found out, up to the end of the first of several requests.
    fn note(&mut self, state: &AgentState) {
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

/// Takes one message through the graph, to the first card or the end.
async fn understand(graph: &Graph<AgentState>, case: &Case, clock: &dyn Clock) -> Understanding {
    let mut state = case.given.clone();
    state.begin_turn(&Said { by: "U1".into(), text: case.said.clone(), at: clock.now(), request: None });
    let mut found = Understanding::default();
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
        found.note(&state);
        match step.next {
            Next::Go(next) | Next::Later(next, _) => name = next,
            Next::Ask(_) | Next::End => break,
        }
    }
    found.dropped = case.given.draft.is_some() && state.draft.is_none() && found.change.is_none();
    found
}

/// Returns the differences from what is expected, in words.
fn compare(registry: &Registry, case: &Case, found: &Understanding) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut differ = |what: &str, is: &str, should: &str| {
        if is != should {
            wrong.push(format!("{what}: {is}, should be {should}"));
        }
    };
    let word = |value: Value| value.as_str().unwrap_or("none").to_owned();
    let intent = match &found.analysis {
        Some(analysis) if analysis.confidence < MIN_CONFIDENCE => "unclear".to_owned(),
        Some(analysis) => word(serde_json::json!(analysis.intent_type)),
        None => "none".to_owned(),
    };
    differ("intent", &intent, &case.intent);
    if let Some(capability) = &case.capability {
        let is = found.analysis.as_ref().and_then(|analysis| analysis.capability.clone());
        differ("capability", &word(serde_json::json!(is)), capability);
    }
    let action = found.change.as_ref().map_or("none", |change| &change.action);
    differ("action", action, case.action.as_deref().unwrap_or("none"));
    let tool = match &found.read {
        _ if found.dropped => "drop_draft",
        Some((tool, _)) => tool,
        None => "none",
    };
    if case.tool.is_some() || case.action.is_none() {
        differ("tool", tool, case.tool.as_deref().unwrap_or("none"));
    }
    let steps = |steps: Option<usize>| steps.unwrap_or(1).to_string();
    differ("requests", &steps(found.steps), &steps(case.steps));
    let given = match (&found.change, &found.read) {
        (Some(change), _) => Value::Object(change.params.clone()),
        (None, Some((_, arguments))) => arguments.clone(),
        (None, None) => Value::Null,
    };
    for (name, should) in &case.parameters {
        differ(name, &plain(registry, name, &given[name]), &plain(registry, name, should));
    }
    if found.without_model {
        wrong.push("the language model did not answer".to_owned());
    }
    wrong.extend(found.failed.clone());
    wrong
}

/// Returns a value in its canonical form for comparison: `70/30` may be given as a list as well, `start` as a status.
fn plain(registry: &Registry, name: &str, value: &Value) -> String {
    let text = match value {
        Value::Null => "none".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(|item| plain(registry, "", item)).collect::<Vec<_>>().join("/"),
        Value::Object(members) => members
            .iter()
            .map(|(key, value)| format!("{key}={}", plain(registry, "", value)))
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
