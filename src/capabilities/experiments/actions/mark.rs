//! `mark_decision_point`: records that a participant visited a decision point, as their application
//! would.
//!
//! A mark enrols the participant. Sending the same mark again is harmless if a user can have only one
//! enrolment: the server answers with the same record, the condition that was marked first stays, and
//! no count increases. A mark whose answer was lost is therefore sent again. In a within-subjects design
//! each mark is another visit and would count twice, so marks are refused there.
//!
//! Reading back was rejected as a design, since the only list of raw enrolments is the whole table,
//! which is served without authentication.

use std::sync::Arc;

use async_trait::async_trait;
use countersign_core::reply::{Card, Fact, Text};
use countersign_graph::action::{
    ActionInfo, ActionKind, ActionRecord, ErrorKind, Form, MissingParameter, Outcome, Performed, PrepareError, Probed,
    Proposal, Reader, Recovery, Refusal,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    card_differences::differences_in_words,
    fact, failed, missing, non_blank, performed_with_error, read_failed, stored_parameters,
    surroundings::{Claims, Reach, SURROUNDINGS},
};
use crate::{
    access, forms, lookup, points,
    replies::{outcomes, refusals},
    scope,
    upgrade::{
        client::UpgradeClient,
        error::Error,
        experiment::{ExperimentId, View},
        participants::{Mark, MarkData, MarkedCondition},
    },
};

/// The possible outcomes of a visit.
const STATUSES: [&str; 3] = ["condition applied", "condition not applied", "no condition assigned"];

/// The action `mark_decision_point`.
#[derive(Debug)]
pub struct MarkDecisionPoint(pub Arc<UpgradeClient>);

/// The parameters of the action.
#[derive(Deserialize, JsonSchema)]
struct MarkDecisionPointParameters {
    /// The participant's id. Required.
    #[serde(default)]
    user: Option<String>,
    /// The site of the decision point. Required.
    #[serde(default)]
    site: Option<String>,
    /// The target of the decision point. Required.
    #[serde(default)]
    target: Option<String>,
    /// The condition code assigned to the participant.
    #[serde(default)]
    condition: Option<String>,
    /// The experiment, by name or id, if several use the decision point.
    #[serde(default)]
    experiment: Option<String>,
    /// The context, if several define the decision point.
    #[serde(default)]
    context: Option<String>,
    /// `condition applied` (default), `condition not applied` (excludes the participant) or `no condition assigned`.
    #[serde(default)]
    status: Option<String>,
}

/// The stored parameters.
#[derive(Serialize, Deserialize)]
struct MarkRequest {
    user: String,
    site: String,
    target: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    condition: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    experiment: Option<ExperimentId>,
    status: String,
}

#[async_trait]
impl ActionKind for MarkDecisionPoint {
    fn info(&self) -> ActionInfo {
        ActionInfo::new(
            "mark_decision_point",
            "Records that a participant was at a decision point; this enrols the participant.",
        )
    }

    fn schema(&self) -> Value {
        access::schema::<MarkDecisionPointParameters>()
    }

    fn is_editable(&self, _: &Value) -> bool {
        true
    }

    async fn form(&self, parameters: &Value) -> Option<Form> {
        Some(forms::user(parameters, &[("/site", "Site"), ("/target", "Target"), ("/condition", "Condition")]))
    }

    async fn prepare(&self, parameters: &Value, _: Option<&Reader>) -> Result<Proposal, PrepareError> {
        let asked: MarkDecisionPointParameters = access::parameters(parameters)?;
        let (Some(user), Some(site), Some(target)) =
            (non_blank(asked.user.as_ref()), non_blank(asked.site.as_ref()), non_blank(asked.target.as_ref()))
        else {
            return Err(Refusal::Missing(missing_parameters(&asked)).into());
        };
        let user = access::user(user)?;
        let status = non_blank(asked.status.as_ref()).unwrap_or(STATUSES[0]);
        if !STATUSES.contains(&status) {
            return Err(access::refused(ErrorKind::Validation, refusals::not_one_of("status", status, &STATUSES)));
        }
        let request_with = |name: &str| format!("mark {site} / {target} for user {user} in {name}");
        let owner = match (non_blank(asked.experiment.as_ref()), non_blank(asked.context.as_ref())) {
            (None, None) => points::owner(&self.0, site, target, None, request_with).await?,
            (Some(name), None) | (None, Some(name)) => self.owning_experiment(name, site, target, request_with).await?,
            (Some(name), Some(context)) => {
                let owner = access::experiment_by_current_names(&self.0, name, request_with).await?.view;
                if lookup::pick(&owner.context, context).is_none() {
                    let reply = refusals::not_in_context(&owner.name, owner.context(), context);
                    return Err(access::refused(ErrorKind::Validation, reply));
                }
                Some(owner)
            }
        };
        let (mut site, mut target) = (site.to_owned(), target.to_owned());
        let mut condition = non_blank(asked.condition.as_ref()).map(str::to_owned);
        if let Some(owner) = &owner {
            (site, target) = points::of(owner, &site, &target)?;
            condition = condition_for(owner, condition)?;
        }
        let owner_id = owner.as_ref().map(|owner| owner.id);
        let visit = MarkRequest { user, site, target, condition, experiment: owner_id, status: status.to_owned() };
        let mut card = card(&visit, owner.as_ref());
        let mut preconditions = json!({});
        if let Some(owner) = &owner {
            let reach = Reach::read(&self.0, owner).await;
            card.facts.extend(reach.facts(owner));
            card.notes.extend(reach.age());
            reach.note(&Claims::about(owner), &mut preconditions);
        }
        let scope = owner.as_ref().map(scope::people_in).unwrap_or_default();
        Ok(Proposal { parameters: json!(visit), preconditions, card, undo: None, scope })
    }

