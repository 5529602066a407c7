//! `POST /experiments`.
//!
//! The answer is the body of the request, including unknown fields, without the lists, and with the
//! fields that the server sets. Since 6.3 the ids of conditions and points in a request are
//! placeholders; the 6.2 line uses them.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::{Call, checked, experiments, lists};
use crate::upgrade::{
    Version,
    failure::{Failure, Outcome},
    seed, validate, wire,
    world::{
        Condition, Experiment, List, Payload, Point, Row, Segment, Stamp, State, StateLog, World, fresh_id,
        fresh_two_characters, is_id,
    },
};

/// `POST /experiments`
pub(crate) fn create(world: &mut World, call: &Call) -> Outcome {
    let body = &call.body;
    checked(&validate::experiment(body, world.version))?;
    check(world, body)?;

    let known = body["id"].as_str().and_then(|id| world.experiment(id)).cloned();
    let id = body["id"].as_str().map_or_else(fresh_id, str::to_owned);
    let added = build(world, body, &id, known.as_ref())?;
    let again = known.is_some();
    let answer = answer(body, &added, again);

    let name = added.row.name.clone();
    let lists = [("inclusion", added.inclusion.clone()), ("exclusion", added.exclusion.clone())];
    if let Some(kept) = world.experiment_mut(&id) {
        // A request with a known id overwrites the row and adds to the lists.
        kept.row = added.row;
        kept.conditions.extend(added.conditions);
        kept.points.extend(added.points);
        kept.payloads.extend(added.payloads);
        kept.inclusion.extend(added.inclusion);
        kept.exclusion.extend(added.exclusion);
    } else {
        world.experiments.push(added);
    }
    world.log("experimentCreated", json!({ "experimentId": id, "experimentName": name }));
    if world.version == Version::V6_5 {
        for (kind, lists) in lists {
            for list in lists {
                lists::log(world, &id, kind, &list, "created");
            }
        }
    }
    Ok(answer)
}

fn check(world: &World, body: &Value) -> Result<(), Failure> {
    if !body["moocletPolicyParameters"].is_null() || body["assignmentAlgorithm"] == "ts_configurable" {
        return Err(Failure::refused(
            "Failed to create Experiment: moocletPolicyParameters was provided but mooclets are not enabled on backend.",
        ));
    }
    experiments::check_meaning(body)?;
    experiments::check_row(world, body)?;
    let state = body["state"].as_str().unwrap_or_default();
    if stored_state(state).is_none() {
        return Err(Failure::database(format!("invalid input value for enum experiment_state_enum: \"{state}\"")));
    }
    if world.version == Version::V6_2 {
        check_old(world, body)?;
    }
    Ok(())
}

/// Checks the ids and lists of a body for the 6.2 line, which inserts the ids in the request and
/// expects a single object for the lists of each kind.
fn check_old(world: &World, body: &Value) -> Result<(), Failure> {
    if body["experimentSegmentInclusion"].is_array() || body["experimentSegmentExclusion"].is_array() {
        return Err(Failure::error(500, "Error in adding segment in DB", Some("Query Failed")));
    }
    let ids = || body["conditions"].as_array().into_iter().flatten().filter_map(|it| it["id"].as_str());
    if ids().any(|id| !is_id(id)) {
        return Err(Failure::condition_insert(body["conditions"].clone(), "22P02", None));
    }
    let known = |id: &&str| world.experiments.iter().any(|experiment| experiment.condition(id).is_some());
    if let Some(twice) = ids().find(known) {
        let detail = format!("Key (id)=({twice}) already exists.");
        return Err(Failure::condition_insert(body["conditions"].clone(), "23505", Some(detail)));
    }
    Ok(())
}

/// Returns the status with this stored name. Only stored names can be inserted.
fn stored_state(text: &str) -> Option<State> {
    State::read(text, Version::V6_2)
}

