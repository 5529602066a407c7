//! The fields that an update can change, each with its present and its new value.
//! [`super::apply_changes`] writes them into the whole object.
//!
//! Fields are compared as plain JSON values, which have the same form before the change, after it, and
//! when it is read back.

use countersign_graph::action::Scope;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{
    choices, dates,
    design::{self, PlannedCondition, PlannedPoint},
    lists,
    lists::Members,
};
use crate::{
    inputs::PayloadInput,
    replies::answers,
    rules, scope, summary,
    upgrade::{
        experiment::{Ending, ExperimentId, View},
        lists::Side,
    },
};

/// The changes of one update, as stored. Absent fields are not changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Changes {
    pub(super) experiment: ExperimentId,
    pub(super) experiment_name: String,
    pub(super) new_name: Option<String>,
    pub(super) description: Option<String>,
    pub(super) tags: Option<Vec<String>>,
    pub(super) conditions: Option<Vec<PlannedCondition>>,
    pub(super) decision_points: Option<Vec<PlannedPoint>>,
    pub(super) unit: Option<String>,
    /// Only together with unit `group`.
    pub(super) group: Option<String>,
    pub(super) consistency: Option<String>,
    /// One of `continue`, `assign <code>` and `assign default`.
    pub(super) post_rule: Option<String>,
    pub(super) filter_mode: Option<String>,
    /// The payload of every condition at every point.
    pub(super) payloads: Option<Vec<PayloadInput>>,
    pub(super) condition_order: Option<String>,
    /// The counts after which enrolment ends; 0 for no limit. Both are set if either changes.
    pub(super) ends_after_users: Option<u64>,
    pub(super) ends_after_groups: Option<u64>,
    pub(super) end_on: Option<String>,
    pub(super) inclusion: Option<Members>,
    pub(super) exclusion: Option<Members>,
}

impl Changes {
    /// Returns the scope of the changes.
    pub(super) fn scope(&self, experiment: &View) -> Scope {
        let conditions = self.conditions.iter().flatten();
        let scope =
            conditions.fold(scope::of(experiment), |scope, condition| scope.measure(scope::WEIGHT, condition.weight));
        match &self.end_on {
            Some(end) => scope.measure(scope::END, &**end),
            None => scope,
        }
    }

    /// Returns the changes without a field.
    pub(super) fn without(&self, field: Field) -> Self {
        let mut all = json!(self);
        field.keys().iter().for_each(|key| all[key] = Value::Null);
        serde_json::from_value(all).expect("every change is optional")
    }

    /// Returns the fields that change.
    pub(super) fn fields(&self) -> impl Iterator<Item = Field> {
        Field::ALL.into_iter().filter(|field| field.after(self).is_some())
    }

    /// Returns the new values of the fields that change, by their labels.
    pub(super) fn after(&self) -> Map<String, Value> {
        Field::ALL.into_iter().filter_map(|field| Some((field.label().to_owned(), field.after(self)?))).collect()
    }

    /// Returns the new automatic end of enrollment; `None` if it does not change.
    pub(super) fn ending(&self) -> Option<Ending> {
        let count = |count: u64| Some(count).filter(|count| *count > 0);
        let (users, groups) = (self.ends_after_users?, self.ends_after_groups?);
        Some(Ending { user_count: count(users), group_count: count(groups) })
    }

    /// Returns the fields that do not have their new value yet.
    pub(super) fn lacking(&self, view: &View) -> Vec<Field> {
        self.fields().filter(|field| field.after(self).is_some_and(|after| !same(&field.read(view), &after))).collect()
    }

    /// Returns the lists that change.
    pub(super) fn lists(&self) -> impl Iterator<Item = (Side, &Members)> {
        let both = [(Side::Inclusion, &self.inclusion), (Side::Exclusion, &self.exclusion)];
        both.into_iter().filter_map(|(side, members)| Some((side, members.as_ref()?)))
    }

    /// Returns true if the experiment looks as if the change had been interrupted between two requests:
    /// the experiment itself is as intended, and its lists are between `before` and the new members.
    pub(super) fn is_begun(&self, view: &View, before: &Value) -> bool {
        self.lacking(view).iter().all(|field| field.side().is_some())
            && self.lists().all(|(side, after)| {
                let field = if side == Side::Inclusion { Field::Inclusion } else { Field::Exclusion };
                let before = serde_json::from_value(before[field.label()].clone()).unwrap_or_default();
                lists::is_between(&lists::members_of(view.lists(side)), &before, after)
            })
    }
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
    Payloads,
    ConditionOrder,
    Ending,
    EndOn,
    Inclusion,
    Exclusion,
}

