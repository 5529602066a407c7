//! The node that answers: in fixed words if the outcome is known, otherwise in the words of a model.

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use countersign_capabilities::{ParameterSchema, Registry};
use countersign_core::reply::{Choice, Reply};
use countersign_graph::{
    action::{ActionRecord, Outcome, Status},
    node::{Context, Node, NodeError, Step},
};
use countersign_model::{Purpose, ToolChoice, ToolSpec};
use countersign_planner::{events::EndsEarly, plan::Plan};
use countersign_understanding::{phrase_book::PhraseBook, situation::Situation};
use serde_json::{Value, json};

use super::{
    super::{
        blob_cache::{self, BlobCache},
        exchange::{self, Call},
        model_with_fallback::{ModelWithFallback, StepUsage},
        outcomes, replies,
        state::{AgentState, Heard, Phase, ToolRead},
        tools,
        view::{self, Prompts},
    },
    ANALYZE, REPLAN, RESPOND,
    carry_on::{CarryOn, StepEnd},
    claims,
    close::{close_because, close_stopped},
    gather_tools::entry_kind,
};

/// The maximum number of calls of the model in one turn.
const MAX_ROUNDS: usize = 3;

/// The node that replies with the outcome of the turn.
pub(in super::super) struct Respond {
    model: ModelWithFallback,
    registry: Registry,
    blobs: Arc<dyn BlobCache>,
    prompts: Prompts,
    tools: Arc<[ToolSpec]>,
    /// The schemas of the tools, by name.
    schemas: BTreeMap<String, ParameterSchema>,
    carry_on: CarryOn,
}

impl Respond {
    /// Creates the node.
    pub(in super::super) fn new(
        model: ModelWithFallback,
        registry: Registry,
        blobs: Arc<dyn BlobCache>,
        prompts: Prompts,
        carry_on: CarryOn,
    ) -> Self {
        let tools: Arc<[ToolSpec]> = tools::responding(&registry).into();
        let schemas = tools::schemas_of(&*tools);
        Self { model, registry, blobs, prompts, tools, schemas, carry_on }
    }

    /// Continues after a change: begins a plan that was approved on its card, or the next step of the current plan.
    fn after_change(
        &self,
        mut state: AgentState,
        reply: Reply,
        usage: StepUsage,
        record: &ActionRecord,
        context: &Context,
    ) -> Step<AgentState> {
        let result = match &record.outcome {
            Some(Outcome::Done { result, .. }) => result.clone(),
            _ => Value::Null,
        };
        if self.registry.plan_action() == Some(record.name.as_str())
            && let Ok((steps, planned)) =
                serde_json::from_value::<(Vec<String>, Plan)>(json!([result["steps"], result["plan"]]))
        {
            state.turn.change = None;
            if state.turn.is_of_model && !record.is_suggested() {
                // A person has read these steps and approved them.
                state.turn.heard.extend(steps.iter().map(|step| Heard { text: step.clone(), ..Heard::default() }));
            }
            return self.carry_on.begin(state, &steps, Some(planned), usage, context.now);
        }
        if let Some(plan) = state.plan_mut() {
            plan.control.started_at = plan.control.started_at + context.now.since(record.requested_at);
        }
        let words = outcomes::summary(record).words();
        let ended = StepEnd { reply: reply.rated(&context.run), words, result, is_change: true };
        self.carry_on.after_step(state, ended, usage, context.now)
    }

    /// Lets a model put the answer into words.
    async fn reply_in_words(
        &self,
        state: &mut AgentState,
        context: &Context,
        usage: &mut StepUsage,
    ) -> Result<Reply, NodeError> {
        let mut request =
            view::request(&self.prompts, Purpose::Respond, state, context, self.tools.clone(), ToolChoice::Auto);
        let mut choices = Vec::new();
        for _ in 0..MAX_ROUNDS {
            let response = self.model.ask(state, usage, &request).await?;
            if state.turn.without_model {
                request.exchange.clear();
            }
            let calls = exchange::calls(&response);
            let text = response.text().trim().to_owned();
            let results: Vec<_> = calls
                .iter()
                .map(|call| exchange::result(call, read_back(&self.registry, &self.schemas, state, call, &mut choices)))
                .collect();
            let asks = calls.iter().any(|call| call.name != tools::NEXT_STEPS);
            if !text.is_empty() && !asks {
                if state.turn.without_model {
                    return Ok(Reply { choices, ..Reply::markdown(text) });
                }
                let listed = claims::listed(&calls);
                let reply = claims::checked(&self.registry, state, context, (text, choices), &listed);
                return Ok(if response.is_cut() { replies::cut_off(reply) } else { reply });
            }
            if calls.is_empty() {
                break;
            }
            exchange::append(&mut request.exchange, response, results);
        }
        Ok(replies::results(&self.registry, &state.turn, &state.log).unwrap_or_else(replies::no_words))
    }
}

