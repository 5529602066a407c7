//! Factorial designs: factors with levels, and the conditions, which are combinations of levels.
//!
//! A condition's code states its combination in the format of the platform's web interface:
//! `hints=none; feedback=now`. The levels of a planned condition are therefore found by its code, and
//! people need not name, say, sixteen conditions.

use countersign_core::reply::{Fact, Text};
use countersign_graph::action::PrepareError;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{choices, design};
use crate::{
    access,
    inputs::{ConditionInput, FactorInput, OneOrMany, WeightsInput},
    lookup,
    replies::{factorial as replies, refusals},
    rules,
};

/// The maximum number of combinations in an experiment. A card with more would not be readable.
const MAX_COMBINATIONS: usize = 32;

/// A factor with its levels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PlannedFactor {
    pub(super) name: String,
    pub(super) id: Uuid,
    pub(super) levels: Vec<PlannedLevel>,
}

/// A level of a factor, and the content that the application receives with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PlannedLevel {
    pub(super) name: String,
    pub(super) id: Uuid,
    /// The type of the payload: `string`, `json` or `csv`.
    pub(super) kind: String,
    pub(super) payload: String,
}

/// Returns the checked factors and levels: there are several combinations, but not too many, and each
/// has a different code.
pub(super) fn factors(given: &[FactorInput]) -> Result<Vec<PlannedFactor>, PrepareError> {
    let refuse = |reply| Err(access::invalid(reply));
    let mut factors = Vec::<PlannedFactor>::new();
    for factor in given {
        let mut planned = PlannedFactor { name: factor.name.trim().to_owned(), id: Uuid::new_v4(), levels: Vec::new() };
        if let Some(why) = naming_problem(&planned.name, factors.iter().map(|other| other.name.as_str())) {
            return refuse(replies::bad_factor(&planned.name, why));
        }
        for level in &factor.levels {
            let (name, payload, kind) = level.parts();
            if let Some(why) = naming_problem(&name, planned.levels.iter().map(|other| other.name.as_str())) {
                return refuse(replies::bad_level(&name, &planned.name, why));
            }
            let kind = choices::choice("payload type", kind.as_deref(), &["string", "json", "csv"])?;
            let kind = kind.unwrap_or_else(|| "string".to_owned());
            let payload = payload.unwrap_or_else(|| name.clone());
            if kind == "json" && serde_json::from_str::<Value>(&payload).is_err() {
                return refuse(refusals::bad_json(&name));
            }
            planned.levels.push(PlannedLevel { name, id: Uuid::new_v4(), kind, payload });
        }
        if planned.levels.len() < 2 {
            return refuse(replies::too_few_levels(&planned.name));
        }
        factors.push(planned);
    }
    let combinations = factors.iter().map(|factor| factor.levels.len()).fold(1usize, usize::saturating_mul);
    match (factors.len(), combinations) {
        (1, _) => refuse(replies::one_factor(&factors[0].name)),
        (_, combinations) if combinations > MAX_COMBINATIONS => {
            refuse(replies::too_many_combinations(combinations, MAX_COMBINATIONS))
        }
        _ => Ok(factors),
    }
}

/// Returns the reason why a name cannot be part of a condition's code.
fn naming_problem<'a>(name: &str, mut others: impl Iterator<Item = &'a str>) -> Option<&'static str> {
    if name.is_empty() {
        Some("it has no name")
    } else if name.contains([';', '=']) {
        Some("“;” and “=” separate factors and levels in a condition's code")
    } else if others.any(|other| other.eq_ignore_ascii_case(name)) {
        Some("it appears twice")
    } else {
        None
    }
}

/// Returns all combinations, each with its code and its levels in the order of the factors. The level of
/// the last factor varies fastest.
fn combinations(factors: &[PlannedFactor]) -> Vec<(String, Vec<&PlannedLevel>)> {
    let mut all = vec![(String::new(), Vec::<&PlannedLevel>::new())];
    for factor in factors {
        let pairs = all.iter().flat_map(|partial| factor.levels.iter().map(move |level| (partial, level)));
        let longer = pairs.map(|((code, levels), level)| {
            let code = if code.is_empty() { code.clone() } else { format!("{code}; ") };
            let levels = levels.iter().copied().chain([level]).collect::<Vec<_>>();
            (format!("{code}{}={}", factor.name, level.name), levels)
        });
        all = longer.collect();
    }
    all
}