    async fn preconditions(&self, record: &ActionRecord) -> Result<Value, Outcome> {
        let visit: MarkRequest = stored_parameters(record)?;
        if let (Some(owner), Some(_)) = (visit.experiment, record.preconditions.get(SURROUNDINGS)) {
            let owner = self.0.single(owner).await.map_err(|error| read_failed(&error))?.view;
            return Claims::about(&owner).note_now(&self.0, record, json!({})).await;
        }
        Ok(json!({}))
    }

    fn differences(&self, record: &ActionRecord, found: &Value) -> Vec<Fact> {
        differences_in_words(record, found)
    }

    async fn perform(&self, record: &ActionRecord) -> Performed {
        let MarkRequest { user, site, target, condition, experiment, status } = match stored_parameters(record) {
            Ok(visit) => visit,
            Err(outcome) => return Performed::Ended(outcome),
        };
        let given = MarkedCondition { condition_code: condition, experiment_id: experiment };
        let assigned_condition = (given.condition_code.is_some() || experiment.is_some()).then_some(given);
        let mark = Mark { data: MarkData { site, target, assigned_condition }, status };
        match self.0.mark(&user, &mark).await {
            Ok(marked) => {
                let result = json!({
                    "user": user, "site": mark.data.site, "target": mark.data.target,
                    "condition": marked.condition, "experiment": marked.experiment_id,
                });
                let summary = outcomes::marked(&user, &mark.data.site, &mark.data.target, &marked);
                Performed::Ended(Outcome::Done { result, summary })
            }
            // Other 404s are about the experiment.
            Err(Error::NotFound { reason }) if reason.contains("no user") || reason.contains("no such user") => {
                Performed::Ended(failed(ErrorKind::NotFound, outcomes::unknown_user(&user)))
            }
            Err(error) => performed_with_error(self, record, error).await,
        }
    }

    /// Sending the same mark again changes nothing; see the module documentation.
    fn recovery(&self) -> Recovery {
        Recovery::Idempotent
    }

    async fn probe(&self, _: &ActionRecord) -> Probed {
        Probed::CannotTell { evidence: outcomes::cannot_read_back("there is no way to look up a single mark") }
    }
}

impl MarkDecisionPoint {
    /// Returns the experiment that has the point. `name` is a context or the experiment itself, since
    /// people say “in” for both.
    async fn owning_experiment(
        &self,
        name: &str,
        site: &str,
        target: &str,
        request_with: impl Fn(&str) -> String,
    ) -> Result<Option<View>, PrepareError> {
        let contexts: Vec<_> = self.0.context_metadata().await.map_err(access::unavailable)?.into_keys().collect();
        match lookup::pick(&contexts, name) {
            Some(context) => points::owner(&self.0, site, target, Some(context), request_with).await,
            None => Ok(Some(access::experiment_by_current_names(&self.0, name, request_with).await?.view)),
        }
    }
}

/// Returns the parameters that a person still has to give.
fn missing_parameters(asked: &MarkDecisionPointParameters) -> Vec<MissingParameter> {
    let questions = [
        (&asked.user, "user", "Which user? I need the user ID."),
        (&asked.site, "site", "At which site?"),
        (&asked.target, "target", "At which target?"),
    ];
    let missing_ones = questions.into_iter().filter(|(words, ..)| non_blank(words.as_ref()).is_none());
    missing_ones.map(|(_, name, question)| missing(name, question, Vec::new())).collect()
}

/// Returns the condition as the experiment spells it. Refuses a within-subjects experiment.
fn condition_for(owner: &View, condition: Option<String>) -> Result<Option<String>, PrepareError> {
    if owner.assignment_unit == "within-subjects" {
        return Err(access::refused(ErrorKind::Execution, refusals::within_subjects(&owner.name)));
    }
    let codes: Vec<_> = owner.conditions.iter().map(|c| c.condition_code.clone()).collect();
    match condition {
        None => Ok(None),
        Some(code) => match lookup::pick(&codes, &code) {
            Some(code) => Ok(Some(code.clone())),
            None => {
                let reply = refusals::unknown_condition(&code, &owner.name, &codes);
                Err(access::refused(ErrorKind::Validation, reply))
            }
        },
    }
}

fn card(visit: &MarkRequest, owner: Option<&View>) -> Card {
    let MarkRequest { user, site, target, condition, status, .. } = visit;
    let mut facts = vec![
        fact("User", Text::new().code(user)),
        fact("Decision point", outcomes::place(site, Some(target))),
        fact("Condition", condition.as_deref().unwrap_or("not given")),
        fact("Status", status.as_str()),
    ];
    let (mut warnings, mut notes) = (Vec::new(), Vec::new());
    match owner {
        Some(owner) => {
            let words = format!(" ({}, {})", owner.state.display(), owner.context());
            facts.insert(1, fact("Experiment", Text::new().bold(&owner.name).plain(words)));
            notes.push(Text::from(
                "UpGrade enrolls users by its own assignment; the condition given here is only recorded.",
            ));
        }
        None => warnings.push(Text::from("No experiment uses this decision point, so nobody will be enrolled.")),
    }
    if status == STATUSES[1] {
        warnings.push(Text::from("“condition not applied” excludes this user from the experiment."));
    }
    Card {
        title: format!("Mark {} for “{user}”?", outcomes::place(site, Some(target))),
        facts,
        warnings,
        notes,
        approve: "Mark visit".to_owned(),
        reject: Card::REJECT.to_owned(),
        done: format!("Marked {} for “{user}”.", outcomes::place(site, Some(target))),
        ..Card::default()
    }
}
