//! What else belongs to an experiment: contents, lists of people, history; from the server's words, without its ids.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::services::upgrade::{
    experiment::{Experiment, View},
    status::Status,
};

/// How many members of a list are named.
const NAMED: usize = 20;
/// The longest content that is told, in characters.
const LONGEST_CONTENT: usize = 300;

/// What is handed to the application for one condition at one decision point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    /// The condition's code.
    pub condition: String,
    /// `site / target`.
    pub decision_point: String,
    /// `string`, `json` or `csv`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The content, shortened.
    pub value: String,
}

/// A list of people who may or must not take part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct People {
    /// What it is called.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Users by id, groups as `type: id`, other segments by name; the first ones.
    pub members: Vec<String>,
    /// How many there are.
    pub total: usize,
}

/// A change of status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// What it became.
    pub status: Status,
    /// When.
    pub at: String,
}

/// The contents, where they say more than the condition's code.
pub fn contents(experiment: &Experiment) -> Vec<Content> {
    let view = &experiment.view;
    let read = |payload: &Value| {
        let condition = view.condition(payload["parentCondition"].as_str()?)?;
        let point = view.decision_points.iter().find(|point| payload["decisionPoint"] == point.id)?;
        let value = payload["payload"]["value"].as_str().filter(|value| *value != condition.condition_code)?;
        Some(Content {
            condition: condition.condition_code.clone(),
            decision_point: point.words(),
            kind: payload["payload"]["type"].as_str().unwrap_or("string").to_owned(),
            value: shorten(value),
        })
    };
    let mut contents: Vec<_> =
        experiment.raw["conditionPayloads"].as_array().into_iter().flatten().filter_map(read).collect();
    contents.sort_by_key(|content| {
        let place = |view: &View| view.conditions.iter().position(|c| c.condition_code == content.condition);
        (content.decision_point.clone(), place(view))
    });
    contents
}

fn shorten(value: &str) -> String {
    match value.chars().count() > LONGEST_CONTENT {
        true => value.chars().take(LONGEST_CONTENT).chain(['…']).collect(),
        false => value.to_owned(),
    }
}

/// Who may take part, and who must not. Before 6.3 there is one object for each, from then on a list of them.
pub fn people(experiment: &Experiment, lists: &str) -> Vec<People> {
    let lists = match &experiment.raw[lists] {
        Value::Array(lists) => lists.iter().collect(),
        Value::Object(_) => vec![&experiment.raw[lists]],
        _ => Vec::new(),
    };
    lists.into_iter().map(|list| members(&list["segment"])).filter(|people| people.total > 0).collect()
}

fn members(segment: &Value) -> People {
    let all = |key: &str| segment[key].as_array().into_iter().flatten();
    let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    let users = all("individualForSegment").map(|user| text(&user["userId"]));
    let groups = all("groupForSegment").map(|group| format!("{}: {}", text(&group["type"]), text(&group["groupId"])));
    let segments = all("subSegments").map(|part| format!("segment {}", text(&part["name"])));
    let mut members: Vec<String> = users.chain(groups).chain(segments).collect();
    let total = members.len();
    members.truncate(NAMED);
    People { name: segment["name"].as_str().unwrap_or_default().to_owned(), members, total }
}

/// The changes of status, the oldest first; the server keeps them in no order.
pub fn history(experiment: &Experiment) -> Vec<Turn> {
    let read = |log: &Value| {
        let at = log["timeLog"].as_str()?.to_owned();
        Some(Turn { status: Status::parse(log["toState"].as_str()?)?, at })
    };
    let mut history: Vec<_> =
        experiment.raw["stateTimeLogs"].as_array().into_iter().flatten().filter_map(read).collect();
    history.sort_by(|a, b| a.at.cmp(&b.at));
    history
}

/// When it ends by itself: `with 100 people enrolled`.
pub fn ends(experiment: &Experiment) -> Option<String> {
    let criterion = &experiment.raw["enrollmentCompleteCondition"];
    let count = |key: &str, one: &str, many: &str| match criterion[key].as_u64()? {
        1 => Some(format!("1 {one}")),
        count => Some(format!("{count} {many}")),
    };
    let counts: Vec<_> = [count("userCount", "person", "people"), count("groupCount", "group", "groups")]
        .into_iter()
        .flatten()
        .collect();
    (!counts.is_empty()).then(|| format!("with {} enrolled", counts.join(" or ")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn recorded(name: &str) -> Experiment {
        let path = format!("{}/tests/fixtures/upgrade/6.5/{name}.json", env!("CARGO_MANIFEST_DIR"));
        let recorded: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        Experiment::from_value(recorded["response"]["body"].clone()).unwrap()
    }

    #[test]
    fn a_full_experiment_is_read_without_ids() {
        let full = recorded("021-get-single-full");
        insta::assert_snapshot!(json!({
            "contents": contents(&full),
            "inclusion": people(&full, "experimentSegmentInclusion"),
            "exclusion": people(&full, "experimentSegmentExclusion"),
            "ends": ends(&full),
        }), @r#"{"contents":[{"condition":"control","decision_point":"SelectSection / absolute_value_plot_equality","type":"string","value":"hints-off"},{"condition":"variant","decision_point":"SelectSection / absolute_value_plot_equality","type":"json","value":"{\"hints\":true}"}],"ends":"with 100 people enrolled","exclusion":[],"inclusion":[{"members":["student-1","student-2","schoolId: school-1"],"name":"Included","total":3}]}"#);
        let running = recorded("233-single-enrolling");
        assert_eq!(history(&running).last().unwrap().status, Status::Enrolling);
    }
}