/// Runs a call of the answering model, which reads back what is known or offers buttons.
fn read_back(
    registry: &Registry,
    schemas: &BTreeMap<String, ParameterSchema>,
    state: &AgentState,
    call: &Call,
    choices: &mut Vec<Choice>,
) -> Result<String, String> {
    let unknown = || format!("there is no tool `{}`", call.name.chars().take(60).collect::<String>());
    exchange::validate(&call.input, schemas.get(&call.name).ok_or_else(unknown)?)?;
    let known = |kind: &str| match state.context.of(kind) {
        Some(entries) => json!(entries),
        None => json!("nothing was gathered"),
    };
    let answer = match call.name.as_str() {
        name if registry.tools.get(name).is_some_and(|tool| tool.info().read_back.is_some()) => {
            known(&entry_kind(name))
        }
        tools::ALL_GATHERED => super::super::context::shortened_to(&json!(state.turn.gathered), 16_000),
        tools::EXECUTION_LOG => {
            let found = state.turn.gathered.get("execution_log").cloned();
            found.unwrap_or_else(|| outcomes::log_as_data(&state.log))
        }
        tools::ERRORS => json!(state.turn.errors),
        _ => {
            let offered = claims::honest_choices(registry, std::slice::from_ref(call));
            choices.extend(offered.into_iter().take(4usize.saturating_sub(choices.len())));
            json!("shown")
        }
    };
    Ok(answer.to_string())
}

/// Returns true if the only read was the one documented for this question, so that no model has to word the answer.
pub(super) fn is_documented(book: &PhraseBook, state: &AgentState, situation: &Situation) -> bool {
    let [read] = state.turn.reads.as_slice() else { return false };
    read.failed.is_none() && book.documented_read(situation).is_some_and(|(tool, _)| read.tool == tool)
}

/// Returns the answers of the tools of a step as one result: the only one, or all by key.
fn result_of(mut gathered: BTreeMap<String, Value>) -> Value {
    match gathered.len() {
        1 => gathered.pop_first().map(|(_, only)| only).unwrap_or_default(),
        _ => Value::Object(gathered.into_iter().collect()),
    }
}

/// Adds the outcome of an action to the state, and returns the reply, with what the action reports.
fn closing_reply(registry: &Registry, state: &mut AgentState, record: &ActionRecord, context: &Context) -> Reply {
    let with_report = |reply: Reply| match registry.actions.get(record.name.as_str()) {
        Some(action) => action.report(record, reply),
        None => reply,
    };
    let reply = match state.plan().filter(|plan| !plan.ahead.is_empty()) {
        Some(_) if record.status == Status::Done && !record.cut_short => with_report(outcomes::done_so_far(record)),
        _ => outcomes::with_question(registry, record, with_report(outcomes::outcome(registry, record))),
    };
    state.context.mark_outdated();
    state.offered.clear(); // the offer is no longer the last message
    state.log.add(record, outcomes::log_line(record), context.now);
    if let Some(subject) = outcomes::subject(registry, record) {
        state.note_subject(registry, &record.name, subject);
    }
    if state.on_card.as_ref().is_some_and(|on_card| on_card.action == record.name) {
        state.on_card = None;
    }
    if record.status == Status::Rejected {
        state.keep_rejected(record);
        let is_plan = registry.plan_action() == Some(record.name.as_str());
        state.turned_down_plans = if is_plan { state.turn.plans_created } else { 0 };
        if is_plan {
            return reply.hint(replies::ANOTHER_PLAN);
        }
    }
    reply
}

/// Returns true if no capability can serve the request.
fn is_unsupported(state: &AgentState) -> bool {
    state.turn.analysis.as_ref().is_some_and(|analysis| analysis.capability.as_deref() == Some(tools::UNSUPPORTED))
}

