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

use countersign_capabilities::rows::Change;
use countersign_core::reply::{Card, Fact, Text};
use countersign_graph::action::{
    ActionInfo, ActionKind, ActionRecord, ErrorKind, MissingParameter, Outcome, Performed, PrepareError, Proposal,
    Refusal,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    card_differences::differences_in_words,
    compact, failed, missing, non_blank, performed_with_error, shown_now,
    surroundings::{Claims, Reach, SURROUNDINGS},
};
use crate::{
    access::{self, Deps},
    forms, lookup, points,
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

/// The parameters of the action.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct MarkDecisionPointParameters {
    /// The participant's id. Required.
    user: Option<String>,
    /// The site of the decision point. Required.
    site: Option<String>,
    /// The target of the decision point. Required.
    target: Option<String>,
    /// The condition code assigned to the participant.
    condition: Option<String>,
    /// The experiment, by name or id, if several use the decision point.
    experiment: Option<String>,
    /// The context, if several define the decision point.
    context: Option<String>,
    /// `condition applied` (default), `condition not applied` (excludes the participant) or `no condition assigned`.
    status: Option<String>,
}

/// The stored parameters.
#[derive(Serialize, Deserialize)]
struct MarkRequest {
    user: String,
    site: String,
    target: String,
    condition: Option<String>,
    experiment: Option<ExperimentId>,
    status: String,
}

/// Returns the action.
pub(crate) fn action(deps: Deps) -> Arc<dyn ActionKind> {
    let info = ActionInfo::new(
        "mark_decision_point",
        "Records that a participant was at a decision point; this enrols the participant.",
    );
    let mut change = Change::new(
        deps,
        info,
        |row, asked, _| Box::pin(prepare(&row.deps.client, asked)),
        |row, visit, record| Box::pin(async move { send((row, &row.deps.client), visit, record).await }),
    );
    change.now = |row, visit: MarkRequest, record| {
        Box::pin(async move {
            match (visit.experiment, record.preconditions.get(SURROUNDINGS)) {
                (Some(owner), Some(_)) => shown_now(&row.deps.client, owner, record, |_| json!({})).await,
                _ => Ok(json!({})),
            }
        })
    };
    change.form = Some(|_, given| {
        let more = [("/site", "Site"), ("/target", "Target"), ("/condition", "Condition")];
        Box::pin(async move { Some(forms::user(given, &more)) })
    });
    change.differences = differences_in_words;
    Arc::new(change)
}

async fn send(
    (action, client): (&dyn ActionKind, &UpgradeClient),
    MarkRequest { user, site, target, condition, experiment, status }: MarkRequest,
    record: &ActionRecord,
) -> Performed {
    let given = MarkedCondition { condition_code: condition, experiment_id: experiment };
    let assigned_condition = (given.condition_code.is_some() || experiment.is_some()).then_some(given);
    let mark = Mark { data: MarkData { site, target, assigned_condition }, status };
    match client.mark(&user, &mark).await {
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
        Err(error) => performed_with_error(action, record, error).await,
    }
}

async fn prepare(client: &UpgradeClient, asked: MarkDecisionPointParameters) -> Result<Proposal, PrepareError> {
    let (Some(user), Some(site), Some(target)) =
        (non_blank(asked.user.as_ref()), non_blank(asked.site.as_ref()), non_blank(asked.target.as_ref()))
    else {
        return Err(Refusal::Missing(missing_parameters(&asked)).into());
    };
    let user = access::user(user)?;
    let status = non_blank(asked.status.as_ref()).unwrap_or(STATUSES[0]);
    if !STATUSES.contains(&status) {
        return Err(access::invalid(refusals::not_one_of("status", status, &STATUSES)));
    }
    let request_with = |name: &str| format!("mark {site} / {target} for user {user} in {name}");
    let owner = match (non_blank(asked.experiment.as_ref()), non_blank(asked.context.as_ref())) {
        (None, None) => points::owner(client, site, target, None, request_with).await?,
        (Some(name), None) | (None, Some(name)) => owning_experiment(client, name, site, target, request_with).await?,
        (Some(name), Some(context)) => {
            let owner = access::experiment_by_current_names(client, name, request_with).await?.view;
            if lookup::pick(&owner.context, context).is_none() {
                let reply = refusals::not_in_context(&owner.name, owner.context(), context);
                return Err(access::invalid(reply));
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
        let reach = Reach::read(client, owner).await;
        card.facts.extend(reach.facts(owner));
        card.notes.extend(reach.age());
        reach.note(&Claims::about(owner), &mut preconditions);
    }
    let scope = owner.as_ref().map(scope::people_in).unwrap_or_default();
    Ok(Proposal { preconditions, scope, ..Proposal::new(compact(visit), card) })
}

/// Returns the experiment that has the point. `name` is a context or the experiment itself, since
/// people say “in” for both.
async fn owning_experiment(
    client: &UpgradeClient,
    name: &str,
    site: &str,
    target: &str,
    request_with: impl Fn(&str) -> String,
) -> Result<Option<View>, PrepareError> {
    let contexts: Vec<_> = client.context_metadata().await?.into_keys().collect();
    match lookup::pick(&contexts, name) {
        Some(context) => points::owner(client, site, target, Some(context), request_with).await,
        None => Ok(Some(access::experiment_by_current_names(client, name, request_with).await?.view)),
    }
}

/// Returns the parameters that a person still has to give.
fn missing_parameters(asked: &MarkDecisionPointParameters) -> Vec<MissingParameter> {
    let questions = [
        (&asked.user, "user", access::WHICH_USER),
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
    let codes = owner.codes();
    let Some(code) = condition else { return Ok(None) };
    let unknown = || access::invalid(refusals::unknown_condition(&code, &owner.name, &codes));
    lookup::pick(&codes, &code).cloned().map(Some).ok_or_else(unknown)
}

fn card(visit: &MarkRequest, owner: Option<&View>) -> Card {
    let MarkRequest { user, site, target, condition, status, .. } = visit;
    let mut facts = vec![
        Fact::new("User", Text::new().code(user)),
        Fact::new("Decision point", outcomes::place(site, Some(target))),
        Fact::new("Condition", condition.as_deref().unwrap_or("not given")),
        Fact::new("Status", status.as_str()),
    ];
    let (mut warnings, mut notes) = (Vec::new(), Vec::new());
    match owner {
        Some(owner) => {
            let words = format!(" ({}, {})", owner.state.display(), owner.context());
            facts.insert(1, Fact::new("Experiment", Text::new().bold(&owner.name).plain(words)));
            notes.push(Text::from(
                "UpGrade enrolls users by its own assignment; the condition given here is only recorded.",
            ));
        }
        None => warnings.push(Text::from("No experiment uses this decision point, so nobody will be enrolled.")),
    }
    if status == STATUSES[1] {
        warnings.push(Text::from("“condition not applied” excludes this user from the experiment."));
    }
    let place = outcomes::place(site, Some(target));
    let done = format!("Marked {place} for “{user}”.");
    Card { facts, warnings, notes, ..Card::new(format!("Mark {place} for “{user}”?"), "Mark visit", done) }
}
