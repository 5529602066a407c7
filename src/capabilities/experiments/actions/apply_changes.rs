//! Applies changes to the whole experiment, as it was read and is sent back.

use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{design, fields::Changes};
use crate::{
    inputs::PayloadInput,
    upgrade::{
        error::Error,
        experiment::{Ending, Experiment, Payload, View},
    },
};

/// Returns the experiment as a whole object with the changes applied. Everything else stays as the
/// server sent it.
///
/// # Errors
///
/// As [`Experiment::raw`].
pub(super) fn apply(changes: &Changes, experiment: &Experiment) -> Result<Value, Error> {
    let before = experiment.raw()?;
    let mut raw = before.clone();
    let mut set = |key: &str, value: Value| raw[key] = value;
    if let Some(unit) = &changes.unit {
        set("assignmentUnit", json!(unit));
        set("group", json!(changes.group));
        // Exactly one of the two must be set.
        let other = if unit == "within-subjects" { "consistencyRule" } else { "conditionOrder" };
        set(other, Value::Null);
    }
    let plain = [
        ("name", &changes.new_name),
        ("description", &changes.description),
        ("conditionOrder", &changes.condition_order),
        ("endOn", &changes.end_on),
        ("consistencyRule", &changes.consistency),
        ("filterMode", &changes.filter_mode),
    ];
    for (key, value) in plain {
        if let Some(value) = value {
            set(key, json!(value));
        }
    }
    if let Some(tags) = &changes.tags {
        set("tags", json!(tags));
    }
    if let Some(ending) = changes.ending() {
        set("enrollmentCompleteCondition", if ending == Ending::default() { Value::Null } else { json!(ending) });
    }
    if let Some(conditions) = &changes.conditions {
        let old = list(&before, "conditions");
        let conditions = conditions.iter().enumerate().map(|(i, condition)| {
            let mut object = existing_object(old, &condition.id.to_string());
            object.insert("id".into(), json!(condition.id));
            object.insert("conditionCode".into(), json!(condition.code));
            object.insert("assignmentWeight".into(), json!(condition.weight));
            object.insert("order".into(), json!(i + 1));
            Value::Object(object)
        });
        set("conditions", conditions.collect());
    }
    if let Some(points) = &changes.decision_points {
        let old = list(&before, "partitions");
        let points = points.iter().enumerate().map(|(i, point)| {
            let mut object = existing_object(old, &point.id.to_string());
            object.insert("id".into(), json!(point.id));
            object.insert("site".into(), json!(point.site));
            object.insert("target".into(), json!(point.target));
            object.insert("order".into(), json!(i + 1));
            object.insert("excludeIfReached".into(), json!(point.exclude_if_reached));
            // The server fails on a new point without a description.
            object.entry("description").or_insert(json!(""));
            Value::Object(object)
        });
        set("partitions", points.collect());
    }
    if let Some(rule) = &changes.post_rule {
        design::write_post_rule(&mut raw, rule);
    }
    drop_orphans(&mut raw);
    if let Some(payloads) = &changes.payloads {
        write_payloads(&mut raw, payloads);
    }
    Ok(raw)
}

/// Returns the payloads that go with the removed conditions and decision points.
pub(super) fn lost_payloads(changes: &Changes, experiment: &View) -> Vec<PayloadInput> {
    let conditions = changes.conditions.iter().flatten().map(|condition| condition.id.to_string());
    let points = changes.decision_points.iter().flatten().map(|point| point.id.to_string());
    let (conditions, points): (Vec<_>, Vec<_>) = (conditions.collect(), points.collect());
    let loses_condition = |id: &String| changes.conditions.is_some() && !conditions.contains(id);
    let loses_point = |id: &String| changes.decision_points.is_some() && !points.contains(id);
    let is_lost = |p: &&Payload| loses_condition(&p.parent_condition) || loses_point(&p.decision_point);
    let lost = experiment.payloads.iter().filter(is_lost).filter_map(|payload| {
        let condition = experiment.condition(&payload.parent_condition)?;
        let point = experiment.decision_points.iter().find(|point| point.id == payload.decision_point)?;
        Some(PayloadInput {
            condition: condition.condition_code.clone(),
            decision_point: Some(point.words()),
            kind: Some(payload.payload.kind.clone()),
            value: payload.payload.value.clone(),
        })
    });
    lost.filter(|payload| payload.value != payload.condition).collect()
}

/// Writes the payloads. The server keeps the type of a payload whose id it knows, so one of another type takes the place of
/// the present one under a new id.
fn write_payloads(raw: &mut Value, payloads: &[PayloadInput]) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut all = list(raw, "conditionPayloads").to_vec();
    for payload in payloads {
        let condition = list(raw, "conditions").iter().find(|c| c["conditionCode"] == payload.condition);
        let is_at =
            |p: &&Value| payload.decision_point == Some(format!("{} / {}", text(&p["site"]), text(&p["target"])));
        let (Some(condition), Some(point)) = (condition, list(raw, "partitions").iter().find(is_at)) else { continue };
        let content = json!({ "type": payload.kind, "value": payload.value });
        let is_here = |p: &Value| p["parentCondition"] == condition["id"] && p["decisionPoint"] == point["id"];
        match all.iter_mut().find(|p| is_here(p) && p["payload"]["type"] == content["type"]) {
            Some(existing) => existing["payload"] = content,
            None => {
                all.retain(|p| !is_here(p));
                all.push(json!({
                    "id": Uuid::new_v4(), "parentCondition": condition["id"], "decisionPoint": point["id"],
                    "payload": content,
                }));
            }
        }
    }
    raw["conditionPayloads"] = Value::Array(all);
}

/// Removes the payloads of conditions and points that no longer exist, since the server answers 500 to
/// such references. The list itself is always written, since `PUT` requires it.
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

/// Returns the present object with that id, or an empty one.
fn existing_object(old: &[Value], id: &str) -> Map<String, Value> {
    old.iter().find(|item| item["id"] == id).and_then(Value::as_object).cloned().unwrap_or_default()
}
