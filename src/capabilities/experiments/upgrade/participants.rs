//! Participants: who they are, what they are given, that they were there, and how many they are.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::experiment::ExperimentId;

/// Introduces a user. What is left out keeps its stored value; what is given replaces the whole map.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Introduction {
    /// All memberships by type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<BTreeMap<String, Vec<String>>>,
    /// For each type the group the user acts in now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_group: Option<BTreeMap<String, String>>,
}

impl Introduction {
    /// Whether all that it gives is `stored`; groups of a type may come in another order.
    pub fn is_part_of(&self, stored: &Self) -> bool {
        let sets = |groups: &BTreeMap<String, Vec<String>>| -> BTreeMap<String, BTreeSet<String>> {
            groups.iter().map(|(kind, ids)| (kind.clone(), ids.iter().cloned().collect())).collect()
        };
        let groups = self.group.as_ref().is_none_or(|own| stored.group.as_ref().map(sets) == Some(sets(own)));
        groups && self.working_group.as_ref().is_none_or(|own| stored.working_group.as_ref() == Some(own))
    }
}

/// What one decision point gives a user. No entry at all: the application shows its default.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Assignment {
    /// The broader place.
    pub site: String,
    /// The thing within it.
    #[serde(default)]
    pub target: Option<String>,
    /// The condition; several only within subjects, where it is a queue.
    #[serde(default)]
    pub assigned_condition: Vec<AssignedCondition>,
    /// In a factorial design, the level of each factor; one entry for each condition.
    #[serde(default)]
    pub assigned_factor: Option<Vec<BTreeMap<String, AssignedLevel>>>,
}

impl Assignment {
    /// What the levels of a factorial design add to its condition's code: `hints text (“Read this.”)`.
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
    /// Its name.
    pub level: String,
    /// The content handed over with it.
    #[serde(default)]
    pub payload: Option<Payload>,
}

/// A condition as the application receives it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AssignedCondition {
    /// The word the application acts on.
    pub condition_code: String,
    /// The content handed over for this condition at this point.
    #[serde(default)]
    pub payload: Option<Payload>,
    /// The experiment that gives it.
    #[serde(default)]
    pub experiment_id: Option<ExperimentId>,
}

/// Content for one condition at one point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Payload {
    /// `string`, `json` or `csv`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The content.
    pub value: String,
}

/// Reports that a user was at a decision point. This is what enrols.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mark {
    /// Where, and with which condition.
    pub data: MarkData,
    /// `condition applied`, `condition not applied` or `no condition assigned`.
    pub status: String,
}

/// Where a user was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MarkData {
    /// The broader place.
    pub site: String,
    /// The thing within it.
    pub target: String,
    /// What the user was given there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assigned_condition: Option<MarkedCondition>,
}

/// What a user was given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MarkedCondition {
    /// Its code; only checked to exist, the server enrols by its own draw.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition_code: Option<String>,
    /// The experiment that gave it; needed where several share the point.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub experiment_id: Option<ExperimentId>,
}

/// What a mark came to.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Marked {
    /// The condition first marked for this user here.
    #[serde(default)]
    pub condition: Option<String>,
    /// The experiment that owns the point, if any does.
    #[serde(default)]
    pub experiment_id: Option<ExperimentId>,
    /// Who was there.
    #[serde(default)]
    pub user_id: Option<String>,
    /// The broader place.
    #[serde(default)]
    pub site: Option<String>,
    /// The thing within it.
    #[serde(default)]
    pub target: Option<String>,
}

impl Marked {
    /// Whether it tells of this visit. That no experiment took it up is an answer, too.
    pub fn is_of(&self, user: &str, mark: &Mark) -> bool {
        let named = mark.data.assigned_condition.as_ref().and_then(|given| given.experiment_id);
        self.user_id.as_deref() == Some(user)
            && self.site.as_deref() == Some(&mark.data.site)
            && self.target.as_deref() == Some(&mark.data.target)
            && named.zip(self.experiment_id).is_none_or(|(named, own)| named == own)
    }
}

/// Somebody who takes part, as the platform's own check tells it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Enrolled {
    /// In which experiment.
    pub experiment_id: ExperimentId,
    /// Who.
    pub user_id: String,
    /// In which condition, by id.
    #[serde(default)]
    pub condition_id: Option<String>,
}

/// How many take part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Enrollment {
    /// The experiment.
    pub id: ExperimentId,
    /// Enrolled users.
    pub users: u64,
    /// Enrolled groups.
    pub groups: u64,
}

/// How many take part, and in which condition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EnrollmentDetail {
    /// The experiment.
    pub id: ExperimentId,
    /// Enrolled users.
    pub users: u64,
    /// Enrolled groups.
    pub groups: u64,
    /// Users who came and may not take part.
    pub users_excluded: u64,
    /// Groups that came and may not take part.
    pub groups_excluded: u64,
    /// By condition.
    pub conditions: Vec<ConditionEnrollment>,
}

/// How many take part in one condition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConditionEnrollment {
    /// The condition's id; its code is not told here.
    pub id: String,
    /// Enrolled users.
    pub users: u64,
    /// Enrolled groups.
    pub groups: u64,
    /// By decision point.
    #[serde(default, rename = "partitions")]
    pub points: Vec<PointEnrollment>,
}

/// How many with one condition were at one decision point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PointEnrollment {
    /// The point's id; its site and target are not told here.
    pub id: String,
    /// Enrolled users.
    pub users: u64,
    /// Enrolled groups.
    pub groups: u64,
}
