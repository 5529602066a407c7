//! The effects of a model's calls while it gathers: setters change the turn, and reading tools run concurrently.

use std::sync::Arc;

use countersign_capabilities::{Registry, Tool, ToolError};
use countersign_core::clock::Timestamp;
use countersign_graph::action::Reader;
use countersign_model::Block;
use countersign_understanding::situation::{Draft, Listed, Situation};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::super::{
    blob_cache::{self, BlobCache},
    context::{Fresh, shortened_to},
    exchange::{self, Call},
    numbers, outcomes,
    past_changes::Search,
    replies,
    state::{AgentState, ToolRead},
    tools::{self, Kit},
};

/// The maximum number of reads in one turn.
const MAX_READS: usize = 12;
/// The maximum size of a result that is kept for the answer, in bytes of JSON.
const MAX_RESULT_BYTES: usize = 100_000;
/// The maximum size of a result that is sent to the model, in bytes of JSON.
const MAX_RESULT_FOR_MODEL: usize = 8_000;

/// The effects of the calls of one round.
#[derive(Debug, Default)]
pub(super) struct RoundEffects {
    /// True if parameters were given.
    pub(super) parameters: bool,
    /// True if a call reads something.
    pub(super) read: bool,
    /// True if the draft was dropped.
    pub(super) dropped: bool,
    /// True if a call was refused.
    pub(super) mistaken: bool,
    /// True if a parameter was given that the change does not have.
    pub(super) unknown_parameter: bool,
    /// True if words were given where a number is needed.
    pub(super) no_number: bool,
}

/// The work that is left for a call.
pub(super) enum PlannedCall {
    /// The call already has its result.
    Settled(Result<String, String>),
    /// A tool has to be called.
    Reading { tool: Arc<dyn Tool>, arguments: Value, key: String },
    /// The answer was read in this thread a moment ago.
    Known { entry: Fresh, read_at: Timestamp, tool: Arc<dyn Tool>, arguments: Value, key: String },
    /// The records of past changes have to be read.
    History { search: Search, arguments: Value },
}

/// The result of one call.
pub(super) enum ToolAnswer {
    /// The call was settled without reading.
    Settled(Result<String, String>),
    /// The tool was called, and answered or failed.
    Read { tool: Arc<dyn Tool>, arguments: Value, key: String, result: Result<Value, ToolError> },
    /// The answer was read a moment ago.
    Known { tool: Arc<dyn Tool>, arguments: Value, key: String, value: Value, read_at: Timestamp },
    /// The records of past changes were read.
    History { arguments: Value, value: Value },
}

impl PlannedCall {
    /// Calls the tool, unless the result is already known.
    pub(super) async fn run(self, blobs: &dyn BlobCache, reader: &Reader) -> ToolAnswer {
        let (tool, arguments, key) = match self {
            Self::Settled(settled) => return ToolAnswer::Settled(settled),
            Self::Reading { tool, arguments, key } => (tool, arguments, key),
            Self::History { search, arguments } => {
                return ToolAnswer::History { arguments, value: search.run(reader).await };
            }
            Self::Known { entry, read_at, tool, arguments, key } => {
                let value = match entry {
                    Fresh::Here(value) => Some(value),
                    Fresh::Cached(name) => blob_cache::get(blobs, &name).await,
                };
                if let Some(value) = value {
                    return ToolAnswer::Known { tool, arguments, key, value, read_at };
                }
                (tool, arguments, key)
            }
        };
        let result = tool.call(&arguments, Some(reader)).await;
        ToolAnswer::Read { tool, arguments, key, result }
    }
}

#[derive(Deserialize)]
struct UpdateParam {
    key: String,
    value: Value,
}

#[derive(Deserialize)]
struct SetMissing {
    missing_params: Vec<String>,
}

#[derive(Deserialize)]
struct AddError {
    error_type: String,
    message: String,
}

