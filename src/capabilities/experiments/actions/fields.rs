//! What an update can change: how a field reads now, how it will read, and how it is written into the whole object.
//!
//! Fields are compared as plain values, the same before the change, after it, and when it is read back.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::design::{PlannedCondition, PlannedPoint};
use crate::{
    capabilities::experiments::{replies::answers, rules, summary},
    services::upgrade::experiment::{Experiment, ExperimentId, View},
};

/// The changes of one update: what is absent stays. As stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Changes {
    pub(super) experiment: ExperimentId,
    pub(super) experiment_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) new_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) tags: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) conditions: Option<Vec<PlannedCondition>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) decision_points: Option<Vec<PlannedPoint>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) unit: Option<String>,
    /// Only together with unit `group`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) group: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) consistency: Option<String>,
    /// `continue`, `assign <code>` or `assign default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) post_rule: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) filter_mode: Option<String>,
}

/// A field of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Name,
    Description,
    Tags,
    Conditions,
    DecisionPoints,
    Unit,
    Consistency,
    PostRule,
    FilterMode,
}

impl Field {
    pub(super) const ALL: [Self; 9] = [
        Self::Name,
        Self::Description,
        Self::Tags,
        Self::Conditions,
        Self::DecisionPoints,
        Self::Unit,
        Self::Consistency,
        Self::PostRule,
        Self::FilterMode,
    ];

    /// Its name on a card.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Name => "Name",
            Self::Description => "Description",
            Self::Tags => "Tags",
            Self::Conditions => "Conditions",
            Self::DecisionPoints => "Decision points",
            Self::Unit => "Assigned",
            Self::Consistency => "Consistency",
            Self::PostRule => "Afterwards",
            Self::FilterMode => "People on no list",
        }
    }

    /// How it reads in `view`.
    pub(super) fn read(self, view: &View) -> Value {
        match self {
            Self::Name => json!(view.name),
            Self::Description => json!(view.description),
            Self::Tags => json!(view.tags),
            Self::Conditions => view
                .conditions
                .iter()
                .map(|c| json!({ "code": c.condition_code, "weight": summary::two_decimals(c.assignment_weight) }))
                .collect(),
            Self::DecisionPoints => view.decision_points.iter().map(|point| json!(point.words())).collect(),
            Self::Unit => unit(&view.assignment_unit, view.group.as_deref()),
            Self::Consistency => json!(view.consistency_rule),
            Self::PostRule => json!(summary::post_rule(view)),
            Self::FilterMode => json!(view.filter_mode),
        }
    }

    /// How it will read after `changes`; nothing if they leave it alone.
    pub(super) fn after(self, changes: &Changes) -> Option<Value> {
        match self {
            Self::Name => changes.new_name.as_ref().map(|name| json!(name)),
            Self::Description => changes.description.as_ref().map(|description| json!(description)),
            Self::Tags => changes.tags.as_ref().map(|tags| json!(tags)),
            Self::Conditions => changes.conditions.as_ref().map(|conditions| {
                let values = conditions.iter();
                values.map(|c| json!({ "code": c.code, "weight": summary::two_decimals(c.weight) })).collect()
            }),
            Self::DecisionPoints => changes
                .decision_points
                .as_ref()
                .map(|points| points.iter().map(|point| json!(format!("{} / {}", point.site, point.target))).collect()),
            Self::Unit => changes.unit.as_ref().map(|name| unit(name, changes.group.as_deref())),
            Self::Consistency => changes.consistency.as_ref().map(|rule| json!(rule)),
            Self::PostRule => changes.post_rule.as_ref().map(|rule| json!(rule)),
            Self::FilterMode => changes.filter_mode.as_ref().map(|mode| json!(mode)),
        }
    }

    /// A value of this field, in words.
    pub(super) fn words(self, value: &Value) -> String {
        let text = value.as_str().unwrap_or_default();
        let words = match self {
            Self::Name | Self::Description | Self::Consistency => text.to_owned(),
            Self::Tags | Self::DecisionPoints => {
                let all = value.as_array().into_iter().flatten().filter_map(Value::as_str);
                all.collect::<Vec<_>>().join(", ")
            }
            Self::Conditions => {
                let all = value.as_array().into_iter().flatten();
                let all = all.map(|condition| {
                    let weight = condition["weight"].as_f64().unwrap_or_default();
                    format!("{} {}%", condition["code"].as_str().unwrap_or_default(), rules::number(weight))
                });
                all.collect::<Vec<_>>().join(", ")
            }
            Self::Unit => match text.split_once(' ') {
                Some((unit, group)) => answers::unit_words(unit, Some(group)),
                None => answers::unit_words(text, None),
            },
            Self::PostRule => answers::afterwards(text),
            Self::FilterMode => answers::filter_words(text),
        };
        if words.is_empty() { "none".to_owned() } else { words }
    }

    /// Forgets the change of this field.
    pub(super) fn drop_from(self, changes: &mut Changes) {
        match self {
            Self::Name => changes.new_name = None,
            Self::Description => changes.description = None,
            Self::Tags => changes.tags = None,
            Self::Conditions => changes.conditions = None,
            Self::DecisionPoints => changes.decision_points = None,
            Self::Unit => (changes.unit, changes.group) = (None, None),
            Self::Consistency => changes.consistency = None,
            Self::PostRule => changes.post_rule = None,
            Self::FilterMode => changes.filter_mode = None,
        }
    }
}

