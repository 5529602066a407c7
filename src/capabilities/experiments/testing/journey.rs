//! `simulate_user_journey`: registers one user, asks for a condition, and marks the visit.
//!
//! All three calls may be sent again if an answer is lost: registering and asking change nothing the
//! second time, and neither does a mark if a user can have only one enrolment. In a within-subjects
//! design it would count another visit, so the journey is refused there.

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use countersign_graph::action::{
    ActionInfo, ActionKind, ActionRecord, ErrorKind, Form, Outcome, Performed, PrepareError, Proposal, Reader,
    Recovery, Refusal,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::simulated::{self, VisitOutcome, VisitTarget};
use crate::{
    access,
    actions::{failed, missing, non_blank, performed_with_error, stored_parameters},
    forms,
    inputs::GroupsInput,
    points,
    replies::{outcomes, refusals, testing as words},
    scope,
    upgrade::{client::UpgradeClient, error::Error, participants::Introduction},
};

/// The action `simulate_user_journey`.
#[derive(Debug)]
pub struct SimulateJourney(pub Arc<UpgradeClient>);

/// The parameters of the action.
#[derive(Deserialize, JsonSchema)]
struct SimulateJourneyParameters {
    /// The user's id. Required.
    #[serde(default)]
    user: Option<String>,
    /// The experiment, by name or id. Required unless `site` and `target` identify it.
    #[serde(default, alias = "experiment_name")]
    experiment: Option<String>,
    /// The site of the decision point. Default: that of the first decision point.
    #[serde(default)]
    site: Option<String>,
    /// The target of the decision point.
    #[serde(default)]
    target: Option<String>,
    /// The groups of the user, by type, such as `{"classId": ["class-1"]}`.
    #[serde(default)]
    group: Option<GroupsInput>,
    /// The working group of the user for each type, such as `{"classId": "class-1"}`.
    #[serde(default)]
    working_group: Option<BTreeMap<String, String>>,
}

/// The stored parameters.
#[derive(Serialize, Deserialize)]
pub struct Journey {
    /// The user's id.
    pub user: String,
    /// The name of the experiment, for people.
    pub experiment_name: String,
    /// The place that the user visits.
    pub place: VisitTarget,
    /// The memberships by type, if any were given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<BTreeMap<String, Vec<String>>>,
    /// The group of each type in which the user acts, if any was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_group: Option<BTreeMap<String, String>>,
}

#[async_trait]
impl ActionKind for SimulateJourney {
    fn info(&self) -> ActionInfo {
        ActionInfo::new(
            "simulate_user_journey",
            "Sends one user through a decision point: introduces the user, asks which condition it gets, marks the visit. Use \
         it when someone asks to simulate a user visiting an experiment or a decision point.",
        )
    }

    fn schema(&self) -> Value {
        access::schema::<SimulateJourneyParameters>()
    }

    fn is_editable(&self, _: &Value) -> bool {
        true
    }

    async fn form(&self, parameters: &Value) -> Option<Form> {
        Some(forms::user(parameters, &[]))
    }

    async fn prepare(&self, parameters: &Value, _: Option<&Reader>) -> Result<Proposal, PrepareError> {
        let asked: SimulateJourneyParameters = access::parameters(parameters)?;
        let Some(user) = non_blank(asked.user.as_ref()) else {
            let question = "Which user? Give any ID that doesn't belong to a real person.";
            return Err(Refusal::Missing(vec![missing("user", question, Vec::new())]).into());
        };
        let user = access::user(user)?;
        let point = non_blank(asked.site.as_ref()).zip(non_blank(asked.target.as_ref()));
        let request_with = |name: &str| format!("simulate user {user} in {name}");
        let view = match (non_blank(asked.experiment.as_ref()), point) {
            (Some(name), _) => access::experiment_by_current_names(&self.0, name, request_with).await?.view,
            (None, Some((site, target))) => {
                let owner = points::owner(&self.0, site, target, None, request_with).await?;
                owner
                    .ok_or_else(|| access::refused(ErrorKind::NotFound, words::no_experiment_at_point(site, target)))?
            }
            (None, None) => {
                let question = "In which experiment, or at which decision point (site / target)?";
                return Err(Refusal::Missing(vec![missing("experiment", question, Vec::new())]).into());
            }
        };
        if view.assignment_unit == "within-subjects" {
            return Err(access::refused(ErrorKind::Execution, refusals::within_subjects(&view.name)));
        }
        let point = match point {
            Some((site, target)) => points::of(&view, site, target)?,
            None => points::first(&view)
                .ok_or_else(|| access::refused(ErrorKind::Execution, words::no_visitable_point(&view.name)))?,
        };
        let journey = Journey {
            user,
            experiment_name: view.name.clone(),
            place: VisitTarget::of(&view, point),
            group: asked.group.map(|groups| groups.into_iter().map(|(kind, ids)| (kind, ids.all())).collect()),
            working_group: asked.working_group,
        };
        let card = words::journey_card(&journey, &view);
        let scope = scope::simulated(&view, 1);
        Ok(Proposal { parameters: json!(journey), preconditions: json!({}), card, undo: None, scope })
    }

    async fn preconditions(&self, _: &ActionRecord) -> Result<Value, Outcome> {
        Ok(json!({}))
    }

    async fn perform(&self, record: &ActionRecord) -> Performed {
        let journey: Journey = match stored_parameters(record) {
            Ok(journey) => journey,
            Err(outcome) => return Performed::Ended(outcome),
        };
        let introduction = Introduction { group: journey.group.clone(), working_group: journey.working_group.clone() };
        let visit = simulated::visit_as(&self.0, &journey.place, &journey.user, &introduction).await;
        let (condition, summary) = match visit {
            VisitOutcome::Enrolled(received) => {
                let summary = words::visit_succeeded(&journey, &received);
                (Some(received.code), summary)
            }
            VisitOutcome::NothingGiven => {
                // The experiment is read only to explain why; the summary is correct without it.
                let view = self.0.single(journey.place.experiment).await.ok().map(|experiment| experiment.view);
                (None, words::got_nothing(&journey, view.as_ref()))
            }
            VisitOutcome::Failed(error) => {
                return Performed::Ended(failed(access::kind(&error), outcomes::refused_and_unverifiable(&error)));
            }
            VisitOutcome::Silent => {
                return performed_with_error(
                    self,
                    record,
                    Error::NoAnswer { reason: "no answer to the mark".to_owned() },
                )
                .await;
            }
        };
        let result = json!({ "name": journey.experiment_name, "user": journey.user, "condition": condition });
        Performed::Ended(Outcome::Done { result, summary })
    }

    fn recovery(&self) -> Recovery {
        Recovery::Idempotent
    }
}
