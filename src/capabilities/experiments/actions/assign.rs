//! `get_decision_point_assignments`: asks for the conditions of a participant, as their application
//! would. It only reads, so in a conversation it is answered at once, without a card.

use std::sync::Arc;

use countersign_capabilities::rows::Change;
use countersign_core::reply::{Card, Fact, Reply, Text};
use countersign_graph::action::{
    ActionInfo, ActionKind, ErrorKind, Outcome, Performed, PrepareError, Proposal, Reader, Refusal, Scope,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{failed, missing, non_blank, read_failed};
use crate::{
    access::{self, Deps},
    forms, lookup,
    replies::outcomes,
    upgrade::{client::UpgradeClient, context::Contexts, error::Error, participants::AssignedCondition},
};

/// The parameters of the action.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct GetAssignmentsParameters {
    /// The participant's id. Required.
    user: Option<String>,
    /// The context of the assignment. Required.
    context: Option<String>,
}

/// The stored parameters.
#[derive(Serialize, Deserialize)]
struct AssignmentQuery {
    user: String,
    context: String,
}

/// Returns the action. It only reads, so it can be repeated.
pub(crate) fn action(deps: Deps) -> Arc<dyn ActionKind> {
    let info = ActionInfo::new(
        "get_decision_point_assignments",
        "Asks which condition a participant gets at each decision point of a context. Asking does not enrol.",
    );
    let mut change = Change::new(
        deps,
        info,
        |row, asked, reader| Box::pin(prepare(&row.deps.client, asked, reader)),
        |row, query: AssignmentQuery, _| {
            Box::pin(async move {
                Performed::Ended(match answer(&row.deps.client, &query).await {
                    Ok((result, summary)) => Outcome::Done { result, summary },
                    Err(Error::NotFound { .. }) => failed(ErrorKind::NotFound, outcomes::unknown_user(&query.user)),
                    Err(error) => read_failed(&error), // the call only reads
                })
            })
        },
    );
    change.form = Some(|_, given| Box::pin(async move { Some(forms::user(given, &[("/context", "Context")])) }));
    Arc::new(change)
}

/// A person is answered at once.
async fn prepare(
    client: &UpgradeClient,
    asked: GetAssignmentsParameters,
    reader: Option<&Reader>,
) -> Result<Proposal, PrepareError> {
    let query = query(client, asked).await?;
    if reader.is_none() {
        let scope = Scope::default().in_context(&*query.context);
        let card = card(&query.user, &query.context);
        return Ok(Proposal { scope, ..Proposal::new(query, card) });
    }
    match answer(client, &query).await {
        Ok((result, summary)) => Err(PrepareError::Answered { reply: Reply::text(summary), result }),
        Err(Error::NotFound { .. }) => {
            Err(access::refused(ErrorKind::NotFound, Reply::text(outcomes::unknown_user(&query.user))))
        }
        Err(error) => Err(error.into()),
    }
}

/// Checks the parameters, and completes the context.
async fn query(client: &UpgradeClient, asked: GetAssignmentsParameters) -> Result<AssignmentQuery, PrepareError> {
    let contexts = client.context_metadata().await?;
    let mut questions = Vec::new();
    if non_blank(asked.user.as_ref()).is_none() {
        questions.push(missing("user", access::WHICH_USER, Vec::new()));
    }
    let mut context = non_blank(asked.context.as_ref());
    if context.is_none() && contexts.len() == 1 {
        context = contexts.keys().next().map(String::as_str);
    }
    let (Some(user), Some(context)) = (non_blank(asked.user.as_ref()), context) else {
        if context.is_none() {
            questions.push(missing("context", "In which context?", contexts.keys().cloned().collect()));
        }
        return Err(Refusal::Missing(questions).into());
    };
    let user = access::user(user)?;
    let request_with = |known: &str| format!("get the assignments of user {user} in {known}");
    let context = match context_of_experiment(client, &contexts, context).await {
        Some(context) => context,
        None => access::context(&contexts, context, request_with)?.0.to_owned(),
    };
    Ok(AssignmentQuery { user, context })
}

/// Returns the context of an experiment that was named instead of a context.
async fn context_of_experiment(client: &UpgradeClient, contexts: &Contexts, asked: &str) -> Option<String> {
    let known: Vec<_> = contexts.keys().cloned().collect();
    if lookup::pick(&known, asked).is_some() {
        return None;
    }
    let experiment = access::experiment(client, asked, str::to_owned).await.ok()?;
    Some(experiment.view.context().to_owned())
}

/// Returns the conditions of the participant, with the names of the experiments if they can be read.
/// The first value is the result as data.
async fn answer(
    client: &UpgradeClient,
    AssignmentQuery { user, context }: &AssignmentQuery,
) -> Result<(Value, Text), Error> {
    let mut assignments = client.assign(user, context).await?;
    assignments.sort_by(|a, b| (&a.site, &a.target).cmp(&(&b.site, &b.target)));
    let ids = || assignments.iter().filter_map(|assignment| assignment.assigned_condition.first()?.experiment_id);
    let names = match assignments.is_empty() {
        true => Arc::default(),
        false => match client.known_names().await.unwrap_or_default() {
            known if ids().all(|id| known.by_id(id).is_some()) => known,
            known => client.names().await.unwrap_or(known), // one of them is new
        },
    };
    let name = |condition: &AssignedCondition| Some(names.by_id(condition.experiment_id?)?.name.clone());
    let given: Vec<_> = assignments
        .into_iter()
        .map(|assignment| {
            let experiment = assignment.assigned_condition.first().and_then(name);
            (assignment, experiment)
        })
        .collect();
    let result = given.iter().map(|(assignment, experiment)| {
        let conditions: Vec<_> = assignment.assigned_condition.iter().map(|c| c.condition_code.as_str()).collect();
        let payload = assignment.assigned_condition.first().and_then(|condition| condition.payload.as_ref());
        json!({
            "site": assignment.site, "target": assignment.target, "conditions": conditions,
            "payload": payload.map(|payload| &payload.value), "levels": assignment.levels(),
            "experiment": experiment,
        })
    });
    let result = json!({ "user": user, "context": context, "assignments": result.collect::<Vec<_>>() });
    let summary = outcomes::assignments(user, context, &given);
    Ok((result, summary))
}

fn card(user: &str, context: &str) -> Card {
    let done = format!("Got the assignment of “{user}” in {context}.");
    Card {
        facts: vec![Fact::new("User", Text::new().code(user)), Fact::new("Context", Text::new().code(context))],
        notes: vec![Text::from("This only reads; nobody is enrolled.")],
        ..Card::new(format!("Get the assignment of “{user}”?"), "Get assignment", done)
    }
}
