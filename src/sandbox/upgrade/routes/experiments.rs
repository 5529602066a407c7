//! Reading, deleting and validating experiments.

use serde_json::{Value, json};

use super::{Call, checked};
use crate::upgrade::{
    failure::{Failure, Outcome},
    seed, validate, wire,
    world::{Experiment, World, is_id},
};

/// `GET /experiments/contextMetaData`
pub(crate) fn context_metadata(_: &mut World, _: &Call) -> Outcome {
    Ok(json!({ "contextMetadata": seed::context_metadata() }))
}

/// `GET /experiments/names`
pub(crate) fn names(world: &mut World, _: &Call) -> Outcome {
    let named = world.experiments.iter().map(|it| json!({ "id": it.row.id, "name": it.row.name }));
    Ok(named.collect())
}

/// `GET /experiments`: all experiments, without pages.
pub(crate) fn all(world: &mut World, _: &Call) -> Outcome {
    Ok(world.experiments.iter().map(|experiment| wire::of_all(experiment, world)).collect())
}

/// `GET /experiments/partitions`: the points of all experiments. A shared point is repeated.
pub(crate) fn partitions(world: &mut World, _: &Call) -> Outcome {
    let points = world.experiments.iter().flat_map(|experiment| &experiment.points);
    Ok(points.map(|point| json!({ "site": point.site, "target": point.target })).collect())
}

fn wanted<'a>(world: &'a World, call: &Call) -> Result<&'a Experiment, Failure> {
    world.experiment(call.id()?).ok_or_else(Failure::experiment_not_found)
}

/// `GET /experiments/single/{id}`
pub(crate) fn single(world: &mut World, call: &Call) -> Outcome {
    Ok(wire::single(wanted(world, call)?, world))
}

/// `GET /experiments/conditions/{id}`
pub(crate) fn conditions(world: &mut World, call: &Call) -> Outcome {
    Ok(wire::conditions(wanted(world, call)?))
}

/// `GET /experiments/export?ids=…`
pub(crate) fn export(world: &mut World, call: &Call) -> Outcome {
    let ids: Vec<_> = url::form_urlencoded::parse(call.query.as_bytes())
        .filter(|(key, _)| key == "ids" || key == "ids[]")
        .map(|(_, value)| value.into_owned())
        .collect();
    let chosen = world.experiments.iter().filter(|experiment| ids.contains(&experiment.row.id));
    Ok(chosen.map(|experiment| wire::exported(experiment, world)).collect())
}

/// `DELETE /experiments/{id}`: deletes an experiment and returns the raw row, in an array.
pub(crate) fn delete(world: &mut World, call: &Call) -> Outcome {
    let removed = world.remove(call.id()?).ok_or_else(Failure::nothing_to_delete)?;
    Ok(wire::deleted(&removed.row))
}

/// `POST /experiments/validation`: a dry run that reports violations.
pub(crate) fn validation(world: &mut World, call: &Call) -> Outcome {
    let Some(files) = call.body.as_array() else {
        checked(&validate::text_lists(&call.body, &["files"]))?;
        return Ok(json!([]));
    };
    let verdicts = files.iter().map(|file| {
        let error = faults(file["fileContent"].as_str().unwrap_or_default(), world);
        let compatibility = if error.is_some() { "incompatible" } else { "compatible" };
        json!({ "fileName": file["fileName"], "error": error, "compatibilityType": compatibility })
    });
    Ok(verdicts.collect())
}

fn faults(content: &str, world: &World) -> Option<String> {
    let Ok(body @ Value::Object(_)) = serde_json::from_str(content) else { return Some("Invalid JSON".to_owned()) };
    let mut messages: Vec<_> =
        validate::experiment(&body, world.version).iter().map(validate::Violation::sentence).collect();
    if let Some(context) = body["context"][0].as_str().filter(|context| !seed::knows_context(context)) {
        messages.push(unknown_context(context));
    }
    (!messages.is_empty()).then(|| messages.join(", "))
}

/// Returns the platform's message for a context that is not configured.
pub(crate) fn unknown_context(context: &str) -> String {
    format!("The app context \"{context}\" is not defined in CONTEXT_METADATA.")
}

/// Checks the semantic rules for creating and updating.
pub(crate) fn check_meaning(body: &Value) -> Result<(), Failure> {
    if let Some(context) = body["context"][0].as_str().filter(|context| !seed::knows_context(context)) {
        return Err(Failure::refused(unknown_context(context)));
    }
    let codes = body["conditions"].as_array().into_iter().flatten().filter_map(|it| it["conditionCode"].as_str());
    if codes.into_iter().any(|code| code.eq_ignore_ascii_case("default")) {
        return Err(Failure::refused("'default' as ConditionCode is not allowed."));
    }
    Ok(())
}

/// Checks the constraints of the database on the experiment's row.
pub(crate) fn check_row(world: &World, body: &Value) -> Result<(), Failure> {
    if let Some(id) = body["id"].as_str().filter(|id| !is_id(id)) {
        return Err(Failure::not_a_uuid(id));
    }
    if let Some(condition) = body["revertTo"].as_str().filter(|id| !is_id(id)) {
        return Err(Failure::not_a_uuid(condition));
    }
    let factor = body["stratificationFactor"]["stratificationFactorName"].as_str();
    if factor.is_some_and(|factor| !world.stratification_factors.contains(factor)) {
        return Err(Failure::database(
            "insert or update on table \"experiment\" violates foreign key constraint \
             \"FK_335189d91114f3a71ff18be6243\"",
        ));
    }
    Ok(())
}
