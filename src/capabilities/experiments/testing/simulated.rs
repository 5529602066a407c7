//! One simulated participant: introduced, given a condition, and marked at the decision point.

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

/// The most tries of a request that was not sent, or that changes nothing when repeated.
const MAX_TRIES: u32 = 3;
/// The wait before the second try; twice as long before the third.
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
    /// Creates the place from a decision point of an experiment.
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
    /// Enrolled, in this condition.
    Enrolled(Received),
    /// The experiment gave nothing: excluded, or the point belongs to another experiment too.
    NothingGiven,
    /// The visit failed.
    Failed(Error),
    /// The last request was sent, and no answer confirms an enrolment.
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

/// Returns the name of the `number`th participant of a run, from 0.
pub fn name(run: &str, number: u32) -> String {
    format!("{run}-{:04}", number + 1)
}

/// Returns a new run: the beginning of its participants' names.
pub fn run() -> String {
    format!("test-{:06x}", rand::random::<u32>() & 0xff_ffff)
}

/// Returns the name of the group of the `number`th participant.
pub fn group(run: &str, number: u32) -> String {
    format!("{run}-group-{:03}", number / GROUP_SIZE + 1)
}

/// Sends the `number`th participant of a run to a place.
pub async fn visit(client: &UpgradeClient, place: &VisitTarget, run: &str, number: u32) -> VisitOutcome {
    let introduction = match &place.group {
        None => Introduction::default(),
        Some(kind) => member(kind, &group(run, number)),
    };
    visit_as(client, place, &name(run, number), &introduction).await
}

/// Returns the introduction of a user who belongs to this one group and acts in it.
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
            Ok(_) => VisitOutcome::Silent, // it was recorded, and no experiment says that it enrolled
            Err(Error::NoAnswer { .. } | Error::Unclear { .. }) => VisitOutcome::Silent,
            Err(error) => VisitOutcome::Failed(error),
        },
        Ok(None) => VisitOutcome::NothingGiven,
        Err(error) => VisitOutcome::Failed(error),
    }
}

/// Introduces the participant and asks for their condition. Both can be repeated.
///
/// # Errors
///
/// Fails if the platform gives no usable answer after some tries.
pub async fn ask(
    client: &UpgradeClient,
    place: &VisitTarget,
    user: &str,
    introduction: &Introduction,
) -> Result<Option<Received>, Error> {
    let passes =
        |error: &Error| matches!(error, Error::Unavailable { .. } | Error::NoAnswer { .. } | Error::Unclear { .. });
    again(passes, || client.init_user(user, introduction)).await?;
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

/// Marks the visit, which enrols a user who has a condition. Repeated only if it was not sent.
///
/// # Errors
///
/// Fails if the mark was not made, or ([`Error::NoAnswer`], [`Error::Unclear`]) may not have been.
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
    again(|error| matches!(error, Error::Unavailable { .. }), || client.mark(user, &mark)).await
}

/// Makes a call, and repeats it while `passes` says that its error may be temporary.
///
/// # Errors
///
/// The error of the last try.
pub async fn again<T, F: Future<Output = Result<T, Error>>>(
    passes: impl Fn(&Error) -> bool,
    call: impl Fn() -> F,
) -> Result<T, Error> {
    let mut tried = 1;
    loop {
        match call().await {
            Err(error) if passes(&error) && tried < MAX_TRIES => {
                tokio::time::sleep(RETRY_DELAY * tried).await;
                tried += 1;
            }
            answer => return answer,
        }
    }
}
