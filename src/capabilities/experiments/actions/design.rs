//! Planned conditions and decision points, which are checked against the context and each other.
//!
//! The server checks hardly any of this, so an invalid design would run unnoticed.

use countersign_graph::action::{MissingParameter, PrepareError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{choices, missing};
use crate::{
    access,
    inputs::{ConditionInput, OneOrMany, PayloadInput, PointInput, WeightsInput, equal_shares},
    lookup,
    replies::refusals,
    rules,
    upgrade::{context::ContextMetadata, version::Version},
};

/// A planned condition. Its id is new, or that of an existing condition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct PlannedCondition {
    pub(super) code: String,
    pub(super) weight: f64,
    pub(super) id: Uuid,
}

/// A planned decision point. Its id is new, or that of an existing point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PlannedPoint {
    pub(super) site: String,
    pub(super) target: String,
    pub(super) id: Uuid,
    #[serde(default)]
    pub(super) exclude_if_reached: bool,
}

impl PlannedPoint {
    /// Returns `site / target`.
    pub(super) fn words(&self) -> String {
        format!("{} / {}", self.site, self.target)
    }
}

/// Returns a point in words, with a note if it excludes people who reached it before the start.
pub(super) fn point_words(point: &str, excludes: bool) -> String {
    if excludes { format!("{point} (excludes users who were there before the start)") } else { point.to_owned() }
}

/// A decision point as requested. `excludes` is `None` if the request does not say what happens to
/// people who reached it before the start.
pub(super) struct ResolvedPoint {
    pub(super) site: String,
    pub(super) target: String,
    pub(super) excludes: Option<bool>,
}

/// Returns shares in whole percent that are as equal as possible, for use as an example.
fn whole_shares(count: usize) -> Vec<f64> {
    let (each, left) = (100 / count.max(1), 100 % count.max(1));
    (0..count).map(|nth| f64::from(u32::try_from(each + usize::from(nth < left)).unwrap_or(0))).collect()
}

/// Returns the conditions as codes and weights. It checks that the codes are unique and not reserved,
/// and that the weights add up to 100. Without any weights, the shares are equal. A code that is in the
/// context's vocabulary is spelled as there.
pub(super) fn conditions(
    given: &OneOrMany<ConditionInput>,
    weights: Option<&WeightsInput>,
    vocabulary: &[String],
) -> Result<Vec<(String, f64)>, PrepareError> {
    let (mut codes, mut own) = (Vec::<String>::new(), Vec::new());
    for condition in separate(given) {
        let (code, weight) = condition.parts();
        let code = lookup::pick(vocabulary, &code).cloned().unwrap_or(code);
        let why = match code.to_lowercase() {
            lower if lower.is_empty() => Some("it is empty"),
            lower if lower == "default" => Some("it is reserved for the application's own default"),
            lower if codes.iter().any(|other| other.to_lowercase() == lower) => Some("it appears twice"),
            _ => None,
        };
        if let Some(why) = why {
            return Err(access::invalid(refusals::bad_code(&code, why)));
        }
        codes.push(code);
        own.push(weight);
    }
    let weights = match weights {
        Some(weights) => weights.fit(&codes),
        None if own.iter().all(Option::is_none) => Some(equal_shares(codes.len())),
        None => own.into_iter().collect(),
    };
    let weights = weights.ok_or_else(|| access::invalid(refusals::weights_do_not_fit(&codes)))?;
    let in_range = weights.iter().all(|weight| (0.0..=100.0).contains(weight));
    if !in_range || !rules::total_is_100(weights.iter().copied()) {
        return Err(access::invalid(refusals::weights_do_not_add_up(&weights, &whole_shares(codes.len()))));
    }
    Ok(codes.into_iter().zip(weights).collect())
}

/// Returns a question about the conditions that are not in the context's vocabulary, unless it is
/// empty.
pub(super) fn unknown_conditions(
    given: &OneOrMany<ConditionInput>,
    vocabulary: &[String],
    context: &str,
) -> Option<MissingParameter> {
    // `conditions` refuses these with a message of their own.
    let is_invalid = |code: &str| code.is_empty() || code.eq_ignore_ascii_case("default");
    let is_unknown = |code: &String| !is_invalid(code) && lookup::pick(vocabulary, code).is_none();
    let unknown: Vec<_> = codes(given).into_iter().filter(is_unknown).collect();
    let question = refusals::not_listed("condition", &unknown, context, vocabulary, "Which should I compare?");
    (!vocabulary.is_empty() && !unknown.is_empty()).then(|| missing("conditions", question, anyway(unknown.len())))
}

