//! `init_experiment_user`: registers a participant, or changes the stored groups of an existing one.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use countersign_capabilities::rows::Change;
use countersign_core::reply::{Card, Fact, Text};
use countersign_graph::action::{
    ActionInfo, ActionKind, ActionRecord, Outcome, Performed, PrepareError, Proposal, Scope,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    card_differences::differences_in_words, compact, non_blank, performed_with_error, read_failed,
    surroundings::SURROUNDINGS,
};
use crate::{
    access::{self, Deps},
    forms,
    inputs::GroupsInput,
    replies::{outcomes, reach},
    upgrade::{client::UpgradeClient, error::Error, experiment::View, participants::Introduction},
};

/// The parameters of the action.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct InitUserParameters {
    /// The participant's id. Required.
    user: Option<String>,
    /// The groups of the participant, by type, such as `{"classId": ["class-1"]}`.
    group: Option<GroupsInput>,
    /// The working group of the participant for each type, such as `{"classId": "class-1"}`.
    working_group: Option<BTreeMap<String, String>>,
    /// The context that defines the group types. The platform stores users for all contexts.
    context: Option<String>,
}

/// The stored parameters.
#[derive(Serialize, Deserialize)]
struct UserIntroduction {
    user: String,
    group: Option<BTreeMap<String, Vec<String>>>,
    working_group: Option<BTreeMap<String, String>>,
    /// The context that defines the group types. It is not sent, since the platform stores users for all
    /// contexts.
    context: Option<String>,
}

impl UserIntroduction {
    /// Returns true if it sets a working group.
    fn acts_in_groups(&self) -> bool {
        self.working_group.as_ref().is_some_and(|groups| !groups.is_empty())
    }
}

/// Returns the action.
pub(crate) fn action(deps: Deps) -> Arc<dyn ActionKind> {
    let info = ActionInfo::new(
        "init_experiment_user",
        "Introduces a participant to the platform, with groups if there are any. Needed before assignments or marks.",
    );
    let mut change = Change::new(
        deps,
        info,
        |row, asked, _| Box::pin(prepare(&row.deps.client, asked)),
        // The request replaces the stored groups, so sending it again changes nothing.
        |row, UserIntroduction { user, group, working_group, context: _ }, record| {
            Box::pin(async move {
                match row.deps.client.init_user(&user, &Introduction { group, working_group }).await {
                    Ok(()) => Performed::Ended(Outcome::done(record, json!({ "user": user }))),
                    Err(error) => performed_with_error(row, record, error).await,
                }
            })
        },
    );
    change.now = |row, introduced, record| Box::pin(current(&row.deps.client, introduced, record));
    change.form = Some(|_, given| Box::pin(async move { Some(forms::user(given, &[("/context", "Context")])) }));
    change.differences = differences_in_words;
    Arc::new(change)
}

async fn prepare(client: &UpgradeClient, asked: InitUserParameters) -> Result<Proposal, PrepareError> {
    let Some(user) = non_blank(asked.user.as_ref()) else {
        return Err(access::ask("user", access::WHICH_USER, Vec::new()));
    };
    let user = access::user(user)?;
    let contexts = client.context_metadata().await?;
    let (context, known) = match non_blank(asked.context.as_ref()) {
        Some(context) => {
            let request_with = |known: &str| format!("initialize user {user} in {known}");
            let (context, metadata) = access::context(&contexts, context, request_with)?;
            (Some(context.to_owned()), metadata.group_types.clone())
        }
        None => {
            let all: BTreeSet<_> = contexts.into_values().flat_map(|context| context.group_types).collect();
            (None, all.into_iter().collect())
        }
    };
    let kind = |asked: String| access::group_type(&known, &asked).cloned().unwrap_or(asked);
    let group = asked.group.map(|groups| groups.into_iter().map(|(asked, ids)| (kind(asked), ids.all())).collect());
    let working_group =
        asked.working_group.map(|groups| groups.into_iter().map(|(asked, id)| (kind(asked), id)).collect());
    let introduced = UserIntroduction { user, group, working_group, context };
    let mut card = card(&introduced, &known);
    let mut preconditions = json!({});
    if introduced.acts_in_groups()
        && let Ok(warning) = group_change_warning(client, &introduced).await
    {
        preconditions[SURROUNDINGS][BY_GROUPS] = in_words(warning.as_ref()).into();
        card.warnings.extend(warning);
    }
    let scope = introduced.context.iter().fold(Scope::default(), |scope, context| scope.in_context(context));
    Ok(Proposal { preconditions, scope, ..Proposal::new(compact(introduced), card) })
}

