//! The tool `compare_experiments`: a few experiments side by side, as the platform describes them now.

use std::sync::Arc;

use countersign_capabilities::{Tool, ToolError, ToolInfo, rows::Read};
use countersign_graph::action::ErrorKind;
use futures_util::future::try_join_all;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    access::{self, Deps},
    replies::compared,
    summary::Details,
    tools,
};

/// The maximum number of experiments beside each other.
pub const MAX_COMPARED: usize = 4;

/// The experiments to compare.
#[derive(Deserialize, JsonSchema)]
struct Compared {
    /// The names or ids, two to four.
    experiments: Vec<String>,
}

/// Returns `compare_experiments`: two to four experiments side by side.
pub(super) fn tool(deps: Deps) -> Arc<dyn Tool> {
    let info = ToolInfo {
        may_be_repeated: true,
        ..ToolInfo::new(
            "compare_experiments",
            "Shows two to four experiments side by side: status, context, conditions with weights, decision points, assignment, \
         dates and enrollment.",
        )
    };
    Arc::new(Read {
        present: |_, _, answer| Some(compared::compared_reply(answer)),
        listed: |_, answer| tools::all_named(answer),
        ..Read::new(deps, info, |deps, asked, _| Box::pin(compare(deps, asked)))
    })
}

async fn compare(Deps { client, .. }: &Deps, Compared { mut experiments }: Compared) -> Result<Value, ToolError> {
    let mut seen = std::collections::HashSet::new();
    experiments.retain(|name| seen.insert(name.clone()));
    if !(2..=MAX_COMPARED).contains(&experiments.len()) {
        return Err(access::refused(ErrorKind::UserInput, compared::wrong_number(experiments.len())).into());
    }
    let experiments = &experiments;
    let read = experiments.iter().map(|name| async move {
        let with = |known: &str| compared::request(experiments.iter().map(|one| if one == name { known } else { one }));
        let view = access::experiment_asked_about(client, name, with).await?.view;
        let enrolled = client.enrollment_detail(&view).await.ok();
        Ok::<_, ToolError>(Details::of(&view, enrolled.as_ref()))
    });
    Ok(json!({ "experiments": try_join_all(read).await? }))
}