/// Returns the codes of conditions as they are requested.
pub(super) fn codes(given: &OneOrMany<ConditionInput>) -> Vec<String> {
    separate(given).into_iter().map(|condition| condition.parts().0).collect()
}

/// Returns the answer that insists on new words.
fn anyway(count: usize) -> Vec<String> {
    vec![if count == 1 { "use it anyway" } else { "use them anyway" }.to_owned()]
}

/// Returns a question about the first site or target that is not in the context's vocabulary, unless it is empty.
pub(super) fn unknown_points(
    given: &OneOrMany<PointInput>,
    context: &str,
    known: &ContextMetadata,
) -> Option<MissingParameter> {
    let (sites, targets): (Vec<_>, Vec<_>) = unknown_parts(given, known).into_iter().unzip();
    let all = sites.iter().chain(&targets).flatten().count();
    let unknown = |what, parts: Vec<Option<String>>, known: &[String]| {
        let first = parts.into_iter().flatten().next().filter(|_| !known.is_empty())?;
        Some(refusals::not_listed(what, &[first], context, known, "Where should it run?"))
    };
    let question = unknown("site", sites, &known.sites).or_else(|| unknown("target", targets, &known.targets))?;
    Some(missing("decision_points", question, anyway(all)))
}

/// Returns the sites and targets that a context does not list. A point in reverse order, or of one word, has none.
pub(super) fn unknown_parts(
    given: &OneOrMany<PointInput>,
    known: &ContextMetadata,
) -> Vec<(Option<String>, Option<String>)> {
    let is_unknown = |known: &[String], word: &str| lookup::pick(known, word).is_none();
    let parts = given.all().into_iter().filter_map(|point| point.parts()).map(|(site, target)| {
        let is_reversed = !is_unknown(&known.sites, &target) && !is_unknown(&known.targets, &site);
        let new = |known: &[String], word: String| (!is_reversed && is_unknown(known, &word)).then_some(word);
        (new(&known.sites, site), new(&known.targets, target))
    });
    parts.filter(|(site, target)| site.is_some() || target.is_some()).collect()
}

/// Returns site and target if a point is one word and the context has only one word for the other part.
fn completed(point: &PointInput, known: &ContextMetadata) -> Option<(String, String)> {
    let PointInput::Words(word) = point else { return None };
    let only = |words: &[String]| if let [one] = words { Some(one.clone()) } else { None };
    let target = lookup::pick(&known.targets, word);
    let site = lookup::pick(&known.sites, word);
    match (site, target) {
        (None, Some(target)) => Some((only(&known.sites)?, target.clone())),
        (Some(site), None) => Some((site.clone(), only(&known.targets)?)),
        _ => None,
    }
}

/// Returns the points, each once, with sites and targets checked against the context's vocabulary.
pub(super) fn points(
    given: &OneOrMany<PointInput>,
    context: &str,
    known: &ContextMetadata,
) -> Result<Vec<ResolvedPoint>, PrepareError> {
    let mut points = Vec::<ResolvedPoint>::new();
    for point in given.all() {
        let Some((site, target)) = point.parts().or_else(|| completed(&point, known)) else {
            let words = match &point {
                PointInput::Words(words) => words.trim(),
                PointInput::Parts { site, .. } => site.trim(),
            };
            let example =
                known.sites.first().zip(known.targets.first()).map(|(site, target)| format!("{site} / {target}"));
            return Err(access::invalid(refusals::incomplete_point(words, example.as_deref())));
        };
        let is_reversed = lookup::pick(&known.sites, &site).is_none()
            && lookup::pick(&known.sites, &target).is_some()
            && lookup::pick(&known.targets, &site).is_some();
        let (site, target) = if is_reversed { (target, site) } else { (site, target) };
        let site = access::word(&known.sites, "site", &site, context)?;
        let target = access::word(&known.targets, "target", &target, context)?;
        if !points.iter().any(|other| (&other.site, &other.target) == (&site, &target)) {
            points.push(ResolvedPoint { site, target, excludes: point.excludes() });
        }
    }
    Ok(points)
}

