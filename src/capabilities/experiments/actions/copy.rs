//! A copy of an experiment, or of a part of one: its design as the parameters of a new one, which the given parameters
//! override.
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
        experiment::{Condition, DecisionPoint, Payload, View},
        lists::Side,
    },
};

/// The parameter that names the experiment to copy.
pub(crate) const COPY_OF: &str = "copy_of";
/// The parameter that names the experiment whose conditions and weights are copied.
pub(crate) const CONDITIONS_OF: &str = "conditions_of";
/// The parameter that names the experiment whose decision points are copied.
pub(crate) const POINTS_OF: &str = "points_of";

/// Returns the parameters with the design of the experiment that [`COPY_OF`] names, and the parts of those that
/// [`CONDITIONS_OF`] and [`POINTS_OF`] name.
///
/// # Errors
///
/// A question for its name, or a refusal if it is not found or has parts that cannot be copied.
pub(super) async fn with_copied(client: &UpgradeClient, parameters: &Value) -> Result<Value, PrepareError> {
    let given = parameters.as_object().cloned().unwrap_or_default();
    let mut all = Map::new();
    if let Some(view) = original(client, &given, COPY_OF, "a copy").await? {
        all.extend(design(&view, &given)?);
    }
    if let Some(view) = original(client, &given, CONDITIONS_OF, "the conditions").await? {
        all.extend(conditions_alone(&view, &given));
    }
    if let Some(view) = original(client, &given, POINTS_OF, "the decision points").await? {
        all.extend(points_alone(&view, &given));
    }
    let names_original = |key: &str| [COPY_OF, CONDITIONS_OF, POINTS_OF].contains(&key);
    all.extend(given.into_iter().filter(|(key, value)| !names_original(key) && !value.is_null()));
    Ok(Value::Object(all))
}

/// Returns the experiment that a parameter names, if it is given. `what` is the part of it that is copied.
async fn original(
    client: &UpgradeClient,
    given: &Map<String, Value>,
    key: &str,
    what: &str,
) -> Result<Option<View>, PrepareError> {
    let Some(Value::String(asked)) = given.get(key) else { return Ok(None) };
    if asked.trim().is_empty() {
        let options = access::which_experiment(client).await.options;
        let question = match key {
            COPY_OF => "Which experiment should I copy?".to_owned(),
            _ => format!("From which experiment should I copy {what}?"),
        };
        return Err(Refusal::Missing(vec![missing(key, &question, options)]).into());
    }
    let request = |known: &str| match key {
        COPY_OF => format!("make a copy of {known}"),
        _ => format!("use {} as {known}", what.replacen("the", "the same", 1)),
    };
    Ok(Some(access::experiment(client, asked, request).await?.view))
}

fn is_given(given: &Map<String, Value>, key: &str) -> bool {
    given.get(key).is_some_and(|value| !value.is_null())
}

/// Returns the conditions of an experiment, and its context if none is given.
fn conditions_alone(view: &View, given: &Map<String, Value>) -> Map<String, Value> {
    let is_given = |key: &str| is_given(given, key);
    let factors = view.is_factorial() && !is_given("conditions") && !is_given("factors");
    let parts = [
        ("context", (!is_given("context")).then(|| json!(view.context()))),
        ("conditions", (!is_given("factors")).then(|| conditions(view, !is_given("weights")))),
        ("factors", factors.then(|| self::factors(view))),
    ];
    parts.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}

/// Returns the decision points of an experiment, and its context if none is given.
fn points_alone(view: &View, given: &Map<String, Value>) -> Map<String, Value> {
    let has_own = ["decision_points", "site", "target"].into_iter().any(|key| is_given(given, key));
    let parts = [
        ("context", (!is_given(given, "context")).then(|| json!(view.context()))),
        ("decision_points", (!has_own).then(|| points(view))),
    ];
    parts.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}

/// Returns the conditions, with their weights if they are wanted.
fn conditions(view: &View, with_weights: bool) -> Value {
    let condition = |condition: &Condition| match with_weights {
        true => json!({ "code": condition.condition_code, "weight": condition.assignment_weight }),
        false => json!({ "code": condition.condition_code }),
    };
    view.conditions.iter().map(condition).collect::<Vec<_>>().into()
}

/// Returns the decision points.
fn points(view: &View) -> Value {
    let point = |point: &DecisionPoint| {
        let target = point.target.clone().unwrap_or_default();
        json!({ "site": point.site, "target": target, "exclude_if_reached": point.exclude_if_reached })
    };
    view.decision_points.iter().map(point).collect::<Vec<_>>().into()
}

/// Returns the design of an experiment as parameters. Parts that the given ones replace are left out.
fn design(view: &View, given: &Map<String, Value>) -> Result<Map<String, Value>, PrepareError> {
    let has_segments =
        Side::BOTH.into_iter().any(|side| view.lists(side).iter().any(|list| !list.sub_segments.is_empty()));
    if has_segments {
        return Err(access::refused(ErrorKind::Validation, refusals::segments_not_copied(&view.name)));
    }
    let is_given = |key: &str| is_given(given, key);
    let other_context = given.get("context").and_then(Value::as_str).is_some_and(|context| context != view.context());
    let text = |text: &str| (!text.is_empty()).then(|| json!(text));
    let count = |count: Option<u64>| count.map(Value::from);
    let is_factorial = view.is_factorial();
    let in_context = !other_context;
    let has_own_point = ["decision_points", "site", "target", POINTS_OF].into_iter().any(is_given);
    let has_own_conditions = ["conditions", "factors", CONDITIONS_OF].into_iter().any(is_given);
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
        ("decision_points", (in_context && !has_own_point && !view.decision_points.is_empty()).then(|| points(view))),
        (
            "conditions",
            (!has_own_conditions && !view.conditions.is_empty()).then(|| conditions(view, !is_given("weights"))),
        ),
        ("factors", (is_factorial && !is_given("conditions") && !is_given(CONDITIONS_OF)).then(|| factors(view))),
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
        Experiment::from_value(&raw).unwrap().view
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
    fn parts_are_copied_with_the_context_that_they_belong_to() {
        let copied = conditions_alone(&view(), &Map::new());
        assert_eq!(copied["conditions"][1], json!({ "code": "variant", "weight": 60.0 }));
        assert_eq!(copied["context"], "assign-prog");
        assert_eq!(points_alone(&view(), &Map::new())["decision_points"][0]["target"], "area_model");
        let given =
            Map::from_iter([("context".to_owned(), json!("mathstream")), ("weights".to_owned(), json!("50/50"))]);
        assert_eq!(conditions_alone(&view(), &given).get("context"), None);
        assert_eq!(conditions_alone(&view(), &given)["conditions"][0], json!({ "code": "control" }));
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
