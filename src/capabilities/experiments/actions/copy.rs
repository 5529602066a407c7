//! A copy of an experiment: its design as the parameters of a new one, which the given parameters override.
//!
//! The start, the end date and the status are not copied. What depends on the context is left out if another one is given.

use countersign_graph::action::{ErrorKind, PrepareError, Refusal};
use serde_json::{Map, Value, json};

use super::missing;
use crate::{
    access,
    replies::refusals,
    summary::post_rule,
    upgrade::{
        client::UpgradeClient,
        experiment::{Payload, View},
        lists::Side,
    },
};

/// The parameter that names the experiment to copy.
pub(crate) const COPY_OF: &str = "copy_of";

/// Returns the parameters with the design of the experiment that [`COPY_OF`] names, if it names one.
///
/// # Errors
///
/// A question for its name, or a refusal if it is not found or has parts that cannot be copied.
pub(super) async fn with_copied(client: &UpgradeClient, parameters: &Value) -> Result<Value, PrepareError> {
    let Some(Value::String(asked)) = parameters.get(COPY_OF) else { return Ok(parameters.clone()) };
    if asked.trim().is_empty() {
        let options = access::which_experiment(client).await.options;
        return Err(Refusal::Missing(vec![missing(COPY_OF, "Which experiment should I copy?", options)]).into());
    }
    let view = access::experiment(client, asked, |known| format!("make a copy of {known}")).await?.view;
    let given = parameters.as_object().cloned().unwrap_or_default();
    let mut all = design(&view, &given)?;
    all.extend(given.into_iter().filter(|(key, value)| key != COPY_OF && !value.is_null()));
    Ok(Value::Object(all))
}

/// Returns the design of an experiment as parameters. Parts that the given ones replace are left out.
fn design(view: &View, given: &Map<String, Value>) -> Result<Map<String, Value>, PrepareError> {
    let has_segments =
        Side::BOTH.into_iter().any(|side| view.lists(side).iter().any(|list| !list.sub_segments.is_empty()));
    if has_segments {
        return Err(access::refused(ErrorKind::Validation, refusals::segments_not_copied(&view.name)));
    }
    let is_given = |key: &str| given.get(key).is_some_and(|value| !value.is_null());
    let other_context = given.get("context").and_then(Value::as_str).is_some_and(|context| context != view.context());
    let text = |text: &str| (!text.is_empty()).then(|| json!(text));
    let count = |count: Option<u64>| count.map(Value::from);
    let conditions = || {
        let condition = |condition: &crate::upgrade::experiment::Condition| match is_given("weights") {
            true => json!({ "code": condition.condition_code }),
            false => json!({ "code": condition.condition_code, "weight": condition.assignment_weight }),
        };
        view.conditions.iter().map(condition).collect::<Vec<_>>()
    };
    let points = || {
        let point = |point: &crate::upgrade::experiment::DecisionPoint| json!({ "site": point.site, "target": point.target.clone().unwrap_or_default(), "exclude_if_reached": point.exclude_if_reached });
        view.decision_points.iter().map(point).collect::<Vec<_>>()
    };
    let is_factorial = view.is_factorial();
    let in_context = !other_context;
    let has_own_point = is_given("decision_points") || is_given("site") || is_given("target");
    let has_own_conditions = is_given("conditions") || is_given("factors");
    let has_payloads =
        in_context && !is_factorial && !has_own_conditions && !has_own_point && !view.payloads.is_empty();
    let members = |side| {
        let lists = view.lists(side);
        let users = lists.iter().flat_map(|list| list.users.iter().cloned());
        let groups = lists.iter().flat_map(|list| list.groups.iter().map(|(kind, id)| format!("{kind}:{id}")));
        let all: Vec<String> = users.chain(groups).collect();
        (!all.is_empty()).then(|| json!(all))
    };
    let stratified = view.stratification_factor.as_ref().map(|factor| factor.stratification_factor_name.clone());
    let parts = [
        ("description", text(&view.description)),
        ("context", text(view.context())),
        (
            "decision_points",
            (in_context && !has_own_point && !view.decision_points.is_empty()).then(|| json!(points())),
        ),
        ("conditions", (!has_own_conditions && !view.conditions.is_empty()).then(|| json!(conditions()))),
        ("factors", (is_factorial && !is_given("conditions")).then(|| factors(view))),
        ("payloads", has_payloads.then(|| payloads(view))),
        ("unit", text(&view.assignment_unit)),
        ("group", view.group.as_deref().filter(|_| in_context && !is_given("unit")).and_then(text)),
        ("consistency", view.consistency_rule.as_deref().filter(|_| !is_given("unit")).and_then(text)),
        ("condition_order", view.condition_order.as_deref().filter(|_| !is_given("unit")).and_then(text)),
        ("algorithm", view.assignment_algorithm.as_deref().filter(|_| in_context).and_then(text)),
        ("stratification_factor", stratified.filter(|_| in_context).map(Value::from)),
        ("post_rule", text(&post_rule(view)).filter(|_| !has_own_conditions || view.post_experiment_rule != "assign")),
        ("ends_after_users", count(view.ending.user_count)),
        ("ends_after_groups", count(view.ending.group_count)),
        ("filter_mode", text(&view.filter_mode)),
        ("inclusion", members(Side::Inclusion)),
        ("exclusion", members(Side::Exclusion)),
        ("tags", (!view.tags.is_empty()).then(|| json!(view.tags))),
    ];
    Ok(parts.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect())
}