async fn current(
    client: &UpgradeClient,
    introduced: UserIntroduction,
    record: &ActionRecord,
) -> Result<Value, Outcome> {
    let mut state = json!({});
    if record.preconditions.get(SURROUNDINGS).is_some() {
        let warning = group_change_warning(client, &introduced).await.map_err(|error| read_failed(&error))?;
        state[SURROUNDINGS][BY_GROUPS] = in_words(warning.as_ref()).into();
    }
    Ok(state)
}

/// Returns a warning about the live experiments that draw by one of the given groups, where the user
/// will get the condition of the group.
async fn group_change_warning(client: &UpgradeClient, introduced: &UserIntroduction) -> Result<Option<Text>, Error> {
    let groups = introduced.working_group.clone().unwrap_or_default();
    let all = client.all().await?;
    let here = |view: &&View| introduced.context.as_deref().is_none_or(|context| view.context() == context);
    let affected = all.iter().filter(|view| view.state.is_live()).filter(here).filter_map(|view| {
        let kind = view.group.clone().filter(|kind| view.assignment_unit == "group" && groups.contains_key(kind))?;
        Some((view, kind))
    });
    Ok(reach::draws_by_group(&affected.collect::<Vec<_>>()))
}

/// The label of the experiments that assign by one of the user's groups.
const BY_GROUPS: &str = "Experiments that assign by these groups";

fn in_words(warning: Option<&Text>) -> String {
    warning.map_or_else(|| "none".to_owned(), Text::words)
}

fn card(introduced: &UserIntroduction, known: &[String]) -> Card {
    let UserIntroduction { user, group, working_group, context } = introduced;
    let mut facts = vec![Fact::new("User", Text::new().code(user))];
    let (mut warnings, mut notes) = (Vec::new(), Vec::new());
    if let Some(group) = group {
        let words: Vec<_> = group.iter().map(|(kind, ids)| format!("{kind}: {}", ids.join(", "))).collect();
        facts.push(Fact::new("Groups", words.join("; ")));
        warnings.push(Text::from("These groups replace the ones the platform has for this user."));
    }
    for (kind, id) in working_group.iter().flatten() {
        facts.push(Fact::new("Working group", format!("{kind}: {id}")));
        if group.as_ref().is_some_and(|group| !group.get(kind).is_some_and(|ids| ids.contains(id))) {
            let words = format!(
                "The working group {id} isn't one of the user's groups, so group experiments will ignore this user."
            );
            warnings.push(Text::from(words));
        }
    }
    let kinds = group.iter().flat_map(|g| g.keys()).chain(working_group.iter().flat_map(|g| g.keys()));
    let unknown: BTreeSet<_> = kinds.filter(|kind| !known.contains(kind)).map(String::as_str).collect();
    if !unknown.is_empty() {
        let unknown = unknown.into_iter().collect::<Vec<_>>().join(", ");
        let nobody = match context {
            Some(context) => format!("{context} has no group type {unknown}"),
            None => format!("No context has the group type {unknown}"),
        };
        warnings
            .push(Text::from(format!("{nobody}, so it has no effect there. Known group types: {}.", known.join(", "))));
    }
    if let Some(context) = context {
        let words = "UpGrade stores users once for all contexts";
        notes.push(Text::from(match group.is_some() || working_group.is_some() {
            true => format!("{words}; {context} only determines the available group types."),
            false => format!("{words}, so this applies in {context} and every other context."),
        }));
    }
    if group.is_none() && working_group.is_none() {
        notes.push(Text::from("No groups were given, so the user's current groups don't change."));
    }
    let done = outcomes::initialised(user).words();
    Card { facts, warnings, notes, ..Card::new(format!("Initialize user “{user}”?"), "Initialize user", done) }
}
