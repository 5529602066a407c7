//! The visit of one simulated participant, who is registered, gets a condition, and is marked at the
//! decision point.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};

use crate::upgrade::{
    client::UpgradeClient,
    error::Error,
    experiment::{ExperimentId, View},
    participants::{Introduction, Mark, MarkData, Marked, MarkedCondition},
};

/// The number of simulated participants that share a group, if groups draw.
pub const GROUP_SIZE: u32 = 5;

/// The maximum number of attempts at a request that was not sent, or that changes nothing when repeated.
const MAX_TRIES: u32 = 3;
/// The wait before the second attempt. It is twice as long before the third.
const RETRY_DELAY: Duration = Duration::from_millis(200);

/// The place that participants visit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VisitTarget {
    /// The experiment.
    pub experiment: ExperimentId,
    /// The context.
    pub context: String,
    /// The site of the decision point.
    pub site: String,
    /// The target of the decision point.
    pub target: String,
    /// The type of group, if groups draw.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
}

impl VisitTarget {
    /// Returns the place at a decision point, given as site and target, of an experiment.
    pub fn of(view: &View, (site, target): (String, String)) -> Self {
        Self {
            experiment: view.id,
            context: view.context().to_owned(),
            site,
            target,
            group: view.group.clone().filter(|_| view.assignment_unit == "group"),
        }
    }
}

/// The result of a visit.
#[derive(Clone, Debug, PartialEq)]
pub enum VisitOutcome {
    /// The user is enrolled in this condition.
    Enrolled(Received),
    /// The user got no condition from the experiment: they are excluded, or another experiment shares
    /// the point.
    NothingGiven,
    /// The visit failed.
    Failed(Error),
    /// The mark was sent, but no answer confirms the enrolment.
    Silent,
}

/// The condition that the application received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The condition's code.
    pub code: String,
    /// The level of each factor, in a factorial design.
    pub levels: Option<String>,
}

/// Returns the name of the participant of a run with this number, from 0.
pub fn name(run: &str, number: u32) -> String {
    format!("{run}-{:04}", number + 1)
}

/// Returns the name of a new run, which is the prefix of its participants' names.
pub fn run() -> String {
    format!("test-{:06x}", rand::random::<u32>() & 0xff_ffff)
}

/// Returns the name of the group of the participant with this number, from 0.
pub fn group(run: &str, number: u32) -> String {
    format!("{run}-group-{:03}", number / GROUP_SIZE + 1)
}

/// Sends the participant of a run with this number to a place.
pub async fn visit(client: &UpgradeClient, place: &VisitTarget, run: &str, number: u32) -> VisitOutcome {
    let introduction = match &place.group {
        None => Introduction::default(),
        Some(kind) => member(kind, &group(run, number)),
    };
    visit_as(client, place, &name(run, number), &introduction).await
}

/// Returns the registration of a user who belongs only to this group and acts in it.
pub fn member(kind: &str, group: &str) -> Introduction {
    Introduction {
        group: Some(BTreeMap::from([(kind.to_owned(), vec![group.to_owned()])])),
        working_group: Some(BTreeMap::from([(kind.to_owned(), group.to_owned())])),
    }
}

/// Sends a user to a place.
pub async fn visit_as(
    client: &UpgradeClient,
    place: &VisitTarget,
    user: &str,
    introduction: &Introduction,
) -> VisitOutcome {
    match ask(client, place, user, introduction).await {
        Ok(Some(received)) => match mark(client, place, user, Some(&received.code)).await {
            Ok(marked) if marked.experiment_id == Some(place.experiment) => VisitOutcome::Enrolled(received),
            Ok(_) => VisitOutcome::Silent, // recorded, but not as an enrolment in this experiment
            Err(Error::NoAnswer { .. } | Error::Unclear { .. }) => VisitOutcome::Silent,
            Err(error) => VisitOutcome::Failed(error),
        },
        Ok(None) => VisitOutcome::NothingGiven,
        Err(error) => VisitOutcome::Failed(error),
    }
}

/// Registers the participant and asks for their condition. Both can be repeated.
///
/// # Errors
///
/// Fails if the platform gives no usable answer after several attempts.
pub async fn ask(
    client: &UpgradeClient,
    place: &VisitTarget,
    user: &str,
    introduction: &Introduction,
) -> Result<Option<Received>, Error> {
    let is_temporary =
        |error: &Error| matches!(error, Error::Unavailable { .. } | Error::NoAnswer { .. } | Error::Unclear { .. });
    with_retries(is_temporary, || client.init_user(user, introduction)).await?;
    let given = client.assign(user, &place.context).await?;
    let here = given.into_iter().filter(|a| a.site == place.site && a.target.as_deref() == Some(&place.target));
    let mut ours = here.filter_map(|assignment| {
        let levels = assignment.levels();
        let mut conditions = assignment.assigned_condition.into_iter();
        let own = conditions.find(|condition| condition.experiment_id == Some(place.experiment))?;
        Some(Received { code: own.condition_code, levels })
    });
    Ok(ours.next())
}

/// Marks the visit, which enrols a user who has a condition. It is repeated only if it was not sent.
///
/// # Errors
///
/// Fails if the mark was not made, or may not have been made ([`Error::NoAnswer`], [`Error::Unclear`]).
pub async fn mark(
    client: &UpgradeClient,
    place: &VisitTarget,
    user: &str,
    code: Option<&str>,
) -> Result<Marked, Error> {
    let given =
        |code: &str| MarkedCondition { condition_code: Some(code.to_owned()), experiment_id: Some(place.experiment) };
    let assigned_condition = code.map(given);
    let status = if code.is_some() { "condition applied" } else { "no condition assigned" };
    let data = MarkData { site: place.site.clone(), target: place.target.clone(), assigned_condition };
    let mark = Mark { data, status: status.to_owned() };
    with_retries(|error| matches!(error, Error::Unavailable { .. }), || client.mark(user, &mark)).await
}

/// Makes a call, and repeats it while `is_temporary` returns true for its error, at most [`MAX_TRIES`]
/// times.
///
/// # Errors
///
/// The error of the last attempt.
pub async fn with_retries<T, F: Future<Output = Result<T, Error>>>(
    is_temporary: impl Fn(&Error) -> bool,
    call: impl Fn() -> F,
) -> Result<T, Error> {
    let mut tried = 1;
    loop {
        match call().await {
            Err(error) if is_temporary(&error) && tried < MAX_TRIES => {
                tokio::time::sleep(RETRY_DELAY * tried).await;
                tried += 1;
            }
            answer => return answer,
        }
    }
}
