//! Tools that read from the platform. Their answers are small, since they are sent to a model and
//! stored in the thread's state.

use std::sync::Arc;

use async_trait::async_trait;
use countersign_capabilities::{ShownList, Tool, ToolError, ToolInfo};
use countersign_core::{clock::Clock, reply::Reply};
use countersign_graph::action::{ErrorKind, PrepareError, Reader, Refusal};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    access::{self, schema, tool_error},
    listing::{Form, ListArguments},
    replies::{
        answers,
        aspects::{self, Aspect},
        contexts, details, lists,
    },
    subject,
    summary::{Details, Summary},
};
use crate::upgrade::{client::UpgradeClient, experiment::View};

/// The maximum number of experiments in one answer.
const MAX_EXPERIMENTS: usize = 200;
/// The maximum size of an experiment's raw data in an answer, in bytes.
const MAX_RAW_BYTES: usize = 80_000;

/// No parameters.
#[derive(Deserialize, JsonSchema)]
struct NoArguments {}

/// `check_upgrade_health`: the health of the platform.
#[derive(Debug)]
pub struct CheckHealth(pub Arc<UpgradeClient>);

#[async_trait]
impl Tool for CheckHealth {
    fn info(&self) -> ToolInfo {
        ToolInfo::new(
            "check_upgrade_health",
            "Checks whether the experiment platform answers, and which version it is.",
        )
    }

    fn schema(&self) -> Value {
        schema::<NoArguments>()
    }

    async fn call(&self, _: &Value, _: Option<&Reader>) -> Result<Value, ToolError> {
        Ok(json!(self.0.health().await.map_err(|error| tool_error(&error))?))
    }

    fn present(&self, _: &Value, answer: &Value) -> Option<Reply> {
        Some(answers::health_reply(answer))
    }
}

/// `get_context_metadata`: the vocabulary of every context.
#[derive(Debug)]
pub struct ContextMetadata(pub Arc<UpgradeClient>);

#[async_trait]
impl Tool for ContextMetadata {
    fn info(&self) -> ToolInfo {
        ToolInfo {
            read_back: Some("the contexts and their vocabulary"),
            may_be_repeated: true,
            ..ToolInfo::new(
                "get_context_metadata",
                "Lists the contexts (client applications) with what each knows: CONDITIONS are suggested condition codes, \
         GROUP_TYPES kinds of groups, EXP_POINTS sites and EXP_IDS targets of decision points.",
            )
        }
    }

    fn schema(&self) -> Value {
        schema::<NoArguments>()
    }

    async fn call(&self, _: &Value, _: Option<&Reader>) -> Result<Value, ToolError> {
        Ok(json!(self.0.context_metadata().await.map_err(|error| tool_error(&error))?))
    }

    fn present(&self, arguments: &Value, answer: &Value) -> Option<Reply> {
        Some(contexts::contexts_reply(answer, arguments["context"].as_str()))
    }
}

/// `get_experiment_names`: the names and ids of all experiments.
#[derive(Debug)]
pub struct ExperimentNames(pub Arc<UpgradeClient>);

#[async_trait]
impl Tool for ExperimentNames {
    fn info(&self) -> ToolInfo {
        ToolInfo {
            read_back: Some("the names of the experiments"),
            ..ToolInfo::new(
                "get_experiment_names",
                "Lists the names and ids of all experiments. Use it to find an experiment that a person names loosely.",
            )
        }
    }

    fn schema(&self) -> Value {
        schema::<NoArguments>()
    }

    async fn call(&self, _: &Value, _: Option<&Reader>) -> Result<Value, ToolError> {
        let names = self.0.names().await.map_err(|error| tool_error(&error))?;
        Ok(json!({ "total": names.all().len(), "experiments": names.all() }))
    }

    fn present(&self, _: &Value, answer: &Value) -> Option<Reply> {
        Some(answers::names_reply(answer))
    }

    fn listed(&self, _: &Value, answer: &Value) -> Option<ShownList> {
        let names = answer["experiments"].as_array()?.iter().filter_map(|named| named["name"].as_str());
        Some(ShownList { names: names.map(str::to_owned).collect(), is_complete: true })
    }
}

/// `get_all_experiments`: the summaries of the experiments that match a filter.
#[derive(Debug)]
pub struct AllExperiments(pub Arc<UpgradeClient>, pub Arc<dyn Clock>);

#[async_trait]
impl Tool for AllExperiments {
    fn info(&self) -> ToolInfo {
        ToolInfo {
            read_back: Some("the list of experiments"),
            may_be_repeated: true,
            ..ToolInfo::new(
                "get_all_experiments",
                "Lists and searches experiments: by context, status, tag, words in the name, or when they were created or changed, in \
         any order. Each comes with status, context, conditions with weights, decision points and tags. `total` counts all \
         that fit.",
            )
        }
    }

    fn schema(&self) -> Value {
        schema::<ListArguments>()
    }

