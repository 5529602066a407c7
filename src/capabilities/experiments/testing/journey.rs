//! `simulate_user_journey`: registers one user, asks for a condition, and marks the visit.
//!
//! All three calls may be sent again if an answer is lost: registering and asking change nothing the
//! second time, and neither does a mark if a user can have only one enrolment. In a within-subjects
//! design it would count another visit, so the journey is refused there.

use std::{collections::BTreeMap, sync::Arc};

use countersign_capabilities::rows::Change;
use countersign_graph::action::{ActionInfo, ActionKind, ErrorKind, Outcome, Performed, PrepareError, Proposal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::simulated::{self, VisitOutcome, VisitTarget};
use crate::{
    access::{self, Deps},
    actions::{compact, failed, non_blank},
    forms,
    inputs::GroupsInput,
    points,
    replies::{outcomes, refusals, testing as words},
    scope,
    upgrade::{client::UpgradeClient, participants::Introduction},
};

/// The parameters of the action.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct SimulateJourneyParameters {
    /// The user's id. Required.
    user: Option<String>,
    /// The experiment, by name or id. Required unless `site` and `target` identify it.
    #[serde(alias = "experiment_name")]
    experiment: Option<String>,
    /// The site of the decision point. Default: that of the first decision point.
    site: Option<String>,
    /// The target of the decision point.
    target: Option<String>,
    /// The groups of the user, by type, such as `{"classId": ["class-1"]}`.
    group: Option<GroupsInput>,
    /// The working group of the user for each type, such as `{"classId": "class-1"}`.
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
    pub group: Option<BTreeMap<String, Vec<String>>>,
    /// The group of each type in which the user acts, if any was given.
    pub working_group: Option<BTreeMap<String, String>>,
}

/// Returns the action.
pub(crate) fn action(deps: Deps) -> Arc<dyn ActionKind> {
    let info = ActionInfo::new(
        "simulate_user_journey",
        "Sends one user through a decision point: introduces the user, asks which condition it gets, marks the visit. Use \
         it when someone asks to simulate a user visiting an experiment or a decision point.",
    );
    let mut change = Change::new(
        deps,
        info,
        |row, asked, _| Box::pin(prepare(&row.deps.client, asked)),
        |row, journey, _| Box::pin(send(&row.deps.client, journey)),
    );
    change.form = Some(|_, given| Box::pin(async move { Some(forms::user(given, &[])) }));
    Arc::new(change)
}

async fn send(client: &UpgradeClient, journey: Journey) -> Performed {
    let introduction = Introduction { group: journey.group.clone(), working_group: journey.working_group.clone() };
    let visit = simulated::visit_as(client, &journey.place, &journey.user, &introduction).await;
    let (condition, summary) = match visit {
        VisitOutcome::Enrolled(received) => {
            let summary = words::visit_succeeded(&journey, &received);
            (Some(received.code), summary)
        }
        VisitOutcome::NothingGiven => {
            // The experiment is read only to explain why; the summary is correct without it.
            let view = client.single(journey.place.experiment).await.ok().map(|experiment| experiment.view);
            (None, words::got_nothing(&journey, view.as_ref()))
        }
        VisitOutcome::Failed(error) => {
            return Performed::Ended(failed(access::kind(&error), outcomes::refused_and_unverifiable(&error)));
        }
        VisitOutcome::Silent => {
            return Performed::NoAnswer { detail: "no answer to the mark".to_owned() };
        }
    };
    let result = json!({ "name": journey.experiment_name, "user": journey.user, "condition": condition });
    Performed::Ended(Outcome::Done { result, summary })
}

async fn prepare(client: &UpgradeClient, asked: SimulateJourneyParameters) -> Result<Proposal, PrepareError> {
    let Some(user) = non_blank(asked.user.as_ref()) else {
        let question = "Which user? Give any ID that doesn't belong to a real person.";
        return Err(access::ask("user", question, Vec::new()));
    };
    let user = access::user(user)?;
    let point = non_blank(asked.site.as_ref()).zip(non_blank(asked.target.as_ref()));
    let request_with = |name: &str| format!("simulate user {user} in {name}");
    let view = match (non_blank(asked.experiment.as_ref()), point) {
        (Some(name), _) => access::experiment_by_current_names(client, name, request_with).await?.view,
        (None, Some((site, target))) => {
            let owner = points::owner(client, site, target, None, request_with).await?;
            owner.ok_or_else(|| access::refused(ErrorKind::NotFound, words::no_experiment_at_point(site, target)))?
        }
        (None, None) => {
            let question = "In which experiment, or at which decision point (site / target)?";
            return Err(access::ask("experiment", question, Vec::new()));
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
    Ok(Proposal { scope: scope::simulated(&view, 1), ..Proposal::new(compact(journey), card) })
}