/// Returns the rank of a call among those of its round. Whatever the model's order, proposals come first, then their
/// updates, then everything else.
pub(super) fn call_order(call: &Call) -> u8 {
    match call.name.as_str() {
        name if tools::proposed_action(name).is_some() => 0,
        tools::UPDATE_PARAMS => 1,
        _ => 2,
    }
}

/// Returns true if a round proposes more than one change, apart from those that were not offered.
pub(super) fn several_changes(calls: &[Call], not_offered: &[String]) -> bool {
    let offered = calls.iter().filter(|call| !not_offered.contains(&call.id));
    let mut proposals = offered.filter(|call| tools::proposed_action(&call.name).is_some());
    let Some(first) = proposals.next() else { return false };
    proposals.any(|other| (&other.name, &other.input) != (&first.name, &first.input))
}

/// The context in which the calls of a round are handled.
#[derive(Clone, Copy)]
pub(super) struct CallContext<'a> {
    /// The tools and actions.
    pub(super) registry: &'a Registry,
    /// The graph's own tools.
    pub(super) kit: &'a Kit,
    /// The situation, with the changes that are open, turned down or done.
    pub(super) situation: &'a Situation,
    /// The ids of the calls whose tools were not offered.
    pub(super) not_offered: &'a [String],
    /// True if the round proposes several changes.
    pub(super) several: bool,
}

