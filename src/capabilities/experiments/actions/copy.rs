//! A copy of an experiment, or of a part of one: its design as the parameters of a new one, which the given parameters
//! override.
//!
//! What people cannot give as parameters, such as the descriptions of conditions and the queries on metrics, is in
//! [`Copied`]. It is always read from the original, never from the parameters. What depends on the context is left out if
//! another one is given. The card names everything that is not copied ([`not_copied`]); the copy is inactive.

use countersign_core::{
    clock::Timestamp,
    reply::{Fact, Text},
};
use countersign_graph::action::PrepareError;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{
    access,
    inputs::PayloadsInput,
    summary::post_rule,
    upgrade::{
        client::UpgradeClient,
        context::ContextMetadata,
        experiment::{Condition, DecisionPoint, ExperimentId, Payload, Query, View},
        lists::{MemberList, SharedSegment, Side},
    },
};

/// The parameter that names the experiment to copy.
pub(crate) const COPY_OF: &str = "copy_of";
/// The parameter that names the experiment whose conditions and weights are copied.
pub(crate) const CONDITIONS_OF: &str = "conditions_of";
/// The parameter that names the experiment whose decision points are copied.
pub(crate) const POINTS_OF: &str = "points_of";

/// The operations of queries.
const OPERATIONS: [&str; 9] = ["sum", "avg", "median", "mode", "stddev", "min", "max", "count", "percentage"];

/// Returns the parameters with the design of the experiment that [`COPY_OF`] names, and the parts of those that
/// [`CONDITIONS_OF`] and [`POINTS_OF`] name; and the experiment of which a copy is made.
///
/// # Errors
///
/// A question for its name, or a refusal if it is not found.
pub(super) async fn with_copied(
    client: &UpgradeClient,
    parameters: &Value,
    now: Timestamp,
) -> Result<(Value, Option<View>), PrepareError> {
    let given = parameters.as_object().cloned().unwrap_or_default();
    let mut all = Map::new();
    let mut copied = original(client, &given, COPY_OF, "a copy").await?;
    if let Some(view) = &copied {
        all.extend(design(view, &given, now));
    } else if let Some(id) = parameters["copied"]["from"].as_str() {
        // The parameters of an earlier version of the card contain the design.
        copied = Some(access::experiment(client, id, |known| format!("make a copy of {known}")).await?.view);
    }
    if let Some(view) = original(client, &given, CONDITIONS_OF, "the conditions").await? {
        all.extend(conditions_alone(&view, &given));
    }
    if let Some(view) = original(client, &given, POINTS_OF, "the decision points").await? {
        all.extend(points_alone(&view, &given));
    }
    let payloads = all.remove("payloads");
    let names_original = |key: &str| [COPY_OF, CONDITIONS_OF, POINTS_OF, "copied"].contains(&key);
    all.extend(given.into_iter().filter(|(key, value)| !names_original(key) && !value.is_null()));
    if let Some(Value::Array(mut payloads)) = payloads {
        // A later payload takes the place of an earlier one for the same condition and point.
        let given = all.get("payloads").and_then(|given| PayloadsInput::deserialize(given).ok());
        payloads.extend(given.iter().flat_map(PayloadsInput::all).map(|payload| json!(payload)));
        all.insert("payloads".to_owned(), payloads.into());
    }
    Ok((Value::Object(all), copied))
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
        return Err(access::ask(key, question, options));
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

/// Returns true if the experiment is in the context of these parameters, or they name none.
fn is_in_context(view: &View, parameters: &Value) -> bool {
    let named = parameters["context"].as_str().or(parameters["context"][0].as_str());
    named.is_none_or(|context| context.trim().eq_ignore_ascii_case(view.context()))
}

/// Returns true for a moment in the platform's format that is after `now`.
fn is_future(moment: &str, now: Timestamp) -> bool {
    moment.parse::<jiff::Timestamp>().is_ok_and(|at| at.as_millisecond() > now.millis())
}

/// Returns the design of an experiment as parameters. Parts that the given ones replace are left out.
fn design(view: &View, given: &Map<String, Value>, now: Timestamp) -> Map<String, Value> {
    let is_given = |key: &str| is_given(given, key);
    let in_context = is_in_context(view, &Value::Object(given.clone()));
    let text = |text: &str| (!text.is_empty()).then(|| json!(text));
    let count = |count: Option<u64>| count.map(Value::from);
    let is_factorial = view.is_factorial();
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
        ("end_on", view.end_on.as_deref().filter(|end| is_future(end, now)).map(Value::from)),
        ("tags", (!view.tags.is_empty()).then(|| json!(view.tags))),
    ];
    parts.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}

