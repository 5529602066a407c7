//! Tools that each read one part of a context's vocabulary.

use std::{collections::BTreeMap, sync::Arc};

use countersign_capabilities::{
    Tool, ToolError, ToolInfo,
    rows::{Nothing, Read},
};
use countersign_core::reply::Reply;
use countersign_graph::action::ErrorKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    access::{self, Deps},
    replies::{contexts, refusals},
};
use crate::upgrade::{client::UpgradeClient, context::ContextMetadata, experiment::View};

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

/// A part of a context's vocabulary, with the tool that reads it.
struct Part {
    info: ToolInfo,
    /// The name in the requests that the buttons of a refusal send.
    name: &'static str,
    /// True if the answer depends on the experiments of the context.
    with_experiments: bool,
    read: fn(ContextMetadata, &[&View]) -> Value,
    present: fn(&Value) -> Reply,
}

const PARTS: [Part; 3] = [
    Part {
        info: ToolInfo {
            may_be_repeated: true,
            ..ToolInfo::new(
                "get_conditions_for_context",
                "Lists the condition codes that experiments in one context can compare.",
            )
        },
        name: "conditions",
        with_experiments: false,
        read: |known, _| json!({ "conditions": known.conditions }),
        present: contexts::conditions_reply,
    },
    Part {
        info: ToolInfo {
            may_be_repeated: true,
            ..ToolInfo::new(
                "get_decision_points_for_context",
                "Lists the sites and targets of one context, from which decision points are made (site / target), and which \
         decision points its experiments use.",
            )
        },
        name: "decision points",
        with_experiments: true,
        read: |known, experiments| json!({ "sites": known.sites, "targets": known.targets, "in_use": points_in_use(experiments) }),
        present: contexts::points_reply,
    },
    Part {
        info: ToolInfo {
            may_be_repeated: true,
            ..ToolInfo::new(
                "get_group_types_for_context",
                "Lists the kinds of groups (such as classId) by which experiments in one context can assign.",
            )
        },
        name: "group types",
        with_experiments: false,
        read: |known, _| json!({ "group_types": known.group_types }),
        present: contexts::group_types_reply,
    },
];

/// Returns the tools for the parts of a context's vocabulary.
pub(super) fn parts(deps: Deps) -> impl Iterator<Item = Arc<dyn Tool>> {
    PARTS.into_iter().map(move |part| {
        let info = part.info;
        Arc::new(Read {
            present: |(_, part): &(Deps, Part), _, answer| Some((part.present)(answer)),
            ..Read::new((deps.clone(), part), info, |(deps, part), asked, _| Box::pin(read(&deps.client, part, asked)))
        }) as Arc<dyn Tool>
    })
}

/// Returns `get_available_contexts`: the names of the contexts.
pub(super) fn names(deps: Deps) -> Arc<dyn Tool> {
    let info = ToolInfo {
        may_be_repeated: true,
        ..ToolInfo::new(
            "get_available_contexts",
            "Lists the names of the contexts (client applications) there are, and nothing else of them.",
        )
    };
    Arc::new(Read {
        present: |_, _, answer| Some(contexts::available_reply(answer)),
        ..Read::new(deps, info, |deps, Nothing {}, _| {
            Box::pin(async move {
                let contexts = deps.client.context_metadata().await?;
                Ok(json!({ "contexts": contexts.keys().collect::<Vec<_>>() }))
            })
        })
    })
}

/// Reads a part of the vocabulary of the named context; an experiment stands for its context.
async fn read(client: &UpgradeClient, part: &Part, asked: ContextArguments) -> Result<Value, ToolError> {
    let contexts = client.context_metadata().await?;
    let request_with = |known: &str| format!("what {} does {known} have?", part.name);
    let Some(asked) = asked.context else {
        let known: Vec<String> = contexts.keys().cloned().collect();
        let reply = refusals::which_context(part.name, &known, request_with);
        return Err(access::refused(ErrorKind::UserInput, reply).into());
    };
    let (context, known) = match access::context(&contexts, &asked, request_with) {
        Ok(found) => found,
        Err(_) => {
            let all = client.all().await?;
            let experiment = all.iter().find(|view| view.name.eq_ignore_ascii_case(asked.trim()));
            access::context(&contexts, experiment.map_or(asked.as_str(), |view| view.context()), request_with)?
        }
    };
    let all = if part.with_experiments { client.all().await? } else { Arc::default() };
    let here: Vec<&View> = all.iter().filter(|experiment| experiment.context() == context).collect();
    let mut answer = (part.read)(known.clone(), &here);
    answer["context"] = json!(context);
    Ok(answer)
}

fn points_in_use(experiments: &[&View]) -> Vec<PointInUse> {
    let mut used: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for experiment in experiments {
        for point in &experiment.decision_points {
            used.entry(point.words()).or_default().push(experiment.name.clone());
        }
    }
    used.into_iter().map(|(decision_point, experiments)| PointInUse { decision_point, experiments }).collect()
}