impl CallContext<'_> {
    /// Handles one call. Everything is done here but reading, which is left to [`PlannedCall::run`].
    pub(super) fn handle(self, state: &mut AgentState, effects: &mut RoundEffects, call: &Call) -> PlannedCall {
        let outcome = match call.name.as_str() {
            name if self.not_offered.contains(&call.id) => Err(was_not_offered(self.registry, name)),
            tools::EXECUTION_LOG => match self.past_changes(state, &call.input) {
                Ok(planned) => return planned,
                Err(mistake) => Err(mistake),
            },
            tools::ANALYZE => Ok("noted".to_owned()),
            tools::NEXT_STEPS => Ok("shown with the answer".to_owned()),
            name => match (tools::proposed_action(name), self.registry.tools.get(name)) {
                (Some(action), _) => self.propose(state, effects, action, &call.input),
                (None, Some(tool)) => match plan_read(state, self.registry, tool, &call.input) {
                    Ok(planned) => {
                        effects.read = true;
                        return planned;
                    }
                    Err(mistake) => Err(mistake),
                },
                (None, None) => self.set(state, effects, call),
            },
        };
        effects.mistaken |= outcome.is_err();
        PlannedCall::Settled(outcome)
    }

    /// Reads the log of this thread, if it answers the question. Otherwise the records of past changes have to be read.
    fn past_changes(self, state: &mut AgentState, input: &Value) -> Result<PlannedCall, String> {
        let schema = self.kit.own_schema(tools::EXECUTION_LOG).ok_or("there is no such tool")?;
        let arguments = exchange::validate(input, schema)?;
        match Search::of(&arguments, &state.log, self.registry, state.turn.at, state.turn.zone.as_deref())? {
            Some(search) => Ok(PlannedCall::History { search, arguments }),
            None => {
                let log = outcomes::log_as_data(&state.log);
                Ok(PlannedCall::Settled(Ok(keep_past_changes(state, arguments, log))))
            }
        }
    }

    /// Makes a proposed change the change of the turn. Problems with its parameters are reported to the model; if it
    /// does not solve them, they are reported to the person.
    fn propose(
        self,
        state: &mut AgentState,
        effects: &mut RoundEffects,
        action: &str,
        input: &Value,
    ) -> Result<String, String> {
        let schema = self.registry.schema_of(action).filter(|_| self.registry.actions.contains_key(action));
        let Some(schema) = schema else {
            return Err(format!("there is no change `{}`", shorten_name(action)));
        };
        if self.several {
            return Err(format!(
                "one message is one change: call `{}` with `steps`, one for each, or propose one alone",
                tools::ANALYZE
            ));
        }
        let Some(given) = input.as_object() else {
            return Err("the arguments must be a JSON object".to_owned());
        };
        // An undo or a repetition of a change in this thread has the parameters that were stored with that change.
        let as_stored = self.situation.recent_changes.iter().flat_map(|change| [&change.undo, &change.again]).flatten();
        let is_stored = as_stored
            .into_iter()
            .any(|draft| draft.action == action && given.iter().all(|(k, v)| draft.params.get(k) == Some(v)));
        let unknown = given.keys().find(|key| !is_stored && !schema.may_have(key));
        if let Some(unknown) = unknown {
            return Err(format!("`{action}` has no parameter `{}`", shorten_name(unknown)));
        }
        let counted = |(key, value): (&String, &Value)| {
            let number = value.as_str().filter(|_| numbers::is_count(schema.parameter(key)));
            let number = number.and_then(numbers::count).map(Value::from);
            (key.clone(), number.unwrap_or_else(|| value.clone()))
        };
        let params: Map<String, Value> = given.iter().filter(|(_, value)| !value.is_null()).map(counted).collect();
        let fits = match is_stored {
            true => Ok(Value::Null),
            false => exchange::validate(&Value::Object(params.clone()), &schema),
        };
        let known = state.turn.change.take().or_else(|| state.draft.clone()).filter(|draft| draft.action == action);
        let asked = known.and_then(|draft| draft.asked);
        let change = Draft { asked, ..Draft::begun(action, params) };
        if state.continues_draft(self.registry, &change) {
            state.take_up_plan(state.draft_turn);
        }
        state.turn.change = Some(change);
        effects.parameters = true;
        fits.map(|_| "noted".to_owned())
    }

    /// Runs one of the graph's own tools.
    fn set(self, state: &mut AgentState, effects: &mut RoundEffects, call: &Call) -> Result<String, String> {
        let unknown = || format!("there is no tool `{}`", shorten_name(&call.name));
        let schema = self.kit.own_schema(&call.name).ok_or_else(unknown)?;
        match call.name.as_str() {
            tools::UPDATE_PARAMS => {
                let UpdateParam { key, value } = exchange::parse(&call.input, schema)?;
                self.update(state, effects, key, value)
            }
            tools::SET_MISSING => {
                let SetMissing { missing_params } = exchange::parse(&call.input, schema)?;
                state.turn.missing = missing_params.into_iter().take(20).collect();
                Ok("noted; the person will be asked".to_owned())
            }
            tools::ADD_ERROR => {
                let AddError { error_type, message } = exchange::parse(&call.input, schema)?;
                state.note_problem(&error_type, &message);
                Ok("noted".to_owned())
            }
            tools::DROP_DRAFT
                if state.draft.is_none() && state.turn.change.is_none() && self.situation.asked_for().is_some() =>
            {
                Err("there is no draft, and about a card only people decide".to_owned())
            }
            tools::DROP_DRAFT => {
                effects.dropped = true;
                state.draft = None;
                state.turn.change = None;
                Ok("dropped".to_owned())
            }
            _ => Err(unknown()),
        }
    }

    /// Updates one parameter of the change in hand.
    fn update(
        self,
        state: &mut AgentState,
        effects: &mut RoundEffects,
        key: String,
        value: Value,
    ) -> Result<String, String> {
        if state.turn.change.is_none() {
            let (earlier, of_turn) = match &state.draft {
                Some(draft) => (Some(draft.clone()), state.draft_turn),
                None => (self.situation.asked_for().cloned(), state.on_card_turn),
            };
            state.turn.corrects = state.draft.is_none() && state.on_card.is_some();
            state.turn.change = Some(earlier.ok_or("there is no draft; propose the change")?);
            state.take_up_plan(of_turn);
        }
        if let Some(change) = &mut state.turn.change {
            // Any other parameter would be ignored silently.
            let schema = self.registry.schema_of(&change.action);
            if schema.as_ref().is_some_and(|schema| !schema.may_have(&key)) {
                effects.unknown_parameter = true;
                return Err(format!("`{}` has no parameter `{}`", change.action, shorten_name(&key)));
            }
            let is_count = schema.is_some_and(|schema| numbers::is_count(schema.parameter(&key)));
            let value = match value.as_str() {
                Some(said) if is_count => match numbers::count(said) {
                    Some(number) => number.into(),
                    None => {
                        effects.no_number = true;
                        return Err(format!("`{key}` has to be a whole number"));
                    }
                },
                _ => value,
            };
            change.params.insert(key, value);
        }
        effects.parameters = true;
        Ok("noted".to_owned())
    }
}

