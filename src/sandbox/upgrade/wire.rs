//! The formats of answers, in either version.
//!
//! There is one function for each format: an experiment looks different in `single`, in a page of a
//! search, after a change of status and in the raw row that a delete returns. Nothing here changes
//! the world.

use serde_json::{Value, json};

use super::{
    Version,
    world::{Condition, Experiment, List, Payload, Point, Row, Segment, StateLog, User, World},
};

fn to_json(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).expect("plain structs with text keys always serialize")
}

/// Returns the columns, with the stored status.
pub(crate) fn stored_row(row: &Row) -> Value {
    to_json(row)
}

/// Returns the columns, with the status as shown in answers.
pub(crate) fn row(row: &Row, version: Version) -> Value {
    let mut value = to_json(row);
    value["state"] = json!(row.state.shown(version));
    value
}

/// Returns the answer of a delete: the raw columns, in an array.
pub(crate) fn deleted(row: &Row) -> Value {
    let mut value = to_json(row);
    value["stratificationFactorStratificationFactorName"] = Value::Null;
    json!([value])
}

/// Returns a condition without the levels that it combines.
pub(crate) fn bare_condition(condition: &Condition) -> Value {
    let mut value = to_json(condition);
    if let Some(fields) = value.as_object_mut() {
        fields.remove("levelCombinationElements");
    }
    value
}

/// Returns the conditions of an experiment with their payloads.
pub(crate) fn conditions(experiment: &Experiment) -> Value {
    let factorial = experiment.row.kind == "Factorial";
    let shown = experiment.in_order().into_iter().map(|condition| {
        let mut value = to_json(condition);
        if !factorial {
            let own = experiment.payloads.iter().filter(|payload| payload.parent_condition == condition.id);
            value["conditionPayloads"] = own.map(payload_of_condition).collect();
        }
        value
    });
    shown.collect()
}

fn payload_of_condition(payload: &Payload) -> Value {
    let mut value = to_json(&payload.stamp);
    value["id"] = json!(payload.id);
    value["payloadValue"] = payload.payload["value"].clone();
    value["payloadType"] = payload.payload["type"].clone();
    value
}

/// Returns the decision points of an experiment.
pub(crate) fn points(experiment: &Experiment) -> Value {
    let factorial = experiment.row.kind == "Factorial";
    let mut points: Vec<&Point> = experiment.points.iter().collect();
    points.sort_by_key(|point| point.order);
    let shown = points.into_iter().map(|point| {
        let mut value = to_json(point);
        if factorial {
            value["conditionPayloads"] = json!([]);
        }
        value
    });
    shown.collect()
}

/// Returns the payloads as a flat list.
pub(crate) fn payloads(experiment: &Experiment) -> Value {
    to_json(&experiment.payloads)
}

/// Returns a change of status, with the names of a version, or with stored names for `None`.
pub(crate) fn log(log: &StateLog, version: Option<Version>) -> Value {
    let mut value = to_json(log);
    if let Some(version) = version {
        value["fromState"] = json!(log.from_state.shown(version));
        value["toState"] = json!(log.to_state.shown(version));
    }
    value
}

/// Returns all changes of status.
pub(crate) fn logs(experiment: &Experiment, version: Option<Version>) -> Value {
    experiment.logs.iter().map(|entry| log(entry, version)).collect()
}

/// Returns a segment with its members.
pub(crate) fn segment(segment: &Segment, world: &World) -> Value {
    let mut value = bare_segment(segment);
    let member = |own: Value| {
        let mut member = to_json(&segment.stamp);
        member["segmentId"] = json!(segment.id);
        for (key, part) in own.as_object().into_iter().flatten() {
            member[key] = part.clone();
        }
        member
    };
    value["individualForSegment"] = segment.users.iter().map(|user| member(json!({ "userId": user }))).collect();
    value["groupForSegment"] =
        segment.groups.iter().map(|(kind, id)| member(json!({ "type": kind, "groupId": id }))).collect();
    let parts = segment.sub_segments.iter().filter_map(|id| world.segments.iter().find(|part| part.id == *id));
    value["subSegments"] = parts.map(bare_segment).collect();
    value
}

/// Returns a segment without its members.
pub(crate) fn bare_segment(segment: &Segment) -> Value {
    let mut value = to_json(segment);
    if let Some(fields) = value.as_object_mut() {
        for members in ["users", "groups", "subSegments"] {
            fields.remove(members);
        }
    }
    value
}

/// Returns a list of an experiment, with or without its segment.
fn link(list: &List, experiment: &Experiment, world: Option<&World>) -> Value {
    let mut value = to_json(&list.stamp);
    value["segmentId"] = json!(list.segment.id);
    value["experimentId"] = json!(experiment.row.id);
    if let Some(world) = world {
        value["segment"] = segment(&list.segment, world);
    }
    value
}