fn build(world: &World, body: &Value, id: &str, known: Option<&Experiment>) -> Result<Experiment, Failure> {
    let stamp = known.map_or_else(
        || Stamp::new(world.now),
        |known| {
            let mut stamp = known.row.stamp.clone();
            stamp.touch(world.now);
            stamp
        },
    );
    let mut row = read_row(world, body, id, stamp);
    if world.version == Version::V6_5 {
        "continue".clone_into(&mut row.post_experiment_rule);
    }
    let factors = read_factors(world, body);
    let mut ids = HashMap::new();
    let mut experiment = Experiment {
        row,
        conditions: Vec::new(),
        points: Vec::new(),
        payloads: Vec::new(),
        factors,
        stratification_factor: text(&body["stratificationFactor"], "stratificationFactorName"),
        queries: Vec::new(),
        logs: Vec::new(),
        inclusion: read_lists(world, body, "experimentSegmentInclusion", "Inclusion", id),
        exclusion: read_lists(world, body, "experimentSegmentExclusion", "Exclusion", id),
    };
    for (at, sent) in array(body, "conditions").enumerate() {
        let own = issue(world, sent, &mut ids);
        let mut condition = read_condition(world, sent, own, &experiment.factors);
        condition.order = i64::try_from(at).unwrap_or(i64::MAX - 1) + 1;
        experiment.conditions.push(condition);
    }
    for (at, sent) in array(body, "partitions").enumerate() {
        let own = issue(world, sent, &mut ids);
        let mut point = read_point(world, sent, own);
        point.order = i64::try_from(at).unwrap_or(i64::MAX - 1) + 1;
        experiment.points.push(point);
    }
    for sent in array(body, "conditionPayloads") {
        let named = |key: &str| sent[key].as_str().and_then(|id| ids.get(id)).cloned();
        let lost = |what: &str| {
            let payload = sent["id"].as_str().unwrap_or_default();
            Failure::error(500, format!("{what} not found for condition payload: {payload}"), None)
        };
        experiment.payloads.push(Payload {
            stamp: Stamp::new(world.now),
            id: fresh_id(),
            parent_condition: named("parentCondition").ok_or_else(|| lost("Parent condition"))?,
            decision_point: named("decisionPoint").ok_or_else(|| lost("Decision point"))?,
            payload: sent["payload"].clone(),
        });
    }
    experiment.queries = read_queries(world, body);
    if known.is_none() && experiment.row.state != State::Inactive {
        // An experiment created with another status is logged as changed from `inactive`.
        experiment.logs.push(StateLog::new(world.now, State::Inactive, experiment.row.state));
    }
    Ok(experiment)
}

/// Returns the id under which a condition or point is stored, and adds it to `ids` under its id in
/// the request.
fn issue(world: &World, sent: &Value, ids: &mut HashMap<String, String>) -> String {
    let placeholder = sent["id"].as_str().unwrap_or_default().to_owned();
    let own = if world.version == Version::V6_2 { placeholder.clone() } else { fresh_id() };
    ids.insert(placeholder, own.clone());
    own
}

/// Returns the items of a list in the body; none if there is no such list.
pub(crate) fn array<'a>(body: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    body[name].as_array().into_iter().flatten()
}

fn text(body: &Value, name: &str) -> Option<String> {
    body[name].as_str().map(str::to_owned)
}

fn texts(body: &Value, name: &str) -> Vec<String> {
    array(body, name).filter_map(|it| it.as_str().map(str::to_owned)).collect()
}

/// Reads the experiment's own columns from a body.
pub(crate) fn read_row(world: &World, body: &Value, id: &str, stamp: Stamp) -> Row {
    let required = |name: &str| text(body, name).unwrap_or_default();
    Row {
        stamp,
        id: id.to_owned(),
        name: required("name"),
        description: required("description"),
        context: texts(body, "context").iter().map(|context| context.to_lowercase()).collect(),
        state: State::read(&required("state"), world.version).unwrap_or(State::Inactive),
        start_on: text(body, "startOn"),
        consistency_rule: text(body, "consistencyRule"),
        assignment_unit: required("assignmentUnit"),
        post_experiment_rule: required("postExperimentRule"),
        enrollment_complete_condition: body["enrollmentCompleteCondition"].clone(),
        end_on: text(body, "endOn"),
        revert_to: text(body, "revertTo"),
        tags: texts(body, "tags"),
        group: text(body, "group"),
        condition_order: text(body, "conditionOrder"),
        assignment_algorithm: text(body, "assignmentAlgorithm").unwrap_or_else(|| "random".to_owned()),
        filter_mode: required("filterMode"),
        backend_version: world.version.text().to_owned(),
        kind: required("type"),
    }
}

/// Reads a condition. As in the platform's database, weights have single precision.
pub(crate) fn read_condition(world: &World, sent: &Value, id: String, factors: &[Value]) -> Condition {
    let elements = array(sent, "levelCombinationElements").map(|element| level_element(world, element, factors));
    Condition {
        stamp: Stamp::new(world.now),
        id,
        two_character_id: text(sent, "twoCharacterId").unwrap_or_else(fresh_two_characters),
        name: text(sent, "name"),
        description: text(sent, "description"),
        condition_code: text(sent, "conditionCode").unwrap_or_default(),
        assignment_weight: single_precision(sent["assignmentWeight"].as_f64().unwrap_or_default()),
        order: sent["order"].as_i64().unwrap_or_default(),
        level_combination_elements: elements.collect(),
    }
}

fn single_precision(weight: f64) -> f64 {
    #[expect(clippy::cast_possible_truncation, reason = "it simulates the platform's single precision")]
    let stored = weight as f32;
    stored.to_string().parse().unwrap_or(weight)
}

/// Reads a decision point.
pub(crate) fn read_point(world: &World, sent: &Value, id: String) -> Point {
    Point {
        stamp: Stamp::new(world.now),
        id,
        two_character_id: text(sent, "twoCharacterId").unwrap_or_else(fresh_two_characters),
        site: text(sent, "site").unwrap_or_default(),
        target: text(sent, "target"),
        description: text(sent, "description").unwrap_or_default(),
        order: sent["order"].as_i64().unwrap_or_default(),
        exclude_if_reached: sent["excludeIfReached"].as_bool().unwrap_or_default(),
    }
}

