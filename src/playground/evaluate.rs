//! `countersign-playground evaluate`: measures how well the configured model understands a set of utterances.
//!
//! Each utterance runs through the nodes of the chat graph as in production, up to a card, a
//! question or an answer. A stand-in replaces the platform, and nothing is approved or sent. The
//! result is compared with the expected one. Without a key for a language model, the grammar is
//! evaluated.
//!
//! An utterance can follow others in the same thread, which are said first; a card that one of them leads to stays open.
//! It can also be a mail, which is classified.

mod case;
mod score;

use std::{sync::Arc, time::Duration};

use anyhow::bail;
use async_trait::async_trait;
use countersign::app::{dependencies, installed, models::Offered};
use countersign_assistant::{
    blob_cache::NoBlobCache, graph::chat_graph, plan_settings::PlanSettings, state::AgentState,
};
use countersign_capabilities::Registry;
use countersign_config::{Config, Provider, StoreKind};
use countersign_conversation::presentation::links::Links;
use countersign_core::{
    clock::{Clock, SystemClock},
    ids::{RunId, ThreadId, UserId},
};
use countersign_email::classify;
use countersign_graph::{
    action::{ActionRecord, Lapse, Policy},
    definition::Graph,
    keyring::Keyring,
    node::{Ask, Context, Next, NodeError, Said, State},
    request::{Request, Times},
    standing::Entitled,
    store::Usage,
};
use countersign_mail::{Address, Mail};
use countersign_model::{Model, Purpose, by_purpose::ModelByPurpose};
use countersign_understanding::situation::{Analysis, Draft};
use serde_json::Value;

pub use self::{
    case::{Case, MailHead, cases},
    score::{CaseResult, Comparison, Outcome, Score},
};
use crate::platform_stand_in::{PlatformOptions, PlatformStandIn};

/// The maximum number of nodes that are run for an utterance; no turn needs as many.
const MAX_NODES: usize = 40;

/// The confidence below which a message counts as not understood.
const MIN_CONFIDENCE: f64 = 0.7;

/// The time for the classification of a mail.
const MAIL_TIME: Duration = Duration::from_secs(60);

/// The person who says the utterances.
const PERSON: &str = "U1";

/// The model that stands for the grammar in a comparison.
const RULES: &str = "rules";

/// Returns the settings with one model for all purposes: `rules` for the grammar, or the name of a model, which may follow
/// that of its provider and a slash.
///
/// # Errors
///
/// If no provider is named and none has a key.
pub fn with_model(config: &Config, name: &str) -> anyhow::Result<Config> {
    let mut config = config.clone();
    let model = &mut config.model;
    for other in [&mut model.analyze, &mut model.gather, &mut model.respond, &mut model.classify, &mut model.generate] {
        *other = None;
    }
    if name == RULES {
        (model.provider, model.api_key, model.openai_api_key, model.gemini_api_key) = (None, None, None, None);
        return Ok(config);
    }
    let general = model.general().map(|chosen| chosen.provider);
    let named = name.split_once('/').and_then(|(provider, name)| {
        Some((Provider::ALL.into_iter().find(|known| known.to_string() == provider)?, name))
    });
    let (provider, name) = match named {
        Some((provider, name)) => (Some(provider), name),
        None => (provider_of(name).or(general), name),
    };
    if provider != general {
        model.base_url = None; // that of another provider
    }
    (model.provider, model.name) = (provider, Some(name.to_owned()));
    if provider.is_none() {
        bail!("there is no key for the model `{name}`; set that of its provider, such as ANTHROPIC_API_KEY");
    }
    Ok(config)
}

/// Returns the provider of a model with a well-known name.
fn provider_of(name: &str) -> Option<Provider> {
    let begins = |starts: &[&str]| starts.iter().any(|start| name.starts_with(start));
    match () {
        () if begins(&["claude-"]) => Some(Provider::Anthropic),
        () if begins(&["gpt-", "o3", "o4"]) => Some(Provider::OpenAi),
        () if begins(&["gemini-"]) => Some(Provider::Gemini),
        () => None,
    }
}

/// Evaluates two models on each case, as [`with_model`] finds them.
///
/// # Errors
///
/// As [`run`] and [`with_model`].
pub async fn compare(config: &Config, cases: &[Case], models: [&str; 2]) -> anyhow::Result<Comparison> {
    let [one, other] = models.map(|name| with_model(config, name));
    let (one, other) = (one?, other?);
    Ok(Comparison([run(&one, cases).await?, run(&other, cases).await?]))
}

