//! `PUT /experiments/{id}`: replaces an experiment.
//!
//! No request is refused because of the status. The answer is the body of the request; as in the
//! platform's database layer, columns of the row are added only if the row changed. Lists are
//! ignored since 6.3 and replaced before.

use serde_json::{Value, json};

use super::{Call, checked, create, experiments};
use crate::upgrade::{
    Version,
    failure::{Failure, Outcome},
    validate, wire,
    world::{Condition, Experiment, List, Payload, Point, Stamp, World, fresh_id, is_id},
};

/// `PUT /experiments/{id}`
pub(crate) fn update(world: &mut World, call: &Call) -> Outcome {
    let body = &call.body;
    checked(&validate::experiment(body, world.version))?;
    let id = call.id()?.to_owned();
    experiments::check_meaning(body)?;
    let Some(before) = world.experiment(&id).cloned() else {
        return Err(Failure::unhandled_exception("Cannot read properties of undefined (reading 'state')"));
    };
    let mut row_body = body.clone();
    row_body["id"] = json!(id);
    experiments::check_row(world, &row_body)?;
    if !body["conditionPayloads"].is_array() {
        return Err(Failure::unhandled_exception("Cannot read properties of undefined (reading 'reduce')"));
    }

    let mut after = before.clone();
    let changed = replace_row(world, body, &mut after);
    after.conditions = read_conditions(world, body, &before)?;
    after.points = read_points(world, body, &before)?;
    after.payloads = read_payloads(world, body, &before, &after);
    replace_lists(world, body, &before, &mut after);
    let answer = answer(world, body, &after, changed);

    let (to, name) = (after.row.state, after.row.name.clone());
    if let Some(kept) = world.experiment_mut(&id) {
        after.row.state = before.row.state;
        *kept = after;
    }
    world.log("experimentUpdated", json!({ "experimentId": id, "experimentName": name }));
    if to != before.row.state {
        // The row's version was increased above; the change of status must not increase it again.
        let version = world.experiment(&id).map(|kept| kept.row.stamp.clone());
        world.change_state(&id, to);
        if let (Some(kept), Some(stamp)) = (world.experiment_mut(&id), version) {
            kept.row.stamp = stamp;
        }
    }
    Ok(answer)
}

/// Overwrites the stored columns with those in the body. Returns true if any of them changed.
fn replace_row(world: &World, body: &Value, after: &mut Experiment) -> bool {
    let sent = create::read_row(world, body, &after.row.id, after.row.stamp.clone());
    let mut merged = wire::stored_row(&after.row);
    let stored = merged.clone();
    let incoming = wire::stored_row(&sent);
    for (name, value) in incoming.as_object().into_iter().flatten() {
        if !body[name.as_str()].is_null() || body.as_object().is_some_and(|fields| fields.contains_key(name)) {
            merged[name] = value.clone();
        }
    }
    merged["id"] = json!(after.row.id);
    for kept in ["createdAt", "updatedAt", "versionNumber", "backendVersion"] {
        merged[kept] = stored[kept].clone();
    }
    if merged["context"][0] != stored["context"][0] {
        merged["filterMode"] = json!("excludeAll");
    }
    // Sent dates are compared as text with stored ones, so a body that was read back always counts as a change.
    let changed = merged != stored || body["createdAt"].is_string();
    let moved = merged["context"][0] != stored["context"][0];
    after.row = serde_json::from_value(merged).expect("it has the fields of a row");
    if moved {
        after.inclusion.clear();
        after.exclusion.clear();
    }
    if changed {
        after.row.stamp.touch(world.now);
    }
    changed
}

fn insertion_failed() -> Failure {
    Failure::database("Error in creating conditions, decision points, queries \"updateExperimentInDB\"")
}

fn read_conditions(world: &World, body: &Value, before: &Experiment) -> Result<Vec<Condition>, Failure> {
    let mut conditions = Vec::new();
    for sent in create::array(body, "conditions") {
        let id = sent["id"].as_str().filter(|id| is_id(id)).ok_or_else(insertion_failed)?;
        let mut condition = create::read_condition(world, sent, id.to_owned(), &before.factors);
        if let Some(kept) = before.condition(id) {
            condition.stamp = kept.stamp.clone();
            condition.level_combination_elements.clone_from(&kept.level_combination_elements);
            if sent["twoCharacterId"].is_null() {
                condition.two_character_id.clone_from(&kept.two_character_id);
            }
        }
        conditions.push(condition);
    }
    Ok(conditions)
}

