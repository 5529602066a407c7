//! An experiment in few words, as data: what tools answer and replies are drawn from.
//!
//! A whole experiment is kilobytes of ids and time stamps; a model needs its name, where it stands, and what it compares.

use serde::{Deserialize, Serialize};

use super::{
    rules,
    setup::{self, AtPoint, Content, People, Turn, Varied},
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
    /// Its id.
    pub id: ExperimentId,
    /// Its name.
    pub name: String,
    /// Where it stands, by its stored name.
    pub status: Status,
    /// The same, in words for people.
    pub status_words: String,
    /// The application it belongs to.
    pub context: String,
    /// Its conditions, in order.
    pub conditions: Vec<Share>,
    /// Its decision points, each `site / target`.
    pub decision_points: Vec<String>,
    /// Labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// When it was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
    /// When it was last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<String>,
}

/// A condition and its share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// Its code.
    pub code: String,
    /// Its weight in percent.
    pub weight: f64,
    /// How many users are enrolled in it, where that was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enrolled: Option<u64>,
}

/// An experiment by itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Details {
    /// What a list says too.
    #[serde(flatten)]
    pub summary: Summary,
    /// What it is about.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Who draws a lot.
    pub assignment_unit: String,
    /// The type of group, with unit `group`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Whose past decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consistency_rule: Option<String>,
    /// What holds once enrolment is complete, with the condition it names.
    pub post_experiment_rule: String,
    /// Whether people on no list take part.
    pub filter_mode: String,
    /// How many users are enrolled, where that could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enrolled_users: Option<u64>,
    /// How many groups are enrolled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enrolled_groups: Option<u64>,
    /// How many users came and may not take part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excluded_users: Option<u64>,
    /// What it varies, in a factorial design.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub factors: Vec<Varied>,
    /// How many were at which decision point, where there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub enrolled_at: Vec<AtPoint>,
    /// The contents for each condition and decision point, where they are more than the code.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub payloads: Vec<Content>,
    /// Who may take part.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inclusion_lists: Vec<People>,
    /// Who must not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclusion_lists: Vec<People>,
    /// Where people who came before the start stay out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude_if_reached: Vec<String>,
    /// When it ends by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends: Option<String>,
    /// How the lot is drawn, if it is not plainly by chance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assignment_algorithm: Option<String>,
    /// What a stratified draw goes by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stratification_factor: Option<String>,
    /// When it starts by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_on: Option<String>,
    /// When it is to end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_on: Option<String>,
    /// Its changes of status, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<Turn>,
    /// What it may become next, by our rules.
    pub next_statuses: Vec<Status>,
}

impl Summary {
    /// The summary of an experiment.
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
            status_words: view.state.display(),
            context: view.context().to_owned(),
            conditions: view.conditions.iter().map(share).collect(),
            decision_points: view.decision_points.iter().map(|point| point.words()).collect(),
            tags: view.tags.clone(),
            created_at: view.created_at.clone(),
            updated_at: view.updated_at.clone(),
        }
    }
}

impl Details {
    /// The details of an experiment, with its numbers where they could be read.
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

/// `continue`, `assign variant`, or `assign default`.
pub fn post_rule(view: &View) -> String {
    if view.post_experiment_rule != "assign" {
        return view.post_experiment_rule.clone();
    }
    let named = view.revert_to.as_deref().and_then(|id| view.condition(id));
    format!("assign {}", named.map_or("default", |condition| &condition.condition_code))
}

/// As stored weights are single precision: 33.333332 is 33.33.
pub fn as_shown(weight: f64) -> f64 {
    rules::number(weight).parse().unwrap_or(weight)
}
