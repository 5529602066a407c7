//! One simulated participant: introduced, given a condition, present at the decision point.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};

use crate::services::upgrade::{
    client::UpgradeClient,
    error::Error,
    experiment::ExperimentId,
    participants::{Introduction, Mark, MarkData, MarkedCondition},
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

/// What came of a visit.
#[derive(Clone, Debug, PartialEq)]
pub enum Visit {
    /// Enrolled, in this condition.
    Enrolled(Received),
    /// The experiment gave nothing: excluded, or the point belongs to another experiment too.
    NothingGiven,
    /// It did not happen.
    Failed(Error),
    /// The last request left and no answer came.
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

/// The name of that participant's group.
fn group(run: &str, number: u32) -> String {
    format!("{run}-group-{:03}", number / GROUP_SIZE + 1)
}

/// Sends the `number`th participant of a run to a place.
pub async fn visit(client: &UpgradeClient, place: &Place, run: &str, number: u32) -> Visit {
    let introduction = match &place.group {
        None => Introduction::default(),
        Some(kind) => Introduction {
            group: Some(BTreeMap::from([(kind.clone(), vec![group(run, number)])])),
            working_group: Some(BTreeMap::from([(kind.clone(), group(run, number))])),
        },
    };
    visit_as(client, place, &name(run, number), &introduction).await
}

/// Sends somebody to a place.
pub async fn visit_as(client: &UpgradeClient, place: &Place, user: &str, introduction: &Introduction) -> Visit {
    match enter(client, place, user, introduction).await {
        Ok(Some(given)) => leave_a_mark(client, place, user, given).await,
        Ok(None) => Visit::NothingGiven,
        Err(error) => Visit::Failed(error),
    }
}

/// Introduces the participant and asks what it is given. Both can be repeated.
async fn enter(
    client: &UpgradeClient,
    place: &Place,
    user: &str,
    introduction: &Introduction,
) -> Result<Option<Received>, Error> {
    let passes = |error: &Error| matches!(error, Error::Unavailable { .. } | Error::NoAnswer { .. });
    again(passes, || client.init_user(user, introduction)).await?;
    let given = again(passes, || client.assign(user, &place.context)).await?;
    let here = given.into_iter().filter(|a| a.site == place.site && a.target.as_deref() == Some(&place.target));
    let mut ours = here.filter_map(|assignment| {
        let levels = assignment.levels();
        let mut conditions = assignment.assigned_condition.into_iter();
        let own = conditions.find(|condition| condition.experiment_id == Some(place.experiment))?;
        Some(Received { code: own.condition_code, levels })
    });
    Ok(ours.next())
}

/// Marks the visit, which enrols. Repeated only if it did not leave.
async fn leave_a_mark(client: &UpgradeClient, place: &Place, user: &str, received: Received) -> Visit {
    let given = MarkedCondition { condition_code: Some(received.code.clone()), experiment_id: Some(place.experiment) };
    let data = MarkData { site: place.site.clone(), target: place.target.clone(), assigned_condition: Some(given) };
    let mark = Mark { data, status: "condition applied".to_owned() };
    match again(|error| matches!(error, Error::Unavailable { .. }), || client.mark(user, &mark)).await {
        Ok(_) => Visit::Enrolled(received),
        Err(Error::NoAnswer { .. }) => Visit::Silent,
        Err(error) => Visit::Failed(error),
    }
}

async fn again<T, F: Future<Output = Result<T, Error>>>(
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