/// Unit and group are one thing to people: `individual`, `group classId`.
fn unit(unit: &str, group: Option<&str>) -> Value {
    match group.filter(|_| unit == "group") {
        Some(group) => json!(format!("{unit} {group}")),
        None => json!(unit),
    }
}

/// Whether two values read alike: weights lose digits in storage.
pub(super) fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(a), Value::Number(b)) => match (a.as_f64(), b.as_f64()) {
            (Some(a), Some(b)) => (a - b).abs() < 0.015,
            _ => a == b,
        },
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        (a, b) => a == b,
    }
}

/// The whole object with the changes written in; everything else as the server told it.
pub(super) fn apply(changes: &Changes, experiment: &Experiment) -> Value {
    let mut raw = experiment.raw.clone();
    let mut set = |key: &str, value: Value| raw[key] = value;
    if let Some(name) = &changes.new_name {
        set("name", json!(name));
    }
    if let Some(description) = &changes.description {
        set("description", json!(description));
    }
    if let Some(tags) = &changes.tags {
        set("tags", json!(tags));
    }
    if let Some(unit) = &changes.unit {
        set("assignmentUnit", json!(unit));
        set("group", json!(changes.group));
    }
    if let Some(rule) = &changes.consistency {
        set("consistencyRule", json!(rule));
    }
    if let Some(mode) = &changes.filter_mode {
        set("filterMode", json!(mode));
    }
    if let Some(conditions) = &changes.conditions {
        let old = list(&experiment.raw, "conditions");
        let conditions = conditions.iter().enumerate().map(|(i, condition)| {
            let mut object = kept(old, &condition.id.to_string());
            object.insert("id".into(), json!(condition.id));
            object.insert("conditionCode".into(), json!(condition.code));
            object.insert("assignmentWeight".into(), json!(condition.weight));
            object.insert("order".into(), json!(i + 1));
            Value::Object(object)
        });
        set("conditions", conditions.collect());
    }
    if let Some(points) = &changes.decision_points {
        let old = list(&experiment.raw, "partitions");
        let points = points.iter().enumerate().map(|(i, point)| {
            let mut object = kept(old, &point.id.to_string());
            object.insert("id".into(), json!(point.id));
            object.insert("site".into(), json!(point.site));
            object.insert("target".into(), json!(point.target));
            object.insert("order".into(), json!(i + 1));
            // A new point without these is refused, or breaks the server.
            object.entry("description").or_insert(json!(""));
            object.entry("excludeIfReached").or_insert(json!(false));
            Value::Object(object)
        });
        set("partitions", points.collect());
    }
    if let Some(rule) = &changes.post_rule {
        let code = rule.strip_prefix("assign ");
        let condition = list(&raw, "conditions").iter().find(|c| code.is_some_and(|code| c["conditionCode"] == code));
        let id = condition.map(|condition| condition["id"].clone()).unwrap_or_default();
        raw["postExperimentRule"] = json!(if code.is_some() { "assign" } else { "continue" });
        raw["revertTo"] = id;
    }
    drop_orphans(&mut raw);
    raw
}

/// Payloads of conditions and points that are no longer there: references to nothing are 500. `PUT` wants the list.
fn drop_orphans(raw: &mut Value) {
    let ids = |key: &str| list(raw, key).iter().map(|item| item["id"].clone()).collect::<Vec<_>>();
    let (conditions, points) = (ids("conditions"), ids("partitions"));
    let payloads = list(raw, "conditionPayloads").iter().filter(|payload| {
        conditions.contains(&payload["parentCondition"]) && points.contains(&payload["decisionPoint"])
    });
    raw["conditionPayloads"] = payloads.cloned().collect();
}