fn stamped(world: &World, mut value: Value) -> Value {
    value["createdAt"] = json!(world.now.to_string());
    value["updatedAt"] = json!(world.now.to_string());
    value["versionNumber"] = json!(1);
    value
}

fn read_factors(world: &World, body: &Value) -> Vec<Value> {
    let factors = array(body, "factors").map(|factor| {
        let levels = array(factor, "levels").map(|level| {
            stamped(
                world,
                json!({
                    "id": level["id"], "name": level["name"], "description": level["description"],
                    "order": level["order"], "payload": level["payload"],
                }),
            )
        });
        json!({
            "id": factor["id"], "name": factor["name"], "order": factor["order"],
            "description": factor["description"], "levels": levels.collect::<Vec<_>>(),
        })
    });
    factors.collect()
}

fn level_element(world: &World, element: &Value, factors: &[Value]) -> Value {
    let mut levels = factors.iter().flat_map(|factor| array(factor, "levels"));
    let named = levels.find(|level| level["id"] == element["level"]["id"]).cloned().unwrap_or_default();
    let level = stamped(
        world,
        json!({
            "id": named["id"], "name": named["name"], "description": named["description"], "order": named["order"],
            "payloadValue": named["payload"]["value"], "payloadType": named["payload"]["type"],
        }),
    );
    stamped(world, json!({ "id": element["id"], "level": level }))
}

/// Reads the queries on metrics that the server knows. Others are silently dropped.
fn read_queries(world: &World, body: &Value) -> Vec<Value> {
    let known = array(body, "queries").filter_map(|query| {
        let key = query["metric"]["key"].as_str()?;
        let metric = seed::metric(key)?;
        Some((query, metric))
    });
    let rows = known.enumerate().map(|(at, (query, metric))| {
        stamped(
            world,
            json!({
                "id": fresh_id(), "name": query["name"], "query": query["query"],
                "repeatedMeasure": query["repeatedMeasure"], "order": at + 1, "metric": stamped(world, metric),
            }),
        )
    });
    rows.collect()
}

/// Reads the lists in a body.
pub(crate) fn read_lists(world: &World, body: &Value, field: &str, what: &str, experiment: &str) -> Vec<List> {
    let context = body["context"][0].as_str().unwrap_or_default();
    let sent: Vec<&Value> = match &body[field] {
        Value::Array(lists) => lists.iter().collect(),
        list @ Value::Object(_) => vec![list],
        _ => Vec::new(),
    };
    let old = world.version == Version::V6_2;
    let lists = sent.into_iter().map(|list| {
        let segment = &list["segment"];
        let id = fresh_id();
        let plain = if old { format!("{experiment} {what} Segment") } else { format!("{id} Segment") };
        let described = if old { plain.clone() } else { String::new() };
        List {
            stamp: Stamp::new(world.now),
            segment: Segment {
                stamp: Stamp::new(world.now),
                name: text(segment, "name").unwrap_or(plain),
                description: Some(text(segment, "description").unwrap_or(described)),
                list_type: text(segment, "listType"),
                context: context.to_owned(),
                kind: text(segment, "type").unwrap_or_else(|| "private".to_owned()),
                tags: Value::Null,
                users: members(segment).0,
                groups: members(segment).1,
                sub_segments: array(segment, "subSegments").filter_map(|part| text(part, "id")).collect(),
                id,
            },
        }
    });
    lists.collect()
}

/// Returns the users and groups of a segment in the format of experiments.
pub(crate) fn members(segment: &Value) -> (Vec<String>, Vec<(String, String)>) {
    let users = array(segment, "individualForSegment").filter_map(|user| text(user, "userId")).collect();
    let groups = array(segment, "groupForSegment")
        .filter_map(|group| Some((text(group, "type")?, text(group, "groupId")?)))
        .collect();
    (users, groups)
}

fn answer(body: &Value, experiment: &Experiment, again: bool) -> Value {
    let mut answer = body.clone();
    let Some(fields) = answer.as_object_mut() else { return Value::Null };
    fields.retain(|name, _| !name.starts_with("experimentSegment"));
    let stored = wire::stored_row(&experiment.row);
    for (name, value) in stored.as_object().into_iter().flatten() {
        let left_out = again && (name == "createdAt" || name == "assignmentAlgorithm");
        if !left_out {
            fields.insert(name.clone(), value.clone());
        }
    }
    let factorial = experiment.row.kind == "Factorial";
    let conditions = experiment.conditions.iter().map(|condition| {
        let mut value = wire::bare_condition(condition);
        if factorial {
            value["levelCombinationElements"] = json!(condition.level_combination_elements);
        }
        value
    });
    fields.insert("conditions".to_owned(), conditions.collect());
    fields.insert("partitions".to_owned(), json!(experiment.points));
    fields.insert("factors".to_owned(), json!(experiment.factors));
    fields.insert("conditionPayloads".to_owned(), wire::payloads(experiment));
    let queries = experiment.queries.iter().map(|query| {
        let mut query = query.clone();
        query["experiment"] = stored.clone();
        query
    });
    fields.insert("queries".to_owned(), queries.collect());
    answer
}