/// Returns the factors with their levels.
fn factors(view: &View) -> Value {
    let level = |level: &crate::upgrade::experiment::Level| {
        let payload = level.payload.as_ref();
        json!({ "name": level.name, "payload": payload.map(|content| &content.value), "type": payload.map(|content| &content.kind) })
    };
    let factor = |factor: &crate::upgrade::experiment::Factor| json!({ "name": factor.name, "levels": factor.levels.iter().map(level).collect::<Vec<_>>() });
    view.factors.iter().map(factor).collect::<Vec<_>>().into()
}

/// Returns the payloads, each for its condition and decision point.
fn payloads(view: &View) -> Value {
    let payload = |payload: &Payload| {
        let condition = view.condition(&payload.parent_condition)?;
        let point = view.decision_points.iter().find(|point| point.id == payload.decision_point)?;
        Some(json!({
            "condition": condition.condition_code, "decision_point": point.words(), "type": payload.payload.kind,
            "value": payload.payload.value,
        }))
    };
    let is_own = |value: &Value| value["value"] != value["condition"];
    view.payloads.iter().filter_map(payload).filter(is_own).collect::<Vec<_>>().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upgrade::experiment::Experiment;

    fn view() -> View {
        let raw = json!({
            "id": "6bd2a7a8-9b4c-4b7b-a0f8-8f2ffdf1c3c1", "name": "Math Hints", "context": ["assign-prog"],
            "state": "enrolling", "assignmentUnit": "individual", "consistencyRule": "individual",
            "postExperimentRule": "continue", "filterMode": "includeAll", "tags": ["hints"],
            "conditions": [{ "id": "c1", "conditionCode": "control", "assignmentWeight": 40.0, "order": 1 },
                { "id": "c2", "conditionCode": "variant", "assignmentWeight": 60.0, "order": 2 }],
            "partitions": [{ "id": "p1", "site": "SelectSection", "target": "area_model", "order": 1 }],
        });
        Experiment::from_value(raw).unwrap().view
    }

    #[test]
    fn the_design_is_copied_but_not_the_status() {
        let copied = design(&view(), &Map::new()).unwrap_or_else(|_| panic!("it can be copied"));
        assert_eq!(copied["conditions"][1], json!({ "code": "variant", "weight": 60.0 }));
        assert_eq!(copied["decision_points"][0]["target"], "area_model");
        assert_eq!(copied["tags"], json!(["hints"]));
        assert!(!copied.contains_key("name") && !copied.contains_key("start_on"));
    }

    #[test]
    fn given_parts_replace_the_copied_ones() {
        let given =
            Map::from_iter([("weights".to_owned(), json!("50/50")), ("context".to_owned(), json!("mathstream"))]);
        let copied = design(&view(), &given).unwrap_or_else(|_| panic!("it can be copied"));
        assert_eq!(copied["conditions"][0], json!({ "code": "control" }));
        assert!(!copied.contains_key("decision_points"), "they belong to the other context");
    }
}
