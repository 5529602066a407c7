//! The parts of an experiment that [`summary`](super::summary) shows in detail only: payloads,
//! factors, lists of people, history. They use names instead of the server's ids.

use serde::{Deserialize, Serialize};

use crate::upgrade::{
    experiment::{Condition, DecisionPoint, Ending, Factor, Level, Payload, PayloadContent, StatusChange, View},
    lists::{MemberList, Side},
    participants::EnrollmentDetail,
    status::Status,
};

/// The maximum number of members of a list that are named.
const MAX_MEMBERS: usize = 20;
/// The maximum length of the content that is shown, in characters.
const MAX_PAYLOAD_LENGTH: usize = 300;

/// The content that the application receives for one condition at one decision point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PayloadSummary {
    /// The condition's code.
    pub condition: String,
    /// The decision point, as `site / target`.
    pub decision_point: String,
    /// The type: `string`, `json` or `csv`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The content, shortened.
    pub value: String,
}

/// A factor of a factorial design.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FactorSummary {
    /// The factor's name.
    pub factor: String,
    /// Its levels.
    pub levels: Vec<LevelSummary>,
}

/// A level, and the content that the application receives with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LevelSummary {
    /// The name of the level.
    pub level: String,
    /// The content, shortened, if it differs from the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
}

/// The number of users with one condition at one decision point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PointEnrollment {
    /// The condition's code.
    pub condition: String,
    /// The decision point, as `site / target`.
    pub decision_point: String,
    /// The number of enrolled users.
    pub users: u64,
}

/// A list of people who may or must not take part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberListSummary {
    /// The name of the list.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The first members: users by id, groups as `type: id`, other segments by name.
    pub members: Vec<String>,
    /// The number of all members.
    pub total: usize,
}

/// A change of status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusHistoryEntry {
    /// The new status.
    pub status: Status,
    /// The time of the change.
    pub at: String,
}

/// Returns the payloads whose content differs from the condition's code.
pub fn contents(view: &View) -> Vec<PayloadSummary> {
    let read = |payload: &Payload| {
        let condition = view.condition(&payload.parent_condition)?;
        let point = view.decision_points.iter().find(|point| payload.decision_point == point.id)?;
        let PayloadContent { kind, value } = &payload.payload;
        (*value != condition.condition_code).then(|| PayloadSummary {
            condition: condition.condition_code.clone(),
            decision_point: point.words(),
            kind: kind.clone(),
            value: shorten(value),
        })
    };
    let mut contents: Vec<_> = view.payloads.iter().filter_map(read).collect();
    contents.sort_by_key(|content| {
        let place = view.conditions.iter().position(|condition| condition.condition_code == content.condition);
        (content.decision_point.clone(), place)
    });
    contents
}

/// Returns the factors with their levels.
pub fn factors(view: &View) -> Vec<FactorSummary> {
    let summary = |level: &Level| {
        let payload = level.payload.as_ref().map(|payload| shorten(&payload.value));
        LevelSummary {
            level: level.name.clone(),
            payload: payload.filter(|value| !value.is_empty() && *value != level.name),
        }
    };
    let varied = |f: &Factor| FactorSummary { factor: f.name.clone(), levels: f.levels.iter().map(summary).collect() };
    view.factors.iter().map(varied).collect()
}

/// Returns the number of enrolled users by condition and decision point, which the server identifies
/// only by their ids.
pub fn enrolled_at(view: &View, enrolled: &EnrollmentDetail) -> Vec<PointEnrollment> {
    let pairs = view.conditions.iter().flat_map(|c| view.decision_points.iter().map(move |point| (c, point)));
    let count = |(condition, point): (&Condition, &DecisionPoint)| {
        let of_condition = enrolled.conditions.iter().find(|counted| counted.id == condition.id);
        let there = of_condition.and_then(|counted| counted.points.iter().find(|counted| counted.id == point.id));
        PointEnrollment {
            condition: condition.condition_code.clone(),
            decision_point: point.words(),
            users: there.map_or(0, |counted| counted.users),
        }
    };
    pairs.map(count).collect()
}

fn shorten(value: &str) -> String {
    match value.chars().count() > MAX_PAYLOAD_LENGTH {
        true => value.chars().take(MAX_PAYLOAD_LENGTH).chain(['…']).collect(),
        false => value.to_owned(),
    }
}