/// Adds the words that an experiment uses to the vocabulary of its context, which need not have them all: what the original
/// has, its copy may have.
pub(super) fn add_words_of(view: &View, known: &mut ContextMetadata) {
    let add = |known: &mut Vec<String>, word: &str| {
        if !word.is_empty() && !known.iter().any(|other| other == word) {
            known.push(word.to_owned());
        }
    };
    view.conditions.iter().for_each(|condition| add(&mut known.conditions, &condition.condition_code));
    for point in &view.decision_points {
        add(&mut known.sites, &point.site);
        add(&mut known.targets, point.target.as_deref().unwrap_or_default());
    }
    let lists = Side::BOTH.into_iter().flat_map(|side| view.lists(side));
    let of_lists = lists.flat_map(|list| &list.groups).map(|(kind, _)| kind);
    view.group.iter().chain(of_lists).for_each(|kind| add(&mut known.group_types, kind));
}

/// Returns a note on the parts of an experiment that a copy with these parameters does not have; `None` if it has all.
pub(super) fn not_copied(view: &View, parameters: &Value) -> Option<Text> {
    let lacks = |key: &str| parameters[key].is_null();
    let in_context = is_in_context(view, parameters);
    let quoted = |names: Vec<&str>| names.iter().map(|name| format!("“{name}”")).collect::<Vec<_>>().join(", ");
    let segments = Side::BOTH.into_iter().flat_map(|side| view.lists(side)).flat_map(|list| &list.sub_segments);
    let segments: Vec<_> = segments.filter(|_| !in_context).map(|segment| segment.name.as_str()).collect();
    let queries = view.queries.iter().filter(|query| !in_context || !is_sendable(query));
    let queries: Vec<_> = queries.map(|query| query.name.as_str()).collect();
    let has_payloads = payloads(view).as_array().is_some_and(|own| !own.is_empty());
    let named_list =
        |list: &MemberList| !list.description.is_empty() || !(list.name.is_empty() || list.name.ends_with(" Segment"));
    let has_named_lists = Side::BOTH.into_iter().any(|side| view.lists(side).iter().any(named_list));
    let rule = post_rule(view);
    let factor = view.stratification_factor.as_ref().map(|factor| &factor.stratification_factor_name);
    let said = [
        (view.start_on.is_some() && lacks("start_on")).then(|| "its start date".to_owned()),
        (view.end_on.is_some() && lacks("end_on")).then(|| "its end date, which is past".to_owned()),
        (!in_context && !view.decision_points.is_empty()).then(|| "its decision points".to_owned()),
        (has_payloads && lacks("payloads")).then(|| "its payloads".to_owned()),
        (!queries.is_empty()).then(|| format!("the metric queries {}", quoted(queries))),
        (!segments.is_empty()).then(|| format!("the segments {}", quoted(segments))),
        has_named_lists.then(|| "the names and descriptions of its lists".to_owned()),
        factor.filter(|_| lacks("stratification_factor")).map(|factor| format!("stratification by {factor}")),
        (rule.starts_with("assign") && lacks("post_rule")).then(|| format!("its post-experiment rule ({rule})")),
        (view.context.len() > 1).then(|| format!("its other contexts ({})", view.context[1..].join(", "))),
    ];
    let said: Vec<_> = said.into_iter().flatten().map(Text::from).collect();
    (!said.is_empty()).then(|| Text::from("Not copied: ").join(Text::listed(said, "and")).plain("."))
}

/// Returns true if the platform takes the query. The operation and the value reach its database as they are, so only known
/// operations and plain values are sent.
fn is_sendable(query: &Query) -> bool {
    let value = match &query.query.compare_value {
        None => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    query.metric.is_some()
        && OPERATIONS.contains(&query.query.operation_type.as_str())
        && query.query.compare_fn.as_deref().is_none_or(|comparison| ["=", "<>"].contains(&comparison))
        && value.chars().all(|c| c.is_alphanumeric() || " _-.".contains(c))
}

/// Returns the items of a list in a request.
fn items<'a>(object: &'a mut Value, key: &str) -> impl Iterator<Item = &'a mut Value> + use<'a> {
    object.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten()
}

fn put(object: &mut Value, key: &str, words: &str) {
    if !words.is_empty() {
        object[key] = json!(words);
    }
}

