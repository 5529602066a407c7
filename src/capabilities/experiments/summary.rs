//! The short form of an experiment, as data. Tools return it, and replies are made from it.
//!
//! The whole experiment consists of kilobytes of ids and time stamps, but a model needs only the
//! name, the status, the conditions and the like.

use serde::{Deserialize, Serialize};

use super::{
    rules,
    setup::{self, FactorSummary, MemberListSummary, PayloadSummary, PointEnrollment, StatusHistoryEntry},
};
use crate::upgrade::{
    experiment::{ExperimentId, View},
    lists::Side,
    participants::EnrollmentDetail,
    status::Status,
};

/// An experiment in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The id.
    pub id: ExperimentId,
    /// The name.
    pub name: String,
    /// The status, by its stored name.
    pub status: Status,
    /// The status, as it is shown to people.
    pub status_words: String,
    /// The application that it belongs to.
    pub context: String,
    /// The conditions, in order.
    pub conditions: Vec<Share>,
    /// The decision points, each `site / target`.
    pub decision_points: Vec<String>,
    /// The tags.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The time of creation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
    /// The time of the last change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<String>,
}

/// A condition and its share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// The condition's code.
    pub code: String,
    /// The weight in percent.
    pub weight: f64,
    /// The number of enrolled users, if it was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enrolled: Option<u64>,
}

/// All details of one experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Details {
    /// The details that are also shown in a list.
    #[serde(flatten)]
    pub summary: Summary,
    /// The description.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The unit that is assigned a condition.
    pub assignment_unit: String,
    /// The type of group, with unit `group`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The rule that decides whose past assignment is kept: `individual`, `group` or `experiment`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consistency_rule: Option<String>,
    /// The rule after enrolment is complete, with the condition it names.
    pub post_experiment_rule: String,
    /// The rule for people who are on no list: `includeAll` or `excludeAll`.
    pub filter_mode: String,
    /// The number of enrolled users, if it could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enrolled_users: Option<u64>,
    /// The number of users that tests of this bot enrolled, who are not among the others.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub test_users: u64,
    /// The number of enrolled groups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enrolled_groups: Option<u64>,
    /// The number of users who visited but may not take part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excluded_users: Option<u64>,
    /// The factors of a factorial design.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub factors: Vec<FactorSummary>,
    /// The enrolled users at each decision point, if there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub enrolled_at: Vec<PointEnrollment>,
    /// The payloads whose content differs from the condition's code.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub payloads: Vec<PayloadSummary>,
    /// The lists of people who may take part.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inclusion_lists: Vec<MemberListSummary>,
    /// The lists of people who must not take part.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclusion_lists: Vec<MemberListSummary>,
    /// The decision points that exclude people who reached them before the start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude_if_reached: Vec<String>,
    /// The condition for the automatic end of enrollment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends: Option<String>,
    /// The algorithm that draws conditions, if it is not simply random.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assignment_algorithm: Option<String>,
    /// The factor of a stratified draw.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stratification_factor: Option<String>,
    /// The scheduled start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_on: Option<String>,
    /// The scheduled end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_on: Option<String>,
    /// The changes of status, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<StatusHistoryEntry>,
    /// The statuses that [`rules`] allows next.
    pub next_statuses: Vec<Status>,
}

impl Summary {
    /// Summarises an experiment.
    pub fn of(view: &View) -> Self {
        let share = |c: &crate::upgrade::experiment::Condition| Share {
            code: c.condition_code.clone(),
            weight: as_shown(c.assignment_weight),
            enrolled: None,
        };
        Self {
            id: view.id,
            name: view.name.clone(),
            status: view.state,
            status_words: view.state.display().to_owned(),
            context: view.context().to_owned(),
            conditions: view.conditions.iter().map(share).collect(),
            decision_points: view.places(),
            tags: view.tags.clone(),
            created_at: view.created_at.clone(),
            updated_at: view.updated_at.clone(),
        }
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Details {
    /// Returns the details of an experiment, with the numbers of participants if they could be read.
    pub fn of(view: &View, enrolled: Option<&EnrollmentDetail>) -> Self {
        let mut summary = Summary::of(view);
        if let Some(enrolled) = enrolled {
            for (share, condition) in summary.conditions.iter_mut().zip(&view.conditions) {
                let counted = enrolled.conditions.iter().find(|counted| counted.id == condition.id);
                share.enrolled = Some(counted.map_or(0, |counted| counted.users));
            }
        }
        let early = view.decision_points.iter().filter(|point| point.exclude_if_reached);
        Self {
            summary,
            description: view.description.clone(),
            assignment_unit: view.assignment_unit.clone(),
            group: view.group.clone(),
            consistency_rule: view.consistency_rule.clone(),
            post_experiment_rule: post_rule(view),
            filter_mode: view.filter_mode.clone(),
            enrolled_users: enrolled.map(|e| e.users),
            test_users: enrolled.map_or(0, |e| e.test_users),
            enrolled_groups: enrolled.map(|e| e.groups),
            excluded_users: enrolled.map(|e| e.users_excluded),
            factors: setup::factors(view),
            enrolled_at: match enrolled {
                Some(enrolled) if view.decision_points.len() > 1 => setup::enrolled_at(view, enrolled),
                _ => Vec::new(),
            },
            payloads: setup::contents(view),
            inclusion_lists: setup::people(view, Side::Inclusion),
            exclusion_lists: setup::people(view, Side::Exclusion),
            exclude_if_reached: early.map(|point| point.words()).collect(),
            ends: setup::ends(view),
            assignment_algorithm: view.assignment_algorithm.clone().filter(|algorithm| algorithm != "random"),
            stratification_factor: view.stratification_factor.clone().map(|f| f.stratification_factor_name),
            start_on: view.start_on.clone().filter(|_| view.state == Status::Scheduled),
            end_on: view.end_on.clone(),
            history: setup::history(view),
            next_statuses: rules::possible(view.state),
        }
    }
}

/// Returns the rule after enrolment in words: `continue`, `assign variant`, or `assign default`.
pub fn post_rule(view: &View) -> String {
    if view.post_experiment_rule != "assign" {
        return view.post_experiment_rule.clone();
    }
    let named = view.revert_to.as_deref().and_then(|id| view.condition(id));
    format!("assign {}", named.map_or("default", |condition| &condition.condition_code))
}

/// Rounds a weight, which is stored in single precision, as it is shown: 33.333332 becomes 33.33.
pub fn as_shown(weight: f64) -> f64 {
    rules::number(weight).parse().unwrap_or(weight)
}