/// Keeps what is known of past changes for the answer, and returns it for the model.
fn keep_past_changes(state: &mut AgentState, arguments: Value, found: Value) -> String {
    let key = "execution_log".to_owned();
    let for_model = found.to_string();
    state.turn.gathered.insert(key.clone(), found);
    let tool = tools::EXECUTION_LOG.to_owned();
    state.turn.reads.push(ToolRead { tool, arguments, key, failed: None, read_at: None });
    for_model
}

fn plan_read(
    state: &mut AgentState,
    registry: &Registry,
    tool: &Arc<dyn Tool>,
    input: &Value,
) -> Result<PlannedCall, String> {
    let schema = registry.schema_of(tool.name()).ok_or("there is no such tool")?;
    let arguments = exchange::validate(input, &schema)?;
    let key = entry_key(tool.name(), &arguments);
    if let Some(known) = state.turn.gathered.get(&key) {
        return Ok(PlannedCall::Settled(Ok(shortened_to(known, MAX_RESULT_FOR_MODEL).to_string())));
    }
    if let Some((entry, read_at)) = cached_answer(state, &**tool, &key) {
        return Ok(PlannedCall::Known { entry, read_at, tool: Arc::clone(tool), arguments, key });
    }
    if state.turn.reads.len() >= MAX_READS {
        return Err("enough was read in this turn; answer with what is there".to_owned());
    }
    Ok(PlannedCall::Reading { tool: Arc::clone(tool), arguments, key })
}

/// Returns an answer that was read in this thread a moment ago, unless the person asks to look again.
fn cached_answer(state: &AgentState, tool: &dyn Tool, key: &str) -> Option<(Fresh, Timestamp)> {
    const AGAIN: [&str; 9] = ["again", "refresh", "reload", "now", "current", "currently", "latest", "still", "moment"];
    let said = state.turn.said.to_lowercase();
    let looks_again = said.split(|c: char| !c.is_alphanumeric()).any(|word| AGAIN.contains(&word));
    if looks_again || !tool.info().may_be_repeated {
        return None;
    }
    state.context.fresh(&entry_kind(tool.name()), key, state.turn.at)
}

/// Returns the type under which a tool's answers are kept.
pub(super) fn entry_kind(tool: &str) -> String {
    tool.trim_start_matches("get_").to_uppercase()
}

/// Makes “it” refer to the subject of an answer, and “the second one” to its entries.
fn remember_subject(state: &mut AgentState, registry: &Registry, tool: &dyn Tool, arguments: &Value, answer: &Value) {
    state.note_list(tool, arguments, answer);
    // The only one of a list is meant by “it” as well.
    let only = match &state.listed {
        Some(Listed { names, is_complete: true, is_passed: false, .. }) if registry.book.lists_things(tool.name()) => {
            names.first().filter(|_| names.len() == 1).cloned()
        }
        _ => None,
    };
    if let Some(subject) = tool.subject(arguments, answer).or(only) {
        state.note_subject(registry, tool.name(), subject);
    }
}

fn shorten_name(name: &str) -> String {
    super::super::history::shorten(name, 60)
}

