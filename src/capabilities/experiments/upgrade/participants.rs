//! Participants: their groups, conditions and visits, and how many there are.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::experiment::ExperimentId;

/// The registration of a user. An absent field keeps its stored value; a field that is present replaces
/// the whole map.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Introduction {
    /// All group memberships, by group type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<BTreeMap<String, Vec<String>>>,
    /// The user's current working group of each type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_group: Option<BTreeMap<String, String>>,
}

impl Introduction {
    /// Returns true if all fields that are present equal those of `stored`, regardless of the order of
    /// groups.
    pub fn is_part_of(&self, stored: &Self) -> bool {
        let sets = |groups: &BTreeMap<String, Vec<String>>| -> BTreeMap<String, BTreeSet<String>> {
            groups.iter().map(|(kind, ids)| (kind.clone(), ids.iter().cloned().collect())).collect()
        };
        let groups = self.group.as_ref().is_none_or(|own| stored.group.as_ref().map(sets) == Some(sets(own)));
        groups && self.working_group.as_ref().is_none_or(|own| stored.working_group.as_ref() == Some(own))
    }
}

/// The condition that is assigned to a user at one decision point. If there is no entry for the point,
/// the application shows its default.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Assignment {
    /// The site of the decision point.
    pub site: String,
    /// The target of the decision point.
    #[serde(default)]
    pub target: Option<String>,
    /// The condition, or the queue of conditions in a within-subjects design.
    #[serde(default)]
    pub assigned_condition: Vec<AssignedCondition>,
    /// In a factorial design, the level of each factor; with one entry for each condition.
    #[serde(default)]
    pub assigned_factor: Option<Vec<BTreeMap<String, AssignedLevel>>>,
}

impl Assignment {
    /// Returns the levels and contents of a factorial design that the condition's code does not show,
    /// such as `hints text (“Read this.”)`.
    pub fn levels(&self) -> Option<String> {
        let factors = self.assigned_factor.as_ref()?.first()?;
        let code = self.assigned_condition.first().map_or("", |condition| &condition.condition_code);
        let words = factors.iter().filter_map(|(factor, AssignedLevel { level, payload })| {
            match payload.as_ref().filter(|payload| payload.value != *level) {
                Some(payload) => Some(format!("{factor} {level} (“{}”)", payload.value)),
                None if code.contains(&format!("{factor}={level}")) => None,
                None => Some(format!("{factor} {level}")),
            }
        });
        Some(words.collect::<Vec<_>>().join(", ")).filter(|words| !words.is_empty())
    }
}

/// The level of a factor, as the application receives it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct AssignedLevel {
    /// The name of the level.
    pub level: String,
    /// The content of the level.
    #[serde(default)]
    pub payload: Option<Payload>,
}

/// A condition as the application receives it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AssignedCondition {
    /// The code that the application receives.
    pub condition_code: String,
    /// The content for this condition at this point.
    #[serde(default)]
    pub payload: Option<Payload>,
    /// The experiment that assigned it.
    #[serde(default)]
    pub experiment_id: Option<ExperimentId>,
}

/// The content for one condition at one point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Payload {
    /// The type: `string`, `json` or `csv`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The content.
    pub value: String,
}

/// A report that a user visited a decision point, which enrols the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mark {
    /// The place and the condition.
    pub data: MarkData,
    /// The status: `condition applied`, `condition not applied` or `no condition assigned`.
    pub status: String,
}

/// The place of a visit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MarkData {
    /// The site.
    pub site: String,
    /// The target.
    pub target: String,
    /// The condition that the user was assigned there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assigned_condition: Option<MarkedCondition>,
}

/// The condition that a user was assigned, as reported to the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MarkedCondition {
    /// The condition's code. The server only checks that it exists, and enrols the user by its own
    /// random assignment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition_code: Option<String>,
    /// The experiment that assigned it. Needed if several experiments share the point.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub experiment_id: Option<ExperimentId>,
}