/// Returns the answer of the list endpoints: the list with the raw row of its experiment.
pub(crate) fn list_answer(list: &List, experiment: &Experiment, world: &World) -> Value {
    let mut value = link(list, experiment, Some(world));
    value["experiment"] = stored_row(&experiment.row);
    value
}

/// Returns the lists of one kind: an array since 6.3, a single object before.
pub(crate) fn lists(lists: &[List], experiment: &Experiment, world: &World, with_irregular: bool) -> Value {
    if world.version == Version::V6_2 {
        return lists.first().map_or(Value::Null, |list| link(list, experiment, Some(world)));
    }
    let shown = lists.iter().filter(|list| with_irregular || is_regular(&list.segment));
    shown.map(|list| link(list, experiment, Some(world))).collect()
}

/// Returns true if `single` can show the list. It hides lists of other kinds.
fn is_regular(segment: &Segment) -> bool {
    let kinds = usize::from(!segment.users.is_empty())
        + usize::from(!segment.sub_segments.is_empty())
        + usize::from(!segment.groups.is_empty());
    segment.list_type.is_some() || (kinds == 1 && segment.groups.iter().all(|(kind, _)| kind != "All"))
}

/// Returns the answer of `single`.
pub(crate) fn single(experiment: &Experiment, world: &World) -> Value {
    let mut value = full(experiment, world, false);
    let factor = experiment.stratification_factor.as_ref();
    value["stratificationFactor"] = factor.map_or(Value::Null, |name| json!({ "stratificationFactorName": name }));
    value
}

/// Returns one entry of the list of all experiments.
pub(crate) fn of_all(experiment: &Experiment, world: &World) -> Value {
    full(experiment, world, true)
}

fn full(experiment: &Experiment, world: &World, with_irregular_lists: bool) -> Value {
    let mut value = row(&experiment.row, world.version);
    value["conditions"] = conditions(experiment);
    value["partitions"] = points(experiment);
    value["factors"] = json!(experiment.factors);
    value["queries"] = json!(experiment.queries);
    value["stateTimeLogs"] = logs(experiment, Some(world.version));
    value["experimentSegmentInclusion"] = lists(&experiment.inclusion, experiment, world, with_irregular_lists);
    value["experimentSegmentExclusion"] = lists(&experiment.exclusion, experiment, world, with_irregular_lists);
    value["conditionPayloads"] = payloads(experiment);
    value
}

/// Returns one node of a search.
pub(crate) fn node(experiment: &Experiment, world: &World) -> Value {
    if world.version == Version::V6_2 {
        let mut value = single(experiment, world);
        if let Some(fields) = value.as_object_mut() {
            fields.remove("stateTimeLogs");
        }
        return value;
    }
    let mut value = row(&experiment.row, world.version);
    value["partitions"] = points(experiment);
    value["experimentSegmentInclusion"] =
        experiment.inclusion.iter().map(|list| link(list, experiment, None)).collect();
    // In recorded pages the log is empty, even for an experiment with log entries.
    value["stateTimeLogs"] = json!([]);
    value
}

/// Returns the answer to a change of status: the previous row with the new status. The newest log
/// entry contains the previous experiment.
pub(crate) fn state_changed(before: &Experiment, after: &Experiment, version: Version) -> Value {
    let decorate = |mut value: Value, logs: Value| {
        value["stateTimeLogs"] = logs;
        value["partitions"] = points(before);
        value["queries"] = json!(before.queries);
        value
    };
    let mut shown = row(&before.row, version);
    shown["state"] = json!(after.row.state.shown(version));
    shown["startOn"] = json!(after.row.start_on);
    let mut shown_logs = logs(after, Some(version));
    if let Some(newest) = shown_logs.as_array_mut().and_then(|shown_logs| shown_logs.last_mut()) {
        newest["experiment"] = decorate(stored_row(&before.row), logs(before, None));
    }
    decorate(shown, shown_logs)
}

/// Returns the design in the format of an export, with stored names.
pub(crate) fn exported(experiment: &Experiment, world: &World) -> Value {
    let mut value = single(experiment, world);
    value["state"] = json!(experiment.row.state.stored());
    value["stateTimeLogs"] = logs(experiment, None);
    value
}

/// Returns a user in the format of `init`.
pub(crate) fn user(id: &str, user: &User) -> Value {
    let mut value = json!({ "id": id });
    if let Some(group) = &user.group {
        value["group"] = json!(group);
    }
    if let Some(working) = &user.working_group {
        value["workingGroup"] = json!(working);
    }
    value
}

/// Returns a user in the format of the database.
pub(crate) fn stored_user(id: &str, user: &User) -> Value {
    let mut value = to_json(user);
    value["id"] = json!(id);
    value
}
