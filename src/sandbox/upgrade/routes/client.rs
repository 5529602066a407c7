//! The API calls of client applications: users, assignments, visits and metrics.
//!
//! Version 6 of these calls passes the user in a header, version 5 in the body.

use serde::Serialize;
use serde_json::{Value, json};

use super::{Call, checked};
use crate::upgrade::{
    assign,
    failure::{Failure, Outcome},
    seed, validate, wire,
    world::{Stamp, State, User, Visit, World, fresh_id},
};

/// Returns true if the call uses version 5, with the user in the body.
fn is_v5(call: &Call) -> bool {
    call.segments.first().is_some_and(|version| version == "v5")
}

/// Returns the user on whose behalf the call is made. `field` is the field of the body that
/// contains the user in version 5. All calls except `init` require a known user.
fn user(world: &World, call: &Call, field: &str) -> Result<String, Failure> {
    if is_v5(call) {
        checked(&validate::texts(&call.body, &[field]))?;
        let name = call.text(field).unwrap_or_default();
        let user = world.original(name);
        return if world.users.contains_key(&user) { Ok(user) } else { Err(Failure::unknown_user_v5(name)) };
    }
    let name = call.user_id.as_deref().filter(|name| !name.is_empty()).ok_or_else(Failure::no_user)?;
    let user = world.original(name);
    if world.users.contains_key(&user) { Ok(user) } else { Err(Failure::unknown_user(name)) }
}

/// `POST init`: creates a user, or replaces an existing user's fields with those in the request.
pub(crate) fn init(world: &mut World, call: &Call) -> Outcome {
    let name = if is_v5(call) {
        checked(&validate::texts(&call.body, &["id"]))?;
        call.text("id")
    } else {
        Some(call.user_id.as_deref().filter(|name| !name.is_empty()).ok_or_else(Failure::no_user)?)
    };
    checked(&validate::groups(&call.body, !is_v5(call)))?;
    let id = world.original(name.unwrap_or_default());
    let now = world.now;
    let is_new = !world.users.contains_key(&id);
    let user = world.users.entry(id.clone()).or_insert_with(|| User {
        stamp: Stamp::new(now),
        group: None,
        working_group: None,
    });
    let changed = put_groups(user, &call.body);
    if changed && !is_new {
        user.stamp.touch(now);
    }
    let answer = wire::user(&id, user);
    if changed || is_new {
        world.changed();
    }
    Ok(answer)
}

/// Replaces the user's group maps with those in the request. Returns true if any of them changed.
fn put_groups(user: &mut User, body: &Value) -> bool {
    let before = (user.group.clone(), user.working_group.clone());
    if let Ok(Some(group)) = serde_json::from_value(body["group"].clone()) {
        user.group = Some(group);
    }
    if let Ok(Some(working)) = serde_json::from_value(body["workingGroup"].clone()) {
        user.working_group = Some(working);
    }
    before != (user.group.clone(), user.working_group.clone())
}

fn change_groups(world: &mut World, call: &Call, field: &str) -> Outcome {
    let id = user(world, call, "id")?;
    let violations =
        if field == "group" { validate::groups(&call.body, false) } else { validate::working_group(&call.body) };
    checked(&violations)?;
    let now = world.now;
    let mut answer = json!({ "id": id });
    if !call.body[field].is_null() {
        answer[field] = call.body[field].clone();
    }
    let sent = json!({ field: call.body[field] });
    if let Some(user) = world.users.get_mut(&id)
        && put_groups(user, &sent)
    {
        user.stamp.touch(now);
        world.changed();
    }
    Ok(answer)
}

/// `PATCH groupmembership`
pub(crate) fn group_membership(world: &mut World, call: &Call) -> Outcome {
    change_groups(world, call, "group")
}

/// `PATCH workinggroup`
pub(crate) fn working_group(world: &mut World, call: &Call) -> Outcome {
    change_groups(world, call, "workingGroup")
}

/// A user as quoted in an error message, in which the fields have this order.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RootUser<'a> {
    created_at: &'a str,
    updated_at: &'a str,
    version_number: u32,
    id: &'a str,
    group: Value,
    working_group: Value,
    original_user: (),
}