/// The parts of a copy that people cannot give as parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Copied {
    /// The original.
    from: ExperimentId,
    /// The name and description of conditions, by code.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    conditions: Vec<(String, String, String)>,
    /// The descriptions of decision points, by site and target.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    points: Vec<(String, String, String)>,
    /// The descriptions of factors by name, and of levels by the names of factor and level.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    factors: Vec<(String, Option<String>, String)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    queries: Vec<Query>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    included_segments: Vec<SharedSegment>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    excluded_segments: Vec<SharedSegment>,
}

impl Copied {
    /// Returns these parts of an experiment, for a copy in this context.
    pub(super) fn of(view: &View, context: &str) -> Self {
        let in_context = context.eq_ignore_ascii_case(view.context());
        let conditions =
            view.conditions.iter().map(|c| (c.condition_code.clone(), c.name.clone(), c.description.clone()));
        let points = view.decision_points.iter();
        let points = points.map(|p| (p.site.clone(), p.target.clone().unwrap_or_default(), p.description.clone()));
        let factors = view.factors.iter().flat_map(|factor| {
            let levels = factor.levels.iter();
            let levels = levels.map(|level| (factor.name.clone(), Some(level.name.clone()), level.description.clone()));
            std::iter::once((factor.name.clone(), None, factor.description.clone())).chain(levels)
        });
        let segments = |side| {
            let all = view.lists(side).iter().flat_map(|list| list.sub_segments.iter().cloned());
            all.filter(|_| in_context).collect()
        };
        Self {
            from: view.id,
            conditions: conditions.filter(|(_, name, about)| !(name.is_empty() && about.is_empty())).collect(),
            points: points.filter(|(_, _, about)| !about.is_empty()).collect(),
            factors: factors.filter(|(_, _, about)| !about.is_empty()).collect(),
            queries: view.queries.iter().filter(|query| in_context && is_sendable(query)).cloned().collect(),
            included_segments: segments(Side::Inclusion),
            excluded_segments: segments(Side::Exclusion),
        }
    }

    /// Returns the shared segments on the lists of one side.
    pub(super) fn segments(&self, side: Side) -> &[SharedSegment] {
        match side {
            Side::Inclusion => &self.included_segments,
            Side::Exclusion => &self.excluded_segments,
        }
    }

    /// Returns true if the experiment has these queries.
    pub(super) fn has_queries_of(&self, view: &View) -> bool {
        let of = |queries: &[Query]| -> Vec<Query> {
            queries.iter().map(|query| Query { order: 0, ..query.clone() }).collect()
        };
        of(&self.queries) == of(&view.queries)
    }

    /// Writes these parts into the request that creates the copy, as far as it has the parts that they describe.
    pub(super) fn write(&self, body: &mut Value) {
        for condition in items(body, "conditions") {
            let code = condition["conditionCode"].clone();
            if let Some((_, name, about)) = self.conditions.iter().find(|(of, ..)| code == *of) {
                put(condition, "name", name);
                put(condition, "description", about);
            }
        }
        for point in items(body, "partitions") {
            let (site, target) = (point["site"].clone(), point["target"].clone());
            if let Some((_, _, about)) = self.points.iter().find(|(s, t, _)| site == *s && target == *t) {
                put(point, "description", about);
            }
        }
        for factor in items(body, "factors") {
            let name = factor["name"].clone();
            let about = |level: Option<&str>| {
                let of = self.factors.iter().find(|(factor, of, _)| name == *factor && of.as_deref() == level);
                of.map_or("", |(_, _, about)| about.as_str())
            };
            put(factor, "description", about(None));
            for level in items(factor, "levels") {
                let words = about(Some(level["name"].as_str().unwrap_or_default()));
                put(level, "description", words);
            }
        }
        if !self.queries.is_empty() {
            body["queries"] = json!(self.queries);
        }
    }