/// Returns the checked payloads, one for each condition and point for which they are given. `points`
/// are `site / target`.
pub(super) fn payloads(
    given: &[PayloadInput],
    name: &str,
    codes: &[String],
    points: &[String],
) -> Result<Vec<PayloadInput>, PrepareError> {
    let plain = |words: &str| words.split('/').map(str::trim).collect::<Vec<_>>().join(" / ");
    let mut all = Vec::<PayloadInput>::new();
    for payload in given {
        let condition = lookup::pick(codes, &payload.condition)
            .ok_or_else(|| access::invalid(refusals::unknown_condition(&payload.condition, name, codes)))?;
        let at = match &payload.decision_point {
            None => points.to_vec(),
            Some(point) => {
                let known = lookup::pick(points, &plain(point));
                vec![known.ok_or_else(|| access::invalid(refusals::not_its_point(name, point, points)))?.clone()]
            }
        };
        let is_json = serde_json::from_str::<Value>(&payload.value).is_ok_and(|v| v.is_object() || v.is_array());
        let kind = match &payload.kind {
            None => if is_json { "json" } else { "string" }.to_owned(),
            kind => choices::choice("payload type", kind.as_deref(), &["string", "json", "csv"])?.unwrap_or_default(),
        };
        if kind == "json" && serde_json::from_str::<Value>(&payload.value).is_err() {
            return Err(access::invalid(refusals::bad_json(condition)));
        }
        for point in at {
            all.retain(|other| (&other.condition, &other.decision_point) != (condition, &Some(point.clone())));
            all.push(PayloadInput {
                condition: condition.clone(),
                decision_point: Some(point),
                kind: Some(kind.clone()),
                value: payload.value.clone(),
            });
        }
    }
    Ok(all)
}

/// Returns the payloads in words: `control “short”, variant “{…}” (JSON) at chat / tone`. The type is only given if it is
/// not plain text, the point only if the condition has different payloads at different points.
pub(super) fn payload_words(payloads: &[PayloadInput]) -> String {
    let mut words = Vec::new();
    for payload in payloads {
        let mut of_condition = payloads.iter().filter(|other| other.condition == payload.condition);
        let same_everywhere = of_condition.all(|other| (&other.value, &other.kind) == (&payload.value, &payload.kind));
        let at = payload.decision_point.iter().filter(|_| !same_everywhere).map(|point| format!(" at {point}"));
        let value: String = payload.value.chars().take(60).collect();
        let cut = if value.len() < payload.value.len() { "…" } else { "" };
        let kind = match payload.kind.as_deref() {
            Some("json") => " (JSON)",
            Some("csv") => " (CSV)",
            _ => "",
        };
        let entry = format!("{} “{value}{cut}”{kind}{}", payload.condition, at.collect::<String>());
        if !words.contains(&entry) {
            words.push(entry);
        }
    }
    words.join(", ")
}

/// Writes the post-experiment rule into a whole experiment, which refers to a condition by its id.
pub(super) fn write_post_rule(raw: &mut Value, rule: &str) {
    let code = rule.strip_prefix("assign ");
    let mut conditions = raw["conditions"].as_array().into_iter().flatten();
    let condition = conditions.find(|condition| code.is_some_and(|code| condition["conditionCode"] == code));
    let id = condition.map(|condition| condition["id"].clone()).unwrap_or_default();
    raw["postExperimentRule"] = json!(if code.is_some() { "assign" } else { "continue" });
    raw["revertTo"] = id;
}

/// Adds empty lists if they are missing and the server is older than 6.3, where an experiment must be
/// sent with both lists as objects. From 6.3 on they are not needed, and objects are refused.
pub(super) fn with_lists_for(version: &Version, mut body: Value) -> Value {
    if version.is_below_6_3() {
        for list in ["experimentSegmentInclusion", "experimentSegmentExclusion"] {
            if !body[list].is_object() {
                body[list] = json!({
                    "segment": { "type": "private", "individualForSegment": [], "groupForSegment": [], "subSegments": [] },
                });
            }
        }
    }
    body
}

/// Splits `control, variant` into two conditions.
fn separate(given: &OneOrMany<ConditionInput>) -> Vec<ConditionInput> {
    match given {
        OneOrMany::One(ConditionInput::Words(words)) => {
            words.split([',', ';']).map(|word| ConditionInput::Words(word.trim().to_owned())).collect()
        }
        given => given.all(),
    }
}