/// Returns the answer if it needs no model: a failure, a tool's answer to a documented question, or, without a language
/// model, the tools' answers.
fn fixed_reply(registry: &Registry, state: &AgentState, has_language_model: bool, context: &Context) -> Option<Reply> {
    let turn = &state.turn;
    if !turn.reads.is_empty() && turn.gathered.is_empty() {
        return turn.reads.iter().find_map(|read| read.failed.clone());
    }
    let situation = view::situation(state, context);
    match (turn.reads.as_slice(), registry.book.documented_read(&situation)) {
        ([], _) => registry.book.without_a_request(&situation).map(Reply::markdown),
        // The arguments are those of the question, which may ask for less than the model's call did.
        ([read], Some((tool, arguments))) if read.tool == tool => {
            let reply =
                replies::tool_reply(registry, &state.turn, &state.log, &ToolRead { arguments, ..read.clone() })?;
            Some(match registry.book.considered_request(&situation).filter(|_| read.failed.is_none()) {
                Some(request) => replies::for_you_to_decide(reply, &request),
                None => reply,
            })
        }
        _ if has_language_model => None,
        _ => {
            let reply = replies::results(registry, &state.turn, &state.log)?;
            Some(match registry.book.taken_as(&situation) {
                Some(request) => replies::taken_as(reply, &request),
                None => reply,
            })
        }
    }
}

/// Adds the files of the tools' answers to a model's words, which cannot replace them.
fn with_files(registry: &Registry, state: &AgentState, mut reply: Reply) -> Reply {
    if reply.files.is_empty() {
        reply.files =
            replies::results(registry, &state.turn, &state.log).map(|results| results.files).unwrap_or_default();
    }
    reply
}

#[async_trait]
impl Node<AgentState> for Respond {
    fn name(&self) -> &'static str {
        RESPOND
    }

    fn status(&self) -> Option<&'static str> {
        Some("Writing the answer…")
    }

    fn targets(&self) -> &'static [&'static str] {
        &[ANALYZE, REPLAN]
    }

    async fn run(&self, mut state: AgentState, context: &Context) -> Result<Step<AgentState>, NodeError> {
        state.turn.phase = Phase::Responding;
        state.note_work();
        blob_cache::restore(&*self.blobs, &mut state).await;
        let mut usage = StepUsage::default();
        let mut answers = !state.turn.reads.is_empty();
        let owner = state.turn.reads.iter().find_map(|read| self.registry.owner_of(&read.tool));
        state.note_owner(owner);
        let reply = match &context.ended {
            Some(record) => {
                state.note_owner(self.registry.owner_of(&record.name));
                let reply = closing_reply(&self.registry, &mut state, record, context);
                return Ok(match record.status {
                    Status::Done | Status::Failed if record.cut_short => {
                        close_stopped(state, reply, usage, &format!("{}: stopped", record.act()))
                    }
                    Status::Done => self.after_change(state, reply, usage, record, context),
                    Status::Failed => self.carry_on.after_failed_change(state, reply, usage, record, context.now),
                    status => {
                        let why = format!("{}: {status}", record.act());
                        let why = match status {
                            Status::Rejected | Status::Cancelled | Status::Superseded => EndsEarly::ByDecision(&why),
                            _ => EndsEarly::ByFailure(&why),
                        };
                        let ahead = state.plan().map(|plan| plan.ahead.clone());
                        let mut step = close_because(state, reply, usage, why);
                        if status == Status::Rejected {
                            // A refused step is not offered again.
                            step.state.rest_of_plan = ahead.unwrap_or_default();
                        }
                        step
                    }
                });
            }
            None if is_unsupported(&state) => replies::unsupported(&self.registry, state.topic.as_ref()),
            None => match fixed_reply(&self.registry, &state, self.model.has_language_model(&state), context) {
                Some(reply) => reply,
                None => {
                    let reply = match state.turn.reply.take() {
                        Some(reply) => reply,
                        None => self.reply_in_words(&mut state, context, &mut usage).await?,
                    };
                    let asks = reply.words().trim_end().ends_with('?');
                    answers = !asks && (answers || self.model.has_language_model(&state));
                    with_files(&self.registry, &state, reply)
                }
            },
        };
        if !state.turn.reads.is_empty() && state.turn.reads.iter().all(|read| read.failed.is_some()) {
            state.remember_offer(&self.registry, &reply);
            // The next step may need what could not be read.
            return Ok(self.carry_on.after_failure(state, reply, usage, context.now));
        }
        let words = reply.words();
        // A language model's own words have no buttons, but the answer that they are about does.
        let shown = match self.model.has_language_model(&state) {
            true => replies::results(&self.registry, &state.turn, &state.log),
            false => None,
        };
        state.remember_forget(shown.as_ref().unwrap_or(&reply));
        let reply = replies::with_plan_place(reply, state.plan());
        let reply = if answers { reply.rated(&context.run) } else { reply };
        let result = std::mem::take(&mut state.turn.gathered);
        let ended = StepEnd { reply, words, result: result_of(result), is_change: false };
        Ok(self.carry_on.after_step(state, ended, usage, context.now))
    }
}
