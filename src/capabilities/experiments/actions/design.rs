//! Conditions and decision points as they are planned: checked against the context and against each other.
//!
//! The server checks hardly any of this, so what passes here is what runs.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use super::missing;
use crate::{
    capabilities::experiments::{
        access,
        given::{GivenCondition, GivenPoint, GivenWeights, OneOrMany, equal_shares},
        lookup,
        replies::refusals,
        rules,
    },
    graph::action::{ErrorKind, MissingParameter, PrepareError},
    services::upgrade::{context::ContextMetadata, version::Version},
};

/// A condition with its identity, new or kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct PlannedCondition {
    pub(super) code: String,
    pub(super) weight: f64,
    pub(super) id: Uuid,
}

/// A decision point with its identity, new or kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PlannedPoint {
    pub(super) site: String,
    pub(super) target: String,
    pub(super) id: Uuid,
}

/// Codes and weights, checked: codes are unique and not reserved, weights add up to 100. Without any weights the shares
/// are equal. A code of the context's vocabulary is taken as it is written there.
pub(super) fn conditions(
    given: &OneOrMany<GivenCondition>,
    weights: Option<&GivenWeights>,
    vocabulary: &[String],
) -> Result<Vec<(String, f64)>, PrepareError> {
    let refuse = |reply| access::refused(ErrorKind::Validation, reply);
    let (mut codes, mut own) = (Vec::<String>::new(), Vec::new());
    for condition in separate(given) {
        let (code, weight) = condition.parts();
        let code = lookup::pick(vocabulary, &code).cloned().unwrap_or(code);
        let why = match code.to_lowercase() {
            lower if lower.is_empty() => Some("it is empty"),
            lower if lower == "default" => Some("it is reserved for what the application does without the platform"),
            lower if codes.iter().any(|other| other.to_lowercase() == lower) => Some("it is there twice"),
            _ => None,
        };
        if let Some(why) = why {
            return Err(refuse(refusals::bad_code(&code, why)));
        }
        codes.push(code);
        own.push(weight);
    }
    let weights = match weights {
        Some(weights) => weights.fit(&codes),
        None if own.iter().all(Option::is_none) => Some(equal_shares(codes.len())),
        None => own.into_iter().collect(),
    };
    let weights = weights.ok_or_else(|| refuse(refusals::weights_do_not_fit(&codes)))?;
    let in_range = weights.iter().all(|weight| (0.0..=100.0).contains(weight));
    if !in_range || !rules::total_is_100(weights.iter().copied()) {
        return Err(refuse(refusals::weights_do_not_add_up(weights.iter().sum())));
    }
    Ok(codes.into_iter().zip(weights).collect())
}

/// Asks again for conditions that the context does not know. A context that lists none cannot tell.
pub(super) fn unknown_conditions(
    given: &OneOrMany<GivenCondition>,
    vocabulary: &[String],
    context: &str,
) -> Option<MissingParameter> {
    let codes = separate(given).into_iter().map(|condition| condition.parts().0);
    let wrong_anyway = |code: &str| code.is_empty() || code.eq_ignore_ascii_case("default"); // said in words of its own
    let unknown: Vec<_> =
        codes.filter(|code| !wrong_anyway(code) && lookup::pick(vocabulary, code).is_none()).collect();
    let question = refusals::unknown_conditions(&unknown, context, vocabulary);
    (!vocabulary.is_empty() && !unknown.is_empty()).then(|| missing("conditions", question, Vec::new()))
}

/// Sites and targets, checked against the context's vocabulary; each point once.
pub(super) fn points(
    given: &OneOrMany<GivenPoint>,
    context: &str,
    known: &ContextMetadata,
) -> Result<Vec<(String, String)>, PrepareError> {
    let mut points = Vec::new();
    for point in given.all() {
        let Some((site, target)) = point.parts() else {
            let words = match &point {
                GivenPoint::Words(words) => words.trim(),
                GivenPoint::Parts { site, .. } => site.trim(),
            };
            return Err(access::refused(ErrorKind::Validation, refusals::half_a_point(words)));
        };
        let site = access::word(&known.sites, "site", &site, context)?;
        let target = access::word(&known.targets, "target", &target, context)?;
        if !points.contains(&(site.clone(), target.clone())) {
            points.push((site, target));
        }
    }
    Ok(points)
}

/// Below 6.3 an experiment must be sent with both lists, as objects; these are empty ones, where there are none. From 6.3 on
/// objects are refused and nothing is needed.
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

/// `control, variant` is two conditions.
fn separate(given: &OneOrMany<GivenCondition>) -> Vec<GivenCondition> {
    match given {
        OneOrMany::One(GivenCondition::Words(words)) => {
            words.split([',', ';']).map(|word| GivenCondition::Words(word.trim().to_owned())).collect()
        }
        given => given.all(),
    }
}
