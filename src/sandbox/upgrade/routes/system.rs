//! Health, version, audit log, and various calls that are not about experiments.

use serde_json::{Map, Value, json};

use super::{Call, checked, lists};
use crate::upgrade::{
    Version, assign,
    failure::{Failure, Outcome},
    seed, validate, wire,
    world::{Audit, Segment, Stamp, World, fresh_id},
};

/// `GET` of the prefix, `/api`.
pub(crate) fn health(world: &mut World, _: &Call) -> Outcome {
    let description = match world.version {
        Version::V6_5 => "Backend for the UpGrade A/B Testing Platform",
        Version::V6_2 => "Backend for A/B Testing Project",
    };
    Ok(json!({ "name": "A/B Testing Backend", "version": world.version.text(), "description": description }))
}

/// `GET /version`
pub(crate) fn version(world: &mut World, _: &Call) -> Outcome {
    Ok(json!(world.version.text()))
}

/// `POST /audit`: the audit log, newest first.
pub(crate) fn audit(world: &mut World, call: &Call) -> Outcome {
    let count = |name: &str| usize::try_from(call.body[name].as_u64().unwrap_or_default()).unwrap_or(usize::MAX);
    let nodes: Vec<Value> = world.audit.iter().rev().skip(count("skip")).take(count("take")).map(audit_entry).collect();
    let mut answer = call.body.clone();
    answer["total"] = json!(world.audit.len());
    answer["nodes"] = json!(nodes);
    Ok(answer)
}

fn audit_entry(entry: &Audit) -> Value {
    let user = entry.by_system.then(|| {
        let mut user = json!({
            "email": "system@gmail.com", "firstName": "System", "lastName": "", "role": "admin",
            "imageUrl": "", "localTimeZone": null,
        });
        put_stamp(&mut user, &entry.stamp);
        user
    });
    let mut value = json!({ "id": entry.id, "type": entry.kind, "data": entry.data, "user": user });
    put_stamp(&mut value, &entry.stamp);
    value
}

fn put_stamp(value: &mut Value, stamp: &Stamp) {
    value["createdAt"] = json!(stamp.created_at);
    value["updatedAt"] = json!(stamp.updated_at);
    value["versionNumber"] = json!(stamp.version_number);
}

/// `POST /previewusers`: a test user who also sees experiments in preview.
pub(crate) fn preview_user(world: &mut World, call: &Call) -> Outcome {
    checked(&validate::texts(&call.body, &["id"]))?;
    let id = call.text("id").unwrap_or_default();
    world.preview_users.insert(id.to_owned());
    world.changed();
    let mut value = json!({ "id": id });
    put_stamp(&mut value, &Stamp::new(world.now));
    Ok(value)
}

/// `POST /batch-assign`: the assignments of many users at one point.
pub(crate) fn batch_assign(world: &mut World, call: &Call) -> Outcome {
    let mut found = validate::texts(&call.body, &["context", "site", "target"]);
    found.extend(validate::text_lists(&call.body, &["userIds"]));
    checked(&found)?;
    let mut answer = Map::new();
    for name in call.body["userIds"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        let user = world.original(name);
        let assignment = if world.users.contains_key(&user) {
            let entries = assign::entries(world, call.text("context").unwrap_or_default(), &user);
            let here = |entry: &Value| entry["site"] == call.body["site"] && entry["target"] == call.body["target"];
            entries.into_iter().find(here).unwrap_or(Value::Null)
        } else {
            json!("NOT_FOUND")
        };
        answer.insert(name.to_owned(), assignment);
    }
    Ok(Value::Object(answer))
}

/// `GET /segments/global`: the global segment of each context, created on the first call.
pub(crate) fn global_segments(world: &mut World, _: &Call) -> Outcome {
    for context in seed::contexts() {
        let exists = |own: &Segment| own.kind == "global_exclude" && own.context == context;
        if !world.segments.iter().any(exists) {
            let segment = Segment {
                stamp: Stamp::new(world.now),
                id: fresh_id(),
                name: "Global Exclude".to_owned(),
                description: Some("Globally excluded Users, Groups and Segments".to_owned()),
                list_type: None,
                context,
                kind: "global_exclude".to_owned(),
                tags: Value::Null,
                users: Vec::new(),
                groups: Vec::new(),
                sub_segments: Vec::new(),
            };
            world.segments.push(segment);
        }
    }
    let global = world.segments.iter().filter(|segment| segment.kind == "global_exclude").map(|segment| {
        let mut value = wire::segment(segment, world);
        value["status"] = json!("excluded");
        value
    });
    Ok(global.collect())
}

/// `GET /stratification`: the uploaded factors, with the experiments that use them. Uploads are not simulated, so no user
/// has a value.
pub(crate) fn stratification(world: &mut World, _: &Call) -> Outcome {
    let users_of = |factor: &String| {
        let users = world.experiments.iter().filter(|one| one.stratification_factor.as_ref() == Some(factor));
        users.map(|one| one.row.id.as_str()).collect::<Vec<_>>()
    };
    let factors = world.stratification_factors.iter();
    Ok(factors.map(|name| json!({ "factor": name, "factorValue": {}, "experimentIds": users_of(name) })).collect())
}

/// `POST /segments`: creates a segment, or replaces the one whose id is sent.
pub(crate) fn create_segment(world: &mut World, call: &Call) -> Outcome {
    checked(&validate::texts(&call.body, &["name", "context", "type"]))?;
    let sent = call.text("id").map(str::to_owned);
    let name = call.text("name").unwrap_or_default();
    let context = call.text("context").unwrap_or_default();
    let taken = |own: &&Segment| own.name == name && own.context == context && Some(&own.id) != sent.as_ref();
    if world.segments.iter().find(taken).is_some_and(|own| own.kind == "public") {
        return Err(Failure::segment_exists(name, context));
    }
    let segment = lists::read_segment(world, &call.body, sent.unwrap_or_else(fresh_id))
        .ok_or_else(|| Failure::invalid_body(&[]))?;
    let answer = wire::segment(&segment, world);
    world.segments.retain(|own| own.id != segment.id);
    world.segments.push(segment);
    world.changed();
    Ok(answer)
}