/// Returns the lists of one side that have members.
pub fn people(view: &View, side: Side) -> Vec<MemberListSummary> {
    view.lists(side).iter().filter(|list| !list.is_empty()).map(members).collect()
}

fn members(list: &MemberList) -> MemberListSummary {
    let groups = list.groups.iter().map(|(kind, id)| format!("{kind}: {id}"));
    let segments = list.sub_segments.iter().map(|segment| format!("segment {}", segment.name));
    let mut members: Vec<String> = list.users.iter().cloned().chain(groups).chain(segments).collect();
    let total = members.len();
    members.truncate(MAX_MEMBERS);
    MemberListSummary { name: list.name.clone(), members, total }
}

/// Returns the changes of status, the oldest first. The server returns them in no particular order.
pub fn history(view: &View) -> Vec<StatusHistoryEntry> {
    let read = |change: &StatusChange| StatusHistoryEntry { status: change.to_state, at: change.time_log.clone() };
    let mut history: Vec<_> = view.state_time_logs.iter().map(read).collect();
    history.sort_by(|a, b| a.at.cmp(&b.at));
    history
}

/// Returns the condition for the automatic end of enrollment: `with 100 users enrolled`.
pub fn ends(view: &View) -> Option<String> {
    let count = |count: Option<u64>, one: &str, many: &str| match count? {
        1 => Some(format!("1 {one}")),
        count => Some(format!("{count} {many}")),
    };
    let Ending { user_count, group_count } = view.ending;
    let counts: Vec<_> =
        [count(user_count, "user", "users"), count(group_count, "group", "groups")].into_iter().flatten().collect();
    (!counts.is_empty()).then(|| format!("with {} enrolled", counts.join(" or ")))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::upgrade::experiment::Experiment;

    fn recorded(name: &str) -> View {
        let path = format!("{}/../../../tests/fixtures/upgrade/6.5/{name}.json", env!("CARGO_MANIFEST_DIR"));
        let recorded: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        Experiment::from_value(&recorded["response"]["body"].clone()).unwrap().view
    }

    #[test]
    fn a_full_experiment_is_read_without_ids() {
        let full = recorded("021-get-single-full");
        insta::assert_snapshot!(json!({
            "contents": contents(&full),
            "inclusion": people(&full, Side::Inclusion),
            "exclusion": people(&full, Side::Exclusion),
            "ends": ends(&full),
        }), @r#"{"contents":[{"condition":"control","decision_point":"SelectSection / absolute_value_plot_equality","type":"string","value":"hints-off"},{"condition":"variant","decision_point":"SelectSection / absolute_value_plot_equality","type":"json","value":"{\"hints\":true}"}],"ends":"with 100 users enrolled","exclusion":[],"inclusion":[{"members":["student-1","student-2","schoolId: school-1"],"name":"Included","total":3}]}"#);
        let running = recorded("233-single-enrolling");
        assert_eq!(history(&running).last().unwrap().status, Status::Enrolling);
    }

    #[test]
    fn enrolment_is_listed_by_code_and_point() {
        let recorded = std::fs::read(format!(
            "{}/../../../tests/fixtures/upgrade/6.5/454-stats-enrollment-detail.json",
            env!("CARGO_MANIFEST_DIR")
        ));
        let recorded: Value = serde_json::from_slice(&recorded.unwrap()).unwrap();
        let counted: EnrollmentDetail = serde_json::from_value(recorded["response"]["body"].clone()).unwrap();
        let [one, other] = [&counted.conditions[0], &counted.conditions[1]];
        let point = |at: usize| json!({ "id": one.points[at].id, "site": "chat", "target": format!("t{at}") });
        let view = Experiment::from_value(&json!({
            "id": counted.id, "name": "Client run", "state": "running", "partitions": [point(0), point(1)],
            "conditions": [
                { "id": one.id, "conditionCode": "control", "assignmentWeight": 50, "order": 1 },
                { "id": other.id, "conditionCode": "variant", "assignmentWeight": 50, "order": 2 },
            ],
        }));
        let all = enrolled_at(&view.unwrap().view, &counted);
        let words: Vec<_> =
            all.iter().map(|at| format!("{} {} {}", at.condition, at.decision_point, at.users)).collect();
        assert_eq!(words, ["control chat / t0 1", "control chat / t1 0", "variant chat / t0 1", "variant chat / t1 0"]);
    }
}