fn list<'a>(raw: &'a Value, key: &str) -> &'a [Value] {
    raw[key].as_array().map_or(&[], Vec::as_slice)
}

/// The object of that id as it was, or an empty one.
fn kept(old: &[Value], id: &str) -> Map<String, Value> {
    old.iter().find(|item| item["id"] == id).and_then(Value::as_object).cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn recorded(file: &str) -> Experiment {
        let path = format!("{}/tests/fixtures/upgrade/{file}.json", env!("CARGO_MANIFEST_DIR"));
        let recorded: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        Experiment::from_value(recorded["response"]["body"].clone()).unwrap()
    }

    fn no_changes(experiment: &Experiment) -> Changes {
        let named = json!({ "experiment": experiment.view.id, "experiment_name": experiment.view.name });
        serde_json::from_value(named).unwrap()
    }

    #[test]
    fn no_change_sends_back_what_was_read() {
        for file in ["6.5/205-single-after-weights", "6.5/021-get-single-full", "6.2/016-single"] {
            let experiment = recorded(file);
            assert_eq!(apply(&no_changes(&experiment), &experiment), experiment.raw, "{file}");
        }
    }

    #[test]
    fn new_weights_keep_the_conditions_and_all_that_hangs_on_them() {
        let experiment = recorded("6.5/205-single-after-weights");
        let conditions = experiment.view.conditions.iter().zip([40.0, 60.0]);
        let conditions = conditions.map(|(c, weight)| PlannedCondition {
            code: c.condition_code.clone(),
            weight,
            id: c.id.parse().unwrap(),
        });
        let changes = Changes { conditions: Some(conditions.collect()), ..no_changes(&experiment) };
        let mut expected = experiment.raw.clone();
        expected["conditions"][0]["assignmentWeight"] = json!(40.0);
        expected["conditions"][1]["assignmentWeight"] = json!(60.0);
        assert_eq!(apply(&changes, &experiment), expected);
    }

    #[test]
    fn a_removed_condition_takes_its_payloads_along() {
        let experiment = recorded("6.5/205-single-after-weights");
        let kept = &experiment.view.conditions[0];
        let only = PlannedCondition { code: kept.condition_code.clone(), weight: 100.0, id: kept.id.parse().unwrap() };
        let changes = Changes { conditions: Some(vec![only]), ..no_changes(&experiment) };
        let body = apply(&changes, &experiment);
        assert_eq!(body["conditionPayloads"].as_array().unwrap().len(), 1);
        assert_eq!(body["conditionPayloads"][0]["parentCondition"], json!(kept.id));
    }

    #[test]
    fn the_rule_afterwards_names_its_condition_by_id() {
        let experiment = recorded("6.5/205-single-after-weights");
        let changes = Changes { post_rule: Some("assign variant".into()), ..no_changes(&experiment) };
        let body = apply(&changes, &experiment);
        assert_eq!(body["postExperimentRule"], "assign");
        assert_eq!(body["revertTo"], json!(experiment.view.conditions[1].id));
        let read_back = Experiment::from_value(body).unwrap();
        assert!(same(&Field::PostRule.read(&read_back.view), &Field::PostRule.after(&changes).unwrap()));
    }

    #[test]
    fn every_field_reads_back_what_was_written() {
        let experiment = recorded("6.5/103-single");
        let third = PlannedCondition { code: "concrete".into(), weight: 100.0, id: Uuid::from_u128(1) };
        let point =
            PlannedPoint { site: "SelectProblem".into(), target: "fraction_intro".into(), id: Uuid::from_u128(2) };
        let changes = Changes {
            new_name: Some("Other".into()),
            description: Some("new".into()),
            tags: Some(vec!["t".into()]),
            conditions: Some(vec![third]),
            decision_points: Some(vec![point]),
            unit: Some("group".into()),
            group: Some("classId".into()),
            consistency: Some("experiment".into()),
            post_rule: Some("assign default".into()),
            filter_mode: Some("excludeAll".into()),
            ..no_changes(&experiment)
        };
        let read_back = Experiment::from_value(apply(&changes, &experiment)).unwrap();
        for field in Field::ALL {
            let after = field.after(&changes).unwrap();
            assert!(same(&field.read(&read_back.view), &after), "{field:?}");
            assert!(!same(&field.read(&experiment.view), &after), "{field:?} was like that before");
        }
    }
}