/// The server's response to a mark.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Marked {
    /// The condition that was first marked for this user at this point.
    #[serde(default)]
    pub condition: Option<String>,
    /// The experiment that the point belongs to, if any.
    #[serde(default)]
    pub experiment_id: Option<ExperimentId>,
    /// The user.
    #[serde(default)]
    pub user_id: Option<String>,
    /// The site.
    #[serde(default)]
    pub site: Option<String>,
    /// The target.
    #[serde(default)]
    pub target: Option<String>,
}

impl Marked {
    /// Returns true if the response describes this visit, which may belong to no experiment.
    pub fn describes(&self, user: &str, mark: &Mark) -> bool {
        let named = mark.data.assigned_condition.as_ref().and_then(|given| given.experiment_id);
        self.user_id.as_deref() == Some(user)
            && self.site.as_deref() == Some(&mark.data.site)
            && self.target.as_deref() == Some(&mark.data.target)
            && named.zip(self.experiment_id).is_none_or(|(named, own)| named == own)
    }
}

/// An enrolled user, as listed by the platform's check endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Enrolled {
    /// The experiment.
    pub experiment_id: ExperimentId,
    /// The user's id.
    pub user_id: String,
    /// The condition, by id.
    #[serde(default)]
    pub condition_id: Option<String>,
}

/// The number of participants of an experiment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Enrollment {
    /// The experiment.
    pub id: ExperimentId,
    /// Enrolled users.
    pub users: u64,
    /// Enrolled groups.
    pub groups: u64,
    /// The users that tests of this bot enrolled, who are not among the others.
    #[serde(skip)]
    pub test_users: u64,
}

/// The number of participants of an experiment, by condition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EnrollmentDetail {
    /// The experiment.
    pub id: ExperimentId,
    /// Enrolled users.
    pub users: u64,
    /// Enrolled groups.
    pub groups: u64,
    /// Users who visited but are excluded from the experiment.
    pub users_excluded: u64,
    /// Groups that visited but are excluded from the experiment.
    pub groups_excluded: u64,
    /// The numbers by condition.
    pub conditions: Vec<ConditionEnrollment>,
    /// The users that tests of this bot enrolled, who are not among the others.
    #[serde(skip)]
    pub test_users: u64,
}

/// The number of participants with one condition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConditionEnrollment {
    /// The condition's id. The response does not contain its code.
    pub id: String,
    /// Enrolled users.
    pub users: u64,
    /// Enrolled groups.
    pub groups: u64,
    /// The numbers by decision point.
    #[serde(default, rename = "partitions")]
    pub points: Vec<PointEnrollment>,
}

/// The number of participants with one condition at one decision point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PointEnrollment {
    /// The point's id. The response does not contain its site and target.
    pub id: String,
    /// Enrolled users.
    pub users: u64,
    /// Enrolled groups.
    pub groups: u64,
}

/// The users who were enrolled on one day, by condition and decision point.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct DayEnrollment {
    /// The day, such as `Fri Nov 20 2026`.
    pub date: String,
    /// The numbers.
    pub stats: DayStats,
}

/// The numbers of one day.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct DayStats {
    /// The numbers by condition.
    #[serde(default)]
    pub conditions: Vec<DayCondition>,
}

/// The numbers of one day with one condition. The response has no total over decision points.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct DayCondition {
    /// The numbers by decision point.
    #[serde(default, rename = "partitions")]
    pub points: Vec<PointEnrollment>,
}

impl DayEnrollment {
    /// Returns the number of users who were enrolled on this day. A user can be enrolled at several decision points;
    /// for each condition, the point with the most users counts.
    pub fn users(&self) -> u64 {
        let of = |condition: &DayCondition| condition.points.iter().map(|point| point.users).max().unwrap_or_default();
        self.stats.conditions.iter().map(of).sum()
    }
}
