//! `get_decision_point_assignments`: asks for the conditions of a participant, as their application
//! would. It only reads, so in a conversation it is answered at once, without a card.

use std::sync::Arc;

use async_trait::async_trait;
use countersign_core::reply::{Card, Reply, Text};
use countersign_graph::action::{
    ActionInfo, ActionKind, ActionRecord, ErrorKind, Form, Outcome, Performed, PrepareError, Probed, Proposal, Reader,
    Recovery, Refusal, Scope,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{fact, failed, missing, non_blank, read_failed, stored_parameters};
use crate::{
    access, forms, lookup,
    replies::outcomes,
    upgrade::{
        client::UpgradeClient,
        context::Contexts,
        error::Error,
        participants::{AssignedCondition, Assignment},
    },
};

/// The action `get_decision_point_assignments`.
#[derive(Debug)]
pub struct GetAssignments(pub Arc<UpgradeClient>);

/// The parameters of the action.
#[derive(Deserialize, JsonSchema)]
struct GetAssignmentsParameters {
    /// The participant's id. Required.
    #[serde(default)]
    user: Option<String>,
    /// The context of the assignment. Required.
    #[serde(default)]
    context: Option<String>,
}

/// The stored parameters.
#[derive(Serialize, Deserialize)]
struct AssignmentQuery {
    user: String,
    context: String,
}

#[async_trait]
impl ActionKind for GetAssignments {
    fn info(&self) -> ActionInfo {
        ActionInfo::new(
            "get_decision_point_assignments",
            "Asks which condition a participant gets at each decision point of a context. Asking does not enrol.",
        )
    }

    fn schema(&self) -> Value {
        access::schema::<GetAssignmentsParameters>()
    }

    fn is_editable(&self, _: &Value) -> bool {
        true
    }

    async fn form(&self, parameters: &Value) -> Option<Form> {
        Some(forms::user(parameters, &[("/context", "Context")]))
    }

    /// A person is answered at once.
    async fn prepare(&self, parameters: &Value, reader: Option<&Reader>) -> Result<Proposal, PrepareError> {
        let AssignmentQuery { user, context } = self.query(parameters).await?;
        if reader.is_none() {
            let card = card(&user, &context);
            let scope = Scope::default().in_context(&*context);
            let parameters = json!(AssignmentQuery { user, context });
            return Ok(Proposal { parameters, preconditions: json!({}), card, undo: None, scope });
        }
        match self.0.assign(&user, &context).await {
            Ok(assignments) => {
                let (result, summary) = self.answer(&user, &context, assignments).await;
                Err(PrepareError::Answered { reply: Reply::text(summary), result })
            }
            Err(Error::NotFound { .. }) => {
                Err(access::refused(ErrorKind::NotFound, Reply::text(outcomes::unknown_user(&user))))
            }
            Err(error) => Err(access::unavailable(error)),
        }
    }

    async fn preconditions(&self, _: &ActionRecord) -> Result<Value, Outcome> {
        Ok(json!({}))
    }

    async fn perform(&self, record: &ActionRecord) -> Performed {
        let AssignmentQuery { user, context } = match stored_parameters(record) {
            Ok(query) => query,
            Err(outcome) => return Performed::Ended(outcome),
        };
        match self.0.assign(&user, &context).await {
            Ok(assignments) => {
                let (result, summary) = self.answer(&user, &context, assignments).await;
                Performed::Ended(Outcome::Done { result, summary })
            }
            Err(Error::NotFound { .. }) => Performed::Ended(failed(ErrorKind::NotFound, outcomes::unknown_user(&user))),
            Err(error) => Performed::Ended(read_failed(&error)), // the call only reads
        }
    }

    /// The action only reads, so it can be repeated.
    fn recovery(&self) -> Recovery {
        Recovery::Idempotent
    }

    async fn probe(&self, _: &ActionRecord) -> Probed {
        Probed::DidNotHappen
    }
}

impl GetAssignments {
    /// Checks the parameters, and completes the context.
    async fn query(&self, parameters: &Value) -> Result<AssignmentQuery, PrepareError> {
        let asked: GetAssignmentsParameters = access::parameters(parameters)?;
        let contexts = self.0.context_metadata().await.map_err(access::unavailable)?;
        let mut questions = Vec::new();
        if non_blank(asked.user.as_ref()).is_none() {
            questions.push(missing("user", "Which user? I need the user ID.", Vec::new()));
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
        let context = match self.context_of_experiment(&contexts, context).await {
            Some(context) => context,
            None => access::context(&contexts, context, request_with)?.0.to_owned(),
        };
        Ok(AssignmentQuery { user, context })
    }

    /// Returns the context of an experiment that was named instead of a context.
    async fn context_of_experiment(&self, contexts: &Contexts, asked: &str) -> Option<String> {
        let known: Vec<_> = contexts.keys().cloned().collect();
        if lookup::pick(&known, asked).is_some() {
            return None;
        }
        let experiment = access::experiment(&self.0, asked, str::to_owned).await.ok()?;
        Some(experiment.view.context().to_owned())
    }

    /// Returns the conditions of the participant, with the names of the experiments if they can be read.
    /// The first value is the result as data.
    async fn answer(&self, user: &str, context: &str, mut assignments: Vec<Assignment>) -> (Value, Text) {
        assignments.sort_by(|a, b| (&a.site, &a.target).cmp(&(&b.site, &b.target)));
        let ids = || assignments.iter().filter_map(|assignment| assignment.assigned_condition.first()?.experiment_id);
        let names = match assignments.is_empty() {
            true => Arc::default(),
            false => match self.0.known_names().await.unwrap_or_default() {
                known if ids().all(|id| known.by_id(id).is_some()) => known,
                known => self.0.names().await.unwrap_or(known), // one of them is new
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
        (result, summary)
    }
}

fn card(user: &str, context: &str) -> Card {
    Card {
        title: format!("Get the assignment of “{user}”?"),
        facts: vec![fact("User", Text::new().code(user)), fact("Context", Text::new().code(context))],
        notes: vec![Text::from("This only reads; nobody is enrolled.")],
        approve: "Get assignment".to_owned(),
        reject: Card::REJECT.to_owned(),
        done: format!("Got the assignment of “{user}” in {context}."),
        ..Card::default()
    }
}
