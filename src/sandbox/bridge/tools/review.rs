//! The reviews of the newer version: consistency, verification, and reports.

use serde_json::{Value, json};

use super::{
    super::{
        arguments::text,
        consistency,
        failure::Failure,
        sweeps,
        world::{Simulation, World},
    },
    CONTRACT, unknown_simulation,
};

fn loaded<'a>(world: &'a mut World, arguments: &Value) -> Result<&'a mut Simulation, Failure> {
    let id = text(arguments, "simulationId").unwrap_or_default();
    world.simulation(id).ok_or_else(|| unknown_simulation(id).at("simulationId"))
}

/// Checks the rules across parameters.
pub(super) fn consistency(world: &mut World, arguments: &Value) -> Result<Value, Failure> {
    let simulation = loaded(world, arguments)?;
    let violations = consistency::violations(&simulation.parameters);
    let summary = match violations.len() {
        0 => "All checked consistency rules passed.".to_owned(),
        count => format!("{count} cross-parameter consistency violation(s) detected."),
    };
    Ok(json!({
        "tool": "run_parameter_consistency_check", "contractVersion": CONTRACT, "simulationId": simulation.id,
        "ok": violations.is_empty(), "violationCount": violations.len(), "violations": violations, "summary": summary,
        "checkedRules": consistency::RULES,
        "parameterSweepReview": sweeps::sweep_review(&simulation.id, &simulation.changes),
    }))
}

/// Checks that a run of the simulation would be accepted.
pub(super) fn request(world: &mut World, arguments: &Value) -> Result<Value, Failure> {
    let simulation = loaded(world, arguments)?;
    let problems = consistency::violations(&simulation.parameters);
    let verdict = if problems.is_empty() { "valid" } else { "invalid" };
    Ok(json!({
        "tool": "validate_simulation_request", "contractVersion": CONTRACT, "simulationId": simulation.id,
        "backend": null, "validation": { "assessment": { "decision": verdict }, "errors": problems }, "profile": {},
        "capabilities": {}, "ngraObjects": {}, "qualificationState": null, "evidenceBasis": {},
        "workflowClaimBoundaries": {}, "cautionSummary": {}, "missingEvidence": [], "dossierImprovementSignals": null,
        "warnings": [],
    }))
}

/// Runs the checks on a loaded simulation.
pub(super) fn verification(world: &mut World, arguments: &Value) -> Result<Value, Failure> {
    let generated = world.now.whole();
    let simulation = loaded(world, arguments)?;
    let ok = consistency::violations(&simulation.parameters).is_empty();
    let status = if ok { "passed" } else { "failed" };
    Ok(json!({
        "tool": "run_verification_checks", "contractVersion": CONTRACT, "simulationId": simulation.id, "backend": null,
        "generatedAt": generated, "validation": {}, "profile": {}, "capabilities": {}, "qualificationState": null,
        "evidenceBasis": {}, "workflowClaimBoundaries": {}, "missingEvidence": [], "dossierImprovementSignals": null,
        "verification": { "status": status, "checks": [{ "id": "parameter_consistency", "status": status }] },
        "warnings": [],
    }))
}

/// Writes a report on a loaded simulation.
pub(super) fn report(world: &mut World, arguments: &Value) -> Result<Value, Failure> {
    let generated = world.now.whole();
    let simulation = loaded(world, arguments)?;
    let limit = arguments["parameterLimit"].as_u64().and_then(|limit| usize::try_from(limit).ok()).unwrap_or(200);
    let rows: Vec<Value> = match arguments["includeParameterTable"] != false {
        true => simulation
            .parameters
            .iter()
            .take(limit)
            .map(|(path, own)| json!({ "path": path, "value": own.value, "unit": own.unit }))
            .collect(),
        false => Vec::new(),
    };
    Ok(json!({
        "tool": "export_oecd_report", "contractVersion": CONTRACT, "simulationId": simulation.id, "backend": null,
        "generatedAt": generated, "ngraObjects": {}, "qualificationState": null, "dossierImprovementSignals": null,
        "report": { "simulationId": simulation.id, "parameterTable": rows },
    }))
}

/// Imports the results of another platform.
pub(super) fn bundle(arguments: &Value) -> Value {
    json!({
        "tool": "ingest_external_pbpk_bundle", "contractVersion": CONTRACT,
        "externalRun": { "sourcePlatform": arguments["sourcePlatform"], "modelName": arguments["modelName"] },
        "ngraObjects": {}, "warnings": [],
    })
}