/// Evaluates the configured model on each case.
///
/// # Errors
///
/// If the stand-in for the platform does not start, or no usable model is configured.
pub async fn run(config: &Config, cases: &[Case]) -> anyhow::Result<Score> {
    let platform = PlatformStandIn::start(PlatformOptions::default(), None, None).await?;
    let folder = std::env::temp_dir().join(format!("countersign-evaluate-{}", RunId::fresh()));
    let mut with_stand_in = Offered::ask(config).await.with_names(config);
    platform.apply_to(&mut with_stand_in);
    (with_stand_in.store.kind, with_stand_in.store.path) = (Some(StoreKind::Sqlite), folder.join("threads.sqlite"));
    let score = score_of(&with_stand_in, cases).await;
    platform.stop().await;
    std::fs::remove_dir_all(&folder).ok();
    score
}

async fn score_of(config: &Config, cases: &[Case]) -> anyhow::Result<Score> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let store = dependencies::store(config, clock.clone()).await?;
    let all = installed::capabilities(config, clock.clone())?;
    let (links, entitled) = (Links::new(store.clone(), None), Arc::new(NobodyIsEntitled));
    let (registry, _) = dependencies::with_standing_approvals(config, all, store, clock.clone(), entitled, links)?;
    let (models, fallback) = dependencies::models(config, registry.book.clone())?;
    let models = Arc::new(models);
    let plans = PlanSettings::default();
    let graph = chat_graph(models.clone(), fallback, registry.clone(), Arc::new(NoBlobCache), plans)?;
    let keys = Keyring::new(vec![vec![0; 32]])?;
    let evaluation = Evaluation { graph, registry, models, clock, keys };
    let mut score = Score { model: evaluation.models.name().to_owned(), nano_usd: Some(0), ..Score::default() };
    for case in cases {
        let (found, outcome, wrong) = Box::pin(evaluation.result_of(case)).await;
        score.calls += found.calls;
        score.tokens += found.tokens;
        score.nano_usd = score.nano_usd.zip(found.cost()).map(|(sum, cost)| sum + cost);
        score.lines.push(CaseResult { said: case.said.clone(), category: case.category(), outcome, wrong });
    }
    Ok(score)
}

/// Nothing is approved in an evaluation.
struct NobodyIsEntitled;

#[async_trait]
impl Entitled for NobodyIsEntitled {
    async fn who_may_approve(&self, _: &ActionRecord, _: &[UserId]) -> Vec<UserId> {
        Vec::new()
    }

    async fn lapses(&self, _: &ActionRecord) -> Vec<Lapse> {
        Vec::new()
    }
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
    class: Option<&'static str>,
    /// What the buttons under the answer say.
    choices: Vec<String>,
    failed: Option<String>,
    calls: u64,
    tokens: u64,
    nano_usd: u64,
    is_without_price: bool,
}

impl Interpretation {
    /// Returns the cost, if all prices are known.
    fn cost(&self) -> Option<u64> {
        (!self.is_without_price).then_some(self.nano_usd)
    }

    /// Adds the usage of calls to a model.
    fn count(&mut self, usage: &Usage) {
        self.calls += u64::from(usage.calls);
        self.tokens += usage.input_tokens + usage.cached_tokens + usage.output_tokens;
        self.nano_usd += usage.nano_usd.unwrap_or_default();
        self.is_without_price |= usage.nano_usd.is_none();
    }

    /// Adds the usage of another message.
    fn add_usage(&mut self, other: &Self) {
        self.calls += other.calls;
        self.tokens += other.tokens;
        self.nano_usd += other.nano_usd;
        self.is_without_price |= other.is_without_price;
    }

    /// Returns true if nothing was looked up, proposed or dropped.
    fn is_empty(&self) -> bool {
        self.change.is_none() && self.read.is_none() && self.steps.is_none() && !self.dropped
    }

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

/// The components that an evaluation needs.
struct Evaluation {
    graph: Graph<AgentState>,
    registry: Registry,
    models: Arc<ModelByPurpose>,
    clock: Arc<dyn Clock>,
    keys: Keyring,
}

/// A thread during its evaluation.
#[derive(Clone)]
struct Conversation {
    state: AgentState,
    /// The open cards, oldest first.
    open: Vec<ActionRecord>,
}

impl Evaluation {
    /// Returns the interpretation of a case, its outcome, and the differences from what was expected.
    async fn result_of(&self, case: &Case) -> (Interpretation, Outcome, Vec<String>) {
        if let Some(head) = &case.mail {
            let found = self.classify(head, &case.said).await;
            let (actual, expected) = (found.class.unwrap_or("none"), case.class.as_deref().unwrap_or("none"));
            let differs = (actual != expected).then(|| format!("class: {actual}, should be {expected}"));
            let wrong: Vec<String> = differs.into_iter().chain(found.failed.clone()).collect();
            let outcome = if wrong.is_empty() { Outcome::Understood } else { Outcome::Wrong };
            return (found, outcome, wrong);
        }
        let mut conversation = Conversation { state: case.given.clone(), open: Vec::new() };
        let mut sum = Interpretation::default();
        for said in &case.before {
            let found = self.say(&mut conversation, said).await;
            sum.add_usage(&found);
        }
        let mut found = self.say(&mut conversation, &case.said).await;
        let wrong = compare_with(&self.registry, case, &found);
        let outcome = match () {
            () if wrong.is_empty() => Outcome::Understood,
            () if !found.is_empty() => Outcome::Wrong,
            () => {
                let mut outcome = Outcome::DeadEnd;
                for choice in std::mem::take(&mut found.choices) {
                    let pressed = self.say(&mut conversation.clone(), &choice).await;
                    sum.add_usage(&pressed);
                    if compare_with(&self.registry, case, &pressed).is_empty() {
                        outcome = Outcome::Suggested;
                        break;
                    }
                }
                outcome
            }
        };
        found.add_usage(&sum);
        (found, outcome, wrong)
    }