/// Returns the combinations to compare and their weights. The default is all combinations with equal
/// weights.
pub(super) fn conditions(
    factors: &[PlannedFactor],
    name: &str,
    given: Option<&OneOrMany<ConditionInput>>,
    weights: Option<&WeightsInput>,
) -> Result<Vec<(String, f64)>, PrepareError> {
    let codes: Vec<_> = combinations(factors).into_iter().map(|(code, _)| code).collect();
    let planned = match given {
        None => codes.iter().map(|code| ConditionInput::Parts { code: code.clone(), weight: None }).collect(),
        Some(given) => {
            let each = given.all().into_iter().map(|condition| {
                let (code, weight) = match &condition {
                    // A level may be a number that looks like a weight, so the whole text is tried first.
                    ConditionInput::Words(words) if lookup::pick(&codes, words).is_some() => (words.clone(), None),
                    condition => condition.parts(),
                };
                match lookup::pick(&codes, &code) {
                    Some(code) => Ok(ConditionInput::Parts { code: code.clone(), weight }),
                    None => {
                        let refusal = refusals::unknown_condition(&code, name, &codes);
                        Err(access::invalid(refusal))
                    }
                }
            });
            each.collect::<Result<Vec<_>, _>>()?
        }
    };
    design::conditions(&OneOrMany::Many(planned), weights, &[])
}

/// Writes the factors into the request, and the combined levels into each condition.
pub(super) fn write(body: &mut Value, factors: &[PlannedFactor]) {
    if factors.is_empty() {
        return;
    }
    body["type"] = json!("Factorial");
    let each = factors.iter().zip(1..).map(|(factor, order)| {
        let levels = factor.levels.iter().zip(1..).map(|(level, order)| {
            let payload = json!({ "type": level.kind, "value": level.payload });
            json!({ "id": level.id, "name": level.name, "order": order, "payload": payload })
        });
        json!({ "id": factor.id, "name": factor.name, "order": order, "levels": levels.collect::<Vec<_>>() })
    });
    body["factors"] = each.collect();
    let all = combinations(factors);
    for condition in body["conditions"].as_array_mut().into_iter().flatten() {
        let Some((_, levels)) = all.iter().find(|(code, _)| condition["conditionCode"] == *code) else { continue };
        let elements =
            levels.iter().map(|level| json!({ "id": Uuid::new_v4(), "level": { "id": level.id, "name": level.name } }));
        condition["levelCombinationElements"] = elements.collect();
    }
}

/// Returns the lines of a card: one for each factor, the number of combinations, then one for each
/// combination.
pub(super) fn facts<'a>(
    factors: &[PlannedFactor],
    conditions: impl ExactSizeIterator<Item = (&'a str, f64)>,
) -> Vec<Fact> {
    let level = |level: &PlannedLevel| match level.payload == level.name {
        true => level.name.clone(),
        false => format!("{} “{}”", level.name, level.payload),
    };
    let words = |factor: &PlannedFactor| factor.levels.iter().map(level).collect::<Vec<_>>().join(", ");
    let mut facts: Vec<_> = factors.iter().map(|f| Fact::new(format!("Factor {}", f.name), words(f))).collect();
    let all: usize = factors.iter().map(|factor| factor.levels.len()).product();
    facts.push(Fact::new(
        "Conditions",
        match conditions.len() == all {
            true => format!("all {all} combinations"),
            false => format!("{} of {all} combinations", conditions.len()),
        },
    ));
    facts.extend(conditions.map(|(code, weight)| Fact::new(code, Text::from(format!("{}%", rules::number(weight))))));
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(given: Value) -> Vec<PlannedFactor> {
        let given: Vec<FactorInput> = serde_json::from_value(given).unwrap();
        factors(&given).unwrap()
    }

    #[test]
    fn conditions_are_all_combinations_in_equal_shares() {
        let factors = planned(json!([
            { "name": "hints", "levels": ["none", "text=Read this."] },
            { "name": "feedback", "levels": ["now", { "name": "later", "payload": "in 5 min" }, "never"] },
        ]));
        let conditions = conditions(&factors, "Foo", None, None).unwrap();
        let words: Vec<_> = conditions.iter().map(|(code, weight)| format!("{code} {weight}")).collect();
        insta::assert_snapshot!(words.join("\n"), @"
        hints=none; feedback=now 16.66
        hints=none; feedback=later 16.66
        hints=none; feedback=never 16.66
        hints=text; feedback=now 16.66
        hints=text; feedback=later 16.66
        hints=text; feedback=never 16.7
        ");
        let mut body = json!({ "conditions": [{ "conditionCode": "hints=text; feedback=later" }] });
        write(&mut body, &factors);
        let levels = body["conditions"][0]["levelCombinationElements"].as_array().unwrap();
        assert_eq!(levels[0]["level"]["id"], json!(factors[0].levels[1].id));
        assert_eq!(levels[1]["level"]["id"], json!(factors[1].levels[1].id));
        assert_eq!(body["factors"][0]["levels"][1]["payload"], json!({ "type": "string", "value": "Read this." }));
        assert_eq!(body["factors"][1]["levels"][0]["payload"], json!({ "type": "string", "value": "now" }));
    }
}