impl Field {
    /// All fields, in the order of a card.
    pub(super) const ALL: [Self; 15] = [
        Self::Name,
        Self::Description,
        Self::Tags,
        Self::Conditions,
        Self::Payloads,
        Self::DecisionPoints,
        Self::Unit,
        Self::ConditionOrder,
        Self::Consistency,
        Self::Ending,
        Self::PostRule,
        Self::FilterMode,
        Self::Inclusion,
        Self::Exclusion,
        Self::EndOn,
    ];

    /// Returns the side of a list field; `None` for other fields.
    pub(super) fn side(self) -> Option<Side> {
        match self {
            Self::Inclusion => Some(Side::Inclusion),
            Self::Exclusion => Some(Side::Exclusion),
            _ => None,
        }
    }

    /// Returns the label on a card, the name in the middle of a sentence, and the keys of the parameters.
    const fn names(self) -> (&'static str, &'static str, &'static [&'static str]) {
        match self {
            Self::Name => ("Name", "name", &["new_name"]),
            Self::Description => ("Description", "description", &["description"]),
            Self::Tags => ("Tags", "tags", &["tags"]),
            Self::Conditions => ("Conditions", "conditions", &["conditions"]),
            Self::DecisionPoints => ("Decision points", "decision points", &["decision_points"]),
            Self::Unit => ("Assignment", "assignment unit", &["unit", "group"]),
            Self::Consistency => ("Consistency", "consistency rule", &["consistency"]),
            Self::PostRule => ("After enrollment ends", "post-experiment rule", &["post_rule"]),
            Self::FilterMode => ("Users on no list", "filter mode", &["filter_mode"]),
            Self::Payloads => ("Payloads", "payloads", &["payloads"]),
            Self::ConditionOrder => ("Order of conditions", "order of conditions", &["condition_order"]),
            Self::Ending => ("Enrollment ends", "end of enrollment", &["ends_after_users", "ends_after_groups"]),
            Self::EndOn => ("Ends", "end date", &["end_on"]),
            Self::Inclusion => ("Inclusion list", "inclusion list", &["inclusion"]),
            Self::Exclusion => ("Exclusion list", "exclusion list", &["exclusion"]),
        }
    }

    /// Returns the label on a card.
    pub(super) const fn label(self) -> &'static str {
        self.names().0
    }

    /// Returns the name in the middle of a sentence.
    pub(super) const fn name_in_sentence(self) -> &'static str {
        self.names().1
    }

    /// Returns the keys of the parameters that set it, as they are stored.
    pub(super) const fn keys(self) -> &'static [&'static str] {
        self.names().2
    }

    /// Returns the value in `view`.
    pub(super) fn read(self, view: &View) -> Value {
        match self {
            Self::Name => json!(view.name),
            Self::Description => json!(view.description),
            Self::Tags => json!(view.tags),
            Self::Conditions => view
                .conditions
                .iter()
                .map(|c| json!({ "code": c.condition_code, "weight": summary::as_shown(c.assignment_weight) }))
                .collect(),
            Self::DecisionPoints => view
                .decision_points
                .iter()
                .map(|p| point(&p.site, p.target.as_deref().unwrap_or_default(), p.exclude_if_reached))
                .collect(),
            Self::Unit => unit(&view.assignment_unit, view.group.as_deref()),
            Self::Consistency => json!(view.consistency_rule),
            Self::PostRule => json!(summary::post_rule(view)),
            Self::FilterMode => json!(view.filter_mode),
            Self::Payloads => json!(payloads(view)),
            Self::ConditionOrder => json!(view.condition_order),
            Self::Ending => json!(view.ending),
            Self::EndOn => json!(view.end_on),
            Self::Inclusion => json!(lists::members_of(&view.inclusion)),
            Self::Exclusion => json!(lists::members_of(&view.exclusion)),
        }
    }

    /// Returns the value after `changes`; `None` if they do not include the field.
    pub(super) fn after(self, changes: &Changes) -> Option<Value> {
        match self {
            Self::Conditions => changes.conditions.as_ref().map(|conditions| {
                let values = conditions.iter();
                values.map(|c| json!({ "code": c.code, "weight": summary::as_shown(c.weight) })).collect()
            }),
            Self::DecisionPoints => changes
                .decision_points
                .as_ref()
                .map(|points| points.iter().map(|p| point(&p.site, &p.target, p.exclude_if_reached)).collect()),
            Self::Unit => changes.unit.as_ref().map(|name| unit(name, changes.group.as_deref())),
            Self::Ending => changes.ending().map(|ending| json!(ending)),
            field => Some(json!(changes)[field.keys()[0]].take()).filter(|value| !value.is_null()),
        }
    }

    /// Returns a value of this field in words.
    pub(super) fn words(self, value: &Value) -> String {
        let text = value.as_str().unwrap_or_default();
        let words = match self {
            Self::Name | Self::Description | Self::Consistency | Self::ConditionOrder => text.to_owned(),
            Self::DecisionPoints => {
                let all = value.as_array().into_iter().flatten().map(|point| {
                    let part = |key: &str| point[key].as_str().unwrap_or_default();
                    let excludes = point["exclude_if_reached"] == true;
                    design::point_words(&format!("{} / {}", part("site"), part("target")), excludes)
                });
                all.collect::<Vec<_>>().join(", ")
            }
            Self::Payloads => {
                let all: Vec<PayloadInput> = serde_json::from_value(value.clone()).unwrap_or_default();
                let own: Vec<_> = all.into_iter().filter(|payload| payload.value != payload.condition).collect();
                design::payload_words(&own)
            }
            Self::Ending => choices::ending_words(serde_json::from_value(value.clone()).unwrap_or_default()),
            Self::EndOn => dates::moment_in_words(text),
            Self::Inclusion | Self::Exclusion => {
                lists::words(&serde_json::from_value(value.clone()).unwrap_or_default())
            }
            Self::Tags => {
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
}

/// Returns the unit and the type of group as one value: `individual`, `group classId`.
pub(super) fn unit(unit: &str, group: Option<&str>) -> Value {
    match group.filter(|_| unit == "group") {
        Some(group) => json!(format!("{unit} {group}")),
        None => json!(unit),
    }
}

pub(super) fn point(site: &str, target: &str, excludes: bool) -> Value {
    json!({ "site": site, "target": target, "exclude_if_reached": excludes })
}

/// Returns the payload of each condition at each point. If none is set, it is the condition's code,
/// which is also the platform's default.
pub(super) fn payloads(view: &View) -> Vec<PayloadInput> {
    let pairs = view.conditions.iter().flat_map(|c| view.decision_points.iter().map(move |p| (c, p)));
    let each = pairs.map(|(condition, point)| {
        let mut set = view.payloads.iter();
        let set = set.find(|p| (&p.parent_condition, &p.decision_point) == (&condition.id, &point.id));
        let mut payload = own_code(&condition.condition_code, &point.words());
        if let Some(set) = set {
            payload.kind = Some(set.payload.kind.clone());
            payload.value.clone_from(&set.payload.value);
        }
        payload
    });
    each.collect()
}

/// Returns the default payload, which is the condition's code.
pub(super) fn own_code(code: &str, point: &str) -> PayloadInput {
    PayloadInput {
        condition: code.to_owned(),
        decision_point: Some(point.to_owned()),
        kind: Some("string".to_owned()),
        value: code.to_owned(),
    }
}

/// Returns true if two values are equal, apart from digits that weights lose when they are stored.
pub(super) fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(a), Value::Number(b)) => match (a.as_f64(), b.as_f64()) {
            (Some(a), Some(b)) => (a - b).abs() < 0.000_05,
            _ => a == b,
        },
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        (a, b) => a == b,
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::{super::apply_changes::apply, *};
    use crate::upgrade::experiment::Experiment;

    fn recorded(file: &str) -> Experiment {
        let path = format!("{}/../../../tests/fixtures/upgrade/{file}.json", env!("CARGO_MANIFEST_DIR"));
        let recorded: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        Experiment::from_value(&recorded["response"]["body"]).unwrap()
    }

    fn no_changes(experiment: &Experiment) -> Changes {
        let named = json!({ "experiment": experiment.view.id, "experiment_name": experiment.view.name });
        serde_json::from_value(named).unwrap()
    }

    #[test]
    fn no_change_sends_back_what_was_read() {
        for file in ["6.5/205-single-after-weights", "6.5/021-get-single-full", "6.2/016-single"] {
            let experiment = recorded(file);
            assert_eq!(apply(&no_changes(&experiment), &experiment).unwrap(), experiment.raw().unwrap(), "{file}");
        }
    }

    #[test]
    fn a_payload_of_another_type_has_another_id() {
        let experiment = recorded("6.5/021-get-single-full");
        let before = experiment.raw().unwrap()["conditionPayloads"].clone();
        let mut payloads = payloads(&experiment.view);
        let changed = |payload: &&mut PayloadInput| payload.value == "{\"hints\":true}";
        let json = payloads.iter_mut().find(changed).unwrap();
        (json.kind, json.value) = (Some("string".to_owned()), "blue".to_owned());
        let changes = Changes { payloads: Some(payloads), ..no_changes(&experiment) };
        let after = apply(&changes, &experiment).unwrap()["conditionPayloads"].clone();
        let with = |all: &Value, value: &str| {
            all.as_array().unwrap().iter().find(|payload| payload["payload"]["value"] == value).cloned().unwrap()
        };
        assert_eq!(with(&after, "hints-off")["id"], with(&before, "hints-off")["id"]);
        let ids = before.as_array().unwrap().iter().map(|payload| payload["id"].clone()).collect::<Vec<_>>();
        let blue = with(&after, "blue");
        assert!(!ids.contains(&blue["id"]) && blue["payload"]["type"] == "string", "{blue}");
        assert!(after.as_array().unwrap().iter().all(|payload| payload["payload"]["value"] != "{\"hints\":true}"));
    }

    #[test]
    fn new_weights_change_nothing_else_in_the_conditions() {
        let experiment = recorded("6.5/205-single-after-weights");
        let conditions = experiment.view.conditions.iter().zip([40.0, 60.0]);
        let conditions = conditions.map(|(c, weight)| PlannedCondition {
            code: c.condition_code.clone(),
            weight,
            id: c.id.parse().unwrap(),
        });
        let changes = Changes { conditions: Some(conditions.collect()), ..no_changes(&experiment) };
        let mut expected = experiment.raw().unwrap();
        expected["conditions"][0]["assignmentWeight"] = json!(40.0);
        expected["conditions"][1]["assignmentWeight"] = json!(60.0);
        assert_eq!(apply(&changes, &experiment).unwrap(), expected);
    }

    #[test]
    fn a_removed_condition_takes_its_payloads_along() {
        let experiment = recorded("6.5/205-single-after-weights");
        let kept = &experiment.view.conditions[0];
        let only = PlannedCondition { code: kept.condition_code.clone(), weight: 100.0, id: kept.id.parse().unwrap() };
        let changes = Changes { conditions: Some(vec![only]), ..no_changes(&experiment) };
        let body = apply(&changes, &experiment).unwrap();
        assert_eq!(body["conditionPayloads"].as_array().unwrap().len(), 1);
        assert_eq!(body["conditionPayloads"][0]["parentCondition"], json!(kept.id));
    }

    #[test]
    fn the_post_experiment_rule_refers_to_its_condition_by_id() {
        let experiment = recorded("6.5/205-single-after-weights");
        let changes = Changes { post_rule: Some("assign variant".into()), ..no_changes(&experiment) };
        let body = apply(&changes, &experiment).unwrap();
        assert_eq!(body["postExperimentRule"], "assign");
        assert_eq!(body["revertTo"], json!(experiment.view.conditions[1].id));
        let read_back = Experiment::from_value(&body).unwrap();
        assert!(same(&Field::PostRule.read(&read_back.view), &Field::PostRule.after(&changes).unwrap()));
    }

    #[test]
    fn every_field_reads_back_what_was_written() {
        let experiment = recorded("6.5/103-single");
        let third = PlannedCondition { code: "concrete".into(), weight: 100.0, id: Uuid::from_u128(1) };
        let point = PlannedPoint {
            site: "SelectProblem".into(),
            target: "fraction_intro".into(),
            id: Uuid::from_u128(2),
            exclude_if_reached: true,
        };
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
            ends_after_users: Some(100),
            ends_after_groups: Some(0),
            end_on: Some("2099-01-01T00:00:00.000Z".into()),
            payloads: Some(vec![PayloadInput {
                value: "short".into(),
                ..own_code("concrete", "SelectProblem / fraction_intro")
            }]),
            ..no_changes(&experiment)
        };
        let read_back = Experiment::from_value(&apply(&changes, &experiment).unwrap()).unwrap();
        for field in changes.fields() {
            let after = field.after(&changes).unwrap();
            assert!(same(&field.read(&read_back.view), &after), "{field:?}");
            assert!(!same(&field.read(&experiment.view), &after), "{field:?} does not change");
        }
    }
}