    /// Returns the lines of a card.
    pub(super) fn facts(&self) -> Vec<Fact> {
        let with = |what: &str, about: &str| match about {
            "" => what.to_owned(),
            about => format!("{what} ({about})"),
        };
        let conditions = self.conditions.iter().map(|(code, name, about)| match name.as_str() {
            "" => with(code, about),
            name => with(&format!("{code} “{name}”"), about),
        });
        let points = self.points.iter().map(|(site, target, about)| with(&format!("{site} / {target}"), about));
        let factors = self.factors.iter().map(|(factor, level, about)| match level {
            Some(level) => with(&format!("{factor}={level}"), about),
            None => with(factor, about),
        });
        let queries = self.queries.iter().map(|query| {
            let metric = query.metric.as_ref().map_or("", |metric| &metric.key);
            with(&format!("“{}”", query.name), &format!("{} of {metric}", query.query.operation_type))
        });
        let lines = [
            ("Names of conditions", conditions.collect::<Vec<_>>()),
            ("About the points", points.collect()),
            ("About the factors", factors.collect()),
            ("Metric queries", queries.collect()),
        ];
        let lines = lines.into_iter().filter(|(_, all)| !all.is_empty());
        lines.map(|(label, all)| Fact::new(label, all.join(", "))).collect()
    }
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

    const NOW: Timestamp = Timestamp(1_795_000_000_000);