/// `PATCH useraliases`
pub(crate) fn aliases(world: &mut World, call: &Call) -> Outcome {
    let id = user(world, call, "userId")?;
    checked(&validate::text_lists(&call.body, &["aliases"]))?;
    let sent: Vec<&str> = call.body["aliases"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let known: Vec<RootUser<'_>> = sent
        .iter()
        .filter_map(|alias| {
            let User { stamp, group, working_group } = world.users.get(*alias)?;
            Some(RootUser {
                created_at: &stamp.created_at,
                updated_at: &stamp.updated_at,
                version_number: stamp.version_number,
                id: alias,
                group: json!(group),
                working_group: json!(working_group),
                original_user: (),
            })
        })
        .collect();
    if !known.is_empty() {
        let known_users = serde_json::to_string_pretty(&known).expect("JSON always prints");
        let message =
            format!("Users with ids {known_users} are root user and should not be converted to an alias of {id}");
        return Err(Failure::error(500, message, Some("Query Failed")));
    }
    for alias in &sent {
        world.aliases.insert((*alias).to_owned(), id.clone());
    }
    world.changed();
    Ok(json!({ "userId": id, "aliases": sent }))
}

/// `POST assign`: returns the user's assignments. It does not enrol the user.
pub(crate) fn assign(world: &mut World, call: &Call) -> Outcome {
    let user = user(world, call, "userId")?;
    checked(&validate::texts(&call.body, &["context"]))?;
    let context = call.text("context").unwrap_or_default();
    if !seed::knows_context(context) {
        return Err(Failure::unknown_client_context(context));
    }
    Ok(json!(assign::entries(world, context, &user)))
}

/// `POST mark`: records a visit and enrols the user.
pub(crate) fn mark(world: &mut World, call: &Call) -> Outcome {
    let user = user(world, call, "userId")?;
    checked(&validate::mark(&call.body))?;
    let data = &call.body["data"];
    let (site, target) = (data["site"].as_str().unwrap_or_default(), data["target"].as_str().unwrap_or_default());
    let assigned = &data["assignedCondition"];
    let code = assigned["conditionCode"].as_str();

    let owner = match assigned["experimentId"].as_str() {
        Some(id) => {
            let owners = assign::owners(world, site, target, &user);
            let owner = owners.iter().copied().find(|experiment| experiment.row.id == id);
            if owner.is_none() && !owners.is_empty() {
                let message =
                    format!("Experiment ID not provided for shared Decision Point in markExperimentPoint: {user}");
                return Err(Failure::error(404, message, Some("Query Failed")));
            }
            owner
        }
        None => assign::owner_of_point(world, site, target, &user),
    };
    if let (Some(experiment), Some(code)) = (owner, code) {
        let known = experiment.conditions.iter().any(|condition| condition.condition_code == code)
            || experiment.payloads.iter().any(|payload| payload.payload["value"] == code);
        if !known {
            let message = format!("Condition not found: {code}");
            return Err(Failure::error(500, message, Some("Condition not found")));
        }
    }
    let found = owner.map(|experiment| {
        let point = experiment.point_at(site, Some(target)).map(|point| point.id.clone());
        (experiment.row.id.clone(), point.unwrap_or_default())
    });
    let answer = visit(world, &user, (site, target), found.as_ref().map(|(id, _)| id.clone()), code);
    if let Some((id, point)) = found {
        let applied = call.text("status") != Some("condition not applied");
        assign::enrol(world, &id, &point, &user, applied);
        let live = [State::Enrolling, State::EnrollmentComplete];
        if world.experiment(&id).is_some_and(|experiment| live.contains(&experiment.row.state)) {
            assign::end_if_enough(world, &id);
        }
    }
    Ok(answer)
}

/// Records a visit. There is one record for each user and decision point, which keeps the first
/// condition code that was marked.
fn visit(world: &mut World, user: &str, at: (&str, &str), experiment: Option<String>, code: Option<&str>) -> Value {
    let (site, target) = at;
    world.changed();
    let known =
        world.visits.iter().position(|visit| visit.user == user && visit.site == site && visit.target == target);
    let known = known.unwrap_or_else(|| {
        world.visits.push(Visit {
            id: fresh_id(),
            user: user.to_owned(),
            site: site.to_owned(),
            target: target.to_owned(),
            experiment: None,
            condition: None,
            marks: 0,
        });
        world.visits.len() - 1
    });
    let visit = &mut world.visits[known];
    visit.experiment = experiment.or_else(|| visit.experiment.take());
    visit.condition = visit.condition.take().or_else(|| code.map(str::to_owned));
    visit.marks += 1;
    json!({
        "id": visit.id, "userId": user, "site": site, "target": target,
        "experimentId": visit.experiment, "condition": visit.condition,
    })
}

/// `POST log`: stores the metrics that an experiment queries.
pub(crate) fn log(world: &mut World, call: &Call) -> Outcome {
    let user = user(world, call, "userId")?;
    checked(&validate::metrics(&call.body))?;
    let queried = |key: &str| {
        let queries = world.experiments.iter().flat_map(|experiment| &experiment.queries);
        queries.into_iter().map(|query| &query["metric"]).find(|metric| metric["key"] == key).cloned()
    };
    let mut kept = Vec::new();
    for entry in call.body["value"].as_array().into_iter().flatten() {
        let attributes = entry["metrics"]["attributes"].as_object().into_iter().flatten();
        let wanted: Vec<_> =
            attributes.filter_map(|(key, value)| Some((key.clone(), value.clone(), queried(key)?))).collect();
        if !wanted.is_empty() {
            let data: serde_json::Map<_, _> =
                wanted.iter().map(|(key, value, _)| (key.clone(), value.clone())).collect();
            let metrics: Vec<_> = wanted.into_iter().map(|(_, _, metric)| metric).collect();
            kept.push(json!({
                "timeStamp": entry["timestamp"], "uniquifier": "1", "data": data, "metrics": metrics,
            }));
        }
    }
    let mut person = world.users.get(&user).map(|known| wire::stored_user(&user, known)).unwrap_or_default();
    person["requestedUserId"] = json!(call.user_id.as_deref().or(call.text("userId")));
    for entry in &mut kept {
        world.metric_logs += 1;
        entry["id"] = json!(world.metric_logs);
        entry["user"] = person.clone();
    }
    if !kept.is_empty() {
        world.changed();
    }
    Ok(json!(kept))
}
