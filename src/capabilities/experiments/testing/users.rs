//! `generate_test_users`: generates names for simulated participants and their groups. Nothing is sent.

use std::sync::Arc;

use countersign_capabilities::{Tool, ToolError, ToolInfo, rows::Read};
use countersign_graph::action::ErrorKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::simulated;
use crate::{
    access::{self, Deps},
    replies::users as words,
    subject,
    upgrade::client::UpgradeClient,
};

/// The maximum number of names in one answer.
pub const MAX_USERS: u32 = 1_000;
/// The default number of names.
const DEFAULT_USERS: u32 = 5;
/// The maximum length of the common prefix of names, in characters.
const MAX_RUN_LENGTH: usize = 40;

/// The parameters of the tool.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct GenerateUsersArguments {
    /// The number of names, 1 to 1000. Default: 5.
    users: Option<i64>,
    /// The experiment, by name or id: its group type is used if its unit of assignment is `group`.
    experiment: Option<String>,
    /// The group type, such as `classId`.
    group_type: Option<String>,
    /// True to add groups of any type.
    with_groups: bool,
    /// The prefix of the names; the same prefix makes the same names. Default: a new one.
    run: Option<String>,
}

/// The generated names.
#[derive(Debug, Serialize, Deserialize)]
pub struct Users {
    /// The common prefix of the names.
    pub run: String,
    /// The experiment for which the users are meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experiment: Option<String>,
    /// The type of their groups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_type: Option<String>,
    /// The users, in order.
    pub users: Vec<User>,
}

/// One simulated user.
#[derive(Debug, Serialize, Deserialize)]
pub struct User {
    /// The name.
    pub user: String,
    /// The group, if there are groups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
}

/// Returns `generate_test_users`.
pub(crate) fn tool(deps: Deps) -> Arc<dyn Tool> {
    let info = ToolInfo::new(
        "generate_test_users",
        "Makes up names for simulated users, and groups for them where wanted. It sends nothing: use it when someone wants \
         names for visits of their own, not to enrol anybody.",
    );
    Arc::new(Read {
        present: |_, _, answer| Some(words::reply(answer)),
        subject: subject::of_answer,
        ..Read::new(deps, info, |deps, asked, _| Box::pin(generate(&deps.client, asked)))
    })
}

async fn generate(client: &UpgradeClient, asked: GenerateUsersArguments) -> Result<Value, ToolError> {
    let count = asked.users.unwrap_or(DEFAULT_USERS.into());
    let count = u32::try_from(count).ok().filter(|count| (1..=MAX_USERS).contains(count));
    let count = count.ok_or_else(|| access::invalid(words::not_so_many()))?;
    let run = asked.run.as_deref().map(str::trim).filter(|run| !run.is_empty());
    let run = match run.map(access::user).transpose()? {
        Some(run) if run.len() > MAX_RUN_LENGTH => return Err(access::invalid(words::long_run(MAX_RUN_LENGTH)).into()),
        Some(run) => run,
        None => simulated::run(),
    };
    let (experiment, group_type) = purpose(client, &asked, count).await?;
    let user = |number| User {
        user: simulated::name(&run, number),
        group: group_type.as_ref().map(|_| simulated::group(&run, number)),
    };
    let users = (0..count).map(user).collect();
    Ok(json!(Users { run: run.clone(), experiment, group_type: group_type.clone(), users }))
}

/// Returns the name of the experiment for which the users are meant, and the type of their groups.
async fn purpose(
    client: &UpgradeClient,
    asked: &GenerateUsersArguments,
    count: u32,
) -> Result<(Option<String>, Option<String>), ToolError> {
    let request_with = |name: &str| format!("generate {count} test users for {name}");
    let view = match asked.experiment.as_deref().filter(|name| !name.trim().is_empty()) {
        Some(name) => Some(access::experiment(client, name, request_with).await?.view),
        None => None,
    };
    let name = view.as_ref().map(|view| view.name.clone());
    let own = view.as_ref().filter(|view| view.assignment_unit == "group").and_then(|view| view.group.clone());
    let wanted = asked.group_type.as_deref().map(str::trim).filter(|kind| !kind.is_empty());
    if wanted.is_none() && (own.is_some() || !asked.with_groups) {
        return Ok((name, own));
    }
    let contexts = client.context_metadata().await?;
    let here = view.as_ref().and_then(|view| contexts.get(view.context()).map(|known| (view.context(), known)));
    let mut known: Vec<String> = match here {
        Some((_, known)) => known.group_types.clone(),
        None => contexts.values().flat_map(|known| known.group_types.clone()).collect(),
    };
    known.sort();
    known.dedup();
    let unclear = || access::refused(ErrorKind::UserInput, words::which_groups(count, name.as_deref(), &known));
    let kind = match (wanted, known.as_slice()) {
        (Some(wanted), _) => access::group_type(&known, wanted).ok_or_else(unclear)?.clone(),
        (None, [only]) => only.clone(),
        (None, _) => return Err(unclear().into()),
    };
    Ok((name, Some(kind)))
}
