//! Tools that each read one part of a context's vocabulary.

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use countersign_capabilities::{Tool, ToolError, ToolInfo};
use countersign_core::reply::Reply;
use countersign_graph::action::{ErrorKind, Reader};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    access::{self, schema, tool_error},
    replies::{contexts, refusals},
    tools::{arguments_as, as_tool_error},
};
use crate::upgrade::{client::UpgradeClient, context::ContextMetadata};

/// No parameters.
#[derive(Deserialize, JsonSchema)]
struct NoArguments {}

/// The context.
#[derive(Deserialize, JsonSchema)]
struct ContextArguments {
    /// The context, such as `assign-prog`.
    context: Option<String>,
}

/// A decision point and the experiments that use it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PointInUse {
    /// The decision point, as `site / target`.
    pub decision_point: String,
    /// The names of the experiments that use it.
    pub experiments: Vec<String>,
}

/// Returns the context that the arguments name, with its vocabulary; an experiment stands for its context. `part` names
/// the requested part of the vocabulary in the requests that the buttons of a refusal send.
async fn requested_context(
    client: &UpgradeClient,
    arguments: &Value,
    part: &str,
) -> Result<(String, ContextMetadata), ToolError> {
    let contexts = client.context_metadata().await.map_err(|error| tool_error(&error))?;
    let request_with = |known: &str| format!("what {part} does {known} have?");
    let ContextArguments { context: Some(context) } = arguments_as(arguments)? else {
        let known: Vec<String> = contexts.keys().cloned().collect();
        let reply = refusals::which_context(part, &known, request_with);
        return Err(ToolError { kind: ErrorKind::UserInput, reply, transient: false });
    };
    if let Ok((name, known)) = access::context(&contexts, &context, request_with) {
        return Ok((name.to_owned(), known.clone()));
    }
    let all = client.all().await.map_err(|error| tool_error(&error))?;
    let experiment = all.iter().find(|view| view.name.eq_ignore_ascii_case(context.trim()));
    let asked = experiment.map_or(context.as_str(), |view| view.context());
    let (name, known) = access::context(&contexts, asked, request_with).map_err(as_tool_error)?;
    Ok((name.to_owned(), known.clone()))
}

/// `get_available_contexts`: the names of the contexts.
#[derive(Debug)]
pub struct AvailableContexts(pub Arc<UpgradeClient>);

#[async_trait]
impl Tool for AvailableContexts {
    fn info(&self) -> ToolInfo {
        ToolInfo {
            may_be_repeated: true,
            ..ToolInfo::new(
                "get_available_contexts",
                "Lists the names of the contexts (client applications) there are, and nothing else of them.",
            )
        }
    }

    fn schema(&self) -> Value {
        schema::<NoArguments>()
    }

    async fn call(&self, _: &Value, _: Option<&Reader>) -> Result<Value, ToolError> {
        let contexts = self.0.context_metadata().await.map_err(|error| tool_error(&error))?;
        Ok(json!({ "contexts": contexts.keys().collect::<Vec<_>>() }))
    }

    fn present(&self, _: &Value, answer: &Value) -> Option<Reply> {
        Some(contexts::available_reply(answer))
    }
}

/// `get_conditions_for_context`: the suggested condition codes.
#[derive(Debug)]
pub struct ConditionsOfContext(pub Arc<UpgradeClient>);

#[async_trait]
impl Tool for ConditionsOfContext {
    fn info(&self) -> ToolInfo {
        ToolInfo {
            may_be_repeated: true,
            ..ToolInfo::new(
                "get_conditions_for_context",
                "Lists the condition codes that experiments in one context can compare.",
            )
        }
    }

    fn schema(&self) -> Value {
        schema::<ContextArguments>()
    }

    async fn call(&self, arguments: &Value, _: Option<&Reader>) -> Result<Value, ToolError> {
        let (context, known) = requested_context(&self.0, arguments, "conditions").await?;
        Ok(json!({ "context": context, "conditions": known.conditions }))
    }

    fn present(&self, _: &Value, answer: &Value) -> Option<Reply> {
        Some(contexts::conditions_reply(answer))
    }
}

/// `get_decision_points_for_context`: sites, targets, and the pairs in use.
#[derive(Debug)]
pub struct PointsOfContext(pub Arc<UpgradeClient>);

#[async_trait]
impl Tool for PointsOfContext {
    fn info(&self) -> ToolInfo {
        ToolInfo {
            may_be_repeated: true,
            ..ToolInfo::new(
                "get_decision_points_for_context",
                "Lists the sites and targets of one context, from which decision points are made (site / target), and which \
         decision points its experiments use.",
            )
        }
    }

    fn schema(&self) -> Value {
        schema::<ContextArguments>()
    }

    async fn call(&self, arguments: &Value, _: Option<&Reader>) -> Result<Value, ToolError> {
        let (context, known) = requested_context(&self.0, arguments, "decision points").await?;
        let all = self.0.all().await.map_err(|error| tool_error(&error))?;
        let mut used: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for experiment in all.iter().filter(|experiment| experiment.context() == context) {
            for point in &experiment.decision_points {
                used.entry(point.words()).or_default().push(experiment.name.clone());
            }
        }
        let in_use = used.into_iter().map(|(decision_point, experiments)| PointInUse { decision_point, experiments });
        Ok(json!({
            "context": context, "sites": known.sites, "targets": known.targets,
            "in_use": in_use.collect::<Vec<_>>(),
        }))
    }

    fn present(&self, _: &Value, answer: &Value) -> Option<Reply> {
        Some(contexts::points_reply(answer))
    }
}

/// `get_group_types_for_context`: the kinds of groups.
#[derive(Debug)]
pub struct GroupTypesOfContext(pub Arc<UpgradeClient>);

#[async_trait]
impl Tool for GroupTypesOfContext {
    fn info(&self) -> ToolInfo {
        ToolInfo {
            may_be_repeated: true,
            ..ToolInfo::new(
                "get_group_types_for_context",
                "Lists the kinds of groups (such as classId) by which experiments in one context can assign.",
            )
        }
    }

    fn schema(&self) -> Value {
        schema::<ContextArguments>()
    }

    async fn call(&self, arguments: &Value, _: Option<&Reader>) -> Result<Value, ToolError> {
        let (context, known) = requested_context(&self.0, arguments, "group types").await?;
        Ok(json!({ "context": context, "group_types": known.group_types }))
    }

    fn present(&self, _: &Value, answer: &Value) -> Option<Reply> {
        Some(contexts::group_types_reply(answer))
    }
}
