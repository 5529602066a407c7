//! One simulated participant: introduced, given a condition, present at the decision point.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};

use crate::upgrade::{
    client::UpgradeClient,
    error::Error,
    experiment::{ExperimentId, View},
    participants::{Introduction, Mark, MarkData, Marked, MarkedCondition},
};

/// How many simulated participants share a group, where the group draws the lot.
pub const GROUP_SIZE: u32 = 5;

/// How often a request that did not arrive, or that changes nothing when repeated, is made.
const TRIES: u32 = 3;
/// The wait before the second try; twice as long before the third.
const PAUSE: Duration = Duration::from_millis(200);

/// Where participants are sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Place {
    /// The experiment.
    pub experiment: ExperimentId,
    /// The application.
    pub context: String,
    /// The decision point.
    pub site: String,
    /// The thing within it.
    pub target: String,
    /// The type of group, where the group draws the lot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
}

impl Place {
    /// A decision point of an experiment.
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

/// What came of a visit.
#[derive(Clone, Debug, PartialEq)]
pub enum Visit {
    /// Enrolled, in this condition.
    Enrolled(Received),
    /// The experiment gave nothing: excluded, or the point belongs to another experiment too.
    NothingGiven,
    /// It did not happen.
    Failed(Error),
    /// The last request left, and no answer says that it enrolled.
    Silent,
}

/// What the application was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The condition's code.
    pub code: String,
    /// The level of each factor, in a factorial design.
    pub levels: Option<String>,
}

/// The name of the `number`th participant of a run, from 0.
pub fn name(run: &str, number: u32) -> String {
    format!("{run}-{:04}", number + 1)
}

/// How the names of a new run begin.
pub fn run() -> String {
    format!("test-{:06x}", rand::random::<u32>() & 0xff_ffff)
}

/// The name of that participant's group.
pub fn group(run: &str, number: u32) -> String {
    format!("{run}-group-{:03}", number / GROUP_SIZE + 1)
}

/// Sends the `number`th participant of a run to a place.
pub async fn visit(client: &UpgradeClient, place: &Place, run: &str, number: u32) -> Visit {
    let introduction = match &place.group {
        None => Introduction::default(),
        Some(kind) => member(kind, &group(run, number)),
    };
    visit_as(client, place, &name(run, number), &introduction).await
}

/// Somebody who belongs to this one group and acts in it.
pub fn member(kind: &str, group: &str) -> Introduction {
    Introduction {
        group: Some(BTreeMap::from([(kind.to_owned(), vec![group.to_owned()])])),
        working_group: Some(BTreeMap::from([(kind.to_owned(), group.to_owned())])),
    }
}

/// Sends somebody to a place.
pub async fn visit_as(client: &UpgradeClient, place: &Place, user: &str, introduction: &Introduction) -> Visit {
    match ask(client, place, user, introduction).await {
        Ok(Some(received)) => match mark(client, place, user, Some(&received.code)).await {
            Ok(marked) if marked.experiment_id == Some(place.experiment) => Visit::Enrolled(received),
            Ok(_) => Visit::Silent, // it was recorded, and no experiment says that it enrolled
            Err(Error::NoAnswer { .. } | Error::Unclear { .. }) => Visit::Silent,
            Err(error) => Visit::Failed(error),
        },
        Ok(None) => Visit::NothingGiven,
        Err(error) => Visit::Failed(error),
    }
}

/// Introduces the participant and asks what it is given. Both can be repeated.
///
/// # Errors
///
/// If the platform does not tell, after some tries.
pub async fn ask(
    client: &UpgradeClient,
    place: &Place,
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

/// Marks the visit, which enrols whoever is given a condition. Repeated only if it did not leave.
///
/// # Errors
///
/// If it did not happen, or ([`Error::NoAnswer`], [`Error::Unclear`]) may not have.
pub async fn mark(client: &UpgradeClient, place: &Place, user: &str, code: Option<&str>) -> Result<Marked, Error> {
    let given =
        |code: &str| MarkedCondition { condition_code: Some(code.to_owned()), experiment_id: Some(place.experiment) };
    let assigned_condition = code.map(given);
    let status = if code.is_some() { "condition applied" } else { "no condition assigned" };
    let data = MarkData { site: place.site.clone(), target: place.target.clone(), assigned_condition };
    let mark = Mark { data, status: status.to_owned() };
    again(|error| matches!(error, Error::Unavailable { .. }), || client.mark(user, &mark)).await
}

/// Makes a call, and makes it again while its error may pass by itself.
///
/// # Errors
///
/// The last one.
pub async fn again<T, F: Future<Output = Result<T, Error>>>(
    passes: impl Fn(&Error) -> bool,
    call: impl Fn() -> F,
) -> Result<T, Error> {
    let mut tried = 1;
    loop {
        match call().await {
            Err(error) if passes(&error) && tried < TRIES => {
                tokio::time::sleep(PAUSE * tried).await;
                tried += 1;
            }
            answer => return answer,
        }
    }
}