/// Keeps the answer of a call, and returns its result for the model.
pub(super) fn keep_answer(state: &mut AgentState, registry: &Registry, call: &Call, answer: ToolAnswer) -> Block {
    let (tool, arguments, key, result) = match answer {
        ToolAnswer::Settled(outcome) => return exchange::result(call, outcome),
        ToolAnswer::History { arguments, value } => {
            return exchange::result(call, Ok(keep_past_changes(state, arguments, value)));
        }
        ToolAnswer::Read { tool, arguments, key, result } => (tool, arguments, key, result),
        ToolAnswer::Known { tool, arguments, key, value, read_at } => {
            let mut for_model = shortened_to(&value, MAX_RESULT_FOR_MODEL);
            if let Some(for_model) = for_model.as_object_mut() {
                for_model.insert("read_seconds_ago".to_owned(), state.turn.at.since(read_at).as_secs().into());
            }
            remember_subject(state, registry, &*tool, &arguments, &value);
            state.turn.gathered.insert(key.clone(), value);
            let read_at = Some(read_at);
            state.turn.reads.push(ToolRead { tool: tool.name().to_owned(), arguments, key, failed: None, read_at });
            return exchange::result(call, Ok(for_model.to_string()));
        }
    };
    let (failed, for_model) = match result {
        Ok(value) => {
            remember_subject(state, registry, &*tool, &arguments, &value);
            settle_draft(state, &*tool);
            state.context.learn(&entry_kind(tool.name()), &key, &value, state.turn.at);
            let kept = shortened_to(&value, MAX_RESULT_BYTES);
            let for_model = shortened_to(&kept, MAX_RESULT_FOR_MODEL).to_string();
            state.turn.gathered.insert(key.clone(), kept);
            (None, Ok(for_model))
        }
        Err(ToolError { kind, reply, transient }) => {
            let words = reply.words();
            state.note_problem(replies::kind_name(kind), &words);
            let reply = if transient { replies::try_again(reply, &state.turn.said) } else { reply };
            (Some(reply), Err(words))
        }
    };
    state.turn.reads.push(ToolRead { tool: tool.name().to_owned(), arguments, key, failed, read_at: None });
    exchange::result(call, for_model)
}

/// Drops the draft that an answer of this tool makes superfluous, and takes up the plan that waited for it.
fn settle_draft(state: &mut AgentState, tool: &dyn Tool) {
    let is_settled = |draft: &Draft| tool.info().settles == Some(draft.action.as_str());
    if state.draft.as_ref().is_some_and(is_settled) {
        state.draft = None;
        state.take_up_plan(state.draft_turn);
    }
}

/// Returns the key under which a tool's answer is kept: the tool without `get_`, and its arguments. The form and page
/// of the answer make no difference, except for raw data.
pub(super) fn entry_key(tool: &str, arguments: &Value) -> String {
    let mut key = tool.trim_start_matches("get_").to_owned();
    if let (Some(stem), Some(context)) = (key.strip_suffix("context"), arguments["context"].as_str()) {
        return format!("{stem}{}", super::super::history::shorten(context, 80)); // `conditions_for_assign-prog`
    }
    let distinguishes = |(name, value): &(&String, &Value)| match name.as_str() {
        "form" => *value == "raw",
        "page" => false,
        _ => true,
    };
    for (_, value) in arguments.as_object().into_iter().flatten().filter(distinguishes) {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        key.push(':');
        key.push_str(&super::super::history::shorten(&text, 80));
    }
    key
}

/// Returns the message for a model that called a tool which it was not offered.
fn was_not_offered(registry: &Registry, name: &str) -> String {
    let family = registry.family_of(tools::proposed_action(name).unwrap_or(name));
    let family = family.map_or("…", |family| family.name);
    format!(
        "`{name}` was not offered, so it was not called. If the person asks for it, call `{}` with the capability `{family}`",
        tools::ANALYZE
    )
}