    /// Runs one message through the graph, up to the first card or the end.
    async fn say(&self, conversation: &mut Conversation, text: &str) -> Interpretation {
        let had_draft = conversation.state.draft.is_some();
        let mut state = std::mem::take(&mut conversation.state);
        let text = text.to_owned();
        let now = self.clock.now();
        state.begin_turn(&Said { by: PERSON.into(), text, ts: None, at: now, zone: None, request: None });
        let mut found = Interpretation::default();
        let mut name = self.graph.start();
        let thread = ThreadId { team: "T1".into(), channel: "C1".into(), root: "1.1".into() };
        for _ in 0..MAX_NODES {
            let Some(node) = self.graph.node(name) else { break };
            let context = Context {
                thread: thread.clone(),
                run: RunId::fresh(),
                now: self.clock.now(),
                attempt: 0,
                ended: None,
                open: conversation.open.clone(),
            };
            let step = match node.run(state, &context).await {
                Ok(step) => step,
                Err(NodeError::Transient { source, .. } | NodeError::Permanent { source, .. }) => {
                    found.failed = Some(source.to_string());
                    return found;
                }
            };
            if let Some(usage) = &step.usage {
                found.count(usage);
            }
            let choices = step.says.iter().flat_map(|reply| &reply.choices);
            found.choices.extend(choices.map(|choice| choice.says.clone()));
            state = step.state;
            found.record(&state);
            match step.next {
                Next::Go(next) | Next::Later(next, _) => name = next,
                Next::Ask(ask) => {
                    self.open_card(conversation, *ask, &thread);
                    break;
                }
                Next::Close(_) | Next::End => break,
            }
        }
        found.dropped = had_draft && state.draft.is_none() && found.change.is_none();
        conversation.state = state;
        found
    }

    /// Opens the card of a question, in place of the one that it replaces.
    fn open_card(&self, conversation: &mut Conversation, ask: Ask, thread: &ThreadId) {
        let Ask { action, proposal, requested_by, evidence, replaces, then: _ } = ask;
        let Some(kind) = self.registry.actions.get(action.as_str()) else { return };
        let request = Request {
            thread,
            run: RunId::fresh(),
            kind: kind.as_ref(),
            proposal,
            requested_by,
            evidence,
            at: self.clock.now(),
            policy: Policy::default(),
            slot: "card".into(),
            times: Times { open_for: Duration::from_secs(24 * 60 * 60), ..Times::default() },
            keys: &self.keys,
        };
        conversation.open.retain(|open| replaces.as_ref() != Some(&open.id));
        conversation.open.push(request.into_record());
    }

    /// Classifies a mail.
    async fn classify(&self, head: &MailHead, text: &str) -> Interpretation {
        let mut mail = Mail::unknown("m1".into(), self.clock.now());
        mail.from = Some(Address { name: None, address: head.from.clone() });
        (mail.subject, mail.text) = (head.subject.clone(), text.to_owned());
        mail.warnings.clear();
        let model: &dyn Model = &**self.models.model_for(Purpose::Classify);
        let classified = classify(model.is_remote().then_some(model), &mail, MAIL_TIME).await;
        let mut found = Interpretation {
            class: Some(classified.class.as_str()),
            failed: classified.failure,
            ..Interpretation::default()
        };
        if let Some(usage) = &classified.usage {
            found.count(usage);
        }
        found
    }
}

/// Describes each difference from the expected interpretation.
fn compare_with(registry: &Registry, case: &Case, found: &Interpretation) -> Vec<String> {
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