    async fn call(&self, arguments: &Value, _: Option<&Reader>) -> Result<Value, ToolError> {
        let which: ListArguments = arguments_as(arguments)?;
        let filter = which
            .parse_filter(countersign_capabilities::moment::day(self.1.now()))
            .map_err(|reply| ToolError { kind: ErrorKind::Validation, reply, transient: false })?;
        let all = self.0.all().await.map_err(|error| tool_error(&error))?;
        let found = filter.of(&all);
        let data = |found: &[&View]| {
            let experiments: Vec<_> = found.iter().take(MAX_EXPERIMENTS).copied().map(Summary::of).collect();
            json!({ "total": found.len(), "experiments": experiments })
        };
        let Some(context) = which.context.as_ref().filter(|_| found.is_empty()) else { return Ok(data(&found)) };
        // An empty list may mean that the context does not exist, or is written in another way.
        let contexts = self.0.context_metadata().await.map_err(|error| tool_error(&error))?;
        let with = |known: &str| ListArguments { context: Some(known.to_owned()), ..which.clone() };
        let known = access::context(&contexts, context, |known| with(known).request(1)).map_err(as_tool_error)?.0;
        let with_known = with(known);
        let filter = with_known.parse_filter(countersign_capabilities::moment::day(self.1.now()));
        let mut answer = filter.map_or_else(|_| data(&found), |filter| data(&filter.of(&all)));
        answer["context"] = json!(known);
        Ok(answer)
    }

    fn present(&self, arguments: &Value, answer: &Value) -> Option<Reply> {
        Some(lists::list_reply(answer, &which_list(arguments, answer)))
    }

    fn listed(&self, arguments: &Value, answer: &Value) -> Option<ShownList> {
        lists::shown(answer, &which_list(arguments, answer))
    }
}

/// Returns the filter of an answer, with the context as the platform writes it.
fn which_list(arguments: &Value, answer: &Value) -> ListArguments {
    let which = ListArguments::deserialize(arguments).unwrap_or_default();
    match answer["context"].as_str() {
        Some(context) => ListArguments { context: Some(context.to_owned()), ..which },
        None => which,
    }
}

/// The experiment to show, and the amount of detail.
#[derive(Deserialize, JsonSchema)]
struct One {
    /// The id or name.
    experiment_id: String,
    /// `short`, `normal` (default), `full` for everything, or `raw` for a JSON file in the thread.
    #[serde(default)]
    #[schemars(with = "String")]
    form: Form,
    /// The part that the question is about, which is then the whole answer: `created` (by whom and when), `running_time`,
    /// `enrollment`, `excluded` or `included`.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    about: Option<Aspect>,
}

/// `get_experiment_details`: one experiment with its numbers of participants.
#[derive(Debug)]
pub struct ExperimentDetails(pub Arc<UpgradeClient>, pub Arc<dyn Clock>);

#[async_trait]
impl Tool for ExperimentDetails {
    fn info(&self) -> ToolInfo {
        ToolInfo {
            may_be_repeated: true,
            ..ToolInfo::new(
                "get_experiment_details",
                "Shows one experiment, by id or name: status and what it may become, conditions with weights, payloads, decision \
         points, inclusion and exclusion lists, rules, history, and how many people are enrolled in each condition.",
            )
        }
    }

    fn schema(&self) -> Value {
        schema::<One>()
    }

    async fn call(&self, arguments: &Value, _: Option<&Reader>) -> Result<Value, ToolError> {
        let One { experiment_id, form, about } = arguments_as(arguments)?;
        let request_with = |name: &str| format!("show {name}");
        let experiment = access::experiment(&self.0, &experiment_id, request_with).await.map_err(as_tool_error)?;
        // The numbers of participants are optional: without them the rest is still useful.
        let enrolled = self.0.enrollment_detail(&experiment.view).await.ok();
        let mut answer = json!(Details::of(&experiment.view, enrolled.as_ref()));
        if form == Form::Raw {
            let raw = experiment.raw().map_err(|error| access::tool_error(&error))?;
            let size = raw.to_string().len();
            answer["raw"] = if size > MAX_RAW_BYTES { json!({ "left_out": size }) } else { raw };
        }
        match about {
            // The log of who did what is optional, too.
            Some(Aspect::Created) => {
                answer["created_by"] = json!(self.0.creator(experiment.view.id).await.ok().flatten())
            }
            Some(Aspect::RunningTime) => answer["read_at"] = json!(self.1.now().0),
            _ => {}
        }
        Ok(answer)
    }

    fn present(&self, arguments: &Value, answer: &Value) -> Option<Reply> {
        if let Some(about) = arguments.get("about").and_then(|about| Aspect::deserialize(about).ok()) {
            return Some(aspects::aspect_reply(answer, about));
        }
        let form = arguments.get("form").and_then(|form| Form::deserialize(form).ok());
        Some(details::details_reply(answer, form.unwrap_or_default()))
    }

    fn subject(&self, arguments: &Value, answer: &Value) -> Option<String> {
        subject::of_answer(arguments, answer)
    }
}

pub(super) fn arguments_as<T: serde::de::DeserializeOwned>(arguments: &Value) -> Result<T, ToolError> {
    let arguments = if arguments.is_null() { &json!({}) } else { arguments };
    access::parameters(arguments).map_err(as_tool_error)
}

pub(super) fn as_tool_error(error: PrepareError) -> ToolError {
    match error {
        PrepareError::Refusal(Refusal::Refused { error, reply }) => ToolError { kind: error, reply, transient: false },
        PrepareError::Unavailable { error, reply } => {
            ToolError { kind: error, reply, transient: error == ErrorKind::Network }
        }
        PrepareError::Answered { reply, .. } => ToolError { kind: ErrorKind::Execution, reply, transient: false },
        PrepareError::Refusal(Refusal::Missing(missing)) => ToolError {
            kind: ErrorKind::UserInput,
            reply: match missing.first() {
                Some(missing) => Reply::text(missing.question.as_str()),
                None => countersign_capabilities::parameters::unreadable("something is missing"),
            },
            transient: false,
        },
    }
}
