//! The tool `compare_experiments`: a few experiments side by side, as the platform describes them now.

use std::sync::Arc;

use async_trait::async_trait;
use countersign_capabilities::{ShownList, Tool, ToolError, ToolInfo};
use countersign_core::reply::Reply;
use countersign_graph::action::{ErrorKind, Reader};
use futures_util::future::try_join_all;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    access::{self, schema},
    replies::compared,
    summary::Details,
    tools::{arguments_as, as_tool_error},
};
use crate::upgrade::client::UpgradeClient;

/// The maximum number of experiments beside each other.
pub const MAX_COMPARED: usize = 4;

/// The experiments to compare.
#[derive(Deserialize, JsonSchema)]
struct Compared {
    /// The names or ids, two to four.
    experiments: Vec<String>,
}

/// `compare_experiments`: two to four experiments side by side.
#[derive(Debug)]
pub struct CompareExperiments(pub Arc<UpgradeClient>);

#[async_trait]
impl Tool for CompareExperiments {
    fn info(&self) -> ToolInfo {
        ToolInfo {
            may_be_repeated: true,
            ..ToolInfo::new(
                "compare_experiments",
                "Shows two to four experiments side by side: status, context, conditions with weights, decision points, assignment, \
         dates and enrollment.",
            )
        }
    }

    fn schema(&self) -> Value {
        schema::<Compared>()
    }

    async fn call(&self, arguments: &Value, _: Option<&Reader>) -> Result<Value, ToolError> {
        let Compared { mut experiments } = arguments_as(arguments)?;
        let mut seen = std::collections::HashSet::new();
        experiments.retain(|name| seen.insert(name.clone()));
        if !(2..=MAX_COMPARED).contains(&experiments.len()) {
            let reply = compared::wrong_number(experiments.len());
            return Err(ToolError { kind: ErrorKind::UserInput, reply, transient: false });
        }
        let experiments = &experiments;
        let read = experiments.iter().map(|name| async move {
            let with =
                |known: &str| compared::request(experiments.iter().map(|one| if one == name { known } else { one }));
            let experiment = access::experiment(&self.0, name, with).await.map_err(as_tool_error)?;
            let enrolled = self.0.enrollment_detail(&experiment.view).await.ok();
            Ok::<_, ToolError>(Details::of(&experiment.view, enrolled.as_ref()))
        });
        let all: Vec<Details> = try_join_all(read).await?;
        Ok(json!({ "experiments": all }))
    }

    fn present(&self, _: &Value, answer: &Value) -> Option<Reply> {
        Some(compared::compared_reply(answer))
    }

    fn listed(&self, _: &Value, answer: &Value) -> Option<ShownList> {
        let names = answer["experiments"].as_array()?.iter().filter_map(|one| one["name"].as_str());
        Some(ShownList { names: names.map(str::to_owned).collect(), is_complete: true })
    }
}