fn read_points(world: &World, body: &Value, before: &Experiment) -> Result<Vec<Point>, Failure> {
    let mut points = Vec::new();
    for sent in create::array(body, "partitions") {
        let id = sent["id"].as_str().filter(|id| is_id(id)).ok_or_else(insertion_failed)?;
        let mut point = create::read_point(world, sent, id.to_owned());
        if let Some(kept) = before.points.iter().find(|point| point.id == id) {
            point.stamp = kept.stamp.clone();
            if sent["description"].is_null() {
                point.description.clone_from(&kept.description);
            }
            if sent["twoCharacterId"].is_null() {
                point.two_character_id.clone_from(&kept.two_character_id);
            }
        } else if !sent["description"].is_string() {
            return Err(insertion_failed());
        }
        points.push(point);
    }
    Ok(points)
}

/// Reads the payloads in a body. A payload whose id is known keeps its type, whatever the body says. Since 6.3, one is
/// added for each pair of a condition and a point without a payload; its value is the code of the condition.
fn read_payloads(world: &World, body: &Value, before: &Experiment, after: &Experiment) -> Vec<Payload> {
    let has_pair = |condition: &str, point: &str| {
        after.condition(condition).is_some() && after.points.iter().any(|own| own.id == point)
    };
    let mut payloads = Vec::new();
    for sent in create::array(body, "conditionPayloads") {
        let text = |name: &str| sent[name].as_str().unwrap_or_default().to_owned();
        let (id, condition, point) = (text("id"), text("parentCondition"), text("decisionPoint"));
        if !has_pair(&condition, &point) {
            continue;
        }
        let kept = before.payloads.iter().find(|payload| payload.id == id);
        let mut payload = sent["payload"].clone();
        let code = |of: &Experiment| of.condition(&condition).map(|own| own.condition_code.clone());
        if kept.is_some() && code(before) != code(after) && payload["value"].as_str() == code(before).as_deref() {
            payload["value"] = json!(code(after));
        }
        if let Some(kept) = kept {
            payload["type"] = kept.payload["type"].clone();
        }
        payloads.push(Payload {
            stamp: kept.map_or_else(|| Stamp::new(world.now), |kept| kept.stamp.clone()),
            id: if is_id(&id) { id } else { fresh_id() },
            parent_condition: condition,
            decision_point: point,
            payload,
        });
    }
    if world.version == Version::V6_5 && after.row.kind != "Factorial" {
        for point in &after.points {
            for condition in &after.conditions {
                let there = |own: &Payload| own.parent_condition == condition.id && own.decision_point == point.id;
                if !payloads.iter().any(there) {
                    payloads.push(Payload {
                        stamp: Stamp::new(world.now),
                        id: fresh_id(),
                        parent_condition: condition.id.clone(),
                        decision_point: point.id.clone(),
                        payload: json!({ "type": "string", "value": condition.condition_code }),
                    });
                }
            }
        }
    }
    payloads
}

/// Replaces the members of both lists with those in the body, in the 6.2 line.
fn replace_lists(world: &World, body: &Value, before: &Experiment, after: &mut Experiment) {
    if world.version != Version::V6_2 {
        return;
    }
    let put = |lists: &mut Vec<List>, old: &[List], field: &str| {
        if let (Some(list), Some(kept)) = (lists.first_mut(), old.first()) {
            *list = kept.clone();
            (list.segment.users, list.segment.groups) = create::members(&body[field]["segment"]);
        }
    };
    put(&mut after.inclusion, &before.inclusion, "experimentSegmentInclusion");
    put(&mut after.exclusion, &before.exclusion, "experimentSegmentExclusion");
}

fn answer(world: &World, body: &Value, after: &Experiment, changed: bool) -> Value {
    let mut answer = body.clone();
    let shown = wire::row(&after.row, world.version);
    for (name, value) in shown.as_object().into_iter().flatten() {
        let nullable = ["startOn", "enrollmentCompleteCondition", "endOn", "revertTo", "group", "conditionOrder"];
        let stamp = ["updatedAt", "versionNumber"];
        let sent = answer.as_object().is_some_and(|fields| fields.contains_key(name));
        let added = changed && (nullable.contains(&name.as_str()) || stamp.contains(&name.as_str()));
        if name == "id" || sent || added {
            answer[name] = value.clone();
        }
    }
    let of_experiment = |mut value: Value| {
        value["experimentId"] = json!(after.row.id);
        value
    };
    answer["conditions"] = after.in_order().into_iter().map(wire::bare_condition).map(of_experiment).collect();
    answer["partitions"] = after.points.iter().map(|point| of_experiment(json!(point))).collect();
    answer["factors"] = json!(after.factors);
    answer["conditionPayloads"] = wire::payloads(after);
    answer["queries"] = json!(after.queries);
    answer["experimentSegmentInclusion"] = wire::lists(&after.inclusion, after, world, false);
    answer["experimentSegmentExclusion"] = wire::lists(&after.exclusion, after, world, false);
    answer
}