    #[test]
    fn the_design_is_copied_but_not_the_status() {
        let copied = design(&view(), &Map::new(), NOW);
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
    fn what_the_original_has_its_copy_may_have() {
        let mut known = ContextMetadata { conditions: vec!["control".to_owned()], ..ContextMetadata::default() };
        add_words_of(&view(), &mut known);
        assert_eq!(known.conditions, ["control", "variant"]);
        assert_eq!((known.sites, known.targets), (vec!["SelectSection".to_owned()], vec!["area_model".to_owned()]));
    }

    #[test]
    fn given_parts_replace_the_copied_ones() {
        let given =
            Map::from_iter([("weights".to_owned(), json!("50/50")), ("context".to_owned(), json!("mathstream"))]);
        let copied = design(&view(), &given, NOW);
        assert_eq!(copied["conditions"][0], json!({ "code": "control" }));
        assert!(!copied.contains_key("decision_points"), "they belong to the other context");
    }

    /// Everything about a copy: its parameters, what is beside them, and what is said of the rest.
    fn copy(raw: &Value, context: &str) -> Option<Value> {
        let view = Experiment::from_value(raw).ok()?.view;
        let given = Map::from_iter([("context".to_owned(), json!(context))]);
        let parameters = Value::Object(design(&view, &given, NOW).into_iter().chain(given).collect());
        let mut body = json!({
            "conditions": raw["conditions"].as_array()?.iter().map(|c| json!({ "conditionCode": c["conditionCode"] })).collect::<Vec<_>>(),
            "partitions": raw["partitions"].as_array()?.iter().map(|p| json!({ "site": p["site"], "target": p["target"] })).collect::<Vec<_>>(),
            "factors": raw["factors"].as_array()?.iter().map(|f| json!({ "name": f["name"], "levels":
                f["levels"].as_array().into_iter().flatten().map(|l| json!({ "name": l["name"] })).collect::<Vec<_>>() })).collect::<Vec<_>>(),
        });
        let copied = Copied::of(&view, context);
        copied.write(&mut body);
        let said = not_copied(&view, &parameters).map(|text| text.words());
        Some(
            json!({ "parameters": parameters, "body": body, "segments": [copied.included_segments, copied.excluded_segments], "said": said }),
        )
    }

    /// Returns the paths of all values in `raw` that are not containers.
    fn leaves(raw: &Value, path: String, found: &mut Vec<String>) {
        match raw {
            Value::Object(members) => members.iter().for_each(|(key, one)| leaves(one, format!("{path}/{key}"), found)),
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(at, one)| leaves(one, format!("{path}/{at}"), found));
            }
            _ => found.push(path),
        }
    }

    /// A recorded experiment with all optional fields, and what that recording lacks, from others.
    fn recorded() -> Value {
        let path =
            format!("{}/../../../tests/fixtures/upgrade/6.5/021-get-single-full.json", env!("CARGO_MANIFEST_DIR"));
        let recorded: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let mut raw = recorded["response"]["body"].clone();
        raw["postExperimentRule"] = json!("assign");
        raw["revertTo"] = raw["conditions"][1]["id"].clone();
        raw["assignmentAlgorithm"] = json!("stratified random sampling");
        raw["stratificationFactor"] = json!({ "stratificationFactorName": "gender" });
        raw["partitions"][1]["description"] = json!("the second one");
        raw["conditions"][1]["description"] = json!("with hints");
        raw["queries"][0]["query"] =
            json!({ "operationType": "percentage", "compareFn": "=", "compareValue": "GRADUATED" });
        raw["enrollmentCompleteCondition"] = json!({ "userCount": 100, "groupCount": 3 });
        let mut excluded = raw["experimentSegmentInclusion"][0].clone();
        excluded["segment"]["listType"] = json!("Segment");
        excluded["segment"]["subSegments"] = json!([{
            "id": "7969bf46-97e1-457f-ab36-ea1875a772dc", "name": "Pilot teachers", "description": "volunteers",
            "listType": null, "context": "assign-prog", "type": "public", "tags": ["pilot"],
        }]);
        raw["experimentSegmentExclusion"] = json!([excluded]);
        raw["factors"] = json!([{
            "id": "5ac9f0c0-0000-4000-8000-0000000000f1", "name": "Color", "order": 1, "description": "of the text",
            "levels": [{
                "id": "5ac9f0c0-0000-4000-8000-0000000000a1", "name": "Red", "description": "warm", "order": 1,
                "payload": { "type": "string", "value": "red" },
            }],
        }]);
        raw
    }

    /// Fields that say when, by what and in which order something was stored, or that belong to something else: the copy
    /// has its own.
    fn is_own(path: &str) -> bool {
        const OWN: &[&str] = &[
            "id",
            "createdAt",
            "updatedAt",
            "versionNumber",
            "twoCharacterId",
            "backendVersion",
            "segmentId",
            "experimentId",
            "order",
            "listType",
            "state",
        ];
        let parts: Vec<&str> = path.split('/').skip(1).collect();
        let is_of_list = path.contains("/segment/") && ["type", "context", "tags"].contains(parts.last().unwrap());
        let is_of_members = path.contains("ForSegment/") && parts.last() == Some(&"segmentId");
        let is_of_shared_segment = path.contains("/subSegments/") && !path.ends_with("/name");
        let is_of_metric = path.contains("/metric/") && !path.ends_with("/key");
        let is_nested_payload = path.starts_with("/conditions/") && path.contains("/conditionPayloads/");
        OWN.contains(parts.last().unwrap())
            || path == "/name"
            || path.starts_with("/stateTimeLogs")
            || (is_of_list && !path.contains("groupForSegment"))
            || is_of_members
            || is_of_shared_segment
            || is_of_metric
            || is_nested_payload
    }

    #[test]
    fn each_field_of_a_recorded_experiment_is_copied_or_named() {
        let simple = recorded();
        let mut factorial = recorded();
        factorial["type"] = json!("Factorial");
        for base in [simple, factorial] {
            let is_factorial = base["type"] == "Factorial";
            let before = copy(&base, "assign-prog").unwrap();
            let said = before["said"].as_str().unwrap_or_default();
            let mut paths = Vec::new();
            leaves(&base, String::new(), &mut paths);
            assert!(paths.len() > 100);
            for path in paths.iter().filter(|path| !is_own(path)) {
                let mut other = base.clone();
                let leaf = other.pointer_mut(path).unwrap();
                *leaf = match &*leaf {
                    Value::Bool(value) => json!(!value),
                    Value::Number(value) => json!(value.as_f64().unwrap() as u64 + 1),
                    Value::String(value) if path == "/endOn" => json!(value.replace("2099", "2098")),
                    Value::String(_) if path == "/type" => json!(if is_factorial { "Simple" } else { "Factorial" }),
                    Value::String(value) => json!(format!("{value}x")),
                    _ => json!("x"),
                };
                let Some(after) = copy(&other, "assign-prog") else { continue };
                let is_named = (path.contains("/segment/") && said.contains("names and descriptions of its lists"))
                    || (is_factorial && path.starts_with("/conditionPayloads/") && said.contains("its payloads"));
                let is_of_simple = !is_factorial && path.starts_with("/factors/");
                assert!(before != after || is_named || is_of_simple, "{path} is lost");
            }
        }
    }

    #[test]
    fn what_belongs_to_another_context_is_named() {
        let copied = copy(&recorded(), "mathstream").unwrap();
        insta::assert_snapshot!(copied["said"].as_str().unwrap(), @"Not copied: its decision points, its payloads, the metric queries “Mean time”, the segments “Pilot teachers”, the names and descriptions of its lists and stratification by gender.");
        let mut past = recorded();
        past["endOn"] = json!("2020-01-01T00:00:00.000Z");
        past["queries"][0]["query"]["compareValue"] = json!("it's");
        insta::assert_snapshot!(copy(&past, "assign-prog").unwrap()["said"].as_str().unwrap(), @"Not copied: its end date, which is past, the metric queries “Mean time” and the names and descriptions of its lists.");
    }
}
